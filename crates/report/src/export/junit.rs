//! JUnit XML, which CI systems read: a test case for each thing that a campaign or a comparison can fail.

use super::xml;
use crate::pages::{Records, Shown, Unreal, decisive, unreal};
use crate::prelude::*;
use linerate_explain::DOUBTS;
use linerate_measure::record::{Expected, Explanation};
use linerate_measure::slower::{Held, Slowdown, of_variants};
use maud::{PreEscaped, html};

/// The test cases of a campaign, or of comparisons.
#[derive(Debug)]
pub struct Suite {
    name: String,
    /// When it began, RFC 3339.
    started: Option<String>,
    seconds: f64,
    /// Facts about it.
    properties: Vec<(&'static str, String)>,
    cases: Vec<Case>,
}

#[derive(Debug)]
struct Case {
    /// Kind of the case: `expectations`.
    kind: &'static str,
    name: String,
    /// The time of its trials, where it has its own.
    seconds: Option<f64>,
    outcome: Outcome,
    /// Figures and reasons, a line each.
    told: Vec<String>,
}

/// A failure and a skipped test have their reason.
impl Case {
    fn new(
        kind: &'static str,
        name: impl Into<String>,
        outcome: Outcome,
        told: Vec<String>,
    ) -> Case {
        Case {
            kind,
            name: name.into(),
            seconds: None,
            outcome,
            told,
        }
    }
}

#[derive(Debug)]
enum Outcome {
    Passed,
    Failed(String),
    Skipped(String),
}

impl Suite {
    /// Whether the campaign came to its end, the audit of each cell, each expectation, each variant against its baseline if there is a
    /// share by which nothing may be slower, and whether each rate is its DUT's.
    pub fn of_campaign(records: &Records<'_>, limit: Option<f64>) -> Suite {
        let Records {
            campaign,
            host,
            summary,
            trials,
            ..
        } = *records;
        let mut cases = vec![ended(summary)];
        cases.extend(
            campaign
                .slots
                .iter()
                .map(|slot| audit(campaign, slot, summary, trials)),
        );
        if let Some(planned) = &campaign.planned {
            let shown = Shown {
                planned,
                records: *records,
            };
            cases.extend(
                summary
                    .expectations
                    .iter()
                    .map(|expected| expectation(&shown, expected)),
            );
        }
        let held = limit.map_or(Vec::new(), |limit| of_variants(summary, limit));
        cases.extend(held.into_iter().map(compared));
        let explanations = summary.explanations.iter();
        cases.extend(explanations.map(|of| findings(campaign.name_of(of.slot), of)));
        let mut properties = vec![
            ("linerate", campaign.linerate.clone()),
            ("lab", campaign.asked.lab.to_string()),
            ("command", campaign.asked.command.join(" ")),
            ("kernel", host.kernel.clone()),
            ("cpu", host.cpu_model.clone()),
        ];
        let unreal = unreal(campaign).map(|of| match of {
            Unreal::Simulated => "SIMULATED: all figures are of a simulated DUT",
            Unreal::Emulated => "EMULATED: all figures are of a CPU that QEMU emulates",
        });
        properties.extend(unreal.map(|note| ("note", note.into())));
        Suite {
            name: campaign.name.clone(),
            started: campaign.started.get(..19).map(String::from),
            seconds: summary.seconds,
            properties,
            cases,
        }
    }

    /// Each comparison, held against the share by which nothing may be slower.
    pub fn of_comparisons(held: Vec<Held>) -> Suite {
        Suite {
            name: "compare".into(),
            started: None,
            seconds: 0.0,
            properties: Vec::new(),
            cases: held.into_iter().map(compared).collect(),
        }
    }

    /// Lines of the Test Anything Protocol, as the kernel's selftests print them.
    fn tap<'a>(&'a self) -> impl Iterator<Item = [String; 3]> + 'a {
        self.cases.iter().map(move |case| {
            let (result, why, more) = match &case.outcome {
                Outcome::Passed => ("ok", String::new(), String::new()),
                Outcome::Failed(why) => ("not ok", line(why), String::new()),
                Outcome::Skipped(why) => ("ok", String::new(), format!(" # SKIP {}", line(why))),
            };
            let told = case
                .told
                .iter()
                .map(|text| line(text))
                .filter(|text| *text != why);
            let said: String = std::iter::once(why.clone())
                .chain(told)
                .filter(|t| !t.is_empty())
                .map(|t| format!("# {t}\n"))
                .collect();
            [
                result.into(),
                format!(
                    "{}: {}: {}{more}",
                    line(&self.name),
                    case.kind,
                    line(&case.name)
                ),
                said,
            ]
        })
    }

    /// How many cases failed, and how many were skipped.
    fn counts(&self) -> [usize; 2] {
        let count =
            |wanted: fn(&Outcome) -> bool| self.cases.iter().filter(|c| wanted(&c.outcome)).count();
        [
            count(|o| matches!(o, Outcome::Failed(_))),
            count(|o| matches!(o, Outcome::Skipped(_))),
        ]
    }
}

/// A text in one line, in which # begins nothing.
fn line(text: &str) -> String {
    text.replace('#', "no. ")
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}

/// The suites in the Test Anything Protocol, version 13. What the trials do not decide is skipped.
pub fn tap(suites: &[Suite]) -> String {
    let cases: Vec<[String; 3]> = suites.iter().flat_map(Suite::tap).collect();
    let lines = cases
        .iter()
        .zip(1..)
        .map(|([result, name, said], number)| format!("{result} {number} - {name}\n{said}"));
    format!(
        "TAP version 13\n1..{}\n{}",
        cases.len(),
        lines.collect::<String>()
    )
}

fn ended(summary: &Summary) -> Case {
    let outcome = match summary.stopped {
        Stopped::Precise | Stopped::Budget | Stopped::Trials => Outcome::Passed,
        Stopped::Interrupted => Outcome::Failed("it was interrupted".into()),
        Stopped::Failed => Outcome::Failed("it was ended by an error, or is not over yet".into()),
    };
    let name = "the campaign came to its end";
    Case::new("campaign", name, outcome, Vec::new())
}

/// Fails where the cell has no figure although its variant was asked for: trials that failed their audit are in no result.
fn audit(campaign: &Campaign, slot: &Slot, summary: &Summary, trials: &[TrialRecord]) -> Case {
    let of_slot: Vec<&TrialRecord> = trials
        .iter()
        .filter(|trial| trial.slot == slot.id)
        .collect();
    let lacking = campaign
        .planned
        .as_ref()
        .map_or(&[][..], |planned| planned.lacking(slot.id));
    let why = summary
        .unmeasured
        .iter()
        .find(|cell| cell.slot == slot.id)
        .map(|cell| cell.why.clone());
    let valid = of_slot.iter().filter(|trial| trial.audit.valid).count();
    let first = || {
        of_slot
            .iter()
            .find_map(|trial| trial.audit.failures().next())
            .unwrap_or_default()
    };
    let missing = || {
        campaign
            .missing()
            .iter()
            .any(|(variant, _)| *variant == slot.plan_variant)
    };
    let outcome = match (of_slot.len(), why) {
        _ if !lacking.is_empty() && !slot.is_calibration() && missing() => {
            Outcome::Failed(format!(
                "not measured, although it was asked for: {}",
                lacking.join("; ")
            ))
        }
        _ if !lacking.is_empty() => {
            Outcome::Skipped(format!("not measured: {}", lacking.join("; ")))
        }
        (0, why) => Outcome::Skipped(why.unwrap_or_else(|| "not measured: it has no trial".into())),
        (_, Some(why)) => Outcome::Failed(why),
        (all, None) if valid == 0 => Outcome::Failed(format!(
            "all {all} trials failed their audit (the first: {})",
            first()
        )),
        _ => Outcome::Passed,
    };
    let warnings = summary
        .warnings
        .iter()
        .filter(|warning| warning.slot == Some(slot.id));
    let mut told = vec![format!("{valid} of {} trials are valid", of_slot.len())];
    told.extend(warnings.map(|warning| warning.text.clone()));
    let took: u64 = of_slot
        .iter()
        .map(|trial| trial.took_ns.max(trial.timing.load_ns()))
        .sum();
    Case {
        kind: "audit",
        name: slot.name.clone(),
        seconds: Some(took as f64 / 1e9),
        outcome,
        told,
    }
}

fn expectation(shown: &Shown<'_>, expected: &Expected) -> Case {
    let mut told = decisive(shown, expected);
    let figures = told.join("; ");
    let outcome = match expected.judgement {
        Some(Judgement::Met) => Outcome::Passed,
        Some(Judgement::Missed) => Outcome::Failed(format!("{}: {figures}", expected.words)),
        Some(Judgement::Undecided) => Outcome::Skipped(format!("inconclusive: {figures}")),
        None => Outcome::Skipped(format!("not measured: {}", expected.reasons.join("; "))),
    };
    told.push(format!("expected because {}", expected.because));
    told.extend(
        expected
            .reasons
            .iter()
            .map(|reason| format!("not judged for all: {reason}")),
    );
    Case::new("expectations", expected.words.clone(), outcome, told)
}

/// Fails where a slow-down is proven, and is skipped where the trials do not decide.
fn compared(held: Held) -> Case {
    let outcome = match held.slowdown {
        Slowdown::Proven => Outcome::Failed(held.known.clone()),
        Slowdown::Undecided => Outcome::Skipped(format!("undecided: {}", held.known)),
        Slowdown::Excluded => Outcome::Passed,
    };
    Case::new("comparisons", held.claim, outcome, vec![held.known])
}

/// Never fails. Skipped where the rate of the cell is that of the tester, or others took time from it: that says nothing of the DUT, and is no failure of
/// it. All other findings are about the DUT's speed, which is no failure unless the plan expects another one.
fn findings(cell: &str, explanation: &Explanation) -> Case {
    let is_doubt = |cause: &str| DOUBTS.contains(&cause);
    let doubts: Vec<&str> = explanation
        .findings
        .iter()
        .filter(|f| is_doubt(&f.cause))
        .map(|f| f.statement.as_str())
        .collect();
    let open: Vec<_> = explanation
        .not_examined
        .iter()
        .filter(|open| is_doubt(&open.cause))
        .collect();
    let outcome = match () {
        () if !doubts.is_empty() => Outcome::Skipped(format!("inconclusive: {}", doubts.join(" "))),
        () if open.len() == DOUBTS.len() => {
            Outcome::Skipped(format!("not examined: {}", open[0].reason))
        }
        () => Outcome::Passed,
    };
    let found = explanation
        .findings
        .iter()
        .map(|f| format!("{}: {} {}", f.cause, f.statement, f.evidence.join("; ")));
    let open = open
        .iter()
        .map(|open| format!("not examined: {}, because {}", open.cause, open.reason));
    Case::new(
        "findings",
        format!("the rate of {cell} is its DUT's"),
        outcome,
        found.chain(open).collect(),
    )
}

/// The suites as one file.
pub fn junit(suites: &[Suite]) -> String {
    let all = suites.iter().map(|suite| suite.cases.len()).sum::<usize>();
    let failures = suites.iter().map(|suite| suite.counts()[0]).sum::<usize>();
    let seconds = suites.iter().map(|suite| suite.seconds).sum();
    let file = html! {
        (PreEscaped("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"))
        testsuites name="linerate" tests=(all) failures=(failures) errors="0" time=(time(seconds)) {
            "\n"
            @for suite in suites { (suite_of(suite)) "\n" }
        }
    };
    xml(&file.into_string()) + "\n"
}

fn suite_of(suite: &Suite) -> maud::Markup {
    let [failures, skipped] = suite.counts();
    html! {
        testsuite
            name=(&suite.name) tests=(suite.cases.len()) failures=(failures) errors="0" skipped=(skipped)
            time=(time(suite.seconds)) timestamp=[&suite.started] {
            "\n"
            @if !suite.properties.is_empty() {
                properties {
                    @for (name, value) in &suite.properties {
                        property name=(name) value=(value) {}
                    }
                }
                "\n"
            }
            @for case in &suite.cases {
                testcase
                    classname=(format!("{}.{}", suite.name, case.kind)) name=(&case.name)
                    time=[case.seconds.map(time)] {
                    @match &case.outcome {
                        Outcome::Passed => {}
                        Outcome::Failed(why) => failure message=(why) type=(case.kind) {
                            (why)
                        }
                        Outcome::Skipped(why) => skipped message=(why) {}
                    }
                    @if !case.told.is_empty() {
                        system-out { (case.told.join("\n")) }
                    }
                }
                "\n"
            }
        }
    }
}

fn time(seconds: f64) -> String {
    format!(
        "{:.3}",
        if seconds.is_finite() {
            seconds.max(0.0)
        } else {
            0.0
        }
    )
}
