//! What FreeBSD and OpenBSD have in common: `ifconfig`, `route`, `arp` and `ndp`.

use super::{Form, List, Port, Program, Undo, WAS};
use linerate_plan::settings::{Interface, Route, Settings};

/// Why a kind of DUT is not made on a real host.
pub const NO_KIND: &str = "linerate makes these in the embedded lab only: set it up on the host by the variant's files and commands";

/// Prints whether there is such an interface.
const INTERFACE_READ: &str = r#"ifconfig "$1" >/dev/null 2>&1 && echo there || echo absent"#;
/// Takes one away that was absent: making it fails where it is the host's own, which stays.
const INTERFACE_BACK: &str = r#"[ "$1" != absent ] || ifconfig "$2" destroy"#;

impl List<'_> {
    /// The MTU, by ifconfig.
    pub fn mtu(&mut self, name: &str, mtu: u32) {
        let set = |to: &str| Program::new(["ifconfig", name, "mtu", to]);
        let read = Self::read(Program::new(["ifconfig", name]), Form::After("mtu"));
        self.add(format!("MTU of {name}"), read, set(&mtu.to_string()), Undo::Run(set(WAS)));
    }

    /// A feature, by ifconfig: shown under one of these names, set by that.
    pub fn flag(&mut self, name: &str, shown: &'static [&'static str], given: &'static str, on: bool) {
        let set = |to: &str| Program::new(["ifconfig", name, to]);
        let read = Self::read(Program::new(["ifconfig", name]), Form::Flag { shown, given });
        let wanted = if on { given.to_string() } else { format!("-{given}") };
        self.add(format!("{given} of {name}"), read, set(&wanted), Undo::Run(set(WAS)));
    }

    /// What no system of this family sets on an interface.
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

    /// Tables that are to be filled.
    pub fn generated(&mut self, settings: &Settings) {
        if settings.route_count.is_some() || settings.neighbour_count.is_some() {
            self.refuse(
                "generated routes and neighbours",
                "linerate fills tables in the embedded lab only: let a command of the variant load them",
            );
        }
    }

    /// The next hop of a route.
    pub fn next_hop(&mut self, route: &Route, port: &Port) -> Option<String> {
        let same = |hop: &&String| hop.contains(':') == route.to.contains(':');
        let via = route.via.clone().or_else(|| port.next_hops.iter().find(same).cloned());
        if via.is_none() {
            self.refuse(
                format!("route {}", route.to),
                "it names no next hop, and the lab file has none for that interface",
            );
        }
        via
    }

    /// Routes and neighbours.
    pub fn bsd_tables(&mut self, settings: &Settings) {
        self.generated(settings);
        for route in &settings.routes {
            let port = self.target.end(route.end).clone();
            let Some(via) = self.next_hop(route, &port) else { continue };
            super::tables::bsd_route(self, route, &via);
        }
        for neighbour in &settings.neighbours {
            super::tables::bsd_neighbour(self, neighbour);
        }
    }

    /// A bridge of both interfaces.
    pub fn bsd_bridge(&mut self, add: &'static str, delete: &'static str) {
        let bridge = "bridge0";
        let read = Self::read(Program::script(INTERFACE_READ, [bridge]), Form::Trimmed);
        let back = Undo::Run(Program::script(INTERFACE_BACK, [WAS, bridge]));
        self.add("bridge0", read, Program::new(["ifconfig", bridge, "create"]), back);
        for port in self.target.ports() {
            let name = port.name.clone();
            self.with_undo(
                format!("{name} in the bridge"),
                Program::new(["ifconfig", bridge, add, &name]),
                Program::new(["ifconfig", bridge, delete, &name]),
            );
        }
        let up = |state: &str| Program::new(["ifconfig", bridge, state]);
        self.with_undo("bridge0 up", up("up"), up("down"));
    }
}
