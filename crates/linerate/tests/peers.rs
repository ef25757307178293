//! Other tools on our frames: tcpdump counts those that we send, tshark finds every checksum right, and we count those that
//! trafgen sends. All inside labs that the tests set up.

use crate::common::{Lab, Running, Scratch, frames_of, linerate};
use std::collections::HashMap;

/// A capture of UDP, TCP and ICMP at `r0`, or in the DUT at its inside interface, being taken.
struct Capture {
    tcpdump: Running,
    file: String,
    _scratch: Scratch,
}

impl Capture {
    fn begin(lab: &Lab, role: &str, interface: &str) -> Self {
        let scratch = Scratch::new();
        let file = scratch.file("capture.pcap");
        let args = [
            "tcpdump", "-i", interface, "-Q", "in", "-w", &file, "-U", "-s", "0", "-B", "32768",
            "-n",
        ];
        // The filter matches linerate's frames, with a tag or without.
        let filter = ["-Z", "root", "udp or tcp or icmp or icmp6 or vlan"];
        let tcpdump = lab.exec(role, &[&args[..], &filter[..]].concat()).start();
        // tcpdump writes the file's header when its socket, ring and filter are in place.
        crate::common::wait_for("tcpdump to listen", || {
            std::fs::metadata(&file)
                .is_ok_and(|f| f.len() >= 24)
                .then_some(())
        });
        Capture {
            tcpdump,
            file,
            _scratch: scratch,
        }
    }

    /// Ends when `frames` have been written, or after a while; gives the frames.
    fn end(self, frames: usize) -> (Vec<Vec<u8>>, String, Scratch) {
        let began = std::time::Instant::now();
        while frames_of(&self.file).len() < frames && began.elapsed().as_secs() < 60 {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        self.tcpdump.signal(libc::SIGINT);
        let ended = self.tcpdump.wait().ok();
        assert!(
            ended.stderr.contains("0 packets dropped by kernel"),
            "{}",
            ended.stderr
        );
        (frames_of(&self.file), self.file, self._scratch)
    }
}

/// tshark's complaints about the frames of a capture.
fn complaints(file: &str) -> Running {
    let checks = [
        "ip.check_checksum",
        "udp.check_checksum",
        "tcp.check_checksum",
    ];
    let options = checks
        .iter()
        .flat_map(|c| ["-o".to_string(), format!("{c}:TRUE")]);
    let fields = [
        "frame.number",
        "_ws.expert.severity",
        "_ws.expert.message",
        "_ws.malformed",
    ];
    let fields = fields.iter().flat_map(|f| ["-e", *f]).map(String::from);
    let bad = [
        "ip.checksum.status == 0",
        "udp.checksum.status == 0",
        "tcp.checksum.status == 0",
        "icmp.checksum.status == 0",
        "icmpv6.checksum.status == 0",
        "_ws.malformed",
        "_ws.short",
        "_ws.expert.severity == \"Error\"",
    ];
    crate::common::Program::new("tshark")
        .args(["-n", "-r", file, "-T", "fields", "-Y", &bad.join(" || ")])
        .args(options)
        .args(fields)
        .start()
}

/// The frames that tshark finds to carry a checksum of each protocol that is good, one a line.
fn good(file: &str, filter: &str) -> Running {
    let checks = [
        "ip.check_checksum:TRUE",
        "udp.check_checksum:TRUE",
        "tcp.check_checksum:TRUE",
    ];
    let program = crate::common::Program::new("tshark").args([
        "-n",
        "-r",
        file,
        "-Y",
        filter,
        "-T",
        "fields",
        "-e",
        "frame.number",
    ]);
    program.args(checks.iter().flat_map(|c| ["-o", *c])).start()
}

/// A dry run knows no interface, and has other Ethernet addresses.
fn without_addresses(frame: &[u8]) -> Vec<u8> {
    let mut frame = frame.to_vec();
    frame[..12].fill(0);
    frame
}

const FRAMES: usize = 2000;

/// Sends frames before other programs of the machine; all of them left. The other end's ring has 256 places: a veth refuses frames when it
/// is full, and `send` reports their number.
#[track_caller]
fn send_all(lab: &Lab, interface: &str, options: &str) {
    let sent = lab
        .send(interface, &format!("--json {options}"))
        .first()
        .run()
        .ok()
        .json();
    let [taken, refused] = ["sent", "refused"].map(|k| sent["interface"][k].as_u64().unwrap());
    assert_eq!(
        (taken, refused),
        (sent["frames"].as_u64().unwrap(), 0),
        "{options}"
    );
}

/// Options of `send` and the filter by which tshark knows that every checksum is there and good.
const KINDS: [(&str, &str); 8] = [
    (
        "-4 --size imix",
        "ip.checksum.status == 1 && udp.checksum.status == 1",
    ),
    (
        "-4 --transport tcp --order random",
        "ip.checksum.status == 1 && tcp.checksum.status == 1",
    ),
    (
        "-4 --transport icmp --order zipf:1.1",
        "ip.checksum.status == 1 && icmp.checksum.status == 1",
    ),
    ("-6 --order random", "ipv6 && udp.checksum.status == 1"),
    (
        "-6 --transport tcp --order zipf:1.2",
        "ipv6 && tcp.checksum.status == 1",
    ),
    (
        "-6 --transport icmp --size genome:bcg",
        "ipv6 && icmpv6.checksum.status == 1",
    ),
    (
        "-4 --size genome:bbbbbbbddddg --vlan 42",
        "vlan.id == 42 && ip.checksum.status == 1 && udp.checksum.status == 1",
    ),
    (
        "-6 --size genome:bbdg --vlan 4094 --flows 17",
        "vlan.id == 4094 && ipv6 && udp.checksum.status == 1",
    ),
];

#[test]
#[ignore = "needs root, tcpdump and tshark: run by make test as root"]
fn takes_minutes_others_find_our_frames_and_every_checksum_right() {
    let lab = Lab::up(&["forwarding"]);
    for (options, filter) in KINDS {
        let capture = Capture::begin(&lab, "receiver", "r0");
        send_all(&lab, "g0", &format!("-n {FRAMES} -R 50k {options}"));
        let (frames, file, _scratch) = capture.end(FRAMES);
        assert_eq!(frames.len(), FRAMES, "{options}: tcpdump");
        let (complaints, good) = (complaints(&file), good(&file, filter));
        assert_eq!(complaints.wait().ok().stdout, "", "{options}");
        assert_eq!(
            good.wait().ok().stdout.lines().count(),
            FRAMES,
            "{options}: {filter}"
        );
        let read = linerate(["receive", "--read", &file, "--json"])
            .run()
            .ok()
            .json();
        let counts = ["frames", "lost_by_sequence", "duplicates", "reordered"]
            .map(|k| read[k].as_u64().unwrap());
        assert_eq!(counts, [FRAMES as u64, 0, 0, 0], "{options}");
        same_as_written(&frames, options);
    }
}

/// The frames that were captured are those that the same options write into a file: the same flows in the same order, the same
/// sequence numbers, lengths and checksums. The stamp of one frame in 64 differs, and its checksum with it.
fn same_as_written(captured: &[Vec<u8>], options: &str) {
    let scratch = Scratch::new();
    let file = scratch.file("written.pcap");
    let options_of_write = options.split_whitespace();
    linerate(["send", "--write", &file, "-n", &captured.len().to_string()])
        .args(options_of_write)
        .run()
        .ok();
    let written = frames_of(&file);
    assert_eq!(written.len(), captured.len());
    let mut different = 0;
    for (number, (sent, written)) in captured.iter().zip(&written).enumerate() {
        assert_eq!(
            sent.len(),
            written.len(),
            "{options}: length of frame {number}"
        );
        let differ = without_addresses(sent)
            .iter()
            .zip(&without_addresses(written))
            .filter(|(a, b)| a != b)
            .count();
        // A stamp has four bytes at most, the checksum two.
        assert!(
            differ <= 8,
            "{options}: frame {number}\n{sent:02x?}\n{written:02x?}"
        );
        different += usize::from(differ > 0);
    }
    let stamped = captured.len().div_ceil(64);
    assert!(
        different <= stamped + 1,
        "{options}: {different} frames differ, and {stamped} have a stamp"
    );
}

#[test]
#[ignore = "needs root and tcpdump: run by make test as root"]
fn takes_minutes_tcpdump_in_the_dut_sees_what_we_send_and_the_dut_forwards_it() {
    let lab = Lab::up(&["forwarding", "bridge"]);
    for (interface, dut, inside, out) in [("g1", "dut0", "in1", "r1"), ("g2", "dut1", "in2", "r2")]
    {
        for family in ["-4", "-6"] {
            let (captured, received) = through(&lab, [interface, dut, inside, out], family);
            assert_eq!(captured, FRAMES, "{dut} {family}");
            assert_eq!(received, FRAMES, "{dut} {family}");
        }
    }
}

/// Frames that tcpdump sees in the DUT, and that come out of it.
fn through(lab: &Lab, [interface, dut, inside, out]: [&str; 4], family: &str) -> (usize, usize) {
    let receiver = lab
        .receive(out, &format!("-n {FRAMES} --duration 4s --json"))
        .start();
    let capture = Capture::begin(lab, dut, inside);
    wait_for_receiver(lab, "xdp", out);
    send_all(lab, interface, &format!("-n {FRAMES} -R 100k {family}"));
    let (frames, _, _scratch) = capture.end(FRAMES);
    let received = receiver.wait().ok().json();
    (frames.len(), received["frames"].as_u64().unwrap() as usize)
}

/// A receiver is there when its program is, or its socket is bound to the interface.
fn wait_for_receiver(lab: &Lab, port: &str, interface: &str) {
    let there = match port {
        "af-packet" => format!(
            "i=$(cat /sys/class/net/{interface}/ifindex); awk -v i=$i '$5 == i && $6 == 1' /proc/net/packet"
        ),
        _ => format!("ip link show {interface} | grep -o xdp"),
    };
    let began = std::time::Instant::now();
    while lab
        .exec("receiver", &["sh", "-c", &there])
        .run()
        .stdout
        .is_empty()
    {
        assert!(
            began.elapsed().as_secs() < 60,
            "waited in vain for {port} at {interface}"
        );
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

/// Senders spread their frames over the flows in the given order.
#[test]
#[ignore = "needs root and tcpdump: run by make test as root"]
fn takes_minutes_orders_spread_frames_over_flows() {
    let lab = Lab::up(&["forwarding"]);
    for (order, least, most) in [
        ("sequential", 20, 20),
        ("random", 1, 60),
        ("zipf:1.1", 0, 1200),
    ] {
        let capture = Capture::begin(&lab, "receiver", "r0");
        send_all(
            &lab,
            "g0",
            &format!("-n {FRAMES} -R 100k --flows 100 --order {order}"),
        );
        let frames = capture.end(FRAMES).0;
        let mut flows: HashMap<&[u8], usize> = HashMap::new();
        frames
            .iter()
            .for_each(|f| *flows.entry(&f[26..38]).or_default() += 1);
        assert!(
            flows.len() <= 100 && flows.len() > 30,
            "{order}: {}",
            flows.len()
        );
        let counts = flows.values();
        assert!(
            counts.clone().all(|n| (least..=most).contains(n)),
            "{order}: {flows:?}"
        );
        let top = counts.max().unwrap();
        assert_eq!(
            order.starts_with("zipf"),
            *top > 150,
            "{order}: the most frequent flow has {top}"
        );
    }
}

#[test]
#[ignore = "needs root and trafgen (netsniff-ng): run by make test as root"]
fn takes_minutes_we_count_what_trafgen_sends() {
    let lab = Lab::up(&["forwarding"]);
    let packet = "{ eth(da=02:4c:52:00:00:04, sa=02:4c:52:00:00:01), ipv4(sa=198.18.0.9, da=198.19.0.9, ttl=64), \
                  udp(sp=2001, dp=9), fill(0x55, 18) }";
    for port in ["xdp", "af-xdp", "af-packet"] {
        let frames = 30_000;
        let receiver = lab.receive(
            "r0",
            &format!("--unsigned -n {frames} --duration 30s --json --port {port}"),
        );
        let receiver = receiver.start();
        wait_for_receiver(&lab, port, "r0"); // trafgen must not begin before it
        let count = frames.to_string();
        let scratch = Scratch::new();
        let config = scratch.file("trafgen.cfg");
        std::fs::write(&config, packet).unwrap();
        let args = [
            "trafgen", "--dev", "g0", "--cpus", "1", "--num", &count, "--rate", "50000pps",
            "--conf", &config,
        ];
        let sent = lab.exec("generator", &args).within(40).run().ok();
        let received = receiver.wait().ok().json();
        assert_eq!(received["frames"], frames, "{port}: {}", sent.stdout);
    }
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn every_sender_and_every_receiver_agree() {
    let lab = Lab::up(&["forwarding"]);
    for sender in ["xdp", "af-xdp", "af-packet"] {
        for receiver in ["xdp", "af-xdp", "af-packet"] {
            pair(&lab, sender, receiver);
        }
    }
}

/// Frames that the kernel has counted at the receiver's interface.
fn arrived(lab: &Lab) -> u64 {
    let shown = lab
        .exec("receiver", &["ip", "-j", "-s", "link", "show", "r0"])
        .run()
        .ok()
        .json();
    shown[0]["stats64"]["rx"]["packets"].as_u64().unwrap()
}

/// One kind of port counts the frames that another has sent: all of them, but for those that found a ring full, as the kernel has
/// counted them.
#[track_caller]
fn pair(lab: &Lab, sender: &str, receiver: &str) {
    const FRAMES: u64 = 1000;
    let before = arrived(lab);
    let options = format!("-n {FRAMES} --duration 60s --json --port {receiver}");
    let counting = lab.receive("r0", &options).start();
    wait_for_receiver(lab, receiver, "r0");
    let options = format!("--json -n {FRAMES} -R 20k --port {sender}");
    let sent = lab.send("g0", &options).first().run().ok().json();
    let [taken, refused] = ["sent", "refused"].map(|k| sent["interface"][k].as_u64().unwrap());
    assert_eq!(taken + refused, FRAMES, "{sender}: {sent}");
    let received = counting.wait().ok().json();
    let [frames, lost, copies] =
        ["frames", "lost_by_sequence", "duplicates"].map(|k| received[k].as_u64().unwrap());
    let what = format!("{sender} to {receiver}: {sent} {received}");
    assert!(
        frames > FRAMES / 2 && frames <= taken && frames + lost <= FRAMES && copies == 0,
        "{what}"
    );
    // The kernel itself may report over IPv6 that an interface came up.
    let counted = arrived(lab) - before;
    assert!(
        (frames..=frames + 3).contains(&counted),
        "{counted}: {what}"
    );
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn a_line_at_each_time_and_a_summary() {
    let lab = Lab::up(&["forwarding"]);
    let receiver = lab.receive("r1", "-n 10000 --duration 60s -T 50").start();
    wait_for_receiver(&lab, "xdp", "r1");
    let sent = lab.send("g1", "-n 10000 -R 10k -T 60").run().ok();
    let lines = sent
        .stdout
        .lines()
        .filter(|l| l.contains("frames sent in"))
        .count();
    assert!(
        lines >= 1 && lines as u128 <= sent.took.as_millis() / 60 + 1,
        "{sent:?}"
    );
    let sent = sent.stdout;
    assert!(
        sent.contains("from g1 by ") && sent.contains("\nSent ") && sent.contains("\nInterface: "),
        "{sent}"
    );
    let received = receiver.wait().ok().stdout;
    assert!(
        received
            .lines()
            .filter(|l| l.contains("frames received in"))
            .count()
            >= 2,
        "{received}"
    );
    for part in [
        "Received ",
        " lost (by sequence numbers), 0 duplicates",
        "Latency of ",
    ] {
        assert!(received.contains(part), "{part}: {received}");
    }
}
