//! Labs of hosts with a guest.

use super::guest::{Guest, Stand};
use crate::hosts_beside::lab::{
    BACK, DUT, DUT_IPV6, GENERATOR, GENERATOR_IPV6, LAB, RECEIVER, RECEIVER_IPV6, has_linerate,
    run, with_ipv6, with_one_tester,
};
use crate::hosts_beside::site::Site;
use std::ops::Deref;

/// A guest in a lab, which ends before the lab does.
pub struct GuestLab {
    pub guest: Guest,
    pub site: Site,
}

impl Deref for GuestLab {
    type Target = Site;

    fn deref(&self) -> &Site {
        &self.site
    }
}

impl GuestLab {
    /// The guest is the router between generator and receiver, which are namespaces of this machine.
    pub fn router(stand: Stand) -> GuestLab {
        let site = Site::new(&["generator", "receiver"]);
        let [generator, receiver] = [0, 1].map(|n| &site.ssh.hosts[n].netns);
        let guest = Guest::boot(
            stand,
            &site,
            "dut",
            [("in0", generator, "g0"), ("out0", receiver, "r0")],
        );
        run(generator, &[GENERATOR, GENERATOR_IPV6].join("\n"));
        run(receiver, &[RECEIVER, BACK, RECEIVER_IPV6].join("\n"));
        guest.on(&[DUT, DUT_IPV6].join("\n"));
        site.ssh.hosts.iter().for_each(has_linerate);
        site.write("LAB.toml", &with_ipv6(LAB));
        GuestLab { guest, site }
    }

    /// The guest is the tester at both ends of a router, which is a namespace of this machine.
    pub fn tester(stand: Stand) -> GuestLab {
        let site = Site::new(&["dut"]);
        let dut = &site.ssh.hosts[0].netns;
        let guest = Guest::boot(
            stand,
            &site,
            "generator",
            [("g0", dut, "in0"), ("r0", dut, "out0")],
        );
        guest.on(&[GENERATOR, RECEIVER].join("\n"));
        run(dut, DUT);
        site.write("LAB.toml", &with_one_tester(LAB));
        GuestLab { guest, site }
    }
}
