//! The command line of the built program: its streams and its exit codes.

use crate::support::{outcome, run, warpgauge};

/// Every command that help shows.
pub const COMMANDS: [&str; 18] = [
    "serve",
    "eval",
    "compare",
    "profile",
    "sweep",
    "spmv",
    "gate",
    "baselines",
    "jobs",
    "compile",
    "doctor",
    "devices",
    "capabilities",
    "import",
    "toolchain",
    "schema",
    "openapi",
    "config",
];

#[test]
fn help_has_examples_and_exit_codes() {
    let (code, help, _) = run(&["--help"]);
    assert_eq!(code, 0);
    for word in
        ["Examples:", "Exit codes:", "  3  the kernel does not compile", "WARPGAUGE_DATA_DIR"]
    {
        assert!(help.contains(word), "{word:?} in\n{help}");
    }
    assert!(!help.contains("__worker"), "children are not for people");
    for command in COMMANDS {
        assert!(help.contains(&format!("\n  {command} ")), "{command} in\n{help}");
        let (code, help, _) = run(&[command, "--help"]);
        assert_eq!(code, 0);
        assert!(help.contains("Examples:"), "{command}");
    }
}

#[test]
fn documentation_names_every_command_flag_variable_and_exit_code() {
    let page = include_str!("../../docs/cli.md");
    for command in COMMANDS {
        assert!(page.contains(&format!("## `warpgauge {command}")), "{command}");
        let (_, help, _) = run(&[command, "--help"]);
        for flag in help.split_whitespace().filter(|word| word.starts_with("--")) {
            let flag = flag.trim_matches(|c: char| !c.is_ascii_alphanumeric() && c != '-');
            let flag = flag.split(['=', '`']).next().unwrap();
            assert!(page.contains(flag), "{flag} of {command}");
        }
    }
    for setting in warpgauge_config::settings::SETTINGS {
        for name in [setting.env, setting.service_env].into_iter().flatten() {
            assert!(page.contains(name), "{name}");
        }
    }
    for (exit, _) in warpgauge::exit::Exit::TABLE {
        assert!(page.contains(&format!("| {} |", exit.code())), "{}", exit.code());
    }
}

#[test]
fn misuse_exits_with_2_and_says_what_would_be_right() {
    for args in [&["evil"][..], &[], &["eval"], &["eval", "c.yaml", "--trials", "0"]] {
        let (code, _, error) = run(args);
        assert_eq!(code, 2, "{args:?}: {error}");
        assert!(error.contains("Usage:") || error.contains("1..=10000"), "{args:?}: {error}");
    }
    let (code, out, error) = run(&["eval", "/no/such/contract.yaml"]);
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(error.contains("could not read /no/such/contract.yaml"), "{error}");
    assert!(error.contains("there is no such file"), "{error}");
}

#[test]
fn configuration_reaches_the_program_from_file_environment_and_flags() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("w.toml");
    std::fs::write(&file, "[server]\nport = 1234\n[compile]\nparallelism = 5\n").unwrap();
    let args = ["config", "--config", file.to_str().unwrap(), "--device", "emulator"];
    let mut command = warpgauge(home.path(), &args);
    let (code, out, _) = outcome(command.env("MAX_WORKERS", "3").output().unwrap());
    assert_eq!(code, 0);
    let line = |start: &str| out.lines().find(|line| line.starts_with(start)).expect(start);
    assert!(line("port = 1234").ends_with("w.toml:2"), "{out}");
    assert!(line("parallelism = 3").ends_with("environment variable MAX_WORKERS"), "{out}");
    assert!(line("use = \"emulator\"").ends_with("flag --device"), "{out}");
    assert!(line("keep_jobs = 1000000").ends_with("default"), "{out}");

    let mut command = warpgauge(home.path(), &["devices"]);
    let (code, _, error) = outcome(command.env("PORT", "http").output().unwrap());
    assert_eq!(code, 2);
    assert!(error.contains("environment variable PORT: `server.port` must be"), "{error}");

    let (code, defaults, _) = run(&["config", "--defaults"]);
    assert_eq!(code, 0);
    assert_eq!(defaults, warpgauge_config::DEFAULT_TOML);
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let home = tempfile::tempdir().unwrap();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let status = warpgauge(home.path(), &["config", "--defaults"]).stdout(writer).status().unwrap();
    assert_eq!(status.code(), Some(0));
}

/// The table of metrics, the roofline and the advice of a kernel, and its picture where there are times.
#[test]
fn a_kernel_is_explained() {
    let directory = crate::server::data_directory();
    let contract = crate::server::root().join("kernels/transpose/contract.yaml");
    let svg = directory.path().join("roofline.svg");
    let page = directory.path().join("report.html");
    let args = [
        "--device",
        &crate::server::device(),
        "profile",
        contract.to_str().unwrap(),
        "--trials",
        "3",
        "--svg",
        svg.to_str().unwrap(),
        "--html",
        page.to_str().unwrap(),
    ];
    let mut command = crate::server::program();
    command.args(args).env("WARPGAUGE_DATA_DIR", directory.path());
    let (code, out, error) = outcome(command.output().unwrap());
    assert_eq!(code, 0, "{out}\n{error}");
    for part in ["CORRECT", "metrics ", "occupancy\n", "grid_size", "roofline ", "block_size"] {
        assert!(out.contains(part), "{part:?} in\n{out}");
    }
    assert!(error.contains("roofline.svg") && error.contains("report.html"), "{error}");
    if crate::server::device() == "emulator" {
        assert!(error.contains("the launch has no time") && !svg.exists(), "{error}");
    } else {
        let picture = std::fs::read_to_string(&svg).unwrap();
        roxmltree::Document::parse(&picture).unwrap();
    }
    let page = std::fs::read_to_string(&page).unwrap();
    for part in ["CORRECT", "transpose", "grid_size", "</html>"] {
        assert!(page.contains(part), "{part:?} in\n{page}");
    }
}

#[test]
fn a_page_that_cannot_be_written_is_an_error_before_anything_runs() {
    for command in ["eval", "profile", "sweep", "compare"] {
        // A contract that is not there is found only after that.
        let (code, out, error) = run(&[command, "missing.yaml", "--html", "missing/report.html"]);
        assert_eq!((code, out.as_str()), (1, ""), "{command}: {error}");
        assert!(error.contains("could not write missing/report.html"), "{command}: {error}");
    }
}

/// A kernel file takes the place of a contract, with the header beside it; a contract beside it counts.
#[test]
fn a_kernel_file_is_evaluated_without_a_contract() {
    let directory = crate::server::data_directory();
    let kernel = directory.path().join("scale.cu");
    std::fs::write(directory.path().join("factor.h"), "#define FACTOR 3.0f\n").unwrap();
    let source = "#include \"factor.h\"\n\
                  __global__ void scale(const float* x, float* y, int n) {\n\
                  int i = blockIdx.x * blockDim.x + threadIdx.x;\n\
                  if (i < n) y[i] = FACTOR * x[i];\n}\n";
    std::fs::write(&kernel, source).unwrap();
    let eval = || {
        let mut command = crate::server::program();
        let args = ["--device", &crate::server::device(), "eval", kernel.to_str().unwrap()];
        command.args(args).args(["--json", "--trials", "3"]);
        outcome(command.env("WARPGAUGE_DATA_DIR", directory.path()).output().unwrap())
    };
    let (code, out, error) = eval();
    assert_eq!(code, 0, "{out}\n{error}");
    let report: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(report["verdict"], "not_checked", "{out}");
    assert_eq!(report["measurement"]["summary"]["n"], 3, "{out}");
    assert!(error.contains("assumed x: float32["), "{error}");
    assert!(error.contains("`warpgauge init "), "{error}");

    std::fs::write(
        &kernel,
        format!("{source}__global__ void other(float* z) {{ z[threadIdx.x] = 1; }}\n"),
    )
    .unwrap();
    let (code, out, error) = eval();
    assert_eq!(code, 0, "{out}\n{error}");
    assert!(error.contains("of scale, other, the first, `scale`, is evaluated"), "{error}");

    let contract = "kernel:\n  kernel_type: cuda\n  source_file: scale.cu\n  metadata: {kernel_name: scale}\n  io:\n    \
                    args:\n    - {name: x, type: tensor, role: input, tensor_spec: {shape: [64], dtype: float32, \
                    init: {kind: full, fill_value: 2}}}\n    - {name: y, type: tensor, role: output, tensor_spec: \
                    {shape: [64], dtype: float32}}\n    - {name: n, type: int, value: 64}\n    launch: {grid: {x: 1}, \
                    block: {x: 64}}\nreturn_outputs: all\n";
    std::fs::write(kernel.with_extension("yaml"), contract).unwrap();
    let (code, out, error) = eval();
    assert_eq!(code, 0, "{out}\n{error}");
    let report: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(report["outputs"]["y"]["shape"], serde_json::json!([64]), "{out}");
    assert!(error.contains("the contract is ") && error.contains("scale.yaml"), "{error}");

    std::fs::write(&kernel, "__global__ void scale( {").unwrap();
    std::fs::remove_file(kernel.with_extension("yaml")).unwrap();
    let (code, out, error) = eval();
    assert_eq!(code, 3, "{error}");
    assert!(error.contains("scale.cu does not compile"), "{error}");
    let answer: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(answer["error"]["code"], "not_compiled", "{out}");
    assert_eq!(answer["error"]["exit_code"], 3, "{out}");
}

/// A program that asks for JSON gets the error as JSON, too.
#[test]
fn errors_are_json_where_json_is_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    let contract = directory.path().join("c.yaml");
    let failing = |arguments: &[&str]| {
        let (code, out, error) = run(arguments);
        assert!(error.contains("error"), "{error}");
        let answer: serde_json::Value = serde_json::from_str(&out).unwrap();
        assert_eq!(answer["error"]["exit_code"], code, "{out}");
        answer["error"].clone()
    };
    let path = contract.to_str().unwrap();
    assert_eq!(failing(&["eval", path, "--json"])["code"], "usage");
    assert_eq!(failing(&["eval", path, "--json", "--nothing"])["code"], "usage");
    let text = "kernel: {kernel_type: cuda, source_code: x, io: {args: [{name: n, type: int, value: x}], launch: {}}}";
    std::fs::write(&contract, text).unwrap();
    let error = failing(&["--device", "emulator", "eval", path, "--json"]);
    assert_eq!(error["validation_errors"][0]["field"], "kernel.io.args[0].value", "{error}");
}

#[test]
fn shells_and_manuals_have_every_command() {
    for (shell, part) in
        [("bash", "_warpgauge()"), ("zsh", "#compdef warpgauge"), ("fish", "complete -c warpgauge")]
    {
        let (code, script, _) = run(&["completions", shell]);
        assert_eq!(code, 0);
        assert!(script.contains(part) && script.contains("baselines"), "{shell}");
    }
    assert_eq!(run(&["completions", "tcsh"]).0, 2);
    let directory = tempfile::tempdir().unwrap();
    let pages = directory.path().join("man1");
    let (code, _, error) = run(&["manual", pages.to_str().unwrap()]);
    assert_eq!(code, 0, "{error}");
    for command in COMMANDS {
        let page = std::fs::read_to_string(pages.join(format!("warpgauge-{command}.1"))).unwrap();
        assert!(page.contains(".SH SYNOPSIS"), "{command}");
    }
    assert!(pages.join("warpgauge-gate-run.1").is_file());
}

#[test]
fn codes_are_explained() {
    let (code, text, _) = run(&["explain", "zeros_pass"]);
    assert_eq!(code, 0);
    assert!(text.contains("smaller absolute tolerance"), "{text}");
    let (code, text, _) = run(&["explain", "reference_illegal_address"]);
    assert_eq!(code, 0);
    assert!(text.contains("reference kernel failed") && text.contains("sanitize"), "{text}");
    let (code, _, error) = run(&["explain", "zero_pass"]);
    assert_eq!(code, 2);
    assert!(error.contains("did you mean `zeros_pass`"), "{error}");
    let (code, all, _) = run(&["explain"]);
    assert_eq!(code, 0);
    assert!(all.lines().count() > 150, "{all}");
}

/// What is not there fails, and says what there is.
#[test]
fn an_unknown_case_and_a_wrong_name_for_an_image_are_mistakes() {
    let directory = crate::server::data_directory();
    let with_data = |arguments: &[&str]| {
        let mut command = crate::server::program();
        command.args(arguments).env("WARPGAUGE_DATA_DIR", directory.path());
        outcome(command.output().unwrap())
    };
    let (code, _, error) = with_data(&["history", "nothing"]);
    assert_eq!(code, 2, "{error}");
    assert!(error.contains("there is no history of a case `nothing`"), "{error}");
    let work = tempfile::tempdir().unwrap();
    let file = |name: &str| work.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(file("k.cu"), "__global__ void k(int* x) { x[0] = 1; }").unwrap();
    let compile = |name: &str| {
        with_data(&["--device", "emulator", "compile", &file("k.cu"), "-o", &file(name)])
    };
    let (code, _, error) = compile("k.cubin");
    assert_eq!(code, 2, "{error}");
    assert!(error.contains("name the file .ptx"), "{error}");
    assert!(!work.path().join("k.cubin").exists());
    assert_eq!(compile("k.ptx").0, 0);
}
