//! Determines the value of each parameter of the machine code from the function's parameters.
//!
//! Each parameter of the function is one parameter of the code, except tensor descriptors. With the
//! Tensor Memory Accelerator (TMA, compute capability 9.0 and later), a descriptor becomes a tensor
//! map, followed by shape and strides. Without it, the descriptor is passed in parts: the pointer,
//! shape and strides, and shape and strides again. Between these, newer versions pass whether
//! padding is NaN, and whether elements are rounded to tf32. The sizes of the parameters in the PTX
//! show which of these values a version passes. One or two pointers to scratch memory come last.

use super::map::map_of;
use crate::artifact::{Constant, Param, PassedValue};
use crate::binary::PtxParam;
use crate::ctype::CType;
use crate::protocol::triton::{Descriptor, DescriptorMeta, TritonParameter};

/// Maximum number of pointers to scratch memory: one for the kernel, one for a profiler.
const MAX_SCRATCH: usize = 2;

/// A parameter of the machine code, and the value that the launch passes for it.
type Given = (Param, PassedValue);

/// A parameter of the machine code whose offset is not known yet: name, type and value.
type Unplaced = (String, CType, PassedValue);

/// Name of a tensor map's type.
const MAP_TYPE: &str = "CUtensorMap";

/// Size of a tensor map, bytes.
const MAP_BYTES: u32 = 128;

/// Returns the parameters of the kernel if they match those of the PTX. `maps` contains, for each
/// descriptor, how the TMA reads it, or `None` if it does not. If `maps` is empty, the TMA reads no
/// descriptor.
///
/// # Errors
/// Fails if they do not match. The PTX was then not compiled from this signature.
pub(super) fn of_code(
    function: &[TritonParameter],
    maps: &[Option<DescriptorMeta>],
    ptx: &[PtxParam],
) -> Result<Vec<Given>, String> {
    let descriptors = function.iter().filter(|one| one.descriptor.is_some()).count();
    if !maps.is_empty() && maps.len() != descriptors {
        return Err(format!(
            "{} descriptors are described, but the kernel has {descriptors}",
            maps.len()
        ));
    }
    let mut why = String::new();
    for flags in [2, 1, 0] {
        match expanded(function, maps, flags).and_then(|layout| placed(layout, ptx)) {
            Ok(given) => return Ok(given),
            Err(error) => why = error,
        }
    }
    Err(why)
}

/// Returns parameters with their types, but without offsets. `flags` is the number of flags of a
/// descriptor that is passed in parts.
fn expanded(
    function: &[TritonParameter],
    maps: &[Option<DescriptorMeta>],
    flags: usize,
) -> Result<Vec<Unplaced>, String> {
    let mut out = Vec::new();
    let mut maps = maps.iter();
    for parameter in function {
        let name = &parameter.name;
        if let Some(descriptor) = &parameter.descriptor {
            let index = parameter.argument;
            let index = index.ok_or_else(|| format!("`{name}` refers to no argument"))?;
            match maps.next().and_then(Option::as_ref) {
                Some(meta) => mapped(name, index, descriptor, meta, &mut out)?,
                None => parts(name, index, descriptor, flags, &mut out)?,
            }
            continue;
        }
        let ctype = ctype(&parameter.kind)
            .ok_or_else(|| format!("`{name}` has the unsupported type {:?}", parameter.kind))?;
        let passed = match (parameter.argument, &parameter.value) {
            (Some(index), _) => PassedValue::Argument(index),
            (None, Some(value)) => PassedValue::Value(value.clone()),
            (None, None) => return Err(format!("`{name}` has no value")),
        };
        out.push((name.clone(), ctype, passed));
    }
    Ok(out)
}

/// Adds the parameters for a descriptor that the TMA reads.
fn mapped(
    name: &str,
    argument: usize,
    descriptor: &Descriptor,
    meta: &DescriptorMeta,
    out: &mut Vec<Unplaced>,
) -> Result<(), String> {
    let map = map_of(descriptor, meta).map_err(|why| format!("descriptor `{name}`: {why}"))?;
    let ctype = CType::Aggregate(MAP_TYPE.to_owned());
    out.push((name.to_owned(), ctype, PassedValue::Map { argument, map }));
    numbers(name, "shape", &CType::I32, &descriptor.shape, out);
    numbers(name, "strides", &CType::I64, &descriptor.strides, out);
    Ok(())
}

/// Adds a descriptor that is passed in parts, without the TMA.
fn parts(
    name: &str,
    argument: usize,
    descriptor: &Descriptor,
    flags: usize,
    out: &mut Vec<Unplaced>,
) -> Result<(), String> {
    let pointer = ctype(&format!("*{}", descriptor.dtype)).ok_or_else(|| {
        format!("`{name}` has elements of the unsupported type {:?}", descriptor.dtype)
    })?;
    out.push((name.to_owned(), pointer, PassedValue::Argument(argument)));
    numbers(name, "shape", &CType::I64, &descriptor.shape, out);
    numbers(name, "strides", &CType::I64, &descriptor.strides, out);
    let given = [("padding", descriptor.nan), ("tf32", descriptor.tf32)];
    for (what, given) in &given[..flags] {
        numbers(name, what, &CType::Bool, &[i64::from(*given)], out);
    }
    numbers(name, "shape", &CType::I32, &descriptor.shape, out);
    numbers(name, "strides", &CType::I64, &descriptor.strides, out);
    Ok(())
}

/// Adds values that the compiler determined. Each becomes one parameter.
fn numbers(name: &str, what: &str, ctype: &CType, values: &[i64], out: &mut Vec<Unplaced>) {
    out.extend(values.iter().enumerate().map(|(dimension, &value)| {
        let name = format!("{name}.{what}[{dimension}]");
        (name, ctype.clone(), PassedValue::Value(Constant::Int(value)))
    }));
}

/// Assigns to each parameter its offset in the PTX.
fn placed(layout: Vec<Unplaced>, ptx: &[PtxParam]) -> Result<Vec<Given>, String> {
    let rest = ptx.len().checked_sub(layout.len()).filter(|rest| *rest <= MAX_SCRATCH);
    let Some(rest) = rest else {
        return Err(format!(
            "the code has {} parameters, but {} were expected",
            ptx.len(),
            layout.len()
        ));
    };
    let scratch = (0..rest).map(|at| {
        let pointer = CType::Pointer { pointee: None, is_const: false };
        let name = if at == 0 { "global scratch" } else { "profile scratch" };
        let null = PassedValue::Value(Constant::Int(0));
        (name.to_owned(), pointer, if at == 0 { PassedValue::Scratch } else { null })
    });
    let all = layout.into_iter().chain(scratch);
    all.zip(ptx)
        .map(|((name, ctype, passed), place)| {
            let bytes = size(&ctype);
            if bytes != place.bytes {
                return Err(format!(
                    "parameter `{name}` has {} bytes in the code, but {bytes} were expected",
                    place.bytes
                ));
            }
            Ok((
                Param { name: Some(name), ctype, bytes, offset: place.offset, layout: None },
                passed,
            ))
        })
        .collect()
}

fn size(ctype: &CType) -> u32 {
    match ctype {
        CType::Bool | CType::I8 | CType::U8 => 1,
        CType::F16 | CType::Bf16 | CType::I16 | CType::U16 => 2,
        CType::F32 | CType::I32 | CType::U32 => 4,
        CType::Aggregate(_) => MAP_BYTES,
        _ => 8,
    }
}

/// Parses a type in Triton's notation.
fn ctype(kind: &str) -> Option<CType> {
    if let Some(pointee) = kind.strip_prefix('*') {
        let is_const = pointee.starts_with('k');
        let pointee = pointee.trim_start_matches('k');
        return Some(CType::Pointer { pointee: ctype(pointee).map(Box::new), is_const });
    }
    Some(match kind {
        "i1" | "u1" => CType::Bool,
        "i8" => CType::I8,
        "i16" => CType::I16,
        "i32" => CType::I32,
        "i64" => CType::I64,
        "u8" => CType::U8,
        "u16" => CType::U16,
        "u32" => CType::U32,
        "u64" => CType::U64,
        "fp16" => CType::F16,
        "bf16" => CType::Bf16,
        "fp32" | "f32" => CType::F32,
        "fp64" => CType::F64,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameter(name: &str, kind: &str, argument: usize) -> TritonParameter {
        let (name, kind) = (name.to_owned(), kind.to_owned());
        TritonParameter { name, kind, argument: Some(argument), value: None, descriptor: None }
    }

    fn ptx(sizes: &[u32]) -> Vec<PtxParam> {
        let mut end = 0u32;
        let place = |&bytes: &u32| {
            let offset = end.next_multiple_of(bytes);
            end = offset + bytes;
            PtxParam { ctype: CType::Unknown, bytes, offset }
        };
        sizes.iter().map(place).collect()
    }

    #[test]
    fn scratch_pointers_follow_the_functions_parameters() {
        let function = [parameter("x", "*fp32", 0), parameter("n", "i32", 2)];
        for scratch in 0..=2 {
            let sizes: Vec<u32> = [8, 4].into_iter().chain(vec![8; scratch]).collect();
            let given = of_code(&function, &[], &ptx(&sizes)).unwrap();
            assert_eq!(given.len(), 2 + scratch);
            assert_eq!(given[1].1, PassedValue::Argument(2));
            assert_eq!(given[1].0.offset, 8);
            if scratch == 2 {
                assert_eq!(given[2].1, PassedValue::Scratch);
                assert_eq!(given[3].1, PassedValue::Value(Constant::Int(0)));
            }
        }
        assert!(of_code(&function, &[], &ptx(&[8])).is_err());
        assert!(of_code(&function, &[], &ptx(&[8, 8])).unwrap_err().contains("`n`"));
        assert!(of_code(&function, &[], &ptx(&[8, 4, 8, 8, 8])).is_err());
    }

    fn described(name: &str, argument: usize, nan: bool) -> TritonParameter {
        let descriptor = Descriptor {
            dtype: "fp16".into(),
            shape: vec![128, 64],
            strides: vec![64, 1],
            nan,
            tf32: false,
        };
        let kind = "tensordesc<fp16[16, 16]>";
        TritonParameter { descriptor: Some(descriptor), ..parameter(name, kind, argument) }
    }

    #[test]
    fn descriptors_are_passed_in_parts_as_each_version_has_them() {
        let function = [described("a", 0, true)];
        let two = [8, 8, 8, 8, 8, 1, 1, 4, 4, 8, 8, 8, 8];
        let one = [8, 8, 8, 8, 8, 1, 4, 4, 8, 8, 8, 8];
        let none = [8, 8, 8, 8, 8, 4, 4, 8, 8, 8];
        for (sizes, scratch) in [(&two[..], 2), (&one[..], 2), (&none[..], 1)] {
            let given = of_code(&function, &[], &ptx(sizes)).unwrap();
            assert_eq!(given[0].1, PassedValue::Argument(0));
            assert_eq!(given[1].1, PassedValue::Value(Constant::Int(128)));
            let ends = given.iter().filter(|(p, _)| p.name.as_deref().unwrap().contains("scratch"));
            assert_eq!(ends.count(), scratch);
            let nan = given.iter().find(|(p, _)| p.name.as_deref() == Some("a.padding[0]"));
            assert_eq!(nan.map(|given| &given.1), (sizes != none).then_some(&TRUE));
        }
    }

    const TRUE: PassedValue = PassedValue::Value(Constant::Int(1));

    /// The copy engine reads only one of two descriptors.
    #[test]
    fn what_the_copy_engine_reads_is_passed_as_a_map() {
        let function =
            [parameter("n", "i32", 0), described("a", 1, true), described("b", 2, false)];
        let meta = DescriptorMeta {
            swizzle: 3,
            elem_size: 2,
            elem_type: 6,
            block_size: vec![16, 16],
            fp4_padded: false,
            is_im2col: false,
        };
        let sizes = [4, 128, 4, 4, 8, 8, 8, 8, 8, 8, 8, 1, 4, 4, 8, 8, 8, 8];
        let maps = [Some(meta.clone()), None];
        let given = of_code(&function, &maps, &ptx(&sizes)).unwrap();
        let PassedValue::Map { argument: 1, map } = &given[1].1 else { panic!("{:?}", given[1]) };
        assert!(map.nan && map.shape == [128, 64] && map.block == [16, 16], "{map:?}");
        assert_eq!((given[1].0.bytes, given[1].0.offset), (128, 128));
        assert_eq!(given[2].1, PassedValue::Value(Constant::Int(128)));
        assert_eq!(given[6].1, PassedValue::Argument(2));
        // There must be as many maps as descriptors, and the code must have parameters for them.
        for maps in [vec![Some(meta.clone())], vec![Some(meta.clone()); 3]] {
            assert!(of_code(&function, &maps, &ptx(&sizes)).unwrap_err().contains("2"));
        }
        assert!(of_code(&function, &[None, None], &ptx(&sizes)).is_err());
        let wrong = [Some(DescriptorMeta { elem_type: 99, ..meta }), None];
        assert!(of_code(&function, &wrong, &ptx(&sizes)).unwrap_err().contains("`a`"));
    }
}
