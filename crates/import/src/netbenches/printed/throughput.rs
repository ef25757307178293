//! Throughput as iperf, iperf3 and netperf print it.

use super::transcript::Transcript;
use serde_json::Value;
use std::collections::BTreeSet;

/// Bit/s of a test, the line where it begins, and its source.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    pub line: u64,
    pub bits: f64,
    pub by: &'static str,
}

const RECEIVED: &str = "whole test of iperf, as its receiver counted";
const SENT: &str = "whole test of iperf, as its sender counted";
const WHOLE: &str = "whole test of iperf";
const INTERVALS: &str = "median of the intervals of a test of iperf without a total";
const NETPERF: &str = "whole test of netperf";

/// All tests, in their order, and the reason for each that cannot be used.
pub fn tests(transcript: &Transcript) -> (Vec<Measured>, Vec<String>) {
    let mut found = Vec::new();
    let mut problems = Vec::new();
    for (line, document) in &transcript.documents {
        match document_total(document) {
            Some((bits, by)) => found.push(Measured {
                line: *line,
                bits,
                by,
            }),
            None => problems.push(format!("line {line}: a document of iperf3 without a total")),
        }
    }
    let mut test = Iperf::default();
    let mut netperf = Netperf::default();
    for (line, text) in &transcript.lines {
        if let Some(bits) = netperf.figure(text) {
            found.push(Measured {
                line: *line,
                bits,
                by: NETPERF,
            });
        } else if let Some(ends) = connected(text) {
            test.ends_before(&mut found, &mut problems);
            test.connection(ends);
        } else if let Some(row) = Row::read(text) {
            if row.begins && test.has_ended(&row) {
                test.ends_before(&mut found, &mut problems);
            }
            test.line.get_or_insert(*line);
            test.rows.push(row);
        }
    }
    test.ends_before(&mut found, &mut problems);
    found.sort_by_key(|test| test.line);
    (found, problems)
}

/// The total of a document of iperf3.
fn document_total(document: &Value) -> Option<(f64, &'static str)> {
    let of = |sum: &str| {
        document["end"][sum]["bits_per_second"]
            .as_f64()
            .filter(|bits| bits.is_finite() && *bits >= 0.0)
    };
    let received = of("sum_received").map(|bits| (bits, RECEIVED));
    received
        .or_else(|| of("sum_sent").map(|bits| (bits, SENT)))
        .or_else(|| of("sum").map(|bits| (bits, WHOLE)))
}

/// A test of iperf while it is read.
#[derive(Debug, Default)]
struct Iperf {
    line: Option<u64>,
    rows: Vec<Row>,
    /// The connections of this test, and of all before: both hosts may have printed the same one.
    ends: Vec<[String; 2]>,
    seen: BTreeSet<[String; 2]>,
}

impl Iperf {
    fn connection(&mut self, ends: [String; 2]) {
        self.ends.push(ends);
    }

    /// Whether a row that begins at 0 is of another test: this one has its total, or an interval of that connection.
    fn has_ended(&self, row: &Row) -> bool {
        let later = |own: &Row| own.id == row.id && own.end > 0.0;
        match row.total {
            // A total of iperf 2 has no mark: it ends where the intervals end.
            None => self
                .rows
                .iter()
                .any(|own| own.total.is_some() || (later(own) && !row.covers(own))),
            Some(_) => false,
        }
    }

    /// Ends the test, if one has begun.
    fn ends_before(&mut self, found: &mut Vec<Measured>, problems: &mut Vec<String>) {
        if self.rows.is_empty() {
            return;
        }
        let rows = std::mem::take(&mut self.rows);
        let line = self.line.take().unwrap_or(1);
        let ends = std::mem::take(&mut self.ends);
        let reversed = |[from, to]: &[String; 2]| [to.clone(), from.clone()];
        if !ends.is_empty() && ends.iter().all(|ends| self.seen.contains(&reversed(ends))) {
            return;
        }
        self.seen.extend(ends);
        let sums = rows.iter().any(|row| row.id == "SUM");
        let rows: Vec<&Row> = rows.iter().filter(|row| !sums || row.id == "SUM").collect();
        let ids: BTreeSet<&str> = rows.iter().map(|row| row.id.as_str()).collect();
        if ids.len() > 1 {
            problems.push(format!(
                "line {line}: several connections of iperf at once without their sum"
            ));
            return;
        }
        let total = |wanted: Total| {
            rows.iter()
                .find(|row| row.total == Some(wanted))
                .map(|row| row.bits)
        };
        let unmarked = match rows[..] {
            [only] => Some(only.bits),
            [.., before, last] if last.begins && last.covers(before) => Some(last.bits),
            _ => None,
        };
        let mut intervals: Vec<f64> = rows
            .iter()
            .filter(|row| row.total.is_none())
            .map(|row| row.bits)
            .collect();
        intervals.sort_by(f64::total_cmp);
        let median =
            || linerate_stats::median_interval(&intervals, 0.95).map(|median| median.median);
        let figure = total(Total::Received).map(|bits| (bits, RECEIVED));
        let figure = figure.or_else(|| total(Total::Sent).map(|bits| (bits, SENT)));
        let figure = figure.or_else(|| unmarked.map(|bits| (bits, WHOLE)));
        let figure = figure.or_else(|| median().map(|bits| (bits, INTERVALS)));
        found.extend(figure.map(|(bits, by)| Measured { line, bits, by }));
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Total {
    Sent,
    Received,
}

/// `[  4]   0.00-1.00   sec   961 MBytes  8.06 Gbits/sec ...`.
#[derive(Debug)]
struct Row {
    id: String,
    /// Whether it is from the beginning of the test.
    begins: bool,
    end: f64,
    bits: f64,
    total: Option<Total>,
}

impl Row {
    fn read(line: &str) -> Option<Row> {
        let (id, rest) = line.trim().strip_prefix('[')?.split_once(']')?;
        let (time, rest) = rest.split_once("sec")?;
        let time: String = time.chars().filter(|c| !c.is_whitespace()).collect();
        let (start, end) = time
            .rsplit_once(']')
            .map_or(&*time, |(_, time)| time)
            .split_once('-')?;
        let [start, end] = [number(start)?, number(end)?];
        let words: Vec<&str> = rest.split_whitespace().collect();
        let at = words.iter().position(|word| word.ends_with("/sec"))?;
        let bits = rate(words.get(at.checked_sub(1)?)?, words[at])?;
        if words.contains(&"(omitted)") {
            return None;
        }
        let total = match *words.last()? {
            "receiver" => Some(Total::Received),
            "sender" => Some(Total::Sent),
            _ => None,
        };
        Some(Row {
            id: id.trim().into(),
            begins: start == 0.0,
            end,
            bits,
            total,
        })
    }

    /// Whether it may be the total of intervals of which `other` is one.
    fn covers(&self, other: &Row) -> bool {
        self.begins && self.end >= other.end && !(other.begins && self.end == other.end)
    }
}

/// Bit/s of a number and its unit.
pub fn rate(value: &str, of: &str) -> Option<f64> {
    Some(number(value)? * unit(of)?).filter(|bits| bits.is_finite())
}

/// Bits in a unit of a rate: `Gbits/sec`, `KBytes/sec`, `Gbits/s`.
fn unit(text: &str) -> Option<f64> {
    let text = text
        .strip_suffix("/sec")
        .or_else(|| text.strip_suffix("/s"))?;
    let (prefix, bits, base) = match (
        text.strip_suffix("bits").or(text.strip_suffix("bit")),
        text.strip_suffix("Bytes"),
    ) {
        (Some(prefix), _) => (prefix, 1.0, 1000.0f64),
        (_, Some(prefix)) => (prefix, 8.0, 1024.0),
        _ => return None,
    };
    let power = ["", "K", "M", "G", "T"]
        .iter()
        .position(|known| known.eq_ignore_ascii_case(prefix))?;
    Some(bits * base.powi(power as i32))
}

/// Both ends of a connection, in words that do not depend on the side that says it.
fn connected(line: &str) -> Option<[String; 2]> {
    let (_, rest) = line.split_once("] local ")?;
    let words: Vec<&str> = rest.split_whitespace().collect();
    let [
        from,
        "port",
        from_port,
        "connected",
        "to" | "with",
        to,
        "port",
        to_port,
        ..,
    ] = words[..]
    else {
        return None;
    };
    Some([format!("{from} {from_port}"), format!("{to} {to_port}")])
}

/// netperf's output while it is read.
#[derive(Debug, Default)]
struct Netperf {
    udp: bool,
    /// Rows of figures up to the one that counts.
    rows: u8,
}

impl Netperf {
    /// `THROUGHPUT=941.40` of `-k`, or the last figure of the row below the heads: of UDP the second row, the receiver's.
    fn figure(&mut self, line: &str) -> Option<f64> {
        let line = line.trim();
        if line.contains(" TEST from ") || line.ends_with(" TEST") {
            self.udp = line.contains("UDP");
        }
        if line.contains("10^6bits/sec") {
            self.rows = if self.udp { 2 } else { 1 };
        }
        if let Some(value) = line.strip_prefix("THROUGHPUT=") {
            return rate(value, "Mbits/s");
        }
        if self.rows == 0 {
            return None;
        }
        let figures: Vec<f64> = line.split_whitespace().map(number).collect::<Option<_>>()?;
        let last = figures.last().filter(|_| figures.len() > 3)?;
        self.rows -= 1;
        (self.rows == 0)
            .then_some(last * 1e6)
            .filter(|bits| bits.is_finite())
    }
}

/// A number that can be a rate or a time.
pub fn number(word: &str) -> Option<f64> {
    let plain = word.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    word.parse()
        .ok()
        .filter(|value: &f64| plain && value.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(text: &str) -> Vec<(u64, f64, &'static str)> {
        let (found, problems) = tests(&Transcript::read(text.as_bytes()));
        assert_eq!(problems, Vec::<String>::new());
        found
            .into_iter()
            .map(|test| (test.line, (test.bits / 1e3).round() / 1e3, test.by))
            .collect()
    }

    const CLIENT: &str = "[  4] local 10.0.0.1 port 13478 connected to 10.0.0.2 port 5201
[ ID] Interval           Transfer     Bandwidth
[  4]   0.00-1.00   sec   961 MBytes  8.06 Gbits/sec
[  4]   1.00-2.00   sec   973 MBytes  8.16 Gbits/sec
- - - - - - - - - - - - - - - - - - - - - - - - -
[  4]   0.00-2.00   sec  9.48 GBytes  8.15 Gbits/sec    0             sender
[  4]   0.00-2.00   sec  9.48 GBytes  8.14 Gbits/sec                  receiver
";

    #[test]
    fn a_test_is_a_figure() {
        assert_eq!(figures(CLIENT), [(3, 8140.0, RECEIVED)]);
        // One after the other, with the same port of the server and another of the client.
        let next = CLIENT.replace("13478", "13479").replace("8.14", "7.5");
        assert_eq!(
            figures(&format!("{CLIENT}{next}")),
            [(3, 8140.0, RECEIVED), (10, 7500.0, RECEIVED)]
        );
        // The server's view of the same connection is no second test.
        let server = "[  5] local 10.0.0.2 port 5201 connected to 10.0.0.1 port 13478\n[  5]   0.00-2.04   sec  9.48 GBytes  8.10 Gbits/sec                  receiver\n";
        assert_eq!(
            figures(&format!("{CLIENT}{server}")),
            [(3, 8140.0, RECEIVED)]
        );
        let cut: String = CLIENT
            .lines()
            .take(4)
            .map(|line| format!("{line}\n"))
            .collect();
        assert_eq!(figures(&cut), [(3, 8110.0, INTERVALS)]);
        let client_only = CLIENT.lines().take(6).collect::<Vec<_>>().join("\n");
        assert_eq!(figures(&client_only), [(3, 8150.0, SENT)]);
    }

    #[test]
    fn connections_side_by_side_count_by_their_sum() {
        let rows = "[  5]   0.00-1.00   sec   112 MBytes   941 Mbits/sec
[  7]   0.00-1.00   sec   112 MBytes   940 Mbits/sec
[SUM]   0.00-1.00   sec   224 MBytes  1.88 Gbits/sec
[  5]   0.00-1.00   sec   112 MBytes   941 Mbits/sec                  receiver
[  7]   0.00-1.00   sec   112 MBytes   940 Mbits/sec                  receiver
[SUM]   0.00-1.00   sec   224 MBytes  1.88 Gbits/sec                  receiver\n";
        assert_eq!(figures(rows), [(1, 1880.0, RECEIVED)]);
        let apart: String = rows
            .lines()
            .filter(|line| !line.contains("SUM"))
            .map(|line| format!("{line}\n"))
            .collect();
        let (found, problems) = tests(&Transcript::read(apart.as_bytes()));
        assert!(
            found.is_empty() && problems[0].contains("without their sum"),
            "{found:?} {problems:?}"
        );
    }

    #[test]
    fn older_and_other_tools() {
        let two = "[  3]  0.0- 1.0 sec   112 MBytes   941 Mbits/sec\n[  3]  1.0- 2.0 sec   111 MBytes   931 Mbits/sec\n[  3]  0.0- 2.0 sec   223 MBytes   936 Mbits/sec\n";
        assert_eq!(figures(two), [(1, 936.0, WHOLE)]);
        assert_eq!(
            figures("[  3]  0.0-10.0 sec  1.10 GBytes   118 MBytes/sec\n"),
            [(1, 989.856, WHOLE)]
        );
        let udp = "[  5]   0.00-10.00  sec  1.25 MBytes  1.05 Mbits/sec  0.020 ms  0/906 (0%)  receiver\n";
        assert_eq!(figures(udp), [(1, 1.05, RECEIVED)]);
        let netperf = "MIGRATED TCP STREAM TEST\nbytes  bytes   bytes    secs.    10^6bits/sec\n\n 87380  16384  16384    10.00     941.40\n1 2 3 4 5\nTHROUGHPUT=12.5\n";
        assert_eq!(figures(netperf), [(4, 941.4, NETPERF), (6, 12.5, NETPERF)]);
        let udp = "MIGRATED UDP STREAM TEST from a\nbytes   bytes    secs            #      #   10^6bits/sec\n\n212992   65507   10.00      114600      0    6005.6\n212992           10.00      114500           6000.3\n";
        assert_eq!(figures(udp), [(5, 6000.3, NETPERF)]);
        let json = r#"{"start": {}, "intervals": [], "end": {"sum_sent": {"bits_per_second": 2e6}, "sum_received": {"bits_per_second": 1e6}}}"#;
        assert_eq!(figures(json), [(1, 1.0, RECEIVED)]);
        assert_eq!(
            figures(
                "[  5]   0.00-1.00   sec   1 MBytes  8 Mbits/sec  (omitted)\n[x] 1-2 sec a b c/sec\n[]\n["
            ),
            []
        );
    }
}
