//! The results of a lab check as JSON.

use linerate_hosts::preflight::frames::Tried;
use linerate_hosts::preflight::{ports, tool};
use linerate_hosts::systems::{Facts, Interface};
use linerate_plan::Severity;
use linerate_plan::lab::{Host, Lab};
use linerate_report::pages::LabCheck;
use serde_json::{Value, json};

/// Everything: hosts with their interfaces, frames, problems. Speeds are in bit/s, times in seconds.
pub fn json(check: &LabCheck<'_>) -> Value {
    let LabCheck { file, lab, facts, problems, tried: frames, skipped } = check;
    let count = |severity| problems.iter().filter(|p| p.severity == severity).count();
    let not_tried = skipped.iter().map(|s| json!({ "what": s.what, "why": s.why }));
    json!({
        "lab": file,
        "title": lab.title,
        "isolated": lab.isolated,
        "faults": count(Severity::Fault),
        "warnings": count(Severity::Warning),
        "hosts": lab.hosts.iter().map(|h| host(lab, h, facts.get(&h.name))).collect::<Vec<_>>(),
        "frames": frames.iter().map(tried).collect::<Vec<_>>(),
        "not_tried": not_tried.collect::<Vec<_>>(),
        "problems": problems,
        "remarks": lab.remarks(),
    })
}

fn host(lab: &Lab, host: &Host, facts: Option<&Facts>) -> Value {
    let facts = facts.cloned().unwrap_or_default();
    let system = facts.system.as_ref();
    let roles: Vec<&str> = host.roles.iter().map(|role| role.key()).collect();
    let ports = ports(lab, host).into_iter().map(|port| match port.found(&facts) {
        Ok(interface) => of_interface(port.key, interface),
        Err(_) => json!({ "key": port.key, "name": port.wanted.name, "found": false }),
    });
    json!({
        "name": host.name,
        "roles": roles,
        "ssh": host.ssh.to_string(),
        "reached": facts.unreachable.is_none(),
        "system": system.map(|s| s.system.key()),
        "product": system.and_then(|s| s.product.clone()),
        "kernel": system.map(|s| s.kernel.clone()),
        "cpus": facts.cpus,
        "user": facts.user,
        "clock_ahead_s": facts.clock.map(|clock| clock.ahead()),
        "tool": tool(host, &facts).map(|tool| tool.name()),
        "programs": facts.programs,
        "interfaces": ports.collect::<Vec<_>>(),
    })
}

fn of_interface(key: &str, interface: &Interface) -> Value {
    json!({
        "key": key,
        "name": interface.name,
        "found": true,
        "up": interface.up,
        "link": interface.link,
        "speed": interface.speed,
        "mtu": interface.mtu,
        "mac": interface.mac.map(|mac| mac.to_string()),
        "addresses": interface.addresses.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "pause": { "rx": interface.pause.rx, "tx": interface.pause.tx },
    })
}

fn tried(tried: &Tried) -> Value {
    let Tried { probe, replies, arrived, elsewhere } = tried;
    let at = |(host, interface): &(String, String)| json!({ "host": host, "interface": interface });
    let counted = probe.arrives.iter().zip(arrived).map(|(place, count)| {
        let mut value = at(place);
        value["counted"] = json!(count);
        value
    });
    json!({
        "from": at(&probe.from),
        "source": probe.source,
        "to": probe.to,
        "whose": probe.whose,
        "sent": replies.count.map(|(sent, _)| sent),
        "answered": replies.count.map(|(_, answered)| answered),
        "arrived": counted.collect::<Vec<_>>(),
        "elsewhere": elsewhere,
    })
}
