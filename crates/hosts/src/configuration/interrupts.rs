//! The interrupts of a card, and the queue that each of them serves, by the names that drivers give them.

use super::{Card, Interrupt};

/// Parts of the names of interrupts for a card's link, its commands and its events.
const OTHERS: [&str; 12] = [
    "link", "evt", "event", "async", "config", "ctrl", "admin", "mgmt", "misc", "cmd", "pages",
    "fdir",
];

impl Card {
    /// The interrupts of its queues, each with the queue's number, in the order of the queues. Where no name has a queue, the card has
    /// one interrupt for everything.
    pub fn queue_interrupts(&self) -> Vec<(u32, &Interrupt)> {
        let of_queue = |irq: &Interrupt| {
            let name = irq.name.split('@').next()?;
            // Some drivers give their link's interrupt the name of the card.
            let number = &name[name.trim_end_matches(|c: char| c.is_ascii_digit()).len()..];
            number.parse::<u32>().ok().filter(|_| name != self.name)
        };
        let is_other = |irq: &&Interrupt| {
            let name = irq.name.to_ascii_lowercase();
            OTHERS.iter().any(|other| name.contains(other))
        };
        let all: Vec<&Interrupt> = self
            .interrupts
            .iter()
            .filter(|irq| !is_other(irq))
            .collect();
        let mut queues: Vec<(u32, &Interrupt)> = all
            .iter()
            .filter_map(|irq| Some((of_queue(irq)?, *irq)))
            .collect();
        if queues.is_empty() {
            queues = all.into_iter().map(|irq| (0, irq)).collect();
        }
        queues.sort_by_key(|(queue, irq)| (*queue, irq.number));
        queues
    }

    /// Whether an interrupt bears the name of this card, where the system does not list the card's interrupts.
    pub(super) fn is_named_in(&self, interrupt: &str) -> bool {
        let rest = interrupt.strip_prefix(self.name.as_str());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', ':', '.']))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names of a card's interrupts, by number from 98 on.
    fn card(name: &str, interrupts: &[&str]) -> Card {
        let of = |(number, name): (u32, &&str)| Interrupt {
            number,
            name: (*name).into(),
            ..Interrupt::default()
        };
        let interrupts = (98..).zip(interrupts).map(of).collect();
        Card {
            name: name.into(),
            interrupts,
            ..Card::default()
        }
    }

    #[track_caller]
    fn are(card: &Card, expected: &[(u32, u32)]) {
        let found: Vec<(u32, u32)> = card
            .queue_interrupts()
            .into_iter()
            .map(|(queue, irq)| (queue, irq.number))
            .collect();
        assert_eq!(found, expected, "{card:?}");
    }

    /// As Linux 6.12 names them.
    #[test]
    fn only_the_interrupts_of_queues_are_spread() {
        let virtio = [
            "virtio3-config",
            "virtio3-input.0",
            "virtio3-output.0",
            "virtio3-input.1",
        ];
        are(&card("in0", &virtio), &[(0, 99), (0, 100), (1, 101)]);
        are(
            &card("in0", &["in0-rxtx-0", "in0-rxtx-1", "in0-event-2"]),
            &[(0, 98), (1, 99)],
        );
        are(
            &card("in0", &["in0-rx-0", "in0-tx-0", "in0"]),
            &[(0, 98), (0, 99)],
        );
        are(
            &card("in0", &["in0", "in0-TxRx-10", "in0-TxRx-9"]),
            &[(9, 100), (10, 99)],
        );
        // One for everything: INTx, MSI.
        are(&card("in0", &["in0"]), &[(0, 98)]);
        are(
            &card("in0", &["virtio3-config", "virtio3-virtqueues"]),
            &[(0, 99)],
        );
    }
}
