//! Clocks, power and temperature of a device. The main function is [`facts`].

use maud::{Markup, html};
use warpgauge_report::{DeviceReading, ReadingOccasion};

use crate::jobs::moment;
use crate::text;

/// Returns names with values: clocks, power and temperature, with the time of the reading, or why
/// they are not known.
pub(crate) fn facts(
    reading: Option<&DeviceReading>,
    why_none: Option<&str>,
) -> Vec<(&'static str, Markup)> {
    let Some(reading) = reading else {
        let why = why_none.unwrap_or("no worker has read them");
        return vec![("clocks", html! { "not known: " (text::message(why)) })];
    };
    let of = |value: Option<f64>, most: Option<f64>, unit: &str| {
        let shown = |value: f64| text::grouped(value.max(0.0).round() as u64);
        let value = value.map(shown)?;
        let most = most.map(|most| format!(" of at most {}", shown(most))).unwrap_or_default();
        Some(html! { (value) (most) "\u{202f}" (unit) })
    };
    let mhz = |clock: Option<u32>, most: Option<u32>| {
        of(clock.map(f64::from), most.map(f64::from), "MHz")
    };
    let throttled = reading.throttle_reasons.as_ref().map(|reasons| {
        let words = reasons.iter().map(text::word).collect::<Vec<_>>().join(", ");
        html! { @if words.is_empty() { "no" } @else { (words) } }
    });
    let rows = [
        ("clock of the multiprocessors", mhz(reading.sm_clock_mhz, reading.max_sm_clock_mhz)),
        ("clock of the memory", mhz(reading.memory_clock_mhz, reading.max_memory_clock_mhz)),
        ("power", of(reading.power_w, reading.power_limit_w, "W")),
        ("temperature", of(reading.temperature_c.map(f64::from), None, "°C")),
        ("clock throttling", throttled),
    ];
    let mut rows =
        rows.into_iter().filter_map(|(name, value)| Some((name, value?))).collect::<Vec<_>>();
    let occasion = match reading.occasion {
        ReadingOccasion::Evaluation => "after the last evaluation",
        ReadingOccasion::Start => "at the start of a worker",
    };
    rows.push(("clocks read", html! { (moment(reading.at)) ", " (occasion) }));
    rows
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use serde_json::json;

    pub(crate) fn reading() -> DeviceReading {
        let reading = json!({
            "at": 1_767_225_600.0, "occasion": "evaluation", "sm_clock_mhz": 1605,
            "max_sm_clock_mhz": 1980, "memory_clock_mhz": 3201, "power_w": 697.6,
            "power_limit_w": 700.0, "temperature_c": 61, "throttle_reasons": ["sw_power_cap"],
        });
        serde_json::from_value(reading).unwrap()
    }

    fn shown(reading: Option<&DeviceReading>, why: Option<&str>) -> Vec<String> {
        let facts = facts(reading, why).into_iter();
        facts.map(|(name, value)| format!("{name}: {}", value.into_string())).collect()
    }

    #[test]
    fn a_reading_has_its_limits_and_its_time() {
        let time = "<time datetime=\"2026-01-01T00:00:00Z\">2026-01-01 00:00:00 UTC</time>";
        let expected = [
            "clock of the multiprocessors: 1\u{202f}605 of at most 1\u{202f}980\u{202f}MHz",
            "clock of the memory: 3\u{202f}201\u{202f}MHz",
            "power: 698 of at most 700\u{202f}W",
            "temperature: 61\u{202f}°C",
            "clock throttling: sw power cap",
            &format!("clocks read: {time}, after the last evaluation"),
        ];
        assert_eq!(shown(Some(&reading()), None), expected);
        let idle = DeviceReading {
            occasion: ReadingOccasion::Start,
            throttle_reasons: Some(Vec::new()),
            power_w: None,
            ..reading()
        };
        let idle = shown(Some(&idle), None);
        assert!(idle.contains(&"clock throttling: no".to_owned()), "{idle:?}");
        assert!(idle.last().unwrap().ends_with("at the start of a worker"), "{idle:?}");
        assert!(!idle.iter().any(|fact| fact.starts_with("power")), "{idle:?}");
    }

    #[test]
    fn without_a_reading_the_reason_is_there() {
        let why = shown(None, Some("cannot open libnvidia-ml.so.1"));
        assert_eq!(why, ["clocks: not known: <bdi>cannot open libnvidia-ml.so.1</bdi>"]);
    }
}
