//! The wire types of requests. The main types are [`SpmvRequest`] and [`StoredSpmvRequest`].

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::contract::SpmvProblem;
use super::numbers::Numbers;
use warpgauge_contract::{Isolation, KernelType, Launch, MeasureSpec, ProfileSpec, Sanitize};
use warpgauge_model::FailureCode;

/// The name of the kernel that runs by default.
pub const DEFAULT_KERNEL: &str = "csr_spmv_kernel";

/// Request of `POST /execute_spmv`: a kernel, a matrix in CSR form and a vector.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SpmvRequest {
    /// Kernel: a cubin in base64, or code of the type `options.kernel_type`.
    pub kernel: String,
    /// Matrix and vector.
    pub matrix_data: MatrixData,
    /// Number of timed launches. Without it, the precision in `measure` determines the number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10000))]
    pub num_runs: Option<u32>,
    /// Options of the kernel and its run.
    #[serde(default)]
    pub options: SpmvOptions,
}

/// Request of `POST /execute_spmv_mtx`: a kernel, and the name of a matrix.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StoredSpmvRequest {
    /// Name of the matrix: an uploaded matrix, or a generated one such as `poisson2d:nx=512`.
    pub mtx_filename: String,
    /// Vector, one element for each column: a list, or bytes as in `matrix_data`. By default, all
    /// elements are 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub x: Option<Numbers>,
    /// Method of multiplication. `custom` uses the kernel. `cusparse` uses NVIDIA's library, takes
    /// no kernel and needs a GPU. `all` uses the kernel, and then the library.
    #[serde(default = "custom")]
    pub method: String,
    /// Kernel for `custom` and `all`: a cubin in base64, or code of the type `options.kernel_type`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// Number of timed launches. Without it, the precision in `measure` determines the number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10000))]
    pub num_runs: Option<u32>,
    /// Options of the kernel and its run.
    #[serde(default)]
    pub options: SpmvOptions,
}

impl StoredSpmvRequest {
    /// Returns the methods of the request: one, or both for `all`.
    ///
    /// # Errors
    /// Returns an error if the method is unknown, if a kernel is missing, or if the method takes no
    /// kernel but the request has one.
    pub fn methods(&self) -> Result<&'static [Method], SpmvProblem> {
        let (path, code, message) = match (self.method.as_str(), &self.kernel) {
            ("custom", Some(_)) => return Ok(&[Method::Custom]),
            ("all", Some(_)) => return Ok(&[Method::Custom, Method::Cusparse]),
            ("cusparse", None) => return Ok(&[Method::Cusparse]),
            (method @ ("custom" | "all"), None) => {
                ("kernel", FailureCode::MissingField, format!("method `{method}` needs a kernel"))
            }
            ("cusparse", Some(_)) => (
                "kernel",
                FailureCode::WrongField,
                "method `cusparse` takes no kernel: leave it out, or ask for `all`".to_owned(),
            ),
            (other, _) => {
                let shown: String = other.chars().take(40).collect();
                let message =
                    format!("{shown:?} is not a method; expected custom, cusparse or all");
                ("method", FailureCode::InvalidValue, message)
            }
        };
        Err(SpmvProblem::new(path, code, message))
    }

    /// Returns the same request with only one method.
    ///
    /// # Errors
    /// Returns the errors of [`Self::methods`].
    pub fn only(&self, method: Method) -> Result<Self, SpmvProblem> {
        self.methods()?;
        let kernel = self.kernel.clone().filter(|_| method == Method::Custom);
        Ok(Self { method: method.name().to_owned(), kernel, ..self.clone() })
    }

    /// Returns the multiplier of a request with one method.
    ///
    /// # Errors
    /// Returns the errors of [`Self::methods`], or an error if the request has both methods.
    pub fn multiplier(&self) -> Result<Multiplier<'_>, SpmvProblem> {
        match (self.methods()?, &self.kernel) {
            ([Method::Custom], Some(kernel)) => Ok(Multiplier::Custom(kernel)),
            ([Method::Cusparse], _) => Ok(Multiplier::Cusparse),
            _ => {
                let message = "a job has one method: ask for `custom` or `cusparse`";
                Err(SpmvProblem::new("method", FailureCode::InvalidValue, message))
            }
        }
    }
}

/// A method of multiplication, with its name on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// A kernel in the request.
    Custom,
    /// NVIDIA's library.
    Cusparse,
}

impl Method {
    pub fn name(self) -> &'static str {
        match self {
            Self::Custom => "custom",
            Self::Cusparse => "cusparse",
        }
    }
}

/// The multiplier of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Multiplier<'a> {
    /// A kernel in the request.
    Custom(&'a str),
    /// NVIDIA's library.
    Cusparse,
}

fn custom() -> String {
    "custom".to_owned()
}

/// Matrix in CSR form, and a vector. An array is a list of numbers, or their little-endian bytes,
/// as `bin` in MessagePack or as base64 text. An element has 4 bytes (8 for `values` and `x` with
/// `float64`).
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MatrixData {
    /// Number of rows.
    pub num_rows: u64,
    /// Number of columns.
    pub num_cols: u64,
    /// Number of non-zeros.
    pub nnz: u64,
    /// Value of each non-zero.
    pub values: Numbers,
    /// Column of each non-zero, starting at 0.
    pub col_indices: Numbers,
    /// Index of the first non-zero of each row, followed by the number of non-zeros. It therefore
    /// has one element more than there are rows.
    pub row_ptr: Numbers,
    /// Vector, one element for each column.
    pub x: Numbers,
}

/// Options of a kernel and its run.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SpmvOptions {
    /// Type of `kernel`: `cubin` or `fatbin` (base64), `cuda`, `ptx` or `triton` (source text).
    /// Default: `cubin`. For `cubin` and `fatbin`, the content determines the actual type, which
    /// may also be PTX.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel_type: Option<KernelType>,
    /// Name of the kernel. Default: `csr_spmv_kernel`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel_name: Option<String>,
    /// Parameters of the kernel, in order, from `num_rows`, `num_cols`, `nnz`, `values`,
    /// `col_indices`, `row_ptr`, `row_indices`, `x`, `y` and the arrays of other formats. Default:
    /// `num_rows`, `values`, `col_indices`, `row_ptr`, `x`, `y`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Compile-time constants of a Triton kernel, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub constants: BTreeMap<String, i64>,
    /// Launch configuration, which may contain expressions over the kernel's numbers. Default:
    /// blocks of 256 threads with one thread for each row, or one Triton program for each row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub launch: Option<Launch>,
    /// Options for the compiler.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub compiler_options: Vec<String>,
    /// Element type of values and vectors: `float32` (default) or `float64`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dtype: Option<warpgauge_tensor::Dtype>,
    /// Settings of the measurement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measure: Option<MeasureSpec>,
    /// Device metrics to collect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<ProfileSpec>,
    /// Memory and race checks to run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sanitize: Option<Sanitize>,
    /// Processes that run and judge the kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub isolation: Option<Isolation>,
    /// Whether the verdict is `correct` although a kernel that does nothing useful would also pass
    /// with this matrix and vector; default false.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub allow_weak: bool,
    /// Time limit of the kernel from the start of its execution, seconds, 0.1–600; default 120.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<f64>,
}
