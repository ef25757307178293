//! Facts of machines that are only files in a folder.

use super::facts;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// A made-up root folder that goes away at the end.
struct Tree(PathBuf);

impl Tree {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("linerate-host-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Tree(path)
    }

    fn file(self, path: &str, text: &str) -> Self {
        let path = self.0.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        self
    }

    fn link(self, path: &str, target: &str) -> Self {
        let path = self.0.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(target, path).unwrap();
        self
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const CPUINFO: &str = "processor\t: 0\nmodel name\t: Example CPU @ 2 GHz\nflags\t\t: fpu hypervisor sse\n\nprocessor\t: 1\n";

#[test]
fn an_ordinary_machine() {
    let tree = Tree::new()
        .file("proc/sys/kernel/osrelease", "6.12.0-1\n")
        .file("proc/sys/kernel/version", "#1 SMP\n")
        .file("etc/os-release", "ID=x\nPRETTY_NAME=\"Example Linux 1\"\n")
        .file("proc/cpuinfo", CPUINFO)
        .file("sys/devices/system/cpu/online", "0-3,8\n")
        .file("proc/meminfo", "MemTotal:        2048 kB\nMemFree: 1 kB\n")
        .file(
            "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
            "performance\n",
        )
        .file(
            "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor",
            "powersave\n",
        )
        .file(
            "sys/devices/system/cpu/cpu2/cpufreq/scaling_governor",
            "powersave\n",
        )
        .file(
            "sys/devices/system/clocksource/clocksource0/current_clocksource",
            "tsc\n",
        )
        .file(
            "sys/devices/system/cpu/vulnerabilities/meltdown",
            "Mitigation: PTI\n",
        )
        .file("sys/class/dmi/id/sys_vendor", "QEMU\n")
        .file("sys/class/dmi/id/product_name", "Standard PC\n")
        .file("proc/sys/net/core/bpf_jit_enable", "1\n")
        .file("sys/devices/system/cpu/isolated", "\n");
    let f = facts(&tree.0);
    assert_eq!(
        (f.kernel.as_str(), f.os.as_str()),
        ("6.12.0-1 #1 SMP", "Example Linux 1")
    );
    assert_eq!(
        (f.cpu_model.as_str(), f.cpus, f.memory),
        ("Example CPU @ 2 GHz", 5, 2 << 20)
    );
    assert_eq!(f.hypervisor.as_deref(), Some("QEMU Standard PC"));
    assert_eq!(f.governor, "1 performance, 2 powersave");
    assert_eq!(
        (f.clock_source.as_str(), f.mitigations["meltdown"].as_str()),
        ("tsc", "Mitigation: PTI")
    );
    assert_eq!(
        (
            f.settings["net.core.bpf_jit_enable"].as_str(),
            f.settings["cpu.isolated"].as_str()
        ),
        ("1", "none")
    );
    assert_eq!(f.versions["linerate"], env!("CARGO_PKG_VERSION"));
    assert!(!f.machine.is_empty());
    assert!(["nft", "iptables"].map(|tool| f.versions.contains_key(tool)) == [true; 2]);
}

#[test]
fn interfaces_have_drivers_but_no_addresses() {
    let net = "sys/class/net";
    let tree = Tree::new()
        .file("sys/devices/card/net/eth0/mtu", "9000\n")
        .file("sys/devices/card/net/eth0/speed", "25000\n")
        .file("sys/devices/card/net/eth0/address", "02:00:00:00:00:01\n")
        .file("sys/devices/card/net/eth0/queues/rx-0/rps_cpus", "0")
        .file("sys/devices/card/net/eth0/queues/rx-1/rps_cpus", "0")
        .file("sys/devices/card/net/eth0/queues/tx-0/xps_cpus", "0")
        .link("sys/devices/card/driver", "../../bus/pci/drivers/ice")
        .link("sys/devices/card/net/eth0/device", "../..")
        .link(&format!("{net}/eth0"), "../../devices/card/net/eth0")
        .file(&format!("{net}/lo/mtu"), "65536\n")
        .file(
            &format!("{net}/br-customer/uevent"),
            "DEVTYPE=bridge\nINTERFACE=br-customer\n",
        )
        .file(&format!("{net}/veth12/uevent"), "INTERFACE=veth12\n");
    let found = facts(&tree.0).interfaces;
    assert_eq!(
        found["eth0"],
        "driver ice, 25000 Mbit/s, MTU 9000, 2 receive and 1 transmit queues"
    );
    assert_eq!(found["(without a device)"], "1 bridge, 1 other");
    assert_eq!(found.len(), 2);
    let recorded = serde_json::to_string(&found).unwrap();
    assert!(
        !recorded.contains("02:00") && !recorded.contains("customer"),
        "{recorded}"
    );
}

#[test]
fn what_is_not_known_says_why() {
    let f = facts(&Tree::new().0);
    assert_eq!(f.kernel, "unknown (no /proc/sys/kernel/osrelease)");
    assert_eq!(f.os, "unknown (no /etc/os-release)");
    assert_eq!(f.cpu_model, "unknown (no /proc/cpuinfo)");
    assert_eq!((f.cpus, f.memory, f.hypervisor), (0, 0, None));
    assert_eq!(f.governor, "none visible (virtual machine?)");
    assert_eq!(
        f.mitigations["all"],
        "unknown (no /sys/devices/system/cpu/vulnerabilities)"
    );
    assert_eq!(f.interfaces["all"], "unknown (no /sys/class/net)");
    assert_eq!(
        f.settings["cpu.smt.active"],
        "unknown (no /sys/devices/system/cpu/smt/active)"
    );
}

#[test]
fn other_processors_and_hypervisors() {
    let arm = Tree::new().file(
        "proc/cpuinfo",
        "processor : 0\nCPU implementer : 0x41\nCPU part : 0xd0c\n",
    );
    let f = facts(&arm.0);
    assert_eq!(
        (f.cpu_model.as_str(), f.cpus, f.hypervisor),
        ("ARM implementer 0x41 part 0xd0c", 1, None)
    );
    let clocks = "sys/devices/system/clocksource/clocksource0/available_clocksource";
    let bare = Tree::new()
        .file("proc/cpuinfo", CPUINFO)
        .file(clocks, "tsc kvm-clock\n");
    assert_eq!(facts(&bare.0).hypervisor.as_deref(), Some("KVM"));
    let silent = Tree::new()
        .file("proc/cpuinfo", CPUINFO)
        .file("etc/os-release", "ID=x\n");
    let f = facts(&silent.0);
    assert_eq!(f.hypervisor.as_deref(), Some("of unknown kind"));
    assert_eq!(f.os, "unknown (/etc/os-release has no PRETTY_NAME)");
    let xen = Tree::new().file("sys/hypervisor/type", "xen\n");
    assert_eq!(facts(&xen.0).hypervisor.as_deref(), Some("xen"));
}

#[test]
fn this_machine_is_described_fast() {
    let f = facts(Path::new("/"));
    assert!(
        !f.kernel.starts_with("unknown") && f.cpus > 0 && f.memory > 0,
        "{f:?}"
    );
    // 50 ms is the aim; a loaded test machine gets ten times that, and may be held up in most looks.
    let is_fast = || {
        let began = std::time::Instant::now();
        facts(Path::new("/"));
        began.elapsed().as_millis() < 500
    };
    assert!((0..20).any(|_| is_fast()));
}

#[test]
fn the_memory_of_this_process_is_known() {
    assert!(super::peak_rss_bytes() > 100_000 && super::memory_bytes() > super::peak_rss_bytes());
}
