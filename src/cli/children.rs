//! Hidden subcommands. The service uses them to start this program as a child process.

use std::ffi::OsString;
use std::process::ExitCode;

use warpgauge_sandbox::enforcement;
use warpgauge_sandbox::own_root;
use warpgauge_sandbox::privileges::{self, KeptCapabilities};
use warpgauge_service::IMPORT_COMMAND;

/// First argument of a device worker process.
const WORKER: &str = "__worker";

/// First argument of a compile process.
const COMPILE: &str = "__compile";

/// Runs as a child process if the first argument is a hidden subcommand. Children skip the
/// command-line parser, because every evaluation waits until they have started.
pub(super) fn dispatch(args: &[OsString]) -> Option<ExitCode> {
    let child = args.get(1)?.to_str()?;
    let score = match child {
        WORKER | warpgauge_torch::JUDGE | warpgauge_worker::holder::child::COMMAND => {
            enforcement::WORKERS
        }
        warpgauge_engine::whole_program::counted::COMMAND => enforcement::WORKERS,
        COMPILE | own_root::COMMAND | IMPORT_COMMAND => enforcement::COMPILERS,
        warpgauge_engine::whole_program::child::COMMAND | warpgauge_torch::child::COMMAND => {
            enforcement::STRANGERS
        }
        _ => return None,
    };
    if child == COMPILE || child == IMPORT_COMMAND {
        // Such work of one caller must not slow down another caller's kernels on the CPU.
        enforcement::yield_to_others();
    }
    // The order matters: once a child of a root server has dropped its capabilities, it can no
    // longer lower its score.
    enforcement::end_before_others(score);
    let begun = may_hide(child).then(own_root::begin);
    let keep =
        if matches!(begun, Some(Ok(()))) { KeptCapabilities::OwnRoot } else { kept(child, args) };
    if let Err(error) = privileges::drop_all(keep) {
        eprintln!("warpgauge {child}: cannot drop the capabilities of this process: {error}");
        return Some(ExitCode::FAILURE);
    }
    let arguments = args.iter().skip(2).cloned();
    Some(match child {
        WORKER => warpgauge_worker::child::main(arguments),
        COMPILE => warpgauge_compile::child::main(),
        IMPORT_COMMAND => super::import_child::main(arguments),
        own_root::COMMAND => own_root::child(begun.unwrap_or(Ok(()))),
        warpgauge_engine::whole_program::child::COMMAND => {
            warpgauge_engine::whole_program::child::main(arguments)
        }
        warpgauge_engine::whole_program::counted::COMMAND => {
            warpgauge_engine::whole_program::counted::main(arguments)
        }
        warpgauge_torch::child::COMMAND => warpgauge_torch::child::main(arguments),
        warpgauge_torch::JUDGE => warpgauge_engine::torch_judge(arguments),
        _ => warpgauge_worker::holder::child::main(arguments),
    })
}

/// Returns whether a child runs or reads submitted code on the CPU. Paths are hidden from such a
/// child.
fn may_hide(child: &str) -> bool {
    let hidden = [
        COMPILE,
        IMPORT_COMMAND,
        warpgauge_engine::whole_program::child::COMMAND,
        warpgauge_torch::child::COMMAND,
        own_root::COMMAND,
    ];
    hidden.contains(&child)
}

/// Returns the capabilities that a child of a root server keeps.
fn kept(child: &str, args: &[OsString]) -> KeptCapabilities {
    // The worker reads counters itself, or runs inside a tool that may read them.
    let reads = ["--counters", "--socket"];
    if child == WORKER && args.iter().any(|given| reads.iter().any(|flag| given == flag)) {
        KeptCapabilities::Counters
    } else {
        KeptCapabilities::Nothing
    }
}
