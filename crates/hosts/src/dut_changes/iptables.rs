//! Tables of iptables, which are afterwards as they were before. A table without rules is no table that is not there: frames run
//! through its chains.

use super::{Form, Input, List, Program};

/// Tables that may be named in a file of rules.
pub(super) const TABLES: [&str; 5] = ["filter", "nat", "mangle", "raw", "security"];

/// Functions for the tables of `$ipt`: iptables or ip6tables. Asking the old kind for a table makes the table. The new kind's are
/// among those of nftables.
macro_rules! functions {
    () => {
        r#"ipt=$1; shift
case $ipt in ip6*) v=ip6 ;; *) v=ip ;; esac
is_new() { "$ipt" -V | grep -q nf_tables; }
chains() { nft list table "$v" "$1" 2>/dev/null | awk '$1 == "chain" { printf " %s", $2 }'; }
is_there() {
	if ! is_new; then grep -qsx "$1" "/proc/net/${v}_tables_names"
	elif command -v nft >/dev/null; then nft list table "$v" "$1" >/dev/null 2>&1
	else "$ipt-save" -t "$1" | grep -qE '^(-A|:[^ ]* (DROP|-))'
	fi
}
"#
    };
}

/// Prints the tables that are its arguments. Of the old kind, a new one must be a module's that can go again.
const READ: &str = concat!(
    functions!(),
    r##"for t; do
	if is_there "$t"; then
		"$ipt-save" -t "$t" || exit 1
		is_new && echo "# chains $t$(chains "$t") "
		continue
	fi
	echo "# absent $t"
	m=${v}table_$t
	is_new || { [ ! -e "/sys/module/$m" ] && modprobe -D "$m" 2>/dev/null | grep -q "/$m\."; } || {
		echo "the kernel would keep an empty table $t of $ipt, and every later frame would run through it: make it once for all variants ('$ipt -t $t -S'), or use nftables" >&2
		exit 1
	}
done"##
);
/// Restores them.
const BACK: &str = concat!(
    functions!(),
    r##"was=$(cat)
printf '%s\n' "$was" | "$ipt-restore" || exit 1
for t; do
	if printf '%s\n' "$was" | grep -qx "# absent $t"; then
		is_there "$t" || continue
		"$ipt" -t "$t" -F && "$ipt" -t "$t" -X || exit 1
		if ! is_new; then rmmod "${v}table_$t" || exit 1
		elif command -v nft >/dev/null; then nft delete table "$v" "$t" || exit 1
		fi
	elif is_new; then
		had=$(printf '%s\n' "$was" | sed -n "s/^# chains $t / /p")
		for c in $(chains "$t"); do
			case $had in *" $c "*) ;; *) nft delete chain "$v" "$t" "$c" || exit 1 ;; esac
		done
	fi
done"##
);

/// Rules by `iptables-restore` or `ip6tables-restore`, which replaces these tables.
pub(super) fn load(list: &mut List<'_>, what: String, apply: Program, tables: &[&str]) {
    let name = apply.argv[0].trim_end_matches("-restore").to_string();
    let script = |script| Program::script(script, [&[name.as_str()], tables].concat());
    list.change(
        what,
        script(READ),
        Form::Whole,
        apply,
        script(BACK).reading(Input::Was),
    );
}
