//! Counts are the same in every run.

use std::path::PathBuf;

use super::*;

#[test]
fn counts_are_the_same_in_every_run_and_on_any_number_of_cores() {
    needs!("the emulated device", emulated());
    let repository = Repository::new();
    repository.change(MORE);
    let on = |launcher: &[&str]| {
        let program = crate::server::program_path();
        let mut words = launcher.iter().map(PathBuf::from).collect::<Vec<_>>();
        words.push(program);
        let mut command = Command::new(&words[0]);
        command
            .args(&words[1..])
            .args(["--device", "emulator", "gate", "run", "perf/suite.yaml"])
            .args(["--baseline", "HEAD", "--json", "--quiet"])
            .current_dir(repository.path())
            .env_clear()
            .envs(repository.surroundings());
        let (exit, stdout, stderr) = outcome(command.output().unwrap());
        assert_eq!(exit, 2, "{launcher:?} {stderr}");
        super::counts(&serde_json::from_str(&stdout).unwrap())
    };
    let first = on(&[]);
    assert_eq!(first.as_array().unwrap().len(), 2);
    for _ in 0..3 {
        assert_eq!(on(&[]), first);
        assert_eq!(on(&["taskset", "--cpu-list", "0"]), first);
    }
}
