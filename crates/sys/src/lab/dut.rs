//! The DUT's side of a lane: settings, addresses, routes, rule sets, programs.

use super::addresses::{GENERATOR_SIDE, RECEIVER_SIDE, Side};
use super::variant::Variant;
use super::{Interface, LabError, LabSpec, enable_napi, interface, thread_napi};
use crate::bpf;
use crate::net::netlink::Route;
use crate::net::sysfs::NetSysfs;
use crate::net::{MacAddr, Netns, sysctl};
use crate::ports::PortError;
use crate::ports::mapped::MappedArray;
use crate::ports::xdp_receiver::attach;
use aya::Ebpf;
use aya::programs::{Program, TcAttachType};
use linerate_core::record::Mode;
use std::io::Write;
use std::process::Stdio;
use std::sync::atomic::AtomicU64;

/// A router that answers no one and announces nothing; these exist in every network namespace with IP version 4…
const ROUTER_V4: [(&str, &str); 5] = [
    ("net/ipv4/ip_forward", "1"),
    ("net/ipv4/conf/all/rp_filter", "0"),
    ("net/ipv4/conf/default/rp_filter", "0"),
    ("net/ipv4/conf/all/send_redirects", "0"),
    ("net/ipv4/conf/default/send_redirects", "0"),
];

/// …and these with version 6. Multicast listener reports cannot be turned off, but their repetition put off.
const ROUTER_V6: [(&str, &str); 8] = [
    ("net/ipv6/conf/all/forwarding", "1"),
    ("net/ipv6/conf/default/forwarding", "1"),
    ("net/ipv6/conf/default/accept_dad", "0"),
    ("net/ipv6/conf/default/accept_ra", "0"),
    ("net/ipv6/conf/default/addr_gen_mode", "1"),
    ("net/ipv6/conf/default/router_solicitations", "0"),
    ("net/ipv6/conf/default/mldv1_unsolicited_report_interval", "86400000"),
    ("net/ipv6/conf/default/mldv2_unsolicited_report_interval", "86400000"),
];

/// Makes the namespace a router, before it has interfaces.
pub(super) fn prepare(namespace: &Netns) -> Result<Route, LabError> {
    sysctl::apply(namespace, &ROUTER_V4)?;
    if has_ipv6(namespace) {
        sysctl::apply(namespace, &ROUTER_V6)?;
    }
    Ok(Route::open(namespace)?)
}

fn has_ipv6(namespace: &Netns) -> bool {
    sysctl::get(namespace, "net/ipv6/conf/all/forwarding").is_ok()
}

/// `struct known` in dut.bpf.c: what a DUT with a known answer says that it did.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub struct Known {
    /// Frames that came in.
    pub seen: u64,
    /// Frames dropped.
    pub dropped: u64,
    /// Frames doubled.
    pub duplicated: u64,
    pad: [u64; 5],
}

/// The DUT of a lane.
pub struct DutEnd {
    /// Its namespace.
    pub namespace: Netns,
    /// Towards the generator.
    pub inside: Interface,
    /// Towards the receiver.
    pub outside: Interface,
    pub(super) route: Route,
    pub(super) known: Option<MappedArray<Known>>,
    /// Whether a rule set is loaded, which may drop frames.
    pub(super) rules: bool,
    /// What the rule set's own counter showed when it was last read.
    pub(super) rule_drops: AtomicU64,
    programs: Vec<Ebpf>,
}

impl DutEnd {
    pub(super) fn new(namespace: Netns, route: Route, inside: &str, outside: &str) -> Result<Self, LabError> {
        let (inside, outside) = (interface(&route, inside)?, interface(&route, outside)?);
        Ok(DutEnd {
            namespace,
            inside,
            outside,
            route,
            known: None,
            rules: false,
            rule_drops: AtomicU64::new(0),
            programs: Vec::new(),
        })
    }

    pub(super) fn configure(
        &mut self,
        variant: &Variant,
        spec: &LabSpec,
        generator: MacAddr,
        receiver: MacAddr,
    ) -> Result<(), LabError> {
        self.route.set_up(self.inside.index, true)?;
        self.route.set_up(self.outside.index, true)?;
        enable_napi(&self.namespace, &self.inside.name)?;
        if variant.routes() {
            self.routes(generator, receiver)?
        } else {
            self.bridge(receiver)?
        }
        if let Some(rules) = variant.ruleset() {
            load_ruleset(&self.namespace, variant, rules)?;
            self.rules = true;
            // The limit is there once the rules have loaded connection tracking.
            self.room_for_states(variant, spec)?;
        }
        self.program(variant)?;
        self.steer(spec)
    }

    /// Whether the DUT can be left to itself: its programs are held by this process, and go with it.
    pub(super) fn outlive(&self) -> Result<(), LabError> {
        if self.programs.is_empty() {
            return Ok(());
        }
        Err(LabError::Unsuitable(
            "a DUT that is an eBPF program (xdp, known-...) ends with linerate and cannot be left up".into(),
        ))
    }

    fn routes(&self, generator: MacAddr, receiver: MacAddr) -> Result<(), LabError> {
        let families = if has_ipv6(&self.namespace) { 2 } else { 1 };
        let sides = [(&self.inside, &GENERATOR_SIDE, generator), (&self.outside, &RECEIVER_SIDE, receiver)];
        for (interface, side, mac) in sides {
            for Side { dut, tester, network } in side.iter().take(families) {
                self.route.add_address(interface.index, dut.0, dut.1)?;
                self.route.add_neighbour(interface.index, *tester, mac)?;
                self.route.add_route(network.0, network.1, Some(*tester), interface.index)?;
            }
        }
        Ok(())
    }

    fn bridge(&self, receiver: MacAddr) -> Result<(), LabError> {
        let bridge = self.route.create_bridge("br0", None)?;
        self.route.set_master(self.inside.index, Some(bridge))?;
        self.route.set_master(self.outside.index, Some(bridge))?;
        self.route.add_fdb(self.outside.index, receiver)?;
        Ok(self.route.set_up(bridge, true)?)
    }

    /// The states' limit is the host's, not the namespace's, and nothing outside a namespace is changed: say what is missing.
    fn room_for_states(&self, variant: &Variant, spec: &LabSpec) -> Result<(), LabError> {
        if !variant.tracks_connections() {
            return Ok(());
        }
        let limit = sysctl::get(&self.namespace, "net/netfilter/nf_conntrack_max").unwrap_or_default();
        match limit.trim().parse::<u64>() {
            Ok(limit) if limit > 0 && limit < spec.flows => Err(LabError::Unsuitable(format!(
                "{variant} keeps a state for each of {} flows, and this host's limit is {limit}: sysctl net.netfilter.nf_conntrack_max={} raises it (linerate changes nothing outside its namespaces)",
                spec.flows,
                spec.flows * 2
            ))),
            _ => Ok(()),
        }
    }

    fn program(&mut self, variant: &Variant) -> Result<(), LabError> {
        let (rate, one_in, delay, name) = match variant {
            Variant::Xdp => (0, 0, 0, "xdp_forward"),
            Variant::KnownRate(r) => (*r, 0, 0, "known_rate"),
            Variant::KnownLoss(n) => (0, *n, 0, "known_loss"),
            Variant::KnownDuplication(n) => (0, *n, 0, "known_duplication"),
            Variant::KnownDelay(t) => (0, 0, t.as_nanos() as u32, "known_delay"),
            _ => return Ok(()),
        };
        let cpus = bpf::possible_cpus();
        let mut ebpf = bpf::loader()
            .override_global("RATE", &rate, true)
            .override_global("ONE_IN", &one_in, true)
            .override_global("DELAY_NS", &delay, true)
            .map_max_entries("known", cpus as u32)
            .map_max_entries("buckets", cpus as u32)
            .load(bpf::DUT)
            .map_err(|e| bpf::program_error(name, &e))?;
        if name == "known_duplication" {
            self.attach_egress(&mut ebpf, name)?;
        } else {
            attach(&mut ebpf, name, &self.namespace, self.inside.index)?;
        }
        if *variant == Variant::Xdp {
            let entered =
                self.namespace.enter(|| bpf::set_devmap(&mut ebpf, "egress", 0, self.outside.index));
            entered.map_err(PortError::system("enter", "the DUT's namespace"))??;
        } else {
            let map = ebpf.take_map("known").expect("dut.bpf.c defines it");
            self.known = Some(MappedArray::new("known", map, cpus)?);
        }
        self.programs.push(ebpf);
        Ok(())
    }

    fn attach_egress(&self, ebpf: &mut Ebpf, name: &str) -> Result<(), LabError> {
        let Some(Program::SchedClassifier(program)) = ebpf.program_mut(name) else {
            return Err(LabError::Unsuitable(format!("there is no classifier '{name}'")));
        };
        program.load().map_err(|e| bpf::program_error(name, &e))?;
        let attached = self.namespace.enter(|| {
            // Kernels before 6.6 need the qdisc that later ones do without.
            let _ = aya::programs::tc::qdisc_add_clsact(&self.outside.name);
            program.attach(&self.outside.name, TcAttachType::Egress)
        });
        let attached = attached.map_err(PortError::system("enter", "the DUT's namespace"))?;
        attached.map_err(|e| bpf::program_error(name, &e))?;
        Ok(())
    }

    /// Who forwards, and through which queue it leaves.
    fn steer(&self, spec: &LabSpec) -> Result<(), LabError> {
        let queues = spec.queues();
        let forwarding_cpus = match spec.mode {
            Mode::Inline => &spec.generator_cpus,
            Mode::Threaded => {
                thread_napi(&self.namespace, &self.inside.name, &spec.dut_cpus)?;
                &spec.dut_cpus
            }
        };
        if queues > 1 {
            let sysfs = NetSysfs::mount(&self.namespace)?;
            for queue in 0..queues {
                let cpus = forwarding_cpus.iter().filter(|c| **c % queues == queue);
                let path = format!("class/net/{}/queues/tx-{queue}/xps_cpus", self.outside.name);
                sysfs.write(&path, &cpu_mask(cpus))?;
            }
        }
        Ok(())
    }
}

/// A CPU mask as sysfs wants it: hexadecimal words of 32 bits, the highest first, separated by commas.
fn cpu_mask<'a>(cpus: impl Iterator<Item = &'a u32>) -> String {
    let mut words = vec![0u32];
    for cpu in cpus {
        let word = *cpu as usize / 32;
        words.resize(words.len().max(word + 1), 0);
        words[word] |= 1 << (cpu % 32);
    }
    words.iter().rev().map(|w| format!("{w:08x}")).collect::<Vec<_>>().join(",")
}

/// Loads a rule set by nft itself, which reads it from its standard input: no shell, no file.
fn load_ruleset(namespace: &Netns, variant: &Variant, rules: &str) -> Result<(), LabError> {
    let failed = |reason: String| LabError::Rules { variant: variant.to_string(), reason };
    let mut command = namespace.command("nft");
    command.args(["-f", "-"]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => failed("nft is not installed: apt-get install nftables".into()),
        _ => failed(e.to_string()),
    })?;
    let mut stdin = child.stdin.take().expect("stdin is piped");
    stdin.write_all(rules.as_bytes()).map_err(|e| failed(e.to_string()))?;
    drop(stdin);
    let output = child.wait_with_output().map_err(|e| failed(e.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks() {
        assert_eq!(cpu_mask([].iter()), "00000000");
        assert_eq!(cpu_mask([0, 1].iter()), "00000003");
        assert_eq!(cpu_mask([33].iter()), "00000002,00000000");
    }
}
