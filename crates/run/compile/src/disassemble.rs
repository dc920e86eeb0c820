//! Assembly listings of images. This module runs the tools that create them, and keeps the latest
//! listings in memory.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::environment::Environment;
use super::error::CompileError;
use super::protocol::{DisassembleWork, Outcome, Work};
use super::toolchain::Toolchain;
use warpgauge_code::listing::{is_probe, without_kernels};
use warpgauge_model::{FailureCode, ImageFormat};
use warpgauge_turns::Owner;

/// Maximum length of a listing, bytes. The rest is omitted.
const MAX_LISTING_BYTES: u64 = 16 << 20;

/// Maximum total length of the listings in memory, in bytes.
const MAX_KEPT_BYTES: usize = 48 << 20;

/// Time limit for creating one listing.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Last line of an incomplete listing.
const CUT: &str = "\n// the listing is longer; the rest is left out\n";

/// An owner, and the hash of an image that was listed for the owner.
type Key = (Owner, blake3::Hash);

/// Listings by owner and image, the latest last.
#[derive(Default)]
pub(super) struct Listings(Mutex<VecDeque<(Key, Arc<str>)>>);

impl Listings {
    /// Returns the machine code of an image as text.
    pub(super) async fn of(
        &self,
        environment: &Environment,
        image: &[u8],
        format: ImageFormat,
        owner: Owner,
    ) -> Result<Arc<str>, CompileError> {
        let key = (owner, blake3::hash(image));
        if let Some(found) = self.find(&key) {
            return Ok(found);
        }
        let work = work(environment.toolchain(), image, format)?;
        let text = match environment.run_child_for(Work::Disassemble(work), TIMEOUT).await?.result {
            Outcome::Listing { text, complete: true } => text,
            Outcome::Listing { text, complete: false } => text + CUT,
            Outcome::Toolchain { what } => {
                return Err(CompileError::Environment {
                    what: format!("the machine code cannot be listed: {what}"),
                    remedy: "the image may be damaged, or newer than the tool: install a newer one"
                        .into(),
                });
            }
            Outcome::Failed { what } => return Err(CompileError::Internal { what }),
            _ => return Err(CompileError::internal("the compile child sent an unexpected answer")),
        };
        let text: Arc<str> = without_kernels(&text, is_probe).into();
        self.keep(key, &text);
        Ok(text)
    }

    fn find(&self, key: &Key) -> Option<Arc<str>> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().find(|(known, _)| known == key).map(|(_, text)| Arc::clone(text))
    }

    fn keep(&self, key: Key, text: &Arc<str>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|(known, _)| *known != key);
        kept.push_back((key, Arc::clone(text)));
        while kept.iter().map(|(_, text)| text.len()).sum::<usize>() > MAX_KEPT_BYTES {
            kept.pop_front();
        }
    }
}

/// Returns the reason why images of this format cannot be listed here, or `None` if they can.
pub(super) fn missing(toolchain: &Toolchain, format: ImageFormat) -> Option<CompileError> {
    work(toolchain, &[], format).err()
}

/// Returns the task of listing an image, which includes the tool. `nvdisasm` reads only cubins, so
/// fat binaries need `cuobjdump`.
fn work(
    toolchain: &Toolchain,
    image: &[u8],
    format: ImageFormat,
) -> Result<DisassembleWork, CompileError> {
    let environment = |what: &str| CompileError::Environment {
        what: what.to_owned(),
        remedy:
            "`warpgauge toolchain install --with nvcc` installs it, and so does `--with triton`; a \
                 CUDA toolkit on PATH or in CUDA_HOME has it"
                .to_owned(),
    };
    let nvdisasm = toolchain.nvdisasm.as_ref().ok_or_else(|| environment("nvdisasm was not found"));
    let (program, arguments) = match format {
        ImageFormat::Cubin => {
            let arguments = ["--print-code", "--print-line-info-inline"].map(str::to_owned);
            (&nvdisasm?.path, arguments.to_vec())
        }
        ImageFormat::Fatbin => {
            nvdisasm?;
            let tool = toolchain.cuobjdump.as_ref();
            let tool =
                tool.ok_or_else(|| environment("cuobjdump, which lists fatbins, was not found"))?;
            (&tool.path, vec!["--dump-sass".to_owned()])
        }
        ImageFormat::Library => {
            return Err(CompileError::rejected(
                FailureCode::NoMachineCode,
                "the code of a library's function is not listed",
            ));
        }
        ImageFormat::Ptx => {
            return Err(CompileError::rejected(
                FailureCode::NoMachineCode,
                "PTX contains no machine code",
            ));
        }
    };
    let directory = |path: &PathBuf| path.parent().map(PathBuf::from);
    Ok(DisassembleWork {
        program: program.clone(),
        arguments,
        search: toolchain.nvdisasm.iter().filter_map(|tool| directory(&tool.path)).collect(),
        image: image.to_vec(),
        max_bytes: MAX_LISTING_BYTES,
    })
}
