//! The labs of a plan one after another: each is built when one of its cells is measured next.

use super::batch::USUAL_BATCH;
use super::{Embedded, PACED_BATCH, kinds};
use crate::testbed::prepare::{Prepared, TrafficKind, distinct};
use crate::testbed::{Request, Testbed, TrialOutcome};
use anyhow::{Result, bail};
use linerate_linux::lab::EmbeddedLab;
use linerate_measure::record::LabKind;
use linerate_plan::Backend;
use linerate_plan::campaign::Lab;
use linerate_plan::units::Rate;
use linerate_wire::STREAMS;
use std::rc::Rc;

/// A lab of a group of lanes, ready for trials.
pub trait GroupLab: Sized {
    /// Builds it. `batch`: frames that are handed over at once.
    ///
    /// # Errors
    /// No privilege, or something that this kernel does not have.
    fn stand(prepared: &Rc<Prepared>, group: usize, batch: u32) -> Result<Self>;

    /// Runs one trial.
    ///
    /// # Errors
    /// The trial could not be run at all.
    fn run(&mut self, request: &Request) -> Result<TrialOutcome>;

    /// The lab itself, to be kept up.
    fn lab(&self) -> &EmbeddedLab;

    /// The programs at both ends, where they are no ports of linerate's.
    fn programs() -> Option<[&'static str; 2]> {
        None
    }

    /// Remarks about the tester, for the record and the page.
    fn notes(_prepared: &Prepared) -> Vec<String> {
        Vec::new()
    }
}

/// One lab for each group of lanes; the one that was needed last is up.
pub struct SequentialLabs<L = Embedded> {
    prepared: Rc<Prepared>,
    batch: u32,
    standing: Option<(usize, L)>,
}

/// The batch of a campaign that is resumed, or else the plan's.
fn known(prepared: &Prepared, resumed: Option<u32>) -> Option<u32> {
    resumed.or(match prepared.plan.lab {
        Lab::Embedded { batch, .. } => batch,
        Lab::File { .. } => None,
    })
}

impl SequentialLabs {
    /// The labs of a plan, built when they are needed. `batch`: that of the campaign that is resumed; otherwise it is the plan's, or chosen
    /// by trying.
    ///
    /// # Errors
    /// The lab cannot be built, or the load not run.
    pub fn new(prepared: &mut Prepared, batch: Option<u32>) -> Result<Self> {
        let plan = &prepared.plan;
        // All of them, before the first one stands.
        for group in distinct(prepared.measured().map(|cell| prepared.group(cell))) {
            check(prepared.backend, &kinds(prepared, prepared.in_group(group)))?;
        }
        let known = known(prepared, batch);
        let fastest = |cell: &usize| !plan.is_ceiling(*cell) && plan.cells[*cell].rate == Rate::Max;
        let to_try = prepared
            .measured()
            .find(fastest)
            .filter(|_| known.is_none());
        let batch = known.unwrap_or(if to_try.is_some() {
            USUAL_BATCH
        } else {
            PACED_BATCH
        });
        let mut labs = Self::of(prepared, batch);
        if let Some(cell) = to_try {
            let (batch, measured) = labs.stand(cell)?.choose_batch(cell)?;
            labs.batch = batch;
            let why = match batch {
                USUAL_BATCH => {
                    "the usual one; no other was at least 4 % faster in each of the rounds"
                        .to_string()
                }
                _ => format!("at least 4 % faster than {USUAL_BATCH} in each of the rounds"),
            };
            prepared.notes.push(format!(
                "batch size {batch} frames: {why} (medians {measured})"
            ));
        }
        Ok(labs)
    }
}

impl<L: GroupLab> SequentialLabs<L> {
    fn of(prepared: &Prepared, batch: u32) -> Self {
        SequentialLabs {
            prepared: Rc::new(prepared.clone()),
            batch,
            standing: None,
        }
    }

    /// The labs of a plan, built when they are needed. `batch`: that of the campaign that is resumed; otherwise it is the plan's, or `usual`.
    pub fn with_batch(prepared: &Prepared, batch: Option<u32>, usual: u32) -> Self {
        SequentialLabs::of(prepared, known(prepared, batch).unwrap_or(usual))
    }

    /// The lab of a cell, built if another one stood.
    fn stand(&mut self, cell: usize) -> Result<&mut L> {
        let group = self.prepared.group(cell);
        let stands = |(standing, _): &(usize, L)| *standing == group;
        if !self.standing.as_ref().is_some_and(stands) {
            // Down before the next one is up: each puts the host back as it was.
            self.standing = None;
            self.standing = Some((group, L::stand(&self.prepared, group, self.batch)?));
        }
        Ok(&mut self.standing.as_mut().expect("it stands now").1)
    }
}

impl<L: GroupLab> Testbed for SequentialLabs<L> {
    fn run(&mut self, request: &Request) -> Result<TrialOutcome> {
        self.stand(request.slot)?.run(request)
    }

    fn dut(&self, slot: usize) -> Option<usize> {
        Some(self.prepared.lane(slot))
    }

    fn names(&self) -> (LabKind, [String; 2], u32) {
        let name = self.prepared.backend.name();
        let names = L::programs().unwrap_or([name, name]);
        (LabKind::Namespaces, names.map(String::from), self.batch)
    }

    fn notes(&self) -> Vec<String> {
        L::notes(&self.prepared)
    }

    fn lab(&self) -> Option<&EmbeddedLab> {
        self.standing.as_ref().map(|(_, standing)| standing.lab())
    }
}

/// Refuses kinds of traffic that a backend cannot send side by side.
fn check(backend: Backend, kinds: &[(usize, &TrafficKind)]) -> Result<()> {
    kinds
        .iter()
        .try_for_each(|(_, kind)| backend.check(&kind.traffic))?;
    let streams: usize = kinds.iter().map(|(_, kind)| kind.streams()).sum();
    if streams > STREAMS {
        bail!(
            "{} kinds of frames, times their generator CPUs and directions, make {streams} streams, but a receiver distinguishes {STREAMS}: use fewer kinds or CPUs",
            kinds.len()
        );
    }
    if backend == Backend::AfXdp && kinds.len() > 1 {
        bail!(
            "af-xdp sends only one kind of frames, because a queue has one such socket: choose one --family and --size, or another --backend"
        );
    }
    Ok(())
}
