//! Lists in words.

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

/// Names that are listed one by one at most.
const MOST: usize = 3;

/// The first of these names, and how many more there are.
pub fn listed(names: &[String]) -> String {
    let more = names.len().saturating_sub(MOST);
    let first = names[..names.len() - more].join("; ");
    if more > 0 { format!("{first} and {more} more") } else { first }
}
