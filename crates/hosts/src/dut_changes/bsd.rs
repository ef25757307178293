//! Shared parts of FreeBSD and OpenBSD: `ifconfig`, `route`, `arp` and `ndp`.

use super::{Form, List, Program, WAS};
use linerate_plan::settings::Interface;

/// Prints whether there is such an interface.
const INTERFACE_READ: &str = r#"ifconfig "$1" >/dev/null 2>&1 && echo there || echo absent"#;
/// Takes one away that was absent: making it fails where it is the host's own, which stays.
const INTERFACE_BACK: &str = r#"[ "$1" != absent ] || ifconfig "$2" destroy"#;

impl List<'_> {
    /// The MTU, by ifconfig.
    pub fn mtu(&mut self, name: &str, mtu: u32) {
        let set = |to: &str| Program::new(["ifconfig", name, "mtu", to]);
        let read = Program::new(["ifconfig", name]);
        self.value(format!("MTU of {name}"), read, Form::After("mtu"), set, &mtu.to_string());
    }

    /// A feature, by ifconfig: shown under one of these names, set by that.
    pub fn flag(&mut self, name: &str, shown: &'static [&'static str], given: &'static str, on: bool) {
        let set = |to: &str| Program::new(["ifconfig", name, to]);
        let (read, form) = (Program::new(["ifconfig", name]), Form::Flag { shown, given });
        let wanted = if on { given.to_string() } else { format!("-{given}") };
        self.value(format!("{given} of {name}"), read, form, set, &wanted);
    }

    /// Refuses settings that no system of this family has for an interface.
    pub fn refuse_queues(&mut self, name: &str, wanted: &Interface) {
        let set = [
            (wanted.queues.is_some(), "queues"),
            (wanted.rx_ring.is_some() || wanted.tx_ring.is_some(), "rings"),
            (wanted.rx_wait_ns.is_some() || wanted.rx_wait_frames.is_some(), "interrupt moderation"),
            (wanted.rps.is_some() || wanted.rfs.is_some() || wanted.xps.is_some(), "packet steering"),
            (wanted.irq.is_some(), "interrupts"),
            (!wanted.private_flags.is_empty(), "private flags"),
        ];
        for (_, what) in set.into_iter().filter(|(is_set, _)| *is_set) {
            self.refuse(format!("{what} of {name}"), "its driver's own sysctls and boot settings have these");
        }
    }

    /// A bridge of both interfaces.
    pub fn bsd_bridge(&mut self, add: &'static str, delete: &'static str) {
        let bridge = "bridge0";
        let (read, make) =
            (Program::script(INTERFACE_READ, [bridge]), Program::new(["ifconfig", bridge, "create"]));
        self.change(bridge, read, Form::Trimmed, make, Program::script(INTERFACE_BACK, [WAS, bridge]));
        let port =
            |name: &str, to: bool| Program::new(["ifconfig", bridge, if to { add } else { delete }, name]);
        self.bridged(bridge, port, |state| Program::new(["ifconfig", bridge, state]));
    }
}
