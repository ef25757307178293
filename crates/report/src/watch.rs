//! `linerate watch` as lines: one a sample, for pipes and logs.

use crate::pages::numbers::percent;
use linerate_measure::watch::{InterfaceRates, QueueRates, Rates, SideRates};
use linerate_wire::words::when;

/// A form of lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// The headline, with the time.
    Text,
    /// Frames of each receive queue, as nic-queue-usage prints them.
    NicQueueUsage,
    /// Totals, as `netstat -ihw 1` prints them.
    Netstat,
}

impl Form {
    /// The forms by their names.
    pub const NAMES: [(&'static str, Form); 3] = [
        ("text", Form::Text),
        ("nic-queue-usage", Form::NicQueueUsage),
        ("netstat", Form::Netstat),
    ];
}

/// Lines between two headings of netstat.
const BETWEEN_HEADINGS: u64 = 21;

/// Rates with three digits and their unit: `12.3 kpps`, `0 pps`, `1.49 Mpps`.
pub fn rate(value: f64, unit: &str) -> String {
    let (number, prefix) = scaled(value);
    format!("{number} {prefix}{unit}")
}

/// A number with three digits, and the prefix of its unit.
pub fn scaled(value: f64) -> (String, &'static str) {
    let scales = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, "")];
    // 999,960 to three digits is 1.00 M, not 1,000 k.
    let (scale, prefix) = scales
        .into_iter()
        .find(|(scale, _)| value >= 0.9995 * scale)
        .unwrap_or((1.0, ""));
    let number = value / scale;
    let places = match number {
        n if n == 0.0 || n >= 99.95 || (prefix.is_empty() && n >= 9.95) => 0,
        n if n >= 9.995 || prefix.is_empty() => 1,
        _ => 2,
    };
    (format!("{number:.places$}"), prefix)
}

/// `1.42 Mpps in, 1.41 Mpps out, 12.3 kpps dropped (0.87 %)`.
pub fn headline(rates: &Rates) -> String {
    let total = &rates.total;
    let drops = total.rx.drops + total.tx.drops;
    let mut text = format!(
        "{} in, {} out, {} dropped",
        rate(total.rx.pps, "pps"),
        rate(total.tx.pps, "pps"),
        rate(drops, "pps")
    );
    if drops > 0.0 {
        let of = (total.rx.pps + total.rx.drops).max(total.tx.pps + total.tx.drops);
        text += &format!(" ({} %)", percent((drops / of.max(drops)).min(1.0)));
    }
    text
}

/// The first limit; without one, how busy the busiest CPU is.
pub fn limit(rates: &Rates) -> String {
    if let Some(limit) = rates.limits.first() {
        return limit.to_string();
    }
    match rates
        .cpus
        .iter()
        .max_by(|a, b| a.busy().total_cmp(&b.busy()))
    {
        Some(cpu) => {
            let programs = when(cpu.user >= 0.5, " with programs");
            format!(
                "none seen; the busiest CPU is {}, {:.0} % busy{programs}",
                cpu.cpu,
                100.0 * cpu.busy()
            )
        }
        None => "none seen".into(),
    }
}

/// The lines of a sample; `nth`: how many samples came before it. Texts of hosts are not escaped.
pub fn lines(form: Form, rates: &Rates, nth: u64) -> String {
    match form {
        Form::Text => format!(
            "{}  {}; limit: {}\n",
            clock(rates.unix_ms),
            headline(rates),
            limit(rates)
        ),
        Form::NicQueueUsage => queue_usage(rates),
        Form::Netstat => netstat(rates, nth),
    }
}

/// The time of day, in UTC: `12:31:07.4`.
pub fn clock(unix_ms: u64) -> String {
    let tenths = unix_ms / 100;
    let (seconds, minutes, hours) = (tenths / 10, tenths / 600, tenths / 36_000);
    format!(
        "{:02}:{:02}:{:02}.{}Z",
        hours % 24,
        minutes % 60,
        seconds % 60,
        tenths % 10
    )
}

/// `[Q0   346K/s] [Q1   343K/s] … [QT   689K/s  3269K/s ->     0K/s]`: frames of each receive queue, of all, then those that arrived at
/// the interface and those that left it. With more than one interface, its name stands before.
fn queue_usage(rates: &Rates) -> String {
    let is_one = rates.interfaces.len() == 1;
    let watched: Vec<&InterfaceRates> = rates
        .interfaces
        .iter()
        .filter(|i| is_one || !(i.stacked || i.carrier == Some(false)))
        .collect();
    let thousands = |pps: f64| format!("{:>5.0}K/s", pps / 1e3);
    let line = |interface: &&InterfaceRates| {
        let name = when(!is_one, format!("{} ", interface.name));
        let rx = |queue: &QueueRates| queue.rx.map(|side| side.pps);
        let queues: Vec<(usize, f64)> = interface
            .queues
            .iter()
            .enumerate()
            .filter_map(|(nth, queue)| Some((nth, rx(queue)?)))
            .collect();
        let each: String = queues
            .iter()
            .map(|(nth, pps)| format!("[Q{nth} {}] ", thousands(*pps)))
            .collect();
        let all = queues.iter().map(|(_, pps)| pps).sum();
        // Frames that the rings had no room for have arrived as well.
        let arrived = interface.rx.pps + interface.rx.drops;
        format!(
            "{name}{each}[QT {} {} -> {}]\n",
            thousands(all),
            thousands(arrived),
            thousands(interface.tx.pps)
        )
    };
    watched.iter().map(line).collect()
}

/// Totals of the interval, with a heading before the first line and after every 21st.
fn netstat(rates: &Rates, nth: u64) -> String {
    let mut text = String::new();
    let (name, rx, tx, collisions) = match &rates.interfaces[..] {
        [one] => (format!("({})", one.name), &one.rx, &one.tx, one.collisions),
        _ => (
            "(Total)".to_owned(),
            &rates.total.rx,
            &rates.total.tx,
            rates.total.collisions,
        ),
    };
    if nth.is_multiple_of(BETWEEN_HEADINGS) {
        text += &format!("{:>17} {name:>14} {:>16}\n", "input", "output");
        text += "   packets  errs idrops      bytes    packets  errs      bytes colls\n";
    }
    let n = |per_second: f64| humanized(per_second * rates.seconds);
    let SideRates {
        pps,
        errors,
        drops,
        bytes,
        ..
    } = *rx;
    text += &format!(
        "{:>10} {:>5} {:>5} {:>10} {:>10} {:>5} {:>10} {:>5}\n",
        n(pps),
        n(errors),
        n(drops),
        n(bytes),
        n(tx.pps),
        n(tx.errors),
        n(tx.bytes),
        n(collisions)
    );
    text
}

/// As humanize_number(3) writes a count in four characters: `999`, `1.0K`, `14M`, `836M`.
fn humanized(value: f64) -> String {
    if value < 999.5 {
        return format!("{value:.0}");
    }
    let scales = [(1e3, "K"), (1e6, "M"), (1e9, "G"), (1e12, "T")];
    let (scale, prefix) = scales
        .into_iter()
        .find(|(scale, _)| value < 999.5 * scale)
        .unwrap_or((1e15, "P"));
    let number = value / scale;
    if number < 9.95 {
        format!("{number:.1}{prefix}")
    } else {
        format!("{number:.0}{prefix}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_measure::watch::Totals;

    fn side(pps: f64, drops: f64) -> SideRates {
        SideRates {
            pps,
            drops,
            bytes: pps * 60.0,
            ..SideRates::default()
        }
    }

    fn router() -> Rates {
        let queue = |pps| QueueRates {
            rx: Some(side(pps, 0.0)),
            tx: None,
        };
        let (rx, tx) = (side(14_000_000.0, 7_900_000.0), side(5_800_000.0, 0.0));
        let queues = vec![queue(935_000.0), queue(944_400.0)];
        let cxl0 = InterfaceRates {
            name: "cxl0".into(),
            queues,
            rx,
            tx,
            ..InterfaceRates::default()
        };
        Rates {
            seconds: 1.0,
            interfaces: vec![cxl0],
            total: Totals {
                rx,
                tx,
                collisions: 0.0,
            },
            ..Rates::default()
        }
    }

    #[test]
    fn queues_are_printed_as_nic_queue_usage_does() {
        assert_eq!(
            lines(Form::NicQueueUsage, &router(), 0),
            "[Q0   935K/s] [Q1   944K/s] [QT  1879K/s 21900K/s ->  5800K/s]\n"
        );
    }

    #[test]
    fn totals_are_printed_as_netstat_does() {
        let mut rates = router();
        rates.interfaces.push(InterfaceRates::default());
        let expected = concat!(
            "            input        (Total)           output\n",
            "   packets  errs idrops      bytes    packets  errs      bytes colls\n",
            "       14M     0  7.9M       840M       5.8M     0       348M     0\n"
        );
        assert_eq!(lines(Form::Netstat, &rates, 0), expected);
        assert_eq!(lines(Form::Netstat, &rates, 1).lines().count(), 1);
        assert_eq!(lines(Form::Netstat, &rates, 21).lines().count(), 3);
        let shown = [0.0, 999.0, 1000.0, 9_949.0, 9_960.0, 999_600.0, 1e12].map(humanized);
        assert_eq!(shown, ["0", "999", "1.0K", "9.9K", "10K", "1.0M", "1.0T"]);
    }

    #[test]
    fn the_headline_has_rate_drops_and_limit() {
        let text = lines(Form::Text, &router(), 0);
        assert_eq!(
            text,
            "00:00:00.0Z  14.0 Mpps in, 5.80 Mpps out, 7.90 Mpps dropped (36.1 %); limit: none seen\n"
        );
        assert_eq!(clock(1_700_000_000_450), "22:13:20.4Z");
        let rates =
            [0.0, 0.4, 9.96, 12.0, 999.4, 999.96, 12_345.0, 999_960.0].map(|pps| rate(pps, "pps"));
        assert_eq!(
            rates,
            [
                "0 pps",
                "0.4 pps",
                "10 pps",
                "12 pps",
                "999 pps",
                "1.00 kpps",
                "12.3 kpps",
                "1.00 Mpps"
            ]
        );
    }
}
