//! How much memory this process has held at once.

use std::path::Path;

/// The most memory that this process has held at once, in bytes; 0 where the kernel does not say.
pub fn peak_rss_bytes() -> u64 {
    // VmHWM stands in the first kilobytes; what follows is of no interest.
    super::read_start(Path::new("/"), "proc/self/status", 8192).map_or(0, |text| parse(&text))
}

fn parse(status: &str) -> u64 {
    let peak = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    let kib = peak.and_then(|v| v.trim().trim_end_matches("kB").trim().parse::<u64>().ok());
    kib.unwrap_or(0).saturating_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_high_water_mark() {
        assert_eq!(parse("Name:\tx\nVmHWM:\t    2048 kB\nVmRSS:\t 10 kB\n"), 2048 * 1024);
        assert_eq!((parse(""), parse("VmHWM:\tlots kB")), (0, 0));
        assert!(peak_rss_bytes() > 100_000);
    }
}
