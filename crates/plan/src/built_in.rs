//! The variants that come with linerate: a plan takes one over with `from`, and `--variant` names one.

use super::diagnostic::{Span, suggestion};
use super::settings::{DUTS, Dut, Settings};
use super::value::{Node, Tree, Value};
use super::{forms, lower};
use serde_json::{Value as Json, json};
use std::str::FromStr;

/// Firewalls: name, handling of a frame, and description.
const FIREWALLS: [(&str, &str, &str); 3] = [
    (
        "nft-stateless",
        "stateless",
        "nftables filter without connection tracking",
    ),
    (
        "nft-stateful",
        "stateful",
        "nftables filter with connection tracking, which passes established connections first",
    ),
    ("nat", "nat", "nftables masquerade"),
];

/// A variant that comes with linerate.
#[derive(Debug, Clone, PartialEq)]
pub struct BuiltIn {
    /// Name of the variant: `nft-stateful`, `known-loss=1000`.
    pub name: String,
    /// Settings of the variant.
    pub settings: Settings,
}

impl BuiltIn {
    /// Names and meanings of all of them. `N` and `T` stand for a number and a time.
    pub fn list() -> impl Iterator<Item = (&'static str, &'static str)> {
        let firewalls = FIREWALLS.iter().map(|(name, _, about)| (*name, *about));
        let duts = DUTS
            .into_iter()
            .filter(|(name, _)| *name != Dut::TesterBaseline.to_string());
        let (plain, known): (Vec<_>, Vec<_>) = duts.partition(|(name, _)| !name.contains('='));
        plain.into_iter().chain(firewalls).chain(known)
    }
}

impl FromStr for BuiltIn {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parameterised = |&(name, _): &(&str, &str)| {
            name.split_once('=')
                .is_some_and(|(name, _)| text.starts_with(&format!("{name}=")))
        };
        let tree = tree(text, Span::default()).ok_or_else(|| {
            if DUTS.iter().any(parameterised)
                && let Err(wrong) = forms::dut(text)
            {
                return wrong.to_string();
            }
            let names: Vec<&str> = Self::list().map(|(name, _)| name).collect();
            let help = suggestion(text, names.iter().copied());
            format!("'{text}' is not a variant: {help}")
        })?;
        let settings = lower::settings(&tree);
        match settings.dut {
            Dut::TesterBaseline => {
                Err("the tester without a DUT is always measured: name a DUT".into())
            }
            _ => Ok(BuiltIn {
                name: text.into(),
                settings,
            }),
        }
    }
}

/// The keys of a built-in variant with their values, as a plan has them; `None` for an unknown name.
pub(super) fn written(name: &str) -> Option<Json> {
    Some(
        match FIREWALLS.iter().find(|(firewall, ..)| *firewall == name) {
            Some((_, filter, _)) => json!({ "rules": { "tool": "nftables", "filter": filter } }),
            None => {
                forms::dut(name).ok()?;
                json!({ "dut": name })
            }
        },
    )
}

/// The settings of a built-in variant, all at one place of a text; `None` for an unknown name.
pub(super) fn tree(name: &str, span: Span) -> Option<Tree> {
    let mut tree = Tree::default();
    let mut set = |path: &[&str], value: Json| {
        let path: Vec<String> = path.iter().map(|key| key.to_string()).collect();
        tree.set(
            &path,
            &Node {
                span,
                value: Value::Scalar(value),
            },
        );
    };
    let written = written(name)?;
    match written.get("rules").and_then(Json::as_object) {
        Some(rules) => rules
            .iter()
            .for_each(|(key, value)| set(&["rules", key], value.clone())),
        None => set(&["dut"], json!(forms::dut(name).ok()?)),
    }
    Some(tree)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{Firewall, Kind as Rules};

    #[test]
    fn names_become_settings() {
        for (name, _) in BuiltIn::list() {
            let example = name
                .replace("=N", "=1000")
                .replace("=T", "=50us")
                .replace("/T", "/60us");
            let example = example
                .replace("@R", "@2000")
                .replace("@S", "@1s")
                .replace("@FRAME", "@syn");
            assert_eq!(example.parse::<BuiltIn>().unwrap().name, example);
        }
        let stateful = "nft-stateful".parse::<BuiltIn>().unwrap().settings;
        let rules = stateful.rules.as_ref().unwrap();
        assert_eq!(
            (rules.firewall, rules.kind, stateful.dut),
            (Firewall::Nftables, Rules::Stateful, Dut::Forwarding)
        );
        let delay = "known-delay=50us".parse::<BuiltIn>().unwrap().settings.dut;
        assert_eq!(delay, Dut::KnownDelay(50_000));
        for text in [
            "",
            "pf",
            "known-rate=0",
            "known-rate=x",
            "known-delay=1s",
            "known-delays=1us",
            "known-queue=0@1",
            "known-outage=1s",
            "tester-baseline",
            "forwarding=1",
        ] {
            assert!(text.parse::<BuiltIn>().is_err(), "{text}");
        }
    }
}
