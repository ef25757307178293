use super::*;
use crate::Plan;
use proptest::prelude::*;
use serde_json::json;

fn plan(with: impl FnOnce(&mut Source)) -> Result<Plan, Vec<Diagnostic>> {
    let options = [
        ("--link-speed", "lab.link-speed"),
        ("--connections", "traffic.connections"),
        ("--flood", "traffic.flood"),
        ("--illegal", "traffic.illegal"),
    ];
    let options = options.map(|(option, key)| Keyed { option, key });
    let mut source = Source::default().with_options(options.into());
    source.set("", &["title"], "t");
    source.set("", &["question"], "q");
    source.set("", &["variants", "forwarding"], json!({}));
    source.set("--duration", &["trials", "duration"], "250 ms");
    source.set("--trials", &["trials", "blocks"], 6);
    with(&mut source);
    Plan::of(&source, &mut |_| Err("no files".into()))
}

#[test]
fn faults_name_the_argument() {
    let told = |with: fn(&mut Source)| plan(with).unwrap_err()[0].to_string();
    let many = told(|source| source.set("--flows", &["traffic", "flows"], 0));
    assert_eq!(
        many,
        "--flows: 0 is too few: at least 1: write a whole number from 1 to 5000000"
    );
    let share = told(|source| source.set("--rate", &["traffic", "rate"], "50 %"));
    assert!(
        share.starts_with("--rate: ")
            && share.ends_with("add --link-speed 10Gbit/s, or write the rate in pps"),
        "{share}"
    );
    let flood = told(|source| source.set("--flood", &["traffic", "flood"], "1 kpps"));
    assert_eq!(
        flood,
        "--flood: a flood comes with connections only: add --connections request, or leave --flood out"
    );
    let udp = told(|source| {
        source.set("--connections", &["traffic", "connections"], "udp");
        source.set("--flood", &["traffic", "flood"], "1 kpps");
    });
    assert!(
        udp.ends_with("leave --flood out, or use --connections request"),
        "{udp}"
    );
    let slow = told(|source| {
        source.set("--connections", &["traffic", "connections"], "request");
        let levels = vec!["none", "10 pps"];
        source.set("--flood", &["factors", "flood", "sets"], "traffic.flood");
        source.set("--flood", &["factors", "flood", "levels"], levels);
    });
    assert_eq!(
        slow,
        "--flood: a flood of 10 SYN/s has 2.5 SYNs in a trial of 250 ms: use a flood of 40 pps or more, or a longer duration"
    );
    assert!(plan(|_| {}).is_ok());
}

#[test]
fn arguments_lie_over_a_file() {
    let text = "title = \"t\"\nquestion = \"q\"\n[variants.a]\n[trials]\nduration = \"1 s\"\nblocks = 1\n[traffic]\nflows = 0\n";
    let mut source = Source::read(text.as_bytes(), "a plan", "").unwrap();
    let faults = Plan::of(&source, &mut |_| Err(String::new())).unwrap_err();
    assert_eq!(faults[0].place.map(|place| place.line), Some(8));
    source.set("--flows", &["traffic", "flows"], 7);
    source.remove(&["trials", "blocks"]);
    source.set("--budget", &["trials", "budget"], "9 s");
    assert!(
        !source.has(&["trials", "blocks"]) && source.text(&["trials", "budget"]) == Some("9 s")
    );
    let read = Plan::of(&source, &mut |_| Err(String::new())).unwrap();
    let again = Plan::read(source.toml().as_bytes()).unwrap();
    let of = |plan: &Plan| plan.campaign(Default::default(), false).unwrap().clone();
    assert_eq!(
        (
            of(&read).kinds[0].flows,
            of(&read).experiment.trials.budget_ns
        ),
        (7, Some(9_000_000_000))
    );
    assert_eq!(of(&read).cells, of(&again).cells);
}

#[test]
fn words_of_the_command_line_are_values_of_a_plan() {
    for (key, word, value) in [
        ("traffic.size", "64", json!("64 B")),
        ("traffic.size", "imix", json!("imix")),
        ("traffic.transport", "udp", json!("UDP")),
        ("traffic.flows", "5_000", json!(5000)),
        ("trials.duration", "2m", json!("2 min")),
        ("trials.duration", "250ms", json!("250 ms")),
        ("trials.goals", "ndr", json!("ndr")),
        ("trials.width", "0.5%", json!("0.5%")),
        ("lab.link-speed", "10G", json!("10 Gbit/s")),
        ("lab.generator-cpus", "0,2-3", json!("0,2-3")),
    ] {
        assert_eq!(
            Keyed { option: "", key }.read(word),
            Ok(value),
            "{key} {word}"
        );
    }
    for (key, word) in [
        ("traffic.flows", "0"),
        ("traffic.size", "1"),
        ("lab.mode", "x"),
        ("trials.duration", "1"),
    ] {
        assert!(
            Keyed { option: "", key }.read(word).is_err(),
            "{key} {word}"
        );
    }
    let flows = Keyed {
        option: "--flows",
        key: "traffic.flows",
    };
    assert_eq!(
        flows.about(),
        "Number of flows, which differ in addresses or ports [default: 2000]"
    );
    let least = Keyed {
        option: "--min",
        key: "trials.min-load",
    };
    assert_eq!(least.about(), "The lowest load [default: 1 kpps]");
    assert_eq!(
        Keyed {
            option: "--mode",
            key: "lab.mode"
        }
        .words()[0]
            .0,
        "inline"
    );
}

proptest! {
    #[test]
    fn any_tree_is_written_as_toml(names in proptest::collection::vec("\\PC{1,8}", 2..6), text in "\\PC{0,20}", number: i32) {
        let mut source = Source::default();
        let path: Vec<&str> = names.iter().map(String::as_str).collect();
        source.set("--x", &path, json!([text, number, { "a b": [true] }]));
        source.set("--y", &[path[0], "more than 8"], text.clone());
        let read: toml::Table = toml::from_str(&source.toml()).unwrap();
        prop_assert!(read.contains_key(path[0]));
        let again = Source::read(source.toml().as_bytes(), "", "").unwrap();
        prop_assert_eq!(again.text(&[path[0], "more than 8"]), Some(text.as_str()));
    }
}
