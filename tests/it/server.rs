//! A server for one test, and HTTP requests to it.
//!
//! By default the program under test is that which cargo built, on the emulator. On a GPU host
//! without Rust the environment has its place: `WARPGAUGE_BIN` (the program), `WARPGAUGE_TEST_ROOT`
//! (a directory with `kernels/` and `openapi/`), `WARPGAUGE_TEST_DEVICE` (the value of `--device`).

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

/// Longest wait for a server to listen or to end.
const PATIENCE: Duration = Duration::from_secs(120);

/// Settings of the environment that a developer may have, and that a test must not see.
const SETTINGS: [&str; 21] = [
    "GPU_SERVICE_HOST",
    "GPU_SERVICE_PORT",
    "GPU_SERVICE_API_KEY",
    "HOST",
    "PORT",
    "GPU_DEVICE",
    "MAX_WORKERS",
    "ENABLE_DEVICE_METRICS",
    "LOG_LEVEL",
    "DATABASE_URL",
    "WARPGAUGE_CA_CERT",
    "WARPGAUGE_DATABASE_URL",
    "WARPGAUGE_ADMIN_KEYS",
    "WARPGAUGE_HANDLE_KEYS",
    "WARPGAUGE_ALLOWED_HOSTS",
    "WARPGAUGE_API_KEYS",
    "WARPGAUGE_FUNCTION_KEYS",
    "WARPGAUGE_PICKLE_KEYS",
    "WARPGAUGE_WEBHOOK_SECRET",
    "WARPGAUGE_PUBLIC_URL",
    "RUST_LOG",
];

/// Path of the program under test.
pub fn program_path() -> PathBuf {
    std::env::var_os("WARPGAUGE_BIN")
        .map_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_warpgauge")), PathBuf::from)
}

/// The program under test, without the developer's settings.
pub fn program() -> Command {
    without_settings(Command::new(program_path()))
}

/// The same, started by another program, which becomes it.
pub fn program_through(other: &[&str]) -> Command {
    let mut command = Command::new(other[0]);
    command.args(&other[1..]).arg(program_path());
    without_settings(command)
}

fn without_settings(mut command: Command) -> Command {
    for setting in SETTINGS {
        command.env_remove(setting);
    }
    command.env("NO_COLOR", "1");
    command
}

/// The repository, or the bundle that stands for it.
pub fn root() -> PathBuf {
    std::env::var_os("WARPGAUGE_TEST_ROOT")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from)
}

/// What `--device` gets.
pub fn device() -> String {
    std::env::var("WARPGAUGE_TEST_DEVICE").unwrap_or_else(|_| "emulator".to_owned())
}

/// Whether this run is on the emulated device, and not on a GPU.
pub fn emulated() -> bool {
    device() == "emulator"
}

/// An HTTP answer.
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// Headers, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body as text.
    pub text: String,
    /// The body as JSON; `null` if it is not.
    pub json: Value,
}

impl Answer {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// A directory for the data of one server, whose jobs are its own. What compilers made and what was
/// installed is shared with all others.
pub fn data_directory() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    share_caches(directory.path());
    directory
}

/// Has a data directory use what compilers made for others, and what was installed.
pub fn share_caches(data: &Path) {
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let shared = std::env::var_os("XDG_DATA_HOME")
        .map_or_else(|| home.join(".local/share"), PathBuf::from)
        .join("warpgauge");
    for name in ["cubins", "toolchain"] {
        let place = shared.join(name);
        if std::fs::create_dir_all(&place).is_ok() {
            std::os::unix::fs::symlink(&place, data.join(name)).unwrap();
        }
    }
}

/// A running server; dropping it stops the server.
pub struct Server {
    child: Option<Child>,
    /// Goes with the server, unless it was given from outside.
    _data: Option<tempfile::TempDir>,
    agent: ureq::Agent,
    output: Arc<Mutex<String>>,
    /// Base address, e.g. `http://127.0.0.1:41234`.
    pub url: String,
}

impl Server {
    /// Starts a server with default settings on a free port.
    pub fn start() -> Self {
        Self::start_with(&[], &[])
    }

    /// Starts a server with a configuration file of the given content.
    pub fn start_configured(config: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("config.toml");
        std::fs::write(&file, config).unwrap();
        Self::start_with(&["--config", file.to_str().unwrap()], &[])
    }

    /// Starts a server with more arguments and environment variables.
    pub fn start_with(arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let data = data_directory();
        let mut server = Self::start_in(data.path(), arguments, environment);
        server._data = Some(data);
        server
    }

    /// Starts a server on data that were there before, and stay.
    pub fn start_in(data: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        Self::start_by(program(), data, arguments, environment)
    }

    /// The same with the program started in a way of one's own.
    pub fn start_by(
        mut program: Command,
        data: &Path,
        arguments: &[&str],
        environment: &[(&str, &str)],
    ) -> Self {
        let any_port = if arguments.contains(&"--port") { &[][..] } else { &["--port", "0"] };
        let chosen = device();
        let any_device =
            if arguments.contains(&"--device") { &[][..] } else { &["--device", &chosen] };
        let mut child = program
            .args(["serve", "--host", "127.0.0.1"])
            .args(any_device)
            .args(any_port)
            .args(arguments)
            .env("WARPGAUGE_DATA_DIR", data)
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let output = Arc::new(Mutex::new(String::new()));
        let (sender, receiver) = mpsc::channel();
        drain(child.stdout.take().unwrap(), &output, sender.clone());
        drain(child.stderr.take().unwrap(), &output, sender);
        let Ok(url) = receiver.recv_timeout(PATIENCE) else {
            let _ = child.kill();
            let status = child.wait();
            panic!("the server does not listen ({status:?}):\n{}", output.lock().unwrap());
        };
        let agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(PATIENCE))
            .build()
            .into();
        Self { child: Some(child), _data: None, agent, output, url }
    }

    /// Process id of the server.
    pub fn pid(&self) -> u32 {
        self.child.as_ref().expect("the server runs").id()
    }

    /// Gets a path.
    pub fn get(&self, path: &str) -> Answer {
        self.finish(path, self.agent.get(format!("{}{path}", self.url)).call())
    }

    /// Gets a path with headers.
    pub fn get_with(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        let mut request = self.agent.get(format!("{}{path}", self.url));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.finish(path, request.call())
    }

    /// Posts a body with headers.
    pub fn post(&self, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        let mut request = self.agent.post(format!("{}{path}", self.url));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.finish(path, request.send(body))
    }

    /// Posts JSON. Reports come without placeholders.
    pub fn post_json(&self, path: &str, body: &Value) -> Answer {
        let bytes = serde_json::to_vec(body).unwrap();
        let headers = [("content-type", "application/json"), ("prefer", "return=minimal")];
        self.post(path, &headers, &bytes)
    }

    /// Evaluates a contract that the server must accept, and returns the report.
    pub fn evaluate(&self, body: &Value) -> Value {
        let answer = self.post_json("/evaluate", body);
        assert_eq!(answer.status, 200, "{}\n{}", answer.text, self.output());
        answer.json
    }

    /// What the server printed so far.
    pub fn output(&self) -> String {
        self.output.lock().unwrap().clone()
    }

    /// Asks the server to end, as an operator would.
    pub fn terminate(&self) {
        signal(self.pid(), rustix::process::Signal::TERM);
    }

    /// Ends the server without a warning.
    pub fn kill(self) {
        signal(self.pid(), rustix::process::Signal::KILL);
        let (status, output) = self.wait();
        assert!(!status.success(), "it was killed:\n{output}");
    }

    /// Deletes a path.
    pub fn delete(&self, path: &str) -> Answer {
        self.finish(path, self.agent.delete(format!("{}{path}", self.url)).call())
    }

    /// Waits for the server to end.
    pub fn wait(mut self) -> (ExitStatus, String) {
        let child = self.child.take().expect("the server runs");
        let status = wait_for(child).unwrap_or_else(|| {
            panic!("the server does not end within {PATIENCE:?}:\n{}", self.output())
        });
        (status, self.output())
    }

    fn finish(
        &self,
        path: &str,
        response: Result<ureq::http::Response<ureq::Body>, ureq::Error>,
    ) -> Answer {
        let mut response =
            response.unwrap_or_else(|error| panic!("{path}: {error}\n{}", self.output()));
        let headers = response
            .headers()
            .iter()
            .map(|(name, value)| {
                (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
            })
            .collect();
        let text = response
            .body_mut()
            .with_config()
            .limit(512 << 20)
            .read_to_string()
            .unwrap_or_else(|error| panic!("{path}: {error}\n{}", self.output()));
        let json = serde_json::from_str(&text).unwrap_or(Value::Null);
        Answer { status: response.status().as_u16(), headers, text, json }
    }
}

/// Posts JSON to a server that may go away; `None` if it did before its answer.
pub fn try_post(url: &str, path: &str, headers: &[(&str, &str)], body: &Value) -> Option<Answer> {
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .http_status_as_error(false)
        .timeout_global(Some(PATIENCE))
        .build()
        .into();
    let mut request = agent.post(format!("{url}{path}"));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let bytes = serde_json::to_vec(body).unwrap();
    let mut response = request.header("content-type", "application/json").send(&bytes[..]).ok()?;
    let text = response.body_mut().read_to_string().ok()?;
    let json = serde_json::from_str(&text).unwrap_or(Value::Null);
    Some(Answer { status: response.status().as_u16(), headers: Vec::new(), text, json })
}

impl Drop for Server {
    fn drop(&mut self) {
        let Some(child) = self.child.take() else { return };
        signal(child.id(), rustix::process::Signal::TERM);
        if wait_for(child).is_none() && !thread::panicking() {
            panic!("the server does not end within {PATIENCE:?}:\n{}", self.output());
        }
    }
}

/// Waits for a child with a limit; kills it after that.
fn wait_for(mut child: Child) -> Option<ExitStatus> {
    let pid = child.id();
    let (sender, receiver) = mpsc::channel();
    let waiter = thread::spawn(move || {
        let _ = sender.send(child.wait());
    });
    let status = receiver.recv_timeout(PATIENCE).ok();
    if status.is_none() {
        signal(pid, rustix::process::Signal::KILL);
    }
    let _ = waiter.join();
    status.and_then(Result::ok)
}

fn signal(pid: u32, signal: rustix::process::Signal) {
    let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    if let Some(pid) = pid {
        // The process may have ended already.
        let _ = rustix::process::kill_process(pid, signal);
    }
}

/// Reads a stream to its end, and sends the first address it names.
fn drain(stream: impl Read + Send + 'static, output: &Arc<Mutex<String>>, sender: Sender<String>) {
    let output = Arc::clone(output);
    thread::spawn(move || {
        let mut sender = Some(sender);
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            if let Some((_, rest)) = line.split_once("listens on ")
                && let Some(url) = rest.split([' ', '"']).next()
                && let Some(sender) = sender.take()
            {
                let _ = sender.send(url.trim_end_matches('/').to_owned());
            }
            let mut output = output.lock().unwrap();
            output.push_str(&line);
            output.push('\n');
        }
    });
}

/// Asks again until the answer is as wanted; the asking itself is the pause.
pub fn until<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(start.elapsed() < PATIENCE, "{what}: not within {PATIENCE:?}");
    }
}
