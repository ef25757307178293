//! Answers in the forms that the systems give, and everything else.

use super::facts::COUNTERS;
use super::*;
use linerate_measure::collector::Counters;
use linerate_plan::lab::OperatingSystem;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// FreeBSD, with an APU2's addresses (archive, AMD_GX-412TC_4Cores) and media of several cards.
const FREEBSD_IFCONFIG: &str = "\
igb1: flags=1008843<UP,BROADCAST,RUNNING,SIMPLEX,MULTICAST,LOWER_UP> metric 0 mtu 1500
\toptions=4e527bb<RXCSUM,TXCSUM,VLAN_MTU,VLAN_HWTAGGING>
\tether 00:0d:b9:41:ca:3d
\tinet 198.18.0.205 netmask 0xffffff00 broadcast 198.18.0.255
\tinet6 fe80::20d:b9ff:fe41:ca3d%igb1 prefixlen 64 scopeid 0x2
\tinet6 2001:2::205 prefixlen 64
\tmedia: Ethernet autoselect (1000baseT <full-duplex,rxpause,txpause>)
\tstatus: active
\tnd6 options=21<PERFORMNUD,AUTO_LINKLOCAL>
ix0: flags=8802<BROADCAST,SIMPLEX,MULTICAST> metric 0 mtu 9000
\tether 00:25:90:91:14:0a
\tmedia: Ethernet autoselect
\tstatus: no carrier
cxl0: flags=8843<UP,BROADCAST,RUNNING,SIMPLEX,MULTICAST> metric 0 mtu 1500
\tether 00:07:43:2e:e4:71
\tmedia: Ethernet 40Gbase-CR4 <full-duplex>
\tstatus: active
tun0: flags=8051<UP,POINTOPOINT,RUNNING,MULTICAST> metric 0 mtu 1420
\tinet 10.0.0.1 --> 10.0.0.2 netmask 0xffffffff
lo0: flags=1008049<UP,LOOPBACK,RUNNING,MULTICAST,LOWER_UP> metric 0 mtu 16384
\tinet 127.0.0.1/8
\tgroups: lo
";

const OPENBSD_IFCONFIG: &str = "\
lo0: flags=2008049<UP,LOOPBACK,RUNNING,MULTICAST,LRO> mtu 32768
\tinet 127.0.0.1 netmask 0xff000000
em1: flags=808843<UP,BROADCAST,RUNNING,SIMPLEX,MULTICAST,AUTOCONF4> mtu 1500
\tlladdr 00:0d:b9:3c:dd:3d
\tindex 2 priority 0 llprio 3
\tmedia: Ethernet autoselect (1000baseT full-duplex,master,rxpause)
\tstatus: active
\tinet 198.18.0.1 netmask 0xffffff00 broadcast 198.18.0.255
";

const NETBSD_IFCONFIG: &str = "\
wm0: flags=0x8843<UP,BROADCAST,RUNNING,SIMPLEX,MULTICAST> mtu 1500
\tcapabilities=0x7ff80<TSO4>
\taddress: 52:54:00:12:34:56
\tmedia: Ethernet autoselect (100baseTX half-duplex)
\tstatus: active
\tinet 10.0.2.15/24 broadcast 10.0.2.255 flags 0
\tinet6 fe80::5054:ff:fe12:3456%wm0/64 flags 0 scopeid 0x1
";

fn ifconfig(text: &str) -> Vec<Interface> {
    super::bsd::interfaces(text)
}

fn shown(interface: &Interface) -> String {
    interface
        .addresses
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(" ")
}

#[test]
fn interfaces_of_freebsd() {
    let all = ifconfig(FREEBSD_IFCONFIG);
    let names: Vec<&str> = all.iter().map(|i| i.name.as_str()).collect();
    assert_eq!(names, ["igb1", "ix0", "cxl0", "tun0", "lo0"]);
    let igb = &all[0];
    assert_eq!(
        shown(igb),
        "198.18.0.205/24 fe80::20d:b9ff:fe41:ca3d/64 2001:2::205/64"
    );
    assert_eq!(
        (igb.up, igb.link, igb.mtu, igb.speed),
        (true, Some(true), Some(1500), Some(1e9))
    );
    assert_eq!((igb.full_duplex, igb.pause.is_on()), (Some(true), true));
    assert_eq!(igb.mac.unwrap().to_string(), "00:0d:b9:41:ca:3d");
    assert_eq!(
        (all[1].up, all[1].link, all[1].speed),
        (false, Some(false), None)
    );
    assert_eq!((all[2].speed, all[2].pause), (Some(4e10), Pause::default()));
    assert_eq!(
        (shown(&all[3]), shown(&all[4])),
        ("10.0.0.1/32".into(), "127.0.0.1/8".into())
    );
}

#[test]
fn interfaces_of_the_others() {
    let open = ifconfig(OPENBSD_IFCONFIG);
    assert_eq!(
        (open[1].name.as_str(), shown(&open[1]).as_str()),
        ("em1", "198.18.0.1/24")
    );
    assert_eq!(
        (open[1].pause.rx, open[1].pause.tx, open[1].speed),
        (Some(true), None, Some(1e9))
    );
    assert_eq!(open[1].mac.unwrap().to_string(), "00:0d:b9:3c:dd:3d");
    let net = ifconfig(NETBSD_IFCONFIG);
    assert_eq!(shown(&net[0]), "10.0.2.15/24 fe80::5054:ff:fe12:3456/64");
    assert_eq!((net[0].full_duplex, net[0].speed), (Some(false), Some(1e8)));
    assert!(net[0].mac.is_some());
}

#[test]
fn speeds_of_media() {
    for (media, speed) in [
        ("10baseT/UTP", 1e7),
        ("1000baseSX", 1e9),
        ("2500Base-T", 2.5e9),
        ("10Gbase-T", 1e10),
        ("25GBase-CR", 2.5e10),
        ("100GBase-LR4", 1e11),
        ("400GBase-SR8", 4e11),
    ] {
        let text = format!(
            "ix0: flags=8843<UP> mtu 1500\n\tmedia: Ethernet autoselect ({media} <full-duplex>)\n"
        );
        assert_eq!(ifconfig(&text)[0].speed, Some(speed), "{media}");
    }
    let none = ifconfig("ix0: flags=8843<UP> mtu 1500\n\tmedia: Ethernet autoselect (none)\n");
    assert_eq!(none[0].speed, None);
}

fn freebsd() -> Facts {
    let mut facts = Facts::default();
    facts.answer(
        &Question::Uname,
        b"FreeBSD apu2-2.lab 16.0-CURRENT FreeBSD 16.0-CURRENT GENERIC amd64\n",
        0,
    );
    facts
}

fn linux() -> Facts {
    let mut facts = Facts::default();
    facts.answer(
        &Question::Uname,
        b"Linux dut 6.12.8-amd64 #1 SMP PREEMPT_DYNAMIC x86_64 GNU/Linux\n",
        0,
    );
    facts
}

#[test]
fn a_driver_s_setting_decides_over_what_was_negotiated() {
    let mut facts = freebsd();
    facts.answer(&Question::Interfaces, FREEBSD_IFCONFIG.as_bytes(), 0);
    let question = Question::Pause("igb1".into());
    assert_eq!(
        question.argv(Kernel::FreeBsd).unwrap().join(" "),
        "sysctl -i dev.igb.1.fc dev.igb.1.pause_settings dev.igb.1.rx_pauseframe_control dev.igb.1.tx_pauseframe_control"
    );
    for (value, rx, tx) in [
        ("3", true, true),
        ("1", true, false),
        ("2", false, true),
        ("0", false, false),
    ] {
        facts.answer(&question, format!("dev.igb.1.fc: {value}\n").as_bytes(), 0);
        assert_eq!(
            facts.interface("igb1").unwrap().pause,
            Pause {
                rx: Some(rx),
                tx: Some(tx),
                autoneg: None
            }
        );
    }
    facts.answer(
        &Question::Pause("cxl0".into()),
        b"dev.cxl.0.pause_settings: 2\n",
        0,
    );
    assert_eq!(facts.interface("cxl0").unwrap().pause.tx, Some(true));
}

#[test]
fn interfaces_of_linux() {
    let mut facts = linux();
    let json = br#"[{"ifindex":1,"ifname":"lo","flags":["LOOPBACK","UP","LOWER_UP"],"mtu":65536,"operstate":"UNKNOWN",
        "address":"00:00:00:00:00:00","addr_info":[{"family":"inet","local":"127.0.0.1","prefixlen":8}]},
        {"ifname":"enp1s0f0","flags":["BROADCAST","MULTICAST","UP"],"mtu":1500,"operstate":"DOWN","address":"a0:36:9f:42:60:84",
        "addr_info":[{"family":"inet6","local":"2001:2::1","prefixlen":64},{"family":"inet6","local":"x"},{}]},{"mtu":-1}]"#;
    facts.answer(&Question::Interfaces, json, 0);
    assert_eq!(facts.interfaces.len(), 2);
    assert_eq!(
        (facts.interfaces[0].link, facts.interfaces[1].link),
        (Some(true), Some(false))
    );
    assert_eq!(shown(&facts.interfaces[1]), "2001:2::1/64");
    let ethtool = "Settings for enp1s0f0:\n\tSupported ports: [ TP ]\n\tSpeed: 10000Mb/s\n\tDuplex: Full\n\tPort: Twisted Pair\n\tLink detected: yes\n";
    facts.answer(&Question::Link("enp1s0f0".into()), ethtool.as_bytes(), 0);
    let port = facts.interface("enp1s0f0").unwrap();
    assert_eq!(
        (port.speed, port.full_duplex, port.link),
        (Some(1e10), Some(true), Some(true))
    );
    let unknown = "\tSpeed: Unknown!\n\tDuplex: Unknown! (255)\n\tLink detected: no\n";
    facts.answer(&Question::Link("enp1s0f0".into()), unknown.as_bytes(), 0);
    let port = facts.interface("enp1s0f0").unwrap();
    assert_eq!(
        (port.speed, port.full_duplex, port.link),
        (None, None, Some(false))
    );
    let pause = "Pause parameters for enp1s0f0:\nAutonegotiate:\ton\nRX:\t\toff\nTX:\t\toff\nRX negotiated: on\nTX negotiated: off\n";
    facts.answer(&Question::Pause("enp1s0f0".into()), pause.as_bytes(), 0);
    assert_eq!(
        facts.interface("enp1s0f0").unwrap().pause,
        Pause {
            rx: Some(true),
            tx: Some(false),
            autoneg: Some(true)
        }
    );
    for broken in [
        &b"[{"[..],
        b"Object \"x\" is unknown",
        b"[[[",
        b"{}",
        b"[1]",
    ] {
        facts.answer(&Question::Interfaces, broken, 0);
        assert!(facts.interfaces.is_empty());
    }
}

#[test]
fn systems_by_what_they_say() {
    let tell = |uname: &str, files: &str, mount: &str| {
        detect::detect(uname.as_bytes(), files.as_bytes(), mount.as_bytes())
            .map(|s| (s.system, s.product.unwrap_or_default()))
    };
    use OperatingSystem::*;
    // uname of the archive's .info files.
    let bsdrp = "FreeBSD apu2-2.lab 16.0-CURRENT FreeBSD 16.0-CURRENT BSDRP-AMD64 amd64";
    let version = "==> /etc/version <==\n1.994\n";
    assert_eq!(
        tell(bsdrp, version, ""),
        Some((Bsdrp, "BSDRP 1.994".into()))
    );
    let built = "FreeBSD hp 11.1-RELEASE-p1 FreeBSD 11.1-RELEASE-p1 #1 r322489: Sun Aug 20 09:31:50 CEST 2017     \
        olivier@lame4.bsdrp.net:/usr/obj/GENERIC111.amd64/usr/local/BSDRP/GENERIC111/FreeBSD/src/sys/amd64  amd64";
    assert_eq!(
        tell(built, "", "").unwrap().0,
        FreeBsd,
        "a GENERIC kernel, built by BSDRP's scripts"
    );
    let old = built.replace("GENERIC111", "BSDRP");
    assert_eq!(tell(&old, version, "").unwrap().0, Bsdrp);
    let mounted = "/dev/ufs/BSDRPs1a on / (ufs, local, read-only)\n";
    assert_eq!(tell(built, "", mounted).unwrap().0, Bsdrp);
    let generic = "FreeBSD x 14.2-RELEASE FreeBSD 14.2-RELEASE releng/14.2-n269506-c8918d6c7412 GENERIC amd64";
    assert_eq!(
        tell(
            generic,
            "==> /etc/os-release <==\nNAME=FreeBSD\nPRETTY_NAME=\"FreeBSD 14.2-RELEASE\"\n",
            ""
        ),
        Some((FreeBsd, "FreeBSD 14.2-RELEASE".into()))
    );
    assert_eq!(
        tell(
            generic,
            "==> /etc/version <==\n2.7.2-RELEASE\n\n==> /etc/platform <==\npfSense\n",
            ""
        ),
        Some((PfSense, "pfSense 2.7.2-RELEASE".into()))
    );
    let core = "==> /usr/local/opnsense/version/core <==\n{\n    \"product_id\": \"opnsense\",\n    \"product_version\": \"24.7.1\",\n}\n";
    assert_eq!(
        tell(generic, core, ""),
        Some((OpnSense, "OPNsense 24.7.1".into()))
    );
    assert_eq!(
        tell(generic, "==> /etc/nanobsd.conf <==\nNANO_DRIVE=ada0\n", "")
            .unwrap()
            .0,
        Nanobsd
    );
    assert_eq!(
        tell("OpenBSD fw 7.6 GENERIC.MP#338 amd64", "", ""),
        Some((OpenBsd, String::new()))
    );
    assert_eq!(
        tell(
            "NetBSD n 10.0 NetBSD 10.0 (GENERIC) #0: Thu Mar 28 amd64",
            "",
            ""
        )
        .unwrap()
        .0,
        NetBsd
    );
    let vyos = "==> /etc/os-release <==\nPRETTY_NAME=\"VyOS 1.4.0 (sagitta)\"\nID=\"vyos\"\n";
    assert_eq!(
        tell(
            "Linux vyos 6.1.60-amd64-vyos #1 SMP x86_64 GNU/Linux",
            vyos,
            ""
        ),
        Some((Vyos, "VyOS 1.4.0 (sagitta)".into()))
    );
    assert_eq!(
        tell("Welcome!\nLinux a 6.1.0 #1 x86_64 GNU/Linux", "", "")
            .unwrap()
            .0,
        Linux
    );
    for nothing in ["", "SunOS x 5.11", "Linux", "FreeBSD x"] {
        assert_eq!(tell(nothing, version, mounted), None);
    }
}

#[test]
fn counters_whatever_the_columns() {
    // netstat -ndi of the archive (…/simple_tx/results/fbsd16-n311215/PMC/netstat.on.before.txt), in its form.
    let text = "### netstat -ndi BEFORE\n\
        Name    Mtu Network                  Address                               Ipkts Ierrs Idrop     Opkts Oerrs  Coll  Drop\n\
        igb1   1500 <Link#2>                 00:0d:b9:41:ca:3d                  77816389     1     2         3     4     0     5 \n\
        igb1      - 198.18.0.0/24            198.18.0.205                              2     -     -         2     -     -     - \n\
        enc0*  1536 <Link#4>                 enc0                                      0     0     0         0     0     0     0 \n\
        tun0   1420 <Link#6>                                                           7     0     0         0     0     0     9 \n";
    let all = bsd::counters(text);
    assert_eq!(all.keys().collect::<Vec<_>>(), ["enc0", "igb1", "tun0"]);
    let of = |all: &BTreeMap<String, Counters>, name: &str| {
        COUNTERS.map(|counter| all[name].get(counter).copied())
    };
    assert_eq!(
        of(&all, "igb1"),
        [Some(77_816_389), Some(3), Some(3), Some(9)]
    );
    assert_eq!(of(&all, "tun0"), [Some(7), Some(0), Some(0), Some(9)]);
    let bytes = "Name Mtu Network Address Ipkts Ierrs Idrop Ibytes Opkts Oerrs Obytes Coll Drop\n\
        ix0 1500 <Link#1> 00:25:90:91:14:0a 10 0 1 640 20 0 1280 0 2\n";
    let all = bsd::counters(bytes);
    assert_eq!(of(&all, "ix0"), [Some(10), Some(1), Some(20), Some(2)]);
    let open = "Name    Mtu   Network     Address              Ipkts Ifail    Opkts Ofail Colls\n\
        em1     1500  <Link>      00:0d:b9:3c:dd:3d     1000     3     2000     4     0\n\
        em1     1500  198.18.0/24 198.18.0.1            1000     3     2000     4     0\n";
    let all = bsd::counters(open);
    assert_eq!(
        (all.len(), of(&all, "em1")),
        (1, [Some(1000), Some(3), Some(2000), Some(4)])
    );
    let linux = "Inter-|   Receive                                                |  Transmit\n face |bytes    packets errs\n\
        \x20 eth0: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n  lo:1 2\n";
    let all = linux::counters(linux);
    assert_eq!(
        (all.len(), of(&all, "eth0")),
        (1, [Some(2), Some(7), Some(10), Some(23)])
    );
    let statistics = "ip:\n\t12 total packets received\n\t3 packets forwarded (3 packets fast forwarded)\nudp:\n\t0 datagrams\nx\n";
    let all = text::statistics(statistics);
    assert_eq!((all.len(), all["udp: datagrams"]), (3, 0));
    assert_eq!(all["ip: packets forwarded (N packets fast forwarded)"], 3);
}

#[test]
fn neighbours_in_sentences_and_rows() {
    let text = "? (198.18.0.203) at 0c:c4:7a:ab:29:35 on igb1 expires in 1193 seconds [ethernet]\n\
        ? (198.19.0.203) at (incomplete) on igb2 expired [ethernet]\n\
        ? (198.19.0.205) at 00:0d:b9:41:ca:3e on igb2 permanent [ethernet]\n\
        Host                                 Ethernet Address    Netif Expire    Flags\n\
        198.18.0.9                           0:d:b9:3c:dd:3d   em1 19m58s\n\
        Neighbor                             Linklayer Address  Netif Expire    S Flags\n\
        2001:2::203                          0c:c4:7a:ab:29:35  igb1 23h59m58s  S R\n\
        fe80::1%igb1                         (incomplete)       igb1 expired    N\n";
    let mut facts = freebsd();
    facts.answer(&Question::Neighbours, text.as_bytes(), 0);
    let all = &facts.neighbours;
    assert_eq!(all.len(), 6, "{all:#?}");
    assert_eq!(
        (
            all[0].interface.as_str(),
            all[0].permanent,
            all[0].mac.is_some()
        ),
        ("igb1", false, true)
    );
    assert_eq!((all[1].mac, all[2].permanent), (None, true));
    assert_eq!(all[3].mac.unwrap().to_string(), "00:0d:b9:3c:dd:3d");
    assert_eq!(
        (all[4].address.to_string().as_str(), all[5].mac),
        ("2001:2::203", None)
    );
    let mut facts = linux();
    let json = br#"[{"dst":"198.18.0.2","dev":"eth1","lladdr":"02:00:00:00:00:02","state":["REACHABLE"]},
        {"dst":"198.18.0.3","dev":"eth1","state":["FAILED"]},{"dst":"2001:2::3","dev":"eth1","lladdr":"02:00:00:00:00:03","state":["PERMANENT"]}]"#;
    facts.answer(&Question::Neighbours, json, 0);
    let macs: Vec<bool> = facts.neighbours.iter().map(|n| n.mac.is_some()).collect();
    assert_eq!(
        (macs, facts.neighbours[2].permanent),
        (vec![true, false, true], true)
    );
}

#[test]
fn ways() {
    let to: std::net::IpAddr = "198.19.10.1".parse().unwrap();
    let mut facts = freebsd();
    let answer = "   route to: 198.19.10.1\ndestination: 198.19.0.0\n       mask: 255.255.0.0\n    gateway: 198.19.0.203\n\
        \x20       fib: 0\n  interface: igb2\n      flags: <UP,GATEWAY,DONE,STATIC>\n recvpipe  sendpipe\n";
    facts.answer(&Question::Way(to), answer.as_bytes(), 0);
    let way = facts.ways[&to].clone().unwrap();
    assert_eq!(
        (
            way.interface.as_str(),
            way.gateway.unwrap().to_string().as_str()
        ),
        ("igb2", "198.19.0.203")
    );
    let direct = "    gateway: 198.19.0.1\n  interface: em2\n if address: 198.19.0.1\n      flags: <UP,DONE,CLONED>\n";
    facts.answer(&Question::Way(to), direct.as_bytes(), 0);
    assert_eq!(facts.ways[&to].as_ref().unwrap().gateway, None);
    facts.answer(&Question::Way(to), b"route: route has not been found\n", 1);
    assert_eq!(facts.ways[&to], None);
    let mut facts = linux();
    facts.answer(
        &Question::Way(to),
        br#"[{"dst":"198.19.10.1","gateway":"198.19.0.2","dev":"eth2","flags":[]}]"#,
        0,
    );
    assert_eq!(facts.ways[&to].as_ref().unwrap().interface, "eth2");
}

#[test]
fn small_answers() {
    let mut facts = freebsd();
    facts.date(b"1753567266\n", 1_753_567_260.2, 1_753_567_260.4);
    assert_eq!(facts.clock.unwrap().ahead().round(), 6.0);
    facts.date(b"motd\n1753567260\n", 1_753_567_260.9, 1_753_567_261.4);
    assert_eq!(facts.clock.unwrap().ahead(), 0.0);
    facts.date(b"1753563660", 1_753_567_260.0, 1_753_567_261.0);
    assert_eq!(facts.clock.unwrap().ahead(), -3599.0);
    facts.answer(&Question::User, b"1001\n", 0);
    facts.answer(&Question::Sudo, b"", 1);
    facts.answer(&Question::Cpus, b"4\n", 0);
    assert_eq!(
        (facts.user, facts.sudo, facts.cpus),
        (Some(1001), Some(false), Some(4))
    );
    let df = "Filesystem     1024-blocks     Used Available Capacity Mounted on\n/dev/md0 31470 12 28946 0% /tmp\n\
        /dev/ada0p2 20307196 4213252 -3 101% /var/my tmp\n/dev/md0 31470 12 28946 0% /tmp\n";
    facts.answer(&Question::Disk, df.as_bytes(), 0);
    assert_eq!(facts.disks.len(), 2);
    assert_eq!(
        (facts.disks[0].free, facts.disks[1].free),
        (28_946 * 1024, 0)
    );
    assert_eq!(facts.disks[1].mounted_on, "/var/my tmp");
    facts.answer(
        &Question::Sysctls(vec![]),
        b"net.inet.ip.forwarding: 1\nnet.inet6.ip6.forwarding=0\nnet.ipv4.ip_forward = 1\nnoise\n",
        0,
    );
    assert_eq!(
        (
            facts.number("net.inet.ip.forwarding"),
            facts.number("net.ipv4.ip_forward")
        ),
        (Some(1), Some(1))
    );
    facts.answer(
        &Question::Programs,
        b"/usr/local/bin/pkt-gen\n/usr/bin/timeout\nno iperf3 in (/bin)\n/bin/sh\n",
        0,
    );
    assert_eq!(
        facts.programs.keys().collect::<Vec<_>>(),
        ["pkt-gen", "timeout"]
    );
    facts.answer(
        &Question::Mounts,
        b"/dev/ufs/BSDRPs1a on / (ufs, local, read-only)\ndevfs on /dev (devfs)\n",
        0,
    );
    assert_eq!(
        (facts.read_only_root, facts.system.as_ref().unwrap().system),
        (Some(true), OperatingSystem::Bsdrp)
    );
    facts.answer(
        &Question::Mounts,
        b"/dev/vda on / type ext4 (rw,relatime)\n",
        0,
    );
    assert_eq!(facts.read_only_root, Some(false));
}

#[test]
fn questions_change_nothing_and_take_no_options() {
    let to = "198.19.10.1".parse().unwrap();
    for kernel in [
        Kernel::FreeBsd,
        Kernel::OpenBsd,
        Kernel::NetBsd,
        Kernel::Linux,
    ] {
        let all = Question::first()
            .into_iter()
            .chain(Question::second(kernel))
            .chain([Question::Way(to)]);
        for question in all {
            let argv = question.argv(kernel).unwrap();
            if question == Question::Programs {
                // This script is a constant; names are its arguments.
                assert_eq!(
                    argv[..3],
                    ["sh", "-c", "for p; do command -v \"$p\"; done; :"]
                );
                continue;
            }
            if question == Question::Interfaces && argv[0] == "sh" {
                // A constant, too.
                assert!(argv.len() == 3 && argv[2].contains("linerate"), "{argv:?}");
                continue;
            }
            assert!(
                argv.iter()
                    .all(|w| !w.is_empty() && !w.contains([' ', ';', '\n'])),
                "{argv:?}"
            );
        }
        for name in ["-f", "a b", "x;y", "", "eth0\n"] {
            assert_eq!(Question::Link(name.into()).argv(kernel), None);
            assert_eq!(Question::Pause(name.into()).argv(kernel), None);
        }
        for name in ["-a", "kern.x=1", "a b", ""] {
            assert_eq!(Question::Sysctls(vec![name.into()]).argv(kernel), None);
        }
    }
    assert_eq!(Question::interface(Kernel::OpenBsd, "em0"), []);
    assert_eq!(Question::interface(Kernel::Linux, "eth0").len(), 2);
}

fn answers() -> impl Strategy<Value = Vec<u8>> {
    let known = prop::sample::select(vec![
        FREEBSD_IFCONFIG,
        OPENBSD_IFCONFIG,
        NETBSD_IFCONFIG,
        "FreeBSD a 1 b c\n",
        "Linux a 1 b c\n",
        "==> /etc/version <==\n",
        "[{\"ifname\":\"a\",\"addr_info\":[{\"local\":\"::1\",\"prefixlen\":1e99}]}]",
        "Name Mtu Network Address Ipkts\n",
        "a 1 <Link#1> 5\n",
        "Destination Gateway Flags Netif\n",
        "? (198.18.0.203) at 0c:c4:7a:ab:29:35 on igb1 ",
        "/dev/x 1 2 3 4% /\n",
    ]);
    let piece = prop_oneof![
        known.prop_map(|t| t.as_bytes().to_vec()),
        prop::collection::vec(any::<u8>(), 0..30)
    ];
    let edits = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6);
    (
        prop::collection::vec(piece, 0..5),
        edits,
        any::<prop::sample::Index>(),
    )
        .prop_map(|(pieces, edits, end)| {
            let mut bytes = pieces.concat();
            for (at, byte) in edits {
                if !bytes.is_empty() {
                    let at = at.index(bytes.len());
                    bytes[at] = byte;
                }
            }
            bytes.truncate(end.index(bytes.len() + 1));
            bytes
        })
}

proptest! {
    #[test]
    fn any_answer_to_any_question_is_taken(bytes in answers(), linux_host in any::<bool>(), status in any::<i32>()) {
        let mut facts = if linux_host { linux() } else { freebsd() };
        let to = "198.19.10.1".parse().unwrap();
        let mut questions = Question::first();
        questions.extend(Question::second(Kernel::FreeBsd));
        questions.extend([Question::Way(to), Question::Pause("igb1".into()), Question::Link("igb1".into())]);
        for question in questions {
            facts.answer(&question, &bytes, status);
        }
        facts.date(&bytes, 0.0, 1.0);
        let limit = bytes.len() + 1;
        prop_assert!(facts.interfaces.len() <= limit && facts.neighbours.len() <= 2 * limit);
    }
}
