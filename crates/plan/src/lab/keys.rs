//! The keys of a lab file: the only place where they are listed.

use crate::backend::OF_HOSTS;
use crate::forms::{
    ADDRESS, HOST_ADDRESS, INTERFACE as INTERFACE_NAME, MAC, NAMESPACE, NETWORK, SPEED, SSH,
};
use crate::grammar::{Kind, Table, key, required};

const S: u64 = 1_000_000_000;

pub(super) static LAB: Table = Table {
    what: "a lab file",
    keys: &[&[
        key("title", Kind::Line).about("Title of the lab."),
        required("isolated", Kind::Flag).about(
            "Whether nothing but the lab's own hosts can receive what is sent in it, as RFC 6815 \
                asks for. Unless it is true, nothing is sent.",
        ),
        key("link-speed", Kind::Form(&SPEED))
            .about("Speed that is 100 % of line rate. Default: the speed of the links."),
        required("hosts", Kind::Named(&Kind::Table(&HOST), "hosts by name")).about("The hosts."),
    ]],
};

static HOST: Table = Table {
    what: "a host",
    keys: &[&[
        required("role", Kind::OneOrMore(&Kind::Choice(&ROLES))).about("Its role, or a list of roles."),
        key("ssh", Kind::Form(&SSH)).about(
            "Where the system's ssh client connects to: [user@]host[:port], or a name that its \
                configuration knows. Every host has this key, namespace or black-box.",
        ),
        key("namespace", Kind::Form(&NAMESPACE)).about(
            "A network namespace of this machine instead of a host that ssh reaches: a name of ip \
                netns. It needs root.",
        ),
        key("black-box", Kind::Flag).about(
            "dut: whether nobody can log in to it. linerate asks it nothing and changes nothing; [in] needs its mac. \
                Default: false.",
        ),
        key("system", Kind::Choice(&SYSTEMS)).about("Its operating system. Default: linerate asks the host."),
        key("tool", Kind::Choice(OF_HOSTS)).about(
            "What sends or counts frames on it. Default: linerate where it is installed, else \
                pkt-gen.",
        ),
        key("sudo", Kind::Flag).about("Whether commands that need root run through sudo. Default: false."),
        key("send", Kind::OneOrMore(&Kind::Table(&INTERFACE)))
            .about("A generator's interface towards the DUT; [[...send]] where there are several."),
        key("receive", Kind::Table(&INTERFACE)).about("A receiver's interface, where frames arrive."),
        key("in", Kind::Table(&INTERFACE))
            .about("The interface of a DUT or reference towards the generator: {in} in plans."),
        key("out", Kind::Table(&INTERFACE))
            .about("The interface of a DUT or reference towards the receiver: {out} in plans."),
        key("management", Kind::Table(&INTERFACE))
            .about("The interface that ssh comes in at. No test touches it."),
        key("boot", Kind::Table(&BOOT)).about("How it comes back after a reboot."),
        key("power-cycle", Kind::List(&Kind::Line)).about(
            "A program of this machine, with its arguments, that turns its power off and on again; \
                for hosts that do not come back.",
        ),
        key("console", Kind::List(&Kind::Line))
            .about("A program of this machine, with its arguments, that shows its console."),
        key("statement", Kind::Line).about(
            "dut: the operator's statement that it is set up as its instructions say (RFC 2544, \
                section 7); `linerate conformance` cites it.",
        ),
        key("software", Kind::Line).about(
            "dut, of a black box: its software with the version, for the report (RFC 2544, section 7).",
        ),
        key("configuration", Kind::Line).about(
            "dut, of a black box: its exact configuration, the same in all trials, such as the name and the SHA-256 of the saved \
                file.",
        ),
        key("silence", Kind::duration(S, 60 * S)).about(
            "How long it may be silent under load before it counts as lost; a load there goes on for as long without linerate. \
                Default: 3 s, and without a generator 20 s more than a load.",
        ),
        key("config-save", Kind::Line).about(
            "The command that makes changes outlive a reboot, where its root is read-only. Default: \
                \"config save\" on bsdrp.",
        ),
    ]],
};

static ROLES: [(&str, &str); 4] = [
    ("generator", "sends the frames"),
    ("dut", "is measured"),
    ("receiver", "counts what arrives"),
    (
        "reference",
        "is the far end of the DUT's tunnels, between it and the receiver",
    ),
];

static SYSTEMS: [(&str, &str); 9] = [
    ("freebsd", "FreeBSD"),
    ("openbsd", "OpenBSD"),
    ("netbsd", "NetBSD"),
    ("linux", "Linux"),
    ("vyos", "VyOS"),
    ("pfsense", "pfSense"),
    ("opnsense", "OPNsense"),
    (
        "bsdrp",
        "BSD Router Project: FreeBSD with a read-only root, and config save",
    ),
    ("nanobsd", "another FreeBSD with a read-only root"),
];

static INTERFACE: Table = Table {
    what: "an interface",
    keys: &[&[
        key("name", Kind::Form(&INTERFACE_NAME)).about(
            "Its name on the host. Default: found by its addresses, or by the route to the other \
                end.",
        ),
        key("mac", Kind::Form(&MAC)).about("Its Ethernet address. Default: it is asked."),
        key("addresses", Kind::List(&Kind::Form(&HOST_ADDRESS)))
            .about("Its IPv4 and IPv6 addresses."),
        key("networks", Kind::List(&Kind::Form(&NETWORK))).about(
            "in, out: networks of the frames' addresses behind it. Default: those of RFC 2544 and \
                RFC 5180.",
        ),
        key("next-hops", Kind::List(&Kind::Form(&ADDRESS))).about(
            "in, out: where what is for these networks is sent. Default: the address at the other \
                end.",
        ),
        key("speed", Kind::Form(&SPEED))
            .about("What 100 % of its line rate is. Default: the lab's link-speed."),
        key("netmap", Kind::Flag).about("Whether netmap can open it. Default: it is tried."),
        key("threads", Kind::count(1, 256))
            .about("send: how many threads, each with a transmit queue, send from it. Default: 1."),
    ]],
};

static BOOT: Table = Table {
    what: "[boot]",
    keys: &[&[
        key("timeout", Kind::duration(S, 24 * 3600 * S))
            .about("How long it may take to come back. Default: 5 min."),
        key("reaches", Kind::List(&Kind::Form(&ADDRESS))).about(
            "Addresses that must answer before it counts as back: a router forwards nothing for a \
                while after a boot.",
        ),
        key("from", Kind::Line)
            .about("The host that asks them. Default: the one that was rebooted."),
    ]],
};
