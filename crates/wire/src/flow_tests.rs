//! Tests of flow spaces and their grammar.

use super::*;
use crate::endpoints::address_bits;
use proptest::prelude::*;
use std::collections::HashSet;

fn range(text: &str) -> String {
    let range: EndpointRange = text.parse().unwrap_or_else(|error| panic!("{error}"));
    let (first, last) = (range.first_address(), range.last_address());
    format!(
        "{first} {last} {} {}",
        range.first_port(),
        range.last_port()
    )
}

fn refusal(text: &str) -> String {
    text.parse::<EndpointRange>().unwrap_err().to_string()
}

#[test]
fn pkt_gen_forms() {
    assert_eq!(range("198.18.10.1"), "198.18.10.1 198.18.10.1 1234 1234");
    assert_eq!(
        range("198.18.10.1:2001"),
        "198.18.10.1 198.18.10.1 2001 2001"
    );
    assert_eq!(
        range("198.18.10.1:2001-198.18.10.20"),
        "198.18.10.1 198.18.10.20 2001 2001"
    );
    assert_eq!(
        range("198.18.10.1:2001-198.18.10.20:2010"),
        "198.18.10.1 198.18.10.20 2001 2010"
    );
    assert_eq!(
        range("198.18.10.1:2001-:2010"),
        "198.18.10.1 198.18.10.1 2001 2010"
    );
    assert_eq!(
        range("198.18.10.1-198.18.10.20"),
        "198.18.10.1 198.18.10.20 1234 1234"
    );
    assert_eq!(
        range("198.18.10.1-198.18.10.20:2000-2010"),
        "198.18.10.1 198.18.10.20 2000 2010"
    );
    assert_eq!(
        range("198.18.10.1-198.18.10.20:2000"),
        "198.18.10.1 198.18.10.20 2000 2000"
    );
    assert_eq!(
        range("2001:2::1-2001:2::14"),
        "2001:2::1 2001:2::14 1234 1234"
    );
    assert_eq!(
        range("[2001:2::1]:2001-[2001:2::14]"),
        "2001:2::1 2001:2::14 2001 2001"
    );
    assert_eq!(
        range("[2001:2::1]:2001-[2001:2::14]:2010"),
        "2001:2::1 2001:2::14 2001 2010"
    );
    assert_eq!(
        range("[2001:2::1]-[2001:2::14]:2000-2010"),
        "2001:2::1 2001:2::14 2000 2010"
    );
    assert_eq!(range("2001:2::1"), "2001:2::1 2001:2::1 1234 1234");
}

#[test]
fn short_forms() {
    assert_eq!(
        range("198.18.10.1-20"),
        "198.18.10.1 198.18.10.20 1234 1234"
    );
    assert_eq!(
        range("198.18.10.1-20:2000-2010"),
        "198.18.10.1 198.18.10.20 2000 2010"
    );
    assert_eq!(
        range("198.18.10.1:2001-20:2010"),
        "198.18.10.1 198.18.10.20 2001 2010"
    );
    assert_eq!(
        range("198.18.10.1:2001-2010"),
        "198.18.10.1 198.18.10.1 2001 2010"
    );
    assert_eq!(
        range("[2001:2::1]:2001-2010"),
        "2001:2::1 2001:2::1 2001 2010"
    );
    assert_eq!(
        range(" 198.18.65.0/24 "),
        "198.18.65.1 198.18.65.254 1234 1234"
    );
    assert_eq!(
        range("198.18.65.0/24:2000-2010"),
        "198.18.65.1 198.18.65.254 2000 2010"
    );
    assert_eq!(range("198.18.65.4/31:7"), "198.18.65.4 198.18.65.5 7 7");
    assert_eq!(range("198.18.65.4/32"), "198.18.65.4 198.18.65.4 1234 1234");
    assert_eq!(range("[2001:2::]/120:7"), "2001:2::1 2001:2::ff 7 7");
    assert_eq!(range("2001:2::/127"), "2001:2:: 2001:2::1 1234 1234");
}

#[test]
fn refusals_help() {
    assert!(
        refusal("198.18.10.20:2001-198.18.10.1").contains("write 198.18.10.1:2001-198.18.10.20")
    );
    assert!(
        refusal("198.18.10.1:2010-198.18.10.20:2001")
            .contains("write 198.18.10.1:2001-198.18.10.20:2010")
    );
    assert!(refusal("198.18.10.1:2001-20").contains("the ports run backwards"));
    assert!(refusal("198.18.10.20-1").contains("write 198.18.10.1:1234-198.18.10.20"));
    assert!(refusal("198.18.10.1-2001:2::1").contains("one family"));
    assert!(refusal("198.18.65.7/24").contains("without bits behind its prefix"));
    assert!(refusal("2001:2::/64").contains("more than the limit"));
    for bad in [
        "",
        "-",
        ":",
        "/",
        "198.18.10",
        "198.18.10.1-",
        "198.18.10.1:",
        "198.18.10.1:0",
        "198.18.10.1:65536",
        "198.18.10.1-256",
        "198.18.10.1:+7",
        "[2001:2::1",
        "[2001:2::1]7",
        "198.18.0.0/33",
        "198.18.0.0/",
        "198.18.0.0/+8",
        "198.18.10.1:1-198.18.10.2:3-4",
        "2001:2::1-20",
        "::/0",
        "198.18.10.1-198.18.10.2-198.18.10.3",
    ] {
        assert!(bad.parse::<EndpointRange>().is_err(), "{bad}");
    }
}

#[test]
fn traversal_is_pkt_gens() {
    let space = FlowSpace::parse("10.0.0.1:1-10.0.0.2:2", "10.1.0.1:5-10.1.0.2:6").unwrap();
    let flows: Vec<String> = space
        .iter()
        .take(9)
        .map(|f| format!("{}:{} {}:{}", f.src, f.src_port, f.dst, f.dst_port).replace("10.", ""))
        .collect();
    let want = "0.0.1:1 1.0.1:5|0.0.1:2 1.0.1:5|0.0.2:1 1.0.1:5|0.0.2:2 1.0.1:5|0.0.1:1 1.0.1:6|0.0.1:2 1.0.1:6|\
                0.0.2:1 1.0.1:6|0.0.2:2 1.0.1:6|0.0.1:1 1.0.2:5";
    assert_eq!(flows.join("|"), want);
    assert_eq!(space.len(), 16);
    assert_eq!(space.flow(16), space.flow(0));
}

#[test]
fn the_studies_2000_flows() {
    let space = FlowSpace::benchmark(Family::V4, 2000).unwrap();
    assert_eq!(
        space.to_string(),
        "198.18.10.1:2001-198.18.10.20 > 198.19.10.1:2001-198.19.10.100"
    );
    assert_eq!(
        space,
        FlowSpace::parse(
            "198.18.10.1:2001-198.18.10.20",
            "198.19.10.1:2001-198.19.10.100"
        )
        .unwrap()
    );
    let space = FlowSpace::benchmark(Family::V6, 2000).unwrap();
    let want =
        "[2001:2:0:10::1]:2001-[2001:2:0:10::14] > [2001:2:0:8010::1]:2001-[2001:2:0:8010::64]";
    assert_eq!(space.to_string(), want);
    assert_eq!(space.family(), Family::V6);
}

#[test]
fn benchmark_spaces_are_exact_distinct_and_inside() {
    let inside = |address: IpAddr, first: [u8; 4], bits: u32| match address {
        IpAddr::V4(v4) => (u32::from(v4) ^ u32::from(Ipv4Addr::from(first))) >> (32 - bits) == 0,
        IpAddr::V6(_) => true,
    };
    for n in [
        1, 7, 20, 21, 1999, 2001, 4001, 5003, 100_000, 999_983, MAX_FLOWS,
    ] {
        let space = FlowSpace::benchmark(Family::V4, n).unwrap();
        assert_eq!(space.usable_len().unwrap(), n);
        assert!(
            inside(space.source().last_address(), [198, 18, 10, 0], 23),
            "{space}"
        );
        assert!(
            inside(space.destination().last_address(), [198, 19, 8, 0], 21),
            "{space}"
        );
        if n <= 100_000 {
            let all: HashSet<Flow> = space.iter().collect();
            assert_eq!(all.len(), n as usize);
        }
        // No destination is named that is not used.
        assert_eq!(
            space.flow(u64::from(n) - 1).dst,
            space.destination().last_address()
        );
    }
    let says = |found: Result<FlowSpace>, part: &str| {
        assert!(found.unwrap_err().to_string().contains(part))
    };
    says(FlowSpace::benchmark(Family::V4, 0), "at least one flow");
    says(
        FlowSpace::benchmark(Family::V6, MAX_FLOWS + 1),
        "more than the limit of 5000000",
    );
    let last = "255.255.255.250".parse().unwrap();
    assert!(FlowSpace::benchmark_from(last, last, 2000).is_err());
}

#[test]
fn limits() {
    let space = FlowSpace::parse("10.0.0.0/16:1-100", "10.1.0.1").unwrap();
    assert_eq!(space.len(), 6_553_400);
    assert!(
        space
            .usable_len()
            .unwrap_err()
            .to_string()
            .contains("5000000")
    );
    let space = space.with_limit(3);
    assert_eq!(
        (space.len(), space.iter().count(), space.usable_len()),
        (3, 3, Ok(3))
    );
    assert!(space.to_string().ends_with(", the first 3 flows"));
    assert_eq!(space.with_limit(0).len(), 1);
    let large = FlowSpace::parse("10.0.0.0/8", "11.0.0.0/8").unwrap_err();
    assert!(large.to_string().contains("more than the limit"));
    let error = FlowSpace::parse("10.0.0.1", "2001:2::1")
        .unwrap_err()
        .to_string();
    assert_eq!(
        error,
        "10.0.0.1:1234 is IPv4, [2001:2::1]:1234 is IPv6: both must be of one family"
    );
    let whole = "2001:2::1-[2001:2::2]:65535";
    assert!(
        whole.parse::<EndpointRange>().is_ok(),
        "the first is a bare address"
    );
}

#[test]
fn mirrored_flows_answer_the_same_numbers() {
    let space = FlowSpace::benchmark(Family::V6, 2500).unwrap();
    let answers = space.mirrored();
    assert_eq!(answers.len(), space.len());
    assert!(
        space
            .iter()
            .zip(answers.iter())
            .all(|(flow, answer)| answer == flow.answer() && answer.answer() == flow)
    );
    assert_eq!(answers.mirrored(), space);
    assert!(answers.to_string().contains(" < "));
}

proptest! {
    #[test]
    fn ranges_are_written_as_read(first: u32, addresses in 0u32..1000, port in 1u16.., ports in 0u16..1000, v6: bool) {
        let address = |bits: u32| -> IpAddr {
            if v6 { Ipv6Addr::from(u128::from(bits) << 60).into() } else { Ipv4Addr::from(bits).into() }
        };
        let last = if v6 { first } else { first.saturating_add(addresses) };
        let range = EndpointRange::new(address(first), address(last), port, port.saturating_add(ports)).unwrap();
        prop_assert_eq!(range.to_string().parse::<EndpointRange>().unwrap(), range);
    }

    #[test]
    fn flows_are_distinct(a in 1u64..6, b in 1u16..6, c in 1u64..6, d in 1u16..6, v6: bool) {
        let side = |n: u64, p: u16, base: u32| {
            let address = |n: u32| -> IpAddr {
                if v6 { Ipv6Addr::from(u128::from(base + n)).into() } else { Ipv4Addr::from(base + n).into() }
            };
            EndpointRange::new(address(0), address(n as u32 - 1), 65_530, 65_530 + p - 1).unwrap()
        };
        let space = FlowSpace::new(side(a, b, 100), side(c, d, 200)).unwrap();
        prop_assert_eq!(space.len(), a * c * u64::from(b * d));
        prop_assert_eq!(space.iter().collect::<HashSet<_>>().len() as u64, space.len());
    }

    #[test]
    fn never_panics(text in "\\[?(198\\.18\\.1\\.[0-9]{1,3}|2001:2::[0-9a-f]{0,4})?[]0-9a-f:./-]{0,30}") {
        let _ = text.parse::<EndpointRange>();
    }

    #[test]
    fn never_panics_at_all(text in ".*") {
        let _ = text.parse::<EndpointRange>();
    }
}

#[test]
fn flows_over_256_networks_are_uniform_and_of_the_benchmark_range() {
    let ends = (
        "198.18.1.2".parse().unwrap(),
        "198.19.0.66".parse().unwrap(),
    );
    let space = FlowSpace::across(ends, RFC2544_PORTS, 256, 512).unwrap();
    let mut networks = [0; 256];
    for flow in space.iter() {
        let IpAddr::V4(dst) = flow.dst else {
            panic!("{flow:?}")
        };
        let [198, 19, network, 66] = dst.octets() else {
            panic!("{dst}")
        };
        networks[usize::from(network)] += 1;
        assert_eq!((flow.src_port, flow.dst_port), (0xc020, 7));
    }
    assert_eq!(networks, [2; 256]);
    assert_eq!(space.iter().collect::<HashSet<_>>().len(), 512);
    let one = FlowSpace::across(ends, RFC2544_PORTS, 1, 1).unwrap();
    assert_eq!(
        (one.len(), one.flow(0).dst),
        (1, ends.1),
        "a single address pair"
    );
    let six = (
        "2001:2:0:10::1".parse().unwrap(),
        "2001:2:0:8010::1".parse().unwrap(),
    );
    let space = FlowSpace::across(six, RFC2544_PORTS, 256, 256).unwrap();
    assert_eq!(
        space.flow(255).dst,
        "2001:2:0:8010::ff:1".parse::<IpAddr>().unwrap()
    );
    let past = (
        "198.18.1.2".parse().unwrap(),
        "255.255.255.1".parse().unwrap(),
    );
    assert!(
        FlowSpace::across(past, RFC2544_PORTS, 2, 2)
            .unwrap_err()
            .to_string()
            .contains("run past")
    );
}

#[test]
fn random_ports_are_those_of_rfc_4814_uniform_and_the_same_each_time() {
    let drawn = |seed| {
        let space = FlowSpace::benchmark(Family::V4, 100_000)
            .unwrap()
            .with_ports(Selection::Random { seed });
        space
            .iter()
            .map(|f| (f.src_port, f.dst_port))
            .collect::<Vec<_>>()
    };
    let ports = drawn(1);
    assert_eq!(ports, drawn(1));
    assert_ne!(ports, drawn(2));
    assert!(
        ports
            .iter()
            .all(|(src, dst)| *src >= 1024 && (1..=49_151).contains(dst))
    );
    let sources = chi(ports.iter().map(|(src, _)| u64::from(src - 1024)), 64_512);
    let destinations = chi(ports.iter().map(|(_, dst)| u64::from(dst - 1)), 49_151);
    assert!(
        sources < 37.7 && destinations < 37.7,
        "{sources} {destinations}"
    );
}

#[test]
fn spaces_with_networks_and_ports_are_read_again() {
    let ends = (
        "198.18.1.2".parse().unwrap(),
        "198.19.0.66".parse().unwrap(),
    );
    let space = FlowSpace::across(ends, RFC2544_PORTS, 256, 300).unwrap();
    let random = space.clone().with_ports(Selection::Random { seed: 7 });
    let hosts = random.clone().with_random_addresses(3, [250, 100]).unwrap();
    let range = FlowSpace::benchmark(Family::V6, 300)
        .unwrap()
        .with_random_addresses(4, [65_534; 2])
        .unwrap();
    for space in [space, random, hosts, range.mirrored()] {
        let text = serde_json::to_string(&space).unwrap();
        let again: FlowSpace = serde_json::from_str(&text).unwrap();
        assert_eq!(again, space, "{text}");
        assert!(!space.is_plain());
        assert_eq!(again.flow(299), space.flow(299));
    }
    assert_eq!("random:7".parse(), Ok(Selection::Random { seed: 7 }));
    assert!("every".parse::<Selection>().is_err());
}

/// Chi-square of counts; of 15 degrees of freedom, 1 in 1000 exceeds 37.7.
fn chi(numbers: impl Iterator<Item = u64>, below: u64) -> f64 {
    let mut counts = [0u32; 16];
    numbers.for_each(|number| counts[(number * 16 / below) as usize] += 1);
    let all = f64::from(counts.iter().sum::<u32>());
    let of_part = |(part, count): (u64, &u32)| {
        let width = ((part + 1) * below).div_ceil(16) - (part * below).div_ceil(16);
        let expected = all * width as f64 / below as f64;
        (f64::from(*count) - expected).powi(2) / expected
    };
    (0..).zip(&counts).map(of_part).sum()
}

#[test]
fn random_addresses_are_uniform_each_pair_once_and_the_same_each_time() {
    let bits = |address: IpAddr| address_bits(address) as u64;
    for (family, networks, hosts) in [
        (Family::V4, 1, [62_974; 2]),
        (Family::V6, 1, [65_534; 2]),
        (Family::V4, 256, [65_277, 188]),
        (Family::V6, 8, [4096, 252]),
    ] {
        let ends: (IpAddr, IpAddr) = match family {
            Family::V4 => ([198, 18, 10, 1].into(), [198, 19, 0, 66].into()),
            Family::V6 => (
                "2001:2:0:10::1".parse().unwrap(),
                "2001:2:0:8010::1".parse().unwrap(),
            ),
        };
        let counted = FlowSpace::across(ends, RFC2544_PORTS, networks, 51_200).unwrap();
        let space = counted.clone().with_random_addresses(7, hosts).unwrap();
        assert_eq!(space.len(), 51_200);
        let flows: Vec<Flow> = space.iter().collect();
        assert_eq!(
            flows.iter().collect::<HashSet<_>>().len(),
            51_200,
            "{space}"
        );
        assert_eq!(
            flows,
            counted
                .clone()
                .with_random_addresses(7, hosts)
                .unwrap()
                .iter()
                .collect::<Vec<_>>()
        );
        assert_ne!(
            flows[..99],
            counted
                .with_random_addresses(8, hosts)
                .unwrap()
                .iter()
                .take(99)
                .collect::<Vec<_>>()
        );
        let step = if networks == 1 {
            1 << 32
        } else {
            space.destination().step as u64
        };
        let sources = || flows.iter().map(|flow| bits(flow.src) - bits(ends.0));
        let destinations = || {
            flows
                .iter()
                .map(|flow| (bits(flow.dst) - bits(ends.1)) % step)
        };
        for (i, flow) in flows.iter().enumerate() {
            let network = (bits(flow.dst) - bits(ends.1)) / step;
            assert_eq!(
                network,
                if networks == 1 {
                    0
                } else {
                    i as u64 % u64::from(networks)
                }
            );
            assert_eq!(
                [flow.src_port, flow.dst_port],
                [RFC2544_PORTS.0, RFC2544_PORTS.1]
            );
        }
        let quarter = |(host, of): (u64, u32)| host * 4 / u64::from(of);
        let both = sources()
            .zip(destinations())
            .map(|(a, b)| quarter((a, hosts[0])) * 4 + quarter((b, hosts[1])));
        let found = [
            chi(sources(), hosts[0].into()),
            chi(destinations(), hosts[1].into()),
            chi(sources().map(|source| source % 16), 16),
            chi(both, 16),
        ];
        assert!(found.iter().all(|chi| *chi < 37.7), "{space}: {found:?}");
    }
    let few = FlowSpace::benchmark(Family::V4, 2000)
        .unwrap()
        .with_random_addresses(1, [10, 10]);
    assert!(
        few.unwrap_err()
            .to_string()
            .contains("more than the 100 pairs")
    );
    let past =
        EndpointRange::new([255, 255, 255, 1].into(), [255, 255, 255, 1].into(), 1, 1).unwrap();
    assert!(
        FlowSpace::new(past, past)
            .unwrap()
            .with_random_addresses(1, [1000, 1])
            .is_err()
    );
}

proptest! {
    /// From files and agents.
    #[test]
    fn hostile_spaces_do_not_panic(networks in any::<u32>(), hosts in any::<u32>(), flows in any::<u64>(), i in any::<u64>(), six in any::<bool>()) {
        let ends = if six { ["[ffff::1]:1-[ffff::ff]:9", "[ffff::1]:1"] } else { ["255.0.0.1:1-255.0.0.9:9", "198.18.0.1:1"] };
        let text = format!(
            r#"{{"source":"{}","destination":"{}","flows":{flows},"networks":{networks},"hosts":{hosts},"addresses":"random","ports":"random"}}"#,
            ends[0], ends[1]
        );
        if let Ok(space) = serde_json::from_str::<FlowSpace>(&text) {
            space.flow(i);
        }
    }
}
