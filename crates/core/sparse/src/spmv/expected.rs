//! Expected products, which the CPU computes from the same numbers that the kernel receives. The
//! main function is [`product_of`].

use super::contract::{SpmvError, SpmvProblem, data, finite};
use super::named::NamedMatrix;
use super::parts::float_blob;
use crate::product::{FloatPrecision, product};
use warpgauge_contract::{ArgSpec, Expected, TensorSpec};
use warpgauge_model::FailureCode;
use warpgauge_tensor::{Dtype, encoding, fill_parallel};

/// A description of an expected product.
pub(crate) struct Product<'a> {
    pub(crate) output: &'a str,
    pub(crate) args: &'a [ArgSpec],
    /// The element types of the matrix values among the arguments.
    pub(crate) values: &'a [Dtype],
}

/// Replaces the description of a product with its values and bounds, and returns the element type
/// of the output.
pub(crate) fn product_of(
    matrix: &NamedMatrix<'_>,
    expected: &mut Expected,
    wanted: &Product<'_>,
) -> Result<Dtype, SpmvError> {
    let path = format!("expected.{}", wanted.output);
    let wrong = |field: &str, code, message: String| {
        SpmvProblem::new(format!("{path}{field}"), code, message)
    };
    if expected.data.is_some() || expected.kernel.is_some() || expected.bounds.is_some() {
        let message = "`matrix` and `times` cannot be combined with other fields: give them, or \
                       `data`, or a `kernel`";
        return Err(wrong("", FailureCode::ConflictingFields, message.to_owned()).into());
    }
    let Some(times) = &expected.times else {
        let message = "is missing; name the argument with the vector, for instance \"x\"";
        return Err(wrong(".times", FailureCode::MissingField, message.to_owned()).into());
    };
    let csr = matrix.csr;
    let (_, y, y_path) = tensor(wanted.args, wanted.output).ok_or_else(|| {
        wrong("", FailureCode::UnknownOutput, "there is no tensor of this name".to_owned())
    })?;
    let y_dtype = float_type(y, &y_path)?;
    lengths(y, csr.rows(), "rows", &y_path)?;
    let (name, x, x_path) = tensor(wanted.args, times).ok_or_else(|| {
        let shown: String = times.chars().take(60).collect();
        wrong(".times", FailureCode::UnknownOutput, format!("there is no tensor `{shown}`"))
    })?;
    let x_dtype = float_type(x, &x_path)?;
    lengths(x, csr.cols(), "columns", &x_path)?;
    let with = vector(name, x, &x_path)?;
    let single = |dtype: &Dtype| *dtype == Dtype::Float32;
    // A single-precision kernel receives rounded values, so the reference uses them too.
    let values_are_single = match wanted.values {
        [] => single(&y_dtype),
        values => values.iter().any(single),
    };
    let rounded;
    let multiplied = if values_are_single {
        rounded = csr.clone().with_values(|value| f64::from(value as f32));
        &rounded
    } else {
        csr
    };
    finite(multiplied.values(), Dtype::Float64, &format!("{path}.matrix"))?;
    let precision = match values_are_single || single(&x_dtype) || single(&y_dtype) {
        true => FloatPrecision::Single,
        false => FloatPrecision::Double,
    };
    let product = product(multiplied, &with, precision);
    finite(&product.y, y_dtype, &path)?;
    *expected = Expected {
        data: Some(data(float_blob(&product.y, y_dtype)?)),
        bounds: Some(data(float_blob(&product.bounds, Dtype::Float64)?)),
        ..Expected::default()
    };
    Ok(y_dtype)
}

/// Returns the tensor with this name among the arguments, and its path in the request.
fn tensor<'a>(args: &'a [ArgSpec], name: &str) -> Option<(&'a str, &'a TensorSpec, String)> {
    let index = args.iter().position(|arg| arg.name == name)?;
    let spec = args[index].tensor_spec.as_ref()?;
    Some((args[index].name.as_str(), spec, format!("kernel.io.args[{index}].tensor_spec")))
}

fn float_type(spec: &TensorSpec, path: &str) -> Result<Dtype, SpmvProblem> {
    if matches!(spec.dtype, Dtype::Float32 | Dtype::Float64) {
        return Ok(spec.dtype);
    }
    let message = format!("products need float32 or float64, not {}", spec.dtype);
    Err(SpmvProblem::new(format!("{path}.dtype"), FailureCode::DtypeMismatch, message))
}

fn lengths(spec: &TensorSpec, needed: u32, of: &str, path: &str) -> Result<(), SpmvProblem> {
    let elements = spec.shape.iter().try_fold(1u64, |all, extent| all.checked_mul(*extent));
    if elements == Some(needed.into()) {
        return Ok(());
    }
    let message = format!("must have {needed} elements, as many as the matrix has {of}");
    Err(SpmvProblem::new(format!("{path}.shape"), FailureCode::ShapeMismatch, message))
}

/// Returns the vector with the values that the kernel receives.
fn vector(name: &str, spec: &TensorSpec, path: &str) -> Result<Vec<f64>, SpmvError> {
    let problem = |field: &str, code, message| {
        SpmvError::from(SpmvProblem::new(format!("{path}{field}"), code, message))
    };
    let bytes = match (&spec.init, &spec.data) {
        (Some(init), None) => {
            // The caller has already compared the length with the number of columns.
            let elements: u64 = spec.shape.iter().product();
            let mut bytes = vec![0; elements as usize * spec.dtype.size()];
            fill_parallel(init, (spec.dtype, &spec.shape), name, 0, &mut bytes).map_err(
                |error| {
                    let field = format!(".init.{}", error.field);
                    problem(&field, FailureCode::InvalidInit, error.message)
                },
            )?;
            bytes
        }
        (None, Some(given)) => encoding::decode_to_vec(given, spec.dtype, &spec.shape)
            .map_err(|error| problem(".data", FailureCode::InvalidData, error.to_string()))?,
        _ => {
            let message = "give the vector either as `init` or as `data`".to_owned();
            return Err(problem("", FailureCode::MissingContent, message));
        }
    };
    let numbers: Vec<f64> = match spec.dtype {
        Dtype::Float64 => bytes.as_chunks().0.iter().map(|it| f64::from_le_bytes(*it)).collect(),
        _ => bytes.as_chunks().0.iter().map(|it| f64::from(f32::from_le_bytes(*it))).collect(),
    };
    finite(&numbers, Dtype::Float64, path)?;
    Ok(numbers)
}
