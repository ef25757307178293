//! Plans out of a plan: the cell of a campaign in the words of its author, and variants of it.

use super::campaign::{self, Campaign};
use super::diagnostic::Diagnostic;
use super::grammar::{Kind, Table};
use super::keys::{COMPARE, LAB, TRAFFIC, TRIALS, VARIANT};
use super::names::Named;
use super::schema::Field;
use super::toml_text::Toml;
use super::{Plan, Source, built_in, source, sysctl};
use linerate_measure::experiment::{Experiment, System};
use serde_json::{Map, Value as Json, json};
use toml_writer::ToTomlKey;

/// Keys with values as a plan has them.
pub(crate) type Keys = Map<String, Json>;

/// Keys of a variant that are no settings.
const DESCRIBED: [&str; 6] = ["about", "from", "systems", "apart", "requires", "optional"];

/// The plan of a campaign, as its author wrote it.
pub(crate) struct Author<'c> {
    experiment: &'c Experiment,
    source: Source,
    plan: Keys,
}

/// A cell of a campaign: the tables of a plan for it alone.
#[derive(Debug, Clone)]
pub(crate) struct Cell {
    pub(crate) lab: Keys,
    pub(crate) traffic: Keys,
    /// Keys of its variant.
    pub(crate) settings: Keys,
    /// How its trials are run.
    pub(crate) trials: Keys,
}

/// A variant to be written.
pub(crate) struct Variant {
    pub(crate) name: String,
    pub(crate) about: String,
    /// Whether it wants a DUT of its own.
    pub(crate) apart: bool,
    pub(crate) settings: Keys,
}

impl<'c> Author<'c> {
    /// # Errors
    /// The record of the campaign does not have its plan as it was written.
    pub(crate) fn of(measured: &'c Campaign) -> Result<Self, Vec<Diagnostic>> {
        if measured.source.is_empty() {
            let message =
                "the record has no plan as its author wrote it, for an older linerate made it";
            return Err(vec![Diagnostic::new(message).remedy("measure it again")]);
        }
        let source = Plan::source(measured.source.as_bytes())?;
        Ok(Author {
            experiment: &measured.experiment,
            plan: source::json(source.root()),
            source,
        })
    }

    /// Faults with their places in the text, each in the section of this name.
    pub(crate) fn locate(&self, faults: Vec<([String; 2], Diagnostic)>) -> Vec<Diagnostic> {
        let within = |([table, name], fault): ([String; 2], Diagnostic)| {
            fault.within(self.source.place_of([&table, &name]).unwrap_or_default())
        };
        let faults = faults.into_iter().map(within).collect();
        self.source.lines().locate_all(faults)
    }

    /// Whether a variant is from another, directly or by others.
    pub(crate) fn is_from(&self, variant: &str, base: &str) -> bool {
        self.chain(variant)[1..].contains(&base)
    }

    /// A variant and those of the plan that it is from, the nearest first.
    fn chain<'a>(&'a self, variant: &'a str) -> Vec<&'a str> {
        let variants = self.plan.get("variants");
        let parent = |name: &str| variants?.get(name)?.get("from")?.as_str();
        let mut chain = vec![variant];
        while let Some(next) = chain.last().and_then(|name| parent(name)) {
            // A variant may have the name of the built-in one that it is from.
            if chain.contains(&next) || variants.and_then(|all| all.get(next)).is_none() {
                break;
            }
            chain.push(next);
        }
        chain
    }

    fn table(&self, path: &[&str]) -> Keys {
        let found = path.iter().try_fold(None, |at: Option<&Json>, key| {
            let inner = at.map_or(self.plan.get(*key), |at| at.get(key));
            inner.map(Some)
        });
        found
            .flatten()
            .and_then(Json::as_object)
            .cloned()
            .unwrap_or_default()
    }

    /// A cell, with the levels of its factors.
    pub(crate) fn cell(&self, cell: &campaign::Cell) -> Cell {
        let Experiment {
            system,
            quick,
            factors,
            ..
        } = self.experiment;
        let mut lab = self.table(&["lab"]);
        lab.get_mut("systems")
            .into_iter()
            .for_each(|systems| *systems = json!([system]));
        let (mut traffic, mut settings) = (self.table(&["traffic"]), self.settings(&cell.variant));
        let mut trials = self.table(&["trials"]);
        let mut form = self.table(&["quick"]);
        if *quick {
            form.retain(|key, _| TRIALS.find(key).is_some());
            trials.extend(form);
        }
        let of_quick = self.table(&["quick", "levels"]);
        for &(factor, level) in &cell.levels {
            let Some(factor) = factors.get(factor) else {
                continue;
            };
            let own = self.table(&["factors", &factor.name]);
            let levels = of_quick
                .get(&factor.name)
                .filter(|_| *quick)
                .or(own.get("levels"));
            let Some(value) = levels.and_then(|levels| levels.get(level)) else {
                continue;
            };
            for field in factor
                .sets
                .iter()
                .filter_map(|path| Field::parse(path).ok())
            {
                let of = if field.traffic {
                    &mut traffic
                } else {
                    &mut settings
                };
                set(of, &field.keys, value);
            }
        }
        Cell {
            lab,
            traffic,
            settings,
            trials,
        }
    }

    /// The settings of a variant: those of the variants that it is from, its own, and those of its section for the system.
    fn settings(&self, variant: &str) -> Keys {
        let variants = self.table(&["variants"]);
        let chain = self.chain(variant);
        let last = chain.last().and_then(|name| variants.get(*name));
        let built_in = last.and_then(|last| built_in::written(last.get("from")?.as_str()?));
        let mut all = built_in.unwrap_or_else(|| json!({}));
        let system = self.experiment.system;
        for own in chain
            .into_iter()
            .rev()
            .filter_map(|name| variants.get(name))
        {
            let of_system = system
                .parent()
                .into_iter()
                .chain([system])
                .filter_map(|s| own.get(s.name()));
            let mut settings = own.as_object().cloned().unwrap_or_default();
            settings.retain(|key, _| {
                !DESCRIBED.contains(&key.as_str()) && System::of_name(key).is_none()
            });
            merge(&mut all, &plain(&settings).into());
            of_system
                .filter_map(Json::as_object)
                .for_each(|section| merge(&mut all, &plain(section).into()));
        }
        all.as_object().cloned().unwrap_or_default()
    }
}

impl Cell {
    /// A plan that compares variants with the first one, in the lab and under the traffic of this cell.
    pub(crate) fn experiment(
        &self,
        [title, question]: [&str; 2],
        variants: &[Variant],
        until: Option<&str>,
        trials: &Keys,
    ) -> Toml {
        let mut out = Toml::default();
        out.text("title", Some(title));
        out.text("question", Some(question));
        section(&mut out, "lab", &LAB, &self.lab.clone().into());
        section(&mut out, "traffic", &TRAFFIC, &self.traffic.clone().into());
        let first = variants.first();
        for (at, variant) in variants.iter().enumerate() {
            let mut all = Keys::from_iter([("about".into(), json!(variant.about))]);
            all.extend(variant.apart.then(|| ("apart".into(), true.into())));
            let base = first.filter(|_| at > 0);
            match base.and_then(|base| Some((base, difference(&base.settings, &variant.settings)?)))
            {
                Some((base, own)) => {
                    all.insert("from".into(), json!(base.name));
                    all.extend(own);
                }
                None => all.extend(variant.settings.clone()),
            }
            out.section(
                &format!("variants.{}", variant.name.to_toml_key()),
                &VARIANT,
                &all,
            );
        }
        let mut compare = json!({ "with": first.map(|first| &first.name) });
        until
            .into_iter()
            .for_each(|until| compare["until"] = until.into());
        section(&mut out, "compare", &COMPARE, &compare);
        section(&mut out, "trials", &TRIALS, &trials.clone().into());
        out
    }
}

/// Settings in one spelling: of a setting that a kernel knows by name, `net/ipv4/ip_forward = "1"` is `net.ipv4.ip_forward = 1`.
fn plain(settings: &Keys) -> Keys {
    let value = |value: &Json| {
        let read = Kind::Setting.read(value).ok();
        let Some(text) = read.as_ref().and_then(Json::as_str).map(sysctl::plain) else {
            return value.clone();
        };
        let number = text.parse::<i64>().ok();
        let number = number.filter(|number| number.to_string() == text);
        number.map_or(text.into(), Json::from)
    };
    let mut settings = settings.clone();
    for table in ["sysctls", "boot"] {
        let Some(Json::Object(named)) = settings.get_mut(table) else {
            continue;
        };
        let name = |name: &str| match table {
            "sysctls" => sysctl::dotted(name).into_owned(),
            _ => name.to_string(),
        };
        *named = named
            .iter()
            .map(|(key, of)| (name(key), value(of)))
            .collect();
    }
    settings
}

/// A section, unless it is empty.
pub(crate) fn section(out: &mut Toml, heading: &str, of: &'static Table, keys: &Json) {
    if let Some(keys) = keys.as_object().filter(|keys| !keys.is_empty()) {
        out.section(heading, of, keys);
    }
}

/// The keys that a variant from `base` needs in order to become `target`; `None` where it would have to lose some.
pub(crate) fn difference(base: &Keys, target: &Keys) -> Option<Keys> {
    let mut all = Keys::new();
    for (key, value) in target {
        let own = match (base.get(key), value) {
            (Some(below), value) if below == value => continue,
            (Some(Json::Object(below)), Json::Object(value)) => difference(below, value)?.into(),
            (Some(Json::Array(below)), Json::Array(value)) => {
                let more = value.strip_prefix(below.as_slice())?;
                (!more.iter().any(|item| below.contains(item)))
                    .then_some(more)?
                    .into()
            }
            _ => value.clone(),
        };
        all.insert(key.clone(), own);
    }
    for key in base.keys().filter(|key| !target.contains_key(*key)) {
        // Rules alone can be taken away.
        let written = key == "rules" && base[key].get("filter").is_some();
        written.then(|| all.insert(key.clone(), json!({ "filter": "none" })))?;
    }
    Some(all)
}

/// Settings after a change: a merge patch of RFC 7396, except that lists grow.
pub(crate) fn changed(before: &Keys, patch: &Json) -> Keys {
    let mut after = Json::Object(before.clone());
    merge(&mut after, patch);
    // A setting for both interfaces wins over what one of them had.
    if let Some(of_both) = patch.get("interface").and_then(Json::as_object) {
        for end in ["in", "out"] {
            let asked = |key: &str| of_both.get(end).is_some_and(|end| end.get(key).is_some());
            let own = after
                .get_mut("interface")
                .and_then(|now| now.get_mut(end)?.as_object_mut());
            own.into_iter()
                .for_each(|own| own.retain(|key, _| !of_both.contains_key(key) || asked(key)));
        }
    }
    after.as_object().cloned().unwrap_or_default()
}

fn merge(target: &mut Json, patch: &Json) {
    if let (Json::Array(target), Json::Array(more)) = (&mut *target, patch) {
        let known = target.len();
        target.extend(
            more.iter()
                .filter(|item| !target[..known].contains(item))
                .cloned()
                .collect::<Vec<_>>(),
        );
        return;
    }
    let Json::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (key, value) in patch {
        match value {
            Json::Null => drop(target.as_object_mut().and_then(|target| target.remove(key))),
            value => merge(&mut target[key], value),
        }
    }
}

/// Sets the value at a path.
fn set(all: &mut Keys, path: &[String], value: &Json) {
    let Some((last, tables)) = path.split_last() else {
        return;
    };
    let mut table = all;
    for key in tables {
        let inner = table.entry(key.clone()).or_insert_with(|| json!({}));
        if !inner.is_object() {
            *inner = json!({});
        }
        let Json::Object(inner) = inner else { return };
        table = inner;
    }
    table.insert(last.clone(), value.clone());
}
