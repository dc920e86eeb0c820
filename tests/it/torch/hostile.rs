//! Torch kernels that crash, hang, take resources, or report false results. Each costs its request
//! a result with the reason, leaves nothing behind, and does not affect the next request.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{available, expecting, on_cpu, right, unloaded, wrong};
use crate::children::descendants;
use crate::server::{Server, until};

const DOUBLE: &str = "def f(x):\n    return x * 2";

/// A kernel that does something when it is called, and is right otherwise.
fn doing(what: &str) -> Value {
    let body: String = what.lines().map(|line| format!("    {line}\n")).collect();
    expecting(
        &format!(
            "import ctypes, gc, os, socket, struct, sys, threading, time\ndef f(x):\n{body}    return x * 2\n"
        ),
        DOUBLE,
    )
}

/// The same with a deadline of its own.
fn within(seconds: f64, mut request: Value) -> Value {
    request["timeout"] = json!(seconds);
    request
}

#[test]
fn a_hostile_torch_kernel_costs_itself_and_nobody_else() {
    needs!("PyTorch", available());
    let server = on_cpu();
    right(&server, "before", &doing(""));
    ends(&server);
    takes(&server);
    lies(&server);
    cheats(&server);
    only_the_zygote_is_left(&server);
    // What the system ends for want of memory is started again.
    let zygote = rustix::process::Pid::from_raw(of_torch(&server)[0].cast_signed()).unwrap();
    rustix::process::kill_process(zygote, rustix::process::Signal::KILL).unwrap();
    let report = right(&server, "after", &doing(""));
    assert!(report["timings"]["total"].as_f64().unwrap() < 30_000.0, "{report:#}");
    only_the_zygote_is_left(&server);
}

/// The server's processes that have imported PyTorch, or are about to: the one that waits, and its forks.
pub(super) fn of_torch(server: &Server) -> Vec<u32> {
    let is_one = |process: &u32| {
        let words = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&words).contains("has imported PyTorch, and forks")
    };
    descendants(server.pid()).into_iter().filter(is_one).collect()
}

fn only_the_zygote_is_left(server: &Server) {
    until("all runners have ended", || (of_torch(server).len() == 1).then_some(()));
}

/// It ends in its own ways, or does not.
fn ends(server: &Server) {
    for (what, part) in [
        ("os._exit(0)", "exit code 0"),
        ("ctypes.string_at(0)", "segmentation fault"),
        ("os.abort()", "abort"),
        ("os.close(3)", "its process ended"),
    ] {
        let report = wrong(server, what, &doing(what), "launch_failed", part);
        assert_eq!(report["failure"]["code"], "worker_died", "{what}");
        right(server, what, &doing(""));
    }
    let began = Instant::now();
    let hangs = within(1.5, doing("while True:\n    pass"));
    let report = wrong(server, "a loop", &hangs, "timeout", "within 1.5 s");
    assert_eq!(report["failure"]["code"], "timeout");
    let stuck = "import threading\nthreading.Event().wait()";
    unloaded(
        server,
        "a loop in the module",
        &within(1.0, expecting(stuck, DOUBLE)),
        "timeout",
        "within 1 s",
    );
    assert!(began.elapsed() < Duration::from_secs(60));
    for (what, part) in [
        ("sys.exit()", "sys.exit"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("def g():\n    g()\ng()", "RecursionError"),
        ("raise type('Odd', (BaseException,), {'__str__': lambda s: 'x' * 10**6})()", "xxx"),
    ] {
        let report = wrong(server, what, &doing(what), "launch_failed", part);
        assert!(report.to_string().len() < 100_000, "{what}");
    }
    let exits = expecting("import os\nos._exit(7)", DOUBLE);
    unloaded(server, "a module that ends", &exits, "worker_died", "exit code 7");
}

/// It takes what it can get.
fn takes(server: &Server) {
    let memory = wrong(server, "memory", &doing("torch.empty(1 << 40)"), "out_of_memory", "memory");
    assert_eq!(memory["failure"]["code"], "out_of_memory");
    // What PyTorch raises where a device has none left.
    let device =
        doing("raise torch.OutOfMemoryError('CUDA out of memory. Tried to allocate 2 GiB')");
    wrong(server, "a device's memory", &device, "out_of_memory", "OutOfMemoryError");
    let lists = doing("kept = [bytearray(1 << 30) for _ in range(100)]");
    wrong(server, "lists", &lists, "out_of_memory", "MemoryError");
    let denied = "
def denied(what):
    try:
        what()
    except (OSError, RuntimeError) as error:
        print(type(error).__name__)
    else:
        print('got it')
denied(os.fork)
denied(lambda: os.kill(os.getppid(), 9))
denied(lambda: os.execv('/bin/true', ['true']))
denied(lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM))
denied(lambda: open('/proc/self/maps').read())
denied(lambda: open(f'/proc/{os.getppid()}/mem', 'rb').read(1))
denied(lambda: open(f'/proc/{os.getppid()}/environ', 'rb').read())
denied(lambda: os.listdir('/proc/self/fd'))
denied(lambda: os.listdir('/tmp'))
denied(lambda: open('/etc/passwd').read())
denied(lambda: open('/tmp/x', 'w'))
denied(lambda: [threading.Thread(target=threading.Event().wait, daemon=True).start() for _ in range(10**5)])
libc = ctypes.CDLL(None, use_errno=True)
def called(*arguments):
    if libc.syscall(*[ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]) == -1:
        raise OSError(ctypes.get_errno(), 'refused') if ctypes.get_errno() == 1 else SystemError
denied(lambda: called(452, -100, b'/tmp', 0o777, 0))
denied(lambda: called(30, 0, 0, 0))
denied(lambda: called(280, -100, b'/tmp', 0, 0))
denied(lambda: __import__('fcntl').fcntl(1, 10, 18))
denied(lambda: __import__('fcntl').fcntl(1, 8, os.getpid()))
denied(lambda: called(1000, 0))
print(threading.active_count() < 1000)
print(len(os.environ.get('WARPGAUGE_DATA_DIR', '')))";
    let mut request = doing(denied);
    request["num_trials"] = json!(1);
    let report = right(server, "what is denied", &request);
    let printed = report["printed"].as_str().unwrap();
    assert!(!printed.contains("got it"), "{printed}");
    let lines: Vec<&str> = printed.lines().collect();
    // Twelve and six attempts, two lines more, in each of three calls.
    assert_eq!((lines.len(), lines[18], lines[19]), (20 * 3, "True", "0"), "{printed}");
    let loud = doing("chunk = b'x' * (1 << 20)\nfor _ in range(64):\n    os.write(1, chunk)");
    let report = right(server, "output", &loud);
    assert_eq!(report["printed"].as_str().unwrap().len(), 64 << 10);
}

/// It speaks for its runner.
fn lies(server: &Server) {
    let frame = "def say(message):\n    os.write(3, struct.pack('<I', len(message)) + message)\n";
    for (what, part) in [
        ("say(b'true')", "cannot be read"),
        ("say(b'{\"turn\": 1, \"done\": {\"list\": []}}')", "a question that it was not asked"),
        (
            "say(b'{\"turn\": 1, \"refused\": {\"code\": \"x\", \"message\": \"\", \"line\": null, \"log\": \"\"}}')",
            "a question that it was not asked",
        ),
        ("os.write(3, b'\\xff\\xff\\xff\\x7f')", "message is too long"),
        ("say(b'[' * 200000)", "cannot be read"),
        ("say(b'{\"turn\": TURN, \"loaded\": null}'.replace(b'TURN', b'1'))", "cannot be read"),
    ] {
        let report = wrong(server, what, &doing(&format!("{frame}{what}")), "launch_failed", part);
        assert_eq!(report["failure"]["code"], "protocol_violated", "{what}");
    }
    for (address, part) in [
        ("8", "cannot be accessed"),
        ("2**63 + 8", "cannot be accessed"),
        ("2**64 - 4", "cannot be accessed"),
    ] {
        let what = format!(
            "import __main__\n__main__.Values.described = lambda self, tensor: {{'address': {address}, \
             'dtype': 'float32', 'shape': [1000], 'strides': [1]}}"
        );
        let report = wrong(server, address, &doing(&what), "launch_failed", part);
        assert_eq!(report["failure"]["code"], "protocol_violated", "{address}");
    }
    let huge = "import __main__\n__main__.Values.described = lambda self, tensor: {'address': tensor.data_ptr(), \
                'dtype': 'float32', 'shape': [1 << 40], 'strides': [0]}";
    wrong(server, "huge", &doing(huge), "launch_failed", "at most");
    right(server, "after lies", &doing(""));
}

/// It wants to be told right, or fast, for less work.
fn cheats(server: &Server) {
    // What somebody might compare or time with, which nobody here does.
    let patched = "
for module in (torch, torch.testing, torch.Tensor):
    for name in ('equal', 'allclose', 'isclose', 'assert_close'):
        if hasattr(module, name):
            setattr(module, name, lambda *a, **k: True)
torch.Tensor.__eq__ = torch.Tensor.__ne__ = lambda *a: torch.ones(1, dtype=torch.bool)
time.time = time.perf_counter = time.monotonic = time.time_ns = lambda: 0
return torch.zeros(1000)";
    wrong(server, "patched", &doing(patched), "output_mismatch", "`y`");
    // There is nothing to be found: what is expected is in another process.
    let searching = "
for found in gc.get_objects():
    if isinstance(found, torch.Tensor) and found.shape == x.shape and found is not x:
        if torch.equal(found, x * 2):
            print('found it')
            return found
return torch.zeros(1000)";
    let report = wrong(server, "gc", &doing(searching), "output_mismatch", "`y`");
    assert!(report["printed"].is_null(), "{report:#}");
    wrong(server, "aliased", &doing("return x"), "output_mismatch", "`y`");
    // The answer is there later, or is gone later.
    let later = "
out = torch.zeros(1000)
def finish():
    threading.Event().wait(0.2)
    out.copy_(x * 2)
threading.Thread(target=finish).start()
return out";
    wrong(server, "later", &doing(later), "output_mismatch", "`y`");
    let gone = "
out = x * 2
def spoil():
    threading.Event().wait(0.2)
    while True:
        out.zero_()
threading.Thread(target=spoil, daemon=True).start()
return out";
    let report = right(server, "threads that go on", &doing(gone));
    assert_eq!(report["measurement"]["audited"], 3);
    // It says that it is done, with the number of the question, and goes on to do it.
    let early = "
frame = sys._getframe()
while 'asked' not in frame.f_locals:
    frame = frame.f_back
out = torch.zeros(1000)
told = {'turn': frame.f_locals['asked']['turn'], 'done': {'tensor': {'address': out.data_ptr(),
    'dtype': 'float32', 'shape': [1000], 'strides': [1]}}}
import json
message = json.dumps(told).encode()
os.write(3, struct.pack('<I', len(message)) + message)
threading.Event().wait(0.05)
out.copy_(x * 2)
return out";
    wrong(server, "early", &doing(early), "output_mismatch", "`y`");
    // A tensor that is computed when somebody looks.
    let lazy = "
class Lazy(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return torch._C.DisableTorchFunctionSubclass and super().__torch_function__(function, types, args, kwargs or {})
    def data_ptr(self):
        print('looked at')
        return 0
return torch.zeros(1000).as_subclass(Lazy)";
    let report = wrong(server, "lazy", &doing(lazy), "output_mismatch", "`y`");
    assert!(report["printed"].is_null(), "{report:#}");
    let empty = "
class Empty(torch.Tensor):
    @staticmethod
    def __new__(cls):
        return torch.Tensor._make_wrapper_subclass(cls, (1000,), dtype=torch.float32)
    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        return x * 2
return Empty()";
    right(server, "computed when looked at, which is before it is done", &doing(empty));
    let meta = wrong(
        server,
        "meta",
        &doing("return torch.empty(1000, device='meta')"),
        "launch_failed",
        "on meta",
    );
    assert_eq!(meta["failure"]["code"], "unusable_output");
    // What was right for one input is not for the next.
    let cached = "global kept\nkept = globals().get('kept', x * 2)\nreturn kept";
    wrong(server, "cached", &doing(cached), "wrong_for_other_seeds", "right at first");
}

#[test]
fn a_refused_call_is_named_with_what_a_kernel_may_do() {
    needs!("PyTorch", available());
    let server = on_cpu();
    for (body, named) in [
        ("os.chmod('/', 0o777)", "in `os.chmod('/', 0o777)`; warpgauge refuses this system call"),
        ("socket.create_connection(('127.0.0.1', 80))", "warpgauge refuses this system call"),
        (
            "open('/nowhere/weights.pt')",
            "a kernel can open no files except those of Python and PyTorch",
        ),
    ] {
        let report = server.evaluate(&doing(body));
        let message = report["failure"]["message"].as_str().unwrap_or_default();
        assert!(message.contains(named), "{report:#}");
    }
}
