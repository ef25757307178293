//! `linerate import benchlab` and `linerate lab example | schema`: the files written, the messages, and hostile folders.

use crate::common::{Ended, Scratch, linerate};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

const CONFIG: &str = include_str!("../../../import/src/benchlab/tests/two.config");
const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/netbenches");
const SETS: &str = "AMD_GX-412TC_4Cores/Intel_i210AT/kern.random.harvest.mask/configs";

/// A folder with a configuration.
fn with_config() -> (Scratch, String) {
    let scratch = Scratch::new();
    let config = scratch.file("bench.config");
    fs::write(&config, CONFIG).unwrap();
    (scratch, config)
}

fn import(config: &str, more: &[&str]) -> Ended {
    linerate(["import", "benchlab", config].iter().chain(more)).run()
}

/// Settings that were not carried over, as one text.
fn left(imported: &Value) -> String {
    let notes = imported["not_carried"].as_array().unwrap();
    notes
        .iter()
        .map(|n| {
            format!(
                "{}: {}\n",
                n["file"].as_str().unwrap(),
                n["what"].as_str().unwrap()
            )
        })
        .collect()
}

#[test]
fn what_is_written_passes_the_checks() {
    let (scratch, config) = with_config();
    let presets = scratch.path().join("presets");
    fs::create_dir(&presets).unwrap();
    for size in [60, 508, 1514] {
        fs::write(
            presets.join(size.to_string()),
            format!("PKT_SIZE=\"{size}\"\n"),
        )
        .unwrap();
    }
    fs::create_dir_all(scratch.path().join("sets/a/etc")).unwrap();
    fs::write(
        scratch.path().join("sets/a/etc/sysctl.conf"),
        "net.inet.ip.redirect=0\n",
    )
    .unwrap();
    let (out, presets, sets) = (
        scratch.file("out"),
        scratch.file("presets"),
        scratch.file("sets"),
    );
    let told = import(
        &config,
        &["-p", &presets, "-c", &sets, "-n", "10", "--out", &out],
    )
    .ok();
    for part in [
        "a lab file and a plan.",
        "bench.config:5: DUT_ADMIN: hosts.dut.ssh",
        "PMC_EVENT: linerate's profiles",
        "LAB.toml: no faults; generator tester; dut dut; receiver tester",
        "warning: nothing will be sent in this lab",
        "linerate plan show",
    ] {
        assert!(told.stdout.contains(part), "{part}\n{}", told.stdout);
    }
    let mut names: Vec<String> = fs::read_dir(&out)
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["LAB.toml", "PLAN.toml"]);
    let plan = format!("{out}/PLAN.toml");
    let checked = linerate(["plan", "check", &plan]).run().ok();
    assert!(checked.stdout.contains("no faults; 3 cells"), "{checked:?}");
    let shown = linerate(["plan", "show", &plan, "--json"])
        .run()
        .ok()
        .json();
    assert_eq!(
        shown["campaign"]["factors"][0]["levels"],
        serde_json::json!(["64 B", "512 B", "1518 B"])
    );
    assert_eq!(shown["campaign"]["trials"]["blocks"], 10);
    let text = fs::read_to_string(&plan).unwrap();
    assert!(
        text.contains(&format!("#   {config}:19: PMC_EVENT: linerate's profiles")),
        "{text}"
    );
    // JSON has the same text, and nothing is written into a folder that has something.
    let json = import(
        &config,
        &["-p", &presets, "-c", &sets, "-n", "10", "--json"],
    )
    .ok()
    .json();
    assert_eq!(json["plans"][0]["text"], text.as_str());
    assert_eq!(
        json["lab"],
        fs::read_to_string(format!("{out}/LAB.toml"))
            .unwrap()
            .as_str()
    );
    assert_eq!(json["lacking"], serde_json::json!([]));
    import(&config, &["--out", &out]).fails(1, &["not empty"]);
    assert_eq!(fs::read_to_string(&plan).unwrap(), text);
}

#[test]
fn nothing_of_a_configuration_is_executed() {
    let (scratch, config) = with_config();
    let (mark, out) = (scratch.file("mark"), scratch.file("out"));
    for line in [
        "touch MARK",
        "A=1; touch MARK",
        "if touch MARK; then A=1; fi",
        "A=1 > MARK",
    ] {
        fs::write(
            &config,
            format!("{CONFIG}{}\n", line.replace("MARK", &mark)),
        )
        .unwrap();
        import(&config, &["--out", &out]).fails(2, &["nothing is executed", "bench.config:29"]);
        assert!(!Path::new(&out).exists());
    }
    fs::write(
        &config,
        format!("{CONFIG}A=$(touch {mark})\nB=`touch {mark}`\n"),
    )
    .unwrap();
    let json = import(&config, &["--json"]).ok().json();
    assert!(
        left(&json).contains("A: its value is not known: a command would have to be run for it"),
        "{json}"
    );
    assert!(!Path::new(&mark).exists());
}

#[test]
fn folders_that_are_hostile_do_no_harm() {
    let (scratch, config) = with_config();
    let sets = scratch.path().join("sets");
    for set in ["good", "linked", "large", "fifo"] {
        fs::create_dir_all(sets.join(set).join("etc")).unwrap();
        fs::write(sets.join(set).join("etc/x.conf"), format!("{set}\n")).unwrap();
    }
    symlink("/etc/shadow", sets.join("linked/etc/shadow")).unwrap();
    symlink("/", sets.join("outside")).unwrap();
    fs::File::create(sets.join("large/etc/y"))
        .unwrap()
        .set_len(200 << 30)
        .unwrap();
    assert!(
        std::process::Command::new("mkfifo")
            .arg(sets.join("fifo/etc/y"))
            .status()
            .unwrap()
            .success()
    );
    let json = import(&config, &["-c", &scratch.file("sets"), "--json"])
        .ok()
        .json();
    let plan = json["plans"][0]["text"].as_str().unwrap();
    let variants: Vec<&str> = plan
        .lines()
        .filter(|l| l.starts_with("[variants."))
        .collect();
    assert_eq!(variants, ["[variants.good]"]);
    assert!(!plan.contains("root:"), "{plan}");
    let left = left(&json);
    for part in [
        "linked/etc/shadow: a link: links are not followed",
        "linked: the set is left out: it would lack linked/etc/shadow",
        "outside: a link: links are not followed",
        "large/etc/y: not read: larger than 1 MiB",
        "fifo/etc/y: not a regular file: not read",
    ] {
        assert!(left.contains(part), "{part}\n{left}");
    }
}

#[test]
fn what_is_no_configuration_is_told() {
    let (scratch, config) = with_config();
    import(&scratch.file("absent"), &[]).fails(1, &["cannot read the configuration", "absent"]);
    import(scratch.path().to_str().unwrap(), &[]).fails(2, &["is a folder", "-c and -p"]);
    import(&config, &["-c", &scratch.file("absent")])
        .fails(1, &["cannot read the folder", "absent"]);
    import(&config, &["-n", "0"]).fails(2, &["--runs"]);
    fs::write(&config, "A=1\n").unwrap();
    import(&config, &[]).fails(2, &["DUT_ADMIN is not set", "RECEIVER_ADMIN is not set"]);
    fs::write(&config, [0xff]).unwrap();
    import(&config, &[]).fails(2, &["UTF-8"]);
    fs::File::create(&config)
        .unwrap()
        .set_len(100 << 30)
        .unwrap();
    import(&config, &[]).fails(2, &["at most 1048576 bytes"]);
}

#[test]
fn the_archives_sets_become_variants() {
    let (scratch, config) = with_config();
    let out = scratch.file("out");
    let told = import(&config, &["-c", &format!("{CORPUS}/{SETS}"), "--out", &out]).ok();
    assert!(
        told.stdout.contains("PLAN.toml: no faults; 2 cells"),
        "{}",
        told.stdout
    );
    let shown = linerate([
        "plan",
        "show",
        &format!("{out}/PLAN.toml"),
        "--system",
        "freebsd",
    ])
    .run()
    .ok();
    for part in ["511-default", "351", "/etc/rc.conf", "reboot"] {
        assert!(shown.stdout.contains(part), "{part}\n{}", shown.stdout);
    }
    let lab = fs::read_to_string(format!("{out}/LAB.toml")).unwrap();
    assert!(
        lab.contains("system = \"bsdrp\"") && lab.contains("name = \"igb2\""),
        "{lab}"
    );
}

#[test]
fn a_lab_file_to_begin_with_and_its_schema() {
    let example = linerate(["lab", "example"]).run().ok();
    assert_eq!(
        example.stdout,
        include_str!("../../../plan/src/lab/example.toml")
    );
    let three = linerate(["lab", "example", "three-hosts"]).run().ok();
    assert_eq!(
        three.stdout,
        include_str!("../../../plan/src/lab/example-three-hosts.toml")
    );
    let schema = linerate(["lab", "schema"]).run().ok().json();
    assert_eq!(schema["required"], serde_json::json!(["isolated", "hosts"]));
    // Every key is read aloud in the document.
    let document = include_str!("../../../../docs/lab-file.md");
    let mut keys = vec![&schema["properties"]];
    keys.extend(
        schema["$defs"]
            .as_object()
            .unwrap()
            .values()
            .map(|d| &d["properties"]),
    );
    let names = keys
        .iter()
        .filter_map(|p| p.as_object())
        .flat_map(|p| p.keys());
    let missing: Vec<&String> = names
        .filter(|name| {
            !document.contains(&format!("`{name}`")) && !document.contains(&format!(".{name}]`"))
        })
        .filter(|name| *name != "hosts")
        .collect();
    assert!(
        missing.is_empty(),
        "docs/lab-file.md says nothing of {missing:?}"
    );
}
