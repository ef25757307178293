//! Records made by hand.

use linerate_explain::Records;
use linerate_measure::audit::Audit;
use linerate_measure::counters::PortCounters;
use linerate_measure::record::{
    Asked, Campaign, HostFacts, Mode, Slot, SlotFacts, Stopped, Summary, TrialRecord,
};
use linerate_measure::summary::summarise;
use linerate_measure::trial::Rates;
use linerate_profile::Profile;
use std::collections::BTreeMap;

/// A campaign on hosts, and all that was recorded of it.
pub struct Made {
    pub campaign: Campaign,
    pub trials: Vec<TrialRecord>,
    pub summary: Summary,
    pub host: HostFacts,
    pub facts: Vec<SlotFacts>,
    /// Stacks by slot.
    pub stacks: BTreeMap<usize, Profile>,
}

impl Made {
    /// Slots `a`, `b`, ... of these rates, with six trials each of a million frames, in blocks. `change` has the last word.
    pub fn new(rates: &[f64], change: impl FnOnce(&mut Campaign, &mut [TrialRecord])) -> Made {
        let slot = |id: usize| Slot {
            id,
            name: ["a", "b"][id].into(),
            variant: "forwarding".into(),
            no_ceiling: true,
            ..Slot::default()
        };
        let tester = "xdp".to_string();
        let mut campaign = Campaign {
            slots: (0..rates.len()).map(slot).collect(),
            asked: Asked {
                mode: Mode::Hosts,
                generator: tester.clone(),
                receiver: tester,
                ..Asked::default()
            },
            ..Campaign::default()
        };
        let trial = |n: usize| TrialRecord {
            trial: n as u64,
            block: (n / rates.len()) as u32,
            slot: n % rates.len(),
            rates: Some(Rates {
                offered: 2e6,
                received: rates[n % rates.len()],
                seconds: 1.0,
            }),
            audit: Audit {
                valid: true,
                ..Audit::default()
            },
            generator: PortCounters {
                frames: 1_000_000,
                ..PortCounters::default()
            },
            ..TrialRecord::default()
        };
        let mut trials: Vec<TrialRecord> = (0..6 * rates.len()).map(trial).collect();
        change(&mut campaign, &mut trials);
        let summary = summarise(&campaign, &trials, Stopped::Trials, 0);
        let (host, facts, stacks) = (HostFacts::default(), Vec::new(), BTreeMap::new());
        Made {
            campaign,
            trials,
            summary,
            host,
            facts,
            stacks,
        }
    }

    pub fn records(&self) -> Records<'_> {
        let Made {
            campaign,
            trials,
            summary,
            host,
            facts,
            stacks,
        } = self;
        Records {
            campaign,
            host,
            summary,
            trials,
            facts,
            stacks,
        }
    }
}
