//! Merges the kernels of several pages of one file. A launch that occurs in two pages is one
//! launch. The main type is [`Merged`].

use std::collections::BTreeMap;

use super::kernel::NcuKernel;
use crate::text::Notes;

/// Maximum relative difference between the roundings of a value in two pages.
const ROUNDED: f64 = 0.006;
/// Metrics that identify a launch: several of its pages contain them, and their values differ
/// between launches.
const TELLING: [&str; 2] = ["gpu__time_duration.sum", "gpc__cycles_elapsed.max"];

/// Kernels of all pages that have been merged so far.
#[derive(Debug, Default)]
pub(super) struct Merged {
    pub(super) kernels: Vec<NcuKernel>,
    by_launch: BTreeMap<String, usize>,
}

impl Merged {
    /// Adds the kernels of the page whose header is at `line`.
    pub(super) fn add(&mut self, kernels: Vec<NcuKernel>, line: usize, notes: &mut Notes) {
        let before = self.kernels.len();
        let (mut same, mut others) = (0, 0);
        for kernel in kernels {
            let known = kernel.launch.as_ref().and_then(|launch| self.by_launch.get(launch));
            match known.filter(|&&place| place < before) {
                Some(&place) if agree(&self.kernels[place], &kernel) => {
                    fill_in(&mut self.kernels[place], kernel);
                    same += 1;
                }
                known => {
                    others += usize::from(known.is_some());
                    if let Some(launch) = &kernel.launch {
                        self.by_launch.insert(launch.clone(), self.kernels.len());
                    }
                    self.kernels.push(kernel);
                }
            }
        }
        let mut tell = |count: usize, text: &str| {
            if count > 0 {
                notes.add(format!("line {line}, another page begins"), format!("{count} {text}"));
            }
        };
        tell(same, "of its launches are also in an earlier page, and are counted once");
        tell(
            others,
            "of its launches have the process and ID of earlier launches, but other values: they \
             are counted as separate launches",
        );
        if before > 0 {
            tell(self.kernels.len() - before - others, "more launches are in this page");
        }
    }
}

/// Returns whether two rows can belong to one launch: their common values are equal up to rounding.
fn agree(a: &NcuKernel, b: &NcuKernel) -> bool {
    let apart = |x: f64, y: f64| (x - y).abs() > ROUNDED * x.abs().max(y.abs());
    if a.block != b.block || a.grid != b.grid {
        return false;
    }
    let telling: Vec<bool> = TELLING
        .iter()
        .filter_map(|name| Some(apart(*a.values.get(*name)?, *b.values.get(*name)?)))
        .collect();
    if !telling.is_empty() {
        return !telling.contains(&true);
    }
    // Small values may have few digits in one of the pages.
    let (mut shared, mut differ) = (0, 0);
    for (name, x) in &a.values {
        let Some(y) = b.values.get(name) else { continue };
        shared += 1;
        differ += usize::from(apart(*x, *y) && (x - y).abs() > 0.02);
    }
    differ * 20 <= shared
}

/// Adds the values of the other page that are missing in the first page.
fn fill_in(kernel: &mut NcuKernel, other: NcuKernel) {
    for (name, value) in other.values {
        if kernel.values.contains_key(&name) {
            continue;
        }
        kernel.missing.remove(&name);
        kernel.texts.remove(&name);
        kernel.values.insert(name, value);
    }
    for (name, text) in other.texts {
        if !kernel.values.contains_key(&name) {
            kernel.missing.remove(&name);
            kernel.texts.entry(name).or_insert(text);
        }
    }
    for (name, reason) in other.missing {
        if !kernel.values.contains_key(&name) && !kernel.texts.contains_key(&name) {
            kernel.missing.entry(name).or_insert(reason);
        }
    }
    kernel.capability = kernel.capability.or(other.capability);
    kernel.device = kernel.device.or(other.device);
    if kernel.rules.is_empty() {
        kernel.rules = other.rules;
    }
}
