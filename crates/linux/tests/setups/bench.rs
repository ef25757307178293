//! A lab with a tester, and trials of a known number of frames.

use linerate_linux::host::changes::Consent;
use linerate_linux::lab::events::Event;
use linerate_linux::lab::ledger::{self, Account};
use linerate_linux::lab::{EmbeddedLab, LabSpec, Setup};
use linerate_linux::ports::live::LiveFrames;
use linerate_linux::ports::xdp_receiver::XdpReceiver;
use linerate_linux::ports::{Arrival, Port, Target};
use linerate_linux::trial;
use linerate_measure::audit::Cause;
use linerate_measure::counters::PortCounters;
use linerate_measure::record::Mode;
use linerate_measure::trial::Timing;
use linerate_wire::{
    Family, Filter, Findings, FlowSpace, FrameMix, FrameSpec, Load, MacAddr, RateStep, Traffic,
    Transport, VlanTag,
};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// A lab of these tests: inline, one generator CPU.
pub fn spec() -> LabSpec {
    LabSpec {
        both_ways: false,
        mode: Mode::Inline,
        generator_cpus: vec![0],
        dut_cpus: Vec::new(),
        longest_fcs: 64,
        flows: 100,
        host_changes: Consent::Refused,
        interrupted: None,
    }
}

/// A variant that comes with linerate.
pub fn built_in(name: &str) -> Setup {
    Setup::from(&name.parse::<linerate_plan::BuiltIn>().unwrap())
}

/// A lab with one lane.
pub fn lab(setup: &Setup) -> EmbeddedLab {
    EmbeddedLab::build(spec(), std::slice::from_ref(setup))
        .unwrap_or_else(|e| panic!("{}: {e}", setup.name))
}

/// Why a lane cannot be built.
pub fn refusal(setup: &Setup) -> linerate_linux::Error {
    match EmbeddedLab::build(spec(), std::slice::from_ref(setup)) {
        Ok(_) => panic!("{} was built", setup.name),
        Err(e) => e,
    }
}

/// Frames of a trial.
#[derive(Clone, Copy)]
pub struct Frames {
    pub family: Family,
    pub count: u64,
    pub flows: u32,
    pub len_fcs: u16,
    /// Frames/s; as fast as possible if `None`.
    pub rate: Option<f64>,
    pub step: Option<RateStep>,
    pub findings: Option<Findings>,
    /// When the setup's event happens to the DUT.
    pub event_ns: Option<u64>,
}

impl Frames {
    pub fn of(family: Family) -> Frames {
        Frames {
            family,
            count: 1000,
            flows: 100,
            len_fcs: 64,
            rate: Some(20_000.0),
            step: None,
            findings: None,
            event_ns: None,
        }
    }
}

/// Result of a trial.
pub struct Shown {
    pub sent: PortCounters,
    pub received: PortCounters,
    pub account: Account,
    /// Beginning and end of the event.
    pub event_run: Option<[u64; 2]>,
}

impl Shown {
    /// Frames lost at a place that begins so.
    pub fn lost(&self, place: &str) -> u64 {
        self.account
            .losses
            .iter()
            .filter(|l| l.place.starts_with(place))
            .map(|l| l.frames)
            .sum()
    }

    /// Frames that were dropped, and found no ring full.
    pub fn dropped(&self) -> u64 {
        self.sent.frames - self.received.unique() - self.lost_at_rings()
    }

    /// Frames that found a ring full, while another program kept the CPU from emptying it.
    pub fn lost_at_rings(&self) -> u64 {
        self.account
            .losses
            .iter()
            .filter(|l| l.cause == Cause::QueueFull)
            .map(|l| l.frames)
            .sum()
    }

    /// Frames that entered the DUT.
    pub fn entered(&self) -> u64 {
        self.sent.frames - self.lost("DUT in: receive ring full")
    }

    /// Every frame arrived once, and every count agrees with its neighbour. Only a ring may have run over, while another program kept the
    /// CPU from emptying it, and then it has counted what it lost.
    #[track_caller]
    pub fn is_whole(&self, what: &str) {
        assert!(
            self.account.balances(&self.sent, &self.received),
            "{what}: {:?}",
            self.account
        );
        let losses = &self.account.losses;
        assert!(
            losses.iter().all(|loss| loss.cause == Cause::QueueFull),
            "{what}: {losses:?}"
        );
        assert!(
            self.received.unique() * 2 > self.sent.frames,
            "{what}: {losses:?}"
        );
        // The kernel may report over IPv6 that an interface came up.
        assert!(
            self.received.foreign_total() <= 1,
            "{what}: {:?}",
            self.received
        );
    }
}

/// Waits until a router has reported its multicast groups, which it does once its links are up: a report that comes while the receiver begins to
/// count would be counted by its interface alone.
fn wait_for_reports(lane: &linerate_linux::lab::Lane) {
    let Some(dut) = &lane.dut else { return };
    let name = lane.setup.settings.dut.to_string();
    if name != "forwarding" && !name.starts_with("known-") {
        return;
    }
    let began = Instant::now();
    let reports = || {
        let counters = linerate_linux::net::procnet::all(&dut.namespace).unwrap();
        counters.get("Icmp6.OutMLDv2Reports").copied().unwrap_or(0)
    };
    while reports() < 2 && began.elapsed() < Duration::from_secs(10) {
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Sends frames into lane 0.
pub fn send(lab: &EmbeddedLab, frames: Frames) -> Shown {
    let lane = &lab.lanes[0];
    wait_for_reports(lane);
    let spec = FrameSpec::new(
        MacAddr(lane.destination_mac()),
        MacAddr(lane.generator.mac),
        frames.family,
        Transport::Udp,
    );
    let vlan = (lane.setup.settings.dut == linerate_plan::settings::Dut::Vlan)
        .then_some(VlanTag { id: 2, priority: 0 });
    let flows = FlowSpace::benchmark(frames.family, frames.flows).unwrap();
    let mix = frames.len_fcs.to_string().parse::<FrameMix>().unwrap();
    let traffic = Traffic::new(FrameSpec { vlan, ..spec }, mix, flows);
    let traffic = Traffic {
        campaign: 7,
        stamp_every: 1,
        ..traffic
    };
    let target = Target {
        ifindex: lane.generator.index,
        source: spec.src_mac,
        destination: spec.dst_mac,
    };
    let at = Arrival {
        ifindex: lane.receiver.index,
        queues: lane.receiver_queues,
    };
    let filter = Filter {
        streams: lab.spec.generator_cpus.len() as u16,
        ..Filter::of_campaign(7)
    };
    let mut receiver = XdpReceiver::new(&lab.receiver.namespace, at, filter).unwrap();
    let mut generator = LiveFrames::new(
        &lab.generator.namespace,
        &[target],
        &traffic,
        &lab.spec.generator_cpus,
        None,
    )
    .unwrap();
    lane.dut.iter().for_each(|dut| dut.begin_load());
    // A load with a step is as long as it may last, or shorter: frames are tagged by that.
    let longest = if frames.step.is_some() { 5 } else { 60 } * 1_000_000_000;
    let timing = Timing {
        warm_up_ns: 0,
        interval_ns: longest,
        ..Timing::slice(longest)
    };
    let running = AtomicBool::new(false);
    let Frames {
        rate,
        count,
        step,
        findings,
        ..
    } = frames;
    // Paced frames wait for their batch.
    let batch = if rate.is_some() { 8 } else { 64 };
    let load = Load {
        rate,
        frames: Some(count),
        step,
        findings,
        batch,
        ..Load::lasting(timing.load())
    };
    let mut before = None;
    let mut run = |began: &dyn Fn(u64)| {
        before = Some(ledger::snapshot(lane).unwrap());
        trial::run(
            timing,
            load,
            &mut generator,
            &mut receiver,
            &running,
            |_, began_ns| began(began_ns),
        )
    };
    let (outcome, event_run) = match frames.event_ns {
        Some(after_ns) => {
            let event = Event::of(lane).unwrap();
            trial::under_load(after_ns, |over| event.carry_out(over).unwrap(), run)
        }
        None => (run(&|_| {}), None),
    };
    let (outcome, before) = (outcome.unwrap(), before.unwrap());
    let sent = generator.counters();
    assert_eq!(
        sent.frames, frames.count,
        "the generator did not send what was asked"
    );
    // The kernel's counters follow when its own work has been done.
    let began = Instant::now();
    loop {
        let received = receiver.counters();
        let after = ledger::snapshot(lane).unwrap();
        let ports = [std::slice::from_ref(&sent), std::slice::from_ref(&received)];
        let mut account = ledger::account(lane, [&before, &after], ports).remove(0);
        if lane
            .setup
            .settings
            .event
            .as_ref()
            .is_some_and(Event::downs_link)
        {
            account.link_down();
        }
        if account.balances(&sent, &received) || began.elapsed() > Duration::from_secs(10) {
            receiver.stop().unwrap();
            let mut received = received;
            received.since(outcome.began_ns);
            received.end_loss(&sent);
            return Shown {
                sent,
                received,
                account,
                event_run: event_run.map(|((), times)| times),
            };
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Output of a program where the DUT's commands run.
pub fn ask(lab: &EmbeddedLab, program: &str, args: &[&str]) -> String {
    let (dut, job) = (
        lab.lanes[0].dut.as_ref().unwrap(),
        linerate_linux::process::Job::new(program, args),
    );
    let run = match dut.entry() {
        Some(entry) => job.run(|path| entry.command(path), None),
        None => job.run(|path| dut.namespace.command(path), None),
    };
    run.unwrap()
}

/// A file of the DUT's sysfs.
pub fn sysfs(lab: &EmbeddedLab, path: &str) -> String {
    let dut = lab.lanes[0].dut.as_ref().unwrap();
    linerate_linux::net::sysfs::read(&dut.namespace, path).unwrap()
}
