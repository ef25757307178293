//! Parquet, read by DuckDB and by Polars, and the document of its columns.

use super::campaign;
use crate::common::{Program, Scratch, linerate};
use serde_json::{Value, json};
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
facts = duckdb.sql("SELECT value FROM 'facts.parquet' WHERE fact = 'kernel' AND cell IS NULL").fetchall()
kinds = {name: str(kind) for name, kind in frame.schema.items()}
print(json.dumps({"duckdb": trials, "polars": medians, "cells": cells, "about": about, "facts": facts, "kinds": kinds}))
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
        ("facts", "facts.parquet"),
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
    assert_eq!(found["facts"], json!([[summary["host"]["kernel"]]]));
    let about: BTreeMap<String, String> = serde_json::from_value(found["about"].clone())
        .map(|pairs: Vec<(String, String)>| pairs.into_iter().collect())
        .unwrap();
    assert_eq!(
        (
            about["linerate.schema"].as_str(),
            about["linerate.rows"].as_str()
        ),
        ("2", "trials")
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

/// The public archive: each set is in both files, and its cell has the loss that its trials have.
const ARCHIVE: &str = r#"
import duckdb, json
duckdb.sql("CREATE VIEW trials AS FROM 'trials.parquet'")
duckdb.sql("CREATE VIEW cells AS FROM 'cells.parquet'")
one = lambda query: duckdb.sql(query).fetchall()
print(json.dumps({
    "cells": one("SELECT folder, name, received_fps IS NOT NULL FROM cells"),
    "known": one("SELECT count(loss_ratio) FROM cells")[0][0],
    "apart": one("""
        SELECT folder, name, any_value(c.loss_ratio), sum(t.offered_fps * t.loss_ratio) / sum(t.offered_fps) AS of_trials
        FROM cells c JOIN trials t USING (folder, name) WHERE t.valid
        GROUP BY ALL HAVING abs(coalesce(any_value(c.loss_ratio), -1) - coalesce(of_trials, -1)) > 1e-9"""),
    "wrong": one("""
        SELECT folder, name, trial FROM trials
        WHERE abs(loss_ratio - (1 - received_fps / offered_fps)) > 1e-9 OR sent_frames IS NOT NULL OR received_frames IS NOT NULL
            OR duplicate_frames IS NOT NULL OR load_ns IS NOT NULL OR began_ns IS NOT NULL OR offered_fps = 0"""),
    "texts": one("SELECT count(card), count(topic), count(label), count(revision), count(built) FROM cells")[0],
}))
"#;

#[test]
#[cfg_attr(
    not(all(readers, corpus)),
    ignore = "needs DuckDB and Polars in target/python (scripts/setup test), and ../shared/corpus"
)]
fn cells_of_the_public_archive_agree_with_their_trials() {
    let scratch = Scratch::new();
    let archive = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../shared/corpus/netbenches"
    );
    let export = |rows: &str| {
        let file = scratch.file(&format!("{rows}.parquet"));
        linerate(["export", "parquet", archive, "--rows", rows, "-o", &file])
            .run()
            .ok()
    };
    let said = export("trials").stderr;
    export("cells");
    let found = Program::new(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../target/python/bin/python"
    ))
    .args(["-c", ARCHIVE])
    .dir(scratch.path())
    .run()
    .ok()
    .json();
    let sets = linerate(["import", "netbenches", archive, "--json"]).run();
    let sets: Vec<Value> = sets
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let all: usize = sets
        .iter()
        .map(|folder| folder["sets"].as_array().map_or(0, Vec::len))
        .sum();
    let cells = found["cells"].as_array().unwrap();
    assert_eq!(cells.len(), all);
    for folder in &sets {
        let name = folder["dir"].as_str().unwrap();
        let has_cells = cells.iter().any(|cell| cell[0] == name);
        assert!(has_cells || said.contains(name), "{name}: {said}");
    }
    assert!(found["known"].as_u64() > Some(20), "{found}");
    assert_eq!(found["apart"], Value::Array(vec![]));
    assert_eq!(found["wrong"], Value::Array(vec![]));
    let texts = found["texts"].as_array().unwrap();
    assert!(
        texts.iter().all(|count| count.as_u64() > Some(0)),
        "{texts:?}"
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
    let kinds = || Rows::ALL.into_iter().map(|(rows, _)| rows);
    let all: HashSet<String> = kinds().flat_map(columns).map(|(name, _)| name).collect();
    for (name, about) in kinds().flat_map(columns) {
        assert!(
            document.contains(&format!("| `{name}` |")) && document.contains(&about),
            "{name}: {about}"
        );
    }
    assert!(rows.iter().all(|name| all.contains(*name)), "{rows:?}");
}
