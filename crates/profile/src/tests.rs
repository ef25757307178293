use super::*;
use proptest::prelude::*;
use std::io::Cursor;

const LOCKSTAT: &str = "Spin lock spin: 3 events in 2.000 seconds (1 events/sec)\n\nCount indv cuml rcnt     nsec Lock   Caller\n\
    3 100% 100% 0.00 2000 igb0 tx   igb_start+0x10\n\n  nsec ------ Time Distribution ------ count     Stack\n\
    1024 |@@  3   igb_start+0x10\n          if_transmit\n";
const QUANTIZE: &str =
    "  key\nvalue  --- Distribution --- count\n 512 | 0\n1024 |@ 3\n>= 2048 | 1\n";
const GRAPH: &str = "\
@ cpu_clk_unhalted.thread [100 samples]

60.00%  [60]       rn_match @ /boot/kernel/kernel
 50.00%  [30]        fib4_lookup
  100.0%  [30]        ip_tryforward
 33.33%  [20]        rib_lookup
  100.0%  [20]        ip_findroute

40.00%  [40]       ip_tryforward @ /boot/kernel/kernel
";

const DTRACE: &str = "
              kernel`rn_match+0x12
              kernel`ip_tryforward+0x3a
               30

              kernel`ip_input
                7
";

const PERF: &str = "\
swapper     0 [000] 158665.570607: cpu-clock:
        ffffffff8103ce3b native_safe_halt ([kernel.kallsyms])
        ffffffff8101c6a3 default_idle ([kernel.kallsyms])

ksoftirqd/0     9 [000] 158665.571607: cpu-clock:
        ffffffff8103ce3b fib_table_lookup ([kernel.kallsyms])
        ffffffff8101c6a3 ip_route_input_slow ([kernel.kallsyms])

";

/// The forms that btrace's map.c and ksyms.c of OpenBSD write, with the bracket on a line of its own or not, and those of bpftrace.
const BTRACE: &str = "\
^C@[
ip_input_if+0x2a
ether_input+0x1d3
if_input_process+0x98]: 30
@[
rtable_lookup
ip_forward+0x12
]: 7
@[]: 99
@hot[
    ip_rcv+34
    __netif_receive_skb+105
, swapper/0]: 5
";

fn folded(text: &str) -> (Folded, String) {
    let mut out = Vec::new();
    let told = fold(Cursor::new(text), &mut out).unwrap();
    (told, String::from_utf8(out).unwrap())
}

#[test]
fn each_format_is_recognised_and_folded() {
    let (told, lines) = folded(GRAPH);
    assert_eq!(
        (told.source, told.event.as_deref()),
        (Source::Pmcstat, Some("cpu_clk_unhalted.thread"))
    );
    assert_eq!(
        lines,
        "ip_tryforward;fib4_lookup;rn_match 30\nip_findroute;rib_lookup;rn_match 20\nip_tryforward 40\n"
    );
    let (told, lines) = folded(DTRACE);
    assert_eq!(told.source, Source::Dtrace);
    assert_eq!(
        lines,
        "kernel`ip_input 7\nkernel`ip_tryforward;kernel`rn_match 30\n"
    );
    let (told, lines) = folded(PERF);
    assert_eq!(told.source, Source::Perf);
    assert_eq!(
        lines,
        "ksoftirqd/0;ip_route_input_slow;fib_table_lookup 1\nswapper;default_idle;native_safe_halt 1\n"
    );
    let (told, lines) = folded(BTRACE);
    assert_eq!(told.source, Source::Btrace);
    assert_eq!(
        lines,
        "__netif_receive_skb;ip_rcv 5\nif_input_process;ether_input;ip_input_if 30\nip_forward;rtable_lookup 7\n"
    );
    let (_, lines) =
        folded("@[\nf+0x1\ng]: x\n@[\nh]: 18446744073709551615\n]: 3\n@[\nh\n]: 4\n@[\ncut");
    assert_eq!(lines, "h 18446744073709551615\n");
    let (told, lines) = folded(LOCKSTAT);
    assert_eq!(told.source, Source::Lockstat);
    assert_eq!(lines, "Spin lock spin;if_transmit;igb_start;igb0 tx 6000\n");
    let (told, lines) = folded("# a note\na;b c;d 12\na 3\n");
    assert_eq!(
        (told.source, lines.as_str()),
        (Source::Folded, "# a note\na;b c;d 12\na 3\n")
    );
}

#[test]
fn a_cut_output_gives_its_stacks_and_is_known() {
    let whole = folded(GRAPH).0;
    assert!(!whole.is_cut);
    let (told, lines) = folded(GRAPH.split_at(GRAPH.find("rib_lookup").unwrap() + 4).0);
    assert!(told.is_cut);
    assert_eq!(
        lines,
        "ip_tryforward;fib4_lookup;rn_match 30\nrib_;rn_match 20\n"
    );
}

#[test]
fn other_files_have_no_stacks() {
    for (text, says) in [
        ("", "empty"),
        (" \n\n", "empty"),
        ("1\n2\n", "pmcstat -G"),
        ("\0\0\u{1}", "pmcstat -G"),
    ] {
        let fault = fold(Cursor::new(text), Vec::new()).unwrap_err();
        assert!(fault.to_string().contains(says), "{text:?}: {fault}");
    }
}

#[test]
fn functions_are_counted_with_their_callers() {
    let profile = Profile::of_folded("a;b;c 10\na;d;c 5\na;b 1\na;b;a;b 4\nnot a stack\n");
    assert_eq!(profile.samples(), 20);
    let functions = profile.functions();
    let of = |name: &str| functions.iter().find(|f| f.name == name).unwrap();
    assert_eq!(functions[0].name, "c");
    assert_eq!((of("c").own, of("c").with_called), (15, 15));
    assert_eq!(of("c").callers, [("b".into(), 10), ("d".into(), 5)]);
    // Recursion counts once.
    assert_eq!((of("b").own, of("b").with_called), (5, 15));
    assert_eq!((of("a").own, of("a").with_called), (0, 20));
}

#[test]
fn differences_are_of_shares() {
    let (before, after) = (
        Profile::of_folded("a;b 50\na;c 50\n"),
        Profile::of_folded("a;b 150\na;d 50\n"),
    );
    let found = differences(&before, &after);
    let own: Vec<_> = found.iter().map(|d| (d.name.as_str(), d.own)).collect();
    assert_eq!(
        own,
        [
            ("c", [0.5, 0.0]),
            ("b", [0.5, 0.75]),
            ("d", [0.0, 0.25]),
            ("a", [0.0, 0.0])
        ]
    );
}

#[test]
fn pictures_show_functions_and_escape_names() {
    let profile = Profile::of_folded("a;<script>alert(1)</script> 10\na;b 90\n");
    let picture = Picture {
        title: "x & y".into(),
        unit: "samples".into(),
        ..Picture::default()
    };
    let svg = String::from_utf8(flame_graph(&profile, picture.clone()).unwrap()).unwrap();
    assert!(svg.contains("x &amp; y") && svg.contains("b (90 samples, 90.00%)"));
    assert!(!svg.contains("<script>alert"));
    let svg = differential(
        &profile,
        &Profile::of_folded("a;b 50\na;c 50\n"),
        picture.clone(),
    )
    .unwrap();
    assert!(
        String::from_utf8(svg)
            .unwrap()
            .contains("c (50 samples, 50.00%")
    );
    assert!(flame_graph(&Profile::default(), picture).is_err());
    let part = flame_graph_part(&profile).unwrap();
    assert!(
        part.starts_with("<svg width=")
            && part.contains(" viewBox=\"0 0 ")
            && part.ends_with("</svg></svg>"),
        "{part}"
    );
    assert!(part.contains("b (90 samples, 90.00%)") && part.matches("<svg").count() == 2);
    assert!(
        !part.contains("<script") && !part.contains("<style") && !part.contains("onload"),
        "{part}"
    );
    assert!(flame_graph_part(&Profile::default()).is_err());
}

proptest! {
    #[test]
    fn no_output_of_a_profiler_is_a_panic(
        which in 0usize..6,
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..12),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = [GRAPH, DTRACE, PERF, "a;b 1\n", LOCKSTAT, QUANTIZE][which].as_bytes().to_vec();
        for (at, byte) in edits {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes.truncate(cut.index(bytes.len()) + 1);
        let _ = observed(Cursor::new(&bytes));
        let mut out = Vec::new();
        if fold(Cursor::new(&bytes), &mut out).is_ok() {
            let profile = Profile::of_folded(&String::from_utf8_lossy(&out));
            profile.functions();
            let _ = flame_graph(&profile, Picture::default());
            let _ = differential(&profile, &Profile::of_folded("a;b 1\n"), Picture::default());
        }
    }
}
