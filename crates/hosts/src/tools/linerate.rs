//! linerate's own `send` and `receive`, where the other end of the lab is driven by another tool: frames are counted as that tool counts
//! them, by their number. Where both ends have linerate they speak its protocol instead, and account for each frame.

use super::fault::{self, FaultKind, Signs};
use super::monitor::{Parse, Report, Sample, Totals};
use super::{Invocation, Refusable, Side, Task, Words};
use linerate_plan::Backend;
use linerate_wire::Transport;

/// Milliseconds between two lines.
const REPORT_MS: &str = "250";
/// Seconds beyond link wait and load after which it is ended.
const MARGIN_S: u32 = 5;

pub fn generator(tool: Backend, task: &Task) -> Refusable {
    let ([source, destination], transport) = (task.ends(), task.traffic.frame.transport);
    let mut command = begin(tool, task, "send")
        .option("--size", task.frame_len_fcs())
        .option("-s", source)
        .option("-d", destination)
        .option("-D", task.destination_mac()?);
    if let Some(mac) = task.source_mac() {
        command = command.option("-S", mac);
    }
    if transport != Transport::Udp {
        command = command.option("--transport", transport);
    }
    let command = command
        .option(
            "-R",
            task.load.rate.map_or("max".into(), |pps| pps.to_string()),
        )
        .option("-p", task.threads)
        .option("--duration", format!("{}s", task.seconds()))
        // The receiver does not look for signatures, and they make short frames longer.
        .word("--unsigned");
    Ok(invocation(task, command, task.seconds()))
}

pub fn receiver(tool: Backend, task: &Task) -> Invocation {
    let seconds = task.seconds() + task.link_wait_s + MARGIN_S;
    // Other tools' frames are not signed.
    let command = begin(tool, task, "receive")
        .word("--unsigned")
        .option("--duration", format!("{seconds}s"));
    invocation(task, command, seconds)
}

/// The lab's file has confirmed that it is isolated, or nothing would be run.
fn begin(tool: Backend, task: &Task, verb: &str) -> Words {
    let Task {
        interface,
        link_wait_s,
        traffic,
        ..
    } = task;
    let words = Words::new([
        "linerate",
        verb,
        "-i",
        interface,
        "--isolated-lab",
        interface,
        "-N",
    ])
    .option("-T", REPORT_MS)
    .option("-w", link_wait_s);
    match tool.resolved(traffic.mix.max_len_fcs()) {
        Backend::Xdp => words,
        other => words.option("--port", other),
    }
}

fn invocation(task: &Task, command: Words, seconds: u32) -> Invocation {
    Invocation::bounded(
        "INT",
        task.link_wait_s + 1,
        task.link_wait_s + seconds + MARGIN_S,
        command,
    )
}

/// Faults in linerate's own messages, in lower case; beside those of every tool's system.
pub const FAULTS: &Signs = &[
    (FaultKind::NoInterface, "no interface"),
    (FaultKind::LinkDown, "is down|has no carrier"),
    (FaultKind::FrameTooLong, "need an mtu of"),
    (
        FaultKind::BadArgument,
        "unexpected argument|invalid value|unrecognized subcommand",
    ),
];

/// Takes the lines of a running `send` or `receive`.
pub struct Linerate {
    pub side: Side,
}

impl Parse for Linerate {
    fn line(&mut self, bytes: &[u8], _: bool, report: &mut Report) -> bool {
        let text = String::from_utf8_lossy(&bytes[..bytes.len().min(512)]);
        let text = text.trim();
        let (what, verb) = match self.side {
            Side::Generator => ("Sent ", "sent"),
            Side::Receiver => ("Received ", "received"),
        };
        if let Some(sample) = sample(text, verb) {
            report.sample(sample);
        } else if let Some((packets, length, seconds)) = text.strip_prefix(what).and_then(totals) {
            let bytes = Some((packets as f64 * (length - 4.0).max(0.0)).round() as u64);
            let totals = Totals {
                packets: Some(packets),
                bytes,
                seconds: Some(seconds),
                ..Totals::default()
            };
            report.says(totals);
        } else if let Some(refused) = refused(text) {
            // Refused frames never left the host.
            let sent = report
                .totals
                .packets
                .map(|packets| packets.saturating_sub(refused));
            report.totals.packets = sent;
        } else if text.starts_with("linerate: ") && !text.starts_with("linerate: warning: ")
            || text.starts_with("error: ")
        {
            let kind = fault::common(bytes).or_else(|| fault::find(FAULTS, bytes));
            report.fault(kind.unwrap_or(FaultKind::Other), bytes);
        } else if let Some(kind) = fault::common(bytes) {
            report.fault(kind, bytes);
        }
        true
    }
}

/// `   1.002 s   1234567 pps  (1237036 frames received in 1002.0 ms)`.
fn sample(text: &str, verb: &str) -> Option<Sample> {
    let (at, rest) = text.split_once(" s ")?;
    let (rate, rest) = rest.trim_start().split_once(" pps  (")?;
    let (packets, rest) = rest.split_once(" frames ")?;
    let time = rest
        .strip_prefix(verb)?
        .strip_prefix(" in ")?
        .strip_suffix(" ms)")?;
    let (at, time, rate): (f64, f64, f64) =
        (at.parse().ok()?, time.parse().ok()?, rate.parse().ok()?);
    let longest = 1e9;
    ((0.0..longest).contains(&at)
        && time > 0.0
        && time < longest
        && rate.is_finite()
        && rate >= 0.0)
        .then_some(())?;
    Some(Sample {
        end_us: (at * 1e6).round() as u64,
        interval_us: (time * 1e3).round() as u64,
        packets: Some(packets.parse().ok()?),
        bps: None,
    })
}

/// `12345 frames of 64.0 bytes with FCS in 1.234 s: ...`: frames, their length, seconds.
fn totals(text: &str) -> Option<(u64, f64, f64)> {
    let (packets, rest) = text.split_once(" frames of ")?;
    let (length, rest) = rest.split_once(" bytes with FCS in ")?;
    let (seconds, _) = rest.split_once(" s:")?;
    let (length, seconds): (f64, f64) = (length.parse().ok()?, seconds.parse().ok()?);
    let sound = (0.0..1e6).contains(&length) && (0.0..1e9).contains(&seconds);
    sound.then_some((packets.parse().ok()?, length, seconds))
}

/// `Interface: 12345 sent, 6 refused by a full ring at the other end`.
fn refused(text: &str) -> Option<u64> {
    let (_, rest) = text.strip_prefix("Interface: ")?.split_once(" sent, ")?;
    rest.split_once(" refused")?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::super::{Monitor, State};
    use super::*;
    use crate::phases::Status;
    use linerate_plan::Backend;

    fn report(side: Side, text: &str, exit: Option<Status>, asked: bool) -> Report {
        let mut monitor = Monitor::new(Backend::Linerate, side);
        monitor.feed(text.as_bytes());
        monitor.end(exit, asked);
        monitor.report().clone()
    }

    #[test]
    fn a_receiver_s_lines() {
        let text = "   0.250 s          0 pps  (0 frames received in 250.1 ms)
   0.500 s      20000 pps  (5002 frames received in 250.1 ms)
Received 5020 frames of 64.0 bytes with FCS in 0.251 s: 20.0 kpps, 13.4 Mbit/s at layer 1, 10.2 Mbit/s at layer 2
  CPU 0 queue 0: 5020 frames
Other frames: 2 ARP
";
        let report = report(Side::Receiver, text, Some(Status::Exit(130)), true);
        assert_eq!((report.state, &report.faults[..]), (State::Over, &[][..]));
        assert_eq!(
            (report.totals.packets, report.totals.bytes),
            (Some(5020), Some(5020 * 60))
        );
        let last = report.samples[1];
        assert_eq!(
            (last.end_us, last.interval_us, last.packets),
            (500_000, 250_100, Some(5002))
        );
    }

    #[test]
    fn what_the_other_end_refused_was_not_sent() {
        let text = "ipv4 udp frames of 64 bytes with FCS, 1 flows (sequential), as fast as possible, from g0 by xdp, sender 1
   1.000 s    1000000 pps  (1000000 frames sent in 1000.0 ms)
Sent 1000000 frames of 64.0 bytes with FCS in 1.000 s: 1.00 Mpps, 672 Mbit/s at layer 1, 512 Mbit/s at layer 2
Interface: 999000 sent, 1000 refused by a full ring at the other end
";
        let report = report(Side::Generator, text, Some(Status::Exit(0)), false);
        assert_eq!(
            (report.totals.packets, report.faults.len()),
            (Some(999_000), 0)
        );
    }

    #[test]
    fn what_keeps_it_from_beginning_is_told_in_its_own_words() {
        for (text, status, kind) in [
            (
                "linerate: interface r0 has no carrier: is the cable in, and the other end up?",
                1,
                FaultKind::LinkDown,
            ),
            (
                "linerate: interface r9 of namespace /proc/self/ns/net: No such device (os error 19)",
                1,
                FaultKind::NoInterface,
            ),
            (
                "linerate: frames of 9018 bytes need an MTU of 9000, and g0 has 1500: ip link set g0 mtu 9000",
                1,
                FaultKind::FrameTooLong,
            ),
            (
                "error: unexpected argument '--unsigned' found",
                2,
                FaultKind::BadArgument,
            ),
            ("linerate: the machine is on fire", 1, FaultKind::Other),
            (
                "sh: 1: exec: linerate: not found",
                127,
                FaultKind::NotInstalled,
            ),
        ] {
            let report = report(
                Side::Generator,
                &format!("{text}\n"),
                Some(Status::Exit(status)),
                false,
            );
            assert_eq!(
                (report.faults[0].kind, report.state),
                (kind, State::Over),
                "{report:?}"
            );
        }
        let warned = report(
            Side::Generator,
            "linerate: warning: 5 frames/s were asked for\n",
            None,
            true,
        );
        assert_eq!(warned.faults[0].kind, FaultKind::PeerGone);
    }

    #[test]
    fn impossible_figures_are_no_samples() {
        for text in [
            "1 s 1 pps  (1 frames sent in 0 ms)",
            "-1 s 1 pps  (1 frames sent in 1 ms)",
            "nan s 1 pps  (1 frames sent in 1 ms)",
            "1 s inf pps  (1 frames sent in 1 ms)",
            "1 s 1 pps  (-1 frames sent in 1 ms)",
            "1e300 s 1 pps  (1 frames sent in 1e300 ms)",
            "1 s 1 pps  (1 frames received in 1 ms)",
        ] {
            assert_eq!(sample(text, "sent"), None, "{text}");
        }
    }
}
