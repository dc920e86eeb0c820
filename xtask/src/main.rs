//! Development commands: `cargo xtask <command>`.
//!
//! A new user needs only `demo` and `test`. `bench` needs no cargo at run time, so that its binary
//! also runs on a GPU host without Rust (see `bundle`).

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod bench;
mod bundle;
mod ci;
mod clients;
mod contract;
mod demo;
mod http;
mod mutations;
mod product;
mod server;
mod shell;
mod tarball;
mod test;
mod tidy;
mod wheel;

/// Development commands of warpgauge.
#[derive(Parser)]
#[command(name = "cargo xtask", version)]
struct Cli {
    #[command(subcommand)]
    command: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Build, start a server, evaluate an example kernel over HTTP and show the verdict.
    Demo(demo::Options),
    /// Run every test; arguments go to the test runner.
    Test(test::Options),
    /// Print what the tests did not test, from the file they recorded it in.
    #[command(hide = true)]
    Skipped(test::SkippedOptions),
    /// Run the checks beyond the tests: format, lints, specifications, licences, real clients.
    Ci(ci::Options),
    /// Check that `openapi/warpgauge.yaml` is what the program generates.
    Spec(ci::SpecOptions),
    /// Use the HTTP API through generated clients, a fuzzer and a browser.
    Clients(clients::Options),
    /// Check the rules that the repository's text can show.
    Tidy,
    /// Measure the service.
    #[command(subcommand)]
    Bench(bench::Command),
    /// Remove each defence against hostile kernels in turn; an exploit must notice.
    Mutations(mutations::Options),
    /// Pack what a GPU host without Rust needs to run the tests and benchmarks.
    Bundle(bundle::Options),
    /// Pack the Python package with the program as a wheel.
    Wheel(product::Packing),
    /// Pack the program with completions, manuals and the files of `deploy/`.
    Tarball(product::Packing),
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Task::Demo(options) => demo::run(&options),
        Task::Test(options) => test::run(&options),
        Task::Skipped(options) => test::skipped(&options),
        Task::Ci(options) => ci::run(&options),
        Task::Spec(options) => ci::spec(&options),
        Task::Clients(options) => clients::run(&options),
        Task::Tidy => tidy::run(),
        Task::Bench(command) => bench::run(&command),
        Task::Mutations(options) => mutations::run(&options),
        Task::Bundle(options) => bundle::run(&options),
        Task::Wheel(options) => wheel::run(&options),
        Task::Tarball(options) => tarball::run(&options),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
