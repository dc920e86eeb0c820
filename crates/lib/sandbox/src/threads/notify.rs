//! What the kernel asks a supervisor: seccomp's notifications (`seccomp_unotify(2)`), for which no library
//! has a safe interface.

use std::io;
use std::mem::zeroed;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Installs a filter in this process, which must have one thread, and returns where the kernel asks what
/// that filter leaves open. `program` are instructions as the kernel takes them, eight bytes each.
///
/// # Errors
/// The kernel does not ask (Linux before 5.5), or another filter of this process has a supervisor already.
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
    // SAFETY: `program` points to as many instructions as it says, which outlive the call; the kernel copies
    // them and writes nothing.
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
    // SAFETY: the call has made this descriptor, and it is owned by nothing else.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// What becomes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reply {
    /// The kernel carries it out.
    GoOn,
    /// It fails with `EAGAIN`.
    Fail,
}

/// A call that waits for its answer.
pub(crate) struct Question {
    id: u64,
    thread: u32,
}

impl Question {
    /// Takes the next one. Blocks.
    pub(crate) fn next(listener: BorrowedFd<'_>) -> io::Result<Self> {
        // SAFETY: all bits zero are a value of this structure of numbers, and the one that the kernel wants.
        let mut notification: libc::seccomp_notif = unsafe { zeroed() };
        // SAFETY: the descriptor is open while it is borrowed, and the kernel writes one such structure.
        let result = unsafe {
            libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut notification)
        };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { id: notification.id, thread: notification.pid })
    }

    /// The number of the thread that called.
    pub(crate) fn thread(&self) -> u32 {
        self.thread
    }

    /// Has the call go on or fail.
    pub(crate) fn answer(&self, listener: BorrowedFd<'_>, reply: Reply) -> io::Result<()> {
        // SAFETY: all bits zero are a value of this structure of numbers.
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
