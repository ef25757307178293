//! A pkt-gen of a stand-in that a monitor reads.

use super::stand_in::Host;
use linerate_hosts::phases::Status;
use linerate_hosts::tools::{Monitor, Report, Side};
use linerate_plan::Backend;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};

impl Host {
    /// A monitor's report about a pkt-gen that is interrupted when it is ready and has printed so many samples, unless it ends before.
    pub fn pkt_gen(&self, side: Side, samples: usize, arguments: &[&str]) -> Report {
        let argv = [
            &["timeout", "-k", "60", "60", "pkt-gen", "-N"][..],
            arguments,
        ]
        .concat();
        let mut command = self.command(&argv);
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap());
        let (mut told, mut ready, mut seen) = (String::new(), false, 0);
        loop {
            let from = told.len();
            if lines.read_line(&mut told).unwrap() == 0 {
                break;
            }
            seen += usize::from(told[from..].contains("main_thr"));
            let was_ready = ready;
            ready = told.contains("_body") && seen >= samples;
            if ready && !was_ready {
                let pid = child.id().to_string();
                Command::new("kill").args(["-INT", &pid]).status().unwrap();
            }
        }
        let output = child.wait_with_output().unwrap();
        let mut monitor = Monitor::new(Backend::PktGen, side);
        monitor.feed(told.as_bytes());
        monitor.feed(&output.stdout);
        let exit = match output.status.code() {
            Some(code) => Some(Status::Exit(code)),
            None => output.status.signal().map(Status::Signal),
        };
        monitor.end(exit, false);
        monitor.report().clone()
    }
}
