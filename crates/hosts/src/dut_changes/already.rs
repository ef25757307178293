//! Whether a DUT has already what a variant adds.

use super::{Check, Step, Target, steps};
use linerate_plan::settings::Settings;

/// The questions whether a DUT that is set up as `base` has already all that `variant` sets; `None` where questions cannot tell: only sysctls
/// and settings of interfaces can be asked for before they are made.
pub fn questions(base: &Settings, variant: &Settings, target: &Target) -> Option<Vec<Check>> {
    let others = |settings: &Settings| Settings {
        sysctls: Default::default(),
        inside: Default::default(),
        outside: Default::default(),
        ..settings.clone()
    };
    if others(base) != others(variant) {
        return None;
    }
    let asked = |settings: &Settings| {
        let asked = Settings {
            sysctls: settings.sysctls.clone(),
            inside: settings.inside.clone(),
            outside: settings.outside.clone(),
            ..Settings::default()
        };
        steps(&asked, None, target).ok()
    };
    let (base, variant) = (asked(base)?, asked(variant)?);
    // Some steps only note what their undoing restores.
    let is_new = |step: &&Step| !base.steps.contains(step) && step.apply.argv != ["true"];
    let added: Vec<_> = variant.steps.iter().filter(is_new).collect();
    let goes = base.steps.iter().any(|step| {
        let replaced = added.iter().any(|other| other.what == step.what);
        !replaced && !variant.steps.contains(step)
    });
    if added.is_empty() || goes || variant.lasting > 0 {
        return None;
    }
    added.into_iter().map(|step| step.check.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dut_changes::Port;
    use linerate_measure::experiment::System;
    use linerate_plan::card::{CardSetting, CardValue};

    #[test]
    fn sysctls_and_cards_are_asked_for_and_nothing_else() {
        let port = |name: &str| Port {
            name: name.into(),
            addresses: Vec::new(),
            next_hops: Vec::new(),
            networks: Vec::new(),
        };
        let target = Target {
            system: System::Linux,
            inside: port("in0"),
            outside: port("out0"),
            config_save: None,
        };
        let mut base = Settings::default();
        base.sysctls.insert("net.ipv4.tcp_sack".into(), "1".into());
        let mut variant = base.clone();
        variant
            .sysctls
            .insert("net.ipv4.tcp_timestamps".into(), "0".into());
        variant
            .inside
            .set
            .insert(CardSetting::Gro, CardValue::Switch(false));
        let asked = questions(&base, &variant, &target).unwrap();
        let programs: Vec<String> = asked.iter().map(|one| one.read.program.shown()).collect();
        assert_eq!(asked.len(), 2, "{programs:?}");
        assert_eq!(programs[0], "sysctl -n net.ipv4.tcp_timestamps");
        assert!(asked[0].is_met_by("0") && !asked[0].is_met_by("1"));
        assert!(programs[1].contains("in0"), "{programs:?}");
        // A change of more than that, or of nothing.
        variant.no_firewall = true;
        assert_eq!(questions(&base, &variant, &target), None);
        assert_eq!(questions(&base, &base, &target), None);
    }
}
