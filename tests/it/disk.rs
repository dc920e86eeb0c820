//! A full disk, and a directory without write permission: new requests get an error with a remedy,
//! and accepted jobs end after the remedy.

use std::fs::{Permissions, set_permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use warpgauge_contract::{BodyFormat, parse};

use crate::contracts::{base64, endless, increment};
use crate::server::{
    Answer, Server, data_directory, device, emulated, program, program_through, share_caches, until,
};

/// Megabytes of the small disk: what a server needs, and little more.
const SMALL_MB: usize = 48;

/// A file system of its own, in memory.
struct SmallDisk {
    place: tempfile::TempDir,
}

impl SmallDisk {
    fn mount() -> Self {
        let place = tempfile::tempdir().unwrap();
        let user = rustix::process::geteuid().as_raw();
        let options = format!("size={SMALL_MB}m,uid={user},mode=0755");
        let done = as_root("mount")
            .args(["-t", "tmpfs", "-o", &options, "tmpfs"])
            .arg(place.path())
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&done.stderr);
        assert!(
            done.status.success(),
            "this test needs a small file system, and may not mount one; run it as root (with \
             CAP_SYS_ADMIN) or where `sudo -n mount` works: {told}"
        );
        let disk = Self { place };
        // Now: later there may be no room for a directory.
        std::fs::create_dir(disk.ballast()).unwrap();
        disk
    }

    fn path(&self) -> &Path {
        self.place.path()
    }

    /// Takes all the room that is left.
    fn fill(&self, name: &str) {
        let mut file = std::fs::File::create(self.ballast().join(name)).unwrap();
        while file.write_all(&[0; 4096]).is_ok() {}
    }

    /// Takes all the room that is left but `spare` bytes.
    fn fill_but(&self, spare: u64) {
        self.fill("most");
        let file = std::fs::File::options().write(true).open(self.ballast().join("most")).unwrap();
        let taken = file.metadata().unwrap().len();
        file.set_len(taken - spare).unwrap();
    }

    /// Gives it back.
    fn free(&self) {
        std::fs::remove_dir_all(self.ballast()).unwrap();
    }

    fn ballast(&self) -> PathBuf {
        self.path().join("ballast")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = as_root("umount").arg("--lazy").arg(self.path()).status();
    }
}

/// The disk stays for as long as the server: keep both.
fn server_on_a_small_disk() -> (SmallDisk, Server) {
    let disk = SmallDisk::mount();
    // Else they would take its room.
    share_caches(disk.path());
    let server = Server::start_in(disk.path(), &[], &[]);
    (disk, server)
}

fn as_root(program: &str) -> Command {
    if rustix::process::geteuid().is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("sudo");
    command.args(["-n", program]);
    command
}

/// A small job that takes some 30 kB in the database, and needs no compiler.
fn noisy() -> Value {
    let noise: String = (0..1_000).map(|_| uuid::Uuid::new_v4().simple().to_string()).collect();
    let mut contract: Value = parse(BodyFormat::Yaml, crate::gate::CONTRACT.as_bytes()).unwrap();
    let kernel = contract["kernel"].as_object_mut().unwrap();
    kernel.remove("source_file");
    kernel.insert("source_code".to_owned(), format!("{}\n// {noise}\n", crate::gate::LOOP).into());
    contract
}

fn post(server: &Server, body: &Value) -> Answer {
    server.post_json("/evaluate?wait=false", body)
}

fn submit(server: &Server, body: &Value) -> String {
    let answer = post(server, body);
    assert_eq!(answer.status, 202, "{}", answer.text);
    answer.json["job_id"].as_str().unwrap().to_owned()
}

fn job(server: &Server, id: &str) -> Value {
    let answer = server.get(&format!("/jobs/{id}"));
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.json
}

fn runs(server: &Server, id: &str) {
    until("it runs", || (job(server, id)["state"] == "profiling").then_some(()));
}

fn ended(server: &Server, id: &str) -> Value {
    until(&format!("the end of {id}"), || {
        let job = job(server, id);
        job["finished_at"].is_number().then_some(job)
    })
}

/// The words of a refusal for want of a place.
fn unavailable(answer: &Answer) -> String {
    let code = (answer.status, &answer.json["code"]);
    assert_eq!(code, (503, &json!("unavailable")), "{}", answer.text);
    answer.json["error"].as_str().unwrap().to_owned()
}

#[test]
fn a_full_disk_refuses_what_is_new_and_keeps_the_rest() {
    needs!("the emulated device", emulated());
    let (disk, server) = server_on_a_small_disk();
    let before = server.evaluate(&increment());
    let running = submit(&server, &endless(100.0));
    runs(&server, &running);
    let mut accepted: Vec<_> = (0..3).map(|_| submit(&server, &noisy())).collect();
    until("one is compiled meanwhile", || {
        (job(&server, &accepted[0])["attempt"] == 1).then_some(())
    });
    disk.fill("ballast");
    // What the database has of room it uses first.
    let refused = loop {
        let answer = post(&server, &noisy());
        if answer.status != 202 {
            break answer;
        }
        accepted.push(answer.json["job_id"].as_str().unwrap().to_owned());
        assert!(accepted.len() < 2_000, "the disk is full");
    };
    let told = unavailable(&refused);
    for words in ["full", "free some space"] {
        assert!(told.contains(words), "{told}");
    }
    assert!(!told.contains(disk.path().to_str().unwrap()), "the log says where: {told}");
    let told = crate::readiness::unready(&server, "disk_full");
    assert!(told.contains("space"), "{told}");
    // What is there can be read, also over connections to the database that are made only now.
    let path = format!("/jobs/{}", before["job_id"].as_str().unwrap());
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let answer = server.get(&path);
                assert_eq!(answer.json["result"], before, "{}", answer.text);
            });
        }
    });
    // Its worker goes with it, and what that had on the disk: there is a little room until the next.
    let stopped = server.delete(&format!("/jobs/{running}"));
    assert!([200, 202, 503].contains(&stopped.status), "{}", stopped.text);
    disk.fill("more ballast");
    // A small job may still find room in the database, but none for its files: it waits.
    let small = post(&server, &increment());
    if small.status == 202 {
        accepted.push(small.json["job_id"].as_str().unwrap().to_owned());
        until("a job that cannot be begun", || {
            let output = server.output();
            ["a job cannot begin", "cannot claim a job", "jobs wait"]
                .iter()
                .any(|words| output.contains(words))
                .then_some(())
        });
    } else {
        unavailable(&small);
    }
    disk.free();
    for id in &accepted {
        until(&format!("the end of {id}"), || {
            // The one that may not have ended yet is in the way of the others.
            server.delete(&format!("/jobs/{running}"));
            job(&server, id)["finished_at"].is_number().then_some(())
        });
        let ended = job(&server, id);
        assert_eq!(ended["state"], "completed", "{ended}\n{}", server.output());
    }
    assert_eq!(ended(&server, &running)["state"], "cancelled");
    crate::readiness::ready(&server);
    assert_eq!(post(&server, &noisy()).status, 202);
}

/// A contract whose input is 16 MiB in a file, and next to nothing in its request.
fn roomy() -> Value {
    let elements = 4 << 20;
    let packed = zstd::bulk::compress(&vec![0; 4 * elements], 1).unwrap();
    let mut contract = increment();
    let args = contract["kernel"]["io"]["args"].as_array_mut().unwrap();
    args[0]["tensor_spec"] = json!({"shape": [elements], "dtype": "float32",
        "data": {"data_b64": base64(&packed), "compress": "zstd"}});
    args[1]["tensor_spec"]["shape"] = json!([elements]);
    args[2]["value"] = json!(elements);
    contract.as_object_mut().unwrap().remove("expected");
    contract
}

/// What a job lacks may come in time: it is begun as often as a job may be, and fails only then.
#[test]
fn a_job_that_finds_no_room_for_its_data_is_begun_again() {
    needs!("the emulated device", emulated());
    let (disk, server) = server_on_a_small_disk();
    // Each takes room as it starts.
    until("a worker and its spare", || {
        (server.output().matches("a worker is ready").count() == 2).then_some(())
    });
    disk.fill_but(6 << 20);
    let told = ended(&server, &submit(&server, &roomy()));
    assert_eq!(
        (&told["state"], &told["code"], &told["attempt"]),
        (&json!("failed"), &json!("unavailable"), &json!(3)),
        "{told}\n{}",
        server.output()
    );
    assert!(told["error"].as_str().unwrap().contains("No space left"), "{told}");
    assert_eq!(server.output().matches("the job is restarted").count(), 2, "{}", server.output());
    disk.free();
    let done = ended(&server, &submit(&server, &roomy()));
    assert_eq!((&done["state"], &done["attempt"]), (&json!("completed"), &json!(1)), "{done}");
}

/// The program as a user whom permissions bind: root they do not, so it gives up that right.
fn bound_by_permissions() -> Command {
    if rustix::process::geteuid().is_root() {
        return program_through(&["setpriv", "--bounding-set", "-dac_override,-dac_read_search"]);
    }
    program()
}

/// Takes away, or gives back, the right to write to a directory and all below it.
fn writable(place: &Path, yes: bool) {
    let found = std::fs::symlink_metadata(place).unwrap();
    if found.is_symlink() {
        return;
    }
    let mode = found.permissions().mode();
    let mode = if yes { mode | 0o200 } else { mode & !0o222 };
    if !found.is_dir() {
        return set_permissions(place, Permissions::from_mode(mode)).unwrap();
    }
    // What a server does meanwhile may come and go.
    for entry in std::fs::read_dir(place).unwrap().flatten() {
        writable(&entry.path(), yes);
    }
    set_permissions(place, Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_directory_that_may_not_be_written_to_is_named_at_the_start() {
    let data = data_directory();
    let server = Server::start_in(data.path(), &[], &[]);
    let report = server.evaluate(&increment());
    server.terminate();
    server.wait();
    writable(data.path(), false);
    let output = bound_by_permissions()
        .args(["serve", "--port", "0", "--device", &device()])
        .env("WARPGAUGE_DATA_DIR", data.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{told}");
    assert!(told.contains(data.path().to_str().unwrap()), "{told}");
    assert!(told.contains("storage.data_dir"), "{told}");
    writable(data.path(), true);
    let server = Server::start_in(data.path(), &[], &[]);
    let id = report["job_id"].as_str().unwrap();
    assert_eq!(server.get(&format!("/jobs/{id}")).json["result"], report);
}

#[test]
fn a_directory_that_becomes_read_only_refuses_what_is_new_and_keeps_the_rest() {
    let data = data_directory();
    let server = Server::start_by(bound_by_permissions(), data.path(), &[], &[]);
    let running = submit(&server, &endless(100.0));
    runs(&server, &running);
    // One more is claimed, to be compiled meanwhile.
    let claimed = submit(&server, &endless(100.0));
    until("its turn", || (job(&server, &claimed)["attempt"] == 1).then_some(()));
    let mut accepted: Vec<_> = (0..3).map(|_| submit(&server, &increment())).collect();
    writable(data.path(), false);
    let mut large = increment();
    // More than stands in a row of the database.
    let noise: String = (0..9_000).map(|_| uuid::Uuid::new_v4().simple().to_string()).collect();
    large["kernel"]["source_code"] =
        format!("// {noise}\n{}", large["kernel"]["source_code"].as_str().unwrap()).into();
    let told = unavailable(&post(&server, &large));
    for words in ["read-only", "storage.data_dir"] {
        assert!(told.contains(words), "{told}");
    }
    assert!(!told.contains(data.path().to_str().unwrap()), "the log says where: {told}");
    let told = unavailable(&server.post_json("/evaluate", &increment()));
    assert!(told.contains("check space and permissions"), "{told}");
    let told = crate::readiness::unready(&server, "read_only");
    assert!(told.contains("DATA_DIR"), "{told}");
    // The database is open: it takes what is small, which then waits with the others.
    accepted.push(submit(&server, &increment()));
    for id in [&running, &claimed] {
        server.delete(&format!("/jobs/{id}"));
    }
    until("a job that cannot be begun", || {
        server.output().contains("a job cannot begin, and is requeued").then_some(())
    });
    writable(data.path(), true);
    for id in &accepted {
        let job = ended(&server, id);
        assert_eq!((&job["state"], &job["attempt"]), (&json!("completed"), &json!(1)), "{job}");
    }
}
