//! The firewalls that a host runs, off for a variant, and afterwards as they were.

use super::scripts::{nft_back, nft_read};
use super::{Firewall, Form, Input, List, Program, Read, Step};
use linerate_measure::experiment::System;

/// The switches of ipfw: IPv4, IPv6, and frames that are not routed. Without ipfw there are none.
macro_rules! ipfw_switches {
    () => {
        r#"all() {
	for s in net.inet.ip.fw.enable net.inet6.ip6.fw.enable net.link.ether.ipfw; do
		v=$(sysctl -n "$s" 2>/dev/null) && echo "$s=$v"
	done
	return 0
}
"#
    };
}
const IPFW_READ: &str = concat!(ipfw_switches!(), "all");
const IPFW_OFF: &str = concat!(
    ipfw_switches!(),
    r#"for line in $(all); do [ "${line#*=}" = 0 ] || sysctl "${line%%=*}=0" >/dev/null || exit 1; done"#
);
const IPFW_BACK: &str = r#"failed=0
while IFS='=' read -r s v; do
	now=$(sysctl -n "$s" 2>/dev/null) || continue
	[ "$now" = "$v" ] || sysctl "$s=$v" >/dev/null || failed=1
done
exit $failed"#;
/// Prints `off`, or the switches that are on.
const IPFW_IS: &str = concat!(
    ipfw_switches!(),
    r#"on=$(all | grep -v '=0$'); echo "${on:-off}""#
);

/// Prints whether IP Filter is on.
pub(super) const IPF_READ: &str =
    r#"ipf -V 2>/dev/null | grep -q '^Running: yes' && echo on || echo off"#;
/// Turning IP Filter off deletes its rules.
const IPF_OFF: &str = r#"if ipf -V 2>/dev/null | grep -q '^Running: yes'; then
	echo "IP Filter is on, and loses its rules when it is turned off: linerate would not know what to put back. Turn it off for the campaign: ipf -D" >&2; exit 1
fi"#;

/// The rules of nftables, which are those of the newer iptables, too: `read`, `off`, `back`, `is`. The question itself would load the
/// module.
const NFT: &str = concat!(
    r#"no() { [ "$1" != is ] || echo off; exit 0; }
command -v nft >/dev/null || no "$1"
if [ -e /proc/modules ]; then
	read -r release </proc/sys/kernel/osrelease
	grep -qs '^nf_tables ' /proc/modules || grep -qs '/nf_tables\.ko' "/lib/modules/$release/modules.builtin" || no "$1"
fi
case $1 in
read)
"#,
    nft_read!(),
    r#"
	;;
off) nft flush ruleset ;;
back) "#,
    nft_back!(),
    r#" ;;
is) [ -z "$(nft list ruleset)" ] && echo off || echo "nftables has rules" ;;
esac"#
);

/// The tables of the older iptables, `ip` or `ip6`: the same. They stay, without a rule.
const LEGACY: &str = r#"mode=$1
v=$2
names=
while read -r name; do names="$names $name"; done 2>/dev/null <"/proc/net/${v}_tables_names"
if [ -z "$names" ]; then
	[ "$mode" != is ] || echo off
	exit 0
fi
tool=${v}tables-legacy
command -v "$tool-save" >/dev/null || tool=${v}tables
case $mode in
read) "$tool-save" ;;
off) "$tool-save" | sed -n -e '/^[*]/p' -e 's/^:\([^ ]*\) [A-Z][A-Z]* .*/:\1 ACCEPT [0:0]/p' -e '/^COMMIT$/p' | "$tool-restore" ;;
back)
	was=$(cat)
	[ -z "$was" ] || printf '%s\n' "$was" | "$tool-restore"
	;;
is) "$tool-save" | grep -qE '^(-A|:[^ ]* DROP)' && echo "$tool has rules" || echo off ;;
esac"#;

/// Turns off every firewall that this system may run, but this one.
pub(super) fn all_but(list: &mut List<'_>, stays: Option<Firewall>) {
    let goes = |firewall: Firewall| stays != Some(firewall);
    match list.target.system {
        System::Linux | System::Vyos => {
            modes(list, "rules of nftables", NFT, &[]);
            modes(list, "rules of iptables", LEGACY, &["ip"]);
            modes(list, "rules of ip6tables", LEGACY, &["ip6"]);
        }
        System::OpenBsd => super::pf::turn(list, false),
        system => {
            if goes(Firewall::Pf) {
                super::pf::turn(list, false);
            }
            if goes(Firewall::Ipfw) {
                let script = |script| Program::script(script, [""; 0]);
                let [read, off, back, is] = [IPFW_READ, IPFW_OFF, IPFW_BACK, IPFW_IS].map(script);
                step(list, "ipfw off", read, off, back, is);
            }
            // The others have none.
            if goes(Firewall::Ipf) && system == System::FreeBsd {
                let script = |script| Program::script(script, [""; 0]);
                let [read, off, is] = [IPF_READ, IPF_OFF, IPF_READ].map(script);
                let back = Program::new(["true"]);
                step(list, "IP Filter off", read, off, back, is);
            }
        }
    }
}

/// A step by one script that has all modes.
fn modes(list: &mut List<'_>, what: &str, text: &'static str, arguments: &[&str]) {
    let mode = |mode: &str| Program::script(text, [&[mode], arguments].concat());
    let [read, off, back, is] = ["read", "off", "back", "is"].map(mode);
    step(list, what, read, off, back, is);
}

/// Rules that come back may cut a connection whose state they do not know.
fn step(list: &mut List<'_>, what: &str, read: Program, off: Program, back: Program, is: Program) {
    let of = |program, form| Read { program, form };
    let step = Step::change(what, of(read, Form::Whole), off, back.reading(Input::Was));
    list.steps.steps.push(Step {
        cuts: true,
        ..step.checked(of(is, Form::Trimmed), ["off"])
    });
}
