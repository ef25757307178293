//! From a plan to the cells that can be measured, with their frames and CPUs, and to the skipped cells, with reasons.

mod addresses;
mod skipping;

pub use addresses::origins;
pub use skipping::{lacking_of_cells, with_reasons};

use crate::messages::{tell, usage};
use anyhow::{Context, Result, anyhow, bail};
use linerate_linux::host::{changes::Consent, cpu, quota};
use linerate_linux::lab::{Setup, support};
use linerate_measure::experiment::{Benchmark, Measure};
use linerate_measure::record::{Direction, Mode, PathOf, Roles, Skipped, Slot};
use linerate_plan::Backend;
use linerate_plan::campaign::{Campaign, Kind, Lab, OPEN_LOOP, Origins, StampedBy};
use linerate_plan::names::Named;
use linerate_plan::rules::Firewall;
use linerate_plan::rules::own::RuleFile;
use linerate_plan::settings::{Cpus, Dut, Settings};
use linerate_wire::units::line_rate;
use linerate_wire::{FrameSpec, Traffic};
use skipping::skipped;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// The reason for refusing a reset of a simulated DUT.
pub const NO_EVENTS: &str = "a simulated DUT cannot have events";

/// A plan, and its cells that can be measured. Cells and lanes have the plan's numbers.
#[derive(Clone)]
pub struct Prepared {
    pub plan: Campaign,
    /// The cells as slots.
    pub slots: Vec<Slot>,
    /// Cells that are not measured.
    pub skipped: Vec<Skipped>,
    /// Notes about the frames for a reader.
    pub notes: Vec<String>,
    /// Hosts and images, which must not change while the campaign lasts.
    pub standing: BTreeMap<String, String>,
    /// Who runs where.
    pub roles: Roles,
    /// How the CPUs are shared.
    pub mode: Mode,
    /// How frames leave and arrive.
    pub backend: Backend,
    /// Kinds of traffic, each on its CPUs.
    pub kinds: Vec<TrafficKind>,
    /// By cell: which of `kinds` it is.
    pub kind_of: Vec<usize>,
    /// Whether settings of the whole host may be changed.
    pub consent: Consent,
}

/// A kind of traffic: the cells that differ in nothing but the variant share it.
#[derive(Debug, Clone, PartialEq)]
pub struct TrafficKind {
    /// The frames. Ethernet addresses, campaign and streams are filled in by the testbed.
    pub traffic: Traffic,
    /// The generator's CPUs, one thread on each.
    pub cpus: Vec<u32>,
    /// Direction of the frames.
    pub direction: Direction,
    /// Over hosts: the kind of DUT that they are addressed to, where that matters.
    pub dut: Dut,
}

impl TrafficKind {
    /// Streams of the cell: one for each thread and direction.
    pub fn streams(&self) -> usize {
        self.cpus.len() * self.direction.ways().len() * self.traffic.streams_each()
    }
}

/// Facts about the traffic that the lab contributes.
pub struct Source {
    /// By cell: the generator's CPUs; none where hosts choose for themselves.
    pub cpus: Vec<Vec<u32>>,
    /// Threads that share a rate, if they are not the CPUs.
    pub threads: Option<usize>,
    /// Interfaces that send.
    pub generators: usize,
    /// Speed in bit/s that is 100 % of line rate.
    pub speed: Option<f64>,
    /// Where the addresses of flows begin.
    pub origins: Origins,
}

/// Finds the cells that can be measured on this machine. `simulated`: the machine is not examined; `no_xdp`: the reason why XDP
/// cannot be used.
///
/// # Errors
/// The plan is for a lab of hosts, or wants impossible rates or flows.
pub fn prepare(
    plan: &Campaign,
    consent: Consent,
    simulated: bool,
    no_xdp: Option<&str>,
) -> Result<Prepared> {
    let online = cpu::online_cpus().context("asking which CPUs this process may use")?;
    let mut prepared = on_cpus(plan, &online)?;
    prepared.consent = consent;
    check_tests(plan, |test| {
        (simulated && test == Benchmark::Reset).then(|| NO_EVENTS.into())
    })?;
    if !simulated {
        quota::suffices_for(&prepared.roles.of_load()).map_err(usage)?;
        prepared.look_here(no_xdp);
    }
    let open: Vec<&str> = plan.open_loops().collect();
    if !open.is_empty() {
        prepared
            .notes
            .push(format!("{}: {OPEN_LOOP}", open.join(", ")));
    }
    Ok(prepared)
}

/// The cells of a plan in an embedded lab with these CPUs, none of them skipped.
///
/// # Errors
/// The plan is for a lab of hosts, or wants impossible rates or flows.
pub fn on_cpus(plan: &Campaign, online: &[u32]) -> Result<Prepared> {
    let (mode, roles, cpus) = share_cpus(plan, online)?;
    let (speed, origins) = (plan.experiment.link_speed, Origins::default());
    let source = Source {
        cpus,
        threads: None,
        generators: 1,
        speed,
        origins,
    };
    Prepared::new(plan, roles, mode, &source)
}

/// Says so where the rules of iptables run in nf_tables, by the line that `iptables --version` prints.
fn in_nf_tables(version: &str) -> Option<String> {
    let number = version.strip_suffix(" (nf_tables)")?;
    let number = number.trim_start_matches("iptables ");
    Some(format!(
        "iptables here is iptables-nft {number}: its rules run in nf_tables"
    ))
}

impl Prepared {
    /// All cells of a plan.
    ///
    /// # Errors
    /// Impossible rates or flows.
    pub fn new(plan: &Campaign, roles: Roles, mode: Mode, source: &Source) -> Result<Prepared> {
        let files = plan
            .lanes
            .iter()
            .filter_map(|lane| lane.settings.rule_file.as_ref());
        let said = match &plan.lab {
            Lab::Embedded { statement, .. } => statement.as_ref(),
            Lab::File { .. } => None,
        };
        let mut prepared = Prepared {
            plan: plan.clone(),
            slots: Vec::new(),
            skipped: Vec::new(),
            notes: distinct(files.flat_map(RuleFile::notes)),
            standing: said
                .map(|said| (linerate_standards::STATEMENT.into(), said.clone()))
                .into_iter()
                .collect(),
            roles,
            mode,
            backend: Backend::Xdp,
            kinds: Vec::new(),
            kind_of: Vec::new(),
            consent: Consent::Refused,
        };
        (0..plan.cells.len()).try_for_each(|cell| prepared.cell(plan, cell, source))?;
        prepared.notes = distinct(prepared.notes);
        Ok(prepared)
    }

    fn cell(&mut self, plan: &Campaign, number: usize, source: &Source) -> Result<()> {
        let cell = &plan.cells[number];
        let lane = &plan.lanes[cell.lane];
        let cpus = source.cpus.get(number).cloned().unwrap_or_default();
        let kind = self.kind(&plan.kinds[cell.kind], &cpus, source, lane.settings.dut)?;
        let traffic = &self.kinds[kind].traffic;
        let Traffic { frame, mix, .. } = traffic;
        let threads = source.threads.unwrap_or(cpus.len());
        if source.generators > 1 && traffic.burst > 0 {
            bail_usage!(
                "{}: bursts of {} frames need one sending interface, and this lab has {}",
                cell.name,
                traffic.burst,
                source.generators
            );
        }
        let asked_fps = cell
            .rate
            .frames_per_second(mix.average_len_fcs(), source.speed, threads)
            .with_context(|| format!("the rate of {} cannot be", cell.name))?;
        let http = plan.kinds[cell.kind].requests();
        // The kernels choose the lengths of the segments of HTTP.
        let lengths_fcs = http.map_or_else(|| mix.pattern.clone(), |_| Vec::new());
        let frames = self.mode != Mode::EndHosts && http.is_none();
        self.slots.push(Slot {
            id: number,
            name: cell.name.clone(),
            direction: plan.kinds[cell.kind].direction,
            variant: plan
                .experiment
                .name(&cell.variant, &cell.levels, |factor| !factor.of_frames()),
            family: frame.family.to_string(),
            transport: frame.transport.to_string(),
            frame: mix.name.clone(),
            lengths_fcs,
            l4_checksum: frame.l4_checksum,
            signed: frame.signed,
            asked_fps,
            ceiling: cell.ceiling,
            baseline: cell.baseline,
            flows: Some(plan.kinds[cell.kind].flows.into()),
            cpus: (cpus != self.roles.generator).then_some(cpus),
            no_ceiling: self.mode == Mode::Hosts && !plan.is_ceiling(number),
            plan_variant: cell.variant.clone(),
            levels: cell.levels.clone(),
            group: lane.group,
            order: plan.kinds[cell.kind].order.to_string(),
            rate: cell.rate.to_string(),
            traffic: frames.then(|| Box::new(traffic.clone())),
            known_answer: lane.settings.dut.is_known(),
            path: (self.mode == Mode::EndHosts)
                .then(|| path(&lane.settings, mix.max_len_fcs(), frame)),
            http,
            event: lane.settings.event.as_ref().map(|event| event.what.class()),
            rule_counters: lane.settings.rule_file.as_ref().map(RuleFile::counts),
            imported: None,
        });
        self.kind_of.push(kind);
        Ok(())
    }

    /// The number of a kind of traffic on these CPUs.
    fn kind(&mut self, kind: &Kind, cpus: &[u32], source: &Source, dut: Dut) -> Result<usize> {
        let traffic = kind.traffic(&source.origins)?;
        self.notes.extend(kind.lengthened());
        let card_stamps = kind.stamps == StampedBy::Hardware;
        if card_stamps && self.mode != Mode::Hosts {
            self.notes
                .push("the embedded lab has no cards: its frames are stamped in software".into());
        }
        // A medium sets the gap between the frames of a burst by itself.
        let speed = source
            .speed
            .filter(|_| kind.burst > 0 && self.mode != Mode::Hosts);
        let burst_fps = speed.map(|speed| line_rate(speed, traffic.mix.average_len_fcs()));
        let traffic = Traffic {
            card_stamps,
            burst_fps,
            ..traffic
        };
        let (cpus, direction) = (cpus.to_vec(), kind.direction);
        let apart = self.mode == Mode::Hosts && matches!(dut, Dut::Bridge | Dut::Vlan);
        let dut = if apart { dut } else { Dut::default() };
        Ok(position(
            &mut self.kinds,
            TrafficKind {
                traffic,
                cpus,
                direction,
                dut,
            },
        ))
    }

    /// Finds out what this machine can measure, and how.
    fn look_here(&mut self, no_xdp: Option<&str>) {
        self.skipped = skipped(&self.plan, self.consent);
        if self.mode != Mode::EndHosts && self.slots.iter().all(|slot| slot.http.is_none()) {
            self.choose_backend(no_xdp);
        }
        let firewall = |cell: usize| self.plan.lanes[self.lane(cell)].settings.firewall();
        if self
            .measured()
            .any(|cell| firewall(cell) == Some(Firewall::Iptables))
        {
            self.notes
                .extend(in_nf_tables(&linerate_linux::host::version_of("iptables")));
        }
    }

    /// XDP if this process can load its programs, unless the plan names another backend or frames are too long for it.
    fn choose_backend(&mut self, no_xdp: Option<&str>) {
        if let Lab::Embedded {
            port: Some(port), ..
        } = self.plan.lab
        {
            self.backend = port;
            return;
        }
        let longest = self
            .measured()
            .map(|cell| self.traffic(cell).mix.max_len_fcs())
            .max();
        let most = Backend::Xdp.capabilities().longest_fcs;
        let longest = longest.filter(|longest| *longest > most);
        let too_long = longest
            .map(|longest| format!("frames have {longest} bytes, but XDP allows at most {most}"));
        let reason = no_xdp
            .map(str::to_string)
            .or_else(support::no_xdp)
            .or(too_long);
        if let Some(reason) = reason {
            self.backend = Backend::AfPacket;
            let note = format!(
                "{reason}: the tester uses AF_PACKET sockets, which are several times slower than XDP live frames"
            );
            // Before a long campaign, and not only on its page: as root it would be faster.
            tell(&note);
            self.notes.push(note);
        }
    }

    /// The variants that are not measured, with the reasons.
    pub fn lacking(&self) -> Vec<(String, String)> {
        let of_dut = |skipped: &&Skipped| !self.plan.is_ceiling(skipped.cell);
        let skipped = self.skipped.iter().filter(of_dut).map(|skipped| {
            let variant = &self.plan.cells[skipped.cell].variant;
            (variant.clone(), skipped.reasons.join("; "))
        });
        distinct(skipped)
    }

    /// Whether a cell is not measured.
    pub fn is_skipped(&self, cell: usize) -> bool {
        self.skipped.iter().any(|s| s.cell == cell)
    }

    /// The cells that are measured.
    pub fn measured(&self) -> impl Iterator<Item = usize> {
        (0..self.plan.cells.len()).filter(|cell| !self.is_skipped(*cell))
    }

    /// The lane of a cell.
    pub fn lane(&self, cell: usize) -> usize {
        self.plan.cells[cell].lane
    }

    /// The frames of a cell.
    pub fn traffic(&self, cell: usize) -> &Traffic {
        &self.kinds[self.kind_of[cell]].traffic
    }

    /// Destinations of the frames that a cell's DUT gets in any cell, each with a source: the first and the last flow.
    pub fn addresses(&self, cell: usize) -> Vec<[IpAddr; 2]> {
        const MOST: usize = 8;
        let lane = self.lane(cell);
        let of_lane = self.measured().filter(|other| self.lane(*other) == lane);
        let flows = of_lane.flat_map(|cell| {
            let flows = &self.traffic(cell).flows;
            [0, flows.len().saturating_sub(1)].map(|at| flows.flow(at))
        });
        let mut all = distinct(flows.map(|flow| [flow.dst, flow.src]));
        all.truncate(MOST);
        all
    }

    /// High byte of the stream ids.
    pub fn campaign(&self) -> u8 {
        self.plan.experiment.trials.seed.unwrap_or_default() as u8
    }

    /// The group of lanes that stand side by side with a cell's.
    pub fn group(&self, cell: usize) -> usize {
        self.plan.lanes[self.lane(cell)].group
    }

    /// The cells that are measured in the lab of a group of lanes.
    pub fn in_group(&self, group: usize) -> impl Iterator<Item = usize> {
        self.measured()
            .filter(move |cell| self.group(*cell) == group)
    }

    /// The lanes of a group that are needed: their numbers in the plan, and their setups.
    ///
    /// # Errors
    /// A setup that has faults although it had none before.
    pub fn setups(&self, group: usize) -> Result<(Vec<usize>, Vec<Setup>)> {
        let lanes = distinct(self.in_group(group).map(|cell| self.lane(cell)));
        let setups = lanes
            .iter()
            .enumerate()
            .map(|(number, lane)| self.setup(*lane, number));
        let setups = setups.collect::<Result<_>>()?;
        Ok((lanes, setups))
    }

    /// The setup of a lane, as lane `number` of a lab.
    ///
    /// # Errors
    /// The plan has faults.
    pub fn setup(&self, lane: usize, number: usize) -> Result<Setup> {
        let (name, settings) = (
            self.plan.lanes[lane].variants.join(", "),
            &self.plan.lanes[lane].settings,
        );
        let mut setup = setup(&self.plan, lane, number)
            .map_err(|fault| anyhow!("{name} cannot be set up: {fault}"))?;
        if setup.tracks {
            setup.room = Some(setup.room.unwrap_or(0).max(flows(&self.plan, lane)));
        }
        if let (Mode::Threaded, Some(Cpus::Count(count))) = (self.mode, settings.cpus.as_ref()) {
            let of_lane = self
                .roles
                .dut
                .iter()
                .copied()
                .take(*count as usize)
                .collect();
            setup.settings.inside.irq.get_or_insert(of_lane);
        }
        Ok(setup)
    }
}

/// Refuses tests that are not possible on this testbed before the first trial. `lacks`: why a test is not possible.
///
/// # Errors
/// The first such test.
pub fn check_tests(plan: &Campaign, lacks: impl Fn(Benchmark) -> Option<String>) -> Result<()> {
    let trials = &plan.experiment.trials;
    let events = plan.lanes.iter().any(|lane| lane.settings.event.is_some());
    for test in trials
        .tests
        .iter()
        .filter(|_| trials.measure == Measure::Rfc2544)
    {
        let why = match test {
            Benchmark::Reset if !events => Some(
                "no variant has an event: name one with --event, or with `event` in the plan"
                    .into(),
            ),
            test => lacks(*test),
        };
        if let Some(why) = why {
            bail_usage!("the test {} is not possible: {why}", test.name());
        }
    }
    Ok(())
}

/// The path of a lane of end hosts, whose full segments have this length and these headers.
fn path(settings: &Settings, len_fcs: u16, frame: &FrameSpec) -> PathOf {
    /// Ethernet's header and FCS, and TCP's time stamps.
    const BESIDE: usize = 18 + 12;
    let headers = frame.l3_len() + frame.l4_len() + BESIDE;
    let path = settings.path.as_ref();
    PathOf {
        rtt_ns: path.map_or(0, |path| path.rtt_ns),
        rate: path.map(|path| path.rate as f64),
        payload: u32::from(len_fcs).saturating_sub(headers as u32),
        by: "linerate".into(),
    }
}

/// Each once, in their order.
pub fn distinct<T: PartialEq>(all: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut seen = Vec::new();
    for one in all {
        position(&mut seen, one);
    }
    seen
}

/// Where something is in a list; it is added if it is not there.
fn position<T: PartialEq>(list: &mut Vec<T>, item: T) -> usize {
    list.iter()
        .position(|known| *known == item)
        .unwrap_or_else(|| {
            list.push(item);
            list.len() - 1
        })
}

/// The setup of a lane, as lane `number` of a lab.
fn setup(plan: &Campaign, lane: usize, number: usize) -> Result<Setup, String> {
    let families = plan.families(lane);
    let mut settings = plan.lanes[lane].settings.clone();
    if settings.dut == Dut::TesterBaseline {
        // A tester alone has the CPUs of its frames; there is no DUT that would have any.
        settings.cpus = None;
    }
    Setup::from_settings(
        &plan.lanes[lane].variants.join(", "),
        number,
        &settings,
        &families,
    )
}

/// Flows of all kinds of traffic that a lane sees, together.
fn flows(plan: &Campaign, lane: usize) -> u64 {
    let kinds = plan
        .cells
        .iter()
        .filter(|cell| cell.lane == lane)
        .map(|cell| cell.kind);
    kinds
        .collect::<BTreeSet<_>>()
        .into_iter()
        .map(|kind| u64::from(plan.kinds[kind].flows))
        .sum()
}

/// Who runs where, and the generator's CPUs by cell: inline, these are the DUT's as well.
fn share_cpus(plan: &Campaign, online: &[u32]) -> Result<(Mode, Roles, Vec<Vec<u32>>)> {
    let Lab::Embedded {
        mode,
        generator_cpus,
        dut_cpus,
        ..
    } = &plan.lab
    else {
        bail!("this plan is for a lab of hosts");
    };
    if *mode == Mode::EndHosts {
        // The kernel chooses.
        return Ok((*mode, Roles::default(), vec![Vec::new(); plan.cells.len()]));
    }
    let count = |cpus: &Cpus| match cpus {
        Cpus::All => usize::MAX,
        Cpus::Count(count) => *count as usize,
    };
    let usual = cpu::default_roles(online, *mode, generator_cpus.clone()).generator;
    // In the order in which they are taken.
    let mut order = usual.clone();
    if generator_cpus.is_none() {
        order.extend(online.iter().rev().filter(|cpu| !usual.contains(cpu)));
    }
    let of_cell = |cell: usize| {
        let wanted = plan
            .cpus(cell)
            .filter(|_| *mode == Mode::Inline)
            .map_or(usual.len(), count);
        order
            .iter()
            .copied()
            .take(wanted)
            .collect::<BTreeSet<u32>>()
    };
    let by_cell: Vec<BTreeSet<u32>> = (0..plan.cells.len()).map(of_cell).collect();
    let generator: BTreeSet<u32> = by_cell.iter().flatten().copied().collect();
    let mut roles = cpu::default_roles(online, *mode, Some(generator.into_iter().collect()));
    if *mode == Mode::Threaded {
        let others = online
            .iter()
            .copied()
            .filter(|cpu| !roles.generator.contains(cpu));
        let pool = dut_cpus.clone().unwrap_or_else(|| others.collect());
        let most = plan
            .lanes
            .iter()
            .filter_map(|lane| lane.settings.cpus.as_ref())
            .map(count)
            .max();
        let wanted = most.or(dut_cpus.as_ref().map(Vec::len));
        if let Some(wanted) = wanted.filter(|_| !pool.is_empty()) {
            roles.dut = pool.into_iter().take(wanted).collect();
            roles.receiver.clone_from(&roles.dut);
        }
    }
    Ok((
        *mode,
        roles,
        by_cell
            .into_iter()
            .map(|cpus| cpus.into_iter().collect())
            .collect(),
    ))
}

#[cfg(test)]
mod tests {
    use super::in_nf_tables;

    #[test]
    fn only_an_iptables_on_nf_tables_is_noted() {
        let note = in_nf_tables("iptables v1.8.9 (nf_tables)");
        assert_eq!(
            note.as_deref(),
            Some("iptables here is iptables-nft v1.8.9: its rules run in nf_tables")
        );
        for other in [
            "iptables v1.8.9 (legacy)",
            "iptables v1.6.1",
            "not installed",
        ] {
            assert_eq!(in_nf_tables(other), None);
        }
    }
}
