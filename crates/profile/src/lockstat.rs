//! Tables of lockstat(1), of FreeBSD and illumos: waits for locks, by lock and caller; with `-s`, by stack; with `-p`, a record on each
//! line. Columns are those of report_stats() in FreeBSD's cddl/contrib/opensolaris/cmd/lockstat/lockstat.c.

use crate::{Profile, Waited};
use serde::Serialize;

/// Events, and functions of a stack, at most. Further ones are left out.
const MOST: usize = 256;

/// The waits of an event: `Adaptive mutex spin`.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct LockEvent {
    /// Name of the event; `event 7` where the output has its number only.
    pub name: String,
    /// Time that was observed, in seconds, where the output has it.
    pub seconds: Option<f64>,
    /// Nanoseconds by stack, whose innermost function is followed by the lock.
    #[serde(flatten)]
    pub waited: Waited,
}

/// A line of a table, whose stack may follow.
struct Row {
    lock: String,
    caller: String,
    /// The innermost function first.
    stack: Vec<String>,
    ns: u64,
    waits: u64,
}

/// Reads tables line by line.
#[derive(Default)]
pub struct Reader {
    row: Option<Row>,
    /// Whether the table has times in nanoseconds, each row once: `-g` counts a wait for each function of its stack.
    timed: bool,
    /// With `-R`, counts are by second.
    by_second: bool,
    pub found: Vec<LockEvent>,
}

impl Reader {
    /// The next line, without its end.
    pub fn line(&mut self, line: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            _ if is_event(line) => {
                self.end();
                let (name, rest) = line.split_once(": ").unwrap_or((line, ""));
                let seconds = rest
                    .split_whitespace()
                    .nth(3)
                    .and_then(|seconds| seconds.parse().ok());
                self.timed = false;
                self.open(LockEvent {
                    name: name.trim().into(),
                    seconds,
                    ..LockEvent::default()
                });
            }
            ["Count" | "ops/s", kind, "cuml", "rcnt", unit, ..] => {
                self.timed = *kind == "indv" && *unit == "nsec";
                self.by_second = words[0] == "ops/s";
            }
            _ if is_record(&words) => self.record(&words),
            [count, share, _, rcnt, average, lock @ .., caller]
                if self.timed
                    && share.ends_with('%')
                    && rcnt.parse::<f64>().is_ok()
                    && !lock.is_empty() =>
            {
                self.end();
                if let (Ok(count), Ok(average)) = (count.parse::<u64>(), average.parse::<u64>()) {
                    let waits = match self.found.last().and_then(|event| event.seconds) {
                        Some(seconds) if self.by_second => (count as f64 * seconds) as u64,
                        _ => count,
                    };
                    let (lock, caller) = (lock.join(" "), (*caller).to_string());
                    let ns = waits.saturating_mul(average);
                    self.row = Some(Row {
                        lock,
                        caller,
                        stack: Vec::new(),
                        ns,
                        waits,
                    });
                }
            }
            // `1024 |@@@@@   123   function`: the stack stands beside the distribution, and goes on below it.
            [.., function] if line.contains('|') => {
                let after_bar = line
                    .rsplit_once('|')
                    .map_or("", |(_, rest)| rest.trim_start_matches(['@', ' ']));
                if after_bar.split_whitespace().count() > 1 {
                    self.push(function);
                }
            }
            [function] if line.starts_with(' ') => self.push(function),
            [] => {}
            [first, ..] if *first == "nsec" => {}
            _ => self.end(),
        }
    }

    fn push(&mut self, function: &str) {
        if let Some(row) = self.row.as_mut().filter(|row| row.stack.len() < MOST) {
            row.stack.push(function.into());
        }
    }

    fn open(&mut self, event: LockEvent) {
        if self.found.len() < MOST {
            self.found.push(event);
        }
    }

    /// `0 123 lock caller 1.000000 4567 [64 counts] [stack]`
    fn record(&mut self, words: &[&str]) {
        let name = format!("event {}", words[0]);
        if self.found.last().is_none_or(|event| event.name != name) {
            match self.found.iter().position(|event| event.name == name) {
                Some(at) => {
                    let event = self.found.remove(at);
                    self.found.push(event);
                }
                None => self.open(LockEvent {
                    name,
                    ..LockEvent::default()
                }),
            }
        }
        let stack = words[6..]
            .iter()
            .filter(|word| word.parse::<u64>().is_err())
            .take(MOST);
        self.row = Some(Row {
            lock: words[2].into(),
            caller: words[3].into(),
            stack: stack.map(|word| (*word).to_string()).collect(),
            ns: words[5].parse().unwrap_or(0),
            waits: words[1].parse().unwrap_or(0),
        });
        self.end();
    }

    /// The row, if there is one, has ended.
    pub fn end(&mut self) {
        let (Some(row), Some(event)) = (self.row.take(), self.found.last_mut()) else {
            return;
        };
        let mut stack: Vec<&str> = row.stack.iter().map(String::as_str).collect();
        if !stack.contains(&row.caller.as_str()) {
            stack.insert(0, &row.caller);
        }
        let functions = stack
            .iter()
            .rev()
            .map(|name| name.rsplit_once("+0x").map_or(*name, |(name, _)| name));
        let names: Vec<String> = functions
            .chain([row.lock.as_str()])
            .map(|name| name.replace(';', ":"))
            .collect();
        event.waited.profile.add(&names.join(";"), row.ns);
        event.waited.waits = event.waited.waits.saturating_add(row.waits);
    }
}

/// `Adaptive mutex spin: 1136 events in 20.013 seconds (57 events/sec)`
pub(crate) fn is_event(line: &str) -> bool {
    line.contains(" events in ")
        && line.contains(" seconds (")
        && line.trim_end().ends_with("events/sec)")
}

/// Whether a line is a record of `-p`, with its time.
pub(crate) fn is_record(words: &[&str]) -> bool {
    let is_count = |word: &&&str| word.parse::<u64>().is_ok();
    words.len() > 5
        && words[..2].iter().filter(is_count).count() == 2
        && words[2].parse::<u64>().is_err()
        && words[4].contains('.')
        && words[4].parse::<f64>().is_ok()
        && words[5].parse::<u64>().is_ok()
}

/// All events as one profile, the event outermost.
pub(crate) fn folded(events: &[LockEvent]) -> Profile {
    let mut all = Profile::default();
    for event in events {
        for (stack, ns) in event.waited.profile.stacks() {
            all.add(&format!("{};{stack}", event.name.replace(';', ":")), ns);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<LockEvent> {
        let mut reader = Reader::default();
        text.lines().for_each(|line| reader.line(line));
        reader.end();
        reader.found
    }

    const DASHES: &str =
        "-------------------------------------------------------------------------------";

    #[test]
    fn tables() {
        let text = format!(
            "
Adaptive mutex spin: 1236 events in 20.013 seconds (62 events/sec)

Count indv cuml rcnt     nsec Lock                   Caller                  
{DASHES}
 1136  92%  92% 0.00     1412 em0 core lock          iflib_txq_drain+0x12b   
  100   8% 100% 0.00      500 0xfffff80003b0d090     ip_output+0x7           
{DASHES}

R/W writer blocked by writer: 2 events in 20.013 seconds (0 events/sec)

Count indv cuml rcnt     nsec Lock                   Caller                  
{DASHES}
    2 100% 100% 0.00    10000 rtentry                fib4_lookup             
{DASHES}

Spin lock errors: 3 events in 20.013 seconds (0 events/sec)

Count indv cuml rcnt          Lock                   Caller                  
{DASHES}
    3 100% 100% 0.00          rtentry                fib4_lookup             
{DASHES}
"
        );
        let found = read(&text);
        let facts: Vec<(&str, u64, u64)> = found
            .iter()
            .map(|e| (e.name.as_str(), e.waited.waits, e.waited.profile.samples()))
            .collect();
        assert_eq!(
            facts,
            [
                ("Adaptive mutex spin", 1236, 1136 * 1412 + 100 * 500),
                ("R/W writer blocked by writer", 2, 20_000),
                ("Spin lock errors", 0, 0)
            ]
        );
        assert_eq!(found[0].seconds, Some(20.013));
        let functions = found[0].waited.profile.functions();
        assert_eq!(functions[0].name, "em0 core lock");
        assert_eq!(
            functions[0].callers,
            [("iflib_txq_drain".to_string(), 1136 * 1412)]
        );
        assert!(
            folded(&found)
                .lines()
                .contains(&"R/W writer blocked by writer;fib4_lookup;rtentry 20000".into())
        );
    }

    #[test]
    fn stacks_beside_their_distribution() {
        let text = format!(
            "
Adaptive mutex spin: 30 events in 5.000 seconds (6 events/sec)

{DASHES}
Count indv cuml rcnt     nsec Lock                   Caller                  
   30 100% 100% 0.00     1000 igb0 tx lock           igb_start+0x10          

      nsec ------ Time Distribution ------ count     Stack                   
       512 |@@@@@@@@@@                     10        igb_start+0x10          
      1024 |                               0         if_transmit+0x20        
      2048 |@@@@@@@@@@@@@@@@@@@@           20        ether_output+0x30       
                                                     ip_output+0x40          
{DASHES}
"
        );
        let found = read(&text);
        let stack = "ip_output;ether_output;if_transmit;igb_start;igb0 tx lock 30000";
        assert_eq!(found[0].waited.profile.lines(), [stack]);
    }

    #[test]
    fn records() {
        let found = read(
            "0 7 em0 ip_output+0x3 0.000000 700\n2 1 rt fib4 1.5 9 0 0 5 ip_input+1 x\n0 3 em0 ip_output 0.0 30\n",
        );
        let facts: Vec<(&str, Vec<String>)> = found
            .iter()
            .map(|e| (e.name.as_str(), e.waited.profile.lines()))
            .collect();
        assert_eq!(
            facts,
            [
                ("event 2", vec!["x;ip_input+1;fib4;rt 9".to_string()]),
                ("event 0", vec!["ip_output;em0 730".to_string()])
            ]
        );
    }

    #[test]
    fn hostile_lines() {
        for text in [
            "a: 1 events in x seconds (1 events/sec)",
            "Count indv cuml rcnt nsec",
            "1 1% 1% 0.0 1 a b",
            "  x",
            "|",
            "| 1 y",
        ] {
            read(text);
        }
        let row = format!("{} 1% 1% 0.0 {} l c", u64::MAX, u64::MAX);
        let text = format!(
            "e: 1 events in 1 seconds (1 events/sec)\nCount indv cuml rcnt nsec Lock Caller\n{row}\n{row}\n"
        );
        assert_eq!(read(&text)[0].waited.profile.samples(), u64::MAX);
    }
}
