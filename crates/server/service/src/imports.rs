//! Reads reports of profilers that callers upload. A separate, confined process parses each of them,
//! because such a file is untrusted and can be large.

use std::fs::File;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use serde::{Deserialize, Serialize};
use tokio::io::AsyncReadExt;
use tokio::time::timeout;

use super::error::{Problem, ServiceError, internal};
use super::run_dir::RunDir;
use super::submission::{Caller, ServiceFuture};
use super::turns::{in_turn, pool};
use warpgauge_config::Config;
use warpgauge_model::FailureCode;
use warpgauge_sandbox::child::{Child, PreparedChild, Streams};
use warpgauge_sandbox::program::{ChildProgram, Environment};
use warpgauge_turns::Pool;

/// First argument of the process that reads reports.
pub const COMMAND: &str = "__import";

/// Exit code of that process for reports that it refuses. Its output is then an [`ImportRefusal`].
pub const REFUSED: u8 = 3;

/// Form field with a report.
pub const REPORT_FIELD: &str = "report";

/// Form field with an earlier report, which the other is compared with.
pub const EARLIER_FIELD: &str = "against";

/// Number of reports that are read at the same time.
const AT_ONCE: usize = 2;

/// Maximum size of an answer, bytes.
const MAX_ANSWER: u64 = 64 << 20;

/// Time limit of an import. The process has a shorter limit of processor time.
const TIME: Duration = Duration::from_secs(180);

/// Form of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ImportForm {
    Json,
    /// HTML page with links to the pages of the server.
    Page,
}

/// Reports to read. Their contents follow each other in one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportOrder {
    /// Reports in the order of the file: one, or one in each of [`REPORT_FIELD`] and
    /// [`EARLIER_FIELD`].
    pub reports: Vec<NamedReport>,
    /// Metrics to select: ids, sets, groups. An empty list selects all metrics.
    pub metrics: Vec<String>,
    pub form: ImportForm,
}

/// A report in the file of an [`ImportOrder`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedReport {
    /// Form field with the report. Errors contain it.
    pub field: String,
    /// Name of the file.
    pub name: String,
    /// Size of the content, bytes.
    pub bytes: u64,
}

/// Reason why a report is refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportRefusal {
    /// Form field to which the reason applies.
    pub field: String,
    /// Reason, with a remedy.
    pub message: String,
}

/// Reads reports of profilers. Nothing about them is stored.
pub trait ImportService: Send + Sync {
    /// Returns the answer for the reports in `content`: JSON or a page.
    fn import<'a>(
        &'a self,
        order: ImportOrder,
        content: File,
        caller: &'a Caller,
    ) -> ServiceFuture<'a, Vec<u8>>;
}

/// Starts a process for each import.
pub(super) struct Imports {
    turns: Pool,
    run_dir: Arc<RunDir>,
}

impl Imports {
    /// Creates a reader whose processes have their temporary files in `run_dir`.
    pub(super) fn new(config: &Config, run_dir: Arc<RunDir>) -> Self {
        Self { turns: pool(AT_ONCE, config), run_dir }
    }
}

impl ImportService for Imports {
    fn import<'a>(
        &'a self,
        order: ImportOrder,
        content: File,
        caller: &'a Caller,
    ) -> ServiceFuture<'a, Vec<u8>> {
        async move {
            let _permit = in_turn(&self.turns, &caller.owner).await?;
            let directory =
                tempfile::Builder::new().prefix("import-").tempdir_in(self.run_dir.path());
            let directory = directory.map_err(|error| internal("reading a report", &error))?;
            let child = start(&order, content, directory.path().to_owned())?;
            let field = REPORT_FIELD;
            timeout(TIME, answer(child, field)).await.unwrap_or_else(|_| {
                let limit = TIME.as_secs();
                let text =
                    format!("takes more than {limit} s to read; export fewer kernels or tables");
                Err(refused(field, text))
            })
        }
        .boxed()
    }
}

fn start(order: &ImportOrder, content: File, directory: PathBuf) -> Result<Child, ServiceError> {
    let failed =
        |error: std::io::Error| internal("starting the process that reads a report", &error);
    let order =
        serde_json::to_string(order).map_err(|error| internal("reading a report", &error))?;
    let program = std::env::current_exe().map_err(failed)?;
    let program = ChildProgram::new(program, Environment::Empty)
        .args([COMMAND, &order])
        .variable("TMPDIR", directory);
    let streams =
        Streams { stdin: Stdio::from(content), stdout: Stdio::piped(), stderr: Stdio::null() };
    PreparedChild::new(&program, streams).now().map_err(failed)
}

/// Reads the answer of the process. Errors about the whole import have this form field.
async fn answer(mut child: Child, field: &str) -> Result<Vec<u8>, ServiceError> {
    let failed = |error: std::io::Error| internal("reading a report", &error);
    let mut text = Vec::new();
    if let Some(stdout) = child.take_stdout() {
        stdout.take(MAX_ANSWER + 1).read_to_end(&mut text).await.map_err(failed)?;
    }
    if text.len() as u64 > MAX_ANSWER {
        let mib = MAX_ANSWER >> 20;
        let text =
            format!("its answer is longer than {mib} MiB; export fewer kernels, metrics or tables");
        return Err(refused(field, text));
    }
    let status = child.wait().await.map_err(failed)?;
    if status.success() {
        return Ok(text);
    }
    if status.code() == Some(i32::from(REFUSED))
        && let Ok(ImportRefusal { field, message }) = serde_json::from_slice(&text)
    {
        return Err(refused(&field, message));
    }
    tracing::warn!(%status, "the process that reads a report ended without an answer");
    let text = format!(
        "needs more time or memory than the server allows ({status}); export fewer kernels, \
         metrics or tables"
    );
    Err(refused(field, text))
}

fn refused(field: &str, message: String) -> ServiceError {
    let (path, code) = (field.to_owned(), FailureCode::InvalidData);
    ServiceError::invalid(vec![Problem { path, code, message }])
}
