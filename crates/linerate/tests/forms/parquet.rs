//! Parquet, read by DuckDB and by Polars, and the document of its columns.

use super::campaign;
use crate::common::{Program, Scratch, linerate};
use serde_json::Value;
use std::collections::{BTreeMap, HashSet};
use std::fs;

/// Medians of the valid trials of each cell, by DuckDB and by Polars, beside the figures of the file of cells.
const QUERY: &str = r#"
import duckdb, json, polars
trials = duckdb.sql("SELECT name, median(received_fps), count(*) FROM 'trials.parquet' WHERE valid GROUP BY name").fetchall()
frame = polars.read_parquet("trials.parquet").filter(polars.col("valid"))
medians = frame.group_by("name").agg(polars.col("received_fps").median()).rows()
cells = polars.read_parquet("cells.parquet").select("name", "received_fps", "received_low_fps", "valid_trials", "limited_by", "levels").rows()
about = duckdb.sql("SELECT decode(key), decode(value) FROM parquet_kv_metadata('trials.parquet')").fetchall()
kinds = {name: str(kind) for name, kind in frame.schema.items()}
print(json.dumps({"duckdb": trials, "polars": medians, "cells": cells, "about": about, "kinds": kinds}))
"#;

#[test]
#[cfg_attr(
    not(readers),
    ignore = "needs DuckDB and Polars in target/python (scripts/setup test)"
)]
fn duckdb_and_polars_find_the_medians_of_the_summary() {
    let scratch = Scratch::new();
    let records = campaign(&scratch, 8);
    // Rates that differ, and a trial whose audit failed.
    let path = format!("{records}/trials.jsonl");
    let lines = fs::read_to_string(&path).unwrap();
    let changed = lines.lines().enumerate().map(|(at, line)| {
        let mut trial: Value = serde_json::from_str(line).unwrap();
        let rate = trial["rates"]["received"].as_f64().unwrap();
        trial["rates"]["received"] = (rate * (1.0 + 0.001 * ((at * at) % 7) as f64)).into();
        trial["audit"]["valid"] = (at != 4).into();
        format!("{trial}\n")
    });
    fs::write(&path, changed.collect::<String>()).unwrap();
    fs::remove_file(format!("{records}/summary.json")).unwrap();
    for (rows, file) in [
        ("trials", "trials.parquet"),
        ("cells", "cells.parquet"),
        ("trials", "again.parquet"),
    ] {
        linerate([
            "export",
            "parquet",
            &records,
            "--rows",
            rows,
            "-o",
            &scratch.file(file),
        ])
        .run()
        .ok();
    }
    let [once, again] =
        ["trials", "again"].map(|name| fs::read(scratch.file(&format!("{name}.parquet"))).unwrap());
    assert!(once == again, "other bytes");
    let summary = linerate(["show", &records, "--json"]).run().json();
    let python = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../target/python/bin/python"
    );
    let found = Program::new(python)
        .args(["-c", QUERY])
        .dir(scratch.path())
        .run()
        .ok()
        .json();
    let of = |kind: &str, name: &Value, at: usize| {
        let rows = found[kind].as_array().unwrap();
        rows.iter()
            .find(|row| row[0] == *name)
            .unwrap_or_else(|| panic!("{kind} has no {name}"))[at]
            .clone()
    };
    let rows = summary["summary"]["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 3);
    for row in rows {
        let (name, median) = (&row["name"], &row["received"]["median"]);
        assert_eq!(of("duckdb", name, 1), *median);
        assert_eq!(of("duckdb", name, 2), row["valid_trials"]);
        assert_eq!(of("polars", name, 1), *median);
        assert_eq!(of("cells", name, 1), *median);
        assert_eq!(of("cells", name, 2), row["received"]["low"]);
        assert_eq!(of("cells", name, 3), row["valid_trials"]);
        assert_eq!(of("cells", name, 4), row["limit"]);
    }
    assert_eq!(
        rows.iter().filter(|row| row["valid_trials"] == 7).count(),
        1
    );
    let about: BTreeMap<String, String> = serde_json::from_value(found["about"].clone())
        .map(|pairs: Vec<(String, String)>| pairs.into_iter().collect())
        .unwrap();
    assert_eq!(
        (
            about["linerate.schema"].as_str(),
            about["linerate.rows"].as_str()
        ),
        ("1", "trials")
    );
    let columns: BTreeMap<String, String> =
        serde_json::from_str(&about["linerate.columns"]).unwrap();
    let kinds: BTreeMap<String, String> = serde_json::from_value(found["kinds"].clone()).unwrap();
    assert!(
        columns.keys().eq(kinds.keys()),
        "each column has its meaning"
    );
    assert_eq!(
        kinds["started"],
        "Datetime(time_unit='ms', time_zone='UTC')"
    );
}

#[test]
fn the_document_of_the_schema_has_each_column() {
    let document = include_str!("../../../../docs/archive-schema.md");
    let rows: Vec<&str> = document
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
        .collect();
    use linerate_report::export::{Rows, columns};
    let all: HashSet<String> = [Rows::Trials, Rows::Cells]
        .into_iter()
        .flat_map(columns)
        .map(|(name, _)| name)
        .collect();
    for (name, about) in [Rows::Trials, Rows::Cells].into_iter().flat_map(columns) {
        assert!(
            document.contains(&format!("| `{name}` |")) && document.contains(&about),
            "{name}: {about}"
        );
    }
    assert!(rows.iter().all(|name| all.contains(*name)), "{rows:?}");
}
