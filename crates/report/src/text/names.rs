//! What the slots of a campaign are called: variant, family, length, and only as much more as tells them apart.

use linerate_measure::record::{Campaign, Slot};
use linerate_plan::units::Si;

/// The names of a campaign's slots, by index.
#[derive(Debug)]
pub struct Names(Vec<String>);

impl Names {
    /// Names that are known.
    pub fn given(names: Vec<String>) -> Self {
        Names(names)
    }

    /// Names for all slots of `campaign`.
    pub fn of(campaign: &Campaign) -> Self {
        let slots = &campaign.slots;
        if campaign.planned.as_ref().is_some_and(|planned| planned.file.is_some()) {
            // A plan gives each of its cells a name of its own.
            return Names((0..slots.len()).map(|slot| campaign.name_of(slot)).collect());
        }
        let differ = |part: fn(&Slot) -> String| slots.windows(2).any(|w| part(&w[0]) != part(&w[1]));
        let parts: [fn(&Slot) -> String; 4] = [transport, rate, checksum, signature];
        let telling: Vec<fn(&Slot) -> String> = parts.into_iter().filter(|p| differ(*p)).collect();
        let name = |slot: &Slot| {
            let more = telling.iter().map(|part| part(slot)).filter(|p| !p.is_empty());
            std::iter::once(title(slot)).chain(more).collect::<Vec<_>>().join(", ")
        };
        Names(slots.iter().map(name).collect())
    }

    /// The name of slot number `slot`.
    pub fn get(&self, slot: usize) -> &str {
        self.0.get(slot).map_or("unknown slot", String::as_str)
    }
}

/// What is said of several is said once: texts in the order in which they come, each with all that it is said of.
pub fn together<T: PartialEq, N>(said: impl IntoIterator<Item = (T, N)>) -> Vec<(T, Vec<N>)> {
    let mut groups: Vec<(T, Vec<N>)> = Vec::new();
    for (text, name) in said {
        match groups.iter_mut().find(|(known, _)| *known == text) {
            Some((_, names)) => names.push(name),
            None => groups.push((text, vec![name])),
        }
    }
    groups
}

/// Names that are listed one by one at most.
const MOST: usize = 3;

/// The first of these names, and how many more there are.
pub fn listed(names: &[String]) -> String {
    let more = names.len().saturating_sub(MOST);
    let first = names[..names.len() - more].join("; ");
    if more > 0 { format!("{first} and {more} more") } else { first }
}

fn title(slot: &Slot) -> String {
    match slot.lengths_fcs.len() {
        0 | 1 => slot.title(),
        _ => format!("{} ({:.1} B avg)", slot.title(), slot.average_len_fcs()),
    }
}

fn transport(slot: &Slot) -> String {
    slot.transport.clone()
}

fn rate(slot: &Slot) -> String {
    slot.asked_fps.map_or_else(|| "max".into(), |fps| format!("{}pps", Si(fps)))
}

fn checksum(slot: &Slot) -> String {
    if slot.l4_checksum { String::new() } else { "no checksum".into() }
}

fn signature(slot: &Slot) -> String {
    if slot.signed { String::new() } else { "unsigned".into() }
}
