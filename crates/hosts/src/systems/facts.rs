//! Everything that is known of a host, as plain values: so that checks can be tested without a host.

use super::counters::{self, Counters};
use super::detect::{self, Kernel, System};
use super::interface::Interface;
use super::neighbours::{self, Neighbour};
use super::question::Question;
use super::small::{self, Disk};
use super::text::{bounded, number};
use super::way::{self, Way};
use super::{ifconfig, linux};
use linerate_plan::lab::OperatingSystem;
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
    pub counters: Vec<Counters>,
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

    /// Enters the answer to a question: the command's standard output, and its exit status.
    pub fn answer(&mut self, question: &Question, output: &[u8], status: i32) {
        let kernel = self.kernel();
        let is_linux = kernel == Some(Kernel::Linux);
        let text = &*bounded(output);
        match question {
            Question::Uname => self.told(0, output),
            Question::Files => self.told(1, output),
            Question::Mounts => {
                self.read_only_root = small::read_only_root(text);
                self.told(2, output);
            }
            Question::Interfaces if is_linux => self.interfaces = linux::interfaces(output),
            Question::Interfaces => self.interfaces = ifconfig::interfaces(text),
            Question::Link(name) => self.with(name, |i| linux::ethtool(text, i)),
            Question::Pause(name) if is_linux => self.with(name, |i| i.pause = linux::pause(text)),
            Question::Pause(name) => {
                let settings = small::sysctls(text);
                self.with(name, |i| ifconfig::pause(&settings, &mut i.pause));
                self.sysctls.extend(settings);
            }
            Question::Counters if is_linux => self.counters = counters::proc_net_dev(text),
            Question::Counters => self.counters = counters::netstat_i(text),
            Question::Statistics => self.statistics = counters::netstat_s(text),
            Question::Neighbours if is_linux => self.neighbours = linux::neighbours(output),
            Question::Neighbours | Question::Neighbours6 => self.neighbours.extend(neighbours::table(text)),
            Question::Way(to) => {
                let way = if is_linux { linux::way(output) } else { way::way(text) };
                self.ways.insert(*to, way.filter(|_| status == 0));
            }
            Question::Disk => self.disks = small::disks(text),
            Question::Cpus => self.cpus = number(text),
            Question::User => self.user = number(text),
            Question::Sudo => self.sudo = Some(status == 0),
            Question::Sysctls(_) => self.sysctls.extend(small::sysctls(text)),
            Question::Programs => self.programs = small::programs(text),
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
