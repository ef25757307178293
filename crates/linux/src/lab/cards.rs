//! Settings of a DUT's cards: queues, offloads, steering, threads.

use super::{DutEnd, Interface, LabSpec, Setup};
use crate::error::Error;
use crate::net::ethtool::Ethtool;
use crate::net::{Netns, sysfs};
use linerate_measure::record::Mode;
use linerate_plan::card::{CardSetting, CardValue, Linux};
use linerate_plan::offload::Offload;
use linerate_plan::settings::{Dut, Interface as Settings, cpu_mask};

/// A card of a DUT with its settings.
struct Card<'a> {
    interface: &'a Interface,
    ethtool: Ethtool,
    settings: &'a Settings,
    /// Transmit queues in use.
    queues: u32,
}

fn cards<'a>(dut: &'a DutEnd, setup: &'a Setup, spec: &LabSpec) -> Result<[Card<'a>; 2], Error> {
    let card = |interface: &'a Interface, settings: &'a Settings| {
        let queues = settings.queues().unwrap_or(spec.queues());
        interface.ethtool().map(|ethtool| Card {
            interface,
            ethtool,
            settings,
            queues,
        })
    };
    Ok([
        card(&dut.inside, &setup.settings.inside)?,
        card(&dut.outside, &setup.settings.outside)?,
    ])
}

/// Sets how many queues the cards use of those that they have. Comes before programs: a card with one must have as many receive
/// queues as its peer sends by (`veth_xdp_set` in drivers/net/veth.c).
pub(super) fn set_queues(dut: &DutEnd, setup: &Setup, spec: &LabSpec) -> Result<(), Error> {
    for card in cards(dut, setup, spec)?
        .iter()
        .filter(|card| card.settings.queues().is_some())
    {
        card.ethtool
            .set_channels(&card.interface.name, card.queues, card.queues)?;
    }
    Ok(())
}

/// Applies the other settings of both cards, and decides by which queue each CPU sends.
pub(super) fn apply(dut: &DutEnd, setup: &Setup, spec: &LabSpec) -> Result<(), Error> {
    let cards = cards(dut, setup, spec)?;
    for card in &cards {
        for (setting, value) in &card.settings.set {
            card.set(*setting, *value)?;
        }
    }
    let [inside, outside] = &cards;
    if setup.settings.dut == Dut::Vlan {
        // The tag must be in the frame for the tester to see it, not beside it.
        outside
            .ethtool
            .set_feature(&outside.interface.name, "tx-vlan-hw-insert", false)?;
    }
    inside.threads((spec.mode == Mode::Threaded).then_some(&spec.dut_cpus))?;
    outside.threads((spec.mode == Mode::Threaded && spec.both_ways).then_some(&spec.dut_cpus))?;
    for card in &cards {
        card.receive_steering()?;
        if let Some(cpus) = &card.settings.xps {
            // Queue n serves the n-th of these CPUs; the next ones begin again at queue 0.
            card.xps(cpus.iter().zip(0..))?;
        }
    }
    let forwarding_cpus = match spec.mode {
        Mode::Inline => &spec.generator_cpus,
        Mode::Threaded | Mode::Hosts | Mode::EndHosts => &spec.dut_cpus,
    };
    let back = spec.both_ways.then_some(inside);
    for card in [outside].into_iter().chain(back) {
        if card.settings.xps.is_none() && card.queues > 1 {
            // CPU c sends by queue c modulo their number, as the generator does.
            card.xps(forwarding_cpus.iter().map(|cpu| (cpu, *cpu)))?;
        }
    }
    Ok(())
}

impl Card<'_> {
    /// A setting of the catalogue. Queues and threads are set elsewhere; plans refuse what virtual links lack.
    fn set(&self, setting: CardSetting, value: CardValue) -> Result<(), Error> {
        match setting.row().linux {
            Linux::Offloads => self.set_offload(setting, value == CardValue::Switch(true)),
            Linux::File(file) if setting != CardSetting::ThreadedNapi => {
                let (file, value) = (
                    format!("class/net/{}/{file}", self.interface.name),
                    value.to_string(),
                );
                sysfs::set(&self.interface.node.namespace, &file, &value, |kept| {
                    kept == value
                })
            }
            _ => Ok(()),
        }
    }

    fn set_offload(&self, setting: CardSetting, on: bool) -> Result<(), Error> {
        let card = &self.interface.name;
        let names: Vec<&str> = Offload::of(setting)
            .flat_map(|offload| offload.parts)
            .copied()
            .collect();
        let there = self.ethtool.features(card)?;
        let is_known = |name: &&&str| there.iter().any(|f| f.name == **name);
        let mut wanted: Vec<&str> = there
            .iter()
            .filter(|f| f.changeable)
            .map(|f| f.name.as_str())
            .filter(|f| names.contains(f))
            .collect();
        if wanted.is_empty() {
            // A fixed feature may have the wanted state; where it has not, the call fails with the reason.
            wanted.extend(names.iter().find(is_known).or(names.first()));
        }
        wanted
            .iter()
            .try_for_each(|name| self.ethtool.set_feature(card, name, on))
    }

    /// Polls a card in threads, if the lab is laid out so, with these CPUs for them, or the setup wants it.
    fn threads(&self, lab: Option<&Vec<u32>>) -> Result<(), Error> {
        let wanted = self.settings.is_on(CardSetting::ThreadedNapi);
        if lab.is_some() && wanted == Some(false) {
            return Err(Error::Refused(format!(
                "{} cannot be without threaded NAPI in a lab in threaded mode, which is just that: choose inline mode",
                self.interface.name
            )));
        }
        if lab.is_none() && wanted != Some(true) {
            return Ok(());
        }
        self.interface.enable_napi()?;
        // Without CPUs they run wherever the scheduler puts them.
        self.interface.thread_napi(
            self.settings
                .irq
                .as_ref()
                .or(lab)
                .map_or(&[][..], Vec::as_slice),
        )?;
        // Threads need NAPI, and NAPI a program or GRO; the setting of GRO still holds.
        let gro = self.settings.is_on(CardSetting::Gro);
        gro.map_or(Ok(()), |on| self.set_offload(CardSetting::Gro, on))
    }

    /// Receive packet and flow steering: every receive queue to all of the CPUs.
    fn receive_steering(&self) -> Result<(), Error> {
        let (Settings { rps, rfs, .. }, namespace) =
            (self.settings, &self.interface.node.namespace);
        if rps.is_none() && rfs.is_none() {
            return Ok(());
        }
        let folders =
            (0..).map(|queue| format!("class/net/{}/queues/rx-{queue}", self.interface.name));
        for folder in folders.take_while(|folder| sysfs::exists(namespace, folder)) {
            if let Some(cpus) = rps {
                set_mask(namespace, &format!("{folder}/rps_cpus"), cpus)?;
            }
            if let Some(flows) = rfs {
                let flows = flows.to_string();
                sysfs::set(
                    namespace,
                    &format!("{folder}/rps_flow_cnt"),
                    &flows,
                    |kept| kept == flows,
                )?;
            }
        }
        Ok(())
    }

    /// Transmit packet steering: CPUs, each with the number, modulo that of the queues, of the queue that it sends by.
    fn xps<'a>(&self, cpus: impl Iterator<Item = (&'a u32, u32)> + Clone) -> Result<(), Error> {
        for queue in 0..self.queues {
            let own = cpus
                .clone()
                .filter(|(_, number)| number % self.queues == queue)
                .map(|(cpu, _)| *cpu);
            let own: Vec<u32> = own.collect();
            let file = format!(
                "class/net/{}/queues/tx-{queue}/xps_cpus",
                self.interface.name
            );
            set_mask(&self.interface.node.namespace, &file, &own)?;
        }
        Ok(())
    }
}

/// Writes a file of CPUs, and reads it back.
fn set_mask(namespace: &Netns, file: &str, cpus: &[u32]) -> Result<(), Error> {
    let mask = cpu_mask(cpus);
    sysfs::set(namespace, file, &mask, |kept| {
        sysfs::is_same_mask(kept, &mask)
    })
}
