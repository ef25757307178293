//! Three Linux hosts, two of which have linerate.

use crate::common::{Ended, linerate, wait_for};
use crate::lab::{PLAN, RealLab};
use crate::trials;
use serde_json::Value;

/// The ratio of the rates with and without rules, as median and interval.
#[track_caller]
fn ratio(ended: &Ended) -> [f64; 3] {
    let result: Value = serde_json::from_str(&ended.stdout).unwrap();
    let slots = result["campaign"]["slots"].as_array().unwrap();
    let slot = |variant: &str| &slots.iter().find(|slot| slot["variant"] == variant).unwrap()["id"];
    let of_these = |c: &&Value| c["slot"] == *slot("rules") && c["with"] == *slot("forwarding");
    let ratio = &result["summary"]["comparisons"].as_array().unwrap().iter().find(of_these).unwrap()["ratio"];
    ["median", "low", "high"].map(|key| ratio[key].as_f64().unwrap())
}

#[test]
#[ignore = "needs root, openssh-server and nft"]
fn a_campaign_over_three_hosts_comes_to_the_verdicts_of_the_local_lab() {
    let lab = RealLab::new();
    let ended = lab.run(PLAN, &["--json"]);
    assert!(ended.status.success(), "{}", ended.stderr);
    let over_hosts = ratio(&ended);
    let recorded = trials(&lab.records());
    let valid = recorded.iter().filter(|trial| trial["audit"]["valid"] == true).count();
    assert!(recorded.len() == 24 && valid >= 20, "{valid} of {} trials are valid", recorded.len());
    let counted = |trial: &Value| trial["dut"]["in0: rx_packets"].as_u64().unwrap_or(0);
    let sent = |trial: &Value| trial["generator"]["frames"].as_u64().unwrap();
    assert!(recorded.iter().all(|trial| counted(trial) >= sent(trial)), "the DUT has counted what was sent");
    lab.is_as_it_was();

    let local = PLAN.replace("[lab]\nfile = \"LAB.toml\"\nsystems = [\"linux\"]\n", "");
    std::fs::write(lab.scratch.file("local.toml"), local).unwrap();
    let ended =
        linerate(["run", "local.toml", "--out", "local", "--json"]).dir(lab.scratch.path()).within(120).run();
    let in_namespaces = ratio(&ended.ok());
    println!("over hosts {over_hosts:?}, in namespaces of this machine {in_namespaces:?}");
    for [_, low, high] in [over_hosts, in_namespaces] {
        assert!(
            0.0 < low && high < 0.5,
            "a thousand rules cost more than half: {over_hosts:?} {in_namespaces:?}"
        );
    }
}

#[test]
#[ignore = "needs root, openssh-server and nft"]
fn a_campaign_that_was_killed_goes_on_and_the_next_linerate_puts_the_dut_back() {
    let lab = RealLab::new();
    let running = lab.program(PLAN, &[]).start();
    let has_rules = || lab.on("dut", "nft list ruleset").contains("chain");
    wait_for("a trial with rules", || (trials(&lab.records()).len() >= 3 && has_rules()).then_some(()));
    running.signal(libc::SIGKILL);
    drop(running);
    let kept = trials(&lab.records()).len();
    // Generator and receiver have noticed; the DUT stays as it was left.
    wait_for("agents to go", || lab.ssh.hosts.iter().all(|h| h.running("linerate agent") == 0).then_some(()));
    let was_left_with_rules = has_rules();
    let ended = lab.linerate(&["run", "--resume", "records"]).within(120).run().no_panic();
    assert!(ended.status.success(), "{}", ended.stderr);
    assert!(ended.stderr.contains(&format!("going on after {kept} trials")), "{}", ended.stderr);
    let put_back = ended.stderr.contains("dut: put back what an earlier linerate had changed");
    assert_eq!(put_back, was_left_with_rules, "{}", ended.stderr);
    assert_eq!(trials(&lab.records()).len(), 24);
    lab.is_as_it_was();
}

#[test]
#[ignore = "needs root, openssh-server and nft"]
fn an_interrupt_puts_everything_back() {
    let lab = RealLab::new();
    let running = lab.program(PLAN, &[]).start();
    wait_for("some trials", || (trials(&lab.records()).len() >= 3).then_some(()));
    running.signal(libc::SIGINT);
    let ended = running.wait().no_panic();
    assert_eq!(ended.status.code(), Some(130), "{}", ended.stderr);
    assert!(ended.stderr.contains("linerate run --resume records goes on"), "{}", ended.stderr);
    lab.is_as_it_was();
}

#[test]
#[ignore = "needs root, openssh-server and nft"]
fn a_variant_that_cannot_be_set_up_is_marked_and_the_others_go_on() {
    let lab = RealLab::new();
    let plan = PLAN.replace("blocks = 12", "blocks = 2").replace(
        "[compare]",
        "[variants.broken]\ncommands = [{ run = \"false\", undo = \"true\" }]\n\n[compare]",
    );
    let ended = lab.run(&plan, &[]);
    assert_eq!(ended.status.code(), Some(1), "{}", ended.stderr);
    assert!(ended.stderr.contains("dut: command `false` could not be set"), "{}", ended.stderr);
    assert!(ended.stderr.contains("the others go on"), "{}", ended.stderr);
    let of = |slot: u64| trials(&lab.records()).into_iter().filter(move |t| t["slot"] == slot);
    assert!(of(2).count() == 2 && of(2).all(|t| t["audit"]["valid"] == false));
    assert!(of(0).any(|t| t["audit"]["valid"] == true));
    lab.is_as_it_was();
}

#[test]
#[ignore = "needs root, openssh-server and nft"]
fn a_lost_host_ends_the_campaign_and_what_was_measured_is_kept() {
    for name in ["generator", "dut"] {
        let mut lab = RealLab::new();
        let running = lab.program(PLAN, &[]).start();
        wait_for("some trials", || (trials(&lab.records()).len() >= 2).then_some(()));
        lab.ssh.host(name).kill_sshd();
        let began = std::time::Instant::now();
        let ended = running.wait().no_panic();
        assert!(began.elapsed().as_secs() < 60, "{:?}", began.elapsed());
        assert_eq!(ended.status.code(), Some(1), "{}", ended.stderr);
        assert!(ended.stderr.contains(&format!("{name}: ")), "{}", ended.stderr);
        assert!(trials(&lab.records()).len() >= 2);
        for host in &lab.ssh.hosts {
            wait_for("loads to end", || (host.running("linerate agent") == 0).then_some(()));
        }
    }
}

#[test]
#[ignore = "needs root and openssh-server"]
fn all_that_is_wrong_with_a_lab_is_told_before_anything_is_sent() {
    let mut lab = RealLab::new();
    lab.ssh.host("receiver").change_key();
    lab.on("dut", "ip link set out0 down");
    let ended = lab.run(PLAN, &[]);
    assert_eq!(ended.status.code(), Some(1), "{}", ended.stderr);
    for part in ["receiver: it cannot be reached", "ssh-keygen -R", "dut: ", "out0"] {
        assert!(ended.stderr.contains(part), "{part}: {}", ended.stderr);
    }
    assert!(!std::path::Path::new(&lab.records()).exists());
}
