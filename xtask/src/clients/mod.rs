//! `cargo xtask clients`: tests the HTTP API with third-party programs.
//!
//! Four generators create clients in four languages from the output of `warpgauge openapi
//! --client`. Each client evaluates a kernel on a running server. An agent library, a fuzzer, a
//! browser and the gate use the same server. The programs for which the gate writes reports read
//! these reports. Python and npm packages are installed below `target/clients`.

mod image;
mod installed;
mod package;
mod tools;

pub use tools::chromium;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::product::{self, Profile};
use crate::server::Server;
use crate::shell::{self, Steps};
use tools::Tools;

/// Duration of the fuzzer, seconds.
const FUZZ_SECONDS: &str = "120";

/// Maximum time that the fuzzer waits for an answer, seconds. `fuzz_hooks.py` limits the time of
/// each kernel in a request, but a suite runs several kernels and may wait for earlier jobs.
const FUZZ_ANSWER_SECONDS: &str = "300";

/// Options of `clients`.
#[derive(clap::Args)]
pub struct Options {
    /// Checks to run. Default: all.
    #[arg(value_enum)]
    only: Vec<Check>,
    /// URL of a server to use instead of a new one, e.g. `http://127.0.0.1:8000`.
    #[arg(long)]
    server: Option<String>,
}

impl Options {
    /// Returns options that run all checks on a new server.
    pub fn all() -> Self {
        Self { only: Vec::new(), server: None }
    }
}

/// A check of the API or of a package.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Check {
    /// openapi-spec-validator.
    Validator,
    /// openapi-python-client.
    PythonClient,
    /// openapi-generator, language Python.
    Generator,
    /// openapi-typescript.
    Typescript,
    /// openapi-generator, language Java.
    Java,
    /// progenitor, language Rust.
    Rust,
    /// The metrics parser of prometheus-client.
    Metrics,
    /// The official Python SDK of the Model Context Protocol, over HTTP and standard streams.
    Mcp,
    /// The package of `python/`, from a wheel that includes the program.
    PythonPackage,
    /// schemathesis.
    Fuzzer,
    /// Swagger UI in Chromium.
    Browser,
    /// The consumers of the gate's reports: parsers and schemas of the formats, and Chromium.
    GateReports,
    /// GitHub's and GitLab's file schemas, for the action and the snippets.
    CiFiles,
    /// hadolint, and the container image if a builder is available.
    Image,
}

/// All checks. The fuzzer is last, because it leaves jobs in the server's queue.
const ALL: [Check; 14] = [
    Check::Validator,
    Check::PythonClient,
    Check::Generator,
    Check::Typescript,
    Check::Java,
    Check::Rust,
    Check::Metrics,
    Check::Mcp,
    Check::PythonPackage,
    Check::Browser,
    Check::GateReports,
    Check::CiFiles,
    Check::Image,
    Check::Fuzzer,
];

/// Paths and tools of the checks.
struct Checks {
    tools: Tools,
    /// Output of `warpgauge openapi --client`.
    spec: PathBuf,
    /// Directory of the checks' scripts.
    scripts: PathBuf,
    /// Directory for the fuzzer's reports.
    reports: PathBuf,
    /// Directory for the gate's suite and reports.
    gate: PathBuf,
    /// Data directory of the program that the agent library starts.
    agent: PathBuf,
    /// Directory in which the Python package is installed and tested.
    package: PathBuf,
    /// Target directory of the Rust client.
    rust_target: PathBuf,
    url: String,
}

/// Installs the tools, starts a server on the emulated device, and runs the checks.
pub fn run(options: &Options) -> Result<()> {
    let mut steps = Steps::default();
    let home = product::target_dir()?.join("clients");
    fs::create_dir_all(&home).with_context(|| format!("cannot create {}", home.display()))?;
    let tools = steps.step("tools of the clients", || Tools::install(&home))?;

    let mut own_server = None;
    let url = match &options.server {
        Some(url) => url.trim_end_matches('/').to_owned(),
        None => {
            let server = steps.step("server", || start_server(&home))?;
            own_server.insert(server).url.clone()
        }
    };
    let context = Checks {
        tools,
        spec: client_document(&home)?,
        scripts: shell::root().join("xtask/clients"),
        reports: home.join("reports"),
        gate: home.join("gate"),
        agent: home.join("agent"),
        package: home.join("package"),
        rust_target: home.join("rust"),
        url,
    };
    let selected = if options.only.is_empty() { &ALL[..] } else { &options.only };
    for check in selected {
        let name = clap::ValueEnum::to_possible_value(check)
            .map_or(String::new(), |value| value.get_name().to_owned());
        steps.step(&name, || context.check(*check))?;
    }
    Ok(())
}

/// Writes the OpenAPI document for client generators and returns its path.
fn client_document(home: &Path) -> Result<PathBuf> {
    let program = product::build(Profile::Test)?;
    let document = shell::capture(Command::new(program).args(["openapi", "--client"]))?;
    let path = home.join("warpgauge-client.json");
    fs::write(&path, document).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

fn start_server(home: &Path) -> Result<Server> {
    let program = product::build(Profile::Test)?;
    product::ensure_toolchain(&program)?;
    let arguments = ["--device".to_owned(), "emulator".to_owned()];
    let mut command = Command::new(&program);
    command.env("WARPGAUGE_DATA_DIR", data_directory(home)?);
    Server::start_command(command, &arguments, &home.join("server.log"))
}

/// Returns an empty data directory. So no job of an earlier run waits in it. Links in the directory
/// lead to the user's installed and cached compilers.
fn data_directory(home: &Path) -> Result<PathBuf> {
    let data = home.join("data");
    if data.exists() {
        fs::remove_dir_all(&data).with_context(|| format!("cannot remove {}", data.display()))?;
    }
    let user = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let shared = std::env::var_os("XDG_DATA_HOME")
        .map_or_else(|| user.join(".local/share"), PathBuf::from)
        .join("warpgauge");
    fs::create_dir_all(&data).with_context(|| format!("cannot create {}", data.display()))?;
    for name in ["cubins", "toolchain"] {
        let place = shared.join(name);
        fs::create_dir_all(&place).with_context(|| format!("cannot create {}", place.display()))?;
        std::os::unix::fs::symlink(&place, data.join(name))
            .with_context(|| format!("cannot link {}", place.display()))?;
    }
    Ok(data)
}

impl Checks {
    fn check(&self, check: Check) -> Result<()> {
        match check {
            Check::Validator => {
                shell::run(self.tools.python_program("openapi-spec-validator").arg(&self.spec))
            }
            Check::PythonClient => self.python_script("eval_openapi_python_client.py"),
            Check::Generator => self.python_script("eval_openapi_generator.py"),
            Check::Typescript => self.typescript(),
            Check::Java => {
                tools::java_annotations()?;
                self.python_script("eval_java.py")
            }
            Check::Rust => self.rust(),
            Check::Metrics => shell::run(
                self.tools
                    .python_program("python")
                    .arg(self.scripts.join("read_metrics.py"))
                    .arg(&self.url),
            ),
            Check::Mcp => self.agent(),
            Check::PythonPackage => package::check(&self.package, &data_directory(&self.package)?),
            Check::Fuzzer => self.fuzzer(),
            Check::Browser => self.browser(),
            Check::GateReports => self.gate_reports(),
            Check::CiFiles => self.ci_files(),
            Check::Image => image::check(self.tools.python_program("hadolint")),
        }
    }

    /// Runs a script that generates a Python client from the specification and evaluates a kernel
    /// with it.
    fn python_script(&self, script: &str) -> Result<()> {
        shell::run(
            self.tools
                .python_program("python")
                .arg(self.scripts.join(script))
                .arg(&self.spec)
                .arg(&self.url),
        )
    }

    fn typescript(&self) -> Result<()> {
        shell::run(
            self.tools
                .node()
                .arg(self.scripts.join("eval_typescript.mjs"))
                .arg(&self.spec)
                .arg(&self.url),
        )
    }

    /// Runs the Rust client. It is a separate crate with a separate lock file, and its build script
    /// generates the client.
    fn rust(&self) -> Result<()> {
        shell::run(
            shell::cargo()
                .args(["run", "--quiet", "--locked", "--manifest-path"])
                .arg(self.scripts.join("rust/Cargo.toml"))
                .arg("--target-dir")
                .arg(&self.rust_target)
                .env("WARPGAUGE_CLIENT_SPEC", &self.spec)
                .arg("--")
                .arg(&self.spec)
                .arg(&self.url),
        )
    }

    /// Uses an agent library with the server, and with a program that the library starts.
    fn agent(&self) -> Result<()> {
        let program = product::build(Profile::Test)?;
        let data = data_directory(&self.agent)?;
        shell::run(
            self.tools
                .python_program("python")
                .arg(self.scripts.join("mcp_client.py"))
                .arg(&self.spec)
                .arg(program)
                .arg(data)
                .arg(&self.url),
        )
    }

    fn fuzzer(&self) -> Result<()> {
        fs::create_dir_all(&self.reports)
            .with_context(|| format!("cannot create {}", self.reports.display()))?;
        let checks = [
            "not_a_server_error",
            "status_code_conformance",
            "content_type_conformance",
            "response_headers_conformance",
            "response_schema_conformance",
        ];
        shell::run(
            self.tools
                .python_program("schemathesis")
                .env("SCHEMATHESIS_HOOKS", "fuzz_hooks")
                .env("PYTHONPATH", &self.scripts)
                .env("PYTHONDONTWRITEBYTECODE", "1")
                .arg("run")
                .arg(&self.spec)
                .args(["--url", &self.url, "--checks", &checks.join(",")])
                .args(["--phases", "examples,coverage,fuzzing", "--max-time", FUZZ_SECONDS])
                .args(["--request-timeout", FUZZ_ANSWER_SECONDS, "--seed", "1", "--no-shrink"])
                .args(["--report", "junit", "--report-dir"])
                .arg(&self.reports)
                .current_dir(&self.reports),
        )
    }

    fn browser(&self) -> Result<()> {
        let chromium = tools::chromium()?;
        let report =
            shell::root().join("tests/fixtures/profile/ncu/2025.3.1-h200-raw_full_base.csv");
        let script = self.scripts.join("browser.mjs");
        shell::run(self.tools.node().arg(script).arg(&self.url).arg(chromium).arg(report))
    }

    fn ci_files(&self) -> Result<()> {
        let script = self.scripts.join("ci_files.py");
        shell::run(self.tools.python_program("python").arg(script).arg(self.gate.join("ci")))
    }

    /// Lets the gate write reports. Reads them with the programs for which they are written.
    fn gate_reports(&self) -> Result<()> {
        let chromium = tools::chromium()?;
        let program = product::build(Profile::Test)?;
        shell::run(
            self.tools
                .python_program("python")
                .arg(self.scripts.join("gate_reports.py"))
                .arg(program)
                .arg(&self.url)
                .arg(&self.gate),
        )?;
        let page = self.gate.join("report/gate.html");
        shell::run(
            self.tools.node().arg(self.scripts.join("gate_page.mjs")).arg(page).arg(chromium),
        )
    }
}
