//! `.info` files: the test, its system, and its time. Two grammars.

use super::facts;
use super::shell::{Item, items};
use crate::shortened;
use linerate_measure::calendar::{days, rfc3339};
use std::collections::BTreeMap;

/// Values of an `.info` file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Info {
    /// Facts by the keys of [`facts`].
    pub facts: BTreeMap<String, String>,
    pub problems: Vec<String>,
}

/// No file of this kind is larger.
const LONGEST_VALUE: usize = 4096;

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

impl Info {
    /// Reads either grammar; the last line needs no newline.
    pub fn read(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let mut info = Info::default();
        let assignments = text.lines().any(|l| {
            ["IMAGE=", "CFG=", "PKTGEN=", "UNAME="]
                .iter()
                .any(|p| l.starts_with(p))
        });
        if assignments {
            info.assignments(&text)
        } else {
            info.lines(&text)
        }
        if info.facts.is_empty() {
            let what = if text.trim().is_empty() {
                "empty"
            } else {
                "nothing known in it"
            };
            info.problems.push(what.into());
        }
        info
    }

    /// `IMAGE="..."`, `CFG="..."`, `PKTGEN="..."`, `UNAME="..."`.
    fn assignments(&mut self, text: &str) {
        for item in items(text) {
            let Item {
                name,
                value,
                closed,
                ..
            } = item;
            if !closed {
                self.problems
                    .push(format!("cut off: the quote of {name} is not closed"));
            }
            match name.as_str() {
                "" => self.problems.push("a line that is no assignment".into()),
                "IMAGE" => self.put(facts::IMAGE, &value),
                "CFG" => self.put(facts::CONFIG, base(&value)),
                "PKTGEN" => self.put(facts::PKTGEN, base(&value)),
                "UNAME" => self.uname(&value),
                other => self.put(&other.to_lowercase(), &value),
            }
        }
    }

    /// `Image: ...`, `CFG: ...`, the line of uname, `Start time: ...`, `End time: ...`.
    fn lines(&mut self, text: &str) {
        for line in text.lines().map(str::trim).filter(|l| !l.is_empty()) {
            match line
                .split_once(": ")
                .map(|(key, value)| (key, value.trim()))
            {
                Some(("Image", "none")) => {}
                Some(("Image", value)) => self.put(facts::IMAGE, value),
                Some(("CFG", value)) => self.put(facts::CONFIG, base(value)),
                Some(("PKTGEN" | "Pktgen", value)) => self.put(facts::PKTGEN, base(value)),
                Some(("Start time", value)) => {
                    self.put(facts::START, value);
                    self.put(facts::START_UTC, &utc(value).unwrap_or_default());
                }
                Some(("End time", value)) => self.put(facts::END, value),
                _ if line.starts_with("FreeBSD ") => self.uname(line),
                _ => self.problems.push("a line of unknown meaning".into()),
            }
        }
        self.problems.dedup();
    }

    fn put(&mut self, key: &str, value: &str) {
        if !value.is_empty() {
            self.facts
                .insert(key.into(), shortened(value, LONGEST_VALUE));
        }
    }

    /// `FreeBSD host 11.1-RELEASE-p1 FreeBSD 11.1-RELEASE-p1 #2 r322489M: Fri Sep  8 00:32:53 CEST 2017     olivier@...`.
    fn uname(&mut self, text: &str) {
        self.put(facts::UNAME, text);
        let words: Vec<&str> = text.split_whitespace().collect();
        self.put(facts::RELEASE, words.get(2).unwrap_or(&""));
        let Some(build) = words.iter().position(|w| w.starts_with('#')) else {
            return;
        };
        // A kernel built outside a repository has the date there instead.
        if let Some(revision) = words.get(build + 1).and_then(|w| w.strip_suffix(':')) {
            self.put(facts::REVISION, revision);
            let built = text
                .split_once(&format!("{revision}: "))
                .map_or("", |(_, date)| date);
            let built = built.split("     ").next().unwrap_or("").trim();
            self.put(facts::BUILT, built);
            self.put(facts::BUILT_UTC, &utc(built).unwrap_or_default());
        }
    }

    /// Source revision in an image's name, as the archive's script of 2015 cuts it out:
    /// `/images/BSDRP-291909-upgrade-amd64-serial.img.xz` is 291909.
    pub fn image_revision(&self) -> Option<&str> {
        let image = base(self.facts.get(facts::IMAGE)?);
        Some(image.split('-').nth(1).unwrap_or(image))
    }
}

/// The last part of a path.
fn base(path: &str) -> &str {
    path.trim_end_matches('/')
        .rsplit('/')
        .next()
        .unwrap_or(path)
}

/// `Fri Sep  8 00:32:53 CEST 2017` or `February 19, 2016 at 11:16:45 PM CET` as `2017-09-07T22:32:53Z`; `None` for other
/// forms, and zones that are not known.
pub fn utc(text: &str) -> Option<String> {
    let words: Vec<&str> = text.split([' ', ',']).filter(|w| !w.is_empty()).collect();
    let (month, day, year, clock, half, zone) = match words[..] {
        [_, month, day, clock, zone, year] => (month, day, year, clock, "", zone),
        [month, day, year, "at", clock, half, zone] => (month, day, year, clock, half, zone),
        _ => return None,
    };
    let month = MONTHS.iter().position(|m| month.get(..3) == Some(m))? as i64 + 1;
    let day: i64 = day.parse().ok().filter(|d| (1..=31).contains(d))?;
    let year: i64 = year.parse().ok().filter(|y| (1970..=9999).contains(y))?;
    let seconds = of_day(clock, half)? - 3600 * hours_east(zone)?;
    Some(rfc3339(days(year, month, day) * 86_400 + seconds))
}

/// Seconds since midnight of `00:32:53` or, with `AM` or `PM`, `11:16:45`.
fn of_day(clock: &str, half: &str) -> Option<i64> {
    let mut parts = clock
        .splitn(3, ':')
        .map(|p| p.parse::<i64>().ok().filter(|n| (0..60).contains(n)));
    let (hour, minute, second) = (parts.next()??, parts.next()??, parts.next()??);
    let hour = match half {
        "" if hour < 24 => hour,
        "AM" if hour <= 12 => hour % 12,
        "PM" if hour <= 12 => hour % 12 + 12,
        _ => return None,
    };
    Some(hour * 3600 + minute * 60 + second)
}

fn hours_east(zone: &str) -> Option<i64> {
    match zone {
        "UTC" | "GMT" => Some(0),
        "CET" => Some(1),
        "CEST" => Some(2),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_grammar_of_lines() {
        let text = "Image: /root/images.2015//BSDRP-291909-upgrade-amd64-serial.img.xz\nCFG: fastforwarding-pf-ipfw/configs//fastforwarding\n\
            FreeBSD netgate.bsdrp.net 11.0-CURRENT FreeBSD 11.0-CURRENT #0 r291909: Tue Jan 26 05:12:36 CET 2016     root@lame4:/usr/obj  amd64\n\
            Start time: January 28, 2016 at 09:08:08 PM CET\nEnd time: Fri Sep 25 08:04:18 CEST 2015\n";
        let info = Info::read(text.as_bytes());
        assert_eq!(info.problems, [""; 0]);
        let fact = |key: &str| info.facts[key].as_str();
        assert_eq!(
            (fact(facts::CONFIG), info.image_revision()),
            ("fastforwarding", Some("291909"))
        );
        assert_eq!(
            (fact(facts::RELEASE), fact(facts::REVISION)),
            ("11.0-CURRENT", "r291909")
        );
        assert_eq!(fact(facts::BUILT), "Tue Jan 26 05:12:36 CET 2016");
        assert_eq!(fact(facts::START_UTC), "2016-01-28T20:08:08Z");
        assert_eq!(fact(facts::END), "Fri Sep 25 08:04:18 CEST 2015");
    }

    #[test]
    fn the_grammar_of_assignments() {
        let text = "IMAGE=\"\"\nCFG=\"forwarding\"\nPKTGEN=\"inet4\"\nUNAME=\"FreeBSD sm1 15.0-PRERELEASE FreeBSD 15.0-PRERELEASE BSDRP-AMD64 amd64\"";
        let info = Info::read(text.as_bytes());
        assert_eq!(info.facts.get(facts::IMAGE), None);
        assert_eq!(
            (
                info.facts[facts::PKTGEN].as_str(),
                info.facts[facts::RELEASE].as_str()
            ),
            ("inet4", "15.0-PRERELEASE")
        );
        assert!(!info.facts.contains_key(facts::REVISION) && info.problems.is_empty());
        let cut = Info::read(&text.as_bytes()[..70]);
        assert_eq!(cut.problems, ["cut off: the quote of UNAME is not closed"]);
    }

    #[test]
    fn empty_and_foreign_files_are_told() {
        assert_eq!(Info::read(b"").problems, ["empty"]);
        assert_eq!(
            Info::read(b"hello\nworld\n").problems,
            ["a line of unknown meaning", "nothing known in it"]
        );
    }

    #[test]
    fn both_forms() {
        for (text, expected) in [
            ("Fri Sep  8 00:32:53 CEST 2017", "2017-09-07T22:32:53Z"),
            ("Tue Jan 26 05:12:36 CET 2016", "2016-01-26T04:12:36Z"),
            (
                "February 19, 2016 at 11:16:45 PM CET",
                "2016-02-19T22:16:45Z",
            ),
            ("January 1, 2016 at 12:16:45 AM CET", "2015-12-31T23:16:45Z"),
            ("Thu Feb 29 12:00:00 UTC 2024", "2024-02-29T12:00:00Z"),
        ] {
            assert_eq!(utc(text).as_deref(), Some(expected));
        }
    }

    #[test]
    fn what_is_no_date_or_of_an_unknown_zone() {
        for text in [
            "",
            "yesterday",
            "Fri Sep 8 00:32:53 XYZ 2017",
            "Fri Sep 8 00:99:53 CET 2017",
            "Fri Sep 40 00:00:00 CET 2017",
        ] {
            assert_eq!(utc(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn days_count_one_by_one(day in 0i64..20_000) {
            let date = rfc3339(day * 86_400);
            let part = |range: std::ops::Range<usize>| date[range].parse::<i64>().unwrap();
            prop_assert_eq!(days(part(0..4), part(5..7), part(8..10)), day);
            prop_assert!(part(8..10) <= 31);
        }

        #[test]
        fn any_text_is_taken(text in "\\PC{0,60}") {
            utc(&text);
        }
    }
}
