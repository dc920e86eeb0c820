//! Disassembles an image inside the child. A submitted image might exploit a defect of the tool.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::PathBuf;

use super::confine;
use super::nvcc::SYSTEM;
use crate::protocol::{ChildRequest, DisassembleWork, Outcome};
use warpgauge_sandbox::calls::ChildKind;
use warpgauge_sandbox::enforcement::{Enforcement, FileAccess};
use warpgauge_sandbox::program::{ChildProgram, Environment};

/// Maximum length of the reported error output of the tool, in bytes.
const MAX_COMPLAINT_BYTES: u64 = 2 << 10;

/// Runs the disassembler on the image.
pub(super) fn list(
    request: &ChildRequest,
    work: &DisassembleWork,
    sandbox: &mut Option<Enforcement>,
) -> Outcome {
    let system = SYSTEM.iter().map(PathBuf::from).filter(|path| path.exists());
    let own = work.program.parent().map(PathBuf::from);
    let access = FileAccess {
        read: Vec::new(),
        execute: system.chain(own).chain(work.search.iter().cloned()).collect(),
        write: vec!["/dev/null".into()],
        ..FileAccess::default()
    };
    match confine(request, access, ChildKind::Compilers, sandbox) {
        Ok(()) => run(request, work).unwrap_or_else(|error| Outcome::Failed {
            what: format!("cannot run {}: {error}", work.program.display()),
        }),
        Err(outcome) => outcome,
    }
}

fn run(request: &ChildRequest, work: &DisassembleWork) -> io::Result<Outcome> {
    let directory = &request.job_dir;
    let path = |name: &str| directory.join(name);
    fs::write(path("image"), &work.image)?;
    let system = ["/usr/bin", "/bin"].map(PathBuf::from);
    let search = work.search.iter().chain(&system);
    let search = std::env::join_paths(search).map_err(io::Error::other)?;
    let program = ChildProgram::new(&work.program, Environment::Empty)
        .args(&work.arguments)
        .arg(path("image"))
        .variable("PATH", search)
        .within(directory);
    let status = program
        .to_blocking()
        .stdout(File::create_new(path("listing"))?)
        .stderr(File::create_new(path("complaints"))?)
        .status()?;
    if !status.success() {
        let complaint = head(&path("complaints"), MAX_COMPLAINT_BYTES)?.0;
        return Ok(Outcome::Toolchain {
            what: format!("{} ended with {status}: {}", work.program.display(), complaint.trim()),
        });
    }
    let (text, complete) = head(&path("listing"), work.max_bytes)?;
    Ok(Outcome::Listing { text, complete })
}

/// Returns the first bytes of a file, and whether the file contains no more.
fn head(path: &std::path::Path, most: u64) -> io::Result<(String, bool)> {
    let mut bytes = Vec::new();
    let mut file = File::open(path)?;
    (&mut file).take(most).read_to_end(&mut bytes)?;
    let complete = file.read(&mut [0; 1])? == 0;
    Ok((String::from_utf8_lossy(&bytes).into_owned(), complete))
}
