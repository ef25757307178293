//! Puts the shipped plans into the binary, and tells the tests what they can be held against: real inputs that stand beside the
//! project, and other people's tools.
//!
//! Tests that need one say `#[cfg_attr(not(corpus), ignore = "needs ../shared/corpus")]`: they show as ignored where it is absent.

use std::path::{Path, PathBuf};

fn main() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus");
    announce("corpus", &corpus);
    for (name, path) in
        [("readers", "python"), ("stand", "stand/6.1"), ("stands", "stand/6.12"), ("igb", "stand/igb")]
    {
        announce(name, &Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target").join(path));
    }
    ship(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plans"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    for tool in ["ministat", "chromedriver"] {
        let found = std::env::split_paths(&path).map(|d| d.join(tool)).find(|p| p.is_file());
        announce(tool, &found.unwrap_or(Path::new("/usr/bin").join(tool)));
    }
}

/// A table of the plans' names and texts.
fn ship(plans: &Path) {
    println!("cargo::rerun-if-changed={}", plans.display());
    let mut all = Vec::new();
    for (folder, prefix) in [(plans.to_path_buf(), ""), (plans.join("lab"), "lab/")] {
        for entry in std::fs::read_dir(&folder).expect("the folder of the plans") {
            let path = entry.expect("an entry of the folder of the plans").path();
            if path.extension().is_some_and(|e| e == "toml") {
                let stem = path.file_stem().expect("a file has a name").to_string_lossy().into_owned();
                let path = path.canonicalize().expect("the plan is there");
                let line = format!("    ({:?}, include_str!({:?})),\n", format!("{prefix}{stem}"), path);
                all.push((!prefix.is_empty(), line));
            }
        }
    }
    all.sort();
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR")).join("shipped.rs");
    let lines: String = all.into_iter().map(|(_, line)| line).collect();
    let text = format!("&[\n{lines}]\n");
    std::fs::write(out, text).expect("writing the table of plans");
}

fn announce(name: &str, path: &Path) {
    println!("cargo::rustc-check-cfg=cfg({name})");
    // Cargo would run this again at each build, and build all of it again, for a file that is absent.
    if path.exists() {
        println!("cargo::rerun-if-changed={}", path.display());
        println!("cargo::rustc-cfg={name}");
    }
}
