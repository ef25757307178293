//! The questions as a shell reads them.

use linerate_hosts::configuration::{label, of_saved, questions};
use linerate_hosts::counters;
use linerate_hosts::systems::Kernel;
use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, Stdio};

const KERNELS: [Kernel; 4] = [
    Kernel::Linux,
    Kernel::FreeBsd,
    Kernel::OpenBsd,
    Kernel::NetBsd,
];

#[test]
fn questions_are_whole_scripts() {
    let ends = ["em0", "em1"].map(String::from);
    for kernel in KERNELS {
        let all = questions(kernel, &ends)
            .into_iter()
            .chain([counters::question(kernel, &ends)]);
        for argv in all.filter(|argv| argv[0] == "sh") {
            let read = Command::new("/bin/sh")
                .args(["-n", "-c", &argv[2]])
                .output()
                .unwrap();
            assert!(
                read.status.success() && read.stderr.is_empty(),
                "{read:?}\n{argv:?}"
            );
        }
    }
}

/// The script that asks for settings of the next boot.
fn boot(kernel: Kernel) -> String {
    let mut asked = questions(kernel, &[]).into_iter();
    asked.find(|argv| label(argv) == "boot").unwrap().remove(2)
}

fn printed(script: &str, input: &str) -> String {
    let mut shell = Command::new("sh");
    let shell = shell
        .args(["-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut shell = shell.spawn().unwrap();
    shell
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    String::from_utf8(shell.wait_with_output().unwrap().stdout).unwrap()
}

const LINES: [&str; 24] = [
    "hw.igb.rxd=4096",
    "if_cxgbe_load=\"YES\"",
    "kern.hz=1000",
    "kern.geom.eli.passphrase=geheim",
    "vm.kmem_size=1",
    " gateway_enable=YES",
    "ifconfig_em0=up",
    "ifconfig_em0_ipv6=\"inet6 auto_linklocal\"",
    "ifconfig_wlan0=WPA",
    "hostname=x",
    "wpa_psk=geheim",
    "powerd_flags=\"-a max\"",
    "set limit states 5000",
    "settings x",
    "net.ipv4.ip_forward = 1",
    "-net/ipv4/ip_forward=1",
    "options nf_conntrack hashsize=4",
    "options nf_conntrack_ftp x=1",
    "isolcpus=1",
    "isolcpusx=1",
    "pti",
    "root=/dev/sda1",
    "# kern.hz=1",
    "",
];

/// The filter of a host's shell and that of a saved folder are of one list.
#[test]
fn hosts_and_folders_are_asked_for_the_same_lines() {
    let mut compared = 0;
    for (kernel, uname) in [
        (Kernel::Linux, "Linux a 6.12"),
        (Kernel::FreeBsd, "FreeBSD a 14.2"),
    ] {
        let script = boot(kernel);
        let secrets = script
            .split("grep -viE '")
            .nth(1)
            .and_then(|rest| rest.split('\'').next())
            .unwrap();
        for line in script.lines().filter_map(|line| line.strip_prefix("of '")) {
            let (expression, files) = line.split_once("' ").unwrap();
            let file = files.split(' ').next().unwrap().replace('*', "x");
            let text = if file.starts_with("/proc/") {
                LINES.join("\n").replace(' ', "\n")
            } else {
                LINES.join("\n")
            };
            let printed = printed(
                &format!("grep -E '{expression}' | grep -viE '{secrets}'"),
                &text,
            );
            let saved = [
                (file[1..].to_owned(), text),
                ("uname.txt".into(), uname.into()),
            ];
            let facts = of_saved(&BTreeMap::from(saved)).unwrap();
            let answer = facts.answers.iter().find(|answer| answer.command == "boot");
            let kept = answer.unwrap().output.as_ref().unwrap();
            assert_eq!(*kept, format!("==> {file} <==\n{printed}"));
            assert!(!printed.is_empty(), "{file}");
            compared += 1;
        }
    }
    assert_eq!(compared, 6);
}

#[test]
fn a_host_prints_the_lines_of_its_files() {
    let said = printed(&boot(Kernel::Linux), "");
    assert!(
        said.lines().any(|line| line == "==> /proc/cmdline <=="),
        "{said}"
    );
}
