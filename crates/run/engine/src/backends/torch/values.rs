//! Results of a call, which the judge has copied.

use warpgauge_report::OutputReport;
use warpgauge_tensor::{Dtype, OutputEncoding, encoding, shape};
use warpgauge_torch::{RunnerFault, RunnerSession, Scalar, SubmissionMemory, Tree, TreeOf};
use warpgauge_validate::{Comparison, Reason, ReasonCode, ResolvedTolerance};

use super::MOST_BYTES;

/// One value that a call returned.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    /// A tensor or a number, with its elements in C order.
    Tensor {
        dtype: Dtype,
        shape: Vec<u64>,
        bytes: Vec<u8>,
    },
    /// A tensor that the judge has copied to its device memory.
    OnDevice {
        dtype: Dtype,
        shape: Vec<u64>,
        copy: Copied,
    },
    Text(String),
    /// Python's `None`.
    Nothing,
}

/// Location of a copied tensor in the judge's device memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Copied {
    /// Index of the judge's memory area that contains the copy.
    pub shelf: usize,
    /// Offset of the copy's first byte.
    pub at: usize,
    /// Size of the copy in bytes.
    pub bytes: usize,
}

/// Values with their names, in the order of results.
pub(super) type Named = Vec<(String, Value)>;

/// Copies the results of a call out of the runner's memory. Each value is named by its path.
///
/// # Errors
/// Fails if a tensor is not at the location that the runner reports, or if the results exceed
/// [`MOST_BYTES`].
pub(super) fn copied(
    session: &RunnerSession,
    returned: &Tree,
    root: &str,
) -> Result<Named, RunnerFault> {
    let mut left = MOST_BYTES;
    let leaves = returned.leaves(root);
    let copies = leaves.into_iter().map(|(place, leaf)| {
        let value = match leaf {
            TreeOf::Tensor(tensor) => {
                let memory: &dyn SubmissionMemory = session.memory();
                let bytes = tensor.read(memory, left).map_err(|e| session.fault_of(&e))?;
                left -= bytes.len() as u64;
                Value::Tensor { dtype: tensor.dtype, shape: tensor.shape.clone(), bytes }
            }
            TreeOf::Value(scalar) => of_scalar(scalar)?,
            // Only tensors and values are leaves.
            TreeOf::List(_) | TreeOf::Dict(_) | TreeOf::Record(..) => Value::Nothing,
        };
        Ok((place, value))
    });
    copies.collect()
}

pub(super) fn of_scalar(scalar: &Scalar) -> Result<Value, RunnerFault> {
    let number = |dtype, bytes: Vec<u8>| Value::Tensor { dtype, shape: Vec::new(), bytes };
    Ok(match scalar {
        Scalar::Bool(value) => number(Dtype::Bool, vec![u8::from(*value)]),
        Scalar::Int(value) => number(Dtype::Int64, value.to_le_bytes().to_vec()),
        Scalar::Large(value) => number(Dtype::Uint64, value.to_le_bytes().to_vec()),
        Scalar::Float { float } => {
            let value: f64 = float
                .parse()
                .map_err(|_| RunnerFault::Forged("it returned an invalid number".to_owned()))?;
            number(Dtype::Float64, value.to_le_bytes().to_vec())
        }
        Scalar::Object { .. } => {
            let told = "it returned an object, which is not a valid result".to_owned();
            return Err(RunnerFault::Forged(told));
        }
        Scalar::Text(text) => Value::Text(text.clone()),
        Scalar::None => Value::Nothing,
    })
}

impl Value {
    /// Describes the kind, type and shape for a message.
    pub(super) fn what(&self) -> String {
        match self {
            Self::Tensor { dtype, shape, .. } | Self::OnDevice { dtype, shape, .. } => {
                format!("{dtype} {}", shape::shown(shape))
            }
            Self::Text(_) => "a text".to_owned(),
            Self::Nothing => "None".to_owned(),
        }
    }

    /// Returns type and shape of a tensor.
    fn tensor(&self) -> Option<(&Dtype, &[u64])> {
        match self {
            Self::Tensor { dtype, shape, .. } | Self::OnDevice { dtype, shape, .. } => {
                Some((dtype, shape))
            }
            Self::Text(_) | Self::Nothing => None,
        }
    }

    /// Returns the size of the elements in bytes.
    pub(super) fn bytes(&self) -> u64 {
        match self {
            Self::Tensor { bytes, .. } => bytes.len() as u64,
            Self::OnDevice { copy, .. } => copy.bytes as u64,
            Self::Text(_) | Self::Nothing => 0,
        }
    }

    /// Compares a value with the expected one. If kind, type or shape differ, returns a reason and
    /// no comparison.
    pub(super) fn against(
        &self,
        expected: &Value,
        name: &str,
        tolerance: &ResolvedTolerance,
    ) -> Result<Comparison, Reason> {
        let differs = || {
            let (came, wanted) = (self.what(), expected.what());
            let message = match (self.tensor(), expected.tensor()) {
                (Some((dtype, shape)), Some((other, extents))) if dtype == other => format!(
                    "output `{name}` is {dtype} of shape {}, expected shape {}",
                    shape::shown(shape),
                    shape::shown(extents)
                ),
                _ if came == wanted => format!("output `{name}` is a different text than expected"),
                _ => format!("output `{name}` is {came}, expected {wanted}"),
            };
            Reason::new(ReasonCode::OutputMismatch, message)
        };
        match (self, expected) {
            (
                Self::Tensor { dtype, shape, bytes },
                Self::Tensor { dtype: other, shape: extents, bytes: wanted },
            ) if (dtype, shape) == (other, extents) => {
                Ok(warpgauge_validate::compare(*dtype, shape, bytes, wanted, None, tolerance))
            }
            (one, other) if one == other => {
                Ok(warpgauge_validate::compare(Dtype::Bool, &[], &[1], &[1], None, tolerance))
            }
            _ => Err(differs()),
        }
    }

    /// Describes a tensor for a report, including its contents if `encoding` is given. Returns
    /// `None` for other values.
    pub(super) fn shown(
        &self,
        encoding: Option<OutputEncoding>,
    ) -> std::io::Result<Option<OutputReport>> {
        let Self::Tensor { dtype, shape, bytes } = self else { return Ok(None) };
        let encoded = match encoding {
            Some(how) => Some(encoding::encode(&bytes[..], *dtype, shape, how)?),
            None => None,
        };
        Ok(Some(OutputReport {
            dtype: *dtype,
            shape: shape.clone(),
            blake3: blake3::hash(bytes).to_hex().to_string(),
            data_b64: encoded.as_ref().map(|encoded| encoded.data_b64.clone()),
            compress: encoded.as_ref().map(|encoded| encoded.compress),
            format: encoded.as_ref().map(|encoded| encoded.format),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(dtype: Dtype, shape: &[u64], bytes: &[u8]) -> Value {
        Value::Tensor { dtype, shape: shape.to_vec(), bytes: bytes.to_vec() }
    }

    #[test]
    fn kinds_types_and_shapes_must_agree() {
        let exact = warpgauge_validate::resolve_by_type(None, Dtype::Int8);
        let three = tensor(Dtype::Int8, &[3], &[1, 2, 3]);
        assert!(three.against(&three, "y", &exact).unwrap().passed);
        let other = tensor(Dtype::Int8, &[3], &[1, 2, 4]);
        assert!(!three.against(&other, "y", &exact).unwrap().passed);
        let reshaped = tensor(Dtype::Int8, &[3, 1], &[1, 2, 3]);
        let reason = three.against(&reshaped, "y", &exact).unwrap_err();
        assert_eq!(reason.message, "output `y` is int8 of shape [3], expected shape [3, 1]");
        for expected in
            [tensor(Dtype::Uint8, &[3], &[1, 2, 3]), Value::Text("a".to_owned()), Value::Nothing]
        {
            let reason = three.against(&expected, "y", &exact).unwrap_err();
            assert!(reason.message.starts_with("output `y` is int8 [3], expected"), "{reason:?}");
        }
        let text = |text: &str| Value::Text(text.to_owned());
        assert!(text("a").against(&text("a"), "y", &exact).unwrap().passed);
        let reason = text("a").against(&text("b"), "y", &exact).unwrap_err();
        assert!(reason.message.contains("a different text"), "{reason:?}");
    }

    #[test]
    fn numbers_are_tensors_without_dimensions() {
        let float = Scalar::Float { float: "-inf".to_owned() };
        let expected = tensor(Dtype::Float64, &[], &f64::NEG_INFINITY.to_le_bytes());
        assert_eq!(of_scalar(&float).unwrap(), expected);
        assert_eq!(of_scalar(&Scalar::Bool(true)).unwrap(), tensor(Dtype::Bool, &[], &[1]));
        assert!(of_scalar(&Scalar::Float { float: "0x1".to_owned() }).is_err());
    }
}
