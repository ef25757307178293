//! Hosts that are lost in the midst of a campaign, and one that is another when it goes on.

use super::lab::{RealLab, gentle};
use crate::common::{Running, wait_for};

fn plan() -> String {
    gentle().replace(
        "duration = \"200 ms\"\nblocks = 8",
        "duration = \"500 ms\"\nblocks = 4",
    )
}

/// Processes of this machine whose command line has all of these words.
fn processes(words: &[&str]) -> Vec<i32> {
    let has = |pid: &i32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        words.iter().all(|word| line.contains(word))
    };
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    entries
        .filter_map(|e| e.file_name().to_str()?.parse().ok())
        .filter(has)
        .collect()
}

/// How a host is lost, and how it comes back.
type Loss<'a> = (&'a str, &'a dyn Fn(&RealLab), &'a dyn Fn(&RealLab));

#[test]
#[ignore = "needs root, openssh-server and nft"]
fn cut_links_and_frozen_connections_end_the_load_and_the_campaign_goes_on_afterwards() {
    let lab = RealLab::new();
    let signal_ssh = |lab: &RealLab, signal: i32| {
        let config = lab.ssh.config().display().to_string();
        let found = processes(&["ssh", &config, "generator"]);
        // SAFETY: takes numbers only; these processes have this test's own folder in their arguments.
        found
            .iter()
            .filter(|pid| unsafe { libc::kill(**pid, signal) } == 0)
            .count()
    };
    let losses: [Loss<'_>; 3] = [
        ("receiver", &|lab| lab.ssh.hosts[2].link(false), &|lab| {
            lab.ssh.hosts[2].link(true)
        }),
        (
            "generator",
            &|lab| assert!(lab.ssh.hosts[0].signal_sshd(libc::SIGSTOP) > 0),
            &|lab| assert!(lab.ssh.hosts[0].signal_sshd(libc::SIGCONT) > 0),
        ),
        (
            "generator",
            &|lab| assert!(signal_ssh(lab, libc::SIGSTOP) > 0),
            &|_| {},
        ),
    ];
    // None of them takes long to notice the loss, nor to end a frozen ssh.
    let mut running: Running = lab.program(&plan(), &[]).within(40).start();
    for (name, lose, heal) in losses {
        let host = lab.ssh.hosts.iter().find(|host| host.name == name).unwrap();
        let before = lab.trials().len();
        wait_for("a trial more", || {
            (lab.trials().len() > before).then_some(())
        });
        wait_for("an agent", || {
            (host.running("linerate agent") > 0).then_some(())
        });
        lose(&lab);
        // The load ends by itself, whatever still holds the connection.
        wait_for("the load to end", || {
            (host.running("linerate agent") == 0).then_some(())
        });
        let ended = running.wait().no_panic();
        assert_eq!(ended.status.code(), Some(1), "{}", ended.stderr);
        assert!(
            ended.stderr.contains(&format!("{name}: ")),
            "{}",
            ended.stderr
        );
        assert!(
            !ended.stderr.contains("could not be put back"),
            "{}",
            ended.stderr
        );
        heal(&lab);
        let config = lab.ssh.config().display().to_string();
        wait_for("ssh to go", || {
            processes(&["ssh", &config, "ControlPath"])
                .is_empty()
                .then_some(())
        });
        let kept = lab.trials().len();
        assert!(kept > before && kept < 8, "{kept} trials: {}", ended.stderr);
        running = lab
            .linerate(&["run", "--resume", "records"])
            .within(40)
            .start();
    }
    let ended = running.wait().no_panic();
    assert_eq!(lab.trials().len(), 8, "{}", ended.stderr);
    let blocks = |trial: &serde_json::Value| (trial["block"].as_u64(), trial["slot"].as_u64());
    let mut all: Vec<_> = lab.trials().iter().map(blocks).collect();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 8, "each of them once");
    lab.is_as_it_was();
}

#[test]
#[ignore = "needs root, openssh-server and nft"]
fn a_campaign_goes_on_with_the_same_machines_only() {
    let lab = RealLab::new();
    let file = std::fs::read_to_string(lab.scratch.file("LAB.toml")).unwrap();
    let lines: Vec<&str> = file
        .lines()
        .filter(|line| !line.starts_with("mac"))
        .collect();
    lab.write("LAB.toml", &lines.join("\n"));
    let running = lab
        .program(&plan().replace("blocks = 4", "blocks = 2"), &[])
        .start();
    wait_for("a trial", || (!lab.trials().is_empty()).then_some(()));
    running.signal(libc::SIGINT);
    assert_eq!(running.wait().no_panic().status.code(), Some(130));
    let kept = lab.trials().len();

    lab.on("receiver", "ip link set r0 address 02:00:00:00:00:44");
    lab.on(
        "dut",
        "ip neigh replace 198.19.128.2 lladdr 02:00:00:00:00:44 dev out0 nud permanent",
    );
    let ended = lab
        .resume()
        .fails(1, &["receiver", "02:00:00:00:00:44", "in the lab, "]);
    assert_eq!(lab.trials().len(), kept, "{}", ended.stderr);
    lab.on("receiver", "ip link set r0 address 02:00:00:00:00:04");
    lab.on(
        "dut",
        "ip neigh replace 198.19.128.2 lladdr 02:00:00:00:00:04 dev out0 nud permanent",
    );
    let ended = lab.resume();
    assert_eq!(lab.trials().len(), 4, "{}", ended.stderr);
    lab.is_as_it_was();
}

#[test]
#[ignore = "needs root, openssh-server and nft"]
fn a_lost_host_ends_the_campaign_and_what_was_measured_is_kept() {
    for name in ["generator", "dut"] {
        let mut lab = RealLab::new();
        let running = lab.program(&plan(), &[]).start();
        wait_for("a trial", || (!lab.trials().is_empty()).then_some(()));
        lab.site.ssh.host(name).kill_sshd();
        let began = std::time::Instant::now();
        let ended = running.wait().no_panic();
        assert!(began.elapsed().as_secs() < 60, "{:?}", began.elapsed());
        assert_eq!(ended.status.code(), Some(1), "{}", ended.stderr);
        assert!(
            ended.stderr.contains(&format!("{name}: ")),
            "{}",
            ended.stderr
        );
        assert!(!lab.trials().is_empty());
        for host in &lab.ssh.hosts {
            wait_for("loads to end", || {
                (host.running("linerate agent") == 0).then_some(())
            });
        }
    }
}

#[test]
#[ignore = "needs root and openssh-server"]
fn what_a_killed_linerate_left_is_put_back_before_the_lab_is_judged() {
    let lab = RealLab::new();
    let rules = gentle().find("[variants.rules]").unwrap()..gentle().find("[compare]").unwrap();
    let mut plan = gentle();
    // A router that does not forward is no fit one.
    plan.replace_range(
        rules,
        "[variants.rules]\nsysctls = { \"net.ipv4.ip_forward\" = 0 }\n\n",
    );
    let forwards = || lab.on("dut", "cat /proc/sys/net/ipv4/ip_forward").trim() == "1";
    let is_killed = || {
        let running = lab.program(&plan, &[]).start();
        wait_for("the router not to forward", || (!forwards()).then_some(()));
        running.signal(libc::SIGKILL);
        drop(running);
        let gone = || {
            lab.ssh
                .hosts
                .iter()
                .all(|h| h.running("linerate agent") == 0)
        };
        wait_for("agents to go", || gone().then_some(()));
        assert!(!forwards());
    };
    let said =
        "dut: restored settings that an interrupted run had changed: sysctl net.ipv4.ip_forward";
    is_killed();
    lab.write("plan.toml", &gentle().replace("blocks = 8", "blocks = 1"));
    let ended = lab
        .linerate(&["run", "plan.toml", "--out", "again"])
        .run()
        .no_panic();
    let fit = !ended.stderr.contains("not fit for a campaign");
    assert!(ended.stderr.contains(said) && fit, "{}", ended.stderr);
    lab.is_as_it_was();

    std::fs::remove_dir_all(lab.records()).unwrap();
    is_killed();
    for told in [said, "dut: nothing is changed there"] {
        let ended = lab.linerate(&["lab", "restore", "LAB.toml"]).run().ok();
        assert_eq!(ended.stdout.trim_end(), told, "{}", ended.stderr);
        lab.is_as_it_was();
    }
}
