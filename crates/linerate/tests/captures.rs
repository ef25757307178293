//! Frames into a capture and out of it again: `send --write` and `receive --read` agree to the frame.

use crate::common::{Ended, Scratch, frames_of, linerate};

const TRANSPORTS: [&str; 3] = ["udp", "tcp", "icmp"];

fn write(file: &str, options: &str) -> Ended {
    linerate(["send", "--write", file])
        .args(options.split_whitespace())
        .run()
        .ok()
}

/// Writes frames, reads them, and compares their number; gives the frames.
#[track_caller]
fn written_and_read(options: &str, frames: u64) -> Vec<Vec<u8>> {
    let scratch = Scratch::new();
    let file = scratch.file("frames.pcap");
    let written = write(&file, &format!("-n {frames} {options}"));
    let counted = linerate_wire::units::counted(frames as usize, "frame");
    assert_eq!(written.stdout, format!("{counted} written to {file}\n"));
    let read = linerate(["receive", "--read", &file, "--json"])
        .run()
        .ok()
        .json();
    assert_eq!(read["frames"], frames, "{options}");
    for none in ["lost_by_sequence", "duplicates", "reordered"] {
        assert_eq!(read[none], 0, "{options}: {none}");
    }
    assert_eq!(read["foreign"], serde_json::json!({}), "{options}");
    let found = frames_of(&file);
    assert_eq!(found.len() as u64, frames);
    let bytes: usize = found.iter().map(Vec::len).sum();
    let average = read["average_len_fcs"].as_f64().unwrap();
    assert!(
        (average - (bytes as f64 / frames as f64 + 4.0)).abs() < 1e-6,
        "{options}"
    );
    found
}

#[test]
fn every_kind_of_frame_is_counted() {
    let more = [
        "",
        "--vlan 7",
        "--size genome:bbdg",
        "--size 1518 --order random",
        "--size 200 --order zipf:1.1",
    ];
    for family in ["-4", "-6"] {
        for transport in TRANSPORTS {
            for more in more {
                written_and_read(&format!("{family} --transport {transport} {more}"), 2500);
            }
        }
    }
}

#[test]
fn frames_have_the_headers_that_were_asked_for() {
    for (options, ether_type) in [
        ("-4", [0x08, 0x00]),
        ("-6", [0x86, 0xdd]),
        ("--vlan 7", [0x81, 0x00]),
    ] {
        let macs = "-S 02:00:00:00:00:0a -D 02:00:00:00:00:0b";
        for frame in written_and_read(&format!("{options} {macs}"), 100) {
            assert_eq!(frame[..12], [2, 0, 0, 0, 0, 0x0b, 2, 0, 0, 0, 0, 0x0a]);
            assert_eq!(frame[12..14], ether_type, "{options}");
        }
    }
}

#[test]
fn lengths_are_with_or_without_fcs_as_the_option_says() {
    for (options, length) in [
        ("--size 128", 124),
        ("-l 128", 128),
        ("-l 60", 60),
        ("", 60),
    ] {
        assert!(
            written_and_read(options, 50)
                .iter()
                .all(|f| f.len() == length),
            "{options}"
        );
    }
    let imix: Vec<usize> = written_and_read("--size imix", 1200)
        .iter()
        .map(Vec::len)
        .collect();
    let of = |length: usize| imix.iter().filter(|l| **l == length).count();
    assert_eq!(
        (of(60), of(590) + of(566) + of(572), of(1514)),
        (700, 400, 100),
        "7:4:1"
    );
}

#[test]
fn flows_are_those_that_were_asked_for() {
    let space = "-s 198.18.10.1:2001-198.18.10.20 -d 198.19.10.1:2001-198.19.10.5";
    let flow = |frame: &Vec<u8>| {
        (
            frame[26..30].to_vec(),
            frame[30..34].to_vec(),
            frame[34..38].to_vec(),
        )
    };
    for (order, all) in [("sequential", true), ("random", false), ("zipf:1.0", false)] {
        let frames = written_and_read(&format!("{space} --order {order}"), 4000);
        let flows: std::collections::HashSet<_> = frames.iter().map(flow).collect();
        assert!(flows.len() <= 100, "{order}: {}", flows.len());
        assert!(flows.len() == 100 || !all, "{order}: {}", flows.len());
        let ours =
            |ip: &[u8], second: u8| ip[..3] == [198, second, 10] && (1..=20).contains(&ip[3]);
        assert!(
            flows.iter().all(|(s, d, _)| ours(s, 18) && ours(d, 19)),
            "{order}"
        );
    }
}

/// RFC 1071 over every 16-bit word, checksum included.
fn sums_to_zero(words: impl Iterator<Item = u8>) -> bool {
    let bytes: Vec<u8> = words.collect();
    let sum: u64 = bytes
        .chunks(2)
        .map(|c| u64::from(c[0]) << 8 | u64::from(*c.get(1).unwrap_or(&0)))
        .sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    (folded & 0xffff) + (folded >> 16) == 0xffff
}

#[test]
fn checksums_are_right_by_another_reckoning() {
    for (transport, protocol) in [("udp", 17), ("tcp", 6), ("icmp", 1)] {
        for frame in written_and_read(
            &format!("--transport {transport} --size genome:bbcdg --order random"),
            500,
        ) {
            assert!(
                sums_to_zero(frame[14..34].iter().copied()),
                "IPv4 header of {transport}"
            );
            let length = usize::from(u16::from_be_bytes([frame[16], frame[17]])) - 20;
            let pseudo = [0, protocol, (length >> 8) as u8, length as u8];
            let pseudo = frame[26..34].iter().copied().chain(pseudo);
            let over = frame[34..34 + length].iter().copied();
            let right = if protocol == 1 {
                sums_to_zero(over)
            } else {
                sums_to_zero(pseudo.chain(over))
            };
            assert!(right, "{transport}: {frame:02x?}");
        }
    }
}

#[test]
fn what_is_no_test_frame_is_foreign_unless_everything_counts() {
    let scratch = Scratch::new();
    let file = scratch.file("unsigned.pcap");
    write(&file, "-n 40 --unsigned -6 -l 62");
    let read = linerate(["receive", "--read", &file, "--json"])
        .run()
        .status(1)
        .json();
    assert_eq!(
        (&read["frames"], &read["foreign"]["IPv6"]),
        (&0.into(), &40.into())
    );
    let read = linerate(["receive", "--read", &file, "--json", "--unsigned"])
        .run()
        .ok()
        .json();
    assert_eq!(
        (&read["frames"], read["average_len_fcs"].as_f64()),
        (&40.into(), Some(66.0))
    );
}

#[test]
fn loss_duplicates_and_reordering_in_a_capture_are_found() {
    let scratch = Scratch::new();
    let (file, damaged) = (scratch.file("whole.pcap"), scratch.file("damaged.pcap"));
    write(&file, "-n 100");
    let bytes = std::fs::read(&file).unwrap();
    let mut records: Vec<&[u8]> = bytes[24..].chunks(16 + 60).collect();
    records.remove(50); // lost
    records.insert(20, records[10]); // arrives again
    records.swap(70, 71); // overtaken
    std::fs::write(&damaged, [&bytes[..24], &records.concat()].concat()).unwrap();
    let read = linerate(["receive", "--read", &damaged, "--json"])
        .run()
        .ok()
        .json();
    let found = ["frames", "lost_by_sequence", "duplicates", "reordered"]
        .map(|k| read[k].as_u64().unwrap());
    assert_eq!(found, [100, 1, 1, 1]);
}
