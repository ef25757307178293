use super::*;
use linerate_measure::record::RuleCount;

const ROUTER: &str = r#"#!/usr/sbin/nft -f
flush ruleset
define wan = "eth0"
define lan_net = 192.168.1.0/24   # eth1
table inet fw {
  set bogons { type ipv4_addr; flags interval
    elements = { 192.0.2.0/24, 198.18.0.0/15 } }
  chain forward {
    type filter hook forward priority filter; policy drop;
    ct state established,related counter accept
    iifname $wan ip saddr @bogons drop
    iifname "eth1" oifname $wan ip saddr $lan_net accept comment "eth1 to eth0"
    iifname eth10 drop
  }
  chain eth1 { oifname { $wan } ip saddr $lan_net masquerade }
}
"#;

fn ends() -> [LabEnd; 2] {
    let end = |interface: &str, network: &str, address: &str| LabEnd {
        interface: interface.into(),
        networks: vec![network.into()],
        addresses: vec![address.into()],
    };
    [
        end("in3", "198.18.0.0/16", "198.18.0.1"),
        end("out3", "198.19.0.0/16", "198.19.0.1"),
    ]
}

fn map<const N: usize>(pairs: [(&str, Meaning); N]) -> BTreeMap<String, Meaning> {
    pairs
        .into_iter()
        .map(|(name, meaning)| (name.to_string(), meaning))
        .collect()
}

fn read(text: &str) -> Result<RuleFile, Diagnostic> {
    RuleFile::read("f", text, None, &BTreeMap::new())
}

#[test]
fn names_are_exchanged_by_the_word_and_lines_stay() {
    let given = map([("eth0", Meaning::Out), ("eth1", Meaning::In)]);
    let file = RuleFile::read("f", ROUTER, None, &given).unwrap();
    let mapped = file.mapped(&ends());
    assert_eq!(mapped.lines().count(), ROUTER.lines().count());
    for line in [
        "define wan = \"out3\"",
        "define lan_net = 198.18.0.0/16   # eth1",
        "    elements = { 192.0.2.0/24, 198.20.0.0/15 } }",
        "    iifname \"in3\" oifname $wan ip saddr $lan_net accept comment \"eth1 to eth0\"",
        "    iifname eth10 drop",
        "  chain eth1 { oifname { $wan } ip saddr $lan_net masquerade }",
    ] {
        assert!(mapped.lines().any(|l| l == line), "{line}\n{mapped}");
    }
    assert_eq!(
        file.guessed.keys().collect::<Vec<_>>(),
        ["192.168.1.0/24", "198.18.0.0/15"]
    );
    assert!(file.tracks() && file.counts());
    assert_eq!(
        file.in_its_words(
            "fw forward: iifname \"in3\" ip saddr 198.18.0.0/16 counter",
            &ends()
        ),
        "fw forward: iifname \"eth1\" ip saddr 192.168.1.0/24 counter"
    );
}

#[test]
fn two_interfaces_are_guessed_and_more_are_asked_for() {
    let two = read(&ROUTER.replace("iifname eth10 drop", "")).unwrap();
    assert_eq!(
        (two.map["eth0"], two.map["eth1"]),
        (Meaning::Out, Meaning::In)
    );
    assert!(
        two.notes()[0].contains("eth0 is 'out' (a guess: translated frames leave by eth0); eth1 is 'in' (a guess: it is the only other interface)"),
        "{:?}",
        two.notes()
    );
    let three = read(ROUTER).unwrap_err();
    assert!(
        three
            .remedy
            .as_ref()
            .unwrap()
            .contains("eth0, eth1 and eth10")
            && three.remedy.as_ref().unwrap().contains("to \"in\""),
        "{three:?}"
    );
    let iptables = "*filter\n-A FORWARD -i br-lan -o ppp0 -s 10.1.0.0/16 -j ACCEPT\n-A FORWARD -i ppp0 -j DROP\nCOMMIT\n";
    let file = read(iptables).unwrap();
    assert_eq!(
        file.map,
        map([
            ("br-lan", Meaning::In),
            ("ppp0", Meaning::Out),
            ("10.1.0.0/16", Meaning::In)
        ])
    );
    assert!(!file.tracks());
    assert!(
        file.mapped(&ends())
            .contains("-A FORWARD -i in3 -o out3 -s 198.18.0.0/16 -j ACCEPT\n")
    );
    let neither = read("table ip t { chain c { iifname a drop; iifname b drop; } }").unwrap();
    assert!(neither.notes()[0].contains("a is 'in' (a guess: in the order of the file)"));
    assert!(neither.notes()[1].contains("no rule has a counter"));
}

#[test]
fn one_given_interface_of_two_gives_the_other() {
    let given = map([("eth1", Meaning::Out)]);
    let text = ROUTER.replace("iifname eth10 drop", "");
    let file = RuleFile::read("f", &text, None, &given).unwrap();
    assert_eq!(file.map["eth0"], Meaning::In);
}

#[test]
fn a_map_must_fit_the_file() {
    let wrong = |name: &str, meaning| {
        RuleFile::read("f", ROUTER, None, &map([(name, meaning)])).unwrap_err()
    };
    assert!(
        wrong("eht0", Meaning::In)
            .message
            .contains("names no 'eht0'")
    );
    assert!(
        wrong("10.0.0.0/8", Meaning::In)
            .message
            .contains("names no '10.0.0.0/8'")
    );
    assert!(
        wrong("eth10", Meaning::Elsewhere)
            .message
            .contains("only a network")
    );
    assert!(
        wrong("eth10", Meaning::In)
            .remedy
            .unwrap()
            .contains("eth0, eth1 and eth10")
    );
}

#[test]
fn a_file_for_the_test_networks_is_left_alone() {
    let file = read(
        "table ip t { chain c { ip saddr 192.168.1.0/24 accept; ip saddr 198.18.0.0/15 accept; } }",
    )
    .unwrap();
    assert!(file.map.is_empty() && file.mapped(&ends()) == file.text);
}

#[test]
fn what_reaches_beyond_the_file_is_refused() {
    let line = |text: &str| read(text).unwrap_err();
    assert_eq!(
        line("table ip t {\n}\ninclude \"/etc/shadow\"\n")
            .place
            .map(|p| p.line),
        Some(3)
    );
    assert_eq!(
        line("table ip t {\n chain c { drop; } # include\n include \"x\" }")
            .place
            .map(|p| p.line),
        Some(3)
    );
    assert!(read("table ip t { # include\n set s { comment \"include\"; } }").is_ok());
    for option in [
        "--modprobe=/tmp/x",
        "--modp /tmp/x",
        "-M /tmp/x",
        "-vM/tmp/x",
    ] {
        let wrong = line(&format!("*filter\n-A FORWARD {option} -j ACCEPT\nCOMMIT\n"));
        assert!(
            wrong.place.is_some_and(|p| p.line == 2)
                && wrong.message.contains("would run a program"),
            "{option}"
        );
    }
    assert!(read("*filter\n-A FORWARD -m mark --mark 1 -j ACCEPT\nCOMMIT\n").is_ok());
    assert!(
        line("table ip t {\n comment \"\n")
            .message
            .contains("quote")
    );
    assert!(line("\0").message.contains("not text"));
}

#[test]
fn the_firewall_is_recognised() {
    let of = |text: &str| read(text).map(|f| f.firewall);
    for text in [
        "table ip t {}",
        "add table ip t",
        "flush ruleset",
        "#!/usr/sbin/nft -f\n",
        "define x = 1\n",
    ] {
        assert_eq!(of(text), Ok(Firewall::Nftables), "{text}");
    }
    for text in [
        "ext_if = \"em0\"\n",
        "set skip on lo0",
        "block in all\n",
        "table <t> { 10.0.0.0/8 }",
        "nat on em0 from any to any -> (em0)",
    ] {
        assert_eq!(of(text), Ok(Firewall::Pf), "{text}");
    }
    for text in [
        "add 100 allow ip from any to any",
        "#!/bin/sh\nfw=\"/sbin/ipfw -q\"\n$fw add 1 allow ip from any to any",
        "-f flush",
        "table 1 create\n",
    ] {
        assert_eq!(of(text), Ok(Firewall::Ipfw), "{text}");
    }
    assert_eq!(of("# Generated\n*nat\nCOMMIT\n"), Ok(Firewall::Iptables));
    assert!(
        of("#!/bin/sh\niptables -A FORWARD -j DROP\n")
            .unwrap_err()
            .remedy
            .unwrap()
            .contains("iptables-save > FILE")
    );
    assert!(
        of("\n# nothing\n")
            .unwrap_err()
            .message
            .contains("no rules")
    );
    assert!(
        of("hello world")
            .unwrap_err()
            .remedy
            .unwrap()
            .contains("tool =")
    );
}

#[test]
fn pf_and_ipfw_have_their_interfaces_in_variables() {
    let pf = read("ext_if = \"em0\"\nint_if=\"em1\"\nlan = \"192.168.5.0/24\"\nmatch out on $ext_if from $lan nat-to ($ext_if)\npass in on $int_if from $int_if:network\n").unwrap();
    assert_eq!(
        (pf.map["em0"], pf.map["em1"], pf.map["192.168.5.0/24"]),
        (Meaning::Out, Meaning::In, Meaning::In)
    );
    assert!(
        pf.mapped(&ends())
            .starts_with("ext_if = \"out3\"\nint_if=\"in3\"\nlan = \"198.18.0.0/16\"\n")
    );
    let ipfw = read("#!/bin/sh\noif=\"em0\"\niif=em1\nipfw -q add 10 allow ip from any to any out xmit ${oif} keep-state\nipfw -q add 20 allow ip from any to any via $iif\n").unwrap();
    assert_eq!(ipfw.map.len(), 2);
    assert!(ipfw.tracks() && ipfw.mapped(&ends()).contains("oif=\"") && ipfw.program().0 == "sh");
    assert_eq!(
        read("add 100 allow ip from any to any\n")
            .unwrap()
            .program()
            .0,
        "ipfw"
    );
}

#[test]
fn an_endless_line_is_read_in_no_time() {
    for part in [
        "iif a oif b ",
        "a:",
        "set a { ",
        "define a = { $a $a } ",
        "saddr 10.0.0.0/8 accept ",
        "! \"",
    ] {
        let _ = RuleFile::read(
            "f",
            &part.repeat((MOST_BYTES >> 4) / part.len()),
            Some(Firewall::Nftables),
            &BTreeMap::new(),
        );
    }
}

#[test]
fn counters_of_a_listing() {
    let nft = "table inet fw {\n\tcounter seen {\n\t\tpackets 7 bytes 420\n\t}\n\tset s {\n\t\ttype ipv4_addr\n\t}\n\tchain forward {\n\t\ttype filter hook forward priority filter; policy drop;\n\t\tct state established counter packets 5 bytes 300 accept\n\t\tip saddr { 10.0.0.0/8,\n\t\t\t 172.16.0.0/12 } counter packets 2 bytes 9\n\t\tdrop\n\t}\n}\n";
    let all = counts(Firewall::Nftables, nft);
    let shown: Vec<(&str, u64)> = all.iter().map(|c| (c.rule.as_str(), c.frames)).collect();
    assert_eq!(
        shown,
        [
            ("inet fw: counter seen", 7),
            ("inet fw forward: ct state established counter accept", 5),
            (
                "inet fw forward: ip saddr { 10.0.0.0/8, 172.16.0.0/12 } counter",
                2
            ),
        ]
    );
    let later = counts(Firewall::Nftables, &nft.replace("packets 5", "packets 9"));
    assert_eq!(
        grown(&all, &later),
        [RuleCount {
            rule: shown[1].0.into(),
            frames: 4
        }]
    );
    assert_eq!(grown(&all[1..], &later), []);
    let save = "*filter\n:FORWARD DROP [7:420]\n:USER - [0:0]\n[5:300] -A FORWARD -i in0 -j ACCEPT\nCOMMIT\n";
    let all: Vec<(String, u64)> = counts(Firewall::Iptables, save)
        .into_iter()
        .map(|c| (c.rule, c.frames))
        .collect();
    assert_eq!(
        all,
        [
            ("filter: policy of FORWARD, DROP".into(), 7),
            ("filter: -A FORWARD -i in0 -j ACCEPT".into(), 5)
        ]
    );
}

#[test]
fn tools_are_quoted_with_the_file_s_name() {
    assert_eq!(
        told_of("a.nft", "/dev/stdin:3:1-4: Error: syntax error"),
        "a.nft:3:1-4: Error: syntax error"
    );
    assert_eq!(
        told_of("pf.conf", "stdin:3: syntax error"),
        "pf.conf:3: syntax error"
    );
    assert_eq!(told_of("f", "Error occurred at line: 12"), "f, line 12");
}
