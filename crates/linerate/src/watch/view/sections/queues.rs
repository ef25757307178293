//! The queues of the interface that is shown: a line each, or cells side by side.

use super::{
    BAD, BOLD, DIM, RX, Rows, Section, Shown, TX, WARN, bar, figure, heading, section, selected,
    short,
};
use linerate_measure::watch::{
    InterfaceRates, QueueRates, QueueState, Rates, SideRates, queue_states,
};
use ratatui::style::Style;
use ratatui::text::{Line, Span};

/// The queues of an interface, in the order in which they are shown, with their states.
fn order_of_queues(interface: &InterfaceRates, by_rate: bool) -> Vec<(usize, QueueState)> {
    let rx: Vec<Option<SideRates>> = interface.queues.iter().map(|queue| queue.rx).collect();
    let mut order: Vec<(usize, QueueState)> = queue_states(&rx).into_iter().enumerate().collect();
    if by_rate {
        let of = |nth: usize| {
            let queue = &interface.queues[nth];
            let busy = |side: Option<SideRates>| side.map_or(0.0, |side| side.pps + side.drops);
            busy(queue.rx) + busy(queue.tx)
        };
        order.sort_by(|(a, _), (b, _)| of(*b).total_cmp(&of(*a)));
    }
    order
}

pub(super) fn queues<'a>(shown: &'a Shown, rates: &'a Rates) -> Section<'a> {
    let Some(interface) = selected(rates, shown.interface).map(|nth| &rates.interfaces[nth]) else {
        return section("Queues", 0, |_| Vec::new());
    };
    let order = order_of_queues(interface, shown.by_rate);
    let count = order.len();
    let starving = order
        .iter()
        .filter(|(_, state)| *state == QueueState::Starves)
        .count();
    let most = |side: fn(&QueueRates) -> Option<SideRates>| {
        interface
            .queues
            .iter()
            .filter_map(|queue| Some(side(queue)?.pps))
            .fold(0.0, f64::max)
    };
    let sum = |side: fn(&QueueRates) -> Option<SideRates>| -> f64 {
        interface
            .queues
            .iter()
            .filter_map(|queue| Some(side(queue)?.pps))
            .sum()
    };
    let (most_rx, most_tx) = (most(|queue| queue.rx), most(|queue| queue.tx));
    let (all_rx, all_tx) = (sum(|queue| queue.rx), sum(|queue| queue.tx));
    let mut title = format!("Queues of {}, frames/s", interface.name);
    if starving > 0 {
        title += &format!(": {starving} of {count} starve");
    }
    let of_cell = order.clone();
    Section {
        title,
        least: 5,
        heading: true,
        rows: Rows::Cells {
            count,
            line: Box::new(move |nth, width| match nth.checked_sub(1) {
                None => queue_heading(width),
                Some(nth) => {
                    let (number, state) = order[nth];
                    queue_line(
                        number,
                        state,
                        &interface.queues[number],
                        [(most_rx, all_rx), (most_tx, all_tx)],
                        width,
                    )
                }
            }),
            cell: Box::new(move |nth, width| {
                let (number, state) = of_cell[nth - 1];
                queue_cell(
                    number,
                    state,
                    &interface.queues[number],
                    most_rx.max(most_tx),
                    width,
                )
            }),
            narrowest: 20,
        },
    }
}

/// Width of each of both bars of a line: what its figures leave.
fn bar_width(width: u16) -> usize {
    (usize::from(width).saturating_sub(6 + 2 * FIGURES + 1) / 2).max(2)
}

/// Width of the figures behind a bar: rate, share and drops.
const FIGURES: usize = 7 + 6 + 7;

fn queue_heading(width: u16) -> Line<'static> {
    let bars = bar_width(width) + FIGURES - 7;
    heading(format!(
        "{:<6}{:<bars$}{:>7} {:<bars$}{:>7}",
        "", "rx", "drops", "tx", "drops"
    ))
}

fn mark(state: QueueState) -> Span<'static> {
    match state {
        QueueState::Even => Span::raw(" "),
        QueueState::Starves => Span::styled("▽", WARN),
        QueueState::Overfull => Span::styled("▲", WARN),
    }
}

/// A share of all queues' frames.
fn share(share: f64) -> Span<'static> {
    let text = if share.is_finite() {
        format!("{:>4.0} %", 100.0 * share)
    } else {
        " ".repeat(6)
    };
    Span::styled(text, DIM)
}

/// A queue; of each direction the rate of the busiest and that of all queues.
fn queue_line(
    number: usize,
    state: QueueState,
    queue: &QueueRates,
    [of_rx, of_tx]: [(f64, f64); 2],
    width: u16,
) -> Line<'static> {
    let bars = bar_width(width);
    let mut spans = vec![
        Span::styled(format!("{number:>4}"), BOLD),
        mark(state),
        Span::raw(" "),
    ];
    for (nth, (side, (most, all), style)) in [(queue.rx, of_rx, RX), (queue.tx, of_tx, TX)]
        .into_iter()
        .enumerate()
    {
        if nth == 1 {
            spans.push(Span::raw(" "));
        }
        match side {
            Some(side) => spans.extend([
                Span::styled(bar(side.pps / most, bars), style),
                figure(side.pps, 7, Style::new()),
                share(side.pps / all),
                figure(side.drops, 7, BAD),
            ]),
            None => spans.push(Span::styled(
                format!("{:<1$}", "not counted", bars + FIGURES),
                DIM,
            )),
        }
    }
    Line::from(spans)
}

/// `  12▽███▌     356k  1.2k!`: the queue's number, a bar and the rate of received frames, and drops. A queue that counts no received frames shows its sent ones.
fn queue_cell(
    number: usize,
    state: QueueState,
    queue: &QueueRates,
    most: f64,
    width: u16,
) -> Line<'static> {
    let side = queue
        .rx
        .filter(|rx| rx.pps > 0.0 || queue.tx.is_none())
        .or(queue.tx)
        .unwrap_or_default();
    let style = if queue.rx.is_some_and(|rx| rx.pps > 0.0) || queue.tx.is_none() {
        RX
    } else {
        TX
    };
    let drops = [queue.rx, queue.tx]
        .into_iter()
        .flatten()
        .map(|side| side.drops)
        .sum();
    let bars = usize::from(width).saturating_sub(17);
    let drops = if drops > 0.0 {
        Span::styled(format!("{:>5}!", short(drops)), BAD)
    } else {
        Span::raw("      ")
    };
    Line::from(vec![
        Span::styled(format!("{number:>3}"), BOLD),
        mark(state),
        Span::styled(bar(side.pps / most, bars), style),
        figure(side.pps, 6, Style::new()),
        drops,
        Span::raw(" "),
    ])
}
