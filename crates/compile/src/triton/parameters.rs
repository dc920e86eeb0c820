//! What each parameter of the machine code gets, from what the function's parameters are.
//!
//! A parameter of the function is one of the code, but for tensor descriptors: without the copy engine
//! of compute capability 9.0 their parts are passed one by one, shape and strides twice, and between
//! both, in newer versions, whether padding is NaN. Which of these a version does is seen from the sizes
//! of the parameters in the PTX. After them come pointers to scratch memory, one or two.

use super::answer::{Descriptor, TritonParameter};
use crate::artifact::{CType, Constant, Param, Passed};
use crate::binary::PtxParam;

/// Most pointers to scratch memory: one for the kernel, one for a profiler.
const MAX_SCRATCH: usize = 2;

/// A parameter, and what it gets.
type Given = (Param, Passed);

/// The parameters of the kernel, as far as they fit those of the PTX.
///
/// # Errors
/// They do not: the PTX is not what this signature compiles to.
pub(super) fn of_code(
    function: &[TritonParameter],
    ptx: &[PtxParam],
) -> Result<Vec<Given>, String> {
    let layouts = [true, false].map(|padding| expanded(function, padding));
    let mut why = String::new();
    for layout in layouts {
        match layout.and_then(|layout| placed(layout, ptx)) {
            Ok(given) => return Ok(given),
            Err(error) => why = error,
        }
    }
    Err(why)
}

/// Parameters with their types, still without places.
fn expanded(
    function: &[TritonParameter],
    padding: bool,
) -> Result<Vec<(String, CType, Passed)>, String> {
    let mut out = Vec::new();
    for parameter in function {
        let name = &parameter.name;
        if let Some(descriptor) = &parameter.descriptor {
            parts(parameter, descriptor, padding, &mut out)?;
            continue;
        }
        let ctype = ctype(&parameter.kind)
            .ok_or_else(|| format!("`{name}` has the type {:?}", parameter.kind))?;
        let passed = match (parameter.argument, &parameter.value) {
            (Some(index), _) => Passed::Argument(index),
            (None, Some(value)) => Passed::Value(value.clone()),
            (None, None) => return Err(format!("`{name}` has no value")),
        };
        out.push((name.clone(), ctype, passed));
    }
    Ok(out)
}

/// The parts of a descriptor.
fn parts(
    parameter: &TritonParameter,
    descriptor: &Descriptor,
    padding: bool,
    out: &mut Vec<(String, CType, Passed)>,
) -> Result<(), String> {
    let name = &parameter.name;
    let index = parameter.argument.ok_or_else(|| format!("`{name}` describes no argument"))?;
    let pointer = ctype(&format!("*{}", descriptor.dtype))
        .ok_or_else(|| format!("`{name}` describes elements of {:?}", descriptor.dtype))?;
    out.push((name.clone(), pointer, Passed::Argument(index)));
    let mut numbers = |what: &str, ctype: CType, values: &[i64]| {
        for (dimension, &value) in values.iter().enumerate() {
            let name = format!("{name}.{what}[{dimension}]");
            out.push((name, ctype.clone(), Passed::Value(Constant::Int(value))));
        }
    };
    numbers("shape", CType::I64, &descriptor.shape);
    numbers("strides", CType::I64, &descriptor.strides);
    if padding {
        numbers("padding", CType::Bool, &[0]);
    }
    numbers("shape", CType::I32, &descriptor.shape);
    numbers("strides", CType::I64, &descriptor.strides);
    Ok(())
}

/// Gives parameters the places that they have in the PTX.
fn placed(layout: Vec<(String, CType, Passed)>, ptx: &[PtxParam]) -> Result<Vec<Given>, String> {
    let rest = ptx.len().checked_sub(layout.len()).filter(|rest| *rest <= MAX_SCRATCH);
    let Some(rest) = rest else {
        return Err(format!(
            "the code has {} parameters, and {} were expected",
            ptx.len(),
            layout.len()
        ));
    };
    let scratch = (0..rest).map(|at| {
        let pointer = CType::Pointer { pointee: None, is_const: false };
        let name = if at == 0 { "global scratch" } else { "profile scratch" };
        let null = Passed::Value(Constant::Int(0));
        (name.to_owned(), pointer, if at == 0 { Passed::Scratch } else { null })
    });
    let all = layout.into_iter().chain(scratch);
    all.zip(ptx)
        .map(|((name, ctype, passed), place)| {
            let bytes = size(&ctype);
            if bytes != place.bytes {
                return Err(format!(
                    "parameter `{name}` has {} bytes in the code, and {bytes} were expected",
                    place.bytes
                ));
            }
            Ok((Param { name: Some(name), ctype, bytes, offset: place.offset }, passed))
        })
        .collect()
}

fn size(ctype: &CType) -> u32 {
    match ctype {
        CType::Bool | CType::I8 | CType::U8 => 1,
        CType::F16 | CType::Bf16 | CType::I16 | CType::U16 => 2,
        CType::F32 | CType::I32 | CType::U32 => 4,
        _ => 8,
    }
}

/// A type in Triton's words.
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
            let given = of_code(&function, &ptx(&sizes)).unwrap();
            assert_eq!(given.len(), 2 + scratch);
            assert_eq!(given[1].1, Passed::Argument(2));
            assert_eq!(given[1].0.offset, 8);
            if scratch == 2 {
                assert_eq!(given[2].1, Passed::Scratch);
                assert_eq!(given[3].1, Passed::Value(Constant::Int(0)));
            }
        }
        assert!(of_code(&function, &ptx(&[8])).is_err());
        assert!(of_code(&function, &ptx(&[8, 8])).unwrap_err().contains("`n`"));
        assert!(of_code(&function, &ptx(&[8, 4, 8, 8, 8])).is_err());
    }

    #[test]
    fn descriptors_are_passed_in_parts_as_either_version_has_them() {
        let descriptor =
            Descriptor { dtype: "fp16".into(), shape: vec![128, 64], strides: vec![64, 1] };
        let function = [TritonParameter {
            descriptor: Some(descriptor),
            ..parameter("a", "tensordesc<fp16[16, 16]>", 0)
        }];
        let with = [8, 8, 8, 8, 8, 1, 4, 4, 8, 8, 8, 8];
        let without = [8, 8, 8, 8, 8, 4, 4, 8, 8, 8];
        for (sizes, scratch) in [(&with[..], 2), (&without[..], 1)] {
            let given = of_code(&function, &ptx(sizes)).unwrap();
            assert_eq!(given[0].1, Passed::Argument(0));
            assert_eq!(given[1].1, Passed::Value(Constant::Int(128)));
            let ends = given.iter().filter(|(p, _)| p.name.as_deref().unwrap().contains("scratch"));
            assert_eq!(ends.count(), scratch);
        }
    }
}
