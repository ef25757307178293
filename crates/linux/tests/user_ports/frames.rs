//! The bytes of the frames that the eBPF generator sends.

use super::{Wire, load, target, traffic, wire};
use linerate_linux::net::ethtool::Ethtool;
use linerate_linux::ports::frame_source::FrameSource;
use linerate_linux::ports::{self, Port};
use linerate_plan::Backend;
use linerate_wire::{
    Extensions, Family, FlowOrder, FlowSpace, FrameSpec, Load, Recognised, Second, Selection,
    SourceMacs, Traffic, VlanTag, recognise,
};
use std::collections::HashSet;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

/// Frames that arrive at the receiver's end, as they were on the wire; of tagged ones, the kernel has taken the tag away.
fn captured(wire: &Wire, generator: &mut dyn Port, load: &Load) -> Vec<Vec<u8>> {
    // Redirected frames need the NAPI of the other end.
    Ethtool::open(&wire.namespace)
        .unwrap()
        .set_feature("r0", "rx-gro", true)
        .unwrap();
    let socket = wire
        .namespace
        .enter(|| packet_socket(wire.receiver))
        .unwrap();
    generator.start(load).unwrap();
    let (wanted, began) = (load.frames.unwrap() as usize, Instant::now());
    let mut all = Vec::new();
    while all.len() < wanted && began.elapsed() < Duration::from_secs(60) {
        let mut frame = vec![0; 4096];
        // SAFETY: the buffer is as long as the call is told.
        let length = unsafe {
            libc::recv(
                socket.as_raw_fd(),
                frame.as_mut_ptr().cast(),
                frame.len(),
                libc::MSG_DONTWAIT,
            )
        };
        match usize::try_from(length) {
            Ok(length) => all.push(frame[..length].to_vec()),
            Err(_) => std::thread::sleep(Duration::from_millis(1)),
        }
    }
    generator.stop().unwrap();
    all
}

fn packet_socket(ifindex: u32) -> OwnedFd {
    // SAFETY: the descriptor is new and nobody else's; the structure is plain data, and as long as the call is told.
    unsafe {
        let socket = libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0);
        assert!(socket >= 0);
        let socket = OwnedFd::from_raw_fd(socket);
        let room: libc::c_int = 32 << 20;
        let length = size_of_val(&room) as u32;
        let (level, name) = (libc::SOL_SOCKET, libc::SO_RCVBUFFORCE);
        assert_eq!(
            libc::setsockopt(
                socket.as_raw_fd(),
                level,
                name,
                (&raw const room).cast(),
                length
            ),
            0
        );
        let mut address: libc::sockaddr_ll = std::mem::zeroed();
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        address.sll_ifindex = ifindex as i32;
        let length = size_of_val(&address) as u32;
        assert_eq!(
            libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length),
            0
        );
        socket
    }
}

/// The eBPF generator writes what the definition of the frames says, to the byte.
#[test]
#[ignore = "needs root: run by make test as root"]
fn ebpf_frames_are_those_of_user_space_to_the_byte() {
    let wire = wire(1);
    let random = Selection::Random { seed: 3 };
    let drawn = |family| {
        let flows = FlowSpace::benchmark(family, 50).unwrap().with_ports(random);
        flows.with_random_addresses(4, [62_974, 62_974]).unwrap()
    };
    let macs = Traffic {
        source_macs: SourceMacs::Random { seed: 5 },
        flows: drawn(Family::V4),
        ..traffic("64")
    };
    let of_ipv6 = |extensions, vlan| {
        let frame = FrameSpec {
            family: Family::V6,
            extensions,
            vlan,
            ..traffic("128").frame
        };
        Traffic {
            frame,
            flows: drawn(Family::V6),
            ..traffic("128")
        }
    };
    let tag = Some(VlanTag { id: 7, priority: 0 });
    let second = Some(Second {
        millionths: 300_000,
        flows: drawn(Family::V6),
    });
    // All are stamped: in user space each version has a distance of its own between stamps.
    let mixed = Traffic {
        ipv6: second,
        stamp_every: 1,
        mix: "genome:bbd".parse().unwrap(),
        ..macs.clone()
    };
    let tagged = Traffic {
        frame: FrameSpec {
            vlan: tag,
            ..mixed.frame
        },
        ..mixed.clone()
    };
    let all = [
        macs.clone(),
        macs.mirrored(),
        of_ipv6(Extensions::Chain, None),
        of_ipv6(Extensions::HopByHop, tag),
        of_ipv6(Extensions::Chain, tag),
        Traffic {
            order: FlowOrder::Random { seed: 9 },
            ..mixed.clone()
        },
        mixed,
        tagged,
    ];
    for traffic in all {
        let name = format!("{} {:?} {:?}", traffic.flows, traffic.frame, traffic.ipv6);
        let load = load(Some(20_000.0), 20_000, Some(200));
        let at = [target(wire.generator)];
        let mut generator =
            ports::generator(Backend::Xdp, &wire.namespace, &at, &traffic, &[0]).unwrap();
        let frames = captured(&wire, &mut *generator, &load);
        assert_eq!(frames.len(), 200, "{name}");
        let [there, back] = [at[0].source, at[0].destination];
        let mut source = FrameSource::new(&traffic.addressed(there, back), 0, 1).unwrap();
        source.begin(traffic.stamp_every);
        let mut sources = HashSet::new();
        for (number, frame) in frames.iter().enumerate() {
            let Recognised::Test { signature, .. } = recognise(frame) else {
                panic!("{name}: {frame:02x?}")
            };
            let mut expected = vec![0; source.longest()];
            let length = source.fill(&mut expected, signature.time_ns);
            expected.truncate(length);
            if traffic.frame.vlan.is_some() {
                expected.drain(12..16);
            }
            assert_eq!(frame[..], expected[..], "{name}: frame {number}");
            sources.insert(frame[6..12].to_vec());
        }
        let own = traffic.source_macs == SourceMacs::Own;
        assert!(
            if own {
                sources.len() == 1
            } else {
                sources.len() >= 45
            },
            "{name}: {sources:?}"
        );
    }
}
