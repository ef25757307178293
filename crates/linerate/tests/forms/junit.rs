//! Verdicts for CI systems, in the XML of JUnit.

use super::{Element, HOSTILE, campaign, elements, export};
use crate::common::{Scratch, linerate};
use std::fs;

/// The children and the attributes that CI systems know (Jenkins' junit-10.xsd), with those that must be there.
fn is_junit(all: &[Element]) {
    let known: [(&str, &str, &[&str], &[&str]); 7] = [
        (
            "testsuites",
            "",
            &["tests", "failures", "errors"],
            &["name", "time"],
        ),
        (
            "testsuite",
            "testsuites",
            &["name", "tests", "failures", "errors"],
            &["skipped", "time", "timestamp"],
        ),
        ("properties", "testsuite", &[], &[]),
        ("property", "properties", &["name", "value"], &[]),
        ("testcase", "testsuite", &["name", "classname"], &["time"]),
        ("failure", "testcase", &["message", "type"], &[]),
        ("skipped", "testcase", &["message"], &[]),
    ];
    for (name, parent, attributes) in all.iter().filter(|(name, ..)| name != "system-out") {
        let (_, inside, must, may) = known.iter().find(|known| known.0 == name).expect(name);
        assert_eq!(parent, inside, "{name}");
        assert!(
            must.iter().all(|key| attributes.contains_key(*key)),
            "{name} {attributes:?}"
        );
        assert!(
            attributes
                .keys()
                .all(|key| must.contains(&&**key) || may.contains(&&**key)),
            "{attributes:?}"
        );
    }
    let of = |name: &str| {
        all.iter()
            .filter(|element| element.0 == name)
            .count()
            .to_string()
    };
    for suite in all
        .iter()
        .filter(|element| element.0 == "testsuite" || element.0 == "testsuites")
    {
        assert_eq!(suite.2["tests"], of("testcase"));
        assert_eq!(suite.2["failures"], of("failure"));
        if let Some(skipped) = suite.2.get("skipped") {
            assert_eq!(*skipped, of("skipped"));
        }
    }
}

/// The test case of this kind and name, with its outcome and the message of that.
fn case<'a>(all: &'a [Element], kind: &str, name: &str) -> (&'a str, &'a str) {
    let is = |(tag, _, a): &Element| {
        tag == "testcase" && a["name"] == name && a["classname"].ends_with(kind)
    };
    let at = all
        .iter()
        .position(is)
        .unwrap_or_else(|| panic!("no case {kind} {name} in {all:#?}"));
    match &all.get(at + 1) {
        Some((tag, _, a)) if tag == "failure" || tag == "skipped" => (tag, &a["message"]),
        _ => ("passed", ""),
    }
}

#[test]
fn ci_reads_each_verdict_of_a_campaign() {
    let scratch = Scratch::new();
    let all = elements(&export("junit", &campaign(&scratch, 8)).stdout);
    is_junit(&all);
    assert_eq!(
        case(&all, ".campaign", "the campaign came to its end"),
        ("passed", "")
    );
    assert_eq!(case(&all, ".audit", "forwarding"), ("passed", ""));
    assert_eq!(
        case(&all, ".audit", &format!("{HOSTILE}   2")),
        ("passed", "")
    );
    assert_eq!(
        case(
            &all,
            ".expectations",
            "nft-stateful is not proven to differ from forwarding"
        ),
        ("passed", "")
    );
    let (failed, why) = case(
        &all,
        ".expectations",
        "nft-stateful is slower than forwarding",
    );
    assert!(
        failed == "failure" && why.contains("95 % interval"),
        "{failed} {why}"
    );
    let cells = ["tester-baseline", "forwarding", &format!("{HOSTILE}   2")];
    let found = cells.map(|cell| {
        let name = format!("the rate of {cell} is its DUT's");
        case(&all, ".findings", &name)
    });
    // Noise says nothing of the DUT.
    let noise = format!("inconclusive: {HOSTILE}");
    assert_eq!(
        found,
        [
            ("skipped", "not examined: why"),
            ("passed", ""),
            ("skipped", &noise)
        ]
    );
    // Of two blocks there is no interval; a campaign that was killed has no verdict.
    let short = campaign(&scratch, 2);
    let all = elements(&export("junit", &short).stdout);
    is_junit(&all);
    let (skipped, why) = case(
        &all,
        ".expectations",
        "nft-stateful is slower than forwarding",
    );
    assert!(
        skipped == "skipped" && why.starts_with("inconclusive: "),
        "{skipped} {why}"
    );
    fs::remove_file(format!("{short}/summary.json")).unwrap();
    fs::write(format!("{short}/trials.jsonl"), "").unwrap();
    let all = elements(&export("junit", &short).stdout);
    is_junit(&all);
    assert_eq!(
        case(&all, ".campaign", "the campaign came to its end").0,
        "failure"
    );
    assert_eq!(
        case(&all, ".audit", "forwarding"),
        ("skipped", "not measured: it has no trial")
    );
    assert!(
        case(
            &all,
            ".expectations",
            "nft-stateful is slower than forwarding"
        )
        .1
        .starts_with("not measured: ")
    );
}

#[test]
fn ci_reads_the_verdicts_of_a_comparison() {
    let scratch = Scratch::new();
    let numbers = |name: &str, from: u32| {
        let lines: String = (0..12).map(|n| format!("{}\n", from + n)).collect();
        fs::write(scratch.file(name), lines).unwrap();
    };
    numbers("before", 1000);
    numbers("same", 1001);
    numbers("slow", 900);
    fs::write(scratch.file("few"), "700\n1300\n").unwrap();
    let line = "compare before same slow few --fail-if-slower 3% --junit out.xml --tap out.tap";
    linerate(line.split(' '))
        .dir(scratch.path())
        .run()
        .status(3);
    let all = elements(&fs::read_to_string(scratch.file("out.xml")).unwrap());
    is_junit(&all);
    assert_eq!(
        case(&all, ".comparisons", "same is not 3 % slower than before").0,
        "passed"
    );
    let (failed, why) = case(&all, ".comparisons", "slow is not 3 % slower than before");
    assert!(
        failed == "failure"
            && why.contains("slow is slower than before by 3 % or more: between 9."),
        "{failed} {why}"
    );
    assert_eq!(
        case(&all, ".comparisons", "few is not 3 % slower than before").0,
        "skipped"
    );
    let tap = fs::read_to_string(scratch.file("out.tap")).unwrap();
    assert!(
        tap.contains("not ok 2 - compare: comparisons: slow is not 3 % slower than before\n")
            && tap.contains("# SKIP undecided: "),
        "{tap}"
    );
}

#[test]
fn ci_reads_whether_a_variant_is_slower_than_its_baseline() {
    let scratch = Scratch::new();
    let bench = "bench --simulate rate=200kpps --family 4 --variant nat --duration 30ms --quiet";
    // Equal, and so few blocks that nothing is known.
    for (trials, status, wanted) in [("8", 0, "passed"), ("1", 5, "skipped")] {
        let line = format!(
            "{bench} --trials {trials} --fail-if-slower 50% --junit out.xml --out r{trials}"
        );
        linerate(line.split(' '))
            .dir(scratch.path())
            .run()
            .status(status);
        let all = elements(&fs::read_to_string(scratch.file("out.xml")).unwrap());
        is_junit(&all);
        let name = "nat IPv4 64 B is not 50 % slower than forwarding IPv4 64 B";
        let (found, why) = case(&all, ".comparisons", name);
        assert_eq!(found, wanted, "{why}");
        let tap = format!("export tap r{trials} --fail-if-slower 50%");
        let tap = linerate(tap.split(' ')).dir(scratch.path()).run().ok();
        assert_eq!(
            tap.stdout
                .contains(&format!("comparisons: {name} # SKIP undecided")),
            status == 5
        );
    }
}
