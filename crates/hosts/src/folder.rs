//! Folders of small text files: configuration sets, and saved answers of hosts.

/// Bytes of a file at most.
pub const MOST_BYTES: usize = 1 << 20;

/// A file of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Path below the folder, with `/`.
    pub path: String,
    /// Content of the file.
    pub bytes: Vec<u8>,
    /// Whether it may be executed.
    pub executable: bool,
}

/// Contents of a folder.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Folder {
    /// Path, for messages.
    pub path: String,
    /// Files, in the order of their paths.
    pub files: Vec<File>,
    /// Files that were not read: path and reason.
    pub unread: Vec<(String, String)>,
}
