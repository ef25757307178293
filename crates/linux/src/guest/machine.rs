//! QEMU with a kernel in it. It ends with this process, and leaves nothing: its files are in memory, its channels are pairs of sockets.

use super::GuestError;
use super::qmp::Qmp;
use crate::process;
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Pid, Signal, getpid, getppid, set_parent_process_death_signal};
use rustix::thread::{CpuSet, sched_setaffinity};
use serde_json::json;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The program that holds guests.
const QEMU: &str = "qemu-system-x86_64";
/// The name of the port that the guest speaks through.
pub const PORT: &str = "linerate";
/// Lines of the console that are kept, and their characters.
const LINES: usize = 12;
const WIDTH: usize = 200;
/// Bytes of a message at most.
const LONGEST: usize = 256 << 20;
/// How often is looked whether anything else has happened.
const LOOK: Duration = Duration::from_millis(100);
/// How often QEMU is asked whether the guest can still run.
const ASK: Duration = Duration::from_secs(2);

/// Who runs the guest's instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acceleration {
    /// The machine's CPUs.
    Kvm,
    /// QEMU: no figure is of a real machine.
    Emulated,
}

/// How guests run on this machine. `emulated`: the user accepts figures that are of no real machine.
///
/// # Errors
/// There is no KVM: why, and the remedies.
pub fn acceleration(emulated: bool) -> Result<Acceleration, GuestError> {
    if emulated {
        return Ok(Acceleration::Emulated);
    }
    let open = File::options().read(true).write(true).open("/dev/kvm");
    let Err(error) = open else {
        return Ok(Acceleration::Kvm);
    };
    let remedy = match error.kind() {
        io::ErrorKind::NotFound => {
            "its module is not loaded (modprobe kvm_intel, or kvm_amd), virtualisation is off in the firmware, or this is a virtual machine without nested virtualisation"
        }
        io::ErrorKind::PermissionDenied => "run it with sudo, or join the group kvm",
        _ => "see dmesg for KVM's own words",
    };
    Err(GuestError::Refused(format!(
        "kernels are measured under KVM, and /dev/kvm cannot be opened ({error}): {remedy}. With --emulated, QEMU emulates the CPU: that tries everything out, but its figures are of no real machine"
    )))
}

/// The version of QEMU.
///
/// # Errors
/// QEMU is not installed.
fn qemu_version() -> Result<String, GuestError> {
    let told = process::Job::new(QEMU, &["--version"]).run(|path| Command::new(path), None);
    let told = told.map_err(|e| GuestError::Refused(format!("kernels are booted in QEMU: {e}")))?;
    let first = told.lines().next().unwrap_or_default();
    Ok(first.replace("QEMU emulator version ", ""))
}

/// A guest to be booted.
#[derive(Debug)]
pub struct Spec<'s> {
    /// The release of its kernel, for messages.
    pub kernel: &'s str,
    pub image: &'s [u8],
    /// The file system.
    pub files: &'s [u8],
    pub cpus: u32,
    pub memory_mib: u64,
    pub acceleration: Acceleration,
}

/// A running guest; dropped, it has ended.
pub struct Machine {
    kernel: String,
    child: Child,
    qmp: Qmp,
    port: BufReader<UnixStream>,
    line: Vec<u8>,
    console: Arc<Mutex<VecDeque<String>>>,
    reader: Option<JoinHandle<()>>,
    /// QEMU's version.
    pub qemu: String,
}

impl Machine {
    /// Boots a guest.
    ///
    /// # Errors
    /// QEMU is not there, or ends at once.
    pub fn boot(spec: &Spec<'_>) -> Result<Machine, GuestError> {
        let qemu = qemu_version()?;
        let failed = || GuestError::failed("start QEMU");
        let [image, files] = [("kernel", spec.image), ("files", spec.files)]
            .map(|(name, content)| in_memory(name, content));
        let (image, files) = (image.map_err(failed())?, files.map_err(failed())?);
        let (qmp, its_qmp) = UnixStream::pair().map_err(failed())?;
        let (port, its_port) = UnixStream::pair().map_err(failed())?;
        let (console, its_console) = io::pipe().map_err(failed())?;
        let inherited = [
            image.as_fd(),
            files.as_fd(),
            its_qmp.as_fd(),
            its_port.as_fd(),
        ]
        .map(|fd| fd.as_raw_fd());
        let mut command = Command::new(process::find(QEMU).unwrap_or_else(|| QEMU.into()));
        command
            .args(words(spec, inherited))
            .stdin(Stdio::null())
            .stdout(its_console.try_clone().map_err(failed())?)
            .stderr(its_console)
            .process_group(0);
        let keep = [image, files, its_qmp.into(), its_port.into()];
        let parent = getpid();
        let prepare = move || {
            set_parent_process_death_signal(Some(Signal::KILL))?;
            if getppid() != Some(parent) {
                // Linerate has ended already.
                return Err(io::ErrorKind::NotFound.into());
            }
            for fd in &keep {
                fcntl_setfd(fd, FdFlags::empty())?;
            }
            Ok(())
        };
        // SAFETY: between fork and exec the closure makes system calls alone; it neither allocates nor locks, and it owns the files
        // that it uses.
        unsafe { command.pre_exec(prepare) };
        let mut child = command.spawn().map_err(failed())?;
        // The other ends of the channels are QEMU's alone now.
        drop(command);
        let lines = Arc::new(Mutex::new(VecDeque::new()));
        let kept = Arc::clone(&lines);
        let reader = thread::spawn(move || keep_lines(console, &kept));
        port.set_read_timeout(Some(LOOK)).map_err(failed())?;
        port.set_write_timeout(Some(Duration::from_secs(60)))
            .map_err(failed())?;
        let qmp = match Qmp::open(qmp) {
            Ok(qmp) => qmp,
            Err(error) => {
                let _ = child.kill();
                let status = child.wait();
                let _ = reader.join();
                let what = match status {
                    Ok(status) => ended_as(status),
                    Err(_) => error.to_string(),
                };
                let console = locked(&lines).drain(..).collect();
                return Err(GuestError::Lost {
                    kernel: spec.kernel.into(),
                    what: format!("could not be started: {what}"),
                    console,
                });
            }
        };
        Ok(Machine {
            kernel: spec.kernel.into(),
            child,
            qmp,
            port: BufReader::with_capacity(1 << 16, port),
            line: Vec::new(),
            console: lines,
            reader: Some(reader),
            qemu,
        })
    }

    /// Sends a line to the guest.
    ///
    /// # Errors
    /// The guest has ended or takes nothing.
    pub fn send(&mut self, line: &[u8]) -> Result<(), GuestError> {
        let sent = self.port.get_mut().write_all(line);
        sent.map_err(|e| self.lost(format!("takes no orders any more ({e})")))
    }

    /// The next line of the guest; `None` if `stop` became true.
    ///
    /// # Errors
    /// The guest has ended, cannot run any more, or is silent for too long.
    pub fn line(
        &mut self,
        within: Duration,
        stop: &AtomicBool,
    ) -> Result<Option<Vec<u8>>, GuestError> {
        let (began, mut asked) = (Instant::now(), Instant::now());
        loop {
            match Read::by_ref(&mut self.port)
                .take(1 << 20)
                .read_until(b'\n', &mut self.line)
            {
                Ok(0) => return Err(self.lost("has ended".into())),
                Ok(_) if self.line.ends_with(b"\n") => {
                    return Ok(Some(std::mem::take(&mut self.line)));
                }
                Ok(_) if self.line.len() > LONGEST => {
                    return Err(self.lost("sends a message without an end".into()));
                }
                Ok(_) => {}
                Err(e)
                    if matches!(
                        e.kind(),
                        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                    ) => {}
                Err(e) => return Err(self.lost(format!("cannot be heard ({e})"))),
            }
            if stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            if began.elapsed() > within {
                let what = format!("has not answered for {} s", within.as_secs());
                return Err(self.lost(what));
            }
            if asked.elapsed() > ASK {
                asked = Instant::now();
                self.check()?;
            }
        }
    }

    /// Whether QEMU can still run the guest.
    fn check(&mut self) -> Result<(), GuestError> {
        let status = match self.qmp.order("query-status", json!({})) {
            Ok(answer) => answer["status"].as_str().unwrap_or_default().to_owned(),
            Err(e) => return Err(self.lost(format!("has ended ({e})"))),
        };
        match status.as_str() {
            "running" | "paused" | "prelaunch" | "shutdown" => Ok(()),
            "internal-error" => Err(self.lost(
                "cannot run: KVM met an instruction that this machine's KVM cannot carry out (internal error); --emulated does without KVM".into(),
            )),
            status => Err(self.lost(format!("does not run any more ({status})"))),
        }
    }

    /// Stops the guest's CPUs and its clock.
    ///
    /// # Errors
    /// QEMU has ended.
    pub fn pause(&mut self) -> Result<(), GuestError> {
        self.order("stop")
    }

    /// Lets it go on.
    ///
    /// # Errors
    /// QEMU has ended.
    pub fn resume(&mut self) -> Result<(), GuestError> {
        self.order("cont")
    }

    fn order(&mut self, what: &str) -> Result<(), GuestError> {
        let done = self.qmp.order(what, json!({}));
        done.map(drop)
            .map_err(|e| self.lost(format!("has ended ({e})")))
    }

    /// Gives each virtual CPU one of these CPUs, in turn. Returns how many have one.
    ///
    /// # Errors
    /// QEMU has ended.
    pub fn pin(&mut self, cpus: &[u32]) -> Result<usize, GuestError> {
        let answer = self.qmp.order("query-cpus-fast", json!({}));
        let answer = answer.map_err(|e| self.lost(format!("has ended ({e})")))?;
        let threads = answer.as_array().into_iter().flatten();
        let threads = threads.filter_map(|cpu| cpu["thread-id"].as_i64());
        let mut pinned = 0;
        for (thread, cpu) in threads.zip(cpus.iter().cycle()) {
            let thread = i32::try_from(thread).ok().and_then(Pid::from_raw);
            pinned += usize::from(thread.is_some_and(|thread| pin(thread, *cpu)));
        }
        Ok(pinned)
    }

    /// Times that its CPUs left the guest since it was booted; `None` where QEMU does not count them.
    pub fn exits(&mut self) -> Option<u64> {
        let with =
            json!({"target": "vcpu", "providers": [{"provider": "kvm", "names": ["exits"]}]});
        let answer = self.qmp.order("query-stats", with).ok()?;
        let counts = answer.as_array()?.iter();
        let counts: Vec<u64> = counts
            .flat_map(|cpu| cpu["stats"].as_array().into_iter().flatten())
            .filter_map(|stat| stat["value"].as_u64())
            .collect();
        (!counts.is_empty()).then(|| counts.iter().sum())
    }

    /// Why the guest is lost: QEMU's end says more than the end of a channel. QEMU ends with this.
    pub fn lost(&mut self, what: String) -> GuestError {
        let own = (0..20).find_map(|_| {
            let status = self.child.try_wait().ok().flatten();
            if status.is_none() {
                thread::sleep(LOOK / 20);
            }
            status
        });
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
        let console: Vec<String> = locked(&self.console).iter().cloned().collect();
        let gives_up = |line: &String| GIVES_UP.iter().any(|words| line.contains(words));
        let panicked = console.iter().any(gives_up);
        let what = match own {
            _ if panicked => "panicked".into(),
            Some(status) => format!("has ended: {}", ended_as(status)),
            None => what,
        };
        GuestError::Lost {
            kernel: self.kernel.clone(),
            what,
            console,
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Lets a thread run on one CPU alone. Whether that was possible.
fn pin(thread: Pid, cpu: u32) -> bool {
    let mut set = CpuSet::new();
    set.set(cpu as usize);
    sched_setaffinity(Some(thread), &set).is_ok()
}

fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A file that only its descriptor leads to.
fn in_memory(name: &str, content: &[u8]) -> io::Result<OwnedFd> {
    let fd = memfd_create(name, MemfdFlags::CLOEXEC)?;
    File::from(fd.try_clone()?).write_all(content)?;
    Ok(fd)
}

/// The arguments of QEMU: no disk, no network, no display, no file of the host. `files`: the kernel, the file system, QMP and the port.
fn words(spec: &Spec<'_>, [kernel, files, qmp, port]: [RawFd; 4]) -> Vec<String> {
    let (accelerator, cpu) = match spec.acceleration {
        Acceleration::Kvm => ("kvm", "host"),
        Acceleration::Emulated => ("tcg,thread=multi", "max"),
    };
    let words = [
        "-nodefaults -no-user-config -display none -no-reboot -machine pc".to_owned(),
        format!(
            "-accel {accelerator} -cpu {cpu} -smp {} -m {}",
            spec.cpus, spec.memory_mib
        ),
        format!("-kernel /proc/self/fd/{kernel} -initrd /proc/self/fd/{files}"),
        "-chardev stdio,id=console,signal=off -serial chardev:console".into(),
        format!("-chardev socket,id=qmp,fd={qmp} -mon chardev=qmp,mode=control"),
        format!("-device virtio-serial-pci -chardev socket,id=port,fd={port}"),
        format!("-device virtserialport,chardev=port,name={PORT}"),
    ];
    let mut words: Vec<String> = words
        .iter()
        .flat_map(|words| words.split_whitespace().map(String::from))
        .collect();
    words.push("-append".into());
    // The kernel puts what it does not know into the environment of the first program.
    words.push("console=ttyS0 quiet panic=-1 oops=panic PATH=/usr/sbin:/usr/bin:/sbin:/bin".into());
    words
}

fn ended_as(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(signal), _) => format!("QEMU was killed by signal {signal}"),
        (None, Some(code)) => format!("QEMU ended with status {code}"),
        (None, None) => "QEMU ended".into(),
    }
}

/// Words of a kernel that gives up; the lines after them are registers.
const GIVES_UP: [&str; 3] = ["Kernel panic", "BUG: ", "Oops: "];

/// Keeps the last lines of a console, fit for a terminal: of a kernel that gives up, the lines before its reason and the first after it.
fn keep_lines(console: impl Read, kept: &Mutex<VecDeque<String>>) {
    let mut console = BufReader::new(console);
    let (mut line, mut left) = (Vec::new(), usize::MAX);
    while Read::by_ref(&mut console)
        .take(1 << 12)
        .read_until(b'\n', &mut line)
        .is_ok_and(|read| read > 0)
    {
        let text = String::from_utf8_lossy(&line);
        let plain = text.chars().filter(|c| !c.is_control()).take(WIDTH);
        let plain: String = plain.collect();
        line.clear();
        if !plain.trim().is_empty() && left > 0 {
            left -= 1;
            if GIVES_UP.iter().any(|words| plain.contains(words)) {
                left = left.min(LINES / 2);
            }
            let mut kept = locked(kept);
            if kept.len() == LINES {
                kept.pop_front();
            }
            kept.push_back(plain);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_of_a_panic_is_kept_and_not_its_registers() {
        let before = "[ 1.0] starting\n".repeat(30);
        let after = "[ 2.1] RAX: 0\n".repeat(30);
        let said = format!("{before}\x1b[0m[ 2.0] Kernel panic - not syncing: no init\r\n{after}");
        let kept = Mutex::default();
        keep_lines(said.as_bytes(), &kept);
        let kept = locked(&kept);
        assert_eq!(kept.len(), LINES);
        assert!(
            kept.iter()
                .any(|line| line.contains("panic - not syncing: no init"))
        );
        assert!(
            kept.front().is_some_and(|line| line.contains("starting")),
            "{kept:?}"
        );
        assert!(kept.iter().all(|line| !line.contains('\x1b')));
    }

    #[test]
    fn a_guest_has_no_disk_no_network_and_no_file_of_the_host() {
        let spec = Spec {
            kernel: "6.1",
            image: b"",
            files: b"",
            cpus: 2,
            memory_mib: 512,
            acceleration: Acceleration::Emulated,
        };
        let words = words(&spec, [3, 4, 5, 6]).join(" ");
        assert!(words.contains("-nodefaults") && words.contains("-no-reboot"));
        for other in ["drive", "netdev", "-net", "virtfs", "hda"] {
            assert!(!words.contains(other), "{words}");
        }
    }
}
