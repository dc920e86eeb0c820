//! Shapes whose extents are expressions. The main function is [`IoContract::settle_shapes`].

use super::error::Mistakes;
use super::resolve::Scope;
use super::{ArgSpec, Extent, IoContract, KernelType, Names, TensorSpec};

use warpgauge_model::FailureCode;
use warpgauge_tensor::shape::MAX_RANK;

/// Maximum number of arguments of a contract whose shapes are evaluated. A later check rejects
/// more.
const MAX_ARGS: usize = 1024;

impl IoContract {
    /// Evaluates the expressions in shapes, in the order of the arguments. A shape stays open while one of its
    /// expressions has no value, e.g. because it uses a number of a matrix that is not known yet.
    pub fn settle_shapes(&mut self) {
        if self.args.len() > MAX_ARGS {
            return;
        }
        for index in 0..self.args.len() {
            let Some(spec) = &self.args[index].tensor_spec else { continue };
            let most = MAX_RANK.min(spec.open.len());
            let settled = spec.open[..most].iter().map(|extent| value_of(extent, &self.args));
            let Ok(shape) = settled.collect::<Result<Vec<u64>, _>>() else { continue };
            if let Some(spec) = &mut self.args[index].tensor_spec
                && !spec.open.is_empty()
                && shape.len() == spec.open.len()
            {
                (spec.shape, spec.open) = (shape, Vec::new());
            }
        }
    }
}

/// Reports the reason why a shape has no value.
pub(super) fn report_open(
    args: &[ArgSpec],
    spec: &TensorSpec,
    path: &str,
    mistakes: &mut Mistakes,
) {
    if spec.open.len() > MAX_RANK {
        let message =
            format!("a tensor has {} dimensions; at most {MAX_RANK} are allowed", spec.open.len());
        return mistakes.add(format!("{path}.shape"), FailureCode::InvalidShape, message);
    }
    for (dimension, extent) in spec.open.iter().enumerate() {
        if let Err(message) = value_of(extent, args) {
            let path = format!("{path}.shape[{dimension}]");
            mistakes.add(path, FailureCode::InvalidExpression, message);
        }
    }
}

/// Returns the value of an extent, or the reason why it has none.
fn value_of(extent: &Extent, args: &[ArgSpec]) -> Result<u64, String> {
    let text = match extent {
        Extent::Value(value) => return Ok(*value),
        Extent::Expression(text) => text,
    };
    let names = Names::Given(KernelType::Cuda);
    let scope = Scope { args, counters: &[], names };
    let value = scope.evaluate(text)?;
    u64::try_from(value).map_err(|_| format!("is {value}: an extent must be from 0 to 2^64 − 1"))
}
