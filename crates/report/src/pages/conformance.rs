//! Which requirements of the RFCs a campaign met.

use crate::prelude::*;
use linerate_standards::{Conformance, Judged, Level, Status};

/// All rows with their evidence, those that stand against the claims first. The claims come last, where a terminal shows them.
pub fn conformance(name: &str, found: &Conformance) -> Document {
    let mut page = Document::default();
    page.heading(format!("Conformance of {name}"));
    let of = |status: Status| found.rows.iter().filter(|row| row.status == status).count();
    let statuses = [
        Status::Met,
        Status::Deviation,
        Status::Violated,
        Status::NotApplicable,
        Status::NotRun,
    ];
    let counts = statuses
        .iter()
        .map(|status| format!("{} {status}", of(*status)))
        .joined(", ");
    page.note(format!("{}: {}.", counted(found.rows.len(), "row"), counts));
    page.note("M: MUST, S: SHOULD, P: a step of a procedure; violated: a MUST is not met; deviation: a SHOULD or a step is not met. A claim needs every MUST that concerns its test to be met (RFC 2544, section 5), a result of every cell, and trials that nothing disturbed.");
    let level = |row: &Judged| match row.level {
        Level::Must => "M",
        Level::Should => "S",
        Level::Procedure => "P",
    };
    for status in [
        Status::Violated,
        Status::Deviation,
        Status::NotRun,
        Status::NotApplicable,
        Status::Met,
    ] {
        let rows = found
            .rows
            .iter()
            .filter(|row| row.status == status && !found.is_absent(row));
        page.each(&status.to_string(), rows, |page, row| {
            let mark = format!("{:<11} {}  ", row.id, level(row));
            page.entry(&mark, format!("{} -> {}", row.requirement, row.because));
        });
    }
    let absent: Vec<&str> = found
        .rows
        .iter()
        .filter(|row| found.is_absent(row))
        .map(|row| row.id)
        .collect();
    if !absent.is_empty() {
        page.gap();
        page.note(format!(
            "Of tests that are not part of this campaign: {}.",
            absent.join(", ")
        ));
    }
    page.each("Test frames", &found.frames, |page, frame| {
        page.fact(
            &format!("{} B", frame.length_fcs),
            "without FCS; the Ethernet addresses are those of the links",
        );
        page.code(&wrapped(&frame.octets), Tone::Note);
    });
    page.heading("Claims");
    for claim in &found.claims {
        let tone = if claim.compliance.fails() {
            Tone::Warning
        } else {
            Tone::Strong
        };
        page.paragraph(claim.to_string(), tone);
    }
    page
}

/// 32 octets in a line.
fn wrapped(octets: &str) -> String {
    let octets: Vec<&str> = octets.split(' ').collect();
    octets.chunks(32).map(|line| line.join(" ")).joined("\n")
}
