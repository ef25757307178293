//! Advice as a plan for `linerate tune`.

use super::router;
use linerate_advise::lines::{Chosen, plan};
use linerate_advise::{Demands, Role, advise};
use linerate_hosts::configuration::{Bounded, Card, Configuration, ReceiveQueue, Release};

/// A Linux machine with four CPUs and a card of one queue, which does not forward.
fn idle() -> Configuration {
    let mut found = router("13.2", "Xeon", 4, 1, "virtio_net", 1e10);
    found.system = Release {
        kernel: "linux".into(),
        release: Some("6.12.8".into()),
        product: None,
    };
    found.cards = vec![Card {
        name: "eth0".into(),
        found: true,
        combined_queues: Bounded {
            now: Some(1),
            most: Some(1),
        },
        receive: [(0, ReceiveQueue::default())].into(),
        ..Card::default()
    }];
    let sysctls = [
        ("net.ipv4.ip_forward", "0"),
        ("net.ipv6.conf.all.forwarding", "0"),
        ("net.ipv4.conf.all.send_redirects", "1"),
        ("net.ipv4.conf.all.rp_filter", "1"),
        ("net.core.netdev_budget", "300"),
    ];
    found.sysctls = sysctls
        .map(|(name, value)| (name.to_string(), value.to_string()))
        .into();
    found
}

#[test]
fn a_router_s_plan_forwards_before_any_change_and_has_what_may_be_faster() {
    let demands = Demands {
        role: Some(Role::Router),
        ..Demands::default()
    };
    let advice = advise(&idle(), demands).unwrap();
    let text = plan(&Chosen::of(&advice.items, false));
    for absent in [
        "forward\"",
        "forwarding\"",
        "linux-redirects",
        "budget\" = 300",
    ] {
        assert!(!text.contains(absent), "{absent}: {text}");
    }
    for part in [
        "mode = \"threaded\"",
        "sysctls = { \"net.ipv4.conf.all.rp_filter\" = 1 }\n\n",
        "[variants.linux-rps]\nfrom = \"as-it-is\"",
        "interface = { \"rps\" = \"0,1,2,3\" }",
        "[variants.linux-budget]",
        "[variants.gro-off]",
        "[variants.threaded-napi]",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let read = linerate_plan::Plan::read(text.as_bytes());
    assert!(read.is_ok_and(|plan| plan.remarks.is_empty()), "{text}");
    // Whoever names an item gets it, and nothing else.
    let named = |item: &&linerate_advise::Item| item.id == "linux-redirects";
    let redirects: Vec<_> = advice.items.iter().filter(named).cloned().collect();
    let text = plan(&Chosen::of(&redirects, true));
    assert!(
        text.contains("[variants.linux-redirects]") && !text.contains("gro"),
        "{text}"
    );
}

#[test]
fn without_steering_the_lab_is_inline_and_tries_no_kernel_threads() {
    let mut found = idle();
    found.machine.cpus.truncate(1);
    let demands = Demands {
        role: Some(Role::Router),
        ..Demands::default()
    };
    let advice = advise(&found, demands).unwrap();
    let text = plan(&Chosen::of(&advice.items, false));
    assert!(
        !text.contains("mode =") && !text.contains("threaded-napi"),
        "{text}"
    );
    assert!(text.contains("[variants.gro-off]"), "{text}");
}
