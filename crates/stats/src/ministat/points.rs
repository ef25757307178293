//! Points out of text: one column of lines, as ministat reads them, and fast.

use super::number::{number, plain_decimal};

/// The longest accepted line, in bytes: a file with longer lines is not a table of figures.
pub const MAX_LINE: usize = 1 << 20;

/// Where in a line the points are.
#[derive(Debug, Clone)]
pub struct Columns {
    column: usize,
    delimiters: [bool; 256],
    /// The first column between blanks: lines of a number and nothing else need no looking for columns.
    plain: bool,
}

impl Columns {
    /// The points of a column, counted from 1, among columns that are separated by any number of any of these bytes.
    pub fn new(column: usize, delimiters: &str) -> Self {
        let mut is_delimiter = [false; 256];
        delimiters
            .bytes()
            .for_each(|byte| is_delimiter[usize::from(byte)] = true);
        let number = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-._#\n".contains(byte);
        let plain = column <= 1 && !delimiters.bytes().any(|byte| number(&byte));
        Columns {
            column: column.max(1),
            delimiters: is_delimiter,
            plain,
        }
    }

    /// The word in the column: none in a line that is shorter or where a comment begins before. A word that begins with `#`
    /// is a comment, up to the end of the line.
    fn word<'a>(&self, line: &'a [u8]) -> Option<&'a [u8]> {
        let mut rest = line;
        for column in 1.. {
            let start = rest
                .iter()
                .position(|byte| !self.delimiters[usize::from(*byte)])?;
            rest = &rest[start..];
            if rest[0] == b'#' {
                return None;
            }
            let end = rest
                .iter()
                .position(|byte| self.delimiters[usize::from(*byte)]);
            let (word, behind) = rest.split_at(end.unwrap_or(rest.len()));
            if column == self.column {
                return Some(word);
            }
            rest = behind;
        }
        None
    }
}

impl Default for Columns {
    /// The first column between blanks and tabs.
    fn default() -> Self {
        Columns::new(1, " \t")
    }
}

/// Why a line gives no point.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct PointsError {
    /// The line, counted from 1.
    pub line: u64,
    /// The fault of the line.
    pub problem: String,
}

impl PointsError {
    fn too_long(line: u64) -> Self {
        let problem = format!("longer than {MAX_LINE} bytes: this is not a file of numbers");
        PointsError { line, problem }
    }
}

/// Reads points out of text that comes in pieces of any length.
#[derive(Debug, Default)]
pub struct PointReader {
    columns: Columns,
    lines: u64,
    /// The beginning of a line whose end has not come yet.
    begun: Vec<u8>,
    points: Vec<f64>,
}

impl PointReader {
    /// A reader of these columns.
    pub fn new(columns: Columns) -> Self {
        PointReader {
            columns,
            ..PointReader::default()
        }
    }

    /// Reads on.
    ///
    /// # Errors
    /// A line that ends in this piece has no number where one should be, or is too long.
    pub fn feed(&mut self, mut bytes: &[u8]) -> Result<(), PointsError> {
        if !self.begun.is_empty() {
            let Some(end) = memchr::memchr(b'\n', bytes) else {
                return self.begin(bytes);
            };
            self.begin(&bytes[..end])?;
            let line = std::mem::take(&mut self.begun);
            self.line(&line)?;
            self.begun = line;
            self.begun.clear();
            bytes = &bytes[end + 1..];
        }
        while !bytes.is_empty() {
            if self.columns.plain {
                bytes = self.plain_lines(bytes);
            }
            let Some(end) = memchr::memchr(b'\n', bytes) else {
                return self.begin(bytes);
            };
            self.line(&bytes[..end])?;
            bytes = &bytes[end + 1..];
        }
        Ok(())
    }

    /// The points, when everything has been read.
    ///
    /// # Errors
    /// A last line without an end has no number where one should be.
    pub fn finish(mut self) -> Result<Vec<f64>, PointsError> {
        let last = std::mem::take(&mut self.begun);
        if !last.is_empty() {
            self.line(&last)?;
        }
        Ok(self.points)
    }

    /// Reads lines of a plain decimal number and nothing else; returns the bytes behind the last of them.
    fn plain_lines<'a>(&mut self, mut bytes: &'a [u8]) -> &'a [u8] {
        while let Some((point, rest)) = plain_decimal(bytes) {
            let ([b'\n', rest @ ..] | [b'\r', b'\n', rest @ ..]) = rest else {
                break;
            };
            self.points.push(point);
            self.lines += 1;
            bytes = rest;
        }
        bytes
    }

    fn begin(&mut self, bytes: &[u8]) -> Result<(), PointsError> {
        if self.begun.len() + bytes.len() > MAX_LINE {
            return Err(PointsError::too_long(self.lines + 1));
        }
        self.begun.extend_from_slice(bytes);
        Ok(())
    }

    /// Reads a line without its end.
    fn line(&mut self, line: &[u8]) -> Result<(), PointsError> {
        self.lines += 1;
        if line.len() > MAX_LINE {
            return Err(PointsError::too_long(self.lines));
        }
        // As C's isspace: carriage returns of other systems go as well.
        let blank = |byte: &u8| byte.is_ascii_whitespace() || *byte == 0x0b;
        let length = line
            .iter()
            .rposition(|byte| !blank(byte))
            .map_or(0, |last| last + 1);
        let Some(word) = self.columns.word(&line[..length]) else {
            return Ok(());
        };
        let point = number(word).map_err(|why| {
            let problem = if word.contains(&0) {
                "a zero byte: this is no text file".into()
            } else {
                format!(
                    "{:?} {why}",
                    String::from_utf8_lossy(&word[..word.len().min(40)])
                )
            };
            PointsError {
                line: self.lines,
                problem,
            }
        })?;
        self.points.push(point);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read_in_pieces(
        columns: &Columns,
        text: &[u8],
        piece: usize,
    ) -> Result<Vec<f64>, PointsError> {
        let mut reader = PointReader::new(columns.clone());
        text.chunks(piece.max(1))
            .try_for_each(|piece| reader.feed(piece))?;
        reader.finish()
    }

    fn read(text: &str) -> Result<Vec<f64>, String> {
        read_in_pieces(&Columns::default(), text.as_bytes(), 1 << 20).map_err(|e| e.to_string())
    }

    #[test]
    fn lines_are_read_as_ministat_reads_them() {
        assert_eq!(
            read("1\n2 \n3 # 4\n  # 5\n\n8").unwrap(),
            [1.0, 2.0, 3.0, 8.0]
        );
        assert_eq!(read("1\r\n2\t\r\n\u{b}3\u{c}\n").unwrap(), [1.0, 2.0, 3.0]);
        assert_eq!(
            read(".5\n5.\n+.5e1\n0x.8p1\n-0\n 7 x\n").unwrap(),
            [0.5, 5.0, 5.0, 1.0, 0.0, 7.0]
        );
    }

    #[test]
    fn columns_are_separated_by_any_number_of_delimiters() {
        let read = |column, delimiters, text: &str| {
            read_in_pieces(&Columns::new(column, delimiters), text.as_bytes(), 7).unwrap()
        };
        assert_eq!(read(2, " \t", "1 # 4\n2 5 # 6\n3\t \t6\n4\n\n"), [5.0, 6.0]);
        assert_eq!(read(2, ",;", "1,,5;2\n;3,4\n"), [5.0, 4.0]);
        assert_eq!(read(2, "#", "1#2\n#1#6\n"), [2.0, 6.0]);
        assert_eq!(read(1, "5", "152\n53\n"), [1.0, 3.0]);
    }

    #[test]
    fn what_is_no_point_is_named_with_its_line() {
        assert_eq!(
            read("1\n\n# x\nabc 2\n").unwrap_err(),
            "line 4: \"abc\" is not a number"
        );
        assert_eq!(
            read("1\r 2\n").unwrap_err(),
            "line 1: \"1\\r\" is not a number"
        );
        assert!(
            read("1\nNaN\n")
                .unwrap_err()
                .starts_with("line 2: \"NaN\" is no measured value")
        );
        assert!(
            read("-inf")
                .unwrap_err()
                .starts_with("line 1: \"-inf\" is no measured value")
        );
        assert!(
            read("1\n2\n1e309")
                .unwrap_err()
                .starts_with("line 3: \"1e309\" is too large")
        );
        assert!(
            read("1\n2\u{0}3\n")
                .unwrap_err()
                .starts_with("line 2: a zero byte")
        );
        let long = "1 ".repeat(MAX_LINE);
        for piece in [4096, usize::MAX] {
            let error = read_in_pieces(&Columns::default(), long.as_bytes(), piece).unwrap_err();
            assert_eq!(error, PointsError::too_long(1));
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200), piece in 1usize..30) {
            let whole = read_in_pieces(&Columns::default(), &bytes, usize::MAX);
            prop_assert_eq!(read_in_pieces(&Columns::default(), &bytes, piece), whole);
        }

        /// Neither pieces nor the fast way through plain lines change the points read.
        #[test]
        fn pieces_do_not_matter(
            words in proptest::collection::vec("([0-9]{1,20}|-?[0-9]{0,9}[.]?[0-9]{0,3}|[0-9]e[0-9]|#|x|)[ \t\r]?(\n|\n| )", 0..40),
            piece in 1usize..30,
        ) {
            let text = words.concat();
            let whole = read_in_pieces(&Columns::default(), text.as_bytes(), usize::MAX);
            let slow = Columns { plain: false, ..Columns::default() };
            let bits = |read: &Result<Vec<f64>, PointsError>| {
                read.clone().map(|points| points.into_iter().map(f64::to_bits).collect::<Vec<_>>())
            };
            prop_assert_eq!(bits(&read_in_pieces(&Columns::default(), text.as_bytes(), piece)), bits(&whole));
            prop_assert_eq!(bits(&read_in_pieces(&slow, text.as_bytes(), usize::MAX)), bits(&whole));
        }
    }
}
