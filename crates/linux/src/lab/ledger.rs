//! Where every frame of a trial went: the kernel's counters at each interface of a lane, before and after.
//!
//! A frame passes, in this order: the generator's program; its interface; the DUT's inside interface; the DUT; the DUT's
//! outside interface; the receiver's interface; the receiver's program. A loss is located between two neighbours, and each
//! count is checked against the next. On a veth, both ends of a link show one and the same kernel counter
//! (`veth_get_stats64`), so that there are four independent counts: the generator's program, the DUT's inside queue, the
//! receiver's queue, the receiver's program.
//!
//! Frames of the other direction take the same way back, past counters of their own: on a veth, each end counts what it received and
//! what it sent. Only the counters inside the DUT are of both directions.

use super::node::SECOND_ROUTER;
use super::{DutEnd, Lane, Setup};
use crate::error::Error;
use crate::net::netlink::LinkStats;
use crate::net::procnet;
use linerate_measure::audit::{Cause, Loss, SecondCount, Side};
use linerate_measure::counters::PortCounters;
use linerate_plan::settings::Interface;
use std::collections::BTreeMap;

/// The counters of a lane at one moment.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    generator: LinkStats,
    receiver: LinkStats,
    dut: Option<DutSnapshot>,
}

#[derive(Debug, Clone, Default)]
struct DutSnapshot {
    /// Names of its cards, by which frames enter and leave it.
    cards: [String; 2],
    inside: LinkStats,
    outside: LinkStats,
    /// The link between two routers, at the first.
    between: Option<LinkStats>,
    /// All counters of its namespaces.
    counters: BTreeMap<String, u64>,
    known_drops: u64,
}

/// Where the frames of a trial went.
#[derive(Debug, Clone, Default)]
pub struct Account {
    pub losses: Vec<Loss>,
    /// Second counts of the same frames.
    pub second_counts: Vec<SecondCount>,
    /// All counters of the DUT that changed.
    pub dut: BTreeMap<String, u64>,
}

impl Account {
    /// The link from a generator was down for a while: the kernel freed frames for it, and counted none of them.
    pub fn link_down(&mut self) {
        let from_generator =
            |count: &&mut SecondCount| WAYS.iter().any(|way| way.generator == count.place);
        let counted = self.second_counts.iter_mut().find(from_generator);
        if let Some(count) = counted.filter(|count| count.frames < count.expected) {
            let frames = count.expected - count.frames;
            count.expected = count.frames;
            let place = "DUT: link down".into();
            lose(
                self,
                Loss {
                    place,
                    frames,
                    side: Side::Dut,
                    cause: Cause::Dropped,
                },
            );
        }
    }

    /// Whether every frame sent is received or lost at a known place, and every count agrees with its neighbour.
    pub fn balances(&self, generator: &PortCounters, receiver: &PortCounters) -> bool {
        let lost: u64 = self.losses.iter().map(|l| l.frames).sum();
        generator.frames + generator.broadcasts
            == receiver.unique() + receiver.passed_broadcasts(generator) + lost
            && self.second_counts.iter().all(|s| s.frames == s.expected)
    }
}

/// Times that the counters of a lane are read while its ends' change meanwhile.
const READS: usize = 8;

/// Reads all counters of a lane, between two equal readings of its ends: a frame of the kernel's own, such as a report of multicast
/// groups, that passed in the midst would be counted at one interface and not at the next.
///
/// # Errors
/// The kernel does not answer.
pub fn snapshot(lane: &Lane) -> Result<Snapshot, Error> {
    let ends = || Ok::<_, Error>((lane.generator.link()?.stats, lane.receiver.link()?.stats));
    let mut reads = 0;
    loop {
        let (generator, receiver) = ends()?;
        let dut = lane.dut.as_ref().map(dut_snapshot).transpose()?;
        reads += 1;
        if ends()? == (generator, receiver) || reads == READS {
            return Ok(Snapshot {
                generator,
                receiver,
                dut,
            });
        }
    }
}

fn dut_snapshot(dut: &DutEnd) -> Result<DutSnapshot, Error> {
    let mut all = BTreeMap::new();
    for node in &dut.nodes {
        let prefix = if node.role.is_empty() {
            String::new()
        } else {
            format!("{}: ", node.role)
        };
        let counters = procnet::all(&node.namespace)?.into_iter();
        all.extend(counters.map(|(name, value)| (format!("{prefix}{name}"), value)));
    }
    Ok(DutSnapshot {
        cards: [&dut.inside, &dut.outside].map(|card| card.name.clone()),
        inside: dut.inside.link()?.stats,
        outside: dut.outside.link()?.stats,
        between: match &dut.between {
            Some(link) => Some(link.link()?.stats),
            None => None,
        },
        counters: all,
        known_drops: dut
            .known
            .as_ref()
            .map_or(0, |k| k.iter().map(|k| k.dropped).sum()),
    })
}

/// Compares the snapshots before and after a load with the counters of generator and receiver in between, by direction: one, or
/// forward and reverse.
pub fn account(
    lane: &Lane,
    [before, after]: [&Snapshot; 2],
    [sent, received]: [&[PortCounters]; 2],
) -> Vec<Account> {
    let mut reasons = Reasons::between(before, after);
    // Of two directions, each leaves by the interface that the other comes by.
    if sent.len() > 1 {
        reasons.returned = 0;
    }
    let mut accounts: Vec<Account> = Vec::new();
    for (way, (sent, received)) in WAYS.iter().zip(sent.iter().zip(received)) {
        let snapshots = [&way.of(before), &way.of(after)];
        let shared = lane.shared_queue[usize::from(way.reverse)];
        accounts.push(reconcile(
            &lane.setup,
            way,
            shared,
            snapshots,
            [sent, received],
            &mut reasons,
        ));
    }
    if let Some(first) = accounts.first_mut() {
        first.dut = reasons.grown;
    }
    if let Some(dut) = &lane.dut
        && !dut.rules.is_empty()
    {
        let losses = accounts.iter_mut().flat_map(|account| &mut account.losses);
        explain_by_rules(
            dut,
            losses.filter(|l| l.cause == Cause::Unexplained).collect(),
        );
    }
    accounts
}

/// The places on the way of the frames of one direction, by their names.
struct Way {
    reverse: bool,
    generator: &'static str,
    entered: &'static str,
    ring: &'static str,
    arrived: &'static str,
    receiver: &'static str,
    receiver_ring: &'static str,
    socket_ring: &'static str,
    /// The routers of a DUT that has two, in the order in which its frames pass them.
    routers: [&'static str; 2],
}

const FIRST_ROUTER: &str = "first router";

static WAYS: [Way; 2] = [
    Way {
        reverse: false,
        generator: "generator interface",
        entered: "DUT in",
        ring: "DUT in: receive ring full",
        arrived: "receiver interface",
        receiver: "receiver program",
        receiver_ring: "receiver: receive ring full",
        socket_ring: "receiver: socket ring full",
        routers: [FIRST_ROUTER, SECOND_ROUTER],
    },
    Way {
        reverse: true,
        generator: "outside generator interface",
        entered: "DUT out",
        ring: "DUT out: receive ring full",
        arrived: "inside receiver interface",
        receiver: "inside receiver program",
        receiver_ring: "inside receiver: receive ring full",
        socket_ring: "inside receiver: socket ring full",
        routers: [SECOND_ROUTER, FIRST_ROUTER],
    },
];

impl Way {
    /// The counters in the order in which its frames pass them.
    fn of(&self, snapshot: &Snapshot) -> Snapshot {
        let mut turned = snapshot.clone();
        if self.reverse {
            std::mem::swap(&mut turned.generator, &mut turned.receiver);
            if let Some(dut) = &mut turned.dut {
                std::mem::swap(&mut dut.inside, &mut dut.outside);
                if let Some(link) = &mut dut.between {
                    std::mem::swap(&mut link.rx_packets, &mut link.tx_packets);
                }
            }
        }
        turned
    }

    /// The settings of the card by which its frames enter the DUT.
    fn card<'a>(&self, setup: &'a Setup) -> &'a Interface {
        if self.reverse {
            &setup.settings.outside
        } else {
            &setup.settings.inside
        }
    }

    /// Whether a counter is of that card: `in0.ethtool.…`, `host: card-in0.ethtool.…`.
    fn is_of_card(&self, counter: &str) -> bool {
        let interface = counter
            .rsplit(": ")
            .next()
            .and_then(|name| name.split('.').next())
            .unwrap_or_default();
        let end = if self.reverse { "out" } else { "in" };
        interface
            .trim_end_matches(|c: char| c.is_ascii_digit())
            .ends_with(end)
    }
}

/// Reasons that the DUT's counters give for lost frames. They do not tell which way these went: what one direction has used, the
/// other has not.
#[derive(Default)]
struct Reasons {
    /// All counters that changed.
    grown: BTreeMap<String, u64>,
    /// Frames that each reason still explains.
    left: BTreeMap<String, u64>,
    /// Frames that did not get from one interface inside the DUT to the next. A drop of the stack may be among them.
    links: BTreeMap<String, u64>,
    known_drops: u64,
    /// Frames that left by the inside interface, without the DUT's own messages.
    returned: u64,
}

impl Reasons {
    fn between(before: &Snapshot, after: &Snapshot) -> Reasons {
        let (Some(b), Some(a)) = (&before.dut, &after.dut) else {
            return Reasons::default();
        };
        let left_by_inside = grown(&b.inside, &a.inside).tx_packets;
        let grown = procnet::grown(&b.counters, &a.counters);
        let known_drops = a.known_drops - b.known_drops;
        let those = |is: &dyn Fn(&str) -> bool| {
            grown
                .iter()
                .filter(|(name, _)| is(name))
                .map(|(name, n)| (name.clone(), *n))
                .collect()
        };
        let messages = ["Icmp.OutMsgs", "Icmp6.OutMsgs"];
        let messages: u64 = messages.iter().filter_map(|name| grown.get(*name)).sum();
        let returned = left_by_inside.saturating_sub(messages);
        let (left, links) = (
            those(&|name| is_reason(name, known_drops > 0)),
            those(&|name| is_link(name, &a.cards)),
        );
        Reasons {
            left,
            links,
            grown,
            known_drops,
            returned,
        }
    }
}

/// Whether a counter is of frames that an interface inside the DUT could not hand to the next one. (Both ends of a veth pair count
/// them: one as sent, one as received. The cards' own are losses before the DUT and behind it.)
fn is_link(counter: &str, cards: &[String; 2]) -> bool {
    let interface = counter
        .rsplit(": ")
        .next()
        .and_then(|name| name.strip_suffix(".tx_dropped"));
    interface.is_some_and(|name| !cards.iter().any(|card| card == name))
}

/// Where frames are that a router sends to where they came from.
const RETURNED: &str = "DUT: sent back by the interface that they came by";

/// Place where a router drops frames to the Ethernet broadcast address.
const NOT_FORWARDED: &str = "DUT: broadcast frames, which are not forwarded";

/// Where frames wait that were steered to another CPU (`netdev_max_backlog`).
const BACKLOG: &str = "DUT: backlog of the CPU that frames are steered to full";

/// `shared_queue`: CPUs send into one queue of the DUT, and count its refusals without a lock (docs/packet-io.md).
fn reconcile(
    setup: &Setup,
    way: &Way,
    shared_queue: bool,
    [before, after]: [&Snapshot; 2],
    [generator, receiver]: [&PortCounters; 2],
    reasons: &mut Reasons,
) -> Account {
    let mut account = Account::default();
    let sender = grown(&before.generator, &after.generator);
    let (handed_over, mut refused) = (sender.tx_packets, sender.tx_dropped);
    // Only that ring is between the generator and the DUT's count of received frames: the difference is the ring's.
    let sent = generator.frames + generator.broadcasts + generator.refused;
    if shared_queue && handed_over + refused <= sent {
        refused = sent - handed_over;
    }
    let mut arrived = grown(&before.receiver, &after.receiver).rx_packets;
    // A socket sees a full ring and counts such a frame as refused: it was never sent. Live frames do not see it.
    second(&mut account, way.generator, handed_over + refused, sent);
    let refused = refused.saturating_sub(generator.refused);
    match (&before.dut, &after.dut) {
        (Some(b), Some(a)) => {
            full(&mut account, way.ring, refused, Side::Dut);
            let (inside, outside) = (grown(&b.inside, &a.inside), grown(&b.outside, &a.outside));
            let (entered, left, ring_full) =
                (inside.rx_packets, outside.tx_packets, outside.tx_dropped);
            second(&mut account, way.entered, entered, handed_over);
            second(&mut account, way.arrived, arrived, left);
            full(&mut account, way.receiver_ring, ring_full, Side::Tester);
            // Copies that the DUT made, and frames of its own, left it without having entered.
            let passed = receiver.passed_broadcasts(generator);
            let made = receiver.duplicates() + receiver.foreign_total() - passed;
            let lost = (entered + made).saturating_sub(left + ring_full);
            // Broadcast frames that found a ring full are among its losses.
            let unforwarded = (generator.broadcasts - passed).min(lost);
            dropped_inside(
                &mut account,
                NOT_FORWARDED.into(),
                unforwarded,
                Cause::NotForwarded,
            );
            let lost = lost - unforwarded;
            let backlog = backlog(way, setup, [&inside, &sender], reasons).min(lost);
            full(&mut account, BACKLOG, backlog, Side::Dut);
            // A tunnel has a few packets of its own.
            let handed_on = b.between.zip(a.between).map(|(b, a)| grown(&b, &a));
            let in_first = handed_on.map(|link| entered.saturating_sub(link.tx_packets + backlog));
            let routers = in_first.map(|frames| (way.routers, frames));
            locate_inside(&mut account, &setup.name, lost - backlog, routers, reasons);
        }
        _ => {
            full(&mut account, way.receiver_ring, refused, Side::Tester);
            second(&mut account, way.arrived, arrived, handed_over);
        }
    }
    // Frames that found a socket receiver's ring full had arrived at its interface.
    full(
        &mut account,
        way.socket_ring,
        receiver.refused,
        Side::Tester,
    );
    arrived = arrived.saturating_sub(receiver.refused);
    second(
        &mut account,
        way.receiver,
        receiver.frames + receiver.foreign_total(),
        arrived,
    );
    account
}

/// Growth of the counters of packets.
fn grown(before: &LinkStats, after: &LinkStats) -> LinkStats {
    LinkStats {
        rx_packets: after.rx_packets.saturating_sub(before.rx_packets),
        tx_packets: after.tx_packets.saturating_sub(before.tx_packets),
        rx_dropped: after.rx_dropped.saturating_sub(before.rx_dropped),
        tx_dropped: after.tx_dropped.saturating_sub(before.tx_dropped),
        ..LinkStats::default()
    }
}

/// Frames that found the backlog full. A card's count of drops also has those of its ring and of its program, which are known.
fn backlog(way: &Way, setup: &Setup, [card, sender]: [&LinkStats; 2], reasons: &Reasons) -> u64 {
    if way.card(setup).rps.is_none() {
        return 0;
    }
    let by_program = |(n, _): &(&String, &u64)| n.ends_with("_xdp_drops") && way.is_of_card(n);
    let by_program: u64 = reasons
        .grown
        .iter()
        .filter(by_program)
        .map(|(_, n)| n)
        .sum();
    card.rx_dropped
        .saturating_sub(sender.tx_dropped + by_program)
}

fn second(account: &mut Account, place: &str, frames: u64, expected: u64) {
    account.second_counts.push(SecondCount {
        place: place.into(),
        frames,
        expected,
    });
}

/// Frames that found a queue full.
fn full(account: &mut Account, place: &str, frames: u64, side: Side) {
    lose(
        account,
        Loss {
            place: place.into(),
            frames,
            side,
            cause: Cause::QueueFull,
        },
    );
}

fn lose(account: &mut Account, loss: Loss) {
    if loss.frames > 0 {
        account.losses.push(loss);
    }
}

/// Gives the frames lost between the DUT's cards their reasons, as far as its counters have any. `routers`: the two of a DUT, and the
/// frames that did not get from the one to the other. Interfaces come last: a frame that
/// a program or the stack drops may be counted there, too.
fn locate_inside(
    account: &mut Account,
    variant: &str,
    lost: u64,
    routers: Option<([&str; 2], u64)>,
    reasons: &mut Reasons,
) {
    let (mut left, mut of_first) = (lost, routers.map_or(0, |(_, frames)| frames));
    let known = (format!("dropped by {variant}"), &mut reasons.known_drops);
    let stack = reasons.left.iter_mut().map(|(name, n)| (name.clone(), n));
    let dropped = [known]
        .into_iter()
        .chain(stack)
        .map(|reason| (reason, Cause::Dropped));
    let links = reasons
        .links
        .iter_mut()
        .map(|(name, n)| ((name.clone(), n), Cause::QueueFull));
    for ((reason, explains), cause) in dropped.chain(links) {
        let frames = left.min(*explains);
        left -= frames;
        *explains -= frames;
        let of_second = reason.starts_with(SECOND_ROUTER);
        if routers.is_some_and(|([first, _], _)| of_second == (first == SECOND_ROUTER)) {
            of_first = of_first.saturating_sub(frames);
        }
        dropped_inside(account, format!("DUT: {reason}"), frames, cause);
    }
    // A few are questions for the addresses of neighbours.
    let returned = reasons.returned.min(left);
    if returned * 100 > left {
        left -= returned;
        dropped_inside(account, RETURNED.into(), returned, Cause::Dropped);
    }
    if let Some(([first, second], _)) = routers {
        let frames = of_first.min(left);
        left -= frames;
        dropped_inside(account, unexplained(first), frames, Cause::Unexplained);
        dropped_inside(account, unexplained(second), left, Cause::Unexplained);
    } else {
        dropped_inside(account, unexplained("DUT"), left, Cause::Unexplained);
    }
}

fn unexplained(inside: &str) -> String {
    format!("inside the {inside} (no counter says why)")
}

fn dropped_inside(account: &mut Account, place: String, frames: u64, cause: Cause) {
    lose(
        account,
        Loss {
            place,
            frames,
            side: Side::Dut,
            cause,
        },
    );
}

fn is_reason(counter: &str, known: bool) -> bool {
    let counter = counter.rsplit_once(": ").map_or(counter, |(_, name)| name);
    let protocol = ["Ip.", "Ip6.", "IpExt.", "Conntrack."]
        .iter()
        .any(|p| counter.starts_with(p));
    protocol && procnet::is_drop(counter)
        || (["_xdp_drops", "_xdp_tx_errors"]
            .iter()
            .any(|end| counter.ends_with(end))
            && !known)
}

/// Rule sets count the frames that they drop, whichever way these go.
fn explain_by_rules(dut: &DutEnd, losses: Vec<&mut Loss>) {
    let Some(dropped) = dut.rules.dropped_since().filter(|_| !losses.is_empty()) else {
        return;
    };
    if dropped >= losses.iter().map(|loss| loss.frames).sum() {
        for loss in losses {
            (loss.place, loss.cause) = (dut.rules.place(), Cause::Dropped);
        }
    }
}

#[cfg(test)]
mod tests;
