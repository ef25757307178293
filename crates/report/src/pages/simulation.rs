//! Campaigns whose figures are of no real machine: simulated or emulated. Every page says which.

use crate::prelude::*;
use linerate_measure::record::Guests;

/// Why figures are of no real machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unreal {
    /// linerate simulated the DUT.
    Simulated,
    /// QEMU emulated the CPUs.
    Emulated,
}

impl Unreal {
    /// The word that such figures begin with.
    pub fn word(self) -> &'static str {
        match self {
            Unreal::Simulated => "SIMULATED",
            Unreal::Emulated => "EMULATED",
        }
    }
}

const ALL: &str = "all figures below are";

/// Below a campaign's part of a page stand other campaigns.
pub(super) fn name_campaign(page: &mut Document) {
    for block in &mut page.blocks {
        if let Block::Text {
            text,
            tone: Tone::Warning,
        } = block
        {
            *text = text.replace(ALL, "all figures of this campaign are");
        }
    }
}

/// Such figures say so, first and loudly. `of`: each campaign on the page.
pub(super) fn warn_of_simulation(
    page: &mut Document,
    of: impl IntoIterator<Item = Option<Unreal>>,
) {
    let all = simulation(of);
    let any = !all.is_empty();
    all.into_iter().for_each(|words| page.warn(words));
    if any {
        page.gap();
    }
}

pub(super) fn simulation(of: impl IntoIterator<Item = Option<Unreal>>) -> Vec<String> {
    let of: Vec<Option<Unreal>> = of.into_iter().collect();
    let words = |what: Unreal, end: &str| {
        let those = of.iter().filter(|is| **is == Some(what)).count();
        let which = match those {
            0 => return None,
            _ if those == of.len() => ALL.into(),
            _ => format!("{those} of {} campaigns on this page are", of.len()),
        };
        Some(format!("{}: {which} of {end}", what.word()))
    };
    let simulated = "a simulated DUT inside linerate, NOT of this machine.";
    let emulated = "a CPU that QEMU emulates, NOT of a real machine.";
    [
        words(Unreal::Simulated, simulated),
        words(Unreal::Emulated, emulated),
    ]
    .into_iter()
    .flatten()
    .collect()
}

pub(super) fn simulated(campaign: &Campaign) -> bool {
    campaign.asked.lab == LabKind::Simulated
}

/// Why a campaign's figures are of no real machine; `None` if they are.
pub fn unreal(campaign: &Campaign) -> Option<Unreal> {
    if simulated(campaign) {
        return Some(Unreal::Simulated);
    }
    (campaign.asked.guests == Some(Guests::Emulated)).then_some(Unreal::Emulated)
}
