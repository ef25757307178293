//! The programs that load a rule set, the system settings that it needs, and notes for a reader.

use super::{Firewall, IpfwFormat, Kind, PF_DEFAULT_REQUEST, RuleSet, TEST_NETWORKS};
use linerate_calc::states::{
    IPFW_DEFAULT_BUCKETS, conntrack_buckets, ipfw_buckets, pf_hash, pf_hash_bytes,
};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io::{Result, Write};

/// A text of a rule set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// The rules.
    Rules,
    /// The ipsets that rules of iptables look into. They must be there first.
    Ipset,
    /// Lines of sysctl.conf.
    Sysctl,
    /// Lines of FreeBSD's /boot/loader.conf: they count from the next boot on.
    Loader,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// A program that reads a part from its standard input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Load {
    /// The part that it loads.
    pub part: Part,
    /// Name of the program.
    pub program: &'static str,
    /// Arguments of the program.
    pub arguments: &'static [&'static str],
}

impl Firewall {
    /// The program that loads rules from its standard input, with its arguments. `v6`: rules of iptables for IPv6; `script`: the shell's
    /// script of ipfw.
    pub(super) fn program(self, v6: bool, script: bool) -> (&'static str, &'static [&'static str]) {
        match self {
            Firewall::Nftables => ("nft", &["-f", "-"]),
            Firewall::Iptables if v6 => ("ip6tables-restore", &[]),
            Firewall::Iptables => ("iptables-restore", &[]),
            Firewall::Pf | Firewall::OpenbsdPf => ("pfctl", &["-f", "-"]),
            Firewall::Ipfw if script => ("sh", &[]),
            Firewall::Ipfw => ("ipfw", &["-q", "/dev/stdin"]),
            Firewall::Ipf => ("ipf", &["-Fa", "-f", "-"]),
        }
    }
}

impl RuleSet {
    /// The programs that load it, in order.
    ///
    /// nft, pfctl and each of the iptables replace the rules at once. ipfw first deletes the old rules, and may then let nothing
    /// pass: over a network, copy its set to the DUT and load it from the file there, or the connection breaks.
    pub fn loads(&self) -> Vec<Load> {
        let versions = [
            (self.families().has_v4(), false),
            (self.families().has_v6(), true),
        ];
        let versions = if self.firewall == Firewall::Iptables {
            &versions[..]
        } else {
            &[(true, false)]
        };
        let script = self.ipfw_format == IpfwFormat::Script;
        let ipset = Load {
            part: Part::Ipset,
            program: "ipset",
            arguments: &["restore"],
        };
        let rules = versions.iter().filter(|(asked, _)| *asked).map(|(_, v6)| {
            let (program, arguments) = self.firewall.program(*v6, script);
            Load {
                part: Part::Rules,
                program,
                arguments,
            }
        });
        self.has_ipset()
            .then_some(ipset)
            .into_iter()
            .chain(rules)
            .collect()
    }

    /// Settings of the running system. On Linux they are the host's: a network namespace only shows them.
    pub fn sysctls(&self) -> Vec<(String, String)> {
        let Some(states) = self.states else {
            return Vec::new();
        };
        let (limit, hash) = match self.firewall {
            Firewall::Nftables | Firewall::Iptables => (
                "net.netfilter.nf_conntrack_max",
                Some((
                    "net.netfilter.nf_conntrack_buckets",
                    conntrack_buckets(states),
                )),
            ),
            // FreeBSD 12 refuses to be given its own default.
            Firewall::Ipfw => {
                let buckets = Some(ipfw_buckets(states)).filter(|n| *n > IPFW_DEFAULT_BUCKETS);
                (
                    "net.inet.ip.fw.dyn_max",
                    buckets.map(|n| ("net.inet.ip.fw.dyn_buckets", n)),
                )
            }
            // pf.conf has the limit.
            _ => return Vec::new(),
        };
        let hash = hash.filter(|_| self.hash_sized);
        std::iter::once((limit, states))
            .chain(hash)
            .map(|(name, n)| (name.into(), n.to_string()))
            .collect()
    }

    /// Settings that FreeBSD reads when it boots.
    pub fn loader_settings(&self) -> Vec<(String, String)> {
        if self.firewall != Firewall::Pf {
            return Vec::new();
        }
        let hash = self
            .states
            .filter(|_| self.hash_sized)
            .map(|n| ("net.pf.states_hashsize", pf_hash(n)));
        let request = self.all_entries().filter(|n| *n > PF_DEFAULT_REQUEST);
        let request = request.map(|n| ("net.pf.request_maxcount", n));
        hash.into_iter()
            .chain(request)
            .map(|(name, n)| (name.into(), n.to_string()))
            .collect()
    }

    /// Entries of its table for all IP versions.
    pub(super) fn all_entries(&self) -> Option<u64> {
        self.table
            .map(|entries| u64::from(entries) * self.versions().count() as u64)
    }

    /// Comments for a reader who finds this text: its content, the way to load it, and its needs.
    pub fn comments(&self, part: Part) -> Vec<String> {
        let mut lines = vec![format!("Written by linerate: {self}")];
        match part {
            Part::Rules => {
                lines.extend(self.about_entries());
                lines.extend(self.about_loading());
                lines.extend(self.about_settings());
                if self.firewall.is_pf()
                    && self.kind == Kind::Nat
                    && self.address6.is_none()
                    && self.families().has_v6()
                {
                    lines.push("IPv6: pf translates to link-local addresses of the interface, too. Write its global address in place of the last name.".into());
                }
            }
            Part::Ipset => lines.push("Load: ipset restore < THIS-FILE, before the rules".into()),
            Part::Sysctl => match (self.sysctls().is_empty(), self.firewall.is_linux()) {
                (true, _) => lines.push("There is nothing to set.".into()),
                (false, true) => {
                    lines.push("Lines for /etc/sysctl.conf of the host, not of a namespace".into())
                }
                (false, false) => lines.push("Lines for /etc/sysctl.conf".into()),
            },
            Part::Loader => {
                let empty = self.loader_settings().is_empty();
                let line = if empty {
                    "There is nothing to set."
                } else {
                    "Lines for /boot/loader.conf"
                };
                lines.push(line.into());
                let states = self.states.filter(|_| !empty && self.hash_sized);
                lines.extend(
                    states.map(|n| {
                        format!("The hash takes {} MB of memory.", pf_hash_bytes(n) >> 20)
                    }),
                );
            }
        }
        lines
    }

    fn about_entries(&self) -> Option<String> {
        let [v4, v6] = TEST_NETWORKS;
        let any = self.rules_before > 0 || self.table.is_some();
        any.then(|| match self.hit {
            false => {
                format!("No rule and no entry of the table is for {v4} or {v6}: test traffic passes all.")
            }
            true => format!("The table has one entry for test traffic, {v4} or {v6}, and it passes by that."),
        })
    }

    fn about_loading(&self) -> Vec<String> {
        let text = match self.firewall {
            Firewall::Nftables => {
                let remove = self
                    .versions()
                    .map(|version| format!("nft delete table {} linerate", ["ip", "ip6"][version]));
                let remove = remove.collect::<Vec<_>>().join("; ");
                return vec!["Load: nft -f THIS-FILE".into(), format!("Remove: {remove}")];
            }
            Firewall::Iptables => {
                let loads = self.loads().into_iter();
                let rules = loads.filter(|load| load.part == Part::Rules);
                let rules: Vec<_> = rules
                    .map(|l| format!("{} < THIS-FILE", l.program))
                    .collect();
                let first = "Load first what --part ipset writes: ipset restore".to_string();
                let first = self.has_ipset().then_some(first);
                return first
                    .into_iter()
                    .chain([format!("Load: {}", rules.join("; "))])
                    .collect();
            }
            Firewall::Pf | Firewall::OpenbsdPf => "Load: pfctl -f THIS-FILE; turn on: pfctl -e",
            Firewall::Ipfw if self.ipfw_format == IpfwFormat::Script => {
                "Load on the DUT itself: sh THIS-FILE"
            }
            Firewall::Ipfw => "Load on the DUT itself: ipfw -q /PATH/TO/THIS-FILE",
            Firewall::Ipf => "Load: ipf -Fa -f THIS-FILE; turn on: ipf -E",
        };
        text.lines().map(String::from).collect()
    }

    fn about_settings(&self) -> impl Iterator<Item = String> {
        let needs =
            |part: &str, (name, value): (String, String)| format!("Needs {part}: {name}={value}");
        let sysctls = self
            .sysctls()
            .into_iter()
            .map(move |setting| needs("sysctl", setting));
        sysctls.chain(
            self.loader_settings()
                .into_iter()
                .map(move |s| needs("in /boot/loader.conf", s)),
        )
    }
}

/// Lines of a configuration file, with values in these quotes.
pub(super) fn write_settings(
    settings: &[(String, String)],
    quote: &str,
    out: &mut impl Write,
) -> Result<()> {
    settings
        .iter()
        .try_for_each(|(name, value)| writeln!(out, "{name}={quote}{value}{quote}"))
}

#[cfg(test)]
mod tests {
    use super::super::tests::part;
    use super::super::{Families, Kind};
    use super::*;

    fn stateful(firewall: Firewall, states: u64) -> RuleSet {
        RuleSet {
            states: Some(states),
            ..RuleSet::new(firewall, Kind::Stateful)
        }
    }

    /// Illustrations 33 and 34 of the 2018 paper, and its configuration sets.
    #[test]
    fn state_tables_are_sized_as_the_paper_s() {
        let ipfw = "net.inet.ip.fw.dyn_max=5000000\nnet.inet.ip.fw.dyn_buckets=65536\n";
        assert_eq!(
            part(&stateful(Firewall::Ipfw, 5_000_000), Part::Sysctl),
            ipfw
        );
        assert_eq!(
            part(&stateful(Firewall::Ipfw, 16_384), Part::Sysctl),
            "net.inet.ip.fw.dyn_max=16384\n"
        );
        let pf = stateful(Firewall::Pf, 10_000_000);
        assert_eq!(
            part(&pf, Part::Loader),
            "net.pf.states_hashsize=\"33554432\"\n"
        );
        assert_eq!(
            part(&pf, Part::Rules),
            "set limit { states 10000000 }\nset skip on lo0\npass\n"
        );
        assert_eq!(part(&pf, Part::Sysctl), "");
        assert!(pf.comments(Part::Loader)[2].contains("2560 MB"));
    }

    #[test]
    fn state_tables_of_linux_and_openbsd() {
        let linux =
            "net.netfilter.nf_conntrack_max=1000\nnet.netfilter.nf_conntrack_buckets=2000\n";
        for firewall in [Firewall::Nftables, Firewall::Iptables] {
            assert_eq!(part(&stateful(firewall, 1_000), Part::Sysctl), linux);
        }
        let openbsd = stateful(Firewall::OpenbsdPf, 1_000_000);
        assert_eq!(
            (openbsd.sysctls(), openbsd.loader_settings()),
            (vec![], vec![])
        );
        assert!(part(&openbsd, Part::Rules).starts_with("set limit { states 1000000 }\n"));
    }

    #[test]
    fn a_hash_that_is_not_sized_is_left_as_it_is() {
        for firewall in [Firewall::Nftables, Firewall::Ipfw, Firewall::Pf] {
            let set = RuleSet {
                hash_sized: false,
                ..stateful(firewall, 5_000_000)
            };
            let settings = part(&set, Part::Sysctl) + &part(&set, Part::Loader);
            assert!(
                !settings.contains("hashsize") && !settings.contains("buckets"),
                "{settings}"
            );
        }
    }

    #[test]
    fn large_tables_of_pf_need_larger_requests() {
        let table = |n| RuleSet {
            table: Some(n),
            ..RuleSet::new(Firewall::Pf, Kind::Stateless)
        };
        assert_eq!(table(65_535).loader_settings(), []);
        assert_eq!(
            part(&table(65_536), Part::Loader),
            "net.pf.request_maxcount=\"65536\"\n"
        );
    }

    #[test]
    fn programs_that_read_them() {
        let of = |set: &RuleSet| {
            set.loads()
                .iter()
                .map(|l| (l.part, l.program))
                .collect::<Vec<_>>()
        };
        let iptables = RuleSet {
            table: Some(1),
            ..RuleSet::new(Firewall::Iptables, Kind::Stateless)
        };
        let rules = Part::Rules;
        assert_eq!(
            of(&iptables),
            [
                (Part::Ipset, "ipset"),
                (rules, "iptables-restore"),
                (rules, "ip6tables-restore")
            ]
        );
        let v6 = RuleSet {
            families: Some(Families::Ipv6),
            table: None,
            ..iptables
        };
        assert_eq!(of(&v6), [(rules, "ip6tables-restore")]);
        for (firewall, program) in [
            (Firewall::Nftables, "nft"),
            (Firewall::Pf, "pfctl"),
            (Firewall::OpenbsdPf, "pfctl"),
            (Firewall::Ipfw, "sh"),
            (Firewall::Ipf, "ipf"),
        ] {
            assert_eq!(
                of(&RuleSet::new(firewall, Kind::Stateless)),
                [(rules, program)]
            );
        }
    }
}
