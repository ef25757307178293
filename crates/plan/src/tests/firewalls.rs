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
