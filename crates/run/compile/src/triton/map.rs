//! Converts an interpreter's description of a tensor descriptor to a map for the Tensor Memory
//! Accelerator.

use crate::protocol::triton::{Descriptor, DescriptorMeta};
use warpgauge_model::{MapElement, MapSwizzle, TensorMap};

/// Returns the map of a descriptor. The caller must check that the map stays within the tensor.
///
/// # Errors
/// Returns the reason if Triton's launcher could not encode the descriptor.
pub(super) fn map_of(descriptor: &Descriptor, meta: &DescriptorMeta) -> Result<TensorMap, String> {
    let element = element(meta.elem_type)
        .ok_or_else(|| format!("its elements have type number {}", meta.elem_type))?;
    if element.bytes() != meta.elem_size {
        return Err(format!(
            "its elements have {} bytes, which does not fit {element:?}",
            meta.elem_size
        ));
    }
    let element = match (descriptor.tf32, element) {
        (false, element) => element,
        (true, MapElement::F32) => MapElement::Tf32,
        (true, other) => {
            return Err(format!("its elements are to be rounded to tf32, but have type {other:?}"));
        }
    };
    let swizzle = match meta.swizzle {
        0 => MapSwizzle::None,
        1 => MapSwizzle::Bytes32,
        2 => MapSwizzle::Bytes64,
        3 => MapSwizzle::Bytes128,
        other => return Err(format!("its pattern in shared memory is number {other}")),
    };
    let positive = |values: &[i64]| {
        let values = values.iter().map(|&value| u64::try_from(value));
        values.collect::<Result<Vec<_>, _>>().map_err(|_| "it has negative extents".to_owned())
    };
    let map = TensorMap {
        element,
        shape: positive(&descriptor.shape)?,
        strides: positive(&descriptor.strides)?,
        block: meta.block_size.clone(),
        swizzle,
        nan: descriptor.nan,
    };
    map.check()?;
    Ok(map)
}

/// Returns an element type by the number that instructions use. For the last three this differs
/// from the driver's number (Triton, backends/nvidia/driver.py, `TMA_DTYPE_DEVICE_TO_HOST`).
fn element(number: u32) -> Option<MapElement> {
    Some(match number {
        0 => MapElement::U8,
        1 => MapElement::U16,
        2 => MapElement::U32,
        3 => MapElement::I32,
        4 => MapElement::U64,
        5 => MapElement::I64,
        6 => MapElement::F16,
        7 => MapElement::F32,
        9 => MapElement::F64,
        10 => MapElement::Bf16,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(dtype: &str) -> Descriptor {
        Descriptor {
            dtype: dtype.into(),
            shape: vec![100, 200],
            strides: vec![200, 1],
            nan: false,
            tf32: false,
        }
    }

    fn meta() -> DescriptorMeta {
        DescriptorMeta {
            swizzle: 3,
            elem_size: 4,
            elem_type: 7,
            block_size: vec![32, 32],
            fp4_padded: false,
            is_im2col: false,
        }
    }

    #[test]
    fn a_map_is_what_tritons_launcher_encodes() {
        let map = map_of(&described("fp32"), &meta()).unwrap();
        assert_eq!(
            map,
            TensorMap {
                element: MapElement::F32,
                shape: vec![100, 200],
                strides: vec![200, 1],
                block: vec![32, 32],
                swizzle: MapSwizzle::Bytes128,
                nan: false,
            }
        );
        let rounded = Descriptor { tf32: true, nan: true, ..described("fp32") };
        let map = map_of(&rounded, &meta()).unwrap();
        assert!(map.element == MapElement::Tf32 && map.nan);
        let numbers = [(9, 8, MapElement::F64), (10, 2, MapElement::Bf16)];
        for (elem_type, elem_size, element) in numbers {
            let meta = DescriptorMeta { elem_type, elem_size, block_size: vec![32, 8], ..meta() };
            assert_eq!(map_of(&described(""), &meta).unwrap().element, element);
        }
    }

    #[test]
    fn what_a_stranger_makes_up_is_refused() {
        for (wrong, says) in [
            (DescriptorMeta { elem_type: 8, ..meta() }, "type number 8"),
            (DescriptorMeta { elem_type: 14, elem_size: 1, ..meta() }, "type number 14"),
            (DescriptorMeta { elem_size: 2, ..meta() }, "2 bytes"),
            (DescriptorMeta { elem_size: 0, ..meta() }, "0 bytes"),
            (DescriptorMeta { swizzle: 4, ..meta() }, "number 4"),
            (DescriptorMeta { block_size: vec![], ..meta() }, "dimensions"),
            (DescriptorMeta { block_size: vec![1; 1000], ..meta() }, "dimensions"),
            (DescriptorMeta { block_size: vec![32, 64], ..meta() }, "256 bytes"),
            (DescriptorMeta { block_size: vec![0, 32], ..meta() }, "its block"),
        ] {
            let told = map_of(&described("fp32"), &wrong).expect_err(says);
            assert!(told.contains(says), "{told}");
        }
        let negative = Descriptor { shape: vec![-1, 200], ..described("fp32") };
        assert!(map_of(&negative, &meta()).unwrap_err().contains("negative"));
        let rounded = Descriptor { tf32: true, ..described("i32") };
        let whole = DescriptorMeta { elem_type: 3, ..meta() };
        assert!(map_of(&rounded, &whole).unwrap_err().contains("tf32"));
    }
}
