//! Parts of sentences.

/// Things that are said in a row.
pub trait Joined: Iterator<Item: ToString> + Sized {
    /// All of them in one text, with `between` between two.
    fn joined(self, between: &str) -> String {
        self.map(|one| one.to_string())
            .collect::<Vec<_>>()
            .join(between)
    }
}

impl<I: Iterator<Item: ToString>> Joined for I {}

/// The part of a sentence where the condition holds, nothing elsewhere.
pub fn when<T: Default>(condition: bool, part: T) -> T {
    if condition { part } else { T::default() }
}
