//! Three hosts in a row: generator, device under test, receiver.

use crate::common::{LINERATE, lab::ip, lab::names, unique, wait_for};
use linerate_hosts::agent::message::{Order, Port, Role};
use linerate_linux::lab::addresses::{GENERATOR_SIDE, RECEIVER_SIDE};
use linerate_linux::net::Netns;
use linerate_linux::net::ethtool::Ethtool;
use linerate_linux::net::netlink::{LinkStats, Route};
use linerate_plan::Backend;
use linerate_remote::agents::{Agent, Link, Member, Ports};
use linerate_wire::{
    Family, Filter, FlowSpace, FrameMix, FrameSpec, Load, MacAddr, Traffic, Transport,
};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

pub const CAMPAIGN: u8 = 0x33;
pub const GENERATOR: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
pub const INSIDE: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);
pub const OUTSIDE: MacAddr = MacAddr([2, 0, 0, 0, 0, 3]);
pub const RECEIVER: MacAddr = MacAddr([2, 0, 0, 0, 0, 4]);

/// Three namespaces, wired: `g0` - `in0`, `out0` - `r0`. All links are up; nothing else is set.
pub struct Hosts {
    pub generator: String,
    pub dut: String,
    pub receiver: String,
}

impl Hosts {
    pub fn new() -> Hosts {
        let hosts = Hosts {
            generator: unique("gen"),
            dut: unique("dut"),
            receiver: unique("rec"),
        };
        for name in hosts.all() {
            ip(&format!("netns add {name}")).ok();
            run_in(
                name,
                "for i in all default; do echo 1 > /proc/sys/net/ipv6/conf/$i/disable_ipv6; done",
            );
        }
        let wire = |a: &str, end: &str, mac: MacAddr, b: &str, other: &str, other_mac: MacAddr| {
            ip(&format!(
                "link add {end} netns {a} address {mac} numrxqueues 2 numtxqueues 2 type veth peer name {other} netns {b} address {other_mac} numrxqueues 2 numtxqueues 2"
            ))
            .ok();
        };
        wire(&hosts.generator, "g0", GENERATOR, &hosts.dut, "in0", INSIDE);
        wire(&hosts.dut, "out0", OUTSIDE, &hosts.receiver, "r0", RECEIVER);
        for (name, link) in [
            (&hosts.generator, "g0"),
            (&hosts.dut, "in0"),
            (&hosts.dut, "out0"),
            (&hosts.receiver, "r0"),
        ] {
            ip(&format!("-n {name} link set {link} up")).ok();
        }
        // Redirected frames need the NAPI of the other end.
        let namespace = Netns::open(&hosts.dut).unwrap();
        Ethtool::open(&namespace)
            .unwrap()
            .set_feature("in0", "rx-gro", true)
            .unwrap();
        for (name, link) in [
            (&hosts.generator, "g0"),
            (&hosts.dut, "in0"),
            (&hosts.dut, "out0"),
            (&hosts.receiver, "r0"),
        ] {
            let route = Route::open(&Netns::open(name).unwrap()).unwrap();
            route
                .wait_running(route.link(link).unwrap().index, Duration::from_secs(60))
                .unwrap();
        }
        hosts
    }

    fn all(&self) -> [&String; 3] {
        [&self.generator, &self.dut, &self.receiver]
    }

    /// Three namespaces. The middle one is a router between the other two.
    pub fn routed() -> Hosts {
        let hosts = Hosts::new();
        for (link, side, mac) in [
            ("in0", GENERATOR_SIDE[0], GENERATOR),
            ("out0", RECEIVER_SIDE[0], RECEIVER),
        ] {
            let (dut, (own, length), (to, prefix), via) =
                (&hosts.dut, side.dut, side.network, side.tester);
            ip(&format!("-n {dut} addr add {own}/{length} dev {link}")).ok();
            ip(&format!("-n {dut} route add {to}/{prefix} via {via}")).ok();
            ip(&format!(
                "-n {dut} neigh replace {via} lladdr {mac} dev {link} nud permanent"
            ))
            .ok();
        }
        let forward =
            "for i in all in0 out0; do echo 0 > /proc/sys/net/ipv4/conf/$i/rp_filter; done
            for i in in0 out0; do echo 1 > /proc/sys/net/ipv4/conf/$i/forwarding; done";
        run_in(&hosts.dut, forward);
        // Until then, the kernel drops what leaves by it, and counts nothing: its queue is activated late on a busy machine.
        for link in ["in0", "out0"] {
            wait_for("a link", || {
                let shown = ip(&format!("-n {} -o link show {link}", hosts.dut))
                    .ok()
                    .stdout;
                shown.contains("state UP").then_some(())
            });
        }
        hosts
    }

    /// Frames that the generator's interface has sent.
    pub fn sent(&self) -> u64 {
        counted(&self.generator, "g0").tx_packets
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for name in self.all() {
            if names().contains(name.as_str()) {
                ip(&format!("netns del {name}"));
            }
            let _ = std::fs::remove_dir_all(state(name));
        }
    }
}

/// Runs lines of a shell in a namespace.
fn run_in(namespace: &str, lines: &str) {
    let words = ["netns", "exec", namespace, "sh", "-e", "-c", lines];
    crate::common::Program::new("ip").args(words).run().ok();
}

/// The kernel's counters of an interface.
pub fn counted(namespace: &str, link: &str) -> LinkStats {
    Route::open(&Netns::open(namespace).unwrap())
        .unwrap()
        .link(link)
        .unwrap()
        .stats
}

/// The folder of linerate's state.
const STATE: &str = "/run/linerate";

/// That folder of a host. Its loads, which come before other programs, take turns with those of this machine, unless the folder has locks
/// with a holder.
pub fn state(namespace: &str) -> PathBuf {
    std::env::temp_dir().join(format!("linerate-host-{namespace}"))
}

/// The command that serves an agent in a namespace, as ssh would.
pub fn serve(namespace: &str) -> Command {
    by(namespace, &[])
}

/// The command of an agent whose CLOCK_MONOTONIC is so many seconds ahead of this machine's, in a time namespace.
pub fn serve_ahead(namespace: &str, seconds: u64) -> Command {
    by(
        namespace,
        &[
            "unshare",
            "--fork",
            "--time",
            "--monotonic",
            &seconds.to_string(),
        ],
    )
}

fn by(namespace: &str, words: &[&str]) -> Command {
    let own = state(namespace);
    for folder in [&own, Path::new(STATE)] {
        std::fs::create_dir_all(folder).unwrap();
    }
    // `ip netns exec` gives its command a mount table of its own.
    let bind = r#"set -e
        for cpu in /sys/devices/system/cpu/cpu[0-9]*; do
            lock=cpu-${cpu##*/cpu}; : >>"$2/$lock"
            [ -s "$1/$lock" ] || { : >>"$1/$lock"; mount --bind "$2/$lock" "$1/$lock"; }
        done
        mount --rbind "$1" "$2"; shift 2; exec "$@""#;
    let mut command = Command::new("ip");
    command
        .args(["netns", "exec", namespace, "sh", "-c", bind, "sh"])
        .arg(own)
        .arg(STATE);
    command
        .args(words)
        .args([LINERATE, "agent"])
        .env_remove("SSH_CONNECTION");
    command
}

pub fn greet(name: &str, namespace: &str) -> Agent {
    greet_by(name, serve(namespace))
}

pub fn greet_by(name: &str, command: Command) -> Agent {
    let link = Link::start(command).unwrap();
    Agent::greet(name, link, "test", Duration::from_secs(60)).unwrap()
}

/// An agent whose process the test holds.
pub struct Held {
    pub child: Child,
    pub agent: Option<Agent>,
}

impl Held {
    pub fn new(namespace: &str) -> Held {
        let mut child = serve(namespace)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let link =
            Link::of_pipes(child.stdin.take().unwrap(), child.stdout.take().unwrap()).unwrap();
        let agent = Agent::greet("held", link, "test", Duration::from_secs(60)).unwrap();
        Held {
            child,
            agent: Some(agent),
        }
    }

    pub fn agent(&self) -> &Agent {
        self.agent.as_ref().unwrap()
    }

    pub fn signal(&self, signal: i32) {
        // SAFETY: the child has not been waited for, so that its number is still its own.
        assert_eq!(unsafe { libc::kill(self.child.id() as i32, signal) }, 0);
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.agent = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn sender(backend: Backend) -> Port {
    let frame = FrameSpec::new(INSIDE, MacAddr::default(), Family::V4, Transport::Udp);
    let flows = FlowSpace::benchmark(Family::V4, 100).unwrap();
    let traffic = Traffic::new(frame, FrameMix::single(64), flows);
    let traffic = Traffic {
        campaign: CAMPAIGN,
        stamp_every: 16,
        ..traffic
    };
    Port {
        name: "out".into(),
        interface: "g0".into(),
        isolated: true,
        backend,
        cpus: vec![],
        role: Role::Generator(Box::new(traffic)),
    }
}

pub fn counter(backend: Backend) -> Port {
    let filter = Filter {
        streams: 4,
        ..Filter::of_campaign(CAMPAIGN)
    };
    Port {
        name: "in".into(),
        interface: "r0".into(),
        role: Role::Receiver(filter),
        ..sender(backend)
    }
}

/// An agent's part in a trial: its port [`sender`].
pub fn sends(agent: &Agent) -> Member<'_> {
    Member {
        agent,
        ways: vec![Ports {
            generators: vec!["out".into()],
            streams: vec![0],
            receivers: vec![],
        }],
    }
}

/// An agent's part in a trial: its port [`counter`].
pub fn counts(agent: &Agent) -> Member<'_> {
    Member {
        agent,
        ways: vec![Ports {
            receivers: vec!["in".into()],
            ..Ports::default()
        }],
    }
}

pub fn order(ms: u64, rate: f64) -> Order {
    let load = Load {
        rate: Some(rate),
        batch: 8,
        ..Load::lasting(Duration::from_millis(ms))
    };
    Order {
        turn: "process 1 of lab".into(),
        load,
        sample_ns: 10_000_000,
        answer: false,
        ahead_ns: vec![],
        opening: None,
    }
}
