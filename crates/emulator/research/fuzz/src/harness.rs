//! Runs one input through the loader and the executor, and checks properties that hold for any
//! input.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use warpgauge_emulator::{
    AllocKind, Function, LaunchConfig, LaunchOptions, Memory, Module, launch,
};

/// Maximum length of an error message, bytes. Messages quote the text.
const MAX_MESSAGE: usize = 1000;
/// Time after which a launch is stopped.
const DEADLINE: Duration = Duration::from_millis(50);
/// Time after its deadline by which a launch must end. Instrumented builds on busy machines are the
/// slowest.
const GRACE: Duration = Duration::from_secs(4);
/// Maximum number of kernels that are run for each module. More kernels would only repeat the same
/// checks.
const MOST_KERNELS: usize = 6;
/// Size of the buffer that pointer parameters point to, bytes.
const BUFFER: u64 = 64 << 10;
/// Maximum length of the text that one launch may print before its deadline, bytes.
const SHOWN: usize = 64 << 20;

/// Converts bytes to text as `cuModuleLoadData` does: up to the first zero, with invalid UTF-8
/// replaced.
pub fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// Loads a text. Checks that a rejection has a message of reasonable length.
///
/// # Panics
/// Panics if a checked property does not hold.
pub fn load(text: &str, memory: &Arc<Memory>) -> Option<Module> {
    match Module::load(text, memory, 0) {
        Ok(module) => Some(module),
        Err(error) => {
            let message = error.to_string();
            assert!(!error.reason.is_empty(), "an error without a reason");
            assert!(message.len() <= MAX_MESSAGE, "{} bytes of message", message.len());
            let lines = text.bytes().filter(|byte| *byte == b'\n').count() + 1;
            assert!(error.line as usize <= lines, "line {} of {lines}", error.line);
            None
        }
    }
}

/// Loads a text and reads all properties of its functions that the driver reports.
///
/// # Panics
/// Panics if a checked property does not hold.
pub fn load_only(text: &str) -> bool {
    let memory = Arc::new(Memory::new());
    let Some(module) = load(text, &memory) else {
        return false;
    };
    for function in module.functions().filter_map(|name| module.function(name)) {
        let _ = (function.registers(), function.local_bytes(), function.static_shared_bytes());
        for param in function.params() {
            assert!(param.offset + param.bytes <= function.param_bytes(), "{param:?}");
            assert!(param.offset % param.align.max(1) == 0, "{param:?}");
        }
        assert!((1..=1024).contains(&function.max_threads()));
    }
    true
}

/// Loads a text and runs its kernels twice: once without checks and counts, and once with all of
/// them.
///
/// # Panics Panics if a checked property does not hold.
pub fn execute(text: &str) -> bool {
    let memory = Arc::new(Memory::new());
    // The check for uninitialised reads requires that written bytes are recorded.
    memory.track_initialisation(true);
    let Some(module) = load(text, &memory) else {
        return false;
    };
    let names: Vec<String> = module.functions().take(MOST_KERNELS).map(str::to_owned).collect();
    for function in names.iter().filter_map(|name| module.function(name)) {
        for checks in [false, true] {
            run(&function, &memory, checks);
        }
    }
    true
}

/// Returns plausible parameters: pointers to a buffer, and small numbers.
fn parameters(function: &Function, buffer: u64) -> Vec<u8> {
    let mut out = vec![0; function.param_bytes()];
    for param in function.params() {
        let value = if param.bytes == 8 { buffer } else { 40 };
        for (byte, from) in out[param.offset..][..param.bytes].iter_mut().zip(value.to_le_bytes()) {
            *byte = from;
        }
    }
    out
}

/// Runs one small launch. It must end soon after its deadline and must not write to read-only
/// memory.
fn run(function: &Function, memory: &Memory, checks: bool) {
    let place = |bytes| memory.alloc(bytes, AllocKind::Device(0)).expect("some memory");
    let buffer = place(BUFFER);
    let guard = place(BUFFER);
    memory.set_read_only(guard, true).expect("the guard is allocated");
    memory.fill(buffer, &[1, 0, 0, 0], BUFFER / 8).expect("the buffer is allocated");
    let printed = AtomicUsize::new(0);
    let begin = Instant::now();
    let options = LaunchOptions {
        deadline: Some(begin + DEADLINE),
        cancel: None,
        printf: &|text| {
            printed.fetch_add(text.len(), Ordering::Relaxed);
        },
        sm_count: 4,
        device: 0,
        sanitize: checks,
        count: checks,
        by_instruction: false,
        order: 0,
    };
    let config = LaunchConfig {
        grid: [3, 1, 1],
        block: [48.min(function.max_threads()), 1, 1],
        dynamic_shared_bytes: 4096,
        cooperative: false,
    };
    let result = launch(function, memory, &config, &parameters(function, buffer), &options);
    let took = begin.elapsed();
    assert!(took <= DEADLINE + GRACE, "{} took {took:?}", function.name());
    assert!(printed.load(Ordering::Relaxed) <= SHOWN, "{} printed too much", function.name());
    if let Err(fault) = result {
        assert!(!fault.message.is_empty(), "a fault without a message");
    }
    let mut bytes = vec![0; BUFFER as usize];
    memory.read(guard, &mut bytes).expect("the guard is allocated");
    assert!(bytes.iter().all(|byte| *byte == 0), "read-only memory has been written to");
    for va in [buffer, guard] {
        memory.free(va).expect("it was allocated here");
    }
}
