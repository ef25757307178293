//! Everything that a figure depends on: the machine, its kernel and settings, how busy its CPUs are, and our own memory.

pub mod changes;
pub mod cpu;
mod facts;

pub use facts::facts;
pub(crate) use facts::memory_bytes;
pub use facts::peak_rss_bytes;

#[cfg(test)]
mod tests;
