//! Cuts a stream of bytes into lines of limited length.

use super::LONGEST;

/// A line that is longer than any message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a line of more than {LONGEST} bytes")]
pub struct TooLong;

/// The end of a stream that has not become a line yet.
#[derive(Debug, Default)]
pub struct Lines {
    begun: Vec<u8>,
    dead: bool,
}

impl Lines {
    /// Takes bytes and hands on each line that they end, without its end.
    ///
    /// # Errors
    /// A line is too long: nothing after it makes sense, now or later.
    pub fn take(&mut self, mut bytes: &[u8], mut each: impl FnMut(&[u8])) -> Result<(), TooLong> {
        while let Some(end) = memchr::memchr(b'\n', bytes).filter(|_| !self.dead) {
            if self.begun.len() + end > LONGEST {
                break;
            }
            if self.begun.is_empty() {
                each(without_return(&bytes[..end]));
            } else {
                self.begun.extend_from_slice(&bytes[..end]);
                each(without_return(&self.begun));
                self.begun.clear();
            }
            bytes = &bytes[end + 1..];
        }
        if self.dead || self.begun.len() + bytes.len() > LONGEST {
            *self = Lines { begun: Vec::new(), dead: true };
            return Err(TooLong);
        }
        self.begun.extend_from_slice(bytes);
        Ok(())
    }
}

/// Terminals (ssh -t) end lines with both.
fn without_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn lines_are_the_same_however_they_arrive(text in "[a-c\n]{0,60}", cut in 1usize..7) {
            let (mut lines, mut found) = (Lines::default(), Vec::new());
            for piece in text.as_bytes().chunks(cut) {
                lines.take(piece, |line| found.push(String::from_utf8(line.to_vec()).unwrap())).unwrap();
            }
            let whole = text.rsplit_once('\n').map_or(Vec::new(), |(whole, _)| whole.split('\n').collect());
            prop_assert_eq!(found, whole);
        }
    }

    #[test]
    fn a_flood_without_end_is_refused_and_not_kept() {
        let mut lines = Lines::default();
        let mib = vec![b'x'; 1 << 20];
        let taken = (0..100).take_while(|_| lines.take(&mib, |_| panic!("no line ended")).is_ok()).count();
        assert_eq!(taken, LONGEST >> 20);
        assert!(lines.begun.capacity() == 0);
        assert_eq!(lines.take(b"\n{}\n", |_| panic!("it is dead")), Err(TooLong));
    }

    #[test]
    fn a_long_line_that_ends_in_the_same_piece_is_refused() {
        let mut bytes = vec![b'x'; LONGEST + 1];
        bytes.push(b'\n');
        assert_eq!(Lines::default().take(&bytes, |_| panic!("too long")), Err(TooLong));
    }
}
