//! The kernel's functions and reasons by name.

use crate::error::{Doing, Error};
use std::collections::{BTreeMap, HashMap};
use std::fs;

/// The symbol of an address without one.
pub const UNKNOWN: &str = "[unknown]";

/// The kernel's functions by their addresses.
pub struct Symbols(BTreeMap<u64, String>);

impl Symbols {
    /// Reads /proc/kallsyms.
    ///
    /// # Errors
    /// The file cannot be read, or the kernel hides the addresses.
    pub fn load() -> Result<Symbols, Error> {
        let symbols = aya::util::kernel_symbols().doing("read /proc/kallsyms")?;
        match symbols.keys().any(|address| *address > 0) {
            true => Ok(Symbols(symbols)),
            false => Err(Error::Refused(
                "the kernel hides the addresses of its functions: run linerate as root, or set kernel.kptr_restrict to 0 or 1".into(),
            )),
        }
    }

    /// The function of an address, without its module.
    pub fn name(&self, address: u64) -> &str {
        let found = self.0.range(..=address).next_back();
        found.map_or(UNKNOWN, |(_, name)| {
            name.split('\t').next().unwrap_or(UNKNOWN)
        })
    }

    /// The functions of a stack that begins with the innermost address, from the outermost on.
    pub fn stack(&self, addresses: &[u64]) -> Vec<&str> {
        let addresses = addresses.iter().take_while(|address| **address != 0);
        let mut names: Vec<&str> = addresses.map(|address| self.name(*address)).collect();
        names.reverse();
        names
    }
}

/// The file with the types of this kernel (BTF).
pub const TYPES: &str = "/sys/kernel/btf/vmlinux";

/// The values of an enumeration of this kernel, by number; empty without such a one.
///
/// # Errors
/// The kernel has no type information.
pub fn enumeration(name: &str) -> Result<HashMap<u32, String>, Error> {
    let bytes = fs::read(TYPES).doing(format_args!("read {TYPES}"))?;
    Ok(values(&bytes, name).unwrap_or_default())
}

/// Finds an enumeration in BTF (Documentation/bpf/btf.rst).
fn values(bytes: &[u8], wanted: &str) -> Option<HashMap<u32, String>> {
    const ENUM: u32 = 6;
    let word = |at: usize| Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    // The header: its length, then offset and length of types and of names, from its end.
    let [length, types, types_len, names] = [4, 8, 12, 16].map(word);
    let (mut at, names) = ((length? + types?) as usize, (length? + names?) as usize);
    let end = at + types_len? as usize;
    let text = |offset: u32| {
        let rest = bytes.get(names + offset as usize..)?;
        std::str::from_utf8(rest.split(|byte| *byte == 0).next()?).ok()
    };
    while at < end {
        let (name, info) = (word(at)?, word(at + 4)?);
        let (kind, members) = (info >> 24 & 31, (info & 0xffff) as usize);
        at += 12;
        if kind == ENUM && text(name) == Some(wanted) {
            let value = |n| Some((word(at + 8 * n + 4)?, text(word(at + 8 * n)?)?.to_string()));
            return (0..members).map(value).collect();
        }
        at += match kind {
            // Numbers, variables and declaration tags have one more word.
            1 | 14 | 17 => 4,
            // Arrays have three.
            3 => 12,
            // Members of structures, unions and sections, and 64-bit values.
            4 | 5 | 15 | 19 => 12 * members,
            ENUM | 13 => 8 * members,
            _ => 0,
        };
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_belong_to_the_function_before_them() {
        let symbols = BTreeMap::from([
            (100, "ip_rcv".to_string()),
            (200, "nf_hook_slow\t[nf_tables]".into()),
        ]);
        let symbols = Symbols(symbols);
        assert_eq!(
            [99, 100, 199, 200, 9999].map(|a| symbols.name(a)),
            [UNKNOWN, "ip_rcv", "ip_rcv", "nf_hook_slow", "nf_hook_slow"]
        );
        assert_eq!(
            symbols.stack(&[200, 100, 0, 100]),
            ["ip_rcv", "nf_hook_slow"]
        );
    }

    #[test]
    fn the_reasons_of_this_kernel() {
        let Ok(bytes) = fs::read(TYPES) else { return };
        let reasons = values(&bytes, "skb_drop_reason").unwrap();
        // The first one has had its number since there are reasons.
        assert!(
            reasons[&0] == "SKB_NOT_DROPPED_YET" && reasons.len() > 60,
            "{reasons:?}"
        );
        assert_eq!(values(&bytes, "no_such_enumeration"), None);
        for cut in [0, 3, 11, 24, 1000, bytes.len() / 2] {
            assert_eq!(values(&bytes[..cut], "no_such_enumeration"), None);
        }
    }
}
