//! `linerate apply`, and `apply --revert`: advice and tunings carried out, and taken back.

mod tuned;

use super::advise::Purpose;
use super::facts::{Source, configuration};
use crate::args::Printed;
use crate::output::{INTERRUPTED, result, tell};
use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use linerate_advise::{Item, State, lines};
use linerate_hosts::dut_changes::{Check, Read, Step, content, content_of, file};
use linerate_hosts::systems::Kernel;
use linerate_measure::tuning::LeftOut;
use linerate_remote::{Changes, ExecutionTarget, Order, mark};
use linerate_report::pages::{self, Applied, FileChange, Recommended, ValueChange};
use linerate_runner::interrupt;
use linerate_runner::testbed::hosts::state;
use serde_json::json;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

/// Carry out recommendations of `linerate advise`, or the changes that a tuning proved to help, at once and for the next boot.
#[derive(Debug, Args)]
#[command(mut_arg("place", |arg| arg.index(1).value_name("HOST|TUNING").help("A host over ssh [default: this machine]; or a campaign of `tune`: its folder, last, or a name that `linerate list` shows")))]
#[command(mut_arg("sudo", |arg| arg.help("Read and change the settings of the host with `sudo -n`")))]
#[command(after_help = "Examples:
  sudo linerate apply --all --dry-run         what would change, in which file
  sudo linerate apply --item linux-backlog    shows this change (a name that `linerate advise` has printed), asks you, and makes it
  linerate apply root@router --all --yes      on a host over ssh, without asking you
  linerate apply root@router --revert         everything as it was before
  sudo linerate apply --revert --list         what can be taken back
  sudo linerate apply last --dry-run          if the newest campaign is a tuning: what it would change
  linerate apply last root@router             the same changes, on a host over ssh
  linerate apply last --lab LAB.toml          on the DUT of a lab

From a campaign of `tune`, linerate makes only the changes that are proven to help (docs/tuning.md). Changes that only the lab can have, such as a \
rule set, are named and left out.

Before it makes a change, linerate shows it and writes down the present value. --revert restores this value, also \
after a reboot, or if linerate was killed in between. --all leaves out \
recommendations that help some machines and harm others: measure them (`linerate tune`), then name them with \
--item. With --namespace, no file is written: the changes last as long as the namespace.

Exit status: 0 done, or nothing to do; 1 a change failed, and those before it are taken back; 2 bad arguments; 130 Ctrl-C.")]
pub struct Apply {
    #[command(flatten)]
    pub source: Source,

    /// Where the changes of a tuning are made: a host over ssh [default: this machine]
    #[arg(index = 2, value_name = "HOST", conflicts_with_all = ["namespace", "all", "items", "revert"])]
    pub on: Option<String>,

    /// Make the changes of a tuning on the DUT of this lab
    #[arg(long, value_name = "FILE", conflicts_with_all = ["on", "namespace", "interfaces", "all", "items", "revert"])]
    pub lab: Option<PathBuf>,

    /// Carry out all recommendations that need no measurement first. Without a tuning or --revert, give --all or --item
    #[arg(long, conflicts_with = "items")]
    pub all: bool,

    #[command(flatten)]
    pub purpose: Purpose,

    /// Show the changes, and make none
    #[arg(short = 'n', long)]
    pub dry_run: bool,

    /// Do not ask
    #[arg(short, long, conflicts_with = "dry_run")]
    pub yes: bool,

    /// Change the running system only: no file. --namespace implies this: what is changed lasts as long as the namespace
    #[arg(long)]
    pub until_boot: bool,

    /// Take back what `apply` and `tune --keep` changed, the last change first
    #[arg(long, conflicts_with_all = ["all", "items", "dry_run", "until_boot"])]
    pub revert: bool,

    /// With --revert: list the changes, and take none back
    #[arg(long, requires = "revert")]
    pub list: bool,

    #[command(flatten)]
    pub printed: Printed,
}

/// Take back what `linerate apply` and `linerate tune --keep` changed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sudo linerate apply --revert --list       the changes that can be taken back
  sudo linerate apply --revert              take them back
  linerate apply root@router --revert       on a host, over ssh

The last change is taken back first. A file that someone has changed since then stays as it is, and is named.

Exit status: 0 everything is as it was; 1 something could not be taken back, and stays written down;
2 bad arguments.")]
pub struct Revert {
    #[command(flatten)]
    pub source: Source,

    /// List the changes, and take none back
    #[arg(long)]
    pub list: bool,

    #[command(flatten)]
    pub printed: Printed,
}

/// Runs `apply`.
///
/// # Errors
/// The host cannot be read, an item is unknown, or a change failed.
pub fn apply(args: &Apply) -> Result<ExitCode> {
    if args.revert {
        let Apply {
            source,
            list,
            printed,
            ..
        } = args;
        return revert(&Revert {
            source: source.clone(),
            list: *list,
            printed: printed.clone(),
        });
    }
    if let Some((folder, tuned)) = tuned::of(args)? {
        return tuned::apply(args, &folder, &tuned);
    }
    if args.on.is_some() || args.lab.is_some() {
        bail_usage!(
            "a second host and --lab are for the changes of a tuning: name its folder first, or last"
        );
    }
    if !args.all && args.purpose.items.is_empty() {
        let place = args.source.place.as_deref();
        if let Some(place) = place.filter(|place| !place.contains('@')) {
            bail_usage!(
                "there is no folder {place}, and no tuning of that name (`linerate list` shows them). If it is a host, say what to change there: --all, or --item with a name that `linerate advise {place}` shows"
            );
        }
        let place = place.map(|place| format!(" {place}"));
        bail_usage!(
            "name recommendations with --item, or take --all: `linerate advise{}` lists them",
            place.unwrap_or_default()
        );
    }
    let place = Arc::new(args.source.target()?);
    let Some(facts) = args.source.facts()? else {
        return Ok(ExitCode::from(INTERRUPTED));
    };
    let found = configuration(&facts)?;
    let kernel = Kernel::named(&found.system.kernel).context("the host's system is not known")?;
    let advice = args.purpose.advice(found)?;
    let (chosen, left_out) = chosen(args, &advice.items)?;
    let host = Host {
        place,
        sudo: args.source.sudo,
        kernel,
    };
    let shown = Applied {
        left_out: left_out.into_iter().map(Recommended::from).collect(),
        ..Applied::default()
    };
    carry_out(args, &args.source, &host, &chosen, shown)
}

/// Shows the changes of items, asks, and makes them. `shown`: what the page says beside them.
fn carry_out(
    args: &Apply,
    source: &Source,
    host: &Host,
    chosen: &[&Item],
    shown: Applied,
) -> Result<ExitCode> {
    let until_boot = args.until_boot(source);
    // A namespace shares the settings of the machine with all others.
    let (shared, own): (Vec<&Item>, Vec<&Item>) = chosen
        .iter()
        .partition(|item| source.namespace.is_some() && item.is_of_machine());
    let chosen = &own;
    let not_kept = shared.into_iter().map(|item| LeftOut {
        name: item.id.clone(),
        reason: "it is a setting of the whole machine, and not of a network namespace".into(),
    });
    let (steps, applied) = host.planned(until_boot, chosen)?;
    let applied = Applied {
        left_out: shown.left_out,
        tuning: shown.tuning,
        not_kept: shown.not_kept.into_iter().chain(not_kept).collect(),
        dry_run: args.dry_run,
        in_namespace: source.namespace.is_some(),
        ..applied
    };
    let page = || pages::applied(source.name(), &applied);
    if steps.is_empty() || args.dry_run {
        return result(&args.printed, || &applied, page);
    }
    let ask = !args.yes && std::io::stdin().is_terminal();
    if !args.yes && !ask {
        bail_usage!(
            "there is no terminal to ask on: --yes makes the changes, --dry-run shows them"
        );
    }
    result(&args.printed, || &applied, page)?;
    if ask && !confirmed()? {
        tell("nothing is changed");
        return Ok(ExitCode::SUCCESS);
    }
    let (again, _) = host.planned(until_boot, chosen)?;
    if again != steps {
        bail!(
            "{} has changed since this was shown: nothing is changed, try again",
            source.name()
        );
    }
    host.make(source, &steps, applied.at_boot)
}

/// Runs `revert`.
///
/// # Errors
/// The host cannot be reached, or a change cannot be taken back.
pub fn revert(args: &Revert) -> Result<ExitCode> {
    interrupt::install();
    let place = Arc::new(args.source.target()?);
    let uname = place
        .run(&Order::new("uname -s"), Some(&interrupt::INTERRUPTED))?
        .text()
        .to_lowercase();
    let kernel = Kernel::named(uname.trim()).context("the host's system is not known")?;
    let boot = mark(&place, kernel);
    let host = Host {
        place,
        sudo: args.source.sudo,
        kernel,
    };
    let mut changes = host.changes(&args.source)?;
    // Changes that a boot has undone are gone.
    changes.in_boot(boot)?;
    let what: Vec<String> = changes
        .pending()
        .iter()
        .rev()
        .map(|undoing| undoing.what.clone())
        .collect();
    let name = args.source.name();
    if !args.list {
        changes
            .undo()?
            .waits(&revert_of(&args.source))
            .into_iter()
            .for_each(|said| tell(format!("{name}: {said}")));
    }
    let record = || json!({ "host": name, "reverted": !args.list, "changes": &what });
    result(&args.printed, record, || {
        pages::reverted(name, &what, !args.list)
    })
}

/// The command that takes changes back.
fn revert_of(source: &Source) -> String {
    let namespace = source
        .namespace
        .as_ref()
        .map(|name| format!(" --namespace {name}"));
    let place = source
        .place
        .as_ref()
        .map(|place| format!(" {place}"))
        .or(namespace);
    format!("linerate apply{} --revert", place.unwrap_or_default())
}

/// The items to be carried out, and those that `--all` leaves out.
fn chosen<'a>(args: &Apply, items: &'a [Item]) -> Result<(Vec<&'a Item>, Vec<&'a Item>)> {
    if args.all {
        let changes = items.iter().filter(|item| item.is_change());
        return Ok(changes.partition(|item| item.state != State::Measure));
    }
    if let Some(item) = items.iter().find(|item| !item.is_change()) {
        bail_usage!(
            "'{}' has nothing to change: `linerate advise --item {0}` says why",
            item.id
        );
    }
    Ok((items.iter().collect(), Vec::new()))
}

fn confirmed() -> Result<bool> {
    eprint!("linerate: make these changes? [y/N] ");
    std::io::stderr()
        .flush()
        .context("writing to the terminal")?;
    let mut answer = String::new();
    std::io::stdin()
        .read_line(&mut answer)
        .context("reading the terminal")?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// A host whose settings are changed.
struct Host {
    place: Arc<ExecutionTarget>,
    sudo: bool,
    kernel: Kernel,
}

impl Apply {
    /// Whether no file is written: those of a namespace would be the host's.
    fn until_boot(&self, source: &Source) -> bool {
        self.until_boot || source.namespace.is_some()
    }
}

impl Host {
    /// The journal of its changes.
    fn changes(&self, source: &Source) -> Result<Changes> {
        let folder: PathBuf = state("applied")?;
        Ok(Changes::open(
            Arc::clone(&self.place),
            source.name(),
            None,
            &folder,
            self.sudo,
        )?)
    }

    /// The steps of items, and what they change, by the host's present values.
    fn planned(&self, until_boot: bool, items: &[&Item]) -> Result<(Vec<Step>, Applied)> {
        let (mut steps, mut applied) = (Vec::new(), Applied::default());
        for item in items {
            applied.items.push((*item).into());
            for setting in &item.settings {
                let Some(runtime) = &setting.runtime else {
                    applied.at_boot |= setting.lasting.is_some() && !until_boot;
                    continue;
                };
                let step = runtime
                    .step(self.kernel)
                    .map_err(|why| anyhow!("{}: {why}", item.id))?;
                // One word of ethtool(8) may set two offloads.
                if steps.contains(&step) {
                    continue;
                }
                let value = self.value(&step)?;
                let is_made =
                    |check: &Check| value.as_ref().is_some_and(|value| check.is_met_by(value));
                if step.check.as_ref().is_some_and(is_made) {
                    continue;
                }
                if setting.lasting.is_none() && setting.place.is_none() && !until_boot {
                    applied.until_boot.push(step.what.clone());
                }
                let now = step
                    .read
                    .as_ref()
                    .map(|read| self.ask(read, &step.what))
                    .transpose()?;
                let now = setting.now.clone().or(value).or(now).unwrap_or_default();
                let wanted = setting.wanted.clone().unwrap_or_default();
                applied.values.push(ValueChange {
                    what: step.what.clone(),
                    now: now.trim().into(),
                    wanted,
                });
                steps.push(step);
            }
        }
        let files = lines::files(items);
        for (path, lasting) in files.into_iter().filter(|_| !until_boot) {
            let answer = self.ask(&content_of(path), path)?;
            let before = content(&answer);
            let text = lines::changed(before, &lasting);
            if before == Some(text.as_str()) {
                continue;
            }
            applied.files.push(FileChange::between(path, before, &text));
            steps.push(file(path, text).map_err(|why| anyhow!(why))?);
        }
        Ok((steps, applied))
    }

    /// The present value of the setting of a step alone: what is read for its undoing may have others beside it.
    fn value(&self, step: &Step) -> Result<Option<String>> {
        let check = step.check.as_ref();
        check
            .map(|check| self.ask(&check.read, &step.what))
            .transpose()
    }

    /// Makes all changes or none, and says how to take them back.
    fn make(&self, source: &Source, steps: &[Step], at_boot: bool) -> Result<ExitCode> {
        let mut changes = self.changes(source)?;
        let stop = Some(&interrupt::INTERRUPTED);
        let name = revert_of(source);
        let before = changes.pending().len();
        if let Err(error) = changes.make(steps, true, stop) {
            let stays = |undoing| {
                anyhow!("{error}; and of the changes before it some stay ({undoing}): {name}")
            };
            changes.undo_to(before).map_err(stays)?;
            if interrupt::interrupted() {
                tell("interrupted: the changes are taken back");
                return Ok(ExitCode::from(INTERRUPTED));
            }
            bail!("{error}; the changes before it are taken back");
        }
        let boot = if at_boot {
            ", some of them from the next boot on"
        } else {
            ""
        };
        tell(format!(
            "{} changes made{boot}; to take them back: {name}",
            steps.len()
        ));
        Ok(ExitCode::SUCCESS)
    }

    fn ask(&self, read: &Read, what: &str) -> Result<String> {
        let order = Order::program(&read.program.argv).by_sudo(self.sudo);
        let finished = self.place.run(&order, Some(&interrupt::INTERRUPTED))?;
        let answer = finished
            .is_success()
            .then(|| read.form.value(&finished.text()))
            .flatten();
        answer.with_context(|| {
            let errors = finished.errors();
            let said = errors.lines().next().unwrap_or("no value");
            format!("{what}: the present value cannot be read ({said}), so nothing is changed")
        })
    }
}
