//! Analysis of host code: finds the launch arguments that are sizes or strides of tensors. The main
//! type is [`Host`].

use std::cell::Cell;
use std::collections::BTreeMap;

use super::lexer::{closing, is_name, items, text_of};
use super::module::HostLaunch;

/// Maximum length of a chain of assignments that is followed.
const MAX_DEPTH: usize = 8;

/// Maximum length of a grid that is expanded, in tokens.
const MAX_GRID: usize = 1_000;

/// PyTorch functions that create a tensor of a given shape, and those that create a tensor with the
/// shape of another tensor.
const MAKES: [&str; 7] = ["empty", "zeros", "ones", "full", "randn", "rand", "randint"];
const LIKE: [&str; 5] = ["empty_like", "zeros_like", "ones_like", "rand_like", "randn_like"];

/// Tensor methods whose result has the same elements.
const KEEPS: [&str; 7] = ["view", "reshape", "contiguous", "flatten", "clone", "detach", "to"];

/// Meaning of an expression in host code.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value<'a> {
    /// A dimension of a tensor, from the end if it is negative.
    Dim(&'a str, i64),
    Stride(&'a str, i64),
    Elements(&'a str),
    Integer(i64),
    Float(f64),
    Bool(bool),
    Text(&'a str),
    /// The next power of two of another value.
    PowerOfTwo(Box<Value<'a>>),
}

/// Analysis of the host code around a launch.
pub(super) struct Host<'l, 'a> {
    launch: &'l HostLaunch<'a>,
    /// The last assignment of each variable that does not refer to it.
    assigned: BTreeMap<&'a str, &'l (Vec<&'a str>, Vec<&'a str>)>,
    /// Variables that hold the elements of a tensor in another shape, by the name of the tensor.
    derived: BTreeMap<&'a str, &'a str>,
    /// Number of tokens of the grid that may still be expanded.
    left: Cell<usize>,
}

impl<'l, 'a> Host<'l, 'a> {
    pub(super) fn new(launch: &'l HostLaunch<'a>) -> Self {
        let (mut assigned, mut derived) = (BTreeMap::new(), BTreeMap::new());
        for assignment in &launch.assignments {
            let (targets, value) = assignment;
            for name in targets.iter().filter(|name| !value.contains(name)) {
                assigned.entry(*name).or_insert(assignment);
            }
            if let ([target], [from, ".", method, "(", ..]) = (&targets[..], &value[..])
                && from != target
                && KEEPS.contains(method)
            {
                derived.entry(*from).or_insert(*target);
            }
        }
        Self { launch, assigned, derived, left: Cell::new(MAX_GRID) }
    }

    /// Returns the variable that is passed for a parameter as a tensor.
    pub(super) fn tensor(&self, parameter: &str) -> Option<&'a str> {
        let expression = self.launch.arguments.get(parameter)?;
        let name = *expression.first().filter(|name| is_name(name))?;
        matches!(expression.get(1), None | Some(&".")).then_some(name)
    }

    /// Returns the meaning of the value that is passed for a parameter or an option.
    pub(super) fn value(&self, parameter: &str) -> Option<Value<'a>> {
        self.meaning(self.launch.arguments.get(parameter)?, 0)
    }

    fn meaning(&self, expression: &[&'a str], depth: usize) -> Option<Value<'a>> {
        if depth > MAX_DEPTH {
            return None;
        }
        match expression {
            ["(", .., ")"] if closing(expression, 0) == Some(expression.len() - 1) => {
                self.meaning(&expression[1..expression.len() - 1], depth + 1)
            }
            ["True"] => Some(Value::Bool(true)),
            ["False"] => Some(Value::Bool(false)),
            [tensor, ".", "shape", "[", index @ .., "]"]
            | [tensor, ".", "size", "(", index @ .., ")"] => {
                Some(Value::Dim(tensor, integer(index)?))
            }
            [tensor, ".", "stride", "(", index @ .., ")"] => {
                Some(Value::Stride(tensor, integer(index)?))
            }
            [tensor, ".", "numel" | "nelement", "(", ")"] => Some(Value::Elements(tensor)),
            ["triton", ".", "next_power_of_2", "(", inner @ .., ")"]
            | ["next_power_of_2", "(", inner @ .., ")"] => {
                Some(Value::PowerOfTwo(Box::new(self.meaning(inner, depth + 1)?)))
            }
            [text] if text_of(text).is_some() => text_of(text).map(Value::Text),
            [name] if is_name(name) => self.assigned(name, depth),
            _ => number(expression),
        }
    }

    /// Returns the meaning of a variable according to its last assignment.
    fn assigned(&self, name: &str, depth: usize) -> Option<Value<'a>> {
        let (targets, value) = self.assignment(name)?;
        if targets.len() == 1 {
            return self.meaning(value, depth + 1);
        }
        let index = targets.iter().position(|target| *target == name)?;
        let place = i64::try_from(index).ok()?;
        match value[..] {
            [tensor, ".", "shape"] | [tensor, ".", "size", "(", ")"] => {
                Some(Value::Dim(tensor, place))
            }
            [tensor, ".", "stride", "(", ")"] => Some(Value::Stride(tensor, place)),
            _ => self.meaning(items(value).get(index)?, depth + 1),
        }
    }

    fn assignment(&self, name: &str) -> Option<&'l (Vec<&'a str>, Vec<&'a str>)> {
        self.assigned.get(name).copied()
    }

    /// Returns a variable that holds the elements of a tensor in another shape.
    pub(super) fn derived(&self, tensor: &str) -> Option<&'a str> {
        self.derived.get(tensor).copied()
    }

    /// Returns how a variable is created: its dimensions, or the tensor that has its shape.
    pub(super) fn made(&self, tensor: &str) -> Option<Made<'a>> {
        let (_, value) = self.assignment(tensor)?;
        if let [from, ".", method, "(", ..] = value[..]
            && KEEPS.contains(&method)
        {
            return Some(Made::Same(from));
        }
        let open = value.iter().position(|token| *token == "(")?;
        let function = *value.get(open.checked_sub(1)?)?;
        let arguments = items(&value[open + 1..closing(value, open)?]);
        if LIKE.contains(&function) {
            return arguments.first()?.first().map(|other| Made::Like(other));
        }
        if !MAKES.contains(&function) {
            return None;
        }
        let shape = match arguments.first()? {
            [other, ".", "shape"] | [other, ".", "size", "(", ")"] => {
                return Some(Made::Like(other));
            }
            ["(", inner @ .., ")"] | ["[", inner @ .., "]"] => items(inner),
            _ => arguments.into_iter().filter(|item| item.get(1) != Some(&"=")).collect(),
        };
        let dims = shape.into_iter().map(|dim| self.meaning(dim, 0)).collect::<Option<Vec<_>>>()?;
        (!dims.is_empty()).then_some(Made::Shape(dims))
    }

    /// Returns the expressions of the grid, in names of the kernel's parameters. `known` returns
    /// the values of expressions that are not parameters.
    pub(super) fn grid(&self, known: &dyn Fn(&Value<'a>) -> Option<u64>) -> Option<Vec<String>> {
        let mut tokens = self.launch.grid.clone();
        if let [name] = tokens[..]
            && let Some((_, value)) = self.assignment(name)
        {
            tokens = value.clone();
        }
        if let ["lambda", _, ":", body @ ..] = &tokens[..] {
            tokens = body.to_vec();
        }
        let inner = match &tokens[..] {
            ["(", inner @ .., ")"] | ["[", inner @ .., "]"] => inner,
            other => other,
        };
        let axes = items(inner).into_iter().map(|axis| self.written(axis, known, 0));
        let axes = axes.collect::<Option<Vec<_>>>()?;
        (1..=3).contains(&axes.len()).then_some(axes)
    }

    /// Converts an expression of host code to one of a contract.
    fn written(
        &self,
        expression: &[&'a str],
        known: &dyn Fn(&Value<'a>) -> Option<u64>,
        depth: usize,
    ) -> Option<String> {
        if depth > MAX_DEPTH {
            return None;
        }
        self.left.set(self.left.get().checked_sub(expression.len())?);
        let by_name = self.by_expression();
        let mut text = String::new();
        let mut at = 0;
        while at < expression.len() {
            let rest = &expression[at..];
            let (part, used) = match rest {
                ["triton" | "math" | "tl", ".", ..] => (String::new(), 2),
                ["cdiv" | "ceil_div", ..] => ("cdiv".to_owned(), 1),
                [_, "[", key, "]", ..] if text_of(key).is_some() => {
                    (text_of(key).unwrap_or_default().to_owned(), 4)
                }
                ["(" | ")" | "+" | "-" | "*" | ",", ..] => (rest[0].to_owned(), 1),
                ["min" | "max", "(", ..] => (rest[0].to_owned(), 1),
                [number, ..] if number.bytes().all(|byte| byte.is_ascii_digit()) => {
                    ((*number).to_owned(), 1)
                }
                [tensor, ".", "shape", "[", ..] | [tensor, ".", "size" | "numel", "(", ..]
                    if is_name(tensor) =>
                {
                    let end = closing(rest, 3)?;
                    let value = self.meaning(&rest[..=end], 0)?;
                    (known(&value)?.to_string(), end + 1)
                }
                [name, ..] if is_name(name) => {
                    let part = match by_name.get(name) {
                        Some(parameter) => (*parameter).to_owned(),
                        None => match self.assignment(name) {
                            Some((targets, value)) if targets.len() == 1 => {
                                format!("({})", self.written(value, known, depth + 1)?)
                            }
                            _ => known(&self.assigned(name, 0)?)?.to_string(),
                        },
                    };
                    (part, 1)
                }
                _ => return None,
            };
            text.push_str(&part);
            at += used;
        }
        Some(text)
    }

    /// Returns the kernel's parameters by the host variable that the launch passes for each.
    fn by_expression(&self) -> BTreeMap<&'a str, &'a str> {
        let arguments = self.launch.arguments.iter();
        let single = arguments.filter_map(|(name, value)| match value[..] {
            [variable] if is_name(variable) => Some((variable, *name)),
            _ => None,
        });
        single.collect()
    }
}

/// How host code creates a tensor.
pub(super) enum Made<'a> {
    Like(&'a str),
    /// The elements of another tensor, possibly in another shape.
    Same(&'a str),
    Shape(Vec<Value<'a>>),
}

/// Parses a number with an optional sign.
pub(super) fn number<'a>(tokens: &[&'a str]) -> Option<Value<'a>> {
    if let Some(value) = integer(tokens) {
        return Some(Value::Integer(value));
    }
    let (sign, text) = match tokens {
        ["-", text] => (-1.0, text),
        [text] => (1.0, text),
        _ => return None,
    };
    let value = text.replace('_', "").parse::<f64>().ok()?;
    text.as_bytes()[0].is_ascii_digit().then_some(Value::Float(sign * value))
}

fn integer(tokens: &[&str]) -> Option<i64> {
    match tokens {
        ["-", digits] => digits.replace('_', "").parse::<i64>().ok()?.checked_neg(),
        [digits] => digits.replace('_', "").parse().ok(),
        _ => None,
    }
}
