//! Two outputs of a tool as one, line by line: a piece of one never ends up within a line of the other.

use crate::session::Stream;
use std::mem::take;

/// A line that is longer is handed on in pieces.
const LONGEST: usize = 64 * 1024;

/// Incomplete last lines of both streams.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    partial: [Vec<u8>; 2],
}

impl Streams {
    /// Takes the next piece of one; gives the lines that it completes.
    pub fn take(&mut self, stream: Stream, bytes: &[u8]) -> Vec<u8> {
        let partial = &mut self.partial[stream as usize];
        partial.extend_from_slice(bytes);
        let whole = match memchr::memrchr(b'\n', partial) {
            Some(end) => end + 1,
            None if partial.len() > LONGEST => partial.len(),
            None => 0,
        };
        let rest = partial.split_off(whole);
        std::mem::replace(partial, rest)
    }

    /// The rest of both streams, at their end.
    pub fn finish(&mut self) -> Vec<u8> {
        let [output, error] = &mut self.partial;
        [take(error), take(output)]
            .into_iter()
            .filter(|last| !last.is_empty())
            .collect::<Vec<_>>()
            .join(&b'\n')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_whole_whatever_comes_between() {
        let mut streams = Streams::default();
        let mut all = Vec::new();
        for (stream, piece) in [
            (Stream::Output, "to"),
            (Stream::Error, "501.2 main_"),
            (Stream::Output, "tals\nla"),
            (Stream::Error, "thread\ncut"),
            (Stream::Output, "st"),
        ] {
            all.extend(streams.take(stream, piece.as_bytes()));
        }
        all.extend(streams.finish());
        let text = String::from_utf8(all).unwrap();
        assert_eq!(text, "totals\n501.2 main_thread\ncut\nlast");
        assert_eq!(streams.finish().len(), 0);
    }

    #[test]
    fn a_line_without_an_end_is_not_kept() {
        let mut streams = Streams::default();
        let kept: usize = (0..100).map(|_| streams.take(Stream::Output, &[b'x'; 10_000]).len()).sum();
        assert!(kept > 900_000);
    }
}
