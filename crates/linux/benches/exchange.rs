//! How long it takes until another rule set is loaded where one was: `cargo bench -p linerate-linux --bench exchange`, as root.
//! Each of the minimal sets is exchanged for each, on one standing lane, in turn; a lane that is built anew for each is the
//! alternative. The bar is 0.5 s.

use linerate_linux::host::changes::Consent;
use linerate_linux::lab::{EmbeddedLab, LabSpec, Setup};
use linerate_measure::record::Mode;
use linerate_plan::rules::{Firewall, Kind, RuleSet};
use linerate_plan::settings::Settings;
use linerate_wire::Family;
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Instant;

const BAR: f64 = 0.5;
const ROUNDS: usize = 15;

fn setup(tool: Firewall, filter: Kind) -> Setup {
    let rules = RuleSet {
        hash_sized: false,
        ..RuleSet::new(tool, filter)
    };
    let settings = Settings {
        rules: Some(rules),
        ..Settings::default()
    };
    let name = format!("{tool:?} {filter:?}").to_lowercase();
    Setup::from_settings(&name, 0, &settings, &[Family::V4])
        .expect("a minimal rule set has no faults")
}

fn lab(setup: &Setup) -> EmbeddedLab {
    let spec = LabSpec {
        both_ways: false,
        mode: Mode::Inline,
        generator_cpus: vec![0],
        dut_cpus: Vec::new(),
        longest_fcs: 64,
        flows: 100,
        host_changes: Consent::Refused,
        interrupted: None,
    };
    EmbeddedLab::build(spec, std::slice::from_ref(setup))
        .expect("the lab can be built: this needs root")
}

fn main() -> ExitCode {
    let tools = [Firewall::Nftables, Firewall::Iptables];
    let sets: Vec<Setup> = tools
        .into_iter()
        .flat_map(|tool| {
            [Kind::Stateless, Kind::Stateful, Kind::Nat].map(|filter| setup(tool, filter))
        })
        .filter(|setup| setup.lacking().is_empty())
        .collect();
    let Some(first) = sets.first() else {
        println!("exchange: needs nft or iptables");
        return ExitCode::SUCCESS;
    };
    let (mut times, mut standing) = (BTreeMap::<String, Vec<f64>>::new(), lab(first));
    for _ in 0..ROUNDS {
        for (from, to) in sets
            .iter()
            .flat_map(|from| sets.iter().map(move |to| (from, to)))
        {
            standing.lanes[0]
                .exchange(from)
                .expect("the rule set is loaded");
            let began = Instant::now();
            standing.lanes[0]
                .exchange(to)
                .expect("the rule set is loaded");
            times
                .entry(format!("to {}", to.name))
                .or_default()
                .push(began.elapsed().as_secs_f64());
        }
    }
    drop(standing);
    for _ in 0..ROUNDS {
        for to in &sets {
            let began = Instant::now();
            let built = lab(to);
            times
                .entry(format!("anew {}", to.name))
                .or_default()
                .push(began.elapsed().as_secs_f64());
            drop(built);
        }
    }
    report(&mut times)
}

fn report(times: &mut BTreeMap<String, Vec<f64>>) -> ExitCode {
    println!(
        "{:<28} {:>10} {:>10} {:>6}",
        "", "median ms", "longest", "n"
    );
    let mut met = true;
    for (what, seconds) in times {
        seconds.sort_by(f64::total_cmp);
        let (median, longest) = (seconds[seconds.len() / 2], seconds[seconds.len() - 1]);
        println!(
            "{what:<28} {:>10.1} {:>10.1} {:>6}",
            median * 1e3,
            longest * 1e3,
            seconds.len()
        );
        met &= !what.starts_with("to ") || median < BAR;
    }
    println!(
        "bar: an exchange below {BAR} s: {}",
        if met { "met" } else { "MISSED" }
    );
    if met {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
