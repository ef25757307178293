//! The command line: verbs, options, and help that teaches by example.

use crate::commands::{
    advise, agent, apply, archive, bench, bisect, calc, compare, conduct, conformance, documents,
    explain, export, facts, flame, history, import, lab, list, plan_file, profile, receive, report,
    reproduce, rfc2544, rules, run, search, send, serve, show, site, stat, tune, watch,
};
use crate::output::Exit;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

/// Columns of the help at most.
const MOST_COLUMNS: usize = 110;

/// How many packets does this router or firewall forward, why not more, and which setting makes it faster?
#[derive(Parser)]
#[command(name = "linerate", version = env!("LINERATE_VERSION"), max_term_width = MOST_COLUMNS, propagate_version = true)]
pub struct Cli {
    /// The verb.
    #[command(subcommand)]
    pub command: Command,
}

/// The verbs.
#[derive(Subcommand)]
pub enum Command {
    /// How many frames a second does this machine's kernel forward?
    ///
    /// Builds an embedded lab of network namespaces (generator, DUT, receiver) and measures in short alternating trials: the tester
    /// (generator and receiver) alone, and the kernel's forwarding. Every trial is audited: a trial is valid if each frame sent is received, or
    /// its loss is located. Prints rates with 95 % intervals, what limited the rates, and where the records are. With neither
    /// --allow-host-changes nor --keep, it changes only one setting of the host, and only while it measures: the CPU priority of your
    /// shell's session.
    Bench(Box<bench::Bench>),
    /// Carry out a plan: compare variants in alternating trials
    ///
    /// A plan is a TOML file: which variants and factors are compared, under which traffic, how often, and which results its author
    /// expects. On this machine, each variant gets a DUT of its own in an embedded lab of network namespaces; --lab names the hosts of a
    /// real lab. Trials alternate: a block is one trial of each cell (a variant with its traffic), in random order. The campaign (all blocks, and their records)
    /// ends when the confidence intervals are narrow enough or the time is used up. --resume continues a campaign that was stopped.
    Run(run::Run),
    /// The no-drop rate (NDR), partial-drop rate (PDR), or your own goal
    ///
    /// Finds the highest load that meets each goal, with a lower and an upper bound. By default it uses MLRsearch (RFC 9971), which needs only a few trials for most of
    /// the loads, and many for the loads that decide the result. First linerate measures the tester alone: its rate limits the
    /// loads. linerate also measures how often this machine stalls (stops for a moment, and loses frames): the more often, the shorter
    /// the trials. Several variants take turns, trial by trial.
    Search(Box<search::Search>),
    /// Which rule file, kernel or setting made a DUT slower?
    ///
    /// Searches an ordered list: rule files, the commits of one rule file, kernels, or the levels of any factor of a plan. First linerate
    /// measures both ends of the list. If the last element is slower than the first, it looks for the first slow one: each
    /// candidate alternates with both ends, until its side is known, and the next candidate halves the rest. The result is the culprit
    /// with its probability, or undecided.
    Bisect(Box<bisect::Bisect>),
    /// The tests of RFC 2544 and of later RFCs
    ///
    /// Carries out one test or all of them, with the sizes, times, repeats and waits of the RFC. Later RFCs add corrections to the
    /// back-to-back test (9004), methods for the reset test (6201), delay variation (8219) and the forwarding rate (2889).
    Rfc2544(Box<rfc2544::Rfc2544>),
    /// List plans, check them, or see what they will do
    ///
    /// A plan is a TOML file: which variants of a device under test are compared, under which traffic, how often, and which results its
    /// author expects. Plans of published experiments come with linerate. docs/plans.md describes the format by example.
    Plan(plan_file::Plan),
    /// Carry out a test that was written for the tool Conductor
    ///
    /// Conductor coordinates the hosts of a lab for a test. Its configuration files name workers (each has a player, its host) and the commands that they run in four phases: startup, run, collect, reset.
    /// linerate reads these files unchanged, with Conductor's section names of 2014 and of 2025, and reports all faults at once. It
    /// runs the commands over ssh on all hosts at the same time, stops each command at its time limit, and records its output and
    /// exit status.
    Conduct(conduct::Conduct),
    /// Send test frames from an interface
    ///
    /// Sends from an interface in a lab of linerate, or from one that --isolated-lab names. Every load ends by itself, after a
    /// number of frames or a time. Every frame carries a sequence number, so that a receiver finds loss, duplicates and reordering.
    Send(Box<send::Send>),
    /// Count test frames at an interface, or in a capture
    ///
    /// Counts the frames of `linerate send` at an interface or in a capture file; with --unsigned, frames of any generator.
    Receive(Box<receive::Receive>),
    /// Check and restore labs of hosts; build an embedded lab to work in
    ///
    /// `lab up` builds an embedded lab whose namespaces have names that `ip netns` knows. They stay until `lab down`. If linerate is
    /// killed while it builds the lab, the next linerate removes the remains: each name is recorded first. A lab file describes a lab
    /// of real hosts: docs/lab-file.md.
    Lab(lab::Lab),
    /// The recorded campaigns, with their answers
    List(list::List),
    /// Show a campaign's results again: one screen, whole page, or HTML
    Show(show::Show),
    /// Write campaigns and tunings as one page for a browser
    ///
    /// The page has the verdict, plots with every trial as a point, all tables, warnings, and how it was measured. It is one file that
    /// loads nothing and is complete without its script.
    #[command(hide = true)]
    Report(report::Report),
    /// A web site of many campaigns, or of an archive
    ///
    /// Reads campaigns in subfolders at any depth, and folders laid out like the public archive. Every campaign has the page of
    /// `linerate show --format html`; each machine, card and topic has a page with its comparisons; time lines show where results changed. The
    /// site is a folder of files: it needs no server, and its pages are complete without scripts. Only the search needs a script,
    /// which loads the search index when you type the first letter.
    Site(site::Site),
    /// Campaigns as JUnit, TAP, Prometheus, Parquet or SVG
    Export(export::Export),
    /// Show campaigns in a browser, also while they run
    ///
    /// Serves the pages of `linerate show --format html` over HTTP, with a list of all campaigns, the newest first. The page of a running campaign
    /// refreshes itself. Only this machine can reach the server, unless you use --allow-network. Nothing can be changed through it.
    Serve(serve::Serve),
    /// Which is faster, by how much, and how certain is it?
    ///
    /// Takes campaigns, variants of one campaign, or files with a number on each line. The first is the reference. The trials of a
    /// block (one trial of each cell; a cell is a variant with its traffic and the values of its factors) ran close in time: they are compared in pairs, so that drift of the machine cancels out.
    /// Trials of different campaigns are compared unpaired. If both campaigns are of the same machine, linerate compares twice: the rates,
    /// and the rates divided by the tester's own. A difference counts only if both show it.
    Compare(compare::Compare),
    /// Recompute published results from the published data
    ///
    /// From the public archive of runs, recomputes the tables, ministat blocks and plots of the 2018 paper "Tuning FreeBSD for
    /// routing and firewalling" and of the BSD Router Project's lab pages. Each printed number stands beside the recomputed one
    /// with a verdict: it agrees, was cut off instead of rounded, is wrong in print, or has no data. For a wrong number linerate
    /// searches the data for the source of the printed value: the maximum, the median of another set, or a slip in the last digit.
    Reproduce(reproduce::Reproduce),
    /// Statistics of files of numbers, as ministat(1) prints them
    ///
    /// A drop-in replacement for ministat, and faster. Each file is a set of numbers: one number on each line, or one column of a
    /// table. Without a file, or for -, stat reads standard input. There can be up to 7 sets; each is compared with the first by
    /// Student's t test. Empty lines are ignored; a word that begins with # is a comment, up to the end of the line. The output is
    /// ministat's, byte for byte, with the arithmetic of the generation that --era names, so that published results can be checked.
    Stat(stat::Stat),
    /// Why does a DUT not forward more? With evidence and remedy
    ///
    /// Looks for known causes in the rates, counters, CPU shares and profiles of a recorded campaign. Each finding has its evidence,
    /// its mechanism, the commands that make a change and undo it, and the gain to expect. If the records cannot show whether a
    /// cause was there, it counts as not examined: --full lists these.
    Explain(explain::Explain),
    /// Which requirements of the RFCs did a campaign meet?
    ///
    /// Checks each requirement against the records of a campaign and gives the evidence. The result decides which degree
    /// of compliance each test may claim.
    Conformance(conformance::Conformance),
    /// Show those parts of a host's configuration that affect forwarding
    ///
    /// Asks this machine, a network namespace or a host over ssh, or reads a saved folder. The facts are about CPUs, cards, queues,
    /// interrupts, offloads, sysctls, packet filters, tables and the settings of the next boot. Nothing is changed. It asks for
    /// no passwords or keys.
    Facts(facts::Facts),
    /// Recommend settings, with reasons and measured effects
    ///
    /// Compares the host's configuration with linerate's recommendations. Each recommendation has the present and the wanted value, the lines for each
    /// configuration file, the computation with this host's numbers, the gain that was measured elsewhere (with its source and hardware), its cost, and the
    /// plan that tests it. linerate also names settings of the host that are outdated or that its release does not have. Nothing is
    /// changed.
    Advise(advise::Advise),
    /// Flame graphs of campaigns, perf, pmcstat and DTrace
    ///
    /// Reads the output of a profiler from any host and prints a flame graph (SVG): each function is as wide as its share of the
    /// samples, above the functions that called it. --top lists functions with their callers, --folded prints folded stacks. Two
    /// profiles give a differential flame graph, in which functions that grew are red.
    Flame(flame::Flame),
    /// Functions, stages, locks and drops of this kernel under load
    ///
    /// `functions` interrupts each CPU many times a second and counts the stack of kernel functions that it finds there; --out draws a
    /// flame graph. `stages` follows one frame in 61 through the stack and prints how long each step takes. `locks` measures how
    /// long CPUs and tasks wait for locks, and in which functions. `drops` counts the frames that the kernel drops, for each of its
    /// reasons.
    Profile(profile::Profile),
    /// Make the changes that advise or tune found, or take them back
    ///
    /// Carries out recommendations of `linerate advise`, or the changes that a tuning proved to help. Shows what would change in the running system and in which files, asks you, and makes the changes. Each change is written
    /// down with the value before it, so that `linerate apply --revert` restores everything: also after a reboot, or if linerate
    /// was killed in between.
    Apply(apply::Apply),
    /// Take back what `linerate apply` changed
    #[command(hide = true)]
    Revert(apply::Revert),
    /// Which of many settings make a DUT faster?
    ///
    /// Takes a plan whose variants each change one setting; several variants may try different values of one setting. A screening measures a few combinations of the changes. Fresh trials
    /// then test the changes that seem to matter; the more changes there are, the clearer an effect must be. Last, the DUT with the changes that
    /// help is measured beside the DUT as it is. The result: which changes help, which make the DUT slower, which depend on each
    /// other, and which show no difference.
    Tune(tune::Tune),
    /// Queues, CPUs and losses of a host, live
    ///
    /// A live view of the counters of drivers and kernel, on this machine, in a network namespace, or on a FreeBSD or Linux host
    /// over ssh. It has frames and drops of each queue, bit/s at layers 1 and 2, the time of each CPU, interrupts, the network
    /// stack, connections, rules, and every counter that moves. The first lines say how many packets pass, how many are lost, and
    /// which part is at its limit.
    Watch(watch::Watch),
    /// An archive of campaigns as Parquet, for DuckDB, Polars or Spark
    ///
    /// An archive is a folder of Parquet files by lab, year and month, and needs no server. `add` puts campaigns into it, `check` reads
    /// everything and says what does not agree, `compact` makes one file of the many of a month. docs/archive.md has the layout and the
    /// questions that queries/*.sql answer.
    Archive(archive::Archive),
    /// Import results and labs of other tools
    Import(import::Import),
    /// Between which campaigns or source revisions did results change?
    ///
    /// Puts campaigns of the same machine, variant and frames in order of time, and results of an archive in order of release and source
    /// revision. In each such time line of 8 points or more it finds where the level changed. Outliers, and results that switch
    /// between two modes, do not count as changes. Of a hundred time lines without a change, two to five show a change by chance.
    /// For campaigns it follows rate / tester's own rate, in which machine drift cancels out. docs/history.md has the
    /// method.
    History(history::History),
    /// Write rule sets of pf, ipfw, ipf, iptables or nftables
    ///
    /// Writes a minimal set (stateless, stateful, or translating addresses) for the benchmark networks 198.18.0.0/15 (RFC 2544) and
    /// 2001:2::/48 (RFC 5180). Options add rules that match nothing, a table of any size, and settings that make room for many
    /// states. linerate writes each rule as soon as it is made: ten million entries take seconds and little memory.
    ///
    /// Nothing is loaded. Sets of the BSD firewalls pass all other traffic; those of Linux drop forwarded frames that are not test
    /// traffic, so load them in a lab only.
    #[command(name = "ruleset", alias = "rules")]
    Rules(Box<rules::Rules>),
    /// What can a link, bus, state table, queue or TCP window carry?
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

/// The verbs, by the question that they answer.
const GROUPS: [(&str, &[&str]); 5] = [
    (
        "Measure",
        &[
            "bench", "run", "search", "bisect", "rfc2544", "plan", "ruleset", "send", "receive",
            "calc",
        ],
    ),
    (
        "Explain and tune",
        &[
            "explain", "profile", "flame", "watch", "facts", "advise", "apply", "tune",
        ],
    ),
    ("Real hosts", &["lab", "conduct"]),
    (
        "Results",
        &[
            "list",
            "show",
            "compare",
            "history",
            "conformance",
            "export",
            "serve",
            "site",
            "stat",
        ],
    ),
    (
        "Archives and other tools",
        &["archive", "import", "reproduce"],
    ),
];

/// Columns of the help: those of the terminal, as clap finds them.
fn columns() -> usize {
    let ends = [
        rustix::stdio::stdout(),
        rustix::stdio::stderr(),
        rustix::stdio::stdin(),
    ];
    let terminal = ends
        .into_iter()
        .find_map(|end| rustix::termios::tcgetwinsize(end).ok())
        .map(|size| usize::from(size.ws_col));
    let told = || std::env::var("COLUMNS").ok()?.parse().ok();
    terminal
        .or_else(told)
        .map_or(100, |columns| columns.min(MOST_COLUMNS))
}

/// The definition of the command line. `width`: columns of the help's examples.
pub fn definition(width: usize) -> clap::Command {
    let command = Cli::command();
    let mut help = "linerate: how many packets does this router (the DUT) forward? Why not more?
Begin with `sudo linerate bench`. `linerate VERB --help` teaches by example.\n"
        .to_string();
    for (heading, verbs) in GROUPS {
        help += &format!("{heading}:\n");
        for verb in verbs {
            let about = command
                .find_subcommand(verb)
                .and_then(clap::Command::get_about);
            help += &format!(
                "  {verb:<12} {}\n",
                about.map(ToString::to_string).unwrap_or_default()
            );
        }
    }
    flowing(command.override_help(help), width)
}

/// The arguments of this process.
///
/// # Errors
/// They are wrong, or help is wanted: what to print.
pub fn parse() -> Result<Cli, clap::Error> {
    let definition = || definition(columns());
    let found = definition()
        .try_get_matches()
        .and_then(|found| Cli::from_arg_matches(&found));
    found.map_err(|error| error.format(&mut definition()))
}

/// The lines of each paragraph below the examples are joined, so that only the width of the terminal breaks them.
fn flowing(command: clap::Command, width: usize) -> clap::Command {
    let text = command
        .get_after_help()
        .map(ToString::to_string)
        .unwrap_or_default();
    let mut joined = String::new();
    for line in text.lines() {
        let last = joined.rsplit('\n').next().unwrap_or_default();
        let goes_on = |line: &str| !line.is_empty() && !line.starts_with(' ');
        joined.push(if goes_on(last) && goes_on(line) {
            ' '
        } else {
            '\n'
        });
        if line.starts_with(' ') && line.chars().count() > width {
            joined.push_str(&hanging(line, width))
        } else {
            joined.push_str(line)
        }
    }
    command
        .after_help(joined.trim_start().to_owned())
        .mut_subcommands(|verb| flowing(verb, width))
}

/// The explanation of an example that is too wide goes on in its column; below the command, where that leaves little room.
fn hanging(line: &str, width: usize) -> String {
    let about = line.rsplit("  ").next().unwrap_or_default().trim_start();
    let command = line.strip_suffix(about).unwrap_or_default();
    let (mut text, column) = match command.chars().count() {
        column if column <= width / 2 => (command.to_owned(), column),
        _ => (format!("{}\n{:8}", command.trim_end(), ""), 8),
    };
    let (mut at, below) = (column, column.max(6));
    for word in about.split(' ') {
        let length = word.chars().count();
        if at > column && at + 1 + length > width {
            text += &format!("\n{:below$}", "");
            at = below;
        } else if at > column {
            text.push(' ');
            at += 1;
        }
        text.push_str(word);
        at += length;
    }
    text
}

impl Command {
    /// Runs the verb.
    ///
    /// # Errors
    /// The reason why it could not do its job.
    pub fn run(self) -> Exit {
        match self {
            Command::Bench(args) => bench::run(&args),
            Command::Send(args) => send::run(&args),
            Command::Receive(args) => receive::run(&args),
            Command::Lab(args) => lab::run(&args),
            Command::Plan(args) => plan_file::run(&args),
            Command::Run(args) => run::run(&args),
            Command::Search(args) => search::run(&args),
            Command::Bisect(args) => bisect::run(&args),
            Command::Rfc2544(args) => rfc2544::run(&args),
            Command::Conduct(args) => conduct::run(&args),
            Command::List(args) => list::run(&args),
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
            Command::Archive(args) => archive::run(&args),
            Command::Import(args) => import::run(&args),
            Command::History(args) => history::run(&args),
            Command::Rules(args) => rules::run(&args),
            Command::Calc(args) => calc::run(args),
            Command::Agent => agent::run(),
            Command::Documents(args) => documents::run(&args, definition(usize::MAX)),
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
    fn the_help_has_every_verb_on_one_screen() {
        let mut definition = definition(80);
        let verbs: Vec<String> = definition
            .get_subcommands()
            .filter(|verb| !verb.is_hide_set())
            .map(|verb| verb.get_name().into())
            .collect();
        let mut listed: Vec<String> = GROUPS
            .iter()
            .flat_map(|(_, verbs)| *verbs)
            .map(ToString::to_string)
            .collect();
        assert_eq!(listed.len(), verbs.len(), "{verbs:?}");
        listed.retain(|verb| !verbs.contains(verb));
        assert!(listed.is_empty(), "{listed:?}");
        let help = definition.render_help().to_string();
        assert!(
            help.lines().count() <= 40 && help.lines().all(|line| line.chars().count() <= 80),
            "{help}"
        );
    }

    #[test]
    fn wide_examples_go_on_below_their_explanation() {
        let line = "  linerate a   one two three four";
        assert_eq!(
            hanging(line, 30),
            "  linerate a   one two three\n               four"
        );
        let line = "  linerate with many options  one two three";
        assert_eq!(
            hanging(line, 20),
            "  linerate with many options\n        one two\n        three"
        );
    }

    #[test]
    fn every_variant_is_in_the_help_of_bench() {
        let mut all = Cli::command();
        let help = all
            .find_subcommand_mut("bench")
            .unwrap()
            .render_long_help()
            .to_string();
        for (name, _) in linerate_plan::BuiltIn::list() {
            assert!(help.contains(name), "{name}");
        }
    }
}
