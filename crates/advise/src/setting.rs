//! A setting of a rule on a host: its present value, and how it is changed.

pub(crate) mod kept;

use crate::Runtime;
use crate::host::{ALL, Host};
use crate::item::{Lasting, Setting};
use linerate_hosts::configuration::{Card, Interrupt, mask_of};
use linerate_hosts::dut_changes::same;
use linerate_hosts::systems::Kernel;
use linerate_plan::card::CardValue;
use linerate_plan::offload::{OFFLOADS, Offload};
use linerate_plan::sysctl::{Lasts, lasts};
use serde_json::{Map, Value, json};

/// A setting of a rule.
#[derive(Clone, Copy)]
pub struct Set {
    /// `{if}` stands for the interface, `{dev}` for its node of FreeBSD's tree: `igb.0`; `{queue}` for each of its receive queues,
    /// `{irq}` for each of its queues' interrupts, `{cpu}` for each CPU; `{each}` for every interface of Linux, and for `default` and
    /// `all`.
    pub name: &'static str,
    pub place: Place,
    pub want: Want,
}

/// Where a setting is, and how it is changed.
#[derive(Clone, Copy)]
pub enum Place {
    /// The kernel's, by its name: `linerate_plan::sysctl` says where it lasts.
    Kernel,
    /// An offload: ethtool(8) and systemd.link(5), or ifconfig(8).
    Offload(&'static Offload),
    /// Another option of ethtool(8): its letter, its word, the key of systemd.link(5), and the present value.
    Ethtool {
        letter: &'static str,
        word: &'static str,
        link: &'static str,
        now: fn(&Scope) -> Option<String>,
    },
    /// A file below /sys or /proc with the name as its path, and its present value.
    Sys(fn(&Scope) -> Option<String>),
    /// The CPUs of an interrupt of FreeBSD: cpuset(1).
    CpuSet,
    /// A line of pf.conf(5).
    Pf,
}

/// A wanted value.
#[derive(Clone, Copy)]
pub enum Want {
    Is(&'static str),
    /// At least this number.
    Least(&'static str),
    /// At least this number, or the lists' elements each.
    LeastBy(fn(&Scope) -> Option<Worked>),
    By(fn(&Scope) -> Option<Worked>),
    /// The system's own: the line goes.
    Gone,
}

/// A value with its computation.
pub struct Worked {
    pub value: String,
    pub how: String,
}

pub(crate) fn worked(value: impl ToString, how: impl Into<String>) -> Option<Worked> {
    Some(Worked {
        value: value.to_string(),
        how: how.into(),
    })
}

pub(crate) const fn set(name: &'static str, place: Place, want: Want) -> Set {
    Set { name, place, want }
}

pub(crate) const fn is(name: &'static str, value: &'static str) -> Set {
    set(name, Place::Kernel, Want::Is(value))
}

/// A value that depends on the host.
pub(crate) const fn by(name: &'static str, by: fn(&Scope) -> Option<Worked>) -> Set {
    set(name, Place::Kernel, Want::By(by))
}

/// At least this number.
pub(crate) const fn least(name: &'static str, value: &'static str) -> Set {
    set(name, Place::Kernel, Want::Least(value))
}

/// At least a number that depends on the host.
pub(crate) const fn least_by(name: &'static str, by: fn(&Scope) -> Option<Worked>) -> Set {
    set(name, Place::Kernel, Want::LeastBy(by))
}

/// A setting whose line goes, in whatever file it is.
pub(crate) const fn gone(name: &'static str) -> Set {
    set(name, Place::Kernel, Want::Gone)
}

/// Facts that a value is computed from.
#[derive(Clone, Copy)]
pub struct Scope<'a> {
    pub host: &'a Host<'a>,
    pub card: Option<&'a Card>,
    /// The queue, the interrupt or the CPU, where the setting has one for each.
    pub nth: u32,
    /// The interface, where every one has the setting.
    pub each: &'a str,
}

/// Where systemd-tmpfiles(8) finds values of files for the next boot.
const TMPFILES: &str = "/etc/tmpfiles.d/linerate.conf";

impl Set {
    /// The setting on a host: without changes if it is as wanted; `None` if it has no value there.
    pub(crate) fn on(
        &self,
        scope: &Scope,
        gone: bool,
        flags: &[&Set],
    ) -> Option<(Setting, Option<String>)> {
        let host = scope.host;
        let name = self.name_on(scope);
        let variable = host.variable(&name);
        let written = host.found.written(variable);
        if gone || matches!(self.want, Want::Gone) {
            let (file, was) = written?;
            let lasting = Lasting {
                file: file.into(),
                key: format!("{variable}="),
                was: Some(format!("{variable}={was}")),
                ..Lasting::default()
            };
            let gone = Setting {
                name,
                now: Some(was.into()),
                lasting: Some(lasting),
                ..Setting::default()
            };
            return Some((gone, None));
        }
        if let (Place::Offload(offload), Some(card)) = (self.place, scope.card)
            && card.fixed.iter().any(|fixed| fixed == offload.name)
        {
            return None;
        }
        let Worked { value: wanted, how } = match self.want {
            Want::Is(value) | Want::Least(value) => worked(value, "")?,
            Want::By(by) | Want::LeastBy(by) => by(scope)?,
            Want::Gone => return None,
        };
        let now = self.now(scope, &name);
        let is_least = matches!(self.want, Want::Least(_) | Want::LeastBy(_));
        let wanted = match now.as_deref().filter(|_| is_least) {
            Some(now) => larger(now, &wanted),
            None => wanted,
        };
        let enough = |now: &String| same(now, &wanted);
        let label = self.label(scope, &name);
        let mut setting = Setting {
            name: label,
            now,
            wanted: Some(wanted.clone()),
            ..Setting::default()
        };
        if !setting.now.as_ref().is_some_and(enough) {
            (setting.runtime, setting.lasting) = self.change(scope, &name, &wanted, flags);
            if let Some(place) = self.menu(host) {
                (setting.lasting, setting.place) = (None, Some(place.into()));
            } else if self.is_of_loader() && host.is_appliance() {
                // Their own file for it, which they do not write anew.
                let own = |file: Lasting| Lasting {
                    file: "/boot/loader.conf.local".into(),
                    ..file
                };
                setting.lasting = setting.lasting.map(own);
            }
        }
        Some((setting, Some(how).filter(|how| !how.is_empty())))
    }

    /// The name with the scope's values in place of `{if}` and the like.
    fn name_on(&self, scope: &Scope) -> String {
        let card = scope.card_name();
        let node = linerate_hosts::systems::device(card).unwrap_or_default();
        let (node, nth) = (
            node.strip_prefix("dev.").unwrap_or(card),
            scope.nth.to_string(),
        );
        let values = [
            ("if", card),
            ("dev", node),
            ("queue", &nth),
            ("cpu", &nth),
            ("irq", &nth),
            ("each", scope.each),
        ];
        let filled =
            |name: String, (of, value): &(&str, &str)| name.replace(&format!("{{{of}}}"), value);
        values.iter().fold(self.name.to_string(), filled)
    }

    /// The setting as administrators write it.
    fn label(&self, scope: &Scope, name: &str) -> String {
        let card = scope.card_name();
        match self.place {
            Place::Offload(offload) => match scope.host.kernel {
                Kernel::Linux => format!("ethtool -K {card} {}", offload.ethtool),
                _ => format!("ifconfig {card} {}", offload.freebsd[1]),
            },
            Place::Ethtool { letter, word, .. } => format!("ethtool {letter} {card} {word}"),
            _ => name.into(),
        }
    }

    /// Whether the next boot alone can change it.
    pub(crate) fn is_of_loader(&self) -> bool {
        lasts(self.name) == Lasts::Loader
    }

    /// The menu of OPNsense or pfSense that has the setting: what these write into /etc is gone at the next boot, or when somebody saves
    /// a page.
    fn menu(&self, host: &Host) -> Option<&'static str> {
        if !host.is_appliance() {
            return None;
        }
        let [opnsense, pfsense] = match self.place {
            Place::Kernel if !self.is_of_loader() => [
                "System > Settings > Tunables",
                "System > Advanced > System Tunables",
            ],
            Place::Pf => [
                "Firewall > Settings > Advanced > Firewall Maximum States",
                "System > Advanced > Firewall & NAT > Firewall Maximum States",
            ],
            Place::Offload(_) => ["Interfaces > Settings", "System > Advanced > Networking"],
            _ => return None,
        };
        Some(if host.is_of("OPNsense") {
            opnsense
        } else {
            pfsense
        })
    }

    fn now(&self, scope: &Scope, name: &str) -> Option<String> {
        let host = scope.host;
        match self.place {
            Place::Kernel => host.value(name).map(String::from),
            Place::Offload(offload) => scope
                .card?
                .features
                .get(offload.name)
                .map(|on| CardValue::Switch(*on).per(1)),
            Place::Ethtool { now, .. } | Place::Sys(now) => now(scope),
            Place::CpuSet => {
                Some(cpus(&scope.interrupt()?.1.allowed)).filter(|cpus| !cpus.is_empty())
            }
            Place::Pf => host.found.table("pf")?.most.map(|n| n.to_string()),
        }
    }

    fn change(&self, scope: &Scope, name: &str, wanted: &str, flags: &[&Set]) -> Change {
        let is_linux = scope.host.kernel == Kernel::Linux;
        match self.place {
            Place::Kernel => scope.kernel(name, scope.host.lasts(self.name), wanted),
            Place::Pf => {
                let line = Lasting::of("/etc/pf.conf", name, format!("{name} {wanted}"));
                let option = true;
                (None, Some(Lasting { option, ..line }))
            }
            Place::Offload(offload) if is_linux => {
                scope.ethtool("-K", offload.ethtool, offload.link, wanted)
            }
            Place::Offload(offload) => scope.ifconfig(offload.freebsd[1], wanted, flags),
            Place::Ethtool {
                letter, word, link, ..
            } => scope.ethtool(letter, word, link, wanted),
            Place::CpuSet => (
                Some(Runtime::CpuSet {
                    irq: scope.nth,
                    cpus: wanted.into(),
                }),
                None,
            ),
            Place::Sys(_) => {
                // Numbers of interrupts change.
                let lasts = !name.starts_with("/proc/irq/");
                let line = format!("w {name} - - - - {wanted}");
                let key = format!("w {name} ");
                let lasting = Lasting::of(TMPFILES, &key, line);
                (
                    Some(Runtime::File {
                        path: name.into(),
                        value: wanted.into(),
                    }),
                    Some(lasting).filter(|_| lasts),
                )
            }
        }
    }
}

/// How a setting is changed at once, and for good.
type Change = (Option<Runtime>, Option<Lasting>);

/// `lro` or `-lro`.
fn flag(ifconfig: &str, is_off: bool) -> String {
    format!("{}{ifconfig}", if is_off { "-" } else { "" })
}

impl<'a> Scope<'a> {
    /// The whole host.
    pub(crate) fn of(host: &'a Host<'a>) -> Scope<'a> {
        Scope {
            host,
            card: None,
            nth: 0,
            each: "",
        }
    }

    /// Empty where the setting is not a card's.
    fn card_name(&self) -> &'a str {
        self.card.map_or("", |card| &card.name)
    }

    /// The interrupt of a queue, with the queue's number.
    pub(crate) fn interrupt(&self) -> Option<(u32, &'a Interrupt)> {
        self.card?
            .queue_interrupts()
            .into_iter()
            .find(|(_, irq)| irq.number == self.nth)
    }

    /// A setting that the kernel knows by name, and where it lasts.
    fn kernel(&self, name: &str, lasts: Lasts, wanted: &str) -> Change {
        let at_once = Runtime::Sysctl {
            name: name.into(),
            value: wanted.into(),
        };
        let sysctl = |file, equals| {
            let line = format!("{name}{equals}{wanted}");
            Some(self.line(file, name, line))
        };
        let host = self.host;
        let lasting = match lasts {
            Lasts::Sysctl if !self.each.is_empty() && !host.stays(self.each) => None,
            Lasts::Sysctl if host.kernel == Kernel::Linux => {
                sysctl("/etc/sysctl.d/90-linerate.conf", " = ")
            }
            Lasts::Sysctl => sysctl("/etc/sysctl.conf", "="),
            Lasts::Rc(variable) => self.quoted("/etc/rc.conf", variable, wanted),
            Lasts::RcYes(variable) => self.quoted("/etc/rc.conf", variable, "YES"),
            Lasts::Loader => self.quoted("/boot/loader.conf", name, wanted),
        };
        (Some(at_once).filter(|_| lasts != Lasts::Loader), lasting)
    }

    /// A line of a file: where its key is written down already, in one of the files that are read for the same purpose.
    fn line(&self, file: &str, key: &str, line: String) -> Lasting {
        let stem = file.split('.').next().unwrap_or(file);
        let written = self
            .host
            .found
            .written(key)
            .filter(|(known, _)| known.starts_with(stem));
        let was = written.map(|(_, was)| format!("{key}={was}"));
        let file = written.map_or(file, |(known, _)| known);
        let line = Lasting::of(file, &format!("{key}="), line);
        Lasting { was, ..line }
    }

    fn quoted(&self, file: &str, key: &str, value: &str) -> Option<Lasting> {
        Some(self.line(file, key, format!("{key}=\"{value}\"")))
    }

    fn ethtool(&self, letter: &str, word: &str, link: &str, wanted: &str) -> Change {
        let card = self.card_name();
        let words = [letter, card]
            .into_iter()
            .chain(word.split(' '))
            .chain([wanted]);
        let arguments = words.map(String::from).collect();
        let value = match wanted {
            "on" => "yes",
            "off" => "no",
            other => other,
        };
        (Some(Runtime::Ethtool { arguments }), self.link(link, value))
    }

    /// A flag of ifconfig(8). The variable of rc.conf gets all `flags` of the rule.
    fn ifconfig(&self, name: &str, wanted: &str, flags: &[&Set]) -> Change {
        let card = self.card_name();
        let variable = format!("ifconfig_{card}");
        let lasting = self.host.found.written(&variable).and_then(|(file, was)| {
            let mut words: Vec<String> = was.split_ascii_whitespace().map(String::from).collect();
            for set in flags {
                let Place::Offload(Offload {
                    freebsd: [_, given],
                    ..
                }) = set.place
                else {
                    continue;
                };
                words.retain(|known| known.trim_start_matches('-') != *given);
                words.push(flag(given, matches!(set.want, Want::Is("off"))));
            }
            self.quoted(file, &variable, &words.join(" "))
        });
        let arguments = vec![card.into(), flag(name, wanted == "off")];
        (Some(Runtime::Ifconfig { arguments }), lasting)
    }

    /// A line of systemd.link(5) for the card. A file of its own takes the place of the default one, so it repeats that one's policies.
    fn link(&self, key: &str, value: &str) -> Option<Lasting> {
        // Virtual interfaces are made anew by those who need them.
        let card = self
            .card
            .filter(|card| !key.is_empty() && card.kind.is_none())?;
        let slot = card.pci.slot.as_deref().filter(|slot| slot.contains(':'));
        let matches = slot.map_or(format!("OriginalName={}", card.name), |slot| {
            format!("Path=pci-{slot}")
        });
        let heading = format!(
            "[Match]\n{matches}\n\n[Link]\nNamePolicy=keep kernel database onboard slot path\nMACAddressPolicy=persistent"
        );
        let file = format!("/etc/systemd/network/50-linerate-{}.link", card.name);
        let line = Lasting::of(&file, &format!("{key}="), format!("{key}={value}"));
        Some(Lasting {
            heading: Some(heading),
            ..line
        })
    }
}

/// CPUs as a list: `0,2`.
pub(crate) fn cpus(cpus: &[u32]) -> String {
    cpus.iter()
        .map(u32::to_string)
        .collect::<Vec<_>>()
        .join(",")
}

/// The larger of each two numbers of two lists; the wanted text where they are none, or not equally many.
fn larger(now: &str, wanted: &str) -> String {
    let numbers = |text: &str| {
        text.split_ascii_whitespace()
            .map(|word| word.parse::<i128>().ok())
            .collect::<Option<Vec<_>>>()
    };
    match (numbers(now), numbers(wanted)) {
        (Some(now), Some(wanted)) if now.len() == wanted.len() => {
            let larger = now.iter().zip(&wanted).map(|(a, b)| a.max(b).to_string());
            larger.collect::<Vec<_>>().join(" ")
        }
        _ => wanted.into(),
    }
}

/// The changes as keys of a plan's variant.
pub(crate) fn patch(settings: &[Setting]) -> Option<Value> {
    let (mut sysctls, mut boot, mut interface) = (Map::new(), Map::new(), Map::new());
    for setting in settings {
        let Some(wanted) = &setting.wanted else {
            continue;
        };
        let value = wanted
            .parse::<i64>()
            .map_or_else(|_| json!(wanted), |n| json!(n));
        match (&setting.runtime, &setting.lasting) {
            // The lab's interfaces have other names, and the values of `default`.
            (Some(Runtime::Sysctl { name, .. }), _) => match name.split(".conf.").nth(1) {
                Some(of) if !ALL.iter().any(|all| of.starts_with(all)) => {}
                _ => drop(sysctls.insert(name.clone(), value)),
            },
            (Some(Runtime::Ethtool { arguments } | Runtime::Ifconfig { arguments }), _) => {
                let word = arguments
                    .iter()
                    .rev()
                    .map(|word| word.trim_start_matches('-'));
                let offload = word.into_iter().find_map(|word| {
                    OFFLOADS
                        .into_iter()
                        .find(|offload| [offload.ethtool, offload.freebsd[1]].contains(&word))
                });
                if let Some(feature) = offload.and_then(|offload| offload.feature) {
                    interface.insert(feature.key().into(), json!(wanted == "on"));
                }
            }
            (Some(Runtime::File { path, value: mask }), _) if path.ends_with("/rps_cpus") => {
                // The lab's interfaces have one queue.
                let list = Some(cpus(&mask_of(mask))).filter(|list| !list.is_empty());
                interface.extend(list.map(|list| ("rps".into(), json!(list))));
            }
            (None, Some(Lasting { file, .. })) if file.contains("loader.conf") => {
                drop(boot.insert(setting.name.clone(), value))
            }
            _ => {}
        }
    }
    let parts = [
        ("sysctls", sysctls),
        ("boot", boot),
        ("interface", interface),
    ];
    let known: Map<String, Value> = parts
        .into_iter()
        .filter(|(_, keys)| !keys.is_empty())
        .map(|(name, keys)| (name.into(), keys.into()))
        .collect();
    (!known.is_empty()).then_some(Value::Object(known))
}
