//! The keys of a plan: the only place where they are listed.

mod variant;

pub(super) use variant::{REQUIRES, SETTINGS, SYSTEMS, VARIANT};

use super::backend::OF_THIS_MACHINE;
use super::forms::{
    CPU_LIST, DURATION, FLOOD, FLOW_ORDER, FRAMES, ILLEGAL, PART, RATE, SELECTION, SHARE, SIZE,
    SPEED,
};
use super::goal::GOAL;
use super::grammar::{Key, Kind, Table, key, required};
use linerate_measure::strategy::ORDERS;
use linerate_wire::{MOST_CONNECTIONS, SERVERS};

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
            .about("Where the plan runs. Without [lab]: in network namespaces of this machine."),
        key("traffic", Kind::Table(&TRAFFIC))
            .about("The frames that are sent, unless a factor says otherwise."),
        required(
            "variants",
            Kind::Named(&Kind::Table(&VARIANT), "variants by name"),
        )
        .about("The configurations of the device under test that are compared."),
        key(
            "factors",
            Kind::Named(&Kind::Table(&FACTOR), "factors by name"),
        )
        .about("Factors that vary beside the variants, each with a list of levels."),
        key("compare", Kind::Table(&COMPARE))
            .about("Pairs to compare, and the precision at which to stop."),
        required("trials", Kind::Table(&TRIALS)).about("How trials are run."),
        key("collect", Kind::Table(&COLLECT))
            .about("Data to collect with each trial, beyond the counters."),
        key("requires", Kind::Table(&REQUIRES)).about("Requirements of the whole plan."),
        key("expect", Kind::Tables(&EXPECT))
            .about("Expectations of the author, which make the plan a test as well."),
        key("quick", Kind::Table(&QUICK))
            .about("Settings that differ in the quick form (--quick)."),
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
        key("dut-cpus", Kind::Form(&CPU_LIST)).about("CPUs of the embedded lab's DUT, where it has CPUs of its own (threaded mode, which searches always use)."),
        key("link-speed", Kind::Form(&SPEED)).about("Speed of the slower link. It counts as 100 % in rates such as 50 % and in the loads of rfc2544. Default: `link-speed` of the lab file, else what its hosts report; in the embedded lab, rfc2544 takes 95 % of the tester's rate as 100 %."),
        key("port", Kind::Choice(OF_THIS_MACHINE)).about(
            "How the embedded lab sends and receives frames. Default: xdp if this process may \
                load XDP programs, otherwise af-packet.",
        ),
        key("batch", Kind::count(1, 256)).about(
            "Number of frames that the embedded lab's generator hands to the kernel at once. Default: linerate \
                tries several numbers and chooses one by their rates.",
        ),
        key("statement", Kind::Line).about(
            "Your own text for the page: how the embedded lab's DUT was set up (RFC 2544, section 7, asks that the DUT be set up as its \
                manual says). In a lab of hosts, write it in the lab file, in the DUT's section.",
        ),
    ]],
};

static MODES: [(&str, &str); 3] = [
    (
        "inline",
        "closed loop: generator and DUT share a CPU, and the generator waits for the DUT; measures the cost per frame",
    ),
    (
        "threaded",
        "open loop: the DUT has CPUs of its own; measures loss and latency under load",
    ),
    (
        "end-hosts",
        "iperf3 sends TCP from one host to another, over a path: the hosts are the DUT",
    ),
];

static CLOSES: [(&str, &str); 3] = [
    ("client", "FIN of the client, FIN of the server, ACK"),
    (
        "server",
        "the client's ACK makes the server send FIN; FIN of the client, ACK",
    ),
    ("reset", "RST of the client"),
];

pub(super) static TRAFFIC: Table = Table {
    what: "[traffic]",
    keys: &[&[
        key("connections", Kind::Choice(&CONNECTIONS)).about(
            "Measure new connections a second instead of frames a second, between 64 clients and the servers. No two connections have the same addresses and ports. \
                Default: none.",
        ),
        key("http", Kind::Choice(&HTTP)).about(
            "Measure HTTP/1.1 requests a second instead of frames a second, by the programs wrk and nginx at both ends of the DUT, over as many connections as there are flows (64, unless flows are given). Embedded lab and IPv4 only. Default: none.",
        ),
        key("object", Kind::count(1, LARGEST_HTTP_OBJECT)).about(
            "Bytes of the server's answer. In a connection: at most 1,440, or 65,535 with served-by nginx; default 6, a frame of 64 bytes. To a request of HTTP: at most 67,108,864; default 1,024.",
        ),
        key("open", Kind::count(1, MOST_CONNECTIONS)).about(
            "N: open N TCP connections, keep them open for the duration of a trial, send a request on each of them, then close all. \
                N is at most 1,048,576 for each server (64 clients with 16,384 ports each), so 16,777,216 with 16 servers. \
                Default: connections are not kept open.",
        ),
        key("close", Kind::Choice(&CLOSES)).about(
            "Who closes the connections that are kept open at the same time. If given, the rate counts the connections closed a second, otherwise those opened. Default: the client.",
        ),
        key("servers", Kind::count(1, SERVERS as u64))
            .about("Number of servers of the connections: 1, 2, 4, 8 or 16. Default: 16."),
        key("served-by", Kind::Choice(&SERVED_BY)).about(
            "Who answers the connections. nginx comes with the kind request, in the embedded lab and IPv4 only. Default: tester.",
        ),
        key("flood", Kind::Form(&FLOOD)).about(
            "A flood of SYNs that comes with the connections, in SYNs a second: from 32,768 addresses that no client has, to the same servers. No server answers it. \
                Default: \"none\".",
        ),
        key("illegal", Kind::Form(&ILLEGAL)).about(
            "Share of illegal attempts (RFC 3511: the firewall should refuse them) among all attempts, mixed evenly: SYNs from the same clients to port 81 of the same servers. No server answers them. \
                At most 90 %. Default: \"none\".",
        ),
        key("size", Kind::Form(&SIZE))
            .about("Frame length with FCS, or a mix of lengths. Default: \"64 B\"."),
        key("family", Kind::Choice(&FAMILIES)).about("IP version. Default: IPv4."),
        key("transport", Kind::Choice(&TRANSPORTS)).about("Protocol above IP. Default: UDP."),
        key("flows", Kind::count(1, 5_000_000)).about("Number of flows, which differ in addresses or ports. Default: 2000."),
        key("order", Kind::Form(&FLOW_ORDER))
            .about("The order of flows: sequential, random or zipf:EXPONENT (a few flows get most of the frames). Default: sequential."),
        key("format", Kind::Choice(&FORMATS)).about("Addresses, ports and flags. Default: studies."),
        key("networks", Kind::count(1, 256)).about(
            "Number of destination networks; the embedded lab's DUT gets a route to each. \
                Default: 1.",
        ),
        key("ports", Kind::Form(&SELECTION)).about(
            "Ports of the flows: counted (from a fixed port on, as few as the flows need) or random (RFC 4814, section 4.5). All trials have the same ports; \
                random:SEED selects another set. Default: counted.",
        ),
        key("addresses", Kind::Form(&SELECTION)).about(
            "Host part of source and destination addresses: counted (one after another) or random (RFC 4814, section 4.4). All trials \
                have the same addresses; random:SEED selects another set. Default: counted.",
        ),
        key("broadcast-every", Kind::count(0, 1_000_000)).about(
            "N: one frame in N goes to the Ethernet broadcast address instead, and is counted separately. \
                Default: 0, none.",
        ),
        key("ipv6-share", Kind::Form(&PART)).about(
            "Share of IPv6 frames in a mix with IPv4 frames (RFC 5180, section 7). \
                Default: 0 %.",
        ),
        key("extension-headers", Kind::Choice(&EXTENSIONS))
            .about("IPv6 extension headers of UDP frames (RFC 5180, section 5.3). Default: none."),
        key("source-macs", Kind::Choice(&SOURCE_MACS))
            .about("Ethernet source addresses of the frames (RFC 4814, section 4.2). Default: own."),
        key("burst", Kind::count(0, 65_536)).about(
            "Frames of each burst: the load comes in bursts with pauses between them (RFC 2544, section \
                21). Default: 0, evenly spaced.",
        ),
        key("rate", Kind::Form(&RATE)).about(
            "Offered load of each direction: max, 500kpps, 1Gbit/s:l1 (with preamble and gap), 1Gbit/s:l2, or 50% (of the link speed). \
                To load half of what the DUT forwards, measure max first, and give the rate in pps. Default: max.",
        ),
        key("checksum", Kind::Flag).about("Whether IPv4 UDP frames carry a checksum. Default: true."),
        key("stamp-every", Kind::count(1, 1_000_000))
            .about("N: one frame in N carries a time stamp. Default: 64."),
        key("stamps", Kind::Choice(&STAMPS)).about("Where frames get their time stamps. Default: software."),
        key("direction", Kind::Choice(&DIRECTIONS)).about(
            "Direction of the frames through the DUT; the rate is that of each direction. Default: forward.",
        ),
    ]],
};

/// Bytes of an object of HTTP at most.
pub(super) const LARGEST_HTTP_OBJECT: u64 = 64 << 20;

static HTTP: [(&str, &str); 2] = [
    (
        "close",
        "a connection for each request; the server closes it after its answer",
    ),
    (
        "keep-alive",
        "connections stay open, and requests follow each other",
    ),
];

static SERVED_BY: [(&str, &str); 2] = [
    (
        "tester",
        "the tester's own program, for as many servers as --servers says",
    ),
    (
        "nginx",
        "nginx by the kernel's TCP, at one address; the client's requests are of HTTP, and nginx counts them, too",
    ),
];

static CONNECTIONS: [(&str, &str); 5] = [
    (
        "request",
        "six frames: SYN; SYN/ACK; ACK with a request; answer with FIN; FIN; ACK. The server closes first",
    ),
    (
        "greeting",
        "like request, but the client's ACK is bare, as kernels send it, and the server speaks first",
    ),
    (
        "rst",
        "like request, but the client ends with RST: five frames",
    ),
    ("half", "SYNs that nobody answers"),
    ("udp", "a datagram and its answer"),
];

/// In plans.
pub static DIRECTIONS: [(&str, &str); 2] = [
    ("forward", "from the inside of the DUT to its outside"),
    (
        "both",
        "both directions at once, at equal rates; addresses and ports of frames from the outside are those of the inside, swapped, so that a firewall takes them for answers",
    ),
];

static EXTENSIONS: [(&str, &str); 6] = [
    ("none", "none"),
    (
        "hop-by-hop",
        "hop-by-hop options, which every router may examine",
    ),
    ("destination-options", "destination options"),
    ("routing", "a routing header without a segment left"),
    ("fragment", "a fragment header on an unfragmented packet"),
    (
        "chain",
        "routing, destination options and fragment: 40 bytes",
    ),
];

static SOURCE_MACS: [(&str, &str); 2] = [
    ("own", "the address of the generator's interface"),
    (
        "random",
        "a random address for each flow, the same in each trial",
    ),
];

static FORMATS: [(&str, &str); 2] = [
    ("studies", "those of the published pkt-gen studies"),
    (
        "rfc2544",
        "RFC 2544, appendix C: 198.18.1.2 to 198.19.1.2, UDP from port 49184 to 7, no UDP checksum, fragments allowed",
    ),
];

static STAMPS: [(&str, &str); 2] = [
    (
        "software",
        "by the generator's program and the receiver's kernel",
    ),
    (
        "hardware",
        "by the cards, on hosts with the tool af-packet; if a card cannot, by its driver, and the page says why",
    ),
];

static FAMILIES: [(&str, &str); 2] = [("IPv4", "version 4"), ("IPv6", "version 6")];

static TRANSPORTS: [(&str, &str); 3] = [
    ("UDP", "datagrams"),
    ("TCP", "SYN segments"),
    ("ICMP", "echo requests"),
];

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
        key("combine", Kind::Choice(&COMBINE)).about("How it is combined with other factors. Default: crossed."),
        key("variants", Kind::List(&Kind::Line)).about("The variants that it varies. Default: all."),
    ]],
};

static COMBINE: [(&str, &str); 2] = [
    ("crossed", "every level with every level of the others"),
    (
        "alone",
        "swept by itself: meanwhile, the other factors that are swept alone keep the values of the plan",
    ),
];

pub(super) static COMPARE: Table = Table {
    what: "[compare]",
    keys: &[&[
        key("with", Kind::Line).about("The variant that the others are compared with. Default: the first."),
        key("what", Kind::List(&Kind::Choice(&INTERESTS))).about(
            "Which comparisons the stopping rule waits for. Default: variants and expectations; in a \
                plan with neither, levels; in one without levels, ceilings. The others are reported as well.",
        ),
        key("until", Kind::Form(&SHARE))
            .about("Stop once the 95 % interval of each of these comparisons is narrower than this share."),
    ]],
};

static INTERESTS: [(&str, &str); 4] = [
    (
        "variants",
        "each variant with the variant that `with` names, at the same levels",
    ),
    (
        "levels",
        "each level of a factor with its first, for the same variant",
    ),
    ("expectations", "the comparisons that [[expect]] names"),
    ("ceilings", "each variant with the tester alone"),
];

static TRIAL_LENGTH: Kind = Kind::duration(10 * MS, 24 * H);

pub(super) static TRIALS: Table = Table {
    what: "[trials]",
    keys: &[&[
        required("duration", TRIAL_LENGTH).about(
            "How long one trial measures.",
        ),
        key("blocks", Kind::count(1, MOST_BLOCKS))
            .about("Largest number of blocks: a block is one trial of every cell."),
        key("budget", Kind::duration(MS, 1000 * H)).about(
            "Longest time for all trials. Default of searches: 10 min, or twice the time that the goals need, if that is longer.",
        ),
        key("order", Kind::Choice(&ORDERS)).about("The order of trials. Default: blocks."),
        key("seed", Kind::count(0, u64::MAX))
            .about("Seed of the order. Without it, a random seed is used and recorded."),
        key("reboot", Kind::Choice(&REBOOTS))
            .about("When the device under test is rebooted. Default: never."),
        key("pause", Kind::duration(MS, H)).about("The wait before each trial."),
        key("measure", Kind::Choice(&MEASURES)).about("What is measured of each cell. Default: rate."),
        key("goals", Kind::List(&Kind::Form(&GOAL))).about(
            "search: the goals (docs/search.md): ndr, pdr, rfc2544, tst009 (ETSI TST 009) or LOSS:FINAL:SUM:EXCEED. Default: ndr and pdr; ndr for a binary search.",
        ),
        key("method", Kind::Choice(&METHODS)).about("search, rfc2544: how to search for a rate. Default: mlrsearch."),
        key("step", Kind::Form(&SHARE))
            .about("loss-curve, rfc2544: step between loads, as a share of the highest load. Default: 10 %."),
        key("width", Kind::Form(&SHARE)).about(
            "search, rfc2544: the search ends when its bounds differ by at most this share of the upper one. Default: 0.5 %.",
        ),
        key("min-load", Kind::Form(&FRAMES)).about("search, rfc2544: the lowest load. Default: 1 kpps."),
        key("max-load", Kind::Form(&FRAMES)).about(
            "search, loss-curve, rfc2544: the highest load; required in a lab of real hosts. Default: 95 % of the rate of the \
                tester alone.",
        ),
        TESTS,
        REPEATS,
        key("verify", Kind::count(0, 1000)).about(
            "rfc2544, search: after a trial with loss, repeat it up to this many times. The burst (back-to-back) counts as too long, or \
                the load (binary search) as too high, only if all repeats lose frames. Default: 0.",
        ),
        DRAIN,
        SETTLE,
    ]],
};

const TESTS: Key = key("tests", Kind::List(&BENCHMARK))
    .about("rfc2544: the tests. Default: throughput, latency, frame-loss and recovery; also back-to-back, unless the frames come in bursts; also reset, if there is an event.");
const REPEATS: Key = key("repeats", Kind::count(1, 10_000)).about(
    "rfc2544: runs of each repeated test. Default: latency and delay-variation 20, back-to-back 50, recovery and reset 5.",
);
const DRAIN: Key = key("drain", Kind::duration(MS, H))
    .about("rfc2544: the wait for the last frames of each trial. Default: 2 s. In these tests, the default of pause is 4 s.");
const SETTLE: Key = key("settle", Kind::duration(MS, H))
    .about("rfc2544: the quiet time after each trial. Default: 5 s.");

static BENCHMARK: Kind = Kind::Choice(&BENCHMARKS);

static BENCHMARKS: [(&str, &str); 8] = [
    (
        "throughput",
        "the highest rate without loss (RFC 2544, section 26.1)",
    ),
    (
        "latency",
        "at the throughput (section 26.2, and RFC 8219, section 7.2)",
    ),
    (
        "delay-variation",
        "PDV and IPDV of all frames, at the throughput (RFC 8219, section 7.3)",
    ),
    (
        "frame-loss",
        "at falling loads, until two successive trials lose nothing (section 26.3)",
    ),
    (
        "back-to-back",
        "the longest burst without loss (section 26.4, and RFC 9004)",
    ),
    (
        "recovery",
        "how long frames are lost after an overload (section 26.5)",
    ),
    (
        "reset",
        "how long the event of --event or of the plan stops forwarding (section 26.6, and RFC 6201)",
    ),
    (
        "forwarding-rate",
        "forwarding rate at the maximum offered load (FRMOL), and the highest at any load (MFR): RFC 2889, section 5.1",
    ),
];

static MEASURES: [(&str, &str); 4] = [
    ("rate", "the forwarding rate at the load of its traffic"),
    (
        "search",
        "the highest loads that meet goals such as no loss (RFC 9971)",
    ),
    (
        "loss-curve",
        "the loss at falling loads, until two successive trials lose nothing (RFC 2544, section 26.3)",
    ),
    ("rfc2544", "the tests of RFC 2544 and later RFCs"),
];

/// Begins the meaning of a word that plans may still have.
pub const OLDER_NAME: &str = "older name of ";

static METHODS: [(&str, &str); 3] = [
    (
        "mlrsearch",
        "a few trials for most of the loads, many for the loads that decide the result (RFC 9971)",
    ),
    (
        "binary",
        "binary search: one trial at each load, unless losses are verified",
    ),
    ("bisection", "older name of binary"),
];

static REBOOTS: [(&str, &str); 3] = [
    ("never", "never"),
    (
        "when-needed",
        "when the next trial needs other settings that take effect at boot",
    ),
    ("each-trial", "before each trial"),
];

const PROFILE_LENGTH: Kind = Kind::Optional {
    form: &DURATION,
    least: 40 * MS,
    most: H,
    default: PROFILE_NS,
};

/// Sampled load of each cell, if none is given: some two thousand samples of each CPU.
pub const PROFILE_NS: u64 = 2_000_000_000;

pub(super) static COLLECT: Table = Table {
    what: "[collect]",
    keys: &[&[
        key("what", Kind::List(&Kind::Choice(&COLLECTORS))).about("Figures to collect. Default: cpus."),
        key("commands", Kind::List(&Kind::Line))
            .about("Commands to run on the device under test after each trial; their output is kept."),
        key("during", Kind::List(&Kind::Line)).about(
            "Commands to run on the device under test that begin before the load of each trial and end \
                after it; their output is kept.",
        ),
        key("profile", PROFILE_LENGTH).about(
            "Whether, or for how long, the stacks of the kernel are sampled under the load of each cell, \
                in further trials at the end. true: 2 s.",
        ),
    ]],
};

/// Names for `collect.what`, with their meanings.
pub static COLLECTORS: [(&str, &str); 4] = [
    ("cpus", "the load of each CPU (always collected)"),
    ("latency", "how long stamped frames took"),
    ("queues", "frames by receive queue (always collected)"),
    ("interrupts", "interrupts by CPU (always collected)"),
];

pub(super) static EXPECT: Table = Table {
    what: "an expectation",
    keys: &[&[
        required("of", Kind::Selector)
            .about("The variant, or the cells at levels of factors, to judge."),
        required("is", Kind::Choice(&CLAIMS)).about("The expected result."),
        key("than", Kind::Selector).about("What it is compared with."),
        key("by", Kind::Form(&SHARE))
            .about("slower, faster: by at least this share. Default: any proven difference."),
        key("within", Kind::Form(&SHARE)).about("same: the two differ by no more than this share."),
        key("rate", Kind::Form(&RATE)).about("at-least, at-most: frames a second."),
        required("because", Kind::Line).about("Why this must be so."),
    ]],
};

static CLAIMS: [(&str, &str); 8] = [
    ("slower", "forwards less than the other"),
    ("faster", "forwards more than the other"),
    ("same", "is within a share of the other"),
    (
        "not-different",
        "is not proven to differ from the other: an A/A comparison",
    ),
    ("at-least", "forwards at least a rate"),
    ("at-most", "forwards at most a rate"),
    (
        "all-pass",
        "each connection that is kept open carries its request and answer",
    ),
    ("none-passes", "none of them does"),
];

static QUICK: Table = Table {
    what: "[quick]",
    keys: &[&[
        key("duration", TRIAL_LENGTH).about("The measured window of one trial."),
        key("blocks", Kind::count(1, MOST_BLOCKS)).about("Blocks at most."),
        key("budget", Kind::duration(MS, 1000 * H)).about("Time for all trials at most."),
        key("until", Kind::Form(&SHARE))
            .about("Stop once the 95 % interval of each comparison is narrower than this share."),
        TESTS,
        REPEATS,
        key("pause", Kind::duration(MS, H)).about("Pause before each trial."),
        DRAIN,
        SETTLE,
        key("variants", Kind::List(&Kind::Line))
            .about("The variants of the quick form. Default: all."),
        key(
            "levels",
            Kind::Named(
                &Kind::Levels,
                "factors, each with the levels that it has in the quick form",
            ),
        )
        .about("Levels of factors, instead of those in [factors]."),
    ]],
};
