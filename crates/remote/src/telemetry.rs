//! The kernel of a host under load, observed by programs of the host: its profiler, linerate, DTrace.

use crate::collectors::{Begins, Observed, UnderLoad};
use linerate_hosts::systems::Kernel;
use linerate_linux::telemetry::{locks, profile, stages};
use linerate_measure::collector::{Artefact, Collector};
use linerate_measure::record::{StackTimes, Step};
use linerate_profile::{Distribution, Observed as Printed, Profile, Sampled, Source, fold, observed};
use linerate_stats::histogram::Histogram;

/// Bytes of a program's output that are kept.
const MOST_STACKS: usize = 64 << 20;

/// A script for FreeBSD's dtrace: times from ether_input to ether_output.
pub const STAGES_OF_FREEBSD: &str = include_str!("telemetry/stages.d");

/// Observes a host's kernel while a load lasts, by a program of the host.
pub struct Probed {
    name: &'static str,
    under: Result<UnderLoad, String>,
    read: Read,
}

/// Reads a program's output.
type Read = fn(&str) -> Result<Artefact, String>;

/// The innermost functions of a CPU that has nothing to do.
const IDLE: [&str; 16] = [
    "sched_idletd",
    "sched_idle",
    "default_idle",
    "native_safe_halt",
    "pv_native_safe_halt",
    "poll_idle",
    "mwait_idle",
    "intel_idle",
    "acpi_idle_do_entry",
    "acpi_safe_halt",
    "cpu_idle",
    "cpu_idle_cycle",
    "cpu_idle_acpi",
    "acpi_cpu_c1",
    "acpi_cpu_idle",
    "acpicpu_idle",
];

impl Probed {
    /// What the collector of this name looks for (see [`linerate_linux::telemetry`]), with the programs of this kernel.
    pub fn new(host: Observed, kernel: Kernel, name: &'static str) -> Probed {
        let (command, begins, read): (_, _, Read) = match name {
            profile::NAME => (profiler(kernel), Begins::Started, sampled),
            stages::NAME if kernel == Kernel::FreeBsd => {
                let script = format!("exec dtrace -Zs /dev/stdin <<'END'\n{STAGES_OF_FREEBSD}END\n");
                (Ok(script), Begins::Started, timed)
            }
            _ if kernel != Kernel::Linux => {
                let why = format!("linerate knows no program of {} that finds them", kernel.name());
                (Err(why), Begins::Started, sampled)
            }
            _ => {
                let command = format!(
                    "command -v linerate >/dev/null || {{ echo 'there is no linerate on it: install it there' >&2; exit 1; }}; \
                     exec linerate profile {name} --format json --duration 1h --announce"
                );
                (Ok(command), Begins::Announced, of_linerate(name))
            }
        };
        let under = command.map(|command| UnderLoad::one(host, command, MOST_STACKS, begins));
        Probed { name, under, read }
    }
}

/// The line for the shell that samples the stacks of a kernel until it is interrupted.
fn profiler(kernel: Kernel) -> Result<String, String> {
    match kernel {
        // The interrupt goes to the shell alone. perf ends its file when it is told to end; then the shell prints it.
        Kernel::Linux => Ok("f=$(mktemp) || exit; perf record -q -a -g --all-kernel -F 997 -o \"$f\" >/dev/null & p=$!; \
             trap 'kill -TERM $p' INT TERM; wait $p; wait $p; perf script -i \"$f\"; rm -f \"$f\""
            .into()),
        // DTrace prints its aggregations when it is interrupted. arg0 is the kernel's program counter, 0 in user space.
        Kernel::FreeBsd => Ok(
            "exec dtrace -q -x stackframes=64 -x aggsize=16m -n 'profile-997 /arg0/ { @[stack()] = count(); }'"
                .into(),
        ),
        // btrace prints its maps when it is interrupted.
        Kernel::OpenBsd => Ok("[ \"$(sysctl -n kern.allowdt)\" = 1 ] || \
             { echo 'kern.allowdt is 0: set it in /etc/sysctl.conf, and reboot' >&2; exit 1; }; \
             exec btrace -e 'profile:hz:99 { @[kstack] = count(); }'"
            .into()),
        Kernel::NetBsd => Err("linerate knows no profiler of this system's kernel".into()),
    }
}

impl Collector for Probed {
    fn name(&self) -> &'static str {
        self.name
    }

    fn before(&mut self) -> Result<(), String> {
        self.under.as_mut().map_err(|why| why.clone())?.before()
    }

    fn after(&mut self) -> Result<Vec<Artefact>, String> {
        let under = self.under.as_mut().map_err(|why| why.clone())?;
        let (_, output) = under.end().next().ok_or("it did not begin")?;
        let [said, errors] = output?;
        if said.trim().is_empty() {
            let last = errors.lines().last().unwrap_or("it printed nothing");
            return Err(last.trim_start_matches("linerate: ").into());
        }
        Ok(vec![(self.read)(&said)?])
    }
}

fn sampled(output: &str) -> Result<Artefact, String> {
    let mut folded = Vec::new();
    let found = fold(output.as_bytes(), &mut folded).map_err(|fault| format!("its output: {fault}"))?;
    let mut profile = Profile::default();
    for (stack, samples) in Profile::of_folded(&String::from_utf8_lossy(&folded)).stacks() {
        let innermost = stack.rsplit(';').next().unwrap_or_default();
        if !IDLE.iter().any(|idle| innermost.split('.').next() == Some(idle)) {
            profile.add(stack, samples);
        }
    }
    let event = found.event.unwrap_or_else(|| match found.source {
        Source::Dtrace => "DTrace's profile-997".into(),
        Source::Btrace => "btrace's profile:hz:99".into(),
        _ => "perf's clock or cycles".into(),
    });
    let not_counted = Some("events of the CPUs: linerate counts them in the embedded lab only".into());
    Ok(Artefact::Profile(Sampled { profile, event, not_counted, ..Sampled::default() }))
}

/// Reads the JSON of `linerate profile`.
fn of_linerate(name: &str) -> Read {
    match name {
        stages::NAME => |said| read_there(serde_json::from_str(said).map(Artefact::Stages)),
        locks::NAME => |said| read_there(serde_json::from_str(said).map(Artefact::Waited)),
        _ => |said| read_there(serde_json::from_str(said).map(Artefact::Counters)),
    }
}

fn read_there(found: serde_json::Result<Artefact>) -> Result<Artefact, String> {
    found.map_err(|error| format!("its output: {error}; install the same linerate there"))
}

/// Reads what DTrace's script printed.
fn timed(output: &str) -> Result<Artefact, String> {
    match observed(output.as_bytes()).map_err(|fault| format!("its output: {fault}"))? {
        Printed::Distributions(all) => stack_times(&all).map(Artefact::Stages),
        Printed::Locks(_) => Err("its output has no times".into()),
    }
}

/// The whole way of frames through FreeBSD's stack.
const WHOLE: &str = "ether_input to ether_output";

/// Distributions by powers of two as histograms: each value counts as the middle of its range.
fn stack_times(found: &[Distribution]) -> Result<StackTimes, String> {
    let mut times = StackTimes::default();
    for Distribution { name, ranges } in found {
        let mut histogram = Histogram::default();
        for range in ranges {
            let least = range.least.and_then(|least| u64::try_from(least).ok()).unwrap_or(0);
            histogram.record_many(least.saturating_add(least / 2), range.count);
        }
        match name.split_once(" to ") {
            _ if name == WHOLE => times.whole = histogram,
            Some((from, to)) => {
                times.steps.push(Step { from: from.into(), to: to.into(), times: histogram });
            }
            None => {}
        }
    }
    times.followed = times.steps.iter().map(|step| step.times.count()).max().unwrap_or(0);
    if times.whole.count() > 0 {
        Ok(times)
    } else {
        Err("no frame went from ether_input to ether_output".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_profile::Waited;

    #[test]
    fn distributions_of_dtrace_are_times_in_the_stack() {
        let head = "           value  ------------- Distribution ------------- count\n";
        let text = format!(
            "  ether_input to ether_demux\n{head}  128 | 0\n  256 |@@@ 40\n  512 | 0\n\n  ether_input to ether_output\n{head}  1024 |@@@ 30\n  2048 |@ 1\n"
        );
        let Ok(Artefact::Stages(times)) = timed(&text) else { panic!("{text}") };
        assert_eq!((times.followed, times.whole.count(), times.clock_ns), (40, 31, 0));
        assert_eq!(
            (times.steps[0].from.as_str(), times.steps[0].to.as_str()),
            ("ether_input", "ether_demux")
        );
        assert!(times.whole.quantile(0.5).unwrap().abs_diff(1536) < 50, "{:?}", times.whole);
        for nothing in ["", "dtrace: failed", &text[..text.find("  ether_input to ether_output").unwrap()]] {
            timed(nothing).unwrap_err();
        }
    }

    #[test]
    fn the_json_of_a_linerate_there_is_read() {
        let mut waited = Waited { waits: 2, lost: 1, ..Waited::default() };
        waited.profile.add("a;b", 700);
        let printed = serde_json::json!({"waits": 2, "lost": 1, "profile": {"a;b": 700}, "functions": []});
        assert_eq!(of_linerate(locks::NAME)(&printed.to_string()), Ok(Artefact::Waited(waited)));
        let dropped = [("drop X in y".to_string(), 3)].into();
        assert_eq!(of_linerate("drops")("{\"drop X in y\": 3}"), Ok(Artefact::Counters(dropped)));
        assert!(of_linerate(stages::NAME)("Half of the frames").unwrap_err().contains("same linerate"));
    }
}
