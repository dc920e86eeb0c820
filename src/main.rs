//! The `warpgauge` program.

fn main() -> std::process::ExitCode {
    warpgauge::cli::main(std::env::args_os().collect())
}
