//! Embedded labs that cannot stand side by side, because they want the host in different states: one stands at a time.

use super::{Embedded, EmbeddedPlan, Testbed, TrialOutcome};
use anyhow::{Context, Result};
use linerate_plan::timing::Timing;
use std::sync::atomic::AtomicBool;

/// The lab of each slot, and the slot's number there; none for slots that are not measured.
pub type Places = Vec<Option<(usize, usize)>>;

/// One lab for each group of slots; the one that was needed last is up.
pub struct SequentialLabs {
    plans: Vec<EmbeddedPlan>,
    places: Places,
    batch: u32,
    standing: Option<(usize, Embedded)>,
}

impl SequentialLabs {
    /// Nothing is built before it is needed.
    pub fn new(plans: Vec<EmbeddedPlan>, places: Places) -> Self {
        SequentialLabs { plans, places, batch: 64, standing: None }
    }

    /// Chooses the batch size by trying on a slot; see [`Embedded::choose_batch`].
    ///
    /// # Errors
    /// The lab cannot be built, or the load not run.
    pub fn choose_batch(&mut self, slot: usize, interrupted: &AtomicBool) -> Result<(u32, String)> {
        let (embedded, slot) = self.stand(slot, interrupted)?;
        let chosen = embedded.choose_batch(slot, interrupted)?;
        self.batch = chosen.0;
        Ok(chosen)
    }

    /// The lab that stands.
    pub fn standing(&self) -> Option<&Embedded> {
        self.standing.as_ref().map(|(_, embedded)| embedded)
    }

    /// Takes over a batch size that was chosen before.
    pub fn set_batch(&mut self, batch: u32) {
        self.batch = batch;
        if let Some((_, embedded)) = &mut self.standing {
            embedded.set_batch(batch);
        }
    }

    /// The lab of a slot, built if another one stood, and the slot's number there.
    fn stand(&mut self, slot: usize, interrupted: &AtomicBool) -> Result<(&mut Embedded, usize)> {
        let (lab, slot) = self.places[slot].context("this cell is skipped, and has no lab")?;
        if self.standing.as_ref().is_none_or(|(standing, _)| *standing != lab) {
            // Down before the next one is up: each puts the host back as it was.
            self.standing = None;
            let mut embedded = Embedded::build(self.plans[lab].clone())?;
            embedded.set_batch(self.batch);
            embedded.learn(interrupted)?;
            self.standing = Some((lab, embedded));
        }
        let (_, embedded) = self.standing.as_mut().expect("it stands now");
        Ok((embedded, slot))
    }
}

impl Testbed for SequentialLabs {
    fn run(
        &mut self,
        slot: usize,
        load: Option<f64>,
        timing: Timing,
        interrupted: &AtomicBool,
    ) -> Result<TrialOutcome> {
        let (embedded, slot) = self.stand(slot, interrupted)?;
        embedded.run(slot, load, timing, interrupted)
    }
}
