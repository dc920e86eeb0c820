//! Commits of the suite's repository, read without touching it: no worktree is registered, no index
//! and no file of it changes.

use std::path::{Path, PathBuf};

use super::GateError;
use warpgauge_sandbox::program::{ChildProgram, Environment};

/// Longest message of git that is passed on, characters.
const MAX_MESSAGE: usize = 500;

/// Variables with which hooks and CI bend git to another repository than the one a path is in.
const BENT: [&str; 6] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_PREFIX",
    "GIT_OBJECT_DIRECTORY",
    "GIT_NAMESPACE",
];

/// Filters and hooks of a repository are programs of others: they get no secrets of ours.
fn git(directory: &Path) -> ChildProgram {
    let git = ChildProgram::new("git", Environment::Users).without(BENT).arg("-C").arg(directory);
    git.variable("GIT_TERMINAL_PROMPT", "0").variable("LC_ALL", "C")
}

/// Runs it; the error is what git said.
fn run(git: &ChildProgram) -> Result<Result<String, String>, GateError> {
    let output = git.to_blocking().output().map_err(GateError::NoGit)?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() {
        return Ok(Ok(text(&output.stdout)));
    }
    let said = text(&output.stderr);
    let said = if said.is_empty() { format!("it ended with {}", output.status) } else { said };
    Ok(Err(said.chars().take(MAX_MESSAGE).collect()))
}

/// The root of the working tree that `directory` is in; the error is what git said.
pub(super) fn root(directory: &Path) -> Result<Result<PathBuf, String>, GateError> {
    let toplevel = git(directory).args(["rev-parse", "--show-toplevel"]);
    Ok(run(&toplevel)?.map(PathBuf::from))
}

/// The commit that a name stands for; the error is what git said.
pub(super) fn commit(root: &Path, name: &str) -> Result<Result<String, String>, GateError> {
    let verify = git(root).args(["rev-parse", "--verify", "--end-of-options"]);
    run(&verify.arg(format!("{name}^{{commit}}")))
}

/// The commit that a directory's files are at, with `-dirty` where they differ from it; `None` where
/// there is no git, no repository or no commit: it only informs.
pub(in crate::cli) fn described(directory: &Path) -> Option<String> {
    let directory = if directory == Path::new("") { Path::new(".") } else { directory };
    let head = git(directory).args(["rev-parse", "--verify", "HEAD^{commit}"]);
    let head = run(&head).ok()?.ok()?;
    // Without the lock: nothing of the repository is written, its index neither.
    let changes = ["--no-optional-locks", "status", "--porcelain", "--untracked-files=no"];
    let dirty = !run(&git(directory).args(changes)).ok()?.ok()?.is_empty();
    Some(if dirty { format!("{head}-dirty") } else { head })
}

/// Writes all files of a commit into `into`, which exists and is empty; `index` is a file beside it.
pub(super) fn write_tree(
    root: &Path,
    commit: &str,
    into: &Path,
    index: &Path,
) -> Result<(), GateError> {
    let failed = |operation, outcome: Result<String, String>| match outcome {
        Ok(_) => Ok(()),
        Err(message) => Err(GateError::Git { operation, message }),
    };
    let git = || git(root).variable("GIT_INDEX_FILE", index);
    failed("read-tree", run(&git().args(["read-tree", commit]))?)?;
    let mut prefix = std::ffi::OsString::from("--prefix=");
    prefix.push(into);
    prefix.push("/");
    let checkout = git().args(["checkout-index", "--all", "--quiet"]).arg(prefix);
    failed("checkout-index", run(&checkout)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Its filters are programs that a repository names.
    #[test]
    fn git_gets_no_keys() {
        let command = git(Path::new(".")).to_blocking();
        let removed: Vec<_> = command.get_envs().filter(|(_, value)| value.is_none()).collect();
        for name in warpgauge_sandbox::environment::SECRET.iter().chain(&BENT) {
            assert!(removed.iter().any(|(removed, _)| removed == name), "{name}");
        }
    }
}
