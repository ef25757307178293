//! What can go wrong between here and a host, and what to do about it.

use std::fmt;
use std::time::Duration;

/// A host that could not be reached, was lost, or did not do what it was told.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{host}: {fault}{said}; {remedy}", said = in_brackets(.said), remedy = .fault.remedy())]
pub struct RemoteError {
    /// What the host is called.
    pub host: String,
    /// What is wrong.
    pub fault: Fault,
    /// What ssh or the host said.
    pub said: String,
}

/// What is wrong with a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// There is no ssh.
    NoClient,
    /// What stands for the host's address cannot be one.
    Address,
    /// The user's configuration of ssh is not accepted by ssh.
    Configuration,
    /// The host's name is not known.
    NotResolved,
    /// There is no way to the host.
    NoRoute,
    /// Nothing listens there.
    Refused,
    /// The host did not answer in time.
    TimedOut,
    /// The key of the host is not in known_hosts.
    UnknownKey,
    /// The key of the host is not the one in known_hosts.
    ChangedKey,
    /// The key of the host was revoked.
    RevokedKey,
    /// None of the user's keys was accepted.
    Authentication,
    /// The connection was made, but commands are not run as a Unix runs them.
    NoShell,
    /// The host ended the connection before it could be used.
    Closed,
    /// The connection ended in use.
    Lost,
    /// The host stopped answering.
    Silent(Duration),
    /// The host did not hear of linerate, and ended what it ran.
    Unheard(Duration),
    /// The ssh that holds the connection has ended on this side.
    MasterDead,
    /// The host takes no more sessions over the connection.
    Sessions,
    /// The command cannot be sent.
    Command,
    /// The system refused something on this side.
    System,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Fault::NoClient => "there is no ssh on this machine",
            Fault::Address => "this is no address",
            Fault::Configuration => "ssh does not accept its configuration",
            Fault::NotResolved => "the name has no address",
            Fault::NoRoute => "there is no way to the host",
            Fault::Refused => "the host refuses connections",
            Fault::TimedOut => "the host does not answer",
            Fault::UnknownKey => "the key of the host is not known",
            Fault::ChangedKey => "THE KEY OF THE HOST HAS CHANGED",
            Fault::RevokedKey => "the key of the host was revoked",
            Fault::Authentication => "the host accepts none of your keys",
            Fault::NoShell => "the host runs no commands",
            Fault::Closed => "the host closed the connection at once",
            Fault::Lost => "the connection was lost",
            Fault::Silent(after) => {
                return write!(f, "the host has not answered for {} s", after.as_secs_f64());
            }
            Fault::Unheard(after) => {
                let seconds = after.as_secs_f64();
                return write!(f, "the host did not hear of linerate for {seconds} s, and ended the command");
            }
            Fault::MasterDead => "the ssh process that held the connection was ended",
            Fault::Sessions => "the host takes no more sessions",
            Fault::Command => "this command cannot be sent",
            Fault::System => "ssh cannot be run",
        };
        f.write_str(text)
    }
}

impl Fault {
    /// What the user can do.
    pub fn remedy(&self) -> &'static str {
        match self {
            Fault::NoClient => "install OpenSSH (apt-get install openssh-client)",
            Fault::Address => "correct it in the lab file",
            Fault::Configuration => "correct the file that it names",
            Fault::NotResolved => {
                "correct the address in the lab file, or add the name to ~/.ssh/config or /etc/hosts"
            }
            Fault::NoRoute => "look at the management interface of this machine and its routes",
            Fault::Refused => "start sshd there, or correct the port",
            Fault::TimedOut => {
                "see whether it is up, its management link is connected, and logging in by hand is quick"
            }
            Fault::UnknownKey => {
                "log in once by hand with ssh and compare its fingerprint, or allow new keys to be accepted"
            }
            Fault::ChangedKey => {
                "find out why: another machine may answer at this address. If it was installed anew, remove the old key \
                 with ssh-keygen -R"
            }
            Fault::RevokedKey => "do not use this host before its owner has given it a new key",
            Fault::Authentication => {
                "add your public key to its authorized_keys, or load it with ssh-add: passwords are not asked for"
            }
            Fault::NoShell => {
                "the user's login shell must be able to run /bin/sh, and print nothing but text"
            }
            Fault::Closed => {
                "look into the log of its sshd: MaxStartups, AllowUsers or a full disk may be the reason"
            }
            Fault::Lost => "look at its power, console and management link",
            Fault::Silent(_) => {
                "look at its power, console and management link; a host whose sshd starves under load needs a longer silence"
            }
            Fault::Unheard(_) => {
                "look at its management link; a host whose sshd starves under load needs a longer silence"
            }
            Fault::MasterDead => "let the ssh processes that linerate starts run until it has ended",
            Fault::Sessions => {
                "raise MaxSessions in its sshd_config (ssh needs 2 at least), or run fewer steps in the background"
            }
            Fault::Command => "put it into a file on the host",
            Fault::System => "see what the system says",
        }
    }
}

impl RemoteError {
    /// An error of a host. What it said may be anything: a terminal gets no orders from it.
    pub fn new(host: &str, fault: Fault, said: impl Into<String>) -> RemoteError {
        let plain = |c: char| if c.is_control() && c != '\n' { '?' } else { c };
        RemoteError { host: host.to_owned(), fault, said: said.into().chars().map(plain).collect() }
    }

    /// No room for a session, and none could be made because of this.
    pub(super) fn no_more_sessions(&self) -> RemoteError {
        let said = format!("of a further connection: {}{}", self.fault, in_brackets(&self.said));
        RemoteError::new(&self.host, Fault::Sessions, said)
    }

    /// A call of the system that failed on this side.
    pub(crate) fn system(host: &str, what: &str, error: &std::io::Error) -> RemoteError {
        match error.kind() {
            std::io::ErrorKind::NotFound if what == "ssh" => RemoteError::new(host, Fault::NoClient, ""),
            _ => RemoteError::new(host, Fault::System, format!("{what}: {error}")),
        }
    }
}

/// What ssh says, in the order in which it is looked for: what comes first explains what comes later.
const SIGNS: [(&str, Fault); 26] = [
    ("REMOTE HOST IDENTIFICATION HAS CHANGED", Fault::ChangedKey),
    ("REVOKED HOST KEY DETECTED", Fault::RevokedKey),
    ("is revoked", Fault::RevokedKey),
    ("host key is known for", Fault::UnknownKey),
    ("Host key verification failed", Fault::UnknownKey),
    ("Bad configuration option", Fault::Configuration),
    ("terminating, ", Fault::Configuration),
    ("Bad owner or permissions on", Fault::Configuration),
    ("Can't open user config file", Fault::Configuration),
    ("Could not resolve hostname", Fault::NotResolved),
    ("Permission denied", Fault::Authentication),
    ("Too many authentication failures", Fault::Authentication),
    ("no mutual signature", Fault::Authentication),
    ("Connection refused", Fault::Refused),
    ("No route to host", Fault::NoRoute),
    ("Network is unreachable", Fault::NoRoute),
    ("not responding", Fault::Silent(Duration::ZERO)),
    ("timed out", Fault::TimedOut),
    ("session request failed", Fault::Sessions),
    ("Session open refused", Fault::Sessions),
    ("kex_exchange_identification", Fault::Closed),
    ("banner exchange", Fault::Closed),
    ("Connection reset by", Fault::Closed),
    ("closed by remote host", Fault::Closed),
    ("Connection closed by", Fault::Closed),
    ("Broken pipe", Fault::Closed),
];

/// What the words of ssh mean. `used`: the connection had been in use.
pub(super) fn classify(host: &str, said: &str, used: bool, silence: Duration) -> RemoteError {
    let fault = SIGNS.iter().find(|(sign, _)| said.contains(sign)).map(|(_, fault)| *fault);
    let fault = match (fault, used) {
        (Some(Fault::Silent(_)), _) => Fault::Silent(silence),
        (Some(Fault::TimedOut | Fault::Closed | Fault::NoRoute) | None, true) => Fault::Lost,
        (Some(fault), _) => fault,
        (None, false) => Fault::Closed,
    };
    RemoteError::new(host, fault, telling(said, fault))
}

/// The lines that a user should see.
fn telling(said: &str, fault: Fault) -> String {
    let ornament = |line: &&str| !line.is_empty() && !line.starts_with("@@@");
    let lines = said.lines().map(str::trim).filter(ornament);
    let wanted = |line: &&str| match fault {
        // ssh explains at length what an attack is; which key, and where the old one stands, is what helps.
        Fault::ChangedKey => line.starts_with("SHA256:") || line.starts_with("Offending"),
        _ => true,
    };
    let lines: Vec<&str> = lines.filter(wanted).take(4).collect();
    lines.join("; ").chars().take(400).collect()
}

fn in_brackets(said: &str) -> String {
    if said.is_empty() { String::new() } else { format!(" ({said})") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(said: &str, used: bool) -> Fault {
        classify("r1", said, used, Duration::from_secs(3)).fault
    }

    #[test]
    fn the_words_of_ssh_are_understood() {
        let unknown = "No ED25519 host key is known for 198.18.0.2 and you have requested strict checking.\r\nHost key verification failed.\r\n";
        assert_eq!(fault(unknown, false), Fault::UnknownKey);
        assert_eq!(
            fault("ssh: Could not resolve hostname r1: Name or service not known", false),
            Fault::NotResolved
        );
        assert_eq!(
            fault("ssh: connect to host 198.18.0.2 port 22: Connection refused", false),
            Fault::Refused
        );
        assert_eq!(
            fault("ssh: connect to host 198.18.0.2 port 22: Connection timed out", false),
            Fault::TimedOut
        );
        assert_eq!(fault("root@198.18.0.2: Permission denied (publickey).", false), Fault::Authentication);
        assert_eq!(
            fault("Timeout, server 198.18.0.2 not responding.", true),
            Fault::Silent(Duration::from_secs(3))
        );
        assert_eq!(fault("client_loop: send disconnect: Broken pipe", true), Fault::Lost);
        assert_eq!(fault("Connection to 198.18.0.2 closed by remote host.", true), Fault::Lost);
        assert_eq!(
            fault("kex_exchange_identification: Connection closed by remote host", false),
            Fault::Closed
        );
        assert_eq!(fault("", true), Fault::Lost);
        assert_eq!(fault("", false), Fault::Closed);
    }

    #[test]
    fn a_host_s_words_are_no_orders_for_a_terminal() {
        let error = classify("r1", "\x1b[2Jgone\x07\r\n", true, Duration::ZERO);
        assert_eq!(error.said, "?[2Jgone?");
    }

    #[test]
    fn a_changed_key_says_which_and_where_the_old_one_stands() {
        let said = "@@@@@@@@@@@\r\n@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\r\n@@@@@@@@@@@\r\n\
            IT IS POSSIBLE THAT SOMEONE IS DOING SOMETHING NASTY!\r\nThe fingerprint for the ED25519 key sent by the remote host is\n\
            SHA256:abc.\r\nOffending ED25519 key in /root/.ssh/known_hosts:3\r\nHost key verification failed.\r\n";
        let error = classify("r1", said, false, Duration::ZERO);
        assert_eq!(error.fault, Fault::ChangedKey);
        let text = error.to_string();
        assert!(text.starts_with(
            "r1: THE KEY OF THE HOST HAS CHANGED (SHA256:abc.; Offending ED25519 key in /root/.ssh/known_hosts:3); "
        ));
        assert!(text.contains("ssh-keygen -R"), "{text}");
    }
}
