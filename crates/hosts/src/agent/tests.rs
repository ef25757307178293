//! Sessions under any order of messages, any bytes and any events.

use super::client;
use super::message::{Code, Fault, Reply, Request, Sample, decode, encode};
use super::message::{Order, Port, Role};
use super::server::{Action, Event, Session};
use super::{BEAT_NS, IDLE_SILENCE_NS, SILENCE_NS, SPOKEN};
use linerate_plan::Backend;
use linerate_wire::{
    Family, Filter, FlowOrder, FlowSpace, FrameMix, FrameSpec, Load, MacAddr, Traffic, Transport,
};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn generator() -> Port {
    let frame = FrameSpec::new(
        MacAddr([2, 0, 0, 0, 0, 1]),
        MacAddr::default(),
        Family::V4,
        Transport::Udp,
    );
    let flows = FlowSpace::benchmark(Family::V4, 10).unwrap();
    let traffic = Traffic::new(frame, FrameMix::single(64), flows);
    Port {
        name: "g".into(),
        interface: "eth1".into(),
        isolated: true,
        backend: Backend::Xdp,
        cpus: vec![1],
        role: Role::Generator(Box::new(Traffic {
            order: FlowOrder::Random { seed: 3 },
            campaign: 7,
            ..traffic
        })),
    }
}

pub(super) fn receiver() -> Port {
    let filter = Filter {
        streams: 1,
        pass_foreign: true,
        ..Filter::of_campaign(7)
    };
    let role = Role::Receiver(filter);
    Port {
        name: "r".into(),
        backend: Backend::AfPacket,
        cpus: vec![],
        role,
        ..generator()
    }
}

pub(super) fn order() -> Order {
    let load = Load {
        rate: Some(1000.5),
        batch: 8,
        ..Load::lasting(std::time::Duration::from_secs(1))
    };
    Order {
        turn: "process 1 of lab".into(),
        load,
        sample_ns: 10_000_000,
        answer: false,
        ahead_ns: vec![(3, -5)],
        opening: None,
    }
}

fn hello(protocol: u32) -> Request {
    Request::Hello {
        protocol,
        linerate: "9.9.9".into(),
    }
}

fn counters() -> Request {
    Request::Counters {
        ports: vec!["g".into()],
    }
}

fn requests() -> Vec<Request> {
    let g = || vec!["g".to_string()];
    vec![
        hello(SPOKEN),
        Request::Heartbeat {},
        Request::Clock {},
        Request::Prepare(Box::new(generator())),
        Request::Prepare(Box::new(receiver())),
        Request::Release { ports: vec![] },
        Request::Release { ports: g() },
        Request::Arm {
            ports: g(),
            order: order(),
        },
        Request::Arm {
            ports: vec!["g".into(), "r".into()],
            order: order(),
        },
        Request::Go { at_ns: 12 },
        Request::Stop {},
        Request::Counters { ports: g() },
        Request::Goodbye {},
    ]
}

fn heard(bytes: &[u8]) -> Event {
    Event::Line {
        bytes: bytes.strip_suffix(b"\n").unwrap_or(bytes).to_vec(),
        heard_ns: 0,
    }
}

fn say(session: &mut Session, id: u64, request: &Request, now: u64) -> Vec<Action> {
    session.handle(heard(&encode(id, request)), now)
}

fn fault(actions: &[Action]) -> &Fault {
    match &actions[0] {
        Action::Send(_, Reply::Error(fault)) => fault,
        other => panic!("{other:?}"),
    }
}

fn fresh() -> Session {
    Session::new("1.2.3", vec![0, 1], "clock".into(), 0)
}

/// A session that has been greeted and has a generator.
fn opened() -> Session {
    let mut session = fresh();
    let welcome = Reply::Welcome {
        cpus: vec![0, 1],
        clock: "clock".into(),
    };
    assert_eq!(
        say(&mut session, 1, &hello(SPOKEN), 0),
        [Action::Send(1, welcome)]
    );
    let actions = say(&mut session, 2, &Request::Prepare(Box::new(generator())), 0);
    assert!(matches!(&actions[..], [Action::Do(Request::Prepare(_))]));
    session.handle(Event::Done(Ok(Reply::Done {})), 0);
    session
}

fn running() -> Session {
    let mut session = opened();
    say(
        &mut session,
        3,
        &Request::Arm {
            ports: vec!["g".into()],
            order: order(),
        },
        0,
    );
    session.handle(Event::Done(Ok(Reply::Armed { waited_ns: 0 })), 0);
    let actions = say(&mut session, 4, &Request::Go { at_ns: 5 }, 0);
    assert_eq!(
        actions,
        [
            Action::Send(4, Reply::Done {}),
            Action::Do(Request::Go { at_ns: 5 })
        ]
    );
    session
}

#[test]
fn a_turn_is_waited_for_and_given_back() {
    let mut session = opened();
    let arm = Request::Arm {
        ports: vec!["g".into()],
        order: order(),
    };
    say(&mut session, 3, &arm, 0);
    let busy = Reply::Busy {
        by: "another linerate".into(),
    };
    assert_eq!(
        session.handle(Event::Done(Ok(busy.clone())), 0),
        [Action::Send(3, busy)]
    );
    fault(&say(&mut session, 4, &Request::Go { at_ns: 5 }, 0));
    say(&mut session, 5, &arm, 0);
    session.handle(Event::Done(Ok(Reply::Armed { waited_ns: 7 })), 0);
    // The turn is the worker's: the answer comes when it has been given back.
    assert_eq!(
        say(&mut session, 6, &Request::Stop {}, 0),
        [Action::Do(Request::Stop {})]
    );
    assert_eq!(
        session.handle(Event::Done(Ok(Reply::Done {})), 0),
        [Action::Send(6, Reply::Done {})]
    );
    fault(&say(&mut session, 7, &Request::Go { at_ns: 5 }, 0));
    assert_eq!(
        say(&mut session, 8, &Request::Stop {}, 0),
        [Action::Send(8, Reply::Done {})]
    );
}

fn ended() -> Reply {
    Reply::Ended {
        faults: vec![],
        cpus: vec![],
    }
}

#[test]
fn every_message_comes_back_from_its_line() {
    for request in requests() {
        let line = encode(7, &request);
        assert_eq!(decode::<Request>(&line).unwrap(), (7, request));
    }
    let sample = Sample {
        closed: 0,
        port: "g".into(),
        at_ns: u64::MAX,
        frames: u64::MAX - 1,
    };
    let mut ports = BTreeMap::new();
    ports.insert(
        "r".to_string(),
        linerate_measure::counters::PortCounters::default(),
    );
    let fault = Fault::malformed("x\ny");
    let armed = [
        Reply::Armed { waited_ns: 3 },
        Reply::Busy {
            by: "process 7".into(),
        },
    ];
    let others = [
        Reply::Heartbeat {},
        Reply::Sample(sample),
        Reply::Counters { ports },
        Reply::Error(fault),
        ended(),
    ];
    for reply in others.into_iter().chain(armed) {
        let line = encode(u64::MAX, &reply);
        assert_eq!(
            line.iter().filter(|b| **b == b'\n').count(),
            1,
            "one line each"
        );
        assert_eq!(decode::<Reply>(&line).unwrap(), (u64::MAX, reply));
    }
}

#[test]
fn what_a_newer_side_adds_is_passed_over() {
    let line = br#"{"id":3,"what":"go","with":{"at_ns":4,"colour":"red"},"extra":[1]}"#;
    assert_eq!(
        decode::<Request>(line).unwrap(),
        (3, Request::Go { at_ns: 4 })
    );
    assert_eq!(
        decode::<Request>(br#"{"what":"stop","with":{"gently":true}}"#).unwrap(),
        (0, Request::Stop {})
    );
    let mut session = opened();
    let actions = session.handle(heard(br#"{"id":9,"what":"sing","with":{}}"#), 0);
    assert!(
        matches!(&actions[..], [Action::Send(9, Reply::Error(_))]),
        "{actions:?}"
    );
    assert_eq!(fault(&actions).code, Code::Unknown);
    assert!(
        matches!(
            &say(&mut session, 10, &counters(), 0)[..],
            [Action::Do(Request::Counters { .. })]
        ),
        "it goes on"
    );
}

#[test]
fn other_versions_are_told_what_to_install() {
    let mut session = fresh();
    let actions = say(&mut session, 1, &hello(SPOKEN + 1), 0);
    let told = fault(&actions);
    assert_eq!(told.remedy, "install linerate 9.9.9 on this host");
    assert_eq!(actions.last(), Some(&Action::Do(Request::Goodbye {})));
    let mut session = fresh();
    let actions = say(&mut session, 1, &hello(0), 0);
    assert_eq!(
        fault(&actions).remedy,
        "install linerate 1.2.3 where the controller runs"
    );
}

#[test]
fn nothing_starts_without_being_armed_or_while_something_is_under_way() {
    let mut session = opened();
    assert_eq!(
        fault(&say(&mut session, 5, &Request::Go { at_ns: 0 }, 0)).why,
        "nothing is armed"
    );
    let unknown = Request::Arm {
        ports: vec!["x".into()],
        order: order(),
    };
    assert!(
        fault(&say(&mut session, 6, &unknown, 0))
            .what
            .contains("port x")
    );
    let mut session = running();
    assert_eq!(
        fault(&say(&mut session, 6, &counters(), 0)).why,
        "a load is under way"
    );
    let stop = say(&mut session, 7, &Request::Stop {}, 0);
    assert_eq!(stop, [Action::Cancel], "answered when it has ended");
    let actions = session.handle(Event::Done(Ok(ended())), 0);
    assert_eq!(
        actions,
        [Action::Send(4, ended()), Action::Send(7, Reply::Done {})]
    );
    assert_eq!(
        fault(&say(&mut session, 8, &Request::Go { at_ns: 0 }, 0)).why,
        "nothing is armed",
        "once only"
    );
}

#[test]
fn whatever_ends_a_session_ends_the_load_first() {
    let silent = SILENCE_NS + 1;
    let ends: [(Event, u64); 5] = [
        (Event::Closed, 0),
        (Event::Unheard, 0),
        (Event::Interrupted, 0),
        (heard(b"garbage"), 0),
        (Event::Tick, silent),
    ];
    for (event, now) in ends {
        let mut session = running();
        for looked in (BEAT_NS..now).step_by(BEAT_NS as usize) {
            session.handle(Event::Tick, looked);
        }
        let actions = session.handle(event.clone(), now);
        assert_eq!(actions.last(), Some(&Action::Cancel), "{event:?}");
        assert_eq!(session.handle(event, 0), [], "once");
        let actions = session.handle(Event::Done(Ok(ended())), now);
        assert_eq!(actions.last(), Some(&Action::Do(Request::Goodbye {})));
        let actions = session.handle(Event::Done(Ok(Reply::Goodbye { why: None })), now);
        assert!(matches!(
            &actions[..],
            [
                Action::Send(0, Reply::Goodbye { why: Some(_), .. }),
                Action::Finish
            ]
        ));
        assert!(session.is_over());
    }
}

#[test]
fn heartbeats_keep_a_session_alive_and_are_sent() {
    let mut session = running();
    for beat in 1..50 {
        let now = beat * BEAT_NS;
        assert_eq!(
            session.handle(Event::Tick, now),
            [Action::Send(0, Reply::Heartbeat {})]
        );
        assert_eq!(say(&mut session, beat, &Request::Heartbeat {}, now), []);
    }
    assert!(session.runs());
}

/// Possible events of an agent.
#[derive(Debug, Clone)]
enum Happens {
    Says(usize),
    Bytes(Vec<u8>),
    Closed,
    Interrupted,
    Passes(u64),
    Succeeds,
    Fails,
    LoadSays,
}

fn anything() -> impl Strategy<Value = Happens> {
    prop_oneof![
        20 => (0..requests().len()).prop_map(Happens::Says),
        1 => prop::collection::vec(any::<u8>(), 0..40).prop_map(Happens::Bytes),
        1 => Just(Happens::Closed),
        1 => Just(Happens::Interrupted),
        3 => (0..SILENCE_NS * 2).prop_map(Happens::Passes),
        10 => Just(Happens::Succeeds),
        3 => Just(Happens::Fails),
        2 => Just(Happens::LoadSays),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// At most one task is under way; a load only after a greeting, a port and an arming since; every request is answered once;
    /// after the end nothing more is done; and once the input has ended, it comes to an end.
    #[test]
    fn no_order_of_events_breaks_a_session(events in prop::collection::vec(anything(), 0..60)) {
        let requests = requests();
        let mut session = fresh();
        let (mut now, mut id) = (0, 0);
        let mut under: Option<Request> = None;
        let (mut armed, mut finished, mut left) = (false, false, false);
        let mut answers: BTreeMap<u64, usize> = BTreeMap::new();
        let greeting = [Happens::Says(0), Happens::Says(3), Happens::Succeeds];
        for happens in greeting.into_iter().chain(events) {
            let actions = match happens {
                Happens::Says(number) => {
                    id += 1;
                    say(&mut session, id, &requests[number], now)
                }
                Happens::Bytes(bytes) => session.handle(heard(&bytes), now),
                Happens::Closed => session.handle(Event::Closed, now),
                Happens::Interrupted => session.handle(Event::Interrupted, now),
                Happens::Passes(ns) => {
                    now += ns;
                    session.handle(Event::Tick, now)
                }
                Happens::LoadSays => session.handle(Event::Said(Reply::Began { port: "g".into(), at_ns: 1 }), now),
                Happens::Succeeds | Happens::Fails => {
                    let Some(task) = under.take() else { continue };
                    let fails = matches!(happens, Happens::Fails);
                    if matches!(task, Request::Arm { .. }) {
                        armed = !fails;
                    }
                    if matches!(task, Request::Prepare(_) | Request::Release { .. }) {
                        armed = false;
                    }
                    let reply = match task {
                        Request::Go { .. } => ended(),
                        Request::Goodbye {} => Reply::Goodbye { why: None },
                        Request::Arm { .. } => Reply::Armed { waited_ns: 1 },
                        _ => Reply::Done {},
                    };
                    let result = if fails { Err(Fault::order("x", "y")) } else { Ok(reply) };
                    session.handle(Event::Done(result), now)
                }
            };
            for action in actions {
                prop_assert!(!finished, "after the end: {:?}", action);
                match action {
                    Action::Do(task) => {
                        prop_assert!(under.is_none(), "two at once: {:?} and {:?}", under, task);
                        prop_assert!(!left, "after leaving: {:?}", task);
                        if let Request::Go { .. } = task {
                            prop_assert!(armed, "not armed");
                            armed = false;
                        }
                        left |= task == Request::Goodbye {};
                        under = Some(task);
                    }
                    Action::Send(to, Reply::Began { .. } | Reply::Ended { .. } | Reply::Heartbeat {}) => {
                        prop_assert!(to <= id);
                    }
                    Action::Send(to, _) | Action::SendTime { id: to, .. } => *answers.entry(to).or_default() += 1,
                    Action::Cancel => prop_assert!(under.is_some()),
                    Action::Finish => finished = true,
                }
            }
        }
        prop_assert!(answers.iter().all(|(id, count)| *id == 0 || *count == 1), "{:?}", answers);
        session.handle(Event::Closed, now);
        for _ in 0..3 {
            session.handle(Event::Done(Ok(ended())), now);
        }
        prop_assert!(session.is_over());
    }

    #[test]
    fn no_bytes_break_a_client(lines in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 0..20)) {
        let mut session = client::Session::new(0);
        session.greet(SPOKEN, "1");
        for line in lines {
            session.line(&line, 0);
            session.tick(0);
        }
    }

    /// Whatever an agent sends, in whatever order: an answer is only accepted for the number of a request, and once.
    #[test]
    fn no_replies_break_a_client(said in prop::collection::vec((0u64..8, 0usize..5, 0usize..13), 0..40)) {
        let mut session = client::Session::new(0);
        let mut open = BTreeSet::from([session.greet(SPOKEN, "1").0]);
        for (id, reply, request) in said {
            let request = requests().swap_remove(request);
            let asked = session.ask(&request).0;
            open.extend((request != Request::Heartbeat {}).then_some(asked));
            let replies = [Reply::Done {}, ended(), Reply::Heartbeat {}, Reply::Welcome { cpus: vec![], clock: String::new() },
                Reply::Error(Fault::order("x", "y"))];
            session.line(&encode(id, &replies[reply]), 0);
            if session.lost().is_some() {
                break;
            }
            let answered = (0..100).filter(|id| session.answer(*id).is_some());
            prop_assert!(answered.collect::<Vec<_>>().iter().all(|id| open.remove(id)));
        }
    }
}

#[test]
fn a_client_and_an_agent_understand_each_other() {
    let mut agent = fresh();
    let mut client = client::Session::new(0);
    let exchange = |agent: &mut Session, client: &mut client::Session, said: Vec<u8>| {
        let actions = agent.handle(heard(&said), 0);
        for action in actions {
            if let Action::Send(id, reply) = action {
                client.line(encode(id, &reply).strip_suffix(b"\n").unwrap(), 0);
            }
        }
    };
    let (id, line) = client.greet(SPOKEN, "1.2.3");
    client.line(b"Welcome to host x!", 0);
    assert_eq!(client.lost(), None, "a shell that prints is borne");
    exchange(&mut agent, &mut client, line);
    assert!(
        matches!(client.answer(id), Some((0, Reply::Welcome { .. }))),
        "{client:?}"
    );
    let (id, line) = client.ask(&Request::Go { at_ns: 0 });
    exchange(&mut agent, &mut client, line);
    assert!(
        matches!(client.answer(id), Some((0, Reply::Error(_)))),
        "{client:?}"
    );
    assert_eq!(client.answer(id), None, "once");
    assert!(client.tick(BEAT_NS).is_some() && client.tick(BEAT_NS).is_none());
    let until_lost = |client: &mut client::Session| {
        let mut looks = 1..;
        let lost = looks.find_map(|look| {
            client.tick(look * BEAT_NS);
            client.lost().cloned()
        });
        assert!(client.is_over());
        lost.unwrap()
    };
    // Nothing depends on the agent while there is no load: a busy machine has time to answer.
    assert_eq!(
        until_lost(&mut client),
        "nothing was heard of the agent for 5100 ms"
    );
    let mut loaded = client::Session::new(0);
    let (id, _) = loaded.greet(SPOKEN, "1.2.3");
    let welcome = Reply::Welcome {
        cpus: vec![0],
        clock: String::new(),
    };
    loaded.line(encode(id, &welcome).strip_suffix(b"\n").unwrap(), 0);
    loaded.ask(&Request::Go { at_ns: 0 });
    assert_eq!(
        until_lost(&mut loaded),
        "nothing was heard of the agent for 3100 ms"
    );
}

#[test]
fn an_agent_without_a_load_waits_for_a_busy_controller() {
    let mut session = Session::new("1.2.3", vec![0], String::new(), 0);
    say(
        &mut session,
        1,
        &Request::Hello {
            protocol: SPOKEN,
            linerate: "1.2.3".into(),
        },
        0,
    );
    for now in (BEAT_NS..=IDLE_SILENCE_NS).step_by(BEAT_NS as usize) {
        assert_eq!(
            session.handle(Event::Tick, now),
            [Action::Send(0, Reply::Heartbeat {})]
        );
    }
    let actions = session.handle(Event::Tick, IDLE_SILENCE_NS + BEAT_NS);
    assert_eq!(actions.last(), Some(&Action::Do(Request::Goodbye {})));
}

#[test]
fn a_host_that_prints_without_end_is_no_agent() {
    let mut client = client::Session::new(0);
    client.greet(SPOKEN, "1");
    (0..10_000).for_each(|_| client.line(b"y y y y y y y y", 0));
    assert!(
        client
            .lost()
            .unwrap()
            .starts_with("it is not a linerate agent")
    );
}
