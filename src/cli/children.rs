//! Hidden subcommands: this binary, re-executed as a child of the service.

use std::ffi::OsString;
use std::process::ExitCode;

/// First argument of a device worker.
const WORKER: &str = "__worker";

/// First argument of a compile child.
const COMPILE: &str = "__compile";

/// Runs a child if the first argument asks for one. Children do not see the command-line parser:
/// their start is on the way of every evaluation.
pub(super) fn dispatch(args: &[OsString]) -> Option<ExitCode> {
    match args.get(1)?.to_str()? {
        WORKER => Some(warpgauge_worker::child::main(args.iter().skip(2).cloned())),
        COMPILE => Some(warpgauge_compile::child::main()),
        warpgauge_program::child::COMMAND => {
            Some(warpgauge_program::child::main(args.iter().skip(2).cloned()))
        }
        warpgauge_torch::child::COMMAND => {
            Some(warpgauge_torch::child::main(args.iter().skip(2).cloned()))
        }
        warpgauge_torch::JUDGE => Some(warpgauge_exec::torch_judge(args.iter().skip(2).cloned())),
        warpgauge_holder::child::COMMAND => {
            Some(warpgauge_holder::child::main(args.iter().skip(2).cloned()))
        }
        _ => None,
    }
}
