//! linerate sys
