//! Frames, headers, checksums, flow spaces, frame-length mixes and capture files, for a forwarding benchmark.
//!
//! Everything here is a function of its arguments: no sockets, files, clocks, environment or unseeded randomness, and no
//! `unsafe`. The parts, in the order in which they build on each other:
//!
//! - [`checksum`], [`mac`], and [`headers`]: the numbers that stand in headers, and the headers of test frames.
//! - [`endpoints`] and [`flow`]: addresses and ports of the frames; [`order`]: the order of flows; [`lengths`]: lengths of the frames.
//! - [`Traffic`] and [`Load`]: all of this together, with its rate and its end; [`text`]: these values in JSON.
//! - [`signature`]: the mark of a test frame; [`frame`]: writes test frames; [`mod@recognise`]: distinguishes them from others.
//! - [`account`]: reordering and duplicates from sequence numbers; [`mod@pcap`]: capture files.
//!
//! Frame lengths count the Ethernet frame check sequence (FCS), as RFC 2544 does, wherever a name ends in `len_fcs`. Buffers
//! never hold it: network hardware appends it.
//!
//! Whatever the bytes or the text, nothing that parses here panics. Writers panic only where they say so: if the buffer given is
//! too short.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod account;
mod answer;
pub mod checksum;
mod connections;
pub mod endpoints;
mod extensions;
pub mod flow;
pub mod frame;
pub mod headers;
pub mod lengths;
pub mod mac;
pub mod order;
pub mod pcap;
mod pcapng;
pub mod recognise;
mod selection;
pub mod signature;
mod template;
pub mod text;
mod traffic;
pub mod units;
pub mod words;

pub use account::{Observed, SequenceWindow, WINDOW};
pub use answer::answer;
pub use connections::{
    CLIENT_PORTS, CLIENTS, Close, ConnectionSpec, Exchange, HAS_ANSWER, IS_OPEN, LARGEST_OBJECT,
    MOST_CONNECTIONS, NUMBERED, SERVERS, SHORTEST_OBJECT, STAGES, ServedBy, WEB_REQUEST, pairs,
};
pub use endpoints::{DEFAULT_PORT, EndpointRange, MAX_PARSED_FLOWS};
pub use extensions::Extensions;
pub use flow::{Flow, FlowSpace, MAX_FLOWS, RFC2544_PORTS};
pub use frame::{FCS_LEN, Family, FrameSpec, MAX_LEN_FCS, Transport};
pub use headers::{EtherType, VlanTag};
pub use lengths::{FrameMix, parse_sizes};
pub use mac::{MacAddr, SourceMacs};
pub use order::{AliasEntry, AliasTable, FlowOrder, FlowPicker, SplitMix64};
pub use pcap::{Reader, Record, Writer};
pub use recognise::{ForeignKind, Recognised, recognise};
pub use selection::Selection;
pub use signature::{MAGIC, SIGNATURE_LEN, Signature};
pub use template::{BaseSums, FrameTemplate};
pub use traffic::{
    Filter, Findings, LARGEST_BATCH, Load, MILLION, RateStep, STREAMS, Second, Traffic,
};

/// The one error of this crate, which callers print: the fault of a text, a frame, a load or a capture, and its remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct WireError(String);

/// A value, or the fault of its text or bytes.
pub type Result<T> = std::result::Result<T, WireError>;

impl WireError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        WireError(message.into())
    }
}
