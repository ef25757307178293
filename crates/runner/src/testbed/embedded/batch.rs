//! The tournament that chooses the number of frames that a generator hands over at once.

use linerate_stats::median;

/// The sizes. A veth's ring has 256 entries (VETH_RING_SIZE in drivers/net/veth.c): a batch of half of it still fits where the
/// other end is late.
pub const CANDIDATES: [u32; 4] = [16, 32, 64, 128];

/// Each candidate has a probe in each round, interleaved: a program that disturbs a probe disturbs no whole candidate.
pub const ROUNDS: usize = 5;

/// Load of a probe: all of them take half a second.
pub const PROBE_NS: u64 = 20_000_000;

/// Chosen where no other is clearly faster: the same number in nearly all campaigns, because the tester's rate depends on it.
const USUAL: usize = 2;

/// The size of [`USUAL`].
pub const USUAL_BATCH: u32 = CANDIDATES[USUAL];

/// A candidate loses a round against another if it has less than this part of its rate.
const GOOD: f64 = 0.96;

/// The index of the chosen candidate. `rounds`: frames/s of each candidate in each round, where its probe had a rate.
///
/// A candidate loses against another only if it loses every round in which both have a rate: one probe without a disturbance saves it.
pub fn choose(rounds: &[[Option<f64>; CANDIDATES.len()]]) -> usize {
    let beats = |a: usize, b: usize| {
        let both = rounds.iter().filter_map(|round| round[a].zip(round[b]));
        let lost: Vec<bool> = both.map(|(a, b)| b < GOOD * a).collect();
        2 * lost.len() > rounds.len() && lost.iter().all(|lost| *lost)
    };
    let faster: Vec<usize> = (0..CANDIDATES.len())
        .filter(|other| beats(*other, USUAL))
        .collect();
    let unbeaten = |at: &usize| !faster.iter().any(|other| beats(*other, *at));
    faster.iter().copied().find(unbeaten).unwrap_or(USUAL)
}

/// The median rate of each candidate, for the campaign's notes.
pub fn medians(rounds: &[[Option<f64>; CANDIDATES.len()]]) -> String {
    let of = |at: usize| {
        let rates: Vec<f64> = rounds.iter().filter_map(|round| round[at]).collect();
        let rate = median(&rates).unwrap_or(0.0);
        format!("{}: {:.3} Mpps", CANDIDATES[at], rate / 1e6)
    };
    let all: Vec<String> = (0..CANDIDATES.len()).map(of).collect();
    all.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(rounds: &[[f64; 4]]) -> u32 {
        let rounds: Vec<_> = rounds.iter().map(|round| round.map(Some)).collect();
        CANDIDATES[choose(&rounds)]
    }

    #[test]
    fn disturbed_probes_do_not_change_the_batch() {
        let quiet = [2.6, 2.65, 2.7, 2.7];
        let disturbed = [2.6, 2.65, 2.3, 2.7];
        assert_eq!(chosen(&[quiet; ROUNDS]), 64);
        // Most of its probes, which is also its median.
        for clean in 0..ROUNDS {
            let mut rounds = [disturbed; ROUNDS];
            rounds[clean] = quiet;
            assert_eq!(chosen(&rounds), 64);
        }
        assert_eq!(medians(&[]).matches("0.000 Mpps").count(), 4);
    }

    #[test]
    fn a_batch_that_is_slower_in_each_round_loses() {
        assert_eq!(chosen(&[[2.6, 2.65, 2.3, 2.2]; ROUNDS]), 16);
        assert_eq!(chosen(&[[2.0, 2.1, 2.4, 2.7]; ROUNDS]), 128);
        // Among the faster ones, too, one probe is not enough: 32 won a round against 128.
        let mut rounds = [[2.0, 2.5, 2.4, 2.9]; ROUNDS];
        rounds[1] = [2.0, 2.6, 2.4, 2.6];
        assert_eq!(chosen(&rounds), 128);
        // Without rates, nothing is known.
        assert_eq!(choose(&[[None; 4]; ROUNDS]), USUAL);
        let few = [Some(3.0), None, Some(1.0), None];
        let mut rounds = [[None; 4]; ROUNDS];
        rounds[0] = few;
        assert_eq!(choose(&rounds), USUAL);
    }
}
