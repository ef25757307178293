//! The keys of a plan: the only place where they are listed.

use super::backend::OF_THIS_MACHINE;
use super::campaign::PROFILE_NS;
use super::forms::{
    ADDRESS, CPU_LIST, DURATION, FLOW_ORDER, FRAMES, GOAL, LENGTH, MAC, MEMORY, MODULE, NETWORK, PART, PORTS,
    PROCESS, RATE, SHARE, SIZE, SPEED, TEMPLATE, VERSION,
};
use super::grammar::{Key, Kind, Table, key, required};
use crate::rules::own::Meaning;
use crate::rules::{MAX_ENTRIES, MAX_RULES, MAX_STATES};
use linerate_measure::strategy::ORDERS;

const MS: u64 = 1_000_000;
const S: u64 = 1_000_000_000;
const H: u64 = 3600 * S;

/// Blocks at most.
pub(super) const MOST_BLOCKS: u64 = 1_000_000;

pub(super) static PLAN: Table = Table {
    what: "a plan",
    keys: &[&[
        required("title", Kind::Line).about("Title of the experiment."),
        required("question", Kind::Line).about("The question that it answers."),
        key("source", Kind::Line).about("The document that the experiment comes from."),
        key("lab", Kind::Table(&LAB))
            .about("Where it runs. Without it: in network namespaces of this machine."),
        key("traffic", Kind::Table(&TRAFFIC))
            .about("The frames that are sent, unless a factor says otherwise."),
        required("variants", Kind::Named(&Kind::Table(&VARIANT), "variants by name"))
            .about("The configurations of the device under test that are compared."),
        key("factors", Kind::Named(&Kind::Table(&FACTOR), "factors by name"))
            .about("Factors that vary beside the variants, each with a list of levels."),
        key("compare", Kind::Table(&COMPARE)).about("Pairs to compare, and the precision at which to stop."),
        required("trials", Kind::Table(&TRIALS)).about("How trials are run."),
        key("collect", Kind::Table(&COLLECT)).about("Data to collect with each trial, beyond the counters."),
        key("requires", Kind::Table(&REQUIRES)).about("Requirements of the whole plan."),
        key("expect", Kind::Tables(&EXPECT))
            .about("Expectations of the author, which make the plan a test as well."),
        key("quick", Kind::Table(&QUICK)).about("Settings that differ in the quick form (--quick)."),
    ]],
};

pub(super) static LAB: Table = Table {
    what: "[lab]",
    keys: &[&[
        key("file", Kind::Line)
            .about("The lab file of a real lab: its hosts, links and roles. Without it: the embedded lab."),
        key("systems", Kind::List(&Kind::Choice(&SYSTEMS))).about(
            "Operating systems of the device under test that the plan is written for. Default: \
                linux.",
        ),
        key("mode", Kind::Choice(&MODES)).about("How the embedded lab shares its CPUs. Default: inline."),
        key("generator-cpus", Kind::Form(&CPU_LIST))
            .about("CPUs of the embedded lab's generator, one thread each."),
        key("dut-cpus", Kind::Form(&CPU_LIST)).about("CPUs of the embedded lab's DUT, in threaded mode."),
        key("link-speed", Kind::Form(&SPEED)).about("Speed that is 100 % of line rate."),
        key("port", Kind::Choice(OF_THIS_MACHINE)).about(
            "How frames leave and arrive in the embedded lab. Default: xdp where this process may \
                load its programs.",
        ),
        key("batch", Kind::count(1, 256)).about(
            "Frames that the embedded lab's generator hands over at once. Default: the number that \
                measures best.",
        ),
        key("statement", Kind::Line).about(
            "Your statement that the embedded lab's DUT is set up as its instructions say (RFC 2544, \
                section 7). Lab files have it at the DUT.",
        ),
    ]],
};

static MODES: [(&str, &str); 3] = [
    ("inline", "closed loop on the generator's CPU: the cost per frame"),
    ("threaded", "open loop, the DUT has CPUs of its own: loss and latency under load"),
    ("end-hosts", "iperf3 sends TCP from one host to another, over a path: the hosts are the DUT"),
];

pub(super) static TRAFFIC: Table = Table {
    what: "[traffic]",
    keys: &[&[
        key("size", Kind::Form(&SIZE))
            .about("Frame length with FCS, or a mix of lengths. Default: \"64 B\"."),
        key("family", Kind::Choice(&FAMILIES)).about("IP version. Default: IPv4."),
        key("transport", Kind::Choice(&TRANSPORTS)).about("Protocol above IP. Default: UDP."),
        key("flows", Kind::count(1, 5_000_000)).about("Pairs of addresses and ports. Default: 2000."),
        key("order", Kind::Form(&FLOW_ORDER))
            .about("The order of flows: sequential, random or zipf:EXPONENT. Default: sequential."),
        key("format", Kind::Choice(&FORMATS)).about("Addresses, ports and flags. Default: studies."),
        key("networks", Kind::count(1, 256)).about(
            "Networks that destinations are spread over; the embedded lab's DUT gets a route to each. \
                Default: 1.",
        ),
        key("ports", Kind::Form(&PORTS)).about("Ports of the flows: counted or random. Default: counted."),
        key("broadcast-every", Kind::count(0, 1_000_000)).about(
            "One frame in so many goes to the Ethernet broadcast address instead, and counts apart. \
                Default: 0, none.",
        ),
        key("ipv6-share", Kind::Form(&PART)).about(
            "Share of IPv6 frames between the IPv4 frames of family = \"IPv4\" (RFC 5180, section 7). \
                Default: 0 %.",
        ),
        key("extension-headers", Kind::Choice(&EXTENSIONS))
            .about("IPv6 extension headers of UDP frames (RFC 5180, section 5.3). Default: none."),
        key("source-macs", Kind::Choice(&SOURCE_MACS))
            .about("Ethernet sources of the frames (RFC 4814, section 4.2). Default: own."),
        key("burst", Kind::count(0, 65_536)).about(
            "Frames of each burst: the load comes in bursts with pauses between them (RFC 2544, section \
                21). Default: 0, evenly spaced.",
        ),
        key("rate", Kind::Form(&RATE)).about("Offered load. Default: max."),
        key("checksum", Kind::Flag).about("Whether IPv4 UDP frames carry a checksum. Default: true."),
        key("stamp-every", Kind::count(1, 1_000_000))
            .about("One frame in so many carries a time stamp. Default: 64."),
        key("stamps", Kind::Choice(&STAMPS)).about("What stamps them. Default: software."),
        key("direction", Kind::Choice(&DIRECTIONS)).about(
            "Which way frames go through the DUT; the rate is that of each direction. Default: forward.",
        ),
    ]],
};

/// In plans.
pub static DIRECTIONS: [(&str, &str); 2] = [
    ("forward", "from its inside to its outside"),
    ("both", "both at once, at equal rates: each frame from the outside answers one from the inside"),
];

static EXTENSIONS: [(&str, &str); 6] = [
    ("none", "none"),
    ("hop-by-hop", "hop-by-hop options, which every router may look at"),
    ("destination-options", "destination options"),
    ("routing", "a routing header without a segment left"),
    ("fragment", "the fragment header of a whole packet"),
    ("chain", "routing, destination options and fragment: 40 bytes"),
];

static SOURCE_MACS: [(&str, &str); 2] = [
    ("own", "that of the generator's interface"),
    ("random", "one for each flow, drawn at random, the same in each trial"),
];

static FORMATS: [(&str, &str); 2] = [
    ("studies", "those of the published pkt-gen studies"),
    (
        "rfc2544",
        "RFC 2544, appendix C: 198.18.1.2 to 198.19.1.2, UDP from port 49184 to 7, no UDP checksum, fragments allowed",
    ),
];

static STAMPS: [(&str, &str); 2] = [
    ("software", "the generator's program, and the receiver's kernel"),
    (
        "hardware",
        "the cards of hosts with the tool af-packet; where a card cannot, its driver, and the page says why",
    ),
];

static FAMILIES: [(&str, &str); 2] = [("IPv4", "version 4"), ("IPv6", "version 6")];

static TRANSPORTS: [(&str, &str); 3] =
    [("UDP", "datagrams"), ("TCP", "SYN segments"), ("ICMP", "echo requests")];

pub(super) static FACTOR: Table = Table {
    what: "a factor",
    keys: &[&[
        key("about", Kind::Line).about("What it is, in words."),
        required("sets", Kind::OneOrMore(&Kind::Line)).about(
            "The field that it sets, of the variants (rules.before, interface.queues, routes.count) \
                or of the traffic (traffic.flows); several fields get the same value.",
        ),
        required("levels", Kind::Levels)
            .about("The values that it takes. The first is the one that others are compared with."),
        key("combine", Kind::Choice(&COMBINE)).about("How it goes with other factors. Default: crossed."),
        key("variants", Kind::List(&Kind::Line)).about("The variants that it varies. Default: all."),
    ]],
};

static COMBINE: [(&str, &str); 2] = [
    ("crossed", "every level with every level of the others"),
    ("alone", "swept by itself, while others that are swept alone are as the plan says without them"),
];

pub(super) static COMPARE: Table = Table {
    what: "[compare]",
    keys: &[&[
        key("with", Kind::Line).about("The variant that the others are compared with. Default: the first."),
        key("what", Kind::List(&Kind::Choice(&INTERESTS))).about(
            "Which comparisons the stopping rule waits for. Default: variants and expectations. The \
                others are reported as well.",
        ),
        key("until", Kind::Form(&SHARE))
            .about("Stop once the 95 % interval of each of them is narrower than this share."),
    ]],
};

static INTERESTS: [(&str, &str); 4] = [
    ("variants", "each variant with the one of `with`, at the same levels"),
    ("levels", "each level of a factor with its first, for the same variant"),
    ("expectations", "what [[expect]] names"),
    ("ceilings", "each variant with the tester alone"),
];

static TRIAL_LENGTH: Kind = Kind::duration(10 * MS, 24 * H);

pub(super) static TRIALS: Table = Table {
    what: "[trials]",
    keys: &[&[
        required("duration", TRIAL_LENGTH).about("The measured window of one trial."),
        key("blocks", Kind::count(1, MOST_BLOCKS))
            .about("Blocks at most: a block is one trial of everything."),
        key("budget", Kind::duration(MS, 1000 * H)).about("Time for all trials at most."),
        key("order", Kind::Choice(&ORDERS)).about("The order of trials. Default: blocks."),
        key("seed", Kind::count(0, u64::MAX))
            .about("Seed of the order; drawn and recorded where none is given."),
        key("reboot", Kind::Choice(&REBOOTS))
            .about("When the device under test is rebooted. Default: never."),
        key("pause", Kind::duration(MS, H)).about("Pause before each trial, after settings were changed."),
        key("measure", Kind::Choice(&MEASURES)).about("What is measured of each cell. Default: rate."),
        key("goals", Kind::List(&Kind::Form(&GOAL))).about(
            "search: what is searched for: ndr, pdr, rfc2544, tst009 or LOSS:FINAL:SUM:EXCEED. Default: ndr and pdr.",
        ),
        key("method", Kind::Choice(&METHODS)).about("search, rfc2544: how to search for a rate. Default: mlrsearch."),
        key("step", Kind::Form(&SHARE))
            .about("loss-curve, rfc2544: step between loads, as a share of the highest. Default: 10 %."),
        key("width", Kind::Form(&SHARE)).about(
            "search, rfc2544: distance of the bounds at the end, relative to the upper one. Default: 0.5 %.",
        ),
        key("min-load", Kind::Form(&FRAMES)).about("search, rfc2544: the lowest load. Default: 1 kpps."),
        key("max-load", Kind::Form(&FRAMES)).about(
            "search, loss-curve, rfc2544: the highest load. Default: 95 % of the rate of the tester alone.",
        ),
        TESTS,
        REPEATS,
        key("verify", Kind::count(0, 1000)).about(
            "rfc2544, and searches by bisection: further trials of a burst or load with loss before it counts as too much. Default: 0.",
        ),
        DRAIN,
        SETTLE,
    ]],
};

const TESTS: Key = key("tests", Kind::List(&BENCHMARK))
    .about("rfc2544: the tests. Default: throughput, latency, frame-loss, back-to-back and recovery.");
const REPEATS: Key = key("repeats", Kind::count(1, 10_000)).about(
    "rfc2544: runs of each test that has several. Default: latency and delay-variation 20, back-to-back 50, recovery and reset 5.",
);
const DRAIN: Key = key("drain", Kind::duration(MS, H))
    .about("rfc2544: how long the last frames of each trial are waited for. Default: 2 s (and pause 4 s).");
const SETTLE: Key =
    key("settle", Kind::duration(MS, H)).about("rfc2544: the rest after each trial. Default: 5 s.");

static BENCHMARK: Kind = Kind::Choice(&BENCHMARKS);

static BENCHMARKS: [(&str, &str); 8] = [
    ("throughput", "the highest rate without loss (RFC 2544, section 26.1)"),
    ("latency", "at the throughput (section 26.2, and RFC 8219, section 7.2)"),
    ("delay-variation", "of all frames, at the throughput (RFC 8219, section 7.3)"),
    ("frame-loss", "at falling loads, until two successive trials lose nothing (section 26.3)"),
    ("back-to-back", "the longest burst without loss (section 26.4, and RFC 9004)"),
    ("recovery", "how long an overload goes on to cost frames (section 26.5)"),
    ("reset", "how long the plan's event stops forwarding (section 26.6, and RFC 6201)"),
    ("forwarding-rate", "at the highest load, and the highest at any load (RFC 2889, section 5.1)"),
];

static MEASURES: [(&str, &str); 4] = [
    ("rate", "the forwarding rate at the load of its traffic"),
    ("search", "the highest loads that meet goals such as no loss (RFC 9971)"),
    (
        "loss-curve",
        "the loss at falling loads, until two successive trials lose nothing (RFC 2544, section 26.3)",
    ),
    ("rfc2544", "the tests of RFC 2544, and of documents after it"),
];

static METHODS: [(&str, &str); 2] = [
    ("mlrsearch", "a few trials at many loads, many at those that decide (RFC 9971)"),
    ("bisection", "one trial at each load, for one goal: the common habit, for comparisons"),
];

static REBOOTS: [(&str, &str); 3] = [
    ("never", "never"),
    ("when-needed", "when what comes next needs other settings that take effect at boot"),
    ("each-trial", "before each trial"),
];

const PROFILE_LENGTH: Kind = Kind::Optional { form: &DURATION, least: 40 * MS, most: H, default: PROFILE_NS };

pub(super) static COLLECT: Table = Table {
    what: "[collect]",
    keys: &[&[
        key("what", Kind::List(&Kind::Choice(&COLLECTORS))).about("Figures to collect. Default: cpus."),
        key("commands", Kind::List(&Kind::Line))
            .about("Commands on the device under test, after each trial, whose output is kept."),
        key("during", Kind::List(&Kind::Line)).about(
            "Commands on the device under test that run from before the load of each trial until \
                after it; their output is kept.",
        ),
        key("profile", PROFILE_LENGTH).about(
            "Whether, or how long, the stacks of the kernel are sampled under the load of each cell, \
                in trials after the others. true: 2 s.",
        ),
    ]],
};

/// Names for `collect.what`, with their meanings.
pub static COLLECTORS: [(&str, &str); 4] = [
    ("cpus", "how busy each CPU was (always collected)"),
    ("latency", "how long stamped frames took"),
    ("queues", "frames by receive queue (always collected)"),
    ("interrupts", "interrupts by CPU (always collected)"),
];

pub(super) static EXPECT: Table = Table {
    what: "an expectation",
    keys: &[&[
        required("of", Kind::Selector).about("The variant, or the cells at levels of factors, to judge."),
        required("is", Kind::Choice(&CLAIMS)).about("The expected result."),
        key("than", Kind::Selector).about("What it is compared with."),
        key("by", Kind::Form(&SHARE))
            .about("slower, faster: by at least this share. Default: any that is proven."),
        key("within", Kind::Form(&SHARE)).about("same: the two differ by no more than this share."),
        key("rate", Kind::Form(&RATE)).about("at-least, at-most: frames a second."),
        required("because", Kind::Line).about("Why this must be so."),
    ]],
};

static CLAIMS: [(&str, &str); 6] = [
    ("slower", "forwards less than the other"),
    ("faster", "forwards more than the other"),
    ("same", "is within a share of the other"),
    ("not-different", "is not proven to differ from the other: an A/A comparison"),
    ("at-least", "forwards at least a rate"),
    ("at-most", "forwards at most a rate"),
];

static QUICK: Table = Table {
    what: "[quick]",
    keys: &[&[
        key("duration", TRIAL_LENGTH).about("The measured window of one trial."),
        key("blocks", Kind::count(1, MOST_BLOCKS)).about("Blocks at most."),
        key("budget", Kind::duration(MS, 1000 * H)).about("Time for all trials at most."),
        key("until", Kind::Form(&SHARE)).about("When the comparisons are known well enough."),
        TESTS,
        REPEATS,
        key("pause", Kind::duration(MS, H)).about("Pause before each trial."),
        DRAIN,
        SETTLE,
        key("variants", Kind::List(&Kind::Line)).about("The variants that are part of it. Default: all."),
        key(
            "levels",
            Kind::Named(&Kind::Levels, "factors, each with the levels that it has in the quick form"),
        )
        .about("Levels of factors, instead of theirs."),
    ]],
};

const US: u64 = 1000;

pub(super) static VARIANT: Table = Table { what: "a variant", keys: &[&DESCRIPTION, &FIELDS, &SECTIONS] };

/// Settings that are allowed in a variant and in each of its sections for an operating system.
pub(super) static SETTINGS: Table = Table { what: "the settings for one operating system", keys: &[&FIELDS] };

static DESCRIPTION: [Key; 5] = [
    key("about", Kind::Line).about("What it is, in words."),
    key("from", Kind::Line).about(
        "The variant whose settings it takes over: one of the plan, or one that comes with linerate \
            (nft-stateful, known-loss=1000). What it says itself wins; lists are added to.",
    ),
    key("systems", Kind::List(&Kind::Choice(&SYSTEMS)))
        .about("The operating systems that it exists on. Default: all of the plan's."),
    key("apart", Kind::Flag).about(
        "Whether it stands in a lane of its own although another variant's settings are the same: \
            for A/A comparisons. Default: false.",
    ),
    key("requires", Kind::Table(&REQUIRES))
        .about("Requirements. If one is missing, the variant is skipped with the reason."),
];

static FIELDS: [Key; 15] = [
    key("dut", Kind::Dut).about("Kind of DUT between the tester's ends. Default: forwarding."),
    key("path", Kind::Table(&PATH)).about("The path between two end hosts (mode = \"end-hosts\")."),
    key("cpus", Kind::CpuCount)
        .about("How many CPUs forward: a number, or \"all\". Default: the lab's choice."),
    key("sysctls", Kind::Named(&Kind::Setting, "kernel settings by name")).about(
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
    key("interface", Kind::Table(&INTERFACE)).about("Settings of both interfaces of the device under test."),
    key("routes", Kind::Table(&ROUTES)).about("Routes beyond those that the traffic needs."),
    key("neighbours", Kind::Table(&NEIGHBOURS))
        .about("ARP and neighbour entries beyond those that the traffic needs."),
    key("rules", Kind::Table(&RULES)).about("The firewall's rule set."),
    key("states", Kind::Choice(&STATES)).about(
        "How far the connections of the test traffic are, where rules keep states. Default: \
            established.",
    ),
    key("modules", Kind::List(&Kind::Form(&MODULE))).about("Kernel modules to load."),
    key("files", Kind::Tables(&FILE)).about("Files to write. What was there comes back afterwards."),
    key("event", Kind::Table(&EVENT))
        .about("What befalls the device under test in trials of its reset or interruption."),
    key("commands", Kind::Tables(&COMMAND))
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
    key("linux", Kind::Table(&SETTINGS)).about("Settings that differ, or are added, on Linux."),
    key("vyos", Kind::Table(&SETTINGS)).about("Settings that differ, or are added, on VyOS than on Linux."),
    key("freebsd", Kind::Table(&SETTINGS)).about("Settings that differ, or are added, on FreeBSD."),
    key("pfsense", Kind::Table(&SETTINGS))
        .about("Settings that differ, or are added, on pfSense than on FreeBSD."),
    key("opnsense", Kind::Table(&SETTINGS))
        .about("Settings that differ, or are added, on OPNsense than on FreeBSD."),
    key("openbsd", Kind::Table(&SETTINGS)).about("Settings that differ, or are added, on OpenBSD."),
];

static PATH: Table = Table {
    what: "[path]",
    keys: &[&[
        key("rtt", Kind::duration(0, 10 * S))
            .about("Round-trip time without load: half of it in each direction."),
        key("rate", Kind::Form(&SPEED)).about("Speed in each direction, at layer 1 as that of a link."),
        key("by", Kind::Choice(&PATH_BY)).about(
            "Who delays the frames. Default: netem where the kernel has it, else linerate itself; the \
                record says which.",
        ),
    ]],
};

static PATH_BY: [(&str, &str); 3] = [
    ("auto", "netem where the kernel has it, else linerate"),
    ("netem", "the kernel's network emulator, with tbf for the rate"),
    ("linerate", "linerate itself"),
];

static INTERFACE: Table = Table { what: "[interface]", keys: &[&ENDS, &END_FIELDS] };

static END: Table = Table { what: "the settings of one interface", keys: &[&END_FIELDS] };

static ENDS: [Key; 2] = [
    key("in", Kind::Table(&END)).about("Settings that differ at the interface towards the generator."),
    key("out", Kind::Table(&END)).about("Settings that differ at the interface towards the receiver."),
];

static END_FIELDS: [Key; 23] = [
    key("mtu", Kind::Within(&LENGTH, 576, 15_982)).about("Largest packet, without Ethernet header and FCS."),
    key("gro", Kind::Flag).about("Generic receive offload (Linux)."),
    key("gso", Kind::Flag).about("Generic segmentation offload (Linux)."),
    key("tso", Kind::Flag).about("TCP segmentation offload."),
    key("lro", Kind::Flag).about("Large receive offload: to be off on a router."),
    key("rx-checksum", Kind::Flag).about("The card verifies checksums."),
    key("tx-checksum", Kind::Flag).about("The card writes checksums."),
    key("vlan-offload", Kind::Flag).about("The card takes VLAN tags off and puts them on."),
    key("vlan-tso", Kind::Flag).about("TCP segmentation offload of tagged frames (FreeBSD: vlanhwtso)."),
    key("udp-gro-forwarding", Kind::Flag).about("UDP frames of a flow are merged to be forwarded (Linux)."),
    key("flow-control", Kind::Flag).about("Ethernet pause frames (Linux)."),
    key("adaptive-interrupts", Kind::Flag).about("The interrupt rate adapts itself (Linux)."),
    key("threaded-napi", Kind::Flag).about("NAPI polls in kernel threads instead of softirqs (Linux)."),
    key("private-flags", Kind::Named(&Kind::Flag, "a driver's private flags by name"))
        .about("Features of this driver alone (Linux)."),
    key("queues", Kind::count(1, 1024)).about("Receive and transmit queues (Linux)."),
    key("rx-ring", Kind::count(1, 65_536)).about("Descriptors of each receive queue (Linux)."),
    key("tx-ring", Kind::count(1, 65_536)).about("Descriptors of each transmit queue (Linux)."),
    key("rx-wait", Kind::duration(US, S))
        .about("A receive interrupt waits at most this long for more frames (Linux)."),
    key("rx-wait-frames", Kind::count(1, 65_535))
        .about("A receive interrupt waits for at most this many frames (Linux)."),
    key("rps", Kind::Form(&CPU_LIST)).about("CPUs that received frames are spread over in software (Linux)."),
    key("rfs", Kind::count(0, 1 << 24)).about("Flows that each queue remembers the CPU of (Linux)."),
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
        key("undo", Kind::Form(&TEMPLATE)).about("The line that puts the old one back, for the next boot."),
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
        key("via", Kind::Form(&ADDRESS)).about("The next hop. Default: the tester's address at that end."),
        key("end", Kind::Choice(&END_NAMES)).about("The interface that it leaves through. Default: out."),
    ]],
};

static END_NAMES: [(&str, &str); 2] = [("in", "towards the generator"), ("out", "towards the receiver")];

static NEIGHBOURS: Table = Table {
    what: "[neighbours]",
    keys: &[&[
        key("count", Kind::count(0, 1_000_000)).about("Entries to generate that no frame is sent to."),
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
        key("tool", Kind::Choice(&TOOLS)).about("Which firewall. Default for a file: seen by its text."),
        key("file", Kind::Line).about(
            "A rule file of your own instead of a rule set that linerate writes, relative to the \
                plan: nft, iptables-save, pf.conf, ipfw.",
        ),
        key("map", Kind::Named(&Kind::Choice(&Meaning::NAMES), "interfaces and networks of the file")).about(
            "Interfaces and networks that the file names, and the end of the lab that each of them \
                is: in, out, or elsewhere (networks). Default: guessed, and said.",
        ),
        key("filter", Kind::Choice(&FILTERS)).about("Handling of a frame."),
        key("before", Kind::count(0, MAX_RULES as u64))
            .about("Rules that match nothing, in front of the last, which lets everything pass. Default: 0."),
        key("table", Kind::count(0, MAX_ENTRIES as u64)).about(
            "Entries of a table (set) that match nothing, looked up for each frame: networks, on \
                Linux addresses.",
        ),
        key("states", Kind::count(1, MAX_STATES)).about("Connections that the state table is to hold."),
        key("hash", Kind::Choice(&HASHES))
            .about("Whether the state table's hash is sized for them. Default: sized."),
        key("optimize", Kind::Flag).about(
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
        key("process", Kind::Form(&PROCESS)).about("process-killed: its name."),
        key("run", Kind::Form(&TEMPLATE)).about(
            "command: a line for the system's shell. process-killed: the line that starts it again; \
                without it, something else must. May contain placeholders.",
        ),
        key("undo", Kind::Form(&TEMPLATE)).about("command: the line that undoes it."),
    ]],
};

static EVENTS: [(&str, &str); 7] = [
    ("forwarding-off", "the kernel forwards nothing for a while: an interruption"),
    ("link-down", "an interface goes down and comes up again: an interruption"),
    ("rules-reloaded", "the variant's rules are loaded again: a reconfiguration"),
    ("process-killed", "a process is killed: a process reset (RFC 6201, section 4.2.2)"),
    ("reboot", "an operating system reset (RFC 6201, section 4.2.1). Needs a real lab"),
    (
        "power-off",
        "the lab file's power-cycle program: a power interruption (RFC 6201, section 4.3.1). Needs a real lab",
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
            "How long it may take, and its undoing. Default: 1 min in the embedded lab, 5 min on a \
                host.",
        ),
        key("undone-by-reboot", Kind::Flag).about("Instead of `undo`: a reboot undoes it. Default: false."),
    ]],
};

pub(super) static REQUIRES: Table = Table {
    what: "[requires]",
    keys: &[&[
        key("tools", Kind::List(&Kind::Line)).about("Programs on the path."),
        key("modules", Kind::List(&Kind::Line)).about("Kernel modules, loaded, built in or loadable."),
        key("sysctls", Kind::List(&Kind::Line)).about("Kernel settings that exist."),
        key("files", Kind::List(&Kind::Line)).about("Files or devices that exist."),
        key("kernel", Kind::Form(&VERSION)).about("Kernel version, at least."),
        key("cpus", Kind::count(1, 8192)).about("CPUs, at least."),
        key("memory", Kind::Form(&MEMORY)).about("Memory, at least."),
    ]],
};
