//! ping(8): a few frames from an address of a host to another's, and the replies.

use super::detect::Kernel;
use super::text::{bounded, lines, shown};
use std::net::IpAddr;

/// Frames of one ping: more than the ARP requests of a ping without answer and than the frames that systems and switches send on
/// their own meanwhile, so that counters distinguish them.
pub const FRAMES: u32 = 10;

/// The result of a ping.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Replies {
    /// Frames that were sent, and those that were answered; `None` where ping did not come so far.
    pub count: Option<(u32, u32)>,
    /// Last line of ping's output.
    pub said: String,
}

/// The command: [`FRAMES`] frames within half a second, from this address. It changes nothing but who is known by ARP.
pub fn argv(kernel: Kernel, source: IpAddr, to: IpAddr) -> Vec<String> {
    let six = to.is_ipv6();
    // Linux' and OpenBSD's ping knows both; the others' ping6 is older than their ping -6.
    let (program, from): (&str, &[&str]) = match kernel {
        Kernel::Linux => ("ping", &["-W", "1", "-I"]),
        Kernel::OpenBsd if six => ("ping6", &["-w", "1", "-I"]),
        Kernel::OpenBsd | Kernel::NetBsd if !six => ("ping", &["-w", "2", "-I"]),
        Kernel::FreeBsd if !six => ("ping", &["-t", "2", "-S"]),
        _ => ("ping6", &["-S"]),
    };
    let count = FRAMES.to_string();
    // Complaints of ping are part of its output.
    let script = [
        "sh",
        "-c",
        "exec \"$@\" 2>&1",
        "linerate",
        program,
        "-n",
        "-c",
        &count,
        "-i",
        "0.05",
    ];
    let words = script.iter().chain(from).map(|w| (*w).to_string());
    words.chain([source.to_string(), to.to_string()]).collect()
}

/// Replies by ping's output: `5 packets transmitted, 5 received, 0% packet loss`, `5 packets transmitted, 5 packets received, ...`.
pub fn replies(output: &[u8]) -> Replies {
    let text = bounded(output);
    let first = |part: &str| part.split_ascii_whitespace().next()?.parse::<u32>().ok();
    let count = lines(&text)
        .filter(|line| line.contains("packets transmitted"))
        .find_map(|line| {
            let mut parts = line.split(", ");
            Some((
                first(parts.next()?)?,
                first(parts.find(|part| part.contains("received"))?)?,
            ))
        });
    let ornament = |line: &&str| {
        let heading = ["---", "PING"].iter().any(|words| line.starts_with(words));
        line.is_empty() || heading || line.contains("packets transmitted")
    };
    let said = lines(&text)
        .map(str::trim)
        .filter(|line| !ornament(line))
        .last()
        .map(shown)
        .unwrap_or_default();
    Replies { count, said }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ping_says() {
        let linux = "PING 198.18.0.2 (198.18.0.2) from 198.18.0.1 : 56(84) bytes of data.\n\
            64 bytes from 198.18.0.2: icmp_seq=1 ttl=64 time=0.05 ms\n\n--- 198.18.0.2 ping statistics ---\n\
            5 packets transmitted, 4 received, 20% packet loss, time 408ms\n";
        assert_eq!(replies(linux.as_bytes()).count, Some((5, 4)));
        let lost = "From 198.18.0.1 icmp_seq=1 Destination Host Unreachable\n\n--- 198.18.0.9 ping statistics ---\n\
            5 packets transmitted, 0 received, +5 errors, 100% packet loss, time 3059ms\n";
        let lost = replies(lost.as_bytes());
        assert_eq!(
            (lost.count, lost.said.as_str()),
            (
                Some((5, 0)),
                "From 198.18.0.1 icmp_seq=1 Destination Host Unreachable"
            )
        );
        let freebsd = "PING 198.18.0.2 (198.18.0.2) from 198.18.0.1: 56 data bytes\n--- 198.18.0.2 ping statistics ---\n\
            5 packets transmitted, 0 packets received, 100.0% packet loss\n";
        assert_eq!(replies(freebsd.as_bytes()).count, Some((5, 0)));
        let refused = replies(b"ping: sendto: No route to host\n");
        assert_eq!(
            (refused.count, refused.said.as_str()),
            (None, "ping: sendto: No route to host")
        );
        assert_eq!(
            replies(b"\xff, packets transmitted, x received"),
            Replies::default()
        );
    }

    #[test]
    fn each_system_has_its_words() {
        let words = |kernel, to: &str| {
            let source = if to.contains(':') {
                "2001:2::1"
            } else {
                "198.18.0.1"
            };
            argv(kernel, source.parse().unwrap(), to.parse().unwrap())[4..].join(" ")
        };
        assert_eq!(
            words(Kernel::Linux, "2001:2::2"),
            "ping -n -c 10 -i 0.05 -W 1 -I 2001:2::1 2001:2::2"
        );
        assert_eq!(
            words(Kernel::FreeBsd, "198.18.0.2"),
            "ping -n -c 10 -i 0.05 -t 2 -S 198.18.0.1 198.18.0.2"
        );
        assert_eq!(
            words(Kernel::FreeBsd, "2001:2::2"),
            "ping6 -n -c 10 -i 0.05 -S 2001:2::1 2001:2::2"
        );
        assert_eq!(
            words(Kernel::NetBsd, "2001:2::2"),
            "ping6 -n -c 10 -i 0.05 -S 2001:2::1 2001:2::2"
        );
        assert_eq!(
            words(Kernel::OpenBsd, "198.18.0.2"),
            "ping -n -c 10 -i 0.05 -w 2 -I 198.18.0.1 198.18.0.2"
        );
    }
}
