//! A task of a stream, and its execution.

use std::ffi::c_void;
use std::sync::Arc;

use super::context::Core;
use super::copy::Transfer;
use super::event::Stamp;
use super::graph::Plan;
use super::launch::KernelTask;
use super::queue::Point;
use super::registry::registry;
use super::signal::Mark;
use crate::driver::c::abi::Handle;
use crate::driver::c::code::{Code, Res};

/// Work that a stream executes in order. A graph clones it for each launch.
#[derive(Clone)]
pub enum Task {
    Kernel(Arc<KernelTask>),
    Copy(Transfer),
    /// A copy of bytes that the call has already read from pageable host memory.
    Staged {
        dst: u64,
        bytes: Arc<[u8]>,
    },
    Fill(Fill),
    Host {
        function: unsafe extern "C" fn(*mut c_void),
        data: usize,
    },
    Callback {
        callback: unsafe extern "C" fn(Handle, u32, *mut c_void),
        stream: Handle,
        data: usize,
    },
    Record(Arc<Stamp>),
    Wait(Vec<Point>),
    /// A wait for an event record of another process.
    Await(Mark),
    /// A release of an allocation in stream order.
    Free {
        base: u64,
    },
    /// A task without work, for a node of a graph.
    Empty,
    Graph(Arc<Plan>),
}

/// Rows of memory to fill with a repeated pattern.
#[derive(Clone, Copy)]
pub struct Fill {
    pub dst: u64,
    pub pattern: [u8; 4],
    /// Size of the pattern, bytes: 1, 2 or 4.
    pub element: u8,
    /// Number of elements per row.
    pub width: u64,
    pub height: u64,
    /// Distance between rows, bytes.
    pub pitch: u64,
}

impl Fill {
    fn run(&self) -> Res {
        let memory = &registry()?.memory;
        let pattern = &self.pattern[..usize::from(self.element)];
        for row in 0..self.height {
            let at = self.dst + row * self.pitch;
            memory.fill(at, pattern, self.width).map_err(|_| Code::ILLEGAL_ADDRESS)?;
        }
        Ok(())
    }
}

impl Task {
    /// Returns whether the task is executed even in a context that has failed, because others
    /// depend on it.
    pub fn survives(&self) -> bool {
        matches!(self, Task::Record(_) | Task::Wait(_) | Task::Callback { .. })
    }

    /// Returns a description of the kind of task, for messages.
    pub fn what(&self) -> &'static str {
        match self {
            Task::Kernel(_) => "a kernel",
            Task::Copy(_) | Task::Staged { .. } => "a copy",
            Task::Fill(_) => "a memset",
            Task::Host { .. } | Task::Callback { .. } => "a host function",
            Task::Record(_) => "an event record",
            Task::Wait(_) | Task::Await(_) => "an event wait",
            Task::Free { .. } => "a free",
            Task::Empty => "an empty node",
            Task::Graph(_) => "a graph",
        }
    }

    /// Executes the task. An error becomes the error of the context.
    pub fn run(&self, core: &Arc<Core>) -> Res {
        match self {
            Task::Kernel(kernel) => {
                let _running = registry()?.ledger.running();
                kernel.run(core)
            }
            Task::Copy(transfer) => {
                let _running = registry()?.ledger.running();
                transfer.run()
            }
            Task::Staged { dst, bytes } => {
                let _running = registry()?.ledger.running();
                registry()?.memory.write(*dst, bytes).map_err(|_| Code::ILLEGAL_ADDRESS)
            }
            Task::Fill(fill) => {
                let _running = registry()?.ledger.running();
                fill.run()
            }
            Task::Host { function, data } => {
                // SAFETY: the caller of `cuLaunchHostFunc` guaranteed that the function may be called
                // with this argument, from another thread.
                unsafe { function(*data as *mut c_void) };
                Ok(())
            }
            Task::Callback { callback, stream, data } => {
                let status = core.failed().unwrap_or(Code::SUCCESS);
                // SAFETY: as above, for `cuStreamAddCallback`.
                unsafe { callback(*stream, status.0, *data as *mut c_void) };
                Ok(())
            }
            Task::Record(stamp) => {
                stamp.set();
                Ok(())
            }
            Task::Wait(points) => {
                points.iter().for_each(Point::wait);
                Ok(())
            }
            Task::Await(mark) => mark.wait(&|| core.failed()),
            Task::Free { base } => registry()?.ledger.release(*base),
            Task::Empty => Ok(()),
            Task::Graph(plan) => plan.run(core),
        }
    }
}
