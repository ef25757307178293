//! linerate core
