//! Reads commits from the suite's repository. No worktree is registered, and neither the index nor
//! any file of the repository is changed.

use std::path::{Path, PathBuf};

use super::GateError;
use warpgauge_sandbox::program::{ChildProgram, Environment};

/// Maximum length of a message from git, characters.
const MAX_MESSAGE: usize = 500;

/// Environment variables with which hooks and CI systems make git use another repository than the
/// one at the current path.
const BENT: [&str; 6] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_PREFIX",
    "GIT_OBJECT_DIRECTORY",
    "GIT_NAMESPACE",
];

/// Returns a git command whose environment contains no secrets, because the filters and hooks of a
/// repository are untrusted programs.
fn git(directory: &Path) -> ChildProgram {
    let git = ChildProgram::new("git", Environment::Users).without(BENT).arg("-C").arg(directory);
    git.variable("GIT_TERMINAL_PROMPT", "0").variable("LC_ALL", "C")
}

/// Runs git and returns its output. The inner error is the message that git printed.
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

/// Returns the root of the working tree that contains `directory`. The inner error is the message
/// that git printed.
pub(super) fn root(directory: &Path) -> Result<Result<PathBuf, String>, GateError> {
    let toplevel = git(directory).args(["rev-parse", "--show-toplevel"]);
    Ok(run(&toplevel)?.map(PathBuf::from))
}

/// Returns the commit with this name. The inner error is the message that git printed.
pub(super) fn commit(root: &Path, name: &str) -> Result<Result<String, String>, GateError> {
    let verify = git(root).args(["rev-parse", "--verify", "--end-of-options"]);
    run(&verify.arg(format!("{name}^{{commit}}")))
}

/// Returns the commit of the files in a directory, with `-dirty` if the files differ from it.
/// Returns `None` if there is no git, no repository or no commit. The result is only displayed.
pub(in crate::cli) fn described(directory: &Path) -> Option<String> {
    let directory = if directory == Path::new("") { Path::new(".") } else { directory };
    let head = git(directory).args(["rev-parse", "--verify", "HEAD^{commit}"]);
    let head = run(&head).ok()?.ok()?;
    // Without this option, `git status` may write the index.
    let changes = ["--no-optional-locks", "status", "--porcelain", "--untracked-files=no"];
    let dirty = !run(&git(directory).args(changes)).ok()?.ok()?.is_empty();
    Some(if dirty { format!("{head}-dirty") } else { head })
}

/// Environment variables that contain the branch of a detached checkout: on GitHub for a pull
/// request, on GitHub otherwise, and on GitLab.
const BRANCHES: [&str; 3] = ["GITHUB_HEAD_REF", "GITHUB_REF_NAME", "CI_COMMIT_REF_NAME"];

/// Maximum length of a branch name in a request, bytes.
const MAX_BRANCH: usize = 255;

/// Returns the branch of the files in a directory; `None` if it is not known.
pub(super) fn branch(directory: &Path) -> Option<String> {
    let directory = if directory == Path::new("") { Path::new(".") } else { directory };
    let head = git(directory).args(["symbolic-ref", "--quiet", "--short", "HEAD"]);
    let head = run(&head).ok()?.ok();
    let named =
        || BRANCHES.iter().find_map(|name| std::env::var(name).ok().filter(|v| !v.is_empty()));
    let is_plain = |name: &String| {
        (1..=MAX_BRANCH).contains(&name.len()) && !name.chars().any(warpgauge_model::is_hidden)
    };
    head.or_else(named).filter(is_plain)
}

/// Writes all files of a commit to `into`, which is an existing empty directory. `index` is a path
/// outside that directory, for git's index.
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

    /// A repository names the programs that are its filters.
    #[test]
    fn git_gets_no_keys() {
        let command = git(Path::new(".")).to_blocking();
        let removed: Vec<_> = command.get_envs().filter(|(_, value)| value.is_none()).collect();
        for name in warpgauge_sandbox::environment::SECRET.iter().chain(&BENT) {
            assert!(removed.iter().any(|(removed, _)| removed == name), "{name}");
        }
    }
}
