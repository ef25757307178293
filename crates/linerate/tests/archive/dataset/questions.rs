//! The questions of queries/*.sql, asked by DuckDB about the campaigns of a small lab.

use crate::common::{LINERATE, Program, Scratch, linerate};
use serde_json::Value;
use std::fs;

/// A lab that measures plain forwarding and a rule set at two frame lengths.
const PLAN: &str = r#"
title = "Nightly"
question = "What do rules cost?"
[lab]
mode = "inline"
[traffic]
flows = 16
[variants.forwarding]
from = "forwarding"
[variants.nft-stateful]
from = "nft-stateful"
[factors]
size = { sets = "traffic.size", levels = ["64 B", "1518 B"] }
[trials]
duration = "20 ms"
blocks = 6
seed = 1
"#;
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const OWN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/archive/dataset");

/// Whether two answers are the same, but for the last digits of numbers.
fn agree(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| agree(one, other))
        }
        (Value::Number(one), Value::Number(other)) => {
            let (one, other) = (one.as_f64().unwrap(), other.as_f64().unwrap());
            (one - other).abs() <= 1e-9 * one.abs().max(1e-3)
        }
        _ => one == other,
    }
}

fn python(environment: &str, script: &str, arguments: &[&str]) -> Program {
    let script = format!("{OWN}/{script}.py");
    let arguments = [&[script.as_str()], arguments].concat();
    Program::new(&format!("{ROOT}/target/{environment}/bin/python"))
        .args(arguments)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("TZ", "UTC")
        // Java names files by the locale.
        .env("LC_ALL", "C.UTF-8")
}

/// Makes the archive of the lab, by a Python of this environment.
fn archive(scratch: &Scratch, environment: &str) -> String {
    let (base, lab, archive) = (
        scratch.file("base"),
        scratch.file("lab"),
        scratch.file("archive"),
    );
    fs::write(scratch.file("plan.toml"), PLAN).unwrap();
    let run = [
        "run",
        "plan.toml",
        "--simulate",
        "rate=200kpps",
        "--quiet",
        "--out",
        &base,
    ];
    linerate(run).dir(scratch.path()).run().ok();
    python(environment, "lab", &[&base, &lab]).run().ok();
    for (folder, name) in [("apu2", "apu2"), ("xeon", "xeon é/1"), ("c2758", "c2758")] {
        let folder = format!("{lab}/{folder}");
        let add = ["archive", "add", &folder, "--to", &archive, "--lab", name];
        linerate(add).run().ok();
    }
    archive
}

/// The answers that the rates of lab.py have.
fn wanted() -> Value {
    serde_json::from_str(&fs::read_to_string(format!("{OWN}/answers.json")).unwrap()).unwrap()
}

#[test]
#[cfg_attr(
    not(readers),
    ignore = "needs DuckDB and Polars in target/python (scripts/setup test)"
)]
fn duckdb_answers_the_questions_of_a_lab_also_when_it_is_compacted() {
    let scratch = Scratch::new();
    let archive = archive(&scratch, "python");
    let ask = python("python", "ask", &[&format!("{ROOT}/queries"), LINERATE]);
    let found = ask.dir(archive.as_ref()).run().ok().json();
    let wanted = wanted();
    for (question, answer) in wanted.as_object().unwrap() {
        for when in ["before", "after"] {
            let given = &found[when][question];
            assert!(agree(given, answer), "{question}, {when}: {given:#}");
        }
    }
    let asked = found["before"].as_object().unwrap();
    assert!(asked.keys().eq(wanted.as_object().unwrap().keys()));
    // Each file says in its first line what it answers.
    for file in fs::read_dir(format!("{ROOT}/queries")).unwrap() {
        let text = fs::read_to_string(file.unwrap().path()).unwrap();
        let comments = text.lines().filter(|line| line.contains("--")).count();
        assert!(text.starts_with("-- ") && comments == 1, "{text}");
    }
}

#[test]
#[cfg_attr(
    not(spark),
    ignore = "needs Spark in target/spark (scripts/setup long)"
)]
fn takes_minutes_spark_answers_as_duckdb_does() {
    let scratch = Scratch::new();
    let archive = archive(&scratch, "spark");
    let ask = python("spark", "spark", &[&format!("{ROOT}/queries")]);
    let found = ask.dir(archive.as_ref()).within(200).run().ok().json();
    for (question, answer) in wanted().as_object().unwrap() {
        let given = &found[question];
        assert!(
            question == "polars" || agree(given, answer),
            "{question}: {given:#}"
        );
    }
}
