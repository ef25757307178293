//! The controller's path to this host: test traffic must never be sent there, whatever the options.
//!
//! sshd sets it in SSH_CONNECTION. sudo removes that from the environment, so those of the parent processes are read as well.

use crate::error::Error;
use crate::net::netlink::Route;
use crate::net::{Netns, guard};
use std::fs;
use std::net::IpAddr;

/// Both ends of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Connection {
    /// The controller's address.
    pub client: IpAddr,
    /// Ours.
    pub server: IpAddr,
}

/// Processes between the session's first and this one: shells, sudo, su, env, timeout, ...
const MOST_ANCESTORS: usize = 32;
/// Most bytes read of a process's environment.
const MOST_ENVIRONMENT: usize = 1 << 20;

impl Connection {
    /// Reads `client port server port`.
    pub fn parse(text: &str) -> Option<Connection> {
        let mut words = text.split_ascii_whitespace();
        let mut address = || {
            // fe80::1%eth0
            let word = words.next()?.split('%').next()?;
            words.next()?.parse::<u16>().ok()?;
            Some(word.parse::<IpAddr>().ok()?.to_canonical())
        };
        Some(Connection { client: address()?, server: address()? })
    }

    /// The connection that this process was started over.
    pub fn of_this_process() -> Option<Connection> {
        let own = std::env::var("SSH_CONNECTION").ok();
        own.as_deref().and_then(Connection::parse).or_else(|| {
            let mut pid = std::process::id();
            (0..MOST_ANCESTORS).find_map(|_| {
                pid = parent(pid).filter(|parent| *parent > 1)?;
                of_environment(&fs::read(format!("/proc/{pid}/environ")).ok()?)
            })
        })
    }

    /// Whether the connection uses an interface, or a link that it is connected with.
    ///
    /// # Errors
    /// The kernel does not answer.
    pub fn uses(&self, namespace: &Netns, interface: &str) -> Result<bool, Error> {
        let route = Route::open(namespace)?;
        let group = guard::connected(&route.links()?, route.link(interface)?.index);
        let ours =
            route.addresses()?.iter().any(|(index, ip, _)| *ip == self.server && group.contains(index));
        // The answers may leave by another link than the questions come in by.
        Ok(ours || route.link_towards(self.client).is_some_and(|index| group.contains(&index)))
    }
}

fn of_environment(environment: &[u8]) -> Option<Connection> {
    let environment = &environment[..environment.len().min(MOST_ENVIRONMENT)];
    let mut variables = environment.split(|byte| *byte == 0);
    let value = variables.find_map(|variable| variable.strip_prefix(b"SSH_CONNECTION="))?;
    Connection::parse(std::str::from_utf8(value).ok()?)
}

fn parent(pid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_sshd_says_is_read() {
        let connection = |client: &str, server: &str| {
            Some(Connection { client: client.parse().unwrap(), server: server.parse().unwrap() })
        };
        assert_eq!(Connection::parse("192.0.2.7 50122 192.0.2.1 22"), connection("192.0.2.7", "192.0.2.1"));
        assert_eq!(Connection::parse("fe80::2%eth0 1 fe80::1%eth0 22"), connection("fe80::2", "fe80::1"));
        assert_eq!(
            Connection::parse("::ffff:192.0.2.7 1 ::ffff:192.0.2.1 2"),
            connection("192.0.2.7", "192.0.2.1")
        );
        for wrong in
            ["", "192.0.2.7", "192.0.2.7 1 x 2", "192.0.2.7 99999 192.0.2.1 22", "UNKNOWN 1 UNKNOWN 2"]
        {
            assert_eq!(Connection::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn it_is_found_in_an_environment() {
        let environment = b"HOME=/\0SSH_CONNECTION=192.0.2.7 1 192.0.2.1 22\0X=\xff\0";
        assert!(of_environment(environment).is_some());
        assert_eq!(of_environment(b"XSSH_CONNECTION=192.0.2.7 1 192.0.2.1 22\0"), None);
        assert!(parent(std::process::id()).is_some());
    }
}
