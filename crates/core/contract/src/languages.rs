//! Requirements that follow from the kernels of a request: languages that not every executor
//! supports.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{CompareRequest, EvaluateRequest, KernelCode, KernelType, SweepRequest};
use warpgauge_model::Library;

/// A request with kernels.
pub trait UsesLanguages {
    /// Returns the languages of its kernels beyond the common ones.
    fn languages(&self) -> BTreeSet<String>;
}

impl UsesLanguages for EvaluateRequest {
    fn languages(&self) -> BTreeSet<String> {
        let references = self.expected.values().filter_map(|expected| expected.kernel.as_deref());
        languages(std::iter::once(&self.kernel).chain(references))
    }
}

impl UsesLanguages for CompareRequest {
    fn languages(&self) -> BTreeSet<String> {
        let candidates = self.candidates.iter().map(|candidate| &candidate.kernel);
        languages(std::iter::once(&self.ref_kernel).chain(&self.custom_kernel).chain(candidates))
    }
}

impl UsesLanguages for SweepRequest {
    fn languages(&self) -> BTreeSet<String> {
        let expected = self.expected.as_ref().and_then(Value::as_object);
        let references = expected.into_iter().flat_map(|outputs| outputs.values());
        let references = references.filter_map(|expected| expected.get("kernel"));
        // An invalid kernel type is reported when the points are checked.
        let kinds = std::iter::once(&self.kernel).chain(references).filter_map(|kernel| {
            let library = kernel.pointer("/metadata/library").cloned();
            let library = library.and_then(|name| serde_json::from_value(name).ok());
            Some((serde_json::from_value(kernel.get("kernel_type")?.clone()).ok()?, library))
        });
        uncommon(kinds)
    }
}

fn languages<'a>(kernels: impl Iterator<Item = &'a KernelCode>) -> BTreeSet<String> {
    uncommon(kernels.map(|kernel| (kernel.kernel_type, kernel.library())))
}

/// Returns the names of kernel types and libraries that not every executor supports.
fn uncommon(kinds: impl Iterator<Item = (KernelType, Option<Library>)>) -> BTreeSet<String> {
    let name =
        |(kind, library): (KernelType, Option<Library>)| library.map(Library::name).or(kind.tool());
    kinds.filter_map(name).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_kernel_requires_its_language_wherever_it_stands() {
        let cuda = json!({"kernel_type": "cuda", "source_code": "c"});
        let triton = json!({"kernel_type": "triton", "source_code": "t"});
        let expecting = |kernel| json!({"y": {"kernel": kernel}});
        let cusparse = json!({"kernel_type": "library", "metadata": {"library": "cusparse"}});
        for (kernel, reference, wanted) in [
            (&cuda, &cuda, 0),
            (&triton, &cuda, 1),
            (&cuda, &triton, 1),
            (&triton, &triton, 1),
            (&cuda, &cusparse, 1),
            (&cusparse, &triton, 2),
        ] {
            let body = json!({"kernel": kernel, "expected": expecting(reference)});
            let evaluation: EvaluateRequest = serde_json::from_value(body.clone()).unwrap();
            assert_eq!(evaluation.languages().len(), wanted, "{body}");
            let mut sweep = body;
            sweep["axes"] = json!({"n": [1]});
            let sweep: SweepRequest = serde_json::from_value(sweep).unwrap();
            assert_eq!(sweep.languages(), evaluation.languages());
            let pair = json!({"ref_kernel": kernel, "custom_kernel": reference});
            let several = json!({
                "ref_kernel": kernel, "candidates": [{"name": "a", "kernel": reference}],
            });
            for body in [pair, several] {
                let comparison: CompareRequest = serde_json::from_value(body).unwrap();
                assert_eq!(comparison.languages(), evaluation.languages());
            }
        }
    }
}
