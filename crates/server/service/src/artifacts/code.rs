//! Returns the source of a kernel with the instructions that the compiler generated from it.

use std::path::Path;

use super::ArtifactKind;
use super::counted::counters;
use super::serve::{Artifacts, Lines, Made, Way, absent, chosen, way};
use crate::error::ServiceError;
use crate::records;
use crate::submission::Caller;
use warpgauge_code::listing::{CodeLanguage, LinkedInstruction, LinkedInstructions, linked};
use warpgauge_contract::{KernelCode, KernelType};
use warpgauge_executor::KeptKernel;
use warpgauge_job_views::{CodeListing, KernelCodeView, SourceText};
use warpgauge_model::Target;
use warpgauge_turns::Owner;

/// Name of this view in error messages.
const CODE: &str = "code";

impl Artifacts {
    /// Returns the code of the named kernel, or of the job's default kernel.
    pub(super) async fn linked_code(
        &self,
        job_id: &str,
        kernel: Option<&str>,
        caller: &Caller,
    ) -> Result<KernelCodeView, ServiceError> {
        let job = records::row(&self.store, job_id, caller).await?;
        let kernels = self.kernels_of(&job, CODE).await?;
        let chosen = chosen(&kernels, kernel).map_err(|reason| ServiceError::NoArtifact {
            what: format!("{CODE} of job {job_id}"),
            reason,
        })?;
        let files = sources(&chosen.code);
        let owner = Owner::named(&caller.owner);
        let mut listings = Vec::new();
        for (kind, language) in
            [(ArtifactKind::Ptx, CodeLanguage::Ptx), (ArtifactKind::Sass, CodeLanguage::Sass)]
        {
            let made = Made { kernel: chosen, kind, job_id, owner };
            listings.push(self.linked_listing(made, language, &files).await?);
        }
        let counters = Some(counters(chosen, &listings[0], &files));
        let (job_id, kernel) = (job_id.to_owned(), chosen.name.clone());
        Ok(KernelCodeView { job_id, kernel, files, listings, counters })
    }

    /// Returns the instructions in one language. If an artifact is missing, the result contains the
    /// reason.
    async fn linked_listing(
        &self,
        made: Made<'_>,
        language: CodeLanguage,
        files: &[SourceText],
    ) -> Result<CodeListing, ServiceError> {
        let reason = |reason: String| CodeListing {
            language,
            instructions: Vec::new(),
            truncated: false,
            reason: Some(reason),
        };
        let (kind, job_id) = (made.kind, made.job_id);
        let kernel_type = made.kernel.code.kernel_type;
        let found = match way(made.kernel, kind) {
            Ok(way) => {
                let way = with_lines(made.kernel, kind, way);
                self.made(way, made, Lines::Wanted).await
            }
            Err(why) => Err(absent(kind, job_id, why)),
        };
        let text = match found {
            Ok(text) => text,
            Err(ServiceError::NoArtifact { reason: why, .. }) => return Ok(reason(why)),
            Err(error) => return Err(error),
        };
        let mut found = linked(&String::from_utf8_lossy(&text), language);
        if kernel_type == KernelType::Ptx && language == CodeLanguage::Ptx {
            in_own_lines(&mut found, &text, files);
        }
        if found.instructions.is_empty() {
            return Ok(reason("the listing has no instructions of a kernel".to_owned()));
        }
        let own = own_name(kernel_type);
        let named = |one: LinkedInstruction| LinkedInstruction {
            file: one.file.map(|file| submitted(&file, files, own)),
            ..one
        };
        let instructions = found.instructions.into_iter().map(named).collect();
        Ok(CodeListing { language, instructions, truncated: found.cut, reason: None })
    }
}

/// Selects a second compilation of CUDA C++, because the image that ran usually lacks line
/// information.
fn with_lines<'a>(kernel: &KeptKernel, kind: ArtifactKind, way: Way<'a>) -> Way<'a> {
    let target = |emulated| Target { emulated, ..kernel.target };
    match (kernel.code.kernel_type, kind) {
        (KernelType::Cuda, ArtifactKind::Ptx) => Way::Compile(target(true)),
        (KernelType::Cuda, ArtifactKind::Sass) => Way::List(None, target(false)),
        _ => way,
    }
}

/// Links the instructions of submitted PTX to their own lines, unless its line information names
/// another submitted file.
fn in_own_lines(found: &mut LinkedInstructions, text: &[u8], files: &[SourceText]) {
    let Some(own) = files.first().filter(|own| own.text.as_bytes() == text) else { return };
    let (mut line, mut from) = (1, 0);
    for (one, at) in found.instructions.iter_mut().zip(&found.offsets) {
        let passed = text.get(from..*at).unwrap_or_default();
        line += passed.iter().filter(|byte| **byte == b'\n').count() as u32;
        from = *at;
        let named = one.file.as_ref();
        if !named
            .is_some_and(|named| files.iter().any(|file| Path::new(named).ends_with(&file.name)))
        {
            (one.file, one.line) = (Some(own.name.clone()), Some(line));
        }
    }
}

/// Returns the submitted files. The file of the kernel comes first.
fn sources(code: &KernelCode) -> Vec<SourceText> {
    let own = code.source_code.as_ref().map(|text| SourceText {
        name: code.source_path.clone().unwrap_or_else(|| own_name(code.kernel_type).to_owned()),
        text: text.clone(),
    });
    let others = code.files.iter();
    let others = others.map(|(name, text)| SourceText { name: name.clone(), text: text.clone() });
    own.into_iter().chain(others).collect()
}

/// Returns the name by which compilers refer to a file that was submitted without a name.
fn own_name(kernel_type: KernelType) -> &'static str {
    match kernel_type {
        KernelType::Triton => "kernel.py",
        KernelType::Ptx => "kernel.ptx",
        _ => "kernel.cu",
    }
}

/// Returns the name of the submitted file to which a compiler's path refers. Compilers refer to the
/// kernel's own file, the first one, by `own`. If there is no such file, returns only the path's last
/// component, because callers must not see paths of this machine.
fn submitted(path: &str, files: &[SourceText], own: &str) -> String {
    let path = Path::new(path);
    let found = files.iter().find(|file| path.ends_with(&file.name));
    match found.or_else(|| files.first().filter(|_| path.ends_with(own))) {
        Some(file) => file.name.clone(),
        None => path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_compilers_are_names_of_submitted_files() {
        let file = |name: &str| SourceText { name: name.to_owned(), text: String::new() };
        let files = [file("src/scan.cu"), file("include/tile.cuh")];
        assert_eq!(submitted("/tmp/job/include/tile.cuh", &files, "kernel.cu"), "include/tile.cuh");
        assert_eq!(submitted("kernel.cu", &files, "kernel.cu"), "src/scan.cu");
        assert_eq!(submitted("/opt/cuda/include/cuda_fp16.h", &files, "kernel.cu"), "cuda_fp16.h");
        assert_eq!(submitted("other_tile.cuh", &files, "kernel.cu"), "other_tile.cuh");
        assert_eq!(submitted("", &[], "kernel.cu"), "");
    }

    #[test]
    fn instructions_of_submitted_ptx_belong_to_their_own_lines() {
        let text = "// c\n.entry k(){\n\t.loc 1 9 1\n\tmov.u32 %r1, 0; ret;\n\n\ttrap;\n}\n\
                    .file 1 \"elsewhere.cu\"\n";
        let own = SourceText { name: "kernel.ptx".to_owned(), text: text.to_owned() };
        let places = |files: &[SourceText]| {
            let mut found = linked(text, CodeLanguage::Ptx);
            in_own_lines(&mut found, text.as_bytes(), files);
            let place = |one: LinkedInstruction| (one.file.unwrap_or_default(), one.line);
            found.instructions.into_iter().map(place).collect::<Vec<_>>()
        };
        let at = |name: &str, line| (name.to_owned(), Some(line));
        let expected = [4, 4, 6].map(|line| at("kernel.ptx", line));
        assert_eq!(places(std::slice::from_ref(&own)), expected);
        let named = SourceText { name: "elsewhere.cu".to_owned(), text: String::new() };
        assert_eq!(places(&[own, named]), [9, 9, 9].map(|line| at("elsewhere.cu", line)));
        let other = SourceText { name: "kernel.ptx".to_owned(), text: "x".to_owned() };
        assert_eq!(places(&[other]), [9, 9, 9].map(|line| at("elsewhere.cu", line)));
    }
}
