//! One monitor for every tool: bytes go in as they come, a report can be looked at any time.

use super::fault::FaultKind;
use super::report::{Report, State};
use super::{Side, program};
use linerate_plan::Backend;

/// Reads what a tool prints.
pub(super) trait Parse: Send {
    /// Takes the next piece, cut anywhere.
    fn feed(&mut self, bytes: &[u8], report: &mut Report);

    /// The tool has ended: what it printed last may have no end of line.
    fn end(&mut self, report: &mut Report);
}

/// How a tool ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// With a status.
    Status(i32),
    /// By a signal of that number.
    Signal(i32),
    /// Nobody knows: the connection to its host broke.
    Lost,
}

/// Takes what a tool prints, standard output and error alike.
pub struct Monitor {
    report: Report,
    parser: Box<dyn Parse>,
}

impl Monitor {
    /// A monitor of a tool that has printed nothing yet.
    pub fn new(tool: Backend, side: Side) -> Self {
        Monitor { report: Report::default(), parser: (program(tool).parser)(side) }
    }

    /// What is known so far.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// Takes the next piece, cut anywhere.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.parser.feed(bytes, &mut self.report);
    }

    /// The tool has ended. `asked` says whether it was ended on purpose, by signal or deadline.
    pub fn end(&mut self, exit: Exit, asked: bool) {
        self.parser.end(&mut self.report);
        if self.report.fatal().is_none() {
            self.judge(exit, asked);
        }
        self.report.moves(State::Ended);
    }

    /// A tool that told no fault of its own may have one all the same.
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
