//! The records of a campaign, as files.

use crate::common::{Scratch, linerate_line};
use serde_json::Value;
use std::fs;

const PLAN: &str = r#"# Seven flows are few.
title = "NAT"
question = "What does NAT cost?"
traffic.flows = 7

[variants.router]
[variants.nat]
from = "nat"

[trials]
duration = "20 ms"
blocks = 2
"#;

fn document(scratch: &Scratch, file: &str) -> Value {
    serde_json::from_str(&fs::read_to_string(scratch.file(file)).unwrap()).unwrap()
}

#[test]
fn a_record_keeps_the_plan_as_its_author_wrote_it() {
    let scratch = Scratch::new();
    fs::write(scratch.file("plan.toml"), PLAN).unwrap();
    let run = |line: &str| linerate_line(line).dir(scratch.path()).run().no_panic();
    let source = |records: &str| {
        let campaign = document(&scratch, &format!("{records}/campaign.json"));
        campaign["planned"]["source"].as_str().unwrap().to_string()
    };
    run("run plan.toml --simulate ok --out run --quiet");
    assert_eq!(source("run"), PLAN);
    let page = run("report run").stdout;
    assert!(page.contains("# Seven flows are few."), "{page}");
    // Arguments over the file are part of the plan that was carried out, and so is what a bench is asked for.
    run("search plan.toml --duration 100ms --budget 2s --simulate ok --out search --quiet");
    run("bench --family 4 --trials 1 --duration 20ms --simulate ok --out bench --quiet");
    for (records, says) in [("search", "budget = \"2 s\""), ("bench", "duration = \"20 ms\"")] {
        assert!(source(records).contains(says), "{}", source(records));
        fs::write(scratch.file("again.toml"), source(records)).unwrap();
        linerate_line("plan check again.toml").dir(scratch.path()).run().ok();
    }
}
