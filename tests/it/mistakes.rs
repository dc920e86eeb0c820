//! Mistakes of people on the command line: each answer says what, where, and what to do.

use std::path::Path;
use std::process::Stdio;

use crate::server::{data_directory, emulated, program};
use crate::support::outcome;

const KERNEL: &str = "extern \"C\" __global__ void scale(const float* x, float* y, int n) {\n    \
                      int i = blockIdx.x * blockDim.x + threadIdx.x;\n    \
                      if (i < n) y[i] = 2.0f * x[i];\n}\n";

/// Runs the program in a directory; returns exit code, standard output and standard error.
fn run(directory: &Path, args: &[&str]) -> (i32, String, String) {
    let mut command = program();
    command.args(args).current_dir(directory).env("WARPGAUGE_DATA_DIR", directory);
    outcome(command.output().unwrap())
}

/// A directory with a kernel and files that are no contracts.
fn files() -> tempfile::TempDir {
    let directory = data_directory();
    let write = |name: &str, content: &[u8]| {
        std::fs::write(directory.path().join(name), content).unwrap();
    };
    write("scale.cu", KERNEL.as_bytes());
    write("binary.cu", b"a\xff\x00");
    write("field.yaml", b"kernel: {kernel_tipe: cuda}\n");
    write("variant.yaml", b"kernel: {kernel_type: cdua, source_file: scale.cu}\n");
    write("there.yaml", b"kernel: {}\n");
    write("new\nline.txt", b"x");
    write("empty.cu", b"\n");
    write("wide.cu", b"\xff\xfev\0o\0i\0d\0");
    write("name.toml", b"nonsense = 1\n");
    write("comma.json", b"{\"kernel\": {\"kernel_type\": \"cuda\",}}");
    write("tab.yaml", b"kernel:\n\tkernel_type: cuda\n");
    write("gone.yaml", b"kernel: {kernel_type: cuda, source_file: nowhere.cu}\n");
    write("folder.yaml", b"kernel: {kernel_type: cuda, source_file: .}\n");
    std::os::unix::fs::symlink("circle.cu", directory.path().join("circle.cu")).unwrap();
    // A file of 100 MB without content: the size alone decides.
    let large = std::fs::File::create(directory.path().join("large.cu")).unwrap();
    large.set_len(100_000_000).unwrap();
    directory
}

#[test]
fn mistakes_that_need_no_device() {
    let directory = files();
    for (args, said) in [
        (&["evla", "scale.cu"][..], "'eval'"),
        (&["eval", "scale.cu", "--trails", "5"], "'--trials'"),
        (&["eval", "scale.cu", "--trials", "five"], "this is not a whole number"),
        (&["eval", "scale.cu", "--trials", "0"], "1..=10000"),
        (&["eval", "scale.cu", "--set", "n"], "write NAME=VALUE"),
        (&["eval", "scale.cu", "--grid", "0"], "at least 1"),
        (&["eval", "scal.cu"], "there is no such file (did you mean `scale.cu`?)"),
        (&["eval", "scale.cuu"], "there is no such file (did you mean `scale.cu`?)"),
        (&["eval", "ther.yaml"], "(did you mean `there.yaml`?)"),
        (&["eval", "nowhere/at/all.yaml"], "there is no such file\n"),
        (&["eval", "."], "is not a regular file"),
        (&["eval", "new\nline.txt"], "new\u{fffd}line.txt: the name does not show the format"),
        (&["eval", "no\nwhere.cu"], "no\u{fffd}where.cu: there is no such file"),
        (&["eval", "binary.cu"], "byte 1 is not UTF-8"),
        (&["eval", "field.yaml"], "`kernel_tipe` (did you mean `kernel_type`?)"),
        (&["eval", "variant.yaml"], "`cdua` (did you mean `cuda`?)"),
        (&["--device", "gpu", "eval", "scale.cu"], "`auto`, `emulator`, or different device"),
        (&["eval", "scale.cu", "--server", "localhost"], "is not the address of a server"),
        (&["completions", "bsh"], "'bash'"),
        (&["explain", "zeros_pas"], "did you mean `zeros_pass`?"),
        (&["history", "nosuch"], "there is no history of a case `nosuch`"),
        (&["eval", "scale.cu", "--trials", "-1"], "-1 is not in"),
        (&["eval", "scale.cu", "--patience", "-1"], "expected a number of seconds from 0 to 3600"),
        (&["eval", "empty.cu"], "empty.cu: the file is empty"),
        (&["baselines", "show", "nosuch"], "`warpgauge baselines list` lists them"),
        (&["eval", "wide.cu"], "it is UTF-16: save it as UTF-8"),
        (&["eval", "large.cu"], "is larger than 64.0 MiB"),
        (&["eval", "circle.cu"], "its symbolic links lead in a circle"),
        (&["eval", "comma.json"], "comma.json: kernel: not JSON: trailing comma (line 1"),
        (&["eval", "tab.yaml"], "tab.yaml: kernel: not YAML: tabs disallowed"),
        (&["eval", "gone.yaml"], "nowhere.cu: there is no such file"),
        (&["eval", "folder.yaml"], "is not a regular file; name a file"),
        (&["eval", "/dev/zero"], "is not a regular file; name a file"),
        (&["import", "ther.yaml"], "(did you mean `there.yaml`?)"),
        (&["import", "/dev/zero"], "is not a regular file; name a file"),
        (&["import", "scale.cu"], "this is neither a page of Nsight Compute"),
        (&["--config", "none.toml", "eval", "scale.cu"], "there is no such file; check the path"),
        (&["--config", ".", "eval", "scale.cu"], "it is a folder; name a file"),
        (&["--config", "name.toml", "eval", "scale.cu"], "unknown setting `nonsense`; known: "),
        (&["serve", "--port", "99999"], "must be a whole number from 0 to 65535"),
        (&["schema", "contracts"], "[possible values: contract, comparison, sweep]"),
    ] {
        let (code, out, error) = run(directory.path(), args);
        assert_eq!((code, out.as_str()), (2, ""), "{args:?}: {error}");
        assert!(error.contains(said), "{args:?}: {said:?} in {error}");
        assert!(!error.contains("invalid digit"), "{args:?}: {error}");
    }
}

/// Files and folders that cannot be written or used: found before anything runs.
#[test]
fn places_that_do_not_suit_are_named_with_a_remedy() {
    let directory = files();
    let file = directory.path().join("scale.cu");
    let file = file.to_str().unwrap();
    for (args, variable, said) in [
        (&["eval", "scale.cu", "--html", "missing/report.html"][..], None, "create it, or name"),
        (&["eval", "scale.cu", "--html", "."], None, "name a file to write"),
        (
            &["eval", "scale.cu", "--return-outputs", "scale.cu"],
            None,
            "a part of the path is a file",
        ),
        (&["eval", "scale.cu"], Some(("WARPGAUGE_DATA_DIR", file)), "is a file; name a directory"),
        (
            &["--device", "emulator", "eval", "scale.cu"],
            Some(("WARPGAUGE_EMULATOR", file)),
            "is not the library of the emulator",
        ),
        (
            &["--device", "emulator", "eval", "scale.cu"],
            Some(("WARPGAUGE_EMULATOR", "/no/such/emulator.so")),
            "no such file",
        ),
    ] {
        let mut command = program();
        command.args(args).current_dir(directory.path());
        command.env("WARPGAUGE_DATA_DIR", directory.path());
        command.envs(variable);
        let (code, out, error) = outcome(command.output().unwrap());
        assert_eq!((code, out.as_str()), (1, ""), "{args:?} {variable:?}: {error}");
        assert!(error.contains(said), "{args:?} {variable:?}: {said:?} in {error}");
        assert!(!error.contains("os error"), "{args:?} {variable:?}: {error}");
    }
}

#[test]
fn without_a_home_the_setting_is_named() {
    let directory = files();
    for home in [None, Some("")] {
        let mut command = program();
        command.args(["eval", "scale.cu"]).current_dir(directory.path());
        command.env_remove("HOME").env_remove("XDG_DATA_HOME").env_remove("WARPGAUGE_DATA_DIR");
        command.envs(home.map(|home| ("HOME", home)));
        let (code, _, error) = outcome(command.output().unwrap());
        assert_eq!(code, 2, "{error}");
        assert!(error.contains("set WARPGAUGE_DATA_DIR or `storage.data_dir`"), "{error}");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    for args in [&["explain"][..], &["openapi"], &["--help"]] {
        let mut command = program();
        command.args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{args:?}: {} {error}", output.status);
        assert_eq!(error, "", "{args:?}");
    }
}

#[test]
fn an_address_in_use_is_said_to_be() {
    let directory = files();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let args = ["--device", "emulator", "serve", "--port", &port];
    let (code, _, error) = run(directory.path(), &args);
    assert_eq!(code, 1, "{error}");
    let due = format!("cannot listen on 127.0.0.1:{port}; is another server running there?");
    assert!(error.contains(&due), "{error}");
}

/// In a terminal of 40 columns only words that are longer than a line leave it.
#[test]
fn help_and_reports_fit_a_narrow_terminal() {
    needs!("the emulated device", emulated());
    let directory = files();
    for args in [
        &["eval", "--help"][..],
        &["compare", "--help"],
        &["--device", "emulator", "--verbose", "eval", "scale.cu", "--set", "n=256"],
        &["--device", "emulator", "compare", "scale.cu", "scale.cu", "--set", "n=256"],
        &["--device", "emulator", "doctor"],
    ] {
        let mut command = program();
        command.args(args).current_dir(directory.path()).env("COLUMNS", "40");
        command.env("WARPGAUGE_DATA_DIR", directory.path());
        let output = command.output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.lines().count() > 5, "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        // A word that fits no line, such as a path, may leave it.
        let is_too_long = |line: &&str| {
            let last = line.split_whitespace().last().unwrap_or_default();
            line.chars().count() > 40 && last.chars().count() + 8 <= 40
        };
        let long = text.lines().filter(|line| !line.starts_with("Usage: ")).filter(is_too_long);
        assert_eq!(long.collect::<Vec<_>>(), [""; 0], "{args:?}\n{text}");
    }
}

#[test]
fn what_is_missing_on_this_machine_is_no_mistake_of_the_request() {
    let directory = files();
    let contract = crate::server::root().join("kernels/triton_softmax/contract.yaml");
    let mut command = program();
    // No Python has Triton there.
    command.args(["--device", "emulator", "eval", contract.to_str().unwrap()]);
    command.env("WARPGAUGE_PYTHON", "/no/such/python");
    command.env("WARPGAUGE_DATA_DIR", directory.path());
    let (code, _, error) = outcome(command.output().unwrap());
    assert_eq!(code, 1, "{error}");
    assert!(error.contains("this machine lacks what the contract requires"), "{error}");
    assert!(error.contains("`triton` is missing"), "{error}");
}

#[test]
fn another_program_at_the_address_is_named_as_such() {
    let directory = files();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        use std::io::{Read, Write};
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 4096]);
            let body = "<!DOCTYPE HTML>\n<html>\n  <h1>Not found</h1>\n</html>\n";
            let head = format!(
                "HTTP/1.1 404 x\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                body.len()
            );
            let _ =
                stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes()));
        }
    });
    let (code, _, error) = run(directory.path(), &["jobs", "list", "--server", &url]);
    assert_eq!(code, 2, "{error}");
    assert!(error.contains("this answer is not from warpgauge: check the address"), "{error}");
    assert!(error.contains("<!DOCTYPE HTML> <html> <h1>Not found"), "{error}");
}

#[test]
fn files_that_exist_stay_and_a_sweep_needs_an_axis() {
    needs!("the emulated device", emulated());
    let directory = files();
    for (args, said) in [
        (&["--device", "emulator", "init", "scale.cu", "-o", "there.yaml"][..], "already exists"),
        (&["--device", "emulator", "sweep", "scale.cu"], "--set n=1024,4096"),
        (&["compile", "scale.cu", "--arch", "90"], "(did you mean `sm_90`?)"),
    ] {
        let (code, _, error) = run(directory.path(), args);
        assert_eq!(code, 2, "{args:?}: {error}");
        assert!(error.contains(said), "{args:?}: {error}");
    }
    let kept = std::fs::read(directory.path().join("there.yaml")).unwrap();
    assert_eq!(kept, b"kernel: {}\n");
}

/// A kernel that writes past an output: a second run under the checker names line, thread and element.
#[test]
fn an_access_out_of_place_is_named_by_a_second_run() {
    needs!("the emulated device", emulated());
    let directory = files();
    let path = |name: &str| directory.path().join(name);
    std::fs::write(path("past.cu"), KERNEL.replace("y[i] =", "y[i + 1] =")).unwrap();
    let contract = "kernel:\n  kernel_type: cuda\n  source_file: past.cu\n  io:\n    args:\n      \
        - {name: x, type: tensor, role: input, tensor_spec: {shape: [256], init: {kind: randn, seed: 1}}}\n      \
        - {name: y, type: tensor, role: output, tensor_spec: {shape: [256]}}\n      \
        - {name: \"n\", type: int, value: 256}\n    launch: {grid: {x: 1}, block: {x: 256}}\nnum_trials: 3\n";
    std::fs::write(path("past.yaml"), contract).unwrap();
    let (code, out, error) = run(directory.path(), &["--device", "emulator", "eval", "past.yaml"]);
    assert_eq!(code, 4, "{out}\n{error}");
    assert!(error.contains("running the kernel again under the memory checker"), "{error}");
    for part in ["guard_band_written", "out_of_bounds at past.cu:3", "element 256 of `y`"] {
        assert!(out.contains(part), "{part:?} in\n{out}");
    }
    let args = ["--device", "emulator", "--quiet", "eval", "past.yaml", "--json"];
    let (code, out, error) = run(directory.path(), &args);
    let report: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (code, report["failure"]["code"].as_str()),
        (4, Some("guard_band_written")),
        "{error}"
    );
    assert_eq!(report["sanitize"]["findings"][0]["check"], "out_of_bounds", "{report}");
}
