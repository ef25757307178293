//! Printed figures: their value, and the number of digits that can be judged.

use super::State;

/// A printed number with its unit's factor.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Printed {
    /// The value: 3.74e6.
    pub value: f64,
    /// Value of one unit of the last digit: 1e4.
    pub step: f64,
}

impl Printed {
    /// `3.74 Mpps`, `726 Kpps`, `14.65Mpps`; `None` for other texts.
    pub fn rate(text: &str) -> Option<Printed> {
        let text = text.trim();
        let end = text
            .find(|c: char| !(c.is_ascii_digit() || c == '.'))
            .unwrap_or(text.len());
        let factor = match text[end..].trim().to_ascii_lowercase().as_str() {
            "mpps" => 1e6,
            "kpps" => 1e3,
            "pps" => 1.0,
            _ => return None,
        };
        Printed::number(&text[..end]).map(|p| Printed {
            value: p.value * factor,
            step: p.step * factor,
        })
    }

    /// A plain number, also with an exponent: `-6.13154`, `1.13671e+06`.
    pub fn number(text: &str) -> Option<Printed> {
        let value: f64 = text.parse().ok().filter(|v: &f64| v.is_finite())?;
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let decimals = mantissa.split_once('.').map_or(0, |(_, d)| d.len()) as i32;
        let step = 10f64.powi(exponent.parse::<i32>().ok()?.checked_sub(decimals)?);
        Some(Printed { value, step })
    }

    /// `11.66% +/- 8.15%`, also without the second sign of percent: the difference and its error.
    pub fn difference(text: &str) -> Option<[Printed; 2]> {
        let (difference, error) = text.split_once("+/-")?;
        let percent = |t: &str| Printed::number(t.trim().trim_end_matches('%').trim());
        Some([percent(difference)?, percent(error)?])
    }

    /// Whether a computed value may be printed like this: rounded to the same number of digits, or with digits cut off instead of
    /// rounding up.
    pub fn fits(&self, computed: f64) -> State {
        // Printed values lie on a grid of their last digit; binary fractions miss it slightly.
        let steps = computed / self.step;
        let printed = (self.value / self.step).round();
        match () {
            () if (steps - printed).abs() <= 0.5 + 1e-6 => State::Agrees,
            () if steps.trunc() == printed => State::Truncated,
            () => State::WrongInPrint,
        }
    }
}

/// Whether words say that no difference is proven.
pub fn says_no_difference(text: &str) -> bool {
    text.trim_start()
        .to_ascii_lowercase()
        .starts_with("no diff")
}

/// A printed block of ministat, taken apart.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PrintedBlock {
    /// The lines, without their frame.
    pub lines: Vec<String>,
    /// Whether the plot is there, complete.
    pub plot: bool,
    /// Characters between the edges of the plot.
    pub width: usize,
    /// Names of the sets, if they are printed.
    pub names: Vec<String>,
    /// Rows of figures: N, Min, Max, Median, Avg, Stddev.
    pub rows: Vec<[String; 6]>,
    /// For each further set, the lines below its row.
    pub differences: Vec<PrintedDifference>,
}

/// ministat's comparison of a set with the first.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PrintedDifference {
    /// Whether a difference is proven.
    pub proven: bool,
    /// Difference, its error, the same in percent, and the pooled deviation; those that are printed.
    pub figures: Vec<String>,
}

impl PrintedBlock {
    /// Takes a block apart. Whatever is no part of one is passed over.
    pub fn read(text: &str) -> Self {
        let mut block = PrintedBlock::default();
        let mut edges = 0;
        for line in text
            .lines()
            .map(str::trim_end)
            .filter(|l| !l.trim().is_empty())
        {
            block.lines.push(line.to_string());
            let words: Vec<&str> = line.split_whitespace().collect();
            if line.starts_with("+--") && line.ends_with("-+") {
                edges += 1;
                block.width = line.len() - 2;
            } else if let Some(row) = figures_row(&words) {
                block.rows.push(row);
                if block.rows.len() > 1 {
                    block.differences.push(PrintedDifference::default());
                }
            } else if edges == 0 && is_symbol(words[0]) && block.rows.is_empty() {
                block.names.push(line[1..].trim().to_string());
            } else if let Some(difference) = block.differences.last_mut() {
                difference.read(&words);
            }
        }
        block.plot = edges == 2 && block.names.len() == block.rows.len();
        block
    }
}

impl PrintedDifference {
    fn read(&mut self, words: &[&str]) {
        match words {
            ["Difference", ..] => self.proven = true,
            [value, "+/-", error] if self.proven => {
                self.figures
                    .extend([value, error].map(|f| f.trim_end_matches('%').to_string()));
            }
            ["(Student's", "t,", "pooled", "s", "=", pooled] => {
                self.figures.push(pooled.trim_end_matches(')').to_string());
            }
            _ => {}
        }
    }
}

fn is_symbol(word: &str) -> bool {
    matches!(word, "x" | "+" | "*" | "%" | "#" | "@" | "O")
}

fn figures_row(words: &[&str]) -> Option<[String; 6]> {
    let [symbol, figures @ ..] = words else {
        return None;
    };
    let numbers = figures.iter().all(|f| f.parse::<f64>().is_ok());
    let row: [&str; 6] = figures.try_into().ok()?;
    (is_symbol(symbol) && numbers).then(|| row.map(String::from))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rates_have_a_value_and_a_last_digit() {
        assert_eq!(
            Printed::rate("726 Kpps"),
            Some(Printed {
                value: 726e3,
                step: 1e3
            })
        );
        assert_eq!(Printed::rate("14.65Mpps").map(|p| p.value), Some(14.65e6));
        assert_eq!(Printed::rate("0 Mpps").map(|p| p.step), Some(1e6));
        for none in ["", "Mpps", "3.74", "3.7.4 Mpps", "x Mpps", "3 Gbit"] {
            assert_eq!(Printed::rate(none), None, "{none}");
        }
        assert_eq!(Printed::number("1.13671e+06").map(|p| p.step), Some(10.0));
    }

    #[test]
    fn rounding_is_told_from_cutting_off() {
        let printed = Printed::rate("4.82 Mpps").unwrap();
        assert_eq!(printed.fits(4_820_400.0), State::Agrees);
        assert_eq!(printed.fits(4_829_581.5), State::Truncated);
        assert_eq!(printed.fits(4_830_000.0), State::WrongInPrint);
        assert_eq!(
            Printed::rate("14.8 Mpps").unwrap().fits(14_799_082.0),
            State::Agrees
        );
        assert_eq!(
            Printed::number("-19.08").unwrap().fits(-19.0895),
            State::Truncated
        );
        assert_eq!(Printed::rate("0 Mpps").unwrap().fits(0.0), State::Agrees);
    }

    #[test]
    fn a_block_is_taken_apart() {
        let block = PrintedBlock::read(
            "x a b\n+ c\n+----------+\n|x        +|\n+----------+\n    N Min Max Median Avg Stddev\nx   5  1 2 3 4 5\n+   5  2 3 4 5 6\nDifference at 95.0% confidence\n\t1.5 +/- 0.5\n\t10% +/- 2%\n\t(Student's t, pooled s = 0.7)\n",
        );
        assert_eq!(
            (block.names.len(), block.rows.len(), block.width, block.plot),
            (2, 2, 10, true)
        );
        assert!(block.differences[0].proven);
        assert_eq!(
            block.differences[0].figures,
            ["1.5", "0.5", "10", "2", "0.7"]
        );
        assert_eq!(PrintedBlock::read("").rows.len(), 0);
    }

    proptest! {
        #[test]
        fn what_was_rounded_fits(value in 1.0f64..1e8, decimals in 0usize..4) {
            let text = format!("{:.decimals$} Mpps", value / 1e6);
            prop_assert_eq!(Printed::rate(&text).unwrap().fits(value), State::Agrees);
        }

        #[test]
        fn any_text_is_no_panic(text in ".{0,200}") {
            let _ = (Printed::rate(&text), Printed::difference(&text), PrintedBlock::read(&text));
        }
    }
}
