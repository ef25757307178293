//! The keys of a variant.

use super::{H, MS, S};
use crate::card;
use crate::forms::{
    ADDRESS, CPU_LIST, LENGTH, MAC, MEMORY, MODULE, NETWORK, PROCESS, SPEED, TEMPLATE, VERSION,
};
use crate::grammar::{Key, Kind, Table, key, required};
use crate::rules::own::Meaning;
use crate::rules::{MAX_ENTRIES, MAX_RULES, MAX_STATES};

pub(crate) static VARIANT: Table = Table {
    what: "a variant",
    keys: &[&DESCRIPTION, &FIELDS, &SECTIONS],
};

/// Settings that are allowed in a variant and in each of its sections for an operating system.
pub(crate) static SETTINGS: Table = Table {
    what: "the settings for one operating system",
    keys: &[&FIELDS],
};

static DESCRIPTION: [Key; 6] = [
    key("about", Kind::Line).about("What it is, in words."),
    key("from", Kind::Line).about(
        "The variant whose settings this one takes over: one of the plan, or one that comes with linerate \
            (nft-stateful, known-loss=1000). This variant's own settings override them; lists are extended.",
    ),
    key("systems", Kind::List(&Kind::Choice(&SYSTEMS)))
        .about("The operating systems that it exists on. Default: all of the plan's."),
    key("apart", Kind::Flag).about(
        "Whether it gets a DUT and links of its own even if another variant has the same settings: \
            for A/A comparisons. Default: false.",
    ),
    key("requires", Kind::Table(&REQUIRES))
        .about("Requirements. If one is missing, the variant is skipped with the reason."),
    key("optional", Kind::Flag).about(
        "Whether the campaign is complete without this variant: it is then no error if the variant cannot be measured. \
            Default: false.",
    ),
];

static FIELDS: [Key; 16] = [
    key("dut", Kind::Dut).about("Kind of DUT between the tester's ends. Default: forwarding."),
    key("kernel", Kind::Line).about(
        "The kernel that it is measured in, a guest of QEMU: the path of a bzImage or of a Debian package, a version in /boot, or \
            \"running\". Needs the embedded lab; then every variant has one. Default: this machine's kernel, without a guest.",
    ),
    key("path", Kind::Table(&PATH)).about("The path between two end hosts (mode = \"end-hosts\")."),
    key("cpus", Kind::CpuCount)
        .about("How many CPUs forward: a number, or \"all\". Default: the lab's choice."),
    key(
        "sysctls",
        Kind::Named(&Kind::Setting, "kernel settings by name"),
    )
    .about(
        "Kernel settings. Names may contain {in}, {out}, {in.driver}, {in.unit}, {out.driver} and \
            {out.unit}.",
    ),
    key("boot", Kind::Named(&Kind::Setting, "boot settings by name")).about(
        "Settings that take effect at boot: loader tunables on FreeBSD, the kernel's command line \
            on Linux.",
    ),
    key("image", Kind::Table(&IMAGE)).about(
        "A system image or a kernel that is installed and booted; afterwards the old one is put \
            back. Needs a real lab.",
    ),
    key("interface", Kind::Table(&INTERFACE))
        .about("Settings of both interfaces of the device under test."),
    key("routes", Kind::Table(&ROUTES)).about("Routes beyond those that the traffic needs."),
    key("neighbours", Kind::Table(&NEIGHBOURS))
        .about("ARP and neighbour entries beyond those that the traffic needs."),
    key("rules", Kind::Table(&RULES)).about("The firewall's rule set."),
    key("states", Kind::Choice(&STATES)).about(
        "State of the test traffic's connections when a trial begins, where rules keep states. Default: \
            established.",
    ),
    key("modules", Kind::List(&Kind::Form(&MODULE))).about("Kernel modules to load."),
    key("files", Kind::Tables(&FILE))
        .about("Files to write. An existing file is restored afterwards."),
    key("event", Kind::Table(&EVENT))
        .about("An event that happens to the device under test: in trials of the test reset, and while connections are kept open (traffic.open)."),
    key("commands", Kind::Tables(&COMMAND))
        .about("Commands to run before the trials, in this order, after all other settings."),
];

pub(crate) static SYSTEMS: [(&str, &str); 6] = [
    ("linux", "Linux"),
    ("vyos", "VyOS: the settings for linux, then its own"),
    ("freebsd", "FreeBSD"),
    ("pfsense", "pfSense: the settings for freebsd, then its own"),
    (
        "opnsense",
        "OPNsense: the settings for freebsd, then its own",
    ),
    ("openbsd", "OpenBSD"),
];

static SECTIONS: [Key; 6] = [
    key("linux", Kind::Table(&SETTINGS)).about("Settings that differ, or are added, on Linux."),
    key("vyos", Kind::Table(&SETTINGS))
        .about("Settings for VyOS that differ from those for Linux, or are added to them."),
    key("freebsd", Kind::Table(&SETTINGS)).about("Settings that differ, or are added, on FreeBSD."),
    key("pfsense", Kind::Table(&SETTINGS))
        .about("Settings for pfSense that differ from those for FreeBSD, or are added to them."),
    key("opnsense", Kind::Table(&SETTINGS))
        .about("Settings for OPNsense that differ from those for FreeBSD, or are added to them."),
    key("openbsd", Kind::Table(&SETTINGS)).about("Settings that differ, or are added, on OpenBSD."),
];

static PATH: Table = Table {
    what: "[path]",
    keys: &[&[
        key("rtt", Kind::duration(0, 10 * S))
            .about("Round-trip time without load: half of it in each direction."),
        key("rate", Kind::Form(&SPEED)).about("Speed in each direction, counted at layer 1 like the speed of a link."),
        key("by", Kind::Choice(&PATH_BY)).about(
            "Who delays the frames. Default: netem where the kernel has it, else linerate itself; the \
                record says which.",
        ),
    ]],
};

static PATH_BY: [(&str, &str); 3] = [
    ("auto", "netem where the kernel has it, else linerate"),
    (
        "netem",
        "the kernel's network emulator, with tbf for the rate",
    ),
    ("linerate", "linerate itself"),
];

static INTERFACE: Table = Table {
    what: "[interface]",
    keys: &[&ENDS, &END_FIELDS, &card::KEYS],
};

static END: Table = Table {
    what: "the settings of one interface",
    keys: &[&END_FIELDS, &card::KEYS],
};

static ENDS: [Key; 2] = [
    key("in", Kind::Table(&END))
        .about("Settings that differ at the interface towards the generator."),
    key("out", Kind::Table(&END))
        .about("Settings that differ at the interface towards the receiver."),
];

static END_FIELDS: [Key; 6] = [
    key("mtu", Kind::Within(&LENGTH, 576, 15_982))
        .about("Largest packet, without Ethernet header and FCS."),
    key(
        "private-flags",
        Kind::Named(&Kind::Flag, "a driver's private flags by name"),
    )
    .about("Features that only this card's driver has (Linux)."),
    key("rps", Kind::Form(&CPU_LIST))
        .about("CPUs that received frames are spread over in software (Linux)."),
    key("rfs", Kind::count(0, 1 << 24))
        .about("Number of flows for which each queue remembers the CPU (Linux)."),
    key("xps", Kind::Form(&CPU_LIST))
        .about("CPUs that use the transmit queues: queue n serves the n-th of them (Linux)."),
    key("irq", Kind::Form(&CPU_LIST))
        .about("CPUs that serve the queues, in turn: their interrupts or NAPI threads (Linux)."),
];

static IMAGE: Table = Table {
    what: "[image]",
    keys: &[&[
        key("file", Kind::Line).about(
            "The image or package, on the machine that linerate runs on; relative to the plan's \
                folder.",
        ),
        key("install", Kind::Form(&TEMPLATE)).about(
            "A line for the shell of the device under test that installs what it reads from its \
                standard input; may contain placeholders.",
        ),
        key("undo", Kind::Form(&TEMPLATE))
            .about("The line that puts the old one back, for the next boot."),
    ]],
};

static ROUTES: Table = Table {
    what: "[routes]",
    keys: &[&[
        key("count", Kind::count(0, 1_000_000)).about("Routes to generate that no frame takes."),
        key("explicit", Kind::Tables(&ROUTE)).about("Routes by hand."),
    ]],
};

static ROUTE: Table = Table {
    what: "a route",
    keys: &[&[
        required("to", Kind::Form(&NETWORK)).about("The network."),
        key("via", Kind::Form(&ADDRESS))
            .about("The next hop. Default: the tester's address at that end."),
        key("end", Kind::Choice(&END_NAMES))
            .about("The interface that it leaves through. Default: out."),
    ]],
};

static END_NAMES: [(&str, &str); 2] = [
    ("in", "towards the generator"),
    ("out", "towards the receiver"),
];

static NEIGHBOURS: Table = Table {
    what: "[neighbours]",
    keys: &[&[
        key("count", Kind::count(0, 1_000_000))
            .about("Entries to generate that no frame is sent to."),
        key("explicit", Kind::Tables(&NEIGHBOUR)).about("Entries by hand."),
    ]],
};

static NEIGHBOUR: Table = Table {
    what: "a neighbour",
    keys: &[&[
        required("address", Kind::Form(&ADDRESS)).about("Its IP address."),
        required("mac", Kind::Form(&MAC)).about("Its Ethernet address."),
        key("end", Kind::Choice(&END_NAMES)).about("The interface that it is at. Default: out."),
    ]],
};

static RULES: Table = Table {
    what: "[rules]",
    keys: &[&[
        key("tool", Kind::Choice(&TOOLS)).about("Which firewall. Default for a file: recognised by the file's text."),
        key("file", Kind::Line).about(
            "A rule file of your own instead of a rule set that linerate writes, relative to the \
                plan: nft, iptables-save, pf.conf, ipfw.",
        ),
        key("map", Kind::Named(&Kind::Choice(&Meaning::NAMES), "interfaces and networks of the file")).about(
            "The end of the lab that each interface or network of the file stands for: in, out, or, \
                for networks, elsewhere. Default: linerate guesses, and prints the guess.",
        ),
        key("filter", Kind::Choice(&FILTERS)).about("Handling of a frame."),
        key("before", Kind::count(0, MAX_RULES as u64))
            .about("Rules that match nothing, in front of the last, which lets everything pass. Default: 0."),
        key("table", Kind::count(0, MAX_ENTRIES as u64)).about(
            "Number of entries of a table (set) that match nothing. Each frame is looked up in the table. \
                Entries are networks; on Linux they are addresses.",
        ),
        key("states", Kind::count(1, MAX_STATES)).about("Number of connections that the state table must hold."),
        key("hash", Kind::Choice(&HASHES))
            .about("Whether the state table's hash is sized for that many connections. Default: sized."),
        key("flow-table", Kind::Flag).about(
            "nftables: whether frames of established connections pass by the rules in a flow table of both interfaces. \
                Default: false.",
        ),
        key("optimize", Kind::Flag).about(
            "pf: whether pf may turn rules that differ only in their addresses into a table. \
                Default: true.",
        ),
    ]],
};

static TOOLS: [(&str, &str); 5] = [
    ("nftables", "Linux"),
    ("iptables", "Linux; tables are ipsets"),
    ("ipfw", "FreeBSD"),
    ("pf", "FreeBSD and OpenBSD"),
    ("ipf", "FreeBSD; has no tables"),
];

static FILTERS: [(&str, &str); 4] = [
    (
        "none",
        "no firewall: without the rules of the variant that `from` names; on a host, firewalls that run are turned off, and on again afterwards",
    ),
    ("stateless", "looks at each frame by itself"),
    ("stateful", "keeps a state for each connection"),
    (
        "nat",
        "keeps states, and replaces the source address by its own",
    ),
];

static HASHES: [(&str, &str); 2] = [
    ("sized", "for the states"),
    ("default", "left as the system has it"),
];

static STATES: [(&str, &str); 3] = [
    (
        "established",
        "each flow has been seen in both directions before the trials, and is kept so",
    ),
    (
        "new",
        "no flow is known when a trial begins: each opens a connection with its first frame",
    ),
    (
        "one-way",
        "each flow has been seen before the trials, and is never answered",
    ),
];

static FILE: Table = Table {
    what: "a file",
    keys: &[&[
        required("path", Kind::Form(&TEMPLATE)).about(
            "Its path: from the root, or in the embedded lab a name in the folder where commands \
                run.",
        ),
        required("text", Kind::Text).about("Its content; may contain placeholders."),
    ]],
};

static EVENT: Table = Table {
    what: "[event]",
    keys: &[&[
        key("what", Kind::Choice(&EVENTS)).about("The kind of event."),
        key("for", Kind::duration(MS, H))
            .about("forwarding-off, link-down, command: how long until it is undone. Default: 100 ms."),
        key("end", Kind::Choice(&END_NAMES)).about("link-down: the interface. Default: in."),
        key("process", Kind::Form(&PROCESS)).about("process-killed: the name of the process."),
        key("run", Kind::Form(&TEMPLATE)).about(
            "command: a line for the system's shell. process-killed: the line that starts the process again, \
                unless the system does so itself. May contain placeholders.",
        ),
        key("undo", Kind::Form(&TEMPLATE)).about("command: the line that undoes it."),
    ]],
};

static EVENTS: [(&str, &str); 8] = [
    (
        "forwarding-off",
        "the kernel forwards nothing for a while: an interruption",
    ),
    (
        "link-down",
        "an interface goes down and comes up again: an interruption",
    ),
    (
        "rules-reloaded",
        "the variant's rules are loaded again: a reconfiguration",
    ),
    (
        "firewall-restarted",
        "the variant's rules are loaded again, and the DUT forgets its connections: a reconfiguration. In the embedded lab only",
    ),
    (
        "process-killed",
        "a process is killed: a process reset (RFC 6201, section 4.2.2)",
    ),
    (
        "reboot",
        "the system reboots: an operating system reset (RFC 6201, section 4.2.1). Needs a real lab",
    ),
    (
        "power-off",
        "the lab file's power-cycle program cuts the power: a power interruption (RFC 6201, section 4.3.1). Needs a real lab",
    ),
    ("command", "a command of your own: a reconfiguration"),
];

static COMMAND: Table = Table {
    what: "a command",
    keys: &[&[
        required("run", Kind::Form(&TEMPLATE))
            .about("A line for the system's shell; may contain placeholders."),
        key("undo", Kind::Form(&TEMPLATE)).about("The line that undoes it."),
        key("within", Kind::duration(MS, 24 * H)).about(
            "Time limit of the command, and also of its undoing. Default: 1 min in the embedded lab, 5 min on a \
                host.",
        ),
        key("undone-by-reboot", Kind::Flag)
            .about("Instead of `undo`: whether a reboot undoes the command. Default: false."),
    ]],
};

pub(crate) static REQUIRES: Table = Table {
    what: "[requires]",
    keys: &[&[
        key("tools", Kind::List(&Kind::Line)).about("Programs on the path."),
        key("modules", Kind::List(&Kind::Line))
            .about("Kernel modules, loaded, built in or loadable."),
        key("sysctls", Kind::List(&Kind::Line)).about("Kernel settings that exist."),
        key("files", Kind::List(&Kind::Line)).about("Files or devices that exist."),
        key("kernel", Kind::Form(&VERSION)).about("Kernel version, at least."),
        key("cpus", Kind::count(1, 8192)).about("CPUs, at least."),
        key("memory", Kind::Form(&MEMORY)).about("Memory, at least."),
    ]],
};
