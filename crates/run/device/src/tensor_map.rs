//! Tensor maps. A map describes a tensor, including its address, for the copy engine of compute
//! capability 9.0 and later (TMA). A kernel receives a map by value (`__grid_constant__`).

use std::ffi::{c_int, c_uint, c_void};

use cudarc::driver::sys::{
    CUtensorMap, CUtensorMapDataType_enum as DataType, CUtensorMapFloatOOBfill_enum as Fill,
    CUtensorMapInterleave_enum as Interleave, CUtensorMapL2promotion_enum as Promotion,
    CUtensorMapSwizzle_enum as Swizzle,
};

use super::{Context, DeviceError};
use warpgauge_model::{FailureCode, MapElement, MapSwizzle, TensorMap};

/// Size of a tensor map, bytes.
pub const TENSOR_MAP_BYTES: usize = 128;

/// Maximum number of dimensions of a tensor.
const MAX_RANK: usize = 5;

/// Drivers up to CUDA 13.1 encode small tensors like large ones. The copy engine of Blackwell then
/// generates wrong addresses beyond the tensor. CUTLASS (`copy_traits_sm90_tma.hpp`) and Triton 3.9
/// clear this bit, which is in the second of sixteen words. On Hopper it has no meaning.
const LAST_FAULTY_DRIVER: c_int = 13010;
const LARGE_BIT: u64 = 1 << 21;
const LARGE_BYTES: u64 = 128 << 10;

/// The arguments of `cuTensorMapEncodeTiled`, except for the address, in the form in which Triton's
/// launcher passes them.
#[derive(Debug, PartialEq, Eq)]
struct Encoding {
    element: c_uint,
    rank: c_uint,
    /// In this array and the following ones, the innermost dimension comes first.
    shape: [u64; MAX_RANK],
    /// Strides in bytes. The stride of the innermost dimension, which is the size of an element, is
    /// left out.
    strides: [u64; MAX_RANK],
    block: [u32; MAX_RANK],
    element_strides: [u32; MAX_RANK],
    interleave: c_uint,
    swizzle: c_uint,
    promotion: c_uint,
    fill: c_uint,
}

impl Encoding {
    /// Returns the encoding of a map, which must be valid.
    fn of(map: &TensorMap) -> Self {
        let bytes = map.element.bytes();
        let (mut shape, mut strides) = ([0; MAX_RANK], [0; MAX_RANK]);
        let mut block = [0; MAX_RANK];
        let from = map.shape.iter().rev();
        shape.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
        let from = map.strides.iter().rev().skip(1);
        strides.iter_mut().zip(from).for_each(|(to, from)| *to = from * bytes);
        let from = map.block.iter().rev();
        block.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
        let fill = if map.nan {
            Fill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA
        } else {
            Fill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE
        };
        Self {
            element: data_type(map.element) as c_uint,
            rank: map.shape.len() as c_uint,
            shape,
            strides,
            block,
            element_strides: [1; MAX_RANK],
            interleave: Interleave::CU_TENSOR_MAP_INTERLEAVE_NONE as c_uint,
            swizzle: pattern(map.swizzle) as c_uint,
            promotion: Promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_128B as c_uint,
            fill: fill as c_uint,
        }
    }
}

fn data_type(element: MapElement) -> DataType {
    match element {
        MapElement::U8 => DataType::CU_TENSOR_MAP_DATA_TYPE_UINT8,
        MapElement::U16 => DataType::CU_TENSOR_MAP_DATA_TYPE_UINT16,
        MapElement::U32 => DataType::CU_TENSOR_MAP_DATA_TYPE_UINT32,
        MapElement::I32 => DataType::CU_TENSOR_MAP_DATA_TYPE_INT32,
        MapElement::U64 => DataType::CU_TENSOR_MAP_DATA_TYPE_UINT64,
        MapElement::I64 => DataType::CU_TENSOR_MAP_DATA_TYPE_INT64,
        MapElement::F16 => DataType::CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
        MapElement::F32 => DataType::CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
        MapElement::F64 => DataType::CU_TENSOR_MAP_DATA_TYPE_FLOAT64,
        MapElement::Bf16 => DataType::CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
        MapElement::Tf32 => DataType::CU_TENSOR_MAP_DATA_TYPE_TFLOAT32,
    }
}

fn pattern(swizzle: MapSwizzle) -> Swizzle {
    match swizzle {
        MapSwizzle::None => Swizzle::CU_TENSOR_MAP_SWIZZLE_NONE,
        MapSwizzle::Bytes32 => Swizzle::CU_TENSOR_MAP_SWIZZLE_32B,
        MapSwizzle::Bytes64 => Swizzle::CU_TENSOR_MAP_SWIZZLE_64B,
        MapSwizzle::Bytes128 => Swizzle::CU_TENSOR_MAP_SWIZZLE_128B,
    }
}

/// Encodes a map for a tensor that begins at `address`.
///
/// # Errors
/// Fails if the map is invalid, or if the driver lacks the function or rejects the map. The error
/// contains the map's fields.
pub fn encode_tensor_map(
    context: &Context,
    map: &TensorMap,
    address: u64,
) -> Result<[u8; TENSOR_MAP_BYTES], DeviceError> {
    let operation = || format!("make a tensor descriptor ({})", told(map));
    map.check().map_err(|why| DeviceError::local(operation(), FailureCode::InvalidValue, why))?;
    let api = context.api();
    let Some(encode) = api.tensor_map_encode else {
        let text = "this driver has no cuTensorMapEncodeTiled: it needs CUDA 12.0 or later";
        return Err(DeviceError::local(operation(), FailureCode::NotSupported, text));
    };
    let how = Encoding::of(map);
    let mut encoded = CUtensorMap { opaque: [0; 16] };
    // SAFETY: the driver writes one map, which its type aligns, and reads `rank` numbers (one less
    // of the strides) of arrays that are large enough for any rank. It does not dereference the
    // address.
    let result = unsafe {
        encode(
            &mut encoded,
            how.element,
            how.rank,
            address as usize as *mut c_void,
            how.shape.as_ptr(),
            how.strides.as_ptr(),
            how.block.as_ptr(),
            how.element_strides.as_ptr(),
            how.interleave,
            how.swizzle,
            how.promotion,
            how.fill,
        )
    };
    if result != 0 {
        return Err(api.error(result, &operation()));
    }
    let mut version = 0;
    // SAFETY: writes one int.
    let result = unsafe { (api.driver_version)(&mut version) };
    api.check(result, "query the driver's version")?;
    Ok(bytes_of(corrected(encoded.opaque, map, version)))
}

/// Returns the encoded map, corrected for the driver's error with small tensors.
fn corrected(mut words: [u64; 16], map: &TensorMap, driver: c_int) -> [u64; 16] {
    let small = map.span_bytes().is_some_and(|bytes| bytes < LARGE_BYTES);
    if driver <= LAST_FAULTY_DRIVER && small {
        words[1] &= !LARGE_BIT;
    }
    words
}

fn bytes_of(words: [u64; 16]) -> [u8; TENSOR_MAP_BYTES] {
    let mut bytes = [0; TENSOR_MAP_BYTES];
    for (to, word) in bytes.chunks_exact_mut(8).zip(words) {
        to.copy_from_slice(&word.to_ne_bytes());
    }
    bytes
}

/// Describes a map for error messages.
fn told(map: &TensorMap) -> String {
    let TensorMap { element, shape, strides, block, swizzle, nan } = map;
    let padding = if *nan { "nan" } else { "zero" };
    format!(
        "elements {element:?}, shape {shape:?}, strides {strides:?}, block {block:?}, swizzle \
         {swizzle:?}, padding {padding}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map() -> TensorMap {
        TensorMap {
            element: MapElement::Bf16,
            shape: vec![7, 100, 72],
            strides: vec![8000, 80, 1],
            block: vec![1, 32, 64],
            swizzle: MapSwizzle::Bytes128,
            nan: true,
        }
    }

    /// `fillTMADescriptor` of Triton's driver.c, for the same tensor: dimensions reversed, strides
    /// in bytes without the innermost dimension's, steps of one element, promotion to 128 bytes, no
    /// interleaving.
    #[test]
    fn arguments_are_those_of_tritons_launcher() {
        assert_eq!(
            Encoding::of(&map()),
            Encoding {
                element: 9,
                rank: 3,
                shape: [72, 100, 7, 0, 0],
                strides: [160, 16000, 0, 0, 0],
                block: [64, 32, 1, 0, 0],
                element_strides: [1; 5],
                interleave: 0,
                swizzle: 3,
                promotion: 2,
                fill: 1,
            }
        );
        let line = TensorMap {
            element: MapElement::F32,
            shape: vec![1000],
            strides: vec![1],
            block: vec![256],
            swizzle: MapSwizzle::None,
            nan: false,
        };
        let line = Encoding::of(&line);
        assert_eq!((line.rank, line.shape[0], line.block[0]), (1, 1000, 256));
        assert_eq!((line.element, line.swizzle, line.fill), (7, 0, 0));
        assert_eq!(line.strides, [0; 5]);
    }

    /// The numbers of cuda.h, which differ from those that kernels use (driver.py,
    /// `TMA_DTYPE_DEVICE_TO_HOST`).
    #[test]
    fn elements_and_patterns_have_the_drivers_numbers() {
        let numbers = [
            MapElement::U8,
            MapElement::U16,
            MapElement::U32,
            MapElement::I32,
            MapElement::U64,
            MapElement::I64,
            MapElement::F16,
            MapElement::F32,
            MapElement::F64,
            MapElement::Bf16,
        ]
        .map(|element| data_type(element) as u32);
        assert_eq!(numbers, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        assert_eq!(data_type(MapElement::Tf32) as u32, 11);
        let patterns =
            [MapSwizzle::None, MapSwizzle::Bytes32, MapSwizzle::Bytes64, MapSwizzle::Bytes128];
        assert_eq!(patterns.map(|swizzle| pattern(swizzle) as u32), [0, 1, 2, 3]);
    }

    #[test]
    fn only_older_drivers_are_corrected_and_only_for_small_tensors() {
        let small = TensorMap { shape: vec![1, 100, 72], ..map() };
        let large = map();
        assert!(small.span_bytes() < Some(LARGE_BYTES) && large.span_bytes() < Some(1 << 20));
        let large = TensorMap { shape: vec![90, 100, 72], ..large };
        assert!(large.span_bytes() > Some(LARGE_BYTES));
        let second = |map, driver| corrected([u64::MAX; 16], map, driver)[1];
        assert_eq!(second(&small, 13010), !(1 << 21));
        assert_eq!(second(&small, 13020), u64::MAX);
        assert_eq!(second(&large, 13010), u64::MAX);
        assert_eq!(corrected([u64::MAX; 16], &small, 12080)[0], u64::MAX);
    }

    #[test]
    fn a_map_is_as_large_as_the_drivers() {
        assert_eq!(size_of::<CUtensorMap>(), TENSOR_MAP_BYTES);
        assert!(align_of::<CUtensorMap>() >= 64);
        let bytes = bytes_of(std::array::from_fn(|at| at as u64));
        assert_eq!(bytes[8..16], 1u64.to_ne_bytes());
    }
}
