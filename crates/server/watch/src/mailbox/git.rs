//! A branch of a repository. The git program reads and writes it without a working tree. Nothing is
//! ever checked out, so no filter, hook, attribute, submodule or link in the repository takes
//! effect. The main type is [`Branch`].

use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use warpgauge_sandbox::program::{ChildProgram, Environment};

/// Environment variables that git inherits. It needs them to find its helper programs and to access
/// the remote as the user.
const INHERITED: [&str; 16] = [
    "PATH",
    "HOME",
    "XDG_CONFIG_HOME",
    "SSH_AUTH_SOCK",
    "GIT_SSH_COMMAND",
    "GIT_SSL_CAINFO",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "http_proxy",
    "https_proxy",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "all_proxy",
    "NO_PROXY",
    "no_proxy",
    "TMPDIR",
];

/// Settings that take precedence over any git configuration.
const SETTINGS: [&str; 12] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.attributesFile=/dev/null",
    "core.alternateRefsCommand=",
    "protocol.ext.allow=never",
    "fetch.recurseSubmodules=false",
    "push.recurseSubmodules=no",
    "submodule.recurse=false",
    "commit.gpgSign=false",
    "push.gpgSign=false",
    "push.followTags=false",
    "gc.autoDetach=false",
];

/// Time limit for one git command. A large repository may be fetched over a slow connection.
const LIMIT: Duration = Duration::from_secs(600);

/// Maximum size of a command's output, bytes.
const MAX_OUTPUT: u64 = 80 << 20;

/// Maximum length of git's message in an error, characters.
const MAX_MESSAGE: usize = 500;

/// Reason why an operation on the repository failed.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// Git is not installed.
    #[error("git could not be started: install it, or add it to PATH")]
    Start(#[source] std::io::Error),
    /// The command exceeded its time limit.
    #[error("`git {command}` did not end within {} s", LIMIT.as_secs())]
    Late { command: String },
    /// The command printed too much output.
    #[error("`git {command}` printed more than {MAX_OUTPUT} bytes")]
    TooMuch { command: String },
    /// The command failed.
    #[error("`git {command}` failed: {message}")]
    Failed {
        command: String,
        /// What the command printed to standard error.
        message: String,
    },
    /// The text is not the URL of a repository.
    #[error("`{0}` is not the address of a repository")]
    Address(String),
    /// The text is not the name of a branch.
    #[error("`{0}` is not the name of a branch")]
    Branch(String),
}

/// A file of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Blob {
    pub mode: String,
    pub object: String,
    pub bytes: u64,
    pub name: String,
}

/// A change to one file: its path and its new content. `None` removes the file.
pub(crate) type Change = (String, Option<Vec<u8>>);

/// A branch of a remote repository, with a local store for its objects.
#[derive(Debug)]
pub(crate) struct Branch {
    store: PathBuf,
    name: String,
}

impl Branch {
    /// Opens the branch `name` of the repository at `url`. Its objects are stored in the directory
    /// `store`.
    pub(crate) fn open(store: &Path, url: &str, name: &str) -> Result<Self, GitError> {
        if url.is_empty() || url.starts_with('-') || url.contains(['\n', '\0']) {
            return Err(GitError::Address(url.to_owned()));
        }
        let this = Self { store: store.to_owned(), name: name.to_owned() };
        let outside = || this.git(&[]);
        this.run(outside().args(["init", "--bare", "--quiet", "--template="]).arg(store), b"")?;
        if name.starts_with('-')
            || this.run(this.inside(&["check-ref-format", "--branch"]).arg(name), b"").is_err()
        {
            return Err(GitError::Branch(name.to_owned()));
        }
        // A URL may contain a password, so it is written to the configuration file, not to a
        // command line.
        let config = this.store.join("config");
        let own = format!(
            "[core]\n\trepositoryformatversion = 0\n\tbare = true\n[remote \"origin\"]\n\turl = \"{}\"\n",
            url.replace('\\', "\\\\").replace('"', "\\\"")
        );
        std::fs::write(&config, own).map_err(GitError::Start)?;
        Ok(this)
    }

    fn git(&self, arguments: &[&str]) -> ChildProgram {
        let mut git = ChildProgram::new("git", Environment::Empty);
        for name in INHERITED {
            if let Some(value) = std::env::var_os(name) {
                git = git.variable(name, value);
            }
        }
        git = git
            .variable("GIT_TERMINAL_PROMPT", "0")
            .variable("GIT_CONFIG_NOSYSTEM", "1")
            .variable("GIT_ATTR_NOSYSTEM", "1")
            .variable("GIT_ALLOW_PROTOCOL", "file:git:http:https:ssh")
            .variable("GIT_LFS_SKIP_SMUDGE", "1")
            .variable("GIT_AUTHOR_NAME", "warpgauge")
            .variable("GIT_AUTHOR_EMAIL", "warpgauge@localhost")
            .variable("GIT_COMMITTER_NAME", "warpgauge")
            .variable("GIT_COMMITTER_EMAIL", "warpgauge@localhost");
        for setting in SETTINGS {
            git = git.args(["-c", setting]);
        }
        git.args(arguments)
    }

    fn inside(&self, arguments: &[&str]) -> ChildProgram {
        let mut directory = OsString::from("--git-dir=");
        directory.push(&self.store);
        self.git(&[]).arg(directory).args(arguments)
    }

    /// Runs git with this standard input, and returns its output.
    fn run(&self, git: ChildProgram, input: &[u8]) -> Result<Vec<u8>, GitError> {
        let words = git.arguments.iter().map(|word| word.to_string_lossy().into_owned());
        let known = [
            "init",
            "check-ref-format",
            "fetch",
            "rev-parse",
            "ls-tree",
            "cat-file",
            "read-tree",
            "hash-object",
            "update-index",
            "write-tree",
            "commit-tree",
            "push",
        ];
        let command =
            words.into_iter().find(|word| known.contains(&word.as_str())).unwrap_or_default();
        let mut process = git.to_blocking();
        process
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        let mut child = process.spawn().map_err(GitError::Start)?;
        let outcome = converse(&mut child, input);
        // If git does not end in time, its whole process group is killed.
        if outcome.is_none() {
            let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
        }
        let status = child.wait().map_err(GitError::Start)?;
        let Some((output, said)) = outcome else { return Err(GitError::Late { command }) };
        if output.len() as u64 > MAX_OUTPUT {
            return Err(GitError::TooMuch { command });
        }
        if status.success() {
            return Ok(output);
        }
        let said = String::from_utf8_lossy(&said);
        let said = said.lines().map(str::trim).filter(|line| !line.is_empty());
        let said = said.collect::<Vec<_>>().join("; ");
        let said = if said.is_empty() { format!("it ended with {status}") } else { said };
        Err(GitError::Failed { command, message: said.chars().take(MAX_MESSAGE).collect() })
    }

    fn text(&self, git: ChildProgram, input: &[u8]) -> Result<String, GitError> {
        Ok(String::from_utf8_lossy(&self.run(git, input)?).trim().to_owned())
    }

    fn kept(&self) -> String {
        format!("refs/remotes/origin/{}", self.name)
    }

    /// Fetches the branch, even if its history was rewritten. Returns its commit; `None` if the
    /// branch does not exist.
    pub(crate) fn fetch(&self) -> Result<Option<String>, GitError> {
        let from = format!("+refs/heads/{}:{}", self.name, self.kept());
        let fetch = [
            "fetch",
            "--quiet",
            "--no-tags",
            "--depth=1",
            "--no-recurse-submodules",
            "--no-write-fetch-head",
            "origin",
        ];
        match self.run(self.inside(&fetch).arg(from), b"") {
            Ok(_) => {}
            Err(GitError::Failed { message, .. })
                if message.contains("couldn't find remote ref") =>
            {
                return Ok(None);
            }
            Err(error) => return Err(error),
        }
        let commit = self.kept() + "^{commit}";
        self.text(
            self.inside(&["rev-parse", "--verify", "--quiet", "--end-of-options"]).arg(commit),
            b"",
        )
        .map(Some)
    }

    /// Lists the files in a directory of a commit.
    pub(crate) fn files(&self, commit: &str, directory: &str) -> Result<Vec<Blob>, GitError> {
        let list = self
            .inside(&["ls-tree", "-z", "-l", "--full-tree", commit])
            .arg(format!("{directory}/"));
        let output = self.run(list, b"")?;
        let entry = |line: &[u8]| {
            let line = std::str::from_utf8(line).ok()?;
            let (facts, path) = line.split_once('\t')?;
            let facts = facts.split_whitespace().collect::<Vec<_>>();
            let [mode, _, object, bytes] = facts.as_slice() else { return None };
            let name = path.strip_prefix(directory)?.strip_prefix('/')?;
            Some(Blob {
                mode: (*mode).to_owned(),
                object: (*object).to_owned(),
                // Only files have a size.
                bytes: bytes.parse().unwrap_or(0),
                name: name.to_owned(),
            })
        };
        Ok(output.split(|byte| *byte == 0).filter_map(entry).collect())
    }

    /// Returns the content of a file.
    pub(crate) fn content(&self, blob: &Blob) -> Result<Vec<u8>, GitError> {
        self.run(self.inside(&["cat-file", "blob", &blob.object]), b"")
    }

    /// Creates a commit with these changes on top of `commit`, and pushes it. The push fails if
    /// another process has pushed in the meantime.
    pub(crate) fn push(
        &self,
        commit: Option<&str>,
        changes: &[Change],
        message: &str,
    ) -> Result<(), GitError> {
        let index = self.store.join("warpgauge-index");
        let with_index =
            |arguments: &[&str]| self.inside(arguments).variable("GIT_INDEX_FILE", &index);
        let _ = std::fs::remove_file(&index);
        match commit {
            Some(commit) => self.run(with_index(&["read-tree", commit]), b"")?,
            None => self.run(with_index(&["read-tree", "--empty"]), b"")?,
        };
        let mut lines = Vec::new();
        for (path, content) in changes {
            let line = match content {
                Some(content) => {
                    let object = self.text(
                        self.inside(&["hash-object", "-w", "--stdin", "--no-filters"]),
                        content,
                    )?;
                    format!("100644 {object}\t{path}\0")
                }
                None => format!("0 {}\t{path}\0", "0".repeat(40)),
            };
            lines.extend_from_slice(line.as_bytes());
        }
        self.run(with_index(&["update-index", "-z", "--index-info"]), &lines)?;
        let tree = self.text(with_index(&["write-tree"]), b"")?;
        let parent = commit.map_or(Vec::new(), |commit| vec!["-p", commit]);
        let made = self.inside(&["commit-tree"]).args(parent).args(["-m", message, &tree]);
        let made = self.text(made, b"")?;
        let to = format!("{made}:refs/heads/{}", self.name);
        self.run(self.inside(&["push", "--quiet", "--no-verify", "origin"]).arg(to), b"").map(drop)
    }
}

/// Writes the input of a process and reads its output. Returns `None` if this takes too long.
fn converse(child: &mut Child, input: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let (sender, received) = mpsc::channel();
    let streams: [Option<Box<dyn Read + Send>>; 2] = [
        child.stdout.take().map(|stream| Box::new(stream) as _),
        child.stderr.take().map(|stream| Box::new(stream) as _),
    ];
    for (which, stream) in streams.into_iter().enumerate() {
        let sender = sender.clone();
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            if let Some(stream) = stream {
                // A read error counts as the end of the output. If there is more output than the
                // limit, the pipe is closed.
                let _ = stream.take(MAX_OUTPUT + 1).read_to_end(&mut bytes);
            }
            let _ = sender.send((which, bytes));
        });
    }
    if let Some(mut stdin) = child.stdin.take() {
        let input = input.to_vec();
        std::thread::spawn(move || {
            // The process may end before it has read all of its input.
            let _ = stdin.write_all(&input);
        });
    }
    let mut found = [None, None];
    for _ in 0..2 {
        let (which, bytes) = received.recv_timeout(LIMIT).ok()?;
        found[which] = Some(bytes);
    }
    let [output, said] = found;
    Some((output?, said?))
}
