//! Sparse matrix times vector in the form of the Remote GPU Execution Service, with extensions.

mod against;
mod bad_input;
mod command;
mod execute;
mod files;
mod matrices;
mod named;

use serde_json::{Value, json};

/// The reference's kernel: a thread for each row.
pub const KERNEL: &str = r#"
extern "C" __global__ void csr_spmv_kernel(int num_rows, const float* values, const int* col_indices,
                                           const int* row_ptr, const float* x, float* y) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= num_rows) return;
    float sum = 0.0f;
    for (int i = row_ptr[row]; i < row_ptr[row + 1]; ++i) sum += values[i] * x[col_indices[i]];
    y[row] = sum;
}
"#;

/// The request of the reference's README with a matrix of 1000 rows and 5000 non-zeros, and its product.
pub fn readme_request() -> (Value, Vec<f64>) {
    let (rows, per_row) = (1000i64, 5i64);
    let columns: Vec<i64> =
        (0..rows * per_row).map(|at| (at / per_row * 7 + at % per_row * 191) % rows).collect();
    let values: Vec<f64> = (0..rows * per_row).map(|at| (at % 23 - 11) as f64 / 8.0).collect();
    let x: Vec<f64> = (0..rows).map(|at| (at % 17 - 8) as f64 / 4.0).collect();
    let product = (0..rows)
        .map(|row| {
            let entries = (row * per_row..(row + 1) * per_row).map(|at| at as usize);
            entries.map(|at| values[at] * x[columns[at] as usize]).sum()
        })
        .collect();
    let request = json!({
        "kernel": KERNEL,
        "matrix_data": {
            "num_rows": rows, "num_cols": rows, "nnz": rows * per_row, "values": values,
            "col_indices": columns,
            "row_ptr": (0..=rows).map(|row| row * per_row).collect::<Vec<_>>(), "x": x,
        },
        "num_runs": 3,
        "options": {"kernel_type": "cuda"},
    });
    (request, product)
}

/// `y` of an answer.
pub fn y(answer: &Value) -> Vec<f64> {
    let y = answer["result"]["y"].as_array().unwrap_or_else(|| panic!("{answer}"));
    y.iter().map(|element| element.as_f64().unwrap()).collect()
}
