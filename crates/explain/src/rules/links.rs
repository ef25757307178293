//! Links and what is behind them: flow control, neighbours, the slot of the card.

use super::Look::By;
use super::On::With;
use super::Try::{Keys, Not};
use super::{Found, Looked, RULE, Rule, joined, percent};
use crate::case::Case;
use linerate_measure::record::Strength;

pub const RULES: &[Rule] = &[
    Rule {
        cause: "flow-control",
        look: By(pause),
        says: "Ethernet flow control lets one card stop another.",
        mechanism: "A card that is full sends pause frames, and its neighbour holds all frames back: the offered load is no longer the generator's, and one slow port stops others.",
        changes: &[
            [
                "Linux",
                "ethtool -A IF rx off tx off",
                "ethtool -A IF rx on tx on",
            ],
            ["FreeBSD", "sysctl dev.IF.N.fc=0", "sysctl dev.IF.N.fc=3"],
        ],
        gain: "not known: RFC 2544 tests want it off, because it hides loss",
        otherwise: Keys(r#"{"interface": {"flow-control": false}}"#),
        ..RULE
    },
    Rule {
        cause: "neighbour-table",
        look: By(neighbours),
        says: "The DUT does not find the next hop of all frames in its table of neighbours.",
        mechanism: "A frame to an unknown neighbour waits for ARP or neighbour discovery, and is dropped without an answer. A full table throws entries out that are needed again.",
        changes: &[[
            "Linux",
            "ip neigh show dev IF names those that do not answer (FAILED, INCOMPLETE); for a table that is too small: sysctl net.ipv4.neigh.default.gc_thresh1=N net.ipv4.neigh.default.gc_thresh2=2N net.ipv4.neigh.default.gc_thresh3=4N",
            "sysctl net.ipv4.neigh.default.gc_thresh1=128 net.ipv4.neigh.default.gc_thresh2=512 net.ipv4.neigh.default.gc_thresh3=1024",
        ]],
        gain: "{share} of the frames were affected",
        tries: &[(
            With("small"),
            Keys(
                r#"{"sysctls": {
                        "net.ipv4.neigh.default.gc_thresh1": 65536, "net.ipv4.neigh.default.gc_thresh2": 131072, "net.ipv4.neigh.default.gc_thresh3": 262144,
                        "net.ipv6.neigh.default.gc_thresh1": 65536, "net.ipv6.neigh.default.gc_thresh2": 131072, "net.ipv6.neigh.default.gc_thresh3": 262144
                    }}"#,
            ),
        )],
        otherwise: Not("the next hop must answer, and no setting of the DUT makes it answer"),
    },
    Rule {
        cause: "pcie-lanes",
        look: By(pcie),
        says: "The PCIe link of {card} is narrower than the card's.",
        mechanism: "Each frame crosses the link with descriptors and headers of its own: short frames need more of it than the bits of the network.",
        changes: &[[
            "any",
            "put the card into a slot with all its lanes; look at the BIOS for bifurcation and link speed",
            "the former slot",
        ]],
        gain: "unknown; without enough lanes the card cannot reach its line rate",
        otherwise: Not("the card must move to another slot"),
        ..RULE
    },
];

fn pause(case: &Case<'_>) -> Looked {
    /// Parts of the names of drivers' counters of pause frames.
    const COUNTERS: [&str; 4] = ["pause", "xon", "xoff", "flow_control"];
    let counted = case
        .counters(|name| {
            COUNTERS
                .iter()
                .any(|part| name.to_lowercase().contains(part))
        })
        .unwrap_or_default();
    if counted.values().any(|frames| *frames > 0) {
        let evidence = counted
            .iter()
            .take(4)
            .map(|(name, n)| format!("{name}: {n}"));
        return Ok(Some(Found::new(Strength::Observed, 0.3, evidence)));
    }
    if case
        .hardware()?
        .is_some_and(|card| card.pause.rx.or(card.pause.tx).is_none())
    {
        return Err("the card does not tell whether pause frames are on".into());
    }
    let on: Vec<_> = case
        .configuration()?
        .cards
        .iter()
        .filter(|card| card.pause.is_on())
        .map(|card| &card.name)
        .collect();
    let evidence = format!("pause frames are on: {}", joined(&on, ", "));
    Ok(Some(Found::new(Strength::Possible, 0.05, [evidence])).filter(|_| !on.is_empty()))
}

fn neighbours(case: &Case<'_>) -> Looked {
    // Counters of /proc/net/stat/arp_cache and ndisc_cache.
    let counted = case.counted(&[
        "table_fulls",
        "forced_gc_runs",
        "res_failed",
        "unresolved_discards",
    ])?;
    let reasons: Vec<(&str, f64)> = case
        .kernel_drops()
        .into_iter()
        .filter(|(name, _)| name.contains("NEIGH_"))
        .collect();
    let dropped: f64 = reasons.iter().map(|(_, part)| part).sum();
    let share = case.of_sent(counted.values().sum()).max(dropped).min(1.0);
    if share < 0.001 {
        return Ok(None);
    }
    let grown = || counted.iter().filter(|(_, n)| **n > 0);
    let small =
        grown().any(|(name, _)| name.ends_with("table_fulls") || name.ends_with("forced_gc_runs"));
    let of_kernel = reasons.iter().map(|(name, part)| {
        format!(
            "the kernel's reason: {name}, {} of the frames",
            percent(*part)
        )
    });
    let evidence = grown()
        .map(|(name, n)| format!("{name}: {n}"))
        .chain(of_kernel);
    Ok(Some(Found::observed(share, evidence).when(small, "small")))
}

fn pcie(case: &Case<'_>) -> Looked {
    let Some(card) = case.hardware()? else {
        return Ok(None);
    };
    let pci = &card.pci;
    let (Some(width), Some(speed)) = (pci.width, pci.speed) else {
        return Err("the card's PCIe link is not known".into());
    };
    // PCIe up to 5 GT/s sends 10 bits for 8, later ones 130 for 128 (PCI Express Base Specification, 4.2).
    let coded = if speed > 5.0 { 128.0 / 130.0 } else { 0.8 };
    let gigabits = f64::from(width) * speed * coded;
    let narrow = pci.most_width > Some(width) || pci.most_speed.is_some_and(|most| most > speed);
    let short = card.speed.is_some_and(|bits| gigabits < bits / 1e9);
    if !narrow && !short {
        return Ok(None);
    }
    let possible = pci
        .most_width
        .zip(pci.most_speed)
        .map(|(width, speed)| format!(" of {width} at {speed} GT/s"));
    let evidence = format!(
        "{width} lanes at {speed} GT/s{}: {gigabits:.1} Gbit/s each way",
        possible.unwrap_or_default()
    );
    let (strength, weight) = if short {
        (Strength::Inferred, 0.5)
    } else {
        (Strength::Possible, 0.1)
    };
    Ok(Some(
        Found::new(strength, weight, [evidence]).with("card", &card.name),
    ))
}
