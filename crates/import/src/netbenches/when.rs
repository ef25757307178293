//! Dates as `date` and `uname` wrote them in the archive, in UTC.

use linerate_measure::calendar::{days, rfc3339};

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// `Fri Sep  8 00:32:53 CEST 2017` or `February 19, 2016 at 11:16:45 PM CET` as `2017-09-07T22:32:53Z`; `None` for other
/// forms, and zones that are not known.
pub fn utc(text: &str) -> Option<String> {
    let words: Vec<&str> = text.split([' ', ',']).filter(|w| !w.is_empty()).collect();
    let (month, day, year, clock, half, zone) = match words[..] {
        [_, month, day, clock, zone, year] => (month, day, year, clock, "", zone),
        [month, day, year, "at", clock, half, zone] => (month, day, year, clock, half, zone),
        _ => return None,
    };
    let month = MONTHS.iter().position(|m| month.get(..3) == Some(m))? as i64 + 1;
    let day: i64 = day.parse().ok().filter(|d| (1..=31).contains(d))?;
    let year: i64 = year.parse().ok().filter(|y| (1970..=9999).contains(y))?;
    let seconds = of_day(clock, half)? - 3600 * hours_east(zone)?;
    Some(rfc3339(days(year, month, day) * 86_400 + seconds))
}

/// Seconds since midnight of `00:32:53` or, with `AM` or `PM`, `11:16:45`.
fn of_day(clock: &str, half: &str) -> Option<i64> {
    let mut parts = clock.splitn(3, ':').map(|p| p.parse::<i64>().ok().filter(|n| (0..60).contains(n)));
    let (hour, minute, second) = (parts.next()??, parts.next()??, parts.next()??);
    let hour = match half {
        "" if hour < 24 => hour,
        "AM" if hour <= 12 => hour % 12,
        "PM" if hour <= 12 => hour % 12 + 12,
        _ => return None,
    };
    Some(hour * 3600 + minute * 60 + second)
}

fn hours_east(zone: &str) -> Option<i64> {
    match zone {
        "UTC" | "GMT" => Some(0),
        "CET" => Some(1),
        "CEST" => Some(2),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn both_forms() {
        for (text, expected) in [
            ("Fri Sep  8 00:32:53 CEST 2017", "2017-09-07T22:32:53Z"),
            ("Tue Jan 26 05:12:36 CET 2016", "2016-01-26T04:12:36Z"),
            ("February 19, 2016 at 11:16:45 PM CET", "2016-02-19T22:16:45Z"),
            ("January 1, 2016 at 12:16:45 AM CET", "2015-12-31T23:16:45Z"),
            ("Thu Feb 29 12:00:00 UTC 2024", "2024-02-29T12:00:00Z"),
        ] {
            assert_eq!(utc(text).as_deref(), Some(expected));
        }
    }

    #[test]
    fn what_is_no_date_or_of_an_unknown_zone() {
        for text in [
            "",
            "yesterday",
            "Fri Sep 8 00:32:53 XYZ 2017",
            "Fri Sep 8 00:99:53 CET 2017",
            "Fri Sep 40 00:00:00 CET 2017",
        ] {
            assert_eq!(utc(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn days_count_one_by_one(day in 0i64..20_000) {
            let date = rfc3339(day * 86_400);
            let part = |range: std::ops::Range<usize>| date[range].parse::<i64>().unwrap();
            prop_assert_eq!(days(part(0..4), part(5..7), part(8..10)), day);
            prop_assert!(part(8..10) <= 31);
        }

        #[test]
        fn any_text_is_taken(text in "\\PC{0,60}") {
            utc(&text);
        }
    }
}
