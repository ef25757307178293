//! What a port on another host is made from, and the load that it is given: in the words of the protocol, checked before anything is
//! made of them.

use super::message::{Code, Fault};
use linerate_plan::text_form;
use linerate_wire::{
    Family, FlowOrder, FlowSpace, FrameMix, FrameSpec, MAX_FLOWS, MacAddr, Transport, VlanTag,
};
use serde::{Deserialize, Serialize};

/// How frames leave or arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Backend {
    /// XDP live frames, or the XDP receiver.
    Xdp,
    /// AF_XDP sockets.
    AfXdp,
    /// AF_PACKET sockets.
    AfPacket,
}

/// Frame lengths in the order of sending.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lengths {
    /// What results call it.
    pub name: String,
    /// With FCS.
    pub pattern: Vec<u16>,
}

/// Which addresses and ports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Flows {
    /// So many of the networks of benchmarks (RFC 2544, RFC 5180).
    Benchmark(u32),
    /// Ranges, in the grammar of [`FlowSpace::parse`].
    Ranges {
        /// Sources.
        source: String,
        /// Destinations.
        destination: String,
        /// So many of them at most.
        most: Option<u64>,
    },
    /// Pseudo-random ones (RFC 4814).
    Rfc4814 {
        /// How many.
        flows: u32,
        /// Where the random numbers start.
        seed: u64,
    },
}

/// The traffic of a generator; its rate comes with the load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Traffic {
    /// IP version.
    #[serde(with = "text_form::family")]
    pub family: Family,
    /// What is above IP.
    #[serde(with = "text_form")]
    pub transport: Transport,
    /// Where frames are addressed to on the wire.
    #[serde(with = "text_form")]
    pub to: MacAddr,
    /// Where they say that they come from; the interface's own address where none is named.
    #[serde(default, with = "optional_mac", skip_serializing_if = "Option::is_none")]
    pub from: Option<MacAddr>,
    /// 802.1Q tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vlan: Option<u16>,
    /// Whether the transport checksum is computed.
    pub checksum: bool,
    /// Lengths.
    pub lengths: Lengths,
    /// Flows.
    pub flows: Flows,
    /// Their order.
    #[serde(with = "text_form")]
    pub order: FlowOrder,
    /// High byte of the stream ids.
    pub campaign: u8,
    /// Low byte of the first thread's; the next threads follow.
    pub first_stream: u8,
    /// One frame in this many carries a time stamp, of use where the receiver has the same clock. The generator looks at its clock as
    /// often at least.
    pub stamp_every: u32,
}

mod optional_mac {
    use linerate_wire::MacAddr;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(mac: &Option<MacAddr>, serializer: S) -> Result<S::Ok, S::Error> {
        match mac {
            Some(mac) => serializer.collect_str(mac),
            None => serializer.serialize_none(),
        }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<MacAddr>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        text.map(|text| text.parse().map_err(D::Error::custom)).transpose()
    }
}

/// What a receiver counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Filter {
    /// High byte of the stream ids that are ours.
    pub campaign: u8,
    /// Streams in use.
    pub streams: u16,
    /// Whether every UDP, TCP and ICMP frame counts, signed or not.
    #[serde(default)]
    pub unsigned: bool,
    /// Whether other frames go on to the host's stack (ARP, say), or are dropped.
    pub pass_foreign: bool,
}

/// What a port is for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// It sends.
    Generator(Box<Traffic>),
    /// It counts.
    Receiver(Filter),
}

/// A port that is wanted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Port {
    /// What it is called from now on; a port of the same name gives way to it.
    pub name: String,
    /// Its interface.
    pub interface: String,
    /// Whether the user has said that this interface leads to nothing but the lab (RFC 6815).
    pub isolated: bool,
    /// How frames leave or arrive.
    pub means: Backend,
    /// The CPUs that it works on, one thread on each; the agent's choice where none are named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpus: Vec<u32>,
    /// Generator or receiver.
    pub role: Role,
}

/// How long and how fast a generator sends; for receivers, how long they report.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// Time under load, in nanoseconds. It ends then by itself.
    pub duration_ns: u64,
    /// Frames at most, over all threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frames: Option<u64>,
    /// Frames/s over all threads; as fast as possible where none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// Frames handed over at once.
    pub batch: u32,
    /// Between two samples of the counters, in nanoseconds.
    pub sample_ns: u64,
    /// Whether receivers answer each frame, and generators count the answers that arrive.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub answer: bool,
}

/// No load is longer: a day.
const LONGEST_NS: u64 = 86_400_000_000_000;
/// More samples than a thousand a second say nothing, and cost.
const SHORTEST_SAMPLE_NS: u64 = 1_000_000;
/// The kernel takes at most so many live frames at once (TEST_XDP_MAX_BATCH in net/bpf/test_run.c).
const LARGEST_BATCH: u32 = 256;
/// Frames between two looks at the clock: a load must end at its time.
const MOST_UNSTAMPED: u32 = 65_536;
/// Threads of a port.
const MOST_CPUS: usize = 256;
/// Letters of a port's name.
const LONGEST_NAME: usize = 40;
/// The kernel's limit on an interface's name, less its end (IFNAMSIZ).
const LONGEST_INTERFACE: usize = 15;

fn wrong(what: impl Into<String>, why: impl Into<String>) -> Fault {
    let remedy = "the controller asked for what cannot be: report it with this message";
    Fault { code: Code::Unsuitable, what: what.into(), why: why.into(), remedy: remedy.into() }
}

impl Port {
    /// Refuses what cannot be, before anything is made of it.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self) -> Result<(), Fault> {
        let what = || format!("preparing port {}", shown(&self.name));
        if self.name.is_empty() || self.name.len() > LONGEST_NAME || self.name.chars().any(char::is_control) {
            return Err(wrong(what(), format!("its name must have 1 to {LONGEST_NAME} letters")));
        }
        check_interface(&self.interface).map_err(|why| wrong(what(), why))?;
        if self.cpus.len() > MOST_CPUS || self.cpus.iter().any(|cpu| *cpu >= 8192) {
            return Err(wrong(
                what(),
                format!("it can have at most {MOST_CPUS} CPUs, of numbers below 8192"),
            ));
        }
        let mut cpus = self.cpus.clone();
        cpus.sort_unstable();
        cpus.dedup();
        if cpus.len() != self.cpus.len() {
            return Err(wrong(what(), "a CPU is named twice"));
        }
        match &self.role {
            Role::Generator(traffic) => traffic.check().map_err(|why| wrong(what(), why)),
            Role::Receiver(filter) if !(1..=256).contains(&filter.streams) => {
                Err(wrong(what(), "a receiver tells 1 to 256 streams apart"))
            }
            Role::Receiver(_) => Ok(()),
        }
    }
}

/// Names are put into paths of /sys.
fn check_interface(name: &str) -> Result<(), String> {
    let plain = name.bytes().all(|b| b.is_ascii_graphic() && b != b'/');
    match !name.is_empty() && name.len() <= LONGEST_INTERFACE && plain && !matches!(name, "." | "..") {
        true => Ok(()),
        false => Err(format!("'{}' is not a valid interface name", shown(name))),
    }
}

/// The beginning of a text that came from elsewhere, fit to be printed.
pub(super) fn shown(text: &str) -> String {
    text.chars().take(60).map(|c| if c.is_control() { '?' } else { c }).collect()
}

impl Traffic {
    fn check(&self) -> Result<(), String> {
        if self.vlan.is_some_and(|id| id == 0 || id > 4094) {
            return Err("a VLAN's number goes from 1 to 4094".into());
        }
        if !(1..=MOST_UNSTAMPED).contains(&self.stamp_every) {
            return Err(format!("one frame in 1 to {MOST_UNSTAMPED} can be stamped"));
        }
        let most = linerate_wire::lengths::MAX_PATTERN;
        if self.lengths.pattern.is_empty() || self.lengths.pattern.len() > most {
            return Err(format!("a pattern of lengths has 1 to {most} frames"));
        }
        let frame = self.frame(MacAddr([0; 6]));
        for length in &self.lengths.pattern {
            linerate_wire::FrameTemplate::new(&frame, *length).map_err(|e| e.to_string())?;
        }
        let flows = self.flow_space()?;
        if flows.family() != self.family {
            return Err(format!("its flows are {}, its frames {}", flows.family(), self.family));
        }
        flows.usable_len().map(drop).map_err(|e| e.to_string())
    }

    /// The headers, with the interface's own address where none is named.
    pub fn frame(&self, own: MacAddr) -> FrameSpec {
        let mut frame = FrameSpec::new(self.to, self.from.unwrap_or(own), self.family, self.transport);
        frame.vlan = self.vlan.map(|id| VlanTag { id, priority: 0 });
        // IPv6 knows no UDP without a checksum, the others none at all.
        let needed = self.family == Family::V6 || self.transport != Transport::Udp;
        frame.l4_checksum = self.checksum || needed;
        frame
    }

    /// The lengths.
    pub fn mix(&self) -> FrameMix {
        FrameMix { name: self.lengths.name.clone(), pattern: self.lengths.pattern.clone() }
    }

    /// The flows.
    ///
    /// # Errors
    /// Why there are none such.
    pub fn flow_space(&self) -> Result<FlowSpace, String> {
        let made = match &self.flows {
            Flows::Benchmark(flows) => FlowSpace::benchmark(self.family, *flows),
            Flows::Ranges { source, destination, most } => FlowSpace::parse(source, destination)
                .map(|space| space.with_limit(most.unwrap_or(u64::MAX).max(1))),
            Flows::Rfc4814 { flows, seed } => {
                FlowSpace::rfc4814(self.family, (*flows).min(MAX_FLOWS + 1), *seed)
            }
        };
        made.map_err(|e| e.to_string())
    }
}

impl Load {
    /// Refuses what cannot be.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self) -> Result<(), Fault> {
        let what = "arming the load";
        if !(1..=LONGEST_NS).contains(&self.duration_ns) {
            return Err(wrong(what, "it lasts from a nanosecond to a day"));
        }
        if self.rate.is_some_and(|rate| !(rate.is_finite() && (1e-3..=1e12).contains(&rate))) {
            return Err(wrong(what, "a rate goes from 0.001 to 1e12 frames/s"));
        }
        if !(1..=LARGEST_BATCH).contains(&self.batch) {
            return Err(wrong(what, format!("a batch has 1 to {LARGEST_BATCH} frames")));
        }
        if self.frames == Some(0) {
            return Err(wrong(what, "no frames are no load"));
        }
        if self.sample_ns < SHORTEST_SAMPLE_NS {
            return Err(wrong(what, "samples are a millisecond apart at least"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{generator, load, receiver};
    use super::*;

    #[test]
    fn what_can_be_passes() {
        generator().check().unwrap();
        receiver().check().unwrap();
        load().check().unwrap();
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let port = |change: fn(&mut Port)| {
            let mut port = generator();
            change(&mut port);
            port.check().unwrap_err()
        };
        port(|p| p.name.clear());
        port(|p| p.interface = "../x".into());
        port(|p| p.interface = "..".into());
        port(|p| p.cpus = vec![1, 1]);
        port(|p| p.cpus = vec![9000]);
        port(|p| {
            p.role = Role::Receiver(Filter { campaign: 0, streams: 0, unsigned: false, pass_foreign: true })
        });
        let traffic = |change: fn(&mut Traffic)| {
            let mut port = generator();
            let Role::Generator(traffic) = &mut port.role else { unreachable!() };
            change(traffic);
            port.check().unwrap_err()
        };
        traffic(|t| t.lengths.pattern.clear());
        traffic(|t| t.lengths.pattern = vec![63]);
        traffic(|t| t.lengths.pattern = vec![64; 5000]);
        traffic(|t| t.vlan = Some(4095));
        traffic(|t| t.stamp_every = u32::MAX);
        traffic(|t| t.flows = Flows::Benchmark(0));
        traffic(|t| t.flows = Flows::Rfc4814 { flows: u32::MAX, seed: 1 });
        traffic(|t| t.family = Family::V6);
        let loads: [fn(&mut Load); 6] = [
            |l| l.duration_ns = 0,
            |l| l.duration_ns = u64::MAX,
            |l| l.rate = Some(f64::NAN),
            |l| l.batch = 0,
            |l| l.frames = Some(0),
            |l| l.sample_ns = 0,
        ];
        for change in loads {
            let mut load = load();
            change(&mut load);
            load.check().unwrap_err();
        }
    }

    #[test]
    fn ipv6_always_has_checksums() {
        let Role::Generator(mut traffic) = generator().role else { unreachable!() };
        traffic.checksum = false;
        assert!(!traffic.frame(MacAddr([0; 6])).l4_checksum);
        traffic.family = Family::V6;
        assert!(traffic.frame(MacAddr([0; 6])).l4_checksum);
    }
}
