//! The card's slot has fewer lanes, or slower ones, than the card.

use super::change;
use crate::{Case, Examined};
use linerate_measure::record::{Finding, Strength};

pub(super) fn examine(case: &Case<'_>) -> Examined {
    let Some(card) = case.hardware()? else { return Ok(None) };
    let pci = &card.pci;
    let (Some(width), Some(speed)) = (pci.width, pci.speed) else {
        return Err("the card's PCIe link is not known".into());
    };
    // PCIe up to 5 GT/s sends 10 bits for 8, later ones 130 for 128 (PCI Express Base Specification, 4.2).
    let coded = if speed > 5.0 { 128.0 / 130.0 } else { 0.8 };
    let gigabits = f64::from(width) * speed * coded;
    let narrow = pci.most_width > Some(width) || pci.most_speed.is_some_and(|most| most > speed);
    let needed = card.speed.map(|bits| bits / 1e9);
    let short = needed.is_some_and(|needed| gigabits < needed);
    if !narrow && !short {
        return Ok(None);
    }
    let possible = pci.most_width.zip(pci.most_speed).map(|(width, speed)| format!(" of {width} at {speed} GT/s"));
    Ok(Some(Finding {
        statement: format!("The PCIe link of {} is narrower than the card's.", card.name),
        strength: if short { Strength::Inferred } else { Strength::Possible },
        evidence: vec![format!("{width} lanes at {speed} GT/s{}: {gigabits:.1} Gbit/s each way", possible.unwrap_or_default())],
        mechanism: "Each frame crosses the link with descriptors and headers of its own: short frames need more of it than the bits of the network.".into(),
        changes: vec![change("any", "put the card into a slot with all its lanes; look at the BIOS for bifurcation and link speed", "the former slot")],
        gain: "unknown; without enough lanes the card cannot reach its line rate".into(),
        weight: if short { 0.5 } else { 0.1 },
        untried: Some("the card must move to another slot".into()),
        ..Finding::default()
    }))
}
