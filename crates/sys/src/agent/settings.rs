//! What the controller has set on this host, and how it is undone: everything goes through the journal, so that it is written down
//! before it is made, and undone by the next agent should this one be killed.

use super::Options;
use crate::host::journal::{Change, HostChanges, Journal, JournalError, THERE};
use crate::lab::cards::{cpu_mask, kernel_names};
use crate::lab::{from_plan, rules};
use crate::net::ethtool::Ethtool;
use crate::net::netlink::Route;
use crate::net::{self, Netns};
use crate::process::Job;
use linerate_core::agent::message::{Code, Fault};
use linerate_core::agent::spec::Wanted;
use linerate_core::plan::placeholders::fill;
use linerate_core::plan::settings::{Dut, End, Feature, Interface, Tool};
use linerate_wire::{Family, MacAddr};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Settings of this host.
pub(super) struct Settings {
    state: PathBuf,
    changes: Option<HostChanges>,
    /// What the rule set had dropped when it was last asked, if there is one.
    dropped: Option<u64>,
}

/// How long a command of a plan may take.
const COMMAND_WITHIN: Duration = Duration::from_secs(60);

/// How long links may take to come back.
const LINK_WITHIN: Duration = Duration::from_secs(10);

/// Why a setting was not made.
#[derive(Debug, thiserror::Error)]
enum SetError {
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(transparent)]
    Net(#[from] net::Error),
    #[error("{0}")]
    Unsuitable(String),
    #[error("{0}")]
    Failed(String),
}

impl Settings {
    pub fn new(options: &Options) -> Settings {
        Settings { state: options.state.clone(), changes: None, dropped: None }
    }

    /// Undoes what an agent that was killed has left; in words, also what went wrong.
    pub fn restore_remains(&mut self) -> Vec<String> {
        let journal = Journal::of_this_namespace(&self.state);
        let restored =
            journal.map_err(|e| e.to_string()).and_then(|j| j.restore_remains().map_err(|e| e.to_string()));
        restored.unwrap_or_else(|error| vec![error])
    }

    /// Undoes everything; in words.
    pub fn undo(&mut self) -> Vec<String> {
        self.dropped = None;
        let undone = self.changes.take().map(|mut changes| changes.undo());
        undone.unwrap_or_else(|| Ok(Vec::new())).unwrap_or_else(|error| vec![error.to_string()])
    }

    /// What the rule set has dropped since the last time that it was asked.
    pub fn dropped_by_rules(&mut self, namespace: &Netns) -> Option<u64> {
        let before = self.dropped?;
        let now = rules::nft_drops(namespace)?;
        self.dropped = Some(now);
        Some(now.saturating_sub(before))
    }

    /// Sets everything, instead of what was set before. What fails undoes the rest.
    pub fn apply(
        &mut self,
        wanted: &Wanted,
        options: &Options,
        cancel: &AtomicBool,
    ) -> Result<Vec<String>, Fault> {
        let mut done = self.undo();
        permit(wanted, options)?;
        let journal = Journal::of_this_namespace(&self.state).map_err(|e| fault(&e.into()))?;
        let mut dresser =
            Dresser { wanted, journal: journal.clone(), changes: journal.begin(), cancel, done: Vec::new() };
        match dresser.dress() {
            Ok(()) => {
                done.append(&mut dresser.done);
                self.changes = Some(dresser.changes);
                self.dropped = wanted.settings.rules.is_some().then_some(0);
                Ok(done)
            }
            Err(error) => {
                // Dropped, the changes are undone.
                Err(fault(&error))
            }
        }
    }
}

const WHAT: &str = "setting up this host as a device under test";

fn fault(error: &SetError) -> Fault {
    let (code, remedy) = match error {
        SetError::Unsuitable(_) => {
            (Code::Unsuitable, "take it out of the plan, or do it by a command with its undo")
        }
        SetError::Failed(_) => (Code::System, "see what the program says"),
        SetError::Journal(JournalError::Held { .. }) => (Code::Refused, "one experiment at a time on a host"),
        SetError::Journal(_) | SetError::Net(_) => {
            (Code::System, "run the agent as root, and look at what the host's kernel and driver have")
        }
    };
    Fault { code, what: WHAT.into(), why: error.to_string(), remedy: remedy.into() }
}

/// Nobody's host is changed without a word, and never the way that the controller came by.
fn permit(wanted: &Wanted, options: &Options) -> Result<(), Fault> {
    let refused = |why: String, remedy: &str| Fault {
        code: Code::Refused,
        what: WHAT.into(),
        why,
        remedy: remedy.into(),
    };
    if !wanted.consent {
        return Err(refused("nobody agreed to changes of this host".into(), "--allow-host-changes agrees"));
    }
    let namespace = Netns::current().map_err(|e| fault(&e.into()))?;
    for interface in [&wanted.inside, &wanted.outside] {
        let uses = options.connection.as_ref().map(|c| c.uses(&namespace, interface));
        if uses.transpose().map_err(|e| fault(&e.into()))?.unwrap_or(false) {
            let why = format!("linerate's own connection comes in by {interface}");
            return Err(refused(why, "name interfaces that lead to the generator and the receiver"));
        }
    }
    Ok(())
}

/// Sets one host up.
struct Dresser<'a> {
    wanted: &'a Wanted,
    journal: Journal,
    changes: HostChanges,
    cancel: &'a AtomicBool,
    done: Vec<String>,
}

impl Dresser<'_> {
    fn dress(&mut self) -> Result<(), SetError> {
        let faults = unsupported(self.wanted);
        if !faults.is_empty() {
            return Err(SetError::Unsuitable(faults.join("; ")));
        }
        let wanted = self.wanted;
        let route = Route::open(&Netns::current()?)?;
        let running = [route.link(&wanted.inside)?, route.link(&wanted.outside)?]
            .map(|link| (link.index, link.running));
        for module in &wanted.settings.modules {
            self.changes.load_module(module)?;
        }
        self.router()?;
        for (end, settings) in
            [(&wanted.inside, &wanted.settings.inside), (&wanted.outside, &wanted.settings.outside)]
        {
            self.card(end, settings)?;
        }
        self.tables()?;
        self.rules()?;
        for (key, value) in &wanted.settings.sysctls {
            self.set(Change::sysctl(&self.named(key), &self.named(value))?)?;
        }
        self.commands()?;
        // Queues, rings and the MTU take some cards' links down for a moment.
        for (index, _) in running.into_iter().filter(|(_, ran)| *ran) {
            route.wait_running(index, LINK_WITHIN)?;
        }
        Ok(())
    }

    fn named(&self, text: &str) -> String {
        fill(text, &self.wanted.inside, &self.wanted.outside)
    }

    fn end(&self, end: End) -> &str {
        match end {
            End::In => &self.wanted.inside,
            End::Out => &self.wanted.outside,
        }
    }

    fn families(&self) -> Vec<Family> {
        let of = |version: &u8| if *version == 4 { Family::V4 } else { Family::V6 };
        self.wanted.families.iter().map(of).collect()
    }

    fn set(&mut self, change: Change) -> Result<(), SetError> {
        let needed = !self.journal.outstanding(std::slice::from_ref(&change))?.is_empty();
        self.changes.set(&change)?;
        if needed {
            self.done.push(change.by_hand());
        }
        Ok(())
    }

    fn set_path(&mut self, path: String, value: impl Into<String>) -> Result<(), SetError> {
        self.set(Change::of(path, value)?)
    }

    /// Forwarding between the two interfaces, and no others where the kernel can tell them apart.
    fn router(&mut self) -> Result<(), SetError> {
        if self.wanted.settings.dut != Dut::Forwarding {
            return Ok(());
        }
        for family in self.families() {
            match family {
                Family::V4 => {
                    for end in [End::In, End::Out] {
                        let folder = format!("net/ipv4/conf/{}", self.end(end));
                        self.set(Change::sysctl(&format!("{folder}/forwarding"), "1")?)?;
                        self.set(Change::sysctl(&format!("{folder}/send_redirects"), "0")?)?;
                    }
                }
                // IPv6 forwards on all interfaces or on none.
                Family::V6 => self.set(Change::sysctl("net/ipv6/conf/all/forwarding", "1")?)?,
            }
        }
        Ok(())
    }

    /// Queues before what is set on each of them.
    fn card(&mut self, card: &str, settings: &Interface) -> Result<(), SetError> {
        if let Some(mtu) = settings.mtu {
            self.set_path(format!("card/{card}/mtu"), mtu.to_string())?;
        }
        if let Some(queues) = settings.queues {
            self.set_path(format!("card/{card}/queues"), format!("{queues} {queues}"))?;
        }
        if settings.rx_ring.is_some() || settings.tx_ring.is_some() {
            let now = Ethtool::open(&Netns::current()?)?.rings(card)?;
            let rings =
                format!("{} {}", settings.rx_ring.unwrap_or(now.rx), settings.tx_ring.unwrap_or(now.tx));
            self.set_path(format!("card/{card}/rings"), rings)?;
        }
        for (feature, on) in &settings.features {
            self.feature(card, *feature, *on)?;
        }
        self.steering(card, settings)
    }

    fn feature(&mut self, card: &str, feature: Feature, on: bool) -> Result<(), SetError> {
        if feature == Feature::ThreadedNapi {
            let path = format!("sys/class/net/{card}/threaded");
            return self.set_path(path, if on { "1" } else { "0" });
        }
        let names = kernel_names(feature);
        let there = Ethtool::open(&Netns::current()?)?.features(card)?;
        let mut known = there.iter().filter(|f| names.contains(&f.name.as_str())).peekable();
        if known.peek().is_none() {
            return Err(SetError::Unsuitable(format!("{card} has no feature {}", names.join(" or "))));
        }
        let value = if on { "on" } else { "off" };
        for one in known {
            if one.changeable {
                self.set_path(format!("card/{card}/feature/{}", one.name), value)?;
            } else if one.active != on && names.len() == 1 {
                return Err(SetError::Unsuitable(format!("{} of {card} cannot be turned {value}", one.name)));
            }
        }
        Ok(())
    }

    fn steering(&mut self, card: &str, settings: &Interface) -> Result<(), SetError> {
        let link = Route::open(&Netns::current()?)?.link(card)?;
        let queue = |direction: &str, n: u32, file: &str| {
            format!("sys/class/net/{card}/queues/{direction}-{n}/{file}")
        };
        for n in 0..settings.queues.unwrap_or(link.num_rx_queues) {
            if let Some(cpus) = &settings.rps {
                self.set_path(queue("rx", n, "rps_cpus"), cpu_mask(cpus.iter()))?;
            }
            if let Some(flows) = settings.rfs {
                self.set_path(queue("rx", n, "rps_flow_cnt"), flows.to_string())?;
            }
        }
        if let Some(flows) = settings.rfs.filter(|flows| *flows > 0) {
            self.set(Change::sysctl("net.core.rps_sock_flow_entries", &flows.to_string())?.or_more())?;
        }
        if let Some(cpus) = &settings.xps {
            let queues = settings.queues.unwrap_or(link.num_tx_queues).max(1);
            for n in 0..queues {
                let serves =
                    cpus.iter().enumerate().filter(|(nth, _)| *nth as u32 % queues == n).map(|(_, cpu)| cpu);
                self.set_path(queue("tx", n, "xps_cpus"), cpu_mask(serves))?;
            }
        }
        if let Some(cpus) = settings.irq.as_ref().filter(|cpus| !cpus.is_empty()) {
            let interrupts = interrupts_of(Path::new("/"), card);
            if interrupts.is_empty() {
                return Err(SetError::Unsuitable(format!(
                    "{card} has no interrupts of its own to be bound to CPUs"
                )));
            }
            for (interrupt, cpu) in interrupts.iter().zip(cpus.iter().cycle()) {
                self.set_path(format!("proc/irq/{interrupt}/smp_affinity_list"), cpu.to_string())?;
            }
        }
        Ok(())
    }

    /// Addresses, neighbours and routes. What is there already is nobody's to replace.
    fn tables(&mut self) -> Result<(), SetError> {
        let wanted = self.wanted;
        for a in &wanted.addresses {
            self.set_path(format!("address/{}/{}/{}", self.end(a.end), a.address, a.prefix), THERE)?;
        }
        for neighbour in &wanted.settings.neighbours {
            let n = from_plan::neighbour(neighbour).map_err(SetError::Unsuitable)?;
            self.set_path(
                format!("neighbour/{}/{}", self.end(n.end), n.address),
                MacAddr(n.mac).to_string(),
            )?;
        }
        for route in &wanted.settings.routes {
            let r = from_plan::route(route).map_err(SetError::Unsuitable)?;
            let via = r.via.map_or("direct".into(), |via| format!("via {via}"));
            self.set_path(format!("route/{}/{}/{}", self.end(r.end), r.to.0, r.to.1), via)?;
        }
        Ok(())
    }

    fn rules(&mut self) -> Result<(), SetError> {
        let Some(rules) = &self.wanted.settings.rules else { return Ok(()) };
        let change = Change::of("rules/nftables", THERE)?;
        if self.journal.outstanding(std::slice::from_ref(&change))?.is_empty() {
            let why = "this host has rules of nftables already (nft list ruleset), which would be measured as well: take them away first";
            return Err(SetError::Unsuitable(why.into()));
        }
        let set = from_plan::rule_set(rules, &self.families()).map_err(SetError::Unsuitable)?;
        let cancel = self.cancel;
        self.changes.set_by(&change, || {
            from_plan::jobs(&set).iter().try_for_each(|job| {
                let run = job.run(|path| std::process::Command::new(path), Some(cancel));
                run.map(drop).map_err(|e| SetError::Failed(e.to_string()))
            })
        })?;
        self.done.push("loaded a rule set of nftables".into());
        // Rules load connection tracking, and that brings its settings along.
        from_plan::host_changes(&set).into_iter().try_for_each(|change| self.set(change))
    }

    /// Files are written, and commands run, in a folder that goes with the rest.
    fn commands(&mut self) -> Result<(), SetError> {
        let settings = &self.wanted.settings;
        if settings.files.is_empty() && settings.commands.is_empty() {
            return Ok(());
        }
        let folder = PathBuf::from(format!("/run/linerate/scratch-{}", std::process::id()));
        self.changes.undo_by(&format!("rm -rf {}", folder.display()))?;
        let failed = |path: &Path| {
            let path = path.display().to_string();
            move |e: std::io::Error| SetError::Failed(format!("cannot write {path}: {e}"))
        };
        fs::create_dir_all(&folder).map_err(failed(&folder))?;
        for file in &settings.files {
            let path = folder.join(self.named(&file.path));
            let parent = path.parent().unwrap_or(&folder);
            fs::create_dir_all(parent).map_err(failed(parent))?;
            fs::write(&path, self.named(&file.text)).map_err(failed(&path))?;
        }
        for command in &settings.commands {
            let there = |line: String| format!("cd {} && {{ {line}\n}}", folder.display());
            if let Some(undo) = &command.undo {
                let undo = there(self.named(undo));
                self.changes.undo_by(&undo)?;
            }
            let run = self.named(&command.run);
            let job = Job::new("sh", &["-c", &there(run.clone())]).within(COMMAND_WITHIN);
            let ran = job.run(|path| std::process::Command::new(path), Some(self.cancel));
            ran.map_err(|e| SetError::Failed(format!("'{run}': {e}")))?;
            self.done.push(format!("ran '{run}'"));
        }
        Ok(())
    }
}

/// What cannot be done to a real host from here: said, not passed over.
fn unsupported(wanted: &Wanted) -> Vec<String> {
    let settings = &wanted.settings;
    let mut faults = Vec::new();
    if !matches!(settings.dut, Dut::Forwarding | Dut::CardToCard) {
        faults.push(format!("a {} is not set up on a real host: only forwarding is", settings.dut));
    }
    if !settings.boot.is_empty() {
        faults.push("settings that take effect at boot need a reboot".into());
    }
    if settings.route_count.is_some() || settings.neighbour_count.is_some() {
        faults.push("generated routes and neighbours are not set up on a real host".into());
    }
    if settings.rules.as_ref().is_some_and(|rules| rules.tool != Tool::Nftables) {
        faults.push("of the firewalls, nftables alone is set up on a real host with Linux".into());
    }
    for (end, card) in [(&wanted.inside, &settings.inside), (&wanted.outside, &settings.outside)] {
        if card.rx_wait_ns.is_some() || card.rx_wait_frames.is_some() {
            faults.push(format!("{end}: interrupt coalescing (ethtool -C) is not set on a real card"));
        }
        if !card.private_flags.is_empty() {
            faults
                .push(format!("{end}: private flags (ethtool --set-priv-flags) are not set on a real card"));
        }
        let no_names = |f: &&Feature| **f != Feature::ThreadedNapi && kernel_names(**f).is_empty();
        let features = card.features.keys().filter(no_names);
        faults.extend(features.map(|f| format!("{end}: {f:?} is not set on a real card")));
    }
    let outside = |path: &str| path.starts_with('/') || path.split('/').any(|p| matches!(p, "" | "." | ".."));
    let files = settings.files.iter().filter(|file| outside(&file.path));
    faults.extend(files.map(|f| format!("file {}: files are written below a scratch folder only", f.path)));
    faults
}

/// Numbers of a card's interrupts, ascending.
fn interrupts_of(root: &Path, card: &str) -> Vec<u32> {
    let folder = root.join(format!("sys/class/net/{card}/device/msi_irqs"));
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut numbers: Vec<u32> = entries.filter_map(|e| e.file_name().to_str()?.parse().ok()).collect();
    numbers.sort_unstable();
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cards_interrupts_are_those_of_its_device() {
        let root = std::env::temp_dir().join(format!("linerate-irqs-{}", std::process::id()));
        let folder = root.join("sys/class/net/eth7/device/msi_irqs");
        fs::create_dir_all(&folder).unwrap();
        for name in ["120", "33", "x"] {
            fs::write(folder.join(name), "msix\n").unwrap();
        }
        assert_eq!(interrupts_of(&root, "eth7"), [33, 120]);
        assert!(interrupts_of(&root, "eth8").is_empty());
        fs::remove_dir_all(&root).unwrap();
    }
}
