//! Parses the report of `ptxas -v` on each kernel.

use std::collections::HashMap;

use warpgauge_model::Resources;

/// Resource usage that ptxas prints.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub registers: Option<u32>,
    pub stack: Option<u32>,
    pub spill_stores: Option<u32>,
    pub spill_loads: Option<u32>,
    pub shared: Option<u32>,
}

impl Usage {
    /// Adds facts to `resources` that the compiled image does not contain.
    pub(crate) fn complete(&self, resources: &mut Resources) {
        resources.spill_store_bytes = self.spill_stores;
        resources.spill_load_bytes = self.spill_loads;
        resources.stack_bytes = self.stack.or(resources.stack_bytes);
    }
}

/// Returns the resource usage of each kernel, by symbol.
pub(crate) fn usage(log: &str) -> HashMap<&str, Usage> {
    let mut found: HashMap<&str, Usage> = HashMap::new();
    let mut properties_of = None;
    let mut entry = None;
    for line in log.lines() {
        if let Some(symbol) = line.split_once("Function properties for ").map(|(_, s)| s.trim()) {
            properties_of = Some(symbol);
        } else if let Some((_, rest)) = line.split_once("Compiling entry function '") {
            entry = rest.split_once('\'').map(|(symbol, _)| symbol);
        } else if line.contains("bytes stack frame")
            && let Some(symbol) = properties_of.take()
        {
            let usage = found.entry(symbol).or_default();
            usage.stack = number_before(line, " bytes stack frame");
            usage.spill_stores = number_before(line, " bytes spill stores");
            usage.spill_loads = number_before(line, " bytes spill loads");
        } else if line.contains("Used ")
            && line.contains(" registers")
            && let Some(symbol) = entry.take()
        {
            let usage = found.entry(symbol).or_default();
            usage.registers = number_before(line, " registers");
            usage.shared = Some(number_before(line, " bytes smem").unwrap_or(0));
        }
    }
    found
}

fn number_before(line: &str, unit: &str) -> Option<u32> {
    let (before, _) = line.split_once(unit)?;
    let digits = before.rsplit(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok()
}

/// Returns the log without the usage report of ptxas, which the structured result contains.
pub(crate) fn without_usage(log: &str) -> String {
    let is_usage = |line: &str| {
        line.starts_with("ptxas info")
            || line.starts_with("ptxas         .")
            || (line.starts_with("    ") && line.contains(" bytes stack frame, "))
    };
    let mut kept = String::with_capacity(log.len());
    for line in log.lines().filter(|line| !is_usage(line)) {
        kept.push_str(line);
        kept.push('\n');
    }
    kept.truncate(kept.trim_end().len());
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "\
kernel.cu(1): warning #177-D: variable \"x\" was declared but never referenced
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'a' for 'sm_90'
ptxas info    : Function properties for a
ptxas         .     40 bytes stack frame, 36 bytes spill stores, 44 bytes spill loads
ptxas info    : Used 14 registers, used 1 barriers, 40 bytes cumulative stack size, 1028 bytes smem
ptxas info    : Compile time = 1.028 ms
ptxas info    : Compiling entry function 'b' for 'sm_90'
ptxas info    : Function properties for b
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 255 registers, 376 bytes cmem[0]
";

    #[test]
    fn usage_of_each_kernel() {
        let found = usage(LOG);
        assert_eq!(
            found["a"],
            Usage {
                registers: Some(14),
                stack: Some(40),
                spill_stores: Some(36),
                spill_loads: Some(44),
                shared: Some(1028),
            }
        );
        assert_eq!(found["b"].registers, Some(255));
        assert_eq!(found["b"].spill_loads, Some(0));
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn warnings_stay_in_the_log() {
        let kept = without_usage(LOG);
        assert!(kept.starts_with("kernel.cu(1): warning"));
        assert_eq!(kept.lines().count(), 1);
    }
}
