//! Results of frames: whether and where they arrived, and the fault if they did not.

use super::Tried;
use crate::preflight::Problems;
use crate::systems::ping::FRAMES;
use linerate_plan::{Diagnostic, Severity};

/// The problems that the frames show.
pub fn judge(tried: &[Tried]) -> Vec<Diagnostic> {
    let mut problems = Problems::default();
    let still: Vec<&(String, String)> = tried.iter().filter_map(still).collect();
    for probe in tried {
        one(probe, &still, &mut problems);
    }
    problems.found
}

/// The port at the other end of a cable whose counters did not move, nor those of another port, although its host answered.
fn still(tried: &Tried) -> Option<&(String, String)> {
    let answered = tried.replies.count.is_some_and(|(_, answered)| answered > 0);
    let unmoved = !tried.probe.is_forwarded() && tried.arrived[0] == Some(0) && tried.elsewhere.is_empty();
    (answered && unmoved).then_some(&tried.probe.arrives[0])
}

fn one(tried: &Tried, still: &[&(String, String)], problems: &mut Problems) {
    let Tried { probe, replies, arrived, elsewhere } = tried;
    let answered = replies.count.map_or(0, |(_, answered)| answered);
    let enough = |count: &Option<u64>| count.is_some_and(|n| n >= u64::from(FRAMES));
    let evidence = evidence(tried);
    let mut add = |severity, host: &str, what: String, remedy: &str| {
        let problem = Diagnostic::new(what).of(host).evidence(&evidence).remedy(remedy);
        problems.add(Diagnostic { severity, ..problem });
    };
    let from_to = format!("what it sends from {} to {} of {}", probe.source, probe.to, probe.whose);
    let last = probe.arrives.len() - 1;
    let (first_host, first_port) = &probe.arrives[0];
    if enough(&arrived[last]) && answered == 0 {
        let remedy = "nothing is wrong where frames go one way only; otherwise see for a firewall there, and for its way back";
        add(Severity::Warning, &probe.from.0, format!("{from_to} arrives, and is not answered"), remedy);
    } else if answered == 0 && !probe.is_forwarded() {
        match elsewhere.first() {
            Some(other) => add(
                Severity::Fault,
                first_host,
                format!("frames for {first_port} arrive at {other}"),
                "see for swapped cables, or correct the lab file",
            ),
            None => add(
                Severity::Fault,
                &probe.from.0,
                format!("{from_to} does not arrive"),
                "see cable, switch and VLAN in between, and whom it takes for that address by ARP",
            ),
        }
    } else if answered == 0 {
        let (host, what) = match enough(&arrived[0]) {
            true => (
                first_host,
                format!(
                    "it does not forward frames from {} for {} of {}",
                    probe.source, probe.to, probe.whose
                ),
            ),
            false => (&probe.from.0, format!("{from_to} does not arrive")),
        };
        add(
            Severity::Fault,
            host,
            what,
            "see its forwarding, its routes, its firewall, and whom it takes for the next by ARP",
        );
    } else if let Some(at) = arrived.iter().position(|count| count.is_some() && !enough(count)) {
        let (host, port) = &probe.arrives[at];
        if still.contains(&&probe.arrives[at]) {
            // Told once, of the cable.
            if !probe.is_forwarded() {
                let what =
                    format!("the counters of {port} do not move, although frames that it takes are answered");
                let remedy = "on FreeBSD, netstat may be of another release than the kernel: compare the two lines of `freebsd-version -ku`, and install the userland that fits the kernel";
                add(Severity::Fault, host, what, remedy);
            }
            return;
        }
        let other = if at == 0 { elsewhere.first() } else { None };
        let what = match other {
            Some(other) => format!("frames for {port} arrive at {other}"),
            None => format!("frames for {} pass {port} by", probe.to),
        };
        add(
            Severity::Fault,
            host,
            what,
            "see for swapped cables, two interfaces in one network, or a way around the DUT; or correct the lab file",
        );
    } else if answered < FRAMES {
        add(
            Severity::Warning,
            &probe.from.0,
            format!("of {from_to}, not everything is answered"),
            "see the counters of errors at both ends: a bad cable or transceiver loses frames of any load",
        );
    }
}

fn evidence(tried: &Tried) -> String {
    let mut parts = Vec::new();
    match tried.replies.count {
        Some((sent, answered)) => parts.push(format!("{answered} of {sent} pings were answered")),
        None => parts.push("ping did not end".to_string()),
    }
    if !tried.replies.said.is_empty() && tried.replies.count.is_none_or(|(_, answered)| answered == 0) {
        parts.push(tried.replies.said.clone());
    }
    for ((host, port), count) in tried.probe.arrives.iter().zip(&tried.arrived) {
        parts.extend(count.map(|n| format!("{port} of {host} counted {n} frames")));
    }
    parts.join("; ")
}
