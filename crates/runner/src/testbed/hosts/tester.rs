//! The hosts that send and count: by their linerate, or by the tools that they have.

mod agents;
mod tools;

pub use tools::{Side, task};

use super::Site;
use crate::interrupt::{INTERRUPTED as STOP, interrupted};
use crate::testbed::prepare::Prepared;
use crate::testbed::{PACED_BATCH, Request};
use anyhow::{Context, Result};
use linerate_hosts::preflight::frames::PortTried;
use linerate_hosts::tools::Task;
use linerate_measure::record::Direction;
use linerate_plan::Backend;
use linerate_plan::lab::Host;
use linerate_plan::settings::End;
use linerate_remote::TrialResult;
use linerate_remote::agents::lab::{Frames, RealLab, Shown};
use linerate_remote::external::{ToolHost, ToolTrial};
use linerate_wire::{
    FCS_LEN, Family, FlowSpace, FrameMix, FrameSpec, Load, MacAddr, Traffic, Transport,
};
use std::time::{Duration, Instant};
use tools::Tools;

/// Frames handed over at once where no rate was asked for.
pub const BATCH: u32 = 64;
/// How long the first frame may take to come through, unless the DUT is to boot quicker.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long frames of the reverse direction may take, once those of the other come through.
const PATIENCE_BACK: Duration = Duration::from_secs(2);
/// How often flows are shown until each has been answered: a frame or an answer may get lost.
const ROUNDS: u32 = 4;

/// Frames from each port when the tester's ports are tried, and whose they are.
const TRIED: u32 = 100;
const CAMPAIGN: u8 = 1;
/// Some drivers read their card's counters every two seconds.
const COUNTED: Duration = Duration::from_millis(2200);

/// Flows that a DUT has seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Learned {
    /// No frame came through.
    Nothing,
    /// No frame came through, and the tester's own interfaces counted none as sent.
    Unsent,
    /// The direction of the load.
    OneWay,
    /// Both directions of each.
    Answered,
}

/// The hosts that send and count.
pub struct Tester {
    hosts: Hosts,
    /// The sending and the counting backend, for records.
    pub names: [String; 2],
    /// Why hosts do not send by the fastest backend.
    pub notes: Vec<String>,
    /// How long it may take until frames come through.
    patience: Duration,
}

enum Hosts {
    /// Hosts that have linerate.
    Agents(Box<RealLab>),
    /// Hosts that have tools.
    Tools(Tools),
}

impl Tester {
    /// Shows the device `flows` flows of a kind, again and again until they come through: a link may be down for a while after
    /// settings of a card, and a router forwards nothing for a while after a boot. Tools wait for the first frame of each trial;
    /// they cannot count flows, and their warm-up must do. With `answer`, the receiver answers each flow if it can.
    pub fn learn(&mut self, kind: usize, flows: u64, answer: bool) -> Result<Learned> {
        let patience = self.patience;
        let Hosts::Agents(lab) = &mut self.hosts else {
            return Ok(Learned::OneWay);
        };
        let learned = show(
            lab,
            [kind, 0],
            flows,
            answer && lab.can_answer(kind),
            patience,
        )?;
        let through = !matches!(learned, Learned::Nothing | Learned::Unsent);
        if through && lab.ways(kind) > 1 {
            // Rules may pass no frame of the other direction: the trial tells.
            show(lab, [kind, 1], flows, false, patience.min(PATIENCE_BACK))?;
        }
        Ok(learned)
    }

    /// One trial of a kind of traffic through the device as it stands. `began`: see [`RealLab::trial`].
    pub fn trial(
        &mut self,
        kind: usize,
        request: &Request,
        began: &dyn Fn(u64),
    ) -> Result<TrialResult> {
        let timing = request.timing;
        match &mut self.hosts {
            Hosts::Agents(lab) => {
                let batch = if request.rate.is_some() && request.burst == 0 {
                    PACED_BATCH
                } else {
                    BATCH
                };
                Ok(lab.trial(kind, timing, request.load(batch), &STOP, began)?)
            }
            Hosts::Tools(tools) => {
                let (sent, received) = &tools.tasks[kind];
                // Every generator sends its share.
                let rate = request.rate.map(|rate| rate / sent.len() as f64);
                let at = |task: &Task| Task {
                    load: Load { rate, ..task.load },
                    ..task.clone()
                };
                let generators: Vec<(ToolHost, Task)> = tools
                    .generators
                    .iter()
                    .cloned()
                    .zip(sent.iter().map(at))
                    .collect();
                let receiver = Some((&tools.receiver, at(received)));
                let trial = ToolTrial {
                    generators: &generators,
                    receiver,
                    timing,
                    patience: self.patience,
                };
                Ok(trial.run(&STOP)?)
            }
        }
    }

    /// Releases the hosts. Returns messages about failures.
    pub fn take_down(self) -> Vec<String> {
        match self.hosts {
            Hosts::Agents(lab) => lab.take_down().iter().map(ToString::to_string).collect(),
            Hosts::Tools(_) => Vec::new(),
        }
    }
}

/// Shows the device the flows of a direction of a kind, until they come through.
fn show(
    lab: &mut RealLab,
    [kind, way]: [usize; 2],
    flows: u64,
    answer: bool,
    patience: Duration,
) -> Result<Learned> {
    let (began, mut before, mut left) = (Instant::now(), 0u64, false);
    for round in 1.. {
        let shown = lab.learn(kind, way, flows, answer, &STOP)?;
        let Shown { arrived, .. } = shown;
        // Some drivers read their card's counters every two seconds.
        left |= shown.sent == 0 || shown.left != Some(0);
        let over = interrupted() || began.elapsed() > patience;
        if let Some(learned) = judged(
            shown,
            answer && round < ROUNDS && !interrupted(),
            before,
            over,
        ) {
            return Ok(if learned == Learned::Nothing && !left {
                Learned::Unsent
            } else {
                learned
            });
        }
        if !answer || arrived == 0 {
            before = arrived;
            std::thread::sleep(Duration::from_millis(200));
        }
    }
    unreachable!("the rounds do not end")
}

/// The DUT's state after a round of frames. `None`: another round may teach it more. `asks`: whether answers are still waited for; `before`: frames of the round before; `over`: whether this was the last one.
fn judged(
    Shown {
        wanted,
        sent,
        arrived,
        answers,
        ..
    }: Shown,
    asks: bool,
    before: u64,
    over: bool,
) -> Option<Learned> {
    // A busy generator may have sent a part of them, and answers to those alone establish nothing.
    if answers >= wanted {
        return Some(Learned::Answered);
    }
    if asks && arrived > 0 {
        return None;
    }
    // Of a slow device, no more will arrive the next time.
    let steady = before > 0 && arrived <= before.saturating_add(before / 5);
    let known = if arrived > 0 {
        Learned::OneWay
    } else {
        Learned::Nothing
    };
    (over || steady || arrived.saturating_mul(2) >= sent).then_some(known)
}

/// The backend, unless frames of this length leave a choice to the agent, which tries what its card can do.
fn left_to_agents(backend: Backend, longest_fcs: u16) -> Backend {
    match backend.resolved(longest_fcs) {
        Backend::Xdp => backend,
        other => other,
    }
}

/// A sending interface.
struct Sending<'a> {
    host: &'a Host,
    side: Side<'a>,
    /// The Ethernet address at the other end: the DUT's, or the receiver's without a DUT.
    to: MacAddr,
    /// The interface's own Ethernet address, for frames of the reverse direction that come without a DUT.
    own: Option<MacAddr>,
}

impl Site {
    /// The tester of this lab.
    ///
    /// # Errors
    /// A host lacks something, or its tool cannot send this traffic.
    pub fn tester(&self, prepared: &Prepared) -> Result<Tester> {
        let sending = self.sending()?;
        let hosts = sending
            .iter()
            .map(|one| one.host)
            .chain([self.lab.receiver()]);
        let mut backends: Vec<Backend> =
            hosts.map(|host| self.tool(host)).collect::<Result<_>>()?;
        let has_agents = self.has_agents()?;
        if has_agents {
            let lengths = prepared
                .kinds
                .iter()
                .map(|kind| kind.traffic.mix.max_len_fcs());
            let longest = lengths.max().unwrap_or(64);
            backends
                .iter_mut()
                .for_each(|backend| *backend = left_to_agents(*backend, longest));
        }
        let (counting, sends) = backends.split_last().context("a lab has a receiver")?;
        let (hosts, sends, notes) = match has_agents {
            true => {
                let mut lab = self.agents(&sending, sends, *counting, prepared)?;
                let first = prepared
                    .measured()
                    .next()
                    .map_or(0, |cell| prepared.kind_of[cell]);
                let (sends, notes) = lab.get_ready(first)?;
                (Hosts::Agents(Box::new(lab)), sends, notes)
            }
            false => (
                Hosts::Tools(self.tools(&sending, sends, *counting, prepared)?),
                sends.to_vec(),
                Vec::new(),
            ),
        };
        let mut names: Vec<&str> = sends.iter().map(|backend| backend.name()).collect();
        names.dedup();
        let names = [names.join(", "), counting.resolved(0).name().into()];
        let boot = self
            .lab
            .dut()
            .map_or(PATIENCE, |dut| Duration::from_nanos(dut.boot.timeout_ns));
        Ok(Tester {
            hosts,
            names,
            notes,
            patience: boot.min(PATIENCE),
        })
    }

    /// The other end of the generators' cables.
    fn far_end(&self) -> Result<(&Host, &linerate_hosts::systems::Interface)> {
        let (host, key) = match self.lab.dut() {
            Some(dut) => (dut, "in"),
            None => (self.lab.receiver(), "receive"),
        };
        Ok((host, self.interface(host, key, 0)?))
    }

    /// The Ethernet address that frames are sent to.
    fn destination(&self) -> Result<MacAddr> {
        if let Some(black_box) = &self.lab.black_box {
            return beside(black_box, End::In);
        }
        let (host, found) = self.far_end()?;
        found
            .mac
            .with_context(|| format!("{}: {} has no Ethernet address", host.name, found.name))
    }

    fn sending(&self) -> Result<Vec<Sending<'_>>> {
        let to = self.destination()?;
        let mut all = Vec::new();
        for host in self.lab.generators() {
            for (nth, wanted) in host.send.iter().enumerate() {
                let found = self.interface(host, "send", nth)?;
                let addresses = found.addresses.iter().map(|a| a.address).collect();
                let side = Side {
                    name: &found.name,
                    wanted,
                    addresses,
                };
                all.push(Sending {
                    host,
                    side,
                    to,
                    own: found.mac,
                });
            }
        }
        Ok(all)
    }

    /// The generators' interfaces that are too short for these frames: each with what to do.
    ///
    /// # Errors
    /// An interface is not there.
    pub(super) fn too_short(&self, traffic: &Traffic) -> Result<Vec<String>> {
        let longest = traffic.mix.max_len_fcs();
        let needed = usize::from(longest).saturating_sub(traffic.frame.l2_len() + FCS_LEN) as u64;
        let mut short = Vec::new();
        for host in self.lab.generators() {
            for nth in 0..host.send.len() {
                let found = self.interface(host, "send", nth)?;
                if let Some(mtu) = found.mtu.map(u64::from).filter(|mtu| *mtu < needed) {
                    let name = &found.name;
                    short.push(format!(
                        "{}: frames of {longest} bytes need an MTU of {needed}, and {name} has {mtu}: ip link set {name} mtu {needed}",
                        host.name
                    ));
                }
            }
        }
        Ok(short)
    }

    /// Sends a few test frames from the tester's ports, as a campaign does, and looks whether they arrive at the other end of the cables.
    /// Nothing unless the tester's hosts have linerate.
    ///
    /// # Errors
    /// A port cannot be made, or a host was lost.
    pub fn try_ports(&self) -> Result<Vec<PortTried>> {
        if !self.has_agents()? {
            return Ok(Vec::new());
        }
        let sending = self.sending()?;
        let sends: Vec<Backend> = sending
            .iter()
            .map(|one| self.tool(one.host))
            .collect::<Result<_>>()?;
        let (nowhere, flows) = (MacAddr::default(), FlowSpace::benchmark(Family::V4, TRIED)?);
        let frame = FrameSpec::new(nowhere, nowhere, Family::V4, Transport::Udp);
        let traffic = Traffic::new(frame, FrameMix::single(64), flows);
        let kinds = vec![Frames {
            traffic,
            direction: Direction::Forward,
            bridged: false,
            tags: None,
        }];
        let mut lab = self.wire(
            &sending,
            &sends,
            self.tool(self.lab.receiver())?,
            kinds,
            CAMPAIGN,
        )?;
        let (backends, notes) = lab.get_ready(0)?;
        let far = self.far_end()?;
        let at = (far.0.name.clone(), far.1.name.clone());
        let before = self.received(&at);
        let Shown { sent, .. } = lab.learn(0, 0, TRIED.into(), false, &STOP)?;
        let rose = || Some(self.received(&at)?.saturating_sub(before?));
        let mut arrived = rose();
        if arrived.is_some_and(|arrived| arrived < sent) {
            std::thread::sleep(COUNTED);
            arrived = rose();
        }
        let tried = sending.iter().zip(backends).map(|(one, backend)| {
            let ours = |note: &&String| {
                note.starts_with(&format!("{}: {} ", one.host.name, one.side.name))
            };
            PortTried {
                from: (one.host.name.clone(), one.side.name.into()),
                port: backend,
                why: notes.iter().find(ours).cloned(),
                sent,
                arrives: at.clone(),
                arrived,
            }
        });
        let tried = tried.collect();
        lab.take_down();
        Ok(tried)
    }
}

/// The Ethernet address of a black box, as the lab file has it.
fn beside(black_box: &Host, end: End) -> Result<MacAddr> {
    let (name, key) = (&black_box.name, if end == End::In { "in" } else { "out" });
    black_box.end(end).and_then(|interface| interface.mac).with_context(|| {
        format!("nobody can ask {name} for the Ethernet address of [{key}]: write mac = \"...\" there in the lab file")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_learning_that_sent_a_part_of_the_flows_establishes_nothing() {
        let shown = |[wanted, sent, arrived, answers]: [u64; 4]| Shown {
            wanted,
            sent,
            left: None,
            arrived,
            answers,
        };
        let judged = |counts, asks, before, over| judged(shown(counts), asks, before, over);
        let part = [5_000_000, 1_200_000, 1_200_000, 1_200_000];
        assert_eq!(judged(part, true, 0, false), None, "another round");
        assert_eq!(
            judged(part, false, 0, false),
            Some(Learned::OneWay),
            "no round is left"
        );
        assert_eq!(
            judged([2000, 2000, 2000, 2000], true, 0, false),
            Some(Learned::Answered)
        );
        assert_eq!(
            judged([2000, 2000, 2000, 1999], false, 0, false),
            Some(Learned::OneWay)
        );
        assert_eq!(
            judged([2000, 2000, 0, 0], true, 0, false),
            None,
            "the link may come up"
        );
        assert_eq!(
            judged([2000, 2000, 0, 0], true, 0, true),
            Some(Learned::Nothing)
        );
        assert_eq!(
            judged([2000, 2000, 300, 0], false, 290, false),
            Some(Learned::OneWay),
            "a slow device"
        );
    }
}
