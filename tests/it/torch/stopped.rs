//! Torch kernels that compute while they must be stopped: none gets a time below the true one.
//! Kernels whose process ends with its parent run once more, or are answered with 503.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::hostile::of_torch;
use super::{available, expecting, on_cpu, right};
use crate::server::{Answer, Server, until};

/// What both kernels below begin with. The judge writes the inputs when the process has answered that it has
/// memory for them. A process that runs then computes before its time is taken, since the reference takes
/// 0.3 s in between.
const PRELUDE: &str = "
import __main__, ctypes, fcntl, json, os, signal, socket, struct, sys, threading, time
import torch
SESSION, BUILDS, EMPTY = 3, 4, 0x7fc12345
libc = ctypes.CDLL(None, use_errno=True)

def compute(x):
    threading.Event().wait(0.1)
    return x * 2

def frame(message):
    body = json.dumps(message).encode()
    return struct.pack('<I', len(body)) + body

def marks_of(runner):
    marks = [t.view(-1)[-1:].numpy().view('int32') for t in runner.arguments]
    for mark in marks:
        mark[0] = EMPTY
    return marks

def computed_early(runner, marks):
    end = time.time() + 10
    while any(mark[0] == EMPTY for mark in marks) and time.time() < end:
        threading.Event().wait(0.0001)
    with torch.no_grad():
        runner.returned = compute(*runner.arguments)
    return {'done': runner.values.told(runner.returned)}

def next_question(runner, asked, answer):
    question = __main__.read_frame(SESSION)
    if answer is None or question['do'] != 'call':
        answer = getattr(runner, 'do_' + question['do'])(question)
    asked['turn'] = question['turn']
    return answer

class ModelNew(torch.nn.Module):
    def forward(self, x):
        __main__.Runner.do_allocate = do_allocate
        return compute(x)
";

/// The signal to stop goes to the main thread, which is in a system call that ends for no such signal. The
/// other thread computes meanwhile, and answers twice.
const IN_A_LONG_CALL: &str = "
SIZE = 4 << 30
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.madvise.argtypes = libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]

def do_allocate(self, asked):
    self.arguments = self.values.made(asked['arguments'], self.values.allocated)
    marks = marks_of(self)
    def other():
        threading.Event().wait(0.01)
        os.write(SESSION, frame({'made': self.values.told(self.arguments), 'turn': asked['turn']}))
        answer = computed_early(self, marks)
        question = __main__.read_frame(SESSION)
        os.write(SESSION, frame({**answer, 'turn': question['turn']}))
    at = libc.mmap(None, SIZE, 3, 0x4022, -1, 0)
    libc.madvise(at, SIZE, 15)
    thread = threading.Thread(target=other)
    thread.start()
    libc.madvise(at, SIZE, 22)
    thread.join()
    libc.munmap(at, SIZE, 0)
    return next_question(self, asked, None)
";

/// What the server answers to an order is to wake the process by a signal, once it is stopped.
const WOKEN: &str = "
try:
    socket.socket(fileno=os.dup(BUILDS)).setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 400000)
    fcntl.fcntl(BUILDS, 10, signal.SIGCONT)
    fcntl.fcntl(BUILDS, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(BUILDS, fcntl.F_SETFL, fcntl.fcntl(BUILDS, fcntl.F_GETFL) | os.O_NONBLOCK | 0o20000)
    can_be_woken = True
except OSError:
    can_be_woken = False
count = 0

def orders():
    global count
    data = b''
    for number in range(60):
        count += 1
        filler = b'\\\\u0041' * (5000 if number < 5 else 0)
        body = b'{\"ptxas\": {\"ptx\": \"' + filler + b'%d\", \"options\": []}}' % count
        data += struct.pack('<I', len(body)) + body
    return data

def do_allocate(self, asked):
    self.arguments = self.values.made(asked['arguments'], self.values.allocated)
    made = {'made': self.values.told(self.arguments)}
    if not can_be_woken:
        return made
    marks = marks_of(self)
    try:
        while os.read(BUILDS, 1 << 16):
            pass
    except BlockingIOError:
        pass
    body = frame({**made, 'turn': asked['turn']})
    ordered = orders()
    os.write(SESSION, body[:4])
    os.write(BUILDS, ordered)
    os.write(SESSION, body[4:])
    return next_question(self, asked, computed_early(self, marks))
";

#[test]
fn no_torch_kernel_computes_while_its_time_is_not_taken() {
    needs!("PyTorch", available());
    let server = on_cpu();
    for (what, body) in [("in a long call", IN_A_LONG_CALL), ("woken", WOKEN)] {
        let reference = "
import threading, torch
class Model(torch.nn.Module):
    def forward(self, x):
        threading.Event().wait(0.3)
        return x * 2
def get_inputs():
    return [torch.randn(1000)]";
        let torch = |source: &str| json!({"kernel_type": "torch", "source_code": source});
        let answer = server.post_json(
            "/compare",
            &json!({
                "ref_kernel": torch(reference),
                "custom_kernel": torch(&format!("{PRELUDE}{body}")),
                "num_trials": 4, "timeout": 60.0,
            }),
        );
        assert_eq!(answer.status, 200, "{what}: {}", answer.text);
        let own = &answer.json["candidates"][0]["evaluation"];
        match own["kernel_exec_result"]["runtime_stats"]["min"].as_f64() {
            Some(least) => assert!(least >= 100.0, "{what}: {least} ms, which takes 100 ms"),
            None => assert_eq!(own["failure"]["code"], "not_stopped", "{what}: {own:#}"),
        }
    }
}

/// A kernel that is at its work for some seconds.
fn slow() -> Value {
    let source = "import threading\nthreading.Event().wait(2)\ndef f(x):\n    return x * 2";
    expecting(source, source)
}

/// Answers a request while the process that runners are forked from is ended, as soon as there are
/// runners, as often as that.
fn answered_while_parents_end(server: &Server, times: usize) -> Answer {
    std::thread::scope(|scope| {
        let asked = scope.spawn(|| server.post_json("/evaluate", &slow()));
        let mut ended = BTreeSet::new();
        while ended.len() < times {
            let parent = until("there are runners", || {
                let all = of_torch(server);
                let first = *all.first()?;
                (all.len() == 3 && !ended.contains(&first)).then_some(first)
            });
            let pid = Pid::from_raw(parent.cast_signed()).unwrap();
            kill_process(pid, Signal::KILL).unwrap();
            ended.insert(parent);
        }
        asked.join().unwrap()
    })
}

#[test]
fn a_torch_kernel_whose_parent_ends_is_not_at_fault() {
    needs!("PyTorch", available());
    let server = on_cpu();
    let answer = answered_while_parents_end(&server, 1);
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!(answer.json["kernel_exec_result"]["correctness"], true, "{}", answer.text);
    let answer = answered_while_parents_end(&server, 3);
    assert_eq!(answer.status, 503, "{}", answer.text);
    assert_eq!(answer.json["code"], "unavailable", "{}", answer.text);
    assert!(answer.text.contains("not at fault"), "{}", answer.text);
    right(&server, "after", &slow());
}

/// The state of a process, as `proc(5)` has it.
fn state_of(process: u32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

/// A runner that is stopped for so long is a candidate whose reference waits.
const STOPPED_FOR: Duration = Duration::from_millis(1500);

/// Answers a request while runners that are stopped for long are woken from outside, each once: those of as many
/// attempts.
fn answered_while_runners_are_woken(server: &Server, request: &Value, attempts: usize) -> Answer {
    std::thread::scope(|scope| {
        let asked = scope.spawn(|| server.post_json("/evaluate", request));
        let mut woken = BTreeSet::new();
        let mut stopped_since = BTreeMap::new();
        while woken.len() < attempts {
            let process = until("a runner is stopped for long", || {
                let runners: Vec<u32> = of_torch(server).into_iter().skip(1).collect();
                stopped_since.retain(|process, _| runners.contains(process));
                runners.into_iter().filter(|process| !woken.contains(process)).find(|&process| {
                    if state_of(process) != Some('T') {
                        stopped_since.remove(&process);
                        return false;
                    }
                    let since = stopped_since.entry(process).or_insert_with(Instant::now);
                    since.elapsed() > STOPPED_FOR
                })
            });
            kill_process(Pid::from_raw(process.cast_signed()).unwrap(), Signal::CONT).unwrap();
            woken.insert(process);
        }
        asked.join().unwrap()
    })
}

#[test]
fn a_torch_kernel_that_something_else_wakes_is_retried() {
    needs!("PyTorch", available());
    let server = on_cpu();
    // The candidate is stopped while its reference waits: longer than either is while the other one is loaded.
    let reference = "import threading\ncount = 0\ndef f(x):\n    global count\n    count += 1\n    \
        if count == 2:\n        threading.Event().wait(2.5)\n    return x * 2";
    let request = expecting("def f(x):\n    return x * 2", reference);
    right(&server, "before", &request);
    let answer = answered_while_runners_are_woken(&server, &request, 1);
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!(answer.json["kernel_exec_result"]["correctness"], true, "{}", answer.text);
    assert!(server.output().contains("is retried with other processes"), "{}", server.output());
    // No kernel is judged that was awake each time.
    let answer = answered_while_runners_are_woken(&server, &request, 3);
    assert_eq!(answer.json["failure"]["code"], "not_stopped", "{}", answer.text);
    right(&server, "after", &request);
}
