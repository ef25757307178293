//! The records of a campaign, and of one of its slots, as rules read them.

use linerate_hosts::configuration::{Card, Configuration};
use linerate_measure::audit::{Cause, Loss, Side};
use linerate_measure::experiment::{Benchmark, System};
use linerate_measure::record::{
    Campaign, CpuShare, HostFacts, LabKind, Mode, Row, RulesPassed, Searched, Slot, SlotFacts,
    SlotProfile, Summary, TrialRecord,
};
use linerate_measure::summary::{FORWARDS, Sending, losses_by_place, of_others};
use linerate_plan::settings::Dut;
use linerate_plan::tunnel::Tunnel;
use linerate_profile::Profile;
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// Why CPUs tell nothing.
pub(crate) const UNKNOWN_CPUS: &str = "how busy the DUT's CPUs were is not known";

/// A share of the frames that is worth a finding.
const NOTICEABLE: f64 = 0.001;

/// The share of time from which on a CPU is full.
pub(crate) const FULL: f64 = 0.95;

/// The share of a CPU's time that threads wait for it because they wake up, at most: some microseconds each time.
const WAKING: f64 = 0.01;

/// How the names of eBPF programs begin.
pub(crate) const PROGRAM: &str = "bpf_prog_";

/// The records of a campaign.
#[derive(Debug, Clone, Copy)]
pub struct Records<'a> {
    /// The request and the set-up.
    pub campaign: &'a Campaign,
    /// The machine that linerate runs on; with the embedded lab it is the DUT.
    pub host: &'a HostFacts,
    /// The verdict.
    pub summary: &'a Summary,
    /// All trials.
    pub trials: &'a [TrialRecord],
    /// How the DUTs were configured.
    pub facts: &'a [SlotFacts],
    /// The stacks of slots that were profiled.
    pub stacks: &'a BTreeMap<usize, Profile>,
}

impl<'a> Records<'a> {
    /// The slots that can be explained: those with a DUT, and a valid trial.
    pub(crate) fn cases(&self) -> Vec<Case<'a>> {
        let slots = self
            .campaign
            .slots
            .iter()
            .filter(|slot| !slot.is_calibration() && !slot.known_answer);
        slots.filter_map(|slot| self.case(slot)).collect()
    }

    /// The records of a slot; `None` without a valid trial that counts for its rate or shows that it is unstable.
    pub fn case(&self, slot: &'a Slot) -> Option<Case<'a>> {
        let searched = self.summary.searches.iter().find(|of| of.slot == slot.id);
        let is_unstable = searched.and_then(Searched::unstable).is_some();
        let rows = &mut self.summary.rows.iter();
        let row = rows.find(|row| row.slot == slot.id && (is_unstable || row.valid_trials > 0))?;
        let of_slot = |trial: &&TrialRecord| trial.slot == slot.id && trial.audit.valid;
        let trials: Vec<&TrialRecord> = self.trials.iter().filter(of_slot).collect();
        let (trials, clean) = match searched {
            Some(searched) => at_the_bound(searched, &trials),
            None => (trials, Vec::new()),
        };
        let facts = self.facts.iter().find(|facts| facts.slot == slot.id);
        let configuration = facts
            .and_then(Configuration::recorded)
            .ok_or_else(|| "the DUT was not asked how it is configured".to_string());
        Some(Case {
            records: *self,
            slot,
            row,
            losses: losses_by_place(&trials),
            trials,
            clean,
            configuration,
        })
    }
}

/// Relative distance between loads that a search tells apart in no other way than by loss.
const NEAR: f64 = 0.2;

/// The trials that show why a search found no higher load: those that lost frames just above its result, or far below the rate of an
/// unstable DUT. Beside them, the trials without loss at like loads. All trials, where no frame was lost there.
fn at_the_bound<'a>(
    searched: &Searched,
    trials: &[&'a TrialRecord],
) -> (Vec<&'a TrialRecord>, Vec<&'a TrialRecord>) {
    if searched.unstable().is_some() {
        let loads = searched.stability.iter().flat_map(|of| &of.loads);
        let loads: Vec<f64> = loads.map(|low| low.load).collect();
        let low = |trial: &&&TrialRecord| {
            let before = trial.benchmark == Some(Benchmark::Stability);
            before && trial.asked_fps.is_some_and(|load| loads.contains(&load))
        };
        let low = trials.iter().copied().filter(|trial| low(&trial));
        return low.partition(|trial| trial.loss_ratio > 0.0);
    }
    let uppers = searched.goals.iter().filter_map(|goal| goal.outcome.upper);
    let Some(bound) = uppers.reduce(f64::min) else {
        return (trials.to_vec(), Vec::new());
    };
    let is_near = |trial: &&&TrialRecord| {
        let load = trial.asked_fps.unwrap_or(0.0);
        (load / bound - 1.0).abs() <= NEAR && trial.generator.frames as f64 >= LONG * load
    };
    let near = trials.iter().copied().filter(|trial| is_near(&trial));
    let (lossy, clean): (Vec<_>, Vec<_>) = near.partition(|trial| trial.loss_ratio > 0.0);
    match lossy.is_empty() {
        true => (trials.to_vec(), Vec::new()),
        false => (lossy, clean),
    }
}

/// Seconds of a trial that tells how busy the CPUs were.
const LONG: f64 = 0.1;

/// The records of one slot.
#[derive(Debug)]
pub struct Case<'a> {
    /// All records of the campaign.
    pub records: Records<'a>,
    /// The slot.
    pub slot: &'a Slot,
    /// Figures of the slot.
    pub row: &'a Row,
    /// Valid trials of the slot; of a search, those that lost frames just above its result, or far below its rate.
    pub trials: Vec<&'a TrialRecord>,
    /// Frames that were lost in these trials, by place.
    pub losses: Vec<Loss>,
    /// Of a search, the trials beside them that lost nothing.
    clean: Vec<&'a TrialRecord>,
    /// How its DUT was configured, or why that is not known.
    configuration: Result<Configuration, String>,
}

impl Case<'_> {
    /// The stacks of its profile.
    ///
    /// # Errors
    /// The slot was not profiled, or no sample was taken.
    pub(crate) fn profile(&self) -> Result<&Profile, String> {
        let profile = self
            .records
            .stacks
            .get(&self.slot.id)
            .ok_or("the cell was not profiled (--profile)")?;
        if profile.samples() > 0 {
            return Ok(profile);
        }
        let why = self
            .looked()
            .and_then(|looked| looked.missing.iter().find(|why| why.starts_with("profile")));
        Err(why
            .cloned()
            .unwrap_or_else(|| "the profile has no sample of the kernel".into()))
    }

    /// How the DUT was configured.
    ///
    /// # Errors
    /// The DUT was not asked.
    pub(crate) fn configuration(&self) -> Result<&Configuration, String> {
        self.configuration.as_ref().map_err(Clone::clone)
    }

    /// A setting of the DUT that is a cause, if it has it. `questions`: the beginnings of those whose answers tell.
    ///
    /// # Errors
    /// The DUT was not asked, or one of these questions has no answer, and the others tell of no such setting.
    pub(crate) fn configured(
        &self,
        questions: &[&str],
        find: impl Fn(&Configuration) -> Option<String>,
    ) -> Result<Option<String>, String> {
        let configuration = self.configuration()?;
        let found = find(configuration);
        let silent = configuration.unanswered.iter().find(|silent| {
            questions
                .iter()
                .any(|question| silent.question.starts_with(question))
        });
        match silent {
            Some(silent) if found.is_none() => Err(format!(
                "the DUT does not tell it ({}: {})",
                silent.question, silent.why
            )),
            _ => Ok(found),
        }
    }

    /// The interface that frames come in by.
    ///
    /// # Errors
    /// The DUT was not asked, or did not answer.
    pub(crate) fn inside(&self) -> Result<&Card, String> {
        let card = self
            .configuration()?
            .cards
            .first()
            .filter(|card| card.found);
        card.ok_or_else(|| "the DUT's answers do not show its interface".into())
    }

    /// The interface that frames come in by, if it is a card of hardware; `None` for a virtual interface.
    ///
    /// # Errors
    /// The DUT was not asked, or did not answer.
    pub(crate) fn hardware(&self) -> Result<Option<&Card>, String> {
        self.inside()
            .map(|card| Some(card).filter(|card| card.kind.is_none()))
    }

    /// A setting that the plan gave the slot's DUT, by its place in the recorded settings: `/rules/table`.
    pub(crate) fn setting(&self, place: &str) -> Option<&Value> {
        self.setting_of(self.slot.id, place)
    }

    /// How the two routers of its DUT are joined; `None` for a DUT that is one device.
    pub(crate) fn tunnel(&self) -> Option<&'static Tunnel> {
        Dut::deserialize(self.setting("/dut")?).ok()?.tunnel()
    }

    fn setting_of(&self, slot: usize, place: &str) -> Option<&Value> {
        let plan = &self.records.campaign.planned.as_ref()?.plan;
        let lane = plan.pointer(&format!("/cells/{slot}/lane"))?;
        plan.pointer(&format!("/lanes/{lane}/settings{place}"))
            .filter(|value| !value.is_null())
    }

    /// How far the slot's frames go through its rule file, if that was counted.
    pub(crate) fn passed(&self) -> Option<&RulesPassed> {
        let mut all = self.records.summary.rules.iter();
        all.find(|passed| passed.slot == self.slot.id)
    }

    /// The firewalls whose rules the slot's DUT has: `nftables`; none where that is not known.
    pub(crate) fn firewalls(&self) -> Vec<&str> {
        let planned = ["/rule-file/firewall", "/rules/firewall"];
        let planned = planned
            .iter()
            .find_map(|place| self.setting(place)?.as_str());
        let sets = self
            .configuration()
            .map_or(&[][..], |found| &found.rule_sets);
        match planned {
            Some(firewall) => vec![firewall],
            None => sets.iter().map(|set| set.filter.as_str()).collect(),
        }
    }

    /// Whether the DUT is of the embedded lab.
    pub(crate) fn is_embedded(&self) -> bool {
        self.records.campaign.asked.lab == LabKind::Namespaces
    }

    /// The system of the DUT; of a distribution, the one that it is made from.
    pub(crate) fn system(&self) -> System {
        let planned = self.records.campaign.planned.as_ref();
        let system = planned.map_or(System::Linux, |planned| planned.experiment.system);
        system.parent().unwrap_or(system)
    }

    /// How the lab uses CPUs.
    pub(crate) fn mode(&self) -> Mode {
        self.records.campaign.asked.mode
    }

    /// Flows of its traffic.
    pub(crate) fn flows(&self) -> u64 {
        self.slot.flows.unwrap_or(self.records.campaign.asked.flows)
    }

    /// Nanoseconds of a frame; `None` where frames were paced.
    pub(crate) fn frame_ns(&self) -> Option<f64> {
        let ns = Some(self.row.ns_per_frame).filter(|ns| *ns > 0.0);
        let paced = self.trials.iter().any(|trial| trial.asked_fps.is_some());
        ns.filter(|_| self.slot.asked_fps.is_none() && !paced)
    }

    /// The share of the frames from which on their loss is worth a finding: any loss ends a search.
    pub(crate) fn noticeable(&self) -> f64 {
        let searches = &self.records.summary.searches;
        match searches.iter().any(|of| of.slot == self.slot.id) {
            true => 0.0,
            false => NOTICEABLE,
        }
    }

    /// Observations of the kernel in trials beside the others; `None` where it was not profiled.
    pub(crate) fn looked(&self) -> Option<&SlotProfile> {
        self.records
            .summary
            .profiles
            .iter()
            .find(|profile| profile.slot == self.slot.id)
    }

    /// Samples that found the CPUs in user space, or whose stack is not kept.
    pub(crate) fn others(&self) -> u64 {
        self.looked()
            .map_or(0, |profile| profile.user + profile.lost)
    }

    /// All samples, at least 1.
    pub(crate) fn samples(&self) -> f64 {
        let of_kernel = self
            .records
            .stacks
            .get(&self.slot.id)
            .map_or(0, Profile::samples);
        (of_kernel + self.others()).max(1) as f64
    }

    /// Nanoseconds of a frame at another rate of the slot, in frames/s; `None` where frames were paced, or without a rate.
    pub(crate) fn ns_at(&self, received: f64) -> Option<f64> {
        Some(self.frame_ns()? * self.row.received.median / received).filter(|ns| ns.is_finite())
    }

    /// The eBPF programs of the tester: those that run without a DUT, or with plain forwarding; `None` where neither was profiled.
    pub(crate) fn testers(&self) -> Option<HashSet<&str>> {
        let slots = self.records.campaign.slots.iter();
        let without = slots.filter(|slot| slot.is_calibration() || self.is_plain(slot.id));
        let profiles = without.filter_map(|slot| self.records.stacks.get(&slot.id));
        profiles.fold(None, |all: Option<HashSet<&str>>, profile| {
            let names = profile.stacks().flat_map(|(stack, _)| stack.split(';'));
            let mut all = all.unwrap_or_default();
            all.extend(names.filter(|name| name.starts_with(PROGRAM)));
            Some(all)
        })
    }

    /// Whether a slot's DUT is a router with nothing set, whatever its kernel.
    pub(crate) fn is_plain(&self, slot: usize) -> bool {
        let settings = self.setting_of(slot, "");
        let Some(settings) = settings.and_then(Value::as_object) else {
            return false;
        };
        let usual = |(key, value): (&String, &Value)| match key.as_str() {
            "dut" => value == "forwarding",
            "states" | "kernel" => true,
            _ => is_empty(value),
        };
        settings.iter().all(usual)
    }

    /// The stacks of plain forwarding of the same IP version and kernel, if possible of the same frames.
    pub(crate) fn plain(&self) -> Option<&Profile> {
        let kernel = |slot: &Slot| self.setting_of(slot.id, "/kernel");
        let family = |slot: &Slot| slot.traffic.as_ref().map(|of| of.frame.family);
        let others = self.records.campaign.slots.iter();
        let plain = others.filter(|slot| {
            slot.id != self.slot.id
                && family(slot) == family(self.slot)
                && kernel(slot) == kernel(self.slot)
                && self.is_plain(slot.id)
        });
        let profiles = plain.filter_map(|slot| {
            let profile = self.records.stacks.get(&slot.id)?;
            let same = slot.traffic == self.slot.traffic;
            Some((same, profile)).filter(|_| profile.samples() > 0)
        });
        profiles.max_by_key(|(same, _)| *same).map(|(_, of)| of)
    }

    /// The growth of all counters whose name satisfies the condition, over all valid trials.
    ///
    /// # Errors
    /// They were not read: a router that forwards counts something.
    pub(crate) fn counters(
        &self,
        of_cause: impl Fn(&str) -> bool,
    ) -> Result<BTreeMap<&str, u64>, String> {
        if self.trials.iter().all(|trial| trial.dut.is_empty()) {
            return Err("the DUT's counters were not read".into());
        }
        let mut all = BTreeMap::new();
        for (name, n) in self
            .trials
            .iter()
            .flat_map(|trial| &trial.dut)
            .filter(|(name, _)| of_cause(name))
        {
            *all.entry(name.as_str()).or_default() += n;
        }
        Ok(all)
    }

    /// [`Case::counters`] whose names end so.
    ///
    /// # Errors
    /// They were not read.
    pub(crate) fn counted(&self, endings: &[&str]) -> Result<BTreeMap<&str, u64>, String> {
        self.counters(|name| endings.iter().any(|end| name.ends_with(end)))
    }

    /// Losses in the DUT of some causes.
    ///
    /// # Errors
    /// Frames were lost, and none of them at a known place.
    pub(crate) fn lost(&self, of: impl Fn(Cause) -> bool) -> Result<Vec<&Loss>, String> {
        let losses = &self.losses;
        if losses.is_empty() && self.row.loss_ratio >= NOTICEABLE {
            return Err("it is not known where frames were lost".into());
        }
        Ok(losses
            .iter()
            .filter(|loss| loss.side == Side::Dut && of(loss.cause))
            .collect())
    }

    /// Frames that the kernel dropped in a trial of their own, as shares of the frames sent, by its reason and function
    /// (`drop NEIGH_FAILED in neigh_event_send`); empty where it was not asked.
    pub(crate) fn kernel_drops(&self) -> BTreeMap<&str, f64> {
        let events = self
            .looked()
            .and_then(|profile| profile.events.as_ref())
            .filter(|events| events.sent > 0);
        let drops = events.into_iter().flat_map(|events| {
            events
                .drops
                .iter()
                .map(|(name, n)| (name.as_str(), *n as f64 / events.sent as f64))
        });
        drops.collect()
    }

    /// These frames as a share of those sent in all valid trials.
    pub(crate) fn of_sent(&self, frames: u64) -> f64 {
        let sent: u64 = self.trials.iter().map(|trial| trial.generator.frames).sum();
        frames as f64 / sent.max(1) as f64
    }

    /// Mean shares of the DUT's CPUs over all valid trials: busy, softirq and steal, by CPU. In the embedded lab, the tester has some of
    /// them.
    pub(crate) fn cpus(&self) -> BTreeMap<u32, [f64; 3]> {
        let of = |cpu: &CpuShare| Some([cpu.busy, cpu.softirq, cpu.steal]);
        mean_of_cpus(of, &self.trials)
    }

    /// The mean share of the time of each CPU of the lab that other programs used.
    pub(crate) fn of_others(&self) -> BTreeMap<u32, f64> {
        self.taken(|cpu| of_others(self.records.campaign, cpu), &self.trials)
    }

    /// The threads of the embedded lab that sent, by CPU; empty where their time was not recorded.
    pub(crate) fn senders(&self) -> BTreeMap<u32, Sending> {
        let times = || self.trials.iter().flat_map(|trial| &trial.senders);
        let cpus: BTreeSet<u32> = times().map(|time| time.cpu).collect();
        let of = |cpu: u32| Sending::of(times().filter(|time| time.cpu == cpu));
        cpus.into_iter()
            .filter_map(|cpu| Some((cpu, of(cpu)?)))
            .collect()
    }

    /// Of a search: the loads of the trials that show why it found no higher one.
    pub(crate) fn loads(&self) -> Option<String> {
        let loads = self.trials.iter().filter_map(|trial| trial.asked_fps);
        let [low, high] = loads.fold([f64::INFINITY, 0.0], |[low, high], load| {
            [load.min(low), load.max(high)]
        });
        let n = self.trials.len();
        (self.noticeable() == 0.0 && high > 0.0)
            .then(|| format!("in {n} trials at {low:.0} to {high:.0} a second"))
    }

    /// The CPU that forwards of which others had the largest share of time, and that share, where a queue of the DUT overflowed meanwhile
    /// and no CPU that forwards was full: others had this CPU for at least half of the time in which the lost frames came. `of`: the share
    /// of a CPU in one trial. In trials without loss, threads that wake up wait as well; this much is no sign.
    pub(crate) fn absent(&self, of: impl Fn(&CpuShare) -> Option<f64>) -> Option<(u32, f64)> {
        let is_full = |loss: &&Loss| loss.side == Side::Dut && loss.cause == Cause::QueueFull;
        let full = self.losses.iter().filter(is_full).map(|loss| loss.frames);
        let lost = self.of_sent(full.sum());
        let (busy, forwarding) = (self.cpus(), self.forwarding_cpus());
        let mut shares = forwarding.iter().filter_map(|cpu| busy.get(cpu));
        if lost == 0.0 || lost < self.noticeable() || shares.any(|of| of[0] >= FULL) {
            return None;
        }
        let usual = self.taken(&of, &self.clean);
        let taken = self.taken(&of, &self.trials).into_iter();
        let beyond = |(cpu, share): (u32, f64)| {
            let usual = usual.get(&cpu).copied().unwrap_or(WAKING);
            Some((cpu, share)).filter(|_| share - usual >= lost / 2.0)
        };
        let taken = taken.filter(|(cpu, _)| forwarding.contains(cpu));
        let taken = taken.filter_map(beyond);
        taken.max_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// The mean share of each CPU's time in these trials.
    fn taken(
        &self,
        of: impl Fn(&CpuShare) -> Option<f64>,
        trials: &[&TrialRecord],
    ) -> BTreeMap<u32, f64> {
        let means = mean_of_cpus(|cpu| Some([of(cpu)?]), trials).into_iter();
        means.map(|(cpu, [share])| (cpu, share)).collect()
    }

    /// [`Case::cpus`], if there are any.
    ///
    /// # Errors
    /// They were not looked at.
    pub(crate) fn known_cpus(&self) -> Result<BTreeMap<u32, [f64; 3]>, String> {
        Some(self.cpus())
            .filter(|cpus| !cpus.is_empty())
            .ok_or_else(|| UNKNOWN_CPUS.into())
    }

    /// The CPUs that forward: those that the lab gave to the DUT, and of a host those that worked for frames.
    pub(crate) fn forwarding_cpus(&self) -> Vec<u32> {
        let campaign = self.records.campaign;
        let works = |(cpu, [_, softirq, _]): (u32, [f64; 3])| (softirq >= FORWARDS).then_some(cpu);
        match (campaign.asked.mode, &self.slot.cpus) {
            (Mode::Hosts, _) => self.cpus().into_iter().filter_map(works).collect(),
            (Mode::Inline, Some(cpus)) => cpus.clone(),
            _ => campaign.roles.dut.clone(),
        }
    }

    /// The CPUs that could forward: those that the lab gave to the DUT, and of a host all.
    pub(crate) fn usable_cpus(&self) -> Vec<u32> {
        if self.records.campaign.asked.mode != Mode::Hosts {
            return self.forwarding_cpus();
        }
        let configured = self
            .configuration
            .iter()
            .flat_map(|found| &found.machine.cpus)
            .map(|cpu| cpu.cpu);
        let all: BTreeSet<u32> = configured.chain(self.cpus().into_keys()).collect();
        all.into_iter().collect()
    }
}

fn mean_of_cpus<const N: usize>(
    of: impl Fn(&CpuShare) -> Option<[f64; N]>,
    trials: &[&TrialRecord],
) -> BTreeMap<u32, [f64; N]> {
    let mut sums: BTreeMap<u32, ([f64; N], f64)> = BTreeMap::new();
    for cpu in trials.iter().flat_map(|trial| &trial.cpus) {
        let Some(parts) = of(cpu) else { continue };
        let (sum, n) = sums.entry(cpu.cpu).or_insert(([0.0; N], 0.0));
        sum.iter_mut()
            .zip(parts)
            .for_each(|(sum, part)| *sum += part);
        *n += 1.0;
    }
    sums.into_iter()
        .map(|(cpu, (sum, n))| (cpu, sum.map(|part| part / n)))
        .collect()
}

/// Whether a setting says nothing.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Object(all) => all.values().all(is_empty),
        Value::Array(all) => all.is_empty(),
        other => other.is_null(),
    }
}
