//! From a campaign to the text of a plan: the reverse of the other modules. The tables of [`super::keys`] say how values are written.
//!
//! A campaign has one system and one form, and its variants are multiplied out. So the text has no sections for systems, no quick
//! form and no descriptions of variants; what several variants have in common is written once, with `from`.

use super::campaign::{Campaign, Cell, Collect, Kind as Traffic, Lab, Lane, Requirement};
use super::draft::TESTER_BASELINE;
use super::forms::size_text;
use super::grammar::Table;
use super::keys::{COLLECT, COMPARE, EXPECT, FACTOR, LAB, REQUIRES, SETTINGS, TRAFFIC, TRIALS, VARIANT};
use super::names::Named;
use super::rules::{Firewall, Kind as Filter, RuleSet};
use super::schema::Field;
use super::settings::Settings;
use super::toml_text::Toml;
use super::units::Rate;
use super::{needs, text_form};
use linerate_measure::experiment::{
    Claim, Comparison, Experiment, Factor, Interest, Measure, Method, Order, Reboot, System, Trials,
};
use linerate_measure::record::Mode;
use serde::Serialize;
use serde_json::{Map, Value as Json, json, value::Serializer};
use std::collections::BTreeSet;
use toml_writer::ToTomlKey;

/// Keys with values as a plan has them.
pub(crate) type Keys = Map<String, Json>;

/// Writes a campaign as a plan: reading it gives the same lanes, kinds of traffic, cells and comparisons.
pub fn write(campaign: &Campaign) -> String {
    let parts = Parts::new(campaign);
    let experiment = &campaign.experiment;
    let mut out = Toml::default();
    head(&mut out, &experiment.title, &experiment.question, experiment.source.as_deref());
    section(&mut out, "lab", &LAB, lab(campaign));
    section(&mut out, "traffic", &TRAFFIC, parts.traffic());
    variants(&mut out, &parts.variants());
    parts.factors.iter().for_each(|&factor| {
        let name = experiment.factors[factor].name.to_toml_key();
        out.section(&format!("factors.{name}"), &FACTOR, &parts.factor(factor));
    });
    section(&mut out, "compare", &COMPARE, parts.compare());
    section(&mut out, "trials", &TRIALS, trials(&experiment.trials));
    collect(&mut out, &campaign.collect);
    section(&mut out, "requires", &REQUIRES, required(&parts.required()));
    parts.expectations().iter().for_each(|expect| out.section("[expect]", &EXPECT, expect));
    out.0
}

/// Title, question and source.
pub(crate) fn head(out: &mut Toml, title: &str, question: &str, source: Option<&str>) {
    out.text("title", Some(title));
    out.text("question", Some(question));
    out.text("source", source);
}

/// A section, unless it is empty.
pub(crate) fn section(out: &mut Toml, heading: &str, of: &'static Table, keys: Keys) {
    if !keys.is_empty() {
        out.section(heading, of, &keys);
    }
}

/// Fields of a type, or of `json!`, as keys of a table.
pub(crate) fn keys(of: &'static Table, fields: impl Serialize) -> Keys {
    match json!(fields) {
        Json::Object(fields) => of.write(&fields),
        _ => Keys::new(),
    }
}

/// Where it runs, and for which system.
pub(crate) fn lab(campaign: &Campaign) -> Keys {
    let mut fields = match &campaign.lab {
        Lab::File { path } => json!({ "file": path }),
        Lab::Embedded { mode, generator_cpus, dut_cpus, port, batch, statement } => json!({
            "mode": (*mode != Mode::Inline).then_some(mode),
            "generator-cpus": generator_cpus, "dut-cpus": dut_cpus, "port": port, "batch": batch,
            "statement": statement,
        }),
    };
    let system = campaign.experiment.system;
    fields["systems"] = json!((system != System::Linux).then_some([system]));
    fields["link-speed"] = json!(campaign.experiment.link_speed);
    keys(&LAB, fields)
}

/// Frames and their load, with defaults.
pub(crate) fn traffic(kind: &Traffic, rate: &Rate) -> Keys {
    let mut fields = json!(kind);
    // Texts call it "ICMP echo".
    fields["transport"] = json!(kind.transport.to_string().split(' ').next());
    fields["rate"] = text_form::rate::serialize(rate, Serializer).unwrap_or_default();
    let mut all = keys(&TRAFFIC, fields);
    all.extend(kind.asked.iter().map(|size| ("size".to_string(), size_text(size).into())));
    all
}

/// Without the values that a key has by default.
pub(crate) fn without_defaults(mut all: Keys, defaults: &Keys) -> Keys {
    all.retain(|key, value| defaults.get(key) != Some(value));
    all
}

/// Settings as keys of a variant, with defaults.
pub(crate) fn settings(settings: &Settings) -> Keys {
    let mut fields = json!(settings);
    fields["rules"] = rules(settings);
    fields["interface"] = interface(fields["inside"].take(), fields["outside"].take());
    for command in fields["commands"].as_array_mut().into_iter().flatten() {
        command["undone-by-reboot"] = json!(command["undo"].is_null().then_some(true));
    }
    keys(&SETTINGS, fields)
}

/// The settings that both interfaces have, and those that differ.
fn interface(inside: Json, outside: Json) -> Json {
    let differ = |end: &Json, other: &Json| -> Keys {
        let fields = end.as_object().into_iter().flatten();
        fields
            .filter(|(key, value)| other.get(key) != Some(value))
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect()
    };
    let (own_in, own_out) = (differ(&inside, &outside), differ(&outside, &inside));
    let mut both = inside;
    if let Some(both) = both.as_object_mut() {
        both.retain(|key, _| !own_in.contains_key(key));
        both.extend([("in".into(), own_in.into()), ("out".into(), own_out.into())]);
    }
    both
}

fn rules(settings: &Settings) -> Json {
    let tool = |firewall: Firewall| if firewall.is_pf() { "pf" } else { firewall.name() };
    match (&settings.rules, &settings.rule_file) {
        (Some(rules), _) => {
            let mut all = json!({
                "tool": tool(rules.firewall), "filter": rules.kind, "before": rules.rules_before,
                "optimize": rules.optimize,
            });
            let hash = if rules.hash_sized { "sized" } else { "default" };
            for (key, n) in [("table", rules.table.map(u64::from)), ("states", rules.states)] {
                n.into_iter().for_each(|n| all[key] = n.into());
            }
            rules.states.iter().for_each(|_| all["hash"] = hash.into());
            all
        }
        (None, Some(file)) => {
            let mut all = json!({ "tool": tool(file.firewall), "file": file.file });
            let given = file.map.iter().filter(|(name, _)| !file.guessed.contains_key(*name));
            let given: Keys = given.map(|(name, end)| (name.clone(), json!(end))).collect();
            if !given.is_empty() {
                all["map"] = given.into();
            }
            all
        }
        (None, None) => json!({}),
    }
}

/// A variant's settings without defaults.
fn lean(all: Keys) -> Keys {
    let stateless = RuleSet::new(Firewall::Nftables, Filter::Stateless);
    let rules = RuleSet { states: Some(1), ..stateless };
    let defaults = settings(&Settings { rules: Some(rules), ..Settings::default() });
    let mut all = without_defaults(all, &defaults);
    if let Some(Json::Object(rules)) = all.get_mut("rules") {
        let is_default = |key: &str, value: &Json| defaults["rules"].get(key) == Some(value);
        rules.retain(|key, value| {
            ["tool", "filter", "states"].contains(&key.as_str()) || !is_default(key, value)
        });
    }
    all
}

/// A variant to be written.
pub(crate) struct Variant {
    pub(crate) name: String,
    /// Keys beside the settings.
    pub(crate) described: Keys,
    /// Settings, with defaults.
    pub(crate) settings: Keys,
}

/// Writes variants. One that differs little from one before it is from that.
pub(crate) fn variants(out: &mut Toml, variants: &[Variant]) {
    for (at, variant) in variants.iter().enumerate() {
        let mut own = lean(variant.settings.clone());
        let mut parent = None;
        for other in &variants[..at] {
            let difference = difference(&other.settings, &variant.settings);
            if let Some(difference) = difference.filter(|less| leaves(less) < leaves(&own)) {
                (own, parent) = (difference, Some(&other.name));
            }
        }
        let mut all = variant.described.clone();
        all.extend(parent.map(|name| ("from".to_string(), json!(name))));
        all.extend(own);
        out.section(&format!("variants.{}", variant.name.to_toml_key()), &VARIANT, &all);
    }
}

/// Single values of a table and of the tables in it.
fn leaves(keys: &Keys) -> usize {
    keys.values().map(|value| value.as_object().map_or(1, leaves)).sum()
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
                (!more.iter().any(|item| below.contains(item))).then_some(more)?.into()
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

/// How trials are run.
pub(crate) fn trials(trials: &Trials) -> Keys {
    keys(
        &TRIALS,
        json!({
            "duration": trials.duration_ns, "blocks": trials.blocks, "budget": trials.budget_ns,
            "order": (trials.order != Order::default()).then_some(trials.order), "seed": trials.seed,
            "reboot": (trials.reboot != Reboot::default()).then_some(trials.reboot),
            "pause": (trials.pause_ns > 0).then_some(trials.pause_ns),
            "measure": (trials.measure != Measure::default()).then_some(trials.measure),
            "goals": (!trials.goals.is_empty()).then_some(&trials.goals),
            "method": (trials.method != Method::default()).then_some(trials.method), "step": trials.step,
            "width": trials.width, "min-load": trials.min_fps, "max-load": trials.max_fps,
            "tests": (!trials.tests.is_empty()).then_some(&trials.tests), "repeats": trials.repeats,
            "verify": (trials.verify > 0).then_some(trials.verify), "drain": trials.drain_ns,
            "settle": trials.settle_ns,
        }),
    )
}

fn collect(out: &mut Toml, collect: &Collect) {
    let usual = Collect { what: vec!["cpus".into()], ..Collect::default() };
    if *collect != usual {
        out.section("collect", &COLLECT, &keys(&COLLECT, collect));
    }
}

/// Requirements as a table.
fn required<'r>(all: impl IntoIterator<Item = &'r Requirement>) -> Keys {
    let mut fields = Keys::new();
    for requirement in all {
        let (key, value) = match requirement {
            Requirement::Tool(name) => ("tools", json!([name])),
            Requirement::Module(name) => ("modules", json!([name])),
            Requirement::Sysctl(name) => ("sysctls", json!([name])),
            Requirement::File(name) => ("files", json!([name])),
            Requirement::Kernel(major, minor) => ("kernel", json!([major, minor])),
            Requirement::Cpus(n) => ("cpus", json!(n)),
            Requirement::Memory(bytes) => ("memory", json!(bytes)),
            // No key names it: it follows from the settings.
            Requirement::Link(_) => continue,
        };
        match (fields.get_mut(key).and_then(Json::as_array_mut), value) {
            (Some(list), Json::Array(more)) if key != "kernel" => list.extend(more),
            (_, value) => drop(fields.insert(key.into(), value)),
        }
    }
    REQUIRES.write(&fields)
}

/// A campaign, taken apart into what a plan names.
struct Parts<'c> {
    campaign: &'c Campaign,
    /// The names of its variants, in their order.
    names: Vec<&'c str>,
    /// The factors that vary any of them.
    factors: Vec<usize>,
}

impl<'c> Parts<'c> {
    fn new(campaign: &'c Campaign) -> Self {
        let mut names: Vec<&str> = Vec::new();
        let named = named(campaign);
        for cell in campaign.cells.iter().filter(|cell| named || cell.variant != TESTER_BASELINE) {
            if !names.contains(&cell.variant.as_str()) {
                names.push(&cell.variant);
            }
        }
        let mut parts = Parts { campaign, names, factors: Vec::new() };
        let vary = |factor: &usize| parts.cells().any(|cell| level(cell, *factor).is_some());
        parts.factors = (0..campaign.experiment.factors.len()).filter(vary).collect();
        parts
    }

    /// The cells of variants; the others are ceilings, which a plan does not name.
    fn cells(&self) -> impl Iterator<Item = &'c Cell> + Clone {
        self.campaign.cells.iter().filter(|cell| self.names.contains(&cell.variant.as_str()))
    }

    fn of_variant(&self, name: &str) -> impl Iterator<Item = &'c Cell> + Clone {
        self.cells().filter(move |cell| cell.variant == name)
    }

    fn fields(&self, factor: usize) -> impl Iterator<Item = Field> {
        self.campaign.experiment.factors[factor].sets.iter().filter_map(|path| Field::parse(path).ok())
    }

    fn traffic_of(&self, cell: &Cell) -> Keys {
        traffic(&self.campaign.kinds[cell.kind], &cell.rate)
    }

    /// The value that a field has in a cell.
    fn value(&self, cell: &Cell, field: &Field) -> Option<Json> {
        let all = match field.traffic {
            true => self.traffic_of(cell),
            false => settings(&self.campaign.lanes[cell.lane].settings),
        };
        let (last, tables) = field.keys.split_last()?;
        let inner = tables.iter().try_fold(&all, |inner, key| inner.get(key)?.as_object());
        inner?.get(last).cloned()
    }

    /// The traffic beside the factors.
    fn traffic(&self) -> Keys {
        let mut base = Keys::new();
        for cell in self.cells() {
            let mut own = self.traffic_of(cell);
            for field in cell.levels.iter().flat_map(|(factor, _)| self.fields(*factor)).filter(|f| f.traffic)
            {
                own.remove(&field.keys[0]);
            }
            for (key, value) in own {
                // Frames other than UDP over IPv4 always have a checksum.
                if value == Json::Bool(false) || !base.contains_key(&key) {
                    base.insert(key, value);
                }
            }
        }
        without_defaults(base, &traffic(&Traffic::default(), &Rate::Max))
    }

    fn variants(&self) -> Vec<Variant> {
        let variant = |name: &&'c str| {
            let lanes = || self.of_variant(name).map(|cell| &self.campaign.lanes[cell.lane]);
            let mut described = Keys::new();
            if lanes().any(|lane| lane.apart.as_deref() == Some(name)) {
                described.insert("apart".into(), true.into());
            }
            if self.of_variant(name).any(|cell| cell.optional) {
                described.insert("optional".into(), true.into());
            }
            let linux = matches!(self.campaign.experiment.system, System::Linux | System::Vyos);
            let of_it = lanes().filter(|lane| lane.variants.first().is_some_and(|first| first == name));
            let needs: BTreeSet<&Requirement> =
                of_it.flat_map(|lane| own_requirements(lane, linux)).collect();
            if !needs.is_empty() {
                described.insert("requires".into(), required(needs).into());
            }
            Variant { name: name.to_string(), described, settings: self.settings(name) }
        };
        self.names.iter().map(variant).collect()
    }

    /// The settings of a variant beside the factors.
    fn settings(&self, name: &str) -> Keys {
        let Some(cell) = self.of_variant(name).next() else { return Keys::new() };
        let mut all = settings(&self.campaign.lanes[cell.lane].settings);
        for (factor, _) in &cell.levels {
            // A factor that is swept by itself leaves the plan's value to the others.
            let without = self.of_variant(name).find(|cell| level(cell, *factor).is_none());
            for field in self.fields(*factor).filter(|field| !field.traffic) {
                set(&mut all, &field.keys, without.and_then(|cell| self.value(cell, &field)));
            }
        }
        all
    }

    fn factor(&self, at: usize) -> Keys {
        let Factor { about, sets, alone, .. } = &self.campaign.experiment.factors[at];
        let varied = |name: &&&str| self.of_variant(name).any(|cell| level(cell, at).is_some());
        let varied: Vec<&&str> = self.names.iter().filter(varied).collect();
        let levels = self.campaign.experiment.factors[at].levels.len();
        let mut all = Keys::new();
        all.extend(about.iter().map(|about| ("about".into(), json!(about))));
        all.insert("sets".into(), if let [path] = sets.as_slice() { json!(path) } else { json!(sets) });
        all.insert("levels".into(), (0..levels).map(|level| self.level((at, level))).collect());
        all.extend(alone.then(|| ("combine".into(), "alone".into())));
        all.extend((varied.len() < self.names.len()).then(|| ("variants".into(), json!(varied))));
        all
    }

    /// A level as the plan has it: as its name reads, if that is its value.
    fn level(&self, (factor, at): (usize, usize)) -> Json {
        let label = &self.campaign.experiment.factors[factor].levels[at];
        let Some(field) = self.fields(factor).next() else { return json!(label) };
        let cell = self.cells().find(|cell| level(cell, factor) == Some(at));
        let value = cell.and_then(|cell| self.value(cell, &field));
        let number = label.parse::<i64>().ok().map(Json::from);
        let flag = ["off", "on"].iter().position(|word| word == label).map(|on| Json::Bool(on == 1));
        let read = |raw: Json| Some((field.kind.write(&field.kind.read(&raw).ok()?), raw));
        let all: Vec<_> = number.into_iter().chain(flag).chain([json!(label)]).filter_map(read).collect();
        let found = all.iter().find(|(written, _)| *written == value).or(all.first());
        found.map_or(json!(label), |(_, raw)| raw.clone())
    }

    fn compare(&self) -> Keys {
        let Experiment { comparisons, trials, .. } = &self.campaign.experiment;
        let with = comparisons.iter().find(|c| c.why == Interest::Variants);
        let with = with.map(|comparison| self.campaign.cells[comparison.than].variant.clone());
        keys(&COMPARE, json!({ "with": with, "what": self.decides(), "until": trials.until }))
    }

    /// The kinds of comparison that the stopping rule waits for, unless they are the usual ones.
    fn decides(&self) -> Option<Vec<&'static str>> {
        let Experiment { comparisons, expectations, .. } = &self.campaign.experiment;
        let of = |why: fn(&Interest) -> bool| -> BTreeSet<(usize, usize)> {
            comparisons.iter().filter(|c| why(&c.why)).map(|c| (c.of, c.than)).collect()
        };
        let expected =
            expectations.iter().flat_map(|e| &e.pairs).filter_map(|(of, than)| Some((*of, (*than)?)));
        let kinds: [(&str, BTreeSet<(usize, usize)>); 4] = [
            ("variants", of(|why| *why == Interest::Variants)),
            ("expectations", expected.collect()),
            ("levels", of(|why| matches!(why, Interest::Levels(_)))),
            ("ceilings", of(|why| *why == Interest::Ceiling)),
        ];
        let decide: BTreeSet<_> = comparisons.iter().filter(|c| c.decides).map(|c| (c.of, c.than)).collect();
        let [(_, variants), (_, expected), _, (_, ceilings)] = &kinds;
        if decide == variants | expected && ceilings.is_empty() {
            return None;
        }
        let all_decide = |(_, pairs): &&(&str, BTreeSet<_>)| !pairs.is_empty() && pairs.is_subset(&decide);
        let words: Vec<&str> = kinds.iter().filter(all_decide).map(|(word, _)| *word).collect();
        // Where none decides, one that is about nothing.
        let nothing = kinds.iter().filter(|(_, pairs)| pairs.is_empty()).map(|(word, _)| *word).take(1);
        Some(if words.is_empty() { nothing.collect() } else { words })
    }

    /// The requirements that the plan names, without those of the lab's CPUs.
    fn required(&self) -> Vec<Requirement> {
        let mut all = self.campaign.requirements.clone();
        if let Lab::Embedded { generator_cpus, dut_cpus, .. } = &self.campaign.lab {
            let highest = generator_cpus.iter().chain(dut_cpus).flatten().max();
            if all.last() == highest.map(|cpu| Requirement::Cpus(cpu + 1)).as_ref() {
                all.pop();
            }
        }
        all
    }

    /// The expectations about any cells.
    fn expectations(&self) -> Vec<Keys> {
        let judged = self.campaign.experiment.expectations.iter().filter(|e| !e.pairs.is_empty());
        let expect = |expected: &linerate_measure::experiment::Expectation| {
            let cell = |at: usize| &self.campaign.cells[at];
            let of: Vec<&Cell> = expected.pairs.iter().map(|(of, _)| cell(*of)).collect();
            let pairs: Vec<(&Cell, &Cell)> =
                expected.pairs.iter().filter_map(|(of, than)| Some((cell(*of), cell((*than)?)))).collect();
            let than: Vec<&Cell> = pairs.iter().map(|(_, than)| *than).collect();
            let mut fields = json!({ "of": self.selector(&of, None), "because": expected.because });
            let (is, value) = match expected.claim {
                Claim::Slower(by) => ("slower", (by > 0.0).then_some(("by", json!(by)))),
                Claim::Faster(by) => ("faster", (by > 0.0).then_some(("by", json!(by)))),
                Claim::Within(share) => ("same", Some(("within", json!(share)))),
                Claim::NoDifference => ("not-different", None),
                Claim::AtLeast(rate) => ("at-least", Some(("rate", format!("{rate}pps").into()))),
                Claim::AtMost(rate) => ("at-most", Some(("rate", format!("{rate}pps").into()))),
            };
            fields["is"] = is.into();
            value.into_iter().for_each(|(key, value)| fields[key] = value);
            if !than.is_empty() {
                fields["than"] = self.selector(&than, Some(&of));
            }
            keys(&EXPECT, fields)
        };
        judged.map(expect).collect()
    }

    /// Common properties of cells: a variant, and levels. `like`: the cells that they are compared with, which have the rest.
    fn selector(&self, cells: &[&Cell], like: Option<&[&Cell]>) -> Json {
        let Some(first) = cells.first() else { return Json::Null };
        let same = cells.iter().all(|cell| cell.variant == first.variant);
        let has_one = |factor: usize| {
            let of_variant = self.campaign.cells.iter().filter(|cell| cell.variant == first.variant);
            let mut levels = of_variant.map(|cell| level(cell, factor));
            let one = levels.next();
            levels.all(|level| Some(level) == one)
        };
        let needed = |(factor, at): &&(usize, usize)| {
            let common = cells.iter().all(|cell| level(cell, *factor) == Some(*at));
            let needed = match like {
                Some(like) => like.iter().any(|cell| level(cell, *factor) != Some(*at)),
                None => !(same && has_one(*factor)),
            };
            common && needed
        };
        let name = |factor: usize| self.campaign.experiment.factors[factor].name.clone();
        // Each cell has one ceiling, whatever its levels.
        let ceiling = like.is_some() && !self.names.contains(&first.variant.as_str());
        let levels = first.levels.iter().filter(needed).filter(|_| !ceiling);
        let mut all: Keys = levels.map(|level| (name(level.0), self.level(*level))).collect();
        let as_before = like.is_some_and(|like| like.iter().zip(cells).all(|(a, b)| a.variant == b.variant));
        match (same, all.is_empty()) {
            (true, true) => return json!(first.variant),
            (true, false) if !as_before => drop(all.insert("variant".into(), json!(first.variant))),
            _ => {}
        }
        all.into()
    }
}

/// Whether `tester-baseline` is a variant of the plan, and not only the ceiling of others.
fn named(campaign: &Campaign) -> bool {
    let is_it = |at: usize| campaign.cells[at].variant == TESTER_BASELINE;
    let compared = |c: &Comparison| {
        matches!(c.why, Interest::Variants | Interest::Levels(_)) && (is_it(c.of) || is_it(c.than))
    };
    let is_ceiling = |at: usize| campaign.cells.iter().any(|cell| cell.ceiling == Some(at));
    campaign.experiment.comparisons.iter().any(compared)
        || (0..campaign.cells.len()).any(|at| is_it(at) && !is_ceiling(at))
}

fn level(cell: &Cell, factor: usize) -> Option<usize> {
    cell.levels.iter().find(|(of, _)| *of == factor).map(|(_, level)| *level)
}

/// The requirements of a lane that do not follow from its settings.
fn own_requirements(lane: &Lane, linux: bool) -> impl Iterator<Item = &Requirement> {
    let follow = needs::of_settings(&lane.settings, linux);
    lane.requirements.iter().filter(move |requirement| !follow.contains(requirement))
}

/// Sets or removes the value at a path.
fn set(all: &mut Keys, path: &[String], value: Option<Json>) {
    let [key, rest @ ..] = path else { return };
    match (rest, value) {
        ([], Some(value)) => drop(all.insert(key.clone(), value)),
        ([], None) => drop(all.remove(key)),
        (rest, value) => {
            let inner = all.entry(key.clone()).or_insert_with(|| json!({}));
            inner.as_object_mut().into_iter().for_each(|inner| set(inner, rest, value.clone()));
            if inner.as_object().is_some_and(Keys::is_empty) {
                all.remove(key);
            }
        }
    }
}
