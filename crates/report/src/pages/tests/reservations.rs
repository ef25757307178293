//! Pages whose first sentences say what limits their figures, or that there are none.

use super::*;
use expect_test::expect;
use linerate_measure::record::{Http, HttpOf};

/// The paragraphs that begin so.
fn paragraphs(page: &str, beginnings: &[&str]) -> String {
    let wanted = |paragraph: &&str| {
        beginnings
            .iter()
            .any(|beginning| paragraph.starts_with(beginning))
    };
    page.split("\n\n")
        .filter(wanted)
        .collect::<Vec<_>>()
        .join("\n\n")
}

#[test]
fn the_tester_was_the_limit() {
    let t = text(
        &campaign(Mode::Inline),
        &blocks(&[(10e6, 10e6), (9.5e6, 9.5e6), (10e6, 10e6), (9.4e6, 9.4e6)]),
        WIDE,
    );
    same(
        &paragraphs(
            &t,
            &["This machine", "cell ", "Offered", "Warnings", "Where"],
        ),
        expect![[r#"

            This machine's kernel forwards 9.552 million 64-byte IPv4 frames a second on one CPU (95 % interval 9.514..9.590
            million), 105 ns per frame, of which the tester takes 99.5 ns. The tester, which does 10.1 million frames/s alone, was
            the limit: the DUT may be faster.
            IPv6 is 1.00 % slower than IPv4, 95 % interval 1.00..1.25 %.

            cell                      rate          95 %  tester    % of        95 %  against  change          95 %  differ-  trials
                                      Mpps      interval    Mpps  tester    interval     cell       %      interval     ence   valid
             2 forwarding IPv4 64 B  9.552  9.514..9.590   10.05    94.9  94.9..95.1        -       -             -            10/10
             4 forwarding IPv6 84 B  9.454  9.419..9.480   10.06    93.9  93.9..94.1        2   -1.00  -1.25..-1.00   slower   10/10

            Offered, received and lost; lengths with FCS
            cell                          offered  received  lost   Gbit/s   Gbit/s  ns per  DUT's
                                             Mpps      Mpps     %  layer 1  layer 2   frame     ns   limit
             1 tester-baseline IPv4 64 B    10.05     10.05     0     6.76     5.15    99.5      -  no DUT
             2 forwarding IPv4 64 B         9.552     9.552     0     6.42     4.89     105   5.21  tester
             3 tester-baseline IPv6 84 B    10.06     10.06     0     8.37     6.76    99.4      -  no DUT
             4 forwarding IPv6 84 B         9.454     9.454     0     7.87     6.35     106   6.35  tester

            Warnings
            ! forwarding IPv4 64 B; forwarding IPv6 84 B: too close to what the tester can do without a DUT; the DUT may be faster
              than this

            Where to look next
            - the tester was the limit: give it a CPU of its own: linerate bench --mode threaded
            - loss and latency at a load that does not wait for the DUT: linerate bench --mode threaded --rate 4.7Mpps
            - what a firewall costs: linerate bench --variant nft-stateless --variant nft-stateful
        "#]],
    );
}

#[test]
fn nothing_valid_is_no_figure() {
    let mut trials = blocks(&INLINE);
    for t in &mut trials {
        let faults = vec!["interface g0 went down".into()];
        t.audit = audit(&Evidence {
            generator: t.generator.clone(),
            faults,
            ..Evidence::default()
        });
    }
    same(
        &text(&campaign(Mode::Inline), &trials, WIDE),
        expect![[r#"

            tester-baseline IPv4 64 B; forwarding IPv4 64 B; tester-baseline IPv6 84 B and 1 more could not be measured: all 10
            trials failed their audit (the first: interface g0 went down).
            No valid trial of a DUT, so no figure.

            cell                     rate            95 %  tester    % of      95 %  against  change      95 %    differ-  trials
                                     Mpps        interval    Mpps  tester  interval     cell       %  interval       ence   valid
             2 forwarding IPv4 64 B     -  no valid trial       -       -         -        -       -         -               0/10
             4 forwarding IPv6 84 B     -  no valid trial       -       -         -        2       -         -  not known    0/10

            How it was measured
            plan     the arguments of `linerate bench`; --print-plan prints them as a plan
            mode     inline, a closed loop: generator, DUT and receiver take turns on the same CPU, so the load is what the DUT
                     takes. It shows the cost per frame, not loss or overload.
            CPUs     generator, DUT, receiver on CPU 1; control on CPU 0
            traffic  64 B, 84 B; IPv4, IPv6; UDP; 1,024 flows; flow order sequential; rate max
            trials   40 trials of 250 ms, randomised complete blocks, seed 7, batches of 64, generator xdp-live-frames, receiver
                     xdp, in namespaces
            host     Example CPU, 4 CPUs under KVM; Linux 6.12.0; Debian GNU/Linux 13; clock tsc
            figures  rates are medians of received frames/s; changes, and % of tester, are medians of the ratios of trials of one
                     block, which can differ from the ratio of two medians. Stopping early does not weaken the intervals. All rates
                     include the tester's time.

            Where to look next
            - why 20 trials failed their audit: linerate show DIRECTORY --trials, and trials.jsonl has every check
            - what a firewall costs: linerate bench --variant nft-stateless --variant nft-stateful

            Took 12.0 s: all intervals are narrow enough. The load took 91.9 % of this time, overhead 8.1 %. linerate held 12.3 MiB
            of memory at most.
        "#]],
    );
    let empty = text(&campaign(Mode::Inline), &[], WIDE);
    assert!(
        empty.contains("\nNo trial was run, so there is no figure.\n"),
        "{empty}"
    );
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

            The simulated DUT (forwarding) passes 1.498 million 64-byte IPv4 frames a second (95 % interval 1.492..1.504 million).
            IPv6 is 3.98 % slower than IPv4, 95 % interval 3.98..4.22 %.
        "#]],
    );
    assert!(!t.contains("This machine's kernel"));
    assert!(
        trials(&c, &blocks(&INLINE))
            .text(WIDE)
            .starts_with("SIMULATED")
    );
}

/// The tester alone is hardly faster, or in a simulation slower: a full queue of the DUT decides.
#[test]
fn a_dut_whose_queue_was_full_was_the_limit() {
    let mut c = campaign(Mode::Threaded);
    for lab in [LabKind::Namespaces, LabKind::Simulated] {
        c.asked.lab = lab;
        let trials = blocks(&[(1e6, 1e6), (1.2e6, 0.99e6), (1e6, 1e6), (1.2e6, 0.99e6)]);
        let verdict = summarise(&c, &trials, Stopped::Trials, 0);
        let page = super::super::first(&c, &host(), &verdict, &[], "records");
        let page = page.unwrap().text(WIDE);
        assert!(
            page.contains(
                "limit    The DUT was the limit: 17.5 % of the load found its queues full."
            ),
            "{page}"
        );
        assert!(!page.contains("may be faster"), "{page}");
        let told = page.contains("times as fast without DUT");
        assert_eq!(told, lab == LabKind::Namespaces, "{page}");
    }
}

/// Most of their time may be that of the programs.
#[test]
fn programs_exchange_requests_through_the_kernel() {
    let mut c = campaign(Mode::Inline);
    for slot in &mut c.slots {
        slot.http = Some(HttpOf {
            http: Http::Close,
            object: 1024,
            connections: 64,
        });
    }
    let t = text(&c, &blocks(&[(1e4, 1e4), (8e3, 8e3)].repeat(2)), WIDE);
    let answer = "Through this machine's kernel, wrk and nginx exchange 8.0";
    assert!(t.contains(answer), "{t}");
}

#[test]
fn paced_low_rates_and_imix() {
    let mut c = campaign(Mode::Inline);
    for s in &mut c.slots {
        (s.asked_fps, s.frame, s.lengths_fcs) =
            (Some(500.0), "IMIX".into(), vec![64, 64, 594, 1518]);
    }
    c.slots[3].asked_fps = Some(250.0);
    let t = text(
        &c,
        &blocks(&[
            (500.0, 500.0),
            (500.0, 500.0),
            (500.0, 500.0),
            (250.0, 250.0),
        ]),
        WIDE,
    );
    same(
        &t.lines().take(9).collect::<Vec<_>>().join("\n"),
        expect![[r#"

            This machine's kernel forwards 502.8 IPv4 frames of IMIX (560.0 bytes on average) a second on one CPU (95 % interval
            500.8..504.8), all that were offered. The offered load was the limit: 500 frames a second were asked for.
            IPv6 is 49.98 % slower than IPv4, 95 % interval 49.98..50.10 %.

            cell                      rate          95 %  tester    % of  against  change            95 %  differ-  trials
                                       pps      interval     pps  tester     cell       %        interval     ence   valid
             2 forwarding IPv4 64 B  502.8  500.8..504.8   502.6    99.9        -       -               -            10/10
             4 forwarding IPv6 84 B  251.4  250.5..252.1   502.9    50.0        2  -49.98  -50.10..-49.98   slower   10/10
        "#]],
    );
}
