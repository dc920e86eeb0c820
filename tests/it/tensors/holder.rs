//! Processes that hold shared tensors and die.

use std::thread;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::share::Stranger;
use super::*;
use crate::children::descendants;
use crate::server::until;

/// Processes that hold tensors.
pub(super) fn holders(server: &Server) -> Vec<u32> {
    let is_holder = |process: &u32| {
        let command = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&command).contains("__holder")
    };
    descendants(server.pid()).into_iter().filter(is_holder).collect()
}

pub(super) fn kill(process: u32) {
    let process = Pid::from_raw(process.cast_signed()).unwrap();
    kill_process(process, Signal::KILL).unwrap();
}

fn what_a_dead_holder_held_is_gone(cuda_device: i32) {
    let server = Server::start();
    assert!(holders(&server).is_empty(), "none is started before it is needed");
    let id = held(&server, cuda_device, &[1.0]);
    let other = held(&server, -1 - cuda_device, &[2.0]);
    let all = holders(&server);
    let place = |process: &u32| {
        let command = std::fs::read(format!("/proc/{process}/cmdline")).unwrap();
        String::from_utf8_lossy(&command).contains("--device") == (cuda_device >= 0)
    };
    let of_place: Vec<u32> = all.iter().copied().filter(place).collect();
    assert_eq!((all.len(), of_place.len()), (2, 1));
    let mut open = Stranger::open(&server, &id, 2.0);
    kill(of_place[0]);
    let path = format!("/tensors/{id}");
    let gone = until("the server notices", || {
        Some(server.get(&path)).filter(|answer| answer.status != 200)
    });
    assert_eq!((gone.status, &gone.json["code"]), (410, &json!("holder_died")), "{}", gone.text);
    for path in [format!("{path}/data"), format!("{path}/handle")] {
        assert_eq!(server.get(&path).status, 410, "{path}");
    }
    let lease = open.handle["lease_id"].as_str().unwrap().to_owned();
    let renewed = server.delete(&format!("/tensor-leases/{lease}"));
    assert_eq!(renewed.json["code"], "no_such_lease");
    // What a process has mapped it keeps, here.
    if cuda_device < 0 {
        assert_eq!(open.turn(), [1.0]);
        assert!(!std::path::Path::new(open.handle["shared_memory"].as_str().unwrap()).exists());
    }
    assert_eq!(floats(&server, &other), [2.0], "another's holder is another");
    // The next who needs one has a new one.
    let again = held(&server, cuda_device, &[3.0]);
    assert_eq!(floats(&server, &again), [3.0]);
    assert_eq!(server.get("/tensors").json["count"], 2);
}

#[test]
fn what_the_dead_holder_of_a_device_held_is_gone() {
    what_a_dead_holder_held_is_gone(0);
}

#[test]
fn what_the_dead_holder_of_the_host_held_is_gone() {
    what_a_dead_holder_held_is_gone(-1);
}

/// Whatever moment the process is killed at: an upload succeeds or leaves nothing, and the next one
/// succeeds.
#[test]
fn a_holder_that_dies_during_uploads_leaves_nothing_behind() {
    let server = Server::start();
    let values = vec![1.0; 4 << 20];
    held(&server, -1, &[0.0]);
    let killed = thread::scope(|scope| {
        let uploads = scope.spawn(|| {
            let statuses = (0..6).map(|_| array(&server, -1, &values, json!({})).status);
            statuses.collect::<Vec<_>>()
        });
        let mut killed = 0;
        while !uploads.is_finished() {
            for process in holders(&server) {
                // One that has just ended is not there to be killed.
                let process = Pid::from_raw(process.cast_signed()).unwrap();
                killed += usize::from(kill_process(process, Signal::KILL).is_ok());
            }
        }
        let statuses = uploads.join().unwrap();
        assert!(statuses.iter().all(|status| [200, 503].contains(status)), "{statuses:?}");
        killed
    });
    assert!(killed > 0);
    // The last upload may have come after the last kill, and be held.
    for process in holders(&server) {
        let process = Pid::from_raw(process.cast_signed()).unwrap();
        // One that has just ended is not there to be killed.
        let _ = kill_process(process, Signal::KILL);
    }
    let listed = until("the server notices", || {
        let list = server.get("/tensors").json;
        (list["count"] == 0).then_some(list)
    });
    assert_eq!(listed["held_bytes"], 0, "{listed}");
    let id = held(&server, -1, &[5.0]);
    assert_eq!(floats(&server, &id), [5.0]);
}

/// Holders end with their server, and so does what they held.
#[test]
fn nothing_outlives_the_server() {
    let server = Server::start();
    let id = held(&server, -1, &[1.0]);
    held(&server, 0, &[1.0]);
    let handle = server.get(&format!("/tensors/{id}/handle")).json;
    let file = std::path::PathBuf::from(handle["shared_memory"].as_str().unwrap());
    assert!(file.is_file());
    let all = holders(&server);
    assert_eq!(all.len(), 2);
    server.kill();
    for process in all {
        until("the holder ends", || {
            let alive = std::fs::read(format!("/proc/{process}/cmdline"));
            (!alive.is_ok_and(|command| !command.is_empty())).then_some(())
        });
    }
    assert!(!file.exists(), "{}", file.display());
}
