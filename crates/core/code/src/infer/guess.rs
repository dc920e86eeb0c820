//! Guesses a contract from the parameters and the code of a kernel. The main function is
//! [`contract`].

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::infer::body::{Body, Known, Use};
use crate::infer::entries::{Kernel, kernels};
use crate::infer::kinds::{Kind, bytes, kind};
use crate::infer::launch::{self, Launch};
use crate::infer::launched::{Launched, Passed, launched};
use crate::infer::lexer::{Source, read};
use crate::infer::names::{self, Meaning};
use crate::infer::wishes::{MAX_INTEGER, Wishes};
use crate::infer::{objects, pointers, shape};

/// Maximum number of elements of a tensor.
const MAX_ELEMENTS: u64 = 1 << 20;

/// Maximum number of loop iterations of all threads together, so that a first run ends soon, even
/// on a CPU.
const MAX_PASSES: u64 = 1 << 21;

/// Largest extent of a first run.
const LARGE: u64 = 65_536;

/// Smallest extent passed in the file that is halved together with larger ones. Smaller extents,
/// such as the length of a row, stay unchanged.
const SCALED: u64 = 2048;

/// Reasons for the value of a number.
const AS_PASSED: &str = "as the file passes it";
const AS_ASKED: &str = "as asked";

/// Entries in each row of a sparse matrix.
const PER_ROW: u64 = 4;

/// A parameter of the kernel, as the compiler reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompiledParameter {
    /// Name of the parameter, if the source contains it literally.
    pub name: Option<String>,
    /// C type of the parameter, e.g. `const float*`.
    pub c_type: String,
    /// Size of the parameter, in bytes.
    pub bytes: u32,
}

/// A guessed contract.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Guess {
    /// The fields `args` and `launch` of the contract's `kernel.io`; empty if the kernel needs
    /// none.
    pub io: Map<String, Value>,
    /// Reason for each argument, in order.
    pub reasons: Vec<String>,
    /// Reason for the launch.
    pub launch_reason: String,
}

impl Guess {
    /// Returns all assumptions, each as a sentence.
    pub fn assumptions(&self) -> Vec<String> {
        let names = self.io.get("args").and_then(Value::as_array).into_iter().flatten();
        let names = names.map(|arg| arg["name"].as_str().unwrap_or_default());
        let mut all: Vec<_> =
            names.zip(&self.reasons).map(|(name, reason)| format!("{name}: {reason}")).collect();
        all.extend((!self.io.is_empty()).then(|| format!("launch: {}", self.launch_reason)));
        all
    }
}

/// Guesses a contract for the kernel `name` with these parameters. Values in `wishes` replace
/// guesses. `source` is the kernel's code, if available.
///
/// # Errors
/// Returns a message with a remedy if no contract can provide a parameter.
pub fn contract(
    source: Option<&str>,
    name: &str,
    parameters: &[CompiledParameter],
    wishes: &Wishes,
) -> Result<Guess, String> {
    let source = source.map(read).unwrap_or_default();
    let all = kernels(&source);
    let plain = name.split('<').next().unwrap_or(name).rsplit("::").next().unwrap_or(name);
    let kernel = all
        .iter()
        .find(|kernel| kernel.name == plain && kernel.parameters.len() == parameters.len());
    let named = parameters.iter().enumerate().map(|(index, parameter)| {
        let own = kernel.map(|kernel| kernel.parameters[index].to_owned());
        parameter.name.clone().or(own).unwrap_or_else(|| format!("arg{index}"))
    });
    let named = named.collect::<Vec<_>>();
    let body = kernel.map_or(&[][..], |kernel| &source.tokens[kernel.body.clone()]);
    let object = |name: &str| {
        let mut objects = kernel.iter().flat_map(|kernel| &kernel.objects);
        objects.find(|(object, _)| *object == name).copied()
    };
    let kinds = parameters.iter().zip(&named).map(|(parameter, name)| match object(name) {
        Some((_, is_surface)) => objects::object(body, name, is_surface).map(Kind::Object),
        None => kind(parameter, name, &source.tokens),
    });
    let kinds = kinds.collect::<Result<Vec<_>, _>>()?;
    Ok(Work::new(&source, kernel, (&named, &kinds), wishes).guess())
}

/// Intermediate state of the guess of a contract.
struct Work<'w> {
    kernel: Option<&'w Kernel<'w>>,
    /// Tokens of the whole source.
    tokens: &'w [&'w str],
    body: Body<'w>,
    names: &'w [String],
    kinds: &'w [Kind],
    constants: BTreeMap<&'w str, u64>,
    /// Values of the integers, and whether each may be reduced.
    integers: Vec<(&'w str, u64, bool)>,
    /// Launch parameters of the kernel that the source determines.
    launched: Launched,
    wishes: &'w Wishes,
    /// Array of the row pointers of a sparse matrix.
    row_pointer: Option<&'w str>,
}

impl<'w> Work<'w> {
    fn new(
        source: &'w Source<'w>,
        kernel: Option<&'w Kernel<'w>>,
        (names, kinds): (&'w [String], &'w [Kind]),
        wishes: &'w Wishes,
    ) -> Self {
        let each = || names.iter().map(String::as_str).zip(kinds);
        let is_pointer = |kind: &Kind| matches!(kind, Kind::Pointer { .. } | Kind::Pointers { .. });
        let pointers = each().filter(|(_, kind)| is_pointer(kind));
        let pointers = pointers.map(|(name, _)| name);
        let tokens = kernel.map_or(&[][..], |kernel| &source.tokens[kernel.body.clone()]);
        let shared = launch::dynamic_array(tokens).map(|(name, _)| name);
        let pointers = pointers.chain(shared).collect::<Vec<_>>();
        let mut constants = source.constants.clone();
        for (kind, name) in kernel.map_or(&[][..], |kernel| &kernel.template) {
            if !matches!(*kind, "typename" | "class") {
                constants
                    .insert(name, kernel.map_or(1, |it| it.template_value(name, &source.tokens)));
            }
        }
        let whole =
            |(name, kind): &(&'w str, &Kind)| matches!(kind, Kind::Integer).then_some(*name);
        let plain = each().filter_map(|it| whole(&it)).map(names::plain).collect::<Vec<_>>();
        let integers =
            each().filter_map(|it| whole(&it)).map(|name| match names::integer(name, &plain) {
                Meaning::Extent(value) => (name, value, true),
                Meaning::Fixed(value) => (name, value, false),
            });
        let is_index = |kind: &Kind| matches!(kind, Kind::Pointer { dtype, .. } if dtype.contains("int") && !dtype.ends_with('8'));
        let row_pointer = each().find(|(name, kind)| is_index(kind) && names::is_row_pointer(name));
        let launched = kernel
            .map(|kernel| launched(kernel.name, names.len(), &source.tokens, &source.constants));
        let mut work = Self {
            kernel,
            launched: wishes.over(launched.unwrap_or_default(), names),
            wishes,
            tokens: &source.tokens,
            body: Body::new(tokens, &pointers),
            names,
            kinds,
            constants,
            integers: integers.collect(),
            row_pointer: row_pointer.map(|(name, _)| name),
        };
        work.one_block();
        work.take_given();
        work
    }

    /// Sets the integers to the values that the source passes to the kernel. Extents that are large
    /// for a first run are halved together, since they often depend on each other.
    fn take_given(&mut self) {
        let given = self.integers.iter().map(|(name, ..)| self.given(name)).collect::<Vec<_>>();
        for ((name, value, shrinks), given) in self.integers.iter_mut().zip(given) {
            let is_asked = self.wishes.integer(name).is_some();
            *shrinks &= !is_asked;
            match given {
                Some(Passed::Integer(given))
                    if given <= MAX_INTEGER && (given > 0 || !*shrinks) =>
                {
                    *value = given;
                    // A large number of iterations makes a first run long, as a large extent does.
                    *shrinks |= given >= SCALED && !is_asked;
                }
                _ => {}
            }
        }
        let extents = || self.integers.iter().filter(|it| it.2).map(|it| it.1);
        let halvings = extents().max().unwrap_or(1).div_ceil(LARGE).next_power_of_two().ilog2();
        for (_, value, _) in self.integers.iter_mut().filter(|it| it.2 && it.1 >= SCALED) {
            *value >>= halvings;
        }
    }

    /// Returns the number that the source passes for a parameter.
    fn given(&self, name: &str) -> Option<Passed> {
        let index = self.names.iter().position(|other| other == name)?;
        *self.launched.passed.get(index)?
    }

    fn why_given(&self, name: &str) -> &'static str {
        if self.wishes.values.contains_key(name) { AS_ASKED } else { AS_PASSED }
    }

    /// Returns whether the integer parameters have the values that the source passes.
    fn is_as_given(&self) -> bool {
        let same = |(name, value, _): &(&str, u64, bool)| {
            let own = !self.wishes.values.contains_key(*name);
            own && self.given(name) == Some(Passed::Integer(*value))
        };
        self.integers.iter().all(same)
    }

    /// Limits the extents to one block if the kernel does not use the block index.
    fn one_block(&mut self) {
        let tokens = self.body.tokens;
        if tokens.is_empty() || tokens.iter().any(|token| token.starts_with("blockIdx")) {
            return;
        }
        let pairs =
            tokens.windows(2).any(|pair| matches!(pair, ["2", "*"] | ["*", "2"] | ["<<", "1"]));
        for (_, value, shrinks) in &mut self.integers {
            if *shrinks {
                *value = if pairs { 512 } else { 256 };
            }
        }
    }

    fn values(&self) -> Vec<(&'w str, u64)> {
        self.integers.iter().map(|(name, value, _)| (*name, *value)).collect()
    }

    fn guess(mut self) -> Guess {
        let (launch, known, uses) = loop {
            let (launch, known) = self.laid_out();
            let uses = self.uses(&known);
            let fits = uses.iter().all(|(used, lanes)| {
                used.elements.unwrap_or(0).saturating_mul(*lanes) <= MAX_ELEMENTS
            });
            if fits && self.passes(&known) <= MAX_PASSES || !self.smaller() {
                break (launch, known, uses);
            }
        };
        let most = uses.iter().filter_map(|(used, _)| used.elements).max();
        let most = most.unwrap_or_else(|| self.most_elements()).clamp(1, MAX_ELEMENTS);
        let (mut args, mut reasons) = (Vec::new(), Vec::new());
        // The tensors of arrays of pointers, textures and surfaces are not parameters.
        let mut beside = Vec::new();
        let mut used = uses.iter();
        for (index, (name, kind)) in self.names.iter().zip(self.kinds).enumerate() {
            let (arg, reason) = match kind {
                Kind::Pointer { dtype, lanes, is_const } => {
                    let used = used.next().map(|(used, _)| *used).unwrap_or_default();
                    self.tensor(index, (*dtype, *lanes, *is_const), used, most, &known)
                }
                Kind::Pointers { dtype, lanes, is_const } => {
                    let used = used.next().map(|(used, _)| *used).unwrap_or_default();
                    let tensor =
                        self.tensor(index, (*dtype, *lanes, *is_const), used, most, &known);
                    let count = pointers::count(&self.body, name, &known);
                    let array = pointers::array(name, count, tensor, self.names);
                    beside.push(array.tensor);
                    array.argument
                }
                Kind::Object(object) => {
                    let named = (name.as_str(), index + 1);
                    let [argument, tensor] = object.arguments(named, &self.values(), self.names);
                    beside.push(tensor);
                    argument
                }
                Kind::Integer => self.integer(name),
                Kind::Float => {
                    let (value, why) = match self.given(name) {
                        Some(Passed::Float(value)) => (value, self.why_given(name)),
                        #[expect(clippy::cast_precision_loss, reason = "at most 2^31")]
                        Some(Passed::Integer(value)) if value <= MAX_INTEGER => {
                            (value as f64, self.why_given(name))
                        }
                        _ => (names::float(name), "by its name"),
                    };
                    (
                        json!({"name": name, "type": "float", "value": value}),
                        format!("{value}, {why}"),
                    )
                }
                Kind::Bool => (
                    json!({"name": name, "type": "bool", "value": true}),
                    "true; the source does not determine the value".to_owned(),
                ),
            };
            args.push(arg);
            reasons.push(reason);
        }
        for (arg, reason) in beside {
            args.push(arg);
            reasons.push(reason);
        }
        let mut io = Map::new();
        io.insert("args".to_owned(), Value::Array(args));
        io.insert("launch".to_owned(), launch.json());
        Guess { io, reasons, launch_reason: launch.notes.join("; ") }
    }

    /// Returns the launch for the current values, and the quantities known then.
    fn laid_out(&self) -> (Launch, Known<'w>) {
        let values = self.values();
        let mut known = Known { grid: [1; 3], block: [1; 3], ..Known::default() };
        known.integers = self.constants.clone();
        known.integers.extend(values.iter().copied());
        let launch = match self.kernel {
            Some(kernel) => {
                let arrays = self.names.iter().zip(self.kinds);
                let arrays = arrays.filter(|(_, kind)| matches!(kind, Kind::Pointers { .. }));
                let setting = launch::Setting {
                    tokens: self.tokens,
                    integers: &values,
                    constants: &self.constants,
                    given: &self.launched,
                    as_given: self.is_as_given(),
                    asks_block: self.wishes.block.is_some(),
                    grid: self.wishes.grid,
                    arrays: &arrays.map(|(name, _)| name.as_str()).collect::<Vec<_>>(),
                };
                launch::launch(kernel, &self.body, &setting)
            }
            None => self.unseen(&values),
        };
        known.block = launch.block;
        known.grid = launch::extents(&launch, &known);
        for (name, kind) in self.names.iter().zip(self.kinds) {
            if let Kind::Pointer { dtype, .. } = kind
                && dtype.contains("int")
            {
                known.contents.insert(name, self.content(name, dtype, &known));
            }
        }
        (launch, known)
    }

    /// Returns the launch of a kernel whose code is not available.
    fn unseen(&self, values: &[(&str, u64)]) -> Launch {
        let grid = match values.first() {
            Some((name, _)) => format!("ceil_div({name}, 256)"),
            None => "16".to_owned(),
        };
        Launch {
            grid: [Some(grid), None, None],
            block: [256, 1, 1],
            shared_bytes: 0,
            notes: vec!["256 threads per block along x: the code does not determine it".to_owned()],
        }
    }

    /// Returns the largest number for an array of integers, small enough to be a valid index or
    /// bin.
    fn content(&self, name: &str, dtype: &str, known: &Known<'_>) -> u64 {
        if self.row_pointer == Some(name) {
            return self.rows(known) * PER_ROW;
        }
        let bins = self.integers.iter().find(|(name, value, shrinks)| {
            !shrinks && *value == 256 && names::plain(name) != "max"
        });
        let extents =
            self.integers.iter().filter(|(_, _, shrinks)| *shrinks).map(|(_, value, _)| *value);
        let least = extents.min().unwrap_or(256).min(if bins.is_some() { 256 } else { u64::MAX });
        let constant = self
            .constants
            .iter()
            .find(|(name, value)| name.to_ascii_uppercase().contains("BIN") && **value <= 1 << 16);
        let least = constant.map_or(least, |(_, bins)| least.min(*bins));
        let own =
            if dtype.ends_with('8') { if dtype == "int8" { 128 } else { 256 } } else { u64::MAX };
        least.min(own).clamp(2, 1 << 16) - 1
    }

    /// Returns the number of rows of the sparse matrix.
    fn rows(&self, known: &Known<'_>) -> u64 {
        let named = self.integers.iter().find(|(name, _, shrinks)| {
            *shrinks && !matches!(names::plain(name).as_str(), "nnz" | "cols" | "ncols" | "columns")
        });
        named.map_or(known.grid[0] * known.block[0], |(_, rows, _)| *rows).min(4096)
    }

    fn uses(&self, known: &Known<'_>) -> Vec<(Use, u64)> {
        let each = self.names.iter().zip(self.kinds);
        let pointers = each.filter_map(|(name, kind)| match kind {
            Kind::Pointer { dtype, lanes, .. } => Some((name, bytes(dtype) * lanes, *lanes, false)),
            Kind::Pointers { dtype, lanes, .. } => Some((name, bytes(dtype) * lanes, *lanes, true)),
            _ => None,
        });
        let used = |(name, bytes, lanes, is_array): (&String, u64, u64, bool)| match is_array {
            true => (pointers::used(&self.body, name, bytes, known), lanes),
            false => (self.body.used(name, bytes, known), lanes),
        };
        pointers.map(used).collect()
    }

    /// Returns the total number of loop iterations of all threads. Loops over threads are not
    /// counted.
    fn passes(&self, known: &Known<'_>) -> u64 {
        let threads = known.grid.iter().chain(&known.block).product::<u64>();
        let counters = self.body.loops.iter().filter(|counter| {
            !self.body.is_geometric(counter, "threadIdx")
                && !self.body.is_geometric(counter, "blockIdx")
        });
        counters.fold(threads, |passes, counter| {
            let bounds = self.body.bounds.get(counter).into_iter().flatten();
            let uppers = bounds.filter_map(|(range, _)| self.body.upper(range.clone(), known));
            passes.saturating_mul(uppers.map(|upper| upper.value).max().unwrap_or(1).max(1))
        })
    }

    /// Halves the largest extent. Returns whether an extent could be halved.
    fn smaller(&mut self) -> bool {
        let largest = self.integers.iter().filter(|it| it.2).map(|it| it.1).max().unwrap_or(0);
        if largest <= 32 {
            return false;
        }
        for (_, value, _) in self.integers.iter_mut().filter(|it| it.2 && it.1 == largest) {
            *value /= 2;
        }
        true
    }

    /// Returns the number of elements of an array whose accesses do not determine it.
    fn most_elements(&self) -> u64 {
        let extents = self.integers.iter().filter(|(_, _, shrinks)| *shrinks);
        let product = extents.fold(1_u64, |product, (_, value, _)| product.saturating_mul(*value));
        if product <= 1 { 65_536 } else { product }
    }

    fn tensor(
        &self,
        index: usize,
        (dtype, lanes, is_const): (&str, u64, bool),
        used: Use,
        most: u64,
        known: &Known<'_>,
    ) -> (Value, String) {
        let name = &self.names[index];
        let (mut elements, how) = match used.elements {
            Some(elements) => (elements.min(MAX_ELEMENTS), "as far as its indices reach"),
            None => (most, "as many as the largest tensor has: its indices do not determine it"),
        };
        elements *= lanes;
        let unseen = !used.read && !used.written;
        let role = match (is_const, used.written, used.read) {
            (true, ..) => "input",
            (false, true, false) => "output",
            (false, false, true) => "input",
            (false, ..) => "inout",
        };
        let mut spec = Map::new();
        let rows = self.row_pointer == Some(name);
        if rows {
            elements = self.rows(known) + 1;
        }
        let row = shape::row_length(&self.body, name, known)
            .filter(|row| lanes == 1 && !rows && elements.is_multiple_of(*row) && elements > *row);
        let shape = row.map_or_else(|| json!([elements]), |row| json!([elements / row, row]));
        spec.insert("shape".to_owned(), shape);
        spec.insert("dtype".to_owned(), json!(dtype));
        let seed = index + 1;
        let (init, content) = if rows {
            let each = format!("row offsets, with {PER_ROW} entries per row on average");
            let high = self.rows(known) * PER_ROW;
            (json!({"kind": "offsets", "low": 0, "high": high, "seed": seed}), each)
        } else if used.atomic {
            (json!({"kind": "zeros"}), "zeros, since the kernel adds to it".to_owned())
        } else if let Some(high) = known.contents.get(name.as_str()) {
            let init = json!({"kind": "randint", "low": 0, "high": high + 1, "seed": seed});
            (init, format!("whole numbers below {}, which can be indices", high + 1))
        } else if dtype == "bool" {
            (json!({"kind": "randint", "low": 0, "high": 2, "seed": seed}), "random".to_owned())
        } else {
            (
                json!({"kind": "uniform", "low": 0.0, "high": 1.0, "seed": seed}),
                "random, 0 to 1".to_owned(),
            )
        };
        let mut reason = format!("{role}, {elements} elements, {how}");
        if role != "output" {
            spec.insert("init".to_owned(), init);
            reason.push_str(&format!("; {content}"));
        }
        if unseen && self.kernel.is_none() {
            reason.push_str("; that it is an array of float32 is a guess too");
        }
        (json!({"name": name, "type": "tensor", "role": role, "tensor_spec": spec}), reason)
    }

    fn integer(&self, name: &str) -> (Value, String) {
        let found = self.integers.iter().find(|(other, ..)| *other == name);
        let (mut value, extent) = found.map_or((1, false), |(_, value, extent)| (*value, *extent));
        let mut reason = if extent { "an extent, by its name and use" } else { "by its name" };
        let smaller;
        match self.given(name) {
            Some(Passed::Integer(given)) if given == value => reason = self.why_given(name),
            Some(Passed::Integer(given)) if given > value && given <= MAX_INTEGER => {
                smaller = format!("less than the {given} that the file passes");
                reason = &smaller;
            }
            _ => {}
        }
        if names::plain(name) == "nnz" && self.row_pointer.is_some() {
            value = self
                .values()
                .iter()
                .find(|(other, _)| *other != name)
                .map_or(value, |(_, rows)| rows * PER_ROW);
            reason = "entries of the sparse matrix";
        }
        (json!({"name": name, "type": "int", "value": value}), format!("{value}, {reason}"))
    }
}

#[cfg(test)]
#[path = "guess_tests.rs"]
mod tests;
