//! Measurements on a machine that does other things as well.

use crate::common::{LINERATE, Program, Scratch, linerate};
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A short campaign, whose records are at `$out`.
const BENCH: &str = "bench --family 4 --variant forwarding --batch 64 --quiet";

/// A line of sh in a session of its own. `$linerate` and `$out` are there.
fn session(scratch: &Scratch, line: &str) -> Program {
    Program::with_own_run(line)
        .env("linerate", LINERATE)
        .env("out", &scratch.file("records"))
}

fn document(scratch: &Scratch, folder: &str, name: &str) -> Value {
    let text = std::fs::read_to_string(format!("{}/{name}", scratch.file(folder))).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn warnings(scratch: &Scratch, folder: &str) -> Vec<String> {
    let summary = document(scratch, folder, "summary.json");
    let warnings = summary["warnings"].as_array().unwrap().iter();
    warnings
        .map(|warning| warning["text"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
#[ignore = "needs root, and autogroups"]
fn the_session_that_measures_goes_first_and_is_put_back_whatever_ends_it() {
    if !std::fs::read_to_string("/proc/self/autogroup").is_ok_and(|text| text.contains("nice")) {
        return println!("ignored: this kernel has no autogroups");
    }
    let scratch = Scratch::new();
    let line = format!(
        "end() {{ $linerate {BENCH} --budget 60s --out $out.$1 & p=$!
until grep -q 'nice -20' /proc/self/autogroup && [ -s $out.$1/trials.jsonl ]; do sleep 0.05; done
kill -$1 $p; wait $p; }}
end INT; cat /proc/self/autogroup
end KILL; until grep -q 'nice 0' /proc/self/autogroup; do sleep 0.05; done
 $linerate {BENCH} --trials 1 --duration 20ms --out $out; cat /proc/self/autogroup"
    );
    let ended = session(&scratch, &line).run().ok();
    let nice: Vec<&str> = ended
        .stdout
        .lines()
        .filter_map(|line| line.split_once(" nice "))
        .map(|l| l.1)
        .collect();
    assert_eq!(
        nice,
        ["0", "0"],
        "after Ctrl-C, after the one behind kill -9:\n{}",
        ended.stdout
    );
    let host = document(&scratch, "records", "host.json");
    assert!(
        host["priority"]["Ok"]
            .as_str()
            .unwrap()
            .contains("autogroup -20"),
        "{host}"
    );
}

#[test]
#[ignore = "needs a network namespace of a user"]
fn the_page_says_that_linerate_does_not_come_first() {
    let scratch = Scratch::new();
    let out = scratch.file("records");
    std::fs::create_dir(&out).unwrap();
    std::os::unix::fs::chown(&out, Some(65534), Some(65534)).unwrap();
    let line = format!(
        "bench --family 4 --variant forwarding --trials 1 --duration 50ms --rate 1000pps --full --out {out}/of-user"
    );
    // Beside other tests its trial may be invalid: then the status is 1.
    let page = linerate(line.split_whitespace())
        .user(65534)
        .run()
        .no_panic()
        .stdout;
    let words = page.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains("linerate's threads do not come before other programs: "),
        "{page}"
    );
}

/// dd makes system calls alone: its user time is next to nothing.
#[test]
#[ignore = "needs root"]
fn time_that_others_spend_in_the_kernel_is_counted() {
    let scratch = Scratch::new();
    let line = format!(
        "cpu=$(($(nproc) - 1))
setsid sh -c 'echo -20 >/proc/self/autogroup; ulimit -t 60; exec taskset -c '$cpu' dd if=/dev/zero of=/dev/null bs=1M' & dd=$!
$linerate {BENCH} --cpus $cpu --trials 2 --out $out; status=$?
# Trials may be invalid beside other programs: then the status is 1.
kill $dd; [ $status -le 1 ]"
    );
    session(&scratch, &line).run().ok();
    let said = warnings(&scratch, "records");
    let took = said
        .iter()
        .find_map(|text| text.strip_prefix("other programs took ")?.split_once(" %"));
    let took: f64 = took
        .unwrap_or_else(|| panic!("{said:?}"))
        .0
        .parse()
        .unwrap();
    assert!(took >= 10.0, "{said:?}");
}

#[test]
#[ignore = "needs root"]
fn two_linerates_on_the_same_cpus_take_turns_and_both_say_so() {
    let scratch = Scratch::new();
    let line = format!(
        "$linerate {BENCH} --budget 120s --duration 50ms --out $out.1 & first=$!
until [ -s $out.1/trials.jsonl ]; do sleep 0.05; done
$linerate {BENCH} --trials 4 --duration 50ms --out $out.2; second=$?
kill -INT $first; wait $first
# Trials may be invalid beside other programs: then the status is 1.
[ $? = 130 ] && [ $second -le 1 ]"
    );
    session(&scratch, &line).run().ok();
    for folder in ["records.1", "records.2"] {
        let said = warnings(&scratch, folder);
        assert!(
            said.iter()
                .any(|text| text.starts_with("another linerate measured")),
            "{folder}: {said:?}"
        );
    }
}

/// A thread of this test that has a CPU for 3 ms, and again 7 ms later, before all ordinary programs.
struct Hog {
    over: Arc<AtomicBool>,
    thread: JoinHandle<f64>,
}

impl Hog {
    fn on(cpu: usize) -> Hog {
        let over = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&over);
        let thread = std::thread::spawn(move || {
            // SAFETY: the kernel reads the set and the parameters, which live until the calls have ended; 0 is the calling thread.
            unsafe {
                let mut set: libc::cpu_set_t = std::mem::zeroed();
                libc::CPU_SET(cpu, &mut set);
                assert_eq!(
                    libc::sched_setaffinity(0, size_of_val(&set), &raw const set),
                    0
                );
                let priority = libc::sched_param { sched_priority: 1 };
                let set = libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const priority);
                assert_eq!(set, 0);
            }
            let mut shares = Vec::new();
            while !until.load(Ordering::Relaxed) {
                let from = Instant::now();
                while from.elapsed() < Duration::from_millis(3) {
                    std::hint::spin_loop();
                }
                let busy = from.elapsed();
                std::thread::sleep(Duration::from_millis(7));
                shares.push(busy.as_secs_f64() / from.elapsed().as_secs_f64());
            }
            median(shares)
        });
        Hog { over, thread }
    }

    /// The share of the CPU's time that it usually had: its CPU may stand still now and then.
    fn end(self) -> f64 {
        self.over.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}

#[test]
#[ignore = "needs root"]
fn a_program_that_goes_before_the_load_is_named_with_its_share_of_the_cpu() {
    let scratch = Scratch::new();
    let cpu = std::thread::available_parallelism().unwrap().get() - 1;
    let hog = Hog::on(cpu);
    let out = scratch.file("records");
    let line = format!("{BENCH} --cpus {cpu} --trials 8 --duration 100ms --out {out}");
    let ended = linerate(line.split_whitespace()).run().no_panic();
    let truth = hog.end();
    assert!(matches!(ended.status.code(), Some(0 | 1)), "{ended:?}");
    let own = std::fs::read_to_string("/proc/self/comm").unwrap();
    let trials = crate::common::campaign::trials(std::path::Path::new(&out));
    // A load of which no frame left, on a busy machine, had no sender.
    let senders = trials
        .iter()
        .filter_map(|trial| trial["senders"].as_array())
        .flatten();
    let (mut hogs, mut waits) = (Vec::new(), Vec::new());
    for sender in senders {
        assert_eq!(sender["cpu"], cpu);
        let share = |ns: u64| ns as f64 / sender["counted_ns"].as_u64().unwrap() as f64;
        waits.push(share(sender["waited_ns"].as_u64().unwrap()));
        let others = sender["others"].as_array().unwrap().iter();
        let hog = others.filter(|other| other["name"] == own.trim());
        hogs.push(share(hog.map(|other| other["ns"].as_u64().unwrap()).sum()));
    }
    let [found, waited] = [hogs, waits].map(median);
    assert!((found - truth).abs() < 0.03, "{found}, and it had {truth}");
    // A wait that the load's end cut short is not counted.
    assert!(waited > truth - 0.06, "{waited}, and others had {truth}");
    let summary = document(&scratch, "records", "summary.json");
    let findings = summary["explanations"][0]["findings"].as_array().unwrap();
    let named = findings.iter().find(|of| of["cause"] == "other-programs");
    let named = named.unwrap_or_else(|| panic!("{findings:#?}"));
    let statement = named["statement"].as_str().unwrap();
    assert!(statement.contains(own.trim()), "{statement}");
    let evidence = named["evidence"][1].as_str().unwrap();
    assert!(
        evidence.contains(&format!("{} for ", own.trim())),
        "{evidence}"
    );
    assert_eq!(summary["programs"][0]["name"], own.trim());
}
