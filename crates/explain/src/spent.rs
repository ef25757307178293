//! The time that functions of a profile take, with all that they call.

use crate::case::Case;
use crate::extra::functions::{LEAST, is_called, is_usual};
use linerate_profile::Profile;
use std::collections::BTreeMap;

/// The part of a frame's time that some functions take, with the functions that they call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Spent {
    /// Share of the time, 0..1.
    pub share: f64,
    /// Share of the kernel's time: other programs change nothing in it.
    of_kernel: f64,
    /// Standard error of the share.
    pub error: f64,
    /// Nanoseconds of a frame; `None` where frames have no cost, because they were paced.
    pub ns: Option<f64>,
    /// Functions that were seen, with their shares, the largest first.
    functions: Vec<(String, f64)>,
    /// The stacks that it was spent in.
    claim: Claim,
}

/// Stacks of some functions.
#[derive(Debug, Clone, Default, PartialEq)]
struct Claim {
    functions: Vec<String>,
    /// Functions below them whose time is not counted.
    apart: Vec<String>,
    /// Functions above them that are another cause: nothing below is counted.
    outside: Vec<String>,
}

impl Claim {
    fn new(functions: &[&str], apart: &[&str]) -> Claim {
        let names = |all: &[&str]| all.iter().map(|name| name.to_string()).collect();
        Claim {
            functions: names(functions),
            apart: names(apart),
            outside: Vec::new(),
        }
    }

    /// The outermost of the functions on a stack whose time is counted.
    fn of<'s>(&self, stack: &'s str) -> Option<&'s str> {
        let is_of = |name: &str, all: &[String]| all.iter().any(|wanted| is_called(name, wanted));
        if stack.split(';').any(|name| is_of(name, &self.outside)) {
            return None;
        }
        let found = stack.split(';').find(|name| is_of(name, &self.functions))?;
        let is_apart = |name: &str| is_of(name, &self.apart);
        (!self.below(stack).any(is_apart)).then_some(found)
    }

    /// Functions that the last one on a stack calls, the innermost first.
    fn below<'s>(&self, stack: &'s str) -> impl Iterator<Item = &'s str> {
        let is_own = |name: &&str| self.functions.iter().any(|own| is_called(name, own));
        stack.rsplit(';').take_while(move |name| !is_own(name))
    }
}

/// Standard errors that a share must have to be told from nothing.
const CLEAR: f64 = 3.0;

impl Spent {
    /// The time, as that of these functions with their shares, the largest first.
    pub fn of(self, functions: Vec<(String, f64)>) -> Spent {
        Spent { functions, ..self }
    }

    /// Whether the time of this stack is part of it.
    pub fn contains(&self, stack: &str) -> bool {
        self.claim.of(stack).is_some()
    }

    /// Whether it is at least this share of the kernel's time, beyond the error of the samples.
    pub fn is_clear(&self, least: f64) -> bool {
        self.share - CLEAR * self.error > 0.0 && self.of_kernel >= least
    }

    /// `profile: nft_do_chain, with the functions it calls, takes 612 ns of a frame (38.0 %)`
    pub fn evidence(&self) -> String {
        let names: Vec<&str> = self
            .functions
            .iter()
            .take(3)
            .map(|(name, _)| name.as_str())
            .collect();
        let (take, call) = if names.len() == 1 {
            ("takes", "it calls")
        } else {
            ("take", "they call")
        };
        let names = names.join(", ");
        let percent = 100.0 * self.share;
        match self.ns {
            Some(ns) => format!(
                "profile: {names}, with the functions {call}, {take} {ns:.0} ns of a frame ({percent:.1} %)"
            ),
            None => {
                format!(
                    "profile: {names}, with the functions {call}, {take} {percent:.1} % of the busy time"
                )
            }
        }
    }
}

impl Case<'_> {
    /// The time in these functions and in all that they call. A name that ends in `*` is the beginning of names.
    ///
    /// # Errors
    /// The slot was not profiled.
    pub(crate) fn spent(&self, functions: &[&str]) -> Result<Spent, String> {
        self.spent_apart(functions, &[])
    }

    /// The time in these functions and in all that they call, but for the functions `apart` below the last of these on a stack: a virtual
    /// device's transmission is above the queue of the card that carries it, and the driver's is below.
    ///
    /// # Errors
    /// The slot was not profiled.
    pub(crate) fn spent_apart(&self, functions: &[&str], apart: &[&str]) -> Result<Spent, String> {
        self.spent_on(Claim::new(functions, apart))
    }

    /// As [`Case::spent_apart`], without the time below functions of another cause.
    ///
    /// # Errors
    /// The slot was not profiled.
    pub(crate) fn spent_outside(
        &self,
        functions: &[&str],
        apart: &[&str],
        outside: &[&str],
    ) -> Result<Spent, String> {
        let outside = outside.iter().map(|name| name.to_string()).collect();
        self.spent_on(Claim {
            outside,
            ..Claim::new(functions, apart)
        })
    }

    /// As [`Case::spent_apart`], without the time of functions that no usual firewall calls, each of which takes enough to be a finding.
    pub(crate) fn spent_usually(
        &self,
        functions: &[&str],
        apart: &[&str],
    ) -> Result<Spent, String> {
        let profile = self.profile()?;
        let claim = Claim::new(functions, apart);
        let mut unusual: BTreeMap<&str, u64> = BTreeMap::new();
        for (stack, samples) in profile.stacks() {
            let first = claim.below(stack).filter(|name| !is_usual(name)).last();
            if let Some(name) = first.filter(|_| claim.of(stack).is_some()) {
                *unusual.entry(name).or_default() += samples;
            }
        }
        unusual.retain(|_, samples| self.part(*samples, profile).is_clear(LEAST));
        let apart: Vec<&str> = apart.iter().copied().chain(unusual.into_keys()).collect();
        self.spent_on(Claim::new(functions, &apart))
    }

    fn spent_on(&self, claim: Claim) -> Result<Spent, String> {
        let profile = self.profile()?;
        let mut seen: BTreeMap<&str, u64> = BTreeMap::new();
        for (stack, samples) in profile.stacks() {
            if let Some(name) = claim.of(stack) {
                *seen.entry(name).or_default() += samples;
            }
        }
        let all = self.samples();
        let mut functions: Vec<(String, f64)> = seen
            .iter()
            .map(|(name, samples)| (name.to_string(), *samples as f64 / all))
            .collect();
        functions.sort_by(|a, b| b.1.total_cmp(&a.1));
        Ok(Spent {
            functions,
            claim,
            ..self.part(seen.values().sum(), profile)
        })
    }

    /// The time of this many samples of the slot's profile.
    pub(crate) fn part(&self, samples: u64, profile: &Profile) -> Spent {
        let all = self.samples();
        let share = samples as f64 / all;
        Spent {
            share,
            of_kernel: samples as f64 / profile.samples().max(1) as f64,
            error: (share * (1.0 - share) / all).sqrt(),
            ns: self.frame_ns().map(|ns| share * ns),
            functions: Vec::new(),
            claim: Claim::default(),
        }
    }
}
