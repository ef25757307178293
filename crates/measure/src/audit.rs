//! The audit of a trial: whether its numbers can be believed. Every check reports its finding. A failed check keeps the trial out
//! of the verdict.

use crate::counters::PortCounters;
use crate::record::{Connections, Direction, States};
use crate::trial::{Part, Rates, Shape};
use serde::{Deserialize, Serialize};

/// Largest relative difference between the offered load and the requested one.
pub const OFFERED_TOLERANCE: f64 = 0.005;

/// A result must stay below the tester's own ceiling by this factor, or the tester may have been the limit.
pub const CEILING_FACTOR: f64 = 1.2;

/// Frames of other machines that a receiver may see in a trial, beside the share of [`OTHERS_SHARE`].
const OTHERS_FRAMES: u64 = 100;

/// One frame of others for this many of ours takes nothing from them.
const OTHERS_SHARE: u64 = 1000;

/// Of so many frames of a closed loop, one may find a full ring.
const LOOP_SHARE: u64 = 100;

/// The check that a fault fails.
const NO_FAULT: &str = "no fault";

/// Frames that were lost at a known place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loss {
    /// Where and why: `DUT in: receive ring full`.
    pub place: String,
    /// How many.
    pub frames: u64,
    /// Whose loss it is.
    pub side: Side,
    /// Why they were lost.
    pub cause: Cause,
}

/// Why frames were lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// The queue there was full: nothing was done with them.
    QueueFull,
    /// They were handled and then dropped, or got lost on the way.
    #[default]
    Dropped,
    /// Lost inside the DUT, without a counter of the reason.
    Unexplained,
    /// They were no test frames, and no router forwards them: broadcast frames.
    NotForwarded,
}

/// Whose loss or limit it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// The generator or the receiver: it says nothing about the DUT.
    Tester,
    /// The device under test.
    Dut,
}

/// A second count of the same frames, taken elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecondCount {
    /// Who counted: `generator interface`, `DUT in`, …
    pub place: String,
    /// Frames that it counted.
    pub frames: u64,
    /// Frames that it should have counted, by the first count.
    pub expected: u64,
}

/// Everything that an audit looks at.
#[derive(Debug, Clone, Default)]
pub struct Evidence {
    pub shape: Shape,
    /// The parts of the window for which rates were asked.
    pub parts: Vec<Part>,
    /// Frames of each of its repeated bursts; 0: frames are evenly spaced.
    pub burst: u32,
    /// The share of IPv6 frames between IPv4 ones, in millionths; 0: none.
    pub ipv6: u32,
    /// Rates of the window; `None` if the trial was too short for a window.
    pub rates: Option<Rates>,
    /// The generator's count.
    pub generator: PortCounters,
    /// The receiver's count.
    pub receiver: PortCounters,
    /// Located losses.
    pub losses: Vec<Loss>,
    /// Second counts.
    pub second_counts: Vec<SecondCount>,
    /// Generator, DUT and receiver take turns on one CPU, so that no ring can fill up, unless the kernel leaves the DUT's work to another
    /// thread.
    pub closed_loop: bool,
    /// There is no DUT: the tester's own losses lower its ceiling, and nothing else can have caused them.
    pub calibration: bool,
    /// The receiver is on a network of other machines, which say things of their own (ARP, LLDP, neighbour discovery): a few of their
    /// frames are no reason to doubt its count of ours.
    pub others: bool,
    /// The DUT's connections after the trial.
    pub connections: Option<Connections>,
    /// A failure while the trial ran: an interface that went down, a generator that ended early.
    pub faults: Vec<String>,
    /// The evidence of each direction, if frames went in both; the counts above cover both directions.
    pub ways: Vec<(Direction, Evidence)>,
}

/// One check of an audit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// Name of the check.
    pub name: String,
    /// Whether it held.
    pub ok: bool,
    /// The figures.
    pub found: String,
}

/// The outcome: valid if every check held.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Audit {
    /// Whether every check held.
    pub valid: bool,
    /// sent - received once - located losses; 0 when conserved, negative when more arrived than was sent. With two directions, that of
    /// the one with more.
    pub unlocated: i64,
    /// Every check.
    pub checks: Vec<Check>,
}

impl Audit {
    /// The sentences of the checks that failed. A fault speaks for itself.
    pub fn failures(&self) -> impl Iterator<Item = String> + '_ {
        let told = |c: &Check| match c.name.as_str() {
            NO_FAULT => c.found.clone(),
            name => format!("{name}: {}", c.found),
        };
        self.checks.iter().filter(|c| !c.ok).map(told)
    }
}

/// Audits one trial. Each direction has its own checks, so a surplus in one direction cannot hide a loss in the other.
pub fn audit(e: &Evidence) -> Audit {
    // A fault explains the findings of other checks, so it comes first.
    let fault = |f: &String| Check { name: NO_FAULT.into(), ok: false, found: f.clone() };
    let mut checks: Vec<Check> = e.faults.iter().map(fault).collect();
    let mut unlocated = 0;
    if e.ways.is_empty() {
        let counted;
        (counted, unlocated) = counts(e);
        checks.extend(counted);
    }
    for (direction, way) in &e.ways {
        let Evidence { shape, burst, closed_loop, calibration, others, ref faults, .. } = *e;
        let faults = faults.clone();
        let way = Evidence { shape, burst, closed_loop, calibration, others, faults, ..way.clone() };
        let (mut counted, of_way) = counts(&way);
        counted.push(no_frames_of_the_other(&way));
        let named = |check: Check| Check { name: format!("{}, {direction}", check.name), ..check };
        checks.extend(counted.into_iter().map(named));
        if of_way.abs() > i64::abs(unlocated) {
            unlocated = of_way;
        }
    }
    checks.extend(e.connections.and_then(established));
    Audit { valid: checks.iter().all(|c| c.ok), unlocated, checks }
}

/// The checks of one generator and one receiver, and the number of frames unaccounted for.
fn counts(e: &Evidence) -> (Vec<Check>, i64) {
    let located: u64 = e.losses.iter().map(|l| l.frames).sum();
    let passed = e.receiver.passed_broadcasts(&e.generator);
    let sent = e.generator.frames + e.generator.broadcasts;
    let unlocated = sent as i64 - (e.receiver.unique() + passed) as i64 - located as i64;
    let mut checks = vec![conservation(e, located, unlocated), something_sent(e)];
    checks.extend(has_window(e));
    checks.extend(loop_was_closed(e));
    checks.extend(dut_was_at_work(e));
    checks.extend(e.parts.iter().filter_map(|part| offered_as_asked(part, e)));
    checks.extend(whole_burst(e));
    checks.extend(repeated_bursts(e));
    checks.extend(mixed_as_asked(e));
    checks.push(no_foreign_frames(e));
    checks.push(tester_lost_nothing(e));
    checks.extend(e.second_counts.iter().map(counted_twice));
    (checks, unlocated)
}

/// A receiver has only the streams of its own direction.
fn no_frames_of_the_other(e: &Evidence) -> Check {
    let own = |stream: u16| e.generator.streams.iter().any(|sent| sent.stream == stream);
    let others = e.receiver.streams.iter().filter(|received| !own(received.stream));
    let frames: u64 = others.map(|stream| stream.frames).sum();
    let found = if frames == 0 { "none".into() } else { format!("{frames} came back to their sender") };
    Check { name: "no frames of the other direction".into(), ok: frames == 0, found }
}

fn conservation(e: &Evidence, located: u64, unlocated: i64) -> Check {
    let too_late = e.receiver.too_late();
    let mut found = format!(
        "{} sent = {} received once + {located} lost at known places + {unlocated} unaccounted for",
        e.generator.frames,
        e.receiver.unique(),
    );
    if e.generator.broadcasts > 0 {
        let passed = e.receiver.passed_broadcasts(&e.generator);
        found += &format!("; {} broadcast frames besides, {passed} received", e.generator.broadcasts);
    }
    if too_late > 0 {
        found += &format!("; {too_late} came too late to tell from duplicates");
    }
    // A receiver that does not distinguish frames counts those of others, too.
    let others =
        unlocated < 0 && e.receiver.streams.is_empty() && unlocated.unsigned_abs() <= most_of_others(e);
    if others {
        found += ", probably frames of other hosts, which this receiver cannot tell apart";
    }
    Check { name: "conservation".into(), ok: (unlocated == 0 || others) && too_late == 0, found }
}

/// Foreign frames that a trial may contain.
fn most_of_others(e: &Evidence) -> u64 {
    if e.others { OTHERS_FRAMES + e.generator.frames / OTHERS_SHARE } else { 0 }
}

fn something_sent(e: &Evidence) -> Check {
    let ok = e.generator.frames > 0;
    Check { name: "frames were sent".into(), ok, found: format!("{} sent", e.generator.frames) }
}

/// A rate needs time between two samples. Trials that sent nothing, or failed, have no window for another reason.
fn has_window(e: &Evidence) -> Option<Check> {
    let found = match e.rates {
        Some(Rates { offered: 0.0, seconds, .. }) => format!("no frame was sent in its {seconds:.3} s"),
        Some(rates) => format!("{:.3} s", rates.seconds),
        None => "no time passed between the first sample and the last: this machine's clock stands still or jumps (try another clock source), or linerate could not run during the whole trial".into(),
    };
    let burst = matches!(e.shape, Shape::Burst { .. });
    let sent = e.faults.is_empty() && e.generator.frames > 0 && !burst;
    sent.then(|| Check {
        name: "measured window".into(),
        ok: e.rates.is_some_and(|rates| rates.offered > 0.0),
        found,
    })
}

/// Frames that found a queue full.
fn found_full(e: &Evidence) -> u64 {
    e.losses.iter().filter(|loss| loss.cause == Cause::QueueFull).map(|loss| loss.frames).sum()
}

/// In a closed loop, a frame is sent when the one before has been handled.
fn loop_was_closed(e: &Evidence) -> Option<Check> {
    let (full, sent) = (found_full(e), e.generator.frames);
    let found = match full {
        0 => "no ring was full".into(),
        _ => format!(
            "{full} of {sent} frames found a ring full: the kernel left their handling to ksoftirqd, which did not run meanwhile (Linux before 6.5)"
        ),
    };
    e.closed_loop.then(|| Check { name: "closed loop".into(), ok: full * LOOP_SHARE <= sent, found })
}

/// A rate of 0 says something about a DUT only if it took frames in and dropped them.
fn dut_was_at_work(e: &Evidence) -> Option<Check> {
    let none = e.rates.is_some_and(|rates| rates.offered > 0.0 && rates.received == 0.0);
    let event = matches!(e.shape, Shape::Event { .. });
    let (full, sent, received) = (found_full(e), e.generator.frames, e.receiver.unique());
    let found = match received {
        0 if full < sent => "it dropped all frames".into(),
        0 => format!("it took none of {sent} frames in: all of them found a queue full"),
        _ => format!("no frame was received in the window, and {received} before or after it"),
    };
    (none && !event).then(|| Check {
        name: "the DUT was at work".into(),
        ok: received == 0 && full < sent,
        found,
    })
}

fn offered_as_asked(part: &Part, Evidence { generator, burst, .. }: &Evidence) -> Option<Check> {
    let rates = part.rates?;
    // Broadcast frames take the places of test frames.
    let all = generator.frames + generator.broadcasts;
    let asked = part.asked * (generator.frames as f64 / all.max(1) as f64);
    // Within a window, a paced generator is off by up to one frame at each end: at a few frames/s that is no error.
    let tolerance = OFFERED_TOLERANCE * asked + 2.0 * f64::from((*burst).max(1)) / rates.seconds;
    let ok = (rates.offered - asked).abs() <= tolerance;
    let off = 100.0 * (rates.offered / asked - 1.0);
    let found = format!("{:.1} frames/s offered of {asked:.1} asked ({off:+.3} %)", rates.offered);
    Some(Check { name: "offered as asked".into(), ok, found })
}

/// The burst has the requested number of frames.
fn whole_burst(e: &Evidence) -> Option<Check> {
    let Shape::Burst { frames } = e.shape else { return None };
    let (sent, ns) = (e.generator.frames, e.generator.active_ns);
    let found = format!("{sent} frames sent of {frames} asked, in {:.3} ms", ns as f64 / 1e6);
    Some(Check { name: "whole burst".into(), ok: sent == frames, found })
}

/// All frames came in whole bursts, except for a burst that the end of the load cut, and faster than the mean load.
fn repeated_bursts(e: &Evidence) -> Option<Check> {
    let (burst, sent) = (u64::from(e.burst), e.generator.frames + e.generator.broadcasts);
    let asked = e.parts.first().filter(|_| burst > 0)?.asked;
    let PortCounters { bursts, bursts_ns, .. } = e.generator;
    let within = burst_rate(burst, bursts, bursts_ns);
    let whole = bursts > 0 && sent >= bursts * burst && sent - bursts * burst <= burst;
    let found = format!(
        "{bursts} bursts of {burst} frames, and {} more; {:.0} frames/s within bursts, {asked:.0} on average",
        sent.saturating_sub(bursts * burst),
        within.unwrap_or(f64::INFINITY)
    );
    let ok = whole && within.is_none_or(|within| within >= asked * (1.0 - 2.0 / burst as f64));
    Some(Check { name: "repeated bursts".into(), ok, found })
}

/// Each thread sends both IP versions in turn, so its share is exact to one frame.
fn mixed_as_asked(e: &Evidence) -> Option<Check> {
    let threads = e.generator.streams.iter().filter(|stream| stream.ipv6).count();
    let (sent, _) = e.generator.ipv6(&e.receiver);
    let asked = f64::from(e.ipv6) / 1e6 * e.generator.frames as f64;
    let found = format!("{sent} IPv6 frames of {}, {asked:.0} asked", e.generator.frames);
    let ok = (sent as f64 - asked).abs() <= threads.max(1) as f64;
    (e.ipv6 > 0).then(|| Check { name: "IPv6 share as asked".into(), ok, found })
}

/// Frames/s within bursts: `bursts` of `burst` frames took `bursts_ns` together. `None`: a single frame, or no time.
pub fn burst_rate(burst: u64, bursts: u64, bursts_ns: u64) -> Option<f64> {
    let gaps = (burst.saturating_sub(1) * bursts) as f64;
    (bursts_ns > 0 && gaps > 0.0).then(|| gaps * 1e9 / bursts_ns as f64)
}

fn no_foreign_frames(e: &Evidence) -> Check {
    let found = match e.receiver.foreign_total() {
        0 => "none".to_string(),
        _ => e.receiver.foreign.iter().map(|(k, n)| format!("{n} {k}")).collect::<Vec<_>>().join(", "),
    };
    let others = e.receiver.foreign_total() - e.receiver.passed_broadcasts(&e.generator);
    Check { name: "no foreign frames".into(), ok: others <= most_of_others(e), found }
}

fn tester_lost_nothing(e: &Evidence) -> Check {
    let lost: Vec<String> = e
        .losses
        .iter()
        .filter(|l| l.side == Side::Tester && l.frames > 0)
        .map(|l| format!("{} at {}", l.frames, l.place))
        .collect();
    let found = if lost.is_empty() { "nothing".into() } else { lost.join(", ") };
    Check { name: "the tester lost nothing".into(), ok: lost.is_empty() || e.calibration, found }
}

/// Connections that were established before the trial still are: none has expired and been opened again.
fn established(c: Connections) -> Option<Check> {
    let unanswered = c.unanswered.filter(|_| c.states == States::Established)?;
    let found = format!("{unanswered} of {} connections were never answered", c.tracked.unwrap_or(0));
    Some(Check { name: "connections are established".into(), ok: unanswered == 0, found })
}

fn counted_twice(s: &SecondCount) -> Check {
    let found = format!("{} counted {} of {} expected", s.place, s.frames, s.expected);
    Check { name: format!("counted twice ({})", s.place), ok: s.frames == s.expected, found }
}

/// Is the tester's calibrated ceiling clearly above a result, both in frames/s? Use the lower end of the ceiling's
/// interval and the upper end of the result's.
pub fn ceiling_is_clear(ceiling: f64, result: f64) -> bool {
    ceiling >= CEILING_FACTOR * result
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::StreamCounters;

    fn sent_and_received(sent: u64, received: u64) -> Evidence {
        let port = |frames| PortCounters { frames, ..PortCounters::default() };
        let rates = Some(Rates { offered: 1.0, received: 1.0, seconds: 1.0 });
        Evidence { rates, generator: port(sent), receiver: port(received), ..Evidence::default() }
    }

    fn failed(e: &Evidence) -> Vec<String> {
        audit(e).checks.into_iter().filter(|c| !c.ok).map(|c| c.name).collect()
    }

    #[test]
    fn a_frame_that_nobody_accounts_for_fails_the_trial() {
        assert!(audit(&sent_and_received(1000, 1000)).valid);
        assert_eq!(failed(&sent_and_received(1000, 999)), ["conservation"]);
        assert_eq!(failed(&sent_and_received(1000, 1001)), ["conservation"]);
        assert_eq!(failed(&sent_and_received(0, 0)), ["frames were sent"]);
    }

    #[test]
    fn a_loss_in_one_direction_is_not_made_up_for_by_a_surplus_in_the_other() {
        let both = |lost: i64, surplus: i64| {
            let way = |by: i64| sent_and_received(1000, (1000 + by) as u64);
            let ways = [(Direction::Forward, way(-lost)), (Direction::Reverse, way(surplus))];
            Evidence { ways: ways.into(), ..sent_and_received(2000, (2000 - lost + surplus) as u64) }
        };
        assert!(audit(&both(0, 0)).valid);
        let hidden = both(3, 3);
        assert_eq!(failed(&hidden), ["conservation, forward", "conservation, reverse"]);
        assert_eq!(audit(&hidden).unlocated.abs(), 3);
        assert!(audit(&Evidence { ways: Vec::new(), ..hidden }).valid, "by the sums, nothing is missing");
        assert_eq!(failed(&both(0, 5)), ["conservation, reverse"]);
        assert_eq!(audit(&both(0, 5)).unlocated, -5);
    }

    #[test]
    fn a_direction_has_its_own_losses_load_and_second_counts() {
        let mut e = Evidence { calibration: false, ..sent_and_received(2000, 1900) };
        e.ways = [(1000, Direction::Forward), (900, Direction::Reverse)]
            .map(|(received, direction)| (direction, sent_and_received(1000, received)))
            .into();
        let place = "DUT out: receive ring full".to_string();
        let loss = Loss { place, frames: 100, side: Side::Dut, cause: Cause::QueueFull };
        e.ways[0].1.losses.push(loss.clone());
        assert_eq!(failed(&e), ["conservation, forward", "conservation, reverse"], "it is the reverse's");
        e.ways[0].1.losses.clear();
        e.ways[1].1.losses.push(loss);
        assert!(audit(&e).valid);
        let rates = Some(Rates { offered: 90.0, received: 90.0, seconds: 10.0 });
        e.ways[1].1.parts = vec![Part { asked: 100.0, rates }];
        let second = SecondCount { place: "DUT out".into(), frames: 9, expected: 10 };
        e.ways[1].1.second_counts.push(second);
        assert_eq!(failed(&e), ["offered as asked, reverse", "counted twice (DUT out), reverse"]);
    }

    #[test]
    fn frames_that_come_back_to_their_sender_are_found() {
        let stream = |stream| StreamCounters { stream, frames: 10, ..StreamCounters::default() };
        let mut way = sent_and_received(10, 10);
        (way.generator.streams, way.receiver.streams) = (vec![stream(1)], vec![stream(2)]);
        let e = Evidence { ways: vec![(Direction::Reverse, way)], ..sent_and_received(10, 10) };
        assert_eq!(failed(&e), ["no frames of the other direction, reverse"]);
    }

    #[test]
    fn located_losses_balance_the_account_and_are_charged_to_their_side() {
        let mut e = sent_and_received(1000, 900);
        e.losses.push(Loss {
            place: "DUT in: receive ring full".into(),
            frames: 100,
            side: Side::Dut,
            cause: Cause::QueueFull,
        });
        assert!(audit(&e).valid);
        e.losses[0].side = Side::Tester;
        assert_eq!(failed(&e), ["the tester lost nothing"]);
        e.calibration = true;
        assert!(audit(&e).valid);
    }

    #[test]
    fn a_connection_that_was_to_be_established_and_is_not_fails_the_trial() {
        let mut e = sent_and_received(1000, 1000);
        let of = |states, unanswered| Some(Connections { states, tracked: Some(5), unanswered });
        for (connections, fails) in [
            (of(States::Established, Some(0)), false),
            (of(States::Established, Some(1)), true),
            (of(States::OneWay, Some(5)), false),
            (of(States::New, None), false),
            (None, false),
        ] {
            e.connections = connections;
            let names = failed(&e);
            assert_eq!(names, if fails { vec!["connections are established"] } else { vec![] });
        }
    }

    #[test]
    fn duplicates_do_not_hide_losses() {
        let mut e = sent_and_received(1000, 1000);
        e.receiver.streams.push(StreamCounters { duplicates: 10, ..StreamCounters::default() });
        let a = audit(&e);
        assert_eq!((a.valid, a.unlocated), (false, 10));
    }

    #[test]
    fn the_offered_load_must_be_what_was_asked() {
        let mut e = sent_and_received(1000, 1000);
        let part = |offered| Part {
            asked: 100_000.0,
            rates: Some(Rates { offered, received: offered, seconds: 10.0 }),
        };
        e.parts = vec![part(99_600.0), part(100_000.0)];
        assert!(audit(&e).valid);
        e.parts[1] = part(99_000.0);
        assert_eq!(failed(&e), ["offered as asked"], "after a step as well");
    }

    #[test]
    fn a_burst_must_be_whole_and_has_no_window() {
        let shape = Shape::Burst { frames: 1000 };
        let mut e = Evidence { rates: None, shape, ..sent_and_received(1000, 1000) };
        assert!(audit(&e).valid);
        e.generator.frames = 999;
        assert_eq!(failed(&e), ["conservation", "whole burst"]);
    }

    #[test]
    fn a_mix_has_the_share_of_ipv6_that_was_asked_for() {
        let mut e = Evidence { ipv6: 100_000, ..sent_and_received(1000, 1000) };
        assert_eq!(failed(&e), ["IPv6 share as asked"]);
        let stream =
            |stream, frames, ipv6| StreamCounters { stream, frames, ipv6, ..StreamCounters::default() };
        e.generator.streams = vec![stream(1, 900, false), stream(2, 100, true)];
        e.receiver.streams = vec![stream(1, 900, false), stream(2, 90, false)];
        assert!(!failed(&e).contains(&"IPv6 share as asked".to_string()));
        assert_eq!(e.generator.ipv6(&e.receiver), (100, 90));
        e.generator.streams[1].frames = 98;
        assert!(failed(&e).contains(&"IPv6 share as asked".to_string()));
    }

    #[test]
    fn repeated_bursts_are_whole_and_faster_than_the_load() {
        let rates = Some(Rates { offered: 1100.0, received: 1100.0, seconds: 1.0 });
        let mut e = Evidence { burst: 64, ..sent_and_received(1000, 1000) };
        e.parts = vec![Part { asked: 1000.0, rates }];
        (e.generator.bursts, e.generator.bursts_ns) = (15, 15 * 63 * 10_000);
        assert!(audit(&e).valid, "15 bursts at 100,000 frames/s, and 40 frames: {:?}", audit(&e));
        e.generator.bursts_ns *= 200;
        assert_eq!(failed(&e), ["repeated bursts"], "500 frames/s are evenly spaced");
        (e.generator.bursts, e.generator.bursts_ns) = (14, 1);
        assert_eq!(failed(&e), ["repeated bursts"], "104 frames are in no burst");
        e.burst = 0;
        assert_eq!(failed(&e), ["offered as asked"], "without bursts, a window cuts off a frame or two");
    }

    #[test]
    fn foreign_frames_second_counts_and_faults() {
        let mut e = sent_and_received(10, 10);
        e.receiver.foreign.insert("ARP".into(), 2);
        e.second_counts.push(SecondCount { place: "DUT in".into(), frames: 9, expected: 10 });
        e.faults.push("interface g0 went down".into());
        assert_eq!(failed(&e), ["no fault", "no foreign frames", "counted twice (DUT in)"]);
        assert_eq!(audit(&e).failures().next().unwrap(), "interface g0 went down", "the cause first");
        e.others = true;
        assert_eq!(failed(&e), ["no fault", "counted twice (DUT in)"]);
        e.receiver.foreign.insert("ARP".into(), 101);
        assert_eq!(failed(&e)[1], "no foreign frames");
    }

    #[test]
    fn broadcast_frames_count_apart_and_take_the_places_of_test_frames() {
        let mut e = sent_and_received(990, 990);
        e.generator.broadcasts = 10;
        let rates = Some(Rates { offered: 990.0, received: 990.0, seconds: 1.0 });
        e.parts = vec![Part { asked: 1000.0, rates }];
        assert_eq!(failed(&e), ["conservation"], "10 are nowhere");
        e.receiver.foreign.insert("IPv4".into(), 10);
        assert!(audit(&e).valid, "{:?}", audit(&e));
        e.receiver.foreign.insert("IPv4".into(), 11);
        assert_eq!(failed(&e), ["no foreign frames"]);
        e.receiver.foreign.clear();
        let place = "DUT: broadcast frames, which are not forwarded".into();
        e.losses.push(Loss { place, frames: 10, side: Side::Dut, cause: Cause::NotForwarded });
        assert!(audit(&e).valid);
    }

    #[test]
    fn a_clock_that_stands_still_fails_the_trial_and_is_named() {
        let parts = vec![Part { asked: 10.0, rates: None }];
        let e = Evidence { rates: None, parts, ..sent_and_received(10, 10) };
        assert_eq!(failed(&e), ["measured window"]);
        assert!(audit(&e).failures().next().unwrap().contains("clock stands still"));
    }

    #[test]
    fn a_loop_that_the_kernel_left_open_is_told_by_full_rings() {
        // Linux 6.1: 85,919 frames sent, and 85,551 of them found the DUT's ring full.
        let place = "DUT in: receive ring full".to_string();
        let full = |frames| Loss { place: place.clone(), frames, side: Side::Dut, cause: Cause::QueueFull };
        let mut e = Evidence { losses: vec![full(85_551)], ..sent_and_received(85_919, 368) };
        assert!(audit(&e).valid, "a DUT with a CPU of its own");
        e.closed_loop = true;
        assert_eq!(failed(&e), ["closed loop"]);
        assert!(audit(&e).failures().next().unwrap().contains("ksoftirqd"));
        e.losses = vec![full(800)];
        e.receiver.frames = 85_119;
        assert!(audit(&e).valid, "a moment of it");
    }

    #[test]
    fn a_rate_of_0_is_valid_where_the_dut_drops_all() {
        let rates = |offered, received| Some(Rates { offered, received, seconds: 1.0 });
        let loss = |frames, cause| Loss { place: "DUT".into(), frames, side: Side::Dut, cause };
        let mut e = Evidence { losses: vec![loss(1000, Cause::Dropped)], ..sent_and_received(1000, 0) };
        e.rates = rates(1000.0, 0.0);
        assert!(audit(&e).valid);
        e.losses = vec![loss(1000, Cause::QueueFull)];
        assert_eq!(failed(&e), ["the DUT was at work"]);
        e.losses = vec![loss(400, Cause::QueueFull), loss(500, Cause::Dropped)];
        e.receiver.frames = 100;
        assert_eq!(failed(&e), ["the DUT was at work"], "100 came, and none in the window");
        e.shape = Shape::Event { after_ns: 1 };
        assert!(audit(&e).valid, "its event keeps the DUT from working");
        e.shape = Shape::Constant;
        e.rates = rates(0.0, 0.0);
        assert_eq!(failed(&e), ["measured window"], "nothing was sent in it");
    }

    #[test]
    fn a_receiver_that_tells_no_frames_apart_counts_a_few_of_others() {
        let (mut tool, mut agent) = (sent_and_received(1000, 1003), sent_and_received(1000, 1003));
        tool.receiver.streams.clear();
        agent.receiver.streams = vec![crate::counters::StreamCounters::default()];
        assert_eq!(
            [failed(&tool), failed(&agent)],
            [["conservation"], ["conservation"]],
            "in a lab of one's own"
        );
        (tool.others, agent.others) = (true, true);
        assert_eq!((failed(&tool).len(), failed(&agent)), (0, vec!["conservation".to_string()]));
        for received in [999, 1102] {
            tool.receiver.frames = received;
            assert_eq!(failed(&tool), ["conservation"], "{received}");
        }
    }
}
