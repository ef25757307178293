//! The texts as a person sees them.

mod agreement;
mod bounds;
mod reservations;

use super::*;
use crate::format::Style;
use expect_test::{Expect, expect};
use linerate_measure::audit::{Cause, Evidence, Loss, Side, audit};
use linerate_measure::counters::PortCounters;
use linerate_measure::experiment::System;
use linerate_measure::record::{
    Asked, Clocks, CpuShare, LabKind, Mode, Planned, Roles, Slot, Stamped, Stopped, TrialRecord,
    VERSION,
};
use linerate_measure::summary::summarise;
use linerate_measure::trial::{Rates, Timing};
use linerate_plan::Plan;
use linerate_plan::campaign::Cell;
use linerate_stats::histogram::Histogram;
use std::collections::BTreeMap;

const WIDE: Style = Style {
    color: false,
    width: 120,
};

pub(super) fn slot(
    id: usize,
    variant: &str,
    length: u16,
    ceiling: Option<usize>,
    baseline: Option<usize>,
) -> Slot {
    Slot {
        id,
        name: format!(
            "{variant} {} {length} B",
            if length == 84 { "IPv6" } else { "IPv4" }
        ),
        variant: variant.into(),
        family: if length == 84 { "IPv6" } else { "IPv4" }.into(),
        transport: "UDP".into(),
        frame: length.to_string(),
        lengths_fcs: vec![length],
        l4_checksum: true,
        signed: true,
        ceiling,
        baseline,
        ..Slot::default()
    }
}

/// A plan as `linerate bench` makes it.
const PLAN: &[u8] = br#"
title = "linerate bench"
question = "How many frames does this machine forward?"
[lab]
mode = "inline"
[traffic]
size = "64 B"
flows = 1024
[variants.forwarding]
from = "forwarding"
[factors.family]
sets = "traffic.family"
levels = ["IPv4", "IPv6"]
[compare]
what = ["levels"]
until = "2 %"
[trials]
duration = "250 ms"
budget = "30 s"
"#;

/// A campaign of two IP versions, each with the tester alone.
pub(super) fn campaign(mode: Mode) -> Campaign {
    let plan = Plan::read(PLAN).unwrap();
    let mut plan = plan.campaign(System::Linux, false).unwrap().clone();
    plan.name_by_frames();
    let length = |kind: usize| plan.kinds[kind].size.pattern[0];
    let cells = plan.cells.iter().enumerate();
    let slot = |(id, c): (usize, &Cell)| Slot {
        plan_variant: c.variant.clone(),
        levels: c.levels.clone(),
        flows: Some(1024),
        order: "sequential".into(),
        rate: "max".into(),
        ..slot(id, &c.variant, length(c.kind), c.ceiling, c.baseline)
    };
    let slots = cells.map(slot).collect();
    let roles = match mode {
        Mode::Inline => Roles {
            generator: vec![1],
            dut: vec![1],
            receiver: vec![1],
            control: vec![0],
        },
        Mode::Threaded | Mode::Hosts | Mode::EndHosts => Roles {
            generator: vec![1],
            dut: vec![2],
            receiver: vec![3],
            control: vec![0],
        },
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
            guests: None,
            generator: "xdp-live-frames".into(),
            receiver: "xdp".into(),
            flows: 1024,
            order: "sequential".into(),
            rate: "max".into(),
            timing: Timing::slice(250_000_000),
            batch: 64,
            seed: 7,
        },
        roles,
        slots,
        notes: vec![],
        standing: BTreeMap::new(),
        planned: Some(Box::new(planned(None, plan))),
        imported: None,
    }
}

/// A plan in a record.
pub(super) fn planned(file: Option<String>, plan: linerate_plan::campaign::Campaign) -> Planned {
    Planned {
        file,
        source: Some(plan.source.clone()),
        plan: plan.rest(),
        experiment: plan.experiment,
        skipped: Vec::new(),
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

/// A trial with this offered and this received rate, a quarter of a second long.
pub(super) fn trial(
    number: u64,
    block: u32,
    slot: usize,
    offered: f64,
    received: f64,
) -> TrialRecord {
    lossy(
        number,
        block,
        slot,
        [offered, received],
        "DUT in: receive ring full",
        Cause::QueueFull,
    )
}

/// A trial whose DUT drops the frames that it does not pass on at this place, for this cause.
pub(super) fn lossy(
    number: u64,
    block: u32,
    slot: usize,
    [offered, received]: [f64; 2],
    place: &str,
    cause: Cause,
) -> TrialRecord {
    let (sent, got) = ((offered / 4.0) as u64, (received / 4.0) as u64);
    let port = |frames| PortCounters {
        frames,
        ..PortCounters::default()
    };
    let loss = Loss {
        place: place.into(),
        frames: sent - got,
        side: Side::Dut,
        cause,
    };
    let losses = if sent > got { vec![loss] } else { Vec::new() };
    let mut receiver = port(got);
    let mut latency = Histogram::default();
    (0..100).for_each(|i| latency.record(1000 + 10 * i));
    receiver.latency = latency;
    let rates = Some(Rates {
        offered,
        received,
        seconds: 0.25,
    });
    let evidence = Evidence {
        rates,
        generator: port(sent),
        receiver,
        losses: losses.clone(),
        ..Evidence::default()
    };
    TrialRecord {
        version: VERSION,
        trial: number,
        block,
        slot,
        began_ns: number * 300_000_000,
        timing: Timing::slice(250_000_000),
        rates,
        loss_ratio: 1.0 - got as f64 / sent as f64,
        generator: evidence.generator.clone(),
        receiver: evidence.receiver.clone(),
        losses,
        cpus: vec![
            CpuShare {
                cpu: 0,
                busy: 0.02,
                softirq: 0.0,
                steal: 0.0,
                user: 0.0,
                others: None,
                frequency: None,
            },
            CpuShare {
                cpu: 1,
                busy: 0.99,
                softirq: 0.9,
                steal: 0.0,
                user: 0.0,
                others: None,
                frequency: None,
            },
        ],
        audit: audit(&evidence),
        ..TrialRecord::default()
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

/// `UPDATE_EXPECT=1 cargo test -p linerate-report` replaces the expected text by the actual one.
#[track_caller]
pub(super) fn same(text: &str, expected: Expect) {
    // The text begins on a line of its own, so that its columns show.
    expected.assert_eq(&format!("\n{}\n", text.trim_end()));
}

const INLINE: [(f64, f64); 4] = [
    (10e6, 10e6),
    (1.49e6, 1.49e6),
    (9.8e6, 9.8e6),
    (1.43e6, 1.43e6),
];

#[test]
fn normal() {
    same(
        &text(&campaign(Mode::Inline), &blocks(&INLINE), WIDE),
        expect![[r#"

            This machine's kernel forwards 1.498 million 64-byte IPv4 frames a second on one CPU (95 % interval 1.492..1.504
            million), 667 ns per frame, of which the tester takes 99.5 ns. The DUT was the limit: the tester alone does 10.1 million
            frames/s.
            IPv6 is 3.98 % slower than IPv4, 95 % interval 3.98..4.22 %.

            cell                      rate          95 %  tester    % of        95 %  against  change          95 %  differ-  trials
                                      Mpps      interval    Mpps  tester    interval     cell       %      interval     ence   valid
             2 forwarding IPv4 64 B  1.498  1.492..1.504   10.05    14.9  14.9..14.9        -       -             -            10/10
             4 forwarding IPv6 84 B  1.438  1.433..1.442   9.856    14.6  14.6..14.6        2   -3.98  -4.22..-3.98   slower   10/10

            Offered, received and lost; lengths with FCS
            cell                          offered  received  lost   Gbit/s   Gbit/s  ns per  DUT's
                                             Mpps      Mpps     %  layer 1  layer 2   frame     ns   limit
             1 tester-baseline IPv4 64 B    10.05     10.05     0     6.76     5.15    99.5      -  no DUT
             2 forwarding IPv4 64 B         1.498     1.498     0     1.01    0.767     667    568     DUT
             3 tester-baseline IPv6 84 B    9.856     9.856     0     8.20     6.62     101      -  no DUT
             4 forwarding IPv6 84 B         1.438     1.438     0     1.20    0.966     695    594     DUT

            Compared by ministat: factor family
            compared    family IPv4  family IPv6          ministat
            in                 Mpps         Mpps
            forwarding        1.498        1.438  -4.03% +/- 0.27%

            % of line rate                    1G   10G   25G   40G  100G
             2 forwarding IPv4 64 B          101  10.1  4.03  2.52  1.01
               simple IMIX, same frame rate  458  45.8  18.3  11.4  4.58
             4 forwarding IPv6 84 B          120  12.0  4.79  2.99  1.20
               simple IMIX, same frame rate  439  43.9  17.6  11.0  4.39
            Above 100: more than a link of this speed carries.

            Latency from generator to receiver
                                              p50      p99    p99.9      PDV
                                                                       p99.9
             1 tester-baseline IPv4 64 B  1.49 us  1.97 us  2.00 us  1.00 us
             2 forwarding IPv4 64 B       1.49 us  1.97 us  2.00 us  1.00 us
             3 tester-baseline IPv6 84 B  1.49 us  1.97 us  2.00 us  1.00 us
             4 forwarding IPv6 84 B       1.49 us  1.97 us  2.00 us  1.00 us
            Frames with a time stamp, one clock. PDV (RFC 5481) is a frame's latency minus the least latency of the trial. Frames go
            in batches of 64 (smaller where a frame takes more than 30 us); in inline mode, the latency includes the wait for the
            batch.

            No frame was lost in a valid trial.

            How it was measured
            plan     the arguments of `linerate bench`; --print-plan prints them as a plan
            mode     inline, a closed loop: generator, DUT and receiver take turns on the same CPU, so the load is what the DUT
                     takes. It shows the cost per frame, not loss or overload.
            CPUs     generator, DUT, receiver on CPU 1; control on CPU 0. CPU 1 at least 95 % busy in all cells
            traffic  64 B, 84 B; IPv4, IPv6; UDP; 1,024 flows; flow order sequential; rate max
            trials   40 trials of 250 ms, randomised complete blocks, seed 7, batches of 64, generator xdp-live-frames, receiver
                     xdp, in namespaces
            host     Example CPU, 4 CPUs under KVM; Linux 6.12.0; Debian GNU/Linux 13; clock tsc
            figures  rates are medians of received frames/s; changes, and % of tester, are medians of the ratios of trials of one
                     block, which can differ from the ratio of two medians. ministat compares averages, so its figures can differ:
                     the changes are the result. Stopping early does not weaken the intervals. All rates include the tester's time.

            Where to look next
            - how the rate scales over all CPUs: linerate bench --cpus 0-3
            - loss and latency at a load that does not wait for the DUT: linerate bench --mode threaded --rate 720kpps
            - what a firewall costs: linerate bench --variant nft-stateless --variant nft-stateful

            Took 12.0 s: all intervals are narrow enough. The load took 91.9 % of this time, overhead 8.1 %. linerate held 12.3 MiB
            of memory at most.
        "#]],
    );
}

#[test]
fn latencies_between_clocks_have_their_error() {
    let mut c = campaign(Mode::Hosts);
    c.asked.lab = LabKind::Hosts;
    let rates = [(5e6, 5e6), (4.6e6, 4.6e6), (4.9e6, 4.9e6), (4.4e6, 4.4e6)];
    let page = |errors: [u64; 4]| {
        let mut trials = blocks(&rates);
        for trial in &mut trials {
            trial.clocks = Some(Clocks {
                shift_ns: 500,
                error_ns: errors[trial.slot],
            });
        }
        text(&c, &trials, WIDE)
    };
    let compared = page([0, 600, 0, 5000]);
    let found = compared
        .split("Latency from")
        .nth(1)
        .unwrap()
        .split("No frame")
        .next()
        .unwrap();
    same(
        found,
        expect![[r#"

             generator to receiver
                                             p50      p99    p99.9   clocks      PDV
                                                                        +/-    p99.9
             1 tester-baseline IPv4 64 B  984 ns  1.46 us  1.49 us        -  1.00 us
             2 forwarding IPv4 64 B       984 ns  1.46 us  1.49 us   600 ns  1.00 us
             3 tester-baseline IPv6 84 B  984 ns  1.46 us  1.49 us        -  1.00 us
             4 forwarding IPv6 84 B       984 ns  1.46 us  1.49 us  5.00 us  1.00 us
            Frames with a time stamp, two clocks, compared before and after each trial. PDV (RFC 5481) is a frame's latency minus
            the least latency of the trial. The latency includes the wait in the DUT's queues.
            clocks, +/-: error of the comparison, and so of the latencies. PDV does not depend on the offset of the clocks, only on
            their drift within a trial.
            The error of the clocks is as large as the latency of 4 forwarding IPv6 84 B: only PDV is meaningful there.
        "#]],
    );
    let stamped = |by_cards, frames| {
        let mut trials = blocks(&rates);
        for trial in &mut trials {
            trial.clocks = Some(Clocks {
                shift_ns: 0,
                error_ns: 0,
            });
            let why = if by_cards == [true; 2] {
                vec![]
            } else {
                vec!["g0: this card cannot".to_string()]
            };
            trial.stamped = Some(Stamped {
                frames,
                by_cards,
                why,
            });
        }
        text(&c, &trials, WIDE)
    };
    let cards = stamped([true; 2], 10);
    assert!(
        cards.contains("frames that the cards stamped at both ends, one clock."),
        "{cards}"
    );
    assert!(!cards.contains("No stamps of hardware"), "{cards}");
    let mixed = stamped([false, true], 10);
    assert!(
        mixed.contains("stamped by the receiving card and by the other one's driver"),
        "{mixed}"
    );
    let none = stamped([false; 2], 0);
    assert!(
        none.contains("Frames with a time stamp")
            && none.contains("hardware: g0: this card cannot."),
        "{none}"
    );
    let one = page([0; 4]);
    assert!(
        one.contains("one clock. PDV") && !one.contains("only PDV"),
        "{one}"
    );
    let without = text(&c, &blocks(&rates), WIDE);
    assert!(
        !without.contains("Latency from"),
        "ages by clocks that were not compared: {without}"
    );
}

#[test]
fn threaded_with_losses() {
    let c = campaign(Mode::Threaded);
    same(
        &text(
            &c,
            &blocks(&[(5e6, 5e6), (4.6e6, 1.2e6), (4.9e6, 4.9e6), (4.4e6, 1.201e6)]),
            WIDE,
        ),
        expect![[r#"

            This machine's kernel forwards 1.207 million 64-byte IPv4 frames a second on one CPU (95 % interval 1.202..1.211
            million). Of 4.63 million offered, 73.9 % are lost. The DUT was the limit: the tester alone does 5.03 million frames/s.
            IPv6 is between 0.12 % slower and 0.13 % faster than IPv4: undecided.

            cell                      rate          95 %  lost  tester    % of  against  change          95 %     differ-  trials
                                      Mpps      interval     %    Mpps  tester     cell       %      interval        ence   valid
             2 forwarding IPv4 64 B  1.207  1.202..1.211  73.9   5.026    24.0        -       -             -               10/10
             4 forwarding IPv6 84 B  1.208  1.203..1.211  72.7   4.928    24.5        2   +0.13  -0.12..+0.13  not proven   10/10

            Offered, received and lost; lengths with FCS
            cell                          offered  received  lost   Gbit/s   Gbit/s  ns per
                                             Mpps      Mpps     %  layer 1  layer 2   frame   limit
             1 tester-baseline IPv4 64 B    5.026     5.026     0     3.38     2.57     199  no DUT
             2 forwarding IPv4 64 B         4.625     1.207  73.9    0.811    0.618     829     DUT
             3 tester-baseline IPv6 84 B    4.928     4.928     0     4.10     3.31     203  no DUT
             4 forwarding IPv6 84 B         4.425     1.208  72.7     1.00    0.812     828     DUT
            ns per frame: the time divided by the frames that the DUT took in, forwarded or dropped.

            Compared by ministat: factor family
            compared    family IPv4  family IPv6                                  ministat
            in                 Mpps         Mpps
            forwarding        1.207        1.208  No difference proven at 95.0% confidence

            % of line rate                     1G   10G   25G   40G  100G
             2 forwarding IPv4 64 B          81.1  8.11  3.24  2.03  0.81
               simple IMIX, same frame rate   369  36.9  14.7  9.21  3.69
             4 forwarding IPv6 84 B           100  10.0  4.02  2.51  1.00
               simple IMIX, same frame rate   369  36.9  14.8  9.22  3.69
            Above 100: more than a link of this speed carries.

            Latency from generator to receiver
                                              p50      p99    p99.9      PDV
                                                                       p99.9
             1 tester-baseline IPv4 64 B  1.49 us  1.97 us  2.00 us  1.00 us
             2 forwarding IPv4 64 B       1.49 us  1.97 us  2.00 us  1.00 us
             3 tester-baseline IPv6 84 B  1.49 us  1.97 us  2.00 us  1.00 us
             4 forwarding IPv6 84 B       1.49 us  1.97 us  2.00 us  1.00 us
            Frames with a time stamp, one clock. PDV (RFC 5481) is a frame's latency minus the least latency of the trial. The
            latency includes the wait in the DUT's queues.

            Losses by place, in valid trials
            forwarding IPv4 64 B: 73.9 % of the sent frames
                    8,546,789  DUT in: receive ring full
            forwarding IPv6 84 B: 72.7 % of the sent frames
                    8,041,518  DUT in: receive ring full

            How it was measured
            plan     the arguments of `linerate bench`; --print-plan prints them as a plan
            mode     threaded, an open loop: the DUT has CPUs of its own and the load does not wait for it. It shows loss, overload
                     and latency.
            CPUs     generator on CPU 1; DUT on CPU 2; receiver on CPU 3; control on CPU 0. CPU 1 at least 95 % busy in all cells
            traffic  64 B, 84 B; IPv4, IPv6; UDP; 1,024 flows; flow order sequential; rate max
            trials   40 trials of 250 ms, randomised complete blocks, seed 7, batches of 64, generator xdp-live-frames, receiver
                     xdp, in namespaces
            host     Example CPU, 4 CPUs under KVM; Linux 6.12.0; Debian GNU/Linux 13; clock tsc
            figures  rates are medians of received frames/s; changes, and % of tester, are medians of the ratios of trials of one
                     block, which can differ from the ratio of two medians. ministat compares averages, so its figures can differ:
                     the changes are the result. Stopping early does not weaken the intervals.

            Where to look next
            - what a firewall costs: linerate bench --variant nft-stateless --variant nft-stateful

            Took 12.0 s: all intervals are narrow enough. The load took 91.9 % of this time, overhead 8.1 %. linerate held 12.3 MiB
            of memory at most.
        "#]],
    );
}

#[test]
fn a_trial_table() {
    let mut list = blocks(&INLINE[..2]);
    list.truncate(4);
    list[3].audit = audit(&Evidence {
        faults: vec!["interface g0 went down".into()],
        ..Evidence::default()
    });
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
                3  interface g0 went down; no frame was sent
        "#]],
    );
    assert_eq!(
        trials(&campaign(Mode::Inline), &[]).text(WIDE),
        "No trial was recorded.\n"
    );
}

#[test]
fn a_page_of_many_campaigns_says_how_many_are_simulated() {
    let of = |is: &bool| is.then_some(super::Unreal::Simulated);
    let words = |all: &[bool]| super::simulation(all.iter().map(of)).join("\n");
    assert_eq!(words(&[false, false]), "");
    assert!(words(&[true, true]).contains("all figures below"));
    assert!(words(&[true, false, false]).contains("1 of 3 campaigns on this page are"));
    // Beside a real campaign, that which stands below is not all simulated.
    let mut simulated = campaign(Mode::Inline);
    simulated.asked.lab = LabKind::Simulated;
    let parts = [&simulated, &campaign(Mode::Inline)].map(|of| (String::new(), trials(of, &[])));
    let page = super::reports(parts.into()).text(WIDE);
    assert!(
        page.contains("SIMULATED: all figures of this campaign are") && !page.contains("below"),
        "{page}"
    );
    let mut emulated = campaign(Mode::Inline);
    emulated.asked.guests = Some(linerate_measure::record::Guests::Emulated);
    let page = trials(&emulated, &[]).text(WIDE);
    assert!(page.contains("EMULATED: all figures below are"), "{page}");
    emulated.asked.guests = Some(linerate_measure::record::Guests::Kvm);
    let page = trials(&emulated, &[]).text(WIDE);
    assert!(!page.contains("EMULATED"), "{page}");
}
