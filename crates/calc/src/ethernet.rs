//! Rates of Ethernet: frames, bits by layer, headers, mixes of lengths, and the time that a frame leaves for its handling.

use crate::{
    Amount, CalcError, Calculation, Grid, PAPER_2015, PAPER_2018, Unit, frame_rate, link_speed, within,
};
use linerate_wire::FrameMix;
use linerate_wire::units::{
    LAYER_1_OVERHEAD, LINK_SPEEDS, bits_layer_1, bits_layer_2, line_rate as frames_at,
};

/// The speeds of Ethernet in bit/s (IEEE 802.3).
pub const SPEEDS: [f64; 13] = [1e7, 1e8, 1e9, 2.5e9, 5e9, 1e10, 2.5e10, 4e10, 5e10, 1e11, 2e11, 4e11, 8e11];

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

/// The mean length of the IP packets in a mix, in bytes: without Ethernet header, FCS and, for simple IMIX, padding.
pub fn ip_length(mix: &FrameMix) -> f64 {
    if is_simple(mix) { SIMPLE_IP } else { mix.average_len_fcs() - HEADER - FCS }
}

fn is_simple(mix: &FrameMix) -> bool {
    mix.pattern == FrameMix::imix().pattern
}

/// The mean length in bytes with FCS.
fn length(mix: &FrameMix) -> Result<f64, CalcError> {
    within("a frame length", mix.average_len_fcs(), 64.0, 16_000.0, Unit::Bytes)
}

fn first(mixes: &[FrameMix]) -> Result<&FrameMix, CalcError> {
    mixes.first().ok_or_else(|| CalcError::new("no frame length: give one such as 64, or imix"))
}

fn named(mix: &FrameMix) -> String {
    if mix.pattern.len() == 1 {
        format!("{}-byte frames", mix.name)
    } else {
        format!("frames of {}", mix.name)
    }
}

/// Line rate of a link for each of these lengths, or the link that a number of frames fills.
///
/// # Errors
/// No length, no speed, no rate.
pub fn line_rate(load: Load, mixes: &[FrameMix]) -> Result<Calculation, CalcError> {
    let mix = first(mixes)?;
    let page = Calculation::new("Line rate of Ethernet")
        .formula(&[
            "frames/s = bit/s / (8 x (frame length with FCS + 20 B of preamble, start delimiter and gap))",
            "layer 2 = frames/s x 8 x frame length; layer 3 = without the 18 B of Ethernet header and FCS",
        ])
        .source("IEEE 802.3; RFC 2544 section 20 and appendix B")
        .source(format!("{PAPER_2018}, \"Ethernet line rate references\""));
    let row = |mix: &FrameMix| -> Result<_, CalcError> {
        let len = length(mix)?;
        let (speed, fps) = match load {
            Load::Link(bits) => (bits, frames_at(bits, len)),
            Load::Frames(fps) => (bits_layer_1(fps, len), fps),
        };
        let bits = [speed, bits_layer_2(fps, len), 8.0 * fps * ip_length(mix)];
        let rates = [fps, 2.0 * fps].map(|fps| Amount::number(fps, Unit::Frames));
        let time = Amount::number(1e9 / fps, Unit::Time);
        let cells = std::iter::once(Amount::text(&mix.name)).chain(rates).chain([time]);
        Ok((
            fps,
            bits,
            cells.chain(bits.map(|bits| Amount::number(bits, Unit::Bits))).collect::<Vec<Amount>>(),
        ))
    };
    let mut page = match load {
        Load::Link(bits) => page.given("link speed", link_speed(bits)?, Unit::Bits),
        Load::Frames(fps) => page.given("rate", frame_rate(fps)?, Unit::Frames),
    };
    let (fps, [speed, layer_2, layer_3], _) = row(mix)?;
    page = page
        .given_text("frame length with FCS", &mix.name)
        .result("frames in each direction", fps, Unit::Frames)
        .result("frames in both directions", 2.0 * fps, Unit::Frames)
        .result("time of a frame", 1e9 / fps, Unit::Time)
        .result("layer 1", speed, Unit::Bits)
        .result("layer 2", layer_2, Unit::Bits)
        .result("layer 3", layer_3, Unit::Bits)
        .answer(match load {
            Load::Link(_) => format!(
                "{} Ethernet carries at most {} of {} in each direction, one every {}.",
                Unit::Bits.show(speed),
                Unit::Frames.show(fps),
                named(mix),
                Unit::Time.show(1e9 / fps)
            ),
            Load::Frames(_) => {
                let link = SPEEDS.into_iter().find(|link| *link >= speed * 0.999);
                let link = link.map_or("more than any Ethernet link".into(), |bits| {
                    format!("a link of {}", Unit::Bits.show(bits))
                });
                format!(
                    "{} of {} take {} on the wire: {link}.",
                    Unit::Frames.show(fps),
                    named(mix),
                    Unit::Bits.show(speed)
                )
            }
        });
    let rows = mixes.iter().map(|mix| Ok(row(mix)?.2)).collect::<Result<Vec<_>, CalcError>>()?;
    let columns =
        vec!["frame length", "each direction", "both directions", "time", "layer 1", "layer 2", "layer 3"];
    page.table = Some(Grid { columns, rows });
    Ok(page)
}

/// A mix of lengths: frames that fill a link, or the bits of so many frames and the links that a router of this rate carries full
/// in both directions.
///
/// # Errors
/// An empty mix, no speed, no rate.
pub fn imix(load: Load, mix: &FrameMix) -> Result<Calculation, CalcError> {
    let (len, ip) = (length(mix)?, ip_length(mix));
    let simple = is_simple(mix);
    let mut page = Calculation::new("Mix of frame lengths")
        .given_text("mix", &mix.name)
        .formula(&[
            "bit/s at the IP layer = frames/s x 8 x mean length of the packets",
            "bit/s at layer 2 = frames/s x 8 x mean length with FCS; at layer 1 = with 20 B more",
            "frames/s that fill a link = bit/s / (8 x (mean length with FCS + 20 B)), twice for both directions",
        ])
        .source(format!("{PAPER_2018}, \"Throughput to bandwidth\""))
        .source("RFC 6985 (genomes); RFC 2544 section 20");
    let verdict = |fps: f64, link: f64| fps >= 2.0 * frames_at(link, len);
    let asked = match load {
        Load::Link(bits) => {
            let bits = link_speed(bits)?;
            let fps = frames_at(bits, len);
            page = page
                .given("link speed", bits, Unit::Bits)
                .result("frames in each direction", fps, Unit::Frames)
                .result("frames in both directions", 2.0 * fps, Unit::Frames)
                .answer(format!(
                    "A router carries {} of {} in both directions if it forwards {}.",
                    Unit::Bits.show(bits),
                    mix.name,
                    Unit::Frames.show(2.0 * fps)
                ));
            if simple {
                page = page.result("objective of the 2018 paper", objective(bits), Unit::Frames);
            }
            None
        }
        Load::Frames(fps) => {
            let fps = frame_rate(fps)?;
            let largest = SPEEDS.into_iter().rev().find(|link| verdict(fps, *link));
            page = page
                .given("rate", fps, Unit::Frames)
                .result("IP layer", 8.0 * fps * ip, Unit::Bits)
                .result("Ethernet without FCS", 8.0 * fps * (ip + HEADER), Unit::Bits)
                .result("layer 2", bits_layer_2(fps, len), Unit::Bits)
                .result("layer 1", bits_layer_1(fps, len), Unit::Bits)
                .answer(match largest {
                    Some(link) => format!(
                        "A router that forwards {} is a {} {} router: it carries this link full in both directions.",
                        Unit::Frames.show(fps),
                        Unit::Bits.show(link),
                        mix.name
                    ),
                    None => format!("A router that forwards {} carries no Ethernet link full of {}.", Unit::Frames.show(fps), mix.name),
                });
            Some(fps)
        }
    };
    page = page.result("mean length of packets", ip, Unit::Bytes).result(
        "mean length with FCS",
        len,
        Unit::Bytes,
    );
    if simple {
        page = page.note(
            "The paper asks for 700 kpps and 7 Mpps: it counts packets with 14 B of Ethernet header, without FCS, preamble, gap and padding. With \
             these, a link carries 7 % fewer frames.",
        );
    }
    let row = |(name, link): &(&str, f64)| {
        let both = 2.0 * frames_at(*link, len);
        let mut row = vec![
            Amount::text(*name),
            Amount::number(both / 2.0, Unit::Frames),
            Amount::number(both, Unit::Frames),
        ];
        row.extend(simple.then(|| Amount::number(objective(*link), Unit::Frames)));
        if let Some(fps) = asked {
            row.push(Amount::number(fps / both, Unit::Share));
            row.push(Amount::text(if verdict(fps, *link) { "yes" } else { "no" }));
        }
        row
    };
    let mut columns = vec!["link", "each direction", "both directions"];
    columns.extend(simple.then_some("paper's objective"));
    if asked.is_some() {
        columns.extend(["this rate", "carried"]);
    }
    page.table = Some(Grid { columns, rows: LINK_SPEEDS.iter().map(row).collect() });
    Ok(page)
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
    /// Their clock in Hz.
    pub hertz: f64,
    /// Nanoseconds that a miss of all caches costs.
    pub miss_ns: f64,
}

impl Processors {
    fn check(self) -> Result<Processors, CalcError> {
        within("a number of cores", self.cores.into(), 1.0, 8192.0, Unit::Count)?;
        within("a clock", self.hertz, 1e6, 1e11, Unit::Hertz)?;
        within("the time of a cache miss", self.miss_ns, 0.1, 1e6, Unit::Time)?;
        Ok(self)
    }

    fn given(self, page: Calculation) -> Calculation {
        page.given("cores", self.cores.into(), Unit::Count).given("clock", self.hertz, Unit::Hertz).given(
            "cache miss",
            self.miss_ns,
            Unit::Time,
        )
    }
}

/// Time, cycles and cache misses that a rate leaves for each frame.
///
/// # Errors
/// Impossible numbers.
pub fn budget(load: Load, mix: &FrameMix, processors: Processors) -> Result<Calculation, CalcError> {
    let len = length(mix)?;
    let Processors { cores, hertz, miss_ns } = processors.check()?;
    let of = |fps: f64| {
        let ns = f64::from(cores) * 1e9 / fps;
        (ns, ns * hertz / 1e9, (ns / miss_ns).floor())
    };
    let page = Calculation::new("Budget of a frame");
    let (page, fps) = match load {
        Load::Link(bits) => (page.given("link speed", link_speed(bits)?, Unit::Bits), frames_at(bits, len)),
        Load::Frames(fps) => (page.given("rate", frame_rate(fps)?, Unit::Frames), fps),
    };
    let page = match load {
        Load::Link(_) => page.given_text("frame length with FCS", &mix.name),
        Load::Frames(_) => page,
    };
    let (ns, cycles, misses) = of(fps);
    let mut page = processors
        .given(page)
        .answer(format!(
            "At {}, {} has {} for each frame: {} cycles, or {} cache misses.",
            Unit::Frames.show(fps),
            if cores == 1 { "a core".into() } else { format!("each of {cores} cores") },
            Unit::Time.show(ns),
            Unit::Count.show(cycles.round()),
            Unit::Count.show(misses)
        ))
        .result("rate", fps, Unit::Frames)
        .result("time", ns, Unit::Time)
        .result("cycles", cycles, Unit::Count)
        .result("cache misses", misses, Unit::Count)
        .formula(&[
            "time = cores / frames/s; cycles = time x clock; cache misses = floor(time / time of a miss)",
        ])
        .source(format!("{PAPER_2015}, section 2: 67 ns, 200 cycles at 3 GHz, 32 ns for a miss"))
        .note(
            "A router's rate counts frames of both directions: a full-duplex link takes twice its line rate.",
        );
    let row = |(name, link): &(&str, f64)| {
        let fps = frames_at(*link, len);
        let (ns, cycles, misses) = of(fps);
        let counts = [cycles.round(), misses].map(|n| Amount::number(n, Unit::Count));
        let rates = [Amount::text(*name), Amount::number(fps, Unit::Frames), Amount::number(ns, Unit::Time)];
        rates.into_iter().chain(counts).collect()
    };
    let columns = vec!["full link", "frames", "time", "cycles", "cache misses"];
    page.table = Some(Grid { columns, rows: LINK_SPEEDS.iter().map(row).collect() });
    Ok(page)
}

/// The rate that processors reach where each frame takes so many cycles: the reverse of [`budget`].
///
/// # Errors
/// Impossible numbers.
pub fn capacity(cycles: f64, mix: &FrameMix, processors: Processors) -> Result<Calculation, CalcError> {
    let (len, cycles) = (length(mix)?, within("the cycles of a frame", cycles, 1.0, 1e12, Unit::Count)?);
    let Processors { cores, hertz, .. } = processors.check()?;
    let fps = f64::from(cores) * hertz / cycles;
    let page = Calculation::new("Rate of processors").given("cycles of a frame", cycles, Unit::Count);
    let mut page = processors.given(page)
        .answer(format!("{} cycles for each frame are at most {}.", Unit::Count.show(cycles), Unit::Frames.show(fps)))
        .result("rate", fps, Unit::Frames)
        .result("time on a core", 1e9 * cycles / hertz, Unit::Time)
        .formula(&["frames/s = cores x clock / cycles"])
        .source(format!("{PAPER_2015}, section 2"))
        .note("If the frames spread evenly over the cores, and a frame costs no more because there are several (locks, shared caches).");
    let row = |(name, link): &(&str, f64)| {
        let line = frames_at(*link, len);
        vec![Amount::text(*name), Amount::number(line, Unit::Frames), Amount::number(fps / line, Unit::Share)]
    };
    page.table = Some(Grid {
        columns: vec!["link", "line rate", "share of it"],
        rows: LINK_SPEEDS.iter().map(row).collect(),
    });
    Ok(page)
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

/// What headers take of frames of each length, and what a full link carries in them.
///
/// # Errors
/// No length, a length that the headers do not fit into, no speed.
pub fn overhead(link: f64, mixes: &[FrameMix], headers: Headers) -> Result<Calculation, CalcError> {
    let (mix, link, bytes) = (first(mixes)?, link_speed(link)?, headers.bytes());
    let row = |mix: &FrameMix| -> Result<_, CalcError> {
        let len = length(mix)?;
        if f64::from(mix.min_len_fcs()) < bytes {
            let least = bytes.max(64.0);
            return Err(CalcError::new(format!(
                "the headers of {bytes} B do not fit into frames of {} B: give a length from {least} B, or fewer headers",
                mix.min_len_fcs()
            )));
        }
        let fps = frames_at(link, len);
        let payload = len - bytes;
        Ok([
            fps,
            payload,
            payload / len,
            payload / (len + LAYER_1_OVERHEAD),
            8.0 * fps * payload,
            8.0 * fps * bytes,
        ])
    };
    let [fps, payload, of_frame, of_line, payload_bits, header_bits] = row(mix)?;
    let ip = if headers.ipv6 { "IPv6" } else { "IPv4" };
    let mut page = Calculation::new("Overhead of headers")
        .given("link speed", link, Unit::Bits)
        .given_text("headers", format!("Ethernet with FCS, {} VLAN tags, {ip}, {}, {} B of options", headers.vlans, if headers.tcp { "TCP" } else { "UDP" }, headers.options))
        .answer(format!(
            "{} with {bytes} B of headers and FCS carry {} of data: {} of the frame, {} on a full link of {}.",
            capital(&named(mix)),
            Unit::Bytes.show(payload),
            Unit::Share.show(of_frame),
            Unit::Bits.show(payload_bits),
            Unit::Bits.show(link)
        ))
        .result("headers and FCS", bytes, Unit::Bytes)
        .result("payload", payload, Unit::Bytes)
        .result("payload of the frame", of_frame, Unit::Share)
        .result("payload of the line", of_line, Unit::Share)
        .result("frames", fps, Unit::Frames)
        .result("bits of payload", payload_bits, Unit::Bits)
        .result("bits of headers and FCS", header_bits, Unit::Bits)
        .formula(&[
            "headers = 14 B Ethernet + 4 B FCS + 4 B x VLAN tags + 20 B IPv4 or 40 B IPv6 + 8 B UDP or 20 B TCP + options",
            "payload of the line = payload / (frame length with FCS + 20 B)",
        ])
        .source("IEEE 802.3; RFC 791, RFC 8200, RFC 768, RFC 9293; RFC 7323 (12 B of timestamps)")
        .source(format!("{PAPER_2015}, section 4"));
    let rows = mixes.iter().map(|mix| -> Result<_, CalcError> {
        let units = [Unit::Frames, Unit::Bytes, Unit::Share, Unit::Share, Unit::Bits, Unit::Bits];
        let cells = row(mix)?.into_iter().zip(units).map(|(value, unit)| Amount::number(value, unit));
        Ok(std::iter::once(Amount::text(&mix.name)).chain(cells).collect())
    });
    let rows = rows.collect::<Result<Vec<_>, CalcError>>()?;
    let columns =
        vec!["frame length", "frames", "payload", "of the frame", "of the line", "payload", "headers"];
    page.table = Some(Grid { columns, rows });
    Ok(page)
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |c| c.to_uppercase().chain(chars).collect())
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
pub fn convert(rate: Rate, mix: &FrameMix) -> Result<Calculation, CalcError> {
    let (len, ip) = (length(mix)?, ip_length(mix));
    let bits = |bits: f64| within("a rate", bits, 1e-3, 1e18, Unit::Bits);
    let page = Calculation::new("Rates");
    let (page, fps) = match rate {
        Rate::Frames(fps) => (page.given("rate", frame_rate(fps)?, Unit::Frames), fps),
        Rate::Layer1(b) => (page.given("rate at layer 1", bits(b)?, Unit::Bits), b / bits_layer_1(1.0, len)),
        Rate::Layer2(b) => (page.given("rate at layer 2", bits(b)?, Unit::Bits), b / bits_layer_2(1.0, len)),
        Rate::Layer3(b) => (page.given("rate at layer 3", bits(b)?, Unit::Bits), b / (8.0 * ip)),
    };
    let (layer_2, layer_3) = (bits_layer_2(fps, len), 8.0 * fps * ip);
    Ok(page
        .given_text("frame length with FCS", &mix.name)
        .answer(format!(
            "{} of {} are {} at layer 1, {} at layer 2 and {} at layer 3.",
            Unit::Frames.show(fps),
            named(mix),
            Unit::Bits.show(bits_layer_1(fps, len)),
            Unit::Bits.show(layer_2),
            Unit::Bits.show(layer_3)
        ))
        .result("frames", fps, Unit::Frames)
        .result("time of a frame", 1e9 / fps, Unit::Time)
        .result("layer 1", bits_layer_1(fps, len), Unit::Bits)
        .result("layer 2", layer_2, Unit::Bits)
        .result("layer 3", layer_3, Unit::Bits)
        .result("bytes at layer 2", layer_2 / 8.0, Unit::ByteRate)
        .result("bytes at layer 3", layer_3 / 8.0, Unit::ByteRate)
        .formula(&[
            "layer 1 = frames/s x 8 x (frame length with FCS + 20 B)",
            "layer 2 = frames/s x 8 x frame length with FCS",
            "layer 3 = frames/s x 8 x (frame length with FCS - 18 B)",
        ])
        .source("IEEE 802.3; RFC 2544 section 20")
        .note("Counters differ: those of cards and switches count layer 2 with or without FCS, those of ifconfig and ip usually without. M is a million, not 2^20."))
}
