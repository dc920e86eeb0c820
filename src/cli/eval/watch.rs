//! `warpgauge eval --watch`: evaluates again after each save.

use std::path::{Path, PathBuf};

use super::saves::Saves;
use crate::cli::args::EvalArgs;
use crate::cli::kernel_contract::contracts_beside;
use crate::cli::signals::EndSignals;
use crate::cli::terminal::{Terminal, plain, plain_line, write_error_stream};
use crate::cli::{CliError, run as errors};
use crate::exit::Exit;
use warpgauge_config::Config;

/// Evaluates after each save, until a signal ends the loop. An error of one evaluation is printed,
/// and the loop continues.
pub(super) fn run(args: &EvalArgs, config: &Config, terminal: Terminal) -> Result<Exit, CliError> {
    if args.contract == Path::new("-") {
        let text =
            "--watch waits for saves of a file, and standard input is not a file: name a file";
        return Err(CliError::Usage(text.to_owned()));
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|source| CliError::System { operation: "start the runtime", source })?;
    let mut signals = runtime.block_on(async { EndSignals::listen() })?;
    // Files that may become the contract are watched as well.
    let always = [args.contract.clone()].into_iter().chain(contracts_beside(&args.contract));
    let always = always.collect::<Vec<PathBuf>>();
    let mut saves = Saves::of(&always);
    let mut place = None;
    loop {
        // A save during the evaluation counts as a new save.
        saves.mark();
        let mut files = always.clone();
        match super::once(args, (config, terminal), &mut place, &mut files) {
            Ok(_) => {}
            Err(error) if error.exit() == Exit::Interrupted => return Ok(Exit::Interrupted),
            Err(error) => {
                show(&error, args.json);
                // The place may be the cause, so the next evaluation opens it again.
                place = None;
            }
        }
        saves.follow(&files);
        let name = args.contract.display();
        let text = format!("warpgauge: waiting for a save of {name}; press Ctrl-C to end");
        terminal.note(&plain_line(&text));
        let is_saved = runtime.block_on(async {
            tokio::select! {
                () = saves.changed() => true,
                () = signals.next() => false,
            }
        });
        if !is_saved {
            return Ok(Exit::Interrupted);
        }
        if !args.json {
            terminal.print_line("")?;
        }
    }
}

fn show(error: &CliError, json: bool) {
    let (exit, text) = (error.exit(), plain(&error.render()));
    write_error_stream(&format!("error: {text}"));
    if json {
        errors::print_error((exit, exit.code()), &text, error.problems());
    }
}
