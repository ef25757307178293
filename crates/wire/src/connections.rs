//! Connections: which frames both ends exchange, and how far each connection came.

use serde::{Deserialize, Serialize};

/// The frames that a connection consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Exchange {
    /// SYN, SYN/ACK, ACK with the request, answer with FIN, FIN, ACK: six frames. The server closes first.
    Request,
    /// As `request`, but the client's ACK is bare, as kernels send it, and the server speaks first.
    Greeting,
    /// As `request`, but the client ends the connection with RST instead of FIN: five frames.
    Rst,
    /// A SYN that is never answered.
    Half,
    /// A datagram and its answer.
    Udp,
}

/// Who closes connections that are kept open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Close {
    /// The client sends FIN, the server answers with its FIN, and the client acknowledges it.
    Client,
    /// The client acknowledges the answer, which lets the server send FIN; the client answers with its FIN, and the server acknowledges it.
    Server,
    /// The client sends RST.
    Reset,
}

/// The program that answers connections.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ServedBy {
    /// The tester's own program.
    #[default]
    Tester,
    /// nginx, by the kernel's TCP.
    Nginx,
}

impl ServedBy {
    /// Whether a real server answers.
    pub fn is_nginx(self) -> bool {
        self == ServedBy::Nginx
    }

    fn is_tester(&self) -> bool {
        !self.is_nginx()
    }
}

/// Connections to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectionSpec {
    /// The frames of each.
    pub exchange: Exchange,
    /// Bytes of payload of the client's request; 0: none.
    pub request: u16,
    /// Bytes of payload of the server's answer.
    pub object: u16,
    /// Connections that are open at the same time: all of them are opened, then each carries a request and its answer, then all are
    /// closed. `None`: each is closed as soon as it has its answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open: Option<u32>,
    /// Who closes those that are kept open; `None`: the client, and the rate is that of opening them, not of closing them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub close: Option<Close>,
    /// Servers among which they are spread, a power of 2.
    #[serde(default = "all_servers", skip_serializing_if = "is_all_servers")]
    pub servers: u32,
    /// The program that answers them.
    #[serde(default, skip_serializing_if = "ServedBy::is_tester")]
    pub served_by: ServedBy,
    /// SYNs a second of a flood that comes with the connections; 0: none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub flood: u32,
    /// Illegal attempts in a million attempts, at most 900,000; 0: none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub illegal: u32,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

fn all_servers() -> u32 {
    SERVERS
}

fn is_all_servers(servers: &u32) -> bool {
    *servers == SERVERS
}

/// Stages of a connection at most: the frame that arrived at one of both ends.
pub const STAGES: usize = 9;

/// The frames of connections that are kept open, in their order.
const KEPT_OPEN: [&str; 8] = [
    "SYN",
    "SYN/ACK",
    "client's ACK",
    "request",
    "answer",
    "client's FIN",
    "server's FIN",
    "last ACK",
];

/// Of those that the server closes.
const CLOSED_BY_SERVER: [&str; STAGES] = [
    "SYN",
    "SYN/ACK",
    "client's ACK",
    "request",
    "answer",
    "ACK of the answer",
    "server's FIN",
    "client's FIN",
    "last ACK",
];

/// Of those that the client resets.
const RESET: [&str; 6] = ["SYN", "SYN/ACK", "client's ACK", "request", "answer", "RST"];

/// Stages of connections that are kept open: the frame with which one is open, and the frame that shows that it works.
pub const IS_OPEN: usize = 2;
/// See [`IS_OPEN`].
pub const HAS_ANSWER: usize = 4;

/// The largest payload of a segment without options that fits an MTU of 1500 in IPv6 as well.
pub const LARGEST_OBJECT: u16 = 1440;
/// Bytes of payload that fill the shortest frame of TCP in IPv4: `GET /` and a line's end.
pub const SHORTEST_OBJECT: u16 = 6;
/// Bytes of the request that nginx answers: `GET / HTTP/1.0` and two ends of lines.
pub const WEB_REQUEST: u16 = 18;
/// Bytes of payload with which a datagram carries the number of its connection.
pub const NUMBERED: u16 = 8;

/// The numbers of connections have so many bits, and so each load has at most so many connections.
pub const MOST_CONNECTIONS: u64 = 1 << 24;

/// Addresses of clients and of servers among which the connections are spread, and ports of each client.
pub const CLIENTS: u32 = 64;
/// See [`CLIENTS`].
pub const SERVERS: u32 = 16;
/// See [`CLIENTS`].
pub const CLIENT_PORTS: u32 = 16_384;

impl Exchange {
    /// The frames in their order, each with the end at which it arrives. The last one that arrives closes the connection.
    pub fn stages(self) -> &'static [&'static str] {
        match self {
            Exchange::Request => &[
                "SYN",
                "SYN/ACK",
                "request",
                "answer with FIN",
                "client's FIN",
                "last ACK",
            ],
            Exchange::Greeting => &[
                "SYN",
                "SYN/ACK",
                "client's ACK",
                "greeting with FIN",
                "client's FIN",
                "last ACK",
            ],
            Exchange::Rst => &["SYN", "SYN/ACK", "request", "answer with FIN", "RST"],
            Exchange::Half => &["SYN"],
            Exchange::Udp => &["request", "answer"],
        }
    }

    /// Whether the last frame arrives at the client, which then knows that the connection is closed.
    pub fn closes_at_client(self) -> bool {
        !matches!(self, Exchange::Rst | Exchange::Half)
    }

    /// Whether frames are TCP segments.
    pub fn is_tcp(self) -> bool {
        self != Exchange::Udp
    }
}

impl ConnectionSpec {
    /// Connections with these bytes of payload in the answer. The frames are the shortest that there are where it has 6 bytes or less.
    pub fn new(exchange: Exchange, object: u16) -> ConnectionSpec {
        let (request, object) = match exchange {
            Exchange::Request | Exchange::Rst => (SHORTEST_OBJECT, object),
            Exchange::Greeting => (0, object),
            Exchange::Half => (0, 0),
            Exchange::Udp => (NUMBERED, object.max(NUMBERED)),
        };
        ConnectionSpec {
            exchange,
            request,
            object,
            open: None,
            close: None,
            servers: SERVERS,
            served_by: ServedBy::Tester,
            flood: 0,
            illegal: 0,
        }
    }

    /// The connections with nginx as their server, which has one address. The object comes behind a header.
    #[must_use]
    pub fn by_nginx(self) -> ConnectionSpec {
        ConnectionSpec {
            request: WEB_REQUEST,
            servers: 1,
            served_by: ServedBy::Nginx,
            ..self
        }
    }

    /// Whether SYNs come with them that no server answers: a flood, or illegal attempts.
    pub fn has_strays(&self) -> bool {
        self.flood > 0 || self.illegal > 0
    }

    /// Illegal attempts for each connection.
    pub fn illegal_each(&self) -> f64 {
        f64::from(self.illegal) / f64::from(1_000_000 - self.illegal)
    }

    /// The frames in their order. The last one that arrives closes the connection.
    pub fn stages(&self) -> &'static [&'static str] {
        match self.open {
            Some(_) => match self.close {
                None | Some(Close::Client) => &KEPT_OPEN,
                Some(Close::Server) => &CLOSED_BY_SERVER,
                Some(Close::Reset) => &RESET,
            },
            None => self.exchange.stages(),
        }
    }

    /// Pairs of addresses and ports, each of which is used once in a trial.
    pub fn pairs(&self) -> u64 {
        pairs(self.servers)
    }
}

/// Pairs of addresses and ports that clients have with so many servers.
pub fn pairs(servers: u32) -> u64 {
    u64::from(CLIENTS) * u64::from(CLIENT_PORTS) * u64::from(servers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_servers_have_as_many_pairs_as_there_are_numbers() {
        assert_eq!(pairs(SERVERS), MOST_CONNECTIONS);
        let kept = ConnectionSpec {
            open: Some(1),
            ..ConnectionSpec::new(Exchange::Request, 6)
        };
        assert_eq!(kept.stages()[IS_OPEN], "client's ACK");
        for (close, stages) in [(Close::Client, 8), (Close::Server, 9), (Close::Reset, 6)] {
            let close = Some(close);
            let stages_of = ConnectionSpec { close, ..kept }.stages();
            assert_eq!(stages_of.len(), stages);
            assert_eq!(stages_of[..=HAS_ANSWER], kept.stages()[..=HAS_ANSWER]);
        }
        assert_eq!(kept.stages()[HAS_ANSWER], "answer");
    }

    #[test]
    fn datagrams_have_room_for_their_number() {
        assert_eq!(ConnectionSpec::new(Exchange::Udp, 1).object, 8);
        assert_eq!(
            ConnectionSpec::new(Exchange::Half, LARGEST_OBJECT).object,
            0
        );
        assert_eq!(
            ConnectionSpec::new(Exchange::Greeting, 100),
            ConnectionSpec {
                exchange: Exchange::Greeting,
                request: 0,
                object: 100,
                open: None,
                close: None,
                servers: SERVERS,
                served_by: ServedBy::Tester,
                flood: 0,
                illegal: 0
            }
        );
    }
}
