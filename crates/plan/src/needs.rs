//! Requirements of a configuration, and its settings that reach beyond a network namespace: both follow from the settings.

use super::campaign::Requirement;
use super::settings::{CardSetting, Cpus, Dut, Settings};
use super::sysctl::is_namespaced;
use crate::rules::{Kind, RuleSet};
use std::collections::BTreeSet;

/// Settings on which lanes of one group must agree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shared {
    /// Settings of the whole host, or those that take effect at boot.
    pub settings: Vec<String>,
    /// The size of connection tracking's hash, which all namespaces share; `None` if nothing is tracked and any size suits.
    pub hash: Option<String>,
}

impl Shared {
    /// Whether both are possible at once.
    pub fn agrees(&self, other: &Shared) -> bool {
        let hash = self
            .hash
            .as_ref()
            .zip(other.hash.as_ref())
            .is_none_or(|(a, b)| a == b);
        self.settings == other.settings && hash
    }
}

/// The settings that all namespaces of a host share. Two lanes that differ in them cannot stand side by side. Limits that are
/// raised (of states, of steered flows) are not among them: the largest suits all.
pub(super) fn host_wide(settings: &Settings) -> Shared {
    let host = settings
        .sysctls
        .iter()
        .filter(|(name, _)| !is_namespaced(name));
    let tracking = settings
        .rules
        .as_ref()
        .filter(|rules| rules.kind != Kind::Stateless);
    let file = settings
        .rule_file
        .as_ref()
        .filter(|file| file.tracks())
        .map(|_| "as it is".to_string());
    let hash = tracking.map(|rules| match (rules.states, rules.hash_sized) {
        (Some(states), true) => format!("for {states} states"),
        // One hash holds the states of all namespaces: many of one lane lengthen the chains that another's frames walk.
        (Some(states), false) if states > FEW_STATES => format!("as it is, with {states} states"),
        _ => "as it is".into(),
    });
    let kernel = settings.kernel.iter().map(|name| format!("kernel {name}"));
    Shared {
        settings: host
            .map(|(name, value)| format!("{name}={value}"))
            .chain(kernel)
            .collect(),
        hash: hash.or(file),
    }
}

/// So many states do not fill the smallest hash that Linux makes by itself (1,024 buckets, and 65,536 and more with a gigabyte of
/// memory; nf_conntrack_init_start in net/netfilter/nf_conntrack_core.c).
const FEW_STATES: u64 = 10_000;

/// The settings that take effect at boot. Between lanes that differ in them, the host reboots.
pub(super) fn of_boot(settings: &Settings) -> Shared {
    let mut all: Vec<String> = settings
        .boot
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let image = settings.image.as_ref();
    all.extend(image.map(|i| {
        format!(
            "image {} by `{}`, undone by `{}`",
            i.file, i.install, i.undo
        )
    }));
    // The hash of FreeBSD's pf is a loader tunable, net.pf.states_hashsize.
    let sized = settings
        .rules
        .as_ref()
        .filter(|rules| rules.hash_sized && rules.firewall.is_pf());
    all.extend(
        sized
            .and_then(|rules| rules.states)
            .map(|states| format!("hash of {states} states")),
    );
    Shared {
        settings: all,
        hash: None,
    }
}

/// Requirements that follow from the settings on Linux. On other systems the plan must name them, because nothing can be assumed.
pub(super) fn of_settings(settings: &Settings, linux: bool) -> Vec<Requirement> {
    let mut needs = BTreeSet::new();
    if let Some(Cpus::Count(n)) = settings.cpus {
        needs.insert(Requirement::Cpus(n));
    }
    needs.extend(settings.modules.iter().cloned().map(Requirement::Module));
    needs.extend(
        settings
            .path
            .as_ref()
            .map(|_| Requirement::Tool("iperf3".into())),
    );
    if linux {
        of_linux(settings, &mut needs);
    }
    let written = settings
        .rules
        .iter()
        .flat_map(RuleSet::loads)
        .map(|load| load.program);
    let programs = written.chain(settings.rule_file.as_ref().map(|file| file.program().0));
    // The shell reads a script, but the script runs ipfw.
    needs.extend(programs.map(|p| Requirement::Tool(if p == "sh" { "ipfw" } else { p }.into())));
    needs.into_iter().collect()
}

fn of_linux(settings: &Settings, needs: &mut BTreeSet<Requirement>) {
    // nf_flow_table_inet has the flow tables of IPv4 and IPv6, too.
    if settings
        .rules
        .as_ref()
        .is_some_and(|rules| rules.flow_table)
    {
        let modules = ["nft_flow_offload", "nf_flow_table_inet"];
        needs.extend(modules.map(|name| Requirement::Module(name.into())));
    }
    let link = match settings.dut {
        Dut::Bridge | Dut::RoutedBridge => Some("bridge"),
        Dut::Macvlan => Some("macvlan"),
        Dut::Vxlan => Some("vxlan"),
        Dut::Vlan => Some("vlan"),
        Dut::Vrf => Some("vrf"),
        dut => dut.tunnel().map(|tunnel| tunnel.link),
    };
    needs.extend(link.map(|l| Requirement::Link(l.into())));
    let ends = [&settings.inside, &settings.outside];
    if ends
        .iter()
        .any(|end| end.is_on(CardSetting::ThreadedNapi) == Some(true))
    {
        // veth has it since then; see drivers/net/veth.c and dev_set_threaded.
        needs.insert(Requirement::Kernel(5, 17));
    }
    if ends.iter().any(|e| e.rps.is_some() || e.rfs.is_some()) {
        needs.insert(Requirement::File(
            "/sys/class/net/lo/queues/rx-0/rps_cpus".into(),
        ));
    }
    let cpus = ends
        .iter()
        .flat_map(|e| [&e.rps, &e.xps, &e.irq])
        .flatten()
        .flatten();
    needs.extend(cpus.max().map(|highest| Requirement::Cpus(highest + 1)));
    needs.extend(
        settings
            .sysctls
            .keys()
            .filter(|n| !n.contains('{'))
            .cloned()
            .map(Requirement::Sysctl),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::Firewall;
    use crate::settings::{Image, Interface};

    #[test]
    fn lanes_share_the_settings_of_the_host() {
        let mut settings = Settings::default();
        settings
            .sysctls
            .insert("net.ipv4.ip_forward".into(), "1".into());
        assert!(host_wide(&settings).settings.is_empty());
        settings
            .sysctls
            .insert("net.core.rmem_max".into(), "600".into());
        assert_eq!(host_wide(&settings).settings, ["net.core.rmem_max=600"]);
    }

    #[test]
    fn what_tracks_nothing_stands_beside_any_hash() {
        let tracking = |states: Option<u64>, hash_sized| {
            let rules = RuleSet {
                states,
                hash_sized,
                ..RuleSet::new(Firewall::Nftables, Kind::Stateful)
            };
            host_wide(&Settings {
                rules: Some(rules),
                ..Settings::default()
            })
        };
        let plain = host_wide(&Settings::default());
        let (small, large, sized) = (
            tracking(Some(100), false),
            tracking(Some(1_000_000), false),
            tracking(Some(100), true),
        );
        assert!(
            [&small, &large, &sized]
                .iter()
                .all(|other| plain.agrees(other))
        );
        assert!(small.agrees(&tracking(None, true)));
        assert!(!small.agrees(&large) && !small.agrees(&sized) && !large.agrees(&sized));
    }

    #[test]
    fn images_have_a_reboot_between_them() {
        let with = |file: &str| {
            let [install, undo] = ["cat >/k", "rm /k"].map(String::from);
            let image = Some(Image {
                file: file.into(),
                install,
                undo,
            });
            of_boot(&Settings {
                image,
                ..Settings::default()
            })
        };
        assert!(with("a").agrees(&with("a")));
        assert!(!with("a").agrees(&with("b")) && !with("a").agrees(&of_boot(&Settings::default())));
    }

    #[test]
    fn needs_follow_from_settings() {
        let rules = RuleSet {
            table: Some(10),
            ..RuleSet::new(Firewall::Iptables, Kind::Stateless)
        };
        let inside = Interface {
            rps: Some(vec![1, 3]),
            ..Interface::default()
        };
        let settings = Settings {
            dut: Dut::Vlan,
            rules: Some(rules),
            inside,
            ..Settings::default()
        };
        let needs = of_settings(&settings, true);
        for need in [
            Requirement::Link("vlan".into()),
            Requirement::Tool("ipset".into()),
            Requirement::Cpus(4),
            Requirement::File("/sys/class/net/lo/queues/rx-0/rps_cpus".into()),
        ] {
            assert!(needs.contains(&need), "{need:?}");
        }
        assert!(!of_settings(&settings, false).contains(&Requirement::Link("vlan".into())));
    }
}
