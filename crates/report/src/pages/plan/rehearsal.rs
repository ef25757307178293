//! The actions of a plan on the hosts of a lab, with the scripts that it would run there.

use crate::prelude::*;
use linerate_hosts::dut_changes::script_of;
use linerate_hosts::rehearsal::Part;

/// The actions of a plan on the hosts of a lab, as a section of the plan's page, with the text of their scripts where it is wanted.
pub fn rehearsal(parts: &[Part], whole: bool) -> Document {
    let mut page = Document::default();
    page.gap();
    page.heading("What would be done on which host");
    let mut scripts = Vec::new();
    for part in parts {
        page.answer(format!("{} {}", part.host, part.when));
        if part.actions.is_empty() {
            page.entry("  ", "nothing");
        }
        for action in &part.actions {
            let quote = when(!action.argv.is_empty(), "`");
            let command = called(&action.argv, &mut scripts)
                .unwrap_or_else(|| format!("{quote}{}{quote}", action.command));
            let undo = called(&action.undo_argv, &mut scripts).or(action.undo.clone());
            let undo = undo.map_or(String::new(), |undo| format!("; undone by {undo}"));
            page.entry("  ", format!("{}: {command}{undo}", action.what));
        }
    }
    if !whole && !scripts.is_empty() {
        page.gap();
        page.note(format!(
            "{} of linerate for sh(1) in these commands: --scripts prints the text.",
            counted(scripts.len(), "script")
        ));
        return page;
    }
    for (at, script) in scripts.iter().enumerate() {
        if at == 0 {
            page.gap();
            page.heading("Scripts of linerate for sh(1) in these commands");
        }
        page.answer(format!("script {}", at + 1));
        let indented = script.lines().map(|line| format!("  {line}"));
        page.code(&indented.joined("\n"), Tone::Plain);
    }
    page
}

/// The call of a script by its number among `scripts`, with its arguments; `None` if it is a program of the host.
fn called<'a>(argv: &'a [String], scripts: &mut Vec<&'a str>) -> Option<String> {
    let script = script_of(argv)?;
    let mut number = |text: &'a str| {
        let known = scripts.iter().position(|known| *known == text);
        let at = known.unwrap_or_else(|| {
            scripts.push(text);
            scripts.len() - 1
        });
        format!("script {}", at + 1)
    };
    let before = script.before.iter().cloned();
    let own = number(script.text);
    // Scripts may be given others.
    let given = script.given.iter().map(|word| {
        if word.contains('\n') {
            format!("({})", number(word))
        } else {
            word.clone()
        }
    });
    let with = (!script.given.is_empty()).then(|| "with".to_string());
    let words = before.chain([own]).chain(with).chain(given).joined(" ");
    Some(format!("`{words}`"))
}
