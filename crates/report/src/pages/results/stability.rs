//! Whether DUTs lose frames far below their rate.

use super::shown::Shown;
use crate::prelude::*;
use linerate_measure::record::{LowLoad, Searched, Stability};

/// An unstable DUT in a sentence, with its loss.
pub fn sentence(shown: &Shown<'_>, slot: usize) -> Option<String> {
    let search = shown.search(slot)?;
    let low = search.unstable()?;
    let interval = low.loss.low.zip(low.loss.high);
    let interval = interval.map_or(String::new(), |(least, most)| {
        format!(", 95 % interval {}..{}", percent(least), percent(most))
    });
    let place = low.losses.first().map(|loss| format!("; {}", loss.place));
    let loose = search.goals.iter().find(|goal| goal.goal.loss > 0.0);
    let instead = loose.map_or(
        "search for one with little loss: linerate search --goal pdr".into(),
        |goal| format!("see {}", goal.name),
    );
    Some(format!(
        "{}: unstable: {} (in the median of the trials {} %{interval}{}). No rate without loss is given; {instead}.",
        shown.name(slot),
        lost_at(low, shown.noun()),
        percent(low.loss.median),
        place.unwrap_or_default(),
    ))
}

/// The other DUTs in a line.
pub fn line(shown: &Shown<'_>) -> String {
    let known = shown
        .summary
        .searches
        .iter()
        .filter(|of| of.unstable().is_none());
    let known = known.filter_map(|of| Some((of, of.stability.as_ref()?)));
    let tried = |(_, of): &(&Searched, &Stability)| !of.loads.is_empty();
    let (lossy, clean): (Vec<_>, Vec<_>) = known
        .filter(tried)
        .partition(|(_, of)| of.loads.iter().any(|low| low.lossy > 0));
    let lossy = lossy.iter().flat_map(|(search, of)| {
        let loads = of.loads.iter().filter(|low| low.lossy > 0);
        loads.map(|low| {
            format!(
                "{} {}, in {} of {} (a DUT is unstable after six in succession)",
                shown.name(search.slot),
                lost_at(low, shown.noun()),
                low.lossy,
                counted(low.trials, "trial")
            )
        })
    });
    let of_clean =
        |(_, of): &(&Searched, &Stability)| of_rate(&of.loads.iter().collect::<Vec<_>>());
    let clean = distinct(clean.iter().map(of_clean))
        .into_iter()
        .map(|loads| {
            let alike = clean.iter().filter(|of| of_clean(of) == loads);
            let sent: u64 = alike
                .flat_map(|(_, of)| &of.loads)
                .map(|low| low.sent)
                .sum();
            format!(
                "no {} of {} was lost at {loads}",
                shown.noun(),
                grouped(sent)
            )
        });
    lossy.chain(clean).joined("; ")
}

/// The trials at each load.
pub fn section(page: &mut Document, shown: &Shown<'_>) {
    let searches = shown.summary.searches.iter();
    let loads = searches.flat_map(|of| {
        let loads = of.stability.iter().flat_map(|stability| &stability.loads);
        loads.map(move |low| (of.slot, low))
    });
    let loads: Vec<(usize, &LowLoad)> = loads.collect();
    if loads.is_empty() {
        return;
    }
    let unit = RateUnit::of(loads.iter().map(|(_, low)| low.load));
    let interval = |low: &LowLoad| {
        let (least, most) = low.loss.low.zip(low.loss.high)?;
        Some(format!("{}..{}", percent(least), percent(most)))
    };
    let table = Table::of(loads)
        .column("cell", "", |(slot, _)| shown.numbered(*slot))
        .column("% of", "its rate", |(_, low)| share(low.share))
        .rate("load", unit, |(_, low)| low.load)
        .column("trials", "", |(_, low)| low.trials)
        .column("with", "loss", |(_, low)| low.lossy)
        .column("frames", "sent", |(_, low)| count(low.sent))
        .column("frames", "lost", |(_, low)| count(low.lost))
        .column("loss %", "median", |(_, low)| share(low.loss.median))
        .if_any("95 %", "interval", |(_, low)| interval(low));
    page.section("Loads far below the rate", table);
    page.note("These trials come before the search, and are no part of it. Shares are of the rate that the DUT forwarded at the highest load. A DUT is unstable if six successive trials at a load lost frames.");
}
