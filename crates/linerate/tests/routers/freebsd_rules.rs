//! Firewalls of a router of FreeBSD, scripted, over the real sshd: they are restored.

use super::bsd::{Bsd, PLAN};
use crate::common::wait_for;
use std::fs;

const NAT: &str = "nat on igb2 inet from 10.0.0.0/8 to any -> (igb2)\n";
const RULES: &str =
    "pass in all flags S/SA keep state\nblock drop in quick on igb2 from <bad> to any\n";

/// A plan with rules of this firewall in the second variant.
fn plan(tool: &str, collect: &str) -> String {
    let variants = PLAN.find("[variants.default]").unwrap()..PLAN.find("[compare]").unwrap();
    let mut plan = PLAN.to_string();
    plan.replace_range(
        variants,
        &format!(
            "[variants.default]\nabout = \"as it comes\"\n\n[variants.rules]\n\
             rules = {{ tool = \"{tool}\", filter = \"stateless\", before = 7 }}\n\n\
             [collect]\ncommands = [\"{collect}\"]\n\n"
        ),
    );
    plan.replace("blocks = 2", "blocks = 1\norder = \"sequential\"")
}

/// State of pf before and after.
#[derive(Debug, Clone, PartialEq, Default)]
struct Pf {
    on: bool,
    nat: String,
    rules: String,
    bad: String,
    skip: String,
}

fn sorted(text: &str) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines.iter().map(|line| format!("{line}\n")).collect()
}

impl Pf {
    fn of(bsd: &Bsd) -> Pf {
        let read = |file| bsd.read("router", file);
        Pf {
            on: read("pf").trim() == "on",
            nat: read("pf.nat"),
            rules: read("pf.rules"),
            // pf keeps addresses in no order of files.
            bad: sorted(&read("pf.tables/bad")),
            skip: read("pf.skip"),
        }
    }

    fn set(&self, bsd: &Bsd) {
        let state = bsd.state("router");
        let _ = fs::remove_dir_all(state.join("pf.tables"));
        fs::create_dir(state.join("pf.tables")).unwrap();
        let on = if self.on { "on\n" } else { "off\n" };
        let files = [
            ("pf", on),
            ("pf.nat", &self.nat),
            ("pf.rules", &self.rules),
            ("pf.skip", &self.skip),
        ];
        for (file, text) in files {
            fs::write(state.join(file), text).unwrap();
        }
        if self.rules.contains("<bad>") {
            fs::write(state.join("pf.tables/bad"), &self.bad).unwrap();
        }
    }
}

#[test]
#[ignore = "needs root and openssh-server"]
fn pf_is_put_back_as_it_was() {
    is_put_back(|case| ["as the file has it", "otherwise"].contains(&case));
}

#[test]
#[ignore = "needs root and openssh-server"]
fn takes_minutes_pf_is_put_back_whatever_it_was() {
    is_put_back(|_| true);
}

/// Puts pf back to some of its states before, and then where it is not in the kernel.
fn is_put_back(some: impl Fn(&str) -> bool) {
    let bsd = Bsd::new();
    let file = bsd.state("router").join("root/etc/pf.conf");
    bsd.set("router", "rc.conf", &format!("pf_rules={}", file.display()));
    let live = Pf {
        on: true,
        nat: NAT.into(),
        rules: RULES.into(),
        bad: "!192.0.2.7\n192.0.2.1\n".into(),
        ..Pf::default()
    };
    let loaded = format!(
        "# its own\nset skip on lo0\ntable <bad> {{ 192.0.2.1, !192.0.2.7 }}\n{NAT}{RULES}"
    );
    let cases = [
        (
            "as the file has it",
            Pf {
                skip: "lo0\n".into(),
                ..live.clone()
            },
            Some(&*loaded),
        ),
        ("otherwise", live.clone(), Some("set skip on lo0\npass\n")),
        ("the file is bad", live.clone(), Some("garbage\n")),
        ("no file", live.clone(), None),
        (
            "loaded, and off",
            Pf {
                on: false,
                ..live.clone()
            },
            None,
        ),
        (
            "on, without rules",
            Pf {
                on: true,
                ..Pf::default()
            },
            Some(&*loaded),
        ),
        ("off, without rules", Pf::default(), Some(&*loaded)),
    ];
    for (number, (case, pf, text)) in cases
        .into_iter()
        .filter(|(case, ..)| some(case))
        .enumerate()
    {
        pf.set(&bsd);
        match text {
            Some(text) => fs::write(&file, text).unwrap(),
            None => drop(fs::remove_file(&file)),
        }
        measured(&bsd, case, number);
        assert_eq!(Pf::of(&bsd), pf, "{case}: {:?}", bsd.log("router"));
    }
    // Not in the kernel at all.
    for entry in fs::read_dir(bsd.state("router")).unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        if name == "modules" || name == "pf" || name.starts_with("pf.") {
            let _ = fs::remove_file(entry.path()).or_else(|_| fs::remove_dir_all(entry.path()));
        }
    }
    measured(&bsd, "no pf", 99);
    assert_eq!(Pf::of(&bsd), Pf::default());
    assert_eq!(bsd.read("router", "modules"), "", "{:?}", bsd.log("router"));
}

/// Runs the plan; the rules are on in its second variant.
fn measured(bsd: &Bsd, case: &str, number: usize) {
    let records = format!("records-{number}");
    bsd.write(
        "plan.toml",
        &plan("pf", "pfctl -s info; pfctl -s rules; true"),
    );
    let ended = bsd
        .linerate(&["run", "plan.toml", "--out", &records])
        .run()
        .no_panic();
    assert!(
        ended.status.success(),
        "{case}: {}{}",
        ended.stdout,
        ended.stderr
    );
    let trials = super::trials(&bsd.scratch.file(&records));
    let said = trials[1]["collected"][0]["output"]["Ok"].as_str().unwrap();
    assert!(
        said.starts_with("Status: Enabled") && said.lines().count() > 7,
        "{case}: {said}"
    );
    assert!(!said.contains("<bad>"), "{case}: {said}");
}

#[test]
#[ignore = "needs root and openssh-server"]
fn what_ipfw_needs_of_the_kernel_is_taken_back() {
    for before in ["", "net.inet.ip.fw.default_to_accept=0\n"] {
        let bsd = Bsd::new();
        let kenv = bsd.state("router").join("kenv");
        fs::write(&kenv, before).unwrap();
        bsd.write("plan.toml", &plan("ipfw", "cat /dev/null"));
        bsd.linerate(&["run", "plan.toml", "--out", "records"])
            .run()
            .no_panic();
        assert_eq!(fs::read_to_string(&kenv).unwrap(), before);
        let log = bsd.log("router");
        let at = |what: &str| {
            log.iter()
                .position(|line| line == what)
                .unwrap_or_else(|| panic!("{log:?}"))
        };
        assert!(
            at("kenv net.inet.ip.fw.default_to_accept=1") < at("kldload ipfw"),
            "{log:?}"
        );
        assert_eq!(bsd.read("router", "modules"), "");
    }
}

#[test]
#[ignore = "needs root and openssh-server"]
fn one_ipfw_loads_a_table_of_twenty_thousand() {
    let bsd = Bsd::new();
    let collect = format!(
        "cat {0}/ipfw.entries; grep -c . {0}/log",
        bsd.state("router").display()
    );
    bsd.write(
        "plan.toml",
        &plan("ipfw", &collect).replace("before = 7", "table = 20_000"),
    );
    let ended = bsd
        .linerate(&["run", "plan.toml", "--out", "records"])
        .run()
        .no_panic();
    assert!(ended.status.success(), "{}{}", ended.stdout, ended.stderr);
    assert!(
        ended
            .stderr
            .contains("router loads 20,000 rules and entries of tables"),
        "{}",
        ended.stderr
    );
    let trials = super::trials(&bsd.scratch.file("records"));
    let said = trials[1]["collected"][0]["output"]["Ok"].as_str().unwrap();
    assert!(said.starts_with("20000\n"), "{said}");
    let log = bsd.log("router");
    assert_eq!(
        log.iter().filter(|line| line.starts_with("ipfw")).count(),
        2,
        "{log:?}"
    );
}

#[test]
#[ignore = "needs root and openssh-server"]
fn a_jail_has_both_cards_and_gives_them_back() {
    let bsd = Bsd::new();
    let variants = PLAN.find("[variants.default]").unwrap()..PLAN.find("[compare]").unwrap();
    let mut plan = PLAN.replace("blocks = 2", "blocks = 1\norder = \"sequential\"");
    plan.replace_range(
        variants,
        "[variants.default]\n\n[variants.jail]\ndut = \"nested\"\n\n\
         [collect]\ncommands = [\"jexec linerate ifconfig -a; jexec linerate netstat -rn; true\"]\n\n",
    );
    bsd.write("plan.toml", &plan);
    let before =
        ["if/igb1", "if/igb2", "arp", "routes"].map(|file| sorted(&bsd.read("router", file)));
    let ended = bsd
        .linerate(&["run", "plan.toml", "--out", "records"])
        .run()
        .no_panic();
    assert!(ended.status.success(), "{}{}", ended.stdout, ended.stderr);
    let trials = super::trials(&bsd.scratch.file("records"));
    assert!(
        trials.len() == 2 && trials.iter().all(|t| t["audit"]["valid"] == true),
        "{trials:#?}"
    );
    let said = trials[1]["collected"][0]["output"]["Ok"].as_str().unwrap();
    assert!(
        said.contains("inet 198.18.0.205 netmask") && said.contains("198.19.0.0/16 198.19.0.203"),
        "{said}"
    );
    // The counters are those of the jail.
    assert!(
        trials[1]["dut"]["igb1: rx_packets"].as_u64() > Some(0),
        "{:#}",
        trials[1]["dut"]
    );
    assert_eq!(
        ["if/igb1", "if/igb2", "arp", "routes"].map(|file| sorted(&bsd.read("router", file))),
        before
    );
    assert!(!bsd.state("router").join("jails/linerate").exists());

    // Killed while it stands: the next one finds the interfaces in the jail.
    let long = plan.replace("200 ms", "60 s");
    let long = long
        .replace("[variants.default]", "")
        .replace("[compare]", "[variants.default]\n\n[compare]");
    fs::remove_dir_all(bsd.scratch.file("records")).unwrap();
    let running = bsd.program(&long, &[]).start();
    wait_for("the jail", || {
        let log = bsd.log("router");
        let made = log
            .iter()
            .filter(|line| line.starts_with("jail -c"))
            .count();
        (made == 2 && bsd.loads() > 0).then_some(())
    });
    running.signal(libc::SIGKILL);
    drop(running);
    wait_for("loads to end", || (bsd.loads() == 0).then_some(()));
    let ended = bsd
        .linerate(&["lab", "restore", "LAB.toml"])
        .run()
        .no_panic();
    assert!(ended.status.success(), "{}{}", ended.stdout, ended.stderr);
    assert_eq!(
        ["if/igb1", "if/igb2", "arp", "routes"].map(|file| sorted(&bsd.read("router", file))),
        before
    );
    assert!(!bsd.state("router").join("jails/linerate").exists());
}

#[test]
#[ignore = "needs root and openssh-server"]
fn a_host_s_own_ipfw_stays() {
    let bsd = Bsd::new();
    bsd.set("router", "modules", "ipfw");
    bsd.write("plan.toml", &plan("ipfw", "cat /dev/null"));
    let ended = bsd
        .linerate(&["run", "plan.toml", "--out", "records"])
        .run()
        .no_panic();
    assert!(
        ended.stderr.contains("ipfw is there already"),
        "{}",
        ended.stderr
    );
    assert_eq!(
        [bsd.read("router", "modules"), bsd.read("router", "kenv")],
        ["ipfw\n", ""]
    );
    let log = bsd.log("router");
    assert!(
        !log.iter()
            .any(|line| line.starts_with("kldunload") || line.starts_with("ipfw")),
        "{log:?}"
    );
}

#[test]
#[ignore = "needs root and openssh-server"]
fn a_user_s_pf_conf_is_loaded_with_the_router_s_interfaces() {
    let bsd = Bsd::new();
    let pf = Pf {
        on: true,
        nat: NAT.into(),
        rules: RULES.into(),
        bad: "192.0.2.1\n".into(),
        ..Pf::default()
    };
    pf.set(&bsd);
    bsd.write("pf.conf", "ext_if = \"em0\"\nint_if = \"em1\"\nmatch out on $ext_if from 10.0.0.0/8 nat-to ($ext_if)\npass in on $int_if\n");
    let plan = plan("pf", "pfctl -s info; pfctl -s rules; true");
    let made = "{ tool = \"pf\", filter = \"stateless\", before = 7 }";
    bsd.write("plan.toml", &plan.replace(made, "{ file = \"pf.conf\" }"));
    let ended = bsd
        .linerate(&["run", "plan.toml", "--out", "records"])
        .run()
        .no_panic();
    assert!(ended.status.success(), "{}{}", ended.stdout, ended.stderr);
    let trials = super::trials(&bsd.scratch.file("records"));
    let said = trials[1]["collected"][0]["output"]["Ok"].as_str().unwrap();
    assert!(
        said.contains("match out on igb2 from 198.18.0.0/16 nat-to (igb2)"),
        "{said}"
    );
    assert!(said.contains("pass in on igb1"), "{said}");
    assert_eq!(Pf::of(&bsd), pf);
}

/// A plan with a plain variant that does not say anything about rules, and one without a firewall.
fn without_a_firewall() -> String {
    let rules = "rules = { tool = \"pf\", filter = \"stateless\", before = 7 }";
    plan("pf", "pfctl -s info; sysctl -i net.inet.ip.fw.enable")
        .replace(rules, "rules = { filter = \"none\" }")
}

#[test]
#[ignore = "needs root and openssh-server"]
fn no_firewall_is_none_and_what_ran_runs_again() {
    let bsd = Bsd::new();
    let pf = Pf {
        on: true,
        nat: NAT.into(),
        rules: RULES.into(),
        bad: "192.0.2.1\n".into(),
        ..Pf::default()
    };
    pf.set(&bsd);
    let sysctl = bsd.state("router").join("sysctl");
    let ipfw = "net.inet.ip.fw.enable=1\nnet.inet6.ip6.fw.enable=1\nnet.link.ether.ipfw=0\n";
    fs::write(&sysctl, fs::read_to_string(&sysctl).unwrap() + ipfw).unwrap();
    bsd.write("plan.toml", &without_a_firewall());
    let ended = bsd
        .linerate(&["run", "plan.toml", "--out", "records", "--full"])
        .run()
        .no_panic();
    assert!(ended.status.success(), "{}{}", ended.stdout, ended.stderr);
    let trials = super::trials(&bsd.scratch.file("records"));
    let said = |n: usize| {
        let outputs = trials[n]["collected"].as_array().unwrap();
        outputs
            .iter()
            .map(|of| of["output"]["Ok"].as_str().unwrap())
            .collect::<String>()
    };
    assert!(
        said(0).starts_with("Status: Enabled") && said(0).contains("fw.enable: 1"),
        "{}",
        said(0)
    );
    assert!(
        said(1).starts_with("Status: Disabled") && said(1).contains("fw.enable: 0"),
        "{}",
        said(1)
    );
    assert_eq!(Pf::of(&bsd), pf);
    let now = fs::read_to_string(&sysctl).unwrap();
    assert!(ipfw.lines().all(|line| now.contains(line)), "{now}");
    // Nobody takes the first variant for a router without a firewall.
    assert!(
        ended
            .stdout
            .contains("filter   pf with 2 rules in default; none in rules"),
        "{}",
        ended.stdout
    );
}

/// A firewall that does not go off is told, and what was changed is put back.
#[test]
#[ignore = "needs root and openssh-server"]
fn a_firewall_that_stays_on_is_not_measured_as_none() {
    let bsd = Bsd::new();
    Pf {
        on: true,
        rules: RULES.replace("block drop in quick on igb2 from <bad> to any\n", ""),
        ..Pf::default()
    }
    .set(&bsd);
    bsd.set("router", "pf.stays", "on");
    bsd.write("plan.toml", &without_a_firewall());
    let ended = bsd
        .linerate(&["run", "plan.toml", "--out", "records"])
        .run()
        .no_panic();
    assert!(
        [&ended.stdout, &ended.stderr]
            .iter()
            .any(|text| text.contains("pf") && text.contains("off")),
        "{}{}",
        ended.stdout,
        ended.stderr
    );
    let trials = super::trials(&bsd.scratch.file("records"));
    let is_first = |trial: &serde_json::Value| trial["slot"] == 0;
    let valid = |trial: &&serde_json::Value| trial["audit"]["valid"] == true;
    assert!(trials.iter().filter(valid).all(is_first), "{trials:#?}");
    assert_eq!(bsd.read("router", "pf"), "on\n");
}
