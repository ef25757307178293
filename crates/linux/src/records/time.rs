//! Times as they stand in records.

use linerate_measure::calendar;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// `20260131T235959Z`, which sorts by time and is a file name everywhere.
pub fn stamp_utc(time: SystemTime) -> String {
    rfc3339_utc(time).replace(['-', ':'], "")
}

/// `2026-01-31T23:59:59Z`, as RFC 3339 has it.
pub fn rfc3339_utc(time: SystemTime) -> String {
    // A clock before 1970 has not been set; then the epoch is as good as any time.
    let seconds = time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs();
    calendar::rfc3339(seconds as i64)
}

/// The time now, as RFC 3339 has it.
pub fn utc_now() -> String {
    rfc3339_utc(SystemTime::now())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_times() {
        // As `date -u -d @N` prints them.
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_767_225_599, "2025-12-31T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(rfc3339_utc(UNIX_EPOCH + Duration::from_secs(seconds)), text);
        }
        assert_eq!(stamp_utc(UNIX_EPOCH + Duration::from_secs(1_767_225_599)), "20251231T235959Z");
        assert_eq!(stamp_utc(UNIX_EPOCH - Duration::from_secs(5)), "19700101T000000Z");
    }

    #[test]
    fn agrees_with_the_c_library() {
        for day in (0..80_000).step_by(17) {
            let seconds = day * 86_400 + 3_723;
            // SAFETY: zero is a value of all members of a tm, and both pointers are to values that live through the call.
            let tm = unsafe {
                let mut tm: libc::tm = std::mem::zeroed();
                assert!(!libc::gmtime_r(&(seconds as libc::time_t), &mut tm).is_null());
                tm
            };
            let theirs = format!(
                "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z",
                tm.tm_year + 1900,
                tm.tm_mon + 1,
                tm.tm_mday,
                tm.tm_hour,
                tm.tm_min,
                tm.tm_sec
            );
            assert_eq!(rfc3339_utc(UNIX_EPOCH + Duration::from_secs(seconds)), theirs);
        }
    }
}
