//! Times by the Gregorian calendar, in UTC: Howard Hinnant, "chrono-compatible low-level date algorithms". Years begin in March, so that a
//! leap day is the last of one, and eras have 400 years.

/// Days from 1970-01-01 to a date.
pub fn days(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    365 * year + leap_days + (153 * month + 2) / 5 + day - 1 - 719_468
}

/// `2026-01-31T23:59:59Z` of seconds since 1970, as RFC 3339 has it.
pub fn rfc3339(seconds: i64) -> String {
    let (days, clock) = (
        seconds.div_euclid(86_400) + 719_468,
        seconds.rem_euclid(86_400),
    );
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z",
        clock / 3600,
        clock / 60 % 60,
        clock % 60
    )
}

/// Seconds since 1970 of such a time.
pub fn seconds(rfc3339: &str) -> Option<i64> {
    let clock = rfc3339.strip_suffix('Z')?;
    let parts: Option<Vec<i64>> = clock
        .split(['-', 'T', ':'])
        .map(|part| part.parse().ok())
        .collect();
    let [
        year @ 0..=9999,
        month @ 1..=12,
        day @ 1..=31,
        hour @ 0..=23,
        minute @ 0..=59,
        second @ 0..=60,
    ] = parts?[..]
    else {
        return None;
    };
    Some(days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_they_are_written() {
        for time in [0, 1, 951_782_399, 951_782_400, 1_767_225_599, 4_102_444_800] {
            assert_eq!(seconds(&rfc3339(time)), Some(time));
        }
        for other in [
            "",
            "Z",
            "2026-01-01",
            "2026-13-01T00:00:00Z",
            "2026-01-01T00:00:00+01:00",
            "x-1-1T0:0:0Z",
        ] {
            assert_eq!(seconds(other), None, "{other}");
        }
    }
}
