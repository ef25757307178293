//! Values in the output of programs.

use crate::configuration::{Card, Configuration, Interrupt, ethtool, mask_of};
use crate::systems::Kernel;
use linerate_measure::record::Collected;
use linerate_plan::settings::cpu_list;

/// Where in an output the value is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Form {
    /// All of it, without white space around.
    Trimmed,
    /// All of it, to the byte.
    Whole,
    /// The number after this word: `mtu` of ifconfig.
    After(&'static str),
    /// Whether this is among the words in `<...>`: as ifconfig is given it, `tso4` or `-tso4`.
    Flag {
        /// As it is printed.
        shown: &'static str,
        /// As it is given.
        given: &'static str,
    },
    /// The first word behind the last line that begins with this and a colon: `rx-usecs` of ethtool. Behind a second name on that
    /// line if there is one after a slash: `Adaptive RX/TX`.
    Line(String),
    /// Words of several lines, each behind the name by which it is set: `rx off tx off` of `RX` and `TX`.
    Lines(&'static [(&'static str, &'static str)]),
    /// The contents of lines that name a file and its content.
    Values,
    /// Values that are masks of CPUs, each as a list.
    Masks,
    /// The interrupts of the queues of this interface of Linux, each as the queue's rank, its number, the CPU that takes it, and those
    /// that may.
    Interrupts(String),
    /// Lines of this kind for all interrupts of the card.
    AllInterrupts(String),
    /// The CPUs that take those of the queues, a line for each queue.
    InterruptCpus(String),
    /// The fields of the hash, as letters: `sdfn`.
    HashFields,
    /// The table of queues, as words: `equal 4`.
    Indirection,
    /// The CPUs of an interrupt, by cpuset(1): `irq 264 mask: 0, 1`.
    CpuSet,
}

impl Form {
    /// The value; `None` where it is not there.
    pub fn value(&self, output: &str) -> Option<String> {
        match self {
            Form::Trimmed => Some(output.trim())
                .filter(|text| !text.is_empty())
                .map(String::from),
            Form::Whole => Some(output.into()),
            Form::After(word) => {
                let mut words = output.split_whitespace().skip_while(|w| w != word);
                let value = words.nth(1)?;
                value
                    .chars()
                    .all(|c| c.is_ascii_digit())
                    .then(|| value.into())
            }
            Form::Flag { shown, given } if output.contains('<') => {
                let lists = output
                    .split('<')
                    .skip(1)
                    .filter_map(|rest| Some(rest.split_once('>')?.0));
                let on = lists
                    .flat_map(|list| list.split(','))
                    .any(|flag| flag.trim() == *shown);
                Some(if on {
                    (*given).into()
                } else {
                    format!("-{given}")
                })
            }
            Form::Flag { .. } => None,
            Form::Lines(words) => {
                let of = |(given, shown): &(&str, &str)| {
                    Some(format!("{given} {}", word_of_line(shown, output)?))
                };
                Some(words.iter().map(of).collect::<Option<Vec<_>>>()?.join(" "))
            }
            Form::Values | Form::Masks => {
                let of = |line: &str| {
                    let value = line.split_once(' ')?.1;
                    Some(if *self == Form::Masks {
                        cpu_list(&mask_of(value))
                    } else {
                        value.into()
                    })
                };
                output
                    .lines()
                    .map(of)
                    .collect::<Option<Vec<_>>>()
                    .map(|lines| lines.join("\n"))
            }
            Form::Interrupts(name) => Some(
                by_queue(name, output)
                    .iter()
                    .map(|(rank, irq)| line_of(&rank.to_string(), irq))
                    .collect(),
            ),
            Form::AllInterrupts(name) => {
                let card = card(name, output);
                let queues = card.queue_interrupts();
                let of = |irq: &Interrupt| {
                    let is_queue = queues.iter().any(|(_, of)| of.number == irq.number);
                    line_of(if is_queue { "0" } else { "-" }, irq)
                };
                Some(card.interrupts.iter().map(of).collect())
            }
            Form::InterruptCpus(name) => Some(cpus_by_queue(name, output)),
            Form::HashFields => ethtool::shown_letters(output),
            Form::Indirection => ethtool::shown_spread(output),
            Form::CpuSet => cpus_of_cpuset(output),
            Form::Line(name) => word_of_line(name, output),
        }
    }
}

/// The value of [`Form::Line`].
fn word_of_line(name: &str, output: &str) -> Option<String> {
    let (name, second) = name
        .split_once('/')
        .map_or((name, None), |(n, s)| (n, Some(s)));
    let of_line = |line: &str| -> Option<String> {
        let rest = line
            .trim_start()
            .strip_prefix(name)?
            .trim_start()
            .strip_prefix(':')?;
        let mut words = rest.split_whitespace();
        let Some(second) = second else {
            return words.next().map(String::from);
        };
        words.find(|word| word.strip_suffix(':') == Some(second))?;
        words.next().map(String::from)
    };
    output.lines().rev().find_map(of_line)
}

fn cpus_of_cpuset(output: &str) -> Option<String> {
    let cpus = output
        .lines()
        .find_map(|line| line.strip_prefix("irq ")?.split_once(" mask: "));
    let cpus = cpus.map(|(_, cpus)| cpus.replace(' ', ""));
    cpus.filter(|cpus| {
        !cpus.is_empty() && cpus.chars().all(|c| c.is_ascii_digit() || ",-".contains(c))
    })
}

/// An interface by the files that Linux was asked for.
fn card(name: &str, files: &str) -> Card {
    let name = name.to_string();
    let answer = Collected {
        command: format!("interfaces {name}"),
        output: Ok(files.into()),
    };
    Configuration::of(Kernel::Linux, &[name], &[answer])
        .cards
        .into_iter()
        .next()
        .unwrap_or_default()
}

/// The interrupts of its queues, each with the rank of its queue.
fn by_queue(name: &str, files: &str) -> Vec<(usize, Interrupt)> {
    let card = card(name, files);
    let queues = card.queue_interrupts();
    let mut numbers: Vec<u32> = queues.iter().map(|(queue, _)| *queue).collect();
    numbers.dedup();
    let rank = |queue: &u32| {
        numbers
            .iter()
            .position(|of| of == queue)
            .unwrap_or_default()
    };
    queues
        .into_iter()
        .map(|(queue, irq)| (rank(&queue), irq.clone()))
        .collect()
}

fn cpus_by_queue(name: &str, files: &str) -> String {
    let mut queues: Vec<Vec<u32>> = Vec::new();
    for (rank, irq) in by_queue(name, files) {
        queues.resize(queues.len().max(rank + 1), Vec::new());
        queues[rank].extend(takers(&irq));
    }
    let line = |cpus: &mut Vec<u32>| {
        cpus.sort_unstable();
        cpus.dedup();
        cpu_list(cpus)
    };
    queues.iter_mut().map(line).collect::<Vec<_>>().join("\n")
}

fn line_of(rank: &str, irq: &Interrupt) -> String {
    let [takes, may] = [takers(irq), &irq.allowed].map(cpu_list);
    format!("{rank} {} {takes} {may} {}\n", irq.number, irq.name)
}

/// The CPUs that take an interrupt. A kernel that does not tell lets it go to all that may; one that is to leave its CPU does so when
/// it comes next.
fn takers(irq: &Interrupt) -> &[u32] {
    let stays = !irq.cpus.is_empty() && irq.cpus.iter().all(|cpu| irq.allowed.contains(cpu));
    if stays { &irq.cpus } else { &irq.allowed }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_second_of_two_on_a_line() {
        let shown = "Coalesce parameters for eth0:\nAdaptive RX: off  TX: on\nrx-usecs: 3\n";
        assert_eq!(
            Form::Line("Adaptive RX/TX".into()).value(shown).as_deref(),
            Some("on")
        );
        assert_eq!(
            Form::Line("Adaptive RX".into()).value(shown).as_deref(),
            Some("off")
        );
        assert_eq!(
            Form::Line("Adaptive RX/TX".into()).value("Adaptive RX: off\n"),
            None
        );
    }

    const FREEBSD: &str =
        "ix0: flags=8843<UP,BROADCAST,RUNNING,SIMPLEX,MULTICAST> metric 0 mtu 1500
\toptions=e407bb<RXCSUM,TXCSUM,VLAN_MTU,TSO4,LRO>
\tether 00:0c:bd:00:00:01
";

    #[test]
    fn values_of_ifconfig() {
        assert_eq!(Form::After("mtu").value(FREEBSD).as_deref(), Some("1500"));
        let flag = |shown, given| Form::Flag { shown, given }.value(FREEBSD);
        assert_eq!(flag("TSO4", "tso4").as_deref(), Some("tso4"));
        assert_eq!(flag("TSO6", "tso6").as_deref(), Some("-tso6"));
        assert_eq!(flag("UP", "up").as_deref(), Some("up"));
        assert_eq!(
            Form::Flag {
                shown: "LRO",
                given: "lro"
            }
            .value("no such interface"),
            None
        );
    }

    #[test]
    fn values_of_ethtool() {
        let rings = "Ring parameters for eth1:\nPre-set maximums:\nRX:\t\t4096\nTX:\t\t4096\nCurrent hardware settings:\nRX:\t\t512\nRX Mini:\tn/a\nTX:\t\t256\n";
        assert_eq!(Form::Line("RX".into()).value(rings).as_deref(), Some("512"));
        assert_eq!(Form::Line("TX".into()).value(rings).as_deref(), Some("256"));
        let features =
            "generic-segmentation-offload: on\ngeneric-receive-offload: off [requested on]\n";
        assert_eq!(
            Form::Line("generic-receive-offload".into())
                .value(features)
                .as_deref(),
            Some("off")
        );
        assert_eq!(
            Form::Line("large-receive-offload".into()).value(features),
            None
        );
    }

    /// The files of a vmxnet3 with two queues, whose second interrupt is to leave its CPU when it comes next.
    #[test]
    fn interrupts_by_queue() {
        let of = |number: u32, name: &str, may: &str, takes: &str| {
            let file = format!("/proc/irq/{number}");
            format!(
                "{file}/{name}/\n{file}/smp_affinity_list:{may}\n{file}/effective_affinity_list:{takes}\n\
                 /sys/class/net/in0/device/msi_irqs/{number}:msix\n"
            )
        };
        let files = of(99, "in0-rxtx-0", "0-3", "2")
            + &of(100, "in0-rxtx-1", "1", "3")
            + &of(101, "in0-event-2", "0-3", "0");
        let value = |form: Form| form.value(&files).unwrap();
        assert_eq!(
            value(Form::Interrupts("in0".into())),
            "0 99 2 0-3 in0-rxtx-0\n1 100 1 1 in0-rxtx-1\n"
        );
        assert_eq!(value(Form::InterruptCpus("in0".into())), "2\n1");
        assert!(value(Form::AllInterrupts("in0".into())).ends_with("- 101 0 0-3 in0-event-2\n"));
        assert_eq!(Form::Interrupts("in0".into()).value("").unwrap(), "");
    }

    #[test]
    fn texts() {
        assert_eq!(Form::Trimmed.value(" 1\n").as_deref(), Some("1"));
        assert_eq!(Form::Trimmed.value("\n"), None);
        assert_eq!(Form::Whole.value("\n").as_deref(), Some("\n"));
        assert_eq!(Form::After("mtu").value("mtu ; reboot"), None);
    }

    proptest! {
        #[test]
        fn never_panics(text in "[<>:,a-z \n0-9]{0,60}") {
            for form in [Form::Trimmed, Form::After("mtu"), Form::Flag { shown: "a", given: "a" }, Form::Line("a".into())] {
                let _ = form.value(&text);
            }
        }
    }
}
