//! DUTs that change sequence numbers, through the kernel: every connection and every SYN of a flood is accounted for.

use super::connections::{attempted, plan, reached, trials};
use super::experiment::Experiment;
use crate::common::campaign::faults;

#[test]
#[ignore = "needs root and nft: run by make test as root"]
fn duts_that_change_sequence_numbers_are_measured_with_a_table() {
    let variants = r#"
        variants.shifted.dut = "known-numbers=123457"
        [variants.proxied]
        sysctls = { "net.netfilter.nf_conntrack_tcp_loose" = 0 }
        files = [{ path = "proxy.nft", text = """
        table inet proxy {
          chain early {
            type filter hook prerouting priority raw
            tcp dport 80 tcp flags syn notrack
          }
          chain forward {
            type filter hook forward priority 0
            meta l4proto tcp ct state invalid,untracked synproxy mss 1460 wscale 7 timestamp sack-perm
            ct state invalid drop
          }
        }
        """ }]
        commands = [{ run = "nft -f proxy.nft", undo = "nft delete table inet proxy" }]
        [factors]
        exchange = { sets = "traffic.connections", levels = ["request", "greeting", "rst"] }
        family = { sets = "traffic.family", levels = ["IPv4", "IPv6"] }
    "#;
    let load = "connections = \"request\", object = 100, flood = \"5 kpps\"";
    let experiment = Experiment::new(&plan(load, variants), "");
    let ended = experiment.run("--full").run().counted();
    assert!(ended.stdout.contains("answered"), "{}", ended.stdout);
    let all = trials(&experiment);
    // Two variants and the tester alone.
    assert_eq!(all.len(), 3 * 3 * 2, "{}", ended.stdout);
    for (name, trial) in &all {
        assert_eq!(faults(trial), "", "{name}");
        let (n, reached) = (attempted(trial), reached(trial));
        assert!(
            n > 0 && reached.iter().all(|stage| *stage == n),
            "{name}: {n} attempted, {reached:?}"
        );
        let opened = &trial["opened"];
        let number = |key: &str| opened[key].as_u64().unwrap_or(0);
        let flood = |key: &str| opened["flood"][key].as_u64().unwrap();
        let proxied = name.contains("proxied");
        assert_eq!(number("proxied"), if proxied { n } else { 0 }, "{name}");
        let changed = proxied || name.contains("shifted");
        assert_eq!(number("shifted"), if changed { n } else { 0 }, "{name}");
        // A SYN proxy answers all SYNs, and sends on those of clients that answer back.
        let [arrived, answered] = ["arrived", "answered"].map(flood);
        let all = flood("sent");
        let expected = if proxied { [0, all] } else { [all, 0] };
        assert!(
            all > 0 && [arrived, answered] == expected,
            "{name}: {opened}"
        );
    }
}

#[test]
#[ignore = "needs root and nft: run by make test as root"]
fn a_dut_that_changes_numbers_and_addresses_is_not_measured() {
    let variants = r#"
        [variants.both]
        dut = "known-numbers=123457"
        rules = { tool = "nftables", filter = "nat" }
    "#;
    let experiment = Experiment::new(&plan("connections = \"request\"", variants), "");
    let ended = experiment.run("").run();
    assert!(!ended.status.success(), "{}", ended.stdout);
    let all = trials(&experiment);
    let of_dut = all.iter().filter(|(name, _)| !name.contains("tester"));
    for (name, trial) in of_dut {
        assert!(faults(trial).contains("numbers and addresses"), "{name}");
    }
}
