//! Compiles `bpf/*.bpf.c` with clang. Nothing else is needed: no kernel headers, no libbpf.

use std::path::Path;
use std::process::{Command, exit};

const PROGRAMS: [&str; 11] = [
    "generator",
    "receiver",
    "connections",
    "redirect",
    "dut",
    "xsk",
    "profile",
    "drops",
    "stages",
    "locks",
    "switches",
];
const HEADERS: [&str; 7] = [
    "linerate", "stack", "kernel", "numbers", "segments", "ends", "pace",
];

fn main() {
    let out = std::env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    // A source archive of `make dist` has the objects.
    let shipped = Path::new("bpf/objects");
    println!(
        "cargo:rerun-if-changed={}",
        if shipped.exists() {
            "bpf/objects"
        } else {
            "build.rs"
        }
    );
    if shipped.exists() {
        return PROGRAMS
            .iter()
            .for_each(|program| copy(&shipped.join(format!("{program}.bpf.o")), &out));
    }
    let clang = std::env::var("CLANG").unwrap_or_else(|_| "clang".into());
    println!("cargo:rerun-if-env-changed=CLANG");
    HEADERS
        .iter()
        .for_each(|header| println!("cargo:rerun-if-changed=bpf/{header}.h"));
    for program in PROGRAMS {
        let source = format!("bpf/{program}.bpf.c");
        println!("cargo:rerun-if-changed={source}");
        compile(
            &clang,
            &source,
            &Path::new(&out).join(format!("{program}.bpf.o")),
        );
    }
}

fn copy(object: &Path, out: &str) {
    let name = object.file_name().expect("the path has a name");
    if let Err(error) = std::fs::copy(object, Path::new(out).join(name)) {
        fail(&format!("cannot copy {}: {error}", object.display()));
    }
}

fn compile(clang: &str, source: &str, object: &Path) {
    let here = std::env::current_dir().expect("a build script runs in the package's folder");
    let folder = object.parent().expect("the object is in a folder");
    // Of what `-g` writes, the kernel needs the types (BTF): without columns and DWARF the objects are 190 kB smaller. They have no
    // path of the machine that builds.
    let status = Command::new(clang)
        .current_dir(folder)
        .arg(format!("-ffile-prefix-map={}=.", here.display()))
        .arg("-fdebug-compilation-dir=.")
        .args([
            "-O2",
            "-g",
            "-gno-column-info",
            "-gsplit-dwarf",
            "-target",
            "bpf",
            "-mcpu=v3",
        ])
        .args([
            "-Wall",
            "-Werror",
            "-Wno-unused-variable",
            "-Wno-unused-const-variable",
        ])
        .args(["-Wno-unknown-warning-option", "-c"])
        .arg(here.join(source))
        .arg("-o")
        .arg(object.file_name().expect("the object has a name"))
        .status();
    match status {
        Ok(status) if status.success() => {}
        Ok(status) => fail(&format!(
            "{clang} could not compile {source} ({status}); clang 14 or newer is needed"
        )),
        Err(error) => fail(&format!(
            "cannot run {clang}: {error}. Install it: apt-get install clang"
        )),
    }
}

fn fail(message: &str) -> ! {
    println!("cargo:warning={message}");
    eprintln!("{message}");
    exit(1);
}
