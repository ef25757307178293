//! The contests: who meets whom, and what the bars are.

use crate::Failure;
use crate::bars::{Report, Wanted};
use crate::blocks::{CONFIDENCE, Series, alternate, ratio};
use crate::memory;
use crate::options::Options;
use crate::session::go_first;
use crate::stand::{GENERATOR_CPU, Kind, Testbed};
use crate::tools::{Tool, Toolbox};
use linerate_linux::host::autogroup::Ahead;
use linerate_linux::lab::Setup;
use linerate_linux::ports::pin_to_cpu;
use linerate_plan::settings::Dut;
use linerate_stats::{Estimate, median_interval};
use linerate_wire::SplitMix64;
use std::fmt::{self, Display};
use std::time::Duration;

/// Frames handed over at once.
const BATCHES: [u32; 2] = [64, 256];
/// Lanes of the testbed with one queue. testpmd has its own: it leaves a program on the interface.
const CARD: usize = 0;
const CARD_OF_TESTPMD: usize = 1;
const FORWARDING: usize = 2;
/// Rates to be met, in frames/s.
const PACES: [f64; 3] = [1_000.0, 127_251.0, 1_000_000.0];
const PACING_TIME: Duration = Duration::from_secs(2);

/// Somebody who sends on the testbed.
#[derive(Debug, Clone, Copy)]
enum Contestant {
    Ours { generator: usize, batch: u32 },
    Limit { generator: usize, batch: u32 },
    Threads { generator: usize, count: usize },
    Theirs(Tool),
}

impl Display for Contestant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Contestant::Ours { batch, .. } => write!(f, "linerate, batch {batch}"),
            Contestant::Limit { batch, .. } => write!(f, "limit, batch {batch}"),
            Contestant::Threads { count: 1, .. } => f.write_str("linerate, 1 thread"),
            Contestant::Threads { count, .. } => write!(f, "linerate, {count} threads"),
            Contestant::Theirs(tool) => write!(f, "{tool}"),
        }
    }
}

/// Parts that all contests with one queue share.
struct Arena<'a> {
    options: &'a Options,
    random: SplitMix64,
    stand: Testbed,
    tools: Toolbox,
    full: usize,
    limit: usize,
}

/// Runs the contests that were asked for.
///
/// # Errors
/// The lab cannot be built. A contestant that fails is a row of the report instead.
pub fn run(options: &Options, report: &mut Report) -> Result<(), Failure> {
    // The benchmark sleeps on another CPU than the generators, where there is one.
    let _ = pin_to_cpu(GENERATOR_CPU + 1);
    go_first();
    let _ahead = Ahead::this();
    let alone = ["card", "limit", "forwarding", "receiver", "pacing"];
    if alone.iter().any(|c| options.wants(c)) {
        one_queue(options, report)?;
    }
    if options.wants("threads") {
        threads(options, report)?;
    }
    if options.wants("memory") {
        memory(report);
    }
    Ok(())
}

fn one_queue(options: &Options, report: &mut Report) -> Result<(), Failure> {
    let cpus = [GENERATOR_CPU];
    let variants = [
        Setup::of(Dut::TesterBaseline),
        Setup::of(Dut::TesterBaseline),
        Setup::of(Dut::Forwarding),
    ];
    let mut stand = Testbed::build(&cpus, &variants)?;
    stand.receive_on_all()?;
    let full = stand.add(Kind::Full, &cpus, crate::stand::FLOWS)?;
    let limit = stand.add(Kind::Limit, &cpus, crate::stand::FLOWS)?;
    let random = SplitMix64::new(options.seed);
    let mut arena = Arena {
        options,
        random,
        stand,
        tools: Toolbox::new()?,
        full,
        limit,
    };
    if options.wants("card") {
        arena.peers(
            "tester baseline",
            CARD,
            &Tool::ALL,
            tester_baseline_bar,
            report,
        );
    }
    if options.wants("limit") {
        arena.against_the_limit(report);
    }
    if options.wants("forwarding") {
        arena.peers(
            "forwarding",
            FORWARDING,
            &[Tool::Trafgen],
            |_| Wanted::AtLeast(2.5),
            report,
        );
    }
    if options.wants("pacing") {
        arena.pacing(report);
    }
    if options.wants("receiver") {
        receiver_cost(options, report)?;
    }
    Ok(())
}

impl Arena<'_> {
    fn ours(&self) -> Vec<Contestant> {
        BATCHES
            .map(|batch| Contestant::Ours {
                generator: self.full,
                batch,
            })
            .to_vec()
    }

    /// Tools that are installed and send something; the others are reported.
    fn able(&mut self, lane: usize, tools: &[Tool], report: &mut Report) -> Vec<Tool> {
        let mut able = Vec::new();
        for tool in tools {
            eprint!("\rtrying {tool} ...          ");
            let tried = match tool.find() {
                Some(_) => self.theirs(*tool, lane, Duration::from_millis(50)),
                None => Err(format!("{} is not installed", tool.program()).into()),
            };
            match tried {
                Ok(_) => able.push(*tool),
                Err(reason) => report.not_run(tool.to_string(), reason.to_string()),
            }
        }
        eprintln!();
        able
    }

    fn theirs(&mut self, tool: Tool, lane: usize, window: Duration) -> Result<f64, Failure> {
        let lane = if tool == Tool::Testpmd && lane == CARD {
            CARD_OF_TESTPMD
        } else {
            lane
        };
        self.tools.slice(tool, &mut self.stand, lane, window)
    }

    /// Our generator, with each batch, against others on the same lane.
    fn peers(
        &mut self,
        contest: &str,
        lane: usize,
        tools: &[Tool],
        wanted: impl Fn(Tool) -> Wanted,
        report: &mut Report,
    ) {
        let able = self.able(lane, tools, report);
        let mut all = self.ours();
        let ours = all.len();
        all.extend(able.iter().map(|tool| Contestant::Theirs(*tool)));
        let (blocks, window) = (self.options.long_blocks(), self.options.long_window());
        let series = self.alternate(contest, &[all], lane, blocks, window);
        for tool in tools {
            let number = able.iter().position(|t| t == tool);
            for mine in &series[..ours] {
                let measured = match number {
                    Some(n) => compared(mine, &series[ours + n]),
                    None => Err("peer not here".into()),
                };
                report.bar(
                    format!("{contest}: {} / {tool}", mine.name),
                    wanted(*tool),
                    "",
                    measured,
                );
            }
        }
        report.series(series);
    }

    /// Pairs of neighbours in time: the whole program and the bare redirect.
    fn against_the_limit(&mut self, report: &mut Report) {
        let (generator, limit) = (self.full, self.limit);
        let pairs = BATCHES.map(|batch| {
            vec![
                Contestant::Ours { generator, batch },
                Contestant::Limit {
                    generator: limit,
                    batch,
                },
            ]
        });
        let (blocks, window) = (self.options.short_blocks(), self.options.short_window());
        let series = self.alternate("limit", &pairs, CARD, blocks, window);
        for (pair, batch) in series.chunks(2).zip(BATCHES) {
            let name = format!("tester baseline: linerate / the machine's limit, batch {batch}");
            report.bar(
                name,
                Wanted::AtLeast(0.85),
                "",
                compared(&pair[0], &pair[1]),
            );
        }
        report.series(series);
    }

    fn alternate(
        &mut self,
        contest: &str,
        groups: &[Vec<Contestant>],
        lane: usize,
        blocks: usize,
        window: Duration,
    ) -> Vec<Series> {
        let mut random = SplitMix64::new(self.random.next_u64());
        alternate(
            contest,
            groups,
            blocks,
            &mut random,
            |contestant| match *contestant {
                Contestant::Ours { generator, batch } | Contestant::Limit { generator, batch } => {
                    Ok(self.stand.slice(generator, lane, batch, window)?.received)
                }
                Contestant::Threads { generator, .. } => {
                    Ok(self.stand.slice(generator, lane, 64, window)?.received)
                }
                Contestant::Theirs(tool) => self.theirs(tool, lane, window),
            },
        )
    }

    /// How far from what was asked, by the generator's counter and by the receiver's.
    fn pacing(&mut self, report: &mut Report) {
        for rate in PACES {
            let (mut sent, mut received, mut failure) = (Vec::new(), Vec::new(), None);
            for run in 1..=self.options.pacing_runs() {
                eprint!("\rpacing: {rate} frames/s, run {run}      ");
                match self.stand.paced(self.full, CARD, rate, PACING_TIME) {
                    Ok(reached) => {
                        sent.push(pacing_error(reached.sent, rate));
                        received.push(pacing_error(reached.received, rate));
                    }
                    Err(error) => {
                        eprintln!("\n  pacing at {rate} frames/s: {error}");
                        failure = Some(error.to_string());
                    }
                }
            }
            for (what, errors) in [("sent", sent), ("received", received)] {
                let failed = || failure.clone().unwrap_or_else(|| "no run".into());
                let measured = median_interval(&errors, CONFIDENCE).ok_or_else(failed);
                let name = format!("pacing error, {rate} frames/s, {what}");
                report.bar(name, Wanted::AtMost(0.05), " %", measured);
            }
        }
        eprintln!();
    }
}

/// |offered / asked - 1|, in percent.
fn pacing_error(offered: f64, asked: f64) -> f64 {
    (offered / asked - 1.0).abs() * 100.0
}

fn compared(mine: &Series, other: &Series) -> Result<Estimate, String> {
    ratio(mine, other).ok_or_else(|| {
        let reason = mine.failure.as_ref().or(other.failure.as_ref());
        reason
            .cloned()
            .unwrap_or_else(|| "no block with both".into())
    })
}

/// Forwarding with our accounting at its end, against a receiver that only drops; each attached for its slice.
fn receiver_cost(options: &Options, report: &mut Report) -> Result<(), Failure> {
    let cpus = [GENERATOR_CPU];
    let mut stand = Testbed::build(&cpus, &[Setup::of(Dut::Forwarding)])?;
    let generator = stand.add(Kind::Full, &cpus, crate::stand::FLOWS)?;
    let mut random = SplitMix64::new(options.seed ^ 1);
    let contestants = [vec!["full accounting", "bare drop"]];
    let (blocks, window) = (options.short_blocks(), options.short_window());
    let series = alternate("receiver", &contestants, blocks, &mut random, |who| {
        stand.slice_with(*who == "full accounting", generator, 0, window)
    });
    let name = "forwarding: receiver with all accounting / bare drop".to_string();
    report.bar(
        name,
        Wanted::AtLeast(0.95),
        "",
        compared(&series[0], &series[1]),
    );
    report.series(series);
    Ok(())
}

/// Two threads on two queues against one, on the same links.
fn threads(options: &Options, report: &mut Report) -> Result<(), Failure> {
    let name = "tester baseline: 2 threads / 1 thread".to_string();
    let cpus = [GENERATOR_CPU, GENERATOR_CPU + 1];
    if pin_to_cpu(GENERATOR_CPU + 1).is_err() {
        report.bar(name, Wanted::AtLeast(1.6), "", Err("needs two CPUs".into()));
        return Ok(());
    }
    let mut stand = Testbed::build(&cpus, &[Setup::of(Dut::TesterBaseline)])?;
    stand.receive_on_all()?;
    let two = stand.add(Kind::Full, &cpus, crate::stand::FLOWS)?;
    let one = stand.add(Kind::Full, &cpus[..1], crate::stand::FLOWS)?;
    let contestants = [vec![
        Contestant::Threads {
            generator: two,
            count: 2,
        },
        Contestant::Threads {
            generator: one,
            count: 1,
        },
    ]];
    let mut random = SplitMix64::new(options.seed ^ 2);
    let (blocks, window) = (options.short_blocks(), options.short_window());
    let series = alternate("threads", &contestants, blocks, &mut random, |contestant| {
        let Contestant::Threads { generator, .. } = *contestant else {
            return Err("not a thread count".into());
        };
        Ok(stand.slice(generator, 0, 64, window)?.received)
    });
    report.bar(
        name,
        Wanted::AtLeast(1.6),
        "",
        compared(&series[0], &series[1]),
    );
    report.series(series);
    Ok(())
}

fn memory(report: &mut Report) {
    eprintln!("memory: a process with {} flows", memory::FLOWS);
    let (peak, time) = match memory::measure() {
        Ok(found) => (
            Ok(single(found.peak_bytes as f64 / 1e6)),
            Ok(single(found.set_up_s)),
        ),
        Err(error) => (Err(error.to_string()), Err(error.to_string())),
    };
    let flows = "5,000,000 flows";
    report.bar(
        format!("peak memory with {flows}"),
        Wanted::Below(200.0),
        " MB",
        peak,
    );
    report.bar(
        format!("set-up time with {flows}"),
        Wanted::Nothing,
        " s",
        time,
    );
}

/// A value that was measured once.
fn single(value: f64) -> Estimate {
    Estimate {
        median: value,
        low: None,
        high: None,
        n: 1,
    }
}

/// How many times faster than each peer the generator is meant to be.
fn tester_baseline_bar(tool: Tool) -> Wanted {
    match tool {
        Tool::Trafgen | Tool::Tcpreplay => Wanted::AtLeast(8.0),
        Tool::Testpmd => Wanted::AtLeast(7.0),
        Tool::XdpTrafficgen => Wanted::AtLeast(1.1),
        Tool::Iperf3 => Wanted::AtLeast(25.0),
        Tool::Hping3 => Wanted::Above(1.0),
    }
}
