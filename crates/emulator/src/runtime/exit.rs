//! The report of a program's kernels, written at exit to the descriptor that the environment names.

use std::ffi::c_int;
use std::sync::OnceLock;

use crate::driver::c::entry::guard;
use crate::driver::state::registry::registry;

/// Environment variable with the number of the descriptor.
const VARIABLE: &str = "WARPGAUGE_EMULATOR_REPORT_FD";

/// The process that writes the report. A forked child has neither its parent's streams nor its report.
static WRITER: OnceLock<u32> = OnceLock::new();

/// Arranges that the report is written when the program ends normally. Later calls do nothing.
pub fn report_at_exit() {
    WRITER.get_or_init(|| {
        // SAFETY: the handler belongs to this library, which stays loaded (`-z nodelete`).
        unsafe { libc::atexit(write_report) };
        std::process::id()
    });
}

extern "C" fn write_report() {
    guard("the report at exit", || {
        let wanted = std::env::var(VARIABLE).ok().and_then(|text| text.parse().ok());
        let (Some(descriptor), Ok(registry)) = (wanted, registry()) else { return Ok(()) };
        if WRITER.get() != Some(&std::process::id()) {
            return Ok(());
        }
        // This does not print the kernels' output: a program that waits for no kernel does not see it.
        registry.contexts.all().iter().for_each(|context| context.finish());
        if let Ok(report) = registry.reports.take(usize::MAX) {
            write(descriptor, report.as_bytes());
        }
        Ok(())
    });
}

/// Writes as much as the descriptor accepts. The program is ending, so no code can handle an error.
fn write(descriptor: c_int, mut bytes: &[u8]) {
    // SAFETY: a reader that is gone is an error here, and not the end of the program.
    let before = unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
    while !bytes.is_empty() {
        // SAFETY: the buffer is as long as said; a wrong descriptor is an error.
        let written = unsafe { libc::write(descriptor, bytes.as_ptr().cast(), bytes.len()) };
        match usize::try_from(written) {
            Ok(0) => break,
            Ok(written) => bytes = &bytes[written..],
            Err(_) => {
                let error = std::io::Error::last_os_error();
                if error.kind() != std::io::ErrorKind::Interrupted {
                    break;
                }
            }
        }
    }
    // SAFETY: this restores the previous handler.
    unsafe { libc::signal(libc::SIGPIPE, before) };
}
