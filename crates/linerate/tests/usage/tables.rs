//! Tables as CSV: one with one header, or all in a folder.

use crate::common::{Scratch, linerate_line};
use std::fs;

#[test]
fn tables_go_to_files() {
    let scratch = Scratch::new();
    let run = |line: &str| linerate_line(line).dir(scratch.path()).run();
    run("bench --simulate ok --budget 2s --quiet --out first").ok();
    let shown = run("show first --format csv").ok().stdout;
    run("show first --format csv -o first.csv").ok();
    assert_eq!(
        fs::read_to_string(scratch.file("first.csv")).unwrap(),
        shown
    );
    run("show first -o first.txt").fails(2, &["--out", "--format csv"]);
    // One rectangular table, that says whose figures they are; and each table of the page in a file.
    let is_table = |text: &str| {
        let columns: Vec<usize> = text.lines().map(columns).collect();
        assert!(columns.len() > 1, "{text}");
        assert!(columns.iter().all(|n| *n == columns[0]), "{text}");
    };
    is_table(&shown);
    assert!(shown.contains("\nSIMULATED: cells,"), "{shown}");
    let told = run("show first --format csv").ok().stderr;
    assert!(
        told.contains("'cells'") && told.contains("-o FOLDER/"),
        "{told}"
    );
    run("show first --format csv -o all/").ok();
    let files = fs::read_dir(scratch.file("all")).unwrap();
    let mut names: Vec<String> = files
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert!(names.len() > 3, "{names:?}");
    assert_eq!(names[..2], ["00-said.csv", "01-cells.csv"]);
    for name in &names {
        is_table(&fs::read_to_string(scratch.path().join("all").join(name)).unwrap());
    }
    let first = fs::read_to_string(scratch.file("all/01-cells.csv")).unwrap();
    assert_eq!(first, shown);
    let said = fs::read_to_string(scratch.file("all/00-said.csv")).unwrap();
    assert!(said.contains("SIMULATED: all figures"), "{said}");
    let trials = names.iter().find(|name| name.ends_with("-trials.csv"));
    let trials = fs::read_to_string(scratch.path().join("all").join(trials.unwrap())).unwrap();
    assert!(trials.contains("\nSIMULATED: Trials,0  "), "{trials}");
}

/// The columns of a line of CSV.
fn columns(line: &str) -> usize {
    let mut quoted = false;
    let ends = line.chars().filter(|c| {
        quoted ^= *c == '"';
        *c == ',' && !quoted
    });
    1 + ends.count()
}
