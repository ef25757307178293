//! The gain of interleaving, measured by real campaigns on this machine: how wide an A/A interval is after a minute, how often a
//! planted difference of 3 % is proven, and how often a difference is "proven" where there is none, in blocks and one variant
//! after the other, on the machine's own noise and under a drift that is made.
//!
//! `sudo -E cargo bench -p linerate --bench interleaving -- [aa N] [planted N] [noise N] [drift N]`; needs root and a quiet machine.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const LINERATE: &str = env!("CARGO_BIN_EXE_linerate");

/// A variant twice, in short campaigns: 20 blocks of 3 trials.
const SHORT: &str = r#"
title = "The same twice"
question = "Is a difference shown where there is none?"

[variants.one]

[variants.other]
from = "one"
apart = true

[compare]
with = "one"

[trials]
duration = "50 ms"
blocks = 20
order = "ORDER"
"#;

fn main() {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| a != "--bench")
        .collect();
    let default = ["aa", "3", "planted", "10", "noise", "40", "drift", "20"]
        .map(String::from)
        .to_vec();
    let chosen = if arguments.is_empty() {
        default
    } else {
        arguments
    };
    let folder = std::env::temp_dir().join(format!("linerate-interleaving-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for plans and records");
    for pair in chosen.chunks(2) {
        let count = pair.get(1).and_then(|n| n.parse().ok()).unwrap_or(1);
        match pair[0].as_str() {
            "aa" => minutes(&folder, "a-a", count),
            "planted" => minutes(&folder, "planted", count),
            "noise" => orders(&folder, count, false),
            "drift" => orders(&folder, count, true),
            other => eprintln!("no such measurement: {other}"),
        }
    }
    std::fs::remove_dir_all(&folder).ok();
}

/// Campaigns of a minute by a shipped plan.
fn minutes(folder: &Path, plan: &str, count: usize) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../plans/{plan}.toml"));
    let mut proven = 0;
    for n in 0..count {
        let ratio = campaign(&file, &folder.join(format!("{plan}-{n}")), None);
        proven += usize::from(ratio.proven());
        println!("{plan} {n}: {ratio}");
    }
    println!("{plan}: {proven} of {count} proven different");
}

/// Short A/A campaigns in blocks and in sequence, in turn.
fn orders(folder: &Path, count: usize, drift: bool) {
    let name = if drift { "drift" } else { "noise" };
    let mut proven = [0; 2];
    for n in 0..count {
        for (at, order) in ["blocks", "sequential"].into_iter().enumerate() {
            let plan = folder.join(format!("{order}.toml"));
            std::fs::write(&plan, SHORT.replace("ORDER", order)).expect("a plan");
            let ratio = campaign(
                &plan,
                &folder.join(format!("{name}-{order}-{n}")),
                drift.then_some(6.0),
            );
            proven[at] += usize::from(ratio.proven());
            println!("{name} {order} {n}: {ratio}");
        }
    }
    println!(
        "{name}: proven different in blocks {} of {count}, in sequence {} of {count}",
        proven[0], proven[1]
    );
}

struct Ratio {
    median: f64,
    low: f64,
    high: f64,
    blocks: u64,
}

impl Ratio {
    fn proven(&self) -> bool {
        self.low > 1.0 || self.high < 1.0
    }
}

impl std::fmt::Display for Ratio {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let percent = |ratio: f64| 100.0 * (ratio - 1.0);
        let verdict = if self.proven() {
            "PROVEN"
        } else {
            "not proven"
        };
        write!(
            f,
            "{:+.2} % [{:+.2}, {:+.2}], {} blocks, {verdict}",
            percent(self.median),
            percent(self.low),
            percent(self.high),
            self.blocks
        )
    }
}

/// Runs a campaign; its only comparison. `drift`: over so many seconds, ever more of the last CPU is taken away.
fn campaign(plan: &Path, out: &PathBuf, drift: Option<f64>) -> Ratio {
    let over = Arc::new(AtomicBool::new(false));
    let burner = drift.map(|seconds| {
        let over = Arc::clone(&over);
        std::thread::spawn(move || burn(seconds, &over))
    });
    let run = Command::new(LINERATE)
        .args(["run", "--json", "--out"])
        .arg(out)
        .arg(plan)
        .stderr(Stdio::inherit())
        .output()
        .expect("linerate runs");
    over.store(true, Ordering::Relaxed);
    if let Some(burner) = burner {
        burner.join().expect("the burner ends");
    }
    let document: Value = serde_json::from_slice(&run.stdout).expect("JSON from linerate run");
    let ratio = &document["summary"]["comparisons"][0]["ratio"];
    let number = |key: &str, none: f64| ratio[key].as_f64().unwrap_or(none);
    Ratio {
        median: number("median", f64::NAN),
        low: number("low", f64::NEG_INFINITY),
        high: number("high", f64::INFINITY),
        blocks: ratio["n"].as_u64().unwrap_or(0),
    }
}

/// Takes a share of the last CPU that grows from none to a third, in slices of 10 ms.
fn burn(seconds: f64, over: &AtomicBool) {
    // SAFETY: plain system calls on the calling thread: a set of CPUs that is valid, and a priority.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        let last = libc::sysconf(libc::_SC_NPROCESSORS_ONLN) as usize - 1;
        libc::CPU_SET(last, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set);
        libc::setpriority(
            libc::PRIO_PROCESS,
            libc::syscall(libc::SYS_gettid) as libc::id_t,
            -20,
        );
    }
    let began = Instant::now();
    while !over.load(Ordering::Relaxed) {
        let share = (began.elapsed().as_secs_f64() / seconds).min(1.0) / 3.0;
        let slice = Instant::now();
        while slice.elapsed() < Duration::from_millis(10).mul_f64(share) {
            std::hint::spin_loop();
        }
        std::thread::sleep(Duration::from_millis(10).mul_f64(1.0 - share));
    }
}
