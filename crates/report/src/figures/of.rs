//! A trial or a cell whose figures are asked for, and figures that take more than a place in its record.

use super::known::Fact;
use crate::pages::Records;
use crate::prelude::*;
use linerate_measure::calendar;
use linerate_measure::record::Imported;
use serde_json::Value;

/// A trial or a cell, with all that it belongs to.
pub struct Of<'a> {
    /// Where its campaign is.
    pub folder: &'a str,
    /// The name of the campaign among all.
    pub id: &'a str,
    pub campaign: &'a Campaign,
    pub host: &'a HostFacts,
    pub slot: &'a Slot,
    pub trial: Option<&'a TrialRecord>,
    /// The row of a cell, and the row as its record has it.
    pub cell: Option<(&'a Row, Value)>,
    pub fact: Option<&'a Fact>,
}

impl<'a> Of<'a> {
    /// A cell of a campaign.
    pub fn cell(records: &Records<'a>, row: &'a Row) -> Option<Of<'a>> {
        let Records { campaign, host, .. } = *records;
        let (slot, record) = (
            campaign.slots.get(row.slot)?,
            serde_json::to_value(row).ok()?,
        );
        Some(Of {
            folder: "",
            id: "",
            campaign,
            host,
            slot,
            trial: None,
            cell: Some((row, record)),
            fact: None,
        })
    }

    /// A trial of a campaign.
    pub fn trial(records: &Records<'a>, trial: &'a TrialRecord) -> Option<Of<'a>> {
        let Records { campaign, host, .. } = *records;
        let slot = campaign.slots.get(trial.slot)?;
        Some(Of {
            folder: "",
            id: "",
            campaign,
            host,
            slot,
            trial: Some(trial),
            cell: None,
            fact: None,
        })
    }

    /// A fact of a campaign.
    pub fn fact(records: &Records<'a>, fact: &'a Fact) -> Option<Of<'a>> {
        let Records { campaign, host, .. } = *records;
        let slot = campaign.slots.get(fact.cell.unwrap_or(0))?;
        Some(Of {
            folder: "",
            id: "",
            campaign,
            host,
            slot,
            trial: None,
            cell: None,
            fact: Some(fact),
        })
    }

    /// The row of a cell that has a rate.
    pub(super) fn measured(&self) -> Option<&'a Row> {
        self.cell
            .as_ref()
            .map(|(row, _)| *row)
            .filter(|row| row.received.n > 0)
    }

    pub(super) fn latency(&self, quantile: f64) -> Option<Value> {
        let trial = self.trial?;
        let shift = trial.clocks.map_or(0, |clocks| clocks.shift_ns);
        trial
            .receiver
            .latency
            .beyond(shift)
            .quantile(quantile)
            .map(Value::from)
    }
}

pub(super) fn known(text: &str) -> Option<Value> {
    (!text.is_empty()).then(|| text.into())
}

pub(super) fn positive(number: f64) -> Option<Value> {
    (number > 0.0).then(|| number.into())
}

/// A count of a trial; the records of other tools have no such counts.
pub(super) fn count_of(of: &Of<'_>, count: impl Fn(&TrialRecord) -> u64) -> Option<Value> {
    let trial = of.trial.filter(|trial| trial.imported.is_none())?;
    Some(count(trial).into())
}

/// A text of an imported campaign's origin.
pub(super) fn origin(of: &Of<'_>, text: impl Fn(&Imported) -> &Option<String>) -> Option<Value> {
    let imported = of.campaign.imported.as_deref()?;
    text(imported).as_deref().map(Value::from)
}

/// A fact of an imported set.
pub(super) fn fact<'a>(of: &Of<'a>, key: &str) -> Option<&'a str> {
    let set = of.slot.imported.as_deref()?;
    set.facts.get(key).map(String::as_str)
}

pub(super) fn time(text: &str) -> Option<Value> {
    Some((1000 * calendar::seconds(text)?).into())
}

pub(super) fn machine(of: &Of<'_>) -> Option<Value> {
    origin(of, |of| &of.machine).or_else(|| known(&of.host.cpu_model))
}

pub(super) fn levels(of: &Of<'_>) -> Option<Value> {
    let labels = of
        .campaign
        .planned
        .as_ref()?
        .experiment
        .labels(&of.slot.levels);
    let object: serde_json::Map<_, _> = labels
        .map(|(factor, label)| (factor.name.clone(), label.into()))
        .collect();
    (!object.is_empty()).then(|| Value::Object(object).to_string().into())
}

pub(super) fn source(of: &Of<'_>) -> Option<Value> {
    let file = of.trial?.imported.as_ref().map(|imported| &imported.file);
    Some(
        file.or_else(|| Some(&of.slot.imported.as_ref()?.set))?
            .as_str()
            .into(),
    )
}
