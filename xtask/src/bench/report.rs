//! Measured figures and their targets ([`Figure`]), as a Markdown table and as JSON.

use std::fmt::Write as _;

use serde_json::{Value, json};

/// The target of a figure.
#[derive(Clone, Copy)]
pub enum Target {
    /// The value must not be larger than this.
    AtMost(f64),
    /// The value must not be smaller than this.
    AtLeast(f64),
    /// There is no target.
    None,
}

/// One measured figure.
pub struct Figure {
    /// Description of what was measured.
    pub name: String,
    /// Unit of the value and of the target.
    pub unit: &'static str,
    /// The measured value; absent if it could not be measured.
    pub value: Option<f64>,
    /// The target of the value.
    pub target: Target,
    /// Number of samples, and conditions of the measurement.
    pub detail: String,
}

impl Figure {
    /// Returns whether the value reaches the target; `None` if there is no target.
    pub fn reached(&self) -> Option<bool> {
        match self.target {
            Target::AtMost(limit) => Some(self.value.is_some_and(|value| value <= limit)),
            Target::AtLeast(limit) => Some(self.value.is_some_and(|value| value >= limit)),
            Target::None => None,
        }
    }
}

/// Returns all figures as a Markdown table.
pub fn markdown(figures: &[Figure]) -> String {
    let mut table = String::from("| figure | measured | target | reached | samples |\n");
    table.push_str("| --- | ---: | ---: | --- | --- |\n");
    for figure in figures {
        let value = figure
            .value
            .map_or("not measured".to_owned(), |value| format!("{} {}", round(value), figure.unit));
        let target = match figure.target {
            Target::AtMost(limit) => format!("≤ {} {}", round(limit), figure.unit),
            Target::AtLeast(limit) => format!("≥ {} {}", round(limit), figure.unit),
            Target::None => String::new(),
        };
        let reached = match figure.reached() {
            Some(true) => "yes",
            Some(false) => "NO",
            None => "",
        };
        let _ = writeln!(
            table,
            "| {} | {value} | {target} | {reached} | {} |",
            figure.name, figure.detail
        );
    }
    table
}

/// Returns all figures as JSON.
pub fn json(figures: &[Figure], context: Value) -> Value {
    let figures: Vec<Value> = figures
        .iter()
        .map(|figure| {
            json!({
                "name": figure.name, "unit": figure.unit, "value": figure.value,
                "reached": figure.reached(), "detail": figure.detail,
            })
        })
        .collect();
    json!({"context": context, "figures": figures})
}

/// Rounds to three significant digits, or to a whole number if the value is 100 or more.
fn round(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude >= 100.0 || value == 0.0 {
        format!("{value:.0}")
    } else if magnitude >= 10.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}

#[cfg(test)]
mod tests {
    use super::{Figure, Target, markdown};

    #[test]
    fn a_missing_figure_does_not_reach_its_target() {
        let figure = |value| Figure {
            name: "f".to_owned(),
            unit: "ms",
            value,
            target: Target::AtMost(5.0),
            detail: "n = 3".to_owned(),
        };
        assert_eq!(figure(None).reached(), Some(false));
        assert_eq!(figure(Some(5.0)).reached(), Some(true));
        assert_eq!(figure(Some(5.1)).reached(), Some(false));
        assert!(
            markdown(&[figure(Some(4.5))]).contains("| f | 4.50 ms | ≤ 5.00 ms | yes | n = 3 |")
        );
    }
}
