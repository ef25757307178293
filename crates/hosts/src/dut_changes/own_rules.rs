//! Rule files of users: loaded by the firewall's own tool; the host's own rules are restored afterwards.

use super::{Form, Input, List, Program, Undo};
use linerate_plan::rules::Firewall;
use linerate_plan::rules::own::RuleFile;

/// Prints all rules of nftables, if their output can be loaded again: that of iptables' extensions cannot.
const NFT_READ: &str = r#"was=$(nft list ruleset) || exit 1
printf 'flush ruleset\n%s\n' "$was" | nft -c -f - >/dev/null || {
	echo "nft cannot read its own listing, so its rules could not be put back" >&2; exit 1
}
printf '%s\n' "$was""#;
/// Restores the rules that [`NFT_READ`] printed, at once.
const NFT_BACK: &str = r#"{ echo 'flush ruleset'; cat; } | nft -f -"#;
/// Prints the tables that the file names, by the program that is the first argument.
const TABLES_READ: &str = r#"save=$1; shift; for t; do "$save" -t "$t" || exit 1; done"#;
/// Tables of iptables.
const TABLES: [&str; 5] = ["filter", "nat", "mangle", "raw", "security"];

/// The firewall with the rules of a file, where this system has it.
pub fn load(list: &mut List<'_>, file: &RuleFile) {
    let ends = [&list.target.inside, &list.target.outside].map(|port| port.in_rule_files());
    let (program, arguments) = file.program();
    let apply = Program::new(std::iter::once(program).chain(arguments.iter().copied()));
    let apply = apply.reading(Input::Text(file.mapped(&ends)));
    let what = format!("rule file {} by {program}", file.file);
    match file.firewall {
        Firewall::Nftables => {
            let back = Program::script(NFT_BACK, [""; 0]).reading(Input::Was);
            list.change(what, Program::script(NFT_READ, [""; 0]), Form::Whole, apply, back);
        }
        Firewall::Iptables => {
            let named = |table: &&&str| file.text.lines().any(|l| l.trim().strip_prefix('*') == Some(table));
            let save = program.replace("-restore", "-save");
            let tables = TABLES.iter().filter(named).map(|table| (*table).to_string());
            let read = Program::script(TABLES_READ, std::iter::once(save).chain(tables));
            let back = Program::new([program]).reading(Input::Was);
            list.change(what, read, Form::Whole, apply, back);
        }
        Firewall::Ipfw => list.with_undo(what, apply, Program::new(["ipfw", "-q", "-f", "flush"])),
        // The undo of pf's own step restores it.
        _ => list.add(what, None, apply, Undo::Stays),
    }
}
