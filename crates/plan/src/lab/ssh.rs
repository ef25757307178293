//! How commands get to a host: by ssh to `user@host:port` or a name that its configuration knows, or into a network namespace.

use crate::diagnostic::Diagnostic;
use std::fmt;
use std::net::Ipv6Addr;
use std::str::FromStr;

/// Characters of a user or a host at most: no name is longer (RFC 1035 has 255).
const LONGEST: usize = 255;

/// How commands get to a host.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Reach {
    Ssh(Ssh),
    /// Into the network namespace of this machine that `ip netns` knows by this name.
    Namespace(String),
}

impl Default for Reach {
    fn default() -> Self {
        Reach::Ssh(Ssh::default())
    }
}

impl Reach {
    /// The destination of the ssh client; `None` for a namespace.
    pub fn ssh(&self) -> Option<&Ssh> {
        match self {
            Reach::Ssh(ssh) => Some(ssh),
            Reach::Namespace(_) => None,
        }
    }

    /// The command that a person would reach the host by.
    pub fn by_hand(&self) -> String {
        match self {
            Reach::Ssh(Ssh { user, host, port }) => {
                let user = user
                    .as_ref()
                    .map_or(String::new(), |user| format!("{user}@"));
                let port = port.map_or(String::new(), |port| format!("-p {port} "));
                format!("ssh {port}{user}{host}")
            }
            Reach::Namespace(name) => format!("ip netns exec {name}"),
        }
    }
}

impl fmt::Display for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reach::Ssh(ssh) => write!(f, "{ssh}"),
            Reach::Namespace(name) => write!(f, "namespace {name}"),
        }
    }
}

/// A destination of the ssh client.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Ssh {
    /// The user; the client's own choice where none is named.
    pub user: Option<String>,
    /// A name, an alias of the client's configuration, or an IP address.
    pub host: String,
    /// The port; the client's own choice where none is named.
    pub port: Option<u16>,
}

const NO_HOST: &str = "there is no host in it";
const NO_PORT: &str = "a port is a number from 1 to 65535";

/// The fault of a name that ssh would take for an option, or a shell for syntax.
fn no_name(what: &str) -> Diagnostic {
    Diagnostic::new(format!(
        "a {what} has letters, digits, '.', '-' and '_', and does not begin with '-'"
    ))
}

impl FromStr for Ssh {
    type Err = Diagnostic;

    fn from_str(text: &str) -> Result<Self, Diagnostic> {
        let text = text.trim();
        let text = text.strip_prefix("ssh://").unwrap_or(text);
        let (user, rest) = text
            .rsplit_once('@')
            .map_or((None, text), |(user, rest)| (Some(user), rest));
        let (host, port) = split(rest)?;
        if let Some(user) = user.filter(|user| !is_name(user)) {
            return Err(if user.is_empty() {
                Diagnostic::new(NO_HOST)
            } else {
                no_name("user")
            });
        }
        let number = |port: &str| port.parse().ok().filter(|n| *n > 0);
        let port = port
            .map(|port| number(port).ok_or(Diagnostic::new(NO_PORT)))
            .transpose()?;
        Ok(Ssh {
            user: user.map(String::from),
            host: host.to_string(),
            port,
        })
    }
}

/// Host and port. An IPv6 address stands in brackets, or alone.
fn split(text: &str) -> Result<(&str, Option<&str>), Diagnostic> {
    if let Some(rest) = text.strip_prefix('[') {
        let (host, rest) = rest.split_once(']').ok_or_else(|| no_name("host"))?;
        if !is_v6(host) {
            return Err(no_name("host"));
        }
        return match rest.strip_prefix(':') {
            Some(port) => Ok((host, Some(port))),
            None if rest.is_empty() => Ok((host, None)),
            None => Err(Diagnostic::new(NO_PORT)),
        };
    }
    if is_v6(text) {
        return Ok((text, None));
    }
    let (host, port) = text
        .split_once(':')
        .map_or((text, None), |(host, port)| (host, Some(port)));
    match host {
        "" => Err(Diagnostic::new(NO_HOST)),
        host if is_name(host) => Ok((host, port)),
        _ => Err(no_name("host")),
    }
}

/// An IPv6 address, with the interface of a link-local one: `fe80::1%em0`.
fn is_v6(text: &str) -> bool {
    let (address, zone) = text.split_once('%').unwrap_or((text, "lo0"));
    address.parse::<Ipv6Addr>().is_ok() && is_name(zone)
}

fn is_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    !name.is_empty() && name.len() <= LONGEST && !name.starts_with('-') && name.chars().all(allowed)
}

impl fmt::Display for Ssh {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(user) = &self.user {
            write!(f, "{user}@")?;
        }
        match self.port {
            Some(port) if self.host.contains(':') => write!(f, "[{}]:{port}", self.host),
            Some(port) => write!(f, "{}:{port}", self.host),
            None => f.write_str(&self.host),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn destinations() {
        let ssh = |user: Option<&str>, host: &str, port| {
            Ok(Ssh {
                user: user.map(String::from),
                host: host.into(),
                port,
            })
        };
        assert_eq!("sm1".parse(), ssh(None, "sm1", None));
        assert_eq!(
            "root@192.168.1.3:2222".parse(),
            ssh(Some("root"), "192.168.1.3", Some(2222))
        );
        assert_eq!(
            "ssh://root@apu2-2.lab".parse(),
            ssh(Some("root"), "apu2-2.lab", None)
        );
        assert_eq!(
            "root@[2001:db8::1]:22".parse(),
            ssh(Some("root"), "2001:db8::1", Some(22))
        );
        assert_eq!("2001:db8::1".parse(), ssh(None, "2001:db8::1", None));
        assert_eq!(
            "[fe80::1%em0]:22".parse(),
            ssh(None, "fe80::1%em0", Some(22))
        );
    }

    #[test]
    fn what_a_program_would_take_for_something_else() {
        let error = |text: &str| text.parse::<Ssh>().unwrap_err();
        assert_eq!(error("-oProxyCommand=reboot"), no_name("host"));
        assert_eq!(error("-l@host"), no_name("user"));
        assert_eq!(error("a b"), no_name("host"));
        assert_eq!(error("[fe80::1%;a]"), no_name("host"));
        assert_eq!(error("$(reboot)@host"), no_name("user"));
        assert_eq!(
            (error(""), error("root@"), error("@host")),
            (
                Diagnostic::new(NO_HOST),
                Diagnostic::new(NO_HOST),
                Diagnostic::new(NO_HOST)
            )
        );
        assert_eq!(
            (error("a:0"), error("a:ssh"), error("[::1]22")),
            (
                Diagnostic::new(NO_PORT),
                Diagnostic::new(NO_PORT),
                Diagnostic::new(NO_PORT)
            )
        );
    }

    proptest! {
        #[test]
        fn what_is_taken_reads_back_as_itself(text in "[a-z@:.\\[\\]0-9$ -]{0,24}") {
            if let Ok(ssh) = text.parse::<Ssh>() {
                prop_assert_eq!(ssh.to_string().parse::<Ssh>(), Ok(ssh));
            }
        }
    }
}
