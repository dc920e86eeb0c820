//! Device memory between processes.

use std::fs::OpenOptions;
use std::path::Path;

use crate::puppet::Puppet;

/// A directory for the files, and two processes that share it.
fn pair() -> (tempfile::TempDir, Puppet, Puppet) {
    let home = tempfile::tempdir().unwrap();
    let (one, other) = (Puppet::start(home.path()), Puppet::start(home.path()));
    (home, one, other)
}

fn files(home: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(home).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// `values + 0`, `values + 1` and so on, as `take` says them.
fn counted(from: u32, count: u32) -> String {
    (from..from + count).map(|value| value.to_string()).collect::<Vec<_>>().join(" ")
}

#[test]
fn kernels_of_each_process_see_what_those_of_the_other_wrote() {
    let (home, mut one, mut other) = pair();
    let bytes = 3 * 4096 + 40;
    let base: u64 = one.does(&format!("alloc {bytes}")).parse().unwrap();
    one.does(&format!("put {base} 1000 32"));
    one.does("sync");
    assert!(files(home.path()).is_empty(), "nothing is made before a handle is asked for");
    let handle = one.does(&format!("export {base}"));
    assert_eq!(one.does(&format!("export {}", base + 100)), handle, "it is the allocation's");
    assert_eq!(files(home.path()).len(), 1);
    let there: u64 = other.does(&format!("open {handle}")).parse().unwrap();
    assert_eq!(other.does(&format!("range {}", there + 5)), format!("{there} {bytes}"));
    // What was written before, and what is written after, by kernels and by copies.
    assert_eq!(other.does(&format!("take {there} 32")), counted(1000, 32));
    other.does(&format!("put {} 7 8", there + 3 * 4096));
    other.does("sync");
    assert_eq!(one.does(&format!("take {} 8", base + 3 * 4096)), counted(7, 8));
    one.does(&format!("poke {} 171", base + bytes - 1));
    assert_eq!(other.does(&format!("peek {}", there + bytes - 1)), "171");
    one.does(&format!("put {base} 5 32"));
    one.does("sync");
    assert_eq!(other.does(&format!("take {there} 32")), counted(5, 32));
    other.does(&format!("close {there}"));
    one.does(&format!("free {base}"));
    assert!(files(home.path()).is_empty());
    one.end();
    other.end();
}

#[test]
fn a_handle_is_opened_as_on_a_real_device() {
    let (_home, mut one, mut other) = pair();
    let base = one.does("alloc 100000");
    let handle = one.does(&format!("export {base}"));
    assert_eq!(one.fails(&format!("open {handle}")), "CUDA_ERROR_INVALID_CONTEXT");
    let there = other.does(&format!("open {handle}"));
    assert_eq!(other.does(&format!("open {handle}")), there, "opened twice, mapped once");
    for order in ["export", "free"] {
        assert_eq!(other.fails(&format!("{order} {there}")), "CUDA_ERROR_INVALID_VALUE");
    }
    let inside = there.parse::<u64>().unwrap() + 512;
    assert_eq!(other.fails(&format!("close {inside}")), "CUDA_ERROR_INVALID_VALUE");
    // A second context of the device may not have it, one of another device may.
    other.does("context 0");
    assert_eq!(other.fails(&format!("open {handle}")), "CUDA_ERROR_INVALID_HANDLE");
    other.does("context 1");
    let elsewhere = other.does(&format!("open {handle}"));
    assert_ne!(elsewhere, there);
    other.does(&format!("close {elsewhere}"));
    other.does("use 0");
    other.does(&format!("close {there}"));
    one.does(&format!("poke {base} 3"));
    assert_eq!(other.does(&format!("peek {there}")), "3");
    other.does(&format!("close {there}"));
    assert_eq!(other.fails(&format!("close {there}")), "CUDA_ERROR_INVALID_VALUE");
    // Now another context of the device may.
    other.does("use 1");
    other.does(&format!("open {handle}"));
}

#[test]
fn only_plain_device_memory_is_exported() {
    let home = tempfile::tempdir().unwrap();
    let mut one = Puppet::start(home.path());
    for made in ["pool 4096", "managed 4096"] {
        let base = one.does(made);
        assert_eq!(one.fails(&format!("export {base}")), "CUDA_ERROR_INVALID_VALUE", "{made}");
    }
    assert_eq!(one.fails("export 4660"), "CUDA_ERROR_INVALID_VALUE");
    assert!(files(home.path()).is_empty());
}

#[test]
fn accesses_are_checked_as_those_to_own_memory() {
    let (_home, mut one, mut other) = pair();
    let base = one.does("alloc 128");
    let handle = one.does(&format!("export {base}"));
    let there = other.does(&format!("open {handle}"));
    assert_eq!(other.does(&format!("take {there} 2")), "0 0");
    let inside: u64 = there.parse::<u64>().unwrap() + 64;
    // Past the end.
    other.does(&format!("put {inside} 1 32"));
    assert_eq!(other.fails("sync"), "CUDA_ERROR_ILLEGAL_ADDRESS");
    let said = other.does("report");
    assert!(said.contains("0 bytes after a 128-byte allocation"), "{said}");
    // Read-only, in this process.
    other.does("context 0");
    let again = other.fails(&format!("open {handle}"));
    assert_eq!(again, "CUDA_ERROR_INVALID_HANDLE", "the failed context has it yet");
    other.does("context 1");
    let there = other.does(&format!("open {handle}"));
    other.does(&format!("protect {there}"));
    other.does(&format!("put {there} 1 1"));
    assert_eq!(other.fails("sync"), "CUDA_ERROR_ILLEGAL_ADDRESS");
    one.does(&format!("put {base} 1 1"));
    one.does("sync");
    // After it was closed.
    other.does("context 2");
    let there = other.does(&format!("open {handle}"));
    other.does(&format!("close {there}"));
    other.does("report");
    other.does(&format!("put {there} 1 1"));
    assert_eq!(other.fails("sync"), "CUDA_ERROR_ILLEGAL_ADDRESS");
    let said = other.does("report");
    assert!(
        said.contains("0 bytes into a closed 128-byte allocation of another process"),
        "{said}"
    );
}

#[test]
fn shared_memory_counts_as_initialised() {
    let (_home, mut one, mut other) = pair();
    one.does("sanitize");
    other.does("sanitize");
    let base = one.does("alloc 128");
    let handle = one.does(&format!("export {base}"));
    let there = other.does(&format!("open {handle}"));
    other.does(&format!("take {there} 4"));
    one.does(&format!("take {base} 4"));
    for process in [&mut one, &mut other] {
        let said = process.does("report");
        assert!(said.contains("\"findings\":[]"), "{said}");
    }
    let own = one.does("alloc 128");
    one.does(&format!("take {own} 4"));
    assert!(one.does("report").contains("uninitialised_read"));
}

#[test]
fn memory_counts_once() {
    let (_home, mut one, mut other) = pair();
    let left = other.does("left");
    let (before, bytes) = (one.does("left").parse::<u64>().unwrap(), 1 << 20);
    let base = one.does(&format!("alloc {bytes}"));
    let handle = one.does(&format!("export {base}"));
    other.does(&format!("open {handle}"));
    assert_eq!(one.does("left").parse::<u64>().unwrap(), before - bytes);
    assert_eq!(other.does("left"), left);
}

#[test]
fn what_is_open_stays_when_it_is_freed_or_its_process_dies() {
    for dies in [false, true] {
        let (home, mut one, mut other) = pair();
        let base = one.does("alloc 8192");
        let handle = one.does(&format!("export {base}"));
        let there = other.does(&format!("open {handle}"));
        one.does(&format!("put {base} 40 32"));
        one.does("sync");
        if dies {
            one.kill();
            assert_eq!(files(home.path()).len(), 1, "nobody could remove it");
        } else {
            one.does(&format!("free {base}"));
            assert!(files(home.path()).is_empty());
            let own = one.does("alloc 8192");
            assert_eq!(one.does(&format!("take {own} 1")), "0");
        }
        assert_eq!(other.does(&format!("take {there} 32")), counted(40, 32));
        other.does(&format!("put {there} 90 32"));
        assert_eq!(other.does(&format!("take {there} 32")), counted(90, 32));
        // The next process that uses the directory removes files without an owner.
        let mut third = Puppet::start(home.path());
        let own = third.does("alloc 16");
        third.does(&format!("export {own}"));
        assert_eq!(files(home.path()).len(), 1);
        assert_eq!(other.does(&format!("take {there} 2")), "90 91");
        assert_eq!(third.fails(&format!("open {handle}")), "CUDA_ERROR_MAP_FAILED");
    }
}

#[test]
fn nothing_is_left_behind_in_order() {
    let home = tempfile::tempdir().unwrap();
    // In the midst of it, or after the contexts were destroyed.
    for how in ["exit", ""] {
        let mut one = Puppet::start(home.path());
        let base = one.does("alloc 4096");
        one.does(&format!("export {base}"));
        let event = one.does("event 6");
        one.does(&format!("export-event {event}"));
        assert_eq!(files(home.path()).len(), 2);
        if how == "exit" {
            one.tell(how);
        }
        one.end();
        assert!(files(home.path()).is_empty(), "{how}");
    }
}

/// Bytes that differ from run to run of the loop and not from test to test (xorshift).
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn bytes<const N: usize>(&mut self) -> [u8; N] {
        std::array::from_fn(|_| self.next() as u8)
    }
}

fn unhex(text: &str) -> [u8; 64] {
    std::array::from_fn(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn forged_handles_are_refused() {
    let (home, mut one, mut other) = pair();
    let base = one.does("alloc 8208");
    let memory = unhex(&one.does(&format!("export {base}")));
    let event = one.does("event 6");
    let event = unhex(&one.does(&format!("export-event {event}")));
    let mut noise = Noise(0x9E37_79B9_7F4A_7C15);
    let refusals =
        ["CUDA_ERROR_INVALID_VALUE", "CUDA_ERROR_MAP_FAILED", "CUDA_ERROR_INVALID_HANDLE"];
    for round in 0..1000 {
        let genuine = if round & 1 == 0 { memory } else { event };
        let mut forged = genuine;
        match round % 10 / 2 {
            0 => forged = noise.bytes(),
            // Another number; one bit of anything; another size.
            1 => forged[8..24].copy_from_slice(&noise.bytes::<16>()),
            2 => forged[noise.next() as usize % 64] ^= 1 << (noise.next() % 8),
            3 => {
                let size = [0, 1, 4096, 8207, 8209, u64::MAX, 1 << 44, noise.next()];
                forged[24..32].copy_from_slice(&size[round / 10 % 8].to_le_bytes());
            }
            // A path.
            _ => forged[8..64].copy_from_slice(&b"../../../../../../etc/passwd\0".repeat(2)[..56]),
        }
        for order in ["open", "open-event"] {
            let error = other.fails(&format!("{order} {}", hex(&forged)));
            assert!(refusals.contains(&error.as_str()), "{order} {}: {error}", hex(&forged));
        }
    }
    // The one for the other; the sizes are the same.
    assert_eq!(other.fails(&format!("open {}", hex(&event))), "CUDA_ERROR_INVALID_VALUE");
    assert_eq!(other.fails(&format!("open-event {}", hex(&memory))), "CUDA_ERROR_MAP_FAILED");
    // A file that is shorter than it was, or longer.
    for bytes in [4096, 8209] {
        for name in files(home.path()) {
            let file = OpenOptions::new().write(true).open(home.path().join(name)).unwrap();
            file.set_len(bytes).unwrap();
        }
        assert_eq!(other.fails(&format!("open {}", hex(&memory))), "CUDA_ERROR_MAP_FAILED");
        assert_eq!(other.fails(&format!("open-event {}", hex(&event))), "CUDA_ERROR_MAP_FAILED");
    }
    other.does("alloc 16");
}

#[test]
fn confined_processes_share_memory_and_events() {
    let home = tempfile::tempdir().unwrap();
    // A process leaves a file behind.
    let mut dead = Puppet::confined(home.path());
    let base = dead.does("alloc 4096");
    dead.does(&format!("export {base}"));
    dead.kill();
    let (mut one, mut other) = (Puppet::confined(home.path()), Puppet::confined(home.path()));
    let base = one.does("alloc 4096");
    let memory = one.does(&format!("export {base}"));
    let event = one.does("event 6");
    let shared = one.does(&format!("export-event {event}"));
    assert_eq!(files(home.path()).len(), 2);
    let there = other.does(&format!("open {memory}"));
    let seen = other.does(&format!("open-event {shared}"));
    one.does("stall");
    one.does(&format!("put {base} 60 32"));
    one.does(&format!("record {event}"));
    other.does(&format!("wait {seen}"));
    other.tell(&format!("take {there} 32"));
    one.does("go");
    assert_eq!(other.hear().unwrap(), counted(60, 32));
    other.does("stall");
    other.does(&format!("record {seen}"));
    one.tell(&format!("wait-here {event}"));
    other.kill();
    assert_eq!(one.hear().unwrap_err(), "CUDA_ERROR_EXTERNAL_DEVICE");
    one.does(&format!("free {base}"));
    one.does(&format!("destroy {event}"));
    assert!(files(home.path()).is_empty());
}

#[test]
fn what_does_not_fit_is_an_error_and_stays_as_it_was() {
    let home = tempfile::tempdir().unwrap();
    let mut one = Puppet::start(home.path());
    let base = one.does("alloc 8192");
    one.does(&format!("put {base} 4 32"));
    one.does("limit-files 8191");
    assert_eq!(one.fails(&format!("export {base}")), "CUDA_ERROR_OPERATING_SYSTEM");
    assert!(files(home.path()).is_empty());
    assert_eq!(one.does(&format!("take {base} 3")), "4 5 6");
    let small = one.does("alloc 8191");
    one.does(&format!("export {small}"));
}

#[test]
fn a_directory_that_is_not_fit_is_an_error() {
    let home = tempfile::tempdir().unwrap();
    let mut one = Puppet::start(&home.path().join("missing"));
    let base = one.does("alloc 4096");
    assert_eq!(one.fails(&format!("export {base}")), "CUDA_ERROR_OPERATING_SYSTEM");
    assert!(one.does("report").contains("cuIpcGetMemHandle"));
    one.does(&format!("put {base} 1 32"));
    assert_eq!(one.does(&format!("take {base} 2")), "1 2");
}
