//! The keys of a plan: the only place where they are listed.

mod variant;

use super::backend::OF_THIS_MACHINE;
use super::forms::{CPU_LIST, FLOW_ORDER, RATE, SHARE, SIZE, SPEED};
use super::grammar::{Kind, Table, key, required};
use linerate_measure::strategy::ORDERS;
use variant::SYSTEMS;
pub(super) use variant::{REQUIRES, SETTINGS, VARIANT};

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

static LAB: Table = Table {
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
    ]],
};

static MODES: [(&str, &str); 2] = [
    ("inline", "closed loop on the generator's CPU: the cost per frame"),
    ("threaded", "open loop, the DUT has CPUs of its own: loss and latency under load"),
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
        key("rate", Kind::Form(&RATE)).about("Offered load. Default: max."),
        key("checksum", Kind::Flag).about("Whether IPv4 UDP frames carry a checksum. Default: true."),
        key("stamp-every", Kind::count(1, 1_000_000))
            .about("One frame in so many carries a time stamp. Default: 64."),
    ]],
};

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
    ]],
};

static REBOOTS: [(&str, &str); 3] = [
    ("never", "never"),
    ("when-needed", "when what comes next needs other settings that take effect at boot"),
    ("each-trial", "before each trial"),
];

static COLLECT: Table = Table {
    what: "[collect]",
    keys: &[&[
        key("what", Kind::List(&Kind::Choice(&COLLECTORS))).about("Figures to collect. Default: cpus."),
        key("commands", Kind::List(&Kind::Line))
            .about("Commands on the device under test, after each trial, whose output is kept."),
        key("during", Kind::List(&Kind::Line)).about(
            "Commands on the device under test that run from before the load of each trial until \
                after it; their output is kept.",
        ),
    ]],
};

/// Names for `collect.what`, with their meanings.
pub static COLLECTORS: [(&str, &str); 4] = [
    ("cpus", "how busy each CPU was"),
    ("latency", "how long stamped frames took"),
    ("queues", "frames by receive queue"),
    ("interrupts", "interrupts by CPU"),
];

static EXPECT: Table = Table {
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
        key("variants", Kind::List(&Kind::Line)).about("The variants that are part of it. Default: all."),
        key(
            "levels",
            Kind::Named(&Kind::Levels, "factors, each with the levels that it has in the quick form"),
        )
        .about("Levels of factors, instead of theirs."),
    ]],
};
