//! Sizes of a kernel's arguments: shapes of its tensors, and values of its integers. The main type
//! is [`Work`].

use std::cell::{Cell, OnceCell};
use std::collections::BTreeMap;

use super::host::{Host, Made, Value};
use super::module::{Access, HostLaunch, Kernel, Module, Parameter};
use super::reach::Reach;
use crate::infer::names::{self, Meaning};
use crate::infer::wishes::Wishes;

/// Maximum number of elements of a tensor.
pub(super) const MAX_ELEMENTS: u64 = 1 << 20;

/// Default size of a dimension.
pub(super) const DIM: u64 = 128;

/// Maximum length of a chain of tensors, and maximum number of steps of a search, in the host code.
const MAX_DEPTH: usize = 8;
const MAX_STEPS: usize = 2_000;

/// Maximum number of dimensions of a tensor.
const MAX_RANK: i64 = 8;

/// Intermediate state of the guess of a Triton kernel's contract.
pub(super) struct Work<'w, 'a> {
    pub(super) kernel: &'w Kernel<'a>,
    pub(super) host: Option<Host<'w, 'a>>,
    pub(super) accesses: BTreeMap<&'a str, Access>,
    /// Sizes of the dimensions of tensors in the host code.
    dims: BTreeMap<(&'a str, i64), u64>,
    /// Number of dimensions of the host's tensors, as far as the host code shows it.
    ranks: BTreeMap<&'a str, i64>,
    /// Values of integers.
    pub(super) integers: BTreeMap<&'a str, u64>,
    /// Names of the integer parameters that are extents.
    pub(super) extents: Vec<&'a str>,
    strides: BTreeMap<&'a str, Vec<&'a str>>,
    /// Number of steps that a search through the host code may still take.
    steps: Cell<usize>,
    pub(super) wishes: &'w Wishes,
    /// Elements that the programs access, computed at first use.
    pub(super) reach: OnceCell<Reach>,
}

impl<'w, 'a> Work<'w, 'a> {
    pub(super) fn new(
        module: &Module<'a>,
        kernel: &'w Kernel<'a>,
        launch: Option<&'w HostLaunch<'a>>,
        wishes: &'w Wishes,
    ) -> Self {
        let mut work = Self {
            kernel,
            host: launch.map(Host::new),
            accesses: module.accesses(kernel),
            dims: BTreeMap::new(),
            ranks: BTreeMap::new(),
            integers: BTreeMap::new(),
            extents: Vec::new(),
            strides: BTreeMap::new(),
            steps: Cell::new(MAX_STEPS),
            wishes,
            reach: OnceCell::new(),
        };
        work.name_strides();
        work.size();
        while work.largest() > MAX_ELEMENTS && work.shrink() {}
        work
    }

    pub(super) fn is_pointer(&self, name: &str) -> bool {
        let by_name = || {
            let lower = name.to_ascii_lowercase();
            lower.ends_with("_ptr") || lower.ends_with("_ptrs") || lower.starts_with("ptr_")
        };
        self.accesses.contains_key(name)
            || by_name()
            || self.host_value(name).is_none()
                && self
                    .host
                    .as_ref()
                    .and_then(|host| host.tensor(name))
                    .is_some_and(|tensor| self.ranks.contains_key(tensor))
    }

    pub(super) fn host_value(&self, name: &str) -> Option<Value<'a>> {
        self.host.as_ref()?.value(name)
    }

    /// Returns the parameters that the kernel does not use as pointers.
    fn numbers(&self) -> Vec<&'w Parameter<'a>> {
        let parameters = self.kernel.parameters.iter();
        parameters.filter(|one| !self.accesses.contains_key(one.name)).collect()
    }

    /// Assigns strides to tensors by their names: `stride_am` belongs to `a`, and `x_row_stride` to
    /// `x`.
    fn name_strides(&mut self) {
        let pointers: Vec<(&str, String)> =
            self.accesses.keys().map(|name| (*name, short(name))).collect();
        for parameter in self.numbers() {
            let lower = parameter.name.to_ascii_lowercase();
            if !lower.contains("stride") {
                continue;
            }
            let parts: Vec<&str> = lower
                .split('_')
                .filter(|part| !matches!(*part, "" | "stride" | "strides"))
                .collect();
            let whole = parts.concat();
            let of = |pointer: &&(&'a str, String)| {
                let short = pointer.1.replace('_', "");
                parts.contains(&pointer.1.as_str()) || whole.starts_with(&short)
            };
            let longest = pointers.iter().filter(of).max_by_key(|(_, short)| short.len());
            if let Some((pointer, _)) = longest {
                self.strides.entry(pointer).or_default().push(parameter.name);
            }
        }
    }

    /// Sets a value for each integer, and a size for each dimension that host code names.
    fn size(&mut self) {
        let plain: Vec<String> =
            self.numbers().into_iter().map(|one| names::plain(one.name)).collect();
        for parameter in self.numbers() {
            match &self.host_value(parameter.name) {
                Some(Value::Dim(tensor, index) | Value::Stride(tensor, index)) => {
                    let rank = if *index < 0 { -index } else { index + 1 };
                    // A stride of the first dimension implies a second dimension.
                    let leads =
                        matches!(self.host_value(parameter.name), Some(Value::Stride(_, 0)));
                    let rank = if leads { 2 } else { rank };
                    let known = self.ranks.entry(tensor).or_default();
                    *known = (*known).max(rank).min(MAX_RANK);
                }
                Some(Value::Elements(tensor)) => {
                    self.ranks.entry(tensor).or_insert(1);
                }
                _ => {}
            }
        }
        for parameter in self.numbers() {
            let name = parameter.name;
            let value = self.host_value(name);
            let is_float =
                is_float(name) && value.is_none() || matches!(value, Some(Value::Float(_)));
            let is_flag =
                matches!(value, Some(Value::Bool(_) | Value::Text(_))) || self.is_flag(name);
            let is_stride = is_stride(name) || matches!(value, Some(Value::Stride(..)));
            if is_stride || is_float || is_flag || self.is_pointer(name) {
                continue;
            }
            let asked = self.wishes.integer(name);
            let (size, is_extent) = match names::integer(name, &plain) {
                _ if is_block(name) || setting(name).is_some() => continue,
                Meaning::Extent(size) => (size, true),
                Meaning::Fixed(size) => (size, false),
            };
            let size = match value {
                Some(Value::Dim(tensor, index)) if asked.is_some() => {
                    let size = asked.unwrap_or(size);
                    self.dims.insert((tensor, index), size);
                    size
                }
                _ if asked.is_some() => asked.unwrap_or(size),
                Some(Value::Integer(size)) => size.unsigned_abs(),
                Some(Value::Dim(tensor, index)) => {
                    let several = self.ranks.get(tensor).is_some_and(|rank| *rank > 1);
                    let size = if several { size.min(2 * DIM) } else { size };
                    *self.dims.entry((tensor, index)).or_insert(size)
                }
                _ => size,
            };
            if is_extent && asked.is_none() {
                self.extents.push(name);
            }
            self.integers.insert(name, size);
        }
        let ranks = self.ranks.clone();
        // Also stores a dimension that is counted from the end under its index from the start.
        let from_end: Vec<_> = self
            .dims
            .iter()
            .filter(|((_, index), _)| *index < 0)
            .map(|(key, size)| (*key, *size))
            .collect();
        for ((tensor, index), size) in from_end {
            let rank = ranks.get(tensor).copied().unwrap_or(1);
            self.dims.entry((tensor, rank + index)).or_insert(size);
        }
    }

    fn shape_of(&self, tensor: &'a str) -> Option<Vec<u64>> {
        self.steps.set(MAX_STEPS);
        self.shape_at_host(tensor, 0)
    }

    /// Returns the number of elements of the largest tensor or block.
    fn largest(&self) -> u64 {
        let pointers = self.kernel.parameters.iter().filter(|one| self.is_pointer(one.name));
        let shapes = pointers.map(|one| {
            let access = self.accesses.get(one.name).copied().unwrap_or_default();
            self.shape(one.name, access).0.into_iter().fold(1, u64::saturating_mul)
        });
        let sizes = self.integers.values().copied();
        shapes.chain(sizes).max().unwrap_or_default()
    }

    /// Halves the largest extent, if that is possible.
    fn shrink(&mut self) -> bool {
        let extents = self.extents.iter().filter(|name| self.integers[*name] > 2);
        let largest = extents.max_by_key(|name| self.integers[*name]).copied();
        let Some(largest) = largest else { return false };
        let half = self.integers[largest] / 2;
        self.integers.insert(largest, half);
        if let Some(Value::Dim(tensor, index)) = self.host_value(largest) {
            let rank = self.ranks.get(tensor).copied().unwrap_or(1);
            for place in [index, index + rank, index - rank] {
                if let Some(size) = self.dims.get_mut(&(tensor, place)) {
                    *size = half;
                }
            }
        }
        true
    }

    /// Returns the shape of a tensor of the host code, if it names any dimension of the tensor.
    fn shape_at_host(&self, tensor: &'a str, depth: usize) -> Option<Vec<u64>> {
        if depth > MAX_DEPTH {
            return None;
        }
        self.steps.set(self.steps.get().checked_sub(1)?);
        let made = self.host.as_ref().and_then(|host| host.made(tensor));
        match (self.ranks.get(tensor), made) {
            (_, Some(Made::Shape(dims))) => Some(
                dims.iter()
                    .map(|dim| self.evaluated_at(dim, depth + 1).unwrap_or(DIM).max(1))
                    .collect(),
            ),
            (_, Some(Made::Like(other))) => self.shape_at_host(other, depth + 1),
            (Some(rank), _) => {
                let elements = self.elements_of(tensor);
                let dim = |index| self.dims.get(&(tensor, index)).copied();
                match (*rank, elements) {
                    (1, Some(elements)) => Some(vec![elements]),
                    _ => {
                        let of = |index| dim(index).unwrap_or_else(|| self.dim(index, *rank));
                        Some((0..*rank).map(of).collect())
                    }
                }
            }
            (None, Some(Made::Same(other))) => self.shape_at_host(other, depth + 1),
            (None, None) => {
                let derived = self.host.as_ref()?.derived(tensor)?;
                self.shape_at_host(derived, depth + 1)
            }
        }
    }

    /// Returns the size of a dimension that no parameter name gives. It is the size of an extent
    /// whose name means rows or columns.
    fn dim(&self, index: i64, rank: i64) -> u64 {
        let named = |parts: &[&str]| {
            let is = |name: &&&str| parts.iter().any(|part| names::plain(name).contains(part));
            self.extents.iter().find(is).map(|name| self.integers[name])
        };
        if index + 1 == rank {
            let last = self.extents.last().map(|name| self.integers[name]);
            return named(&["col"]).or(last).unwrap_or(DIM).min(MAX_ELEMENTS / DIM);
        }
        let rows = if index == 0 { named(&["row", "batch"]) } else { None };
        rows.unwrap_or(DIM).min(MAX_ELEMENTS / DIM)
    }

    /// Returns the number of elements of a tensor, if a parameter receives it.
    fn elements_of(&self, tensor: &str) -> Option<u64> {
        let counts = self.integers.iter().find(
            |(name, _)| matches!(self.host_value(name), Some(Value::Elements(of)) if of == tensor),
        );
        counts.map(|(_, elements)| *elements)
    }

    /// Returns the value of an expression of the host code.
    pub(super) fn evaluated(&self, value: &Value<'a>) -> Option<u64> {
        self.steps.set(MAX_STEPS);
        self.evaluated_at(value, 0)
    }

    fn evaluated_at(&self, value: &Value<'a>, depth: usize) -> Option<u64> {
        let shape_of = |tensor| self.shape_at_host(tensor, depth + 1);
        let place = |shape: &[u64], index: i64| {
            usize::try_from(if index < 0 { shape.len() as i64 + index } else { index }).ok()
        };
        let product = |dims: &[u64]| dims.iter().fold(1_u64, |all, dim| all.saturating_mul(*dim));
        match value {
            Value::Integer(value) => u64::try_from(*value).ok(),
            Value::Dim(tensor, index) => {
                let shape = shape_of(tensor)?;
                shape.get(place(&shape, *index)?).copied()
            }
            Value::Elements(tensor) => Some(product(&shape_of(tensor)?)),
            Value::Stride(tensor, index) => {
                let shape = shape_of(tensor)?;
                Some(product(shape.get(place(&shape, *index)? + 1..)?))
            }
            Value::PowerOfTwo(inner) => {
                self.evaluated_at(inner, depth + 1)?.max(1).checked_next_power_of_two()
            }
            Value::Float(_) | Value::Bool(_) | Value::Text(_) => None,
        }
    }

    /// Returns the shape of the tensor that a pointer refers to, with the reason.
    pub(super) fn shape(&self, name: &'a str, access: Access) -> (Vec<u64>, String) {
        let tensor = self.host.as_ref().and_then(|host| host.tensor(name));
        if let Some(tensor) = tensor
            && let Some(shape) = self.shape_of(tensor)
        {
            return (
                shape,
                format!("the shape of `{tensor}` in the host code, with assumed sizes"),
            );
        }
        if let Some(strides) = self.strides.get(name) {
            let shape = self.shape_by_strides(strides);
            return (
                shape,
                format!("a dimension for each of its strides ({})", strides.join(", ")),
            );
        }
        let extents = self.extents.iter().map(|name| self.integers[name]);
        let has_rows = access.by_program
            && self.numbers().iter().any(|one| {
                is_stride(one.name) && self.strides.values().all(|known| !known.contains(&one.name))
            });
        if has_rows {
            let why = "rows with a stride whose name matches no tensor".to_owned();
            return (vec![self.dim(0, 2), self.dim(1, 2)], why);
        }
        if self.extents.is_empty() {
            let reach = self.reach();
            let (elements, why) = if access.by_program { &reach.all } else { &reach.one };
            return (vec![*elements], why.clone());
        }
        match access.by_program {
            true => {
                let all = extents.fold(1_u64, u64::saturating_mul).min(MAX_ELEMENTS);
                (vec![all], format!("the product of {}", self.extents.join(", ")))
            }
            false => {
                let least = extents.min().unwrap_or(DIM);
                (vec![least], "every program accesses the same elements".to_owned())
            }
        }
    }

    /// Returns a tensor's dimensions from its strides: the extents whose names match those of the
    /// strides. If the last dimension has no stride, it is added.
    fn shape_by_strides(&self, strides: &[&str]) -> Vec<u64> {
        let by_letter = |stride: &&str| {
            let letter = stride.to_ascii_lowercase().chars().last();
            let found = self.extents.iter().find(|name| {
                let plain = names::plain(name);
                plain.len() == 1 && plain.chars().next() == letter
                    || plain.len() > 1 && stride.to_ascii_lowercase().ends_with(&plain)
            });
            found.map(|name| self.integers[name])
        };
        match strides {
            [one] if by_letter(one).is_none() => {
                let columns = self.extents.iter().find(|name| names::plain(name).contains("col"));
                let columns =
                    columns.or(self.extents.last()).map_or(DIM, |name| self.integers[name]);
                vec![DIM, columns.min(MAX_ELEMENTS / DIM)]
            }
            all => all.iter().map(|stride| by_letter(stride).unwrap_or(DIM)).collect(),
        }
    }

    /// Returns the value of a stride parameter.
    pub(super) fn stride(&self, name: &str) -> u64 {
        if let Some(value) = self.host_value(name)
            && let Some(stride) = self.evaluated(&value)
        {
            return stride;
        }
        for (pointer, strides) in &self.strides {
            let Some(place) = strides.iter().position(|stride| *stride == name) else { continue };
            let access = self.accesses.get(pointer).copied().unwrap_or_default();
            let (shape, _) = self.shape(pointer, access);
            return shape.get(place + 1..).map_or(1, |rest| rest.iter().product());
        }
        1
    }
}

/// Returns the short name of a pointer: `x_ptr` and `X` are `x`.
fn short(name: &str) -> String {
    let lower = name.to_ascii_lowercase();
    let bare =
        lower.trim_end_matches("_ptrs").trim_end_matches("_ptr").trim_end_matches("_pointer");
    bare.trim_start_matches("ptr_").trim_start_matches("p_").to_owned()
}

pub(super) fn is_stride(name: &str) -> bool {
    name.to_ascii_lowercase().contains("stride")
}

/// Returns whether a constant is the size of a block.
pub(super) fn is_block(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    ["BLOCK", "TILE", "GROUP_SIZE", "GROUP_M", "CHUNK"].into_iter().any(|part| upper.contains(part))
        || matches!(upper.as_str(), "BM" | "BN" | "BK" | "BT" | "BS" | "BV" | "BD" | "BC")
}

/// Returns the value of a constant that is a compiler option, such as `k_stages`.
pub(super) fn setting(name: &str) -> Option<u64> {
    let upper = name.to_ascii_uppercase();
    let known = [("STAGE", 2), ("WARP", 4), ("CTAS", 1)];
    known.into_iter().find(|(part, _)| upper.contains(part)).map(|(_, value)| value)
}

pub(super) fn is_float(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let parts = [
        "eps",
        "scale",
        "alpha",
        "beta",
        "gamma",
        "slope",
        "momentum",
        "decay",
        "softcap",
        "temperature",
        "dropout_p",
        "prob",
        "factor",
        "threshold",
    ];
    parts.into_iter().any(|part| lower.contains(part))
        || matches!(lower.as_str(), "p" | "lr" | "p_drop")
}
