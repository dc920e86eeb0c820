//! Wire types of requests. The main types are [`SpmvRequest`] and [`StoredSpmvRequest`].

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::contract::SpmvProblem;
use super::numbers::Numbers;
use warpgauge_contract::{Isolation, KernelType, Launch, MeasureSpec, ProfileSpec, Sanitize};
use warpgauge_model::FailureCode;

/// Name of the kernel that runs by default.
pub const DEFAULT_KERNEL: &str = "csr_spmv_kernel";

/// What `POST /execute_spmv` takes: a kernel, a matrix in CSR form and a vector.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SpmvRequest {
    /// The kernel: base64 of a cubin, or what `options.kernel_type` says.
    pub kernel: String,
    /// Matrix and vector.
    pub matrix_data: MatrixData,
    /// Timed launches: exactly this many. Without it, as many as the precision of `measure` needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10000))]
    pub num_runs: Option<u32>,
    /// What else there is to say of the kernel and its run.
    #[serde(default)]
    pub options: SpmvOptions,
}

/// What `POST /execute_spmv_mtx` takes: a kernel, and a matrix that was uploaded.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StoredSpmvRequest {
    /// Name of the matrix: that of an upload, or of a generated matrix such as `poisson2d:nx=512`.
    pub mtx_filename: String,
    /// The vector, one element for each column: a list, or bytes as in `matrix_data`. Without it, ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub x: Option<Numbers>,
    /// What multiplies: `custom`, the kernel; `cusparse`, NVIDIA's library, which takes no kernel and needs a
    /// GPU; or `all`, one after the other.
    #[serde(default = "custom")]
    pub method: String,
    /// The kernel of `custom` and `all`: base64 of a cubin, or what `options.kernel_type` says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// Timed launches: exactly this many. Without it, as many as the precision of `measure` needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10000))]
    pub num_runs: Option<u32>,
    /// What else there is to say of the kernel and its run.
    #[serde(default)]
    pub options: SpmvOptions,
}

impl StoredSpmvRequest {
    /// Returns the methods of the request: one, or both for `all`.
    ///
    /// # Errors
    /// The method is unknown, a kernel is missing, or the method takes no kernel.
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
                let message = format!("{shown:?} is no method; expected custom, cusparse or all");
                ("method", FailureCode::InvalidValue, message)
            }
        };
        Err(SpmvProblem::new(path, code, message))
    }

    /// Returns the same request for one method.
    ///
    /// # Errors
    /// As [`Self::methods`].
    pub fn only(&self, method: Method) -> Result<Self, SpmvProblem> {
        self.methods()?;
        let kernel = self.kernel.clone().filter(|_| method == Method::Custom);
        Ok(Self { method: method.name().to_owned(), kernel, ..self.clone() })
    }

    /// Returns the multiplier of a request with one method.
    ///
    /// # Errors
    /// As [`Self::methods`], or the request has both methods.
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

/// Method of multiplication, by its name on the wire.
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

/// Multiplier of a request.
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

/// A matrix in CSR form, and a vector. Arrays are lists of numbers; or their little-endian bytes, as `bin`
/// of MessagePack or as base64 text, with 4 bytes an element (8 of `values` and `x` with `float64`).
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MatrixData {
    /// Rows.
    pub num_rows: u64,
    /// Columns.
    pub num_cols: u64,
    /// Non-zeros.
    pub nnz: u64,
    /// Value of each non-zero.
    pub values: Numbers,
    /// Column of each non-zero, from 0.
    pub col_indices: Numbers,
    /// Where each row begins, and where the last ends: one more than there are rows.
    pub row_ptr: Numbers,
    /// The vector, one element for each column.
    pub x: Numbers,
}

/// What else there is to say of a kernel and its run.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SpmvOptions {
    /// What `kernel` is: `cubin` or `fatbin` (base64), `cuda`, `ptx` or `triton` (source text). Of `cubin`,
    /// the default, and `fatbin` the content decides, which may also be PTX.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel_type: Option<KernelType>,
    /// Entry point; default `csr_spmv_kernel`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel_name: Option<String>,
    /// What its parameters are, in their order, of `num_rows`, `num_cols`, `nnz`, `values`, `col_indices`,
    /// `row_ptr`, `row_indices`, `x`, `y` and the arrays of other formats. Default: `num_rows`, `values`,
    /// `col_indices`, `row_ptr`, `x`, `y`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Compile-time constants of a Triton kernel, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub constants: BTreeMap<String, i64>,
    /// How to launch, with expressions over the numbers that the kernel takes. Default: blocks of 256
    /// threads, and as many as give each row a thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub launch: Option<Launch>,
    /// Options for the compiler.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub compiler_options: Vec<String>,
    /// Element type of values and vectors: `float32` (default) or `float64`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dtype: Option<warpgauge_tensor::Dtype>,
    /// How to measure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measure: Option<MeasureSpec>,
    /// Hardware metrics to collect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<ProfileSpec>,
    /// Memory and race checks to run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sanitize: Option<Sanitize>,
    /// Which processes run the kernel, and judge it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub isolation: Option<Isolation>,
    /// Whether a kernel is called right although a useless one would pass too, by the product of this matrix
    /// and vector; default false.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub allow_weak: bool,
    /// Seconds the kernel may take, 0.1–600; default 120.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<f64>,
}
