//! The build script of crates with tests that read inputs beside the project: what is too large for `testdata`, or not ours to copy.
//!
//! Such tests say `#[cfg_attr(not(corpus), ignore = "needs ../shared/corpus")]`: they show as ignored where the inputs are absent.

use std::path::Path;

fn main() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus");
    println!("cargo::rustc-check-cfg=cfg(corpus)");
    // Cargo would run this again at each build, and build all of it again, for a file that is absent.
    println!("cargo::rerun-if-changed=../corpus.rs");
    if corpus.exists() {
        println!("cargo::rerun-if-changed={}", corpus.display());
        println!("cargo::rustc-cfg=corpus");
    }
}
