//! How large state tables and their hashes are to be for a number of states.

/// FreeBSD's default for ipfw: `net.inet.ip.fw.dyn_buckets`.
pub const IPFW_DEFAULT_BUCKETS: u64 = 256;
/// The most that ipfw takes before FreeBSD 12. Later ones take more, and let the hash grow up to it.
pub const IPFW_MOST_BUCKETS: u64 = 65_536;
/// FreeBSD 11's default for pf: `net.pf.states_hashsize`.
pub const PF_DEFAULT_HASH: u64 = 32_768;
/// Bytes of pf's hash per slot (2018 paper, illustration 34).
pub const PF_BYTES_PER_SLOT: u64 = 80;
/// Table entries that pf takes without `set limit table-entries` (pf.conf(5)).
pub const PF_DEFAULT_ENTRIES: u64 = 200_000;
/// Addresses that FreeBSD's pf takes in one request without `net.pf.request_maxcount`.
pub const PF_DEFAULT_REQUEST: u64 = 65_535;

/// Buckets of ipfw's hash for `net.inet.ip.fw.dyn_max`: a 64th, rounded up to a power of two, as FreeBSD itself rounds. From the
/// defaults 16,384 and 256 ("Tuning FreeBSD for routing and firewalling", 2018, illustration 33).
///
/// ```
/// # use linerate_plan::rules::sizing::ipfw_buckets;
/// assert_eq!((ipfw_buckets(16_384), ipfw_buckets(5_000_000)), (256, 65_536));
/// ```
pub fn ipfw_buckets(states: u64) -> u64 {
    states.div_ceil(64).next_power_of_two().clamp(IPFW_DEFAULT_BUCKETS, IPFW_MOST_BUCKETS)
}

/// Slots of pf's hash for a limit of states: three times as many, rounded up to a power of two, and not below the default
/// (2018 paper, illustration 34). pf keeps two states for each flow that it forwards.
///
/// ```
/// # use linerate_plan::rules::sizing::pf_hash;
/// assert_eq!((pf_hash(10_000), pf_hash(10_000_000)), (32_768, 33_554_432));
/// ```
pub fn pf_hash(states: u64) -> u64 {
    (3 * states).next_power_of_two().max(PF_DEFAULT_HASH)
}

/// Bytes of memory of pf's hash.
pub fn pf_hash_bytes(states: u64) -> u64 {
    pf_hash(states) * PF_BYTES_PER_SLOT
}

/// Buckets of Linux' connection tracking for `nf_conntrack_max`: twice as many, because each connection is in the hash once for
/// each direction (Linux commit d532bcd0b269, "sanitize table size default settings"). linerate's own choice: the papers size
/// none of Linux.
pub fn conntrack_buckets(states: u64) -> u64 {
    2 * states
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
        assert_eq!((ipfw_buckets(1), ipfw_buckets(16_385)), (256, 512));
        assert_eq!(ipfw_buckets(super::super::MAX_STATES), 65_536);
        assert_eq!(pf_hash(1), 32_768);
        assert_eq!(pf_hash(super::super::MAX_STATES), 1 << 33);
    }
}
