//! The keys of a lab file: the only place where they are listed.

use crate::backend::OF_HOSTS;
use crate::grammar::{Key, Kind, Table};

const S: u64 = 1_000_000_000;

pub(super) static LAB: Table = Table {
    what: "a lab file",
    keys: &[&[
        Key::new("title", Kind::Line, "What the lab is called."),
        Key::required(
            "isolated",
            Kind::Flag,
            "Whether nothing but the lab's own hosts can receive what is sent in it, as RFC 6815 asks for. Unless it is true, nothing is sent.",
        ),
        Key::new("link-speed", Kind::Speed, "What 100 % of line rate is. Default: what the links say."),
        Key::required("hosts", Kind::Named(&Kind::Table(&HOST), "hosts by name"), "The hosts."),
    ]],
};

static HOST: Table = Table {
    what: "a host",
    keys: &[&[
        Key::required(
            "role",
            Kind::OneOrMore(&Kind::Choice(&ROLES)),
            "What it is for: one thing, or several.",
        ),
        Key::required(
            "ssh",
            Kind::Line,
            "Where the system's ssh client connects to: [user@]host[:port], or a name that its configuration knows.",
        ),
        Key::new("system", Kind::Choice(&SYSTEMS), "What it runs. Default: it is asked."),
        Key::new(
            "tool",
            Kind::Choice(&OF_HOSTS),
            "What sends or counts frames on it. Default: linerate where it is installed, else pkt-gen.",
        ),
        Key::new("sudo", Kind::Flag, "Whether what needs root is run by sudo. Default: false."),
        Key::new(
            "send",
            Kind::OneOrMore(&Kind::Table(&INTERFACE)),
            "A generator's interface towards the DUT; [[...send]] where there are several.",
        ),
        Key::new("receive", Kind::Table(&INTERFACE), "A receiver's interface, where frames arrive."),
        Key::new(
            "in",
            Kind::Table(&INTERFACE),
            "The interface of a DUT or reference towards the generator: {in} in plans.",
        ),
        Key::new(
            "out",
            Kind::Table(&INTERFACE),
            "The interface of a DUT or reference towards the receiver: {out} in plans.",
        ),
        Key::new(
            "management",
            Kind::Table(&INTERFACE),
            "The interface that ssh comes in at. No test touches it.",
        ),
        Key::new("boot", Kind::Table(&BOOT), "How it comes back after a reboot."),
        Key::new(
            "power-cycle",
            Kind::List(&Kind::Line),
            "A program of this machine, with its arguments, that turns its power off and on again; for hosts that do not come back.",
        ),
        Key::new(
            "console",
            Kind::List(&Kind::Line),
            "A program of this machine, with its arguments, that shows its console.",
        ),
        Key::new(
            "config-save",
            Kind::Line,
            "The command that makes changes outlive a reboot, where its root is read-only. Default: \"config save\" on bsdrp.",
        ),
    ]],
};

static ROLES: [(&str, &str); 4] = [
    ("generator", "sends the frames"),
    ("dut", "is measured"),
    ("receiver", "counts what arrives"),
    ("reference", "is the far end of the DUT's tunnels, between it and the receiver"),
];

static SYSTEMS: [(&str, &str); 9] = [
    ("freebsd", "FreeBSD"),
    ("openbsd", "OpenBSD"),
    ("netbsd", "NetBSD"),
    ("linux", "Linux"),
    ("vyos", "VyOS"),
    ("pfsense", "pfSense"),
    ("opnsense", "OPNsense"),
    ("bsdrp", "BSD Router Project: FreeBSD with a read-only root, and config save"),
    ("nanobsd", "another FreeBSD with a read-only root"),
];

static INTERFACE: Table = Table {
    what: "an interface",
    keys: &[&[
        Key::new(
            "name",
            Kind::Line,
            "Its name on the host. Default: found by its addresses, or by the route to the other end.",
        ),
        Key::new("mac", Kind::Mac, "Its Ethernet address. Default: it is asked."),
        Key::new("addresses", Kind::List(&Kind::HostAddress), "Its IPv4 and IPv6 addresses."),
        Key::new(
            "networks",
            Kind::List(&Kind::Network),
            "in, out: networks of the frames' addresses behind it. Default: those of RFC 2544 and RFC 5180.",
        ),
        Key::new(
            "next-hops",
            Kind::List(&Kind::Address),
            "in, out: where what is for these networks is sent. Default: the address at the other end.",
        ),
        Key::new("speed", Kind::Speed, "What 100 % of its line rate is. Default: the lab's link-speed."),
        Key::new("netmap", Kind::Flag, "Whether netmap can open it. Default: it is tried."),
        Key::new(
            "threads",
            Kind::Count { least: 1, most: 256 },
            "send: how many threads, each with a transmit queue, send from it. Default: 1.",
        ),
    ]],
};

static BOOT: Table = Table {
    what: "[boot]",
    keys: &[&[
        Key::new(
            "timeout",
            Kind::Duration { least: S, most: 24 * 3600 * S },
            "How long it may take to come back. Default: 5 min.",
        ),
        Key::new(
            "reaches",
            Kind::List(&Kind::Address),
            "Addresses that must answer before it counts as back: a router forwards nothing for a while after a boot.",
        ),
        Key::new("from", Kind::Line, "The host that asks them. Default: the one that was rebooted."),
    ]],
};
