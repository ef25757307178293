//! Checks of one host alone: system, clock, rights, programs, space.

use super::{Findings, ports};
use crate::systems::{Facts, Kernel, Silence};
use linerate_plan::backend::{Backend, Runs};
use linerate_plan::lab::{Host, Lab, OperatingSystem, Role};

/// Bytes that must be free where results are kept until they are fetched.
const FREE_BYTES: u64 = 64 << 20;
/// Seconds by which a host's clock may be off.
const CLOCK_S: f64 = 2.0;
/// Beyond this a clock is not merely off.
const WRONG_CLOCK_S: f64 = 60.0;

pub(super) fn check(lab: &Lab, host: &Host, facts: &Facts, out: &mut Findings) {
    system(host, facts, out);
    clock(host, facts, out);
    privileges(host, facts, out);
    programs(lab, host, facts, out);
    unanswered(host, facts, out);
    for disk in facts.disks.iter().filter(|d| d.free < FREE_BYTES) {
        out.fault(host, "there is too little free space for the files of trials", format!(
                "{} MiB are free on {}, {} are needed",
                disk.free >> 20,
                disk.mounted_on,
                FREE_BYTES >> 20
            ), "delete what is old there, or mount a larger file system (mdmfs -s 256m md /tmp on nanobsd)");
    }
}

fn system(host: &Host, facts: &Facts, out: &mut Findings) {
    let Some(told) = &facts.system else {
        let remedy = "say system = \"...\" in the lab file; FreeBSD, OpenBSD, NetBSD, Linux and systems based on them are supported";
        out.fault(
            host,
            "its operating system is unknown",
            "uname -a named no system that is known here",
            remedy,
        );
        return;
    };
    let same = |said: OperatingSystem| {
        // A lab file may name the system that an appliance is based on.
        said == told.system
            || (said == OperatingSystem::FreeBsd && Kernel::of(told.system) == Kernel::FreeBsd)
    };
    if let Some(said) = host.system.filter(|said| !same(*said)) {
        out.fault(
            host,
            format!("it is not the {} that the lab file says", said.key()),
            format!(
                "it runs {} {}",
                told.product.as_deref().unwrap_or(told.system.key()),
                told.kernel
            ),
            format!(
                "write system = \"{}\", or see whether {} is the right host",
                told.system.key(),
                host.reach
            ),
        );
    }
    let saved = host.config_save.is_some() || told.system.config_save().is_some();
    if facts.read_only_root == Some(true) && !saved {
        out.warning(host, "changes to its files would not outlive a reboot", "its root is mounted read-only, and no command saves its settings", "write config-save = \"...\" in the lab file, or measure no variants that need a reboot");
    }
}

fn clock(host: &Host, facts: &Facts, out: &mut Findings) {
    let Some(clock) = facts.clock else { return };
    let ahead = clock.ahead();
    if ahead.abs() <= CLOCK_S {
        return;
    }
    let what = format!(
        "its clock is {} s {}",
        ahead.abs().round(),
        if ahead > 0.0 { "ahead" } else { "behind" }
    );
    let evidence = format!(
        "it said {:.0} between {:.0} and {:.0} of this machine",
        clock.theirs, clock.asked, clock.answered
    );
    let remedy = "run ntpdate or chronyd there; compare this machine's clock as well";
    match ahead.abs() > WRONG_CLOCK_S {
        true => out.fault(host, what, evidence, remedy),
        false => out.warning(host, what, evidence, remedy),
    }
}

fn privileges(host: &Host, facts: &Facts, out: &mut Findings) {
    let Some(user) = facts.user.filter(|u| *u != 0) else {
        return;
    };
    let evidence = format!("id -u says {user}");
    match (host.sudo, facts.sudo) {
        (true, Some(true)) => {}
        (true, _) => out.fault(
            host,
            "sudo asks for a password, or is not there",
            format!("{evidence}, and sudo -n true failed"),
            "allow this user NOPASSWD in sudoers, or let ssh log in as root",
        ),
        (false, Some(true)) => out.fault(
            host,
            "this user cannot run commands that need root",
            format!("{evidence}; sudo -n works there"),
            "write sudo = true for this host in the lab file",
        ),
        (false, _) => out.fault(
            host,
            "this user cannot run commands that need root",
            evidence,
            "let ssh log in as root, or allow sudo without password and write sudo = true",
        ),
    }
}

/// The tool that sends or counts frames on a generator or receiver: the one in the lab file, else linerate if it is installed,
/// else pkt-gen. `None` if the host has neither.
pub fn tool(host: &Host, facts: &Facts) -> Option<Backend> {
    let measures = host.roles.contains(&Role::Generator) || host.roles.contains(&Role::Receiver);
    let has = |program: &str| facts.programs.contains_key(program);
    let first = || {
        [
            (Backend::Linerate, "linerate"),
            (Backend::PktGen, "pkt-gen"),
        ]
        .into_iter()
        .find(|(_, p)| has(p))
    };
    if measures {
        host.tool.or_else(|| first().map(|(tool, _)| tool))
    } else {
        None
    }
}

/// Findings for questions without an answer, because the host cannot answer, or did not in time.
fn unanswered(host: &Host, facts: &Facts, out: &mut Findings) {
    for question in &facts.unanswered {
        let program = question.command.split(' ').next().unwrap_or_default();
        let (what, remedy) = match question.why {
            Silence::Missing => (
                "is not there, so not everything could be asked",
                "install it",
            ),
            Silence::TooSlow => (
                "gave no answer in time, so not everything is known",
                "run it there by hand: a file system or name server that does not answer holds programs up",
            ),
        };
        let asked = format!("asked: {}", question.command);
        out.warning(host, format!("{program} {what}"), asked, remedy);
    }
}

/// The program that sends or counts, or any that could.
fn programs(lab: &Lab, host: &Host, facts: &Facts, out: &mut Findings) {
    let sends = host.roles.contains(&Role::Generator);
    let receives = host.roles.contains(&Role::Receiver);
    if !sends && !receives {
        return;
    }
    let has = |program: &str| facts.programs.contains_key(program);
    let listed = || {
        let names: Vec<&str> = facts.programs.keys().map(String::as_str).collect();
        if names.is_empty() {
            "none of those that are known here was found".to_string()
        } else {
            format!("it has {}", names.join(", "))
        }
    };
    let Some(tool) = tool(host, facts) else {
        out.fault(
            host,
            "it has nothing to send or count frames with",
            listed(),
            "install linerate there, or pkt-gen (netmap), or say tool = \"iperf3\"",
        );
        return;
    };
    let needed: &[&str] = match tool.capabilities().runs {
        Runs::Program(programs) => &[programs[usize::from(receives)], "timeout"],
        Runs::Linerate | Runs::Memory => &["linerate"],
    };
    for program in needed.iter().filter(|p| !has(p)) {
        out.fault(
            host,
            format!("{program} is not there"),
            listed(),
            format!(
                "install it, or put it on the PATH that commands have there: {} env",
                host.reach.by_hand()
            ),
        );
    }
    if receives && !tool.capabilities().receives {
        out.fault(
            host,
            format!("{tool} does not receive"),
            format!("tool = \"{tool}\""),
            "let linerate, pkt-gen or iperf3 receive",
        );
    }
    let wanted = ports(lab, host)
        .iter()
        .any(|port| port.wanted.netmap == Some(true));
    if wanted && facts.kernel() != Some(Kernel::FreeBsd) {
        out.fault(
            host,
            "netmap = true needs FreeBSD",
            facts
                .system
                .as_ref()
                .map_or("its system is not known", |s| s.system.key()),
            "leave netmap out, and let linerate send",
        );
    }
}
