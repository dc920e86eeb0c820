//! Guesses the contract of a Triton kernel from its module. The main function is [`contract`].

use serde_json::{Map, Value as Json, json};

use super::host::Value;
use super::module::{Access, Module, Parameter};
use super::sizes::{DIM, Work, is_block, is_float, is_stride, setting};
use crate::infer::guess::Guess;
use crate::infer::names;
use crate::infer::wishes::Wishes;

/// A guessed contract of a Triton kernel.
#[derive(Debug, Clone, PartialEq)]
pub struct TritonGuess {
    pub kernel_name: String,
    /// Names of all kernels of the module that no other kernel calls.
    pub entries: Vec<String>,
    pub guess: Guess,
}

/// Guesses a contract for a kernel of a module, by default the first that no other kernel calls.
/// Values in `wishes` replace guesses.
///
/// # Errors
/// Returns a message with a remedy if the module has no such kernel.
pub fn contract(source: &str, wishes: &Wishes) -> Result<TritonGuess, String> {
    let module = Module::of(source);
    let entries = module.entries();
    let all = module.kernels.iter().map(|kernel| kernel.name).collect::<Vec<_>>().join(", ");
    let kernel = match wishes.kernel.as_deref() {
        Some(wanted) => module.kernels.iter().find(|kernel| kernel.name == wanted).ok_or_else(|| {
            format!("the file has no Triton kernel `{wanted}`; it has: {all}")
        })?,
        None => entries.first().copied().or(module.kernels.first()).ok_or_else(|| {
            "the file has no function with @triton.jit at its top level: write the contract by hand".to_owned()
        })?,
    };
    let launch = module.launch(kernel);
    let guess = Work::new(&module, kernel, launch.as_ref(), wishes).guess();
    let entries = entries.into_iter().map(|kernel| kernel.name.to_owned()).collect();
    Ok(TritonGuess { kernel_name: kernel.name.to_owned(), entries, guess })
}

impl<'a> Work<'_, 'a> {
    fn guess(&self) -> Guess {
        let (mut args, mut reasons) = (Vec::new(), Vec::new());
        let mut seed = 0;
        for parameter in &self.kernel.parameters {
            let name = parameter.name;
            if self.kernel.chosen.contains(name) {
                continue;
            }
            let (arg, reason) = if parameter.is_constant {
                match self.constant(parameter) {
                    Some(constant) => constant,
                    None => continue,
                }
            } else if self.is_pointer(name) {
                seed += 1;
                self.tensor(name, seed)
            } else {
                match self.scalar(parameter) {
                    Some(scalar) => scalar,
                    None => continue,
                }
            };
            args.push(arg);
            reasons.push(reason);
        }
        // The function around a kernel is called with constants, by the names of its parameters.
        let own = |name: &str| self.kernel.parameters.iter().any(|one| one.name == name);
        let around = self.kernel.around.iter().filter(|one| !own(one.name));
        for (arg, reason) in around.filter_map(|parameter| self.constant(parameter)) {
            args.push(arg);
            reasons.push(format!("for the function that defines the kernel; {reason}"));
        }
        let (launch, launch_reason) = self.launch();
        let mut io = Map::new();
        io.insert("args".to_owned(), Json::Array(args));
        io.insert("launch".to_owned(), launch);
        Guess { io, reasons, launch_reason }
    }

    fn tensor(&self, name: &'a str, seed: u64) -> (Json, String) {
        let access = self.accesses.get(name).copied().unwrap_or_default();
        let (shape, why) = self.shape(name, access);
        let lower = name.to_ascii_lowercase();
        let named_index = ["idx", "index", "indices", "_ids", "lens", "offsets"];
        let is_index = access.is_index || named_index.into_iter().any(|part| lower.contains(part));
        let mut spec = Map::new();
        spec.insert("shape".to_owned(), json!(shape));
        if is_index {
            spec.insert("dtype".to_owned(), json!("int64"));
        }
        let fill = match (is_index, access) {
            (true, _) => {
                let least = self.extents.iter().map(|name| self.integers[name]).min();
                let high = least.unwrap_or(2).clamp(2, DIM);
                json!({"kind": "randint", "low": 0, "high": high, "seed": seed})
            }
            (false, Access { is_atomic: true, .. }) => json!({"kind": "zeros"}),
            (false, _) => json!({"kind": "randn", "seed": seed}),
        };
        let mut arg = json!({"name": name, "type": "tensor"});
        let (role, how) = match access {
            Access { reads: true, writes: true, .. } => (Some("inout"), "is read and written"),
            Access { writes: true, .. } => (Some("output"), "is written"),
            Access { reads: true, .. } => (None, "is read"),
            _ => (None, "is passed on"),
        };
        if let Some(role) = role {
            arg["role"] = json!(role);
        }
        if role != Some("output") {
            spec.insert("init".to_owned(), fill);
        }
        arg["tensor_spec"] = Json::Object(spec);
        (arg, format!("{how}; {why}"))
    }

    fn scalar(&self, parameter: &Parameter<'a>) -> Option<(Json, String)> {
        let name = parameter.name;
        if let Some((kind, value)) = self.asked(name) {
            let arg = json!({"name": name, "type": kind, "value": value});
            return Some((arg, "as asked".to_owned()));
        }
        if parameter.default.is_some() {
            return None;
        }
        let value = self.host_value(name);
        if is_stride(name) || matches!(value, Some(Value::Stride(..))) {
            let stride = self.stride(name);
            return Some((
                json!({"name": name, "type": "int", "value": stride}),
                "the stride of a contiguous tensor".to_owned(),
            ));
        }
        let given = match &value {
            Some(Value::Float(value)) => Some(json!(value)),
            Some(Value::Bool(value)) => Some(json!(value)),
            _ => None,
        };
        if let Some(given) = given {
            let kind = if given.is_boolean() { "bool" } else { "float" };
            let arg = json!({"name": name, "type": kind, "value": given});
            return Some((arg, "as the host code gives it".to_owned()));
        }
        if is_float(name) && value.is_none() {
            let value = names::float(name);
            let arg = json!({"name": name, "type": "float", "value": value});
            return Some((arg, format!("{value}, by its name")));
        }
        let known = value.as_ref().and_then(|value| self.evaluated(value));
        let size = known.or_else(|| self.integers.get(name).copied()).unwrap_or(1);
        let reason = if value.is_some() {
            "as the host code gives it, with assumed sizes"
        } else {
            "by its name"
        };
        Some((json!({"name": name, "type": "int", "value": size}), reason.to_owned()))
    }

    /// Returns the argument for a constant, or `None` if its default suffices.
    fn constant(&self, parameter: &Parameter<'a>) -> Option<(Json, String)> {
        let name = parameter.name;
        let value = self.host_value(name);
        let made = |kind: &str, value: Json, reason: &str| {
            let arg = json!({"name": name, "type": kind, "value": value, "is_meta": true});
            Some((arg, reason.to_owned()))
        };
        if let Some((kind, value)) = self.asked(name) {
            return made(kind, value, "as asked");
        }
        let host = "as the host code gives it";
        match &value {
            Some(Value::Bool(value)) => return made("bool", json!(value), host),
            Some(Value::Float(value)) => return made("float", json!(value), host),
            Some(Value::Text(value)) => return made("str", json!(value), host),
            Some(Value::Integer(value)) => return made("int", json!(value), host),
            Some(value) => {
                if let Some(size) = self.evaluated(value) {
                    return made(
                        "int",
                        json!(size),
                        "as the host code gives it, with assumed sizes",
                    );
                }
            }
            None => {}
        }
        if parameter.default.is_some() {
            return None;
        }
        let upper = name.to_ascii_uppercase();
        let by_name = "by its name and use: host code does not determine it";
        if self.is_flag(name) {
            return made("bool", json!(false), by_name);
        }
        if upper.contains("DTYPE") {
            return made("str", json!("tl.float32"), by_name);
        }
        if upper.contains("ACTIVATION") {
            return made("str", json!(""), by_name);
        }
        if is_float(name) {
            return made("float", json!(names::float(name)), by_name);
        }
        if let Some(value) = setting(name) {
            return made("int", json!(value), by_name);
        }
        if !is_block(name) {
            return made("int", json!(self.integers.get(name).copied().unwrap_or(1)), by_name);
        }
        made("int", json!(self.block(name)), by_name)
    }

    /// Returns kind and value of a number that the caller asks for.
    fn asked(&self, name: &str) -> Option<(&'static str, Json)> {
        let value = self.wishes.values.get(name)?;
        let integer = self.wishes.integer(name).map(|value| ("int", json!(value)));
        Some(integer.unwrap_or(("float", json!(value))))
    }

    /// Returns whether a constant is a Boolean, by its name or because it is the whole condition of
    /// an `if`.
    pub(super) fn is_flag(&self, name: &str) -> bool {
        let upper = name.to_ascii_uppercase();
        let flags = ["IS_", "HAS_", "HAVE_", "USE_", "EVEN_", "APPLY_", "ENABLE_", "DO_", "WITH_"];
        let decides = |line: &Vec<&str>| match line[..] {
            ["if" | "elif", ref condition @ .., ":"] => {
                condition == [name] || condition == ["not", name]
            }
            _ => false,
        };
        let mut constants = self.kernel.parameters.iter().filter(|one| one.is_constant);
        constants.any(|one| one.name == name)
            && (flags.into_iter().any(|flag| upper.starts_with(flag))
                || upper.contains("CAUSAL")
                || self.kernel.body.iter().any(decides))
    }

    /// Returns a guess for the size of a block.
    pub(super) fn block(&self, name: &str) -> u64 {
        let upper = name.to_ascii_uppercase();
        if upper.contains("GROUP") {
            return 8;
        }
        let own = self.kernel.parameters.iter().filter(|one| one.is_constant && is_block(one.name));
        if own.count() > 1 {
            return 32;
        }
        let by_program = self.kernel.body.iter().flat_map(|line| line.windows(2));
        let steps = by_program.clone().any(|two| two == ["*", name] || two == [name, "*"]);
        let columns = self.extents.iter().rev().map(|extent| self.integers[extent]).next();
        match columns.filter(|_| !steps) {
            Some(columns) => columns.min(1 << 16).next_power_of_two(),
            None => 1024,
        }
    }

    fn launch(&self) -> (Json, String) {
        let mut launch = Map::new();
        let reason = match self.given_axes() {
            Some(_) if self.wishes.grid.is_some() => "the grid that is asked for",
            Some(_) => "the grid of the host code",
            None => "derived from the program indices; the grid of the host code cannot be read",
        };
        let axes = self.grid_axes();
        let grid = axes.iter().zip(["x", "y", "z"]).map(|(axis, name)| {
            (
                name.to_owned(),
                axis.parse::<u64>().map_or_else(|_| json!(axis), |number| json!(number)),
            )
        });
        launch.insert("grid".to_owned(), Json::Object(grid.collect()));
        if self.kernel.chosen.is_empty() {
            for option in ["num_warps", "num_stages", "num_ctas"] {
                let value = self.host_value(option).and_then(|value| self.evaluated(&value));
                if let Some(value) = value.filter(|value| (1..=32).contains(value)) {
                    launch.insert(option.to_owned(), json!(value));
                }
            }
        }
        (Json::Object(launch), reason.to_owned())
    }

    /// Returns the grid that the caller asks for, or that of the host code.
    fn given_axes(&self) -> Option<Vec<String>> {
        let asked = self.wishes.grid.map(|grid| grid.map(|blocks| blocks.to_string()).to_vec());
        asked.or_else(|| self.host.as_ref()?.grid(&|value: &Value<'a>| self.evaluated(value)))
    }

    /// Returns the number of programs on each axis, as a number or an expression.
    pub(super) fn grid_axes(&self) -> Vec<String> {
        self.given_axes().unwrap_or_else(|| self.axes())
    }

    /// Returns a grid derived from the program indices: blocks of an extent, or its elements.
    fn axes(&self) -> Vec<String> {
        let body = self.kernel.body.iter();
        let indices = body.flat_map(|line| line.windows(4)).filter_map(|four| match four {
            ["program_id", "(", axis, ..] if axis.len() == 1 => axis.parse::<usize>().ok(),
            _ => None,
        });
        let named =
            self.kernel.body.iter().flat_map(|line| line.windows(5)).filter_map(
                |five| match five {
                    ["program_id", "(", "axis", "=", axis] => axis.parse::<usize>().ok(),
                    _ => None,
                },
            );
        let most = indices.chain(named).max().unwrap_or(0).min(2);
        let blocks =
            self.kernel.parameters.iter().filter(|one| one.is_constant && is_block(one.name));
        let blocks: Vec<&str> = blocks.map(|one| one.name).collect();
        let axis = |index: usize| {
            let extent = self.extents.get(index).or(self.extents.last());
            let steps = |block: &&&str| {
                let lines = self.kernel.body.iter().flat_map(|line| line.windows(2));
                lines.clone().any(|two| two == ["*", block] || two == [block, "*"])
            };
            match (extent, blocks.iter().filter(steps).nth(index)) {
                (Some(extent), Some(block)) => format!("cdiv({extent}, {block})"),
                (None, _) => self.programs(most as u32 + 1).to_string(),
                _ => DIM.to_string(),
            }
        };
        (0..=most).map(axis).collect()
    }
}
