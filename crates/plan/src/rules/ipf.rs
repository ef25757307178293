//! ipf.rules, of IP Filter.

use super::{Kind, RuleSet};
use std::io::{Result, Write};

/// Configuration set 5 of the 2018 paper, as the archive has it, down to the blanks.
const STATEFUL: &str = "pass in quick on lo0
pass out quick on lo0
pass in  proto icmp from any to any keep state
pass out proto icmp from any to any keep state
pass out proto udp from any to any keep state
pass out proto udp from any to any keep state
pass in proto tcp from any to any flags S/SAFR keep state
pass out proto tcp from any to any flags S/SAFR keep state
";

pub(super) fn write(set: &RuleSet, out: &mut impl Write) -> Result<()> {
    for entry in set.all_rules() {
        writeln!(out, "block in quick from {entry} to any")?;
    }
    // The last rule that matches decides: if there are rules before, the archive ends the search.
    out.write_all(match (set.kind, set.rules_before) {
        (Kind::Stateless, 0) => b"pass out all\npass in all\n",
        (Kind::Stateless, _) => b"pass out quick all\npass in quick all\n",
        _ => STATEFUL.as_bytes(),
    })
}
