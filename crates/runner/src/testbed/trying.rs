//! Variants are made and taken back before a campaign: what the DUT does not take, and what it has already.

use super::embedded::lab_spec;
use super::end_hosts::link_of;
use super::prepare::Prepared;
use crate::interrupt::{INTERRUPTED as STOP, interrupted};
use crate::messages::told;
use anyhow::{Result, anyhow, bail};
use linerate_hosts::dut_changes::{Check, Port, Target, questions};
use linerate_linux::lab::EmbeddedLab;
use linerate_linux::lab::end_hosts::{EndHosts, way};
use linerate_linux::net::Netns;
use linerate_measure::experiment::System;
use linerate_measure::record::Mode;
use linerate_plan::tuning::NOTHING_NEW;
use linerate_remote::{ExecutionTarget, Order};
use std::sync::Arc;

/// The variants that the DUT of the embedded lab does not take, or that change nothing of it, with the reasons. No frame is sent.
///
/// # Errors
/// The first variant cannot be made either.
pub fn try_out(prepared: &Prepared, base: &str) -> Result<Vec<(String, String)>> {
    let plan = &prepared.plan;
    let cells: Vec<usize> = prepared
        .measured()
        .filter(|cell| !plan.is_ceiling(*cell))
        .collect();
    let variant = |cell: &usize| plan.cells[*cell].variant.as_str();
    let Some(first) = cells.iter().find(|cell| variant(cell) == base) else {
        return Ok(Vec::new());
    };
    let stands = Standing::of(prepared, *first)
        .map_err(|why| anyhow!("the DUT as it is ({base}) cannot be made: {why}"))?;
    let others: Vec<usize> = cells
        .iter()
        .copied()
        .filter(|cell| variant(cell) != base)
        .collect();
    let settings = |cell: usize| &plan.lanes[prepared.lane(cell)].settings;
    let is_there = |cell: &&usize| {
        let (base, wanted) = (settings(*first), settings(**cell));
        // The tester's programs may change offloads of the cards, and they are not attached yet.
        let of_cards = base.inside != wanted.inside || base.outside != wanted.outside;
        let asked = questions(base, wanted, &stands.target()).filter(|_| !of_cards);
        asked.is_some_and(|asked| stands.has(&asked))
    };
    let there: Vec<usize> = others.iter().filter(is_there).copied().collect();
    // One at a time: each may change settings of the host.
    drop(stands);
    let mut found = Vec::new();
    for cell in &others {
        let reason = if there.contains(cell) {
            Some(NOTHING_NEW.into())
        } else {
            Standing::of(prepared, *cell).err()
        };
        if interrupted() {
            bail!("interrupted");
        }
        found.extend(reason.map(|reason| (variant(cell).to_string(), reason)));
    }
    Ok(found)
}

/// Whether all questions have the wanted answers. A question that gets no answer has not.
pub(super) fn has_already(place: &ExecutionTarget, sudo: bool, asked: &[Check]) -> bool {
    asked.iter().all(|check| {
        let order = Order::program(&check.read.program.argv).by_sudo(sudo);
        let answer = place.run(&order, Some(&STOP)).ok();
        let answer = answer.filter(|answer| answer.is_success());
        let value = answer.and_then(|answer| check.read.form.value(&answer.text()));
        value.is_some_and(|value| check.is_met_by(&value))
    })
}

/// A DUT that stands as one variant.
enum Standing {
    Lab(Box<EmbeddedLab>),
    Ends(EndHosts),
}

impl Standing {
    /// # Errors
    /// The DUT does not take this variant.
    fn of(prepared: &Prepared, cell: usize) -> Result<Standing, String> {
        let words = |error: linerate_linux::Error| error.to_string();
        let setup = prepared
            .setup(prepared.lane(cell), 0)
            .map_err(|error| told(&error))?;
        if prepared.mode == Mode::EndHosts {
            let by = setup.settings.path.as_ref().map(|path| path.by);
            let (by_kernel, _) = way(by.unwrap_or_default());
            let ends = EndHosts::new(&setup, link_of(&setup), by_kernel).map_err(words)?;
            return Ok(Standing::Ends(ends));
        }
        let spec = lab_spec(prepared, prepared.group(cell));
        let lab = EmbeddedLab::build(spec, &[setup]).map_err(words)?;
        match lab.lanes.iter().find_map(|lane| lane.fault.clone()) {
            Some(fault) => Err(fault),
            None => Ok(Standing::Lab(Box::new(lab))),
        }
    }

    fn target(&self) -> Target {
        let names = match self {
            Standing::Lab(lab) => lab.lanes.first().and_then(|lane| {
                let dut = lane.dut.as_ref()?;
                Some([&dut.inside, &dut.outside].map(|card| card.name.clone()))
            }),
            Standing::Ends(_) => None,
        };
        let port = |name: String| Port {
            name,
            addresses: Vec::new(),
            next_hops: Vec::new(),
            networks: Vec::new(),
        };
        let [inside, outside] = names.unwrap_or_default().map(port);
        Target {
            system: System::Linux,
            inside,
            outside,
            config_save: None,
        }
    }

    /// Whether the DUT has all that is asked for.
    fn has(&self, asked: &[Check]) -> bool {
        let places: Vec<ExecutionTarget> = match self {
            Standing::Lab(lab) => lab
                .lanes
                .first()
                .and_then(ExecutionTarget::of_dut)
                .into_iter()
                .collect(),
            Standing::Ends(ends) => ends.namespaces().map(here).into(),
        };
        let has = |place: ExecutionTarget| {
            let place = Arc::new(place).with_sysfs();
            place.is_ok_and(|place| has_already(&place, false, asked))
        };
        !places.is_empty() && places.into_iter().all(has)
    }
}

fn here(namespace: &Netns) -> ExecutionTarget {
    ExecutionTarget::Here {
        name: "an end host".into(),
        netns: Some(namespace.clone()),
    }
}
