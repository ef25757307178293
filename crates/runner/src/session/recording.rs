//! The head of a campaign's records.

use crate::messages::tell;
use crate::testbed::Testbed;
use crate::testbed::prepare::Prepared;
use linerate_linux::records::utc_now;
use linerate_measure::record::{Asked, Campaign, Guests, Planned, VERSION};

/// A campaign as it begins. `guests`: who runs the instructions of its guests, if it has any.
pub(super) fn record(
    name: String,
    file: Option<String>,
    prepared: Prepared,
    testbed: &dyn Testbed,
    guests: Option<Guests>,
) -> Campaign {
    let Prepared {
        plan,
        skipped,
        slots,
        mut notes,
        standing,
        roles,
        mode,
        ..
    } = prepared;
    notes.extend(testbed.notes().into_iter().inspect(|note| tell(note)));
    let (lab, [generator, receiver], batch) = testbed.names();
    let trials = &plan.experiment.trials;
    let first = plan
        .cells
        .iter()
        .enumerate()
        .find(|(at, _)| !plan.is_ceiling(*at));
    Campaign {
        version: VERSION,
        linerate: env!("CARGO_PKG_VERSION").into(),
        name,
        started: utc_now(),
        asked: Asked {
            command: std::env::args().collect(),
            mode,
            lab,
            guests,
            generator,
            receiver,
            flows: plan
                .kinds
                .iter()
                .map(|k| u64::from(k.flows))
                .max()
                .unwrap_or(0),
            order: plan
                .kinds
                .first()
                .map_or(String::new(), |k| k.order.to_string()),
            rate: first.map_or("max".into(), |(_, cell)| cell.rate.to_string()),
            timing: plan.timing(),
            batch,
            seed: trials.seed.unwrap_or_default(),
        },
        roles,
        slots,
        notes,
        standing,
        planned: Some(Box::new(Planned {
            file,
            skipped,
            plan: plan.rest(),
            source: Some(plan.source),
            experiment: plan.experiment,
        })),
        imported: None,
    }
}
