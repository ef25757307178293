//! Imports as a whole: from the texts of a configuration, its sets and presets to a lab and a plan.

mod hostile;
mod shells;

use super::*;
use linerate_measure::experiment::System;
use linerate_plan::Backend;
use linerate_plan::campaign::Campaign;
use linerate_plan::lab::{OperatingSystem, Role};

/// A configuration for two hosts, in the form that the archive's have.
const TWO: &str = include_str!("tests/two.config");

const RC_CONF: &str = r#"###### BSD Router Project Base Configuration ########
hostname="router"
ifconfig_igb0="inet 192.0.2.9/24"
gateway_enable="YES"
static_routes="generator receiver"
route_generator="-net 198.18.0.0/16 198.18.0.203"
route_receiver="-net 198.19.0.0/16 198.19.0.203"
static_arp_pairs="receiver generator"
static_arp_generator="198.18.0.203 02:00:00:00:02:03"
static_arp_receiver="198.19.0.203 02:00:00:00:03:03"
ifconfig_igb1="inet 198.18.0.209/24 -tso4 -lro"
ifconfig_igb2="inet 198.19.0.209/24 -tso4 -lro"
ipv6_route_generator="2001:2:: -prefixlen 49 2001:2::203"
ifconfig_igb1_ipv6="inet6 2001:2::209 prefixlen 64"
"#;

fn source(config: &str) -> Source {
    Source {
        title: "t".into(),
        path: "bench.config".into(),
        config: config.into(),
        ..Source::default()
    }
}

fn folder(path: &str, files: &[(&str, &str)]) -> Option<Folder> {
    let file = |(path, text): &(&str, &str)| File {
        path: (*path).into(),
        bytes: (*text).into(),
        executable: false,
    };
    let mut files: Vec<File> = files.iter().map(file).collect();
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Some(Folder {
        path: path.into(),
        files,
        unread: Vec::new(),
    })
}

fn made(source: &Source) -> Imported {
    import(source).unwrap_or_else(|faults| panic!("{faults:#?}"))
}

fn lab(imported: &Imported) -> Lab {
    Lab::read(imported.lab.as_bytes())
        .unwrap_or_else(|faults| panic!("{faults:#?}\n{}", imported.lab))
}

fn campaign(plan: &PlanFile) -> Campaign {
    let read = Plan::read(plan.text.as_bytes())
        .unwrap_or_else(|faults| panic!("{faults:#?}\n{}", plan.text));
    read.campaign(System::FreeBsd, false).unwrap().clone()
}

/// Settings that were not carried over, as `file:line setting`.
fn left(imported: &Imported) -> Vec<String> {
    let place = |n: &Note| format!("{}:{} {}", n.file, n.line.unwrap_or(0), n.what);
    imported.notes.not_carried.iter().map(place).collect()
}

#[track_caller]
fn says(list: &[String], part: &str) {
    assert!(
        list.iter().any(|line| line.contains(part)),
        "no {part} in {list:#?}"
    );
}

#[test]
fn a_configuration_alone_becomes_a_lab_and_a_plan() {
    let imported = made(&source(TWO));
    // The DUT's interfaces have no names: they are found by address, and by the route to the receiver.
    let lab = lab(&imported);
    assert!(imported.lacking.is_empty() && !lab.isolated && lab.placeholders().is_none());
    let dut = lab.dut().unwrap();
    assert_eq!(dut.reach.to_string(), "root@192.0.2.9");
    assert_eq!(
        dut.inside.as_ref().unwrap().mac.unwrap().to_string(),
        "02:00:00:00:02:09"
    );
    assert_eq!(
        (dut.boot.timeout_ns, dut.boot.reaches.len()),
        (300_000_000_000, 2)
    );
    let tester = lab.receiver();
    assert_eq!(
        (tester.reach.to_string().as_str(), tester.sudo, tester.tool),
        ("192.0.2.3", true, Some(Backend::PktGen))
    );
    assert_eq!(
        (tester.send[0].name.as_deref(), tester.send[0].threads),
        (Some("igb2"), Some(2))
    );
    assert_eq!(
        tester.receive.as_ref().unwrap().name.as_deref(),
        Some("igb3")
    );

    let campaign = campaign(&imported.plans[0]);
    assert_eq!(
        (
            imported.plans.len(),
            campaign.kinds.len(),
            campaign.kinds[0].flows
        ),
        (1, 1, 2000)
    );
    assert_eq!(campaign.kinds[0].size.pattern, [64]);
    let notes = left(&imported);
    let plan = &imported.plans[0].text;
    assert!(
        plan.starts_with("# Made by `linerate import benchlab` from bench.config; what was not"),
        "{plan}"
    );
    assert!(
        plan.contains("\n# Not carried over:\n#   bench.config:17: PKT_TO_SEND: a plan's trials"),
        "{plan}"
    );
    says(&notes, "bench.config:17 PKT_TO_SEND");
    says(
        &notes,
        "bench.config:19 PMC_EVENT: linerate's profiles (collect.profile, --profile)",
    );
    assert_eq!(notes.len(), 2, "{notes:#?}");
    assert!(
        imported
            .notes
            .carried
            .iter()
            .any(|n| n.line == Some(5) && n.what == "DUT_ADMIN: hosts.dut.ssh")
    );
}

#[test]
fn sets_become_variants_and_tell_the_routers_interfaces() {
    let mut source = source(TWO);
    source.sets = folder(
        "configs",
        &[
            (
                "351/etc/rc.conf",
                &format!("{RC_CONF}harvest_mask=\"351\"\n"),
            ),
            (
                "351/etc/sysctl.conf",
                "# none\n dev.igb.0.fc = 0 # no pause\nnot a setting\n",
            ),
            ("351/boot/loader.conf.local", "hw.usb.no_pf=\"1\"\t# x\n"),
            ("351/etc/pf.conf", "pass in on {in} from { 10.0.0.0/8 }\n"),
            ("511-default/etc/rc.conf", RC_CONF),
            ("511-default/etc/master.passwd", "root:*"),
            ("README", "x"),
        ],
    );
    let imported = made(&source);
    let lab = lab(&imported);
    let dut = lab.dut().unwrap();
    assert_eq!(
        (lab.placeholders(), dut.system),
        (Some(("igb1", "igb2")), Some(OperatingSystem::Bsdrp))
    );
    assert_eq!(
        dut.management.as_ref().unwrap().name.as_deref(),
        Some("igb0")
    );
    let inside = dut.inside.as_ref().unwrap();
    assert_eq!(inside.networks, ["198.18.0.0/16", "2001:2::/49"]);
    assert_eq!(
        inside
            .addresses
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>(),
        ["198.18.0.209/24", "2001:2::209/64"]
    );
    let tester = lab.receiver();
    let send: Vec<String> = tester.send[0]
        .addresses
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(send, ["198.18.0.203/24", "2001:2::203/64"]);
    assert_eq!(
        tester.receive.as_ref().unwrap().mac.unwrap().to_string(),
        "02:00:00:00:03:03"
    );

    let campaign = campaign(&imported.plans[0]);
    let names: Vec<&str> = campaign.cells.iter().map(|c| c.variant.as_str()).collect();
    assert_eq!(names, ["351", "511-default"]);
    assert_eq!(campaign.cells[0].baseline, Some(1));
    let settings = &campaign.lanes[campaign.cells[0].lane].settings;
    assert_eq!(settings.sysctls["dev.igb.0.fc"], "0");
    assert_eq!(settings.boot["hw.usb.no_pf"], "1");
    let pf = settings
        .files
        .iter()
        .find(|f| f.path == "/etc/pf.conf")
        .unwrap();
    let filled = linerate_plan::placeholders::fill(&pf.text, "ix0", "ix1");
    assert_eq!(
        filled, "pass in on {in} from { 10.0.0.0/8 }\n",
        "braces of others stay"
    );
    let rc = settings
        .files
        .iter()
        .find(|f| f.path == "/etc/rc.conf")
        .unwrap();
    assert_eq!(rc.text, format!("{RC_CONF}harvest_mask=\"351\"\n"));
    let notes = left(&imported);
    says(
        &notes,
        "configs/351/etc/sysctl.conf:3 this is no setting: not a setting",
    );
    says(&notes, "configs/README:0 it is in no set");
    says(
        &notes,
        "configs/511-default/etc/master.passwd:0 accounts and keys",
    );
}

#[test]
fn commands_around_a_trial_and_profiles_are_collected() {
    let more = "DURING_IF=igb1\nDURING_CMD=\"nstat -I ${DURING_IF} 1 | grep -v {in}\"\nAFTER_CMD='netstat -s'\n\
        BEFORE_CMD='pfctl -F states'\nPMC=true\nPMC_DURATION=5\n";
    let imported = made(&source(&format!("{TWO}\n{more}")));
    let collect = campaign(&imported.plans[0]).collect;
    let filled = linerate_plan::placeholders::fill(&collect.during[0], "ix0", "ix1");
    assert_eq!(
        (collect.during.len(), filled.as_str()),
        (1, "nstat -I igb1 1 | grep -v {in}")
    );
    assert_eq!(
        (collect.commands, collect.profile_ns),
        (vec!["netstat -s".to_string()], Some(5_000_000_000))
    );
    let notes = left(&imported);
    says(&notes, "BEFORE_CMD: it runs on the DUT before each trial");
    let named = |name: &str| notes.iter().filter(|note| note.contains(name)).count();
    let all = [
        "DURING_CMD",
        "DURING_IF",
        "AFTER_CMD",
        "PMC:",
        "PMC_DURATION",
        "PMC_EVENT",
    ]
    .map(named);
    assert_eq!(all, [0, 0, 0, 0, 0, 1], "{notes:#?}");
    // Without -P, the script samples nothing; an interface that no command names goes nowhere.
    let imported = made(&source(&format!(
        "{TWO}\nDURING_IF=igb1\nPMC_DURATION=5\nAFTER_CMD='a\nb'\n"
    )));
    assert_eq!(campaign(&imported.plans[0]).collect.profile_ns, None);
    let notes = left(&imported);
    says(
        &notes,
        "DURING_IF: collect.during names the interfaces itself",
    );
    says(&notes, "PMC_DURATION: the script profiles with -P");
    says(&notes, "AFTER_CMD: it has several lines");
}

#[test]
fn presets_become_factors_where_they_are_all_combinations() {
    let mut source = source(TWO);
    source.presets = folder(
        "RFC2544",
        &[
            ("64", "PKT_SIZE=\"60\""),
            ("128", "PKT_SIZE=124"),
            ("1518", "PKT_SIZE=\"1514\""),
        ],
    );
    let campaign = campaign(&made(&source).plans[0]);
    assert_eq!(
        campaign.experiment.factors[0].levels,
        ["64 B", "128 B", "1518 B"]
    );
    assert_eq!(
        (campaign.experiment.factors.len(), campaign.cells.len()),
        (1, 3)
    );

    let v6 = "AF=\"6\"\nPKT_SIZE=62\nSENDER_LAB_NET=\"[2001:2::1]-[2001:2::14]\"\nRECEIVER_LAB_NET=\"[2001:2:0:8000::1]-[2001:2:0:8000::64]\"";
    source.presets = folder(
        "dualstack",
        &[
            ("inet4", "SENDER_LAB_NET=\"198.18.10.1:2000-198.18.10.20\""),
            ("inet6", v6),
        ],
    );
    let imported = made(&source);
    // Size and family differ together: no levels of factors, so a plan for each.
    let names: Vec<&str> = imported.plans.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(names, ["PLAN-inet4.toml", "PLAN-inet6.toml"]);
    let six = &self::campaign(&imported.plans[1]).kinds[0];
    assert_eq!((six.family.to_string().as_str(), six.flows), ("IPv6", 2000));
}

#[test]
fn a_preset_keeps_what_the_one_before_it_set_as_the_scripts_shell_does() {
    let mut source = source(TWO);
    source.presets = folder(
        "p",
        &[
            ("a", "PKT_SIZE=1514"),
            ("b", "SENDER_LAB_NET=\"198.18.10.1-198.18.10.5\""),
            ("c", "touch x"),
        ],
    );
    let imported = made(&source);
    let notes = left(&imported);
    says(&notes, "p/b:0 the preset says less than one before it");
    says(&notes, "p/c:1 the preset is left out: 'touch' is a command");
    assert_eq!(campaign(&imported.plans[0]).kinds[0].size.pattern, [1518]);
}

#[test]
fn two_generators_and_two_senders_on_one() {
    let more = r#"
RECEIVER_ADMIN="192.0.2.4"
SENDER_LAB_IF_2="igb4"
SENDER_LAB_IF_MAC_2="02:00:00:00:02:04"
SENDER_START_CMD_2="pkt-gen -f tx -i ${SENDER_LAB_IF_2} -d 198.19.10.1 -s 198.18.20.1 -l 60 -a 3 -R 10m"
SENDER_ADMIN_2="gen2"
SENDER_2_START_CMD="pkt-gen -f tx -i ix0 -d 198.19.10.1 -s 198.18.30.1 -l 60"
"#;
    let imported = made(&source(&format!("{TWO}{more}")));
    let lab = lab(&imported);
    let generators: Vec<(&str, usize)> = lab
        .generators()
        .map(|h| (h.name.as_str(), h.send.len()))
        .collect();
    assert_eq!(generators, [("generator", 2), ("generator2", 1)]);
    assert_eq!(lab.receiver().roles, [Role::Receiver]);
    let notes = left(&imported);
    says(&notes, "SENDER_START_CMD_2: pkt-gen's -a 3");
    says(&notes, "it sends other frames than the first");
}

#[test]
fn tunnels_have_a_reference() {
    let config = TWO
        .replace("REF_ADMIN=\"\"", "REF_ADMIN=far")
        .replace("ping -c 2 ${RECEIVER_LAB_IP}", "ping -c 2 198.18.1.203");
    // Everything behind a command of equilibrium: it drives both ends itself.
    let start = config.find("RECEIVER_START_CMD").unwrap();
    let config = format!(
        "{}RECEIVER_START_CMD=\"\"\nSENDER_START_CMD=\"equilibrium -4 -d ${{DUT_LAB_IF_MAC_SENDER_SIDE}} -t igb2 -r igb3\"\n",
        &config[..start]
    );
    let alone = made(&source(&config));
    let lab_alone = lab(&alone);
    assert_eq!(
        lab_alone
            .reference()
            .unwrap()
            .inside
            .as_ref()
            .unwrap()
            .addresses[0]
            .to_string(),
        "198.18.1.203"
    );
    assert_eq!(
        lab_alone
            .receiver()
            .receive
            .as_ref()
            .unwrap()
            .name
            .as_deref(),
        Some("igb3")
    );
    says(&left(&alone), "equilibrium looks for the load without loss");

    let rc = "ifconfig_igb1=\"inet 198.18.0.205/24\"\nifconfig_igb2=\"inet 198.18.1.205/24\"\nroute_receiver=\"-net 198.19.0.0/16 198.18.1.203\"\n";
    let far = "ifconfig_ix0=\"inet 198.18.1.203/24\"\nifconfig_ix1=\"inet 198.19.0.201/24\"\nroute_receiver=\"-net 198.19.0.0/16 198.19.0.203\"\n";
    let mut with_sets = source(&config);
    with_sets.sets = folder(
        "ipsec",
        &[
            ("null/dut/etc/rc.conf", rc),
            ("null/refendpoint/etc/rc.conf", far),
        ],
    );
    let imported = made(&with_sets);
    let lab = lab(&imported);
    let reference = lab.reference().unwrap();
    assert_eq!(
        reference.inside.as_ref().unwrap().name.as_deref(),
        Some("ix0")
    );
    assert_eq!(
        reference.outside.as_ref().unwrap().name.as_deref(),
        Some("ix1")
    );
    assert_eq!(lab.placeholders(), Some(("igb1", "igb2")));
    says(
        &left(&imported),
        "ipsec/null/refendpoint:0 a plan configures the DUT alone",
    );
}

#[test]
fn what_cannot_be_a_value_is_told_and_not_written() {
    let config = TWO
        .replace("\"igb2\"", "\"igb2; reboot\"")
        .replace("\"198.18.0.203\"", "\"nowhere\"")
        .replace("PKT_TO_SEND:=\"80000000\"", "PKT_TO_SEND:=$(date +%s)")
        .replace("-i ${SENDER_LAB_IF} ", "");
    let imported = made(&source(&format!("{config}OTHER=1\nMAIL=me\n")));
    let notes = left(&imported);
    says(
        &notes,
        "SENDER_LAB_IF: 'igb2; reboot' is not a valid interface name",
    );
    says(&notes, "SENDER_LAB_IP: 'nowhere' is not a valid IP address");
    says(&notes, "OTHER: a lab and a plan have nothing like it");
    says(&notes, "MAIL: it is about the script's report");
    // A command that contains an unknown value is unknown as well.
    says(
        &notes,
        "SENDER_START_CMD: its value is not known: a command would have to be run for it",
    );
    assert!(
        !imported.lab.contains("reboot;") && !imported.lab.contains("; reboot"),
        "{}",
        imported.lab
    );
    // Missing settings are reported with their places in the lab file.
    Plan::read(imported.plans[0].text.as_bytes()).unwrap();
}

/// The archive has `-R 990000000`: as fast as possible.
#[test]
fn a_rate_that_no_plan_can_ask_for_is_the_maximum() {
    let imported = made(&source(
        &TWO.replace("-p 2 -T 2000", "-p 2 -T 2000 -R 990000000"),
    ));
    assert!(
        imported.plans[0].text.contains("rate = \"max\""),
        "{}",
        imported.plans[0].text
    );
    says(
        &left(&imported),
        "990000000 frames a second are more than a plan can ask for",
    );
    campaign(&imported.plans[0]);
}

#[test]
fn what_is_no_configuration_is_refused() {
    let messages = |text: &str| -> Vec<String> {
        import(&source(text))
            .unwrap_err()
            .iter()
            .map(|f| format!("{}: {}", f.place.unwrap().line, f.message))
            .collect()
    };
    let empty = messages("A=1\n");
    assert!(
        empty.len() == 3 && empty[0].contains("DUT_ADMIN is not set"),
        "{empty:#?}"
    );
    let unknown = messages(&TWO.replace("\"192.0.2.9\"", "$(hostname)"));
    assert_eq!(
        unknown,
        ["5: the value of DUT_ADMIN is not known: a command would have to be run for it"]
    );
    assert!(messages(&TWO.replace("\"192.0.2.9\"", ""))[0].contains("DUT_ADMIN is empty"));
    assert!(
        messages(&format!("{TWO}if true; then DUT_ADMIN=x; fi\n"))[0].contains("'if' is a command")
    );
}
