//! `linerate watch`, on real counters and on recorded ones.

use crate::common::{LINERATE, Namespace, Program, Scratch, linerate, linerate_line};
use crate::sshd::{SshLab, wait_until};
use serde_json::Value;
use std::time::Duration;

#[test]
fn this_machine_is_watched_in_each_form_without_root() {
    let text = linerate_line("watch --interval 20ms --count 2")
        .run()
        .ok()
        .stdout;
    assert_eq!(
        text.lines()
            .filter(|line| line.contains("pps in, ") && line.contains("limit: "))
            .count(),
        2,
        "{text}"
    );
    let netstat = linerate_line("watch lo --interval 20ms --count 2 --format netstat")
        .run()
        .ok()
        .stdout;
    let expected = "            input           (lo)           output\n   packets  errs idrops      bytes    packets  errs      bytes colls\n";
    assert!(
        netstat.starts_with(expected) && netstat.lines().count() == 4,
        "{netstat}"
    );
    let usage = linerate_line("watch lo --interval 20ms --count 1 --format nic-queue-usage")
        .run()
        .ok()
        .stdout;
    assert!(
        usage.starts_with("lo [QT ") || usage.starts_with("[QT "),
        "{usage}"
    );
    let wrong = linerate_line("watch no-such --count 1").run();
    assert!(
        wrong.status.code() == Some(1) && wrong.stderr.contains("interface no-such"),
        "{wrong:?}"
    );
}

#[test]
fn a_record_gives_the_same_rates_again() {
    let scratch = Scratch::new();
    let file = scratch.file("watched.jsonl");
    let live = linerate_line("watch --interval 20ms --count 3 --json --record")
        .args([&file])
        .run()
        .ok()
        .stdout;
    let again = linerate(["watch", "--json", "--replay", &file])
        .run()
        .ok()
        .stdout;
    assert!(
        live == again && live.lines().count() == 3,
        "{live}\n{again}"
    );
    // One that was cut off while it was written is good up to there.
    let whole = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, &whole[..whole.len() - 9]).unwrap();
    let cut = linerate(["watch", "--json", "--replay", &file])
        .run()
        .ok()
        .stdout;
    assert_eq!(
        cut,
        live.lines()
            .take(2)
            .flat_map(|line| [line, "\n"])
            .collect::<String>()
    );
    std::fs::write(&file, "{}\nno json\n{}\n").unwrap();
    let wrong = linerate(["watch", "--replay", &file]).run();
    assert!(
        wrong.status.code() == Some(1) && wrong.stderr.contains("line 2 is no sample"),
        "{wrong:?}"
    );
}

/// The output on a terminal, which is closed when the program has ended.
fn on_terminal(line: &str) -> String {
    let inner = format!("stty rows 24 cols 80; TERM=xterm exec {LINERATE} watch {line}");
    Program::new("script")
        .args(["-qec", &inner, "/dev/null"])
        .run()
        .stdout
}

#[test]
fn the_terminal_is_as_it_was_afterwards() {
    let shown = on_terminal("--interval 20ms --count 2");
    let (enter, leave) = ("\u{1b}[?1049h", "\u{1b}[?1049l");
    let (entered, left) = (shown.find(enter), shown.rfind(leave));
    assert!(
        entered.is_some() && entered < left && shown.contains("Limit: "),
        "{shown:?}"
    );
    assert!(
        shown.rfind("\u{1b}[?25h") > shown.rfind("\u{1b}[?25l"),
        "the cursor shows: {shown:?}"
    );
    let refused = on_terminal("no-such");
    assert!(
        refused.rfind("no-such") > refused.rfind(leave) && refused.contains(leave),
        "{refused:?}"
    );
}

/// Programs of a FreeBSD host whose clock goes on by a second each time that it is asked, and whose counters go with it.
const FREEBSD: [(&str, &str); 8] = [
    ("uname", "echo FreeBSD"),
    ("date", "case $1 in +%s.%N) n=$(($(cat ~/n) + 1)); echo $n >~/n; echo $n.000000000 ;; *) exec /bin/date \"$@\" ;; esac"),
    ("ifconfig", "echo cxl0 lo0"),
    (
        "sysctl",
        "n=$(cat ~/n); case $* in
        '-qN dev.cxl.0') printf 'dev.cxl.0.%s\\n' rxq.0.rxcsum rxq.1.rxcsum reg_dump stats.rx_ovflow0 stats.mtu ;;
        '-qN '*) exit 1 ;;
        '-n kern.cp_times') echo 0 0 0 0 $((n * 100)) 0 0 1 $((n * 127)) 0 ;;
        '-q dev.cxl.0.rxq.0.rxcsum dev.cxl.0.rxq.1.rxcsum dev.cxl.0.stats.rx_ovflow0')
            printf 'dev.cxl.0.%s\\n' \"rxq.0.rxcsum: $((n * 5000))\" 'rxq.1.rxcsum: 7' \"stats.rx_ovflow0: $((n * 7900))\" ;;
        *) exit 1 ;; esac",
    ),
    (
        "netstat",
        "n=$(cat ~/n); case $* in
        -ibdnW) echo 'Name Mtu Network Address Ipkts Ierrs Idrop Ibytes Opkts Oerrs Obytes Coll Drop'
            echo \"cxl0 1500 <Link#1> 00:07:43:2e:e4:70 $((n * 5000)) 0 $((n * 7900)) $((n * 300000)) $((n * 5000)) 0 1 0 0\"
            echo 'lo0 16384 <Link#4> lo0 0 0 0 0 0 0 0 0 0' ;; esac",
    ),
    ("vmstat", "echo interrupt total rate; echo \"irq284: t5nex0:0a0 $(($(cat ~/n) * 900)) 474\""),
    ("pfctl", "exit 1"),
    ("ipfw", "echo \"00100 $(($(cat ~/n) * 40)) 7462 allow ip from any to any\""),
];

#[test]
#[ignore = "needs root and openssh-server"]
fn hosts_are_watched_over_ssh_by_one_session() {
    let mut lab = SshLab::new(&["bsd", "linux"]);
    let config = lab.config().display().to_string();
    for (name, script) in FREEBSD {
        lab.host("bsd")
            .stand_in(name, &format!("#!/bin/sh\n{script}\n"));
    }
    std::fs::write(lab.host("bsd").programs().join("../n"), "0").unwrap();
    let prefix = lab.prefix();
    let watch = |line: &str| {
        let words = prefix[1..].iter().map(String::as_str).chain([
            LINERATE,
            "watch",
            "--ssh-config",
            &config,
        ]);
        Program::new(&prefix[0])
            .args(words.chain(line.split_whitespace()))
            .within(30)
            .run()
    };
    let record = lab.folder().join("bsd.jsonl").display().to_string();
    let line = format!("cxl0 --host bsd --interval 50ms --count 3 --json --record {record}");
    let seen = watch(&line).ok().stdout;
    for line in seen.lines() {
        let rates: Value = serde_json::from_str(line).unwrap();
        // The clock is asked once more for the drivers' counters.
        assert_eq!(
            (&rates["seconds"], &rates["host"]),
            (&2.0.into(), &"bsd".into())
        );
        let cxl = &rates["interfaces"][0];
        assert_eq!(
            (&cxl["rx"]["pps"], &cxl["rx"]["drops"], &cxl["tx"]["pps"]),
            (&5e3.into(), &7.9e3.into(), &5e3.into())
        );
        let queues: Vec<f64> = (0..2)
            .map(|nth| cxl["queues"][nth]["rx"]["pps"].as_f64().unwrap())
            .collect();
        assert_eq!(queues, [5000.0, 0.0]);
        assert_eq!(
            cxl["moving"][0]["name"], "stats.rx_ovflow0",
            "reg_dump was not asked for"
        );
        assert_eq!(
            (&rates["cpus"][0]["idle"], &rates["cpus"][1]["irq"]),
            (&1.0.into(), &1.0.into())
        );
        assert_eq!(rates["interrupts"][0]["name"], "irq284: t5nex0:0a0");
        let kinds: Vec<&str> = rates["limits"]
            .as_array()
            .unwrap()
            .iter()
            .map(|l| l["kind"].as_str().unwrap())
            .collect();
        assert_eq!(kinds, ["cpu", "drops", "one-queue"], "{rates}");
    }
    assert_eq!(seen.lines().count(), 3);
    let recorded = std::fs::read_to_string(&record).unwrap();
    assert!(
        recorded
            .lines()
            .next()
            .unwrap()
            .contains("ipfw: 00100 allow ip from any to any"),
        "{recorded}"
    );
    // A Linux host: its session is its traffic.
    let seen = watch("--host linux --interval 50ms --count 2 --json")
        .ok()
        .stdout;
    let rates: Value = serde_json::from_str(seen.lines().last().unwrap()).unwrap();
    let mgmt = rates["interfaces"]
        .as_array()
        .unwrap()
        .iter()
        .find(|interface| interface["name"] == "mgmt")
        .unwrap();
    assert!(
        mgmt["tx"]["pps"].as_f64().unwrap() > 0.0 && !rates["cpus"].as_array().unwrap().is_empty(),
        "{seen}"
    );
    let by_name = watch("root@linux lo --interval 50ms --count 1 --json")
        .ok()
        .stdout;
    assert!(by_name.contains("\"lo\""), "{by_name}");
    watch("root@linux --replay x.jsonl").fails(2, &["one place is watched at a time"]);
    watch("nic9 --host linux --count 1")
        .fails(1, &["linux has no interface nic9; it has lo, mgmt"]);
    for name in ["bsd", "linux"] {
        let host = lab.host(name);
        wait_until(
            "the end of the host's commands",
            Duration::from_secs(60),
            || host.running("ask date") == 0,
        );
    }
}

#[test]
#[ignore = "needs root and nft"]
fn the_queue_that_overruns_is_named() {
    let namespace = Namespace::named(crate::common::unique("ns"));
    let quiet = "echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6";
    namespace.exec(&["sh", "-c", quiet]).run().ok();
    let end = |name: &str| format!("{name} numtxqueues 2 numrxqueues 2");
    namespace
        .ip(&format!(
            "link add {} type veth peer name {}",
            end("t0"),
            end("t1")
        ))
        .ok();
    namespace.ip("link set t0 up").ok();
    namespace.ip("link set t1 up").ok();
    // GRO gives the far end a ring for each queue. A thread polls it: the sender no longer waits for its frames.
    namespace
        .exec(&["ethtool", "-K", "t1", "gro", "on"])
        .run()
        .ok();
    namespace
        .exec(&["sh", "-c", "echo 1 > /sys/class/net/t1/threaded"])
        .run()
        .ok();
    let mac = namespace.ip("-j link show t1").ok().json()[0]["address"]
        .as_str()
        .unwrap()
        .to_owned();
    let send = linerate([
        "send",
        "--netns",
        &namespace.name,
        "-i",
        "t0",
        "--isolated-lab",
        "t0",
        "-D",
        &mac,
    ]);
    let sending = send.args(["--duration", "100s"]).start();
    let rules =
        "table inet f { chain pre { type filter hook prerouting priority 0; counter accept; }; }";
    namespace.exec(&["nft", rules]).run().ok();
    let line = format!(
        "watch t0 t1 --namespace {} --interval 200ms --for 60s --json",
        namespace.name
    );
    let mut watching = linerate_line(&line).start();
    // Rules are read less often: their rates come with one of the first lines. A queue drops in each.
    watching.wait_for_line("\"rules\":[{\"name\":\"inet f pre: counter accept\"");
    let seen = watching.wait_for_line("\"queue-drops\"");
    drop((watching, sending));
    let rates: Value = serde_json::from_str(&seen).unwrap();
    let limits = rates["limits"].as_array().unwrap().iter();
    for drop in limits.filter(|limit| limit["kind"] == "queue-drops") {
        let interfaces = rates["interfaces"].as_array().unwrap();
        let interface = interfaces
            .iter()
            .find(|i| i["name"] == drop["interface"])
            .unwrap();
        let way = if drop["way"] == "in" { "rx" } else { "tx" };
        let queue = &interface["queues"][drop["queue"].as_u64().unwrap() as usize][way];
        assert_eq!(queue["drops"], drop["pps"], "{rates}");
        assert!(interface[way]["drops"].as_f64() > Some(0.0), "{interface}");
    }
}
