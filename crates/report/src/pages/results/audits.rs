//! The audit of the trials, and the machine: what someone who was not there needs to believe the figures.

use super::shown::Shown;
use crate::prelude::*;

/// Failed trials that are listed.
const MOST: usize = 10;

/// Every check with the trials that it held in, and the trials that failed one.
pub fn audits(page: &mut Document, shown: &Shown<'_>) {
    let mut checks: BTreeMap<&str, (usize, usize, &str)> = BTreeMap::new();
    for check in shown.trials.iter().flat_map(|trial| &trial.audit.checks) {
        let (held, failed, example) = checks.entry(&check.name).or_default();
        if check.ok {
            *held += 1
        } else {
            *failed += 1
        }
        if example.is_empty() || (!check.ok && *failed == 1) {
            *example = &check.found;
        }
    }
    if checks.is_empty() {
        return;
    }
    page.heading("Audit");
    let valid = shown
        .trials
        .iter()
        .filter(|trial| trial.audit.valid)
        .count();
    let all = shown.trials.len();
    let others = when(valid < all, " The others are in no result.");
    page.say(format!(
        "{valid} of {all} trials are valid: every check of theirs held.{others}"
    ));
    page.table(
        Table::of(checks)
            .column("check", "", |(name, _)| *name)
            .column("held in", "trials", |(_, (held, ..))| *held)
            .column("failed in", "trials", |(_, (_, failed, _))| *failed)
            .column("for example", "", |(.., (.., example))| *example),
    );
    let failed = shown.trials.iter().filter(|trial| !trial.audit.valid);
    let told = failed.map(|trial| {
        let (number, name) = (trial.trial + 1, shown.name(trial.slot));
        let why = trial.audit.failures().joined("; ");
        format!("trial {number}, {name}: {why}")
    });
    page.items(
        "- ",
        told,
        Tone::Plain,
        (MOST, "; trials.jsonl has them all"),
    );
}

/// The machine's facts.
pub fn machine(page: &mut Document, host: &HostFacts) {
    if host.kernel.is_empty() {
        return;
    }
    page.folded("The machine", |page| {
        let memory = bytes(host.memory);
        for (name, text) in [
            ("system", host.os.as_str()),
            ("kernel", &host.kernel),
            ("machine", &host.machine),
            ("CPU", &host.cpu_model),
            ("CPUs", &host.cpus.to_string()),
            ("memory", if host.memory > 0 { &memory } else { "" }),
            ("under", host.hypervisor.as_deref().unwrap_or_default()),
            ("governor", &host.governor),
            ("clock", &host.clock_source),
            (
                "priority",
                host.priority
                    .as_ref()
                    .map_or("", |known| known.as_ref().unwrap_or_else(|why| why)),
            ),
        ] {
            page.fact(name, text);
        }
        for (heading, name, facts) in [
            ("Interfaces", "interface", &host.interfaces),
            ("Mitigations", "vulnerability", &host.mitigations),
            ("Settings", "setting", &host.settings),
            ("Versions", "tool", &host.versions),
        ] {
            page.section(
                heading,
                Table::of(facts)
                    .column(name, "", |(name, _)| name.as_str())
                    .column("", "", |(_, value)| value.as_str()),
            );
        }
    });
}
