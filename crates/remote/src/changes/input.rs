//! The input of the programs of changes.

use super::INSTALLATION;
use linerate_hosts::dut_changes::Input;
use std::fs::File;
use std::io::{self, Cursor, Read};
use std::time::Duration;

/// Bytes of an image that arrive and are installed in a second, at least.
const PACE: u64 = 1 << 20;

/// Where a program's input comes from, if it has any, and how long the program may take that could take `limit` without it.
///
/// # Errors
/// A file cannot be read, or is not a regular one.
pub fn of(input: &Input, limit: Duration) -> io::Result<(Option<Box<dyn Read>>, Duration)> {
    let bytes = match input {
        Input::Nothing => return Ok((None, limit)),
        Input::Text(text) => text.clone().into_bytes(),
        // Steps are undone with the recorded state in its place.
        Input::Was => Vec::new(),
        Input::Rules(set, part) => {
            let mut bytes = Vec::new();
            set.write_part(*part, &set.comments(*part), &mut bytes)?;
            bytes
        }
        Input::File(path) => {
            let file = File::open(path)?;
            let facts = file.metadata()?;
            if !facts.is_file() {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"));
            }
            let size = facts.len();
            let content = Whole { file: file.take(size), left: size };
            let limit = INSTALLATION + Duration::from_secs(size / PACE);
            return Ok((Some(Box::new(Cursor::new(format!("{size}\n")).chain(content))), limit));
        }
    };
    Ok((Some(Box::new(Cursor::new(bytes))), limit))
}

/// A file that must be as long as it was.
struct Whole {
    file: io::Take<File>,
    left: u64,
}

impl Read for Whole {
    fn read(&mut self, piece: &mut [u8]) -> io::Result<usize> {
        let length = self.file.read(piece)?;
        self.left -= length as u64;
        if length == 0 && self.left > 0 && !piece.is_empty() {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it has become shorter meanwhile"));
        }
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(path: &str) -> io::Result<(String, Duration)> {
        let (input, limit) = of(&Input::File(path.into()), Duration::from_secs(1))?;
        let mut text = String::new();
        input.unwrap().read_to_string(&mut text).map(|_| (text, limit))
    }

    #[test]
    fn a_file_follows_its_length() {
        let path = std::env::temp_dir().join(format!("linerate-input-{}", std::process::id()));
        let name = path.display().to_string();
        std::fs::write(&path, "image").unwrap();
        assert_eq!(read(&name).unwrap(), ("5\nimage".to_string(), INSTALLATION));
        // Sparse: nothing of it is read.
        File::create(&path).unwrap().set_len(10 << 30).unwrap();
        let limit = of(&Input::File(name.clone()), Duration::from_secs(1)).unwrap().1;
        assert_eq!(limit, INSTALLATION + Duration::from_secs(10 << 10));
        std::fs::write(&path, "image").unwrap();
        let (input, _) = of(&Input::File(name.clone()), Duration::from_secs(1)).unwrap();
        File::create(&path).unwrap();
        let error = input.unwrap().read_to_end(&mut Vec::new()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(read(&name).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(read("/").unwrap_err().to_string(), "it is no regular file");
    }
}
