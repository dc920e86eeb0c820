//! Selects the kernel of an image that a request names.

use super::artifact::{CompiledModule, KernelInfo};
use super::demangle::with_parameters;
use super::error::CompileError;
use warpgauge_code::source::SourceKernel;

use warpgauge_model::{FailureCode, nearest};

/// Maximum number of kernels that an error lists.
const MAX_LISTED: usize = 50;

/// Specifies which kernel of an image a request needs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub name: Option<&'a str>,
    /// Whether, without a name, the first of several kernels is accepted.
    pub any: bool,
}

impl<'a> Wanted<'a> {
    /// Returns the index of this kernel among the kernels of an image.
    pub(crate) fn of(
        self,
        kernels: &[KernelInfo],
        source: &[SourceKernel],
    ) -> Result<usize, CompileError> {
        match self.name {
            None if self.any && !kernels.is_empty() => Ok(0),
            name => select(kernels, name, source),
        }
    }

    /// Returns the name for the cache key. If any kernel is accepted, the image has another content
    /// address, because an evaluation must not run the first of several kernels. No request can
    /// name this key, because names with control characters are rejected.
    pub(crate) fn key(self) -> Option<&'a str> {
        if self.any { self.name.or(Some("\0")) } else { self.name }
    }
}

impl CompiledModule {
    /// Returns the kernel that a request names.
    ///
    /// # Errors
    /// Fails if no kernel, or more than one, has this name.
    pub fn kernel_named(&self, name: &str) -> Result<&KernelInfo, CompileError> {
        select(&self.kernels, Some(name), &[]).map(|index| &self.kernels[index])
    }
}

/// Returns the index of the kernel that `wanted` names, or of the only kernel.
///
/// A name may be a symbol, or a C++ name with or without its namespaces and template arguments, or
/// with its parameters.
fn select(
    kernels: &[KernelInfo],
    wanted: Option<&str>,
    source: &[SourceKernel],
) -> Result<usize, CompileError> {
    if kernels.is_empty() {
        return Err(no_kernel(source));
    }
    let Some(wanted) = wanted else {
        if kernels.len() == 1 {
            return Ok(0);
        }
        let message = format!(
            "the code has {} kernels; name one in metadata.kernel_name: {}",
            kernels.len(),
            listed(kernels)
        );
        return Err(CompileError::rejected(FailureCode::AmbiguousKernel, message));
    };
    let wanted = squeezed(wanted);
    let rules: [&dyn Fn(&KernelInfo) -> bool; 5] = [
        &|k| k.symbol == wanted,
        &|k| squeezed(&k.name) == wanted,
        // The name includes parameters, which distinguish overloads.
        &|k| {
            let whole = with_parameters(&k.symbol).filter(|_| wanted.ends_with(')'));
            whole.is_some_and(|whole| squeezed(&whole) == const_behind(&wanted))
        },
        &|k| unqualified(&squeezed(&k.name)) == wanted,
        &|k| {
            let name = squeezed(&k.name);
            let plain = without_arguments(&name);
            plain == wanted || unqualified(plain) == wanted
        },
    ];
    for rule in rules {
        let matching: Vec<usize> = (0..kernels.len()).filter(|&at| rule(&kernels[at])).collect();
        match matching.as_slice() {
            [] => {}
            [only] => return Ok(*only),
            several => {
                let several: Vec<KernelInfo> =
                    several.iter().map(|&at| kernels[at].clone()).collect();
                let message = format!(
                    "{wanted:?} names {} kernels; give the full name or the symbol: {}",
                    several.len(),
                    listed(&several)
                );
                return Err(CompileError::rejected(FailureCode::AmbiguousKernel, message));
            }
        }
    }
    Err(unknown(kernels, &wanted, source))
}

fn unknown(kernels: &[KernelInfo], wanted: &str, source: &[SourceKernel]) -> CompileError {
    let near = nearest(wanted, kernels.iter().map(|kernel| kernel.name.as_str()));
    let near = near.map(|name| format!(" (did you mean `{name}`?)")).unwrap_or_default();
    let mut message = format!("no kernel is called {wanted:?}{near}; found: {}", listed(kernels));
    if source.iter().any(|k| k.template && (k.base_name() == wanted || k.name == wanted)) {
        message.push_str(&format!(
            "; {wanted} is a template: name an instance, e.g. {wanted}<float>, in \
             metadata.kernel_name or metadata.name_expressions"
        ));
    }
    CompileError::rejected(FailureCode::UnknownKernel, message)
}

fn no_kernel(source: &[SourceKernel]) -> CompileError {
    let templates: Vec<&str> =
        source.iter().filter(|k| k.template).map(|k| k.name.as_str()).take(MAX_LISTED).collect();
    let message = if templates.is_empty() {
        "the code compiles but has no kernel: declare one with __global__ void name(…)".to_owned()
    } else {
        format!(
            "the code compiles but has only kernel templates ({}): name an instance, e.g. \
             {}<float>, in metadata.kernel_name or metadata.name_expressions",
            templates.join(", "),
            templates[0]
        )
    };
    CompileError::rejected(FailureCode::NoKernel, message)
}

/// Lists names of kernels. If two names are equal, the symbols are included.
fn listed(kernels: &[KernelInfo]) -> String {
    let same = |name: &str| kernels.iter().filter(|k| k.name == name).count() > 1;
    let shown = |k: &KernelInfo| {
        if same(&k.name) {
            let whole = with_parameters(&k.symbol).unwrap_or_else(|| k.name.clone());
            format!("{whole} ({})", k.symbol)
        } else {
            k.name.clone()
        }
    };
    let mut names: Vec<String> = kernels.iter().take(MAX_LISTED).map(shown).collect();
    if kernels.len() > MAX_LISTED {
        names.push(format!("and {} more", kernels.len() - MAX_LISTED));
    }
    names.join(", ")
}

/// Moves `const` of parameters after their types, as in demangled names: `f(const float*)` →
/// `f(float const*)`.
fn const_behind(name: &str) -> String {
    let Some((before, list)) = name.split_once('(') else { return name.to_owned() };
    let mut out = format!("{before}(");
    let mut depth = 0;
    let ends = |c: char| {
        depth += i32::from(c == '<') - i32::from(c == '>');
        depth == 0 && matches!(c, ',' | ')')
    };
    for part in list.split_inclusive(ends) {
        match part.strip_prefix("const ") {
            Some(kind) => {
                let end = kind.find(['*', '&', ',', ')']).unwrap_or(kind.len());
                out.push_str(&format!("{} const{}", &kind[..end], &kind[end..]));
            }
            None => out.push_str(part),
        }
    }
    squeezed(&out)
}

/// Removes white space except one space between two words (`unsigned int`), and a leading `::`.
pub(crate) fn squeezed(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for word in name.split_whitespace() {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        if out.ends_with(is_word) && word.starts_with(is_word) {
            out.push(' ');
        }
        out.push_str(word);
    }
    out.strip_prefix("::").map(str::to_owned).unwrap_or(out)
}

/// Returns a name without its namespaces: `ns::k<a::b>` → `k<a::b>`.
fn unqualified(name: &str) -> &str {
    let end = name.find('<').unwrap_or(name.len());
    name[..end].rfind("::").map_or(name, |at| &name[at + 2..])
}

fn without_arguments(name: &str) -> &str {
    name.split('<').next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpgauge_code::source::find_kernels;

    fn kernels(names: &[(&str, &str)]) -> Vec<KernelInfo> {
        let kernel = |&(symbol, name): &(&str, &str)| KernelInfo {
            symbol: symbol.into(),
            name: name.into(),
            params: None,
            resources: None,
        };
        names.iter().map(kernel).collect()
    }

    #[track_caller]
    fn refused(result: Result<usize, CompileError>, code: &str, words: &[&str]) {
        let Err(CompileError::Rejected(failure)) = result else { panic!("{result:?}") };
        assert_eq!(failure.code.as_str(), code, "{}", failure.message);
        for word in words {
            assert!(failure.message.contains(word), "{word:?} not in {}", failure.message);
        }
    }

    #[test]
    fn a_kernel_by_any_of_its_names() {
        let all = kernels(&[
            ("_ZN2ns1aEPf", "ns::a"),
            ("_Z5scaleIfEvPT_", "scale<float>"),
            ("_Z5scaleIjEvPT_", "scale<unsigned int>"),
            ("c", "c"),
        ]);
        for (wanted, at) in [
            ("_ZN2ns1aEPf", 0),
            ("ns::a", 0),
            ("::ns::a", 0),
            ("a", 0),
            ("scale<float>", 1),
            ("scale< float >", 1),
            ("scale<unsigned  int>", 2),
            ("c", 3),
        ] {
            assert_eq!(select(&all, Some(wanted), &[]).unwrap(), at, "{wanted}");
        }
        refused(select(&all, Some("scale"), &[]), "ambiguous_kernel", &["scale<float>", "scale<u"]);
        refused(
            select(&all, Some("b"), &[]),
            "unknown_kernel",
            &["\"b\"", "ns::a", "scale<float>"],
        );
        refused(select(&all, None, &[]), "ambiguous_kernel", &["ns::a", "c"]);
    }

    #[test]
    fn the_only_kernel_needs_no_name_and_the_only_instance_no_arguments() {
        assert_eq!(select(&kernels(&[("k", "k")]), None, &[]).unwrap(), 0);
        let two = kernels(&[("k", "k"), ("_Z1tIfEvv", "t<float>")]);
        assert_eq!(select(&two, Some("t"), &[]).unwrap(), 1);
    }

    #[test]
    fn overloads_are_listed_with_their_symbols() {
        let all = kernels(&[("_Z1ki", "k"), ("_Z1kf", "k")]);
        refused(select(&all, Some("k"), &[]), "ambiguous_kernel", &["k(int) (_Z1ki)", "_Z1kf"]);
        assert_eq!(select(&all, Some("_Z1kf"), &[]).unwrap(), 1);
    }

    #[test]
    fn parameters_choose_among_overloads() {
        let all = kernels(&[
            ("_Z1hPKfi", "h"),
            ("_Z1hPKjf", "h"),
            ("_ZN2ns1hEPf", "ns::h"),
            ("_Z1gIfLi3EEvPT_", "g<float, 3>"),
        ]);
        for (wanted, at) in [
            ("h(const float*, int)", 0),
            ("h(float const *,int)", 0),
            ("h(const unsigned int *, float)", 1),
            ("ns::h(float*)", 2),
            ("g<float, 3>(float*)", 3),
        ] {
            assert_eq!(select(&all, Some(wanted), &[]).unwrap(), at, "{wanted}");
        }
        for wanted in ["h(float*, int)", "h()", "h(", "h(const", "g(float*)"] {
            refused(select(&all, Some(wanted), &[]), "unknown_kernel", &["h(float const*, int)"]);
        }
    }

    #[test]
    fn templates_without_instances_are_explained() {
        let source = find_kernels("template <class T> __global__ void scale(T* x) {}");
        refused(select(&[], None, &source), "no_kernel", &["scale<float>"]);
        refused(select(&[], None, &[]), "no_kernel", &["__global__"]);
        let other = kernels(&[("k", "k")]);
        refused(select(&other, Some("scale"), &source), "unknown_kernel", &["template"]);
    }
}
