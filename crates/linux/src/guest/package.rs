//! Files out of a Debian package: dpkg-deb writes a stream of them (tar), and nothing touches the disk.

use super::GuestError;
use crate::process::Job;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Bytes of a stream's headers, and its granularity.
const BLOCK: usize = 512;
/// Bytes of one file, and of all that are kept, at most.
const LONGEST: usize = 256 << 20;
const MOST: usize = 1 << 30;
/// How long a package may take.
const WITHIN: Duration = Duration::from_secs(300);

/// Files of a package by their paths, as far as they are wanted.
pub type Files = BTreeMap<String, Vec<u8>>;

/// The beginning of a Debian package.
pub const MAGIC: &[u8] = b"!<arch>\n";

/// The wanted files of a package.
///
/// # Errors
/// The file is no package, or dpkg-deb is not there.
pub fn files(package: &Path, wanted: &dyn Fn(&str) -> bool) -> Result<Files, GuestError> {
    let shown = package.display().to_string();
    let mut stream = Stream::new(wanted);
    Job::new("dpkg-deb", &["--fsys-tarfile", &shown])
        .within(WITHIN)
        .drive(|path| Command::new(path), None, &mut |bytes| {
            stream.feed(bytes)
        })
        .map_err(|e| GuestError::Refused(format!("{shown} cannot be unpacked: {e}")))?;
    match stream.fault {
        None => Ok(stream.files),
        Some(fault) => Err(GuestError::Refused(format!("{shown}: {fault}"))),
    }
}

/// A stream of files that is read piece by piece.
struct Stream<'w> {
    wanted: &'w dyn Fn(&str) -> bool,
    files: Files,
    /// The header that is read.
    header: Vec<u8>,
    /// The kind of content, its bytes to come, and the padding after it.
    content: Content,
    left: usize,
    padding: usize,
    /// The path of the next file, where it is too long for the header.
    long: Option<String>,
    kept: usize,
    fault: Option<&'static str>,
}

enum Content {
    Path(Vec<u8>),
    File(String, Vec<u8>),
    Other,
}

impl<'w> Stream<'w> {
    fn new(wanted: &'w dyn Fn(&str) -> bool) -> Self {
        Stream {
            wanted,
            files: Files::new(),
            header: Vec::new(),
            content: Content::Other,
            left: 0,
            padding: 0,
            long: None,
            kept: 0,
            fault: None,
        }
    }

    fn feed(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() && self.fault.is_none() {
            let take = |most: usize| most.min(bytes.len());
            let taken = if self.left > 0 {
                let taken = take(self.left);
                if let Content::Path(content) | Content::File(_, content) = &mut self.content {
                    content.extend_from_slice(&bytes[..taken]);
                }
                self.left -= taken;
                if self.left == 0 {
                    self.ended();
                }
                taken
            } else if self.padding > 0 {
                let taken = take(self.padding);
                self.padding -= taken;
                taken
            } else {
                let taken = take(BLOCK - self.header.len());
                self.header.extend_from_slice(&bytes[..taken]);
                if self.header.len() == BLOCK {
                    let header = std::mem::take(&mut self.header);
                    self.begin(&header);
                }
                taken
            };
            bytes = &bytes[taken..];
        }
    }

    fn begin(&mut self, header: &[u8]) {
        if header.iter().all(|byte| *byte == 0) {
            return;
        }
        let text = |from: usize, length: usize| {
            let field = header[from..from + length].split(|byte| *byte == 0).next();
            String::from_utf8_lossy(field.unwrap_or_default()).into_owned()
        };
        let Ok(length) = usize::from_str_radix(text(124, 12).trim(), 8) else {
            self.fault = Some("the stream of dpkg-deb has a file without a length");
            return;
        };
        if length > LONGEST || self.kept + length > MOST {
            self.fault = Some("it has more bytes than a kernel's package can have");
            return;
        }
        (self.left, self.padding) = (length, length.next_multiple_of(BLOCK) - length);
        self.content = match header[156] {
            b'L' => Content::Path(Vec::new()),
            b'0' | 0 => {
                let prefix = text(345, 155);
                let name = match (self.long.take(), prefix.as_str()) {
                    (Some(long), _) => long,
                    // The form of GNU has no prefix.
                    (None, prefix) if !prefix.is_empty() && &header[257..263] == b"ustar\0" => {
                        format!("{prefix}/{}", text(0, 100))
                    }
                    _ => text(0, 100),
                };
                let name = name.trim_start_matches("./").to_owned();
                match (self.wanted)(&name) {
                    true => Content::File(name, Vec::with_capacity(length)),
                    false => Content::Other,
                }
            }
            _ => {
                self.long = None;
                Content::Other
            }
        };
        if length == 0 {
            self.ended();
        }
    }

    fn ended(&mut self) {
        match std::mem::replace(&mut self.content, Content::Other) {
            Content::Path(path) => {
                let path = path.split(|byte| *byte == 0).next().unwrap_or_default();
                self.long = Some(String::from_utf8_lossy(path).into_owned());
            }
            Content::File(name, content) => {
                self.kept += content.len();
                self.files.insert(name, content);
            }
            Content::Other => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, kind: u8, content: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; BLOCK];
        bytes[..name.len()].copy_from_slice(name.as_bytes());
        bytes[124..135].copy_from_slice(format!("{:011o}", content.len()).as_bytes());
        bytes[156] = kind;
        bytes.extend(content);
        bytes.resize(bytes.len().next_multiple_of(BLOCK), 0);
        bytes
    }

    #[test]
    fn wanted_files_are_found_however_the_stream_is_cut() {
        let long = format!("./lib/{}.ko", "x".repeat(120));
        let stream = [
            entry("./boot/", b'5', b""),
            entry("./boot/vmlinuz", b'0', &[7; 700]),
            entry("././@LongLink", b'L', format!("{long}\0").as_bytes()),
            entry("cut", b'0', b"module"),
            entry("./other", b'0', b"not wanted"),
            vec![0; 2 * BLOCK],
        ]
        .concat();
        for size in [1, 100, 511, 513, stream.len()] {
            let wanted = |path: &str| path != "other";
            let mut read = Stream::new(&wanted);
            stream.chunks(size).for_each(|bytes| read.feed(bytes));
            assert_eq!(read.fault, None);
            assert_eq!(read.files.len(), 2);
            assert_eq!(read.files["boot/vmlinuz"], [7; 700]);
            assert_eq!(read.files[&long[2..]], b"module");
        }
    }

    #[test]
    fn a_stream_without_lengths_is_refused() {
        let wanted = |_: &str| true;
        let mut read = Stream::new(&wanted);
        read.feed(&[b'x'; 600]);
        assert!(read.fault.is_some());
    }
}
