//! Observations around a trial or during it. Artefacts go into the trial's record, and so does the time that they cost.

use crate::record::{
    Collected, CollectorCost, CpuShare, RulesPassed, SenderTime, SlotFacts, StackTimes,
};
use crate::trial::Moment;
use linerate_profile::{Sampled, Waited};
use std::collections::BTreeMap;

/// Counters by name, at one moment.
pub type Counters = BTreeMap<String, u64>;

/// A finding of a collector.
#[derive(Debug, Clone, PartialEq)]
pub enum Artefact {
    /// How busy CPUs were under load.
    Cpus(Vec<CpuShare>),
    /// The threads that sent.
    Senders(Vec<SenderTime>),
    /// Counters that have grown, by how much.
    Counters(Counters),
    /// The output of a command.
    Output(Collected),
    /// How the DUT is configured.
    Facts(SlotFacts),
    /// The stacks of the DUT's kernel.
    Profile(Sampled),
    /// Times of frames in the stack of the DUT's kernel.
    Stages(StackTimes),
    /// Waits for locks of the DUT's kernel.
    Waited(Waited),
    /// How far frames went through a rule file. The campaign knows slot and frames.
    Rules(RulesPassed),
}

/// Observes one trial. A collector that fails takes nothing from the trial: its reason is recorded in place of its artefacts.
pub trait Collector {
    /// The plan's name for it.
    fn name(&self) -> &'static str;

    /// Before the load.
    ///
    /// # Errors
    /// Why it cannot observe.
    fn before(&mut self) -> Result<(), String> {
        Ok(())
    }

    /// Called when the load begins and when it has ended; on hosts, not called.
    fn during(&mut self, _moment: Moment) {}

    /// Called on hosts after the load: when it began and ended, by the clock of [`Collectors`].
    fn load(&mut self, _from_to_ns: [u64; 2]) {}

    /// After the load.
    ///
    /// # Errors
    /// Why nothing was found.
    fn after(&mut self) -> Result<Vec<Artefact>, String>;
}

/// Everything that was collected in a trial.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Collection {
    /// How busy CPUs were under load.
    pub cpus: Vec<CpuShare>,
    /// The threads that sent.
    pub senders: Vec<SenderTime>,
    /// Counters that have grown, by how much.
    pub counters: Counters,
    /// The output of commands, and the reasons of collectors that failed.
    pub collected: Vec<Collected>,
    /// Cost of each collector.
    pub costs: Vec<CollectorCost>,
    /// How the DUT is configured, if it was asked.
    pub facts: Option<SlotFacts>,
    /// The stacks of the DUT's kernel.
    pub profile: Option<Sampled>,
    /// Times of frames in the stack of the DUT's kernel.
    pub stages: Option<StackTimes>,
    /// Waits for locks of the DUT's kernel.
    pub waited: Option<Waited>,
    /// How far frames went through a rule file.
    pub rules: Option<RulesPassed>,
}

/// The collectors of one trial.
pub struct Collectors<'a> {
    all: Vec<Running<'a>>,
    /// Nanoseconds on any clock that only goes forward.
    clock: fn() -> u64,
}

struct Running<'a> {
    collector: Box<dyn Collector + 'a>,
    cost: CollectorCost,
    failed: Option<String>,
}

impl<'a> Running<'a> {
    fn timed<T>(
        &mut self,
        clock: fn() -> u64,
        act: impl FnOnce(&mut (dyn Collector + 'a)) -> T,
    ) -> T {
        let began = clock();
        let result = act(self.collector.as_mut());
        self.cost.took_ns += clock().saturating_sub(began);
        result
    }
}

impl<'a> Collectors<'a> {
    /// Prepares each of them.
    pub fn before(all: Vec<Box<dyn Collector + 'a>>, clock: fn() -> u64) -> Collectors<'a> {
        let begin = |collector: Box<dyn Collector + 'a>| {
            let cost = CollectorCost {
                name: collector.name().into(),
                took_ns: 0,
            };
            let mut running = Running {
                collector,
                cost,
                failed: None,
            };
            running.failed = running.timed(clock, |collector| collector.before()).err();
            running
        };
        Collectors {
            all: all.into_iter().map(begin).collect(),
            clock,
        }
    }

    /// Adds the collectors of the same trial that were prepared after these.
    pub fn and(mut self, later: Collectors<'a>) -> Collectors<'a> {
        self.all.extend(later.all);
        self
    }

    /// Reports a moment to each of them.
    pub fn during(&mut self, moment: Moment) {
        self.all
            .iter_mut()
            .for_each(|one| one.timed(self.clock, |collector| collector.during(moment)));
    }

    /// Tells each of them when the load was, in nanoseconds on the clock.
    pub fn load(&mut self, from_to_ns: [u64; 2]) {
        self.all
            .iter_mut()
            .for_each(|one| one.collector.load(from_to_ns));
    }

    /// Fetches the artefacts of all collectors.
    pub fn after(self) -> Collection {
        let mut found = Collection::default();
        for mut one in self.all {
            let artefacts = match one.failed.take() {
                Some(reason) => Err(reason),
                None => one.timed(self.clock, |collector| collector.after()),
            };
            match artefacts {
                Ok(artefacts) => artefacts
                    .into_iter()
                    .for_each(|artefact| found.add(artefact)),
                Err(reason) => found.collected.push(Collected {
                    command: one.cost.name.clone(),
                    output: Err(reason),
                }),
            }
            found.costs.push(one.cost);
        }
        found
    }
}

impl Collection {
    fn add(&mut self, artefact: Artefact) {
        match artefact {
            Artefact::Cpus(cpus) => self.cpus.extend(cpus),
            Artefact::Senders(senders) => self.senders.extend(senders),
            Artefact::Counters(counters) => self.counters.extend(counters),
            Artefact::Output(output) => self.collected.push(output),
            Artefact::Facts(facts) => self.facts = Some(facts),
            Artefact::Profile(profile) => self.profile = Some(profile),
            Artefact::Stages(stages) => self.stages = Some(stages),
            Artefact::Waited(waited) => self.waited = Some(waited),
            Artefact::Rules(rules) => self.rules = Some(rules),
        }
    }
}

/// Counters that are read before the load and after it: their growth is kept.
pub struct Growth<R> {
    name: &'static str,
    read: R,
    before: Counters,
}

impl<R: FnMut() -> Result<Counters, String>> Growth<R> {
    /// `read` reads them.
    pub fn new(name: &'static str, read: R) -> Growth<R> {
        Growth {
            name,
            read,
            before: Counters::new(),
        }
    }
}

impl<R: FnMut() -> Result<Counters, String>> Collector for Growth<R> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn before(&mut self) -> Result<(), String> {
        self.before = (self.read)()?;
        Ok(())
    }

    fn after(&mut self) -> Result<Vec<Artefact>, String> {
        Ok(vec![Artefact::Counters(grown(
            &self.before,
            &(self.read)()?,
        ))])
    }
}

/// The counters that have grown, by how much.
pub fn grown(before: &Counters, after: &Counters) -> Counters {
    let since = |(name, n): (&String, &u64)| {
        let grown = n.saturating_sub(before.get(name).copied().unwrap_or(0));
        (grown > 0).then(|| (name.clone(), grown))
    };
    after.iter().filter_map(since).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts up by one with each look.
    fn clock() -> u64 {
        use std::sync::atomic::{AtomicU64, Ordering};
        static NOW: AtomicU64 = AtomicU64::new(0);
        NOW.fetch_add(1, Ordering::Relaxed)
    }

    struct Memory(Vec<Moment>);

    impl Collector for Memory {
        fn name(&self) -> &'static str {
            "memory"
        }

        fn during(&mut self, moment: Moment) {
            self.0.push(moment);
        }

        fn after(&mut self) -> Result<Vec<Artefact>, String> {
            assert_eq!(self.0, [Moment::Began, Moment::Ended]);
            let output = Collected {
                command: "ls".into(),
                output: Ok("all".into()),
            };
            Ok(vec![Artefact::Output(output)])
        }
    }

    #[test]
    fn artefacts_costs_and_failures_are_kept() {
        let mut reads = [1u64, 9].into_iter();
        let counted = Growth::new("frames", move || {
            Ok(Counters::from([
                ("a".to_string(), reads.next().unwrap()),
                ("still".to_string(), 3),
            ]))
        });
        let broken = Growth::new("broken", || Err("no such file".to_string()));
        let all: Vec<Box<dyn Collector>> = vec![
            Box::new(counted),
            Box::new(broken),
            Box::new(Memory(Vec::new())),
        ];
        let mut collectors = Collectors::before(all, clock);
        collectors.during(Moment::Began);
        collectors.during(Moment::Ended);
        let found = collectors.after();
        assert_eq!(found.counters, Counters::from([("a".to_string(), 8)]));
        let said: Vec<(&str, bool)> = found
            .collected
            .iter()
            .map(|c| (c.command.as_str(), c.output.is_ok()))
            .collect();
        assert_eq!(said, [("broken", false), ("ls", true)]);
        let costs: Vec<(&str, bool)> = found
            .costs
            .iter()
            .map(|c| (c.name.as_str(), c.took_ns >= 3))
            .collect();
        assert_eq!(
            costs,
            [("frames", true), ("broken", true), ("memory", true)]
        );
    }
}
