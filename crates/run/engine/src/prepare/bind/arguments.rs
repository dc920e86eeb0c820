//! Binding of all arguments of a contract to all parameters of a kernel.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::Value;

use super::error::{BindError, describe};
use super::{ctype, object, pointer, pointers, scalar, structure};
use warpgauge_compile::{CType, Constant, KernelInfo, Param};
use warpgauge_contract::{
    ArgKind, ArgSpec, PointerEntry, ScalarValue, StepArgument, StructureField,
};
use warpgauge_model::{FailureCode, TexelGrid, TextureLayout};
use warpgauge_worker::protocol::Argument;

/// An argument that is to be bound to a parameter.
#[derive(Clone)]
pub(crate) struct Passed<'a> {
    /// Index that error messages show.
    index: usize,
    arg: Cow<'a, ArgSpec>,
    /// Index of the tensor among the contract's arguments, and the number of elements to skip at
    /// its beginning. `None` if the argument is not a tensor.
    tensor: Option<(usize, u64)>,
    /// Fields of the structure. `None` if the argument is not a structure.
    fields: Option<Cow<'a, [StructureField]>>,
    /// Entries of the array of pointers. `None` if the argument is not such an array.
    pointers: Option<Cow<'a, [PointerEntry]>>,
    /// Index of the tensor that a texture or surface accesses. `None` for other arguments.
    object: Option<usize>,
}

impl<'a> Passed<'a> {
    /// Returns one of the contract's arguments. If it is a tensor, it starts at the given element.
    fn given(index: usize, (at, elements): (usize, u64), args: &'a [ArgSpec]) -> Self {
        let (arg, tensor) = (Cow::Borrowed(&args[at]), Some((at, elements)));
        Self { index, arg, tensor, fields: None, pointers: None, object: None }
    }

    /// Returns one of the contract's arguments, with the given value of a structure or an array of
    /// pointers.
    fn composed(index: usize, value: StepArgument, args: &'a [ArgSpec]) -> Self {
        let given = Self::given(index, (index, 0), args);
        match value {
            StepArgument::Structure(fields) => Self { fields: Some(Cow::Owned(fields)), ..given },
            StepArgument::Pointers(_, entries) => {
                Self { pointers: Some(Cow::Owned(entries)), ..given }
            }
            StepArgument::Object(_, tensor) => Self { object: Some(tensor), ..given },
            StepArgument::Given(..) | StepArgument::Number(_) | StepArgument::Null => given,
        }
    }

    /// Returns an argument of a step, or a field of a structure. `name` is used if it is not among
    /// the contract's `args`.
    pub(crate) fn new(
        index: usize,
        name: &str,
        argument: &'a StepArgument,
        args: &'a [ArgSpec],
    ) -> Self {
        let (kind, value, fields) = match argument {
            StepArgument::Given(at, elements) => return Self::given(index, (*at, *elements), args),
            StepArgument::Number(value) => (kind_of(value), value.clone(), None),
            StepArgument::Null => (ArgKind::None, Value::Null, None),
            StepArgument::Structure(fields) => {
                (ArgKind::Struct, Value::Null, Some(Cow::Borrowed(fields.as_slice())))
            }
            StepArgument::Object(at, tensor) => {
                return Self { object: Some(*tensor), ..Self::given(index, (*at, 0), args) };
            }
            StepArgument::Pointers(at, entries) => {
                let pointers = Some(Cow::Borrowed(entries.as_slice()));
                return Self { pointers, ..Self::given(index, (*at, 0), args) };
            }
        };
        let arg = ArgSpec { is_meta: false, ..ArgSpec::constant(name, kind, value) };
        Self { index, arg: Cow::Owned(arg), tensor: None, fields, pointers: None, object: None }
    }

    /// Returns the error for a structure that does not fit its parameter.
    pub(super) fn misfit(&self, param: &Param, why: &str) -> BindError {
        let message = format!(
            "structure `{}` does not fit parameter `{}`: {why}",
            self.arg.name,
            describe(param, self.index)
        );
        BindError::argument(self.index, FailureCode::ArgumentType, message)
    }

    pub(super) fn arg(&self) -> &ArgSpec {
        &self.arg
    }

    pub(super) fn index(&self) -> usize {
        self.index
    }

    pub(super) fn name(&self) -> &str {
        &self.arg.name
    }
}

/// Returns the argument kind that corresponds to a JSON number or Boolean.
fn kind_of(value: &Value) -> ArgKind {
    match value {
        Value::Bool(_) => ArgKind::Bool,
        number if number.is_f64() => ArgKind::Float,
        _ => ArgKind::Int,
    }
}

/// The arguments of a contract, and the memory of its tensors.
pub(crate) struct Tensors<'a> {
    pub args: &'a [ArgSpec],
    /// Returns the pointer to a tensor, starting at an element. The first number is the tensor's
    /// index among the arguments. Returns `None` if the tensor has no memory.
    pub place: &'a dyn Fn(usize, u64) -> Option<Argument>,
    /// Returns the pointer to an array of pointers with these entries, none of which is a
    /// compile-time constant.
    pub array: &'a dyn Fn(&[PointerEntry]) -> Option<Argument>,
    /// Returns the object over the CUDA array that contains a tensor, given the tensor's index
    /// among the arguments. It is a texture object with this layout, or a surface object. Returns
    /// `None` if the launch is not a list of steps, or the tensor has no memory.
    pub object: &'a ObjectOf<'a>,
}

/// Returns the object over a CUDA array with texels of this format.
pub(crate) type ObjectOf<'a> =
    dyn Fn(usize, &TexelGrid, Option<&TextureLayout>) -> Option<Argument> + 'a;

/// Binds the arguments of a contract to the parameters of `kernel`, in order.
///
/// # Errors
/// Returns all arguments that do not fit, not only the first.
pub fn bind_arguments(
    kernel: &KernelInfo,
    args: &[ArgSpec],
) -> Result<Vec<Argument>, Vec<BindError>> {
    let passed = parameters_of(kernel, args).map_err(|error| vec![error])?;
    let buffer_of = |index: usize| args[..index].iter().filter(is_buffer).count();
    let place = |index: usize, _: u64| Some(Argument::Buffer(buffer_of(index)));
    bind_passed_list(
        kernel,
        &passed,
        &Tensors { args, place: &place, array: &|_| None, object: &|_, _, _| None },
    )
}

/// Returns the arguments that a kernel without a list of launches receives. Tensors that a
/// structure, an array of pointers, a texture or a surface refers to are omitted, unless the kernel
/// has as many parameters as there are arguments. If the kernel has no parameter for structures,
/// arrays of pointers or objects, these are omitted: they are for another kernel with the same
/// contract.
pub(crate) fn parameters_of<'a>(
    kernel: &KernelInfo,
    args: &'a [ArgSpec],
) -> Result<Vec<Passed<'a>>, BindError> {
    let mut passed = Vec::new();
    for (index, arg) in args.iter().enumerate().filter(|(_, arg)| arg.is_parameter()) {
        let one = match arg.kind {
            ArgKind::Struct | ArgKind::Pointers | ArgKind::Texture | ArgKind::Surface => {
                let value = warpgauge_contract::composed_value(args, arg)
                    .map_err(|(code, message)| BindError::argument(index, code, message))?;
                (value.used(), Passed::composed(index, value, args))
            }
            _ => (Vec::new(), Passed::given(index, (index, 0), args)),
        };
        passed.push(one);
    }
    Ok(match &kernel.params {
        Some(params) => taken_by(params, passed),
        None => without_named(passed, None),
    })
}

/// An argument, preceded by the indices of the arguments that it refers to.
type Using<'a> = (Vec<usize>, Passed<'a>);

/// Selects the arguments that a kernel with these parameters receives.
fn taken_by<'a>(params: &[Param], mut passed: Vec<Using<'a>>) -> Vec<Passed<'a>> {
    let takes_structures = params.iter().any(|param| matches!(param.ctype, CType::Aggregate(_)));
    passed.retain(|(_, one)| takes_structures || one.fields.is_none());
    // An array, a texture or a surface may replace a tensor of another kernel with the same
    // contract. The type of the parameter decides.
    let (arrays, objects) =
        (params.iter().any(pointers::is_array), params.iter().any(object::may_be));
    let ways = [(true, true), (true, false), (false, true), (false, false), (arrays, objects)];
    let way = |(arrays, objects): (bool, bool)| {
        let kept = passed.iter().filter(|(_, one)| {
            (arrays || one.pointers.is_none()) && (objects || one.object.is_none())
        });
        without_named(kept.cloned().collect(), Some(params.len()))
    };
    let fits = |taken: &Vec<Passed<'a>>| {
        let mut pairs = taken.iter().zip(params);
        taken.len() == params.len()
            && pairs.all(|(one, param)| {
                (one.pointers.is_none() || pointers::may_be_array(param))
                    && (one.object.is_none() || object::may_be(param))
            })
    };
    ways.iter().map(|one| way(*one)).find(fits).unwrap_or_else(|| way(ways[ways.len() - 1]))
}

/// Omits the arguments that other arguments refer to, unless there are exactly `count` arguments
/// with them.
fn without_named(passed: Vec<Using<'_>>, count: Option<usize>) -> Vec<Passed<'_>> {
    let mut named = BTreeSet::new();
    if count != Some(passed.len()) {
        let used = passed.iter().flat_map(|(used, one)| used.iter().filter(|at| **at != one.index));
        named.extend(used.copied());
    }
    let passed = passed.into_iter().map(|(_, one)| one);
    passed.filter(|one| !named.contains(&one.index)).collect()
}

/// Binds arguments to the parameters of `kernel`, in order.
///
/// # Errors
/// Returns all arguments that do not fit, not only the first.
pub(crate) fn bind_passed_list(
    kernel: &KernelInfo,
    passed: &[Passed<'_>],
    tensors: &Tensors<'_>,
) -> Result<Vec<Argument>, Vec<BindError>> {
    let params = match &kernel.params {
        Some(params) => Cow::Borrowed(params),
        None => Cow::Owned(declared_params(passed)?),
    };
    if params.len() != passed.len() {
        let names = passed.iter().map(|one| one.arg.name.as_str()).collect::<Vec<_>>();
        return Err(vec![BindError::count(kernel, &params, &names)]);
    }
    let mut bound = Vec::new();
    let mut errors = Vec::new();
    for (one, param) in passed.iter().zip(&*params) {
        match bind_value(one, param, tensors) {
            Ok(argument) => bound.push(argument),
            Err(error) => errors.push(error),
        }
    }
    if errors.is_empty() { Ok(bound) } else { Err(errors) }
}

/// Returns whether an argument is a tensor that has a separate buffer.
fn is_buffer(arg: &&ArgSpec) -> bool {
    arg.kind == ArgKind::Tensor && !arg.is_meta
}

/// Binds one argument of a contract, by index, to its known parameter.
pub(crate) fn bind_passed(
    index: usize,
    args: &[ArgSpec],
    param: &Param,
) -> Result<Argument, BindError> {
    let (_, buffer) = passed(index, args)?;
    let place = |_, _| Some(Argument::Buffer(buffer));
    let tensors = Tensors { args, place: &place, array: &|_| None, object: &|_, _, _| None };
    bind_passed_in(index, &tensors, param)
}

/// Like [`bind_passed`], but with the given memory of tensors, and for arrays of pointers to them.
pub(crate) fn bind_passed_in(
    index: usize,
    tensors: &Tensors<'_>,
    param: &Param,
) -> Result<Argument, BindError> {
    let (arg, _) = passed(index, tensors.args)?;
    let one = match arg.kind {
        ArgKind::Pointers => {
            let value = warpgauge_contract::composed_value(tensors.args, arg)
                .map_err(|(code, message)| BindError::argument(index, code, message))?;
            Passed::composed(index, value, tensors.args)
        }
        _ => Passed::given(index, (index, 0), tensors.args),
    };
    bind_value(&one, param, tensors)
}

/// Returns an argument by index, and the number of buffers before it. For a tensor, that number is
/// the index of its buffer.
pub(super) fn passed(index: usize, args: &[ArgSpec]) -> Result<(&ArgSpec, usize), BindError> {
    let Some(arg) = args.get(index) else {
        let message = "the kernel was compiled for more arguments than the contract has".to_owned();
        return Err(BindError::argument(index, FailureCode::ArgumentCount, message));
    };
    Ok((arg, args[..index].iter().filter(is_buffer).count()))
}

/// Returns the bytes of a value that a compiler determined.
pub(crate) fn value_bytes(value: &Constant, param: &Param) -> Result<Vec<u8>, BindError> {
    let scalar = match value {
        Constant::Bool(value) => ScalarValue::Bool(*value),
        Constant::Int(value) => ScalarValue::Int((*value).into()),
        Constant::Unsigned(value) => ScalarValue::Int((*value).into()),
        Constant::Float(value) => ScalarValue::Float(*value),
        Constant::Text(_) => {
            let message = format!("`{}` is a text", super::error::describe(param, 0));
            return Err(BindError::argument(0, FailureCode::ArgumentType, message));
        }
    };
    let name = param.name.as_deref().unwrap_or("parameter");
    scalar::converted(scalar, name, 0, ArgKind::Int, param)
}

/// Binds one argument to its parameter.
pub(super) fn bind_value(
    one: &Passed<'_>,
    param: &Param,
    tensors: &Tensors<'_>,
) -> Result<Argument, BindError> {
    let (index, arg) = (one.index, &*one.arg);
    if let Some(fields) = &one.fields {
        return structure::bind(one, fields, param, tensors);
    }
    if let Some(of) = one.object {
        return object::bind(one, of, param, tensors);
    }
    if let Some(entries) = &one.pointers {
        return pointers::bind(one, entries, param, tensors);
    }
    let param = with_declared_type(index, arg, param)?;
    match (&arg.kind, &arg.tensor_spec, one.tensor) {
        (ArgKind::Tensor, Some(spec), Some((tensor, elements))) => {
            pointer::check(index, arg, spec.dtype, &param)?;
            (tensors.place)(tensor, elements).ok_or_else(|| {
                let message =
                    format!("tensor `{}` is a constant (`is_meta`), so it has no memory", arg.name);
                BindError::argument(index, FailureCode::ArgumentType, message)
            })
        }
        (ArgKind::None, ..) => pointer::null(index, arg, &param).map(Argument::Scalar),
        _ => scalar::bytes(index, arg, &param).map(Argument::Scalar),
    }
}

/// Returns the parameter with the contract's `c_type`, if the image does not contain the type.
fn with_declared_type(index: usize, arg: &ArgSpec, param: &Param) -> Result<Param, BindError> {
    let Some(text) = &arg.c_type else { return Ok(param.clone()) };
    let declared = parse_declared(index, arg, text)?;
    let known = !matches!(param.ctype, CType::Unknown | CType::Integer);
    let contradicts =
        known && std::mem::discriminant(&param.ctype) != std::mem::discriminant(&declared);
    if contradicts || ctype::scalar_size(&declared).is_some_and(|bytes| bytes != param.bytes) {
        return Err(BindError::argument(
            index,
            FailureCode::ArgumentType,
            format!(
                "argument `{}` declares `c_type: {text}`, but the kernel has `{}` ({} bytes); \
                 correct it or leave `c_type` out",
                arg.name,
                super::error::describe(param, index),
                param.bytes,
            ),
        ));
    }
    Ok(if known { param.clone() } else { Param { ctype: declared, ..param.clone() } })
}

fn parse_declared(index: usize, arg: &ArgSpec, text: &str) -> Result<CType, BindError> {
    ctype::parse(text).ok_or_else(|| {
        BindError::argument(
            index,
            FailureCode::UnknownCType,
            format!(
                "argument `{}`: `{text}` is an unknown C type; the known types are {}",
                arg.name,
                ctype::KNOWN
            ),
        )
    })
}

/// Returns the parameters that the contract declares, for images without type information
/// (compressed fat binaries).
fn declared_params(passed: &[Passed<'_>]) -> Result<Vec<Param>, Vec<BindError>> {
    let mut params = Vec::new();
    let mut errors = Vec::new();
    let mut offset = 0;
    for one in passed {
        let (index, arg) = (one.index, &*one.arg);
        let declared = match (&arg.c_type, arg.kind) {
            (Some(text), _) => parse_declared(index, arg, text),
            (None, ArgKind::Tensor | ArgKind::None | ArgKind::Pointers) => {
                Ok(CType::Pointer { pointee: None, is_const: false })
            }
            (None, _) => Err(BindError::argument(
                index,
                FailureCode::UnknownCType,
                format!(
                    "the image does not list its kernels' parameters; give argument `{}` a \
                     `c_type` ({})",
                    arg.name,
                    ctype::KNOWN
                ),
            )),
        };
        match declared {
            Ok(ctype) => {
                let bytes = ctype::scalar_size(&ctype).unwrap_or(8);
                offset = u32::next_multiple_of(offset, bytes);
                let name = Some(arg.name.clone());
                params.push(Param { name, ctype, bytes, offset, layout: None });
                offset += bytes;
            }
            Err(error) => errors.push(error),
        }
    }
    if errors.is_empty() { Ok(params) } else { Err(errors) }
}
