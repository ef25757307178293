//! The kernel of a host under load, observed by programs of the host: its profiler, linerate, DTrace.

#[cfg(test)]
mod tests;

use crate::collectors::{Begins, Observed, UnderLoad};
use linerate_hosts::systems::Kernel;
use linerate_linux::telemetry::{drops, locks, profile, stages};
use linerate_measure::collector::{Artefact, Collector, Counters};
use linerate_measure::record::{StackTimes, Step};
use linerate_profile::{
    Distribution, Folded, Observed as Printed, Profile, Sampled, Source, Waited, fold, observed,
    works_on_frames,
};
use linerate_stats::histogram::Histogram;

/// Bytes of a program's output that are kept.
const MOST_STACKS: usize = 64 << 20;

/// A script for FreeBSD's dtrace: times from ether_input to ether_output.
pub const STAGES_OF_FREEBSD: &str = include_str!("telemetry/stages.d");

/// Others, for waits for locks and for frames that are dropped. They print stacks, the innermost function first and before it the lock or
/// the reason.
const LOCKS_OF_FREEBSD: &str = include_str!("telemetry/locks.d");
const DROPS_OF_FREEBSD: &str = include_str!("telemetry/drops.d");

/// Observes a host's kernel while a load lasts, by a program of the host.
pub struct Probed {
    name: &'static str,
    under: UnderLoad,
    read: Read,
}

/// The line by which the shell says that perf samples, and DTrace that its probes are there.
const BEGUN: &str = "begun";

/// Reads a program's output and its errors.
type Read = fn(&str, &str) -> Result<Artefact, String>;

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
    /// The collector of this name (see [`linerate_linux::telemetry`]), with the programs of this kernel.
    pub fn new(host: Observed, kernel: Kernel, name: &'static str) -> Probed {
        let (command, begins, read): (_, _, Read) = match name {
            profile::NAME => {
                let begins = match kernel {
                    Kernel::Linux => Begins::Announced,
                    Kernel::FreeBsd => Begins::Printed,
                    _ => Begins::Started,
                };
                (profiler(kernel), begins, sampled)
            }
            stages::NAME if kernel == Kernel::FreeBsd => {
                (Ok(dtrace("-Z", STAGES_OF_FREEBSD)), Begins::Printed, timed)
            }
            locks::NAME if kernel == Kernel::FreeBsd => {
                (Ok(dtrace("", LOCKS_OF_FREEBSD)), Begins::Printed, waited)
            }
            drops::NAME if kernel == Kernel::FreeBsd => {
                (Ok(dtrace("", DROPS_OF_FREEBSD)), Begins::Printed, dropped)
            }
            _ if kernel != Kernel::Linux => {
                (Err(no_probes(kernel, name)), Begins::Started, sampled)
            }
            _ => {
                let command = format!(
                    "command -v linerate >/dev/null || {{ echo 'there is no linerate on it: install it there' >&2; exit 1; }}; \
                     exec linerate profile {name} --format json --duration 1h --announce"
                );
                (Ok(command), Begins::Announced, of_linerate(name))
            }
        };
        let under = UnderLoad::one(host, command, MOST_STACKS, begins);
        Probed { name, under, read }
    }
}

/// The line for the shell that samples the stacks of a kernel until it is interrupted.
fn profiler(kernel: Kernel) -> Result<String, String> {
    match kernel {
        // The interrupt goes to the shell alone. perf starts its command once it samples, and ends its file when it is told to end; then
        // the shell prints it. -N: perf makes no ~/.debug, where it would keep copies of programs.
        Kernel::Linux => Ok(format!(
            "f=$(mktemp) || exit; perf record -q -a -g --all-kernel -BN -F 997 -o \"$f\" -- sh -c 'echo {BEGUN} >&2; exec sleep 3600' \
             >/dev/null & p=$!; trap 'kill -TERM $p' INT TERM; wait $p; wait $p; perf script -i \"$f\"; rm -f \"$f\""
        )),
        // DTrace prints its aggregations when it is interrupted. arg0 is the kernel's program counter, 0 in user space.
        Kernel::FreeBsd => Ok(dtrace(
            "-q -x stackframes=64 -x aggsize=16m",
            "profile-997 /arg0/ { @[stack()] = count(); }\n",
        )),
        // btrace prints its maps when it is interrupted.
        Kernel::OpenBsd => Ok("[ \"$(sysctl -n kern.allowdt)\" = 1 ] || \
             { echo 'kern.allowdt is 0: set it in /etc/sysctl.conf, and reboot' >&2; exit 1; }; \
             exec btrace -e 'profile:hz:99 { @[kstack] = count(); }'"
            .into()),
        Kernel::NetBsd => Err("linerate knows no profiler of this system's kernel".into()),
    }
}

/// Why a kernel does not tell a part.
fn no_probes(kernel: Kernel, name: &str) -> String {
    match (kernel, name) {
        // dt_prov_static.c has no such tracepoint; dt_dev.c has kprobes only `#ifdef DDBPROF`, and btrace sees each event in user space.
        (Kernel::OpenBsd, locks::NAME) => "OpenBSD has no probe of waits: the time in mtx_enter, rw_enter and __mp_lock is in the samples".into(),
        (Kernel::OpenBsd, drops::NAME) => "OpenBSD has no probe of dropped frames: its counters (netstat -s) are in each trial".into(),
        (Kernel::OpenBsd, _) => "OpenBSD's kernel has no probes of functions (option DDBPROF), and btrace reads each event in user space: too slow for frames".into(),
        _ => format!("linerate knows no program of {} that finds them", kernel.name()),
    }
}

/// The line for the shell that runs a script of FreeBSD's DTrace. dtrace(1) would load its modules by itself, which changes the host.
fn dtrace(options: &str, script: &str) -> String {
    format!(
        "kldstat -q -m dtrace || {{ echo 'DTrace is not loaded there, and linerate loads nothing unasked: kldload dtraceall, or modules = \
         [\"dtraceall\"] in the variants of the plan' >&2; exit 1; }}; exec dtrace {options} -x switchrate=10hz -s /dev/stdin <<'END_OF_SCRIPT'\n{script}\nBEGIN {{ printf(\"{BEGUN}\\n\\n\"); }}\nEND_OF_SCRIPT\n"
    )
}

impl Collector for Probed {
    fn name(&self) -> &'static str {
        self.name
    }

    fn before(&mut self) -> Result<(), String> {
        self.under.before()
    }

    fn after(&mut self) -> Result<Vec<Artefact>, String> {
        let [said, errors] = self.under.end_one()?;
        let said = said.trim_start_matches(BEGUN);
        if said.trim().is_empty() {
            // A shell's word about perf, which it has told to end.
            let told = ["", BEGUN, "Terminated"];
            let last = errors.lines().rfind(|line| !told.contains(&line.trim()));
            let last = last.unwrap_or("it printed nothing: no sample was taken");
            return Err(last.trim_start_matches("linerate: ").into());
        }
        Ok(vec![(self.read)(said, &errors)?])
    }
}

/// The stacks of an output, the outermost function first, and what printed them. DTrace writes a module before each function, which
/// profiles of other systems do not have.
fn stacks(output: &str) -> Result<(Profile, Folded), String> {
    let mut folded = Vec::new();
    let found =
        fold(output.as_bytes(), &mut folded).map_err(|fault| format!("its output: {fault}"))?;
    let mut plain = Profile::default();
    for (stack, n) in Profile::of_folded(&String::from_utf8_lossy(&folded)).stacks() {
        let names: Vec<&str> = stack
            .split(';')
            .map(|name| name.rsplit('`').next().unwrap_or(name))
            .collect();
        plain.add(&names.join(";"), n);
    }
    Ok((plain, found))
}

fn sampled(output: &str, _: &str) -> Result<Artefact, String> {
    let (all, found) = stacks(output)?;
    let mut profile = Profile::default();
    for (stack, samples) in all.stacks() {
        let innermost = stack.rsplit(';').next().unwrap_or_default();
        if !IDLE
            .iter()
            .any(|idle| innermost.split('.').next() == Some(idle))
        {
            profile.add(stack, samples);
        }
    }
    let event = found.event.unwrap_or_else(|| match found.source {
        Source::Dtrace => "DTrace's profile-997".into(),
        Source::Btrace => "btrace's profile:hz:99".into(),
        _ => "perf's clock or cycles".into(),
    });
    let not_counted =
        Some("events of the CPUs: linerate counts them in the embedded lab only".into());
    Ok(Artefact::Profile(Sampled {
        profile,
        event,
        not_counted,
        ..Sampled::default()
    }))
}

/// Reads the JSON of `linerate profile`.
fn of_linerate(name: &str) -> Read {
    match name {
        stages::NAME => |said, _| read_there(serde_json::from_str(said).map(Artefact::Stages)),
        locks::NAME => |said, _| read_there(serde_json::from_str(said).map(Artefact::Waited)),
        _ => |said, _| read_there(serde_json::from_str(said).map(Artefact::Counters)),
    }
}

fn read_there(found: serde_json::Result<Artefact>) -> Result<Artefact, String> {
    found.map_err(|error| format!("its output: {error}; install the same linerate there"))
}

/// Reads what DTrace's script printed.
fn timed(output: &str, _: &str) -> Result<Artefact, String> {
    match observed(output.as_bytes()).map_err(|fault| format!("its output: {fault}"))? {
        Printed::Distributions(all) => stack_times(&all).map(Artefact::Stages),
        Printed::Locks(_) => Err("its output has no times".into()),
    }
}

/// The stacks of a script of FreeBSD, and the number that it printed beside them.
fn found(output: &str) -> Result<(Profile, u64), String> {
    let number = output.lines().find_map(|line| line.strip_prefix("found:"));
    let number = number
        .ok_or("its output is not whole: DTrace did not come to its end")?
        .trim();
    match number {
        "" => Ok((Profile::default(), 0)),
        number => Ok((
            stacks(output)?.0,
            number
                .parse()
                .map_err(|_| format!("its output: 'found:{number}'"))?,
        )),
    }
}

/// Waits for locks: those of frames, and beside them those of the scheduler, of timers and of DTrace itself. DTrace says on standard error how many it could not keep: `dtrace: 17 aggregation drops on CPU 0`.
fn waited(output: &str, errors: &str) -> Result<Artefact, String> {
    let (all, mut waits) = found(output)?;
    let (mut profile, mut beside, mut times) = (Profile::default(), Profile::default(), None);
    for (stack, n) in all.stacks() {
        match stack.strip_suffix(";times") {
            Some(stack) => *times.get_or_insert(0u64) += if works_on_frames(stack) { n } else { 0 },
            None if works_on_frames(stack) => profile.add(stack, n),
            None => beside.add(stack, n),
        }
    }
    waits = times.unwrap_or(waits);
    let lost = |line: &str| {
        let (n, kind) = line.strip_prefix("dtrace: ")?.split_once(' ')?;
        n.parse::<u64>()
            .ok()
            .filter(|_| kind.contains("drops on CPU"))
    };
    let lost = errors.lines().filter_map(lost).fold(0, u64::saturating_add);
    Ok(Artefact::Waited(Waited {
        waits,
        lost,
        profile,
        beside,
    }))
}

/// Drops, as `drop REASON in FUNCTION`; DTrace's own functions may stand before it.
fn dropped(output: &str, _: &str) -> Result<Artefact, String> {
    let mut counters = Counters::new();
    for (stack, frames) in found(output)?.0.stacks() {
        let mut names = stack.rsplit(';');
        let reason = names.next().unwrap_or_default();
        let function = names.find(|name| !name.contains("dtrace") && !name.starts_with("sdt_"));
        *counters
            .entry(format!(
                "drop {reason} in {}",
                function.unwrap_or("the kernel")
            ))
            .or_default() += frames;
    }
    Ok(Artefact::Counters(counters))
}

/// The whole way of frames through FreeBSD's stack.
const WHOLE: &str = "ether_input to ether_output";

/// Distributions by powers of two as histograms: each value counts as the middle of its range.
fn stack_times(found: &[Distribution]) -> Result<StackTimes, String> {
    let mut times = StackTimes::default();
    for Distribution { name, ranges } in found {
        let mut histogram = Histogram::default();
        for range in ranges {
            let least = range
                .least
                .and_then(|least| u64::try_from(least).ok())
                .unwrap_or(0);
            histogram.record_many(least.saturating_add(least / 2), range.count);
        }
        match name.split_once(" to ") {
            _ if name == WHOLE => times.whole = histogram,
            Some((from, to)) => {
                times.steps.push(Step {
                    from: from.into(),
                    to: to.into(),
                    times: histogram,
                });
            }
            None => {}
        }
    }
    times.followed = times
        .steps
        .iter()
        .map(|step| step.times.count())
        .max()
        .unwrap_or(0);
    if times.whole.count() > 0 {
        Ok(times)
    } else {
        Err("no frame went from ether_input to ether_output".into())
    }
}
