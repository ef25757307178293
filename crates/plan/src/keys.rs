//! The keys of a plan: the only place where they are listed.

mod variant;

use super::backend::OF_THIS_MACHINE;
use super::grammar::{Key, Kind, Table};
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
        Key::required("title", Kind::Line, "What the experiment is called."),
        Key::required("question", Kind::Line, "The question that it answers."),
        Key::new("source", Kind::Line, "The document that the experiment comes from."),
        Key::new(
            "lab",
            Kind::Table(&LAB),
            "Where it runs. Without it: in network namespaces of this machine.",
        ),
        Key::new(
            "traffic",
            Kind::Table(&TRAFFIC),
            "The frames that are sent, unless a factor says otherwise.",
        ),
        Key::required(
            "variants",
            Kind::Named(&Kind::Table(&VARIANT), "variants by name"),
            "The configurations of the device under test that are compared.",
        ),
        Key::new(
            "factors",
            Kind::Named(&Kind::Table(&FACTOR), "factors by name"),
            "What is varied beside the variants: each is a list of levels.",
        ),
        Key::new(
            "compare",
            Kind::Table(&COMPARE),
            "What is compared with what, and when that is known well enough.",
        ),
        Key::required("trials", Kind::Table(&TRIALS), "How trials are run."),
        Key::new("collect", Kind::Table(&COLLECT), "What is collected with each trial, beyond the counters."),
        Key::new("requires", Kind::Table(&REQUIRES), "What the whole plan cannot do without."),
        Key::new(
            "expect",
            Kind::Tables(&EXPECT),
            "What the author expects, so that the plan is a test as well.",
        ),
        Key::new("quick", Kind::Table(&QUICK), "What is different in the quick form (--quick)."),
    ]],
};

static LAB: Table = Table {
    what: "[lab]",
    keys: &[&[
        Key::new(
            "file",
            Kind::Line,
            "The lab file of a real lab: its hosts, links and roles. Without it: the embedded lab.",
        ),
        Key::new(
            "systems",
            Kind::List(&Kind::Choice(&SYSTEMS)),
            "Operating systems of the device under test that the plan is written for. Default: linux.",
        ),
        Key::new("mode", Kind::Choice(&MODES), "How the embedded lab shares its CPUs. Default: inline."),
        Key::new("generator-cpus", Kind::CpuList, "CPUs of the embedded lab's generator, one thread each."),
        Key::new("dut-cpus", Kind::CpuList, "CPUs of the embedded lab's DUT, in threaded mode."),
        Key::new("link-speed", Kind::Speed, "What 100 % of line rate is."),
        Key::new(
            "port",
            Kind::Choice(&OF_THIS_MACHINE),
            "How frames leave and arrive in the embedded lab. Default: xdp where this process may load its programs.",
        ),
        Key::new(
            "batch",
            Kind::Count { least: 1, most: 256 },
            "Frames that the embedded lab's generator hands over at once. Default: the number that measures best.",
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
        Key::new("size", Kind::Size, "Frame length with FCS, or a mix of lengths. Default: \"64 B\"."),
        Key::new("family", Kind::Choice(&FAMILIES), "IP version. Default: IPv4."),
        Key::new("transport", Kind::Choice(&TRANSPORTS), "What is above IP. Default: UDP."),
        Key::new(
            "flows",
            Kind::Count { least: 1, most: 5_000_000 },
            "Pairs of addresses and ports. Default: 2000.",
        ),
        Key::new(
            "order",
            Kind::FlowOrder,
            "The order of flows: sequential, random or zipf:EXPONENT. Default: sequential.",
        ),
        Key::new("rate", Kind::Rate, "Offered load. Default: max."),
        Key::new("checksum", Kind::Flag, "Whether IPv4 UDP frames carry a checksum. Default: true."),
        Key::new(
            "stamp-every",
            Kind::Count { least: 1, most: 1_000_000 },
            "One frame in so many carries a time stamp. Default: 64.",
        ),
    ]],
};

static FAMILIES: [(&str, &str); 2] = [("IPv4", "version 4"), ("IPv6", "version 6")];

static TRANSPORTS: [(&str, &str); 3] =
    [("UDP", "datagrams"), ("TCP", "SYN segments"), ("ICMP", "echo requests")];

pub(super) static FACTOR: Table = Table {
    what: "a factor",
    keys: &[&[
        Key::new("about", Kind::Line, "What it is, in words."),
        Key::required(
            "sets",
            Kind::OneOrMore(&Kind::Line),
            "The field that it sets, of the variants (rules.before, interface.queues, routes.count) or of the traffic \
             (traffic.flows); several fields get the same value.",
        ),
        Key::required(
            "levels",
            Kind::Levels,
            "The values that it takes. The first is the one that others are compared with.",
        ),
        Key::new("combine", Kind::Choice(&COMBINE), "How it goes with other factors. Default: crossed."),
        Key::new("variants", Kind::List(&Kind::Line), "The variants that it varies. Default: all."),
    ]],
};

static COMBINE: [(&str, &str); 2] = [
    ("crossed", "every level with every level of the others"),
    ("alone", "swept by itself, while others that are swept alone are as the plan says without them"),
];

pub(super) static COMPARE: Table = Table {
    what: "[compare]",
    keys: &[&[
        Key::new("with", Kind::Line, "The variant that the others are compared with. Default: the first."),
        Key::new(
            "what",
            Kind::List(&Kind::Choice(&INTERESTS)),
            "Which comparisons the stopping rule waits for. Default: variants and expectations. The others are reported as well.",
        ),
        Key::new(
            "until",
            Kind::Share,
            "Stop once the 95 % interval of each of them is narrower than this share.",
        ),
    ]],
};

static INTERESTS: [(&str, &str); 4] = [
    ("variants", "each variant with the one of `with`, at the same levels"),
    ("levels", "each level of a factor with its first, for the same variant"),
    ("expectations", "what [[expect]] names"),
    ("ceilings", "each variant with the tester alone"),
];

static TRIAL_LENGTH: Kind = Kind::Duration { least: 10 * MS, most: 24 * H };

pub(super) static TRIALS: Table = Table {
    what: "[trials]",
    keys: &[&[
        Key::required("duration", TRIAL_LENGTH, "The measured window of one trial."),
        Key::new(
            "blocks",
            Kind::Count { least: 1, most: MOST_BLOCKS },
            "Blocks at most: a block is one trial of everything.",
        ),
        Key::new("budget", Kind::Duration { least: MS, most: 1000 * H }, "Time for all trials at most."),
        Key::new("order", Kind::Choice(&ORDERS), "The order of trials. Default: blocks."),
        Key::new(
            "seed",
            Kind::Count { least: 0, most: u64::MAX },
            "Seed of the order; drawn and recorded where none is given.",
        ),
        Key::new("reboot", Kind::Choice(&REBOOTS), "When the device under test is rebooted. Default: never."),
        Key::new(
            "pause",
            Kind::Duration { least: MS, most: H },
            "Pause before each trial, after settings were changed.",
        ),
    ]],
};

static ORDERS: [(&str, &str); 2] = [
    ("blocks", "randomised complete blocks: drift hits everything alike"),
    (
        "sequential",
        "one variant after the other, as shell scripts do; it measures the drift as well, and is there to show that",
    ),
];

static REBOOTS: [(&str, &str); 3] = [
    ("never", "never"),
    ("when-needed", "when what comes next needs other settings that take effect at boot"),
    ("each-trial", "before each trial"),
];

static COLLECT: Table = Table {
    what: "[collect]",
    keys: &[&[
        Key::new("what", Kind::List(&Kind::Choice(&COLLECTORS)), "Figures to collect. Default: cpus."),
        Key::new(
            "commands",
            Kind::List(&Kind::Line),
            "Commands on the device under test, after each trial, whose output is kept.",
        ),
        Key::new(
            "during",
            Kind::List(&Kind::Line),
            "Commands on the device under test that run from before the load of each trial until after it; their output is kept.",
        ),
    ]],
};

/// What `collect.what` can name, with its meaning.
pub static COLLECTORS: [(&str, &str); 4] = [
    ("cpus", "how busy each CPU was"),
    ("latency", "how long stamped frames took"),
    ("queues", "frames by receive queue"),
    ("interrupts", "interrupts by CPU"),
];

static EXPECT: Table = Table {
    what: "an expectation",
    keys: &[&[
        Key::required("of", Kind::Selector, "What is judged: a variant, or cells at levels of factors."),
        Key::required("is", Kind::Choice(&CLAIMS), "What is expected of it."),
        Key::new("than", Kind::Selector, "What it is compared with."),
        Key::new("by", Kind::Share, "slower, faster: by at least this share. Default: any that is proven."),
        Key::new("within", Kind::Share, "same: the two differ by no more than this share."),
        Key::new("rate", Kind::Rate, "at-least, at-most: frames a second."),
        Key::required("because", Kind::Line, "Why this must be so."),
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
        Key::new("duration", TRIAL_LENGTH, "The measured window of one trial."),
        Key::new("blocks", Kind::Count { least: 1, most: MOST_BLOCKS }, "Blocks at most."),
        Key::new("budget", Kind::Duration { least: MS, most: 1000 * H }, "Time for all trials at most."),
        Key::new("until", Kind::Share, "When the comparisons are known well enough."),
        Key::new("variants", Kind::List(&Kind::Line), "The variants that are part of it. Default: all."),
        Key::new(
            "levels",
            Kind::Named(&Kind::Levels, "factors, each with the levels that it has in the quick form"),
            "Levels of factors, instead of theirs.",
        ),
    ]],
};
