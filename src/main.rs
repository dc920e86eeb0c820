//! The `warpgauge` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    let first = args.next().unwrap_or_default();
    if first == "__compile" {
        return warpgauge::compile::child::main();
    }
    if first == "__worker" {
        return warpgauge::worker::child::main(args);
    }
    ExitCode::SUCCESS
}
