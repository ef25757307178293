//! Wireshark's opinion of the frames: every kind of frame goes into a capture, and tshark must find nothing
//! wrong.

use linerate_wire::*;
use std::process::Command;

fn specs() -> Vec<FrameSpec> {
    let (dst, src) = (MacAddr([2, 0, 0, 0, 0, 2]), MacAddr([2, 0, 0, 0, 0, 1]));
    let mut specs = Vec::new();
    for family in [Family::V4, Family::V6] {
        for transport in [Transport::Udp, Transport::Tcp, Transport::IcmpEcho] {
            for vlan in [
                None,
                Some(VlanTag {
                    id: 42,
                    priority: 3,
                }),
            ] {
                for signed in [true, false] {
                    specs.push(FrameSpec {
                        vlan,
                        signed,
                        ..FrameSpec::new(dst, src, family, transport)
                    });
                }
            }
        }
    }
    specs
}

fn frames() -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    for (stream, spec) in specs().iter().enumerate() {
        let flows = FlowSpace::benchmark(spec.family, 100).unwrap();
        for len_fcs in [spec.min_len_fcs(), 101, 128, 594, 1518, 9018] {
            let template = FrameTemplate::new(spec, len_fcs).unwrap();
            for sequence in 0..3 {
                let signature = Signature {
                    stream: stream as u16,
                    sequence,
                    time_ns: 1 << 47 | sequence,
                };
                let mut frame = vec![0; template.len()];
                template.fill(
                    &mut frame,
                    &flows.flow(frames.len() as u64),
                    Some(&signature),
                );
                frames.push(frame);
            }
        }
    }
    frames
}

fn capture() -> Vec<u8> {
    let mut writer = Writer::new(Vec::new()).unwrap();
    for (i, frame) in frames().iter().enumerate() {
        writer
            .write(1_700_000_000_000_000_000 + i as u64 * 1001, frame)
            .unwrap();
    }
    writer.finish().unwrap()
}

#[test]
fn frames_survive_a_capture() {
    let capture = capture();
    let read: Vec<Vec<u8>> = Reader::new(&capture[..])
        .unwrap()
        .map(|record| record.unwrap().data)
        .collect();
    assert_eq!(read, frames());
}

fn tshark(arguments: &[&str]) -> String {
    let output = Command::new("tshark")
        .args(arguments)
        .output()
        .expect("tshark runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

#[test]
#[ignore = "needs tshark; run by make test where tshark is installed"]
fn tshark_finds_nothing_wrong() {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("frames.pcap");
    std::fs::write(&path, capture()).unwrap();
    let file = path.to_str().unwrap();
    let checks = [
        "ip.check_checksum:TRUE",
        "udp.check_checksum:TRUE",
        "tcp.check_checksum:TRUE",
    ];
    let options: Vec<&str> = checks.iter().flat_map(|check| ["-o", check]).collect();
    let count = |filter: &str| {
        tshark(&[&["-n", "-r", file, "-Y", filter][..], &options].concat())
            .lines()
            .count()
    };

    // An ICMP echo request without a reply and a repeated SYN are remarks on the conversation, not on the
    // frame.
    let wrong = "_ws.malformed || ip.checksum.status == 0 || udp.checksum.status == 0 || tcp.checksum.status == 0 \
                 || icmp.checksum.status == 0 || icmpv6.checksum.status == 0 || _ws.short \
                 || _ws.expert.group == \"Checksum\" || _ws.expert.group == \"Malformed\" \
                 || _ws.expert.group == \"Protocol\" || _ws.expert.severity == error";
    let bad = tshark(
        &[
            &[
                "-n",
                "-r",
                file,
                "-Y",
                wrong,
                "-T",
                "fields",
                "-e",
                "frame.number",
                "-e",
                "_ws.expert.message",
            ][..],
            &options,
        ]
        .concat(),
    );
    assert_eq!(bad, "");

    let total = frames().len();
    assert_eq!(count("ip.checksum.status == 1"), total / 2);
    assert_eq!(count("udp.checksum.status == 1"), total / 3);
    assert_eq!(count("tcp.checksum.status == 1"), total / 3);
    assert_eq!(
        count("icmp.checksum.status == 1 || icmpv6.checksum.status == 1"),
        total / 3
    );
    assert_eq!(count("vlan.id == 42 && vlan.priority == 3"), total / 2);

    // tshark writes pcapng by default: the same frames must come out of that.
    let converted = path.with_extension("pcapng");
    tshark(&["-r", file, "-w", converted.to_str().unwrap()]);
    let bytes = std::fs::read(&converted).unwrap();
    let records: Vec<Record> = Reader::new(&bytes[..])
        .unwrap()
        .map(|record| record.unwrap())
        .collect();
    let frames = frames();
    for (i, record) in records.iter().enumerate() {
        assert_eq!(record.data, frames[i]);
        assert_eq!(record.ts_ns, 1_700_000_000_000_000_000 + i as u64 * 1001);
    }
    assert_eq!(records.len(), frames.len());
    std::fs::remove_file(path).unwrap();
    std::fs::remove_file(converted).unwrap();
}
