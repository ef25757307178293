//! Texts with an inner form: quantities with mandatory units, addresses, CPU numbers. Each form has its parser, the words of its
//! messages, and its JSON Schema.

mod duts;
#[cfg(test)]
mod tests;

pub(super) use duts::dut;

use super::diagnostic::{Diagnostic, listed, meant};
use super::lab::ssh::Ssh;
use super::lab::types::{HostAddress, is_interface};
use super::{placeholders, text_form};
use crate::units::{Rate, number, parse_link_speed, shortest};
use linerate_wire::units::Si;
use linerate_wire::{FlowOrder, FrameMix, MacAddr, Selection};
use serde_json::{Value as Json, json, value::Serializer};
use std::fmt::Display;
use std::net::IpAddr;
use std::str::FromStr;

/// A form of texts.
#[derive(Debug)]
pub(crate) struct Form {
    /// The expected form for messages, with an example: follows "write".
    pub(crate) wants: &'static str,
    /// The units of a quantity, for a number that has none.
    pub(crate) units: &'static [&'static str],
    /// The JSON Schema's pattern, and an example of it.
    pub(crate) pattern: &'static str,
    pub(crate) example: &'static str,
    /// Reads a text. The default remedy of its diagnostics is to write the expected form.
    pub(crate) read: fn(&str) -> Result<Json, Diagnostic>,
}

impl Form {
    /// Reads a text into its form in records.
    pub(crate) fn read(&self, text: &str) -> Result<Json, Diagnostic> {
        (self.read)(text).map_err(|wrong| match wrong.remedy {
            Some(_) => wrong,
            None => wrong.remedy(format!("write {}", self.wants)),
        })
    }

    /// A value of the command line, where units may be short or left out, as a plan has it.
    pub(crate) fn spelled_out(&self, word: &str) -> String {
        let spelled = match self.units {
            ["B"] if word.bytes().all(|b| b.is_ascii_digit()) => Some(format!("{word} B")),
            ["us", ..] => parse_duration_ns(word).ok().map(duration_text),
            ["Mbit/s", ..] => parse_link_speed(word).ok().map(exact_speed),
            _ => None,
        };
        spelled.unwrap_or_else(|| word.into())
    }
}

pub(crate) static DURATION: Form = Form {
    wants: "a duration such as \"250 ms\", \"10 s\" or \"2 min\"",
    units: &["us", "ms", "s", "min"],
    pattern: "^[0-9._]+ *(ns|us|ms|s|min|h)$",
    example: "250 ms",
    read: |text| whole(text, "a duration", &DURATIONS, "more than thirty years"),
};

pub(crate) static LENGTH: Form = Form {
    wants: "a length such as \"1500 B\"",
    units: &["B"],
    pattern: "^[0-9._]+ *B$",
    example: "1500 B",
    read: |text| length(text).map(Json::from),
};

pub(crate) static SIZE: Form = Form {
    wants: "a frame length with FCS such as \"64 B\", \"imix\", \"genome:aaafg\" or \"mix:64x7+594x4+1518x1\"",
    units: &["B"],
    pattern: "^([0-9._]+ *B|imix|IMIX|genome:.+|mix:.+)$",
    example: "64 B",
    read: |text| size(text).map(|mix| json!(mix)),
};

pub(crate) static RATE: Form = Form {
    wants: "a rate such as \"max\", \"500 kpps\", \"1 Gbit/s:l1\" or \"50 %\"",
    units: &["pps", "bit/s:l1", "bit/s:l2", "%"],
    pattern: "^(max|[0-9._]+ *[kKmMgGtT]?(pps|bit/s:l[12])|[0-9._]+ *%)$",
    example: "500 kpps",
    read: |text| {
        let rate: Rate = text.parse()?;
        Ok(text_form::rate::serialize(&rate, Serializer).unwrap_or_default())
    },
};

pub(crate) static SPEED: Form = Form {
    wants: "a speed such as \"1 Gbit/s\", \"10 Gbit/s\" or \"100G\"",
    units: &["Mbit/s", "Gbit/s"],
    pattern: "^[0-9._]+ *[MG](bit/s)?$",
    example: "10 Gbit/s",
    read: |text| match parse_link_speed(text) {
        Ok(speed) if speed > 1e13 => wrong(format!("'{text}' is more than any link has")),
        Ok(speed)
            if ["bit/s", "M", "G"]
                .iter()
                .any(|end| text.trim().ends_with(end)) =>
        {
            Ok(speed.into())
        }
        _ => wrong(format!("'{text}' is not a link speed with its unit")),
    },
};

pub(crate) static FRAMES: Form = Form {
    wants: "a load such as \"500 kpps\"",
    units: &["pps", "kpps", "Mpps"],
    pattern: "^[0-9._]+ *[kKmMgG]?pps$",
    example: "500 kpps",
    read: |text| match text.parse::<Rate>()? {
        Rate::Frames(fps) => Ok(fps.into()),
        _ => wrong(format!("'{text}' is not a number of frames a second")),
    },
};

pub(crate) static FLOOD: Form = Form {
    wants: "a number of SYNs a second such as \"100 kpps\", or \"none\"",
    units: &["pps", "kpps", "Mpps"],
    pattern: "^(none|0|[0-9._]+ *[kKmM]?pps)$",
    example: "100 kpps",
    read: |text| match text {
        "none" | "0" => Ok(0.into()),
        _ => match text.parse::<Rate>() {
            Ok(Rate::Frames(fps)) if (1.0..=MOST_FLOOD).contains(&fps) => Ok((fps as u32).into()),
            _ => wrong(format!(
                "'{text}' is no flood: write \"none\", or 1 pps to 50 Mpps, such as \"200kpps\""
            )),
        },
    },
};

pub(crate) static ILLEGAL: Form = Form {
    wants: "a share of the attempts such as \"10 %\", or \"none\"",
    units: &["%"],
    pattern: "^(none|[0-9._]+ *%)$",
    example: "10 %",
    read: |text| match text {
        "none" => Ok(0.0.into()),
        _ => match (PART.read)(text)?.as_f64() {
            Some(share) if share <= MOST_ILLEGAL => Ok(share.into()),
            _ => wrong(format!("'{text}' is more than 90 % of the attempts")),
        },
    },
};

/// Share of the attempts that may be illegal: the others are measured.
const MOST_ILLEGAL: f64 = 0.9;

/// SYNs of a flood a second.
const MOST_FLOOD: f64 = 50e6;

/// A part of a whole, or nothing of it.
pub(crate) static PART: Form = Form {
    wants: "a share such as \"10 %\"",
    example: "10 %",
    read: |text| match quantity(
        text,
        "a share",
        &[("%", 1.0, &["percent", "per cent", "pct"])],
    )? {
        p if (0.0..=100.0).contains(&p) => Ok((p / 100.0).into()),
        _ => wrong(format!("'{text}' is not a share from 0 to 100 %")),
    },
    ..SHARE
};

pub(crate) static SHARE: Form = Form {
    wants: "a share such as \"2 %\"",
    units: &["%"],
    pattern: "^[0-9._]+ *%$",
    example: "2 %",
    read: |text| match quantity(
        text,
        "a share",
        &[("%", 1.0, &["percent", "per cent", "pct"])],
    )? {
        p if p <= 0.0 => wrong(format!("'{text}' is nothing")),
        p if p > 10_000.0 => wrong(format!("'{text}' is more than 10000 %")),
        p => Ok((p / 100.0).into()),
    },
};

pub(crate) static MEMORY: Form = Form {
    wants: "an amount of memory such as \"4 GiB\"",
    units: &["MiB", "GiB"],
    pattern: "^[0-9._]+ *[KMG]iB$",
    example: "4 GiB",
    read: |text| {
        let units: [Unit; 3] = [
            ("KiB", 1024.0, &["KB", "K"]),
            ("MiB", 1_048_576.0, &["MB", "M"]),
            ("GiB", 1_073_741_824.0, &["GB", "G"]),
        ];
        whole(
            text,
            "an amount of memory",
            &units,
            "more than any machine has",
        )
    },
};

pub(crate) static CPU_LIST: Form = Form {
    wants: "CPU numbers such as \"1\" or \"0,2-3\"",
    units: &[],
    pattern: "^[0-9, -]+$",
    example: "0,2-3",
    read: |text| parse_cpus(text).map(Json::from),
};

pub(crate) static FLOW_ORDER: Form = Form {
    wants: "\"sequential\", \"random\" (uniform), \"random:SEED\" or \"zipf:EXPONENT\"",
    units: &[],
    pattern: "^(sequential|random(:[0-9]+)?|zipf:[0-9.]+(:[0-9]+)?)$",
    example: "zipf:1.1",
    read: |text| shown::<FlowOrder>(text, "an order of flows"),
};

pub(crate) static SELECTION: Form = Form {
    wants: "\"counted\", \"random\" (uniform, the same in each trial) or \"random:SEED\"",
    units: &[],
    pattern: "^(counted|random(:[0-9]+)?)$",
    example: "random",
    read: |text| shown::<Selection>(text, "a choice of ports or addresses"),
};

pub(crate) static VERSION: Form = Form {
    wants: "a version such as \"5.17\" or \"14.0\"",
    units: &[],
    pattern: "^[0-9]+\\.[0-9]+$",
    example: "5.17",
    read: |text| {
        let number = |part: &str| part.parse::<u32>().ok().filter(|n| *n < 1000);
        let parts = text.trim().split_once('.');
        match parts.and_then(|(major, minor)| Some([number(major)?, number(minor)?])) {
            Some(version) => Ok(json!(version)),
            None => wrong(format!("'{text}' is not a kernel version")),
        }
    },
};

pub(crate) static NETWORK: Form = Form {
    wants: "a network such as \"203.0.113.0/24\"",
    units: &[],
    pattern: "^[0-9a-fA-F:.]+/[0-9]+$",
    example: "203.0.113.0/24",
    read: |text| match text.contains('/') {
        true => shown::<HostAddress>(text, "a network"),
        false => wrong(format!("'{text}' is not a network")),
    },
};

pub(crate) static ADDRESS: Form = Form {
    wants: "an address such as \"198.19.1.2\"",
    units: &[],
    pattern: "^[0-9a-fA-F:.]+$",
    example: "198.19.1.2",
    read: |text| shown::<IpAddr>(text, "an IP address"),
};

/// An address of an interface, with the length of its network where that is known.
pub(crate) static HOST_ADDRESS: Form = Form {
    wants: "an address with its length such as \"198.18.0.1/24\"",
    units: &[],
    pattern: "^[0-9a-fA-F:.]+(/[0-9]+)?$",
    example: "198.18.0.1/24",
    read: |text| shown::<HostAddress>(text, "an IP address with the length of its network"),
};

pub(crate) static MAC: Form = Form {
    wants: "an Ethernet address such as \"02:00:00:00:00:01\"",
    units: &[],
    pattern: "^([0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}$",
    example: "02:00:00:00:00:01",
    read: |text| shown::<MacAddr>(text, "an Ethernet address"),
};

/// A line that may have placeholders: of the shell, or a path.
pub(crate) static TEMPLATE: Form = Form {
    wants: "a line of text in quotes",
    units: &[],
    pattern: ".",
    example: "/tmp/{in}",
    read: |text| placeholders_known(text).and_then(|()| line(text)),
};

/// A kernel module: its name becomes an argument of programs.
pub(crate) static MODULE: Form = Form {
    wants: "letters, digits, '_' and '-'",
    units: &[],
    pattern: "^[a-zA-Z0-9_][a-zA-Z0-9_-]*$",
    example: "tcp_bbr",
    read: |text| match is_name(text.trim(), "_-") {
        true => line(text),
        false => wrong(format!(
            "'{}' is not a valid name of a kernel module",
            short(text)
        )),
    },
};

/// The kernel keeps 15 characters of a process's name (TASK_COMM_LEN).
pub(crate) static PROCESS: Form = Form {
    wants: "the name of a process: 1 to 15 letters, digits, '_', '.' and '-'",
    units: &[],
    pattern: "^[a-zA-Z0-9_][a-zA-Z0-9_.-]{0,14}$",
    example: "bird",
    read: |text| match is_name(text.trim(), "_.-") && text.trim().len() <= 15 {
        true => line(text),
        false => wrong(format!(
            "'{}' is not a valid name of a process",
            short(text)
        )),
    },
};

/// An interface of a host.
pub(crate) static INTERFACE: Form = Form {
    wants: "it as the host shows it: letters, digits, '.', '_', '-'; at most 15 characters",
    units: &[],
    pattern: "^[a-zA-Z0-9][a-zA-Z0-9._:-]{0,14}$",
    example: "igb1",
    read: |text| match is_interface(text.trim()) {
        true => Ok(text.trim().into()),
        false => wrong(format!("'{}' is not a valid interface name", short(text))),
    },
};

/// Where the ssh client connects to.
pub(crate) static SSH: Form = Form {
    wants: "\"root@192.168.1.3\", \"root@host:2222\", or a name of your ssh configuration",
    units: &[],
    pattern: ".",
    example: "root@192.168.1.3",
    read: |text| match text.parse::<Ssh>() {
        Ok(_) => Ok(text.trim().into()),
        Err(error) => wrong(format!("ssh cannot connect to '{}': {error}", short(text))),
    },
};

/// A network namespace of this machine, as `ip netns` knows it.
pub(crate) static NAMESPACE: Form = Form {
    wants: "a name of `ip netns list`: letters, digits, '.', '_', '-'",
    units: &[],
    pattern: "^[a-zA-Z0-9][a-zA-Z0-9._-]*$",
    example: "dut",
    read: |text| match is_name(text.trim(), "._-") {
        true => Ok(text.trim().into()),
        false => wrong(format!(
            "'{}' is not a valid name of a network namespace",
            short(text)
        )),
    },
};

/// A line of text.
pub(crate) fn line(text: &str) -> Result<Json, Diagnostic> {
    if text.trim().is_empty() {
        return Err(Diagnostic::new("an empty text says nothing")
            .remedy("write a line of text, or leave the key out"));
    }
    match text.trim_end().contains('\n') {
        true => Err(Diagnostic::new("this must be a single line")),
        false => Ok(text.trim().into()),
    }
}

/// A unit: its name, its size in the smallest unit, and its spellings.
type Unit = (&'static str, f64, &'static [&'static str]);

const DURATIONS: [Unit; 6] = [
    ("ns", 1.0, &["nsec"]),
    ("us", 1e3, &["usec", "µs", "μs"]),
    ("ms", 1e6, &["msec", "msecs", "millis", "milliseconds"]),
    ("s", 1e9, &["sec", "secs", "second", "seconds"]),
    ("min", 60e9, &["m", "mins", "minute", "minutes"]),
    ("h", 3600e9, &["hr", "hrs", "hour", "hours"]),
];

fn wrong<T>(message: String) -> Result<T, Diagnostic> {
    Err(Diagnostic::new(message))
}

/// As much of a text as a message shows.
fn short(text: &str) -> String {
    text.chars().take(60).collect()
}

/// Whether a text may become a path, or an argument of a program: letters, digits and `more`.
pub(crate) fn is_name(name: &str, more: &str) -> bool {
    let fine = |c: char| c.is_ascii_alphanumeric() || more.contains(c);
    name.chars().all(fine) && !name.contains("..") && !name.starts_with(['-', '/', '.'])
}

/// Refuses placeholders that do not exist.
pub(crate) fn placeholders_known(text: &str) -> Result<(), Diagnostic> {
    let Some(unknown) = placeholders::unknown(text) else {
        return Ok(());
    };
    let all = listed(&placeholders::all(), "and");
    Err(
        Diagnostic::new(format!("there is no placeholder {unknown}"))
            .remedy(format!("there are {all}; a brace itself is written {{{{")),
    )
}

/// A text of a type that reads and shows it.
fn shown<T: FromStr + Display>(text: &str, what: &str) -> Result<Json, Diagnostic> {
    let read = text.trim().parse::<T>();
    read.map(|value| value.to_string().into())
        .or_else(|_| wrong(format!("'{text}' is not {what}")))
}

/// A quantity of one of `units`, in the smallest of them.
fn quantity(text: &str, what: &str, units: &[Unit]) -> Result<f64, Diagnostic> {
    if text.trim().starts_with('-') {
        return wrong(format!("'{text}' is negative"));
    }
    let Some((number, unit)) = number(text) else {
        return wrong(format!("'{text}' is not {what}"));
    };
    if let Some((_, scale, _)) = units.iter().find(|(name, ..)| *name == unit) {
        return Ok(number * scale);
    }
    let names: Vec<&str> = units.iter().map(|(name, ..)| *name).collect();
    if unit.is_empty() {
        return Err(bare(&number.to_string(), &names));
    }
    let written = |name: &str| name.eq_ignore_ascii_case(unit);
    let near = units
        .iter()
        .find(|(name, _, words)| written(name) || words.iter().any(|w| written(w)));
    let help = match near
        .map(|(name, ..)| *name)
        .or_else(|| meant(unit, names.iter().copied()))
    {
        Some(name) => format!("write \"{number} {name}\""),
        None => format!("the units are {}", names.join(", ")),
    };
    Err(Diagnostic::new(format!("'{unit}' is not a unit of {what}")).remedy(help))
}

/// A quantity as a whole number, which is not absurdly large.
fn whole(text: &str, what: &str, units: &[Unit], absurd: &str) -> Result<Json, Diagnostic> {
    match quantity(text, what, units)? {
        n if n > 1e18 => wrong(format!("'{text}' is {absurd}")),
        n => Ok((n as u64).into()),
    }
}

/// A bare number where a quantity is wanted.
pub(crate) fn bare(number: &str, units: &[&str]) -> Diagnostic {
    let choices: Vec<String> = units.iter().map(|u| format!("\"{number} {u}\"")).collect();
    Diagnostic::new(format!("{number} of what? The unit is missing"))
        .remedy(format!("write {}", choices.join(" or ")))
}

fn length(text: &str) -> Result<u64, Diagnostic> {
    let bytes = quantity(
        text,
        "a length",
        &[("B", 1.0, &["byte", "bytes", "octets"])],
    )?;
    match bytes.fract() == 0.0 && bytes <= 1e15 {
        true => Ok(bytes as u64),
        false => wrong(format!("'{text}' is not a whole number of bytes")),
    }
}

/// A frame length with FCS, or a mix of them.
fn size(text: &str) -> Result<FrameMix, Diagnostic> {
    if !text
        .trim()
        .starts_with(|c: char| c.is_ascii_digit() || c == '-')
    {
        let mix = text.parse();
        return mix.map_err(|error: linerate_wire::WireError| Diagnostic::new(error.to_string()));
    }
    let bytes = length(text)?;
    bytes.to_string().parse().or_else(|_| {
        wrong(format!(
            "{bytes} B is not a frame length: with FCS, a frame has 64 to 16000 bytes"
        ))
    })
}

fn exact_speed(bits: f64) -> String {
    let units = if bits < 1e9 {
        [("Mbit/s", 1e6), ("Gbit/s", 1e9)]
    } else {
        [("Gbit/s", 1e9), ("Mbit/s", 1e6)]
    };
    let exact = |(unit, scale): (&str, f64)| {
        let same = |text: &str| parse_link_speed(&format!("{text} {unit}")) == Ok(bits);
        shortest(bits / scale, same).map(|text| format!("{text} {unit}"))
    };
    units
        .into_iter()
        .find_map(exact)
        .unwrap_or_else(|| speed_text(bits))
}

/// A link's speed as people write it.
pub(super) fn speed_text(bits: f64) -> String {
    let text = Si(bits).to_string();
    let prefix = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    format!("{} {prefix}bit/s", &text[..text.len() - prefix.len()])
}

/// CPU numbers such as `0,2-3`, each once and in order.
///
/// # Errors
/// The part that is not a CPU number or range.
pub fn parse_cpus(text: &str) -> Result<Vec<u32>, Diagnostic> {
    let mut cpus = Vec::new();
    for part in text.split(',').map(str::trim) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| text.trim().parse::<u32>().ok().filter(|n| *n < 8192);
        let Some((first, last)) = number(first).zip(number(last)) else {
            return wrong(format!("'{part}' is not a CPU number or range"))
                .map_err(|wrong| wrong.remedy(format!("write {}", CPU_LIST.wants)));
        };
        if first > last {
            return Err(Diagnostic::new(format!("'{part}' runs backwards"))
                .remedy(format!("write \"{last}-{first}\"")));
        }
        cpus.extend(first..=last);
    }
    cpus.sort_unstable();
    cpus.dedup();
    Ok(cpus)
}

/// A duration as the command line takes it, in nanoseconds: `m` is a minute there, too.
///
/// # Errors
/// Not a number with a known unit, zero, or more than a day.
pub fn parse_duration_ns(text: &str) -> Result<u64, String> {
    let wrong = || format!("'{text}' is not a duration: write 250ms, 10s or 2m, up to 24h");
    let (number, unit) = number(text).ok_or_else(wrong)?;
    if unit.is_empty() && number > 0.0 {
        return Err(format!(
            "'{number}' has no unit: write {number}s, {number}ms or {number}us"
        ));
    }
    let known = |(name, _, words): &&Unit| *name == unit || words.contains(&unit);
    let ns = number * DURATIONS.iter().find(known).ok_or_else(wrong)?.1;
    if (1.0..=24.0 * 3600e9).contains(&ns) {
        Ok(ns as u64)
    } else {
        Err(wrong())
    }
}

/// A duration in the largest unit that it is a whole number of: `250 ms`.
pub fn duration_text(ns: u64) -> String {
    let fits = |(_, scale, _): &&Unit| ns >= *scale as u64 && ns.is_multiple_of(*scale as u64);
    let (name, scale, _) = DURATIONS.iter().rev().find(fits).unwrap_or(&DURATIONS[0]);
    format!("{} {name}", ns / *scale as u64)
}
