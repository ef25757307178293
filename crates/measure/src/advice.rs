//! Next steps: commands that answer open questions of a campaign, each with the finding that calls for it.

use crate::audit::Cause;
use crate::experiment::Trials;
use crate::record::{Bisected, BisectionVerdict, Campaign, LabKind, Limit, Mode, Row, Summary};
use linerate_wire::units::{Si, counted};

/// A few next steps after `linerate bench`, the most pressing first. `cpus`: CPUs of the host.
pub fn next_steps(campaign: &Campaign, cpus: u32, summary: &Summary) -> Vec<String> {
    let Some(planned) = campaign
        .planned
        .as_ref()
        .filter(|planned| planned.file.is_none())
    else {
        return Vec::new();
    };
    if campaign.asked.lab == LabKind::Simulated && summary.bisection.is_some() {
        let list = "sudo linerate bisect --rules FOLDER";
        return vec![format!(
            "to measure this machine instead of a simulation: {list}"
        )];
    }
    if campaign.asked.lab == LabKind::Simulated {
        let verb = match (summary.benchmarks.is_empty(), summary.searches.is_empty()) {
            (false, _) => "rfc2544 --quick",
            (_, false) => "search",
            _ => "bench",
        };
        return vec![format!(
            "to measure this machine instead of a simulation: sudo linerate {verb}"
        )];
    }
    if let Some(profiled) = summary
        .bisection
        .as_ref()
        .and_then(|found| why(campaign, found))
    {
        return vec![profiled];
    }
    if !summary.searches.is_empty() || summary.bisection.is_some() {
        return vec![
            "each trial, and why it is valid or not: linerate show DIRECTORY --trials".into(),
        ];
    }
    let of_dut = |row: &&Row| {
        campaign
            .slots
            .get(row.slot)
            .is_some_and(|slot| !slot.is_calibration())
    };
    let duts: Vec<&Row> = summary.rows.iter().filter(of_dut).collect();
    let steps = [
        invalid_trials(&duts),
        tester_limit(campaign, &duts),
        lost_inside(&duts),
        uncertain(&planned.experiment.trials, summary),
        scaling(campaign, cpus, &duts),
        under_load(campaign, &duts),
        new_connections(campaign),
        firewall(campaign),
    ];
    steps.into_iter().flatten().take(4).collect()
}

/// Where the time goes in the rule file that made a list slower, beside the one before it.
fn why(campaign: &Campaign, found: &Bisected) -> Option<String> {
    let culprit = found.culprit.as_ref()?;
    let planned = campaign.planned.as_ref()?;
    let factor = planned.experiment.factors.get(found.factor)?;
    let file = |slot: usize| {
        let (_, level) = campaign.slots.get(slot)?.levels.first()?;
        factor.levels.get(*level)
    };
    let of_files = factor.name == "rules" && factor.sets == ["rules.file"];
    let is_found = found.verdict == BisectionVerdict::Found;
    let [before, after] = [file(culprit.after)?, file(culprit.slot)?];
    (of_files && is_found).then(|| {
        format!(
            "where its time goes: sudo linerate bench --rules {before} --rules {after} --profile"
        )
    })
}

fn invalid_trials(duts: &[&Row]) -> Option<String> {
    let failed: usize = duts.iter().map(|r| r.trials - r.valid_trials).sum();
    (failed > 0).then(|| {
        let their = if failed == 1 { "its" } else { "their" };
        format!(
            "why {} failed {their} audit: linerate show DIRECTORY --trials, and trials.jsonl has every check",
            counted(failed, "trial")
        )
    })
}

fn tester_limit(campaign: &Campaign, duts: &[&Row]) -> Option<String> {
    let limited = duts.iter().any(|r| r.limit == Limit::Tester);
    let faster = match (campaign.asked.generator.as_str(), campaign.asked.mode) {
        ("af-packet", _) => "sudo linerate bench has one that is some ten times faster",
        ("wrk", _) => "give it more CPUs (--cpus)",
        ("xdp", Mode::Threaded) => "give it more CPUs (--cpus)",
        (_, Mode::Threaded) => "--backend xdp is faster, and its receiver is no program",
        _ => "give it a CPU of its own: linerate bench --mode threaded",
    };
    limited.then(|| format!("the tester was the limit: {faster}"))
}

fn lost_inside(duts: &[&Row]) -> Option<String> {
    let unexplained = duts
        .iter()
        .flat_map(|r| &r.losses)
        .any(|loss| loss.cause == Cause::Unexplained);
    unexplained.then(|| {
        "frames vanished inside the DUT with no counter to say why: --keep leaves the lab up, and perf trace -e skb:kfree_skb names the reason".into()
    })
}

fn uncertain(trials: &Trials, summary: &Summary) -> Option<String> {
    let ratios = summary.comparisons.iter().filter_map(|c| c.against.ratio);
    let widest = ratios
        .map(|ratio| ratio.relative_width())
        .fold(0.0, f64::max);
    (widest > 0.02 && trials.blocks.is_none()).then(|| {
        // An interval shrinks with the square root of the trials.
        let seconds = trials.budget_ns.unwrap_or(0) as f64 / 1e9 * (widest / 0.02).powi(2);
        match seconds {
            s if s <= 1800.0 => format!("the widest 95 % interval of a change still spans more than 2 %: --budget {:.0}s", s.ceil()),
            _ if widest.is_infinite() => "not every change has an interval yet: let it run to its end, with a longer --budget if it did".into(),
            _ => format!(
                "the widest 95 % interval of a change spans {:.0} %; this machine is too noisy for a much narrower one: try a quieter time, or other CPUs",
                100.0 * widest
            ),
        }
    })
}

/// The verb that measured the campaign, with the option for what it measured.
fn bench(campaign: &Campaign) -> String {
    if let Some(of) = campaign.slots.iter().find_map(|slot| slot.http) {
        let http = serde_json::to_value(of.http).unwrap_or_default();
        let http = http.as_str().unwrap_or_default();
        return format!("linerate bench --http {http}{}", staying(campaign));
    }
    let opened = campaign.slots.iter().find_map(|slot| slot.connections());
    if let Some(open) = opened.and_then(|spec| spec.open) {
        return format!("linerate bench --concurrent {open}{}", staying(campaign));
    }
    let opened = opened.and_then(|spec| serde_json::to_value(spec.exchange).ok());
    match opened.as_ref().and_then(|exchange| exchange.as_str()) {
        Some(exchange) => format!(
            "linerate bench --connections {exchange}{}",
            staying(campaign)
        ),
        None => format!(
            "linerate bench{}{}",
            staying(campaign),
            given(campaign, &OF_FRAMES)
        ),
    }
}

/// Options of the campaign that stay with another load: its DUTs, and what comes with its connections.
const STAYING: [&str; 8] = [
    "--variant",
    "--rules",
    "--map",
    "--family",
    "--flood",
    "--illegal",
    "--servers",
    "--object",
];
/// Options of the campaign that describe its frames.
const OF_FRAMES: [&str; 12] = [
    "--sizes",
    "--size",
    "--flows",
    "--order",
    "--states",
    "--ports",
    "--addresses",
    "--source-macs",
    "--ipv6-share",
    "--extension-headers",
    "--direction",
    "--transport",
];

/// The options that stay, as they were given.
fn staying(campaign: &Campaign) -> String {
    given(campaign, &STAYING)
}

/// The options of these that the campaign has, as they were given.
fn given(campaign: &Campaign, options: &[&str]) -> String {
    let given = &campaign.asked.command;
    let following = given.iter().skip(1).map(Some).chain([None]);
    let option = |(word, next): (&String, Option<&String>)| {
        let (name, joined) = word
            .split_once('=')
            .map_or((word.as_str(), false), |(name, _)| (name, true));
        match next {
            _ if !options.contains(&name) => None,
            _ if joined => Some(format!(" {word}")),
            Some(value) => Some(format!(" {word} {value}")),
            None => None,
        }
    };
    given.iter().zip(following).filter_map(option).collect()
}

/// Two significant digits of a rate.
pub(crate) fn two_digits(rate: f64) -> Si {
    let scale = 10f64.powf(rate.max(f64::MIN_POSITIVE).log10().floor() - 1.0);
    Si((rate / scale).round() * scale)
}

fn scaling(campaign: &Campaign, cpus: u32, duts: &[&Row]) -> Option<String> {
    let one = campaign.asked.mode == Mode::Inline && campaign.roles.generator.len() == 1;
    let limited = duts
        .iter()
        .any(|r| r.limit == Limit::Dut && !r.full_cpus.is_empty());
    (one && cpus > 1 && limited).then(|| {
        let bench = bench(campaign);
        format!(
            "how the rate scales over all CPUs: {bench} --cpus 0-{}",
            cpus - 1
        )
    })
}

fn under_load(campaign: &Campaign, duts: &[&Row]) -> Option<String> {
    let half = half_of_slowest(duts.iter().map(|r| (r.valid_trials, r.received.median)))?;
    let paced = !campaign.carries_http();
    (paced && campaign.asked.mode == Mode::Inline && campaign.asked.rate == "max").then(|| {
        let bench = bench(campaign);
        let opens = campaign.slots.iter().any(|slot| slot.connections().is_some());
        let unit = if opens { " (pps are connections a second here)" } else { "" };
        format!("loss and latency at a load that does not wait for the DUT{unit}: {bench} --mode threaded --rate {half}pps")
    })
}

/// A load that each DUT, on a CPU of its own, should carry. `duts`: valid trials and rate of each. One without a valid trial may be far
/// slower than the others: its trials say why.
fn half_of_slowest(duts: impl Iterator<Item = (usize, f64)> + Clone) -> Option<Si> {
    let known = duts.clone().all(|(valid, _)| valid > 0);
    let slowest = duts.map(|(_, rate)| rate).reduce(f64::min)?;
    (known && slowest > 0.0).then(|| two_digits(slowest / 2.0))
}

/// Rule files are measured with connections that the DUT knows.
fn new_connections(campaign: &Campaign) -> Option<String> {
    let has_file = campaign
        .slots
        .iter()
        .any(|slot| slot.rule_counters.is_some() && slot.connections().is_none());
    has_file.then(|| {
        format!(
            "what its rules cost each new connection: linerate bench --connections request{}",
            staying(campaign)
        )
    })
}

fn firewall(campaign: &Campaign) -> Option<String> {
    let plain = campaign
        .slots
        .iter()
        .all(|s| s.is_calibration() || s.variant == "forwarding");
    plain.then(|| {
        format!(
            "what a firewall costs: {} --variant nft-stateless --variant nft-stateful",
            bench(campaign)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_stay_are_kept_as_they_were_given() {
        let command = "linerate bench --connections request --flood none,200kpps --rules=a.nft --servers 2 --budget 9s --map";
        let mut campaign = Campaign::default();
        campaign.asked.command = command.split(' ').map(String::from).collect();
        assert_eq!(
            bench(&campaign),
            "linerate bench --flood none,200kpps --rules=a.nft --servers 2"
        );
        let command =
            "linerate bench --variant nat --sizes=64,512 --variant xdp --cpus 0 --flows 9";
        campaign.asked.command = command.split(' ').map(String::from).collect();
        assert_eq!(
            bench(&campaign),
            "linerate bench --variant nat --variant xdp --sizes=64,512 --flows 9"
        );
        assert_eq!(staying(&campaign), " --variant nat --variant xdp");
    }

    #[test]
    fn the_load_that_is_advised_is_one_that_each_dut_carries() {
        let half = |duts: &[(usize, f64)]| half_of_slowest(duts.iter().copied());
        let [fast, slow, spoiled] = [(9, 144_000.0), (9, 4_930.0), (0, 0.0)];
        assert_eq!(half(&[fast, slow]).unwrap().to_string(), "2.5k");
        assert_eq!(half(&[fast, spoiled]).map(|rate| rate.to_string()), None);
        assert_eq!(two_digits(988_712.0).to_string(), "990k");
    }
}
