//! Starting processes from one thread that lives as long as the fleet.
//!
//! A worker asks the kernel to be killed when its parent dies, and by "parent" the kernel means the
//! thread that started it. Threads of the asynchronous runtime come and go.

use std::io;

use tokio::process::{Child, Command};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};

/// Starts that may wait.
const BACKLOG: usize = 64;

type Request = (Command, oneshot::Sender<io::Result<Child>>);

/// Handle of the thread. It ends when the last handle is dropped.
#[derive(Clone)]
pub(super) struct Spawner {
    requests: mpsc::Sender<Request>,
}

impl Spawner {
    /// Starts the thread. Must be called within a runtime.
    pub(super) fn start() -> io::Result<Self> {
        let (requests, mut inbox) = mpsc::channel::<Request>(BACKLOG);
        let runtime = Handle::current();
        std::thread::Builder::new().name("worker-spawner".to_owned()).spawn(move || {
            let _inside = runtime.enter();
            while let Some((mut command, reply)) = inbox.blocking_recv() {
                // One who no longer waits drops the child, which kills it.
                let _ = reply.send(command.spawn());
            }
        })?;
        Ok(Self { requests })
    }

    /// Starts a process.
    pub(super) async fn spawn(&self, mut command: Command) -> io::Result<Child> {
        command.kill_on_drop(true);
        let gone = || io::Error::other("the thread that starts workers has ended");
        let (reply, answer) = oneshot::channel();
        self.requests.send((command, reply)).await.map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }
}
