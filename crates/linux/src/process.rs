//! Programs that are run on behalf of a user: without a shell, with limits on time and on the kept output, fed by a writer
//! instead of one large text, and ended with everything that they started.

pub mod pipes;

use linerate_plan::rules::own::told_of;
use pipes::Outlet;
use rustix::process::{Pid, Signal, kill_process_group, set_parent_process_death_signal};
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::fmt;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

/// A process that has written a record, distinguished from a later one with the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    pub pid: u32,
    /// When it began, in ticks since the machine was started.
    #[serde(default)]
    pub pid_started: Option<u64>,
}

impl Owner {
    pub fn this() -> Owner {
        let pid = std::process::id();
        Owner {
            pid,
            pid_started: started(pid),
        }
    }

    pub fn runs(&self) -> bool {
        started(self.pid).is_some_and(|now| self.pid_started.is_none_or(|then| now == then))
    }
}

/// When a process began, in ticks since the machine's start; `None` if it has ended (also as a zombie).
pub(crate) fn started(pid: u32) -> Option<u64> {
    parse_start(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// Field 22 of /proc/PID/stat. The name, field 2, is in brackets and may itself contain brackets and blanks.
fn parse_start(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    let state = fields.next()?;
    if matches!(state, "Z" | "X") {
        None
    } else {
        fields.nth(18)?.parse().ok()
    }
}

/// Where administration tools are that users' PATH often lacks.
const ADMINISTRATION: [&str; 3] = ["/usr/sbin", "/sbin", "/usr/local/sbin"];
/// Most time to wait for more of a program's output after its end, if one of its children holds its pipes open.
const GRACE: Duration = Duration::from_millis(100);
/// How often is looked whether a program has ended, which its pipes usually say first.
const LOOK: Duration = Duration::from_millis(5);
/// Requested size of the pipe to a program that reads in large pieces; the kernel may give less by the user's limit.
const PIPE: usize = 1 << 20;
/// Bytes that are kept of the beginning of each stream of output.
const KEPT: usize = 64 * 1024;

/// The standard input of a program. A writer makes the text as it is read, so that ten million lines need no
/// memory.
#[derive(Clone, Default)]
pub struct Input(Option<Arc<Writer>>);

type Writer = dyn Fn(&mut dyn Write) -> io::Result<()> + Send + Sync;

impl Input {
    pub fn text(text: impl Into<Arc<str>>) -> Input {
        let text = text.into();
        Input::writer(move |out| out.write_all(text.as_bytes()))
    }

    /// The output of `write`, which is called once for each run of the program, on a thread of its own.
    pub fn writer(
        write: impl Fn(&mut dyn Write) -> io::Result<()> + Send + Sync + 'static,
    ) -> Input {
        Input(Some(Arc::new(write)))
    }

    /// Writes it.
    ///
    /// # Errors
    /// `out` takes no more.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        self.0.iter().try_for_each(|text| text(out))
    }

    /// This text, and then what it is.
    #[must_use]
    pub fn after(self, text: &'static str) -> Input {
        Input::writer(move |out| {
            out.write_all(text.as_bytes())?;
            self.write(out)
        })
    }
}

impl fmt::Debug for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() {
            "Input(..)"
        } else {
            "Input(none)"
        })
    }
}

/// A program to be run.
#[derive(Debug, Clone)]
pub struct Job {
    /// Name of the program, looked for in PATH and in the folders of administration tools, or its path.
    pub program: String,
    /// Arguments, which no shell interprets.
    pub args: Vec<String>,
    pub input: Input,
    /// The name of its input in its messages, if that is a user's file.
    pub file: Option<String>,
    /// The program is killed when it has run this long.
    pub limit: Duration,
    /// Should linerate be killed, it goes on.
    outlives: bool,
}

impl Job {
    /// A program without input that may take half a minute.
    pub fn new(program: impl Into<String>, args: &[&str]) -> Job {
        let args = args.iter().map(|a| (*a).to_owned()).collect();
        Job {
            program: program.into(),
            args,
            input: Input::default(),
            file: None,
            limit: Duration::from_secs(30),
            outlives: false,
        }
    }

    /// Should linerate be killed, the program goes on, because only its end leaves things in order.
    #[must_use]
    pub fn outliving(mut self) -> Job {
        self.outlives = true;
        self
    }

    #[must_use]
    pub fn with_input(mut self, input: Input) -> Job {
        self.input = input;
        self
    }

    /// With the text of a user's file as input.
    #[must_use]
    pub fn reading(mut self, file: &str, text: impl Into<Arc<str>>) -> Job {
        self.file = Some(file.into());
        self.with_input(Input::text(text))
    }

    /// With another limit of time.
    #[must_use]
    pub fn within(mut self, limit: Duration) -> Job {
        self.limit = limit;
        self
    }

    /// The program's name without its folder.
    pub fn name(&self) -> &str {
        Path::new(&self.program)
            .file_name()
            .and_then(OsStr::to_str)
            .unwrap_or(&self.program)
    }

    /// Runs it and returns the beginning of its output, at most 64 KiB. `command` makes it from the program's path (see [`Netns::command`](crate::net::Netns::command)).
    ///
    /// # Errors
    /// The program is not there, fails, takes too long, does not read its input, or `cancelled` became true.
    pub fn run(
        &self,
        command: impl FnOnce(&Path) -> Command,
        cancelled: Option<&AtomicBool>,
    ) -> Result<String, ProcessError> {
        let mut stdout = Kept::default();
        self.drive(command, cancelled, &mut |bytes| stdout.add(bytes))?;
        Ok(stdout.text())
    }

    /// As [`Job::run`], with every line of the output handed to `each` instead of kept.
    ///
    /// # Errors
    /// As [`Job::run`].
    pub fn run_lines(
        &self,
        command: impl FnOnce(&Path) -> Command,
        cancelled: Option<&AtomicBool>,
        mut each: impl FnMut(&str),
    ) -> Result<(), ProcessError> {
        let mut line = Vec::new();
        let mut lines = |bytes: &[u8]| {
            for part in bytes.split_inclusive(|b| *b == b'\n') {
                line.extend_from_slice(part);
                if line.ends_with(b"\n") || line.len() > KEPT {
                    each(String::from_utf8_lossy(&line).trim_end_matches('\n'));
                    line.clear();
                }
            }
        };
        self.drive(command, cancelled, &mut lines)?;
        if !line.is_empty() {
            each(&String::from_utf8_lossy(&line));
        }
        Ok(())
    }

    /// As [`Job::run`], with the output handed to `stdout` as it comes.
    ///
    /// # Errors
    /// As [`Job::run`].
    pub fn drive(
        &self,
        command: impl FnOnce(&Path) -> Command,
        cancelled: Option<&AtomicBool>,
        stdout: &mut dyn FnMut(&[u8]),
    ) -> Result<(), ProcessError> {
        let (began, name, limit) = (Instant::now(), &self.program, self.limit);
        let system =
            |source: io::Error| ProcessError::Unfinished(format!("cannot run {name}: {source}"));
        let program = find(name).ok_or_else(|| ProcessError::NotInstalled(name.clone()))?;
        let mut command = command(&program);
        command.args(&self.args);
        let mut running = Running::start(command, self).map_err(system)?;
        let (mut stderr, mut ended) = (Kept::default(), None);
        let status = loop {
            running.wait().map_err(system)?;
            // Before the output is read: what a program has written by its end is in its pipes.
            ended = ended.or(running
                .ended()
                .map_err(system)?
                .map(|status| (status, Instant::now())));
            let [output, errors] = &mut running.outlets;
            output
                .read(stdout)
                .and_then(|()| errors.read(&mut |bytes| stderr.add(bytes)))
                .map_err(system)?;
            match ended {
                Some((status, at)) if running.is_silent() || at.elapsed() > GRACE => break status,
                Some(_) => {}
                None if cancelled.is_some_and(|cancelled| cancelled.load(Ordering::Relaxed)) => {
                    return Err(ProcessError::Unfinished(format!(
                        "{name} was ended by an interrupt"
                    )));
                }
                None if began.elapsed() < limit => {}
                None => {
                    let (seconds, said) = (limit.as_secs_f64(), said(&stderr.text()));
                    let why = format!("{name} did not end within {seconds} s and was killed{said}");
                    return Err(ProcessError::Unfinished(why));
                }
            }
        };
        if !status.success() {
            // The program has printed the reason, and need not have read all of its input.
            let words = stderr.text();
            let said = said(
                &self
                    .file
                    .as_ref()
                    .map_or(words.clone(), |file| told_of(file, &words)),
            );
            return Err(ProcessError::Failed(format!(
                "{name} failed ({status}){said}"
            )));
        }
        let fed = running.fed.take().map_or(Ok(()), |fed| {
            fed.recv_timeout(GRACE)
                .unwrap_or(Err(io::ErrorKind::BrokenPipe.into()))
        });
        let starved =
            |e| ProcessError::Unfinished(format!("{name} did not get all of its input: {e}"));
        fed.map_err(starved)
    }
}

/// Reasons why a program failed.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// There is no such program.
    #[error("{0} is not installed{hint}", hint = package(.0))]
    NotInstalled(String),
    /// The program ended with an error.
    #[error("{0}")]
    Failed(String),
    /// The program could not be started, fed or watched, or it was killed.
    #[error("{0}")]
    Unfinished(String),
}

/// The first lines of a program's output, for an error message.
fn said(text: &str) -> String {
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim_end)
        .filter(|l| !l.is_empty())
        .take(6)
        .collect();
    let text: String = lines.join("\n").chars().take(800).collect();
    if text.is_empty() {
        text
    } else {
        format!(": {text}")
    }
}

/// The package of a program, if known.
fn package(program: &str) -> String {
    let package = match Path::new(program)
        .file_name()
        .and_then(OsStr::to_str)
        .unwrap_or_default()
    {
        "nft" => "nftables",
        "ipset" => "ipset",
        "conntrack" => "conntrack",
        "nginx" => "nginx",
        "wrk" => "wrk",
        "modprobe" => "kmod",
        "qemu-system-x86_64" => "qemu-system-x86",
        "dpkg-deb" => "dpkg",
        "xz" => "xz-utils",
        "zstd" => "zstd",
        name if name.starts_with("iptables") || name.starts_with("ip6tables") => "iptables",
        _ => return String::new(),
    };
    format!(": apt-get install {package}")
}

/// The path of a program: in PATH, or where administration tools are.
pub fn find(program: &str) -> Option<PathBuf> {
    let runs = |path: &PathBuf| {
        path.metadata()
            .is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
    };
    if program.contains('/') {
        return Some(PathBuf::from(program)).filter(runs);
    }
    if program.is_empty() || program.contains('\0') {
        return None;
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(ADMINISTRATION.map(PathBuf::from));
    folders.map(|folder| folder.join(program)).find(runs)
}

/// A running program; the rest of its process group is killed with it. Its input has a thread of its own, which ends with the pipe:
/// it cannot hold the program up or be held up by it.
struct Running {
    child: Child,
    reaped: Option<ExitStatus>,
    /// Output and error output of the program.
    outlets: [Outlet; 2],
    /// Whether it has taken its input.
    fed: Option<Receiver<io::Result<()>>>,
}

impl Running {
    fn start(mut command: Command, job: &Job) -> io::Result<Running> {
        let (input, outlives) = (&job.input, job.outlives);
        command.stdin(if input.0.is_some() {
            Stdio::piped()
        } else {
            Stdio::null()
        });
        command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        // Should linerate be killed, nobody reads the program's output any more.
        let prepare = move || {
            if outlives {
                // SAFETY: it is this child's own disposition, and no handler.
                unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
            } else {
                let _ = set_parent_process_death_signal(Some(Signal::KILL));
            }
            Ok(())
        };
        // SAFETY: the closure makes one system call and neither allocates nor locks.
        unsafe { command.pre_exec(prepare) };
        let mut child = command.spawn()?;
        let pipes = [
            child.stdout.take().map(Into::into),
            child.stderr.take().map(Into::into),
        ];
        let fed = child
            .stdin
            .take()
            .zip(input.0.clone())
            .map(|(pipe, write)| {
                let (to, fed) = mpsc::channel();
                thread::spawn(move || {
                    // A refusal leaves the pipe as it is.
                    let _ = rustix::pipe::fcntl_setpipe_size(&pipe, PIPE);
                    let mut out = BufWriter::with_capacity(KEPT, pipe);
                    to.send(write(&mut out).and_then(|()| out.flush()))
                });
                fed
            });
        Ok(Running {
            child,
            reaped: None,
            outlets: pipes.map(Outlet::new),
            fed,
        })
    }

    /// Waits a moment for output.
    fn wait(&self) -> io::Result<()> {
        // The program may run on with its output closed.
        pipes::wait(
            &self.outlets,
            if self.is_silent() {
                Duration::from_millis(1)
            } else {
                LOOK
            },
        )
    }

    /// Whether nothing can come any more.
    fn is_silent(&self) -> bool {
        self.outlets.iter().all(Outlet::is_closed)
    }

    fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        if self.reaped.is_none() {
            self.reaped = self.child.try_wait()?;
        }
        Ok(self.reaped)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The group's number is the child's: the kernel does not give it to another while a member of the group is left, and a
        // group without members is an error without effect.
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        if self.reaped.is_none() {
            let _ = self.child.wait();
        }
    }
}

/// The beginning of an output.
#[derive(Debug, Default)]
struct Kept(Vec<u8>);

impl Kept {
    fn add(&mut self, bytes: &[u8]) {
        let room = KEPT.saturating_sub(self.0.len());
        self.0.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0).into_owned()
    }
}

#[cfg(test)]
mod tests;
