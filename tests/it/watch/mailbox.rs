//! A bare repository on this machine as the remote.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

use super::increment;
use crate::server::{data_directory, device, program, until};

/// Git without the developer's configuration.
fn git(directory: &Path, arguments: &[&str]) -> Output {
    Command::new("git")
        .arg("-C")
        .arg(directory)
        .args(["-c", "user.name=t", "-c", "user.email=t@t", "-c", "init.defaultBranch=main"])
        .args(arguments)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .stdin(Stdio::null())
        .output()
        .expect("git runs")
}

fn done(directory: &Path, arguments: &[&str]) -> String {
    let output = git(directory, arguments);
    assert!(
        output.status.success(),
        "git {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// A bare repository and a clone of it with a first commit.
fn repository() -> (tempfile::TempDir, PathBuf, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let (remote, clone) = (directory.path().join("remote.git"), directory.path().join("clone"));
    done(directory.path(), &["init", "--bare", "--quiet", "remote.git"]);
    done(directory.path(), &["init", "--quiet", "clone"]);
    done(&clone, &["remote", "add", "origin", remote.to_str().unwrap()]);
    fs::write(clone.join("README"), "a mailbox").unwrap();
    fs::create_dir(clone.join("kernels")).unwrap();
    commit(&clone, "first");
    done(&clone, &["push", "--quiet", "origin", "HEAD:refs/heads/main"]);
    (directory, remote, clone)
}

fn commit(clone: &Path, message: &str) {
    done(clone, &["add", "--all"]);
    done(clone, &["commit", "--quiet", "--allow-empty", "-m", message]);
}

fn push(clone: &Path) {
    done(clone, &["push", "--quiet", "origin", "HEAD:refs/heads/main"]);
}

struct Serving(Child);

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn serve(remote: &Path, data: &Path, arguments: &[&str]) -> Serving {
    let child = program()
        .args(["watch", "--no-profile", "--device", &device(), "--git"])
        .arg(remote)
        .args(arguments)
        .env("WARPGAUGE_DATA_DIR", data)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .expect("the program starts");
    Serving(child)
}

fn shown(remote: &Path, path: &str) -> Option<String> {
    let output = git(remote, &["show", &format!("main:{path}")]);
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

fn result(remote: &Path, name: &str) -> Value {
    let path = format!("results/{name}.json");
    until(&path, || Some(serde_json::from_str(&shown(remote, &path)?).expect("a result")))
}

#[test]
fn what_is_sent_comes_back_and_leaves_nothing() {
    let (directory, remote, _) = repository();
    let data = data_directory();
    let _serving = serve(&remote, data.path(), &["--poll", "0.1"]);
    let kernel = directory.path().join("my kernel.cu");
    fs::write(&kernel, increment(1)).unwrap();
    let send = program()
        .arg("send")
        .arg(&kernel)
        .args(["--json", "--patience", "120", "--git"])
        .arg(&remote)
        .env("WARPGAUGE_DATA_DIR", data.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(send.status.code(), Some(0), "{}", String::from_utf8_lossy(&send.stderr));
    let result: Value = serde_json::from_slice(&send.stdout).unwrap();
    assert_eq!(result["status"], "completed", "{result}");
    assert_eq!(done(&remote, &["ls-tree", "-r", "--name-only", "main"]), "README");
    let history = done(&remote, &["log", "--format=%s", "main"]);
    assert_eq!(history.lines().count(), 4, "{history}");
}

#[test]
fn nothing_of_the_repository_takes_effect() {
    let (directory, remote, clone) = repository();
    let data = data_directory();
    let touched = directory.path().join("touched");
    let script = format!("touch {}", touched.display());
    fs::write(clone.join(".gitattributes"), "* filter=evil diff=evil merge=evil\n").unwrap();
    fs::write(
        clone.join(".gitmodules"),
        format!(
            "[submodule \"s\"]\n\tpath = s\n\turl = ext::sh -c \"{script}\"\n\tupdate = !{script}\n"
        ),
    )
    .unwrap();
    fs::write(clone.join(".lfsconfig"), "[lfs]\n\turl = http://127.0.0.1:1/\n").unwrap();
    fs::create_dir(clone.join(".githooks")).unwrap();
    for hook in ["pre-commit", "pre-push", "post-checkout", "post-merge", "reference-transaction"] {
        let path = clone.join(".githooks").join(hook);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    std::os::unix::fs::symlink("/etc/passwd", clone.join("kernels/link.cu")).unwrap();
    fs::write(clone.join("kernels/good.cu"), increment(1)).unwrap();
    commit(&clone, "a trap");
    push(&clone);
    let _serving = serve(&remote, data.path(), &["--poll", "0.1"]);
    assert_eq!(result(&remote, "good")["status"], "completed");
    assert_eq!(result(&remote, "link")["error"]["code"], "symbolic_link");
    assert!(!touched.exists(), "a command of the repository was run");
    assert_eq!(shown(&remote, "kernels/good.cu"), None);
    assert_eq!(shown(&remote, "README").as_deref(), Some("a mailbox"), "what is not ours stays");
}

#[test]
fn others_write_histories_are_replaced_and_pushes_are_refused() {
    let (_directory, remote, clone) = repository();
    let data = data_directory();
    fs::write(clone.join("kernels/a.cu"), increment(1)).unwrap();
    commit(&clone, "a");
    push(&clone);
    // The first push of each writer meets one of somebody else, and is refused.
    let hook = remote.join("hooks/pre-receive");
    let first = remote.join("first");
    let body = format!(
        "#!/bin/sh\nunset GIT_QUARANTINE_PATH GIT_OBJECT_DIRECTORY GIT_ALTERNATE_OBJECT_DIRECTORIES\n\
         if [ ! -e {0} ]; then touch {0}; \
         new=$(git -c user.name=o -c user.email=o@o commit-tree -p main -m other 'main^{{tree}}'); \
         git update-ref refs/heads/main $new; exit 1; fi\n",
        first.display()
    );
    fs::write(&hook, body).unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    let serving = serve(&remote, data.path(), &["--poll", "0.1"]);
    assert_eq!(result(&remote, "a")["status"], "completed");
    assert!(first.exists());
    // A history that has nothing in common with the old one.
    done(&clone, &["checkout", "--quiet", "--orphan", "anew"]);
    fs::write(clone.join("kernels/b.cu"), increment(2)).unwrap();
    fs::remove_file(clone.join("kernels/a.cu")).unwrap();
    commit(&clone, "anew");
    done(&clone, &["push", "--quiet", "--force", "origin", "HEAD:refs/heads/main"]);
    assert_eq!(result(&remote, "b")["status"], "completed");
    drop(serving);
    // Nobody may push: the result waits here, and is published by the next watcher.
    fs::write(&hook, format!("#!/bin/sh\ntouch {}\nexit 1\n", remote.join("refused").display()))
        .unwrap();
    done(&clone, &["fetch", "--quiet", "origin", "main"]);
    done(&clone, &["reset", "--quiet", "--hard", "FETCH_HEAD"]);
    fs::create_dir_all(clone.join("kernels")).unwrap();
    fs::write(clone.join("kernels/c.cu"), increment(3)).unwrap();
    commit(&clone, "c");
    let away = remote.join("hooks/away");
    fs::rename(&hook, &away).unwrap();
    push(&clone);
    fs::rename(&away, &hook).unwrap();
    let serving = serve(&remote, data.path(), &["--poll", "0.1"]);
    until("a refused push", || remote.join("refused").exists().then_some(()));
    drop(serving);
    assert_eq!(shown(&remote, "results/c.json"), None);
    fs::remove_file(&hook).unwrap();
    let _serving = serve(&remote, data.path(), &["--poll", "0.1"]);
    let late = result(&remote, "c");
    assert_eq!(late["status"], "completed", "{late}");
}

#[test]
fn a_mailbox_may_be_a_directory_of_a_repository() {
    let (_directory, remote, clone) = repository();
    let data = data_directory();
    let within = clone.join("gpu-executor/kernels");
    fs::create_dir_all(&within).unwrap();
    for (path, number) in [(within.join("kernel_17.cu"), 1), (clone.join("kernels/other.cu"), 2)] {
        fs::write(path, increment(number)).unwrap();
    }
    commit(&clone, "two directories");
    push(&clone);
    let arguments = ["--poll", "0.1", "--within", "gpu-executor/", "--suffixed-results"];
    let _serving = serve(&remote, data.path(), &arguments);
    let path = "gpu-executor/results/kernel_17_result.json";
    let text = until(path, || shown(&remote, path));
    let result: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(result["success"], true, "{result}");
    assert_eq!(shown(&remote, "gpu-executor/kernels/kernel_17.cu"), None);
    assert!(shown(&remote, "kernels/other.cu").is_some(), "it is in no directory of the mailbox");
}

#[test]
fn a_branch_that_does_not_exist_is_told() {
    let (_directory, remote, _) = repository();
    let data = data_directory();
    let watch = program()
        .args(["watch", "--once", "--branch", "mian", "--device", &device(), "--git"])
        .arg(&remote)
        .env("WARPGAUGE_DATA_DIR", data.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&watch.stderr);
    assert!(watch.status.success() && said.contains("no branch `mian`"), "{said}");
}
