//! Texts made to exhaust time or memory: each is refused or ends soon, and the seeds of the fuzzer
//! hold what must hold for any text.

#[path = "../../research/fuzz/src/harness.rs"]
mod harness;

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::common::{again, alone};
use warpgauge_emulator::{
    FaultKind, LaunchConfig, LaunchFault, LaunchOptions, Memory, Module, launch,
};

const HEAD: &str = ".version 8.0\n.target sm_80\n.address_size 64\n";

fn refusal(body: &str) -> String {
    let memory = Arc::new(Memory::new());
    let text = format!("{HEAD}{body}");
    Module::load(&text, &memory, 0).err().expect("the text should be refused").to_string()
}

/// Runs `f` of a module with one block; also what it printed, in bytes.
fn run(body: &str, limit: Duration, sanitize: bool) -> (Result<(), LaunchFault>, usize, Duration) {
    let memory = Arc::new(Memory::new());
    let module = Module::load(&format!("{HEAD}{body}"), &memory, 0).unwrap();
    let printed = std::sync::atomic::AtomicUsize::new(0);
    let begin = Instant::now();
    let opts = LaunchOptions {
        deadline: Some(begin + limit),
        cancel: None,
        printf: &|text| {
            printed.fetch_max(text.len(), std::sync::atomic::Ordering::Relaxed);
        },
        sm_count: 4,
        device: 0,
        sanitize,
        count: false,
        by_instruction: false,
        order: 0,
    };
    let cfg = LaunchConfig {
        grid: [8, 1, 1],
        block: [1024, 1, 1],
        dynamic_shared_bytes: 0,
        cooperative: false,
    };
    let f = module.function("f").unwrap();
    let result = launch(&f, &memory, &cfg, &[0; 64], &opts).map(|_| ());
    (result, printed.into_inner(), begin.elapsed())
}

/// Held by tests that need much memory, where they share a process.
static MEMORY: Mutex<()> = Mutex::new(());

fn turn() -> MutexGuard<'static, ()> {
    MEMORY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Resident memory of this process now, in bytes.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

#[test]
fn large_variables_take_no_memory_until_they_are_written() {
    let _turn = turn();
    if !alone() {
        again("hostile::large_variables_take_no_memory_until_they_are_written");
        return;
    }
    let memory = Arc::new(Memory::new());
    memory.track_initialisation(true);
    let before = resident();
    let text = format!("{HEAD}.global .b8 x[4294967290];\n");
    let module = Module::load(&text, &memory, 0).unwrap();
    let (va, _) = module.global("x").unwrap();
    let mut bytes = [1; 8];
    memory.read(va + (3 << 30), &mut bytes).unwrap();
    assert_eq!(bytes, [0; 8]);
    assert!(resident() < before + (256 << 20), "{} bytes more", resident() - before);
    let e = refusal(".global .b8 x[4294967290]; .global .b8 y[64];");
    assert!(e.contains("line 4") && e.contains("4294967296 bytes of global variables"), "{e}");
}

#[test]
fn a_variable_of_a_module_has_been_written() {
    let memory = Arc::new(Memory::new());
    memory.track_initialisation(true);
    let body = ".global .u32 x[4]; .visible .entry f() { .reg .b32 %r<2>; ld.global.u32 %r1, [x+8]; \
                st.global.u32 [x], %r1; ret; }";
    let module = Module::load(&format!("{HEAD}{body}"), &memory, 0).unwrap();
    let opts = LaunchOptions {
        deadline: None,
        cancel: None,
        printf: &|_| {},
        sm_count: 1,
        device: 0,
        sanitize: true,
        count: false,
        by_instruction: false,
        order: 0,
    };
    let cfg =
        LaunchConfig { grid: [1; 3], block: [1; 3], dynamic_shared_bytes: 0, cooperative: false };
    let report = launch(&module.function("f").unwrap(), &memory, &cfg, &[], &opts).unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
}

#[test]
fn more_declared_shared_memory_than_a_block_may_have_is_refused() {
    let kernel =
        |bytes: u32| format!(".visible .entry f() {{ .shared .align 4 .b8 s[{bytes}]; ret; }}");
    let e = refusal(&kernel(49_153));
    assert!(e.contains("49153 bytes of declared shared memory"), "{e}");
    let memory = Arc::new(Memory::new());
    assert!(Module::load(&format!("{HEAD}{}", kernel(49_152)), &memory, 0).is_ok());
}

/// Each kernel has its own copies of the functions it calls: a text of 1 MB could ask for
/// thousands of millions of instructions.
#[test]
fn copies_of_functions_are_bounded() {
    let _turn = turn();
    let mut body = String::from(".func g() {\n.reg .b32 %r<2>;\n");
    (0..20_000).for_each(|_| body.push_str("add.u32 %r1, %r1, %r1;\n"));
    body.push_str("ret; }\n");
    (0..20_000).for_each(|n| writeln!(body, ".entry f{n}() {{ call g, (); ret; }}").unwrap());
    let e = refusal(&body);
    assert!(e.contains("instructions in the module's kernels"), "{e}");
}

#[test]
fn zeros_within_a_text_are_looked_at_once() {
    let begin = Instant::now();
    let e = refusal(&format!(".pragma {}x", "\0".repeat(4 << 20)));
    assert!(e.contains("before the end"), "{e}");
    assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
    let memory = Arc::new(Memory::new());
    assert!(Module::load(&format!("{HEAD}\0\0\0"), &memory, 0).is_ok());
}

#[test]
fn messages_quote_a_part_of_a_long_name() {
    let name = "n".repeat(100_000);
    for body in [
        format!(".visible .entry f() {{ bra {name}; }}"),
        format!(".visible .entry f() {{ call {name}, (); }}"),
        format!(".global .u64 x = {name};"),
        format!(".func {name}() {{ ret; }} .func {name}() {{ ret; }}"),
    ] {
        assert!(refusal(&body).len() < 1000);
    }
}

#[test]
fn one_text_is_as_long_as_the_buffer_of_a_gpu() {
    let format: String = "%4000d".repeat(1000);
    let bytes: Vec<String> = format.bytes().map(|b| b.to_string()).collect();
    let body = format!(
        ".extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);\n\
         .global .align 1 .b8 text[] = {{{}, 0}};\n.global .align 8 .b8 args[8000];\n\
         .visible .entry f() {{ .reg .b64 %rd<3>;\n mov.u64 %rd1, text; mov.u64 %rd2, args;\n\
         {{ .param .b64 p; st.param.b64 [p], %rd1; .param .b64 q; st.param.b64 [q], %rd2;\n\
         .param .b32 r; call.uni (r), vprintf, (p, q); }} ret; }}",
        bytes.join(", ")
    );
    let (result, printed, took) = run(&body, Duration::from_millis(200), false);
    assert!(took < Duration::from_secs(20), "{took:?}");
    assert_eq!(printed, 1 << 20);
    if let Err(fault) = result {
        assert_eq!(fault.kind, FaultKind::Timeout);
    }
}

/// Findings by the million: described once, counted, and the deadline holds.
#[test]
fn wrong_accesses_in_a_loop_end_at_the_deadline() {
    let body = ".visible .entry f() { .reg .b64 %rd<2>; .reg .b32 %r<2>;\n mov.u64 %rd1, 64;\n\
                L: ld.global.u32 %r1, [%rd1]; bra L; }";
    let (result, _, took) = run(body, Duration::from_millis(100), true);
    assert_eq!(result.unwrap_err().kind, FaultKind::Timeout);
    assert!(took < Duration::from_secs(5), "{took:?}");
}

/// Thousands of threads deep in calls of a function with a thousand registers: 8 kB for each
/// thread and level.
#[test]
fn the_stacks_of_all_threads_are_bounded() {
    let _turn = turn();
    if !alone() {
        again("hostile::the_stacks_of_all_threads_are_bounded");
        return;
    }
    let mut body = String::from(
        ".visible .entry f() { call g, (); ret; }\n.func g() {\n.reg .b64 %rd<1002>;\n",
    );
    (0..1000).for_each(|n| writeln!(body, "mov.u64 %rd{n}, %clock64;").unwrap());
    body.push_str("call g, ();\n");
    (0..1000).for_each(|n| writeln!(body, "add.u64 %rd1001, %rd1001, %rd{n};").unwrap());
    body.push_str("st.global.u64 [%rd1], %rd1001; ret; }\n");
    let (result, _, _) = run(&body, Duration::from_secs(100), false);
    let fault = result.unwrap_err();
    assert_eq!(fault.kind, FaultKind::StackOverflow);
    assert!(resident() < 3 << 30);
}

/// The texts that are kept of what the fuzzer has found.
fn seeds(target: &'static str) -> Vec<(PathBuf, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("research/fuzz/seeds").join(target);
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(paths.len() > 10, "{target}: {} seeds", paths.len());
    paths
        .into_iter()
        .map(|path| {
            let text = harness::text(&std::fs::read(&path).unwrap());
            (path, text)
        })
        .collect()
}

#[test]
fn kept_seeds_load_or_are_refused() {
    let (mut loaded, mut refused) = (0, 0);
    for (_, text) in ["load", "mutate", "execute"].into_iter().flat_map(seeds) {
        if harness::load_only(&text) { loaded += 1 } else { refused += 1 }
    }
    assert!(loaded > 5 && refused > 5, "{loaded} loaded, {refused} refused");
}

#[test]
fn kept_seeds_execute() {
    let ran = seeds("execute").iter().filter(|(_, text)| harness::execute(text)).count();
    assert!(ran > 10, "{ran} ran");
}
