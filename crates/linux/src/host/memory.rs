//! Memory: how much the machine has, and how much this process has held at once. 0 where the kernel does not say.

use super::read_start;
use std::path::Path;

/// The most memory that this process has held at once, in bytes.
pub fn peak_rss_bytes() -> u64 {
    bytes(Path::new("/"), "proc/self/status", "VmHWM:")
}

/// The memory of the machine below `root`, in bytes.
pub(crate) fn total_bytes(root: &Path) -> u64 {
    bytes(root, "proc/meminfo", "MemTotal:")
}

/// The figure of a line `KEY: 2048 kB`, which stands in the first kilobytes of the file.
fn bytes(root: &Path, path: &str, key: &str) -> u64 {
    read_start(root, path, 8192).map_or(0, |text| parse(&text, key))
}

fn parse(text: &str, key: &str) -> u64 {
    let figure = text.lines().find_map(|l| l.strip_prefix(key));
    let kib = figure.and_then(|v| v.trim().trim_end_matches("kB").trim().parse::<u64>().ok());
    kib.unwrap_or(0).saturating_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_high_water_mark() {
        let parse = |text| parse(text, "VmHWM:");
        assert_eq!(parse("Name:\tx\nVmHWM:\t    2048 kB\nVmRSS:\t 10 kB\n"), 2048 * 1024);
        assert_eq!((parse(""), parse("VmHWM:\tlots kB")), (0, 0));
        assert!(peak_rss_bytes() > 100_000);
    }
}
