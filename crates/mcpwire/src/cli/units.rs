//! Sizes and times as people write them.

use std::fmt;
use std::time::Duration;

/// A number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size(pub(super) usize);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}MiB", self.0 / (1024 * 1024))
    }
}

pub(super) fn size(text: &str) -> Result<Size, String> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit: usize = match text[digits.len()..].trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" => 1000,
        "kib" => 1 << 10,
        "m" | "mb" => 1_000_000,
        "mib" => 1 << 20,
        "g" | "gb" => 1_000_000_000,
        "gib" => 1 << 30,
        unit => return Err(format!("expected a unit such as MiB, came {unit:?}")),
    };
    let count: usize = digits.parse().map_err(|_| "expected a size such as 10MiB".to_owned())?;
    count.checked_mul(unit).filter(|size| *size > 0).map(Size).ok_or_else(|| "expected a size above 0".to_owned())
}

/// A time with a unit, or plain seconds.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    match text.parse::<u64>() {
        Ok(seconds) => Ok(Duration::from_secs(seconds)),
        Err(_) => humantime::parse_duration(text).map_err(|e| format!("expected a time such as 30s or 5m: {e}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times_take_units() {
        assert_eq!(size("10MiB"), Ok(Size(10 << 20)));
        assert_eq!(size("1500"), Ok(Size(1500)));
        assert_eq!(size("2 kB"), Ok(Size(2000)));
        assert!(size("x").is_err() && size("0").is_err() && size("5 parsecs").is_err());
        assert_eq!(duration("90"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("1m 30s"), Ok(Duration::from_secs(90)));
        assert!(duration("soon").is_err());
    }
}
