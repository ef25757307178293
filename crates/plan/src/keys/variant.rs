//! The keys of a variant: its kind of DUT, and its settings.

use super::super::forms::{ADDRESS, CPU_LIST, LENGTH, MAC, MEMORY, MODULE, NETWORK, TEMPLATE, VERSION};
use super::super::grammar::{Key, Kind, Table};
use crate::rules::own::Meaning;
use crate::rules::{MAX_ENTRIES, MAX_RULES, MAX_STATES};

use super::{H, MS, S};

const US: u64 = 1000;

pub(in super::super) static VARIANT: Table =
    Table { what: "a variant", keys: &[&DESCRIPTION, &FIELDS, &SECTIONS] };

/// Settings that are allowed in a variant and in each of its sections for an operating system.
pub(in super::super) static SETTINGS: Table =
    Table { what: "the settings for one operating system", keys: &[&FIELDS] };

static DESCRIPTION: [Key; 5] = [
    Key::new("about", Kind::Line).about("What it is, in words."),
    Key::new("from", Kind::Line).about(
        "The variant whose settings it takes over: one of the plan, or one that comes with linerate \
            (nft-stateful, known-loss=1000). What it says itself wins; lists are added to.",
    ),
    Key::new("systems", Kind::List(&Kind::Choice(&SYSTEMS)))
        .about("The operating systems that it exists on. Default: all of the plan's."),
    Key::new("apart", Kind::Flag).about(
        "Whether it stands in a lane of its own although another variant's settings are the same: \
            for A/A comparisons. Default: false.",
    ),
    Key::new("requires", Kind::Table(&REQUIRES))
        .about("Requirements. If one is missing, the variant is skipped with the reason."),
];

static FIELDS: [Key; 13] = [
    Key::new("dut", Kind::Dut).about("Kind of DUT between the tester's ends. Default: forwarding."),
    Key::new("cpus", Kind::CpuCount)
        .about("How many CPUs forward: a number, or \"all\". Default: the lab's choice."),
    Key::new("sysctls", Kind::Named(&Kind::Setting, "kernel settings by name")).about(
        "Kernel settings. Names may contain {in}, {out}, {in.driver}, {in.unit}, {out.driver} and \
            {out.unit}.",
    ),
    Key::new("boot", Kind::Named(&Kind::Setting, "boot settings by name")).about(
        "Settings that take effect at boot: loader tunables on FreeBSD, the kernel's command line \
            on Linux.",
    ),
    Key::new("image", Kind::Table(&IMAGE)).about(
        "A system image or a kernel that is installed and booted; afterwards the old one is put \
            back. Needs a real lab.",
    ),
    Key::new("interface", Kind::Table(&INTERFACE))
        .about("Settings of both interfaces of the device under test."),
    Key::new("routes", Kind::Table(&ROUTES)).about("Routes beyond those that the traffic needs."),
    Key::new("neighbours", Kind::Table(&NEIGHBOURS))
        .about("ARP and neighbour entries beyond those that the traffic needs."),
    Key::new("rules", Kind::Table(&RULES)).about("The firewall's rule set."),
    Key::new("states", Kind::Choice(&STATES)).about(
        "How far the connections of the test traffic are, where rules keep states. Default: \
            established.",
    ),
    Key::new("modules", Kind::List(&Kind::Form(&MODULE))).about("Kernel modules to load."),
    Key::new("files", Kind::Tables(&FILE)).about("Files to write. What was there comes back afterwards."),
    Key::new("commands", Kind::Tables(&COMMAND))
        .about("Commands to run before the trials, in this order, after everything else."),
];

pub(super) static SYSTEMS: [(&str, &str); 6] = [
    ("linux", "Linux"),
    ("vyos", "VyOS: the settings for linux, then its own"),
    ("freebsd", "FreeBSD"),
    ("pfsense", "pfSense: the settings for freebsd, then its own"),
    ("opnsense", "OPNsense: the settings for freebsd, then its own"),
    ("openbsd", "OpenBSD"),
];

static SECTIONS: [Key; 6] = [
    Key::new("linux", Kind::Table(&SETTINGS)).about("Settings that differ, or are added, on Linux."),
    Key::new("vyos", Kind::Table(&SETTINGS))
        .about("Settings that differ, or are added, on VyOS than on Linux."),
    Key::new("freebsd", Kind::Table(&SETTINGS)).about("Settings that differ, or are added, on FreeBSD."),
    Key::new("pfsense", Kind::Table(&SETTINGS))
        .about("Settings that differ, or are added, on pfSense than on FreeBSD."),
    Key::new("opnsense", Kind::Table(&SETTINGS))
        .about("Settings that differ, or are added, on OPNsense than on FreeBSD."),
    Key::new("openbsd", Kind::Table(&SETTINGS)).about("Settings that differ, or are added, on OpenBSD."),
];

static INTERFACE: Table = Table { what: "[interface]", keys: &[&ENDS, &END_FIELDS] };

static END: Table = Table { what: "the settings of one interface", keys: &[&END_FIELDS] };

static ENDS: [Key; 2] = [
    Key::new("in", Kind::Table(&END)).about("Settings that differ at the interface towards the generator."),
    Key::new("out", Kind::Table(&END)).about("Settings that differ at the interface towards the receiver."),
];

static END_FIELDS: [Key; 23] = [
    Key::new("mtu", Kind::Within(&LENGTH, 576, 15_982))
        .about("Largest packet, without Ethernet header and FCS."),
    Key::new("gro", Kind::Flag).about("Generic receive offload (Linux)."),
    Key::new("gso", Kind::Flag).about("Generic segmentation offload (Linux)."),
    Key::new("tso", Kind::Flag).about("TCP segmentation offload."),
    Key::new("lro", Kind::Flag).about("Large receive offload: to be off on a router."),
    Key::new("rx-checksum", Kind::Flag).about("The card verifies checksums."),
    Key::new("tx-checksum", Kind::Flag).about("The card writes checksums."),
    Key::new("vlan-offload", Kind::Flag).about("The card takes VLAN tags off and puts them on."),
    Key::new("vlan-tso", Kind::Flag).about("TCP segmentation offload of tagged frames (FreeBSD: vlanhwtso)."),
    Key::new("udp-gro-forwarding", Kind::Flag)
        .about("UDP frames of a flow are merged to be forwarded (Linux)."),
    Key::new("flow-control", Kind::Flag).about("Ethernet pause frames (Linux)."),
    Key::new("adaptive-interrupts", Kind::Flag).about("The interrupt rate adapts itself (Linux)."),
    Key::new("threaded-napi", Kind::Flag).about("NAPI polls in kernel threads instead of softirqs (Linux)."),
    Key::new("private-flags", Kind::Named(&Kind::Flag, "a driver's private flags by name"))
        .about("Features of this driver alone (Linux)."),
    Key::new("queues", Kind::count(1, 1024)).about("Receive and transmit queues (Linux)."),
    Key::new("rx-ring", Kind::count(1, 65_536)).about("Descriptors of each receive queue (Linux)."),
    Key::new("tx-ring", Kind::count(1, 65_536)).about("Descriptors of each transmit queue (Linux)."),
    Key::new("rx-wait", Kind::duration(US, S))
        .about("A receive interrupt waits at most this long for more frames (Linux)."),
    Key::new("rx-wait-frames", Kind::count(1, 65_535))
        .about("A receive interrupt waits for at most this many frames (Linux)."),
    Key::new("rps", Kind::Form(&CPU_LIST))
        .about("CPUs that received frames are spread over in software (Linux)."),
    Key::new("rfs", Kind::count(0, 1 << 24)).about("Flows that each queue remembers the CPU of (Linux)."),
    Key::new("xps", Kind::Form(&CPU_LIST))
        .about("CPUs that use the transmit queues: queue n serves the n-th of them (Linux)."),
    Key::new("irq", Kind::Form(&CPU_LIST))
        .about("CPUs that serve the queues, in turn: their interrupts or NAPI threads (Linux)."),
];

static IMAGE: Table = Table {
    what: "[image]",
    keys: &[&[
        Key::new("file", Kind::Line).about(
            "The image or package, on the machine that linerate runs on; relative to the plan's \
                folder.",
        ),
        Key::new("install", Kind::Form(&TEMPLATE)).about(
            "A line for the shell of the device under test that installs what it reads from its \
                standard input; may contain placeholders.",
        ),
        Key::new("undo", Kind::Form(&TEMPLATE))
            .about("The line that puts the old one back, for the next boot."),
    ]],
};

static ROUTES: Table = Table {
    what: "[routes]",
    keys: &[&[
        Key::new("count", Kind::count(0, 1_000_000)).about("Routes to generate that no frame takes."),
        Key::new("explicit", Kind::Tables(&ROUTE)).about("Routes by hand."),
    ]],
};

static ROUTE: Table = Table {
    what: "a route",
    keys: &[&[
        Key::new("to", Kind::Form(&NETWORK)).required().about("The network."),
        Key::new("via", Kind::Form(&ADDRESS))
            .about("The next hop. Default: the tester's address at that end."),
        Key::new("end", Kind::Choice(&END_NAMES))
            .about("The interface that it leaves through. Default: out."),
    ]],
};

static END_NAMES: [(&str, &str); 2] = [("in", "towards the generator"), ("out", "towards the receiver")];

static NEIGHBOURS: Table = Table {
    what: "[neighbours]",
    keys: &[&[
        Key::new("count", Kind::count(0, 1_000_000)).about("Entries to generate that no frame is sent to."),
        Key::new("explicit", Kind::Tables(&NEIGHBOUR)).about("Entries by hand."),
    ]],
};

static NEIGHBOUR: Table = Table {
    what: "a neighbour",
    keys: &[&[
        Key::new("address", Kind::Form(&ADDRESS)).required().about("Its IP address."),
        Key::new("mac", Kind::Form(&MAC)).required().about("Its Ethernet address."),
        Key::new("end", Kind::Choice(&END_NAMES)).about("The interface that it is at. Default: out."),
    ]],
};

static RULES: Table = Table {
    what: "[rules]",
    keys: &[&[
        Key::new("tool", Kind::Choice(&TOOLS)).about("Which firewall. Default for a file: seen by its text."),
        Key::new("file", Kind::Line).about(
            "A rule file of your own instead of a rule set that linerate writes, relative to the \
                plan: nft, iptables-save, pf.conf, ipfw.",
        ),
        Key::new("map", Kind::Named(&Kind::Choice(&Meaning::NAMES), "interfaces and networks of the file"))
            .about(
                "Interfaces and networks that the file names, and the end of the lab that each of them \
                is: in, out, or elsewhere (networks). Default: guessed, and said.",
            ),
        Key::new("filter", Kind::Choice(&FILTERS)).about("Handling of a frame."),
        Key::new("before", Kind::count(0, MAX_RULES as u64))
            .about("Rules that match nothing, in front of the last, which lets everything pass. Default: 0."),
        Key::new("table", Kind::count(0, MAX_ENTRIES as u64)).about(
            "Entries of a table (set) that match nothing, looked up for each frame: networks, on \
                Linux addresses.",
        ),
        Key::new("states", Kind::count(1, MAX_STATES)).about("Connections that the state table is to hold."),
        Key::new("hash", Kind::Choice(&HASHES))
            .about("Whether the state table's hash is sized for them. Default: sized."),
        Key::new("optimize", Kind::Flag).about(
            "pf: whether it may make a table of rules that differ in their addresses alone. \
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
    ("none", "no firewall, although the variant that this one is from has one"),
    ("stateless", "looks at each frame by itself"),
    ("stateful", "keeps a state for each connection"),
    ("nat", "keeps states, and replaces the source address by its own"),
];

static HASHES: [(&str, &str); 2] = [("sized", "for the states"), ("default", "left as the system has it")];

static STATES: [(&str, &str); 3] = [
    ("established", "each flow has been seen in both directions before the trials, and is kept so"),
    ("new", "no flow is known when a trial begins: each opens a connection with its first frame"),
    ("one-way", "each flow has been seen before the trials, and is never answered"),
];

static FILE: Table = Table {
    what: "a file",
    keys: &[&[
        Key::new("path", Kind::Form(&TEMPLATE)).required().about(
            "Its path: from the root, or in the embedded lab a name in the folder where commands \
                run.",
        ),
        Key::new("text", Kind::Text).required().about("Its content; may contain placeholders."),
    ]],
};

static COMMAND: Table = Table {
    what: "a command",
    keys: &[&[
        Key::new("run", Kind::Form(&TEMPLATE))
            .required()
            .about("A line for the system's shell; may contain placeholders."),
        Key::new("undo", Kind::Form(&TEMPLATE)).about("The line that undoes it."),
        Key::new("within", Kind::duration(MS, 24 * H)).about(
            "How long it may take, and its undoing. Default: 1 min in the embedded lab, 5 min on a \
                host.",
        ),
        Key::new("undone-by-reboot", Kind::Flag)
            .about("Instead of `undo`: a reboot undoes it. Default: false."),
    ]],
};

pub(in super::super) static REQUIRES: Table = Table {
    what: "[requires]",
    keys: &[&[
        Key::new("tools", Kind::List(&Kind::Line)).about("Programs on the path."),
        Key::new("modules", Kind::List(&Kind::Line)).about("Kernel modules, loaded, built in or loadable."),
        Key::new("sysctls", Kind::List(&Kind::Line)).about("Kernel settings that exist."),
        Key::new("files", Kind::List(&Kind::Line)).about("Files or devices that exist."),
        Key::new("kernel", Kind::Form(&VERSION)).about("Kernel version, at least."),
        Key::new("cpus", Kind::count(1, 8192)).about("CPUs, at least."),
        Key::new("memory", Kind::Form(&MEMORY)).about("Memory, at least."),
    ]],
};
