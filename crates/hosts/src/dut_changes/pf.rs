//! pf of FreeBSD and OpenBSD: on with a variant's rules, or off, and afterwards as it was.
//!
//! A rule set that pfctl prints is not always one that it loads: lists of addresses have become tables with names that no other load
//! gives them. So `read` decides before the change what puts the running rules back, and fails where nothing does. `back` compares what
//! then runs with what ran before; where it differs, a pf that was on is left closed.

use super::{Form, Input, List, Program, Step, Undo};
use linerate_plan::rules::own::{LabEnd, RuleFile};

/// See its first lines.
const PF: &str = include_str!("pf.sh");
/// The name of the step that turns pf on or off. Its undoing also restores the rules.
pub(super) const STEP: &str = "pf";

/// pf on, for rules that are loaded next, or off. Its undoing restores everything that `pf.sh` reads.
pub(super) fn turn(list: &mut List<'_>, on: bool) {
    let pf = |mode: &str| Program::script(PF, [mode]);
    let back = Program::script(PF, std::iter::once("back".into()).chain(networks(list)));
    let apply = pf(if on { "on" } else { "off" });
    let read = pf("read").asking(Form::Whole);
    let is = pf("is").asking(Form::Trimmed);
    // Whoever has no state when pf goes on is cut: see `turn_on` of pf.sh, which does what it can.
    list.steps.steps.push(Step {
        cuts: true,
        ..Step::change(STEP, read, apply, back.reading(Input::Was))
            .checked(is, [if on { "on" } else { "off" }])
    });
}

/// Kills the states of the test networks, so that each frame meets the new rules. States outlive the rules that made them. Those of
/// other networks, and of ssh, stay.
pub(super) fn forget(list: &mut List<'_>) {
    let program = forget_networks(networks(list));
    list.add(
        "states of the test networks killed",
        None,
        program,
        Undo::Stays,
    );
}

pub(super) fn forget_networks(networks: Vec<String>) -> Program {
    Program::script(PF, std::iter::once("forget".into()).chain(networks))
}

/// A user's rules, with rules for linerate's ssh connection before them.
pub(super) fn load_file(list: &mut List<'_>, what: String, file: &RuleFile, ends: &[LabEnd; 2]) {
    let text = before_first_rule(&file.mapped(ends), SSH_RULES);
    let apply = Program::script(PF, ["file"]).reading(Input::Text(text));
    list.add(
        format!("{what}, after two rules that pass linerate's ssh"),
        None,
        apply,
        list.undone_with(STEP),
    );
    forget(list);
}

/// The networks of test frames.
fn networks(list: &List<'_>) -> Vec<String> {
    let mut all: Vec<String> = list
        .target
        .ports()
        .into_iter()
        .flat_map(|port| port.networks.clone())
        .collect();
    all.sort();
    all.dedup();
    all
}

/// A connection that is under way is taken without a SYN. pf.sh sets the macros.
const SSH_RULES: &str = "\
pass quick proto tcp from $linerate_client to $linerate_server port $linerate_port flags any keep state (sloppy)
pass quick proto tcp from $linerate_server port $linerate_port to $linerate_client flags any keep state (sloppy)
";

/// A pf.conf with these lines before its first rule that filters: FreeBSD wants options, queues and translations to come first.
fn before_first_rule(text: &str, lines: &str) -> String {
    const RULES: [&str; 6] = ["pass", "block", "match", "anchor", "antispoof", "load"];
    let (mut at, mut depth, mut goes_on) = (0, 0i32, false);
    for line in text.split_inclusive('\n') {
        let plain = line.split('#').next().unwrap_or_default();
        let first = plain.split_whitespace().next().unwrap_or_default();
        if depth <= 0 && !goes_on && RULES.contains(&first) {
            break;
        }
        depth += plain.matches('{').count() as i32 - plain.matches('}').count() as i32;
        goes_on = plain.trim_end().ends_with('\\');
        at += line.len();
    }
    let (head, rest) = text.split_at(at);
    let end = if head.is_empty() || head.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    format!("{head}{end}{lines}{rest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_for_ssh_come_first_among_those_that_filter() {
        let text = "ext = \"{ em0 }\" # pass\nset skip on { lo0,\n pass }\nnat on em0 \\\n pass from a to b\nblock all\npass quick on em1\n";
        let with = before_first_rule(text, "X\n");
        assert!(
            with.ends_with(" pass from a to b\nX\nblock all\npass quick on em1\n"),
            "{with}"
        );
        assert_eq!(before_first_rule("a = 1", "X\n"), "a = 1\nX\n");
        assert_eq!(before_first_rule("pass", "X\n"), "X\npass");
    }
}
