//! Formats of two services that store series of measurements: Bencher Metric Format, and
//! `customSmallerIsBetter` of github-action-benchmark.

use serde_json::{Map, Value, json};

use super::{CaseReport, GateReport, RenderError, words};

/// Formats the report in Bencher Metric Format: `{case: {measure: {value, lower_value,
/// upper_value}}}`. A case without measurements has no entry.
pub(super) fn bmf(report: &GateReport) -> Result<String, RenderError> {
    let mut root = Map::new();
    for case in &report.cases {
        let mut measures = Map::new();
        if let Some(ms) = case.candidate_ms {
            // Bencher's built-in measure `latency` is in nanoseconds.
            measures.insert("latency".to_owned(), json!({"value": ms * 1e6}));
        }
        if let Some(time) = case.comparison.as_ref().and_then(|comparison| comparison.time) {
            let ratio = json!({
                "value": time.ratio, "lower_value": time.ci_low, "upper_value": time.ci_high,
            });
            measures.insert("time-ratio".to_owned(), ratio);
        }
        for count in &case.counts {
            let slug = count.count.replace('_', "-");
            measures.insert(slug, json!({"value": count.candidate as f64}));
        }
        for (count, value) in &case.candidate_counts {
            measures.insert(count.replace('_', "-"), json!({"value": *value as f64}));
        }
        if !measures.is_empty() {
            root.insert(case.name.clone(), Value::Object(measures));
        }
    }
    pretty(&Value::Object(root))
}

/// Formats the report as `customSmallerIsBetter`: `[{name, unit, value, range?, extra?}]`. A case
/// without measurements has no entry.
pub(super) fn smaller_is_better(report: &GateReport) -> Result<String, RenderError> {
    pretty(&Value::Array(report.cases.iter().flat_map(entries).collect()))
}

fn entries(case: &CaseReport) -> Vec<Value> {
    let extra = format!("{} {}", words::outcome(case.outcome), words::measured(case));
    let mut entries = Vec::new();
    if let Some(ms) = case.candidate_ms {
        let mut entry = json!({"name": case.name, "unit": "ms", "value": ms, "extra": extra});
        let time = case.comparison.as_ref().and_then(|comparison| comparison.time);
        if let Some(time) = time {
            let half = 50.0 * (time.ci_high - time.ci_low) / time.ratio;
            entry["range"] = json!(format!("± {half:.2} %"));
        }
        entries.push(entry);
    }
    for count in &case.counts {
        let name = format!("{} / {}", case.name, count.count);
        let value = count.candidate;
        entries.push(json!({"name": name, "unit": "count", "value": value, "extra": extra}));
    }
    for (count, value) in &case.candidate_counts {
        let name = format!("{} / {count}", case.name);
        entries.push(json!({"name": name, "unit": "count", "value": value, "extra": extra}));
    }
    entries
}

fn pretty(value: &Value) -> Result<String, RenderError> {
    let mut text = serde_json::to_string_pretty(value)?;
    text.push('\n');
    Ok(text)
}
