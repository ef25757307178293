//! Embedded labs that cannot stand side by side, because they want the host in different states: one stands at a time.

use super::prepare::Prepared;
use super::{Embedded, Request, Testbed, TrialOutcome};
use anyhow::Result;
use linerate_linux::lab::EmbeddedLab;
use linerate_measure::record::LabKind;
use std::rc::Rc;

/// One lab for each group of lanes; the one that was needed last is up.
pub struct SequentialLabs {
    prepared: Rc<Prepared>,
    batch: u32,
    standing: Option<(usize, Embedded)>,
}

impl SequentialLabs {
    /// Nothing is built before it is needed.
    pub fn new(prepared: Prepared, batch: u32) -> Self {
        SequentialLabs { prepared: Rc::new(prepared), batch, standing: None }
    }

    /// Chooses the batch size by trying on a cell; see [`Embedded::choose_batch`].
    ///
    /// # Errors
    /// The lab cannot be built, or the load not run.
    pub fn choose_batch(&mut self, cell: usize) -> Result<(u32, String)> {
        let chosen = self.stand(cell)?.choose_batch(cell)?;
        self.batch = chosen.0;
        Ok(chosen)
    }

    /// The lab of a cell, built if another one stood.
    fn stand(&mut self, cell: usize) -> Result<&mut Embedded> {
        let group = self.prepared.group(cell);
        if self.standing.as_ref().is_none_or(|(standing, _)| *standing != group) {
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

    fn names(&self) -> (LabKind, [String; 2]) {
        let name = self.prepared.backend.name();
        (LabKind::Namespaces, [name.into(), name.into()])
    }

    fn lab(&self) -> Option<&EmbeddedLab> {
        self.standing.as_ref().map(|(_, embedded)| embedded.lab())
    }
}
