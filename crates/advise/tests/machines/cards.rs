//! Advice for cards: their slots, queues, interrupts, hashes and pause frames, and redirects by interface.

use super::{advice, item, router};
use linerate_advise::{Runtime, Setting, State};
use linerate_hosts::configuration::{Bounded, Card, Configuration, Interrupt, Release};
use linerate_hosts::systems::Pause;

#[test]
fn slots_are_compared_with_the_ports() {
    let mut found = router("13.2", "Xeon", 8, 1, "cxl", 1e10);
    for (nth, card) in found.cards.iter_mut().enumerate() {
        card.pci.slot = Some(format!("pci0:1:0:{nth}"));
        (card.pci.width, card.pci.speed) = (Some(4), Some(5.0));
    }
    // PCIe 2 x4: 16 Gbit/s after 8b/10b, less in packets; two ports have 20.
    let slow = advice(&found);
    assert!(
        item(&slow, "freebsd-slot")
            .unwrap()
            .evidence
            .as_ref()
            .unwrap()
            .contains("PCIe 2 x4")
    );
    found
        .cards
        .iter_mut()
        .for_each(|card| card.pci.width = Some(8));
    assert!(item(&advice(&found), "freebsd-slot").is_none());
}

#[test]
fn queues_interrupts_and_hashes_are_settings() {
    let mut found = router("13.2", "Xeon", 4, 1, "cxl", 1e10);
    let queue = |nth: u32, name: String| Interrupt {
        number: 10 + nth,
        name,
        allowed: vec![0, 1, 2, 3],
        cpus: vec![0],
    };
    found.cards.truncate(1);
    found.cards[0].interrupts = (0..4)
        .map(|nth| queue(nth, format!("t5nex0:0a{nth}")))
        .collect();
    let all = advice(&found);
    let pins = item(&all, "freebsd-chelsio-pinning").unwrap();
    assert_eq!((pins.state, pins.settings.len()), (State::Change, 4));
    assert_eq!(
        pins.settings[2].runtime,
        Some(Runtime::CpuSet {
            irq: 12,
            cpus: "2".into()
        })
    );
    // Without the interrupts' numbers it is a person's work.
    found.cards[0].interrupts.clear();
    assert_eq!(
        item(&advice(&found), "freebsd-chelsio-pinning")
            .unwrap()
            .state,
        State::ByHand
    );

    found.system = Release {
        kernel: "linux".into(),
        release: Some("6.12.8".into()),
        product: None,
    };
    found.sysctls = [("net.ipv4.ip_forward".into(), "1".into())].into();
    found.cards[0] = Card {
        name: "eth0".into(),
        combined_queues: Bounded {
            now: Some(4),
            most: Some(8),
        },
        indirection: vec![0, 1, 0, 1, 0, 1, 0, 1],
        hash_fields: [("udp4".into(), vec!["IP SA".into(), "IP DA".into()])].into(),
        interrupts: (0..4)
            .map(|nth| queue(nth, format!("eth0-TxRx-{nth}")))
            .chain([queue(4, "eth0".into())])
            .collect(),
        ..Card::default()
    };
    let all = advice(&found);
    let pins = item(&all, "linux-interrupts").unwrap();
    assert_eq!((pins.state, pins.settings.len()), (State::Measure, 4));
    let path = "/proc/irq/13/smp_affinity_list".to_string();
    assert_eq!(
        pins.settings[3].runtime,
        Some(Runtime::File {
            path,
            value: "3".into()
        })
    );
    let words = |id: &str| match &item(&all, id).unwrap().settings[..] {
        [
            Setting {
                runtime: Some(Runtime::Ethtool { arguments }),
                lasting: None,
                now,
                ..
            },
        ] => (arguments.join(" "), now.clone().unwrap()),
        other => panic!("{id}: {other:?}"),
    };
    assert_eq!(
        words("linux-indirection"),
        ("-X eth0 equal 4".into(), "2".into())
    );
    assert_eq!(
        words("linux-hash-fields"),
        ("-N eth0 rx-flow-hash udp4 sdfn".into(), "sd".into())
    );
    // Each queue on a CPU of its own, in the table, and hashed by ports.
    for (nth, irq) in found.cards[0].interrupts.iter_mut().enumerate() {
        irq.cpus = vec![nth as u32];
    }
    found.cards[0].indirection = vec![0, 1, 2, 3];
    found.cards[0].hash_fields.clear();
    let all = advice(&found);
    assert!(
        ["linux-interrupts", "linux-indirection", "linux-hash-fields"]
            .iter()
            .all(|id| item(&all, id).is_none())
    );
}

/// Three cards: one uses pause frames and shares a CPU, one has neither, and one is the way to the administrator.
#[test]
fn each_card_gets_what_it_needs_and_the_session_is_spared() {
    let mut found = router("13.2", "Xeon", 4, 1, "igb", 1e9);
    found.system = Release {
        kernel: "linux".into(),
        release: Some("6.12.8".into()),
        product: None,
    };
    found.sysctls = [("net.ipv4.ip_forward".into(), "1".into())].into();
    let pause = Pause {
        autoneg: Some(true),
        rx: Some(true),
        tx: Some(true),
    };
    let card = |name: &str, pause: Pause, queues: u32| Card {
        name: name.into(),
        pause,
        combined_queues: Bounded {
            now: Some(queues),
            most: Some(queues),
        },
        ..Card::default()
    };
    let plain = Pause::default();
    found.cards = vec![
        card("eth0", pause, 4),
        card("eth1", plain, 1),
        card("mgmt0", pause, 4),
    ];
    found.session = vec!["br0".into()];
    found.cards[2].master = Some("br0".into());
    let changes = |found: &Configuration, id: &str| {
        let item = item(&advice(found), id).unwrap().clone();
        let of = |setting: &Setting| setting.runtime.is_some().then(|| setting.name.clone());
        (
            item.state,
            item.settings.iter().filter_map(of).collect::<Vec<_>>(),
            item.note.unwrap_or_default(),
        )
    };
    let (state, settings, note) = changes(&found, "linux-flow-control");
    let expected = ["autoneg", "rx", "tx"].map(|word| format!("ethtool -A eth0 {word}"));
    assert_eq!(
        (state, settings.as_slice()),
        (State::Change, expected.as_slice())
    );
    assert!(
        note.contains("mgmt0 carries this ssh session, and is left out"),
        "{note}"
    );
    let (_, settings, note) = changes(&found, "linux-rps");
    assert_eq!(
        (settings, note.as_str()),
        (vec!["/sys/class/net/eth1/queues/rx-0/rps_cpus".into()], "")
    );
    // The only one that needs it is a person's work.
    found.cards[0].pause = plain;
    let (state, settings, note) = changes(&found, "linux-flow-control");
    assert!(
        state == State::ByHand && settings.is_empty() && note.contains("mgmt0"),
        "{note}"
    );
    found.session.clear();
    assert_eq!(changes(&found, "linux-flow-control").0, State::Change);
}

#[test]
fn redirects_are_off_on_every_interface() {
    let mut found = router("13.2", "Xeon", 4, 1, "igb", 1e10);
    found.system = Release {
        kernel: "linux".into(),
        release: Some("6.12.8".into()),
        product: None,
    };
    found.sysctls = [("net.ipv4.ip_forward".into(), "1".into())].into();
    for (name, value) in [
        ("igb0", "1"),
        ("veth1", "1"),
        ("igb1", "0"),
        ("all", "0"),
        ("default", "1"),
        ("lo", "1"),
    ] {
        found
            .sysctls
            .insert(format!("net.ipv4.conf.{name}.send_redirects"), value.into());
    }
    let all = advice(&found);
    let settings = &item(&all, "linux-redirects").unwrap().settings;
    let sends = settings
        .iter()
        .filter(|one| one.name.ends_with("send_redirects"));
    let sends: Vec<_> = sends
        .map(|one| (one.name.split('.').nth(3).unwrap(), one.lasting.is_some()))
        .collect();
    // `default` comes last, because interfaces without a value of their own follow it; a container's card is gone after a boot.
    assert_eq!(sends, [("igb0", true), ("veth1", false), ("default", true)]);
    let patch = item(&all, "linux-redirects")
        .unwrap()
        .patch
        .clone()
        .unwrap();
    assert!(
        patch["sysctls"]
            .get("net.ipv4.conf.default.send_redirects")
            .is_some()
    );
    assert!(
        patch["sysctls"]
            .get("net.ipv4.conf.igb0.send_redirects")
            .is_none(),
        "{patch}"
    );
}
