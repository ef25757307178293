//! Simulated campaigns, of which every page says that they are.

use crate::prelude::*;

/// Simulated figures say so, first and loudly. `of`: whether each campaign on the page is simulated.
pub(super) fn warn_of_simulation(page: &mut Document, of: impl IntoIterator<Item = bool>) {
    if let Some(words) = simulation(of) {
        page.warn(words);
        page.gap();
    }
}

pub(super) fn simulation(of: impl IntoIterator<Item = bool>) -> Option<String> {
    let [mut all, mut simulated] = [0; 2];
    for is_simulated in of {
        all += 1;
        simulated += usize::from(is_simulated);
    }
    let which = match simulated {
        0 => return None,
        _ if simulated == all => "all figures below are".into(),
        _ => format!("{simulated} of {all} campaigns on this page are"),
    };
    Some(format!(
        "SIMULATED: {which} of a simulated DUT inside linerate, NOT of this machine."
    ))
}

pub(super) fn simulated(campaign: &Campaign) -> bool {
    campaign.asked.lab == LabKind::Simulated
}
