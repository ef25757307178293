//! Programs that end: by themselves, at their time limit, or with the test.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A program to be run.
pub struct Program {
    command: Command,
    within: Duration,
}

impl Program {
    /// A program that may take a minute.
    pub fn new(program: &str) -> Self {
        let mut command = Command::new(program);
        command
            .stdin(Stdio::null())
            .env("LC_ALL", "C")
            .env_remove("COLUMNS");
        // linerate raises its whole session (autogroup, sched(7)), which must not be that of the tests.
        // SAFETY: setsid and prctl are async-signal-safe, and change only the child.
        unsafe {
            command.pre_exec(|| {
                libc::setsid();
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                Ok(())
            })
        };
        Program {
            command,
            within: Duration::from_secs(180),
        }
    }

    /// A line of sh as root with a /run of its own: linerate's files there are separate from the host's, and from another test's.
    pub fn with_own_run(line: &str) -> Self {
        let line = format!("mount -t tmpfs tmpfs /run && mkdir -p /run/netns && {{ {line}\n}}");
        Program::new("unshare").args(["-m", "--propagation", "private", "sh", "-c", &line])
    }

    /// Arguments.
    pub fn args<S: AsRef<str>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        args.into_iter().for_each(|a| {
            self.command.arg(a.as_ref());
        });
        self
    }

    /// The folder it works in.
    pub fn dir(mut self, dir: &Path) -> Self {
        self.command.current_dir(dir);
        self
    }

    /// A variable of its environment.
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    /// How many seconds it takes on a quiet machine at most. Beside other tests it may take three times as long before it is killed and the
    /// test fails.
    pub fn within(mut self, seconds: u64) -> Self {
        self.within = 3 * Duration::from_secs(seconds);
        self
    }

    /// Runs as another user, without any privilege.
    pub fn user(mut self, id: u32) -> Self {
        self.command.uid(id).gid(id);
        self
    }

    /// Runs before other programs of the machine, for tests whose result would otherwise depend on how busy these are.
    pub fn first(mut self) -> Self {
        // SAFETY: these calls are async-signal-safe, and change only the child and its session.
        unsafe {
            self.command.pre_exec(|| {
                libc::setpriority(libc::PRIO_PROCESS, 0, -20);
                let session = libc::open(
                    c"/proc/self/autogroup".as_ptr(),
                    libc::O_WRONLY | libc::O_CLOEXEC,
                );
                libc::write(session, c"-20".as_ptr().cast(), 3);
                Ok(())
            })
        };
        self
    }

    /// Files that it writes may have this length at most.
    pub fn file_limit(mut self, bytes: u64) -> Self {
        // SAFETY: setrlimit is async-signal-safe, and changes only the child.
        unsafe {
            self.command.pre_exec(move || {
                let limit = libc::rlimit {
                    rlim_cur: bytes,
                    rlim_max: bytes,
                };
                match libc::setrlimit(libc::RLIMIT_FSIZE, &limit) {
                    0 => Ok(()),
                    _ => Err(std::io::Error::last_os_error()),
                }
            })
        };
        self
    }

    /// Starts it.
    pub fn start(mut self) -> Running {
        let name = format!("{:?}", self.command);
        let spawned = self
            .command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let mut child = spawned.unwrap_or_else(|e| panic!("cannot start {name}: {e}"));
        let stderr = collect(child.stderr.take().unwrap());
        let stdout = child.stdout.take();
        Running {
            name,
            stdout,
            stderr: Some(stderr),
            began: Instant::now(),
            within: self.within,
            child,
        }
    }

    /// Runs it to its end.
    pub fn run(self) -> Ended {
        self.start().wait()
    }
}

fn collect(mut from: impl Read + Send + 'static) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = from.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// A program that has been started. It is killed when this goes.
pub struct Running {
    name: String,
    child: Child,
    stdout: Option<ChildStdout>,
    stderr: Option<JoinHandle<String>>,
    began: Instant,
    within: Duration,
}

impl Running {
    /// Number of the process.
    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: i32) {
        // SAFETY: the child has not been waited for, so that its number is still its own.
        assert_eq!(
            unsafe { libc::kill(self.pid(), signal) },
            0,
            "signal {signal} to {}",
            self.name
        );
    }

    /// Whether it handles a signal, and does not end by it.
    pub fn handles(&self, signal: i32) -> bool {
        let status =
            std::fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap_or_default();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let mask = mask.map_or(0, |mask| u64::from_str_radix(mask.trim(), 16).unwrap());
        mask >> (signal - 1) & 1 == 1
    }

    /// Waits until a line with this text appears on its standard output, and leaves the rest to be read.
    pub fn wait_for_line(&mut self, text: &str) -> String {
        let mut stdout = BufReader::with_capacity(1, self.stdout.take().unwrap());
        let mut line = String::new();
        while !line.contains(text) {
            let last = std::mem::take(&mut line);
            let read = stdout.read_line(&mut line).unwrap();
            assert_ne!(
                read, 0,
                "{} ended without '{text}'; its last line: {last}",
                self.name
            );
        }
        self.stdout = Some(stdout.into_inner());
        line
    }

    /// Closes the reading end of its standard output.
    pub fn close_stdout(&mut self) {
        self.stdout = None;
    }

    /// Whether it still runs.
    pub fn runs(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Waits for its end.
    pub fn wait(mut self) -> Ended {
        let stdout = self.stdout.take().map(collect);
        let status = self.wait_status();
        self.kill_group(); // what it left behind holds the pipes open
        let text =
            |t: Option<JoinHandle<String>>| t.map_or_else(String::new, |t| t.join().unwrap());
        let (stdout, stderr) = (text(stdout), text(self.stderr.take()));
        let Some(status) = status else {
            panic!(
                "{} did not end within {:?}\n{stdout}\n{stderr}",
                self.name, self.within
            )
        };
        Ended {
            name: self.name.clone(),
            status,
            stdout,
            stderr,
            took: self.began.elapsed(),
        }
    }

    fn wait_status(&mut self) -> Option<ExitStatus> {
        while self.began.elapsed() < self.within {
            if let Some(status) = self.child.try_wait().unwrap() {
                return Some(status);
            }
            std::thread::sleep(Duration::from_millis(3));
        }
        None
    }

    fn kill_group(&mut self) {
        // SAFETY: the group was made for this child alone, and its number is not reused while a member is left.
        unsafe { libc::kill(-self.pid(), libc::SIGKILL) };
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill_group();
        let _ = self.child.wait();
    }
}

/// Result of a program.
#[derive(Debug)]
pub struct Ended {
    /// The command.
    pub name: String,
    /// Exit status.
    pub status: ExitStatus,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// How long it took.
    pub took: Duration,
}

impl Ended {
    /// Asserts that the program succeeded.
    #[track_caller]
    pub fn ok(self) -> Self {
        self.status(0)
    }

    /// Asserts that a campaign whose trials are judged by their counts ended by itself. On a busy machine, the only trial of a variant may
    /// be invalid (status 1), and few trials may not decide (5).
    #[track_caller]
    pub fn counted(self) -> Self {
        match self.status.code() {
            Some(code @ (1 | 5)) => self.status(code),
            _ => self.ok(),
        }
    }

    /// Asserts that the program ended with this status.
    #[track_caller]
    pub fn status(self, code: i32) -> Self {
        let Ended {
            name,
            status,
            stdout,
            stderr,
            ..
        } = &self;
        assert_eq!(
            status.code(),
            Some(code),
            "{name}\nsignal {:?}\n{stdout}\n{stderr}",
            status.signal()
        );
        self.no_panic()
    }

    /// Asserts that the program failed with this status, and that its complaint has all of these in it.
    #[track_caller]
    pub fn fails(self, code: i32, says: &[&str]) -> Self {
        let ended = self.status(code);
        for part in says {
            assert!(
                ended.stderr.contains(part),
                "{}: no '{part}' in:\n{}",
                ended.name,
                ended.stderr
            );
        }
        ended
    }

    /// Asserts that the program did not panic.
    #[track_caller]
    pub fn no_panic(self) -> Self {
        assert!(
            !self.stderr.contains("panicked"),
            "{}\n{}",
            self.name,
            self.stderr
        );
        self
    }

    /// Standard output as JSON.
    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|e| panic!("{}: {e}\n{}", self.name, self.stdout))
    }
}
