//! Arguments of `linerate compare`.

use super::Printed;
use clap::Args;
use linerate_stats::ministat::Confidence;
use std::str::FromStr;

/// What to compare, and how.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linerate compare linerate-results/X               every variant of a campaign with its baseline
  linerate compare X:forwarding X:nft-stateful      two variants of a campaign, paired by block
  linerate compare before after                     two campaigns: each variant with its like
  linerate compare before.txt after.txt             plain files, a rate on each line
  linerate compare before after --fail-if-slower 3% for CI

After a campaign's folder, :VARIANT selects a part of it: the variant's name, or more of the
slot's title (\"X:forwarding IPv6 84\"), or the number of the slot (X:1).
All numbers are rates: more is better.

Exit status: 0 compared; 1 an error; 2 bad arguments; 3 with --fail-if-slower: proven
slower by that much.")]
pub struct Compare {
    /// Campaigns' folders, FOLDER:VARIANT, or files; the first is the reference
    #[arg(required = true, value_name = "WHAT")]
    pub what: Vec<String>,

    /// Confidence of the intervals, in percent: 80, 90, 95, 98, 99 or 99.5
    #[arg(short, long, value_name = "PERCENT", default_value = "95")]
    pub confidence: Confidence,

    /// Exit with status 3 if anything is proven slower than the reference by at least this much: 3%
    #[arg(long, value_name = "SHARE")]
    pub fail_if_slower: Option<Share>,

    #[command(flatten)]
    pub printed: Printed,
}

/// A share that was written as a percentage, 0..1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Share(pub f64);

impl FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let percent = text.strip_suffix('%').map(str::trim).and_then(|t| t.parse::<f64>().ok());
        match percent.filter(|p| (0.0..100.0).contains(p)) {
            Some(percent) => Ok(Share(percent / 100.0)),
            None => Err(format!("'{text}' is not a share from 0% to 100%: write 3%")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_percentages() {
        assert_eq!("3%".parse(), Ok(Share(0.03)));
        assert_eq!("0.5 %".parse(), Ok(Share(0.005)));
        for wrong in ["3", "", "%", "-1%", "100%", "nan%", "x%"] {
            assert!(wrong.parse::<Share>().is_err(), "{wrong}");
        }
    }
}
