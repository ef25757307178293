//! Advice: which settings of a host should change, by rules over its facts.
//!
//! A [`rule::Rule`] is data: a setting, the systems and releases that have it, the roles that it is for, a condition, the wanted
//! value, the reason, measured effects with their sources, and its cost. [`advise`] gives the [`Item`]s of a host. [`lines`]
//! writes them as a shell script, an Ansible playbook or a diff.
#![forbid(unsafe_code)]

mod host;
mod item;
pub mod lines;
pub mod rule;
mod rules;
mod setting;

pub use host::{Demands, Host, version};
pub use item::{Basis, Item, Lasting, Measured, ROLES, Role, Setting, State, Topic};
pub use rules::{EXCLUDED, SOURCES, all};
pub use setting::kept::{Kept, kept, may_keep};

use linerate_hosts::configuration::{Configuration, Release};
pub use linerate_hosts::dut_changes::Runtime;
use serde::{Deserialize, Serialize};

/// The version of [`Advice`] that this program writes.
pub const VERSION: u32 = 1;

/// The advice for a host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Advice {
    pub version: u32,
    pub system: Release,
    pub role: Role,
    /// The path that the buffers of an end host are for.
    #[serde(default)]
    pub path: Option<Path>,
    /// Items to act on first, by expected gain x certainty; then those that are done, and those that the release does not have.
    pub items: Vec<Item>,
    /// Title and author of the documents that they name.
    #[serde(default)]
    pub sources: Vec<String>,
}

/// A path between two end hosts.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Path {
    /// Bit/s.
    pub rate: f64,
    /// Round-trip time in nanoseconds.
    pub rtt_ns: f64,
}

impl Advice {
    /// The advice with these items alone.
    #[must_use]
    pub fn with(self, items: Vec<Item>) -> Advice {
        let said = |item: &Item, mark: &str| {
            let texts = [
                Some(&item.title),
                Some(&item.why),
                Some(&item.cost),
                item.evidence.as_ref(),
                item.computation.as_ref(),
            ];
            let sources = item.measured.iter().map(|effect| &effect.source);
            texts
                .into_iter()
                .flatten()
                .chain(sources)
                .any(|text| text.contains(mark))
        };
        let named = SOURCES
            .iter()
            .filter(|(mark, _)| items.iter().any(|item| said(item, mark)));
        let sources = named.map(|(_, source)| (*source).into()).collect();
        Advice {
            items,
            sources,
            ..self
        }
    }
}

/// The advice for a host with these facts; `None` if its system is not known here.
pub fn advise(found: &Configuration, demands: Demands) -> Option<Advice> {
    let host = Host::new(found, demands)?;
    let mut items: Vec<Item> = all().filter_map(|rule| rule.item(&host)).collect();
    let order = |item: &Item| match item.state {
        State::Done => 1,
        State::Unjudged | State::Absent => 2,
        _ => 0,
    };
    items.sort_by(|a, b| {
        order(a)
            .cmp(&order(b))
            .then(b.weight().total_cmp(&a.weight()))
    });
    let (system, role) = (found.system.clone(), host.role);
    let path = (role == Role::EndHost).then(|| rules::endhost::path(&host));
    let path = path.map(|(rate, rtt_ns)| Path { rate, rtt_ns });
    Some(
        Advice {
            version: VERSION,
            system,
            role,
            path,
            items: Vec::new(),
            sources: Vec::new(),
        }
        .with(items),
    )
}
