//! The embedded lab as a testbed.

use super::collectors::Scene;
use super::connections::{Freshness, Shower, Timeouts, tracked};
use super::embedded_plan::{EmbeddedPlan, SlotLoad};
use super::tester::Tester;
use super::{Connections, States, Testbed, TrialOutcome};
use anyhow::{Context, Result, bail};
use linerate_linux::lab::ledger::{self, Account, Snapshot};
use linerate_linux::lab::{EmbeddedLab, LabSpec, Lane};
use linerate_linux::net::conntrack;
use linerate_linux::ports::Port;
use linerate_linux::trial;
use linerate_measure::counters::PortCounters;
use linerate_measure::trial::rates;
use linerate_plan::rules::own;
use linerate_plan::settings::Dut;
use linerate_plan::settings::Mode;
use linerate_plan::timing::Timing;
use linerate_stats::median;
use linerate_wire::{Load, STREAMS};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The embedded lab, ready for trials.
pub struct Embedded {
    plan: EmbeddedPlan,
    /// Before the lab: dropped in this order.
    tester: Tester,
    lab: EmbeddedLab,
    /// Frames handed over at once.
    batch: u32,
    /// Frames/s that each slot's DUT took while it learned.
    pace: Vec<Option<f64>>,
    /// By slot: since when its connections are established; none where they are not.
    fresh: Vec<Option<Freshness>>,
}

impl Embedded {
    /// Builds the lab and makes the tester's ports.
    ///
    /// # Errors
    /// No privilege, or something that this kernel does not have.
    pub fn build(plan: EmbeddedPlan) -> Result<Self> {
        let streams: usize = plan.kinds.iter().map(|k| k.cpus.len()).sum();
        if streams > STREAMS {
            bail!(
                "{} kinds of frames, each on its generator CPUs, are {streams} streams, and a receiver tells {STREAMS} apart: use fewer kinds or CPUs",
                plan.kinds.len()
            );
        }
        let spec = LabSpec {
            mode: plan.mode,
            generator_cpus: plan.roles.generator.clone(),
            dut_cpus: plan.roles.dut.clone(),
            longest_fcs: plan.kinds.iter().map(|k| k.traffic.mix.max_len_fcs()).max().unwrap_or(64),
            flows: plan.flows,
            host_changes: plan.host_changes,
            interrupted: Some(&crate::interrupt::INTERRUPTED),
        };
        let lab = EmbeddedLab::build(spec, &plan.setups).context("building the embedded lab")?;
        let tester = Tester::new(&lab, &plan)?;
        if plan.mode == Mode::Threaded && plan.roles.receiver != plan.roles.dut {
            lab.thread_receivers(&plan.roles.receiver).context("giving the receiver its CPU")?;
        }
        let pace = vec![None; plan.slots.len()];
        let fresh = plan.slots.iter().map(|_| None).collect();
        Ok(Embedded { plan, tester, lab, batch: 64, pace, fresh })
    }

    /// Sends flows through every DUT, so that no trial pays for what only the first frames cost (states, learned addresses, caches):
    /// RFC 2544's learning frames. Where the DUT keeps states, each flow is shown in both directions, or as the plan has it.
    ///
    /// # Errors
    /// The load could not be run.
    pub fn learn(&mut self, interrupted: &AtomicBool) -> Result<()> {
        for slot in 0..self.plan.slots.len() {
            let SlotLoad { lane, kind } = self.plan.slots[slot];
            let setup = &self.plan.setups[lane];
            if setup.dut == Dut::TesterBaseline {
                continue;
            }
            let all = self.plan.kinds[kind].traffic.flows.len();
            let every = setup.tracks && setup.states == States::OneWay;
            let flows = if every { all } else { all.min(ENOUGH_TO_LEARN) };
            let (generator, receiver) = self.tester.pair(kind, lane);
            // A DUT with CPUs of its own would lose what comes faster than it forwards, and learn nothing from it.
            let (rate, each_ns) = match self.plan.mode {
                Mode::Inline => (None, 5_000),
                Mode::Threaded | Mode::Hosts => (Some(50_000.0), 30_000),
            };
            let most_ns = 20_000_000 + flows * each_ns;
            let timing = Timing { warm_up_ns: 0, interval_ns: most_ns, ..Timing::slice(most_ns) };
            let began = Instant::now();
            let load = Load { rate, frames: Some(flows), ..Load::lasting(timing.load()) };
            trial::run(timing, load, generator, receiver, interrupted, |_| {})
                .context("sending the learning frames")?;
            let at_least = receiver.counters().unique() as f64 / began.elapsed().as_secs_f64();
            receiver.stop()?;
            if self.keeps_states(lane) && setup.states == States::Established {
                self.establish(slot, interrupted)?;
            }
            if rate.is_none() {
                // Setting a load up and ending it takes longer than a thousand frames do: only a large number shows a pace.
                let slow = at_least < SLOW;
                self.pace[slot] = if slow { self.probe(slot, interrupted)? } else { Some(at_least) };
            }
        }
        Ok(())
    }

    /// Whether a lane's DUT tracks connections, as the kernel says and not only the plan: rules of a user's own may do so as well.
    fn keeps_states(&self, lane: usize) -> bool {
        let dut = self.lab.lanes[lane].dut.as_ref();
        dut.is_some_and(|dut| conntrack::count(&dut.namespace).is_some_and(|count| count > 0))
    }

    /// Shows a slot's DUT all its flows in both directions. What cannot be answered stays one-way, and is recorded so.
    fn establish(&mut self, slot: usize, interrupted: &AtomicBool) -> Result<()> {
        let SlotLoad { lane: number, kind } = self.plan.slots[slot];
        self.fresh[slot] = None;
        let (lane, kind) = (&self.lab.lanes[number], &self.plan.kinds[kind]);
        let Some(dut) = &lane.dut else { return Ok(()) };
        if !self.tester.let_through(number, true) {
            return Ok(());
        }
        let (campaign, cpu) = (self.plan.campaign, self.plan.roles.control.first().copied());
        let shower = Shower { lab: &self.lab, lane, kind, campaign, cpu };
        let began = Instant::now();
        let unanswered = shower.establish(&dut.namespace, interrupted);
        self.tester.let_through(number, false);
        if unanswered.context("establishing the connections of the test traffic")? == 0 {
            let timeouts =
                Timeouts::of(&dut.namespace, kind.traffic.frame.family, kind.traffic.frame.transport);
            self.fresh[slot] = Some(Freshness::new(began, kind.traffic.flows.len(), timeouts));
        }
        Ok(())
    }

    /// Sees to it before a trial that the DUT's connections are as the plan has them.
    fn prepare(&mut self, slot: usize, timing: Timing, interrupted: &AtomicBool) -> Result<()> {
        let number = self.plan.slots[slot].lane;
        let Some(dut) = &self.lab.lanes[number].dut else { return Ok(()) };
        match self.plan.setups[number].states {
            States::New => conntrack::flush(&dut.namespace).context("forgetting the DUT's connections")?,
            States::OneWay => {}
            States::Established => {
                let length = Duration::from_nanos(timing.load_ns()) + SETTLE_WITHIN;
                let stale = |fresh: &Freshness| fresh.expires_within(Instant::now(), length);
                if self.fresh[slot].as_ref().is_some_and(stale) {
                    // None that is about to expire may be taken for one that was renewed.
                    conntrack::flush(&dut.namespace).context("forgetting the DUT's connections")?;
                    for other in 0..self.plan.slots.len() {
                        if self.plan.slots[other].lane == number && self.fresh[other].is_some() {
                            self.establish(other, interrupted)?;
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// The DUT's connections after a trial of so many frames that began then.
    fn connections(&mut self, slot: usize, began: Instant, frames: u64) -> Result<Option<Connections>> {
        let number = self.plan.slots[slot].lane;
        let states = match (self.plan.setups[number].states, &mut self.fresh[slot]) {
            (States::Established, Some(fresh)) => {
                fresh.add(began, frames);
                States::Established
            }
            (States::Established, None) => States::OneWay,
            (other, _) => other,
        };
        let Some(dut) = &self.lab.lanes[number].dut else { return Ok(None) };
        let found = tracked(&dut.namespace, states)?;
        if found.is_some_and(|c| c.unanswered > Some(0))
            && let Some(fresh) = &mut self.fresh[slot]
        {
            // Some expired after all: all are shown again before the next trial.
            fresh.forget();
        }
        Ok(found)
    }

    /// Frames/s that a slot's DUT takes, roughly.
    fn probe(&mut self, slot: usize, interrupted: &AtomicBool) -> Result<Option<f64>> {
        let timing = Timing { warm_up_ns: 5_000_000, interval_ns: 20_000_000, ..Timing::slice(20_000_000) };
        let SlotLoad { lane, kind } = self.plan.slots[slot];
        let (generator, receiver) = self.tester.pair(kind, lane);
        let load = Load { batch: 16, ..Load::lasting(timing.load()) };
        let outcome = trial::run(timing, load, generator, receiver, interrupted, |_| {})?;
        receiver.stop()?;
        // Inline, what is offered is what the DUT takes, also where it drops it.
        Ok(rates(&outcome.samples).map(|r| r.offered))
    }

    /// Chooses how many frames the generators hand over at once, by trying on the slot given: the smallest number that comes
    /// within 2 % of the best. Returns it with what was measured.
    ///
    /// # Errors
    /// The load could not be run.
    pub fn choose_batch(&mut self, slot: usize, interrupted: &AtomicBool) -> Result<(u32, String)> {
        // A veth's ring has 256 entries (VETH_RING_SIZE in drivers/net/veth.c): a batch of half of it still fits where the
        // other end is late.
        const CANDIDATES: [u32; 4] = [16, 32, 64, 128];
        const ROUNDS: usize = 3;
        let timing = Timing { warm_up_ns: 5_000_000, interval_ns: 25_000_000, ..Timing::slice(25_000_000) };
        let SlotLoad { lane, kind } = self.plan.slots[slot];
        let mut found = vec![Vec::new(); CANDIDATES.len()];
        for round in 0..ROUNDS {
            for i in 0..CANDIDATES.len() {
                if interrupted.load(Ordering::Relaxed) {
                    bail!("interrupted while the batch size was being chosen");
                }
                let i = (i + round) % CANDIDATES.len();
                let (generator, receiver) = self.tester.pair(kind, lane);
                let load = Load { batch: CANDIDATES[i], ..Load::lasting(timing.load()) };
                let outcome = trial::run(timing, load, generator, receiver, interrupted, |_| {})?;
                receiver.stop()?;
                found[i].extend(rates(&outcome.samples).map(|r| r.received));
            }
        }
        let medians: Vec<f64> = found.iter().map(|f| median(f).unwrap_or(0.0)).collect();
        let best = medians.iter().copied().fold(0.0, f64::max);
        let chosen = medians.iter().position(|m| *m >= 0.98 * best).unwrap_or(0);
        self.batch = CANDIDATES[chosen];
        let measured: Vec<String> =
            CANDIDATES.iter().zip(&medians).map(|(c, m)| format!("{c}: {:.3} Mpps", m / 1e6)).collect();
        Ok((CANDIDATES[chosen], measured.join(", ")))
    }

    /// Sets how many frames are handed over at once, where nothing calls for fewer.
    pub fn set_batch(&mut self, batch: u32) {
        self.batch = batch;
    }

    /// A batch is counted when it is through: of a DUT that takes a tenth of a millisecond for a frame, a large one would be a
    /// good part of a trial. And paced frames wait for their batch: a small one keeps latencies honest.
    fn batch_of(&self, slot: usize, load: Option<f64>) -> u32 {
        let most = match (load, self.pace[slot]) {
            (Some(_), _) => PACED_BATCH,
            (None, Some(pace)) if pace < 2_000.0 => 1,
            (None, Some(pace)) if pace < 8_000.0 => 4,
            (None, Some(pace)) if pace < SLOW => 16,
            _ => u32::MAX,
        };
        self.batch.min(most)
    }

    /// The lab itself, to be kept up.
    pub fn lab(&self) -> &EmbeddedLab {
        &self.lab
    }
}

impl Testbed for Embedded {
    fn run(
        &mut self,
        slot: usize,
        load: Option<f64>,
        timing: Timing,
        interrupted: &AtomicBool,
    ) -> Result<TrialOutcome> {
        self.prepare(slot, timing, interrupted)?;
        let SlotLoad { lane: lane_number, kind } = self.plan.slots[slot];
        let batch = self.batch_of(slot, load);
        let lane = &self.lab.lanes[lane_number];
        let (generator, receiver) = self.tester.pair(kind, lane_number);
        let load = Load { rate: load, batch, ..Load::lasting(timing.load()) };
        let mut collectors = Scene::of_lane(lane).before(&self.plan.collect);
        let counted = lane.rule_counts();
        let before = self.lab.snapshot(lane)?;
        let began = Instant::now();
        let during = |moment| collectors.during(moment);
        let outcome = trial::run(timing, load, generator, receiver, interrupted, during)?;
        let sent = generator.counters();
        let (received, account) = settle(&self.lab, lane, &before, &sent, receiver)?;
        let rules = counted.zip(lane.rule_counts()).map_or(Vec::new(), |(b, a)| own::grown(&b, &a));
        let collection = collectors.after();
        let connections = self.connections(slot, began, sent.frames)?;
        Ok(TrialOutcome {
            outcome,
            generator: sent,
            receiver: received,
            account,
            collection,
            connections,
            rules,
            ..TrialOutcome::default()
        })
    }
}

/// Frames/s below which a batch takes long enough to matter.
const SLOW: f64 = 32_000.0;

/// Frames handed over at once where a rate was asked for.
pub const PACED_BATCH: u32 = 8;

/// Flows that a DUT without states is shown before the first trial: neighbours, caches and branch predictors.
const ENOUGH_TO_LEARN: u64 = 10_000;

/// How long frames may be under way after the load has ended, before they count as lost without trace.
const SETTLE_WITHIN: Duration = Duration::from_millis(500);

/// Reads the final counters. Where they do not balance, frames may still be in a ring whose thread has not been scheduled:
/// looks again, for a while.
fn settle(
    lab: &EmbeddedLab,
    lane: &Lane,
    before: &Snapshot,
    sent: &PortCounters,
    receiver: &mut dyn Port,
) -> Result<(PortCounters, Account)> {
    let began = Instant::now();
    loop {
        let after = lab.snapshot(lane)?;
        let received = receiver.counters();
        let account = ledger::account(lane, before, &after, sent, &received);
        if account.balances(sent, &received) || began.elapsed() > SETTLE_WITHIN {
            receiver.stop()?;
            return Ok((received, account));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}
