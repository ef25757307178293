//! Errors between this machine and a host, with remedies.

use linerate_hosts::words::unless_empty;
use std::fmt;
use std::time::Duration;

/// Becomes true when the user wants to stop.
pub type Interrupt<'a> = Option<&'a std::sync::atomic::AtomicBool>;

/// Result of an action on a host, or why it failed.
pub type Result<T, E = RemoteError> = std::result::Result<T, E>;

/// A host that could not be reached, was lost, or did not do as requested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteError {
    pub host: String,
    pub fault: Fault,
    /// The words of ssh or the host; for a fault without a sentence of its own, the whole sentence.
    pub said: String,
}

/// A fault of a connection, of a change of a host, or of a device under test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    NoClient,
    Address,
    /// A network namespace of this machine that cannot be entered.
    Namespace,
    /// ssh does not accept the user's configuration.
    Configuration,
    NotResolved,
    NoRoute,
    /// Nothing listens there.
    Refused,
    TimedOut,
    UnknownKey,
    ChangedKey,
    RevokedKey,
    /// The host accepted none of the user's keys.
    Authentication,
    /// The connection was made, but commands are not run as a Unix runs them.
    NoShell,
    /// The host ended the connection before it could be used.
    Closed,
    /// The connection ended in use.
    Lost,
    /// The host stopped answering.
    Silent(Duration),
    /// The host got no message from linerate, and ended its commands.
    Unheard(Duration),
    /// The ssh that holds the connection has ended on this side.
    MasterDead,
    /// The host takes no more sessions over the connection.
    Sessions,
    /// The command cannot be sent.
    Command,
    /// A system call failed on this side.
    System,
    /// The journal of a host's changes cannot be used.
    Journal,
    /// Another linerate changes this host.
    Busy,
    /// The journal is about another machine.
    AnotherMachine,
    /// A file of this machine cannot be read, or has changed.
    Here,
    /// A program of a change ended by itself and failed: the change is not made, and will not be.
    Failed,
    /// A program of a change did not end by itself: the change may still be made.
    Unended,
    /// The value is not in the output of the program that should print it.
    Unread,
    /// The program of a change ended well, and the setting has another value.
    Untaken,
    /// A change will be undone when something happens there.
    Later,
    /// Some changes could not be undone.
    NotUndone,
    /// Some changes could not be undone, for want of a connection or because nothing ends there any more: they can be once the
    /// host is back.
    NotUndoneYet,
    /// The DUT does not report counters of its interfaces.
    Uncounted,
    /// The DUT got the order to reboot and does not go down.
    StillUp,
    /// The DUT did not come back.
    Gone,
    /// The DUT is back and reaches nothing.
    Unreaching,
    /// Restored settings take effect only from the next boot on, and the plan allows no boot.
    Owed,
    /// The DUT booted by itself.
    Booted,
    Interrupted,
    /// A host that sends or counts failed to do so.
    Tester,
}

/// The variants of a plan that can still be measured after an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// The other variants: this one cannot be set up.
    Others,
    /// The other variants, once the host is back: with this one it does not come back.
    OthersOnceBack,
    /// All variants, once the host is back.
    AllOnceBack,
    Nothing,
}

impl Fault {
    /// The fault in words, and the remedy; empty where the error's own sentence has them.
    fn texts(self) -> (&'static str, &'static str) {
        use Fault::*;
        match self {
            NoClient => (
                "there is no ssh on this machine",
                "install OpenSSH (apt-get install openssh-client)",
            ),
            Address => ("this is no address", "correct it"),
            Namespace => (
                "its network namespace cannot be entered",
                "see `ip netns list`, and run linerate as root",
            ),
            Configuration => (
                "ssh does not accept its configuration",
                "correct the file that it names",
            ),
            NotResolved => (
                "the name has no address",
                "correct the name, or add it to ~/.ssh/config or /etc/hosts",
            ),
            NoRoute => (
                "there is no way to the host",
                "look at the management interface of this machine and its routes",
            ),
            Refused => (
                "the host refuses connections",
                "start sshd there, or correct the port",
            ),
            TimedOut => (
                "the host does not answer",
                "see whether it is up, its management link is connected, and logging in by hand is quick",
            ),
            UnknownKey => (
                "the key of the host is not known",
                "log in once by hand with ssh and compare its fingerprint, or allow new keys to be accepted",
            ),
            ChangedKey => (
                "THE KEY OF THE HOST HAS CHANGED",
                "find out why: another machine may answer at this address. If it was installed anew, remove the old key \
                 with ssh-keygen -R",
            ),
            RevokedKey => (
                "the key of the host was revoked",
                "do not use this host before its owner has given it a new key",
            ),
            Authentication => (
                "the host accepts none of your keys",
                "add your public key to its authorized_keys, or load it with ssh-add: passwords are not asked for",
            ),
            NoShell => (
                "the host runs no commands",
                "the user's login shell must be able to run /bin/sh, and print nothing but text",
            ),
            Closed => (
                "the host closed the connection at once",
                "look into the log of its sshd: MaxStartups, AllowUsers or a full disk may be the reason",
            ),
            Lost => (
                "the connection was lost",
                "look at its power, console and management link",
            ),
            Silent(_) => (
                "the host has not answered for",
                "look at its power, console and management link; a host whose sshd gets no CPU under load needs a longer silence (in the lab file)",
            ),
            Unheard(_) => (
                "the host did not hear of linerate for",
                "it ended the command: look at its management link; a host whose sshd gets no CPU under load needs a longer silence (in the lab file)",
            ),
            MasterDead => (
                "the ssh process that held the connection was ended",
                "let the ssh processes that linerate starts run until it has ended",
            ),
            Sessions => (
                "the host takes no more sessions",
                "raise MaxSessions in its sshd_config (ssh needs 2 at least), or run fewer steps in the background",
            ),
            of_use => of_use.texts_of_use(),
        }
    }

    /// Texts of faults that a connected host has.
    fn texts_of_use(self) -> (&'static str, &'static str) {
        use Fault::*;
        match self {
            Command => (
                "this command cannot be sent",
                "put it into a file on the host",
            ),
            System => ("ssh cannot be run", "see what the system says"),
            Busy => (
                "another linerate has changed it and is still running",
                "wait for it, or use another host",
            ),
            NotUndone | NotUndoneYet => (
                "",
                "whatever runs a plan on this host next tries again; a reboot of the host settles what does not outlive \
                 one; delete the lines of settings that you put back by hand",
            ),
            Owed => (
                "settings that were put back there count from its next boot on only, and this plan allows no boot",
                "reboot it by hand, or add reboot = \"when-needed\" to [trials]",
            ),
            Booted => (
                "it booted in the middle of a campaign, and is not as it was set up any more",
                "look at its console and its logs, then let the campaign go on (--resume)",
            ),
            Unreaching => ("", "see its interfaces, addresses and routes after a boot"),
            StillUp => ("", "try `reboot` there by hand"),
            Uncounted => (
                "",
                "no frame could be accounted for: see whether netstat -i (Linux: /proc/net/dev) has them there",
            ),
            AnotherMachine => (
                "",
                "put that machine back, or delete the file if it is gone",
            ),
            Interrupted => ("interrupted while it was being set up", ""),
            _ => ("", ""),
        }
    }

    /// A remedy for the user.
    pub fn remedy(self) -> &'static str {
        self.texts().1
    }

    /// Waiting longer changes nothing about these.
    pub(crate) fn is_final(self) -> bool {
        use Fault::{
            Address, ChangedKey, Configuration, Namespace, NoClient, RevokedKey, UnknownKey,
        };
        matches!(
            self,
            ChangedKey | UnknownKey | RevokedKey | NoClient | Address | Namespace | Configuration
        )
    }

    /// The variants that can still be measured with this DUT.
    pub fn left(self) -> Left {
        match self {
            Fault::Failed
            | Fault::Unended
            | Fault::Unread
            | Fault::Untaken
            | Fault::Later
            | Fault::Here => Left::Others,
            Fault::Unreaching | Fault::Uncounted => Left::Others,
            Fault::StillUp | Fault::Gone => Left::OthersOnceBack,
            Fault::NotUndone | Fault::Journal | Fault::Busy | Fault::AnotherMachine => {
                Left::Nothing
            }
            Fault::Owed | Fault::Interrupted => Left::Nothing,
            // A connection can be made again, unless it is another host that answers.
            connection if connection.is_final() => Left::Nothing,
            _ => Left::AllOnceBack,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.texts().0)?;
        match self {
            Fault::Silent(after) | Fault::Unheard(after) => write!(f, " {} s", after.as_secs_f64()),
            _ => Ok(()),
        }
    }
}

impl std::error::Error for RemoteError {}

impl fmt::Display for RemoteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RemoteError { host, fault, said } = self;
        match fault.texts() {
            ("", _) => write!(f, "{host}: {said}")?,
            _ => write!(f, "{host}: {fault}{}", in_brackets(said))?,
        }
        let remedy = fault.remedy();
        if remedy.is_empty() {
            Ok(())
        } else {
            write!(f, "; {remedy}")
        }
    }
}

impl RemoteError {
    /// An error of a host. Control characters in its words are replaced.
    pub fn new(host: &str, fault: Fault, said: impl Into<String>) -> RemoteError {
        let plain = |c: char| if c.is_control() && c != '\n' { '?' } else { c };
        RemoteError {
            host: host.to_owned(),
            fault,
            said: said.into().chars().map(plain).collect(),
        }
    }

    /// There is no room for a session, and this kept a further connection from being made.
    pub(super) fn no_more_sessions(&self) -> RemoteError {
        let said = format!(
            "of a further connection: {}{}",
            self.fault,
            in_brackets(&self.said)
        );
        RemoteError::new(&self.host, Fault::Sessions, said)
    }

    /// A call of the system that failed on this side.
    pub(crate) fn system(host: &str, what: &str, error: &std::io::Error) -> RemoteError {
        match error.kind() {
            std::io::ErrorKind::NotFound if what == "ssh" => {
                RemoteError::new(host, Fault::NoClient, "")
            }
            _ => RemoteError::new(host, Fault::System, format!("{what}: {error}")),
        }
    }
}

/// Faults with the messages of ssh that show them, `|` between them, in the order in which they are looked for: earlier ones explain
/// later ones.
const SIGNS: &[(Fault, &str)] = &[
    (Fault::ChangedKey, "REMOTE HOST IDENTIFICATION HAS CHANGED"),
    (Fault::RevokedKey, "REVOKED HOST KEY DETECTED|is revoked"),
    (
        Fault::UnknownKey,
        "host key is known for|Host key verification failed",
    ),
    (
        Fault::Configuration,
        "Bad configuration option|terminating, |\
         Bad owner or permissions on|Can't open user config file",
    ),
    (Fault::NotResolved, "Could not resolve hostname"),
    (
        Fault::Authentication,
        "Permission denied|Too many authentication failures|no mutual signature",
    ),
    (Fault::Refused, "Connection refused"),
    (Fault::NoRoute, "No route to host|Network is unreachable"),
    (Fault::Silent(Duration::ZERO), "not responding"),
    (Fault::TimedOut, "timed out"),
    (
        Fault::Sessions,
        "session request failed|Session open refused",
    ),
    (
        Fault::Closed,
        "kex_exchange_identification|banner exchange|Connection reset by|\
         closed by remote host|Connection closed by|Broken pipe",
    ),
];

/// The fault behind a message of ssh. `used`: the connection had been in use.
pub(super) fn classify(host: &str, said: &str, used: bool, silence: Duration) -> RemoteError {
    let shown = SIGNS
        .iter()
        .find(|(_, signs)| signs.split('|').any(|sign| said.contains(sign)));
    let fault = match (shown.map(|(fault, _)| *fault), used) {
        (Some(Fault::Silent(_)), _) => Fault::Silent(silence),
        (Some(Fault::TimedOut | Fault::Closed | Fault::NoRoute) | None, true) => Fault::Lost,
        (Some(fault), _) => fault,
        (None, false) => Fault::Closed,
    };
    RemoteError::new(host, fault, telling(said, fault))
}

/// The error of a session that could not be started.
pub(crate) fn not_started(host: &str, said: &str) -> RemoteError {
    let has = |line: &str, signs: &[&str]| signs.iter().any(|sign| line.contains(sign));
    let refused = ["session request failed", "open refused", "open failed"];
    if has(said, &refused) {
        return RemoteError::new(host, Fault::Sessions, "");
    }
    // How a session is kept from making a connection of its own is nothing that a user could do something about.
    let ours = [
        "/nonexistent",
        "kex_exchange_identification",
        "UNKNOWN port",
    ];
    let lines = said.lines().map(str::trim);
    let said: Vec<&str> = lines
        .filter(|line| !line.is_empty() && !has(line, &ours))
        .collect();
    RemoteError::new(host, Fault::NoShell, said.join("; "))
}

/// The lines that a user should see.
fn telling(said: &str, fault: Fault) -> String {
    let ornament = |line: &&str| !line.is_empty() && !line.starts_with("@@@");
    let lines = said.lines().map(str::trim).filter(ornament);
    let wanted = |line: &&str| match fault {
        // ssh explains at length what an attack is; useful are only the key, and the place of the old one.
        Fault::ChangedKey => line.starts_with("SHA256:") || line.starts_with("Offending"),
        _ => true,
    };
    let lines: Vec<&str> = lines.filter(wanted).take(4).collect();
    lines.join("; ").chars().take(400).collect()
}

/// Words in brackets; nothing where there are none.
pub(crate) fn in_brackets(said: &str) -> String {
    unless_empty(" (", said, ")")
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
            fault(
                "ssh: Could not resolve hostname r1: Name or service not known",
                false
            ),
            Fault::NotResolved
        );
        assert_eq!(
            fault(
                "ssh: connect to host 198.18.0.2 port 22: Connection refused",
                false
            ),
            Fault::Refused
        );
        assert_eq!(
            fault(
                "ssh: connect to host 198.18.0.2 port 22: Connection timed out",
                false
            ),
            Fault::TimedOut
        );
        assert_eq!(
            fault("root@198.18.0.2: Permission denied (publickey).", false),
            Fault::Authentication
        );
        assert_eq!(
            fault("Timeout, server 198.18.0.2 not responding.", true),
            Fault::Silent(Duration::from_secs(3))
        );
        assert_eq!(
            fault("client_loop: send disconnect: Broken pipe", true),
            Fault::Lost
        );
        assert_eq!(
            fault("Connection to 198.18.0.2 closed by remote host.", true),
            Fault::Lost
        );
        assert_eq!(
            fault(
                "kex_exchange_identification: Connection closed by remote host",
                false
            ),
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

    #[test]
    fn what_ssh_says_of_our_own_doing_is_not_told() {
        let ours = "/bin/bash: line 1: /nonexistent: No such file or directory\r\n\
                    kex_exchange_identification: Connection closed by remote host\r\n\
                    Connection closed by UNKNOWN port 65535\r\n";
        let refused = not_started(
            "r1",
            &format!(
                "mux_client_request_session: session request failed: Session open refused by peer\n{ours}"
            ),
        );
        assert_eq!(
            (refused.fault, refused.said.as_str()),
            (Fault::Sessions, "")
        );
        let shell = not_started(
            "r1",
            &format!("no home\r\n\r\n{ours}This account is not available.\n"),
        );
        assert_eq!(
            (shell.fault, shell.said.as_str()),
            (Fault::NoShell, "no home; This account is not available.")
        );
    }
}
