//! Finds the positions of kernels in source files, so that a report can annotate the files.

use std::path::{Component, Path, PathBuf};

use super::suite_file;
use crate::cli::contract_file::{ContractFile, read_source};
use warpgauge_code::source::find_kernels;
use warpgauge_gate::CaseSpec;
use warpgauge_gate::report::GateReport;

/// Adds to the report the file and the line of each case's kernel. The verdict does not depend on
/// them. If a file can no longer be read, its case gets no position.
pub(super) fn mark(report: &mut GateReport, suite: &Path, limit: u64) {
    let Ok(cases) = suite_file::read(suite).map(|suite| suite.cases) else { return };
    let home = suite.parent().unwrap_or(Path::new(""));
    for case in &mut report.cases {
        let Some(spec) = cases.iter().find(|spec| spec.name == case.name) else { continue };
        let Some((file, line)) = place(spec, home, limit) else { continue };
        case.file = Some(file.display().to_string());
        case.line = line;
    }
}

/// Returns the file that contains the kernel's code, and the line at which the kernel begins.
fn place(case: &CaseSpec, home: &Path, limit: u64) -> Option<(PathBuf, Option<u32>)> {
    let contract = home.join(&case.contract);
    let read = ContractFile::read(&contract, limit).ok()?;
    let source = case.source.as_ref().map(|source| home.join(source));
    let source = source.or_else(|| read.source_path().map(Path::to_owned));
    let name = read.fields.get("kernel").and_then(|kernel| kernel.pointer("/metadata/kernel_name"));
    let name = name.and_then(|name| name.as_str()).map(str::to_owned);
    let Some(source) = source else { return Some((tidied(&contract), None)) };
    // Machine code has no line numbers.
    let line = read_source(&source).ok().and_then(|text| first_line(&text, name.as_deref()));
    Some((tidied(&source), line))
}

/// Returns the path without `.`, and with `..` resolved textually, because CI systems compare
/// paths.
fn tidied(path: &Path) -> PathBuf {
    let mut tidy = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir
                if matches!(tidy.components().next_back(), Some(Component::Normal(_))) =>
            {
                tidy.pop();
            }
            other => tidy.push(other),
        }
    }
    tidy
}

/// Returns the first line, from 1, on which the name of the kernel precedes a parenthesis. If no
/// name is given, the only kernel in the CUDA C++ source is searched for.
fn first_line(text: &str, name: Option<&str>) -> Option<u32> {
    let name = match name {
        Some(name) => name.to_owned(),
        None => match find_kernels(text).as_slice() {
            [only] => only.name.clone(),
            _ => return None,
        },
    };
    let name = name.split('<').next()?.rsplit("::").next()?.trim();
    let line = text.lines().position(|line| declares(line, name))?;
    u32::try_from(line + 1).ok()
}

fn declares(line: &str, name: &str) -> bool {
    let is_comment = ["//", "#", "*", "/*"].iter().any(|sign| line.trim_start().starts_with(sign));
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    !name.is_empty()
        && !is_comment
        && line.match_indices(name).any(|(at, _)| {
            !line[..at].ends_with(is_word) && line[at + name.len()..].trim_start().starts_with('(')
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_is_found_by_its_name_before_a_parenthesis() {
        let cuda =
            "// scale(x)\nint scaled(int);\nextern \"C\" __global__ void scale (float* x) {}\n";
        assert_eq!(first_line(cuda, Some("scale")), Some(3));
        assert_eq!(first_line(cuda, None), Some(3));
        assert_eq!(first_line(cuda, Some("ns::scale<float>")), Some(3));
        assert_eq!(first_line(cuda, Some("other")), None);
        assert_eq!(first_line("@triton.jit\ndef add(x):\n", Some("add")), Some(2));
        assert_eq!(first_line(".visible .entry repeat(\n", Some("repeat")), Some(1));
    }

    #[test]
    fn paths_are_tidied_by_name() {
        for (path, tidy) in
            [("./a/../b/k.cu", "b/k.cu"), ("../k.cu", "../k.cu"), ("/a/./k.cu", "/a/k.cu")]
        {
            assert_eq!(tidied(Path::new(path)), Path::new(tidy));
        }
    }
}
