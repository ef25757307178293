//! Everything that is known of a host, as plain values, from the answers to questions: so that checks can be tested without a host.

use super::detect::{self, Kernel, System};
use super::question::{PROGRAMS, Question};
use super::text::{self, bounded, lines, number, shown};
use super::{MOST_ENTRIES, bsd, linux};
use linerate_measure::collector::Counters;
use linerate_plan::lab::{HostAddress, OperatingSystem};
use linerate_wire::MacAddr;
use serde::Serialize;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// A host's clock, asked between two looks at ours. Seconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Clock {
    /// The host's answer, in whole seconds.
    pub theirs: f64,
    /// Ours when it was asked.
    pub asked: f64,
    /// Ours when it had answered.
    pub answered: f64,
}

impl Clock {
    /// By how much it is ahead of ours at least, in seconds; negative where it is behind; 0 where it may be right: it answers
    /// in whole seconds, some time between question and answer.
    pub fn ahead(&self) -> f64 {
        if self.theirs > self.answered {
            self.theirs - self.answered
        } else if self.theirs + 1.0 < self.asked {
            self.theirs + 1.0 - self.asked
        } else {
            0.0
        }
    }
}

/// Pause frames (IEEE 802.3 annex 31B): whether they are obeyed and sent; `None` where the system does not say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Pause {
    /// Those that arrive stop its transmitter.
    pub rx: Option<bool>,
    /// It sends them when its receiver is full.
    pub tx: Option<bool>,
}

impl Pause {
    /// Whether either is known to be on.
    pub fn is_on(&self) -> bool {
        self.rx == Some(true) || self.tx == Some(true)
    }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Interface {
    pub name: String,
    /// Whether it is switched on.
    pub up: bool,
    /// Whether it has a link; `None` where the system does not say: virtual interfaces often do not.
    pub link: Option<bool>,
    /// Its MTU in bytes.
    pub mtu: Option<u32>,
    pub mac: Option<MacAddr>,
    pub addresses: Vec<HostAddress>,
    /// Its medium in the system's words.
    pub media: Option<String>,
    /// Bit/s of its link.
    pub speed: Option<f64>,
    /// Whether it sends and receives at once.
    pub full_duplex: Option<bool>,
    pub pause: Pause,
}

/// Who has an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Neighbour {
    pub address: IpAddr,
    /// Its Ethernet address; `None` before an answer.
    pub mac: Option<MacAddr>,
    /// The interface that it is behind.
    pub interface: String,
    /// Whether it stays until it is deleted.
    pub permanent: bool,
}

/// The way to an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Way {
    /// Over whom; `None` where it is a neighbour.
    pub gateway: Option<IpAddr>,
    pub interface: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disk {
    /// Where it is mounted.
    pub mounted_on: String,
    /// Bytes that an ordinary user can still write; 0 where less than that is left.
    pub free: u64,
}

/// Why a host could not be reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreachable {
    pub why: String,
    pub remedy: String,
}

/// A question without an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unanswered {
    /// The program that was to answer it, with its arguments.
    pub command: String,
    /// The reason for no answer.
    pub why: Silence,
}

/// Why a program did not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Silence {
    /// There is no such program.
    Missing,
    /// It took too long, and was ended.
    TooSlow,
}

/// Known facts about a host.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Facts {
    /// Why it could not be reached at all, if it could not: then nothing else is known.
    pub unreachable: Option<Unreachable>,
    /// Questions without an answer.
    pub unanswered: Vec<Unanswered>,
    pub system: Option<System>,
    pub clock: Option<Clock>,
    /// The user's number; 0 is root.
    pub user: Option<u32>,
    /// Whether `sudo -n` works.
    pub sudo: Option<bool>,
    pub cpus: Option<u32>,
    pub interfaces: Vec<Interface>,
    /// By interface: frames that came in (`rx_packets`), came in with errors or found no room (`rx_missed`), went out (`tx_packets`), were to
    /// go out and did not (`tx_dropped`); without those that the system does not count.
    pub counters: BTreeMap<String, Counters>,
    /// Counters of protocols, such as `ip: packets forwarded`.
    pub statistics: BTreeMap<String, u64>,
    /// ARP and neighbour discovery.
    pub neighbours: Vec<Neighbour>,
    /// The way to addresses that were asked for; `None` if there is no way.
    pub ways: BTreeMap<IpAddr, Option<Way>>,
    pub disks: Vec<Disk>,
    /// Settings that were asked for.
    pub sysctls: BTreeMap<String, String>,
    /// Programs that were asked for and are there, with their paths.
    pub programs: BTreeMap<String, String>,
    /// Whether its root is mounted read-only.
    pub read_only_root: Option<bool>,
    /// The output of uname, files and mounts: all three together identify the system.
    pub(crate) told: [Vec<u8>; 3],
}

impl Facts {
    /// A host that could not be reached, with the reason and a remedy.
    pub fn unreachable(why: impl Into<String>, remedy: impl Into<String>) -> Self {
        let unreachable = Unreachable { why: why.into(), remedy: remedy.into() };
        Facts { unreachable: Some(unreachable), ..Facts::default() }
    }

    /// Takes the system from the lab file, where uname(1) names none that is known here.
    pub fn assume(&mut self, system: OperatingSystem) {
        self.system.get_or_insert_with(|| System::unnamed(system));
    }

    /// Facts of a host with nothing known but its kernel, for questions that are asked again and again.
    pub fn of_kernel(kernel: Kernel) -> Self {
        Facts { system: Some(System::unnamed(kernel.plain())), ..Facts::default() }
    }

    /// Its kernel, where known.
    pub fn kernel(&self) -> Option<Kernel> {
        self.system.as_ref().map(|s| Kernel::of(s.system))
    }

    /// The interface of that name.
    pub fn interface(&self, name: &str) -> Option<&Interface> {
        self.interfaces.iter().find(|i| i.name == name)
    }

    /// A setting that is a number.
    pub fn number(&self, sysctl: &str) -> Option<i64> {
        self.sysctls.get(sysctl)?.trim().parse().ok()
    }
}

impl Facts {
    /// Enters the answer to a question: the command's standard output, and its exit status.
    pub fn answer(&mut self, question: &Question, output: &[u8], status: i32) {
        let kernel = self.kernel();
        let is_linux = kernel == Some(Kernel::Linux);
        let answer = &*bounded(output);
        match question {
            Question::Uname => self.told(0, output),
            Question::Files => self.told(1, output),
            Question::Mounts => {
                self.read_only_root = text::read_only_root(answer);
                self.told(2, output);
            }
            Question::Interfaces if is_linux => self.interfaces = linux::interfaces(output),
            Question::Interfaces => self.interfaces = bsd::interfaces(answer),
            Question::Link(name) => self.with(name, |i| linux::ethtool(answer, i)),
            Question::Pause(name) if is_linux => self.with(name, |i| i.pause = linux::pause(answer)),
            Question::Pause(name) => {
                let settings = text::sysctls(answer);
                self.with(name, |i| bsd::pause(&settings, &mut i.pause));
                self.sysctls.extend(settings);
            }
            Question::Counters if is_linux => self.counters = linux::counters(answer),
            Question::Counters => self.counters = bsd::counters(answer),
            Question::Statistics => self.statistics = text::statistics(answer),
            Question::Neighbours if is_linux => self.neighbours = linux::neighbours(output),
            Question::Neighbours | Question::Neighbours6 => self.neighbours.extend(bsd::neighbours(answer)),
            Question::Way(to) => {
                let way = if is_linux { linux::way(output) } else { bsd::way(answer) };
                self.ways.insert(*to, way.filter(|_| status == 0));
            }
            Question::Disk => self.disks = disks(answer),
            Question::Cpus => self.cpus = number(answer),
            Question::User => self.user = number(answer),
            Question::Sudo => self.sudo = Some(status == 0),
            Question::Sysctls(_) => self.sysctls.extend(text::sysctls(answer)),
            Question::Programs => self.programs = programs(answer),
            Question::Date => {}
        }
    }

    /// Enters the answer to [`Question::Date`], with our clock before and after.
    pub fn date(&mut self, output: &[u8], asked: f64, answered: f64) {
        self.clock =
            number::<u64>(&bounded(output)).map(|theirs| Clock { theirs: theirs as f64, asked, answered });
    }

    fn with(&mut self, name: &str, change: impl FnOnce(&mut Interface)) {
        if let Some(interface) = self.interfaces.iter_mut().find(|i| i.name == name) {
            change(interface);
        }
    }

    fn told(&mut self, what: usize, output: &[u8]) {
        self.told[what] = output[..output.len().min(64 * 1024)].to_vec();
        let [uname, files, mount] = &self.told;
        self.system = detect::detect(uname, files, mount);
    }
}

/// File systems of `df -Pk`: `/dev/ada0p2 20307196 4213252 14469372 23% /`. A mount point may have blanks.
pub(super) fn disks(text: &str) -> Vec<Disk> {
    let parsed = lines(text).filter_map(|line| {
        let percent = line.find("% ")?;
        let before: Vec<&str> = line[..percent].split_ascii_whitespace().collect();
        // The free space stands before the percentage; beyond its reserve FreeBSD's is negative.
        let free: i64 = before.len().checked_sub(2).and_then(|at| before[at].parse().ok())?;
        let free = u64::try_from(free).unwrap_or(0).saturating_mul(1024);
        Some(Disk { mounted_on: shown(&line[percent + 2..]), free })
    });
    let mut disks: Vec<Disk> = Vec::new();
    for disk in parsed.take(MOST_ENTRIES) {
        // Two paths asked for may be in one file system.
        if !disks.contains(&disk) && disks.len() < 64 {
            disks.push(disk);
        }
    }
    disks
}

/// Programs of `command -v`: a path for each that there is.
pub(super) fn programs(text: &str) -> BTreeMap<String, String> {
    let found = lines(text).filter_map(|line| {
        let path = line.trim();
        let name = path.strip_prefix('/')?.rsplit('/').next()?;
        PROGRAMS.contains(&name).then(|| (name.to_string(), shown(path)))
    });
    found.collect()
}
