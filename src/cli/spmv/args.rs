//! Types into which clap parses the command line of `warpgauge spmv`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::cli::args::{Patience, Target};

#[derive(Debug, Args)]
pub(in crate::cli) struct SpmvArgs {
    /// Matrices: .mtx and .spasm files, folders of them, generated ones such as poisson2d:nx=512 and, with
    /// --server, names of uploaded ones
    #[arg(value_name = "MATRIX", required = true)]
    pub matrices: Vec<String>,
    /// Kernel (.cu, .py, .ptx, .cubin, .fatbin)
    #[arg(long, value_name = "FILE")]
    pub kernel: PathBuf,
    /// Name of the kernel
    #[arg(long, value_name = "NAME", default_value = warpgauge_sparse::spmv::DEFAULT_KERNEL)]
    pub kernel_name: String,
    /// Format of the matrix, which determines the kernel's parameters
    #[arg(long, value_enum, default_value_t = Format::Csr, conflicts_with = "args")]
    pub format: Format,
    /// Parameters of the kernel in order, as parts of any format: num_rows,values,…,x,y
    #[arg(long, value_name = "PARTS", value_delimiter = ',')]
    pub args: Vec<String>,
    /// Compile-time constant of a Triton kernel; may be repeated
    #[arg(long = "constant", value_name = "NAME=INTEGER", value_parser = constant)]
    pub constants: Vec<(String, i64)>,
    /// Element type of values and vectors
    #[arg(long, value_name = "TYPE", default_value = "float32", value_parser = ["float32", "float64"])]
    pub dtype: String,
    /// Number of blocks in the grid, as an expression over the kernel's arguments; default: a thread (for Triton a
    /// program) for each row
    #[arg(long, value_name = "EXPRESSION")]
    pub grid: Option<String>,
    /// Number of threads in a block
    #[arg(long, value_name = "N", default_value_t = 256, allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub block: u32,
    /// Option for the compiler; may be repeated
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true)]
    pub compiler_option: Vec<String>,
    /// Number of timed launches; default: enough for a precise median
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub trials: Option<u32>,
    /// Library that also multiplies each matrix; the table shows the kernel's speedup over it
    #[arg(long, value_enum, value_name = "LIBRARY")]
    pub against: Option<Against>,
    /// Print the rows of the table as JSON
    #[arg(long)]
    pub json: bool,
    /// Draw the times into this file
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    #[command(flatten)]
    pub target: Target,
    #[command(flatten)]
    pub patience: Patience,
}

/// Libraries with which kernels are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum Against {
    /// NVIDIA's library: cusparseSpMV with the matrix in CSR form and the default algorithm
    Cusparse,
}

/// A matrix format, which determines the parameters of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum Format {
    /// num_rows, values, col_indices, row_ptr, x, y
    Csr,
    /// nnz, values, row_indices, col_indices, x, y; y is zero before each launch
    Coo,
    /// num_cols, csc_values, csc_row_indices, csc_col_ptr, x, y; y is zero before each launch
    Csc,
    /// num_rows, ell_width, ell_values, ell_col_indices, x, y
    Ell,
    /// num_rows, num_cols, bsr_block_rows, bsr_values, bsr_col_indices, bsr_row_ptr, x, y
    Bsr,
    /// num_rows, num_cols, spasm_tiles, spasm_templates, spasm_tile_rows, spasm_tile_cols, spasm_ranges,
    /// spasm_positions, spasm_values, x, y; y is zero before each launch
    Spasm,
}

impl Format {
    /// Returns the parameters of a kernel for this format, in their order.
    pub(super) fn parts(self) -> &'static [&'static str] {
        match self {
            Self::Csr => &["num_rows", "values", "col_indices", "row_ptr", "x", "y"],
            Self::Coo => &["nnz", "values", "row_indices", "col_indices", "x", "y"],
            Self::Csc => &["num_cols", "csc_values", "csc_row_indices", "csc_col_ptr", "x", "y"],
            Self::Ell => &["num_rows", "ell_width", "ell_values", "ell_col_indices", "x", "y"],
            Self::Bsr => &[
                "num_rows",
                "num_cols",
                "bsr_block_rows",
                "bsr_values",
                "bsr_col_indices",
                "bsr_row_ptr",
                "x",
                "y",
            ],
            Self::Spasm => &[
                "num_rows",
                "num_cols",
                "spasm_tiles",
                "spasm_templates",
                "spasm_tile_rows",
                "spasm_tile_cols",
                "spasm_ranges",
                "spasm_positions",
                "spasm_values",
                "x",
                "y",
            ],
        }
    }

    /// Returns whether kernels add to the result. If so, the result is zero before each launch.
    pub(super) fn adds(self) -> bool {
        matches!(self, Self::Coo | Self::Csc | Self::Spasm)
    }
}

fn constant(text: &str) -> Result<(String, i64), String> {
    let wrong = || "expected NAME=INTEGER, for instance BLOCK=128".to_owned();
    let (name, value) = text.split_once('=').ok_or_else(wrong)?;
    Ok((name.to_owned(), value.parse().map_err(|_| wrong())?))
}
