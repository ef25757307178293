//! What a setup needs of this kernel and machine, tried out in a throw-away namespace: so that a plan can skip, with the reason and
//! before anything is measured, what cannot be had here.

use super::{LabError, Setup, program};
use crate::host::{cpu, memory};
use crate::net::netlink::{Route, VethEnd, VxlanSpec};
use crate::net::{self, Netns, sysctl};
use crate::process::{self, Input, Job, ProcessError};
use linerate_plan::campaign::Requirement;
use linerate_plan::settings::Dut;
use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;

/// Something that a setup cannot do without.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// A kind of virtual link: `bridge`, `macvlan`, `vlan`, `vxlan`, `veth`.
    Link(String),
    /// nf_tables in the kernel, and nft.
    NfTables,
    /// An iptables (or ip6tables) that restores, and the tables behind it.
    IpTables(String),
    /// ipset, in the kernel and as a program.
    IpSet,
    /// Connection tracking.
    Conntrack,
    /// XDP programs on a veth.
    Xdp,
    /// IP version 6.
    Ipv6,
    /// A program.
    Tool(String),
    /// A kernel module, loaded, built in or loadable.
    Module(String),
    /// A kernel setting, of a namespace or of the host.
    Sysctl(String),
    /// A kernel of at least this version.
    Kernel(u32, u32),
    /// CPUs that this process may use.
    Cpus(u32),
    /// Memory in bytes.
    Memory(u64),
    /// A file or device.
    File(String),
}

/// Whether a module has to be loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Module {
    /// Loaded, or part of the kernel.
    Present,
    /// On disk.
    Loadable,
}

/// How long a tool may take to show that it works.
const TOOL_WITHIN: Duration = Duration::from_secs(10);

impl Setup {
    /// What it needs.
    pub fn needs(&self) -> Vec<Need> {
        let mut needs = vec![Need::Link("veth".into())];
        let link = |kind: &str| Need::Link(kind.into());
        match self.dut {
            Dut::Bridge | Dut::RoutedBridge | Dut::Nested => needs.push(link("bridge")),
            Dut::Macvlan => needs.push(link("macvlan")),
            Dut::Vlan => needs.push(link("vlan")),
            Dut::Vxlan => needs.extend([link("vxlan"), link("bridge")]),
            _ => {}
        }
        if self.is_program() {
            needs.push(Need::Xdp);
        }
        for job in &self.rules {
            needs.push(match job.name() {
                "nft" => Need::NfTables,
                "ipset" => Need::IpSet,
                name if name.starts_with("ip") && name.ends_with("-restore") => {
                    Need::IpTables(job.program.clone())
                }
                _ => Need::Tool(job.program.clone()),
            });
        }
        if self.tracks || self.room.is_some() {
            needs.push(Need::Conntrack);
        }
        if self.more_routes.v6 > 0 || self.more_neighbours.v6 > 0 {
            needs.push(Need::Ipv6);
        }
        needs.extend(self.modules.iter().cloned().map(Need::Module));
        let commands = self.commands.iter().map(|step| &step.run.program);
        needs.extend(commands.cloned().map(Need::Tool));
        needs.sort();
        needs.dedup();
        needs
    }

    /// What of it this machine lacks, each with the reason; empty if the lane can be built.
    pub fn lacking(&self) -> Vec<String> {
        self.needs().iter().filter_map(lacking).collect()
    }
}

/// Why a need is not met here; `None` if it is. Tried once for each process.
pub fn lacking(need: &Need) -> Option<String> {
    static FOUND: LazyLock<Mutex<BTreeMap<Need, Option<String>>>> = LazyLock::new(Mutex::default);
    let mut found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    found.entry(need.clone()).or_insert_with(|| attempt(need).err()).clone()
}

/// What of a plan's requirement is not met here.
pub fn unmet(requirement: &Requirement) -> Option<String> {
    lacking(&match requirement.clone() {
        Requirement::Tool(name) => Need::Tool(name),
        Requirement::Link(kind) => Need::Link(kind),
        Requirement::Module(name) => Need::Module(name),
        Requirement::Sysctl(name) => Need::Sysctl(name),
        Requirement::Kernel(major, minor) => Need::Kernel(major, minor),
        Requirement::Cpus(count) => Need::Cpus(count),
        Requirement::Memory(bytes) => Need::Memory(bytes),
        Requirement::File(path) => Need::File(path),
    })
}

/// Everything that the kinds of setups may need, with what is lacking here.
pub fn probe() -> Vec<(Need, Option<String>)> {
    let links = ["bridge", "macvlan", "vlan", "vxlan"].map(|kind| Need::Link(kind.into()));
    let tables = ["iptables-legacy-restore", "iptables-nft-restore"].map(|name| Need::IpTables(name.into()));
    let others = [Need::NfTables, Need::IpSet, Need::Conntrack, Need::Xdp, Need::Ipv6];
    links.into_iter().chain(tables).chain(others).map(|need| (need.clone(), lacking(&need))).collect()
}

fn attempt(need: &Need) -> Result<(), String> {
    let words = |e: LabError| e.to_string();
    match need {
        Need::Link(kind) => try_link(kind).map_err(|e| missing_link(kind, &e)),
        Need::NfTables => {
            let text =
                "table inet probe { chain c { type filter hook forward priority filter; accept; }; }\n";
            try_tool(&Job::new("nft", &["-f", "-"]).with_input(Input::text(text)), "nf_tables")
        }
        Need::IpTables(program) => {
            let text = "*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -d 198.18.0.0/15 -j ACCEPT\nCOMMIT\n";
            let text = if program.contains("ip6") {
                text.replace("198.18.0.0/15", "2001:2::/48")
            } else {
                text.into()
            };
            try_tool(&Job::new(program.as_str(), &[]).with_input(Input::text(text)), program)
        }
        Need::IpSet => try_tool(&Job::new("ipset", &["create", "probe", "hash:ip"]), "ip_set"),
        Need::Conntrack => {
            let text = "table inet probe { chain c { type filter hook forward priority filter; ct state new accept; }; }\n";
            // Where it is a module, rules load it.
            let _ = try_tool(&Job::new("nft", &["-f", "-"]).with_input(Input::text(text)), "nf_conntrack");
            let there = Path::new("/proc/sys/net/netfilter/nf_conntrack_max").exists();
            there
                .then_some(())
                .ok_or_else(|| "this kernel has no connection tracking (CONFIG_NF_CONNTRACK)".into())
        }
        Need::Xdp => try_xdp().map_err(words),
        Need::Ipv6 => match Path::new("/proc/sys/net/ipv6").exists() {
            true => Ok(()),
            false => Err("this kernel has no IPv6".into()),
        },
        Need::Tool(name) => {
            process::find(name).map(drop).ok_or_else(|| ProcessError::NotInstalled(name.clone()).to_string())
        }
        Need::Module(name) => module(name).map(drop),
        Need::Sysctl(name) => try_sysctl(name),
        Need::Kernel(major, minor) => match kernel_version() {
            Some(version) if version < (*major, *minor) => {
                Err(format!("it needs Linux {major}.{minor}, and this is {}.{}", version.0, version.1))
            }
            _ => Ok(()),
        },
        Need::Cpus(count) => match cpu::online_cpus() {
            Ok(cpus) if cpus.len() < *count as usize => {
                Err(format!("it needs {count} CPUs, and this machine has {}", cpus.len()))
            }
            _ => Ok(()),
        },
        Need::Memory(bytes) => match memory::total_bytes(Path::new("/")) {
            there @ 1.. if there < *bytes => {
                Err(format!("it needs {} MiB of memory, and this machine has {}", bytes >> 20, there >> 20))
            }
            _ => Ok(()),
        },
        Need::File(path) => match Path::new(path).exists() {
            true => Ok(()),
            false => Err(format!("there is no {path}")),
        },
    }
}

/// A namespace with a veth pair in it, to try things out on.
struct Bench {
    namespace: Netns,
    route: Route,
}

impl Bench {
    fn new() -> Result<Bench, net::Error> {
        let namespace = Netns::anonymous()?.with_label("probe");
        let route = Route::open(&namespace)?;
        let end = |name: &str, role| VethEnd {
            name: name.into(),
            mac: super::addresses::mac(0xffff, role),
            mtu: 1500,
            index: 0,
        };
        route.create_veth(&end("x0", 1), &end("x1", 2), &namespace, 1)?;
        Ok(Bench { namespace, route })
    }

    fn below(&self) -> Result<u32, net::Error> {
        Ok(self.route.link("x0")?.index)
    }
}

fn try_link(kind: &str) -> Result<(), net::Error> {
    let bench = Bench::new()?;
    let mac = super::addresses::mac(0xffff, 3);
    match kind {
        "bridge" => bench.route.create_bridge("probe").map(drop),
        "macvlan" => bench.route.create_macvlan("probe", mac, bench.below()?),
        "vlan" => bench.route.create_vlan("probe", mac, bench.below()?, 2),
        "vxlan" => {
            let [local, remote] = [[198, 18, 0, 5], [198, 18, 0, 6]].map(std::net::Ipv4Addr::from);
            let spec = VxlanSpec { name: "probe", mac, mtu: 1500, id: 1, local, remote, port: 4789 };
            bench.route.create_vxlan(&spec)
        }
        "veth" => Ok(()),
        _ => Err(net::Error::Unsupported {
            operation: format!("create a link of kind {kind}"),
            reason: "linerate makes no such links".into(),
        }),
    }
}

/// With the name under which the kernel's configuration knows it.
fn missing_link(kind: &str, error: &net::Error) -> String {
    let option = match kind {
        "vlan" => "802.1Q VLANs (CONFIG_VLAN_8021Q)",
        "macvlan" => "macvlan (CONFIG_MACVLAN)",
        "vxlan" => "VXLAN (CONFIG_VXLAN)",
        "bridge" => "bridges (CONFIG_BRIDGE)",
        "veth" => "veth pairs (CONFIG_VETH)",
        _ => return error.to_string(),
    };
    match error {
        net::Error::Unsupported { .. } => format!("this kernel has no {option}"),
        _ => format!("{option}: {error}"),
    }
}

fn try_tool(job: &Job, what: &str) -> Result<(), String> {
    let namespace = Netns::anonymous().map_err(|e| e.to_string())?;
    let run = job.clone().within(TOOL_WITHIN).run(|path| namespace.command(path), None);
    run.map(drop).map_err(|e| match e {
        ProcessError::NotInstalled(_) => e.to_string(),
        _ => format!("{what} does not work here: {e}"),
    })
}

fn try_xdp() -> Result<(), LabError> {
    let bench = Bench::new()?;
    program::try_pass(&bench.namespace, bench.below()?).map(drop)
}

fn try_sysctl(name: &str) -> Result<(), String> {
    let path = sysctl::path_of(name).map_err(|e| e.to_string())?;
    let inside = || {
        let bench = Bench::new().ok()?;
        sysctl::get(&bench.namespace, &path).ok()
    };
    match Path::new("/proc/sys").join(&path).exists() || inside().is_some() {
        true => Ok(()),
        false => Err(format!("this kernel has no sysctl {name}")),
    }
}

/// Whether a module is there, or could be.
///
/// # Errors
/// It could not, and why.
pub fn module(name: &str) -> Result<Module, String> {
    crate::host::journal::check_module(name).map_err(|e| format!("module '{name}': {e}"))?;
    let plain = name.replace('-', "_");
    if Path::new("/sys/module").join(&plain).exists() || built_in(&plain) || works(&plain) {
        return Ok(Module::Present);
    }
    if !Path::new("/proc/modules").exists() {
        return Err(format!(
            "this kernel loads no modules (CONFIG_MODULES is not set), and {name} is not part of it as far as can be seen"
        ));
    }
    let look = Job::new("modprobe", &["-n", "-q", name]).within(TOOL_WITHIN);
    match look.run(|path| Command::new(path), None) {
        Ok(_) => Ok(Module::Loadable),
        Err(ProcessError::Failed { .. }) => Err(format!("there is no module {name} for this kernel")),
        Err(e) => Err(e.to_string()),
    }
}

/// Whether the kernel's list of what was built into it names a module.
fn built_in(plain: &str) -> bool {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let list =
        fs::read_to_string(format!("/lib/modules/{}/modules.builtin", release.trim())).unwrap_or_default();
    let named = |line: &str| {
        let file = line.rsplit('/').next().unwrap_or_default();
        file.strip_suffix(".ko").is_some_and(|name| name.replace('-', "_") == plain)
    };
    list.lines().any(named)
}

/// A kernel built without a list shows what it has by doing it.
fn works(plain: &str) -> bool {
    let need = match plain {
        "8021q" => Need::Link("vlan".into()),
        "macvlan" | "vxlan" | "bridge" | "veth" => Need::Link(plain.into()),
        "nf_tables" => Need::NfTables,
        "nf_conntrack" => Need::Conntrack,
        "ip_tables" | "iptable_filter" => Need::IpTables("iptables-legacy-restore".into()),
        "ip_set" => Need::IpSet,
        _ => return false,
    };
    attempt(&need).is_ok()
}

fn kernel_version() -> Option<(u32, u32)> {
    version_of(&fs::read_to_string("/proc/sys/kernel/osrelease").ok()?)
}

fn version_of(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|n| n.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Need::Link(kind) => write!(f, "links of kind {kind}"),
            Need::NfTables => f.write_str("nftables"),
            Need::IpTables(program) => f.write_str(program),
            Need::IpSet => f.write_str("ipset"),
            Need::Conntrack => f.write_str("connection tracking"),
            Need::Xdp => f.write_str("XDP"),
            Need::Ipv6 => f.write_str("IPv6"),
            Need::Tool(name) => write!(f, "program {name}"),
            Need::Module(name) => write!(f, "kernel module {name}"),
            Need::Sysctl(name) => write!(f, "sysctl {name}"),
            Need::Kernel(major, minor) => write!(f, "Linux {major}.{minor}"),
            Need::Cpus(count) => write!(f, "{count} CPUs"),
            Need::Memory(bytes) => write!(f, "{} MiB of memory", bytes >> 20),
            Need::File(path) => f.write_str(path),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::Variant;

    #[test]
    fn setups_say_what_they_need() {
        let of = |dut| Setup::of(dut).needs();
        let link = |kind: &str| Need::Link(kind.into());
        assert_eq!(of(Dut::Forwarding), [link("veth")]);
        assert_eq!(of(Dut::Vxlan), [link("bridge"), link("veth"), link("vxlan")]);
        assert_eq!(of(Dut::Xdp), [link("veth"), Need::Xdp]);
        let nat = Setup::from(Variant::Nat).needs();
        assert_eq!(nat, [link("veth"), Need::NfTables, Need::Conntrack]);
        let mut rules = Setup::of(Dut::Forwarding);
        rules.rules = vec![Job::new("/x/ip6tables-legacy-restore", &[]), Job::new("ipset", &["restore"])];
        let needs = rules.needs();
        assert!(needs.contains(&Need::IpTables("/x/ip6tables-legacy-restore".into())), "{needs:?}");
        assert!(needs.contains(&Need::IpSet));
    }

    #[test]
    fn what_needs_no_namespace_is_found_out_without_one() {
        assert_eq!(lacking(&Need::Tool("sh".into())), None);
        assert_eq!(lacking(&Need::Tool("no-such-tool".into())).unwrap(), "no-such-tool is not installed");
        assert!(lacking(&Need::Kernel(99, 0)).unwrap().starts_with("it needs Linux 99.0"));
        assert_eq!(lacking(&Need::Kernel(2, 6)), None);
        assert!(lacking(&Need::Cpus(100_000)).is_some());
        assert!(lacking(&Need::Memory(u64::MAX)).is_some());
        assert!(lacking(&Need::File("/nonexistent".into())).is_some());
        assert!(module("../x").is_err());
        assert_eq!(unmet(&Requirement::Cpus(1)), None);
    }

    #[test]
    fn versions_are_read() {
        assert_eq!(version_of("6.18.44-fc-v509\n"), Some((6, 18)));
        assert_eq!(version_of("7"), None);
        assert_eq!(version_of(""), None);
    }
}
