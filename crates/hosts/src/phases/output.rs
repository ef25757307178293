//! The output of a step, kept within bounds: its beginning, its end, and how much is missing between them.

use std::collections::VecDeque;

/// The output of a command. One that writes a gigabyte leaves no more than the bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    most_head: usize,
    most_tail: usize,
    total: u64,
}

impl Output {
    /// No output yet; keeps `most` bytes of later output: the first half and the last.
    pub fn new(most: usize) -> Self {
        let most_head = most.div_ceil(2);
        Output { head: Vec::new(), tail: VecDeque::new(), most_head, most_tail: most - most_head, total: 0 }
    }

    /// Takes the next piece.
    pub fn push(&mut self, bytes: &[u8]) {
        self.total = self.total.saturating_add(bytes.len() as u64);
        let (first, rest) = bytes.split_at(bytes.len().min(self.most_head - self.head.len()));
        self.head.extend_from_slice(first);
        let rest = &rest[rest.len().saturating_sub(self.most_tail)..];
        let over = (self.tail.len() + rest.len()).saturating_sub(self.most_tail);
        self.tail.drain(..over);
        self.tail.extend(rest);
    }

    /// Bytes that the command wrote.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Bytes that were not kept. They are missing between the two halves.
    pub fn missing(&self) -> u64 {
        self.total - (self.head.len() + self.tail.len()) as u64
    }

    /// The bytes that were kept; a line in the middle gives the number of missing ones.
    pub fn bytes(&self) -> Vec<u8> {
        let mut all = self.head.clone();
        if self.missing() > 0 {
            all.extend_from_slice(format!("\n[... {} bytes are missing ...]\n", self.missing()).as_bytes());
        }
        let (a, b) = self.tail.as_slices();
        all.extend_from_slice(a);
        all.extend_from_slice(b);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_flood_leaves_its_beginning_and_its_end() {
        let mut output = Output::new(10);
        output.push(b"begin");
        for _ in 0..1000 {
            output.push(b"flood");
        }
        output.push(b"e n d");
        assert_eq!((output.total(), output.missing()), (5010, 5000));
        assert_eq!(output.bytes(), b"begin\n[... 5000 bytes are missing ...]\ne n d");
    }

    proptest! {
        #[test]
        fn what_fits_is_kept_whole_and_the_rest_is_counted(
            most in 0usize..40,
            parts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..30), 0..8),
        ) {
            let mut output = Output::new(most);
            parts.iter().for_each(|part| output.push(part));
            let all = parts.concat();
            prop_assert_eq!(output.total(), all.len() as u64);
            prop_assert_eq!(output.missing(), all.len().saturating_sub(most) as u64);
            let bytes = output.bytes();
            prop_assert!(bytes.starts_with(&all[..all.len().min(most.div_ceil(2))]));
            prop_assert!(bytes.ends_with(&all[all.len() - all.len().min(most / 2)..]));
            if all.len() <= most {
                prop_assert_eq!(bytes, all);
            }
        }
    }
}
