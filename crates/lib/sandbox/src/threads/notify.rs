//! Seccomp notifications (`seccomp_unotify(2)`), through which the kernel asks a supervisor. No
//! library has a safe interface for them. The main function is [`ask`].

use std::io;
use std::mem::zeroed;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Installs a filter in this process, which must be single-threaded. Returns the descriptor on
/// which the kernel asks about the calls for which the filter requests a notification. `program`
/// contains instructions for the kernel, eight bytes each.
///
/// # Errors
/// The kernel does not support notifications (Linux before 5.0), or another filter of this process
/// already has a supervisor.
pub fn ask(program: &[u8]) -> io::Result<OwnedFd> {
    let instructions: Vec<libc::sock_filter> = program
        .chunks_exact(8)
        .map(|one| libc::sock_filter {
            code: u16::from_ne_bytes([one[0], one[1]]),
            jt: one[2],
            jf: one[3],
            k: u32::from_ne_bytes([one[4], one[5], one[6], one[7]]),
        })
        .collect();
    let program = libc::sock_fprog {
        len: u16::try_from(instructions.len()).map_err(io::Error::other)?,
        filter: instructions.as_ptr().cast_mut(),
    };
    rustix::thread::set_no_new_privs(true)?;
    // SAFETY: `program` points to `len` instructions that outlive the call; the kernel copies them
    // and writes nothing.
    let result = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_NEW_LISTENER,
            &raw const program,
        )
    };
    let descriptor = i32::try_from(result).map_err(io::Error::other)?;
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call created this descriptor, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// The answer to a pending call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reply {
    /// The kernel executes the call.
    GoOn,
    /// The call fails with `EAGAIN`.
    Fail,
}

/// A call that is waiting for an answer.
pub(crate) struct Question {
    id: u64,
    thread: u32,
}

impl Question {
    /// Waits for the next call and receives it.
    pub(crate) fn next(listener: BorrowedFd<'_>) -> io::Result<Self> {
        // SAFETY: zero bits are a valid value of this structure of numbers, and the kernel requires
        // them.
        let mut notification: libc::seccomp_notif = unsafe { zeroed() };
        // SAFETY: the descriptor is open while it is borrowed, and the kernel writes one such
        // structure.
        let result = unsafe {
            libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut notification)
        };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { id: notification.id, thread: notification.pid })
    }

    /// Returns the id of the calling thread.
    pub(crate) fn thread(&self) -> u32 {
        self.thread
    }

    /// Lets the call continue or fail.
    pub(crate) fn answer(&self, listener: BorrowedFd<'_>, reply: Reply) -> io::Result<()> {
        // SAFETY: zero bits are a valid value of this structure of numbers.
        let mut response: libc::seccomp_notif_resp = unsafe { zeroed() };
        response.id = self.id;
        match reply {
            Reply::GoOn => {
                response.flags = u32::try_from(libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE)
                    .map_err(io::Error::other)?;
            }
            Reply::Fail => response.error = -libc::EAGAIN,
        }
        // SAFETY: the descriptor is open while it is borrowed, and the kernel reads one such structure.
        let result = unsafe {
            libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &raw mut response)
        };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}
