//! A lab of Simulated FreeBSD hosts: `gen`, another `gen2`, and `rec`, on one wire with a device between them.

use crate::sshd::{SshLab, wait_until};
use linerate_hosts::tools::{Task, one_flow};
use linerate_measure::trial::Timing;
use linerate_plan::Backend;
use linerate_remote::TrialResult;
use linerate_remote::external::{ToolHost, ToolTrial};
use linerate_remote::{ExecutionTarget, RemoteError};
use linerate_wire::{Family, FrameMix, FrameSpec, Load, MacAddr, Traffic, Transport};
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Times of these trials; samples come ten times a second.
pub const TIMING: Timing = Timing {
    warm_up_ns: 200_000_000,
    run_ns: 1_000_000_000,
    interval_ns: 100_000_000,
    quiet_ns: 20_000_000,
    drain_ns: 500_000_000,
    settle_ns: 0,
    least_drain_ns: 0,
};
/// How long a load may go on that cannot be reached: it would last for a minute.
pub const LOAD: Duration = Duration::from_secs(30);
/// No trial here takes as long, whatever happens in it: their load would last for a minute.
pub const BOUND: Duration = Duration::from_secs(55);

pub struct Bsd {
    pub lab: SshLab,
    pub patience: Duration,
    pub timing: Timing,
}

impl Bsd {
    pub fn new() -> Bsd {
        let lab = SshLab::new(&["gen", "gen2", "rec"]).patient();
        let bsd = Bsd {
            lab,
            patience: Duration::from_secs(5),
            timing: TIMING,
        };
        fs::create_dir(bsd.lab.folder().join("wire")).unwrap();
        for host in &bsd.lab.hosts {
            let state = bsd.state(&host.name);
            host.freebsd(
                &state,
                &["igb1:00-0d-b9-41-ca-3d:198.18.0.205/24"],
                |program| program == "pkt-gen",
            );
            bsd.set(&host.name, "pace", "0.1");
            bsd.set(&host.name, "rates", "800000");
            bsd.set(
                &host.name,
                "wire",
                bsd.lab.folder().join("wire").to_str().unwrap(),
            );
        }
        bsd
    }

    fn state(&self, host: &str) -> PathBuf {
        self.lab.folder().join(host)
    }

    pub fn set(&self, host: &str, file: &str, text: &str) {
        fs::write(self.state(host).join(file), format!("{text}\n")).unwrap();
    }

    pub fn host(&self, name: &str) -> ToolHost {
        let place = self
            .lab
            .enter(|| ExecutionTarget::connect(&self.lab.target(name), None))
            .unwrap();
        ToolHost {
            place: Arc::new(place),
            tool: Backend::PktGen,
            sudo: false,
        }
    }

    /// Waits until a generator sends.
    pub fn wait_sending(&self, host: &str) {
        let file = self.lab.folder().join(format!("wire/offered.{host}.igb1"));
        wait_until("the load", Duration::from_secs(60), || file.exists());
        std::thread::sleep(Duration::from_millis(300));
    }

    /// How many loads are there.
    pub fn loads(&self) -> usize {
        self.lab
            .hosts
            .iter()
            .map(|host| host.running("pkt-gen"))
            .sum()
    }

    /// Waits until no load is left: the children of a tool that is over may not have run yet.
    #[track_caller]
    pub fn no_load(&self) {
        wait_until("the end of the loads", LOAD, || self.loads() == 0);
    }

    /// One trial from these generators to the receiver; how long it took.
    pub fn run(
        &self,
        generators: &[&str],
        pps: Option<f64>,
        stop: &AtomicBool,
    ) -> (Result<TrialResult, RemoteError>, Duration) {
        let generators: Vec<_> = generators
            .iter()
            .map(|name| (self.host(name), task(pps, Some(name))))
            .collect();
        let receiver = self.host("rec");
        let trial = ToolTrial {
            generators: &generators,
            receiver: Some((&receiver, task(None, None))),
            timing: self.timing,
            patience: self.patience,
        };
        let began = Instant::now();
        let result = trial.run(stop);
        let took = began.elapsed();
        assert!(took < BOUND, "{took:?}: {result:?}");
        (result, took)
    }

    /// A trial without interruption.
    pub fn trial(&self, generators: &[&str], pps: Option<f64>) -> Result<TrialResult, RemoteError> {
        self.run(generators, pps, &AtomicBool::new(false)).0
    }
}

/// The frames to send; `from` distinguishes generators' addresses.
pub fn task(pps: Option<f64>, from: Option<&str>) -> Task {
    let source = if from == Some("gen2") {
        "198.18.10.2"
    } else {
        "198.18.10.1"
    };
    let to = "00:0d:b9:41:ca:3e".parse().unwrap();
    let frame = FrameSpec::new(to, MacAddr::default(), Family::V4, Transport::Udp);
    let flows = one_flow(
        source.parse().unwrap(),
        "198.19.10.1".parse().unwrap(),
        2000,
    )
    .unwrap();
    Task {
        interface: "igb1".into(),
        traffic: Traffic::new(frame, FrameMix::single(64), flows),
        load: Load {
            rate: pps,
            ..Load::lasting(Duration::from_secs(1))
        },
        threads: 1,
        link_wait_s: 2,
    }
}
