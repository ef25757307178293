//! How large state tables and their hashes are to be: pf, ipfw, and Linux' connection tracking.

use crate::Unit::{Bytes, Count, Share, Time};
use crate::{Calculation, PAPER_2018, Result, within};

/// FreeBSD's default for ipfw: `net.inet.ip.fw.dyn_buckets`.
pub const IPFW_DEFAULT_BUCKETS: u64 = 256;
/// The most that ipfw takes before FreeBSD 12. Later ones take more, and let the hash grow up to it.
pub const IPFW_MOST_BUCKETS: u64 = 65_536;
/// States for each bucket of ipfw in FreeBSD's defaults, 16,384 and 256.
const IPFW_STATES_PER_BUCKET: u64 = 64;
/// FreeBSD 11's default for pf: `net.pf.states_hashsize`.
pub const PF_DEFAULT_HASH: u64 = 32_768;
/// Slots of pf's hash for each state, before rounding up (2018 paper, illustration 34).
const PF_SLOTS_PER_STATE: u64 = 3;
/// Bytes of pf's hash per slot (2018 paper, illustration 34).
pub const PF_BYTES_PER_SLOT: u64 = 80;
/// Bytes of a bucket of Linux' connection tracking: the head of a list on a 64-bit machine.
const CONNTRACK_BYTES_PER_BUCKET: u64 = 8;
/// Bytes of an entry: /proc/slabinfo of Linux 6.18 on x86-64. Kernels with more options have up to 320.
const CONNTRACK_BYTES_PER_ENTRY: u64 = 256;

/// Buckets of ipfw's hash for `net.inet.ip.fw.dyn_max`: a 64th, rounded up to a power of two, as FreeBSD itself rounds. From the
/// defaults 16,384 and 256 ("Tuning FreeBSD for routing and firewalling", 2018, illustration 33).
///
/// ```
/// # use linerate_calc::states::ipfw_buckets;
/// assert_eq!((ipfw_buckets(16_384), ipfw_buckets(5_000_000)), (256, 65_536));
/// ```
pub fn ipfw_buckets(states: u64) -> u64 {
    power_of_two(states.div_ceil(IPFW_STATES_PER_BUCKET))
        .clamp(IPFW_DEFAULT_BUCKETS, IPFW_MOST_BUCKETS)
}

/// Slots of pf's hash for a limit of states: three times as many, rounded up to a power of two, and not below the default
/// (2018 paper, illustration 34). pf keeps two states for each connection that it forwards.
///
/// ```
/// # use linerate_calc::states::pf_hash;
/// assert_eq!((pf_hash(10_000), pf_hash(10_000_000)), (32_768, 33_554_432));
/// ```
pub fn pf_hash(states: u64) -> u64 {
    power_of_two(states.saturating_mul(PF_SLOTS_PER_STATE)).max(PF_DEFAULT_HASH)
}

/// Bytes of memory of pf's hash.
pub fn pf_hash_bytes(states: u64) -> u64 {
    pf_hash(states).saturating_mul(PF_BYTES_PER_SLOT)
}

/// Buckets of Linux' connection tracking for `nf_conntrack_max`: twice as many, because each connection is in the hash once for
/// each direction (Linux commit d532bcd0b269, "sanitize table size default settings"). linerate's own choice: the papers size
/// none of Linux.
pub fn conntrack_buckets(states: u64) -> u64 {
    states.saturating_mul(2)
}

/// `nf_conntrack_max` and `nf_conntrack_buckets` that Linux 5.15 and later chooses for so many bytes of memory
/// (nf_conntrack_init_start in net/netfilter/nf_conntrack_core.c): one number for both.
///
/// ```
/// # use linerate_calc::states::conntrack_default;
/// assert_eq!([2u64 << 20, 512 << 20, 2 << 30, 8 << 30].map(conntrack_default), [1024, 4096, 65_536, 262_144]);
/// ```
pub fn conntrack_default(memory: u64) -> u64 {
    match memory {
        m if m > 4 << 30 => 262_144,
        m if m > 1 << 30 => 65_536,
        m => (m / 16_384 / CONNTRACK_BYTES_PER_BUCKET).max(1024),
    }
}

fn power_of_two(n: u64) -> u64 {
    n.checked_next_power_of_two().unwrap_or(1 << 63)
}

/// The question about a state table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Asked {
    /// The hash for a limit of states.
    States(f64),
    /// The limit and the hash for a number of connections: all packets between two endpoints, in both directions.
    Connections(f64),
    /// The states that suit a hash of so many slots.
    Hash(f64),
    /// The limit and the hash for connections that are opened and closed at this rate, each second, and stay so many seconds.
    Rate {
        /// Connections a second.
        each_second: f64,
        /// How long each stays, in seconds.
        stays_s: f64,
    },
}

/// How long a firewall remembers a connection of TCP that has been closed, in seconds: Linux' TIME_WAIT
/// (`nf_conntrack_tcp_timeout_time_wait`), pf's `tcp.closed`, and ipfw's `dyn_fin_lifetime`.
pub const STAYS_S: [f64; 3] = [120.0, 90.0, 1.0];
/// One that has been reset, in Linux (`nf_conntrack_tcp_timeout_close`).
const RESET_STAYS_S: f64 = 10.0;
/// Ports of an address that Linux translates to, for each server and port: 1024 to 65535 (`nf_nat_l4proto_unique_tuple` in
/// net/netfilter/nf_nat_core.c).
const NAT_PORTS: u64 = 64_512;

impl Asked {
    /// The limit of states, where a firewall keeps so many for a connection, and so many suit a slot.
    fn states(self, per_connection: u64, for_hash: impl Fn(u64) -> u64) -> Result<u64> {
        let count = |what, n: f64| Ok(within(what, n, 1.0, 1e12, Count)?.floor() as u64);
        match self {
            Asked::States(n) => count("a number of states", n),
            Asked::Connections(n) => Ok(count("a number of connections", n)? * per_connection),
            Asked::Hash(n) => Ok(for_hash(count("a hash size", n)?).max(1)),
            Asked::Rate {
                each_second,
                stays_s,
            } => {
                let stays_s = within("a time", stays_s * 1e9, 1.0, 1e18, Time)? / 1e9;
                Ok(
                    count("a number of connections", (each_second * stays_s).ceil())?
                        * per_connection,
                )
            }
        }
    }

    fn given(self, page: Calculation) -> Calculation {
        let (name, n) = match self {
            Asked::States(n) => ("entries", n),
            Asked::Connections(n) => ("connections", n),
            Asked::Hash(n) => ("hash size", n),
            Asked::Rate {
                each_second,
                stays_s,
            } => {
                let page = page.given("new connections a second", each_second, Count);
                return page.given("an entry stays", stays_s * 1e9, Time);
            }
        };
        page.given(name, n.floor(), Count)
    }

    /// The size of the hash: the one that was asked about, or else the one that suits.
    fn slots(self, suits: u64) -> u64 {
        if let Asked::Hash(n) = self {
            n as u64
        } else {
            suits
        }
    }
}

/// Share of the host's memory that a table needs, in bytes, and a warning from a quarter on.
fn in_memory(page: Calculation, needed: u64, memory: Option<f64>) -> Result {
    let Some(memory) = memory else {
        return Ok(page);
    };
    let memory = within("a memory size", memory, 1048576.0, 1e18, Bytes)?;
    let share = needed as f64 / memory;
    let page = page
        .given("memory", memory, Bytes)
        .result("share of the memory", share, Share);
    Ok(if share > 0.25 {
        page.note(format!(
            "That is {} of the memory. A kernel that cannot find so much keeps its old size: check it afterwards.",
            Share.show(share)
        ))
    } else {
        page
    })
}

/// pf on FreeBSD: limit of states, size of the hash, and memory of the hash.
///
/// # Errors
/// No states, or absurdly many.
pub fn pf_states(asked: Asked, memory: Option<f64>) -> Result {
    let states = asked.states(2, |slots| slots / PF_SLOTS_PER_STATE)?;
    let hash = asked.slots(pf_hash(states));
    let bytes = hash.saturating_mul(PF_BYTES_PER_SLOT);
    let page = asked.given(Calculation::new("State table of pf"));
    let page = page
        .answer(match asked {
            Asked::Hash(_) => format!("A hash of {} suits up to {} states.", count(hash), count(states)),
            _ => format!(
                "A limit of {} states needs a hash of {} slots, which takes {} of memory.",
                count(states),
                count(hash),
                Bytes.show(bytes as f64)
            ),
        })
        .result("states", states as f64, Count)
        .result("connections", (states / 2) as f64, Count)
        .result("hash slots", hash as f64, Count)
        .result("memory of the hash", bytes as f64, Bytes)
        .result_text("/etc/pf.conf", format!("set limit states {states}"))
        .result_text("/boot/loader.conf", format!("net.pf.states_hashsize=\"{}\"", power_of_two(hash)))
        .formula(&[
            "states = 2 x connections (pf keeps one where packets come in, and one where they leave)",
            "hash slots = 3 x states, rounded up to a power of two, at least 32,768",
            "memory of the hash = 80 B x slots",
        ])
        .source(format!("{PAPER_2018}, section IV.D, illustration 34"))
        .note("The states themselves take memory beside the hash: `vmstat -z | grep pf` prints it. The hash counts from the next boot on.")
        .note("OpenBSD keeps states in a tree: there, `set limit states` is all.");
    let page = if hash.is_power_of_two() {
        page
    } else {
        page.note(format!(
            "pf needs a power of two: instead of {} it takes {}.",
            count(hash),
            count(power_of_two(hash))
        ))
    };
    in_memory(page, bytes, memory)
}

/// ipfw on FreeBSD: `net.inet.ip.fw.dyn_max` and `net.inet.ip.fw.dyn_buckets`.
///
/// # Errors
/// No states, or absurdly many.
pub fn ipfw_states(asked: Asked) -> Result {
    let states = asked.states(1, |buckets| buckets.saturating_mul(IPFW_STATES_PER_BUCKET))?;
    let buckets = asked.slots(ipfw_buckets(states));
    let per_bucket = states as f64 / buckets as f64;
    let page = asked
        .given(Calculation::new("State table of ipfw"))
        .answer(format!("{} states go with {} buckets.", count(states), count(buckets)))
        .result("states", states as f64, Count)
        .result("buckets", buckets as f64, Count)
        .result("states in a bucket", per_bucket, Count)
        .result_text("/etc/sysctl.conf", format!("net.inet.ip.fw.dyn_max={states}"))
        .result_text("/etc/sysctl.conf", format!("net.inet.ip.fw.dyn_buckets={}", power_of_two(buckets)))
        .formula(&["buckets = states / 64, rounded up to a power of two, from 256 to 65,536"])
        .source(format!("{PAPER_2018}, section IV.D, illustration 33")).source("ipfw(8)")
        .note("FreeBSD 12 and later take more than 65,536 buckets, and let the hash grow up to dyn_buckets by themselves.");
    Ok(if per_bucket > IPFW_STATES_PER_BUCKET as f64 {
        page.note(format!(
            "Before FreeBSD 12, each bucket would have {} states: the rate falls with their number (illustration 35 of the paper).",
            Count.show(per_bucket.round())
        ))
    } else {
        page
    })
}

/// Linux' connection tracking: `nf_conntrack_max`, `nf_conntrack_buckets` and their memory.
///
/// # Errors
/// No states, or absurdly many.
pub fn conntrack(asked: Asked, memory: Option<f64>) -> Result {
    let states = asked.states(1, |buckets| buckets / 2)?;
    let buckets = asked.slots(conntrack_buckets(states));
    let hash = buckets.saturating_mul(CONNTRACK_BYTES_PER_BUCKET);
    let entries = states.saturating_mul(CONNTRACK_BYTES_PER_ENTRY);
    let page = asked
        .given(Calculation::new("Connection tracking of Linux"))
        .answer(format!(
            "{} connections go with {} buckets; both take {} of memory when the table is full.",
            count(states),
            count(buckets),
            Bytes.show((hash + entries) as f64)
        ))
        .result("connections", states as f64, Count)
        .result("buckets", buckets as f64, Count)
        .result("memory of the buckets", hash as f64, Bytes)
        .result("memory of the entries", entries as f64, Bytes)
        .result("entries in a bucket", 2.0 * states as f64 / buckets as f64, Count)
        .result("new ones a second, closed by FIN", states as f64 / STAYS_S[0], Count)
        .result("new ones a second, ended by RST", states as f64 / RESET_STAYS_S, Count)
        .result("NAT addresses for one server", states.div_ceil(NAT_PORTS) as f64, Count)
        .result_text("/etc/sysctl.conf", format!("net.netfilter.nf_conntrack_max={states}"))
        .result_text("/etc/sysctl.conf", format!("net.netfilter.nf_conntrack_buckets={buckets}"))
        .formula(&[
            "buckets = 2 x connections (each is in the table once for each direction)",
            "memory = 8 B x buckets + 256 B x connections",
            "connections = new ones a second x time that an entry stays: 120 s after FIN, 10 s after RST",
            "NAT addresses = connections / 64512 ports of an address, for each server and port",
        ])
        .source("Linux, Documentation/networking/nf_conntrack-sysctl.rst; commit d532bcd0b269").source("size of an entry: /proc/slabinfo of Linux 6.18, x86-64")
        .source("times: nf_conntrack_tcp_timeout_time_wait and _close; ports: net/netfilter/nf_nat_core.c")
        .note("An entry takes up to 320 B in kernels with more options: `grep nf_conntrack /proc/slabinfo` prints its size.")
        .note("The sysctls exist once nf_conntrack is loaded; nf_conntrack_buckets can be set in the first network namespace only.");
    let page = match memory {
        Some(m) if m.is_finite() && m > 0.0 => page.result(
            "default of the kernel for both",
            conntrack_default(m as u64) as f64,
            Count,
        ),
        _ => page,
    };
    in_memory(page, hash + entries, memory)
}

fn count(n: u64) -> String {
    Count.show(n as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The figures of the papers and of the archive's configuration sets.
    #[test]
    fn published_sizes() {
        assert_eq!(ipfw_buckets(4_000_000), 65_536); // archive: ipfw-sessions, sysctl.conf
        assert_eq!(pf_hash(4_000_000), 16_777_216); // archive: pf-states_hashsize, "4Mstates-16MBhash"
        assert_eq!(pf_hash_bytes(10_000), 2_621_440); // illustration 34: 2.5 MB
        assert_eq!(pf_hash_bytes(10_000_000), 2_684_354_560); // 2.5 GB
    }

    #[test]
    fn extremes() {
        let most = i32::MAX as u64;
        assert_eq!(
            (ipfw_buckets(1), ipfw_buckets(16_385), ipfw_buckets(most)),
            (256, 512, 65_536)
        );
        assert_eq!((pf_hash(1), pf_hash(most)), (32_768, 1 << 33));
        assert_eq!(
            (ipfw_buckets(u64::MAX), pf_hash(u64::MAX)),
            (65_536, 1 << 63)
        );
        assert_eq!(
            (pf_hash_bytes(u64::MAX), conntrack_buckets(u64::MAX)),
            (u64::MAX, u64::MAX)
        );
    }

    #[test]
    fn a_hash_leads_back_to_its_states() {
        let number = |page: Calculation, name| page.number(name).unwrap();
        assert_eq!(
            number(
                pf_states(Asked::Hash(33_554_432.0), None).unwrap(),
                "states"
            ),
            11_184_810.0
        );
        assert_eq!(
            number(ipfw_states(Asked::Hash(65_536.0)).unwrap(), "states"),
            4_194_304.0
        );
        assert_eq!(
            number(
                conntrack(Asked::Hash(262_144.0), None).unwrap(),
                "connections"
            ),
            131_072.0
        );
        // This hash of 1 slot has no state of its own; its calculation still has no zero to divide by.
        assert_eq!(
            number(
                conntrack(Asked::Hash(1.0), None).unwrap(),
                "entries in a bucket"
            ),
            2.0
        );
    }

    #[test]
    fn a_rate_fills_a_table() {
        let rate = |each_second| Asked::Rate {
            each_second,
            stays_s: STAYS_S[0],
        };
        let page = conntrack(rate(2184.0), None).unwrap();
        assert_eq!(page.number("connections"), Some(262_080.0));
        let page = conntrack(Asked::States(262_144.0), None).unwrap();
        assert!((page.number("new ones a second, closed by FIN").unwrap() - 2184.53).abs() < 0.01);
        assert_eq!(page.number("NAT addresses for one server"), Some(5.0));
        assert_eq!(
            pf_states(
                Asked::Rate {
                    each_second: 100.0,
                    stays_s: 90.0
                },
                None
            )
            .unwrap()
            .number("states"),
            Some(18_000.0)
        );
        assert!(
            conntrack(rate(f64::INFINITY), None).is_err() && conntrack(rate(0.0), None).is_err()
        );
        assert!(
            conntrack(
                Asked::Rate {
                    each_second: 1.0,
                    stays_s: 0.0
                },
                None
            )
            .is_err()
        );
    }

    #[test]
    fn memory_is_compared_with_the_hosts() {
        let page = pf_states(Asked::States(1e7), Some(8.0 * 1073741824.0)).unwrap();
        assert_eq!(page.number("share of the memory"), Some(0.3125));
        assert!(page.notes.iter().any(|note| note.contains("31.25 %")));
        let page = conntrack(Asked::Connections(1e6), Some(4e9)).unwrap();
        assert_eq!(
            page.number("default of the kernel for both"),
            Some(65_536.0)
        );
    }
}
