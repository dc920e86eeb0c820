//! What is started: a program, its arguments, and the environment that it is given.
//!
//! Every child of ours begins here, so that what a child gets is decided in one place: nothing of our
//! environment but an [`Environment`], no standard input unless it is given one.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use super::environment;

/// What a child gets of our environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Environment {
    /// Nothing: the variables it is given, and `LC_ALL`. For compilers and what they start.
    Empty,
    /// [`environment::INHERITED`]: for what uses a GPU.
    Cuda,
    /// All that this process has: for a child of ours, which got no more than what it becomes needs.
    Own,
    /// All but [`environment::SECRET`]: for programs of the user's own, with settings and credentials
    /// of their own there. Never for anything that touches what a stranger sent.
    Users,
}

/// A program to start.
#[derive(Debug, Clone)]
pub struct ChildProgram {
    /// A path, or a name that is searched in `PATH`.
    pub path: PathBuf,
    /// What follows it.
    pub arguments: Vec<OsString>,
    /// What it gets of our environment.
    pub environment: Environment,
    /// Variables that it gets beside that.
    pub variables: Vec<(OsString, OsString)>,
    /// Variables of our environment that it does not get after all.
    pub withheld: Vec<OsString>,
    /// Where it runs; `None`: where we do.
    pub directory: Option<PathBuf>,
}

impl ChildProgram {
    /// A program without arguments.
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

    /// With one more argument.
    #[must_use]
    pub fn arg(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// With more arguments.
    #[must_use]
    pub fn args(mut self, arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// With one more variable.
    #[must_use]
    pub fn variable(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.variables.push((name.into(), value.into()));
        self
    }

    /// Without these variables of our environment.
    #[must_use]
    pub fn without(mut self, names: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.withheld.extend(names.into_iter().map(Into::into));
        self
    }

    /// Running in a directory, which holds its temporary files too.
    #[must_use]
    pub fn within(self, directory: &Path) -> Self {
        let this = self.variable("TMPDIR", directory);
        Self { directory: Some(directory.to_owned()), ..this }
    }

    /// Started by another program: `wrapper` followed by this program and its arguments. An empty
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

    /// To start from within a runtime: a group of its own, ended when it is dropped.
    pub(crate) fn to_command(&self) -> tokio::process::Command {
        let mut command = tokio::process::Command::from(self.to_blocking());
        command.process_group(0).kill_on_drop(true);
        command
    }

    /// To start from code that blocks, where somebody else bounds what it takes: within a compile
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

    /// Its path, for messages.
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
        // Of the variables that cargo sets for its tests.
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
