//! The texts as a person sees them.

use super::*;
use crate::format::Style;
use expect_test::{Expect, expect};
use linerate_measure::audit::{Cause, Evidence, Loss, Side, audit};
use linerate_measure::counters::PortCounters;
use linerate_measure::record::{Asked, CpuShare, LabKind, Roles, Slot, TrialRecord, VERSION};
use linerate_measure::strategy::Stopped;
use linerate_measure::summary::summarise;
use linerate_measure::trial::Rates;
use linerate_plan::settings::Mode;
use linerate_plan::timing::Timing;
use linerate_stats::histogram::Histogram;
use std::collections::BTreeMap;

const WIDE: Style = Style { color: false, width: 120 };

pub(super) fn slot(
    id: usize,
    variant: &str,
    length: u16,
    ceiling: Option<usize>,
    baseline: Option<usize>,
) -> Slot {
    Slot {
        id,
        variant: variant.into(),
        family: if length == 84 { "IPv6" } else { "IPv4" }.into(),
        transport: "UDP".into(),
        frame: length.to_string(),
        lengths_fcs: vec![length],
        l4_checksum: true,
        signed: true,
        asked_fps: None,
        ceiling,
        baseline,
        flows: None,
        cpus: None,
        no_ceiling: false,
        imported: None,
    }
}

pub(super) fn campaign(mode: Mode) -> Campaign {
    let roles = match mode {
        Mode::Inline => Roles { generator: vec![1], dut: vec![1], receiver: vec![1], control: vec![0] },
        Mode::Threaded | Mode::Hosts => {
            Roles { generator: vec![1], dut: vec![2], receiver: vec![3], control: vec![0] }
        }
    };
    Campaign {
        version: VERSION,
        linerate: "0.1.0".into(),
        name: "bench".into(),
        started: "2026-01-01T00:00:00Z".into(),
        asked: Asked {
            command: vec!["linerate".into(), "bench".into()],
            mode,
            lab: LabKind::Namespaces,
            generator: "xdp-live-frames".into(),
            receiver: "xdp".into(),
            flows: 1024,
            order: "sequential".into(),
            rate: "max".into(),
            timing: Timing::slice(250_000_000),
            budget_ns: 30_000_000_000,
            trials: None,
            batch: 64,
            seed: 7,
        },
        roles,
        slots: vec![
            slot(0, "tester-baseline", 64, None, None),
            slot(1, "forwarding", 64, Some(0), None),
            slot(2, "forwarding", 84, Some(0), Some(1)),
        ],
        notes: vec![],
        planned: None,
        imported: None,
    }
}

pub(super) fn host() -> HostFacts {
    HostFacts {
        kernel: "6.12.0".into(),
        os: "Debian GNU/Linux 13".into(),
        cpu_model: "Example CPU".into(),
        cpus: 4,
        hypervisor: Some("KVM".into()),
        clock_source: "tsc".into(),
        ..HostFacts::default()
    }
}

/// A trial that offered and received so many frames/s for a quarter of a second.
pub(super) fn trial(number: u64, block: u32, slot: usize, offered: f64, received: f64) -> TrialRecord {
    let (sent, got) = ((offered / 4.0) as u64, (received / 4.0) as u64);
    let port = |frames| PortCounters { frames, ..PortCounters::default() };
    let place = "DUT in: receive ring full".to_string();
    let losses = if sent > got {
        vec![Loss { place, frames: sent - got, side: Side::Dut, cause: Cause::QueueFull }]
    } else {
        Vec::new()
    };
    let mut receiver = port(got);
    let mut latency = Histogram::default();
    (0..100).for_each(|i| latency.record(1000 + 10 * i));
    receiver.latency = latency;
    let rates = Some(Rates { offered, received, seconds: 0.25 });
    let evidence =
        Evidence { rates, generator: port(sent), receiver, losses: losses.clone(), ..Evidence::default() };
    TrialRecord {
        version: VERSION,
        trial: number,
        block,
        slot,
        began_ns: number * 300_000_000,
        asked_fps: None,
        timing: Timing::slice(250_000_000),
        rates,
        loss_ratio: 1.0 - got as f64 / sent as f64,
        generator: evidence.generator.clone(),
        receiver: evidence.receiver.clone(),
        losses,
        dut: BTreeMap::new(),
        cpus: vec![
            CpuShare { cpu: 0, busy: 0.02, softirq: 0.0, steal: 0.0, user: 0.0 },
            CpuShare { cpu: 1, busy: 0.99, softirq: 0.9, steal: 0.0, user: 0.0 },
        ],
        audit: audit(&evidence),
        samples: vec![],
        connections: None,
        collected: Vec::new(),
        collectors: Vec::new(),
        rules: Vec::new(),
        skew_ns: None,
        took_ns: 0,
        reboots: 0,
        imported: None,
    }
}

/// Ten blocks; each slot's offered and received frames/s, up to 1 % above from block to block.
fn blocks(rates: &[(f64, f64)]) -> Vec<TrialRecord> {
    let mut all = Vec::new();
    for block in 0..10u32 {
        let speed = 1.0 + 0.001 * f64::from(block);
        for (slot, (offered, received)) in rates.iter().enumerate() {
            let wobble = 1.0 + 0.0005 * f64::from((block * 7 + slot as u32 * 3) % 5);
            all.push(trial(
                all.len() as u64,
                block,
                slot,
                offered * speed * wobble,
                received * speed * wobble,
            ));
        }
    }
    all
}

fn text(campaign: &Campaign, trials: &[TrialRecord], style: Style) -> String {
    let verdict = summarise(campaign, trials, Stopped::Precise, 12_900_000);
    summary(campaign, &host(), &verdict).text(style)
}

/// `UPDATE_EXPECT=1 cargo test -p linerate-report` writes down what is printed now.
#[track_caller]
pub(super) fn same(text: &str, expected: Expect) {
    // It begins on a line of its own, so that its columns show.
    expected.assert_eq(&format!("\n{}\n", text.trim_end()));
}

const INLINE: [(f64, f64); 3] = [(10e6, 10e6), (1.49e6, 1.49e6), (1.43e6, 1.43e6)];

#[test]
fn normal() {
    same(
        &text(&campaign(Mode::Inline), &blocks(&INLINE), WIDE),
        expect![[r#"

            This machine's kernel forwards 1.498 million 64-byte IPv4 frames a second on one CPU (95 % interval 1.492..1.504
            million), 667 ns per frame; the tester itself takes 99.5 ns. The DUT was the limit: the tester alone does 10.1 million.

                                       offered  received          95 %  lost   Gbit/s   Gbit/s  ns per  of it  trials
            frame lengths with FCS        Mpps      Mpps      interval     %  layer 1  layer 2   frame    DUT   valid   limit
            tester-baseline IPv4 64 B    10.05     10.05  10.02..10.09     0     6.76     5.15    99.5      -   10/10  no DUT
            forwarding IPv4 64 B         1.498     1.498  1.492..1.504     0     1.01    0.767     667    568   10/10     DUT
            forwarding IPv6 84 B         1.438     1.438  1.433..1.443     0     1.20    0.966     695    596   10/10     DUT

            % of line rate                   1G   10G   25G   40G  100G
            forwarding IPv4 64 B            101  10.1  4.03  2.52  1.01
              simple IMIX, same frame rate  458  45.8  18.3  11.4  4.58
            forwarding IPv6 84 B            120  12.0  4.79  2.99  1.20
              simple IMIX, same frame rate  439  43.9  17.6  11.0  4.39

            Comparisons, paired by block
            - forwarding IPv6 84 B is 4.12 % slower than forwarding IPv4 64 B, 95 % interval 3.88..4.12 %, 10 blocks
            The tester's own part is in both rates; between the DUTs alone the differences are larger.

            Latency from generator to receiver
                                           p50      p99    p99.9
            tester-baseline IPv4 64 B  1.49 us  1.97 us  2.00 us
            forwarding IPv4 64 B       1.49 us  1.97 us  2.00 us
            forwarding IPv6 84 B       1.49 us  1.97 us  2.00 us
            Of stamped frames. Frames go in batches of 64: in inline mode the wait for the batch is part of it.

            No frame was lost in a valid trial.

            How it was measured
            mode     inline, a closed loop: generator, DUT and receiver take turns on the same CPU, so the load is what the DUT
                     takes. It shows the cost per frame, not loss or overload.
            CPUs     generator 1, DUT 1, receiver 1, control 0. CPU 1 at least 95 % busy in all slots
            traffic  1,024 flows of UDP, sequential, rate max, batches of 64, from xdp-live-frames to xdp in namespaces; trials of
                     250 ms, seed 7
            host     Example CPU, 4 CPUs under KVM; Linux 6.12.0; Debian GNU/Linux 13; clock tsc

            Where to look next
            - one CPU was full; how it scales over all of them: linerate bench --cpus 0-3
            - loss and latency at a load that does not wait for the DUT: linerate bench --mode threaded --rate 750kpps
            - what a firewall costs: linerate bench --variant nft-stateless --variant nft-stateful

            Ended after 9.0 s: all intervals are narrow enough. Under load 91.9 % of it, overhead 8.1 %. linerate held 12.3 MiB of
            memory at most.
        "#]],
    );
}

#[test]
fn threaded_with_losses() {
    let c = campaign(Mode::Threaded);
    same(
        &text(&c, &blocks(&[(5e6, 5e6), (4.6e6, 1.2e6), (4.4e6, 1.201e6)]), WIDE),
        expect![[r#"

            This machine's kernel forwards 1.207 million 64-byte IPv4 frames a second on one CPU (95 % interval 1.202..1.211
            million), of 4.63 million offered; 73.9 % of the sent frames are lost. The DUT was the limit: the tester alone does 5.03
            million.

                                       offered  received          95 %  lost   Gbit/s   Gbit/s  ns per  trials
            frame lengths with FCS        Mpps      Mpps      interval     %  layer 1  layer 2   frame   valid   limit
            tester-baseline IPv4 64 B    5.026     5.026  5.010..5.045     0     3.38     2.57     199   10/10  no DUT
            forwarding IPv4 64 B         4.625     1.207  1.202..1.211  73.9    0.811    0.618     829   10/10     DUT
            forwarding IPv6 84 B         4.425     1.208  1.203..1.212  72.7     1.00    0.812     828   10/10     DUT

            % of line rate                    1G   10G   25G   40G  100G
            forwarding IPv4 64 B            81.1  8.11  3.24  2.03  0.81
              simple IMIX, same frame rate   369  36.9  14.7  9.21  3.69
            forwarding IPv6 84 B             100  10.0  4.02  2.51  1.00
              simple IMIX, same frame rate   369  36.9  14.8  9.22  3.69

            Comparisons, paired by block
            - No difference is shown between forwarding IPv6 84 B and forwarding IPv4 64 B (-0.02..+0.23 %), 10 blocks

            Latency from generator to receiver
                                           p50      p99    p99.9
            tester-baseline IPv4 64 B  1.49 us  1.97 us  2.00 us
            forwarding IPv4 64 B       1.49 us  1.97 us  2.00 us
            forwarding IPv6 84 B       1.49 us  1.97 us  2.00 us
            Of stamped frames; what waits in the DUT's queues is part of it.

            Losses by place, in valid trials
            forwarding IPv4 64 B: 73.9 % of the sent frames
                    8,546,789  DUT in: receive ring full
            forwarding IPv6 84 B: 72.7 % of the sent frames
                    8,041,526  DUT in: receive ring full

            How it was measured
            mode     threaded, an open loop: the DUT has CPUs of its own and the load does not wait for it. It shows loss, overload
                     and latency.
            CPUs     generator 1, DUT 2, receiver 3, control 0. CPU 1 at least 95 % busy in all slots
            traffic  1,024 flows of UDP, sequential, rate max, batches of 64, from xdp-live-frames to xdp in namespaces; trials of
                     250 ms, seed 7
            host     Example CPU, 4 CPUs under KVM; Linux 6.12.0; Debian GNU/Linux 13; clock tsc

            Where to look next
            - what a firewall costs: linerate bench --variant nft-stateless --variant nft-stateful

            Ended after 9.0 s: all intervals are narrow enough. Under load 91.9 % of it, overhead 8.1 %. linerate held 12.3 MiB of
            memory at most.
        "#]],
    );
}

#[test]
fn the_tester_was_the_limit() {
    let t = text(&campaign(Mode::Inline), &blocks(&[(10e6, 10e6), (9.5e6, 9.5e6), (9.4e6, 9.4e6)]), WIDE);
    same(
        &t,
        expect![[r#"

            This machine's kernel forwards 9.552 million 64-byte IPv4 frames a second on one CPU (95 % interval 9.514..9.590
            million), 105 ns per frame; the tester itself takes 99.5 ns. The tester, which does 10.1 million alone, was too close to
            its own limit: the DUT may be faster.

                                       offered  received          95 %  lost   Gbit/s   Gbit/s  ns per  of it  trials
            frame lengths with FCS        Mpps      Mpps      interval     %  layer 1  layer 2   frame    DUT   valid   limit
            tester-baseline IPv4 64 B    10.05     10.05  10.02..10.09     0     6.76     5.15    99.5      -   10/10  no DUT
            forwarding IPv4 64 B         9.552     9.552  9.514..9.590     0     6.42     4.89     105   5.21   10/10  tester
            forwarding IPv6 84 B         9.454     9.454  9.419..9.485     0     7.87     6.35     106   6.30   10/10  tester

            % of line rate                    1G   10G   25G   40G  100G
            forwarding IPv4 64 B             642  64.2  25.7  16.0  6.42
              simple IMIX, same frame rate  2918   292   117  72.9  29.2
            forwarding IPv6 84 B             787  78.7  31.5  19.7  7.87
              simple IMIX, same frame rate  2888   289   116  72.2  28.9

            Comparisons, paired by block
            - forwarding IPv6 84 B is 1.15 % slower than forwarding IPv4 64 B, 95 % interval 0.90..1.15 %, 10 blocks
            The tester's own part is in both rates; between the DUTs alone the differences are larger.

            Latency from generator to receiver
                                           p50      p99    p99.9
            tester-baseline IPv4 64 B  1.49 us  1.97 us  2.00 us
            forwarding IPv4 64 B       1.49 us  1.97 us  2.00 us
            forwarding IPv6 84 B       1.49 us  1.97 us  2.00 us
            Of stamped frames. Frames go in batches of 64: in inline mode the wait for the batch is part of it.

            No frame was lost in a valid trial.

            How it was measured
            mode     inline, a closed loop: generator, DUT and receiver take turns on the same CPU, so the load is what the DUT
                     takes. It shows the cost per frame, not loss or overload.
            CPUs     generator 1, DUT 1, receiver 1, control 0. CPU 1 at least 95 % busy in all slots
            traffic  1,024 flows of UDP, sequential, rate max, batches of 64, from xdp-live-frames to xdp in namespaces; trials of
                     250 ms, seed 7
            host     Example CPU, 4 CPUs under KVM; Linux 6.12.0; Debian GNU/Linux 13; clock tsc

            Warnings
            ! forwarding IPv4 64 B: too close to what the tester can do without a DUT; the DUT may be faster than this
            ! forwarding IPv6 84 B: too close to what the tester can do without a DUT; the DUT may be faster than this

            Where to look next
            - the tester was the limit: its part of the time per frame is what a cheaper DUT cannot go below here; --mode threaded
              gives it a CPU of its own
            - loss and latency at a load that does not wait for the DUT: linerate bench --mode threaded --rate 4.8Mpps
            - what a firewall costs: linerate bench --variant nft-stateless --variant nft-stateful

            Ended after 9.0 s: all intervals are narrow enough. Under load 91.9 % of it, overhead 8.1 %. linerate held 12.3 MiB of
            memory at most.
        "#]],
    );
}

#[test]
fn nothing_valid_is_no_figure() {
    let mut trials = blocks(&INLINE);
    for t in &mut trials {
        let faults = vec!["interface g0 went down".into()];
        t.audit = audit(&Evidence { generator: t.generator.clone(), faults, ..Evidence::default() });
    }
    same(
        &text(&campaign(Mode::Inline), &trials, WIDE),
        expect![[r#"

            tester-baseline IPv4 64 B; forwarding IPv4 64 B; forwarding IPv6 84 B could not be measured: all 10 trials failed their
            audit (the first: interface g0 went down).
            No valid trial of a DUT, so no figure.

                                       offered  received            95 %  lost   Gbit/s   Gbit/s  ns per  trials
            frame lengths with FCS        Mpps      Mpps        interval     %  layer 1  layer 2   frame   valid  limit
            tester-baseline IPv4 64 B        -         -  no valid trial     -        -        -       -    0/10      -
            forwarding IPv4 64 B             -         -  no valid trial     -        -        -       -    0/10      -
            forwarding IPv6 84 B             -         -  no valid trial     -        -        -       -    0/10      -

            Comparisons, paired by block
            - forwarding IPv6 84 B and forwarding IPv4 64 B cannot be compared: no block in which both are valid

            How it was measured
            mode     inline, a closed loop: generator, DUT and receiver take turns on the same CPU, so the load is what the DUT
                     takes. It shows the cost per frame, not loss or overload.
            CPUs     generator 1, DUT 1, receiver 1, control 0
            traffic  1,024 flows of UDP, sequential, rate max, batches of 64, from xdp-live-frames to xdp in namespaces; trials of
                     250 ms, seed 7
            host     Example CPU, 4 CPUs under KVM; Linux 6.12.0; Debian GNU/Linux 13; clock tsc

            Where to look next
            - why 20 trials failed their audit: linerate show DIRECTORY --trials, and trials.jsonl has every check
            - what a firewall costs: linerate bench --variant nft-stateless --variant nft-stateful

            Ended after 9.0 s: all intervals are narrow enough. Under load 91.9 % of it, overhead 8.1 %. linerate held 12.3 MiB of
            memory at most.
        "#]],
    );
    let empty = text(&campaign(Mode::Inline), &[], WIDE);
    assert!(empty.contains("\nNo valid trial, so no figure: nothing was run.\n"), "{empty}");
}

#[test]
fn simulated_is_said_first_and_loudly() {
    let mut c = campaign(Mode::Inline);
    c.asked.lab = LabKind::Simulated;
    let t = text(&c, &blocks(&INLINE), WIDE);
    same(
        &t.lines().take(5).collect::<Vec<_>>().join("\n"),
        expect![[r#"

            SIMULATED: all figures below are of a simulated DUT inside linerate, NOT of this machine.

            The simulated DUT (forwarding) passes 1.498 million 64-byte IPv4 frames a second on one CPU (95 % interval 1.492..1.504
            million), 667 ns per frame; the tester itself takes 99.5 ns. The DUT was the limit: the tester alone does 10.1 million.
        "#]],
    );
    assert!(!t.contains("This machine's kernel"));
    assert!(trials(&c, &blocks(&INLINE)).text(WIDE).starts_with("SIMULATED"));
}

#[test]
fn paced_low_rates_and_imix() {
    let mut c = campaign(Mode::Inline);
    for s in &mut c.slots {
        (s.asked_fps, s.frame, s.lengths_fcs) = (Some(500.0), "IMIX".into(), vec![64, 64, 594, 1518]);
    }
    c.slots[2].asked_fps = Some(250.0);
    let t = text(&c, &blocks(&[(500.0, 500.0), (500.0, 500.0), (250.0, 250.0)]), WIDE);
    same(
        &t.lines().take(8).collect::<Vec<_>>().join("\n"),
        expect![[r#"

            This machine's kernel forwards 502.8 IPv4 frames of IMIX (560.0 bytes on average) a second on one CPU (95 % interval
            500.8..504.8). More was not offered: 500 frames a second were asked for.

                                                             offered  received            95 %  lost   Gbit/s   Gbit/s  ns per
            frame lengths with FCS                              kpps      kpps        interval     %  layer 1  layer 2   frame
            tester-baseline IPv4 IMIX (560.0 B avg), 500pps   0.5026    0.5026  0.5010..0.5045     0  0.00233  0.00225       -
            forwarding IPv4 IMIX (560.0 B avg), 500pps        0.5028    0.5028  0.5008..0.5048     0  0.00233  0.00225       -
            forwarding IPv6 IMIX (560.0 B avg), 250pps        0.2514    0.2514  0.2505..0.2523     0  0.00117  0.00113       -
        "#]],
    );
}

#[test]
fn a_trial_table() {
    let mut list = blocks(&INLINE[..2]);
    list.truncate(4);
    list[3].audit = audit(&Evidence { faults: vec!["interface g0 went down".into()], ..Evidence::default() });
    list[3].rates = None;
    same(
        &trials(&campaign(Mode::Inline), &list).text(WIDE),
        expect![[r#"

                                                     began    offered   received  lost               sent    lost  DUT CPU  steal
            trial and slot                    block      s       Mpps       Mpps     %   audit     frames  frames   % busy      %
                0 tester-baseline IPv4 64 B       0   0.00      10.00      10.00     0      ok  2,500,000       0       99      0
                1 forwarding IPv4 64 B            0   0.30      1.492      1.492     0      ok    373,058       0       99      0
                2 tester-baseline IPv4 64 B       1   0.60      10.02      10.02     0      ok  2,505,002       0       99      0
                3 forwarding IPv4 64 B            1   0.90  no window  no window     0  FAILED    372,872       0       99      0

            1 of 4 trials failed their audit
                3  interface g0 went down; frames were sent: 0 sent
        "#]],
    );
    assert_eq!(trials(&campaign(Mode::Inline), &[]).text(WIDE), "No trial was recorded.\n");
}

#[test]
fn no_line_is_wider_than_asked_and_all_is_ascii() {
    let mut c = campaign(Mode::Threaded);
    c.slots[1].variant = "known-duplication=1000000 \u{b5}\u{1b}[31m".into();
    c.notes = vec!["a note that is long enough to need a second line on most terminals, and a third".into()];
    let mut list = blocks(&[(5e6, 5e6), (4.6e6, 1.2e6), (4.4e6, 1.201e6)]);
    list[4].audit = audit(&Evidence::default());
    for width in [40, 60, 80, 100, 200] {
        let style = Style { color: false, width };
        for text in [text(&c, &list, style), trials(&c, &list).text(style)] {
            assert!(text.chars().all(|c| c == '\n' || (' '..='~').contains(&c)));
            let longest = text.lines().max_by_key(|l| l.len()).unwrap();
            assert!(longest.len() <= width, "{width}: {longest}");
        }
    }
    let coloured = text(&c, &list, Style { color: true, width: 80 });
    assert!(coloured.contains("\x1b[1m") && !coloured.contains("\x1b[31m"));
}

#[test]
fn a_summary_that_does_not_fit_its_campaign_is_no_panic() {
    let mut c = campaign(Mode::Inline);
    let verdict = summarise(&c, &blocks(&INLINE), Stopped::Precise, 0);
    c.slots.truncate(1);
    assert!(summary(&c, &host(), &verdict).text(WIDE).contains("unknown slot"));
}
