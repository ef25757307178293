//! Results of searches: the bounds of each goal, and the loss at each load.

use super::super::plan::{seconds, terms};
use super::pictures;
use super::shown::Shown;
use super::stability;
use crate::prelude::*;
use linerate_measure::experiment::{Method, Trials};
use linerate_measure::record::{Ended, NOTHING_PASSES, Searched, SearchedGoal, SearchedLoad};
use linerate_search::Irregular;

/// Most searches whose loads are listed.
const MOST: usize = 4;
/// The meaning of the bounds, and of the conditional throughput.
pub const CONDITIONAL: &str =
    "Bounds are loads; conditional throughput is the lower bound less the loss there.";
/// A PDR above the NDR by this factor is a wide gap.
const WIDE: f64 = 1.1;

/// The sentences, the table of results, and the loads of each search.
pub fn searches(page: &mut Document, shown: &Shown<'_>) {
    let searches = &shown.summary.searches;
    for search in searches {
        let unstable = stability::sentence(shown, search.slot);
        unstable
            .into_iter()
            .for_each(|sentence| page.answer(sentence));
        sentences_of(shown, search)
            .into_iter()
            .for_each(|sentence| page.answer(sentence));
        if search.goals.is_empty() && search.loads.is_empty() {
            page.warn(format!(
                "{}: {}.",
                shown.name(search.slot),
                search.stopped(shown.summary.stopped)
            ));
        }
        gap(page, shown, search);
    }
    page.fact("low load", stability::line(shown));
    if let Some(stalls) = stalls(&shown.planned.experiment.trials, searches) {
        page.note(format!("On this machine, {stalls}"));
    }
    page.section(
        match shown.planned.experiment.trials.method {
            Method::Mlrsearch => "Rates that meet the goals (RFC 9971)",
            Method::Bisection => "Rates that meet the goals, by binary search",
        },
        table(shown),
    );
    pictures::series(page, shown);
    let trials = &shown.planned.experiment.trials;
    let goals = || searches.iter().flat_map(|search| &search.goals);
    let named = goals().map(|goal| format!("{}: {}", goal.name, terms(&goal.goal, trials)));
    for text in distinct(named) {
        page.item("- ", text, Tone::Note);
    }
    if shown.slots().any(|slot| slot.direction == Direction::Both) {
        page.note("With frames in both directions, loads are those of each direction: twice as many frames pass. Loss covers both directions.");
    }
    page.note("A load counts as offered if the tester kept it within 0.5 %.");
    if goals().next().is_some() {
        page.note(CONDITIONAL);
    }
    if goals().any(|goal| goal.interval != [None; 2]) {
        page.note("The 95 % interval, from all trials of full length, is for the load at which the goal begins to be missed.");
    }
    stability::section(page, shown);
    let searched = searches.iter().filter(|search| !search.loads.is_empty());
    searched
        .take(MOST)
        .for_each(|search| loads(page, shown, search));
}

/// The answers of all searches, unstable DUTs first.
pub fn sentences(shown: &Shown<'_>) -> Vec<String> {
    let searches = || shown.summary.searches.iter();
    let unstable = searches().filter_map(|search| stability::sentence(shown, search.slot));
    let rates = searches().flat_map(|search| sentences_of(shown, search));
    unstable.chain(rates).collect()
}

fn sentences_of(shown: &Shown<'_>, search: &Searched) -> Vec<String> {
    if search.goals.is_empty() && !search.loads.is_empty() {
        return vec![curve(shown, search)];
    }
    let goals = search.goals.iter().filter(|goal| !is_refused(goal));
    let goals = goals.map(|goal| sentence(shown, search, goal) + &together(shown, search, goal));
    goals.collect()
}

/// Whether a goal was not searched for.
fn is_refused(goal: &SearchedGoal) -> bool {
    goal.outcome.irregular == Some(Irregular::Unstable)
}

/// The bounds of each goal.
pub fn table<'a>(shown: &Shown<'a>) -> Rows<(&'a Searched, &'a SearchedGoal)> {
    let unit = unit(shown);
    let rows = shown
        .summary
        .searches
        .iter()
        .flat_map(|search| search.goals.iter().map(move |goal| (search, goal)));
    Table::of(rows)
        .column("cell", "", |(search, _)| shown.numbered(search.slot))
        .column("goal", "", |(_, goal)| goal.name.clone())
        .rate("lower", unit, |(_, goal)| goal.outcome.lower)
        .rate("upper", unit, |(_, goal)| goal.outcome.upper)
        .column("conditional", "throughput", |(_, goal)| {
            goal.outcome
                .conditional
                .map(|load| rate(load, unit.scale, 4))
        })
        .optional("gap of", "bounds, %", |(_, goal)| {
            let (low, high) = goal.outcome.lower.zip(goal.outcome.upper)?;
            Some(share((high - low) / high))
        })
        .column("95 %", "interval", |(_, goal)| interval(goal, unit.scale))
        .optional("result", "", |(_, goal)| match goal.outcome.irregular {
            None => "regular",
            Some(Irregular::Unstable) => "refused",
            Some(_) => "irregular",
        })
}

/// A loss curve in a sentence.
fn curve(shown: &Shown<'_>, search: &Searched) -> String {
    let who = shown.name(search.slot);
    let falling: Vec<&SearchedLoad> = search.loads.iter().rev().collect();
    match falling
        .windows(2)
        .find(|pair| pair.iter().all(|load| load.most == 0.0))
    {
        Some([above, below]) => format!(
            "{who}: two successive trials lost nothing, at {} and at {} {}s a second.",
            words(above.load, 4),
            words(below.load, 4),
            shown.noun()
        ),
        _ if search.is_silent() => format!("{who}: {NOTHING_PASSES}."),
        _ if search.ended == Some(Ended::Known) => {
            format!("{who}: no two successive trials without loss.")
        }
        _ => {
            let last = falling.last().map_or(search.limits.max, |load| load.load);
            let stopped = search.stopped(shown.summary.stopped);
            format!(
                "{who}: incomplete, without trials below {} {}s a second; {stopped}.",
                words(last, 4),
                shown.noun()
            )
        }
    }
}

/// The unit of all loads.
fn unit(shown: &Shown<'_>) -> RateUnit {
    let bounds_of = |goal: &SearchedGoal| [goal.outcome.lower, goal.outcome.upper];
    let searches = shown.summary.searches.iter();
    let goals = searches.clone().flat_map(|search| &search.goals);
    let bounds = goals.flat_map(bounds_of).flatten();
    let curves = searches.filter(|search| {
        let mut bounds = search.goals.iter().flat_map(bounds_of);
        bounds.all(|bound| bound.is_none())
    });
    shown.unit_of(bounds.chain(curves.map(|search| search.limits.max)))
}

/// The 95 % interval of the load where the goal begins to be missed.
fn interval(goal: &SearchedGoal, scale: f64) -> Cell {
    let end = |load: f64| rate(load, scale, 4).text().to_owned();
    match goal.interval {
        [None, None] => Cell::Nothing,
        [Some(low), None] => format!("from {}", end(low)).into(),
        [None, Some(high)] => format!("to {}", end(high)).into(),
        [Some(low), Some(high)] => Cell::range(
            low / scale,
            high / scale,
            format!("{}..{}", end(low), end(high)),
        ),
    }
}

fn sentence(shown: &Shown<'_>, search: &Searched, goal: &SearchedGoal) -> String {
    let who = format!("{}, {}", shown.name(search.slot), goal.name);
    let (found, spoiled) = (&goal.outcome, shown.spoiled(search.slot, [" (", ")"]));
    match (found.irregular, found.conditional, found.lower, found.upper) {
        (None, Some(rate), Some(low), Some(high)) => {
            let met = words(low, 4);
            format!(
                "{who}: {} {}s a second{}{spoiled}. The goal is met at {met} and missed at {}{}.",
                words(rate, 4),
                shown.noun(),
                when(
                    words(rate, 4) != met,
                    format!(" (the load of {met} less its loss)")
                ),
                words(high, 4),
                chance(search, goal, high - low)
            )
        }
        (Some(_), Some(rate), low, high) => {
            let below = low.zip(high).filter(|(low, high)| low < high);
            let below = below.map_or(String::new(), |(_, high)| {
                format!(" and less than {}", words(high, 4))
            });
            format!(
                "{who}: at least {}{below} {}s a second{spoiled}; {}.",
                words(rate, 4),
                shown.noun(),
                why(shown, search, goal)
            )
        }
        (_, _, _, Some(high)) => {
            format!(
                "{who}: less than {} {}s a second{spoiled}; {}.",
                words(high, 4),
                shown.noun(),
                why(shown, search, goal)
            )
        }
        _ => {
            let spoils = shown.spoils(search.slot);
            let spoils = when(!spoils.is_empty(), format!("; {spoils}"));
            let (why, far) = (why(shown, search, goal), so_far(shown, search, goal));
            format!("{who}: no result; {why}{spoils}{far}.")
        }
    }
}

/// The probable bounds, if the trials are too few to decide.
fn so_far(shown: &Shown<'_>, search: &Searched, goal: &SearchedGoal) -> String {
    let misses = |load: &&SearchedLoad| load.loss > goal.goal.loss;
    let high = search.loads.iter().find(misses);
    let low = search.loads.iter().take_while(|load| !misses(load)).last();
    let low = low.map(|load| format!("met at {}", words(load.load, 4)));
    let high = high.map(|load| format!("missed at {}", words(load.load, 4)));
    let known: Vec<String> = low.into_iter().chain(high).collect();
    if known.is_empty() || search.ended.is_some() {
        String::new()
    } else {
        format!(
            ". After too few trials to be sure: {} {}s a second",
            known.join(", and "),
            shown.noun()
        )
    }
}

/// Where another search could end, if the interval is much wider than the bounds.
fn chance(search: &Searched, goal: &SearchedGoal, apart: f64) -> String {
    let said = "; by these trials, another search could end";
    match goal.interval {
        [Some(low), Some(high)] if high - low <= 2.0 * apart => String::new(),
        [Some(low), Some(high)] => {
            format!(
                "{said} anywhere between {} and {}",
                words(low, 3),
                words(high, 3)
            )
        }
        // A single trial decides.
        _ if goal.goal.exceed == 0 || search.loads.iter().all(|load| load.trials < 2) => {
            String::new()
        }
        [Some(low), None] => format!("{said} anywhere above {}", words(low, 3)),
        [None, Some(high)] => format!("{said} anywhere below {}", words(high, 3)),
        [None, None] => format!("{said} elsewhere"),
    }
}

/// The rate of both directions together.
fn together(shown: &Shown<'_>, search: &Searched, goal: &SearchedGoal) -> String {
    let ways = shown
        .slot(search.slot)
        .map_or(1, |slot| slot.direction.ways().len());
    match goal.outcome.conditional.filter(|_| ways > 1) {
        Some(rate) => {
            format!(
                " This is the load of each direction; both together {}.",
                words(rate * ways as f64, 4)
            )
        }
        None => String::new(),
    }
}

/// Why a result is irregular.
fn why(shown: &Shown<'_>, search: &Searched, goal: &SearchedGoal) -> String {
    match goal.outcome.irregular {
        Some(_) if search.ended == Some(Ended::Silent) => {
            search.stopped(shown.summary.stopped).into()
        }
        Some(Irregular::MaxLoad) => {
            let asked = shown.planned.experiment.trials.max_fps;
            let most = words(search.limits.max, 4);
            match search.table {
                Some(table) => {
                    format!(
                        "the goal is met at {most}, and trials with a higher load would fill the DUT's table of {table} connections (nf_conntrack_max): the DUT may be faster; use a shorter --duration, or a larger nf_conntrack_max"
                    )
                }
                None if asked == Some(search.limits.max) => {
                    format!(
                        "the goal is met at the highest load that was asked for, {most}: the DUT may be faster"
                    )
                }
                None => {
                    let asked = asked.map(|asked| format!(" ({} were asked for)", words(asked, 4)));
                    let asked = asked.unwrap_or_default();
                    format!(
                        "the goal is met even at {most}, the highest load that the tester can send{asked}: the DUT may be faster"
                    )
                }
            }
        }
        Some(Irregular::MinLoad) if search.is_silent() => NOTHING_PASSES.into(),
        Some(Irregular::MinLoad) => {
            format!(
                "even the lowest load, {}, misses the goal",
                words(search.limits.min, 4)
            )
        }
        Some(Irregular::Unfinished) if search.ended.is_none() => {
            format!(
                "{} before the bounds were close (RFC 9971: irregular)",
                search.stopped(shown.summary.stopped)
            )
        }
        Some(Irregular::Unfinished) => search.stopped(shown.summary.stopped).into(),
        Some(Irregular::Unstable) | None => String::new(),
    }
}

/// A note about a wide gap between the rate without loss and the rate with little loss.
fn gap(page: &mut Document, shown: &Shown<'_>, search: &Searched) {
    let rate = |lossless: bool| {
        let goal = search
            .goals
            .iter()
            .find(|goal| (goal.goal.loss == 0.0) == lossless)?;
        goal.outcome.conditional.map(|rate| (rate, &goal.name))
    };
    let Some((with, loose)) = rate(false) else {
        return;
    };
    let Some(strict) = search.goals.iter().find(|goal| goal.goal.loss == 0.0) else {
        return;
    };
    let apart = match strict.outcome.conditional {
        _ if is_refused(strict) => return,
        Some(without) if with <= WIDE * without => return,
        Some(without) => format!("{:.1} times {}", with / without, strict.name),
        // A load without loss, which too few trials have shown.
        None if search.loads.iter().any(|load| load.loss == 0.0) => return,
        None => format!("{}, and no load meets {}", words(with, 4), strict.name),
    };
    let noun = shown.noun();
    page.note(format!(
        "{}: {loose} is {apart}. So wide a gap does not mean a lack of capacity: a few {noun}s are lost at any load, because the DUT or this machine stops now and then, or drops one {noun} in N.",
        shown.name(search.slot)
    ));
}

/// How often the tester alone stalled, the trials that suit the machine, and whether goals without loss make sense on it. `None`: it
/// never stalled, or was not measured.
pub fn stalls(trials: &Trials, searches: &[Searched]) -> Option<String> {
    let (search, rate) = searches
        .iter()
        .find_map(|search| Some((search, search.stalls?)))?;
    if rate == 0.0 {
        return None;
    }
    let names =
        |goals: &[&SearchedGoal]| goals.iter().map(|goal| goal.name.as_str()).joined(" and ");
    let mut text =
        format!("the tester alone lost frames {rate:.1} times a second at half of its rate.");
    let shorter: Vec<_> = search
        .goals
        .iter()
        .filter(|goal| goal.goal.final_ns < trials.duration_ns)
        .collect();
    if let Some(first) = shorter.first() {
        let [short, asked] = [first.goal.final_ns, trials.duration_ns].map(seconds);
        text += &format!(
            " Trials of {} therefore last {short} instead of {asked}.",
            names(&shorter)
        );
    }
    let (strict, loose): (Vec<_>, Vec<_>) =
        search.goals.iter().partition(|goal| goal.goal.loss == 0.0);
    let disturbed = |goal: &SearchedGoal| search.disturbed(goal.goal.final_ns);
    if let Some(goal) = strict
        .into_iter()
        .find(|goal| disturbed(goal) > goal.goal.exceed_ratio().max(0.5))
    {
        let loose = if loose.is_empty() {
            "a search for pdr (linerate search --goal pdr)".into()
        } else {
            names(&loose)
        };
        text += &format!(
            " Stalls of this machine disturb {:.0} % of all trials of {}, so {} measures the machine, and not the DUT: use {loose}, unless the DUT is much slower than the tester.",
            100.0 * disturbed(goal),
            seconds(goal.goal.final_ns),
            goal.name,
        );
    }
    Some(text)
}

/// The loss at each load, with a bar.
fn loads(page: &mut Document, shown: &Shown<'_>, search: &Searched) {
    let most = search
        .loads
        .iter()
        .map(|load| load.most)
        .fold(0.0, f64::max);
    let bar = |loss: f64| Cell::Bar {
        share: if most > 0.0 { loss / most } else { 0.0 },
    };
    let table = Table::of(search.loads.iter().rev())
        .rate("load", unit(shown), |load| load.load)
        .column("% of", "highest", |load| {
            share(load.load / search.limits.max)
        })
        .column("trials", "", |load| load.trials)
        .column("without", "loss", |load| load.clean)
        .column("loss %", "median", |load| share(load.loss))
        .column("loss %", "largest", |load| share(load.most))
        .column("", "", |load| bar(load.loss));
    page.section(
        format!("Loss at each load: {}", shown.name(search.slot)),
        table,
    );
    let asked = shown
        .planned
        .experiment
        .trials
        .max_fps
        .filter(|asked| *asked > 1.001 * search.limits.max);
    let most = words(search.limits.max, 4);
    let instead = asked.map_or(String::new(), |asked| {
        format!(" instead of the requested {}", words(asked, 4))
    });
    if let Some(table) = search.table {
        page.note(format!(
            "The highest load is {most}{instead}: trials with a higher one would fill the DUT's table of {table} connections (nf_conntrack_max)."
        ));
    } else if asked.is_some() {
        page.note(format!(
            "The highest load is {most}{instead}: the links, or the tester beside the busy DUT, cannot carry more."
        ));
    }
    pictures::losses(page, shown, search);
}
