//! Cuts bytes into lines; one that never ends is not kept beyond a bound.

/// A line's first bytes that are kept: pkt-gen's longest has some 200, its echoed command line some 1000.
const LONGEST_LINE: usize = 16 * 1024;

/// Bytes on their way to be lines.
#[derive(Debug, Clone, Default)]
pub struct Lines {
    partial: Vec<u8>,
}

impl Lines {
    /// Takes the next piece and calls `see` with each whole line, without its end.
    pub fn feed(&mut self, bytes: &[u8], mut see: impl FnMut(&[u8])) {
        let mut rest = bytes;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            if self.partial.is_empty() {
                see(cut(&rest[..end]));
            } else {
                self.keep(&rest[..end]);
                let whole = std::mem::take(&mut self.partial);
                see(cut(&whole));
            }
            rest = &rest[end + 1..];
        }
        self.keep(rest);
    }

    /// The last line, which had no end.
    pub fn end(&mut self, mut see: impl FnMut(&[u8])) {
        let partial = std::mem::take(&mut self.partial);
        if !partial.is_empty() {
            see(cut(&partial));
        }
    }

    fn keep(&mut self, bytes: &[u8]) {
        let room = LONGEST_LINE.saturating_sub(self.partial.len());
        self.partial.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }
}

/// As much of a line as is looked at, without carriage returns at its ends (trafgen begins lines with them).
fn cut(line: &[u8]) -> &[u8] {
    let line = &line[..line.len().min(LONGEST_LINE)];
    let line = line.strip_prefix(b"\r").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(pieces: &[&[u8]]) -> Vec<Vec<u8>> {
        let mut lines = Lines::default();
        let mut seen = Vec::new();
        for piece in pieces {
            lines.feed(piece, |line| seen.push(line.to_vec()));
        }
        lines.end(|line| seen.push(line.to_vec()));
        seen
    }

    #[test]
    fn pieces_make_lines() {
        assert_eq!(lines(&[b"a", b"b\n\rc\r\n", b"", b"\nd"]), [&b"ab"[..], b"c", b"", b"d"]);
    }

    #[test]
    fn an_endless_line_is_cut() {
        let long = vec![b'x'; LONGEST_LINE];
        let seen = lines(&[&long, &long, &long, b"\nend\n"]);
        assert_eq!((seen[0].len(), &seen[1][..]), (LONGEST_LINE, &b"end"[..]));
        assert_eq!(lines(&[&[&long[..], &long, b"\n"].concat()])[0].len(), LONGEST_LINE);
    }
}
