//! Evaluates integer expressions in strings that replace numbers of the contract.

use serde_json::{Map, Value};

use crate::error::ContractError;
use crate::expr::{self, Variable};

use warpgauge_model::FailureCode;

type Result = std::result::Result<(), ContractError>;

/// Integer scalars of the contract, by name.
struct Scalars(Vec<(String, i128)>);

/// Evaluates the expressions of a contract whose references are already replaced. `init`, the shapes of data and the
/// settings may use the integer scalar arguments by name. Shapes and launch dimensions stay unevaluated, because the
/// contract's own rules handle them.
pub(super) fn evaluate(contract: &mut Map<String, Value>) -> Result {
    let mut scalars = Scalars(Vec::new());
    if let Some(kernel) = contract.get_mut("kernel") {
        for (index, arg) in list(kernel.pointer_mut("/io/args")).enumerate() {
            scalars.argument(arg, &format!("kernel.io.args[{index}]"))?;
        }
        for (index, arg) in list(kernel.pointer_mut("/io/args")).enumerate() {
            scalars.tensor(arg.get_mut("tensor_spec"), &format!("kernel.io.args[{index}]"))?;
        }
        scalars.launch(kernel, "kernel")?;
    }
    for (name, expected) in fields(contract.get_mut("expected")) {
        if let Some(kernel) = expected.get_mut("kernel") {
            scalars.launch(kernel, &format!("expected.{name}.kernel"))?;
        }
    }
    for (group, names) in [
        ("work", &["bytes", "flops"][..]),
        ("tolerance", &["atol", "rtol", "required_matched_ratio"]),
        ("measure", &["min_warmup_time", "max_time"]),
    ] {
        scalars.named(contract.get_mut(group), names, group)?;
    }
    for name in ["num_trials", "timeout"] {
        scalars.number(contract.get_mut(name), || name.to_owned())?;
    }
    Ok(())
}

impl Scalars {
    /// Evaluates an `int` argument. Other expressions may use its value.
    fn argument(&mut self, arg: &mut Value, path: &str) -> Result {
        if arg.get("type").and_then(Value::as_str) != Some("int") {
            return Ok(());
        }
        Self(Vec::new()).number(arg.get_mut("value"), || format!("{path}.value"))?;
        let name = arg.get("name").and_then(Value::as_str);
        let value = arg.get("value").and_then(|value| {
            value.as_i64().map(i128::from).or_else(|| value.as_u64().map(i128::from))
        });
        if let (Some(name), Some(value)) = (name, value) {
            self.0.push((name.to_owned(), value));
        }
        Ok(())
    }

    fn tensor(&self, spec: Option<&mut Value>, path: &str) -> Result {
        let Some(spec) = spec else { return Ok(()) };
        for (dimension, extent) in list(spec.pointer_mut("/data/shape")).enumerate() {
            let at = || format!("{path}.tensor_spec.data.shape[{dimension}]");
            self.number(Some(extent), at)?;
        }
        let names = ["seed", "mean", "std", "low", "high", "fill_value", "start", "step"];
        self.named(spec.get_mut("init"), &names, &format!("{path}.tensor_spec.init"))
    }

    fn launch(&self, kernel: &mut Value, path: &str) -> Result {
        let at = format!("{path}.io.launch");
        self.named(
            kernel.pointer_mut("/io/launch"),
            &["num_warps", "num_stages", "num_ctas", "maxnreg"],
            &at,
        )
    }

    fn named(&self, object: Option<&mut Value>, names: &[&str], path: &str) -> Result {
        for (name, value) in fields(object) {
            if names.contains(&name.as_str()) {
                self.number(Some(value), || format!("{path}.{name}"))?;
            }
        }
        Ok(())
    }

    fn number(&self, value: Option<&mut Value>, path: impl Fn() -> String) -> Result {
        let Some(Value::String(text)) = value.as_deref() else { return Ok(()) };
        let wrong =
            |message| ContractError { path: path(), code: FailureCode::Expression, message };
        let number = expr::evaluate(text, |variable| self.look_up(variable))
            .map_err(|error| wrong(error.to_string()))?;
        let number = match (i64::try_from(number), u64::try_from(number)) {
            (Ok(number), _) => Value::from(number),
            (_, Ok(number)) => Value::from(number),
            _ => return Err(wrong(format!("`{text}` is {number}, which does not fit in 64 bits"))),
        };
        if let Some(value) = value {
            *value = number;
        }
        Ok(())
    }

    fn look_up(&self, variable: Variable<'_>) -> std::result::Result<i128, String> {
        let Variable::Scalar(name) = variable else {
            return Err("shapes of arguments are not known here; use axes".to_owned());
        };
        let known = self.0.iter().find(|(scalar, _)| scalar == name);
        known.map(|(_, value)| *value).ok_or_else(|| {
            format!("there is no integer argument `{name}` here; an axis is written `${name}`")
        })
    }
}

fn list(value: Option<&mut Value>) -> impl Iterator<Item = &mut Value> {
    value.and_then(Value::as_array_mut).into_iter().flatten()
}

fn fields(value: Option<&mut Value>) -> impl Iterator<Item = (&String, &mut Value)> {
    value.and_then(Value::as_object_mut).into_iter().flat_map(|fields| fields.iter_mut())
}
