//! Times by the Gregorian calendar, in UTC: Howard Hinnant, "chrono-compatible low-level date algorithms". Years begin in March, so that a
//! leap day is the last of one, and eras have 400 years.

/// Days from 1970-01-01 to a date.
pub fn days(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    365 * year + leap_days + (153 * month + 2) / 5 + day - 1 - 719_468
}

/// `2026-01-31T23:59:59Z` of seconds since 1970, as RFC 3339 has it.
pub fn rfc3339(seconds: i64) -> String {
    let (days, clock) = (seconds.div_euclid(86_400) + 719_468, seconds.rem_euclid(86_400));
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", clock / 3600, clock / 60 % 60, clock % 60)
}
