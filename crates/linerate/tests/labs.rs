//! Labs by hand, the remains of a killed run, and disks that are full.

use crate::common::lab::{Namespace, names};
use crate::common::{Lab, Program, Scratch, linerate, linerate_line, own_machine, unique};

/// No namespace with a name is left on a machine of its own.
#[track_caller]
fn nothing_is_left() {
    assert_eq!(names(), "");
}

#[test]
#[ignore = "needs root and nft: run by make test as root"]
fn a_lab_goes_up_and_is_seen_and_goes_down() {
    own_machine();
    let lab = Lab::up(&["forwarding", "nft-stateful", "bridge"]);
    let status = linerate_line("lab status").run().ok().stdout;
    for role in ["generator", "receiver", "dut0", "dut1", "dut2"] {
        assert!(status.contains(&lab.namespace(role)), "{role}: {status}");
        assert!(names().contains(&lab.namespace(role)), "{role}");
        lab.exec(role, &["ip", "link"]).run().ok();
    }
    let json = linerate_line("lab status --json").run().ok().json();
    let record = json
        .as_array()
        .unwrap()
        .iter()
        .find(|l| l["name"] == lab.name.as_str())
        .unwrap()
        .clone();
    assert_eq!(
        (
            &record["complete"],
            record["namespaces"].as_object().unwrap().len()
        ),
        (&true.into(), 5)
    );
    let rules = lab
        .exec("dut1", &["nft", "list", "ruleset"])
        .run()
        .ok()
        .stdout;
    assert!(rules.contains("ct state"), "{rules}");
    let again = linerate(["lab", "up", "--name", &lab.name]).run();
    again.fails(
        1,
        &[
            &lab.name,
            "is up already",
            &format!("linerate lab down --name {}", lab.name),
        ],
    );
    assert!(
        names().contains(&lab.namespace("dut2")),
        "the refusal has taken the first one down"
    );
    let down = linerate(["lab", "down", "--name", &lab.name])
        .run()
        .ok()
        .stdout;
    assert!(down.contains("is down"), "{down}");
    nothing_is_left();
    linerate(["lab", "down", "--name", &lab.name])
        .run()
        .fails(1, &["no lab named", "lab status"]);
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn labs_that_cannot_be_are_refused() {
    let name = unique("lab");
    let refused = linerate(["lab", "up", "--name", &name, "--variant", "xdp"]).run();
    refused.fails(1, &["xdp", "cannot be left up"]);
    assert!(!names().contains(&name));
    linerate_line("lab up --name ../x")
        .run()
        .fails(2, &["../x", "cannot be the name of a lab"]);
    let taken = unique("taken");
    let receiver = Namespace::named(format!("{taken}-receiver"));
    let refused = linerate(["lab", "up", "--name", &taken]).run();
    drop(receiver);
    refused.fails(1, &[&format!("{taken}-receiver")]);
    assert!(!names().contains(&taken), "half a lab is left");
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn the_remains_of_a_killed_run_are_cleared_by_the_next() {
    own_machine();
    let (name, other) = (unique("dead"), unique("dead"));
    let namespace = format!("{name}-generator");
    let _left = Namespace::named(namespace.clone());
    let inode = |name: &str| {
        use std::os::unix::fs::MetadataExt;
        std::fs::metadata(format!("/run/netns/{name}"))
            .unwrap()
            .ino()
    };
    // Another program made the second namespace, under a name that the dead run had wanted.
    let _others = Namespace::named(other.clone());
    let record = serde_json::json!({
        "version": 1, "name": name, "pid": 4_194_304, "pid_started": 1, "created": 1, "complete": false,
        "namespaces": {
            "generator": { "name": namespace, "inode": inode(&namespace) },
            "receiver": { "name": other, "inode": inode(&other) + 1_000_000 },
            "dut 0 (forwarding)": { "name": format!("{name}-never-made"), "inode": 1 },
        },
    });
    let file = format!("/run/linerate/labs/{name}.json");
    std::fs::create_dir_all("/run/linerate/labs").unwrap();
    std::fs::write(&file, record.to_string()).unwrap();
    let draft = format!("/run/linerate/labs/.{name}.4194304.draft");
    std::fs::write(&draft, "{").unwrap();
    let status = linerate_line("lab status").run().ok().stdout;
    assert!(
        status.contains(&format!("Lab {name} is unfinished; `linerate lab down")),
        "{status}"
    );
    let next = crate::common::Bench::new("--family 4 --trials 1 --duration 20ms").run_beside();
    let left = names();
    assert!(
        next.ended
            .stderr
            .contains(&format!("cleared the remains of lab {name}")),
        "{}",
        next.ended.stderr
    );
    assert!(!left.contains(&namespace), "{left}");
    assert!(
        left.contains(&other),
        "a namespace that is not linerate's was removed"
    );
    assert!(!std::path::Path::new(&file).exists() && !std::path::Path::new(&draft).exists());
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn a_lab_whose_namespaces_are_gone_is_unfinished_and_goes_down() {
    let lab = Lab::up(&["forwarding"]);
    crate::common::lab::ip(&format!("netns del {}", lab.namespace("dut0"))).ok();
    let status = linerate_line("lab status").run().ok().stdout;
    assert!(
        status.contains(&format!("Lab {} is unfinished", lab.name)),
        "{status}"
    );
    let json = linerate_line("lab status --json").run().ok().json();
    let record = json
        .as_array()
        .unwrap()
        .iter()
        .find(|l| l["name"] == lab.name.as_str())
        .unwrap()
        .clone();
    assert_eq!(record["state"], "unfinished");
    linerate(["lab", "down", "--name", &lab.name]).run().ok();
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn what_there_is_of_a_lab_whose_linerate_was_killed_goes_down_by_its_name() {
    let record = r#"{"version":1,"name":"dead","pid":4194304,"pid_started":1,"created":1,"complete":false,"namespaces":{}}"#;
    let down = format!(
        "mkdir -p /run/linerate/labs; echo '{record}' >/run/linerate/labs/dead.json; {} lab down --name dead",
        crate::common::LINERATE
    );
    let ended = Program::with_own_run(&down).run().ok();
    assert!(
        ended.stderr.contains("cleared the remains of lab dead"),
        "{}",
        ended.stderr
    );
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn a_damaged_record_hides_no_other_and_is_named() {
    let lab = Lab::up(&["forwarding"]);
    let file = format!("/run/linerate/labs/{}.json", unique("damaged"));
    std::fs::write(&file, "{").unwrap();
    let status = linerate_line("lab status").run();
    std::fs::remove_file(&file).unwrap();
    let status = status.ok();
    assert!(
        status.stderr.contains(&file) && status.stderr.contains("damaged"),
        "{}",
        status.stderr
    );
    assert!(status.stdout.contains(&lab.name));
}

const ENTRIES: &str = "/proc/sys/net/netfilter/nf_conntrack_count";

#[test]
#[ignore = "needs root: run by make test as root"]
fn a_campaign_can_leave_its_lab_up() {
    own_machine();
    let line = "--family 4 --trials 1 --duration 50ms --variant nft-stateful --states new --keep";
    let bench = crate::common::Bench::new(line).run_beside();
    let up = names();
    // Entries of one DUT slow the others, which share the hash table.
    let duts = up
        .split_whitespace()
        .filter(|name| name.starts_with("linerate-dut"));
    for dut in duts.map(str::to_owned).collect::<Vec<_>>() {
        let count = Program::new("ip")
            .args(["netns", "exec", &dut, "cat", ENTRIES])
            .run();
        assert_eq!(count.ok().stdout.trim(), "0", "{dut}");
    }
    linerate_line("lab down --name linerate").run().ok();
    assert!(
        up.contains("linerate-generator") && up.contains("linerate-dut0"),
        "{up}"
    );
    assert!(
        bench.ended.stderr.contains("Lab linerate is up"),
        "{}",
        bench.ended.stderr
    );
    nothing_is_left();
}

/// Runs a shell script in a mount namespace of its own, whose `disk` in the scratch folder is a small file system.
fn with_small_disk(scratch: &Scratch, size: &str, script: &str) -> Program {
    std::fs::create_dir_all(scratch.file("disk")).unwrap();
    let mount = format!("mount -t tmpfs -o size={size} tmpfs disk && {script}");
    Program::new("unshare")
        .args(["-m", "--propagation", "private", "sh", "-c", &mount])
        .dir(scratch.path())
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn a_disk_that_fills_up_is_named_and_the_trials_so_far_are_safe() {
    let scratch = Scratch::new();
    let bench = format!(
        "{} bench --family 4 --duration 10ms --trials 2000 --out disk/records",
        crate::common::LINERATE
    );
    let keep = "code=$?; cp -r disk/records kept; exit $code";
    let ended = with_small_disk(&scratch, "192k", &format!("{bench}; {keep}"))
        .within(170)
        .run();
    let ended = ended.fails(
        1,
        &[
            "disk/records/trials.jsonl",
            "No space left on device",
            "trials are safe",
            "Free space",
        ],
    );
    let kept = scratch.path().join("kept");
    let trials = crate::common::campaign::trials(&kept);
    assert!(trials.len() > 10, "{}", trials.len());
    assert!(
        ended
            .stderr
            .contains(&format!("the first {} trials are safe", trials.len())),
        "{}",
        ended.stderr
    );
    let shown = linerate(["show", kept.to_str().unwrap(), "--trials"])
        .run()
        .ok();
    assert!(
        shown
            .stdout
            .contains(&format!("\n{:>5} ", trials.len() - 1)),
        "the last trial is not shown"
    );
    assert!(
        ended.stdout.contains("frames a second"),
        "what was measured is not shown: {}",
        ended.stdout
    );
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn a_disk_that_is_full_from_the_beginning_is_named() {
    let scratch = Scratch::new();
    let bench = format!(
        "{} bench --simulate ok --trials 1 --out disk/records",
        crate::common::LINERATE
    );
    let fill = "head -c 200000 /dev/zero > disk/full 2> /dev/null";
    let ended = with_small_disk(&scratch, "64k", &format!("{fill}; {bench}")).run();
    ended.fails(1, &["disk/records", "No space left on device"]);
    let send = format!(
        "{} send --write disk/frames.pcap -n 100000",
        crate::common::LINERATE
    );
    with_small_disk(&scratch, "64k", &send)
        .run()
        .fails(1, &["disk/frames.pcap", "No space left"]);
}
