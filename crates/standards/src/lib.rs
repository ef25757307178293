//! Requirements of the RFCs, and whether a campaign met them, computed from its records alone.
//!
//! [`rows`] has one entry for each requirement, with its check. A check reads the records and gives a status with its evidence. The
//! statuses decide the claim of each test (RFC 2544, section 5).

mod case;
mod rows;

pub use case::Records;

use case::{Case, Outcome, fails, met, not_run};
use linerate_measure::experiment::{Benchmark, Measure};
use linerate_wire::{Family, FrameTemplate, Traffic};
use serde::Serialize;
use std::fmt;

/// The operator's statement that the DUT is set up as its instructions say, among a campaign's standing facts.
pub const STATEMENT: &str = "statement";
/// The operator's statement about a DUT that nobody can ask: software, configuration, and the addresses of its interfaces.
pub const SOFTWARE: &str = "software";
pub const CONFIGURATION: &str = "configuration";
pub const ADDRESSES: &str = "addresses";

/// The requirement level of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// MUST.
    Must,
    /// SHOULD, or RECOMMENDED.
    Should,
    /// A step of a procedure without such a word: judged as SHOULD.
    Procedure,
}

/// The tests that a row is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// All of its document.
    All,
    Test(Benchmark),
    /// Searches by MLRsearch.
    Searches,
    /// Not one of the tests with a claim.
    Beside(&'static str),
}

/// A requirement with its check.
#[derive(Clone, Copy)]
struct Row {
    id: &'static str,
    level: Level,
    part: Part,
    asks: &'static str,
    check: fn(&Case<'_>) -> Outcome,
}

/// Requirements of the same tests.
type Section = (Part, &'static [Row]);

impl Row {
    /// The number of its RFC.
    fn document(&self) -> &'static str {
        self.id
            .split_once('-')
            .map_or(self.id, |(document, _)| document)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    Met,
    /// A SHOULD that is not met.
    Deviation,
    /// A MUST that is not met.
    Violated,
    /// The requirement does not concern this campaign.
    NotApplicable,
    /// The test was not made, or the records do not show it.
    NotRun,
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// A row, judged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Judged {
    pub id: &'static str,
    pub level: Level,
    /// `all`, or the test that it is about.
    pub test: String,
    pub requirement: &'static str,
    pub status: Status,
    /// The evidence, or the reason.
    pub because: String,
}

/// A claim of RFC 2544, section 5.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Compliance {
    /// Every MUST and every SHOULD is met.
    Unconditionally,
    /// Every MUST is met.
    Conditionally,
    NotCompliant,
    /// The test does not apply to this DUT, so it has no result that could comply.
    NoResult,
    /// There was no DUT that could comply.
    Simulated,
    /// Cells of the test have no complete result.
    Incomplete,
    /// The rows would permit a claim, but something else than the DUT changed its rates.
    Disturbed,
}

impl Compliance {
    /// Whether it speaks against the test.
    pub fn fails(self) -> bool {
        !matches!(
            self,
            Compliance::Unconditionally | Compliance::Conditionally | Compliance::NoResult
        )
    }
}

impl fmt::Display for Compliance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Compliance::Unconditionally => "unconditionally compliant",
            Compliance::Conditionally => "conditionally compliant",
            Compliance::NotCompliant => "not compliant",
            Compliance::Simulated => "no claim, because the DUT is simulated",
            Compliance::NoResult => {
                "no claim, because the test has no result: the highest load loses nothing"
            }
            Compliance::Incomplete => "no claim, because cells have no complete result",
            Compliance::Disturbed => "no claim, because the trials were disturbed",
        })
    }
}

/// How a run that departs from the RFC's recommendations can comply with it.
pub const CONDITIONALLY: &str = "Conditionally compliant (RFC 2544, section 5): every MUST is met, and not every SHOULD; the rows in brackets are those that the run departs from.";

/// The claim of a test by a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Claim {
    /// `RFC 2544`.
    pub document: String,
    pub test: String,
    /// Whether the plan's quick form was run.
    pub quick: bool,
    pub compliance: Compliance,
    /// The rows that decide: the MUSTs that are not shown to be met, or else the SHOULDs.
    pub rows: Vec<&'static str>,
    /// The cells without a result, each with the reason, or the disturbance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quick = if self.quick { ", quick" } else { "" };
        write!(
            f,
            "{} {}{quick}: {}",
            self.document, self.test, self.compliance
        )?;
        if let Some(because) = &self.because {
            let joint = match self.compliance {
                Compliance::NotCompliant => ", because",
                _ => ":",
            };
            write!(f, "{joint} {because}")?;
        }
        if self.rows.is_empty() {
            Ok(())
        } else {
            write!(f, " ({})", self.rows.join(", "))
        }
    }
}

/// A test frame, which the report of a claim shows (RFC 2544, section 8).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Octets {
    pub length_fcs: u16,
    /// In hexadecimal, without FCS; Ethernet addresses are those of the links.
    pub octets: String,
}

/// All rows of a campaign that claims a standard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Conformance {
    pub claims: Vec<Claim>,
    pub rows: Vec<Judged>,
    pub frames: Vec<Octets>,
}

impl Conformance {
    /// Whether every claim is at least conditional.
    pub fn holds(&self) -> bool {
        self.claims.iter().all(|claim| !claim.compliance.fails())
    }

    /// Whether a row belongs to a test that this campaign did not make.
    pub fn is_absent(&self, row: &Judged) -> bool {
        row.status == Status::NotRun && row.because.ends_with(case::ABSENT)
    }

    /// The claims in one line.
    pub fn line(&self) -> String {
        let claims: Vec<String> = self.claims.iter().map(Claim::to_string).collect();
        claims.join("; ")
    }
}

/// Judges all rows by the records of a campaign. `None`: the campaign made no test of a standard.
pub fn conformance(records: &Records<'_>) -> Option<Conformance> {
    let case = Case::new(records)?;
    if records.campaign.opens_connections() || records.campaign.carries_http() {
        return of_connections(&case);
    }
    let mut rows: Vec<Judged> = rows::all().map(|row| judged(&case, &row)).collect();
    // RFC 9004 keeps the rest of RFC 2544: its row fails with any MUST of RFC 2544, and is not shown where one is not.
    let of = |status| musts(&rows, status).collect::<Vec<&str>>().join(", ");
    let found = match (of(Status::Violated), of(Status::NotRun)) {
        (broken, _) if !broken.is_empty() => fails(format!("RFC 2544 is not kept: {broken}")),
        (_, open) if !open.is_empty() => {
            not_run(format!("RFC 2544 is not shown to be kept: {open}"))
        }
        _ => met("every MUST of RFC 2544 that concerns all tests is met"),
    };
    let tested = case.tests.contains(&Benchmark::BackToBack);
    for row in rows
        .iter_mut()
        .filter(|row| tested && row.id == "9004-5a" && row.status == Status::Met)
    {
        (row.status, row.because) = status(row.level, found.clone());
    }
    Some(Conformance {
        claims: claims(&case, &rows),
        frames: frames(&case),
        rows,
    })
}

/// Judges connections and HTTP by RFC 3511. `None`: the campaign made none of its tests.
fn of_connections(case: &Case<'_>) -> Option<Conformance> {
    use rows::connections::{NO_HTTP, all, concerns, tests};
    let tests = tests(case);
    let judge = |row: &Row| judged(case, row);
    let rows: Vec<Judged> = all(&tests).iter().map(judge).collect();
    let claim = |test: &&str| {
        let own = || rows.iter().filter(|row| concerns(&row.test, test));
        let open = |row: &&Judged| !matches!(row.status, Status::Met | Status::NotApplicable);
        let open = |must: bool| {
            let of_level = own().filter(|row| (row.level == Level::Must) == must);
            of_level.filter(open).map(|row| row.id).collect::<Vec<_>>()
        };
        let (musts, shoulds) = (open(true), open(false));
        let (lacking, disturbed) = (case.unmeasured(), case.disturbed());
        // Closing has no row of HTTP.
        let no_http = own().any(|row| row.because == NO_HTTP);
        let no_http = no_http.then(|| NO_HTTP.into());
        let (compliance, rows, because) = match (musts.is_empty(), shoulds.is_empty()) {
            _ if case.simulated => (Compliance::Simulated, Vec::new(), None),
            (false, _) => (Compliance::NotCompliant, musts, no_http),
            _ if lacking.is_some() => (Compliance::Incomplete, Vec::new(), lacking),
            _ if disturbed.is_some() => (Compliance::Disturbed, Vec::new(), disturbed),
            (true, false) => (Compliance::Conditionally, shoulds, None),
            (true, true) => (Compliance::Unconditionally, Vec::new(), None),
        };
        Claim {
            document: "RFC 3511".into(),
            test: (*test).into(),
            quick: case.is_quick(),
            compliance,
            rows,
            because,
        }
    };
    let claims: Vec<Claim> = tests.iter().map(claim).collect();
    (!claims.is_empty()).then(|| Conformance {
        claims,
        rows,
        frames: Vec::new(),
    })
}

/// The MUSTs of RFC 2544 that concern all tests and have this status.
fn musts(rows: &[Judged], status: Status) -> impl Iterator<Item = &'static str> {
    let of = move |row: &&Judged| {
        let concerns_all = row.id.starts_with("2544") && row.test == "all";
        concerns_all && row.level == Level::Must && row.status == status
    };
    rows.iter().filter(of).map(|row| row.id)
}

fn judged(case: &Case<'_>, row: &Row) -> Judged {
    let outcome = match row.part {
        Part::Test(test) => case.test(test).unwrap_or_else(|| (row.check)(case)),
        Part::Searches if case.searches.is_empty() => not_run("no search by MLRsearch was made"),
        _ => (row.check)(case),
    };
    let (status, because) = status(row.level, outcome);
    let test = match row.part {
        Part::All => "all".into(),
        Part::Test(test) => case::name(test),
        Part::Searches => "MLRsearch".into(),
        Part::Beside(name) => name.into(),
    };
    Judged {
        id: row.id,
        level: row.level,
        test,
        requirement: row.asks,
        status,
        because,
    }
}

fn status(level: Level, outcome: Outcome) -> (Status, String) {
    match outcome {
        Outcome::Met(found) => (Status::Met, found),
        Outcome::Fails(why) if level == Level::Must => (Status::Violated, why),
        Outcome::Fails(why) => (Status::Deviation, why),
        Outcome::NotApplicable(why) => (Status::NotApplicable, why),
        Outcome::NotRun(why) => (Status::NotRun, why),
    }
}

/// The claims of the tests that were made.
fn claims(case: &Case<'_>, rows: &[Judged]) -> Vec<Claim> {
    use Benchmark::{BackToBack, DelayVariation, ForwardingRate, Latency, Reset};
    let mut wanted: Vec<(&str, String)> = Vec::new();
    // No claim: a throughput that only other tests need; an event that is not a reset.
    let asked = |test| case.design.measure != Measure::Rfc2544 || case.design.tests.contains(&test);
    let claims = |test: &&Benchmark| asked(**test) && (**test != Reset || case.is_reset());
    for &test in case.tests.iter().filter(claims) {
        if !matches!(test, DelayVariation | ForwardingRate) {
            wanted.push(("2544", case::name(test)));
        }
        wanted.extend(match test {
            BackToBack => Some(("9004", case::name(test))),
            Reset => Some(("6201", case::name(test))),
            Latency | DelayVariation => Some(("8219", case::name(test))),
            ForwardingRate => Some(("2889", case::name(test))),
            _ => None,
        });
    }
    wanted.extend((!case.searches.is_empty()).then(|| ("9971", "MLRsearch".into())));
    let ipv6 = |traffic: &Traffic| traffic.ipv6.is_some() || traffic.frame.family == Family::V6;
    wanted.extend(case.traffics().any(ipv6).then(|| ("5180", "IPv6".into())));
    wanted.extend(
        case.draws()
            .then(|| ("4814", "random addresses and ports".into())),
    );
    let quick = case.is_quick();
    let disturbed = case.disturbed();
    let claim = |(document, test): (&'static str, String)| {
        let of = |row: &&Judged| {
            let own = row.id.split_once('-').is_some_and(|(of, _)| of == document)
                || document == "2544" && row.id == "6815-5";
            own && (row.test == "all" || row.test == test)
        };
        let concerned: Vec<&Judged> = rows.iter().filter(of).collect();
        let open = |must: bool| -> Vec<&'static str> {
            let open = |row: &&&Judged| {
                (row.level == Level::Must) == must
                    && !matches!(row.status, Status::Met | Status::NotApplicable)
            };
            concerned.iter().filter(open).map(|row| row.id).collect()
        };
        let (musts, shoulds) = (open(true), open(false));
        let tested = case.tests.iter().find(|of| case::name(**of) == test);
        let without = tested.and_then(|of| case.test(*of));
        let lacking = case.lacking(match tested {
            Some(test) => std::slice::from_ref(test),
            None if document == "9971" => &[Benchmark::Throughput],
            None => &case.tests,
        });
        let none = Vec::new;
        let (compliance, rows, because) = match (musts.is_empty(), shoulds.is_empty()) {
            _ if case.simulated => (Compliance::Simulated, none(), None),
            _ if matches!(without, Some(Outcome::NotApplicable(_))) => {
                (Compliance::NoResult, none(), None)
            }
            _ if lacking.is_some() => (Compliance::Incomplete, none(), lacking),
            (false, _) => (Compliance::NotCompliant, musts, None),
            _ if disturbed.is_some() => (Compliance::Disturbed, none(), disturbed.clone()),
            (true, false) => (Compliance::Conditionally, shoulds, None),
            (true, true) => (Compliance::Unconditionally, none(), None),
        };
        Claim {
            document: format!("RFC {document}"),
            test,
            quick,
            compliance,
            rows,
            because,
        }
    };
    wanted.into_iter().map(claim).collect()
}

/// A frame of each length.
fn frames(case: &Case<'_>) -> Vec<Octets> {
    let mut all: Vec<Octets> = Vec::new();
    for traffic in case.traffics() {
        for length in &traffic.mix.pattern {
            let Ok(template) = FrameTemplate::new(&traffic.frame, *length) else {
                continue;
            };
            let flow = traffic.flows.flow(0);
            if all.iter().any(|known| known.length_fcs == *length)
                || flow.family() != traffic.frame.family
            {
                continue;
            }
            let mut frame = vec![0; template.len()];
            template.fill(&mut frame, &flow, None);
            let octets: Vec<String> = frame.iter().map(|octet| format!("{octet:02x}")).collect();
            all.push(Octets {
                length_fcs: *length,
                octets: octets.join(" "),
            });
        }
    }
    all
}

#[cfg(test)]
mod tests;
