//! The arithmetic of forwarding: line rates, mixes of lengths, buses, state tables, queues, windows, trials.
//!
//! Each calculator is a function from numbers to a [`Calculation`], which has the results with their units, the formula, and its
//! source. The functions beside it give the bare figure to other crates. Frame lengths count the FCS; times are nanoseconds, rates
//! frames/s or bit/s of a named layer, shares 0..1.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod bus;
pub mod ethernet;
pub mod harvest;
pub mod queues;
pub mod rss;
pub mod states;
pub mod tcp;
pub mod trials;

use linerate_wire::units::{grouped, significant};
use serde::{Serialize, Serializer};
use std::fmt;

/// A paper that several formulas come from.
pub const PAPER_2018: &str = "\"Tuning FreeBSD for routing and firewalling\" (2018)";
/// Another one.
pub const PAPER_2015: &str =
    "\"Measure Twice, Code Once: Network Performance Analysis for FreeBSD\" (2015)";
/// A guide that several formulas come from.
pub const GUIDE: &str = "\"Network Tuning and Performance\" (calomel.org)";

/// Why there is no result: the number that is impossible, and the numbers that are possible.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CalcError(String);

/// A calculation, or why there is none.
pub type Result<T = Calculation> = std::result::Result<T, CalcError>;

impl CalcError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        CalcError(message.into())
    }
}

impl From<linerate_wire::WireError> for CalcError {
    fn from(error: linerate_wire::WireError) -> Self {
        CalcError(error.to_string())
    }
}

/// The units of results, which are always whole units: bit/s, not Mbit/s.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Frames a second.
    Frames,
    /// Bits a second.
    Bits,
    /// Bytes a second.
    ByteRate,
    /// Bytes.
    Bytes,
    /// Nanoseconds.
    Time,
    /// Hertz.
    Hertz,
    /// Transfers a second of a bus.
    Transfers,
    /// A share, 0..1.
    Share,
    /// A number of things.
    Count,
}

impl Unit {
    /// Name in JSON and CSV.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Frames => "frames/s",
            Unit::Bits => "bit/s",
            Unit::ByteRate => "B/s",
            Unit::Bytes => "B",
            Unit::Time => "ns",
            Unit::Hertz => "Hz",
            Unit::Transfers => "T/s",
            Unit::Share => "share",
            Unit::Count => "",
        }
    }

    /// A value for people: four digits, a prefix and a unit, as `14.88 Mpps`, `2.5 GiB`, `67.2 ns`.
    pub fn show(self, value: f64) -> String {
        const SI: [(f64, &str); 5] = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, "")];
        let scaled = |steps: &[(f64, &str)], unit: &str| {
            // 999,990 to four digits is a million.
            let fits = |(scale, _): &&(f64, &str)| value.abs() >= scale * 0.99995;
            let (scale, prefix) = steps.iter().find(fits).unwrap_or(&steps[steps.len() - 1]);
            format!("{} {prefix}{unit}", short(value / scale))
        };
        match self {
            Unit::Frames => scaled(&SI, "pps"),
            Unit::Bits => scaled(&SI, "bit/s"),
            Unit::ByteRate => scaled(&SI, "B/s"),
            Unit::Hertz => scaled(&SI, "Hz"),
            Unit::Transfers => scaled(&SI, "T/s"),
            Unit::Time => scaled(&[(1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns")], ""),
            Unit::Bytes if value < 10_240.0 => format!("{} B", short(value)),
            Unit::Bytes => {
                let steps = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
                scaled(&steps.map(|(bits, name)| (2f64.powi(bits), name)), "")
            }
            Unit::Share => format!("{} %", short(100.0 * value)),
            Unit::Count
                if (value.fract() == 0.0 && value >= 0.0 || value >= 1e3) && value < 1e18 =>
            {
                grouped(value.round() as u64)
            }
            Unit::Count => short(value),
        }
    }
}

impl Serialize for Unit {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// Four digits without the zeros that say nothing.
fn short(value: f64) -> String {
    let text = significant(value, 4);
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').into()
    } else {
        text
    }
}

/// A number with its unit, or a text.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Amount {
    /// A number.
    Number {
        /// In whole units.
        value: f64,
        /// Unit of the number.
        unit: Unit,
    },
    /// A text, such as a setting's line.
    Text {
        /// The text.
        text: String,
    },
}

impl Amount {
    /// A number of this unit.
    pub fn number(value: f64, unit: Unit) -> Amount {
        Amount::Number { value, unit }
    }

    /// A text.
    pub fn text(text: impl Into<String>) -> Amount {
        Amount::Text { text: text.into() }
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Amount::Number { value, unit } => f.write_str(&unit.show(*value)),
            Amount::Text { text } => f.write_str(text),
        }
    }
}

/// A row of a table, behind its name if it has one.
fn amounts(name: Option<&str>, numbers: &[(f64, Unit)]) -> Vec<Amount> {
    let numbers = numbers
        .iter()
        .map(|(value, unit)| Amount::number(*value, *unit));
    name.map(Amount::text).into_iter().chain(numbers).collect()
}

/// An amount with its name.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Quantity {
    /// Name of the quantity.
    pub name: &'static str,
    /// How much.
    #[serde(flatten)]
    pub amount: Amount,
}

/// Amounts side by side.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Grid {
    /// The names of the columns.
    pub columns: Vec<&'static str>,
    /// As many amounts as there are columns.
    pub rows: Vec<Vec<Amount>>,
}

/// A calculation: its question, its answer, and how the one follows from the other.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Calculation {
    /// The calculator's name in words.
    pub title: &'static str,
    /// The answer in a sentence.
    pub answer: String,
    /// Numbers that the results come from.
    pub given: Vec<Quantity>,
    /// All results.
    pub results: Vec<Quantity>,
    /// Results for other numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub table: Option<Grid>,
    /// How the results follow, one equation a line.
    pub formula: Vec<&'static str>,
    /// Documents that have the formula or its constants.
    pub source: Vec<String>,
    /// Facts that limit how far the results can be trusted.
    pub notes: Vec<String>,
}

impl Calculation {
    fn new(title: &'static str) -> Calculation {
        Calculation {
            title,
            ..Calculation::default()
        }
    }

    fn given(mut self, name: &'static str, value: impl Into<f64>, unit: Unit) -> Self {
        self.given.push(Quantity {
            name,
            amount: Amount::number(value.into(), unit),
        });
        self
    }

    fn given_text(mut self, name: &'static str, text: impl Into<String>) -> Self {
        self.given.push(Quantity {
            name,
            amount: Amount::text(text),
        });
        self
    }

    fn result(mut self, name: &'static str, value: impl Into<f64>, unit: Unit) -> Self {
        self.results.push(Quantity {
            name,
            amount: Amount::number(value.into(), unit),
        });
        self
    }

    fn result_text(mut self, name: &'static str, text: impl Into<String>) -> Self {
        self.results.push(Quantity {
            name,
            amount: Amount::text(text),
        });
        self
    }

    fn formula(mut self, lines: &[&'static str]) -> Self {
        self.formula.extend(lines);
        self
    }

    fn source(mut self, document: impl Into<String>) -> Self {
        self.source.push(document.into());
        self
    }

    fn note(mut self, text: impl Into<String>) -> Self {
        self.notes.push(text.into());
        self
    }

    fn answer(mut self, text: impl Into<String>) -> Self {
        self.answer = text.into();
        self
    }

    fn table(mut self, columns: &[&'static str], rows: Vec<Vec<Amount>>) -> Self {
        self.table = Some(Grid {
            columns: columns.to_vec(),
            rows,
        });
        self
    }

    /// Rows of results: those of the first are the calculation's own, and several are a table.
    fn rows(mut self, columns: &[&'static str], rows: Vec<Vec<Amount>>) -> Self {
        let own = columns.iter().zip(rows.first().into_iter().flatten());
        let mut own = own.map(|(name, amount)| Quantity {
            name,
            amount: amount.clone(),
        });
        self.given.extend(own.next());
        self.results.extend(own);
        if rows.len() > 1 {
            self.table(columns, rows)
        } else {
            self
        }
    }

    /// The number of a result; `None` for a text, and for a name that is not there.
    pub fn number(&self, name: &str) -> Option<f64> {
        self.results
            .iter()
            .find(|result| result.name == name)
            .and_then(|result| match result.amount {
                Amount::Number { value, .. } => Some(value),
                Amount::Text { .. } => None,
            })
    }
}

/// A number in its bounds, both included.
///
/// # Errors
/// `value` is outside of them, or no number.
fn within(what: &str, value: f64, least: f64, most: f64, unit: Unit) -> Result<f64> {
    if (least..=most).contains(&value) {
        return Ok(value);
    }
    let shown = if value.is_finite() {
        unit.show(value)
    } else {
        value.to_string()
    };
    let (least, most) = (unit.show(least), unit.show(most));
    Err(CalcError::new(format!(
        "{what} of {shown} is impossible: give a value from {least} to {most}"
    )))
}

/// A link's speed, from 1 kbit/s to 1 Pbit/s.
fn link_speed(bits: f64) -> Result<f64> {
    within("a link speed", bits, 1e3, 1e15, Unit::Bits)
}

/// A rate of frames, from one in 1,000 s to a million million.
fn frame_rate(fps: f64) -> Result<f64> {
    within("a rate", fps, 0.001, 1e12, Unit::Frames)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_read_as_people_write_them() {
        for (unit, value, text) in [
            (Unit::Frames, 14_880_952.4, "14.88 Mpps"),
            (Unit::Frames, 999_999.0, "1 Mpps"),
            (Unit::Bits, 1e10, "10 Gbit/s"),
            (Unit::Bytes, 64.0, "64 B"),
            (Unit::Bytes, 2_684_354_560.0, "2.5 GiB"),
            (Unit::Time, 67.2, "67.2 ns"),
            (Unit::Time, 1.5e6, "1.5 ms"),
            (Unit::Share, 0.0715, "7.15 %"),
            (Unit::Count, 33_554_432.0, "33,554,432"),
            (Unit::Count, 0.5, "0.5"),
            (Unit::Count, 6442.95, "6,443"),
            (Unit::ByteRate, 984.615e6, "984.6 MB/s"),
        ] {
            assert_eq!(unit.show(value), text);
        }
    }

    #[test]
    fn impossible_numbers_are_named_with_the_possible_ones() {
        let said = link_speed(f64::NAN).unwrap_err().to_string();
        assert_eq!(
            said,
            "a link speed of NaN is impossible: give a value from 1 kbit/s to 1000 Tbit/s"
        );
        for bad in [0.0, -1.0, f64::INFINITY] {
            assert!(link_speed(bad).is_err() && frame_rate(bad).is_err());
        }
    }
}
