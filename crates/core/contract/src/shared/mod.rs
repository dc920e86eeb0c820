//! Shared tensors that a contract names in place of data. The service puts copies of their content
//! into the contract before it checks the contract.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::{ContractError, Mistakes, quoted};
use super::{
    ArgKind, CompareRequest, EvaluateRequest, IoContract, KernelCode, KernelFamily, Role, Sanitize,
    TensorSpec,
};
use warpgauge_model::{FailureCode, Requirements};
use warpgauge_tensor::{Blob, Compress, DataFormat, Dtype, TensorData, shape};

/// Maximum number of different shared tensors that one contract names.
pub const MAX_TENSORS: usize = 64;

/// Shared tensor whose content was put into a contract.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TensorUsed {
    /// Id of the tensor.
    pub tensor_id: String,
    /// Origin of the content.
    pub origin: TensorOrigin,
    /// BLAKE3 hash of the copied elements, hexadecimal. Absent if the copy stayed on its device, where only the run
    /// reads it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blake3: Option<String>,
    /// Device that the copy stayed on, e.g. `cuda:0`. Absent if the copy went through the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// Element type.
    pub dtype: Dtype,
    /// Shape, in C order.
    pub shape: Vec<u64>,
}

/// Origin of a shared tensor's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TensorOrigin {
    /// The server copied the caller's tensor when it accepted the request.
    Shared,
    /// The request contained the content, e.g. from a stored baseline. Its id was not verified.
    Given,
}

/// Copy of a shared tensor, made when a request was accepted.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CopiedTensor {
    pub used: TensorUsed,
    /// Elements of the tensor.
    pub content: Blob,
}

/// The uses of a shared tensor in a contract.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedTensor {
    /// Path of the first use.
    pub path: String,
    /// Number of uses.
    pub places: u64,
}

/// Shared tensors by id, as the contract names them, with their uses.
pub type TensorNames = BTreeMap<String, NamedTensor>;

/// A request that names shared tensors in place of data.
pub trait NamesTensors {
    /// Returns the shared tensors that the request names in place of data.
    fn tensor_names(&self) -> TensorNames;

    /// Puts the content of the shared tensor `name` into all its uses.
    ///
    /// # Errors
    /// The content does not fit a use.
    fn put_tensor(&mut self, name: &str, tensor: &CopiedTensor) -> Result<(), ContractError>;

    /// Returns the list of the tensors whose content is in the request.
    fn tensors_used_mut(&mut self) -> &mut Vec<TensorUsed>;

    /// Returns the requirements for the device if only the run itself reads this tensor, which the
    /// request names `places` times. Returns `None` if another component may read it.
    fn runs_on_device(&self, _name: &str, _places: u64) -> Option<&Requirements> {
        None
    }
}

impl EvaluateRequest {
    /// Returns the ordinal of the device that holds content of inputs, if any. The request can run
    /// only there.
    pub fn device_of_content(&self) -> Option<u32> {
        let args = self.kernel.io.iter().flat_map(|io| &io.args);
        let mut data = args.filter_map(|arg| arg.tensor_spec.as_ref()?.data.as_ref());
        data.find_map(|data| data.data_b64.on_device()).map(|content| content.device)
    }
}

impl NamesTensors for EvaluateRequest {
    fn tensor_names(&self) -> TensorNames {
        let mut names = TensorNames::new();
        in_kernel(&self.kernel, "kernel", &mut names);
        for (output, expected) in &self.expected {
            let path = format!("expected.{}", quoted(output));
            if let Some(kernel) = &expected.kernel {
                in_kernel(kernel, &format!("{path}.kernel"), &mut names);
            }
            for (field, data) in [("data", &expected.data), ("bounds", &expected.bounds)] {
                in_data(data.as_ref(), || format!("{path}.{field}"), &mut names);
            }
        }
        names
    }

    fn put_tensor(&mut self, name: &str, tensor: &CopiedTensor) -> Result<(), ContractError> {
        into_kernel(&mut self.kernel, "kernel", name, tensor)?;
        let args = self.kernel.io.as_ref().map_or(&[][..], |io| &io.args);
        for (output, expected) in &mut self.expected {
            let path = format!("expected.{}", quoted(output));
            if let Some(kernel) = &mut expected.kernel {
                into_kernel(kernel, &format!("{path}.kernel"), name, tensor)?;
            }
            let arg = args.iter().find(|arg| arg.name == *output);
            let spec = arg.and_then(|arg| arg.tensor_spec.as_ref());
            for (field, data) in [("data", &mut expected.data), ("bounds", &mut expected.bounds)] {
                into_expected(data.as_mut(), spec, &format!("{path}.{field}"), name, tensor)?;
            }
        }
        Ok(())
    }

    fn tensors_used_mut(&mut self) -> &mut Vec<TensorUsed> {
        &mut self.tensors
    }

    fn runs_on_device(&self, name: &str, places: u64) -> Option<&Requirements> {
        is_input_alone(self, name, places).then_some(&self.requires)
    }
}

impl NamesTensors for CompareRequest {
    fn tensor_names(&self) -> TensorNames {
        let mut names = TensorNames::new();
        in_kernel(&self.ref_kernel, "ref_kernel", &mut names);
        for (path, kernel) in self.paths() {
            in_kernel(kernel, &path, &mut names);
        }
        names
    }

    fn put_tensor(&mut self, name: &str, tensor: &CopiedTensor) -> Result<(), ContractError> {
        into_kernel(&mut self.ref_kernel, "ref_kernel", name, tensor)?;
        if let Some(kernel) = &mut self.custom_kernel {
            into_kernel(kernel, "custom_kernel", name, tensor)?;
        }
        for (index, candidate) in self.candidates.iter_mut().enumerate() {
            let path = format!("candidates[{index}].kernel");
            into_kernel(&mut candidate.kernel, &path, name, tensor)?;
        }
        Ok(())
    }

    fn tensors_used_mut(&mut self) -> &mut Vec<TensorUsed> {
        &mut self.tensors
    }
}

/// Returns whether only the run reads this shared tensor. All its uses must be inputs of a kernel
/// that runs on a device, and no earlier step may compute with it. A sanitizer also counts as a
/// reader, because it reports memory that another process wrote as uninitialised.
fn is_input_alone(request: &EvaluateRequest, name: &str, places: u64) -> bool {
    let runs = |kernel: &KernelCode| kernel.family() == KernelFamily::Device;
    let args = request.kernel.io.iter().flat_map(|io| &io.args);
    let inputs = args.filter(|arg| {
        let data = arg.tensor_spec.as_ref().and_then(|spec| spec.data.as_ref());
        data.is_some_and(|data| data.tensor_id.as_deref() == Some(name))
            && arg.kind == ArgKind::Tensor
            && arg.role == Role::Input
            && !arg.is_meta
    });
    let expected_of_device = request.expected.values().all(|expected| {
        expected.matrix.is_none() && expected.kernel.as_ref().is_none_or(|kernel| runs(kernel))
    });
    request.sanitize == Sanitize::Off
        && runs(&request.kernel)
        && expected_of_device
        && inputs.count() as u64 == places
}

pub(super) fn in_kernel(kernel: &KernelCode, path: &str, names: &mut TensorNames) {
    let args = kernel.io.iter().flat_map(|io| &io.args);
    for (index, arg) in args.enumerate() {
        let Some(spec) = &arg.tensor_spec else { continue };
        in_data(spec.data.as_ref(), || format!("{path}.io.args[{index}].tensor_spec.data"), names);
    }
}

fn in_data(data: Option<&TensorData>, path: impl FnOnce() -> String, names: &mut TensorNames) {
    let Some(id) = data.and_then(|data| data.tensor_id.as_ref()) else { return };
    let named = names
        .entry(id.clone())
        .or_insert_with(|| NamedTensor { path: format!("{}.tensor_id", path()), places: 0 });
    named.places += 1;
}

fn into_kernel(
    kernel: &mut KernelCode,
    path: &str,
    name: &str,
    tensor: &CopiedTensor,
) -> Result<(), ContractError> {
    let args = kernel.io.iter_mut().flat_map(|io| &mut io.args);
    for (index, arg) in args.enumerate() {
        if let Some(spec) = &mut arg.tensor_spec {
            into_argument(spec, &format!("{path}.io.args[{index}].tensor_spec"), name, tensor)?;
        }
    }
    kernel.io.iter_mut().for_each(IoContract::settle_shapes);
    Ok(())
}

/// Fills in the content, and the properties that the argument takes from the tensor.
fn into_argument(
    spec: &mut TensorSpec,
    path: &str,
    name: &str,
    tensor: &CopiedTensor,
) -> Result<(), ContractError> {
    let named = spec.data.as_mut().filter(|data| data.tensor_id.as_deref() == Some(name));
    let Some(data) = named else { return Ok(()) };
    if spec.init.is_some() {
        return Err(not_alone(format!("{path}.data")));
    }
    let used = &tensor.used;
    if spec.dtype_follows {
        (spec.dtype, spec.dtype_follows) = (used.dtype, false);
    } else if spec.dtype != used.dtype {
        let message = format!(
            "is {}, and the shared tensor is {}; leave it out, or convert the tensor",
            spec.dtype, used.dtype
        );
        return Err(wrong(format!("{path}.dtype"), FailureCode::DtypeMismatch, message));
    }
    if spec.shape.is_empty() {
        spec.shape.clone_from(&used.shape);
    } else {
        same_count(&spec.shape, used, format!("{path}.shape"))?;
    }
    fill(data, tensor, &format!("{path}.data"))
}

fn into_expected(
    data: Option<&mut TensorData>,
    output: Option<&TensorSpec>,
    path: &str,
    name: &str,
    tensor: &CopiedTensor,
) -> Result<(), ContractError> {
    let named = data.filter(|data| data.tensor_id.as_deref() == Some(name));
    let Some(data) = named else { return Ok(()) };
    // If the output has no shape yet, a later check compares the shapes.
    if let Some(output) = output.filter(|output| !output.shape.is_empty()) {
        same_count(&output.shape, &tensor.used, format!("{path}.tensor_id"))?;
    }
    if let Some(dtype) = data.dtype.filter(|dtype| *dtype != tensor.used.dtype) {
        let message = format!("is {dtype}, and the shared tensor is {}", tensor.used.dtype);
        return Err(wrong(format!("{path}.dtype"), FailureCode::DtypeMismatch, message));
    }
    data.dtype = Some(tensor.used.dtype);
    fill(data, tensor, path)
}

fn fill(data: &mut TensorData, tensor: &CopiedTensor, path: &str) -> Result<(), ContractError> {
    let bare = data.data_b64.is_empty()
        && data.matrix.is_none()
        && data.part.is_none()
        && data.compress == Compress::None
        && data.format == DataFormat::Raw;
    if !bare {
        return Err(not_alone(path.to_owned()));
    }
    data.tensor_id = None;
    data.data_b64 = tensor.content.clone();
    Ok(())
}

/// Checks that the shape has as many elements as the tensor.
fn same_count(extents: &[u64], used: &TensorUsed, path: String) -> Result<(), ContractError> {
    let count =
        |extents: &[u64]| extents.iter().try_fold(1u64, |all, extent| all.checked_mul(*extent));
    if count(extents) == count(&used.shape) {
        return Ok(());
    }
    let message = format!(
        "shape {} does not have as many elements as the shared tensor, whose shape is {}",
        shape::shown(extents),
        shape::shown(&used.shape)
    );
    Err(wrong(path, FailureCode::ShapeMismatch, message))
}

fn not_alone(path: String) -> ContractError {
    let message = "`tensor_id` cannot be combined with data, `matrix` or `init`";
    wrong(path, FailureCode::ConflictingFields, message.to_owned())
}

fn wrong(path: String, code: FailureCode, message: String) -> ContractError {
    ContractError { path, code, message }
}

/// Rejects names of shared tensors that no component has resolved.
pub(super) fn unresolved(names: &TensorNames, mistakes: &mut Mistakes) {
    for (name, NamedTensor { path, .. }) in names {
        let message = format!(
            "names the shared tensor `{}`, which this operation does not support: only a running \
             server does, in requests that run kernels. Send the request to the server that holds \
             the tensor, or give the content as data",
            quoted(name)
        );
        mistakes.add(path, FailureCode::InvalidData, message);
    }
}

#[cfg(test)]
mod tests;
