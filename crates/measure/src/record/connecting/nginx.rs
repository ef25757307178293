//! Connections that nginx answered: its own counts beside those of the tester's programs.

use crate::audit::SecondCount;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// nginx's counts of the connections that it answered, and what the client's program read of its answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ByNginx {
    /// Requests that nginx counted, without those for its counters.
    pub requests: u64,
    /// Connections that it accepted, without those for its counters.
    pub accepted: u64,
    /// Connections that the server's kernel dropped, because nginx had not accepted those before (`ListenDrops`).
    pub dropped: u64,
    /// Bytes of answers, with their headers, that the client's program read.
    pub read: u64,
    /// Answers with another status than 200.
    pub refused: u64,
}

impl ByNginx {
    /// Together with what the client's program read.
    #[must_use]
    pub fn with(self, ByNginx { read, refused, .. }: ByNginx) -> ByNginx {
        ByNginx {
            read,
            refused,
            ..self
        }
    }

    /// nginx's counts beside those of the requests that arrived at its interface: none may differ.
    pub fn second_counts(&self, arrived: u64) -> [SecondCount; 2] {
        [
            ("nginx: requests, of those that arrived", self.requests),
            (
                "nginx: connections, of those whose request arrived",
                self.accepted,
            ),
        ]
        .map(|(place, frames)| SecondCount {
            place: place.into(),
            frames,
            expected: arrived,
        })
    }

    /// Why so many answers, each of which should have so many bytes or more, say nothing; `None` if they do.
    pub fn fault(&self, answered: u64, object: u16) -> Option<String> {
        let ByNginx {
            dropped,
            read,
            refused,
            ..
        } = *self;
        if dropped > 0 {
            Some(format!(
                "the server's kernel dropped {dropped} connections that nginx was too slow to accept (ListenDrops): use a lower --rate, or other CPUs"
            ))
        } else if refused > 0 {
            Some(format!(
                "{refused} of {answered} answers were no object, but an error of the server (another status than 200)"
            ))
        } else {
            (read < answered * u64::from(object)).then(|| {
                format!(
                    "the client read {read} bytes, fewer than {answered} objects of {object} have: another server answers"
                )
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OF: ByNginx = ByNginx {
        requests: 97,
        accepted: 97,
        dropped: 0,
        read: 96 * 300,
        refused: 0,
    };

    #[test]
    fn nginx_counts_each_request_that_arrived() {
        let agree = |of: ByNginx| {
            of.second_counts(97)
                .map(|count| count.frames == count.expected)
        };
        assert_eq!(agree(OF), [true, true]);
        assert_eq!(agree(ByNginx { requests: 96, ..OF }), [false, true]);
        assert_eq!(agree(ByNginx { accepted: 98, ..OF }), [true, false]);
    }

    #[test]
    fn answers_that_are_no_object_say_nothing() {
        let said = |of: ByNginx| of.fault(96, 250).unwrap_or_default();
        assert_eq!(said(OF), "");
        assert!(said(ByNginx { refused: 96, ..OF }).starts_with("96 of 96 answers"));
        assert!(said(ByNginx { read: 9, ..OF }).contains("another server"));
        assert!(said(ByNginx { dropped: 1, ..OF }).contains("ListenDrops"));
    }
}
