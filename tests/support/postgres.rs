//! A PostgreSQL server for the tests: Debian's programs, or those on `PATH`.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;

/// Returns the directory of `initdb` and `postgres`.
fn programs() -> Option<PathBuf> {
    let debian = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = debian.map(|version| version.path().join("bin")).collect();
    found.sort();
    let path = std::env::var_os("PATH").unwrap_or_default();
    found.extend(std::env::split_paths(&path));
    found.into_iter().rev().find(|bin| bin.join("initdb").exists() && bin.join("postgres").exists())
}

/// Returns whether PostgreSQL is installed.
#[allow(dead_code)] // The benchmark asks before it starts.
pub fn installed() -> bool {
    programs().is_some()
}

/// A running server. Dropping it stops the server.
pub struct Server {
    child: Child,
    /// Reads the server's output until all of its processes have ended.
    reader: Option<JoinHandle<()>>,
    directory: PathBuf,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        // The processes of connections hold standard error. They continue until they notice the
        // end, and answer until then.
        self.reader.take().map(JoinHandle::join);
    }
}

impl Server {
    /// Returns the URL of the database.
    pub fn url(&self) -> String {
        format!("postgres://warpgauge@localhost/postgres?host={}", self.directory.display())
    }

    /// Starts a server on a socket in `directory`, with the database of an earlier server there, or
    /// with an empty one.
    ///
    /// # Panics
    ///
    /// PostgreSQL is not installed, or does not start.
    pub fn start(directory: &Path) -> Self {
        let programs = programs().expect("PostgreSQL is not installed (package `postgresql`)");
        let data = directory.join("postgres");
        let user = unprivileged();
        if let Some((uid, gid)) = user {
            std::os::unix::fs::chown(directory, Some(uid), Some(gid)).unwrap();
        }
        let program = |name: &str| {
            let mut command = Command::new(programs.join(name));
            if let Some((uid, gid)) = user {
                command.uid(uid).gid(gid);
            }
            command.current_dir(directory).stdin(Stdio::null());
            command
        };
        if !data.exists() {
            let made = program("initdb")
                .args(["--no-sync", "--auth=trust", "--username=warpgauge", "--pgdata"])
                .arg(&data)
                .output()
                .unwrap();
            assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        }
        let mut child = program("postgres")
            .arg("-D")
            .arg(&data)
            .arg("-k")
            .arg(directory)
            .args(["-c", "listen_addresses=", "-c", "max_connections=64"])
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let ready = lines.by_ref().map_while(Result::ok);
        let mut log = Vec::new();
        for line in ready {
            log.push(line);
            if log.last().unwrap().contains("ready to accept connections") {
                // A full pipe would block the server.
                let reader = Some(std::thread::spawn(move || lines.for_each(drop)));
                return Self { child, reader, directory: directory.to_owned() };
            }
        }
        let _ = child.kill();
        let _ = child.wait();
        panic!("PostgreSQL did not start:\n{}", log.join("\n"));
    }
}

/// Returns a user without rights if this process is root: PostgreSQL refuses to run as root.
fn unprivileged() -> Option<(u32, u32)> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let users = std::fs::read_to_string("/etc/passwd").unwrap();
    let of = |name: &str| {
        let line = users.lines().find(|line| line.split(':').next() == Some(name))?;
        let mut fields = line.split(':').skip(2);
        Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
    };
    Some(of("postgres").or_else(|| of("nobody")).expect("a user to run PostgreSQL as"))
}
