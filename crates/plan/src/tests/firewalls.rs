//! Firewalls that a host runs already, and those that a system lacks.

use super::*;
use crate::campaign::Cell;

/// In the embedded lab there is none to be turned off; a host keeps its own where a plan does not say anything.
#[test]
fn no_firewall_is_a_setting_of_hosts() {
    let lines = r#"
        [variants.silent]
        [variants.plain]
        rules = { filter = "none" }
        [variants.filtered]
        from = "plain"
        rules = { tool = "TOOL", filter = "stateless" }
    "#;
    let off = |campaign: &Campaign| {
        let of = |cell: &Cell| {
            let settings = &campaign.lanes[cell.lane].settings;
            (cell.variant != "tester-baseline")
                .then_some((settings.no_firewall, settings.rules.is_some()))
        };
        campaign.cells.iter().filter_map(of).collect::<Vec<_>>()
    };
    let embedded = linux(&lines.replace("TOOL", "nftables"));
    assert_eq!(
        off(&embedded),
        [(false, false), (false, false), (false, true)]
    );
    let lab = "lab = { file = \"lab.toml\", systems = [\"opnsense\"] }\n";
    let hosts = plan(&format!("{lab}{}", lines.replace("TOOL", "pf"))).unwrap();
    let hosts = hosts.campaign(System::OpnSense, false).unwrap();
    assert_eq!(off(hosts), [(false, false), (true, false), (false, true)]);
}

/// Each variant of hosts tells which of the host's own firewalls go off.
#[test]
fn firewalls_that_go_off_are_among_the_changes() {
    let lines = r#"
        [variants.silent]
        [variants.plain]
        rules = { filter = "none" }
        [variants.nested]
        dut = "nested"
        rules = { filter = "none" }
        [variants.filtered]
        rules = { tool = "TOOL", filter = "stateless" }
    "#;
    let off = |system: &str, tool: &str| {
        let lab = format!("lab = {{ file = \"lab.toml\", systems = [\"{system}\"] }}\n");
        let plan = plan(&format!("{lab}{}", lines.replace("TOOL", tool))).unwrap();
        let campaign = plan.campaign(plan.systems[0], false).unwrap();
        let mut all = Vec::new();
        for host in changes::changes(campaign) {
            let mut firewalls = host.changes.iter().filter(|c| c.what.contains("firewalls"));
            let variant = &campaign.lanes[host.lane.unwrap()].variants[0];
            all.extend(firewalls.next().map(|c| {
                assert_eq!((c.to.as_str(), c.reach), ("off", changes::Reach::Host));
                format!("{variant}: {}", c.what)
            }));
        }
        all
    };
    assert_eq!(
        off("opnsense", "pf"),
        [
            "plain: firewalls of the host",
            "filtered: other firewalls of the host"
        ]
    );
    assert_eq!(off("linux", "nftables"), ["plain: firewalls of the host"]);
    let embedded = linux(&lines.replace("TOOL", "nftables"));
    let all = format!("{:?}", changes::changes(&embedded));
    assert!(!all.contains("firewalls"), "{all}");
}

/// Whoever compares rules with a variant that does not mention any compares them with the rules of the host.
#[test]
fn a_baseline_with_the_rules_of_the_host_is_remarked() {
    let remarks = |lab: &str, base: &str, with: &str| {
        let text = format!(
            "title = \"t\"\nquestion = \"q\"\ntrials = {{ duration = \"100 ms\", blocks = 10 }}\n{lab}\n[variants.without]\n{base}\n[variants.with]\n{with}\n[variants.more]\n{with}\nsysctls = {{ \"net.inet.ip.redirect\" = 0 }}"
        );
        let plan = Plan::read_with(text.as_bytes(), &mut |_| Ok("pass\n".into()));
        let mut all = plan.unwrap_or_else(|faults| panic!("{faults:#?}")).remarks;
        // Others are about rule files without counters.
        all.retain(|remark| remark.message.contains("keeps the rules"));
        all
    };
    let hosts = "lab = { file = \"lab.toml\", systems = [\"freebsd\", \"opnsense\"] }";
    let (file, set, none) = (
        "rules = { file = \"pf.conf\" }",
        "rules = { tool = \"pf\", filter = \"stateful\" }",
        "rules = { filter = \"none\" }",
    );
    for with in [file, set] {
        let told = remarks(hosts, "about = \"a\"", with);
        assert_eq!(told.len(), 1, "{told:#?}");
        assert_eq!(told[0].place.unwrap().line, 5, "{told:#?}");
        assert!(!told[0].is_fault());
        let text = told[0].to_string();
        assert!(
            text.contains("'without' keeps the rules that the host runs, and 'with'")
                && text.ends_with("write rules = { filter = \"none\" }"),
            "{text}"
        );
        assert_eq!(remarks(hosts, none, with), []);
        assert_eq!(remarks(hosts, with, none), []);
        assert_eq!(remarks(hosts, with, "").len(), 2);
        assert_eq!(remarks(hosts, "dut = \"nested\"", with), []);
    }
    assert_eq!(remarks(hosts, "about = \"a\"", "cpus = 1"), []);
    let nft = set.replace("pf", "nftables");
    assert_eq!(remarks("", "about = \"a\"", &nft), []);
}

/// A file beside an inherited "none" is a firewall.
#[test]
fn a_rule_file_takes_the_place_of_none() {
    let lines = r#"
        lab = { file = "lab.toml", systems = ["freebsd"] }
        [variants.plain]
        rules = { filter = "none" }
        [variants.mine]
        from = "plain"
        rules = { file = "pf.conf" }
    "#;
    let trials = "trials = { duration = \"100 ms\", blocks = 10 }";
    let text = format!("title = \"t\"\nquestion = \"q\"\n{trials}\n{lines}");
    let plan = Plan::read_with(text.as_bytes(), &mut |_| Ok("pass\n".into())).unwrap();
    let campaign = plan.campaign(System::FreeBsd, false).unwrap();
    let settings = &campaign.lanes[campaign.cells[1].lane].settings;
    assert!(settings.rule_file.is_some() && !settings.no_firewall);
}

/// A variant that may be missing is, on a system without its firewall: it takes no time.
#[test]
fn an_optional_variant_is_left_out_where_its_firewall_is() {
    let lines = r#"
        lab = { file = "lab.toml", systems = ["freebsd", "opnsense"] }
        [variants.plain]
        [variants.ipf]
        optional = true
        rules = { tool = "ipf", filter = "stateless" }
    "#;
    let plan = plan(lines).unwrap();
    let of = |system| plan.campaign(system, false).unwrap();
    assert_eq!(names(of(System::FreeBsd)), ["plain", "ipf"]);
    assert_eq!(names(of(System::OpnSense)), ["plain"]);
}
