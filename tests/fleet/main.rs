//! The fleet against scripted workers: this program starts itself as the worker, which does what
//! the name of the job says. No driver is involved.

#[macro_use]
#[path = "../support/needs.rs"]
mod needs;

mod checks;
mod scripted;
mod tools;

use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.first().is_some_and(|first| first == "__worker") {
        return scripted::main(&args[1..]);
    }
    let asks = |option: &str| args.iter().any(|arg| arg == option);
    // What test runners ask of a test program. None of ours is ignored: whoever asks for the
    // ignored ones gets none, or it would take all for ignored and skip them.
    if asks("--ignored") {
        return ExitCode::SUCCESS;
    }
    if asks("--list") {
        all().for_each(|(name, _)| println!("{name}: test"));
        return ExitCode::SUCCESS;
    }
    let filter = args.iter().find(|arg| !arg.starts_with('-'));
    let matches = |name: &str, filter: &str| match asks("--exact") {
        true => name == filter,
        false => name.contains(filter),
    };
    let chosen = |name: &str| filter.is_none_or(|filter| matches(name, filter));
    let mut failed = 0;
    for (name, check) in all().filter(|(name, _)| chosen(name)) {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let passed = std::panic::catch_unwind(|| runtime.block_on(check())).is_ok();
        failed += usize::from(!passed);
        println!("test {name} ... {}", if passed { "ok" } else { "FAILED" });
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn all() -> impl Iterator<Item = &'static (&'static str, checks::Check)> {
    checks::ALL.iter().chain(tools::ALL)
}
