//! Logs of the archive's `equilibrium`: it halves its steps until the DUT forwards the offered load.

use super::{EquilibriumRun, EquilibriumStep};
use linerate_hosts::pktgen::{self, Command, Line};

/// Whether a file is such a log: one of its first lines is the tool's command or begins with a text of the tool. A script has these texts
/// inside its lines.
pub fn is_log(bytes: &[u8]) -> bool {
    const TEXTS: [&[u8]; 2] = [
        b"Benchmark tool using equilibrium",
        b"Estimated Equilibrium",
    ];
    let own = |line: &[u8]| TEXTS.iter().any(|text| line.trim_ascii().starts_with(text));
    let head = &bytes[..bytes.len().min(4096)];
    head.split(|b| *b == b'\n').any(own)
        || command(bytes).is_some_and(|command| command.program() == "equilibrium")
}

/// The command line, which the log begins with.
pub fn command(bytes: &[u8]) -> Option<Command> {
    let head = &bytes[..bytes.len().min(4096)];
    head.split(|b| *b == b'\n')
        .find_map(|line| match pktgen::parse(line) {
            Line::Command(host, command) => Some(Command::parse(host, command)),
            _ => None,
        })
}

/// Reads a log. Steps and the final estimate are in Mb/s.
pub fn read(log: &str, bytes: &[u8]) -> EquilibriumRun {
    let mut run = EquilibriumRun {
        log: log.into(),
        ..EquilibriumRun::default()
    };
    let text = String::from_utf8_lossy(bytes);
    for line in text.lines() {
        let words = line.trim_start().trim_start_matches("- ");
        if let Some(rest) = words.strip_prefix("Estimated Equilibrium ") {
            run.estimate = figure(rest, "throughput= ");
            run.maximum = figure(rest, "maximum value seen: ");
        } else if let Some(offered) =
            figure(words, "Offering load = ").or_else(|| figure(words, "OLOAD = "))
        {
            run.steps.push(EquilibriumStep {
                offered,
                measured: None,
            });
        } else if let Some(measured) = figure(words, "Measured forwarding rate = ") {
            if let Some(step) = run.steps.last_mut() {
                step.measured = Some(measured);
            }
        } else if let Some(warning) = words.strip_prefix("Warning: ") {
            run.problems.push(warning.chars().take(120).collect());
        }
    }
    if run.estimate.is_none() {
        let what = if text.trim().is_empty() {
            "empty"
        } else {
            "cut off before its final estimate"
        };
        run.problems.push(what.into());
    }
    run
}

/// The number behind `label`, which must be followed by its unit.
fn figure(text: &str, label: &str) -> Option<f64> {
    let (_, rest) = text.split_once(label)?;
    let (number, unit) = rest.split_once(' ')?;
    let value: f64 = number.parse().ok()?;
    (unit.starts_with("Mb/s") && value.is_finite() && value >= 0.0).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "CMD: equilibrium -4 -u -d 00:0d:b9:41:ca:3d -t igb2 -r igb3\n\
        Benchmark tool using equilibrium throughput method\nIteration 1\n  - Offering load = 500 Mb/s\n  - Step = 250 Mb/s\n\
        \x20 - Measured forwarding rate = 189 Mb/s\nIteration 2\n  - Offering load = 189 Mb/s\n  - Trend = decreasing\n\
        \x20 - Warning: Generated only 188Mb/s in place of 189Mb/s\n  - Measured forwarding rate = 188 Mb/s\n\
        Estimated Equilibrium Ethernet throughput= 189 Mb/s (maximum value seen: 190 Mb/s)\n";

    #[test]
    fn steps_and_estimate() {
        let run = read("x", LOG.as_bytes());
        assert!(is_log(LOG.as_bytes()) && !is_log(b"CMD: pkt-gen -f tx"));
        assert!(is_log(LOG.lines().next().unwrap().as_bytes()));
        assert_eq!((run.estimate, run.maximum), (Some(189.0), Some(190.0)));
        assert_eq!(command(LOG.as_bytes()).unwrap().program(), "equilibrium");
        assert_eq!(
            run.steps[1],
            EquilibriumStep {
                offered: 189.0,
                measured: Some(188.0)
            }
        );
        assert_eq!(run.problems, ["Generated only 188Mb/s in place of 189Mb/s"]);
    }

    #[test]
    fn a_script_that_names_the_tool_is_no_log() {
        for script in [
            "#!/bin/sh\nssh gen equilibrium -4 -u > bench.1.sender\n",
            "#!/bin/sh\necho \"Benchmark tool using equilibrium throughput method\"\n",
            "grep \"Estimated Equilibrium\" bench.*.sender\n",
        ] {
            assert!(!is_log(script.as_bytes()), "{script}");
        }
        let prompt = LOG.replace("CMD:", "[root@R1]/tmp#");
        assert!(is_log(prompt.as_bytes()));
    }

    #[test]
    fn a_cut_log_has_no_estimate() {
        for end in 0..LOG.len() - 50 {
            let run = read("x", &LOG.as_bytes()[..end]);
            assert_eq!(run.estimate, None, "{end}");
            assert!(!run.problems.is_empty());
        }
        let old = "  - TREND = decreasing\nEstimated Equilibrium link throughput= 378 Mb/s (maximum value seen: 380 Mb/s)\n";
        assert_eq!(read("x", old.as_bytes()).estimate, Some(378.0));
    }
}
