//! Profiles: how often each stack of functions was seen. They come from the output of other profilers ([`fold`]), and are counted
//! by function ([`Profile::functions`]) or compared ([`differences`]).
//!
//! A folded stack is a line of text: functions from the outermost to the innermost with `;` between them, a blank, and the
//! number of samples. The formats of other tools are explained in docs/profiles.md.
#![forbid(unsafe_code)]

mod distributions;
mod flame;
mod fold;
mod lockstat;
mod pmcstat;
mod samples;

pub use distributions::{Distribution, Range};
pub use flame::{Picture, differential, differential_part, flame_graph, flame_graph_part};
pub use fold::{Fault, Folded, Observed, Source, fold, observed};
pub use lockstat::LockEvent;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap, HashSet};

/// How often each stack was seen.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Profile {
    /// Samples by stack, whose functions are separated by `;`, the outermost first.
    stacks: BTreeMap<String, u64>,
}

/// The samples of a kernel.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Sampled {
    pub profile: Profile,
    /// The event that it was sampled by: `cycles` or `cpu-clock`.
    pub event: String,
    /// Samples that found a CPU in user space.
    pub user: u64,
    /// Samples whose stack found no room.
    pub lost: u64,
    /// Events that the sampled CPUs counted in their kernel meanwhile.
    pub counted: BTreeMap<String, u64>,
    /// Events that they cannot count, with the reason.
    pub not_counted: Option<String>,
}

impl Sampled {
    /// Adds the samples of another period, by the same event.
    pub fn add(&mut self, other: Sampled) {
        for (stack, samples) in other.profile.stacks() {
            self.profile.add(stack, samples);
        }
        for (name, n) in other.counted {
            *self.counted.entry(name).or_default() += n;
        }
        self.not_counted = other.not_counted;
        self.event = other.event;
        self.user += other.user;
        self.lost += other.lost;
    }
}

/// Waits for the locks of a kernel.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Waited {
    /// Nanoseconds by the stack that wanted the lock.
    pub profile: Profile,
    /// How often something waited.
    pub waits: u64,
    /// Waits that are not counted, because they found no room.
    pub lost: u64,
    /// Nanoseconds of waits that no frame had a part in, where those are known apart.
    #[serde(default, skip_serializing_if = "Profile::is_empty")]
    pub beside: Profile,
}

impl Waited {
    /// The functions that waited, with their callers, the longest wait first: without those of the locks themselves.
    pub fn functions(&self) -> Vec<Function> {
        self.profile.waiting()
    }
}

/// How functions of FreeBSD begin that frames pass on their way through it.
const OF_FRAMES: [&str; 17] = [
    "ether_",
    "netisr_",
    "swi_net",
    "ip_",
    "ip6_",
    "iflib_",
    "_task_fn_",
    "ifmp_ring_",
    "bridge_",
    "vlan_",
    "pf_",
    "ipfw_",
    "arp",
    "nd6_",
    "tcp_lro_",
    "if_",
    "dummynet_",
];
/// How functions begin that interrupt whatever a CPU of FreeBSD does: the frames are below them, and not their work.
const INTERRUPTS: [&str; 6] = [
    "ipi_",
    "Xipi_",
    "Xtimerint",
    "lapic_handle_timer",
    "dtrace_",
    "hardclock",
];

/// Whether a stack of FreeBSD works on frames: a function of their way is there, and no interrupt for something else came in after it.
pub fn works_on_frames(stack: &str) -> bool {
    let begins = |name: &str, with: &[&str]| with.iter().any(|start| name.starts_with(start));
    let own = stack
        .rsplit(';')
        .take_while(|name| !begins(name, &INTERRUPTS));
    own.into_iter()
        .any(|name| begins(name, &OF_FRAMES) || name.contains("_rxeof") || name.contains("_txeof"))
}

/// A function of a profile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Function {
    pub name: String,
    /// Samples in the function itself.
    pub own: u64,
    /// Samples in it and in the functions that it called; a recursive function counts once.
    pub with_called: u64,
    /// The functions that called it when it was sampled itself, with these samples, the most frequent first.
    pub callers: Vec<(String, u64)>,
}

/// Share of a function in two profiles.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    pub name: String,
    /// Share of samples in the function itself, 0..1: before and after.
    pub own: [f64; 2],
    /// Share with the functions that it called.
    pub with_called: [f64; 2],
}

impl Profile {
    /// Reads folded stacks. Lines of another form are left out.
    pub fn of_folded(text: &str) -> Profile {
        let mut profile = Profile::default();
        let stacks = text
            .lines()
            .filter_map(|line| line.trim_end().rsplit_once(' '));
        for (stack, samples) in
            stacks.filter_map(|(stack, samples)| Some((stack, samples.parse().ok()?)))
        {
            profile.add(stack, samples);
        }
        profile
    }

    /// Adds samples of a stack.
    pub fn add(&mut self, stack: &str, samples: u64) {
        let sum = self.stacks.entry(stack.into()).or_default();
        *sum = sum.saturating_add(samples);
    }

    /// Whether there are no stacks.
    pub fn is_empty(&self) -> bool {
        self.stacks.is_empty()
    }

    /// The functions that want locks, with their callers: without those of the locks themselves.
    pub fn waiting(&self) -> Vec<Function> {
        let words = [
            "lock",
            "mutex",
            "mtx",
            "rwsem",
            "down_read",
            "down_write",
            "semaphore",
            "_sx_",
            "_rw_",
            "osq_",
        ];
        self.without_inner(|name| words.iter().any(|word| name.contains(word)))
            .functions()
    }

    /// All samples.
    pub fn samples(&self) -> u64 {
        self.stacks
            .values()
            .fold(0, |sum, samples| sum.saturating_add(*samples))
    }

    /// The stacks with their samples, in the order of their names.
    pub fn stacks(&self) -> impl Iterator<Item = (&str, u64)> {
        self.stacks
            .iter()
            .map(|(stack, samples)| (stack.as_str(), *samples))
    }

    /// Lines of folded stacks, in the order of the stacks' names.
    pub fn lines(&self) -> Vec<String> {
        self.stacks
            .iter()
            .map(|(stack, samples)| format!("{stack} {samples}"))
            .collect()
    }

    /// The stacks without the functions at their inner end for which `left_out` is true; at least one function stays.
    pub fn without_inner(&self, left_out: impl Fn(&str) -> bool) -> Profile {
        let mut outer = Profile::default();
        for (mut stack, samples) in self
            .stacks
            .iter()
            .map(|(stack, samples)| (stack.as_str(), *samples))
        {
            while let Some((callers, _)) = stack.rsplit_once(';').filter(|(_, name)| left_out(name))
            {
                stack = callers;
            }
            outer.add(stack, samples);
        }
        outer
    }

    /// All functions, those with most samples of their own first.
    pub fn functions(&self) -> Vec<Function> {
        #[derive(Default)]
        struct Counts<'a> {
            own: u64,
            with_called: u64,
            callers: HashMap<&'a str, u64>,
        }
        let mut counts: HashMap<&str, Counts<'_>> = HashMap::new();
        for (stack, samples) in &self.stacks {
            let names: Vec<&str> = stack.split(';').collect();
            for name in names.iter().collect::<HashSet<_>>() {
                counts.entry(name).or_default().with_called += samples;
            }
            if let [callers @ .., name] = names.as_slice() {
                let counts = counts.entry(name).or_default();
                counts.own += samples;
                if let Some(caller) = callers.last() {
                    *counts.callers.entry(caller).or_default() += samples;
                }
            }
        }
        let function = |(
            name,
            Counts {
                own,
                with_called,
                callers,
            },
        ): (&str, Counts<'_>)| {
            let mut callers: Vec<(String, u64)> =
                callers.into_iter().map(|(n, c)| (n.into(), c)).collect();
            callers.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
            Function {
                name: name.into(),
                own,
                with_called,
                callers,
            }
        };
        let mut functions: Vec<Function> = counts.into_iter().map(function).collect();
        functions
            .sort_by(|a, b| (b.own, b.with_called, &a.name).cmp(&(a.own, a.with_called, &b.name)));
        functions
    }
}

/// How much the share of each function changed, the largest change of its own share first.
pub fn differences(before: &Profile, after: &Profile) -> Vec<Difference> {
    let mut all: BTreeMap<String, Difference> = BTreeMap::new();
    for (side, profile) in [before, after].into_iter().enumerate() {
        let total = profile.samples().max(1) as f64;
        for Function {
            name,
            own,
            with_called,
            ..
        } in profile.functions()
        {
            let empty = Difference {
                name: name.clone(),
                own: [0.0; 2],
                with_called: [0.0; 2],
            };
            let difference = all.entry(name).or_insert(empty);
            difference.own[side] = own as f64 / total;
            difference.with_called[side] = with_called as f64 / total;
        }
    }
    let mut all: Vec<Difference> = all.into_values().collect();
    let change = |d: &Difference| (d.own[1] - d.own[0]).abs();
    all.sort_by(|a, b| {
        change(b)
            .total_cmp(&change(a))
            .then_with(|| a.name.cmp(&b.name))
    });
    all
}

#[cfg(test)]
mod tests;
