//! Tests of capture files, classic and pcapng.

use super::*;
use proptest::prelude::*;

fn classic_file(big: bool, magic: u32, records: &[(u32, u32, u32, &[u8])]) -> Vec<u8> {
    let n32 = |n: u32| {
        if big {
            n.to_be_bytes()
        } else {
            n.to_le_bytes()
        }
    };
    let n16 = |n: u16| {
        if big {
            n.to_be_bytes()
        } else {
            n.to_le_bytes()
        }
    };
    let mut file = [
        &n32(magic)[..],
        &n16(2),
        &n16(4),
        &[0; 8],
        &n32(65_535),
        &n32(1),
    ]
    .concat();
    for &(seconds, ticks, orig_len, data) in records {
        for n in [seconds, ticks, data.len() as u32, orig_len] {
            file.extend(n32(n));
        }
        file.extend(data);
    }
    file
}

/// A block of pcapng with its lengths; the body is padded.
fn block(big: bool, kind: u32, body: &[u8]) -> Vec<u8> {
    let n32 = |n: u32| {
        if big {
            n.to_be_bytes()
        } else {
            n.to_le_bytes()
        }
    };
    let padded = body.len().next_multiple_of(4);
    let len = n32(padded as u32 + 12);
    [
        &n32(kind)[..],
        &len,
        body,
        &vec![0; padded - body.len()],
        &len,
    ]
    .concat()
}

fn section(big: bool) -> Vec<u8> {
    let body = |magic: [u8; 4], version: [u8; 4]| [&magic[..], &version, &[0xff; 8]].concat();
    let body = if big {
        body([0x1a, 0x2b, 0x3c, 0x4d], [0, 1, 0, 0])
    } else {
        body([0x4d, 0x3c, 0x2b, 0x1a], [1, 0, 0, 0])
    };
    block(big, 0x0a0d_0d0a, &body)
}

fn interface(big: bool, link: u16, snap: u32, options: &[u8]) -> Vec<u8> {
    let (link, snap) = if big {
        (link.to_be_bytes(), snap.to_be_bytes())
    } else {
        (link.to_le_bytes(), snap.to_le_bytes())
    };
    block(big, 1, &[&link[..], &[0; 2], &snap, options].concat())
}

fn enhanced(big: bool, interface: u32, ticks: u64, data: &[u8]) -> Vec<u8> {
    let n32 = |n: u32| {
        if big {
            n.to_be_bytes()
        } else {
            n.to_le_bytes()
        }
    };
    let mut body = Vec::new();
    for n in [
        interface,
        (ticks >> 32) as u32,
        ticks as u32,
        data.len() as u32,
        data.len() as u32 + 5,
    ] {
        body.extend(n32(n));
    }
    body.extend(data);
    block(big, 6, &body)
}

fn read(file: &[u8]) -> Vec<Record> {
    Reader::new(file)
        .unwrap()
        .map(|record| record.unwrap())
        .collect()
}

fn read_error(file: &[u8]) -> String {
    match Reader::new(file) {
        Err(error) => error.to_string(),
        Ok(reader) => reader.last().unwrap().unwrap_err().to_string(),
    }
}

#[test]
fn classic_in_all_four_kinds() {
    for big in [false, true] {
        let records = read(&classic_file(
            big,
            0xa1b2_c3d4,
            &[(1, 5, 60, b"abc"), (2, 0, 0, b"")],
        ));
        assert_eq!(
            records[0],
            Record {
                ts_ns: 1_000_005_000,
                orig_len: 60,
                data: b"abc".to_vec(),
                link_type: 1
            }
        );
        assert_eq!(records[1].ts_ns, 2_000_000_000);
        let records = read(&classic_file(big, 0xa1b2_3c4d, &[(1, 5, 3, b"abc")]));
        assert_eq!(records[0].ts_ns, 1_000_000_005);
    }
}

#[test]
fn damage_is_named() {
    let file = classic_file(false, 0xa1b2_c3d4, &[(1, 5, 60, b"abc")]);
    assert_eq!(
        read_error(&file[..42]),
        "the capture is cut short: byte 42 is the end, within a record; all records before it are good"
    );
    assert!(read_error(&file[..30]).contains("byte 30 is the end, within a record header"));
    assert!(read_error(&file[..10]).contains("within the file header"));
    assert!(read_error(b"").contains("within the file header"));
    assert!(read_error(b"GET / HTTP/1.0").contains("not a capture"));
    let mut file = file;
    file[34] = 0xff;
    assert_eq!(
        read_error(&file),
        "the capture is damaged at byte 24: the captured length is 16711683; it cannot be read beyond"
    );
    let mut reader = Reader::new(&file[..]).unwrap();
    assert!(reader.next().unwrap().is_err() && reader.next().is_none());
    file[4] = 3;
    assert!(read_error(&file).contains("version"));
}

#[test]
fn pcapng_in_both_byte_orders() {
    for big in [false, true] {
        let option = |code: u16, value: &[u8]| {
            let (code, len) = if big {
                (code.to_be_bytes(), (value.len() as u16).to_be_bytes())
            } else {
                (code.to_le_bytes(), (value.len() as u16).to_le_bytes())
            };
            [
                &code[..],
                &len,
                value,
                &vec![0; value.len().next_multiple_of(4) - value.len()],
            ]
            .concat()
        };
        let offset = if big {
            100i64.to_be_bytes()
        } else {
            100i64.to_le_bytes()
        };
        let file = [
            section(big),
            interface(big, 1, 0, &[]),
            interface(
                big,
                1,
                0,
                &[
                    option(2, b"eth0"),
                    option(9, &[9]),
                    option(14, &offset),
                    option(0, &[]),
                ]
                .concat(),
            ),
            interface(big, 113, 0, &option(9, &[0x80 | 10])),
            block(big, 0x0bad, b"a custom block"),
            enhanced(big, 0, 1 << 40, b"abcde"),
            enhanced(big, 1, 7, b"x"),
            enhanced(big, 2, 1536, b""),
        ]
        .concat();
        let records = read(&file);
        assert_eq!(records.len(), 3);
        assert_eq!(
            records[0],
            Record {
                ts_ns: (1 << 40) * 1000,
                orig_len: 10,
                data: b"abcde".to_vec(),
                link_type: 1
            }
        );
        assert_eq!(records[1].ts_ns, 100_000_000_007);
        assert_eq!(
            (records[2].ts_ns, records[2].link_type),
            (1_500_000_000, 113)
        );
    }
}

#[test]
fn pcapng_simple_packets_and_new_sections() {
    let simple = |big: bool, orig: u32, data: &[u8]| {
        let orig = if big {
            orig.to_be_bytes()
        } else {
            orig.to_le_bytes()
        };
        block(big, 3, &[&orig[..], data].concat())
    };
    let file = [
        section(false),
        interface(false, 1, 4, &[]),
        simple(false, 9, b"abcd"),
        simple(false, 2, b"ab"),
        section(true),
        interface(true, 1, 0, &[]),
        simple(true, 3, b"xyz"),
    ]
    .concat();
    let records = read(&file);
    let data: Vec<_> = records.iter().map(|r| (r.orig_len, &r.data[..])).collect();
    assert_eq!(data, [(9, &b"abcd"[..]), (2, b"ab"), (3, b"xyz")]);
}

#[test]
fn pcapng_damage_is_named() {
    let start = [section(false), interface(false, 1, 0, &[])].concat();
    let with = |block: Vec<u8>| read_error(&[start.clone(), block].concat());
    assert!(with(enhanced(false, 1, 0, b"")).contains("at byte 48: the interface number is 1"));
    let mut bad = enhanced(false, 0, 0, b"abcd");
    bad[20] = 9;
    assert!(with(bad.clone()).contains("the captured length is 9"));
    bad[4] = 41;
    assert!(with(bad.clone()).contains("the block length is 41"));
    bad[4] = 36;
    bad[20] = 4;
    bad[32] = 32;
    assert!(with(bad.clone()).contains("the repeated block length"));
    assert!(with(bad[..20].to_vec()).contains("cut short"));
    assert!(with(block(false, 6, &[0; 4])).contains("the block length"));
    assert!(
        read_error(&[section(true), block(true, 3, &[0; 4])].concat())
            .contains("the number of interfaces")
    );
}

proptest! {
    #[test]
    fn written_then_read(frames in prop::collection::vec((0..1u64 << 61, prop::collection::vec(any::<u8>(), 0..100)), 0..10)) {
        let mut writer = Writer::new(Vec::new()).unwrap();
        for (ts_ns, frame) in &frames {
            writer.write(*ts_ns, frame).unwrap();
        }
        let records = read(&writer.finish().unwrap());
        prop_assert_eq!(records.len(), frames.len());
        for (record, (ts_ns, frame)) in records.iter().zip(&frames) {
            prop_assert_eq!((record.ts_ns, &record.data, record.orig_len as usize), (*ts_ns, frame, frame.len()));
        }
    }

    #[test]
    fn never_panics(magic in 0usize..6, bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let start = match magic {
            0 => classic_file(false, 0xa1b2_c3d4, &[]),
            1 => classic_file(true, 0xa1b2_3c4d, &[]),
            2 => [section(false), interface(false, 1, 0, &[])].concat(),
            3 => section(true),
            4 => [section(true), interface(true, 1, 0, &bytes)].concat(),
            _ => Vec::new(),
        };
        if let Ok(reader) = Reader::new(&[start, bytes].concat()[..]) {
            reader.for_each(drop);
        }
    }

    #[test]
    fn never_panics_on_damage(damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..5)) {
        let options = [9, 0, 1, 0, 9, 0, 0, 0, 14, 0, 8, 0, 1, 2, 3, 4, 5, 6, 7, 0x7f];
        let mut file = [section(false), interface(false, 1, 0, &options), enhanced(false, 0, u64::MAX, b"abcdefg")].concat();
        for (at, byte) in damage {
            let at = at.index(file.len());
            file[at] = byte;
        }
        if let Ok(reader) = Reader::new(&file[..]) {
            reader.for_each(drop);
        }
    }
}
