//! Receive-side accounting of one stream: what arrived, twice, out of order or too late to tell.

/// Sequences that the window holds. Words of 32 are reused whole, so a sequence is sure to be told from a
/// duplicate if it is at most `WINDOW - 32` below the highest seen.
pub const WINDOW: u64 = WORDS * BITS;

const WORDS: u64 = 8192;
const BITS: u64 = 32;

/// What a sequence number turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Observed {
    /// Above all before it.
    New,
    /// The first of its number, after a higher one: Type-P-Reordered (RFC 4737 section 3).
    Reordered,
    /// Seen before.
    Duplicate,
    /// So far below the highest that its bit is gone: new or duplicate, nobody knows.
    TooLate,
}

/// The account of one stream.
///
/// A window of [`WINDOW`] bits in 8,192 words of 32, each with the epoch of its contents: sequence `s` has
/// bit `s % 32` of word `(s / 32) % 8192`, in epoch `s / 32 / 8192`. A word is cleared when a higher epoch
/// first needs it, so that gaps cost nothing. The eBPF receiver keeps the same.
#[derive(Debug, Clone)]
pub struct StreamAccount {
    words: Vec<Word>,
    received: u64,
    unique: u64,
    duplicates: u64,
    reordered: u64,
    too_late: u64,
    highest: Option<u64>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Word {
    epoch: u32,
    bits: u32,
}

impl Default for StreamAccount {
    fn default() -> Self {
        Self::new()
    }
}

impl StreamAccount {
    /// An empty account.
    pub fn new() -> Self {
        let words = vec![Word::default(); WORDS as usize];
        StreamAccount {
            words,
            received: 0,
            unique: 0,
            duplicates: 0,
            reordered: 0,
            too_late: 0,
            highest: None,
        }
    }

    /// Counts one frame; `sequence` has 48 bits, higher ones are dropped.
    #[inline]
    pub fn observe(&mut self, sequence: u64) -> Observed {
        let sequence = sequence & crate::signature::MAX_48;
        self.received += 1;
        let number = sequence / BITS;
        let word = &mut self.words[(number % WORDS) as usize];
        let epoch = (number / WORDS) as u32;
        if word.epoch > epoch {
            self.too_late += 1;
            return Observed::TooLate;
        }
        if word.epoch < epoch {
            *word = Word { epoch, bits: 0 };
        }
        let bit = 1 << (sequence % BITS);
        if word.bits & bit != 0 {
            self.duplicates += 1;
            return Observed::Duplicate;
        }
        word.bits |= bit;
        self.unique += 1;
        if self.highest.is_some_and(|highest| sequence < highest) {
            self.reordered += 1;
            return Observed::Reordered;
        }
        self.highest = Some(sequence);
        Observed::New
    }

    /// Frames counted, all of them: unique, duplicates and too late.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Different sequence numbers.
    pub fn unique(&self) -> u64 {
        self.unique
    }

    /// Frames whose number had come before.
    pub fn duplicates(&self) -> u64 {
        self.duplicates
    }

    /// Unique frames that came after a higher number.
    pub fn reordered(&self) -> u64 {
        self.reordered
    }

    /// Frames too far behind to be told apart from duplicates; counted neither as unique nor as duplicates.
    pub fn too_late(&self) -> u64 {
        self.too_late
    }

    /// The highest sequence number, if any frame came.
    pub fn highest(&self) -> Option<u64> {
        self.highest
    }

    /// Frames lost of `sent`: those that did not come as unique. Frames that came too late count as lost
    /// here; subtract [`too_late`](Self::too_late) for the least that can have been lost.
    pub fn lost(&self, sent: u64) -> u64 {
        sent.saturating_sub(self.unique)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    #[test]
    fn counts() {
        let mut account = StreamAccount::new();
        let seen = [0, 1, 3, 2, 3, 5].map(|s| account.observe(s));
        use Observed::{Duplicate, New, Reordered};
        assert_eq!(seen, [New, New, New, Reordered, Duplicate, New]);
        assert_eq!(
            (account.received(), account.unique(), account.duplicates(), account.reordered()),
            (6, 5, 1, 1)
        );
        assert_eq!((account.highest(), account.lost(8), account.lost(3)), (Some(5), 3, 0));
    }

    #[test]
    fn too_late_is_said() {
        let mut account = StreamAccount::new();
        account.observe(WINDOW);
        assert_eq!(account.observe(31), Observed::TooLate);
        assert_eq!(account.observe(32), Observed::Reordered, "its word is not yet in use again");
        assert_eq!((account.too_late(), account.unique()), (1, 2));
        assert_eq!(account.observe(u64::MAX), Observed::New);
    }

    proptest! {
        #[test]
        fn as_a_set_within_the_window(start in 0..1u64 << 47, steps in prop::collection::vec((-130_000i64..131_000, 0u64..2), 0..400)) {
            let mut account = StreamAccount::new();
            let (mut set, mut highest, mut base) = (HashSet::new(), None, start + 131_072);
            for (offset, forward) in steps {
                let sequence = base.saturating_add_signed(offset);
                base += forward;
                let want = match (set.insert(sequence), highest) {
                    (false, _) => Observed::Duplicate,
                    (true, Some(h)) if sequence < h => Observed::Reordered,
                    _ => Observed::New,
                };
                highest = highest.max(Some(sequence));
                prop_assert_eq!(account.observe(sequence), want);
            }
            prop_assert_eq!(account.unique(), set.len() as u64);
            prop_assert_eq!(account.highest(), highest);
            prop_assert_eq!(account.received(), account.unique() + account.duplicates());
        }

        #[test]
        fn never_calls_a_duplicate_new(sequences in prop::collection::vec(0..WINDOW * 3, 0..300)) {
            let mut account = StreamAccount::new();
            let mut set = HashSet::new();
            for sequence in sequences {
                match account.observe(sequence) {
                    Observed::New | Observed::Reordered => prop_assert!(set.insert(sequence)),
                    Observed::Duplicate => prop_assert!(set.contains(&sequence)),
                    Observed::TooLate => prop_assert!(sequence + WINDOW - BITS < account.highest().unwrap()),
                }
            }
            prop_assert_eq!(account.received(), account.unique() + account.duplicates() + account.too_late());
        }
    }
}
