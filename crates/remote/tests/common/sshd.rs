//! Hosts with the real sshd: one in each of several network namespaces, and a namespace from which ssh reaches them.
//!
//! Also used by the tests of the command line, by `#[path]`. It needs root, and the packages openssh-client and openssh-server.
//!
//! - `SshLab::new(&["generator", "dut"])` makes the hosts. Each has a link of its own to the client's namespace, with addresses of
//!   198.18.0.0/15, and a folder `bin` that comes first in PATH: [`SshHost::stand_in`] puts scripts there.
//! - `lab.config()` is a configuration for `ssh -F` in which the hosts are known by their names.
//! - `lab.command("linerate")` is a command in the client's namespace; `lab.enter(|| ...)` runs a closure there.
//! - All hosts share this machine's files, processes and clock; `lab.folder()` is a place for files. HOME is a folder of the host's
//!   own: the `.bashrc` of this machine's user is not run.
//!
//! A lab is used by the thread that made it: its sshds end with that thread, should the test be killed.
#![allow(dead_code, reason = "each test file uses a part of this")]

use linerate_linux::net::Netns;
use linerate_linux::net::netlink::{Route, VethEnd};
use linerate_remote::Target;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Hosts, and a namespace from which they are reached.
pub struct SshLab {
    client: Netns,
    folder: PathBuf,
    patient: bool,
    /// The only host of a patient lab that may be silent for [`SILENCE`] alone.
    pub hasty: Option<&'static str>,
    /// The hosts, in the order of their names when the lab was made.
    pub hosts: Vec<SshHost>,
}

/// A host: a network namespace with an sshd.
pub struct SshHost {
    /// Name in ssh's configuration.
    pub name: String,
    /// Address, as seen by the client.
    pub address: Ipv4Addr,
    /// Namespace of the host.
    pub netns: Netns,
    client: Netns,
    link: String,
    folder: PathBuf,
    sshd: Option<Child>,
    /// A folder of this machine that the host sees as another, with that one's name.
    over: Option<(PathBuf, &'static str)>,
}

/// The folder of linerate's state.
const STATE: &str = "/run/linerate";

/// How long hosts may be silent: a busy machine lets a program wait for more than a second now and then.
pub const SILENCE: Duration = Duration::from_secs(3);
/// How long they may be silent in tests that are not about silence.
const PATIENCE: Duration = Duration::from_secs(60);

/// Algorithms for both ends that take little CPU time: hundreds of connections are made, and the default key exchange of one alone takes
/// more than all else that they do.
const CHEAP: &str = "KexAlgorithms ecdh-sha2-nistp256\nCiphers aes128-gcm@openssh.com\n";

impl SshLab {
    /// Makes hosts with these names.
    pub fn new(names: &[&str]) -> SshLab {
        SshLab::with_settings(names, "")
    }

    /// Makes hosts with more lines in their sshd_config. They come first, and so count more.
    pub fn with_settings(names: &[&str], settings: &str) -> SshLab {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder =
            std::env::temp_dir().join(format!("linerate-sshd-{}-{number}", std::process::id()));
        fs::create_dir_all(folder.join("files")).unwrap();
        // The folder in which sshd locks up its unprivileged half. A service manager would make it.
        fs::create_dir_all("/run/sshd").unwrap();
        fs::set_permissions("/run/sshd", fs::Permissions::from_mode(0o755)).unwrap();
        keygen(&folder.join("key"));
        // The hosts have one key between them: a program for each of a hundred takes its time.
        keygen(&folder.join("host_key"));
        let client = Netns::anonymous().unwrap().with_label("client");
        let make = |(at, name): (usize, &&str)| SshHost::new(at, name, &client, &folder, settings);
        let hosts = names.iter().enumerate().map(make).collect();
        let lab = SshLab {
            client,
            folder,
            patient: false,
            hasty: None,
            hosts,
        };
        lab.write_config();
        lab.hosts.iter().for_each(SshHost::wait_listening);
        lab
    }

    /// A configuration for `ssh -F`.
    pub fn config(&self) -> PathBuf {
        self.folder.join("ssh_config")
    }

    /// The keys of hosts that the client knows.
    pub fn known_hosts(&self) -> PathBuf {
        self.folder.join("known_hosts")
    }

    /// The user's public key, which the hosts accept.
    pub fn public_key(&self) -> String {
        fs::read_to_string(self.folder.join("key.pub")).unwrap()
    }

    /// A folder for the files of the test, which goes with the lab.
    pub fn folder(&self) -> PathBuf {
        self.folder.join("files")
    }

    /// The namespace from which the hosts are reached.
    pub fn client(&self) -> &Netns {
        &self.client
    }

    /// A command in the client's namespace.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        self.client.command(program)
    }

    /// Words before a command that make it run in the client's namespace, for as long as this process lives.
    pub fn prefix(&self) -> Vec<String> {
        use std::os::fd::{AsFd, AsRawFd};
        let descriptor = self.client.as_fd().as_raw_fd();
        vec![
            "nsenter".into(),
            format!("--net=/proc/{}/fd/{descriptor}", std::process::id()),
        ]
    }

    /// Runs a closure in the client's namespace.
    pub fn enter<T: Send>(&self, f: impl FnOnce() -> T + Send) -> T {
        self.client.enter(f).unwrap()
    }

    /// A host by its name.
    pub fn host(&mut self, name: &str) -> &mut SshHost {
        self.hosts
            .iter_mut()
            .find(|host| host.name == name)
            .unwrap()
    }

    /// With hosts that may be silent for longer: on a busy machine, a test that is not about silence has none of its own.
    pub fn patient(mut self) -> SshLab {
        self.patient = true;
        self
    }

    /// Patient, but for the host that is lost in the test.
    pub fn patient_but(mut self, name: &'static str) -> SshLab {
        self.hasty = Some(name);
        self.patient()
    }

    /// A host as the library takes it.
    pub fn target(&self, name: &str) -> Target {
        let is_patient = self.patient && self.hasty != Some(name);
        Target {
            silence: if is_patient { PATIENCE } else { SILENCE },
            config: Some(self.config()),
            ..Target::new(name)
        }
    }

    /// All hosts, as the library takes them.
    pub fn targets(&self) -> Vec<Target> {
        self.hosts
            .iter()
            .map(|host| self.target(&host.name))
            .collect()
    }

    fn write_config(&self) {
        let (mut config, mut known) = (String::new(), String::new());
        for host in &self.hosts {
            writeln!(
                config,
                "Host {}\n    HostName {}\n",
                host.name, host.address
            )
            .unwrap();
            let key = fs::read_to_string(host.folder.join("host_key.pub")).unwrap();
            writeln!(known, "{} {}", host.address, key.trim()).unwrap();
        }
        writeln!(
            config,
            "Host *\n    User root\n    IdentityFile {}\n    IdentitiesOnly yes\n    IdentityAgent none\n    UserKnownHostsFile {}\n    \
             GlobalKnownHostsFile /dev/null\n{CHEAP}",
            self.folder.join("key").display(),
            self.known_hosts().display(),
        )
        .unwrap();
        fs::write(self.config(), config).unwrap();
        fs::write(self.known_hosts(), known).unwrap();
    }
}

impl Drop for SshLab {
    fn drop(&mut self) {
        self.hosts.clear();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl SshHost {
    fn new(at: usize, name: &str, client: &Netns, above: &Path, settings: &str) -> SshHost {
        let netns = Netns::anonymous().unwrap().with_label(name);
        let first = u32::from(Ipv4Addr::new(198, 18, 0, 0)) + 4 * at as u32;
        let (near, address) = (Ipv4Addr::from(first + 1), Ipv4Addr::from(first + 2));
        let link = format!("c{at}");
        let (here, there) = (Route::open(client).unwrap(), Route::open(&netns).unwrap());
        let number = (at as u32).to_be_bytes();
        let end = |name: &str, side, index| {
            let mac = [2, side, number[0], number[1], number[2], number[3]];
            VethEnd {
                name: name.into(),
                mac,
                mtu: 1500,
                index,
            }
        };
        // Ends with equal numbers come up a second late.
        here.create_veth(
            &end(&link, 1, 1000 + at as u32),
            &end("mgmt", 2, 99),
            &netns,
            1,
        )
        .unwrap();
        for (route, link, ip) in [(&here, link.as_str(), near), (&there, "mgmt", address)] {
            let index = route.link(link).unwrap().index;
            route.add_address(index, IpAddr::V4(ip), 30).unwrap();
            route.set_up(index, true).unwrap();
        }
        there.set_up(there.link("lo").unwrap().index, true).unwrap();
        let folder = above.join(name);
        fs::create_dir_all(folder.join("bin")).unwrap();
        for file in ["host_key", "host_key.pub"] {
            fs::copy(above.join(file), folder.join(file)).unwrap();
        }
        let place = folder.display();
        let config = format!(
            "{settings}\n{CHEAP}ListenAddress {address}\nHostKey {place}/host_key\nPidFile none\nAuthorizedKeysFile {}/key.pub\n\
             UsePAM no\nStrictModes no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin yes\n\
             PrintMotd no\nPrintLastLog no\nUseDNS no\n\
             SetEnv HOME={place} PATH={place}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n",
            above.display()
        );
        fs::write(folder.join("sshd_config"), config).unwrap();
        let mut host = SshHost {
            name: name.into(),
            address,
            netns,
            client: client.clone(),
            link,
            folder,
            sshd: None,
            over: None,
        };
        host.start();
        host
    }

    /// The host sees `folder` in the place of `name` from now on.
    pub fn put_over(&mut self, folder: &Path, name: &'static str) {
        self.kill_sshd();
        self.over = Some((folder.into(), name));
        self.start();
        self.wait_listening();
    }

    /// The command that starts its sshd, in its network namespace. The host has turns of its own on the CPUs, because it stands for a machine.
    pub fn sshd_arguments(&self) -> Vec<String> {
        let path = |path: &Path| path.display().to_string();
        let own = self.folder.join("run");
        for folder in [&own, Path::new(STATE)] {
            fs::create_dir_all(folder).unwrap();
        }
        let bind = r#"while [ "$1" != -- ]; do command -p mount --bind "$1" "$2" || exit; shift 2; done; shift; exec "$@""#;
        let mut words: Vec<String> = ["unshare", "--mount", "sh", "-c", bind, "sh"]
            .map(String::from)
            .into();
        words.extend([path(&own), STATE.into()]);
        words.extend(
            self.over
                .iter()
                .flat_map(|(folder, name)| [path(folder), (*name).into()]),
        );
        let (config, log) = (
            path(&self.folder.join("sshd_config")),
            path(&self.folder.join("log")),
        );
        words.extend(
            [
                "--",
                "/usr/sbin/sshd",
                "-D",
                "-r",
                "-f",
                &config,
                "-E",
                &log,
            ]
            .map(String::from),
        );
        words
    }

    /// Starts its sshd.
    pub fn start(&mut self) {
        let words = self.sshd_arguments();
        let mut command = self.netns.command(&words[0]);
        command.args(&words[1..]);
        command.stdin(Stdio::null()).process_group(0);
        // Hosts with CPUs of their own do not take those of other hosts and tests: each connection is a session, and an agent that sends
        // would come before all others.
        const CAP_SYS_NICE: libc::c_int = 23;
        // SAFETY: prctl is async-signal-safe, and changes only the child.
        unsafe {
            command.pre_exec(|| {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                libc::prctl(libc::PR_CAPBSET_DROP, CAP_SYS_NICE);
                Ok(())
            })
        };
        self.sshd = Some(command.spawn().expect("openssh-server is installed"));
    }

    /// Waits until its sshd answers.
    pub fn wait_listening(&self) {
        let end = Instant::now() + Duration::from_secs(60);
        let address = SocketAddr::from((self.address, 22));
        let answers = || {
            let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(1)).ok()?;
            stream.read_exact(&mut [0; 4]).ok()
        };
        self.client
            .enter(|| {
                while answers().is_none() {
                    assert!(Instant::now() < end, "no sshd: {}", self.log());
                    std::thread::sleep(Duration::from_millis(5));
                }
            })
            .unwrap();
    }

    /// The log of its sshd.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }

    /// A script that is run by this name on the host, before any program of that name; it begins with `#!`.
    pub fn stand_in(&self, name: &str, script: &str) {
        let path = self.folder.join("bin").join(name);
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Makes it a stand-in for a FreeBSD host, with these ports and its state in this folder: those programs of
    /// crates/linerate/tests/bsd-host that `which` names replace this machine's.
    pub fn freebsd(&self, state: &Path, ports: &[&str], which: impl Fn(&str) -> bool) {
        let stand_in = Path::new(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../linerate/tests/bsd-host"
        ));
        let mut new_host = Command::new(stand_in.join("new-host"));
        let made = new_host
            .arg(state)
            .args(["freebsd", &self.name])
            .args(ports)
            .output()
            .unwrap();
        assert!(made.status.success(), "{made:?}");
        for program in fs::read_dir(stand_in.join("bin"))
            .unwrap()
            .map(|entry| entry.unwrap())
        {
            let name = program.file_name().into_string().unwrap();
            let (state, path) = (state.display(), program.path());
            if which(&name) {
                self.stand_in(
                    &name,
                    &format!(
                        "#!/bin/sh\nBSD_HOST={state} exec {} \"$@\"\n",
                        path.display()
                    ),
                );
            }
        }
    }

    /// The folder of its stand-ins.
    pub fn programs(&self) -> PathBuf {
        self.folder.join("bin")
    }

    /// The processes in its namespace, with their command lines. Those that have ended are not counted.
    pub fn processes(&self) -> Vec<(i32, String)> {
        let inside = |pid: &i32| {
            fs::metadata(format!("/proc/{pid}/ns/net"))
                .is_ok_and(|file| file.ino() == self.netns.inode())
        };
        let name = |pid: i32| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            (
                pid,
                String::from_utf8_lossy(&line)
                    .replace('\0', " ")
                    .trim()
                    .to_owned(),
            )
        };
        let pids = fs::read_dir("/proc")
            .unwrap()
            .flatten()
            .filter_map(|e| e.file_name().to_str()?.parse().ok());
        pids.filter(inside)
            .map(name)
            .filter(|(_, line)| !line.is_empty())
            .collect()
    }

    /// Whether a process of its namespace has this command line.
    pub fn runs(&self, line: &str) -> bool {
        self.processes().iter().any(|(_, own)| own == line)
    }

    /// Processes of its namespace whose command line has this text.
    pub fn running(&self, text: &str) -> usize {
        self.processes()
            .iter()
            .filter(|(_, line)| line.contains(text))
            .count()
    }

    /// Sends a signal to all processes whose command line begins with `sshd`; how many there were.
    pub fn signal_sshd(&self, signal: i32) -> usize {
        let sshd = |(_, line): &&(i32, String)| {
            line.starts_with("sshd") || line.starts_with("/usr/sbin/sshd")
        };
        let processes = self.processes();
        // SAFETY: takes numbers only; the processes are in a namespace that was made here.
        processes
            .iter()
            .filter(sshd)
            .filter(|(pid, _)| unsafe { libc::kill(*pid, signal) } == 0)
            .count()
    }

    /// Kills the sshd that listens: no connections can be made any more, and those that are there live on.
    pub fn stop_listening(&self) {
        if let Some(sshd) = &self.sshd {
            // SAFETY: takes numbers only; the process is a child that has not been waited for.
            unsafe { libc::kill(sshd.id() as libc::pid_t, libc::SIGKILL) };
        }
    }

    /// Kills its sshd with all its connections.
    pub fn kill_sshd(&mut self) {
        // First the one that listens: a connection that is lost is made anew at once.
        self.stop_listening();
        if let Some(mut sshd) = self.sshd.take() {
            let _ = sshd.wait();
        }
        self.signal_sshd(libc::SIGKILL);
    }

    /// Another key for the host, as if it had been installed anew.
    pub fn change_key(&mut self) {
        self.kill_sshd();
        for file in ["host_key", "host_key.pub"] {
            fs::remove_file(self.folder.join(file)).unwrap();
        }
        keygen(&self.folder.join("host_key"));
        self.start();
        self.wait_listening();
    }

    /// Connects or cuts its link to the client.
    pub fn link(&self, up: bool) {
        let route = Route::open(&self.client).unwrap();
        route
            .set_up(route.link(&self.link).unwrap().index, up)
            .unwrap();
    }
}

impl Drop for SshHost {
    fn drop(&mut self) {
        for (pid, _) in self.processes() {
            // SAFETY: takes numbers only; the process is in a namespace that was made here.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        }
        if let Some(mut sshd) = self.sshd.take() {
            let _ = sshd.wait();
        }
    }
}

fn keygen(file: &Path) {
    let mut command = Command::new("ssh-keygen");
    command
        .args(["-q", "-t", "ecdsa", "-N", "", "-C", "test", "-f"])
        .arg(file);
    assert!(
        command
            .status()
            .expect("openssh-client is installed")
            .success()
    );
}

/// Looks every few milliseconds until something is so, for so long at most; how long it took.
#[track_caller]
pub fn wait_until(what: &str, within: Duration, mut so: impl FnMut() -> bool) -> Duration {
    let began = Instant::now();
    while !so() {
        assert!(began.elapsed() < within, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
    began.elapsed()
}
