//! Two routers in a row, with every tunnel between them that this kernel has; the others in guests (crates/linerate/tests/kernels.rs).

use super::bench::{Frames, lab, refusal, send};
use linerate_linux::lab::{EmbeddedLab, Setup};
use linerate_linux::net::Netns;
use linerate_linux::net::netlink::Route;
use linerate_linux::process::{Input, Job};
use linerate_plan::settings::Dut;
use linerate_plan::tunnel::TUNNELS;
use linerate_wire::Family;

/// Output of a program in the second router.
fn ask_second(lab: &EmbeddedLab, job: Job) -> String {
    let dut = lab.lanes[0].dut.as_ref().unwrap();
    let second = dut.namespaces()[1];
    job.run(|path| second.command(path), None).unwrap()
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn tunnels_carry_every_frame_or_are_refused_with_the_reason() {
    for tunnel in &TUNNELS {
        let setup = Setup::of(tunnel.dut);
        let lacking = setup.lacking();
        if !lacking.is_empty() {
            let [why] = &lacking[..] else {
                panic!("{lacking:?}")
            };
            for part in ["this kernel has no ", "CONFIG_", "--kernel"] {
                assert!(why.contains(part), "{}: {why}", tunnel.dut);
            }
            refusal(&setup);
            continue;
        }
        let lab = lab(&setup);
        let dut = lab.lanes[0].dut.as_ref().unwrap();
        let between = |lab: &EmbeddedLab| {
            let route = Route::open(dut.namespaces()[0]).unwrap();
            let name = if matches!(tunnel.link, "veth" | "ipsec") {
                "out0"
            } else {
                "under0"
            };
            let stats = route.link(name).unwrap().stats;
            assert_eq!(lab.lanes.len(), 1);
            (stats.tx_packets, stats.tx_bytes)
        };
        for (family, len_fcs) in [(Family::V4, 64), (Family::V6, 1518)] {
            if tunnel.only.is_some_and(|only| only != family) {
                continue;
            }
            let frames = Frames {
                len_fcs,
                count: 400,
                ..Frames::of(family)
            };
            let before = between(&lab);
            let shown = send(&lab, frames);
            shown.is_whole(&format!("{} {family} {len_fcs}", tunnel.dut));
            let after = between(&lab);
            // Each frame goes from the one router to the other in one packet, as long as the table says or a little shorter.
            let packets = after.0 - before.0;
            let own = packets.checked_sub(shown.entered()).unwrap();
            assert!(own <= 5, "{}: {packets}", tunnel.dut);
            let most = packets * u64::from(u32::from(len_fcs) - 4 + tunnel.overhead + 15);
            assert!((after.1 - before.1) <= most, "{}", tunnel.dut);
        }
    }
}

/// One packet in ten is dropped where it comes out of the link between the routers.
#[test]
#[ignore = "needs root: run by make test as root"]
fn a_known_loss_between_the_routers_is_found_to_the_frame() {
    let lab = lab(&Setup::of(Dut::TwoRouters));
    let rules = "table ip t { chain c { type filter hook prerouting priority raw; ip daddr 198.19.0.0/16 numgen inc mod 10 == 0 drop; }; }\n";
    let load = Job::new("nft", &["-f", "-"]).with_input(Input::text(rules));
    ask_second(&lab, load);
    let shown = send(&lab, Frames::of(Family::V4));
    let account = &shown.account;
    assert!(
        account.balances(&shown.sent, &shown.received),
        "{account:?}"
    );
    assert_eq!(shown.dropped(), shown.entered().div_ceil(10), "{account:?}");
    assert_eq!(
        shown.lost("inside the second router"),
        shown.dropped(),
        "{account:?}"
    );
}

/// Nothing of it is left: its namespaces have no names, and none of its links and addresses is elsewhere.
#[test]
#[ignore = "needs root: run by make test as root"]
fn two_routers_leave_nothing_behind() {
    let here = || {
        let outside = Netns::current().unwrap();
        let route = Route::open(&outside).unwrap();
        let links: Vec<String> = route
            .links()
            .unwrap()
            .into_iter()
            .map(|link| link.name)
            .collect();
        let named = std::fs::read_dir("/run/netns").map_or(0, |names| names.count());
        (links, route.addresses().unwrap(), named)
    };
    let before = here();
    let lab = lab(&Setup::of(Dut::TwoRouters));
    let inodes: Vec<u64> = {
        let dut = lab.lanes[0].dut.as_ref().unwrap();
        dut.namespaces()
            .iter()
            .map(|namespace| namespace.inode())
            .collect()
    };
    assert_ne!(inodes[0], inodes[1]);
    assert_eq!(here(), before);
    drop(lab);
    assert_eq!(here(), before);
}
