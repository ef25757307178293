//! Lab files as a whole: results of good ones, and messages about bad ones.

use super::*;
use crate::grammar::{Kind, Table};
use crate::mutated::{OF_TOML, edits, mutated};
use proptest::prelude::*;

/// The least lab: a DUT between two hosts.
const LEAST: &str = r#"
isolated = true
[hosts.g]
role = "generator"
ssh = "g"
send.name = "ix0"
[hosts.d]
role = "dut"
ssh = "root@d"
in.name = "ix0"
out.name = "ix1"
[hosts.r]
role = "receiver"
ssh = "r"
receive.name = "ix0"
"#;

fn read(text: &str) -> Lab {
    Lab::read(text.as_bytes()).unwrap_or_else(|faults| panic!("{faults:#?}\n{text}"))
}

/// The faults of a text: `line: message | help`.
fn faults_of(text: &str) -> Vec<String> {
    let faults = Lab::read(text.as_bytes()).expect_err("has faults");
    faults
        .iter()
        .map(|f| {
            format!(
                "{}: {} | {}",
                f.place.unwrap().line,
                f.message,
                f.remedy.as_deref().unwrap_or("-")
            )
        })
        .collect()
}

/// The least lab with a piece of it replaced has one fault, with this text.
#[track_caller]
fn one(from: &str, to: &str, says: &str) {
    assert!(LEAST.contains(from), "{from}");
    let faults = faults_of(&LEAST.replacen(from, to, 1));
    assert!(
        faults.len() == 1 && faults[0].contains(says),
        "wanted {says}, got {faults:#?}"
    );
}

#[test]
fn the_example_is_a_lab() {
    let lab = read(EXAMPLE);
    assert!(lab.isolated && lab.remarks.is_empty());
    assert_eq!(lab.link_speed, Some(1e9));
    let dut = lab.dut().unwrap();
    assert_eq!(
        (dut.name.as_str(), dut.reach.to_string()),
        ("router", "root@192.0.2.5".into())
    );
    assert_eq!(
        dut.system.and_then(OperatingSystem::of_plans),
        Some(linerate_measure::experiment::System::FreeBsd)
    );
    assert_eq!(dut.config_save.as_deref(), Some("config save"));
    assert_eq!(
        (dut.power_cycle[0].as_str(), dut.boot.timeout_ns),
        ("ipmitool", 300_000_000_000)
    );
    assert_eq!(lab.placeholders(), Some(("igb1", "igb2")));
    let tester = lab.receiver();
    assert_eq!(tester.roles, [Role::Generator, Role::Receiver]);
    assert_eq!(
        lab.generators()
            .map(|g| g.name.as_str())
            .collect::<Vec<_>>(),
        ["tester"]
    );
    assert_eq!(tester.tool, Some(crate::Backend::PktGen));
    assert_eq!(tester.send[0].addresses[1].to_string(), "2001:2::203/64");
}

#[test]
fn the_examples_of_three_hosts_are_labs() {
    let lab = read(EXAMPLE_THREE_HOSTS);
    for lab in [&lab, &read(EXAMPLE_NAMESPACES)] {
        assert!(lab.isolated && lab.remarks.is_empty());
        let roles: Vec<_> = lab.hosts.iter().map(|host| host.roles.as_slice()).collect();
        assert_eq!(roles, [[Role::Generator], [Role::Dut], [Role::Receiver]]);
    }
    assert_eq!(
        lab.next_hop(End::Out, Family::V4)
            .map(|hop| hop.to_string())
            .as_deref(),
        Some("198.19.0.2")
    );
}

#[test]
fn next_hops_are_the_other_ends_unless_the_file_says_otherwise() {
    let lab = read(EXAMPLE);
    let hop = |lab: &Lab, end, family| lab.next_hop(end, family).map(|hop| hop.to_string());
    assert_eq!(
        hop(&lab, End::In, Family::V4).as_deref(),
        Some("198.18.0.203")
    );
    assert_eq!(
        hop(&lab, End::Out, Family::V6).as_deref(),
        Some("2001:2:0:8000::203")
    );
    let said = EXAMPLE.replace(
        "[hosts.router.out] ",
        "[hosts.router.out]\nnext-hops = [\"198.19.0.9\"] ",
    );
    assert_eq!(
        hop(&read(&said), End::Out, Family::V4).as_deref(),
        Some("198.19.0.9")
    );
    assert_eq!(read(EXAMPLE).networks(End::Out), DESTINATION_NETWORKS);
    assert_eq!(hop(&read(LEAST), End::In, Family::V4), None);
}

#[test]
fn tunnels_end_at_a_reference_and_several_generators_feed_one_dut() {
    let text = LEAST.replace(
        "out.name = \"ix1\"",
        "out = { name = \"ix1\", addresses = [\"198.18.1.1/24\"] }",
    ) + r#"
        [hosts.far]
        role = "reference"
        ssh = "far"
        in = { name = "ix0", addresses = ["198.18.1.2/24"] }
        out = { name = "ix1" }
        [hosts.g2]
        role = "generator"
        ssh = "g2"
        [[hosts.g2.send]]
        name = "ix0"
        [[hosts.g2.send]]
        name = "ix1"
        threads = 4
        "#;
    let lab = read(&text);
    assert_eq!(lab.reference().map(|h| h.name.as_str()), Some("far"));
    assert_eq!(lab.peers(End::In).len(), 3);
    assert_eq!(
        lab.next_hop(End::Out, Family::V4).unwrap().to_string(),
        "198.18.1.2"
    );
    assert_eq!(lab.generators().nth(1).unwrap().send[1].threads, Some(4));
}

#[test]
fn a_lab_without_dut_is_two_ends_of_a_cable() {
    let start = LEAST.find("[hosts.d]").unwrap();
    let end = LEAST.find("[hosts.r]").unwrap();
    let lab = read(&(LEAST[..start].to_string() + &LEAST[end..]));
    assert!(lab.dut().is_none() && lab.placeholders().is_none());
}

#[test]
fn a_black_box_is_a_device_that_is_no_host() {
    let example = read(EXAMPLE_BLACK_BOX);
    assert!(example.isolated && example.remarks.is_empty() && example.hosts.len() == 1);
    let mac = "in.mac = \"02:00:00:00:00:02\"";
    let text = LEAST.replace(
        "ssh = \"root@d\"",
        &format!("black-box = true\nin.addresses = [\"198.18.0.1/24\"]\n{mac}"),
    );
    let lab = read(&text);
    assert!(lab.dut().is_none() && lab.placeholders().is_none() && lab.hosts.len() == 2);
    assert_eq!(
        lab.device()
            .and_then(|d| d.inside.as_ref()?.mac)
            .unwrap()
            .to_string(),
        "02:00:00:00:00:02"
    );
    one(
        "ssh = \"root@d\"",
        "black-box = true",
        "nobody can ask d for the Ethernet address of [in]",
    );
    one(
        "ssh = \"root@d\"",
        "black-box = false",
        "nothing says how to reach d",
    );
    let also = format!("ssh = \"root@d\"\nblack-box = true\n{mac}");
    one(
        "ssh = \"root@d\"",
        &also,
        "d is a black box, which has no ssh",
    );
    let boots = format!("black-box = true\nboot.timeout = \"5 s\"\n{mac}");
    one(
        "ssh = \"root@d\"",
        &boots,
        "d is a black box, which has no boot",
    );
    one(
        "ssh = \"r\"",
        "black-box = true",
        "only a dut can be a black box",
    );
}

#[test]
fn faults_of_roles_and_interfaces() {
    one(
        "role = \"receiver\"",
        "role = \"reciever\"",
        "did you mean \"receiver\"",
    );
    one("isolated = true", "", "a lab file needs isolated");
    one("ssh = \"root@d\"", "", "nothing says how to reach d");
    one(
        "ssh = \"root@d\"",
        "ssh = \"d\"\nnamespace = \"d\"",
        "d has ssh and namespace",
    );
    one(
        "ssh = \"root@d\"",
        "namespace = \"../d\"",
        "not a valid name of a network namespace",
    );
    one(
        "ssh = \"root@d\"",
        "namespace = \"d\"\nsudo = true",
        "a namespace has no sudo",
    );
    one(
        "ssh = \"root@d\"",
        "ssh = \"-oProxyCommand=x\"",
        "ssh cannot connect",
    );
    one("send.name = \"ix0\"", "", "g is a generator without [send]");
    one("out.name = \"ix1\"", "", "d is a dut without [out]");
    one(
        "out.name = \"ix1\"",
        "out.name = \"ix0\"",
        "ix0 is the interface of [in] already",
    );
    one(
        "receive.name",
        "tool = \"trafgen\"\nsystem = \"freebsd\"\nreceive.name",
        "trafgen runs on Linux",
    );
    one(
        "receive.name",
        "tool = \"pkt-gen\"\nreceive.netmap = false\nreceive.name",
        "pkt-gen needs netmap",
    );
    one(
        "out.name",
        "tool = \"pkt-gen\"\nout.name",
        "d sends and counts nothing",
    );
    one(
        "out.name",
        "out.threads = 2\nout.name",
        "[out] has no threads",
    );
    one(
        "out.name",
        "boot.from = \"gg\"\nout.name",
        "there are g, d and r",
    );
    one(
        "out.name = \"ix1\"",
        "out.name = \"ix1; reboot\"",
        "is not a valid interface name",
    );
    one(
        "out.name",
        "outt.name = \"x\"\nout.name",
        "did you mean 'out'",
    );
    one(
        "receive.name = \"ix0\"",
        "receive.name = \"ix0\"\nsend.name = \"ix1\"",
        "'send' is an interface of a generator",
    );
    let both = faults_of(&LEAST.replace("\"dut\"", "[\"dut\", \"reference\"]"));
    assert!(both[0].contains("a DUT is nothing else"), "{both:#?}");
    let two = faults_of(
        &LEAST
            .replace("\"generator\"", "\"receiver\"")
            .replace("send.name", "receive.name"),
    );
    assert!(
        two.iter().any(|f| f.contains("g is a receiver already")),
        "{two:#?}"
    );
    assert!(
        two.iter().any(|f| f.contains("this lab has no generator")),
        "{two:#?}"
    );
}

#[test]
fn faults_of_cables() {
    let with = |dut_in: &str, send: &str| {
        LEAST
            .replace("in.name = \"ix0\"", &format!("in.name = \"ix0\"\n{dut_in}"))
            .replace(
                "send.name = \"ix0\"",
                &format!("send.name = \"ix0\"\n{send}"),
            )
    };
    let far = with(
        "in.addresses = [\"198.18.0.1/24\"]",
        "send.addresses = [\"198.18.9.2/24\"]",
    );
    assert!(faults_of(&far)[0].contains("198.18.9.2/24 of g is in no network of [in] of d"));
    let hop = with(
        "in.addresses = [\"198.18.0.1/24\"]\nin.next-hops = [\"198.18.0.9\"]",
        "send.addresses = [\"198.18.9.2/24\"]",
    );
    read(&hop);
    let wrong_hop = with(
        "in.addresses = [\"198.18.0.1/24\"]\nin.next-hops = [\"198.19.0.9\"]",
        "",
    );
    assert!(faults_of(&wrong_hop)[0].contains("198.19.0.9 is in no network of [in]"));
    read(&with(
        "in.addresses = [\"198.18.0.1/24\"]",
        "send.addresses = [\"198.18.0.2\"]",
    ));
    let twice = with(
        "in.mac = \"02:00:00:00:00:01\"",
        "send.mac = \"02:00:00:00:00:01\"",
    );
    assert!(faults_of(&twice)[0].contains("02:00:00:00:00:01 is the address of g.send already"));
    let group = with("in.mac = \"01:00:5e:00:00:01\"", "");
    assert!(faults_of(&group)[0].contains("cannot be the Ethernet address"));
    let unknown = LEAST.replace("in.name = \"ix0\"", "in.netmap = true");
    assert!(faults_of(&unknown)[0].contains("which interface of d [in] is"));
    read(&unknown.replace(
        "send.name = \"ix0\"",
        "send.name = \"ix0\"\nsend.addresses = [\"198.18.0.2\"]",
    ));
}

#[test]
fn remarks_are_no_faults() {
    let text = LEAST
        .replace("isolated = true", "isolated = false")
        .replace(
            "out.name",
            "system = \"netbsd\"\nout.networks = [\"192.0.2.0/24\", \"198.19.4.0/24\"]\nout.name",
        );
    let lab = read(&text);
    let remarks: Vec<&str> = lab.remarks.iter().map(|r| r.message.as_str()).collect();
    assert_eq!(remarks.len(), 3, "{remarks:#?}");
    assert!(!lab.isolated && remarks[0].contains("nothing will be sent"));
    assert!(remarks[1].contains("NetBSD") && remarks[2].contains("192.0.2.0/24 may be somebody's"));
}

#[test]
fn schema_and_reader_know_the_same_keys() {
    fn compare(
        root: &serde_json::Value,
        schema: &serde_json::Value,
        table: &'static Table,
        seen: &mut usize,
    ) {
        let name = schema["$ref"]
            .as_str()
            .and_then(|r| r.strip_prefix("#/$defs/"));
        let schema = name.map_or(schema, |name| &root["$defs"][name]);
        let properties = schema["properties"].as_object().unwrap();
        assert_eq!(properties.len(), table.all().count(), "{}", table.what);
        for key in table.all() {
            *seen += 1;
            let property = &properties[key.name];
            assert!(
                property["description"]
                    .as_str()
                    .is_some_and(|d| d.starts_with(key.about)),
                "{}",
                key.name
            );
            match key.kind {
                Kind::Table(inner) => compare(root, property, inner, seen),
                Kind::OneOrMore(Kind::Table(inner)) => {
                    compare(root, &property["anyOf"][0], inner, seen)
                }
                Kind::Named(Kind::Table(inner), _) => {
                    compare(root, &property["additionalProperties"], inner, seen)
                }
                _ => {}
            }
        }
    }
    let (root, mut seen) = (schema(), 0);
    compare(&root, &root, &keys::LAB, &mut seen);
    assert_eq!(seen, 4 + 20 + 5 * 8 + 3);
    assert!(
        root["$defs"]["a-host"]["properties"]["role"]["description"]
            .as_str()
            .unwrap()
            .contains("is measured")
    );
}

/// Only of a device that nobody can ask, the operator states what linerate asks others for.
#[test]
fn software_and_configuration_are_stated_of_black_boxes_alone() {
    let lab = EXAMPLE_BLACK_BOX.replace("# software", "software");
    let stated = Lab::read(lab.as_bytes()).unwrap().black_box.unwrap();
    assert_eq!(stated.software.as_deref(), Some("ExampleOS 7.2.1"));
    // The template states nothing of a device that its author does not know.
    let template = Lab::read(EXAMPLE_BLACK_BOX.as_bytes()).unwrap();
    let template = template.black_box.unwrap();
    assert_eq!((template.statement, template.software), (None, None));
    let asked = EXAMPLE_NAMESPACES.replace("role = \"dut\"", "role = \"dut\"\nsoftware = \"x\"");
    assert!(
        faults_of(&asked)
            .iter()
            .any(|fault| fault.contains("router is no black box"))
    );
}

#[test]
fn files_that_are_none() {
    assert!(faults_of("").iter().any(|f| f.contains("needs hosts")));
    assert!(faults_of("hosts = 3\nisolated = true")[0].contains("does not take an integer"));
    assert!(
        faults_of("[hosts]\nisolated = true")
            .iter()
            .any(|f| f.contains("this lab has no generator") || f.contains("does not take"))
    );
    assert!(
        Lab::read(&vec![b'#'; MOST_BYTES + 1]).unwrap_err()[0]
            .message
            .contains("a lab file has at most")
    );
    assert!(Lab::read(b"\xff").unwrap_err()[0].message.contains("UTF-8"));
    let many: String = (0..20_000).map(|n| format!("[hosts.h{n}]\n")).collect();
    assert!((1..=1000).contains(&Lab::read(many.as_bytes()).unwrap_err().len()));
}

#[test]
fn every_prefix_of_a_lab_is_read_or_has_faults_on_its_lines() {
    for end in 0..EXAMPLE.len() {
        let prefix = &EXAMPLE.as_bytes()[..end];
        let lines = prefix.iter().filter(|b| **b == b'\n').count() + 1;
        if let Err(faults) = Lab::read(prefix) {
            assert!(
                !faults.is_empty()
                    && faults
                        .iter()
                        .all(|f| (1..=lines).contains(&f.place.unwrap().line)),
                "{end}"
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn mutated_labs_never_panic(edits in edits(5), least in any::<bool>()) {
        let bytes = mutated(if least { LEAST } else { EXAMPLE }, edits, OF_TOML);
        let lines = bytes.iter().filter(|b| **b == b'\n').count() + 1;
        match Lab::read(&bytes) {
            Err(faults) => prop_assert!(!faults.is_empty() && faults.iter().all(|f| (1..=lines).contains(&f.place.unwrap().line))),
            Ok(lab) => prop_assert!(lab.generators().count() > 0 && !lab.receiver().name.is_empty()),
        }
    }
}
