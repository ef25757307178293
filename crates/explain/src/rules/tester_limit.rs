//! The tester is as slow as the DUT.

use super::{change, percent};
use crate::{Case, Examined};
use linerate_measure::record::{Finding, Limit, Strength};

pub(super) fn examine(case: &Case<'_>) -> Examined {
    let ratio = case.row.ceiling.and_then(|ceiling| ceiling.ratio);
    match case.row.limit {
        Limit::Unknown => return Err("the rate of the tester without the DUT is not known".into()),
        Limit::Noisy => {
            return Err("the trials scatter too much to tell whether the tester was the limit".into());
        }
        Limit::Tester if ratio.is_none() && !case.slot.no_ceiling => {
            return Err("the tester without the DUT has no valid trial".into());
        }
        Limit::Tester => {}
        _ => return Ok(None),
    }
    let (evidence, strength) = match ratio {
        Some(ratio) => (format!("its rate is {} of the tester's own", percent(ratio.median)), Strength::Observed),
        None => (format!("the DUT lost {} of the frames, so more may pass", percent(case.row.loss_ratio)), Strength::Inferred),
    };
    Ok(Some(Finding {
        statement: "The tester was the limit: the DUT may be faster than this.".into(),
        strength,
        evidence: vec![evidence],
        mechanism: "A rate close to the highest one that generator and receiver reach without a DUT is theirs as well as the DUT's.".into(),
        changes: vec![change("linerate", "linerate bench --mode threaded, or more generator CPUs or hosts", "nothing to undo")],
        gain: "unknown until the tester is clearly faster than the DUT (RFC 2544, section 6)".into(),
        weight: 1.0,
        untried: Some("the tester must change, and not the DUT".into()),
        ..Finding::default()
    }))
}
