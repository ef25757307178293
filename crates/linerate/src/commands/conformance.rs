//! `linerate conformance`: which requirements of the RFCs a campaign met.

use super::export;
use crate::prelude::*;

/// Exit status where a test is not compliant, or lacks its claim.
const NOT_COMPLIANT: u8 = 3;

#[derive(Args)]
#[command(after_help = "Examples:
  linerate conformance                          the newest campaign
  linerate conformance linerate-results/20260101T120000Z-rfc2544
  linerate conformance DIR --json | jq '.rows[] | select(.status == \"violated\")'
  linerate conformance DIR -o conformance.html

The directory holds a campaign of `linerate rfc2544`, a loss curve, a search with the goal rfc2544, or a campaign of TCP
connections or HTTP. Each row is a requirement of RFC 2544, 6201, 6815, 9004, 9971, 8219, 4814, 5180 or 2889; for
connections, of RFC 3511, sections 5.2 to 5.5. Its status is computed from the records:
  met              the records show it
  deviation        a SHOULD or a step that is not met
  violated         a MUST that is not met
  not-applicable   it does not concern this campaign, such as a row about the medium on virtual links
  not-run          the test was not run, or the records cannot tell

Each test that was run has a claim (RFC 2544, section 5): unconditionally compliant if every MUST and SHOULD is met,
conditionally compliant if every MUST is met, else not compliant, with the rows that decide. A test with a cell
without a result, or with disturbed trials, makes no claim. docs/conformance.md lists the rows that linerate never
meets, with the reasons.

Exit status: 0 every claim is at least conditional; 1 a campaign that claims no standard; 2 no such campaign,
or bad arguments; 3 a test is not compliant, or makes no claim: a cell has no result, trials were disturbed, the DUT is
simulated.")]
pub struct Conformance {
    /// The campaign: its directory, last, last-1, or a name that `linerate list` shows
    #[arg(value_name = "DIR", default_value = "last", value_parser = handle::folder)]
    directory: PathBuf,
    #[command(flatten)]
    printed: Printed,
    /// Write to this file instead of standard output; the ending chooses the format: .html, .csv, .json or .md
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Runs the verb.
///
/// # Errors
/// The directory is no record, or its campaign claims no standard.
pub fn run(args: &Conformance) -> Exit {
    let stored = output::stored(&args.directory)?;
    let Some(found) = output::conformance(&stored) else {
        bail!(
            "{} has no test of RFC 2544 and none of RFC 3511, so there is nothing to check: measure with `linerate rfc2544`, `linerate search --goal rfc2544` or `linerate bench --connections`",
            args.directory.display()
        );
    };
    let text = output::rendered(
        &args.printed.for_file(args.out.as_deref())?,
        || &found,
        || pages::conformance(&args.directory.display().to_string(), &found),
    )?;
    export::write(args.out.as_deref(), &text)?;
    exit(if found.holds() {
        SUCCESS
    } else {
        NOT_COMPLIANT
    })
}
