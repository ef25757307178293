//! `linerate profile`: which functions of the kernel take this machine's time.

use super::flame::{print_functions, write_picture};
use crate::args::{Cpus, Printed, cpu_list, duration};
use crate::interrupt;
use crate::output::{print, tell};
use crate::progress::Progress;
use anyhow::{Context, Result, bail};
use clap::Args;
use linerate_linux::host::cpu::online_cpus;
use linerate_linux::profile::{FREQUENCY, Sampler};
use linerate_profile::Picture;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Sample the stacks of this machine's kernel: which functions take the time.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sudo linerate profile                             ten seconds of all CPUs: functions and their callers
  sudo linerate profile --cpus 2,3 --duration 30s   the CPUs that forward
  sudo linerate profile -o busy.svg                 a flame graph as well
  sudo linerate profile --folded > after.stack      folded stacks; linerate flame before.stack after.stack compares

Samples cycles where the machine counts them, else the CPU's clock (most virtual machines). Profile under load, and not in the
same trials as rates: each sample takes time from the frames.

Exit status: 0 printed; 1 no privilege, or no samples; 2 bad arguments; 130 interrupted.")]
pub struct Profile {
    /// How long to sample
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    pub duration: Duration,

    /// Samples a second on each CPU
    #[arg(long, value_name = "N", default_value_t = FREQUENCY, value_parser = clap::value_parser!(u64).range(1..=20_000))]
    pub frequency: u64,

    /// CPUs to sample [default: all]
    #[arg(long, value_name = "LIST", value_parser = cpu_list)]
    pub cpus: Option<Cpus>,

    /// Print this many functions
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub top: usize,

    /// Print folded stacks instead
    #[arg(long, conflicts_with_all = ["top", "json", "format"])]
    pub folded: bool,

    /// Write a flame graph (SVG) to this file as well
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,

    #[command(flatten)]
    pub printed: Printed,
}

/// How often is looked whether the user wants to stop.
const LOOK: Duration = Duration::from_millis(50);

/// Runs the verb.
///
/// # Errors
/// No privilege, no perf events, or nothing was sampled.
pub fn run(args: &Profile) -> Result<ExitCode> {
    let online = online_cpus().context("cannot tell which CPUs are online")?;
    let cpus = args.cpus.as_ref().map_or(online.clone(), |Cpus(cpus)| cpus.clone());
    if let Some(cpu) = cpus.iter().find(|cpu| !online.contains(cpu)) {
        bail_usage!("--cpus: CPU {cpu} is not online; {} CPUs are", online.len());
    }
    interrupt::install();
    let mut sampler = Sampler::load().context("cannot sample this machine")?;
    sampler.start(&cpus, args.frequency).context("cannot sample this machine")?;
    let progress = Progress::new(args.duration);
    let began = Instant::now();
    while began.elapsed() < args.duration && !interrupt::interrupted() {
        std::thread::sleep(LOOK.min(args.duration));
        progress.advance(began.elapsed());
    }
    let took = began.elapsed();
    sampler.stop();
    let sampled = sampler.sampled().context("cannot resolve the functions")?;
    drop(progress);
    if sampled.lost > 0 {
        tell(format_args!("{} samples found no room for their stack and are not counted", sampled.lost));
    }
    if sampled.profile.samples() == 0 {
        bail!("there are no samples of the kernel: {} of user space; is there any load?", sampled.user);
    }
    if let Some(path) = &args.out {
        let title = format!("{} CPUs for {:.1} s", cpus.len(), took.as_secs_f64());
        let picture = Picture { title, subtitle: Some(sampled.event.clone()), unit: "samples".into() };
        write_picture(path, &linerate_profile::flame_graph(&sampled.profile, picture)?)?;
    }
    if args.folded {
        sampled.profile.lines().iter().for_each(|line| print(&format!("{line}\n")));
        return Ok(ExitCode::SUCCESS);
    }
    print_functions(&sampled.profile, Some(&sampled.event), args.top, &args.printed)
}
