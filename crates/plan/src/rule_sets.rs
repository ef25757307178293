//! A plan's rule set for the system and the frames that it meets.

use super::campaign::Campaign;
use crate::rules::{EntryKind, Families, Kind, RuleSet};
use linerate_measure::experiment::System;
use linerate_wire::Family;

impl RuleSet {
    /// The rule set for a system. `families`: the IP versions of the traffic, for rules and tables; `outside`: the interface
    /// towards the receiver, for address translation (default: the embedded lab's).
    pub fn for_frames(&self, system: System, families: &[Family], outside: Option<&str>) -> RuleSet {
        // nft would store networks as intervals in a tree; this measures a hash of this many entries.
        let in_hash = self.firewall.is_linux() && self.table.is_some();
        RuleSet {
            firewall: self.firewall.on(system),
            families: match (families.contains(&Family::V4), families.contains(&Family::V6)) {
                (true, true) => Some(Families::Both),
                (true, false) => Some(Families::Ipv4),
                (false, true) => Some(Families::Ipv6),
                (false, false) => None,
            },
            entries: if in_hash { EntryKind::Hosts } else { self.entries },
            interface: outside.filter(|_| self.kind == Kind::Nat).map(str::to_string),
            ..self.clone()
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

    /// The rule set of a lane; see [`RuleSet::for_frames`].
    pub fn rule_set(&self, lane: usize, outside: Option<&str>) -> Option<RuleSet> {
        let rules = self.lanes[lane].settings.rules.as_ref()?;
        Some(rules.for_frames(self.experiment.system, &self.families(lane), outside))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::Firewall;

    #[test]
    fn tables_of_linux_are_hashes_of_addresses() {
        let rules =
            |firewall, table| RuleSet { rules_before: 1, table, ..RuleSet::new(firewall, Kind::Stateless) };
        let entries =
            |firewall, system, table| rules(firewall, table).for_frames(system, &[Family::V4], None).entries;
        for firewall in [Firewall::Nftables, Firewall::Iptables] {
            assert_eq!(entries(firewall, System::Linux, Some(0)), EntryKind::Hosts);
            assert_eq!(entries(firewall, System::Linux, None), EntryKind::Networks);
        }
        for (firewall, system) in [
            (Firewall::Pf, System::FreeBsd),
            (Firewall::Ipfw, System::FreeBsd),
            (Firewall::Pf, System::OpenBsd),
        ] {
            assert_eq!(entries(firewall, system, Some(10)), EntryKind::Networks);
        }
    }
}
