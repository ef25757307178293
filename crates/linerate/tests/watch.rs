//! `linerate watch`, on real counters and on recorded ones.

mod common;

use common::{Namespace, Scratch, linerate, linerate_line};
use serde_json::Value;

#[test]
fn this_machine_is_watched_in_each_form_without_root() {
    let text = linerate_line("watch --interval 20ms --count 2").run().ok().stdout;
    assert_eq!(
        text.lines().filter(|line| line.contains("pps in, ") && line.contains("limit: ")).count(),
        2,
        "{text}"
    );
    let netstat = linerate_line("watch lo --interval 20ms --count 2 --format netstat").run().ok().stdout;
    let expected = "            input           (lo)           output\n   packets  errs idrops      bytes    packets  errs      bytes colls\n";
    assert!(netstat.starts_with(expected) && netstat.lines().count() == 4, "{netstat}");
    let usage =
        linerate_line("watch lo --interval 20ms --count 1 --format nic-queue-usage").run().ok().stdout;
    assert!(usage.starts_with("lo [QT ") || usage.starts_with("[QT "), "{usage}");
    let wrong = linerate_line("watch no-such --count 1").run();
    assert!(wrong.status.code() == Some(1) && wrong.stderr.contains("interface no-such"), "{wrong:?}");
}

#[test]
fn a_record_gives_the_same_rates_again() {
    let scratch = Scratch::new();
    let file = scratch.file("watched.jsonl");
    let live =
        linerate_line("watch --interval 20ms --count 3 --json --record").args([&file]).run().ok().stdout;
    let again = linerate(["watch", "--json", "--replay", &file]).run().ok().stdout;
    assert!(live == again && live.lines().count() == 3, "{live}\n{again}");
    // One that was cut off while it was written is good up to there.
    let whole = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, &whole[..whole.len() - 9]).unwrap();
    let cut = linerate(["watch", "--json", "--replay", &file]).run().ok().stdout;
    assert_eq!(cut, live.lines().take(2).flat_map(|line| [line, "\n"]).collect::<String>());
    std::fs::write(&file, "{}\nno json\n{}\n").unwrap();
    let wrong = linerate(["watch", "--replay", &file]).run();
    assert!(wrong.status.code() == Some(1) && wrong.stderr.contains("line 2 is no sample"), "{wrong:?}");
}

#[test]
#[ignore = "needs root"]
fn the_queue_that_overruns_is_named() {
    let namespace = Namespace::named(common::unique("ns"));
    let quiet = "echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6";
    namespace.exec(&["sh", "-c", quiet]).run().ok();
    let end = |name: &str| format!("{name} numtxqueues 2 numrxqueues 2");
    namespace.ip(&format!("link add {} type veth peer name {}", end("t0"), end("t1"))).ok();
    namespace.ip("link set t0 up").ok();
    namespace.ip("link set t1 up").ok();
    // GRO gives the far end a ring for each queue. A thread polls it: the sender no longer waits for its frames.
    namespace.exec(&["ethtool", "-K", "t1", "gro", "on"]).run().ok();
    namespace.exec(&["sh", "-c", "echo 1 > /sys/class/net/t1/threaded"]).run().ok();
    let mac = namespace.ip("-j link show t1").ok().json()[0]["address"].as_str().unwrap().to_owned();
    let send = linerate(["send", "--netns", &namespace.name, "-i", "t0", "--isolated-lab", "t0", "-D", &mac]);
    let sending = send.args(["--duration", "2s"]).start();
    let line = format!("watch t0 t1 --namespace {} --interval 200ms --for 1500ms --json", namespace.name);
    let seen = linerate_line(&line).run().ok().stdout;
    drop(sending);
    let rates: Vec<Value> = seen.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let named = |rates: &Value| {
        let limits = rates["limits"].as_array().unwrap().iter();
        let drops = limits.filter(|limit| limit["kind"] == "queue-drops").cloned();
        drops.collect::<Vec<Value>>()
    };
    let found: Vec<(&Value, Value)> =
        rates.iter().flat_map(|rates| named(rates).into_iter().map(move |d| (rates, d))).collect();
    assert!(!found.is_empty(), "{seen}");
    // The kernel gives the counters of queues a moment after those of interfaces.
    for (rates, drop) in found {
        let interfaces = rates["interfaces"].as_array().unwrap();
        let interface = interfaces.iter().find(|i| i["name"] == drop["interface"]).unwrap();
        let way = if drop["way"] == "in" { "rx" } else { "tx" };
        let queue = &interface["queues"][drop["queue"].as_u64().unwrap() as usize][way];
        assert_eq!(queue["drops"], drop["pps"], "{rates}");
        assert!(
            queue["drops"].as_f64().unwrap() <= interface[way]["drops"].as_f64().unwrap() * 1.5,
            "{interface}"
        );
    }
}
