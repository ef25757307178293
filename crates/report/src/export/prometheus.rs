//! The text format of Prometheus, for the textfile directory of a node exporter.

use crate::pages::Records;
use linerate_measure::calendar;
use linerate_measure::experiment::Judgement;
use linerate_measure::record::{Campaign, Row, Stopped, Summary, TrialRecord};
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
    name: &'static str,
    help: &'static str,
    samples: Vec<(String, f64)>,
}

const JUDGEMENTS: [(&str, Option<Judgement>); 4] = [
    ("met", Some(Judgement::Met)),
    ("missed", Some(Judgement::Missed)),
    ("undecided", Some(Judgement::Undecided)),
    ("not-judged", None),
];

impl Metrics {
    pub fn of(records: &Records<'_>) -> Self {
        let Records { campaign, host, summary, trials, .. } = *records;
        let lab = campaign.asked.lab.to_string();
        let common = labels([("campaign", &campaign.name), ("lab", &lab)]);
        let mut all = Metrics { common, families: Vec::new() };
        let versions = [("linerate", &campaign.linerate), ("kernel", &host.kernel), ("cpu", &host.cpu_model)];
        all.add(
            "campaign_info",
            "The campaign, with its linerate and its machine.",
            [(labels(versions), 1.0)],
        );
        if let Some(started) = calendar::seconds(&campaign.started) {
            let help = "When the campaign began, in seconds since 1970.";
            all.add("campaign_start_timestamp_seconds", help, [(String::new(), started as f64)]);
        }
        let help = "How long the campaign took.";
        all.add("campaign_duration_seconds", help, [(String::new(), summary.seconds)]);
        let whole = !matches!(summary.stopped, Stopped::Interrupted | Stopped::Failed);
        let help = "Whether the campaign came to its end.";
        all.add("campaign_complete", help, [(String::new(), f64::from(u8::from(whole)))]);
        all.cells(summary, trials);
        all.searches(campaign, summary);
        all.expectations(summary);
        all
    }

    fn cells(&mut self, summary: &Summary, trials: &[TrialRecord]) {
        type Figure = fn(&Row) -> Option<f64>;
        let figures: [(&str, &str, Figure); 7] = [
            ("trials", "Trials of the cell.", |r| Some(r.trials as f64)),
            ("offered_frames_per_second", "Median offered load.", |r| measured(r).then_some(r.offered)),
            ("received_frames_per_second", "Forwarding rate: the median of the valid trials.", |r| {
                measured(r).then_some(r.received.median)
            }),
            ("received_low_frames_per_second", "Lower end of its 95 % interval.", |r| r.received.low),
            ("received_high_frames_per_second", "Upper end of its 95 % interval.", |r| r.received.high),
            ("loss_ratio", "Lost frames by sent frames, over all valid trials.", |r| {
                (r.valid_trials > 0).then_some(r.loss_ratio)
            }),
            ("goodput_bits_per_second", "Payload that TCP carried: the median of the valid trials.", |r| {
                r.tcp.as_ref().map(|tcp| tcp.bits.median)
            }),
        ];
        let named = |row: &Row| labels([("cell", &row.name)]);
        for (name, help, of) in figures {
            self.add(name, help, summary.rows.iter().filter_map(|row| Some((named(row), of(row)?))));
        }
        let invalid =
            |row: &Row| trials.iter().filter(|t| t.slot == row.slot && !t.audit.valid).count() as f64;
        let help = "Trials of the cell that failed their audit, and are in no figure.";
        self.add("invalid_trials", help, summary.rows.iter().map(|row| (named(row), invalid(row))));
        let latency = |row: &Row, wanted: fn(&str) -> Option<&str>| -> Vec<(String, f64)> {
            let known =
                row.latency_ns.iter().filter_map(|(name, ns)| Some((wanted(name)?, *ns as f64 / 1e9)));
            let of = |percent: &str| match percent {
                "" => named(row),
                _ => labels([("cell", row.name.as_str()), ("percentile", percent)]),
            };
            known.map(|(percent, seconds)| (of(percent), seconds)).collect()
        };
        let all = |wanted| summary.rows.iter().flat_map(move |row| latency(row, wanted)).collect::<Vec<_>>();
        let help = "Latency of stamped frames, by percentile.";
        self.add("latency_seconds", help, all(|name| name.strip_prefix('p').filter(|p| *p != "dv")));
        self.add("latency_min_seconds", "Least latency.", all(|name| (name == "min").then_some("")));
        let help = "Delay variation (RFC 5481, PDV): 99.9 % of the frames vary by no more.";
        self.add("delay_variation_seconds", help, all(|name| (name == "pdv").then_some("")));
    }

    fn searches(&mut self, campaign: &Campaign, summary: &Summary) {
        let bounds = |upper: bool| {
            summary.searches.iter().flat_map(move |search| {
                let cell = campaign.name_of(search.slot);
                search.goals.iter().filter_map(move |goal| {
                    let bound = if upper { goal.outcome.upper } else { goal.outcome.lower };
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
        let count = |judgement| summary.expectations.iter().filter(|e| e.judgement == judgement).count();
        let all = JUDGEMENTS.iter().map(|(name, j)| (labels([("judgement", name)]), count(*j) as f64));
        let help = "Expectations of the plan, by their judgement.";
        self.add("expectations", help, all.filter(|_| !summary.expectations.is_empty()));
    }

    fn add(
        &mut self,
        name: &'static str,
        help: &'static str,
        samples: impl IntoIterator<Item = (String, f64)>,
    ) {
        let common = &self.common;
        let all = |own: String| if own.is_empty() { common.clone() } else { format!("{common},{own}") };
        let finite = samples.into_iter().filter(|(_, value)| value.is_finite());
        let samples = finite.map(|(own, value)| (all(own), value)).collect();
        self.families.push(Family { name, help, samples });
    }
}

fn measured(row: &Row) -> bool {
    row.received.n > 0
}

/// Labels as the text has them, without braces.
fn labels<'a, S: AsRef<str> + 'a + ?Sized>(all: impl IntoIterator<Item = (&'a str, &'a S)>) -> String {
    let escaped = |text: &str| {
        let plain = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect::<String>();
        plain.replace('\\', "\\\\").replace('"', "\\\"")
    };
    let one = |(name, text): (&str, &S)| format!("{name}=\"{}\"", escaped(text.as_ref()));
    all.into_iter().map(one).collect::<Vec<_>>().join(",")
}

/// The metrics of campaigns of different names as one file: the samples of a metric stand together.
pub fn prometheus(campaigns: &[Metrics]) -> String {
    let mut names: Vec<(&str, &str)> = Vec::new();
    for family in campaigns.iter().flat_map(|campaign| &campaign.families) {
        if !family.samples.is_empty() && !names.contains(&(family.name, family.help)) {
            names.push((family.name, family.help));
        }
    }
    let mut text = String::new();
    for (name, help) in names {
        let _ = writeln!(text, "# HELP linerate_{name} {help}\n# TYPE linerate_{name} gauge");
        let families = campaigns.iter().flat_map(|campaign| &campaign.families);
        for (labels, value) in families.filter(|f| f.name == name).flat_map(|f| &f.samples) {
            let _ = writeln!(text, "linerate_{name}{{{labels}}} {value}");
        }
    }
    text
}
