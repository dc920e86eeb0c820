//! Formats dates and commits for people.

const SECONDS_OF_DAY: i64 = 86_400;

/// Formats seconds since 1970 as date and time of UTC, `2026-11-27 03:24`; `None` outside the years 1970 to 9999.
pub fn date_and_time(unix_s: f64) -> Option<String> {
    // 9999-12-31 is day 2,932,896.
    let seconds =
        (0.0..2_932_897.0 * SECONDS_OF_DAY as f64).contains(&unix_s).then_some(unix_s as i64)?;
    let (days, rest) = (seconds / SECONDS_OF_DAY, seconds % SECONDS_OF_DAY);
    let (year, month, day) = civil(days);
    let (hour, minute) = (rest / 3_600, rest / 60 % 60);
    Some(format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}"))
}

/// Returns year, month and day of a day since 1970-01-01: `civil_from_days` of H. Hinnant, "chrono-compatible low-level
/// date algorithms" (2013), for days that are not negative.
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

/// Shortens a commit to 12 digits, and keeps a suffix such as `-dirty`.
pub fn short_commit(commit: &str) -> String {
    let digits = commit.bytes().take_while(u8::is_ascii_hexdigit).count();
    if digits < 40 {
        return commit.to_owned();
    }
    format!("{}{}", &commit[..12], &commit[digits..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_dates() {
        for (seconds, date) in [
            (0.0, "1970-01-01 00:00"),
            (951_782_399.0, "2000-02-28 23:59"),
            (951_868_800.0, "2000-03-01 00:00"),
            (1_709_164_800.0, "2024-02-29 00:00"),
            (1_795_749_846.9, "2026-11-27 03:24"),
            (253_402_300_799.0, "9999-12-31 23:59"),
        ] {
            assert_eq!(date_and_time(seconds).as_deref(), Some(date));
        }
        for wrong in [-1.0, 253_402_300_800.0, f64::NAN, f64::INFINITY] {
            assert_eq!(date_and_time(wrong), None);
        }
    }

    #[test]
    fn commits_are_shortened_and_names_are_not() {
        let commit = "0123456789abcdef0123456789abcdef01234567";
        assert_eq!(short_commit(commit), "0123456789ab");
        assert_eq!(short_commit(&format!("{commit}-dirty")), "0123456789ab-dirty");
        assert_eq!(short_commit("v1.2"), "v1.2");
    }
}
