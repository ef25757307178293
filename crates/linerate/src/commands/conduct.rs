//! `linerate conduct`: the tests of Conductor, the coordinator of "Measure Twice, Code Once".

mod carry;
mod places;

use crate::args::{Ssh, formats, named};
use crate::interrupt::{self, interrupted};
use crate::output::{FAILED, INTERRUPTED, faulty_page, print_json, show, tell, usage};
use anyhow::{Context, Result};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use linerate_hosts::phases::Phase;
use linerate_import::conductor::{
    self, DEFAULT_LIMIT_S, Form, MOST_BYTES, MOST_TRIALS, Options, Test, phase_name,
};
use linerate_plan::Diagnostic;
use linerate_report::document::Document;
use linerate_report::format::Format;
use linerate_report::pages;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linerate conduct conductor.cfg --dry-run                  what would be done, host by host, phase by phase
  linerate conduct conductor.cfg --dry-run --format json    the same for programs
  linerate conduct conductor.cfg                            over ssh, to the addresses of the players
  linerate conduct conductor.cfg --map client1=root@lynx1 --map 192.168.5.163=lynx3
  linerate conduct conductor.cfg --phases run collect --workers client1 client3 --trials 1
  sudo linerate conduct conductor.cfg --local               in the network namespaces client1, client2, ...

Both of Conductor's vocabularies are read: [Clients] and [Master], [Workers] and [Coordinator]. Files of players are looked
for beside the test, then in the working directory. linerate uses the system's ssh with your keys, agent and configuration;
no player needs to run. The reset phase is run in every case, also after Ctrl-C.
docs/conductor.md describes the format and the differences to Conductor.

Exit status: 0 all steps of all trials succeeded, or were shown; 1 a step failed, or a host was lost or not reached;
2 the test has faults, or bad arguments (nothing is run); 130 interrupted.")]
pub struct Conduct {
    /// The test: its main file, with [Test] and [Clients] or [Workers]
    #[arg(value_name = "TEST.cfg")]
    pub test: PathBuf,

    /// Number of trials, instead of the test's
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_TRIALS)))]
    pub trials: Option<u32>,

    /// Phases to carry out
    #[arg(short, long, value_name = "PHASE", num_args = 1.., value_delimiter = ',', default_value = "all", value_parser = phases())]
    pub phases: Vec<Option<Phase>>,

    /// Workers that take part [default: all]
    #[arg(short = 'c', long, visible_alias = "clients", value_name = "NAME", num_args = 1.., value_delimiter = ',')]
    pub workers: Vec<String>,

    /// Time limit of steps that have none of their own
    #[arg(long, value_name = "SECONDS", default_value_t = DEFAULT_LIMIT_S, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub limit: u32,

    /// Show the steps, and run nothing
    #[arg(long)]
    pub dry_run: bool,

    /// How results are printed; json is a line for each trial [default: what the test says, or text]
    #[arg(short, long, value_name = "FORMAT", value_parser = formats())]
    pub format: Option<&'static dyn Format>,

    /// ssh destination of a worker, by the worker's name or its player's address; may be repeated
    #[arg(long, value_name = "NAME=SSH-DESTINATION", value_parser = mapping, conflicts_with = "local")]
    pub map: Vec<(String, String)>,

    /// Run on this machine: in the network namespace called like the worker, or outside of any for loopback addresses
    #[arg(long, conflicts_with_all = ["accept_new_keys", "ssh_config"])]
    pub local: bool,

    #[command(flatten)]
    pub ssh: Ssh,

    /// New file for the records, a line of JSON for each trial [default: linerate-results/TIME-NAME.jsonl]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

impl Conduct {
    /// The phases that are asked for, in their order.
    pub fn wanted(&self) -> Vec<Phase> {
        let asked = |phase: &Phase| self.phases.iter().any(|name| name.is_none_or(|p| p == *phase));
        Phase::ALL.into_iter().filter(asked).collect()
    }
}

/// `NAME=SSH-DESTINATION`.
fn mapping(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, to)) if !name.is_empty() && !to.is_empty() => Ok((name.to_string(), to.to_string())),
        _ => Err("write NAME=SSH-DESTINATION, such as client1=root@lynx1".into()),
    }
}

/// A phase as Conductor calls it; `None` is all of them.
fn phases() -> impl TypedValueParser<Value = Option<Phase>> {
    let names = Phase::ALL.into_iter().map(phase_name).chain(["all"]);
    PossibleValuesParser::new(names)
        .map(|name| Phase::ALL.into_iter().find(|phase| phase_name(*phase) == name))
}

/// Runs the verb.
///
/// # Errors
/// The main file cannot be read, or records cannot be written.
pub fn run(args: &Conduct) -> Result<ExitCode> {
    let options = Options { limit_s: args.limit, workers: args.workers.clone() };
    let mut test = read(&args.test, &options)?.map_err(|faults| faulty_page(&page(&args.test, &faults)))?;
    test.trials = args.trials.unwrap_or(test.trials);
    let by_test = || named(if test.form == Some(Form::Json) { "json" } else { "text" });
    let format = args.format.unwrap_or_else(by_test);
    if args.dry_run {
        let phases = args.wanted();
        match format.name() {
            "json" => {
                test.retain(&phases);
                print_json(&test)?;
            }
            _ => show(format, &pages::conduct(&test, &phases)),
        }
        return Ok(ExitCode::SUCCESS);
    }
    let found = if args.local { places::local(&test) } else { Vec::new() };
    let unfit = found.iter().filter_map(|place| place.as_ref().err().cloned());
    let wrong: Vec<String> = places::unused_mappings(args, &test).into_iter().chain(unfit).collect();
    if !wrong.is_empty() {
        return Err(usage(pages::ascii(&wrong.join("\nlinerate: "))));
    }
    interrupt::install();
    let found = if args.local { found } else { places::over_ssh(args, &test) };
    let (found, errors): (Vec<_>, Vec<_>) = found.into_iter().partition(Result::is_ok);
    if errors.is_empty() {
        return carry::carry(args, &test, found.into_iter().flatten().unzip(), format);
    }
    if interrupted() {
        return Ok(ExitCode::from(INTERRUPTED));
    }
    errors.into_iter().filter_map(Result::err).for_each(|error| tell(pages::ascii(&error)));
    Ok(ExitCode::from(FAILED))
}

/// Reads a test and the files of its players.
fn read(main: &Path, options: &Options) -> Result<Result<Test, Vec<Diagnostic>>> {
    let bytes = contents(main).with_context(|| format!("cannot read the test {}", main.display()))?;
    let name = main.to_string_lossy();
    Ok(conductor::read(
        &name,
        options,
        |file| if file == name { Ok(bytes.clone()) } else { player(main, file) },
    ))
}

/// A player's file. Conductor looks for it in the working directory, where its tests are beside their players' files.
fn find(main: &Path, file: &str) -> PathBuf {
    let beside = main.parent().unwrap_or(Path::new("")).join(file);
    let here = PathBuf::from(file);
    if !beside.exists() && here.exists() { here } else { beside }
}

fn player(main: &Path, file: &str) -> Result<Vec<u8>, String> {
    contents(&find(main, file)).map_err(|e| e.to_string())
}

/// Content of a file.
fn contents(path: &Path) -> std::io::Result<Vec<u8>> {
    linerate_linux::files::read(path, MOST_BYTES)
}

fn page(main: &Path, faults: &[Diagnostic]) -> Document {
    let mut page = Document::default();
    for of_file in faults.chunk_by(|a, b| a.subject == b.subject) {
        let file = of_file[0].subject.as_deref().unwrap_or_default();
        let path = if file == main.to_string_lossy() { main.to_path_buf() } else { find(main, file) };
        page.append(pages::diagnostics(&path.display().to_string(), of_file));
    }
    page
}
