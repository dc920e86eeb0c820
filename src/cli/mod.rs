//! The command line. Each command has a separate file.
//!
//! [`main`] first runs the hidden subcommands (`__worker`, `__compile`, …), which are children of the
//! service. It then parses the visible commands. [`place`] decides whether a command runs here or
//! on a server. [`local`] starts the pipeline, and [`http`] the HTTP server.

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
mod html_file;
mod http;
mod import;
mod import_changes;
mod import_child;
mod import_table;
mod import_verdict;
mod init;
mod io_words;
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
mod target;
mod terminal;
mod toolchain;
mod watch;
mod with_progress;

pub use error::CliError;
pub use gate::GateError;
pub use run::main;
