//! Attacks on the verdict and on the time, each a kernel. No wrong kernel is correct, and no kernel
//! is faster than it was. [`hostile`](super::hostile) has attacks that end processes, imitate the
//! runner, or take resources.

use serde_json::{Value, json};

use super::{available, expecting, on_cpu, right};
use crate::server::Server;

const DOUBLE: &str = "def f(x):\n    return x * 2";

const PRELUDE: &str = "
import __main__, ctypes, fcntl, gc, json, mmap, os, resource, signal, socket, struct, sys, threading, time, types
libc = ctypes.CDLL(None, use_errno=True)
kept = {}
def _denied(what):
    try:
        got = what()
    except (OSError, RuntimeError, ValueError, MemoryError) as error:
        print('denied', type(error).__name__)
        return
    if isinstance(got, int) and got < 0:
        print('denied', ctypes.get_errno())
    else:
        print('GOT IT', got)
";

/// A kernel whose body is this.
fn attack(body: &str) -> Value {
    let body: String = body.trim().lines().map(|line| format!("    {line}\n")).collect();
    expecting(&format!("{PRELUDE}\ndef f(x):\n{body}"), DOUBLE)
}

/// None of these computes what it returns from the inputs of the call. What is returned is not to be called
/// right, whatever else it is.
const WRONG: [(&str, &str); 22] = [
    ("patched torch.empty", "
torch.empty = lambda *a, **k: kept.setdefault('e', torch.zeros(1000))
return kept.setdefault('y', x * 2)"),
    ("patched generators", "
torch.randn = torch.rand = torch.empty_like = lambda *a, **k: torch.ones(1000)
torch.manual_seed = lambda seed: None
return kept.setdefault('y', x * 2)"),
    ("cache by address", "
return kept.setdefault(x.data_ptr() and 0, x * 2)"),
    ("cache by shape and type", "
return kept.setdefault((x.shape, x.dtype), x * 2)"),
    ("cache by rounded content", "
return kept.setdefault(round(float(x.mean())), x * 2)"),
    ("cache by calls", "
kept['n'] = kept.get('n', 0) + 1
return x * 2 if kept['n'] < 3 else kept.setdefault('y', x * 2)"),
    ("an expectation in the frames", "
frame = sys._getframe()
while frame:
    for found in list(frame.f_locals.values()):
        if isinstance(found, torch.Tensor) and found is not x and found.shape == x.shape and torch.equal(found, x * 2):
            print('GOT IT')
            return found
    frame = frame.f_back
return torch.zeros(1000)"),
    ("an expectation in the heap", "
for found in gc.get_objects() + gc.get_referrers(x):
    if isinstance(found, torch.Tensor) and found is not x and found.shape == x.shape and torch.equal(found, x * 2):
        print('GOT IT')
        return found
return torch.zeros(1000)"),
    ("a view of the input", "
return x.view(1000)"),
    ("the input's memory, put back later", "
x.mul_(2)
threading.Timer(0.001, lambda: x.div_(2)).start()
return x"),
    ("an expanded element", "
return (x[:1] * 2).expand(1000)"),
    ("strides over the input", "
return torch.as_strided(x, (1000,), (0,)) * 2"),
    ("10 GB", "
return torch.zeros(1).expand(2_684_354_560)"),
    ("10 GB that are there", "
return torch.ones(2_684_354_560)"),
    ("NaN for all", "
return torch.full((1000,), float('nan'))"),
    ("infinities", "
return x * 2 + float('inf')"),
    ("a subclass that lies on its shape", "
class Odd(torch.Tensor):
    shape = property(lambda self: torch.Size([1000]))
    def stride(self, *a): return (1,)
    def data_ptr(self): return x.data_ptr()
return torch.zeros(10).as_subclass(Odd)"),
    ("an object that says it is a tensor", "
class Odd:
    __class__ = property(lambda self: torch.Tensor)
    dtype, shape, layout, is_quantized, is_cuda = torch.float32, (1000,), torch.strided, False, False
    device = torch.device('cpu')
    def data_ptr(self): return x.data_ptr()
    def stride(self): return (1,)
return Odd()"),
    ("a list without end", "
class Odd(list):
    def __iter__(self):
        while True: yield x
return Odd([x])"),
    ("a number that writes JSON", "
class Odd(float):
    def __repr__(self): return '1\"}}, \"turn\": 1, \"x\": {\"y\": \"'
return Odd(1.0)"),
    ("memory that is replaced beneath the output", "
out = torch.empty(1 << 20)
out[:1000] = x * 2
page = (out.data_ptr() + 4095) & ~4095
libc.mmap.restype = ctypes.c_void_p
libc.mmap(ctypes.c_void_p(page), ctypes.c_size_t(8192), 3, 0x32, -1, ctypes.c_long(0))
begin = (page - out.data_ptr()) // 4
return out[begin : begin + 1000]"),
    ("memory that is given back", "
out = torch.empty(1 << 20)
page = (out.data_ptr() + 4095) & ~4095
begin = (page - out.data_ptr()) // 4
out[begin : begin + 1000] = x * 2
libc.madvise(ctypes.c_void_p(page), ctypes.c_size_t(8192), 4)
return out[begin : begin + 1000]"),
];

/// Each of these patches what answers in its process; none may be called right.
const FORGED: [(&str, &str); 5] = [
    ("calls that are not made", "
def do_call(self, asked):
    out = kept.setdefault('y', torch.zeros(1000))
    return {'done': self.values.told(out)}
__main__.Runner.do_call = do_call
return x * 2"),
    ("descriptions of the input", "
__main__.Values.described = lambda self, tensor: {'address': x.data_ptr(), 'dtype': 'float32', 'shape': [1000], 'strides': [1]}
return torch.zeros(1000)"),
    ("a tensor in device memory", "
__main__.Values.described = lambda self, tensor: {'address': 64, 'block': 'AAAA', 'dtype': 'float32', 'shape': [1000], 'strides': [1]}
return x * 2"),
    ("JSON of its own", "
__main__.json.dumps = lambda *a, **k: '{\"done\": {\"list\": []}}'
return x * 2"),
    ("an answer for each question to come", "
__main__.read_frame = lambda fd: {'do': 'nothing', 'turn': 7}
return x * 2"),
];

/// Addresses come again with other content, sooner or later: a cache that is never hit leaves no work out.
fn caches_by_address(server: &Server) {
    for key in ["x.data_ptr()", "id(x)"] {
        let mut request = attack(&format!("return kept.setdefault({key}, x * 2)"));
        request["num_trials"] = json!(60);
        let report = server.evaluate(&request);
        assert_eq!(report["kernel_exec_result"]["correctness"], false, "{key}: {report:#}");
    }
}

#[test]
fn no_attack_is_called_right() {
    needs!("PyTorch", available());
    let server = on_cpu();
    for (what, body) in WRONG.iter().chain(&FORGED) {
        let report = server.evaluate(&attack(body));
        let result = &report["kernel_exec_result"];
        assert_eq!(result["correctness"], false, "{what}: {report:#}");
        assert!(result["runtime"].is_null() && result["runtime_stats"].is_null(), "{what}");
        let printed = report["printed"].as_str().unwrap_or_default();
        assert!(!printed.contains("GOT IT"), "{what}: {printed}");
        let reason = report["validation"]["reasons"][0]["message"].as_str();
        assert!(reason.is_some_and(|reason| !reason.is_empty()), "{what}: {report:#}");
    }
    caches_by_address(&server);
    less_precise(&server);
    not_slower_than_it_was(&server);
    what_a_process_may_not(&server);
    stops_itself(&server);
    right(&server, "after all", &attack("return x * 2"));
}

/// Precision is what the contract allows.
fn less_precise(server: &Server) {
    for body in ["return (x.bfloat16() * 2).float()", "return (x.half() * 2).float()"] {
        let mut request = attack(body);
        request["tolerance"] = json!({"atol": 1e-6, "rtol": 1e-6});
        let report = server.evaluate(&request);
        assert_eq!(report["kernel_exec_result"]["correctness"], false, "{body}: {report:#}");
    }
}

/// Each call waits for a fiftieth of a second, and does what it can so that nobody sees it. A time is at
/// least that.
fn not_slower_than_it_was(server: &Server) {
    let waits = "
wait = threading.Event().wait
wait(0.02)";
    for (what, more) in [
        ("patched clocks", "
time.time = time.perf_counter = time.monotonic = time.process_time = lambda: 0.0
time.time_ns = time.perf_counter_ns = time.monotonic_ns = lambda: 0
__main__.time = types.SimpleNamespace(time=lambda: 0)"),
        ("a clock that is set back", "
_denied(lambda: libc.clock_settime(0, ctypes.create_string_buffer(16)))
_denied(lambda: libc.settimeofday(ctypes.create_string_buffer(16), None))"),
        ("signals", "
for number in (signal.SIGCONT, signal.SIGTERM, signal.SIGALRM, signal.SIGUSR1):
    signal.signal(number, lambda *_: kept.update(woken=True))
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
signal.setitimer(signal.ITIMER_REAL, 0)"),
        ("what nothing takes", "
__main__.Runner.do_nothing = lambda self, asked: (wait(0.02), {'done': None})[1]"),
        ("threads that go on", "
if 'thread' not in kept:
    kept['thread'] = threading.Thread(target=lambda: [wait(0.0001) for _ in range(10**9)], daemon=True)
    kept['thread'].start()"),
        ("limits and names", "
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
libc.prctl(15, b'other', 0, 0, 0)
libc.prctl(4, 0, 0, 0, 0)"),
    ] {
        let report = right(server, what, &attack(&format!("{waits}{more}\nreturn x * 2")));
        let least = report["kernel_exec_result"]["runtime_stats"]["min"].as_f64().unwrap();
        assert!(least >= 20.0, "{what}: {least}");
        let printed = report["printed"].as_str().unwrap_or_default();
        assert!(!printed.contains("GOT IT"), "{what}: {printed}");
    }
}

/// What it tries is refused, and it is right otherwise.
fn what_a_process_may_not(server: &Server) {
    let tries = "
call = libc.syscall
here, parent = os.getpid(), os.getppid()
space = ctypes.create_string_buffer(64)
parts = (ctypes.c_void_p * 2)(ctypes.addressof(space), 64)
_denied(lambda: libc.ptrace(0, 0, 0, 0))
_denied(lambda: libc.ptrace(16, parent, 0, 0))
_denied(lambda: libc.process_vm_readv(parent, parts, 1, parts, 1, 0))
_denied(lambda: open('/proc/self/mem', 'r+b'))
_denied(lambda: open(f'/proc/{parent}/maps').read())
_denied(lambda: open('/dev/shm/x', 'w'))
_denied(lambda: os.memfd_create('x'))
_denied(lambda: libc.shmget(0, 4096, 0o1600))
_denied(lambda: call(323, 0))
_denied(lambda: call(425, 8, space))
_denied(lambda: call(206, 8, space))
_denied(lambda: call(56, 17, 0, 0, 0, 0))
_denied(lambda: call(435, space, 64))
_denied(lambda: libc.vfork())
_denied(lambda: os.posix_spawn('/bin/true', ['true'], {}))
_denied(lambda: [os.fork() for _ in range(10000)])
_denied(lambda: resource.setrlimit(resource.RLIMIT_AS, (-1, -1)))
_denied(lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 30, 1 << 30)))
_denied(lambda: libc.prctl(1, 0, 0, 0, 0))
_denied(lambda: os.kill(here, signal.SIGSTOP))
_denied(lambda: os.kill(-1, signal.SIGKILL))
_denied(lambda: os.sched_setaffinity(0, {0}))
_denied(lambda: os.nice(-5))
_denied(lambda: libc.unshare(0x10000000))
_denied(lambda: socket.socket(socket.AF_UNIX))
descriptors = []
for number in range(3, 1024):
    try:
        fcntl.fcntl(number, fcntl.F_GETFD)
    except OSError:
        continue
    descriptors.append(number)
print('descriptors', descriptors)
return x * 2";
    let mut request = attack(tries);
    request["num_trials"] = json!(1);
    let report = right(server, "tries", &request);
    let printed = report["printed"].as_str().unwrap();
    assert!(!printed.contains("GOT IT"), "{printed}");
    assert_eq!(
        printed.matches("denied").count(),
        3 * tries.matches("\n_denied(").count(),
        "{printed}"
    );
    // The session, where it asks for what is compiled, and nothing of anybody else's.
    assert_eq!(printed.matches("descriptors [3, 4]").count(), 3, "{printed}");
}

/// It says the beginning of an answer and no more, or waits for what nobody sends: it costs its own time.
fn stops_itself(server: &Server) {
    for (what, body) in [
        ("half an answer", "os.write(3, struct.pack('<I', 100) + b'{')\nthreading.Event().wait()"),
        (
            "masked signals",
            "
signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 64))
threading.Event().wait()",
        ),
        (
            "descriptors in the answer",
            "
session = socket.socket(fileno=os.dup(3))
socket.send_fds(session, [b'x'], [0, 1, 2])
return x * 2",
        ),
        (
            "an answer byte by byte",
            "
while True:
    os.write(3, b'\\x00')
    threading.Event().wait(0.01)",
        ),
    ] {
        let mut request = attack(body);
        request["timeout"] = json!(1.0);
        let report = server.evaluate(&request);
        assert_eq!(report["kernel_exec_result"]["correctness"], false, "{what}: {report:#}");
        assert!(report["failure"]["code"].is_string(), "{what}: {report:#}");
    }
}
