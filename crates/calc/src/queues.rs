//! How many queues a card should have, and how evenly a table spreads flows over them.

use crate::Unit::{Count, Frames, Share};
use crate::{Calculation, PAPER_2018, Result, amounts, frame_rate, within};

/// The queues to set: the largest power of two that neither the cores nor the driver's limit exceed; 0 where one of them is 0.
/// Other numbers do not divide the card's table evenly.
///
/// ```
/// # use linerate_calc::queues::best;
/// assert_eq!((best(24, 64), best(8, 4), best(6, 64)), (16, 4, 4));
/// ```
pub fn best(cores: u32, most: u32) -> u32 {
    let most = cores.min(most);
    if most == 0 { 0 } else { 1 << most.ilog2() }
}

/// Share of the flows that the busiest of `queues` gets, where a table of `slots` names them in turn.
pub fn busiest(queues: u32, slots: u32) -> f64 {
    f64::from(slots.div_ceil(queues.max(1))) / f64::from(slots.max(1))
}

/// Rate of all queues where the busiest is full, as a share of so many evenly loaded ones.
pub fn evenness(queues: u32, slots: u32) -> f64 {
    1.0 / (f64::from(queues.max(1)) * busiest(queues, slots))
}

/// The host, its card and the rate that is wanted.
#[derive(Debug, Clone, Copy)]
pub struct Card {
    /// Cores of the socket that the card is attached to, without the second threads of cores.
    pub cores: u32,
    /// The most queues that the driver makes.
    pub most: u32,
    /// Slots of the card's RSS table.
    pub slots: u32,
    /// A rate in frames/s that is wanted, and the rate of a single queue.
    pub wanted: Option<(f64, f64)>,
}

/// How many queues to set for a card.
///
/// # Errors
/// A number of cores, queues or slots is 0 or too large, or a rate is not positive.
pub fn queues(card: Card) -> Result {
    let Card {
        cores,
        most,
        slots,
        wanted,
    } = card;
    within("a number of cores", cores.into(), 1.0, 8192.0, Count)?;
    within("a number of queues", most.into(), 1.0, 8192.0, Count)?;
    within("a table size", slots.into(), 1.0, 65_536.0, Count)?;
    let chosen = best(cores, most.min(slots));
    let mut page = Calculation::new("Queues of a network card")
        .given("cores", cores, Count)
        .given("most queues of the driver", most, Count)
        .given("slots of the RSS table", slots, Count)
        .result("queues", chosen, Count)
        .result("share of the busiest queue", busiest(chosen, slots), Share);
    let mut answer = format!("Set {chosen} queues.");
    if let Some((wanted, each)) = wanted {
        let (wanted, each) = (frame_rate(wanted)?, frame_rate(each)?);
        let needed = (wanted / each).ceil();
        let even = within("the number of queues needed", needed, 1.0, 1e6, Count)? as u32;
        let even = even.next_power_of_two();
        page = page
            .given("rate that is wanted", wanted, Frames)
            .given("rate of one queue", each, Frames)
            .result("queues needed", needed, Count)
            .result("queues needed, as a power of two", even, Count);
        answer = format!(
            "{} at {} a queue needs {needed} queues, {even} as a power of two; this host can have {chosen}.",
            Frames.show(wanted),
            Frames.show(each)
        );
    }
    let mut counts: Vec<u32> = [chosen / 2, chosen, cores.min(most).min(slots), chosen * 2]
        .into_iter()
        .filter(|n| (1..=slots).contains(n))
        .collect();
    counts.sort_unstable();
    counts.dedup();
    let row = |n: &u32| {
        let (least, greatest) = (slots / n, slots.div_ceil(*n));
        let each = if least == greatest {
            least.to_string()
        } else {
            format!("{least} or {greatest}")
        };
        let shares = [(busiest(*n, slots), Share), (evenness(*n, slots), Share)];
        [
            amounts(None, &[(f64::from(*n), Count)]),
            amounts(Some(&each), &shares),
        ]
        .concat()
    };
    let columns = [
        "queues",
        "slots of each",
        "busiest queue",
        "share of an even spread",
    ];
    page = page.table(&columns, counts.iter().map(row).collect());
    Ok(page
        .answer(answer)
        .formula(&[
            "queues = the largest power of two that cores and driver allow",
            "share of the busiest queue = ceil(slots / queues) / slots",
            "share of an even spread = 1 / (queues x share of the busiest)",
            "queues needed = ceil(rate wanted / rate of one queue)",
        ])
        .source(format!("{PAPER_2018}, sections II.G, II.H and II.K")).source("cxgbe(4) warns: \"expect uneven traffic distribution\"")
        .note("Settings: hw.cxgbe.nrxq10g, hw.ix.num_queues, hw.igb.num_queues (FreeBSD, /boot/loader.conf), ethtool -L IFACE combined N (Linux).")
        .note("Flows spread by hash, not evenly: `linerate calc rss` counts them. In the paper, cxgbe scaled at powers of two alone."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_divides_evenly_by_powers_of_two_alone() {
        for n in 0..7 {
            assert_eq!(evenness(1 << n, 64), 1.0);
        }
        assert_eq!(
            (busiest(6, 64), evenness(6, 64)),
            (11.0 / 64.0, 64.0 / 66.0)
        );
        assert_eq!(
            [
                best(0, 4),
                best(1, 1),
                best(12, 8),
                best(u32::MAX, u32::MAX)
            ],
            [0, 1, 8, 1 << 31]
        );
    }

    #[test]
    fn impossible_hosts_are_refused() {
        let card = Card {
            cores: 8,
            most: 64,
            slots: 128,
            wanted: None,
        };
        assert!(queues(card).is_ok());
        for bad in [
            Card { cores: 0, ..card },
            Card { slots: 0, ..card },
            Card {
                most: u32::MAX,
                ..card
            },
        ] {
            assert!(queues(bad).is_err(), "{bad:?}");
        }
        for wanted in [(0.0, 1.0), (1.0, f64::NAN), (1e12, 0.001)] {
            assert!(
                queues(Card {
                    wanted: Some(wanted),
                    ..card
                })
                .is_err()
            );
        }
    }
}
