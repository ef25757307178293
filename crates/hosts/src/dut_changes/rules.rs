//! Rules that a program loads: those of a file, and those of a set.

use super::scripts::{NFT_BACK, nft_read};
use super::{Form, Input, List, Program};
use linerate_plan::rules::Firewall;
use linerate_plan::rules::own::RuleFile;

/// The firewall with the rules of a file, where this system has it.
pub fn load_rule_file(list: &mut List<'_>, file: &RuleFile) {
    let ends = [&list.target.inside, &list.target.outside].map(|port| port.in_rule_files());
    let (program, arguments) = file.program();
    let apply = Program::new(std::iter::once(program).chain(arguments.iter().copied()));
    let apply = apply.reading(Input::Text(file.mapped(&ends)));
    let what = format!("rule file {} by {program}", file.file);
    if file.firewall.is_pf() {
        return super::pf::load_file(list, what, file, &ends);
    }
    if file.firewall == Firewall::Nftables {
        let back = Program::back(NFT_BACK);
        return list.change(
            what,
            Program::script(nft_read!(), [""; 0]),
            Form::Whole,
            apply,
            back,
        );
    }
    let named = |table: &&str| {
        file.text
            .lines()
            .any(|l| l.trim().strip_prefix('*') == Some(table))
    };
    let tables: Vec<&str> = super::iptables::TABLES.into_iter().filter(named).collect();
    load(list, file.firewall, what, apply, &tables);
}

/// Loads rules by a program, which replaces these tables where it is one of iptables.
pub fn load(
    list: &mut List<'_>,
    firewall: Firewall,
    what: String,
    apply: Program,
    tables: &[&str],
) {
    match firewall {
        Firewall::Iptables => super::iptables::load(list, what, apply, tables),
        Firewall::Ipfw => list.with_undo(what, apply, Program::new(["ipfw", "-q", "-f", "flush"])),
        Firewall::Ipf => list.with_undo(what, apply, Program::new(["ipf", "-Fa"])),
        _ => list.add(what, None, apply, list.undone_with(super::pf::STEP)),
    }
}
