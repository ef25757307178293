//! The whole state of a guest that a campaign may change.

use super::guest::Guest;
use std::collections::BTreeSet;

/// A program of the guest, `state`, that prints a line for each part of it: `ethtool -k in0: tx-checksumming: on`. `state settings` has what
/// plans set and is quicker.
const PROGRAM: &str = r#"#!/bin/sh
part() { echo "== $*"; }
show() { part "$*"; "$@" 2>&1; }
virtio() { basename "$(readlink /sys/class/net/$1/device)"; }
settings() {
	show sysctl -a
	cd /sys/class/net
	for i in in0 out0; do
		for option in -k -g -l -c -a; do show ethtool $option $i; done
		# Whether all interrupts of the queues have one CPU each.
		names=$(ls -d /proc/irq/*/$i-*x* /proc/irq/*/$i /proc/irq/*/$(virtio $i)-*put*)
		part bound
		[ -z "$names" ] || grep -q '[-,]' $(for name in $names; do echo ${name%/*}/smp_affinity_list; done) || echo $i
	done
	part link; grep . */mtu */flags */tx_queue_len */threaded */gro_flush_timeout */napi_defer_hard_irqs */address
	show ip -d link; show nft list ruleset; show iptables-save
}
all() {
	settings
	for i in in0 out0; do show ethtool -x $i; show ethtool -n $i rx-flow-hash udp4; done
	for option in -k -g -l -c -a; do show ethtool $option mgmt0; done
	part queues; grep . */queues/*/[rx]ps_*
	part interrupts
	# An interrupt moves when it comes the next time: where its mask has one CPU, that says all. The kernel chooses the CPUs of those that
	# belong to no queue.
	inside=$(virtio in0) outside=$(virtio out0)
	for irq in /proc/irq/[0-9]*; do
		names=
		for name in $irq/*/; do
			name=${name%/}
			[ ! -d "$name" ] || names="$names ${name##*/}/"
		done
		read -r mask <$irq/smp_affinity_list
		case $names$mask in
		*event* | *config*) ;;
		*" in0"-*[-,]* | *" out0"-*[-,]* | *" $inside"-*[-,]* | *" $outside"-*[-,]*) read -r now <$irq/effective_affinity_list; mask="$mask, now $now" ;;
		esac
		echo ${names# } $mask
	done
	show ip addr; show ip rule; show ip -6 rule; show ip route show table all; show ip -6 route show table all
	show ip neigh show nud permanent; show tc qdisc; show bridge vlan; show ip netns; show ip6tables-save; show ipset list
	part tables; cat /proc/net/ip_tables_names /proc/net/ip6_tables_names
	part cpus; grep -H . /sys/devices/system/cpu/online /sys/devices/system/cpu/smt/control
	part files; find / /tmp /run -xdev \( -type d -printf '%p %m\n' \) -o -printf '%p %m %s %T@\n'
}
${1:-all} 2>/dev/null | awk '/^== / { part = substr($0, 4) ": "; next } /^Current hardware settings/ { part = part "now " } { print part $0 }' | grep -Ev '^sysctl -a: (VOLATILE)'
"#;

/// Counters of sysctl(8), and other values that change by themselves.
const VOLATILE: [&str; 10] = [
    "fs.aio-nr",
    "fs.dentry-state",
    "fs.file-nr",
    "fs.inode-",
    "fs.quota",
    "kernel.ns_last_pid",
    "kernel.perf_(event_max_sample_rate|cpu_time_max_percent)",
    "kernel.pty.nr",
    "kernel.random",
    "net.netfilter.nf_conntrack_count",
];

/// The program's text.
pub fn program() -> String {
    PROGRAM.replace("VOLATILE", &VOLATILE.join("|"))
}

/// The lines that it has printed.
#[derive(Debug, Clone, PartialEq)]
pub struct State(BTreeSet<String>);

impl State {
    /// Reads it.
    pub fn of(guest: &Guest) -> State {
        State(
            guest
                .on("state")
                .lines()
                .map(|line| line.trim_end().to_string())
                .collect(),
        )
    }

    /// As diff(1) says that it has changed.
    pub fn changed(&self, diff: &str) -> State {
        let mut lines = self.0.clone();
        for line in diff.lines() {
            match line.split_at_checked(2) {
                Some(("< ", gone)) => drop(lines.remove(gone.trim_end())),
                Some(("> ", new)) => drop(lines.insert(new.trim_end().into())),
                _ => {}
            }
        }
        State(lines)
    }

    /// Whether a line has this text.
    pub fn has(&self, text: &str) -> bool {
        self.0.iter().any(|line| line.contains(text))
    }

    /// Lines that only one of both has: `- LINE` of this one, `+ LINE` of the later one. Settings that did not exist before are those of
    /// a module that rules have loaded.
    pub fn differences(&self, later: &State) -> Vec<String> {
        let gone = self.0.difference(&later.0).map(|line| format!("- {line}"));
        let known = |line: &&String| match line
            .strip_prefix("sysctl -a: ")
            .and_then(|set| set.split_once('='))
        {
            Some((name, _)) => self.has(&format!("sysctl -a: {name}=")),
            None => true,
        };
        gone.chain(
            later
                .0
                .difference(&self.0)
                .filter(known)
                .map(|line| format!("+ {line}")),
        )
        .collect()
    }

    /// Differences without those of interrupts that go back when they come next: those that already waited, and those of which a program
    /// says that they wait.
    pub fn differences_but_waiting(&self, later: &State, said: &str) -> Vec<String> {
        let mut all = self.differences(later);
        let mut names: Vec<String> = self
            .interrupts()
            .filter(|(_, mask, now)| is_one(mask) && mask != now)
            .map(|(name, ..)| name.into())
            .collect();
        if said.contains(
            "an interrupt that has not come since it was moved goes back when it comes next",
        ) {
            let before: Vec<_> = self.interrupts().collect();
            let waits = |(name, only, _): &(&str, &str, &str)| {
                before.iter().any(|(of, _, now)| of == name && now == only)
            };
            names.extend(
                later
                    .interrupts()
                    .filter(waits)
                    .map(|(name, ..)| name.into()),
            );
        }
        all.retain(|line| {
            !names
                .iter()
                .any(|name| line[2..].starts_with(&format!("interrupts: {name}/ ")))
        });
        all
    }

    /// Interrupts of queues: name, CPUs that may take it, and the CPU that does.
    fn interrupts(&self) -> impl Iterator<Item = (&str, &str, &str)> {
        self.0.iter().filter_map(|line| {
            let (name, cpus) = line.strip_prefix("interrupts: ")?.split_once("/ ")?;
            let (mask, now) = cpus.split_once(", now ")?;
            Some((name, mask, now))
        })
    }
}

/// Whether a list of CPUs has one.
fn is_one(cpus: &str) -> bool {
    cpus.bytes().all(|byte| byte.is_ascii_digit())
}
