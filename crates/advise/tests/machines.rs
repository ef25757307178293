//! The paper's own recommendations for the machines of the archive, and what each release has.

#[path = "machines/cards.rs"]
mod cards;
#[path = "machines/end_hosts.rs"]
mod end_hosts;
#[path = "machines/firewalls.rs"]
mod firewalls;
#[path = "machines/paper.rs"]
mod paper;
#[path = "machines/plans.rs"]
mod plans;
#[path = "machines/releases.rs"]
mod releases;

use linerate_advise::{Advice, Demands, Item, advise};
use linerate_hosts::configuration::{Card, Configuration, Cpu, Release};

/// A router of FreeBSD with a CPU of this model and a card of this driver.
fn router(
    release: &str,
    model: &str,
    cores: u32,
    threads: u32,
    driver: &str,
    bits: f64,
) -> Configuration {
    let card = |unit| Card {
        name: format!("{driver}{unit}"),
        found: true,
        speed: Some(bits),
        features: [
            ("large-receive-offload".into(), true),
            ("tcp-segmentation-offload".into(), true),
        ]
        .into(),
        ..Card::default()
    };
    let cpu = |cpu: u32| Cpu {
        cpu,
        core: Some(cpu / threads),
        siblings: (cpu / threads * threads..(cpu / threads + 1) * threads).collect(),
        ..Cpu::default()
    };
    let mut found = Configuration {
        system: Release {
            kernel: "freebsd".into(),
            release: Some(format!("{release}-RELEASE")),
            product: None,
        },
        cards: vec![card(0), card(1)],
        sysctls: [
            ("net.inet.ip.forwarding".into(), "1".into()),
            ("net.inet6.ip6.forwarding".into(), "1".into()),
        ]
        .into(),
        ..Configuration::default()
    };
    found.machine.model = Some(model.into());
    found.machine.cpus = (0..cores * threads).map(cpu).collect();
    found
}

fn advice(found: &Configuration) -> Advice {
    advise(found, Demands::default()).unwrap()
}

fn item<'a>(advice: &'a Advice, id: &str) -> Option<&'a Item> {
    advice.items.iter().find(|item| item.id == id)
}

fn wanted(item: &Item, setting: &str) -> Option<String> {
    item.settings
        .iter()
        .find(|s| s.name == setting)?
        .wanted
        .clone()
}
