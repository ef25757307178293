//! Files, routes and neighbours that a variant changes on a scripted router come back, over the real sshd.

use super::bsd::{Bsd, PLAN};
use std::fs;
use std::os::unix::fs::symlink;

/// A plan whose second variant sets these keys, as short as can be.
fn plan(keys: &str, system: &str) -> String {
    let mask = PLAN.find("[variants.mask]").unwrap()..PLAN.find("[compare]").unwrap();
    let mut plan = PLAN.to_string();
    plan.replace_range(mask, &format!("[variants.other]\n{keys}\n\n"));
    plan.replace("blocks = 2", "blocks = 1\norder = \"sequential\"")
        .replace("\"freebsd\"", &format!("\"{system}\""))
}

#[track_caller]
fn run(bsd: &Bsd, plan: &str) {
    bsd.write("plan.toml", plan);
    let ended = bsd
        .linerate(&["run", "plan.toml", "--out", "records"])
        .run()
        .no_panic();
    assert!(
        ended.status.success(),
        "{}{}\n{:?}",
        ended.stdout,
        ended.stderr,
        bsd.log("router")
    );
}

#[test]
#[ignore = "needs root and openssh-server"]
fn a_file_that_is_a_link_stays_one() {
    let bsd = Bsd::new();
    let boot = bsd.state("router").join("root/boot");
    fs::create_dir(boot.join("cfg")).unwrap();
    fs::write(boot.join("cfg/own.conf"), "its own\n").unwrap();
    symlink("cfg/own.conf", boot.join("first.conf")).unwrap();
    symlink("/boot/first.conf", boot.join("own.conf")).unwrap();
    symlink("cfg/absent.conf", boot.join("absent.conf")).unwrap();
    let keys = "files = [{ path = \"/boot/own.conf\", text = \"linerate's\\n\" }, { path = \"/boot/absent.conf\", text = \"new\\n\" }]";
    let collect = format!(
        "[collect]\ncommands = [\"cat {}; true\"]\n\n[compare]",
        boot.join("cfg/*").display()
    );
    run(&bsd, &plan(keys, "freebsd").replace("[compare]", &collect));
    let trials = super::trials(&bsd.scratch.file("records"));
    let said = |n: usize| trials[n]["collected"][0]["output"]["Ok"].as_str().unwrap();
    assert_eq!([said(0), said(1)], ["its own\n", "new\nlinerate's\n"]);
    assert_eq!(
        fs::read_to_string(boot.join("cfg/own.conf")).unwrap(),
        "its own\n"
    );
    for (link, to) in [
        ("own.conf", "/boot/first.conf"),
        ("first.conf", "cfg/own.conf"),
        ("absent.conf", "cfg/absent.conf"),
    ] {
        assert_eq!(fs::read_link(boot.join(link)).unwrap().to_str(), Some(to));
    }
    assert_eq!(fs::read_dir(boot.join("cfg")).unwrap().count(), 1);
}

#[test]
#[ignore = "needs root and openssh-server"]
fn routes_and_neighbours_that_were_there_come_back() {
    let keys = r#"routes.explicit = [
  { to = "203.0.113.0/24", via = "198.19.0.203", end = "out" },
  { to = "192.0.2.0/24", via = "198.19.0.203", end = "out" },
]
neighbours.explicit = [
  { address = "198.19.0.7", mac = "02:00:00:00:00:77", end = "out" },
  { address = "198.19.0.8", mac = "02:00:00:00:00:88", end = "out" },
  { address = "198.19.0.9", mac = "02:00:00:00:00:99", end = "out" },
  { address = "2001:db8::9", mac = "02:00:00:00:00:99", end = "out" },
]"#;
    for bsd in [Bsd::new(), Bsd::with_openbsd()] {
        let (arp, routes) = (
            bsd.read("router", "arp"),
            bsd.read("router", "routes") + "203.0.113.0/24 198.18.0.203 igb1\n",
        );
        fs::write(bsd.state("router").join("routes"), &routes).unwrap();
        let learned = "198.19.0.8 00:00:00:00:00:08 igb2\n";
        let permanent = "198.19.0.7 00:00:00:00:00:07 igb2 permanent\n2001:db8::9 00:00:00:00:00:09 igb2 permanent\n";
        fs::write(
            bsd.state("router").join("arp"),
            format!("{arp}{learned}{permanent}"),
        )
        .unwrap();
        let system = bsd.read("router", "system");
        let collect = "[collect]\ncommands = [\"arp -n 198.19.0.8; ndp -n 2001:db8::9; route -n get 203.0.113.0/24; true\"]\n\n[compare]";
        run(
            &bsd,
            &plan(keys, system.trim()).replace("[compare]", collect),
        );
        let trials = super::trials(&bsd.scratch.file("records"));
        let said = trials[1]["collected"][0]["output"]["Ok"].as_str().unwrap();
        for part in [
            "02:00:00:00:00:88",
            "02:00:00:00:00:99",
            "gateway: 198.19.0.203",
        ] {
            assert!(said.contains(part), "{system}{said}");
        }
        let sorted = |text: &str| {
            let mut lines: Vec<String> = text.lines().map(String::from).collect();
            lines.sort();
            lines
        };
        assert_eq!(
            sorted(&bsd.read("router", "arp")),
            sorted(&format!("{arp}{permanent}")),
            "{system}"
        );
        assert_eq!(
            sorted(&bsd.read("router", "routes")),
            sorted(&routes),
            "{system}"
        );
    }
}
