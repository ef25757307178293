//! Several campaigns a side. Each campaign is one value, its median: then the interval has the drift of the machine between campaigns.

use super::{Found, OpenCampaign, disturbed, other_batch};
use linerate_measure::compare::{Rates, middle, partners};
use linerate_measure::record::Slot;

/// A variant in all campaigns of a side.
struct Side<'a>(Vec<(&'a OpenCampaign, &'a Slot)>);

impl<'a> Side<'a> {
    /// The slots that stand for this one, or the first campaign that has no rate of it.
    fn of(slot: &'a Slot, campaigns: &'a [OpenCampaign]) -> Result<Side<'a>, &'a OpenCampaign> {
        let own = |campaign: &'a OpenCampaign| {
            let (pairs, _) = partners(&[slot], &campaign.results(), campaign.wanted.is_none());
            let found = pairs.first().map(|(_, own)| (campaign, *own));
            let has_rate = |own: &(&OpenCampaign, &Slot)| {
                middle(&own.0.rates(own.1, String::new()).values) > 0.0
            };
            found.filter(has_rate).ok_or(campaign)
        };
        campaigns
            .iter()
            .map(own)
            .collect::<Result<_, _>>()
            .map(Side)
    }

    fn campaigns(&self) -> Vec<&'a OpenCampaign> {
        self.0.iter().map(|(campaign, _)| *campaign).collect()
    }

    fn rates(&self) -> Rates {
        let (first, slot) = self.0[0];
        let all = self
            .0
            .iter()
            .map(|(campaign, own)| campaign.rates(own, String::new()));
        let all: Vec<Rates> = all.collect();
        let mean = |of: fn(&Rates) -> f64| all.iter().map(of).sum::<f64>() / all.len() as f64;
        let more = self.0.len() - 1;
        Rates {
            name: format!("{} ({} and {more} more)", slot.name, first.short_name()),
            values: all.iter().map(|rates| middle(&rates.values)).collect(),
            handled: all.iter().map(|rates| middle(&rates.handled)).collect(),
            dropped: mean(|rates| rates.dropped),
            lost: mean(|rates| rates.lost),
            left_out: 0,
            blocks: Vec::new(),
        }
    }

    /// The median share of the tester's own rate in each campaign.
    fn shares(&self) -> Option<Rates> {
        let own = self.0.iter().map(|(campaign, own)| campaign.shares(own));
        let shares: Vec<Rates> = own.collect::<Option<_>>()?;
        Some(Rates {
            values: shares.iter().map(|rates| middle(&rates.values)).collect(),
            ..Rates::default()
        })
    }
}

impl Found {
    /// Each variant of the first campaign, by all campaigns of both sides.
    pub fn several(
        &mut self,
        references: &[OpenCampaign],
        others: &[OpenCampaign],
        confidence: f64,
    ) {
        let first = &references[0];
        for slot in first.results() {
            let sides = Side::of(slot, references).and_then(|a| Ok((a, Side::of(slot, others)?)));
            let (reference, other) = match sides {
                Ok(sides) => sides,
                Err(lacking) => {
                    let name = (&slot.name, &lacking.name);
                    let why = format!("{} is not compared: {} has no rate of it", name.0, name.1);
                    self.notes.push(why.clone());
                    self.missing.push(why);
                    continue;
                }
            };
            self.push(&reference.rates(), &other.rates(), false, confidence);
            let all: Vec<_> = reference.0.iter().chain(&other.0).copied().collect();
            let own = other.rates().name;
            let Some(mut last) = self.comparisons.pop_if(|last| last.other == own) else {
                continue;
            };
            last.campaigns = true;
            let campaigns = [&reference, &other].map(Side::campaigns);
            last.disturbed = disturbed(campaigns.each_ref().map(|side| &side[..]));
            if all.iter().all(|(campaign, _)| first.same_machine(campaign))
                && let (Some(x), Some(y)) = (reference.shares(), other.shares())
            {
                last = last.with_shares(&x, &y);
            }
            if let Some(why) = all.iter().find_map(|one| other_batch([all[0], *one])) {
                last = last.without_verdict(why);
            }
            self.comparisons.push(last);
        }
    }
}
