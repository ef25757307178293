//! Tells the tests what they can be held against: real inputs that stand beside the project, and other people's tools.
//!
//! Tests that need one say `#[cfg_attr(not(corpus), ignore = "needs ../shared/corpus")]`: they show as ignored where it is absent.

use std::path::Path;

fn main() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus");
    announce("corpus", &corpus);
    for (name, path) in
        [("readers", "python"), ("stand", "stand/6.1"), ("stands", "stand/6.12"), ("igb", "stand/igb")]
    {
        announce(name, &Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target").join(path));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    for tool in ["ministat", "chromedriver"] {
        let found = std::env::split_paths(&path).map(|d| d.join(tool)).find(|p| p.is_file());
        announce(tool, &found.unwrap_or(Path::new("/usr/bin").join(tool)));
    }
}

fn announce(name: &str, path: &Path) {
    println!("cargo::rustc-check-cfg=cfg({name})");
    // Cargo would run this again at each build, and build all of it again, for a file that is absent.
    if path.exists() {
        println!("cargo::rerun-if-changed={}", path.display());
        println!("cargo::rustc-cfg={name}");
    }
}
