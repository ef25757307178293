//! The exit statuses that a script may rely on: what the plan's author expects decides.

use super::experiment::Experiment;

/// One variant, of whose rate something is expected.
fn expecting(is: &str, rate: &str) -> Experiment {
    let plan = format!(
        r#"
title = "A rate"
question = "Is it what was expected?"

[variants.forwarding]

[trials]
duration = "10 ms"
blocks = 8

[[expect]]
of = "forwarding"
is = "{is}"
rate = "{rate}"
because = "a test says so"
"#
    );
    Experiment::new(&plan, "--simulate ok")
}

#[test]
fn a_missed_expectation_is_status_3_and_a_met_one_is_none() {
    let met = expecting("at-least", "1 kpps").run("").run().status(0);
    assert!(met.stdout.contains("What the plan's author expects: 1 met."), "{}", met.stdout);
    let missed = expecting("at-least", "900 Gpps").run("").run().status(3);
    assert!(missed.stdout.contains("What the plan's author expects: 1 MISSED."), "{}", missed.stdout);
    let json = expecting("at-most", "1 kpps").run("--json").run().status(3);
    assert!(json.stdout.contains("\"missed\""), "{}", json.stdout);
}
