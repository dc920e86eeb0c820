//! Generated matrices by name, within the caller's limits. The main function is [`generated`].

use super::contract::SpmvProblem;
use super::named::used;
use crate::{Csr, GeneratorError, MatrixGenerator};
use warpgauge_contract::{MatrixOrigin, MatrixUsed};
use warpgauge_model::FailureCode;

/// The maximum length of a name, in bytes.
const MAX_NAME_BYTES: usize = 256;

/// Returns whether a name refers to a generated matrix. The names of stored matrices contain no
/// colon.
pub fn is_generated(name: &str) -> bool {
    name.contains(':')
}

/// Generates the matrix with a name such as `poisson2d:nx=512`, if it takes at most `max_bytes` in
/// CSR form: 4 bytes for each row and 12 for each entry. The call blocks. `path` is the location of
/// the name in the request.
///
/// # Errors
/// Returns an error if the name is invalid, or if the matrix would be too large. In either case no
/// memory is reserved.
pub fn generated(name: &str, path: &str, max_bytes: u64) -> Result<(Csr, MatrixUsed), SpmvProblem> {
    let wrong = |error: GeneratorError| {
        let code = match error {
            GeneratorError::TooLarge { .. } => FailureCode::TooLarge,
            _ => FailureCode::InvalidValue,
        };
        SpmvProblem::new(path, code, error.to_string())
    };
    if name.len() > MAX_NAME_BYTES {
        let message = format!("is longer than {MAX_NAME_BYTES} bytes");
        return Err(SpmvProblem::new(path, FailureCode::InvalidValue, message));
    }
    let generator: MatrixGenerator = name.parse().map_err(wrong)?;
    let bytes = generator.bytes_at_most();
    if bytes > max_bytes {
        let message = format!(
            "the matrix would take {bytes} bytes; at most {max_bytes} are allowed (limits.max_matrix_bytes_per_key, \
             limits.max_decoded_bytes)"
        );
        return Err(SpmvProblem::new(path, FailureCode::TooLarge, message));
    }
    let csr = generator.generate().map_err(wrong)?;
    let described = used(name, &csr, MatrixOrigin::Generated, None);
    let described = described
        .map_err(|error| SpmvProblem::new(path, FailureCode::InvalidValue, error.to_string()))?;
    Ok((csr, described))
}
