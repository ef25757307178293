//! A line a second and a summary, for `send` and `receive`.

use crate::output::print;
use linerate_linux::ports::monotonic_ns;
use linerate_measure::counters::PortCounters;
use linerate_plan::units::{Si, bits_layer_1, bits_layer_2};
use linerate_wire::FCS_LEN;

/// Prints what was counted since the last line.
pub struct Tally {
    quiet: bool,
    plain: bool,
    every_ns: u64,
    began_ns: u64,
    last_ns: u64,
    last_frames: u64,
}

impl Tally {
    /// Begins now. `quiet`: no lines. `plain`: numbers without SI prefixes.
    pub fn new(quiet: bool, plain: bool, every_ms: u64) -> Self {
        let now = monotonic_ns();
        Tally { quiet, plain, every_ns: every_ms * 1_000_000, began_ns: now, last_ns: now, last_frames: 0 }
    }

    /// Prints a line if one is due. `name`: `sent` or `received`.
    pub fn tick(&mut self, name: &str, frames: u64) {
        let now = monotonic_ns();
        if now - self.last_ns < self.every_ns {
            return;
        }
        let (seconds, new) = ((now - self.last_ns) as f64 / 1e9, frames.saturating_sub(self.last_frames));
        if !self.quiet {
            let rate = new as f64 / seconds;
            let rate = if self.plain { format!("{rate:.0} ") } else { Si(rate).to_string() };
            let at = (now - self.began_ns) as f64 / 1e9;
            print(&format!("{at:8.3} s  {rate:>9}pps  ({new} frames {name} in {:.1} ms)\n", seconds * 1e3));
        }
        (self.last_ns, self.last_frames) = (now, frames);
    }
}

/// Frames, mean rate and bit rates at both layers over `seconds`.
pub fn totals(counters: &PortCounters, seconds: f64) -> serde_json::Value {
    let fps = if seconds > 0.0 { counters.frames as f64 / seconds } else { 0.0 };
    let length = average_len_fcs(counters);
    serde_json::json!({
        "frames": counters.frames,
        "seconds": seconds,
        "frames_per_second": fps,
        "average_len_fcs": length,
        "bits_per_second_layer_1": bits_layer_1(fps, length),
        "bits_per_second_layer_2": bits_layer_2(fps, length),
    })
}

/// The same as a sentence.
pub fn sentence(counters: &PortCounters, seconds: f64) -> String {
    let fps = if seconds > 0.0 { counters.frames as f64 / seconds } else { 0.0 };
    let length = average_len_fcs(counters);
    format!(
        "{} frames of {length:.1} bytes with FCS in {seconds:.3} s: {}pps, {}bit/s at layer 1, {}bit/s at layer 2",
        counters.frames,
        Si(fps),
        Si(bits_layer_1(fps, length)),
        Si(bits_layer_2(fps, length)),
    )
}

fn average_len_fcs(counters: &PortCounters) -> f64 {
    match counters.frames {
        0 => 0.0,
        n => counters.bytes as f64 / n as f64 + FCS_LEN as f64,
    }
}
