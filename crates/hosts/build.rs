//! Tells the tests what they can be held against: real inputs that stand beside the project, and other people's tools.
//!
//! Tests that need one say `#[cfg_attr(not(corpus), ignore = "needs ../shared/corpus")]`: they show as ignored where it is absent.

use std::path::{Path, PathBuf};

fn main() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus");
    announce("corpus", &corpus);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let ministat = std::env::split_paths(&path).map(|d| d.join("ministat")).find(|p| p.is_file());
    announce("ministat", &ministat.unwrap_or(PathBuf::from("/usr/bin/ministat")));
}

fn announce(name: &str, path: &Path) {
    println!("cargo::rustc-check-cfg=cfg({name})");
    println!("cargo::rerun-if-changed={}", path.display());
    if path.exists() {
        println!("cargo::rustc-cfg={name}");
    }
}
