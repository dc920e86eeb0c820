//! Output of each command: progress on standard error, redrawn on a terminal and in plain lines
//! elsewhere, and none with `--quiet`. With `--json` standard output has JSON alone.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::cli::COMMANDS;
use crate::server::{Server, data_directory, device, emulated, program};
use crate::support::{outcome, run};

const LOOP: &str = include_str!("../fixtures/gate/loop.ptx");

const CONTRACT: &str = r#"
num_trials: 3
kernel:
  kernel_type: ptx
  source_file: loop.ptx
  metadata: {kernel_name: repeat}
  io:
    args:
      - {name: x, type: tensor, role: input, tensor_spec: {shape: [64], dtype: float32, init: {kind: uniform, seed: 1}}}
      - {name: y, type: tensor, role: output, tensor_spec: {shape: [64], dtype: float32}}
      - {name: "n", type: int, value: 64}
    launch: {grid: {x: 1}, block: {x: $b}}
"#;

const SUITE: &str = "version: 1\ncases:\n  - {name: one, contract: contract.yaml}\n  \
                     - {name: two, contract: contract.yaml, source: other.ptx}\n";

/// A directory with everything the commands take, where they also keep their data.
fn files() -> tempfile::TempDir {
    let directory = data_directory();
    let contract = CONTRACT.replace("$b", "64");
    let sweep = format!("{CONTRACT}axes: {{b: [64, 128, 256]}}\n");
    let imported = include_str!("../fixtures/profile/ncu/2025.3.1-h200-raw_full_base.csv");
    for (name, text) in [
        ("loop.ptx", LOOP),
        ("other.ptx", LOOP),
        ("contract.yaml", &contract),
        ("sweep.yaml", &sweep),
        ("suite.yaml", SUITE),
        ("raw.csv", imported),
    ] {
        std::fs::write(directory.path().join(name), text).unwrap();
    }
    directory
}

/// What a command showed on a terminal, or in a pipe, and on standard output.
struct Shown {
    code: i32,
    stdout: String,
    stderr: String,
}

/// The command in the directory, its standard error being a pipe.
fn piped(directory: &Path, arguments: &[&str]) -> Shown {
    let mut command = program();
    command.args(arguments).current_dir(directory).stdin(Stdio::null());
    command.env("WARPGAUGE_DATA_DIR", directory);
    let (code, stdout, stderr) = outcome(command.output().unwrap());
    Shown { code, stdout, stderr }
}

/// The command in the directory, its standard error being a terminal of this kind.
fn on_terminal(directory: &Path, arguments: &[&str], term: &str) -> Shown {
    let quoted = |word: &str| format!("'{}'", word.replace('\'', r"'\''"));
    let plain = program();
    let path = quoted(plain.get_program().to_str().unwrap());
    let words = arguments.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
    let mut command = Command::new("script");
    for (name, value) in plain.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
        .args(["--quiet", "--return", "--command"])
        .arg(format!("{path} {words} > stdout.txt"))
        .arg("/dev/null")
        .current_dir(directory)
        .env("WARPGAUGE_DATA_DIR", directory)
        .env("TERM", term)
        .env("SHELL", "/bin/sh")
        .stdin(Stdio::null());
    let (code, terminal, _) = outcome(command.output().expect("script, of util-linux"));
    let stdout = std::fs::read_to_string(directory.join("stdout.txt")).unwrap();
    // What `script` adds for the end of its own input.
    let stderr = terminal.replace("^D\u{8}\u{8}", "");
    Shown { code, stdout, stderr }
}

fn is_json(shown: &Shown) -> bool {
    let documents = serde_json::Deserializer::from_str(&shown.stdout).into_iter::<Value>();
    shown.stdout.ends_with('\n') && documents.collect::<Result<Vec<_>, _>>().unwrap().len() == 1
}

/// A command that takes long: whether it counts its steps, and what its lines say.
fn long(arguments: &[&str], counts: bool, stage: &str) {
    let directory = files();
    let at = directory.path();
    let arguments = [&["--device", "emulator"], arguments].concat();
    let shown = piped(at, &arguments);
    assert_eq!(shown.code, 0, "{}", shown.stderr);
    assert!(is_json(&shown), "{}", shown.stdout);
    assert!(!shown.stderr.contains(['\x1b', '\r']), "{:?}", shown.stderr);
    let lines = shown.stderr.lines().collect::<Vec<_>>();
    assert!(lines.iter().any(|line| line.starts_with("warpgauge: ")), "{lines:?}");
    assert!(shown.stderr.contains(stage), "{lines:?}");

    let shown = on_terminal(at, &arguments, "xterm");
    assert_eq!(shown.code, 0, "{}", shown.stderr);
    assert!(is_json(&shown), "{}", shown.stdout);
    let redrawn = shown.stderr.matches('\r').count();
    assert!(redrawn > 1 && !shown.stderr.contains("warpgauge: "), "{:?}", shown.stderr);
    // What has no steps may have launches that are counted, but not for long here.
    assert!(!counts || shown.stderr.contains("left: "), "{:?}", shown.stderr);
    // Nothing of it stays.
    assert!(shown.stderr.trim_end_matches(['\r', '\n']).ends_with("\x1b[2K"), "{:?}", shown.stderr);

    let quiet = [&arguments[..], &["--quiet"]].concat();
    for shown in [piped(at, &quiet), on_terminal(at, &quiet, "xterm")] {
        assert_eq!((shown.code, shown.stderr.as_str()), (0, ""));
        assert!(is_json(&shown), "{}", shown.stdout);
    }
}

#[test]
fn an_evaluation_shows_how_far_it_is() {
    needs!("the emulated device", emulated());
    long(&["eval", "contract.yaml", "--json"], false, "warpgauge: starting");
}

#[test]
fn a_comparison_shows_how_far_it_is() {
    needs!("the emulated device", emulated());
    let arguments = ["compare", "contract.yaml", "other.ptx", "--json"];
    long(&arguments, false, "warpgauge: starting");
}

#[test]
fn a_profile_shows_how_far_it_is() {
    needs!("the emulated device", emulated());
    long(&["profile", "contract.yaml", "--json"], false, "warpgauge: starting");
}

#[test]
fn a_sweep_shows_how_far_it_is_and_what_is_left() {
    needs!("the emulated device", emulated());
    long(&["sweep", "sweep.yaml", "--json"], true, "warpgauge: 3 of 3 points done");
}

#[test]
fn a_gate_shows_how_far_it_is_and_what_is_left() {
    needs!("the emulated device", emulated());
    let arguments = ["gate", "run", "suite.yaml", "--baseline", ".", "--json"];
    long(&arguments, true, "warpgauge: 2 of 2: two");
}

#[test]
fn work_at_a_server_shows_as_much() {
    needs!("the emulated device", emulated());
    let server = Server::start();
    let url = server.url.as_str();
    let at = format!(" at {url}");
    for (arguments, counts, stage) in [
        (&["eval", "contract.yaml"][..], false, format!("evaluating{at}")),
        (&["compare", "contract.yaml", "other.ptx"], false, format!("comparing{at}")),
        (&["profile", "contract.yaml"], false, format!("profiling{at}")),
        (&["sweep", "sweep.yaml"], true, "3 of 3 points done".to_owned()),
        (&["gate", "run", "suite.yaml", "--baseline", "."], true, "2 of 2: two".to_owned()),
    ] {
        long(&[arguments, &["--json", "--server", url]].concat(), counts, &stage);
    }
}

#[test]
fn a_watched_folder_shows_signs_of_life_on_a_terminal() {
    let directory = files();
    let at = directory.path();
    let kernels = at.join("box/kernels");
    std::fs::create_dir_all(&kernels).unwrap();
    let dots = |shown: &Shown| {
        let is_dots = |line: &str| !line.is_empty() && line.chars().all(|letter| letter == '.');
        shown.stderr.lines().any(|line| is_dots(line.trim_end()))
    };
    let arguments = ["watch", "box", "--device", "emulator", "--once", "--settle", "0"];
    for (on_a_terminal, quiet) in [(true, false), (true, true), (false, false)] {
        std::fs::write(kernels.join("k.cu"), crate::watch::increment(1)).unwrap();
        let more: &[&str] = if quiet { &["--quiet"] } else { &[] };
        let arguments = [&arguments[..], more].concat();
        let shown = match on_a_terminal {
            true => on_terminal(at, &arguments, "xterm"),
            false => piped(at, &arguments),
        };
        assert_eq!(shown.code, 0, "{}", shown.stderr);
        assert!(shown.stdout.contains("k.cu  completed"), "{}", shown.stdout);
        assert_eq!(dots(&shown), on_a_terminal && !quiet, "{:?}", shown.stderr);
    }
}

#[test]
fn a_dumb_terminal_gets_lines() {
    needs!("the emulated device", emulated());
    let directory = files();
    let arguments = ["--device", "emulator", "sweep", "sweep.yaml", "--csv"];
    let shown = on_terminal(directory.path(), &arguments, "dumb");
    assert_eq!(shown.code, 0, "{}", shown.stderr);
    assert!(!shown.stderr.contains('\x1b'), "{:?}", shown.stderr);
    assert!(shown.stderr.contains("warpgauge: 3 points\r\n"), "{:?}", shown.stderr);
    assert!(shown.stdout.starts_with("b,"), "{}", shown.stdout);
}

/// Commands that are quick: JSON where they promise it, and nothing else with `--quiet`.
#[test]
fn short_commands_speak_json_and_are_quiet() {
    let (directory, device) = (files(), device());
    for arguments in [
        &["compile", "loop.ptx", "--arch", "sm_90", "--json"][..],
        &["devices", "--json"],
        &["capabilities", "--json"],
        &["import", "raw.csv", "--json"],
        &["toolchain", "show", "--json"],
        &["openapi", "--json"],
        &["config", "--json"],
        &["gate", "schema"],
    ] {
        let arguments = [&["--device", device.as_str(), "--quiet"], arguments].concat();
        let shown = piped(directory.path(), &arguments);
        assert!(is_json(&shown), "{arguments:?}: {}", shown.stdout);
        assert_eq!(shown.stderr, "", "{arguments:?}");
    }
}

/// Whoever adds a command says whether it has results, and if so, gives them as JSON too.
#[test]
fn every_command_with_a_result_has_it_as_json() {
    let without = ["serve", "gate schema", "schema"];
    for command in COMMANDS {
        let (_, help, _) = run(&[command, "--help"]);
        let listed = help.split_once("\nCommands:\n").map(|(_, rest)| rest);
        let subcommands = listed.unwrap_or_default().lines().map_while(|line| {
            let name = line.strip_prefix("  ")?.split(' ').next()?;
            Some(vec![command, name])
        });
        // The second line of a long description has no name.
        let is_one = |words: &Vec<&str>| !matches!(words[1], "" | "help");
        let mut all = subcommands.filter(is_one).collect::<Vec<_>>();
        if all.is_empty() {
            all.push(vec![command]);
        }
        for words in all {
            let (code, help, _) = run(&[&words[..], &["--help"]].concat());
            assert_eq!(code, 0, "{words:?}");
            let has = help.contains("--json");
            assert_eq!(has, !without.contains(&words.join(" ").as_str()), "{words:?}");
            assert!(help.contains("--quiet"), "{words:?}");
        }
    }
}
