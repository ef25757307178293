//! Tells the tests what they can be held against: real inputs that stand beside the project, and other people's tools.
//!
//! Tests that need one say `#[cfg_attr(not(corpus), ignore = "needs ../shared/corpus")]`: they show as ignored where it is absent.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rustc-env=LINERATE_VERSION={}", version());
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus");
    announce("corpus", &corpus);
    for (name, path) in [
        ("readers", "python"),
        ("spark", "spark"),
        ("stand", "stand/6.1"),
        ("stands", "stand/6.12"),
        ("igb", "stand/igb"),
        ("kernel", "kernels"),
    ] {
        announce(
            name,
            &Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("../../target")
                .join(path),
        );
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    for tool in ["ministat", "chromedriver"] {
        let found = std::env::split_paths(&path)
            .map(|d| d.join(tool))
            .find(|p| p.is_file());
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

/// The version with commit and date of the sources: git knows them, or the file `commit`, into which `git archive` wrote them. A build
/// without optimisation has the version alone: it would be made anew for each commit.
fn version() -> String {
    let version = env!("CARGO_PKG_VERSION");
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        Some(text.trim().to_string()).filter(|text| output.status.success() && !text.is_empty())
    };
    println!("cargo::rerun-if-changed=commit");
    let written = std::fs::read_to_string("commit")
        .ok()
        .map(|text| text.trim().to_string());
    let written = written.filter(|text| !text.starts_with('$'));
    let release = std::env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let commit = written.or_else(|| {
        let log = git(&["rev-parse", "--git-path", "logs/HEAD"]).filter(|_| release)?;
        println!("cargo::rerun-if-changed={log}");
        git(&["log", "-1", "--format=%H %cs"])
    });
    // Git's own abbreviation depends on how many commits the clone has.
    match commit.as_deref().and_then(|commit| commit.split_once(' ')) {
        Some((hash, date)) => format!("{version} ({hash:.10} {date})"),
        None => version.into(),
    }
}
