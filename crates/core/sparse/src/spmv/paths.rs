//! Maps fields of a contract to the fields of its request. The main function is [`request_path`].

use super::request::SpmvOptions;

/// The default parameters, which are those of the kernel of the Remote GPU Execution Service.
pub(crate) const DEFAULT_ARGS: [&str; 6] =
    ["num_rows", "values", "col_indices", "row_ptr", "x", "y"];

/// The fields of `matrix_data`.
const GIVEN: [&str; 7] = ["num_rows", "num_cols", "nnz", "values", "col_indices", "row_ptr", "x"];

/// The fields of a contract that correspond to fields of `options`, with their names there.
const OPTIONS: [(&str, &str); 9] = [
    ("kernel.metadata.kernel_name", "kernel_name"),
    ("kernel.metadata.compiler_options", "compiler_options"),
    ("kernel.kernel_type", "kernel_type"),
    ("kernel.io.launch", "launch"),
    ("timeout", "timeout"),
    ("measure", "measure"),
    ("profile", "profile"),
    ("sanitize", "sanitize"),
    ("isolation", "isolation"),
];

/// Returns the path of the request's field that corresponds to a path in its contract. `is_stored`
/// is whether the request names its matrix.
pub fn request_path(path: &str, options: &SpmvOptions, is_stored: bool) -> String {
    let whole = |name: &str| {
        let rest = path.strip_prefix(name)?;
        (rest.is_empty() || rest.starts_with(['.', '['])).then_some(rest)
    };
    if whole("num_trials").is_some() {
        return "num_runs".to_owned();
    }
    if whole("kernel.source_code").or(whole("kernel.binary_b64")).is_some() {
        return "kernel".to_owned();
    }
    let option = OPTIONS.iter().find_map(|(name, field)| Some((field, whole(name)?)));
    if let Some((field, rest)) = option {
        return format!("options.{field}{rest}");
    }
    match argument(path) {
        Some(index) => argument_path(index, options, is_stored),
        None => path.to_owned(),
    }
}

/// Returns the index of the argument to which a path belongs.
fn argument(path: &str) -> Option<usize> {
    let (index, _) = path.strip_prefix("kernel.io.args[")?.split_once(']')?;
    index.parse().ok()
}

fn argument_path(index: usize, options: &SpmvOptions, is_stored: bool) -> String {
    let given = options.args.get(index).map(String::as_str);
    let default = DEFAULT_ARGS.get(index).copied().filter(|_| options.args.is_empty());
    match given.or(default) {
        None => "options.constants".to_owned(),
        Some("x") if is_stored => "x".to_owned(),
        Some(_) if is_stored => "mtx_filename".to_owned(),
        Some("y") => "matrix_data.num_rows".to_owned(),
        Some(name) if GIVEN.contains(&name) => format!("matrix_data.{name}"),
        Some(_) => format!("options.args[{index}]"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_of_the_contract_are_at_fields_of_the_request() {
        let default = SpmvOptions::default();
        let args = ["y", "ell_values", "x"].map(str::to_owned).into();
        let own = SpmvOptions { args, ..SpmvOptions::default() };
        for (path, options, given, stored) in [
            ("num_trials", &default, "num_runs", "num_runs"),
            ("timeout", &default, "options.timeout", "options.timeout"),
            ("kernel.io.launch.grid.x", &default, "options.launch.grid.x", "options.launch.grid.x"),
            ("kernel.binary_b64", &default, "kernel", "kernel"),
            ("kernel.io.args[1].tensor_spec.shape", &default, "matrix_data.values", "mtx_filename"),
            ("kernel.io.args[4].tensor_spec", &default, "matrix_data.x", "x"),
            ("kernel.io.args[0].tensor_spec", &own, "matrix_data.num_rows", "mtx_filename"),
            ("kernel.io.args[1].tensor_spec", &own, "options.args[1]", "mtx_filename"),
            ("kernel.io.args[9]", &own, "options.constants", "options.constants"),
            ("measurement", &default, "measurement", "measurement"),
        ] {
            assert_eq!(request_path(path, options, false), given, "{path}");
            assert_eq!(request_path(path, options, true), stored, "{path}");
        }
    }
}
