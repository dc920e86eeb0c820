//! Joins the emulator's counts with Nsight Compute's.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::Failure;
use super::columns::COLUMNS;
use super::device::Counts;
use super::profiled::Profiled;
use super::reasons::{self, REASONS};

/// The result of a launch on the emulator.
pub struct Run {
    pub label: &'static str,
    pub kernel: &'static str,
    pub counts: Counts,
}

/// A compared number of one launch.
pub struct Cell {
    pub label: &'static str,
    pub group: &'static str,
    pub name: &'static str,
    pub ours: u64,
    pub theirs: u64,
    /// Number of the reason why the emulator's and the GPU's number differ, if it is known.
    pub reason: Option<usize>,
}

impl Cell {
    pub fn equal(&self) -> bool {
        self.ours == self.theirs
    }
}

/// Returns all comparisons, launch by launch.
pub fn cells(runs: &[Run], profiled: &[Profiled]) -> Result<Vec<Cell>, Failure> {
    if runs.len() != profiled.len() {
        let message =
            format!("the emulator has {} launches, the CSV {}", runs.len(), profiled.len());
        return Err(message.into());
    }
    let mut out = Vec::new();
    for (run, profiled) in runs.iter().zip(profiled) {
        if run.kernel != profiled.kernel {
            return Err(format!(
                "the emulator's launch of {} is one of {} in the CSV",
                run.kernel, profiled.kernel
            )
            .into());
        }
        for column in COLUMNS {
            let sum = |name: &&str| run.counts.get(*name).copied().ok_or(format!("no {name}"));
            let ours = column.counts.iter().map(sum).sum::<Result<u64, String>>()?;
            let theirs = profiled.sum(column.metrics)?;
            let (label, group, name) = (run.label, column.group, column.name);
            let reason = reasons::of((label, group, name, ours, theirs));
            out.push(Cell { label, group, name, ours, theirs, reason });
        }
    }
    Ok(out)
}

/// Returns the problems with the reasons: differences without a reason, and reasons without a
/// difference.
pub fn surprises(cells: &[Cell]) -> Vec<String> {
    let unexplained = cells.iter().filter(|cell| !cell.equal() && cell.reason.is_none());
    let mut out: Vec<_> = unexplained
        .map(|c| {
            let Cell { label, group, name, ours, theirs, .. } = c;
            format!("{label}: {group}, {name}: emulator {ours}, ncu {theirs}: no reason is known")
        })
        .collect();
    for (reason, (_, differences)) in REASONS.iter().enumerate() {
        for (label, group, name, ours, theirs) in *differences {
            let found = |cell: &Cell| {
                (cell.label, cell.group, cell.name) == (*label, *group, *name)
                    && cell.reason == Some(reason)
            };
            if !cells.iter().any(found) {
                let stale = format!(
                    "emulator {ours}, ncu {theirs}: this difference is listed, but does not occur"
                );
                out.push(format!("{label}: {group}, {name}: {stale}"));
            }
        }
    }
    out
}

/// Returns the number of launches in which all numbers are equal.
pub fn all_equal(cells: &[Cell]) -> usize {
    let labels: BTreeSet<_> = cells.iter().map(|cell| cell.label).collect();
    let other: BTreeSet<_> = cells.iter().filter(|c| !c.equal()).map(|c| c.label).collect();
    labels.len() - other.len()
}

/// Lists the counts of a launch that are not zero.
pub fn listing(run: &Run) -> String {
    let mut out = format!("\n{}\n", run.label);
    for (name, value) in run.counts.iter().filter(|(_, value)| **value != 0) {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "  {name:28} {value:>12}");
    }
    out
}

/// Returns a table with a row for each launch and a column for each group, followed by the reasons.
pub fn table(cells: &[Cell]) -> String {
    let mut groups: Vec<&str> = COLUMNS.iter().map(|column| column.group).collect();
    groups.dedup();
    let mut out = format!("| launch | {} |\n", groups.join(" | "));
    let _ = writeln!(out, "| --- |{}", " --- |".repeat(groups.len()));
    for launch in cells.chunk_by(|a, b| a.label == b.label) {
        let group = |group: &&str| field(launch.iter().filter(|cell| cell.group == *group));
        let fields: Vec<_> = groups.iter().map(group).collect();
        let _ = writeln!(out, "| {} | {} |", launch[0].label, fields.join(" | "));
    }
    out.push('\n');
    for (number, (text, _)) in (1..).zip(REASONS) {
        let _ = writeln!(out, "{number}. {text}");
    }
    out
}

/// Returns the sum of the counts that are equal, and both numbers of each count that differs.
fn field<'a>(cells: impl Iterator<Item = &'a Cell>) -> String {
    let (equal, other): (Vec<&Cell>, Vec<&Cell>) = cells.partition(|cell| cell.equal());
    let sum: u64 = equal.iter().map(|cell| cell.ours).sum();
    let mut parts = Vec::new();
    if sum != 0 {
        parts.push(format!("= {sum}"));
    }
    for Cell { name, ours, theirs, reason, .. } in other {
        let reason = reason.map_or("?".to_owned(), |reason| (reason + 1).to_string());
        parts.push(format!("{name} {ours} / {theirs} ({reason})"));
    }
    parts.join("; ")
}
