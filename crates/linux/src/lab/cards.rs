//! What is set on a DUT's cards: queues, offloads, steering, threads.

use super::{DutEnd, Interface, LabError, LabSpec, Setup, thread_napi};
use crate::net::Netns;
use crate::net::ethtool::Ethtool;
use crate::net::sysfs::NetSysfs;
use linerate_plan::settings::Mode;
use linerate_plan::settings::{Dut, Feature, Interface as Settings};

/// The kernel's names of a feature; several where it knows it in parts.
fn kernel_names(feature: Feature) -> &'static [&'static str] {
    match feature {
        Feature::Gro => &["rx-gro"],
        Feature::Gso => &["tx-generic-segmentation"],
        Feature::Tso => &["tx-tcp-segmentation", "tx-tcp6-segmentation", "tx-tcp-ecn-segmentation"],
        Feature::Lro => &["rx-lro"],
        Feature::RxChecksum => &["rx-checksum"],
        // A veth writes any checksum; a card may know one IP version at a time.
        Feature::TxChecksum => &["tx-checksum-ip-generic", "tx-checksum-ipv4", "tx-checksum-ipv6"],
        Feature::VlanOffload => &["tx-vlan-hw-insert", "rx-vlan-hw-parse"],
        Feature::UdpGroForwarding => &["rx-udp-gro-forwarding"],
        Feature::VlanTso | Feature::FlowControl | Feature::AdaptiveInterrupts | Feature::ThreadedNapi => &[],
    }
}

/// Sets how many queues the cards use of those that they have. Comes before programs: a card with one must have as many receive
/// queues as its peer sends by (`veth_xdp_set` in drivers/net/veth.c).
pub(super) fn set_queues(dut: &DutEnd, setup: &Setup) -> Result<(), LabError> {
    let ends = [
        (dut.inside_node(), &dut.inside, setup.inside.queues),
        (dut.outside_node(), &dut.outside, setup.outside.queues),
    ];
    for (node, card, queues) in ends {
        if let Some(queues) = queues {
            Ethtool::open(&node.namespace)?.set_channels(&card.name, queues, queues)?;
        }
    }
    Ok(())
}

/// Applies the other settings of both cards, and says who forwards, and through which queue it leaves.
pub(super) fn apply(dut: &DutEnd, setup: &Setup, spec: &LabSpec) -> Result<(), LabError> {
    let (inside, outside) = (&dut.inside_node().namespace, &dut.outside_node().namespace);
    for (namespace, card, settings) in
        [(inside, &dut.inside, &setup.inside), (outside, &dut.outside, &setup.outside)]
    {
        let ethtool = Ethtool::open(namespace)?;
        for (feature, on) in &settings.features {
            set_feature(&ethtool, &card.name, *feature, *on)?;
        }
    }
    if setup.dut == Dut::Vlan {
        // The tag must be in the frame for the tester to see it, not beside it.
        Ethtool::open(outside)?.set_feature(&dut.outside.name, "tx-vlan-hw-insert", false)?;
    }
    threads(inside, &dut.inside, &setup.inside, spec, spec.mode == Mode::Threaded)?;
    threads(outside, &dut.outside, &setup.outside, spec, false)?;
    receive_steering(inside, &dut.inside, &setup.inside)?;
    receive_steering(outside, &dut.outside, &setup.outside)?;
    let forwarding_cpus = match spec.mode {
        Mode::Inline => &spec.generator_cpus,
        Mode::Threaded | Mode::Hosts => &spec.dut_cpus,
    };
    let queues = |settings: &Settings| settings.queues.unwrap_or(spec.queues());
    if let Some(cpus) = &setup.inside.xps {
        named_xps(inside, &dut.inside, queues(&setup.inside), cpus)?;
    }
    match &setup.outside.xps {
        Some(cpus) => named_xps(outside, &dut.outside, queues(&setup.outside), cpus),
        None => own_xps(outside, &dut.outside, queues(&setup.outside), forwarding_cpus),
    }
}

fn set_feature(ethtool: &Ethtool, card: &str, feature: Feature, on: bool) -> Result<(), LabError> {
    let names = kernel_names(feature);
    let there = ethtool.features(card)?;
    let mut changeable = there.iter().filter(|f| names.contains(&f.name.as_str()) && f.changeable).peekable();
    if changeable.peek().is_none() && !names.is_empty() {
        // What is fixed is fine if it is fixed as wanted; the call says so where it is not.
        let known = names.iter().find(|name| there.iter().any(|f| f.name == **name)).unwrap_or(&names[0]);
        return Ok(ethtool.set_feature(card, known, on)?);
    }
    for feature in changeable {
        ethtool.set_feature(card, &feature.name, on)?;
    }
    Ok(())
}

/// Polls a card in threads, if the lab is laid out so or the setup wants it.
fn threads(
    namespace: &Netns,
    card: &Interface,
    settings: &Settings,
    spec: &LabSpec,
    lab: bool,
) -> Result<(), LabError> {
    let wanted = settings.features.get(&Feature::ThreadedNapi).copied();
    if lab && wanted == Some(false) {
        return Err(LabError::Unsuitable(format!(
            "{} cannot be without threaded NAPI in a lab in threaded mode, which is just that: choose inline mode",
            card.name
        )));
    }
    if !lab && wanted != Some(true) {
        return Ok(());
    }
    let cpus = match &settings.irq {
        Some(cpus) => cpus.as_slice(),
        None if lab => &spec.dut_cpus,
        // Wherever the scheduler puts them.
        None => &[],
    };
    super::enable_napi(namespace, &card.name)?;
    thread_napi(namespace, &card.name, cpus)?;
    // Threads need NAPI, and NAPI a program or GRO; what was said about GRO still holds.
    match settings.features.get(&Feature::Gro) {
        Some(on) => set_feature(&Ethtool::open(namespace)?, &card.name, Feature::Gro, *on),
        None => Ok(()),
    }
}

/// Receive packet and flow steering: every receive queue to all of the CPUs.
fn receive_steering(namespace: &Netns, card: &Interface, settings: &Settings) -> Result<(), LabError> {
    if settings.rps.is_none() && settings.rfs.is_none() {
        return Ok(());
    }
    let sysfs = NetSysfs::mount(namespace)?;
    for queue in 0.. {
        let folder = format!("class/net/{}/queues/rx-{queue}", card.name);
        if !sysfs.exists(&folder) {
            break;
        }
        if let Some(cpus) = &settings.rps {
            sysfs.write(&format!("{folder}/rps_cpus"), &cpu_mask(cpus.iter()))?;
        }
        if let Some(flows) = settings.rfs {
            sysfs.write(&format!("{folder}/rps_flow_cnt"), &flows.to_string())?;
        }
    }
    Ok(())
}

/// Queue n serves the n-th of these CPUs; the next ones begin again at queue 0.
fn named_xps(namespace: &Netns, card: &Interface, queues: u32, cpus: &[u32]) -> Result<(), LabError> {
    let of = |queue: u32| {
        cpus.iter().enumerate().filter(move |(n, _)| *n as u32 % queues == queue).map(|(_, c)| c)
    };
    xps(namespace, card, queues, |queue| cpu_mask(of(queue)))
}

/// CPU c sends by queue c modulo their number, as the generator does.
fn own_xps(namespace: &Netns, card: &Interface, queues: u32, cpus: &[u32]) -> Result<(), LabError> {
    if queues < 2 {
        return Ok(());
    }
    xps(namespace, card, queues, |queue| cpu_mask(cpus.iter().filter(|c| **c % queues == queue)))
}

fn xps(
    namespace: &Netns,
    card: &Interface,
    queues: u32,
    mask: impl Fn(u32) -> String,
) -> Result<(), LabError> {
    let sysfs = NetSysfs::mount(namespace)?;
    for queue in 0..queues {
        sysfs.write(&format!("class/net/{}/queues/tx-{queue}/xps_cpus", card.name), &mask(queue))?;
    }
    Ok(())
}

/// A CPU mask as sysfs wants it: hexadecimal words of 32 bits, the highest first, separated by commas.
fn cpu_mask<'a>(cpus: impl Iterator<Item = &'a u32>) -> String {
    let mut words = vec![0u32];
    for cpu in cpus {
        let word = *cpu as usize / 32;
        words.resize(words.len().max(word + 1), 0);
        words[word] |= 1 << (cpu % 32);
    }
    words.iter().rev().map(|w| format!("{w:08x}")).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks() {
        assert_eq!(cpu_mask([].iter()), "00000000");
        assert_eq!(cpu_mask([0, 1].iter()), "00000003");
        assert_eq!(cpu_mask([33].iter()), "00000002,00000000");
    }

    #[test]
    fn every_feature_has_names_or_is_refused_beforehand() {
        for feature in Feature::ALL {
            let mut setup = Setup::of(Dut::Forwarding);
            setup.inside.features.insert(feature, true);
            let refused = !setup.faults().is_empty();
            assert!(
                refused || feature == Feature::ThreadedNapi || !kernel_names(feature).is_empty(),
                "{feature:?}"
            );
        }
    }
}
