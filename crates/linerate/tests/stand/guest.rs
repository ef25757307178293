//! A guest: a kernel of Debian's in QEMU, with cards that have real drivers. There may be no KVM: rates mean nothing, but queues, interrupts,
//! counters, settings and losses are real.

use super::archive::Archive;
use crate::common::{LINERATE, Program, Running, Scratch};
use crate::hosts_beside::lab::run;
use crate::hosts_beside::site::Site;
use linerate_linux::net::Netns;
use std::fmt::Write as _;
use std::fs;
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Kernels and more, which scripts/stand unpacks.
const UNPACKED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/stand");

/// Kernels that scripts/stand knows.
pub const KERNELS: [&str; 2] = ["6.1", "6.12"];

/// A kind of card.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Card {
    /// The names of the card in QEMU and of its driver's module.
    pub name: &'static str,
    device: &'static str,
    module: &'static str,
    /// Pairs of queues that QEMU serves.
    queues: u32,
}

const fn card(name: &'static str, device: &'static str, module: &'static str, queues: u32) -> Card {
    Card {
        name,
        device,
        module,
        queues,
    }
}

pub const VIRTIO: Card = card("virtio", "virtio-net-pci,mq=on,vectors=10", "virtio_net", 4);
pub const VMXNET3: Card = card("vmxnet3", "vmxnet3", "vmxnet3", 1);
pub const E1000E: Card = card("e1000e", "e1000e", "e1000e", 1);
pub const E1000: Card = card("e1000", "e1000", "e1000", 1);
/// Needs QEMU 8, and a port of its own, for it reserves places for virtual functions.
pub const IGB: Card = card("igb", "igb", "igb", 1);

/// The cards that QEMU has.
pub const CARDS: [Card; 5] = [VIRTIO, VMXNET3, E1000E, E1000, IGB];

/// A kernel and the kind of its two cards.
#[derive(Debug, Clone, Copy)]
pub struct Stand {
    pub kernel: &'static str,
    pub card: Card,
}

impl std::fmt::Display for Stand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.kernel, self.card.name)
    }
}

/// Programs of a small Linux router, and those with which its state is read.
const PROGRAMS: &str = "
    busybox dash sh bash sshd sftp-server ip bridge tc ss ethtool nft ipset perf sysctl ps kmod modprobe lsmod rmmod modinfo tcpdump jq
    iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore iptables-legacy iptables-legacy-save
    ip6tables-legacy ip6tables-legacy-save
    cat cp mv rm ls ln mkdir rmdir mktemp chmod chown stat head tail sort uniq wc cut tr tee date uname id env printf echo test true false
    sleep timeout nproc dirname basename readlink realpath touch od cksum md5sum sha256sum seq expr dd df du sync comm join paste stty tty
    whoami hostname nohup nice pwd install base64 sed grep awk mawk find xargs tar gzip diff cmp pgrep pkill pidof kill free uptime mount
    umount dmesg lscpu taskset chrt nsenter unshare setpriv setsid flock logger getconf which file getent";

/// The first program of the guest starts this.
const RC: &str = r#"#!/bin/sh
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev
mkdir /dev/pts /dev/shm; mount -t devpts devpts /dev/pts; mount -t tmpfs -o mode=1777 tmp /tmp; mount -t tmpfs -o mode=755 run /run
mount -t tracefs trace /sys/kernel/tracing; mount -t debugfs debug /sys/kernel/debug; mount -t bpf bpf /sys/fs/bpf
mkdir /run/sshd /run/netns; hostname guest
# The kernel puts what it does not know of its command line into the environment.
modprobe -a virtio_pci virtio_net virtio_rng $card
for link in $(ls /sys/class/net); do
	case $(cat /sys/class/net/$link/address) in
	52:54:00:00:00:01) ip link set $link name mgmt0 ;;
	02:00:00:00:00:01) ip link set $link name g0 ;;
	02:00:00:00:00:02) ip link set $link name in0 ;;
	02:00:00:00:00:03) ip link set $link name out0 ;;
	02:00:00:00:00:04) ip link set $link name r0 ;;
	esac
done
ip link set lo up; ip addr add 10.0.2.15/24 dev mgmt0; ip link set mgmt0 up
/usr/sbin/sshd && echo "guest is ready" >/dev/console
"#;

const SSHD: &str = "HostKey /etc/ssh/host_key\nUsePAM no\nPasswordAuthentication no\nUseDNS no\nPrintMotd no\nPrintLastLog no\nPidFile none\n\
    Subsystem sftp /usr/lib/openssh/sftp-server\nSetEnv PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n";

/// A cable: the name of the guest's end, the namespace of the other end, and that end's name.
pub type Cable<'a> = (&'static str, &'a Netns, &'static str);

/// The last byte of the Ethernet address that the lab file gives to an interface.
fn address(name: &str) -> usize {
    1 + ["g0", "in0", "out0", "r0"]
        .iter()
        .position(|end| *end == name)
        .unwrap()
}

/// A running guest.
pub struct Guest {
    /// Ends with this value.
    _qemu: Running,
    name: &'static str,
    config: PathBuf,
    prefix: Vec<String>,
    files: Scratch,
}

impl Guest {
    /// Boots it, with two cards at these cables. The lab of hosts reaches it by this name.
    pub fn boot(stand: Stand, site: &Site, name: &'static str, cables: [Cable; 2]) -> Guest {
        let ssh = &site.ssh;
        let files = Scratch::new();
        let unpacked = Path::new(UNPACKED).join(stand.kernel);
        let key = files.file("host_key");
        let made = Command::new("ssh-keygen")
            .args(["-q", "-t", "ed25519", "-N", "", "-C", name, "-f", &key])
            .status();
        assert!(made.expect("openssh-client is installed").success());
        fs::write(
            files.file("initrd"),
            initrd(&unpacked, &files, &ssh.public_key()),
        )
        .unwrap();
        run(ssh.client(), "ip link set lo up");
        let prefix = ssh.prefix();
        let words = qemu(stand, &unpacked, &files, cables.map(|(end, ..)| end));
        let mut qemu = Program::new(&prefix[0])
            .args(&prefix[1..])
            .args(&words)
            .start();
        qemu.wait_for_line("guest is ready");
        fs::remove_file(files.file("initrd")).unwrap();
        for (tap, netns, far) in cables {
            let place = format!(
                "/proc/{}/fd/{}",
                std::process::id(),
                netns.as_fd().as_raw_fd()
            );
            run(ssh.client(), &format!("ip link set {tap} netns {place}"));
            let mac = format!("02:00:00:00:00:0{}", address(far));
            run(
                netns,
                &format!(
                    "ip link set {tap} name {far} address {mac} mtu 9000; ip link set {far} up"
                ),
            );
        }
        let (config, known) = (ssh.config(), ssh.known_hosts());
        let mut hosts = fs::read_to_string(&config).unwrap();
        writeln!(
            hosts,
            "\nHost {name}\n    HostName 127.0.0.1\n    Port {PORT}"
        )
        .unwrap();
        fs::write(&config, hosts).unwrap();
        let mut keys = fs::read_to_string(&known).unwrap();
        writeln!(
            keys,
            "[127.0.0.1]:{PORT} {}",
            fs::read_to_string(key + ".pub").unwrap().trim()
        )
        .unwrap();
        fs::write(&known, keys).unwrap();
        let guest = Guest {
            _qemu: qemu,
            name,
            config,
            prefix,
            files,
        };
        for (end, ..) in cables {
            guest.on(&format!(
                "ip link set {end} up; until [ $(cat /sys/class/net/{end}/carrier) = 1 ]; do sleep 0.05; done"
            ));
        }
        guest
    }

    /// Words of a command by which a person, or a program in another network, reaches the guest.
    pub fn shell(&self) -> Vec<String> {
        let control = format!("ControlPath={}", self.files.file("control"));
        let options = [
            "-F",
            self.config.to_str().unwrap(),
            "-o",
            "ControlMaster=auto",
            "-o",
            "ControlPersist=10",
            "-o",
            &control,
            self.name,
        ];
        let ssh = std::iter::once("ssh").chain(options).map(String::from);
        self.prefix.iter().cloned().chain(ssh).collect()
    }

    /// Runs lines of a shell in the guest.
    #[track_caller]
    pub fn on(&self, lines: &str) -> String {
        let words = self.shell();
        let output = Command::new(&words[0])
            .args(&words[1..])
            .args(["sh", "-ec"])
            .arg(quoted(lines))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "{lines}: {}\n{said}{}",
            output.status,
            self.console()
        );
        String::from_utf8(output.stdout).unwrap()
    }

    /// The kernel's words.
    pub fn console(&self) -> String {
        String::from_utf8_lossy(&fs::read(self.files.file("console")).unwrap()).into_owned()
    }
}

/// Where the guest's sshd is reached, in the network of the lab's client.
const PORT: u16 = 2222;

/// A word of a shell.
fn quoted(lines: &str) -> String {
    format!("'{}'", lines.replace('\'', r"'\''"))
}

/// The guest's files. Programs that want this machine's glibc find it, linerate among them.
fn initrd(unpacked: &Path, files: &Scratch, user_key: &str) -> Vec<u8> {
    let stripped = files.file("linerate");
    assert!(
        Command::new("strip")
            .args(["-o", &stripped, LINERATE])
            .status()
            .expect("binutils is installed")
            .success()
    );
    let mut archive = Archive::new();
    for folder in [
        "/proc",
        "/sys",
        "/dev",
        "/run",
        "/tmp",
        "/var/empty",
        "/var/lib",
        "/mnt",
    ] {
        archive.files.folder(folder);
    }
    archive.programs(PROGRAMS);
    archive.files.link("/init", "usr/bin/busybox");
    for folder in [
        "/usr/lib/x86_64-linux-gnu/xtables",
        "/etc/iproute2",
        "/etc/protocols",
        "/etc/services",
        "/etc/ethertypes",
    ] {
        let path = Path::new(folder);
        if path.exists() {
            archive.copy(path, path);
        }
    }
    archive.copy(&unpacked.join("lib/modules"), Path::new("/usr/lib/modules"));
    archive.files.file(
        "/usr/local/bin/linerate",
        0o755,
        fs::read(stripped).unwrap(),
    );
    archive.libraries([LINERATE.into()]);
    archive.files.file(
        "/etc/os-release",
        0o644,
        "ID=debian\nPRETTY_NAME=\"Debian GNU/Linux in QEMU\"\n",
    );
    archive.files.file("/etc/passwd", 0o644, "root:x:0:0:root:/root:/bin/sh\nsshd:x:100:65534::/run/sshd:/bin/false\nnobody:x:65534:65534::/:/bin/false\n");
    archive
        .files
        .file("/etc/group", 0o644, "root:x:0:\nnogroup:x:65534:\n");
    archive.files.file(
        "/etc/nsswitch.conf",
        0o644,
        "passwd: files\ngroup: files\nhosts: files\n",
    );
    archive
        .files
        .file("/etc/hosts", 0o644, "127.0.0.1 localhost guest\n");
    archive.files.file("/etc/ssh/sshd_config", 0o644, SSHD);
    archive.files.file(
        "/etc/ssh/host_key",
        0o600,
        fs::read(files.file("host_key")).unwrap(),
    );
    archive
        .files
        .file("/root/.ssh/authorized_keys", 0o600, user_key);
    archive
        .files
        .file("/etc/inittab", 0o644, "::sysinit:/etc/rc\n");
    archive
        .files
        .file("/usr/local/bin/state", 0o755, super::state::program());
    archive.files.file("/etc/rc", 0o755, RC);
    archive.files.finish()
}

/// The command that boots it. Its cards' ends of the cables have the names of their taps.
fn qemu(stand: Stand, unpacked: &Path, files: &Scratch, ends: [&str; 2]) -> Vec<String> {
    let Card {
        name,
        device,
        module,
        queues,
    } = stand.card;
    let mut words = vec!["qemu-system-x86_64".to_string()];
    let beside = Path::new(UNPACKED).join("igb");
    if name == "igb" && beside.join("usr").exists() {
        let at = |place: &str| beside.join(place).display().to_string();
        let libraries = format!("LD_LIBRARY_PATH={}", at("usr/lib/x86_64-linux-gnu"));
        words = vec![
            "env".into(),
            libraries,
            at("usr/bin/qemu-system-x86_64"),
            "-L".into(),
            at("usr/share/qemu"),
            "-L".into(),
            at("usr/share/seabios"),
        ];
    }
    let mut also = |line: String| words.extend(line.split_whitespace().map(String::from));
    also(
        "-machine q35 -accel tcg,thread=multi -cpu max -smp 4,cores=2,threads=2 -m 1024 -nodefaults -display none -no-reboot"
            .into(),
    );
    also(format!(
        "-kernel {} -initrd {}",
        unpacked.join("vmlinuz").display(),
        files.file("initrd")
    ));
    also(format!(
        "-chardev stdio,id=console,logfile={} -serial chardev:console",
        files.file("console")
    ));
    also(
        "-object rng-random,id=random,filename=/dev/urandom -device virtio-rng-pci,rng=random"
            .into(),
    );
    also(format!(
        "-netdev user,id=mgmt,restrict=on,ipv6=off,hostfwd=tcp:127.0.0.1:{PORT}-:22"
    ));
    also("-device virtio-net-pci,netdev=mgmt,mac=52:54:00:00:00:01".into());
    for (at, tap) in ends.into_iter().enumerate() {
        let bus = if name == "igb" {
            format!(",bus=port{at}")
        } else {
            String::new()
        };
        also(format!(
            "-device pcie-root-port,id=port{at},chassis={}",
            at + 1
        ));
        also(format!(
            "-netdev tap,id={tap},ifname={tap},script=no,downscript=no,queues={queues}"
        ));
        also(format!(
            "-device {device},netdev={tap},mac=02:00:00:00:00:0{}{bus}",
            address(tap)
        ));
    }
    words.extend([
        "-append".into(),
        format!("console=ttyS0 quiet panic=-1 card={module}"),
    ]);
    words
}
