//! Global variables of an image that tensors of the contract fill.

use std::borrow::Cow;

use super::bind::BindError;
use super::{binding_failure, tensor_arguments};
use crate::error::ExecError;
use warpgauge_compile::{CompiledModule, ImageVariable};
use warpgauge_contract::{ArgSpec, IoContract};
use warpgauge_model::{Diagnostic, FailureCode, Severity};
use warpgauge_tensor::shape;
use warpgauge_worker::protocol::GlobalVariable;

/// Maximum number of variables that a message lists.
const MAX_LISTED: usize = 20;

/// The contract of a kernel, and the variables of the compiled image that tensors fill.
pub(super) struct Globals<'a> {
    /// The contract with its arguments. A tensor that names a variable that the image lacks is a
    /// parameter here.
    pub io: Cow<'a, IoContract>,
    /// Variables of the image that tensors of the contract fill.
    pub variables: Vec<GlobalVariable>,
    /// Text that lists the variables that the image lacks, for the message about a wrong number of
    /// arguments.
    pub missing: Option<String>,
}

impl<'a> Globals<'a> {
    /// Finds the variables of `artifact` that the contract names.
    ///
    /// # Errors
    /// Fails if a tensor and its variable differ in size.
    pub(super) fn new(
        artifact: &CompiledModule,
        io: &'a IoContract,
        path: &str,
    ) -> Result<Self, ExecError> {
        let none = Self { io: Cow::Borrowed(io), variables: Vec::new(), missing: None };
        if io.args.iter().all(|arg| arg.symbol.is_none()) {
            return Ok(none);
        }
        let mut settled = none;
        let mut errors = Vec::new();
        for (buffer, (index, arg)) in tensor_arguments(io).into_iter().enumerate() {
            let Some(symbol) = &arg.symbol else { continue };
            match (found(&artifact.variables, symbol), bytes(arg)) {
                (Some(variable), _)
                    if settled.variables.iter().any(|one| one.symbol == variable.symbol) =>
                {
                    let message = format!("another tensor fills variable `{symbol}`, too");
                    let at = format!("io.args[{index}].symbol");
                    errors.push(BindError::step(&at, FailureCode::DuplicateName, message));
                }
                (Some(variable), bytes) if variable.bytes == bytes => {
                    settled.variables.push(GlobalVariable {
                        symbol: variable.symbol.clone(),
                        buffer,
                        bytes,
                        is_written: arg.is_output(),
                    });
                }
                (Some(variable), bytes) => {
                    let message = format!(
                        "variable `{symbol}` has {} bytes, but tensor `{}` has {bytes}",
                        variable.bytes, arg.name
                    );
                    let at = format!("io.args[{index}].tensor_spec.shape");
                    errors.push(BindError::step(&at, FailureCode::SizeMismatch, message));
                }
                (None, _) => {
                    settled.missing = Some(absent(symbol, &artifact.variables));
                    settled.io.to_mut().args[index].symbol = None;
                }
            }
        }
        if errors.is_empty() { Ok(settled) } else { Err(binding_failure(path, errors)) }
    }

    /// Adds the variables that the image lacks to the message about a wrong number of arguments.
    pub(super) fn explain(&self, errors: Vec<BindError>) -> Vec<BindError> {
        let explained = |mut error: BindError| {
            if let Some(missing) = self.missing.as_ref().filter(|_| error.is_about_count()) {
                error.message = format!("{}; {missing}", error.message);
            }
            error
        };
        errors.into_iter().map(explained).collect()
    }
}

/// Returns a warning about `__constant__` variables that neither the source nor the contract fills.
pub(crate) fn unfilled(artifact: &CompiledModule, io: Option<&IoContract>) -> Option<Diagnostic> {
    let known = &artifact.variables;
    let symbols = io.iter().flat_map(|io| &io.args).filter_map(|arg| arg.symbol.as_deref());
    let filled = symbols.filter_map(|symbol| found(known, symbol)).collect::<Vec<_>>();
    let is_empty = |variable: &&ImageVariable| {
        variable.is_constant && !variable.is_initialised && !filled.contains(variable)
    };
    let names = known.iter().filter(is_empty).map(|variable| format!("`{}`", variable.name));
    let names = names.take(MAX_LISTED).collect::<Vec<_>>();
    let first = names.first()?;
    let message = format!(
        "nothing fills the __constant__ memory {}, which is zero: host code would copy its content there. Give a tensor with \
         `symbol: {}`",
        names.join(", "),
        first.trim_matches('`')
    );
    Some(Diagnostic { severity: Severity::Warning, file: None, line: None, column: None, message })
}

/// Returns the variable with this name or symbol.
fn found<'v>(known: &'v [ImageVariable], name: &str) -> Option<&'v ImageVariable> {
    let name = name.trim().trim_start_matches("::");
    let exact = known.iter().find(|variable| variable.symbol == name);
    exact.or_else(|| known.iter().find(|variable| variable.name == name))
}

fn absent(name: &str, known: &[ImageVariable]) -> String {
    let names = known.iter().map(|variable| format!("`{}`", variable.name));
    let names = names.take(MAX_LISTED).collect::<Vec<_>>().join(", ");
    match names.is_empty() {
        true => format!("its image has no variable `{name}`, so the tensor is a parameter"),
        false => {
            format!(
                "its image has no variable `{name}`, so the tensor is a parameter; there are {names}"
            )
        }
    }
}

fn bytes(arg: &ArgSpec) -> u64 {
    let spec = arg.tensor_spec.as_ref();
    spec.and_then(|spec| shape::bytes(&spec.shape, spec.dtype).ok()).unwrap_or(0)
}
