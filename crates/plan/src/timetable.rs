//! How long a campaign will take.

use super::campaign::{Campaign, Cell, Kind, Lab};
use super::settings::{Dut, Settings};
use crate::units::Rate;
use linerate_measure::experiment::{Benchmark, Measure, Order, Reboot};
use linerate_measure::record::Mode;
use linerate_measure::strategy::{Estimated, TrialRequest, estimate};
use serde::Serialize;

const MS: u64 = 1_000_000;
const S: u64 = 1000 * MS;

/// Time of a trial in the embedded lab beyond its load: start, stop, drain, reading. Measured on a 2-CPU virtual machine.
const SLICE_OVERHEAD: u64 = 45 * MS;
/// As [`SLICE_OVERHEAD`], where programs of HTTP are started for each trial.
const PROGRAMS_OVERHEAD: u64 = 150 * MS;
/// Time of a trial in a real lab beyond its load: links that bounce when netmap opens them, waiting for the first frame, fetching results.
const TRIAL_OVERHEAD: u64 = 15 * S;
/// The times where the hosts are network namespaces of this machine: nothing is reached over a network, and no link bounces.
const LOCAL_OVERHEAD: u64 = 500 * MS;
/// Time of a trial between end hosts beyond its load: namespaces, iperf3, and a part of a second that its whole seconds are longer…
const PATH_OVERHEAD: u64 = 900 * MS;
/// …and round trips of handshakes, of iperf3's control connection, and of the last frames.
const ROUND_TRIPS: u64 = 14;
/// A reboot of a server until it forwards again.
const REBOOT: u64 = 180 * S;
/// Building the embedded lab and finding the generator's batch size.
const LAB: u64 = 800 * MS;
/// One lane of the embedded lab: namespaces, links, programs.
const LANE: u64 = 100 * MS;
/// Putting settings that all namespaces share in place of others.
const TURN: u64 = 400 * MS;
/// Time of a search on a machine that stalls now and then, as a multiple of an undisturbed search.
const NOISE: u64 = 2;
/// Trials of most blocks of a bisection: both ends and a candidate.
const BISECTED: u64 = 3;
/// Loading one rule, one entry of a table, one route or neighbour.
const RULE: u64 = 20_000;
const ENTRY: u64 = 3_000;
const ROUTE: u64 = 5_000;
/// Opening, asking and closing a connection that is kept open, through a stateful firewall.
const KEPT: u64 = 14_000;
/// Phases of connections that are kept open: opening, requests, closing.
const KEPT_PHASES: f64 = 3.0;
/// Sending one flow once through a DUT before the trials.
const FLOW: u64 = 2_000;
/// Flows that are sent ahead where the DUT keeps no state for them.
const FLOWS_AHEAD: u64 = 10_000;

/// When trials end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// After the requested number of blocks.
    Blocks,
    /// When the time is used up.
    Budget,
}

/// How long a campaign takes, by rules of thumb. A stopping rule may end it earlier.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Timetable {
    /// One trial, in nanoseconds: load and everything around it.
    pub trial_ns: u64,
    /// One trial of every cell.
    pub block_ns: u64,
    /// Blocks that will be run at most.
    pub blocks: u64,
    /// The limit that bounds the blocks.
    pub bound: Bound,
    /// Trials of all cells.
    pub trials: u64,
    /// Before the first trial.
    pub set_up_ns: u64,
    /// Time of all trials, with and without the budget.
    pub trials_ns: u64,
    pub needed_ns: u64,
    /// Everything.
    pub total_ns: u64,
}

impl Timetable {
    /// The timetable of a campaign.
    pub fn new(campaign: &Campaign) -> Self {
        let trials = &campaign.experiment.trials;
        let all = block_ns(campaign);
        if trials.measure != Measure::Rate {
            return Timetable::of_searches(campaign, all);
        }
        let cells = campaign.cells.len() as u64;
        let in_block = match trials.order {
            Order::Bisection => cells.min(BISECTED),
            _ => cells,
        };
        let block = all / cells.max(1) * in_block;
        let fitting = trials
            .budget_ns
            .map_or(u64::MAX, |budget| (budget / block.max(1)).max(1));
        let asked = trials.blocks.map_or(u64::MAX, u64::from);
        let blocks = fitting.min(asked);
        let set_up_ns = before_trials_ns(campaign);
        let trials_ns = blocks.saturating_mul(block);
        Timetable {
            trial_ns: trial_ns(campaign),
            block_ns: block,
            blocks,
            bound: if asked <= fitting {
                Bound::Blocks
            } else {
                Bound::Budget
            },
            trials: blocks.saturating_mul(in_block),
            set_up_ns,
            needed_ns: trials_ns,
            trials_ns,
            total_ns: set_up_ns.saturating_add(trials_ns),
        }
    }

    /// The timetable of searches and RFC 2544's tests, against a DUT that forwards 60 % of the highest load.
    fn of_searches(campaign: &Campaign, block_ns: u64) -> Timetable {
        let all = tests(campaign);
        let (trials, ns) = all.iter().fold((0, 0u64), |(n, ns), test| {
            (n + test.trials, ns.saturating_add(test.ns))
        });
        let wanted = &campaign.experiment.trials;
        let budget = wanted.time_ns().unwrap_or(u64::MAX);
        let noise = if wanted.measure == Measure::Search {
            NOISE
        } else {
            1
        };
        let trials_ns = ns.saturating_mul(noise).min(budget);
        let set_up_ns = before_trials_ns(campaign);
        Timetable {
            trial_ns: trial_ns(campaign),
            block_ns,
            blocks: trials,
            bound: if ns <= budget {
                Bound::Blocks
            } else {
                Bound::Budget
            },
            trials,
            set_up_ns,
            needed_ns: ns,
            trials_ns,
            total_ns: set_up_ns.saturating_add(trials_ns),
        }
    }
}

/// The estimated time of each of RFC 2544's tests, or of a search.
pub fn tests(campaign: &Campaign) -> Vec<Estimated> {
    estimate(campaign.design(0), &[], taking(campaign))
}

/// The time of a trial of a search, or of RFC 2544's tests, with all around it, in nanoseconds.
pub fn taking(campaign: &Campaign) -> impl Fn(&TrialRequest) -> u64 + use<> {
    let timing = campaign.timing();
    let (pause_ns, measure) = (
        campaign.experiment.trials.pause_ns,
        campaign.experiment.trials.measure,
    );
    let cells = (campaign.cells.len() as u64).max(1);
    // Reboots and changes of the host between two trials are part of a block.
    let around = (block_ns(campaign) / cells).saturating_sub(timing.load_ns() + pause_ns);
    move |request| {
        let trial_ns = timing.lasting(request.duration_ns).load_ns() + around;
        // Trials of no test need none of RFC 2544's waits.
        match (measure, request.benchmark) {
            (Measure::Rfc2544, None | Some(Benchmark::Stability)) => trial_ns,
            _ => trial_ns + pause_ns + timing.least_drain_ns + timing.settle_ns,
        }
    }
}

/// Time of a trial beyond its load and its pauses.
fn around_ns(campaign: &Campaign) -> u64 {
    match campaign.lab {
        Lab::Embedded {
            mode: Mode::EndHosts,
            ..
        } => PATH_OVERHEAD + ROUND_TRIPS * campaign.longest_rtt_ns(),
        Lab::Embedded { .. } if campaign.kinds.iter().any(Kind::needs_nginx) => PROGRAMS_OVERHEAD,
        Lab::Embedded { .. } => SLICE_OVERHEAD,
        Lab::File { local: true, .. } => LOCAL_OVERHEAD,
        Lab::File { .. } => TRIAL_OVERHEAD,
    }
}

fn trial_ns(campaign: &Campaign) -> u64 {
    let trials = &campaign.experiment.trials;
    let around = around_ns(campaign);
    let reboot = if trials.reboot == Reboot::EachTrial {
        REBOOT
    } else {
        0
    };
    let kept = kept_ns(campaign) / (campaign.cells.len() as u64).max(1);
    campaign.timing().load_ns() + kept + around + trials.pause_ns + reboot
}

/// The time of the connections that are kept open, in one trial of every cell.
fn kept_ns(campaign: &Campaign) -> u64 {
    let of_cell = |cell: &Cell| {
        let open = u64::from(campaign.kinds[cell.kind].open.unwrap_or(0));
        // At a rate, each of the three phases takes as long as the connections take to be offered.
        let paced = match cell.rate {
            Rate::Frames(rate) if rate > 0.0 => (KEPT_PHASES * 1e9 / rate) as u64,
            _ => 0,
        };
        open.saturating_mul(paced.max(KEPT))
    };
    campaign
        .cells
        .iter()
        .map(of_cell)
        .fold(0, u64::saturating_add)
}

/// One trial of every cell, with the changes and the reboots of the DUT between them.
pub(super) fn block_ns(campaign: &Campaign) -> u64 {
    block_parts(campaign)
        .into_iter()
        .fold(0, |sum, (_, ns)| sum.saturating_add(ns))
}

/// Names of the parts of a trial's time, with the nanoseconds that each takes of one trial of every cell. Between lanes of different groups
/// the host is changed, or rebooted.
pub fn block_parts(campaign: &Campaign) -> [(&'static str, u64); 5] {
    let trials = &campaign.experiment.trials;
    let groups = campaign
        .lanes
        .iter()
        .map(|lane| lane.group + 1)
        .max()
        .unwrap_or(1) as u64;
    let turns = if groups > 1 { groups } else { 0 };
    let each = |ns: u64| ns.saturating_mul(campaign.cells.len() as u64);
    let (change, reboot) = match (&campaign.lab, trials.reboot) {
        (Lab::Embedded { .. }, _) => (turns * TURN, 0),
        (Lab::File { .. }, Reboot::WhenNeeded) => (0, turns * REBOOT),
        (Lab::File { .. }, Reboot::EachTrial) => (0, each(REBOOT)),
        (Lab::File { .. }, Reboot::Never) => (0, 0),
    };
    [
        (
            "load",
            each(campaign.timing().load_ns()).saturating_add(kept_ns(campaign)),
        ),
        ("to start and stop trials", each(around_ns(campaign))),
        ("pauses", each(trials.pause_ns)),
        ("reboots", reboot),
        ("changes of the host", change),
    ]
}

fn before_trials_ns(campaign: &Campaign) -> u64 {
    match campaign.lab {
        Lab::Embedded { .. } => set_up_ns(campaign),
        Lab::File { .. } => 2 * around_ns(campaign),
    }
}

fn set_up_ns(campaign: &Campaign) -> u64 {
    let lanes: u64 = campaign
        .lanes
        .iter()
        .map(|lane| LANE + loading_ns(&lane.settings))
        .sum();
    let ahead = campaign.cells.iter().map(|cell| {
        let flows = u64::from(campaign.kinds[cell.kind].flows);
        let states = campaign.lanes[cell.lane].settings.tracks();
        FLOW * if states {
            flows
        } else {
            flows.min(FLOWS_AHEAD)
        }
    });
    LAB + lanes + ahead.sum::<u64>()
}

fn loading_ns(settings: &Settings) -> u64 {
    if settings.dut == Dut::TesterBaseline {
        return 0;
    }
    let routes = settings.routes.count.unwrap_or(0) + settings.neighbours.count.unwrap_or(0);
    let rules = settings.rules.as_ref();
    u64::from(routes) * ROUTE
        + rules.map_or(0, |r| {
            u64::from(r.rules_before) * RULE + u64::from(r.table.unwrap_or(0)) * ENTRY
        })
}
