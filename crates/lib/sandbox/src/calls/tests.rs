use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::process::Command;

use super::*;

/// Script that tries every system call number with meaningless arguments, in a process confined to
/// the lists of a kind. It prints the calls that the filter allows.
const SWEEP: &str = r#"
settings = json.loads(sys.argv[1])
libc = ctypes.CDLL(None, use_errno=True)
allow_only(settings["filters"])
let = []
for number in range(1024):
    if number in settings["skipped"]:
        continue
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(number), *[ctypes.c_long(-1)] * 6)
    if not (result == -1 and ctypes.get_errno() == 1):
        let.append(number)
write_all(1, json.dumps(let).encode())
os._exit(0)
"#;

/// Calls that end a process, block it forever, or change its later behaviour, whatever their
/// arguments.
const NOT_TRIED: &[i64] = &[
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_rt_sigreturn,
    libc::SYS_restart_syscall,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_pause,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_fork,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_vfork,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_alarm,
];

/// Calls of the kernel for probes: filters do not see them, and elsewhere they end the process.
const PROBES: [i64; 2] = [335, 336];

fn listed(kind: ChildKind) -> BTreeSet<i64> {
    kind.groups().flat_map(|group| group.calls).map(|&(_, number)| number).collect()
}

#[test]
fn what_is_open_is_what_is_listed_in_every_kind_of_child() {
    for kind in ChildKind::ALL {
        let skipped: Vec<i64> = NOT_TRIED.iter().copied().chain(PROBES).collect();
        let settings = serde_json::json!({ "filters": encoded(kind).unwrap(), "skipped": skipped });
        let source = format!("{}\n{SWEEP}", include_str!("../prelude.py"));
        let tried = Command::new("python3")
            .args(["-S", "-s", "-c", &source, &settings.to_string()])
            .output()
            .expect("python3");
        let said = String::from_utf8_lossy(&tried.stderr);
        assert!(tried.status.success(), "{kind:?}: {said}");
        let open: BTreeSet<i64> = serde_json::from_slice(&tried.stdout).unwrap();
        // Calls that are allowed with certain arguments only have a separate test.
        let rules = rules(kind).unwrap();
        let by_argument = |number: &i64| rules.get(number).is_some_and(|rules| !rules.is_empty());
        let open: BTreeSet<i64> = open.into_iter().filter(|number| !by_argument(number)).collect();
        let mut expected = listed(kind);
        expected.retain(|number| !NOT_TRIED.contains(number) && !by_argument(number));
        // The other filter answers `clone3` with ENOSYS. Some kinds may connect to the
        // multi-process service.
        expected.insert(libc::SYS_clone3);
        expected.extend(rules.contains_key(&libc::SYS_connect).then_some(libc::SYS_connect));
        expected.retain(|number| !by_argument(number));
        assert_eq!(open, expected, "{kind:?}");
    }
}

#[test]
fn the_lists_name_nothing_that_reaches_others() {
    let never = [
        ("fchmodat2", 452),
        ("setxattrat", 463),
        ("removexattrat", 466),
        ("file_setattr", 469),
        ("open_tree_attr", 467),
        ("fchmod", libc::SYS_fchmod),
        ("fchmodat", libc::SYS_fchmodat),
        ("fchown", libc::SYS_fchown),
        ("utimensat", libc::SYS_utimensat),
        ("removexattr", libc::SYS_removexattr),
        ("shmat", libc::SYS_shmat),
        ("shmctl", libc::SYS_shmctl),
        ("semop", libc::SYS_semop),
        ("semctl", libc::SYS_semctl),
        ("msgsnd", libc::SYS_msgsnd),
        ("msgrcv", libc::SYS_msgrcv),
        ("msgctl", libc::SYS_msgctl),
        ("mq_unlink", libc::SYS_mq_unlink),
        ("ptrace", libc::SYS_ptrace),
        ("perf_event_open", libc::SYS_perf_event_open),
        ("sethostname", libc::SYS_sethostname),
        ("adjtimex", libc::SYS_adjtimex),
        ("timer_create", libc::SYS_timer_create),
        ("io_uring_setup", libc::SYS_io_uring_setup),
        ("memfd_create", libc::SYS_memfd_create),
        ("mount", libc::SYS_mount),
        ("unshare", libc::SYS_unshare),
        ("bpf", libc::SYS_bpf),
    ];
    for kind in ChildKind::ALL {
        let rules = rules(kind).unwrap();
        for (name, number) in never {
            assert!(!rules.contains_key(&number), "{kind:?} may call {name}");
        }
    }
}

#[test]
fn filters_fit_into_the_kernel() {
    for kind in ChildKind::ALL {
        for program in programs(kind).unwrap() {
            // The limit is BPF_MAXINSNS.
            assert!(
                (1..=4096).contains(&program.len()),
                "{kind:?}: {} instructions",
                program.len()
            );
        }
    }
}

/// Script that tries refused and allowed arguments, in a process like that of submitted Python.
const ARGUMENTS: &str = r#"
import fcntl, socket
settings = json.loads(sys.argv[1])
ends = os.pipe()
pair = socket.socketpair()
allow_only(settings["filters"])
libc = ctypes.CDLL(None, use_errno=True)

def open_to(name, call):
    try:
        call()
        print(name)
    except PermissionError:
        pass

def threads():
    import threading
    thread = threading.Thread(target=lambda: None)
    thread.start()
    thread.join()

def fork():
    if os.fork() == 0:
        os._exit(0)

def called(*arguments):
    if libc.syscall(*[ctypes.c_long(argument) for argument in arguments]) == -1:
        if ctypes.get_errno() == 1:
            raise PermissionError

flags = fcntl.fcntl(ends[0], fcntl.F_GETFL)
open_to("read flags", lambda: fcntl.fcntl(ends[0], fcntl.F_GETFL))
open_to("not block", lambda: fcntl.fcntl(ends[0], fcntl.F_SETFL, flags | os.O_NONBLOCK))
open_to("O_ASYNC", lambda: fcntl.fcntl(ends[0], fcntl.F_SETFL, flags | os.O_ASYNC))
open_to("F_SETOWN", lambda: fcntl.fcntl(ends[0], fcntl.F_SETOWN, os.getpid()))
open_to("F_SETSIG", lambda: fcntl.fcntl(ends[0], 10, 18))
open_to("F_SETOWN_EX", lambda: fcntl.fcntl(ends[0], 15, bytes(8)))
open_to("F_SETLEASE", lambda: fcntl.fcntl(ends[0], 1024, 0))
open_to("FIOASYNC", lambda: fcntl.ioctl(ends[0], 0x5452, struct.pack("i", 1)))
open_to("FIOSETOWN", lambda: fcntl.ioctl(pair[0].fileno(), 0x8901, struct.pack("i", os.getpid())))
open_to("SIOCSPGRP", lambda: fcntl.ioctl(pair[0].fileno(), 0x8902, struct.pack("i", os.getpid())))
open_to("FIONREAD", lambda: fcntl.ioctl(ends[0], 0x541B, bytes(4)))
open_to("FS_IOC_SETFLAGS", lambda: fcntl.ioctl(ends[0], 0x40086602, bytes(8)))
open_to("write a file", lambda: os.open("/dev/null", os.O_WRONLY))
open_to("read and write a file", lambda: os.open("/dev/null", os.O_RDWR))
open_to("empty a file", lambda: os.open("/dev/null", os.O_RDWR | os.O_TRUNC))
open_to("create a file", lambda: os.open("/dev/null", os.O_RDWR | os.O_CREAT))
open_to("a nameless file", lambda: os.open("/dev", os.O_RDWR | os.O_TMPFILE))
open_to("read a file", lambda: os.open("/dev/null", os.O_RDONLY))
open_to("a socket", lambda: socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
open_to("netlink", lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW))
open_to("a pair", socket.socketpair)
open_to("fork", fork)
open_to("a thread", threads)
open_to("keep a name", lambda: control_process(15, b"mine", 0, 0, 0))
open_to("outlive its parent", lambda: control_process(1, 0, 0, 0, 0))
open_to("be looked into", lambda: control_process(0x59616D61, -1, 0, 0, 0))
open_to("limits of another", lambda: called(302, os.getppid(), 7, 0, 0))
open_to("cores of another", lambda: called(204, os.getppid(), 8, -1))
open_to("own cores", lambda: called(204, 0, 8, -1))
open_to("huge pages", lambda: called(9, 0, 4096, 1, 0x40022, -1, 0))
open_to("own memory", lambda: called(9, 0, 4096, 1, 0x22, -1, 0))
open_to("signal itself", lambda: called(234, os.getpid(), os.getpid(), 18))
os._exit(0)
"#;

#[test]
#[cfg(target_arch = "x86_64")]
fn arguments_decide_where_they_matter() {
    let allowed = |kind: ChildKind| -> Vec<String> {
        let settings = serde_json::json!({ "filters": encoded(kind).unwrap() });
        let source = format!("{}\n{ARGUMENTS}", include_str!("../prelude.py"));
        let mut python = Command::new("python3");
        python.args(["-S", "-s", "-u", "-c", &source, &settings.to_string()]);
        let tried = python.output().expect("python3");
        let said = String::from_utf8_lossy(&tried.stderr).into_owned();
        assert!(tried.status.success(), "{kind:?}: {said}");
        String::from_utf8(tried.stdout).unwrap().lines().map(str::to_owned).collect()
    };
    let own = [
        "read flags",
        "not block",
        "FIONREAD",
        "read a file",
        "a thread",
        "keep a name",
        "own cores",
        "own memory",
    ];
    assert_eq!(allowed(ChildKind::Interpreter), own);
    let with_devices = allowed(ChildKind::DeviceInterpreter);
    assert!(with_devices.iter().any(|name| name == "read and write a file"), "{with_devices:?}");
    let others = with_devices.iter().filter(|name| *name != "read and write a file");
    assert!(others.eq(&own), "{with_devices:?}");
    let program = allowed(ChildKind::Program);
    for refused in
        ["O_ASYNC", "F_SETSIG", "F_SETOWN", "FIOASYNC", "a socket", "netlink", "a pair", "fork"]
    {
        assert!(!program.iter().any(|name| name == refused), "{refused}: {program:?}");
    }
    let compilers = allowed(ChildKind::Compilers);
    assert!(compilers.iter().any(|name| name == "fork"), "{compilers:?}");
    assert!(!compilers.iter().any(|name| name == "F_SETSIG" || name == "netlink"), "{compilers:?}");
}

/// Returns the text that docs/security.md must contain between its marks.
fn page() -> String {
    let mut page = String::from("| group | calls | why |\n| --- | --- | --- |\n");
    let mut shown = BTreeSet::new();
    for group in ChildKind::ALL.into_iter().flat_map(ChildKind::groups) {
        if shown.insert(group.name) {
            let names: Vec<&str> =
                group.calls.iter().map(|(name, _)| name.trim_start_matches("SYS_")).collect();
            writeln!(page, "| {} | `{}` | {} |", group.name, names.join("`, `"), group.reason)
                .unwrap();
        }
    }
    page += "\n| child | groups beside those of every child |\n| --- | --- |\n";
    for kind in ChildKind::ALL {
        let own: Vec<&str> = kind.own_groups().iter().map(|group| group.name).collect();
        let own = if own.is_empty() { "none".to_owned() } else { own.join(", ") };
        writeln!(page, "| {} | {own} |", kind.description()).unwrap();
    }
    page
}

#[test]
#[cfg(target_arch = "x86_64")]
fn the_documentation_shows_the_lists() {
    let (before, after) = (
        "<!-- calls:begin: generated from crates/lib/sandbox/src/calls -->\n",
        "<!-- calls:end -->",
    );
    let text = include_str!("../../../../../docs/security.md");
    let shown = text.split_once(before).and_then(|(_, rest)| rest.split_once(after));
    let (shown, _) = shown.expect("docs/security.md has the marks");
    assert!(shown == page(), "docs/security.md has to show:\n{}", page());
}
