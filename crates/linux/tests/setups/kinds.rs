//! Every kind of DUT, end to end.

use super::bench::{Frames, ask, built_in, lab, refusal, send, spec};
use linerate_linux::lab::support;
use linerate_linux::lab::{EmbeddedLab, LabSpec, Setup};
use linerate_linux::net::programs;
use linerate_measure::record::Mode;
use linerate_plan::campaign::Requirement;
use linerate_plan::settings::Dut;
use linerate_wire::Family;

const KINDS: [Dut; 12] = [
    Dut::TesterBaseline,
    Dut::Forwarding,
    Dut::Bridge,
    Dut::RoutedBridge,
    Dut::Macvlan,
    Dut::Vxlan,
    Dut::Nested,
    Dut::Vlan,
    Dut::Vrf,
    Dut::TwoRouters,
    Dut::Xdp,
    Dut::KnownDelay(1000),
];

#[test]
#[ignore = "needs root: run by make test as root"]
fn every_kind_carries_every_frame() {
    for dut in KINDS {
        let setup = Setup::of(dut);
        let lacking = setup.lacking();
        if !lacking.is_empty() {
            // Only features that this kernel may really lack are skipped, and building such a setup must be refused for the same
            // reason.
            let named = match dut {
                Dut::Vlan => "802.1Q",
                Dut::Vrf => "VRF",
                _ => panic!("{lacking:?}"),
            };
            assert!(lacking[0].contains(named), "{lacking:?}");
            let refused = refusal(&setup).to_string();
            let made = format!("create {dut} interface");
            assert!(refused.contains(&made), "{refused}");
            continue;
        }
        let lab = lab(&setup);
        for (family, len_fcs) in [(Family::V4, 64), (Family::V6, 1500)] {
            let frames = Frames {
                len_fcs,
                count: 400,
                ..Frames::of(family)
            };
            send(&lab, frames).is_whole(&format!("{dut} {family} {len_fcs}"));
        }
    }
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn built_in_variants_carry_every_frame() {
    for variant in ["nft-stateless", "nft-stateful", "nat"] {
        let lab = lab(&built_in(variant));
        for family in [Family::V4, Family::V6] {
            let frames = Frames {
                len_fcs: 90,
                count: 400,
                ..Frames::of(family)
            };
            send(&lab, frames).is_whole(&format!("{variant} {family}"));
        }
    }
}

/// In threaded mode, frames change CPUs on their way; the kinds with several hops have more rings that could lose some.
#[test]
#[ignore = "needs root: run by make test as root"]
fn threaded_labs_carry_or_locate_every_frame() {
    let cpus = std::thread::available_parallelism().unwrap().get() as u32;
    let dut_cpus = vec![cpus - 1];
    let spec = LabSpec {
        mode: Mode::Threaded,
        dut_cpus,
        longest_fcs: 1518,
        ..spec()
    };
    for dut in [Dut::Macvlan, Dut::RoutedBridge] {
        let lab = EmbeddedLab::build(spec.clone(), &[Setup::of(dut)]).unwrap();
        let shown = send(&lab, Frames::of(Family::V4));
        assert!(
            shown.account.balances(&shown.sent, &shown.received),
            "{dut}: {:?}",
            shown.account
        );
        assert_eq!(
            shown.lost("inside the DUT"),
            0,
            "{dut}: {:?}",
            shown.account
        );
    }
}

/// At the full speed of the machine, each missing frame was lost at a known place.
#[test]
#[ignore = "needs root: run by make test as root"]
fn nothing_is_lost_without_trace_at_full_speed() {
    let cpus = std::thread::available_parallelism().unwrap().get() as u32;
    let kinds = [
        Dut::Forwarding,
        Dut::Vxlan,
        Dut::Nested,
        Dut::Macvlan,
        Dut::RoutedBridge,
    ];
    for (mode, kinds) in [(Mode::Inline, &kinds[..]), (Mode::Threaded, &kinds[..3])] {
        let dut_cpus = if mode == Mode::Threaded {
            vec![cpus - 1]
        } else {
            Vec::new()
        };
        let spec = LabSpec {
            mode,
            dut_cpus,
            ..spec()
        };
        for &dut in kinds {
            let lab = EmbeddedLab::build(spec.clone(), &[Setup::of(dut)]).unwrap();
            let shown = send(
                &lab,
                Frames {
                    count: 20_000,
                    rate: None,
                    ..Frames::of(Family::V4)
                },
            );
            assert!(
                shown.account.balances(&shown.sent, &shown.received),
                "{dut} {mode:?}: {:?}",
                shown.account
            );
            let lost = shown.sent.frames - shown.received.unique();
            println!("{dut} {mode:?}: {lost} lost: {:?}", shown.account.losses);
            assert_eq!(
                shown.lost("inside the DUT"),
                0,
                "{dut} {mode:?}: {:?}",
                shown.account
            );
        }
    }
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn frames_are_tunnelled_and_arrive_as_they_were() {
    let lab = lab(&Setup::of(Dut::Vxlan));
    let before = ask(&lab, "ip", &["-s", "-j", "link", "show", "under0"]);
    let shown = send(&lab, Frames::of(Family::V4));
    shown.is_whole("vxlan");
    let after = ask(&lab, "ip", &["-s", "-j", "link", "show", "under0"]);
    let sent = |text: &str| {
        let links: serde_json::Value = serde_json::from_str(text).unwrap();
        let tx = &links[0]["stats64"]["tx"];
        [
            tx["packets"].as_u64().unwrap(),
            tx["bytes"].as_u64().unwrap(),
        ]
    };
    let [packets, bytes] = [0, 1].map(|i| sent(&after)[i] - sent(&before)[i]);
    // The kernel may report its multicast groups meanwhile, in a frame or a few.
    let reports = packets.checked_sub(shown.entered()).unwrap();
    assert!(reports <= 5, "{packets}");
    // 60 bytes of the frame without FCS and 50 of the tunnel.
    let frames = shown.entered() * (60 + 50);
    assert!(
        (frames..=frames + 200 * reports).contains(&bytes),
        "{bytes} in {packets}"
    );
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn a_nested_router_forwards_in_a_namespace_behind_the_first() {
    let lab = lab(&Setup::of(Dut::Nested));
    let links = ask(&lab, "ip", &["-o", "link"]);
    assert!(
        links.contains("in0") && links.contains("out0") && !links.contains("card-in0"),
        "{links}"
    );
    let dut = lab.lanes[0].dut.as_ref().unwrap();
    assert_eq!(
        (dut.inside.name.as_str(), dut.outside.name.as_str()),
        ("card-in0", "card-out0")
    );
    let roles: Vec<String> = lab.names("x").into_keys().collect();
    assert_eq!(
        roles,
        [
            "dut 0 (nested)",
            "dut 0, host (nested)",
            "generator",
            "receiver"
        ]
    );
}

/// Lanes of all kinds stand side by side, and do not see each other's frames.
#[test]
#[ignore = "needs root: run by make test as root"]
fn kinds_stand_side_by_side() {
    let kinds = [
        Dut::TesterBaseline,
        Dut::Macvlan,
        Dut::Vxlan,
        Dut::Nested,
        Dut::Forwarding,
    ];
    let setups = kinds.map(Setup::of);
    let lab = EmbeddedLab::build(spec(), &setups).unwrap();
    assert_eq!(lab.lanes.len(), 5);
    send(&lab, Frames::of(Family::V4)).is_whole("tester-baseline beside others");
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn probes_say_what_this_kernel_lacks_and_leave_nothing() {
    let namespaces = || std::fs::read_dir("/run/netns").map_or(0, |names| names.count());
    let before = namespaces();
    let loaders = [
        "iptables-legacy-restore",
        "iptables-nft-restore",
        "nft",
        "ipset",
    ];
    let loaders = loaders.map(|name| Requirement::Tool(name.into()));
    let links = ["bridge", "macvlan", "vlan", "vxlan"].map(|kind| Requirement::Link(kind.into()));
    let tracking = Requirement::Sysctl("net.netfilter.nf_conntrack_max".into());
    let needs = loaders.into_iter().chain(links).chain([tracking]);
    let xdp = ("XDP".to_string(), support::no_xdp());
    for (need, lacking) in needs
        .map(|need| (format!("{need:?}"), support::unmet(&need)))
        .chain([xdp])
    {
        println!("{need}: {}", lacking.as_deref().unwrap_or("there"));
        if let Some(reason) = lacking {
            assert!(reason.len() > 10, "{need}: {reason}");
        }
    }
    assert_eq!(namespaces(), before);
    assert!(support::unmet(&Requirement::Link("veth".into())).is_none());
    assert!(support::unmet(&Requirement::Link("gre".into())).is_some());
    assert!(support::unmet(&Requirement::Sysctl("net.ipv4.ip_forward".into())).is_none());
    // A network namespace other than the first has none of these.
    let budget = std::path::Path::new("/proc/sys/net/core/netdev_budget").exists();
    let unmet = support::unmet(&Requirement::Sysctl("net.core.netdev_budget".into()));
    assert_eq!(unmet.is_none(), budget, "{unmet:?}");
    assert!(
        support::unmet(&Requirement::Sysctl("net.ipv4.no_such".into()))
            .unwrap()
            .contains("no_such")
    );
}

/// The program of this kind is attached by a link of tcx, which iproute2 does not show.
#[test]
#[ignore = "needs root: run by make test as root"]
fn programs_of_tcx_are_listed() {
    let listed = |dut| {
        let lab = lab(&Setup::of(dut));
        let dut = lab.lanes[0].dut.as_ref().unwrap();
        programs::of_tcx(&dut.namespace).unwrap()
    };
    assert_eq!(listed(Dut::Forwarding), "==> tcx <==\n[]\n");
    let doubled = listed(Dut::KnownDuplication(10));
    for part in [
        "\"devname\":\"out0\"",
        "\"kind\":\"tcx/egress\"",
        "\"name\":\"known_duplicat",
    ] {
        assert!(doubled.contains(part), "{part}: {doubled}");
    }
}
