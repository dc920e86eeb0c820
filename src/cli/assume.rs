//! Flags that complete or change a contract: `--set`, `--grid`, `--block`, `--kernel-name` and
//! `--expect`.

use serde_json::{Map, Value, json};

use super::{CliError, expect};
use warpgauge_code::infer::Wishes;

/// Maximum number of values that one `--set` may list.
const MAX_VALUES: usize = 64;

/// Flags that complete or change the contract of a kernel.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Contract options")]
pub(super) struct KernelFlags {
    #[command(flatten)]
    pub assume: Assume,
    /// Name of the kernel, if the file has several
    #[arg(long, visible_alias = "kernel", value_name = "NAME")]
    pub kernel_name: Option<String>,
    /// Expected value of an output as a PyTorch or NumPy expression of the inputs and numbers: `a +
    /// b`, `C=A @ B` (may be repeated)
    #[arg(long, value_name = "[OUTPUT=]EXPRESSION")]
    pub expect: Vec<String>,
}

impl KernelFlags {
    /// Returns the values that a contract's inference must use. Each number must have exactly one
    /// value.
    pub(super) fn wishes(&self) -> Wishes {
        self.assume.single_wishes(self.kernel_name.as_deref())
    }

    /// Rewords an error of the contract in terms of the flags, if one of them is the cause.
    pub(super) fn explain(&self, error: CliError) -> CliError {
        expect::explain(error, &self.expect)
    }

    /// Applies all flags to a contract.
    pub(super) fn apply(&self, fields: &mut Map<String, Value>) -> Result<(), CliError> {
        self.assume.apply(fields, "kernel")?;
        self.apply_others(fields)
    }

    /// Applies to a contract the flags that set neither numbers nor the launch.
    pub(super) fn apply_others(&self, fields: &mut Map<String, Value>) -> Result<(), CliError> {
        if let Some(name) = &self.kernel_name
            && let Some(Value::Object(kernel)) = fields.get_mut("kernel")
        {
            let metadata = kernel.entry("metadata").or_insert_with(|| json!({}));
            if metadata.is_null() {
                *metadata = json!({});
            }
            if let Value::Object(metadata) = metadata {
                metadata.insert("kernel_name".to_owned(), json!(name));
            }
        }
        expect::put(&self.expect, fields)
    }
}

/// Flags that set the numbers and the launch in a contract.
#[derive(Debug, Clone, Default, clap::Args)]
pub(super) struct Assume {
    /// Value of a numeric argument of the kernel (may be repeated)
    #[arg(long, value_name = "NAME=VALUE", value_parser = setting)]
    pub set: Vec<Setting>,
    /// Number of blocks in the grid, as numbers or expressions: 64, or `ceil_div(n, 16),4`
    #[arg(long, value_name = "X[,Y[,Z]]", value_parser = grid)]
    pub grid: Option<Extents>,
    /// Number of threads in a block, as numbers or expressions
    #[arg(long, value_name = "X[,Y[,Z]]", value_parser = block)]
    pub block: Option<Extents>,
}

/// Number in a contract, with one or more values.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Setting {
    pub name: String,
    /// At least one value.
    pub values: Vec<Value>,
}

/// Extents along x, y and z.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Extents(Vec<Value>);

impl Extents {
    /// Returns the extents, if all of them are numbers.
    fn numbers(&self) -> Option<[u64; 3]> {
        let mut extents = [1; 3];
        for (extent, value) in extents.iter_mut().zip(&self.0) {
            *extent = value.as_u64()?;
        }
        Some(extents)
    }

    fn json(&self) -> Value {
        let axes = ["x", "y", "z"].into_iter().zip(&self.0);
        Value::Object(axes.map(|(axis, extent)| (axis.to_owned(), extent.clone())).collect())
    }
}

/// Reads `NAME=VALUE` or `NAME=VALUE,VALUE`.
fn setting(text: &str) -> Result<Setting, String> {
    let (name, values) = text.split_once('=').ok_or("write NAME=VALUE, such as n=1024")?;
    let name = name.trim();
    let is_name = |text: &str| {
        text.chars().all(|one| one.is_alphanumeric() || one == '_')
            && text.starts_with(|first: char| !first.is_ascii_digit())
    };
    if !is_name(name) {
        return Err(format!("`{name}` is not a valid argument name"));
    }
    let values =
        values.split(',').map(|value| number(value.trim())).collect::<Result<Vec<_>, _>>()?;
    if values.len() > MAX_VALUES {
        return Err(format!("{} values; at most {MAX_VALUES} are allowed", values.len()));
    }
    Ok(Setting { name: name.to_owned(), values })
}

/// Reads an integer, a floating-point number, or `true` or `false`.
fn number(text: &str) -> Result<Value, String> {
    let integer = text.parse::<i64>().map(Value::from).ok();
    let float = || text.parse::<f64>().ok().filter(|value| value.is_finite()).map(Value::from);
    let flag = || text.parse::<bool>().ok().map(Value::from);
    integer.or_else(float).or_else(flag).ok_or_else(|| {
        format!("`{text}` is not a number; write an integer, a decimal number, true or false")
    })
}

fn grid(text: &str) -> Result<Extents, String> {
    extents(text, true)
}

fn block(text: &str) -> Result<Extents, String> {
    extents(text, false)
}

/// Reads one to three extents, separated by commas outside parentheses.
fn extents(text: &str, takes_expressions: bool) -> Result<Extents, String> {
    let (mut parts, mut from, mut depth) = (Vec::new(), 0, 0_i32);
    for (at, one) in text.char_indices() {
        match one {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&text[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[from..]);
    if parts.len() > 3 {
        return Err(format!("{} extents; a launch has at most x, y and z", parts.len()));
    }
    let extents = parts.into_iter().map(|part| {
        let part = part.trim();
        match part.parse::<u64>() {
            Ok(0) => Err("an extent is at least 1".to_owned()),
            Ok(extent) => Ok(json!(extent)),
            Err(_) if takes_expressions && !part.is_empty() => Ok(json!(part)),
            Err(_) => Err(format!("`{part}` is not a number of threads")),
        }
    });
    extents.collect::<Result<_, _>>().map(Extents)
}

impl Assume {
    /// Returns the values that a contract's inference must use. If a number has several values,
    /// `pick` chooses one of them.
    pub(super) fn wishes(&self, kernel: Option<&str>, pick: impl Fn(&Setting) -> Value) -> Wishes {
        let values = self.set.iter().filter_map(|setting| {
            let value = pick(setting);
            Some((setting.name.clone(), value.as_f64()?))
        });
        Wishes {
            kernel: kernel.map(str::to_owned),
            values: values.collect(),
            grid: self.grid.as_ref().and_then(Extents::numbers),
            block: self.block.as_ref().and_then(Extents::numbers),
        }
    }

    /// Returns the values that a contract's inference must use. Each number must have exactly one
    /// value.
    pub(super) fn single_wishes(&self, kernel: Option<&str>) -> Wishes {
        self.wishes(kernel, |setting| setting.values[0].clone())
    }

    /// Applies the values and the launch to the kernel in `field` of a contract. It is an error if
    /// a number has several values.
    pub(super) fn apply(
        &self,
        fields: &mut Map<String, Value>,
        field: &str,
    ) -> Result<(), CliError> {
        if let Some(several) = self.set.iter().find(|setting| setting.values.len() > 1) {
            return Err(CliError::Usage(format!(
                "--set {}: only one value is allowed here; `warpgauge sweep` accepts several",
                several.name
            )));
        }
        self.put(fields, field, |setting| setting.values[0].clone())
    }

    /// Applies the launch to the kernel in `field`, and sets each number to the value that `pick`
    /// returns.
    pub(super) fn put(
        &self,
        fields: &mut Map<String, Value>,
        field: &str,
        pick: impl Fn(&Setting) -> Value,
    ) -> Result<(), CliError> {
        if self.set.is_empty() && self.grid.is_none() && self.block.is_none() {
            return Ok(());
        }
        let kernel = fields.get_mut(field).and_then(Value::as_object_mut);
        let Some(kernel) = kernel else {
            return Err(CliError::Usage(format!(
                "the contract has no `{field}` to which the flags apply"
            )));
        };
        let has_launches =
            kernel.get("launches").and_then(Value::as_array).is_some_and(|all| !all.is_empty());
        let Some(io) = kernel.get_mut("io").and_then(Value::as_object_mut) else {
            return Err(CliError::Usage(
                "--set, --grid and --block need a contract that lists the kernel's arguments; this contract lists none"
                    .to_owned(),
            ));
        };
        for setting in &self.set {
            let args = io.get_mut("args").and_then(Value::as_array_mut);
            put_number(args.map_or(&mut [][..], Vec::as_mut_slice), setting, pick(setting))?;
        }
        for (name, extents) in [("grid", &self.grid), ("block", &self.block)] {
            let Some(extents) = extents else { continue };
            if has_launches {
                return Err(CliError::Usage(format!(
                    "--{name}: the kernel is a program of several launches; change them in the contract"
                )));
            }
            let launch = io.entry("launch").or_insert_with(|| json!({}));
            if launch.is_null() {
                *launch = json!({});
            }
            if let Value::Object(launch) = launch {
                launch.insert(name.to_owned(), extents.json());
            }
        }
        Ok(())
    }
}

/// Sets the argument with this name. The argument must be a number.
fn put_number(args: &mut [Value], setting: &Setting, value: Value) -> Result<(), CliError> {
    let name = &setting.name;
    let is_number =
        |arg: &Value| matches!(arg["type"].as_str(), Some("int" | "float" | "bool" | "str"));
    let Some(arg) = args.iter_mut().find(|arg| arg["name"] == name.as_str()) else {
        let known = args.iter().filter(|arg| is_number(arg)).filter_map(|arg| arg["name"].as_str());
        let known = known.collect::<Vec<_>>().join(", ");
        let known = if known.is_empty() { "none".to_owned() } else { known };
        return Err(CliError::Usage(format!(
            "--set {name}: no argument has this name; numeric arguments: {known}"
        )));
    };
    if !is_number(arg) {
        return Err(CliError::Usage(format!(
            "--set {name}: the argument is not a number: its type is `{}`",
            arg["type"].as_str().unwrap_or_default()
        )));
    }
    arg["value"] = value;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assume(set: &[&str], grid: Option<&str>, block: Option<&str>) -> Assume {
        Assume {
            set: set.iter().map(|text| setting(text).unwrap()).collect(),
            grid: grid.map(|text| super::grid(text).unwrap()),
            block: block.map(|text| super::block(text).unwrap()),
        }
    }

    fn contract() -> Map<String, Value> {
        let args =
            json!([{"name": "x", "type": "tensor"}, {"name": "n", "type": "int", "value": 1}]);
        let kernel = json!({"io": {"args": args}});
        [("kernel".to_owned(), kernel)].into_iter().collect()
    }

    #[test]
    fn numbers_and_launches_reach_the_contract() {
        let mut fields = contract();
        let all = assume(&["n=4096"], Some("ceil_div(n, 64), 2"), Some("64"));
        all.apply(&mut fields, "kernel").unwrap();
        let io = &fields["kernel"]["io"];
        assert_eq!(io["args"][1]["value"], 4096);
        let launch = json!({"grid": {"x": "ceil_div(n, 64)", "y": 2}, "block": {"x": 64}});
        assert_eq!(io["launch"], launch);
        let wishes = all.single_wishes(Some("k"));
        assert_eq!((wishes.grid, wishes.block), (None, Some([64, 1, 1])));
        assert_eq!(wishes.values["n"], 4096.0);
    }

    #[test]
    fn what_cannot_be_set_is_reported() {
        let refused = |set: &str| {
            assume(&[set], None, None).apply(&mut contract(), "kernel").unwrap_err().to_string()
        };
        assert!(
            refused("m=1").contains("--set m: no argument has this name; numeric arguments: n")
        );
        assert!(refused("x=1").contains("the argument is not a number: its type is `tensor`"));
        assert!(refused("n=1,2").contains("`warpgauge sweep` accepts several"));
        let program =
            &mut [("kernel".to_owned(), json!({"kernel_type": "program"}))].into_iter().collect();
        let text = assume(&["n=1"], None, None).apply(program, "kernel").unwrap_err().to_string();
        assert!(text.contains("lists none"), "{text}");
        for text in ["n", "=1", "n=", "n=x", "1n=2", "n=1,,2", "n=inf"] {
            assert!(setting(text).is_err(), "{text}");
        }
        for text in ["", "0", "1,2,3,4", "n"] {
            assert!(block(text).is_err(), "{text}");
        }
    }
}
