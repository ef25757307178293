//! `linerate stat` against ministat on the same files of 10 million numbers: `cargo bench -p linerate --bench stat`, or a part:
//! `... --bench stat -- 8-digit`.
//!
//! The two take turns, and the ratio of each pair counts, because machines are noisy. Peak memory is the kernel's figure for the
//! process. Both outputs must be equal. What is printed are ministat's shares: 0.2 is a fifth of its time.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const NUMBERS: u64 = 10_000_000;
const ROUNDS: usize = 5;
const LINERATE: &str = env!("CARGO_BIN_EXE_linerate");

/// A run of a program.
struct Run {
    took: Duration,
    /// Time of the CPU that it used: neighbours on a busy machine change it less.
    cpu: Duration,
    /// Largest resident set of the run.
    peak_kib: i64,
}

#[allow(
    clippy::zombie_processes,
    reason = "wait4 waits, and tells what was used as well"
)]
fn run(program: &str, args: &[&str], output: &Path) -> Run {
    let began = Instant::now();
    #[allow(
        clippy::zombie_processes,
        reason = "wait4 waits for it, and tells what it used"
    )]
    let child = Command::new(program)
        .args(args)
        .stdout(File::create(output).unwrap())
        .spawn()
        .unwrap();
    let mut status = 0;
    // SAFETY: rusage is plain data; the child has not been waited for, so its number is still its own.
    let used = unsafe {
        let mut used: libc::rusage = std::mem::zeroed();
        assert_eq!(
            libc::wait4(child.id() as i32, &mut status, 0, &mut used),
            child.id() as i32
        );
        used
    };
    assert_eq!(status, 0, "{program} {args:?}");
    let time = |t: libc::timeval| Duration::new(t.tv_sec as u64, t.tv_usec as u32 * 1000);
    Run {
        took: began.elapsed(),
        cpu: time(used.ru_utime) + time(used.ru_stime),
        peak_kib: used.ru_maxrss,
    }
}

/// A number in 0..1 that looks random.
fn unit(i: u64) -> f64 {
    let mut z = i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
}

fn write(file: &Path, line: impl Fn(u64) -> String) {
    let mut out = BufWriter::new(File::create(file).unwrap());
    for i in 1..=NUMBERS {
        out.write_all(line(i).as_bytes()).unwrap();
    }
    out.flush().unwrap();
}

fn compare(folder: &Path, name: &str, args: &[&str], line: impl Fn(u64) -> String) {
    let mut parts = std::env::args()
        .skip(1)
        .filter(|part| !part.starts_with('-'))
        .peekable();
    if parts.peek().is_some() && !parts.any(|part| name.contains(&part)) {
        return;
    }
    let file = folder.join("numbers");
    let (theirs, ours) = (folder.join("theirs"), folder.join("ours"));
    write(&file, line);
    let path = file.to_str().unwrap();
    let mut ratios = Vec::new();
    let mut last = None;
    for _ in 0..ROUNDS {
        let ministat = run("ministat", &[args, &[path]].concat(), &theirs);
        let old = run(
            LINERATE,
            &[&["stat", "--era", "old"], args, &[path]].concat(),
            &ours,
        );
        assert_eq!(
            std::fs::read(&theirs).unwrap(),
            std::fs::read(&ours).unwrap(),
            "{name}"
        );
        let new = run(LINERATE, &[&["stat"], args, &[path]].concat(), &ours);
        let of = |a: Duration, b: Duration| a.as_secs_f64() / b.as_secs_f64();
        ratios.push([
            of(old.took, ministat.took),
            of(new.took, ministat.took),
            of(new.cpu, ministat.cpu),
        ]);
        last = Some((ministat, new));
    }
    let (ministat, linerate) = last.unwrap();
    let [old, new, cpu] = [0, 1, 2].map(|which| {
        let mut of_pairs: Vec<f64> = ratios.iter().map(|pair| pair[which]).collect();
        of_pairs.sort_by(f64::total_cmp);
        format!(
            "{:.3} (at most {:.3})",
            of_pairs[ROUNDS / 2],
            of_pairs[ROUNDS - 1]
        )
    });
    let (kib, their_kib) = (linerate.peak_kib, ministat.peak_kib);
    println!(
        "{name:<20} era old {old}, era new {new}, its CPU time {cpu}, memory {kib} of {their_kib} KiB"
    );
}

fn main() {
    let installed = Command::new("ministat")
        .arg("-h")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if installed.is_err() {
        println!("ministat is not installed: nothing to compare with");
        return;
    }
    let folder = std::env::temp_dir().join(format!("linerate-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let rate = |i| 1e7 + (unit(i) + unit(i + NUMBERS) - 1.0) * 2e5;
    compare(&folder, "1, 2, 3, ...", &[], |i| format!("{i}\n"));
    compare(&folder, "8-digit decimals", &[], |i| {
        format!("{:.6}\n", 10.0 + 90.0 * unit(i))
    });
    compare(&folder, "rates", &[], |i| format!("{:.1}\n", rate(i)));
    compare(&folder, "17-digit decimals", &[], |i| {
        format!("{}\n", unit(i))
    });
    compare(&folder, "third column, CRLF", &["-C", "3"], |i| {
        format!("{i} x {:.1}\r\n", rate(i))
    });
    std::fs::remove_dir_all(&folder).unwrap();
}
