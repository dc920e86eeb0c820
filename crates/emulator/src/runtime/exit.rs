//! The report on a program's kernels. It is written at exit to the file descriptor that the
//! environment specifies.

use std::ffi::c_int;
use std::sync::OnceLock;

use crate::driver::c::entry::guard;
use crate::driver::state::registry::registry;

/// Environment variable with the number of the descriptor.
const VARIABLE: &str = "WARPGAUGE_EMULATOR_REPORT_FD";

/// The process that writes the report. A forked child inherits neither its parent's streams nor its
/// report.
static WRITER: OnceLock<u32> = OnceLock::new();

/// Registers a handler that writes the report when the program ends normally. Later calls do
/// nothing.
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
        // This does not print the kernels' output: a program that does not wait for its kernels
        // does not see it.
        registry.contexts.all().iter().for_each(|context| context.finish());
        if let Ok(report) = registry.reports.take(usize::MAX) {
            write(descriptor, report.as_bytes());
        }
        Ok(())
    });
}

/// Writes as much as the descriptor accepts. Errors are ignored, because the program is ending.
fn write(descriptor: c_int, mut bytes: &[u8]) {
    // SAFETY: the call has no conditions. A closed reader then causes an error and does not kill
    // the program.
    let before = unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
    while !bytes.is_empty() {
        // SAFETY: the buffer has the given length; an invalid descriptor causes an error.
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
