//! Times as they stand in records: UTC by the Gregorian calendar.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Year, month, day, hour, minute, second.
fn utc(time: SystemTime) -> (u64, u64, u64, u64, u64, u64) {
    // A clock before 1970 has not been set; then the epoch is as good as any time.
    let seconds = time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs();
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Howard Hinnant, "chrono-compatible low-level date algorithms": years begin in March, eras have 400 years.
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (year, month, day, rest / 3600, rest / 60 % 60, rest % 60)
}

/// `20260131T235959Z`, which sorts by time and is a file name everywhere.
pub fn stamp_utc(time: SystemTime) -> String {
    let (year, month, day, hour, minute, second) = utc(time);
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
}

/// `2026-01-31T23:59:59Z`, as RFC 3339 has it.
pub fn rfc3339_utc(time: SystemTime) -> String {
    let (year, month, day, hour, minute, second) = utc(time);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
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
            let (year, month, mday, hour, minute, second) = utc(UNIX_EPOCH + Duration::from_secs(seconds));
            let ours = [year - 1900, month - 1, mday, hour, minute, second].map(|v| v as i32);
            assert_eq!(ours, [tm.tm_year, tm.tm_mon, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec]);
        }
    }
}
