//! Where the result of a tuning can be applied.

use super::Tune;
use linerate_advise::may_keep;
use linerate_measure::experiment::System;
use linerate_measure::tuning::{Tuned, Verdict};
use linerate_plan::campaign::{Campaign as Plan, Lab};
use linerate_plan::lab::Reach;
use linerate_runner::testbed::hosts::{Site, folder};
use linerate_wire::words::when;
use std::path::Path;

/// A host that a result can be applied to.
pub(super) struct Place {
    /// The argument of `linerate apply`.
    argument: String,
    name: String,
    /// Whether its interfaces towards generator and receiver are known.
    ends: bool,
}

impl Place {
    /// The host that is tuned; for the embedded lab, this machine.
    pub(super) fn of(plan: &Plan, args: &Tune, site: Option<&Site>) -> Option<Place> {
        let (Some(site), Lab::File { path, .. }) = (site, &plan.lab) else {
            return Some(Place {
                argument: String::new(),
                name: "this machine".into(),
                ends: false,
            });
        };
        let dut = site.lab.dut()?;
        let ends = site.lab.placeholders().is_some();
        let argument = match (ends, &dut.reach) {
            (true, _) => {
                let named = args.which.lab.clone();
                let file = named.unwrap_or_else(|| folder(&args.plan).join(path));
                format!(" --lab {}", file.display())
            }
            (false, Reach::Ssh(ssh)) => format!(" {ssh}"),
            (false, Reach::Namespace(name)) => format!(" --namespace {name}"),
        };
        Some(Place {
            argument,
            name: dut.name.clone(),
            ends,
        })
    }

    /// How the kept changes are made there; `None` where the host can keep none of them.
    pub(super) fn hint(&self, tuned: &Tuned, system: System, folder: &Path) -> Option<String> {
        if tuned.simulated {
            return None;
        }
        let kept = || {
            let changes = tuned.changes.iter();
            changes.filter(|change| change.verdict == Verdict::Kept)
        };
        let stay = kept().filter(|change| may_keep(&change.keys, system, self.ends));
        let which = match (stay.count(), kept().count()) {
            (0, _) => return None,
            (some, all) if some == all => "the kept changes".to_string(),
            (some, all) => {
                format!("those {some} of {all} kept changes that are possible outside the lab")
            }
        };
        let (argument, name, folder) = (&self.argument, &self.name, folder.display());
        let sudo = when(argument.is_empty(), "sudo ");
        Some(format!(
            "`{sudo}linerate apply {folder}{argument}` makes {which} on {name}"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_is_given_where_a_host_can_keep_a_change() {
        let changes = [("budget", "sysctls.a.b = 1"), ("short", "rules.before = 0")];
        let changes = changes.map(|(name, key)| (name.to_string(), vec![key.to_string()]));
        let mut tuned = Tuned::new("t".into(), "p".into(), changes);
        let place = Place {
            argument: " --lab LAB.toml".into(),
            name: "r1".into(),
            ends: true,
        };
        let hint = |tuned: &Tuned| place.hint(tuned, System::Linux, Path::new("dir"));
        tuned.changes[1].verdict = Verdict::Kept;
        assert_eq!(hint(&tuned), None, "a rule set is the lab's");
        tuned.changes[0].verdict = Verdict::Kept;
        assert_eq!(
            hint(&tuned).unwrap(),
            "`linerate apply dir --lab LAB.toml` makes those 1 of 2 kept changes that are possible outside the lab on r1"
        );
        tuned.changes[1].verdict = Verdict::NoEffect;
        assert!(
            hint(&tuned)
                .unwrap()
                .ends_with("makes the kept changes on r1")
        );
        tuned.simulated = true;
        assert_eq!(hint(&tuned), None);
    }
}
