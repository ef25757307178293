//! Distributions of values as DTrace's quantize(), lquantize() and llquantize() print them.

use serde::Serialize;

/// Ranges of a distribution, and distributions of an output, at most. Further ones are left out.
const MOST: usize = 4096;
/// Lines of a key at most, the last ones.
const KEY_LINES: usize = 8;

/// A distribution.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Distribution {
    /// Key in the aggregation: the lines above the distribution.
    pub name: String,
    /// Ranges, in the order of their values.
    pub ranges: Vec<Range>,
}

/// A range of values: from the one that is named to below that of the next range.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Range {
    /// As it was printed: `1024`, `< 0`, `>= 500`.
    pub value: String,
    /// The least value; `None` for everything below the next range.
    pub least: Option<i64>,
    /// How many values there were.
    pub count: u64,
}

impl Distribution {
    /// How many values there were.
    pub fn count(&self) -> u64 {
        self.ranges
            .iter()
            .fold(0, |sum, range| sum.saturating_add(range.count))
    }

    /// The value below which the share `quantile` (0..=1) of all values lies: the least one of the range after theirs. `None` without
    /// such a one.
    pub fn below(&self, quantile: f64) -> Option<i64> {
        let rank = ((quantile * self.count() as f64).ceil() as u64).max(1);
        let mut seen = 0u64;
        let at = self.ranges.iter().position(|range| {
            seen = seen.saturating_add(range.count);
            seen >= rank
        });
        self.ranges.get(at? + 1)?.least
    }
}

/// Reads distributions line by line.
#[derive(Default)]
pub struct Reader {
    key: Vec<String>,
    open: Option<Distribution>,
    pub found: Vec<Distribution>,
}

impl Reader {
    /// The next line, without its end.
    pub fn line(&mut self, line: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let Some(open) = &mut self.open {
            if let Some(range) = range(&words) {
                if open.ranges.len() < MOST {
                    open.ranges.push(range);
                }
                return;
            }
            self.end();
        }
        match words.as_slice() {
            ["value", .., "count"] if line.contains("Distribution") => {
                let name = std::mem::take(&mut self.key).join("; ");
                self.open = Some(Distribution {
                    name,
                    ranges: Vec::new(),
                });
            }
            [] => self.key.clear(),
            _ => {
                if self.key.len() == KEY_LINES {
                    self.key.remove(0);
                }
                self.key.push(words.join(" "));
            }
        }
    }

    /// The output ends.
    pub fn end(&mut self) {
        let whole = self
            .open
            .take()
            .filter(|open| !open.ranges.is_empty() && self.found.len() < MOST);
        self.found.extend(whole);
    }
}

/// `1024 |@@@@   1414505`; the bar may have been lost on its way through a document.
fn range(words: &[&str]) -> Option<Range> {
    let (sign, rest) = match words {
        [sign @ ("<" | ">="), rest @ ..] => (Some(*sign), rest),
        rest => (None, rest),
    };
    let [value, bar @ .., count] = rest else {
        return None;
    };
    if bar
        .iter()
        .any(|part| part.contains(|c: char| c.is_alphanumeric()))
    {
        return None;
    }
    let (number, count) = (value.parse().ok()?, count.parse().ok()?);
    let printed = sign.map_or(value.to_string(), |sign| format!("{sign} {value}"));
    Some(Range {
        value: printed,
        least: (sign != Some("<")).then_some(number),
        count,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<Distribution> {
        let mut reader = Reader::default();
        text.lines().for_each(|line| reader.line(line));
        reader.end();
        reader.found
    }

    #[test]
    fn quantize() {
        let text = "
  ether_input to ether_output
           value  ------------- Distribution ------------- count
             512 |                                         0
            1024 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@  1414505
            2048 |@                                        35478
            4096 |                                         481
            8192 |                                         0

  em0                                                        udp
           value  ------------- Distribution ------------- count
             < 0 |                                         1
               0 |@@@@@@@@@@@@@@@@@@@@                     10
           >= 10 |@@@@@@@@@@@@@@@@@@@@                     10
";
        let found = read(text);
        let names: Vec<(&str, u64)> = found.iter().map(|d| (d.name.as_str(), d.count())).collect();
        assert_eq!(
            names,
            [("ether_input to ether_output", 1_450_464), ("em0 udp", 21)]
        );
        assert_eq!(
            [0.5, 0.99, 0.9999].map(|q| found[0].below(q)),
            [Some(2048), Some(4096), Some(8192)]
        );
        assert_eq!(
            (
                found[1].ranges[0].least,
                found[1].below(0.5),
                found[1].below(1.0)
            ),
            (None, Some(10), None)
        );
        assert_eq!(found[1].ranges[2].value, ">= 10");
    }

    #[test]
    fn a_table_of_a_paper() {
        let found = read(
            "value Distribution\tcount\n512\t0\n1024 @@@@@@@@@@@@@@@@@\t1414505\n2048 @\t35478\nFigure 7",
        );
        assert_eq!(
            (found.len(), found[0].count(), found[0].below(0.5)),
            (1, 1_449_983, Some(2048))
        );
    }

    #[test]
    fn no_distribution() {
        for text in [
            "",
            "value",
            "value Distribution count",
            "value Distribution count\n1 2x\n",
            "1024 |@ 7",
        ] {
            assert_eq!(read(text), [], "{text}");
        }
        let long =
            "value Distribution count\n".to_string() + &"1 |@ 18446744073709551615\n".repeat(5000);
        let found = read(&long);
        assert_eq!(
            (found[0].ranges.len(), found[0].count(), found[0].below(0.5)),
            (MOST, u64::MAX, Some(1))
        );
    }
}
