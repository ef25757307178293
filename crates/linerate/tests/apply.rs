//! `linerate apply` and `linerate revert`: a host is afterwards as it was before, wherever they were stopped.

use crate::common::lab::Namespace;
use crate::common::process::Program;
use crate::common::{Scratch, linerate_line, wait_for};
use serde_json::json;
use std::fs;
use std::path::Path;

const APPLY: &str = "apply --all --role router --interface t0 --interface t1 --yes";

/// A host of its own: a network namespace with two interfaces, and a folder as its /etc.
struct Host {
    namespace: Namespace,
    scratch: Scratch,
}

impl Host {
    fn new() -> Host {
        let host = Host {
            namespace: Namespace::new(),
            scratch: Scratch::new(),
        };
        let etc = host.scratch.path().join("etc/sysctl.d");
        fs::create_dir_all(&etc).unwrap();
        fs::create_dir(host.scratch.path().join("etc/netns")).unwrap();
        fs::create_dir(host.scratch.path().join("state")).unwrap();
        fs::write(
            etc.join("90-linerate.conf"),
            "# mine\n net.ipv4.ip_forward=0\nnet.ipv4.tcp_sack = 1",
        )
        .unwrap();
        // One interface forwards although the others do not: ip_forward sets all of them.
        host.exec("echo 1 > /proc/sys/net/ipv4/conf/t0/forwarding")
            .run()
            .ok();
        host
    }

    fn exec(&self, line: &str) -> Program {
        let [etc, state] = ["etc", "state"].map(|name| self.scratch.file(name));
        let line = format!("mount --bind {etc} /etc && {line}");
        self.namespace
            .exec(&["sh", "-c", &line])
            .env("XDG_STATE_HOME", &state)
    }

    /// linerate outside of the namespace, with the same folder as its /etc.
    fn outside(&self, line: &str) -> Program {
        let [etc, state] = ["etc", "state"].map(|name| self.scratch.file(name));
        let binary = env!("CARGO_BIN_EXE_linerate");
        let line = format!("mount --bind {etc} /etc && exec {binary} {line}");
        Program::new("unshare")
            .args(["-m", "sh", "-c", &line])
            .env("XDG_STATE_HOME", &state)
    }

    fn linerate(&self, line: &str) -> Program {
        self.exec(&format!("exec {} {line}", env!("CARGO_BIN_EXE_linerate")))
    }

    /// Debian's awk is a link to a folder of /etc.
    fn has_awk(&self) {
        Program::new("cp")
            .args(["-a", "/etc/alternatives", &self.scratch.file("etc/")])
            .run();
    }

    /// All that could have changed: the kernel's settings, the interfaces, the files with their modes.
    fn state(&self) -> String {
        let seen = "cd /proc/sys/net && grep -r . ipv4/ip_forward ipv4/conf ipv6/conf core/netdev_max_backlog bridge 2>/dev/null | sort; \
             ethtool -k t0; cd /etc && find . | sort | xargs ls -ld --time-style=+; cat sysctl.d/*";
        self.exec(seen).run().stdout
    }

    /// Lines of the journal.
    fn written(&self) -> usize {
        let folder = self.scratch.path().join("state/linerate/applied");
        let text = |path: &Path| fs::read_to_string(path).unwrap_or_default();
        let files = fs::read_dir(folder).into_iter().flatten().flatten();
        files
            .map(|file| {
                text(&file.path())
                    .lines()
                    .filter(|line| line.starts_with('{'))
                    .count()
            })
            .sum()
    }
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn what_was_applied_is_taken_back_to_the_byte() {
    let host = Host::new();
    let before = host.state();
    let shown = host
        .linerate(&APPLY.replace("--yes", "--dry-run"))
        .run()
        .ok();
    assert!(
        shown.stdout.contains("-  net.ipv4.ip_forward=0"),
        "{}",
        shown.stdout
    );
    host.linerate(&APPLY.replace("--yes", ""))
        .run()
        .fails(2, &["--yes", "--dry-run"]);
    assert_eq!(host.state(), before, "neither changes anything");
    let applied = host.linerate(APPLY).run().ok();
    assert!(applied.stderr.contains("--revert"), "{}", applied.stderr);
    let after = host.state();
    assert!(
        after.contains("ipv4/ip_forward:1") && after.contains("\nnet.ipv4.ip_forward = 1\n"),
        "{after}"
    );
    assert!(
        after.contains("# mine\n") && after.contains("net.ipv4.tcp_sack = 1\n"),
        "{after}"
    );
    let changes = host.written();
    host.linerate("revert").run().ok();
    assert_eq!(host.state(), before);
    assert_eq!(host.written(), 0);
    // Killed when it had begun so many changes.
    for stop in [1, changes / 2, changes] {
        let mut running = host.linerate(APPLY).start();
        wait_for("that many changes", || {
            (host.written() >= stop || !running.runs()).then_some(())
        });
        if running.runs() {
            running.signal(libc::SIGKILL);
        }
        drop(running);
        host.linerate("revert").run().ok();
        assert_eq!(host.state(), before, "killed after {stop} of {changes}");
    }
}

/// Files for the boot are those of the whole host, which is not to have the settings of its namespaces.
#[test]
#[ignore = "needs root: run by make test as root"]
fn what_is_changed_in_a_namespace_lasts_as_long_as_the_namespace() {
    let host = Host::new();
    let before = host.state();
    let files = |state: &str| state[state.find(" .\n").unwrap()..].to_string();
    let line = format!("{APPLY} --namespace {}", host.namespace.name);
    let dry = host.outside(&line.replace("--yes", "--dry-run")).run().ok();
    let applied = host.outside(&line).run().ok();
    for shown in [dry.stdout, applied.stdout] {
        assert!(
            shown.contains("last as long as the network namespace")
                && !shown.contains("90-linerate.conf"),
            "{shown}"
        );
    }
    let after = host.state();
    assert!(after.contains("ipv4/ip_forward:1"), "{after}");
    assert_eq!(files(&after), files(&before));
    let revert = format!("revert --namespace {}", host.namespace.name);
    host.outside(&revert).run().ok();
    assert_eq!(host.state(), before);
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn a_new_file_may_be_read_by_everyone() {
    use std::os::unix::fs::PermissionsExt;
    let host = Host::new();
    let file = host.scratch.path().join("etc/sysctl.d/90-linerate.conf");
    let mode = || fs::metadata(&file).unwrap().permissions().mode() & 0o777;
    // One that is there keeps its mode.
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    host.linerate(APPLY).run().ok();
    assert_eq!(mode(), 0o600);
    host.linerate("revert").run().ok();
    fs::remove_file(&file).unwrap();
    host.linerate(APPLY).run().ok();
    assert_eq!(mode(), 0o644);
    host.linerate("revert").run().ok();
    assert!(!file.exists());
}

/// An interface with values of its own, which `all` alone does not change: the script and `apply` change both.
#[test]
#[ignore = "needs root: run by make test as root"]
fn the_script_makes_the_changes_that_apply_would() {
    let host = Host::new();
    host.exec("echo 1 > /proc/sys/net/ipv4/conf/t1/log_martians")
        .run()
        .ok();
    let script = host
        .linerate("advise --role router --interface t0 --format shell")
        .run()
        .ok()
        .stdout;
    fs::write(host.scratch.path().join("etc/script"), script).unwrap();
    host.has_awk();
    let ran = host.exec("sh /etc/script").run().ok();
    assert!(ran.stderr.is_empty(), "{ran:?}");
    let state = host.state();
    assert!(
        state.contains("# mine\n") && state.contains("\nnet.ipv4.conf.all.send_redirects = 0\n"),
        "{state}"
    );
    for on in ["t0", "t1", "default", "all"] {
        assert!(
            state.contains(&format!("ipv4/conf/{on}/send_redirects:0")),
            "{state}"
        );
    }
    assert!(
        state.contains("ipv6/conf/t1/accept_redirects:0")
            && state.contains("ipv4/conf/t1/log_martians:0"),
        "{state}"
    );
    let left = host
        .linerate("apply --all --role router --interface t0 --dry-run")
        .run()
        .ok();
    assert!(
        left.stdout.contains("nothing to change") && left.stdout.contains("Left out"),
        "{}",
        left.stdout
    );
    // No host is read for arguments that are not whole: this one has no address.
    host.linerate("apply root@nowhere.invalid").run().fails(
        2,
        &["--item", "--all", "linerate advise root@nowhere.invalid"],
    );
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn a_change_that_fails_takes_those_before_it_back() {
    let host = Host::new();
    let before = host.state();
    let line = format!(
        "mount -o remount,ro,bind /etc && exec {} {APPLY}",
        env!("CARGO_BIN_EXE_linerate")
    );
    host.exec(&line).run().fails(
        1,
        &["90-linerate.conf", "the changes before it are taken back"],
    );
    assert_eq!((host.state(), host.written()), (before, 0));
    let journals = host.scratch.path().join("state/linerate/applied");
    assert_eq!(fs::read_dir(journals).unwrap().count(), 0);
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn a_file_that_someone_has_changed_stays() {
    let host = Host::new();
    host.linerate(APPLY).run().ok();
    let file = host.scratch.path().join("etc/sysctl.d/90-linerate.conf");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.clone() + "kernel.panic = 1\n").unwrap();
    host.linerate("revert")
        .run()
        .fails(1, &["90-linerate.conf has been changed", "by hand"]);
    assert!(fs::read_to_string(&file).unwrap().contains("kernel.panic"));
    assert!(
        host.state().contains("ipv4/ip_forward:0"),
        "the rest is taken back"
    );
    assert!(
        host.linerate("revert --list")
            .run()
            .ok()
            .stdout
            .contains("90-linerate.conf")
    );
    fs::write(&file, text).unwrap();
    host.linerate("revert").run().ok();
    assert!(
        fs::read_to_string(&file)
            .unwrap()
            .starts_with("# mine\n net.ipv4.ip_forward=0\n")
    );
}

/// The record of a tuning that kept four changes, of which a host can keep two.
fn tuning(host: &Host) -> String {
    let change = |name: &str, key: &str, verdict: &str| {
        let ratio = json!({ "median": 1.1, "low": 1.05, "high": 1.15, "n": 16 });
        json!({ "name": name, "keys": [key], "verdict": verdict, "screened": null,
            "confirmed": { "ratio": ratio, "p": 0.001 } })
    };
    let tuned = json!({
        "version": 1, "title": "t", "plan": "plan.toml",
        "changes": [
            change("redirects", "sysctls.net.ipv4.conf.all.send_redirects = 0", "kept"),
            change("no-tso", "interface.tso = false", "kept"),
            change("in-alone", "interface.in.gso = false", "kept"),
            change("short", "rules.before = 0", "kept"),
            change("sack", "sysctls.net.ipv4.tcp_sack = 0", "no-effect"),
        ],
        "stages": [], "interactions": [], "stopped": null,
        "together": { "verdict": "proven", "records": "r",
            "ratio": { "median": 1.2, "low": 1.1, "high": 1.3, "n": 9 } },
    });
    let kept = r#"
title = "t"
question = "q"
[variants.as-it-is]
rules = { tool = "nftables", filter = "stateless", before = 200 }
[variants.tuned]
from = "as-it-is"
rules.before = 0
interface = { tso = false, in.gso = false }
sysctls = { "net.ipv4.conf.all.send_redirects" = 0 }
[compare]
with = "as-it-is"
[trials]
duration = "10 ms"
blocks = 6
"#;
    let folder = host.scratch.path().join("tuned");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("tuning.json"), tuned.to_string()).unwrap();
    fs::write(folder.join("kept.toml"), kept).unwrap();
    host.scratch.file("tuned")
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn what_a_tuning_kept_is_applied_and_taken_back() {
    let host = Host::new();
    host.has_awk();
    let folder = tuning(&host);
    let before = host.state();
    let line = format!("apply {folder} --interface t0 --interface t1");
    let shown = host
        .linerate(&format!("{line} --dry-run"))
        .run()
        .ok()
        .stdout;
    for says in [
        "sysctl net.ipv4.conf.all.send_redirects",
        "+ net.ipv4.conf.all.send_redirects = 0",
        "in-alone: interface.in.gso: it names an interface of a lab",
        "short: rules.before: the rule set is for the networks of the lab",
        "Until the next boot alone:",
    ] {
        assert!(shown.contains(says), "no '{says}' in:\n{shown}");
    }
    assert!(!shown.contains("tcp_sack"), "{shown}");
    host.linerate(&line).run().fails(2, &["--yes", "--dry-run"]);
    assert_eq!(host.state(), before, "neither changes anything");
    let applied = host.linerate(&format!("{line} --yes")).run().ok();
    assert!(
        applied.stderr.contains("linerate apply --revert"),
        "{}",
        applied.stderr
    );
    let after = host.state();
    for is in [
        "ipv4/conf/all/send_redirects:0",
        "tcp-segmentation-offload: off",
        "\nnet.ipv4.conf.all.send_redirects = 0\n",
    ] {
        assert!(after.contains(is), "no '{is}' in:\n{after}");
    }
    let again = host.linerate(&format!("{line} --yes")).run().ok().stdout;
    assert!(again.contains("has these settings already"), "{again}");
    host.linerate("apply --revert").run().ok();
    assert_eq!(host.state(), before);
    assert_eq!(host.written(), 0);
}

/// The DUT of a lab file is the host, and its interfaces are the ends.
#[test]
#[ignore = "needs root: run by make test as root"]
fn what_a_tuning_kept_is_applied_to_the_dut_of_a_lab() {
    let host = Host::new();
    let folder = tuning(&host);
    let end = |name: &str| format!("name = \"{name}\"");
    let namespace = format!("namespace = \"{}\"", host.namespace.name);
    let lab = format!(
        "isolated = true\n[hosts.generator]\nrole = \"generator\"\n{namespace}\n[hosts.generator.send]\n{0}\n[hosts.dut]\nrole = \"dut\"\n{namespace}\n\
         [hosts.dut.in]\n{0}\n[hosts.dut.out]\n{1}\n[hosts.receiver]\nrole = \"receiver\"\n{namespace}\n[hosts.receiver.receive]\n{1}\n",
        end("t0"),
        end("t1")
    );
    fs::write(host.scratch.path().join("LAB.toml"), lab).unwrap();
    // From outside the namespace: the lab file leads there.
    let state = host.scratch.file("state");
    let linerate = |line: &str| {
        linerate_line(line)
            .dir(host.scratch.path())
            .env("XDG_STATE_HOME", &state)
    };
    let before = host.state();
    // The file of the next boot would be this machine's.
    let shown = linerate(&format!("apply {folder} --lab LAB.toml --dry-run"));
    let shown = shown.run().ok().stdout;
    assert!(!shown.contains("/etc/"), "{shown}");
    let line = format!("apply {folder} --lab LAB.toml --until-boot --yes");
    let applied = linerate(&line).run().ok();
    let name = &host.namespace.name;
    let revert = format!("linerate apply --namespace {name} --revert");
    assert!(applied.stderr.contains(&revert), "{}", applied.stderr);
    let after = host.state();
    assert!(
        after.contains("generic-segmentation-offload: off"),
        "{after}"
    );
    linerate(&format!("apply --namespace {name} --revert"))
        .run()
        .ok();
    assert_eq!(host.state(), before);
}

#[test]
fn a_tuning_that_kept_nothing_or_proved_nothing_changes_nothing() {
    let scratch = Scratch::new();
    let linerate = |line: &str| linerate_line(line).dir(scratch.path()).run();
    let tuned = |verdict: &str, together: serde_json::Value| {
        let change = json!({ "name": "a", "keys": ["interface.gro = false"], "verdict": verdict,
            "screened": null, "confirmed": null });
        json!({ "version": 1, "title": "t", "plan": "p", "changes": [change], "stages": [],
            "interactions": [], "together": together, "stopped": null })
    };
    let folder = scratch
        .path()
        .join("linerate-results/20260101T000000Z-tune");
    fs::create_dir_all(&folder).unwrap();
    let write = |tuned: serde_json::Value| {
        fs::write(folder.join("tuning.json"), tuned.to_string()).unwrap();
    };
    write(tuned("no-effect", serde_json::Value::Null));
    let nothing = linerate("apply last").ok().stdout;
    assert!(nothing.contains("It kept no change"), "{nothing}");
    write(tuned("kept", serde_json::Value::Null));
    linerate("apply last --dry-run").fails(1, &["not proven together"]);
    linerate("apply last-1").fails(2, &["there is no last-1", "has 1 campaign, last"]);
    for advised in [
        "last --all",
        "linerate-results/20260101T000000Z-tune --item a",
    ] {
        linerate(&format!("apply {advised}")).fails(2, &["is a tuning", "name a host"]);
    }
    linerate("apply nosuch").fails(
        2,
        &[
            "no folder nosuch",
            "linerate list",
            "linerate advise nosuch",
        ],
    );
    linerate("apply no/such").fails(2, &["there is no folder no/such", "tuning"]);
    linerate("apply no/such --all").fails(2, &["there is no folder no/such"]);
    fs::create_dir(scratch.path().join("empty")).unwrap();
    linerate("apply empty").fails(2, &["is no tuning"]);
    linerate("apply root@router.invalid root@other.invalid")
        .fails(2, &["for the changes of a tuning"]);
}
