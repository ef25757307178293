//! Plain forwarding beside the variants of a plan.

use super::{Choice, chosen};
use crate::messages::tell;
use crate::testbed::prepare::distinct;
use linerate_measure::experiment::Measure;
use linerate_plan::campaign::{Campaign as Plan, Lab};
use std::path::Path;

/// A variant of plain forwarding, whose profile shows what the frames of other variants pass.
const PLAIN: &str = "plain";

/// The plan with plain forwarding, if it measures rates of routers in the embedded lab, and none of its variants is one. As it is, where its
/// factors set something on every variant.
pub fn with_plain(plan: Plan, choice: &Choice, file: &Path, simulated: bool) -> Plan {
    let is_plain = |plan: &Plan| plan.lanes.iter().any(|lane| lane.settings.is_plain());
    let routes = |plan: &Plan| plan.lanes.iter().all(|lane| lane.settings.path.is_none());
    let embedded = matches!(plan.lab, Lab::Embedded { .. });
    if !embedded
        || !routes(&plan)
        || is_plain(&plan)
        || plan.experiment.trials.measure != Measure::Rate
    {
        return plan;
    }
    let variants = plan.cells.iter().map(|cell| cell.variant.as_str());
    let named = distinct(variants.chain([PLAIN])).into_iter();
    let named: Vec<String> = named
        .filter(|name| *name != "tester-baseline")
        .map(String::from)
        .collect();
    let found = chosen(choice, file, simulated, |source| {
        source.set("", &["variants", PLAIN, "from"], "forwarding");
        if source.has(&["quick", "variants"]) {
            source.set("", &["quick", "variants"], named);
        }
        Ok(())
    });
    match found {
        Ok((with, _)) if is_plain(&with) => {
            tell(
                "--profile needs plain forwarding beside the variants, so it is measured as well (variant plain)",
            );
            with
        }
        _ => plan,
    }
}
