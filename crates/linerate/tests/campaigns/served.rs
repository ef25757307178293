//! Connections that nginx answers: the tester's programs and nginx count the same ones, and a server that does not do its work is found out.

use super::connections::{attempted, failed, plan, reached, trials};
use super::experiment::Experiment;
use super::http::{found_out, nginx_with};
use crate::common::campaign::faults;

const BY_NGINX: &str = "served-by = \"nginx\"";

#[test]
#[ignore = "needs root, nft and nginx: run by make test as root"]
fn nginx_counts_each_connection_that_the_programs_of_the_tester_count() {
    // An answer of several segments.
    let traffic = format!("{BY_NGINX}, object = 5000");
    let variants = r#"
        variants.forwarding = { about = "no firewall" }
        variants.numbers = { dut = "known-numbers=1000", rules = { tool = "nftables", filter = "stateful" } }
        variants.syn.dut = "known-loss=97@syn"
    "#;
    let experiment = Experiment::new(&plan(&traffic, variants), "");
    experiment.run("").run().counted();
    let mut lost = 0;
    for (name, trial) in &trials(&experiment) {
        assert_eq!(faults(trial), "", "{name}");
        let (n, nginx) = (attempted(trial), &trial["opened"]["nginx"]);
        assert!(n > 0, "{name}");
        let mut expected = [0; 6];
        if name.starts_with("syn") {
            expected[0] = n / 97;
            lost += n / 97;
        }
        assert_eq!(failed(trial), expected, "{name}: of {n}");
        let reached = reached(trial);
        assert_eq!(nginx["requests"], reached[2], "{name}");
        assert_eq!(nginx["accepted"], reached[2], "{name}");
        // With the headers, which are some 230 bytes.
        let read = nginx["read"].as_u64().unwrap();
        assert!(
            (n * 5100..n * 5300).contains(&read) || name.starts_with("syn"),
            "{name}: {nginx}"
        );
        if name.starts_with("numbers") {
            assert_eq!(trial["connections"]["tracked"], n, "{name}");
        }
    }
    assert!(lost > 0);
}

#[test]
#[ignore = "needs root and nginx: run by make test as root"]
fn a_server_that_does_not_answer_or_counts_otherwise_is_told() {
    let plan = plan(BY_NGINX, "variants.a = { about = \"a\" }");
    let down = found_out(&plan, "nginx", "echo 'no disk' >&2; exit 3");
    assert!(
        down.contains("nginx: ") && down.contains("no disk"),
        "{down}"
    );
    let change = "s/root .;/root nowhere;/; s/stub_status;/return 200 'Active connections: 1 requests 9999999 0 9999999';/";
    let wrong = found_out(&plan, "nginx", &nginx_with(change));
    for says in [
        "answers were no object, but an error of the server",
        "nginx: requests, of those that arrived",
    ] {
        assert!(wrong.contains(says), "{wrong}");
    }
}

#[test]
fn connections_that_nginx_cannot_answer_are_refused_with_what_to_do() {
    for (traffic, key) in [
        ("connections = \"rst\"", "connections"),
        ("open = 10", "open"),
        ("servers = 2", "servers"),
        ("family = \"IPv6\"", "family"),
        ("flood = \"1 kpps\"", "flood"),
        ("illegal = \"10 %\"", "illegal"),
        ("object = 65536", "object"),
    ] {
        let plan = plan(
            &format!("{BY_NGINX}, {traffic}"),
            "variants.a = { about = \"a\" }",
        );
        let says = format!("connections that nginx answers cannot have this {key}");
        Experiment::new(&plan, "").run("").run().fails(2, &[&says]);
    }
}
