//! The kernel of a router under load, looked at by its DTrace or btrace, both scripted.

use super::bsd::{Bsd, PLAN};
use serde_json::Value;

const STACK: &str =
    "              kernel`ip_tryforward+0x5d\n              kernel`ether_demux+0x1\n";

/// The profile of a campaign of one variant, and its page.
fn profiled(bsd: &Bsd, system: &str) -> (Value, String) {
    let one = PLAN.find("[variants.mask]").unwrap()..PLAN.find("[traffic]").unwrap();
    let mut plan = PLAN
        .replace("[\"freebsd\"]", &format!("[\"{system}\"]"))
        .replace("blocks = 2", "blocks = 1");
    plan.replace_range(one, "[collect]\nprofile = \"200 ms\"\n\n");
    let ended = bsd.run(&plan, &["--full"]);
    assert!(ended.status.success(), "{}", ended.stderr);
    let summary = std::fs::read_to_string(format!("{}/summary.json", bsd.records())).unwrap();
    let summary: Value = serde_json::from_str(&summary).unwrap();
    (summary["profiles"][0].clone(), ended.stdout)
}

fn missing(profile: &Value) -> Vec<&str> {
    let all = profile["missing"]
        .as_array()
        .unwrap()
        .iter()
        .map(|why| why.as_str().unwrap());
    all.filter(|why| !why.starts_with("events of the CPUs"))
        .collect()
}

#[test]
#[ignore = "needs root and openssh-server"]
fn takes_minutes_freebsd_is_looked_at_by_dtrace() {
    let bsd = Bsd::new();
    let head = "           value  ------------- Distribution ------------- count\n";
    let prints = [
        (
            "profile",
            format!(
                "{STACK}               40\n\n              kernel`cpu_idle+0x1\n              900\n"
            ),
        ),
        (
            "stages",
            format!("  ether_input to ether_output\n{head}    1024 |@@@ 30\n    2048 |@ 1\n"),
        ),
        (
            "locks",
            format!("found:3\n\n  lock em0 core\n{STACK}         70000000\n"),
        ),
        (
            "drops",
            format!("found:9\n\n  ips_noroute\n{STACK}                9\n"),
        ),
    ];
    std::fs::create_dir(bsd.state("router").join("dtrace")).unwrap();
    for (probe, text) in &prints {
        bsd.set("router", &format!("dtrace/{probe}"), text);
    }
    bsd.set("router", "modules", "dtrace");
    let (profile, page) = profiled(&bsd, "freebsd");
    assert_eq!(missing(&profile), [""; 0], "{profile:#}");
    assert_eq!(profile["functions"][0]["name"], "ip_tryforward");
    assert!(
        profile["stages"]["whole"]["buckets"]
            .as_array()
            .is_some_and(|whole| !whole.is_empty()),
        "{profile:#}"
    );
    assert_eq!(
        profile["events"]["drops"]["drop ips_noroute in ip_tryforward"],
        9
    );
    assert_eq!(
        (
            &profile["events"]["waits"]["ns"],
            &profile["events"]["waits"]["times"]
        ),
        (&70_000_000.into(), &3.into())
    );
    assert!(page.contains("default: 3 waits take"), "{page}");
    let stacks =
        std::fs::read_to_string(format!("{}/profiles/1-locks.stack", bsd.records())).unwrap();
    assert_eq!(stacks, "ether_demux;ip_tryforward;lock em0 core 70000000\n");
    assert!(
        bsd.log("router")
            .iter()
            .all(|line| !line.contains("kldload")),
        "{:?}",
        bsd.log("router")
    );

    // Without its modules, every part says why it is missing, and none is loaded.
    bsd.set("router", "modules", "pf");
    std::fs::remove_dir_all(bsd.records()).unwrap();
    let (_, page) = profiled(&bsd, "freebsd");
    assert!(page.contains("DTrace is not loaded there"), "{page}");
    assert!(
        bsd.log("router")
            .iter()
            .all(|line| !line.contains("kldload")),
        "{:?}",
        bsd.log("router")
    );
}

#[test]
#[ignore = "needs root and openssh-server"]
fn takes_minutes_openbsd_is_sampled_by_btrace_and_says_what_it_lacks() {
    let bsd = Bsd::with_openbsd();
    std::fs::create_dir(bsd.state("router").join("dtrace")).unwrap();
    bsd.set(
        "router",
        "dtrace/profile",
        "@[\n ip_forward+0x1\n ether_input+0x2\n]: 40\n",
    );
    let mut sysctls = bsd.read("router", "sysctl");
    sysctls.push_str("kern.allowdt=1");
    bsd.set("router", "sysctl", &sysctls);
    let (profile, page) = profiled(&bsd, "openbsd");
    assert_eq!(profile["functions"][0]["name"], "ip_forward", "{page}");
    let missing = missing(&profile);
    assert!(
        missing.len() == 3 && missing.iter().all(|why| why.contains("OpenBSD")),
        "{missing:?}"
    );
}
