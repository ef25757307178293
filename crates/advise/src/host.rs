//! A host as rules look at it.

use crate::item::Role;
use linerate_hosts::configuration::{Card, Configuration};
use linerate_hosts::systems::Kernel;
use linerate_plan::sysctl::{FORWARDING, Lasts, forwarding, lasts};

/// The wishes of a person.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Demands {
    /// The role; `None`: the one that the facts show.
    pub role: Option<Role>,
    /// Round-trip time of connections of an end host, in ns.
    pub rtt_ns: f64,
    /// Bit/s of these connections; `None`: the fastest link.
    pub rate: Option<f64>,
    /// Connections that a firewall must keep; `None`: as many as its present limit allows.
    pub connections: Option<u64>,
}

impl Default for Demands {
    fn default() -> Self {
        Demands {
            role: None,
            rtt_ns: 100e6,
            rate: None,
            connections: None,
        }
    }
}

/// Entries of Linux beside its interfaces: values of new ones, and those for all.
pub(crate) const ALL: [&str; 2] = ["default", "all"];

/// A release: `13.2-RELEASE` is 13, 2.
pub type Version = (u32, u32);

pub struct Host<'a> {
    pub found: &'a Configuration,
    pub kernel: Kernel,
    pub release: Option<Version>,
    pub role: Role,
    pub demands: Demands,
}

impl<'a> Host<'a> {
    pub fn new(found: &'a Configuration, demands: Demands) -> Option<Host<'a>> {
        let kernel = Kernel::named(&found.system.kernel)?;
        let release = found.system.release.as_deref().and_then(version);
        let mut host = Host {
            found,
            kernel,
            release,
            role: Role::EndHost,
            demands,
        };
        host.role = demands.role.unwrap_or_else(|| host.seems());
        Some(host)
    }

    /// The role that the facts show.
    fn seems(&self) -> Role {
        let on = |name: &&str| self.value(name).is_some_and(|value| value == "1");
        if forwarding(self.kernel.into()).iter().any(on) || self.is_gateway() {
            let filters = ["pf_enable", "firewall_enable", "ipfilter_enable"]
                .iter()
                .any(|name| self.is_yes(name));
            return if self.found.rule_sets.is_empty() && !filters {
                Role::Router
            } else {
                Role::Firewall
            };
        }
        let bridged = self
            .found
            .cards
            .iter()
            .filter(|card| card.master_kind.as_deref() == Some("bridge"))
            .count();
        if bridged > 1 {
            Role::Bridge
        } else {
            Role::EndHost
        }
    }

    /// Whether it is this product: `OPNsense`.
    pub fn is_of(&self, product: &str) -> bool {
        let known = self.found.system.product.as_deref();
        known.is_some_and(|known| known.starts_with(product))
    }

    /// Whether its own program writes the files of the system.
    pub fn is_appliance(&self) -> bool {
        ["OPNsense", "pfSense"].iter().any(|name| self.is_of(name))
    }

    /// Whether a variable of rc.conf is on.
    pub fn is_yes(&self, name: &str) -> bool {
        self.found
            .written(name)
            .is_some_and(|(_, value)| value.eq_ignore_ascii_case("yes"))
    }

    /// Whether it forwards from the next boot on, by rc.conf(5).
    pub fn is_gateway(&self) -> bool {
        FORWARDING
            .iter()
            .any(|name| self.is_yes(self.variable(name)))
    }

    /// Where a setting of the kernel is written down for the next boot.
    pub fn lasts(&self, name: &str) -> Lasts {
        match self.kernel {
            Kernel::FreeBsd => lasts(name),
            _ => Lasts::Sysctl,
        }
    }

    /// The name by which a setting is written down there.
    pub fn variable<'n>(&self, name: &'n str) -> &'n str {
        match self.lasts(name) {
            Lasts::Rc(variable) | Lasts::RcYes(variable) => variable,
            Lasts::Sysctl | Lasts::Loader => name,
        }
    }

    /// A setting: the running value, else that of the next boot.
    pub fn value(&self, name: &str) -> Option<&str> {
        let running = self.found.sysctls.get(name).map(String::as_str);
        let written = || match self.lasts(name) {
            Lasts::RcYes(variable) => self.is_yes(variable).then_some("1"),
            _ => Some(self.found.written(self.variable(name))?.1),
        };
        running.or_else(|| self.of_device(name)).or_else(written)
    }

    /// `dev.igb.0.fc` of igb0.
    fn of_device(&self, name: &str) -> Option<&str> {
        let mut parts = name.strip_prefix("dev.")?.splitn(3, '.');
        let (driver, unit, rest) = (parts.next()?, parts.next()?, parts.next()?);
        let card = self.found.card(&format!("{driver}{unit}"))?;
        card.settings
            .get(rest)
            .or(card.coalescing.get(rest))
            .map(String::as_str)
    }

    /// Whether the host was asked for this sysctl, and does not have it. A saved folder with a few settings was not.
    pub fn lacks(&self, name: &str) -> bool {
        const FEW: usize = 20;
        let asked = match name.strip_prefix("dev.") {
            Some(_) => self.found.cards.iter().any(|card| {
                let node = linerate_hosts::systems::device(&card.name).unwrap_or_default();
                !card.settings.is_empty() && name.starts_with(&format!("{node}."))
            }),
            None => self.found.sysctls.len() > FEW,
        };
        asked && !self.found.sysctls.contains_key(name) && self.of_device(name).is_none()
    }

    /// The interfaces with a setting of this name, then `default` and `all`. The kernel copies a change of `default` to interfaces without
    /// a value of their own, so it must come after theirs; IPv6 does not look at `all`.
    pub fn each(&self, before: &str, after: &str) -> impl Iterator<Item = &'a str> {
        let known = self.found.sysctls.keys();
        let own = known.filter_map(move |name| name.strip_prefix(before)?.strip_suffix(after));
        let all = if before.starts_with("net.ipv6") {
            &ALL[..1]
        } else {
            &ALL
        };
        own.filter(|name| *name != "lo" && !ALL.contains(name))
            .chain(all.iter().copied())
    }

    /// Whether an interface of [`Host::each`] is there at the next boot: a container's is not.
    pub fn stays(&self, each: &str) -> bool {
        let name = each.replace('/', ".");
        let card = self
            .found
            .card(&name)
            .is_some_and(|card| card.kind.is_none());
        ALL.contains(&each) || card || self.found.links.iter().any(|link| link.name == name)
    }

    pub fn number(&self, name: &str) -> Option<i64> {
        self.value(name)?.parse().ok()
    }

    /// Whether the release is this one or a later one; `None` if it is not known.
    pub fn since(&self, release: Version) -> Option<bool> {
        self.release.map(|now| now >= release)
    }

    /// CPUs that the scheduler sees.
    pub fn threads(&self) -> Option<u32> {
        Some(self.found.machine.cpus.len() as u32).filter(|n| *n > 0)
    }

    pub fn cores(&self) -> Option<u32> {
        self.found.machine.cores().map(|n| n as u32)
    }

    /// Threads that share a core, at most.
    pub fn threads_per_core(&self) -> usize {
        self.found
            .machine
            .cpus
            .iter()
            .map(|cpu| cpu.siblings.len())
            .max()
            .unwrap_or(0)
    }

    /// Bit/s of the fastest link.
    pub fn fastest(&self) -> Option<f64> {
        self.found
            .cards
            .iter()
            .filter_map(|card| card.speed)
            .max_by(f64::total_cmp)
    }

    pub fn forwards(&self) -> bool {
        self.role != Role::EndHost
    }

    /// Cards of these drivers.
    pub fn cards_of(&self, drivers: &[&str]) -> Vec<&'a Card> {
        let found = self.found;
        found
            .cards
            .iter()
            .filter(|card| drivers.contains(&"*") || drivers.contains(&driver(self.kernel, card)))
            .collect()
    }

    /// Whether a rule set of this filter exists; empty: of any.
    pub fn filter(&self, name: &str) -> Option<&'a linerate_hosts::configuration::RuleSet> {
        self.found
            .rule_sets
            .iter()
            .find(|set| name.is_empty() || set.filter == name)
    }
}

/// The driver: on BSD systems the name of an interface begins with it.
pub fn driver(kernel: Kernel, card: &Card) -> &str {
    match kernel {
        Kernel::Linux => card
            .driver
            .as_deref()
            .or(card.kind.as_deref())
            .unwrap_or_default(),
        _ => card.name.trim_end_matches(|c: char| c.is_ascii_digit()),
    }
}

/// `13.2-RELEASE`, `6.12.8-amd64`, `5.1`.
pub fn version(text: &str) -> Option<Version> {
    let mut parts = text.split(|c: char| !c.is_ascii_digit());
    let major = parts.next()?.parse().ok()?;
    Some((
        major,
        parts
            .next()
            .and_then(|minor| minor.parse().ok())
            .unwrap_or(0),
    ))
}
