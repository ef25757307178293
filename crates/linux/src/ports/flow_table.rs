//! The tables of the eBPF generator: flows, lengths and sums, so that a frame is a copy with a few additions.

use crate::bpf::MappedArray;
use crate::error::Error;
use aya::Ebpf;
use linerate_wire::{
    AliasTable, BaseSums, FCS_LEN, Family, Flow, FlowOrder, FrameTemplate, Signature, Traffic,
};
use std::net::IpAddr;

/// Fills the look-up tables; the mappings are dropped at once, the program keeps the maps. With millions of flows, one table in
/// this process's memory at a time is enough.
pub(super) fn fill_tables(ebpf: &mut Ebpf, all: &[(&Traffic, &Tables)]) -> Result<(), Error> {
    let [(traffic, _), ..] = all else {
        return Ok(());
    };
    let count = all
        .iter()
        .map(|(traffic, _)| traffic.flows.len() as usize)
        .sum();
    let flows: MappedArray<FlowEntry> = MappedArray::take(ebpf, "flows", count)?;
    let entries = all
        .iter()
        .flat_map(|(traffic, tables)| traffic.flows.iter().map(|flow| tables.flow_entry(&flow)));
    for (i, entry) in entries.enumerate() {
        flows.set(i, entry?);
    }
    drop(flows);
    let lengths: Vec<LengthEntry> = all
        .iter()
        .flat_map(|(_, tables)| tables.lengths.clone())
        .collect();
    MappedArray::take(ebpf, "lengths", lengths.len())?.fill(&lengths);
    if let FlowOrder::Zipf { exponent, .. } = traffic.order {
        let aliases = AliasTable::zipf(traffic.flows.len() as u32, exponent);
        MappedArray::take(ebpf, "aliases", aliases.entries().len())?.fill(aliases.entries());
    }
    Ok(())
}

/// One flow; `struct flow` in generator.bpf.c. Multi-byte fields are in wire order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
struct FlowEntry {
    source: [u8; 4],
    destination: [u8; 4],
    source_port: [u8; 2],
    destination_port: [u8; 2],
    ip_check: [u8; 2],
    l4_sum: [u8; 2],
}

/// One step of a frame-length pattern; `struct length` in generator.bpf.c.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub(super) struct LengthEntry {
    frame: u16,
    ip_length: [u8; 2],
    l4_length: [u8; 2],
    ip_delta: [u8; 2],
    l4_delta: u32,
    spare: u32,
}

/// One's complement sum of an address or any other even-sized field, as 16-bit words in wire order.
fn sum_of(bytes: &[u8]) -> u32 {
    bytes
        .chunks_exact(2)
        .map(|w| u32::from(u16::from_be_bytes([w[0], w[1]])))
        .sum()
}

fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// The tables with which the eBPF program builds this traffic's frames.
pub(super) struct Tables {
    /// The longest frame, whole: the input of BPF_PROG_RUN.
    pub frame: Vec<u8>,
    /// Headers of the frames, for the program's TEMPLATE.
    pub template: [u8; 112],
    /// Frame lengths.
    pub lengths: Vec<LengthEntry>,
    base: BaseSums,
    l2_len: usize,
}

impl Tables {
    /// Prepares the tables.
    ///
    /// # Errors
    /// A frame length that is too short for the headers.
    pub fn new(traffic: &Traffic) -> Result<Self, Error> {
        let (spec, pattern, longest) = (
            &traffic.frame,
            &traffic.mix.pattern,
            traffic.mix.max_len_fcs(),
        );
        let base =
            FrameTemplate::new(spec, pattern.first().copied().unwrap_or(longest))?.base_sums();
        let mut frame = vec![0; usize::from(longest) - FCS_LEN];
        let signature = Signature {
            stream: traffic.stream(0),
            sequence: 0,
            time_ns: 0,
        };
        let signature = spec.signed.then_some(&signature);
        FrameTemplate::new(spec, longest)?.fill(&mut frame, &traffic.flows.flow(0), signature);
        // With one length, the template carries it; otherwise the program writes the length fields.
        let mut template = [0; 112];
        template[..spec.header_len()].copy_from_slice(&frame[..spec.header_len()]);
        let lengths = pattern
            .iter()
            .map(|len| length_entry(traffic, *len, &base))
            .collect::<Result<_, _>>()?;
        Ok(Tables {
            frame,
            template,
            lengths,
            base,
            l2_len: spec.l2_len(),
        })
    }

    /// The table entry of one flow.
    ///
    /// # Errors
    /// An IPv6 address that differs from the others in more than its low 32 bits.
    fn flow_entry(&self, flow: &Flow) -> Result<FlowEntry, Error> {
        let (source, source_sum) = self.low_bits(flow.src, 8)?;
        let (destination, destination_sum) = self.low_bits(flow.dst, 24)?;
        let (source_port, destination_port) =
            (flow.src_port.to_be_bytes(), flow.dst_port.to_be_bytes());
        let addresses = u64::from(source_sum) + u64::from(destination_sum);
        let ip_check = !fold(u64::from(self.base.ip) + addresses);
        let ports = sum_of(&source_port) + sum_of(&destination_port);
        let l4_sum = fold(
            u64::from(self.base.l4)
                + u64::from(ports)
                + if self.base.l4_covers_addresses {
                    addresses
                } else {
                    0
                },
        );
        Ok(FlowEntry {
            source,
            destination,
            source_port,
            destination_port,
            ip_check: ip_check.to_be_bytes(),
            l4_sum: l4_sum.to_be_bytes(),
        })
    }

    /// The varying low 32 bits of an address, and the one's complement sum of all of it; `at` is its offset in the
    /// IPv6 header, where the template has the first flow's.
    fn low_bits(&self, address: IpAddr, at: usize) -> Result<([u8; 4], u32), Error> {
        match address {
            IpAddr::V4(a) => Ok((a.octets(), sum_of(&a.octets()))),
            IpAddr::V6(a) => {
                let octets = a.octets();
                let start = self.l2_len + at;
                if octets[..12] != self.frame[start..start + 12] {
                    return Err(Error::Refused(format!(
                        "{a} differs from the first address in its upper 96 bits: the generator varies the lower 32"
                    )));
                }
                Ok((
                    [octets[12], octets[13], octets[14], octets[15]],
                    sum_of(&octets),
                ))
            }
        }
    }
}

fn length_entry(traffic: &Traffic, len_fcs: u16, base: &BaseSums) -> Result<LengthEntry, Error> {
    let sums = FrameTemplate::new(&traffic.frame, len_fcs)?.base_sums();
    let frame = len_fcs - FCS_LEN as u16;
    let ip = frame - traffic.frame.l2_len() as u16;
    let l4 = ip - traffic.frame.l3_len() as u16;
    let ip_length = if traffic.frame.family == Family::V4 {
        ip
    } else {
        l4
    };
    // In one's complement arithmetic, subtracting is adding the complement.
    let difference = |new: u32, old: u32| fold(u64::from(new) + u64::from(!fold(old.into())));
    Ok(LengthEntry {
        frame,
        ip_length: ip_length.to_be_bytes(),
        l4_length: l4.to_be_bytes(),
        ip_delta: difference(sums.ip, base.ip).to_be_bytes(),
        l4_delta: u32::from(difference(sums.l4, base.l4).to_be()),
        spare: 0,
    })
}
