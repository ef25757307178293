//! A router of FreeBSD and a tester with pkt-gen, both scripted, over the real sshd.

use super::bsd::{Bsd, PLAN};
use super::trials;

/// A plan whose second variant takes a reboot.
fn with_reboots() -> String {
    PLAN.replace(
        "[variants.mask]",
        "[variants.queues]\nboot = { \"hw.igb.num_queues\" = 1 }\n\n[variants.mask]",
    )
    .replace("[trials]", "[trials]\nreboot = \"when-needed\"")
}

#[test]
#[ignore = "needs root and openssh-server"]
fn a_router_is_measured_by_pkt_gen() {
    let bsd = Bsd::new();
    let mask = "[variants.mask]\nmodules = [\"if_lagg\"]\ninterface.in.tx-checksum = false";
    let plan = PLAN.replace("[variants.mask]", mask);
    bsd.write("plan.toml", &plan);
    let shown = bsd
        .linerate(&["plan", "show", "plan.toml", "--lab", "LAB.toml"])
        .run()
        .ok()
        .stdout;
    assert_eq!(bsd.log("router"), [""; 0], "nothing was touched");
    let ended = bsd.run(&plan, &[]);
    assert!(ended.status.success(), "{}", ended.stderr);
    let trials = trials(&bsd.records());
    assert_eq!(trials.len(), 4);
    for trial in &trials {
        assert_eq!(trial["audit"]["valid"], true, "{:#}", trial["audit"]);
        let received = trial["rates"]["received"].as_f64().unwrap();
        assert!((800e3..1.1e6).contains(&received), "{received} frames/s");
    }
    let mask = "sysctl kern.random.harvest.mask";
    let there_and_back = [
        "kldload -n if_lagg",
        &format!("{mask}=351"),
        &format!("{mask}=511"),
        "kldunload if_lagg",
    ];
    let (cards, log): (Vec<_>, Vec<_>) = bsd
        .log("router")
        .into_iter()
        .partition(|line| line.starts_with("ifconfig"));
    assert!(
        cards.contains(&"ifconfig igb1 -txcsum".to_string()),
        "{cards:?}"
    );
    // Each change was announced.
    let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    for change in [
        "kldload -n if_lagg",
        "sysctl kern.random.harvest.mask=351",
        "ifconfig igb1 -txcsum",
        "pkt-gen",
    ] {
        assert!(shown.contains(change), "{change}: {shown}");
    }
    let mut on: Vec<String> = bsd
        .read("router", "if/igb1")
        .lines()
        .filter_map(|line| line.strip_prefix("options "))
        .flat_map(|all| all.split(',').map(String::from))
        .collect();
    on.sort();
    assert_eq!(
        on,
        ["LRO", "RXCSUM", "TSO4", "TXCSUM", "VLAN_MTU"],
        "TSO goes with txcsum: {cards:?}"
    );
    assert!(
        !log.is_empty() && log.chunks(4).all(|four| four == there_and_back),
        "{log:?}"
    );
    assert_eq!(bsd.loads(), 0);
}

/// Neither the plan nor the lab file says what 100 % of the load is: the router's cards do.
#[test]
#[ignore = "needs root and openssh-server"]
fn takes_minutes_the_router_says_how_fast_its_links_are() {
    let bsd = Bsd::new();
    bsd.lab("");
    let file = bsd.scratch.file("LAB.toml");
    let lab = std::fs::read_to_string(&file).unwrap();
    bsd.write("LAB.toml", &lab.replace("link-speed = \"1 Gbit/s\"\n", ""));
    let plan = "title = \"t\"\nquestion = \"q\"\n[lab]\nfile = \"LAB.toml\"\nsystems = [\"freebsd\"]\n[variants.default]\n\
                [traffic]\nsize = \"1518 B\"\nflows = 1\n[trials]\nmeasure = \"rfc2544\"\ntests = [\"frame-loss\"]\n\
                duration = \"1 s\"\ndrain = \"1 ms\"\nsettle = \"1 ms\"\n";
    bsd.run(plan, &[]);
    let text = std::fs::read_to_string(format!("{}/summary.json", bsd.records())).unwrap();
    let summary: serde_json::Value = serde_json::from_str(&text).unwrap();
    let maximum = &summary["benchmarks"][0]["maximum"];
    assert_eq!(
        (&maximum["medium"], maximum["fps"].as_f64().map(f64::round)),
        (&true.into(), Some(81_274.0))
    );
    let first = trials(&bsd.records())[0]["asked_fps"].as_f64().unwrap();
    assert_eq!(first.round(), 81_274.0);
    bsd.set(
        "router",
        "if/igb2",
        &bsd.read("router", "if/igb2").replace("1000baseT", "none"),
    );
    let ended = bsd.linerate(&["run", "plan.toml", "--out", "again"]).run();
    let says = "the load that is 100 % is unknown";
    assert!(
        ended.status.code() == Some(2) && ended.stderr.contains(says),
        "{}",
        ended.stderr
    );
}

#[test]
#[ignore = "needs root and openssh-server"]
fn settings_of_the_boot_take_reboots_and_a_router_is_waited_for_until_it_forwards() {
    let bsd = Bsd::new();
    bsd.reboots(true);
    bsd.set("router", "forward-s", "1");
    let ended = bsd.run(
        &with_reboots().replace("blocks = 2", "blocks = 1"),
        &["--full"],
    );
    assert!(ended.status.success(), "{}", ended.stderr);
    let trials = trials(&bsd.records());
    assert!(
        trials.len() == 3 && trials.iter().all(|t| t["audit"]["valid"] == true),
        "{trials:#?}"
    );
    // To the trial of that variant, and back from it.
    assert_eq!(
        bsd.read("router", "boots").trim(),
        "2",
        "{:?}",
        bsd.log("router")
    );
    assert!(
        ended.stdout.contains(" with 2 reboots of the DUT: "),
        "{}",
        ended.stdout
    );
    let summary: serde_json::Value = serde_json::from_str(
        &std::fs::read_to_string(format!("{}/summary.json", bsd.records())).unwrap(),
    )
    .unwrap();
    // Both boots, and the second until the router forwards: the last trial had begun before one of them at least.
    let last = trials.last().unwrap();
    let told =
        last["began_ns"].as_f64().unwrap() / 1e9 + last["timing"]["run_ns"].as_f64().unwrap() / 1e9;
    assert!(
        summary["seconds"].as_f64().unwrap() > told + 0.5,
        "{} s, {told}",
        summary["seconds"]
    );
    assert_eq!(bsd.read("router", "root/boot/loader.conf.local").trim(), "");
}

/// A plan for two images, the second with a setting of the loader.
fn with_images(router: &str) -> String {
    let images = r#"[variants.new]
image = { file = "images/new.img", install = "cat | upgrade", undo = "boot0cfg -s 1 ada0" }

[variants.newer]
from = "new"
image = { file = "images/newer.img" }
boot = { "hw.igb.num_queues" = 1 }
"#;
    let running =
        format!("cat {router}/running; dd if={router}/slice.$(cat {router}/running) count=1");
    let collect = format!("[collect]\ncommands = [\"{running}\"]\n\n");
    let mask = PLAN.find("[variants.mask]").unwrap()..PLAN.find("[compare]").unwrap();
    let mut plan = PLAN.to_string();
    plan.replace_range(mask, &format!("{images}\n{collect}"));
    plan.replace(
        "blocks = 2",
        "blocks = 1\norder = \"sequential\"\nreboot = \"when-needed\"",
    )
}

#[test]
#[ignore = "needs root and openssh-server"]
fn images_are_installed_booted_measured_and_the_old_one_is_put_back() {
    let bsd = Bsd::new();
    bsd.reboots(true);
    for (file, text) in [("running", "1"), ("active", "1"), ("slice.1", "own")] {
        bsd.set("router", file, text);
    }
    let plan = with_images(&bsd.state("router").display().to_string());
    let ended = bsd.run(&plan, &[]);
    assert_eq!(ended.status.code(), Some(1), "{}", ended.stderr);
    for name in [
        "images/new.img: No such file",
        "images/newer.img: No such file",
    ] {
        assert!(ended.stderr.contains(name), "{}", ended.stderr);
    }
    assert_eq!(bsd.log("router"), [""; 0], "nothing was touched");

    std::fs::create_dir(bsd.scratch.file("images")).unwrap();
    for (name, text) in [("new", "the new image\n"), ("newer", "the newer image\n")] {
        let image = format!("{text}{}", "x".repeat(2_000_000));
        std::fs::write(bsd.scratch.file(&format!("images/{name}.img")), image).unwrap();
    }
    let ended = bsd.run(&plan, &[]);
    assert!(ended.status.success(), "{}", ended.stderr);
    let trials = trials(&bsd.records());
    assert!(
        trials.len() == 3 && trials.iter().all(|t| t["audit"]["valid"] == true),
        "{trials:#?}"
    );
    let ran: Vec<String> = trials
        .iter()
        .map(|t| {
            t["collected"][0]["output"]["Ok"]
                .as_str()
                .unwrap()
                .lines()
                .take(2)
                .collect::<Vec<_>>()
                .join(" ")
        })
        .collect();
    assert_eq!(ran, ["1 own", "2 the new image", "2 the newer image"]);
    // The old one is booted before the next is installed, so that it is not overwritten.
    let log: Vec<String> = bsd
        .log("router")
        .into_iter()
        .filter(|l| !l.starts_with("mount") && !l.starts_with("config"))
        .collect();
    let expected = [
        "upgrade of slice 2: 2000014 bytes",
        "reboot",
        "boot0cfg -s 1",
        "reboot",
        "upgrade of slice 2: 2000016 bytes",
        "reboot",
        // The setting of the loader is the new image's.
        "reboot",
        "boot0cfg -s 1",
        "reboot",
    ];
    assert_eq!(log, expected);
    assert_eq!(
        [bsd.read("router", "running"), bsd.read("router", "slice.1")],
        ["1\n", "own\n"]
    );
    assert_eq!(bsd.read("router", "root/boot/loader.conf.local").trim(), "");
    let campaign =
        std::fs::read_to_string(std::path::Path::new(&bsd.records()).join("campaign.json"))
            .unwrap();
    assert!(
        campaign.contains("\"image images/new.img\": \"2000014 bytes of 20"),
        "{campaign}"
    );

    let touched = bsd.log("router").len();
    // As if it had been stopped, and an image built anew meanwhile.
    std::fs::remove_file(std::path::Path::new(&bsd.records()).join("summary.json")).unwrap();
    std::fs::write(bsd.scratch.file("images/newer.img"), "yet another\n").unwrap();
    let ended = bsd.resume();
    assert_eq!(ended.status.code(), Some(1), "{}", ended.stderr);
    let said = "its rates cannot be compared: in the lab, image images/newer.img is now 12 bytes";
    assert!(ended.stderr.contains(said), "{}", ended.stderr);
    assert_eq!(bsd.log("router").len(), touched, "nothing was touched");
}

#[test]
#[ignore = "needs root and openssh-server"]
fn a_router_that_does_not_come_back_is_turned_off_and_on() {
    let bsd = Bsd::new();
    // The second reboot, which puts it back, it comes back from by itself.
    bsd.reboots_from(Some(2));
    bsd.lab(&format!("power-cycle = [\"{}\"]", bsd.power()));
    bsd.patience("20 s");
    let ended = bsd.run(&with_reboots().replace("blocks = 2", "blocks = 1"), &[]);
    assert!(ended.status.success(), "{}", ended.stderr);
    assert!(
        bsd.ssh.folder().join("power.on.going").exists(),
        "its power was not turned off and on"
    );
    assert!(
        trials(&bsd.records())
            .iter()
            .all(|t| t["audit"]["valid"] == true)
    );
}

#[test]
#[ignore = "needs root and openssh-server"]
fn takes_minutes_a_generator_that_crashes_and_a_wire_that_carries_nothing_are_told() {
    for (host, file, text, parts) in [
        ("tester", "fault", "crash", ["poll err", "run it again"]),
        (
            "tester",
            "link-late-s",
            "3600",
            ["has counted none", "cable"],
        ),
    ] {
        let bsd = Bsd::new();
        bsd.set(host, file, text);
        let ended = bsd.run(&PLAN.replace("blocks = 2", "blocks = 1"), &[]);
        assert_eq!(ended.status.code(), Some(1), "{}", ended.stderr);
        let said = format!("{}{:#?}", ended.stderr, trials(&bsd.records()));
        for part in parts {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert_eq!(bsd.loads(), 0);
        // Restored whatever happened.
        assert_eq!(
            bsd.read("router", "sysctl")
                .lines()
                .filter(|l| l.ends_with("mask=511"))
                .count(),
            1
        );
    }
}
