//! One line of a pkt-gen log.

/// pkt-gen's report of one interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sample {
    /// End of the interval in microseconds. As parsed, modulo 1000 s; from a [`super::Reader`], since the log's first second.
    pub time_us: u64,
    /// Frames a second, as pkt-gen divided them.
    pub pps: u64,
    /// Frames in the interval.
    pub packets: u64,
    /// Bits a second, of frames without FCS; the old grammar has none.
    pub bps: Option<u64>,
    /// Length of the interval in microseconds.
    pub interval_us: u64,
}

/// pkt-gen's last lines, one by one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SummaryLine {
    /// `Sent ...` or `Received ... packets, ... bytes each, in ... seconds.`
    Total {
        /// Frames.
        packets: u64,
        /// Length of a frame in bytes without FCS; receivers of 2011 to 2014 do not say it.
        length: Option<u64>,
        /// How long it took; negative where pkt-gen crashed.
        seconds: f64,
    },
    /// `Speed: ... pps Bandwidth: ... bps`.
    Speed {
        /// Frames a second; negative where pkt-gen crashed.
        pps: f64,
        /// Bits a second, of frames without FCS; receivers of 2011 to 2014 do not say it.
        bps: Option<f64>,
    },
}

/// A line of a log.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Line<'a> {
    /// An interval.
    Sample(Sample),
    /// An interval whose quantities have unit prefixes, and so few digits: `14.880 Mpps`.
    ScaledSample(Sample),
    /// `CMD: ...` or `CMD on HOST: ...`: the host and the command line.
    Command(Option<&'a [u8]>, &'a [u8]),
    /// A part of the summary.
    Summary(SummaryLine),
    /// pkt-gen crashed, or could not begin: in words, for a reader.
    Crash(&'static str),
    /// pkt-gen's own messages: opening, waiting, flushing.
    Message,
    /// A shell's: its trace (`set -x`), `Terminated`, a complaint about a terminal it has not got; or nothing at all.
    Shell,
    /// Nothing of pkt-gen's that is known.
    Unknown,
}

const MAIN_THREAD: &[u8] = b" main_thread [";

/// Parses a line without its newline.
#[inline]
pub fn parse(line: &[u8]) -> Line<'_> {
    match sample(line) {
        Some(sample) => Line::Sample(sample),
        None => other(line),
    }
}

/// A time stamp `SSS.uuuuuu` in microseconds, and the rest.
#[inline(always)]
fn stamp(line: &[u8]) -> Option<(u64, &[u8])> {
    // Ten bytes of known shape: their digits are summed without a loop.
    let (stamp, rest) = line.split_at_checked(10)?;
    let stamp: &[u8; 10] = stamp.try_into().ok()?;
    let digit = |at: usize| u64::from(stamp[at].wrapping_sub(b'0'));
    let [a, b, c] = [digit(0), digit(1), digit(2)];
    let [d, e, f, g, h, i] = [digit(4), digit(5), digit(6), digit(7), digit(8), digit(9)];
    if stamp[3] != b'.' || [a, b, c, d, e, f, g, h, i].iter().any(|digit| *digit > 9) {
        return None;
    }
    let seconds = a * 100 + b * 10 + c;
    let micros = d * 100_000 + e * 10_000 + f * 1000 + g * 100 + h * 10 + i;
    Some((seconds * 1_000_000 + micros, rest))
}

/// A sample in the grammars without unit prefixes: the hot path.
#[inline]
fn sample(line: &[u8]) -> Option<Sample> {
    let (time_us, rest) = stamp(line)?;
    let (_, rest) = integer(after(rest, MAIN_THREAD)?)?;
    let (pps, rest) = integer(after(rest, b"] ")?)?;
    let (packets, rest) = integer(after(rest, b" pps (")?)?;
    let rest = after(rest, b" pkts ")?;
    let (bps, rest) = match integer(rest) {
        Some((bps, rest)) => (Some(bps), after(rest, b" bps in ")?),
        None => (None, after(rest, b"in ")?),
    };
    let (interval_us, rest) = integer(rest)?;
    after(rest, b" usec)")?;
    Some(Sample {
        time_us,
        pps,
        packets,
        bps,
        interval_us,
    })
}

/// A sample whose quantities have unit prefixes (`14.880 Mpps`), as pkt-gen writes them without -N.
fn scaled_sample(time_us: u64, rest: &[u8]) -> Option<Sample> {
    let (_, rest) = integer(after(rest, MAIN_THREAD)?)?;
    let (pps, rest) = quantity(after(rest, b"] ")?, b"pps ")?;
    // `[avg/std 1.000 M/2.000 K pps]` of its option -A.
    let rest = match after(rest, b"[avg/std ") {
        Some(rest) => split(rest, b"]")?.1,
        None => rest,
    };
    let (packets, rest) = quantity(after(rest, b"(")?, b"pkts ")?;
    let (bps, rest) = match quantity(rest, b"bps ") {
        Some((bps, rest)) => (Some(bps as u64), rest),
        None => (None, rest),
    };
    let (interval_us, rest) = integer(after(rest, b"in ")?)?;
    after(rest, b" usec)")?;
    let sane = [pps, packets].iter().all(|q| (0.0..1e18).contains(q));
    sane.then_some(Sample {
        time_us,
        pps: pps as u64,
        packets: packets as u64,
        bps,
        interval_us,
    })
}

#[cold]
fn other(line: &[u8]) -> Line<'_> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.iter().all(u8::is_ascii_whitespace) {
        return Line::Shell;
    }
    if let Some((time_us, rest)) = stamp(line) {
        return match scaled_sample(time_us, rest) {
            Some(sample) => Line::ScaledSample(sample),
            None => message(rest),
        };
    }
    command(line)
        .or_else(|| summary(line))
        .unwrap_or_else(|| shell(line))
}

/// pkt-gen's messages, behind their time stamp: ` function [line] text`.
fn message(rest: &[u8]) -> Line<'_> {
    const NOT_OPENED: &str = "pkt-gen could not open the interface";
    const CRASHES: [(&[u8], &str); 7] = [
        (b"poll err", "pkt-gen crashed: poll err"),
        (
            b"ouch, thread",
            "pkt-gen crashed: ouch, thread exited with error",
        ),
        (b"Unable to open", NOT_OPENED),
        (b"NIOCREGIF failed", NOT_OPENED),
        (b"could not open", NOT_OPENED),
        (b"cannot open", NOT_OPENED),
        (b"aborting", NOT_OPENED),
    ];
    let text = memchr::memchr(b']', rest).map_or(rest, |end| rest[end + 1..].trim_ascii_start());
    let found = CRASHES
        .iter()
        .find(|(beginning, _)| text.starts_with(beginning));
    // A sender that found a ring full for too long goes on.
    let found = found.filter(|_| !text.starts_with(b"poll error"));
    found.map_or(Line::Message, |(_, words)| Line::Crash(words))
}

/// `CMD: pkt-gen ...`, `CMD on HOST: sudo pkt-gen ...`, wherever in the line: a terminal's title may stand before it.
fn command(line: &[u8]) -> Option<Line<'_>> {
    let at = memchr::memchr_iter(b'C', line).find(|at| line[*at..].starts_with(b"CMD"))?;
    let rest = &line[at + 3..];
    if let Some(command) = after(rest, b":") {
        return Some(Line::Command(None, command.trim_ascii()));
    }
    let (host, command) = split(after(rest, b" on ")?, b": ").or_else(|| {
        // A command that was left empty has lost its blank.
        Some((after(rest, b" on ")?.strip_suffix(b":")?, &b""[..]))
    })?;
    Some(Line::Command(Some(host), command.trim_ascii()))
}

fn summary(line: &[u8]) -> Option<Line<'_>> {
    if let Some(rest) = after(line, b"Speed: ") {
        return speed(rest).map(Line::Summary);
    }
    if let Some(rest) = after(line, b"Sent ").or_else(|| after(line, b"Received ")) {
        return total(rest).map(Line::Summary);
    }
    let known: [&[u8]; 3] = [b"Sending on ", b"Receiving from ", b"Working on "];
    // `198.18.10.1 -> 198.19.10.1 (00:00:... -> 00:0d:...)`.
    let flows = split(line, b" -> ").is_some() && line.ends_with(b")");
    (flows || known.iter().any(|k| line.starts_with(k))).then_some(Line::Message)
}

/// `14.88 Mpps Bandwidth: 7.14 Gbps (raw 9.99 Gbps)`, `14.88Mpps.`
fn speed(rest: &[u8]) -> Option<SummaryLine> {
    let (pps, rest) = quantity(rest, b"pps")?;
    let bps = match after(rest, b" Bandwidth: ") {
        Some(rest) => Some(quantity(rest, b"bps")?.0),
        None => None,
    };
    Some(SummaryLine::Speed { pps, bps })
}

/// `80000000 packets, 60 bytes each, in 94.72 seconds.`, `80000000 packets, in 94.72 seconds.`,
/// `1000 packets 60000 bytes 8 events 60 bytes each in 1.00 seconds.`, `nothing.`
fn total(rest: &[u8]) -> Option<SummaryLine> {
    if rest.starts_with(b"nothing.") {
        return Some(SummaryLine::Total {
            packets: 0,
            length: None,
            seconds: 0.0,
        });
    }
    let (packets, rest) = integer(rest)?;
    if let Some(rest) = after(rest, b" packets, in ") {
        let (seconds, _) = decimal(rest)?;
        return Some(SummaryLine::Total {
            packets,
            length: None,
            seconds,
        });
    }
    let rest = match after(rest, b" packets, ") {
        Some(rest) => rest,
        None => {
            let (_, rest) = integer(after(rest, b" packets ")?)?;
            let (_, rest) = integer(after(rest, b" bytes ")?)?;
            after(rest, b" events ")?
        }
    };
    let (length, rest) = integer(rest)?;
    let rest = after(rest, b" bytes each")?;
    let (seconds, _) = decimal(after(rest, b", in ").or_else(|| after(rest, b" in "))?)?;
    Some(SummaryLine::Total {
        packets,
        length: Some(length),
        seconds,
    })
}

fn shell(line: &[u8]) -> Line<'_> {
    let known: [&[u8]; 3] = [
        b"+",
        b"Warning: no access to tty",
        b"Thus no job control in this shell",
    ];
    match line == b"Terminated" || known.iter().any(|k| line.starts_with(k)) {
        true => Line::Shell,
        false => Line::Unknown,
    }
}

/// A run of digits and the rest; `None` without a digit, or beyond 64 bits.
#[inline(always)]
pub fn integer(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value: u64 = 0;
    let mut at = 0;
    while let Some(digit) = bytes
        .get(at)
        .map(|b| b.wrapping_sub(b'0'))
        .filter(|d| *d <= 9)
    {
        // 19 digits always fit: only longer numbers need a check.
        value = if at < 19 {
            value * 10 + u64::from(digit)
        } else {
            value.checked_mul(10)?.checked_add(u64::from(digit))?
        };
        at += 1;
    }
    (at > 0).then(|| (value, &bytes[at..]))
}

/// The bytes behind `prefix`.
#[inline(always)]
pub fn after<'a>(bytes: &'a [u8], prefix: &[u8]) -> Option<&'a [u8]> {
    bytes.strip_prefix(prefix)
}

/// A decimal number with an optional sign and fraction (`-1505074016.06`), and the rest.
pub fn decimal(bytes: &[u8]) -> Option<(f64, &[u8])> {
    let end = bytes
        .iter()
        .position(|b| !matches!(b, b'0'..=b'9' | b'.' | b'-' | b'+'))
        .unwrap_or(bytes.len());
    let number = std::str::from_utf8(&bytes[..end])
        .ok()?
        .parse::<f64>()
        .ok()?;
    number.is_finite().then_some((number, &bytes[end..]))
}

/// A decimal number with a blank (pkt-gen's receivers of 2011 have none), a prefix of its unit and the unit: `14.88 Mpps`,
/// `488095 pps`.
pub fn quantity<'a>(bytes: &'a [u8], unit: &[u8]) -> Option<(f64, &'a [u8])> {
    let (number, rest) = decimal(bytes)?;
    let rest = after(rest, b" ").unwrap_or(rest);
    let (scale, rest) = match rest.first()? {
        b'K' | b'k' => (1e3, &rest[1..]),
        b'M' => (1e6, &rest[1..]),
        b'G' => (1e9, &rest[1..]),
        _ => (1.0, rest),
    };
    Some((number * scale, after(rest, unit)?))
}

/// The bytes up to and behind the first `needle`.
pub fn split<'a>(bytes: &'a [u8], needle: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let at = memchr::memmem::find(bytes, needle)?;
    Some((&bytes[..at], &bytes[at + needle.len()..]))
}
