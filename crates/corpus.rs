//! The build script of crates with tests that read inputs beside the project: what is too large for `testdata`, or not ours to copy.
//!
//! Such tests say `#[cfg_attr(not(corpus), ignore = "needs ../shared/corpus")]`: they show as ignored where the inputs are absent.

use std::path::Path;

fn main() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus");
    println!("cargo::rustc-check-cfg=cfg(corpus)");
    println!("cargo::rerun-if-changed={}", corpus.display());
    if corpus.exists() {
        println!("cargo::rustc-cfg=corpus");
    }
}
