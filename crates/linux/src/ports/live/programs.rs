//! The programs of generator.bpf.c: which of them sends a kind of traffic, and the numbers and tables that it is loaded with.

use crate::bpf;
use crate::error::Error;
use crate::ports::flow_table::Tables;
use aya::Ebpf;
use linerate_wire::{Family, FlowOrder, SourceMacs, Traffic, Transport};

pub(super) fn program_name(traffic: &Traffic) -> String {
    let family = if traffic.frame.family == Family::V4 {
        "v4"
    } else {
        "v6"
    };
    let transport = match traffic.frame.transport {
        Transport::Udp => "udp",
        Transport::Tcp => "tcp",
        Transport::IcmpEcho => "icmp",
    };
    let vlan = if traffic.frame.vlan.is_some() {
        "_vlan"
    } else {
        ""
    };
    match traffic.frame.extensions.len() {
        _ if traffic.ipv6.is_some() => format!("gen_mixed_udp{vlan}"),
        0 => format!("gen_{family}_{transport}{vlan}"),
        bytes => format!("gen_{family}_{transport}{vlan}_extended{bytes}"),
    }
}

pub(super) fn load(
    traffic: &Traffic,
    (tables, second): (&Tables, Option<&Tables>),
    ports: u32,
    both: bool,
) -> Result<Ebpf, Error> {
    let (flows, lengths) = (traffic.flows.usable_len()?, tables.lengths.len() as u32);
    let (order, aliases) = match traffic.order {
        FlowOrder::Sequential => (0, 1),
        FlowOrder::Random { .. } => (1, 1),
        FlowOrder::Zipf { .. } => (2, flows),
    };
    let seed = match traffic.source_macs {
        SourceMacs::Own => None,
        SourceMacs::Random { seed } => Some(seed),
    };
    let numbers = [
        ("FLOWS", flows),
        ("ORDER", order),
        ("LENGTHS", lengths),
        ("L4_CHECKSUM", u32::from(traffic.frame.l4_checksum)),
        ("SIGNED", u32::from(traffic.frame.signed)),
        ("BOTH", both.into()),
        ("BROADCAST_EVERY", traffic.broadcast_every),
        ("BURST", u32::from(traffic.burst > 0)),
        (
            "SOURCE_MACS",
            if seed.is_some() {
                traffic.flows.interface().into()
            } else {
                0
            },
        ),
        (
            "IPV6_SHARE",
            traffic.ipv6.as_ref().map_or(0, |second| second.millionths),
        ),
    ];
    let each = traffic.streams_each() as u32;
    let elements = [
        ("states", bpf::possible_cpus() as u32),
        ("flows", flows * each),
        ("aliases", aliases),
        ("lengths", lengths * each),
        ("ports", ports),
    ];
    let seed = seed.unwrap_or(0).to_le_bytes();
    let mut bytes = vec![
        ("TEMPLATE", &tables.template[..]),
        ("SOURCE_MACS_SEED", &seed[..]),
    ];
    bytes.extend(second.map(|second| ("TEMPLATE6", &second.template[..])));
    bpf::GENERATOR.load(&numbers, &bytes, &elements)
}
