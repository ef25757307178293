//! Recommendations for a host.

use super::facts::named;
use crate::document::{Document, Tone};
use linerate_advise::{Advice, Basis, Item, Runtime, Setting, State};

/// Measured effects of an item that are shown. The JSON has all.
const EFFECTS: usize = 4;

/// The page of `linerate advise`. `name`: where the facts come from.
pub fn advice(name: &str, advice: &Advice) -> Document {
    let mut page = Document::default();
    let release = advice.system.release.as_deref().unwrap_or("of unknown release");
    page.heading(format!(
        "Advice for {name}: {} {release} as {} {}",
        named(&advice.system.kernel),
        article(advice),
        advice.role
    ));
    let of = |states: &'static [State]| advice.items.iter().filter(|item| states.contains(&item.state));
    let open: Vec<&Item> = of(&[State::Change, State::Measure, State::Undo, State::ByHand]).collect();
    if open.is_empty() {
        page.answer("No rule recommends a change.");
    }
    for (nth, item) in open.into_iter().enumerate() {
        one(&mut page, nth + 1, item);
    }
    page.list("As recommended", "- ", of(&[State::Done]).map(done), Tone::Plain);
    page.list(
        "Not in this release",
        "- ",
        of(&[State::Absent])
            .map(|item| format!("{}: {}", item.title, item.note.as_deref().unwrap_or_default())),
        Tone::Note,
    );
    page.gap();
    page.note("Sorted by expected gain x certainty. Gains were measured on other machines: measure yours. --format shell, ansible or diff prints the lines alone.");
    page
}

fn article(advice: &Advice) -> &'static str {
    if advice.role == linerate_advise::Role::EndHost { "an" } else { "a" }
}

fn one(page: &mut Document, nth: usize, item: &Item) {
    page.gap();
    let (gain, by) = (format!("{:+.1} %", item.gain * 100.0), item.basis);
    let expected = match (item.state, by) {
        (State::Undo, _) => "outdated or harmful".to_string(),
        _ if item.gain == 0.0 => "no gain in speed".into(),
        (_, Basis::Guess) => format!("a guess: {:+.0} %", item.gain * 100.0),
        (_, Basis::Computed) => format!("computed {gain}"),
        (_, Basis::Same) => format!("expected {gain}, measured on hardware like this"),
        (_, Basis::Similar) => format!("expected {gain}, measured on similar hardware"),
        (_, Basis::Other) => format!("expected {gain}, measured on other hardware"),
    };
    let measure = if item.state == State::Measure { "; measure it" } else { "" };
    page.answer(format!("{nth}. {} ({expected}{measure})", item.title));
    let note =
        |page: &mut Document, mark: &str, text: &str| page.item(&format!("   {mark:<9}"), text, Tone::Plain);
    for setting in &item.settings {
        note(page, "set", &changed(setting));
    }
    for setting in &item.settings {
        if let Some(lasting) = &setting.lasting {
            let line = lasting.line.as_ref().map_or(format!("(without) {}", lasting.key), Clone::clone);
            page.code(&format!("            {}: {line}", lasting.file), Tone::Plain);
        } else if matches!(setting.runtime, Some(Runtime::Ifconfig { .. })) {
            page.code(
                &format!("            /etc/rc.conf: add it to the flags of ifconfig_… ({})", setting.name),
                Tone::Note,
            );
        }
    }
    let said = [
        ("here", item.evidence.as_deref()),
        ("computed", item.computation.as_deref()),
        ("why", Some(item.why.as_str())),
        ("cost", Some(item.cost.as_str())),
        ("release", item.note.as_deref()),
    ];
    for (mark, text) in said {
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            note(page, mark, text);
        }
    }
    for effect in item.measured.iter().take(EFFECTS) {
        let change =
            effect.change.map_or("no difference proven".into(), |change| format!("{:+.1} %", change * 100.0));
        note(page, "measured", &format!("{change}: {} ({})", effect.on, effect.source));
    }
    if item.measured.len() > EFFECTS {
        note(
            page,
            "measured",
            &format!("and {} more machines: --json has all", item.measured.len() - EFFECTS),
        );
    }
    if let Some(plan) = &item.plan {
        let lab = if plan.starts_with("lab/") { " --lab LAB.toml" } else { "" };
        note(page, "test", &format!("linerate run {plan}{lab}"));
    }
}

fn changed(setting: &Setting) -> String {
    let now = setting.now.as_deref().unwrap_or("not known");
    let wanted = setting.wanted.as_deref().unwrap_or("the default");
    let boot = if setting.runtime.is_none() { " (at the next boot)" } else { "" };
    format!("{}: {now} -> {wanted}{boot}", setting.name)
}

fn done(item: &Item) -> String {
    let values: Vec<String> = item
        .settings
        .iter()
        .map(|setting| format!("{} {}", setting.name, setting.now.as_deref().unwrap_or_default()))
        .collect();
    format!("{} ({})", item.title, values.join(", "))
}
