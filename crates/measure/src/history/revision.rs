//! In which order results were made: source revisions, releases, times.

use crate::calendar;
use serde::Serialize;
use std::fmt;

/// Subversion revisions of FreeBSD that can stand in a name: from 2009 to its last one.
const SUBVERSION: std::ops::RangeInclusive<u32> = 180_000..=368_999;

/// Which count of commits a number is of. FreeBSD moved from Subversion to git in December 2020.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Counter {
    /// Revisions of a Subversion repository: r284739.
    Subversion,
    /// Commits on the first-parent line of a git branch: n311215.
    Git,
}

/// A revision of the source that a kernel was built from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Revision {
    pub counter: Counter,
    /// The number.
    pub number: u32,
}

impl Revision {
    /// Reads `276669`, `r284739`, `n311215`, `c276570`, `MAIN_n268154`, each perhaps with a patch behind it (`320657D11476`,
    /// `311848iflib`), which is returned as well. Powers of two and round numbers are sizes, not revisions.
    pub fn parse(word: &str) -> Option<(Self, &str)> {
        let word = word.rsplit('_').next()?;
        let digits = word.trim_start_matches(['r', 'n', 'c']);
        let prefix = &word[..word.len() - digits.len()];
        let end = digits
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(digits.len());
        let (number, patch) = digits.split_at(end);
        if number.len() != 6 {
            return None;
        }
        let number: u32 = number.parse().ok()?;
        // A kernel built from a tree with local changes has an M there.
        let patch = if patch == "M" { "" } else { patch };
        let size = number.is_power_of_two() || number.is_multiple_of(10_000);
        let counter = match prefix {
            "n" | "c" => Counter::Git,
            "r" => Counter::Subversion,
            "" if SUBVERSION.contains(&number) && !size => Counter::Subversion,
            _ => return None,
        };
        Some((Revision { counter, number }, patch))
    }

    /// The first revision among the words of a name, these separated by dots and dashes.
    pub fn find(name: &str) -> Option<Self> {
        name.split(['.', '-'])
            .find_map(|word| Some(Self::parse(word)?.0))
    }

    /// How many commits lie between two revisions of one counter.
    pub fn since(&self, earlier: &Self) -> Option<u32> {
        if self.counter == earlier.counter {
            self.number.checked_sub(earlier.number)
        } else {
            None
        }
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prefix = match self.counter {
            Counter::Subversion => 'r',
            Counter::Git => 'n',
        };
        write!(f, "{prefix}{}", self.number)
    }
}

/// A version of FreeBSD: the branch that will become version N is older than N.0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Release {
    /// 11 of 11.1.
    pub major: u32,
    /// On a stable branch or a release, rather than the development branch of this major version.
    pub stable: bool,
    /// 1 of 11.1; `None` where only a branch is named, and on the development branch.
    pub minor: Option<u32>,
}

impl Release {
    /// Reads the release in uname's output: `11.1-RELEASE-p1`, `12.0-CURRENT`, `11.0-STABLE`.
    pub fn of_uname(text: &str) -> Option<Self> {
        let (version, branch) = text.split_once('-')?;
        let (major, minor) = version.split_once('.')?;
        let stable = branch != "CURRENT";
        Some(Release {
            major: major.parse().ok()?,
            stable,
            minor: if stable { minor.parse().ok() } else { None },
        })
    }

    /// Reads names of the archive's folders: `fbsd11.1-yandex`, `fbsd12-head.r320657`, `fbsd11-stable.r312663`, `fbsd16-n311215`.
    pub fn of_label(label: &str) -> Option<Self> {
        let text = label.strip_prefix("fbsd").unwrap_or(label);
        let end = text
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(text.len());
        let (major, rest) = text.split_at(end);
        let major = major.parse().ok().filter(|m| (1..100).contains(m))?;
        let minor = rest
            .strip_prefix('.')
            .map(|r| r.split(|c: char| !c.is_ascii_digit()).next().unwrap_or(""));
        let minor = minor.filter(|m| m.len() <= 2).and_then(|m| m.parse().ok());
        Some(Release {
            major,
            stable: minor.is_some() || rest.starts_with("-stable"),
            minor,
        })
    }
}

/// Where a point stands in its time line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Place {
    /// How it is shown: `r284739`, `fbsd11.1`, `2026-11-21T05:39:01Z`.
    pub name: String,
    /// The version, where points of several versions are compared.
    pub release: Option<Release>,
    /// The source revision, if known.
    pub revision: Option<Revision>,
}

impl Place {
    /// A moment: RFC 3339 in UTC, which sorts by time.
    pub fn at_time(time: &str) -> Self {
        Place {
            name: time.into(),
            release: None,
            revision: None,
        }
    }

    /// A revision of one branch.
    pub fn at_revision(revision: Revision) -> Self {
        Place {
            name: revision.to_string(),
            release: None,
            revision: Some(revision),
        }
    }
}

impl PartialOrd for Place {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Place {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        // A name only decides where nothing else does: digits in names do not sort.
        (self.release, &self.revision, &self.name).cmp(&(
            other.release,
            &other.revision,
            &other.name,
        ))
    }
}

/// Days since 1970, of a time such as `2026-01-31T23:59:59Z`; `None` for anything else.
pub fn days(time: &str) -> Option<f64> {
    let number = |range: std::ops::Range<usize>| time.get(range)?.parse::<u32>().ok();
    let separators = [(4, "-"), (7, "-"), (10, "T"), (13, ":"), (16, ":")];
    if !separators
        .iter()
        .all(|(at, mark)| time.get(*at..at + 1) == Some(mark))
    {
        return None;
    }
    let day = calendar::days(
        number(0..4)?.into(),
        number(5..7)?.into(),
        number(8..10)?.into(),
    );
    let seconds = 3600 * number(11..13)? + 60 * number(14..16)? + number(17..19)?;
    Some(day as f64 + f64::from(seconds) / 86_400.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(word: &str) -> Option<(String, &str)> {
        Revision::parse(word).map(|(revision, patch)| (revision.to_string(), patch))
    }

    #[test]
    fn revisions_in_names() {
        assert_eq!(parsed("276669"), Some(("r276669".into(), "")));
        assert_eq!(parsed("r322489M"), Some(("r322489".into(), "")));
        assert_eq!(parsed("320657D11476"), Some(("r320657".into(), "D11476")));
        assert_eq!(parsed("MAIN_n268154"), Some(("n268154".into(), "")));
        assert_eq!(parsed("c276570"), Some(("n276570".into(), "")));
        // Sizes, counts, years, masks, hashes, lengths.
        for word in [
            "262144",
            "200000",
            "131072",
            "2015",
            "351",
            "f1e5c15",
            "1518",
            "",
            "_",
            "forwarding",
            "1000000",
        ] {
            assert_eq!(parsed(word), None, "{word}");
        }
        assert_eq!(
            Revision::find("fbsd13-r368606.D27401v4")
                .unwrap()
                .to_string(),
            "r368606"
        );
        assert_eq!(Revision::find("fbsd11.2-BSDRP.1.90"), None);
    }

    #[test]
    fn releases_of_labels_and_of_uname() {
        let release = |major, stable, minor| {
            Some(Release {
                major,
                stable,
                minor,
            })
        };
        assert_eq!(
            Release::of_label("fbsd11.1-yandex"),
            release(11, true, Some(1))
        );
        assert_eq!(
            Release::of_label("fbsd12-head.r320657.D11476"),
            release(12, false, None)
        );
        assert_eq!(
            Release::of_label("fbsd11-stable.r312663"),
            release(11, true, None)
        );
        assert_eq!(
            Release::of_label("fbsd16-n311215"),
            release(16, false, None)
        );
        assert_eq!(
            Release::of_label("13-r354862-polling"),
            release(13, false, None)
        );
        assert_eq!(Release::of_label("fbsd.2017"), None);
        assert_eq!(Release::of_label("fbsd111vsr322996"), None);
        assert_eq!(
            Release::of_uname("11.1-RELEASE-p1"),
            release(11, true, Some(1))
        );
        assert_eq!(Release::of_uname("12.0-CURRENT"), release(12, false, None));
        assert_eq!(Release::of_uname("nothing"), None);
    }

    #[test]
    fn the_order_of_places() {
        let at = |label: &str, revision: &str| Place {
            name: label.into(),
            release: Release::of_label(label),
            revision: Revision::find(revision),
        };
        let mut places = [
            at("fbsd16-n311215", "n311215"),
            at("fbsd12-head.r320657", "r320657"),
            at("fbsd13-c255632", "c255632"),
            at("fbsd11.1", "r322489"),
            at("fbsd10.2", "r287147"),
            at("fbsd13-r368606", "r368606"),
            at("fbsd11-head.r287531", "r287531"),
            at("fbsd11.0", "r306450"),
        ];
        places.sort();
        let names: Vec<&str> = places.iter().map(|p| p.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "fbsd10.2",
                "fbsd11-head.r287531",
                "fbsd11.0",
                "fbsd11.1",
                "fbsd12-head.r320657",
                "fbsd13-r368606",
                "fbsd13-c255632",
                "fbsd16-n311215"
            ]
        );
        assert!(
            Place::at_revision(Revision::find("99999.276669").unwrap())
                < Place::at_revision(Revision::find("293120").unwrap())
        );
        assert!(Place::at_time("2026-01-31T23:59:59Z") < Place::at_time("2026-02-01T00:00:00Z"));
    }

    #[test]
    fn days_between_times() {
        let between = |a: &str, b: &str| days(b).unwrap() - days(a).unwrap();
        assert_eq!(between("2026-02-28T00:00:00Z", "2026-03-01T00:00:00Z"), 1.0);
        assert_eq!(between("2024-02-28T00:00:00Z", "2024-03-01T12:00:00Z"), 2.5);
        assert_eq!(
            between("1970-01-01T00:00:00Z", "2026-01-01T00:00:00Z"),
            20454.0
        );
        assert!(
            (between("2025-12-31T23:59:30Z", "2026-01-01T00:00:00Z") - 0.5 / 1440.0).abs() < 1e-8
        );
        assert!(
            days("r284739").is_none()
                && days("2026-1-01T00:00:00Z").is_none()
                && days("\u{e4}2026-01-01").is_none()
        );
    }
}
