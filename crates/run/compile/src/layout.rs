//! Queries the compiler for the layout of structures that kernels take by value.
//!
//! For each field that a contract names, a function template is appended to the source. Its return
//! type for a structure encodes the field's offset, size and type. The symbol of a kernel template
//! that is instantiated with this type contains the encoding. For a structure without the field,
//! the return type is `void`.

use std::collections::HashMap;

use super::artifact::{Field, KernelInfo, StructLayout};
use super::ctype::CType;
use super::demangle::{Type, demangle};

/// Maximum number of structures in one compilation.
const MAX_STRUCTURES: usize = 16;

/// Maximum number of fields in the layouts of all parameters. A source may have thousands of
/// kernels.
const MAX_PLACED: usize = 1 << 16;

const TEMPLATE: &str = "__warpgauge_layout";
const FIELD: &str = "__warpgauge_field";
const PLAIN: &str = "__warpgauge_plain";

/// Form in which the offset of a field is written as a constant.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Offset {
    /// The form for NVRTC. Before version 13 NVRTC lacks `__builtin_offsetof`, and later versions
    /// warn about it.
    AddressOfNull,
    /// The form for nvcc, whose host compiler accepts no other.
    Builtin,
}

impl Offset {
    fn of(self, path: &str) -> String {
        match self {
            Self::AddressOfNull => format!("(int)__INTADDR__(&((T*)0)->{path})"),
            Self::Builtin => format!("(int)__builtin_offsetof(T, {path})"),
        }
    }
}

/// Queries to the compiler for the fields of structures.
pub(crate) struct LayoutQueries<'a> {
    /// Paths of the queried fields, such as `inner.scale`.
    paths: &'a [String],
    /// C++ names of structures.
    structures: Vec<String>,
}

impl<'a> LayoutQueries<'a> {
    /// Returns the queries for the structures in the parameters of `kernels`, or `None` if there
    /// are no structures.
    pub(crate) fn new(paths: &'a [String], kernels: &[KernelInfo]) -> Option<Self> {
        let mut structures: Vec<String> = Vec::new();
        for param in kernels.iter().flat_map(|kernel| kernel.params.iter().flatten()) {
            let CType::Aggregate(name) = &param.ctype else { continue };
            let name = in_source(name);
            if structures.len() < MAX_STRUCTURES && !structures.contains(&name) {
                structures.push(name);
            }
        }
        (!paths.is_empty() && !structures.is_empty()).then_some(Self { paths, structures })
    }

    /// Returns the queries as text to append to a source.
    pub(crate) fn suffix(&self, offset: Offset) -> String {
        let mut text = format!(
            "\n#line 1 \"warpgauge/layout.cuh\"\n\
             template <class T, bool = __is_enum(T)> struct {PLAIN} {{ typedef T type; }};\n\
             template <class T> struct {PLAIN}<T, true> {{ typedef __underlying_type(T) type; }};\n\
             template <class T> struct {PLAIN}<T&, false> : {PLAIN}<T> {{}};\n\
             template <int I, int Path, class Whole, class F> __global__ void {TEMPLATE}() {{}}\n"
        );
        for (index, path) in self.paths.iter().enumerate() {
            let at = offset.of(path);
            text.push_str(&format!(
                "template <class T> __device__ auto {FIELD}_{index}(int) -> void (*)(char (*)[{at} + 1], \
                 char (*)[sizeof(((T*)0)->{path})], typename {PLAIN}<decltype(((T*)0)->{path})>::type*);\n\
                 template <class T> __device__ void {FIELD}_{index}(...);\n"
            ));
        }
        text
    }

    /// Returns the names of the template instances whose symbols contain the answers. There is one
    /// for each structure and field, because names of more than 1024 bytes are not read.
    pub(crate) fn instances(&self) -> Vec<String> {
        let of_structure = |(index, name): (usize, &String)| {
            let align = format!("void (*)(char (*)[alignof({name})])");
            let instance = |path| {
                format!("{TEMPLATE}<{index}, {path}, {align}, decltype({FIELD}_{path}<{name}>(0))>")
            };
            (0..self.paths.len()).map(instance).collect::<Vec<_>>()
        };
        self.structures.iter().enumerate().flat_map(of_structure).collect()
    }

    /// Stores the layouts in the parameters of `kernels`. `symbols` must include the symbols of the
    /// instances.
    pub(crate) fn answer<'s>(
        &self,
        symbols: impl Iterator<Item = &'s str>,
        kernels: &mut [KernelInfo],
    ) {
        let mut layouts: HashMap<&str, StructLayout> = HashMap::new();
        for (index, align, field) in symbols.filter_map(|symbol| self.field(symbol)) {
            let layout = layouts.entry(&self.structures[index]);
            let whole = layout.or_insert_with(|| StructLayout { align, fields: Vec::new() });
            whole.fields.push(field);
        }
        let mut placed = 0;
        for param in kernels.iter_mut().flat_map(|kernel| kernel.params.iter_mut().flatten()) {
            if let CType::Aggregate(name) = &param.ctype
                && let Some(layout) = layouts.get(in_source(name).as_str())
                && placed + layout.fields.len() <= MAX_PLACED
            {
                placed += layout.fields.len();
                param.layout = Some(layout.clone());
            }
        }
    }

    /// Decodes a symbol. Returns a structure's index, its alignment and one of its fields.
    fn field(&self, symbol: &str) -> Option<(usize, u32, Field)> {
        let function = demangle(symbol).filter(|f| f.name.starts_with(TEMPLATE))?;
        let [Type::Value(index), Type::Value(path), whole, answer] =
            function.template_args.as_slice()
        else {
            return None;
        };
        let index = index.parse().ok().filter(|index| *index < self.structures.len())?;
        let align = extent(whole.function_params()?.first()?)?;
        let [at, bytes, Type::Pointer(field)] = answer.function_params()? else { return None };
        let field = Field {
            path: self.paths.get(path.parse::<usize>().ok()?)?.clone(),
            offset: extent(at)?.checked_sub(1)?,
            bytes: extent(bytes)?,
            ctype: field.ctype(),
            is_array: matches!(**field, Type::Array(..)),
        };
        Some((index, align, field))
    }
}

/// Returns the extent of the array that a type points to.
fn extent(pointer: &Type) -> Option<u32> {
    let Type::Pointer(to) = pointer else { return None };
    let Type::Array(_, extent) = &**to else { return None };
    extent.parse().ok()
}

/// Returns a type's name in the form in which the source can use it.
fn in_source(name: &str) -> String {
    name.replace("(anonymous namespace)::", "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::artifact::Param;

    fn kernel(ctype: CType) -> KernelInfo {
        let param = Param { name: None, ctype, bytes: 16, offset: 0, layout: None };
        KernelInfo {
            symbol: "k".to_owned(),
            name: "k".to_owned(),
            params: Some(vec![param]),
            resources: None,
        }
    }

    #[test]
    fn the_layout_is_read_off_the_symbols() {
        let paths = ["n", "lacks", "x", "w"].map(str::to_owned);
        let mut kernels = [kernel(CType::Aggregate("(anonymous namespace)::P".to_owned()))];
        let queries = LayoutQueries::new(&paths, &kernels).unwrap();
        let instances = queries.instances();
        let first = "__warpgauge_layout<0, 0, void (*)(char (*)[alignof(P)]), decltype(__warpgauge_field_0<P>(0))>";
        assert_eq!((instances.len(), instances[0].as_str()), (4, first));
        let symbols = [
            "_Z18__warpgauge_layoutILi0ELi0EPFvPA8_cEPFvPA5_cPA4_cPiEEvv",
            "_Z18__warpgauge_layoutILi0ELi1EPFvPA8_cEvEvv",
            "_Z18__warpgauge_layoutILi0ELi2EPFvPA8_cEPFvPA9_cS1_PPKfEEvv",
            "_Z18__warpgauge_layoutILi0ELi3EPFvPA8_cEPFvPA1_cS1_PA2_iEEvv",
            "_Z18__warpgauge_layoutILi9ELi0EPFvPA8_cEPFvPA5_cPA4_cPiEEvv",
            "_Z18__warpgauge_layoutILi0ELi9EPFvPA8_cEPFvPA5_cPA4_cPiEEvv",
            "_Z1kPf",
        ];
        queries.answer(symbols.into_iter(), &mut kernels);
        let layout = kernels[0].params.as_ref().unwrap()[0].layout.clone().unwrap();
        assert_eq!(layout.align, 8);
        let shown = layout.fields.iter().map(|f| (f.path.as_str(), f.offset, f.bytes, f.is_array));
        assert_eq!(
            shown.collect::<Vec<_>>(),
            [("n", 4, 4, false), ("x", 8, 8, false), ("w", 0, 8, true)]
        );
        assert_eq!(layout.fields[0].ctype, CType::I32);
        let pointer = CType::Pointer { pointee: Some(Box::new(CType::F32)), is_const: true };
        assert_eq!(layout.fields[1].ctype, pointer);
    }

    #[test]
    fn without_structures_or_fields_nothing_is_asked() {
        let paths = ["n".to_owned()];
        assert!(LayoutQueries::new(&paths, &[kernel(CType::F32)]).is_none());
        assert!(LayoutQueries::new(&[], &[kernel(CType::Aggregate("P".to_owned()))]).is_none());
    }
}
