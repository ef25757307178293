//! Configuration sets and presets, written as plans.

use super::notes::Notes;
use super::sets::{Set, name};
use super::traffic::{Traffic, traffic};
use super::values::Values;
use super::{DEFAULT_RUNS, LAB_FILE, PlanFile, Source};
use linerate_plan::MOST_BYTES;
use linerate_plan::Plan;
use linerate_plan::placeholders::literal;
use linerate_plan::toml_text::Toml;
use std::collections::BTreeSet;
use toml_writer::{ToTomlKey, ToTomlValue};

/// Bytes of a plan that are reserved for parts other than variants.
const REST: usize = 128 << 10;
/// Bytes of the comments about settings that were not carried over.
const MOST_LEFT: usize = 48 << 10;
/// Bytes of all plans of an import at most: each of them has all variants.
const MOST_ALL: usize = 16 << 20;
/// The measured window of a trial: about as long as the archive's `-n` takes at line rate.
const DURATION_S: u64 = 60;

/// Seconds that the script's pmcstat samples, unless `PMC_DURATION` says otherwise.
const PMC_SECONDS: u64 = 20;
/// Seconds that a plan can sample for.
const MOST_SAMPLED: u64 = 3600;
/// Commands of the DUT around each trial, with the keys of a plan that run them.
const COMMANDS: [(&str, &str); 3] = [
    ("DURING_CMD", "during"),
    ("CUSTOM_CMD", "during"),
    ("AFTER_CMD", "commands"),
];

/// Writes the plans.
pub(super) fn plans(
    source: &Source,
    values: &Values,
    sets: &[Set],
    presets: &[(String, Traffic)],
    notes: &mut Notes,
) -> Vec<PlanFile> {
    let variants = variants(source, sets, notes);
    let base = traffic(values, notes);
    let place = source
        .presets
        .as_ref()
        .map_or("", |folder| folder.path.as_str());
    let distinct: BTreeSet<&Traffic> = presets.iter().map(|(_, t)| t).collect();
    if distinct.len() < presets.len() {
        let what = "some presets differ in nothing that a plan can say: each is measured once";
        notes.left(place, None, what.into());
    }
    if let Some(value) = values.get("PKT_TO_SEND") {
        let what = format!("PKT_TO_SEND: a plan's trials have a length in time: {DURATION_S} s");
        notes.left_value(value, what);
    }
    let runs = source
        .runs
        .or_else(|| values.known("BENCH_ITER")?.parse().ok());
    let runs = runs
        .filter(|n| (1..=1000).contains(n))
        .unwrap_or(DEFAULT_RUNS);
    let reboots = values.known("NO_REBOOT").is_none_or(|value| value == "0");
    let collected = collected(values, notes);
    let writer = Writer {
        source,
        variants: &variants,
        reboots,
        runs,
        collected,
    };
    if let Some(factors) = factors(&distinct) {
        let plan = writer.plan(None, presets.first().map_or(&base, |(_, t)| t), &factors);
        if presets.len() < 2 || Plan::read(plan.as_bytes()).is_ok() {
            return vec![PlanFile {
                name: "PLAN.toml".into(),
                text: plan,
            }];
        }
    }
    notes.carry(
        place,
        None,
        "a plan for each: together they are no levels of factors".into(),
    );
    let (mut seen, mut names) = (BTreeSet::new(), BTreeSet::new());
    let mut plans = Vec::new();
    let mut bytes = 0;
    for (preset, traffic) in presets.iter().filter(|(_, t)| seen.insert(t)) {
        let text = writer.plan(Some(preset), traffic, &[]);
        bytes += text.len() + MOST_LEFT;
        if bytes > MOST_ALL && !plans.is_empty() {
            let what =
                format!("the preset is left out: all plans would have more than {MOST_ALL} bytes");
            notes.left(&super::join(place, preset), None, what);
            continue;
        }
        plans.push(PlanFile {
            name: file_name(preset, &mut names),
            text,
        });
    }
    plans
}

/// The section about what is collected with each trial; empty where the script collects nothing.
fn collected(values: &Values, notes: &mut Notes) -> String {
    let mut out = Toml::default();
    for key in ["during", "commands"] {
        let mut run = Vec::new();
        for (name, _) in COMMANDS.iter().filter(|(_, of)| *of == key) {
            let (Some(value), Some(line)) = (values.get(name), values.known(name)) else {
                continue;
            };
            match line.chars().any(char::is_control) {
                true => {
                    notes.used(name);
                    notes.left_value(
                        value,
                        format!("{name}: it has several lines, and collect.{key} takes one"),
                    );
                }
                false => {
                    notes.carry_value(name, value, &format!("collect.{key}"));
                    run.push(literal(line));
                }
            }
        }
        if !run.is_empty() {
            out.list(key, &run);
        }
    }
    if let (Some(value), Some("true" | "1")) = (values.get("PMC"), values.known("PMC")) {
        let seconds = values
            .known("PMC_DURATION")
            .and_then(|seconds| seconds.parse().ok());
        let seconds = seconds
            .filter(|n| (1..=MOST_SAMPLED).contains(n))
            .unwrap_or(PMC_SECONDS);
        notes.carry_value("PMC", value, "collect.profile");
        notes.used("PMC_DURATION");
        out.text("profile", Some(format!("{seconds} s")));
    }
    let keys = out.0;
    let mut out = Toml::default();
    if !keys.is_empty() {
        out.heading("collect");
    }
    out.0 + &keys
}

/// Settings that were not carried over, as comments behind a plan.
pub(super) fn left(notes: &Notes) -> String {
    let mut out = Toml::default();
    for (at, note) in notes.not_carried.iter().enumerate() {
        if at == 0 {
            out.0 += "\n# Not carried over:\n";
        }
        let line = format!("  {}", note.to_string().replace(['\n', '\r'], " "));
        if out.0.len() + line.len() + 3 > MOST_LEFT {
            out.comment(&format!(
                "  and {} more",
                notes.not_carried.len() - at + notes.more
            ));
            break;
        }
        out.comment(&line);
    }
    out.0
}

/// `PLAN-inet6.toml`, unlike those before.
fn file_name(preset: &str, taken: &mut BTreeSet<String>) -> String {
    let fine = |c: char| {
        if c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_') {
            c
        } else {
            '_'
        }
    };
    let stem: String = preset.chars().map(fine).take(60).collect();
    let plain = std::iter::once(format!("PLAN-{stem}.toml"));
    let mut names = plain.chain((2..).map(|n| format!("PLAN-{stem}-{n}.toml")));
    names
        .find(|name| taken.insert(name.to_lowercase()))
        .unwrap_or_default()
}

/// The sets as variants in TOML, as many as fit into a plan, in the order in which the script takes them.
fn variants<'a>(source: &Source, sets: &'a [Set], notes: &mut Notes) -> Vec<(&'a Set, String)> {
    let place = source
        .sets
        .as_ref()
        .map_or("", |folder| folder.path.as_str());
    let mut written: Vec<(&Set, String)> = sets.iter().map(|set| (set, variant(set))).collect();
    // The baseline is part of every plan.
    let baseline = written
        .iter()
        .find(|(set, _)| set.baseline)
        .map_or(0, |(_, text)| text.len());
    let mut left = (MOST_BYTES - REST).saturating_sub(baseline);
    written.retain(|(set, text)| {
        let fits = if set.baseline { text.len() <= MOST_BYTES - REST } else { text.len() <= left };
        if !fits {
            let what = format!(
                "the set is left out: a plan has {MOST_BYTES} bytes at most, and this one would be larger"
            );
            notes.left(&super::join(place, &set.name), None, what);
        } else if !set.baseline {
            left -= text.len();
        }
        fits
    });
    written
}

fn variant(set: &Set) -> String {
    let place = format!("variants.{}", set.name.to_toml_key());
    let mut out = Toml::default();
    out.heading(&place);
    out.text("about", Some(format!("configuration set {}", set.name)));
    for (name, settings) in [("sysctls", &set.sysctls), ("boot", &set.boot)] {
        if !settings.is_empty() {
            out.heading(&format!("{place}.{name}"));
        }
        settings
            .iter()
            .for_each(|(name, value)| out.text(&name.to_toml_key(), Some(literal(value))));
    }
    for (path, content) in &set.files {
        out.heading(&format!("[{place}.files]"));
        out.text("path", Some(literal(path)));
        out.text("text", Some(literal(content)));
    }
    out.0
}

/// A property that presets may vary: its key in a plan, its description, and its value as TOML.
type Field = (&'static str, &'static str, fn(&Traffic) -> String);

const FIELDS: [Field; 4] = [
    ("size", "frame length with FCS", |t| {
        format!("{} B", t.length_fcs).to_toml_value()
    }),
    ("family", "IP version", |t| t.family.to_toml_value()),
    ("flows", "pairs of addresses and ports", |t| {
        t.flows.to_string()
    }),
    ("rate", "offered load", |t| {
        t.rate
            .map_or("max".into(), |rate| format!("{rate} pps"))
            .to_toml_value()
    }),
];

/// The presets as factors that are crossed, with their levels; `None` where they are not all combinations of these.
fn factors(presets: &BTreeSet<&Traffic>) -> Option<Vec<(Field, Vec<String>)>> {
    let mut factors = Vec::new();
    let mut combinations = 1_usize;
    for field in FIELDS {
        let mut levels: Vec<String> = Vec::new();
        for level in presets.iter().map(|traffic| field.2(traffic)) {
            if !levels.contains(&level) {
                levels.push(level);
            }
        }
        if levels.len() > 1 {
            combinations = combinations.saturating_mul(levels.len());
            factors.push((field, levels));
        }
    }
    (combinations == presets.len().max(1)).then_some(factors)
}

/// Parts that all plans of an import share.
struct Writer<'a> {
    source: &'a Source,
    variants: &'a [(&'a Set, String)],
    reboots: bool,
    runs: u64,
    /// `[collect]`, if there is one.
    collected: String,
}

impl Writer<'_> {
    fn plan(
        &self,
        preset: Option<&str>,
        traffic: &Traffic,
        factors: &[(Field, Vec<String>)],
    ) -> String {
        let mut out = Toml::default();
        let path = &self.source.path;
        out.comment(&format!(
            "Made by `linerate import benchlab` from {path}; what was not carried over is at the end."
        ));
        out.0 += "\n";
        let with = preset.map(|p| format!(", {p}")).unwrap_or_default();
        out.text("title", Some(format!("{}{with}", name(&self.source.title))));
        let question = match self.variants.len() {
            0 | 1 => "How many frames does this DUT forward?",
            _ => "Which of these configuration sets forwards most?",
        };
        out.text("question", Some(question));
        out.heading("lab");
        out.text("file", Some(LAB_FILE));
        out.list("systems", &["freebsd"]);
        out.heading("traffic");
        for (name, _, value) in FIELDS {
            let varied = factors.iter().any(|(field, _)| field.0 == name);
            out.put(name, (!varied).then(|| value(traffic)));
        }
        if self.variants.is_empty() {
            out.heading("variants.as-it-is");
            out.text("about", Some("the DUT as it is found"));
        }
        self.variants.iter().for_each(|(_, text)| out.0 += text);
        for ((name, about, _), levels) in factors {
            out.heading(&format!("factors.{name}"));
            out.text("about", Some(about));
            out.text("sets", Some(format!("traffic.{name}")));
            out.put("levels", Some(format!("[{}]", levels.join(", "))));
        }
        let baseline = self
            .variants
            .iter()
            .find(|(set, _)| set.baseline)
            .map(|(set, _)| &set.name);
        match baseline.filter(|_| self.variants.len() > 1) {
            Some(baseline) => {
                out.heading("compare");
                out.text("with", Some(baseline));
            }
            None if factors.is_empty() => {}
            None => {
                out.heading("compare");
                out.list("what", &["levels"]);
            }
        }
        self.trials(&mut out);
        out.0 + &self.collected
    }

    fn trials(&self, out: &mut Toml) {
        out.heading("trials");
        out.text("duration", Some(format!("{DURATION_S} s")));
        out.put("blocks", Some(self.runs));
        let (comment, reboot) = match self.reboots {
            true => (
                "The script reboots the DUT before each run; so files that are read at boot take effect.",
                "each-trial",
            ),
            false => (
                "NO_REBOOT is set: the DUT is rebooted only where settings for the boot change.",
                "when-needed",
            ),
        };
        out.comment(comment);
        out.text("reboot", Some(reboot));
    }
}
