//! Hidden subcommands: this binary, re-executed as a child of the service.

use std::ffi::OsString;
use std::process::ExitCode;

use super::terminal::write_error_stream;
use crate::exit::Exit;

/// First argument of a device worker.
const WORKER: &str = "__worker";

/// First argument of a compile child.
const COMPILE: &str = "__compile";

/// Runs a child if the first argument asks for one. Children do not see the command-line parser:
/// their start is on the way of every evaluation.
pub(super) fn dispatch(args: &[OsString]) -> Option<ExitCode> {
    match args.get(1)?.to_str()? {
        WORKER => Some(not_built(WORKER)),
        COMPILE => Some(not_built(COMPILE)),
        _ => None,
    }
}

fn not_built(which: &str) -> ExitCode {
    write_error_stream(&format!(
        "error: this build of warpgauge has no `{which}` child"
    ));
    Exit::Internal.into()
}
