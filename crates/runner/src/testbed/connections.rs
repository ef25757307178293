//! Connections of a DUT that keeps states: both directions are shown to it before they are measured, and again before they expire.

use crate::interrupt::interrupted as over;
use anyhow::{Context, Result};
use linerate_linux::lab::{EmbeddedLab, Lane};
use linerate_linux::net::{Netns, conntrack, sysctl};
use linerate_linux::ports::answer::Answerer;
use linerate_linux::ports::{self, Target};
use linerate_measure::record::{Connections, States};
use linerate_plan::Backend;
use linerate_wire::{Family, FlowOrder, Load, MacAddr, Traffic, Transport};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Frames a second while connections are established: an answer takes a few microseconds of one CPU. A DUT or an answering thread
/// that cannot keep up loses some, and those flows are shown again, more slowly.
const RATES: [f64; 5] = [150_000.0, 50_000.0, 15_000.0, 5_000.0, 2_000.0];
/// No round takes longer.
const LONGEST_ROUND: f64 = 20.0;
/// Answers may be under way this long.
const QUIET: Duration = Duration::from_millis(100);
/// The stream of learning frames, which no receiver counts among the campaign's.
const STREAM: u8 = 255;
/// A connection is shown again this long before the first of them may expire.
const MARGIN: Duration = Duration::from_secs(2);
/// After this time a UDP connection that has been answered counts as a stream, which lives longer (`nf_conntrack_udp_packet`).
const STREAM_AFTER: Duration = Duration::from_secs(2);

/// Sends each flow of a lane once and answers it, until the DUT has seen all of them in both directions or no rate is left. The
/// receiver must let test frames through. `cpu`: where the frames are made. Returns the number of connections without an answer.
///
/// # Errors
/// The error of the ports or the kernel.
pub fn establish(
    lab: &EmbeddedLab,
    lane: &Lane,
    dut: &Netns,
    traffic: &Traffic,
    cpu: Option<u32>,
) -> Result<u64> {
    let answerer = Answerer::start(
        &lab.receiver.namespace,
        lane.receiver.index,
        traffic.campaign,
    )?;
    let target = Target {
        ifindex: lane.generator.index,
        source: MacAddr(lane.generator.mac),
        destination: MacAddr(lane.destination_mac()),
    };
    let traffic = Traffic {
        order: FlowOrder::Sequential,
        first_stream: STREAM,
        ..traffic.clone()
    };
    let cpus: Vec<u32> = cpu.into_iter().collect();
    let namespace = &lab.generator.namespace;
    let mut generator = ports::generator(Backend::AfPacket, namespace, &[target], &traffic, &cpus)?;
    let flows = traffic.flows.len();
    // A DUT may take a millisecond for a frame; no longer.
    let load = Load::lasting(Duration::from_secs(1) + Duration::from_millis(flows));
    let mut unanswered = u64::MAX;
    for rate in RATES
        .into_iter()
        .filter(|rate| *rate == RATES[0] || flows as f64 / rate < LONGEST_ROUND)
    {
        let before = answerer.frames();
        generator.start(&Load {
            rate: Some(rate),
            frames: Some(flows),
            batch: 16,
            ..load
        })?;
        while !generator.finished() && !over() {
            std::thread::sleep(Duration::from_millis(1));
        }
        generator.stop()?;
        wait_for_answers(&answerer);
        let found = conntrack::unanswered(dut).context("looking at the DUT's connections")?;
        unanswered = not_established(flows, generator.frames(), found);
        // Flows that the rules drop are never answered, and have no connection either.
        if unanswered == 0 && answerer.frames() - before >= flows || over() {
            break;
        }
    }
    Ok(unanswered)
}

/// Connections that the DUT has not seen in both directions: those without an answer, and those of flows that were never sent, of which
/// it knows nothing.
fn not_established(flows: u64, sent: u64, unanswered: u64) -> u64 {
    unanswered + flows.saturating_sub(sent)
}

/// Returns when no answer has left for a while.
fn wait_for_answers(answerer: &Answerer) {
    let (mut seen, mut since) = (answerer.frames(), Instant::now());
    while since.elapsed() < QUIET && !over() {
        std::thread::sleep(Duration::from_millis(2));
        let now = answerer.frames();
        if now != seen {
            (seen, since) = (now, Instant::now());
        }
    }
}

/// How long a DUT remembers a connection after its last frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// One that has just been answered.
    first: Duration,
    /// The timeout of an established connection; `None` if the load's frames do not renew it, as a SYN does not.
    later: Option<Duration>,
}

impl Timeouts {
    /// Of a DUT that is not asked: the shortest default among those that linerate knows is ipfw's (`dyn_udp_lifetime`).
    pub const SHORTEST: Timeouts = Timeouts {
        first: Duration::from_secs(10),
        later: Some(Duration::from_secs(10)),
    };

    /// Connections of a namespace.
    pub fn of(dut: &Netns, family: Family, transport: Transport) -> Timeouts {
        let seconds = |name: &str, usual: u64| {
            let text = sysctl::get(dut, &format!("net/netfilter/nf_conntrack_{name}"));
            Duration::from_secs(
                text.ok()
                    .and_then(|t| t.trim().parse().ok())
                    .unwrap_or(usual),
            )
        };
        match (transport, family) {
            (Transport::Udp, _) => Timeouts {
                first: seconds("udp_timeout", 30),
                later: Some(seconds("udp_timeout_stream", 120)),
            },
            (Transport::Tcp, _) => Timeouts {
                first: seconds("tcp_timeout_syn_recv", 60),
                later: None,
            },
            (Transport::IcmpEcho, family) => {
                let name = if family == Family::V4 {
                    "icmp_timeout"
                } else {
                    "icmpv6_timeout"
                };
                Timeouts {
                    first: seconds(name, 30),
                    later: Some(seconds(name, 30)),
                }
            }
        }
    }
}

/// When the connections of a slot were seen last: flows are sent one after the other, so the oldest is as many frames ago as there
/// are flows. (Of flows in random order some are older; the audit finds those that expired.)
#[derive(Debug)]
pub struct Freshness {
    flows: u64,
    timeouts: Timeouts,
    learned: Instant,
    /// When a load began, and how many frames there had been before it.
    loads: VecDeque<(Instant, u64)>,
    frames: u64,
}

impl Freshness {
    /// All flows were shown from this moment on.
    pub fn new(began: Instant, flows: u64, timeouts: Timeouts) -> Freshness {
        Freshness {
            flows,
            timeouts,
            learned: began,
            loads: [(began, 0)].into(),
            frames: flows,
        }
    }

    /// A load of `frames` frames began then.
    pub fn add(&mut self, began: Instant, frames: u64) {
        self.loads.push_back((began, self.frames));
        self.frames += frames;
        // The oldest flow is in the last load that had begun by then.
        let oldest = self.frames - self.flows;
        while self
            .loads
            .get(1)
            .is_some_and(|(_, before)| *before <= oldest)
        {
            self.loads.pop_front();
        }
    }

    /// Nothing can be said of them any more.
    pub fn forget(&mut self) {
        self.timeouts = Timeouts {
            first: Duration::ZERO,
            later: None,
        };
    }

    /// Whether a trial of this length that begins now may find that a connection has expired.
    pub fn expires_within(&self, now: Instant, length: Duration) -> bool {
        let oldest = self.loads.front().map_or(self.learned, |(began, _)| *began);
        let (seen, timeout) = match self.timeouts.later {
            None => (self.learned, self.timeouts.first),
            Some(later) if oldest >= self.learned + STREAM_AFTER => (oldest, later),
            Some(_) => (oldest, self.timeouts.first),
        };
        now + length + MARGIN.min(timeout / 4) > seen + timeout
    }
}

/// The state of a slot's connections after a load of `frames` frames that began then. `wanted`: what the plan wants them to be.
pub fn after_load(
    wanted: States,
    fresh: Option<&mut Freshness>,
    began: Instant,
    frames: u64,
) -> States {
    match (wanted, fresh) {
        (States::Established, Some(fresh)) => {
            fresh.add(began, frames);
            States::Established
        }
        (States::Established, None) => States::OneWay,
        (other, _) => other,
    }
}

/// The connections that the DUT tracks after a trial. New ones are forgotten then.
///
/// # Errors
/// The kernel does not answer.
pub fn tracked(dut: &Netns, states: States) -> Result<Option<Connections>> {
    let Some(tracked) = conntrack::count(dut).filter(|count| *count > 0) else {
        return Ok(None);
    };
    let look = || conntrack::unanswered(dut).context("looking at the DUT's connections");
    let unanswered = (states == States::Established).then(look).transpose()?;
    if states == States::New {
        // All namespaces share one hash table: these entries would slow the trials of other DUTs.
        conntrack::flush(dut).context("forgetting the DUT's connections")?;
    }
    Ok(Some(Connections {
        states,
        tracked: Some(tracked),
        limit: None,
        unanswered,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const UDP: Timeouts = Timeouts {
        first: Duration::from_secs(30),
        later: Some(Duration::from_secs(120)),
    };
    const TRIAL: Duration = Duration::from_millis(300);

    fn at(began: Instant, seconds: u64) -> Instant {
        began + Duration::from_secs(seconds)
    }

    #[test]
    fn flows_that_a_short_learning_did_not_send_are_not_established() {
        assert_eq!(
            not_established(1_000_000, 600_000, 0),
            400_000,
            "the DUT has answers to all that it knows"
        );
        assert_eq!(not_established(1_000_000, 1_000_000, 3), 3);
        assert_eq!(not_established(1_000_000, 1_000_016, 0), 0);
    }

    #[test]
    fn connections_that_rest_expire() {
        let began = Instant::now();
        let fresh = Freshness::new(began, 2000, UDP);
        assert!(!fresh.expires_within(at(began, 27), TRIAL));
        assert!(fresh.expires_within(at(began, 28), TRIAL));
    }

    #[test]
    fn trials_renew_them_once_all_flows_have_been_in_one() {
        let began = Instant::now();
        let mut fresh = Freshness::new(began, 2000, UDP);
        fresh.add(at(began, 10), 1500);
        assert!(
            fresh.expires_within(at(began, 29), TRIAL),
            "500 flows are as old as the learning"
        );
        fresh.add(at(began, 20), 500);
        assert!(
            !fresh.expires_within(at(began, 127), TRIAL),
            "the oldest is of the load at 10 s"
        );
        assert!(fresh.expires_within(at(began, 128), TRIAL));
        fresh.add(at(began, 21), 1_000_000);
        assert!(!fresh.expires_within(at(began, 138), TRIAL));
        assert_eq!(fresh.loads.len(), 1);
    }

    #[test]
    fn a_syn_does_not_renew_a_connection() {
        let began = Instant::now();
        let tcp = Timeouts {
            first: Duration::from_secs(60),
            later: None,
        };
        let mut fresh = Freshness::new(began, 10, tcp);
        fresh.add(at(began, 50), 1000);
        assert!(!fresh.expires_within(at(began, 57), TRIAL));
        assert!(fresh.expires_within(at(began, 58), TRIAL));
    }

    #[test]
    fn a_short_timeout_leaves_time_for_a_trial() {
        let began = Instant::now();
        let short = Timeouts {
            first: Duration::from_secs(1),
            later: Some(Duration::from_secs(1)),
        };
        let fresh = Freshness::new(began, 10, short);
        assert!(!fresh.expires_within(began, TRIAL));
        assert!(fresh.expires_within(began + Duration::from_millis(600), TRIAL));
    }
}
