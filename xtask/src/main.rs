//! Development commands: `cargo xtask <command>`.
//!
//! A new user needs only `demo` and `test`. The `bench` commands that measure a running service do
//! not call cargo if the program exists, so they also run on a GPU host without Rust (see
//! `bundle`).

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
mod pictures;
mod product;
mod server;
mod shell;
mod support_ptx;
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
    /// Build the program, start a server, evaluate an example kernel over HTTP and print the
    /// verdict.
    Demo(demo::Options),
    /// Run all tests; arguments are passed to the test runner.
    Test(test::Options),
    /// Print which tests were skipped, from the file in which the tests recorded them.
    #[command(hide = true)]
    Skipped(test::SkippedOptions),
    /// Run the checks that are not tests: format, lints, specifications, licences, real clients.
    Ci(ci::Options),
    /// Check that `openapi/warpgauge.yaml` equals the specification that the program generates.
    Spec(ci::SpecOptions),
    /// Use the HTTP API through generated clients, a fuzzer and a browser.
    Clients(clients::Options),
    /// Check the repository's text against the rules of the project.
    Tidy,
    /// Measure the service, its store, verdicts and build times.
    #[command(subcommand)]
    Bench(bench::Command),
    /// Remove each defence against hostile kernels in turn and check that an exploit or a test
    /// fails.
    Mutations(mutations::Options),
    /// Pack everything that a GPU host without Rust needs to run the tests and benchmarks.
    Bundle(bundle::Options),
    /// Compile the workers' own kernels for the emulated device, whose PTX the program has.
    SupportPtx(support_ptx::Options),
    /// Write the pictures of README and docs from stored reports, with Chromium.
    Pictures,
    /// Build a wheel of the Python package that includes the program.
    Wheel(product::Packing),
    /// Pack the program with shell completions, manual pages and the files of `deploy/`.
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
        Task::SupportPtx(options) => support_ptx::run(&options),
        Task::Pictures => pictures::run(),
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
