//! Faults of tests: each with its place and remedy, and all of them at once.

use super::*;

/// The faults of a test as `file:line:column: message (help)`.
fn faults(main: &str, files: &[(&str, &str)]) -> Vec<String> {
    let faults = read_files(main, files).expect_err("there are faults");
    let told = faults.iter().map(|fault| {
        let help = fault.remedy.as_deref().unwrap_or("");
        format!("{} ({help})", fault.head().replace("lab/my-test/", ""))
    });
    told.collect()
}

fn player_faults(player: &str) -> Vec<String> {
    faults(MAIN, &[("p.cfg", player)])
}

/// The only fault of a Run section, without the text before it.
fn run_fault(steps: &str) -> String {
    let all = player_faults(&format!("{MASTER}[Run]\n{steps}{REST}"));
    assert_eq!(all.len(), 1, "{all:?}");
    all[0].clone()
}

fn main_fault(main: &str) -> String {
    let all = faults(main, &[("p.cfg", &format!("{MASTER}[Run]{REST}"))]);
    assert_eq!(all.len(), 1, "{all:?}");
    all[0].clone()
}

#[test]
fn all_at_once() {
    let main = "[Test]\ntrials: many\n[Clients]\na: p.cfg\nb: q.cfg\na: p.cfg\n";
    let player = "[Master]\nplayer:\nconductor: c\ncmdport: 0\n[Startup]\nstep1: a\nstep1: b\n[Run]\ntimeout: x\n[Reset]\n";
    let found = faults(main, &[("p.cfg", player)]);
    let expected = [
        "conductor.cfg:2:9: 'many' is not a number of trials",
        "conductor.cfg:5:4: the player's file q.cfg cannot be read: No such file",
        "conductor.cfg:6:1: 'a' is there twice in [Clients], first on line 4",
        "p.cfg:1:2: [Master] has no 'resultsport'",
        "p.cfg:2:1: '' is not the address of a host",
        "p.cfg:4:10: '0' is not a port",
        "p.cfg:7:1: 'step1' is there twice in [Startup], first on line 6",
        "p.cfg:9:1: timeout: '' is not a number of seconds",
        "p.cfg:11:1: there is no section [Collect]",
    ];
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (found, expected) in found.iter().zip(expected) {
        assert!(found.starts_with(expected), "{found}\n{expected}");
    }
}

#[test]
fn trials_that_are_no_number_of_trials() {
    for (trials, message) in [
        (
            "0",
            "'0' is not a number of trials (write a whole number from 1 to 1000000)",
        ),
        ("-3", "'-3' is not a number of trials"),
        ("1.5", "'1.5' is not a number of trials"),
        ("", "'' is not a number of trials"),
        ("1000001", "'1000001' is not a number of trials"),
        ("99999999999999999999999999", "is not a number of trials"),
    ] {
        let fault = main_fault(&format!("[Test]\ntrials:{trials}\n[Clients]\na: p.cfg\n"));
        assert!(fault.contains(message), "{fault}");
    }
    assert_eq!(
        main_fault("[Test]\ntrails: 5\n[Clients]\na: p.cfg"),
        "conductor.cfg:2:1: [Test] has no key of that name (did you mean 'trials'?)"
    );
}

#[test]
fn sections_that_are_missing_unknown_or_there_twice() {
    let clients = "[Clients]\na: p.cfg\n";
    for (main, message) in [
        (
            clients.to_string(),
            "3:1: there is no section [Test] (add [Test] with `trials: 1`)",
        ),
        (
            "[Test]\n".into(),
            "there is no section [Clients], nor [Workers]",
        ),
        (
            "[Test]\n[Clients]\n".into(),
            "2:2: [Clients] names 0 players",
        ),
        (
            format!("[test]\n{clients}[Test]\n"),
            "1:2: [test] is not a section of this file (did you mean [Test]?)",
        ),
        (
            format!("[Test]\n{clients}[Test]\n"),
            "4:2: [Test] is there twice, first on line 1",
        ),
        (
            format!("[Test]\n{clients}[Workers]\nb: p.cfg\n"),
            "4:2: [Workers] and [Clients] are two words for the same",
        ),
        (
            format!("trials: 1\nx: y\n[Test]\n{clients}"),
            "1:1: this stands before the first section",
        ),
        (
            format!("[Test] trials: 1\n{clients}"),
            "1:8: text behind [Test] is not read",
        ),
        (
            format!("[Test\n[Test]\n{clients}"),
            "1:1: this stands before the first section",
        ),
        (
            format!("{MASTER}[Run]"),
            "this is the file of a player, not of a test",
        ),
    ] {
        let fault = main_fault(&main);
        assert!(fault.contains(message), "{fault}\n{message}");
    }
    let typo = player_faults(&format!("{MASTER}[Rum]\n{REST}"));
    assert!(
        typo.len() == 1 && typo[0].contains("did you mean [Run]?"),
        "{typo:?}"
    );
}

#[test]
fn hosts_and_ports() {
    let with = |key: &str, value: &str| {
        let lines = MASTER.lines().map(|line| match line.split_once(": ") {
            Some((k, _)) if k == key => format!("{key}: {value}\n"),
            _ => format!("{line}\n"),
        });
        player_faults(&format!("{}[Run]{REST}", lines.collect::<String>()))
    };
    for (key, value, message) in [
        (
            "player",
            "  # fill in",
            "'' is not the address of a host (write a name or an address)",
        ),
        ("player", "a b", "'a b' is not the address of a host"),
        (
            "player",
            "-oProxyCommand=reboot",
            "'-oProxyCommand=reboot' is not the address of a host",
        ),
        ("conductor", "a;b", "'a;b' is not the address of a host"),
        (
            "cmdport",
            "65536",
            "'65536' is not a port (write a number from 1 to 65535)",
        ),
        ("resultsport", "http", "'http' is not a port"),
        ("resultsport", "-1", "'-1' is not a port"),
    ] {
        let all = with(key, value);
        assert!(all.len() == 1 && all[0].contains(message), "{all:?}");
    }
    let typo = MASTER.replace("resultsport", "resultport");
    let all = player_faults(&format!("{typo}[Run]{REST}"));
    assert_eq!(
        all,
        ["p.cfg:5:1: [Master] has no 'resultsport' (did you mean 'resultsport'?)"]
    );
}

#[test]
fn formats_of_results() {
    let fault = main_fault("[Test]\nformat: xml\n[Clients]\na: p.cfg\n");
    assert_eq!(
        fault,
        "conductor.cfg:2:9: 'xml' is not a format of results (write text or json)"
    );
}

#[test]
fn steps() {
    for (steps, message) in [
        (
            "step1: a\nStep1: b\n",
            "p.cfg:9:1: 'step1' is there twice in [Run], first on line 8 (give the step a key of its own",
        ),
        (
            "timeout30: a\ntimeout30: b\n",
            "a limit may stand before its command: `step9: timeout30:command`)",
        ),
        ("step1\n", "this is neither `key: value` nor a [section]"),
        (": a\n", "the key is missing"),
        ("step1:\n", "'step1' has no command"),
        (
            "step1: a\n  [Reset]\n",
            "[Reset] is indented, so that it belongs to the value of 'step1' (remove the blanks before it)",
        ),
        ("step1: a\n step2: b\n", "'step2' is indented"),
        (
            "step1: a %(b)s\n",
            "there is no key 'b' in this section or in [DEFAULT]",
        ),
        (
            "step1: a\0b\n",
            "'step1' has no command (write a command without NUL bytes",
        ),
        (
            "timeout40000000: a\n",
            "is not a number of seconds from 1 to 31622400",
        ),
        ("step1: timeout5:timeout6:a\n", "this step has two limits"),
    ] {
        let fault = run_fault(steps);
        assert!(fault.contains(message), "{fault}\n{message}");
    }
}

#[test]
fn files_that_are_no_texts() {
    let bad = |bytes: Vec<u8>| {
        read("m.cfg", &Options::default(), |_| Ok(bytes.clone()))
            .unwrap_err()
            .remove(0)
    };
    let fault = bad(b"[Test]\n\xff".to_vec());
    assert_eq!(
        (fault.place.unwrap().line, fault.message.as_str()),
        (2, "byte 7 is not UTF-8 text")
    );
    assert!(
        bad(vec![b'x'; MOST_BYTES + 1])
            .message
            .contains("at most 1048576 bytes")
    );
    let gone = read("m.cfg", &Options::default(), |_| Err("No such file".into())).unwrap_err();
    assert_eq!(gone[0].message, "cannot be read: No such file");
}

#[test]
fn takes_minutes_a_hostile_test_costs_no_more_than_it_may() {
    // As many players as may be, whose one file is as large as may be.
    let main: String = (0..MOST_WORKERS)
        .map(|n| format!("w{n}: p.cfg\n"))
        .collect();
    let main = format!("[Test]\n[Clients]\n{main}");
    let steps: String = (0..20_000)
        .map(|n| format!("step{n}: {}\n", "x".repeat(30)))
        .collect();
    let player = format!("{MASTER}[Run]\n{steps}{REST}");
    let found = faults(&main, &[("p.cfg", &player)]);
    assert_eq!(found.len(), MOST);
    assert!(
        found[0].contains("the players' files are too much together"),
        "{}",
        found[0]
    );
    assert!(
        found
            .iter()
            .any(|fault| fault.contains("the test's commands are too long together"))
    );
    // The most players, whose common file has the largest size and no entries.
    let player = format!("{MASTER}[Run]\n{REST}{}", "# nothing\n".repeat(100_000));
    let found = faults(&main, &[("p.cfg", &player)]);
    assert!(
        found
            .last()
            .unwrap()
            .contains("the players' files are too much together"),
        "{found:#?}"
    );
    // Nothing but faults.
    assert_eq!(player_faults(&"x\n".repeat(MOST_BYTES / 2)).len(), 6);
    let wrong = format!("[Run]\n{}", "x\n".repeat(MOST_BYTES / 2 - 10));
    assert_eq!(player_faults(&wrong).len(), MOST);
    let sections: String = (0..90_000).map(|n| format!("[s{n}]\n")).collect();
    assert_eq!(player_faults(&sections).len(), 5);
    let many: String = (0..=MOST_WORKERS)
        .map(|n| format!("w{n}: p.cfg\n"))
        .collect();
    assert!(main_fault(&format!("[Test]\n[Clients]\n{many}")).contains("names 1001 players"));
}
