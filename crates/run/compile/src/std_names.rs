//! Names in namespace std that the prelude provides from libcu++, NVIDIA's standard library for the
//! device.
//!
//! Only the names that a source uses are provided, because each header costs compilation time.

use std::collections::BTreeSet;

use warpgauge_code::source::{Token, TokenKind};

/// Headers of libcu++ (`cuda/std/…`), each with the names that it provides.
const HEADERS: [(&str, &[&str]); 14] = [
    (
        "algorithm",
        &[
            "binary_search",
            "copy",
            "copy_n",
            "equal",
            "fill",
            "fill_n",
            "find",
            "find_if",
            "for_each",
            "iter_swap",
            "lower_bound",
            "max_element",
            "min_element",
            "minmax",
            "reverse",
            "transform",
            "upper_bound",
        ],
    ),
    ("array", &["array", "to_array"]),
    (
        "atomic",
        &[
            "atomic",
            "atomic_flag",
            "atomic_thread_fence",
            "memory_order",
            "memory_order_acq_rel",
            "memory_order_acquire",
            "memory_order_relaxed",
            "memory_order_release",
            "memory_order_seq_cst",
        ],
    ),
    (
        "bit",
        &[
            "bit_cast",
            "bit_ceil",
            "bit_floor",
            "bit_width",
            "countl_one",
            "countl_zero",
            "countr_one",
            "countr_zero",
            "has_single_bit",
            "popcount",
            "rotl",
            "rotr",
        ],
    ),
    ("complex", &["arg", "complex", "conj", "imag", "norm", "polar", "proj", "real"]),
    ("concepts", &["convertible_to", "floating_point", "integral", "same_as", "signed_integral"]),
    ("cstddef", &["byte", "max_align_t"]),
    (
        "functional",
        &[
            "bit_and",
            "bit_not",
            "bit_or",
            "bit_xor",
            "divides",
            "equal_to",
            "greater",
            "greater_equal",
            "identity",
            "invoke",
            "less",
            "less_equal",
            "logical_and",
            "logical_not",
            "logical_or",
            "minus",
            "modulus",
            "multiplies",
            "negate",
            "not_equal_to",
            "plus",
        ],
    ),
    ("numeric", &["accumulate", "gcd", "inner_product", "iota", "lcm", "midpoint", "reduce"]),
    ("optional", &["make_optional", "nullopt", "nullopt_t", "optional"]),
    ("span", &["dynamic_extent", "span"]),
    (
        "tuple",
        &[
            "apply",
            "forward_as_tuple",
            "get",
            "ignore",
            "make_from_tuple",
            "make_tuple",
            "tie",
            "tuple",
            "tuple_cat",
            "tuple_element",
            "tuple_element_t",
            "tuple_size",
            "tuple_size_v",
        ],
    ),
    (
        "type_traits",
        &[
            "add_const",
            "add_const_t",
            "add_cv",
            "add_cv_t",
            "add_lvalue_reference",
            "add_lvalue_reference_t",
            "add_pointer",
            "add_pointer_t",
            "add_rvalue_reference",
            "add_rvalue_reference_t",
            "aligned_storage",
            "aligned_storage_t",
            "alignment_of",
            "common_type",
            "common_type_t",
            "conjunction",
            "conjunction_v",
            "decay",
            "decay_t",
            "disjunction",
            "disjunction_v",
            "extent",
            "extent_v",
            "invoke_result",
            "invoke_result_t",
            "is_array",
            "is_array_v",
            "is_class",
            "is_class_v",
            "is_compound",
            "is_const",
            "is_const_v",
            "is_constructible",
            "is_constructible_v",
            "is_convertible",
            "is_convertible_v",
            "is_copy_constructible",
            "is_default_constructible",
            "is_empty",
            "is_empty_v",
            "is_function",
            "is_function_v",
            "is_fundamental",
            "is_fundamental_v",
            "is_invocable",
            "is_invocable_v",
            "is_lvalue_reference",
            "is_lvalue_reference_v",
            "is_null_pointer",
            "is_object",
            "is_reference",
            "is_reference_v",
            "is_rvalue_reference",
            "is_rvalue_reference_v",
            "is_scalar",
            "is_scalar_v",
            "is_standard_layout",
            "is_trivial",
            "is_trivially_destructible",
            "is_union",
            "is_void",
            "is_void_v",
            "is_volatile",
            "make_signed",
            "make_signed_t",
            "make_unsigned",
            "make_unsigned_t",
            "negation",
            "negation_v",
            "rank",
            "remove_all_extents",
            "remove_all_extents_t",
            "remove_cvref",
            "remove_cvref_t",
            "remove_extent",
            "remove_extent_t",
            "type_identity",
            "type_identity_t",
            "underlying_type",
            "underlying_type_t",
        ],
    ),
    (
        "utility",
        &[
            "as_const",
            "exchange",
            "in_place",
            "in_place_t",
            "index_sequence",
            "index_sequence_for",
            "integer_sequence",
            "make_index_sequence",
            "make_integer_sequence",
            "make_pair",
            "pair",
            "piecewise_construct",
        ],
    ),
];

/// Names that libcu++ itself declares in namespace std, because structured bindings need them
/// there.
const DECLARED: [&str; 2] = ["tuple_element", "tuple_size"];

/// Names in namespace std that a source uses and libcu++ provides.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct StdNames(BTreeSet<(&'static str, &'static str)>);

impl StdNames {
    /// Returns the names that follow `std::`. If the source has `using namespace std`, also returns
    /// the names that begin a list of template arguments. `own` returns whether the source declares
    /// a name.
    pub(crate) fn of(code: &[Token<'_>], own: &dyn Fn(&str) -> bool) -> Self {
        let text = |at: usize| code.get(at).map_or("", |token| token.text);
        let is_open = (2..code.len())
            .any(|at| text(at) == "std" && text(at - 1) == "namespace" && text(at - 2) == "using");
        let mut names = BTreeSet::new();
        for (at, token) in code.iter().enumerate().filter(|(_, one)| one.kind == TokenKind::Word) {
            let before = |back: usize| at.checked_sub(back).map_or("", text);
            let is_qualified = before(1) == "::" && before(2) == "std" && before(4) != "cuda";
            let is_bare = is_open
                && text(at + 1) == "<"
                && !matches!(before(1), "::" | "." | ">")
                && !own(token.text);
            if is_qualified || is_bare {
                names.extend(known(token.text));
            }
        }
        Self(names)
    }

    /// Returns all names that libcu++ provides.
    #[cfg(test)]
    pub(crate) fn all() -> Self {
        let of_header = |(header, names): &(&'static str, &'static [&'static str])| {
            let header = *header;
            names.iter().map(move |name| (header, *name))
        };
        Self(HEADERS.iter().flat_map(of_header).collect())
    }

    /// Returns the names without their headers.
    #[cfg(test)]
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.0.iter().map(|(_, name)| *name)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the lines that declare the names in namespace std.
    pub(crate) fn declarations(&self) -> String {
        let headers: BTreeSet<&str> = self.0.iter().map(|(header, _)| *header).collect();
        let mut text = String::new();
        for header in headers {
            text.push_str(&format!("#include <cuda/std/{header}>\n"));
        }
        text.push_str("namespace std {\n");
        for (_, name) in self.0.iter().filter(|(_, name)| !DECLARED.contains(name)) {
            text.push_str(&format!("using ::cuda::std::{name};\n"));
        }
        text.push_str("}\n");
        text
    }
}

/// Returns the header that provides a name, and the name. Returns `None` if libcu++ does not
/// provide the name or the prelude does.
fn known(name: &str) -> Option<(&'static str, &'static str)> {
    HEADERS.iter().find_map(|(header, names)| {
        let at = names.binary_search(&name).ok()?;
        Some((*header, names[at]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpgauge_code::source::tokenize;

    fn names(source: &str) -> Vec<&'static str> {
        let names = StdNames::of(&tokenize(source), &|name| name == "plus");
        names.names().collect()
    }

    #[test]
    fn only_names_of_namespace_std_are_taken() {
        assert_eq!(names("std::pair<int, int> p; ::std::plus<int>()(1, 2);"), ["plus", "pair"]);
        assert_eq!(
            names("pair<int, int> p; cuda::std::array<int, 3> a; x.get(); std::max(1, 2);"),
            [""; 0]
        );
        let open =
            "using namespace std; pair<int, int> p; plus<int> q; thrust::less<int> l; a.get<0>();";
        assert_eq!(names(open), ["pair"]);
    }

    #[test]
    fn names_are_sorted_and_belong_to_one_header() {
        let all: Vec<&str> = HEADERS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
        for (header, names) in HEADERS {
            assert!(names.is_sorted(), "{header}");
        }
        assert!(HEADERS.iter().map(|(header, _)| header).is_sorted());
    }

    #[test]
    fn each_header_is_included_once() {
        let names =
            StdNames::of(&tokenize("std::pair<int, int> p = std::make_pair(1, 2);"), &|_| false);
        let text = names.declarations();
        assert_eq!(text.matches("#include").count(), 1, "{text}");
        assert!(text.contains("using ::cuda::std::make_pair;"), "{text}");
    }
}
