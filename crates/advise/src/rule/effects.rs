//! The gain of a rule on a host, by effects that others measured and their likeness to it.

use super::{Rule, UNMEASURED};
use crate::host::{Host, driver};
use crate::item::{Basis, Item, Measured, Setting, State};
use crate::setting::patch;

/// Parts of the models of CPUs that effects name, without blanks; a name before those that begin it.
const CPUS: [&str; 11] = [
    "E5-2650v4",
    "E5-2650v2",
    "E5-2650L",
    "E5-2650",
    "E5-2637",
    "L5630",
    "C2758",
    "C2558",
    "GX-412TC",
    "Q9300",
    "EPYC",
];

/// Words by which effects name cards, or machines with such cards, and the driver on FreeBSD.
const CARDS: [(&str, &str); 12] = [
    ("Emulex", "oce"),
    ("Chelsio", "cxl"),
    ("82599", "ix"),
    ("ConnectX-3", "mlxen"),
    ("ConnectX-4", "mce"),
    ("I354", "igb"),
    ("I210", "igb"),
    ("82580", "igb"),
    ("APU2", "igb"),
    ("RCC-VE", "igb"),
    (", igb", "igb"),
    (", em,", "em"),
];

/// How certain a gain is that was measured elsewhere: on other hardware, the same driver, the same CPU, or both.
const CERTAINTY: [f64; 4] = [0.3, 0.5, 0.6, 0.9];
/// One that this host's values show.
const COMPUTED: f64 = 0.5;

impl Rule {
    pub(super) fn judged(
        &self,
        host: &Host,
        state: State,
        settings: Vec<Setting>,
        computation: Option<String>,
        evidence: Option<String>,
    ) -> Item {
        let effects = self
            .measured
            .iter()
            .flat_map(|&(source, all)| all.iter().map(move |effect| (source, effect)));
        let mut measured: Vec<Measured> = effects
            .map(|(source, effect)| seen_from(host, source, effect))
            .collect();
        measured.sort_by_key(|effect| std::cmp::Reverse(effect.likeness));
        let best = measured.first().map_or(0, |effect| effect.likeness);
        let mut like: Vec<f64> = measured
            .iter()
            .filter(|e| e.likeness == best)
            .map(|e| e.change.unwrap_or(0.0))
            .collect();
        like.sort_by(f64::total_cmp);
        let plain = self.plain(host);
        let mixed = measured.iter().any(|e| e.change > Some(0.005))
            && measured
                .iter()
                .any(|e| e.change.is_some_and(|c| c < -0.005));
        let (gain, basis) = match ((self.computed)(host), like.len()) {
            (Some(gain), _) => (gain, Basis::Computed),
            (None, 0) => (plain.gain, Basis::Guess),
            (None, n) => {
                let basis = match best {
                    3 => Basis::Same,
                    1 | 2 => Basis::Similar,
                    _ => Basis::Other,
                };
                ((like[n / 2] + like[(n - 1) / 2]) / 2.0, basis)
            }
        };
        let mut certainty = match basis {
            Basis::Computed => COMPUTED,
            Basis::Guess => UNMEASURED,
            _ => CERTAINTY[usize::from(best)],
        };
        if host.release.is_none() && !self.span().is_empty() {
            certainty /= 2.0;
        }
        let mut state = state;
        if mixed && state != State::Undo {
            certainty /= 2.0;
            if state == State::Change {
                state = State::Measure;
            }
        }
        let patch = patch(&settings);
        Item {
            state,
            settings,
            evidence,
            computation,
            measured,
            gain,
            basis,
            certainty,
            patch,
            ..plain
        }
    }
}

/// A measured effect, with its likeness to this host.
fn seen_from(host: &Host, source: &str, (percent, on): &(f64, &str)) -> Measured {
    let model = host
        .found
        .machine
        .model
        .as_deref()
        .unwrap_or_default()
        .replace(' ', "");
    // E5-2650 is neither E5-2650L nor, where it names a version, another version.
    let is_other =
        |rest: &str| rest.starts_with(|c: char| matches!(c, 'L' | 'l') || c.is_ascii_digit());
    let is_model = |cpu: &str| {
        model
            .match_indices(cpu)
            .any(|(at, _)| !is_other(&model[at + cpu.len()..]))
    };
    let same_cpu = CPUS
        .into_iter()
        .find(|cpu| on.contains(cpu))
        .is_some_and(is_model);
    let has = |of: &str| {
        host.found
            .cards
            .iter()
            .any(|card| family(driver(host.kernel, card)) == of)
    };
    let same_card = CARDS
        .iter()
        .find(|(word, _)| on.contains(word))
        .is_some_and(|(_, of)| has(of));
    let likeness = 2 * u8::from(same_cpu) + u8::from(same_card);
    let change = Some(percent / 100.0).filter(|change| *change != 0.0);
    Measured {
        change,
        on: (*on).into(),
        source: source.into(),
        likeness,
    }
}

/// The driver of FreeBSD for the same cards.
fn family(driver: &str) -> &str {
    match driver {
        "ixgbe" => "ix",
        "cxgb4" | "cc" => "cxl",
        "mlx4_en" | "mlx4_core" => "mlxen",
        "mlx5_core" => "mce",
        "be2net" => "oce",
        "e1000e" | "e1000" => "em",
        "i40e" => "ixl",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::{CARDS, CPUS};
    use crate::all;

    #[test]
    fn every_effect_names_a_known_cpu_and_every_known_name_is_used() {
        let effects = || {
            all()
                .flat_map(|rule| rule.measured)
                .flat_map(|(_, effects)| effects.iter())
        };
        for (_, on) in effects() {
            assert!(CPUS.iter().any(|cpu| on.contains(cpu)), "{on}");
        }
        for (at, cpu) in CPUS.iter().enumerate() {
            assert!(effects().any(|(_, on)| on.contains(cpu)), "{cpu}");
            assert!(
                CPUS[..at].iter().all(|before| !cpu.starts_with(before)),
                "{cpu} is never found"
            );
        }
        for (word, _) in CARDS {
            assert!(effects().any(|(_, on)| on.contains(word)), "{word}");
        }
    }
}
