//! Programs to start, with their paths, arguments and environments. The main type is
//! [`ChildProgram`].
//!
//! Every child is started through this module, so a single place decides what a child receives.
//! From the server's environment it receives only an [`Environment`]. It has no standard input
//! unless one is provided.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use super::environment;

/// The part of this process's environment that a child receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Environment {
    /// Only `LC_ALL` and explicitly given variables, for compilers and their subprocesses.
    Empty,
    /// [`environment::INHERITED`], for programs that use a GPU.
    Cuda,
    /// The whole environment, for a child of a process whose environment is already restricted.
    Own,
    /// All variables except [`environment::SECRET`], for the user's programs, whose settings and
    /// credentials are in the environment. Must not be used for programs that process untrusted
    /// input.
    Users,
}

/// A program to start.
#[derive(Debug, Clone)]
pub struct ChildProgram {
    /// The path, or a name to search for in `PATH`.
    pub path: PathBuf,
    pub arguments: Vec<OsString>,
    /// The part of this process's environment that the program receives.
    pub environment: Environment,
    /// Environment variables that the program receives beyond `environment`.
    pub variables: Vec<(OsString, OsString)>,
    /// The variables of this process's environment that the program does not receive.
    pub withheld: Vec<OsString>,
    /// The working directory, or `None` for that of this process.
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

    /// Adds a command-line argument.
    #[must_use]
    pub fn arg(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    #[must_use]
    pub fn args(mut self, arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Adds an environment variable.
    #[must_use]
    pub fn variable(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.variables.push((name.into(), value.into()));
        self
    }

    /// Adds an environment variable, unless the environment of this process contains it.
    #[must_use]
    pub fn unless_set(self, name: &str, value: &str) -> Self {
        if std::env::var_os(name).is_some() { self } else { self.variable(name, value) }
    }

    /// Withholds these variables of this process's environment from the program.
    #[must_use]
    pub fn without(mut self, names: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.withheld.extend(names.into_iter().map(Into::into));
        self
    }

    /// Sets the directory that is used as the working directory and for temporary files.
    #[must_use]
    pub fn within(self, directory: &Path) -> Self {
        let this = self.variable("TMPDIR", directory);
        Self { directory: Some(directory.to_owned()), ..this }
    }

    /// Starts the program through another program: the command is `wrapper`, followed by this
    /// program and its arguments. An empty wrapper changes nothing.
    #[must_use]
    pub fn under(mut self, wrapper: &[OsString]) -> Self {
        if let Some((outer, arguments)) = wrapper.split_first() {
            let inner = std::mem::replace(&mut self.path, outer.into()).into_os_string();
            let arguments = arguments.iter().cloned().chain([inner]);
            self.arguments = arguments.chain(self.arguments).collect();
        }
        self
    }

    /// Returns a command for use within a tokio runtime. The child gets a separate process group
    /// and is killed on drop.
    pub(crate) fn to_command(&self) -> tokio::process::Command {
        let mut command = tokio::process::Command::from(self.to_blocking());
        command.process_group(0).kill_on_drop(true);
        command
    }

    /// Returns a command for blocking code whose duration is limited elsewhere: within a compile
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

    /// Returns the path of the program, for messages.
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
