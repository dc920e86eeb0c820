//! Returns artifacts to callers, and produces those that were not stored. The main type is
//! [`Artifacts`].

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use super::stored::{Lookup, Source};
use super::{
    ArtifactContent, ArtifactKind, ArtifactList, ArtifactService, ArtifactView, RunningJobs,
};
use crate::error::ServiceError;
use crate::readiness::Readiness;
use crate::records;
use crate::submission::{Caller, ServiceFuture};
use warpgauge_code::listing::without_places;
use warpgauge_contract::{KernelRuntime, KernelType};
use warpgauge_executor::{BuiltCode, BuiltImage, CodeOrder, Executor, KeptKernel};
use warpgauge_job_views::KernelCodeView;
use warpgauge_model::{ImageFormat, JobKind, Target};
use warpgauge_store::{JobRow, Store};
use warpgauge_turns::Owner;

const LIBRARY_IS_CALLED: &str = "a library function was called: its code is not stored";
const PTX_WAS_SUBMITTED: &str =
    "the kernel was submitted as PTX: the driver compiles the machine code and does not return it";
const CODE_WAS_SUBMITTED: &str = "the kernel was submitted as machine code, which has no PTX";
const FATBIN_WAS_SUBMITTED: &str =
    "the kernel was submitted as a fatbin, from which the driver chose an image";
const NO_STAGES: &str = "only kernels of type `triton` have this intermediate form";
const OTHER_ARCHITECTURE: &str = "a compiler option names another architecture than the \
                                  device's: the driver compiles the machine code and does not return it";
const PROGRAM_IS_RUN: &str = "a whole program was run: only its `log` is stored";
pub(super) const NOT_COMPILED: &str = "the kernel did not compile; `log` contains the reason";
const EMULATED: &str = "compiled for the architecture that the emulated device represents; the \
                        emulator itself executed the PTX";

/// Artifact to produce: its kernel, its kind, and the caller.
#[derive(Clone, Copy)]
pub(super) struct Made<'a> {
    pub kernel: &'a KeptKernel,
    pub kind: ArtifactKind,
    pub job_id: &'a str,
    pub owner: Owner,
}

/// Whether the instructions in an artifact must refer to source lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lines {
    /// The compilation adds line information, and listings contain line numbers.
    Wanted,
    /// The compilation is the same as for the job, and listings contain no line numbers.
    AsCompiled,
}

/// Way to produce the artifact of a kernel.
pub(super) enum Way<'a> {
    /// The kept bytes are returned.
    Kept(&'a [u8]),
    /// The compiler produces the artifact for this target.
    Compile(Target),
    /// The compiler produces an intermediate text of Triton again, for this target.
    Stage(Target),
    /// An image is disassembled: the kept image, or an image that the compiler produces for this
    /// target.
    List(Option<&'a BuiltImage>, Target),
}

/// Returns artifacts of jobs.
pub(crate) struct Artifacts {
    pub(super) store: Store,
    source: Source,
    executor: Arc<dyn Executor>,
    readiness: Arc<Readiness>,
}

impl ArtifactService for Artifacts {
    fn artifacts<'a>(
        &'a self,
        job_id: &'a str,
        caller: &'a Caller,
    ) -> ServiceFuture<'a, ArtifactList> {
        self.readiness.with_database(self.list(job_id, caller))
    }

    fn artifact<'a>(
        &'a self,
        job_id: &'a str,
        kind: ArtifactKind,
        kernel: Option<&'a str>,
        caller: &'a Caller,
    ) -> ServiceFuture<'a, ArtifactContent> {
        self.readiness.with_database(self.content(job_id, kind, kernel, caller))
    }

    fn code<'a>(
        &'a self,
        job_id: &'a str,
        kernel: Option<&'a str>,
        caller: &'a Caller,
    ) -> ServiceFuture<'a, KernelCodeView> {
        self.readiness.with_database(self.linked_code(job_id, kernel, caller))
    }
}

impl Artifacts {
    /// Creates the service from running jobs, the store, and an executor that produces missing
    /// artifacts.
    pub(crate) fn new(
        store: Store,
        running: Arc<dyn RunningJobs>,
        executor: Arc<dyn Executor>,
        readiness: Arc<Readiness>,
    ) -> Self {
        let source = Source::new(running, store.clone());
        Self { store, source, executor, readiness }
    }

    /// Lists the artifacts of a job.
    async fn list(&self, job_id: &str, caller: &Caller) -> Result<ArtifactList, ServiceError> {
        let job = records::row(&self.store, job_id, caller).await?;
        let kernels = self.kernels_of(&job, "artifacts").await?;
        let files = self.source.files(job_id).await?;
        let mut artifacts = Vec::new();
        for (index, kernel) in kernels.iter().enumerate() {
            for kind in ArtifactKind::ALL {
                // A profiler's files belong to the job, not to each of its kernels.
                if index == 0 || !is_file(kind) {
                    artifacts.push(self.artifact_view(job_id, kernel, kind, &files));
                }
            }
        }
        Ok(ArtifactList { job_id: job_id.to_owned(), artifacts })
    }

    /// Returns the content of an artifact of the named kernel, or of the job's default kernel.
    async fn content(
        &self,
        job_id: &str,
        kind: ArtifactKind,
        kernel: Option<&str>,
        caller: &Caller,
    ) -> Result<ArtifactContent, ServiceError> {
        let job = records::row(&self.store, job_id, caller).await?;
        let kernels = self.kernels_of(&job, kind.name()).await?;
        if is_file(kind) {
            return self.file(&job, kind).await;
        }
        let chosen = chosen(&kernels, kernel).map_err(|why| absent(kind, job_id, &why))?;
        let way = way(chosen, kind).map_err(|why| absent(kind, job_id, why))?;
        let order = Made { kernel: chosen, kind, job_id, owner: Owner::named(&caller.owner) };
        let content = self.made(way, order, Lines::AsCompiled).await?;
        let file_name = format!("{}.{}", file_stem(&chosen.name), kind.name());
        Ok(ArtifactContent { kind, file_name, content })
    }

    /// Returns the bytes of an artifact. Compiles the kernel if needed.
    pub(super) async fn made(
        &self,
        way: Way<'_>,
        order: Made<'_>,
        lines: Lines,
    ) -> Result<Bytes, ServiceError> {
        let Made { kernel, kind, job_id, owner } = order;
        let lineinfo = lines == Lines::Wanted || kernel.lineinfo;
        let other_architecture = || absent(kind, job_id, OTHER_ARCHITECTURE);
        Ok(match way {
            Way::Kept(bytes) => Bytes::copy_from_slice(bytes),
            Way::Compile(target) => {
                let artifact = self.compiled_again(order, target, lineinfo).await?;
                if kind == ArtifactKind::Cubin && artifact.format == ImageFormat::Ptx {
                    return Err(other_architecture());
                }
                Bytes::copy_from_slice(&artifact.image)
            }
            Way::Stage(target) => {
                let made = self.compiled_again(order, target, lineinfo).await?;
                let found = made.stages.into_iter().find(|(name, _)| name == kind.name());
                let too_long = || absent(kind, job_id, "the text is too long to be stored");
                Bytes::from(found.ok_or_else(too_long)?.1)
            }
            Way::List(built, target) => {
                let text = match built {
                    Some(built) => {
                        self.listing_of(&built.image, built.format, job_id, owner).await?
                    }
                    None => {
                        let made = self.compiled_again(order, target, lineinfo).await?;
                        if made.format == ImageFormat::Ptx {
                            return Err(other_architecture());
                        }
                        self.listing_of(&made.image, made.format, job_id, owner).await?
                    }
                };
                match lines {
                    Lines::Wanted => Bytes::copy_from_slice(text.as_bytes()),
                    // The listing contains paths of this machine, which callers must not see.
                    Lines::AsCompiled => Bytes::from(without_places(&text)),
                }
            }
        })
    }

    pub(super) async fn kernels_of(
        &self,
        job: &JobRow,
        what: &str,
    ) -> Result<Vec<Arc<KeptKernel>>, ServiceError> {
        let id = &job.id;
        match self.source.kernels(job).await? {
            Lookup::Here(kernels) => Ok(kernels),
            Lookup::Gone(why) => Err(ServiceError::ArtifactGone {
                what: format!("{what} of job {id}"),
                reason: why.to_owned(),
            }),
            Lookup::Nothing => Err(ServiceError::NoArtifact {
                what: format!("{what} of job {id}"),
                reason: why_nothing(job).to_owned(),
            }),
        }
    }

    fn artifact_view(
        &self,
        job_id: &str,
        kernel: &KeptKernel,
        kind: ArtifactKind,
        files: &BTreeMap<ArtifactKind, u64>,
    ) -> ArtifactView {
        let (bytes, note) = match way(kernel, kind) {
            _ if is_file(kind) => match files.get(&kind) {
                Some(&bytes) => (Ok(Some(bytes)), None),
                None => (Err(no_file(kind).to_owned()), None),
            },
            Ok(Way::Kept(bytes)) => (Ok(Some(bytes.len() as u64)), None),
            Ok(Way::Stage(_)) => (Ok(None), None),
            Ok(Way::Compile(target)) => (Ok(None), on_demand(kernel, target)),
            Ok(Way::List(built, target)) => {
                let format = built.map_or(ImageFormat::Cubin, |built| built.format);
                match self.executor.cannot_list(format) {
                    Some(why) => (Err(why), None),
                    None => (Ok(None), on_demand(kernel, target)),
                }
            }
            Err(why) => (Err(why.to_owned()), None),
        };
        let available = bytes.is_ok();
        let query = format!("?kernel={}", encoded(&kernel.name));
        let url = format!("/jobs/{job_id}/artifacts/{}{query}", kind.name());
        ArtifactView {
            name: kind.name().to_owned(),
            kernel: kernel.name.clone(),
            available,
            url: available.then_some(url),
            media_type: available.then(|| kind.media_type().to_owned()),
            note: bytes.as_ref().err().cloned().or(note),
            bytes: bytes.ok().flatten(),
        }
    }

    /// Returns a file that a profiler wrote.
    async fn file(
        &self,
        job: &JobRow,
        kind: ArtifactKind,
    ) -> Result<ArtifactContent, ServiceError> {
        let id = &job.id;
        let content = match self.source.file(job, kind).await? {
            Lookup::Here(content) => content,
            Lookup::Nothing => return Err(absent(kind, id, no_file(kind))),
            Lookup::Gone(why) => {
                return Err(ServiceError::ArtifactGone {
                    what: format!("{} of job {id}", kind.name()),
                    reason: why.to_owned(),
                });
            }
        };
        let file_name = format!("kernel.{}", kind.name());
        Ok(ArtifactContent { kind, file_name, content: content.into() })
    }

    /// Compiles the kernel again for this target.
    async fn compiled_again(
        &self,
        made: Made<'_>,
        target: Target,
        lineinfo: bool,
    ) -> Result<BuiltCode, ServiceError> {
        let Made { kernel, kind, job_id, owner } = made;
        let order = CodeOrder { code: kernel.code.clone(), target, lineinfo, owner };
        let built = self.executor.image(order).await?;
        built.map_err(|why| absent(kind, job_id, &why))
    }

    async fn listing_of(
        &self,
        image: &Arc<[u8]>,
        format: ImageFormat,
        job_id: &str,
        owner: Owner,
    ) -> Result<Arc<str>, ServiceError> {
        let listed = self.executor.listing(Arc::clone(image), format, owner).await?;
        listed.map_err(|why| absent(ArtifactKind::Sass, job_id, &why))
    }
}

pub(super) fn absent(kind: ArtifactKind, job_id: &str, reason: &str) -> ServiceError {
    ServiceError::NoArtifact {
        what: format!("{} of job {job_id}", kind.name()),
        reason: reason.to_owned(),
    }
}

fn is_file(kind: ArtifactKind) -> bool {
    matches!(kind, ArtifactKind::NcuRep | ArtifactKind::NsysRep)
}

fn no_file(kind: ArtifactKind) -> &'static str {
    match kind {
        ArtifactKind::NsysRep => {
            "Nsight Systems did not run for this job; request it with profile.tools: [nsys]"
        }
        _ => "Nsight Compute did not run for this job; request it with profile.tools: [ncu]",
    }
}

fn why_nothing(job: &JobRow) -> &'static str {
    if job.kind == JobKind::Sweep {
        "points of a sweep have none; evaluate the point's contract separately"
    } else if job.state.is_end() {
        "the job ended before its kernel was compiled"
    } else {
        "the job's kernel is not compiled yet; retry later"
    }
}

/// Returns how the artifact of a kernel is produced, or the reason why the kernel has no such
/// artifact.
pub(super) fn way(kernel: &KeptKernel, kind: ArtifactKind) -> Result<Way<'_>, &'static str> {
    let other = Target { emulated: !kernel.target.emulated, ..kernel.target };
    if kind == ArtifactKind::Log {
        return Ok(Way::Kept(kernel.log.as_bytes()));
    }
    match kernel.code.family().runtime() {
        KernelRuntime::Process => return Err(PROGRAM_IS_RUN),
        KernelRuntime::Worker | KernelRuntime::Judge => (),
    }
    let built = kernel.built.as_ref().ok_or(NOT_COMPILED)?;
    let is_triton = kernel.code.kernel_type == KernelType::Triton;
    let from_source = is_triton || kernel.code.kernel_type == KernelType::Cuda;
    match (kind, built.format) {
        (_, ImageFormat::Library) => Err(LIBRARY_IS_CALLED),
        (ArtifactKind::Ttir | ArtifactKind::Ttgir | ArtifactKind::Llir, _) if !is_triton => {
            Err(NO_STAGES)
        }
        // For Triton, the text of the compiler stage is returned. It contains no paths of this
        // machine.
        (ArtifactKind::Ptx, ImageFormat::Ptx) => {
            Ok(Way::Kept(built.stage("ptx").map_or(&built.image, str::as_bytes)))
        }
        (ArtifactKind::Cubin, ImageFormat::Cubin) => Ok(Way::Kept(&built.image)),
        (ArtifactKind::Ttir | ArtifactKind::Ttgir | ArtifactKind::Llir, _) => {
            Ok(stage(kernel, built, kind))
        }
        (ArtifactKind::Ptx, _) if is_triton => Ok(stage(kernel, built, kind)),
        (ArtifactKind::Ptx, _) if from_source => Ok(Way::Compile(other)),
        (ArtifactKind::Ptx, _) => Err(CODE_WAS_SUBMITTED),
        (ArtifactKind::Sass, ImageFormat::Cubin | ImageFormat::Fatbin) => {
            Ok(Way::List(Some(built), kernel.target))
        }
        (ArtifactKind::Sass | ArtifactKind::Cubin, ImageFormat::Ptx)
            if is_triton && !kernel.target.emulated =>
        {
            Err(OTHER_ARCHITECTURE)
        }
        (ArtifactKind::Sass, ImageFormat::Ptx) if from_source => Ok(Way::List(None, other)),
        (ArtifactKind::Cubin, ImageFormat::Ptx) if from_source => Ok(Way::Compile(other)),
        (ArtifactKind::Cubin, ImageFormat::Fatbin) => Err(FATBIN_WAS_SUBMITTED),
        _ => Err(PTX_WAS_SUBMITTED),
    }
}

/// Returns how the intermediate text of a Triton kernel is produced.
fn stage<'a>(kernel: &KeptKernel, built: &'a BuiltImage, kind: ArtifactKind) -> Way<'a> {
    match built.stage(kind.name()) {
        Some(text) => Way::Kept(text.as_bytes()),
        None => Way::Stage(kernel.target),
    }
}

fn on_demand(kernel: &KeptKernel, target: Target) -> Option<String> {
    (kernel.target.emulated && !target.emulated).then(|| EMULATED.to_owned())
}

/// Returns the named kernel. Without a name, it is the first candidate of a comparison, or else the
/// job's kernel.
///
/// # Errors
/// Returns the reason if the job has no kernel of that name.
pub(super) fn chosen<'a>(
    kernels: &'a [Arc<KeptKernel>],
    name: Option<&str>,
) -> Result<&'a KeptKernel, String> {
    let found = match name {
        Some(name) => kernels.iter().find(|one| one.name == name),
        None => kernels.get(1).or_else(|| kernels.first()),
    };
    found.map(Arc::as_ref).ok_or_else(|| {
        let known: Vec<&str> = kernels.iter().map(|one| one.name.as_str()).collect();
        format!("the job's kernels are {}", known.join(", "))
    })
}

/// Returns the name in a form that contains no path separators and needs no quotes.
fn file_stem(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    name.chars().take(64).map(plain).collect()
}

/// Percent-encodes a name for use in a query string.
fn encoded(name: &str) -> String {
    let mut out = String::new();
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_safe_in_addresses_and_headers() {
        assert_eq!(encoded("a b/ü&kernel=x"), "a%20b%2F%C3%BC%26kernel%3Dx");
        assert_eq!(file_stem("../\"x\"\r\nä"), "____x____");
    }
}
