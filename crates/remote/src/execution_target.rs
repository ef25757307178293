//! Where commands run: on a host that is reached by ssh, or on this one.

use crate::connection::allow_files;
use crate::{Connection, Fault, Interrupt, Need, RemoteError, Result, Slot, Target};
use linerate_linux::lab::Lane;
use linerate_linux::lab::workspace::Entry;
use linerate_linux::net::Netns;
use std::os::fd::RawFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;
use std::{env, thread};

/// The command line for any login shell: it reads the text of the supervising shell, which ends with a full stop.
pub(super) const LINE: &str = r#"exec /bin/sh -c 'n=$(printf "\nx"); n=${n%x}; s=; while :; do IFS= read -r l || exit 1; case $l in .) break ;; esac; s=$s$l$n; done; eval "$s"'"#;
/// Connections that are made at the same time: jump hosts refuse more than ten that have not logged in (MaxStartups).
const AT_ONCE: usize = 8;
/// How long commands on this machine may go on without linerate, which a load of higher priority may keep from a CPU. (Where
/// linerate ends, they end at once, with the pipe to their shell.)
const SILENCE: Duration = Duration::from_secs(10);

/// Where commands run.
#[derive(Debug)]
pub enum ExecutionTarget {
    /// On another host.
    Ssh(Box<Connection>),
    /// On this one.
    Here {
        name: String,
        /// The network namespace; this process's own if `None`.
        netns: Option<Netns>,
    },
    /// In a network namespace with mounts of its own: a DUT of the embedded lab, or a host of a lab file.
    Namespace {
        name: String,
        /// The way into it.
        entry: Entry,
    },
}

/// Room for a session; `None` where it is not limited.
pub(super) type SessionPermit = Option<Slot>;

impl From<Connection> for ExecutionTarget {
    fn from(connection: Connection) -> ExecutionTarget {
        ExecutionTarget::Ssh(Box::new(connection))
    }
}

impl ExecutionTarget {
    /// A host that is reached by ssh, or a network namespace.
    ///
    /// # Errors
    /// See [`Connection::open`]; or there is no such namespace, or no right to enter it.
    pub fn connect(target: &Target, cancelled: Interrupt<'_>) -> Result<ExecutionTarget> {
        if !target.namespace {
            return Connection::open(target, cancelled).map(ExecutionTarget::from);
        }
        let entry = Netns::open(&target.address).and_then(|namespace| Entry::new(&namespace, &[]));
        match entry {
            Ok(entry) => Ok(ExecutionTarget::Namespace {
                name: target.name.clone(),
                entry,
            }),
            Err(error) => Err(target.error(Fault::Namespace, error.to_string())),
        }
    }

    /// Connects to many hosts, several at a time. The answers are in the order of the hosts.
    pub fn connect_all(
        targets: &[Target],
        cancelled: Interrupt<'_>,
    ) -> Vec<Result<ExecutionTarget>> {
        allow_files();
        let mut answers = Vec::new();
        for some in targets.chunks(AT_ONCE) {
            thread::scope(|scope| {
                let connect =
                    |target| scope.spawn(move || ExecutionTarget::connect(target, cancelled));
                let begun: Vec<_> = some.iter().map(connect).collect();
                let done = |thread: thread::ScopedJoinHandle<'_, _>| {
                    thread
                        .join()
                        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                };
                answers.extend(begun.into_iter().map(done));
            });
        }
        answers
    }

    /// The DUT of a lane of the embedded lab; `None` without a DUT.
    pub fn of_dut(lane: &Lane) -> Option<ExecutionTarget> {
        let dut = lane.dut.as_ref()?;
        let name = lane.setup.name.clone();
        Some(match dut.entry() {
            Some(entry) => ExecutionTarget::Namespace { name, entry },
            None => ExecutionTarget::Here {
                name,
                netns: Some(dut.namespace.clone()),
            },
        })
    }

    /// This place with its own /sys: that of a network namespace is mounted for it.
    ///
    /// # Errors
    /// No right to mount.
    pub fn with_sysfs(self: &Arc<Self>) -> std::result::Result<Arc<Self>, linerate_linux::Error> {
        let ExecutionTarget::Here {
            name,
            netns: Some(netns),
        } = self.as_ref()
        else {
            return Ok(Arc::clone(self));
        };
        Ok(Arc::new(ExecutionTarget::Namespace {
            name: name.clone(),
            entry: Entry::plain(netns)?,
        }))
    }

    pub fn name(&self) -> &str {
        match self {
            ExecutionTarget::Ssh(connection) => &connection.target().name,
            ExecutionTarget::Here { name, .. } | ExecutionTarget::Namespace { name, .. } => name,
        }
    }

    /// An error of this host.
    pub(crate) fn error(&self, fault: Fault, said: impl Into<String>) -> RemoteError {
        RemoteError::new(self.name(), fault, said)
    }

    /// The error of a call of the system that failed on this side.
    pub(crate) fn system(&self, what: &'static str) -> impl Fn(std::io::Error) -> RemoteError + '_ {
        move |error| RemoteError::system(self.name(), what, &error)
    }

    /// The connection, if it is reached by one.
    pub(super) fn ssh(&self) -> Option<&Connection> {
        match self {
            ExecutionTarget::Ssh(connection) => Some(connection),
            ExecutionTarget::Here { .. } | ExecutionTarget::Namespace { .. } => None,
        }
    }

    /// The network namespace of this machine, if it is one.
    pub(super) fn namespace(&self) -> Option<&Netns> {
        match self {
            ExecutionTarget::Here { netns, .. } => netns.as_ref(),
            ExecutionTarget::Namespace { entry, .. } => Some(entry.namespace()),
            ExecutionTarget::Ssh(_) => None,
        }
    }

    /// Whether it is on this machine.
    pub fn is_here(&self) -> bool {
        self.ssh().is_none()
    }

    /// How long commands there go on without a sign of life of linerate.
    pub fn silence(&self) -> Duration {
        self.ssh()
            .map_or(SILENCE, |connection| connection.target().silence)
    }

    /// Why it is out of reach, if it is.
    pub fn lost(&self) -> Option<RemoteError> {
        self.ssh()?.lost()
    }

    /// Descriptors to poll besides those of sessions: see [`Connection::watched`].
    pub fn watched(&self) -> Vec<RawFd> {
        self.ssh().map_or_else(Vec::new, Connection::watched)
    }

    /// A process whose standard input and output are those of a program there, such as an agent. The program is not supervised:
    /// it should end with its input.
    ///
    /// # Errors
    /// A login shell would not take its name or an argument as it is.
    pub fn program(&self, program: &str, args: &[&str]) -> Result<Command> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-._/=:,+@%".contains(c);
        let words: Vec<&str> = [program].iter().chain(args).copied().collect();
        if let Some(word) = words.iter().find(|word| {
            word.is_empty() || word.starts_with(['=', '%']) || !word.chars().all(plain)
        }) {
            return Err(self.error(Fault::Command, format!("{word:?} is not a plain word")));
        }
        if let Some(connection) = self.ssh() {
            return Ok(connection.command(&format!("exec {}", words.join(" ")), None));
        }
        let mut command = self.here(program);
        command.args(args);
        Ok(command)
    }

    /// Room for a session. If there is none, a further connection is made, which takes as long as connecting.
    pub(super) fn permit_in_time(&self, need: Need) -> Result<SessionPermit> {
        self.ssh()
            .map(|connection| connection.slot_in_time(need))
            .transpose()
    }

    /// The process that runs [`LINE`] there, as the leader of a process group.
    pub(super) fn command(&self, sudo: bool, permit: &SessionPermit) -> Command {
        if let Some(connection) = self.ssh() {
            let by = if sudo { "exec sudo -n --" } else { "exec" };
            return connection.command(&LINE.replacen("exec", by, 1), permit.as_ref());
        }
        let mut command = self.here("/bin/sh");
        let lead = || {
            let _ = rustix::process::setsid();
            Ok(())
        };
        // SAFETY: the closure makes one system call and neither allocates nor locks.
        unsafe { command.pre_exec(lead) };
        command.args(["-c", LINE]);
        command
    }

    /// A program of this machine, where commands run. They find this linerate first.
    fn here(&self, program: &str) -> Command {
        let mut command = match self {
            ExecutionTarget::Here {
                netns: Some(netns), ..
            } => netns.command(program),
            ExecutionTarget::Namespace { entry, .. } => entry.command(Path::new(program)),
            ExecutionTarget::Here { .. } | ExecutionTarget::Ssh(_) => Command::new(program),
        };
        let path = env::var_os("PATH").unwrap_or_default();
        let own = env::current_exe()
            .ok()
            .and_then(|own| Some(own.parent()?.to_path_buf()));
        if let Ok(path) = env::join_paths(own.into_iter().chain(env::split_paths(&path))) {
            command.env("PATH", path);
        }
        command
    }
}
