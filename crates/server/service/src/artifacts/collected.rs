//! Artifacts that a running job has produced so far. They move to the store when the job ends. The
//! main type is [`CollectedArtifacts`].

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;

use super::ArtifactKind;
pub use warpgauge_executor::KeptKernel;

/// Maximum number of kernels that are kept for one job, which may have a reference and several
/// candidates.
const MAX_KERNELS: usize = 16;

/// Format version of stored kernels.
const FORMAT: u8 = 1;

/// Encodes kernels for the store.
pub(super) fn pack(kernels: &[Arc<KeptKernel>]) -> Result<Vec<u8>, String> {
    let mut bytes = vec![FORMAT];
    let mut writer = rmp_serde::Serializer::new(&mut bytes).with_struct_map();
    let kernels = kernels.iter().map(Arc::as_ref).collect::<Vec<_>>();
    kernels.serialize(&mut writer).map_err(|error| error.to_string())?;
    Ok(bytes)
}

/// Decodes kernels from the store.
pub(super) fn unpack(bytes: &[u8]) -> Result<Vec<Arc<KeptKernel>>, String> {
    match bytes.split_first() {
        Some((&FORMAT, content)) => {
            let kernels: Vec<KeptKernel> =
                warpgauge_document::from_msgpack(content).map_err(|error| error.to_string())?;
            Ok(kernels.into_iter().map(Arc::new).collect())
        }
        Some((format, _)) => Err(format!("format {format} is not known to this program")),
        None => Err("it is empty".to_owned()),
    }
}

/// A file that a profiler wrote. Dropping it deletes the file.
#[derive(Debug)]
struct KeptFile {
    path: tempfile::TempPath,
    bytes: u64,
}

/// Artifacts that a job has produced so far.
#[derive(Debug)]
pub(crate) struct CollectedArtifacts {
    /// Directory of the files. It is separate from the job's directory, which is deleted when the
    /// job ends.
    directory: PathBuf,
    kernels: Vec<Arc<KeptKernel>>,
    files: BTreeMap<ArtifactKind, KeptFile>,
    /// For each output that becomes a shared tensor, by name: its file, or the reason why there is
    /// none.
    outputs: BTreeMap<String, Result<tempfile::TempPath, String>>,
}

/// The artifacts of a job at one point in time.
pub(crate) struct Snapshot {
    pub(super) kernels: Vec<Arc<KeptKernel>>,
    /// Path and size in bytes of each profiler file. A file is deleted with its job.
    pub(super) files: BTreeMap<ArtifactKind, (PathBuf, u64)>,
}

impl CollectedArtifacts {
    /// Creates an empty collection that stores its files in this directory.
    pub(crate) fn new(directory: &Path) -> Self {
        let (kernels, files, outputs) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
        Self { directory: directory.to_owned(), kernels, files, outputs }
    }

    /// Keeps a kernel, in place of an earlier kernel of the same name. If there are already
    /// [`MAX_KERNELS`], the kernel is dropped.
    pub(crate) fn keep(&mut self, kernel: KeptKernel) {
        if let Some(known) = self.kernels.iter_mut().find(|known| known.name == kernel.name) {
            *known = Arc::new(kernel);
        } else if self.kernels.len() < MAX_KERNELS {
            self.kernels.push(Arc::new(kernel));
        }
    }

    /// Moves a profiler's file into the collection.
    ///
    /// # Errors
    /// The file cannot be moved.
    pub(crate) fn keep_file(&mut self, kind: ArtifactKind, file: &Path) -> io::Result<()> {
        let path = self.take_over("artifact-", file)?;
        let bytes = std::fs::metadata(&path)?.len();
        self.files.insert(kind, KeptFile { path, bytes });
        Ok(())
    }

    /// Moves the file of an output into the collection.
    pub(crate) fn keep_output(&mut self, name: String, file: &Path) {
        let taken = self.take_over("output-", file);
        let taken =
            taken.map_err(|error| format!("its content cannot be written to a file: {error}"));
        self.outputs.insert(name, taken);
    }

    /// Removes and returns the file of an output, or the reason why there is none. Returns `None`
    /// for an output that was never kept.
    pub(crate) fn take_output(&mut self, name: &str) -> Option<Result<tempfile::TempPath, String>> {
        self.outputs.remove(name)
    }

    /// Returns the artifacts that were collected so far.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let file = |(kind, file): (&ArtifactKind, &KeptFile)| {
            (*kind, (file.path.to_path_buf(), file.bytes))
        };
        Snapshot { kernels: self.kernels.clone(), files: self.files.iter().map(file).collect() }
    }

    fn take_over(&self, prefix: &str, file: &Path) -> io::Result<tempfile::TempPath> {
        let (_, path) =
            tempfile::Builder::new().prefix(prefix).tempfile_in(&self.directory)?.into_parts();
        // A rename fails if the job's directory is on another file system.
        if std::fs::rename(file, &path).is_err() {
            std::fs::copy(file, &path)?;
        }
        Ok(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpgauge_contract::{KernelCode, KernelType};
    use warpgauge_executor::BuiltImage;
    use warpgauge_model::{ImageFormat, Target};

    fn kernel(name: &str, source: &str) -> KeptKernel {
        let code = KernelCode {
            source_code: Some(source.to_owned()),
            files: BTreeMap::new(),
            source_path: None,
            launches: Vec::new(),
            setup: Vec::new(),
            binary_b64: None,
            kernel_type: KernelType::Cuda,
            io: None,
            metadata: None,
        };
        let target = Target { compute_capability: (9, 0), driver_version: 13_000, emulated: true };
        KeptKernel {
            name: name.to_owned(),
            code,
            target,
            lineinfo: false,
            log: String::new(),
            built: None,
            counted: None,
        }
    }

    #[test]
    fn a_kernel_replaces_its_namesake_and_there_is_a_bound() {
        let mut collected = CollectedArtifacts::new(Path::new("/"));
        collected.keep(kernel("kernel", "a"));
        collected.keep(kernel("kernel", "b"));
        assert_eq!(collected.kernels[0].code.source_code.as_deref(), Some("b"));
        for at in 0..40 {
            collected.keep(kernel(&at.to_string(), "c"));
        }
        assert_eq!(collected.kernels.len(), MAX_KERNELS);
    }

    #[test]
    fn kernels_come_back_from_the_store() {
        let mut one = kernel("kernel", "source");
        one.built = Some(BuiltImage {
            image: Arc::from([1, 2, 255]),
            format: ImageFormat::Ptx,
            stages: vec![("ttir".to_owned(), "module".to_owned())],
        });
        let again = unpack(&pack(&[Arc::new(one)]).unwrap()).unwrap();
        let built = again[0].built.as_ref().unwrap();
        assert_eq!((&built.image[..], built.format), (&[1_u8, 2, 255][..], ImageFormat::Ptx));
        assert_eq!((built.stage("ttir"), built.stage("llir")), (Some("module"), None));
        assert_eq!(again[0].name, "kernel");
        assert!(unpack(&[7]).unwrap_err().contains("format 7"));
        assert!(unpack(&[]).is_err());
    }

    #[test]
    fn files_go_with_what_is_left() {
        let (own, job) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let report = job.path().join("kernel.ncu-rep");
        std::fs::write(&report, b"report").unwrap();
        let mut collected = CollectedArtifacts::new(own.path());
        collected.keep_file(ArtifactKind::NcuRep, &report).unwrap();
        assert!(!report.exists());
        assert_eq!(collected.files[&ArtifactKind::NcuRep].bytes, 6);
        assert_eq!(std::fs::read_dir(own.path()).unwrap().count(), 1);
        drop(collected);
        assert_eq!(std::fs::read_dir(own.path()).unwrap().count(), 0);
    }
}
