//! Recommendations for a host.

use super::facts::named;
use crate::prelude::*;
use linerate_advise::{Advice, Basis, Item, Role, Runtime, Setting, State};

/// Measured effects of an item that are shown. The JSON has all.
const EFFECTS: usize = 4;

/// The page of `linerate advise`. `name`: where the facts come from.
pub fn advice(name: &str, advice: &Advice) -> Document {
    let mut page = Document::default();
    let release = advice
        .system
        .release
        .as_deref()
        .unwrap_or("of unknown release");
    let n = when(advice.role == Role::EndHost, "n");
    page.heading(format!(
        "Advice for {name}: {} {release} as a{n} {}",
        named(&advice.system.kernel),
        advice.role
    ));
    let of = |states: &'static [State]| {
        advice
            .items
            .iter()
            .filter(|item| states.contains(&item.state))
    };
    let open: Vec<&Item> =
        of(&[State::Change, State::Measure, State::Undo, State::ByHand]).collect();
    if open.is_empty() {
        page.answer("No rule recommends a change.");
    }
    for (nth, item) in open.into_iter().enumerate() {
        one(&mut page, nth + 1, item);
    }
    page.entries("As recommended", of(&[State::Done]).map(done));
    let why = |item: &Item| {
        let why = item.note.as_deref().unwrap_or_default();
        format!("{}: {}. {why}", item.id, item.title)
    };
    let unjudged = of(&[State::Unjudged]).map(why);
    page.list("Not judged", "- ", unjudged, Tone::Note);
    let absent = of(&[State::Absent]).map(why);
    page.list("Not in this release", "- ", absent, Tone::Note);
    page.list("Sources", "- ", &advice.sources, Tone::Note);
    page.gap();
    page.note("Sorted by expected gain x certainty. Gains are computed, guessed or measured on other machines, as each item says: measure yours. `linerate apply --item NAME` makes a change, `linerate apply --revert` takes all back. `linerate advise --format shell` prints the changes as a script; ansible and diff are other formats.");
    page
}

fn one(page: &mut Document, nth: usize, item: &Item) {
    page.gap();
    let measure = when(
        item.state == State::Measure,
        "; on some machines a loss: measure it first",
    );
    page.answer(format!("{nth}. {}: {}", item.id, item.title));
    note(page, "gain", &format!("{}{measure}", expected(item)));
    for setting in &item.settings {
        note(page, "set", &changed(setting));
    }
    for (file, lines) in files(item) {
        note(page, "file", file);
        lines
            .iter()
            .for_each(|line| page.code(&format!("            {line}"), Tone::Plain));
    }
    for Setting {
        name,
        place,
        wanted,
        ..
    } in &item.settings
    {
        if let (Some(place), Some(wanted)) = (place, wanted) {
            note(page, "place", &format!("{place}: {name} = {wanted}"));
        }
    }
    let unwritten = |setting: &&Setting| {
        setting.lasting.is_none()
            && setting.place.is_none()
            && matches!(setting.runtime, Some(Runtime::Ifconfig { .. }))
    };
    for Setting { name, .. } in item.settings.iter().filter(unwritten) {
        let text = format!("/etc/rc.conf: add it to the flags of ifconfig_… ({name})");
        note(page, "file", &text);
    }
    let said = [
        ("here", item.evidence.as_deref()),
        ("computed", item.computation.as_deref()),
        ("why", Some(item.why.as_str())),
        ("cost", Some(item.cost.as_str())),
        ("release", item.note.as_deref()),
        ("decide", item.reserve.as_deref()),
    ];
    for (mark, text) in said {
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            note(page, mark, text);
        }
    }
    let measured = item.measured.iter().map(|effect| {
        let change = effect.change.map_or("no difference proven".into(), plus);
        format!("{change}: {} ({})", effect.on, effect.source)
    });
    measured
        .take(EFFECTS)
        .for_each(|text| note(page, "measured", &text));
    let more = item.measured.len().saturating_sub(EFFECTS);
    if more > 0 {
        note(
            page,
            "measured",
            &format!("and {more} more machines: --json has all"),
        );
    }
    item.test().iter().for_each(|test| note(page, "test", test));
}

fn note(page: &mut Document, mark: &str, text: &str) {
    page.entry(&format!("   {mark:<9}"), text);
}

fn plus(share: f64) -> String {
    format!("{:+.1} %", share * 100.0)
}

fn expected(item: &Item) -> String {
    let gain = plus(item.gain);
    match (item.state, item.basis) {
        (State::Undo, _) => "the present setting is outdated or harmful".to_string(),
        _ if item.gain == 0.0 => "none in speed".into(),
        (_, Basis::Guess) if item.gain >= 1.0 => "this role needs it".into(),
        (_, Basis::Guess) => format!("{:+.0} %, a guess", item.gain * 100.0),
        (_, Basis::Computed) => format!("{gain}, computed"),
        (_, Basis::Same) => format!("{gain}, measured on hardware like this"),
        (_, Basis::Similar) => format!("{gain}, measured on similar hardware"),
        (_, Basis::Other) => format!("{gain}, measured on other hardware"),
    }
}

/// The files that make the settings last, with their lines.
fn files(item: &Item) -> Vec<(&str, Vec<String>)> {
    let mut files: Vec<(&str, Vec<String>)> = Vec::new();
    for lasting in item.settings.iter().filter_map(|of| of.lasting.as_ref()) {
        let without = || format!("(without) {}", lasting.key);
        let line = lasting.line.clone().unwrap_or_else(without);
        match files.iter_mut().find(|(file, _)| *file == lasting.file) {
            // Flags of an interface share a line.
            Some((_, lines)) if lines.contains(&line) => {}
            Some((_, lines)) => lines.push(line),
            None => files.push((&lasting.file, vec![line])),
        }
    }
    files
}

fn changed(setting: &Setting) -> String {
    let now = setting.now.as_deref().unwrap_or("not known");
    let wanted = setting.wanted.as_deref().unwrap_or("the default");
    let boot = match (&setting.runtime, &setting.lasting) {
        (None, None) if setting.place.is_some() => "",
        (None, _) => " (at the next boot)",
        (Some(Runtime::Ifconfig { .. }), _) | (_, Some(_)) => "",
        (Some(_), None) if setting.place.is_some() => "",
        (Some(_), None) => " (until the next boot)",
    };
    format!("{}: {now} -> {wanted}{boot}", setting.name)
}

fn done(item: &Item) -> String {
    let value = |of: &Setting| format!("{} {}", of.name, of.now.as_deref().unwrap_or_default());
    let values = item.settings.iter().map(value).joined(", ");
    format!("{}: {} ({values})", item.id, item.title)
}
