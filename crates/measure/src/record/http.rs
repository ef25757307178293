//! HTTP through the DUT: requests and answers of real programs, counted at both ends.

use super::{Slot, TrialRecord};
use crate::audit::{Cause, Loss, SecondCount, Side};
use linerate_stats::median;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Whether a connection carries one request or many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Http {
    /// One request; the server closes the connection after its answer.
    Close,
    /// As many as there is time for, one after the other.
    KeepAlive,
}

/// The requests of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HttpOf {
    /// Requests of a connection.
    pub http: Http,
    /// Bytes of the object that each request asks for.
    pub object: u32,
    /// Connections of the client at the same time, each with one request under way at most.
    pub connections: u32,
}

/// Errors that the client counted, by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HttpErrors {
    /// Connections that could not be opened.
    pub connect: u64,
    /// Connections that broke before the whole answer was read.
    pub read: u64,
    /// Connections that took no request.
    pub write: u64,
    /// Answers with a status of 400 or more. They are in `answered`, too.
    pub status: u64,
    /// Answers that took longer than 2 s. They are in `answered`, too.
    pub late: u64,
}

impl HttpErrors {
    /// Requests that have no answer because of an error, each with its place.
    fn unanswered(&self) -> [(&'static str, u64); 3] {
        [
            ("client: connections that could not be opened", self.connect),
            (
                "client: connections that broke before the answer",
                self.read,
            ),
            ("client: connections that took no request", self.write),
        ]
    }

    fn plus(self, more: HttpErrors) -> HttpErrors {
        HttpErrors {
            connect: self.connect + more.connect,
            read: self.read + more.read,
            write: self.write + more.write,
            status: self.status + more.status,
            late: self.late + more.late,
        }
    }
}

/// The server's counts, as the audit names them.
const REQUESTS: &str = "nginx: requests, less those that were not over when the client ended";
/// See [`REQUESTS`].
const CONNECTIONS: &str = "nginx: connections, less those that were not over when the client ended";

/// Times from a request to the last byte of its answer, by the client, in nanoseconds: p50, p90, p99, p99.9 and the longest.
pub type HttpTimes = [u64; 5];

/// HTTP in one trial. The client is wrk, the server nginx.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HttpTrial {
    /// Requests with an answer, by the client.
    pub answered: u64,
    /// Requests that the server counted, without those for its counters.
    pub served: u64,
    /// Connections that the server accepted, without those for its counters and the one by which the client looks whether there is a server.
    pub accepted: u64,
    /// Bytes of answers, with their headers, that the client read.
    pub read: u64,
    /// From the client's beginning to its end, in nanoseconds.
    pub took_ns: u64,
    /// Times from a request to the last byte of its answer, without TCP's handshake.
    pub answer_ns: HttpTimes,
    /// Errors that the client counted.
    pub errors: HttpErrors,
    /// Segments of TCP that the client's kernel and the server's sent again.
    pub again: [u64; 2],
}

impl HttpTrial {
    /// Requests that had no answer.
    pub fn failed(&self) -> u64 {
        self.losses().map(|loss| loss.frames).sum()
    }

    /// The places of those.
    pub fn losses(&self) -> impl Iterator<Item = Loss> {
        let lost = self.errors.unanswered().into_iter();
        lost.filter(|(_, requests)| *requests > 0)
            .map(|(place, frames)| Loss {
                place: place.into(),
                frames,
                side: Side::Dut,
                cause: Cause::Dropped,
            })
    }

    /// The server's counts beside the client's. Each connection has one request under way at most when the client ends, and when it breaks:
    /// the server may have counted those, and the client has no answer to them.
    pub fn second_counts(&self, of: &HttpOf) -> [SecondCount; 2] {
        let open = u64::from(of.connections) + self.failed();
        let (served, accepted) = (self.served, self.accepted);
        let connections = match of.http {
            Http::Close => self.answered,
            Http::KeepAlive => u64::from(of.connections),
        };
        let count = |place: &str, counted: u64, more: u64, expected: u64| SecondCount {
            place: place.into(),
            frames: expected.clamp(counted.saturating_sub(more), counted),
            expected,
        };
        // Between two requests of a connection that stays open nothing is opened.
        let more = match of.http {
            Http::Close => open,
            Http::KeepAlive => self.failed(),
        };
        [
            count(REQUESTS, served, open, self.answered),
            count(CONNECTIONS, accepted, more, connections),
        ]
    }

    /// Why the trial says nothing; `None` if it does.
    pub fn fault(&self, of: &HttpOf) -> Option<String> {
        if self.errors.status > 0 {
            Some(format!(
                "{} of {} answers were no object, but an error of the server (a status of 400 or more)",
                self.errors.status, self.answered
            ))
        } else if self.read < self.answered * u64::from(of.object) {
            Some(format!(
                "the client read {} bytes, fewer than {} objects of {} have: another server answers",
                self.read, self.answered, of.object
            ))
        } else {
            (self.answered == 0).then(|| "no request had an answer".into())
        }
    }
}

/// HTTP of a slot, over its valid trials. The times of its answers are those of the row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HttpRow {
    /// Bit/s of the objects, without any headers.
    pub payload: f64,
    /// Errors that the client counted.
    pub errors: HttpErrors,
    /// Segments that the client's kernel and the server's sent again.
    pub again: [u64; 2],
}

impl HttpRow {
    /// HTTP in these trials, with their rate in requests/s; `None` if there is none.
    pub fn of(slot: &Slot, valid: &[&TrialRecord], rate: f64) -> Option<HttpRow> {
        let of = slot.http.filter(|_| !valid.is_empty())?;
        let mut row = HttpRow {
            payload: rate * 8.0 * f64::from(of.object),
            ..HttpRow::default()
        };
        for trial in valid.iter().filter_map(|t| t.http.as_deref()) {
            row.errors = row.errors.plus(trial.errors);
            for (sum, again) in row.again.iter_mut().zip(trial.again) {
                *sum += again;
            }
        }
        Some(row)
    }
}

/// Medians of the times from a request to the last byte of its answer; `None` without HTTP.
pub fn answer_times(slot: &Slot, valid: &[&TrialRecord]) -> Option<BTreeMap<String, u64>> {
    slot.http?;
    let all: Vec<&HttpTrial> = valid.iter().filter_map(|t| t.http.as_deref()).collect();
    let names = ["p50", "p90", "p99", "p99.9", "max"]
        .into_iter()
        .enumerate();
    let middle = |(at, name): (usize, &str)| {
        let times: Vec<f64> = all.iter().map(|of| of.answer_ns[at] as f64).collect();
        Some((name.into(), median(&times)? as u64))
    };
    Some(names.filter_map(middle).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const OF: HttpOf = HttpOf {
        http: Http::Close,
        object: 1024,
        connections: 8,
    };

    fn trial() -> HttpTrial {
        HttpTrial {
            answered: 1000,
            served: 1007,
            accepted: 1008,
            read: 1000 * 1200,
            ..HttpTrial::default()
        }
    }

    fn agree(trial: HttpTrial, of: HttpOf) -> [bool; 2] {
        let counts = trial.second_counts(&of);
        counts.map(|count| count.frames == count.expected)
    }

    #[test]
    fn a_server_counts_what_is_under_way_and_no_more() {
        assert_eq!(agree(trial(), OF), [true, true]);
        let with = |served, accepted| HttpTrial {
            served,
            accepted,
            ..trial()
        };
        assert_eq!(agree(with(1009, 1000), OF), [false, true]);
        assert_eq!(agree(with(999, 1009), OF), [false, false]);
        assert_eq!(agree(with(1000, 999), OF), [true, false]);
        // A connection that broke had a request, which the server may have counted.
        let errors = HttpErrors {
            read: 1,
            ..HttpErrors::default()
        };
        let broken = HttpTrial {
            errors,
            ..with(1009, 1009)
        };
        assert_eq!(agree(broken, OF), [true, true]);
        assert_eq!(broken.failed(), 1);
        let kept = HttpOf {
            http: Http::KeepAlive,
            ..OF
        };
        assert_eq!(agree(with(1008, 8), kept), [true, true]);
        assert_eq!(agree(with(1008, 9), kept), [true, false]);
    }

    #[test]
    fn answers_that_are_no_object_say_nothing() {
        assert_eq!(trial().fault(&OF), None);
        let errors = HttpErrors {
            status: 1000,
            ..HttpErrors::default()
        };
        let said = |trial: HttpTrial| trial.fault(&OF).unwrap();
        assert!(said(HttpTrial { errors, ..trial() }).starts_with("1000 of 1000 answers"));
        assert!(said(HttpTrial { read: 9, ..trial() }).contains("another server"));
        assert_eq!(said(HttpTrial::default()), "no request had an answer");
    }

    #[test]
    fn a_row_has_medians_and_sums() {
        let of = |p50, read| {
            let http = HttpTrial {
                answer_ns: [p50, 0, 0, 0, 9],
                errors: HttpErrors {
                    read,
                    ..HttpErrors::default()
                },
                again: [1, 2],
                ..trial()
            };
            TrialRecord {
                http: Some(Box::new(http)),
                ..TrialRecord::default()
            }
        };
        let trials = [of(10, 1), of(30, 0), of(20, 2)];
        let valid: Vec<&TrialRecord> = trials.iter().collect();
        let mut slot = Slot::default();
        assert_eq!(HttpRow::of(&slot, &valid, 1.0), None);
        assert_eq!(answer_times(&slot, &valid), None);
        slot.http = Some(OF);
        let row = HttpRow::of(&slot, &valid, 100.0).unwrap();
        assert_eq!((row.errors.read, row.again), (3, [3, 6]));
        assert!((row.payload - 100.0 * 8.0 * 1024.0).abs() < 1e-6);
        let times = answer_times(&slot, &valid).unwrap();
        assert_eq!((times["p50"], times["max"]), (20, 9));
    }
}
