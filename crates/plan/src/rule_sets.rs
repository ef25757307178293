//! From a plan's firewall to a rule set that can be written.

use super::campaign::Campaign;
use super::settings::{Filter, Rules, System, Tool};
use crate::rules::{EntryKind, Families, Firewall, Kind, RuleSet};
use linerate_wire::Family;

impl Tool {
    /// Whose rules those are on a system.
    pub fn firewall(self, system: System) -> Firewall {
        match self {
            Tool::Nftables => Firewall::Nftables,
            Tool::Iptables => Firewall::Iptables,
            Tool::Ipfw => Firewall::Ipfw,
            Tool::Pf if system == System::OpenBsd => Firewall::OpenbsdPf,
            Tool::Pf => Firewall::Pf,
            Tool::Ipf => Firewall::Ipf,
        }
    }
}

impl Rules {
    /// The rule set for a system. `families`: the IP versions of the traffic, which rules and tables are made for; `outside`: the
    /// interface towards the receiver, which address translation goes by (the embedded lab's where there is none).
    pub fn rule_set(&self, system: System, families: &[Family], outside: Option<&str>) -> RuleSet {
        let firewall = self.tool.firewall(system);
        let kind = match self.filter {
            Filter::Stateless => Kind::Stateless,
            Filter::Stateful => Kind::Stateful,
            Filter::Nat => Kind::Nat,
        };
        let has = |family| families.contains(&family);
        // Networks would be intervals to nft, in a tree: what is to be measured is a hash of so many entries.
        let in_hash = matches!(firewall, Firewall::Nftables | Firewall::Iptables) && self.table.is_some();
        RuleSet {
            families: match (has(Family::V4), has(Family::V6)) {
                (true, true) => Some(Families::Both),
                (true, false) => Some(Families::Ipv4),
                (false, true) => Some(Families::Ipv6),
                (false, false) => None,
            },
            rules_before: self.before,
            table: self.table,
            entries: if in_hash { EntryKind::Hosts } else { EntryKind::default() },
            states: self.states,
            hash_sized: self.hash_sized,
            optimize: self.optimize,
            interface: outside.filter(|_| kind == Kind::Nat).map(str::to_string),
            ..RuleSet::new(firewall, kind)
        }
    }
}

impl Campaign {
    /// The IP versions of a lane's traffic.
    pub fn families(&self, lane: usize) -> Vec<Family> {
        let of_lane = |family: &Family| {
            self.cells.iter().any(|cell| cell.lane == lane && self.kinds[cell.kind].family == *family)
        };
        [Family::V4, Family::V6].into_iter().filter(of_lane).collect()
    }

    /// The rule set of a lane; see [`Rules::rule_set`].
    pub fn rule_set(&self, lane: usize, outside: Option<&str>) -> Option<RuleSet> {
        let rules = self.lanes[lane].settings.rules.as_ref()?;
        Some(rules.rule_set(self.system, &self.families(lane), outside))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_of_linux_are_hashes_of_addresses() {
        let rules = |tool, table| Rules {
            tool,
            filter: Filter::Stateless,
            before: 1,
            table,
            states: None,
            hash_sized: true,
            optimize: true,
        };
        let entries = |tool, system, table| rules(tool, table).rule_set(system, &[Family::V4], None).entries;
        for tool in [Tool::Nftables, Tool::Iptables] {
            assert_eq!(entries(tool, System::Linux, Some(0)), EntryKind::Hosts);
            assert_eq!(entries(tool, System::Linux, None), EntryKind::Networks);
        }
        for (tool, system) in
            [(Tool::Pf, System::FreeBsd), (Tool::Ipfw, System::FreeBsd), (Tool::Pf, System::OpenBsd)]
        {
            assert_eq!(entries(tool, system, Some(10)), EntryKind::Networks);
        }
    }
}
