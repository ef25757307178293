//! Configuration sets and presets, written as plans.

use super::notes::Notes;
use super::sets::{Set, name};
use super::shell::Values;
use super::testbed::Testbed;
use super::toml_text::{block, comment, key, text};
use super::traffic::{Traffic, traffic};
use super::{DEFAULT_RUNS, LAB_FILE, MOST_BYTES, PlanFile, Source};
use linerate_plan::placeholders::literal;
use linerate_plan::{Diagnostic, Plan};
use std::collections::BTreeSet;
use std::fmt::Write;

/// Bytes of a plan that are reserved for parts other than variants.
const REST: usize = 128 << 10;
/// Bytes of the comments about settings that were not carried over.
const MOST_LEFT: usize = 48 << 10;
/// Bytes of all plans of an import at most: each of them has all variants.
const MOST_ALL: usize = 16 << 20;
/// The measured window of a trial: about as long as the archive's `-n` takes at line rate.
const DURATION_S: u64 = 60;

/// Writes the plans.
///
/// # Errors
/// The faults of a plan that even alone is too much.
pub(super) fn plans(
    source: &Source,
    testbed: &Testbed,
    values: &Values,
    sets: &[Set],
    presets: &[(String, Traffic)],
    notes: &mut Notes,
) -> Result<Vec<PlanFile>, Vec<Diagnostic>> {
    let variants = variants(source, sets, notes);
    let base = traffic(values, notes);
    let runs = runs(source, values);
    if presets.iter().map(|(_, t)| t).collect::<BTreeSet<_>>().len() < presets.len() {
        let place = source.presets.as_ref().map_or("", |f| f.path.as_str());
        notes.left(
            place,
            None,
            "some presets differ in nothing that a plan can say: each is measured once".into(),
        );
    }
    packets(values, notes);
    let writer = Writer { source, testbed, variants: &variants, sets, runs };
    let all: Vec<&Traffic> = presets.iter().map(|(_, t)| t).collect();
    if let Some(factors) = factors(&all) {
        let plan = writer.plan(None, all.first().copied().unwrap_or(&base), &factors);
        if presets.len() < 2 || Plan::read(plan.as_bytes()).is_ok() {
            return Ok(vec![PlanFile { name: "PLAN.toml".into(), text: plan }]);
        }
    }
    let place = source.presets.as_ref().map_or("", |f| f.path.as_str());
    notes.carry(place, None, "a plan for each: together they are no levels of factors".into());
    let mut seen = BTreeSet::new();
    let mut names = BTreeSet::new();
    let mut plans = Vec::new();
    let mut bytes = 0;
    for (preset, traffic) in presets.iter().filter(|(_, t)| seen.insert(t)) {
        let text = writer.plan(Some(preset), traffic, &[]);
        bytes += text.len() + MOST_LEFT;
        if bytes > MOST_ALL && !plans.is_empty() {
            let what = format!("the preset is left out: all plans would have more than {MOST_ALL} bytes");
            notes.left(&super::join(place, preset), None, what);
            continue;
        }
        let name = file_name(preset, &mut names);
        plans.push(PlanFile { name, text });
    }
    Ok(plans)
}

/// Settings that were not carried over, as comments behind a plan.
pub(super) fn left(notes: &Notes) -> String {
    let mut out = String::new();
    for (at, note) in notes.not_carried.iter().enumerate() {
        if at == 0 {
            out += "\n# Not carried over:\n";
        }
        let line = comment(&format!("  {}", note.to_string().replace(['\n', '\r'], " ")));
        if out.len() + line.len() > MOST_LEFT {
            out += &comment(&format!("  and {} more", notes.not_carried.len() - at + notes.more));
            break;
        }
        out += &line;
    }
    out
}

/// `PLAN-inet6.toml`, unlike those before.
fn file_name(preset: &str, taken: &mut BTreeSet<String>) -> String {
    let fine = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_') { c } else { '_' };
    let stem: String = preset.chars().map(fine).take(60).collect();
    let plain = std::iter::once(format!("PLAN-{stem}.toml"));
    let mut names = plain.chain((2..).map(|n| format!("PLAN-{stem}-{n}.toml")));
    let name = names.find(|name| !taken.contains(&name.to_lowercase())).unwrap_or_default();
    taken.insert(name.to_lowercase());
    name
}

fn runs(source: &Source, values: &Values) -> u64 {
    let said = source.runs.or_else(|| values.known("BENCH_ITER")?.parse().ok());
    said.filter(|n| (1..=1000).contains(n)).unwrap_or(DEFAULT_RUNS)
}

fn packets(values: &Values, notes: &mut Notes) {
    if let Some(value) = values.get("PKT_TO_SEND") {
        notes.used("PKT_TO_SEND");
        let what = format!("PKT_TO_SEND: a plan's trials have a length in time: {DURATION_S} s");
        notes.left_value(value, what);
    }
}

/// The variants as TOML, as many as fit into a plan.
fn variants(source: &Source, sets: &[Set], notes: &mut Notes) -> Vec<(String, String)> {
    let mut left = MOST_BYTES - REST;
    let mut written = Vec::new();
    // The baseline is part of every plan.
    let mut order: Vec<&Set> = sets.iter().collect();
    order.sort_by_key(|set| !set.baseline);
    for set in order {
        let text = variant(set);
        if text.len() > left {
            let place = source.sets.as_ref().map_or("", |f| f.path.as_str());
            let what = format!(
                "the set is left out: a plan has {MOST_BYTES} bytes at most, and this one would be larger"
            );
            notes.left(&super::join(place, &set.name), None, what);
            continue;
        }
        left -= text.len();
        written.push((set.name.clone(), text));
    }
    // As the script takes them.
    written.sort_by_key(|(name, _)| sets.iter().position(|set| set.name == *name));
    written
}

fn variant(set: &Set) -> String {
    let place = format!("variants.{}", key(&set.name));
    let mut out = format!("\n[{place}]\nabout = {}\n", text(&format!("configuration set {}", set.name)));
    for (name, settings) in [("sysctls", &set.sysctls), ("boot", &set.boot)] {
        if !settings.is_empty() {
            let _ = writeln!(out, "\n[{place}.{name}]");
        }
        for (setting, value) in settings {
            let _ = writeln!(out, "{} = {}", key(setting), text(&literal(value)));
        }
    }
    for (path, content) in &set.files {
        let (path, content) = (text(&literal(path)), block(&literal(content)));
        let _ = writeln!(out, "\n[[{place}.files]]\npath = {path}\ntext = {content}");
    }
    out
}

/// A factor: its name, its lines, and its levels as TOML.
struct Factor {
    name: &'static str,
    about: &'static str,
    levels: Vec<String>,
}

/// A property that presets may vary: its key in a plan, its description, and its value as TOML.
type Field = (&'static str, &'static str, fn(&Traffic) -> String);

const FIELDS: [Field; 4] = [
    ("size", "frame length with FCS", |t| text(&format!("{} B", t.length_fcs))),
    ("family", "IP version", |t| text(t.family)),
    ("flows", "pairs of addresses and ports", |t| t.flows.to_string()),
    ("rate", "offered load", |t| text(&t.rate.map_or_else(|| "max".into(), |rate| format!("{rate} pps")))),
];

/// The presets as factors that are crossed; `None` where they are not all combinations of their levels.
fn factors(presets: &[&Traffic]) -> Option<Vec<Factor>> {
    let distinct: BTreeSet<&&Traffic> = presets.iter().collect();
    let mut sorted: Vec<&Traffic> = distinct.iter().map(|t| **t).collect();
    sorted.sort_by_key(|t| (t.length_fcs, t.family, t.flows, t.rate));
    let mut factors = Vec::new();
    let mut combinations = 1_usize;
    for (name, about, level) in FIELDS {
        let mut levels: Vec<String> = Vec::new();
        for traffic in &sorted {
            let level = level(traffic);
            if !levels.contains(&level) {
                levels.push(level);
            }
        }
        if levels.len() > 1 {
            combinations = combinations.saturating_mul(levels.len());
            factors.push(Factor { name, about, levels });
        }
    }
    // Flows count up, whatever the length that they first occur with.
    for factor in factors.iter_mut().filter(|f| f.name == "flows") {
        factor.levels.sort_by_key(|level| level.parse::<u64>().unwrap_or(0));
    }
    (combinations == sorted.len().max(1)).then_some(factors)
}

/// Parts that all plans of an import share.
struct Writer<'a> {
    source: &'a Source,
    testbed: &'a Testbed,
    variants: &'a [(String, String)],
    sets: &'a [Set],
    runs: u64,
}

impl Writer<'_> {
    fn plan(&self, preset: Option<&str>, traffic: &Traffic, factors: &[Factor]) -> String {
        let mut out = comment(&format!(
            "Made by `linerate import benchlab` from {}; what was not carried over is at the end.",
            self.source.path
        ));
        let with = preset.map(|p| format!(", {p}")).unwrap_or_default();
        let _ = writeln!(out, "\ntitle = {}", text(&format!("{}{with}", name(&self.source.title))));
        let question = match self.variants.len() {
            0 | 1 => "How many frames does this DUT forward?",
            _ => "Which of these configuration sets forwards most?",
        };
        let _ = writeln!(out, "question = {}", text(question));
        let _ = writeln!(out, "\n[lab]\nfile = {}\nsystems = [\"freebsd\"]", text(LAB_FILE));
        frames(&mut out, traffic, factors);
        if self.variants.is_empty() {
            out += "\n[variants.as-it-is]\nabout = \"the DUT as it is found\"\n";
        }
        self.variants.iter().for_each(|(_, text)| out += text);
        for factor in factors {
            let Factor { name, about, levels } = factor;
            let _ = writeln!(out, "\n[factors.{name}]\nabout = {}\nsets = \"traffic.{name}\"", text(about));
            let _ = writeln!(out, "levels = [{}]", levels.join(", "));
        }
        self.compare(&mut out, !factors.is_empty());
        self.trials(&mut out);
        out
    }

    fn compare(&self, out: &mut String, factors: bool) {
        let baseline = self.sets.iter().find(|set| set.baseline).map(|set| &set.name);
        let baseline = baseline.filter(|name| self.variants.iter().any(|(n, _)| n == *name));
        if let (Some(name), true) = (baseline, self.variants.len() > 1) {
            let _ = writeln!(out, "\n[compare]\nwith = {}", text(name));
        } else if factors {
            out.push_str("\n[compare]\nwhat = [\"levels\"]\n");
        }
    }

    fn trials(&self, out: &mut String) {
        let reboot = if self.testbed.reboots { "each-trial" } else { "when-needed" };
        let _ = writeln!(out, "\n[trials]\nduration = \"{DURATION_S} s\"\nblocks = {}", self.runs);
        *out += &match self.testbed.reboots {
            true => comment(
                "The script reboots the DUT before each run; so files that are read at boot take effect.",
            ),
            false => {
                comment("NO_REBOOT is set: the DUT is rebooted only where settings for the boot change.")
            }
        };
        let _ = writeln!(out, "reboot = {}", text(reboot));
    }
}

/// Properties of the frames that no factor sets.
fn frames(out: &mut String, traffic: &Traffic, factors: &[Factor]) {
    let _ = writeln!(out, "\n[traffic]");
    for (name, _, value) in FIELDS {
        if !factors.iter().any(|factor| factor.name == name) {
            let _ = writeln!(out, "{name} = {}", value(traffic));
        }
    }
}
