//! A runner inside a tool: it confines itself before it becomes an interpreter, and serves like a
//! fork.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;
use warpgauge_sandbox::contained::{ContainedProcess, ProcessEnd, ProcessLaunch};
use warpgauge_torch::{
    EntryPoint, RunnerFault, RunnerSession, Runners, RunnersConfig, Scalar, SubmissionMemory,
    TensorLayout, TorchSubmission, TreeOf,
};

use super::available;

const LONG: Duration = Duration::from_secs(180);

/// What a stranger would like to do, and what it comes to.
const TRIES: &str = "
import os, socket, threading
def f(x):
    def denied(name, what):
        try:
            what()
        except (OSError, RuntimeError):
            pass
        else:
            told.append(name)
    told = []
    parent = f'/proc/{os.getppid()}'
    denied('fork', os.fork)
    denied('execute', lambda: os.execv('/bin/true', ['true']))
    denied('execute itself', lambda: os.execv('/proc/self/exe', ['python', '-c', '0']))
    denied('end the tool', lambda: os.kill(os.getppid(), 9))
    denied('connect', lambda: socket.create_connection(('127.0.0.1', PORT)))
    denied('send by UDP', lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    denied('memory of the tool', lambda: open(parent + '/mem', 'rb').read(1))
    denied('environment of the tool', lambda: open(parent + '/environ', 'rb').read())
    denied('command line of the tool', lambda: open(parent + '/cmdline', 'rb').read())
    denied('users', lambda: open('/etc/passwd').read())
    denied('write elsewhere', lambda: open('OUTSIDE', 'w'))
    denied('remove from the directory', lambda: os.remove('DIRECTORY/kept'))
    denied('trace', lambda: open('/proc/self/mem', 'r+b').write(b''))
    other = threading.Thread(target=lambda: denied('fork in a thread', os.fork))
    other.start()
    other.join()
    return ' '.join(told) or 'nothing'
";

fn submission(source: &str) -> TorchSubmission {
    let entry = EntryPoint { function: Some("f".to_owned()), ..EntryPoint::default() };
    TorchSubmission { source: source.to_owned(), entry, preferred: Vec::new(), given: Vec::new() }
}

/// Starts one under `env`, in the place of a tool, which leaves a descriptor open as tools do, and asks it.
async fn asked<T: Send + 'static>(
    directory: &Path,
    ask: impl FnOnce(RunnerSession) -> T + Send + 'static,
) -> (T, ProcessEnd) {
    let found = &crate::support::toolchain()["torch"];
    let path = |value: &Value| PathBuf::from(value.as_str().unwrap());
    let runners = Runners::new(RunnersConfig {
        program: crate::server::program_path(),
        python: path(&found["python"]),
        site_packages: path(&found["site_packages"]),
        roots: found["roots"].as_array().unwrap().iter().map(path).collect(),
        queue_capacity: 1,
        shared: false,
        device: None,
        places: 1,
        spares: 0,
    });
    let (program, stdin, alone) = runners.alone(directory).unwrap();
    let script = "exec 3</dev/null 4</dev/null; exec \"$@\"";
    let tool = ["/bin/sh", "-c", script, "sh"].map(Into::into);
    let launch = ProcessLaunch::new(program.under(&tool));
    let running = ContainedProcess::start_with(&launch, Stdio::from(stdin)).unwrap();
    let deadline = Instant::now() + LONG;
    let answer = tokio::task::spawn_blocking(move || {
        let runner = alone.runner(deadline).unwrap();
        ask(RunnerSession::begin(runner, deadline).unwrap())
    });
    let answer = answer.await;
    let end = running.finish(tokio::time::Instant::now() + LONG).await;
    (answer.unwrap_or_else(|error| panic!("{error}: {end:?}")), end)
}

#[tokio::test]
async fn a_runner_that_a_tool_is_round_serves_and_reaches_no_more_than_its_own() {
    needs!("PyTorch", available());
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("tool");
    std::fs::create_dir(&directory).unwrap();
    std::fs::write(directory.join("kept"), "").unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let source = TRIES
        .replace("PORT", &listener.local_addr().unwrap().port().to_string())
        .replace("OUTSIDE", &place.path().join("outside").display().to_string())
        .replace("DIRECTORY", &directory.display().to_string());
    let (told, end) = asked(&directory, move |mut session| {
        session.load(&submission(&source), None, 1).unwrap();
        let what = TensorLayout::in_order(warpgauge_tensor::Dtype::Float32, vec![2]);
        let what = TreeOf::Tensor(what);
        session.allocate(&TreeOf::List(vec![what])).unwrap();
        session.call(1).unwrap().returned
    })
    .await;
    assert_eq!(told, TreeOf::Value(Scalar::Text("nothing".to_owned())));
    // It was ended with its session, and the tool with it.
    assert!(end.status.is_some_and(|status| !status.success()), "{end:?}");
}

#[tokio::test]
async fn what_a_tool_has_open_stays_open_and_inputs_are_written_from_outside() {
    needs!("PyTorch", available());
    let place = tempfile::tempdir().unwrap();
    let source = "import os\ndef f(x):\n    os.fstat(3), os.fstat(4)\n    return x * 2";
    let (bytes, _) = asked(place.path(), move |mut session| {
        session.load(&submission(source), None, 1).unwrap();
        let what = TensorLayout::in_order(warpgauge_tensor::Dtype::Float32, vec![2]);
        let made = session.allocate(&TreeOf::List(vec![TreeOf::Tensor(what)])).unwrap();
        let leaves = made.leaves("");
        let TreeOf::Tensor(x) = leaves[0].1 else { panic!("{made:?}") };
        let values = [1.5_f32, -2.0].map(f32::to_le_bytes).concat();
        session.memory().write(x.address, &values).unwrap();
        let TreeOf::Tensor(y) = session.call(1).unwrap().returned else { panic!("no tensor") };
        let mut bytes = vec![0; 8];
        session.memory().read(y.address, &mut bytes).unwrap();
        // There is no device that a tool could look at.
        assert!(matches!(session.count(), Err(RunnerFault::Refused(_))));
        bytes
    })
    .await;
    assert_eq!(bytes, [3.0_f32, -4.0].map(f32::to_le_bytes).concat());
}

/// Inputs that are new each time, and such that are written into memory that has been returned before.
const DRAWN: [&str; 6] = [
    "def get_inputs():\n    return [torch.randn(4)]",
    "X = torch.empty(4)\ndef get_inputs():\n    return [X.normal_()]",
    "X = [torch.empty(4), torch.empty(4)]\ndef get_inputs():\n    X.reverse()\n    return [X[0].normal_()]",
    "X = np.empty(4)\ndef get_inputs():\n    X[:] = np.random.randn(4)\n    return [X]",
    "X = np.empty(9)\ndef get_inputs():\n    X[:] = np.random.randn(9)\n    return [X[np.random.randint(5):][:4]]",
    "def get_inputs():\n    return [np.random.randn(4)[::-1]]",
];

#[tokio::test]
async fn inputs_that_are_drawn_together_are_those_of_their_seeds() {
    needs!("PyTorch", available());
    let place = tempfile::tempdir().unwrap();
    let mut contents = Vec::new();
    for (index, inputs) in DRAWN.into_iter().enumerate() {
        let directory = place.path().join(index.to_string());
        std::fs::create_dir(&directory).unwrap();
        let source = format!("import numpy as np\nimport torch\n{inputs}\ndef f(x):\n    return x");
        let (drawn, _) = asked(&directory, move |mut session| {
            session.load(&submission(&source), None, 1).unwrap();
            let seeds = [5, 6, 7, 8];
            let mut drawn: Vec<Vec<u8>> = Vec::new();
            while drawn.len() < seeds.len() {
                for made in session.draw_inputs(&seeds[drawn.len()..]).unwrap() {
                    let leaves = made.leaves("");
                    let tensors = leaves.iter().filter_map(|(_, leaf)| match leaf {
                        TreeOf::Tensor(tensor) => Some(tensor),
                        _ => None,
                    });
                    let tensors: Vec<_> = tensors.collect();
                    let [tensor] = &tensors[..] else { panic!("{leaves:?}") };
                    drawn.push(tensor.read(session.memory(), 1 << 10).unwrap());
                }
            }
            drawn
        })
        .await;
        let distinct: std::collections::BTreeSet<&Vec<u8>> = drawn.iter().collect();
        assert_eq!(distinct.len(), 4, "{inputs}");
        contents.push(drawn);
    }
    assert_eq!(contents[1], contents[2]);
}
