//! Files of numbers: medians one a line, and tables over sets (`gnuplot.data` and its like).

use super::{Equilibrium, Published, Series, SeriesRow, Set};
use linerate_stats::median_interval;
use std::collections::BTreeSet;

/// Reads a file with one number a line. Other lines are problems.
pub fn numbers(file: &str, bytes: &[u8]) -> Published {
    let mut published = Published {
        file: file.into(),
        ..Published::default()
    };
    let text = String::from_utf8_lossy(bytes);
    for (index, line) in text.lines().enumerate() {
        let word = line.split_whitespace().next().unwrap_or("");
        match number(word) {
            Some(value) if value >= 0.0 => published.values.push(value),
            _ if word.is_empty() => published.blank_lines += 1,
            _ => published
                .problems
                .push(format!("line {}: no number: {}", index + 1, cut(line))),
        }
    }
    if published.values.is_empty() {
        published
            .problems
            .insert(0, "empty: every run failed, or none was summarised".into());
    }
    published
}

/// Whether bytes are numbers one a line, and nothing else but blank lines: a medians file whatever its name.
pub fn is_numbers(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return false;
    };
    let mut words = text
        .lines()
        .map(str::trim)
        .filter(|l| !l.is_empty())
        .peekable();
    words.peek().is_some() && words.all(|w| number(w).is_some())
}

fn number(word: &str) -> Option<f64> {
    // "inf" and "nan" parse, but are not numbers here.
    let first = word.bytes().next()?;
    let plain = first.is_ascii_digit() || matches!(first, b'-' | b'.' | b'+');
    word.parse().ok().filter(|v: &f64| plain && v.is_finite())
}

fn cut(text: &str) -> String {
    text.chars()
        .take(40)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

/// Reads a table of any of the archive's shapes: with or without header, one to seven columns, the first ones perhaps
/// names, perhaps in quotes.
pub fn series(file: &str, bytes: &[u8]) -> Series {
    let mut series = Series {
        file: file.into(),
        ..Series::default()
    };
    let text = String::from_utf8_lossy(bytes);
    // A merged file names the set only before its first row.
    let mut group = String::new();
    for (index, line) in text.lines().enumerate() {
        let line_number = index + 1;
        if let Some(header) = line.trim_start().strip_prefix('#') {
            match row(header) {
                Ok(Some((_, values))) if values.len() >= 2 => {
                    series.problems.push(format!(
                        "line {line_number}: a row is commented out: {}",
                        cut(header)
                    ));
                }
                _ if series.columns.is_empty() => series.columns = words(header),
                _ => {}
            }
            continue;
        }
        match row(line) {
            Ok(None) => {}
            Ok(Some((keys, values))) => {
                let key = grouped(&mut group, keys);
                series
                    .rows
                    .push(series_row(line_number, key, values, &series.columns));
            }
            Err(word) => series
                .problems
                .push(format!("line {line_number}: no number: {}", cut(&word))),
        }
    }
    if series.rows.is_empty() {
        series.problems.push(
            if text.trim().is_empty() {
                "empty"
            } else {
                "no rows"
            }
            .into(),
        );
    }
    series
}

/// In words, how many rows of a table have no runs in its folder; `None` where all have some. A row has those of the set of its
/// name, or of the set with its median.
pub fn without_runs(table: &Series, sets: &[Set], equilibria: &[Equilibrium]) -> Option<String> {
    let mut names: Vec<(&str, BTreeSet<String>)> = Vec::new();
    let mut medians: BTreeSet<String> = BTreeSet::new();
    let mut of = |name, values: &[f64]| {
        names.push((name, name_words(name)));
        medians.extend(median_interval(values, 0.95).map(|found| printed(found.median)));
    };
    for set in sets {
        let runs: Vec<f64> = set.runs.iter().filter_map(|run| run.median_pps).collect();
        let published = set
            .slot
            .published
            .as_ref()
            .map_or(&[][..], |published| &published.values);
        of(
            &set.slot.set,
            if published.is_empty() {
                &runs
            } else {
                published
            },
        );
    }
    for found in equilibria {
        let runs: Vec<f64> = found.runs.iter().filter_map(|run| run.estimate).collect();
        let published = found
            .published
            .as_ref()
            .map_or(&[][..], |published| &published.values);
        of(
            &found.name,
            if published.is_empty() {
                &runs
            } else {
                published
            },
        );
    }
    let has_runs = |row: &&SeriesRow| {
        let words = name_words(&row.key);
        let known = names
            .iter()
            .any(|(name, of_name)| *name == row.key || *of_name == words);
        known
            || row
                .median
                .is_some_and(|median| medians.contains(&printed(median)))
    };
    let missing = table.rows.len() - table.rows.iter().filter(has_runs).count();
    let rows = table.rows.len();
    (missing > 0).then(|| match rows {
        _ if missing == rows => format!("none of its {rows} rows has runs in this folder"),
        _ => format!("{missing} of its {rows} rows have no runs in this folder"),
    })
}

/// Eight significant digits, as the archive prints.
fn printed(value: f64) -> String {
    format!("{value:.7e}")
}

/// The words of a name in any order, numbers by their values; a name without an IP version is one of IPv4.
fn name_words(name: &str) -> BTreeSet<String> {
    const UNITS: [(&str, f64); 6] = [
        ("K", 1e3),
        ("M", 1e6),
        ("KiB", 1024.0),
        ("MiB", 1_048_576.0),
        ("q", 1.0),
        ("", 1.0),
    ];
    let word = |word: &str| {
        let (digits, unit) = word.split_at(
            word.find(|c: char| !c.is_ascii_digit())
                .unwrap_or(word.len()),
        );
        let scale = UNITS
            .iter()
            .find(|(known, _)| *known == unit)
            .map(|(_, scale)| scale);
        match (digits.parse::<f64>(), scale) {
            (Ok(number), Some(scale)) => (number * scale).to_string(),
            _ => word.replace("statefull", "stateful"),
        }
    };
    let words = name.split(|c: char| !c.is_alphanumeric());
    words
        .filter(|word| !matches!(*word, "" | "default" | "inet4"))
        .map(word)
        .collect()
}

/// The names in front of a row, and its numbers.
type Row = (Vec<String>, Vec<f64>);

/// Takes a row apart; `None` for a blank line.
///
/// # Errors
/// A word behind the first number that is not a number.
fn row(line: &str) -> Result<Option<Row>, String> {
    let words = words(line);
    let names = words.iter().take_while(|w| number(w).is_none()).count();
    let (mut keys, rest) = (words[..names].to_vec(), &words[names..]);
    if rest.is_empty() {
        return if keys.is_empty() {
            Ok(None)
        } else {
            Err(keys.remove(0))
        };
    }
    let mut values = Vec::with_capacity(rest.len());
    for word in rest {
        values.push(number(word).ok_or_else(|| word.clone())?);
    }
    // Medians, minima and maxima come in threes: one number more in front is an index. Of two, the first is.
    let index = match (values.len(), keys.is_empty()) {
        (2, true) => true,
        (n, _) => n > 3 && n % 3 == 1,
    };
    if index {
        values.remove(0);
        keys.push(rest[0].clone());
    }
    Ok(Some((keys, values)))
}

/// A row's key, with the name of the group that an earlier row has begun.
fn grouped(group: &mut String, mut keys: Vec<String>) -> String {
    match keys.len() {
        2 => group.clone_from(&keys[0]),
        1 if !group.is_empty() && number(&keys[0]).is_some() => keys.insert(0, group.clone()),
        _ => {}
    }
    keys.join(" ")
}

fn series_row(line: usize, key: String, values: Vec<f64>, columns: &[String]) -> SeriesRow {
    // Columns are named from the right: the header may name a key that the rows have not got.
    let named = |names: [&str; 2]| {
        let from_right = columns
            .iter()
            .rev()
            .position(|c| names.iter().any(|n| c.starts_with(n)))?;
        values.len().checked_sub(from_right + 1)
    };
    let by_name = columns.len() <= values.len() + 1;
    let at = |names: [&str; 2], position: usize| {
        let index = if by_name {
            named(names).unwrap_or(position)
        } else {
            position
        };
        values.get(index).copied()
    };
    let (median, min, max) = match values.len() {
        // A list of plain values.
        1 if key.is_empty() => (None, None, None),
        1 => (values.first().copied(), None, None),
        _ => (
            at(["median", "med"], 0),
            at(["min", "minimum"], 1),
            at(["max", "maximum"], 2),
        ),
    };
    SeriesRow {
        line,
        key,
        median,
        min,
        max,
        values,
    }
}

/// Words between blanks; quotes keep one together.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = line.trim_start();
    while !rest.is_empty() {
        let (word, after) = match rest.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
            None => rest.split_at(rest.find(char::is_whitespace).unwrap_or(rest.len())),
        };
        words.push(word.to_string());
        rest = after.trim_start();
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_with_blank_and_foreign_lines() {
        let p = numbers("pps.2", b"1499909\n\n1481953\nx 3\nnan\n1500378.5");
        assert_eq!(
            (p.values, p.blank_lines),
            (vec![1_499_909.0, 1_481_953.0, 1_500_378.5], 1)
        );
        assert_eq!(
            p.problems,
            ["line 4: no number: x 3", "line 5: no number: nan"]
        );
        assert_eq!(numbers("a.pps", b"").problems.len(), 1);
        assert_eq!(numbers("a.pps", b"\n\n").blank_lines, 2);
    }

    #[test]
    fn a_medians_file_is_told_by_its_content() {
        assert!(is_numbers(b"1234\n\n1235.5\n"));
        assert!(
            !is_numbers(b"") && !is_numbers(b"\n") && !is_numbers(b"1 2\n") && !is_numbers(b"x\n")
        );
    }

    #[test]
    fn rows_without_runs_are_counted() {
        let set = |name: &str, values: &[f64]| Set {
            slot: super::super::ImportedSlot {
                set: name.into(),
                published: Some(Published {
                    values: values.into(),
                    ..Published::default()
                }),
                ..Default::default()
            },
            ..Set::default()
        };
        let sets = [
            set("ipfw-statefull.1K.inet4", &[5.0, 6.0, 7.0]),
            set("renamed", &[10.0, 11.0, 12.0]),
        ];
        let table = |text: &[u8]| without_runs(&series("f", text), &sets, &[]);
        assert_eq!(table(b"\"ipfw-stateful 1000\" 9 9 9\n11k 11 10 12\n"), None);
        assert_eq!(
            table(b"renamed 9 9 9\npf 9 9 9\n").unwrap(),
            "1 of its 2 rows have no runs in this folder"
        );
        assert_eq!(
            table(b"pf 9 9 9\n").unwrap(),
            "none of its 1 rows has runs in this folder"
        );
    }

    type Read = (String, Option<f64>, Option<f64>, Option<f64>);

    fn rows(text: &str) -> Vec<Read> {
        let rows = series("f", text.as_bytes()).rows;
        rows.into_iter()
            .map(|r| (r.key, r.median, r.min, r.max))
            .collect()
    }

    fn expected(key: &str, median: f64, min: f64, max: f64) -> Read {
        (key.into(), Some(median), Some(min), Some(max))
    }

    #[test]
    fn headers_of_all_spellings() {
        for header in [
            "#index median minimum maximum\n",
            "#key median minimum maximum\n",
            "# (revision)\tmedian\tminimum\t\tmaximum\n",
            "#config median min max\n",
            "",
        ] {
            assert_eq!(
                rows(&format!("{header}32KiB 370601 368927 372951")),
                [expected("32KiB", 370_601.0, 368_927.0, 372_951.0)]
            );
        }
        assert_eq!(
            rows("# rev minimum median maximum\n1 2 3 4\n"),
            [expected("1", 3.0, 2.0, 4.0)]
        );
    }

    #[test]
    fn rows_without_key_with_quoted_key_and_of_merged_files() {
        assert_eq!(
            rows("# (revision)\tmedian\tminimum\t\tmaximum\n384301.5 381295 405347.5\n"),
            [expected("", 384_301.5, 381_295.0, 405_347.5)]
        );
        assert_eq!(
            rows("\"aes-cbc-128 with aesni\" 378 376 379\n"),
            [expected("aes-cbc-128 with aesni", 378.0, 376.0, 379.0)]
        );
        let merged = "#key median minimum maximum\nfastforwarding 276669 3 2 4\n277034 6 5 7\n";
        assert_eq!(
            rows(merged),
            [
                expected("fastforwarding 276669", 3.0, 2.0, 4.0),
                expected("fastforwarding 277034", 6.0, 5.0, 7.0)
            ]
        );
        assert_eq!(
            rows("# revision\tpps\n276669\t3\n"),
            [("276669".into(), Some(3.0), None, None)]
        );
        assert_eq!(
            rows("378\n376\n"),
            [
                (String::new(), None, None, None),
                (String::new(), None, None, None)
            ]
        );
        let seven = series("f", b"64 1 2 3 4 5 6\n");
        assert_eq!(
            (seven.rows[0].key.as_str(), seven.rows[0].values.len()),
            ("64", 6)
        );
    }

    #[test]
    fn what_is_wrong_is_told() {
        assert_eq!(series("f", b"").problems, ["empty"]);
        assert_eq!(
            series("f", b"#index median minimum maximum\n").problems,
            ["no rows"]
        );
        let s = series(
            "f",
            b"#index median minimum maximum\n#311848iflib 386412 385510 389728\na 1 x 3\nb 1 2 3\n",
        );
        assert_eq!((s.rows.len(), s.problems.len()), (1, 2));
        assert_eq!(s.columns, ["index", "median", "minimum", "maximum"]);
    }
}
