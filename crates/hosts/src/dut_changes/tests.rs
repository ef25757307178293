//! The steps of variants on hosts. No text of a plan gets into a shell.

mod firewalls;

use super::*;
use linerate_plan::rules::{Firewall, Kind, RuleSet};
use linerate_plan::settings::{
    CardSetting, CardValue, Command, Dut, File, Image, Interface, More, Route,
};
use linerate_wire::Family;
use proptest::prelude::*;
use std::collections::BTreeMap;

fn port(name: &str, address: &str, hop: &str) -> Port {
    let networks = vec![
        if name.ends_with('1') {
            "198.18.0.0/16"
        } else {
            "198.19.0.0/16"
        }
        .into(),
    ];
    Port {
        name: name.into(),
        addresses: vec![address.into()],
        next_hops: vec![hop.into()],
        networks,
    }
}

fn target(system: System) -> Target {
    let (inside, outside) = if system == System::Linux {
        ("eth1", "eth2")
    } else {
        ("ix0", "ix1")
    };
    Target {
        system,
        inside: port(inside, "198.18.0.1/24", "198.18.0.108"),
        outside: port(outside, "198.19.0.1/24", "198.19.0.108"),
        config_save: None,
    }
}

/// Each change: its name, and the program with its undoing when `7` was read.
fn lines(steps: &Steps) -> Vec<String> {
    let words = |argv: &[String]| {
        let shown = argv
            .iter()
            .filter(|a| !a.contains(' ') && !a.contains('\n') && *a != "-c" && *a != "linerate");
        shown.cloned().collect::<Vec<_>>().join(" ")
    };
    let line = |step: &Step| {
        let undo = step.undoing("7").map_or("stays".into(), |u| words(&u.argv));
        format!("{}: {} / {undo}", step.what, words(&step.apply.argv))
    };
    steps.steps.iter().map(line).collect()
}

#[test]
fn a_step_that_another_undoes_names_it() {
    for system in [System::Linux, System::FreeBsd, System::OpenBsd] {
        for dut in [Dut::Bridge, Dut::Nested] {
            let mut settings = Settings {
                dut,
                ..Settings::default()
            };
            settings
                .sysctls
                .insert("net.inet.ip.redirect".into(), "0".into());
            let target = Target {
                config_save: Some("save".into()),
                ..target(system)
            };
            let Ok(Steps { steps, .. }) = steps(&settings, None, &target) else {
                assert!(system == System::OpenBsd && dut == Dut::Nested);
                continue;
            };
            let undone_with = |(at, step): (usize, &Step)| match &step.undo {
                Undo::With(other) => steps[..at].iter().any(|step| step.what == *other),
                Undo::Stays => panic!("{system} {dut}: {}", step.what),
                _ => true,
            };
            assert!(steps.iter().enumerate().all(undone_with), "{steps:#?}");
        }
    }
}

#[test]
fn a_router_of_freebsd() {
    let mut settings = Settings::default();
    settings
        .sysctls
        .insert("dev.{in.driver}.{in.unit}.fc".into(), "0".into());
    settings.inside = Interface {
        mtu: Some(9000),
        set: BTreeMap::from([
            (CardSetting::Tso, CardValue::Switch(false)),
            (CardSetting::Lro, CardValue::Switch(true)),
        ]),
        ..Interface::default()
    };
    settings.routes.explicit.push(Route {
        to: "203.0.113.0/24".parse().unwrap(),
        via: None,
        end: End::Out,
    });
    settings.commands.push(Command {
        run: "service x start".into(),
        undo: Some("service x stop".into()),
        within_ns: None,
    });
    let steps = steps(&settings, None, &target(System::FreeBsd)).unwrap();
    assert_eq!(
        lines(&steps),
        [
            "sysctl dev.ix.0.fc: sysctl dev.ix.0.fc=0 / sysctl dev.ix.0.fc=7",
            "MTU of ix0: ifconfig ix0 mtu 9000 / ifconfig ix0 mtu 7",
            "tso4 of ix0: ifconfig ix0 -tso4 / ifconfig ix0 7",
            "tso6 of ix0: ifconfig ix0 -tso6 / ifconfig ix0 7",
            "lro of ix0: ifconfig ix0 lro / ifconfig ix0 7",
            "route to 203.0.113.0/24: sh -inet 203.0.113.0/24 203.0.113.0 255.255.255.0 198.19.0.108 / sh -inet 203.0.113.0/24 198.19.0.108",
            "command `service x start`: sh / sh",
        ]
    );
    assert!(!steps.reboot);
}

#[test]
fn boot_settings_are_lines_of_the_loader_and_want_a_reboot() {
    let mut settings = Settings::default();
    settings
        .boot
        .insert("hw.{in.driver}.num_queues".into(), "1".into());
    let target = Target {
        config_save: Some("config save".into()),
        ..target(System::FreeBsd)
    };
    let steps = steps(&settings, None, &target).unwrap();
    assert!(steps.reboot);
    assert_eq!(
        steps.steps[1].apply.input,
        Input::Text("hw.ix.num_queues=\"1\"\n".into())
    );
    let back = steps.steps[1]
        .undoing("present\nautoboot_delay=\"1\"\n")
        .unwrap();
    assert_eq!(back.input, "present\nautoboot_delay=\"1\"\n");
    // Saved after each: the first step done is the last one undone.
    assert_eq!(steps.steps[0].undoing("").unwrap().argv, ["config", "save"]);
    assert_eq!(steps.steps[2].apply.argv, ["config", "save"]);
    settings.boot.insert("a\"; reboot".into(), "1".into());
    assert_eq!(super::steps(&settings, None, &target).unwrap_err().len(), 1);
}

#[test]
fn an_image_comes_before_what_it_would_replace() {
    let [file, install, undo] =
        ["/x/new.img.xz", "xzcat | upgrade", "boot0cfg -s 1 ada0"].map(String::from);
    let mut settings = Settings {
        image: Some(Image {
            file,
            install,
            undo,
        }),
        ..Settings::default()
    };
    let target = Target {
        config_save: Some("config save".into()),
        ..target(System::FreeBsd)
    };
    let alone = steps(&settings, None, &target).unwrap();
    assert_eq!(
        (alone.steps.len(), alone.image, alone.lasting, alone.reboot),
        (1, 1, 1, false)
    );
    settings.boot.insert("hw.ix.num_queues".into(), "1".into());
    settings.sysctls.insert("a".into(), "0".into());
    let steps = steps(&settings, None, &target).unwrap();
    assert_eq!(
        (steps.image, steps.lasting, steps.steps.len(), steps.reboot),
        (1, 4, 5, true)
    );
    let Step { apply, .. } = &steps.steps[0];
    assert_eq!(apply.argv.last().unwrap(), "xzcat | upgrade");
    assert_eq!(apply.input, Input::File("/x/new.img.xz".into()));
    let undoing = steps.steps[0].undoing("").unwrap();
    assert_eq!(undoing.argv, ["sh", "-c", "boot0cfg -s 1 ada0"]);
    assert_eq!(undoing.within_ns, Some(INSTALLATION_NS));
    assert_eq!(steps.steps[2].undoing("").unwrap().within_ns, None);
}

#[test]
fn segmentation_that_goes_with_checksums_is_put_back_after_them() {
    let set = BTreeMap::from([(CardSetting::TxChecksum, CardValue::Switch(false))]);
    let settings = Settings {
        inside: Interface {
            set,
            ..Interface::default()
        },
        ..Settings::default()
    };
    assert_eq!(
        lines(&steps(&settings, None, &target(System::FreeBsd)).unwrap()),
        [
            "tso4 of ix0 beside txcsum: true / ifconfig ix0 7",
            "tso6 of ix0 beside txcsum: true / ifconfig ix0 7",
            "txcsum of ix0: ifconfig ix0 -txcsum / ifconfig ix0 7",
            "txcsum6 of ix0: ifconfig ix0 -txcsum6 / ifconfig ix0 7",
        ]
    );
}

#[test]
fn modules_that_were_absent_are_taken_away() {
    let settings = Settings {
        modules: vec!["if_lagg".into()],
        ..Settings::default()
    };
    for (system, load, unload) in [
        (System::FreeBsd, ["kldload", "-n", "if_lagg"], "kldunload"),
        (System::Linux, ["modprobe", "--", "if_lagg"], "rmmod"),
    ] {
        let steps = steps(&settings, None, &target(system)).unwrap();
        let [step] = &steps.steps[..] else {
            panic!("{steps:?}")
        };
        assert_eq!(step.apply.argv, load);
        assert_eq!(
            step.undoing("absent").unwrap().argv[4..],
            ["absent", unload, "if_lagg"]
        );
    }
}

#[test]
fn a_router_of_linux() {
    let interface = Interface {
        mtu: Some(1500),
        set: BTreeMap::from([
            (CardSetting::Gro, CardValue::Switch(true)),
            (CardSetting::ThreadedNapi, CardValue::Switch(true)),
            (CardSetting::RxRing, CardValue::Number(1024)),
            (CardSetting::TxWait, CardValue::Number(20_000)),
            (CardSetting::NapiDeferHardIrqs, CardValue::Number(2)),
        ]),
        rps: Some(vec![0, 1]),
        irq: Some(vec![2, 3]),
        ..Interface::default()
    };
    let settings = Settings {
        outside: interface,
        ..Settings::default()
    };
    assert_eq!(
        lines(&steps(&settings, None, &target(System::Linux)).unwrap()),
        [
            "interrupts of eth2: true / sh",
            "MTU of eth2: sh /sys/class/net/eth2/mtu 1500 / sh /sys/class/net/eth2/mtu 7",
            "gro of eth2: ethtool -K eth2 gro on / sh",
            "threaded NAPI of eth2: sh /sys/class/net/eth2/threaded 1 / sh /sys/class/net/eth2/threaded 7",
            "receive ring of eth2: ethtool -G eth2 rx 1024 / ethtool -G eth2 rx 7",
            "transmit interrupt wait of eth2: ethtool -C eth2 tx-usecs 20 / ethtool -C eth2 tx-usecs 7",
            "deferral of interrupts of eth2: sh /sys/class/net/eth2/napi_defer_hard_irqs 2 / sh /sys/class/net/eth2/napi_defer_hard_irqs 7",
            "receive packet steering of eth2: sh eth2 rx rps_cpus 00000003 / sh",
            "interrupts of eth2: sh 2 3 / sh",
        ]
    );
}

#[test]
fn what_cannot_be_set_is_told_at_once() {
    let settings = Settings {
        dut: linerate_plan::settings::Dut::Macvlan,
        routes: More {
            count: Some(10),
            explicit: Vec::new(),
        },
        inside: Interface {
            set: BTreeMap::from([(CardSetting::Queues, CardValue::Number(2))]),
            ..Interface::default()
        },
        ..Settings::default()
    };
    let told = steps(&settings, None, &target(System::OpenBsd)).unwrap_err();
    let told: Vec<String> = told
        .iter()
        .map(|t| t.split(": ").next().unwrap().to_string())
        .collect();
    assert_eq!(
        told,
        [
            "queues of ix0",
            "dut macvlan",
            "generated routes and neighbours"
        ]
    );
}

#[test]
fn files_that_are_no_whole_paths_are_refused() {
    for path in ["pf.conf", "/etc/../etc/passwd", "../x"] {
        let file = File {
            path: path.into(),
            text: String::new(),
        };
        let settings = Settings {
            files: vec![file],
            ..Settings::default()
        };
        assert!(
            steps(&settings, None, &target(System::FreeBsd)).is_err(),
            "{path}"
        );
    }
}

proptest! {
    /// No text of a plan is part of a script; its texts are arguments of their own.
    #[test]
    fn no_text_of_a_plan_is_part_of_a_script(name in "[a-z.;$`'\" ]{1,12}", value in "[a-z0-9;$`'\"\n ]{1,12}") {
        let with = |name: &str, value: &str| {
            let mut settings = Settings::default();
            settings.sysctls.insert(name.into(), value.into());
            settings.files.push(File { path: format!("/{name}"), text: value.into() });
            settings.inside.private_flags.insert(name.into(), true);
            steps(&settings, None, &target(System::Linux)).map(|steps| scripts(&steps))
        };
        if let Ok(scripts) = with(&name, &value) {
            prop_assert_eq!(scripts, with("plain", "0").unwrap());
        }
    }
}

/// Programs for shells.
fn scripts(steps: &Steps) -> Vec<String> {
    let of = |argv: &[String]| (argv[0] == "sh").then(|| argv[2].clone());
    let programs = steps.steps.iter().flat_map(|step| {
        [
            Some(step.apply.argv.clone()),
            step.undoing("").map(|u| u.argv),
        ]
    });
    programs.flatten().filter_map(|argv| of(&argv)).collect()
}

#[test]
fn a_bridge_of_the_host_s_own_is_not_destroyed() {
    let settings = Settings {
        dut: linerate_plan::settings::Dut::Bridge,
        ..Settings::default()
    };
    let steps = steps(&settings, None, &target(System::FreeBsd)).unwrap();
    let made = steps
        .steps
        .iter()
        .find(|step| step.what == "bridge198")
        .unwrap();
    let back = |was| made.undoing(was).unwrap().argv;
    assert_eq!(
        back("there")[2],
        r#"[ "$1" != absent ] || ifconfig "$2" destroy"#
    );
    assert_eq!(
        [&back("there")[4..], &back("absent")[4..]],
        [["there", "bridge198"], ["absent", "bridge198"]]
    );
}

#[test]
fn hash_fields_tables_and_interrupts_are_put_back() {
    let step = |words: &str| {
        let arguments = words.split(' ').map(String::from).collect();
        Runtime::Ethtool { arguments }
            .step(crate::systems::Kernel::Linux)
            .unwrap()
    };
    let back = |step: &Step, shown: &str| {
        let was = step.read.as_ref().unwrap().form.value(shown)?;
        Some(step.undoing(&was).unwrap().argv)
    };
    let hash = step("-N eth0 rx-flow-hash udp4 sdfn");
    let shown =
        "UDP over IPV4 flows use these fields for computing Hash flow key:\nIP SA\nIP DA\n\n";
    assert_eq!(
        back(&hash, shown).unwrap().join(" "),
        "ethtool -N eth0 rx-flow-hash udp4 sd"
    );
    assert_eq!(
        back(
            &hash,
            "rxclass: Cannot get RX class rule: Operation not supported\n"
        ),
        None
    );
    let table = step("-X eth0 equal 4");
    let of = |rows: &str| {
        format!(
            "RX flow hash indirection table for eth0 with 4 RX ring(s):\n{rows}RSS hash key:\nno\n"
        )
    };
    let restored = |rows: &str| back(&table, &of(rows)).map(|argv| argv.last().unwrap().clone());
    assert_eq!(
        restored("    0:      0     1     0     1     0     1     0     1\n").unwrap(),
        "equal 2"
    );
    assert_eq!(
        restored("    0:      0     0     0     0     0     0     1     1\n").unwrap(),
        "weight 6 2"
    );
    // A table that no words of ethtool(8) make could not be put back.
    assert_eq!(
        restored("    0:      1     0     0     1     0     1     0     1\n"),
        None
    );
    assert_eq!(restored(""), None);
    let pin = Runtime::CpuSet {
        irq: 264,
        cpus: "3".into(),
    }
    .step(crate::systems::Kernel::FreeBsd)
    .unwrap();
    assert_eq!(
        back(&pin, "irq 264 mask: 0, 1\n").unwrap().join(" "),
        "cpuset -l 0,1 -x 264"
    );
    assert_eq!(back(&pin, "cpuset: getaffinity: No such process\n"), None);
}

#[test]
fn events_are_steps_that_are_undone() {
    let of = |system, what: &str, settings: Settings| {
        let event = serde_json::json!({
            "what": what, "process": "bird", "run": "start {in}", "undo": "stop {out}", "end": "out",
        });
        let rules = settings
            .rules
            .as_ref()
            .map(|rules| rules.for_frames(system, &[Family::V4], Some(["ix0", "ix1"])));
        let event = serde_json::from_value(event).unwrap();
        let steps = super::event(
            &event,
            &settings,
            rules.as_ref(),
            &[Family::V4],
            &target(system),
        );
        steps.map(|steps| {
            lines(&Steps {
                steps,
                ..Steps::default()
            })
        })
    };
    let plain = |system, what| of(system, what, Settings::default()).unwrap();
    assert_eq!(
        plain(System::FreeBsd, "forwarding-off"),
        [
            "sysctl net.inet.ip.forwarding: sysctl net.inet.ip.forwarding=0 / sysctl net.inet.ip.forwarding=7"
        ]
    );
    assert_eq!(
        plain(System::Linux, "link-down"),
        ["eth2 down: ip link set dev eth2 down / sh eth2"]
    );
    assert!(
        of(System::OpenBsd, "link-down", Settings::default())
            .unwrap_err()
            .contains("static routes")
    );
    let killed = plain(System::Linux, "process-killed");
    assert_eq!(
        killed,
        ["process bird: pkill -KILL -x bird / sh"],
        "and started again"
    );
    assert_eq!(plain(System::Linux, "command").len(), 1);
    assert_eq!(plain(System::Linux, "reboot"), [""; 0]);
    let with = |firewall| Settings {
        rules: Some(RuleSet::new(firewall, Kind::Stateful)),
        ..Settings::default()
    };
    let reloaded = |system, firewall| of(system, "rules-reloaded", with(firewall)).unwrap();
    assert_eq!(
        reloaded(System::FreeBsd, Firewall::Pf),
        ["rule set by pfctl, once more: pfctl -f - / stays"]
    );
    assert_eq!(
        reloaded(System::Linux, Firewall::Nftables),
        ["rule set by nft, once more: sh / stays"]
    );
}
