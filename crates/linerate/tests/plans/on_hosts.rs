//! `linerate plan show` about hosts: addresses that are asked for, firewalls that go off or are not there.

use crate::common::{Scratch, linerate};
use serde_json::Value;
use std::fs;

/// A plan of pkt-gen does not need the DUT's Ethernet address: the DUT is asked.
#[test]
fn an_address_that_is_asked_for_has_a_name_in_the_commands() {
    let scratch = Scratch::new();
    let lab = linerate(["lab", "example"]).run().ok().stdout;
    let lab = lab.replace("mac = \"00:0d:b9:41:ca:3d\"\n", "");
    let file = scratch.file("lab.toml");
    fs::write(&file, lab).unwrap();
    let shown = linerate(["plan", "show", "lab/forwarding", "--lab", &file])
        .run()
        .ok()
        .stdout;
    let flat = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        flat.contains("-D MAC-OF-router.in`")
            && flat.contains("(MAC-OF-router.in is asked at the start)"),
        "{shown}"
    );
    assert!(!shown.contains("cannot be measured"), "{shown}");
    // The firewalls of an OPNsense are off in this plan, whose variants have none.
    let lab = fs::read_to_string(&file).unwrap();
    fs::write(&file, lab.replace("bsdrp", "opnsense")).unwrap();
    let shown = linerate(["plan", "show", "lab/forwarding", "--lab", &file])
        .run()
        .ok()
        .stdout;
    for line in ["  pf: `script 1 with off`", "  ipfw off: `script "] {
        assert_eq!(shown.matches(line).count(), 2, "{line}\n{shown}");
    }
}

/// OPNsense has no IP Filter: its cells are left out, and take no time.
#[test]
fn what_a_system_lacks_takes_no_time() {
    let of = |system| {
        let args = [
            "plan",
            "show",
            "lab/firewalls",
            "--system",
            system,
            "--json",
        ];
        linerate(args).run().ok().json()
    };
    let (freebsd, opnsense) = (of("freebsd"), of("opnsense"));
    let cells = |of: &Value| of["campaign"]["cells"].as_array().unwrap().len();
    let seconds = |of: &Value| of["timetable"]["total_ns"].as_u64().unwrap();
    assert_eq!((cells(&freebsd), cells(&opnsense)), (14, 10));
    assert!(seconds(&opnsense) < seconds(&freebsd));
    assert!(!opnsense.to_string().contains("\"ipf-"));
}
