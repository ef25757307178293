//! Output of tools, from the archive: every log of pkt-gen through the monitor of a running one, whole, cut, and with seeded
//! mutations.

use linerate_hosts::phases::Status;
use linerate_hosts::pktgen::Reader;
use linerate_hosts::tools::{FaultKind, Monitor, Report, Side, State};
use linerate_plan::Backend;
use linerate_wire::SplitMix64;
use std::fs;
use std::path::{Path, PathBuf};

const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/netbenches");

fn logs() -> Vec<(PathBuf, Side)> {
    let mut logs = Vec::new();
    let mut folders = vec![PathBuf::from(CORPUS)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let kind = path
                .extension()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            if kind.starts_with("receiver") {
                logs.push((path, Side::Receiver));
            } else if kind.starts_with("sender") {
                logs.push((path, Side::Generator));
            }
        }
    }
    logs.sort_by(|a, b| a.0.cmp(&b.0));
    assert!(logs.len() > 150, "testdata has {} logs", logs.len());
    logs
}

fn is_equilibrium(bytes: &[u8]) -> bool {
    String::from_utf8_lossy(&bytes[..bytes.len().min(4096)]).contains("quilibrium")
}

/// Backends that read lines or documents of other programs.
const PROGRAMS: [Backend; 4] = [
    Backend::PktGen,
    Backend::Iperf3,
    Backend::Netperf,
    Backend::Trafgen,
];

fn report(tool: Backend, side: Side, bytes: &[u8], pieces: usize) -> Report {
    let mut monitor = Monitor::new(tool, side);
    for piece in bytes.chunks(pieces) {
        monitor.feed(piece);
    }
    monitor.end(Some(Status::Signal(15)), true);
    monitor.report().clone()
}

#[test]
fn a_running_pkt_gen_is_read_as_its_log_is() {
    let (mut samples, mut said, mut crashed) = (0, 0, 0);
    for (path, side) in logs() {
        let bytes = fs::read(&path).unwrap();
        if is_equilibrium(&bytes) {
            continue;
        }
        let mut reader = Reader::new();
        reader.feed(&bytes);
        let log = reader.finish();
        let report = report(Backend::PktGen, side, &bytes, 4096);
        let at = path.display();
        assert_eq!(report.samples.len(), log.samples.len(), "{at}");
        for (live, (_, sample)) in report.samples.iter().zip(&log.samples) {
            assert_eq!(
                (live.end_us, live.interval_us, live.packets),
                (sample.time_us, sample.interval_us, Some(sample.packets)),
                "{at}"
            );
        }
        let summary = log.summary.unwrap_or_default();
        if report.totals.said {
            said += 1;
            assert_eq!(report.totals.packets, summary.packets, "{at}");
        }
        samples += report.samples.len();
        let is_crash = !log.crashes.is_empty();
        crashed += usize::from(is_crash);
        let told: Vec<FaultKind> = report.faults.iter().map(|f| f.kind).collect();
        assert_eq!(
            told.contains(&FaultKind::Crashed),
            is_crash,
            "{at} {told:?}"
        );
        assert_eq!(
            told.contains(&FaultKind::RingStalled),
            memchr::memmem::find(&bytes, b"] poll error").is_some(),
            "{at}"
        );
        let harmless = [
            FaultKind::Crashed,
            FaultKind::RingStalled,
            FaultKind::NoTraffic,
        ];
        assert!(
            told.iter().all(|k| harmless.contains(k)),
            "{at} {:?}",
            report.faults
        );
        assert_eq!(
            told.contains(&FaultKind::NoTraffic),
            !is_crash && !report.has_traffic(),
            "{at}"
        );
        assert_eq!(report.state, State::Over, "{at}");
    }
    assert!(
        samples > 11_000 && said > 60 && crashed > 1,
        "{samples} samples, {said} said, {crashed} crashed"
    );
}

#[test]
fn cut_and_changed_logs_are_taken_by_every_monitor() {
    cut_and_changed(2);
}

mod often {
    #[test]
    fn takes_minutes_logs_are_cut_and_changed() {
        super::cut_and_changed(60);
    }
}

/// Each log so often.
fn cut_and_changed(rounds: usize) {
    let mut random = SplitMix64::new(5);
    for (number, (path, side)) in logs().into_iter().enumerate() {
        let bytes = fs::read(&path).unwrap();
        if bytes.is_empty() {
            continue;
        }
        let mut below = |n: usize| (random.next_u64() % n as u64) as usize;
        for round in 0..rounds {
            let mut changed = bytes[..=below(bytes.len())].to_vec();
            for _ in 0..below(20) {
                let at = below(changed.len());
                match below(3) {
                    0 => changed[at] = below(256) as u8,
                    1 => drop(changed.drain(at..(at + below(60)).min(changed.len()))),
                    _ => {
                        let piece = changed[at..(at + below(200)).min(changed.len())].to_vec();
                        changed.splice(at..at, piece);
                    }
                }
                if changed.is_empty() {
                    changed.push(b'{');
                }
            }
            let tool = PROGRAMS[(number + round) % 4];
            let whole = report(tool, side, &changed, usize::MAX);
            let pieces = report(tool, side, &changed, 1 + below(300));
            assert_eq!(whole, pieces, "{} {tool:?}", Path::new(&path).display());
        }
    }
}
