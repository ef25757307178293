//! The frames that a generator sends, how fast and how long it sends them, and which frames a receiver counts.

use crate::lengths::MAX_PATTERN;
use crate::{
    ConnectionSpec, Family, FlowOrder, FlowSpace, FrameMix, FrameSpec, FrameTemplate, MacAddr,
    Result, SourceMacs, Transport, VlanTag, WireError,
};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Streams that a receiver distinguishes: the low byte of the stream id.
pub const STREAMS: usize = 256;
/// Most frames handed over at once: the kernel takes no more live frames (TEST_XDP_MAX_BATCH in net/bpf/test_run.c).
pub const LARGEST_BATCH: u32 = 256;

/// A day.
const LONGEST_LOAD_NS: u64 = 86_400_000_000_000;

/// The frames of a generator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Traffic {
    /// Headers. Where Ethernet addresses are zero, the generator fills in those of its interface and its target.
    pub frame: FrameSpec,
    /// Frame lengths, with FCS.
    pub mix: FrameMix,
    /// Addresses and ports.
    pub flows: FlowSpace,
    /// The order of the flows.
    #[serde(with = "crate::text")]
    pub order: FlowOrder,
    /// High byte of the stream ids: distinguishes this campaign's frames from others'.
    pub campaign: u8,
    /// Low byte of the first thread's stream id; the next threads follow.
    pub first_stream: u8,
    /// One frame in this many carries a time stamp; at least 1.
    pub stamp_every: u32,
    /// Whether the card, or its driver, is to stamp these frames as well.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub card_stamps: bool,
    /// One frame in this many goes to the Ethernet broadcast address instead, without a signature, and is counted separately (RFC 2544,
    /// section 11.1); 0: no frame.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub broadcast_every: u32,
    /// Frames of each burst of a load with a rate, with pauses between bursts (RFC 2544, section 21); 0: evenly spaced frames.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub burst: u32,
    /// Frames/s within a burst; `None`: as fast as the generator and the medium allow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst_fps: Option<f64>,
    /// Ethernet source addresses (RFC 4814, section 4.2).
    #[serde(default, with = "crate::text", skip_serializing_if = "is_own")]
    pub source_macs: SourceMacs,
    /// IPv6 frames that are mixed with these IPv4 frames.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ipv6: Option<Second>,
    /// Connections instead of single frames. Lengths, flows and their order are then those of the connections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<ConnectionSpec>,
}

/// IPv6 frames, spread evenly among IPv4 frames, with their own stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Second {
    /// Share of the IPv6 frames in all frames, in millionths.
    pub millionths: u32,
    /// As many flows as the IPv4 frames have.
    pub flows: FlowSpace,
}

/// A whole, in millionths.
pub const MILLION: u32 = 1_000_000;

#[allow(clippy::trivially_copy_pass_by_ref)] // as serde calls it
fn is_own(macs: &SourceMacs) -> bool {
    *macs == SourceMacs::Own
}

#[allow(clippy::trivially_copy_pass_by_ref)] // as serde calls it
fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Traffic {
    /// Flows one after the other, one frame in 64 stamped, campaign 0.
    pub fn new(frame: FrameSpec, mix: FrameMix, flows: FlowSpace) -> Traffic {
        let order = FlowOrder::Sequential;
        Traffic {
            frame,
            mix,
            flows,
            order,
            campaign: 0,
            first_stream: 0,
            stamp_every: 64,
            card_stamps: false,
            broadcast_every: 0,
            burst: 0,
            burst_fps: None,
            source_macs: SourceMacs::Own,
            ipv6: None,
            connections: None,
        }
    }

    /// The mixed IPv6 frames as separate traffic.
    pub fn second(&self) -> Option<Traffic> {
        let Second { flows, .. } = self.ipv6.clone()?;
        let frame = FrameSpec {
            family: Family::V6,
            l4_checksum: true,
            may_fragment: false,
            ..self.frame
        };
        Some(Traffic {
            frame,
            flows,
            ipv6: None,
            ..self.clone()
        })
    }

    /// The frames from the other end.
    #[must_use]
    pub fn mirrored(&self) -> Traffic {
        let second = |of: &Second| Second {
            flows: of.flows.mirrored(),
            ..of.clone()
        };
        Traffic {
            flows: self.flows.mirrored(),
            ipv6: self.ipv6.as_ref().map(second),
            ..self.clone()
        }
    }

    /// Streams of each thread and direction.
    pub fn streams_each(&self) -> usize {
        if self.ipv6.is_some() { 2 } else { 1 }
    }

    /// The stream id of generator thread number `thread`.
    pub fn stream(&self, thread: usize) -> u16 {
        u16::from(self.campaign) << 8 | u16::from(self.first_stream.wrapping_add(thread as u8))
    }

    /// N, where one frame in N of a load carries a time stamp.
    pub fn stamp_every_of(&self, load: &Load) -> u32 {
        let every = load.findings.is_some_and(|findings| findings.every_frame);
        if every { 1 } else { self.stamp_every.max(1) }
    }

    /// The frames with these Ethernet addresses.
    #[must_use]
    pub fn addressed(&self, source: MacAddr, destination: MacAddr) -> Traffic {
        let frame = FrameSpec {
            src_mac: source,
            dst_mac: destination,
            ..self.frame
        };
        Traffic {
            frame,
            ..self.clone()
        }
    }

    /// These frames with an 802.1Q tag, which lengthens them.
    #[must_use]
    pub fn tagged(&self, id: u16) -> Traffic {
        let tag = VlanTag { id, priority: 0 };
        let frame = FrameSpec {
            vlan: Some(tag),
            ..self.frame
        };
        let pattern = self
            .mix
            .pattern
            .iter()
            .map(|length| length.saturating_add(VlanTag::LEN as u16))
            .collect();
        Traffic {
            frame,
            mix: FrameMix {
                pattern,
                ..self.mix.clone()
            },
            ..self.clone()
        }
    }

    /// Refuses traffic that no generator can send.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self) -> Result<()> {
        let lengths = self.mix.pattern.len();
        let (flows, frames) = (self.flows.family(), self.frame.family);
        let wrong = match () {
            () if !(1..=MAX_PATTERN).contains(&lengths) => {
                format!("a pattern of {lengths} frame lengths: 1 to {MAX_PATTERN} are possible")
            }
            () if self.stamp_every == 0 => {
                "one frame in 0 cannot carry a time stamp: choose 1 or more".to_string()
            }
            () if self.broadcast_every > 0
                && (self.broadcast_every == 1 || frames == Family::V6 || !self.frame.signed) =>
            {
                "broadcast frames need signed IPv4 frames, and at most every second frame can be one".to_string()
            }
            () if self.burst_fps.is_some_and(|fps| !(1e-3..=1e12).contains(&fps)) => {
                "the rate within a burst must be from 0.001 to 1e12 frames/s".to_string()
            }
            () if self.ipv6.as_ref().is_some_and(|second| {
                !(1..MILLION).contains(&second.millionths)
                    || second.flows.len() != self.flows.len()
                    || (frames, self.frame.transport) != (Family::V4, Transport::Udp)
                    || self.broadcast_every > 0
            }) =>
            {
                "IPv6 frames can be mixed only with IPv4 UDP frames without broadcast frames, with a share above 0 % and below 100 %"
                    .to_string()
            }
            () if flows != frames => format!("the flows are {flows}, the frames {frames}: choose one"),
            () => {
                self.flows.usable_len()?;
                self.second().map_or(Ok(()), |second| second.check())?;
                let mut lengths = self.mix.pattern.iter();
                return lengths.try_for_each(|len| FrameTemplate::new(&self.frame, *len).map(drop));
            }
        };
        Err(WireError::new(wrong))
    }
}

/// How fast and how long a generator sends. Time or number of frames, whichever is used up first, ends the load; it ends by
/// itself, whatever happens to the process that started it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// Time under load, in nanoseconds.
    pub duration_ns: u64,
    /// Frames over all threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frames: Option<u64>,
    /// Frames/s over all threads; `None` for as fast as possible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// Frames handed over at once.
    pub batch: u32,
    /// No frame leaves before this moment of the generator's CLOCK_MONOTONIC, in nanoseconds; 0: at once.
    #[serde(default)]
    pub not_before_ns: u64,
    /// A change of the rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<RateStep>,
    /// Findings about single frames that the receiver makes beyond its counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub findings: Option<Findings>,
}

/// A change of a load's rate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RateStep {
    /// Nanoseconds from the load's first frame on.
    pub after_ns: u64,
    /// Frames/s over all threads from then on.
    pub rate: f64,
}

/// Findings of a receiver about single frames. They take time from every frame, so a load must ask for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Findings {
    /// Every frame carries a time stamp, so that outages, the last loss and differences of delays are found as well. Otherwise only the
    /// stamped frames have delays.
    pub every_frame: bool,
    /// Time of the load, in nanoseconds, from which single frames are kept with their delays.
    pub tag_after_ns: u64,
}

impl Load {
    /// As fast as possible for this time, in batches of 64.
    pub fn lasting(duration: Duration) -> Load {
        let duration_ns = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        Load {
            duration_ns,
            frames: None,
            rate: None,
            batch: 64,
            not_before_ns: 0,
            step: None,
            findings: None,
        }
    }

    /// The load with `times` the frames and the rate, in the same time.
    #[must_use]
    pub fn times(&self, times: u32) -> Load {
        let more = |rate: f64| rate * f64::from(times);
        Load {
            frames: self
                .frames
                .map(|frames| frames.saturating_mul(times.into())),
            rate: self.rate.map(more),
            step: self.step.map(|step| RateStep {
                rate: more(step.rate),
                ..step
            }),
            ..*self
        }
    }

    /// Refuses a load that is impossible, or would not end.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self) -> Result<()> {
        let rates = self.rate.into_iter().chain(self.step.map(|step| step.rate));
        let rate = { rates }.all(|rate| (1e-3..=1e12).contains(&rate));
        let checks = [
            (
                (1..=LONGEST_LOAD_NS).contains(&self.duration_ns),
                "it must last from a nanosecond to a day",
            ),
            (rate, "its rate must be from 0.001 to 1e12 frames/s"),
            (
                (1..=LARGEST_BATCH).contains(&self.batch),
                "a batch has 1 to 256 frames",
            ),
            (self.frames != Some(0), "it has no frames"),
        ];
        let wrong = checks.iter().find(|(holds, _)| !holds);
        wrong.map_or(Ok(()), |(_, why)| {
            Err(WireError::new(format!("the load is not possible: {why}")))
        })
    }
}

/// The frames that a receiver counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Filter {
    /// High byte of the stream ids that are ours.
    pub campaign: u8,
    /// Streams in use: 1 to [`STREAMS`].
    pub streams: u16,
    /// Count every UDP, TCP and ICMP frame as a test frame: for generators that do not sign, such as trafgen and pkt-gen.
    #[serde(default)]
    pub unsigned: bool,
    /// Let other frames go up the stack (ARP in a real lab) instead of dropping them.
    pub pass_foreign: bool,
    /// Whether the card, or its driver, is to stamp the frames that carry a time stamp.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub card_stamps: bool,
}

impl Filter {
    /// All streams of a campaign's signed frames; other frames are dropped.
    pub fn of_campaign(campaign: u8) -> Filter {
        Filter {
            campaign,
            streams: STREAMS as u16,
            unsigned: false,
            pass_foreign: false,
            card_stamps: false,
        }
    }

    /// # Errors
    /// A number of streams that no receiver distinguishes.
    pub fn check(&self) -> Result<()> {
        match self.streams {
            streams if (1..=STREAMS).contains(&usize::from(streams)) => Ok(()),
            streams => Err(WireError::new(format!(
                "{streams} streams: a receiver tells 1 to {STREAMS} apart"
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn traffic() -> Traffic {
        let nowhere = MacAddr::default();
        let frame = FrameSpec::new(nowhere, nowhere, Family::V4, Transport::Udp);
        let flows = |family| FlowSpace::benchmark(family, 10).unwrap();
        let ipv6 = Some(Second {
            millionths: 100_000,
            flows: flows(Family::V6),
        });
        Traffic {
            ipv6,
            ..Traffic::new(frame, FrameMix::single(84), flows(Family::V4))
        }
    }

    #[test]
    fn traffic_that_cannot_be_sent_is_refused() {
        traffic().check().unwrap();
        let changes: [fn(&mut Traffic); 9] = [
            |t| t.mix.pattern.clear(),
            |t| t.mix.pattern = vec![63],
            |t| t.mix.pattern = vec![64; 5000],
            |t| t.stamp_every = 0,
            |t| t.frame.family = Family::V6,
            |t| t.broadcast_every = 1,
            |t| t.burst_fps = Some(0.0),
            |t| t.ipv6.as_mut().unwrap().millionths = MILLION,
            |t| t.frame.transport = Transport::Tcp,
        ];
        for change in changes {
            let mut traffic = traffic();
            change(&mut traffic);
            traffic.check().unwrap_err();
        }
    }

    #[test]
    fn loads_that_cannot_be_are_refused() {
        let load = Load {
            rate: Some(1000.5),
            frames: Some(1),
            ..Load::lasting(Duration::from_secs(1))
        };
        load.check().unwrap();
        let changes: [fn(&mut Load); 6] = [
            |l| l.duration_ns = 0,
            |l| l.duration_ns = u64::MAX,
            |l| l.rate = Some(f64::NAN),
            |l| {
                l.step = Some(RateStep {
                    after_ns: 1,
                    rate: 0.0,
                })
            },
            |l| l.batch = 0,
            |l| l.frames = Some(0),
        ];
        for change in changes {
            let mut load = load;
            change(&mut load);
            load.check().unwrap_err();
        }
        Filter {
            streams: 0,
            ..Filter::of_campaign(1)
        }
        .check()
        .unwrap_err();
    }
}
