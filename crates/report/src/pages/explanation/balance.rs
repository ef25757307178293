//! The picture of frames by receive queue, or by CPU.

use crate::prelude::*;
use linerate_measure::record::{Balance, Explanation, Place};

/// Cells that are drawn.
const DRAWN: usize = 6;

/// A picture for each cell whose frames come to several places; `figures`: for a page that has the figures beside the bars.
pub fn balance(
    page: &mut Document,
    campaign: &Campaign,
    explanations: &[Explanation],
    figures: bool,
) {
    let spread: Vec<&Explanation> = explanations
        .iter()
        .filter(|e| !e.balance.is_empty())
        .collect();
    if spread.is_empty() {
        return;
    }
    page.heading("Balance of received frames");
    for explanation in spread.iter().take(DRAWN) {
        let places = &explanation.balance;
        let (kind, short) = names(places[0].place);
        page.say(format!(
            "{}, by {kind}:",
            campaign.name_of(explanation.slot)
        ));
        let percent = |place: &Balance| place.shares.map(|share| 100.0 * share);
        let bar = |place: &Balance| Bar {
            name: format!("{short} {}", place.number),
            runs: Some(percent(place)),
        };
        let top = places
            .iter()
            .map(|place| percent(place)[2])
            .fold(1.0, f64::max);
        page.blocks.push(Block::Bars(Bars {
            points: places.iter().map(bar).collect(),
            top,
        }));
    }
    let others = spread.len().saturating_sub(DRAWN);
    let others = when(
        others > 0,
        format!(" The records have {others} more cells."),
    );
    let shares = if figures {
        "the smallest, the median and the largest share of all trials"
    } else {
        "# up to the smallest share of any trial, = up to the median, - up to the largest"
    };
    page.note(format!("% of the frames: {shares}.{others}"));
}

/// Places in words, and the word before their numbers.
pub fn names(place: Place) -> (&'static str, &'static str) {
    match place {
        Place::Queue => ("receive queue", "queue"),
        Place::Cpu => ("CPU that entered them into its network stack", "CPU"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::Style;
    use linerate_measure::record::Slot;

    #[test]
    fn each_queue_has_a_bar() {
        let slot = Slot {
            name: "two queues".into(),
            ..Slot::default()
        };
        let campaign = Campaign {
            slots: vec![slot],
            ..Campaign::default()
        };
        let of = |number, shares| Balance {
            place: Place::Queue,
            number,
            shares,
        };
        let balance = vec![of(0, [0.2, 0.25, 0.3]), of(1, [0.7, 0.75, 0.8])];
        let mut page = Document::default();
        super::balance(
            &mut page,
            &campaign,
            &[Explanation {
                balance,
                ..Explanation::default()
            }],
            false,
        );
        let text = page.text(Style::default());
        let bar = |queue: &str| {
            text.lines()
                .find(|line| line.contains(queue))
                .unwrap()
                .len()
        };
        assert!(
            text.contains("two queues, by receive queue:") && text.contains("75.00"),
            "{text}"
        );
        assert!(bar("queue 1") > 2 * bar("queue 0"), "{text}");
        let mut page = Document::default();
        super::balance(&mut page, &campaign, &[Explanation::default()], false);
        assert_eq!(page, Document::default());
    }
}
