//! The kinds of worker processes and how to start each. Only this module uses the arguments of the
//! hidden subcommand.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use warpgauge_sandbox::contained;
use warpgauge_sandbox::program::{ChildProgram, Environment};

/// Directory in a server's run directory in which an emulated device keeps the memory of shared
/// tensors.
pub const HELD_DIR: &str = "tensors";

/// Kinds of long-lived workers, which hold a device and take one job after another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum WorkerKind {
    Timing,
    /// Reads hardware counters; does not time kernels.
    Counters {
        /// Paths of CUPTI libraries to try, best first.
        cupti: Vec<PathBuf>,
    },
    /// Judges launches that other workers make, and runs no submitted code.
    Judge,
}

/// Program that workers run, with the settings for starting it.
#[derive(Debug, Clone)]
pub(super) struct WorkerProgram {
    /// The executable that implements the hidden subcommand.
    pub path: PathBuf,
    /// The emulator's library, if it replaces the driver.
    pub emulator: Option<PathBuf>,
    /// Directory for files of workers, which exist until the server ends.
    pub run_dir: PathBuf,
    /// Libraries of ready-made functions that kernels can be compared with.
    pub libraries: Vec<PathBuf>,
}

impl WorkerProgram {
    /// Returns a program that lists the devices and exits.
    pub(super) fn probe(&self) -> ChildProgram {
        let program = self.subcommand().arg("--probe");
        self.with_driver(program, &self.run_dir)
    }

    /// Returns a program that plans the collection of metrics on a chip and exits. It needs no
    /// device.
    pub(super) fn counter_plan(&self, chip: &str, cupti: &[PathBuf]) -> ChildProgram {
        let program = self.subcommand().args(["--counters", "--plan", chip]);
        with_cupti(program, cupti)
    }

    /// Returns a program that holds a device and takes jobs from its standard input.
    pub(super) fn worker(&self, device: u32, kind: &WorkerKind) -> ChildProgram {
        let program = self.subcommand().args(["--device", &device.to_string()]);
        let program = self.with_driver(program, &self.run_dir);
        match kind {
            WorkerKind::Timing => each(program, "--library", &self.libraries),
            WorkerKind::Judge => program.arg("--judge"),
            WorkerKind::Counters { cupti } => with_cupti(program.arg("--counters"), cupti),
        }
    }

    /// Returns a program that a tool starts: it holds a device, takes one job from a socket, and
    /// exits. `wrapper` is the tool with its arguments. `directory` is the tool's working
    /// directory, and the only directory that the worker writes to.
    pub(super) fn one_job(
        &self,
        device: u32,
        wrapper: &[OsString],
        directory: &Path,
        socket: &Path,
    ) -> ChildProgram {
        let worker = contained::tool(&self.path, directory).arg("__worker");
        let worker = worker.args(["--device", &device.to_string()]).arg("--socket").arg(socket);
        self.with_driver(worker, directory).under(wrapper)
    }

    fn subcommand(&self) -> ChildProgram {
        with_one_queue(ChildProgram::new(&self.path, Environment::Cuda).arg("__worker"))
    }

    fn with_driver(&self, program: ChildProgram, run_dir: &Path) -> ChildProgram {
        let program = program.arg("--run-dir").arg(run_dir);
        match &self.emulator {
            // Workers that share memory must all be able to write to its directory. Memory of
            // shared tensors has a separate directory.
            Some(library) => program
                .arg("--emulator")
                .arg(library)
                .variable("WARPGAUGE_EMULATOR_IPC_DIR", run_dir)
                .variable("WARPGAUGE_EMULATOR_IPC_OTHER_DIR", self.run_dir.join(HELD_DIR)),
            None => program,
        }
    }
}

/// Limits a child's context to one hardware queue, because a worker uses one stream. Creating the
/// context then takes 60 ms on an H200; with the driver's default of eight queues it takes 160 to
/// 200 ms.
fn with_one_queue(program: ChildProgram) -> ChildProgram {
    program.unless_set("CUDA_DEVICE_MAX_CONNECTIONS", "1")
}

fn with_cupti(program: ChildProgram, libraries: &[PathBuf]) -> ChildProgram {
    each(program, "--cupti", libraries)
}

fn each(program: ChildProgram, flag: &str, libraries: &[PathBuf]) -> ChildProgram {
    libraries.iter().fold(program, |program, library| program.arg(flag).arg(library))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::child::WorkerArgs;

    /// Parses a program's arguments, which shows that the subcommand accepts those of each kind.
    fn parsed(program: &ChildProgram) -> WorkerArgs {
        let at = program.arguments.iter().position(|word| word == "__worker").unwrap();
        WorkerArgs::try_parse_from(&program.arguments[at + 1..]).unwrap()
    }

    #[test]
    fn every_kind_is_understood_by_the_subcommand() {
        let programs = WorkerProgram {
            path: "warpgauge".into(),
            emulator: Some("/lib/emulator.so".into()),
            run_dir: "/run/dir".into(),
            libraries: vec!["/a/libcusparse.so.12".into()],
        };
        let probe = parsed(&programs.probe());
        assert!(probe.probe && probe.emulator == programs.emulator);
        let cupti = [PathBuf::from("/a/libcupti.so"), "/b/libcupti.so".into()];
        let plan = parsed(&programs.counter_plan("GH100", &cupti));
        assert_eq!((plan.plan.as_deref(), &plan.cupti[..]), (Some("GH100"), &cupti[..]));
        let timing = parsed(&programs.worker(3, &WorkerKind::Timing));
        assert!(timing.device == 3 && !timing.counters && timing.socket.is_none());
        assert_eq!(timing.library, programs.libraries);
        assert_eq!(timing.run_dir.as_deref(), Some(Path::new("/run/dir")));
        let counters = WorkerKind::Counters { cupti: cupti.to_vec() };
        assert!(parsed(&programs.worker(0, &counters)).counters);
        assert!(parsed(&programs.worker(0, &WorkerKind::Judge)).library.is_empty());

        let wrapper = ["ncu".into(), "--csv".into()];
        let program =
            programs.one_job(1, &wrapper, Path::new("/job"), Path::new("/job/worker.socket"));
        assert_eq!(program.path, Path::new("ncu"));
        let words: Vec<_> =
            program.arguments[..3].iter().map(|word| word.to_str().unwrap()).collect();
        assert_eq!(words, ["--csv", "warpgauge", "__worker"]);
        let one = parsed(&program);
        assert_eq!(one.socket.as_deref(), Some(Path::new("/job/worker.socket")));
        assert_eq!((one.device, one.run_dir.as_deref()), (1, Some(Path::new("/job"))));
    }
}
