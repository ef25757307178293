//! Rates of Ethernet: frames, bits by layer, headers, mixes of lengths, and the time that a frame leaves for its handling.

use crate::Unit::{Bits, ByteRate, Bytes, Count, Frames, Hertz, Share, Time};
use crate::{
    Amount, CalcError, Calculation, PAPER_2015, PAPER_2018, Result, amounts, frame_rate,
    link_speed, within,
};
use linerate_wire::FrameMix;
use linerate_wire::units::{
    LAYER_1_OVERHEAD, LINK_SPEEDS, bits_layer_1, bits_layer_2, line_rate as frames_at,
};

/// The speeds of Ethernet in bit/s (IEEE 802.3).
pub const SPEEDS: [f64; 13] = [
    1e7, 1e8, 1e9, 2.5e9, 5e9, 1e10, 2.5e10, 4e10, 5e10, 1e11, 2e11, 4e11, 8e11,
];

/// Bytes of header and FCS around an IP packet.
const HEADER: f64 = 14.0;
const FCS: f64 = 4.0;
/// The lengths of simple IMIX at the IP layer. The shortest packet is padded in its frame.
const SIMPLE_IP: f64 = (7.0 * 40.0 + 4.0 * 576.0 + 1500.0) / 12.0;

/// A link that is full, or a number of frames.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Load {
    /// A link of so many bit/s.
    Link(f64),
    /// So many frames a second.
    Frames(f64),
}

impl Load {
    fn given(self, page: Calculation) -> Result {
        Ok(match self {
            Load::Link(bits) => page.given("link speed", link_speed(bits)?, Bits),
            Load::Frames(fps) => page.given("rate", frame_rate(fps)?, Frames),
        })
    }

    /// Frames a second of this mean length.
    fn frames(self, len: f64) -> f64 {
        match self {
            Load::Link(bits) => frames_at(bits, len),
            Load::Frames(fps) => fps,
        }
    }
}

/// The mean length of the IP packets in a mix, in bytes: without Ethernet header, FCS and, for simple IMIX, padding.
pub fn ip_length(mix: &FrameMix) -> f64 {
    if is_simple(mix) {
        SIMPLE_IP
    } else {
        mix.average_len_fcs() - HEADER - FCS
    }
}

fn is_simple(mix: &FrameMix) -> bool {
    mix.pattern == FrameMix::imix().pattern
}

/// The mean length in bytes with FCS.
fn length(mix: &FrameMix) -> Result<f64> {
    within(
        "a frame length",
        mix.average_len_fcs(),
        64.0,
        16_000.0,
        Bytes,
    )
}

fn first(mixes: &[FrameMix]) -> Result<&FrameMix> {
    mixes
        .first()
        .ok_or_else(|| CalcError::new("no frame length: give one such as 64, or imix"))
}

fn named(mix: &FrameMix) -> String {
    if mix.pattern.len() == 1 {
        format!("{}-byte frames", mix.name)
    } else {
        format!("frames of {}", mix.name)
    }
}

/// A row for each link: its name, and the amounts of its speed.
fn links(row: impl Fn(f64) -> Vec<Amount>) -> Vec<Vec<Amount>> {
    LINK_SPEEDS
        .iter()
        .map(|(name, speed)| {
            std::iter::once(Amount::text(*name))
                .chain(row(*speed))
                .collect()
        })
        .collect()
}

/// Line rate of a link for each of these lengths, or the link that a number of frames fills.
///
/// # Errors
/// No length, no speed, no rate.
pub fn line_rate(load: Load, mixes: &[FrameMix]) -> Result {
    let (page, mix) = (
        load.given(Calculation::new("Line rate of Ethernet"))?,
        first(mixes)?,
    );
    let row = |mix: &FrameMix| {
        let len = length(mix)?;
        let (fps, layer_3) = (load.frames(len), 8.0 * load.frames(len) * ip_length(mix));
        let bits =
            [bits_layer_1(fps, len), bits_layer_2(fps, len), layer_3].map(|bits| (bits, Bits));
        let rates = [(fps, Frames), (2.0 * fps, Frames), (1e9 / fps, Time)];
        Ok(amounts(Some(&mix.name), &[rates, bits].concat()))
    };
    let fps = load.frames(length(mix)?);
    let (rate, frames, time) = (Frames.show(fps), named(mix), Time.show(1e9 / fps));
    let answer = match load {
        Load::Link(bits) => {
            let speed = Bits.show(bits);
            format!(
                "{speed} Ethernet carries at most {rate} of {frames} in each direction, one every {time}."
            )
        }
        Load::Frames(_) => {
            let bits = bits_layer_1(fps, length(mix)?);
            let link = SPEEDS.into_iter().find(|link| *link >= bits * 0.999);
            let link = link.map_or("more than any Ethernet link".into(), |link| {
                format!("a link of {}", Bits.show(link))
            });
            format!(
                "{rate} of {frames} take {} on the wire: {link}.",
                Bits.show(bits)
            )
        }
    };
    let columns = [
        "frame length",
        "each direction",
        "both directions",
        "time of a frame",
        "layer 1",
        "layer 2",
        "layer 3",
    ];
    Ok(page
        .answer(answer)
        .rows(&columns, mixes.iter().map(row).collect::<Result<_>>()?)
        .formula(&[
            "frames/s = bit/s / (8 x (frame length with FCS + 20 B of preamble, start delimiter and gap))",
            "layer 2 = frames/s x 8 x frame length; layer 3 = without the 18 B of Ethernet header and FCS",
        ])
        .source("IEEE 802.3; RFC 2544 section 20 and appendix B")
        .source(format!("{PAPER_2018}, \"Ethernet line rate references\"")))
}

/// A mix of lengths: frames that fill a link, or the bits of so many frames and the links that a router of this rate carries full
/// in both directions.
///
/// # Errors
/// An empty mix, no speed, no rate.
pub fn imix(load: Load, mix: &FrameMix) -> Result {
    let mut page =
        load.given(Calculation::new("Mix of frame lengths").given_text("mix", &mix.name))?;
    let (len, ip, simple) = (length(mix)?, ip_length(mix), is_simple(mix));
    let both = |link: f64| 2.0 * frames_at(link, len);
    let fps = load.frames(len);
    page = match load {
        Load::Link(bits) => {
            let (speed, name, rate) = (Bits.show(bits), &mix.name, Frames.show(2.0 * fps));
            let page = page
                .answer(format!(
                    "A router carries {speed} of {name} in both directions if it forwards {rate}."
                ))
                .result("frames in each direction", fps, Frames)
                .result("frames in both directions", 2.0 * fps, Frames);
            if simple {
                page.result("objective of the 2018 paper", objective(bits), Frames)
            } else {
                page
            }
        }
        Load::Frames(fps) => {
            let (rate, name) = (Frames.show(fps), &mix.name);
            let largest = SPEEDS
                .into_iter()
                .rev()
                .find(|link| fps >= both(*link))
                .map(|link| Bits.show(link));
            page.answer(match largest {
                Some(link) => format!("A router that forwards {rate} is a {link} {name} router: it carries this link full in both directions."),
                None => format!("A router that forwards {rate} carries no Ethernet link full of {name}."),
            })
            .result("IP layer", 8.0 * fps * ip, Bits)
            .result("Ethernet without FCS", 8.0 * fps * (ip + HEADER), Bits)
            .result("layer 2", bits_layer_2(fps, len), Bits)
            .result("layer 1", bits_layer_1(fps, len), Bits)
        }
    };
    if simple {
        page = page.note(
            "The paper asks for 700 kpps and 7 Mpps: it counts packets with 14 B of Ethernet header, without FCS, preamble, gap and padding. With \
             these, a link carries 7 % fewer frames.",
        );
    }
    let row = |link: f64| {
        let mut row = vec![(both(link) / 2.0, Frames), (both(link), Frames)];
        row.extend(simple.then(|| (objective(link), Frames)));
        row.extend(matches!(load, Load::Frames(_)).then(|| (fps / both(link), Share)));
        amounts(None, &row)
    };
    let mut columns = vec!["link", "each direction", "both directions"];
    columns.extend(simple.then_some("paper's objective"));
    columns.extend(matches!(load, Load::Frames(_)).then_some("this rate"));
    Ok(page
        .result("mean length of packets", ip, Bytes)
        .result("mean length with FCS", len, Bytes)
        .table(&columns, links(row))
        .formula(&[
            "bit/s at the IP layer = frames/s x 8 x mean length of the packets",
            "bit/s at layer 2 = frames/s x 8 x mean length with FCS; at layer 1 = with 20 B more",
            "frames/s that fill a link = bit/s / (8 x (mean length with FCS + 20 B)), twice for both directions",
        ])
        .source(format!("{PAPER_2018}, \"Throughput to bandwidth\""))
        .source("RFC 6985 (genomes); RFC 2544 section 20"))
}

/// Frames/s in both directions by the 2018 paper's arithmetic for simple IMIX.
pub fn objective(link: f64) -> f64 {
    2.0 * link / (8.0 * (SIMPLE_IP + HEADER))
}

/// Processors that handle frames.
#[derive(Debug, Clone, Copy)]
pub struct Processors {
    /// How many cores.
    pub cores: u32,
    /// Clock of the cores in Hz.
    pub hertz: f64,
    /// Nanoseconds that a miss of all caches costs.
    pub miss_ns: f64,
}

impl Processors {
    fn given(self, page: Calculation) -> Result {
        let cores = within("a number of cores", self.cores.into(), 1.0, 8192.0, Count)?;
        let hertz = within("a clock", self.hertz, 1e6, 1e11, Hertz)?;
        let miss = within("the time of a cache miss", self.miss_ns, 0.1, 1e6, Time)?;
        let page = page
            .given("cores", cores, Count)
            .given("clock", hertz, Hertz);
        Ok(page.given("cache miss", miss, Time))
    }
}

/// Time, cycles and cache misses that a rate leaves for each frame.
///
/// # Errors
/// Impossible numbers.
pub fn budget(load: Load, mix: &FrameMix, processors: Processors) -> Result {
    let (
        len,
        Processors {
            cores,
            hertz,
            miss_ns,
        },
    ) = (length(mix)?, processors);
    let page = load.given(Calculation::new("Budget of a frame"))?;
    let page = match load {
        Load::Link(_) => page.given_text("frame length with FCS", &mix.name),
        Load::Frames(_) => page,
    };
    let of = |fps: f64| {
        let ns = f64::from(cores) * 1e9 / fps;
        [
            (fps, Frames),
            (ns, Time),
            (ns * hertz / 1e9, Count),
            ((ns / miss_ns).floor(), Count),
        ]
    };
    let [rate, time, (cycles, _), (misses, _)] = of(load.frames(len));
    let [rate_text, time_text] = [rate, time].map(|(value, unit)| unit.show(value));
    let who = if cores == 1 {
        "a core".into()
    } else {
        format!("each of {cores} cores")
    };
    let (round, few) = (Count.show(cycles.round()), Count.show(misses));
    Ok(processors
        .given(page)?
        .answer(format!(
            "At {rate_text}, {who} has {time_text} for each frame: {round} cycles, or {few} cache misses."
        ))
        .result("rate", rate.0, Frames)
        .result("time", time.0, Time)
        .result("cycles", cycles, Count)
        .result("cache misses", misses, Count)
        .table(
            &["full link", "frames", "time", "cycles", "cache misses"],
            links(|link| amounts(None, &of(frames_at(link, len)))),
        )
        .formula(&[
            "time = cores / frames/s; cycles = time x clock; cache misses = floor(time / time of a miss)",
        ])
        .source(format!("{PAPER_2015}, section 2: 67 ns, 200 cycles at 3 GHz, 32 ns for a miss"))
        .note(
            "A router's rate counts frames of both directions: a full-duplex link takes twice its line rate.",
        ))
}

/// The rate that processors reach where each frame takes so many cycles: the reverse of [`budget`].
///
/// # Errors
/// Impossible numbers.
pub fn capacity(cycles: f64, mix: &FrameMix, processors: Processors) -> Result {
    let (len, cycles) = (
        length(mix)?,
        within("the cycles of a frame", cycles, 1.0, 1e12, Count)?,
    );
    let page = processors.given(Calculation::new("Rate of processors").given(
        "cycles of a frame",
        cycles,
        Count,
    ))?;
    let fps = f64::from(processors.cores) * processors.hertz / cycles;
    let row = |link| {
        amounts(
            None,
            &[
                (frames_at(link, len), Frames),
                (fps / frames_at(link, len), Share),
            ],
        )
    };
    Ok(page
        .answer(format!("{} cycles for each frame are at most {}.", Count.show(cycles), Frames.show(fps)))
        .result("rate", fps, Frames)
        .result("time on a core", 1e9 * cycles / processors.hertz, Time)
        .table(&["link", "line rate", "share of it"], links(row))
        .formula(&["frames/s = cores x clock / cycles"])
        .source(format!("{PAPER_2015}, section 2"))
        .note("If the frames spread evenly over the cores, and a frame costs no more because there are several (locks, shared caches)."))
}

/// Headers in a frame, beside those of Ethernet.
#[derive(Debug, Clone, Copy)]
pub struct Headers {
    /// IPv6 instead of IPv4.
    pub ipv6: bool,
    /// TCP instead of UDP.
    pub tcp: bool,
    /// VLAN tags of 4 B.
    pub vlans: u8,
    /// Bytes of options or tunnels: 12 for TCP's timestamps.
    pub options: u16,
}

impl Headers {
    /// Bytes of all headers and the FCS.
    pub fn bytes(self) -> f64 {
        let ip = if self.ipv6 { 40.0 } else { 20.0 };
        let transport = if self.tcp { 20.0 } else { 8.0 };
        HEADER + FCS + 4.0 * f64::from(self.vlans) + ip + transport + f64::from(self.options)
    }
}

/// The part that headers take of frames of each length, and the data that a full link carries in them.
///
/// # Errors
/// No length, a length that the headers do not fit into, no speed.
pub fn overhead(link: f64, mixes: &[FrameMix], headers: Headers) -> Result {
    let (mix, link, bytes) = (first(mixes)?, link_speed(link)?, headers.bytes());
    let row = |mix: &FrameMix| {
        let (len, shortest) = (length(mix)?, f64::from(mix.min_len_fcs()));
        if shortest < bytes {
            let least = bytes.max(64.0);
            let text = format!(
                "the headers of {bytes} B do not fit into frames of {shortest} B: give a length from {least} B, or fewer headers"
            );
            return Err(CalcError::new(text));
        }
        let (fps, payload) = (frames_at(link, len), len - bytes);
        let shares =
            [payload / len, payload / (len + LAYER_1_OVERHEAD)].map(|share| (share, Share));
        let bits = [8.0 * fps * payload, 8.0 * fps * bytes].map(|bits| (bits, Bits));
        Ok(amounts(
            Some(&mix.name),
            &[[(fps, Frames), (payload, Bytes)], shares, bits].concat(),
        ))
    };
    let rows = mixes.iter().map(row).collect::<Result<Vec<_>>>()?;
    let (name, [_, _, payload, share, _, carried, _]) = (
        named(mix),
        std::array::from_fn(|at| rows[0][at].to_string()),
    );
    let (ip, transport) = (
        if headers.ipv6 { "IPv6" } else { "IPv4" },
        if headers.tcp { "TCP" } else { "UDP" },
    );
    let columns = [
        "frame length",
        "frames",
        "payload",
        "payload of the frame",
        "payload of the line",
        "bits of payload",
        "bits of headers and FCS",
    ];
    Ok(Calculation::new("Overhead of headers")
        .given("link speed", link, Bits)
        .given_text("headers", format!("Ethernet with FCS, {} VLAN tags, {ip}, {transport}, {} B of options", headers.vlans, headers.options))
        .answer(format!("Of {name}, {bytes} B are headers and FCS and {payload} data: {share} of the frame, {carried} on the full link."))
        .result("headers and FCS", bytes, Bytes)
        .rows(&columns, rows)
        .formula(&[
            "headers = 14 B Ethernet + 4 B FCS + 4 B x VLAN tags + 20 B IPv4 or 40 B IPv6 + 8 B UDP or 20 B TCP + options",
            "payload of the line = payload / (frame length with FCS + 20 B)",
        ])
        .source("IEEE 802.3; RFC 791, RFC 8200, RFC 768, RFC 9293; RFC 7323 (12 B of timestamps)")
        .source(format!("{PAPER_2015}, section 4")))
}

/// A rate in one of its units.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rate {
    /// Frames a second.
    Frames(f64),
    /// Bits a second with preamble and gap.
    Layer1(f64),
    /// Bits a second of frames with FCS.
    Layer2(f64),
    /// Bits a second of IP packets.
    Layer3(f64),
}

/// A rate in all units.
///
/// # Errors
/// No rate, no length.
pub fn convert(rate: Rate, mix: &FrameMix) -> Result {
    let (len, ip) = (length(mix)?, ip_length(mix));
    let bits = |bits: f64| within("a rate", bits, 1e-3, 1e18, Bits);
    let page = Calculation::new("Rates");
    let (page, fps) = match rate {
        Rate::Frames(fps) => (page.given("rate", frame_rate(fps)?, Frames), fps),
        Rate::Layer1(b) => (
            page.given("rate at layer 1", bits(b)?, Bits),
            b / bits_layer_1(1.0, len),
        ),
        Rate::Layer2(b) => (
            page.given("rate at layer 2", bits(b)?, Bits),
            b / bits_layer_2(1.0, len),
        ),
        Rate::Layer3(b) => (
            page.given("rate at layer 3", bits(b)?, Bits),
            b / (8.0 * ip),
        ),
    };
    let [layer_1, layer_2, layer_3] = [
        bits_layer_1(fps, len),
        bits_layer_2(fps, len),
        8.0 * fps * ip,
    ];
    let [one, two, three] = [layer_1, layer_2, layer_3].map(|bits| Bits.show(bits));
    Ok(page
        .given_text("frame length with FCS", &mix.name)
        .answer(format!("{} of {} are {one} at layer 1, {two} at layer 2 and {three} at layer 3.", Frames.show(fps), named(mix)))
        .result("frames", fps, Frames)
        .result("time of a frame", 1e9 / fps, Time)
        .result("layer 1", layer_1, Bits)
        .result("layer 2", layer_2, Bits)
        .result("layer 3", layer_3, Bits)
        .result("bytes at layer 2", layer_2 / 8.0, ByteRate)
        .result("bytes at layer 3", layer_3 / 8.0, ByteRate)
        .formula(&[
            "layer 1 = frames/s x 8 x (frame length with FCS + 20 B)",
            "layer 2 = frames/s x 8 x frame length with FCS",
            "layer 3 = frames/s x 8 x (frame length with FCS - 18 B)",
        ])
        .source("IEEE 802.3; RFC 2544 section 20")
        .note("Counters differ: those of cards and switches count layer 2 with or without FCS, those of ifconfig and ip usually without. M is a million, not 2^20."))
}
