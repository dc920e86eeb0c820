//! Numbers, devices and verdicts of comparisons formatted for people.

mod because;
mod conditions;
mod doubts;
mod sentence;
mod tone;

pub use because::because;
pub use conditions::{cache, stopped};
pub use doubts::doubts;
pub use sentence::{of_counts, of_times};
pub use tone::{Tone, word_of_counts, word_of_times};

use warpgauge_model::DeviceKind;

use crate::DeviceReport;

/// Formats a time given in milliseconds in a suitable unit, with four significant digits.
pub fn duration_ms(ms: f64) -> String {
    let (value, unit) = match ms.abs() {
        0.0 => return "0 ms".to_owned(),
        t if t < 1e-3 => (ms * 1e6, "ns"),
        t if t < 1.0 => (ms * 1e3, "µs"),
        t if t < 1e3 => (ms, "ms"),
        _ => (ms / 1e3, "s"),
    };
    format!("{} {unit}", significant(value, 4))
}

/// Formats `value` with `digits` significant digits, never with an exponent.
fn significant(value: f64, digits: i32) -> String {
    if value == 0.0 || !value.is_finite() {
        return value.to_string();
    }
    let magnitude = value.abs().log10().floor() as i32;
    let decimals = (digits - 1 - magnitude).clamp(0, 12) as usize;
    format!("{value:.decimals$}")
}

/// Formats a share as a percentage, with up to three significant digits.
pub fn percent(share: f64) -> String {
    let text = significant(share * 100.0, 3);
    let text =
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text} %")
}

/// Formats a number of bytes with a binary unit.
pub fn bytes(n: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = n as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{n} B") } else { format!("{value:.1} {}", UNITS[unit]) }
}

/// Formats the value of a metric with its unit.
pub fn quantity(value: f64, unit: &str) -> String {
    match unit {
        "s" => duration_ms(value * 1e3),
        "Hz" => format!("{:.1} MHz", value * 1e-6),
        "bytes" if value >= 0.0 && value < u64::MAX as f64 => bytes(value as u64),
        "bytes/s" => format!("{:.2} GB/s", value * 1e-9),
        _ if value.fract() == 0.0 && value.abs() < 1e15 => format!("{value:.0} {unit}"),
        _ => format!("{value:.2} {unit}"),
    }
}

/// Returns the name of a value on the wire; `unknown` for a value that is not serialised as a string.
pub fn word(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(name)) => name,
        _ => "unknown".to_owned(),
    }
}

/// Describes a device in one line. For an emulated device, the text states that the times are those
/// of the emulation.
pub fn device(device: &DeviceReport) -> String {
    let kind = match device.kind {
        DeviceKind::Cuda => "",
        DeviceKind::Emulator => "emulator (not a GPU: times are of the emulation): ",
    };
    format!(
        "{kind}{} {}, compute {}, {} SMs, {}, CUDA {}",
        device.id,
        device.name,
        device.compute_capability,
        device.multiprocessors,
        bytes(device.memory_bytes),
        device.cuda_version
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_choose_their_unit() {
        let cases = [
            (0.0, "0 ms"),
            (0.000_512, "512.0 ns"),
            (0.012_345, "12.35 µs"),
            (1.0, "1.000 ms"),
            (999.94, "999.9 ms"),
            (12_345.0, "12.35 s"),
            (1e9, "1000000 s"),
        ];
        for (ms, expected) in cases {
            assert_eq!(duration_ms(ms), expected);
        }
    }

    #[test]
    fn percentages_are_short() {
        let cases = [(0.02, "2 %"), (0.98, "98 %"), (0.0123, "1.23 %"), (0.999_75, "100 %")];
        for (share, expected) in cases.into_iter().chain([(0.0, "0 %"), (0.000_45, "0.045 %")]) {
            assert_eq!(percent(share), expected);
        }
    }

    #[test]
    fn bytes_choose_their_unit() {
        assert_eq!(bytes(0), "0 B");
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(1536), "1.5 KiB");
        assert_eq!(bytes(u64::MAX), "16777216.0 TiB");
    }
}
