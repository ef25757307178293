//! Classifies sequence numbers of a stream: new, duplicate, out of order or too late to decide.

/// Sequences that the window holds. Words of 32 are reused whole, so a sequence is certainly distinguished from a duplicate if it
/// is at most `WINDOW - 32` below the highest seen.
pub const WINDOW: u64 = WORDS * BITS;

const WORDS: u64 = 8192;
const BITS: u64 = 32;

/// Classification of a sequence number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Observed {
    /// Above all before it.
    New,
    /// The first of its number, after a higher one: Type-P-Reordered (RFC 4737 section 3).
    Reordered,
    /// Seen before.
    Duplicate,
    /// Too far below the highest to have a bit in the window: new or duplicate, which is unknown.
    TooLate,
}

/// The sequence numbers of one stream that have arrived.
///
/// A window of [`WINDOW`] bits in 8,192 words of 32, each with the epoch of its contents: sequence `s` has
/// bit `s % 32` of word `(s / 32) % 8192`, in epoch `s / 32 / 8192`. A word is cleared when a higher epoch
/// first needs it, so that gaps cost nothing. The eBPF receiver keeps the same.
#[derive(Debug, Clone)]
pub struct SequenceWindow {
    words: Vec<Word>,
    highest: Option<u64>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Word {
    epoch: u32,
    bits: u32,
}

impl Default for SequenceWindow {
    fn default() -> Self {
        SequenceWindow {
            words: vec![Word::default(); WORDS as usize],
            highest: None,
        }
    }
}

impl SequenceWindow {
    /// Takes the sequence number of a frame; it has 48 bits, higher ones are dropped.
    #[inline]
    pub fn observe(&mut self, sequence: u64) -> Observed {
        let sequence = sequence & crate::signature::MAX_48;
        let number = sequence / BITS;
        let word = &mut self.words[(number % WORDS) as usize];
        let epoch = (number / WORDS) as u32;
        if word.epoch > epoch {
            return Observed::TooLate;
        }
        if word.epoch < epoch {
            *word = Word { epoch, bits: 0 };
        }
        let bit = 1 << (sequence % BITS);
        if word.bits & bit != 0 {
            return Observed::Duplicate;
        }
        word.bits |= bit;
        if self.highest.is_some_and(|highest| sequence < highest) {
            return Observed::Reordered;
        }
        self.highest = Some(sequence);
        Observed::New
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    #[test]
    fn counts() {
        let mut window = SequenceWindow::default();
        let seen = [0, 1, 3, 2, 3, 5].map(|s| window.observe(s));
        use Observed::{Duplicate, New, Reordered};
        assert_eq!(seen, [New, New, New, Reordered, Duplicate, New]);
        assert_eq!(window.highest, Some(5));
    }

    #[test]
    fn too_late_is_said() {
        let mut window = SequenceWindow::default();
        window.observe(WINDOW);
        assert_eq!(window.observe(31), Observed::TooLate);
        assert_eq!(
            window.observe(32),
            Observed::Reordered,
            "its word is not yet in use again"
        );
        assert_eq!(window.observe(u64::MAX), Observed::New);
    }

    proptest! {
        #[test]
        fn as_a_set_within_the_window(start in 0..1u64 << 47, steps in prop::collection::vec((-130_000i64..131_000, 0u64..2), 0..400)) {
            let mut window = SequenceWindow::default();
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
                prop_assert_eq!(window.observe(sequence), want);
            }
            prop_assert_eq!(window.highest, highest);
        }

        #[test]
        fn never_calls_a_duplicate_new(sequences in prop::collection::vec(0..WINDOW * 3, 0..300)) {
            let mut window = SequenceWindow::default();
            let mut set = HashSet::new();
            for sequence in sequences {
                match window.observe(sequence) {
                    Observed::New | Observed::Reordered => prop_assert!(set.insert(sequence)),
                    Observed::Duplicate => prop_assert!(set.contains(&sequence)),
                    Observed::TooLate => prop_assert!(sequence + WINDOW - BITS < window.highest.unwrap()),
                }
            }
        }
    }
}
