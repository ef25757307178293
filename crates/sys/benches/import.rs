//! How fast a tree of logs is read, checked and recomputed, without writing records: `cargo bench -p linerate-sys --bench
//! import -- [MEGABYTES]`. Replicates the corpus' results below a temporary folder, reads it once to have it in the page
//! cache, then a few times on one thread, and removes it. The bar is 300 MB/s.

use linerate_sys::archive::{Progress, read_archive};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/corpus/netbenches");
const BAR: f64 = 300.0;

/// A folder that is removed with everything in it.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn main() {
    // `cargo bench` adds its own.
    let megabytes = std::env::args().skip(1).find_map(|a| a.parse().ok()).unwrap_or(1000);
    if !Path::new(CORPUS).exists() {
        println!("import: needs ../shared/corpus");
        return;
    }
    let scratch = Scratch(std::env::temp_dir().join(format!("linerate-import-bench-{}", std::process::id())));
    let mut bytes = 0;
    for copy in 0.. {
        if bytes >= megabytes * 1_000_000 {
            break;
        }
        bytes += replicate(Path::new(CORPUS), &scratch.0.join(format!("copy{copy}")));
    }
    let mut least = f64::INFINITY;
    for round in 0..6 {
        let mut seen = Progress::default();
        let began = Instant::now();
        let archive = read_archive(&scratch.0, &mut |p| seen = p).expect("the copy can be read");
        let seconds = began.elapsed().as_secs_f64();
        let sets: usize = archive.directories.iter().map(|d| d.sets.len()).sum();
        let rate = seen.bytes as f64 / 1e6 / seconds;
        println!(
            "round {round}: {:.0} MB in {} files, {sets} sets, {seconds:.2} s, {rate:.0} MB/s",
            seen.bytes as f64 / 1e6,
            seen.files
        );
        if round > 0 {
            least = least.min(seconds);
        }
        bytes = seen.bytes;
    }
    println!("best: {:.0} MB/s of {BAR:.0}", bytes as f64 / 1e6 / least);
}

/// Copies the receivers' and generators' logs with what belongs to them, and returns their size.
fn replicate(from: &Path, to: &Path) -> u64 {
    fs::create_dir_all(to).expect("a temporary folder can be made");
    let mut bytes = 0;
    for entry in fs::read_dir(from).expect("the corpus can be read").flatten() {
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type().is_ok_and(|t| t.is_dir()) {
            bytes += replicate(&source, &target);
        } else if !matches!(
            source.extension().and_then(|e| e.to_str()),
            Some("graph" | "stack" | "folded" | "md")
        ) {
            // The copy must not inherit the corpus' read-only mode, or it could not be removed.
            let content = fs::read(&source).expect("the corpus can be read");
            fs::write(target, &content).expect("there is room for a copy");
            bytes += content.len() as u64;
        }
    }
    bytes
}
