//! A host, and how it is reached.

use crate::{Fault, RemoteError, Result};
use linerate_plan::lab::Ssh;
use std::path::PathBuf;
use std::time::Duration;

/// A host that is reached by ssh, or a network namespace of this machine. The user's own configuration of ssh has the rest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The host's name in messages.
    pub name: String,
    /// Address, name, or alias in the configuration of ssh; `user@host` too.
    pub address: String,
    /// Whether the address is the name of a network namespace of this machine, which needs no ssh.
    pub namespace: bool,
    /// The user there.
    pub user: Option<String>,
    /// The port.
    pub port: Option<u16>,
    /// A configuration of ssh that is read instead of the user's.
    pub config: Option<PathBuf>,
    /// Whether the key of a host that is not known yet is accepted, and remembered. That of a host whose key has changed is not.
    pub accept_new: bool,
    /// How long it may take until the host can be given commands.
    pub connect_within: Duration,
    /// Most time of silence between the host and linerate before they take each other for lost. A load continues at most this
    /// long without linerate, so a second is right for a generator; a DUT whose sshd starves under load needs longer than a
    /// trial.
    pub silence: Duration,
}

impl Target {
    /// The host of this address, as the user has configured ssh for it.
    pub fn new(address: impl Into<String>) -> Target {
        let address = address.into();
        Target {
            name: address.clone(),
            address,
            namespace: false,
            user: None,
            port: None,
            config: None,
            accept_new: false,
            connect_within: Duration::from_secs(10),
            silence: Duration::from_secs(10),
        }
    }

    /// With a name for messages.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Target {
        self.name = name.into();
        self
    }

    /// An error of this host.
    pub(crate) fn error(&self, fault: Fault, said: impl Into<String>) -> RemoteError {
        RemoteError::new(&self.name, fault, said)
    }

    /// The arguments for ssh that make the connection, without the command.
    pub(super) fn arguments(&self) -> Result<Vec<String>> {
        self.check()?;
        let mut args = Vec::new();
        let mut option = |name: &str, value: String| args.extend([name.to_owned(), value]);
        self.config
            .iter()
            .for_each(|file| option("-F", file.display().to_string()));
        self.user.iter().for_each(|user| option("-l", user.clone()));
        self.port
            .iter()
            .for_each(|port| option("-p", port.to_string()));
        // Without an answer to three questions the host is lost.
        let alive = (self.silence.as_secs() / 3).max(1);
        let checking = if self.accept_new { "accept-new" } else { "yes" };
        for setting in [
            "BatchMode=yes",
            &format!("StrictHostKeyChecking={checking}"),
            &format!("ConnectTimeout={}", self.connect_within.as_secs().max(1)),
            &format!("ServerAliveInterval={alive}"),
            "ServerAliveCountMax=3",
            // Overrides settings of a user for work at a terminal.
            "ClearAllForwardings=yes",
            "ForwardX11=no",
            "ForwardAgent=no",
            "PermitLocalCommand=no",
            "RemoteCommand=none",
            "RequestTTY=no",
            "EscapeChar=none",
            "VisualHostKey=no",
            "UpdateHostKeys=no",
        ] {
            option("-o", setting.to_owned());
        }
        Ok(args)
    }

    /// Addresses come from files, and ssh hands them to the user's own commands (ProxyCommand, Match exec).
    fn check(&self) -> Result<()> {
        let harmless = |c: char| c.is_alphanumeric() || "._-:%@[]+,/".contains(c);
        let given = [Some(&self.address), self.user.as_ref()];
        let wrong = |text: &&String| {
            text.is_empty()
                || text.starts_with('-')
                || text.contains("@-")
                || !text.chars().all(harmless)
        };
        match given.into_iter().flatten().find(wrong) {
            None => Ok(()),
            Some(text) => Err(self.error(Fault::Address, format!("{text:?}"))),
        }
    }
}

/// A destination that a lab file or an argument names.
impl From<&Ssh> for Target {
    fn from(ssh: &Ssh) -> Target {
        Target {
            user: ssh.user.clone(),
            port: ssh.port,
            ..Target::new(&ssh.host)
        }
        .named(ssh.to_string())
    }
}

/// A program with its arguments, all of them quoted; by `sudo -n` where that is wanted.
pub fn line<S: AsRef<str>>(argv: &[S], sudo: bool) -> String {
    let sudo = if sudo { &["sudo", "-n", "--"][..] } else { &[] };
    let words = sudo.iter().copied().chain(argv.iter().map(AsRef::as_ref));
    words.map(quoted).collect::<Vec<_>>().join(" ")
}

/// A word of the shell (POSIX, 2.2.2): within single quotes nothing is special but the quote itself.
pub fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn addresses_that_are_options_or_commands_are_refused() {
        for address in [
            "",
            "-oProxyCommand=reboot",
            "a b",
            "$(reboot)",
            "a;b",
            "root@-x",
            "a\nb",
            "`a`",
        ] {
            let error = Target::new(address).arguments().unwrap_err();
            assert_eq!(error.fault, Fault::Address, "{address:?}");
        }
        for address in [
            "r1",
            "root@198.18.0.1",
            "2001:2::1",
            "fe80::1%em0",
            "root@[2001:2::1]",
            "ssh://a@b:22",
        ] {
            assert!(Target::new(address).arguments().is_ok(), "{address:?}");
        }
    }

    #[test]
    fn a_destination_has_a_user_and_a_port_of_its_own() {
        let ssh: Ssh = "root@[fe80::1%em0]:2222".parse().unwrap();
        let arguments = Target::from(&ssh).arguments().unwrap().join(" ");
        assert!(arguments.starts_with("-l root -p 2222 -o"), "{arguments}");
        assert_eq!(Target::from(&ssh).address, "fe80::1%em0");
    }

    #[test]
    fn unknown_keys_are_refused_unless_the_user_says_otherwise() {
        let strict = |target: &Target| {
            target
                .arguments()
                .unwrap()
                .into_iter()
                .find(|a| a.starts_with("StrictHostKeyChecking"))
                .unwrap()
        };
        let mut target = Target::new("r1");
        assert_eq!(strict(&target), "StrictHostKeyChecking=yes");
        target.accept_new = true;
        assert_eq!(strict(&target), "StrictHostKeyChecking=accept-new");
    }

    #[test]
    fn sudo_asks_for_no_password() {
        assert_eq!(line(&["a", "b c"], true), "'sudo' '-n' '--' 'a' 'b c'");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn every_argument_arrives_as_it_is(words in prop::collection::vec("[ -~\n\t\u{e4}]{0,12}", 1..4)) {
            let argv: Vec<String> = ["printf".to_string(), "%s\\0".into()].into_iter().chain(words.clone()).collect();
            let output = std::process::Command::new("/bin/sh").args(["-c", &line(&argv, false)]).output().unwrap();
            let expected: Vec<u8> = words.iter().flat_map(|w| w.bytes().chain([0])).collect();
            prop_assert_eq!(output.stdout, expected);
        }
    }
}
