//! The schedule of a plan: the order and times of its trials, what ends it, and how long it takes.

use super::{fact, precise, span};
use crate::prelude::*;
use linerate_measure::experiment::{CURVE_STEP, Measure, Method, Reboot, Trials};
use linerate_measure::strategy::LEAST_FPS;
use linerate_plan::campaign::Campaign;
use linerate_plan::timetable::{Bound, Timetable};
use linerate_search::Goal;

pub(super) fn schedule(page: &mut Document, campaign: &Campaign, blocks: &[Vec<usize>]) {
    page.heading("Schedule");
    let (times, trials) = (Timetable::new(campaign), &campaign.experiment.trials);
    // Searches choose their trials by the results before.
    let searched = trials.measure != Measure::Rate;
    let randomised = trials.order.is_randomised() && !searched;
    let seed = match (randomised, trials.seed) {
        (false, _) => String::new(),
        (true, Some(seed)) => format!(", seed {seed}"),
        (true, None) => ", the seed drawn by the run and recorded (below, 1 as an example)".into(),
    };
    let order = if searched {
        "the cells in turns, trial by trial"
    } else {
        trials.order.about()
    };
    fact(page, "order", format!("{order}{seed}"));
    fact(page, "trial", trial(trials, times.trial_ns));
    let in_block = grouped(times.trials / times.blocks.max(1));
    if searched {
        fact(
            page,
            "trials",
            format!("about {}, by the results", grouped(times.trials)),
        );
    } else {
        fact(
            page,
            "block",
            format!("{in_block} trials, about {}", precise(times.block_ns)),
        );
        let [most, all] = [times.blocks, times.trials].map(grouped);
        let blocks = match times.bound {
            Bound::Blocks => {
                let at_most = when(trials.until.is_some(), " at most");
                format!("{most}{at_most}: {all} trials")
            }
            // On a quick machine, a trial takes less time than is estimated.
            Bound::Budget => format!(
                "about {most}, as many as fit into {}: about {all} trials",
                precise(trials.budget_ns.unwrap_or(0))
            ),
        };
        fact(page, "blocks", blocks);
    }
    searched_for(page, trials);
    if let Some(until) = trials.until {
        let deciding = campaign
            .experiment
            .comparisons
            .iter()
            .filter(|c| c.decides)
            .count();
        let percent = (until * 1e6).round() / 1e4;
        let of = match deciding {
            1 => "the comparison".to_string(),
            n => format!("each of {n} comparisons"),
        };
        let text = format!("earlier, once the 95 % interval of {of} is narrower than {percent} %");
        fact(page, "ends", text);
    }
    let [total, set_up, trials] = [times.total_ns, times.set_up_ns, times.trials_ns].map(span);
    let text = format!("about {total} ({set_up} of set-up, {trials} of trials)");
    page.item("time      ", text, Tone::Strong);
    if !searched {
        first_blocks(page, if randomised { "block" } else { "cell" }, blocks);
    }
}

/// A trial with what is around it.
fn trial(trials: &Trials, whole_ns: u64) -> String {
    let pause = match trials.pause_ns {
        0 => String::new(),
        pause => format!(" after a pause of {}", precise(pause)),
    };
    let reboot = match trials.reboot {
        Reboot::Never => "",
        Reboot::WhenNeeded => ", rebooted where settings for the boot change",
        Reboot::EachTrial => ", rebooted before each trial",
    };
    let (duration, whole) = (precise(trials.duration_ns), precise(whole_ns));
    format!("{duration}{pause}{reboot}; {whole} with set-up and pauses")
}

/// The first blocks, with the order of their cells.
fn first_blocks(page: &mut Document, word: &str, blocks: &[Vec<usize>]) {
    for (at, block) in blocks.iter().enumerate().take(12) {
        let shown = block
            .iter()
            .take(40)
            .map(|cell| (cell + 1).to_string())
            .joined(" ");
        let more = when(block.len() > 40, " ...");
        let name = format!("{word} {}", at + 1);
        page.item(
            &format!("{name:10}"),
            format!("cells {shown}{more}"),
            Tone::Note,
        );
    }
}

/// The goals of a search and the loads that it may use, or RFC 2544's tests.
fn searched_for(page: &mut Document, trials: &Trials) {
    let least = trials.min_fps.unwrap_or(LEAST_FPS);
    let most = match trials.max_fps {
        Some(max) => format!("{} frames/s", words(max, 4)),
        None => "the highest load that the tester keeps".into(),
    };
    match trials.measure {
        Measure::Rate => {}
        Measure::LossCurve => {
            let step = percent(trials.step.unwrap_or(CURVE_STEP));
            fact(
                page,
                "loads",
                format!("{most}, and lower ones in steps of {step} % of it"),
            );
        }
        Measure::Rfc2544 => {
            let titles = trials.tests.iter().map(|test| test.title()).joined("; ");
            fact(page, "tests", titles);
        }
        Measure::Search => {
            for (wanted, goal) in trials
                .goals
                .iter()
                .zip(trials.search_goals(trials.duration_ns))
            {
                let shorter = when(
                    wanted.times_ns.is_none(),
                    "; shorter trials where the machine stalls",
                );
                fact(
                    page,
                    "goal",
                    format!("{}: {}{shorter}", wanted.name, terms(&goal, trials)),
                );
            }
            fact(
                page,
                "loads",
                format!("from {} frames/s to {most}", words(least, 4)),
            );
        }
    }
}

/// A goal in words. In a binary search, one trial decides about a load, or the last of several.
pub(in super::super) fn terms(goal: &Goal, trials: &Trials) -> String {
    let loss = if goal.loss > 0.0 {
        format!("at most {} % loss", percent(goal.loss))
    } else {
        "no loss".into()
    };
    let apart = format!("bounds within {} % of the upper one", percent(goal.width));
    if trials.method == Method::Bisection {
        let further = match trials.verify {
            0 => String::new(),
            n => format!(", or in one of {n} further ones"),
        };
        return format!(
            "{loss} in one trial of {}{further}; {apart}",
            seconds(goal.final_ns)
        );
    }
    let exceed = match goal.exceed_ratio() {
        0.0 => "in any trial".into(),
        0.5 => "in half of the trials' time".into(),
        ratio => format!("in {} % of the trials' time", percent(1.0 - ratio)),
    };
    let first = when(
        goal.initial_ns < goal.final_ns,
        format!(", first trials of {}", seconds(goal.initial_ns)),
    );
    format!(
        "{loss} {exceed}; trials last {}{first}; a load that decides gets {} of trials; {apart}",
        seconds(goal.final_ns),
        seconds(goal.sum_ns)
    )
}

pub(in super::super) fn seconds(ns: u64) -> String {
    let s = ns as f64 / 1e9;
    if s < 1.0 {
        format!("{:.0} ms", 1e3 * s)
    } else {
        format!("{s} s")
    }
}
