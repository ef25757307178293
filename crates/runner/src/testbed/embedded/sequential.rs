//! The labs of a plan one after another: each is built when one of its cells is measured next.

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

/// One lab for each group of lanes; the one that was needed last is up.
pub struct SequentialLabs {
    prepared: Rc<Prepared>,
    batch: u32,
    standing: Option<(usize, Embedded)>,
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
        let known = batch.or(match plan.lab {
            Lab::Embedded { batch, .. } => batch,
            Lab::File { .. } => None,
        });
        let fastest = |cell: &usize| !plan.is_ceiling(*cell) && plan.cells[*cell].rate == Rate::Max;
        let to_try = prepared
            .measured()
            .find(fastest)
            .filter(|_| known.is_none());
        let batch = known.unwrap_or(if to_try.is_some() { 64 } else { PACED_BATCH });
        let mut labs = SequentialLabs {
            prepared: Rc::new(prepared.clone()),
            batch,
            standing: None,
        };
        if let Some(cell) = to_try {
            let (batch, measured) = labs.stand(cell)?.choose_batch(cell)?;
            labs.batch = batch;
            prepared.notes.push(format!(
                "batch size {batch}: 64, unless another is 4 % faster in each round (medians {measured})"
            ));
        }
        Ok(labs)
    }

    /// The lab of a cell, built if another one stood.
    fn stand(&mut self, cell: usize) -> Result<&mut Embedded> {
        let group = self.prepared.group(cell);
        if self
            .standing
            .as_ref()
            .is_none_or(|(standing, _)| *standing != group)
        {
            // Down before the next one is up: each puts the host back as it was.
            self.standing = None;
            let mut embedded = Embedded::build(Rc::clone(&self.prepared), group, self.batch)?;
            embedded.learn()?;
            self.standing = Some((group, embedded));
        }
        Ok(&mut self.standing.as_mut().expect("it stands now").1)
    }
}

impl Testbed for SequentialLabs {
    fn run(&mut self, request: &Request) -> Result<TrialOutcome> {
        self.stand(request.slot)?.run(request)
    }

    fn dut(&self, slot: usize) -> Option<usize> {
        Some(self.prepared.lane(slot))
    }

    fn names(&self) -> (LabKind, [String; 2], u32) {
        let name = self.prepared.backend.name();
        (LabKind::Namespaces, [name.into(), name.into()], self.batch)
    }

    fn lab(&self) -> Option<&EmbeddedLab> {
        self.standing.as_ref().map(|(_, embedded)| embedded.lab())
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
            "af-xdp sends only one kind of frames, because a queue has one such socket: choose one --family and --size, or another --port"
        );
    }
    Ok(())
}
