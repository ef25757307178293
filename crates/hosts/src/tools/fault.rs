//! Failures of a tool on a host, recognised by messages of tool, shell and system; with remedies.

use crate::words;
use linerate_plan::Backend;
use memchr::memmem;

/// Kinds of faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FaultKind {
    /// The program is not there, or lacks a library.
    NotInstalled,
    /// The user may not.
    NoPrivilege,
    /// There is no interface of that name.
    NoInterface,
    /// The interface, or its netmap mode, could not be opened.
    NotOpened,
    /// Something else has it.
    Busy,
    /// The link is down, or the network unreachable.
    LinkDown,
    /// The tool does not know an argument, or not that value.
    BadArgument,
    /// The frame does not fit the interface's MTU.
    FrameTooLong,
    /// No server answers at the far end.
    NoServer,
    /// The far end gave up.
    PeerGone,
    /// No memory, no buffers.
    NoMemory,
    /// A transmit ring did not drain in time. The tool goes on.
    RingStalled,
    /// The tool crashed, or was killed.
    Crashed,
    /// The tool's output cannot be its figures: garbled, cut off, or too much.
    Garbled,
    /// The tool ended, and no frame had passed.
    NoTraffic,
    /// Any other error of the tool.
    Other,
}

impl FaultKind {
    /// Whether it ends the run.
    pub fn is_fatal(self) -> bool {
        !matches!(self, FaultKind::RingStalled | FaultKind::Garbled)
    }
}

/// A fault, with the first message that showed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Kind of the fault.
    pub kind: FaultKind,
    /// The tool's own words, cut at [`LONGEST_MESSAGE`] characters, without control characters.
    pub message: String,
    /// Number of messages that showed it.
    pub count: u64,
}

/// Characters of a message that are kept.
pub const LONGEST_MESSAGE: usize = 200;

impl Fault {
    /// A fault with its first message.
    pub fn new(kind: FaultKind, message: &[u8]) -> Self {
        Fault {
            kind,
            message: printable(message),
            count: 1,
        }
    }
}

/// A stranger's text for a terminal: no control characters, and short.
pub fn printable(text: &[u8]) -> String {
    // Four bytes are the longest character.
    let cut = &text[..text.len().min(4 * LONGEST_MESSAGE)];
    words::printable(&String::from_utf8_lossy(cut), LONGEST_MESSAGE)
}

/// Messages of shells, sudo, ssh and the system that come with any tool: a part of each, in lower case.
const COMMON: &Signs = &[
    (
        FaultKind::NotInstalled,
        "command not found|: not found|no such program|failed to run command|\
         error while loading shared libraries|shared object",
    ),
    (
        FaultKind::NoPrivilege,
        "a password is required|a terminal is required|is not in the sudoers file|\
         is not allowed to execute|operation not permitted|permission denied|must be root",
    ),
    (
        FaultKind::NoInterface,
        "device not configured|no such device|cannot find interface|cannot get ifindex|\
         interface does not exist",
    ),
    (
        FaultKind::Busy,
        "device busy|resource busy|address already in use",
    ),
    (
        FaultKind::LinkDown,
        "link is down|network is down|network is unreachable|no route to host|host is down",
    ),
    (
        FaultKind::NoMemory,
        "cannot allocate memory|no buffer space available|out of memory",
    ),
    (
        FaultKind::Crashed,
        "segmentation fault|core dumped|bus error|abort trap",
    ),
];

/// Kinds of fault, with the parts of messages that show each: in lower case, with `|` between them.
pub type Signs = [(FaultKind, &'static str)];

/// Bytes of a message that are searched.
const SEARCHED: usize = 512;

/// The kind of fault in a message of any tool, shell or system.
pub fn common(message: &[u8]) -> Option<FaultKind> {
    find(COMMON, message)
}

/// The kind of the first sign that is in a message.
pub fn find(signs: &Signs, message: &[u8]) -> Option<FaultKind> {
    let lower = message[..message.len().min(SEARCHED)].to_ascii_lowercase();
    let shows = |sign: &str| memmem::find(&lower, sign.as_bytes()).is_some();
    signs
        .iter()
        .find(|(_, signs)| signs.split('|').any(shows))
        .map(|(kind, _)| *kind)
}

/// The remedy for a fault.
pub fn remedy(tool: Backend, kind: FaultKind) -> &'static str {
    use FaultKind::*;
    match (kind, tool) {
        (NotInstalled, _) => tool.capabilities().install,
        (NoPrivilege, Backend::PktGen) => "log in as root or allow sudo -n: /dev/netmap is root's",
        (NoPrivilege, _) => "log in as root, or allow this command to sudo -n",
        (NoInterface, _) => {
            "correct the interface in the lab file: ifconfig -l or ip -br link lists them"
        }
        (NotOpened, Backend::PktGen) => {
            "see whether /dev/netmap is there (kldload netmap) and the driver has netmap support (netmap(4)); cxgbe needs \
             hw.cxgbe.num_vis=2 and its vcxl interface"
        }
        (NotOpened, _) => "see whether the interface is there and up",
        (Busy, Backend::Iperf3) => {
            "end the other iperf3, or wait: a server takes one test at a time"
        }
        (Busy, _) => "end what uses the interface or the port: an earlier load may still run",
        (LinkDown, _) => {
            "bring the link up: ifconfig IF up, look at cable, speed and the DUT's port"
        }
        (BadArgument, _) => {
            "the tool is older or newer than the command line expects: see its usage on that host"
        }
        (FrameTooLong, _) => "raise the interface's MTU or send shorter frames",
        (NoServer, Backend::Netperf) => {
            "start netserver at the far end, and let TCP 12865 through the DUT's firewall"
        }
        (NoServer, _) => {
            "start the server at the far end, and let TCP and UDP 5201 through the DUT's firewall"
        }
        (PeerGone, _) => {
            "look at the far end: its server ended, or the DUT dropped the control connection under load"
        }
        (NoMemory, Backend::PktGen) => {
            "free memory, or lower dev.netmap.buf_num and ring_num; more threads and longer rings need more"
        }
        (NoMemory, _) => "free memory on that host, or use fewer streams",
        (RingStalled, _) => {
            "the card did not send for 2 s: pause frames (switch flow control off at both ends), or a link that went down"
        }
        (Crashed, Backend::PktGen) => {
            "run it again; if it repeats, the link goes down or the driver resets under load: see dmesg, and wait longer for the link"
        }
        (Crashed, _) => "run it again; if it repeats, see dmesg on that host",
        (Garbled, _) => {
            "keep other output off its terminal: set -x, login messages, two programs in one log"
        }
        (NoTraffic, Backend::PktGen) => {
            "see whether the far end sent, the destination MAC is the DUT's, the DUT forwards and has ARP for the receiver, and the \
             link was up in time (wait longer)"
        }
        (NoTraffic, _) => {
            "see whether the DUT forwards, has routes and ARP for both ends, and lets it through"
        }
        (Other, _) => "see the tool's own words",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_s_words_in_any_case() {
        let kinds: Vec<_> = [
            &b"sh: pkt-gen: not found"[..],
            b"bash: line 1: iperf3: command not found",
            b"timeout: failed to run command 'pkt-gen': No such file or directory",
            b"sudo: a password is required",
            b"netmap:ix9: Device not configured",
            b"Segmentation fault (core dumped)",
            b"all is well",
        ]
        .into_iter()
        .map(common)
        .collect();
        use FaultKind::*;
        let told = [
            NotInstalled,
            NotInstalled,
            NotInstalled,
            NoPrivilege,
            NoInterface,
            Crashed,
        ]
        .map(Some);
        assert_eq!((&kinds[..6], kinds[6]), (&told[..], None));
    }

    #[test]
    fn messages_are_short_and_printable() {
        let text = printable(&[&b"\x1b[31mred\xff"[..], &vec![b'x'; 5000]].concat());
        assert!(text.starts_with("?[31mred\u{fffd}x") && text.chars().count() == LONGEST_MESSAGE);
    }

    #[test]
    fn every_fault_has_a_remedy() {
        assert!(
            COMMON
                .iter()
                .all(|(_, signs)| *signs == signs.to_ascii_lowercase())
        );
        for tool in <linerate_plan::Backend as linerate_plan::names::Named>::all() {
            assert!(
                COMMON
                    .iter()
                    .all(|(kind, _)| remedy(tool, *kind).len() > 20)
            );
        }
    }
}
