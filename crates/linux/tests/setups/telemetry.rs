//! The kernel's account of the frames of a DUT: drops with their reasons, times in the stack, waits for locks.

use super::bench::{Frames, ask, lab, send, spec};
use linerate_linux::host::cpu::online_cpus;
use linerate_linux::lab::collectors::threads;
use linerate_linux::lab::{EmbeddedLab, LabSpec, Setup};
use linerate_linux::net::Netns;
use linerate_linux::telemetry::Probe;
use linerate_linux::telemetry::counting::{Counting, EVENTS, Event};
use linerate_linux::telemetry::{drops::Drops, locks::Locks, stages::Stages, switches::Switches};
use linerate_measure::collector::{Artefact, Counters};
use linerate_measure::record::{CpuHolder, Mode, StackTimes, Step};
use linerate_plan::settings::Dut;
use linerate_profile::Waited;
use linerate_wire::Family;
use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

fn namespaces(lab: &EmbeddedLab) -> Vec<&Netns> {
    lab.lanes[0].dut.as_ref().unwrap().namespaces()
}

fn counters(drops: Box<dyn Probe>) -> Counters {
    match drops.found().unwrap() {
        Artefact::Counters(counters) => counters,
        other => panic!("{other:?}"),
    }
}

/// As many frames as were lost, with the kernel's reason; and none of those that the receiver counts and frees.
#[test]
#[ignore = "needs root: run by make test as root"]
fn drops_have_their_reason_and_their_number() {
    let lab = lab(&Setup::of(Dut::Forwarding));
    let drops = Drops::load(&namespaces(&lab)).unwrap();
    let whole = send(&lab, Frames::of(Family::V4));
    whole.is_whole("nothing is dropped");
    let overran = counters(drops).values().sum::<u64>();
    assert!(overran <= whole.lost_at_rings(), "{overran}");
    // 300 frames find no way, 700 are not to be forwarded at all.
    let drops = Drops::load(&namespaces(&lab)).unwrap();
    let address = "198.19.0.0/16";
    ask(&lab, "ip", &["route", "replace", "prohibit", address]);
    let prohibited = send(
        &lab,
        Frames {
            count: 300,
            ..Frames::of(Family::V4)
        },
    );
    ask(&lab, "sysctl", &["-qw", "net.ipv4.conf.all.forwarding=0"]);
    let refused = send(
        &lab,
        Frames {
            count: 700,
            ..Frames::of(Family::V4)
        },
    );
    // Frames that found the DUT's ring full never were in its stack.
    let entered = [&prohibited, &refused].map(|shown| shown.entered());
    assert_eq!([prohibited.dropped(), refused.dropped()], entered);
    assert!(entered[0] > 150 && entered[1] > 350, "{entered:?}");
    let drops = counters(drops);
    println!("{drops:?}");
    assert_eq!(
        drops.values().sum::<u64>(),
        entered[0] + entered[1],
        "{drops:?}"
    );
    assert!(
        drops.keys().all(|name| name.ends_with(" in ip_error")),
        "{drops:?}"
    );
}

/// The times of frames, and how many entered the DUT.
fn times(lab: &EmbeddedLab, frames: Frames) -> (StackTimes, u64) {
    let mut stages = Stages::load(&namespaces(lab)).unwrap();
    stages.start().unwrap();
    let shown = send(lab, frames);
    stages.stop();
    match stages.found().unwrap() {
        Artefact::Stages(times) => (times, shown.entered()),
        other => panic!("{other:?}"),
    }
}

/// One frame in 61 passes each stage once, in their order, and the stages are the whole way.
#[test]
#[ignore = "needs root: run by make test as root"]
fn frames_pass_the_stages_of_the_stack() {
    let lab = lab(&Setup::of(Dut::Forwarding));
    for family in [Family::V4, Family::V6] {
        let frames = Frames {
            len_fcs: 90,
            count: 6_100,
            rate: Some(50_000.0),
            ..Frames::of(family)
        };
        let (times, entered) = times(&lab, frames);
        let steps: Vec<(&str, &str)> = times
            .steps
            .iter()
            .map(|s| (s.from.as_str(), s.to.as_str()))
            .collect();
        let lookup = "fib_table_lookup";
        assert_eq!(
            steps,
            [
                ("entry", "netif_receive_skb"),
                ("netif_receive_skb", lookup),
                (lookup, "net_dev_queue"),
                ("net_dev_queue", "net_dev_start_xmit"),
                ("net_dev_start_xmit", "net_dev_xmit"),
            ],
            "{family}"
        );
        // The kernel itself may have sent a frame or two meanwhile.
        let followed = entered / 61;
        assert!(
            (followed..=followed + 1).contains(&times.followed),
            "{}",
            times.followed
        );
        assert!(
            times
                .steps
                .iter()
                .all(|step| step.times.count() == times.followed),
            "{times:?}"
        );
        assert_eq!(times.whole.count(), times.followed);
        let mean = |step: &Step| step.times.mean().unwrap();
        let (parts, whole) = (
            times.steps[..4].iter().map(mean).sum::<f64>(),
            times.whole.mean().unwrap(),
        );
        assert!((parts / whole - 1.0).abs() < 0.05, "{parts} {whole}");
    }
}

/// Frames that are dropped leave nothing behind: the next ones in their buffers have their own times.
#[test]
#[ignore = "needs root: run by make test as root"]
fn dropped_frames_have_no_way() {
    let lab = lab(&Setup::of(Dut::Forwarding));
    ask(&lab, "sysctl", &["-qw", "net.ipv4.conf.all.forwarding=0"]);
    let (times, entered) = times(
        &lab,
        Frames {
            count: 1220,
            ..Frames::of(Family::V4)
        },
    );
    let followed = entered / 61;
    assert!(
        (followed..=followed + 1).contains(&times.followed),
        "{times:?}"
    );
    assert!(times.whole.count() <= 1, "{times:?}");
}

/// Waits of CPUs while frames pass a DUT whose one queue they share.
fn waits(generator_cpus: Vec<u32>) -> (Waited, u64) {
    let spec = LabSpec {
        generator_cpus: generator_cpus.clone(),
        ..spec()
    };
    let lab = EmbeddedLab::build(spec, &[Setup::of(Dut::Forwarding)]).unwrap();
    ask(
        &lab,
        "tc",
        &["qdisc", "replace", "dev", "out0", "root", "pfifo"],
    );
    let mut locks = Locks::load(&generator_cpus).unwrap();
    locks.start().unwrap();
    // Long enough for both CPUs to send at the same time, where other loads have one of them now and then.
    let shown = send(
        &lab,
        Frames {
            count: 1_000_000,
            rate: None,
            ..Frames::of(Family::V4)
        },
    );
    locks.stop();
    match locks.found().unwrap() {
        Artefact::Waited(waited) => (waited, shown.sent.frames),
        other => panic!("{other:?}"),
    }
}

/// Two CPUs that send into one queue wait for its lock; one CPU waits for nobody.
#[test]
#[ignore = "needs root and 2 CPUs"]
fn cpus_that_share_a_queue_wait_for_its_lock() {
    let (alone, _) = waits(vec![0]);
    assert_eq!(of_queue(&alone), 0, "{alone:?}");
    let (shared, _) = waits(vec![0, 1]);
    assert!(of_queue(&shared) > 0 && shared.waits > 0, "{shared:?}");
}

/// Nanoseconds of waiting for the lock of a queue.
fn of_queue(waited: &Waited) -> u64 {
    let functions = waited.functions();
    functions
        .iter()
        .filter(|f| f.name.contains("xmit"))
        .map(|f| f.own)
        .sum()
}

#[test]
#[ignore = "needs root, 2 CPUs and a quiet machine"]
fn figures_waits_for_the_lock_of_a_queue_are_a_part_of_each_frame() {
    let (shared, frames) = waits(vec![0, 1]);
    let ns = of_queue(&shared) as f64 / frames as f64;
    println!(
        "{ns} ns of a frame; {} waits, {} lost: {:?}",
        shared.waits,
        shared.lost,
        shared.functions().iter().take(5).collect::<Vec<_>>()
    );
    assert!(ns > 1.0 && shared.waits > 100, "{shared:?}");
}

/// Events of the kernel are counted by the same calls as those of the CPU, which few virtual machines have.
#[test]
#[ignore = "needs root: run by make test as root"]
fn cpus_count_what_happens_between_two_readings() {
    let lab = lab(&Setup::of(Dut::Forwarding));
    let clock = Event::software(
        "cpu-clock",
        aya_obj::generated::perf_sw_ids::PERF_COUNT_SW_CPU_CLOCK,
    );
    let counting = Counting::begin(&[0, 1], &[&EVENTS[..], &[clock]].concat());
    let began = std::time::Instant::now();
    let then = counting.read().unwrap();
    let read = std::time::Instant::now();
    send(
        &lab,
        Frames {
            rate: None,
            count: 20_000,
            ..Frames::of(Family::V4)
        },
    );
    let least = read.elapsed().as_nanos() as f64;
    let now = counting.read().unwrap();
    let most = began.elapsed().as_nanos() as f64;
    let counted = counting.between(&then, &now);
    println!("{counted:?}, {:?}", counting.refused());
    // The clocks of both CPUs, which count from one reading to the other.
    let each = counted["cpu-clock"] as f64 / 2.0;
    assert!(
        (0.99 * least..=1.01 * most).contains(&each),
        "{counted:?} in {least} to {most} ns"
    );
    assert!(counted["context-switches"] > 0, "{counted:?}");
    // Each event is counted, or there is a reason.
    let refused = counting.refused().unwrap_or_default();
    assert!(
        EVENTS
            .iter()
            .all(|event| counted.contains_key(event.name) != refused.contains(event.name)),
        "{refused}"
    );
    if let Some(cycles) = counted.get("cycles") {
        assert!(*cycles > 20_000 * 100, "{counted:?}");
    }
    assert!(
        Counting::begin(&[9999], &EVENTS)
            .refused()
            .unwrap()
            .contains("context-switches")
    );
}

/// Nanoseconds that a task ran, as the scheduler counts them: at its ticks, 4 ms apart, and at each switch.
fn ran(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/schedstat")).unwrap();
    stat.split(' ').next().unwrap().parse().unwrap()
}

/// The time of a program on a CPU.
fn time_of<'h>(held: &'h BTreeMap<u32, Vec<CpuHolder>>, cpu: u32, name: &str) -> &'h CpuHolder {
    let held = held.get(&cpu).into_iter().flatten();
    let found = held.clone().find(|holder| holder.name == name);
    found.unwrap_or_else(|| panic!("{:?}", held.collect::<Vec<_>>()))
}

/// Two ticks of a kernel with 100 of them a second.
const TICKS_NS: u64 = 20_000_000;

/// Nanoseconds of a CPU that are no task's, whichever has it: of interrupts and of other virtual machines.
fn taken(cpu: u32) -> u64 {
    let stat = fs::read_to_string("/proc/stat").unwrap();
    let name = format!("cpu{cpu}");
    let line = stat.lines().find(|l| l.split(' ').next() == Some(&name));
    let ticks = line.unwrap().split(' ').skip(6).take(3);
    ticks.map(|n| n.parse::<u64>().unwrap() * 10_000_000).sum()
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn programs_that_have_a_cpu_are_counted_as_the_scheduler_counts_them() {
    let cpu = *online_cpus().unwrap().last().unwrap();
    let switches = Switches::load(&[cpu]).unwrap();
    let mut program = Command::new("taskset");
    program.args([
        "-c",
        &cpu.to_string(),
        "dd",
        "if=/dev/zero",
        "of=/dev/null",
        "bs=64k",
    ]);
    let mut program = program.spawn().unwrap();
    let pid = program.id();
    let name = || fs::read_to_string(format!("/proc/{pid}/comm")).unwrap();
    while name() != "dd\n" {
        std::thread::yield_now();
    }
    // This process may be held up between any two looks.
    let (taken_before, before) = (taken(cpu), ran(pid));
    switches.begin().unwrap();
    let begun = ran(pid);
    let runs_on = |since: u64, ns: u64| {
        while ran(pid) - since < ns {
            std::thread::yield_now();
        }
        ran(pid)
    };
    let least = runs_on(begun, 200_000_000) - begun;
    let (_, held) = switches.held(&[]);
    let after = ran(pid);
    // The CPU's ticks count what was taken from the program.
    runs_on(after, TICKS_NS);
    let most = after - before + taken(cpu) - taken_before;
    program.kill().unwrap();
    program.wait().unwrap();
    let dd = time_of(&held, cpu, "dd");
    assert!(
        !dd.of_kernel && (least - TICKS_NS..most + TICKS_NS).contains(&dd.ns),
        "{dd:?}, {least} to {most}"
    );
    // This process is none of the others, whatever it does.
    let own = fs::read_to_string("/proc/self/comm").unwrap();
    let all = held.values().flatten();
    assert!(
        all.clone().all(|holder| holder.name != own.trim()),
        "{held:?}"
    );
}

/// The thread of the kernel that polls the DUT's card is the lab's; without knowing that, it is another's.
#[test]
#[ignore = "needs root: run by make test as root"]
fn threads_of_the_kernel_are_named_and_told_from_those_of_the_lab() {
    let cpu = *online_cpus().unwrap().last().unwrap();
    let spec = LabSpec {
        mode: Mode::Threaded,
        dut_cpus: vec![cpu],
        ..spec()
    };
    let lab = EmbeddedLab::build(spec, &[Setup::of(Dut::Forwarding)]).unwrap();
    let threads = threads(&lab.lanes[0]);
    let switches = Switches::load(&[cpu]).unwrap();
    switches.begin().unwrap();
    send(&lab, Frames::of(Family::V4));
    let ((_, held), (counted_ns, apart)) = (switches.held(&[]), switches.held(&threads));
    let napi = time_of(&held, cpu, "napi");
    let all: u64 = held[&cpu].iter().map(|holder| holder.ns).sum();
    assert!(napi.of_kernel && napi.ns > 0, "{napi:?}");
    assert!(all <= counted_ns, "{held:?}");
    let apart = apart.get(&cpu).into_iter().flatten();
    assert_eq!(apart.filter(|holder| holder.name == "napi").count(), 0);
}
