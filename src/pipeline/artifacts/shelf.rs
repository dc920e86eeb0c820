//! Where artifacts stand until their job leaves the table, or the budget is spent.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::ArtifactKind;
use crate::compile::{Artifact, CompileFailure, ImageFormat, Target};
use crate::contract::KernelCode;

/// Most kernels of one job: a reference and its candidates.
const MAX_KERNELS: usize = 16;

/// What a record weighs beside its content.
const OVERHEAD_BYTES: u64 = 1024;

/// A kernel of a job, and what was compiled of it.
#[derive(Debug)]
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
#[derive(Debug)]
pub(super) struct BuiltImage {
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

    fn weight(&self) -> u64 {
        let source = self.code.source_code.as_ref().map_or(0, String::len);
        let image = self.built.as_ref().map_or(0, |built| built.image.len());
        OVERHEAD_BYTES + (source + image + self.log.len()) as u64
    }
}

/// A profiler's file; dropping it deletes the file.
#[derive(Debug)]
struct KeptFile {
    path: tempfile::TempPath,
    bytes: u64,
}

/// What a job has on the shelf.
enum Slot {
    Here(Things),
    /// Taken down for younger ones.
    TakenDown,
}

#[derive(Default)]
struct Things {
    kernels: Vec<Arc<KeptKernel>>,
    files: BTreeMap<ArtifactKind, KeptFile>,
    weight: u64,
}

/// What was found.
pub(super) enum Lookup<T> {
    Here(T),
    TakenDown,
    /// The job never left such a thing.
    Nothing,
}

/// Artifacts of jobs, the oldest of which go first when the budget is spent.
pub(in crate::pipeline) struct Shelf {
    budget: u64,
    /// Where files stand.
    directory: PathBuf,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    jobs: HashMap<String, Slot>,
    /// Jobs with things, the oldest first; some may have left since.
    order: VecDeque<String>,
    bytes: u64,
}

impl Shelf {
    /// A shelf for so many bytes, with files in a directory of this process.
    pub(in crate::pipeline) fn new(budget: u64, directory: &Path) -> Self {
        Self { budget, directory: directory.to_owned(), inner: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a kernel, in place of one of the same name.
    pub(in crate::pipeline) fn keep(&self, job: &str, kernel: KeptKernel) {
        let weight = kernel.weight();
        let mut inner = self.lock();
        let Some(things) = inner.things(job) else { return };
        let before = things.weight;
        if let Some(at) = things.kernels.iter().position(|known| known.name == kernel.name) {
            things.weight -= things.kernels.remove(at).weight();
        } else if things.kernels.len() == MAX_KERNELS {
            return;
        }
        things.kernels.push(Arc::new(kernel));
        things.weight += weight;
        let after = things.weight;
        inner.bytes = inner.bytes - before + after;
        inner.take_down(self.budget);
    }

    /// Takes over a profiler's file.
    ///
    /// # Errors
    /// The file cannot be moved here.
    pub(in crate::pipeline) fn keep_file(
        &self,
        job: &str,
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
        let mut inner = self.lock();
        let Some(things) = inner.things(job) else { return Ok(()) };
        let before = things.weight;
        let replaced = things.files.insert(kind, KeptFile { path, bytes });
        things.weight += bytes;
        things.weight -= replaced.map_or(0, |old| old.bytes);
        let after = things.weight;
        inner.bytes = inner.bytes - before + after;
        inner.take_down(self.budget);
        Ok(())
    }

    /// The job leaves the table, and all it has leaves with it.
    pub(in crate::pipeline) fn forget(&self, job: &str) {
        let mut inner = self.lock();
        if let Some(Slot::Here(things)) = inner.jobs.remove(job) {
            inner.bytes -= things.weight;
            inner.order.retain(|known| known != job);
        }
    }

    /// The job's kernels.
    pub(super) fn kernels(&self, job: &str) -> Lookup<Vec<Arc<KeptKernel>>> {
        match self.lock().jobs.get(job) {
            Some(Slot::Here(things)) if things.kernels.is_empty() => Lookup::Nothing,
            Some(Slot::Here(things)) => Lookup::Here(things.kernels.clone()),
            Some(Slot::TakenDown) => Lookup::TakenDown,
            None => Lookup::Nothing,
        }
    }

    /// A profiler's file of the job: open, so that taking it down meanwhile does no harm.
    pub(super) fn file(&self, job: &str, kind: ArtifactKind) -> io::Result<Lookup<std::fs::File>> {
        match self.lock().jobs.get(job) {
            Some(Slot::Here(things)) => match things.files.get(&kind) {
                Some(file) => Ok(Lookup::Here(std::fs::File::open(&file.path)?)),
                None => Ok(Lookup::Nothing),
            },
            Some(Slot::TakenDown) => Ok(Lookup::TakenDown),
            None => Ok(Lookup::Nothing),
        }
    }

    /// Size of a profiler's file, if the job has one.
    pub(super) fn file_bytes(&self, job: &str, kind: ArtifactKind) -> Option<u64> {
        match self.lock().jobs.get(job) {
            Some(Slot::Here(things)) => things.files.get(&kind).map(|file| file.bytes),
            Some(Slot::TakenDown) | None => None,
        }
    }
}

impl Inner {
    /// The job's place; `None` once it was taken down.
    fn things(&mut self, job: &str) -> Option<&mut Things> {
        if !self.jobs.contains_key(job) {
            self.jobs.insert(job.to_owned(), Slot::Here(Things::default()));
            self.order.push_back(job.to_owned());
        }
        match self.jobs.get_mut(job) {
            Some(Slot::Here(things)) => Some(things),
            Some(Slot::TakenDown) | None => None,
        }
    }

    fn take_down(&mut self, budget: u64) {
        while self.bytes > budget {
            let Some(oldest) = self.order.pop_front() else { break };
            if let Some(slot) = self.jobs.get_mut(&oldest)
                && let Slot::Here(things) = std::mem::replace(slot, Slot::TakenDown)
            {
                self.bytes -= things.weight;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::KernelType;

    fn kernel(name: &str, source_bytes: usize) -> KeptKernel {
        let code = KernelCode {
            source_code: Some("x".repeat(source_bytes)),
            binary_b64: None,
            kernel_type: KernelType::Cuda,
            io: None,
            metadata: None,
        };
        let target = Target { compute_capability: (9, 0), driver_version: 13_000, emulated: true };
        KeptKernel::rejected(name, &code, target, false, &CompileFailure::new("c", "m"))
    }

    fn names(shelf: &Shelf, job: &str) -> Result<Vec<String>, &'static str> {
        match shelf.kernels(job) {
            Lookup::Here(kernels) => Ok(kernels.iter().map(|one| one.name.clone()).collect()),
            Lookup::TakenDown => Err("taken down"),
            Lookup::Nothing => Err("nothing"),
        }
    }

    #[test]
    fn the_oldest_make_room_and_are_remembered() {
        let directory = tempfile::tempdir().unwrap();
        let shelf = Shelf::new(10_000, directory.path());
        for job in ["a", "b", "c"] {
            shelf.keep(job, kernel("kernel", 3_000));
        }
        assert_eq!(names(&shelf, "a"), Err("taken down"));
        assert_eq!(names(&shelf, "b"), Ok(vec!["kernel".to_owned()]));
        // Nothing comes back to a place that was taken down.
        shelf.keep("a", kernel("late", 10));
        assert_eq!(names(&shelf, "a"), Err("taken down"));
        shelf.forget("a");
        assert_eq!(names(&shelf, "a"), Err("nothing"));
        shelf.keep("d", kernel("kernel", 20_000));
        assert_eq!(names(&shelf, "d"), Err("taken down"), "larger than the whole budget");
        assert_eq!(shelf.lock().bytes, 0);
    }

    #[test]
    fn a_kernel_replaces_its_namesake_and_there_is_a_bound() {
        let directory = tempfile::tempdir().unwrap();
        let shelf = Shelf::new(1 << 20, directory.path());
        shelf.keep("j", kernel("kernel", 100));
        shelf.keep("j", kernel("kernel", 300));
        assert_eq!(shelf.lock().bytes, 1024 + 300);
        for at in 0..40 {
            shelf.keep("j", kernel(&at.to_string(), 1));
        }
        assert_eq!(names(&shelf, "j").unwrap().len(), MAX_KERNELS);
        shelf.forget("j");
        assert_eq!(shelf.lock().bytes, 0);
    }

    #[test]
    fn files_go_with_their_job() {
        let (own, job) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let shelf = Shelf::new(1 << 20, own.path());
        let report = job.path().join("kernel.ncu-rep");
        std::fs::write(&report, b"report").unwrap();
        shelf.keep_file("j", ArtifactKind::NcuRep, &report).unwrap();
        assert!(!report.exists());
        assert_eq!(shelf.file_bytes("j", ArtifactKind::NcuRep), Some(6));
        assert!(matches!(shelf.file("j", ArtifactKind::NcuRep), Ok(Lookup::Here(_))));
        assert!(matches!(shelf.file("j", ArtifactKind::NsysRep), Ok(Lookup::Nothing)));
        let files = || std::fs::read_dir(own.path()).unwrap().count();
        assert_eq!(files(), 1);
        shelf.forget("j");
        assert_eq!(files(), 0);
    }
}
