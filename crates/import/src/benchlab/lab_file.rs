//! A lab, written as a lab file.

use super::toml_text::{comment, key, list, text};
use super::{LAB_FILE, Source};
use linerate_plan::lab::{Boot, Host, Interface, Role};
use std::fmt::Write;

/// Writes a lab file.
pub(super) fn write(source: &Source, hosts: &[Host]) -> String {
    let mut out = comment(&format!("{LAB_FILE}, made by `linerate import benchlab` from {}", source.path));
    out += &comment("`linerate lab schema` has its JSON Schema, docs/lab-file.md describes it.");
    let _ = writeln!(out, "\ntitle = {}\n", text(&super::sets::name(&source.title)));
    out += &comment(
        "Make sure that nothing but these hosts can receive what is sent here (RFC 6815), then say true.\nUntil then nothing is sent.",
    );
    out += "isolated = false\n\n";
    out += &comment(
        "Speed that is 100 % of line rate. The configuration does not say it.\nlink-speed = \"10 Gbit/s\"",
    );
    for one in hosts {
        host(&mut out, one);
    }
    out
}

fn host(out: &mut String, host: &Host) {
    let place = format!("hosts.{}", key(&host.name));
    let roles: Vec<&str> = host.roles.iter().map(|r| r.key()).collect();
    let role = if let [one] = roles.as_slice() { text(one) } else { list(&roles) };
    let _ = writeln!(out, "\n[{place}]\nrole = {role}\nssh = {}", text(&host.ssh.to_string()));
    match host.system {
        Some(system) => {
            let _ = writeln!(out, "system = {}", text(system.key()));
        }
        None if host.roles.contains(&Role::Dut) => out.push_str("# system: it is asked\n"),
        None => {}
    }
    if let Some(tool) = host.tool {
        let _ = writeln!(out, "tool = {}", text(tool.name()));
    }
    if host.sudo {
        out.push_str("sudo = true\n");
    }
    for send in &host.send {
        let several = host.send.len() > 1;
        let heading = if several { format!("[[{place}.send]]") } else { format!("[{place}.send]") };
        interface(out, &heading, send);
    }
    let ends = [
        ("receive", &host.receive),
        ("in", &host.inside),
        ("out", &host.outside),
        ("management", &host.management),
    ];
    for (name, one) in ends {
        if let Some(one) = one {
            interface(out, &format!("[{place}.{name}]"), one);
        }
    }
    if host.boot != Boot::default() {
        let _ = writeln!(out, "\n[{place}.boot]\ntimeout = \"{} s\"", host.boot.timeout_ns / 1_000_000_000);
        if !host.boot.reaches.is_empty() {
            let all: Vec<String> = host.boot.reaches.iter().map(ToString::to_string).collect();
            let _ = writeln!(out, "reaches = {}", list(&all));
        }
        if let Some(from) = &host.boot.from {
            let _ = writeln!(out, "from = {}", text(from));
        }
    }
}

fn interface(out: &mut String, heading: &str, interface: &Interface) {
    let _ = writeln!(out, "\n{heading}");
    if let Some(name) = &interface.name {
        let _ = writeln!(out, "name = {}", text(name));
    }
    if let Some(mac) = &interface.mac {
        let _ = writeln!(out, "mac = {}", text(&mac.to_string()));
    }
    let addresses: Vec<String> = interface.addresses.iter().map(ToString::to_string).collect();
    let hops: Vec<String> = interface.next_hops.iter().map(ToString::to_string).collect();
    for (name, values) in [("addresses", &addresses), ("networks", &interface.networks), ("next-hops", &hops)]
    {
        if !values.is_empty() {
            let _ = writeln!(out, "{name} = {}", list(values));
        }
    }
    if let Some(netmap) = interface.netmap {
        let _ = writeln!(out, "netmap = {netmap}");
    }
    if let Some(threads) = interface.threads {
        let _ = writeln!(out, "threads = {threads}");
    }
}
