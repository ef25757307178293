//! A file that a change installs.

use super::INSTALLATION;
use std::fs::File;
use std::io::{self, Cursor, Read};
use std::time::Duration;

/// Bytes of an image that arrive and are installed in a second, at least.
const PACE: u64 = 1 << 20;

/// A line with the number of a file's bytes, and then these: the file must stay as long as it was.
pub struct Image {
    path: String,
    size: u64,
    head: Cursor<String>,
    content: io::Take<File>,
}

impl Image {
    /// # Errors
    /// It cannot be read, or is not a regular file.
    pub fn open(path: &str) -> io::Result<Image> {
        let file = File::open(path)?;
        let facts = file.metadata()?;
        if !facts.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"));
        }
        let size = facts.len();
        Ok(Image {
            path: path.into(),
            size,
            head: Cursor::new(format!("{size}\n")),
            content: file.take(size),
        })
    }

    /// How long it may take to arrive and to be installed.
    pub fn limit(&self) -> Duration {
        INSTALLATION + Duration::from_secs(self.size / PACE)
    }
}

impl Read for Image {
    fn read(&mut self, piece: &mut [u8]) -> io::Result<usize> {
        let of_head = self.head.read(piece)?;
        if of_head > 0 {
            return Ok(of_head);
        }
        let failed = |kind, why: String| {
            io::Error::new(kind, format!("{}, which is to be installed, cannot be read: {why}", self.path))
        };
        let length = self.content.read(piece).map_err(|error| failed(error.kind(), error.to_string()))?;
        if length == 0 && self.content.limit() > 0 && !piece.is_empty() {
            return Err(failed(io::ErrorKind::UnexpectedEof, "it has become shorter meanwhile".into()));
        }
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(path: &str) -> io::Result<(String, Duration)> {
        let mut image = Image::open(path)?;
        let (limit, mut text) = (image.limit(), String::new());
        image.read_to_string(&mut text).map(|_| (text, limit))
    }

    #[test]
    fn a_file_follows_its_length() {
        let path = std::env::temp_dir().join(format!("linerate-input-{}", std::process::id()));
        let name = path.display().to_string();
        std::fs::write(&path, "image").unwrap();
        assert_eq!(read(&name).unwrap(), ("5\nimage".to_string(), INSTALLATION));
        // Sparse: nothing of it is read.
        File::create(&path).unwrap().set_len(10 << 30).unwrap();
        let limit = Image::open(&name).unwrap().limit();
        assert_eq!(limit, INSTALLATION + Duration::from_secs(10 << 10));
        std::fs::write(&path, "image").unwrap();
        let mut image = Image::open(&name).unwrap();
        File::create(&path).unwrap();
        let error = image.read_to_end(&mut Vec::new()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(read(&name).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(read("/").unwrap_err().to_string(), "it is no regular file");
    }
}
