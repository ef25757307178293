//! Facts from the answers to questions.

use super::detect::{self, Kernel};
use super::facts::{Clock, Disk, Facts, Interface};
use super::question::{PROGRAMS, Question};
use super::text::{self, MOST_ENTRIES, bounded, lines, number, shown};
use super::{bsd, linux};
use std::collections::BTreeMap;

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
            Question::Pause(name) if is_linux => {
                self.with(name, |i| i.pause = linux::pause(answer))
            }
            Question::Pause(name) => {
                let settings = text::sysctls(answer);
                self.with(name, |i| bsd::pause(&settings, &mut i.pause));
                self.sysctls.extend(settings);
            }
            Question::Counters if is_linux => self.counters = linux::counters(answer),
            Question::Counters => self.counters = bsd::counters(answer),
            Question::Neighbours if is_linux => self.neighbours = linux::neighbours(output),
            Question::Neighbours | Question::Neighbours6 => {
                self.neighbours.extend(bsd::neighbours(answer))
            }
            Question::Way(to) => {
                let way = if is_linux {
                    linux::way(output)
                } else {
                    bsd::way(answer)
                };
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
        self.clock = number::<u64>(&bounded(output)).map(|theirs| Clock {
            theirs: theirs as f64,
            asked,
            answered,
        });
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
        let free: i64 = before
            .len()
            .checked_sub(2)
            .and_then(|at| before[at].parse().ok())?;
        let free = u64::try_from(free).unwrap_or(0).saturating_mul(1024);
        Some(Disk {
            mounted_on: shown(&line[percent + 2..]),
            free,
        })
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
        PROGRAMS
            .contains(&name)
            .then(|| (name.to_string(), shown(path)))
    });
    found.collect()
}
