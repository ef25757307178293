//! Nanoseconds per frame of what runs once per frame: `cargo bench -p linerate-wire`. The least of many short
//! slices is shown with their median, because machines are noisy upwards only.

use linerate_wire::*;
use std::hint::black_box;
use std::time::Instant;

const FRAMES: u32 = 20_000;
const SLICES: usize = 200;

fn measure(name: &str, mut per_frame: impl FnMut(u32)) {
    let mut slices: Vec<f64> = (0..SLICES)
        .map(|_| {
            let start = Instant::now();
            (0..FRAMES).for_each(&mut per_frame);
            start.elapsed().as_nanos() as f64 / f64::from(FRAMES)
        })
        .collect();
    slices.sort_by(f64::total_cmp);
    println!(
        "{name:<44} {:6.1} ns/frame least {:6.1} median",
        slices[0],
        slices[SLICES / 2]
    );
}

fn spec(family: Family, transport: Transport) -> FrameSpec {
    FrameSpec::new(MacAddr([2; 6]), MacAddr([4; 6]), family, transport)
}

fn bench_kind(family: Family, transport: Transport, len_fcs: u16) {
    let template = FrameTemplate::new(&spec(family, transport), len_fcs).unwrap();
    let flows: Vec<Flow> = FlowSpace::benchmark(family, 2000).unwrap().iter().collect();
    let mut buf = vec![0; 2048];
    let mut sequence = 0;
    measure(&format!("fill {family} {transport} {len_fcs}"), |i| {
        sequence += 1;
        let signature = Signature {
            stream: 1,
            sequence,
            time_ns: sequence,
        };
        template.fill(
            black_box(&mut buf),
            &flows[i as usize % 2000],
            Some(&signature),
        );
    });
    let mut pool = vec![0; 4096 * 2048];
    for (i, slot) in pool.chunks_mut(2048).enumerate() {
        template.fill(slot, &flows[i % 2000], Some(&Signature::default()));
    }
    let len = template.len();
    measure(
        &format!("fill {family} {transport} {len_fcs}, over 4,096 x 2 KB"),
        |i| {
            let slot = &mut pool[(i as usize % 4096) * 2048..][..2048];
            template.fill(
                slot,
                &flows[i as usize % 2000],
                Some(&Signature {
                    stream: 1,
                    sequence: i.into(),
                    time_ns: 0,
                }),
            );
        },
    );
    measure(&format!("recognise {family} {transport} {len_fcs}"), |_| {
        // As a receiver uses it: the parts, not a copy of the whole.
        if let Recognised::Test {
            signature, flow, ..
        } = recognise(black_box(&buf[..len]))
        {
            black_box((signature.sequence, flow.src_port));
        }
    });
}

fn main() {
    for (family, transport, len_fcs) in [
        (Family::V4, Transport::Udp, 64),
        (Family::V6, Transport::Udp, 84),
        (Family::V4, Transport::Tcp, 76),
        (Family::V4, Transport::IcmpEcho, 64),
        (Family::V4, Transport::Udp, 1518),
    ] {
        bench_kind(family, transport, len_fcs);
    }
    let space = FlowSpace::benchmark(Family::V4, 100_000).unwrap();
    measure("flow(i) of 100,000 benchmark flows", |i| {
        black_box(space.flow(i.into()));
    });
    for order in ["sequential", "random", "zipf:1.1"] {
        let mut picker = FlowPicker::new(order.parse().unwrap(), 100_000);
        measure(&format!("pick of 100,000 flows, {order}"), |_| {
            black_box(picker.next());
        });
    }
    let mut account = SequenceWindow::default();
    let mut sequence = 0;
    measure("account, in order", |_| {
        sequence += 1;
        black_box(account.observe(sequence));
    });
    let bytes = vec![0x5a; 1500];
    measure("checksum of 1,500 bytes", |_| {
        black_box(checksum::partial(black_box(&bytes)));
    });
}
