//! The generations of ministat's arithmetic.

use std::str::FromStr;

/// A generation of ministat's arithmetic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Era {
    /// To 2015, and Debian's package 20150715: the upper middle point is the median, the variance is summed in one pass.
    Old,
    /// Late 2015 to early 2016: the median is the mean of the two middle points.
    Mid,
    /// FreeBSD 11: in addition, the relative error takes into account that the reference is uncertain as well.
    Fb11,
    /// FreeBSD 12 and later: in addition, the variance is summed in two passes, over the sorted points.
    #[default]
    New,
}

impl Era {
    /// All of them, the oldest first.
    pub const ALL: [Era; 4] = [Era::Old, Era::Mid, Era::Fb11, Era::New];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Era::Old => "old",
            Era::Mid => "mid",
            Era::Fb11 => "fb11",
            Era::New => "new",
        }
    }
}

impl std::fmt::Display for Era {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Era {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const ERAS: &str =
            "old (to 2015, Debian), mid (2015-16), fb11 (FreeBSD 11) or new (FreeBSD 12 and later)";
        let found = Era::ALL.into_iter().find(|e| e.name() == text);
        found.ok_or_else(|| format!("no generation of ministat is called {text:?}: {ERAS}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_and_others_refused_with_a_list() {
        for era in Era::ALL {
            assert_eq!(era.name().parse(), Ok(era));
        }
        let error = "2015".parse::<Era>().unwrap_err().to_string();
        assert!(error.contains("2015") && Era::ALL.iter().all(|era| error.contains(era.name())), "{error}");
        assert_eq!(Era::default().to_string(), "new");
    }
}
