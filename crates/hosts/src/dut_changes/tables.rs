//! Routes and neighbours of a variant in place of those that are there, which come back afterwards. Neighbours that were learned do not:
//! they are learned again.

use super::{Form, Input, List, Program};
use linerate_measure::experiment::System;
use linerate_plan::lab::HostAddress;
use linerate_plan::settings::{Neighbour, Route};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Restores a neighbour of Linux that was permanent.
const NEIGHBOUR_BACK: &str = r#"was=$(cat)
case $was in
*PERMANENT*)
	mac=${was#*lladdr }
	exec ip neigh replace "$1" lladdr "${mac%% *}" dev "$2" nud permanent
	;;
esac
ip neigh del "$1" dev "$2" 2>/dev/null
! ip neigh show to "$1" dev "$2" | grep -q PERMANENT"#;
/// Removes a route of Linux, and restores those to the same network. Words that `ip` prints but does not accept are left out.
const ROUTE_BACK: &str = r#"set -f
ip=$1
[ "$1" = -4 ] && metric= || metric='metric 1024'
ip "$1" route del "$2" via "$3" dev "$4" $metric 2>/dev/null ||
	[ -z "$(ip "$1" route show to exact "$2" via "$3" dev "$4")" ] || exit 1
tr '\\\t' '  ' | while read -r line; do
	set --
	value=
	for word in $line; do
		if [ -n "$value" ]; then value=; continue; fi
		case $word in
		nhid | error) value=1 ;;
		linkdown | dead | pervasive | offload | offload_failed | trap | notify | rt_offload | rt_trap) ;;
		[0-9]*sec) set -- "$@" "${word%sec}" ;;
		*) set -- "$@" "$word" ;;
		esac
	done
	[ $# = 0 ] || ip "$ip" route replace "$@" || exit 1
done"#;

/// Prints a neighbour of a BSD, if there is one.
const BSD_NEIGHBOUR_READ: &str = r#""$1" -n "$2" 2>/dev/null; exit 0"#;
/// Sets an entry. OpenBSD's arp refuses to replace one.
const BSD_NEIGHBOUR_PUT: &str = r#""$1" -d "$2" >/dev/null 2>&1; exec "$1" -s "$2" "$3""#;
/// Restores an entry that does not expire. OpenBSD's arp distinguishes `static` and `permanent`, and gets the latter.
const BSD_NEIGHBOUR_BACK: &str = r#"set -f
mac= state=
while read -r line; do
	case " $line " in
	*' permanent '*) state=$3 ;;
	*' static '*) ;;
	*) continue ;;
	esac
	for word in $line; do
		case $word in
		*:*:*:*:*:*:* | *::*) ;;
		*:*:*:*:*:*) mac=$word ;;
		esac
	done
done
[ -n "$mac" ] || exec "$1" -d "$2"
"$1" -d "$2" >/dev/null 2>&1
exec "$1" -s "$2" "$mac" $state"#;

/// A function that prints the gateway to exactly this network: `$2`, whose address is `$3` and whose mask is `$4`.
macro_rules! gateway {
    () => {
        r#"gateway() {
	route -n get "$1" "$2" 2>/dev/null | awk -v to="$3" -v mask="$4" '
		$1 == "destination:" { is_to = $2 == to || $2 == "default" && (to == "0.0.0.0" || to == "::") }
		$1 == "mask:" { wrong = $2 != mask && !($2 == "default" && (to == "0.0.0.0" || to == "::")) }
		$1 == "gateway:" { gateway = $2 }
		$1 == "flags:" && /GATEWAY/ { indirect = 1 }
		END { if (is_to && !wrong && indirect) print gateway }'
}
"#
    };
}
const BSD_ROUTE_READ: &str = concat!(gateway!(), r#"gateway "$@"; exit 0"#);
/// Sets it: a second route would only share the load of an existing one (route(8) of FreeBSD, RTF_MULTIPATH).
const BSD_ROUTE_PUT: &str = concat!(
    gateway!(),
    r#"[ -n "$(gateway "$@")" ] && exec route -n change "$1" "$2" "$5"
exec route -n add "$1" "$2" "$5""#
);
/// Puts it back.
const BSD_ROUTE_BACK: &str = r#"was=$(cat)
[ -z "$was" ] || exec route -n change "$1" "$2" "$was"
exec route -n delete "$1" "$2" "$3""#;

/// A route, by `ip`.
pub fn linux_route(list: &mut List<'_>, route: &Route, via: &str) {
    let dev = list.target.end(route.end).name.as_str();
    let to: &str = &route.to.to_string();
    let version = if route.to.address.is_ipv6() {
        "-6"
    } else {
        "-4"
    };
    let read = Program::new(["ip", version, "-o", "route", "show", "to", "exact", to]);
    let apply = Program::new([
        "ip", version, "route", "replace", to, "via", via, "dev", dev,
    ]);
    let back = Program::script(ROUTE_BACK, [version, to, via, dev]).reading(Input::Was);
    list.change(format!("route to {to}"), read, Form::Whole, apply, back);
}

/// A neighbour, by `ip`.
pub fn linux_neighbour(list: &mut List<'_>, neighbour: &Neighbour) {
    let dev = list.target.end(neighbour.end).name.as_str();
    let (address, mac): (&str, &str) = (&neighbour.address.to_string(), &neighbour.mac.to_string());
    let read = Program::new(["ip", "neigh", "show", "to", address, "dev", dev]);
    let apply = Program::new([
        "ip",
        "neigh",
        "replace",
        address,
        "lladdr",
        mac,
        "dev",
        dev,
        "nud",
        "permanent",
    ]);
    let back = Program::script(NEIGHBOUR_BACK, [address, dev]).reading(Input::Was);
    list.change(
        format!("neighbour {address}"),
        read,
        Form::Whole,
        apply,
        back,
    );
}

/// A route, by `route`.
pub fn bsd_route(list: &mut List<'_>, route: &Route, via: &str) {
    let to: &str = &route.to.to_string();
    let family = if route.to.address.is_ipv6() {
        "-inet6"
    } else {
        "-inet"
    };
    let [network, mask] = network(route.to);
    let which = [family, to, &network, &mask];
    let read = Program::script(BSD_ROUTE_READ, which);
    let apply = Program::script(BSD_ROUTE_PUT, which.into_iter().chain([via]));
    let back = Program::script(BSD_ROUTE_BACK, [family, to, via]).reading(Input::Was);
    list.change(format!("route to {to}"), read, Form::Whole, apply, back);
}

/// A neighbour, by `arp` or `ndp`.
pub fn bsd_neighbour(list: &mut List<'_>, neighbour: &Neighbour) {
    let (address, mac): (&str, &str) = (&neighbour.address.to_string(), &neighbour.mac.to_string());
    let tool = if address.contains(':') { "ndp" } else { "arp" };
    let permanent = if tool == "arp" && list.target.system == System::OpenBsd {
        "permanent"
    } else {
        ""
    };
    let read = Program::script(BSD_NEIGHBOUR_READ, [tool, address]);
    let apply = Program::script(BSD_NEIGHBOUR_PUT, [tool, address, mac]);
    let back = Program::script(BSD_NEIGHBOUR_BACK, [tool, address, permanent]).reading(Input::Was);
    list.change(
        format!("neighbour {address}"),
        read,
        Form::Whole,
        apply,
        back,
    );
}

/// A network's address and mask, as `route get` prints them.
fn network(to: HostAddress) -> [String; 2] {
    let (address, length) = to.prefix();
    match address {
        IpAddr::V4(address) => {
            let mask = Ipv4Addr::from(u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0));
            [address & mask, mask].map(|a| a.to_string())
        }
        IpAddr::V6(address) => {
            let mask = Ipv6Addr::from(u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0));
            [address & mask, mask].map(|a| a.to_string())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::network;

    #[test]
    fn networks_as_they_are_printed() {
        for (to, address, mask) in [
            ("203.0.113.0/24", "203.0.113.0", "255.255.255.0"),
            ("0.0.0.0/0", "0.0.0.0", "0.0.0.0"),
            ("192.0.2.1/32", "192.0.2.1", "255.255.255.255"),
            (
                "2001:DB8:0:5::/64",
                "2001:db8:0:5::",
                "ffff:ffff:ffff:ffff::",
            ),
            ("::/0", "::", "::"),
        ] {
            assert_eq!(network(to.parse().unwrap()), [address, mask], "{to}");
        }
    }
}
