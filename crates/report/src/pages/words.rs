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

/// The first of these texts, and how many more there are.
pub fn some(texts: impl IntoIterator<Item = String>, most: usize, between: &str) -> String {
    let mut texts = texts.into_iter();
    let first = texts.by_ref().take(most).collect::<Vec<_>>().join(between);
    match texts.count() {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

/// The first three of these names, and how many more there are.
pub fn listed(names: &[String]) -> String {
    some(names.iter().cloned(), 3, "; ")
}
