//! Numbers as a person reads them: as many digits as mean something, never a lost one shown as none. Lists in words.

use crate::document::{Cell, Rows};
pub use linerate_wire::units::{counted, decimals, grouped, significant};
pub use linerate_wire::words::{distinct, together};

use linerate_measure::record::{Campaign, LowLoad};
use linerate_plan::campaign::Kind;
use linerate_stats::Estimate;
use linerate_wire::words::{Joined, when};

/// Significant digits of an estimate by the width of its interval: 2 to 5, or 3 without an interval.
pub fn digits(estimate: &Estimate) -> usize {
    match estimate.relative_width() {
        w if !w.is_finite() => 3,
        w if w >= 0.5 => 2,
        w if w >= 0.01 => 3,
        w if w >= 0.001 => 4,
        _ => 5,
    }
}

/// How sure a rate is.
pub fn certainty(rate: &Estimate) -> String {
    let (scale, unit) = in_words(rate.median);
    match interval(rate, scale, digits(rate)) {
        Some(interval) => format!("95 % interval {interval}{unit}"),
        None => format!(
            "{}, too few for an interval",
            counted(rate.n, "valid trial")
        ),
    }
}

/// `1.47..1.51`, with as many decimals as the median has at `digits` significant digits; `None` without an interval.
pub fn interval(estimate: &Estimate, scale: f64, digits: usize) -> Option<String> {
    let (low, high) = (estimate.low?, estimate.high?);
    let places = decimals(estimate.median / scale, digits);
    Some(format!(
        "{:.places$}..{:.places$}",
        low / scale,
        high / scale
    ))
}

/// A number in a table with this many significant digits.
pub fn number(value: f64, digits: usize) -> Cell {
    Cell::number(value, significant(value, digits))
}

/// A number in a table with this many decimals.
pub fn fixed(value: f64, decimals: usize) -> Cell {
    Cell::number(value, format!("{value:.decimals$}"))
}

/// A number in a table with its sign and this many decimals.
pub fn signed(value: f64, decimals: usize) -> Cell {
    Cell::number(value, format!("{value:+.decimals$}"))
}

/// A count in a table: `12,345,678`.
pub fn count(n: u64) -> Cell {
    Cell::number(n as f64, grouped(n))
}

/// A share in a table, in percent.
pub fn share(share: f64) -> Cell {
    Cell::number(100.0 * share, percent(share))
}

/// `lost 12 frames of 12,000 at 50 % of its rate`.
pub fn lost_at(low: &LowLoad, noun: &str) -> String {
    format!(
        "lost {} {noun}{} of {} at {}",
        grouped(low.lost),
        when(low.lost != 1, "s"),
        grouped(low.sent),
        of_rate(&[low])
    )
}

/// `10 % and 50 % of its rate`.
pub fn of_rate(loads: &[&LowLoad]) -> String {
    let shares = loads
        .iter()
        .map(|low| format!("{:.0} %", 100.0 * low.share));
    let shares: Vec<String> = shares.collect();
    let listed = match shares.as_slice() {
        [most @ .., last] if !most.is_empty() => format!("{} and {last}", most.join(", ")),
        one => one.concat(),
    };
    format!("{listed} of its rate")
}

/// A rate in a table's unit, by its divisor. One of less than a thousandth of that names a unit of its own: `1.490`, `99.99 pps`.
pub fn rate(fps: f64, scale: f64, digits: usize) -> Cell {
    let (own, unit) = unit_of(fps, scale);
    Cell::number(fps / scale, significant(fps / own, digits) + unit)
}

/// The interval of a rate: `1.47..1.51`, `99.98..99.99 pps`.
pub fn rate_interval(estimate: &Estimate, scale: f64, digits: usize) -> Cell {
    let (own, unit) = unit_of(estimate.median, scale);
    match (estimate.low, estimate.high, interval(estimate, own, digits)) {
        (Some(low), Some(high), Some(text)) => Cell::range(low / scale, high / scale, text + unit),
        _ => "too few".into(),
    }
}

fn unit_of(fps: f64, scale: f64) -> (f64, &'static str) {
    match fps {
        v if v <= 0.0 || v / scale >= 0.001 => (scale, ""),
        v if v >= 1e3 => (1e3, " kpps"),
        _ => (1.0, " pps"),
    }
}

/// `64 B`, `IMIX`.
pub fn lengths(kind: &Kind) -> String {
    format!("{}{}", kind.size, when(kind.size.pattern.len() == 1, " B"))
}

/// A share as a percentage without its sign. Only 0 reads 0, and only the whole reads 100.
pub fn percent(share: f64) -> String {
    let value = 100.0 * share;
    match value {
        v if !v.is_finite() => "?".into(),
        v if v <= 0.0 => "0".into(),
        v if v < 0.0001 => "<0.0001".into(),
        v if v < 1.0 => significant(v, 2),
        v if v < 99.95 => significant(v, 3),
        v if v < 100.0 => ">99.9".into(),
        v => format!("{v:.0}"),
    }
}

/// A rate in words: divisor and its name.
pub fn in_words(fps: f64) -> (f64, &'static str) {
    match fps.abs() {
        v if v >= 999.5e6 => (1e9, " billion"),
        v if v >= 999.5e3 => (1e6, " million"),
        v if v >= 999.5 => (1e3, " thousand"),
        _ => (1.0, ""),
    }
}

/// `1.49 million`, `850 thousand`, `743`.
pub fn words(fps: f64, digits: usize) -> String {
    let (scale, name) = in_words(fps);
    format!("{}{name}", significant(fps / scale, digits))
}

/// The unit that a table's rates are given in.
#[derive(Debug, Clone, Copy)]
pub struct RateUnit {
    /// Frames/s in one of it.
    pub scale: f64,
    pub name: &'static str,
}

impl RateUnit {
    /// Mpps if the largest of these rates has one or more, or none is known.
    pub fn of(rates: impl IntoIterator<Item = f64>) -> RateUnit {
        let (scale, name) = match rates.into_iter().fold(0.0, f64::max) {
            v if v >= 1e6 || v <= 0.0 => (1e6, "Mpps"),
            v if v >= 1e3 => (1e3, "kpps"),
            _ => (1.0, "pps"),
        };
        RateUnit { scale, name }
    }

    /// Of what a campaign counts: frames, connections or requests.
    pub fn of_campaign(campaign: &Campaign, rates: impl IntoIterator<Item = f64>) -> RateUnit {
        let RateUnit { scale, name } = RateUnit::of(rates);
        let name = match (campaign.noun(), name) {
            ("request", "Mpps") => "M req/s",
            ("request", "kpps") => "k req/s",
            ("request", _) => "req/s",
            ("connection", "Mpps") => "M conn/s",
            ("connection", "kpps") => "k conn/s",
            ("connection", _) => "conn/s",
            _ => name,
        };
        RateUnit { scale, name }
    }

    /// With the digits that its interval deserves; `None` without trials.
    pub fn median(self, rate: &Estimate) -> Option<Cell> {
        (rate.n > 0).then(|| self::rate(rate.median, self.scale, digits(rate)))
    }

    pub fn interval(self, rate: &Estimate) -> Cell {
        rate_interval(rate, self.scale, digits(rate))
    }

    /// With three digits and without the unit, for sentences.
    pub fn words(self, fps: f64) -> String {
        rate(fps, self.scale, 3).text().into()
    }
}

impl<R> Rows<R> {
    /// A column of rates with four digits.
    pub fn rate<F: Into<Option<f64>>>(
        self,
        head: &str,
        unit: RateUnit,
        fps: impl Fn(&R) -> F,
    ) -> Self {
        self.column(head, unit.name, |row| {
            fps(row).into().map(|fps| rate(fps, unit.scale, 4))
        })
    }
}

/// A rate with a unit that suits it: `1.490 Mpps`, `99.99 pps`.
pub fn rate_with_unit(fps: f64) -> String {
    match fps {
        v if v >= 1e6 => format!("{} Mpps", significant(v / 1e6, 4)),
        v if v >= 1e3 => format!("{} kpps", significant(v / 1e3, 4)),
        v => format!("{} pps", significant(v, 4)),
    }
}

/// A rate with the unit of its campaign, frames, connections or requests: `1.490 Mpps`, `153.8 k conn/s`.
pub fn rate_of(campaign: &Campaign, rate: f64) -> String {
    let text = rate_with_unit(rate);
    let unit = match campaign.noun() {
        "request" => "req/s",
        "connection" => "conn/s",
        _ => return text,
    };
    format!("{} {unit}", text.trim_end_matches("pps").trim_end())
}

/// Nanoseconds with a unit that suits them: `671 ns`, `1.05 us`, `2.30 ms`.
pub fn time(ns: f64) -> String {
    let (scale, unit) = match ns {
        v if v < 999.5 => (1.0, "ns"),
        v if v < 999.5e3 => (1e3, "us"),
        v if v < 999.5e6 => (1e6, "ms"),
        _ => (1e9, "s"),
    };
    format!("{} {unit}", significant(ns / scale, 3))
}

/// A time in a table.
pub fn span(ns: f64) -> Cell {
    Cell::number(ns, time(ns))
}

/// `30.1 s`, `12 min 5 s`, `2 h 0 min`.
pub fn seconds(s: f64) -> String {
    match s {
        v if v < 120.0 => format!("{v:.1} s"),
        v if v < 7200.0 => format!("{:.0} min {:.0} s", (v / 60.0).floor(), (v % 60.0).floor()),
        v => format!(
            "{:.0} h {:.0} min",
            (v / 3600.0).floor(),
            (v % 3600.0 / 60.0).floor()
        ),
    }
}

/// Bytes with a binary unit: `12.3 MiB`.
pub fn bytes(n: u64) -> String {
    let (bits, unit) = match n {
        n if n >= 1 << 30 => (30, "GiB"),
        n if n >= 1 << 20 => (20, "MiB"),
        _ => (10, "KiB"),
    };
    format!("{} {unit}", significant(n as f64 / f64::from(1 << bits), 3))
}

/// The first of these texts, and how many more there are.
pub fn some(texts: impl IntoIterator<Item = String>, most: usize, between: &str) -> String {
    let mut texts = texts.into_iter();
    let first = texts.by_ref().take(most).joined(between);
    match texts.count() {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

/// The first three of these names, and how many more there are.
pub fn listed(names: &[String]) -> String {
    some(names.iter().cloned(), 3, "; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_that_mean_something() {
        for (value, n, text) in [
            (1.4899, 3, "1.49"),
            (9.9996, 4, "10.00"),
            (671.23, 3, "671"),
            (10_049.0, 3, "10049"),
            (0.000_123_4, 2, "0.00012"),
            (0.0, 3, "0"),
            (f64::NAN, 3, "?"),
            (-4.12, 2, "-4.1"),
        ] {
            assert_eq!(significant(value, n), text);
        }
        assert_eq!(words(1.4899e6, 3), "1.49 million");
        assert_eq!(words(999_900.0, 3), "1.00 million");
        assert_eq!(words(743.0, 3), "743");
        assert_eq!(grouped(12_345_678u64), "12,345,678");
        assert_eq!(
            (grouped(0u64), grouped(999u64), grouped(1000u64)),
            ("0".into(), "999".into(), "1,000".into())
        );
    }

    #[test]
    fn little_is_not_nothing_and_nearly_all_is_not_all() {
        let percents = [0.0, 1e-9, 0.000_012, 0.034_5, 0.999_99, 1.0, 1.006].map(percent);
        assert_eq!(
            percents,
            ["0", "<0.0001", "0.0012", "3.45", ">99.9", "100", "101"]
        );
    }

    #[test]
    fn an_interval_has_the_medians_decimals() {
        let e = Estimate {
            median: 1.49e6,
            low: Some(1.468e6),
            high: Some(1.512e6),
            n: 9,
        };
        assert_eq!(interval(&e, 1e6, digits(&e)).unwrap(), "1.47..1.51");
        assert_eq!(interval(&Estimate { low: None, ..e }, 1e6, 3), None);
    }

    #[test]
    fn a_rate_far_below_its_tables_unit_has_its_own() {
        let rates =
            [1.4899e6, 2240.0, 999.0, 99.991, 0.0].map(|fps| rate(fps, 1e6, 4).text().to_string());
        assert_eq!(rates, ["1.490", "0.002240", "999.0 pps", "99.99 pps", "0"]);
        let e = Estimate {
            median: 99.991,
            low: Some(99.98),
            high: Some(100.01),
            n: 9,
        };
        assert_eq!(rate_interval(&e, 1e6, 4).text(), "99.98..100.01 pps");
        assert_eq!(
            [counted(1, "trial"), counted(0, "trial")],
            ["1 trial", "0 trials"]
        );
    }

    #[test]
    fn times_and_sizes() {
        assert_eq!(
            [time(671.4), time(1049.0), time(2.3e6)],
            ["671 ns", "1.05 us", "2.30 ms"]
        );
        assert_eq!(
            [seconds(30.12), seconds(725.0), seconds(7260.0)],
            ["30.1 s", "12 min 5 s", "2 h 1 min"]
        );
        assert_eq!(bytes(12_900_000), "12.3 MiB");
    }
}
