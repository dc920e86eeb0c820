//! Whole programs: nvcc builds them, a confined process runs them, and their output and exit code
//! decide the verdict.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::server::{Server, emulated, until};
use crate::support::has_nvcc;

/// Adds two vectors on the device and says how it went.
const ADD: &str = r#"
#include <cstdio>
#include <vector>
__global__ void add(const float* a, const float* b, float* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}
int main() {
    const int n = 1000;
    std::vector<float> host(n, 1.5f);
    float *a, *b, *c;
    if (cudaMalloc(&a, n * 4) || cudaMalloc(&b, n * 4) || cudaMalloc(&c, n * 4)) return 9;
    cudaMemcpy(a, host.data(), n * 4, cudaMemcpyHostToDevice);
    cudaMemcpy(b, host.data(), n * 4, cudaMemcpyHostToDevice);
    for (int i = 0; i < 3; ++i) add<<<(n + 127) / 128, 128>>>(a, b, c, n);
    cudaError_t error = cudaDeviceSynchronize();
    cudaMemcpy(host.data(), c, n * 4, cudaMemcpyDeviceToHost);
    printf("%s\nc[7] = %g\n", cudaGetErrorString(error), host[7]);
    return host[7] == 3.0f ? 0 : 1;
}
"#;

fn program(source: &str) -> Value {
    json!({"kernel": {"kernel_type": "program", "source_code": source}, "timeout": 60.0})
}

fn expecting(source: &str, expected: Value) -> Value {
    let mut request = program(source);
    request["expected"] = short(expected);
    request
}

/// What is expected of a program, written shorter: a text or a number alone.
fn short(mut expected: Value) -> Value {
    for one in expected.as_object_mut().into_iter().flat_map(|all| all.values_mut()) {
        match one {
            Value::String(text) => *one = json!({"text": text}),
            Value::Number(code) => *one = json!({"code": code}),
            _ => {}
        }
    }
    expected
}

/// C++ without kernels, which takes less to build.
fn host(body: &str) -> String {
    format!("#include <cstdio>\n#include <cstdlib>\nint main(int argc, char** argv) {{ {body} }}\n")
}

fn reason(report: &Value) -> &str {
    report["validation"]["reasons"][0]["code"].as_str().unwrap_or_default()
}

#[test]
fn a_program_is_run_as_it_is_and_its_output_checked() {
    needs!("nvcc", has_nvcc());
    let server = Server::start();
    let expected = json!({"stdout": "no error\nc[7] = 3", "exit_code": 0});
    let report = server.evaluate(&expecting(ADD, expected.clone()));
    assert_eq!(report["kernel_exec_result"]["correctness"], true, "{report:#}");
    assert_eq!(report["validation"]["status"], "passed", "{report:#}");
    assert!(report["kernel_exec_result"]["runtime"].is_null(), "its times rank nothing");
    let program = &report["program"];
    assert_eq!(
        (&program["exit_code"], &program["stdout"]["text"]),
        (&json!(0), &json!("no error\nc[7] = 3\n"))
    );
    assert!(program["wall_ms"].as_f64().unwrap() > 0.0, "{report:#}");
    assert!(report["compile"]["compiler"].as_str().unwrap().starts_with("nvcc "), "{report:#}");
    if emulated() {
        let kernel = &program["kernels"][0];
        assert_eq!(kernel["name"], "add", "{report:#}");
        assert_eq!(kernel["launches"], 3, "{report:#}");
        assert_eq!(report["timeline"]["available"], false, "{report:#}");
    }
    let options = report["compile"]["options"].as_array().unwrap();
    assert!(options[0].as_str().unwrap().starts_with("-gencode=arch="), "{report:#}");
    // The same again is there already.
    let report = server.evaluate(&expecting(ADD, expected));
    assert_eq!(report["compile"]["cache_hit"], true, "{report:#}");
    // Nothing expected: not checked, unless it says itself that something is wrong.
    let report = server.evaluate(&program_of("return 0;"));
    assert_eq!(report["validation"]["status"], "not_checked", "{report:#}");
    let report = server.evaluate(&program_of("return 4;"));
    assert_eq!((reason(&report), &report["program"]["exit_code"]), ("exit_code", &json!(4)));
    assert_eq!(report["kernel_exec_result"]["correctness"], false, "{report:#}");
}

fn program_of(body: &str) -> Value {
    program(&host(body))
}

#[test]
fn a_program_gets_its_arguments_and_its_input_and_is_wrong_if_it_prints_otherwise() {
    needs!("nvcc", has_nvcc());
    let server = Server::start();
    let source = host(
        r#"char line[64]; while (fgets(line, sizeof line, stdin)) printf("read %s", line);
        for (int i = 1; i < argc; ++i) printf("[%s]\n", argv[i]); return argc;"#,
    );
    let mut request =
        expecting(&source, json!({"stdout": "read 1\nread 2\n[a b]\n[--c]", "exit_code": 3}));
    request["kernel"]["metadata"] = json!({"arguments": ["a b", "--c"], "stdin": "1\n2\n"});
    let report = server.evaluate(&request);
    assert_eq!(report["kernel_exec_result"]["correctness"], true, "{report:#}");
    request["expected"]["stdout"] = json!({"text": "read 1\nread 3\n[a b]\n[--c]"});
    let report = server.evaluate(&request);
    assert_eq!(reason(&report), "output_mismatch", "{report:#}");
    let why = report["kernel_exec_result"]["validation_error"].as_str().unwrap();
    assert!(why.contains("line 2 is `read 2`, but `read 3` was expected"), "{why}");
    request["expected"] = short(json!({"exit_code": 0}));
    assert_eq!(reason(&server.evaluate(&request)), "exit_code");
    request["expected"] = short(json!({"stdout": {"contains": "[--c]"}, "exit_code": 3}));
    assert_eq!(server.evaluate(&request)["kernel_exec_result"]["correctness"], true);
}

#[test]
fn a_program_reaches_nothing_but_what_it_is_given() {
    needs!("nvcc", has_nvcc());
    let secret = [("WARPGAUGE_WEBHOOK_SECRET", "kept-from-programs-0123456789")];
    let server = Server::start_with(&[], &secret);
    let source = format!(
        "#include <unistd.h>\n#include <signal.h>\n#include <sys/socket.h>\n#include <netinet/in.h>\n\
         #include <fcntl.h>\n#include <pthread.h>\n#include <sys/shm.h>\n#include <sys/stat.h>\n\
         #include <sys/syscall.h>\n#include <sys/wait.h>\n#include <cerrno>\n\
         static void* rests(void*) {{ pause(); return nullptr; }}\n{}",
        host(
            r#"auto tell = [](const char* what, bool could) { printf("%s %s\n", what, could ? "yes" : "no"); };
            tell("write here", fopen("out", "w"));
            tell("write in /tmp", fopen("/tmp/warpgauge-program-test", "w"));
            tell("read users", fopen("/etc/passwd", "r"));
            tell("read the parent", fopen((std::string("/proc/") + std::to_string(getppid()) + "/environ").c_str(), "r"));
            pid_t child = fork(); if (child == 0) _exit(0);
            tell("fork", child > 0);
            tell("shell", system("true") == 0);
            tell("inet", socket(AF_INET, SOCK_STREAM, 0) >= 0);
            tell("signal the parent", kill(getppid(), 0) == 0);
            tell("a datagram socket", socket(AF_UNIX, SOCK_DGRAM, 0) >= 0);
            tell("a stream socket", socket(AF_UNIX, SOCK_STREAM, 0) >= 0);
            tell("netlink", socket(AF_NETLINK, SOCK_RAW, 0) >= 0);
            tell("change modes", syscall(452, AT_FDCWD, ".", 0777, 0) == 0);
            tell("change times", utimensat(AT_FDCWD, ".", 0, 0) == 0);
            tell("a signal by a descriptor", fcntl(0, F_SETSIG, SIGCONT) == 0 || fcntl(0, F_SETOWN, getpid()) == 0);
            tell("attach shared memory", shmat(0, 0, 0) != (void*)-1 || errno != EPERM);
            tell("wait for another process", waitpid(-1, 0, WNOHANG) >= 0 || errno != EPERM);
            tell("lower its score", fopen("/proc/self/oom_score_adj", "w"));
            int threads = 0; pthread_t thread; pthread_attr_t small; pthread_attr_init(&small);
            pthread_attr_setstacksize(&small, 65536);
            while (threads < 20000 && pthread_create(&thread, &small, rests, 0) == 0) ++threads;
            tell("20000 threads", threads == 20000);
            tell("no thread", threads < 100);
            execl("/bin/true", "true", (char*)0); tell("become another", false);
            for (int fd = 3; fd < 64; ++fd) { char path[64], to[256]; snprintf(path, 64, "/proc/self/fd/%d", fd);
                ssize_t n = readlink(path, to, 255); if (n > 0) { to[n] = 0; fprintf(stderr, "open %s\n", to); } }
            for (char** e = environ; *e; ++e) fprintf(stderr, "%s\n", *e);
            return 0;"#
        )
        .replace("#include <cstdlib>", "#include <cstdlib>\n#include <string>")
    );
    let report = server.evaluate(&program(&source));
    let told = report["program"]["stdout"]["text"].as_str().unwrap_or_else(|| panic!("{report:#}"));
    let full = report["program"]["confinement"] == "landlock: fully enforced; seccomp: enforced";
    needs!("a kernel with landlock and seccomp", full);
    for line in told.lines() {
        assert!(line.ends_with(" no"), "{told}");
    }
    assert_eq!(told.lines().count(), 20, "{told}");
    let errors = report["program"]["stderr"]["text"].as_str().unwrap();
    assert!(!errors.contains("kept-from-programs") && !errors.contains("CARGO"), "{errors}");
    let open = errors.lines().filter_map(|line| line.strip_prefix("open "));
    // What it may write to but its streams: what the emulated device counts.
    let others: Vec<&str> = open
        .filter(|path| !path.starts_with("/proc/") && !path.ends_with("/counted.json"))
        .collect();
    assert!(others.is_empty(), "{others:?}");
}

#[test]
fn what_goes_wrong_is_told_and_leaves_the_device_free() {
    needs!("nvcc", has_nvcc());
    let server = Server::start();
    let mut endless =
        program_of("puts(\"begun\"); fflush(stdout); for (volatile int i = 0;; ) i = 1;");
    endless["timeout"] = json!(1.0);
    // The time is for the program: it may be built in more.
    endless["kernel"]["metadata"] = json!({"compiler_options": ["-O1"]});
    let report = server.evaluate(&endless);
    assert_eq!(
        (reason(&report), &report["failure"]["code"]),
        ("timeout", &json!("timeout")),
        "{report:#}"
    );
    assert_eq!(report["program"]["stdout"]["text"], "begun\n", "{report:#}");

    let report = server.evaluate(&program_of("*(volatile int*)argv[argc] = 1; return 0;"));
    assert_eq!(
        (reason(&report), &report["program"]["signal"]),
        ("ended_by_signal", &json!("SIGSEGV"))
    );
    let report = server.evaluate(&program_of("abort();"));
    assert_eq!(report["program"]["signal"], "SIGABRT", "{report:#}");

    let flood = program_of(
        "static char block[1 << 16]; for (int i = 0; i < 1 << 16; ++i) block[i] = i % 64 ? 'x' : '\\n';
        for (int i = 0; i < 20000; ++i) fwrite(block, 1, sizeof block, stdout); return 0;",
    );
    let report = server.evaluate(&flood);
    let stdout = &report["program"]["stdout"];
    assert!(stdout["text"].as_str().unwrap().len() < 100_000, "bounded");
    assert!(
        stdout["left_out_bytes"].as_u64().unwrap() > 1_000_000_000,
        "{}",
        stdout["left_out_bytes"]
    );

    let report = server.evaluate(&program("int main() { return nothing; }"));
    assert_eq!(report["kernel_exec_result"]["compiled"], false, "{report:#}");
    let error = report["kernel_exec_result"]["compilation_error"].as_str().unwrap();
    assert!(error.contains("program.cu(1): error") || error.contains("program.cu:1"), "{error}");
    let report = server.evaluate(&program("void f(); int main() { f(); }"));
    let error = report["kernel_exec_result"]["compilation_error"].as_str().unwrap();
    assert!(error.contains("undefined reference to `f()'"), "{error}");
    let report = server.evaluate(&program("#include \"/etc/passwd\"\nint main() {}"));
    assert_eq!(report["kernel_exec_result"]["compiled"], false, "{report:#}");
    assert!(!report.to_string().contains("root:"), "{report:#}");

    let mut options = program_of("return 0;");
    for refused in ["-ccbin=/tmp/x", "-Xlinker=-T,x", "-I/etc", "-lssl", "-o/tmp/x", "--run"] {
        options["kernel"]["metadata"] = json!({"compiler_options": [refused]});
        let report = server.evaluate(&options);
        assert_eq!(report["kernel_exec_result"]["compiled"], false, "{refused}: {report:#}");
    }
    let report = server.evaluate(&program_of("return 0;"));
    assert_eq!(report["program"]["exit_code"], 0, "{report:#}");
}

#[test]
fn a_program_whose_caller_has_gone_ends() {
    needs!("nvcc", has_nvcc());
    let server = Server::start();
    let source = host("puts(\"begun\"); fflush(stdout); for (volatile int i = 0;; ) i = 1;");
    let body = json!({"jobs": [{"kind": "evaluate", "request": program(&source)}]});
    let answer = server.post_json("/jobs", &body);
    let id = answer.json["jobs"][0]["job_id"].as_str().expect("an id").to_owned();
    until("the program to run", || {
        let view = server.get(&format!("/jobs/{id}")).json;
        ["validating", "profiling"].iter().any(|state| view["state"] == *state).then_some(())
    });
    assert!(server.delete(&format!("/jobs/{id}")).status < 300);
    let began = Instant::now();
    let report = server.evaluate(&program_of("return 0;"));
    assert_eq!(report["program"]["exit_code"], 0, "{report:#}");
    assert!(began.elapsed() < Duration::from_secs(40), "the device was not kept");
}

#[test]
fn whole_programs_on_a_gpu_have_a_timeline_and_metrics() {
    needs!("a GPU", !emulated());
    needs!("nvcc", has_nvcc());
    let server = Server::start();
    let timeline = server.get("/capabilities").json["devices"][0]["timeline"]["available"] == true;
    needs!("Nsight Systems", timeline);
    let mut request = expecting(ADD, json!({"exit_code": 0}));
    request["profile"] = json!({});
    let report = server.evaluate(&request);
    assert_eq!(report["kernel_exec_result"]["correctness"], true, "{report:#}");
    let timeline = &report["timeline"];
    assert_eq!(timeline["available"], true, "{timeline:#}");
    assert_eq!(timeline["kernels"][0]["count"], 3, "{timeline:#}");
    assert_eq!(report["program"]["kernels"][0]["launches"], 3, "{report:#}");
    assert_eq!(report["profile"]["available"], true, "{}", report["profile"]);
    let metrics = &report["kernel_exec_result"]["metadata"]["device_metrics"];
    assert_eq!(metrics["source"], "ncu", "{metrics:#}");
}
