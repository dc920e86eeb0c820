//! The fleet against scripted workers: this program starts itself as the worker, which does what
//! the name of the job says. No driver is involved.

mod checks;
mod scripted;

use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.first().is_some_and(|first| first == "__worker") {
        return scripted::main(&args[1..]);
    }
    // What test runners ask of a test program.
    if args.iter().any(|arg| arg == "--list") {
        checks::ALL.iter().for_each(|(name, _)| println!("{name}: test"));
        return ExitCode::SUCCESS;
    }
    let filter = args.iter().find(|arg| !arg.starts_with('-'));
    let chosen = |name: &str| filter.is_none_or(|filter| name.contains(filter.as_str()));
    let mut failed = 0;
    for (name, check) in checks::ALL.iter().filter(|(name, _)| chosen(name)) {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let passed = std::panic::catch_unwind(|| runtime.block_on(check())).is_ok();
        failed += usize::from(!passed);
        println!("test {name} ... {}", if passed { "ok" } else { "FAILED" });
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
