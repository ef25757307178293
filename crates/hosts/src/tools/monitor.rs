//! One monitor for every tool: bytes go in as they come, a report can be looked at any time.

use super::fault::{self, FaultKind, Signs};
use super::lines::Lines;
use super::report::{Report, State};
use super::{Side, program};
use linerate_plan::Backend;

/// Parses the output of a tool.
pub(super) trait Parse: Send {
    /// Takes a line; `false` if it has no figures of the tool. `last`: it had no end, because the tool has ended.
    fn line(&mut self, line: &[u8], last: bool, report: &mut Report) -> bool;

    /// The tool has ended.
    fn end(&mut self, _: &mut Report) {}
}

/// How a tool ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// With a status.
    Status(i32),
    /// By a signal of that number.
    Signal(i32),
    /// Unknown: the connection to its host broke.
    Lost,
}

/// Takes the output of a tool, standard output and error alike.
pub struct Monitor {
    report: Report,
    lines: Lines,
    parser: Box<dyn Parse>,
    signs: &'static Signs,
}

impl Monitor {
    /// A monitor of a tool that has printed nothing yet.
    pub fn new(tool: Backend, side: Side) -> Self {
        let program = program(tool);
        let (report, lines) = (Report::default(), Lines::default());
        Monitor { report, lines, parser: (program.parser)(side), signs: program.faults }
    }

    /// The report so far.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// Takes the next piece, cut anywhere.
    pub fn feed(&mut self, bytes: &[u8]) {
        let Monitor { report, lines, parser, signs } = self;
        lines.feed(bytes, |line| take(&mut **parser, signs, line, false, report));
    }

    /// The tool has ended. `asked`: whether it was ended on purpose, by signal or deadline.
    pub fn end(&mut self, exit: Exit, asked: bool) {
        let Monitor { report, lines, parser, signs } = self;
        lines.end(|line| take(&mut **parser, signs, line, true, report));
        parser.end(report);
        if report.fatal().is_none() {
            self.judge(exit, asked);
        }
        self.report.moves(State::Over);
    }

    /// A tool without a reported fault may still have one.
    fn judge(&mut self, exit: Exit, asked: bool) {
        // A server that was never asked for anything has not failed: it printed nothing, and was ended.
        let told = match exit {
            Exit::Status(127) => {
                Some((FaultKind::NotInstalled, "exit status 127: no such command".to_string()))
            }
            Exit::Status(126) => {
                Some((FaultKind::NoPrivilege, "exit status 126: cannot be executed".to_string()))
            }
            // timeout(1) ends with 124, or 137 where it had to kill.
            Exit::Signal(_) | Exit::Status(124 | 137) if asked => None,
            Exit::Status(124) => None,
            Exit::Signal(signal) => Some((FaultKind::Crashed, format!("ended by signal {signal}"))),
            Exit::Status(status @ 129..=192) if !asked => {
                Some((FaultKind::Crashed, format!("exit status {status}: ended by signal {}", status - 128)))
            }
            Exit::Lost => Some((FaultKind::PeerGone, "the connection to its host broke".to_string())),
            Exit::Status(status) if status != 0 && !asked && !self.report.totals.said => {
                Some((FaultKind::Other, format!("exit status {status}, and no totals")))
            }
            Exit::Status(_) => None,
        };
        match told {
            Some((kind, message)) => self.report.fault(kind, message.as_bytes()),
            None if !self.report.has_traffic() => {
                self.report.fault(FaultKind::NoTraffic, b"it ended, and no frame had passed")
            }
            None => {}
        }
    }
}

/// A line without figures may show a fault, by the tool's own words or the system's.
fn take(parser: &mut dyn Parse, signs: &Signs, line: &[u8], last: bool, report: &mut Report) {
    if !parser.line(line, last, report)
        && let Some(kind) = fault::find(signs, line).or_else(|| fault::common(line))
    {
        report.fault(kind, line);
    }
}
