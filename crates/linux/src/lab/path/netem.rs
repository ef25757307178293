//! A path by the kernel: a router between two veth pairs that delays by netem and limits the rate by tbf.
//!
//! The router is no bridge: where a packet is taken in by IP, its sender's socket lets go of it, and what waits here does not count
//! as unsent there (TCP small queues).

use super::line::Link;
use crate::error::Error;
use crate::lab::node::Node;
use crate::net::Netns;
use crate::process::Job;
use linerate_measure::record::PathCounts;
use std::sync::{Arc, OnceLock};

/// Bytes of a packet beside its IP packet.
const ETHERNET: u64 = 14;
/// A full segment without what layer 1 adds, and with it: tbf counts the former.
const WITHOUT: f64 = 1514.0;
const WITH: f64 = 1538.0;
/// tbf lets this many bytes pass at once: the longest super-frame.
const BURST: u32 = 131_072;
/// Packets that netem holds: it counts super-frames and frames alike.
const HELD: u32 = 1_000_000;

/// Why this machine has no netem and tbf; `None` if it has them.
pub fn lacking() -> Option<String> {
    static FOUND: OnceLock<Option<String>> = OnceLock::new();
    let attempt = || shape(&Netns::anonymous()?, "lo", Link::half(2_000_000, Some(1e9)));
    FOUND
        .get_or_init(|| attempt().err().map(|error| error.to_string()))
        .clone()
}

/// Gives an interface the queues of a link.
fn shape(namespace: &Netns, interface: &str, link: Link) -> Result<(), Error> {
    let (delay, held) = (format!("{}us", link.delay_ns / 1000), HELD.to_string());
    tc(
        namespace,
        &[
            "qdisc", "add", "dev", interface, "root", "handle", "1:", "netem", "delay", &delay,
            "limit", &held,
        ],
    )?;
    let Some(rate) = link.rate else { return Ok(()) };
    let (rate, burst) = (
        format!("{:.0}bit", rate * WITHOUT / WITH),
        BURST.to_string(),
    );
    let queue = format!("{:.0}", link.queue.max(f64::from(BURST)));
    let tbf = [
        "qdisc", "add", "dev", interface, "parent", "1:1", "handle", "10:", "tbf", "rate", &rate,
        "burst", &burst, "limit", &queue,
    ];
    tc(namespace, &tbf).map(drop)
}

fn tc(namespace: &Netns, arguments: &[&str]) -> Result<String, Error> {
    let ran = Job::new("tc", arguments).run(|program| namespace.command(program), None);
    ran.map_err(|error| Error::Refused(error.to_string()))
}

/// The router, with an interface towards each host.
pub struct Netem {
    pub node: Arc<Node>,
    interfaces: [String; 2],
}

impl Netem {
    /// Shapes both interfaces of a router.
    ///
    /// # Errors
    /// The kernel has no netem or no tbf.
    pub fn new(node: Arc<Node>, interfaces: [String; 2], link: Link) -> Result<Netem, Error> {
        interfaces
            .iter()
            .try_for_each(|interface| shape(&node.namespace, interface, link))?;
        Ok(Netem { node, interfaces })
    }

    /// The counts of both directions, in packets as the stack has them: a super-frame is one.
    ///
    /// # Errors
    /// The kernel does not say.
    pub fn counts(&self) -> Result<[PathCounts; 2], Error> {
        let [a, b] = self
            .interfaces
            .each_ref()
            .map(|name| self.node.route.link(name));
        let (a, b) = (a?.stats, b?.stats);
        let direction = |rx: u64,
                         rx_bytes: u64,
                         tx: u64,
                         tx_bytes: u64,
                         out: &str|
         -> Result<PathCounts, Error> {
            let (dropped, bytes_in, bytes_out) = (
                self.dropped(out)?,
                rx_bytes - ETHERNET * rx,
                tx_bytes - ETHERNET * tx,
            );
            Ok(PathCounts {
                frames_in: rx,
                frames_out: tx,
                frames_dropped: dropped,
                bytes_in,
                bytes_out,
                ..PathCounts::default()
            })
        };
        let [towards_a, towards_b] = &self.interfaces;
        Ok([
            direction(
                a.rx_packets,
                a.rx_bytes,
                b.tx_packets,
                b.tx_bytes,
                towards_b,
            )?,
            direction(
                b.rx_packets,
                b.rx_bytes,
                a.tx_packets,
                a.tx_bytes,
                towards_a,
            )?,
        ])
    }

    /// Packets that an interface's queues dropped.
    fn dropped(&self, interface: &str) -> Result<u64, Error> {
        let text = tc(
            &self.node.namespace,
            &["-s", "-j", "qdisc", "show", "dev", interface],
        )?;
        let all: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        // netem counts the drops of the queue within it as well.
        let root = all
            .as_array()
            .into_iter()
            .flatten()
            .find(|qdisc| qdisc["kind"] == "netem");
        let drops = root.and_then(|qdisc| qdisc["drops"].as_u64());
        drops.ok_or_else(|| {
            Error::Refused(format!(
                "tc does not say how many packets {interface} dropped: {text}"
            ))
        })
    }
}
