//! A router of OpenBSD, scripted, over the real sshd.

use super::bsd::{Bsd, PLAN};

const RULES: &str = "pass in all flags S/SA\nblock drop in quick on egress from <bad> to any\n";

/// A plan for pf, turned off in one variant and with rules in the other, that records pf's state after each trial.
fn plan() -> String {
    let variants = PLAN.find("[variants.default]").unwrap()..PLAN.find("[compare]").unwrap();
    let mut plan = PLAN.to_string();
    plan.replace_range(
        variants,
        "[variants.default]\nabout = \"pf is off\"\nrules = { filter = \"none\" }\n\n[variants.rules]\n\
         rules = { tool = \"pf\", filter = \"stateless\", before = 7 }\n\n\
         [collect]\ncommands = [\"pfctl -s info; pfctl -s rules\"]\n\n",
    );
    plan.replace("\"freebsd\"", "\"openbsd\"")
        .replace("blocks = 2", "blocks = 1\norder = \"sequential\"")
}

/// The state of pf before: on or off, its rules, and whether they are those of the file; comments are not among the rules.
type Case = (&'static str, &'static str, bool);

#[test]
#[ignore = "needs root and openssh-server"]
fn pf_is_put_back_as_it_was() {
    is_put_back(&[("on", RULES, true), ("off", "", false)]);
}

#[test]
#[ignore = "needs root and openssh-server"]
fn takes_minutes_pf_is_put_back_whatever_it_was() {
    is_put_back(&[
        ("on", RULES, true),
        ("on", "", true),
        ("off", RULES, false),
        ("off", "", false),
    ]);
}

fn is_put_back(cases: &[Case]) {
    let bsd = Bsd::with_openbsd();
    for (number, (pf, rules, file)) in cases.iter().copied().enumerate() {
        let case = format!("{pf}, {rules:?}, {file}");
        bsd.set("router", "pf", pf);
        std::fs::write(bsd.state("router").join("pf.rules"), rules).unwrap();
        let tables = bsd.state("router").join("pf.tables");
        let _ = std::fs::remove_dir_all(&tables);
        std::fs::create_dir(&tables).unwrap();
        if !rules.is_empty() {
            std::fs::write(tables.join("bad"), "").unwrap();
        }
        let own = if file {
            format!("# its own\n{RULES}")
        } else {
            "pass\n".into()
        };
        std::fs::write(bsd.state("router").join("root/etc/pf.conf"), own).unwrap();
        let records = format!("records-{number}");
        bsd.write("plan.toml", &plan());
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
        assert!(
            trials.len() == 2 && trials.iter().all(|t| t["audit"]["valid"] == true),
            "{trials:#?}"
        );
        let said = |n: usize| trials[n]["collected"][0]["output"]["Ok"].as_str().unwrap();
        assert!(
            said(0).starts_with("Status: Disabled"),
            "{case}: {}",
            said(0)
        );
        assert!(
            said(1).starts_with("Status: Enabled") && said(1).lines().count() > 7,
            "{case}: {}",
            said(1)
        );
        assert!(!said(1).contains("egress"), "{case}: {}", said(1));
        assert_eq!(
            [
                bsd.read("router", "pf").trim(),
                &bsd.read("router", "pf.rules")
            ],
            [pf, rules],
            "{case}"
        );
    }
    assert_eq!(bsd.loads(), 0);
}

/// Rules that cut an ssh connection without a state.
const BLOCKS: &str = "block return all\npass in proto tcp from any to any port 22 flags S/SA\n";

#[test]
#[ignore = "needs root and openssh-server"]
fn a_firewall_that_is_turned_on_again_does_not_end_the_campaign() {
    // The rules of pf give the connection a state first; where it is cut all the same, linerate makes another.
    let bsd = Bsd::with_openbsd();
    for cuts in [false, true] {
        bsd.set("router", "pf", "on");
        std::fs::write(bsd.state("router").join("log"), "").unwrap();
        for file in ["pf.rules", "root/etc/pf.conf"] {
            std::fs::write(bsd.state("router").join(file), BLOCKS).unwrap();
        }
        if cuts {
            bsd.set("router", "cuts", "once");
        }
        bsd.write("plan.toml", &plan());
        let records = format!("records-{cuts}");
        let ended = bsd
            .linerate(&["run", "plan.toml", "--out", &records])
            .run()
            .no_panic();
        let log = bsd.log("router");
        assert!(
            ended.status.success(),
            "{}{}{log:?}",
            ended.stdout,
            ended.stderr
        );
        let trials = super::trials(&bsd.scratch.file(&records));
        assert!(
            trials.len() == 2 && trials.iter().all(|t| t["audit"]["valid"] == true),
            "{trials:#?}"
        );
        assert_eq!(
            log.iter().filter(|line| line.contains("is cut")).count(),
            usize::from(cuts),
            "{log:?}"
        );
        assert_eq!(
            [
                bsd.read("router", "pf").trim(),
                &bsd.read("router", "pf.rules")
            ],
            ["on", BLOCKS]
        );
    }
}
