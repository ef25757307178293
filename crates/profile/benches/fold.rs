//! Folding call graphs of pmcstat, beside FlameGraph's stackcollapse-pmc.pl where that is installed.
//!
//!     cargo bench -p linerate-profile [-- MEGABYTES]
//!
//! The input is a graph that is repeated up to the size; each program reads the same file, in turns.

use std::io::{BufReader, BufWriter, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs};

const ROUNDS: usize = 5;
const PEER: &str = "stackcollapse-pmc.pl";

/// A graph of 40 sampled functions with a stack of 16 callers each.
fn graph() -> String {
    let mut text = String::from("@ cpu_clk_unhalted.thread [40000 samples]\n\n");
    for function in 0..40 {
        text += &format!("02.50%  [1000]     sampled_function_{function} @ /boot/kernel/kernel\n");
        for caller in 1..=16 {
            let indent = " ".repeat(caller);
            text += &format!("{indent}100.0%  [1000]     {indent}caller_of_function_{caller}\n");
        }
        text.push('\n');
    }
    text
}

fn ours(path: &std::path::Path) -> Duration {
    let began = Instant::now();
    let input = BufReader::with_capacity(1 << 20, fs::File::open(path).unwrap());
    let output = BufWriter::new(fs::File::create("/dev/null").unwrap());
    linerate_profile::fold(input, output).unwrap();
    began.elapsed()
}

fn peer(path: &std::path::Path) -> Option<Duration> {
    let began = Instant::now();
    let status = Command::new(PEER)
        .arg(path)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status
        .is_ok_and(|status| status.success())
        .then(|| began.elapsed())
}

fn main() {
    let megabytes: usize = env::args()
        .filter_map(|arg| arg.parse().ok())
        .next()
        .unwrap_or(400);
    let path = env::temp_dir().join(format!("linerate-graph-{}", std::process::id()));
    let (text, mut file) = (graph(), BufWriter::new(fs::File::create(&path).unwrap()));
    let repeats = (megabytes << 20) / text.len();
    (0..repeats).for_each(|_| file.write_all(text.as_bytes()).unwrap());
    file.flush().unwrap();
    for round in 1..=ROUNDS {
        let ours = ours(&path).as_secs_f64();
        let rate = (repeats * text.len()) as f64 / 1e6 / ours;
        match peer(&path).map(|peer| peer.as_secs_f64()) {
            Some(peer) => println!(
                "round {round}: {ours:.2} s ({rate:.0} MB/s), {PEER} {peer:.2} s, ratio {:.1}",
                peer / ours
            ),
            None => {
                println!("round {round}: {ours:.2} s ({rate:.0} MB/s); {PEER} is not on the PATH")
            }
        }
    }
    fs::remove_file(&path).unwrap();
}
