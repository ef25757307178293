//! The page of `linerate import benchlab`: files made, the new place of each setting, settings left out, and next steps.

use super::plan::{diagnostics, plan_line};
use crate::prelude::*;
use linerate_import::benchlab::{Imported, LAB_FILE, Note};
use linerate_plan::Plan;
use linerate_plan::lab::{Lab, Role};
use linerate_plan::names::Named;

/// The result of an import, for a person to read. `out` is the output folder. ASCII only.
pub fn benchlab(config: &str, imported: &Imported, out: Option<&str>) -> Document {
    let place = |name: &str| {
        out.map_or_else(
            || name.to_string(),
            |out| format!("{}/{name}", out.trim_end_matches('/')),
        )
    };
    let mut page = Document::default();
    let notes = &imported.notes;
    let plans = match imported.plans.len() {
        1 => "a plan".to_string(),
        n => format!("{n} plans"),
    };
    page.answer(format!("{config}: a lab file and {plans}."));
    for (heading, notes) in [
        ("Carried over", &notes.carried),
        ("Not carried over", &notes.not_carried),
    ] {
        page.entries(heading, notes.iter().map(Note::to_string));
    }
    if notes.more > 0 {
        page.item("- ", format!("and {} more", notes.more), Tone::Note);
    }
    page.heading("Files");
    let lab_path = place(LAB_FILE);
    match Lab::read(imported.lab.as_bytes()) {
        Ok(lab) => {
            page.say(lab_line(&lab_path, &lab));
            page.append(diagnostics(&lab_path, &lab.remarks));
        }
        Err(faults) => page.append(diagnostics(&lab_path, &faults)),
    }
    for plan in &imported.plans {
        match Plan::read(plan.text.as_bytes()) {
            Ok(read) => page.say(plan_line(&place(&plan.name), &read)),
            Err(faults) => page.append(diagnostics(&place(&plan.name), &faults)),
        }
    }
    page.gap();
    match (out, imported.plans.first()) {
        (Some(_), Some(plan)) => {
            page.say("Next:");
            let plan = place(&plan.name);
            page.code(
                &format!("  linerate lab check {lab_path}\n  linerate plan show {plan}"),
                Tone::Plain,
            );
        }
        _ => page.say("Nothing was written: --out DIR writes these files."),
    }
    page
}

/// One line that says that a lab file has no faults, and lists its hosts.
pub fn lab_line(file: &str, lab: &Lab) -> String {
    let host = |role: Role| {
        let hosts = lab.hosts.iter().filter(|host| host.roles.contains(&role));
        let names: Vec<&str> = hosts.map(|host| host.name.as_str()).collect();
        (!names.is_empty()).then(|| format!("{} {}", role.key(), names.join(", ")))
    };
    format!(
        "{file}: no faults; {}",
        Role::all().filter_map(host).joined("; ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Style;
    use linerate_import::benchlab::{Source, import};

    const CONFIG: &str = "SENDER_ADMIN=g\nRECEIVER_ADMIN=r\nDUT_ADMIN=d\nSENDER_LAB_IF=ix0\nRECEIVER_LAB_IF=ix0\nOTHER=1\n";

    fn page(config: &str, path: &str, out: Option<&str>) -> String {
        let source = Source {
            path: path.into(),
            config: config.into(),
            ..Source::default()
        };
        benchlab(path, &import(&source).unwrap(), out).text(Style::default())
    }

    #[test]
    fn what_is_lacking_is_shown_with_its_place() {
        let page = page(CONFIG, "a.config", None);
        for part in [
            "a.config: a lab file and a plan.\n",
            "- a.config:1: SENDER_ADMIN: hosts.generator.ssh\n",
            "Not carried over\n- a.config:6: OTHER:",
            "nothing says which interface of dut [in] is",
            "PLAN.toml: no faults; 1 cell,",
            "Nothing was written: --out DIR",
        ] {
            assert!(page.contains(part), "{part}\n{page}");
        }
    }

    #[test]
    fn a_lab_without_faults_is_one_line_and_its_remarks() {
        let lab = format!("{CONFIG}SENDER_LAB_IP=198.18.0.1\nRECEIVER_LAB_IP=198.19.0.1\n");
        let page = page(&lab, "a.config", Some("out/"));
        let line = "out/LAB.toml: no faults; generator generator; dut dut; receiver receiver\n";
        assert!(
            page.contains(line) && page.contains("warning: nothing will be sent"),
            "{page}"
        );
        assert!(
            page.ends_with(
                "Next:\n  linerate lab check out/LAB.toml\n  linerate plan show out/PLAN.toml\n"
            ),
            "{page}"
        );
    }

    #[test]
    fn names_command_no_terminal() {
        let path = format!("{}\u{1b}[31m\u{202e}", "x".repeat(300));
        let page = page(CONFIG, &path, Some(&path));
        assert!(
            page.chars().all(|c| matches!(c, ' '..='~' | '\n')),
            "{page:?}"
        );
    }
}
