//! The guest's side: linerate as the first program, which measures what its host asks for.

use super::message::{Answer, Lab, Machine, Order, Preparation, line};
use crate::messages::{tell, told};
use crate::progress;
use crate::session;
use crate::testbed::Testbed;
use crate::testbed::prepare::{Prepared, prepare};
use anyhow::{Context, Result};
use linerate_linux::guest::inside;
use linerate_linux::host;
use linerate_linux::host::changes::Consent;
use linerate_linux::lab::support;
use linerate_measure::record::Skipped;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;

/// Serves the host until it ends the guest.
pub fn serve() {
    progress::silence();
    if let Err(error) = dialogue() {
        tell(told(&error));
    }
    inside::end();
}

fn dialogue() -> Result<()> {
    let port = inside::begin()?;
    let mut answers = port.try_clone()?;
    let mut orders = BufReader::new(port);
    let mut testbed: Option<Box<dyn Testbed>> = None;
    let mut order = Vec::new();
    while orders.read_until(b'\n', &mut order)? > 0 {
        let answer = carry_out(&order, &mut testbed);
        let failed = |e: anyhow::Error| Answer::Failed { why: told(&e) };
        answers.write_all(&line(&answer.unwrap_or_else(failed)))?;
        order.clear();
    }
    Ok(())
}

fn carry_out(order: &[u8], testbed: &mut Option<Box<dyn Testbed>>) -> Result<Answer> {
    match serde_json::from_slice(order).context("the guest does not understand its host")? {
        Order::Hello {} => Ok(Answer::Welcome(Box::new(Machine {
            facts: host::facts(Path::new("/")),
            no_xdp: support::no_live_frames().or_else(support::no_xdp),
        }))),
        Order::Prepare(preparation) => {
            let (prepared, standing) = stand(*preparation)?;
            let (_, _, batch) = standing.names();
            let notes = [prepared.notes, standing.notes()].concat();
            *testbed = Some(standing);
            Ok(Answer::Prepared(Lab {
                skipped: prepared.skipped,
                notes,
                backend: prepared.backend,
                batch,
            }))
        }
        Order::Run(request) => {
            let testbed = testbed.as_mut().context("there is no lab yet")?;
            Ok(Answer::Outcome(Box::new(testbed.run(&request)?)))
        }
    }
}

/// The lab of the cells that have this guest's kernel.
fn stand(preparation: Preparation) -> Result<(Prepared, Box<dyn Testbed>)> {
    let Preparation {
        plan,
        kernel,
        no_xdp,
        batch,
    } = preparation;
    // Nothing in a guest outlives it.
    let mut prepared = prepare(&plan, Consent::Allowed, false, no_xdp.as_deref())?;
    let is_own =
        |cell: usize| plan.lanes[plan.cells[cell].lane].settings.kernel.as_ref() == Some(&kernel);
    prepared.skipped.retain(|skipped| is_own(skipped.cell));
    let own = prepared.skipped.clone();
    let others = (0..plan.cells.len()).filter(|cell| !is_own(*cell));
    prepared.skipped.extend(others.map(|cell| Skipped {
        cell,
        reasons: vec!["it is for another kernel".into()],
        optional: true,
    }));
    let standing = session::local(&mut prepared, batch)?;
    prepared.skipped = own;
    Ok((prepared, standing))
}
