//! Kinds of DUT beside plain forwarding: a bridge, a router on a bridge or on VLANs, a router in a network stack of its own.
//!
//! All of them move what the kernel knows by interface (addresses, neighbours and routes that were set by hand) to where frames are
//! routed. A first step reads it and puts it back last; the next ones make the kind, and their undoing takes it away.

use super::bsd::MODULE;
use super::event::LINK_READ;
use super::scripts::{FILES_READ, LINES_BACK};
use super::{Form, Input, List, Program, WAS};
use crate::systems::NESTED;
use linerate_measure::experiment::System;
use linerate_plan::settings::Dut;

/// Why a kind of DUT is not made on a real host.
const NO_KIND: &str = "linerate makes these in the embedded lab only: set it up on the host by the variant's files and commands";
/// The number of linerate's interfaces on the BSDs: hosts have their own from 0 on.
const UNIT: usize = 198;

/// Functions of the BSDs' shell: `state IF` prints what the kernel knows of an interface, a fact a line; `put IF` makes it so, and leaves
/// alone what is there already; `clear IF` takes it away. Own addresses are among the neighbours, and are no such facts.
macro_rules! bsd_functions {
    () => {
        r#"set -f
state() {
	ifconfig "$1" >/dev/null || return 1
	{ ifconfig "$1" | sed 's/^/if /'; arp -an | sed 's/^/arp /'; ndp -an 2>/dev/null | sed 's/^/ndp /'
	netstat -rn -f inet | sed 's/^/inet /'; netstat -rn -f inet6 2>/dev/null | sed 's/^/inet6 /'; } | awk -v dev="$1" '
		function flag(list, name) { print "nd6", (list ~ "[<,]" toupper(name) "[,>]" ? "" : "-") name }
		$1 == "if" && $3 ~ /^flags=/ && /[<,]UP[,>]/ { up = 1 }
		$1 == "if" && $2 == "inet" { own[$3] = 1; address[++n] = "address inet " $3 " netmask " $5 ($6 == "broadcast" ? " broadcast " $7 : "") }
		$1 == "if" && $2 == "inet6" { own[$3] = 1; a = $3; sub(/%.*/, "", a); own[a] = 1; address[++n] = "address inet6 " a " prefixlen " $5 }
		$1 == "if" && $2 == "nd6" {
			flag($3, "performnud"); flag($3, "accept_rtadv"); flag($3, "prefer_source"); flag($3, "ifdisabled"); flag($3, "auto_linklocal")
		}
		$1 == "arp" && $2 == "?" && $7 == dev && $8 == "permanent" { a = substr($3, 2, length($3) - 2); if (!own[a]) near[++m] = "arp " a " " $5 }
		$1 == "arp" && $2 != "?" && $4 == dev && ($5 == "permanent" || $5 == "static") && !own[$2] { near[++m] = "arp " $2 " " $3 " " $5 }
		$1 == "ndp" && $4 == dev && $5 == "permanent" { a = $2; sub(/%.*/, "", a); if (!own[$2] && !own[a]) near[++m] = "ndp " a " " $3 }
		$1 ~ /^inet/ && $4 ~ /S/ && ($7 == dev || $9 == dev) { way[++w] = "route " $1 " " $2 " " ($3 ~ /^link#/ ? "-" : $3) }
		END {
			if (up) print "up"
			for (i = 1; i <= n; i++) print address[i]
			for (i = 1; i <= m; i++) print near[i]
			for (i = 1; i <= w; i++) print way[i]
		}'
}
has() { ifconfig "$1" | awk -v a="$2" '{ sub(/%.*/, "", $2) } ($1 == "inet" || $1 == "inet6") && $2 == a { found = 1 } END { exit !found }'; }
put() {
	bad=0
	while read -r what a b c d e f; do
		case $what in
		up) ifconfig "$1" up ;;
		nd6) ifconfig "$1" inet6 "$a" ;;
		address)
			case $b in fe80:*) to=$b%$1 ;; *) to=$b ;; esac
			has "$1" "$b" || ifconfig "$1" "$a" "$to" $c $d $e $f alias ;;
		arp) arp -d "$a" >/dev/null 2>&1; [ "$c" = permanent ] || c=; arp -s "$a" "$b" $c >/dev/null ;;
		ndp) ndp -d "$a" >/dev/null 2>&1; ndp -s "$a" "$b" >/dev/null ;;
		route)
			[ "$c" != - ] || c="-interface $1"
			route -n add "-$a" "$b" $c >/dev/null 2>&1 || route -n change "-$a" "$b" $c >/dev/null ;;
		esac || bad=1
	done
	return $bad
}
clear() {
	sed '1!G;h;$!d' | while read -r what a b c; do
		case $what in
		route) route -n delete "-$a" "$b" >/dev/null 2>&1 ;;
		arp | ndp) "$what" -d "$a" >/dev/null 2>&1 ;;
		address) case $b in fe80:*) ;; *) ifconfig "$1" "$a" "$b" delete || exit 1 ;; esac ;;
		esac || :
	done
}
ssh_by() {
	for peer in ${SSH_CONNECTION%% *}; do
		by=$(route -n get "$peer" 2>/dev/null | awk '$1 == "interface:" { print $2 }')
		for i; do [ "$i" != "$by" ] || { echo "linerate's own ssh goes by $i, which has to be moved" >&2; exit 1; }; done
	done
}
"#
    };
}
/// Prints the facts of both interfaces, each with its name.
const BSD_READ: &str = concat!(
    bsd_functions!(),
    r#"for i; do was=$(state "$i") || exit 1; printf '%s\n' "$was" | sed "s/^/$i /"; done"#
);
/// Puts back those of each interface.
const BSD_BACK: &str = concat!(
    bsd_functions!(),
    r#"was=$(cat); bad=0
for i; do printf '%s\n' "$was" | sed -n "s/^$i //p" | put "$i" || bad=1; done
exit $bad"#
);
/// Takes the addresses of the arguments away.
const BSD_CLEAR: &str = concat!(
    bsd_functions!(),
    r#"ssh_by "$@"; for i; do state "$i" | clear "$i" || exit 1; done"#
);
/// Gives an interface (the second) what the first has; it is made by the rest.
const BSD_STACK: &str = concat!(
    bsd_functions!(),
    r#"from=$1 to=$2 kind=$3 tag=$4; ssh_by "$from"
was=$(state "$from") && clear "$from" <<END_OF_STATE && mac=$(ifconfig "$from" | awk '$1 == "ether" || $1 == "lladdr" { print $2; exit }') || exit 1
$was
END_OF_STATE
case $kind in
vlan) ifconfig "$to" create && ifconfig "$to" vlan "$tag" vlandev "$from" ;;
vnetid) ifconfig "$to" create && ifconfig "$to" vnetid "$tag" parent "$from" ;;
bridge) ifconfig "$to" create && ifconfig "$to" ether "$mac" && ifconfig "$to" addm "$from" ;;
veb)
	ifconfig "$to" create && ifconfig "$to" lladdr "$mac" && ifconfig "$tag" create &&
		ifconfig "$tag" add "$from" && ifconfig "$tag" add "$to" && ifconfig "$tag" up ;;
esac && ifconfig "$to" up && printf '%s\n' "$was" | put "$to""#
);
/// Prints whether one of these interfaces is there.
const THERE: &str =
    r#"for i; do ! ifconfig "$i" >/dev/null 2>&1 || { echo there; exit; }; done; echo absent"#;
/// Takes those away that were absent: making them fails where they are the host's own, which stay.
const GONE: &str = r#"[ "$1" = absent ] || exit 0
shift; bad=0
for i; do ! ifconfig "$i" >/dev/null 2>&1 || ifconfig "$i" destroy || bad=1; done; exit $bad"#;

/// The shell lines of a jail.
const BSD_PUT: &str = concat!(bsd_functions!(), r#"put "$1""#);
/// Whether there is such a jail.
const JAIL_READ: &str = r#"jls -j "$1" >/dev/null 2>&1 && echo there || echo absent"#;
/// A jail with a network stack of its own, with these interfaces and what they had, and with the host's settings of the network (a new
/// stack has the kernel's: redirects, which turn fast forwarding off); it forwards. Arguments: its name, [`BSD_PUT`], the
/// interfaces.
const JAIL_MAKE: &str = concat!(
    bsd_functions!(),
    r#"jail=$1 put=$2; shift 2; ssh_by "$@"
jail -c name="$jail" path=/ vnet persist >/dev/null || exit 1
for i; do
	was=$(state "$i") && ifconfig "$i" vnet "$jail" && printf '%s\n' "$was" | jexec "$jail" sh -c "$put" linerate "$i" || exit 1
done
set -- net.inet.ip net.inet.icmp net.inet6.ip6 net.inet6.icmp6 net.link.ether
sysctl -W "$@" 2>/dev/null | grep -vxF "$(jexec "$jail" sysctl -W "$@" 2>/dev/null)" | while IFS= read -r line; do
	jexec "$jail" sysctl "${line%%: *}=${line#*: }" >/dev/null 2>&1
done
jexec "$jail" ifconfig lo0 inet 127.0.0.1 netmask 255.0.0.0 up || exit 1
for name in net.inet.ip.forwarding net.inet6.ip6.forwarding; do
	[ -z "$(jexec "$jail" sysctl -in "$name")" ] || jexec "$jail" sysctl "$name=1" >/dev/null || exit 1
done"#
);
/// Takes a jail away that was absent, and its interfaces out of it first. A jail dies slowly: its name is free when it is gone.
const JAIL_GONE: &str = r#"[ "$1" = absent ] && jls -j "$2" >/dev/null 2>&1 || exit 0
jail=$2; shift 2; bad=0
for i; do ifconfig "$i" >/dev/null 2>&1 || ifconfig "$i" -vnet "$jail" || bad=1; done
jail -r "$jail" >/dev/null || bad=1
n=0; while [ $n -lt 50 ] && jls -d -j "$jail" >/dev/null 2>&1; do sleep 0.1; n=$((n + 1)); done
exit $bad"#;
/// A setting of a jail's own network stack. One that the host has once is there already.
const JAIL_SYSCTL: &str =
    r#"[ "$(jexec "$1" sysctl -n "$2")" = "$3" ] || jexec "$1" sysctl "$2=$3""#;

/// Functions of Linux, as those of the BSDs; `conf` prints the kernel's files of an interface.
macro_rules! linux_functions {
    () => {
        r#"ssh_by() {
	for peer in ${SSH_CONNECTION%% *}; do
		by=$(ip -o route get "$peer" 2>/dev/null | sed -n 's/.* dev \([^ ]*\).*/\1/p')
		for i; do [ "$i" != "$by" ] || { echo "linerate's own ssh goes by $i, which has to be moved" >&2; exit 1; }; done
	done
}
conf() { for f in rp_filter accept_local; do p=/proc/sys/net/ipv4/conf/$1/$f; echo "$f $(cat "$p")"; done; }
put_conf() { while read -r f value; do echo "$value" >"/proc/sys/net/ipv4/conf/$1/$f"; done; }
clear() {
	for v in 4 6; do
		ip -$v route flush dev "$1" proto static 2>/dev/null; ip -$v route flush dev "$1" proto boot 2>/dev/null
		ip -$v neigh flush dev "$1" nud permanent; ip -$v addr flush dev "$1" scope global
	done; :
}
"#
    };
}
/// Prints what [`LINK_READ`] prints, of these interfaces. The first argument is that script.
const LINUX_READ: &str = r#"read=$1; shift; for i; do ip link show dev "$i" >/dev/null || exit 1; sh -c "$read" linerate "$i"; done"#;
/// Puts it back.
const LINUX_BACK: &str = r#"{ for i; do echo "link set dev $i up"; done; cat; } | ip -batch -"#;
const LINUX_CLEAR: &str = concat!(
    linux_functions!(),
    r#"ssh_by "$@"; for i; do clear "$i"; done"#
);
/// An interface (the second) on top of the first, with what that had.
const LINUX_STACK: &str = concat!(
    linux_functions!(),
    r#"from=$1 to=$2 kind=$3 tag=$4 read=$5; ssh_by "$from"
was=$(sh -c "$read" linerate "$from" | sed "s/ label [^ ]*//; s/ dev $from\\( \\|\$\\)/ dev $to\\1/")
kept=$(conf "$from")
mac=$(ip -o link show dev "$from" | sed -n 's/.*link.ether \([^ ]*\).*/\1/p')
case $kind in
vlan) ip link add link "$from" name "$to" type vlan id "$tag" ;;
bridge) ip link add name "$to" address "$mac" type bridge && ip link set dev "$from" master "$to" ;;
esac && clear "$from" && printf '%s\n' "$kept" | put_conf "$to" &&
	{ echo "link set dev $to up"; printf '%s\n' "$was"; } | ip -batch -"#
);
/// Takes a link away that was absent.
const LINK_GONE: &str = r#"[ "$1" = absent ] && ip link show dev "$2" >/dev/null 2>&1 || exit 0; exec ip link del dev "$2""#;
const LINK_THERE: &str = r#"ip link show dev "$1" >/dev/null 2>&1 && echo there || echo absent"#;
const NETNS_THERE: &str = r#"ip netns list | awk -v n="$1" '$1 == n { found = 1 } END { print found ? "there" : "absent" }'"#;
/// A network namespace with these interfaces and what they had; it forwards.
const NETNS_MAKE: &str = concat!(
    linux_functions!(),
    r#"netns=$1 read=$2; shift 2; ssh_by "$@"
ip netns add "$netns" || exit 1
ip netns exec "$netns" sh -c 'ip link set lo up; echo 1 >/proc/sys/net/ipv4/ip_forward
	[ ! -e /proc/sys/net/ipv6 ] || echo 1 >/proc/sys/net/ipv6/conf/all/forwarding' || exit 1
for i; do
	was=$(sh -c "$read" linerate "$i"); kept=$(conf "$i")
	ip link set dev "$i" netns "$netns" || exit 1
	printf '%s\n' "$kept" | while read -r f value; do
		ip netns exec "$netns" sh -c 'echo "$1" >"$2"' linerate "$value" "/proc/sys/net/ipv4/conf/$i/$f"
	done || exit 1
	{ echo "link set dev $i up"; printf '%s\n' "$was"; } | ip -n "$netns" -batch - || exit 1
done"#
);
/// Takes the interfaces out of a namespace that was absent, and it away.
const NETNS_GONE: &str = r#"[ "$1" = absent ] && ip netns list | grep -q "^$2\( \|\$\)" || exit 0
netns=$2; shift 2; bad=0
for i; do
	ip link show dev "$i" >/dev/null 2>&1 || ip -n "$netns" link set dev "$i" netns $$ || bad=1
done
[ $bad = 0 ] && exec ip netns del "$netns"
exit 1"#;
/// The settings of an interface, which a move to another network stack resets.
const CONF: &str = "/proc/sys/net/ipv4/conf/IF/* /proc/sys/net/ipv4/neigh/IF/* /proc/sys/net/ipv6/conf/IF/* /proc/sys/net/ipv6/neigh/IF/*";

impl List<'_> {
    /// Makes a kind of DUT, and lets the rest of the variant find the interfaces where they are then.
    pub(super) fn kind(&mut self, dut: Dut) {
        let system = self.target.system;
        let linux = matches!(system, System::Linux | System::Vyos);
        let open = system == System::OpenBsd;
        match dut {
            Dut::Forwarding | Dut::TesterBaseline => {}
            Dut::Nested if open => {
                self.refuse(
                    "dut nested",
                    "OpenBSD has no network stack of its own for a jail: a routing domain shares the host's",
                );
            }
            Dut::Bridge => {
                self.remembered(linux);
                let names = self.names();
                let clear = if linux { LINUX_CLEAR } else { BSD_CLEAR };
                self.add(
                    "no addresses on the bridge's interfaces",
                    None,
                    Program::script(clear, names),
                    self.undone_with("addresses, neighbours and routes"),
                );
                (super::Family::of(system).bridge)(self);
            }
            Dut::RoutedBridge | Dut::Vlan => {
                self.remembered(linux);
                let tags = dut.tags();
                let ends = if dut == Dut::Vlan { 2 } else { 1 };
                for (end, name) in self.names().into_iter().enumerate().take(ends) {
                    let tag = tags.map_or(0, |tags| tags[end]).to_string();
                    let to = if linux {
                        self.linux_stack(dut, &name, end, &tag)
                    } else {
                        self.bsd_stack(dut, &name, end, &tag)
                    };
                    self.renamed(end, to);
                }
            }
            Dut::Nested => {
                self.remembered(linux);
                let names = self.names();
                let of = |first: &[&'static str]| -> Vec<String> {
                    first
                        .iter()
                        .map(|s| (*s).to_string())
                        .chain(names.iter().cloned())
                        .collect()
                };
                let (look, make, gone) = match linux {
                    true => (
                        NETNS_THERE,
                        Program::script(NETNS_MAKE, of(&[NESTED, LINK_READ])),
                        NETNS_GONE,
                    ),
                    false => (
                        JAIL_READ,
                        Program::script(JAIL_MAKE, of(&[NESTED, BSD_PUT])),
                        JAIL_GONE,
                    ),
                };
                let what = if linux { "network namespace" } else { "jail" };
                let what = format!("{what} {NESTED} with {}", names.join(" and "));
                let back = Program::script(gone, of(&[WAS, NESTED]));
                self.change(
                    what,
                    Program::script(look, [NESTED]),
                    Form::Trimmed,
                    make,
                    back,
                );
            }
            other => self.refuse(format!("dut {other}"), NO_KIND),
        }
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.target.ports().map(|port| port.name.clone()).to_vec()
    }

    /// Addresses, neighbours and routes of both interfaces, which are put back last.
    fn remembered(&mut self, linux: bool) {
        let names = self.names();
        let what = format!(
            "addresses, neighbours and routes of {}",
            names.join(" and ")
        );
        let (read, back) = match linux {
            true => {
                // A bridge turns LRO off, and leaves it off.
                self.keep_offloads();
                for name in &names {
                    let pattern = CONF.replace("IF", name);
                    let back = Program::back(LINES_BACK);
                    let read = Program::script(FILES_READ, [pattern]);
                    self.change(
                        format!("settings of {name}"),
                        read,
                        Form::Whole,
                        Program::new(["true"]),
                        back,
                    );
                }
                let arguments = std::iter::once(LINK_READ.to_string()).chain(names.iter().cloned());
                (
                    Program::script(LINUX_READ, arguments),
                    Program::script(LINUX_BACK, names),
                )
            }
            false => (
                Program::script(BSD_READ, names.clone()),
                Program::script(BSD_BACK, names),
            ),
        };
        self.change(
            what,
            read,
            Form::Whole,
            Program::new(["true"]),
            back.reading(Input::Was),
        );
    }

    fn bsd_stack(&mut self, dut: Dut, from: &str, end: usize, tag: &str) -> String {
        let open = self.target.system == System::OpenBsd;
        let (kind, to, other) = match (dut, open) {
            (Dut::Vlan, true) => ("vnetid", format!("vlan{}", UNIT + end), tag.to_string()),
            (Dut::Vlan, false) => ("vlan", format!("vlan{}", UNIT + end), tag.to_string()),
            (_, true) => ("veb", format!("vport{UNIT}"), format!("veb{UNIT}")),
            (_, false) => ("bridge", format!("bridge{UNIT}"), String::new()),
        };
        if !open {
            let module = if dut == Dut::Vlan {
                "if_vlan"
            } else {
                "if_bridge"
            };
            self.module(module, MODULE);
        }
        let made: Vec<&str> = if kind == "veb" {
            vec![&other, &to]
        } else {
            vec![&to]
        };
        let make = Program::script(BSD_STACK, [from, &to, kind, &other]);
        let back = Program::script(GONE, [&[WAS], &made[..]].concat());
        self.change(
            format!("{to} on {from}"),
            Program::script(THERE, made.clone()),
            Form::Trimmed,
            make,
            back,
        );
        to
    }

    fn linux_stack(&mut self, dut: Dut, from: &str, end: usize, tag: &str) -> String {
        let (kind, to) = match dut {
            Dut::Vlan => ("vlan", format!("linerate{end}.{tag}")),
            _ => ("bridge", "linerate0".to_string()),
        };
        let make = Program::script(LINUX_STACK, [from, &to, kind, tag, LINK_READ]);
        let back = Program::script(LINK_GONE, [WAS, &to]);
        self.change(
            format!("{to} on {from}"),
            Program::script(LINK_THERE, [&to]),
            Form::Trimmed,
            make,
            back,
        );
        to
    }

    fn renamed(&mut self, end: usize, to: String) {
        let target = self.target.to_mut();
        let port = if end == 0 {
            &mut target.inside
        } else {
            &mut target.outside
        };
        port.name = to;
    }

    /// The steps from this one on, in the network stack of a nested router: its end undoes them.
    pub(super) fn inside_nested(&mut self, from: usize) {
        let linux = matches!(self.target.system, System::Linux | System::Vyos);
        let prefix: &[&str] = if linux {
            &["ip", "netns", "exec", NESTED]
        } else {
            &["jexec", NESTED]
        };
        let undo = self.undone_with(&format!("{NESTED} with"));
        for step in self.steps.steps.iter_mut().skip(from) {
            let question = step.check.as_mut().map(|check| &mut check.read.program);
            for program in [&mut step.apply].into_iter().chain(question) {
                program
                    .argv
                    .splice(0..0, prefix.iter().map(|s| (*s).to_string()));
            }
            (step.read, step.undo) = (None, undo.clone());
        }
    }

    /// A setting of the host, in a nested router's own network stack as well.
    pub(super) fn nested_sysctl(&mut self, name: &str, value: &str) {
        if !name.starts_with("net.") {
            return;
        }
        let linux = matches!(self.target.system, System::Linux | System::Vyos);
        let apply = match linux {
            true if !linerate_plan::sysctl::is_namespaced(name) => return,
            true => Program::new([
                "ip",
                "netns",
                "exec",
                NESTED,
                "sysctl",
                "-q",
                "-w",
                &format!("{name}={value}"),
            ]),
            false => Program::script(JAIL_SYSCTL, [NESTED, name, value]),
        };
        self.add(
            format!("sysctl {name} in {NESTED}"),
            None,
            apply,
            self.undone_with(&format!("{NESTED} with")),
        );
    }
}

/// The interface by which a kind of DUT routes at an end, for rule sets.
pub fn routes_by(dut: Dut, system: System, end: usize, card: &str) -> String {
    let linux = matches!(system, System::Linux | System::Vyos);
    match dut {
        Dut::Vlan if linux => format!("linerate{end}.{}", dut.tags().map_or(0, |tags| tags[end])),
        Dut::Vlan => format!("vlan{}", UNIT + end),
        _ => card.into(),
    }
}

/// Why no rules are loaded: they would be the host's, and frames pass another network stack.
pub(super) const NESTED_RULES: &str = "linerate loads rules into the host's own network stack, which these frames do not pass: load them by a command of the variant";
