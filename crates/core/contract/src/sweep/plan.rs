//! Expands a sweep into its points. The main type is [`SweepPlan`].

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::axes::{self, AxisValue, SweepAxis};
use super::numbers;
use super::substitute::{Point, substitute};
use crate::check::program;
use crate::error::{ContractError, Mistakes};
use crate::{
    ContractLimits, CopiedTensor, EvaluateRequest, KeptMatrix, NamesTensors, ReturnOutputs, parse,
};
use warpgauge_model::{FailureCode, Requirements};

/// Maximum size of all expanded contracts of a sweep together, bytes.
const MAX_EXPANDED_BYTES: usize = 16 << 30;

/// Request of `POST /sweep` and `warpgauge sweep`: the contract of an evaluation, and axes.
///
/// Strings of the contract may refer to axes as `$name` or `${name}`. A string that consists of one reference becomes
/// the value itself. Where the contract takes a number, a string is an integer expression: `shape: ["$n * 2"]`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SweepRequest {
    /// Values of each axis: numbers, booleans, strings, and ranges such as `2^10..2^24 by x4` or `0..1 by 0.25`.
    /// Every combination is evaluated, in the order of the axes' names, with the last axis varying fastest.
    pub axes: BTreeMap<String, Vec<AxisValue>>,
    /// Whether each point of the report contains the whole report of its evaluation.
    #[serde(default)]
    pub include_reports: bool,
    /// As in `POST /evaluate`, with references to axes.
    pub kernel: Value,
    /// As in `POST /evaluate`, or an expression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub num_trials: Option<Value>,
    /// As in `POST /evaluate`, or an expression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Value>,
    /// As in `POST /evaluate`, with references to axes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<Value>,
    /// As in `POST /evaluate`, with references to axes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<Value>,
    /// As in `POST /evaluate`, with references to axes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compare_as: Option<Value>,
    /// As in `POST /evaluate`, with references to axes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allow_weak: Option<Value>,
    /// As in `POST /evaluate`, with references to axes. The throughput of each point is computed
    /// from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<Value>,
    /// As in `POST /evaluate`, with references to axes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measure: Option<Value>,
    /// As in `POST /evaluate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Value>,
    /// As in `POST /evaluate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sanitize: Option<Value>,
    /// Only `none` is accepted. A sweep does not return outputs; the reports contain their hashes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub return_outputs: Option<Value>,
    /// As in `POST /evaluate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_encoding: Option<Value>,
    /// As in `POST /evaluate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation: Option<Value>,
    /// Requirements of all points for the device and the installed tools.
    #[serde(default, skip_serializing_if = "Requirements::is_empty")]
    pub requires: Requirements,
    /// Copies of the stored matrices that points name, made when the sweep was accepted.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(skip)]
    pub matrices: BTreeMap<String, KeptMatrix>,
    /// Copies of the shared tensors that points name, made when the sweep was accepted.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(skip)]
    pub tensors: BTreeMap<String, CopiedTensor>,
}

/// A valid sweep: its axes are valid, all references name axes, and every axis is used.
#[derive(Debug, Clone)]
pub struct SweepPlan {
    axes: Vec<SweepAxis>,
    contract: Map<String, Value>,
    points: usize,
    /// Whether the response includes whole reports.
    pub include_reports: bool,
    /// Stored matrices that points of the sweep name.
    pub matrices: BTreeMap<String, KeptMatrix>,
    tensors: BTreeMap<String, CopiedTensor>,
}

impl SweepPlan {
    /// Checks axes, limits and references. [`SweepPlan::request`] checks single points.
    pub fn new(request: SweepRequest, limits: &ContractLimits) -> Result<Self, Vec<ContractError>> {
        let mut mistakes = Mistakes::new(limits.max_errors);
        let kind = request.kernel.get("kernel_type").cloned();
        // An invalid kernel type is reported when the points are checked.
        if let Some(kind) = kind.and_then(|kind| serde_json::from_value(kind).ok()) {
            program::is_misplaced(kind, "kernel.kernel_type", &mut mistakes);
        }
        let axes = axes::expand(&request.axes, limits.max_sweep_points, &mut mistakes);
        let points = axes.iter().try_fold(1_usize, |all, axis| all.checked_mul(axis.values.len()));
        let points = points.unwrap_or(usize::MAX);
        mistakes.require(
            points <= limits.max_sweep_points,
            "axes",
            FailureCode::TooManyPoints,
            || {
                format!(
                    "the axes have {points} combinations, but this server accepts at most {} \
                     (limits.max_sweep_points); leave out values, or send several sweeps",
                    limits.max_sweep_points
                )
            },
        );
        mistakes.into_result()?;
        let include_reports = request.include_reports;
        let (contract, matrices, tensors) = contract_of(request);
        let expanded = contract.values().map(weight).sum::<usize>().saturating_mul(points);
        let mut mistakes = Mistakes::new(limits.max_errors);
        mistakes.require(expanded <= MAX_EXPANDED_BYTES, "axes", FailureCode::TooLarge, || {
            format!(
                "the contracts of all {points} points have {expanded} bytes, but at most {} are \
                 accepted; generate tensors (`init`) instead of sending them",
                MAX_EXPANDED_BYTES
            )
        });
        mistakes.into_result()?;
        let plan = Self { axes, contract, points, include_reports, matrices, tensors };
        plan.check_references()?;
        Ok(plan)
    }

    /// Returns the axes in order; the last varies fastest.
    pub fn axes(&self) -> &[SweepAxis] {
        &self.axes
    }

    /// Returns the number of points.
    pub fn points(&self) -> usize {
        self.points
    }

    /// Returns the values of a point by axis. `index` is below [`SweepPlan::points`].
    pub fn values(&self, index: usize) -> BTreeMap<String, AxisValue> {
        let at = self.position(index);
        let values = self.axes.iter().zip(at);
        values.map(|(axis, at)| (axis.name.clone(), axis.values[at].clone())).collect()
    }

    /// Returns the evaluation of a point, with the content of the sweep's shared tensors.
    /// [`super::super::validate`] must still check it.
    pub fn request(&self, index: usize) -> Result<EvaluateRequest, Vec<ContractError>> {
        let mut request = self.named_request(index)?;
        let names = request.tensor_names();
        for (name, tensor) in self.tensors.iter().filter(|(name, _)| names.contains_key(*name)) {
            request.put_tensor(name, tensor).map_err(|error| vec![error])?;
            request.tensors.push(tensor.used.clone());
        }
        Ok(request)
    }

    /// Returns the evaluation of a point, with the names of shared tensors in place of their
    /// content.
    pub fn named_request(&self, index: usize) -> Result<EvaluateRequest, Vec<ContractError>> {
        let contract = self.evaluated(index).map_err(|error| vec![error])?;
        let request = parse::from_value::<EvaluateRequest>(Value::Object(contract))
            .map_err(|error| vec![error])?;
        let mut mistakes = Mistakes::new(1);
        mistakes.require(
            request.return_outputs == ReturnOutputs::None,
            "return_outputs",
            FailureCode::NotInASweep,
            || {
                "a sweep does not return outputs; leave this out, and evaluate the point of \
                 interest alone"
                    .to_owned()
            },
        );
        mistakes.into_result()?;
        Ok(request)
    }

    fn evaluated(&self, index: usize) -> Result<Map<String, Value>, ContractError> {
        let at = self.position(index);
        let point = Point { axes: &self.axes, at: &at };
        let mut contract = substitute(&self.contract, &point, &mut vec![false; self.axes.len()])?;
        numbers::evaluate(&mut contract)?;
        Ok(contract)
    }

    /// Returns the index of each axis's value at a point. The last axis varies fastest.
    fn position(&self, index: usize) -> Vec<usize> {
        let mut rest = index;
        let mut at = vec![0; self.axes.len()];
        for (axis, at) in self.axes.iter().zip(&mut at).rev() {
            *at = rest % axis.values.len();
            rest /= axis.values.len();
        }
        at
    }

    /// Checks that every reference names an axis and that every axis has a reference. An unused
    /// axis would repeat the same evaluation.
    fn check_references(&self) -> Result<(), Vec<ContractError>> {
        let at = vec![0; self.axes.len()];
        let mut used = vec![false; self.axes.len()];
        let point = Point { axes: &self.axes, at: &at };
        substitute(&self.contract, &point, &mut used).map_err(|error| vec![error])?;
        let mut mistakes = Mistakes::new(self.axes.len());
        for (axis, used) in self.axes.iter().zip(used) {
            let name = &axis.name;
            mistakes.require(used, format!("axes.{name}"), FailureCode::UnusedAxis, || {
                format!(
                    "the contract does not use this axis: refer to it as `${name}` or \
                         `${{{name}}}`"
                )
            });
        }
        mistakes.into_result()
    }
}

type Matrices = BTreeMap<String, KeptMatrix>;
type Tensors = BTreeMap<String, CopiedTensor>;

/// Returns the fields of the evaluation, without those of the sweep.
fn contract_of(request: SweepRequest) -> (Map<String, Value>, Matrices, Tensors) {
    let SweepRequest {
        axes: _,
        include_reports: _,
        kernel,
        num_trials,
        timeout,
        expected,
        tolerance,
        compare_as,
        allow_weak,
        work,
        measure,
        profile,
        sanitize,
        return_outputs,
        output_encoding,
        isolation,
        requires,
        matrices,
        tensors,
    } = request;
    let fields = [
        ("kernel", Some(kernel)),
        ("num_trials", num_trials),
        ("timeout", timeout),
        ("expected", expected),
        ("tolerance", tolerance),
        ("compare_as", compare_as),
        ("allow_weak", allow_weak),
        ("work", work),
        ("measure", measure),
        ("profile", profile),
        ("sanitize", sanitize),
        ("return_outputs", return_outputs),
        ("output_encoding", output_encoding),
        ("isolation", isolation),
        // Strings and sets of strings can always be serialised as JSON.
        ("requires", serde_json::to_value(requires).ok()),
    ];
    let fields = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    (fields.collect(), matrices, tensors)
}

/// Returns the approximate size of a value in memory, bytes.
fn weight(value: &Value) -> usize {
    const NODE: usize = 32;
    NODE + match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(weight).sum(),
        Value::Object(fields) => fields.iter().map(|(name, v)| name.len() + weight(v)).sum(),
        _ => 0,
    }
}
