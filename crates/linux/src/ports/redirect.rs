//! Whether an interface's driver transmits redirected frames: one frame shows it. Some drivers do so only while an XDP program is
//! attached to the interface, and others never. docs/packet-io.md lists them.

use super::Target;
use super::attached::Pass;
use super::live::run_live;
use crate::bpf::{self, MappedArray};
use crate::error::Error;
use crate::net::Netns;
use crate::net::ethtool::Ethtool;
use crate::net::netlink::Route;
use crate::telemetry::{attach, observed};
use aya::Ebpf;
use aya::programs::Program;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// How long a link may take to come back: attaching a program takes some cards down for a moment.
const LINK_WITHIN: Duration = Duration::from_secs(10);

/// Makes sure that a target's interface transmits redirected frames, with a program that passes all frames if it needs one, which goes with
/// the last owner. On a kernel that does not tell, nothing is sure.
///
/// # Errors
/// The interface does not transmit them: its driver's reason.
pub(super) fn ensure(namespace: &Netns, target: &Target) -> Result<Option<Arc<Pass>>, Error> {
    let mut pass = Pass::on(namespace, target.ifindex);
    let Ok(mut proof) = Proof::new(namespace, target) else {
        return Ok(pass);
    };
    let Err(mut why) = proof.transmits()? else {
        return Ok(pass);
    };
    if pass.is_none() {
        match Pass::attach(namespace, target.ifindex) {
            Ok(attached) => {
                pass = Some(attached);
                Route::open(namespace)?.wait_running(target.ifindex, LINK_WITHIN)?;
                match proof.transmits()? {
                    Ok(()) => return Ok(pass),
                    Err(still) => why = format!("{still}, with an XDP program on it, too"),
                }
            }
            Err(error) => why = format!("{why}, and none of ours can be attached: {error}"),
        }
    }
    let name = Route::open(namespace)?.link_by_index(target.ifindex)?.name;
    let driver = Ethtool::open(namespace).and_then(|ethtool| ethtool.driver(&name));
    let driver = driver.unwrap_or_else(|_| "unknown".into());
    let veth = match &*driver {
        "veth" => ". A veth's other end must have GRO or an XDP program: ethtool -K PEER gro on",
        _ => "",
    };
    Err(Error::Refused(format!(
        "{name} (driver {driver}) does not transmit frames of XDP: {why}{veth}"
    )))
}

/// `struct taken` in redirect.bpf.c: frames, and the driver's error.
type Taken = [i64; 2];

/// Sends single frames, and asks the kernel what became of them.
struct Proof<'a> {
    namespace: &'a Netns,
    frame: [u8; 60],
    taken: MappedArray<Taken>,
    ebpf: Ebpf,
}

/// An EtherType for experiments (IEEE 802).
const LOCAL_EXPERIMENTAL: [u8; 2] = [0x88, 0xb5];

impl<'a> Proof<'a> {
    /// Of frames that an interface sends to itself: no station takes them, and no bridge forwards them.
    fn new(namespace: &'a Netns, target: &Target) -> Result<Proof<'a>, Error> {
        let observed = observed(&[namespace]);
        let mut ebpf = bpf::REDIRECT.load(
            &[("IFINDEX", target.ifindex)],
            &[("OBSERVED", &observed)],
            &[],
        )?;
        bpf::load_xdp(&mut ebpf, "probe")?;
        attach(&mut ebpf, "took", "xdp_devmap_xmit")?;
        let mut frame = [0; 60];
        frame[..6].copy_from_slice(&target.source.0);
        frame[6..12].copy_from_slice(&target.source.0);
        frame[12..14].copy_from_slice(&LOCAL_EXPERIMENTAL);
        Ok(Proof {
            namespace,
            frame,
            taken: MappedArray::take(&mut ebpf, "taken", 1)?,
            ebpf,
        })
    }

    /// Whether the driver takes a frame; otherwise its reason.
    fn transmits(&mut self) -> Result<Result<(), String>, Error> {
        self.taken.set(0, Taken::default());
        let (ebpf, frame) = (&self.ebpf, &self.frame);
        self.namespace.run(|| match ebpf.program("probe") {
            Some(Program::Xdp(program)) => run_live(program, frame, 1, 1),
            _ => Ok(()),
        })?;
        Ok(match self.taken.get(0) {
            [0, 0] => Err("its driver has no function for it (ndo_xdp_xmit)".into()),
            [0, error] => Err(io::Error::from_raw_os_error(-error as i32).to_string()),
            _ => Ok(()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Arrival;
    use super::super::xdp_receiver::XdpReceiver;
    use super::*;
    use linerate_wire::{Filter, MacAddr};

    /// A namespace with a veth, and the numbers of its ends.
    fn wire() -> (Netns, [u32; 2]) {
        let namespace = Netns::anonymous().unwrap();
        let script = "ip link add g0 type veth peer name r0; ip link set g0 up; ip link set r0 up";
        assert!(
            namespace
                .command("sh")
                .args(["-ec", script])
                .status()
                .unwrap()
                .success()
        );
        let route = Route::open(&namespace).unwrap();
        let ends = ["g0", "r0"].map(|name| route.link(name).unwrap().index);
        (namespace, ends)
    }

    fn to(ifindex: u32) -> Target {
        Target {
            ifindex,
            source: MacAddr([2, 0, 0, 0, 0, 1]),
            destination: MacAddr([2, 0, 0, 0, 0, 2]),
        }
    }

    fn xdp_on(namespace: &Netns, name: &str) -> bool {
        let shown = namespace
            .command("ip")
            .args(["link", "show", name])
            .output()
            .unwrap();
        String::from_utf8_lossy(&shown.stdout).contains("xdp")
    }

    /// Waits until there is no program: one that another thread has just forked holds its descriptor until it is carried out.
    fn until_off(namespace: &Netns, name: &str) {
        let began = std::time::Instant::now();
        while xdp_on(namespace, name) {
            assert!(began.elapsed().as_secs() < 60, "{name} keeps its program");
        }
    }

    #[test]
    #[ignore = "needs root"]
    fn a_frame_tells_whether_redirected_frames_leave() {
        let (namespace, [a, b]) = wire();
        let refused = ensure(&namespace, &to(a))
            .err()
            .expect("a veth without NAPI at its other end")
            .to_string();
        assert!(
            refused.contains("driver veth") && refused.contains("gro on"),
            "{refused}"
        );
        until_off(&namespace, "g0");
        let pass = Pass::attach(&namespace, b).unwrap();
        assert!(
            ensure(&namespace, &to(a)).unwrap().is_none(),
            "it needs no program of its own"
        );
        drop(pass);
        until_off(&namespace, "r0");
        ensure(&namespace, &to(a)).err().expect("as before");
    }

    #[test]
    #[ignore = "needs root"]
    fn a_receiver_takes_the_place_of_a_program_that_passes_all() {
        let (namespace, [_, b]) = wire();
        let pass = Pass::attach(&namespace, b).unwrap();
        let at = Arrival {
            ifindex: b,
            queues: 1,
        };
        let receiver = XdpReceiver::new(&namespace, at, Filter::of_campaign(1)).unwrap();
        drop(pass);
        assert!(xdp_on(&namespace, "r0"), "the receiver's program");
        drop(receiver);
        until_off(&namespace, "r0");
        let pass = Pass::attach(&namespace, b).unwrap();
        let another = Pass::attach(&namespace, b)
            .err()
            .expect("the place is taken")
            .errno();
        assert_eq!(another, Some(libc::EBUSY));
        drop(pass);
        until_off(&namespace, "r0");
    }
}
