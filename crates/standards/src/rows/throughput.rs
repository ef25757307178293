//! RFC 2544, section 26.1: throughput.

use super::set_up::{at, found};
use super::{figures, must, should, step};
use crate::Part::Test;
use crate::Section;
use crate::case::holds;
use linerate_measure::experiment::Benchmark::Throughput;

pub const SECTIONS: &[Section] = &[(
    Test(Throughput),
    &[
        step(
            "2544-26.1a",
            "at the throughput, as many frames are received as are sent",
            |case| {
                case.each(found(case), "throughputs whose longest trial lost no frame", |slot| {
                let throughput = case.throughput(*slot)?;
                let name = case.name_of(*slot);
                let longest = at(case, *slot, throughput).max_by_key(|trial| trial.timing.run_ns);
                match longest {
                    None => Some(format!("{name}: no trial at {throughput:.0} frames/s")),
                    Some(trial) => {
                        let (sent, received) = (trial.generator.frames, trial.receiver.frames);
                        (sent != received || trial.receiver.duplicates() > 0).then(|| {
                            format!("{name}: {received} of {sent} frames at {throughput:.0} frames/s")
                        })
                    }
                }
            })
            },
        ),
        should(
            "2544-26.1b",
            "a graph over the frame size with the theoretical rate and the result",
            |case| {
                case.with_medium(|| {
                    let points = throughputs(case)
                        .filter(|(of, _)| of.maximum.is_some())
                        .count();
                    holds(
                        points > 1,
                        format!("{points} points, each with its theoretical rate"),
                    )
                })
            },
        ),
        must(
            "2544-26.1c",
            "a single figure has its frames/s, size, theoretical limit and protocol",
            |case| {
                case.with_medium(|| case.some(found(case), "figures with size, limit and protocol"))
            },
        ),
    ],
)];

figures!(throughputs, Throughput);
