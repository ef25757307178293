//! `linerate facts` and `linerate advise`: saved folders, a real namespace, and the lines for files.

use crate::common::{LINERATE, Namespace, Program, Scratch, linerate, linerate_line};
use crate::sshd::SshLab;
use serde_json::Value;
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
    assert_eq!(
        linerate(["facts", "--save", kept]).run().status.code(),
        Some(1)
    );
    for (place, said) in [
        ("/no/such/folder", "there is no folder"),
        (&folder.file(""), "no file in it shows"),
    ] {
        let refused = linerate(["advise", place]).run();
        assert!(
            !refused.status.success() && refused.stderr.contains(said),
            "{refused:?}"
        );
    }
    // Somebody named the folder above.
    for name in ["left", "right"] {
        fs::create_dir(folder.file(name)).unwrap();
        let file = folder.file(&format!("{name}/uname-a.txt"));
        fs::write(file, "FreeBSD fw 14.1-RELEASE amd64\n").unwrap();
        let refused = linerate(["facts", &folder.file("")]).run();
        let said = match name {
            "left" => "; its subfolder left has such files",
            _ => "; its subfolders left, right have such files",
        };
        refused.fails(1, &["no file in it shows the system", said]);
    }
    let missing = linerate(["facts", kept, "--interface", "no0"]).run();
    assert!(
        missing.status.code() == Some(2) && missing.stderr.contains("no interface no0"),
        "{missing:?}"
    );
}

/// The script, carried out on files in a folder; settings of the running system stay.
fn carry_out(script: &str, folder: &str) {
    let script = script
        .replace("keep /", &format!("keep {folder}/"))
        .replace("set -u", "set -u; sysctl() { :; }");
    let ran = Program::new("sh").args(["-c", &script]).run().ok();
    assert!(ran.stderr.is_empty(), "{ran:?}");
}

#[test]
fn the_script_and_the_diff_make_the_same_files() {
    let place = apu2();
    let of = |form| output(&["advise", &place, "--release", "11.1", "--format", form]);
    let [script, diff] = ["shell", "diff"].map(of);
    assert!(
        diff.contains(
            "--- /dev/null\n+++ /boot/loader.conf\n@@ -0,0 +1,1 @@\n+hw.igb.rx_process_limit=\"-1\"\n"
        ),
        "{diff}"
    );
    assert!(
        script.contains("\ntry sysctl kern.random.harvest.mask=351\n"),
        "{script}"
    );
    let folders = [Scratch::new(), Scratch::new()];
    for folder in &folders {
        ["etc", "boot"]
            .iter()
            .for_each(|name| fs::create_dir(folder.path().join(name)).unwrap());
        fs::copy(
            Path::new(&place).join("etc/rc.conf"),
            folder.path().join("etc/rc.conf"),
        )
        .unwrap();
    }
    let [by_script, by_diff] = folders
        .each_ref()
        .map(|folder| folder.file("").trim_end_matches('/').to_string());
    carry_out(&script, &by_script);
    let patch = folders[1].file("advice.diff");
    fs::write(&patch, &diff).unwrap();
    Program::new("patch")
        .args(["-s", "-p1", "-d", &by_diff, "-i", &patch])
        .run()
        .ok();
    let text = |folder: &str, file| fs::read_to_string(Path::new(folder).join(file)).unwrap();
    for file in ["etc/rc.conf", "boot/loader.conf"] {
        assert_eq!(text(&by_script, file), text(&by_diff, file));
    }
    assert!(text(&by_diff, "etc/rc.conf").ends_with("\nharvest_mask=\"351\"\n"));
    // A second time it changes nothing; a line with the key goes, wherever it stands.
    fs::write(
        folders[0].path().join("etc/rc.conf"),
        "# first\nharvest_mask = \"511\"\ngateway_enable=\"YES\"\n",
    )
    .unwrap();
    carry_out(&script, &by_script);
    carry_out(&script, &by_script);
    assert_eq!(
        text(&by_script, "etc/rc.conf"),
        "# first\ngateway_enable=\"YES\"\nharvest_mask=\"351\"\n"
    );
    let book = of("ansible");
    assert!(book.contains("path: \"/etc/rc.conf\"\n        regexp: \"^\\\\s*harvest_mask\\\\s*=\"\n        line: \"harvest_mask=\\\"351\\\"\""), "{book}");
}

#[test]
fn what_is_to_be_measured_is_a_comment_unless_it_is_named() {
    let place = format!("{TESTDATA}/facts/linux-firewall");
    let line = "sysctl net.core.netdev_budget=600";
    let of = |form, item: &[&str]| output(&[&["advise", &place, "--format", form], item].concat());
    let script = of("shell", &[]);
    assert!(
        script.contains("measure it first: linerate run napi-budget\n# try")
            && script.contains(&format!("\n# try {line}\n")),
        "{script}"
    );
    let named = of("shell", &["--item", "linux-budget"]);
    assert!(
        named.contains(&format!("\ntry {line}\n")) && !named.contains("redirects"),
        "{named}"
    );
    assert!(
        of("diff", &[])
            .contains("\n# /etc/sysctl.d/90-linerate.conf: +net.core.netdev_budget = 600\n")
    );
    assert!(
        of("ansible", &[])
            .lines()
            .filter(|line| line.contains("netdev_budget"))
            .all(|line| line.starts_with('#'))
    );
    linerate(["advise", &place, "--item", "linux-bugdet"])
        .run()
        .fails(2, &["did you mean \"linux-budget\"?"]);
}

#[test]
fn limits_of_pf_stand_before_its_rules_and_behind_its_options() {
    let folder = Scratch::new();
    fs::create_dir_all(folder.path().join("etc")).unwrap();
    fs::write(
        folder.path().join("uname.txt"),
        "FreeBSD fw 13.2-RELEASE amd64\n",
    )
    .unwrap();
    fs::write(
        folder.path().join("etc/rc.conf"),
        "gateway_enable=\"YES\"\npf_enable=\"YES\"\n",
    )
    .unwrap();
    let place = &folder.file("");
    let all = json(&["advise", place, "--connections", "1M", "--json"]);
    assert_eq!(all["role"], "firewall");
    let items = all["items"].as_array().unwrap();
    let pf = items
        .iter()
        .find(|item| item["id"] == "freebsd-pf-states")
        .unwrap();
    assert_eq!(pf["settings"][0]["wanted"], "2000000");
    assert_eq!(pf["settings"][0]["lasting"]["option"], true);
    assert_eq!(pf["settings"][1]["wanted"], "8388608");
    let script = output(&["advise", place, "--connections", "1M", "--format", "shell"]);
    let line = script
        .lines()
        .find(|line| line.contains("pf.conf"))
        .unwrap();
    assert!(
        line.starts_with("try keep /etc/pf.conf 'set limit states' 'set limit states 2000000' '^"),
        "{line}"
    );
    let rules = folder.path().join("etc/pf.conf");
    fs::write(
        &rules,
        "set limit states 5000\nset limit { states 1, frags 9 }\n\npass\npass\n",
    )
    .unwrap();
    fs::create_dir(folder.path().join("boot")).unwrap();
    carry_out(&script, place.trim_end_matches('/'));
    assert_eq!(
        fs::read_to_string(&rules).unwrap(),
        "set limit { states 1, frags 9 }\n\nset limit states 2000000\npass\npass\n"
    );
}

#[test]
fn the_advice_as_a_plan_is_one_for_tune() {
    let folder = Scratch::new();
    let linux = format!("{TESTDATA}/facts/linux-firewall");
    for (place, release, expected) in [
        (
            linux.as_str(),
            "6.18",
            "[variants.linux-rp-filter]\nfrom = \"as-it-is\"",
        ),
        (
            &apu2(),
            "10.3",
            "[variants.freebsd-rx-process-limit]\nfrom = \"as-it-is\"",
        ),
    ] {
        let plan = output(&["advise", place, "--release", release, "--format", "plan"]);
        assert!(plan.contains(expected), "{plan}");
        let file = folder.file("plan.toml");
        fs::write(&file, &plan).unwrap();
        // The lab file that the plan for a host names.
        let lab = output(&["lab", "example", "three-hosts"]);
        fs::write(folder.file("lab.toml"), lab).unwrap();
        let checked = linerate(["plan", "check", &file]).run();
        assert!(checked.status.success(), "{checked:?}\n{plan}");
    }
    // An end host is tested on the path that its buffers are for, with the settings that a namespace has.
    let path = [
        "advise", &linux, "--role", "endhost", "--rate", "500M", "--rtt", "30ms", "--format",
        "plan",
    ];
    let plan = output(&path);
    for part in [
        "mode = \"end-hosts\"",
        "path = { rtt = \"30 ms\", rate = \"500 Mbit/s\" }",
        "[variants.linux-tcp-buffers]",
    ] {
        assert!(plan.contains(part), "{part}: {plan}");
    }
    assert!(!plan.contains("net.core"), "{plan}");
    let file = folder.file("path.toml");
    fs::write(&file, &plan).unwrap();
    linerate(["plan", "check", &file]).run().ok();
    assert!(
        output(&["advise", &linux, "--format", "plan"])
            .contains("\"net.ipv4.conf.all.rp_filter\" = 1")
    );
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
    let settings = [
        "sysctl",
        "-qw",
        "net.ipv4.ip_forward=1",
        "net.ipv4.conf.all.rp_filter=1",
    ];
    namespace.exec(&settings).run().ok();
    let facts = json(&[
        "facts",
        "--namespace",
        &namespace.name,
        "--interface",
        "t0",
        "--json",
    ]);
    let found = &facts["configuration"];
    assert_eq!(found["cards"].as_array().unwrap().len(), 1);
    assert_eq!(
        (&found["cards"][0]["name"], &found["cards"][0]["kind"]),
        (&"t0".into(), &"veth".into())
    );
    assert_eq!(found["sysctls"]["net.ipv4.ip_forward"], "1");
    let advice = json(&["advise", "--namespace", &namespace.name, "--json"]);
    assert_eq!(advice["role"], "router");
    let items = advice["items"].as_array().unwrap();
    let filter = items
        .iter()
        .find(|item| item["id"] == "linux-rp-filter")
        .unwrap();
    let settings = filter["settings"].as_array().unwrap();
    let all = settings
        .iter()
        .find(|one| one["name"] == "net.ipv4.conf.all.rp_filter")
        .unwrap();
    assert_eq!((&all["now"], &all["wanted"]), (&"1".into(), &"0".into()));
    // Some settings are for root alone; without it the others are known all the same.
    let plain = linerate(["facts", "--json"]).user(65534).run().ok().json();
    assert_eq!(
        plain["configuration"]["sysctls"]["net.ipv4.ip_forward"]
            .as_str()
            .map(str::len),
        Some(1),
        "{plain}"
    );
    // The namespace was asked, not changed.
    let now = namespace
        .exec(&["sysctl", "-n", "net.ipv4.conf.all.rp_filter"])
        .run()
        .ok()
        .stdout;
    assert_eq!(now.trim(), "1");
}

#[test]
#[ignore = "needs root and openssh-server"]
fn a_host_is_asked_over_ssh() {
    let lab = SshLab::new(&["router"]);
    let config = lab.config().display().to_string();
    let prefix = lab.prefix();
    // By a name of ssh's configuration, and in the form of lab files.
    for host in ["router", &format!("root@{}:22", lab.hosts[0].address)] {
        let words = prefix[1..].iter().map(String::as_str);
        let words = words.chain([LINERATE, "facts", host, "--json", "--ssh-config", &config]);
        let facts = Program::new(&prefix[0])
            .args(words)
            .within(30)
            .run()
            .ok()
            .json();
        assert_eq!(
            (&facts["of"], &facts["configuration"]["system"]["kernel"]),
            (&host.into(), &"linux".into())
        );
        assert!(
            facts["configuration"]["sysctls"]["net.ipv4.ip_forward"].is_string(),
            "{facts}"
        );
    }
}

/// Who has no ssh to the router has a terminal on it.
#[test]
fn a_host_that_is_not_reached_can_be_saved() {
    for verb in ["facts", "advise"] {
        linerate([verb, "root@nowhere.invalid"]).run().fails(
            1,
            &[
                "root@nowhere.invalid",
                "; or save the router's outputs into a folder: linerate facts --help",
            ],
        );
    }
    let help = output(&["facts", "--help"]);
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(help.contains("docs/advise.md lists the commands"), "{help}");
}

/// Settings of an OPNsense go where its pages keep them: it would overwrite the file.
#[test]
fn a_saved_opnsense_gets_the_places_of_its_pages() {
    let folder = Scratch::new();
    let save = |name: &str, text: &str| {
        let file = folder.file(name);
        fs::create_dir_all(Path::new(&file).parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    };
    save("uname-a.txt", "FreeBSD fw 14.1-RELEASE-p3 amd64\n");
    save(
        "sysctl-a.txt",
        "net.inet.ip.forwarding: 1\nnet.inet.ip.redirect: 1\n",
    );
    let advice = || output(&["advise", &folder.file(""), "--item", "freebsd-redirect"]);
    let of_freebsd = advice();
    assert!(of_freebsd.contains("/etc/sysctl.conf"), "{of_freebsd}");
    save(
        "usr/local/opnsense/version/core",
        "{\n    \"product_version\": \"24.7.1\",\n}\n",
    );
    let of_opnsense = advice();
    assert!(
        of_opnsense.contains("System > Settings > Tunables")
            && !of_opnsense.contains("/etc/sysctl.conf"),
        "{of_opnsense}"
    );
}

/// The destination is read as in lab files, by each verb that takes one.
#[test]
fn a_destination_that_ssh_cannot_have_is_told() {
    for line in [
        "facts HOST",
        "advise HOST",
        "watch HOST",
        "apply HOST --all",
    ] {
        let line = line.replace("HOST", "root@router:ssh");
        linerate_line(&line).run().fails(
            2,
            &["ssh cannot connect to 'root@router:ssh': a port is a number"],
        );
    }
}
