//! Needs of a setup from this kernel and machine, tried in a throw-away namespace, so that a plan skips lanes that cannot be
//! built here, with the reason and before anything is measured.

use super::{Setup, addresses, dut, tunnels};
use crate::error::Error;
use crate::host::changes::{Change, Host, check_module};
use crate::host::{self, cpu};
use crate::net::netlink::{Route, VethEnd, VxlanSpec};
use crate::net::{Netns, sysctl};
use crate::process::{self, Input, Job, ProcessError};
use linerate_plan::campaign::Requirement;
use linerate_plan::settings::Dut;
use linerate_plan::tunnel::{TUNNELS, Tunnel};
use linerate_wire::Family;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// The kinds of links that a lab is made of, and the kernel's configuration for them.
const LINKS: [(&str, &str); 6] = [
    ("veth", "veth pairs (CONFIG_VETH)"),
    ("bridge", "bridges (CONFIG_BRIDGE)"),
    ("macvlan", "macvlan (CONFIG_MACVLAN)"),
    ("vlan", "802.1Q VLANs (CONFIG_VLAN_8021Q)"),
    ("vxlan", "VXLAN (CONFIG_VXLAN)"),
    ("vrf", "VRF (CONFIG_NET_VRF)"),
];

/// The remedy where the kernel lacks something.
const OTHER: &str =
    "`run PLAN --kernel` and `bench --kernel` measure in a guest with another kernel";

/// How long a tool may take to show that it works.
const TOOL_WITHIN: Duration = Duration::from_secs(10);

impl Setup {
    /// Needs that this machine lacks, each with the reason; empty if the lane can be built.
    pub fn lacking(&self) -> Vec<String> {
        let links: &[&str] = match self.settings.dut {
            Dut::Bridge | Dut::RoutedBridge | Dut::Nested => &["veth", "bridge"],
            Dut::Macvlan => &["veth", "macvlan"],
            Dut::Vlan => &["veth", "vlan"],
            Dut::Vrf => &["veth", "vrf"],
            Dut::Vxlan => &["veth", "vxlan", "bridge"],
            _ => &["veth"],
        };
        let tunnel = self.settings.dut.tunnel().map(|tunnel| tunnel.link);
        let tools = self.rules.iter().map(|job| job.program.as_str());
        let tools = tools.chain((!self.settings.commands.is_empty()).then_some("sh"));
        let mut needs: BTreeSet<Requirement> =
            links.iter().copied().chain(tunnel).map(link).collect();
        needs.extend(tools.map(|name| Requirement::Tool(name.into())));
        needs.extend(
            self.settings
                .modules
                .iter()
                .cloned()
                .map(Requirement::Module),
        );
        needs.extend((self.tracks || self.room.is_some()).then(conntrack));
        let filled = self
            .settings
            .routes
            .count
            .max(self.settings.neighbours.count)
            .unwrap_or(0)
            > 0;
        let v6 = filled
            && self.families.contains(&Family::V6)
            && !Path::new("/proc/sys/net/ipv6").exists();
        let no_v6 = v6.then(|| "this kernel has no IPv6".to_string());
        let no_xdp = self.is_program().then(no_xdp).flatten();
        needs
            .iter()
            .filter_map(unmet)
            .chain(no_v6)
            .chain(no_xdp)
            .collect()
    }

    /// The changes to the host that it needs, as commands for a user; they need consent. `flows`: connections that must find room
    /// where it keeps a state for each.
    ///
    /// # Errors
    /// The name of a sysctl is not valid.
    pub fn outstanding(&self, flows: u64) -> Result<Vec<String>, Error> {
        let mut changes = self.sysctls()?;
        changes.retain(|change| {
            !change
                .key()
                .is_some_and(linerate_plan::sysctl::is_namespaced)
        });
        changes.extend(self.host_changes()?);
        let states = self
            .room
            .unwrap_or(0)
            .max(if self.tracks { flows } else { 0 });
        if states > 0 {
            changes.push(
                Change::sysctl("net.netfilter.nf_conntrack_max", &states.to_string())?.or_more(),
            );
        }
        let host = Host::this();
        // A setting that is not there yet comes with a module, and may have another value then.
        changes.retain(|c| {
            host.outstanding(std::slice::from_ref(c))
                .map_or(true, |open| !open.is_empty())
        });
        let mut wanted: Vec<String> = changes.iter().map(Change::by_hand).collect();
        let loadable = self
            .settings
            .modules
            .iter()
            .filter(|m| is_present(m) == Ok(false));
        wanted.extend(loadable.map(|m| format!("modprobe {m}")));
        Ok(wanted)
    }
}

/// Why a requirement is not met here; `None` if it is. Tried once for each process.
pub fn unmet(requirement: &Requirement) -> Option<String> {
    static FOUND: Mutex<BTreeMap<Requirement, Option<String>>> = Mutex::new(BTreeMap::new());
    let mut found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    found
        .entry(requirement.clone())
        .or_insert_with(|| attempt(requirement).err())
        .clone()
}

/// Why this kernel has no XDP live frames; `None` if it has them.
pub fn no_live_frames() -> Option<String> {
    let (major, minor) = version();
    ((major, minor) < (5, 18))
        .then(|| format!("XDP live frames came with Linux 5.18, and this is {major}.{minor}"))
}

/// Why XDP programs cannot be attached to a veth here; `None` if they can.
pub fn no_xdp() -> Option<String> {
    static FOUND: OnceLock<Option<String>> = OnceLock::new();
    let attempt = || probe().and_then(|(namespace, _, index)| dut::try_pass(&namespace, index));
    FOUND
        .get_or_init(|| attempt().err().map(|e| e.to_string()))
        .clone()
}

fn link(kind: &str) -> Requirement {
    Requirement::Link(kind.into())
}

fn conntrack() -> Requirement {
    Requirement::Sysctl("net.netfilter.nf_conntrack_max".into())
}

fn attempt(requirement: &Requirement) -> Result<(), String> {
    let met = |met: bool, otherwise: String| if met { Ok(()) } else { Err(otherwise) };
    match requirement {
        Requirement::Tool(name) => match trifle(name) {
            Some((job, what)) => try_tool(&job, what),
            None => met(
                process::find(name).is_some(),
                ProcessError::NotInstalled(name.clone()).to_string(),
            ),
        },
        Requirement::Link(kind) => try_link(kind).map_err(|e| missing_link(kind, &e)),
        Requirement::Module(name) => is_present(name).map(drop),
        Requirement::Sysctl(name) => try_sysctl(name),
        Requirement::Kernel(major, minor) => {
            let here = version();
            let why = format!(
                "it needs Linux {major}.{minor}, and this is {}.{}",
                here.0, here.1
            );
            met(here >= (*major, *minor), why)
        }
        Requirement::Cpus(count) => {
            let here = cpu::online_cpus().map_or(usize::MAX, |cpus| cpus.len());
            met(
                here >= *count as usize,
                format!("it needs {count} CPUs, and this machine has {here}"),
            )
        }
        Requirement::Memory(bytes) => {
            let here = host::memory_bytes();
            let why = format!(
                "it needs {} MiB of memory, and this machine has {}",
                bytes >> 20,
                here >> 20
            );
            met(here == 0 || here >= *bytes, why)
        }
        Requirement::File(path) => met(Path::new(path).exists(), format!("there is no {path}")),
    }
}

/// A namespace with a veth pair in it, to try things out on, and the number of one end.
fn probe() -> Result<(Netns, Route, u32), Error> {
    let namespace = Netns::anonymous()?.with_label("probe");
    let route = Route::open(&namespace)?;
    let end = |name: &str, role| {
        let mac = addresses::mac(0xffff, role);
        VethEnd {
            name: name.into(),
            mac,
            mtu: 1500,
            index: 0,
        }
    };
    route.create_veth(&end("x0", 1), &end("x1", 2), &namespace, 1)?;
    let index = route.link("x0")?.index;
    Ok((namespace, route, index))
}

fn try_link(kind: &str) -> Result<(), Error> {
    let (namespace, route, below) = probe()?;
    let mac = addresses::mac(0xffff, 3);
    match kind {
        "bridge" => route.create_bridge("probe").map(drop),
        "macvlan" => route.create_macvlan("probe", mac, below),
        "vrf" => route.create_vrf("probe", 198).map(drop),
        "vlan" => route.create_vlan("probe", mac, below, 2),
        "vxlan" => {
            let [local, remote] = [[198, 18, 0, 5], [198, 18, 0, 6]].map(std::net::Ipv4Addr::from);
            let spec = VxlanSpec {
                name: "probe",
                mac,
                mtu: 1500,
                id: 1,
                local,
                remote,
                port: 4789,
            };
            route.create_vxlan(&spec)
        }
        "veth" => Ok(()),
        _ => match tunnel(kind) {
            Some(tunnel) => tunnels::attempt(&namespace, &route, tunnel),
            None => Err(Error::Refused(format!(
                "linerate makes no links of kind {kind}"
            ))),
        },
    }
}

/// The tunnel whose ends are such links.
fn tunnel(link: &str) -> Option<&'static Tunnel> {
    TUNNELS.iter().find(|tunnel| tunnel.link == link)
}

/// With the name under which the kernel's configuration knows it.
fn missing_link(kind: &str, error: &Error) -> String {
    let named = LINKS.iter().find(|(name, _)| *name == kind);
    let option = named
        .map(|(_, option)| *option)
        .or(tunnel(kind).map(|tunnel| tunnel.needs))
        .unwrap_or(kind);
    match error.errno() {
        Some(libc::EOPNOTSUPP | libc::ENOSYS | libc::EPROTONOSUPPORT | libc::ENOENT) => {
            format!("this kernel has no {option}; {OTHER}")
        }
        _ => format!("{option}: {error}"),
    }
}

/// A small input for a program that loads rules or sets, and the name of the kernel feature that it needs; `None` for other
/// programs.
fn trifle(program: &str) -> Option<(Job, &str)> {
    match Path::new(program).file_name()?.to_str()? {
        "nft" => Some((chain("accept"), "nf_tables")),
        "ipset" => Some((Job::new("ipset", &["create", "probe", "hash:ip"]), "ip_set")),
        name if name.starts_with("ip") && name.ends_with("-restore") => {
            let network = if name.contains("ip6") {
                "2001:2::/48"
            } else {
                "198.18.0.0/15"
            };
            let text = format!(
                "*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -d {network} -j ACCEPT\nCOMMIT\n"
            );
            Some((
                Job::new(program, &[]).with_input(Input::text(text)),
                program,
            ))
        }
        _ => None,
    }
}

/// Loads a chain of one rule.
fn chain(rule: &str) -> Job {
    let text = format!(
        "table inet probe {{ chain c {{ type filter hook forward priority filter; {rule}; }}; }}\n"
    );
    Job::new("nft", &["-f", "-"]).with_input(Input::text(text))
}

fn try_tool(job: &Job, what: &str) -> Result<(), String> {
    let namespace = Netns::anonymous().map_err(|e| e.to_string())?;
    let run = job
        .clone()
        .within(TOOL_WITHIN)
        .run(|path| namespace.command(path), None);
    run.map(drop).map_err(|e| match e {
        ProcessError::NotInstalled(_) => e.to_string(),
        _ => format!("{what} does not work here: {e}"),
    })
}

fn try_sysctl(name: &str) -> Result<(), String> {
    let path = sysctl::path_of(name).map_err(|e| e.to_string())?;
    let tracking = path.starts_with("net/netfilter/nf_conntrack");
    if tracking {
        // Where connection tracking is a module, rules load it.
        let _ = try_tool(&chain("ct state new accept"), "nf_conntrack");
    }
    let inside = || {
        probe()
            .and_then(|(namespace, ..)| sysctl::get(&namespace, &path))
            .is_ok()
    };
    match Path::new("/proc/sys").join(&path).exists() || inside() {
        true => Ok(()),
        false if tracking => {
            Err("this kernel has no connection tracking (CONFIG_NF_CONNTRACK)".into())
        }
        false => Err(format!("this kernel has no sysctl {name}")),
    }
}

/// Whether a module is loaded or part of the kernel, and not merely on the disk.
///
/// # Errors
/// The reason why it cannot be loaded.
pub fn is_present(name: &str) -> Result<bool, String> {
    check_module(name).map_err(|e| format!("module '{name}': {e}"))?;
    let plain = name.replace('-', "_");
    if Path::new("/sys/module").join(&plain).exists() || built_in(&plain) || works(&plain) {
        return Ok(true);
    }
    if !Path::new("/proc/modules").exists() {
        return Err(format!(
            "this kernel loads no modules (CONFIG_MODULES is not set), and {name} is not part of it as far as can be seen; {OTHER}"
        ));
    }
    let look = Job::new("modprobe", &["-n", "-q", name]).within(TOOL_WITHIN);
    match look.run(|path| Command::new(path), None) {
        Ok(_) => Ok(false),
        Err(ProcessError::Failed(_)) => Err(format!(
            "there is no module {name} for this kernel; {OTHER}"
        )),
        Err(e) => Err(e.to_string()),
    }
}

/// Whether a module is in the kernel's list of built-in modules.
fn built_in(plain: &str) -> bool {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let list = fs::read_to_string(format!("/lib/modules/{}/modules.builtin", release.trim()))
        .unwrap_or_default();
    let named = |line: &str| {
        let file = line.rsplit('/').next().unwrap_or_default();
        file.strip_suffix(".ko")
            .is_some_and(|name| name.replace('-', "_") == plain)
    };
    list.lines().any(named)
}

/// A kernel without such a list is tried instead.
fn works(plain: &str) -> bool {
    let need = match plain {
        "8021q" => link("vlan"),
        "macvlan" | "vxlan" | "bridge" | "veth" => link(plain),
        "nf_tables" => Requirement::Tool("nft".into()),
        "nf_conntrack" => conntrack(),
        "ip_tables" | "iptable_filter" => Requirement::Tool("iptables-legacy-restore".into()),
        "ip_set" => Requirement::Tool("ipset".into()),
        _ => return false,
    };
    attempt(&need).is_ok()
}

/// Whether the kernel leaves softirqs to ksoftirqd while that waits for the CPU (`ksoftirqd_running` in kernel/softirq.c, before Linux 6.5):
/// a DUT then does not handle the frames that a generator on its CPU hands over.
pub fn leaves_softirqs() -> bool {
    version() < (6, 5)
}

fn version() -> (u32, u32) {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    version_of(&release).unwrap_or((u32::MAX, 0))
}

fn version_of(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release
        .split(|c: char| !c.is_ascii_digit())
        .map(|n| n.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_needs_no_namespace_is_found_out_without_one() {
        assert_eq!(unmet(&Requirement::Tool("sh".into())), None);
        let tool = unmet(&Requirement::Tool("no-such-tool".into()));
        assert_eq!(tool.unwrap(), "no-such-tool is not installed");
        assert!(
            unmet(&Requirement::Kernel(99, 0))
                .unwrap()
                .starts_with("it needs Linux 99.0")
        );
        assert_eq!(unmet(&Requirement::Kernel(2, 6)), None);
        assert!(unmet(&Requirement::Cpus(100_000)).is_some());
        assert!(unmet(&Requirement::Memory(u64::MAX)).is_some());
        assert!(unmet(&Requirement::File("/nonexistent".into())).is_some());
        assert!(is_present("../x").is_err());
        assert_eq!(unmet(&Requirement::Cpus(1)), None);
    }

    #[test]
    fn versions_are_read() {
        assert_eq!(version_of("6.18.44-fc-v509\n"), Some((6, 18)));
        assert_eq!(version_of("7"), None);
        assert_eq!(version_of(""), None);
    }
}
