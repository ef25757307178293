//! All faults, each with its message and place.

use super::{Diagnostic, Plan, plan};

/// The fault that a plan must have, found by a part of its message.
fn fault(lines: &str, says: &str) -> Diagnostic {
    let faults = plan(lines).expect_err(lines);
    let found = faults.iter().find(|f| f.message.contains(says));
    found
        .unwrap_or_else(|| panic!("no fault says '{says}':\n{lines}\n{faults:#?}"))
        .clone()
}

/// Lines, a part of the message, and a part of the help.
#[rustfmt::skip]
const BAD: [(&str, &str, &str); 110] = [
    // Names.
    ("[variants.a]\nabout = \"x\"\nrulse = 1", "[variants.a] has no key 'rulse'", "did you mean 'rules'?"),
    ("flows = 5\n[variants.a]", "a plan has no key 'flows'", "it belongs in [traffic]"),
    ("[variants.a]\n[traffic]\nqueues = 1", "has no key 'queues'", "it belongs in [variants.NAME.interface]"),
    ("[variants.a]\nfrom = \"b\"", "there is no variant 'b'", "there are a"),
    ("[variants.forward]\n[variants.b]\nfrom = \"forwrad\"", "there is no variant 'forwrad'", "did you mean \"forward\"?"),
    ("[variants.nft-statefull]\nfrom = \"nft-statefull\"", "there is no variant 'nft-statefull'", "did you mean \"nft-stateful\"?"),
    ("[variants.a]\nfrom = \"nft-statefull\"", "there is no variant 'nft-statefull'", "did you mean \"nft-stateful\"?"),
    ("[variants.a]\n[compare]\nwith = \"c\"", "there is no variant 'c'", "there are a"),
    ("[variants.tester-baseline]", "'tester-baseline' is the tester", "dut = \"tester-baseline\""),
    ("[variants.a]\n[variants.a]", "duplicate", "a name can be given once"),
    ("[variants]", "at least one variant", "[variants.forwarding]"),
    ("[variants.\"\"]", "a name must not be empty", "letters"),
    // Circles.
    ("[variants.a]\nfrom = \"b\"\n[variants.b]\nfrom = \"c\"\n[variants.c]\nfrom = \"a\"", "a from b from c from a", "one of them"),
    ("[variants.a]\nfrom = \"a\"", "a from a", "one of them"),
    // Units and types.
    ("[variants.a]\n[traffic]\nsize = \"64\"", "64 of what?", "\"64 B\""),
    ("[variants.a]\n[traffic]\nsize = \"63 B\"", "63 B is not a frame length", ""),
    ("[variants.a]\n[traffic]\nrate = \"500k\"", "500k of what?", "500kpps"),
    ("[variants.a]\n[traffic]\nrate = \"10 Gbit/s\"", "which bits", ":l1"),
    ("[variants.a]\n[traffic]\nrate = \"500 kpbs\"", "is not a rate", "\"500 kpps\""),
    ("[variants.a]\n[traffic]\nflows = \"2000\"", "the text \"2000\" does not belong here", "2000 without quotes"),
    ("[variants.a]\n[traffic]\nflows = 0", "0 is too few", "from 1 to 5000000"),
    ("[variants.a]\n[traffic]\nflows = 2.5", "the number 2.5 does not belong", "whole number"),
    ("[variants.a]\n[traffic]\nflows = 99999999999999999999999999999999999999999", "far too large", ""),
    ("[variants.a]\n[traffic]\nfamily = \"ipv5\"", "is not one of", "did you mean \"IPv4\"?"),
    ("[variants.a]\ninterface.mtu = 9000", "9000 of what?", "\"9000 B\""),
    ("[variants.a]\ninterface.gro = \"off\"", "does not belong here", "true or false"),
    ("[variants.a]\nmodules = \"x\"", "a list is wanted", "brackets"),
    ("[variants.a]\nmodules = []", "this list is empty", "leave the key out"),
    ("[variants.a]\nsysctls = 5", "'variants.a.sysctls' does not take an integer", "kernel settings by name"),
    ("[variants.a]\ncpus = \"two\"", "does not belong", "number of CPUs, or \"all\""),
    ("[variants.a]\nabout = 1979-05-27", "dates and times", "quotes"),
    ("[variants.a]\nabout = \"x", "invalid basic string", "close the quotes"),
    ("[variants.a]\ndut = \"brigde\"", "not a kind of DUT", "did you mean \"bridge\"?"),
    // Things that do not go together.
    ("[variants.a]\n[traffic]\ndirection = \"reverse\"", "is not one of", "forward"),
    ("lab = { file = \"x\" }\ntraffic.direction = \"both\"\n[variants.a]\nrules = { tool = \"nftables\", filter = \"stateful\" }\nstates = \"new\"", "on hosts a frame does not wait", "established"),
    ("traffic = { direction = \"both\", transport = \"TCP\" }\n[variants.a]", "both directions need UDP", "transport = \"UDP\""),
    ("lab.port = \"af-xdp\"\ntraffic.direction = \"both\"\n[variants.a]", "at one interface", "af-packet"),
    ("traffic.direction = \"both\"\n[variants.a]\nrules = { tool = \"nftables\", filter = \"stateful\" }\nstates = \"one-way\"", "cannot stay one-way", "established"),
    ("traffic.direction = \"both\"\n[variants.a]\nfrom = \"nat\"", "translated addresses", "forward"),
    ("lab.mode = \"end-hosts\"\ntraffic.direction = \"both\"\n[variants.a]", "cannot have this direction", "end hosts"),
    ("traffic.burst = 64\n[variants.a]", "bursts at the rate \"max\"", "rate ="),
    ("lab.mode = \"end-hosts\"\ntraffic.burst = 64\n[variants.a]", "cannot have this burst", "end hosts"),
    ("traffic.ipv6-share = \"10 %\"\n[variants.a]\nrules = { tool = \"nftables\", filter = \"stateful\" }", "through connection tracking", "leave it out for stateful"),
    ("traffic.open = 0\n[variants.a]", "at least 1", ""),
    ("traffic = { open = 3000000, servers = 2 }\n[variants.a]", "2 servers make 2,097,152 pairs", "more servers"),
    ("traffic = { open = 10, servers = 3 }\n[variants.a]", "spread among 3 servers", "1, 2, 4, 8 or 16"),
    ("traffic = { open = 10, connections = \"rst\" }\n[variants.a]", "of the kind request", "leave it out"),
    ("traffic.open = 10\n[variants.a]\ndut = \"known-loss=9@fin\"", "closed one by one", "known-loss=N"),
    ("traffic = { open = 10, flows = 7 }\n[variants.a]", "cannot have this flows", "docs/connections.md"),
    ("traffic.flood = \"1 kpps\"\n[variants.a]", "a flood comes with connections only", "leave flood out"),
    ("traffic = { connections = \"udp\", flood = \"1 kpps\" }\n[variants.a]", "connections of TCP that are closed one by one", "leave flood out, or use connections = \"request\""),
    ("traffic = { connections = \"request\", flood = \"1 pps\" }\n[variants.a]", "a flood of 1 SYN/s has", "pps or more, or a longer duration"),
    ("traffic = { open = 10, flood = \"1 kpps\" }\n[variants.a]", "connections of TCP that are closed one by one", "leave flood out"),
    ("traffic = { connections = \"request\", flood = \"51 Mpps\" }\n[variants.a]", "write \"none\", or 1 pps to 50 Mpps", ""),
    ("traffic = { connections = \"request\", object = 1441 }\n[variants.a]", "an answer of 1441 bytes does not fit a segment", "write 1440 or less, or use http = \"close\""),
    ("traffic = { http = \"close\", object = 67108865 }\n[variants.a]", "67108865 is too many", "67108864"),
    ("traffic = { http = \"close\", size = \"128 B\" }\n[variants.a]", "HTTP cannot have this size", "as fast as they are answered"),
    ("traffic = { http = \"close\", flows = 10001 }\n[variants.a]", "HTTP cannot have this flows", "1 to 10,000 connections"),
    ("traffic = { http = \"close\", rate = \"1 kpps\" }\n[variants.a]", "HTTP cannot have this rate", "as fast as they are answered"),
    ("traffic = { http = \"close\", family = \"IPv6\" }\n[variants.a]", "HTTP cannot have this family", "IPv4"),
    ("traffic.http = \"close\"\n[variants.a]", "wrk runs for whole seconds", "duration = \"1 s\""),
    ("traffic.http = \"close\"\nlab.file = \"x\"\n[variants.a]", "in the embedded lab only", "leave out `file`"),
    ("traffic.servers = 2\n[variants.a]", "only connections have servers", "leave servers out"),
    ("traffic.addresses = \"any\"\n[variants.a]", "choice of ports or addresses", ""),
    ("traffic.ipv6-share = \"100 %\"\n[variants.a]", "below 100 %", ""),
    ("traffic = { ipv6-share = \"10 %\", transport = \"TCP\" }\n[variants.a]", "IPv4 UDP frames", ""),
    ("traffic.extension-headers = \"chain\"\n[variants.a]", "in IPv6 UDP frames", ""),
    ("traffic.extension-headers = \"esp\"\n[variants.a]", "is not one of", ""),
    ("traffic = { flows = 10, networks = 256 }\n[variants.a]", "10 flows cannot go to 256 networks", "flows = 256"),
    ("traffic = { burst = 1, rate = \"1 kpps\" }\n[variants.a]", "a burst needs two frames", "2 or more"),
    ("[variants.a]\nevent.what = \"reboot\"", "reboot: this machine would go down", "lab file"),
    ("[variants.a]\nevent.what = \"power-off\"", "power-off: this machine would go down", "lab file"),
    ("[variants.a]\nrules = { before = 5 }", "lacks tool and filter", "nftables"),
    ("[variants.a]\nrules = { tool = \"pf\", filter = \"stateless\" }", "Linux has no pf", "nftables or iptables"),
    ("[variants.a]\nrules = { tool = \"nftables\", filter = \"stateless\", states = 5 }", "keeps no states", "stateful"),
    ("[variants.a]\nrules = { tool = \"nftables\", filter = \"stateful\", hash = \"sized\" }", "for a number of states", "states = "),
    ("lab = { file = \"x\", systems = [\"freebsd\"] }\n[variants.a]\nrules = { tool = \"ipf\", filter = \"stateless\", table = 5 }", "ipf has no tables", "pf or ipfw"),
    ("lab = { file = \"x\", systems = [\"freebsd\"] }\ntraffic.family = \"IPv6\"\n[variants.a]\nrules = { tool = \"ipfw\", filter = \"nat\" }", "translates IPv4 only", "IPv4"),
    ("[variants.a]\nrules = { tool = \"nftables\", filter = \"stateless\", optimize = false }", "only pf makes tables", ""),
    ("[variants.a]\nboot = { x = 1 }", "cannot reboot", "lab.toml"),
    ("[variants.a]\nimage = { file = \"x\", install = \"upgrade\", undo = \"true\" }", "cannot reboot", "lab.toml"),
    ("lab = { file = \"x\" }\n[variants.a]\nimage = { file = \"x\", install = \"upgrade\", undo = \"true\" }", "an image needs reboots", "when-needed"),
    ("lab = { file = \"x\" }\n[variants.a]\nimage = { file = \"x\", undo = \" \" }", "the image lacks install and undo", "xzcat"),
    ("lab = { file = \"x\" }\n[variants.a]\nimage = { file = \"x\", install = \"dd of=/dev/{disk}\", undo = \"true\" }", "no placeholder {disk}", "{in}"),
    ("[variants.a]\ninterface.rx-ring = 512", "cannot be set on a veth", "lab.toml"),
    ("[variants.a]\ninterface.irq = \"1\"", "threaded-napi", ""),
    ("[variants.a]\ndut = \"bridge\"\nroutes.count = 5", "it has no routes", ""),
    ("[variants.a]\nroutes.explicit = [{ to = \"10.0.0.0/8\", via = \"2001:2::1\" }]", "other IP version", ""),
    ("[variants.a]\ndut = \"tester-baseline\"\nroutes.count = 5", "nothing to set routes of", "leave it out"),
    ("[variants.a]\ncommands = [{ run = \"true\" }]", "how this command is undone", "undo = "),
    ("[variants.a]\ncommands = [{ run = \"ifconfig {inside} up\", undo = \"true\" }]", "no placeholder {inside}", "{in}"),
    ("[variants.a]\nfiles = [{ path = \"/etc/x\", text = \"\" }]", "no files of this host", ""),
    ("[variants.a]\nsysctls = { \"../x\" = 1 }", "not a valid name of a kernel setting", ""),
    ("lab.dut-cpus = \"1\"\n[variants.a]", "inline", "threaded"),
    ("lab.systems = [\"openbsd\"]\n[variants.a]", "the embedded lab is Linux", "lab.toml"),
    ("lab = { file = \"x\", mode = \"inline\" }\n[variants.a]", "for the embedded lab alone", ""),
    ("lab = { file = \"x\", systems = [\"openbsd\"] }\n[variants.a]\ninterface.rps = \"0\"", "OpenBSD have no rps", "mtu and lro"),
    // Rates that cannot be reached.
    ("[variants.a]\n[traffic]\nrate = \"1 Gpps\"", "1,000,000,000 frames/s", "lower rate"),
    ("[variants.a]\n[traffic]\nrate = \"50 %\"", "needs a link speed", "link-speed"),
    ("lab.link-speed = \"10 Gbit/s\"\n[variants.a]\n[traffic]\nrate = \"15 Mpps\"", "a link of 10 Gbit/s carries: 14,880,952", "ask for less"),
    ("[variants.a]\ninterface.mtu = \"1500 B\"\n[traffic]\nsize = \"9018 B\"", "do not fit an MTU of 1500", "interface.mtu = \"9000 B\""),
    // Factors.
    ("[variants.a]\n[factors.f]\nsets = \"rule.before\"\nlevels = [1]", "no field 'rule.before'", "\"rules.before\""),
    ("[variants.a]\n[factors.f]\nsets = \"interface\"\nlevels = [1]", "is a table", "interface.mtu"),
    ("[variants.a]\n[factors.f]\nsets = \"traffic.size\"\nlevels = [64]", "traffic.size: 64 of what?", "\"64 B\""),
    ("[variants.a]\n[factors.f]\nsets = \"traffic.flows\"\nlevels = [5, 5]", "the level 5 is there twice", "apart"),
    ("[variants.a]\n[factors.f]\nsets = \"traffic.flows\"\nlevels = []", "1 to 1000 levels", ""),
    ("[variants.a]\n[factors.f]\nsets = \"rules.before\"\nlevels = [5]", "the rule set of 'a' lacks", "variants = [...]"),
    ("[variants.a]\n[factors.f]\nsets = \"traffic.flows\"\nlevels = [5]\n[factors.g]\nsets = \"traffic.flows\"\nlevels = [6]", "the factor 'f' sets traffic.flows already", ""),
    ("[variants.a]\n[factors.variant]\nsets = \"traffic.flows\"\nlevels = [5]", "'variant' names the variants", ""),
    ("[variants.a]\n[quick]\nlevels.x = [1]", "there is no factor 'x'", "no factors"),
];

#[test]
fn each_fault_is_found_and_says_what_to_do() {
    for (lines, says, help) in BAD {
        let fault = fault(lines, says);
        let told = fault.remedy.clone().unwrap_or_default();
        assert!(
            told.contains(help),
            "{lines}\nhelp is '{told}', without '{help}'"
        );
        assert!(
            fault.place.unwrap().line >= 1
                && fault.place.unwrap().column >= 1
                && fault.place.unwrap().width >= 1
        );
    }
}

/// Faults of expectations.
#[test]
fn expectations_that_cannot_be_judged() {
    let with = |expect: &str| {
        let start = "[variants.a]\n[variants.b]\ndut = \"bridge\"\n[factors.f]\nsets = \"traffic.flows\"\nlevels = [1, 10]\n";
        format!("{start}[[expect]]\nbecause = \"w\"\n{expect}")
    };
    for (expect, says, help) in [
        (
            "of = \"c\"\nis = \"slower\"\nthan = \"a\"",
            "there is no variant 'c'",
            "there are a and b",
        ),
        (
            "of = { f = 11 }\nis = \"slower\"\nthan = { f = 1 }",
            "'f' has no level 11",
            "there are 1 and 10",
        ),
        (
            "of = { g = 1 }\nis = \"slower\"\nthan = { f = 1 }",
            "there is no factor 'g'",
            "a factor: f",
        ),
        (
            "of = \"a\"\nis = \"slower\"",
            "'slower' needs than",
            "than = ",
        ),
        (
            "of = \"a\"\nis = \"same\"\nthan = \"b\"",
            "'same' needs within",
            "15 %",
        ),
        (
            "of = \"a\"\nis = \"at-least\"",
            "'at-least' needs rate",
            "kpps",
        ),
        (
            "of = \"a\"\nis = \"at-least\"\nrate = \"max\"",
            "one of frames",
            "kpps",
        ),
        (
            "of = \"a\"\nis = \"faster\"\nthan = \"b\"\nrate = \"1 kpps\"",
            "'faster' does not take rate",
            "than and by",
        ),
        (
            "of = \"a\"\nis = \"slower\"\nthan = \"b\"\nby = \"100 %\"",
            "100 % or more",
            "below",
        ),
        (
            "of = \"a\"\nis = \"slower\"\nthan = \"a\"",
            "no two cells",
            "differ",
        ),
        (
            "of = \"a\"\nis = \"slow\"\nthan = \"b\"",
            "is not one of",
            "\"slower\"",
        ),
        (
            "of = 5\nis = \"slower\"\nthan = \"b\"",
            "names no cells",
            "variant",
        ),
        (
            "of = { f = [1, 10] }\nis = \"slower\"\nthan = \"b\"",
            "one level",
            "another",
        ),
    ] {
        let lines = with(expect);
        let fault = fault(&lines, says);
        assert!(
            fault.remedy.as_ref().is_some_and(|h| h.contains(help)),
            "{expect}: {fault:?}"
        );
    }
}

#[test]
fn plans_that_would_never_end_are_refused_with_their_number() {
    let factor = |name: &str, path: &str| {
        let levels: Vec<String> = (1..=1000).map(|n| n.to_string()).collect();
        format!(
            "[factors.{name}]\nsets = \"{path}\"\nlevels = [{}]\n",
            levels.join(", ")
        )
    };
    let lines = format!(
        "[variants.a]\nrules = {{ tool = \"nftables\", filter = \"stateless\" }}\n{}{}{}{}",
        factor("flows", "traffic.flows"),
        factor("rules", "rules.before"),
        factor("table", "rules.table"),
        factor("routes", "routes.count")
    );
    let fault = fault(&lines, "1,000,000,000,000 cells");
    assert!(
        fault.message.contains("1000 of flows x 1000 of rules")
            && fault.message.contains("at most 4,096")
    );
    let long = "title = \"t\"\nquestion = \"q\"\n[variants.a]\n[trials]\nduration = \"1 s\"\nblocks = 1000000\n[factors.f]\nsets = \"traffic.flows\"\nlevels = [1, 2, 3, 4, 5, 6]";
    let faults = Plan::read(long.as_bytes()).unwrap_err();
    assert!(
        faults[0]
            .message
            .contains("6,000,000 trials (6 cells x 1,000,000 blocks)"),
        "{faults:#?}"
    );
    let faults = Plan::read(
        long.replace("1 s", "10 h")
            .replace("1000000", "1000")
            .as_bytes(),
    )
    .unwrap_err();
    assert!(
        faults[0].message.contains("days, a year at most"),
        "{faults:#?}"
    );
}

#[test]
fn a_budget_must_hold_a_block() {
    let text = "title = \"t\"\nquestion = \"q\"\n[variants.a]\n[trials]\nduration = \"10 s\"\nbudget = \"5 s\"";
    let faults = Plan::read(text.as_bytes()).unwrap_err();
    assert!(
        faults[0].message.contains("more than the budget of 5 s")
            && faults[0].place.unwrap().line == 6,
        "{faults:#?}"
    );
    let text = "title = \"t\"\nquestion = \"q\"\n[variants.a]\n[trials]\nduration = \"10 s\"";
    let faults = Plan::read(text.as_bytes()).unwrap_err();
    assert!(
        faults[0].message.contains("when the trials end"),
        "{faults:#?}"
    );
}

#[test]
fn all_faults_are_told_at_once_in_the_order_of_the_text_and_none_twice() {
    let lines = "[traffic]\nsize = 64\nflows = -1\nrate = \"1 Gbit/s\"\n[variants.a]\nabuot = \"x\"\nfrom = \"b\"\n\
                 [variants.b]\nfrom = \"a\"\nrules = { before = 2 }\n[variants.c]\nfrom = \"b\"";
    let faults = plan(lines).unwrap_err();
    let places: Vec<(usize, usize)> = faults
        .iter()
        .map(|f| (f.place.unwrap().line, f.place.unwrap().column))
        .collect();
    assert_eq!(
        places,
        [(5, 8), (6, 9), (7, 8), (9, 1), (10, 8), (13, 11)],
        "{faults:#?}"
    );
    assert_eq!(faults[0].evidence.as_deref().unwrap(), "size = 64");
    assert_eq!(
        (
            faults[0].place.unwrap().indent,
            faults[0].place.unwrap().width
        ),
        (7, 2)
    );
}

#[test]
fn a_wrong_value_is_not_reported_as_missing_too() {
    let faults =
        plan("[variants.a]\nrules = { tool = \"nft\", filter = \"stateless\" }").unwrap_err();
    assert_eq!(faults.len(), 1, "{faults:#?}");
    let text =
        "title = 5\nquestion = \"q\"\n[variants.a]\n[trials]\nduration = \"5\"\nblocks = \"x\"";
    assert_eq!(Plan::read(text.as_bytes()).unwrap_err().len(), 3);
}

/// Lines before the trials, keys of the trials, and parts of message and help.
#[rustfmt::skip]
const SEARCHES: [(&str, &str, &str, &str); 20] = [
    ("", "blocks = 5\ngoals = [\"ndr\"]", "this key needs measure = \"search\"", "measure = \"search\""),
    ("", "measure = \"search\"", "the load waits for the DUT", "mode = \"threaded\""),
    ("lab.file = \"x\"", "measure = \"search\"", "the highest load is missing", "max-load"),
    ("lab.mode = \"threaded\"", "measure = \"search\"\ngoals = [\"nrd\"]", "'nrd' is not a goal", "ndr"),
    ("lab.mode = \"threaded\"", "measure = \"search\"\ngoals = [\"0.1%:500ms:10s\"]", "has 3 parts, and a goal has four", "EXCEED"),
    ("lab.mode = \"threaded\"", "measure = \"search\"\ngoals = [\"2:1s:21s:0.5\"]", "the loss ratio 2 is not", "LOSS"),
    ("lab.mode = \"threaded\"", "measure = \"search\"\ngoals = [\"0:1s:21s:1.5\"]", "the exceed ratio", "EXCEED"),
    ("lab.mode = \"threaded\"", "measure = \"search\"\ngoals = [\"0:1s:never:0.5\"]", "'never' is not a duration", "SUM"),
    ("lab.mode = \"threaded\"", "measure = \"search\"\ngoals = [\"ndr\", \"rfc2544\"]", "one duration for all goals", ""),
    ("lab.mode = \"threaded\"", "measure = \"search\"\nmin-load = \"2 Mpps\"\nmax-load = \"1 Mpps\"", "below the highest", ""),
    ("lab.mode = \"threaded\"\ntraffic.rate = \"1 kpps\"", "measure = \"search\"", "a search chooses the load", "min-load"),
    ("", "blocks = 5\ntests = [\"latency\"]", "this key needs measure = \"rfc2544\"", "measure = \"rfc2544\""),
    ("lab.mode = \"threaded\"", "measure = \"rfc2544\"\ntests = [\"latenzy\"]", "latenzy", "latency"),
    ("lab.mode = \"threaded\"", "measure = \"rfc2544\"\ntests = [\"reset\"]", "no variant has one", "forwarding-off"),
    ("lab.mode = \"threaded\"", "measure = \"rfc2544\"\ngoals = [\"ndr\"]", "this key needs measure = \"search\"", "search"),
    ("lab.mode = \"threaded\"", "measure = \"rfc2544\"\nblocks = 5", "a search ends by itself", "leave it out"),
    ("", "measure = \"rfc2544\"", "the load waits for the DUT", "threaded"),
    ("lab.mode = \"threaded\"", "measure = \"search\"\nmethod = \"bisection\"\ngoals = [\"ndr\", \"pdr\"]", "one goal, not also for pdr", "goals"),
    ("lab.mode = \"threaded\"", "measure = \"loss-curve\"\nwidth = \"1 %\"", "this key needs measure = \"search\"", "search"),
    ("lab.mode = \"threaded\"", "measure = \"search\"\nblocks = 5", "a search ends by itself", "budget"),
];

#[test]
fn searches_have_faults_of_their_own() {
    for (before, trials, says, helps) in SEARCHES {
        let text = format!(
            "title = \"t\"\nquestion = \"q\"\n{before}\n[variants.a]\n[trials]\nduration = \"100 ms\"\nbudget = \"1 min\"\n{trials}"
        );
        let faults = Plan::read(text.as_bytes()).expect_err(&text);
        let found = faults.iter().find(|fault| fault.message.contains(says));
        let found = found.unwrap_or_else(|| panic!("no fault says '{says}': {faults:#?}"));
        assert!(
            found.remedy.as_deref().unwrap_or_default().contains(helps),
            "{found:#?}"
        );
    }
}
