//! `linerate profile`: what this machine's kernel does under load.

use super::flame::{print_functions, write_picture};
use crate::prelude::*;
use linerate_linux::host::cpu::online_cpus;
use linerate_linux::telemetry::drops::Drops;
use linerate_linux::telemetry::locks::Locks;
use linerate_linux::telemetry::profile::{FREQUENCY, Sampler};
use linerate_linux::telemetry::stages::Stages;
use linerate_measure::collector::Artefact;
use linerate_profile::{Function, Picture, Sampled, Waited, observed};
use linerate_remote::telemetry::STAGES_OF_FREEBSD;
use std::time::Instant;

/// Look at this machine's kernel under load: functions, times in the stack, waits for locks, drops.
#[derive(Args)]
#[command(after_help = "Examples:
  sudo linerate profile                             ten seconds of all CPUs: functions and their callers
  sudo linerate profile --cpus 2,3 --duration 30s   the CPUs that forward
  sudo linerate profile -o busy.svg                 a flame graph as well
  sudo linerate profile --folded > after.stack      folded stacks, to compare: linerate flame before.stack after.stack
  sudo linerate profile stages                      how long frames are in the stack, step by step
  sudo linerate profile locks --folded              who waits for locks: stacks, in nanoseconds
  sudo linerate profile drops                       frames that the kernel drops, and its reasons
  linerate profile --dtrace-script > stages.d       the same question for FreeBSD: dtrace -Zs stages.d -o stages.txt
  linerate profile --read stages.txt                the distributions that dtrace printed, with P50 to P99.99
  linerate profile --read locks.txt                 waits that lockstat printed: lockstat -s 10 -o locks.txt sleep 10

Samples use the CPU's cycle counter where there is one, else a timer (cpu-clock; in most virtual machines). Profile
under load, but not in the trials that measure rates: profiling takes time from the frames.

Exit status: 0 printed; 1 no privilege, or no samples; 2 bad arguments; 130 interrupted.")]
pub struct Profile {
    /// Kind of profile
    #[arg(value_enum, default_value_t = What::Functions)]
    what: What,

    /// How long to look
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    duration: Duration,

    /// Samples a second on each CPU
    #[arg(long, value_name = "N", default_value_t = FREQUENCY, value_parser = clap::value_parser!(u64).range(1..=20_000))]
    frequency: u64,

    /// CPUs to look at, for functions and locks [default: all]
    #[arg(long, value_name = "LIST", value_parser = cpu_list)]
    cpus: Option<Cpus>,

    /// Print this many functions
    #[arg(long, value_name = "N", default_value_t = 20)]
    top: usize,

    /// Print folded stacks instead: samples, or nanoseconds of waits
    #[arg(long, conflicts_with_all = ["top", "json", "format"])]
    folded: bool,

    /// Write a flame graph (SVG) of functions or waits to this file as well
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// Instead of profiling, print what a tool of another system found, from this file: distributions of DTrace's quantize(), or
    /// waits of lockstat; - is standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["what", "duration", "frequency", "cpus", "folded", "out"])]
    read: Option<PathBuf>,

    /// Print a script for FreeBSD's dtrace instead: times from ether_input to ether_output
    #[arg(long, exclusive = true)]
    dtrace_script: bool,

    /// Print a message on standard error once profiling has begun, for scripts that start a load at that moment
    #[arg(long, conflicts_with = "read")]
    announce: bool,

    #[command(flatten)]
    printed: Printed,
}

/// Waits as JSON.
#[derive(Serialize)]
struct Waits<'a> {
    #[serde(flatten)]
    waited: &'a Waited,
    functions: &'a [Function],
}

/// Kinds of profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum What {
    /// Functions that take the CPUs' time
    Functions,
    /// Times of frames in the stack, between tracepoints
    Stages,
    /// Waits for locks
    Locks,
    /// Frames that the kernel drops, and its reasons
    Drops,
}

/// How often is looked whether the user wants to stop.
const LOOK: Duration = Duration::from_millis(50);

/// Runs the verb.
///
/// # Errors
/// No privilege, a kernel that lacks something, or nothing was sampled.
pub fn run(args: &Profile) -> Exit {
    if args.dtrace_script {
        return all_of(STAGES_OF_FREEBSD);
    }
    if let Some(path) = &args.read {
        let found = observed(input::reader(path)?)
            .map_err(|fault| anyhow!("{}: {fault}", input::name(path)))?;
        return result(
            &args.printed,
            || &found,
            || pages::observed(&found, args.top),
        );
    }
    let online = online_cpus().context("cannot tell which CPUs are online")?;
    let cpus = args
        .cpus
        .as_ref()
        .map_or(online.clone(), |Cpus(cpus)| cpus.clone());
    if let Some(cpu) = cpus.iter().find(|cpu| !online.contains(cpu)) {
        bail_usage!("--cpus: CPU {cpu} is not online; {} CPUs are", online.len());
    }
    if (args.folded || args.out.is_some()) && matches!(args.what, What::Stages | What::Drops) {
        bail_usage!("--folded and --out: only functions and locks have stacks");
    }
    interrupt::install();
    let probe = match args.what {
        What::Functions => Sampler::load(&cpus, args.frequency),
        What::Stages => Stages::load(&[]),
        What::Locks => Locks::load(&cpus),
        What::Drops => Drops::load(&[]),
    };
    let mut probe = probe.context("cannot look at this machine's kernel")?;
    probe
        .start()
        .context("cannot look at this machine's kernel")?;
    if args.announce {
        tell("looking at this machine's kernel");
    }
    let progress = Progress::new(args.duration, true);
    let began = Instant::now();
    while began.elapsed() < args.duration && !interrupt::interrupted() {
        std::thread::sleep(LOOK.min(args.duration));
        progress.advance(began.elapsed());
    }
    let took = began.elapsed();
    probe.stop();
    let found = probe.found().context("cannot read what was found")?;
    drop(progress);
    let title = format!("{} CPUs for {:.1} s", cpus.len(), took.as_secs_f64());
    match found {
        Artefact::Profile(sampled) => functions(args, &sampled, title),
        Artefact::Waited(waited) => waits(
            args,
            &waited,
            title,
            took.as_nanos() as f64 * cpus.len() as f64,
        ),
        Artefact::Stages(times) if times.followed == 0 => {
            bail!("no frame entered the stack; is there any load?")
        }
        Artefact::Stages(times) => result(&args.printed, || &times, || pages::stack_times(&times)),
        Artefact::Counters(drops) => result(&args.printed, || &drops, || pages::dropped(&drops)),
        Artefact::Cpus(_)
        | Artefact::Senders(_)
        | Artefact::Output(_)
        | Artefact::Facts(_)
        | Artefact::Rules(_) => {
            unreachable!("no probe finds these")
        }
    }
}

fn functions(args: &Profile, sampled: &Sampled, title: String) -> Exit {
    told_as_lost(sampled.lost, "samples");
    if sampled.profile.samples() == 0 {
        bail!(
            "there are no samples of the kernel: {} of user space; is there any load?",
            sampled.user
        );
    }
    let picture = Picture {
        title,
        subtitle: Some(sampled.event.clone()),
        unit: "samples".into(),
    };
    if stacks(args, &sampled.profile, picture)? {
        DONE
    } else {
        print_functions(
            &sampled.profile,
            Some(&sampled.event),
            args.top,
            &args.printed,
        )
    }
}

fn waits(args: &Profile, waited: &Waited, title: String, cpus_ns: f64) -> Exit {
    told_as_lost(waited.lost, "waits");
    let picture = Picture {
        title,
        subtitle: Some("waits for locks".into()),
        unit: "ns".into(),
    };
    if waited.waits > 0 && stacks(args, &waited.profile, picture)? {
        return DONE;
    }
    let (all, ns) = (waited.functions(), waited.profile.samples());
    let most = &all[..all.len().min(args.top)];
    let json = || Waits {
        waited,
        functions: most,
    };
    result(&args.printed, json, || {
        pages::lock_waits(ns, waited.waits, most, Some(cpus_ns))
    })
}

/// Draws the stacks, and prints them if that is all that is wanted.
fn stacks(args: &Profile, profile: &linerate_profile::Profile, picture: Picture) -> Result<bool> {
    if let Some(path) = &args.out {
        write_picture(path, &linerate_profile::flame_graph(profile, picture)?)?;
    }
    if args.folded {
        profile
            .lines()
            .iter()
            .for_each(|line| print(&format!("{line}\n")));
    }
    Ok(args.folded)
}

fn told_as_lost(lost: u64, what: &str) {
    if lost > 0 {
        tell(format_args!(
            "{lost} {what} found no room for their stack and are not counted"
        ));
    }
}
