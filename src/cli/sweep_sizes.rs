//! Axes of a sweep that change the size of the problem. Points are ranked separately for each size.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::format::duration_ms;
use warpgauge_contract::{AxisValue, axes_in};
use warpgauge_report::{SweepPoint, SweepResponse, SweepStatus};

/// Maximum number of sizes that are shown.
const MAX_SIZES: usize = 32;

/// Returns the axes that determine the size of the problem: those that occur in a tensor or in the
/// value of an argument. Axes of the block, of a compile-time constant, of options or of the code
/// are choices of the kernel's author.
pub(super) fn size_axes(fields: &Map<String, Value>) -> Vec<String> {
    let Some(axes) = fields.get("axes").and_then(Value::as_object) else { return Vec::new() };
    let io = &fields.get("kernel").map_or(Value::Null, |kernel| kernel["io"].clone());
    let args = io["args"].as_array().map_or(&[][..], Vec::as_slice);
    let is_size = |axis: &str| {
        let in_tensor = args.iter().any(|arg| refers(&arg["tensor_spec"], axis));
        let in_value = args.iter().any(|arg| arg["is_meta"] != true && refers(&arg["value"], axis));
        in_tensor || (in_value && !refers(&io["launch"]["block"], axis))
    };
    axes.keys().filter(|axis| is_size(axis)).cloned().collect()
}

/// Returns whether any text in the value contains `$axis` or `${axis}`.
fn refers(value: &Value, axis: &str) -> bool {
    match value {
        Value::String(text) => axes_in(text).contains(&axis),
        Value::Array(items) => items.iter().any(|item| refers(item, axis)),
        Value::Object(fields) => fields.values().any(|field| refers(field, axis)),
        _ => false,
    }
}

/// Returns the value by which a correct point is ranked: its median time if times are valid,
/// otherwise its number of warp instructions.
fn measure(point: &SweepPoint, by_time: bool) -> Option<f64> {
    let is_right = matches!(point.status, SweepStatus::Correct | SweepStatus::NotChecked);
    let stats = point.runtime_stats.as_ref().filter(|_| is_right);
    match by_time {
        true => stats.map(|stats| stats.ranked_ms()),
        false => point.counted.filter(|_| is_right).map(|counted| counted.warp_instructions as f64),
    }
}

/// Returns the best point for each size, one per line. Sizes with a single point are omitted.
pub(super) fn best_of_sizes(answer: &SweepResponse, sizes: &[String]) -> String {
    let by_time = answer.best.median_ms.is_some();
    let split = |point: &SweepPoint| {
        let shown = |of_size: bool| {
            let parts = answer.axes.iter().filter(|axis| sizes.contains(&axis.name) == of_size);
            let parts = parts.filter_map(|axis| {
                let value: &AxisValue = point.values.get(&axis.name)?;
                Some(format!("{} = {value}", axis.name))
            });
            parts.collect::<Vec<_>>().join(", ")
        };
        (shown(true), shown(false))
    };
    let mut best: Vec<(String, String, f64)> = Vec::new();
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    for point in &answer.points {
        let Some(value) = measure(point, by_time) else { continue };
        let (size, choice) = split(point);
        match known.get(&size) {
            Some(&at) if best[at].2 <= value => {}
            Some(&at) => best[at] = (size, choice, value),
            None => {
                known.insert(size.clone(), best.len());
                best.push((size, choice, value));
            }
        }
    }
    if best.is_empty() || best.iter().all(|(_, choice, _)| choice.is_empty()) {
        return String::new();
    }
    let what = if by_time { "fastest" } else { "fewest warp instructions" };
    let mut text = format!("{what} within each size:\n");
    for (size, choice, value) in best.iter().take(MAX_SIZES) {
        let value = if by_time { duration_ms(*value) } else { format!("{value:.0}") };
        text.push_str(&format!("  {size}: {value} at {choice}\n"));
    }
    if best.len() > MAX_SIZES {
        text.push_str(&format!(
            "  … and {} more sizes (all with --json)\n",
            best.len() - MAX_SIZES
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn axes(io: &Value) -> Vec<String> {
        let fields = json!({"axes": {"n": [1, 2], "block": [64]}, "kernel": {"io": io}});
        size_axes(fields.as_object().unwrap())
    }

    #[test]
    fn sizes_are_told_from_choices() {
        let launch = json!({"grid": {"x": "ceil_div(n, ${block})"}, "block": {"x": "$block"}});
        let shaped = json!([{"name": "x", "tensor_spec": {"shape": ["$n"]}}]);
        assert_eq!(axes(&json!({"args": shaped, "launch": launch})), ["n"]);
        let named = json!([{"name": "x", "tensor_spec": {"shape": ["n"]}},
            {"name": "n", "value": "${n}"}, {"name": "b", "value": "$block"}]);
        assert_eq!(axes(&json!({"args": named, "launch": launch})), ["n"], "the block is no size");
        let constants = json!([{"name": "n", "value": "$n", "is_meta": true}]);
        assert_eq!(axes(&json!({"args": constants})), [] as [String; 0]);
        let other = json!([{"name": "x", "tensor_spec": {"shape": ["$nn", "$n_2"]}}]);
        assert_eq!(axes(&json!({"args": other})), [] as [String; 0], "other axes");
        let dollar = json!([{"name": "x", "tensor_spec": {"shape": ["$$n"]}}]);
        assert_eq!(axes(&json!({"args": dollar})), [] as [String; 0], "a dollar sign");
    }

    fn answer(points: &[(u64, u64, f64)], timed: bool) -> SweepResponse {
        let points = points.iter().enumerate().map(|(index, (n, block, value))| {
            let stats = json!({"mean": value, "std": 0.0, "min": value, "max": value, "median": value,
                "percentile_95": value, "percentile_99": value, "samples": 9});
            let counted = json!({"warp_instructions": *value as u64, "global_sectors": 1});
            json!({"index": index, "values": {"n": n, "block": block}, "status": "correct",
                "total_ms": 1.0, "runtime_stats": stats, "counted": counted})
        });
        let best = json!({"values": {}, "value": 1.0, "index": 0});
        let best = if timed { json!({"median_ms": best}) } else { json!({}) };
        serde_json::from_value(json!({
            "job_id": "j", "status": "success", "counts": {}, "devices": [], "total_ms": 1.0,
            "axes": [{"name": "n", "values": [1, 2]}, {"name": "block", "values": [64, 128]}],
            "points": points.collect::<Vec<_>>(), "table": {"columns": [], "rows": []}, "best": best,
        }))
        .unwrap()
    }

    #[test]
    fn the_best_of_each_size_is_named() {
        let points = [(1, 64, 3.0), (1, 128, 2.0), (2, 64, 4.0), (2, 128, 5.0)];
        let sizes = ["n".to_owned()];
        let text = best_of_sizes(&answer(&points, true), &sizes);
        let lines = "fastest within each size:\n  n = 1: 2.000 ms at block = 128\n  n = 2: 4.000 ms at block = 64\n";
        assert_eq!(text, lines);
        let text = best_of_sizes(&answer(&points, false), &sizes);
        assert!(
            text.starts_with("fewest warp instructions within each size:\n  n = 1: 2 at"),
            "{text}"
        );
        let all = ["n".to_owned(), "block".to_owned()];
        assert_eq!(best_of_sizes(&answer(&points, true), &all), "", "one point each");
    }
}
