//! Settings of a host: made, undone, and undone by the next agent where one was killed.

use super::hosts::{Held, Hosts, greet, router};
use linerate_core::agent::message::Code;
use linerate_core::agent::spec::Wanted;
use linerate_core::plan::settings::{Command, Dut, Feature, File, Filter, Rules, Tool};
use linerate_sys::remote_agent::{Agent, AgentError};

fn everything() -> Wanted {
    let mut wanted = router();
    let settings = &mut wanted.settings;
    settings.inside.mtu = Some(1400);
    settings.inside.queues = Some(1);
    settings.outside.features.insert(Feature::Gro, true);
    settings.outside.rps = Some(vec![0]);
    settings.rules = Some(Rules {
        tool: Tool::Nftables,
        filter: Filter::Stateless,
        before: 3,
        table: None,
        states: None,
        hash_sized: false,
        optimize: true,
    });
    settings.files.push(File { path: "etc/name".into(), text: "of {in}".into() });
    let run = "test \"$(cat etc/name)\" = 'of in0' && ip link add dummyX type veth peer name dummyY".into();
    settings.commands.push(Command { run, undo: Some("ip link del dummyX".into()) });
    wanted
}

/// Everything that [`everything`] changes, as the kernel shows it.
fn state(hosts: &Hosts) -> String {
    let run = |line: &str| {
        let words = ["netns", "exec", &hosts.dut, "sh", "-c", line];
        super::common::Program::new("ip").args(words).run().ok().stdout
    };
    // The state of a link may take a moment to be shown.
    let shown = "ip -o addr; ip route; ip neigh; ip -o link | sed 's/<.*>//; s/state [A-Z]*//'; nft list ruleset; ls /run/linerate \
                 | grep scratch; cat /proc/sys/net/ipv4/conf/*/forwarding /proc/sys/net/ipv4/conf/*/rp_filter \
                 /sys/class/net/out0/queues/rx-*/rps_cpus; ethtool -k out0 2>/dev/null; true";
    run(shown)
}

fn refused(result: Result<Vec<String>, AgentError>) -> (Code, String) {
    match result {
        Err(AgentError::Refused { fault, .. }) => (fault.code, fault.to_string()),
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn is_set(hosts: &Hosts) {
    let now = state(hosts);
    for part in ["mtu 1400", "198.18.0.1/30", "198.19.0.0/16 via 198.19.0.2", "PERMANENT", "dummyX", "table "]
    {
        assert!(now.contains(part), "no '{part}' in {now}");
    }
    assert_eq!(hosts.read("/proc/sys/net/ipv4/conf/in0/forwarding"), "1");
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn all_settings_are_made_and_undone() {
    let hosts = Hosts::new();
    let before = state(&hosts);
    let agent = greet("d", &hosts.dut);
    let done = agent.apply(everything()).unwrap();
    assert!(done.len() > 10, "{done:?}");
    is_set(&hosts);
    let undone = agent.undo().unwrap();
    assert!(undone.iter().any(|words| words == "the MTU of in0 is 1500 again"), "{undone:?}");
    assert_eq!(state(&hosts), before);
    // Again, and then by the end of the session.
    agent.apply(everything()).unwrap();
    agent.apply(everything()).unwrap();
    is_set(&hosts);
    drop(agent);
    assert_eq!(state(&hosts), before);
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn signals_put_the_host_back_and_kill_9_leaves_it_to_the_next_agent() {
    let hosts = Hosts::new();
    let before = state(&hosts);
    for signal in [libc::SIGHUP, libc::SIGTERM, libc::SIGINT] {
        let mut held = Held::new(&hosts.dut);
        held.agent().apply(everything()).unwrap();
        is_set(&hosts);
        held.signal(signal);
        held.signal(signal);
        held.child.wait().unwrap();
        assert_eq!(state(&hosts), before, "signal {signal}");
    }
    let mut held = Held::new(&hosts.dut);
    held.agent().apply(everything()).unwrap();
    held.signal(libc::SIGKILL);
    held.child.wait().unwrap();
    is_set(&hosts);
    let next: Agent = greet("d", &hosts.dut);
    let restored = &next.welcome().restored;
    assert!(restored.iter().any(|words| words == "the MTU of in0 is 1500 again"), "{restored:?}");
    assert_eq!(state(&hosts), before);
    drop(next);
    assert_eq!(greet("d", &hosts.dut).welcome().restored, Vec::<String>::new());
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn what_cannot_be_set_is_refused_and_what_was_set_until_then_is_undone() {
    let hosts = Hosts::new();
    let before = state(&hosts);
    let agent = greet("d", &hosts.dut);
    let without = Wanted { consent: false, ..everything() };
    let (code, text) = refused(agent.apply(without));
    assert!(code == Code::Refused && text.contains("--allow-host-changes"), "{text}");
    let mut other = everything();
    other.settings.dut = Dut::Vxlan;
    other.settings.route_count = Some(5);
    let (code, text) = refused(agent.apply(other));
    assert!(
        code == Code::Unsuitable && text.contains("vxlan") && text.contains("generated routes"),
        "{text}"
    );
    let mut late = everything();
    late.settings.commands.push(Command { run: "echo why >&2; exit 3".into(), undo: None });
    let (_, text) = refused(agent.apply(late));
    assert!(text.contains("why"), "{text}");
    assert_eq!(state(&hosts), before);
    super::common::lab::ip(&format!("netns exec {} nft add table inet mine", hosts.dut)).ok();
    let (_, text) = refused(agent.apply(everything()));
    assert!(text.contains("rules of nftables already"), "{text}");
    assert!(state(&hosts).contains("table inet mine"), "it is not ours");
}
