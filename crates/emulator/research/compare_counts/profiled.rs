//! Reads the output of Nsight Compute.

use std::collections::HashMap;
use std::path::Path;

use super::Failure;
use super::columns;

/// A launch that Nsight Compute profiled.
pub struct Profiled {
    pub kernel: String,
    values: HashMap<String, u64>,
}

impl Profiled {
    /// Returns the sum of the values of metrics.
    pub fn sum(&self, metrics: &[&str]) -> Result<u64, Failure> {
        let value = |name: &&str| self.values.get(*name).ok_or(format!("no metric {name}"));
        Ok(metrics.iter().map(value).sum::<Result<u64, String>>()?)
    }
}

/// Returns the fields of a line. Either all fields are quoted or none.
fn fields(line: &str) -> Vec<String> {
    let mut out = vec![String::new()];
    let (mut quoted, mut chars) = (false, line.chars().peekable());
    while let Some(c) = chars.next() {
        match (c, out.last_mut()) {
            ('"', Some(field)) if quoted && chars.peek() == Some(&'"') => {
                field.push('"');
                chars.next();
            }
            ('"', _) => quoted = !quoted,
            (',', _) if !quoted => out.push(String::new()),
            (c, Some(field)) => field.push(c),
            (_, None) => {}
        }
    }
    out
}

/// Reads the raw page of Nsight Compute as CSV, or the output of `extract`. Lines before the header
/// are messages.
pub fn read(path: &Path) -> Result<Vec<Profiled>, Failure> {
    let text = std::fs::read_to_string(path)?;
    let mut lines = text.lines().skip_while(|line| !line.starts_with("\"ID\","));
    let header = lines.next().map(fields).ok_or("no header line in the CSV")?;
    lines.next().ok_or("no line of units in the CSV")?;
    let kernel = header
        .iter()
        .position(|name| name == "Kernel Name")
        .ok_or("no column `Kernel Name` in the CSV")?;
    let mut out = Vec::new();
    for line in lines.filter(|line| line.starts_with('"')) {
        let row = fields(line);
        let name = row.get(kernel).ok_or("a line of the CSV has no kernel name")?;
        let values = header.iter().zip(&row).filter_map(|(name, value)| {
            // A comma separates thousands in every locale used here. Source metrics begin with the
            // sum, followed by the values of single instructions in parentheses.
            let value = value.split(' ').next()?.replace(',', "").parse().ok()?;
            Some((name.clone(), value))
        });
        let kernel = name.split('(').next().unwrap_or(name).to_owned();
        out.push(Profiled { kernel, values: values.collect() });
    }
    Ok(out)
}

/// Returns the metrics that the comparison uses, in the form that `read` accepts.
pub fn extract(profiled: &[Profiled]) -> Result<String, Failure> {
    let names: Vec<_> = columns::metrics().collect();
    let line = |id: &str, kernel: &str, fields: &[String]| {
        let fields: Vec<_> = fields.iter().map(|field| format!("\"{field}\"")).collect();
        format!("\"{id}\",\"{kernel}\",{}\n", fields.join(","))
    };
    let mut out =
        line("ID", "Kernel Name", &names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>());
    out.push_str(&line("", "", &vec![String::new(); names.len()]));
    for (id, launch) in profiled.iter().enumerate() {
        let value = |name: &&str| Ok(launch.sum(&[*name])?.to_string());
        let values = names.iter().map(value).collect::<Result<Vec<_>, Failure>>()?;
        out.push_str(&line(&id.to_string(), &launch.kernel, &values));
    }
    Ok(out)
}
