//! Pairs of slots to compare: by the user's names, and by equal traffic.

use crate::record::{Campaign, Slot, TrialRecord};
use crate::summary::{dropped_share, lost_share};
use std::collections::BTreeMap;

/// The rates of one thing, in the order in which they were measured.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rates {
    pub name: String,
    /// Frames/s of the valid trials, or the values of a plain file.
    pub values: Vec<f64>,
    /// The block of each value; empty for a plain file.
    pub blocks: Vec<u32>,
    /// Frames/s that the DUT took in, dropped ones included, of each value; empty for a plain file.
    pub handled: Vec<f64>,
    /// Share of the frames that reached the DUT and that it dropped.
    pub dropped: f64,
    /// Loss ratio: lost frames by sent frames.
    pub lost: f64,
    /// Trials that are left out because their audit failed, or because they were too short to have a rate.
    pub left_out: usize,
}

impl Rates {
    /// The rates of a campaign's slot.
    pub fn of_slot(name: String, slot: usize, campaign: &Campaign, trials: &[TrialRecord]) -> Self {
        // The loads of a search are its own choice: only trials as fast as possible have a rate of the slot.
        let searched = campaign.is_searched();
        let trials: Vec<&TrialRecord> = trials
            .iter()
            .filter(|t| t.slot == slot)
            .filter(|t| !searched || (t.asked_fps.is_none() && t.benchmark.is_none()))
            .collect();
        let valid: Vec<&TrialRecord> = trials.iter().copied().filter(|t| t.audit.valid).collect();
        let (dropped, lost) = (dropped_share(campaign, &valid), lost_share(&valid));
        let mut rates = Rates {
            name,
            dropped,
            lost,
            ..Rates::default()
        };
        for trial in trials {
            match trial.rates.filter(|_| trial.audit.valid) {
                Some(found) => {
                    rates.values.push(found.received);
                    rates.blocks.push(trial.block);
                    rates.handled.push(
                        trial
                            .handled()
                            .filter(|_| dropped > 0.0)
                            .unwrap_or(found.received),
                    );
                }
                None => rates.left_out += 1,
            }
        }
        rates
    }

    /// The frames/s that were taken in, in place of those that arrived.
    pub fn of_handled(&self) -> Rates {
        Rates {
            values: self.handled.clone(),
            ..self.clone()
        }
    }

    fn by_block(&self) -> BTreeMap<u32, f64> {
        self.blocks
            .iter()
            .copied()
            .zip(self.values.iter().copied())
            .collect()
    }

    /// Values of the blocks that both have, as (`self`, `other`), in the order of blocks.
    pub fn paired_with(&self, other: &Rates) -> Vec<(f64, f64)> {
        let others = other.by_block();
        self.by_block()
            .iter()
            .filter_map(|(block, value)| Some((*value, *others.get(block)?)))
            .collect()
    }

    /// These rates as shares of another's in the same block, which removes the drift of the machine.
    pub fn as_share_of(&self, ceiling: &Rates) -> Rates {
        let tops = ceiling.by_block();
        let share = |(value, block): (&f64, &u32)| {
            Some((value / tops.get(block).filter(|top| **top > 0.0)?, *block))
        };
        let (values, blocks) = self
            .values
            .iter()
            .zip(&self.blocks)
            .filter_map(share)
            .unzip();
        let left_out = self.left_out + ceiling.left_out;
        Rates {
            name: self.name.clone(),
            left_out,
            values,
            blocks,
            ..Rates::default()
        }
    }
}

/// Slots that `wanted` names: a number as the tables have it, from 1 on, a variant, or the first words of a name (`forwarding IPv6`), as it is or as pages print it. All of them without a name.
pub fn chosen<'a>(campaign: &'a Campaign, wanted: Option<&str>) -> Vec<&'a Slot> {
    let slots = campaign.slots.iter();
    let Some(wanted) = wanted else {
        return slots.collect();
    };
    let lower = wanted.to_lowercase();
    if let Some(slot) = lower
        .parse()
        .ok()
        .and_then(|n: usize| campaign.slots.get(n.checked_sub(1)?))
    {
        return vec![slot];
    }
    let exact: Vec<&Slot> = slots
        .clone()
        .filter(|s| s.variant.to_lowercase() == lower)
        .collect();
    if !exact.is_empty() {
        return exact;
    }
    let begins = |name: &str| {
        let rest = name
            .to_lowercase()
            .strip_prefix(&lower)
            .map(|rest| rest.starts_with(char::is_alphanumeric));
        rest == Some(false)
    };
    slots
        .filter(|s| begins(&s.name) || begins(&campaign.shortened(&s.name)))
        .collect()
}

/// Whether two slots were given the same frames at the same load, so that a difference is the DUT's.
pub fn same_traffic(a: &Slot, b: &Slot) -> bool {
    a.direction == b.direction
        && a.family == b.family
        && a.transport == b.transport
        && a.frame == b.frame
        && a.lengths_fcs == b.lengths_fcs
        && a.l4_checksum == b.l4_checksum
        && a.signed == b.signed
        && a.asked_fps == b.asked_fps
}

/// Pairs (reference, other) of slots to compare: each of `others` with the slot of `references` that has the same traffic and,
/// with `same_variant`, is the same variant; of several, the one at the same levels of the factors. The second list has the slots without
/// a partner.
pub fn partners<'a>(
    references: &[&'a Slot],
    others: &[&'a Slot],
    same_variant: bool,
) -> (Vec<(&'a Slot, &'a Slot)>, Vec<&'a Slot>) {
    let fits = |a: &Slot, b: &Slot| same_traffic(a, b) && (!same_variant || a.variant == b.variant);
    let mut pairs = Vec::new();
    let mut alone = Vec::new();
    for other in others {
        let fitting: Vec<&Slot> = references
            .iter()
            .copied()
            .filter(|r| fits(r, other))
            .collect();
        let same_levels = fitting.iter().copied().find(|r| r.levels == other.levels);
        // Of several, only the one at the same levels of all factors will do.
        let only = || fitting.first().copied().filter(|_| fitting.len() == 1);
        match same_levels.or_else(only) {
            Some(reference) => pairs.push((reference, *other)),
            None => alone.push(*other),
        }
    }
    (pairs, alone)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(id: usize, variant: &str, family: &str) -> Slot {
        Slot {
            id,
            name: variant.into(),
            variant: variant.into(),
            family: family.into(),
            transport: "UDP".into(),
            frame: "64".into(),
            lengths_fcs: vec![64],
            l4_checksum: true,
            signed: true,
            ..Slot::default()
        }
    }

    #[test]
    fn slots_pair_by_traffic_and_by_variant_where_asked() {
        let [a, b, c] = [
            slot(0, "forwarding", "IPv4"),
            slot(1, "forwarding", "IPv6"),
            slot(2, "nat", "IPv4"),
        ];
        let (pairs, alone) = partners(&[&a, &b], &[&c], false);
        assert_eq!((pairs, alone.len()), (vec![(&a, &c)], 0));
        let (pairs, alone) = partners(&[&a, &b], &[&c, &b], true);
        assert_eq!((pairs, alone), (vec![(&b, &b)], vec![&c]));
        // Two levels of a factor: 1 flow is not compared with 2,000.
        let at = |slot: &Slot, level| Slot {
            levels: vec![(0, level)],
            ..slot.clone()
        };
        let [one, many] = [at(&a, 0), at(&a, 1)];
        let [rps_one, rps_many] = [at(&c, 0), at(&c, 1)];
        let (pairs, _) = partners(&[&one, &many], &[&rps_many, &rps_one], false);
        assert_eq!(pairs, [(&many, &rps_many), (&one, &rps_one)]);
        let other = at(&c, 2);
        let (_, alone) = partners(&[&one, &many], &[&other], false);
        assert_eq!(alone.len(), 1);
    }

    /// Cells of a plan: `nft, rules 10` is not `nft, rules 1000`.
    #[test]
    fn a_plans_cells_are_found_by_their_names() {
        let timing = serde_json::json!({ "warm_up_ns": 0, "run_ns": 1, "interval_ns": 1, "quiet_ns": 0, "drain_ns": 0, "settle_ns": 0 });
        let campaign = serde_json::json!({
            "version": 1, "linerate": "0", "name": "n", "started": "", "notes": [], "standing": {},
            "asked": {
                "command": [], "mode": "inline", "lab": "simulated", "generator": "", "receiver": "", "flows": 1,
                "order": "sequential", "rate": "max", "timing": timing, "batch": 1, "seed": 1
            },
            "roles": { "generator": [], "dut": [], "receiver": [], "control": [] },
            "slots": [slot(0, "nft, rules 10", "IPv4"), slot(1, "nft, rules 1000", "IPv4"), slot(2, "nft, order zipf:1.1", "IPv4")],
        });
        let campaign: Campaign = serde_json::from_value(campaign).unwrap();
        let ids = |wanted| {
            chosen(&campaign, Some(wanted))
                .iter()
                .map(|s| s.id)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            (ids("nft, rules 10"), ids("NFT, Rules 1000")),
            (vec![0], vec![1])
        );
        assert_eq!(
            (ids("nft, order zipf:1.1"), ids("nft")),
            (vec![2], vec![0, 1, 2])
        );
        assert!(ids("nft, rules 100").is_empty());
    }

    #[test]
    fn shares_and_pairs_go_by_block() {
        let rates = |values: &[f64], blocks: &[u32]| Rates {
            name: "x".into(),
            values: values.into(),
            blocks: blocks.into(),
            ..Rates::default()
        };
        let (dut, top) = (
            rates(&[3.0, 1.0, 5.0], &[2, 0, 7]),
            rates(&[4.0, 6.0, 0.0], &[0, 2, 7]),
        );
        assert_eq!(dut.paired_with(&top), [(1.0, 4.0), (3.0, 6.0), (5.0, 0.0)]);
        let shares = dut.as_share_of(&top);
        assert_eq!(
            (shares.values, shares.blocks),
            (vec![0.5, 0.25], vec![2, 0])
        );
    }
}
