//! One step: its key and the beginning of its command say whether it is waited for.

use super::{Mode, Step};
use linerate_hosts::phases::Phase;
use linerate_plan::Diagnostic;

/// Seconds that a step may have: a year.
const MOST_SECONDS: u32 = 366 * 86_400;

/// Makes a step of its key and its expanded command, without the command's prefixes (`spawn:`, `timeoutN:`).
///
/// Conductor looks for the words in keys of the Run phase only, wherever in the key they stand. In the other phases, where it
/// does not look, only a key that begins with one of them has that meaning.
pub(super) fn read(
    phase: Phase,
    key: &str,
    command: &str,
    limit_s: u32,
    line: usize,
) -> Result<Step, Diagnostic> {
    let (mut spawned, mut limit) = by_key(phase, key)?;
    let mut rest = command.trim();
    loop {
        if let Some(behind) = rest.strip_prefix("spawn:") {
            spawned = true;
            rest = behind.trim_start();
        } else if let Some((seconds, behind)) = timeout_prefix(rest) {
            if limit.is_some() {
                return Err(Diagnostic::new("this step has two limits").remedy("keep one of them"));
            }
            limit = Some(self::seconds(seconds)?);
            rest = behind.trim_start();
        } else {
            break;
        }
    }
    if rest.is_empty() || rest.contains('\0') {
        let fault = Diagnostic::new(format!("'{key}' has no command"));
        return Err(fault.remedy("write a command without NUL bytes, or remove the line"));
    }
    let (mode, limit_s) = match (spawned, limit) {
        (true, limit) => (Mode::Spawn, limit),
        (false, Some(_)) => (Mode::Timeout, limit),
        (false, None) => (Mode::Normal, Some(limit_s)),
    };
    Ok(Step {
        key: key.to_string(),
        command: rest.into(),
        mode,
        limit_s,
        line,
    })
}

/// Whether a key says that its step is not waited for, and the limit that it says.
fn by_key(phase: Phase, key: &str) -> Result<(bool, Option<u32>), Diagnostic> {
    let anywhere = phase == Phase::Run;
    if key.starts_with("spawn") || (anywhere && key.contains("spawn")) {
        return Ok((true, None));
    }
    let number = match anywhere {
        true => key
            .contains("timeout")
            .then(|| key.replace("timeout", "").trim().to_string()),
        false => key
            .strip_prefix("timeout")
            .filter(|rest| is_number(rest))
            .map(String::from),
    };
    Ok((false, number.map(|number| seconds(&number)).transpose()?))
}

fn timeout_prefix(command: &str) -> Option<(&str, &str)> {
    let (number, behind) = command.strip_prefix("timeout")?.split_once(':')?;
    (number.is_empty() || is_number(number)).then_some((number, behind))
}

pub(super) fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

fn seconds(number: &str) -> Result<u32, Diagnostic> {
    let seconds = number
        .parse()
        .ok()
        .filter(|n| is_number(number) && (1..=MOST_SECONDS).contains(n));
    seconds.ok_or_else(|| {
        let message =
            format!("timeout: '{number}' is not a number of seconds from 1 to {MOST_SECONDS}");
        Diagnostic::new(message)
            .remedy("write the seconds behind the word, such as `timeout30: command`")
    })
}

/// Whether this is a key such as steps have: a word of Conductor's and a number.
pub(super) fn is_numbered(key: &str) -> bool {
    ["step", "setp", "spawn", "timeout"]
        .iter()
        .any(|word| key.strip_prefix(word).is_some_and(is_number))
}

/// The remedy for a duplicate key.
pub(super) fn another_key(key: &str) -> &'static str {
    match is_numbered(key) {
        true => {
            "give the step a key of its own; a limit may stand before its command: `step9: timeout30:command`"
        }
        false => "keep one of them",
    }
}

#[cfg(test)]
mod tests {
    use super::super::DEFAULT_LIMIT_S;
    use super::*;

    fn of(phase: Phase, key: &str, command: &str) -> Option<(Mode, Option<u32>, String)> {
        let step = read(phase, key, command, DEFAULT_LIMIT_S, 1).ok()?;
        Some((step.mode, step.limit_s, step.command))
    }

    #[test]
    fn keys_of_the_run_phase_are_read_as_conductor_reads_them() {
        let run = |key, command: &str| of(Phase::Run, key, command);
        let step = |mode, limit, command: &str| Some((mode, limit, command.to_string()));
        assert_eq!(run("step1", "true"), step(Mode::Normal, Some(30), "true"));
        assert_eq!(run("setp4", "true"), step(Mode::Normal, Some(30), "true"));
        assert_eq!(
            run("anything else", "true"),
            step(Mode::Normal, Some(30), "true")
        );
        assert_eq!(run("spawn3", "true"), step(Mode::Spawn, None, "true"));
        assert_eq!(run("respawn", "true"), step(Mode::Spawn, None, "true"));
        assert_eq!(
            run("timeout35", "true"),
            step(Mode::Timeout, Some(35), "true")
        );
        assert_eq!(
            run("35timeout", "true"),
            step(Mode::Timeout, Some(35), "true")
        );
        for wrong in [
            "timeout",
            "timeout0",
            "timeout-1",
            "timeout3x",
            "timeout99999999999",
            "my_timeout30",
        ] {
            assert_eq!(run(wrong, "true"), None, "{wrong}");
        }
    }

    #[test]
    fn prefixes_are_honoured_in_every_phase() {
        for phase in Phase::ALL {
            assert_eq!(
                of(phase, "step1", "spawn:iperf -s"),
                Some((Mode::Spawn, None, "iperf -s".into()))
            );
            assert_eq!(
                of(phase, "step1", "timeout9: a:b"),
                Some((Mode::Timeout, Some(9), "a:b".into()))
            );
            assert_eq!(
                of(phase, "spawn1", "timeout9:x"),
                Some((Mode::Spawn, Some(9), "x".into()))
            );
            assert_eq!(
                of(phase, "timeout9", "spawn:x"),
                Some((Mode::Spawn, Some(9), "x".into()))
            );
            assert_eq!(
                of(phase, "timeout5", "x"),
                Some((Mode::Timeout, Some(5), "x".into()))
            );
            for wrong in [
                "timeout9:timeout8:x",
                "timeout:x",
                "timeout0:x",
                "spawn:",
                "",
                "a\0b",
            ] {
                assert_eq!(of(phase, "step1", wrong), None, "{wrong}");
            }
        }
        // A command of that name, with its own argument.
        assert_eq!(
            of(Phase::Run, "step1", "timeout 9 x:y").unwrap().0,
            Mode::Normal
        );
        assert_eq!(of(Phase::SetUp, "timeouts", "x").unwrap().0, Mode::Normal);
    }
}
