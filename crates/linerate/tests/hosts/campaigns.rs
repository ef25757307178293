//! Fates of campaigns on hosts: killed, interrupted, refused, in part not set up, on a stateful DUT.

use super::lab::{RealLab, gentle};
use crate::common::{linerate, wait_for};
use serde_json::{Value, json};

#[test]
#[ignore = "needs root, openssh-server and nft"]
fn a_campaign_that_was_killed_goes_on_and_the_next_linerate_puts_the_dut_back() {
    let lab = RealLab::new();
    let running = lab
        .program(&gentle().replace("blocks = 8", "blocks = 4"), &[])
        .start();
    let has_rules = || lab.on("dut", "nft list ruleset").contains("chain");
    wait_for("a trial with rules", || {
        (lab.trials().len() >= 3 && has_rules()).then_some(())
    });
    running.signal(libc::SIGKILL);
    drop(running);
    let kept = lab.trials().len();
    // Generator and receiver have noticed; the DUT stays as it was left.
    wait_for("agents to go", || {
        lab.ssh
            .hosts
            .iter()
            .all(|h| h.running("linerate agent") == 0)
            .then_some(())
    });
    let was_left_with_rules = has_rules();
    let ended = lab.resume();
    assert!(
        ended.stdout.contains("records  records"),
        "{}",
        ended.stderr
    );
    assert!(
        ended
            .stderr
            .contains(&format!("continuing after {kept} trial")),
        "{}",
        ended.stderr
    );
    // A change that was killed between the journal's entry and the change itself is undone as well: without rules there may still
    // be an entry.
    let put_back = ended
        .stderr
        .contains("dut: restored settings that an interrupted run had changed");
    assert!(put_back || !was_left_with_rules, "{}", ended.stderr);
    assert_eq!(lab.trials().len(), 8);
    lab.is_as_it_was();
}

#[test]
#[ignore = "needs root, openssh-server and nft"]
fn an_interrupt_puts_everything_back() {
    let lab = RealLab::new();
    let running = lab.program(&gentle(), &[]).start();
    wait_for("a trial", || (!lab.trials().is_empty()).then_some(()));
    running.signal(libc::SIGINT);
    let ended = running.wait().no_panic();
    assert_eq!(ended.status.code(), Some(130), "{}", ended.stderr);
    assert!(
        ended
            .stderr
            .contains("to resume: linerate run --resume records"),
        "{}",
        ended.stderr
    );
    lab.is_as_it_was();
}

#[test]
#[ignore = "needs root, openssh-server and nft"]
fn a_variant_that_cannot_be_set_up_is_marked_and_the_others_go_on() {
    let lab = RealLab::new();
    let plan = gentle().replace("blocks = 8", "blocks = 2").replace(
        "[compare]",
        "[variants.broken]\ncommands = [{ run = \"printf '\\\\033[31mno' >&2; false\", undo = \"true\" }]\n\n[compare]",
    );
    let ended = lab.run(&plan, &[]);
    assert_eq!(ended.status.code(), Some(1), "{}", ended.stderr);
    assert!(
        ended.stderr.contains("; false` could not be set"),
        "{}",
        ended.stderr
    );
    assert!(
        ended.stderr.contains("?[31mno") && !ended.stderr.contains('\u{1b}'),
        "{:?}",
        ended.stderr
    );
    assert!(
        ended
            .stderr
            .contains("the campaign continues with the others"),
        "{}",
        ended.stderr
    );
    // The first page has room for one such reason, and on a busy machine another variant may have one as well.
    let page = lab
        .linerate(&["show", "--full", "records"])
        .run()
        .ok()
        .stdout;
    let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
    let why =
        "broken could not be measured: all 2 trials failed their audit (the first: dut: command";
    assert!(page.contains(why), "{page}");
    let of = |slot: u64| lab.trials().into_iter().filter(move |t| t["slot"] == slot);
    assert!(of(2).count() == 2 && of(2).all(|t| t["audit"]["valid"] == false));
    // How even its rate is, is this machine's: other tests run.
    assert!(of(0).count() == 2 && of(0).all(|t| t["receiver"]["frames"].as_u64().unwrap() > 0));
    lab.is_as_it_was();
}

#[test]
#[ignore = "needs root and openssh-server"]
fn all_that_is_wrong_with_a_lab_is_told_before_anything_is_sent() {
    let mut lab = RealLab::new();
    lab.site.ssh.host("receiver").change_key();
    lab.on("dut", "ip link set out0 down");
    let ended = lab.run(&gentle(), &[]);
    assert_eq!(ended.status.code(), Some(1), "{}", ended.stderr);
    for part in [
        "receiver: it cannot be reached",
        "ssh-keygen -R",
        "dut: ",
        "out0",
    ] {
        assert!(ended.stderr.contains(part), "{part}: {}", ended.stderr);
    }
    assert!(!std::path::Path::new(&lab.records()).exists());
}

/// A campaign has more to say than its hosts, which are the same each time.
#[test]
#[ignore = "needs root, openssh-server and nft"]
fn notes_about_the_hosts_are_one_line_and_lab_check_has_them() {
    let lab = RealLab::new();
    lab.on("generator", "ip link set g0 mtu 1400");
    let checked = lab
        .linerate(&["lab", "check", "LAB.toml"])
        .run()
        .ok()
        .stdout;
    assert!(checked.contains("have different MTUs"), "{checked}");
    let told = lab
        .run(&gentle().replace("blocks = 8", "blocks = 1"), &[])
        .stderr;
    assert!(
        told.contains("1 note about the hosts: `linerate lab check LAB.toml` shows them"),
        "{told}"
    );
    assert!(!told.contains("have different MTUs"), "{told}");
}

#[test]
#[ignore = "needs root, openssh-server and nft"]
fn a_stateful_router_has_seen_both_directions_of_each_connection() {
    let lab = RealLab::new();
    let collect =
        "[collect]\ncommands = [\"grep -c UNREPLIED /proc/net/nf_conntrack || true\"]\n\n[trials]";
    let plan = gentle()
        .replace("stateless", "stateful")
        .replace("[trials]", collect);
    let plan = plan.replace("blocks = 8", "blocks = 2");
    // Stamps of cards, where the hosts have none: those of the drivers.
    let plan = plan.replace(
        "[traffic]\n",
        "[traffic]\nstamps = \"hardware\"\nstamp-every = 8\n",
    );
    let sockets = std::fs::read_to_string(lab.scratch.file("LAB.toml")).unwrap();
    lab.write(
        "LAB.toml",
        &sockets.replace("tool = \"linerate\"", "tool = \"af-packet\""),
    );
    let ended = lab.run(&plan, &["--full"]);
    let software = ["g0", "r0"].map(|card| format!("{card}: this card stamps in software only"));
    // Beside other tests, trials may be invalid.
    let (valid, others): (Vec<Value>, Vec<Value>) = lab
        .trials()
        .into_iter()
        .partition(|trial| trial["audit"]["valid"] == true);
    for trial in &valid {
        let stamped = &trial["stamped"];
        assert_eq!(
            (&stamped["why"], &stamped["by_cards"]),
            (&json!(software), &json!([false, false])),
            "{trial:#}"
        );
        let (stamped, all) = (
            stamped["frames"].as_u64(),
            trial["receiver"]["frames"].as_u64(),
        );
        assert!(
            stamped > Some(0) && stamped <= all,
            "{stamped:?} of {all:?}"
        );
    }
    let page = ended
        .stdout
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    assert!(
        page.contains("states established") || ended.status.code() == Some(1),
        "{page}"
    );
    let shown = format!("No stamps of hardware: {}.", software[0]);
    assert!(
        page.contains(&shown) || !page.contains("Latency from"),
        "{page}"
    );
    let report = linerate(["report", &lab.records()]).run().ok().stdout;
    let drawn = report
        .split("The lab</figcaption>")
        .nth(1)
        .and_then(|rest| rest.split("</figure>").next());
    let drawn = drawn.unwrap_or_else(|| panic!("no lab in {report}"));
    for part in [
        ">generator</text>",
        ">DUT</text>",
        ">receiver</text>",
        ">cable</text>",
        " CPUs</text>",
        ">in in0 ",
        "<polyline",
    ] {
        assert!(drawn.contains(part), "{part}: {drawn}");
    }
    let stateful: Vec<Value> = valid
        .into_iter()
        .filter(|t| !t["connections"].is_null())
        .collect();
    assert!(stateful.len() == 2 || !others.is_empty());
    for trial in &stateful {
        assert_eq!(trial["connections"]["states"], "established");
        assert_eq!(
            trial["collected"][0]["output"]["Ok"]
                .as_str()
                .map(str::trim),
            Some("0"),
            "{trial}"
        );
    }
    lab.is_as_it_was();
}
