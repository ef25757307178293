//! The facts of a machine that are recorded with every campaign. No addresses and no serial numbers: records get published.

use super::{interfaces, line, line_or_reason, memory, names, read_start, tools, unknown};
use linerate_measure::record::{HostFacts, VERSION};
use std::collections::BTreeMap;
use std::path::Path;

/// Kernel settings that bear on forwarding: name and file.
const SETTINGS: [(&str, &str); 12] = [
    ("net.core.bpf_jit_enable", "proc/sys/net/core/bpf_jit_enable"),
    ("net.core.bpf_jit_harden", "proc/sys/net/core/bpf_jit_harden"),
    ("net.core.netdev_budget", "proc/sys/net/core/netdev_budget"),
    ("net.core.netdev_budget_usecs", "proc/sys/net/core/netdev_budget_usecs"),
    ("net.core.netdev_max_backlog", "proc/sys/net/core/netdev_max_backlog"),
    ("net.core.dev_weight", "proc/sys/net/core/dev_weight"),
    ("net.core.default_qdisc", "proc/sys/net/core/default_qdisc"),
    ("kernel.perf_event_paranoid", "proc/sys/kernel/perf_event_paranoid"),
    ("kernel.sched_rt_runtime_us", "proc/sys/kernel/sched_rt_runtime_us"),
    ("cpu.smt.active", "sys/devices/system/cpu/smt/active"),
    ("cpu.isolated", "sys/devices/system/cpu/isolated"),
    ("cpu.nohz_full", "sys/devices/system/cpu/nohz_full"),
];

/// The facts of the machine below `root` (`/`). It never fails: an unreadable fact is `unknown`, with the reason.
pub fn facts(root: &Path) -> HostFacts {
    // One CPU's entry is about 1.5 kB, and each further one costs an interrupt on that CPU on some kernels.
    let cpuinfo = read_start(root, "proc/cpuinfo", 8192);
    HostFacts {
        version: VERSION,
        kernel: kernel(root),
        os: os(root),
        machine: tools::machine(),
        cpu_model: match &cpuinfo {
            Ok(text) => cpu_model(text),
            Err(error) => unknown("proc/cpuinfo", error),
        },
        cpus: cpus(root, cpuinfo.as_deref().unwrap_or_default()),
        hypervisor: hypervisor(root, cpuinfo.as_deref().unwrap_or_default()),
        memory: memory::total_bytes(root),
        governor: governor(root),
        clock_source: line_or_reason(root, &format!("{CLOCK_SOURCE}/current_clocksource")),
        mitigations: mitigations(root),
        interfaces: interfaces::interfaces(root),
        versions: tools::versions(),
        settings: SETTINGS.iter().map(|(name, path)| (name.to_string(), setting(root, path))).collect(),
    }
}

const CLOCK_SOURCE: &str = "sys/devices/system/clocksource/clocksource0";

fn kernel(root: &Path) -> String {
    let release = line_or_reason(root, "proc/sys/kernel/osrelease");
    match line(root, "proc/sys/kernel/version") {
        Some(version) => format!("{release} {version}"),
        None => release,
    }
}

fn os(root: &Path) -> String {
    let text = match read_start(root, "etc/os-release", 16_384) {
        Ok(text) => text,
        Err(error) => return unknown("etc/os-release", &error),
    };
    let name = text.lines().find_map(|l| l.trim().strip_prefix("PRETTY_NAME="));
    match name.map(|n| n.trim().trim_matches(['"', '\''])) {
        Some(name) if !name.is_empty() => name.into(),
        _ => "unknown (/etc/os-release has no PRETTY_NAME)".into(),
    }
}

/// The value of the first `key : value` line with one of these keys.
fn value<'a>(cpuinfo: &'a str, key: &str) -> Option<&'a str> {
    let pairs = cpuinfo.lines().filter_map(|l| l.split_once(':'));
    pairs.filter(|(k, _)| k.trim() == key).map(|(_, v)| v.trim()).find(|v| !v.is_empty())
}

fn cpu_model(cpuinfo: &str) -> String {
    // x86 and loongarch, POWER, s390, RISC-V; ARM names no model, only numbers.
    let named = ["model name", "Model Name", "cpu", "processor 0", "uarch", "isa"];
    if let Some(model) = named.iter().find_map(|key| value(cpuinfo, key)) {
        return model.to_string();
    }
    match (value(cpuinfo, "CPU implementer"), value(cpuinfo, "CPU part")) {
        (Some(implementer), Some(part)) => format!("ARM implementer {implementer} part {part}"),
        _ => "unknown (/proc/cpuinfo names no model)".into(),
    }
}

fn cpus(root: &Path, cpuinfo: &str) -> u32 {
    let online = line(root, "sys/devices/system/cpu/online").map_or(0, |l| super::cpu::parse_list(&l).len());
    let listed = cpuinfo.lines().filter(|l| l.starts_with("processor")).count();
    if online > 0 { online as u32 } else { listed as u32 }
}

/// The hypervisor, as far as it shows itself: Xen by its own file, others by the CPU's flag, the machine's maker or the
/// clock that only they have.
fn hypervisor(root: &Path, cpuinfo: &str) -> Option<String> {
    if let Some(kind) = line(root, "sys/hypervisor/type") {
        return Some(kind);
    }
    let flagged = value(cpuinfo, "flags").is_some_and(|f| f.split_whitespace().any(|f| f == "hypervisor"));
    let dmi = |name: &str| line(root, &format!("sys/class/dmi/id/{name}"));
    let product =
        [dmi("sys_vendor"), dmi("product_name")].into_iter().flatten().collect::<Vec<_>>().join(" ");
    let virtual_product = ["QEMU", "KVM", "Virtual", "VMware", "Bochs"].iter().any(|v| product.contains(v));
    let clocks = line(root, &format!("{CLOCK_SOURCE}/available_clocksource")).unwrap_or_default();
    let by_clock = [("kvm-clock", "KVM"), ("hyperv", "Hyper-V"), ("xen", "Xen")]
        .iter()
        .find_map(|(clock, name)| clocks.contains(clock).then_some(*name));
    match (flagged || virtual_product, by_clock) {
        (false, None) => None,
        (_, Some(name)) if product.is_empty() => Some(name.into()),
        (_, Some(name)) => Some(format!("{name} ({product})")),
        (true, None) if product.is_empty() => Some("of unknown kind".into()),
        (true, None) => Some(product),
    }
}

fn governor(root: &Path) -> String {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let is_cpu = |name: &&String| name.strip_prefix("cpu").is_some_and(|n| n.parse::<u32>().is_ok());
    for name in names(root, "sys/devices/system/cpu").unwrap_or_default().iter().filter(is_cpu) {
        let path = format!("sys/devices/system/cpu/{name}/cpufreq/scaling_governor");
        line(root, &path).into_iter().for_each(|governor| *counts.entry(governor).or_default() += 1);
    }
    match counts.len() {
        0 => "none visible (virtual machine?)".into(),
        1 => counts.into_keys().collect(),
        _ => counts.iter().map(|(g, n)| format!("{g} on {n} CPUs")).collect::<Vec<_>>().join(", "),
    }
}

fn mitigations(root: &Path) -> BTreeMap<String, String> {
    let path = "sys/devices/system/cpu/vulnerabilities";
    let with_state = |name: String| {
        let state = line_or_reason(root, &format!("{path}/{name}"));
        (name, state)
    };
    match names(root, path) {
        Ok(names) => names.into_iter().map(with_state).collect(),
        Err(error) => BTreeMap::from([("all".into(), unknown(path, &error))]),
    }
}

/// A setting; an empty file, as `isolated` is on most machines, means none.
fn setting(root: &Path, path: &str) -> String {
    match read_start(root, path, 4096) {
        Ok(text) if text.trim().is_empty() || text.trim() == "(null)" => "none".into(),
        Ok(text) => text.trim().replace('\n', " "),
        Err(error) => unknown(path, &error),
    }
}
