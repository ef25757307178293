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

/// Merges equal texts: each appears once, in the order of first appearance, with all its subjects.
pub fn together<T: PartialEq, N>(said: impl IntoIterator<Item = (T, N)>) -> Vec<(T, Vec<N>)> {
    let mut groups: Vec<(T, Vec<N>)> = Vec::new();
    for (text, name) in said {
        match groups.iter_mut().find(|(known, _)| *known == text) {
            Some((_, names)) => names.push(name),
            None => groups.push((text, vec![name])),
        }
    }
    groups
}

/// Each of several once, in the order of first appearance.
pub fn distinct<T: PartialEq>(all: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut known = Vec::new();
    for one in all {
        if !known.contains(&one) {
            known.push(one);
        }
    }
    known
}
