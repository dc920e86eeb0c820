//! Replacements of PyTorch's headers that contain only what a source uses.
//!
//! Compiling `torch/extension.h` and `torch/types.h` takes most of the time of a small extension.
//! For a source that does not need all of them, headers with these names come first in the search
//! path. They include PyTorch's headers of the operators that the source mentions, and define
//! tensor factories as PyTorch does. A source that does not compile with them is compiled with the
//! complete headers (the ways of a [`BuildStep`](crate::protocol::BuildStep)). Lean headers may
//! therefore lack declarations, but their declarations must have the same meaning.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Headers for a source, by their paths.
pub(super) type Headers = Vec<(&'static str, String)>;

/// PyTorch's header that defines the `torch::` factories. The lean headers replace it.
const FACTORIES: &str = "torch/csrc/autograd/generated/variable_factories.h";

/// Namespaces of PyTorch with separate headers. A source that uses one needs the complete headers.
const WHOLE: [&str; 14] = [
    "nn",
    "autograd",
    "jit",
    "optim",
    "data",
    "serialize",
    "linalg",
    "fft",
    "special",
    "indexing",
    "python",
    "executor",
    "dynamo",
    "profiler",
];

/// Names by which sources include the complete headers.
const SHADOWED: [&str; 5] =
    ["torch/extension.h", "torch/types.h", "torch/torch.h", "torch/all.h", "ATen/ATen.h"];

/// The compiler for which headers are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum For {
    Host,
    Cuda,
}

/// Returns lean headers for a source, given PyTorch's headers in `include`. Returns `None` if the
/// source needs the complete headers.
pub(super) fn headers(source: &str, include: &Path, reader: For) -> Option<Headers> {
    let names = mentioned(source);
    if names.iter().any(|name| WHOLE.contains(&name.as_str())) {
        return None;
    }
    let spread =
        ["using namespace torch", "using namespace at", "using torch::", "namespace torch"];
    let spread = spread.iter().any(|words| source.contains(words));
    let theirs = fs::read_to_string(include.join(FACTORIES)).ok()?;
    let theirs = |name: &str| theirs.contains(&format!("inline at::Tensor {name}("));
    let is_own = |name: &str| OWN.iter().any(|own| own.name == name);
    let whole_factories = spread
        || names.iter().any(|name| theirs(name) && (!is_own(name) || !has_own(include, name)));
    let mut types =
        String::from("#pragma once\n#include <ATen/core/Tensor.h>\n#include <optional>\n");
    let mut add = |header: &str| types.push_str(&format!("#include <{header}>\n"));
    if source.contains("AT_DISPATCH") {
        add("ATen/Dispatch.h");
    }
    // Operators between tensors: function bodies may use some, but prototypes cannot.
    if reader == For::Host && source.contains("return") {
        add("ATen/TensorOperators.h");
    }
    if whole_factories {
        add(FACTORIES);
    }
    let qualified_at = at_names(source);
    for name in &names {
        let header = format!("ATen/ops/{name}.h");
        let made_here = !whole_factories && is_own(name) && !qualified_at.contains(name);
        if !made_here && include.join(&header).is_file() {
            add(&header);
        }
    }
    let own = OWN.iter().filter(|own| !whole_factories && names.contains(own.name));
    let own: Vec<&Factory> = own.collect();
    for factory in &own {
        add(&format!("ATen/ops/{}_ops.h", factory.name));
    }
    types.push_str(NAMES);
    for factory in own {
        types.push_str("namespace torch {\n");
        types.push_str(factory.text);
        types.push_str("}\n");
    }
    let mut whole = String::from("#pragma once\n#include <torch/types.h>\n");
    if ["py::", "pybind11", "PYBIND11"].iter().any(|words| source.contains(words)) {
        whole
            .push_str("#include <torch/csrc/Exceptions.h>\n#include <torch/csrc/utils/pybind.h>\n");
    }
    let mut headers: Headers = Vec::new();
    for name in SHADOWED {
        let text = if name == "torch/types.h" { &types } else { &whole };
        headers.push((name, text.clone()));
    }
    if reader == For::Cuda && !source.contains("intrin.h") && !source.contains("_mm") {
        // Replaces the vector intrinsics of the host, which PyTorch's types include and kernels do
        // not use.
        headers
            .extend(["immintrin.h", "x86intrin.h"].map(|name| (name, "#pragma once\n".to_owned())));
    }
    Some(headers)
}

/// Returns whether PyTorch has a separate header for the operator that a lean factory calls.
fn has_own(include: &Path, name: &str) -> bool {
    include.join(format!("ATen/ops/{name}_ops.h")).is_file()
}

/// Returns the names that a source qualifies with `torch` or `at`.
fn mentioned(source: &str) -> BTreeSet<String> {
    let mut names = qualified(source, "torch");
    names.extend(at_names(source));
    names
}

fn at_names(source: &str) -> BTreeSet<String> {
    qualified(source, "at")
}

fn qualified(source: &str, space: &str) -> BTreeSet<String> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut names = BTreeSet::new();
    for (at, _) in source.match_indices(&format!("{space}::")) {
        if source[..at].chars().next_back().is_some_and(is_word) {
            continue;
        }
        let rest = &source[at + space.len() + 2..];
        let name = rest.split(|c| !is_word(c)).next().unwrap_or_default();
        if !name.is_empty() {
            names.insert(name.to_owned());
        }
    }
    names
}

/// Declarations of `torch/types.h` other than factories.
const NAMES: &str = "namespace torch {
using namespace at;
using std::nullopt;
using std::optional;
using Dtype = at::ScalarType;
constexpr auto kUInt8 = at::kByte;
constexpr auto kInt8 = at::kChar;
constexpr auto kInt16 = at::kShort;
constexpr auto kInt32 = at::kInt;
constexpr auto kInt64 = at::kLong;
constexpr auto kFloat16 = at::kHalf;
constexpr auto kFloat32 = at::kFloat;
constexpr auto kFloat64 = at::kDouble;
constexpr auto kU8 = kUInt8;
constexpr auto kI8 = kInt8;
constexpr auto kI16 = kInt16;
constexpr auto kI32 = kInt32;
constexpr auto kI64 = kInt64;
constexpr auto kF16 = kFloat16;
constexpr auto kF32 = kFloat32;
constexpr auto kF64 = kFloat64;
}
";

/// A function that creates a tensor, as lean headers define it.
struct Factory {
    name: &'static str,
    text: &'static str,
}

/// The most common factories. Each calls the same operator as PyTorch's factory, and needs only the
/// header of that operator.
const OWN: [Factory; 9] = [
    Factory {
        name: "empty",
        text: "inline at::Tensor empty(at::IntArrayRef size, at::TensorOptions options = {}, std::optional<at::MemoryFormat> memory_format = std::nullopt) {
  auto made = at::_ops::empty_memory_format::call(c10::fromIntArrayRefSlow(size), c10::optTypeMetaToScalarType(options.dtype_opt()), options.layout_opt(), options.device_opt(), options.pinned_memory_opt(), c10::impl::check_tensor_options_and_extract_memory_format(at::TensorOptions(options).requires_grad(std::nullopt), memory_format));
  return options.requires_grad() ? made.set_requires_grad(true) : made;
}
",
    },
    Factory {
        name: "empty_like",
        text: "inline at::Tensor empty_like(const at::Tensor& self, at::TensorOptions options = {}, std::optional<at::MemoryFormat> memory_format = std::nullopt) {
  auto made = at::_ops::empty_like::call(self, c10::optTypeMetaToScalarType(options.dtype_opt()), options.layout_opt(), options.device_opt(), options.pinned_memory_opt(), c10::impl::check_tensor_options_and_extract_memory_format(at::TensorOptions(options).requires_grad(std::nullopt), memory_format));
  return options.requires_grad() ? made.set_requires_grad(true) : made;
}
",
    },
    Factory {
        name: "empty_strided",
        text: "inline at::Tensor empty_strided(at::IntArrayRef size, at::IntArrayRef stride, at::TensorOptions options = {}) {
  auto made = at::_ops::empty_strided::call(c10::fromIntArrayRefSlow(size), c10::fromIntArrayRefSlow(stride), c10::optTypeMetaToScalarType(options.dtype_opt()), options.layout_opt(), options.device_opt(), options.pinned_memory_opt());
  return options.requires_grad() ? made.set_requires_grad(true) : made;
}
",
    },
    Factory { name: "zeros", text: SIZED_ZEROS },
    Factory { name: "ones", text: SIZED_ONES },
    Factory { name: "zeros_like", text: LIKE_ZEROS },
    Factory { name: "ones_like", text: LIKE_ONES },
    Factory {
        name: "full",
        text: "inline at::Tensor full(at::IntArrayRef size, const at::Scalar& fill_value, at::TensorOptions options = {}) {
  auto made = at::_ops::full::call(c10::fromIntArrayRefSlow(size), fill_value, c10::optTypeMetaToScalarType(options.dtype_opt()), options.layout_opt(), options.device_opt(), options.pinned_memory_opt());
  return options.requires_grad() ? made.set_requires_grad(true) : made;
}
",
    },
    Factory {
        name: "full_like",
        text: "inline at::Tensor full_like(const at::Tensor& self, const at::Scalar& fill_value, at::TensorOptions options = {}, std::optional<at::MemoryFormat> memory_format = std::nullopt) {
  auto made = at::_ops::full_like::call(self, fill_value, c10::optTypeMetaToScalarType(options.dtype_opt()), options.layout_opt(), options.device_opt(), options.pinned_memory_opt(), c10::impl::check_tensor_options_and_extract_memory_format(at::TensorOptions(options).requires_grad(std::nullopt), memory_format));
  return options.requires_grad() ? made.set_requires_grad(true) : made;
}
",
    },
];

macro_rules! sized {
    ($name:literal) => {
        concat!(
            "inline at::Tensor ",
            $name,
            "(at::IntArrayRef size, at::TensorOptions options = {}) {
  auto made = at::_ops::",
            $name,
            "::call(c10::fromIntArrayRefSlow(size), c10::optTypeMetaToScalarType(options.dtype_opt()), options.layout_opt(), options.device_opt(), options.pinned_memory_opt());
  return options.requires_grad() ? made.set_requires_grad(true) : made;
}
"
        )
    };
}

macro_rules! like {
    ($name:literal) => {
        concat!(
            "inline at::Tensor ",
            $name,
            "(const at::Tensor& self, at::TensorOptions options = {}, std::optional<at::MemoryFormat> memory_format = std::nullopt) {
  auto made = at::_ops::",
            $name,
            "::call(self, c10::optTypeMetaToScalarType(options.dtype_opt()), options.layout_opt(), options.device_opt(), options.pinned_memory_opt(), c10::impl::check_tensor_options_and_extract_memory_format(at::TensorOptions(options).requires_grad(std::nullopt), memory_format));
  return options.requires_grad() ? made.set_requires_grad(true) : made;
}
"
        )
    };
}

const SIZED_ZEROS: &str = sized!("zeros");
const SIZED_ONES: &str = sized!("ones");
const LIKE_ZEROS: &str = like!("zeros_like");
const LIKE_ONES: &str = like!("ones_like");

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a directory with the parts of PyTorch's headers that the code under test reads.
    fn include() -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = directory.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write(FACTORIES, "inline at::Tensor empty_like(…\ninline at::Tensor rand(…\n");
        for name in ["empty_like", "rand", "relu"] {
            write(&format!("ATen/ops/{name}.h"), "");
            write(&format!("ATen/ops/{name}_ops.h"), "");
        }
        directory
    }

    fn types(source: &str, reader: For) -> Option<String> {
        let headers = headers(source, include().path(), reader)?;
        headers.into_iter().find(|(name, _)| *name == "torch/types.h").map(|(_, text)| text)
    }

    #[test]
    fn a_source_gets_what_it_mentions() {
        let own = types("torch::empty_like(x); at::kFloat; y.sum()", For::Cuda).unwrap();
        assert!(
            own.contains("ATen/ops/empty_like_ops.h")
                && own.contains("inline at::Tensor empty_like(")
        );
        assert!(
            !own.contains("variable_factories")
                && !own.contains("Dispatch")
                && !own.contains("relu")
        );
        // Two factories with the same name would be ambiguous.
        let theirs = types("torch::empty_like(x); torch::rand({2});", For::Cuda).unwrap();
        assert!(theirs.contains("variable_factories.h") && !theirs.contains("inline at::Tensor"));
        let spread = types("using namespace torch; x = tensor({1.0});", For::Host).unwrap();
        assert!(spread.contains("variable_factories.h"));
        let operators = types("return torch::relu(a + b); AT_DISPATCH_ALL", For::Host).unwrap();
        for part in ["ATen/ops/relu.h", "ATen/TensorOperators.h", "ATen/Dispatch.h"] {
            assert!(operators.contains(part), "{part}");
        }
        // A function in the source's own namespace is not PyTorch's.
        assert!(!types("my_at::relu(x); that::relu", For::Cuda).unwrap().contains("relu"));
        assert_eq!(types("torch::nn::Linear layer;", For::Host), None);
    }

    #[test]
    fn bindings_come_where_they_are_made() {
        let whole = |source: &str, reader| {
            let found = headers(source, include().path(), reader).unwrap();
            let names: Vec<&str> = found.iter().map(|(name, _)| *name).collect();
            (found[0].1.contains("pybind.h"), names.contains(&"immintrin.h"))
        };
        assert_eq!(whole("PYBIND11_MODULE(x, m) {}", For::Host), (true, false));
        assert_eq!(whole("__global__ void k() {}", For::Cuda), (false, true));
        assert_eq!(whole("#include <immintrin.h>", For::Cuda), (false, false));
    }
}
