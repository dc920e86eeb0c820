//! Values of the arguments of one launch: names, numbers, expressions, and structures that contain
//! these.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::listed::EACH;
use super::pointers::{MAX_POINTERS, PointerEntry};
use crate::error::quoted;
use crate::resolve::{Names, Scope};
use crate::{ArgKind, ArgSpec, KernelCode, LaunchStep, TensorSpec};
use warpgauge_model::FailureCode;

/// Maximum number of different fields of all structures of a kernel, including nested structures. The elements of an
/// array count as one field.
pub const MAX_FIELDS: usize = 256;

/// Maximum number of values of one structure, including the elements of its arrays. The parameters of a kernel have
/// 32,764 bytes at most.
const MAX_VALUES: usize = 32_764;

/// Maximum nesting depth of structures and arrays in a structure.
const MAX_DEPTH: usize = 8;

/// Maximum length of a field's path, bytes.
const MAX_PATH: usize = 256;

/// An argument of one launch.
#[derive(Debug, Clone, PartialEq)]
pub enum StepArgument {
    /// An argument of the contract, by index. For a tensor, the second number is the offset of the first element.
    Given(usize, u64),
    /// The value of a number or an expression, as JSON.
    Number(Value),
    /// No value: a null pointer for a pointer parameter.
    Null,
    /// A structure that is passed by value.
    Structure(Vec<StructureField>),
    /// An array of pointers in device memory: the index of the argument that describes it, and its entries.
    Pointers(usize, Vec<PointerEntry>),
    /// A texture or surface object: the index of the argument that describes it, and of its tensor.
    Object(usize, usize),
}

/// A field of a structure that is not itself a structure.
#[derive(Debug, Clone, PartialEq)]
pub struct StructureField {
    /// Path of the field in C++ syntax: `n`, `inner.scale` or `weights[2]`.
    pub path: String,
    /// Value of the field.
    pub value: StepArgument,
}

/// Path of a field, split into the path with all indices 0, whose offset the compiler reports, and the indices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldPath {
    /// The path with each index 0.
    pub first: String,
    /// For each index in the path, outermost first: the path of the array with all earlier indices 0, the path of its
    /// first element, and the index.
    pub arrays: Vec<(String, String, u64)>,
}

impl FieldPath {
    /// Reads the path of a field.
    pub fn new(path: &str) -> Self {
        let (mut first, mut arrays) = (String::with_capacity(path.len()), Vec::new());
        for part in path.split_inclusive(']') {
            let Some((before, index)) = part.split_once('[') else {
                first.push_str(part);
                continue;
            };
            first.push_str(before);
            let array = first.clone();
            first.push_str("[0]");
            let index = index.trim_end_matches(']').parse().unwrap_or(u64::MAX);
            arrays.push((array, first.clone(), index));
        }
        Self { first, arrays }
    }
}

/// A mistake in a value.
pub type ValueError = (FailureCode, String);

/// Meanings of the names that the values of arguments and fields use.
pub(super) struct Values<'a> {
    pub args: &'a [ArgSpec],
    /// For each argument, the index of the argument that its name refers to.
    pub meant: &'a [usize],
    /// Names and values of the loop indices, outermost first.
    pub counters: &'a [(&'a str, u64)],
    /// Returns the index of the argument with this name.
    pub index_of: &'a dyn Fn(&str) -> Option<usize>,
}

impl Values<'_> {
    /// Returns the argument that an entry of a step's `args` or a field describes.
    pub(super) fn argument(&self, value: &Value) -> Result<StepArgument, ValueError> {
        let text = match value {
            Value::Number(_) | Value::Bool(_) => return Ok(StepArgument::Number(value.clone())),
            Value::Null => return Ok(StepArgument::Null),
            Value::String(text) => text.trim(),
            Value::Object(fields) => return self.structure(fields),
            Value::Array(_) => {
                let message = "must be the name of an argument, an expression, a number, null, or \
                               a structure's fields by name; an array must be a field of a \
                               structure"
                    .to_owned();
                return Err((FailureCode::WrongType, message));
            }
        };
        if let Some(index) = (self.index_of)(text) {
            return self.given(index);
        }
        if let Some((index, offset)) = self.element(text)? {
            return Ok(StepArgument::Given(self.meant[index], offset));
        }
        let number = self.number(text).map_err(|error| (FailureCode::InvalidExpression, error))?;
        let out_of_range =
            || (FailureCode::OutOfRange, format!("{number} does not fit in 64 bits"));
        let small = i64::try_from(number).map(Value::from);
        let number = small.or_else(|_| u64::try_from(number).map(Value::from));
        number.map(StepArgument::Number).map_err(|_| out_of_range())
    }

    /// Returns the index of the tensor and the element that a text such as `x + 2*n` names. Returns `None` if it names
    /// no tensor.
    pub(super) fn element(&self, text: &str) -> Result<Option<(usize, u64)>, ValueError> {
        let Some((name, offset)) = text.split_once('+') else { return Ok(None) };
        let index = (self.index_of)(name.trim());
        let Some((index, spec)) =
            index.and_then(|index| Some((index, self.args[index].tensor_spec.as_ref()?)))
        else {
            return Ok(None);
        };
        let elements = elements_of(spec);
        let offset =
            self.number(offset).map_err(|error| (FailureCode::InvalidExpression, error))?;
        match u64::try_from(offset).ok().filter(|&offset| offset < elements.max(1)) {
            Some(offset) => Ok(Some((index, offset))),
            None => {
                let message = format!(
                    "element {offset} of `{}`, which has only {elements} elements (from `{}`)",
                    quoted(name.trim()),
                    quoted(text)
                );
                Err((FailureCode::OutOfRange, message))
            }
        }
    }

    /// Returns the argument that results if a list names the argument with this index.
    pub(super) fn given(&self, index: usize) -> Result<StepArgument, ValueError> {
        let arg = &self.args[index];
        match arg.kind {
            ArgKind::Struct => self.structure(&arg.fields),
            ArgKind::Pointers => self.pointers(index, &arg.pointers),
            ArgKind::Texture | ArgKind::Surface => {
                let tensor = tensor_of(self.args, arg)?;
                Ok(StepArgument::Object(index, self.meant[tensor]))
            }
            _ => Ok(StepArgument::Given(self.meant[index], 0)),
        }
    }

    fn structure(&self, fields: &Map<String, Value>) -> Result<StepArgument, ValueError> {
        let (mut made, mut pointers) = (Vec::new(), 0);
        for (path, value) in leaves(fields)? {
            let at = |(code, message): ValueError| (code, format!("field `{path}`: {message}"));
            // A structure that names another structure could contain itself.
            let named = value.as_str().and_then(|name| (self.index_of)(name.trim()));
            if named.is_some_and(|index| self.args[index].kind == ArgKind::Struct) {
                let message = "names a structure: give its fields here".to_owned();
                return Err(at((FailureCode::WrongType, message)));
            }
            let value = self.argument(value).map_err(at)?;
            if let StepArgument::Object(..) = value {
                let message =
                    "names a texture or a surface: pass it as a parameter, not in a structure"
                        .to_owned();
                return Err(at((FailureCode::WrongType, message)));
            }
            pointers += value.pointer_count();
            if pointers > MAX_POINTERS {
                let message =
                    format!("arrays of more than {MAX_POINTERS} pointers in one structure");
                return Err(at((FailureCode::TooLarge, message)));
            }
            made.push(StructureField { path, value });
        }
        Ok(StepArgument::Structure(made))
    }

    pub(super) fn number(&self, text: &str) -> Result<i128, String> {
        let names = Names::Given(crate::KernelType::Cuda);
        let scope = Scope { args: self.args, counters: self.counters, names };
        scope.evaluate(text)
    }
}

/// Returns the values of a structure's fields, with their paths. Nested structures and arrays are
/// resolved.
fn leaves(fields: &Map<String, Value>) -> Result<Vec<(String, &Value)>, ValueError> {
    let mut found = Vec::new();
    add_fields(fields, "", MAX_DEPTH, &mut found)?;
    if found.is_empty() {
        return Err((
            FailureCode::MissingField,
            "a structure needs `fields`: values by name".to_owned(),
        ));
    }
    Ok(found)
}

fn add_fields<'a>(
    fields: &'a Map<String, Value>,
    path: &str,
    depth: usize,
    found: &mut Vec<(String, &'a Value)>,
) -> Result<(), ValueError> {
    for (name, value) in fields {
        let mut letters = name.chars();
        let starts = letters.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
        if !starts || !letters.all(|c| c.is_ascii_alphanumeric() || c == '_') {
            let message = format!("`{}` is not the name of a field", quoted(name));
            return Err((FailureCode::InvalidName, message));
        }
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        add_value(value, path, depth, found)?;
    }
    Ok(())
}

fn add_value<'a>(
    value: &'a Value,
    path: String,
    depth: usize,
    found: &mut Vec<(String, &'a Value)>,
) -> Result<(), ValueError> {
    if depth == 0 || path.len() > MAX_PATH || found.len() >= MAX_VALUES {
        let message = format!(
            "a structure has at most {MAX_VALUES} values, {MAX_DEPTH} levels deep, with paths of at most {MAX_PATH} bytes"
        );
        return Err((FailureCode::TooLarge, message));
    }
    match value {
        Value::Object(fields) => add_fields(fields, &path, depth - 1, found),
        Value::Array(elements) => {
            let mut elements = elements.iter().enumerate();
            elements.try_for_each(|(at, element)| {
                add_value(element, format!("{path}[{at}]"), depth - 1, found)
            })
        }
        leaf => {
            found.push((path, leaf));
            Ok(())
        }
    }
}

/// Returns the index of the tensor of a texture or a surface.
fn tensor_of(args: &[ArgSpec], arg: &ArgSpec) -> Result<usize, ValueError> {
    let missing = |message: &str| (FailureCode::MissingField, message.to_owned());
    if arg.kind == ArgKind::Surface {
        let surface = arg.surface.as_ref().ok_or_else(|| {
            missing("an argument of type `surface` needs `surface`: its `tensor`")
        })?;
        return surface.grid(args).map(|(tensor, _)| tensor);
    }
    let texture = arg.texture.as_ref().ok_or_else(|| {
        missing("an argument of type `texture` needs `texture`: its `tensor`, and how it is read")
    })?;
    texture.layout(args).map(|(tensor, _)| tensor)
}

/// Returns the value of an argument that is a structure, an array of pointers, a texture or a surface. Names in the
/// value refer to `args`, which contains the argument.
///
/// # Errors A field or an entry is invalid.
pub fn composed_value(args: &[ArgSpec], arg: &ArgSpec) -> Result<StepArgument, ValueError> {
    let meant = (0..args.len()).collect::<Vec<_>>();
    let indexes: HashMap<&str, usize> =
        args.iter().enumerate().rev().map(|(index, arg)| (arg.name.as_str(), index)).collect();
    let index_of = |name: &str| indexes.get(name).copied();
    let values = Values { args, meant: &meant, counters: &[], index_of: &index_of };
    match index_of(&arg.name) {
        Some(index) if arg.kind == ArgKind::Pointers => values.pointers(index, &arg.pointers),
        Some(index) if arg.kind.is_object() => {
            tensor_of(args, arg).map(|tensor| StepArgument::Object(index, tensor))
        }
        _ => values.structure(&arg.fields),
    }
}

/// Returns whether all arrays of pointers of a contract, including those in structures, have at most [`MAX_POINTERS`]
/// pointers in total. Invalid arrays do not count.
pub(crate) fn pointers_fit(args: &[ArgSpec]) -> bool {
    let mut left = MAX_POINTERS;
    let composed = |arg: &&ArgSpec| matches!(arg.kind, ArgKind::Struct | ArgKind::Pointers);
    args.iter().filter(composed).all(|arg| {
        let count = composed_value(args, arg).map_or(0, |value| value.pointer_count());
        let fits = count <= left;
        left = left.saturating_sub(count);
        fits
    })
}

/// Returns the number of elements of a tensor.
pub(super) fn elements_of(spec: &TensorSpec) -> u64 {
    let elements = spec.shape.iter().try_fold(1u64, |all, extent| all.checked_mul(*extent));
    elements.unwrap_or(u64::MAX)
}

impl StepArgument {
    /// Returns the size of a structure's fields or of an array of pointers, bytes.
    pub(super) fn size(&self) -> usize {
        match self {
            Self::Structure(fields) => {
                let size = |field: &StructureField| EACH + field.path.len() + field.value.size();
                fields.iter().map(size).sum()
            }
            Self::Pointers(_, entries) => EACH * entries.len(),
            Self::Given(..) | Self::Number(_) | Self::Null | Self::Object(..) => 0,
        }
    }

    /// Returns the number of pointers in the argument's arrays of pointers.
    fn pointer_count(&self) -> usize {
        match self {
            Self::Structure(fields) => fields.iter().map(|field| field.value.pointer_count()).sum(),
            Self::Pointers(_, entries) => entries.len(),
            Self::Given(..) | Self::Number(_) | Self::Null | Self::Object(..) => 0,
        }
    }

    /// Returns the indices of the contract's arguments that this argument uses.
    pub fn used(&self) -> Vec<usize> {
        match self {
            Self::Given(index, _) => vec![*index],
            Self::Number(_) | Self::Null => Vec::new(),
            Self::Structure(fields) => fields.iter().flat_map(|field| field.value.used()).collect(),
            Self::Object(index, tensor) => vec![*index, *tensor],
            Self::Pointers(index, entries) => {
                let tensors = entries.iter().filter_map(|entry| Some(entry.as_ref()?.0));
                std::iter::once(*index).chain(tensors).collect()
            }
        }
    }
}

impl KernelCode {
    /// Returns the paths of all fields of the kernel's structures, each once, with the paths of arrays and first
    /// elements that [`FieldPath`] needs. For an invalid contract, some may be missing.
    pub fn field_paths(&self) -> Vec<String> {
        let mut paths = std::collections::BTreeSet::new();
        let mut add = |fields: &Map<String, Value>| {
            for (path, _) in leaves(fields).unwrap_or_default() {
                let path = FieldPath::new(&path);
                for (array, first, _) in path.arrays {
                    paths.extend([array, first]);
                }
                paths.insert(path.first);
            }
        };
        let args = self.io.iter().flat_map(|io| &io.args);
        args.map(|arg| &arg.fields).for_each(&mut add);
        self.setup.iter().chain(&self.launches).for_each(|step| in_step(step, &mut add));
        paths.into_iter().collect()
    }
}

fn in_step(step: &LaunchStep, add: &mut dyn FnMut(&Map<String, Value>)) {
    step.args.iter().flatten().filter_map(Value::as_object).for_each(&mut *add);
    step.steps.iter().for_each(|inner| in_step(inner, add));
}
