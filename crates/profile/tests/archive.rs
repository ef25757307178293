//! The folded stacks of the public archive follow from its call graphs, byte for byte.
#![cfg_attr(
    not(corpus),
    allow(dead_code, reason = "every test here reads the corpus")
)]

use linerate_profile::{Source, fold};
use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};

const CORPUS: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../../shared/corpus/netbenches"
);

/// The files below a folder with this extension.
fn files(folder: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files(&path, extension, found),
            false if path.extension().is_some_and(|e| e == extension) => found.push(path),
            false => {}
        }
    }
}

#[test]
#[cfg_attr(not(corpus), ignore = "needs ../shared/corpus")]
fn stacks_of_the_archive_are_those_of_its_graphs() {
    let mut graphs = Vec::new();
    files(Path::new(CORPUS), "graph", &mut graphs);
    let (mut compared, mut cut) = (0, 0);
    for graph in &graphs {
        let mut folded = Vec::new();
        let told = fold(BufReader::new(File::open(graph).unwrap()), &mut folded).unwrap();
        assert_eq!(told.source, Source::Pmcstat, "{}", graph.display());
        assert!(
            told.event.is_some() && !folded.is_empty(),
            "{}",
            graph.display()
        );
        cut += usize::from(told.is_cut);
        if let Ok(published) = fs::read(graph.with_extension("stack")) {
            assert!(folded == published, "{}", graph.display());
            compared += 1;
        }
    }
    println!(
        "{} graphs, {cut} of them cut; {compared} stacks compared",
        graphs.len()
    );
    assert!(graphs.len() >= 19 && compared >= 12 && cut >= 1);
}
