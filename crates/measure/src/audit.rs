//! The audit of a trial: whether its numbers can be believed. Every check reports its finding. A failed check keeps the trial out
//! of the verdict.

use crate::counters::PortCounters;
use crate::record::states::{Connections, States};
use crate::trial::{Direction, Part, Rates, Shape};
use schemars::JsonSchema;
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// The queue there was full: nothing was done with them.
    QueueFull,
    /// Frames were handled and then dropped, or got lost on the way.
    #[default]
    Dropped,
    /// Lost inside the DUT, without a counter of the reason.
    Unexplained,
    /// Frames were no test frames, and no router forwards them: broadcast frames.
    NotForwarded,
}

/// Whose loss or limit it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// The generator or the receiver: it says nothing about the DUT.
    Tester,
    /// The device under test.
    Dut,
}

/// A second count of the same frames, taken elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SecondCount {
    /// Who counted: `generator interface`, `DUT in`, …
    pub place: String,
    /// Frames that it counted.
    pub frames: u64,
    /// Frames that it should have counted, by the first count.
    pub expected: u64,
}

/// Everything that an audit looks at.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
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
    /// Whether first frames of connections passed the DUT: one that is overrun may let none of them close.
    pub passes_first_frames: bool,
    /// The DUT's connections after the trial.
    pub connections: Option<Connections>,
    /// A failure while the trial ran: an interface that went down, a generator that ended early.
    pub faults: Vec<String>,
    /// The evidence of each direction, if frames went in both; the counts above cover both directions.
    pub ways: Vec<(Direction, Evidence)>,
}

/// One check of an audit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Check {
    /// Name of the check.
    pub name: String,
    /// Whether it held.
    pub ok: bool,
    /// The figures.
    pub found: String,
}

/// The outcome: valid if every check held.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
    /// The sentences of the checks that failed.
    pub fn failures(&self) -> impl Iterator<Item = String> + '_ {
        self.checks.iter().filter(|c| !c.ok).map(Check::failure)
    }
}

impl Check {
    /// The fault in words. The name of a check says what should be.
    fn failure(&self) -> String {
        let found = self.found.as_str();
        let (name, direction) = match self.name.rsplit_once(", ") {
            Some((name, direction)) => (name, format!(" ({direction})")),
            None => (self.name.as_str(), String::new()),
        };
        let words = match name {
            "frames were sent" => "no frame was sent".into(),
            "offered as asked" => match found.split_once(" offered of ") {
                Some((offered, asked)) => {
                    format!("the tester offered {offered} instead of {asked}")
                }
                None => format!("the load was not as asked: {found}"),
            },
            "no foreign frames" => format!("foreign frames arrived: {found}"),
            "the tester lost nothing" => format!("the tester lost {found}"),
            "a figure could be imported" => format!("no figure could be imported: {found}"),
            "repeated bursts" => format!("the bursts were not as asked: {found}"),
            _ => found.into(),
        };
        words + &direction
    }
}

/// Audits one trial. Each direction has its own checks, so a surplus in one direction cannot hide a loss in the other.
pub fn audit(e: &Evidence) -> Audit {
    // A fault explains the findings of other checks, so it comes first.
    let fault = |f: &String| Check {
        name: NO_FAULT.into(),
        ok: false,
        found: f.clone(),
    };
    let mut checks: Vec<Check> = e.faults.iter().map(fault).collect();
    let mut unlocated = 0;
    if e.ways.is_empty() {
        let counted;
        (counted, unlocated) = counts(e);
        checks.extend(counted);
    }
    for (direction, way) in &e.ways {
        let Evidence {
            shape,
            burst,
            closed_loop,
            calibration,
            others,
            ref faults,
            ..
        } = *e;
        let faults = faults.clone();
        let way = Evidence {
            shape,
            burst,
            closed_loop,
            calibration,
            others,
            faults,
            ..way.clone()
        };
        let (mut counted, of_way) = counts(&way);
        counted.push(no_frames_of_the_other(&way));
        let named = |check: Check| Check {
            name: format!("{}, {direction}", check.name),
            ..check
        };
        checks.extend(counted.into_iter().map(named));
        if of_way.abs() > i64::abs(unlocated) {
            unlocated = of_way;
        }
    }
    checks.extend(e.connections.and_then(established));
    Audit {
        valid: checks.iter().all(|c| c.ok),
        unlocated,
        checks,
    }
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
    let others = e
        .receiver
        .streams
        .iter()
        .filter(|received| !own(received.stream));
    let frames: u64 = others.map(|stream| stream.frames).sum();
    let found = if frames == 0 {
        "none".into()
    } else {
        format!("{frames} came back to their sender")
    };
    Check {
        name: "no frames of the other direction".into(),
        ok: frames == 0,
        found,
    }
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
        found += &format!(
            "; {} broadcast frames besides, {passed} received",
            e.generator.broadcasts
        );
    }
    if too_late > 0 {
        found += &format!("; {too_late} came too late to tell from duplicates");
    }
    // A receiver that does not distinguish frames counts those of others, too.
    let others = unlocated < 0
        && e.receiver.streams.is_empty()
        && unlocated.unsigned_abs() <= most_of_others(e);
    if others {
        found += ", probably frames of other hosts, which this receiver cannot tell apart";
    }
    Check {
        name: "conservation".into(),
        ok: (unlocated == 0 || others) && too_late == 0,
        found,
    }
}

/// Foreign frames that a trial may contain.
fn most_of_others(e: &Evidence) -> u64 {
    if e.others {
        OTHERS_FRAMES + e.generator.frames / OTHERS_SHARE
    } else {
        0
    }
}

fn something_sent(e: &Evidence) -> Check {
    let ok = e.generator.frames > 0;
    Check {
        name: "frames were sent".into(),
        ok,
        found: format!("{} sent", e.generator.frames),
    }
}

/// A rate needs time between two samples. Trials that sent nothing, or failed, have no window for another reason.
fn has_window(e: &Evidence) -> Option<Check> {
    let found = match e.rates {
        Some(Rates { offered: 0.0, seconds, .. }) => format!("no frame was sent in the window of {seconds:.3} s"),
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
    e.losses
        .iter()
        .filter(|loss| loss.cause == Cause::QueueFull)
        .map(|loss| loss.frames)
        .sum()
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
    e.closed_loop.then(|| Check {
        name: "closed loop".into(),
        ok: full * LOOP_SHARE <= sent,
        found,
    })
}

/// A rate of 0 says something about a DUT only if it took frames in and dropped them.
fn dut_was_at_work(e: &Evidence) -> Option<Check> {
    let none = e
        .rates
        .is_some_and(|rates| rates.offered > 0.0 && rates.received == 0.0);
    let meant = matches!(e.shape, Shape::Event { .. }) || e.passes_first_frames;
    let (full, sent, received) = (found_full(e), e.generator.frames, e.receiver.unique());
    let found = match received {
        0 if full < sent => "it dropped all frames".into(),
        0 => format!("the DUT took none of {sent} frames in: all of them found a queue full"),
        _ => format!("no frame was received in the window, and {received} before or after it"),
    };
    (none && !meant).then(|| Check {
        name: "the DUT was at work".into(),
        ok: received == 0 && full < sent,
        found,
    })
}

fn offered_as_asked(
    part: &Part,
    Evidence {
        generator, burst, ..
    }: &Evidence,
) -> Option<Check> {
    let rates = part.rates?;
    // Broadcast frames take the places of test frames.
    let all = generator.frames + generator.broadcasts;
    let asked = part.asked * (generator.frames as f64 / all.max(1) as f64);
    // Within a window, a paced generator is off by up to one frame at each end: at a few frames/s that is no error.
    let tolerance = OFFERED_TOLERANCE * asked + 2.0 * f64::from((*burst).max(1)) / rates.seconds;
    let ok = (rates.offered - asked).abs() <= tolerance;
    let off = 100.0 * (rates.offered / asked - 1.0);
    let digits = usize::from(asked < 1e4);
    let found = format!(
        "{:.digits$}/s offered of {asked:.digits$}/s asked ({off:+.1} %)",
        rates.offered
    );
    Some(Check {
        name: "offered as asked".into(),
        ok,
        found,
    })
}

/// The burst has the requested number of frames.
fn whole_burst(e: &Evidence) -> Option<Check> {
    let Shape::Burst { frames } = e.shape else {
        return None;
    };
    let (sent, ns) = (e.generator.frames, e.generator.active_ns);
    let found = format!(
        "{sent} frames sent of {frames} asked, in {:.3} ms",
        ns as f64 / 1e6
    );
    Some(Check {
        name: "whole burst".into(),
        ok: sent == frames,
        found,
    })
}

/// All frames came in whole bursts, except for a burst that the end of the load cut, and faster than the mean load.
fn repeated_bursts(e: &Evidence) -> Option<Check> {
    let (burst, sent) = (
        u64::from(e.burst),
        e.generator.frames + e.generator.broadcasts,
    );
    let asked = e.parts.first().filter(|_| burst > 0)?.asked;
    let PortCounters {
        bursts, bursts_ns, ..
    } = e.generator;
    let within = burst_rate(burst, bursts, bursts_ns);
    let whole = bursts > 0 && sent >= bursts * burst && sent - bursts * burst <= burst;
    let found = format!(
        "{bursts} bursts of {burst} frames, and {} more; {:.0} frames/s within bursts, {asked:.0} on average",
        sent.saturating_sub(bursts * burst),
        within.unwrap_or(f64::INFINITY)
    );
    let ok = whole && within.is_none_or(|within| within >= asked * (1.0 - 2.0 / burst as f64));
    Some(Check {
        name: "repeated bursts".into(),
        ok,
        found,
    })
}

/// Each thread sends both IP versions in turn, so its share is exact to one frame.
fn mixed_as_asked(e: &Evidence) -> Option<Check> {
    let threads = e
        .generator
        .streams
        .iter()
        .filter(|stream| stream.ipv6)
        .count();
    let (sent, _) = e.generator.ipv6(&e.receiver);
    let asked = f64::from(e.ipv6) / 1e6 * e.generator.frames as f64;
    let found = format!(
        "{sent} IPv6 frames of {}, {asked:.0} asked",
        e.generator.frames
    );
    let ok = (sent as f64 - asked).abs() <= threads.max(1) as f64;
    (e.ipv6 > 0).then(|| Check {
        name: "IPv6 share as asked".into(),
        ok,
        found,
    })
}

/// Frames/s within bursts: `bursts` of `burst` frames took `bursts_ns` together. `None`: a single frame, or no time.
pub fn burst_rate(burst: u64, bursts: u64, bursts_ns: u64) -> Option<f64> {
    let gaps = (burst.saturating_sub(1) * bursts) as f64;
    (bursts_ns > 0 && gaps > 0.0).then(|| gaps * 1e9 / bursts_ns as f64)
}

fn no_foreign_frames(e: &Evidence) -> Check {
    let found = match e.receiver.foreign_total() {
        0 => "none".to_string(),
        _ => e
            .receiver
            .foreign
            .iter()
            .map(|(k, n)| format!("{n} {k}"))
            .collect::<Vec<_>>()
            .join(", "),
    };
    let others = e.receiver.foreign_total() - e.receiver.passed_broadcasts(&e.generator);
    Check {
        name: "no foreign frames".into(),
        ok: others <= most_of_others(e),
        found,
    }
}

fn tester_lost_nothing(e: &Evidence) -> Check {
    let lost: Vec<String> = e
        .losses
        .iter()
        .filter(|l| l.side == Side::Tester && l.frames > 0)
        .map(|l| format!("{} at {}", l.frames, l.place))
        .collect();
    let found = if lost.is_empty() {
        "nothing".into()
    } else {
        lost.join(", ")
    };
    Check {
        name: "the tester lost nothing".into(),
        ok: lost.is_empty() || e.calibration,
        found,
    }
}

/// Connections that were established before the trial still are: none has expired and been opened again.
fn established(c: Connections) -> Option<Check> {
    let unanswered = c.unanswered.filter(|_| c.states == States::Established)?;
    let found = format!(
        "{unanswered} of {} connections were never answered",
        c.tracked.unwrap_or(0)
    );
    Some(Check {
        name: "connections are established".into(),
        ok: unanswered == 0,
        found,
    })
}

fn counted_twice(s: &SecondCount) -> Check {
    let found = format!(
        "{} counted {} of {} expected",
        s.place, s.frames, s.expected
    );
    Check {
        name: format!("counted twice ({})", s.place),
        ok: s.frames == s.expected,
        found,
    }
}

/// Is the tester's calibrated ceiling clearly above a result, both in frames/s? Use the lower end of the ceiling's
/// interval and the upper end of the result's.
pub fn ceiling_is_clear(ceiling: f64, result: f64) -> bool {
    ceiling >= CEILING_FACTOR * result
}

#[cfg(test)]
mod tests;
