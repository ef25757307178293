//! A rule as data, and what it says about a host.

use crate::host::{Host, Version, driver};
use crate::item::{Basis, Item, Measured, Role, Runtime, Setting, State, Topic};
use crate::setting::patch;
use linerate_hosts::configuration::Card;
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
    /// The facts by which a card needs it; `None`: this card does not, and stays as it is.
    pub needs: fn(&Host, &Card) -> Option<String>,
    pub why: &'static str,
    pub measured: &'static [Effect],
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

/// A setting of a rule.
#[derive(Clone, Copy)]
pub struct Set {
    /// `{if}` stands for the interface, `{dev}` for its node of FreeBSD's tree: `igb.0`; `{queue}` for each of its receive queues,
    /// `{irq}` for each of its queues' interrupts, `{cpu}` for each CPU; `{each}` for every interface of Linux, and for `default` and
    /// `all`.
    pub name: &'static str,
    pub place: Place,
    pub want: Want,
}

/// Where a setting is, and how it is changed.
#[derive(Clone, Copy)]
pub enum Place {
    /// sysctl(8), and the system's file for it.
    Sysctl,
    /// sysctl(8), and this variable of rc.conf(5).
    SysctlInRc(&'static str),
    /// sysctl(8), and this variable of rc.conf(5), which is YES for 1.
    SysctlYes(&'static str),
    /// loader.conf(5): the next boot.
    Loader,
    /// rc.conf(5).
    Rc,
    /// An offload, by its name in the facts; the words of ethtool(8), systemd.link(5) and ifconfig(8).
    Offload { feature: &'static str, ethtool: &'static str, link: &'static str, ifconfig: &'static str },
    /// Another option of ethtool(8): its letter, its word, the key of systemd.link(5), and the present value.
    Ethtool {
        letter: &'static str,
        word: &'static str,
        link: &'static str,
        now: fn(&Scope) -> Option<String>,
    },
    /// A file below /sys or /proc with the name as its path, and its present value.
    Sys(fn(&Scope) -> Option<String>),
    /// The CPUs of an interrupt of FreeBSD: cpuset(1).
    CpuSet,
    /// A line of pf.conf(5).
    Pf,
}

/// A wanted value.
#[derive(Clone, Copy)]
pub enum Want {
    Is(&'static str),
    /// At least this number.
    Least(&'static str),
    /// At least this number, or the lists' elements each.
    LeastBy(fn(&Scope) -> Option<Worked>),
    By(fn(&Scope) -> Option<Worked>),
    /// The system's own: the line goes.
    Gone,
}

/// A value with its computation.
pub struct Worked {
    pub value: String,
    pub how: String,
}

/// Facts that a value is computed from.
#[derive(Clone, Copy)]
pub struct Scope<'a> {
    pub host: &'a Host<'a>,
    pub card: Option<&'a Card>,
    /// The queue, the interrupt or the CPU, where the setting has one for each.
    pub nth: u32,
    /// The interface, where every one has the setting.
    pub each: &'a str,
}

/// Queues of a card that have a setting each.
const MOST_QUEUES: u32 = 256;

/// A measured effect of a rule.
#[derive(Clone, Copy)]
pub struct Effect {
    /// Percent; 0: no difference proven.
    pub percent: f64,
    pub on: &'static str,
    /// A part of the CPU's model without blanks, and the driver on FreeBSD; empty: any.
    pub cpu: &'static str,
    pub driver: &'static str,
    pub source: &'static str,
}

/// All roles that forward.
pub const FORWARDING: &[Role] = &[Role::Router, Role::Firewall, Role::Bridge];
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
    needs: |_, _| Some(String::new()),
    why: "",
    measured: &[],
    prior: 0.01,
    computed: |_| None,
    cost: "",
    notes: &[],
    plan: "",
};

/// How certain a gain is that was measured elsewhere: on other hardware, the same driver, the same CPU, or both.
const CERTAINTY: [f64; 4] = [0.3, 0.5, 0.6, 0.9];
/// One that this host's values show.
const COMPUTED: f64 = 0.5;
/// And one that nobody measured.
const UNMEASURED: f64 = 0.2;

impl Rule {
    /// The recommendation for a host; `None`: there is none.
    pub fn item(&self, host: &Host) -> Option<Item> {
        if host.kernel != self.on || !self.roles.contains(&host.role) {
            return None;
        }
        let needs = |card: &&'_ Card| (self.needs)(host, card);
        let needing: Vec<(&Card, String)> =
            host.cards_of(self.drivers).into_iter().filter_map(|card| Some((card, needs(&card)?))).collect();
        let cards: Vec<&Card> = needing.iter().map(|(card, _)| *card).collect();
        if !self.drivers.is_empty() && cards.is_empty() {
            return None;
        }
        let after = host.release.is_some_and(|now| self.until.is_some_and(|last| (now.0, now.1) > last));
        let before = host.release.is_some_and(|now| self.since.is_some_and(|first| now < first));
        let written: Vec<Setting> = self.settings(host, &cards, true).0;
        if after || before {
            // A setting that is still written down is outdated.
            let state = if written.is_empty() { State::Absent } else { State::Undo };
            let release = host.found.system.release.as_deref().unwrap_or_default();
            let note = format!(
                "{} {} has this setting, {release} has not. {}",
                system(self.on),
                self.span(),
                self.outside
            );
            let settings = if state == State::Undo { written } else { Vec::new() };
            let (gain, certainty) = (0.0, 1.0);
            return (state == State::Undo || !self.outside.is_empty()).then(|| Item {
                state,
                settings,
                gain,
                certainty,
                note: Some(note.trim().into()),
                ..self.plain(host)
            });
        }
        let mut evidence = vec![(self.when)(host)?];
        evidence.extend(needing.into_iter().map(|(_, facts)| facts));
        evidence.retain(|text| !text.is_empty());
        let evidence = Some(evidence.join("; ")).filter(|text| !text.is_empty());
        if self.kind == Kind::Undo {
            return (!written.is_empty()).then(|| self.judged(host, State::Undo, written, None, evidence));
        }
        let (mut settings, computation) = self.settings(host, &cards, false);
        let lacking: Vec<String> =
            settings.iter().filter(|setting| is_lacking(host, setting)).map(|s| s.name.clone()).collect();
        settings.retain(|setting| !is_lacking(host, setting));
        if settings.is_empty() && !lacking.is_empty() {
            let note = format!("This host does not have {}.", lacking.join(", "));
            let (state, gain, certainty) = (State::Absent, 0.0, 1.0);
            return Some(Item { state, gain, certainty, note: Some(note), ..self.plain(host) });
        }
        if self.kind == Kind::ByHand && settings.is_empty() {
            return Some(self.judged(host, State::ByHand, settings, computation, evidence));
        }
        let is_done = |setting: &Setting| {
            setting.runtime.is_none() && setting.lasting.is_none() && setting.now.is_some()
        };
        let mut spared: Vec<&str> = cards.iter().map(|card| card.name.as_str()).collect();
        spared.retain(|name| host.found.carries_session(name));
        if settings.is_empty() {
            let item = || self.judged(host, State::ByHand, settings, computation, evidence).sparing(&spared);
            return (!spared.is_empty() && self.sets.iter().any(Set::is_of_running_card)).then(item);
        }
        if settings.iter().all(is_done) {
            return Some(self.judged(host, State::Done, settings, computation, evidence));
        }
        let open = settings.into_iter().filter(|setting| !is_done(setting)).collect();
        let state = if self.kind == Kind::Measure { State::Measure } else { State::Change };
        let item = self.judged(host, state, open, computation, evidence);
        Some(if self.sets.iter().any(Set::is_of_running_card) { item.sparing(&spared) } else { item })
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
                "The release is not known: only {} {} has this setting. {}",
                system(self.on),
                self.span(),
                self.outside
            )
        });
        let note = self.notes.iter().rfind(|(from, _)| host.release.is_some_and(|now| now >= *from));
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
            note: note.map(|(_, text)| (*text).into()).or(unsure).map(|text: String| text.trim().into()),
            plan: Some(self.plan.to_string()).filter(|plan| !plan.is_empty()),
            patch: None,
        }
    }

    fn judged(
        &self,
        host: &Host,
        state: State,
        settings: Vec<Setting>,
        computation: Option<String>,
        evidence: Option<String>,
    ) -> Item {
        let mut measured: Vec<Measured> = self.measured.iter().map(|effect| effect.seen_from(host)).collect();
        measured.sort_by_key(|effect| std::cmp::Reverse(effect.likeness));
        let best = measured.first().map_or(0, |effect| effect.likeness);
        let mut like: Vec<f64> =
            measured.iter().filter(|e| e.likeness == best).map(|e| e.change.unwrap_or(0.0)).collect();
        like.sort_by(f64::total_cmp);
        let plain = self.plain(host);
        let mixed = measured.iter().any(|e| e.change > Some(0.005))
            && measured.iter().any(|e| e.change.is_some_and(|c| c < -0.005));
        let (gain, basis) = match ((self.computed)(host), like.len()) {
            (Some(gain), _) => (gain, Basis::Computed),
            (None, 0) => (plain.gain, Basis::Guess),
            (None, n) => {
                let basis = match best {
                    3 => Basis::Same,
                    1 | 2 => Basis::Similar,
                    _ => Basis::Other,
                };
                ((like[n / 2] + like[(n - 1) / 2]) / 2.0, basis)
            }
        };
        let mut certainty = match basis {
            Basis::Computed => COMPUTED,
            Basis::Guess => UNMEASURED,
            _ => CERTAINTY[usize::from(best)],
        };
        if host.release.is_none() && !self.span().is_empty() {
            certainty /= 2.0;
        }
        let mut state = state;
        if mixed && state != State::Undo {
            certainty /= 2.0;
            if state == State::Change {
                state = State::Measure;
            }
        }
        let patch = patch(&settings);
        Item { state, settings, evidence, computation, measured, gain, basis, certainty, patch, ..plain }
    }

    /// The settings on a host, and their computation. `gone`: those that are written down, to be taken away.
    fn settings(&self, host: &Host, cards: &[&Card], gone: bool) -> (Vec<Setting>, Option<String>) {
        let mut all: Vec<Setting> = Vec::new();
        let mut how: Vec<String> = Vec::new();
        let flags: Vec<&Set> =
            self.sets.iter().filter(|set| matches!(set.place, Place::Offload { .. })).collect();
        for set in self.sets {
            // `hw.ix.…` is about cards of ix alone.
            let of = set.name.strip_prefix("hw.").and_then(|rest| rest.split('.').next()).unwrap_or_default();
            let is_driver = self.drivers.contains(&of);
            if is_driver && !gone && !cards.iter().any(|card| driver(host.kernel, card) == of) {
                continue;
            }
            let plain = Scope { host, card: None, nth: 0, each: "" };
            let spared =
                |card: &Card| !gone && set.is_of_running_card() && host.found.carries_session(&card.name);
            let mut scopes: Vec<Scope> = match set.is_of_card() {
                true => {
                    let cards = cards.iter().filter(|card| !spared(card));
                    cards.map(|card| Scope { card: Some(*card), ..plain }).collect()
                }
                false => vec![plain],
            };
            if let Some((before, after)) = set.name.split_once("{each}") {
                scopes = host.each(before, after).map(|each| Scope { each, ..plain }).collect();
            } else if ["{queue}", "{irq}", "{cpu}"].iter().any(|each| set.name.contains(each)) {
                let numbered = |scope: &Scope| -> Vec<u32> {
                    let card = scope.card;
                    if set.name.contains("{irq}") {
                        let queues = card.map(Card::queue_interrupts).unwrap_or_default();
                        queues.into_iter().map(|(_, irq)| irq.number).collect()
                    } else if set.name.contains("{cpu}") {
                        host.found.machine.cpus.iter().map(|cpu| cpu.cpu).collect()
                    } else {
                        (0..card.and_then(Card::receive_queues).unwrap_or(0).min(MOST_QUEUES)).collect()
                    }
                };
                scopes = scopes
                    .into_iter()
                    .flat_map(|scope| numbered(&scope).into_iter().map(move |nth| Scope { nth, ..scope }))
                    .collect();
            }
            for scope in scopes {
                let Some((setting, worked)) = set.on(&scope, gone, &flags) else { continue };
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
    /// Whether each card has it.
    fn is_of_card(&self) -> bool {
        self.name.contains('{') && !self.name.contains("{cpu}") && !self.name.contains("{each}")
            || matches!(self.place, Place::Offload { .. } | Place::Ethtool { .. })
    }

    /// Whether a change of it reaches a card while that runs.
    fn is_of_running_card(&self) -> bool {
        self.is_of_card() && !matches!(self.place, Place::Loader | Place::Rc)
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
            self.note = Some(self.note.map_or(said.clone(), |note| format!("{note} {said}")));
        }
        self
    }
}

/// A sysctl that the host was asked for and does not have.
fn is_lacking(host: &Host, setting: &Setting) -> bool {
    matches!(&setting.runtime, Some(Runtime::Sysctl { name, .. }) if host.lacks(name))
}

impl Effect {
    fn seen_from(&self, host: &Host) -> Measured {
        let model = host.found.machine.model.as_deref().unwrap_or_default().replace(' ', "");
        let same_cpu = !self.cpu.is_empty()
            && model.match_indices(self.cpu).any(|(at, _)| {
                // E5-2650 is neither E5-2650L nor, where it names a version, another version.
                !model[at + self.cpu.len()..].starts_with(['L', 'l'])
                    && !model[at + self.cpu.len()..].starts_with(|c: char| c.is_ascii_digit())
            });
        let same_card = host.found.cards.iter().any(|card| family(driver(host.kernel, card)) == self.driver);
        let likeness = 2 * u8::from(same_cpu) + u8::from(same_card && !self.driver.is_empty());
        let change = Some(self.percent / 100.0).filter(|change| *change != 0.0);
        Measured { change, on: self.on.into(), source: self.source.into(), likeness }
    }
}

/// The driver of FreeBSD for the same cards.
fn family(driver: &str) -> &str {
    match driver {
        "ixgbe" => "ix",
        "cxgb4" | "cc" => "cxl",
        "mlx4_en" | "mlx4_core" => "mlxen",
        "mlx5_core" => "mce",
        "be2net" => "oce",
        "e1000e" | "e1000" => "em",
        "i40e" => "ixl",
        other => other,
    }
}

fn system(kernel: Kernel) -> &'static str {
    match kernel {
        Kernel::Linux => "Linux",
        Kernel::FreeBsd => "FreeBSD",
        Kernel::OpenBsd => "OpenBSD",
        Kernel::NetBsd => "NetBSD",
    }
}
