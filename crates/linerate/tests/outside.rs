//! Tests that need no root, but real inputs or other people's tools, for which build.rs looks.

mod archive;
mod browser;
mod common;
mod forms;
mod kernels;
mod statistics;
