//! Kernels in a watched folder, and kernels sent to a repository.

mod folder;
mod init;
mod kills;
mod mailbox;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::Value;

use crate::server::{device, program, until};

/// A watcher of a folder; dropping it kills it.
pub struct Watching {
    child: Child,
}

impl Watching {
    /// Starts one, and waits until it watches.
    pub fn start(folder: &Path, data: &Path, arguments: &[&str]) -> Self {
        let (watching, said) = Self::begin(folder, data, arguments);
        let line = said.recv_timeout(Duration::from_secs(120)).expect("it watches");
        assert!(line.contains("watching") || line.contains("scanning"), "{line}");
        watching
    }

    /// Starts one; gives what it says.
    pub fn begin(folder: &Path, data: &Path, arguments: &[&str]) -> (Self, mpsc::Receiver<String>) {
        let mut child = program()
            .arg("watch")
            .arg(folder)
            .args(["--device", &device()])
            .args(arguments)
            .env("WARPGAUGE_DATA_DIR", data)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let (sender, said) = mpsc::channel();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        (Self { child }, said)
    }

    /// Ends it by SIGTERM.
    pub fn end(mut self) -> ExitStatus {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        self.child.wait().unwrap()
    }

    /// Waits for its own end.
    pub fn wait(mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }

    /// Ends it by SIGKILL.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A folder to watch.
pub fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let kernels = folder.path().join("kernels");
    std::fs::create_dir(&kernels).unwrap();
    (folder, kernels)
}

/// The result of a name, once it is there.
pub fn result(folder: &Path, name: &str) -> Value {
    let path = folder.join("results").join(format!("{name}.json"));
    until(&format!("{}", path.display()), || {
        let text = std::fs::read(&path).ok()?;
        Some(serde_json::from_slice(&text).expect("a result is whole when it appears"))
    })
}

/// Names in a directory.
pub fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// A small kernel with its contract in its first comment.
pub fn increment(number: usize) -> String {
    format!(
        "// warpgauge contract:\n\
         // kernel:\n\
         //   io:\n\
         //     args: [{{name: x, type: tensor, role: inout, tensor_spec: {{shape: [64], init: {{kind: arange}}}}}}]\n\
         //     launch: {{grid: {{x: 1}}, block: {{x: 64}}}}\n\
         // num_trials: 1\n\
         // file {number}\n\
         extern \"C\" __global__ void increment(float* x) {{ x[threadIdx.x] += 1.0f; }}\n"
    )
    .replace(&format!("// file {number}\n"), &format!("\n// file {number}\n"))
}
