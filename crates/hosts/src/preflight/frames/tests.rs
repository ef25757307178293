//! Frames planned, and messages about those that do not arrive.

use super::*;
use crate::systems::{Interface, Way};
use linerate_plan::{Diagnostic, Severity};

const LAB: &str = r#"
isolated = true
[hosts.g]
role = "generator"
ssh = "g"
send.name = "g0"
[hosts.d]
role = "dut"
ssh = "d"
in.name = "d0"
out.name = "d1"
[hosts.r]
role = "receiver"
ssh = "r"
receive.name = "r0"
"#;

fn lab() -> Lab {
    Lab::read(LAB.as_bytes()).unwrap()
}

fn host(ports: &[(&str, &[&str])]) -> Facts {
    let interface = |(name, addresses): &(&str, &[&str])| Interface {
        name: (*name).into(),
        up: true,
        link: Some(true),
        addresses: addresses.iter().map(|a| a.parse().unwrap()).collect(),
        ..Interface::default()
    };
    Facts {
        user: Some(0),
        interfaces: ports.iter().map(interface).collect(),
        ..Facts::default()
    }
}

/// Generator and receiver with a route to each other by the DUT.
fn facts() -> BTreeMap<String, Facts> {
    let mut generator = host(&[("g0", &["fe80::1/64", "10.1.0.1/24", "2001:db8::1/64"])]);
    let way = Way {
        gateway: "10.1.0.2".parse().ok(),
        interface: "g0".into(),
    };
    generator
        .ways
        .insert("10.2.0.1".parse().unwrap(), Some(way));
    let dut = host(&[
        ("d0", &["10.1.0.2/24", "2001:db8::2/64"]),
        ("d1", &["10.2.0.2/24"]),
    ]);
    let receiver = host(&[("r0", &["10.2.0.1/24"])]);
    [("g", generator), ("d", dut), ("r", receiver)]
        .map(|(name, facts)| (name.to_string(), facts))
        .into()
}

fn shown(plan: &Plan) -> Vec<String> {
    plan.probes
        .iter()
        .map(|p| {
            format!(
                "{}>{} at {}",
                p.source,
                p.to,
                p.arrives
                    .iter()
                    .map(|a| a.1.as_str())
                    .collect::<Vec<_>>()
                    .join("+")
            )
        })
        .collect()
}

#[test]
fn over_each_cable_in_each_version_and_through_the_dut() {
    let plan = plan(&lab(), &facts());
    let expected = [
        "10.1.0.1>10.1.0.2 at d0",
        "2001:db8::1>2001:db8::2 at d0",
        "10.2.0.1>10.2.0.2 at d1",
        "10.1.0.1>10.2.0.1 at d0+r0",
    ];
    assert_eq!(shown(&plan), expected);
    assert_eq!(
        (plan.skipped.len(), plan.probes[3].is_forwarded()),
        (0, true)
    );
    let address = |a: &str| a.parse::<IpAddr>().unwrap();
    let expected = [
        ("g", vec![address("10.2.0.1")]),
        ("r", vec![address("10.1.0.1"), address("2001:db8::1")]),
    ];
    assert_eq!(
        crate::preflight::ways(&lab(), &facts()),
        expected.map(|(h, to)| (h.to_string(), to)).into()
    );
}

type Change = fn(&mut BTreeMap<String, Facts>);

#[test]
fn what_cannot_be_tried_is_said() {
    let cases: [(Change, usize, &str); 5] = [
        (
            |f| f.get_mut("g").unwrap().ways.clear(),
            3,
            "no route there by the DUT",
        ),
        (
            |f| f.get_mut("d").unwrap().interfaces[0].link = Some(false),
            1,
            "d d0 has no link",
        ),
        (
            |f| f.get_mut("r").unwrap().user = Some(12),
            3,
            "ping needs root on r",
        ),
        (
            |f| f.get_mut("r").unwrap().interfaces[0].addresses.clear(),
            2,
            "no addresses of one network",
        ),
        (
            |f| drop(f.insert("d".into(), Facts::unreachable("gone", ""))),
            0,
            "",
        ),
    ];
    for (change, left, why) in cases {
        let mut facts = facts();
        change(&mut facts);
        let plan = plan(&lab(), &facts);
        assert_eq!(plan.probes.len(), left, "{why}: {plan:#?}");
        assert!(
            why.is_empty() || plan.skipped.iter().any(|s| s.why.contains(why)),
            "{why}: {plan:#?}"
        );
    }
}

#[test]
fn who_is_one_host_sends_nothing_to_itself() {
    let text = "isolated = true\n[hosts.t]\nrole = [\"generator\", \"receiver\"]\nssh = \"t\"\nsend.name = \"g0\"\nreceive.name = \"r0\"\n";
    let lab = Lab::read(text.as_bytes()).unwrap();
    let facts = [(
        "t".to_string(),
        host(&[("g0", &["10.1.0.1/24"]), ("r0", &["10.1.0.2/24"])]),
    )]
    .into();
    let plan = plan(&lab, &facts);
    assert!(
        plan.probes.is_empty() && plan.skipped[0].why.contains("one host"),
        "{plan:?}"
    );
}

/// The problem of a probe (0 over a cable, 3 through the DUT) with these numbers of answers and counted frames.
fn judged(
    probe: usize,
    answered: u32,
    arrived: &[Option<u64>],
    elsewhere: &[&str],
) -> Option<Diagnostic> {
    let tried = Tried {
        probe: plan(&lab(), &facts()).probes[probe].clone(),
        replies: Replies {
            count: Some((10, answered)),
            said: "said".into(),
        },
        arrived: arrived.to_vec(),
        elsewhere: elsewhere.iter().map(|e| (*e).to_string()).collect(),
    };
    let mut problems = judge(&[tried.clone(), tried]);
    assert!(problems.len() < 2, "told twice: {problems:#?}");
    problems.pop()
}

/// As many as were sent.
const ALL: Option<u64> = Some(10);

/// Probe, answered, arrived, elsewhere; severity, host, message.
type Case = (
    usize,
    u32,
    &'static [Option<u64>],
    &'static [&'static str],
    Severity,
    &'static str,
    &'static str,
);

#[test]
fn what_became_of_frames() {
    assert_eq!(judged(0, 10, &[ALL], &[]), None);
    assert_eq!(judged(0, 10, &[None], &[]), None);
    assert_eq!(judged(3, 10, &[ALL, Some(12)], &[]), None);
    let cases: [Case; 9] = [
        (
            0,
            0,
            &[Some(3)],
            &[],
            Severity::Fault,
            "g",
            "what it sends from 10.1.0.1 to 10.1.0.2 of d does not arrive",
        ),
        (
            0,
            0,
            &[ALL],
            &[],
            Severity::Warning,
            "g",
            "arrives, and is not answered",
        ),
        (
            0,
            0,
            &[Some(0)],
            &["d1"],
            Severity::Fault,
            "d",
            "frames for d0 arrive at d1",
        ),
        (
            0,
            10,
            &[Some(0)],
            &["d1"],
            Severity::Fault,
            "d",
            "frames for d0 arrive at d1",
        ),
        (
            0,
            10,
            &[Some(0)],
            &[],
            Severity::Fault,
            "d",
            "the counters of d0 do not move",
        ),
        (
            0,
            4,
            &[ALL],
            &[],
            Severity::Warning,
            "g",
            "not everything is answered",
        ),
        (
            3,
            0,
            &[ALL, Some(0)],
            &[],
            Severity::Fault,
            "d",
            "does not forward frames from 10.1.0.1 for 10.2.0.1 of r",
        ),
        (
            3,
            0,
            &[Some(1), Some(0)],
            &[],
            Severity::Fault,
            "g",
            "does not arrive",
        ),
        (
            3,
            10,
            &[Some(0), ALL],
            &[],
            Severity::Fault,
            "d",
            "pass d0 by",
        ),
    ];
    for (probe, answered, arrived, elsewhere, severity, host, what) in cases {
        let problem =
            judged(probe, answered, arrived, elsewhere).unwrap_or_else(|| panic!("{what}"));
        assert_eq!(
            (problem.severity, problem.subject.as_deref()),
            (severity, Some(host)),
            "{problem:?}"
        );
        assert!(problem.message.contains(what), "{problem:?}");
        assert!(
            problem
                .evidence
                .as_ref()
                .unwrap()
                .contains(&format!("{answered} of 10 pings")),
            "{problem:?}"
        );
        assert_eq!(
            problem.evidence.as_ref().unwrap().contains("said"),
            answered == 0,
            "{problem:?}"
        );
    }
}

#[test]
fn counters_that_do_not_move_are_no_way_around_the_dut() {
    let tried = |probe: usize, arrived: &[Option<u64>]| Tried {
        probe: plan(&lab(), &facts()).probes[probe].clone(),
        replies: Replies {
            count: Some((10, 10)),
            said: String::new(),
        },
        arrived: arrived.to_vec(),
        elsewhere: Vec::new(),
    };
    let [problem] = &judge(&[tried(0, &[Some(0)]), tried(3, &[Some(0), ALL])])[..] else {
        panic!("one problem")
    };
    assert!(
        problem.message.contains("the counters of d0 do not move"),
        "{problem:?}"
    );
    assert!(
        problem
            .remedy
            .as_ref()
            .unwrap()
            .contains("freebsd-version -ku"),
        "{problem:?}"
    );
}

/// A black box that has the destinations in its own network asks for them by ARP, in vain: no cable is at fault, and tests of one flow work.
#[test]
fn addresses_that_nobody_answers_for_are_not_the_cables_fault() {
    let of = |length: u8| {
        let text = LAB
            .replace("ssh = \"d\"\nin.name = \"d0\"\nout.name = \"d1\"", &format!(
                "black-box = true\nin.mac = \"02:00:00:00:00:02\"\nout.addresses = [\"198.19.1.1/{length}\"]"
            ));
        Lab::read(text.as_bytes()).unwrap()
    };
    let tried = [PortTried {
        from: ("g".into(), "g0".into()),
        port: Backend::Xdp,
        why: None,
        sent: 100,
        arrives: ("r".into(), "r0".into()),
        arrived: Some(1),
    }];
    let judged = |length| {
        let to = "198.19.10.1".parse().unwrap();
        judge_ports(&of(length), &tried, to).remove(0)
    };
    let (near, far) = (judged(16), judged(24));
    assert!(
        !near.is_fault() && near.evidence.as_ref().unwrap().contains("ARP"),
        "{near}"
    );
    assert!(
        !near.remedy.as_ref().unwrap().contains("cable, switch"),
        "{near}"
    );
    assert!(
        far.is_fault() && far.remedy.as_ref().unwrap().contains("cable, switch"),
        "{far}"
    );
}

/// A black box is asked nothing, so the fault says what it needs; and advises no backend that is in use.
#[test]
fn frames_that_a_black_box_swallows_name_its_routes() {
    let text = LAB.replace(
        "ssh = \"d\"\nin.name = \"d0\"\nout.name = \"d1\"",
        "black-box = true\nin.mac = \"02:00:00:00:00:02\"\nout.addresses = [\"198.19.1.1/24\"]",
    );
    let lab = Lab::read(text.as_bytes()).unwrap();
    let judged = |port| {
        let tried = [PortTried {
            from: ("g".into(), "g0".into()),
            port,
            why: None,
            sent: 100,
            arrives: ("r".into(), "r0".into()),
            arrived: Some(0),
        }];
        judge_ports(&lab, &tried, "198.19.10.1".parse().unwrap()).remove(0)
    };
    let fault = judged(Backend::AfPacket);
    let (evidence, remedy) = (
        fault.evidence.clone().unwrap(),
        fault.remedy.clone().unwrap(),
    );
    assert!(
        evidence.ends_with("they go from 198.18.0.0/16 to 198.19.0.0/16"),
        "{evidence}"
    );
    for said in [
        "a route to 198.19.0.0/16 by way of",
        "one to 198.18.0.0/16 by way of",
    ] {
        assert!(remedy.contains(said), "{remedy}");
    }
    assert!(!remedy.contains("af-packet"), "{remedy}");
    assert!(judged(Backend::Xdp).remedy.unwrap().contains("af-packet"));
}
