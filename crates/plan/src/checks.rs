//! Faults that remain in a plan of correct form: values that contradict each other, cannot be reached, or would never end.

mod http;
mod place;
mod settings;
mod traffic;

use super::campaign::{Campaign, Lane};
use super::diagnostic::{Diagnostic, Problems, Span};
use super::draft::Draft;
use super::settings::Dut;
use super::timetable::block_ns;
use super::value::Tree;
use super::{forms, lower};
use linerate_measure::experiment::{Benchmark, Measure, Method, Order, System};
use linerate_search::GoalError;
use linerate_wire::units::{counted, grouped};
pub(super) use place::Place;
pub(super) use settings::rules::tools;
pub(super) use settings::{rule_file, settings};
pub(super) use traffic::traffic;

const DAY: u64 = 86_400_000_000_000;
/// The longest campaign: a year.
const LONGEST: u64 = 366 * DAY;

/// Cells of a campaign at most.
const MOST_CELLS: u128 = 4096;
/// Trials of a campaign at most.
const MOST_TRIALS: u128 = 1_000_000;

/// Faults of the plan as a whole.
pub(super) fn plan(draft: &Draft, problems: &mut Vec<Diagnostic>) {
    lab(draft, problems);
    for (table, key) in [("trials", "blocks"), ("quick", "blocks")] {
        let Some(table) = draft.tree.table(table) else {
            continue;
        };
        if let (Some(1), Some(entry)) = (table.read::<u64>(key), table.entry("until")) {
            problems.fault(
                entry.key_span,
                "one block has no interval to stop at",
                "leave one of the two out",
            );
        }
    }
    let Some(trials) = draft.tree.entry("trials") else {
        return;
    };
    let Some(tree) = trials.node.table() else {
        return;
    };
    search(draft, tree, problems);
    bisection(draft, tree, problems);
    let is_rate = tree.text("measure").is_none_or(|measure| measure == "rate");
    if tree.get("blocks").is_none() && tree.get("budget").is_none() && is_rate {
        let help = "add blocks = 100, or budget = \"60 s\"";
        problems.fault(
            trials.key_span,
            "the plan does not say when the trials end",
            help,
        );
    }
}

/// A bisection has one list: the levels of one factor, for one variant.
fn bisection(draft: &Draft, tree: &Tree, problems: &mut Vec<Diagnostic>) {
    let order = tree.get("order");
    let Some(order) = order.filter(|order| order.text() == Some("bisection")) else {
        return;
    };
    let lists = draft.factors.iter().map(|factor| factor.variants.len());
    let lists: Vec<usize> = lists.collect();
    if lists != [1] {
        let message = format!(
            "a bisection is of the levels of one factor, for one variant: this plan has {} for {}",
            counted(lists.len(), "factor"),
            counted(lists.iter().max().copied().unwrap_or_default(), "variant")
        );
        let help = "`linerate bisect PLAN --over FACTOR --variant NAME` leaves out the others";
        problems.fault(order.span, message, help);
    }
}

/// Faults of searches: keys of another measure, goals that do not fit together.
fn search(draft: &Draft, tree: &Tree, problems: &mut Vec<Diagnostic>) {
    let measure = tree
        .get("measure")
        .and_then(|node| Some((node, node.text()?)));
    let is = |name: &str| measure.is_some_and(|(_, text)| text == name);
    let tests = is("rfc2544");
    let loads = is("search") || is("loss-curve") || tests;
    let only = [
        (is("search"), &["goals"] as &[_], "search"),
        (
            is("search") || tests,
            &["width", "method", "verify", "min-load"],
            "search",
        ),
        (is("loss-curve") || tests, &["step"], "loss-curve"),
        (loads, &["max-load"], "search"),
        (tests, &["tests", "repeats", "drain", "settle"], "rfc2544"),
    ];
    for (allowed, keys, name) in only {
        for entry in keys
            .iter()
            .filter(|_| !allowed)
            .filter_map(|key| tree.entry(key))
        {
            let why = format!("this key needs measure = \"{name}\"");
            problems.fault(entry.key_span, why, format!("add measure = \"{name}\""));
        }
    }
    let Some((measure, _)) = measure.filter(|_| loads) else {
        return;
    };
    loads_of_its_own(draft, problems);
    if draft.is_of_end_hosts() {
        let why = "this plan measures TCP between end hosts: TCP chooses the load itself, so it cannot be searched";
        problems.fault(measure.span, why, "name a plan of routers");
        return;
    }
    let lab = draft.tree.table("lab");
    if draft.is_embedded() && lab.and_then(|lab| lab.text("mode")) != Some("threaded") {
        let why = "in an inline lab the load waits for the DUT and no frame is lost: a search needs an open loop";
        problems.fault(measure.span, why, draft.add("lab", "mode", "\"threaded\""));
    }
    if !draft.is_embedded() && !tests && tree.get("max-load").is_none() {
        let why = "the highest load is missing: on hosts, linerate does not measure the tester without the DUT";
        let help = format!(
            "{}, at most the rate of the generator",
            draft.add("trials", "max-load", "\"1 Mpps\"")
        );
        problems.fault(measure.span, why, help);
    }
    goals(draft, tree, measure.span, problems);
}

/// Faults of loads and ends that a search chooses itself.
fn loads_of_its_own(draft: &Draft, problems: &mut Vec<Diagnostic>) {
    let refused = [
        (
            "trials",
            "blocks",
            "a search ends by itself",
            "leave it out, and name a budget",
        ),
        (
            "quick",
            "blocks",
            "a search ends by itself",
            "leave it out, and name a budget",
        ),
        (
            "trials",
            "order",
            "searches take turns, trial by trial",
            "leave it out",
        ),
        (
            "compare",
            "until",
            "a search ends at its width",
            "leave it out, or use width in [trials]",
        ),
        (
            "traffic",
            "rate",
            "a search chooses the load",
            "use min-load and max-load in [trials]",
        ),
    ];
    for (table, key, why, help) in refused {
        if let Some(entry) = draft.tree.table(table).and_then(|table| table.entry(key)) {
            problems.fault(entry.key_span, why, help);
        }
    }
    let rate = |factor: &&super::draft::FactorDraft| {
        factor.sets.iter().any(|(f, _)| f.path() == "traffic.rate")
    };
    if let Some(factor) = draft.factors.iter().find(rate) {
        problems.fault(
            factor.span,
            "a search chooses the load",
            "leave this factor out",
        );
    }
}

/// Faults of goals, of the method and of tests. `measure`: the place of `measure`.
fn goals(draft: &Draft, tree: &Tree, measure: Span, problems: &mut Vec<Diagnostic>) {
    let trials = lower::trials(&draft.tree, false);
    if trials.measure == Measure::LossCurve {
        return;
    }
    if let (Method::Bisection, [_, second, ..], Some(node)) =
        (trials.method, &trials.goals[..], tree.get("method"))
    {
        let why = format!(
            "a binary search is for one goal, not also for {}",
            second.name
        );
        problems.fault(node.span, why, "name one in goals, or leave method out");
    }
    let repeats = tree
        .entry("verify")
        .filter(|_| trials.verify > 0 && trials.method != Method::Bisection);
    if let Some(verify) = repeats.filter(|_| !trials.tests.contains(&Benchmark::BackToBack)) {
        let why = "only a binary search, and the test back-to-back, repeat trials so: MLRsearch repeats them by its goals";
        let add = draft.add("trials", "method", "\"binary\"");
        problems.fault(verify.key_span, why, format!("{add}, or leave it out"));
    }
    if let Some(twice) =
        (1..trials.goals.len()).find(|at| trials.goals[..*at].contains(&trials.goals[*at]))
    {
        let span = tree.get("goals").map_or(measure, |goals| goals.span);
        problems.fault(
            span,
            format!("the goal {} is given twice", trials.goals[twice].name),
            "leave one out",
        );
    }
    let no_event = !draft
        .variants
        .iter()
        .any(|variant| variant.tree.get("event").is_some());
    if let Some(named) = tree
        .get("tests")
        .filter(|_| no_event && trials.tests.contains(&Benchmark::Reset))
    {
        let why = "the test reset needs an event, and no variant has one";
        let help = match draft.key("variants", "event") {
            "event" => {
                "add event = { what = \"forwarding-off\", for = \"100 ms\" } to a variant".into()
            }
            option => format!("add {option} forwarding-off=100ms"),
        };
        problems.fault(named.span, why, help);
    }
    if let Err(fault) = trials.check_goals() {
        let keys = match fault {
            GoalError::Limits { .. } => ["min-load", "max-load"],
            GoalError::Frames { .. } => ["min-load", "duration"],
            _ => ["goals", "duration"],
        };
        let node = keys.iter().find_map(|key| tree.get(key));
        let told = Diagnostic::at(node.map_or(measure, |node| node.span), fault.to_string());
        problems.push(match fault {
            GoalError::Limits { .. } => told.remedy(format!(
                "name a lower one with {}",
                draft.key("trials", "min-load")
            )),
            _ => told,
        });
    }
}

fn lab(draft: &Draft, problems: &mut Vec<Diagnostic>) {
    let empty = Tree::default();
    let lab = draft.tree.table("lab").unwrap_or(&empty);
    let mut refuse = |key: &str, why: &str, help: &str| {
        if let Some(entry) = lab.entry(key) {
            problems.fault(entry.key_span, why, help);
        }
    };
    if draft.is_embedded() {
        if draft.systems != [System::Linux] {
            refuse(
                "systems",
                "the embedded lab is Linux",
                "add file = \"lab.toml\" for a real lab, or leave systems out",
            );
        }
        if lab.text("mode") != Some("threaded") {
            refuse(
                "dut-cpus",
                "inline, the DUT works on the generator's CPUs",
                &format!(
                    "{}, or leave it out",
                    draft.add("lab", "mode", "\"threaded\"")
                ),
            );
        }
        let trials = draft.tree.table("trials");
        if let Some(node) = trials
            .filter(|t| t.text("reboot") != Some("never"))
            .and_then(|t| t.get("reboot"))
        {
            let help = "leave it out, or name a real lab: file = \"lab.toml\"";
            problems.fault(
                node.span,
                "the embedded lab cannot reboot this machine",
                help,
            );
        }
    } else {
        let help = "leave it out: the lab file says which host does what";
        for key in [
            "mode",
            "generator-cpus",
            "dut-cpus",
            "port",
            "batch",
            "statement",
        ] {
            refuse(key, "this is for the embedded lab alone", help);
        }
    }
}

/// Numbers of cells and trials of a plan, before any of them is made.
pub(super) fn sizes(
    draft: &Draft,
    quick: bool,
    cells: u128,
    too_much_text: bool,
    problems: &mut Vec<Diagnostic>,
) {
    let trials = lower::trials(&draft.tree, quick);
    let all = cells.saturating_mul(u128::from(trials.blocks.unwrap_or(1)));
    let first = draft.factors.iter().max_by_key(|f| f.levels(quick).len());
    let variants = draft
        .tree
        .entry("variants")
        .map(|e| e.key_span)
        .unwrap_or_default();
    let span = first.map_or(variants, |f| f.span);
    let counts: Vec<String> = draft
        .factors
        .iter()
        .map(|f| format!("{} of {}", f.levels(quick).len(), f.name))
        .collect();
    let product = format!(
        "{} variants with {}",
        draft.variants.len(),
        counts.join(" x ")
    );
    let form = if quick { "the quick form" } else { "this plan" };
    let help = "use fewer variants or levels, sweep factors alone (combine = \"alone\"), or write several plans";
    if cells > MOST_CELLS {
        let message = format!(
            "{form} has {} cells ({product}): at most {}",
            grouped(cells),
            grouped(MOST_CELLS)
        );
        problems.fault(span, message, help);
    } else if all > MOST_TRIALS {
        let blocks = draft
            .tree
            .table("trials")
            .and_then(|t| t.entry("blocks"))
            .map_or(span, |e| e.node.span);
        let message = format!(
            "{form} has {} trials ({} cells x {} blocks): at most {}",
            grouped(all),
            grouped(cells),
            grouped(trials.blocks.unwrap_or(1)),
            grouped(MOST_TRIALS)
        );
        problems.fault(blocks, message, "use fewer blocks, or a budget");
    } else if too_much_text {
        let message = format!(
            "{} cells with all this text are more than fits into memory",
            grouped(cells)
        );
        problems.fault(span, message, "use fewer levels, or shorter files");
    }
    if cells == 0
        && !draft.variants.is_empty()
        && draft.factors.iter().all(|f| !f.levels.is_empty())
        && quick
    {
        problems.fault(
            variants,
            "the quick form has nothing to measure",
            "name variants that exist on each system",
        );
    }
}

/// Either all variants are measured in guests or none is: figures of both would not be comparable.
pub(super) fn kernels(campaign: &Campaign, problems: &mut Vec<Diagnostic>) {
    let has = |lane: &&Lane| lane.settings.kernel.is_some();
    let duts = campaign
        .lanes
        .iter()
        .filter(|lane| lane.settings.dut != Dut::TesterBaseline);
    let (with, without): (Vec<&Lane>, Vec<&Lane>) = duts.partition(has);
    if let (Some(with), Some(without)) = (with.first(), without.first()) {
        let message = format!(
            "{} is measured in a guest with its kernel, and {} is not",
            with.variants.join(", "),
            without.variants.join(", ")
        );
        let help = "kernel = \"running\" boots the kernel of this machine in a guest as well";
        problems.push(Diagnostic::new(message).remedy(help));
    }
}

/// Whether one block fits the time there is.
pub(super) fn times(
    draft: &Draft,
    quick: bool,
    campaign: &Campaign,
    problems: &mut Vec<Diagnostic>,
) {
    let (trials, cells) = (&campaign.experiment.trials, campaign.cells.len());
    let block = block_ns(campaign);
    let of = |key: &str| {
        let of = |table: &str| {
            draft
                .tree
                .table(table)
                .and_then(|t| t.entry(key))
                .map(|e| e.node.span)
        };
        if quick {
            of("quick").or_else(|| of("trials"))
        } else {
            of("trials")
        }
    };
    let form = if quick { " of the quick form" } else { "" };
    floods(draft, campaign, problems);
    http::lasts_whole_seconds(draft, campaign, problems);
    let Some(budget) = trials.budget_ns else {
        let all = block.saturating_mul(trials.blocks.unwrap_or(1).into());
        if all > LONGEST {
            let message = format!(
                "the trials{form} take {} days, a year at most",
                grouped(all / DAY)
            );
            let help = "use fewer blocks, a shorter duration, or a budget";
            problems.fault(of("blocks").unwrap_or_default(), message, help);
        }
        return;
    };
    // A search tells what its budget is too short for, and a bisection does not measure all cells.
    if block <= budget || trials.measure != Measure::Rate || trials.order == Order::Bisection {
        return;
    }
    let span = of("budget");
    let message = format!(
        "one block{form}, {cells} trials, takes {:.1} s: more than the budget of {}",
        block as f64 / 1e9,
        forms::duration_text(budget)
    );
    problems.fault(
        span.unwrap_or_default(),
        message,
        "give it more time, a shorter duration, or fewer levels",
    );
}

/// SYNs of a flood in a trial, at least: fewer have no rate.
const FEWEST_SYNS: f64 = 10.0;

/// Whether each flood has SYNs in each trial.
fn floods(draft: &Draft, campaign: &Campaign, problems: &mut Vec<Diagnostic>) {
    let floods = campaign.kinds.iter().map(|kind| kind.flood);
    let Some(slowest) = floods.filter(|flood| *flood > 0).min() else {
        return;
    };
    let seconds = campaign.timing().run_ns as f64 / 1e9;
    if f64::from(slowest) * seconds >= FEWEST_SYNS {
        return;
    }
    let traffic = draft.tree.table("traffic");
    let own = traffic.and_then(|traffic| traffic.get("flood"));
    let mut varied = draft.factors.iter().flat_map(|factor| &factor.sets);
    let varied = varied.find(|(field, _)| field.path() == "traffic.flood");
    let span = own.map(|node| node.span).or(varied.map(|(_, span)| *span));
    let message = format!(
        "a flood of {} SYN/s has {:.1} SYNs in a trial of {}",
        grouped(slowest),
        f64::from(slowest) * seconds,
        forms::duration_text(campaign.timing().run_ns)
    );
    let help = format!(
        "use a flood of {:.0} pps or more, or a longer duration",
        (FEWEST_SYNS / seconds).ceil()
    );
    problems.fault(span.unwrap_or_default(), message, help);
}
