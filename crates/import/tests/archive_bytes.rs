//! The archive's parsers take any bytes: prefixes of real files, and real files with seeded mutations.

use linerate_import::netbenches::assemble::Assembly;
use linerate_import::netbenches::config::{self, Configs};
use linerate_import::netbenches::layout::{Kind, Place, kind};
use linerate_import::netbenches::records::records;
use linerate_wire::SplitMix64;
use std::fs;
use std::path::{Path, PathBuf};

const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/netbenches");
/// Up to this size every prefix is tried.
const SMALL: usize = 900;
/// Places of changes in larger files: this number of line ends and of other places.
const LINES: usize = 24;
const PLACES: usize = 16;
const MUTATIONS: usize = 12;

/// Everything that would be done with a file, and with a folder that holds it alone.
fn take(path: &str, bytes: &[u8]) {
    let kind = kind(path);
    let mut configs = Configs::default();
    if kind == Kind::Config {
        configs.file(path, bytes);
        for grammar in [config::Grammar::Assignments, config::Grammar::Rules] {
            config::settings(grammar, bytes);
        }
    }
    let mut assembly = Assembly::new(".", Place::default(), true);
    assembly.file(path, kind, bytes);
    assembly.end(path, kind, bytes.len() as u64, bytes.last().copied());
    let (directory, _) = assembly.finish(&configs);
    if let Some(directory) = directory {
        serde_json::to_string(&directory).unwrap();
        if let Some(records) = records(directory, "0") {
            serde_json::to_string(&records.trials).unwrap();
        }
    }
}

fn files() -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![PathBuf::from(CORPUS)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            match entry.file_type().unwrap().is_dir() {
                true => folders.push(entry.path()),
                false => files.push(entry.path()),
            }
        }
    }
    files.sort();
    assert!(files.len() > 400, "testdata has {} files", files.len());
    // Files of a folder resemble each other: one in seven has every kind of them.
    files.into_iter().step_by(7).collect()
}

fn relative(path: &Path) -> String {
    path.strip_prefix(CORPUS).unwrap().display().to_string()
}

fn below(random: &mut SplitMix64, limit: usize) -> usize {
    (random.next_u64() % limit.max(1) as u64) as usize
}

#[test]
fn prefixes_of_files_are_taken() {
    let mut random = SplitMix64::new(3);
    for file in files() {
        let bytes = fs::read(&file).unwrap();
        let path = relative(&file);
        if bytes.len() <= SMALL {
            (0..=bytes.len()).for_each(|end| take(&path, &bytes[..end]));
            continue;
        }
        let ends: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at] == b'\n').collect();
        for _ in 0..LINES {
            let end = ends
                .get(below(&mut random, ends.len()))
                .copied()
                .unwrap_or(0);
            [end, end + 1, end + 2]
                .into_iter()
                .for_each(|e| take(&path, &bytes[..e.min(bytes.len())]));
        }
        for _ in 0..PLACES {
            take(&path, &bytes[..below(&mut random, bytes.len())]);
        }
    }
}

#[test]
fn mutated_files_are_taken() {
    let mut random = SplitMix64::new(4);
    for file in files() {
        let bytes = fs::read(&file).unwrap();
        for _ in 0..MUTATIONS {
            take(&relative(&file), &mutated(bytes.clone(), &mut random));
        }
    }
}

/// A few changes of the kinds that break parsers: bytes, lines doubled, lost and glued, numbers without end.
fn mutated(mut bytes: Vec<u8>, random: &mut SplitMix64) -> Vec<u8> {
    const ODD: [&[u8]; 8] = [
        b"\n",
        b"99999999999999999999999",
        b"-",
        b"\0",
        b"\xff",
        b"\"",
        b" main_thread [1] 5 pps ",
        b"=",
    ];
    for _ in 0..=below(random, 8) {
        let at = below(random, bytes.len());
        match random.next_u64() % 4 {
            0 if !bytes.is_empty() => bytes[at] = random.next_u64() as u8,
            1 => drop(bytes.drain(at..(at + below(random, 200)).min(bytes.len()))),
            2 => {
                let copy = bytes[at..(at + below(random, 200)).min(bytes.len())].to_vec();
                bytes.splice(at..at, copy);
            }
            _ => drop(bytes.splice(at..at, ODD[below(random, ODD.len())].iter().copied())),
        }
    }
    bytes
}
