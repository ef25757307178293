//! `--fail-if-slower`: each comparison held against the slow-down that is allowed, by its whole interval.

use crate::compare::{Change, Comparison};
use crate::experiment::Interest;
use crate::record::{Against, Compared, Summary};
use linerate_stats::Estimate;

/// Whether something is slower than it may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Slowdown {
    /// Every interval excludes a slow-down of the limit or more.
    Excluded,
    /// The trials do not decide.
    Undecided,
    /// Every interval lies beyond the limit.
    Proven,
}

/// A comparison, held against the limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// The claim that is judged: `nat is not 3 % slower than forwarding`.
    pub claim: String,
    pub slowdown: Slowdown,
    /// The knowledge, as a sentence without its point.
    pub known: String,
}

/// One estimate, held against a slow-down of at least this share. A ratio of 0.97 is a slow-down of 3 %.
pub fn slowdown(ratio: &Estimate, limit: f64) -> Slowdown {
    let most = 1.0 - limit;
    match (ratio.low, ratio.high) {
        (_, Some(high)) if high <= most && high < 1.0 => Slowdown::Proven,
        (Some(low), _) if low > most => Slowdown::Excluded,
        _ => Slowdown::Undecided,
    }
}

const LONGER: &str = "longer campaigns decide";

/// The names of two that are compared, and how a slow-down of one shows.
struct Names<'a> {
    of: &'a str,
    than: &'a str,
    /// Whether one of the two drops frames.
    drops: bool,
    /// Where the intervals do not decide: `longer campaigns decide`.
    more: &'a str,
}

impl Names<'_> {
    /// `ratios`: of the rate and, where there is one, of the rate relative to the tester. `undecided`: why they decide nothing.
    /// `none`: why there is no interval.
    fn held(&self, limit: f64, ratios: &[Estimate], undecided: Option<&str>, none: &str) -> Held {
        let Names {
            of,
            than,
            drops,
            more,
        } = self;
        let percent = (1e6 * limit).round() / 1e4;
        let each = ratios.iter().map(|ratio| slowdown(ratio, limit));
        let all = |wanted| !ratios.is_empty() && each.clone().all(|one| one == wanted);
        let slowdown = match () {
            () if undecided.is_some() => Slowdown::Undecided,
            () if all(Slowdown::Proven) => Slowdown::Proven,
            () if all(Slowdown::Excluded) => Slowdown::Excluded,
            () => Slowdown::Undecided,
        };
        let ranges: Option<Vec<String>> = ratios.iter().map(range).collect();
        let known = match (undecided, ranges.as_deref()) {
            (Some(why), _) => format!("{of} and {than} are not judged: {why}"),
            (_, None | Some([])) => {
                format!("whether {of} is {percent} % slower than {than} is undecided: {none}")
            }
            (_, Some([rate, relative @ ..])) => {
                let relative = relative.first();
                let relative =
                    relative.map_or(String::new(), |r| format!("; relative to the tester, {r}"));
                let apart = each.clone().any(|one| one == Slowdown::Proven)
                    && each.clone().any(|one| one == Slowdown::Excluded);
                let known = format!("{of} is {rate} than {than}{relative}");
                match slowdown {
                    Slowdown::Proven if *drops => format!(
                        "{of} passes less than {than} by {percent} % or more: it drops frames"
                    ),
                    Slowdown::Proven => {
                        format!(
                            "{of} is slower than {than} by {percent} % or more: {rate}{relative}"
                        )
                    }
                    Slowdown::Excluded => known,
                    Slowdown::Undecided if apart => format!(
                        "{known}: the two disagree about {percent} %; measure both in one campaign"
                    ),
                    Slowdown::Undecided => {
                        format!("{known}: {more} whether it is {percent} % slower")
                    }
                }
            }
        };
        Held {
            claim: format!("{of} is not {percent} % slower than {than}"),
            slowdown,
            known,
        }
    }
}

/// An interval in words: `between 1.0 and 5.2 % slower`.
fn range(ratio: &Estimate) -> Option<String> {
    // Without a minus before 0.
    let percent = |end: f64| {
        let percent = 100.0 * (1.0 - end);
        if percent.abs() < 0.05 { 0.0 } else { percent }
    };
    let [most, least] = [ratio.low?, ratio.high?].map(percent);
    let [less, more] = [0.0 - most, 0.0 - least];
    Some(match (least > 0.0, most > 0.0) {
        (true, _) => format!("between {least:.1} and {most:.1} % slower"),
        (false, true) => format!("between {more:.1} % faster and {most:.1} % slower"),
        (false, false) => format!("between {less:.1} and {more:.1} % faster"),
    })
}

impl Comparison {
    /// The changes that a verdict needs: that of the rate, and that of the share, if there is one.
    pub fn changes(&self) -> impl Iterator<Item = &Change> {
        std::iter::once(&self.change).chain(&self.change_of_share)
    }

    /// The comparison, held against the slow-down that is allowed. A disturbance makes rates lower, so it takes back a proven slow-down
    /// alone.
    pub fn held(&self, limit: f64) -> Held {
        let ratios: Vec<Estimate> = self.changes().map(|change| change.ratio).collect();
        let names = Names {
            of: &self.other,
            than: &self.reference,
            drops: self.handled.is_some(),
            // The interval of several campaigns a side is of their scatter, however long each is.
            more: match self.campaigns {
                true => "more campaigns a side decide",
                false => LONGER,
            },
        };
        let none = format!("too few values for an interval; {}", names.more);
        let held = |undecided| names.held(limit, &ratios, undecided, &none);
        let by_rates = held(self.undecided.as_deref());
        match self.disturbed.as_deref() {
            Some(why) if by_rates.slowdown == Slowdown::Proven => held(Some(why)),
            _ => by_rates,
        }
    }
}

/// The variants of a campaign, each held against its baseline.
pub fn of_variants(summary: &Summary, limit: f64) -> Vec<Held> {
    let name = |cell: usize| summary.rows.get(cell).map_or("", |row| &row.name);
    let none = match summary.searches.is_empty() {
        true => "too few blocks for an interval; a longer --budget decides",
        false => "searches have no interval of a ratio; `linerate bench` and `linerate run` have",
    };
    let held = |compared: &Compared| {
        let Against {
            than, ratio, cost, ..
        } = compared.against;
        let names = Names {
            of: name(compared.of),
            than: name(than),
            drops: cost.is_some(),
            more: LONGER,
        };
        Some(names.held(limit, &[ratio?], None, none))
    };
    let judged = summary.comparisons.iter();
    let judged = judged.filter(|compared| compared.why == Interest::Variants);
    judged.filter_map(held).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratio(low: f64, high: f64) -> Estimate {
        Estimate {
            median: (low + high) / 2.0,
            low: Some(low),
            high: Some(high),
            n: 8,
        }
    }

    fn held(ratios: &[Estimate]) -> Held {
        let names = Names {
            of: "new",
            than: "old",
            drops: false,
            more: LONGER,
        };
        names.held(0.03, ratios, None, "too few")
    }

    #[test]
    fn the_whole_interval_decides() {
        let of = |low, high| held(&[ratio(low, high)]).slowdown;
        // Slower, and the median beyond the limit, but not the whole interval.
        assert_eq!(of(0.94, 0.99), Slowdown::Undecided);
        assert_eq!(of(0.94, 0.97), Slowdown::Proven);
        assert_eq!(of(0.94, 0.971), Slowdown::Undecided);
        assert_eq!(of(0.9701, 0.99), Slowdown::Excluded);
        assert_eq!(of(0.97, 1.2), Slowdown::Undecided);
        assert_eq!(of(1.1, 1.2), Slowdown::Excluded);
        let none = Estimate {
            low: None,
            high: None,
            ..ratio(0.5, 0.5)
        };
        assert_eq!(held(&[none]).slowdown, Slowdown::Undecided);
        assert_eq!(held(&[]).slowdown, Slowdown::Undecided);
        // At a limit of 0 %, equal rates are not slower.
        assert_eq!(slowdown(&ratio(1.0, 1.0), 0.0), Slowdown::Undecided);
        assert_eq!(slowdown(&ratio(0.9, 0.99), 0.0), Slowdown::Proven);
    }

    #[test]
    fn the_rate_and_the_share_must_both_decide() {
        let [slower, unsure, equal] = [ratio(0.9, 0.95), ratio(0.95, 1.01), ratio(0.99, 1.01)];
        let of = |a, b| held(&[a, b]).slowdown;
        assert_eq!(of(slower, slower), Slowdown::Proven);
        assert_eq!(of(slower, unsure), Slowdown::Undecided);
        assert_eq!(of(equal, equal), Slowdown::Excluded);
        assert_eq!(of(equal, unsure), Slowdown::Undecided);
        assert_eq!(of(slower, equal), Slowdown::Undecided);
    }

    #[test]
    fn sentences_say_what_is_known() {
        let slower = held(&[ratio(0.9, 0.95)]);
        assert_eq!(slower.claim, "new is not 3 % slower than old");
        assert_eq!(
            slower.known,
            "new is slower than old by 3 % or more: between 5.0 and 10.0 % slower"
        );
        assert_eq!(
            held(&[ratio(0.948, 0.99)]).known,
            "new is between 1.0 and 5.2 % slower than old: longer campaigns decide whether it is 3 % slower"
        );
        assert_eq!(
            held(&[ratio(0.95, 1.01), ratio(0.96, 0.98)]).known,
            "new is between 1.0 % faster and 5.0 % slower than old; relative to the tester, between 2.0 and 4.0 % slower: longer campaigns decide whether it is 3 % slower"
        );
        assert!(
            held(&[ratio(0.9, 0.95), ratio(1.0, 1.01)])
                .known
                .ends_with("the two disagree about 3 %; measure both in one campaign")
        );
        let known = held(&[ratio(1.0, 1.0000001)]).known;
        assert_eq!(known, "new is between 0.0 and 0.0 % faster than old");
        assert!(held(&[]).known.ends_with("is undecided: too few"));
    }
}
