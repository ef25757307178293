//! All settings of a setup are in place, and settings that cannot be made are refused by name.

use super::bench::{Frames, ask, lab, refusal, send, spec, sysfs};
use linerate_linux::lab::addresses;
use linerate_linux::lab::{EmbeddedLab, Interface, LabSpec, Setup};
use linerate_linux::net::Netns;
use linerate_linux::net::ethtool::Ethtool;
use linerate_linux::net::napi;
use linerate_linux::net::netlink::Route;
use linerate_plan::settings::{
    self, CardSetting, CardValue, Command, Dut, End, File, More, Neighbour, Settings,
};
use linerate_wire::Family;
use std::time::{Duration, Instant};

fn plain() -> Setup {
    Setup::of(Dut::Forwarding)
}

fn with(settings: Settings) -> Setup {
    Setup {
        settings,
        ..plain()
    }
}

/// How many of a card's queues are in use.
fn count_of(lab: &EmbeddedLab, queues: &str) -> usize {
    let there = |n: &u32| {
        linerate_linux::net::sysfs::exists(namespace(lab), &format!("class/net/{queues}-{n}"))
    };
    (0..).take_while(there).count()
}

fn command(line: &str) -> Command {
    Command {
        run: line.into(),
        undo: None,
        within_ns: None,
    }
}

fn namespace(lab: &EmbeddedLab) -> &Netns {
    &lab.lanes[0].dut.as_ref().unwrap().namespace
}

fn feature(lab: &EmbeddedLab, card: &str, name: &str) -> bool {
    let features = Ethtool::open(namespace(lab))
        .unwrap()
        .features(card)
        .unwrap();
    features
        .into_iter()
        .find(|f| f.name == name)
        .unwrap()
        .active
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn sysctls_are_set_in_either_spelling() {
    let mut setup = plain();
    for (key, value) in [
        ("net.ipv4.ip_early_demux", "0"),
        ("net/ipv4/conf/in0/log_martians", "1"),
        ("net.ipv4.tcp_rmem", "4096 65536 1000000"),
        ("net.ipv6.conf.out0.hop_limit", "33"),
    ] {
        setup.settings.sysctls.insert(key.into(), value.into());
    }
    let lab = lab(&setup);
    let read = |key: &str| linerate_linux::net::sysctl::get(namespace(&lab), key).unwrap();
    assert_eq!(read("net/ipv4/ip_early_demux"), "0");
    assert_eq!(read("net/ipv4/conf/in0/log_martians"), "1");
    assert_eq!(read("net/ipv4/tcp_rmem"), "4096\t65536\t1000000");
    assert_eq!(read("net/ipv6/conf/out0/hop_limit"), "33");
    send(&lab, Frames::of(Family::V4)).is_whole("sysctls");
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn sysctls_that_cannot_be_set_are_named() {
    for (key, value, words) in [
        ("net.ipv4.no_such_key", "1", "no_such_key"),
        ("net.ipv4.ip_forward", "x", "ip_forward"),
        (
            "net.netfilter.nf_conntrack_max",
            "123456789",
            "sysctl -w net.netfilter.nf_conntrack_max=123456789",
        ),
        ("kernel.panic", "77", "sysctl -w kernel.panic=77"),
        (
            "net.core.netdev_budget",
            "301",
            "sysctl -w net.core.netdev_budget=301",
        ),
        ("net..ipv4", "1", "net..ipv4"),
        ("../../etc/passwd", "1", "../../etc/passwd"),
        ("net.ipv4.ip_forward\n", "1", "ip_forward"),
    ] {
        let mut setup = plain();
        setup.settings.sysctls.insert(key.into(), value.into());
        let refused = refusal(&setup).to_string();
        // A network namespace other than the first does not have it.
        let there = std::path::Path::new("/proc/sys")
            .join(key.replace('.', "/"))
            .exists();
        let words = if key.starts_with("net.core.") && !there {
            "netdev_budget"
        } else {
            words
        };
        assert!(refused.contains(words), "{key}: {refused}");
    }
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn mtus_are_set_at_the_duts_ends_alone() {
    let mut setup = plain();
    (setup.settings.inside.mtu, setup.settings.outside.mtu) = (Some(1400), Some(9000));
    let lab = lab(&setup);
    assert_eq!(sysfs(&lab, "class/net/in0/mtu"), "1400");
    assert_eq!(sysfs(&lab, "class/net/out0/mtu"), "9000");
    let mtu = |end: &Interface| end.link().unwrap().mtu;
    assert_eq!(
        (mtu(&lab.lanes[0].generator), mtu(&lab.lanes[0].receiver)),
        (1500, 1500)
    );
    // The receiver's program is on the other end of a link of 9000 bytes.
    send(&lab, Frames::of(Family::V4)).is_whole("mtu 9000");
    setup.settings.inside = setup.settings.outside.clone();
    let both = setup;
    send(
        &super::bench::lab(&both),
        Frames {
            len_fcs: 1518,
            ..Frames::of(Family::V4)
        },
    )
    .is_whole("mtu 9000 on both");
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn offloads_are_switched() {
    let mut setup = plain();
    for (name, on) in [
        (CardSetting::Gro, false),
        (CardSetting::Gso, false),
        (CardSetting::Tso, false),
        (CardSetting::RxChecksum, false),
    ] {
        setup
            .settings
            .inside
            .set
            .insert(name, CardValue::Switch(on));
    }
    for (name, on) in [
        (CardSetting::TxChecksum, false),
        (CardSetting::UdpGroForwarding, true),
        (CardSetting::Lro, false),
    ] {
        setup
            .settings
            .outside
            .set
            .insert(name, CardValue::Switch(on));
    }
    let lab = lab(&setup);
    for name in [
        "rx-gro",
        "tx-generic-segmentation",
        "tx-tcp-segmentation",
        "tx-tcp6-segmentation",
        "rx-checksum",
    ] {
        assert!(!feature(&lab, "in0", name), "{name}");
    }
    assert!(!feature(&lab, "out0", "tx-checksum-ip-generic"));
    assert!(feature(&lab, "out0", "rx-udp-gro-forwarding"));
    // Without GRO a program keeps the inside interface polled, or every redirected frame would be lost.
    send(&lab, Frames::of(Family::V4)).is_whole("without GRO");
    let mut merged = plain();
    merged
        .settings
        .inside
        .set
        .insert(CardSetting::Gro, CardValue::Switch(true));
    merged
        .settings
        .inside
        .set
        .insert(CardSetting::UdpGroForwarding, CardValue::Switch(true));
    let lab = super::bench::lab(&merged);
    assert!(feature(&lab, "in0", "rx-gro") && feature(&lab, "in0", "rx-udp-gro-forwarding"));
    send(
        &lab,
        Frames {
            flows: 1,
            ..Frames::of(Family::V4)
        },
    )
    .is_whole("frames merged and cut up again");
    let mut impossible = plain();
    impossible
        .settings
        .inside
        .set
        .insert(CardSetting::Lro, CardValue::Switch(true));
    assert!(refusal(&impossible).to_string().contains("rx-lro"));
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn queues_and_steering_are_set() {
    let mut setup = plain();
    setup
        .settings
        .inside
        .set
        .insert(CardSetting::Queues, CardValue::Number(2));
    setup
        .settings
        .outside
        .set
        .insert(CardSetting::Queues, CardValue::Number(3));
    for (name, number) in [
        (CardSetting::GroFlushTimeout, 20_000),
        (CardSetting::NapiDeferHardIrqs, 2),
    ] {
        setup
            .settings
            .inside
            .set
            .insert(name, CardValue::Number(number));
    }
    setup.settings.inside.rps = Some(vec![0, 1]);
    setup.settings.outside.xps = Some(vec![1, 0]);
    let lab = lab(&setup);
    let in_use = [
        "in0/queues/rx",
        "in0/queues/tx",
        "out0/queues/rx",
        "out0/queues/tx",
    ];
    assert_eq!(in_use.map(|queues| count_of(&lab, queues)), [2, 2, 3, 3]);
    for queue in ["rx-0", "rx-1"] {
        assert_eq!(
            mask(&sysfs(
                &lab,
                &format!("class/net/in0/queues/{queue}/rps_cpus")
            )),
            3
        );
    }
    let xps = |queue: &str| {
        mask(&sysfs(
            &lab,
            &format!("class/net/out0/queues/{queue}/xps_cpus"),
        ))
    };
    assert_eq!((xps("tx-0"), xps("tx-1"), xps("tx-2")), (2, 1, 0));
    let of = |file: &str| sysfs(&lab, &format!("class/net/in0/{file}"));
    assert_eq!(
        (of("gro_flush_timeout"), of("napi_defer_hard_irqs")),
        ("20000".into(), "2".into())
    );
    send(&lab, Frames::of(Family::V4)).is_whole("queues");
}

/// Frames steered to another CPU wait in its backlog, which is finite.
#[test]
#[ignore = "needs root: run by make test as root"]
fn what_steering_loses_is_located() {
    let mut setup = plain();
    setup.settings.inside.rps = Some(vec![1]);
    let lab = lab(&setup);
    let shown = send(
        &lab,
        Frames {
            count: 30_000,
            rate: None,
            ..Frames::of(Family::V4)
        },
    );
    assert!(
        shown.account.balances(&shown.sent, &shown.received),
        "{:?}",
        shown.account
    );
    println!("{:?} {:?}", shown.account.losses, shown.account.dut);
    assert_eq!(shown.lost("inside the DUT"), 0, "{:?}", shown.account);
}

/// The kernel shows a mask with as many words as it has CPUs.
fn mask(text: &str) -> u64 {
    u64::from_str_radix(&text.replace(',', ""), 16).unwrap()
}

/// More generator CPUs than queues at the DUT, with a program at its inside: the generator's end must have fewer as well.
#[test]
#[ignore = "needs root: run by make test as root"]
fn a_dut_may_have_fewer_queues_than_the_generator_has_cpus() {
    let mut setup = plain();
    setup
        .settings
        .inside
        .set
        .insert(CardSetting::Queues, CardValue::Number(1));
    setup
        .settings
        .inside
        .set
        .insert(CardSetting::Gro, CardValue::Switch(true));
    let spec = LabSpec {
        generator_cpus: vec![0, 1],
        ..spec()
    };
    let lab = EmbeddedLab::build(spec, &[setup]).unwrap();
    assert_eq!(count_of(&lab, "in0/queues/rx"), 1);
    let shown = send(&lab, Frames::of(Family::V4));
    assert!(
        shown.account.balances(&shown.sent, &shown.received),
        "{:?}",
        shown.account
    );
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn napi_threads_run_where_the_setup_says() {
    let mut setup = plain();
    setup
        .settings
        .inside
        .set
        .insert(CardSetting::ThreadedNapi, CardValue::Switch(true));
    setup.settings.inside.irq = Some(vec![1]);
    let lab = lab(&setup);
    assert_eq!(sysfs(&lab, "class/net/in0/threaded"), "1");
    let threads = napi::threads(namespace(&lab), "in0").unwrap();
    assert_eq!(threads.len(), 1);
    let status = std::fs::read_to_string(format!("/proc/{}/status", threads[0].pid)).unwrap();
    let cpus = status
        .lines()
        .find_map(|l| l.strip_prefix("Cpus_allowed_list:"))
        .unwrap();
    assert_eq!(cpus.trim(), "1");
    let shown = send(&lab, Frames::of(Family::V4));
    assert!(
        shown.account.balances(&shown.sent, &shown.received),
        "{:?}",
        shown.account
    );
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn routes_and_neighbours_are_there_and_take_no_frame() {
    let route = |to: &str, via: Option<&str>, end| settings::Route {
        to: to.parse().unwrap(),
        via: via.map(|via| via.parse().unwrap()),
        end,
    };
    let neighbour = Neighbour {
        address: "198.19.0.3".parse().unwrap(),
        mac: "02:00:00:00:00:03".parse().unwrap(),
        end: End::Out,
    };
    let setup = with(Settings {
        routes: More {
            count: Some(5000),
            explicit: vec![
                route("203.0.113.0/24", None, End::In),
                route("2001:db8::/32", Some("2001:2:0:8000::2"), End::Out),
            ],
        },
        neighbours: More {
            count: Some(2000),
            explicit: vec![neighbour],
        },
        ..Settings::default()
    });
    let lab = lab(&setup);
    let lines = |args: &[&str]| {
        let count = format!("ip {} | wc -l", args.join(" "));
        ask(&lab, "sh", &["-c", &count])
            .trim()
            .parse::<usize>()
            .unwrap()
    };
    assert!(lines(&["-4", "route"]) >= 5001);
    assert!(lines(&["-6", "route"]) >= 5001);
    assert!((5001..5010).contains(&lines(&["-4", "route"])));
    assert!(lines(&["-4", "neighbour", "show", "dev", "out0", "nud", "permanent"]) >= 2001);
    assert!(lines(&["-6", "neighbour", "show", "dev", "out0", "nud", "permanent"]) >= 2000);
    assert!(
        ask(&lab, "ip", &["route", "show", "203.0.113.0/24"]).contains("via 198.18.1.2 dev in0")
    );
    assert!(
        ask(&lab, "ip", &["neighbour", "show", "198.19.0.3"])
            .contains("02:00:00:00:00:03 PERMANENT")
    );
    send(&lab, Frames::of(Family::V4)).is_whole("routes");
    send(
        &lab,
        Frames {
            len_fcs: 90,
            ..Frames::of(Family::V6)
        },
    )
    .is_whole("routes");
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn many_routes_are_added_and_errors_are_located() {
    let lab = lab(&plain());
    let (route, out) = (
        Route::open(namespace(&lab)).unwrap(),
        lab.lanes[0].dut.as_ref().unwrap().outside.index,
    );
    let gateway = [Family::V4, Family::V6]
        .map(|f| addresses::RECEIVER_SIDE[usize::from(f == Family::V6)].tester);
    for (family, gateway, count) in [
        (Family::V4, gateway[0], 40_000),
        (Family::V6, gateway[1], 10_000),
    ] {
        let routes = addresses::routes(family, count);
        let added = route
            .add_routes(routes, Some(gateway), out, || true)
            .unwrap();
        assert_eq!(added, u64::from(count));
    }
    let bad = std::net::IpAddr::from([10, 0, 0, 1]);
    let mixed = (0..3000u32).map(|n| (bad, if n == 2345 { 8 } else { 32 }));
    let error = route
        .add_routes(mixed, Some(gateway[0]), out, || true)
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("cannot add route number 2346 of many on interface out0"),
        "{error}"
    );
    let mut asked = 0;
    let routes = addresses::routes(Family::V4, 100_000);
    let stopped = route.add_routes(routes, Some(gateway[0]), out, || {
        asked += 1;
        asked < 3
    });
    assert!(
        (1..100_000).contains(&stopped.unwrap()),
        "it did not stop when told to"
    );
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn files_and_commands_are_the_lanes_own() {
    let setup = with(Settings {
        files: vec![File {
            path: "etc/x.conf".into(),
            text: "hello\n".into(),
        }],
        commands: vec![
            command("echo 1 > /sys/class/net/out0/gro_flush_timeout"),
            // A daemon: it leaves its group before the command ends.
            command(
                "setsid -f sh -c 'echo > begun; exec sleep 171'; until [ -e begun ]; do sleep 0.01; done",
            ),
        ],
        ..Settings::default()
    });
    let lab = lab(&setup);
    let said = |line| ask(&lab, "sh", &["-c", line]);
    assert_eq!(
        said("pwd; cat etc/x.conf"),
        "/run/linerate/scratch\nhello\n"
    );
    assert_eq!(said("ls /sys/class/net"), "in0\nlo\nout0\n");
    assert_eq!(sysfs(&lab, "class/net/out0/gro_flush_timeout"), "1");
    let scratch = std::fs::read_dir("/run/linerate/scratch").unwrap().count();
    assert_eq!(scratch, 0, "the host sees the lane's files");
    let sleeping = || {
        let tasks = std::fs::read_dir("/proc").unwrap().flatten();
        tasks
            .filter(|t| {
                std::fs::read(t.path().join("cmdline")).is_ok_and(|c| c == b"sleep\x00171\0")
            })
            .count()
    };
    assert_eq!(sleeping(), 1);
    drop(lab);
    let end = Instant::now() + Duration::from_secs(60);
    while sleeping() > 0 {
        assert!(
            Instant::now() < end,
            "what a command left running outlives the lab"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn commands_that_fail_or_hang_are_the_lane_s_fault_and_are_undone() {
    let mark = std::env::temp_dir().join(format!("linerate-undone-{}", std::process::id()));
    let _ = std::fs::remove_file(&mark);
    let run = |commands| {
        let mut lab = lab(&with(Settings {
            commands,
            ..Settings::default()
        }));
        lab.lanes[0].fault.take().unwrap()
    };
    let undo = Some(format!("touch {}", mark.display()));
    let refused = run(vec![
        Command {
            undo,
            ..command("true")
        },
        command("echo why >&2; false"),
    ]);
    assert!(
        refused.contains("cannot run 'echo why >&2; false': sh failed (exit status: 1): why"),
        "{refused}"
    );
    assert!(mark.exists(), "the first command was not undone");
    std::fs::remove_file(&mark).unwrap();
    let hung = run(vec![Command {
        within_ns: Some(200_000_000),
        ..command("sleep 72")
    }]);
    assert!(
        hung.contains("did not end within 0.2 s and was killed"),
        "{hung}"
    );
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn hostile_interface_names_are_refused() {
    let ns = Netns::anonymous().unwrap();
    let route = Route::open(&ns).unwrap();
    for name in ["", "..", "a/b", "a b", "a\nb", "a:b", "sixteen-bytes-xx"] {
        assert!(route.create_macvlan(name, [2; 6], 1).is_err(), "{name:?}");
        assert!(route.create_vlan(name, [2; 6], 1, 2).is_err(), "{name:?}");
        assert!(route.create_bridge(name).is_err(), "{name:?}");
    }
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn modules_are_checked_by_name() {
    let modules = |names: &[&str]| {
        let modules = names.iter().map(|name| (*name).into()).collect();
        with(Settings {
            modules,
            ..Settings::default()
        })
    };
    lab(&modules(&["vxlan", "nf_conntrack"]));
    let missing = refusal(&modules(&["no_such_module"])).to_string();
    assert!(missing.contains("no_such_module"), "{missing}");
}
