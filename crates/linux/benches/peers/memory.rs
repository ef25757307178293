//! Memory: a process of its own that sets up five million flows, and says how much it took at its peak.

use crate::Failure;
use crate::stand::{GENERATOR_CPU, Kind, Testbed};
use linerate_linux::lab::Setup;
use linerate_plan::settings::Dut;
use serde::{Deserialize, Serialize};
use std::process::{Command, Stdio};
use std::time::Instant;

/// The argument that makes this program the child.
pub const CHILD: &str = "--memory-child";
/// Flows to set up.
pub const FLOWS: u32 = 5_000_000;

/// Answer of the child.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Memory {
    /// Peak resident memory, in bytes.
    pub peak_bytes: u64,
    /// Seconds to set up the generator with all its flows.
    pub set_up_s: f64,
}

/// Sets up, and prints what it took.
///
/// # Errors
/// The lab or the generator cannot be set up, or /proc not be read.
pub fn child() -> Result<(), Failure> {
    let mut stand = Testbed::build(&[GENERATOR_CPU], &[Setup::of(Dut::TesterBaseline)])?;
    let began = Instant::now();
    stand.add(Kind::Full, &[GENERATOR_CPU], FLOWS)?;
    let set_up_s = began.elapsed().as_secs_f64();
    let memory = Memory {
        peak_bytes: peak()?,
        set_up_s,
    };
    println!("{}", serde_json::to_string(&memory)?);
    Ok(())
}

/// This process's peak (proc_pid_status(5): VmHWM, in KiB).
fn peak() -> Result<u64, Failure> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status
        .lines()
        .find_map(|l| l.strip_prefix("VmHWM:"))
        .ok_or("no VmHWM in /proc")?;
    let kib: u64 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kib * 1024)
}

/// Runs the child.
///
/// # Errors
/// The child failed.
pub fn measure() -> Result<Memory, Failure> {
    let mut command = Command::new(std::env::current_exe()?);
    let output = command
        .arg(CHILD)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()?;
    if !output.status.success() {
        return Err(format!(
            "the child that sets up {FLOWS} flows ended with {}",
            output.status
        )
        .into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}
