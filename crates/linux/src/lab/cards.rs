//! Settings of a DUT's cards: queues, offloads, steering, threads.

use super::{DutEnd, LabSpec, Setup, thread_napi};
use crate::error::Error;
use crate::net::ethtool::Ethtool;
use crate::net::{Netns, sysfs};
use linerate_plan::settings::{Dut, Feature, Interface as Settings, Mode};

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

/// A card of a DUT with its settings.
struct Card<'a> {
    namespace: &'a Netns,
    name: &'a str,
    settings: &'a Settings,
    /// Transmit queues in use.
    queues: u32,
}

impl DutEnd {
    fn cards<'a>(&'a self, setup: &'a Setup, spec: &LabSpec) -> [Card<'a>; 2] {
        let ends = [
            (self.inside_node(), &self.inside, &setup.settings.inside),
            (self.outside_node(), &self.outside, &setup.settings.outside),
        ];
        ends.map(|(node, card, settings)| {
            let queues = settings.queues.unwrap_or(spec.queues());
            Card { namespace: &node.namespace, name: &card.name, settings, queues }
        })
    }
}

/// Sets how many queues the cards use of those that they have. Comes before programs: a card with one must have as many receive
/// queues as its peer sends by (`veth_xdp_set` in drivers/net/veth.c).
pub(super) fn set_queues(dut: &DutEnd, setup: &Setup, spec: &LabSpec) -> Result<(), Error> {
    for card in dut.cards(setup, spec).iter().filter(|card| card.settings.queues.is_some()) {
        Ethtool::open(card.namespace)?.set_channels(card.name, card.queues, card.queues)?;
    }
    Ok(())
}

/// Applies the other settings of both cards, and decides by which queue each CPU sends.
pub(super) fn apply(dut: &DutEnd, setup: &Setup, spec: &LabSpec) -> Result<(), Error> {
    let cards = dut.cards(setup, spec);
    for card in &cards {
        let ethtool = Ethtool::open(card.namespace)?;
        for (feature, on) in &card.settings.features {
            set_feature(&ethtool, card.name, *feature, *on)?;
        }
    }
    let [inside, outside] = &cards;
    if setup.settings.dut == Dut::Vlan {
        // The tag must be in the frame for the tester to see it, not beside it.
        Ethtool::open(outside.namespace)?.set_feature(outside.name, "tx-vlan-hw-insert", false)?;
    }
    threads(inside, (spec.mode == Mode::Threaded).then_some(&spec.dut_cpus))?;
    threads(outside, None)?;
    for card in &cards {
        receive_steering(card)?;
        if let Some(cpus) = &card.settings.xps {
            // Queue n serves the n-th of these CPUs; the next ones begin again at queue 0.
            xps(card, cpus.iter().zip(0..))?;
        }
    }
    let forwarding_cpus = match spec.mode {
        Mode::Inline => &spec.generator_cpus,
        Mode::Threaded | Mode::Hosts => &spec.dut_cpus,
    };
    if outside.settings.xps.is_some() || outside.queues < 2 {
        return Ok(());
    }
    // CPU c sends by queue c modulo their number, as the generator does.
    xps(outside, forwarding_cpus.iter().map(|cpu| (cpu, *cpu)))
}

fn set_feature(ethtool: &Ethtool, card: &str, feature: Feature, on: bool) -> Result<(), Error> {
    let names = kernel_names(feature);
    let there = ethtool.features(card)?;
    let mut changeable = there.iter().filter(|f| names.contains(&f.name.as_str()) && f.changeable).peekable();
    if changeable.peek().is_none() && !names.is_empty() {
        // A fixed feature may have the wanted state; where it has not, the call fails with the reason.
        let known = names.iter().find(|name| there.iter().any(|f| f.name == **name)).unwrap_or(&names[0]);
        return ethtool.set_feature(card, known, on);
    }
    for feature in changeable {
        ethtool.set_feature(card, &feature.name, on)?;
    }
    Ok(())
}

/// Polls a card in threads, if the lab is laid out so, with these CPUs for them, or the setup wants it.
fn threads(card: &Card<'_>, lab: Option<&Vec<u32>>) -> Result<(), Error> {
    let wanted = card.settings.features.get(&Feature::ThreadedNapi).copied();
    if lab.is_some() && wanted == Some(false) {
        return Err(Error::Refused(format!(
            "{} cannot be without threaded NAPI in a lab in threaded mode, which is just that: choose inline mode",
            card.name
        )));
    }
    if lab.is_none() && wanted != Some(true) {
        return Ok(());
    }
    // Without CPUs they run wherever the scheduler puts them.
    let cpus = card.settings.irq.as_ref().or(lab).map_or(&[][..], Vec::as_slice);
    super::enable_napi(card.namespace, card.name)?;
    thread_napi(card.namespace, card.name, cpus)?;
    // Threads need NAPI, and NAPI a program or GRO; the setting of GRO still holds.
    match card.settings.features.get(&Feature::Gro) {
        Some(on) => set_feature(&Ethtool::open(card.namespace)?, card.name, Feature::Gro, *on),
        None => Ok(()),
    }
}

/// Receive packet and flow steering: every receive queue to all of the CPUs.
fn receive_steering(card: &Card<'_>) -> Result<(), Error> {
    let Settings { rps, rfs, .. } = card.settings;
    if rps.is_none() && rfs.is_none() {
        return Ok(());
    }
    let folders = (0..).map(|queue| format!("class/net/{}/queues/rx-{queue}", card.name));
    for folder in folders.take_while(|folder| sysfs::exists(card.namespace, folder)) {
        if let Some(cpus) = rps {
            sysfs::write(card.namespace, &format!("{folder}/rps_cpus"), &cpu_mask(cpus.iter()))?;
        }
        if let Some(flows) = rfs {
            sysfs::write(card.namespace, &format!("{folder}/rps_flow_cnt"), &flows.to_string())?;
        }
    }
    Ok(())
}

/// Transmit packet steering: CPUs, each with the number, modulo that of the queues, of the queue that it sends by.
fn xps<'a>(card: &Card<'_>, cpus: impl Iterator<Item = (&'a u32, u32)> + Clone) -> Result<(), Error> {
    for queue in 0..card.queues {
        let own = cpus.clone().filter(|(_, number)| number % card.queues == queue).map(|(cpu, _)| cpu);
        let file = format!("class/net/{}/queues/tx-{queue}/xps_cpus", card.name);
        sysfs::write(card.namespace, &file, &cpu_mask(own))?;
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
}
