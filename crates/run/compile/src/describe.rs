//! Converts the contents of an image to [`KernelInfo`]: names, parameter types, and resource usage.

use std::collections::HashMap;

use super::artifact::{KernelInfo, Param};
use super::binary::{PtxKernel, RawKernel};
use super::ctype::CType;
use super::demangle::{Type, demangle};
use super::ptxas::Usage;
use warpgauge_code::source::SourceKernel;
use warpgauge_model::Resources;

/// Facts about kernels from sources other than the image.
#[derive(Debug, Default)]
pub(crate) struct Knowledge<'a> {
    /// Kernels of the source, for parameter names.
    pub source: &'a [SourceKernel],
    /// C++ name that was requested for each symbol.
    pub expressions: HashMap<String, String>,
    /// Parameter types of each symbol, as the compiler resolved them.
    pub types: HashMap<String, Vec<CType>>,
    /// Resource usage of each symbol, from the assembler's output.
    pub usage: HashMap<&'a str, Usage>,
    /// Names of the source's enumerations.
    pub enumerations: Vec<String>,
}

/// A parameter as the image describes it. Only some images contain its type.
struct Place {
    bytes: u32,
    offset: u32,
    ctype: CType,
}

impl Knowledge<'_> {
    /// Describes a kernel of a cubin.
    pub(crate) fn machine_code(&self, kernel: RawKernel) -> KernelInfo {
        let places = kernel.params.map(|params| {
            let place = |p: super::binary::RawParam| Place {
                bytes: p.bytes,
                offset: p.offset,
                ctype: CType::Unknown,
            };
            params.into_iter().map(place).collect()
        });
        let mut resources = kernel.resources;
        if let Some(usage) = self.usage.get(kernel.symbol.as_str()) {
            usage.complete(&mut resources);
        }
        self.kernel(kernel.symbol, places, Some(resources))
    }

    /// Describes a kernel of a PTX module.
    pub(crate) fn ptx(&self, kernel: PtxKernel) -> KernelInfo {
        let place =
            |p: super::binary::PtxParam| Place { bytes: p.bytes, offset: p.offset, ctype: p.ctype };
        let places = kernel.params.into_iter().map(place).collect();
        self.kernel(kernel.symbol, Some(places), None)
    }

    fn kernel(
        &self,
        symbol: String,
        places: Option<Vec<Place>>,
        resources: Option<Resources>,
    ) -> KernelInfo {
        let function = demangle(&symbol);
        let mangled = || {
            let params = &function.as_ref()?.params;
            Some(params.iter().map(Type::ctype).collect::<Vec<_>>())
        };
        let types = self.types.get(&symbol).cloned().or_else(mangled);
        let demangled = function.as_ref().map_or(symbol.as_str(), |f| f.name.as_str());
        let params = places.map(|places| {
            let names = self.param_names(demangled, places.len());
            let types = types.filter(|types| types.len() == places.len());
            let param = |(at, place): (usize, Place)| {
                let given = types.as_ref().map(|types| self.seen(types[at].clone(), &place));
                Param {
                    name: names.and_then(|names| names[at].clone()),
                    ctype: fitting(given, &place),
                    bytes: place.bytes,
                    offset: place.offset,
                    layout: None,
                }
            };
            places.into_iter().enumerate().map(param).collect()
        });
        let name = self.expressions.get(&symbol).map_or(demangled, String::as_str).to_owned();
        KernelInfo { name, symbol, params, resources }
    }

    /// Returns the type that a symbol contains. A symbol does not distinguish enumerations from
    /// structures; in PTX, a structure is an array of bytes.
    fn seen(&self, given: CType, place: &Place) -> CType {
        match given {
            CType::Aggregate(name) if self.is_enumeration(&name, place) => CType::Enumeration(name),
            other => other,
        }
    }

    fn is_enumeration(&self, name: &str, place: &Place) -> bool {
        let own = name.rsplit("::").next().unwrap_or(name);
        let is_declared = self.enumerations.iter().any(|one| one == own);
        matches!(place.bytes, 1 | 2 | 4 | 8) && (is_declared || place.ctype == CType::Integer)
    }

    /// Returns the parameter names of the source's kernel with this name and number of parameters,
    /// if there is exactly one.
    fn param_names(&self, name: &str, count: usize) -> Option<&[Option<String>]> {
        let plain = name.split('<').next().unwrap_or(name);
        let plain = plain.replace("(anonymous namespace)::", "");
        let fits = |kernel: &&SourceKernel| {
            let own = if kernel.extern_c { kernel.base_name() } else { kernel.name.as_str() };
            own == plain && kernel.params.len() == count
        };
        let mut fitting = self.source.iter().filter(fits);
        match (fitting.next(), fitting.next()) {
            (Some(kernel), None) => Some(&kernel.params),
            _ => None,
        }
    }
}

/// Returns the type from a symbol or query, unless its size contradicts the image.
fn fitting(told: Option<CType>, place: &Place) -> CType {
    let told = match told {
        None | Some(CType::Unknown) => return place.ctype.clone(),
        Some(told) => told,
    };
    match size_of(&told) {
        Some(size) if size != place.bytes => place.ctype.clone(),
        _ => told,
    }
}

/// Returns the size of a type in bytes. Returns `None` if the type does not determine it.
fn size_of(ctype: &CType) -> Option<u32> {
    match ctype {
        CType::I8 | CType::U8 | CType::Bool => Some(1),
        CType::F16 | CType::Bf16 | CType::I16 | CType::U16 => Some(2),
        CType::F32 | CType::I32 | CType::U32 => Some(4),
        CType::F64 | CType::I64 | CType::U64 | CType::Pointer { .. } => Some(8),
        CType::Aggregate(_) | CType::Enumeration(_) | CType::Integer | CType::Unknown => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::binary::RawParam;
    use warpgauge_code::source::find_kernels;

    fn raw(symbol: &str, places: &[(u32, u32)]) -> RawKernel {
        let params = places.iter().map(|&(bytes, offset)| RawParam { bytes, offset }).collect();
        RawKernel { symbol: symbol.into(), params: Some(params), resources: Resources::default() }
    }

    fn types(info: &KernelInfo) -> Vec<CType> {
        info.params.iter().flatten().map(|p| p.ctype.clone()).collect()
    }

    #[test]
    fn a_mangled_symbol_gives_name_and_types_and_the_source_gives_parameter_names() {
        let source = find_kernels("namespace ns { __global__ void k(float* x, int n) {} }");
        let knowledge = Knowledge { source: &source, ..Knowledge::default() };
        let info = knowledge.machine_code(raw("_ZN2ns1kEPfi", &[(8, 0), (4, 8)]));
        assert_eq!(info.name, "ns::k");
        let pointer = CType::Pointer { pointee: Some(Box::new(CType::F32)), is_const: false };
        assert_eq!(types(&info), [pointer, CType::I32]);
        let names: Vec<_> = info.params.unwrap().into_iter().map(|p| p.name).collect();
        assert_eq!(names, [Some("x".into()), Some("n".into())]);
    }

    #[test]
    fn a_type_that_contradicts_the_image_is_not_believed() {
        let info = Knowledge::default().machine_code(raw("_Z1ki", &[(8, 0)]));
        assert_eq!(types(&info), [CType::Unknown]);
        let info = Knowledge::default().machine_code(raw("_Z1kii", &[(4, 0)]));
        assert_eq!(types(&info), [CType::Unknown]);
    }

    #[test]
    fn enumerations_are_told_from_structures() {
        let enumerations = vec!["Mode".to_owned()];
        let knowledge = Knowledge { enumerations, ..Knowledge::default() };
        let info = knowledge.machine_code(raw("_Z1kN1n4ModeEN1n5PointE", &[(4, 0), (8, 4)]));
        let expected = [CType::Enumeration("n::Mode".into()), CType::Aggregate("n::Point".into())];
        assert_eq!(types(&info), expected);
    }

    #[test]
    fn overloads_lend_no_names() {
        let source = find_kernels("__global__ void k(int a) {} __global__ void k(float b) {}");
        let knowledge = Knowledge { source: &source, ..Knowledge::default() };
        let info = knowledge.machine_code(raw("_Z1ki", &[(4, 0)]));
        assert_eq!(info.params.unwrap()[0].name, None);
    }
}
