//! Derives metrics that a page contains only indirectly. For example, it contains a rate in place
//! of a count, or shows that the pipeline of an operation was idle.
//!
//! The roofline sections of Nsight Compute collect operations per cycle
//! (`….sum.per_cycle_elapsed`). The count is this rate multiplied by the elapsed cycles of the
//! unit. Its precision is that of the numbers in the page.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use super::expected::used_names;
use super::kernel::PASSES;
use super::places::{self, at};

/// Metrics that contain the elapsed cycles of a unit, by the prefix of the unit's metrics. The
/// first of them that has a value is used.
const CYCLES: [(&str, &[&str]); 5] = [
    ("smsp__", &["smsp__cycles_elapsed.max", "sm__cycles_elapsed.max", "gpc__cycles_elapsed.max"]),
    ("sm__", &["sm__cycles_elapsed.max", "smsp__cycles_elapsed.max", "gpc__cycles_elapsed.max"]),
    ("l1tex__", &["l1tex__cycles_elapsed.max", "sm__cycles_elapsed.max"]),
    ("lts__", &["lts__cycles_elapsed.max", "lts__cycles_elapsed.avg"]),
    ("dram__", &["dram__cycles_elapsed.max", "dram__cycles_elapsed.avg"]),
];

const DRAM_BYTES: &str = "dram__bytes.sum";
const DRAM_PARTS: [&str; 2] = ["dram__bytes_read.sum", "dram__bytes_write.sum"];
const TIME: &str = "gpu__time_duration.sum";

/// Operations that are zero if a pipeline is idle: the prefix of their counters, and the names of
/// the pipeline's activity metrics without the suffix.
const IDLE: [(&str, &[&str]); 4] = [
    (
        "sm__ops_path_tensor_src_",
        &["sm__inst_executed_pipe_tensor", "sm__pipe_tensor_cycles_active"],
    ),
    ("smsp__sass_thread_inst_executed_op_hadd_", &["sm__inst_executed_pipe_fp16"]),
    ("smsp__sass_thread_inst_executed_op_hmul_", &["sm__inst_executed_pipe_fp16"]),
    ("smsp__sass_thread_inst_executed_op_hfma_", &["sm__inst_executed_pipe_fp16"]),
];

/// Other metrics that can be derived: the metric, its factors, its divisors, and a constant factor.
/// A sum over all multiprocessors divided by the sum of their cycles is a mean per cycle.
const PRODUCTS: [(&str, &[&str], &[&str], f64); 6] = [
    (
        "sm__cycles_active.avg.pct_of_peak_sustained_elapsed",
        &["sm__cycles_active.avg"],
        &["sm__cycles_elapsed.avg"],
        100.0,
    ),
    (
        "smsp__inst_issued.avg.per_cycle_active",
        &["smsp__inst_issued.sum"],
        &["smsp__cycles_active.sum"],
        1.0,
    ),
    (
        "smsp__inst_issued.avg.per_cycle_active",
        &["smsp__inst_issued.avg"],
        &["smsp__cycles_active.avg"],
        1.0,
    ),
    (
        "l1tex__t_bytes_pipe_lsu_mem_local_op_ld.sum",
        &["l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum"],
        &[],
        32.0,
    ),
    (
        "l1tex__t_bytes_pipe_lsu_mem_local_op_st.sum",
        &["l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum"],
        &[],
        32.0,
    ),
    (
        "smsp__thread_inst_executed_pred_on.sum",
        &["smsp__thread_inst_executed_pred_on_per_inst_executed.ratio", "smsp__inst_executed.sum"],
        &[],
        1.0,
    ),
];

/// Suffixes of the metrics that show whether a pipeline was active.
const ACTIVITY: [&str; 5] = [
    ".sum",
    ".sum.per_cycle_elapsed",
    ".avg.pct_of_peak_sustained_active",
    ".avg.pct_of_peak_sustained_elapsed",
    ".avg.per_cycle_active",
];

/// Returns whether an analysis uses the metric. This is the case if the catalogue contains it, if a
/// metric of the catalogue can be derived from it, or if it describes the launch or the device.
pub(super) fn is_used(name: &str) -> bool {
    let base = [".per_cycle_elapsed", ".per_second"].iter().find_map(|end| name.strip_suffix(end));
    let is = |name: &str| used_names().any(|used| used == name);
    let begins =
        ["launch__", "device__attribute_", "profiler__", "sm__inst_executed_pipe_", "sm__pipe_"];
    let factors = PRODUCTS.iter().flat_map(|(_, above, below, _)| above.iter().chain(*below));
    is(name)
        || base.is_some_and(is)
        || begins.iter().any(|begin| name.starts_with(begin))
        || CYCLES.iter().flat_map(|(_, cycles)| *cycles).any(|cycles| *cycles == name)
        || factors.into_iter().any(|factor| *factor == name)
}

/// Returns the names of all metrics that analyses use, and of the metrics from which they can be
/// derived.
pub(super) fn names() -> BTreeSet<String> {
    let mut names: BTreeSet<String> = used_names().map(str::to_owned).collect();
    for name in used_names().filter(|name| name.ends_with(".sum")) {
        names.extend(["per_cycle_elapsed", "per_second"].map(|end| format!("{name}.{end}")));
    }
    names.extend(CYCLES.iter().flat_map(|(_, cycles)| *cycles).map(|name| (*name).to_owned()));
    for pipeline in IDLE.iter().flat_map(|(_, pipelines)| *pipelines) {
        names.extend(ACTIVITY.map(|form| format!("{pipeline}{form}")));
    }
    let products = PRODUCTS.iter().flat_map(|(name, above, below, _)| {
        std::iter::once(name).chain(above.iter()).chain(below.iter())
    });
    names.extend(products.map(|name| (*name).to_owned()));
    names.extend(DRAM_PARTS.into_iter().chain([TIME, PASSES]).map(str::to_owned));
    names
}

/// Adds the metrics of the catalogue that can be derived from others. Returns their names.
pub(super) fn add(
    values: &mut BTreeMap<String, f64>,
    missing: &mut BTreeMap<String, String>,
) -> BTreeSet<String> {
    let mut before = places::empty();
    for (name, value) in values.iter() {
        if let Some(place) = places::place(name) {
            before[place] = *value;
        }
    }
    let mut after = before.clone();
    add_to_places(&mut after);
    let mut added = BTreeSet::new();
    for (place, name) in places::names() {
        if before[place].is_nan() && !after[place].is_nan() {
            missing.remove(name);
            values.insert(name.to_owned(), after[place]);
            added.insert(name.to_owned());
        }
    }
    added
}

/// Adds the metrics of the catalogue that can be derived from others. `values` is indexed by place.
pub(super) fn add_to_places(values: &mut [f64]) {
    let put = |values: &mut [f64], place: usize, value: Option<f64>| {
        if let Some(value) = value.filter(|value| value.is_finite()) {
            values[place] = value;
        }
    };
    let Following { counts, products } = &*FOLLOWING;
    for count in counts {
        if values[count.place].is_nan() {
            let found = count.by_rate(values).or_else(|| count.idle(values));
            put(values, count.place, found);
        }
    }
    for product in products {
        if values[product.place].is_nan() {
            let all = |places: &[usize]| {
                places.iter().map(|place| at(values, *place)).product::<Option<f64>>()
            };
            let (above, below) = (all(&product.above), all(&product.below));
            let found = above.zip(below).map(|(above, below)| product.constant * above / below);
            put(values, product.place, found);
        }
    }
}

/// Marks the places of metrics that can be derived from metrics whose places are marked.
pub(super) fn mark(available: &mut [bool]) {
    let Following { counts, products } = &*FOLLOWING;
    for count in counts {
        let has = |place: &usize| available[*place];
        let follows = has(&count.per_cycle) && count.cycles.iter().any(has)
            || has(&count.per_second) && has(&count.time)
            || !count.parts.is_empty() && count.parts.iter().all(has)
            || count.activity.iter().any(has);
        available[count.place] |= follows;
    }
    for product in products {
        let mut factors = product.above.iter().chain(&product.below);
        available[product.place] |= factors.all(|place| available[*place]);
    }
}

/// Metrics that can be derived from others, with the places of both.
struct Following {
    counts: Vec<Count>,
    products: Vec<Product>,
}

/// A count of the catalogue, with the metrics from which it can be derived.
struct Count {
    place: usize,
    per_cycle: usize,
    per_second: usize,
    time: usize,
    cycles: Vec<usize>,
    /// Metrics whose sum is the count. Empty if the count is not derived from parts.
    parts: Vec<usize>,
    /// Activity metrics of the pipeline, with all suffixes.
    activity: Vec<usize>,
}

struct Product {
    place: usize,
    above: Vec<usize>,
    below: Vec<usize>,
    constant: f64,
}

static FOLLOWING: LazyLock<Following> = LazyLock::new(|| {
    // Every name has a place, because `names` returns all of them.
    let place = |name: &str| places::place(name).unwrap_or_default();
    let all = |names: &[&str]| names.iter().map(|name| place(name)).collect::<Vec<usize>>();
    let count = |name: &'static str| {
        let cycles = CYCLES.iter().find(|(begin, _)| name.starts_with(begin));
        let pipelines = IDLE.iter().filter(|(begin, _)| name.starts_with(begin));
        let pipelines = pipelines.flat_map(|(_, pipelines)| *pipelines);
        let forms = pipelines.flat_map(|pipeline| ACTIVITY.map(|form| format!("{pipeline}{form}")));
        Count {
            place: place(name),
            per_cycle: place(&format!("{name}.per_cycle_elapsed")),
            per_second: place(&format!("{name}.per_second")),
            time: place(TIME),
            cycles: cycles.map_or_else(Vec::new, |(_, cycles)| all(cycles)),
            parts: if name == DRAM_BYTES { all(&DRAM_PARTS) } else { Vec::new() },
            activity: forms.map(|name| place(&name)).collect(),
        }
    };
    let counts = used_names().filter(|name| name.ends_with(".sum")).map(count).collect();
    let product = |(name, above, below, constant): &(&str, &[&str], &[&str], f64)| Product {
        place: place(name),
        above: all(above),
        below: all(below),
        constant: *constant,
    };
    Following { counts, products: PRODUCTS.iter().map(product).collect() }
});

impl Count {
    /// Returns the count as the sum of its parts. If a part is missing, returns a rate multiplied
    /// by the elapsed cycles or the time.
    fn by_rate(&self, values: &[f64]) -> Option<f64> {
        let get = |place: &usize| at(values, *place);
        let by_cycle = || {
            let rate = get(&self.per_cycle)?;
            Some(rate * self.cycles.iter().find_map(get)?)
        };
        // The page contains more digits of the bytes read and written than of the combined rate.
        if !self.parts.is_empty()
            && let Some(bytes) = self.parts.iter().map(get).sum::<Option<f64>>()
        {
            return Some(bytes);
        }
        by_cycle().or_else(|| Some(get(&self.per_second)? * get(&self.time)?))
    }

    /// Returns zero if a metric shows that the pipeline was idle.
    fn idle(&self, values: &[f64]) -> Option<f64> {
        self.activity.iter().any(|place| values[*place] == 0.0).then_some(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(values: &[(&str, f64)]) -> BTreeMap<String, f64> {
        let mut all = values.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        let mut missing = BTreeMap::new();
        let added = add(&mut all, &mut missing);
        all.into_iter().filter(|(name, _)| added.contains(name)).collect()
    }

    #[test]
    fn operations_per_cycle_give_operations() {
        let ffma = "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum";
        let rate = format!("{ffma}.per_cycle_elapsed");
        let counts = added(&[(&rate, 146.5), ("smsp__cycles_elapsed.max", 1000.0)]);
        assert_eq!(counts, BTreeMap::from([(ffma.to_owned(), 146_500.0)]));
        assert_eq!(added(&[(&rate, 146.5)]), BTreeMap::new(), "without the cycles");
        assert_eq!(
            added(&[(ffma, 7.0), (&rate, 146.5), ("smsp__cycles_elapsed.max", 1.0)]).len(),
            0
        );
        let bytes = added(&[("dram__bytes.sum.per_second", 4e9), (TIME, 1e-3)]);
        assert_eq!(bytes["dram__bytes.sum"], 4e6);
    }

    #[test]
    fn a_pipeline_that_stood_still_executed_nothing() {
        let still = added(&[("sm__inst_executed_pipe_tensor.sum", 0.0)]);
        assert_eq!(still["sm__ops_path_tensor_src_fp16_dst_fp32.sum"], 0.0);
        assert_eq!(added(&[("sm__inst_executed_pipe_tensor.sum", 4.0)]), BTreeMap::new());
        let half = added(&[("sm__inst_executed_pipe_fp16.avg.pct_of_peak_sustained_active", 0.0)]);
        assert_eq!(half["smsp__sass_thread_inst_executed_op_hfma_pred_on.sum"], 0.0);
    }
}
