# pf of FreeBSD and OpenBSD. `read` prints its state, `back` restores the state that `read` printed, `on` and `off` turn it on and off,
# `is` prints which, `file` loads a user's rules, `forget` kills the states of networks. In the language that both systems' sh share.
tab='	'
mode=$1
shift

is_there() { pfctl -s info >/dev/null 2>&1; }
is_on() { pfctl -s info 2>/dev/null | grep -q '^Status: Enabled'; }
# pfSense and OPNsense make their rules anew from their own configuration.
makes_its_own() { [ -x /etc/rc.filter_configure_sync ] || [ -x /usr/local/sbin/configctl ]; }
own_file() {
	f=$(sysrc -n pf_rules 2>/dev/null) || f=$(sed -n "s/^pf_rules=//p" /etc/rc.conf.local 2>/dev/null | tail -n 1 | tr -d "\"'")
	echo "${f:-/etc/pf.conf}"
}

# The two ends of the ssh connection, as far as they are known: sudo may have taken SSH_CONNECTION away.
connection() {
	client=any server=any port=22
	[ $# -ne 4 ] || client=$1 server=$3 port=$4
}
connection ${SSH_CONNECTION:-}
# Rules for a connection that is under way: they match without a SYN, and their state knows no window.
ssh_rules() {
	echo "pass quick proto tcp from $client to $server port $port flags any keep state (sloppy)"
	echo "pass quick proto tcp from $server port $port to $client flags any keep state (sloppy)"
}
# Turns pf on. Its states of the ssh connection, if it has any, are as old as its last time on: the connection would not survive them.
# So pf begins with rules under which the connection gets a new one. Until then it was off: they let all pass.
turn_on() {
	{ ssh_rules; echo 'pass no state'; } | pfctl -q -f - || return 1
	if [ "$client" != any ]; then
		pfctl -q -k "$client" -k "$server"
		pfctl -q -k "$server" -k "$client"
	fi 2>/dev/null
	pfctl -q -e || return 1
	tries=0
	until [ "$client" = any ] || [ $tries = 30 ] || pfctl -s states 2>/dev/null | grep -F "$client" | grep -qF "$server"; do
		echo
		sleep 0.1 2>/dev/null || sleep 1
		tries=$((tries + 1))
	done
	true
}
forget() {
	for network; do
		case $network in *:*) any=::/0 ;; *) any=0.0.0.0/0 ;; esac
		pfctl -q -k "$network" && pfctl -q -k "$any" -k "$network" || return 1
	done
}

# The anchors that have names. The others are printed where they stand.
anchors() { pfctl -v -s Anchors 2>/dev/null | sed 's/^ *//' | grep -v -e '^_' -e '/_' -e '^$'; }
# pfctl for an anchor; the main rules have no name.
of() {
	anchor=$1
	shift
	[ -z "$anchor" ] || set -- -a "$anchor" "$@"
	pfctl "$@"
}
show() { of "$@" 2>/dev/null </dev/null; }
# Lines of kind, anchor and text: options that pfctl prints, then tables, translations and rules.
options() {
	pfctl -s memory 2>/dev/null | awk '$2 == "hard" { print "limit\t\t" $1 " " $4 }'
	pfctl -s timeouts 2>/dev/null | awk '{ sub(/s$/, "", $2); print "timeout\t\t" $1 " " $2 }'
	pfctl -v -s Interfaces 2>/dev/null | awk '$2 == "(skip)" { print "skip\t\t" $1 }'
	pfctl -s info 2>/dev/null | awk '/^Status:/ && / Debug: / { print "debug\t\t" tolower($NF) }
		/^Interface Stats for/ && $4 != "none" { print "loginterface\t\t" $4 }'
	pfctl -s queue 2>/dev/null | awk 'NF { print "queue\t\t" $0 }'
}
contents() {
	{ echo; anchors; } | while IFS= read -r in; do
		show "$in" -v -s Tables | while read -r flags table _; do
			echo "table$tab$in$tab$table ${flags%"${flags#??}"}"
			show "$in" -t "$table" -T show | awk -v a="$in" -v t="$table" '{ print "address\t" a "\t" t "\t" $1 }' | sort
		done
		for kind in nat rules; do
			show "$in" -s $kind | awk -v a="$in" -v k="${kind%s}" 'NF { sub(/^ +/, ""); print k "\t" a "\t" $0 }'
		done
	done
}
# Tables that pfctl makes of lists have another name each time: the addresses take its place, as a list.
normal() {
	awk -F "$tab" '
		$1 == "table" && $3 ~ /^__automatic_/ { next }
		$1 == "address" && $3 ~ /^__automatic_/ { list[$2 "\t" $3] = list[$2 "\t" $3] " " $4; next }
		$1 == "rule" || $1 == "nat" {
			rest = $3
			line = ""
			while (match(rest, /<__automatic_[0-9a-zA-Z_]*>/)) {
				name = substr(rest, RSTART + 1, RLENGTH - 2)
				own = $2 "\t" name
				line = line substr(rest, 1, RSTART - 1) "{" (own in list ? list[own] : list["\t" name]) " }"
				rest = substr(rest, RSTART + RLENGTH)
			}
			print $1 "\t" $2 "\t" line rest
			next
		}
		{ print }'
}
state() { { options; contents; } | normal; }

# The rules that pfctl would load of $text, in the same form. Braces behind an anchor with a name hold the rules of that anchor.
parsed() {
	given=$(printf '%s\n' "$text" | pfctl -n -v -f - 2>/dev/null) || return 1
	{
		printf '%s\n' "$given" | awk '/^table <__automatic_/ {
			gsub(/[<>]/, "", $2)
			for (i = 3; i <= NF; i++) if ($i == "{") inside = 1; else if ($i == "}") inside = 0; else if (inside) print "address\t\t" $2 "\t" $i
		}' | sort
		printf '%s\n' "$given" | awk '
			{ sub(/^ +/, "") }
			$0 == "}" && depth && back[depth] != "-" { path = back[depth--]; next }
			$0 == "}" && depth { depth-- }
			$1 !~ /^(pass|block|match|scrub|no|nat|rdr|binat|antispoof|anchor|nat-anchor|rdr-anchor|binat-anchor|[}])$/ { next }
			{ kind = /^(no )?(nat|rdr|binat)/ ? "nat" : "rule" }
			/^anchor "[^"]*".* [{]$/ {
				print kind "\t" path "\t" substr($0, 1, length($0) - 2)
				back[++depth] = path
				split($0, part, "\"")
				path = path (path == "" ? "" : "/") part[2]
				next
			}
			/ [{]$/ { back[++depth] = "-" }
			{ print kind "\t" path "\t" $0 }'
	} | normal
}
in_order() { grep -e "^nat$tab" -e "^rule$tab" | sort -s -t "$tab" -k 1,1 -k 2,2; }
# Whether $text gives the rules of $state, in the main rules and in the anchors that it fills.
gives_the_state() {
	want=$(parsed) || return 1
	want=$(printf '%s\n' "$want" | in_order)
	loaded=$(printf '%s\n' "$text" | pfctl -n -v -f - 2>&1 >/dev/null | sed -n 's/^Loading anchor \(.*\) from .*/\1/p')
	paths=$(printf '%s\n' "$want" | cut -f 2 | sort -u)
	have=$(printf '%s\n' "$state" | LOADED=$loaded PATHS=$paths awk -F "$tab" '
		BEGIN {
			n = split(ENVIRON["LOADED"], name, "\n"); for (i = 1; i <= n; i++) if (name[i] != "") loads[name[i]] = 1
			n = split(ENVIRON["PATHS"], name, "\n"); for (i = 1; i <= n; i++) fills[name[i]] = 1
		}
		$1 != "nat" && $1 != "rule" { next }
		$2 in loads { print $1 "\t\t" $3; next }
		$2 == "" || $2 in fills { print }' | in_order)
	[ "$want" = "$have" ]
}

# Lines of a kind in $state, of an anchor.
part() { printf '%s\n' "$state" | awk -F "$tab" -v k="$1" -v a="$2" '$1 == k && $2 == a { print $3 }'; }
# The options, tables and rules of $state as pf.conf has them.
set_options() {
	printf '%s\n' "$state" | awk -F "$tab" '
		$1 == "limit" { print "set limit " $3 }
		$1 == "timeout" { print "set timeout " $3 }
		$1 == "debug" { print "set debug " $3 }
		$1 == "loginterface" { logs = $3 }
		$1 == "skip" { skips = skips " " $3 }
		END {
			print "set loginterface " (logs == "" ? "none" : logs)
			if (skips != "") print "set skip on {" skips " }"
		}'
}
set_rules() {
	printf '%s\n' "$state" | awk -F "$tab" -v a="$1" '
		function end() { if (open) print " }"; open = 0 }
		$2 != a { next }
		$1 == "table" {
			end()
			split($3, word, " ")
			printf "table <%s>%s%s {", word[1], (word[2] ~ /^c/ ? " const" : ""), (word[2] ~ /p$/ ? " persist" : "")
			open = 1
		}
		$1 == "address" { printf " %s", $4 }
		END { end() }'
	part rule "$1" | grep -E '^(no )?scrub'
	part nat "$1"
	part rule "$1" | grep -Ev '^(no )?scrub'
	true
}
# The text that restores $state, in one of the ways that $how knows.
restoring() {
	set_options
	case $how in
	'file '*) printf 'include "%s"\n' "${how#file }" ;;
	printed)
		part queue ''
		set_rules ''
		;;
	esac
}
# Loads that. No limit can be below what there is: states that are killed go within seconds.
load() {
	tries=0
	until said=$(restoring | pfctl -q -f - 2>&1); do
		case $said in
		*exceeds*) [ $tries -lt 20 ] || return 1 ;;
		*) return 1 ;;
		esac
		sleep 1
		tries=$((tries + 1))
	done
}
# The differences between $state and $now, without the options that let nothing pass.
differences() {
	{
		printf '%s\n' "$state" | sed 's/^/-/'
		printf '%s\n' "$now" | sed 's/^/+/'
	} | grep -Ev '^.(limit|timeout|debug|loginterface|queue)'"$tab" | difference
}
difference() {
	awk '{ line = substr($0, 2); gsub(/\t+/, " ", line) }
		/^-/ { was[line]++; next }
		was[line] > 0 { was[line]--; next }
		{ print "new: " line }
		END { for (line in was) if (was[line] > 0) print "missing: " line }' | head -n 3 | tr '\n' ';'
}
# Rules under which nothing passes but ssh. A pf that was on is never left open.
close_it() {
	if [ "$on" = on ]; then
		{ echo 'set skip on lo'; echo 'block drop all'; ssh_rules; } | pfctl -q -f - && { is_on || pfctl -q -e; } ||
			echo "pf's rules could not be replaced by any that block" >&2
		left="pf is left on, and lets nothing pass but ssh from $client"
	else
		! is_on || pfctl -q -d
		left="pf is off, as before"
	fi
	echo "pf's rules are not as before ($1): $left. Load the host's own rules: pfctl -f $(own_file)" >&2
	exit 1
}

case $mode in
read)
	if ! is_there; then
		printf 'absent\nnone\n'
		exit 0
	fi
	state=$(state) how=own
	if ! makes_its_own; then
		how=none
		if [ -n "$(part nat '')$(part rule '')" ]; then
			file=$(own_file)
			how="file $file"
			text=$(restoring)
			if [ ! -r "$file" ] || ! gives_the_state; then
				how=printed
				text=$(restoring)
				gives_the_state || {
					echo "pf runs other rules than those of $file, and cannot load what pfctl prints of them: they could not be put back. Load that file, or write the rules that run into it" >&2
					exit 1
				}
			fi
		fi
	fi
	is_on && echo on || echo off
	echo "$how"
	[ "$how" = own ] || printf '%s\n' "$state"
	;;
is) is_on && echo on || echo off ;;
on) is_on || turn_on ;;
off) ! is_on || pfctl -q -d ;;
file) exec pfctl -D "linerate_client=$client" -D "linerate_server=$server" -D "linerate_port=$port" -f - ;;
forget) ! is_there || forget "$@" ;;
back)
	IFS= read -r on
	IFS= read -r how
	state=$(cat)
	is_there || exit 0
	if [ "$on" != on ] && is_on; then pfctl -q -d || exit 1; fi
	if [ "$on" = on ] && ! is_on; then turn_on || close_it "it could not be turned on"; fi
	if [ "$how" = own ]; then
		if [ -x /etc/rc.filter_configure_sync ]; then /etc/rc.filter_configure_sync; else /usr/local/sbin/configctl filter reload; fi ||
			close_it "they could not be made anew"
		forget "$@"
		exit 0
	fi
	# Options that nothing prints. FreeBSD's pfctl takes them all from each file that it loads.
	forget "$@"
	pfctl -q -F Reset >/dev/null 2>&1
	load || close_it "they could not be loaded: $said"
	if [ "$on" = absent ]; then exit 0; fi
	now=$(state)
	printf '%s\n%s\n' "$state" "$now" | awk -F "$tab" '($1 == "rule" || $1 == "nat" || $1 == "table") && $2 != "" { print $2 }' | sort -u |
		while IFS= read -r in; do
			lines() { awk -F "$tab" -v a="$in" '$2 == a && ($1 == "rule" || $1 == "nat")'; }
			[ "$(printf '%s\n' "$state" | lines)" != "$(printf '%s\n' "$now" | lines)" ] || continue
			set_rules "$in" | of "$in" -q -f -
		done
	state | awk -F "$tab" '$1 == "table" { print $2 "\t" $3 }' | while IFS= read -r line; do
		in=${line%%"$tab"*} table=${line#*"$tab"}
		part table "$in" | grep -qx -- "$table" || show "$in" -q -t "${table% *}" -T kill
	done
	part_of() { awk -F "$tab" -v a="$in" -v t="${table% *}" '$1 == "address" && $2 == a && $3 == t { print $4 }'; }
	now=$(state)
	printf '%s\n' "$state" | awk -F "$tab" '$1 == "table" { print $2 "\t" $3 }' | while IFS= read -r line; do
		in=${line%%"$tab"*} table=${line#*"$tab"}
		was=$(printf '%s\n' "$state" | part_of)
		[ "$was" = "$(printf '%s\n' "$now" | part_of)" ] ||
			printf '%s\n' "$was" | sed '/^$/d' | of "$in" -q -t "${table% *}" -T replace -f - 2>/dev/null
	done
	forget "$@"
	now=$(state)
	[ -z "$(differences)" ] || close_it "$(differences)"
	if [ "$now" != "$state" ]; then
		said=$({ printf '%s\n' "$state" | sed 's/^/-/'; printf '%s\n' "$now" | sed 's/^/+/'; } | difference)
		echo "pf's rules are as before, and its options are not: $said" >&2
		exit 1
	fi
	;;
esac
