//! Single changes of a running host, outside of any variant: each with the question before it, and its undoing.

use super::cards::{ethtool, interrupt};
use super::scripts::{FILE_READ, FILES_READ, LINES_BACK, beside, file_write, writable};
use super::shared::sysctl;
use super::{Form, Input, Program, Read, Step};
use crate::configuration::mask_of;
use crate::systems::Kernel;
use linerate_measure::experiment::System;
use linerate_plan::settings::cpu_list;
use linerate_plan::sysctl::is_namespaced;
use serde::{Deserialize, Serialize};

/// Writes a value into these files.
const FILES_PUT: &str = r#"for f in $1; do printf '%s\n' "$2" >"$f" || exit 1; done"#;
/// Writes a file of settings, which everyone may read, as its neighbours of the system.
const TEXT_WRITE: &str = file_write!("022");
/// Spreads the hash of an interface over its queues. The words are several arguments.
const SPREAD: &str = r#"exec ethtool -X "$1" $2"#;
/// Restores the file that [`FILE_READ`] printed, unless someone has changed it since its second argument was written into it.
const FILE_TAKEN_BACK: &str = concat!(
    "new=$2\n",
    writable!(),
    r#"set -e
umask 077
IFS= read -r was"#,
    beside!(),
    r#"if [ -e "$1" ] && printf %s "$new" | cmp -s - "$1"; then
	if [ "$was" = present ]; then mv -f "$1.linerate" "$1"; else rm -f "$1" "$1.linerate"; fi
	exit 0
fi
as_it_was=no
if [ "$was" = present ]; then
	if cmp -s "$1.linerate" "$1"; then as_it_was=yes; fi
elif [ ! -e "$1" ]; then as_it_was=yes; fi
rm -f "$1.linerate"
[ "$as_it_was" = yes ] || { echo "$1 has been changed since linerate wrote it: take its lines out by hand" >&2; exit 1; }"#
);
/// Bytes of a file that is changed: its text becomes an argument.
const MOST: usize = 96 << 10;

/// A change of the running system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "kebab-case")]
pub enum Runtime {
    /// sysctl(8).
    Sysctl { name: String, value: String },
    /// ethtool(8) with option, interface, and a name with its value: `-K eth0 lro off`, `-N eth0 rx-flow-hash udp4 sdfn`, `-X eth0 equal 4`.
    Ethtool { arguments: Vec<String> },
    /// ifconfig(8) with interface and flag: `ix0 -lro`.
    Ifconfig { arguments: Vec<String> },
    /// cpuset(1): an interrupt of FreeBSD and the CPUs that may take it.
    CpuSet { irq: u32, cpus: String },
    /// A value written to a file of the kernel, or to all that a pattern of the shell means.
    File { path: String, value: String },
}

/// The question for the content of a file.
pub fn content_of(path: &str) -> Read {
    Program::script(FILE_READ, [path]).asking(Form::Whole)
}

/// The content in the answer; `None` where there is no file.
pub fn content(answer: &str) -> Option<&str> {
    answer.strip_prefix("present\n")
}

/// A file gets this text.
///
/// # Errors
/// The reason why its undoing would not be known.
pub fn file(path: &str, text: String) -> Result<Step, String> {
    if text.len() > MOST || text.contains('\0') {
        return Err(format!("{path} is larger than {MOST} bytes, or no text"));
    }
    let back = Program::script(FILE_TAKEN_BACK, [path, &text]).reading(Input::Was);
    let apply = Program::script(TEXT_WRITE, [path]).reading(Input::Text(text));
    Ok(Step::change(path, content_of(path), apply, back))
}

impl Runtime {
    /// Whether all network namespaces of Linux share what is changed. Files of interfaces, and interrupts, are of a card, which one
    /// namespace has.
    pub fn is_of_machine(&self) -> bool {
        match self {
            Runtime::Sysctl { name, .. } => !is_namespaced(name),
            Runtime::File { path, .. } => !["/sys/class/net/", "/proc/irq/"]
                .iter()
                .any(|of_card| path.starts_with(of_card)),
            Runtime::Ethtool { .. } | Runtime::Ifconfig { .. } | Runtime::CpuSet { .. } => false,
        }
    }

    /// The program with its arguments.
    ///
    /// # Errors
    /// No program makes the change: the path and the value of a file.
    pub fn argv(&self) -> Result<Vec<String>, (&str, &str)> {
        let with = |program: &str, arguments: &[String]| {
            Ok(std::iter::once(program.to_string())
                .chain(arguments.iter().cloned())
                .collect())
        };
        match self {
            Runtime::Sysctl { name, value } => with("sysctl", &[format!("{name}={value}")]),
            Runtime::Ethtool { arguments } => with("ethtool", arguments),
            Runtime::Ifconfig { arguments } => with("ifconfig", arguments),
            Runtime::CpuSet { irq, cpus } => with(
                "cpuset",
                &["-l", cpus, "-x", &irq.to_string()].map(String::from),
            ),
            Runtime::File { path, value } => Err((path, value)),
        }
    }

    /// The change as a step.
    ///
    /// # Errors
    /// The reason why its undoing would not be known.
    pub fn step(&self, kernel: Kernel) -> Result<Step, String> {
        let system = System::from(kernel);
        match self {
            Runtime::Sysctl { name, value } => Ok(sysctl(system, name, value)),
            Runtime::File { path, value } => Ok(kernel_files(path, value)),
            Runtime::CpuSet { irq, cpus } => {
                let irq = irq.to_string();
                let read = Program::new(["cpuset", "-g", "-x", &irq]).asking(Form::CpuSet);
                let set = |cpus: &str| Program::new(["cpuset", "-l", cpus, "-x", &irq]);
                Ok(Step::value(
                    format!("CPUs of interrupt {irq}"),
                    read,
                    set,
                    cpus,
                ))
            }
            Runtime::Ethtool { arguments } => of_ethtool(arguments),
            Runtime::Ifconfig { arguments } => match &arguments[..] {
                [name, given] => super::bsd::ifconfig(system, name, given),
                _ => None,
            }
            .ok_or_else(|| {
                format!(
                    "the present value of `ifconfig {}` cannot be read",
                    arguments.join(" ")
                )
            }),
        }
    }
}

fn kernel_files(pattern: &str, value: &str) -> Step {
    let number = pattern.strip_prefix("/proc/irq/");
    if let Some(number) = number.and_then(|rest| rest.strip_suffix("/smp_affinity_list")) {
        return interrupt(pattern, number, value);
    }
    let read = Program::script(FILES_READ, [pattern]).asking(Form::Whole);
    let back = Program::back(LINES_BACK);
    let step = Step::change(
        pattern,
        read.clone(),
        Program::script(FILES_PUT, [pattern, value]),
        back,
    );
    if pattern.ends_with("/rps_cpus") {
        step.checked(
            Read {
                form: Form::Masks,
                ..read
            },
            [cpu_list(&mask_of(value))],
        )
    } else {
        step.checked(
            Read {
                form: Form::Values,
                ..read
            },
            [value],
        )
    }
}

/// A change by ethtool(8).
fn of_ethtool(arguments: &[String]) -> Result<Step, String> {
    match arguments {
        [option, name, hash, flow, letters] if option == "-N" && hash == "rx-flow-hash" => {
            let read = Program::new(["ethtool", "-n", name, hash, flow]).asking(Form::HashFields);
            let set = |letters: &str| Program::new(["ethtool", "-N", name, hash, flow, letters]);
            Ok(Step::value(
                format!("hash of {flow} of {name}"),
                read,
                set,
                letters,
            ))
        }
        [option, name, equal, queues] if option == "-X" && equal == "equal" => {
            let read = Program::new(["ethtool", "-x", name]).asking(Form::Indirection);
            let set = |words: &str| Program::script(SPREAD, [name, words]);
            Ok(Step::value(
                format!("queues of {name}'s hash"),
                read,
                set,
                &format!("{equal} {queues}"),
            ))
        }
        [option, name, given, value] if option.len() == 2 && option.to_uppercase() == *option => {
            Ok(ethtool(
                format!("{given} of {name}"),
                option,
                name,
                given,
                value,
            ))
        }
        _ => Err(format!(
            "the present value of `ethtool {}` cannot be read",
            arguments.join(" ")
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaces_share_the_settings_of_the_machine_and_have_their_own_cards() {
        let sysctl = |name: &str| Runtime::Sysctl {
            name: name.into(),
            value: "1".into(),
        };
        let file = |path: &str| Runtime::File {
            path: path.into(),
            value: "1".into(),
        };
        let shared = [
            sysctl("kernel.timer_migration"),
            sysctl("net.core.netdev_budget"),
            file("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        ];
        assert!(shared.iter().all(Runtime::is_of_machine));
        let own = [
            sysctl("net.ipv4.ip_forward"),
            file("/sys/class/net/eth1/queues/rx-*/rps_cpus"),
            file("/proc/irq/31/smp_affinity_list"),
        ];
        assert!(!own.iter().any(Runtime::is_of_machine));
    }
}
