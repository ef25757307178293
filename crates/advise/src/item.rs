//! An item of advice: what is now, what should be, how it is changed now and for good, and why.

use linerate_hosts::dut_changes::Runtime;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Purpose of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Forwards packets without looking at connections.
    Router,
    /// Forwards packets and filters them.
    Firewall,
    /// Sends and receives for its own programs.
    EndHost,
    /// Forwards frames.
    Bridge,
}

/// All roles.
pub const ROLES: [Role; 4] = [Role::Router, Role::Firewall, Role::EndHost, Role::Bridge];

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Role::Router => "router",
            Role::Firewall => "firewall",
            Role::EndHost => "end host",
            Role::Bridge => "bridge",
        })
    }
}

/// Subject of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Topic {
    Forwarding,
    Firewall,
    Queues,
    Cards,
    Cpus,
    EndHost,
    Release,
}

/// The action that an item asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Change it.
    Change,
    /// Change it and measure: it helps some machines and harms others.
    Measure,
    /// Take it back: it is set here, and is outdated or harmful.
    Undo,
    /// No setting does it: a person must.
    ByHand,
    /// The setting is as advised.
    Done,
    /// This release does not have the setting.
    Absent,
    /// The facts do not show whether it is needed; `note` says what is missing.
    Unjudged,
}

/// A recommendation for a host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Item {
    /// Name, the same on every host: `freebsd-redirect`.
    pub id: String,
    pub topic: Topic,
    pub state: State,
    /// The advice in a few words.
    pub title: String,
    /// The settings to change together; with [`State::Done`], those that are as advised.
    pub settings: Vec<Setting>,
    /// The facts of this host that it follows from.
    pub evidence: Option<String>,
    /// The computation of the values, with this host's numbers.
    pub computation: Option<String>,
    pub why: String,
    /// Gains measured elsewhere; those on hardware like this one first.
    pub measured: Vec<Measured>,
    /// The expected growth of the rate as a share: 0.24 is +24 %.
    pub gain: f64,
    /// Where it comes from.
    pub basis: Basis,
    /// How certain that is, from 0 to 1.
    pub certainty: f64,
    /// Costs of the change, and what it breaks.
    pub cost: String,
    /// About this release: what became of the setting.
    pub note: Option<String>,
    /// Why its lines are comments in a script, unless a person names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reserve: Option<String>,
    /// The plan that comes with linerate and tests it: `lab/harvest`.
    pub plan: Option<String>,
    /// Keys of a plan's variant that make the change: `{ "sysctls": { "net.inet.ip.redirect": 0 } }`.
    pub patch: Option<serde_json::Value>,
}

impl Item {
    /// Expected gain x certainty: items are sorted by it.
    pub fn weight(&self) -> f64 {
        self.gain * self.certainty
    }

    /// Whether some of its settings are shared by all network namespaces of a machine.
    pub fn is_of_machine(&self) -> bool {
        let mut changes = self.settings.iter().filter_map(|of| of.runtime.as_ref());
        changes.any(Runtime::is_of_machine)
    }

    /// The command that measures it.
    pub fn test(&self) -> Option<String> {
        let lab = |plan: &str| {
            if plan.starts_with("lab/") {
                " --lab LAB.toml"
            } else {
                ""
            }
        };
        self.plan
            .as_ref()
            .map(|plan| format!("linerate run {plan}{}", lab(plan)))
    }

    /// Whether it may make the host faster: others are about safety, or the host needs them for its role.
    pub fn may_be_faster(&self) -> bool {
        self.gain > 0.0 || self.state == State::Undo
    }

    /// Whether it has something that a program can change.
    pub fn is_change(&self) -> bool {
        matches!(self.state, State::Change | State::Measure | State::Undo)
            && !self.settings.is_empty()
    }
}

/// Where an expected gain comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// Measured on the same CPU and card.
    Same,
    /// Measured on the same CPU, or the same card.
    Similar,
    /// Measured on other hardware.
    Other,
    /// Computed with this host's values.
    Computed,
    /// Nobody measured it.
    Guess,
}

/// A measured effect.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Change of the rate as a share; `None` where no difference was proven.
    pub change: Option<f64>,
    /// The hardware, and what was compared.
    pub on: String,
    pub source: String,
    /// Whether this host has the same CPU, the same driver, or both: 0 to 3.
    pub likeness: u8,
}

/// A setting with its change.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    /// As administrators write it: `net.inet.ip.redirect`, `ethtool -K eth0 lro`.
    pub name: String,
    /// Present value, where it is known: the running one, else the one of the next boot.
    pub now: Option<String>,
    /// The value that it should have; `None`: the system's own.
    pub wanted: Option<String>,
    /// How it is changed at once; `None`: a boot does it.
    pub runtime: Option<Runtime>,
    /// How it stays after a boot; `None` where the file's present line is not known.
    pub lasting: Option<Lasting>,
    /// Where a person makes it stay, on a host whose own program writes the files: `System > Settings > Tunables`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
}

/// A change of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lasting {
    pub file: String,
    /// The line takes the place of those that begin with this, blanks aside: `net.inet.ip.redirect=`.
    pub key: String,
    /// The line; `None`: lines with the key go.
    pub line: Option<String>,
    /// The lines that a new file begins with, in files with sections.
    pub heading: Option<String>,
    /// The present line, if it is known.
    pub was: Option<String>,
    /// Whether the line stands before the rules of pf.conf, and behind its other options.
    #[serde(default)]
    pub option: bool,
}

impl Lasting {
    /// The line that takes the place of those that begin with `key`.
    pub(crate) fn of(file: &str, key: &str, line: String) -> Lasting {
        Lasting {
            file: file.into(),
            key: key.into(),
            line: Some(line),
            ..Lasting::default()
        }
    }
}
