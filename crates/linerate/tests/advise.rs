//! `linerate facts` and `linerate advise`: saved folders, a real namespace, and the lines for files.

mod common;
#[path = "../../remote/tests/common/sshd.rs"]
mod sshd;

use common::{LINERATE, Namespace, Program, Scratch, linerate};
use serde_json::Value;
use sshd::SshLab;
use std::fs;
use std::path::Path;

const TESTDATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata");

fn output(args: &[&str]) -> String {
    linerate(args).run().ok().stdout
}

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&output(args)).unwrap()
}

fn apu2() -> String {
    format!(
        "{TESTDATA}/netbenches/AMD_GX-412TC_4Cores/Intel_i210AT/kern.random.harvest.mask/configs/511-default"
    )
}

#[test]
fn saved_answers_say_the_same_as_the_machine() {
    let folder = Scratch::new();
    let kept = &folder.file("kept");
    let now = json(&["facts", "--json", "--save", kept]);
    let then = json(&["facts", kept, "--json"]);
    assert_eq!(now["configuration"], then["configuration"]);
    assert_eq!(now["configuration"]["system"]["kernel"], "linux");
    // A second time it would overwrite them.
    assert_eq!(linerate(["facts", "--save", kept]).run().status.code(), Some(1));
    for (place, said) in
        [("/no/such/folder", "there is no folder"), (&folder.file(""), "no file in it shows")]
    {
        let refused = linerate(["advise", place]).run();
        assert!(!refused.status.success() && refused.stderr.contains(said), "{refused:?}");
    }
    let missing = linerate(["facts", kept, "--interface", "no0"]).run();
    assert!(missing.status.code() == Some(2) && missing.stderr.contains("no interface no0"), "{missing:?}");
}

/// The lines of the script, carried out on files in a folder.
#[test]
fn the_script_changes_files_as_the_diff_says() {
    let folder = Scratch::new();
    let place = apu2();
    let script = output(&["advise", &place, "--release", "11.1", "--format", "shell"]);
    let diff = output(&["advise", &place, "--release", "11.1", "--format", "diff"]);
    assert!(diff.contains("+++ /boot/loader.conf\n@@ @@\n+hw.igb.rx_process_limit=\"-1\"\n"), "{diff}");
    assert!(diff.contains("+harvest_mask=\"351\""), "{diff}");
    let (head, tail) = script.split_once("\nkeep() {").unwrap();
    assert!(head.contains("\nsysctl kern.random.harvest.mask=351\n"), "{head}");
    for file in ["boot/loader.conf", "etc/rc.conf"] {
        let to = folder.path().join(file);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
    }
    fs::write(folder.path().join("etc/rc.conf"), "# first\nharvest_mask = \"511\"\ngateway_enable=\"YES\"\n")
        .unwrap();
    let there = folder.file("");
    let there = there.trim_end_matches('/');
    let tail = tail.replace("keep /", &format!("keep {there}/"));
    let run = || {
        let ran = Program::new("sh").args(["-euc", &format!("keep() {{{tail}")]).run().ok();
        assert!(ran.stderr.is_empty(), "{ran:?}");
    };
    run();
    run();
    let rc = fs::read_to_string(folder.path().join("etc/rc.conf")).unwrap();
    assert_eq!(rc, "# first\ngateway_enable=\"YES\"\nharvest_mask=\"351\"\n");
    let loader = fs::read_to_string(folder.path().join("boot/loader.conf")).unwrap();
    assert_eq!(loader, "hw.igb.rx_process_limit=\"-1\"\n");
    let book = output(&["advise", &place, "--release", "11.1", "--format", "ansible"]);
    assert!(book.contains("path: \"/etc/rc.conf\"\n        regexp: \"^\\\\s*harvest_mask\\\\s*=\"\n        line: \"harvest_mask=\\\"351\\\"\""), "{book}");
}

#[test]
fn limits_of_pf_stand_before_its_rules() {
    let folder = Scratch::new();
    fs::create_dir_all(folder.path().join("etc")).unwrap();
    fs::write(folder.path().join("uname.txt"), "FreeBSD fw 13.2-RELEASE amd64\n").unwrap();
    fs::write(folder.path().join("etc/rc.conf"), "gateway_enable=\"YES\"\npf_enable=\"YES\"\n").unwrap();
    let place = &folder.file("");
    let all = json(&["advise", place, "--states", "1000000", "--json"]);
    assert_eq!(all["role"], "firewall");
    let items = all["items"].as_array().unwrap();
    let pf = items.iter().find(|item| item["id"] == "freebsd-pf-states").unwrap();
    assert_eq!(pf["settings"][0]["wanted"], "2000000");
    assert_eq!(pf["settings"][0]["lasting"]["first"], true);
    assert_eq!(pf["settings"][1]["wanted"], "8388608");
    let script = output(&["advise", place, "--states", "1000000", "--format", "shell"]);
    let line = script.lines().find(|line| line.contains("pf.conf")).unwrap();
    assert_eq!(line, "keep /etc/pf.conf 'set limit states' 'set limit states 2000000' first");
    let keep = &script[script.find("keep() {").unwrap()..script.find("\nkeep /").unwrap()];
    let rules = folder.path().join("pf.conf");
    fs::write(&rules, "set limit states 5000\nset skip on lo0\npass\n").unwrap();
    let line = line.replace("/etc/pf.conf", rules.to_str().unwrap());
    Program::new("sh").args(["-euc", &format!("{keep}\n{line}")]).run().ok();
    assert_eq!(fs::read_to_string(&rules).unwrap(), "set limit states 2000000\nset skip on lo0\npass\n");
}

#[test]
fn the_advice_as_a_plan_is_one_for_tune() {
    let folder = Scratch::new();
    let linux = format!("{TESTDATA}/facts/linux-firewall");
    for (place, release, expected) in [
        (linux.as_str(), "6.18", "[variants.linux-rp-filter]\nfrom = \"as-it-is\""),
        (&apu2(), "10.3", "[variants.freebsd-rx-process-limit]\nfrom = \"as-it-is\""),
    ] {
        let plan = output(&["advise", place, "--release", release, "--format", "plan"]);
        assert!(plan.contains(expected), "{plan}");
        let file = folder.file("plan.toml");
        fs::write(&file, &plan).unwrap();
        let checked = linerate(["plan", "check", &file]).run();
        assert!(checked.status.success(), "{checked:?}\n{plan}");
    }
    assert!(output(&["advise", &linux, "--format", "plan"]).contains("\"net.ipv4.conf.all.rp_filter\" = 1"));
}

#[test]
fn plans_of_recommendations_are_shipped_and_rules_documented() {
    let root = Path::new(TESTDATA).join("..");
    let page = fs::read_to_string(root.join("docs/advise.md")).unwrap();
    for rule in linerate_advise::all() {
        assert!(
            rule.plan.is_empty() || root.join(format!("plans/{}.toml", rule.plan)).is_file(),
            "{}: {}",
            rule.id,
            rule.plan
        );
        assert!(
            page.contains(&format!("| `{}` |", rule.id)),
            "docs/advise.md lacks {}: {}",
            rule.id,
            row(rule)
        );
    }
}

fn row(rule: &linerate_advise::rule::Rule) -> String {
    format!("| `{}` | {} |", rule.id, rule.title)
}

#[test]
#[ignore = "needs root"]
fn a_namespace_is_asked_and_its_advice_is_for_it() {
    let namespace = Namespace::new();
    let settings = ["sysctl", "-qw", "net.ipv4.ip_forward=1", "net.ipv4.conf.all.rp_filter=1"];
    namespace.exec(&settings).run().ok();
    let facts = json(&["facts", "--namespace", &namespace.name, "--interface", "t0", "--json"]);
    let found = &facts["configuration"];
    assert_eq!(found["cards"].as_array().unwrap().len(), 1);
    assert_eq!((&found["cards"][0]["name"], &found["cards"][0]["kind"]), (&"t0".into(), &"veth".into()));
    assert_eq!(found["sysctls"]["net.ipv4.ip_forward"], "1");
    let advice = json(&["advise", "--namespace", &namespace.name, "--json"]);
    assert_eq!(advice["role"], "router");
    let items = advice["items"].as_array().unwrap();
    let filter = items.iter().find(|item| item["id"] == "linux-rp-filter").unwrap();
    assert_eq!((&filter["settings"][0]["now"], &filter["settings"][0]["wanted"]), (&"1".into(), &"0".into()));
    // Some settings are for root alone; without it the others are known all the same.
    let plain = linerate(["facts", "--json"]).user(65534).run().ok().json();
    assert_eq!(
        plain["configuration"]["sysctls"]["net.ipv4.ip_forward"].as_str().map(str::len),
        Some(1),
        "{plain}"
    );
    // It was asked, not changed.
    let now = namespace.exec(&["sysctl", "-n", "net.ipv4.conf.all.rp_filter"]).run().ok().stdout;
    assert_eq!(now.trim(), "1");
}

#[test]
#[ignore = "needs root and openssh-server"]
fn a_host_is_asked_over_ssh() {
    let lab = SshLab::new(&["router"]);
    let config = lab.config().display().to_string();
    let prefix = lab.prefix();
    let words = prefix[1..].iter().map(String::as_str);
    let words = words.chain([LINERATE, "facts", "router", "--json", "--ssh-config", &config]);
    let facts = Program::new(&prefix[0]).args(words).within(30).run().ok().json();
    assert_eq!(
        (&facts["of"], &facts["configuration"]["system"]["kernel"]),
        (&"router".into(), &"linux".into())
    );
    assert!(facts["configuration"]["sysctls"]["net.ipv4.ip_forward"].is_string(), "{facts}");
}
