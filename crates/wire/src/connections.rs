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

/// Connections to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectionSpec {
    /// The frames of each.
    pub exchange: Exchange,
    /// Bytes of payload of the client's request; 0: none.
    pub request: u16,
    /// Bytes of payload of the server's answer.
    pub object: u16,
}

/// Stages of a connection: the frame that arrived at one of both ends.
pub const STAGES: usize = 6;

/// The largest payload of a segment without options that fits an MTU of 1500 in IPv6 as well.
pub const LARGEST_OBJECT: u16 = 1440;
/// Bytes of payload that fill the shortest frame of TCP in IPv4: `GET /` and a line's end.
pub const SHORTEST_OBJECT: u16 = 6;
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
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
                object: 100
            }
        );
    }
}
