//! Things that frames meet on their way are put into the DUT, and `linerate explain` must list them. Plain forwarding has nothing on its list.

use crate::common::{Bench, Scratch, linerate};
use linerate_measure::record::{Explanation, Met, OnPath};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;

const PLAN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/causes/path.toml");

/// An entry: its kind, and the beginnings of its name and its place.
type Put = (Met, &'static str, &'static str);

/// Each variant with what it has.
const PUT_IN: [(&str, &[Put]); 13] = [
    (
        "policy-rule",
        &[(Met::PolicyRule, "32765: src 203.0.113.7 table 100", "")],
    ),
    (
        "set",
        &[
            (
                Met::PacketFilter,
                "nftables inet own: 1 base chain, 1 rule",
                "forward",
            ),
            (Met::Set, "nftables set blocked (ipv4_addr, interval)", ""),
        ],
    ),
    (
        "empty-chain",
        &[
            (
                Met::PacketFilter,
                "nftables ip own: 1 base chain, no rules",
                "prerouting",
            ),
            (
                Met::PacketFilter,
                "iptables ip filter: 1 base chain, 1 rule",
                "forward",
            ),
            (Met::UserQueue, "NFQUEUE, which no program reads", ""),
        ],
    ),
    (
        "accounting",
        &[
            (
                Met::PacketFilter,
                "nftables ip linerate: 1 base chain",
                "forward",
            ),
            (Met::ConnectionTracking, "conntrack", ""),
            (
                Met::ConnectionTracking,
                "net.netfilter.nf_conntrack_acct = 1 (default 0)",
                "",
            ),
        ],
    ),
    ("htb", &[(Met::QueueingDiscipline, "htb, 1 class", "out")]),
    (
        "mirrored",
        &[
            (Met::QueueingDiscipline, "clsact", "in"),
            (Met::TrafficFilter, "1 u32 filter (mirred)", "in"),
            (Met::Device, "ifb", "ifb0"),
        ],
    ),
    (
        "programs",
        &[
            (Met::QueueingDiscipline, "clsact", "in"),
            (Met::Program, "tc program look (id ", "in"),
            (Met::Program, "XDP program pass (id ", "in"),
            (Met::Route, "encapsulation bpf look.o:[way] for 198.19.", ""),
        ],
    ),
    (
        "bridge",
        &[
            (Met::Device, "bridge", "in"),
            (Met::Hook, "br_netfilter", ""),
        ],
    ),
    (
        "macvlan",
        &[
            (Met::Device, "macvlan on card-in", "in"),
            (Met::Device, "macvlan on card-out", "out"),
        ],
    ),
    (
        "tap",
        &[(Met::PacketSocket, "1 packet socket (all protocols)", "in")],
    ),
    (
        "ipsec",
        &[(Met::Ipsec, "1 policy forward, 1 policy out", "")],
    ),
    (
        "multipath",
        &[
            (Met::Route, "2 next hops for 198.19.", ""),
            (
                Met::Setting,
                "net.ipv4.fib_multipath_hash_policy = 1 (default 0)",
                "",
            ),
        ],
    ),
    (
        "events",
        &[(Met::Tracing, "event fib:fib_table_lookup", "")],
    ),
];

/// Runs the plan with further lines, and returns the lists of its variants.
fn lists(scratch: &Scratch, lines: &str, more: &[&str]) -> BTreeMap<String, OnPath> {
    let _ = fs::remove_dir_all(scratch.file("records"));
    let plan = fs::read_to_string(PLAN).unwrap() + lines;
    fs::write(scratch.file("plan.toml"), plan).unwrap();
    let ended = linerate(["run", "plan.toml", "--out", "records"])
        .args(more)
        .dir(scratch.path())
        .within(300)
        .run()
        .no_panic();
    assert!(matches!(ended.status.code(), Some(0 | 1)), "{ended:?}");
    let campaign = fs::read_to_string(scratch.file("records/campaign.json")).unwrap();
    let campaign: Value = serde_json::from_str(&campaign).unwrap();
    let explained: Vec<Explanation> =
        serde_json::from_str(&explained(scratch, &["--json"])).unwrap();
    let of = |explained: Explanation| {
        let slot = &campaign["slots"][explained.slot];
        let variant = slot["plan_variant"].as_str().unwrap();
        (variant.to_string(), explained.path.unwrap())
    };
    explained.into_iter().map(of).collect()
}

fn explained(scratch: &Scratch, args: &[&str]) -> String {
    let all = ["explain", "records"]
        .into_iter()
        .chain(args.iter().copied());
    linerate(all).dir(scratch.path()).run().ok().stdout
}

#[test]
#[ignore = "needs root, nft, iptables-legacy, tc, tcpdump and clang"]
fn everything_that_is_put_on_the_way_is_listed_by_name() {
    let scratch = Scratch::new();
    // 3,000 instructions in each program take more time than the samples could miss.
    let with_profile = lists(&scratch, "\n[collect]\nprofile = \"1 s\"\n", &["--quick"]);
    let (plain, profiled) = (&with_profile["plain"], &with_profile["programs"]);
    assert!(plain.profiled && profiled.profiled, "{profiled:#?}");
    let others = plain.entries.iter();
    let others = others.filter(|entry| entry.kind != Met::Tracing);
    assert_eq!(others.count(), 0, "{plain:#?}");
    for name in ["tc program look", "XDP program pass"] {
        let entry = profiled
            .entries
            .iter()
            .find(|entry| entry.name.starts_with(name))
            .unwrap();
        assert!(
            entry.share > Some(0.0) && entry.error > Some(0.0),
            "{entry:?}"
        );
    }
    let lists = lists(&scratch, "", &[]);
    for (variant, put_in) in PUT_IN {
        let list = &lists[variant];
        // Tracing is the whole machine's: it is in force for all variants while one has it.
        let found: Vec<_> = list
            .entries
            .iter()
            .filter(|entry| entry.kind != Met::Tracing || variant == "events")
            .collect();
        for (kind, name, place) in put_in {
            let is = |entry: &&&linerate_measure::record::PathEntry| {
                entry.kind == *kind
                    && entry.name.starts_with(name)
                    && entry.place.starts_with(place)
            };
            assert!(
                found.iter().any(|entry| is(&entry)),
                "{variant}: {name}: {list:#?}"
            );
        }
        assert_eq!(found.len(), put_in.len(), "{variant}: {list:#?}");
        assert!(
            !list.profiled && list.ways.iter().any(|way| way.starts_with("to 198.19.")),
            "{list:#?}"
        );
    }
    let others = lists["plain"]
        .entries
        .iter()
        .filter(|entry| entry.kind != Met::Tracing);
    assert_eq!(others.count(), 0, "{:#?}", lists["plain"]);
    let short = explained(&scratch, &[]);
    assert!(
        short.lines().count() <= 40 && short.contains("\nOn this path\n"),
        "{short}"
    );
    let full = explained(&scratch, &["--full"]);
    let line = |said: &str| {
        full.lines()
            .any(|line| line.starts_with("- ") && line.contains(said))
    };
    assert!(line("htb, 1 class, out"), "{full}");
    // The list is made of the DUT's own answers, which are the only place of addresses in records.
    let summary = fs::read_to_string(scratch.file("records/summary.json")).unwrap();
    assert!(!summary.contains("\"path\""), "{summary}");
}

/// Tracing that another program of the machine has begun would be on the list as well.
#[test]
#[ignore = "needs root"]
fn alone_plain_forwarding_has_nothing_on_its_path() {
    let campaign = Bench::new("--family 4 --trials 6 --variant forwarding").run_beside();
    let json = linerate(["explain", campaign.path(), "--json"]).run();
    let explained = json.ok().json();
    for explained in explained.as_array().unwrap() {
        let path = &explained["path"];
        assert_eq!(path["entries"], serde_json::json!([]), "{path:#}");
        assert_eq!(path["profiled"], false, "{path:#}");
    }
    let page = linerate(["explain", campaign.path()]).run().ok().stdout;
    assert!(page.contains("nothing beyond plain routing\n"), "{page}");
    assert!(page.lines().count() <= 40, "{page}");
}
