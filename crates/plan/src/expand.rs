//! Multiplies a plan out for one operating system, in its full or quick form.

mod relations;

use super::campaign::{Campaign, Cell, Kind as Traffic, Lab, Lane, Requirement, unique_names};
use super::diagnostic::{Diagnostic, Lines};
use super::draft::{Draft, FactorDraft, TESTER_BASELINE, VariantDraft};
use super::grammar::Kind;
use super::names::Named;
use super::settings::{Cpus, Dut, End, Route, Settings};
use super::timetable::Timetable;
use super::value::{Lists, Node, Tree};
use super::{checks, forms, lower, needs};
use crate::lab::HostAddress;
use crate::units::Rate;
use linerate_measure::experiment::{Experiment, Factor, Levels, Measure, System};
use relations::relate;
use serde_json::Value as Json;
use std::collections::HashMap;

/// Default time of a search in nanoseconds, unless twice an undisturbed search takes longer.
const SEARCH_NS: u64 = 600_000_000_000;
/// Text of all cells together at most, in bytes: a plan with large files must not multiply them without bounds.
const MOST_TEXT: u128 = 256 << 20;

/// Expands a plan; faults that show only now go to `problems`, and then there is no campaign.
pub(super) fn expand(
    draft: &Draft,
    system: System,
    quick: bool,
    lines: &Lines<'_>,
    problems: &mut Vec<Diagnostic>,
) -> Option<Campaign> {
    let before = problems.len();
    let variants = active(draft, system, quick);
    let count = variants.iter().fold(0u128, |sum, v| {
        sum.saturating_add(combinations(draft, *v, quick))
    });
    let texts = draft
        .files
        .values()
        .filter_map(|(_, text)| text.as_ref().ok())
        .map(String::len)
        .max()
        .unwrap_or(0);
    let text = count.saturating_mul((lines.bytes() + texts) as u128);
    checks::sizes(draft, quick, count, text > MOST_TEXT, problems);
    if problems.len() > before {
        return None;
    }
    let mut build = Build::new(draft, system, quick);
    // The tester alone comes first: it is the ceiling of the others.
    let mut trees: Vec<(usize, Tree)> = variants
        .iter()
        .map(|v| (*v, resolved(draft, *v, system)))
        .collect();
    trees.sort_by_key(|(_, tree)| lower::settings(tree).dut != Dut::TesterBaseline);
    for (variant, tree) in trees {
        for levels in all_levels(draft, variant, quick) {
            build.cell(variant, &tree, levels, problems);
        }
    }
    // Two ceilings can have one name where a variant, and no factor, sets their CPUs.
    unique_names(&mut build.campaign.cells);
    checks::times(draft, quick, &build.campaign, problems);
    checks::kernels(&build.campaign, problems);
    if problems.len() > before {
        return None;
    }
    let mut campaign = build.campaign;
    relate(draft, &variants, lines, &mut campaign);
    let measure = campaign.experiment.trials.measure;
    if campaign.experiment.trials.budget_ns.is_none()
        && matches!(measure, Measure::Search | Measure::LossCurve)
    {
        let needed = Timetable::new(&campaign).needed_ns;
        campaign.experiment.trials.budget_ns = Some((2 * needed).max(SEARCH_NS));
    }
    Some(campaign)
}

/// The variants that exist on a system and in a form.
fn active(draft: &Draft, system: System, quick: bool) -> Vec<usize> {
    let chosen = draft.quick_variants.as_ref().filter(|_| quick);
    let is_active = |v: &usize| {
        let systems = &draft.variants[*v].systems;
        let has =
            systems.contains(&system) || system.parent().is_some_and(|p| systems.contains(&p));
        has && chosen.is_none_or(|c| c.contains(v)) && !lacks(draft, *v, system)
    };
    (0..draft.variants.len()).filter(is_active).collect()
}

/// Whether a system lacks the firewall of a variant that may be missing: one that was written for its parent, such as ipf of FreeBSD on
/// OPNsense.
fn lacks(draft: &Draft, variant: usize, system: System) -> bool {
    let optional = draft.variants[variant].tree.read("optional") == Some(true);
    if !optional || system.parent().is_none() {
        return false;
    }
    let tree = resolved(draft, variant, system);
    let tool = tree.table("rules").and_then(|rules| rules.text("tool"));
    tool.is_some_and(|tool| !checks::tools(system).contains(&tool))
}

/// Everything that applies to a variant on a system: first the variants that it extends, then its own settings, then its section
/// for the system.
pub(super) fn resolved(draft: &Draft, variant: usize, system: System) -> Tree {
    let mut chain = vec![variant];
    while let Some(parent) = draft.variants[*chain.last().expect("begins with one")].parent {
        chain.push(parent);
    }
    let mut tree = Tree::default();
    for at in chain.into_iter().rev() {
        let mut own = draft.variants[at].tree.clone();
        let sections: Vec<Tree> = system
            .parent()
            .into_iter()
            .chain([system])
            .filter_map(|s| own.table(s.name()).cloned())
            .collect();
        let described = ["about", "from", "systems", "apart", "requires", "optional"];
        own.entries
            .retain(|e| !described.contains(&e.key.as_str()) && System::of_name(&e.key).is_none());
        for own in std::iter::once(&own).chain(&sections) {
            let names_a_file = |rules: &Tree| rules.get("file").is_some();
            if without_firewall(&tree) && own.table("rules").is_some_and(names_a_file) {
                tree.entries.retain(|entry| entry.key != "rules");
            }
            tree.overlay(own, Lists::Extend);
        }
    }
    tree
}

/// Whether the variant asks for no firewall.
fn without_firewall(tree: &Tree) -> bool {
    tree.table("rules")
        .is_some_and(|rules| rules.text("filter") == Some("none"))
}

/// The factors that vary a variant.
fn applying(
    draft: &Draft,
    variant: usize,
    alone: bool,
) -> impl Iterator<Item = (usize, &FactorDraft)> {
    draft
        .factors
        .iter()
        .enumerate()
        .filter(move |(_, f)| f.alone == alone && f.variants.contains(&variant))
}

/// How many cells a variant has.
fn combinations(draft: &Draft, variant: usize, quick: bool) -> u128 {
    let levels = |f: &FactorDraft| f.levels(quick).len() as u128;
    let crossed = applying(draft, variant, false)
        .fold(1u128, |product, (_, f)| product.saturating_mul(levels(f)));
    let alone: u128 = applying(draft, variant, true).map(|(_, f)| levels(f)).sum();
    crossed.saturating_mul(alone.max(1))
}

/// The levels of each cell of a variant.
fn all_levels(draft: &Draft, variant: usize, quick: bool) -> Vec<Levels> {
    let mut crossed: Vec<Levels> = vec![Vec::new()];
    for (at, factor) in applying(draft, variant, false) {
        let levels = 0..factor.levels(quick).len();
        let with = |cell: &Levels| {
            levels
                .clone()
                .map(|l| cell.iter().copied().chain([(at, l)]).collect())
                .collect::<Vec<_>>()
        };
        crossed = crossed.iter().flat_map(with).collect();
    }
    let alone: Vec<(usize, usize)> = applying(draft, variant, true)
        .flat_map(|(at, f)| (0..f.levels(quick).len()).map(move |l| (at, l)))
        .collect();
    if alone.is_empty() {
        return crossed;
    }
    let with = |level: &(usize, usize)| {
        crossed
            .iter()
            .map(|cell| cell.iter().copied().chain([*level]).collect())
            .collect::<Vec<Levels>>()
    };
    alone.iter().flat_map(with).collect()
}

/// A campaign under construction.
struct Build<'d> {
    draft: &'d Draft,
    embedded: bool,
    campaign: Campaign,
    lane_of: HashMap<String, usize>,
    groups: Vec<needs::Shared>,
    /// The cell without a DUT, by kind of traffic, CPUs and kernel.
    ceilings: HashMap<(usize, Option<Cpus>, Option<String>), usize>,
}

impl<'d> Build<'d> {
    /// A campaign without cells.
    fn new(draft: &'d Draft, system: System, quick: bool) -> Self {
        let text = |key: &str| draft.tree.text(key).unwrap_or_default().to_string();
        let lab = lower::lab(&draft.tree);
        let mut requirements = lower::requirements(draft.tree.table("requires"));
        if let Lab::Embedded {
            generator_cpus,
            dut_cpus,
            ..
        } = &lab
        {
            let highest = generator_cpus.iter().chain(dut_cpus).flatten().max();
            requirements.extend(highest.map(|cpu| Requirement::Cpus(cpu + 1)));
        }
        let experiment = Experiment {
            title: text("title"),
            question: text("question"),
            source: draft.tree.text("source").map(str::to_string),
            system,
            quick,
            link_speed: lower::link_speed(&draft.tree),
            factors: draft.factors.iter().map(|f| factor(f, quick)).collect(),
            comparisons: Vec::new(),
            expectations: Vec::new(),
            trials: lower::trials(&draft.tree, quick),
        };
        let campaign = Campaign {
            experiment,
            lab,
            lanes: Vec::new(),
            kinds: Vec::new(),
            cells: Vec::new(),
            collect: lower::collect(&draft.tree),
            requirements,
            source: String::new(),
        };
        let (lane_of, ceilings) = (HashMap::new(), HashMap::new());
        Build {
            draft,
            embedded: draft.is_embedded(),
            campaign,
            lane_of,
            groups: Vec::new(),
            ceilings,
        }
    }

    fn cell(
        &mut self,
        variant: usize,
        resolved: &Tree,
        levels: Levels,
        problems: &mut Vec<Diagnostic>,
    ) {
        let draft = self.draft;
        let Experiment { system, quick, .. } = self.campaign.experiment;
        let (mut tree, mut traffic) = (
            resolved.clone(),
            draft.tree.table("traffic").cloned().unwrap_or_default(),
        );
        for &(factor, level) in &levels {
            let factor = &draft.factors[factor];
            for ((field, _), node) in factor.sets.iter().zip(&factor.levels(quick)[level].values) {
                let target = if field.traffic {
                    &mut traffic
                } else {
                    &mut tree
                };
                target.set(&field.keys, node);
            }
        }
        let (mut settings, (mut kind, rate)) = (lower::settings(&tree), lower::traffic(&traffic));
        if draft.is_of_end_hosts() {
            kind = lower::segments(&traffic);
        }
        let (embedded, family) = (self.embedded, kind.family);
        // Namespaces of the embedded lab have none.
        settings.no_firewall = !embedded && without_firewall(&tree);
        let place = checks::Place {
            draft,
            variant,
            system,
            embedded,
            levels: &levels,
            family,
        };
        checks::settings(&place, &tree, problems);
        match checks::rule_file(&place, &tree) {
            Ok(file) => settings.rule_file = file,
            Err(problem) => problems.push(problem),
        }
        checks::traffic(&place, &tree, &traffic, problems);
        if embedded && settings.dut.routes() {
            add_destinations(&mut settings.routes.explicit, &kind);
        }
        let kind = self.kind(kind);
        let (calibrates, cpus) = (settings.dut == Dut::TesterBaseline, settings.cpus);
        let kernel = settings.kernel.clone();
        let ceiling = (self.embedded && !calibrates)
            .then(|| self.ceiling(kind, cpus, kernel.clone(), &levels));
        if calibrates {
            self.ceilings
                .insert((kind, cpus, kernel), self.campaign.cells.len());
        }
        let VariantDraft { name, tree, .. } = &draft.variants[variant];
        let apart = (tree.read("apart") == Some(true)).then(|| name.clone());
        let lane = self.lane(name, settings, apart, tree.table("requires"));
        let optional = tree.read("optional").unwrap_or_default();
        self.add(
            name,
            Cell {
                levels,
                lane,
                kind,
                rate,
                ceiling,
                optional,
                ..Cell::default()
            },
        );
    }

    /// Adds a cell of a variant: `nft-stateful, rules 1000`.
    fn add(&mut self, variant: &str, cell: Cell) -> usize {
        let name = self
            .campaign
            .experiment
            .name(variant, &cell.levels, |_| true);
        self.campaign.cells.push(Cell {
            name,
            variant: variant.into(),
            ..cell
        });
        self.campaign.cells.len() - 1
    }

    fn kind(&mut self, kind: Traffic) -> usize {
        self.campaign
            .kinds
            .iter()
            .position(|k| *k == kind)
            .unwrap_or_else(|| {
                self.campaign.kinds.push(kind);
                self.campaign.kinds.len() - 1
            })
    }

    /// The lane of these settings; it may already exist. `requires`: the requirements that the variant names.
    fn lane(
        &mut self,
        variant: &str,
        settings: Settings,
        apart: Option<String>,
        requires: Option<&Tree>,
    ) -> usize {
        let key = serde_json::to_string(&(&settings, &apart)).expect("settings are plain data");
        if let Some(&lane) = self.lane_of.get(&key) {
            let variants = &mut self.campaign.lanes[lane].variants;
            if !variants.iter().any(|known| known == variant) {
                variants.push(variant.into());
            }
            return lane;
        }
        let linux = matches!(
            self.campaign.experiment.system,
            System::Linux | System::Vyos
        );
        let mut requirements = lower::requirements(requires);
        requirements.extend(needs::of_settings(&settings, linux));
        requirements.sort();
        requirements.dedup();
        let shared = if self.embedded {
            needs::host_wide(&settings)
        } else {
            needs::of_boot(&settings)
        };
        let group = self.group(shared);
        self.campaign.lanes.push(Lane {
            variants: vec![variant.into()],
            settings,
            apart,
            requirements,
            group,
        });
        self.lane_of.insert(key, self.campaign.lanes.len() - 1);
        self.campaign.lanes.len() - 1
    }

    /// The group of lanes that agree on the shared settings.
    fn group(&mut self, shared: needs::Shared) -> usize {
        match self.groups.iter().position(|group| group.agrees(&shared)) {
            Some(group) => {
                let hash = &mut self.groups[group].hash;
                *hash = hash.take().or(shared.hash);
                group
            }
            None => {
                self.groups.push(shared);
                self.groups.len() - 1
            }
        }
    }

    /// The cell that measures the tester without a DUT, with these frames on as many CPUs.
    fn ceiling(
        &mut self,
        kind: usize,
        cpus: Option<Cpus>,
        kernel: Option<String>,
        levels: &Levels,
    ) -> usize {
        let key = (kind, cpus, kernel.clone());
        if let Some(&cell) = self.ceilings.get(&key) {
            return cell;
        }
        let settings = Settings {
            dut: Dut::TesterBaseline,
            cpus,
            kernel,
            ..Settings::default()
        };
        let lane = self.lane(TESTER_BASELINE, settings, None, None);
        // Only levels that change the frames, the CPUs or the kernel are part of it.
        let matters = |(factor, _): &&(usize, usize)| {
            let paths = self.draft.factors[*factor].sets.iter();
            paths.map(|(field, _)| field.path()).any(|p| {
                p == "cpus" || p == "kernel" || (p.starts_with("traffic.") && p != "traffic.rate")
            })
        };
        let levels: Levels = levels.iter().filter(matters).copied().collect();
        let cell = self.add(
            TESTER_BASELINE,
            Cell {
                levels,
                lane,
                kind,
                ..Cell::default()
            },
        );
        self.ceilings.insert(key, cell);
        cell
    }
}

/// Adds routes to the networks of the traffic's destinations.
fn add_destinations(routes: &mut Vec<Route>, traffic: &Traffic) {
    for (address, length) in traffic.destination_networks() {
        let to = HostAddress {
            address,
            length: Some(length),
        };
        let route = Route {
            to,
            via: None,
            end: End::Out,
        };
        if !routes.contains(&route) {
            routes.push(route);
        }
    }
}

fn factor(draft: &FactorDraft, quick: bool) -> Factor {
    let levels = draft.levels(quick);
    Factor {
        name: draft.name.clone(),
        about: draft.about.clone(),
        sets: draft.sets.iter().map(|(field, _)| field.path()).collect(),
        levels: levels.iter().map(|l| l.label.clone()).collect(),
        numbers: levels
            .iter()
            .map(|l| number(draft.sets.first()?.0.kind, l.values.first()?))
            .collect(),
        alone: draft.alone,
    }
}

/// A level's number on the axis of a plot.
fn number(kind: &Kind, level: &Node) -> Option<f64> {
    match (kind, level.scalar()?) {
        (_, Json::Bool(on)) => Some(f64::from(u8::from(*on))),
        (_, Json::Number(n)) => n.as_f64(),
        (Kind::Form(form), Json::String(rate)) if std::ptr::eq(*form, &forms::RATE) => {
            match rate.parse().ok()? {
                Rate::Frames(n)
                | Rate::BitsLayer1(n)
                | Rate::BitsLayer2(n)
                | Rate::LineShare(n) => Some(n),
                Rate::Max => None,
            }
        }
        (_, Json::Object(table)) => {
            match table.get("lengths_fcs").or_else(|| table.get("count"))? {
                Json::Array(lengths) if lengths.len() == 1 => lengths[0].as_f64(),
                count => count.as_f64(),
            }
        }
        _ => None,
    }
}
