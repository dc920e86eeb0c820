//! Functions that callers send: results of functions that work, raise, end, hang, take too many
//! resources, or return unreadable values. Each affects its call alone.

use serde_json::{Value, json};

use crate::children::descendants;
use crate::server::{Server, until};
use crate::support::has_torch;

/// What came of a call: its head, and records with plain values.
struct Called {
    head: Value,
    records: Vec<Value>,
}

impl Called {
    /// The records of iterations that returned something, by number.
    fn values(&self) -> Vec<(u64, Value)> {
        let value = |record: &Value| Some((number(record)?, field(record, "value")?));
        self.records.iter().filter_map(value).collect()
    }

    /// Code and message of the first record that tells of a failure, with its iteration.
    #[track_caller]
    fn failure(&self) -> (Option<u64>, String, String) {
        let found = self.records.iter().find_map(|record| {
            let error = field(record, "error")?;
            let text = |name: &str| field(&error, name).unwrap().as_str().unwrap().to_owned();
            Some((number(record), text("code"), text("message")))
        });
        found.unwrap_or_else(|| panic!("no failure: {} {:?}", self.head, self.records))
    }
}

/// A field of a dictionary as it travels: `["d", [[key, value], …]]`.
fn field(tree: &Value, name: &str) -> Option<Value> {
    let pairs = tree[1].as_array().filter(|_| tree[0] == "d")?;
    pairs.iter().find(|pair| pair[0] == name).map(|pair| pair[1].clone())
}

fn number(record: &Value) -> Option<u64> {
    field(record, "iteration")?.as_u64()
}

fn packed(head: &Value, rest: &[u8]) -> Vec<u8> {
    let head = head.to_string();
    let length = u32::try_from(head.len()).unwrap().to_le_bytes();
    [&length[..], head.as_bytes(), rest].concat()
}

/// A container or a value: its head, and what comes after it.
fn unpacked(bytes: &[u8]) -> (Value, &[u8]) {
    let (length, rest) = bytes.split_first_chunk::<4>().expect("a length");
    let (head, rest) = rest.split_at(u32::from_le_bytes(*length) as usize);
    (serde_json::from_slice(head).expect("JSON"), rest)
}

/// The program that calls a function for some numbers.
fn program(source: &str, items: u64) -> Vec<u8> {
    let lines: Vec<usize> = (1..=source.lines().count()).collect();
    let function = json!({
        "kind": "source", "name": "f", "source": source, "lines": lines, "shown": source,
        "first_line": 1, "file": "f.py", "globals": {}, "defaults": null, "kwdefaults": null,
    });
    let items: Vec<Value> = (0..items).map(|item| json!(["l", [item, item]])).collect();
    let tree = json!({
        "objects": [function], "entry": ["o", 0], "do": "map", "seed": 0, "items": ["l", items],
    });
    packed(&json!({"tree": tree, "segments": []}), b"")
}

fn post(server: &Server, headers: &[(&str, &str)], body: &[u8]) -> (u16, Vec<u8>) {
    let agent: ureq::Agent =
        ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let mut request = agent.post(format!("{}/functions/calls", server.url));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let mut answer = request.send(body).unwrap();
    (answer.status().as_u16(), answer.body_mut().read_to_vec().unwrap())
}

const BINARY: (&str, &str) = ("content-type", "application/octet-stream");

#[track_caller]
fn call(server: &Server, head: &Value, program: &[u8]) -> Called {
    let (status, body) = post(server, &[BINARY], &packed(head, program));
    assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
    let (head, mut rest) = unpacked(&body);
    let mut records = Vec::new();
    while !rest.is_empty() {
        let (length, after) = rest.split_first_chunk::<4>().expect("a length");
        let (record, after) = after.split_at(u32::from_le_bytes(*length) as usize);
        records.push(unpacked(record).0["tree"].clone());
        rest = after;
    }
    Called { head, records }
}

/// Has a function with this body called for 0, 1, 2, 3 and 4.
#[track_caller]
fn five(server: &Server, body: &str) -> Called {
    call(server, &json!({"format": 1, "timeout": 60}), &program(&function(body), 5))
}

/// How a call by a key ended, of a function with this body.
#[track_caller]
pub(crate) fn status_of(server: &Server, key: &str, body: &str) -> Value {
    let head = json!({"format": 1, "timeout": 60});
    let container = packed(&head, &program(&function(body), 1));
    let (status, answer) = post(server, &[BINARY, ("x-api-key", key)], &container);
    assert_eq!(status, 200, "{}", String::from_utf8_lossy(&answer));
    unpacked(&answer).0["status"].clone()
}

fn function(body: &str) -> String {
    let body: String = body.lines().map(|line| format!("    {line}\n")).collect();
    format!("def f(x):\n    import ctypes, os, socket, sys, torch\n{body}    return x * 2\n")
}

#[track_caller]
fn works(server: &Server) {
    let called = five(server, "");
    assert_eq!(called.head["status"], "ended", "{}", called.head);
    let doubled: Vec<_> = (0..5).map(|x| (x, json!(2 * x))).collect();
    assert_eq!(called.values(), doubled);
}

/// A server whose functions may return 1 MiB.
fn server() -> Server {
    Server::start_configured(
        "[limits]\nmax_function_result_bytes = 1_048_576\nmax_function_memory_bytes = 1_073_741_824\n\
         [devices]\ntorch_at_start = false\n",
    )
}

#[test]
fn a_hostile_function_costs_its_call_and_nobody_else() {
    needs!("PyTorch", has_torch());
    let server = server();
    works(&server);
    raises(&server);
    ends(&server);
    takes(&server);
    touches(&server);
    works(&server);
    let is_runner = |process: &u32| {
        let words = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&words).contains("has imported PyTorch, and forks")
    };
    let runners = || descendants(server.pid()).into_iter().filter(is_runner).count();
    until("all runners have ended", || (runners() == 1).then_some(()));
}

/// It raises, or returns what does not travel: the other items are none the worse.
fn raises(server: &Server) {
    for (body, code, part) in [
        ("if x == 3:\n    raise ValueError('three')", "raised", "ValueError: three"),
        ("if x == 3:\n    sys.exit(1)", "raised", "SystemExit"),
        ("if x == 3:\n    raise KeyboardInterrupt", "raised", "KeyboardInterrupt"),
        (
            "if x == 3:\n    import os\n    os.chmod('/', 0o777)",
            "raised",
            "warpgauge refuses this system call: a function",
        ),
        ("if x == 3:\n    f(x)", "raised", "RecursionError"),
        ("if x == 3:\n    return object()", "not_data", "builtins.object"),
        ("if x == 3:\n    return [lambda: 1]", "not_data", "function"),
        ("if x == 3:\n    return torch.nn.Linear(1, 1)", "not_data", "Linear"),
        ("if x == 3:\n    a = []\n    a.append(a)\n    return a", "not_data", "nests deeper"),
        (
            "if x == 3:\n    raise type('E', (Exception,), {'__str__': lambda s: 1 / 0})()",
            "raised",
            "is not available",
        ),
    ] {
        let called = five(server, body);
        assert_eq!(called.head["status"], "ended", "{body}");
        let (iteration, found, message) = called.failure();
        assert_eq!((iteration, found.as_str()), (Some(3), code), "{body}: {message}");
        assert!(message.contains(part), "{body}: {message}");
        assert_eq!(called.values().len(), 4, "{body}");
    }
    let called = five(server, "if x == 3:\n    raise ValueError('three')");
    let record = called.records.iter().find_map(|record| field(record, "error")).unwrap();
    let trace = field(&record, "traceback").unwrap();
    assert!(trace.as_str().unwrap().contains("\"<f.py>\", line 4, in f"), "{trace}");
    let whole = call(server, &json!({"format": 1}), &program("def g(x): pass", 1));
    assert_eq!(whole.failure().0, None);
    let (_, code, message) =
        call(server, &json!({"format": 1}), &program("import nothing_of_this_name", 1)).failure();
    assert!(code == "raised" && message.contains("nothing_of_this_name"), "{message}");
}

/// Its process ends, or does not: what was returned before counts.
fn ends(server: &Server) {
    for (body, status, part) in [
        ("if x == 3:\n    os._exit(7)", "died", "exit code 7"),
        ("if x == 3:\n    ctypes.string_at(0)", "died", "segmentation fault"),
        ("if x == 3:\n    os.abort()", "died", "abort"),
        ("if x == 3:\n    os.close(3)", "died", "its process ended"),
        ("if x == 3:\n    os.write(3, b'\\xff' * 8)", "garbled", "too long"),
        ("if x == 3:\n    os.write(3, b'\\x02\\0\\0\\0{}')", "garbled", "cannot be read"),
    ] {
        let called = five(server, body);
        assert_eq!(called.head["status"], status, "{body}: {}", called.head);
        let reason = called.head["reason"].as_str().unwrap();
        assert!(reason.contains(part), "{body}: {reason}");
        assert_eq!(called.values().len(), 3, "{body}");
    }
    let endless = function("while x == 3:\n    pass");
    let called = call(server, &json!({"format": 1, "timeout": 3.0}), &program(&endless, 5));
    assert_eq!(called.head["status"], "timed_out", "{}", called.head);
    works(server);
}

/// It takes what it can get.
fn takes(server: &Server) {
    let called = five(server, "if x == 3:\n    return b'x' * (1 << 20)");
    assert_eq!(called.head["status"], "too_large", "{}", called.head);
    assert!(called.head["reason"].as_str().unwrap().contains("max_function_result_bytes"));
    assert_eq!(called.values().len(), 3);
    let called = five(server, "if x == 3:\n    kept = [bytearray(1 << 28) for _ in range(64)]");
    let (iteration, code, _) = called.failure();
    assert_eq!((iteration, code.as_str()), (Some(3), "out_of_memory"));
    assert_eq!(called.values().len(), 4, "the next one has that memory again");
    let called = five(server, "print('x' * 100_000)\nprint('y' * 100_000)");
    assert!(called.head["printed"].as_str().unwrap().len() <= 64 << 10, "printed");
    assert_eq!(called.values().len(), 5);
    let long = format!("def f(x):\n    return len('{}')\n", "x".repeat(10 << 20));
    let (_, code, message) = call(server, &json!({"format": 1}), &program(&long, 1)).failure();
    assert!(code == "broken" && message.contains("characters"), "{message}");
    let garbage = call(server, &json!({"format": 1}), b"\x01\0\0\0x");
    assert_eq!(garbage.failure().1, "not_data");
    works(server);
}

/// It wants what is not its own.
fn touches(server: &Server) {
    for what in [
        "os.fork()",
        "os.system('true') and os.execv('/bin/true', ['true'])",
        "__import__('subprocess').run(['/bin/true'])",
        "__import__('multiprocessing').get_context('fork').Process(target=f).start()",
        "socket.socket()",
        "open('/etc/passwd').read()",
        "open('/proc/self/environ').read()",
        "os.listdir('/home')",
        "open('/tmp/f', 'w')",
        "os.kill(os.getppid(), 9)",
    ] {
        let body = format!("try:\n    {what}\nexcept OSError as error:\n    return 'refused'");
        let called = five(server, &body);
        assert_eq!(called.head["status"], "ended", "{what}: {}", called.head);
        let all = called.values();
        assert!(
            all.len() == 5 && all.iter().all(|(_, value)| value == "refused"),
            "{what}: {:?}",
            called.records
        );
    }
}

#[test]
fn what_is_no_call_is_refused_with_its_place() {
    let server = Server::start();
    let refused = |headers: &[(&str, &str)], body: &[u8]| -> (u16, Value) {
        let (status, body) = post(&server, headers, body);
        (status, serde_json::from_slice(&body).unwrap())
    };
    let (status, error) = refused(&[("content-type", "application/json")], b"{}");
    assert_eq!((status, &error["code"]), (415, &json!("unsupported_media_type")));
    for body in [&b""[..], b"\0\0", b"\xff\0\0\0{}", b"\xff\xff\xff\xff{}", b"\x01\0\0\0{"] {
        assert_eq!(refused(&[BINARY], body).0, 400, "{body:?}");
    }
    for (head, path) in [
        (json!({"format": 1, "more": 1}), "more"),
        (json!({"format": 1, "threads": -1}), "threads"),
    ] {
        let (status, error) = refused(&[BINARY], &packed(&head, b""));
        assert_eq!((status, error["path"].as_str()), (400, Some(path)), "{error}");
    }
    for (head, path) in [
        (json!({"format": 2}), "format"),
        (json!({"format": 1, "timeout": 1e9}), "timeout"),
        (json!({"format": 1, "memory_bytes": 0}), "memory_bytes"),
        (json!({"format": 1, "threads": 0}), "threads"),
    ] {
        let (status, error) = refused(&[BINARY], &packed(&head, b""));
        assert_eq!((status, error["path"].as_str()), (400, Some(path)), "{error}");
    }
    the_rest_needs!("PyTorch", has_torch());
    let (status, error) =
        refused(&[BINARY], &packed(&json!({"format": 1, "device": "GPU-none"}), b""));
    assert_eq!((status, error["path"].as_str()), (400, Some("device")), "{error}");
    let places = server.get("/functions/places").json;
    let cpu = places["places"].as_array().unwrap().last().unwrap();
    assert!(cpu["kind"] == "cpu" && cpu["calls"].as_u64().unwrap() >= 1, "{places}");
}

#[test]
fn only_keys_with_the_right_have_functions_run() {
    let environment = [
        ("WARPGAUGE_API_KEYS", "plain,source,all"),
        ("WARPGAUGE_ADMIN_KEYS", "root"),
        ("WARPGAUGE_FUNCTION_KEYS", "source,all"),
        ("WARPGAUGE_PICKLE_KEYS", "all"),
    ];
    let server = Server::start_with(&[], &environment);
    let program = program(&function(""), 1);
    let asked = |key: &str, pickles: bool| {
        let body = packed(&json!({"format": 1, "timeout": 60, "pickles": pickles}), &program);
        post(&server, &[BINARY, ("x-api-key", key)], &body)
    };
    assert_eq!(asked("none", false).0, 401);
    for (key, pickles, part) in [
        ("plain", false, "server.function_keys"),
        ("root", false, "server.function_keys"),
        ("source", true, "server.pickle_keys"),
    ] {
        let (status, body) = asked(key, pickles);
        assert_eq!(status, 403, "{key}");
        assert!(String::from_utf8_lossy(&body).contains(part), "{key}");
    }
    let allowed = |key: &str| {
        let places = server.get_with("/functions/places", &[("x-api-key", key)]).json;
        (places["allowed"] == true, places["pickles_allowed"] == true)
    };
    assert_eq!(allowed("plain"), (false, false));
    let closed = Server::start_configured("[server]\nfunctions_without_keys = false\n");
    let (status, body) = post(&closed, &[BINARY], &packed(&json!({"format": 1}), &program));
    assert_eq!(status, 403, "{}", String::from_utf8_lossy(&body));
    the_rest_needs!("PyTorch", has_torch());
    assert_eq!((allowed("source"), allowed("all")), ((true, false), (true, true)));
    assert_eq!(asked("source", false).0, 200);
    assert_eq!(asked("all", true).0, 200);
}

/// Values of one call of a function with this body, which returns something of its process.
#[track_caller]
fn again(server: &Server, head: &Value, body: &str) -> (Value, Value) {
    let source = format!("import os, sys, torch\ndef f(x):\n    {body}\n");
    let called = call(server, head, &program(&source, 1));
    assert_eq!(called.head["status"], "ended", "{}", called.head);
    let value = called.values().first().map_or(Value::Null, |(_, value)| value.clone());
    (called.head, value)
}

#[test]
fn a_process_waits_for_the_next_call_of_its_caller_and_keeps_nobody_waiting() {
    needs!("PyTorch", has_torch());
    // Whoever waited for one to become idle would wait for an hour.
    let server =
        Server::start_configured("[devices]\ntorch_places = 1\nfunction_idle_s = 3600.0\n");
    let head = json!({"format": 1, "timeout": 60, "again": "f"});
    let own =
        "print('mine', x); torch._calls = getattr(torch, '_calls', 0) + 1; return torch._calls";
    let (first, value) = again(&server, &head, own);
    assert_eq!((&first["again"], &value), (&Value::Null, &json!(1)), "{first}");
    let (second, value) = again(&server, &head, own);
    assert_eq!((&second["again"], &value), (&json!(true), &json!(2)), "{second}");
    // What the call before printed was told with it.
    assert_eq!(second["printed"], "mine 0\n");
    // Under other names and bounds, and without a name, it is another one, for which there is a place at once.
    for (name, value) in
        [("again", json!("g")), ("memory_bytes", json!(1 << 30)), ("again", Value::Null)]
    {
        let mut other = head.clone();
        other[name] = value;
        for _ in 0..2 {
            again(&server, &head, own);
            let (told, value) = again(&server, &other, own);
            assert_eq!((&told["again"], &value), (&Value::Null, &json!(1)), "{name}: {told}");
        }
    }
    // What may have left something behind is no one's next.
    let leaves =
        "import threading; threading.Thread(target=threading.Event().wait, daemon=True).start()";
    for (what, body) in
        [("raises", "raise ValueError"), ("leaves a thread", leaves), ("ends", "os._exit(3)")]
    {
        let source = format!("import os\ndef f(x):\n    {body}\n");
        again(&server, &head, own);
        call(&server, &head, &program(&source, 1));
        let (told, _) = again(&server, &head, own);
        assert_eq!(told["again"], Value::Null, "after one that {what}: {told}");
    }
    // One that ended while it waited is not asked.
    let (_, process) = again(&server, &head, "return os.getpid()");
    let process = rustix::process::Pid::from_raw(process.as_i64().unwrap() as i32).unwrap();
    rustix::process::kill_process(process, rustix::process::Signal::KILL).unwrap();
    until("it is gone", || rustix::process::test_kill_process(process).is_err().then_some(()));
    assert_eq!(again(&server, &head, own).0["again"], Value::Null);
    // A torch kernel needs the place, too.
    let source = "def f(x):\n    return x * 2";
    let tensor = json!({"shape": [8], "dtype": "float32"});
    let mut input = tensor.clone();
    input["init"] = json!({"kind": "ones"});
    let kernel = json!({"kernel": {"kernel_type": "torch", "source_code": source, "io": {"args": [
        {"name": "x", "type": "tensor", "tensor_spec": input},
        {"name": "y", "type": "tensor", "role": "output", "tensor_spec": tensor},
    ]}}, "timeout": 60.0});
    again(&server, &head, own);
    let report = server.evaluate(&kernel);
    assert_eq!(report["kernel_exec_result"]["compiled"], true, "{report:#}");
}
