//! Settings of the whole host: changed only with consent, and restored whatever ends the process.

use super::bench::{Frames, built_in, refusal, send, spec};
use linerate_linux::host::changes::{Change, Consent, Host};
use linerate_linux::lab::{EmbeddedLab, LabSpec, Setup};
use linerate_plan::settings::Dut;
use linerate_wire::Family;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

const MAX: &str = "/proc/sys/net/netfilter/nf_conntrack_max";

/// These tests change one and the same setting of this machine, a little and upwards.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

pub fn one_at_a_time() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

fn max() -> u64 {
    std::fs::read_to_string(MAX)
        .unwrap()
        .trim()
        .parse()
        .unwrap()
}

fn wants_more() -> Setup {
    Setup {
        room: Some(max() / 2 + 1),
        host: vec![more()],
        ..built_in("nft-stateful")
    }
}

fn more() -> Change {
    Change::sysctl("net.netfilter.nf_conntrack_max", &(max() + 1).to_string())
        .unwrap()
        .or_more()
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn alone_the_host_is_changed_with_consent_only_and_put_back() {
    let _one = one_at_a_time();
    let before = max();
    let setup = wants_more();
    let refused = refusal(&setup);
    assert!(refused.to_string().contains("without consent"), "{refused}");
    assert!(refused.to_string().contains(&format!(
        "sysctl -w net.netfilter.nf_conntrack_max={}",
        before + 1
    )));
    assert_eq!(max(), before);
    let spec = LabSpec {
        host_changes: Consent::Allowed,
        ..spec()
    };
    let lab = EmbeddedLab::build(spec.clone(), &[setup]).unwrap();
    assert_eq!(max(), before + 1);
    send(&lab, Frames::of(Family::V4)).is_whole("stateful with room");
    drop(lab);
    assert_eq!(max(), before);
    // Room for the states is made by itself.
    let states = Setup {
        room: Some(before + 5),
        ..built_in("nft-stateful")
    };
    let lab = EmbeddedLab::build(spec, &[states]).unwrap();
    assert_eq!(max(), (before + 5) * 2);
    drop(lab);
    assert_eq!(max(), before);
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn lanes_that_want_different_hosts_do_not_stand_side_by_side() {
    let with = |value: &str| {
        let mut setup = Setup::of(Dut::Forwarding);
        setup
            .settings
            .sysctls
            .insert("kernel.panic".into(), value.into());
        setup
    };
    let spec = LabSpec {
        host_changes: Consent::Allowed,
        ..spec()
    };
    let before = std::fs::read_to_string("/proc/sys/kernel/panic").unwrap();
    let error = EmbeddedLab::build(spec, &[with("301"), with("302")])
        .err()
        .unwrap()
        .to_string();
    assert!(error.contains("cannot stand side by side"), "{error}");
    assert_eq!(
        std::fs::read_to_string("/proc/sys/kernel/panic").unwrap(),
        before
    );
}

/// Not a test of its own: run by the next one as the process to be killed.
#[test]
#[ignore = "needs root: run by make test as root"]
fn holder_of_a_host_change() {
    let Ok(state) = std::env::var("LINERATE_TEST_JOURNAL") else {
        return;
    };
    let mut changes = Host::new(state, "/").begin();
    changes.set(&more()).unwrap();
    changes
        .set(&Change::sysctl("net.netfilter.nf_conntrack_max", &(max() + 1).to_string()).unwrap())
        .unwrap();
    eprintln!("ready {}", max());
    std::thread::sleep(std::time::Duration::from_secs(60));
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn alone_the_next_start_puts_back_what_a_killed_process_changed() {
    let _one = one_at_a_time();
    let state: PathBuf =
        std::env::temp_dir().join(format!("linerate-killed-{}", std::process::id()));
    let before = max();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "host::holder_of_a_host_change",
            "--include-ignored",
            "--nocapture",
        ])
        .env("LINERATE_TEST_JOURNAL", &state)
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let ready = BufReader::new(child.stderr.take().unwrap())
        .lines()
        .find_map(|line| line.unwrap().strip_prefix("ready ").map(str::to_owned));
    let journal = Host::new(&state, "/");
    let early = journal.restore_remains();
    child.kill().unwrap();
    child.wait().unwrap();
    let changed = max();
    let words = journal.restore_remains();
    let after = max();
    std::fs::remove_dir_all(&state).unwrap();
    assert_eq!(early.unwrap(), Vec::<String>::new(), "its process runs");
    assert_eq!(ready.unwrap(), (before + 2).to_string());
    assert_eq!(changed, before + 2);
    assert_eq!(words.unwrap().len(), 2);
    assert_eq!(after, before);
}
