//! A rule as data, and what it says about a host.

mod effects;

pub use crate::setting::{Place, Scope, Set, Want, Worked};

use crate::Runtime;
use crate::host::{Demands, Host, Version, driver};
use crate::item::{Basis, Item, Role, Setting, State, Topic};
use linerate_hosts::configuration::{Card, Configuration};
use linerate_hosts::systems::Kernel;

/// A rule. [`RULE`] has what most rules share.
#[derive(Clone, Copy)]
pub struct Rule {
    /// Name of the rule: `freebsd-redirect`.
    pub id: &'static str,
    pub topic: Topic,
    pub on: Kernel,
    /// The first release that has the setting.
    pub since: Option<Version>,
    /// The last release that has it.
    pub until: Option<Version>,
    /// Text for other releases: what does the same there.
    pub outside: &'static str,
    pub roles: &'static [Role],
    /// Drivers of cards that it is about, `*` for all; empty: it is about the host.
    pub drivers: &'static [&'static str],
    pub kind: Kind,
    pub title: &'static str,
    pub sets: &'static [Set],
    /// Other names by which documents call its settings, and settings that the rule speaks of without changing them.
    pub covers: &'static [&'static str],
    /// The facts that it follows from; `None`: it does not apply.
    pub when: fn(&Host) -> Option<String>,
    /// Where it does not apply by `when`: what is missing to judge it; `None`: nothing.
    pub missing: fn(&Host) -> Option<String>,
    /// Why a person should decide about its lines: they cost memory, say.
    pub reserve: fn(&Host) -> Option<String>,
    /// The facts by which a card needs it; `None`: this card does not, and stays as it is.
    pub needs: fn(&Host, &Card) -> Option<String>,
    pub why: &'static str,
    pub measured: &'static [Study],
    /// The expected gain where nobody measured it, as a share.
    pub prior: f64,
    /// The expected gain by the arithmetic of this host's own values, which counts for more than what others measured.
    pub computed: fn(&Host) -> Option<f64>,
    pub cost: &'static str,
    /// Remarks for releases from this one on; the last that fits is said.
    pub notes: &'static [(Version, &'static str)],
    /// A plan that comes with linerate.
    pub plan: &'static str,
}

/// The aim of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The change.
    Change,
    /// The change, if a measurement on this machine confirms it.
    Measure,
    /// The settings gone, where they are written down.
    Undo,
    /// A person's work, unless the facts name the settings.
    ByHand,
}

/// Queues of a card that have a setting each.
const MOST_QUEUES: u32 = 256;

/// How certain a gain is that nobody measured.
const UNMEASURED: f64 = 0.2;

/// A source, with the effects that it measured: percent (0: no difference proven), and the hardware with what was compared.
pub type Study = (&'static str, &'static [(f64, &'static str)]);

/// All roles that forward.
pub const FORWARDING: &[Role] = &[Role::Router, Role::Firewall, Role::Bridge];
/// Hosts that route.
pub const ROUTING: &[Role] = &[Role::Router, Role::Firewall];
pub const EVERY: &[Role] = &[Role::Router, Role::Firewall, Role::EndHost, Role::Bridge];

pub fn always(_: &Host) -> Option<String> {
    Some(String::new())
}

/// A rule for FreeBSD routers without conditions.
pub const RULE: Rule = Rule {
    id: "",
    topic: Topic::Forwarding,
    on: Kernel::FreeBsd,
    since: None,
    until: None,
    outside: "",
    roles: FORWARDING,
    drivers: &[],
    kind: Kind::Change,
    title: "",
    sets: &[],
    covers: &[],
    when: always,
    missing: |_| None,
    reserve: |_| None,
    needs: |_, _| Some(String::new()),
    why: "",
    measured: &[],
    prior: 0.01,
    computed: |_| None,
    cost: "",
    notes: &[],
    plan: "",
};

impl Rule {
    /// The recommendation for a host; `None`: there is none.
    pub fn item(&self, host: &Host) -> Option<Item> {
        if host.kernel != self.on || !self.roles.contains(&host.role) {
            return None;
        }
        let needs = |card: &&'_ Card| (self.needs)(host, card);
        let needing: Vec<(&Card, String)> = host
            .cards_of(self.drivers)
            .into_iter()
            .filter_map(|card| Some((card, needs(&card)?)))
            .collect();
        let cards: Vec<&Card> = needing.iter().map(|(card, _)| *card).collect();
        if !self.drivers.is_empty() && cards.is_empty() {
            return None;
        }
        let after = host
            .release
            .is_some_and(|now| self.until.is_some_and(|last| (now.0, now.1) > last));
        let before = host
            .release
            .is_some_and(|now| self.since.is_some_and(|first| now < first));
        let written: Vec<Setting> = self.settings(host, &cards, true).0;
        if after || before {
            return self.for_other_release(host, written);
        }
        let Some(facts) = (self.when)(host) else {
            let missing = (self.missing)(host)?;
            return Some(self.without_gain(host, State::Unjudged, Vec::new(), &missing));
        };
        let mut evidence = vec![facts];
        evidence.extend(needing.into_iter().map(|(_, facts)| facts));
        evidence.retain(|text| !text.is_empty());
        let evidence = Some(evidence.join("; ")).filter(|text| !text.is_empty());
        if self.kind == Kind::Undo {
            return (!written.is_empty())
                .then(|| self.judged(host, State::Undo, written, None, evidence));
        }
        let (mut settings, computation) = self.settings(host, &cards, false);
        let lacking: Vec<String> = settings
            .iter()
            .filter(|setting| is_lacking(host, setting))
            .map(|s| s.name.clone())
            .collect();
        settings.retain(|setting| !is_lacking(host, setting));
        if settings.is_empty() && !lacking.is_empty() {
            let note = format!("This host does not have {}.", lacking.join(", "));
            return Some(self.without_gain(host, State::Absent, Vec::new(), &note));
        }
        let touches_cards = self.sets.iter().any(Set::is_of_running_card);
        let spared: Vec<&str> = cards
            .iter()
            .map(|card| card.name.as_str())
            .filter(|name| touches_cards && host.found.carries_session(name))
            .collect();
        let is_done = |set: &Setting| {
            set.runtime.is_none()
                && set.lasting.is_none()
                && set.place.is_none()
                && set.now.is_some()
        };
        let (done, open): (Vec<Setting>, Vec<Setting>) = settings.into_iter().partition(is_done);
        let (state, settings) = match (self.kind, done.is_empty(), open.is_empty()) {
            (Kind::ByHand, true, true) => {
                return Some(self.judged(host, State::ByHand, open, computation, evidence));
            }
            (_, true, true) if spared.is_empty() => return None,
            (_, true, true) => (State::ByHand, open),
            (_, _, true) => {
                return Some(self.judged(host, State::Done, done, computation, evidence));
            }
            (Kind::Measure, ..) => (State::Measure, open),
            _ => (State::Change, open),
        };
        Some(
            self.judged(host, state, settings, computation, evidence)
                .sparing(&spared),
        )
    }

    /// Why it does not apply to a host that has no item of it.
    pub fn unfit(&self, found: &Configuration, demands: Demands) -> String {
        let Some(host) = Host::new(found, demands) else {
            return "its system is not known here".into();
        };
        if host.kernel != self.on {
            return format!("it is for {}", system(self.on));
        }
        if !self.roles.contains(&host.role) {
            let roles: Vec<String> = self.roles.iter().map(Role::to_string).collect();
            return format!(
                "it is for the role {}, and this host is a {}: see --role",
                roles.join(" or "),
                host.role
            );
        }
        if !self.drivers.is_empty() && host.cards_of(self.drivers).is_empty() {
            return format!("it has no card of {}", self.drivers.join(", "));
        }
        "its condition is not met by the facts".into()
    }

    /// A setting that is still written down is outdated.
    fn for_other_release(&self, host: &Host, written: Vec<Setting>) -> Option<Item> {
        let state = if written.is_empty() {
            State::Absent
        } else {
            State::Undo
        };
        let release = host.found.system.release.as_deref().unwrap_or_default();
        let (system, span) = (system(self.on), self.span());
        let note = format!(
            "Only {system} {span} uses this setting; this host runs {release}. {}",
            self.elsewhere(host)
        );
        let says = state == State::Undo || !self.outside.is_empty();
        says.then(|| self.without_gain(host, state, written, &note))
    }

    /// The setting for it in other releases, with the node of this host's first card: `igb.0`.
    fn elsewhere(&self, host: &Host) -> String {
        let card = host.cards_of(self.drivers).into_iter().next();
        let node = card.and_then(|card| linerate_hosts::systems::device(&card.name));
        let node = node.as_deref().and_then(|node| node.strip_prefix("dev."));
        self.outside.replace("{dev}", node.unwrap_or("igb.0"))
    }

    fn without_gain(&self, host: &Host, state: State, settings: Vec<Setting>, note: &str) -> Item {
        let note = Some(note.trim().into());
        Item {
            state,
            settings,
            note,
            gain: 0.0,
            certainty: 1.0,
            ..self.plain(host)
        }
    }

    /// The releases that have it.
    fn span(&self) -> String {
        match (self.since, self.until) {
            (Some((a, b)), Some((c, d))) => format!("from {a}.{b} to {c}.{d}"),
            (Some((a, b)), None) => format!("from {a}.{b} on"),
            (_, Some((c, d))) => format!("up to {c}.{d}"),
            _ => String::new(),
        }
    }

    fn plain(&self, host: &Host) -> Item {
        let unsure = (host.release.is_none() && !self.span().is_empty()).then(|| {
            format!(
                "The release is not known: only {} {} uses this setting. {}",
                system(self.on),
                self.span(),
                self.elsewhere(host)
            )
        });
        let note = self
            .notes
            .iter()
            .rfind(|(from, _)| host.release.is_some_and(|now| now >= *from));
        Item {
            id: self.id.into(),
            topic: self.topic,
            state: State::Change,
            title: self.title.into(),
            settings: Vec::new(),
            evidence: None,
            computation: None,
            why: self.why.into(),
            measured: Vec::new(),
            gain: self.prior,
            basis: Basis::Guess,
            certainty: UNMEASURED,
            cost: self.cost.into(),
            note: note
                .map(|(_, text)| (*text).into())
                .or(unsure)
                .map(|text: String| text.trim().into()),
            reserve: (self.reserve)(host),
            plan: Some(self.plan.to_string()).filter(|plan| !plan.is_empty()),
            patch: None,
        }
    }

    /// The settings on a host, and their computation. `gone`: those that are written down, to be taken away.
    fn settings(&self, host: &Host, cards: &[&Card], gone: bool) -> (Vec<Setting>, Option<String>) {
        let mut all: Vec<Setting> = Vec::new();
        let mut how: Vec<String> = Vec::new();
        let flags: Vec<&Set> = self
            .sets
            .iter()
            .filter(|set| matches!(set.place, Place::Offload(_)))
            .collect();
        for set in self.sets {
            // `hw.ix.…` is about cards of ix alone.
            let of = set
                .name
                .strip_prefix("hw.")
                .and_then(|rest| rest.split('.').next())
                .unwrap_or_default();
            let is_driver = self.drivers.contains(&of);
            if is_driver && !gone && !cards.iter().any(|card| driver(host.kernel, card) == of) {
                continue;
            }
            let spared = |card: &Card| {
                !gone && set.is_of_running_card() && host.found.carries_session(&card.name)
            };
            let cards: Vec<&Card> = cards.iter().copied().filter(|card| !spared(card)).collect();
            for scope in set.scopes(host, &cards) {
                let Some((setting, worked)) = set.on(&scope, gone, &flags) else {
                    continue;
                };
                how.extend(worked.filter(|text| !how.contains(text)));
                if !all.iter().any(|known| known.name == setting.name) {
                    all.push(setting);
                }
            }
        }
        (all, Some(how.join("; ")).filter(|text| !text.is_empty()))
    }
}

impl Set {
    /// The parts of a host that have it each.
    fn scopes<'a>(&self, host: &'a Host, cards: &[&'a Card]) -> Vec<Scope<'a>> {
        let plain = Scope::of(host);
        if let Some((before, after)) = self.name.split_once("{each}") {
            return host
                .each(before, after)
                .map(|each| Scope { each, ..plain })
                .collect();
        }
        let cards = cards.iter().map(|card| Scope {
            card: Some(*card),
            ..plain
        });
        let scopes: Vec<Scope> = if self.is_of_card() {
            cards.collect()
        } else {
            vec![plain]
        };
        let each = |scope: Scope<'a>| {
            self.numbers(&scope)
                .into_iter()
                .map(move |nth| Scope { nth, ..scope })
        };
        scopes.into_iter().flat_map(each).collect()
    }

    /// The numbers of the queues, interrupts or CPUs of a scope that have it each.
    fn numbers(&self, scope: &Scope) -> Vec<u32> {
        let has = |each: &str| self.name.contains(each);
        if has("{irq}") {
            let queues = scope.card.map(Card::queue_interrupts).unwrap_or_default();
            queues.into_iter().map(|(_, irq)| irq.number).collect()
        } else if has("{cpu}") {
            scope
                .host
                .found
                .machine
                .cpus
                .iter()
                .map(|cpu| cpu.cpu)
                .collect()
        } else if has("{queue}") {
            (0..scope
                .card
                .and_then(Card::receive_queues)
                .unwrap_or(0)
                .min(MOST_QUEUES))
                .collect()
        } else {
            vec![0]
        }
    }

    /// Whether each card has it.
    fn is_of_card(&self) -> bool {
        self.name.contains('{') && !self.name.contains("{cpu}") && !self.name.contains("{each}")
            || matches!(self.place, Place::Offload(_) | Place::Ethtool { .. })
    }

    /// Whether a change of it reaches a card while that runs.
    fn is_of_running_card(&self) -> bool {
        self.is_of_card() && !self.is_of_loader()
    }
}

impl Item {
    /// Says which cards it leaves alone, because they carry the session.
    fn sparing(mut self, cards: &[&str]) -> Item {
        if !cards.is_empty() {
            let said = format!(
                "{} carries this ssh session, and is left out: change it at the console, or over another interface.",
                cards.join(" and ")
            );
            self.note = Some(
                self.note
                    .map_or(said.clone(), |note| format!("{note} {said}")),
            );
        }
        self
    }
}

/// A sysctl that the host was asked for and does not have.
fn is_lacking(host: &Host, setting: &Setting) -> bool {
    matches!(&setting.runtime, Some(Runtime::Sysctl { name, .. }) if host.lacks(name))
}

fn system(kernel: Kernel) -> &'static str {
    match kernel {
        Kernel::Linux => "Linux",
        Kernel::FreeBsd => "FreeBSD",
        Kernel::OpenBsd => "OpenBSD",
        Kernel::NetBsd => "NetBSD",
    }
}
