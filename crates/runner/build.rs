//! Puts the shipped plans into the program, as a table of their names and texts.

use std::path::{Path, PathBuf};

fn main() {
    let plans = &Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plans");
    println!("cargo::rerun-if-changed={}", plans.display());
    let mut all = Vec::new();
    for (folder, prefix) in [(plans.to_path_buf(), ""), (plans.join("lab"), "lab/")] {
        for entry in std::fs::read_dir(&folder).expect("the folder of the plans") {
            let path = entry.expect("an entry of the folder of the plans").path();
            if path.extension().is_some_and(|e| e == "toml") {
                let stem = path
                    .file_stem()
                    .expect("a file has a name")
                    .to_string_lossy()
                    .into_owned();
                let path = path.canonicalize().expect("the plan is there");
                let line = format!(
                    "    ({:?}, include_str!({:?})),\n",
                    format!("{prefix}{stem}"),
                    path
                );
                all.push((!prefix.is_empty(), line));
            }
        }
    }
    all.sort();
    let out =
        PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR")).join("shipped.rs");
    let lines: String = all.into_iter().map(|(_, line)| line).collect();
    let text = format!("&[\n{lines}]\n");
    std::fs::write(out, text).expect("writing the table of plans");
}
