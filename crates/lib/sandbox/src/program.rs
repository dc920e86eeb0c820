//! Programs to start: path, arguments and environment. The main type is [`ChildProgram`].
//!
//! Every child is started through this module, so one place decides what a child gets. From the
//! server's environment it gets only an [`Environment`], and it has no standard input unless it is
//! given one.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use super::environment;

/// Part of this process's environment that a child gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Environment {
    /// Only `LC_ALL` and the variables given explicitly, for compilers and their subprocesses.
    Empty,
    /// [`environment::INHERITED`], for programs that use a GPU.
    Cuda,
    /// The whole environment, for a child whose own environment is already restricted.
    Own,
    /// All except [`environment::SECRET`], for programs of the user with settings and credentials
    /// in the environment. It must not be used for programs that process untrusted input.
    Users,
}

/// A program to start.
#[derive(Debug, Clone)]
pub struct ChildProgram {
    /// A path, or a name to search in `PATH`.
    pub path: PathBuf,
    pub arguments: Vec<OsString>,
    /// Part of this process's environment that it gets.
    pub environment: Environment,
    /// Additional variables.
    pub variables: Vec<(OsString, OsString)>,
    /// Variables of this process's environment that it does not get.
    pub withheld: Vec<OsString>,
    /// Working directory; `None` for that of this process.
    pub directory: Option<PathBuf>,
}

impl ChildProgram {
    /// Creates a program without arguments.
    pub fn new(path: impl Into<PathBuf>, environment: Environment) -> Self {
        Self {
            path: path.into(),
            arguments: Vec::new(),
            environment,
            variables: Vec::new(),
            withheld: Vec::new(),
            directory: None,
        }
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args(mut self, arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Adds a variable.
    #[must_use]
    pub fn variable(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.variables.push((name.into(), value.into()));
        self
    }

    /// Adds a variable, unless this process's environment has it.
    #[must_use]
    pub fn unless_set(self, name: &str, value: &str) -> Self {
        if std::env::var_os(name).is_some() { self } else { self.variable(name, value) }
    }

    /// Withholds these variables of this process's environment.
    #[must_use]
    pub fn without(mut self, names: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.withheld.extend(names.into_iter().map(Into::into));
        self
    }

    /// Sets the working directory, which is also used for temporary files.
    #[must_use]
    pub fn within(self, directory: &Path) -> Self {
        let this = self.variable("TMPDIR", directory);
        Self { directory: Some(directory.to_owned()), ..this }
    }

    /// Starts it by another program: `wrapper` followed by this program and its arguments. An empty
    /// wrapper changes nothing.
    #[must_use]
    pub fn under(mut self, wrapper: &[OsString]) -> Self {
        if let Some((outer, arguments)) = wrapper.split_first() {
            let inner = std::mem::replace(&mut self.path, outer.into()).into_os_string();
            let arguments = arguments.iter().cloned().chain([inner]);
            self.arguments = arguments.chain(self.arguments).collect();
        }
        self
    }

    /// Returns a command for use within a runtime. The child gets its own process group and is
    /// killed on drop.
    pub(crate) fn to_command(&self) -> tokio::process::Command {
        let mut command = tokio::process::Command::from(self.to_blocking());
        command.process_group(0).kill_on_drop(true);
        command
    }

    /// Returns a command for blocking code whose duration is bounded elsewhere: within a compile
    /// child, or at the user's terminal.
    pub fn to_blocking(&self) -> std::process::Command {
        let mut command = std::process::Command::new(&self.path);
        command.args(&self.arguments).stdin(Stdio::null());
        match self.environment {
            Environment::Empty => {
                command.env_clear().env("LC_ALL", "C");
            }
            Environment::Cuda => {
                command.env_clear().envs(environment::of_child());
            }
            Environment::Own => {}
            Environment::Users => {
                for name in environment::SECRET {
                    command.env_remove(name);
                }
            }
        }
        for name in &self.withheld {
            command.env_remove(name);
        }
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        command
    }

    /// Returns its path, for messages.
    pub fn name(&self) -> std::borrow::Cow<'_, str> {
        OsStr::to_string_lossy(self.path.as_os_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment_of(program: &ChildProgram) -> Vec<String> {
        let output = program.to_blocking().output().unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
    }

    #[test]
    fn a_program_gets_what_its_environment_says_and_what_it_is_given() {
        let place = tempfile::tempdir().unwrap();
        let given = |environment| {
            ChildProgram::new("/usr/bin/env", environment)
                .variable("GIVEN", "yes")
                .within(place.path())
        };
        let mut empty = environment_of(&given(Environment::Empty));
        empty.sort();
        let temporary = format!("TMPDIR={}", place.path().display());
        assert_eq!(empty, ["GIVEN=yes", "LC_ALL=C", temporary.as_str()]);

        let has = |seen: &[String], name: &str| {
            seen.iter().any(|line| line.split('=').next() == Some(name))
        };
        // CARGO_MANIFEST_DIR is a variable that cargo sets for its tests.
        let cuda = environment_of(&given(Environment::Cuda));
        assert!(has(&cuda, "PATH") && has(&cuda, "GIVEN") && !has(&cuda, "CARGO_MANIFEST_DIR"));
        let users = environment_of(&given(Environment::Users));
        assert!(has(&users, "PATH") && has(&users, "GIVEN") && has(&users, "CARGO_MANIFEST_DIR"));
        let fewer =
            environment_of(&given(Environment::Users).without(["CARGO_MANIFEST_DIR", "GIVEN"]));
        assert!(has(&fewer, "GIVEN") && !has(&fewer, "CARGO_MANIFEST_DIR"));
    }

    #[test]
    fn a_wrapper_stands_before_it() {
        let words = |program: ChildProgram| {
            let mut words = vec![program.path.into_os_string()];
            words.extend(program.arguments);
            words
        };
        let program = || ChildProgram::new("worker", Environment::Cuda).arg("--device").arg("0");
        assert_eq!(words(program().under(&[])), ["worker", "--device", "0"]);
        let wrapped = program().under(&["ncu".into(), "--csv".into()]);
        assert_eq!(words(wrapped), ["ncu", "--csv", "worker", "--device", "0"]);
    }
}
