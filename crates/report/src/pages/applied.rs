//! Changes of a host's settings: before they are made, and after they were taken back.

use crate::prelude::*;
use linerate_advise::Item;
use linerate_measure::tuning::LeftOut;

/// Changes that are to be made.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Applied {
    pub items: Vec<Recommended>,
    /// Recommendations that are to be measured first: `--all` does not make them.
    pub left_out: Vec<Recommended>,
    /// The tuning that kept the changes, if they are of one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tuning: Option<String>,
    /// Changes that the host cannot keep, with the reasons.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_kept: Vec<LeftOut>,
    /// Whether they are only shown.
    pub dry_run: bool,
    /// Whether they are changes of a network namespace, which has no files for a boot.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub in_namespace: bool,
    /// Changes of the running system.
    pub values: Vec<ValueChange>,
    pub files: Vec<FileChange>,
    /// Whether some of them take effect at the next boot.
    pub at_boot: bool,
    /// Settings that the next boot undoes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub until_boot: Vec<String>,
}

/// A recommendation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Recommended {
    pub id: String,
    pub title: String,
    /// Costs of the change, and what it breaks.
    pub cost: String,
}

impl From<&Item> for Recommended {
    fn from(item: &Item) -> Recommended {
        Recommended {
            id: item.id.clone(),
            title: item.title.clone(),
            cost: item.cost.clone(),
        }
    }
}

/// A value of the running system.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ValueChange {
    pub what: String,
    pub now: String,
    pub wanted: String,
}

/// A file whose lines change.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FileChange {
    pub path: String,
    /// Whether it is made.
    pub new: bool,
    pub removed: Vec<String>,
    pub added: Vec<String>,
}

impl FileChange {
    /// The lines that go, and those that come. Lines that only move are neither.
    pub fn between(path: &str, before: Option<&str>, after: &str) -> FileChange {
        let mut added: Vec<&str> = after.lines().collect();
        let mut stays = |line: &str| {
            let at = added.iter().position(|new| *new == line);
            at.map(|at| added.remove(at)).is_some()
        };
        let removed = before
            .unwrap_or_default()
            .lines()
            .filter(|line| !stays(line))
            .map(String::from)
            .collect();
        let added = added.into_iter().map(String::from).collect();
        FileChange {
            path: path.into(),
            new: before.is_none(),
            removed,
            added,
        }
    }
}

/// The page of `linerate apply`.
pub fn applied(host: &str, applied: &Applied) -> Document {
    let mut page = Document::default();
    page.heading(format!("Changes of {host}"));
    if let Some(tuning) = &applied.tuning {
        page.say(format!("Of the tuning {tuning}."));
    }
    if applied.values.is_empty() && applied.files.is_empty() {
        page.say(nothing(applied));
    } else if applied.dry_run {
        page.say("A dry run: nothing was changed.");
    }
    for item in &applied.items {
        page.entry("- ", format!("{}: {}", item.id, item.title));
        if !item.cost.is_empty() {
            page.entry("  ", format!("Cost: {}", item.cost));
        }
    }
    let values = Table::of(&applied.values)
        .column("setting", "", |value| value.what.clone())
        .column("now", "", |value| value.now.replace('\n', "; "))
        .column("then", "", |value| value.wanted.clone());
    page.section("At once", values);
    for file in &applied.files {
        let is_new = when(file.new, " (a new file)");
        page.heading(format!("{}{is_new}", file.path));
        file.removed
            .iter()
            .for_each(|line| page.code(&format!("- {line}"), Tone::Warning));
        file.added
            .iter()
            .for_each(|line| page.code(&format!("+ {line}"), Tone::Strong));
    }
    if applied.at_boot {
        page.note("Lines of files without a value above take effect at the next boot.");
    }
    if !applied.until_boot.is_empty() {
        page.note(format!(
            "Until the next boot alone: {}.",
            applied.until_boot.join(", ")
        ));
    }
    if applied.in_namespace && !applied.values.is_empty() {
        page.note("These changes last as long as the network namespace: no file is written.");
    }
    let not_kept = applied.not_kept.iter();
    page.list(
        "Left out, because the host cannot keep them",
        "- ",
        not_kept.map(|left| format!("{}: {}", left.name, left.reason)),
        Tone::Note,
    );
    let left_out = applied
        .left_out
        .iter()
        .map(|item| format!("{}: {}", item.id, item.title));
    page.list(
        "Left out, because they help some machines and harm others: measure them first",
        "- ",
        left_out,
        Tone::Note,
    );
    page
}

/// Why nothing changes.
fn nothing(applied: &Applied) -> &'static str {
    match (
        &applied.tuning,
        applied.items.is_empty(),
        applied.not_kept.is_empty(),
    ) {
        (None, false, _) | (None, _, true) => {
            "Everything is as recommended: there is nothing to change."
        }
        (_, true, true) => "It kept no change: there is nothing to change.",
        (_, true, false) => "The host can keep none of the changes: there is nothing to change.",
        (_, false, _) => "The host has these settings already: there is nothing to change.",
    }
}

/// The page of `linerate apply --revert`. `done`: they were taken back.
pub fn reverted(host: &str, what: &[String], done: bool) -> Document {
    let mut page = Document::default();
    match (what.is_empty(), done) {
        (true, _) => page.say(format!("{host}: there is nothing to take back.")),
        (false, true) => page.say(format!(
            "{host}: {} taken back.",
            counted(what.len(), "change")
        )),
        (false, false) => page.say(format!(
            "{host}: {} can be taken back.",
            counted(what.len(), "change")
        )),
    }
    what.iter().for_each(|what| page.entry("- ", what));
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_go_and_come() {
        let change = FileChange::between("f", Some("a\nb\na\n"), "new\na\nb\n");
        assert_eq!(
            (change.removed, change.added, change.new),
            (vec!["a".into()], vec!["new".into()], false)
        );
        assert_eq!(FileChange::between("f", None, "a\n").added, ["a"]);
    }
}
