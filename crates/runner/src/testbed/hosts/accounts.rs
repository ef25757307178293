//! Where frames were lost on their way between hosts.

use linerate_hosts::agent::merge::{self, Seen};
use linerate_linux::lab::ledger::Account;
use linerate_measure::audit::{Cause, Loss, Side};
use linerate_measure::collector::grown;
use linerate_measure::counters::PortCounters;
use linerate_measure::record::Direction;

/// Frames that were sent, and frames that were received, each by direction.
pub(super) type Frames = [Vec<PortCounters>; 2];

/// Place of the frames that a black box did not forward.
pub(super) const IN_BLACK_BOX: &str = "in the DUT or on its cables (a black box: no counters)";

/// A device that was down, or its link, has counted no frames meanwhile, or has forgotten their number, and nobody can ask a black box:
/// all frames that are missing are the device's.
pub(super) fn of_silence([sent, received]: &Frames, place: &str, cause: Cause) -> Vec<Account> {
    let of_way = |(sent, received): (&PortCounters, &PortCounters)| {
        let frames = sent.frames.saturating_sub(received.unique());
        let loss = Loss {
            place: place.into(),
            frames,
            side: Side::Dut,
            cause,
        };
        Account {
            losses: Some(loss)
                .filter(|loss| loss.frames > 0)
                .into_iter()
                .collect(),
            ..Account::default()
        }
    };
    sent.iter().zip(received).map(of_way).collect()
}

/// Places of lost frames by direction, as far as the device's counters show them. `ends`: its interfaces.
pub(super) fn of_counters(
    ends: Option<&[String; 2]>,
    [sent, received]: &Frames,
    seen: Option<(&Seen, &Seen)>,
) -> Vec<Account> {
    let mut accounts = vec![Account::default(); sent.len()];
    let (Some(ends), Some((before, after))) = (ends, seen) else {
        return accounts;
    };
    let [inside, outside] = ends;
    let ways = Direction::Both.ways().iter().zip(sent.iter().zip(received));
    for (account, (way, (sent, received))) in accounts.iter_mut().zip(ways) {
        account.losses = merge::losses(*way, [sent, received], before, after, [inside, outside]);
    }
    let mut dut = grown(&before.counters, &after.counters);
    for end in ends {
        let of = |seen: &Seen| seen.links.get(end).cloned().unwrap_or_default();
        let named = grown(&of(before), &of(after)).into_iter();
        dut.extend(named.map(|(name, n)| (format!("{end}: {name}"), n)));
    }
    accounts[0].dut = dut;
    accounts
}
