//! The longest burst without loss (RFC 2544, section 26.4; RFC 9004, section 6.2).

/// Frames of the first burst.
const FIRST: u64 = 64;

/// Binary search: doubles the length until frames are lost, so that few long bursts are sent, then halves the range between the longest
/// burst without loss and the shortest with loss. With retries it is the binary search with loss verification of ETSI's TST 009.
#[derive(Debug, Clone, Copy)]
pub struct Bursts {
    /// Frames of the longest burst.
    most: u64,
    /// The largest distance of the two lengths at the end, as a share of the longer one; at least one frame.
    width: f64,
    /// Further trials of a burst with loss before it counts as too long.
    retries: u32,
    low: u64,
    high: Option<u64>,
    /// Trials at the present length that lost frames.
    lossy: u32,
}

impl Bursts {
    /// Bursts of 1 to `most` frames.
    pub fn new(most: u64, width: f64, retries: u32) -> Bursts {
        Bursts {
            most: most.max(1),
            width,
            retries,
            low: 0,
            high: None,
            lossy: 0,
        }
    }

    /// This search from its beginning, with bursts of up to `most` frames.
    pub fn up_to(&self, most: u64) -> Bursts {
        Bursts::new(most, self.width, self.retries)
    }

    /// Frames of the next burst, the same until it is observed; `None`: the search is over.
    pub fn next(&self) -> Option<u64> {
        let Some(high) = self.high else {
            let doubled = self.low.saturating_mul(2).max(FIRST).min(self.most);
            return Some(doubled).filter(|frames| self.low < *frames);
        };
        (high - self.low > self.step()).then(|| self.low + (high - self.low) / 2)
    }

    /// The distance of lengths that ends the search, in frames.
    pub fn step(&self) -> u64 {
        ((self.high.unwrap_or(self.most) as f64 * self.width) as u64).max(1)
    }

    /// Learns whether the burst that came next lost frames.
    pub fn observe(&mut self, loses: bool) {
        let Some(frames) = self.next() else { return };
        if !loses {
            (self.low, self.lossy) = (frames, 0);
        } else if self.lossy == self.retries {
            (self.high, self.lossy) = (Some(frames), 0);
        } else {
            self.lossy += 1;
        }
    }

    /// The longest burst without loss, in frames; 0: every burst lost frames.
    pub fn longest(&self) -> u64 {
        self.low
    }

    /// Frames of the longest burst allowed.
    pub fn most(&self) -> u64 {
        self.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Searches with a given answer for each burst; the number of trials.
    fn search(bursts: &mut Bursts, loses: impl Fn(u64, u32) -> bool) -> u32 {
        let mut trials = 0;
        while let Some(frames) = bursts.next() {
            bursts.observe(loses(frames, trials));
            trials += 1;
        }
        trials
    }

    #[test]
    fn finds_the_length_that_a_queue_takes() {
        let mut bursts = Bursts::new(2_000_000, 0.005, 0);
        let trials = search(&mut bursts, |frames, _| frames > 512);
        assert!(
            (510..=512).contains(&bursts.longest()) && trials < 14,
            "{bursts:?} {trials}"
        );
        let mut bursts = Bursts::new(2_000_000, 0.0, 0);
        search(&mut bursts, |frames, _| frames > 512);
        assert_eq!(bursts.longest(), 512);
    }

    #[test]
    fn ends_at_its_limits() {
        let mut bursts = Bursts::new(1000, 0.005, 0);
        assert_eq!(
            (search(&mut bursts, |_, _| false), bursts.longest()),
            (5, 1000)
        );
        let mut bursts = Bursts::new(1000, 0.005, 0);
        search(&mut bursts, |_, _| true);
        assert_eq!(bursts.longest(), 0);
    }

    #[test]
    fn loss_is_verified() {
        // Every third trial loses a frame, whatever its length.
        let unlucky = |frames: u64, trial: u32| frames > 512 || trial % 3 == 2;
        let (mut plain, mut verified) = (Bursts::new(10_000, 0.0, 0), Bursts::new(10_000, 0.0, 1));
        search(&mut plain, unlucky);
        search(&mut verified, unlucky);
        assert!(plain.longest() < 512);
        assert_eq!(verified.longest(), 512);
    }

    proptest! {
        #[test]
        fn any_search_ends_within_its_width(most in 1u64..1 << 50, takes in 0u64..1 << 50, width in 0.0f64..0.5) {
            let mut bursts = Bursts::new(most, width, 0);
            prop_assert!(search(&mut bursts, |frames, _| frames > takes) < 110);
            let best = takes.min(most);
            prop_assert!(bursts.longest() <= best);
            prop_assert!(best - bursts.longest() <= bursts.step());
        }
    }
}
