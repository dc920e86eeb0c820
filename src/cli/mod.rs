//! The command line.
//!
//! [`main`] dispatches hidden subcommands (`__worker`, `__compile`: the children of the process
//! model) before anything else, then parses the visible ones. One file per command. [`place`]
//! decides whether a command's work is done here or at a server; [`local`] and [`http`] are the two
//! places that join the command line to the pipeline and to the HTTP server.

mod args;
mod assume;
mod baselines;
mod capabilities;
mod children;
mod compare;
mod compile;
mod contract_file;
mod devices;
mod doctor;
mod error;
mod eval;
mod expect;
mod explain;
mod format;
mod gate;
mod history;
mod http;
mod import;
mod import_table;
mod init;
mod jobs;
mod json;
mod kernel_contract;
mod local;
mod logging;
mod matrix_files;
mod mcp;
mod openapi;
mod outputs;
mod place;
mod profile;
mod progress;
mod report;
mod run;
mod schema;
mod serve;
mod shell;
mod show_config;
mod signals;
mod source_view;
mod spmv;
mod sweep;
mod sweep_axes;
mod sweep_sizes;
mod sweep_table;
mod terminal;
mod toolchain;
mod watch;
mod with_progress;

pub use error::CliError;
pub use gate::GateError;
pub use run::main;
