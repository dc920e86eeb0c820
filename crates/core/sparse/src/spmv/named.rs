//! Contracts that name matrices. This module replaces the names with the matrices' data, and
//! computes the expected products. After that, the contract is like any other. The main trait is
//! [`TakesMatrices`].

use std::io;

use super::contract::{SpmvError, SpmvProblem, data, not_empty, part_error, vectors_fit, work};
use super::expected::{Product, product_of};
use super::parts::{Part, Parts};
use crate::{Csr, packed};
use warpgauge_contract::{
    ArgKind, ArgSpec, CompareRequest, CompileRequest, EvaluateRequest, IoContract, KernelCode,
    MAX_MATRICES, MatrixNames, MatrixOrigin, MatrixPart, MatrixUsed, NamesMatrices, TensorSpec,
};
use warpgauge_model::FailureCode;
use warpgauge_tensor::Dtype;

/// The maximum length of a name or hash in a description of a matrix, in bytes.
const MAX_TEXT_BYTES: usize = 4096;

/// A matrix that a contract names.
#[derive(Debug, Clone, Copy)]
pub struct NamedMatrix<'a> {
    /// The name of the matrix in the contract.
    pub name: &'a str,
    pub csr: &'a Csr,
    /// The maximum memory of a vector or of a format with padding, in bytes.
    pub max_bytes: u64,
}

/// Returns the description of a matrix for a report. `blake3` is the hash of its file. A generated
/// matrix has no file, so the hash of its packed form is used.
///
/// # Errors
/// Never fails in practice, because writing to a hash does not fail.
pub fn used(
    name: &str,
    csr: &Csr,
    origin: MatrixOrigin,
    blake3: Option<String>,
) -> io::Result<MatrixUsed> {
    let blake3 = match blake3 {
        Some(hash) => hash,
        None => {
            let mut hasher = blake3::Hasher::new();
            packed::write(csr, &mut hasher)?;
            hasher.finalize().to_hex().to_string()
        }
    };
    Ok(MatrixUsed {
        name: name.to_owned(),
        origin,
        blake3,
        num_rows: csr.rows().into(),
        num_cols: csr.cols().into(),
        nnz: csr.nnz().into(),
    })
}

impl NamedMatrix<'_> {
    /// Returns the parts of the matrix. `path` is the location of its first name.
    fn parts(&self, path: Option<&String>, left: u64) -> Result<Parts<'_>, SpmvError> {
        let path = path.map_or("kernel.io.args", String::as_str);
        not_empty(self.csr, path)?;
        vectors_fit(self.csr, self.max_bytes, path)?;
        Ok(Parts::new(self.csr, self.max_bytes, left))
    }

    /// Inserts the matrix into the arguments of a kernel, and returns the element types of its
    /// values in them.
    fn put_into_kernel(
        &self,
        kernel: &mut KernelCode,
        path: &str,
        parts: &mut Parts<'_>,
    ) -> Result<Vec<Dtype>, SpmvError> {
        let mut dtypes = Vec::new();
        let args = kernel.io.iter_mut().flat_map(|io| &mut io.args);
        for (index, arg) in args.enumerate() {
            let path = format!("{path}.io.args[{index}]");
            self.put_number(arg, &path, parts)?;
            let Some(spec) = &mut arg.tensor_spec else { continue };
            self.put_shape(spec, &path)?;
            dtypes.extend(self.put_data(spec, &path, parts)?);
        }
        kernel.io.iter_mut().for_each(IoContract::settle_shapes);
        Ok(dtypes)
    }

    /// Returns the name of the part, if it belongs to this matrix.
    fn mine<'p>(&self, part: Option<&'p MatrixPart>) -> Option<&'p str> {
        part.filter(|part| part.matrix == self.name).map(|part| part.part.as_str())
    }

    fn put_number(
        &self,
        arg: &mut ArgSpec,
        path: &str,
        parts: &mut Parts<'_>,
    ) -> Result<(), SpmvError> {
        let Some(part) = self.mine(arg.value_of.as_ref()) else { return Ok(()) };
        let path = format!("{path}.value_of");
        let wrong = |code, message: &str| Err(SpmvProblem::new(&path, code, message).into());
        if arg.kind != ArgKind::Int {
            return wrong(
                FailureCode::WrongField,
                "only arguments of type `int` may have this field",
            );
        }
        if arg.value.is_some() {
            return wrong(FailureCode::ConflictingFields, "give `value` or `value_of`, not both");
        }
        // Arrays are refused without being created.
        let number = match part {
            "x" | "y" => None,
            name if is_array(name) => None,
            name => match parts.part(name, Dtype::Float32) {
                Ok(Part::Number(number)) => Some(number),
                Ok(Part::Array { .. }) => None,
                Err(error) => return Err(part_error(&format!("{path}.part"), error)),
            },
        };
        let Some(number) = number else {
            let message =
                format!("`{part}` is an array; a scalar needs a number such as `num_rows`");
            let path = format!("{path}.part");
            return Err(SpmvProblem::new(path, FailureCode::WrongType, message).into());
        };
        arg.value = Some(number.into());
        arg.value_of = None;
        Ok(())
    }

    fn put_shape(&self, spec: &mut TensorSpec, path: &str) -> Result<(), SpmvError> {
        let Some(part) = self.mine(spec.shape_of.as_ref()) else { return Ok(()) };
        let length = match part {
            "x" => self.csr.cols(),
            "y" => self.csr.rows(),
            _ => {
                let path = format!("{path}.tensor_spec.shape_of.part");
                let message = "must be `x`, which has an element for each column, or `y`, with one for \
                               each row; arrays of the matrix need no shape";
                return Err(SpmvProblem::new(path, FailureCode::InvalidValue, message).into());
            }
        };
        self.settle_shape(spec, length.into(), path)?;
        spec.shape_of = None;
        Ok(())
    }

    /// Sets the shape if it is absent. Otherwise checks its number of elements.
    fn settle_shape(
        &self,
        spec: &mut TensorSpec,
        length: u64,
        path: &str,
    ) -> Result<(), SpmvError> {
        if spec.shape.is_empty() {
            spec.shape = vec![length];
            return Ok(());
        }
        let given = spec.shape.iter().try_fold(1u64, |all, extent| all.checked_mul(*extent));
        if given == Some(length) {
            return Ok(());
        }
        let message = format!(
            "must have {length} elements, as this part of the matrix has; leave the shape out"
        );
        let path = format!("{path}.tensor_spec.shape");
        Err(SpmvProblem::new(path, FailureCode::ShapeMismatch, message).into())
    }

    /// Inserts an array of the matrix into a tensor. Returns the element type if the array contains
    /// the values of the matrix.
    fn put_data(
        &self,
        spec: &mut TensorSpec,
        path: &str,
        parts: &mut Parts<'_>,
    ) -> Result<Option<Dtype>, SpmvError> {
        let Some((_, part)) = spec.matrix_data().filter(|(name, _)| *name == self.name) else {
            return Ok(None);
        };
        let place = format!("{path}.tensor_spec.data.part");
        if spec.data.as_ref().is_some_and(|data| !data.data_b64.is_empty()) || spec.init.is_some() {
            let message =
                "`matrix` and `part` cannot be combined with bytes or `init`, which they replace";
            let path = format!("{path}.tensor_spec.data");
            return Err(SpmvProblem::new(path, FailureCode::ConflictingFields, message).into());
        }
        let values = part == "x" || part.ends_with("values");
        let fits = match values {
            true => matches!(spec.dtype, Dtype::Float32 | Dtype::Float64),
            false => spec.dtype == Dtype::Int32,
        };
        if !fits && is_array(part) {
            let wanted = if values { "float32 or float64" } else { "int32" };
            let message = format!("`{part}` is {wanted}, but the tensor is {}", spec.dtype);
            let path = format!("{path}.tensor_spec.dtype");
            return Err(SpmvProblem::new(path, FailureCode::DtypeMismatch, message).into());
        }
        if values {
            super::contract::finite(self.csr.values(), spec.dtype, &place)?;
        }
        let made = parts.part(part, spec.dtype).map_err(|error| part_error(&place, error))?;
        let Part::Array { length, data: blob, .. } = made else {
            let message = format!("`{part}` is a number: use it as the `value_of` of an `int`");
            return Err(SpmvProblem::new(place, FailureCode::WrongType, message).into());
        };
        let of_matrix = values && part != "x";
        self.settle_shape(spec, length, path)?;
        spec.data = Some(data(blob));
        Ok(of_matrix.then_some(spec.dtype))
    }
}

/// Returns whether a part is an array, judging by its name. The part need not exist.
fn is_array(part: &str) -> bool {
    let numbers =
        ["num_rows", "num_cols", "nnz", "ell_width", "bsr_block", "bsr_block_rows", "spasm_tile"];
    let arrays = ["values", "indices", "ptr", "rows", "cols", "templates", "ranges", "positions"];
    !numbers.contains(&part) && (part == "x" || arrays.iter().any(|end| part.ends_with(end)))
}

/// A request that names matrices. This trait replaces the names with the matrices' data.
pub trait TakesMatrices: NamesMatrices {
    /// Returns the names of the matrices that must be inserted into the request, each with the
    /// location of its first use.
    ///
    /// # Errors
    /// Returns an error if there are too many matrices, or if the vector of a product is an array
    /// of another matrix.
    fn matrices_wanted(&self) -> Result<MatrixNames, SpmvProblem> {
        few(self.matrix_names(), self.matrices_used())
    }

    /// Replaces the name of a matrix with its data. `left` is the number of bytes that arrays may
    /// still take. The call subtracts the size of the arrays that it creates.
    ///
    /// # Errors
    /// The error describes the mismatch and its location in the request.
    fn put_matrix(&mut self, matrix: &NamedMatrix<'_>, left: &mut u64) -> Result<(), SpmvError>;
}

impl TakesMatrices for EvaluateRequest {
    fn matrices_wanted(&self) -> Result<MatrixNames, SpmvProblem> {
        let args = self.kernel.io.iter().flat_map(|io| &io.args).enumerate();
        for expected in self.expected.values() {
            let (Some(matrix), Some(times)) = (&expected.matrix, &expected.times) else { continue };
            let vector = args.clone().find(|(_, arg)| arg.name == *times);
            let Some((index, arg)) = vector else { continue };
            let other = arg.tensor_spec.as_ref().and_then(TensorSpec::matrix_data);
            if other.is_some_and(|(name, part)| name != matrix || part != "x") {
                let path = format!("kernel.io.args[{index}].tensor_spec.data");
                let message = "the vector of a product must be generated (`init`), given (`data`), or part `x` of \
                               the same matrix";
                return Err(SpmvProblem::new(path, FailureCode::InvalidValue, message));
            }
        }
        few(self.matrix_names(), self.matrices_used())
    }

    fn put_matrix(&mut self, matrix: &NamedMatrix<'_>, left: &mut u64) -> Result<(), SpmvError> {
        let mut parts = matrix.parts(self.matrix_names().get(matrix.name), *left)?;
        let dtypes = matrix.put_into_kernel(&mut self.kernel, "kernel", &mut parts)?;
        for (output, expected) in &mut self.expected {
            if let Some(kernel) = &mut expected.kernel {
                matrix.put_into_kernel(kernel, &format!("expected.{output}.kernel"), &mut parts)?;
            }
        }
        *left = parts.left();
        drop(parts);
        let no_args = Vec::new();
        let args = self.kernel.io.as_ref().map_or(&no_args, |io| &io.args);
        for (output, expected) in &mut self.expected {
            if expected.matrix.as_deref() == Some(matrix.name) {
                let product = Product { output, args, values: &dtypes };
                let dtype = product_of(matrix, expected, &product)?;
                self.work.get_or_insert_with(|| work(matrix.csr, dtype));
            }
        }
        Ok(())
    }
}

impl TakesMatrices for CompareRequest {
    fn put_matrix(&mut self, matrix: &NamedMatrix<'_>, left: &mut u64) -> Result<(), SpmvError> {
        let mut parts = matrix.parts(self.matrix_names().get(matrix.name), *left)?;
        matrix.put_into_kernel(&mut self.ref_kernel, "ref_kernel", &mut parts)?;
        if let Some(kernel) = &mut self.custom_kernel {
            matrix.put_into_kernel(kernel, "custom_kernel", &mut parts)?;
        }
        for (index, candidate) in self.candidates.iter_mut().enumerate() {
            let path = format!("candidates[{index}].kernel");
            matrix.put_into_kernel(&mut candidate.kernel, &path, &mut parts)?;
        }
        *left = parts.left();
        Ok(())
    }
}

impl TakesMatrices for CompileRequest {
    fn put_matrix(&mut self, matrix: &NamedMatrix<'_>, left: &mut u64) -> Result<(), SpmvError> {
        let mut parts = matrix.parts(self.matrix_names().get(matrix.name), *left)?;
        matrix.put_into_kernel(&mut self.kernel, "kernel", &mut parts)?;
        *left = parts.left();
        Ok(())
    }
}

fn few(names: MatrixNames, given: &[MatrixUsed]) -> Result<MatrixNames, SpmvProblem> {
    let short = |used: &MatrixUsed| used.name.len().max(used.blake3.len()) <= MAX_TEXT_BYTES;
    if given.len() > MAX_MATRICES || !given.iter().all(short) {
        let message = format!(
            "contains more than {MAX_MATRICES} matrices, or a text of more than {MAX_TEXT_BYTES} bytes"
        );
        return Err(SpmvProblem::new("matrices", FailureCode::InvalidValue, message));
    }
    match names.values().nth(MAX_MATRICES) {
        None => Ok(names),
        Some(path) => {
            let message =
                format!("{} matrices are named; at most {MAX_MATRICES} are allowed", names.len());
            Err(SpmvProblem::new(path, FailureCode::TooLarge, message))
        }
    }
}
