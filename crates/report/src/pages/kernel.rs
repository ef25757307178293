//! A kernel under load: times of frames in its stack, waits for its locks, frames that it drops.

use crate::prelude::*;
use linerate_measure::collector::Counters;
use linerate_measure::record::{StackTimes, Step};
use linerate_profile::{Distribution, Function, LockEvent, Observed};
use linerate_stats::histogram::Histogram;

/// Quantiles of times, as the columns of a table.
const QUANTILES: [(&str, f64); 5] = [
    ("P50", 0.5),
    ("P90", 0.9),
    ("P99", 0.99),
    ("P99.9", 0.999),
    ("P99.99", 0.9999),
];
/// Callers of a function that are named.
const CALLERS: usize = 3;

/// A line of a table of times.
pub(super) struct Stage<'a> {
    name: String,
    between: String,
    times: &'a Histogram,
}

impl<'a> Stage<'a> {
    /// The steps of frames, then their whole way.
    pub(super) fn all(times: &'a StackTimes) -> Vec<Stage<'a>> {
        let step = |step: &'a Step| {
            let between = format!("{} to {}", step.from, step.to);
            Stage {
                name: work(&step.from, &step.to).unwrap_or(&between).into(),
                between,
                times: &step.times,
            }
        };
        let between = if times.is_of_dtrace() {
            "ether_input to ether_output".into()
        } else {
            "entry to the last net_dev_start_xmit".into()
        };
        let whole = Stage {
            name: "whole way to the driver".into(),
            between,
            times: &times.whole,
        };
        times.steps.iter().map(step).chain([whole]).collect()
    }

    /// How many frames are in it at once, at a rate: its mean time times the rate (Little's law).
    fn at_once(&self, rate: f64) -> f64 {
        self.times.mean().unwrap_or(0.0) * rate / 1e9
    }
}

/// The work between two tracepoints of Linux.
fn work(from: &str, to: &str) -> Option<&'static str> {
    Some(match (from, to) {
        ("entry", "netif_receive_skb") => "GRO, wait for the batch",
        ("netif_receive_skb", "fib_table_lookup") => "input, prerouting, route",
        ("fib_table_lookup", "net_dev_queue") => "forwarding, postrouting",
        ("netif_receive_skb", "net_dev_queue") => "forwarding without route",
        ("net_dev_queue", "net_dev_start_xmit") => "queueing discipline",
        ("net_dev_start_xmit", "net_dev_queue") => "virtual device",
        ("net_dev_start_xmit", "net_dev_xmit") => "driver",
        _ => return None,
    })
}

/// A table of times in nanoseconds, each line with a text before its name; with the frames of a line at once, at its rate.
pub(super) fn stages(
    lines: Vec<(String, Stage<'_>)>,
    rate: impl Fn(usize) -> Option<f64>,
) -> Table {
    let table = Table::of(lines.into_iter().enumerate());
    let table = table.column("step", "", |(_, (before, stage))| {
        format!("{before}{}", stage.name)
    });
    let table = QUANTILES.iter().fold(table, |table, (head, quantile)| {
        table.column(head, "ns", |(_, (_, stage))| {
            stage
                .times
                .quantile(*quantile)
                .map(|ns| number(ns as f64, 3))
        })
    });
    let table = table
        .column("mean", "ns", |(_, (_, stage))| {
            stage.times.mean().map(|ns| number(ns, 3))
        })
        .if_any("frames", "at once", |(at, (_, stage))| {
            rate(*at).map(|rate| number(stage.at_once(rate), 2))
        })
        .optional("between", "", |(_, (_, stage))| stage.between.clone());
    table.into()
}

/// Events of the CPUs that forward, for each frame, in columns of their own: cells, or the two sides of a difference.
pub(super) fn events(columns: &[(String, BTreeMap<String, f64>)]) -> Table {
    let names: BTreeSet<&String> = columns
        .iter()
        .flat_map(|(_, counted)| counted.keys())
        .collect();
    let table = Table::of(names).column("event", "", |name| (*name).clone());
    let table = columns.iter().fold(table, |table, (head, counted)| {
        table.column(head, "", |name| {
            counted.get(*name).map(|each| number(*each, 3))
        })
    });
    table.into()
}

/// A histogram as DTrace's quantize() prints it: bars of 40 characters.
pub(super) fn distribution(page: &mut Document, rows: &[(String, u64)]) {
    let all = rows.iter().map(|(_, n)| *n as f64).sum::<f64>().max(1.0);
    page.code(
        &format!("{:>16}  {:-^40} count", "value", " Distribution "),
        Tone::Plain,
    );
    for (value, n) in rows {
        let bar = "@".repeat((40.0 * *n as f64 / all).round() as usize);
        page.code(&format!("{value:>16} |{bar:<40} {n}"), Tone::Plain);
    }
}

/// The rows of a histogram by powers of two, with an empty one at either end.
pub(super) fn powers(times: &Histogram) -> Vec<(String, u64)> {
    let powers = times.powers();
    let ends = powers
        .first()
        .zip(powers.last())
        .map(|(first, last)| (first.0 / 2, last.0.max(1) * 2));
    let before = ends
        .filter(|(before, _)| *before > 0)
        .map(|(before, _)| (before, 0));
    let after = ends.map(|(_, after)| (after, 0));
    before
        .into_iter()
        .chain(powers)
        .chain(after)
        .map(|(value, n)| (value.to_string(), n))
        .collect()
}

/// Times of frames in the stack of this machine.
pub fn stack_times(times: &StackTimes) -> Document {
    let mut page = Document::default();
    let whole = &times.whole;
    match whole.quantile(0.5).zip(whole.quantile(0.99)) {
        Some((median, high)) => page.answer(format!(
            "Half of {} frames were in the stack for at most {}, 99 % for at most {}.",
            grouped(whole.count()),
            time(median as f64),
            time(high as f64)
        )),
        None => page.answer(format!(
            "None of {} frames that were followed was sent.",
            times.followed
        )),
    }
    let lines = Stage::all(times)
        .into_iter()
        .map(|stage| (String::new(), stage))
        .collect();
    page.section("Time in the stack", stages(lines, |_| None));
    page.gap();
    distribution(&mut page, &powers(whole));
    page.note(followed(times));
    page
}

/// How the times came about.
pub(super) fn followed(times: &StackTimes) -> String {
    if times.is_of_dtrace() {
        return format!(
            "{} frames, in DTrace's powers of two: each time counts as the middle of its own. Frames wait for others of their batch.",
            grouped(times.whole.count())
        );
    }
    format!(
        "One frame in 61 was followed: {}, of which {} were sent. Each step has {} ns of its own measurement. Frames wait for \
         others of their batch.",
        grouped(times.followed),
        grouped(times.whole.count()),
        times.clock_ns
    )
}

/// Functions that wait for locks, the longest wait first; each with a text for its time.
pub(super) fn waiting(
    functions: &[Function],
    name: &str,
    head: [&str; 2],
    cell: impl Fn(&Function) -> Cell,
) -> Table {
    let all: u64 = functions.iter().map(|f| f.own).sum();
    let rows = functions.iter().filter(|f| f.own > 0);
    Table::of(rows)
        .column(name, "", |f| f.name.as_str())
        .column(head[0], head[1], |f| cell(f))
        .column("share", "%", |f| share(f.own as f64 / all.max(1) as f64))
        .optional("called by", "", |f| callers(f))
        .into()
}

/// The first callers of a function, with their shares of the samples in the function itself.
pub(super) fn callers(function: &Function) -> String {
    let part = |(name, own): &(String, u64)| {
        format!(
            "{name} {} %",
            percent(*own as f64 / function.own.max(1) as f64)
        )
    };
    function.callers.iter().take(CALLERS).map(part).joined(", ")
}

/// Milliseconds that a function waited.
fn milliseconds(function: &Function) -> Cell {
    number(function.own as f64 / 1e6, 3)
}

/// The head of a column of functions that take a lock.
pub(super) const WAITS: &str = "function that waits";

/// Findings of a tool of another system; of locks so many.
pub fn observed(found: &Observed, most: usize) -> Document {
    match found {
        Observed::Distributions(all) => distributions(all),
        Observed::Locks(events) => lock_events(events, most),
    }
}

fn distributions(all: &[Distribution]) -> Document {
    let mut page = Document::default();
    let table = Table::of(all)
        .column("distribution", "", |d| {
            if d.name.is_empty() {
                "(no key)"
            } else {
                &d.name
            }
            .to_string()
        })
        .column("values", "", |d| count(d.count()));
    let table = QUANTILES.iter().fold(table, |table, (head, quantile)| {
        table.column(head, "below", |d| {
            d.below(*quantile)
                .map(|value| Cell::number(value as f64, value.to_string()))
        })
    });
    page.section("Distributions", table);
    for one in all {
        page.gap();
        page.say(one.name.as_str());
        let rows: Vec<(String, u64)> = one
            .ranges
            .iter()
            .map(|range| (range.value.clone(), range.count))
            .collect();
        distribution(&mut page, &rows);
    }
    page.note(
        "Quantiles are known to the ranges of the distributions: so much of the values lies below the value.",
    );
    page
}

fn lock_events(events: &[LockEvent], most: usize) -> Document {
    let mut page = Document::default();
    for event in events {
        let ns = event.waited.profile.samples();
        page.heading(event.name.as_str());
        let observed = event.seconds.map_or(String::new(), |seconds| {
            format!(" in {} s", significant(seconds, 3))
        });
        page.answer(format!(
            "{} events{observed} took {} together.",
            grouped(event.waited.waits),
            time(ns as f64)
        ));
        let locks = event.waited.profile.functions();
        page.table(waiting(
            &locks[..locks.len().min(most)],
            "lock",
            ["together", "ms"],
            milliseconds,
        ));
    }
    page
}

/// Waits for locks: all of them in nanoseconds, how many there were, the functions that waited, and the time of all CPUs.
pub fn lock_waits(ns: u64, waits: u64, functions: &[Function], cpus_ns: Option<f64>) -> Document {
    let mut page = Document::default();
    if waits == 0 {
        page.answer("Nothing waited for a lock.");
        return page;
    }
    let share = cpus_ns.map_or(String::new(), |all| {
        format!(", {} % of the CPUs' time", percent(ns as f64 / all))
    });
    let waits = grouped(waits);
    page.answer(format!(
        "{waits} waits for locks took {} together{share}.",
        time(ns as f64)
    ));
    page.section(
        "Waits for locks",
        waiting(functions, WAITS, ["waited", "ms"], milliseconds),
    );
    page
}

/// A drop of the counters `drop REASON in FUNCTION`, in its parts.
pub(super) fn drop_of(name: &str) -> (&str, &str) {
    let name = name.trim_start_matches("drop ");
    name.split_once(" in ").unwrap_or((name, ""))
}

/// Frames that this machine's kernel dropped, by `drop REASON in FUNCTION`.
pub fn dropped(drops: &Counters) -> Document {
    let mut page = Document::default();
    let mut rows: Vec<(&String, &u64)> = drops.iter().collect();
    rows.sort_by(|a, b| b.1.cmp(a.1).then_with(|| a.0.cmp(b.0)));
    match rows.first() {
        Some((name, _)) => page.answer(format!(
            "The kernel dropped {} frames, most of them for {}.",
            grouped(drops.values().sum::<u64>()),
            drop_of(name).0
        )),
        None => page.answer("The kernel dropped nothing."),
    }
    let rows = Table::of(rows)
        .column("reason", "", |(name, _)| drop_of(name).0)
        .column("function", "", |(name, _)| drop_of(name).1)
        .column("frames", "", |(_, frames)| count(**frames));
    page.section("Dropped frames", rows);
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Style;
    use expect_test::expect;

    fn histogram(values: &[(u64, usize)]) -> Histogram {
        let mut histogram = Histogram::default();
        values
            .iter()
            .for_each(|(ns, n)| (0..*n).for_each(|_| histogram.record(*ns)));
        histogram
    }

    #[test]
    fn times_as_the_papers_print_them() {
        let step = |from: &str, to: &str, ns| Step {
            from: from.into(),
            to: to.into(),
            times: histogram(&[(ns, 100)]),
        };
        let times = StackTimes {
            followed: 101,
            clock_ns: 40,
            whole: histogram(&[(1500, 97), (3000, 2), (9000, 1)]),
            steps: vec![
                step("entry", "netif_receive_skb", 300),
                step("netif_receive_skb", "fib_table_lookup", 700),
                step("somewhere", "elsewhere", 20),
            ],
        };
        let expected = expect![[r#"
            Half of 100 frames were in the stack for at most 1.49 us, 99 % for at most 2.98 us.

            Time in the stack
            step                       P50   P90   P99  P99.9  P99.99  mean                                between
                                        ns    ns    ns     ns      ns    ns
            GRO, wait for the batch    300   300   300    300     300   300             entry to netif_receive_skb
            input, prerouting, route   696   696   696    696     696   696  netif_receive_skb to fib_table_lookup
            somewhere to elsewhere    20.0  20.0  20.0   20.0    20.0  20.0                 somewhere to elsewhere
            whole way to the driver   1488  1488  2976   9088    9088  1594   entry to the last net_dev_start_xmit

                       value  ------------- Distribution ------------- count
                         512 |                                         0
                        1024 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@  97
                        2048 |@                                        2
                        4096 |                                         0
                        8192 |                                         1
                       16384 |                                         0
            One frame in 61 was followed: 101, of which 100 were sent. Each step has 40 ns of its own measurement. Frames wait for
            others of their batch.
        "#]];
        expected.assert_eq(&stack_times(&times).text(Style {
            color: false,
            width: 120,
        }));
        let none = StackTimes {
            followed: 7,
            ..StackTimes::default()
        };
        assert!(
            stack_times(&none)
                .text(Style {
                    color: false,
                    width: 80
                })
                .starts_with("None of 7 frames")
        );
    }

    #[test]
    fn tools_of_other_systems() {
        let text =
            "  key\nvalue  --- Distribution --- count\n 512 | 0\n1024 |@ 3\n2048 | 1\n4096 | 0\n";
        let found = linerate_profile::observed(text.as_bytes()).unwrap();
        let expected = expect![[r#"
            Distributions
            distribution  values    P50    P90    P99  P99.9  P99.99
                                  below  below  below  below   below
            key                4   2048   4096   4096   4096    4096

            key
                       value  ------------- Distribution ------------- count
                         512 |                                         0
                        1024 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@           3
                        2048 |@@@@@@@@@@                               1
                        4096 |                                         0
            Quantiles are known to the ranges of the distributions: so much of the values lies below
            the value.
        "#]];
        expected.assert_eq(&observed(&found, 5).text(Style {
            color: false,
            width: 90,
        }));
        let text = "Spin lock spin: 40 events in 2.000 seconds (20 events/sec)\n\nCount indv cuml rcnt     nsec Lock   Caller\n\
                    30 75% 75% 0.00 2000 igb0 tx   igb_start+0x10\n10 25% 100% 0.00 100 sched lock 0   tdq_add\n";
        let found = linerate_profile::observed(text.as_bytes()).unwrap();
        let expected = expect![[r#"
            Spin lock spin
            40 events in 2.00 s took 61.0 us together.

            lock          together  share        called by
                                ms      %
            igb0 tx         0.0600   98.4  igb_start 100 %
            sched lock 0   0.00100   1.64    tdq_add 100 %
        "#]];
        expected.assert_eq(&observed(&found, 5).text(Style {
            color: false,
            width: 90,
        }));
    }

    #[test]
    fn drops_and_waits() {
        let drops = Counters::from([
            ("drop IP_INHDR in ip_rcv_core".into(), 3),
            ("drop OTHER in other functions".into(), 5),
        ]);
        let expected = expect![[r#"
            The kernel dropped 8 frames, most of them for OTHER.

            Dropped frames
            reason           function  frames
            OTHER     other functions       5
            IP_INHDR      ip_rcv_core       3
        "#]];
        expected.assert_eq(&dropped(&drops).text(Style {
            color: false,
            width: 80,
        }));
        assert_eq!(
            dropped(&Counters::new()).text(Style {
                color: false,
                width: 80
            }),
            "The kernel dropped nothing.\n"
        );
        let callers = vec![("ip_finish_output2".to_string(), 2_000_000)];
        let waits = Function {
            name: "__dev_queue_xmit".into(),
            own: 2_000_000,
            with_called: 2_000_000,
            callers,
        };
        let expected = expect![[r#"
            1,234 waits for locks took 2.00 ms together, 0.20 % of the CPUs' time.

            Waits for locks
            function that waits  waited  share                called by
                                     ms      %
            __dev_queue_xmit       2.00    100  ip_finish_output2 100 %
        "#]];
        expected.assert_eq(
            &lock_waits(2_000_000, 1234, &[waits], Some(1e9)).text(Style {
                color: false,
                width: 90,
            }),
        );
        assert_eq!(
            lock_waits(0, 0, &[], None).text(Style {
                color: false,
                width: 80
            }),
            "Nothing waited for a lock.\n"
        );
    }
}
