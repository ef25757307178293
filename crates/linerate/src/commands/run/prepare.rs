//! From a plan's campaign to what can be measured on this machine: which cells, on which CPUs, in which labs; what is skipped, and
//! why.

use crate::output::tell;
use crate::testbed::{EmbeddedPlan, Places, SlotLoad, TrafficKind};
use anyhow::{Context, Result};
use linerate_linux::host::cpu;
use linerate_linux::host::journal::Consent;
use linerate_linux::lab::Setup;
use linerate_linux::lab::support::{self, Need};
use linerate_measure::record::{Direction, Roles, Skipped, Slot};
use linerate_plan::Backend;
use linerate_plan::campaign::{Campaign, Kind, Lab, OPEN_LOOP};
use linerate_plan::rules::own::RuleFile;
use linerate_plan::settings::Mode;
use linerate_plan::settings::{Cpus, Dut};
use linerate_wire::{Family, FlowSpace, FrameSpec, MacAddr, Traffic};
use std::collections::{BTreeMap, HashSet};
use std::path::Path;

/// What will be measured.
pub struct Prepared {
    /// The cells as slots.
    pub slots: Vec<Slot>,
    /// Cells that are not measured.
    pub skipped: Vec<Skipped>,
    /// What a reader should know about the frames.
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
    /// Which lane of the plan and which of `kinds` each cell is.
    pub layout: Vec<SlotLoad>,
}

/// Works out what can be measured. `simulated`: nothing is asked of this machine; `no_xdp`: why XDP is out of the question.
///
/// # Errors
/// The plan is for a lab of hosts, or wants rates or flows that cannot be.
pub fn prepare(plan: &Campaign, consent: Consent, simulated: bool, no_xdp: Option<&str>) -> Result<Prepared> {
    let cpus = CpuChoice::new(plan)?;
    let mut prepared = Prepared::empty(cpus.roles(plan), cpus.mode);
    let flows = |family, flows| Ok(FlowSpace::benchmark(family, flows)?);
    let source = Source {
        cpus: &|cell| cpus.generator(plan, cell),
        threads: None,
        speed: plan.link_speed,
        flows: &flows,
    };
    prepared.cells(plan, &source)?;
    if !simulated {
        prepared.skipped = skipped(plan, consent);
        prepared.choose_backend(plan, no_xdp);
    }
    let open: Vec<&str> = plan.open_loops().collect();
    if !open.is_empty() {
        prepared.notes.push(format!("{}: {OPEN_LOOP}", open.join(", ")));
    }
    let mut seen = HashSet::new();
    prepared.notes.retain(|note| seen.insert(note.clone()));
    Ok(prepared)
}
/// What a lab has to say of the traffic.
pub struct Source<'a> {
    /// The generator's CPUs for a cell; none where hosts choose for themselves.
    pub cpus: &'a dyn Fn(usize) -> Vec<u32>,
    /// Threads that share a rate, where they are not the CPUs.
    pub threads: Option<usize>,
    /// What 100 % of line rate is, in bit/s.
    pub speed: Option<f64>,
    /// So many flows.
    pub flows: &'a dyn Fn(Family, u32) -> Result<FlowSpace>,
}

impl Prepared {
    /// Nothing yet.
    pub fn empty(roles: Roles, mode: Mode) -> Prepared {
        Prepared {
            slots: Vec::new(),
            skipped: Vec::new(),
            notes: Vec::new(),
            standing: BTreeMap::new(),
            roles,
            mode,
            backend: Backend::Xdp,
            kinds: Vec::new(),
            layout: Vec::new(),
        }
    }

    /// XDP where this process can load its programs, unless the plan says otherwise or frames are too long for it.
    fn choose_backend(&mut self, plan: &Campaign, no_xdp: Option<&str>) {
        if let Lab::Embedded { port: Some(port), .. } = plan.lab {
            self.backend = port;
            return;
        }
        let longest = |cell: usize| self.kinds[self.layout[cell].kind].traffic.mix.max_len_fcs();
        let measured = (0..plan.cells.len()).filter(|cell| !self.is_skipped(*cell));
        let most = Backend::Xdp.capabilities().longest_fcs;
        let longest = measured.map(longest).max().filter(|longest| *longest > most);
        let too_long =
            longest.map(|longest| format!("frames have {longest} bytes, and XDP's at most {most}"));
        let reason = no_xdp.map(str::to_string).or_else(|| support::lacking(&Need::Xdp)).or(too_long);
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

    /// All cells of a plan.
    ///
    /// # Errors
    /// Rates or flows that cannot be.
    pub fn cells(&mut self, plan: &Campaign, source: &Source<'_>) -> Result<()> {
        let files = plan.lanes.iter().filter_map(|lane| lane.settings.rule_file.as_ref());
        for note in files.flat_map(RuleFile::notes) {
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
        (0..plan.cells.len()).try_for_each(|cell| self.cell(plan, cell, source))
    }

    fn cell(&mut self, plan: &Campaign, number: usize, source: &Source<'_>) -> Result<()> {
        let cell = &plan.cells[number];
        let cpus = (source.cpus)(number);
        let kind = self.kind(&plan.kinds[cell.kind], &cpus, source)?;
        let Traffic { frame, mix, .. } = &self.kinds[kind].traffic;
        let threads = source.threads.unwrap_or(cpus.len());
        let asked_fps = cell
            .rate
            .frames_per_second(mix.average_len_fcs(), source.speed, threads)
            .with_context(|| format!("the rate of {} cannot be", cell.name))?;
        self.slots.push(Slot {
            id: number,
            name: cell.name.clone(),
            direction: Direction::Forward,
            variant: plan.variant_of(cell),
            family: frame.family.to_string(),
            transport: frame.transport.to_string(),
            frame: mix.name.clone(),
            lengths_fcs: mix.pattern.clone(),
            l4_checksum: frame.l4_checksum,
            signed: frame.signed,
            asked_fps,
            ceiling: cell.ceiling,
            baseline: cell.baseline,
            flows: Some(plan.kinds[cell.kind].flows.into()),
            cpus: (cpus != self.roles.generator).then_some(cpus),
            no_ceiling: false,
            imported: None,
        });
        self.layout.push(SlotLoad { lane: cell.lane, kind });
        Ok(())
    }

    /// The number of a kind of traffic on these CPUs.
    fn kind(&mut self, kind: &Kind, cpus: &[u32], source: &Source<'_>) -> Result<usize> {
        let nowhere = MacAddr::default();
        let mut frame = FrameSpec::new(nowhere, nowhere, kind.family, kind.transport);
        frame.l4_checksum = kind.checksum;
        let mix = kind.size.clone();
        if let Some(asked) = &kind.asked {
            let least = frame.min_len_fcs();
            self.notes.push(format!(
                "{} {} frames are at least {least} bytes long where they carry linerate's signature; {asked} was asked for",
                frame.family, frame.transport
            ));
        }
        let traffic = Traffic::new(frame, mix, (source.flows)(kind.family, kind.flows)?);
        let traffic = Traffic { order: kind.order, stamp_every: kind.stamp_every, ..traffic };
        let wanted = TrafficKind { traffic, cpus: cpus.to_vec() };
        Ok(self.kinds.iter().position(|known| *known == wanted).unwrap_or_else(|| {
            self.kinds.push(wanted);
            self.kinds.len() - 1
        }))
    }

    /// Whether a cell is not measured.
    pub fn is_skipped(&self, cell: usize) -> bool {
        self.skipped.iter().any(|s| s.cell == cell)
    }

    /// The labs, one for each group of lanes of which a cell is measured, and the place of each cell: its lab, and its number there.
    ///
    /// # Errors
    /// A setup that has faults although it had none before.
    pub fn labs(
        &self,
        plan: &Campaign,
        consent: Consent,
        campaign: u8,
    ) -> Result<(Vec<EmbeddedPlan>, Places)> {
        let mut labs: Vec<LabDraft> = Vec::new();
        let mut places = vec![None; plan.cells.len()];
        for (cell, &SlotLoad { lane, kind }) in self.layout.iter().enumerate() {
            if self.is_skipped(cell) {
                continue;
            }
            let group = plan.lanes[lane].group;
            let at = labs.iter().position(|lab| lab.group == group).unwrap_or_else(|| {
                labs.push(LabDraft { group, ..LabDraft::default() });
                labs.len() - 1
            });
            let lab = &mut labs[at];
            let (lane, kind) = (position(&mut lab.lanes, lane), position(&mut lab.kinds, kind));
            lab.slots.push(SlotLoad { lane, kind });
            places[cell] = Some((at, lab.slots.len() - 1));
        }
        let labs = labs.iter().map(|lab| self.lab(plan, lab, consent, campaign)).collect::<Result<_>>()?;
        Ok((labs, places))
    }

    fn lab(&self, plan: &Campaign, lab: &LabDraft, consent: Consent, campaign: u8) -> Result<EmbeddedPlan> {
        let mut setups = Vec::new();
        for (number, &lane) in lab.lanes.iter().enumerate() {
            let mut setup = setup(plan, lane, number).map_err(|faults| {
                anyhow::anyhow!(
                    "{} cannot be set up: {}",
                    plan.lanes[lane].variants.join(", "),
                    faults.join("; ")
                )
            })?;
            if setup.tracks {
                setup.room = Some(setup.room.unwrap_or(0).max(flows(plan, lane)));
            }
            if self.mode == Mode::Threaded
                && let Some(Cpus::Count(count)) = plan.lanes[lane].settings.cpus
            {
                let of_lane = self.roles.dut.iter().copied().take(count as usize).collect();
                setup.inside.irq.get_or_insert(of_lane);
            }
            setups.push(setup);
        }
        let kinds: Vec<TrafficKind> = lab.kinds.iter().map(|k| self.kinds[*k].clone()).collect();
        Ok(EmbeddedPlan {
            mode: self.mode,
            roles: self.roles.clone(),
            setups,
            flows: kinds.iter().map(|k| k.traffic.flows.len()).max().unwrap_or(0),
            kinds,
            slots: lab.slots.clone(),
            campaign,
            host_changes: consent,
            backend: self.backend,
            collect: plan.collect.clone(),
        })
    }
}

/// A lab under construction: lanes and kinds by their numbers in the plan.
#[derive(Default)]
struct LabDraft {
    group: usize,
    lanes: Vec<usize>,
    kinds: Vec<usize>,
    slots: Vec<SlotLoad>,
}

fn position(list: &mut Vec<usize>, item: usize) -> usize {
    list.iter().position(|i| *i == item).unwrap_or_else(|| {
        list.push(item);
        list.len() - 1
    })
}

/// The setup of a lane, as lane `number` of a lab.
fn setup(plan: &Campaign, lane: usize, number: usize) -> Result<Setup, Vec<String>> {
    let families = plan.families(lane);
    let mut settings = plan.lanes[lane].settings.clone();
    if settings.dut == Dut::TesterBaseline {
        // Its CPUs are those of its frames; there is no DUT that would have any.
        settings.cpus = None;
    }
    Setup::from_settings(&plan.lanes[lane].variants.join(", "), number, &settings, &families)
}

/// Flows of all kinds of traffic that a lane sees, together.
fn flows(plan: &Campaign, lane: usize) -> u64 {
    let mut kinds: Vec<usize> = plan.cells.iter().filter(|c| c.lane == lane).map(|c| c.kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds.iter().map(|k| u64::from(plan.kinds[*k].flows)).sum()
}

/// The cells that cannot be measured here, with the reasons.
fn skipped(plan: &Campaign, consent: Consent) -> Vec<Skipped> {
    let unmet = |needs: &[_]| needs.iter().filter_map(support::unmet).collect::<Vec<String>>();
    let of_plan = unmet(&plan.requirements);
    let of_lanes: Vec<Vec<String>> = (0..plan.lanes.len())
        .map(|lane| [unmet(&plan.lanes[lane].requirements), lacking(plan, lane, consent)].concat())
        .collect();
    let ipv6 = Path::new("/proc/sys/net/ipv6").exists();
    let mut all: Vec<Vec<String>> = Vec::new();
    for cell in &plan.cells {
        let mut reasons = [of_plan.as_slice(), &of_lanes[cell.lane]].concat();
        if plan.kinds[cell.kind].family == Family::V6 && !ipv6 {
            reasons.push("this kernel has no IPv6".into());
        }
        let mut seen: Vec<String> = Vec::new();
        reasons.retain(|r| {
            !seen.contains(r) && {
                seen.push(r.clone());
                true
            }
        });
        all.push(reasons);
    }
    // A ceiling for nothing is not measured either.
    for ceiling in 0..all.len() {
        let mut users = plan.cells.iter().enumerate().filter(|(_, c)| c.ceiling == Some(ceiling)).peekable();
        if all[ceiling].is_empty() && users.peek().is_some() && users.all(|(user, _)| !all[user].is_empty()) {
            all[ceiling].push("nothing is compared with it".into());
        }
    }
    with_reasons(all)
}

/// The cells that have reasons not to be measured.
pub fn with_reasons(all: Vec<Vec<String>>) -> Vec<Skipped> {
    let cells = all.into_iter().enumerate().filter(|(_, reasons)| !reasons.is_empty());
    cells.map(|(cell, reasons)| Skipped { cell, reasons }).collect()
}

/// What a lane lacks here: faults, what the kernel does not have, and what of the host nobody has agreed to change.
fn lacking(plan: &Campaign, lane: usize, consent: Consent) -> Vec<String> {
    let setup = match setup(plan, lane, 0) {
        Ok(setup) => setup,
        Err(faults) => return faults,
    };
    let mut reasons = setup.lacking();
    if reasons.is_empty() && consent == Consent::Refused {
        match setup.outstanding(flows(plan, lane)) {
            Ok(wanted) if wanted.is_empty() => {}
            Ok(wanted) => reasons.push(format!(
                "it needs other settings of the whole host: {} (--allow-host-changes lets linerate set them, and put them back)",
                wanted.join("; ")
            )),
            Err(error) => reasons.push(error.to_string()),
        }
    }
    reasons
}

/// Which CPUs there are for what.
struct CpuChoice {
    mode: Mode,
    /// Generator CPUs in the order in which they are taken, and how many where nobody says.
    generator: (Vec<u32>, usize),
    /// The DUT's, in threaded mode.
    dut: Option<Vec<u32>>,
    online: Vec<u32>,
}

impl CpuChoice {
    fn new(plan: &Campaign) -> Result<Self> {
        let Lab::Embedded { mode, generator_cpus, dut_cpus, .. } = &plan.lab else {
            anyhow::bail!("this plan is for a lab of hosts");
        };
        let online = cpu::online_cpus().context("asking which CPUs this process may use")?;
        let usual = cpu::default_roles(&online, *mode, generator_cpus.clone()).generator;
        let mut order = usual.clone();
        if generator_cpus.is_none() {
            order.extend(online.iter().rev().filter(|c| !usual.contains(c)));
        }
        Ok(CpuChoice { mode: *mode, generator: (order, usual.len()), dut: dut_cpus.clone(), online })
    }

    /// The generator's CPUs for a cell: inline, these are the DUT's as well.
    fn generator(&self, plan: &Campaign, cell: usize) -> Vec<u32> {
        let (order, usual) = &self.generator;
        let count = match (self.mode, plan.cpus(cell)) {
            (Mode::Inline, Some(Cpus::All)) => order.len(),
            (Mode::Inline, Some(Cpus::Count(count))) => *count as usize,
            _ => *usual,
        };
        let mut cpus: Vec<u32> = order.iter().copied().take(count).collect();
        cpus.sort_unstable();
        cpus
    }

    fn roles(&self, plan: &Campaign) -> Roles {
        let mut generator: Vec<u32> =
            (0..plan.cells.len()).flat_map(|cell| self.generator(plan, cell)).collect();
        generator.sort_unstable();
        generator.dedup();
        let mut roles = cpu::default_roles(&self.online, self.mode, Some(generator));
        let most = plan.lanes.iter().filter_map(|lane| match lane.settings.cpus {
            Some(Cpus::All) => Some(usize::MAX),
            Some(Cpus::Count(count)) => Some(count as usize),
            None => None,
        });
        if self.mode == Mode::Threaded {
            let others = self.online.iter().copied().filter(|c| !roles.generator.contains(c));
            let pool: Vec<u32> = self.dut.clone().unwrap_or_else(|| others.collect());
            if let Some(most) = most.max().filter(|_| !pool.is_empty()) {
                roles.dut = pool.into_iter().take(most).collect();
                roles.receiver.clone_from(&roles.dut);
            } else if let Some(dut) = &self.dut {
                roles.dut.clone_from(dut);
                roles.receiver.clone_from(dut);
            }
        }
        roles
    }
}
