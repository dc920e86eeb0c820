//! Starts processes from one thread that runs as long as the fleet exists.
//!
//! A worker asks the kernel to kill it when its parent dies. For the kernel, the parent is the
//! thread that started the process, and threads of the asynchronous runtime start and end at any
//! time.

use std::io;

use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};

use warpgauge_sandbox::child::{Child, PreparedChild};

/// Maximum number of start requests that wait.
const BACKLOG: usize = 64;

type StartRequest = (PreparedChild, oneshot::Sender<io::Result<Child>>);

/// Handle of the thread, which ends when the last handle is dropped.
#[derive(Clone)]
pub(super) struct Spawner {
    requests: mpsc::Sender<StartRequest>,
}

impl Spawner {
    /// Starts the thread that starts processes. Must be called within a runtime.
    pub(super) fn start() -> io::Result<Self> {
        let (requests, mut inbox) = mpsc::channel::<StartRequest>(BACKLOG);
        let runtime = Handle::current();
        std::thread::Builder::new().name("worker-spawner".to_owned()).spawn(move || {
            let _inside = runtime.enter();
            while let Some((start, reply)) = inbox.blocking_recv() {
                // If the caller no longer waits, the send drops the child, which kills it.
                let _ = reply.send(start.now());
            }
        })?;
        Ok(Self { requests })
    }

    pub(super) async fn spawn(&self, start: PreparedChild) -> io::Result<Child> {
        let gone = || io::Error::other("the thread that starts workers has ended");
        let (reply, answer) = oneshot::channel();
        self.requests.send((start, reply)).await.map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }
}
