//! Runs the program. [`main`] returns the exit code for the given arguments.

use std::ffi::OsString;
use std::io::Write as _;
use std::panic::AssertUnwindSafe;
use std::process::ExitCode;

use clap::Parser;
use rustix::process::DumpableBehavior;
use serde_json::json;

use super::args::{Cli, Command, Global};
use super::logging::{self, Verbosity};
use super::terminal::{Terminal, plain, write_error_stream};
use super::{
    CliError, baselines, capabilities, children, compare, compile, devices, doctor, eval, explain,
    gate, history, import, init, jobs, mcp, openapi, profile, schema, serve, shell, show_config,
    spmv, sweep, toolchain, watch,
};
use crate::exit::{Exit, GateExit};
use warpgauge_config::{CliOverrides, Config, Effective};
use warpgauge_service::Problem;

/// Runs the program with `args`. The first argument is the name of the program.
pub fn main(args: Vec<OsString>) -> ExitCode {
    if let Some(code) = children::dispatch(&args) {
        return code;
    }
    keep_to_ourselves();
    // The gate has other exit codes than the other commands. They also apply if the command line is
    // invalid.
    let gates = args.iter().skip(1).any(|arg| arg == "gate");
    let wants_json = args.iter().skip(1).any(|arg| arg == "--json");
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => {
            // clap also returns the help and the version as errors.
            print_usage_error(&error);
            let exit = if error.use_stderr() { Exit::Usage } else { Exit::Success };
            let code = if gates { of_gate(exit) } else { exit.code() };
            if wants_json && error.use_stderr() {
                print_error((exit, code), &readable(&error), &[]);
            }
            return ExitCode::from(code);
        }
    };
    // A panic is a bug and has a separate exit code. The panic hook has already printed the
    // message.
    let gates = matches!(cli.command, Command::Gate(_));
    let outcome = std::panic::catch_unwind(AssertUnwindSafe(|| run(cli)));
    match outcome {
        Ok(Ok(code)) => ExitCode::from(code),
        Ok(Err(error)) => {
            let exit = error.exit();
            let text = plain(&error.render());
            write_error_stream(&format!("error: {text}"));
            // If the caller interrupts the command, it expects no JSON.
            let code = if gates { of_gate(exit) } else { exit.code() };
            if wants_json && exit != Exit::Interrupted {
                print_error((exit, code), &text, error.problems());
            }
            ExitCode::from(code)
        }
        Err(_) => {
            write_error_stream("error: this is a bug in warpgauge; please report the lines above");
            Exit::Internal.into()
        }
    }
}

/// Text of the standard library for an invalid number, and the text that replaces it.
const NO_NUMBER: (&str, &str) = ("invalid digit found in string", "this is not a whole number");

/// Returns the message of the command-line parser, in plain words.
fn readable(error: &clap::Error) -> String {
    error.render().to_string().replace(NO_NUMBER.0, NO_NUMBER.1)
}

/// Writes the help, the version, or the error of the command line.
fn print_usage_error(error: &clap::Error) {
    if error.render().to_string().contains(NO_NUMBER.0) {
        write_error_stream(readable(error).trim_end());
    } else {
        // Writing to a closed stream fails, which is not an error.
        let _ = error.print();
    }
}

/// Writes an error as JSON to standard output, where a program that requested JSON expects it.
pub(super) fn print_error((exit, code): (Exit, u8), message: &str, problems: &[Problem]) {
    let problems = problems
        .iter()
        .map(|one| json!({"field": one.path, "code": one.code, "message": one.message}));
    let error = json!({
        "code": exit.name(),
        "exit_code": code,
        "message": message.trim(),
        "validation_errors": problems.collect::<Vec<_>>(),
    });
    // A closed stream is not an error.
    let _ = writeln!(std::io::stdout().lock(), "{}", json!({"error": error}));
}

/// Marks inherited files as close-on-exec, so that children cannot use them. Hides the memory and
/// the environment of the program in `/proc` from other processes of the same user.
fn keep_to_ourselves() {
    close_fds::set_fds_cloexec(3, &[]);
    // Linux never rejects this call, and the program would work without it.
    let _ = rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable);
}

/// Returns the exit code of the gate for a run that ends without a verdict.
fn of_gate(exit: Exit) -> u8 {
    match exit {
        Exit::Success => exit.code(),
        other => GateExit::of_error(other).code(),
    }
}

/// Runs a command and returns the exit code.
fn run(cli: Cli) -> Result<u8, CliError> {
    let Cli { global, command } = cli;
    let terminal = Terminal::detect(global.quiet, global.verbose);
    let exit = match command {
        Command::Serve(args) => {
            let overrides = CliOverrides { host: args.host, port: args.port, ..global.overrides() };
            let effective = load(&global, &overrides)?;
            logging::start(&effective, Verbosity::Service)?;
            serve::run(effective.config, terminal)
        }
        Command::Mcp(args) => mcp::run(&args, &configure(&global)?, terminal),
        Command::Eval(args) => eval::run(&args, &configure(&global)?, terminal),
        Command::Compare(args) => compare::run(&args, &configure(&global)?, terminal),
        Command::Profile(args) => profile::run(&args, &configure(&global)?, terminal),
        Command::Sweep(args) => sweep::run(&args, &configure(&global)?, terminal),
        Command::Spmv(args) => spmv::run(&args, &configure(&global)?, terminal),
        Command::Baselines(command) => baselines::run(&command, &configure(&global)?, terminal),
        Command::History(args) => history::run(&args, &configure(&global)?, terminal),
        Command::Jobs(command) => {
            return jobs::run(&command, &configure(&global)?, terminal);
        }
        Command::Watch(args) => watch::run(&args, &configure(&global)?, terminal),
        Command::Send(args) => watch::send(&args, &configure(&global)?, terminal),
        Command::Init(args) => init::run(&args, &configure(&global)?, terminal),
        Command::Compile(args) => compile::run(&args, &configure(&global)?, terminal),
        Command::Devices(args) => devices::run(&args, &configure(&global)?, terminal),
        Command::Doctor(args) => doctor::run(&args, &configure(&global)?, terminal),
        Command::Capabilities(args) => capabilities::run(&args, &configure(&global)?, terminal),
        Command::Toolchain(command) => toolchain::run(&command, &configure(&global)?, terminal),
        Command::Import(args) => import::run(&args, &configure(&global)?, terminal),
        Command::Explain(args) => explain::run(&args, terminal),
        Command::Completions(args) => shell::completions(&args, terminal),
        Command::Manual(args) => shell::manual(&args, terminal),
        Command::Schema(args) => schema::run(&args, terminal),
        Command::Openapi(args) => openapi::run(&args, terminal),
        Command::Config(args) if args.defaults => show_config::defaults(terminal),
        Command::Config(args) => {
            show_config::run(&args, &load(&global, &global.overrides())?, terminal)
        }
        // The gate has separate exit codes.
        Command::Gate(command) => {
            return Ok(gate::run(&command, &configure(&global)?, terminal)?.code());
        }
    }?;
    Ok(exit.code())
}

/// Returns the configuration for any command except the server. Also starts logging.
fn configure(global: &Global) -> Result<Config, CliError> {
    let effective = load(global, &global.overrides())?;
    let verbosity = if global.quiet { Verbosity::Quiet } else { Verbosity::Command };
    logging::start(&effective, verbosity)?;
    Ok(effective.config)
}

fn load(global: &Global, overrides: &CliOverrides) -> Result<Effective, CliError> {
    // If a value is not UTF-8, the error shows replacement characters.
    let env = |name: &str| std::env::var_os(name).map(|v| v.to_string_lossy().into_owned());
    Ok(Config::load_with_origins(global.config.as_deref(), &env, overrides)?)
}
