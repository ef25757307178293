//! The text format of Prometheus, for the textfile directory of a node exporter.

use crate::figures::{CELL, Of};
use crate::format::plain;
use crate::pages::{JUDGEMENTS, Records};
use crate::prelude::*;
use linerate_measure::calendar;
use std::fmt::Write;

/// The verdict of a campaign as metrics.
#[derive(Debug, Clone)]
pub struct Metrics {
    /// Labels of every sample.
    common: String,
    families: Vec<Family>,
}

/// A metric with its samples: labels, already in the form of the text, and value.
#[derive(Debug, Clone)]
struct Family {
    name: String,
    help: String,
    samples: Vec<(String, f64)>,
}

/// The figures of cells that are metrics.
const FIGURES: [&str; 9] = [
    "trials",
    "offered",
    "received",
    "received_low",
    "received_high",
    "loss_ratio",
    "goodput",
    "latency_min",
    "delay_variation",
];

impl Metrics {
    pub fn of(records: &Records<'_>) -> Self {
        let Records {
            campaign,
            host,
            summary,
            ..
        } = *records;
        let lab = campaign.asked.lab.to_string();
        let common = labels([("campaign", &campaign.name), ("lab", &lab)]);
        let mut all = Metrics {
            common,
            families: Vec::new(),
        };
        let versions = [
            ("linerate", &campaign.linerate),
            ("kernel", &host.kernel),
            ("cpu", &host.cpu_model),
        ];
        all.add(
            "campaign_info",
            "The campaign, with its linerate and its machine.",
            [(labels(versions), 1.0)],
        );
        let mut add = |name, help, value| all.add(name, help, [(String::new(), value)]);
        if let Some(started) = calendar::seconds(&campaign.started) {
            let help = "When the campaign began, in seconds since 1970.";
            add("campaign_start_timestamp_seconds", help, started as f64);
        }
        let help = "How long the campaign took.";
        add("campaign_duration_seconds", help, summary.seconds);
        let whole = !matches!(summary.stopped, Stopped::Interrupted | Stopped::Failed);
        let help = "Whether the campaign came to its end.";
        add("campaign_complete", help, f64::from(u8::from(whole)));
        all.cells(records);
        all.percentiles(summary);
        all.searches(campaign, summary);
        all.expectations(summary);
        all
    }

    /// The figures of cells that stand by themselves.
    fn cells(&mut self, records: &Records<'_>) {
        let Records {
            summary, trials, ..
        } = *records;
        let cells: Vec<(String, Of<'_>)> = summary
            .rows
            .iter()
            .filter_map(|row| Some((named(row), Of::cell(records, row)?)))
            .collect();
        for figure in CELL.iter().filter(|figure| FIGURES.contains(&figure.name)) {
            let (name, help) = figure.metric();
            let values = cells
                .iter()
                .filter_map(|(cell, of)| Some((cell.clone(), figure.measured(of)?)));
            self.add(&name, &help, values);
        }
        let invalid = |row: &Row| {
            trials
                .iter()
                .filter(|t| t.slot == row.slot && !t.audit.valid)
                .count() as f64
        };
        let help = "Trials of the cell that failed their audit, and are in no figure.";
        self.add(
            "invalid_trials",
            help,
            summary.rows.iter().map(|row| (named(row), invalid(row))),
        );
    }

    /// Latencies, of as many percentiles as each cell has.
    fn percentiles(&mut self, summary: &Summary) {
        let of = |row: &Row| {
            let all = row
                .latency_ns
                .iter()
                .filter_map(|(name, ns)| Some((name.strip_prefix('p')?, ns)));
            let all = all.filter(|(percent, _)| *percent != "dv");
            let label = |percent| labels([("cell", row.name.as_str()), ("percentile", percent)]);
            all.map(|(percent, ns)| (label(percent), *ns as f64 / 1e9))
                .collect::<Vec<_>>()
        };
        let help = "Latency of stamped frames, by percentile.";
        self.add("latency_seconds", help, summary.rows.iter().flat_map(of));
    }

    fn searches(&mut self, campaign: &Campaign, summary: &Summary) {
        let bounds = |upper: bool| {
            summary.searches.iter().flat_map(move |search| {
                let cell = campaign.name_of(search.slot);
                search.goals.iter().filter_map(move |goal| {
                    let bound = if upper {
                        goal.outcome.upper
                    } else {
                        goal.outcome.lower
                    };
                    Some((labels([("cell", cell), ("goal", &goal.name)]), bound?))
                })
            })
        };
        let help = "Highest load that meets the goal of a search.";
        self.add("search_lower_bound_frames_per_second", help, bounds(false));
        let help = "Lowest load that misses the goal of a search.";
        self.add("search_upper_bound_frames_per_second", help, bounds(true));
    }

    fn expectations(&mut self, summary: &Summary) {
        let count = |judgement| {
            summary
                .expectations
                .iter()
                .filter(|e| e.judgement == judgement)
                .count()
        };
        let label = |name: &str| labels([("judgement", &name.replace(' ', "-"))]);
        let all = JUDGEMENTS
            .iter()
            .map(|(judgement, name)| (label(name), count(*judgement) as f64));
        let help = "Expectations of the plan, by their judgement.";
        self.add(
            "expectations",
            help,
            all.filter(|_| !summary.expectations.is_empty()),
        );
    }

    fn add(&mut self, name: &str, help: &str, samples: impl IntoIterator<Item = (String, f64)>) {
        let common = &self.common;
        let all = |own: String| {
            if own.is_empty() {
                common.clone()
            } else {
                format!("{common},{own}")
            }
        };
        let finite = samples.into_iter().filter(|(_, value)| value.is_finite());
        let samples = finite.map(|(own, value)| (all(own), value)).collect();
        self.families.push(Family {
            name: name.into(),
            help: help.into(),
            samples,
        });
    }
}

fn named(row: &Row) -> String {
    labels([("cell", &row.name)])
}

/// Labels as the text has them, without braces.
fn labels<'a, S: AsRef<str> + 'a + ?Sized>(
    all: impl IntoIterator<Item = (&'a str, &'a S)>,
) -> String {
    let escaped = |text: &str| plain(text).replace('\\', "\\\\").replace('"', "\\\"");
    let one = |(name, text): (&str, &S)| format!("{name}=\"{}\"", escaped(text.as_ref()));
    all.into_iter().map(one).joined(",")
}

/// The metrics of campaigns of different names as one file: the samples of a metric stand together.
pub fn prometheus(campaigns: &[Metrics]) -> String {
    let mut names: Vec<[&str; 2]> = Vec::new();
    for family in campaigns.iter().flat_map(|campaign| &campaign.families) {
        let name = [family.name.as_str(), &family.help];
        if !family.samples.is_empty() && !names.contains(&name) {
            names.push(name);
        }
    }
    let mut text = String::new();
    for [name, help] in names {
        let _ = writeln!(
            text,
            "# HELP linerate_{name} {help}\n# TYPE linerate_{name} gauge"
        );
        let families = campaigns.iter().flat_map(|campaign| &campaign.families);
        for (labels, value) in families.filter(|f| f.name == name).flat_map(|f| &f.samples) {
            let _ = writeln!(text, "linerate_{name}{{{labels}}} {value}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_is_in_the_catalogue_and_in_the_documents() {
        let document = include_str!("../../../../docs/forms.md");
        for name in FIGURES {
            let figure = CELL.iter().find(|figure| figure.name == name).expect(name);
            let (metric, _) = figure.metric();
            let short = format!("`{name}_\u{2026}`");
            assert!(
                document.contains(&format!("`{metric}`")) || document.contains(&short),
                "{metric}"
            );
        }
    }
}
