//! `linerate conduct`: the tests of Conductor, the coordinator of "Measure Twice, Code Once".

use crate::args::formats;
use crate::output::faulty_page;
use crate::prelude::*;
use linerate_hosts::phases::{Action, Design, End, Phase, Report, Undone};
use linerate_import::conductor::{
    self, DEFAULT_LIMIT_S, Form, MOST_BYTES, MOST_TRIALS, Options, Recorder, Test, Trial, Worker,
    phase_name,
};
use linerate_linux::net::Netns;
use linerate_linux::records::{TrialLog, utc_now};
use linerate_remote::{Driver, ExecutionTarget, Notice, RemoteError, Target};
use linerate_report::format::Format;
use linerate_runner::interrupt::{Hosts, INTERRUPTED as STOP};
use std::net::IpAddr;
use std::sync::atomic::Ordering;

#[derive(Args)]
#[command(after_help = "Examples:
  linerate conduct conductor.cfg --dry-run                  what would be done, host by host, phase by phase
  linerate conduct conductor.cfg --dry-run --format json    the same for programs
  linerate conduct conductor.cfg                            over ssh, to the addresses of the players
  linerate conduct conductor.cfg --map client1=root@lynx1 --map 192.168.5.163=lynx3
  linerate conduct conductor.cfg --phases run collect --workers client1 client3 --trials 1
  sudo linerate conduct conductor.cfg --local               in the network namespaces client1, client2, ...

Both of Conductor's vocabularies are read: [Clients] and [Master], [Workers] and [Coordinator]. Files of players are looked
for beside the test, then in the working directory. linerate uses the system's ssh with your keys, agent and configuration;
the hosts need not run Conductor's player. If chosen, the reset phase always runs, even after Ctrl-C.
docs/conductor.md describes the format and the differences from Conductor.

Exit status: 0 all steps of all trials succeeded, or were shown; 1 a step failed, a host was lost or not
reached, or the test cannot be read;
2 the test has faults, or bad arguments (nothing is run); 130 interrupted.")]
pub struct Conduct {
    /// The test: its main file, with [Test] and [Clients] or [Workers]
    #[arg(value_name = "TEST.cfg")]
    test: PathBuf,

    /// Number of trials, instead of the number that the test names
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_TRIALS)))]
    trials: Option<u32>,

    /// Phases to carry out
    #[arg(short, long, value_name = "PHASE", num_args = 1.., value_delimiter = ',', default_value = "all", value_parser = phases())]
    phases: Vec<Option<Phase>>,

    /// Workers that take part [default: all]
    #[arg(short = 'c', long, visible_alias = "clients", value_name = "NAME", num_args = 1.., value_delimiter = ',')]
    workers: Vec<String>,

    /// Time limit of steps that have none of their own
    #[arg(long, value_name = "SECONDS", default_value_t = DEFAULT_LIMIT_S, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    limit: u32,

    /// Show the steps, and run nothing
    #[arg(long)]
    dry_run: bool,

    /// How results are printed; json is a line for each trial [default: what the test says, or text]
    #[arg(short, long, value_name = "FORMAT", value_parser = formats())]
    format: Option<&'static dyn Format>,

    /// Short for --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,

    /// ssh destination of a worker, by the worker's name or its player's address; may be repeated
    #[arg(long, value_name = "NAME=SSH-DESTINATION", value_parser = mapping, conflicts_with = "local")]
    map: Vec<(String, String)>,

    /// Run on this machine: each worker in the network namespace of its name, or in no namespace if its address is a loopback
    /// address
    #[arg(long, conflicts_with_all = ["accept_new_keys", "ssh_config"])]
    local: bool,

    #[command(flatten)]
    ssh: Ssh,

    /// New file for the records, a line of JSON for each trial [default: linerate-results/TIME-NAME.jsonl]
    #[arg(short, long, alias = "output", value_name = "FILE")]
    out: Option<PathBuf>,
}

impl Conduct {
    /// The phases that are asked for, in their order.
    pub fn wanted(&self) -> Vec<Phase> {
        let asked = |phase: &Phase| {
            self.phases
                .iter()
                .any(|name| name.is_none_or(|p| p == *phase))
        };
        Phase::ALL.into_iter().filter(asked).collect()
    }
}

/// `NAME=SSH-DESTINATION`.
fn mapping(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, to)) if !name.is_empty() && !to.is_empty() => {
            Ok((name.to_string(), to.to_string()))
        }
        _ => Err("write NAME=SSH-DESTINATION, such as client1=root@lynx1".into()),
    }
}

/// A phase as Conductor calls it; `None` is all of them.
fn phases() -> impl TypedValueParser<Value = Option<Phase>> {
    let names = Phase::ALL.into_iter().map(phase_name).chain(["all"]);
    PossibleValuesParser::new(names).map(|name| {
        Phase::ALL
            .into_iter()
            .find(|phase| phase_name(*phase) == name)
    })
}

/// Runs the verb.
///
/// # Errors
/// The main file cannot be read, or records cannot be written.
pub fn run(args: &Conduct) -> Exit {
    let options = Options {
        limit_s: args.limit,
        workers: args.workers.clone(),
    };
    let mut test =
        read(&args.test, &options)?.map_err(|faults| faulty_page(&page(&args.test, &faults)))?;
    test.trials = args.trials.unwrap_or(test.trials);
    let by_test = || {
        named(if test.form == Some(Form::Json) {
            "json"
        } else {
            "text"
        })
    };
    let format = if args.json {
        named("json")
    } else {
        args.format.unwrap_or_else(by_test)
    };
    if args.dry_run {
        let phases = args.wanted();
        match format.name() {
            "json" => {
                test.retain(&phases);
                print_json(&test)?;
            }
            _ => show(format, &pages::conduct(&test, &phases)),
        }
        return DONE;
    }
    let found = if args.local { local(&test) } else { Vec::new() };
    let unfit = found
        .iter()
        .filter_map(|place| place.as_ref().err().cloned());
    let wrong: Vec<String> = unused_mappings(args, &test)
        .into_iter()
        .chain(unfit)
        .collect();
    if !wrong.is_empty() {
        return Err(usage(pages::ascii(&wrong.join("\nlinerate: "))));
    }
    interrupt::install();
    let found = if args.local {
        found
    } else {
        over_ssh(args, &test)
    };
    let (found, errors): (Vec<_>, Vec<_>) = found.into_iter().partition(Result::is_ok);
    if errors.is_empty() {
        return carry(args, &test, found.into_iter().flatten().unzip(), format);
    }
    if interrupted() {
        return exit(INTERRUPTED);
    }
    errors
        .into_iter()
        .filter_map(Result::err)
        .for_each(|error| tell(pages::ascii(&error)));
    exit(FAILED)
}

/// Reads a test and the files of its players.
fn read(main: &Path, options: &Options) -> Result<Result<Test, Vec<Diagnostic>>> {
    let bytes = contents(main).with_context(|| input::cannot_read("the test ", main))?;
    let name = main.to_string_lossy();
    Ok(conductor::read(&name, options, |file| {
        if file == name {
            Ok(bytes.clone())
        } else {
            contents(&find(main, file)).map_err(|error| error.to_string())
        }
    }))
}

/// A player's file. Conductor looks for it in the working directory, where its tests are beside their players' files.
fn find(main: &Path, file: &str) -> PathBuf {
    let beside = main.parent().unwrap_or(Path::new("")).join(file);
    let here = PathBuf::from(file);
    if !beside.exists() && here.exists() {
        here
    } else {
        beside
    }
}

/// Content of a file.
fn contents(path: &Path) -> std::io::Result<Vec<u8>> {
    linerate_linux::files::read(path, MOST_BYTES)
}

fn page(main: &Path, faults: &[Diagnostic]) -> Document {
    let mut page = Document::default();
    for of_file in faults.chunk_by(|a, b| a.subject == b.subject) {
        let file = of_file[0].subject.as_deref().unwrap_or_default();
        let path = if file == main.to_string_lossy() {
            main.to_path_buf()
        } else {
            find(main, file)
        };
        page.append(pages::diagnostics(&path.display().to_string(), of_file));
    }
    page
}

/// Default folder of the records.
const FOLDER: &str = "linerate-results";

/// Carries a test out where its workers' steps run.
///
/// # Errors
/// Records cannot be written. Hosts have been reset by then.
fn carry(
    args: &Conduct,
    test: &Test,
    (at, places): (Vec<String>, Vec<ExecutionTarget>),
    format: &'static dyn Format,
) -> Exit {
    let records = TrialLog::create(Path::new(FOLDER), &test.name, args.out.as_deref())?;
    let wanted = args.wanted();
    let design = test.design(&wanted);
    let names = test.workers.iter().map(|worker| worker.name.as_str());
    let hosts = wanted
        .contains(&Phase::Reset)
        .then(|| Hosts::announced(names));
    let mut campaign = Campaign {
        test,
        design: design.clone(),
        hosts,
        format,
        recorder: Recorder::new(test, at),
        records,
        progress: Progress::of_steps(),
        trials: 0,
        failed: 0,
        whole: true,
        error: None,
    };
    let mut observer = |notice: Notice<'_>| campaign.observe(&notice);
    Driver::new(design, places, &mut observer).run(&STOP)?;
    campaign.finish()
}

/// A test under way.
struct Campaign<'t> {
    test: &'t Test,
    design: Design,
    /// For the message of an interrupt; `None` where hosts are not reset.
    hosts: Option<&'static Hosts>,
    format: &'static dyn Format,
    recorder: Recorder<'t>,
    records: TrialLog,
    progress: Progress,
    trials: u32,
    failed: u32,
    whole: bool,
    /// Why a trial was not recorded.
    error: Option<anyhow::Error>,
}

impl Campaign<'_> {
    fn observe(&mut self, notice: &Notice<'_>) {
        match notice {
            Notice::Action { at_ns, action } => self.action(*at_ns, action),
            Notice::Trouble { text, .. } => self.say(text),
            Notice::Started(started) => self.recorder.started(started.skew_ns, started.error_ns),
            Notice::Back { host } => self.say(&format!(
                "{}: connected again",
                self.test.workers[*host].name
            )),
            Notice::Began(..) | Notice::Wrote(..) | Notice::Idle(_) => {}
        }
    }

    fn action(&mut self, at_ns: u64, action: &Action) {
        self.changed(action);
        match action {
            Action::Phase { trial, phase } => {
                self.recorder.phase(at_ns, utc_now);
                let (trial, of) = (trial + 1, self.test.trials);
                self.progress
                    .say(format!("trial {trial} of {of}: {}", phase_name(*phase)));
            }
            Action::Report(report) => {
                if let Some(complaint) = report.complaint(&self.design) {
                    self.say(&complaint);
                }
                self.recorder.step(report.clone());
            }
            Action::GivenUp(host) => {
                self.say(&format!(
                    "{}: given up, and the test with it",
                    self.test.workers[*host].name
                ));
            }
            Action::Trial { trial, verdicts } => {
                let trial = self.recorder.trial(*trial, verdicts, interrupted(), at_ns);
                if let Err(error) = self.trial(&trial) {
                    self.error.get_or_insert(error);
                    // A trial that is not kept is not worth its time: no other one is begun.
                    STOP.store(true, Ordering::Relaxed);
                }
            }
            Action::Start(_) | Action::End(..) | Action::Over => {}
        }
    }

    /// Notes which hosts wait for their reset.
    fn changed(&self, action: &Action) {
        let Some(hosts) = self.hosts else { return };
        let resets = |host: usize| self.test.workers[host].steps(Phase::Reset).len();
        match action {
            Action::Start(step) if step.phase != Phase::Reset && resets(step.host) > 0 => {
                hosts.changed(step.host, true);
            }
            Action::Report(Report {
                step,
                end:
                    End {
                        may_still_run: false,
                        ..
                    },
                ..
            }) if step.phase == Phase::Reset && step.step + 1 == resets(step.host) => {
                hosts.changed(step.host, false);
            }
            Action::Trial { verdicts, .. } => {
                let back = verdicts
                    .iter()
                    .enumerate()
                    .filter(|(_, verdict)| verdict.undone != Undone::No);
                back.for_each(|(host, _)| hosts.changed(host, false));
            }
            _ => {}
        }
    }

    fn trial(&mut self, trial: &Trial) -> Result<()> {
        self.trials += 1;
        self.failed += trial.failed_steps();
        self.whole &= trial.is_whole();
        let line = serde_json::to_string(trial)? + "\n";
        self.records.write(trial.trial.into(), &line)?;
        self.progress.aside(|| match self.format.name() {
            "json" => print(&line),
            _ => show(self.format, &pages::conducted(trial)),
        });
        Ok(())
    }

    fn say(&self, what: &str) {
        self.progress.aside(|| tell(pages::ascii(what)));
    }

    fn finish(self) -> Exit {
        let Campaign {
            format,
            records,
            progress,
            trials,
            failed,
            whole,
            error,
            ..
        } = self;
        drop(progress);
        if format.name() != "json" && trials > 0 && error.is_none() {
            show(
                format,
                &pages::conducted_all(trials, failed, &records.path().display().to_string()),
            );
        }
        match error {
            Some(error) => Err(error),
            None if interrupted() => exit(INTERRUPTED),
            None if whole => DONE,
            None => exit(FAILED),
        }
    }
}

/// Name in records of the place where the steps of a worker run, and its target.
type Place = (String, ExecutionTarget);

/// Mappings that fit no worker. Addresses of workers that take no part are unknown here.
fn unused_mappings(args: &Conduct, test: &Test) -> Vec<String> {
    let named = |name: &str| test.workers.iter().any(|worker| is_called(worker, name));
    let unused = args
        .map
        .iter()
        .filter(|(name, _)| args.workers.is_empty() && !named(name));
    let why = "the test has no such worker, nor a player at such an address";
    unused
        .map(|(name, to)| format!("--map {name}={to}: {why}"))
        .collect()
}

fn is_called(worker: &Worker, name: &str) -> bool {
    worker.name == name.to_lowercase() || worker.host == name
}

/// The hosts of all workers, connected several at a time; or why each cannot be reached.
fn over_ssh(args: &Conduct, test: &Test) -> Vec<Result<Place, String>> {
    let targets: Vec<Target> = test
        .workers
        .iter()
        .map(|worker| target(worker, args))
        .collect();
    let connections = ExecutionTarget::connect_all(&targets, Some(&STOP))
        .into_iter()
        .zip(targets);
    let place = |(place, target): (Result<_, RemoteError>, Target)| match place {
        Ok(place) => Ok((target.address, place)),
        Err(error) => Err(error.to_string()),
    };
    connections.map(place).collect()
}

/// A mapping of a worker's name counts more than one of its address.
fn target(worker: &Worker, args: &Conduct) -> Target {
    let by_name = args
        .map
        .iter()
        .rfind(|(name, _)| worker.name == name.to_lowercase());
    let found = by_name.or_else(|| args.map.iter().rfind(|(name, _)| worker.host == *name));
    let mut target = Target::new(found.map_or(&worker.host, |(_, to)| to)).named(&worker.name);
    target.config.clone_from(&args.ssh.ssh_config);
    target.accept_new = args.ssh.accept_new_keys;
    target
}

/// The namespaces of all workers on this machine; or why one cannot run here.
fn local(test: &Test) -> Vec<Result<Place, String>> {
    test.workers.iter().map(of_this_machine).collect()
}

fn of_this_machine(worker: &Worker) -> Result<Place, String> {
    let name = worker.name.clone();
    let (at, netns) = match Netns::open(&worker.name) {
        Ok(netns) => (format!("network namespace {}", netns.label()), Some(netns)),
        Err(_) if is_loopback(&worker.host) => ("this machine".into(), None),
        Err(error) => {
            return Err(format!(
                "{name} ({}) cannot run here: {error}; make the namespace (ip netns add {name}), or leave --local out",
                worker.host
            ));
        }
    };
    Ok((at, ExecutionTarget::Here { name, netns }))
}

fn is_loopback(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost"
        || address
            .parse::<IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}
