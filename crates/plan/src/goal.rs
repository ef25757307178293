//! Goals of searches as text.

use super::diagnostic::{Diagnostic, suggestion};
use super::forms::{Form, parse_duration_ns};
use linerate_measure::experiment::WantedGoal;
use linerate_search::{Goal, PER_BILLION};
use serde_json::json;

const S: u64 = 1_000_000_000;
const HALF: u32 = PER_BILLION / 2;

/// Name, loss ratio, exceed ratio in billionths, and the durations of first trials, of full ones and of all at a load. The first two are
/// CSIT's, with times of the machine's own; the others are RFC 2544's throughput and ETSI's TST 009 (RFC 9971, section 4.10).
static GOALS: [(&str, f64, u32, Option<[u64; 3]>); 4] = [
    ("ndr", 0.0, HALF, None),
    ("pdr", 0.005, HALF, None),
    ("rfc2544", 0.0, 0, Some([S, 60 * S, 60 * S])),
    ("tst009", 0.0, HALF, Some([S, 60 * S, 120 * S])),
];

pub(crate) static GOAL: Form = Form {
    wants: "a goal such as \"ndr\", \"pdr\", \"rfc2544\", \"tst009\" or \"0.5%:1s:21s:0.5\" (LOSS:FINAL:SUM:EXCEED)",
    units: &[],
    pattern: "^(ndr|pdr|rfc2544|tst009|[0-9.]+ *%?:[^:]+:[^:]+:[0-9.]+)$",
    example: "ndr",
    read: |text| parse(text).map(|goal| json!(goal)),
};

/// Reads the name of a goal, or LOSS:FINAL:SUM:EXCEED.
///
/// # Errors
/// Says which part is wrong.
pub fn parse(text: &str) -> Result<WantedGoal, Diagnostic> {
    let name = text.trim().to_string();
    if let Some((_, loss, exceed, times_ns)) = GOALS.iter().find(|(known, ..)| *known == name) {
        return Ok(WantedGoal {
            name,
            loss: *loss,
            exceed: *exceed,
            times_ns: *times_ns,
        });
    }
    let parts: Vec<&str> = name.split(':').map(str::trim).collect();
    let [loss, last, sum, exceed] = parts[..] else {
        const FORM: &str = "LOSS:FINAL:SUM:EXCEED, such as 0.5%:1s:21s:0.5";
        if parts.len() > 1 {
            let message = format!("'{name}' has {} parts, and a goal has four", parts.len());
            return Err(Diagnostic::new(message).remedy(format!("write {FORM}")));
        }
        let help = suggestion(&name, GOALS.iter().map(|(name, ..)| *name));
        let end = if help.ends_with('?') {
            " Or write"
        } else {
            "; or"
        };
        let help = format!("{help}{end} {FORM}");
        return Err(Diagnostic::new(format!("'{name}' is not a goal")).remedy(help));
    };
    let ratio = |text: &str| {
        let (number, scale) = text
            .strip_suffix('%')
            .map_or((text, 1.0), |number| (number.trim(), 100.0));
        number
            .parse::<f64>()
            .map(|ratio| ratio / scale)
            .map_err(|_| Diagnostic::new(format!("'{text}' is not a ratio")))
    };
    let (loss, exceed) = (ratio(loss)?, ratio(exceed)?);
    let (last, sum) = (
        parse_duration_ns(last).map_err(Diagnostic::new)?,
        parse_duration_ns(sum).map_err(Diagnostic::new)?,
    );
    // A ratio outside 0..1 stays outside.
    let exceed = (exceed * f64::from(PER_BILLION)).round();
    let exceed = if exceed < 0.0 {
        PER_BILLION
    } else {
        exceed as u32
    };
    Goal::new(loss, exceed, last, sum)
        .check()
        .map_err(|fault| Diagnostic::new(fault.to_string()))?;
    Ok(WantedGoal {
        name,
        loss,
        exceed,
        times_ns: Some([last, last, sum]),
    })
}
