//! Activity of this machine: its counters, read again and again, by netlink, ethtool and the files of /proc.

use crate::error::Error;
use crate::net::Netns;
use crate::net::ethtool::Ethtool;
use crate::net::netlink::{LinkInfo, Route};
use crate::ports::monotonic_ns;
use crate::process::Job;
use linerate_hosts::watch::linux::files;
use linerate_hosts::watch::queues::Layout;
use linerate_measure::record::RuleCount;
use linerate_measure::watch::{Interface, Sample, Side};
use linerate_plan::rules::Firewall;
use linerate_plan::rules::own::counts;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Rules are read at most this often, and so seldom that reading them takes at most a 50th of the time.
const RULES_EVERY: Duration = Duration::from_secs(1);
const RULES_SHARE: u32 = 50;
/// Where no rule counts, they are read this often: some may be loaded.
const NO_RULES_EVERY: Duration = Duration::from_secs(10);
/// Bytes of a list of rules that are read.
const MOST_LISTED: usize = 16 << 20;

/// Reads the counters of a network namespace.
#[derive(Debug)]
pub struct Reader {
    namespace: Netns,
    /// The interfaces to read; all if empty.
    wanted: BTreeSet<String>,
    route: Route,
    ethtool: Ethtool,
    cards: BTreeMap<String, Card>,
    rules_due_ns: u64,
    /// Why rules cannot be read.
    no_rules: Option<String>,
}

/// Facts about an interface that are remembered.
#[derive(Debug, Default)]
struct Card {
    index: u32,
    carrier: bool,
    speed: Option<f64>,
    /// The driver's counters: `None` if it has none.
    counters: Option<(Vec<String>, Layout)>,
}

/// A file of /proc, which does not tell its length: with room from the start, it takes a few calls instead of many.
fn read(path: &str) -> io::Result<String> {
    let mut text = String::with_capacity(32 * 1024);
    File::open(path)?.read_to_string(&mut text).map(|_| text)
}

impl Reader {
    /// Moves the calling thread into the namespace for good, and opens what is read there. `wanted`: interfaces; none for all.
    ///
    /// # Errors
    /// No right to enter it, or there is no such interface.
    pub fn open(namespace: Netns, wanted: &[String]) -> Result<Reader, Error> {
        namespace.current_thread_enter()?;
        let (route, ethtool) = (Route::open(&namespace)?, Ethtool::open(&namespace)?);
        wanted
            .iter()
            .try_for_each(|name| route.link(name).map(drop))?;
        let wanted = wanted.iter().cloned().collect();
        Ok(Reader {
            namespace,
            wanted,
            route,
            ethtool,
            cards: BTreeMap::new(),
            rules_due_ns: 0,
            no_rules: None,
        })
    }

    /// The counters now.
    ///
    /// # Errors
    /// The kernel does not list the interfaces.
    pub fn sample(&mut self) -> Result<Sample, Error> {
        let unix_ms = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_millis() as u64);
        let mut sample = Sample {
            unix_ms,
            at_ns: monotonic_ns(),
            ..Sample::default()
        };
        let links = self.route.links()?;
        let masters: BTreeSet<u32> = links.iter().filter_map(|link| link.master).collect();
        let mut uncounted = Vec::new();
        for link in &links {
            if !self.wanted.is_empty() && !self.wanted.contains(&link.name) {
                continue;
            }
            let interface = self.interface(link, masters.contains(&link.index));
            if interface.queues.is_empty() && !interface.stacked && link.up {
                uncounted.push(link.name.as_str());
            }
            sample.interfaces.insert(link.name.clone(), interface);
        }
        self.cards
            .retain(|name, _| sample.interfaces.contains_key(name));
        if !uncounted.is_empty() {
            sample.missing.push(format!(
                "queues of {}: the driver does not count them",
                uncounted.join(", ")
            ));
        }
        files(&mut sample, &|path| {
            // Counters of a network namespace are the thread's.
            let below = if path.starts_with("net/") {
                "/proc/thread-self"
            } else {
                "/proc"
            };
            read(&format!("{below}/{path}")).unwrap_or_default()
        });
        self.rules(&mut sample);
        Ok(sample)
    }

    fn interface(&mut self, link: &LinkInfo, is_master: bool) -> Interface {
        let s = &link.stats;
        let overruns = s.rx_missed.max(s.rx_fifo);
        let rx = Side {
            packets: s.rx_packets,
            bytes: s.rx_bytes,
            drops: s.rx_dropped.saturating_add(overruns),
            errors: s.rx_errors,
            overruns,
        };
        let tx = Side {
            packets: s.tx_packets,
            bytes: s.tx_bytes,
            drops: s.tx_dropped,
            errors: s.tx_errors,
            overruns: 0,
        };
        // A veth names its peer as what it stands on.
        let is_veth = link.kind.as_deref() == Some("veth");
        let mut interface = Interface {
            index: link.index,
            carrier: Some(link.carrier),
            stacked: link.loopback || is_master || (link.lower.is_some() && !is_veth),
            peer_here: link.lower.is_some() && is_veth,
            rx,
            tx,
            collisions: s.collisions,
            ..Interface::default()
        };
        if link.loopback {
            return interface;
        }
        let card = self.cards.entry(link.name.clone()).or_default();
        if (card.index, card.carrier) != (link.index, link.carrier) {
            let counters = Some((Vec::new(), Layout::default()));
            // The speed of a virtual link is nominal: it carries what the CPUs do.
            let speed = link
                .kind
                .is_none()
                .then(|| self.ethtool.speed(&link.name))
                .flatten();
            *card = Card {
                index: link.index,
                carrier: link.carrier,
                speed,
                counters,
            };
        }
        interface.speed = card.speed;
        if let Some((names, layout)) = &mut card.counters {
            let mut values = Vec::new();
            interface.driver_at_ns = monotonic_ns();
            match self.ethtool.read_stats(&link.name, names, &mut values) {
                Ok(changed) => {
                    if changed {
                        *layout = Layout::of(names);
                    }
                    layout.fill(names, &values, &mut interface);
                }
                // A driver without counters; or the interface is gone, and is made anew with another number.
                Err(_) => card.counters = None,
            }
        }
        interface
    }

    /// The rules that count, if they are due.
    fn rules(&mut self, sample: &mut Sample) {
        if sample.at_ns >= self.rules_due_ns {
            let began = monotonic_ns();
            let listed = self.listed();
            let took = Duration::from_nanos(monotonic_ns() - began);
            let pause = match &listed {
                Ok(rules) if !rules.is_empty() => RULES_EVERY.max(took * RULES_SHARE),
                _ => NO_RULES_EVERY.max(took * RULES_SHARE),
            };
            self.rules_due_ns = sample.at_ns + pause.as_nanos() as u64;
            self.no_rules = listed.as_ref().err().cloned();
            sample.rules = listed.ok();
        }
        sample.missing.extend(self.no_rules.clone());
    }

    fn listed(&self) -> Result<Vec<RuleCount>, String> {
        let list = |job: Job, firewall| -> Result<Vec<RuleCount>, String> {
            let mut listing = String::new();
            let add = |line: &str| {
                if listing.len() < MOST_LISTED {
                    listing.push_str(line);
                    listing.push('\n');
                }
            };
            job.run_lines(|path| self.namespace.command(path), None, add)
                .map_err(|error| format!("rules: {error}"))?;
            Ok(counts(firewall, &listing))
        };
        let mut rules = list(
            Job::new("nft", &["-t", "list", "ruleset"]),
            Firewall::Nftables,
        )?;
        let legacy =
            fs::read_to_string("/proc/thread-self/net/ip_tables_names").unwrap_or_default();
        if !legacy.trim().is_empty() {
            rules.extend(list(
                Job::new("iptables-legacy-save", &["-c"]),
                Firewall::Iptables,
            )?);
        }
        Ok(rules)
    }
}
