//! From trials between end hosts to throughput and latency of TCP.

use crate::record::{Goodput, PathOf, TcpTrial, TrialRecord};
use linerate_stats::{Estimate, median};

/// A rate of at least this share of the achievable one fills the path.
const FILLED: f64 = 0.95;

/// An estimate in another unit.
fn times(of: Estimate, factor: f64) -> Estimate {
    let Estimate {
        median,
        low,
        high,
        n,
    } = of;
    Estimate {
        median: median * factor,
        low: low.map(|v| v * factor),
        high: high.map(|v| v * factor),
        n,
    }
}

/// Whether TCP fills a path at this rate in frames/s.
pub fn fills(path: Option<&PathOf>, received: f64) -> bool {
    path.and_then(PathOf::achievable)
        .is_some_and(|most| received >= FILLED * most)
}

/// TCP of a slot, by its valid trials and their rate in frames/s. `None` without such a trial.
pub fn goodput(path: &PathOf, valid: &[&TrialRecord], rate: Estimate) -> Option<Goodput> {
    let all: Vec<&TcpTrial> = valid
        .iter()
        .filter_map(|trial| trial.tcp.as_ref())
        .collect();
    let middle = |of: &dyn Fn(&TcpTrial) -> Option<f64>| {
        median(&all.iter().filter_map(|t| of(t)).collect::<Vec<_>>())
    };
    let idle_ns =
        middle(&|tcp| median(&tcp.idle_ns.iter().map(|ns| *ns as f64).collect::<Vec<_>>()))?;
    let loaded_ns = middle(&|tcp| tcp.loaded_ns.map(|[_, mean, _]| mean as f64));
    let seen = all.iter().filter_map(|tcp| Some((tcp.sent?, tcp.again?)));
    let (sent, again) = seen.fold((0, 0), |sum, (sent, again)| (sum.0 + sent, sum.1 + again));
    let paths = || all.iter().flat_map(|tcp| &tcp.path);
    let frames: u64 = paths().map(|path| path.frames_out).sum();
    let late: u64 = paths().map(|path| path.late_ns).sum();
    let bits = times(rate, path.goodput(1.0));
    Some(Goodput {
        bits,
        achievable: path.achievable().map(|frames| path.goodput(frames)),
        idle_ns,
        loaded_ns,
        // Without a delay of the path there is nothing to compare with.
        buffer_delay: loaded_ns
            .filter(|_| path.rtt_ns > 0)
            .map(|loaded| loaded / idle_ns - 1.0),
        efficiency: (sent > 0).then(|| sent as f64 / (sent + again) as f64),
        in_flight: loaded_ns.map(|loaded| bits.median * loaded / 8e9),
        late_ns: late as f64 / frames.max(1) as f64,
    })
}

/// How much later than due frames may leave a path, on average, as a share of its round-trip time, beside the least of it.
const LATE: f64 = 0.02;
const LEAST_LATE_NS: f64 = 500_000.0;
/// A byte of iperf3's that is not of its test: the cookie at the beginning of each connection.
const COOKIE: u64 = 37;

impl TcpTrial {
    /// Counts that contradict each other, in words. Each byte that the receiver read was acknowledged before, each of these had been sent,
    /// and each of these written. `flows`: connections.
    pub fn faults(&self, path: &PathOf, flows: u64) -> Vec<String> {
        let TcpTrial {
            written,
            sent,
            acknowledged,
            read,
            ..
        } = *self;
        let cookies = COOKIE * flows;
        // Where the path does not look into frames, the kernels' counts of bytes stand beside iperf3's alone.
        let (sent, acknowledged) = (
            sent.unwrap_or(written),
            acknowledged.unwrap_or(read + cookies),
        );
        let order = [
            (
                "iperf3's receiver read",
                read,
                "the path saw acknowledged",
                acknowledged.saturating_sub(cookies),
            ),
            (
                "the path saw acknowledged",
                acknowledged,
                "the path saw sent",
                sent,
            ),
            (
                "the path saw sent",
                sent,
                "iperf3's sender wrote",
                written + cookies,
            ),
        ];
        let wrong = order.iter().filter(|(_, less, _, more)| less > more);
        let mut faults: Vec<String> = wrong
            .map(|(who, less, other, more)| {
                format!("bytes of TCP do not agree: {who} {less}, and {other} {more}")
            })
            .collect();
        let late_ns = self.path.iter().map(|p| p.late_ns).sum::<u64>() as f64
            / self.path.iter().map(|p| p.frames_out).sum::<u64>().max(1) as f64;
        let most = (LATE * path.rtt_ns as f64).max(LEAST_LATE_NS);
        if late_ns > most && path.rate.is_some() {
            faults.push(format!(
                "the path was late: frames left it {:.2} ms after their time on average, and {:.2} ms are allowed; this machine cannot carry the rate, or other programs keep it busy",
                late_ns / 1e6,
                most / 1e6
            ));
        }
        if let Some(least) = self.idle_ns.iter().min().filter(|ns| **ns < path.rtt_ns) {
            faults.push(format!(
                "the path was too short: a round trip without load took {:.3} ms of {:.3}",
                *least as f64 / 1e6,
                path.rtt_ns as f64 / 1e6
            ));
        }
        faults
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path() -> PathOf {
        PathOf {
            rtt_ns: 100_000_000,
            rate: Some(1e9),
            payload: 1448,
            by: "linerate".into(),
        }
    }

    #[test]
    fn achievable_throughput_and_product_are_those_of_rfc_6349() {
        // Table 3.3.1 has 125 kB for 1 Gbit/s and 1 ms, a hundredth; section 4.1.1 has 81,274 frames of 1,538 bytes a second.
        assert_eq!(path().product(), Some(12.5e6));
        let frames = path().achievable().unwrap();
        assert!((frames - 81_274.0).abs() < 1.0, "{frames}");
        assert!((path().goodput(frames) - 941.5e6).abs() < 0.1e6);
        assert!(fills(Some(&path()), 0.96 * frames) && !fills(Some(&path()), 0.94 * frames));
        assert!(
            !fills(
                Some(&PathOf {
                    rate: None,
                    ..path()
                }),
                1e9
            ) && !fills(None, 1e9)
        );
    }

    #[test]
    fn metrics_are_computed_as_the_rfc_does() {
        // Sections 4.2.1 and 4.3.1: 102,000 bytes of which 2,000 again; 25 ms without load and 32 ms under it.
        let tcp = TcpTrial {
            idle_ns: vec![25_000_000],
            loaded_ns: Some([25_000_000, 32_000_000, 40_000_000]),
            sent: Some(100_000),
            again: Some(2000),
            ..TcpTrial::default()
        };
        let trial = TrialRecord {
            tcp: Some(tcp),
            ..TrialRecord::default()
        };
        let rate = Estimate {
            median: 1000.0,
            low: None,
            high: None,
            n: 1,
        };
        let found = goodput(&path(), &[&trial], rate).unwrap();
        assert!(
            (found.efficiency.unwrap() - 0.980_39).abs() < 1e-5
                && (found.buffer_delay.unwrap() - 0.28).abs() < 1e-9
        );
        assert_eq!(
            (found.bits.median, found.in_flight),
            (11_584_000.0, Some(46_336.0))
        );
        assert_eq!(goodput(&path(), &[&TrialRecord::default()], rate), None);
    }

    #[test]
    fn counts_that_contradict_each_other_are_found() {
        let good = TcpTrial {
            written: 1000,
            sent: Some(1037),
            acknowledged: Some(937),
            read: 900,
            idle_ns: vec![100_000_000],
            ..TcpTrial::default()
        };
        assert_eq!(good.faults(&path(), 1), Vec::<String>::new());
        let more = |change: fn(&mut TcpTrial)| {
            let mut tcp = good.clone();
            change(&mut tcp);
            tcp.faults(&path(), 1)
        };
        assert!(more(|tcp| tcp.read = 901)[0].contains("iperf3's receiver read 901"));
        assert!(more(|tcp| tcp.sent = Some(1038))[0].contains("iperf3's sender wrote 1037"));
        assert!(more(|tcp| tcp.acknowledged = Some(1038))[0].contains("saw sent 1037"));
        assert!(more(|tcp| tcp.idle_ns.push(99_999_999))[0].contains("too short"));
        let late = crate::record::PathCounts {
            frames_out: 10,
            late_ns: 30_000_000,
            ..Default::default()
        };
        assert!(good.clone().faults(&path(), 1).is_empty());
        assert!(
            TcpTrial {
                path: vec![late],
                ..good
            }
            .faults(&path(), 1)[0]
                .contains("was late")
        );
    }
}
