//! Nothing outside the lab is touched, whatever happens: the guard of RFC 6815, signals, missing privileges, full disks.

use crate::common::{
    Bench, Lab, Namespace, Program, Scratch, linerate, linerate_line, own_machine, wait_for,
};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

const NOBODY: u32 = 65534;

/// State that must be the same before and after: links, forwarding, namespaces with names.
struct Outside {
    links: String,
    settings: String,
    names: String,
}

impl Outside {
    fn now() -> Self {
        let settings = [
            "net/ipv4/ip_forward",
            "net/ipv6/conf/all/forwarding",
            "net/ipv4/conf/all/rp_filter",
        ];
        let read =
            |name: &&str| std::fs::read_to_string(format!("/proc/sys/{name}")).unwrap_or_default();
        let links = crate::common::lab::ip("-o link").ok().stdout;
        Outside {
            links,
            settings: settings.iter().map(read).collect(),
            names: crate::common::lab::names(),
        }
    }

    #[track_caller]
    fn is_untouched(&self, when: &str) {
        let now = Outside::now();
        assert_eq!(
            (&now.links, &now.settings),
            (&self.links, &self.settings),
            "{when}"
        );
        // Other programs' names may go meanwhile; none may come.
        let new: Vec<_> = now
            .names
            .lines()
            .filter(|l| !self.names.contains(*l))
            .collect();
        assert!(new.is_empty(), "{when}: {new:?} are left");
    }
}

fn send_in(namespace: &Namespace, more: &str) -> Program {
    let line = format!(
        "send --netns {} -i t0 -n 100 -D 02:00:00:00:00:01 {more}",
        namespace.name
    );
    linerate_line(&line)
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn an_interface_that_leads_elsewhere_is_refused_with_the_reason() {
    let namespace = Namespace::new();
    let refused = |says: &[&str]| {
        let remedy = ["t0", "RFC 6815", "--isolated-lab t0"];
        let receive = linerate_line(&format!(
            "receive --netns {} -i t0 -n 1 --duration 1s",
            namespace.name
        ));
        for program in [
            send_in(&namespace, ""),
            receive,
            send_in(&namespace, "--isolated-lab t1"),
        ] {
            program.run().fails(1, &[says, &remedy].concat());
        }
        assert_eq!(namespace.sent(), 0, "it was refused and yet sent");
    };
    refused(&["is not in a lab that linerate made"]);
    namespace.ip("addr add 192.0.2.1/24 dev t0").ok();
    refused(&["address 192.0.2.1", "198.18.0.0/15"]);
    namespace.ip("route add default via 192.0.2.2").ok();
    refused(&["default route", "192.0.2.1"]);
    namespace.ip("addr flush dev t0").ok();
    namespace.ip("addr add 198.18.0.1/24 dev t0").ok();
    namespace.ip("route add default via 198.18.0.2").ok();
    refused(&["default route"]);
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn an_interface_named_as_an_isolated_lab_is_used_with_a_warning() {
    let namespace = Namespace::new();
    namespace.ip("addr add 192.0.2.1/24 dev t0").ok();
    let sent = send_in(&namespace, "--isolated-lab t0 --backend af-packet")
        .run()
        .ok();
    for part in ["warning", "192.0.2.1", "--isolated-lab t0 was given"] {
        assert!(sent.stderr.contains(part), "{}", sent.stderr);
    }
    assert_eq!(namespace.sent(), 100);
}

/// The bridge or card below counts as well as the interface itself.
#[test]
#[ignore = "needs root: run by make test as root"]
fn what_an_interface_is_connected_with_is_examined() {
    let namespace = Namespace::new();
    for line in [
        "link add br0 type bridge",
        "link set t0 master br0",
        "addr add 203.0.113.1/24 dev br0",
    ] {
        namespace.ip(line).ok();
    }
    send_in(&namespace, "")
        .run()
        .fails(1, &["203.0.113.1", "connected with"]);
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn interfaces_that_cannot_carry_the_frames_are_named_with_the_remedy() {
    let namespace = Namespace::new();
    let long = send_in(&namespace, "--isolated-lab t0 --size 3000").run();
    long.fails(
        1,
        &["MTU of 2982", "t0 has 1500", "ip link set t0 mtu 2982"],
    );
    namespace.ip("link set t1 down").ok();
    send_in(&namespace, "--isolated-lab t0")
        .run()
        .fails(1, &["t0 has no carrier"]);
    namespace.ip("link set t0 down").ok();
    send_in(&namespace, "--isolated-lab t0")
        .run()
        .fails(1, &["t0 is down", "ip link set t0 up"]);
    let missing = format!("send --netns {} -i t9 -n 1", namespace.name);
    linerate_line(&missing)
        .run()
        .fails(1, &["no interface t9", &namespace.name]);
    let no_mac = format!(
        "send --netns {} -i t0 --isolated-lab t0 -n 1",
        namespace.name
    );
    namespace.ip("link set t0 up").ok();
    namespace.ip("link set t1 up").ok();
    linerate_line(&no_mac).run().fails(2, &["-D MAC"]);
}

#[test]
#[ignore = "needs root, to become another user: run by make test as root"]
fn what_root_has_left_is_not_in_a_plain_user_s_way() {
    let scratch = Scratch::new();
    let copy = copy_for_all(&scratch);
    let record = r#"{"version":1,"name":"dead","pid":4194304,"pid_started":1,"created":1,"complete":false,"namespaces":{}}"#;
    let line = format!(
        "mkdir -p /run/linerate/host /run/linerate/labs; umask 077; : >/run/linerate/host/lock; umask 022; \
         echo '{record}' >/run/linerate/labs/dead.json; setpriv --reuid {NOBODY} --regid {NOBODY} --clear-groups \
         {copy} bench --family 4 --trials 1 --duration 20ms --out records"
    );
    let ended = Program::with_own_run(&line)
        .dir(scratch.path())
        .run()
        .no_panic();
    assert!(
        scratch.path().join("records/trials.jsonl").exists(),
        "{ended:?}"
    );
    assert!(
        ended
            .stderr
            .contains("not root: the tester uses AF_PACKET sockets"),
        "{}",
        ended.stderr
    );
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn root_without_all_powers_measures_by_sockets_and_is_told() {
    let bench = "bench --family 4 --trials 1 --batch 32 --duration 20ms --out";
    for (number, apart) in ["unshare -Ur", "setpriv --bounding-set -sys_admin"]
        .into_iter()
        .enumerate()
    {
        let scratch = Scratch::new();
        let line = format!("{apart} {} {bench} records", crate::common::LINERATE);
        let mut words = line.split_whitespace();
        let ended = Program::new(words.next().unwrap())
            .args(words)
            .dir(scratch.path())
            .run()
            .no_panic();
        let why = ["cannot load the eBPF program", "not root"][number];
        for part in [why, "the tester uses AF_PACKET sockets"] {
            assert!(
                ended.stderr.contains(part),
                "{apart}: no '{part}' in {}",
                ended.stderr
            );
        }
        let campaign = std::fs::read_to_string(scratch.file("records/campaign.json")).unwrap();
        assert!(
            campaign.contains("\"generator\": \"af-packet\""),
            "{campaign}"
        );
    }
    // A plan says so on its page.
    let scratch = Scratch::new();
    let plan = "title = \"t\"\nquestion = \"q\"\n[variants.a]\nabout = \"a\"\n[trials]\nduration = \"20 ms\"\nblocks = 1\n";
    std::fs::write(scratch.file("plan.toml"), plan).unwrap();
    let run = Program::new("unshare").args([
        "-Ur",
        crate::common::LINERATE,
        "run",
        "plan.toml",
        "--full",
    ]);
    let page = run.dir(scratch.path()).run().no_panic().stdout;
    assert!(page.contains("uses AF_PACKET sockets"), "{page}");
}

/// A copy of linerate that every user can run.
fn copy_for_all(scratch: &Scratch) -> String {
    let copy = scratch.file("linerate");
    // By another process: a child of another test could hold the file open for writing, and it could not be run.
    Program::new("cp")
        .args([crate::common::LINERATE, &copy])
        .run()
        .ok();
    std::fs::set_permissions(&copy, PermissionsExt::from_mode(0o755)).unwrap();
    std::fs::set_permissions(scratch.path(), PermissionsExt::from_mode(0o777)).unwrap();
    copy
}

#[test]
#[ignore = "needs root, to become another user: run by make test as root"]
fn without_privilege_there_is_a_clear_message() {
    let scratch = Scratch::new();
    let copy = copy_for_all(&scratch);
    let as_nobody = |line: &str| {
        Program::new(&copy)
            .args(line.split_whitespace())
            .user(NOBODY)
            .dir(scratch.path())
    };
    as_nobody("bench --simulate ok --trials 1 --duration 20ms")
        .run()
        .ok();
    for line in ["bench --backend xdp --trials 1", "lab up"] {
        let refused = as_nobody(line).run().fails(1, &["linerate: "]);
        let says = refused.stderr.to_lowercase();
        assert!(
            says.contains("root") && says.contains("sudo"),
            "{line}: {says}"
        );
    }
    // Without a port, a user namespace is enough if users may have one; otherwise the message names the setting to allow.
    let bench = as_nobody("bench --family 4 --trials 1 --duration 200ms --out records")
        .run()
        .no_panic();
    match bench.status.code() {
        Some(0) => {
            assert!(bench.stderr.contains("not root"), "{}", bench.stderr);
            // More rules than fit into the buffer of a netlink socket, which root alone can make larger.
            let rules = |tool: &str| {
                format!(
                    "[variants.{tool}]\nrules = {{ tool = \"{tool}\", filter = \"stateless\", before = 3000 }}\n"
                )
            };
            let plan = format!(
                "title = \"t\"\nquestion = \"q\"\n{}{}[trials]\nduration = \"20 ms\"\nblocks = 1\n",
                rules("nftables"),
                rules("iptables")
            );
            std::fs::write(scratch.file("plan.toml"), plan).unwrap();
            // A trial in which no frame comes as far as the end of the rules is invalid, on a busy machine.
            let ended = as_nobody("run plan.toml --out rules").run().no_panic();
            assert!(matches!(ended.status.code(), Some(0 | 1)), "{ended:?}");
            let trials = crate::common::campaign::trials(&scratch.path().join("rules"));
            let slots: std::collections::BTreeSet<u64> = trials
                .iter()
                .map(|trial| trial["slot"].as_u64().unwrap())
                .collect();
            assert_eq!(
                slots.len(),
                3,
                "both stand, and the tester alone: {ended:?}"
            );
        }
        _ => drop(bench.fails(1, &["root"])),
    }
    let lab = Lab::up(&["forwarding"]);
    let send = as_nobody(&format!(
        "send --netns {} -i g0 -n 1",
        lab.namespace("generator")
    ))
    .run();
    let says = send.fails(1, &["linerate: "]).stderr.to_lowercase();
    assert!(says.contains("root") && says.contains("sudo"), "{says}");
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn after_kill_9_nothing_is_left_and_the_next_run_is_fine() {
    own_machine();
    let before = Outside::now();
    let bench = Bench::new("--family 4 --budget 40s --variant nft-stateful");
    let running = bench.program().start();
    wait_for("two trials", || {
        (crate::common::campaign::trials(&bench.directory()).len() >= 2).then_some(())
    });
    let namespaces = namespaces_of(running.pid());
    assert!(
        namespaces >= 3,
        "generator, receiver and DUTs: {namespaces}"
    );
    running.signal(libc::SIGKILL);
    let ended = running.wait().no_panic();
    let campaign = bench.read(ended);
    before.is_untouched("after kill -9");
    let shown = linerate(["show", campaign.path()]).run().ok();
    assert!(
        shown.stderr.contains("did not come to its end"),
        "{}",
        shown.stderr
    );
    assert!(
        shown.stdout.contains("forwarding IPv4 64 B"),
        "{}",
        shown.stdout
    );
    Bench::new("--family 4 --trials 1 --duration 50ms").run_beside();
    before.is_untouched("after the next run");
}

/// Network namespaces that a process has open, other than the one it is in.
fn namespaces_of(pid: i32) -> usize {
    let links = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    let targets = links
        .flatten()
        .filter_map(|l| std::fs::read_link(l.path()).ok());
    let names: std::collections::BTreeSet<_> = targets
        .map(|t| t.display().to_string())
        .filter(|t| t.starts_with("net:["))
        .collect();
    names.len()
}

/// Whether a process handles SIGINT.
fn catches_interrupts(pid: i32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let mut lines = status.lines();
    let caught = lines.find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
    let caught = u64::from_str_radix(caught.trim(), 16).unwrap();
    caught & (1 << (libc::SIGINT - 1)) != 0
}

/// At any moment: while the lab is built, while it measures, twice.
#[test]
#[ignore = "needs root: run by make test as root"]
fn ctrl_c_at_any_moment_puts_everything_back() {
    own_machine();
    let before = Outside::now();
    for after_ms in [5, 60, 200, 900, 1500] {
        let bench = Bench::new("--family 4 --budget 40s");
        let running = bench.program().start();
        std::thread::sleep(Duration::from_millis(after_ms));
        let listens = catches_interrupts(running.pid());
        running.signal(libc::SIGINT);
        let ended = running.wait().no_panic();
        // A program that has not begun to listen ends by the signal itself.
        let expected = match ended.status.signal() {
            Some(signal) => signal == libc::SIGINT && !listens,
            None => ended.status.code() == Some(130),
        };
        assert!(expected, "after {after_ms} ms: {ended:?}");
        assert!(
            ended.took < Duration::from_secs(60),
            "{after_ms} ms: {:?}",
            ended.took
        );
        before.is_untouched(&format!("after {after_ms} ms"));
        let campaign = bench.read(ended);
        if !campaign.trials.is_empty() {
            assert_eq!(campaign.document("summary.json")["stopped"], "interrupted");
            linerate(["show", campaign.path()]).run().ok();
        }
    }
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn the_records_of_an_interrupted_campaign_are_whole() {
    let bench = Bench::new("--family 4 --budget 40s --duration 50ms");
    let running = bench.program().start();
    wait_for("six trials", || {
        (crate::common::campaign::trials(&bench.directory()).len() >= 6).then_some(())
    });
    running.signal(libc::SIGINT);
    let campaign = bench.read(running.wait().status(130));
    let rows = campaign.document("summary.json")["rows"].clone();
    let counted: u64 = rows
        .as_array()
        .unwrap()
        .iter()
        .map(|r| r["trials"].as_u64().unwrap())
        .sum();
    assert_eq!(counted, campaign.trials.len() as u64, "a trial was lost");
    assert!(
        campaign.ended.stdout.contains("frames a second"),
        "{}",
        campaign.ended.stdout
    );
}

/// The deadline of a load is in the generator's program: it holds even if no other program is left to stop it.
#[test]
#[ignore = "needs root: run by make test as root"]
fn a_load_ends_by_itself_when_its_program_is_stopped() {
    let lab = Lab::up(&["forwarding"]);
    let _receiver = lab.receive("r1", "").start();
    let sent = || {
        let shown = lab
            .exec("generator", &["ip", "-j", "-s", "link", "show", "g1"])
            .run()
            .ok()
            .json();
        shown[0]["stats64"]["tx"]["packets"].as_u64().unwrap()
    };
    let running = lab.send("g1", "--duration 1s -R 50k").start();
    wait_for("the load", || (sent() > 0).then_some(()));
    running.signal(libc::SIGSTOP);
    let then = wait_for("the end of the load", || {
        let then = sent();
        std::thread::sleep(Duration::from_millis(700));
        (sent() == then).then_some(then)
    });
    assert!(then <= 51_000, "{then} frames in a second of 50,000");
    running.signal(libc::SIGCONT);
    running.wait().ok();
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn killing_a_sender_ends_its_load() {
    let lab = Lab::up(&["forwarding"]);
    let _receiver = lab.receive("r1", "").start();
    let sent = || {
        let shown = lab
            .exec("generator", &["ip", "-j", "-s", "link", "show", "g1"])
            .run()
            .ok()
            .json();
        shown[0]["stats64"]["tx"]["packets"].as_u64().unwrap()
    };
    for (signal, code) in [(libc::SIGKILL, None), (libc::SIGINT, Some(130))] {
        let before = sent();
        let running = lab.send("g1", "--duration 30s -R 50k").start();
        wait_for("the load", || (sent() > before).then_some(()));
        running.signal(signal);
        let ended = running.wait();
        assert_eq!(ended.status.code(), code);
        assert!(ended.took < Duration::from_secs(25));
        let then = sent();
        std::thread::sleep(Duration::from_millis(300));
        assert_eq!(sent(), then, "signal {signal}: it still sends");
    }
}
