//! The reader of a record's files.

use super::VERSION;
use serde::Deserialize;
use serde_json::Value;

/// Why a record cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// Not JSON of the expected shape.
    #[error("{what}, line {line}: {reason}")]
    Malformed {
        /// The file.
        what: String,
        /// Line, from 1.
        line: usize,
        /// The message of serde.
        reason: String,
    },
    /// Written by a newer linerate.
    #[error(
        "{what} has record format {found}, this linerate reads up to {VERSION}: use a newer linerate"
    )]
    TooNew {
        /// The file.
        what: String,
        /// Version of the record.
        found: u32,
    },
}

/// Reads one JSON document of a record, refusing versions from the future.
///
/// # Errors
/// Malformed JSON, or a newer format.
pub fn read_document<T: serde::de::DeserializeOwned>(
    what: &str,
    text: &str,
) -> Result<T, RecordError> {
    let malformed = |e: serde_json::Error| RecordError::Malformed {
        what: what.into(),
        // A document that was converted has no lines.
        line: e.line().max(1),
        reason: if e.is_eof() {
            "the file is cut off".into()
        } else {
            e.to_string()
        },
    };
    #[derive(Deserialize)]
    struct Versioned {
        version: u32,
    }
    let Versioned { version } = serde_json::from_str(text).map_err(malformed)?;
    if version > VERSION {
        return Err(RecordError::TooNew {
            what: what.into(),
            found: version,
        });
    }
    if version == VERSION {
        return serde_json::from_str(text).map_err(malformed);
    }
    let mut document = serde_json::from_str::<Value>(text).map_err(malformed)?;
    upgrade(&mut document);
    // By way of text: the program has one reader of each type.
    serde_json::from_str(&document.to_string()).map_err(malformed)
}

/// Fields that records of version 1 may lack, with what stands for them: place and value, as JSON. `*` is each item of a list.
const LACKING: [(&str, &str); 7] = [
    ("imported/throughputs", "[]"),
    ("searches", "[]"),
    ("searches/*/goals/*/interval", "[null, null]"),
    ("profiles/*/rates", "[]"),
    ("profiles/*/frames", "0"),
    ("profiles/*/counted", "{}"),
    ("explanations/*/balance", "[]"),
];

/// Makes a document of version 1 one of this version.
fn upgrade(document: &mut Value) {
    let Some(fields) = document.as_object_mut() else {
        return;
    };
    fields.insert("version".into(), VERSION.into());
    // Only a summary has rows.
    let summary = fields.contains_key("rows");
    for (place, value) in LACKING
        .iter()
        .filter(|(place, _)| summary || *place != "searches")
    {
        fill(
            document,
            place,
            &serde_json::from_str(value).unwrap_or_default(),
        );
    }
}

fn fill(within: &mut Value, place: &str, value: &Value) {
    let (first, rest) = place
        .split_once('/')
        .map_or((place, None), |(first, rest)| (first, Some(rest)));
    match (rest, within) {
        (Some(rest), Value::Array(items)) => {
            items.iter_mut().for_each(|item| fill(item, rest, value))
        }
        (Some(rest), Value::Object(fields)) => {
            fields
                .get_mut(first)
                .into_iter()
                .for_each(|inner| fill(inner, rest, value));
        }
        (None, Value::Object(fields)) => drop(fields.entry(first).or_insert_with(|| value.clone())),
        _ => {}
    }
}

/// Documents of a file that has one in each line.
#[derive(Debug)]
pub struct Lines<T> {
    /// All documents that could be read.
    pub documents: Vec<T>,
    /// The last line had been cut off (by a full disk or a power failure).
    pub cut_off: bool,
    /// Why other lines could not be read.
    pub broken: Vec<RecordError>,
}

/// Reads documents, one in each line. Lines that cannot be read are left out.
///
/// # Errors
/// A newer format.
pub fn read_lines<T: serde::de::DeserializeOwned>(
    what: &str,
    text: &str,
) -> Result<Lines<T>, RecordError> {
    let mut read = Lines {
        documents: Vec::new(),
        cut_off: false,
        broken: Vec::new(),
    };
    let mut lines = text
        .lines()
        .enumerate()
        .filter(|(_, l)| !l.trim().is_empty())
        .peekable();
    while let Some((index, line)) = lines.next() {
        match read_document(what, line) {
            Ok(document) => read.documents.push(document),
            Err(RecordError::Malformed { .. })
                if lines.peek().is_none() && !text.ends_with('\n') =>
            {
                read.cut_off = true;
            }
            Err(RecordError::Malformed { what, reason, .. }) => {
                read.broken.push(RecordError::Malformed {
                    what,
                    line: index + 1,
                    reason,
                });
            }
            Err(error) => return Err(error),
        }
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Campaign, Imported};

    #[test]
    fn what_older_records_lack_is_filled_in() {
        let campaign = Campaign {
            imported: Some(Box::default()),
            ..Campaign::default()
        };
        let mut older = serde_json::to_value(&campaign).unwrap();
        older["version"] = 1.into();
        older["imported"]
            .as_object_mut()
            .unwrap()
            .remove("throughputs");
        let read: Campaign = read_document("campaign.json", &older.to_string()).unwrap();
        assert_eq!(
            (read.version, read.imported.as_deref()),
            (VERSION, Some(&Imported::default()))
        );
        // In this version such a lack is a fault.
        older["version"] = VERSION.into();
        assert!(read_document::<Campaign>("campaign.json", &older.to_string()).is_err());
        for odd in [
            "[1]",
            "1",
            "{\"version\": 1, \"rows\": 7, \"searches\": [[{}]]}",
        ] {
            assert!(
                read_document::<Campaign>("campaign.json", odd).is_err(),
                "{odd}"
            );
        }
    }
}
