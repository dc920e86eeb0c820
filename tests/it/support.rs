//! Running the built program.

use std::io::{BufRead, BufReader, Read};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// A command with an environment of its own: no setting leaks in from outside.
pub fn warpgauge(home: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(crate::server::program_path());
    command.args(args).env_clear().env("HOME", home).stdin(Stdio::null());
    command
}

pub fn run(args: &[&str]) -> (i32, String, String) {
    let home = tempfile::tempdir().unwrap();
    outcome(warpgauge(home.path(), args).output().unwrap())
}

pub fn outcome(output: Output) -> (i32, String, String) {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    (output.status.code().expect("an exit code"), text(output.stdout), text(output.stderr))
}

/// Whether this `device.kind` is a GPU's, for a test that checks something else on either kind: what it
/// does not check here is told.
pub fn on_gpu(kind: &Value) -> bool {
    let (on_gpu, lacks) = match kind.as_str() {
        Some("cuda") => (true, "the emulated device"),
        Some("emulator") => (false, "a GPU"),
        other => panic!("device.kind {other:?}"),
    };
    in_part!(lacks);
    on_gpu
}

/// The next request of a connection: its head and its body.
pub fn next_request(stream: &TcpStream) -> (String, Vec<u8>) {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert_ne!(reader.read_line(&mut head).unwrap(), 0, "the request ends early");
    }
    let length = head
        .lines()
        .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).unwrap();
    (head, body)
}

/// The toolchain that the program finds. What was installed is the user's own, which every server of these
/// tests finds.
pub fn toolchain() -> Value {
    let shown = crate::server::program().args(["toolchain", "show", "--json"]).output().unwrap();
    serde_json::from_slice(&shown.stdout).unwrap_or_default()
}

fn finds(part: &str) -> bool {
    toolchain()[part].is_object()
}

/// Whether the program finds Triton.
pub fn has_triton() -> bool {
    finds("triton")
}

/// Whether the program finds PyTorch.
pub fn has_torch() -> bool {
    finds("torch")
}

/// Whether the program finds nvcc.
pub fn has_nvcc() -> bool {
    finds("nvcc")
}
