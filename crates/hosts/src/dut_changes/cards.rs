//! Settings of Linux' cards: ethtool(8), and the kernel's files for queues and interrupts.

use super::scripts::LINES_BACK;
use super::{Form, Input, List, Program, Read, Step, WAS};
use crate::configuration::INTERFACES;
use linerate_plan::card::{CardSetting, CardSettings, CardValue, Linux, ROWS, Row};
use linerate_plan::offload::{OFFLOADS as OFFLOADS_OF_CARDS, Offload};
use linerate_plan::settings::{Interface, cpu_list, cpu_mask};

/// Prints the files of an interface's queues (`rx`, `tx`) of one name, each with its content.
const QUEUES_READ: &str = r#"for f in /sys/class/net/"$1"/queues/"$2"-*/"$3"; do [ -e "$f" ] && echo "$f $(cat "$f")"; done"#;
/// Prints their contents, by number.
const QUEUES_SHOWN: &str = r#"n=0
while f=/sys/class/net/$1/queues/$2-$n/$3; [ -e "$f" ]; do
	echo "$f $(cat "$f")" || exit 1
	n=$((n + 1))
done"#;
/// Writes the rest of its arguments into these files, in turn.
const QUEUES_PUT: &str = r#"set -e
if=$1 kind=$2 file=$3; shift 3
n=0
while [ -e "/sys/class/net/$if/queues/$kind-$n" ]; do
	value=$1; shift; set -- "$@" "$value"
	printf '%s\n' "$value" >"/sys/class/net/$if/queues/$kind-$n/$file"
	n=$((n + 1))
done
[ "$n" -gt 0 ]"#;

/// Reads lines of [`Form::Interrupts`]. The interrupts of each queue go to one of the CPUs that are its arguments, in turn.
const IRQS_PUT: &str = r#"done=0
while read -r rank irq _; do
	n=$((rank % $#))
	cpu=$(shift "$n"; echo "$1")
	{ printf '%s\n' "$cpu" >"/proc/irq/$irq/smp_affinity_list"; } 2>/dev/null || {
		echo "interrupt $irq cannot be moved to CPU $cpu" >&2; exit 1
	}
	done=1
done
[ "$done" = 1 ] || { echo "it has no interrupts of queues" >&2; exit 1; }"#;
/// Restores interrupts from such lines: those of queues first on the CPU that took each. With the CPUs alone that may take it, one would
/// stay where it is. Some controllers move one only when it comes next, which the watchdogs of some drivers bring about every 2 s: until
/// then, only that CPU may take it, and this script is run again later. One may have another number since, if the driver has asked for
/// it anew.
const IRQS_BACK: &str = r#"takes() { cat "$1/effective_affinity_list" 2>/dev/null || cat "$1/smp_affinity_list"; }
mask() { printf '%s\n' "$1" >"$f/smp_affinity_list" || failed=1; }
each() {
	while read -r rank irq cpus may name; do
		f=/proc/irq/$irq
		[ -d "$f/$name" ] || [ -z "$name" ] || for d in /proc/irq/*/"$name"; do f=${d%"/$name"}; done
		[ -z "$name" ] || [ ! -d "$f/$name" ] || "$1"
	done <<-END
		$was
	END
}
is_there() { [ "$rank" = - ] || [ "$(takes "$f")" = "$cpus" ]; }
move() { is_there || mask "$cpus"; }
look() { is_there || waiting=1; }
free() { ! is_there || mask "$may"; }
was=$(cat) failed=0 patience=3
each move
waiting=0 && each look
while [ "$waiting" = 1 ] && [ "$patience" -gt 0 ]; do
	sleep 1
	patience=$((patience - 1)) waiting=0
	each look
done
each free
[ "$failed" = 0 ] || exit 1
[ "$waiting" = 0 ] || exit 75"#;
/// One interrupt as such a line.
const IRQ_READ: &str = r#"f=/proc/irq/$1
may=$(cat "$f/smp_affinity_list") || exit 1
takes=$(cat "$f/effective_affinity_list" 2>/dev/null)
for name in "$f"/*/; do name=${name%/}; name=${name##*/}; done
echo "0 $1 ${takes:-$may} $may $name""#;

/// Prints the offloads that can be changed, each with the state that was asked for: one that needs another, or that an XDP program at the
/// other end of a veth forbids, is off as long as that lasts. The line of a group comes before its parts, which are further to the right.
macro_rules! offloads {
    () => {
        r#"offloads() {
	ethtool -k "$1" 2>/dev/null | awk -v i="$1" 'NR > 1 {
		part = /^[ \t]/
		if (held != "" && !(part && !parts)) print held
		parts = part; held = ""
		if (NF < 2 || /\[fixed\]/) next
		asked = /requested on/ ? "on" : /requested off/ ? "off" : $2
		sub(/:$/, "", $1)
		held = "offload " i " " $1 " " asked
	} END { if (held != "") print held }'
}
"#
    };
}
/// Restores the offloads of lines of `$was`, each interface's at once: the kernel knows which needs which. Those that cannot be changed
/// now, such as those of a veth whose other end has an XDP program, are restored when this is run again.
macro_rules! offloads_back {
    () => {
        r#"was=$(printf '%s\n' "$was" | grep '^offload ') waiting=0
for i in $(printf '%s\n' "$was" | awk '{ print $2 }' | uniq); do
	ethtool -k "$i" >/dev/null 2>&1 || continue
	of=$(printf '%s\n' "$was" | awk -v i="$i" '$2 == i')
	[ "$(offloads "$i")" != "$of" ] || continue
	said=$(ethtool -K "$i" $(printf '%s\n' "$of" | awk '{ print $3, $4 }') 2>&1)
	{ printf '%s\n\n' "$of"; offloads "$i"; } | awk '
		NF == 0 { now = 1 } !now { was[$3] = $4; missing++ } now && $3 in was { missing--; if (was[$3] != $4) bad = 1 }
		END { exit bad ? 1 : missing > 0 ? 75 : 0 }'
	case $? in
	0) ;;
	75) waiting=75 ;;
	*) echo "offloads of $i differ from those before ($said)" >&2; failed=1 ;;
	esac
done
[ "$failed" = 0 ] || exit 1
exit $waiting"#
    };
}
pub(super) use {offloads, offloads_back};

/// Prints the offloads of the interfaces that are its arguments.
const OFFLOADS_READ: &str = concat!(offloads!(), r#"for i; do offloads "$i"; done"#);
/// Restores them.
const OFFLOADS_BACK: &str = concat!(offloads!(), "was=$(cat) failed=0\n", offloads_back!());

/// Pause frames. While they are negotiated, some drivers pass over the rest (e1000e, igb).
const PAUSES: &[(&str, &str)] = &[("autoneg", "Autonegotiate"), ("rx", "RX"), ("tx", "TX")];
/// Turns pause frames on or off, without negotiation as far as it is needed.
const PAUSE_PUT: &str = r#"if=$1 to=$2
is() { ethtool -a "$if" | grep -q "^$1:[[:space:]]*$2\$"; }
is_wanted() { is RX "$to" && is TX "$to"; }
if [ "$to" = off ] && is Autonegotiate on; then
	ethtool -A "$if" autoneg off rx off tx off 2>/dev/null && exit 0
fi
is_wanted && exit 0
ethtool -A "$if" rx "$to" tx "$to" || exit 1
is_wanted || ! is Autonegotiate on || ethtool -A "$if" autoneg off rx "$to" tx "$to""#;
/// Restores all three. While they are negotiated, the other two are what the neighbour answers.
const PAUSE_BACK: &str = r#"is() { ethtool -a "$if" | grep -q "^$1:[[:space:]]*$2\$"; }
if=$1
set -- $2
is Autonegotiate "$2" && is RX "$4" && is TX "$6" && exit 0
ethtool -A "$if" "$@" || exit 1
is Autonegotiate "$2" && { [ "$2" = on ] || { is RX "$4" && is TX "$6"; }; } || {
	echo "it is not as it was: $*" >&2; exit 1
}"#;

pub(super) fn interface(list: &mut List<'_>, name: &str, wanted: &Interface) {
    if wanted.mtu.is_some() || !wanted.set.is_empty() {
        // Some drivers ask for their interrupts anew, and they may come elsewhere.
        all_interrupts(list, name);
    }
    if let Some(mtu) = wanted.mtu {
        list.kernel_file(
            format!("MTU of {name}"),
            &format!("/sys/class/net/{name}/mtu"),
            &mtu.to_string(),
        );
    }
    let (switches, numbers): (CardSettings, CardSettings) = wanted
        .set
        .iter()
        .partition(|(_, value)| matches!(value, CardValue::Switch(_)));
    for (setting, value) in switches {
        set(list, name, setting, value);
    }
    for (flag, on) in &wanted.private_flags {
        let set = |to: &str| Program::new(["ethtool", "--set-priv-flags", name, flag, to]);
        let read = Program::new(["ethtool", "--show-priv-flags", name]);
        list.value(
            format!("private flag {flag} of {name}"),
            read,
            Form::Line(flag.clone()),
            set,
            &CardValue::Switch(*on).per(1),
        );
    }
    // Some drivers take numbers back when a flag changes.
    for (setting, value) in numbers {
        set(list, name, setting, value);
    }
    steering(list, name, wanted);
}

/// Options of ethtool for offloads and pause frames. The one that shows them is the small letter.
const OFFLOADS: &str = "-K";
const PAUSE: &str = "-A";

/// The name by which ethtool shows what it is given by another.
fn shown<'a>(option: &str, given: &'a str) -> &'a str {
    let words = |row: &Row| match row.linux {
        Linux::Ethtool {
            option: of, words, ..
        } if of == option => words.iter().find(|[word, _]| *word == given),
        _ => None,
    };
    let of_offload = |given| {
        OFFLOADS_OF_CARDS
            .iter()
            .find(|offload| offload.ethtool == given)
    };
    match option {
        OFFLOADS => of_offload(given).map_or(given, |offload| offload.name),
        PAUSE => PAUSES
            .iter()
            .find(|(word, _)| *word == given)
            .map_or(given, |(_, shown)| *shown),
        _ => ROWS
            .iter()
            .find_map(words)
            .map_or(given, |[_, shown]| *shown),
    }
}

/// A value that ethtool sets.
pub(super) fn ethtool(what: String, option: &str, name: &str, given: &str, to: &str) -> Step {
    let set = |value: &str| Program::new(["ethtool", option, name, given, value]);
    let program = Program::new(["ethtool", &option.to_lowercase(), name]);
    let shown = program.asking(Form::Line(shown(option, given).into()));
    match option {
        OFFLOADS => {
            let (read, back) = kept_offloads(&[name]);
            Step::change(what, read, set(to), back).checked(shown, [to])
        }
        PAUSE => pause(what, name, set(to)).checked(shown, [to]),
        _ => Step::value(what, shown, set, to),
    }
}

/// A change of pause frames, whose undoing restores all of their settings.
fn pause(what: String, name: &str, apply: Program) -> Step {
    let read = Program::new(["ethtool", "-a", name]).asking(Form::Lines(PAUSES));
    Step::change(what, read, apply, Program::script(PAUSE_BACK, [name, WAS]))
}

/// The question for all offloads of interfaces, and the program that restores them: one drags others along.
fn kept_offloads(names: &[&str]) -> (Read, Program) {
    let read = Program::script(OFFLOADS_READ, names.iter().copied()).asking(Form::Whole);
    (read, Program::back(OFFLOADS_BACK))
}

impl List<'_> {
    /// Offloads of both interfaces, which other changes drag along, will be as they are now.
    pub fn keep_offloads(&mut self) {
        let names = self.target.ports().map(|port| port.name.as_str());
        let (read, back) = kept_offloads(&names);
        let what = format!("offloads of {} as they are", names.join(" and "));
        self.steps
            .steps
            .push(Step::change(what, read, Program::new(["true"]), back));
    }
}

/// Steers the work of queues to CPUs.
fn steering(list: &mut List<'_>, name: &str, wanted: &Interface) {
    let steered = |what: &str| format!("{what} packet steering of {name}");
    if let Some(cpus) = &wanted.rps {
        queues(
            list,
            steered("receive"),
            [name, "rx", "rps_cpus"],
            vec![cpu_mask(cpus)],
            vec![cpu_list(cpus)],
        );
    }
    if let Some(flows) = wanted.rfs {
        let flows = flows.to_string();
        list.sysctl("net.core.rps_sock_flow_entries", &flows);
        let what = format!("receive flow steering of {name}");
        queues(
            list,
            what,
            [name, "rx", "rps_flow_cnt"],
            vec![flows.clone()],
            vec![flows],
        );
    }
    if let Some(cpus) = wanted.xps.as_ref().filter(|cpus| !cpus.is_empty()) {
        let masks = cpus.iter().map(|cpu| cpu_mask(&[*cpu])).collect();
        let shown = cpus.iter().map(u32::to_string).collect();
        queues(
            list,
            steered("transmit"),
            [name, "tx", "xps_cpus"],
            masks,
            shown,
        );
    }
    if let Some(cpus) = wanted.irq.as_ref().filter(|cpus| !cpus.is_empty()) {
        let cpus: Vec<String> = cpus.iter().map(u32::to_string).collect();
        let (read, back) = interrupts(name);
        let takers = Read {
            form: Form::InterruptCpus(name.into()),
            ..read.clone()
        };
        let apply = Program::script(IRQS_PUT, cpus.clone()).reading(Input::Was);
        let step = Step::change(format!("interrupts of {name}"), read, apply, back);
        list.steps.steps.push(step.checked(takers, cpus));
    }
}

/// Changes nothing, and restores the interrupts that later steps move.
pub(super) fn all_interrupts(list: &mut List<'_>, name: &str) {
    let (read, back) = interrupts(name);
    let read = Read {
        form: Form::AllInterrupts(name.into()),
        ..read
    };
    list.steps.steps.push(Step::change(
        format!("interrupts of {name}"),
        read,
        Program::new(["true"]),
        back,
    ));
}

/// The question for the interrupts of an interface's queues, and the program that restores them.
fn interrupts(name: &str) -> (Read, Program) {
    let read = Program::script(INTERFACES, [name]).asking(Form::Interrupts(name.into()));
    (read, Program::back(IRQS_BACK))
}

/// One interrupt, by number, on these CPUs.
pub(super) fn interrupt(what: &str, number: &str, cpus: &str) -> Step {
    let read = Program::script(IRQ_READ, [number]).asking(Form::Whole);
    let apply = Program::script(IRQS_PUT, [cpus]).reading(Input::Was);
    let may = Program::new(["cat", what]).asking(Form::Trimmed);
    let back = Program::back(IRQS_BACK);
    Step::change(what, read, apply, back).checked(may, [cpus])
}

/// Values for the files of queues, and how they are read: CPUs of masks as lists.
fn queues(
    list: &mut List<'_>,
    what: String,
    which: [&str; 3],
    values: Vec<String>,
    wanted: Vec<String>,
) {
    let arguments = which.into_iter().map(String::from).chain(values);
    let back = Program::back(LINES_BACK);
    let read = Program::script(QUEUES_READ, which).asking(Form::Whole);
    let form = if which[2] == "rps_flow_cnt" {
        Form::Values
    } else {
        Form::Masks
    };
    let shown = Program::script(QUEUES_SHOWN, which).asking(form);
    let step = Step::change(what, read, Program::script(QUEUES_PUT, arguments), back);
    list.steps.steps.push(step.checked(shown, wanted));
}

/// A setting of the catalogue.
fn set(list: &mut List<'_>, name: &str, setting: CardSetting, value: CardValue) {
    let row = setting.row();
    let what = format!("{} of {name}", row.what);
    match row.linux {
        Linux::Offloads => {
            for given in Offload::words(setting) {
                let what = format!("{given} of {name}");
                let step = ethtool(what, OFFLOADS, name, given, &value.per(1));
                list.steps.steps.push(step);
            }
        }
        Linux::Ethtool {
            option,
            words,
            unit,
        } => {
            for [given, _] in words {
                let what = match words {
                    [_] => what.clone(),
                    _ => format!("{} ({given}) of {name}", row.what),
                };
                let step = ethtool(what, option, name, given, &value.per(unit));
                list.steps.steps.push(step);
            }
        }
        Linux::File(file) => {
            let path = format!("/sys/class/net/{name}/{file}");
            list.kernel_file(what, &path, &value.to_string());
        }
        Linux::Pauses => {
            let to = value.per(1);
            let apply = Program::script(PAUSE_PUT, [name, &to]);
            let shown = Program::new(["ethtool", "-a", name]).asking(Form::Lines(&PAUSES[1..]));
            let step = pause(what, name, apply);
            list.steps
                .steps
                .push(step.checked(shown, [format!("rx {to} tx {to}")]));
        }
        Linux::Nothing(why) => list.refuse(setting.key(), why),
    }
}
