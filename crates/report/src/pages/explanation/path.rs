//! Things that frames meet on their way through a DUT beyond plain routing.

use crate::prelude::*;
use linerate_measure::record::{Campaign, Explanation, OnPath, PathEntry};

/// The list of each slot whose DUT was asked: at most `most` lines for all of them together, or everything.
pub(super) fn path(
    page: &mut Document,
    campaign: &Campaign,
    explanations: &[Explanation],
    most: Option<usize>,
) {
    let asked: Vec<(&Explanation, &OnPath)> = explanations
        .iter()
        .filter_map(|explanation| Some((explanation, explanation.path.as_ref()?)))
        .collect();
    if asked.is_empty() {
        return;
    }
    page.heading("On this path");
    let shown = most.map_or(asked.len(), |most| most.max(1));
    for (explanation, path) in asked.iter().take(shown) {
        let name = match asked.len() {
            1 => String::new(),
            _ => format!("{}: ", campaign.name_of(explanation.slot)),
        };
        if path.entries.is_empty() {
            page.entry("- ", format!("{name}nothing beyond plain routing"));
            continue;
        }
        let said = |entry: &PathEntry| says(entry, path.profiled);
        match (most, asked.len()) {
            (None, _) => {
                for entry in &path.entries {
                    page.entry("- ", format!("{name}{}{}", said(entry), functions(entry)));
                }
            }
            (Some(most), 1) => {
                let entries = path.entries.iter().map(said);
                page.items("- ", entries, Tone::Plain, (most, "; --full has them"));
            }
            // A line for each cell.
            (Some(_), _) => {
                let more = path.entries.len().saturating_sub(2);
                let more = when(more > 0, format!("; {more} more on this path with --full"));
                let entries = path.entries.iter().take(2).map(said).joined("; ");
                page.entry("- ", format!("{name}{entries}{more}"));
            }
        }
    }
    if asked.len() > shown {
        let cells = counted(asked.len() - shown, "more cell");
        page.note(format!("{cells} with --full."));
    }
    not_known(page, &asked, most.is_none());
    if most.is_none() {
        ways(page, campaign, &asked);
    }
}

/// `htb, 1 class, out0 (queueing discipline): 22 % of a frame's time, 333 ns`.
fn says(entry: &PathEntry, profiled: bool) -> String {
    let at = match entry.place.as_str() {
        "" => String::new(),
        place => format!(", {place}"),
    };
    let share = match (entry.share, profiled) {
        _ if entry.functions.is_empty() => "no functions of its own".into(),
        (_, false) => "no profile".into(),
        (None, true) => "no share seen".into(),
        (Some(share), true) => {
            let ns = entry.ns.map_or(String::new(), |ns| format!(", {ns:.0} ns"));
            format!("{} % of a frame's time{ns}", percent(share))
        }
    };
    format!("{}{at} ({}): {share}", entry.name, entry.kind.words())
}

fn functions(entry: &PathEntry) -> String {
    let error = entry
        .error
        .map(|error| format!("standard error {} %", percent(error)));
    let names = (!entry.functions.is_empty()).then(|| entry.functions.join(", "));
    let parts: Vec<String> = error.into_iter().chain(names).collect();
    match parts.is_empty() {
        true => String::new(),
        false => format!(" ({})", parts.join("; ")),
    }
}

/// In short, without the reasons.
fn not_known(page: &mut Document, asked: &[(&Explanation, &OnPath)], reasons: bool) {
    let all = asked.iter().flat_map(|(_, path)| &path.not_known);
    let said = distinct(
        all.map(|lacking| match (reasons, lacking.split_once(" (")) {
            (false, Some((what, _))) => what,
            _ => lacking.as_str(),
        }),
    );
    if !said.is_empty() {
        page.note(format!(
            "linerate could not find out about: {}.",
            said.join("; ")
        ));
    }
}

/// The ways of the test's addresses.
fn ways(page: &mut Document, campaign: &Campaign, asked: &[(&Explanation, &OnPath)]) {
    for (explanation, path) in asked.iter().filter(|(_, path)| !path.ways.is_empty()) {
        let name = campaign.name_of(explanation.slot);
        page.note(format!(
            "Routes of the frames, {name}: {}.",
            path.ways.join("; ")
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{FORMATS, Style};
    use linerate_measure::record::{Met, Slot};

    fn entry(name: &str, share: Option<f64>, functions: &[&str]) -> PathEntry {
        PathEntry {
            kind: Met::QueueingDiscipline,
            name: name.into(),
            place: "out0".into(),
            functions: functions.iter().map(|name| name.to_string()).collect(),
            share,
            ns: share.map(|share| 1000.0 * share),
            error: share.map(|_| 0.01),
        }
    }

    fn text(paths: &[OnPath], most: Option<usize>) -> String {
        let slot = |id: usize| Slot {
            id,
            name: ["a", "b", "c"][id].into(),
            ..Slot::default()
        };
        let campaign = Campaign {
            slots: (0..paths.len()).map(slot).collect(),
            ..Campaign::default()
        };
        let of = |(slot, path): (usize, &OnPath)| Explanation {
            slot,
            path: Some(path.clone()),
            ..Explanation::default()
        };
        let explanations: Vec<Explanation> = paths.iter().enumerate().map(of).collect();
        let mut page = Document::default();
        path(&mut page, &campaign, &explanations, most);
        FORMATS[0].render(&page, Style::default())
    }

    #[test]
    fn entries_have_their_share_or_say_why_not() {
        let found = OnPath {
            entries: vec![
                entry("htb, 1 class", Some(0.22), &["htb_enqueue*"]),
                entry("tbf", None, &["tbf_enqueue*"]),
                entry("odd", None, &[]),
            ],
            ways: vec!["to 192.0.2.1: device out0, table main".into()],
            not_known: vec!["tracing (it is not mounted)".into()],
            profiled: true,
        };
        let said = text(std::slice::from_ref(&found), Some(8));
        let expected = "On this path\n\
            - htb, 1 class, out0 (queueing discipline): 22.0 % of a frame's time, 220 ns\n\
            - tbf, out0 (queueing discipline): no share seen\n\
            - odd, out0 (queueing discipline): no functions of its own\n\
            linerate could not find out about: tracing.\n";
        assert_eq!(said, expected);
        let unprofiled = OnPath {
            profiled: false,
            ..found.clone()
        };
        let said = text(&[unprofiled], Some(8));
        assert!(
            said.contains("- tbf, out0 (queueing discipline): no profile\n"),
            "{said}"
        );
        let said = text(&[found], None);
        for part in [
            "htb_enqueue*",
            "it is not mounted",
            "to 192.0.2.1: device out0",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
    }

    #[test]
    fn a_plain_path_and_several_cells_take_a_line_each() {
        let plain = OnPath {
            profiled: true,
            ..OnPath::default()
        };
        let said = text(std::slice::from_ref(&plain), Some(8));
        assert_eq!(said, "On this path\n- nothing beyond plain routing\n");
        let some = OnPath {
            entries: (0..5).map(|n| entry(&format!("q{n}"), None, &[])).collect(),
            ..plain.clone()
        };
        let said = text(&[plain.clone(), some.clone(), plain], Some(2));
        assert!(
            said.contains("- a: nothing beyond plain routing\n- b: q0, out0"),
            "{said}"
        );
        assert!(said.contains("1 more cell with --full"), "{said}");
        let said = text(&[some], Some(2));
        assert_eq!(
            said.lines().filter(|line| line.starts_with("- ")).count(),
            3,
            "{said}"
        );
    }
}
