//! A saved directory as answers: outputs of commands in files that are named after them (`sysctl-a.txt`, `pfctl-si.txt`), or a
//! file system tree (`etc/sysctl.conf`, `boot/loader.conf`, `proc/sys/…`, `sys/class/net/…`).

use super::boot::{self, glob, is_secret};
use super::conversions::{Convert, section};
use super::questions::{Asked, Read, of_family};
use super::{MOST_BYTES, VERSION, interfaces, kept, settings};
use crate::systems::bsd::{device, is_stacked, kind};
use crate::systems::text::{lines, sections};
use crate::systems::{ALL, Kernel, OPNSENSE, is_name};
use linerate_measure::record::{Collected, SlotFacts};
use std::collections::BTreeMap;

/// Whether a file of a saved directory is of use, by its path in it.
pub fn is_wanted(path: &str) -> bool {
    boot::path_of(path).is_some()
        || path.starts_with("proc/sys/")
        || !path.contains('/') && ["sysctl", "ethtool"].contains(&words(path).0)
        || ALL
            .iter()
            .flat_map(|kernel| of_family(*kernel))
            .any(|asked| convert(asked, path).is_some())
}

/// How a file of a saved directory becomes an answer to a question, if it does, and the place of its form among those that are
/// alternatives: `pfctl-sr | pfctl-sa` is the first of them that is there.
fn convert((.., read, saved): &Asked, path: &str) -> Option<(usize, Convert)> {
    let (program, arguments) = words(path);
    let name = if path.contains('/') {
        path.into()
    } else {
        format!("{program}-{}", arguments.concat())
    };
    let all = saved.iter().flat_map(|(forms, convert)| {
        let alternatives = forms.split('|').enumerate();
        alternatives.map(move |(at, forms)| (at, forms, *convert))
    });
    // Different parts of an answer are no alternatives of each other, but each output with rules has all of them.
    let has_all = matches!(read, Read::Rules(_));
    let mut all = all.enumerate();
    let (place, (at, _, convert)) = all.find(|(_, (_, forms, _))| {
        let mut forms = forms.split_whitespace();
        forms.any(|form| glob(form, &name))
    })?;
    Some((if has_all { place } else { at }, convert))
}

/// The program and its arguments: `pfctl-si.txt` -> `pfctl`, `si`; `sysctl-dev-em.txt` -> `sysctl`, `dev`, `em`.
fn words(path: &str) -> (&str, Vec<&str>) {
    let name = path.rsplit('/').next().unwrap_or_default();
    let ends = [".txt", ".out", ".log", ".json"];
    let name = ends
        .iter()
        .find_map(|end| name.strip_suffix(end))
        .unwrap_or(name);
    let mut words = name.split(['-', '_', ' ']).filter(|word| !word.is_empty());
    // `dmesg.boot`, `sysctl.all`.
    let program = words
        .next()
        .and_then(|word| word.split('.').next())
        .unwrap_or_default();
    (program, words.collect())
}

/// The answers of a saved directory, by the paths and texts of its files. Only answers to the [`questions`](super::questions) are
/// kept, and no lines that may hold secrets.
///
/// # Errors
/// No file shows which system it is.
pub fn of_saved(files: &BTreeMap<String, String>) -> Result<SlotFacts, String> {
    let kernel = kernel(files).ok_or(
        "no file in it shows the system: save uname-a.txt, sysctl-a.txt, boot/loader.conf, etc/rc.conf, proc/sys or etc/os-release",
    )?;
    let mut saved = Saved {
        kernel,
        answers: Vec::new(),
        settings: String::new(),
    };
    for (path, text) in files {
        saved.file(path, text);
    }
    // In the order in which a host is asked: a later answer corrects an earlier one.
    for asked in of_family(kernel) {
        let all = files.iter().filter_map(|(path, text)| {
            let (place, convert) = convert(asked, path)?;
            Some((place, path, text, convert))
        });
        let all: Vec<_> = all.collect();
        let first = all.iter().map(|(place, ..)| *place).min();
        let of_first = all.iter().filter(|(place, ..)| Some(*place) == first);
        // Each file has all rules.
        let most = match asked.3 {
            Read::Rules(_) => 1,
            _ => usize::MAX,
        };
        for (_, path, text, convert) in of_first.take(most) {
            saved.add(asked.1, &convert(path, text));
        }
    }
    Ok(saved.facts())
}

fn kernel(files: &BTreeMap<String, String>) -> Option<Kernel> {
    let said = files.iter().find_map(|(path, text)| match words(path).0 {
        "uname" => Kernel::said(text),
        "sysctl" if boot::path_of(path).is_none() => lines(text).find_map(|line| {
            Kernel::said(
                line.strip_prefix("kern.ostype")?
                    .trim_start_matches([':', '=', ' ']),
            )
        }),
        _ => None,
    });
    let any = |is: &dyn Fn(&str, &str) -> bool| files.iter().any(|(path, text)| is(path, text));
    let has = |begins: &[&str]| any(&|path, _| begins.iter().any(|begin| path.starts_with(begin)));
    let sets = |names: &[&str]| {
        let set = |line: &str| names.iter().any(|name| line.starts_with(name));
        any(&|path, text| words(path).0 == "sysctl" && text.lines().any(set))
    };
    let boots = |path: &str, _: &str| {
        boot::path_of(path)
            .is_some_and(|of| of.starts_with("/boot/") || of.starts_with("/etc/rc.conf"))
    };
    let signs = [
        // FreeBSD has an os-release, too.
        (
            Kernel::FreeBsd,
            has(&[OPNSENSE.trim_start_matches('/'), "opnsense-version"]),
        ),
        (
            Kernel::Linux,
            has(&["proc/", "sys/", "etc/os-release", "ethtool", "nft", "lscpu"]),
        ),
        (Kernel::FreeBsd, any(&boots)),
        (Kernel::Linux, sets(&["net.ipv4.", "net.core."])),
        (Kernel::FreeBsd, sets(&["kern.random.harvest", "dev."])),
        (
            Kernel::FreeBsd,
            any(&|path, text| path.starts_with("dmesg") && text.contains("FreeBSD")),
        ),
        (Kernel::FreeBsd, has(&["pciconf"])),
    ];
    said.or_else(|| {
        signs
            .into_iter()
            .find_map(|(kernel, shows)| shows.then_some(kernel))
    })
}

struct Saved {
    kernel: Kernel,
    /// Answers by question, in their order.
    answers: Vec<(String, String)>,
    /// All settings together: each answer replaces the one before it.
    settings: String,
}

impl Saved {
    fn add(&mut self, question: &str, text: &str) {
        let known = self.answers.iter_mut().find(|(known, _)| known == question);
        match known {
            Some((_, answer)) => answer.push_str(text),
            None => self.answers.push((question.into(), text.into())),
        }
    }

    fn file(&mut self, path: &str, text: &str) {
        if let Some(file) = boot::path_of(path) {
            let text = if file.starts_with("/proc/") {
                &text.replace(' ', "\n")
            } else {
                text
            };
            let asked = lines(text).filter(|line| boot::is_asked(self.kernel, &file, line));
            return self.add(
                "boot",
                &section(&file, &asked.collect::<Vec<_>>().join("\n")),
            );
        }
        if let Some(name) = path.strip_prefix("proc/sys/") {
            return self.settings.push_str(&format!(
                "{} = {}\n",
                name.replace('/', "."),
                text.trim()
            ));
        }
        match words(path) {
            _ if path.contains('/') => {}
            ("sysctl", _) => self.settings.push_str(&format!("{text}\n")),
            ("ethtool", words) => {
                // ethtool-k-eth0, ethtool-eth0-k, ethtool-n-eth0-rx-flow-hash-udp4: one interface, one letter.
                let is_name = |word: &&&str| {
                    word.len() > 1 && word.contains(|c: char| c.is_ascii_digit()) && is_name(word)
                };
                let letter = words.iter().find(|word| word.len() == 1);
                if let (Some(letter), Some(name), Some(last)) =
                    (letter, words.iter().find(is_name), words.last())
                {
                    self.add(
                        &format!("ethtool {name}"),
                        &section(&format!("-{letter} {name} {last}"), text),
                    );
                }
            }
            _ => {}
        }
    }

    fn facts(mut self) -> SlotFacts {
        let found = self.interfaces();
        let devices: Vec<(String, String)> = found
            .iter()
            .filter_map(|name| Some((name.clone(), device(name)?)))
            .collect();
        let settings = std::mem::take(&mut self.settings);
        let kernel = self.kernel;
        let is_wanted = |name: &str| {
            settings::is_asked(kernel, name)
                || ["kernel.osrelease", "kern.osrelease"].contains(&name)
        };
        // Before the cards, which correct it.
        self.answers
            .insert(0, ("sysctl".into(), chosen(&settings, is_wanted)));
        if kernel == Kernel::FreeBsd {
            for (_, device) in devices {
                let prefix = format!("{device}.");
                let own = chosen(&settings, |name| name.starts_with(&prefix));
                self.add(&format!("sysctl -i {device}"), &own);
            }
        }
        let answers = self
            .answers
            .into_iter()
            .filter(|(_, text)| !text.trim().is_empty());
        let answers = answers.map(|(command, text)| Collected {
            command,
            output: Ok(kept(text, MOST_BYTES)),
        });
        SlotFacts {
            version: VERSION,
            slot: 0,
            kernel: self.kernel.name().into(),
            interfaces: found,
            answers: answers.collect(),
        }
    }

    /// Interfaces of the listing; without one, those with settings of their own.
    fn interfaces(&self) -> Vec<String> {
        let answer = |question: &str| {
            self.answers
                .iter()
                .find(|(known, _)| known == question)
                .map_or("", |(_, text)| text.as_str())
        };
        let listed = interfaces(
            self.kernel,
            answer(if self.kernel == Kernel::Linux {
                "ip -d -j addr show"
            } else {
                "ifconfig -a"
            }),
        );
        if !listed.is_empty() {
            return listed;
        }
        let mut found: Vec<String> = Vec::new();
        let mut see = |name: &str| {
            if is_name(name)
                && !name.starts_with("lo")
                && found.len() < 64
                && !found.iter().any(|known| known == name)
            {
                found.push(name.into());
            }
        };
        for (_, text) in sections(answer("boot")) {
            for name in lines(text)
                .filter_map(|line| line.trim().strip_prefix("ifconfig_")?.split('=').next())
            {
                let is_plain = name.ends_with(|c: char| c.is_ascii_digit()) && !name.contains('_');
                if is_plain && !is_stacked(name) {
                    see(name);
                }
            }
        }
        // Interfaces with a device; without any, all.
        for with in ["/device/", "/"] {
            for line in lines(answer("interfaces")) {
                let of = line
                    .strip_prefix("/sys/class/net/")
                    .and_then(|rest| rest.split_once(with));
                of.into_iter().for_each(|(name, _)| see(name));
            }
            if answer("interfaces").contains("/device/") {
                break;
            }
        }
        for (question, _) in &self.answers {
            question
                .strip_prefix("ethtool ")
                .into_iter()
                .for_each(&mut see);
        }
        for line in lines(answer("vmstat -i")) {
            let name = line
                .strip_prefix("irq")
                .and_then(|rest| rest.split_once(": "))
                .map(|(_, name)| name);
            let name = name
                .and_then(|name| name.split([':', ' ']).next())
                .unwrap_or_default();
            if CARDS.contains(&kind(name)) {
                see(name);
            } else if kind(name).ends_with("nex") {
                // Two ports of a Chelsio card.
                ["cxl0", "cxl1"].into_iter().for_each(&mut see);
            }
        }
        found
    }
}

/// Drivers of cards, as FreeBSD and OpenBSD name interfaces.
const CARDS: [&str; 16] = [
    "em", "igb", "igc", "ix", "ixl", "ice", "cxl", "cc", "mce", "mlxen", "oce", "re", "bge", "bce",
    "bxe", "vtnet",
];

/// Settings of these names, with the lines that belong to them.
fn chosen(settings: &str, wanted: impl Fn(&str) -> bool) -> String {
    let mut keep = false;
    let mut out = String::new();
    for line in lines(settings) {
        let name = line.find([':', '=']).map(|at| line[..at].trim());
        let name = name.filter(|name| {
            name.contains('.')
                && name
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || "._-%/".contains(c))
        });
        if let Some(name) = name {
            keep = wanted(name) && !is_secret(name);
        }
        if keep {
            out.push_str(line);
            out.push('\n');
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = include_str!("../../../../docs/advise.md");

    /// Rows of the table of docs/advise.md: systems, command, file.
    fn rows() -> Vec<(Vec<Kernel>, &'static str, &'static str)> {
        let (_, table) = PAGE
            .split_once("| system | command | file |\n|---|---|---|\n")
            .unwrap();
        let row = |line: &'static str| {
            let mut cells = line.split('|').map(|cell| cell.trim().trim_matches('`'));
            let systems = cells.nth(1).unwrap().split(", ");
            let kernels = systems.map(|name| Kernel::named(&name.to_lowercase()).unwrap());
            (
                kernels.collect(),
                cells.next().unwrap(),
                cells.next().unwrap(),
            )
        };
        let lines = table.lines().take_while(|line| line.starts_with('|'));
        lines.map(row).collect()
    }

    /// The document names each command whose output is read, with a file name by which it is known.
    #[test]
    fn the_document_has_every_command() {
        let reads = |kernel: Kernel, file: &str| {
            let asked = of_family(kernel).filter(move |asked| asked.0.contains(&kernel));
            let of_file = asked.filter(|asked| convert(asked, file).is_some());
            of_file.map(|asked| asked.1).collect::<Vec<_>>()
        };
        for (kernels, command, file) in rows() {
            let words = command.split(' ').map(|word| word.trim_start_matches('-'));
            assert_eq!(words.collect::<Vec<_>>().join("-") + ".txt", file);
            assert!(is_wanted(file), "{file}");
            let special = ["sysctl", "ethtool"].contains(&self::words(file).0);
            for kernel in kernels {
                assert!(
                    special || !reads(kernel, file).is_empty(),
                    "{kernel:?}: {file}"
                );
            }
        }
        for kernel in [Kernel::Linux, Kernel::FreeBsd, Kernel::OpenBsd] {
            let of_rows: Vec<&str> = rows()
                .into_iter()
                .filter(|(kernels, ..)| kernels.contains(&kernel))
                .flat_map(|(_, _, file)| reads(kernel, file))
                .collect();
            let is_output = |asked: &&Asked| {
                let mut forms = asked
                    .4
                    .iter()
                    .flat_map(|(forms, _)| forms.split([' ', '|']));
                asked.0.contains(&kernel)
                    && forms.any(|form| !form.is_empty() && !form.contains('/'))
            };
            for asked in of_family(kernel).filter(is_output) {
                assert!(
                    of_rows.contains(&asked.1),
                    "{kernel:?}: no row for {}",
                    asked.1
                );
            }
        }
    }
}
