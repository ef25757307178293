//! Frames in both directions at once, through rules that treat the directions differently.

use super::experiment::Experiment;
use serde_json::Value;

const RULES: &str = r#"
title = "Directions"
question = "What do rules of one direction do to both?"

[traffic]
direction = "both"
flows = 100

[variants.in-alone]
files = [{ path = "fw.nft", text = """
table inet fw {
  chain forward {
    type filter hook forward priority filter; policy drop;
    iifname "{in}" accept
  }
}
""" }]
commands = [{ run = "nft -f fw.nft", undo = "nft delete table inet fw" }]

[variants.answered]
files = [{ path = "fw.nft", text = """
table inet fw {
  chain forward {
    type filter hook forward priority filter; policy drop;
    ct state established accept
    iifname "{in}" ct state new accept
  }
}
""" }]
commands = [{ run = "nft -f fw.nft", undo = "nft delete table inet fw" }]

[lab]
batch = 32
[trials]
duration = "50 ms"
blocks = 3
"#;

/// Every frame from the outside answers one from the inside. Rules that allow only the inside to open connections pass it if they keep
/// states, and drop it otherwise. The page says so.
#[test]
#[ignore = "needs root and nft: run by make test as root"]
fn rules_that_pass_one_direction_show_as_such() {
    let experiment = Experiment::new(RULES, "");
    let ended = experiment.run("--full").run().no_panic();
    let rows = experiment.document("summary.json")["rows"].clone();
    let of = |variant: &str| -> Value {
        let rows = rows.as_array().unwrap().iter();
        let mut rows = rows.filter(|row| row["name"] == variant);
        rows.next()
            .unwrap_or_else(|| panic!("{variant}: {ended:?}"))["directions"]
            .clone()
    };
    let lost = |ways: &Value, way: usize| ways[way]["loss_ratio"].as_f64().unwrap();
    let alone = of("in-alone");
    assert!(lost(&alone, 0) < 0.5 && lost(&alone, 1) == 1.0, "{alone}");
    let answered = of("answered");
    assert!(
        lost(&answered, 0) < 0.5 && lost(&answered, 1) < 0.5,
        "{answered}"
    );
    let page = &ended
        .stdout
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    assert!(
        page.contains("no frame came through in the reverse direction"),
        "{page}"
    );
    assert!(page.contains("Each direction"), "{page}");
}
