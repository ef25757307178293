//! A lab, written as a lab file.

use super::{LAB_FILE, Source};
use linerate_plan::lab::{Boot, Host, Interface, Role};
use linerate_plan::toml_text::Toml;
use toml_writer::ToTomlKey;

/// Writes a lab file.
pub(super) fn write(source: &Source, hosts: &[Host]) -> String {
    let mut out = Toml::default();
    out.comment(&format!(
        "{LAB_FILE}, made by `linerate import benchlab` from {}",
        source.path
    ));
    out.comment("`linerate lab schema` has its JSON Schema, docs/lab-file.md describes it.");
    out.0 += "\n";
    out.text("title", Some(super::sets::name(&source.title)));
    out.0 += "\n";
    out.comment(
        "Make sure that nothing but these hosts can receive what is sent here (RFC 6815), then say true.",
    );
    out.comment("Until then nothing is sent.");
    out.put("isolated", Some(false));
    out.0 += "\n";
    out.comment("Speed that is 100 % of line rate. The configuration does not say it.");
    out.comment("link-speed = \"10 Gbit/s\"");
    hosts.iter().for_each(|one| host(&mut out, one));
    out.0
}

fn host(out: &mut Toml, host: &Host) {
    let place = format!("hosts.{}", host.name.to_toml_key());
    out.heading(&place);
    let roles: Vec<&str> = host.roles.iter().map(|r| r.key()).collect();
    match roles.as_slice() {
        [one] => out.text("role", Some(one)),
        several => out.list("role", several),
    }
    out.text("ssh", Some(&host.reach));
    if host.system.is_none() && host.roles.contains(&Role::Dut) {
        out.comment("system: it is asked");
    }
    out.text("system", host.system.map(|system| system.key()));
    out.text("tool", host.tool.map(|tool| tool.name()));
    out.put("sudo", host.sudo.then_some(true));
    let several = host.send.len() > 1;
    for send in &host.send {
        let heading = if several {
            format!("[{place}.send]")
        } else {
            format!("{place}.send")
        };
        interface(out, &heading, send);
    }
    let ends = [
        ("receive", &host.receive),
        ("in", &host.inside),
        ("out", &host.outside),
        ("management", &host.management),
    ];
    for (name, end) in ends {
        end.iter()
            .for_each(|end| interface(out, &format!("{place}.{name}"), end));
    }
    if host.boot != Boot::default() {
        out.heading(&format!("{place}.boot"));
        out.text(
            "timeout",
            Some(format!("{} s", host.boot.timeout_ns / 1_000_000_000)),
        );
        out.list("reaches", &host.boot.reaches);
        out.text("from", host.boot.from.as_ref());
    }
}

fn interface(out: &mut Toml, heading: &str, interface: &Interface) {
    out.heading(heading);
    out.text("name", interface.name.as_ref());
    out.text("mac", interface.mac);
    out.list("addresses", &interface.addresses);
    out.list("networks", &interface.networks);
    out.list("next-hops", &interface.next_hops);
    out.put("netmap", interface.netmap);
    out.put("threads", interface.threads);
}
