//! What a job has left so far. It goes to the store when the job ends.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::ArtifactKind;
use crate::compile::{Artifact, CompileFailure, ImageFormat, Target};
use crate::contract::KernelCode;

/// Most kernels of one job: a reference and its candidates.
const MAX_KERNELS: usize = 16;

/// Format of stored kernels.
const FORMAT: u8 = 1;

/// A kernel of a job, and what was compiled of it.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::pipeline) struct KeptKernel {
    /// `kernel`, or its name in a comparison.
    pub(super) name: String,
    /// The submitted code, without arguments, and without the image of a binary.
    pub(super) code: KernelCode,
    pub(super) target: Target,
    /// Whether it was compiled with line information.
    pub(super) lineinfo: bool,
    /// The compiler's messages.
    pub(super) log: String,
    /// `None` if it did not compile.
    pub(super) built: Option<BuiltImage>,
}

/// What ran.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct BuiltImage {
    #[serde(with = "crate::byte_string")]
    pub(super) image: Arc<[u8]>,
    pub(super) format: ImageFormat,
}

impl KeptKernel {
    /// A kernel that compiled.
    pub(in crate::pipeline) fn built(
        name: &str,
        code: &KernelCode,
        target: Target,
        lineinfo: bool,
        artifact: &Artifact,
    ) -> Self {
        let built = BuiltImage { image: Arc::clone(&artifact.image), format: artifact.format };
        let log = artifact.log.clone();
        Self { built: Some(built), ..Self::bare(name, code, target, lineinfo, log) }
    }

    /// One that did not.
    pub(in crate::pipeline) fn rejected(
        name: &str,
        code: &KernelCode,
        target: Target,
        lineinfo: bool,
        failure: &CompileFailure,
    ) -> Self {
        Self::bare(name, code, target, lineinfo, failure.log.clone())
    }

    fn bare(name: &str, code: &KernelCode, target: Target, lineinfo: bool, log: String) -> Self {
        let code = KernelCode {
            source_code: code.source_code.clone(),
            binary_b64: None,
            kernel_type: code.kernel_type,
            io: None,
            metadata: code.metadata.clone(),
        };
        Self { name: name.to_owned(), code, target, lineinfo, log, built: None }
    }
}

/// Kernels for the store.
pub(super) fn pack(kernels: &[Arc<KeptKernel>]) -> Result<Vec<u8>, String> {
    let mut bytes = vec![FORMAT];
    let mut writer = rmp_serde::Serializer::new(&mut bytes).with_struct_map();
    let kernels = kernels.iter().map(Arc::as_ref).collect::<Vec<_>>();
    kernels.serialize(&mut writer).map_err(|error| error.to_string())?;
    Ok(bytes)
}

/// Kernels from the store.
pub(super) fn unpack(bytes: &[u8]) -> Result<Vec<Arc<KeptKernel>>, String> {
    match bytes.split_first() {
        Some((&FORMAT, content)) => {
            let kernels: Vec<KeptKernel> =
                rmp_serde::from_slice(content).map_err(|error| error.to_string())?;
            Ok(kernels.into_iter().map(Arc::new).collect())
        }
        Some((format, _)) => Err(format!("format {format} is not known to this program")),
        None => Err("there is nothing in it".to_owned()),
    }
}

/// A profiler's file; dropping it deletes the file.
#[derive(Debug)]
pub(super) struct KeptFile {
    pub(super) path: tempfile::TempPath,
    pub(super) bytes: u64,
}

/// What a job has left so far.
#[derive(Debug)]
pub(in crate::pipeline) struct Leavings {
    /// Where files stand, which are not to go with the job's own directory.
    directory: PathBuf,
    pub(super) kernels: Vec<Arc<KeptKernel>>,
    pub(super) files: BTreeMap<ArtifactKind, KeptFile>,
}

impl Leavings {
    /// None yet; files will stand in this directory.
    pub(in crate::pipeline) fn new(directory: &Path) -> Self {
        Self { directory: directory.to_owned(), kernels: Vec::new(), files: BTreeMap::new() }
    }

    /// Keeps a kernel, in place of one of the same name.
    pub(in crate::pipeline) fn keep(&mut self, kernel: KeptKernel) {
        if let Some(known) = self.kernels.iter_mut().find(|known| known.name == kernel.name) {
            *known = Arc::new(kernel);
        } else if self.kernels.len() < MAX_KERNELS {
            self.kernels.push(Arc::new(kernel));
        }
    }

    /// Takes over a profiler's file.
    ///
    /// # Errors
    /// The file cannot be moved here.
    pub(in crate::pipeline) fn keep_file(
        &mut self,
        kind: ArtifactKind,
        file: &Path,
    ) -> io::Result<()> {
        let (_, path) =
            tempfile::Builder::new().prefix("artifact-").tempfile_in(&self.directory)?.into_parts();
        // The job's directory may be on another file system.
        if std::fs::rename(file, &path).is_err() {
            std::fs::copy(file, &path)?;
        }
        let bytes = std::fs::metadata(&path)?.len();
        self.files.insert(kind, KeptFile { path, bytes });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::KernelType;

    fn kernel(name: &str, source: &str) -> KeptKernel {
        let code = KernelCode {
            source_code: Some(source.to_owned()),
            binary_b64: None,
            kernel_type: KernelType::Cuda,
            io: None,
            metadata: None,
        };
        let target = Target { compute_capability: (9, 0), driver_version: 13_000, emulated: true };
        KeptKernel::rejected(name, &code, target, false, &CompileFailure::new("c", "m"))
    }

    #[test]
    fn a_kernel_replaces_its_namesake_and_there_is_a_bound() {
        let mut leavings = Leavings::new(Path::new("/"));
        leavings.keep(kernel("kernel", "a"));
        leavings.keep(kernel("kernel", "b"));
        assert_eq!(leavings.kernels[0].code.source_code.as_deref(), Some("b"));
        for at in 0..40 {
            leavings.keep(kernel(&at.to_string(), "c"));
        }
        assert_eq!(leavings.kernels.len(), MAX_KERNELS);
    }

    #[test]
    fn kernels_come_back_from_the_store() {
        let mut one = kernel("kernel", "source");
        one.built = Some(BuiltImage { image: Arc::from([1, 2, 255]), format: ImageFormat::Ptx });
        let again = unpack(&pack(&[Arc::new(one)]).unwrap()).unwrap();
        let built = again[0].built.as_ref().unwrap();
        assert_eq!((&built.image[..], built.format), (&[1_u8, 2, 255][..], ImageFormat::Ptx));
        assert_eq!(again[0].name, "kernel");
        assert!(unpack(&[7]).unwrap_err().contains("format 7"));
        assert!(unpack(&[]).is_err());
    }

    #[test]
    fn files_go_with_what_is_left() {
        let (own, job) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let report = job.path().join("kernel.ncu-rep");
        std::fs::write(&report, b"report").unwrap();
        let mut leavings = Leavings::new(own.path());
        leavings.keep_file(ArtifactKind::NcuRep, &report).unwrap();
        assert!(!report.exists());
        assert_eq!(leavings.files[&ArtifactKind::NcuRep].bytes, 6);
        assert_eq!(std::fs::read_dir(own.path()).unwrap().count(), 1);
        drop(leavings);
        assert_eq!(std::fs::read_dir(own.path()).unwrap().count(), 0);
    }
}
