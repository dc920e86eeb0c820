//! Converts a request into a contract. The main function is [`contract_of`].

use std::collections::BTreeMap;

use super::kernel::code;
use super::numbers::Numbers;
use super::parts::{Part, PartError, Parts, float_blob, floats};
use super::paths::DEFAULT_ARGS;
use super::request::{MatrixData, Multiplier, SpmvOptions};
use crate::product::{FloatPrecision, product};
use crate::{Csr, CsrError};
use warpgauge_contract::{
    ArgKind, ArgSpec, Dim3, EvaluateRequest, Expected, Extent, IoContract, KernelCode, KernelType,
    Launch, ReturnOutputs, Role, TensorSpec, Tolerance,
};
use warpgauge_model::{FailureCode, Library, Requirements, Work};
use warpgauge_tensor::{Blob, Dtype, OutputEncoding, TensorData};

/// The default number of threads per block.
const DEFAULT_BLOCK: u64 = 256;

/// A problem in a request, with its location.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {message}")]
pub struct SpmvProblem {
    /// The path of the field in the request.
    pub path: String,
    pub code: FailureCode,
    /// The message, with the expected value, the received value and a remedy.
    pub message: String,
}

impl SpmvProblem {
    pub(crate) fn new(
        path: impl Into<String>,
        code: FailureCode,
        message: impl Into<String>,
    ) -> Self {
        Self { path: path.into(), code, message: message.into() }
    }
}

/// Reasons why a request cannot become a contract.
#[derive(Debug, thiserror::Error)]
pub enum SpmvError {
    /// The request is invalid.
    #[error(transparent)]
    Invalid(#[from] SpmvProblem),
    /// This machine lacks a resource, such as space for files.
    #[error("could not store the matrix in temporary files: {0}")]
    Io(#[from] std::io::Error),
}

/// Checks the matrix and the vector of a request.
///
/// # Errors
/// The error describes the problem and its location in the request.
pub fn checked(data: MatrixData, dtype: Option<Dtype>) -> Result<(Csr, Vec<f64>), SpmvProblem> {
    let dtype = element_type(dtype)?;
    let at = |field: &str| format!("matrix_data.{field}");
    let wrong = |field: &'static str| {
        move |message: String| SpmvProblem::new(at(field), FailureCode::InvalidData, message)
    };
    let values = data.values.floats(dtype.size()).map_err(wrong("values"))?;
    finite(&values, dtype, "matrix_data.values")?;
    if values.len() as u64 != data.nnz {
        let message = format!("`nnz` is {}, but `values` has {} elements", data.nnz, values.len());
        return Err(SpmvProblem::new(at("nnz"), FailureCode::SizeMismatch, message));
    }
    let col_indices = data.col_indices.integers().map_err(wrong("col_indices"))?;
    let row_ptr = data.row_ptr.integers().map_err(wrong("row_ptr"))?;
    let extents = (data.num_rows, data.num_cols);
    let csr = Csr::from_signed(extents, &row_ptr, &col_indices, values).map_err(|error| {
        let code = match error {
            CsrError::TooLarge { .. } => FailureCode::TooLarge,
            CsrError::Length { .. } => FailureCode::SizeMismatch,
            _ => FailureCode::InvalidData,
        };
        SpmvProblem::new(at(&error.field()), code, error.to_string())
    })?;
    has_rows(&csr, "matrix_data.num_rows")?;
    let x = vector(data.x, csr.cols(), dtype, "matrix_data.x")?;
    Ok((csr, x))
}

/// Checks that the product has at least one element.
fn has_rows(csr: &Csr, path: &str) -> Result<(), SpmvProblem> {
    if csr.rows() > 0 {
        return Ok(());
    }
    let message = "the matrix has no rows: its product has no elements that a kernel could compute";
    Err(SpmvProblem::new(path, FailureCode::InvalidData, message))
}

/// Checks that the matrix has non-zeros. In a contract that names a matrix, tensors have the shapes
/// of its arrays, and cuSPARSE uses their lengths.
pub(crate) fn not_empty(csr: &Csr, path: &str) -> Result<(), SpmvProblem> {
    if csr.nnz() > 0 {
        return Ok(());
    }
    let message = "the matrix has no non-zeros: there is nothing for a kernel to multiply";
    Err(SpmvProblem::new(path, FailureCode::InvalidData, message))
}

/// Checks that each vector of a matrix takes at most `max_bytes`. This is needed because even a
/// short name can request any number of columns.
pub(crate) fn vectors_fit(csr: &Csr, max_bytes: u64, path: &str) -> Result<(), SpmvProblem> {
    let longest = u64::from(csr.cols().max(csr.rows()));
    if longest.saturating_mul(8) <= max_bytes {
        return Ok(());
    }
    let message = format!(
        "its vectors have {longest} elements, which take more than the {max_bytes} bytes that a matrix may \
         have (limits.max_matrix_bytes_per_key, limits.max_decoded_bytes)"
    );
    Err(SpmvProblem::new(path, FailureCode::TooLarge, message))
}

/// Checks the vector of a request and returns it.
pub(crate) fn vector(
    numbers: Numbers,
    cols: u32,
    dtype: Dtype,
    path: &str,
) -> Result<Vec<f64>, SpmvProblem> {
    let wrong = |message: String| SpmvProblem::new(path, FailureCode::InvalidData, message);
    let x = numbers.floats(dtype.size()).map_err(wrong)?;
    finite(&x, dtype, path)?;
    if x.len() != cols as usize {
        let message = format!("{} elements, but the matrix has {cols} columns", x.len());
        return Err(SpmvProblem::new(path, FailureCode::SizeMismatch, message));
    }
    Ok(x)
}

/// Checks that all numbers are finite in the element type. Otherwise a result could not be
/// compared.
pub(crate) fn finite(numbers: &[f64], dtype: Dtype, path: &str) -> Result<(), SpmvProblem> {
    let largest = if dtype == Dtype::Float64 { f64::MAX } else { f64::from(f32::MAX) };
    let beyond = |number: &f64| number.is_nan() || number.abs() > largest;
    match numbers.iter().position(beyond) {
        None => Ok(()),
        Some(at) => {
            let message = format!("is {:e}, which is not finite in {dtype}", numbers[at]);
            Err(SpmvProblem::new(format!("{path}[{at}]"), FailureCode::InvalidData, message))
        }
    }
}

fn element_type(dtype: Option<Dtype>) -> Result<Dtype, SpmvProblem> {
    match dtype.unwrap_or(Dtype::Float32) {
        dtype @ (Dtype::Float32 | Dtype::Float64) => Ok(dtype),
        other => {
            let message = format!("{other} is not supported here; use float32 or float64");
            Err(SpmvProblem::new("options.dtype", FailureCode::InvalidValue, message))
        }
    }
}

/// Creates the contract of one product. The kernel receives the matrix as data, and its result must
/// match the CPU's result within a bound for each row.
///
/// Without `x`, all elements of the vector are 1. `num_runs` is the field of the same name in
/// requests. Each vector, and each format with padding, takes at most `max_bytes`.
///
/// # Errors
/// The error describes the problem and its location in the request.
pub fn contract_of(
    csr: &Csr,
    x: Option<Numbers>,
    multiplier: Multiplier<'_>,
    num_runs: Option<u32>,
    (options, max_bytes): (&SpmvOptions, u64),
) -> Result<EvaluateRequest, SpmvError> {
    let library;
    let options = match multiplier {
        Multiplier::Custom(_) => options,
        Multiplier::Cusparse => {
            library = of_library(options);
            &library
        }
    };
    let dtype = element_type(options.dtype)?;
    has_rows(csr, "mtx_filename")?;
    if multiplier == Multiplier::Cusparse {
        not_empty(csr, "mtx_filename")?;
    }
    vectors_fit(csr, max_bytes, "mtx_filename")?;
    let x = match x {
        Some(numbers) => vector(numbers, csr.cols(), dtype, "x")?,
        None => vec![1.0; csr.cols() as usize],
    };
    let (rounded, x_rounded);
    // A single-precision kernel receives rounded values, so the reference uses them too.
    let (multiplied, precision, with) = if dtype == Dtype::Float64 {
        (csr, FloatPrecision::Double, x.as_slice())
    } else {
        rounded = csr.clone().with_values(|value| f64::from(value as f32));
        x_rounded = x.iter().map(|&it| f64::from(it as f32)).collect::<Vec<_>>();
        (&rounded, FloatPrecision::Single, x_rounded.as_slice())
    };
    finite(csr.values(), dtype, "mtx_filename")?;
    let expected = product(multiplied, with, precision);
    finite(&expected.y, dtype, "y")?;
    let mut io = io(csr, &x, (options, dtype), max_bytes)?;
    let y = Expected {
        data: Some(data(float_blob(&expected.y, dtype)?)),
        bounds: Some(data(float_blob(&expected.bounds, Dtype::Float64)?)),
        ..Expected::default()
    };
    let kernel = match multiplier {
        Multiplier::Custom(kernel) => code(kernel, options, io),
        Multiplier::Cusparse => {
            io.launch = None;
            KernelCode::of_library(Library::Cusparse, Some(io))
        }
    };
    Ok(EvaluateRequest {
        kernel,
        num_trials: num_runs,
        timeout: options.timeout.unwrap_or(120.0),
        expected: BTreeMap::from([("y".to_owned(), y)]),
        tolerance: Some(Tolerance {
            atol: Some(0.0),
            rtol: Some(0.0),
            required_matched_ratio: None,
            allow_non_finite: Some(false),
        }),
        compare_as: BTreeMap::new(),
        // If a matrix has no non-zeros, any kernel that writes zeros passes.
        allow_weak: options.allow_weak || csr.nnz() == 0,
        work: Some(work(csr, dtype)),
        measure: options.measure.clone().unwrap_or_default(),
        profile: options.profile.clone(),
        sanitize: options.sanitize.clone().unwrap_or_default(),
        return_outputs: ReturnOutputs::Names(vec!["y".to_owned()]),
        output_encoding: OutputEncoding::default(),
        keep_outputs: BTreeMap::new(),
        isolation: options.isolation.unwrap_or_default(),
        requires: Requirements::default(),
        matrices: Vec::new(),
        tensors: Vec::new(),
        warnings: Vec::new(),
    })
}

/// Returns the minimum work of the product in CSR form. The matrix and the vector are read once,
/// and the result is written once. Each non-zero needs one multiplication and one addition.
pub(crate) fn work(csr: &Csr, dtype: Dtype) -> Work {
    let (rows, cols, nnz) = (f64::from(csr.rows()), f64::from(csr.cols()), f64::from(csr.nnz()));
    let element = dtype.size() as f64;
    let bytes = nnz * (element + 4.0) + (rows + 1.0) * 4.0 + (rows + cols) * element;
    Work { bytes: Some(bytes), flops: Some(2.0 * nnz) }
}

/// Returns the options that also apply to a library: measurement and element type. The others apply
/// only to kernels.
fn of_library(options: &SpmvOptions) -> SpmvOptions {
    SpmvOptions {
        dtype: options.dtype,
        measure: options.measure.clone(),
        isolation: options.isolation,
        timeout: options.timeout,
        allow_weak: options.allow_weak,
        ..SpmvOptions::default()
    }
}

fn io(
    csr: &Csr,
    x: &[f64],
    (options, dtype): (&SpmvOptions, Dtype),
    max_bytes: u64,
) -> Result<IoContract, SpmvError> {
    let names: Vec<&str> = if options.args.is_empty() {
        DEFAULT_ARGS.to_vec()
    } else {
        options.args.iter().map(String::as_str).collect()
    };
    if !names.contains(&"y") {
        let message = "the kernel must write `y`: include it among the parameters";
        return Err(SpmvProblem::new("options.args", FailureCode::MissingField, message).into());
    }
    let mut parts = Parts::new(csr, max_bytes, u64::MAX);
    let mut args = Vec::with_capacity(names.len());
    for (index, name) in names.iter().enumerate() {
        let path = format!("options.args[{index}]");
        if names[..index].contains(name) {
            let message = format!("`{name}` occurs twice");
            return Err(SpmvProblem::new(path, FailureCode::InvalidValue, message).into());
        }
        args.push(match *name {
            "y" => output(csr.rows(), dtype),
            name => {
                let part = match name {
                    "x" => floats(x, dtype),
                    name => parts.part(name, dtype),
                };
                let part = part.and_then(with_an_element);
                argument(name, part.map_err(|error| part_error(&path, error))?)
            }
        });
    }
    args.extend(options.constants.iter().map(|(name, value)| ArgSpec {
        value: Some((*value).into()),
        is_meta: true,
        ..empty(name, ArgKind::Int)
    }));
    let triton = options.kernel_type == Some(KernelType::Triton);
    let launch = options.launch.clone().unwrap_or_else(|| default_launch(csr, triton));
    Ok(IoContract { args, launch: Some(launch) })
}

/// Adds one element, zero, to an empty array, because buffers must have at least one element. The
/// matrix does not refer to it.
fn with_an_element(part: Part) -> Result<Part, PartError> {
    match part {
        Part::Array { dtype, length: 0, .. } => {
            let data = Blob::from_bytes(&vec![0; dtype.size()]);
            Ok(Part::Array { dtype, length: 1, data })
        }
        part => Ok(part),
    }
}

pub(crate) fn part_error(path: &str, error: PartError) -> SpmvError {
    match error {
        PartError::Io(error) => SpmvError::Io(error),
        error @ PartError::TooMuch => {
            SpmvProblem::new(path, FailureCode::TooMuchData, error.to_string()).into()
        }
        error => SpmvProblem::new(path, FailureCode::InvalidValue, error.to_string()).into(),
    }
}

/// Returns a launch with one thread, or one Triton program, for each row.
fn default_launch(csr: &Csr, triton: bool) -> Launch {
    let rows = u64::from(csr.rows());
    let of = |x: u64| Some(Dim3 { x: Extent::Value(x.max(1)), ..Dim3::default() });
    match triton {
        true => Launch { grid: of(rows), ..Launch::default() },
        false => Launch {
            grid: of(rows.div_ceil(DEFAULT_BLOCK)),
            block: of(DEFAULT_BLOCK),
            ..Launch::default()
        },
    }
}

fn empty(name: &str, kind: ArgKind) -> ArgSpec {
    ArgSpec {
        name: name.to_owned(),
        kind,
        value: None,
        value_of: None,
        tensor_spec: None,
        fields: Default::default(),
        pointers: Vec::new(),
        texture: None,
        surface: None,
        symbol: None,
        role: Role::Input,
        is_meta: false,
        descriptor: None,
        c_type: None,
    }
}

fn argument(name: &str, part: Part) -> ArgSpec {
    match part {
        Part::Number(number) => ArgSpec { value: Some(number.into()), ..empty(name, ArgKind::Int) },
        Part::Array { dtype, length, data: blob } => ArgSpec {
            tensor_spec: Some(TensorSpec {
                data: Some(data(blob)),
                ..TensorSpec::new(vec![length], dtype)
            }),
            ..empty(name, ArgKind::Tensor)
        },
    }
}

fn output(rows: u32, dtype: Dtype) -> ArgSpec {
    ArgSpec {
        tensor_spec: Some(TensorSpec::new(vec![u64::from(rows)], dtype)),
        role: Role::Output,
        ..empty("y", ArgKind::Tensor)
    }
}

pub(crate) fn data(blob: Blob) -> TensorData {
    TensorData::raw(blob)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn data_of(change: impl FnOnce(&mut Value)) -> Result<(Csr, Vec<f64>), SpmvProblem> {
        let mut data = json!({
            "num_rows": 2, "num_cols": 3, "nnz": 3, "values": [1.5, 2, -3], "col_indices": [0, 2, 1],
            "row_ptr": [0, 2, 3], "x": [1, 2, 3],
        });
        change(&mut data);
        checked(serde_json::from_value(data).unwrap(), None)
    }

    #[test]
    fn a_request_becomes_a_contract_that_is_valid() {
        let (csr, x) = data_of(|_| ()).unwrap();
        let options = SpmvOptions {
            kernel_type: Some(KernelType::Cuda),
            args: ["nnz", "y", "x", "ell_width", "spasm_positions", "csc_col_ptr", "row_indices"]
                .map(str::to_owned)
                .into(),
            ..SpmvOptions::default()
        };
        for options in
            [SpmvOptions { kernel_type: Some(KernelType::Cuda), ..Default::default() }, options]
        {
            let x = Numbers::Floats(x.clone());
            let contract = {
                let kernel = Multiplier::Custom("…");
                contract_of(&csr, Some(x.clone()), kernel, Some(3), (&options, 1 << 20)).unwrap()
            };
            let limits = warpgauge_contract::ContractLimits::default();
            assert_eq!(warpgauge_contract::validate(&contract, &limits), Ok(()));
            let library = Multiplier::Cusparse;
            let contract = contract_of(&csr, Some(x), library, None, (&options, 1 << 20)).unwrap();
            assert_eq!(contract.kernel.library(), Some(Library::Cusparse));
            assert_eq!(warpgauge_contract::validate(&contract, &limits), Ok(()));
        }
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        let cases: [(&str, Value, &str, &str); 9] = [
            ("nnz", json!(4), "matrix_data.nnz", "`values` has 3"),
            ("row_ptr", json!([0, 3, 2]), "matrix_data.row_ptr[2]", "must not decrease"),
            ("row_ptr", json!([0, 2]), "matrix_data.row_ptr", "3 are needed"),
            ("row_ptr", json!([0, 2, 9]), "matrix_data.row_ptr[2]", "there are 3"),
            ("row_ptr", json!([0, 1.5, 3]), "matrix_data.row_ptr", "not an integer"),
            ("col_indices", json!([0, 2, 3]), "matrix_data.col_indices[2]", "columns 0 to 2"),
            ("x", json!([1, 2]), "matrix_data.x", "3 columns"),
            ("values", json!([1, 1e39, 1]), "matrix_data.values[1]", "finite"),
            ("num_rows", json!(4_000_000_000u64), "matrix_data.num_rows", "at most"),
        ];
        let empty = data_of(|data| {
            for (field, value) in [
                ("nnz", json!(0)),
                ("values", json!([])),
                ("col_indices", json!([])),
                ("row_ptr", json!([0, 0, 0])),
            ] {
                data[field] = value;
            }
        });
        let (empty, x) = empty.unwrap();
        let options = SpmvOptions { kernel_type: Some(KernelType::Cuda), ..SpmvOptions::default() };
        let contract = |multiplier| {
            let x = Some(Numbers::Floats(x.clone()));
            contract_of(&empty, x, multiplier, None, (&options, 1 << 20))
        };
        let valid = contract(Multiplier::Custom("…")).unwrap();
        let limits = warpgauge_contract::ContractLimits::default();
        assert_eq!(warpgauge_contract::validate(&valid, &limits), Ok(()));
        assert!(valid.allow_weak);
        assert!(matches!(contract(Multiplier::Cusparse), Err(SpmvError::Invalid(_))));
        let no_rows = data_of(|data| {
            *data = json!({
                "num_rows": 0, "num_cols": 3, "nnz": 0, "values": [], "col_indices": [],
                "row_ptr": [0], "x": [1, 2, 3],
            });
        });
        assert_eq!(no_rows.unwrap_err().path, "matrix_data.num_rows");

        for (field, value, path, message) in cases {
            let problem = data_of(|data| data[field] = value).unwrap_err();
            assert_eq!(problem.path, path);
            assert!(problem.message.contains(message), "{problem}");
        }
        let (csr, _) = data_of(|_| ()).unwrap();
        for (args, path) in [
            (vec!["x"], "options.args"),
            (vec!["y", "y"], "options.args[1]"),
            (vec!["y", "z"], "options.args[1]"),
        ] {
            let args = args.into_iter().map(str::to_owned).collect();
            let options = SpmvOptions { args, ..SpmvOptions::default() };
            match contract_of(&csr, None, Multiplier::Custom(""), None, (&options, 1 << 20))
                .unwrap_err()
            {
                SpmvError::Invalid(problem) => assert_eq!(problem.path, path),
                SpmvError::Io(error) => panic!("{error}"),
            }
        }
    }
}
