//! The command line: verbs, options, and help that teaches by example.

use crate::commands::{
    advise, agent, apply, bench, calc, compare, conduct, conformance, documents, explain, export, facts,
    flame, history, import, lab, plan_file, profile, receive, report, reproduce, rfc2544, rules, run, search,
    send, serve, show, site, stat, tune, watch,
};
use anyhow::Result;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use std::process::ExitCode;

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
    /// The verb.
    #[command(subcommand)]
    pub command: Command,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Measure how many frames a second this machine's kernel forwards
    ///
    /// Builds a lab of network namespaces (generator, DUT, receiver) and measures in short alternating trials: the tester without a DUT,
    /// and the kernel's forwarding. Every trial is audited: each frame sent is either received or its loss is located. Prints rates with
    /// 95 % intervals, the limit, and where the records are. Nothing outside the lab is changed.
    Bench(Box<bench::Bench>),
    /// Carry out a plan: variants and factors side by side, in randomised blocks
    ///
    /// A plan is a TOML file: which variants and factors are compared, under which traffic, how often, and which results its author
    /// expects. Each variant gets a DUT of its own in an embedded lab. Short trials of all variants alternate, in blocks of random
    /// order, until the intervals are narrow enough or the time is used up. --resume continues a campaign that was stopped.
    Run(run::Run),
    /// Search for the highest rate without loss (NDR) or with little loss (PDR), by MLRsearch (RFC 9971)
    ///
    /// Finds the highest load that meets each goal, with a lower and an upper bound. MLRsearch runs few trials at most loads, and many at
    /// the loads that decide. First linerate measures the tester alone: its rate limits the loads, and stalls of this machine limit the
    /// length of trials. Several variants take turns, trial by trial.
    Search(Box<search::Search>),
    /// Measure by RFC 2544: throughput, latency, frame loss rate, back-to-back frames, system recovery and reset
    ///
    /// Carries out each test alone or all of them, with the sizes, times, repeats and waits of the RFC. Later RFCs add corrections of
    /// back-to-back frames (9004), methods of reset (6201), delay variation (8219) and the forwarding rate (2889).
    Rfc2544(Box<rfc2544::Rfc2544>),
    /// Experiments as files: list them, check them, or see what they will do
    ///
    /// A plan is a TOML file: which variants of a device under test are compared, under which traffic, how often, and which results its
    /// author expects. Plans of published experiments come with linerate. docs/plans.md describes the format by example.
    Plan(plan_file::Plan),
    /// Carry out a test of Conductor ("Measure Twice, Code Once") on the hosts of a lab
    ///
    /// Conductor's configuration files name players and the commands that they run in four phases: startup, run, collect, reset.
    /// linerate reads these files unchanged, in both of Conductor's vocabularies, and reports all faults at once. It runs the commands
    /// over ssh on all hosts at the same time, stops each at its time limit, and records its output and exit status.
    Conduct(conduct::Conduct),
    /// Send test frames from an interface, as pkt-gen and trafgen do
    ///
    /// Sends from a lab of linerate, or from an interface that you name as part of an isolated lab. Every load ends by itself, after a
    /// number of frames or a time. Every frame carries a sequence number, so that a receiver finds loss, duplicates and reordering.
    Send(Box<send::Send>),
    /// Count test frames at an interface: rate, loss, duplicates, reordering, latency
    ///
    /// Counts the frames of `linerate send` at an interface or in a capture file; with --unsigned, frames of any generator.
    Receive(Box<receive::Receive>),
    /// Build an embedded lab to work in by hand; check and restore labs of real hosts
    ///
    /// `lab up` gives the namespaces of an embedded lab names that `ip netns` knows; they stay until `lab down`. Each name is written
    /// down before it is made, so that the next linerate removes what a killed one left. A lab file describes a lab of real hosts:
    /// docs/lab-file.md.
    Lab(lab::Lab),
    /// Print the results of a recorded campaign again
    Show(show::Show),
    /// Write campaigns as one page for a browser
    ///
    /// The page has the verdict, pictures with every trial as a point, all tables, warnings, and how it was measured. It is one file that
    /// loads nothing and needs no script.
    Report(report::Report),
    /// Make a site of many campaigns, or of an archive: machines, cards, topics, comparisons, history, search
    ///
    /// Reads campaigns at any depth, and trees laid out like the public archive. Every campaign has the page of `linerate report`; each
    /// machine, card and topic has a page with its comparisons; time lines show where results changed. The site is a folder of files:
    /// it needs no server, and its pages are complete without scripts. Only the search needs one, and loads its index at the first
    /// letter.
    Site(site::Site),
    /// Write campaigns in the forms that other programs read: JUnit XML, Prometheus, Parquet, SVG
    Export(export::Export),
    /// Show campaigns in a browser, also while they run
    ///
    /// Serves the pages of `linerate report` over HTTP, with a list of all campaigns, the newest first. The page of a running campaign
    /// renews itself. Only this machine can reach it, unless you say otherwise; nothing can be changed through it.
    Serve(serve::Serve),
    /// Compare campaigns, variants or files of rates: which is faster, by how much, and how certain is it?
    ///
    /// Takes campaigns, variants of one campaign, or files with a number on each line. The first is the reference. Trials that ran side
    /// by side are paired by block, so that drift of the machine cancels out; everything else is compared unpaired.
    Compare(compare::Compare),
    /// Recompute published figures from the published data
    ///
    /// Recomputes the tables, ministat blocks and plots of the 2018 paper "Tuning FreeBSD for routing and firewalling" and of the BSD
    /// Router Project's lab pages from the public archive of runs. The printed figure stands beside the recomputed one, marked as
    /// agreeing, cut off instead of rounded, wrong in print, or without data. For a wrong figure linerate searches the data for the
    /// value that was printed instead (the maximum, the median of another set, a slip).
    Reproduce(reproduce::Reproduce),
    /// Statistics of files of numbers, as ministat(1) prints them
    ///
    /// A drop-in replacement for ministat, and faster. Each file is a set of numbers, one on each line or one column of many; - or no
    /// file is standard input. There can be 7 sets; each is compared with the first by Student's t test. Empty lines and text behind a
    /// word that begins with # are ignored. The output is ministat's, byte for byte, with the arithmetic of the generation that --era
    /// names, so that published figures can be checked.
    Stat(stat::Stat),
    /// Say why a DUT forwards no more frames, with the evidence and the setting that changes it
    ///
    /// Looks for known causes in the rates, counters, CPU shares and profiles of a recorded campaign. Each finding has its evidence,
    /// its mechanism, the commands that change it and undo the change, and the gain to expect. A cause that could not be looked for
    /// is listed as not examined.
    Explain(explain::Explain),
    /// Say which requirements of RFC 2544 and later RFCs a campaign met
    ///
    /// Checks each requirement against the records of a campaign and gives the evidence. The result decides what each test may claim.
    Conformance(conformance::Conformance),
    /// Show what matters for forwarding in a host's configuration
    ///
    /// Asks this machine, a network namespace or a host over ssh about CPUs, cards, queues, interrupts, offloads, sysctls, packet filters,
    /// tables and the settings of the next boot, or reads a saved directory. Nothing is changed. Passwords and keys are not asked for.
    Facts(facts::Facts),
    /// Recommend settings for a router, firewall, bridge or end host, with reasons, computations and measured effects
    ///
    /// Applies rules to the facts of a host. Each recommendation has the present and the wanted value, the lines for each file, the
    /// computation with this host's numbers, the gain that was measured elsewhere with source and hardware, its cost, and the plan that
    /// tests it. Outdated settings and settings that the release does not have are named. Nothing is changed.
    Advise(advise::Advise),
    /// Draw profiles of pmcstat, DTrace and perf as flame graphs, or list their functions
    ///
    /// Reads the output of a profiler from any host and prints a flame graph (SVG): each function is as wide as its share of the
    /// samples, above the functions that called it. --top lists functions with their callers, --folded prints folded stacks. Two
    /// profiles give a differential flame graph, in which functions that grew are red.
    Flame(flame::Flame),
    /// Look at this machine's kernel under load: functions, times in the stack, waits for locks, drops
    ///
    /// `functions` interrupts each CPU many times a second and counts the stack of kernel functions that it finds there; --out draws a
    /// flame graph. `stages` follows one frame in 61 through the stack and prints how long each step takes. `locks` measures how long
    /// CPUs and tasks wait for locks, by the functions that want them. `drops` counts the frames that the kernel drops, with its reason.
    Profile(profile::Profile),
    /// Carry out recommendations of `linerate advise`
    ///
    /// Shows what would change in the running system and in which files, asks, and does it. Each change is written down with the value
    /// before it, so that `linerate revert` restores everything: also after a reboot, or if linerate was killed in between.
    Apply(apply::Apply),
    /// Take back what `linerate apply` changed
    Revert(apply::Revert),
    /// Find which of many settings make a DUT faster, and prove it
    ///
    /// Takes a plan whose variants each change one setting. A screening measures a few combinations of all of them; fresh trials confirm
    /// the settings that seem to matter, with a correction for their number; the DUT with those that help is measured beside the DUT
    /// as it is. Says which settings help, which cost, which depend on each other, and which make no difference that the trials show.
    Tune(tune::Tune),
    /// Watch queues, CPUs and losses of this machine or of a host: how many packets, how many dropped, where is the limit?
    ///
    /// A live view of the driver's and the kernel's counters, of this machine, of a network namespace, or of a FreeBSD or Linux host over
    /// ssh: frames and drops of each queue, bit/s at layers 1 and 2, the time of each CPU, interrupts, the network stack, connections,
    /// rules, and every counter that moves. The first lines say how many packets pass, how many are lost, and which part is at its limit.
    Watch(watch::Watch),
    /// Import results of other tools as records, and their labs as lab files and plans
    Import(import::Import),
    /// Find where results changed from campaign to campaign, or from revision to revision
    ///
    /// Puts campaigns of the same machine, variant and frames in order of time, and results of an archive in order of source revision
    /// and version. In each such time line of 8 points or more it finds where the level changed, and tells changes from outliers and
    /// from results that switch between two modes. Of a hundred time lines without a change, two to five show one by chance. For
    /// campaigns it follows the ratio to tester-baseline, which drift of the machine does not move. docs/history.md has the method.
    History(history::History),
    /// Generate rule sets of firewalls, to measure their cost: pf, ipfw, ipf, iptables, nftables
    ///
    /// Writes a minimal set (stateless, stateful, or translating addresses) for the benchmark networks 198.18.0.0/15 (RFC 2544) and
    /// 2001:2::/48 (RFC 5180). Options add rules that match nothing, a table of any size, and settings for a number of states. The text
    /// is written while it is made: ten million entries take seconds and little memory.
    ///
    /// Nothing is loaded. Sets of the BSD firewalls pass all other traffic; those of Linux drop forwarded frames that are not test
    /// traffic, so load them in a lab only.
    Rules(Box<rules::Rules>),
    /// Calculate: line rates, IMIX, budgets, buses, state tables, queues, RSS hashes, windows, trials
    ///
    /// Each calculator prints its result with units, the formula, and the document that the formula comes from. Numbers are written as
    /// people write them (10G, 1.5Mpps, 80ms, 8GiB), and most calculators also answer the reverse question. docs/calc.md has them all.
    Calc(calc::Calc),
    /// Serve another linerate over standard input and output, on a host of its lab (docs/agent.md)
    #[command(hide = true)]
    Agent,
    /// Write the man page and shell completions into a directory (used by `make install`).
    #[command(hide = true)]
    Documents(documents::Documents),
}

/// The definition of the command line.
pub fn definition() -> clap::Command {
    flowing(Cli::command())
}

/// The arguments of this process.
///
/// # Errors
/// They are wrong, or help is wanted: what to print.
pub fn parse() -> Result<Cli, clap::Error> {
    let found = definition().try_get_matches().and_then(|found| Cli::from_arg_matches(&found));
    found.map_err(|error| error.format(&mut definition()))
}

/// The lines of each paragraph below the examples are joined, so that only the width of the terminal breaks them.
fn flowing(command: clap::Command) -> clap::Command {
    let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let mut joined = String::new();
    for line in text.lines() {
        let last = joined.rsplit('\n').next().unwrap_or_default();
        let goes_on = |line: &str| !line.is_empty() && !line.starts_with(' ');
        joined.push(if goes_on(last) && goes_on(line) { ' ' } else { '\n' });
        joined.push_str(line);
    }
    command.after_help(joined.trim_start().to_owned()).mut_subcommands(flowing)
}

impl Command {
    /// Runs the verb.
    ///
    /// # Errors
    /// The reason why it could not do its job.
    pub fn run(self) -> Result<ExitCode> {
        match self {
            Command::Bench(args) => bench::run(&args),
            Command::Send(args) => send::run(&args),
            Command::Receive(args) => receive::run(&args),
            Command::Lab(args) => lab::run(&args),
            Command::Plan(args) => plan_file::run(&args),
            Command::Run(args) => run::run(&args),
            Command::Search(args) => search::run(&args),
            Command::Rfc2544(args) => rfc2544::run(&args),
            Command::Conduct(args) => conduct::run(&args),
            Command::Show(args) => show::run(&args),
            Command::Report(args) => report::run(&args),
            Command::Site(args) => site::run(&args),
            Command::Export(args) => export::run(&args),
            Command::Serve(args) => serve::run(&args),
            Command::Compare(args) => compare::run(&args),
            Command::Reproduce(args) => reproduce::run(&args),
            Command::Stat(args) => stat::run(&args),
            Command::Explain(args) => explain::run(&args),
            Command::Conformance(args) => conformance::run(&args),
            Command::Facts(args) => facts::run(&args),
            Command::Advise(args) => advise::run(&args),
            Command::Flame(args) => flame::run(&args),
            Command::Profile(args) => profile::run(&args),
            Command::Apply(args) => apply::apply(&args),
            Command::Revert(args) => apply::revert(&args),
            Command::Tune(args) => tune::run(&args),
            Command::Watch(args) => watch::run(&args),
            Command::Import(args) => import::run(&args),
            Command::History(args) => history::run(&args),
            Command::Rules(args) => rules::run(&args),
            Command::Calc(args) => calc::run(args),
            Command::Agent => agent::run(),
            Command::Documents(args) => documents::run(&args, definition()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_variant_is_in_the_help_of_bench() {
        let mut all = Cli::command();
        let help = all.find_subcommand_mut("bench").unwrap().render_long_help().to_string();
        for (name, _) in linerate_plan::BuiltIn::list() {
            assert!(help.contains(name), "{name}");
        }
    }
}
