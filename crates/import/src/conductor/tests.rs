//! Tests of Conductor read from texts: the format beyond the published tests, faults, and the cost of hostile texts.

mod faults;

use super::files::name;
use super::*;
use linerate_hosts::phases::{Action, End, Event, Machine, Outcome, Output, Status, StepId};
use linerate_plan::Diagnostic;
use linerate_plan::diagnostic::MOST;
use proptest::prelude::*;

/// A main file for one player, `p.cfg`.
const MAIN: &str = "[Test]\ntrials: 2\n[Clients]\nclient1: p.cfg\n";
const MAIN_PATH: &str = "lab/my-test/conductor.cfg";
/// Sections that each test needs, but this test is not about.
const REST: &str = "\n[Collect]\n[Reset]\n";
const MASTER: &str = "[Master]\nplayer: 192.168.5.151\nconductor: 192.168.5.1\ncmdport: 6970\nresultsport: 6971\n[Startup]\n";

fn read_files(main: &str, files: &[(&str, &str)]) -> Result<Test, Vec<Diagnostic>> {
    read(MAIN_PATH, &Options::default(), |path| {
        let found = files
            .iter()
            .find(|(name, _)| *name == path)
            .map(|(_, text)| *text);
        let text = if path == MAIN_PATH { Some(main) } else { found };
        text.map(|text| text.as_bytes().to_vec())
            .ok_or_else(|| "No such file".to_string())
    })
}

/// The worker of a player's file.
fn worker(player: &str) -> Worker {
    let test = read_files(MAIN, &[("p.cfg", player)]);
    test.unwrap_or_else(|faults| panic!("{player}\n{faults:#?}"))
        .workers
        .remove(0)
}

/// The steps of a Run section.
fn run(steps: &str) -> Vec<(String, String)> {
    let worker = worker(&format!("{MASTER}[Run]\n{steps}{REST}"));
    worker
        .steps(Phase::Run)
        .iter()
        .map(|s| (s.key.clone(), s.command.clone()))
        .collect()
}

fn commands(steps: &str) -> Vec<String> {
    run(steps).into_iter().map(|(_, command)| command).collect()
}

#[test]
fn a_test_of_either_vocabulary() {
    let old = worker(&format!(
        "{MASTER}step1:kldload if_cxgbe \n[Run]\nspawn1: pmcstat\ntimeout35:iperf3 -s\n{REST}"
    ));
    assert_eq!(
        (old.name.as_str(), old.host.as_str(), old.conductor.as_str()),
        ("client1", "192.168.5.151", "192.168.5.1")
    );
    assert_eq!(
        (old.command_port, old.results_port, old.file.as_str()),
        (6970, 6971, "p.cfg")
    );
    let of = |phase: Phase| {
        old.steps(phase)
            .iter()
            .map(|s| (s.command.as_str(), s.mode, s.limit_s, s.line))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        of(Phase::SetUp),
        [("kldload if_cxgbe", Mode::Normal, Some(30), 7)]
    );
    let expected = [
        ("pmcstat", Mode::Spawn, None, 9),
        ("iperf3 -s", Mode::Timeout, Some(35), 10),
    ];
    assert_eq!(of(Phase::Run), expected);

    let main =
        "[Test]\ntrials = 3   # three\nformat: json\n\n[Workers]\nW = sub/w.cfg   ; theirs\n";
    let new = "[Coordinator]\nplayer = 10.0.1.10          # Web server IP\nconductor = c\ncmdport = 6970  # listen\n\
               resultsport =\n  6971\n[Startup]\nstep1 = spawn:vmstat 1 > /tmp/v\n[Run]\nstep1: timeout9:ping x\n[Collect]\n[Reset]\n";
    let test = read_files(main, &[("sub/w.cfg", new)]).unwrap();
    assert_eq!((test.name.as_str(), test.trials), ("my-test", 3));
    let worker = &test.workers[0];
    assert_eq!(
        (
            worker.name.as_str(),
            worker.file.as_str(),
            worker.host.as_str()
        ),
        ("w", "sub/w.cfg", "10.0.1.10")
    );
    assert_eq!(
        (
            worker.steps(Phase::SetUp)[0].mode,
            worker.steps(Phase::Run)[0].limit_s
        ),
        (Mode::Spawn, Some(9))
    );
}

#[test]
fn keys_have_any_case_and_any_name_and_keep_their_order() {
    let keys: Vec<String> = run("step10: a\nStep2= b\nsetp3 :c\nanything at all = d\n")
        .into_iter()
        .map(|s| s.0)
        .collect();
    assert_eq!(keys, ["step10", "step2", "setp3", "anything at all"]);
    // The first = or : ends the key, whatever follows.
    assert_eq!(
        commands("a:sysctl net.inet.ip.forwarding=1\nb=ip -6 a ::1\nc = \"x\" > /tmp/y # z ; w"),
        [
            "sysctl net.inet.ip.forwarding=1",
            "ip -6 a ::1",
            "\"x\" > /tmp/y # z ; w",
        ]
    );
}

#[test]
fn comments_and_continued_lines() {
    let steps = "# a comment\n  ; another\nstep1: for i in 1 2; do\n   # not this\n\n  ping $i\n\tdone  \n\n\nstep2: true\n";
    assert_eq!(
        commands(steps),
        ["for i in 1 2; do\n\nping $i\ndone", "true"]
    );
    // Keys that are all indented alike are keys.
    assert_eq!(commands("  step1: a\n  step2: b\n"), ["a", "b"]);
    // A value that begins on the next line.
    assert_eq!(commands("step1:\n  a\n  b\n"), ["a\nb"]);
}

#[test]
fn line_ends_of_all_systems_and_a_byte_order_mark() {
    let player = format!("{MASTER}[Run]\nstep1: a\nstep2: b\n{REST}");
    let unix = worker(&player);
    assert_eq!(worker(&player.replace('\n', "\r\n")), unix);
    assert_eq!(worker(&format!("\u{feff}{player}")), unix);
    let mac = worker(&player.replace('\n', "\r"));
    assert_eq!(mac.steps(Phase::Run)[1].command, "b");
}

#[test]
fn defaults_belong_to_every_section() {
    let player = "[DEFAULT]\nnic: cxl0\ncmdport: 6970\nresultsport: 6971\nconductor: c\nstep9: date\n\
                  [Master]\nplayer: h\n[Startup]\nstep1: ifconfig %(nic)s up\n[Run]\nstep9: own\n[Collect]\n[Reset]\nstep1: x\n";
    let worker = worker(player);
    let all: Vec<Vec<&str>> = worker
        .phases
        .iter()
        .map(|(_, p)| p.iter().map(|s| s.command.as_str()).collect())
        .collect();
    assert_eq!(
        all,
        [
            vec!["ifconfig cxl0 up", "date"],
            vec!["own"],
            vec!["date"],
            vec!["x", "date"]
        ]
    );
    assert_eq!(
        (worker.command_port, worker.conductor.as_str()),
        (6970, "c")
    );
}

#[test]
fn a_test_without_trials_is_run_once() {
    let test = read_files(
        "[Test]\n[Clients]\na: p.cfg\n",
        &[("p.cfg", &format!("{MASTER}[Run]{REST}"))],
    )
    .unwrap();
    assert_eq!(test.trials, 1);
}

#[test]
fn sections_that_conductor_does_not_look_at_may_be_there() {
    let main = "[Test]\nformat: json\noutput: x.json\n[Notes]\nof: 2015\n[Clients]\na: p.cfg\n[Run]\nstep1: not here\n";
    let player = format!("{MASTER}[Run]\n[Hardware]\nnic: T520\n[Test]\n{REST}");
    let test = read_files(main, &[("p.cfg", &player)]).unwrap();
    assert_eq!(
        (test.form, test.workers[0].steps(Phase::Run).len()),
        (Some(Form::Json), 0)
    );
}

#[test]
fn only_the_workers_that_are_wanted_are_read() {
    let main = "[Test]\n[Clients]\na: p.cfg\nB: nowhere.cfg\n";
    let player = format!("{MASTER}[Run]{REST}");
    let of = |names: &[&str]| {
        let options = Options {
            workers: names.iter().map(ToString::to_string).collect(),
            limit_s: 5,
        };
        read("m.cfg", &options, |path| match path {
            "m.cfg" => Ok(main.into()),
            "p.cfg" => Ok(player.clone().into()),
            _ => Err("No such file".into()),
        })
    };
    assert_eq!(of(&["A"]).unwrap().workers.len(), 1);
    assert_eq!(of(&["b"]).unwrap_err().len(), 1);
    let none = of(&["a", "c"]).unwrap_err();
    assert!(none[0].message.contains("has no worker 'c'"), "{none:?}");
    assert_eq!(none[0].remedy.as_deref(), Some("it has a and b"));
}

#[test]
fn tests_are_called_as_people_call_them() {
    for (main, test) in [
        ("VANILLA/Tests/iperf-twohost/conductor.cfg", "iperf-twohost"),
        ("/a/b/web_load_test.cfg", "web_load_test"),
        ("./conductor.cfg", "conductor"),
        ("../conductor.cfg", "conductor"),
        ("x.cfg", "x"),
        ("", ""),
    ] {
        assert_eq!(name(main), test, "{main}");
    }
}

#[test]
fn a_test_is_carried_out_as_conductor_would() {
    let player = format!(
        "{MASTER}step1: kldload x\n[Run]\nspawn1: tcpdump\ntimeout5: iperf3 -s\n[Collect]\nstep1: cp\n[Reset]\nstep1: down\n"
    );
    let test = read_files(MAIN, &[("p.cfg", &player)]).unwrap();
    let design = test.design(&Phase::ALL);
    let mut machine = Machine::new(design.clone());
    let (mut now, mut started, mut waiting) = (0, Vec::new(), Vec::new());
    let over = |step: StepId, number: i32| {
        let (outcome, output) = (Outcome::Ended(Status::Exit(number)), Output::new(0));
        Event::Ended(
            step,
            End {
                outcome,
                may_still_run: false,
                began_ns: 0,
                ended_ns: 0,
                output,
            },
        )
    };
    let mut events = vec![Event::Go];
    while !machine.is_over() {
        let actions: Vec<Action> = events
            .drain(..)
            .flat_map(|event| machine.handle(event))
            .collect();
        for action in actions {
            match action {
                Action::Start(id) => {
                    let step = &design.hosts[0].steps(id.phase)[id.step];
                    started.push((now, step.command.clone()));
                    // kldload fails, as it does for a module that is already loaded; iperf3 runs until it is ended.
                    match step.command.as_str() {
                        "tcpdump" => {}
                        "iperf3 -s" => {
                            waiting.push((id, design.rules.ends_after_ns(step.mode).unwrap()))
                        }
                        other => events.push(over(id, i32::from(other.starts_with("kldload")))),
                    }
                }
                Action::End(step, _) => events.push(over(step, 143)),
                _ => {}
            }
        }
        if events.is_empty() {
            match waiting.pop() {
                Some((step, ns)) => {
                    now += ns / 1_000_000_000;
                    events.push(over(step, 0));
                }
                None => events.push(Event::Go),
            }
        }
    }
    let trial = |at: u64| {
        [
            (at, "kldload x"),
            (at, "tcpdump"),
            (at, "iperf3 -s"),
            (at + 5, "cp"),
            (at + 5, "down"),
        ]
    };
    let expected: Vec<(u64, String)> = trial(0)
        .into_iter()
        .chain(trial(5))
        .map(|(s, c)| (s, c.to_string()))
        .collect();
    assert_eq!(started, expected);
}

#[test]
fn the_skew_of_a_run_is_its_own_trials() {
    let player = format!("{MASTER}[Run]{REST}");
    let test = read_files(MAIN, &[("p.cfg", &player)]).unwrap();
    let mut recorder = Recorder::new(&test, vec!["here".into()]);
    let mut trial = |before: Option<u64>, during: Option<u64>| {
        before
            .into_iter()
            .for_each(|skew| recorder.started(skew, 1000));
        recorder.phase(0, String::new);
        during
            .into_iter()
            .for_each(|skew| recorder.started(skew, 1000));
        recorder.phase(1, String::new);
        recorder.trial(0, &[], false, 2).skew_ms
    };
    assert_eq!(
        (trial(None, Some(2_000_000)), trial(Some(3_000_000), None)),
        (Some(2.0), None)
    );
}

/// Lines such as files have, in any order and with any fault.
fn line() -> impl Strategy<Value = String> {
    let section = prop::sample::select(SECTIONS.to_vec()).prop_map(|name| format!("[{name}]"));
    let key =
        "(player|conductor|cmdport|resultsport|trials|step[0-9]|spawn1|timeout[0-9]{0,3}|a|b)";
    let value = "( ?spawn:| ?timeout[0-9]:)?[ a-z0-9.%()s:=#;-]{0,12}";
    prop_oneof![
        3 => section,
        6 => (key, "[:=]", value).prop_map(|(key, sep, value)| format!("{key}{sep}{value}")),
        1 => "[ \t]{1,2}[a-z%(\\[]{0,9}[\\])s]{0,2}".prop_map(String::from),
        1 => "\\PC{0,20}".prop_map(String::from),
    ]
}

fn text() -> impl Strategy<Value = String> {
    prop::collection::vec(line(), 0..40).prop_map(|lines| lines.join("\n"))
}

proptest! {
    #[test]
    fn any_text_is_read_or_told_what_is_wrong(main in text(), player in text(), bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let files = |path: &str| match path {
            "main" => Ok(main.clone().into_bytes()),
            "bytes" => Ok(bytes.clone()),
            _ => Ok(player.clone().into_bytes()),
        };
        for start in ["main", "bytes", "other"] {
            match read(start, &Options::default(), files) {
                Err(faults) => prop_assert!(!faults.is_empty() && faults.len() <= MOST),
                Ok(test) => prop_assert!(test.trials >= 1 && !test.workers.is_empty()),
            }
        }
    }

    #[test]
    fn any_player_of_a_sound_test(player in text(), sound in any::<bool>()) {
        let player = if sound { format!("{MASTER}[Run]\n[Collect]\n[Reset]\n{player}") } else { player };
        let test = read_files(MAIN, &[("p.cfg", &player)]);
        if let Ok(test) = test {
            for step in test.workers[0].phases.iter().flat_map(|(_, steps)| steps) {
                prop_assert!(!step.command.is_empty() && step.line <= player.lines().count());
                prop_assert_eq!(step.limit_s.is_none(), step.mode == Mode::Spawn && step.limit_s.is_none());
            }
        }
    }
}
