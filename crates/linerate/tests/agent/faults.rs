//! Whatever happens to a connection or to its ends: the load ends, and the remaining side gets a message.

use super::hosts::{Held, Hosts, counter, counts, greet, order, sender, sends, serve};
use crate::common::{LINERATE, wait_for};
use linerate_hosts::agent::SPOKEN;
use linerate_hosts::agent::message::Reply;
use linerate_linux::ports::monotonic_ns;
use linerate_measure::trial::Timing;
use linerate_plan::Backend;
use linerate_remote::agents::{Agent, Link, Trial};
use linerate_wire::Load;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Most time until a load must end by itself, on a machine that has the CPUs for it.
const END_WITHIN: Duration = Duration::from_secs(1);
/// So long without a frame, a load has ended: it sends some each millisecond.
const STANDSTILL: Duration = Duration::from_millis(300);

/// Starts a load that would last for a minute, and returns when its frames are under way.
fn set_going(agent: &Agent, hosts: &Hosts, means: Backend) {
    agent.prepare(sender(means)).unwrap();
    let offset = agent.compare_clocks().unwrap();
    // Another test's load may have its turn.
    wait_for("its turn", || {
        let order = order(60_000, 20_000.0);
        agent.arm(vec!["out".into()], order).unwrap().ok()
    });
    let number = agent.go(offset.there(monotonic_ns())).unwrap();
    loop {
        let said = agent
            .hear(number, Instant::now() + Duration::from_secs(60))
            .unwrap()
            .expect("it begins");
        if matches!(said, Reply::Began { .. }) {
            break;
        }
    }
    let began = hosts.sent();
    wait_for("frames", || (hosts.sent() > began + 100).then_some(()));
}

/// The interface's count stands still from a second after `cut` on.
#[track_caller]
fn ends_within_a_second(hosts: &Hosts, cut: Instant) {
    std::thread::sleep((cut + END_WITHIN).saturating_duration_since(Instant::now()));
    let (then, late) = (hosts.sent(), cut.elapsed());
    std::thread::sleep(STANDSTILL);
    assert_eq!(
        hosts.sent(),
        then,
        "frames left later than {late:?} after the cut"
    );
}

/// The load, which would last for a minute, ends by itself.
fn ends(hosts: &Hosts, within: Option<Instant>) {
    if let Some(cut) = within {
        return ends_within_a_second(hosts, cut);
    }
    wait_for("the end of the load", || {
        let then = hosts.sent();
        std::thread::sleep(STANDSTILL);
        (hosts.sent() == then).then_some(())
    });
}

/// An agent behind a `cat` on the way in: a connection that can be frozen, as a stopped controller or a cut cable freezes it.
struct Frozen {
    cat: Child,
    agent: Child,
}

impl Frozen {
    fn new(namespace: &str) -> (Frozen, Agent) {
        let mut cat = Command::new("cat")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut agent = serve(namespace)
            .stdin(cat.stdout.take().unwrap())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let link = Link::of_pipes(cat.stdin.take().unwrap(), agent.stdout.take().unwrap()).unwrap();
        let client = Agent::greet("frozen", link, "test", Duration::from_secs(60)).unwrap();
        (Frozen { cat, agent }, client)
    }

    fn signal(&self, signal: i32) {
        // SAFETY: the child has not been waited for, so that its number is still its own.
        assert_eq!(unsafe { libc::kill(self.cat.id() as i32, signal) }, 0);
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        for child in [&mut self.cat, &mut self.agent] {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn a_load_ends_when_its_connection_does() {
    connection_ends(false);
}

#[test]
#[ignore = "needs root: run by make test-long as root"]
fn figures_a_load_ends_within_a_second() {
    connection_ends(true);
    controller_is_frozen(true);
    signals_end_a_load(true);
}

/// `soon`: within a second.
fn connection_ends(soon: bool) {
    for means in [Backend::Xdp, Backend::AfPacket] {
        let hosts = Hosts::new();
        let mut held = Held::new(&hosts.generator);
        set_going(held.agent(), &hosts, means);
        let cut = Instant::now();
        held.agent = None;
        ends(&hosts, soon.then_some(cut));
        assert!(!held.child.wait().unwrap().success(), "nobody said goodbye");
    }
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn a_load_ends_when_its_controller_is_frozen() {
    controller_is_frozen(false);
}

fn controller_is_frozen(soon: bool) {
    for means in [Backend::Xdp, Backend::AfPacket] {
        let hosts = Hosts::new();
        let (frozen, agent) = Frozen::new(&hosts.generator);
        set_going(&agent, &hosts, means);
        frozen.signal(libc::SIGSTOP);
        ends(&hosts, soon.then(Instant::now));
        // The agent has given its reason and ended.
        let lost = wait_for("the agent's end", || agent.lost());
        assert!(
            lost.contains("nothing was heard of the controller"),
            "{lost}"
        );
        frozen.signal(libc::SIGCONT);
    }
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn signals_end_a_load_and_so_does_kill_9() {
    signals_end_a_load(false);
}

fn signals_end_a_load(soon: bool) {
    for signal in [libc::SIGTERM, libc::SIGHUP, libc::SIGKILL, libc::SIGSTOP] {
        let hosts = Hosts::new();
        let held = Held::new(&hosts.generator);
        set_going(held.agent(), &hosts, Backend::Xdp);
        held.signal(signal);
        ends(&hosts, soon.then(Instant::now));
        let lost = wait_for("word of it", || held.agent().lost());
        let word = match signal {
            libc::SIGSTOP => "nothing was heard of the agent",
            libc::SIGKILL => "the connection ended",
            _ => "signal",
        };
        assert!(lost.contains(word), "{lost}");
    }
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn a_trial_ends_when_one_of_its_agents_is_lost() {
    let hosts = Hosts::new();
    let generator = greet("g", &hosts.generator);
    let receiver = Held::new(&hosts.receiver);
    generator.prepare(sender(Backend::Xdp)).unwrap();
    receiver.agent().prepare(counter(Backend::Xdp)).unwrap();
    let members = [sends(&generator), counts(receiver.agent())];
    let timing = Timing::slice(30_000_000_000);
    let load = Load {
        rate: Some(5_000.0),
        batch: 8,
        ..Load::lasting(timing.load())
    };
    let trial = Trial {
        members: &members,
        timing,
        load,
        answer: false,
        card_stamps: false,
        opening: None,
        tell: drop,
    };
    let began = Instant::now();
    let error = std::thread::scope(|scope| {
        scope.spawn(|| {
            wait_for("frames", || (hosts.sent() > 500).then_some(()));
            receiver.signal(libc::SIGKILL);
        });
        trial.run(&AtomicBool::new(false), &|_| {}).unwrap_err()
    });
    assert!(
        error.to_string().starts_with("held: lost the agent"),
        "{error}"
    );
    assert!(
        began.elapsed() < Duration::from_secs(28),
        "it did not wait for the end"
    );
    ends(&hosts, None);
    generator.goodbye().unwrap();
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn an_interrupt_ends_a_trial_with_what_there_is() {
    let hosts = Hosts::new();
    let (generator, receiver) = (greet("g", &hosts.generator), greet("r", &hosts.receiver));
    generator.prepare(sender(Backend::AfPacket)).unwrap();
    receiver.prepare(counter(Backend::AfPacket)).unwrap();
    let members = [sends(&generator), counts(&receiver)];
    let timing = Timing {
        run_ns: 30_000_000_000,
        ..Timing::slice(1_000_000)
    };
    let load = Load {
        rate: Some(5_000.0),
        batch: 8,
        ..Load::lasting(timing.load())
    };
    let trial = Trial {
        members: &members,
        timing,
        load,
        answer: false,
        card_stamps: false,
        opening: None,
        tell: drop,
    };
    let interrupted = AtomicBool::new(false);
    let result = std::thread::scope(|scope| {
        scope.spawn(|| {
            wait_for("frames", || (hosts.sent() > 100).then_some(()));
            interrupted.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        trial.run(&interrupted, &|_| {}).unwrap()
    });
    assert!(
        result.sent[0].frames > 100 && result.sent[0].frames < 100_000,
        "{}",
        result.sent[0].frames
    );
}

/// Runs an agent with these bytes as input: its exit status and its output.
fn fed(hosts: &Hosts, bytes: &[u8]) -> (Option<i32>, String) {
    let mut child = serve(&hosts.generator)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut said = String::new();
    std::thread::scope(|scope| {
        // The agent may end before it has read all of it.
        scope.spawn(move || drop(stdin.write_all(bytes)));
        child
            .stdout
            .take()
            .unwrap()
            .read_to_string(&mut said)
            .unwrap();
    });
    (child.wait().unwrap().code(), said)
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn garbage_and_floods_start_nothing_and_are_answered_by_an_error() {
    let hosts = Hosts::new();
    let zeros = vec![0; 64 << 20];
    let letters = vec![b'{'; 64 << 20];
    let binary: Vec<u8> = (0..1 << 20)
        .map(|n: u32| (n.wrapping_mul(2_654_435_761) >> 13) as u8)
        .collect();
    let early = br#"{"id":1,"what":"go","with":{"at_ns":0}}"#;
    for bytes in [
        &b"hello?\n"[..],
        b"\n",
        b"GET / HTTP/1.1\r\n\r\n",
        &zeros,
        &letters,
        &binary,
        &[&early[..], b"\n"].concat(),
    ] {
        let (status, said) = fed(&hosts, bytes);
        let first = said.lines().next().unwrap_or_default();
        assert!(
            first.contains(r#""what":"error""#),
            "{:?}...: {said}",
            &bytes[..bytes.len().min(20)]
        );
        assert_eq!(status, Some(1));
    }
    assert_eq!(fed(&hosts, b"").0, Some(1), "an input that ends at once");
    assert_eq!(hosts.sent(), 0);
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn other_versions_are_told_what_to_do() {
    let hosts = Hosts::new();
    let hello = br#"{"id":1,"what":"hello","with":{"protocol":99,"linerate":"9.9.9"}}"#;
    let (_, text) = fed(&hosts, &[&hello[..], b"\n"].concat());
    assert!(
        text.contains("speaks version 99")
            && text.contains(&format!("version {SPOKEN}"))
            && text.contains("install linerate 9.9.9 on this host"),
        "{text}"
    );
    let link = Link::start(Command::new("false")).unwrap();
    let error = Agent::greet("nobody", link, "1", Duration::from_secs(60))
        .err()
        .unwrap();
    assert!(
        error.to_string().contains("the connection ended"),
        "{error}"
    );
    let mut shell = Command::new("sh");
    shell.args([
        "-c",
        "echo Welcome; echo 'linerate: not found' >&2; exit 127",
    ]);
    let error = Agent::greet(
        "bare",
        Link::start(shell).unwrap(),
        "1",
        Duration::from_secs(60),
    )
    .err()
    .unwrap();
    let text = error.to_string();
    assert!(
        text.contains("Welcome") && text.contains("linerate: not found"),
        "{text}"
    );
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn no_interface_is_used_that_leads_elsewhere_or_that_the_controller_came_by() {
    let hosts = Hosts::new();
    let refused = |agent: &Agent, port| agent.prepare(port).unwrap_err().to_string();
    let agent = greet("g", &hosts.generator);
    let mut unconfirmed = sender(Backend::Xdp);
    unconfirmed.isolated = false;
    let text = refused(&agent, unconfirmed.clone());
    assert!(
        text.contains("RFC 6815") && text.contains("isolated = true"),
        "{text}"
    );
    unconfirmed.interface = "lo".into();
    unconfirmed.isolated = true;
    assert!(refused(&agent, unconfirmed).contains("loopback"));
    drop(agent);
    crate::common::lab::ip(&format!(
        "-n {} addr add 192.0.2.1/24 dev g0",
        hosts.generator
    ))
    .ok();
    // Once as sshd sets it, once as a shell under sudo has it.
    let connection = "192.0.2.7 50000 192.0.2.1 22";
    let mut direct = serve(&hosts.generator);
    direct.env("SSH_CONNECTION", connection);
    let mut through_sudo = Command::new("ip");
    let line = format!("env -u SSH_CONNECTION {LINERATE} agent; true");
    through_sudo
        .args(["netns", "exec", &hosts.generator, "sh", "-c", &line])
        .env("SSH_CONNECTION", connection);
    for command in [direct, through_sudo] {
        let agent = Agent::greet(
            "g",
            Link::start(command).unwrap(),
            "1",
            Duration::from_secs(60),
        )
        .unwrap();
        let text = refused(&agent, sender(Backend::Xdp));
        assert!(text.contains("own connection from 192.0.2.7"), "{text}");
    }
    let agent = greet("g", &hosts.generator);
    agent.prepare(sender(Backend::Xdp)).unwrap();
}
