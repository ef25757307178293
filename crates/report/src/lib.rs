//! linerate report
