//! Types into which clap parses the command line. [`Cli`] is the root.

use std::path::PathBuf;

use clap::{ArgAction, Args, Parser, Subcommand};

use super::assume::{Assume, KernelFlags};
use super::baselines::BaselinesCommand;
use super::doctor::DoctorArgs;
use super::gate::GateCommand;
use super::history::HistoryArgs;
use super::html_file::HtmlFlag;
use super::init::InitArgs;
use super::jobs::JobsCommand;
use super::mcp::McpArgs;
use super::schema::SchemaArgs;
use super::spmv::SpmvArgs;
use super::sweep::SweepArgs;
pub(super) use super::target::{Patience, Target, client, seconds};
use super::watch::{SendArgs, WatchArgs};
use crate::exit::Exit;
use warpgauge_config::CliOverrides;

/// Evaluate GPU kernels: compile, check and time them, and explain the result.
#[derive(Debug, Parser)]
#[command(name = "warpgauge", version, max_term_width = 100, after_help = after_help())]
pub(super) struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

/// Flags that every command accepts.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Global options")]
pub(super) struct Global {
    /// Configuration file (TOML); `warpgauge config --defaults` prints a commented template
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Log level: error, warn, info, debug or trace, or a filter such as `info,warpgauge=debug`
    #[arg(long, global = true, value_name = "LEVEL")]
    pub log_level: Option<String>,
    /// Devices: auto, emulator, or ordinals such as 0,1
    #[arg(long, global = true, value_name = "WHICH")]
    pub device: Option<String>,
    /// Print results and errors only
    #[arg(long, short, global = true)]
    pub quiet: bool,
    /// Print the whole report: method, tolerances, timings and job ids
    #[arg(long, short, global = true)]
    pub verbose: bool,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Serve the HTTP API
    #[command(after_help = "Examples:\n  \
        warpgauge serve\n  \
        warpgauge serve --port 9000 --device 0,1\n  \
        WARPGAUGE_API_KEYS=secret warpgauge serve --host 0.0.0.0\n\n\
        After the first SIGINT or SIGTERM, running evaluations finish; a second signal ends the server at once.")]
    Serve(ServeArgs),
    /// Serve an agent through the Model Context Protocol, over standard input and output
    #[command(after_help = "Examples:\n  \
        warpgauge mcp\n  \
        warpgauge mcp --server http://gpu-host:8000\n\n\
        An agent starts this command: add it to the agent's list of MCP servers. A server \
        that runs `warpgauge serve` offers the same protocol at /mcp.")]
    Mcp(McpArgs),
    /// Evaluate a kernel: compile, run, check, time
    #[command(after_help = "Examples:\n  \
        warpgauge eval kernels/vector_add/contract.yaml\n  \
        warpgauge eval contract.yaml --json | jq .kernel_exec_result\n  \
        warpgauge eval contract.yaml --server http://gpu-host:8000 --trials 1000\n  \
        warpgauge eval contract.yaml --return-outputs out/\n  \
        warpgauge eval contract.yaml --html report.html\n  \
        warpgauge eval add.cu --set n=4096 --expect 'a + b'\n  \
        warpgauge eval add.cu --watch\n\n\
        In a contract file, `source_file: kernel.cu` beside `kernel_type` means the \
        content of that file, relative to the contract.")]
    Eval(EvalArgs),
    /// Compare kernels with a reference: correctness, and faster, slower or the same
    #[command(after_help = "Examples:\n  \
        warpgauge compare contract.yaml faster.cu\n  \
        warpgauge compare a.cu b.cu\n  \
        warpgauge compare contract.yaml a.cu b.cu other_launch.yaml --preset ci\n  \
        warpgauge compare contract.yaml new.cu --kernel-name new --server http://gpu-host:8000\n  \
        warpgauge compare comparison.yaml --json | jq .comparison.verdict\n\n\
        The contract's kernel is the reference; its outputs are the expected outputs \
        of the other kernels. A file that contains `ref_kernel` is a whole comparison.")]
    Compare(CompareArgs),
    /// Evaluate a kernel and explain its time: device metrics, roofline and advice
    #[command(after_help = "Examples:\n  \
        warpgauge profile kernels/matmul_tiled/contract.yaml\n  \
        warpgauge profile contract.yaml --metrics speed_of_light,stall\n  \
        warpgauge profile contract.yaml --tools ncu --svg roofline.svg\n  \
        warpgauge profile contract.yaml --server http://gpu-host:8000 --json\n\n\
        The kernel is checked and timed as with `eval`; metrics come from separate launches, \
        afterwards. Without a GPU, the emulator counts.")]
    Profile(ProfileArgs),
    /// Evaluate a kernel at every combination of its contract's axes
    #[command(after_help = "Examples:\n  \
        warpgauge sweep kernels/vector_add/sweep.yaml\n  \
        warpgauge sweep sweep.yaml --csv > table.csv\n  \
        warpgauge sweep kernel.cu --set n=1024,4096,16384\n  \
        warpgauge sweep sweep.yaml --server http://gpu-host:8000 --json | jq .best\n\n\
        A sweep is a contract with `axes`, e.g. `axes: {n: [2^10..2^24 by x4], block: [64, 128]}`, \
        whose strings refer to the axes as `$n` and `${block}`. The exit code is that of the worst point.")]
    Sweep(SweepArgs),
    /// Multiply sparse matrices by a vector with a kernel, and print a table of verdicts and times
    #[command(after_help = "Examples:\n  \
        warpgauge spmv poisson2d:nx=512 rmat:scale=16 --kernel spmv.cu\n  \
        warpgauge spmv matrices/ --kernel ell.cu --kernel-name ell_spmv --format ell --svg times.svg\n  \
        warpgauge spmv cant.mtx --kernel spmv.cubin --server http://gpu-host:8000 --json\n\n\
        Each matrix is an evaluation: the product is compared with the CPU's, within a bound on the \
        rounding error of each row. The exit code is that of the first product that is not correct.")]
    Spmv(SpmvArgs),
    /// Gate a change: detect kernels of a suite that became slower
    #[command(
        subcommand,
        after_help = "Examples:\n  \
        warpgauge gate run suite.yaml --baseline origin/main --report out/\n  \
        warpgauge gate calibrate suite.yaml\n\n\
        Exit codes: 0 pass, 1 tool error, 2 regression, 3 inconclusive, 4 invalid."
    )]
    Gate(GateCommand),
    /// List, show, store, promote and delete baselines of the gate
    #[command(
        subcommand,
        after_help = "Examples:\n  \
        warpgauge baselines list --server http://gpu-host:8000\n  \
        warpgauge baselines store main suite.yaml --server http://gpu-host:8000\n  \
        warpgauge baselines promote main --job JOB --server http://gpu-host:8000\n\n\
        Without --server, the baselines of this machine, in its data directory. `gate run --baseline \
        stored:NAME` compares with a stored baseline."
    )]
    Baselines(BaselinesCommand),
    /// Show the results of a case over time, and the points at which its level changed
    #[command(after_help = "Examples:\n  \
        warpgauge history\n  \
        warpgauge history scale --svg trend.svg\n  \
        warpgauge history scale --server http://gpu-host:8000 --json | jq .series[].changes")]
    History(HistoryArgs),
    /// List, show, cancel and await jobs on a server
    #[command(
        subcommand,
        after_help = "Examples:\n  \
        warpgauge jobs list --server http://gpu-host:8000 --state failed\n  \
        warpgauge jobs wait --server http://gpu-host:8000 JOB\n  \
        warpgauge jobs cancel --server http://gpu-host:8000 JOB"
    )]
    Jobs(JobsCommand),
    /// Evaluate the kernels that arrive in a folder, and write the results beside them
    #[command(after_help = "Examples:\n  \
        warpgauge watch gpu-executor/\n  \
        warpgauge watch gpu-executor/ --server http://gpu-host:8000 --jobs 8\n  \
        warpgauge watch gpu-executor/ --once\n  \
        warpgauge watch --git git@host:team/mailbox.git --branch main\n\n\
        DIR/kernels/NAME.cu becomes DIR/results/NAME.json. The contract is a file beside the kernel \
        (NAME.yaml), is in its first comment, or is inferred.")]
    Watch(WatchArgs),
    /// Send a kernel through a watched git repository, and wait for the result
    #[command(after_help = "Examples:\n  \
        warpgauge send kernel.cu --git git@host:team/mailbox.git\n  \
        warpgauge send kernel.cu --git /srv/mailbox.git --contract contract.yaml --json\n\n\
        The other end is `warpgauge watch --git URL`. A contract beside the kernel (kernel.yaml) is \
        sent with it.")]
    Send(SendArgs),
    /// Write a contract for a kernel, inferred from its parameters, names and code
    #[command(after_help = "Examples:\n  \
        warpgauge init kernel.cu -o contract.yaml\n  \
        warpgauge init kernels.cu --kernel-name saxpy --reference")]
    Init(InitArgs),
    /// Compile a kernel and show its resources, without running it
    #[command(after_help = "Examples:\n  \
        warpgauge compile kernel.cu --arch sm_90\n  \
        warpgauge compile contract.yaml -o kernel.cubin\n  \
        warpgauge compile kernel.cu --kernel-name saxpy --compiler-option=-use_fast_math")]
    Compile(CompileArgs),
    /// List the devices that evaluations can use
    #[command(after_help = "Examples:\n  warpgauge devices\n  warpgauge devices --json")]
    Devices(DevicesArgs),
    /// Check the installation, and print the command that installs each missing part
    #[command(after_help = "Examples:\n  \
        warpgauge doctor\n  \
        warpgauge doctor --json | jq .next\n\n\
        The exit code is 0 if evaluations run, and 1 if they do not.")]
    Doctor(DoctorArgs),
    /// List the capabilities of each device and of NVIDIA's tools, with a reason for each missing one
    #[command(after_help = "Examples:\n  \
        warpgauge capabilities\n  \
        warpgauge capabilities --json | jq .tools")]
    Capabilities(CapabilitiesArgs),
    /// Show or install the CUDA compilers
    #[command(
        subcommand,
        after_help = "Examples:\n  \
        warpgauge toolchain show\n  \
        warpgauge toolchain install\n  \
        warpgauge toolchain install --cuda 12 --with nvcc\n  \
        warpgauge toolchain install --with triton --with torch"
    )]
    Toolchain(ToolchainCommand),
    /// Read files that Nsight Compute, Nsight Systems or compute-sanitizer wrote
    #[command(after_help = "Examples:\n  \
        warpgauge import report.ncu-rep\n  \
        warpgauge import raw.csv --metrics speed_of_light,dram_bytes\n  \
        warpgauge import trace.csv --json | jq .timelines\n\n\
        Supported files: CSV pages of `ncu --import FILE --csv --page raw` (or details) in any units and \
        locale, CSV of `nsys stats`, logs of compute-sanitizer (`--log-file`), and .ncu-rep if \
        ncu is installed. The program detects the type from the content.")]
    Import(ImportArgs),
    /// Explain a code in a report or an error, with a remedy
    #[command(after_help = "Examples:\n  \
        warpgauge explain zeros_pass\n  \
        warpgauge explain")]
    Explain(ExplainArgs),
    /// Print a completion script for a shell
    #[command(after_help = "Examples:\n  \
        warpgauge completions bash > /etc/bash_completion.d/warpgauge\n  \
        warpgauge completions fish > ~/.config/fish/completions/warpgauge.fish")]
    Completions(CompletionsArgs),
    /// Write manual pages into a directory
    #[command(after_help = "Examples:\n  \
        warpgauge manual /usr/local/share/man/man1")]
    Manual(ManualArgs),
    /// Print the JSON Schema of contract files, with which editors complete and check them
    #[command(after_help = "Examples:\n  \
        warpgauge schema contract > contract.schema.json\n  \
        warpgauge schema sweep\n\n\
        Editors with yaml-language-server use the schema if a contract begins with \
        `# yaml-language-server: $schema=contract.schema.json`.")]
    Schema(SchemaArgs),
    /// Print the OpenAPI specification
    #[command(after_help = "Examples:\n  \
        warpgauge openapi --yaml\n  \
        warpgauge openapi --client > warpgauge-client.json")]
    Openapi(OpenapiArgs),
    /// Print the configuration in effect, with the origin of each value
    #[command(after_help = "Examples:\n  \
        warpgauge config\n  \
        warpgauge config --defaults > warpgauge.toml")]
    Config(ConfigArgs),
}

#[derive(Debug, Args)]
pub(super) struct ServeArgs {
    /// Address to listen on; any but loopback requires an API key
    #[arg(long)]
    pub host: Option<String>,
    /// Port to listen on; 0 for any free port
    #[arg(long)]
    pub port: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct EvalArgs {
    /// Contract (.yaml, .json or .msgpack; `-` for YAML or JSON from standard input), or a kernel
    /// (.cu, .ptx, .cubin, .fatbin or .py). The contract of a kernel is the file beside it
    /// (NAME.yaml), in its first comment, or inferred
    #[arg(value_name = "CONTRACT|KERNEL")]
    pub contract: PathBuf,
    /// Accept the kernel even if a useless kernel would pass too (`allow_weak`)
    #[arg(long)]
    pub allow_weak: bool,
    /// Print the response as JSON, unchanged
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub html: HtmlFlag,
    #[command(flatten)]
    pub target: Target,
    #[command(flatten)]
    pub patience: Patience,
    /// Number of timed launches, in place of the contract's `num_trials`
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub trials: Option<u32>,
    /// Load of the device between timed launches, in place of the contract's `measure.regime`
    #[arg(long, value_name = "REGIME", value_parser = ["isolated", "sustained"])]
    pub regime: Option<String>,
    /// Directory for the outputs, which are .npy files unless the contract sets another format
    #[arg(long, value_name = "DIR")]
    pub return_outputs: Option<PathBuf>,
    /// Evaluate again whenever the kernel or the contract is saved, until Ctrl-C
    #[arg(long)]
    pub watch: bool,
    #[command(flatten)]
    pub kernel: KernelFlags,
}

#[derive(Debug, Args)]
pub(super) struct CompareArgs {
    /// Contract whose kernel is the reference, or a whole comparison, or a kernel as for `eval`
    #[arg(value_name = "REFERENCE")]
    pub reference: PathBuf,
    /// Candidates: kernels (.cu, .py, .ptx, .cubin, .fatbin), or contracts with kernels
    #[arg(value_name = "CUSTOM")]
    pub custom: Vec<PathBuf>,
    /// Name of the kernel in candidates that are source files; default: the reference's name, or
    /// the only kernel
    #[arg(long, value_name = "NAME")]
    pub kernel_name: Option<String>,
    /// Preset, which determines precision and time
    #[arg(long, value_name = "PRESET", value_parser = ["quick", "ci", "deep"])]
    pub preset: Option<String>,
    /// Absolute tolerance, in place of the file's; default: derived from the reference's rounding errors
    #[arg(long, value_name = "X")]
    pub atol: Option<f64>,
    /// Relative tolerance, in place of the file's; default: derived from the reference's rounding errors
    #[arg(long, value_name = "X")]
    pub rtol: Option<f64>,
    /// Number of timed launches in the evaluation of each kernel, in place of the file's `num_trials`
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub trials: Option<u32>,
    #[command(flatten)]
    pub assume: Assume,
    /// Accept kernels even if a useless kernel would pass too (`allow_weak`)
    #[arg(long)]
    pub allow_weak: bool,
    /// Show the differences between the code of each kernel and the reference's: SASS, or PTX
    #[arg(long)]
    pub diff: bool,
    /// Print the response as JSON, unchanged
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub html: HtmlFlag,
    #[command(flatten)]
    pub target: Target,
    #[command(flatten)]
    pub patience: Patience,
}

#[derive(Debug, Args)]
pub(super) struct ProfileArgs {
    /// Contract (.yaml, .json or .msgpack; `-` for YAML or JSON from standard input), or a kernel
    /// (.cu, .ptx, .cubin, .fatbin or .py). The contract of a kernel is the file beside it
    /// (NAME.yaml), in its first comment, or inferred
    #[arg(value_name = "CONTRACT|KERNEL")]
    pub contract: PathBuf,
    /// Metrics: ids, groups or sets, separated by commas, in place of the contract's
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub metrics: Vec<String>,
    /// Tools, in order of preference, separated by commas, or auto, in place of the contract's
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub tools: Vec<String>,
    /// Draw the roofline into this file
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Print the response as JSON, unchanged
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub html: HtmlFlag,
    #[command(flatten)]
    pub target: Target,
    #[command(flatten)]
    pub patience: Patience,
    /// Number of timed launches, in place of the contract's `num_trials`
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub trials: Option<u32>,
    #[command(flatten)]
    pub kernel: KernelFlags,
}

#[derive(Debug, Args)]
pub(super) struct CompileArgs {
    /// Kernel (.cu, .ptx, .cubin, .fatbin) or contract (.yaml, .json, .msgpack)
    pub file: PathBuf,
    /// Architecture, e.g. sm_90; default: the first device's
    #[arg(long, value_name = "SM")]
    pub arch: Option<String>,
    /// Write the image to this file
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Name of the kernel to report on, if the file has several
    #[arg(long, value_name = "NAME")]
    pub kernel_name: Option<String>,
    /// Option for the compiler; may be repeated
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true, action = ArgAction::Append)]
    pub compiler_option: Vec<String>,
    /// Print the response as JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub target: Target,
}

#[derive(Debug, Args)]
pub(super) struct DevicesArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub(super) struct CapabilitiesArgs {
    /// Print the response of `GET /capabilities` as JSON, unchanged
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Clone, Subcommand)]
pub(super) enum ToolchainCommand {
    /// List the compilers that were found, the best first, with their paths
    Show(ToolchainShow),
    /// Install NVRTC into the data directory with pip, and further tools on request
    Install(ToolchainInstall),
}

#[derive(Debug, Clone, Args)]
pub(super) struct ToolchainShow {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Clone, Args)]
pub(super) struct ToolchainInstall {
    /// After the installation, print the compilers as JSON, like `show --json`
    #[arg(long)]
    pub json: bool,
    /// Major version of CUDA; default: both, or none with --with if a version is installed
    #[arg(long, value_parser = clap::value_parser!(u32).range(12..=13))]
    pub cuda: Option<u32>,
    /// Further tools to install
    #[arg(long = "with", value_name = "TOOL", value_parser = ["nvcc", "triton", "torch"])]
    pub with: Vec<String>,
}

#[derive(Debug, Args)]
pub(super) struct ImportArgs {
    /// File to read; `-` for standard input
    pub file: PathBuf,
    /// Earlier report to compare with: print the changes since, ordered by how much of the time
    /// they explain
    #[arg(long, value_name = "FILE")]
    pub against: Option<PathBuf>,
    /// Metrics, groups or sets, by their ids in the catalogue; default: all
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub metrics: Vec<String>,
    #[command(flatten)]
    pub html: HtmlFlag,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub(super) struct ExplainArgs {
    /// Code, e.g. `zeros_pass`; without a code, list all codes
    pub code: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct CompletionsArgs {
    /// Name of the shell
    pub shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub(super) struct ManualArgs {
    /// Directory for the pages; it is created if it does not exist
    pub directory: PathBuf,
}

#[derive(Debug, Args)]
pub(super) struct OpenapiArgs {
    /// Print the variant for client generators: JSON bodies only
    #[arg(long)]
    pub client: bool,
    /// Print YAML
    #[arg(long, conflicts_with = "json")]
    pub yaml: bool,
    /// Print JSON (the default)
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub(super) struct ConfigArgs {
    /// Print JSON: each setting with its value and origin
    #[arg(long, conflicts_with = "defaults")]
    pub json: bool,
    /// Print the default configuration with comments, as a template for a file
    #[arg(long)]
    pub defaults: bool,
}

impl Global {
    pub(super) fn overrides(&self) -> CliOverrides {
        CliOverrides {
            device: self.device.clone(),
            log_level: self.log_level.clone(),
            ..CliOverrides::default()
        }
    }
}

fn after_help() -> String {
    let mut text = String::from(
        "Examples:\n  \
         warpgauge serve                  # API, documented at http://127.0.0.1:8000/docs\n  \
         warpgauge eval contract.yaml     # evaluate on this machine\n  \
         warpgauge --device emulator eval contract.yaml   # without a GPU\n\n\
         Exit codes:\n",
    );
    for (exit, meaning) in Exit::TABLE {
        text.push_str(&format!("  {:>3}  {meaning}\n", exit.code()));
    }
    text.push_str(
        "\nEnvironment: HOST, PORT, GPU_SERVICE_HOST, GPU_SERVICE_PORT, GPU_SERVICE_API_KEY,\n\
         GPU_DEVICE, MAX_WORKERS, ENABLE_DEVICE_METRICS, LOG_LEVEL,\n",
    );
    text.push_str(
        "WARPGAUGE_API_KEYS, WARPGAUGE_ADMIN_KEYS, WARPGAUGE_HANDLE_KEYS, WARPGAUGE_FUNCTION_KEYS,
\
         WARPGAUGE_PICKLE_KEYS, WARPGAUGE_ALLOWED_HOSTS, WARPGAUGE_PUBLIC_URL, WARPGAUGE_WEBHOOK_SECRET,
\
         WARPGAUGE_TOOLCHAIN, WARPGAUGE_PYTHON, WARPGAUGE_TOOLS, WARPGAUGE_DATA_DIR,\n\
         WARPGAUGE_EMULATOR, WARPGAUGE_DATABASE_URL; WARPGAUGE_API_KEY, WARPGAUGE_CA_CERT for servers.",
    );
    text
}

/// Helper functions for the tests of several commands.
#[cfg(test)]
pub(super) mod testing {
    use serde_json::{Map, Value};

    use super::{Cli, Command, Parser};

    /// Parses these arguments as a command. They do not include the name of the program.
    pub(in super::super) fn command<A: AsRef<str>>(arguments: &[A]) -> Command {
        let arguments = arguments.iter().map(AsRef::as_ref);
        Cli::parse_from(std::iter::once("warpgauge").chain(arguments)).command
    }

    /// Returns the contract after `apply` has applied flags to its fields.
    pub(in super::super) fn with_flags(
        contract: Value,
        apply: impl FnOnce(&mut Map<String, Value>),
    ) -> Value {
        let Value::Object(mut fields) = contract else { panic!("an object") };
        apply(&mut fields);
        Value::Object(fields)
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use warpgauge_config::settings::SETTINGS;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn help_names_every_environment_variable_of_the_configuration() {
        let help = Cli::command().render_long_help().to_string();
        for name in SETTINGS.iter().flat_map(|setting| [setting.env, setting.service_env]) {
            let name = name.unwrap_or_default();
            assert!(help.contains(name), "{name}");
        }
    }

    #[test]
    fn global_flags_may_stand_after_the_command() {
        let cli = Cli::parse_from(["warpgauge", "eval", "c.yaml", "--quiet", "--device", "0"]);
        assert!(cli.global.quiet);
        assert_eq!(cli.global.device.as_deref(), Some("0"));
    }
}
