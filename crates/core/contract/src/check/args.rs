//! Checks of arguments: names, kinds, values, tensors.

use std::collections::HashMap;

use super::element_types;
use crate::error::{Mistakes, quoted};
use crate::{
    ArgKind, ArgSpec, ContractLimits, KernelType, Role, TensorSpec, launches, settled_init, shapes,
    triton,
};
use warpgauge_model::FailureCode;
use warpgauge_tensor::{Compress, DataFormat, ElementGenerator, TensorData, shape};

/// Maximum length of a C type's name, bytes.
const MAX_C_TYPE: usize = 64;

/// Maximum length of a string argument, bytes.
const MAX_TEXT: usize = 4096;

pub(super) fn check(
    args: &[ArgSpec],
    kernel: KernelType,
    limits: &ContractLimits,
    mistakes: &mut Mistakes,
) {
    if args.len() > limits.max_args {
        let message = format!("{} arguments; at most {} are accepted", args.len(), limits.max_args);
        mistakes.add("kernel.io.args", FailureCode::TooLarge, message);
        return;
    }
    check_pointer_total(args, "kernel.io.args", mistakes);
    let mut first_of: HashMap<&str, usize> = HashMap::new();
    for (index, arg) in args.iter().enumerate() {
        if mistakes.full() {
            return;
        }
        let path = format!("kernel.io.args[{index}]");
        if let Some(first) = first_of.insert(&arg.name, index) {
            let message = format!("args[{first}] is named `{}` too", quoted(&arg.name));
            mistakes.add(format!("{path}.name"), FailureCode::DuplicateName, message);
        }
        check_one(args, arg, kernel, limits, &path, mistakes);
    }
}

/// Checks that all arrays of pointers together are not too long.
pub(super) fn check_pointer_total(args: &[ArgSpec], path: &str, mistakes: &mut Mistakes) {
    mistakes.require(launches::pointers_fit(args), path, FailureCode::TooLarge, || {
        format!(
            "the arrays of pointers have more than {} pointers in total",
            launches::MAX_POINTERS
        )
    });
}

/// Checks one argument by itself. Its path in the request is `path`; `args` are all arguments.
pub(super) fn check_one(
    args: &[ArgSpec],
    arg: &ArgSpec,
    kernel: KernelType,
    limits: &ContractLimits,
    path: &str,
    mistakes: &mut Mistakes,
) {
    check_name(&arg.name, limits, &format!("{path}.name"), mistakes);
    triton::check_argument(arg, kernel, path, mistakes);
    if let Some(c_type) = &arg.c_type {
        let fits = (1..=MAX_C_TYPE).contains(&c_type.trim().len());
        mistakes.require(fits, format!("{path}.c_type"), FailureCode::InvalidValue, || {
            format!("must be a C type of 1 to {MAX_C_TYPE} bytes, e.g. `float`")
        });
    }
    let is_struct = arg.kind == ArgKind::Struct;
    mistakes.require(
        is_struct || arg.fields.is_empty(),
        format!("{path}.fields"),
        FailureCode::WrongField,
        || "only arguments of type `struct` have fields".to_owned(),
    );
    mistakes.require(
        arg.kind == ArgKind::Pointers || arg.pointers.is_empty(),
        format!("{path}.pointers"),
        FailureCode::WrongField,
        || "only arguments of type `pointers` have `pointers`".to_owned(),
    );
    mistakes.require(
        arg.kind == ArgKind::Texture || arg.texture.is_none(),
        format!("{path}.texture"),
        FailureCode::WrongField,
        || "only arguments of type `texture` have a `texture`".to_owned(),
    );
    mistakes.require(
        arg.kind == ArgKind::Surface || arg.surface.is_none(),
        format!("{path}.surface"),
        FailureCode::WrongField,
        || "only arguments of type `surface` have a `surface`".to_owned(),
    );
    if let Some(symbol) = &arg.symbol {
        check_symbol(arg, symbol, kernel, limits, path, mistakes);
    }
    match arg.kind {
        ArgKind::Struct => structure(args, arg, kernel, path, mistakes),
        ArgKind::Pointers | ArgKind::Texture | ArgKind::Surface => {
            composed(args, arg, kernel, path, mistakes)
        }
        ArgKind::Tensor => tensor(args, arg, kernel, limits, path, mistakes),
        _ => scalar(arg, kernel, path, mistakes),
    }
}

/// Checks a name that expressions use.
pub(crate) fn check_name(name: &str, limits: &ContractLimits, path: &str, mistakes: &mut Mistakes) {
    if name.len() > limits.max_name_len {
        let message =
            format!("{} bytes long; at most {} are accepted", name.len(), limits.max_name_len);
        mistakes.add(path, FailureCode::InvalidName, message);
        return;
    }
    let mut characters = name.chars();
    let starts = characters.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    if !starts || !characters.all(|c| c.is_ascii_alphanumeric() || c == '_') {
        let message = format!(
            "must be an identifier (letters, digits, `_`; no digit first), not `{}`",
            quoted(name)
        );
        mistakes.add(path, FailureCode::InvalidName, message);
    }
}

fn scalar(arg: &ArgSpec, kernel: KernelType, path: &str, mistakes: &mut Mistakes) {
    if arg.tensor_spec.is_some() {
        let message = "only arguments of type `tensor` have a `tensor_spec`";
        mistakes.add(format!("{path}.tensor_spec"), FailureCode::WrongField, message);
    }
    if arg.role != Role::Input {
        let message = "a scalar is passed by value and cannot be an output; use a tensor of \
                       shape [1]";
        mistakes.add(format!("{path}.role"), FailureCode::WrongField, message);
    }
    if arg.kind == ArgKind::None {
        none(arg, kernel, path, mistakes);
    } else if arg.kind == ArgKind::Str {
        text(arg, kernel, path, mistakes);
    } else if let Err(message) = arg.scalar_value() {
        let code =
            if arg.value.is_some() { FailureCode::WrongType } else { FailureCode::MissingValue };
        mistakes.add(format!("{path}.value"), code, message);
    }
}

/// Checks the name of a variable of the image that holds a tensor.
fn check_symbol(
    arg: &ArgSpec,
    symbol: &str,
    kernel: KernelType,
    limits: &ContractLimits,
    path: &str,
    mistakes: &mut Mistakes,
) {
    let path = format!("{path}.symbol");
    let is_tensor = arg.kind == ArgKind::Tensor && arg.role != Role::Scratch;
    mistakes.require(is_tensor, path.clone(), FailureCode::WrongField, || {
        "only a tensor of role input, output or inout can be a variable of the image".to_owned()
    });
    let has_variables = matches!(kernel, KernelType::Cuda | KernelType::Ptx | KernelType::Cubin);
    mistakes.require(has_variables, path.clone(), FailureCode::WrongField, || {
        format!(
            "only kernels of the types cuda, ptx and cubin have variables that can be filled, not \
             {}",
            kernel.name()
        )
    });
    let fits = !symbol.trim().is_empty()
        && symbol.len() <= limits.max_name_len
        && !symbol.contains(warpgauge_model::is_hidden);
    mistakes.require(fits, path, FailureCode::InvalidName, || {
        format!("must be the name of a variable, of 1 to {} bytes", limits.max_name_len)
    });
}

/// Checks an argument of type `struct`: its fields, and that it is passed by value to CUDA C++ source.
fn structure(
    args: &[ArgSpec],
    arg: &ArgSpec,
    kernel: KernelType,
    path: &str,
    mistakes: &mut Mistakes,
) {
    let is_source = kernel == KernelType::Cuda;
    mistakes.require(is_source, format!("{path}.type"), FailureCode::WrongType, || {
        format!(
            "the layout of a structure is read from CUDA C++ source, and a kernel of type {} has \
             none",
            kernel.name()
        )
    });
    let alone = arg.value.is_none() && arg.value_of.is_none() && arg.tensor_spec.is_none();
    mistakes.require(alone, path, FailureCode::WrongField, || {
        "a structure has `fields`, and no `value` and no `tensor_spec`".to_owned()
    });
    mistakes.require(
        arg.role == Role::Input && !arg.is_meta,
        path,
        FailureCode::WrongField,
        || "a structure is passed by value: it has no `role` and cannot be a constant".to_owned(),
    );
    if let Err((code, message)) = launches::composed_value(args, arg) {
        mistakes.add(format!("{path}.fields"), code, message);
    }
}

/// Checks an argument of type `pointers`, `texture` or `surface`: the tensors that it names, and that the kernel's type
/// supports it.
fn composed(
    args: &[ArgSpec],
    arg: &ArgSpec,
    kernel: KernelType,
    path: &str,
    mistakes: &mut Mistakes,
) {
    let (what, field) = match arg.kind {
        ArgKind::Texture => ("textures", "texture"),
        ArgKind::Surface => ("surfaces", "surface"),
        _ => ("arrays of pointers", "pointers"),
    };
    let takes = match arg.kind {
        ArgKind::Pointers => kernel.takes_pointers(),
        _ => kernel.has_launches(),
    };
    mistakes.require(takes, format!("{path}.type"), FailureCode::WrongType, || {
        let triton = if arg.kind == ArgKind::Pointers { ", and of type triton," } else { "" };
        format!(
            "kernels of the types cuda, ptx, cubin and fatbin{triton} take {what}, not {}: pass the tensors, or one tensor \
             with an index into it",
            kernel.name()
        )
    });
    let alone = arg.value.is_none() && arg.value_of.is_none() && arg.tensor_spec.is_none();
    mistakes.require(alone, path, FailureCode::WrongField, || {
        format!("an argument of type `{field}` has `{field}`, and no `value` and no `tensor_spec`")
    });
    mistakes.require(
        arg.role == Role::Input && !arg.is_meta,
        path,
        FailureCode::WrongField,
        || {
            format!(
                "an argument of type `{field}` has no `role` and cannot be a constant: the \
                     tensors that it names have roles"
            )
        },
    );
    if let Err((code, message)) = launches::composed_value(args, arg) {
        mistakes.add(format!("{path}.{field}"), code, message);
    }
}

/// Checks an argument that has no value.
fn none(arg: &ArgSpec, kernel: KernelType, path: &str, mistakes: &mut Mistakes) {
    let given = arg.value.is_some() || arg.value_of.is_some();
    mistakes.require(!given, format!("{path}.value"), FailureCode::WrongField, || {
        "an argument of type `none` has no value: leave it out".to_owned()
    });
    mistakes.require(
        kernel.family().takes_none(),
        format!("{path}.type"),
        FailureCode::WrongType,
        || format!("an argument of a {} kernel must have a value", kernel.name()),
    );
}

/// Checks a string. It must be an argument of a Python function or a compile-time constant, because
/// device code has no string parameters.
fn text(arg: &ArgSpec, kernel: KernelType, path: &str, mistakes: &mut Mistakes) {
    if !arg.is_meta && !kernel.family().takes_text() {
        let message = "a kernel takes no strings at run time; only compile-time constants of \
                       Triton kernels (`is_meta: true`) and arguments of torch kernels can be \
                       strings";
        mistakes.add(format!("{path}.type"), FailureCode::WrongType, message);
        return;
    }
    let text = arg.value.as_ref().and_then(|value| value.as_str());
    let fits = text.is_some_and(|text| text.len() <= MAX_TEXT);
    mistakes.require(fits, format!("{path}.value"), FailureCode::WrongType, || {
        format!("must be a string of at most {MAX_TEXT} bytes")
    });
}

fn tensor(
    args: &[ArgSpec],
    arg: &ArgSpec,
    kernel: KernelType,
    limits: &ContractLimits,
    path: &str,
    mistakes: &mut Mistakes,
) {
    mistakes.require(
        kernel.has_launches() || arg.role != Role::Scratch,
        format!("{path}.role"),
        FailureCode::WrongField,
        || {
            format!(
                "only kernels of the types cuda, ptx, cubin and fatbin have scratch memory, not {}",
                kernel.name()
            )
        },
    );
    if arg.value.is_some() {
        let message = "a tensor has no `value`; give its content in `tensor_spec.init` or `.data`";
        mistakes.add(format!("{path}.value"), FailureCode::WrongField, message);
    }
    let path = format!("{path}.tensor_spec");
    let Some(spec) = &arg.tensor_spec else {
        let message = "a tensor needs a `tensor_spec` with its `shape` and `dtype`";
        mistakes.add(path, FailureCode::MissingTensorSpec, message);
        return;
    };
    if let Some(remedy) = element_types::remedy(kernel, spec.dtype) {
        mistakes.add(format!("{path}.dtype"), FailureCode::WrongType, remedy);
    }
    if !spec.open.is_empty() {
        return shapes::report_open(args, spec, &path, mistakes);
    }
    match shape::bytes(&spec.shape, spec.dtype) {
        Err(error) => {
            mistakes.add(format!("{path}.shape"), FailureCode::InvalidShape, error.to_string())
        }
        Ok(bytes) if bytes > limits.max_tensor_bytes => mistakes.add(
            format!("{path}.shape"),
            FailureCode::TooLarge,
            format!(
                "the tensor has {bytes} bytes; at most {} are accepted",
                limits.max_tensor_bytes
            ),
        ),
        Ok(_) => (),
    }
    content(args, arg.role, spec, &path, mistakes);
}

fn content(args: &[ArgSpec], role: Role, spec: &TensorSpec, path: &str, mistakes: &mut Mistakes) {
    match (&spec.init, &spec.data) {
        (Some(_), Some(_)) => {
            mistakes.add(path, FailureCode::ConflictingFields, "give `init` or `data`, not both");
        }
        (given_init, given_data) if role == Role::Scratch => {
            let empty = given_init.is_none() && given_data.is_none();
            mistakes.require(empty, path, FailureCode::WrongField, || {
                "the content of scratch memory is not defined before a run: fill it by a `memset` or a kernel of \
                 `launches` or `setup`, or make it `role: inout`"
                    .to_owned()
            });
        }
        (None, None) if role != Role::Output => mistakes.add(
            path,
            FailureCode::MissingContent,
            "the kernel reads this tensor: give its content as `init` or `data`",
        ),
        _ => (),
    }
    if let Some(init) = &spec.init
        && let Err(error) = settled_init(init, args)
            .and_then(|init| ElementGenerator::new(&init, spec.dtype, &spec.shape))
    {
        mistakes.add(
            format!("{path}.init.{}", error.field),
            FailureCode::InvalidInit,
            error.message,
        );
    }
    if let Some(data) = &spec.data {
        check_data(data, spec, &format!("{path}.data"), mistakes);
    }
}

/// Checks that given content matches its tensor. The size of compressed content is known only after
/// decoding.
pub(super) fn check_data(
    data: &TensorData,
    spec: &TensorSpec,
    path: &str,
    mistakes: &mut Mistakes,
) {
    if data.part.is_some() {
        let message = "goes with `matrix`, the name of the matrix that it is a part of";
        mistakes.add(format!("{path}.part"), FailureCode::MissingField, message);
        return;
    }
    if let Some(dtype) = data.dtype.filter(|&dtype| dtype != spec.dtype) {
        let message = format!("the data is {dtype}, but the tensor is {}", spec.dtype);
        mistakes.add(format!("{path}.dtype"), FailureCode::DtypeMismatch, message);
        return;
    }
    if let Some(shape) = data.shape.as_ref().filter(|&shape| *shape != spec.shape) {
        let message = format!(
            "the data has shape {}, but the tensor has shape {}",
            shape::shown(shape),
            shape::shown(&spec.shape)
        );
        mistakes.add(format!("{path}.shape"), FailureCode::ShapeMismatch, message);
        return;
    }
    let path = format!("{path}.data_b64");
    match (data.data_b64.decoded_len(), shape::bytes(&spec.shape, spec.dtype)) {
        (Err(error), _) => mistakes.add(path, FailureCode::InvalidBase64, error.to_string()),
        (Ok(came), Ok(wanted))
            if data.compress == Compress::None
                && data.format == DataFormat::Raw
                && came != wanted =>
        {
            let message = format!(
                "{came} bytes of data, but shape {} of {} needs {wanted}",
                shape::shown(&spec.shape),
                spec.dtype
            );
            mistakes.add(path, FailureCode::SizeMismatch, message);
        }
        _ => (),
    }
}
