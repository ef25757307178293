//! linerate: the command line.
fn main() {}
