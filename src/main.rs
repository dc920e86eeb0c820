//! The `warpgauge` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    if args.next().is_some_and(|first| first == "__worker") {
        return warpgauge::worker::child::main(args);
    }
    ExitCode::SUCCESS
}
