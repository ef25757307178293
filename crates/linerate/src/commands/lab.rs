//! `linerate lab`: an embedded lab by hand, and the form of the files that describe real ones.

use crate::prelude::*;
use linerate_linux::host::autogroup;
use linerate_linux::host::changes::Consent;
use linerate_linux::host::cpu;
use linerate_linux::lab::{EmbeddedLab, LabSpec, Setup};
use linerate_linux::net::registry::{LabRecord, LabState, Registry};
use linerate_linux::net::userns;
use linerate_measure::experiment::Reboot;
use linerate_measure::record::Mode;
use linerate_plan::settings::Dut;
use linerate_runner::fault;
use linerate_runner::kept::{clear_remains, describe, keep};
use linerate_runner::testbed::hosts::{Site, read};
use std::time::{Duration, Instant};

/// An embedded lab by hand, and the lab files of real ones.
#[derive(Args)]
#[command(after_help = "Examples:
  sudo linerate lab up --variant nft-stateful     interfaces: g0 and r0 are joined directly, g1 and r1 through the DUT
  sudo ip netns exec linerate-dut0 nft list ruleset
  sudo linerate receive --namespace linerate-receiver -i r1 -n 1000 --duration 20s &
  sleep 1; sudo linerate send --namespace linerate-generator -i g1 -n 1000
  sudo linerate lab down
  linerate lab example > LAB.toml                 a lab of real hosts, to begin with
  linerate lab example three-hosts > LAB.toml     generator, DUT and receiver on a host each
  linerate lab example namespaces > LAB.toml      the same in namespaces of this machine, without ssh
  linerate lab example black-box > LAB.toml       a DUT that nobody can log in to
  linerate lab check LAB.toml                     find everything that would spoil a campaign
  linerate lab restore LAB.toml                   undo changes that a killed linerate left on the DUT
  linerate lab schema > lab.schema.json           for editors that complete and check TOML")]
pub struct Lab {
    #[command(subcommand)]
    action: LabAction,
}

/// Verbs of a lab.
#[derive(Subcommand)]
pub enum LabAction {
    /// Build a lab whose namespaces have names, and leave it up
    Up {
        /// Variant of a DUT; may be repeated
        #[arg(long = "variant", value_name = "VARIANT", default_value = "forwarding")]
        variants: Vec<BuiltIn>,
        /// Name of the lab: the namespaces are called NAME-generator, NAME-receiver, NAME-dut0, …
        #[arg(long, default_value = "linerate", value_parser = lab_name)]
        name: String,
        /// Longest frame, in bytes with FCS
        #[arg(long, value_name = "BYTES", default_value_t = 1518, value_parser = clap::value_parser!(u16).range(64..=16_000))]
        longest: u16,
    },
    /// Remove labs that were left up
    Down {
        /// Name of the lab [default: the only one]
        #[arg(long, value_parser = lab_name)]
        name: Option<String>,
        /// All labs
        #[arg(long, conflicts_with = "name")]
        all: bool,
    },
    /// Show the labs that are up
    Status {
        #[command(flatten)]
        printed: Printed,
    },
    /// Print a commented lab file of real hosts to begin with
    Example {
        /// The hosts that the lab consists of
        #[arg(value_enum, value_name = "HOSTS", default_value = "two-hosts")]
        hosts: LabExample,
    },
    Check(LabCheck),
    Restore(LabRestore),
    /// Print the JSON Schema of lab files
    Schema,
}

/// Find everything that would spoil a campaign in a lab of real hosts.
///
/// Connects to all hosts of a lab file by ssh at the same time and compares their answers with the file: whether they can be reached and
/// used as root, clocks, interfaces, links, speeds, flow control, Ethernet addresses, ARP entries on both ends of each cable, routes,
/// forwarding, programs, free disk. All problems are reported together, each with its evidence and a remedy.
///
/// If the lab file says `isolated = true`, a few pings go over each cable and, where the generator has a route, through the DUT. Replies
/// and interface counters show where frames arrive. If there are no faults so far and the tester's hosts have linerate, each port
/// of the tester sends 100 test frames as a campaign does: the page says by which method (xdp, af-xdp, af-packet or a tool), and whether the other end of the cable
/// counted them. Afterwards, everything on the hosts is as before, except that the pings fill their ARP tables. Meanwhile, some drivers take the
/// link down for a moment when linerate loads its XDP program.
#[derive(Args)]
#[command(after_help = "Examples:
  linerate lab example > LAB.toml           a lab file to begin with
  linerate lab check LAB.toml               everything at once; a few seconds
  linerate lab check LAB.toml --no-frames   without sending anything: while others use the cables
  linerate lab check LAB.toml --json | jq '.problems[] | select(.severity == \"fault\")'

linerate uses the system's ssh with your keys, agent, jump hosts and configuration, and never asks for a password. A host whose key is
not in known_hosts is refused: log in once by hand, or use --accept-new-keys. A changed key is always refused.
With a fault, a campaign would fail or measure something else; with a warning, its figures would be doubtful.
docs/lab-file.md describes lab files and shows the check of a lab.

Exit status: 0 no faults; 1 a host or a cable has a fault, or the file cannot be read; 2 the lab file has mistakes, or bad arguments; 130 interrupted.")]
pub struct LabCheck {
    /// The lab file; - is standard input
    #[arg(value_name = "LAB.toml")]
    lab: PathBuf,

    #[command(flatten)]
    printed: Printed,

    /// Send nothing
    #[arg(long)]
    no_frames: bool,

    #[command(flatten)]
    ssh: Ssh,
}

/// Undo changes that a killed linerate left on the DUT of a real lab, or on this machine.
///
/// Before `linerate run` changes a DUT, it records the change on this machine. It undoes the changes at its end, after an error and
/// after Ctrl-C. If it was killed or the DUT was unreachable, the changes remain: this command undoes them, or the next `linerate
/// run` on that DUT does so first. This command changes nothing else.
#[derive(Args)]
#[command(after_help = "Examples:
  linerate lab restore                     undo changes of this machine, and list them
  linerate lab restore LAB.toml            undo changes of the DUT, too
  linerate lab restore LAB.toml --reboot   also reboot the DUT, if settings of the boot were changed

Exit status: 0 restored, or nothing was changed; 1 something was not restored, or takes effect only when the DUT reboots; 2 the lab file
has faults or no DUT, or bad arguments.")]
pub struct LabRestore {
    /// The lab file; without it, only changes of this machine are undone
    #[arg(value_name = "LAB.toml")]
    lab: Option<PathBuf>,

    /// Reboot the DUT if boot settings were changed
    #[arg(long, requires = "lab")]
    reboot: bool,

    /// Begin when the process has ended whose pidfd is the standard input
    #[arg(long, hide = true)]
    succeeds: bool,

    /// Put back the priority of sessions, and nothing else
    #[arg(long, hide = true, requires = "succeeds", conflicts_with = "lab")]
    priority: bool,

    #[command(flatten)]
    ssh: Ssh,
}

/// Lab files to begin with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LabExample {
    /// A DUT between two ports of one tester
    TwoHosts,
    /// A generator, a DUT and a receiver
    ThreeHosts,
    /// An example in network namespaces of this machine
    Namespaces,
    /// A DUT that nobody can log in to
    BlackBox,
}

fn lab_name(text: &str) -> Result<String, String> {
    let fine = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if !text.is_empty()
        && text.len() <= 40
        && text.chars().all(fine)
        && !text.starts_with(['-', '.'])
    {
        Ok(text.to_string())
    } else {
        Err(format!(
            "'{text}' cannot be the name of a lab: use up to 40 letters, digits, '-', '_' or '.'"
        ))
    }
}

/// Runs the verb.
///
/// # Errors
/// The lab cannot be built, found or removed.
pub fn run(args: &Lab) -> Exit {
    match &args.action {
        LabAction::Up {
            variants,
            name,
            longest,
        } => up(variants, name, *longest),
        LabAction::Down { name, all } => down(name.as_deref(), *all),
        LabAction::Status { printed } => status(printed),
        LabAction::Check(args) => check(args),
        LabAction::Restore(args) => restore(args),
        LabAction::Example { hosts } => all_of(match hosts {
            LabExample::TwoHosts => linerate_plan::lab::EXAMPLE,
            LabExample::ThreeHosts => linerate_plan::lab::EXAMPLE_THREE_HOSTS,
            LabExample::Namespaces => linerate_plan::lab::EXAMPLE_NAMESPACES,
            LabExample::BlackBox => linerate_plan::lab::EXAMPLE_BLACK_BOX,
        }),
        LabAction::Schema => all_of(&format!("{:#}\n", linerate_plan::lab::schema())),
    }
}

fn up(variants: &[BuiltIn], name: &str, longest_fcs: u16) -> Exit {
    if !userns::may_administer_networks() {
        bail!("a lab that stays up needs root: sudo linerate lab up");
    }
    clear_remains()?;
    let cpus = cpu::online_cpus().context("asking which CPUs this process may use")?;
    let mut lanes = vec![Setup::of(Dut::TesterBaseline)];
    lanes.extend(variants.iter().map(Setup::from));
    let spec = LabSpec {
        both_ways: false,
        mode: Mode::Inline,
        generator_cpus: cpus.clone(),
        dut_cpus: cpus,
        longest_fcs,
        flows: 0,
        host_changes: Consent::Refused,
        interrupted: None,
    };
    let lab = EmbeddedLab::build(spec, &lanes)?;
    all_of(&keep(&lab, name)?)
}

fn down(name: Option<&str>, all: bool) -> Exit {
    let registry = Registry::of_this_host();
    let cleared = clear_remains()?;
    if name.is_some_and(|name| cleared.iter().any(|cleared| cleared == name)) {
        return DONE;
    }
    let records = registry.list()?.records;
    let chosen: Vec<&LabRecord> = records
        .iter()
        .filter(|r| name.is_none_or(|n| r.name == n))
        .collect();
    if let (Some(name), true) = (name, chosen.is_empty()) {
        bail!("there is no lab named {name}: linerate lab status lists those that are up");
    }
    if name.is_none() && !all && chosen.len() > 1 {
        let names: Vec<&str> = chosen.iter().map(|r| r.name.as_str()).collect();
        bail!(
            "{} labs are up ({}): say which with --name, or --all",
            names.len(),
            names.join(", ")
        );
    }
    if chosen.is_empty() && cleared.is_empty() {
        print("No lab is up.\n");
    }
    for record in chosen {
        registry
            .take_down(record)
            .with_context(|| format!("taking lab {} down", record.name))?;
        print(&format!("Lab {} is down.\n", record.name));
    }
    DONE
}

fn check(args: &LabCheck) -> Exit {
    let file = input::name(&args.lab);
    let lab = read(&args.lab)?;
    interrupt::install();
    let progress = Progress::of_steps();
    let site = Site::reach(lab, args.ssh.approach(), Path::new(""), &progress);
    let checked = site.map(|mut site| {
        progress.say("sending a few frames over each cable");
        let (frames, problems) = site.check(!args.no_frames);
        (site, frames, problems)
    });
    drop(progress);
    if interrupted() {
        return exit(INTERRUPTED);
    }
    let (Site { lab, facts, .. }, frames, problems) = &checked?;
    let (tried, skipped, tester) = (&frames.tried, &frames.skipped, &frames.ports);
    let checked = pages::LabCheck {
        file: &file,
        lab,
        facts,
        problems,
        tried,
        skipped,
        tester,
    };
    result(
        &args.printed,
        || checked.record(),
        || pages::lab_check(&checked),
    )?;
    exit(if problems.iter().any(Diagnostic::is_fault) {
        FAILED
    } else {
        SUCCESS
    })
}

/// How long a killed linerate's session may still be held by a program that it was about to start.
const LET_GO: Duration = Duration::from_secs(30);

fn restore(args: &LabRestore) -> Exit {
    if args.succeeds {
        fault::succeed().context("waiting for the linerate at fault")?;
    }
    if args.priority {
        let began = Instant::now();
        while !autogroup::restore_remains() && began.elapsed() < LET_GO {
            std::thread::sleep(Duration::from_millis(20));
        }
        return DONE;
    }
    if args.lab.is_none() && !userns::may_administer_networks() {
        bail!("changes of this machine are undone as root: sudo linerate lab restore");
    }
    clear_remains()?;
    let Some(file) = &args.lab else {
        return all_of("No change of a killed linerate is left on this machine.\n");
    };
    let lab = read(file)?;
    let Some(dut) = lab.dut().map(|dut| dut.name.clone()) else {
        let file = file.display();
        bail_usage!(
            "{file} has no DUT that linerate can change, and linerate changes no other hosts"
        );
    };
    interrupt::install();
    let progress = Progress::of_steps();
    let mut site = Site::reach(lab, args.ssh.approach(), Path::new(""), &progress)?;
    progress.say("putting everything back");
    let back = site.put_back(if args.reboot {
        Reboot::WhenNeeded
    } else {
        Reboot::Never
    })?;
    drop(progress);
    let Some(earlier) = back else {
        return all_of(&format!("{dut}: nothing is changed there\n"));
    };
    earlier
        .told
        .iter()
        .for_each(|line| print(&format!("{line}\n")));
    if earlier.owes_boot {
        print(&format!(
            "{dut}: it counts from its next boot on only: reboot it, or let --reboot do so\n"
        ));
        return exit(FAILED);
    }
    DONE
}

/// A lab in JSON.
#[derive(Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    record: &'a LabRecord,
    state: LabState,
}

fn status(how: &Printed) -> Exit {
    let listing = Registry::of_this_host().list()?;
    for (path, reason) in &listing.damaged {
        tell(format!("{} is damaged: {reason}", path.display()));
    }
    let shown = |record| Shown {
        record,
        state: record.state(),
    };
    let page = || {
        let mut page = Document::default();
        let text: String = listing
            .records
            .iter()
            .map(|record| describe(record, None))
            .collect();
        page.code(
            if text.is_empty() {
                "No lab is up."
            } else {
                &text
            },
            Tone::Plain,
        );
        page
    };
    result(
        how,
        || listing.records.iter().map(shown).collect::<Vec<_>>(),
        page,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        assert!(lab_name("../x").is_err() && lab_name("").is_err() && lab_name("a b").is_err());
    }
}
