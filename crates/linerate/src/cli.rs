//! The command line: what can be asked, and help that teaches by example.

mod bench;
mod benchlab;
mod campaign;
mod compare;
mod conduct;
mod history;
mod import;
mod lab;
mod lab_check;
mod lab_restore;
mod plan;
mod receive;
mod reproduce;
mod rules;
mod run;
mod send;
mod show;
mod stat;
mod values;

pub use bench::Bench;
pub use campaign::CampaignArgs;
pub use compare::{Compare, Share};
pub use conduct::{Conduct, Format};
pub use history::History;
pub use import::{Benchlab, Import, ImportFrom, Netbenches};
pub use lab::{Lab, LabAction, LabExample};
pub use lab_check::LabCheck;
pub use lab_restore::LabRestore;
pub use plan::{Plan, PlanAction};
pub use receive::Receive;
pub use reproduce::Reproduce;
pub use rules::Rules;
pub use run::Run;
pub use send::Send;
pub use show::{Documents, Show};
pub use stat::Stat;
pub use values::{FamilyChoice, PortChoice};

use clap::{Parser, Subcommand};

/// How many packets does this router or firewall forward, why not more, and which setting makes it faster?
#[derive(Debug, Parser)]
#[command(name = "linerate", version, max_term_width = 110, propagate_version = true)]
#[command(after_help = "Start here:
  sudo linerate bench                           this machine's kernel, in half a minute
  sudo linerate bench --variant nft-stateful    what does a stateful firewall cost?
  linerate plan list                            experiments that come with linerate
  sudo linerate run rules --quick               one of them: does the number of rules matter?
  linerate show linerate-results/NAME           the tables of an earlier campaign

Frame lengths include the FCS, as RFC 2544 counts them. Nothing is sent outside namespaces that
linerate made, unless you name an interface as an isolated lab (RFC 6815).")]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Measure how many frames a second this machine's kernel forwards
    ///
    /// Builds a lab of network namespaces (generator, DUT, receiver), measures the tester without a DUT and the kernel's forwarding
    /// in short alternating slices, audits every slice (every frame sent is received or its loss located), and prints rates with
    /// 95 % intervals, what the limit was, and where the records are. Nothing outside the lab is changed.
    Bench(Box<Bench>),
    /// Carry out a plan: variants and factors side by side, in randomised blocks
    ///
    /// A plan (a TOML file) says what is compared with what, under which traffic, how often, and what its author expects. Each
    /// variant gets a DUT of its own in an embedded lab, all take short trials in turn, in blocks of random order, until the
    /// answers are known well enough or the time is used up. A campaign that was stopped goes on with --resume.
    Run(Run),
    /// Experiments as files: list them, check them, or see what they will do
    ///
    /// A plan is a TOML file that says which variants of a device under test are compared, under which traffic, how often, and
    /// what its author expects. docs/plans.md describes the format by example; the experiments of the literature come with linerate.
    Plan(Plan),
    /// Carry out a test of Conductor ("Measure Twice, Code Once") on the hosts of a lab
    ///
    /// Conductor's configuration files name players and the commands that they run in four phases: startup, run, collect, reset. They
    /// are read as they are, in both of Conductor's vocabularies, and everything that is wrong with them is told at once. Commands are
    /// run over ssh, with their limits, on all hosts at once; what became of each is recorded.
    Conduct(Conduct),
    /// Send test frames from an interface, as pkt-gen and trafgen do
    ///
    /// At most so many frames, for at most so long, at a rate or as fast as possible, from a lab of linerate's own or from an
    /// interface that you name as an isolated lab. Every frame carries a sequence number, so that a receiver can tell losses,
    /// duplicates and reordering.
    Send(Box<Send>),
    /// Count test frames at an interface: rate, loss, duplicates, reordering, latency
    ///
    /// Takes the frames of `linerate send` (and, without signature, anybody's) from an interface or a capture file.
    Receive(Box<Receive>),
    /// Keep an embedded lab up, to look at it or to work in it by hand; and the lab files of real labs
    ///
    /// An embedded lab's namespaces get names that `ip netns` knows, and stay until they are taken down. They are written down
    /// before they are made, so that what a killed linerate leaves is cleared by the next. docs/lab-file.md describes lab files.
    Lab(Lab),
    /// Print the tables of a recorded campaign again
    Show(Show),
    /// Say which campaign, variant or file of rates is faster, by how much, and how sure that is
    ///
    /// Takes campaigns, variants of one campaign, or plain files with a number on each line. What was measured side by side is
    /// paired by block, so that drifts of the machine cancel; everything else is compared unpaired. The first is the reference.
    Compare(Compare),
    /// Hold published figures against the published data
    ///
    /// The tables, ministat blocks and plots of the 2018 paper "Tuning FreeBSD for routing and firewalling" and of the BSD Router
    /// Project's lab pages, recomputed from the public archive of runs: the printed figure beside the recomputed one, and whether it
    /// agrees, was cut off where one would round, is wrong in print, or has no data. What else a wrong figure may be (the maximum,
    /// another set's median, a slip) is looked for in the data.
    Reproduce(Reproduce),
    /// Statistics of files of numbers, as ministat(1) prints them
    ///
    /// A drop-in for ministat, and quicker. Each file is a set of numbers, one a line or a column of many; - is standard input, as
    /// is no file at all. Up to 7 sets. All are held against the first by Student's t test. Empty lines, and what stands behind a
    /// word that begins with #, do not count. The output is ministat's, byte for byte, with the arithmetic of the generation that
    /// --era names: published figures can be checked.
    Stat(Stat),
    /// Read what other tools use and leave: results become records, labs become lab files and plans
    Import(Import),
    /// Find where results changed from campaign to campaign, or from revision to revision
    ///
    /// Campaigns of the same machine, variant and frames are put in order of time, results of an archive in order of source
    /// revisions and versions. In each such time line of 8 points or more, changes of the level are looked for; outliers and two
    /// modes are told from them, and of a hundred time lines without a change two to five will seem to have one. Of campaigns the
    /// ratio to tester-baseline is followed, which a machine's drift does not move. docs/history.md says how, why, and how well.
    History(History),
    /// Write rule sets of firewalls, to measure what they cost: pf, ipfw, ipf, iptables, nftables
    ///
    /// Writes a minimal set, stateless, stateful or translating addresses, for the networks of benchmarks, 198.18.0.0/15 (RFC 2544)
    /// and 2001:2::/48 (RFC 5180). To it come rules that match nothing, a table of as many entries as you like, and the settings for
    /// as many states. It goes to standard output while it is made: ten million entries take seconds and no memory.
    ///
    /// Nothing is loaded. Sets of the BSD firewalls let everything else pass; those of Linux drop forwarded frames that are not test
    /// traffic, so load them in a lab.
    Rules(Box<Rules>),
    /// Serve another linerate over standard input and output, on a host of its lab (docs/agent.md)
    #[command(hide = true)]
    Agent,
    /// Write the man page and shell completions into a directory (used by `make install`).
    #[command(hide = true)]
    Documents(Documents),
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
