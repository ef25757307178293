//! How fast a tree of logs is read, checked and recomputed, without writing records: `cargo bench -p linerate-runner --bench
//! import -- [MEGABYTES | DIR]`. Replicates the corpus' results below a temporary folder (TMPDIR) and removes it afterwards,
//! or takes DIR. The first round brings it into the page cache and does not count. One thread; the bar is 300 MB/s.

use linerate_runner::archive::{Progress, read_archive};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

const CORPUS: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../../shared/corpus/netbenches"
);
const BAR: f64 = 300.0;
const ROUNDS: usize = 6;

/// A folder that is removed with everything in it.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn main() {
    // `cargo bench` adds an argument of its own.
    let argument = std::env::args().skip(1).find(|a| !a.starts_with('-'));
    if let Some(directory) = argument.as_ref().map(Path::new).filter(|d| d.is_dir()) {
        return measure(directory);
    }
    if !Path::new(CORPUS).exists() {
        return println!("import: needs ../shared/corpus, or a folder as argument");
    }
    let megabytes: u64 = argument.and_then(|a| a.parse().ok()).unwrap_or(1000);
    let scratch =
        Scratch(std::env::temp_dir().join(format!("linerate-import-bench-{}", std::process::id())));
    let mut bytes = 0;
    for copy in 0.. {
        if bytes >= megabytes * 1_000_000 {
            break;
        }
        bytes += replicate(Path::new(CORPUS), &scratch.0.join(format!("copy{copy}")));
    }
    measure(&scratch.0);
}

fn measure(directory: &Path) {
    let (mut least, mut least_cpu) = (f64::INFINITY, f64::INFINITY);
    let mut bytes = 0;
    for round in 0..ROUNDS {
        let mut seen = Progress::default();
        let (began, cpu_began) = (Instant::now(), cpu_seconds());
        let archive = read_archive(directory, &mut |p| seen = p).expect("the folder can be read");
        let (seconds, cpu) = (began.elapsed().as_secs_f64(), cpu_seconds() - cpu_began);
        let sets: usize = archive.directories.iter().map(|d| d.sets.len()).sum();
        bytes = seen.bytes;
        println!(
            "round {round}: {:.0} MB in {} files, {sets} sets, {seconds:.2} s, {cpu:.2} s of CPU",
            bytes as f64 / 1e6,
            seen.files,
        );
        if round > 0 {
            (least, least_cpu) = (least.min(seconds), least_cpu.min(cpu));
        }
    }
    let rate = |seconds: f64| bytes as f64 / 1e6 / seconds;
    let (wall, cpu) = (rate(least), rate(least_cpu));
    println!("best: {wall:.0} MB/s of {BAR:.0}; by CPU time, other programs aside, {cpu:.0} MB/s");
}

/// User and system time of this process.
fn cpu_seconds() -> f64 {
    // SAFETY: rusage is plain data, and getrusage writes nothing else.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        usage
    };
    let seconds = |t: libc::timeval| t.tv_sec as f64 + t.tv_usec as f64 / 1e6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

/// Copies the receivers' and generators' logs with what belongs to them, and returns their size.
fn replicate(from: &Path, to: &Path) -> u64 {
    fs::create_dir_all(to).expect("a temporary folder can be made");
    let mut bytes = 0;
    for entry in fs::read_dir(from)
        .expect("the corpus can be read")
        .flatten()
    {
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
