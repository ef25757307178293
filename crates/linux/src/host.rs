//! Everything that a figure depends on: the machine, its kernel and settings, how busy its CPUs are, and our own memory. No addresses
//! and no serial numbers: records get published.

pub mod autogroup;
pub mod changes;
pub mod cpu;
pub mod programs;
pub mod quota;
pub mod turn;

use crate::process::{Job, ProcessError};
use linerate_hosts::systems::Signs;
use linerate_measure::record::{HostFacts, VERSION};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Kernel settings that bear on forwarding.
const SYSCTLS: [&str; 9] = [
    "net.core.bpf_jit_enable",
    "net.core.bpf_jit_harden",
    "net.core.netdev_budget",
    "net.core.netdev_budget_usecs",
    "net.core.netdev_max_backlog",
    "net.core.dev_weight",
    "net.core.default_qdisc",
    "kernel.perf_event_paranoid",
    "kernel.sched_rt_runtime_us",
];
/// Settings of the CPUs, of files in their folder.
const OF_CPUS: [&str; 3] = ["smt/active", "isolated", "nohz_full"];
const CLOCK_SOURCE: &str = "sys/devices/system/clocksource/clocksource0";
const VULNERABILITIES: &str = "sys/devices/system/cpu/vulnerabilities";
const INTERFACES: &str = "sys/class/net";

/// Bytes that are read of a file. Those in /proc and /sys are made as they are read: one CPU's entry in cpuinfo is about 1.5 kB, and
/// each further one costs an interrupt on that CPU on some kernels.
const MOST_BYTES: u64 = 8192;

/// The facts of the machine below `root` (`/`). It never fails: an unreadable fact is `unknown`, with the reason.
pub fn facts(root: &Path) -> HostFacts {
    let root = Machine(root);
    let cpuinfo = root.text("proc/cpuinfo");
    let entries = cpuinfo.as_deref().unwrap_or_default();
    let state = |name: String| {
        let state = root.line_or_reason(&format!("{VULNERABILITIES}/{name}"));
        (name, state)
    };
    let sysctls = SYSCTLS.map(|name| {
        (
            name.into(),
            root.setting(&format!("proc/sys/{}", name.replace('.', "/"))),
        )
    });
    let of_cpus = OF_CPUS.map(|file| {
        (
            format!("cpu.{}", file.replace('/', ".")),
            root.setting(&format!("sys/devices/system/cpu/{file}")),
        )
    });
    HostFacts {
        version: VERSION,
        kernel: root.kernel(),
        os: root.os().unwrap_or_else(|why| why),
        machine: rustix::system::uname()
            .machine()
            .to_string_lossy()
            .into_owned(),
        cpu_model: cpuinfo
            .as_ref()
            .map_or_else(String::clone, |text| cpu_model(text)),
        cpus: root.cpus(entries),
        hypervisor: root.hypervisor(entries),
        memory: root.kib("proc/meminfo", "MemTotal:"),
        governor: root.governor(),
        clock_source: root.line_or_reason(&format!("{CLOCK_SOURCE}/current_clocksource")),
        mitigations: match root.names(VULNERABILITIES) {
            Ok(names) => names.into_iter().map(state).collect(),
            Err(why) => BTreeMap::from([("all".into(), why)]),
        },
        interfaces: root
            .interfaces()
            .unwrap_or_else(|why| BTreeMap::from([("all".into(), why)])),
        versions: BTreeMap::from([
            ("linerate".into(), env!("CARGO_PKG_VERSION").into()),
            ("nft".into(), version_of("nft")),
            ("iptables".into(), version_of("iptables")),
        ]),
        settings: sysctls.into_iter().chain(of_cpus).collect(),
        priority: None,
    }
}

/// The memory of this machine, in bytes; 0 where the kernel does not say.
pub(crate) fn memory_bytes() -> u64 {
    Machine(Path::new("/")).kib("proc/meminfo", "MemTotal:")
}

/// The most memory that this process has held at once, in bytes; 0 where the kernel does not say.
pub fn peak_rss_bytes() -> u64 {
    Machine(Path::new("/")).kib("proc/self/status", "VmHWM:")
}

/// A machine, by its files below a folder.
struct Machine<'a>(&'a Path);

impl Machine<'_> {
    /// The beginning of a file; else `unknown`, and why.
    fn text(&self, path: &str) -> Result<String, String> {
        let mut bytes = Vec::new();
        let file = File::open(self.0.join(path));
        let read = file.and_then(|file| file.take(MOST_BYTES).read_to_end(&mut bytes));
        read.map_err(|error| unknown(path, &error))?;
        Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
    }

    /// The first line of a file; `None` for a missing or empty file.
    fn line(&self, path: &str) -> Option<String> {
        Some(self.text(path).ok()?.lines().next()?.trim_end().to_owned())
    }

    fn line_or_reason(&self, path: &str) -> String {
        let text = self.text(path).unwrap_or_else(|why| why);
        text.lines().next().map_or_else(
            || format!("unknown (/{path} is empty)"),
            |l| l.trim_end().into(),
        )
    }

    /// The names in a folder.
    fn names(&self, path: &str) -> Result<Vec<String>, String> {
        let entries = fs::read_dir(self.0.join(path))
            .map_err(|error| unknown(path, &error))?
            .flatten();
        Ok(entries
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect())
    }

    /// The bytes of a line `KEY: 2048 kB`.
    fn kib(&self, path: &str, key: &str) -> u64 {
        let text = self.text(path).unwrap_or_default();
        let figure = text.lines().find_map(|l| l.strip_prefix(key));
        let kib = figure.and_then(|v| v.trim().trim_end_matches("kB").trim().parse::<u64>().ok());
        kib.unwrap_or(0).saturating_mul(1024)
    }

    fn kernel(&self) -> String {
        let release = self.line_or_reason("proc/sys/kernel/osrelease");
        match self.line("proc/sys/kernel/version") {
            Some(version) => format!("{release} {version}"),
            None => release,
        }
    }

    fn os(&self) -> Result<String, String> {
        let text = self.text("etc/os-release")?;
        let name = text
            .lines()
            .find_map(|l| l.trim().strip_prefix("PRETTY_NAME="));
        let name = name
            .map(|n| n.trim().trim_matches(['"', '\'']))
            .filter(|n| !n.is_empty());
        name.map(Into::into)
            .ok_or_else(|| "unknown (/etc/os-release has no PRETTY_NAME)".into())
    }

    fn cpus(&self, cpuinfo: &str) -> u32 {
        let online = self
            .line("sys/devices/system/cpu/online")
            .map_or(0, |l| cpu::parse_list(&l).len());
        let listed = cpuinfo
            .lines()
            .filter(|l| l.starts_with("processor"))
            .count();
        if online > 0 {
            online as u32
        } else {
            listed as u32
        }
    }

    fn hypervisor(&self, cpuinfo: &str) -> Option<String> {
        let maker = ["sys_vendor", "product_name"]
            .map(|name| self.line(&format!("sys/class/dmi/id/{name}")));
        let signs = Signs {
            kind: self.line("sys/hypervisor/type"),
            flags: value(cpuinfo, "flags").unwrap_or_default().into(),
            maker: maker.into_iter().flatten().collect::<Vec<_>>().join(" "),
            clocks: self
                .line(&format!("{CLOCK_SOURCE}/available_clocksource"))
                .unwrap_or_default(),
        };
        signs.hypervisor()
    }

    fn governor(&self) -> String {
        let cpus = self.names("sys/devices/system/cpu").unwrap_or_default();
        let governor = |cpu: &String| {
            self.line(&format!(
                "sys/devices/system/cpu/{cpu}/cpufreq/scaling_governor"
            ))
        };
        let governors = counted(cpus.iter().filter_map(governor));
        match governors.len() {
            0 => "none visible (virtual machine?)".into(),
            1 => governors.into_keys().collect(),
            _ => listed(&governors),
        }
    }

    /// A setting; an empty file, as `isolated` is on most machines, means none.
    fn setting(&self, path: &str) -> String {
        match self.text(path).unwrap_or_else(|why| why).as_str() {
            "" | "(null)" => "none".into(),
            text => text.replace('\n', " "),
        }
    }

    /// Each interface with a device behind it, by name: driver, speed, MTU, queues. Those without (bridges, veth, tunnels) are only
    /// counted: their names often are those of customers or containers.
    fn interfaces(&self) -> Result<BTreeMap<String, String>, String> {
        let names = self.names(INTERFACES)?.into_iter();
        let (cards, others): (Vec<String>, Vec<String>) =
            names.partition(|name| self.0.join(INTERFACES).join(name).join("device").exists());
        let mut all: BTreeMap<String, String> = cards
            .into_iter()
            .map(|name| (name.clone(), self.card(&name)))
            .collect();
        let is_virtual =
            |name: &&String| *name != "lo" && self.0.join(INTERFACES).join(name).is_dir();
        let kinds = counted(others.iter().filter(is_virtual).map(|name| self.kind(name)));
        if !kinds.is_empty() {
            all.insert("(without a device)".into(), listed(&kinds));
        }
        Ok(all)
    }

    fn card(&self, name: &str) -> String {
        let folder = format!("{INTERFACES}/{name}");
        let driver = fs::read_link(self.0.join(&folder).join("device/driver")).unwrap_or_default();
        let driver = driver
            .file_name()
            .map_or("unknown".into(), |driver| driver.to_string_lossy());
        // The kernel answers EINVAL while the link is down and -1 where a driver does not know.
        let speed = self
            .line(&format!("{folder}/speed"))
            .and_then(|s| s.parse::<u32>().ok());
        let speed = speed.map_or("speed unknown".into(), |s| format!("{s} Mbit/s"));
        let mtu = self
            .line(&format!("{folder}/mtu"))
            .unwrap_or("unknown".into());
        let queues = self.names(&format!("{folder}/queues")).unwrap_or_default();
        let [rx, tx] =
            ["rx-", "tx-"].map(|way| queues.iter().filter(|queue| queue.starts_with(way)).count());
        format!("driver {driver}, {speed}, MTU {mtu}, {rx} receive and {tx} transmit queues")
    }

    /// `bridge`, `bond`, `vlan`, … if the kernel names it, else `other`.
    fn kind(&self, name: &str) -> String {
        let text = self
            .text(&format!("{INTERFACES}/{name}/uevent"))
            .unwrap_or_default();
        text.lines()
            .find_map(|l| l.strip_prefix("DEVTYPE="))
            .unwrap_or("other")
            .to_string()
    }
}

fn unknown(path: &str, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => format!("unknown (no /{path})"),
        _ => format!("unknown (/{path}: {error})"),
    }
}

/// How often each text occurs.
fn counted(all: impl Iterator<Item = String>) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    all.for_each(|one| *counts.entry(one).or_default() += 1);
    counts
}

fn listed(counts: &BTreeMap<String, usize>) -> String {
    counts
        .iter()
        .map(|(kind, n)| format!("{n} {kind}"))
        .collect::<Vec<_>>()
        .join(", ")
}

/// The value of the first `key : value` line with this key.
fn value<'a>(cpuinfo: &'a str, key: &str) -> Option<&'a str> {
    let pairs = cpuinfo.lines().filter_map(|l| l.split_once(':'));
    pairs
        .filter(|(k, _)| k.trim() == key)
        .map(|(_, v)| v.trim())
        .find(|v| !v.is_empty())
}

fn cpu_model(cpuinfo: &str) -> String {
    // x86 and loongarch, POWER, s390, RISC-V; ARM names no model, only numbers.
    let named = [
        "model name",
        "Model Name",
        "cpu",
        "processor 0",
        "uarch",
        "isa",
    ];
    if let Some(model) = named.iter().find_map(|key| value(cpuinfo, key)) {
        return model.to_string();
    }
    match (
        value(cpuinfo, "CPU implementer"),
        value(cpuinfo, "CPU part"),
    ) {
        (Some(implementer), Some(part)) => format!("ARM implementer {implementer} part {part}"),
        _ => "unknown (/proc/cpuinfo names no model)".into(),
    }
}

/// The first line of a program's `--version`, or the reason why it is unknown.
pub fn version_of(program: &str) -> String {
    let job = Job::new(program, &["--version"]).within(Duration::from_secs(1));
    match job.run(|path| Command::new(path), None) {
        Ok(output) => output.lines().next().unwrap_or("unknown").trim().into(),
        Err(ProcessError::NotInstalled(_)) => "not installed".into(),
        Err(error) => format!("unknown ({error})"),
    }
}

#[cfg(test)]
mod tests;
