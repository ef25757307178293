//! Campaigns, variants and files of numbers that arguments name.

use crate::prelude::*;
use linerate_measure::compare::{Rates, chosen, searched};
use linerate_measure::record::Searched;
use linerate_stats::ministat::Columns;

/// Source of the rates that one argument names.
pub(super) enum Source {
    /// A campaign, or some of its slots.
    Campaign(Box<OpenCampaign>),
    /// Numbers.
    File(Rates),
}

/// A campaign that an argument names, or some of its slots.
pub struct OpenCampaign {
    /// As the user wrote it.
    pub name: String,
    /// Path and selection, to recognise the same source.
    pub path: PathBuf,
    pub(super) wanted: Option<String>,
    pub stored: StoredCampaign,
}

/// A path, and the selection in it. Both may have colons: `DIR:forwarding, order zipf:1.1`.
pub fn split(what: &str) -> (&str, Option<String>) {
    if Path::new(what).exists() {
        return (what, None);
    }
    let at_colons = what
        .match_indices(':')
        .map(|(at, _)| (&what[..at], &what[at + 1..]));
    let existing = at_colons.rev().find(|(path, _)| Path::new(path).is_dir());
    existing
        .or(what.rsplit_once(':'))
        .map_or((what, None), |(path, wanted)| (path, Some(wanted.into())))
}

impl Source {
    pub(super) fn open(what: &str) -> Result<Self> {
        let (path, wanted) = split(what);
        let path = &handle::folder(path).map_err(usage)?;
        if !path.is_dir() {
            if wanted.is_some() {
                bail_usage!("{what}: only a campaign's folder has variants to choose from");
            }
            return Ok(Source::File(numbers(path)?));
        }
        Ok(Source::Campaign(Box::new(OpenCampaign::open(what)?)))
    }

    pub(super) fn name(&self) -> &str {
        match self {
            Source::Campaign(campaign) => &campaign.name,
            Source::File(rates) => &rates.name,
        }
    }

    pub(super) fn campaign(&self) -> Option<&OpenCampaign> {
        match self {
            Source::Campaign(campaign) => Some(campaign),
            Source::File(_) => None,
        }
    }

    /// The only rates that it has, or why it has others.
    pub(super) fn alone(&self) -> Result<Rates, String> {
        match self {
            Source::File(rates) => Ok(rates.clone()),
            Source::Campaign(campaign) => match &campaign.slots()[..] {
                [slot] => Ok(campaign.rates(slot, slot.name.clone())),
                slots => Err(format!(
                    "{} has {} variants: choose one to hold a file against, {}:{}",
                    campaign.name,
                    slots.len(),
                    campaign.name,
                    slots.last().map(|s| s.id).unwrap_or_default()
                )),
            },
        }
    }
}

fn numbers(path: &Path) -> Result<Rates> {
    let values = input::numbers(path, &Columns::default())?;
    if values.is_empty() {
        bail!("{} has no numbers", input::name(path));
    }
    Ok(Rates {
        name: input::name(path),
        values,
        ..Rates::default()
    })
}

impl OpenCampaign {
    /// Opens FOLDER or FOLDER:VARIANT.
    pub fn open(what: &str) -> Result<OpenCampaign> {
        let (path, wanted) = split(what);
        let path = &handle::folder(path).map_err(usage)?;
        let stored = output::stored(path)?;
        let path = path
            .canonicalize()
            .with_context(|| input::cannot_read("", path))?;
        let open = OpenCampaign {
            name: what.into(),
            path,
            wanted,
            stored,
        };
        if open.stored.campaign.slots.is_empty() {
            bail!("{what} has no variant: nothing was measured in it");
        }
        if open.slots().is_empty() {
            let there: Vec<String> = open
                .stored
                .campaign
                .slots
                .iter()
                .map(|s| s.name.clone())
                .collect();
            bail_usage!("{what}: no such variant; there are {}", there.join(", "));
        }
        Ok(open)
    }

    /// The slots that are meant.
    pub fn slots(&self) -> Vec<&Slot> {
        chosen(&self.stored.campaign, self.wanted.as_deref())
    }

    /// Cells with a result, without the tester's own: its rates count if they are named.
    pub fn results(&self) -> Vec<&Slot> {
        let all = self.slots();
        let named = self.wanted.is_some() && !self.is_searched();
        let is_result = |slot: &&Slot| named || !slot.is_calibration();
        let results: Vec<&Slot> = all.iter().copied().filter(is_result).collect();
        if results.is_empty() && !self.is_searched() {
            all
        } else {
            results
        }
    }

    pub(super) fn is_searched(&self) -> bool {
        self.stored.campaign.is_searched()
    }

    pub(super) fn searches(&self) -> Vec<Searched> {
        let StoredCampaign {
            campaign,
            trials,
            summary,
            ..
        } = &self.stored;
        searched(campaign, trials, summary.as_ref())
    }

    /// The argument that names one of its slots: by its variant, if no other slot has this variant.
    pub fn argument(&self, slot: &Slot) -> String {
        let (folder, _) = split(&self.name);
        let own = chosen(&self.stored.campaign, Some(&slot.variant));
        let named = match &own[..] {
            [only] if only.id == slot.id => &slot.variant,
            _ => &slot.name,
        };
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./,:=".contains(c);
        match format!("{folder}:{named}") {
            argument if argument.chars().all(plain) => argument,
            argument => format!("'{}'", argument.replace('\'', "'\\''")),
        }
    }

    /// The disturbance of its trials, as a sentence.
    pub(super) fn disturbed(&self) -> Option<String> {
        let causes: Vec<&str> = self.stored.summary.as_ref()?.disturbances().collect();
        (!causes.is_empty()).then(|| {
            format!(
                "{} was disturbed ({})",
                self.short_name(),
                causes.join("; ")
            )
        })
    }

    pub(super) fn short_name(&self) -> String {
        self.path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned()
    }

    /// Whether trials of one block were measured side by side: of other tools' runs, the numbers say nothing of that.
    pub(super) fn has_blocks(&self) -> bool {
        self.stored.campaign.imported.is_none()
    }

    pub(super) fn same_machine(&self, other: &OpenCampaign) -> bool {
        let machine = |c: &OpenCampaign| (c.stored.host.cpu_model.clone(), c.stored.host.cpus);
        machine(self) == machine(other)
    }

    /// The rates of a slot under this name.
    pub fn rates(&self, slot: &Slot, name: String) -> Rates {
        Rates::of_slot(name, slot.id, &self.stored.campaign, &self.stored.trials)
    }

    /// The slot's rates as shares of the tester's own, taken in the same block.
    pub(super) fn shares(&self, slot: &Slot) -> Option<Rates> {
        let ceiling = self.stored.campaign.slots.get(slot.ceiling?)?;
        Some(
            self.rates(slot, slot.name.clone())
                .as_share_of(&self.rates(ceiling, ceiling.name.clone())),
        )
    }
}
