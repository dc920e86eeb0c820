//! Axes of a sweep that the command line defines: `warpgauge sweep kernel.cu --set n=1024,4096`.
//!
//! The program infers a contract for each combination of the values. Fields that differ between
//! these contracts become expressions of the numbers that vary.

use serde_json::{Map, Value, json};

use super::CliError;
use super::assume::{Assume, Setting};

/// Maximum number of combinations for which a contract is inferred.
const MAX_COMBINATIONS: usize = 256;

/// Function that infers a contract. Its argument chooses a value for each number.
pub(super) type Infer<'i> =
    dyn FnMut(&dyn Fn(&Setting) -> Value) -> Result<Map<String, Value>, CliError> + 'i;

/// Returns the settings that have several values.
fn axes(assume: &Assume) -> impl Iterator<Item = &Setting> {
    assume.set.iter().filter(|setting| setting.values.len() > 1)
}

/// Returns whether a number has several values.
pub(super) fn varies(assume: &Assume) -> bool {
    axes(assume).next().is_some()
}

/// Adds the axes to a contract. References to the axes replace the numbers.
pub(super) fn put(assume: &Assume, fields: &mut Map<String, Value>) -> Result<(), CliError> {
    assume.put(fields, "kernel", |setting| match &setting.values[..] {
        [value] => value.clone(),
        _ => json!(format!("${}", setting.name)),
    })?;
    if !varies(assume) {
        return Ok(());
    }
    let own = axes(assume).map(|setting| (setting.name.clone(), json!(setting.values)));
    match fields.entry("axes").or_insert_with(|| json!({})) {
        Value::Object(axes) => axes.extend(own),
        other => *other = Value::Object(own.collect()),
    }
    Ok(())
}

/// Infers a contract for every combination of the values, and joins the contracts. Sizes in the
/// result are expressions of the numbers.
pub(super) fn joined(
    assume: &Assume,
    infer: &mut Infer<'_>,
) -> Result<Map<String, Value>, CliError> {
    let all = axes(assume).collect::<Vec<_>>();
    let count = all.iter().fold(1_usize, |count, axis| count.saturating_mul(axis.values.len()));
    if count > MAX_COMBINATIONS {
        return Err(CliError::Usage(format!(
            "--set: {count} combinations of values; contracts are inferred for at most {MAX_COMBINATIONS}. Write a contract: \
             `warpgauge init`"
        )));
    }
    let mut points = Vec::new();
    let mut contracts = Vec::new();
    for index in 0..count {
        let mut rest = index;
        let point = all.iter().map(|axis| {
            let value = axis.values[rest % axis.values.len()].clone();
            rest /= axis.values.len();
            (axis.name.as_str(), value)
        });
        let point = point.collect::<Vec<_>>();
        let pick = |setting: &Setting| {
            let own = point.iter().find(|(name, _)| *name == setting.name);
            own.map_or_else(|| setting.values[0].clone(), |(_, value)| value.clone())
        };
        let mut fields = infer(&pick)?;
        put(assume, &mut fields)?;
        contracts.push(Value::Object(fields));
        points.push(point);
    }
    let numbers = points.iter().map(|point| {
        let values = point.iter().map(|(name, value)| Some((*name, value.as_u64()?)));
        values.collect::<Option<Vec<_>>>().unwrap_or_default()
    });
    let numbers = numbers.collect::<Vec<_>>();
    let views = contracts.iter().collect::<Vec<_>>();
    match merged(&views, &numbers, "") {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Err(CliError::Internal("the contract is not an object".to_owned())),
        Err(path) => Err(CliError::Usage(format!(
            "--set: `{path}` of the inferred contract does not follow a known rule in {}; write a contract \
             with `warpgauge init` and put the expression there",
            all.iter().map(|axis| format!("`{}`", axis.name)).collect::<Vec<_>>().join(" and ")
        ))),
    }
}

/// Joins values that differ between points into expressions. The error is the path of a value that
/// follows no known rule.
fn merged(all: &[&Value], points: &[Vec<(&str, u64)>], path: &str) -> Result<Value, String> {
    let Some(first) = all.first() else { return Ok(Value::Null) };
    if all.iter().all(|one| one == first) {
        return Ok((*first).clone());
    }
    match first {
        Value::Object(fields) => {
            let same_names =
                |one: &&&Value| one.as_object().is_some_and(|other| other.keys().eq(fields.keys()));
            if !all.iter().all(|one| same_names(&one)) {
                return Err(path.to_owned());
            }
            let joined = fields.keys().map(|name| {
                let own = all.iter().map(|one| &one[name]).collect::<Vec<_>>();
                let at = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                Ok((name.clone(), merged(&own, points, &at)?))
            });
            joined.collect::<Result<Map<_, _>, String>>().map(Value::Object)
        }
        Value::Array(items) => {
            let same_length =
                |one: &&Value| one.as_array().is_some_and(|other| other.len() == items.len());
            if !all.iter().all(same_length) {
                return Err(path.to_owned());
            }
            let joined = (0..items.len()).map(|index| {
                let own = all.iter().map(|one| &one[index]).collect::<Vec<_>>();
                merged(&own, points, &format!("{path}[{index}]"))
            });
            joined.collect::<Result<Vec<_>, String>>().map(Value::Array)
        }
        _ => {
            let values = all.iter().map(|one| one.as_u64()).collect::<Option<Vec<_>>>();
            let rule = values.and_then(|values| rule(&values, points));
            rule.map(Value::String).ok_or_else(|| path.to_owned())
        }
    }
}

/// Returns an expression of the numbers that yields these values: `a * x + b`, `a * x * y`, or `x /
/// a` rounded up.
fn rule(values: &[u64], points: &[Vec<(&str, u64)>]) -> Option<String> {
    let names = points.first()?.iter().map(|(name, _)| *name).collect::<Vec<_>>();
    let of = |point: &Vec<(&str, u64)>, name: &str| {
        point.iter().find(|(other, _)| *other == name).map_or(0, |(_, value)| u128::from(*value))
    };
    let wanted = values.iter().map(|value| u128::from(*value)).collect::<Vec<_>>();
    for name in &names {
        let xs = points.iter().map(|point| of(point, name)).collect::<Vec<_>>();
        let other = xs.iter().position(|x| *x != xs[0])?;
        let (low, high) = if xs[0] < xs[other] { (0, other) } else { (other, 0) };
        let step = wanted[high].checked_sub(wanted[low]);
        let factor = step.filter(|step| step % (xs[high] - xs[low]) == 0);
        if let Some(factor) = factor.map(|step| step / (xs[high] - xs[low]))
            && factor > 0
            && let Some(rest) = wanted[low].checked_sub(factor.saturating_mul(xs[low]))
            && xs
                .iter()
                .zip(&wanted)
                .all(|(x, value)| factor.saturating_mul(*x).saturating_add(rest) == *value)
        {
            let product =
                if factor == 1 { (*name).to_owned() } else { format!("{name} * {factor}") };
            return Some(if rest == 0 { product } else { format!("{product} + {rest}") });
        }
        if let Some(by) = xs[0].checked_div(wanted[0]).filter(|by| *by > 1)
            && xs.iter().zip(&wanted).all(|(x, value)| x.div_ceil(by) == *value)
        {
            return Some(format!("ceil_div({name}, {by})"));
        }
    }
    for (index, first) in names.iter().enumerate() {
        for second in &names[index..] {
            let product =
                |point: &Vec<(&str, u64)>| of(point, first).saturating_mul(of(point, second));
            let Some(factor) = wanted[0].checked_div(product(&points[0])) else { continue };
            let is_rule = |(point, value): (&Vec<(&str, u64)>, &u128)| {
                factor.saturating_mul(product(point)) == *value
            };
            if factor > 0 && points.iter().zip(&wanted).all(is_rule) {
                let scale = if factor == 1 { String::new() } else { format!(" * {factor}") };
                return Some(format!("{first} * {second}{scale}"));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[u64], points: &[&[(&'static str, u64)]]) -> Option<String> {
        rule(values, &points.iter().map(|point| point.to_vec()).collect::<Vec<_>>())
    }

    #[test]
    fn rules_are_found_where_there_are_any() {
        let n: &[&[(&str, u64)]] = &[&[("n", 4)], &[("n", 8)], &[("n", 20)]];
        assert_eq!(of(&[4, 8, 20], n).as_deref(), Some("n"));
        assert_eq!(of(&[13, 25, 61], n).as_deref(), Some("n * 3 + 1"));
        assert_eq!(of(&[32, 128, 800], n).as_deref(), Some("n * n * 2"));
        assert_eq!(of(&[2, 4, 10], n).as_deref(), Some("ceil_div(n, 2)"));
        assert_eq!(of(&[1, 7, 3], n), None);
        let two: &[&[(&str, u64)]] = &[
            &[("n", 4), ("k", 2)],
            &[("n", 8), ("k", 2)],
            &[("n", 4), ("k", 3)],
            &[("n", 8), ("k", 3)],
        ];
        assert_eq!(of(&[8, 16, 12, 24], two).as_deref(), Some("n * k"));
        assert_eq!(of(&[2, 2, 3, 3], two).as_deref(), Some("k"));
    }

    #[test]
    fn contracts_that_differ_become_one() {
        let setting = Setting { name: "n".to_owned(), values: vec![json!(64), json!(256)] };
        let assume = Assume { set: vec![setting], ..Assume::default() };
        let fields = joined(&assume, &mut |pick| {
            let n = pick(&assume.set[0]).as_u64().unwrap();
            let args = json!([{"name": "x", "tensor_spec": {"shape": [n / 2, 4]}},
                              {"name": "n", "type": "int", "value": n}]);
            Ok([("kernel".to_owned(), json!({"io": {"args": args}}))].into_iter().collect())
        })
        .unwrap();
        let args = &fields["kernel"]["io"]["args"];
        assert_eq!(args[0]["tensor_spec"]["shape"], json!(["ceil_div(n, 2)", 4]));
        assert_eq!((&args[1]["value"], &fields["axes"]), (&json!("$n"), &json!({"n": [64, 256]})));
        let refused = joined(&assume, &mut |pick| {
            let text = format!("k{}", pick(&assume.set[0]));
            let io = json!({"args": [{"name": "n", "type": "int"}]});
            let kernel = json!({"source_file": text, "io": io});
            Ok([("kernel".to_owned(), kernel)].into_iter().collect())
        });
        assert!(refused.unwrap_err().to_string().contains("`kernel.source_file`"));
    }
}
