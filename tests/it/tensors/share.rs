//! Other processes change a tensor in place, and all processes see the change.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::Value;

use super::*;

/// A process of no relation that has a tensor open.
pub struct Stranger {
    child: Child,
    asked: ChildStdin,
    said: BufReader<ChildStdout>,
    /// The handle that it opened.
    pub handle: Value,
}

impl Stranger {
    /// Has a new process open a tensor; it multiplies by a factor at every turn.
    pub fn open(server: &Server, id: &str, factor: f32) -> Self {
        let handle = server.get(&format!("/tensors/{id}/handle"));
        assert_eq!(handle.status, 200, "{}\n{}", handle.text, server.output());
        let mut child = Command::new("python3")
            .args(["-c", include_str!("open.py")])
            .arg(factor.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3 starts");
        let mut asked = child.stdin.take().unwrap();
        writeln!(asked, "{}", handle.json).unwrap();
        let said = BufReader::new(child.stdout.take().unwrap());
        let mut this = Self { child, asked, said, handle: handle.json };
        assert_eq!(this.line(), "open");
        this
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.said.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }

    /// Multiplies; what it found before.
    pub fn turn(&mut self) -> Vec<f32> {
        writeln!(self.asked, "turn").unwrap();
        let line = self.line();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `shared_tensor.mul_(2.0)`: all processes see this change.
fn all_see_what_one_changes(cuda_device: i32) {
    let server = Server::start();
    let values = [1.0, -0.5, 3.25];
    let id = held(&server, cuda_device, &values);
    let mut first = Stranger::open(&server, &id, 2.0);
    let mut second = Stranger::open(&server, &id, 10.0);
    assert_eq!(first.turn(), values);
    assert_eq!(second.turn(), [2.0, -1.0, 6.5], "the third process sees it");
    assert_eq!(first.turn(), [20.0, -10.0, 65.0], "and the second what that one did");
    assert_eq!(floats(&server, &id), [40.0, -20.0, 130.0]);
    assert_eq!(server.get(&format!("/tensors/{id}")).json["leases"], 2);

    // The id is gone at once; the memory stays for those who have it open.
    let deleted = server.delete(&format!("/tensors/{id}")).json;
    assert_eq!(deleted["leases"], 2, "{deleted}");
    assert_eq!(server.get(&format!("/tensors/{id}")).status, 404);
    assert_eq!(first.turn(), [40.0, -20.0, 130.0]);
    assert_eq!(second.turn(), [80.0, -40.0, 260.0]);
    for stranger in [&first, &second] {
        assert!(server.get("/tensors").json["held_bytes"].as_u64().unwrap() > 0);
        let lease = stranger.handle["lease_id"].as_str().unwrap();
        assert_eq!(server.delete(&format!("/tensor-leases/{lease}")).status, 200);
    }
    assert_eq!(server.get("/tensors").json["held_bytes"], 0);
}

#[test]
fn a_tensor_on_a_device_is_one_for_all_processes() {
    all_see_what_one_changes(0);
}

#[test]
fn a_tensor_in_the_hosts_memory_is_one_for_all_processes() {
    all_see_what_one_changes(-1);
}

/// What a handle opens is that tensor, and not a neighbour.
#[test]
fn small_tensors_have_memory_of_their_own() {
    let server = Server::start();
    let ids: Vec<String> = (0..4).map(|at| held(&server, 0, &[at as f32 + 1.0])).collect();
    for (at, id) in ids.iter().enumerate() {
        assert_eq!(Stranger::open(&server, id, -1.0).turn(), [at as f32 + 1.0]);
    }
    for (at, id) in ids.iter().enumerate() {
        assert_eq!(floats(&server, id), [-(at as f32) - 1.0]);
    }
}
