//! Two hosts and a path as a testbed: iperf3 sends TCP from one to the other, and the hosts are the device under test.
//!
//! Bytes are counted at five places: by iperf3's two ends, by the path as sent and as acknowledged, and by the kernels of both hosts.

use super::collectors::Scene;
use super::prepare::Prepared;
use super::{Request, Testbed, TrialOutcome};
use crate::interrupt::{INTERRUPTED as STOP, interrupted};
use crate::progress::mention;
use anyhow::{Context, Result};
use linerate_hosts::systems::Kernel;
use linerate_hosts::tools::{Invocation, Monitor, Report, Side, between_end_hosts};
use linerate_linux::host::cpu::online_cpus;
use linerate_linux::host::turn::Turn;
use linerate_linux::lab::Setup;
use linerate_linux::lab::end_hosts::{EndHosts as Lab, RECEIVER, SENDER, congestion_control, way};
use linerate_linux::lab::ledger::Account;
use linerate_linux::lab::path::{Flow, Link};
use linerate_linux::net::Netns;
use linerate_linux::ports::monotonic_ns;
use linerate_linux::process::Job;
use linerate_linux::trial::Outcome;
use linerate_measure::audit::{Cause, Loss, SecondCount, Side as Of};
use linerate_measure::collector::Counters;
use linerate_measure::counters::PortCounters;
use linerate_measure::record::{LabKind, PathCounts, PathOf, TcpTrial};
use linerate_measure::trial::{Moment, Sample, Timing, rates};
use linerate_plan::Backend;
use linerate_remote::{ExecutionTarget, Observed};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The port of iperf3's server.
const PORT: u16 = 5201;
/// The path carries its rate at most: a receiver that read more than this share of it read data of the time before the window as well.
const MOST_OF_PATH: f64 = 1.05;
/// Handshakes without load before each trial.
const HANDSHAKES: usize = 3;
/// How long the server may take to listen, and a handshake beyond its round trip.
const START_WITHIN: Duration = Duration::from_secs(5);

/// Hosts and a path for each trial.
pub struct EndHosts {
    prepared: Prepared,
    /// The setups of lanes, by their numbers in the plan.
    setups: BTreeMap<usize, Setup>,
    /// Whether the path is netem's.
    by_kernel: bool,
}

impl EndHosts {
    /// The testbed of a plan.
    ///
    /// # Errors
    /// A setup that has faults although it had none before.
    pub fn new(prepared: &mut Prepared) -> Result<EndHosts> {
        let mut setups = BTreeMap::new();
        for cell in prepared.measured().collect::<Vec<_>>() {
            let (lanes, of_group) = prepared.setups(prepared.group(cell))?;
            setups.extend(lanes.into_iter().zip(of_group));
        }
        let paths = || {
            setups
                .values()
                .filter_map(|setup| setup.settings.path.as_ref())
        };
        let asked = paths().map(|path| path.by).next().unwrap_or_default();
        if paths().any(|path| path.by != asked) {
            bail_usage!(
                "the variants' paths are by different means, so their rates cannot be compared: give all the same `by`"
            );
        }
        let (by_kernel, words) = way(asked);
        prepared
            .slots
            .iter_mut()
            .filter_map(|slot| slot.path.as_mut())
            .for_each(|path| path.by.clone_from(&words));
        prepared
            .notes
            .push(format!("the path between the end hosts is by {words}"));
        Ok(EndHosts {
            prepared: prepared.clone(),
            setups,
            by_kernel,
        })
    }
}

/// The link between the end hosts of a setup.
pub(super) fn link_of(setup: &Setup) -> Link {
    let path = setup.settings.path.as_ref();
    Link::half(
        path.map_or(0, |path| path.rtt_ns),
        path.map(|path| path.rate as f64),
    )
}

impl Testbed for EndHosts {
    fn run(&mut self, request: &Request) -> Result<TrialOutcome> {
        let Request {
            slot: cell, timing, ..
        } = *request;
        let setup = &self.setups[&self.prepared.lane(cell)];
        let link = link_of(setup);
        let flows = self.prepared.plan.kinds[self.prepared.plan.cells[cell].kind].flows;
        let mut lab = Lab::new(setup, link, self.by_kernel).context("making the end hosts")?;
        let scene = scene(&lab, &setup.name, request.configuration.then_some(cell));
        let mut collectors = scene.before(scene.ask(), &self.prepared.plan.collect);
        // Nothing binds iperf3 to a CPU.
        let cpus = online_cpus().context("asking which CPUs this process may use")?;
        let turn = Turn::on(&cpus, interrupted, mention);
        let before = lab.counters()?;
        let idle_ns = lab.handshakes(HANDSHAKES, START_WITHIN)?;
        collectors.during(Moment::Began);
        let began_ns = monotonic_ns();
        let ends = iperf3(&lab, &timing, flows, congestion_control(setup))?;
        collectors.during(Moment::Ended);
        let drain = Instant::now() + Duration::from_nanos(timing.drain_ns + 2 * link.delay_ns);
        // The last frame of a host that had no CPU may come while the counters are read.
        let (after, counts) = loop {
            let over = Instant::now() >= drain || interrupted();
            let counts = lab.path()?;
            let after = lab.counters()?;
            let passed = lab.is_empty() && lab.path()? == counts;
            if over || passed && counts.iter().all(PathCounts::is_whole) {
                break (after, counts);
            }
            thread::sleep(Duration::from_millis(5));
        };
        let waited_ns = turn.waited_ns;
        drop(turn);
        let seen = lab.largest(PORT, flows as usize);
        let of = self.prepared.slots[cell]
            .path
            .clone()
            .context("the slot has no path")?;
        let mut faults: Vec<String> = lab.failure().into_iter().chain(ends.faults).collect();
        let tcp = tcp(&ends.reports, idle_ns, seen, counts);
        if faults.is_empty() {
            faults.extend(tcp.faults(&of, flows.into()));
        }
        let (warm_up, samples) = samples(&ends.reports, &timing, &of);
        check(&samples, &of, &mut faults);
        let account = account(&counts, &before, &after);
        let [there, _] = counts;
        let port = |frames, bytes| PortCounters {
            frames,
            bytes,
            ..PortCounters::default()
        };
        let ports = [
            port(there.frames_in, there.bytes_in),
            port(there.frames_out, there.bytes_out),
        ];
        let outcome = Outcome {
            warm_up,
            samples,
            began_ns,
            faults,
            ..Outcome::default()
        };
        let ports = ports.map(|port| vec![port]);
        let mut outcome = TrialOutcome::new(outcome, ports, vec![account], collectors.after());
        outcome.record.tcp = Some(tcp);
        outcome.record.waited_ns = waited_ns;
        Ok(outcome)
    }

    fn dut(&self, slot: usize) -> Option<usize> {
        Some(self.prepared.lane(slot))
    }

    fn names(&self) -> (LabKind, [String; 2], u32) {
        (
            LabKind::Namespaces,
            [Backend::Iperf3, Backend::Iperf3].map(|backend| backend.to_string()),
            1,
        )
    }
}

/// The sender, whose settings and counters are observed.
fn scene(lab: &Lab, name: &str, configuration: Option<usize>) -> Scene<'static> {
    let netns = Some(lab.namespaces()[0].clone());
    let target = Arc::new(ExecutionTarget::Here {
        name: name.into(),
        netns,
    });
    Scene {
        host: Some(Observed {
            target,
            sudo: false,
        }),
        lane: None,
        switches: None,
        of_programs: true,
        kernel: Kernel::Linux,
        ends: ["path".into(), "path".into()],
        load: None,
        telemetry: None,
        configuration,
        addresses: Vec::new(),
    }
}

/// Both ends of iperf3.
struct Ends {
    /// Of the sender and of the receiver.
    reports: [Report; 2],
    faults: Vec<String>,
}

/// Runs iperf3 from one host to the other.
fn iperf3(lab: &Lab, timing: &Timing, flows: u32, control: Option<&str>) -> Result<Ends> {
    let seconds = timing.load_ns().div_ceil(1_000_000_000) as u32;
    let command =
        |side| between_end_hosts(side, [SENDER, RECEIVER], PORT, [flows, seconds], control);
    let [sender, receiver] = lab.namespaces();
    // The server ends after its test; where no test comes, it is ended.
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let server = scope.spawn(|| end(receiver, Side::Receiver, &command(Side::Receiver), &over));
        let listens = lab.wait_listening(PORT, START_WITHIN);
        let client = match &listens {
            Ok(true) => end(sender, Side::Generator, &command(Side::Generator), &STOP),
            _ => (
                Report::default(),
                vec!["iperf3's server did not listen".into()],
            ),
        };
        if !client.1.is_empty() || interrupted() {
            over.store(true, Ordering::Relaxed);
        }
        let (counted, more) = server
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        listens?;
        let (sent, mut faults) = client;
        // If the client failed, the server fails too, and its message is about the consequence.
        if faults.is_empty() {
            faults = more;
        }
        Ok(Ends {
            reports: [sent, counted],
            faults,
        })
    })
}

/// Runs one end of iperf3. Returns its report and its faults.
fn end(
    namespace: &Netns,
    side: Side,
    command: &Invocation,
    cancelled: &AtomicBool,
) -> (Report, Vec<String>) {
    let mut monitor = Monitor::new(Backend::Iperf3, side);
    let arguments: Vec<&str> = command.argv[1..].iter().map(String::as_str).collect();
    let job =
        Job::new(&command.argv[0], &arguments).within(Duration::from_secs(command.limit_s.into()));
    let ran = job.run_lines(
        |program| namespace.command(program),
        Some(cancelled),
        |line| {
            monitor.feed(line.as_bytes());
            monitor.feed(b"\n");
        },
    );
    let name = match side {
        Side::Generator => "iperf3's sender",
        Side::Receiver => "iperf3's receiver",
    };
    let mut faults: Vec<String> = monitor
        .report()
        .faults
        .iter()
        .map(|fault| format!("{name}: {}", fault.message))
        .collect();
    match ran {
        Err(error) if faults.is_empty() => faults.push(format!("{name}: {error}")),
        _ if faults.is_empty() && !monitor.report().totals.said => {
            faults.push(format!("{name}: it printed no totals"))
        }
        _ => {}
    }
    (monitor.report().clone(), faults)
}

fn tcp(
    reports: &[Report; 2],
    idle_ns: Vec<u64>,
    seen: Option<Flow>,
    path: [PathCounts; 2],
) -> TcpTrial {
    let [sent, counted] = reports.each_ref().map(|report| report.totals);
    TcpTrial {
        idle_ns,
        loaded_ns: sent
            .tcp
            .map(|tcp| tcp.rtt_us.map(|us| us.saturating_mul(1000))),
        most_cwnd: sent.tcp.map(|tcp| tcp.most_cwnd),
        retransmits: sent.tcp.map(|tcp| tcp.retransmits),
        written: sent.bytes.unwrap_or(0),
        sent: seen.map(|flow| flow.sent),
        again: seen.map(|flow| flow.again),
        acknowledged: seen.map(|flow| flow.acknowledged),
        read: counted.bytes.unwrap_or(0),
        path: path.into(),
    }
}

/// Bytes until a moment after the beginning of a test, by its intervals.
fn bytes_until(report: &Report, ns: u64) -> Option<f64> {
    let (mut sum, mut at) = (0.0, 0);
    for sample in &report.samples {
        let (end, bytes) = (
            sample.end_us * 1000,
            sample.bps? * sample.interval_us as f64 * 1e-6 / 8.0,
        );
        if end >= ns {
            let share = (ns - at) as f64 / (end - at).max(1) as f64;
            return Some(sum + bytes * share);
        }
        (sum, at) = (sum + bytes, end);
    }
    None
}

/// Samples of the warm-up and of the window, in full segments. Empty if a report does not cover it.
fn samples(reports: &[Report; 2], timing: &Timing, path: &PathOf) -> (Vec<Sample>, Vec<Sample>) {
    let at = |t_ns: u64| {
        let segments = |report| Some((bytes_until(report, t_ns)? / f64::from(path.payload)) as u64);
        Some(Sample {
            t_ns,
            sent: segments(&reports[0])?,
            received: segments(&reports[1])?,
        })
    };
    let over = |from_ns: u64, time_ns: u64| {
        let steps = (time_ns / timing.interval_ns).max(1);
        let samples = (0..=steps).map(|step| at(from_ns + time_ns * step / steps));
        samples.collect::<Option<Vec<_>>>().unwrap_or_default()
    };
    let mut warm_up = over(0, timing.warm_up_ns);
    warm_up.retain(|sample| sample.t_ns < timing.warm_up_ns);
    (warm_up, over(timing.warm_up_ns, timing.run_ns))
}

/// Adds faults of the window's samples: none of them, unless another fault explains it; more than the path carries.
fn check(samples: &[Sample], path: &PathOf, faults: &mut Vec<String>) {
    if samples.is_empty() && faults.is_empty() {
        faults.push(
            "iperf3 has no samples of the whole window: run it again, with a longer trial if it repeats"
                .into(),
        );
    }
    let rate = rates(samples).map_or(0.0, |rates| rates.received);
    if let Some(most) = path.achievable().filter(|most| rate > MOST_OF_PATH * most) {
        faults.push(format!(
            "iperf3's receiver read {:.1} Mbit/s of payload from a path that carries {:.1}: it read what a loss before the window had held back; run it again",
            path.goodput(rate) / 1e6,
            path.goodput(most) / 1e6
        ));
    }
}

/// Frames that the path lost, and its counts beside those of both kernels.
fn account(path: &[PathCounts; 2], before: &[Counters; 2], after: &[Counters; 2]) -> Account {
    let octets = |host: usize, name: &str| {
        let of = |all: &[Counters; 2]| all[host].get(name).copied().unwrap_or(0);
        of(after) - of(before)
    };
    let [there, back] = path;
    let second = |place: &str, frames, expected| SecondCount {
        place: place.into(),
        frames,
        expected,
    };
    let loss = |place: &str, frames, side, cause| Loss {
        place: place.into(),
        frames,
        side,
        cause,
    };
    let losses = vec![
        loss(
            "path: queue full",
            there.frames_dropped,
            Of::Dut,
            Cause::QueueFull,
        ),
        loss(
            "path: the receiving host's interface took no frame",
            there.frames_refused,
            Of::Tester,
            Cause::Dropped,
        ),
    ];
    Account {
        losses: losses.into_iter().filter(|loss| loss.frames > 0).collect(),
        second_counts: vec![
            second(
                "bytes of IP that the sending host's kernel sent",
                octets(0, "IpExt.OutOctets"),
                there.bytes_in,
            ),
            second(
                "bytes of IP that the receiving host's kernel received",
                octets(1, "IpExt.InOctets"),
                there.bytes_out,
            ),
            second(
                "bytes of IP that the receiving host's kernel answered",
                octets(1, "IpExt.OutOctets"),
                back.bytes_in,
            ),
            second(
                "bytes of IP that came back to the sending host",
                octets(0, "IpExt.InOctets"),
                back.bytes_out,
            ),
        ],
        ..Account::default()
    }
}
