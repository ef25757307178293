//! The cells that are not measured, and the reasons.

use super::{distinct, flows, setup};
use linerate_linux::host::changes::Consent;
use linerate_linux::lab::{end_hosts, support};
use linerate_measure::record::{Mode, Skipped};
use linerate_plan::campaign::{Campaign, Lab, Requirement};
use linerate_wire::Family;
use std::path::Path;

/// The cells that cannot be measured here, with the reasons.
pub(super) fn skipped(plan: &Campaign, consent: Consent) -> Vec<Skipped> {
    let unmet = |needs: &[Requirement]| needs.iter().filter_map(support::unmet).collect::<Vec<_>>();
    let of_lane = |lane: usize| {
        [
            unmet(&plan.lanes[lane].requirements),
            lacking(plan, lane, consent),
        ]
        .concat()
    };
    let mut all = lacking_of_cells(
        plan,
        &unmet(&plan.requirements),
        (0..plan.lanes.len()).map(of_lane).collect(),
    );
    let programs = ["nginx", "wrk"].map(|name| Requirement::Tool(name.into()));
    for (cell, reasons) in plan.cells.iter().zip(&mut all) {
        let kind = &plan.kinds[cell.kind];
        let both = usize::from(kind.needs_nginx()) + usize::from(kind.http.is_some());
        reasons.extend(unmet(&programs[..both]));
    }
    let ipv6 = Path::new("/proc/sys/net/ipv6").exists();
    for (cell, reasons) in plan.cells.iter().zip(&mut all) {
        if plan.kinds[cell.kind]
            .families()
            .any(|family| family == Family::V6)
            && !ipv6
        {
            reasons.push("this kernel has no IPv6".into());
        }
        let dut = plan.lanes[cell.lane].settings.dut;
        let only = dut.tunnel().and_then(|tunnel| tunnel.only);
        let others = only.filter(|only| plan.kinds[cell.kind].families().any(|f| f != *only));
        reasons.extend(others.map(|only| format!("{dut} carries {only} alone")));
    }
    // A ceiling for nothing is not measured either.
    for ceiling in 0..all.len() {
        let mut users = plan
            .cells
            .iter()
            .enumerate()
            .filter(|(_, c)| c.ceiling == Some(ceiling))
            .peekable();
        if all[ceiling].is_empty()
            && users.peek().is_some()
            && users.all(|(user, _)| !all[user].is_empty())
        {
            all[ceiling].push("nothing is compared with it".into());
        }
    }
    with_reasons(plan, all)
}

/// By cell: missing requirements of the plan and of its lane.
pub fn lacking_of_cells(
    plan: &Campaign,
    of_plan: &[String],
    of_lanes: Vec<Vec<String>>,
) -> Vec<Vec<String>> {
    let of_cell = |lane: usize| distinct(of_plan.iter().chain(&of_lanes[lane]).cloned());
    plan.cells.iter().map(|cell| of_cell(cell.lane)).collect()
}

/// The cells that have reasons not to be measured. A ceiling is wanted only with the cells that it belongs to.
pub fn with_reasons(plan: &Campaign, all: Vec<Vec<String>>) -> Vec<Skipped> {
    let cells = all
        .into_iter()
        .enumerate()
        .filter(|(_, reasons)| !reasons.is_empty());
    let optional = |cell: usize| plan.is_ceiling(cell) || plan.cells[cell].optional;
    cells
        .map(|(cell, reasons)| Skipped {
            cell,
            reasons,
            optional: optional(cell),
        })
        .collect()
}

/// Reasons why a lane cannot run here: faults, missing kernel features, host settings without consent.
fn lacking(plan: &Campaign, lane: usize, consent: Consent) -> Vec<String> {
    let setup = match setup(plan, lane, 0) {
        Ok(setup) => setup,
        Err(fault) => return vec![fault],
    };
    if matches!(
        plan.lab,
        Lab::Embedded {
            mode: Mode::EndHosts,
            ..
        }
    ) {
        return end_hosts::lacking(&setup);
    }
    let mut reasons = setup.lacking();
    if reasons.is_empty() && consent == Consent::Refused {
        match setup.outstanding(flows(plan, lane)) {
            Ok(wanted) if wanted.is_empty() => {}
            Ok(wanted) => reasons.push(format!(
                "it needs other settings of the whole host: {} (--allow-host-changes lets linerate set and restore them)",
                wanted.join("; ")
            )),
            Err(error) => reasons.push(error.to_string()),
        }
    }
    reasons
}
