//! Compares the results of a batch with the expected ones: on the device if possible, and otherwise
//! on the host.

use super::near;
use super::stage::Stage;
use crate::backends::torch::MOST_FETCHED;
use crate::backends::torch::fault::Stop;
use crate::backends::torch::values::{Copied, Named, Value};
use crate::backends::torch::verification::Verification;
use warpgauge_device::MeasuredErrors;
use warpgauge_device::inspection::{FindingHandle, Inspection};
use warpgauge_device::support::Support;
use warpgauge_validate::{CountedErrors, Reason, ReasonCode};

/// Comparison of results that the judge has copied to its device memory.
pub(super) struct DeviceComparison<'a, 'g> {
    pub(super) stage: &'a Stage<'g>,
    pub(super) verification: &'a mut Verification,
}

impl DeviceComparison<'_, '_> {
    /// Compares each call's results with the expected ones. Results that differ on the device are
    /// compared again in detail. All results of the first call are also compared in detail, and so
    /// are results that the device cannot compare.
    pub(super) fn batch(
        &mut self,
        values: &[Named],
        expected: &[Named],
        first: bool,
    ) -> Result<(), Stop> {
        let stage = self.stage;
        let broken = |error: warpgauge_device::DeviceError| Stop::Broken(error.to_string());
        let mut looks = stage.gpu.support.inspect(&stage.gpu.stream).map_err(broken)?;
        let mut found: Vec<(usize, String, Option<FindingHandle>)> = Vec::new();
        for (call, (values, expected)) in values.iter().zip(expected).enumerate() {
            let expected_by_name = expected.iter().cloned().collect();
            if let Some(reason) = self.verification.missing(values, &expected_by_name) {
                return Err(self.verification.wrong(reason));
            }
            for (name, value) in values {
                let Some((_, wanted)) = expected.iter().find(|(other, _)| other == name) else {
                    continue;
                };
                if let Some(reason) = elsewhere(name, value, wanted) {
                    return Err(self.verification.wrong(reason));
                }
                let look = match first {
                    true => None,
                    false => self.look(&mut looks, name, value, wanted)?,
                };
                found.push((call, name.clone(), look));
            }
        }
        let all = looks.read().map_err(broken)?;
        for (call, name, look) in found {
            if look.is_some_and(|look| all.of(look).is_none()) {
                continue;
            }
            let of = |named: &Named| {
                named.iter().find(|(other, _)| *other == name).map(|(_, v)| v.clone())
            };
            let (Some(value), Some(wanted)) = (of(&values[call]), of(&expected[call])) else {
                continue;
            };
            if self.verification.is_large(&name, &value) {
                let samples = (stage.sampled(&value)?, stage.sampled(&wanted)?);
                let tolerance = self.verification.settle(&name, &samples.1);
                let compared = stage.compared_in_parts((&value, &wanted), &tolerance)?;
                if let Some(mut comparison) = compared {
                    if let (
                        Value::Tensor { dtype, bytes, .. },
                        Value::Tensor { bytes: expected, .. },
                    ) = &samples
                    {
                        comparison.refuse_half(*dtype, bytes, expected);
                    }
                    self.verification.note(&name, Ok(comparison), first);
                    continue;
                }
            }
            let (value, wanted) = (stage.fetched(value)?, stage.fetched(wanted)?);
            let mut inputs =
                || stage.inputs_of_call(call as u32, &|_, bytes| bytes <= MOST_FETCHED);
            self.verification.compare(&name, (&value, &wanted), first, &mut inputs)?;
            if self.verification.verdict().is_err() && !first {
                break;
            }
        }
        if first {
            self.verification.note_unchecked(&values[0], &expected[0].iter().cloned().collect());
            let fetch = |(name, value): &(String, Value)| {
                let is_large = self.verification.is_large(name, value);
                let kept = if is_large { value.clone() } else { stage.fetched(value.clone())? };
                Ok((name.clone(), kept))
            };
            self.verification.found.outputs =
                values[0].iter().map(fetch).collect::<Result<_, Stop>>()?;
        }
        self.verification.verdict()
    }

    /// Queues a comparison on the device, if both values are on the device and it supports their
    /// type.
    fn look(
        &self,
        looks: &mut Inspection<'_>,
        name: &str,
        value: &Value,
        wanted: &Value,
    ) -> Result<Option<FindingHandle>, Stop> {
        let (
            Value::OnDevice { dtype, shape, copy },
            Value::OnDevice { dtype: other, shape: extents, copy: theirs },
        ) = (value, wanted)
        else {
            return Ok(None);
        };
        if (dtype, shape) != (other, extents) || !Support::compares(*dtype) {
            return Ok(None);
        }
        // An output that has no tolerance yet is compared on the host, which sets its tolerance.
        let Some(tolerance) = self.verification.settled(name) else {
            return Ok(None);
        };
        let near = near(tolerance);
        let at = |copy: &Copied| Some(self.stage.shelf(copy.shelf)?.address() + copy.at as u64);
        let (Some(one), Some(other)) = (at(copy), at(theirs)) else {
            return Err(Stop::Broken("a copy no longer exists".to_owned()));
        };
        let dtype = dtype.part();
        let count = (copy.bytes / dtype.size()) as u64;
        let look = looks.first_not_near((one, other), count, dtype, near);
        look.map(Some).map_err(|error| Stop::Broken(error.to_string()))
    }
}

/// Returns a reason if a tensor is on the host but was expected on the device. Scalars are exempt.
fn elsewhere(name: &str, value: &Value, wanted: &Value) -> Option<Reason> {
    let scalar = |value: &Value| matches!(value, Value::Tensor { shape, .. } if shape.is_empty());
    let (here, there) = match (value, wanted) {
        (Value::Tensor { .. }, Value::OnDevice { .. }) if !scalar(value) => {
            ("the CPU", "the device")
        }
        _ => return None,
    };
    let message = format!("output `{name}` is on {here}, but was expected on {there}");
    Some(Reason::new(ReasonCode::OutputMismatch, message))
}

/// Converts the device's measurements to the counts of a comparison.
pub(super) fn counted(found: MeasuredErrors, elements: u64) -> CountedErrors {
    CountedErrors {
        elements,
        pairs: found.pairs,
        matched: found.matched,
        near: found.near,
        non_finite: found.non_finite,
        non_finite_matched: found.non_finite_matched,
        max_abs: found.max_abs,
        max_rel: found.max_rel,
        sum: found.sum,
        sum_of_squares: found.sum_of_squares,
    }
}
