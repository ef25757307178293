//! Advice for end hosts: TCP's buffers and settings, which routers do not get.

use super::{item, wanted};
use linerate_advise::{Demands, Role, advise};
use linerate_hosts::configuration::{Card, Configuration, Release};

#[test]
fn end_hosts_get_the_guides_buffers_and_routers_do_not() {
    let mut found = Configuration {
        system: Release {
            kernel: "linux".into(),
            release: Some("6.12.8".into()),
            product: None,
        },
        cards: vec![Card {
            name: "eth0".into(),
            speed: Some(1e9),
            driver: Some("igb".into()),
            ..Card::default()
        }],
        ..Configuration::default()
    };
    let end = Demands {
        role: Some(Role::EndHost),
        ..Demands::default()
    };
    let all = advise(&found, end).unwrap();
    let buffers = item(&all, "linux-tcp-buffers").unwrap();
    // 1 Gbit/s x 100 ms = 12.5 MB, and as much for the overhead of packets. The guide has 16777216, which 67 ms take.
    assert_eq!(
        wanted(buffers, "net.core.rmem_max").as_deref(),
        Some("33554432")
    );
    assert_eq!(
        wanted(buffers, "net.ipv4.tcp_rmem").as_deref(),
        Some("4096 524288 33554432")
    );
    let near = advise(
        &found,
        Demands {
            rtt_ns: 67e6,
            ..end
        },
    )
    .unwrap();
    let near = item(&near, "linux-tcp-buffers").unwrap();
    assert_eq!(
        wanted(near, "net.core.wmem_max").as_deref(),
        Some("16777216")
    );
    assert!(
        buffers
            .computation
            .as_ref()
            .unwrap()
            .contains("12500000 bytes"),
        "{:?}",
        buffers.computation
    );
    // A larger present limit stays; a window of 4 MiB carries a third of the product.
    found
        .sysctls
        .insert("net.ipv4.tcp_rmem".into(), "4096 131072 67108864".into());
    found
        .sysctls
        .insert("net.ipv4.tcp_wmem".into(), "4096 16384 4194304".into());
    let grown = advise(&found, end).unwrap();
    let buffers = item(&grown, "linux-tcp-buffers").unwrap();
    assert_eq!(
        wanted(buffers, "net.ipv4.tcp_rmem").as_deref(),
        Some("4096 524288 67108864")
    );
    let how = buffers.computation.as_ref().unwrap();
    assert!(how.contains("gain: net.ipv4.tcp_wmem lets at most 4194304 bytes pass in each round trip, 336 Mbit/s, and 12500000 / 4194304 - 1 = +198 %"), "{how}");
    assert!(
        (buffers.gain - (12.5e6 / 4_194_304.0 - 1.0)).abs() < 1e-9 && buffers.certainty == 0.5,
        "{buffers:?}"
    );
    found.sysctls.clear();
    // 10 Gbit/s x 80 ms = 100 MB.
    let far = advise(
        &found,
        Demands {
            rate: Some(1e10),
            rtt_ns: 80e6,
            ..end
        },
    )
    .unwrap();
    assert_eq!(
        wanted(
            item(&far, "linux-tcp-buffers").unwrap(),
            "net.core.rmem_max"
        )
        .as_deref(),
        Some("268435456")
    );
    for (setting, value) in [
        ("net.ipv4.tcp_slow_start_after_idle", "0"),
        ("net.ipv4.tcp_no_metrics_save", "1"),
    ] {
        assert_eq!(
            wanted(item(&all, "linux-tcp-idle").unwrap(), setting).as_deref(),
            Some(value)
        );
    }
    assert_eq!(
        wanted(
            item(&all, "linux-tcp-htcp").unwrap(),
            "net.ipv4.tcp_congestion_control"
        )
        .as_deref(),
        Some("htcp")
    );
    // The guide turns SYN cookies and path MTU discovery off: the advice is to turn them on again.
    found
        .sysctls
        .insert("net.ipv4.tcp_syncookies".into(), "0".into());
    found
        .sysctls
        .insert("net.ipv4.ip_no_pmtu_disc".into(), "1".into());
    let all = advise(&found, end).unwrap();
    assert_eq!(
        wanted(
            item(&all, "linux-tcp-syncookies").unwrap(),
            "net.ipv4.tcp_syncookies"
        )
        .as_deref(),
        Some("1")
    );
    assert_eq!(
        wanted(
            item(&all, "linux-path-mtu").unwrap(),
            "net.ipv4.ip_no_pmtu_disc"
        )
        .as_deref(),
        Some("0")
    );
    let router = advise(
        &found,
        Demands {
            role: Some(Role::Router),
            ..Demands::default()
        },
    )
    .unwrap();
    assert!(
        router
            .items
            .iter()
            .all(|item| !item.id.starts_with("linux-tcp")),
        "{:?}",
        router.items
    );
    assert!(item(&router, "linux-offloads").is_none());
    // `off [fixed]` of ethtool: nobody can turn it on.
    found.cards[0].features = [
        ("large-receive-offload".into(), false),
        ("generic-receive-offload".into(), false),
    ]
    .into();
    found.cards[0].fixed = vec!["large-receive-offload".into()];
    let all = advise(&found, end).unwrap();
    let offloads = item(&all, "linux-offloads").unwrap();
    assert!(
        wanted(offloads, "ethtool -K eth0 gro").is_some()
            && wanted(offloads, "ethtool -K eth0 lro").is_none()
    );
}
