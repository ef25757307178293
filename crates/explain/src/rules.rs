//! The registry of rules. Each file looks for one cause.

use crate::{Case, Examined};
use linerate_measure::record::Change;

macro_rules! rules {
    ($($module:ident = $cause:literal),+ $(,)?) => {
        $(mod $module;)+
        /// All rules, with the causes that they look for.
        pub(crate) const RULES: &[(&str, fn(&Case<'_>) -> Examined)] = &[$(($cause, $module::examine)),+];
    };
}

rules! {
    tester_limit = "tester-limit",
    drops = "frames-dropped",
    one_queue = "one-queue",
    idle_cpus = "idle-cpus",
    linear_rules = "linear-rules",
    bridge_netfilter = "bridge-netfilter",
    bridge = "bridge",
    connection_table = "connection-table",
    reverse_path = "reverse-path-filter",
    logging = "logging",
    queueing = "queueing-discipline",
    merging = "frame-merging",
    checksums = "checksum-in-software",
    generic_xdp = "generic-xdp",
    packet_tap = "packet-tap",
    fragments = "fragmentation",
    locks = "lock-contention",
    harvest = "entropy-harvest",
    mitigations = "mitigations",
    governor = "frequency-governor",
    steal = "steal",
    other_programs = "other-programs",
    ring = "ring-overrun",
}

/// How to change something on a system, and how to undo that.
fn change(system: &str, commands: impl Into<String>, undo: impl Into<String>) -> Change {
    Change { system: system.into(), commands: commands.into(), undo: undo.into() }
}

/// `12.3 %`
fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    if percent < 10.0 { format!("{percent:.1} %") } else { format!("{percent:.0} %") }
}
