//! Binding of a tensor to a tensor map, through which the Tensor Memory Accelerator reads it.

use super::arguments::passed;
use super::error::BindError;
use warpgauge_contract::{ArgKind, ArgSpec};
use warpgauge_model::{FailureCode, TensorMap};
use warpgauge_worker::protocol::Argument;

/// Binds the tensor of a contract, by index, to a parameter that is a tensor map. The map is
/// untrusted. The argument must be a tensor, its elements must have the size of the map's elements,
/// and the map must not reach beyond the tensor.
pub(crate) fn bind_map(
    index: usize,
    args: &[ArgSpec],
    map: &TensorMap,
) -> Result<Argument, BindError> {
    let (arg, buffer) = passed(index, args)?;
    let misfit = |why: String| {
        let message = format!("argument `{}` cannot be passed as a descriptor: {why}", arg.name);
        BindError::argument(index, FailureCode::ArgumentType, message)
    };
    let spec = arg.tensor_spec.as_ref().filter(|_| arg.kind == ArgKind::Tensor);
    let spec = spec.ok_or_else(|| misfit("it is not a tensor".to_owned()))?;
    map.check().map_err(misfit)?;
    let bytes = spec.dtype.size() as u64;
    if map.element.bytes() != bytes {
        return Err(misfit(format!(
            "its elements have {bytes} bytes, but those of the descriptor have {}",
            map.element.bytes()
        )));
    }
    let all = spec.shape.iter().try_fold(bytes, |all, &extent| all.checked_mul(extent));
    if map.span_bytes().zip(all).is_none_or(|(span, all)| span > all) {
        return Err(misfit(format!(
            "it has the shape {:?}, but the descriptor reaches beyond it: shape {:?}, strides {:?}",
            spec.shape, map.shape, map.strides
        )));
    }
    Ok(Argument::Map(buffer, Box::new(map.clone())))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use warpgauge_model::{MapElement, MapSwizzle};

    fn args() -> Vec<ArgSpec> {
        let tensor = |name: &str, shape: [u64; 2]| {
            json!({"name": name, "type": "tensor", "tensor_spec":
                {"shape": shape, "dtype": "float16"}})
        };
        let args = json!([
            tensor("a", [8, 64]),
            {"name": "B", "type": "int", "value": 1, "is_meta": true},
            {"name": "n", "type": "int", "value": 1},
            tensor("b", [100, 72]),
        ]);
        serde_json::from_value(args).unwrap()
    }

    fn map() -> TensorMap {
        TensorMap {
            element: MapElement::F16,
            shape: vec![100, 72],
            strides: vec![72, 1],
            block: vec![32, 64],
            swizzle: MapSwizzle::Bytes128,
            nan: false,
        }
    }

    #[test]
    fn a_map_names_the_buffer_that_its_tensor_is() {
        let Ok(Argument::Map(1, bound)) = bind_map(3, &args(), &map()) else { panic!("buffer 1") };
        assert_eq!(*bound, map());
        // A map may cover part of a tensor.
        let part = TensorMap { shape: vec![50, 8], ..map() };
        assert!(bind_map(3, &args(), &part).is_ok());
    }

    #[test]
    fn a_map_reaches_no_further_than_its_tensor() {
        for (index, wrong, says) in [
            (3, TensorMap { shape: vec![101, 72], ..map() }, "reaches beyond"),
            (3, TensorMap { strides: vec![80, 1], ..map() }, "reaches beyond"),
            (3, TensorMap { shape: vec![1 << 32, 1 << 32], ..map() }, "reaches beyond"),
            (0, map(), "reaches beyond"),
            (3, TensorMap { element: MapElement::F32, ..map() }, "row of its block"),
            (
                3,
                TensorMap { element: MapElement::F32, block: vec![32, 32], ..map() },
                "elements have 2 bytes",
            ),
            (3, TensorMap { strides: vec![71, 1], ..map() }, "strides"),
            (2, map(), "not a tensor"),
            (4, map(), "more arguments"),
        ] {
            let error = bind_map(index, &args(), &wrong).expect_err(says);
            assert!(error.message.contains(says), "{}", error.message);
        }
    }
}
