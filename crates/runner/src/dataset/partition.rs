//! Where the files of a campaign are: TABLE/lab=L/year=Y/month=M, as Hive and everything after it has it.

use linerate_measure::calendar;
use linerate_measure::record::Campaign;
use linerate_report::export::Rows;

/// The value of a partition that has none.
const NONE: &str = "__HIVE_DEFAULT_PARTITION__";
/// Bytes of a lab's name. Three bytes of a file's name may stand for each, and a file's name has 255.
const LONGEST: usize = 80;
/// The file of all campaigns of a month.
pub const COMPACT: &str = "campaigns.parquet";
const ENDING: &str = ".parquet";

/// The file of a campaign.
pub fn file_of(id: &str) -> String {
    format!("{id}{ENDING}")
}

/// The campaign of a file.
pub fn id_of(name: &str) -> Option<&str> {
    let id = name.strip_suffix(ENDING)?;
    let is_id = id.len() == 32 && id.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    is_id.then_some(id)
}

/// The campaigns of a lab in a month.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Partition {
    pub lab: String,
    /// Year and month of their beginnings, UTC; `None` where these are not known.
    pub month: Option<(u32, u32)>,
}

impl Partition {
    /// The place of a campaign. Without a name, its lab is the kind of testbed.
    pub(super) fn of_campaign(campaign: &Campaign, lab: Option<&str>) -> Partition {
        Partition {
            lab: lab.map_or_else(|| campaign.asked.lab.to_string(), String::from),
            month: calendar::seconds(&campaign.started).and_then(month_of),
        }
    }

    /// Reads a path.
    pub(super) fn of_path(path: &str) -> Option<Partition> {
        let parts: Vec<&str> = path.split('/').collect();
        let [lab, year, month] = parts[..] else {
            return None;
        };
        let (year, month) = (year.strip_prefix("year=")?, month.strip_prefix("month=")?);
        let month = match (year, month) {
            (NONE, NONE) => None,
            _ => Some((year.parse().ok()?, month.parse().ok()?)),
        };
        let lab = unescaped(lab.strip_prefix("lab=")?)?;
        let found = Partition { lab, month };
        // Another writing of the name would be another folder.
        (found.path() == path).then_some(found)
    }

    /// The place in the folder of another lab.
    pub(super) fn of_lab(&self, folder: &str) -> Option<Partition> {
        let lab = unescaped(folder.strip_prefix("lab=")?)?;
        Some(Partition { lab, ..*self })
    }

    pub(super) fn path(&self) -> String {
        let lab = escaped(&self.lab);
        match self.month {
            Some((year, month)) => format!("lab={lab}/year={year}/month={month}"),
            None => format!("lab={lab}/year={NONE}/month={NONE}"),
        }
    }

    /// The path of a file.
    pub(super) fn file(&self, rows: Rows, name: &str) -> String {
        format!("{}/{}/{name}", rows.name(), self.path())
    }

    /// Reads the name of a lab.
    ///
    /// # Errors
    /// Why it can have no folder.
    pub fn lab(name: &str) -> Result<String, String> {
        match name {
            "" | NONE => Err("it is no name".into()),
            _ if name.len() > LONGEST => Err(format!("it has more than {LONGEST} bytes")),
            _ if name.chars().any(char::is_control) => Err("it has control characters".into()),
            _ => Ok(name.into()),
        }
    }
}

/// Year and month of a time in seconds since 1970.
pub fn month_of(seconds: i64) -> Option<(u32, u32)> {
    let text = calendar::rfc3339(seconds);
    let mut parts = text.split('-').map(|part| part.parse().ok());
    Some((parts.next()??, parts.next()??))
}

/// A name as a part of a path: all ASCII but letters, digits, `-`, `_` and `.` as `%XX`, which every reader of such paths undoes.
fn escaped(name: &str) -> String {
    let plain =
        |c: char| !c.is_ascii() || c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let one = |c: char| match c {
        c if plain(c) => c.to_string(),
        c => format!("%{:02X}", c as u32),
    };
    name.chars().map(one).collect()
}

fn unescaped(part: &str) -> Option<String> {
    let mut parts = part.split('%');
    let mut name = parts.next()?.to_owned();
    for part in parts {
        let byte = u8::from_str_radix(part.get(..2)?, 16).ok()?;
        name.push(char::from(byte));
        name.push_str(&part[2..]);
    }
    Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn a_lab_of_any_name_has_one_folder() {
        let ascii = (' '..='~').map(String::from);
        let others = [
            "..",
            "../..",
            "é\u{202e}",
            "100%",
            "%2F",
            "lab=a/year=1",
            "",
        ];
        for lab in ascii.chain(others.map(String::from)) {
            for month in [None, Some((2026, 1)), Some((0, 12))] {
                let place = Partition {
                    lab: lab.clone(),
                    month,
                };
                let path = place.path();
                assert_eq!(path.split('/').count(), 3, "{path}");
                assert!(path.split('/').all(|part| part.contains('=')), "{path}");
                assert_eq!(Partition::of_path(&path), Some(place));
            }
        }
    }

    #[test]
    fn another_writing_is_another_folder() {
        let month = "year=2026/month=1";
        for path in [
            "lab=a b/year=2026/month=1",
            "lab=%61/year=2026/month=1",
            "lab=a%2f/year=2026/month=1",
            "lab=a%é/year=2026/month=1",
            "lab=a/year=2026/month=01",
            "lab=a/year=+2026/month=1",
            "lab=a/year=2026/month=__HIVE_DEFAULT_PARTITION__",
            month,
        ] {
            assert_eq!(Partition::of_path(path), None, "{path}");
        }
        assert!(Partition::of_path(&format!("lab=a/{month}")).is_some());
    }

    #[test]
    fn names_that_can_be_no_folder_are_refused() {
        for name in ["", NONE, "a\u{1b}[31m", "a\nb", &"x".repeat(81)] {
            assert!(Partition::lab(name).is_err(), "{name:?}");
        }
        assert_eq!(Partition::lab("../é %2F").as_deref(), Ok("../é %2F"));
    }

    #[test]
    fn only_names_of_campaigns_are_ids() {
        let id = "0123456789abcdef0123456789abcdef";
        assert_eq!(id_of(&file_of(id)), Some(id));
        for name in [COMPACT, "x.parquet", id, &file_of(&id.to_uppercase())] {
            assert_eq!(id_of(name), None, "{name}");
        }
    }
}
