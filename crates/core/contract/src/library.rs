//! Functions of NVIDIA's libraries in place of kernels, and their arguments in a contract. The main
//! type is [`LibraryFunction`].

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::{ContractError, Mistakes, quoted};
use super::{
    ArgKind, ArgSpec, IoContract, KernelCode, KernelFamily, KernelMetadata, KernelType, Role,
};
use warpgauge_model::{FailureCode, Library};
use warpgauge_tensor::Dtype;

/// Function of an NVIDIA library that a contract can call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LibraryFunction {
    /// `cusparseSpMV`: `y` = A·`x`, with A in CSR form as `values`, `col_indices` and `row_ptr`.
    Spmv,
    /// `cublasGemmEx`: `c` = `a`·`b`, all in row-major order. Products of half-precision numbers
    /// are summed in binary32.
    Gemm,
}

impl LibraryFunction {
    /// Returns the function of a library that a contract can call.
    fn of(library: Library) -> Self {
        match library {
            Library::Cusparse => Self::Spmv,
            Library::Cublas => Self::Gemm,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Spmv => "spmv",
            Self::Gemm => "gemm",
        }
    }

    /// Returns the names of the function's arguments in the contract; the last is the result.
    fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Spmv => &["values", "col_indices", "row_ptr", "x", "y"],
            Self::Gemm => &["a", "b", "c"],
        }
    }

    fn computes_with(self, dtype: Dtype) -> bool {
        match dtype {
            Dtype::Float32 | Dtype::Float64 => true,
            Dtype::Float16 | Dtype::Bfloat16 => self == Self::Gemm,
            _ => false,
        }
    }
}

/// A call with its arguments from a contract.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedCall {
    pub library: Library,
    /// Element type of the computation.
    pub dtype: Dtype,
    /// Rows, columns and non-zeros of `spmv`; m, n and k of `gemm`.
    pub extents: [u64; 3],
    /// Indices of the arguments in the contract, in the function's order, with the result last.
    pub arguments: Vec<usize>,
}

impl KernelCode {
    /// Returns a kernel that calls a library's function. It takes the arguments of `io` that have
    /// the names of the function's parameters.
    pub fn of_library(library: Library, io: Option<IoContract>) -> Self {
        Self {
            source_code: None,
            files: BTreeMap::new(),
            source_path: None,
            launches: Vec::new(),
            setup: Vec::new(),
            binary_b64: None,
            kernel_type: KernelType::Library,
            io,
            metadata: Some(KernelMetadata {
                library: Some(library),
                function: Some(LibraryFunction::of(library)),
                ..KernelMetadata::default()
            }),
        }
    }

    /// Returns the library that the kernel calls, if any.
    pub fn library(&self) -> Option<Library> {
        let metadata = self.metadata.as_ref().filter(|_| self.family() == KernelFamily::Library);
        metadata.and_then(|metadata| metadata.library)
    }
}

/// Resolves the call of a library kernel with these arguments. `path` is the kernel's path in the
/// request.
///
/// # Errors
/// Arguments that are missing or do not match.
pub fn resolve_call(
    kernel: &KernelCode,
    args: &[ArgSpec],
    path: &str,
) -> Result<ResolvedCall, Vec<ContractError>> {
    let mut mistakes = Mistakes::new(8);
    let call = call_of(kernel, args, path, &mut mistakes);
    mistakes.into_result()?;
    call.ok_or_else(Vec::new)
}

/// Resolves a call as [`resolve_call`] does, but adds the mistakes to a list.
pub(super) fn call_of(
    kernel: &KernelCode,
    args: &[ArgSpec],
    path: &str,
    mistakes: &mut Mistakes,
) -> Option<ResolvedCall> {
    let library = kernel.library()?;
    let function = LibraryFunction::of(library);
    let at = format!("{path}.io.args");
    let mut found = Vec::new();
    for name in function.arguments() {
        let index = args.iter().position(|arg| arg.name.eq_ignore_ascii_case(name));
        let tensor = index.filter(|&index| args[index].kind == ArgKind::Tensor);
        match tensor.and_then(|index| Some((index, args[index].tensor_spec.as_ref()?))) {
            Some(one) => found.push(one),
            None => {
                let message = format!(
                    "`{}` of {} takes the tensors {} by these names, in any order; there is no tensor `{name}`",
                    function.name(),
                    library.name(),
                    function.arguments().join(", ")
                );
                mistakes.add(at.clone(), FailureCode::MissingField, message);
                return None;
            }
        }
    }
    let arguments: Vec<usize> = found.iter().map(|(index, _)| *index).collect();
    roles(args, &arguments, function, &at, mistakes);
    let shape = |place: usize| found[place].1.shape.as_slice();
    let size = |place: usize| shape(place).iter().fold(1u64, |all, &one| all.saturating_mul(one));
    let (dtype, fits, extents, expected) = match function {
        LibraryFunction::Spmv => {
            let (nnz, rows, cols) = (size(0), size(4), size(3));
            let fits = size(1) == nnz && size(2) == rows.saturating_add(1);
            let expected =
                "as many `col_indices` as `values`, and one more `row_ptr` than elements of `y`";
            (found[0].1.dtype, fits, [rows, cols, nnz], expected)
        }
        LibraryFunction::Gemm => {
            let fits = match [0, 1, 2].map(shape) {
                [[m, k], [of_b, n], [rows, cols]] => m == rows && n == cols && k == of_b,
                _ => false,
            };
            let extent = |place: usize, axis: usize| shape(place).get(axis).copied().unwrap_or(0);
            let extents = [extent(0, 0), extent(1, 1), extent(0, 1)];
            (found[0].1.dtype, fits, extents, "`a` of shape [m, k], `b` of [k, n], `c` of [m, n]")
        }
    };
    mistakes.require(fits, at.clone(), FailureCode::ShapeMismatch, || {
        format!("`{}` needs {expected}", function.name())
    });
    let small = extents.iter().all(|&extent| (1..=i32::MAX as u64).contains(&extent));
    mistakes.require(small, at.clone(), FailureCode::TooLarge, || {
        format!("`{}` takes extents from 1 to {}, not {extents:?}", function.name(), i32::MAX)
    });
    for (place, (index, spec)) in found.iter().enumerate() {
        let is_index = function == LibraryFunction::Spmv && matches!(place, 1 | 2);
        let fits = match is_index {
            true => spec.dtype == Dtype::Int32,
            false => spec.dtype == dtype && function.computes_with(dtype),
        };
        mistakes.require(
            fits,
            format!("{at}[{index}].tensor_spec.dtype"),
            FailureCode::DtypeMismatch,
            || match (is_index, function) {
                (true, _) => {
                    format!("{} takes indices of int32, not {}", library.name(), spec.dtype)
                }
                (_, LibraryFunction::Spmv) => {
                    format!(
                        "must be float32 or float64, the same for values, x and y; not {}",
                        spec.dtype
                    )
                }
                (_, LibraryFunction::Gemm) => format!(
                    "must be float32, float64, float16 or bfloat16, the same for all three; not {}",
                    spec.dtype
                ),
            },
        );
    }
    Some(ResolvedCall { library, dtype, extents, arguments })
}

/// Checks that the result is the only output.
fn roles(
    args: &[ArgSpec],
    arguments: &[usize],
    function: LibraryFunction,
    at: &str,
    mistakes: &mut Mistakes,
) {
    let result = arguments.last().copied();
    for (index, arg) in args.iter().enumerate() {
        let written = arg.kind == ArgKind::Tensor && arg.role != Role::Input;
        let is_result = Some(index) == result;
        mistakes.require(
            written == is_result,
            format!("{at}[{index}].role"),
            FailureCode::NotAnOutput,
            || match is_result {
                true => format!(
                    "`{}` writes `{}`: give it `role: output`",
                    function.name(),
                    quoted(&arg.name)
                ),
                false => format!(
                    "`{}` does not write `{}`: it cannot be an output",
                    function.name(),
                    quoted(&arg.name)
                ),
            },
        );
    }
}

/// Checks that a library kernel has no code, and metadata only to name the function.
pub(super) fn check_code(kernel: &KernelCode, path: &str, mistakes: &mut Mistakes) {
    for (field, given) in
        [("source_code", kernel.source_code.is_some()), ("binary_b64", kernel.binary_b64.is_some())]
    {
        mistakes.require(!given, format!("{path}.{field}"), FailureCode::WrongField, || {
            "a library contains its own code: leave it out".to_owned()
        });
    }
    let none = KernelMetadata::default();
    let metadata = kernel.metadata.as_ref().unwrap_or(&none);
    let Some(library) = metadata.library else {
        let message = "name the library to call: `cusparse` (`spmv`) or `cublas` (`gemm`)";
        mistakes.add(format!("{path}.metadata.library"), FailureCode::MissingField, message);
        return;
    };
    let function = LibraryFunction::of(library);
    mistakes.require(
        metadata.function.is_none_or(|given| given == function),
        format!("{path}.metadata.function"),
        FailureCode::InvalidValue,
        || format!("the only function of {} is `{}`", library.name(), function.name()),
    );
    for (field, given) in [
        ("kernel_name", metadata.kernel_name.is_some()),
        ("compiler_options", !metadata.compiler_options.is_empty()),
        ("name_expressions", !metadata.name_expressions.is_empty()),
        ("backend", metadata.backend.is_some()),
        ("configuration", metadata.configuration.is_some()),
    ] {
        mistakes.require(
            !given,
            format!("{path}.metadata.{field}"),
            FailureCode::WrongField,
            || "a library's function is not compiled: leave it out".to_owned(),
        );
    }
}

/// Checks that only library kernels name a library.
pub(super) fn check_others(metadata: &KernelMetadata, path: &str, mistakes: &mut Mistakes) {
    for (field, given) in
        [("library", metadata.library.is_some()), ("function", metadata.function.is_some())]
    {
        mistakes.require(!given, format!("{path}.{field}"), FailureCode::WrongField, || {
            "goes with `kernel_type: library`".to_owned()
        });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::{CompareRequest, ContractLimits, EvaluateRequest, validate, validate_compare};

    fn tensor(name: &str, shape: Value, dtype: &str, output: bool) -> Value {
        let mut arg = json!({"name": name, "type": "tensor", "tensor_spec": {
            "shape": shape, "dtype": dtype}});
        match output {
            true => arg["role"] = "output".into(),
            false => arg["tensor_spec"]["init"] = json!({"kind": "zeros"}),
        }
        arg
    }

    fn spmv() -> Value {
        json!({"kernel": {
            "kernel_type": "library", "metadata": {"library": "cusparse"},
            "io": {"args": [
                {"name": "num_rows", "type": "int", "value": 4},
                tensor("row_ptr", json!([5]), "int32", false),
                tensor("col_indices", json!([9]), "int32", false),
                tensor("values", json!([9]), "float64", false),
                tensor("x", json!([7]), "float64", false),
                tensor("y", json!([4]), "float64", true),
            ]},
        }})
    }

    fn told(body: Value) -> Vec<(String, String)> {
        let request: EvaluateRequest = serde_json::from_value(body).unwrap();
        let errors = validate(&request, &ContractLimits::default()).err().unwrap_or_default();
        errors.into_iter().map(|error| (error.path, error.message)).collect()
    }

    #[test]
    fn a_call_takes_its_arguments_by_their_names() {
        let request: EvaluateRequest = serde_json::from_value(spmv()).unwrap();
        assert_eq!(validate(&request, &ContractLimits::default()), Ok(()));
        let args = &request.kernel.io.as_ref().unwrap().args;
        let call = resolve_call(&request.kernel, args, "kernel").unwrap();
        assert_eq!((call.extents, call.dtype), ([4, 7, 9], Dtype::Float64));
        assert_eq!(call.arguments, [3, 2, 1, 4, 5]);
        let mut gemm = spmv();
        gemm["kernel"]["metadata"] = json!({"library": "cublas", "function": "gemm"});
        gemm["kernel"]["io"]["args"] = json!([
            tensor("A", json!([2, 3]), "float16", false),
            tensor("B", json!([3, 5]), "float16", false),
            tensor("C", json!([2, 5]), "float16", true),
        ]);
        let request: EvaluateRequest = serde_json::from_value(gemm).unwrap();
        assert_eq!(validate(&request, &ContractLimits::default()), Ok(()));
        let args = &request.kernel.io.as_ref().unwrap().args;
        assert_eq!(resolve_call(&request.kernel, args, "kernel").unwrap().extents, [2, 5, 3]);
    }

    #[test]
    fn what_does_not_fit_is_told_with_its_place() {
        let args = "/kernel/io/args";
        for (pointer, value, path, text) in [
            ("/kernel/metadata", json!({}), "kernel.metadata.library", "`cusparse`"),
            (
                "/kernel/metadata/function",
                json!("gemm"),
                "kernel.metadata.function",
                "the only function of cusparse is `spmv`",
            ),
            ("/kernel/metadata/kernel_name", json!("k"), "kernel.metadata.kernel_name", "compiled"),
            ("/kernel/source_code", json!("k"), "kernel.source_code", "its own code"),
            (
                "/kernel/io/launch",
                json!({"grid": {"x": 1}, "block": {"x": 1}}),
                "kernel.io.launch",
                "leave `launch` out",
            ),
            (&format!("{args}/4/name"), json!("vector"), "kernel.io.args", "no tensor `x`"),
            (&format!("{args}/2/tensor_spec/shape"), json!([8]), "kernel.io.args", "as many"),
            (
                &format!("{args}/1/tensor_spec/shape"),
                json!([4]),
                "kernel.io.args",
                "one more `row_ptr`",
            ),
            (
                &format!("{args}/1/tensor_spec/dtype"),
                json!("int64"),
                "kernel.io.args[1].tensor_spec.dtype",
                "int32",
            ),
            (
                &format!("{args}/4/tensor_spec/dtype"),
                json!("float32"),
                "kernel.io.args[4].tensor_spec.dtype",
                "the same",
            ),
            (&format!("{args}/4/role"), json!("inout"), "kernel.io.args[4].role", "not write"),
            ("/profile", json!({}), "profile", "not supported"),
            ("/sanitize", json!("memcheck"), "sanitize", "not supported"),
        ] {
            let mut body = spmv();
            let (parent, field) = pointer.rsplit_once('/').unwrap();
            match body.pointer_mut(parent).unwrap() {
                Value::Array(items) => items[field.parse::<usize>().unwrap()] = value,
                object => object[field] = value,
            }
            let told = told(body);
            let fits = told.iter().any(|(at, message)| at == path && message.contains(text));
            assert!(fits, "{pointer}: {told:?}");
        }
        let mut cuda = spmv();
        cuda["kernel"]["kernel_type"] = "cuda".into();
        cuda["kernel"]["source_code"] = "k".into();
        let errors = told(cuda);
        assert!(errors.iter().any(|(path, _)| path == "kernel.metadata.library"), "{errors:?}");
    }

    #[test]
    fn a_kernel_is_compared_with_a_call_on_the_same_arguments() {
        let mut body = json!({
            "ref_kernel": spmv()["kernel"],
            "custom_kernel": {"kernel_type": "cuda", "source_code": "k", "io": {
                "launch": {"grid": {"x": "num_rows"}, "block": {"x": 32}}}},
        });
        let check = |body: &Value| {
            let request: CompareRequest = serde_json::from_value(body.clone()).unwrap();
            validate_compare(&request, &ContractLimits::default())
        };
        assert_eq!(check(&body), Ok(()));
        // A library chooses its own launch, so the other kernels need one.
        body["custom_kernel"].as_object_mut().unwrap().remove("io");
        let errors = check(&body).unwrap_err();
        assert_eq!(errors[0].path, "custom_kernel.io.launch");
        // Likewise, the library does not use the kernel's launch.
        let mut expecting = spmv();
        expecting["kernel"]["kernel_type"] = "cuda".into();
        expecting["kernel"]["source_code"] = "k".into();
        expecting["kernel"]["metadata"] = json!({});
        expecting["kernel"]["io"]["launch"] = json!({"grid": {"x": 1}, "block": {"x": 1}});
        let library = json!({"kernel_type": "library", "metadata": {"library": "cusparse"}});
        expecting["expected"] = json!({"y": {"kernel": library}});
        assert_eq!(told(expecting.clone()), []);
        expecting["kernel"]["io"]["args"][4]["name"] = "v".into();
        let errors = told(expecting);
        assert!(errors[0].0.starts_with("expected.y.kernel"), "{errors:?}");
    }
}
