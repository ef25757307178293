//! Names of recorded campaigns: `last`, `last-1`, the beginning of a folder's name, or the name behind its time.

use linerate_linux::records::rfc3339_utc;
use std::fs;
use std::path::{Path, PathBuf};

/// Where campaigns are recorded, unless --out names another folder.
pub const RESULTS: &str = "linerate-results";

/// Files that make a folder a record: of a campaign, of a tuning.
const RECORDS: [&str; 2] = ["campaign.json", "tuning.json"];
/// Names in an error.
const MOST: usize = 5;

/// The folders of records in a folder, the newest first.
pub fn all(results: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(results)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path());
    let records = entries.filter(|path| RECORDS.iter().any(|record| path.join(record).is_file()));
    let mut dated: Vec<(String, PathBuf)> = records.map(|path| (begun(&path), path)).collect();
    dated.sort_by(|one, other| other.cmp(one));
    dated.into_iter().map(|(_, path)| path).collect()
}

/// When a campaign began, as digits: its folder's name begins with the time, `20261126T225258Z-bench`. One that was named by --out has
/// the time of its first file.
fn begun(path: &Path) -> String {
    let digits = |text: &str| {
        text.chars()
            .filter(char::is_ascii_digit)
            .collect::<String>()
    };
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let time = digits(name.split('-').next().unwrap_or_default());
    if time.len() == 14 {
        return time;
    }
    let files = RECORDS
        .iter()
        .filter_map(|record| fs::metadata(path.join(record)).ok()?.modified().ok());
    files
        .min()
        .map_or(String::new(), |time| digits(&rfc3339_utc(time)))
}

/// The folder that a user means: a path, or a name in [`RESULTS`].
///
/// # Errors
/// No campaign has that name, or several have it.
pub fn folder(what: &str) -> Result<PathBuf, String> {
    let is_path = what.contains('/') || Path::new(what).exists();
    if is_path {
        Ok(what.into())
    } else {
        among(what, &all(Path::new(RESULTS))).map_err(|why| match here() {
            Some(here) => format!("{why}. {here}"),
            None => why,
        })
    }
}

/// Where campaigns are that `--out` put into the working directory, as a sentence.
pub fn here() -> Option<String> {
    let name = all(Path::new("."))
        .first()?
        .file_name()?
        .to_string_lossy()
        .into_owned();
    Some(format!(
        "This folder has campaigns, such as {name}: linerate list . shows them."
    ))
}

/// The newest record.
///
/// # Errors
/// There is none.
pub fn newest() -> Result<PathBuf, String> {
    folder("last")
}

fn among(what: &str, all: &[PathBuf]) -> Result<PathBuf, String> {
    let none = || {
        format!("{RESULTS} has no campaign: name a folder, or measure first (sudo linerate bench)")
    };
    let nth = match what.strip_prefix("last") {
        Some("") => Some(0),
        Some(rest) => rest.strip_prefix('-').and_then(|n| n.parse::<usize>().ok()),
        None => None,
    };
    if let Some(nth) = nth {
        let there = all.len();
        let few = || {
            let oldest = match there {
                0 => return none(),
                1 => "1 campaign, last".to_string(),
                n => format!("{n} campaigns, the oldest is last-{}", n - 1),
            };
            format!("there is no {what}: {RESULTS} has {oldest} (linerate list)")
        };
        return all.get(nth).cloned().ok_or_else(few);
    }
    let name = |path: &Path| {
        path.file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned()
    };
    let begins: Vec<&PathBuf> = all
        .iter()
        .filter(|path| name(path).starts_with(what))
        .collect();
    // The newest of a name: a plan is carried out many times.
    let named = all.iter().find(|path| {
        name(path)
            .split_once("Z-")
            .is_some_and(|(_, own)| own == what)
    });
    match (&begins[..], named) {
        _ if what.is_empty() => Err(none()),
        (_, Some(path)) => Ok(path.clone()),
        ([path], None) => Ok((*path).clone()),
        ([], None) => Err(format!(
            "there is no folder {what}, and no campaign of that name in {RESULTS} (linerate list)"
        )),
        (several, None) => {
            let names: Vec<String> = several.iter().take(MOST).map(|path| name(path)).collect();
            Err(format!(
                "{what} may be {}: write more of the name",
                names.join(", ")
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_campaigns() {
        let all = [
            "20260103T000000Z-rules",
            "20260102T120000Z-bench",
            "20260101T000000Z-bench",
            "mine",
        ];
        let all: Vec<PathBuf> = all
            .iter()
            .map(|name| Path::new(RESULTS).join(name))
            .collect();
        let found = |what: &str| {
            among(what, &all).map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
        };
        for (what, name) in [
            ("last", "20260103T000000Z-rules"),
            ("last-2", "20260101T000000Z-bench"),
            ("bench", "20260102T120000Z-bench"),
            ("20260102", "20260102T120000Z-bench"),
            ("mi", "mine"),
        ] {
            assert_eq!(found(what).as_deref(), Ok(name), "{what}");
        }
        assert!(
            found("2026")
                .unwrap_err()
                .contains("write more of the name")
        );
        let missing = |what: &str, all: &[PathBuf]| among(what, all).unwrap_err();
        assert_eq!(
            missing("last-4", &all),
            "there is no last-4: linerate-results has 4 campaigns, the oldest is last-3 (linerate list)"
        );
        assert_eq!(
            missing("last-1", &all[..1]),
            "there is no last-1: linerate-results has 1 campaign, last (linerate list)"
        );
        assert!(found("nothing").unwrap_err().contains("linerate list"));
        assert!(found("").is_err() && found("last-x").is_err());
        assert!(among("last", &[]).unwrap_err().contains("measure first"));
    }
}
