//! Simulated FreeBSD hosts: a router, and a tester with pkt-gen, over the real sshd.

use super::site::Site;
use std::fs;
use std::ops::Deref;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const STAND_IN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/bsd-host");

pub const LAB: &str = r#"
isolated = true
link-speed = "1 Gbit/s"

[hosts.tester]
role = ["generator", "receiver"]
ssh = "tester"
# Other tests leave it no CPU for seconds.
silence = "20 s"
[hosts.tester.send]
name = "igb1"
mac = "0c:c4:7a:ab:29:35"
addresses = ["198.18.0.203/24"]
[hosts.tester.receive]
name = "igb2"
mac = "0c:c4:7a:ab:29:36"
addresses = ["198.19.0.203/24"]

[hosts.router]
role = "dut"
ssh = "router"
POWER
[hosts.router.in]
name = "igb1"
mac = "00:0d:b9:41:ca:3d"
addresses = ["198.18.0.205/24"]
[hosts.router.out]
name = "igb2"
mac = "00:0d:b9:41:ca:3e"
addresses = ["198.19.0.205/24"]
[hosts.router.boot]
timeout = "10 s"
reaches = ["198.19.0.203"]
"#;

/// A generator beside the tester.
pub const SECOND: &str = r#"
[hosts.second]
role = "generator"
ssh = "second"
silence = "20 s"
[hosts.second.send]
name = "igb1"
mac = "0c:c4:7a:ab:29:40"
addresses = ["198.18.0.204/24"]
"#;

/// Interfaces of the hosts.
const PORTS: [(&str, &[&str]); 3] = [
    (
        "tester",
        &[
            "igb1:0c-c4-7a-ab-29-35:198.18.0.203/24",
            "igb2:0c-c4-7a-ab-29-36:198.19.0.203/24",
        ],
    ),
    (
        "router",
        &[
            "igb1:00-0d-b9-41-ca-3d:198.18.0.205/24",
            "igb2:00-0d-b9-41-ca-3e:198.19.0.205/24",
        ],
    ),
    ("second", &["igb1:0c-c4-7a-ab-29-40:198.18.0.204/24"]),
];

/// A tuned and an untuned router.
pub const PLAN: &str = r#"
title = "Tuning"
question = "Does it matter?"

[lab]
file = "LAB.toml"
systems = ["freebsd"]

[variants.default]
about = "as it comes"

[variants.mask]
sysctls = { "kern.random.harvest.mask" = 351 }

[compare]
with = "default"

[traffic]
flows = 2000

[trials]
duration = "200 ms"
blocks = 2
"#;

pub struct Bsd {
    pub site: Site,
}

impl Deref for Bsd {
    type Target = Site;

    fn deref(&self) -> &Site {
        &self.site
    }
}

/// Starts a script in a session of its own, and ends once the script runs, together with the remaining processes of this session.
fn detached(script: &Path) -> String {
    let script = script.display();
    format!(
        "#!/bin/sh
rm -f {script}.going
setsid {script} </dev/null >/dev/null 2>&1 &
until [ -e {script}.going ]; do sleep 0.02; done\n"
    )
}

impl Bsd {
    pub fn new() -> Bsd {
        Bsd::of(&["tester", "router"])
    }

    /// With another generator, `second`.
    pub fn with_two_generators() -> Bsd {
        let bsd = Bsd::of(&["tester", "router", "second"]);
        bsd.lab("");
        let file = bsd.scratch.file("LAB.toml");
        bsd.write("LAB.toml", &(fs::read_to_string(file).unwrap() + SECOND));
        bsd
    }

    /// The router runs OpenBSD. Its /etc is a copy of this machine's, in `root/etc`.
    pub fn with_openbsd() -> Bsd {
        Bsd::make(&["tester", "router"], "openbsd")
    }

    fn of(hosts: &[&str]) -> Bsd {
        Bsd::make(hosts, "freebsd")
    }

    fn make(hosts: &[&str], router: &str) -> Bsd {
        let mut bsd = Bsd {
            site: Site::new(hosts),
        };
        // The router's loader settings are not this machine's, nor are its rules.
        let root = bsd.state("router").join("root");
        fs::create_dir_all(root.join("boot")).unwrap();
        if router == "openbsd" {
            assert!(
                Command::new("cp")
                    .args(["-a", "/etc"])
                    .arg(&root)
                    .status()
                    .unwrap()
                    .success()
            );
            bsd.site
                .ssh
                .host("router")
                .put_over(&root.join("etc"), "/etc");
        } else {
            bsd.site
                .ssh
                .host("router")
                .put_over(&root.join("boot"), "/boot");
        }
        let wire = bsd.ssh.folder().join("wire");
        fs::create_dir(&wire).unwrap();
        for (host, ports) in PORTS.into_iter().filter(|(host, _)| hosts.contains(host)) {
            let state = bsd.state(host);
            let made = Command::new(Path::new(STAND_IN).join("new-host"))
                .arg(&state)
                .args([if host == "router" { router } else { "freebsd" }, host])
                .args(ports)
                .output()
                .unwrap();
            assert!(made.status.success(), "{made:?}");
            let there = bsd.ssh.hosts.iter().find(|h| h.name == host).unwrap();
            for program in fs::read_dir(Path::new(STAND_IN).join("bin"))
                .unwrap()
                .flatten()
            {
                let name = program.file_name().into_string().unwrap();
                let (state, path) = (state.display(), program.path());
                // This shell reads the program: starting another shell for it would take as long again. In a jail, BSD_HOST is set.
                let script = format!(
                    "#!/bin/sh\nexport BSD_HOST=${{BSD_HOST:-{state}}}\nSTAND_IN={STAND_IN}\n. {}\n",
                    path.display()
                );
                there.stand_in(&name, &script);
            }
            bsd.set(host, "wire", wire.to_str().unwrap());
            bsd.set(host, "pace", "0.1");
            bsd.set(host, "reset-s", "0.2");
            for (driver, unit) in [("igb", 1), ("igb", 2)] {
                let file = state.join("sysctl");
                let text = fs::read_to_string(&file).unwrap();
                fs::write(
                    file,
                    text.replace(
                        &format!("dev.{driver}.{unit}.fc=3"),
                        &format!("dev.{driver}.{unit}.fc=0"),
                    ),
                )
                .unwrap();
            }
        }
        bsd.set("router", "ends", "igb1 igb2");
        bsd.set("router", "ssh-by", "vtnet0");
        bsd.set(
            "router",
            "routes",
            "198.18.0.0/16 198.18.0.203 igb1\n198.19.0.0/16 198.19.0.203 igb2",
        );
        let neighbours = [
            "198.18.0.203 0c:c4:7a:ab:29:35 igb1 permanent",
            "198.18.0.204 0c:c4:7a:ab:29:40 igb1 permanent",
            "198.19.0.203 0c:c4:7a:ab:29:36 igb2 permanent",
        ];
        for file in ["arp", "arp.boot"] {
            bsd.set("router", file, &neighbours.join("\n"));
        }
        for host in hosts.iter().filter(|host| **host != "router") {
            let known = "198.18.0.205 00:0d:b9:41:ca:3d igb1 permanent\n198.19.0.205 00:0d:b9:41:ca:3e igb2 permanent";
            bsd.set(host, "arp", known);
        }
        let file = bsd.state("router").join("sysctl");
        let text = fs::read_to_string(&file)
            .unwrap()
            .replace("ip.forwarding=0", "ip.forwarding=1");
        fs::write(&file, &text).unwrap();
        fs::write(bsd.state("router").join("sysctl.boot"), text).unwrap();
        bsd.lab("");
        bsd
    }

    /// Writes the lab file, with more lines for the router.
    pub fn lab(&self, power: &str) {
        self.write("LAB.toml", &LAB.replace("POWER", power));
    }

    pub fn state(&self, host: &str) -> PathBuf {
        self.ssh.folder().join(host)
    }

    pub fn set(&self, host: &str, file: &str, text: &str) {
        fs::write(self.state(host).join(file), format!("{text}\n")).unwrap();
    }

    pub fn read(&self, host: &str, file: &str) -> String {
        fs::read_to_string(self.state(host).join(file)).unwrap_or_default()
    }

    /// A file that generators, router and receiver share.
    pub fn wire(&self, file: &str) -> String {
        fs::read_to_string(self.ssh.folder().join("wire").join(file)).unwrap_or_default()
    }

    /// How many loads there are.
    pub fn loads(&self) -> usize {
        self.ssh
            .hosts
            .iter()
            .map(|host| host.running("bin/pkt-gen"))
            .sum()
    }

    /// A reboot of the router ends its sshd, and starts it again, or never.
    pub fn reboots(&self, comes_back: bool) {
        self.reboots_from(if comes_back { Some(1) } else { None });
        if comes_back {
            // On a busy machine, too.
            self.patience("120 s");
        }
    }

    /// How long a boot of the router may take; with a new lab file, that has to be said again.
    pub fn patience(&self, limit: &str) {
        let lab = fs::read_to_string(self.scratch.file("LAB.toml")).unwrap();
        self.write(
            "LAB.toml",
            &lab.replace("timeout = \"10 s\"", &format!("timeout = \"{limit}\"")),
        );
    }

    /// As [`Bsd::reboots`]; it comes back from its nth reboot on, and never without one.
    pub fn reboots_from(&self, nth: Option<u32>) {
        let state = self.state("router");
        let start = self.power();
        let back = nth.map_or("exit 0".into(), |nth| {
            format!(
                "read boots <{}; [ $boots -lt {nth} ] || exec {start}",
                state.join("boots").display()
            )
        });
        // The router is down until it is started again, however long a busy machine takes for that. One grep finds the few processes
        // that could be its sshd: a program started for each process of the machine takes seconds there.
        let lines = format!(
            "echo never >{down}
sleep 0.1
# One that has just begun may hold the port: until there is none.
found=yes
while [ -n \"$found\" ]; do
found=
for p in $(grep -al '^[/a-z]*sshd' /proc/[0-9]*/cmdline); do
p=${{p%/cmdline}}
[ \"$(readlink $p/ns/net)\" = \"$(readlink /proc/$$/ns/net)\" ] && kill -9 ${{p#/proc/}} && found=yes
done 2>/dev/null
done
: >\"$0.gone\"
echo $(($(cat {booted}) + 50)) >{booted}
{back}\n",
            down = state.join("down-until").display(),
            booted = state.join("booted").display()
        );
        let down = state.join("down");
        self.script(&down, &format!("#!/bin/sh\n: >\"$0.going\"\n{lines}"));
        self.script(&state.join("on-reboot"), &detached(&down));
        self.set("router", "boot-s", "1");
        self.set("router", "root/boot/loader.conf.local", "");
    }

    /// A program that starts the router's sshd, as turning its power on does, and ends when that listens.
    pub fn power(&self) -> String {
        let path = self.ssh.folder().join("power");
        let router = self.ssh.hosts.iter().find(|h| h.name == "router").unwrap();
        let net = format!(
            "/proc/{}/fd/{}",
            std::process::id(),
            router.netns.as_fd().as_raw_fd()
        );
        let words: Vec<String> = router
            .sshd_arguments()
            .iter()
            .map(|word| format!("'{word}'"))
            .collect();
        let on = path.with_extension("on");
        self.script(
            &on,
            &format!(
                "#!/bin/sh\nrm -f {}\n: >\"$0.going\"\nexec nsenter --net={net} {}\n",
                self.state("router").join("down-until").display(),
                words.join(" ")
            ),
        );
        let listens = format!(
            "nsenter --net={net} sh -c 'until grep -q \":0016 00000000:0000 0A\" /proc/net/tcp; do sleep 0.02; done'\n"
        );
        self.script(&path, &(detached(&on) + &listens));
        path.display().to_string()
    }

    /// As [`Bsd::power`], which does nothing the first times.
    pub fn power_that_helps_from(&self, nth: usize) -> String {
        let (path, on) = (self.ssh.folder().join("power-late"), self.power());
        let lines = format!(
            "echo >>\"$0.calls\"\n[ $(wc -l <\"$0.calls\") -ge {nth} ] || exit 0\nexec {on}\n"
        );
        self.script(&path, &format!("#!/bin/sh\n{lines}"));
        path.display().to_string()
    }

    fn script(&self, path: &Path, text: &str) {
        fs::write(path, text).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Changes of a host, in order.
    pub fn log(&self, host: &str) -> Vec<String> {
        fs::read_to_string(self.state(host).join("log"))
            .unwrap()
            .lines()
            .map(String::from)
            .collect()
    }
}
