//! Processes one file from its submission to its result. The main type is [`Bench`].

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::time::Duration;

use warpgauge_contract::{BodyFormat, CodeForm, KernelRuntime, KernelType, ProfileSpec};

use crate::evaluator::{Evaluator, EvaluatorError, FileRejection, UNMET};
use crate::folder::{Folder, FolderError, failed};
use crate::intake::{MAX_BINARY_BYTES, MAX_SOURCE_BYTES, Taken, Version, take};
use crate::journal::{self, Entry};
use crate::kernel_file::{
    CONTRACTS, ContractFrom, KernelRequest, compilation_of, kernel_of_program, kernel_type,
    request_of,
};
use crate::outcome::{KernelFileId, KernelResult};
use crate::watcher::{WatchEvent, WatchStop};

/// First pause between retries while the service is unreachable.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(15);

/// Groups of metrics that results contain, used if the contract requests no profile.
pub(crate) const METRICS: [&str; 2] = ["speed_of_light", "roofline"];

/// A file to work on.
#[derive(Debug)]
pub(crate) struct Task {
    pub name: OsString,
    /// Journal entry that an earlier process began for the file.
    pub begun: Option<(String, Entry)>,
}

/// Result of the work on a file.
#[derive(Debug)]
pub(crate) struct Done {
    pub name: OsString,
    pub how: How,
}

#[derive(Debug)]
pub(crate) enum How {
    /// The result was published, or the file no longer exists.
    Settled,
    /// The file is still being written.
    Changing,
    /// An operation on the folder failed. The next attempt continues with the journal entry.
    Failed(FolderError, Option<(String, Entry)>),
    /// The watcher is stopping; the next watcher continues.
    Stopped,
}

/// A contract file next to a kernel.
struct Beside {
    name: OsString,
    version: Version,
    content: Result<Vec<u8>, FileRejection>,
}

/// Everything that the work on files needs.
pub(crate) struct Bench<'b> {
    pub folder: &'b Folder,
    pub evaluator: &'b dyn Evaluator,
    pub stop: &'b WatchStop,
    pub told: &'b (dyn Fn(WatchEvent<'_>) + Sync),
    pub profile: bool,
}

impl Bench<'_> {
    pub(crate) fn work(&self, task: Task) -> Done {
        let Task { name, mut begun } = task;
        let how = match self.settle(&name, &mut begun) {
            Ok(how) => how,
            Err(error) => How::Failed(error, begun),
        };
        Done { name, how }
    }

    fn settle(
        &self,
        name: &OsStr,
        begun: &mut Option<(String, Entry)>,
    ) -> Result<How, FolderError> {
        let directory = self.folder.kernels();
        let look = |name: &OsStr, limit| {
            take(&directory, name, limit).map_err(failed("read", &directory.join(name)))
        };
        let text = name.to_string_lossy().into_owned();
        let taken = look(name, limit(&text))?;
        let (version, content) = match taken {
            Taken::Gone => {
                if let Some((key, _)) = begun.take() {
                    journal::forget(self.folder, &key)?;
                }
                return Ok(How::Settled);
            }
            Taken::Changing => return Ok(How::Changing),
            Taken::Refused(version, refusal) => (version, Err(refusal)),
            Taken::Read(version, content) => (version, Ok(content)),
        };
        let Some(contract) = self.contract(name)? else { return Ok(How::Changing) };
        let beside = contract.as_ref().map(|it| (it.name.clone(), it.version));
        let entry = Entry::new(name, version, beside);
        let mut key = match begun.take() {
            Some((key, begun)) if begun == entry => key,
            other => {
                if let Some((key, _)) = other {
                    journal::forget(self.folder, &key)?;
                }
                self.begin(&entry)?
            }
        };
        *begun = Some((key.clone(), entry.clone()));
        let content = match (content, &contract) {
            (Ok(_), Some(Beside { content: Err(refusal), .. })) => Err(FileRejection {
                message: format!("the contract: {}", refusal.message),
                ..refusal.clone()
            }),
            (content, _) => content,
        };
        let given = match &contract {
            Some(Beside { name, content: Ok(bytes), .. }) => {
                Some((format_of(name), bytes.as_slice()))
            }
            _ => None,
        };
        let blake3 =
            content.as_ref().ok().map(|content| blake3::hash(content).to_hex().to_string());
        let subject = KernelFileId { file: &text, blake3 };
        let outcome = match self.outcome(&subject, content, given, &entry, &mut key)? {
            Ok(outcome) => outcome,
            Err(()) => return Ok(How::Stopped),
        };
        *begun = Some((key.clone(), entry.clone()));
        let line = outcome.line();
        let path = self.folder.own("ready", &key);
        let result = outcome
            .written(self.folder.has_suffixed_results())
            .map_err(|error| failed("describe", &path)(error.into()))?;
        let published = journal::publish(self.folder, &key, &entry, &result)?;
        (self.told)(WatchEvent::Result { line: &line, path: &published });
        Ok(How::Settled)
    }

    fn begin(&self, entry: &Entry) -> Result<String, FolderError> {
        let key = uuid::Uuid::new_v4().to_string();
        journal::begin(self.folder, &key, entry)?;
        Ok(key)
    }

    /// Returns the contract file next to a kernel. The outer `None` means that the file is still
    /// being written.
    fn contract(&self, kernel: &OsStr) -> Result<Option<Option<Beside>>, FolderError> {
        let directory = self.folder.kernels();
        for (ending, _) in CONTRACTS {
            let mut name = Path::new(kernel).file_stem().unwrap_or(kernel).to_owned();
            name.push(".");
            name.push(ending);
            let path = directory.join(&name);
            match take(&directory, &name, MAX_BINARY_BYTES).map_err(failed("read", &path))? {
                Taken::Gone => {}
                Taken::Changing => return Ok(None),
                Taken::Refused(version, refusal) => {
                    return Ok(Some(Some(Beside { name, version, content: Err(refusal) })));
                }
                Taken::Read(version, content) => {
                    return Ok(Some(Some(Beside { name, version, content: Ok(content) })));
                }
            }
        }
        Ok(Some(None))
    }

    /// Returns the result for a file. The inner error means that the watcher is stopping.
    fn outcome(
        &self,
        subject: &KernelFileId<'_>,
        content: Result<Vec<u8>, FileRejection>,
        contract: Option<(BodyFormat, &[u8])>,
        entry: &Entry,
        key: &mut String,
    ) -> Result<Result<KernelResult, ()>, FolderError> {
        let content = match content {
            Ok(content) => content,
            Err(refusal) => return Ok(Ok(KernelResult::refused(subject, None, &refusal))),
        };
        if let (Some((compilation, caveats)), None) =
            (compilation_of(subject.file, &content), contract)
        {
            let done = self.patiently(subject.file, || self.evaluator.compile(&compilation));
            return Ok(match done {
                Ok(report) => Ok(KernelResult::compiled(subject, report, caveats)),
                Err(EvaluatorError::Refused(refusal)) => {
                    Ok(KernelResult::refused(subject, None, &refusal))
                }
                Err(_) => Err(()),
            });
        }
        let made = self.patiently(subject.file, || {
            request_of(subject.file, &content, contract, &mut |it| self.evaluator.compile(it))
        });
        let mut request = match made {
            Ok(request) => request,
            Err(EvaluatorError::Refused(refusal)) => {
                return Ok(Ok(KernelResult::refused(subject, None, &refusal)));
            }
            Err(_) => return Ok(Err(())),
        };
        self.ask_for_profile(&mut request);
        let ask = |request: &KernelRequest, key: &str| {
            self.patiently(subject.file, || self.evaluator.evaluate(&request.request, key))
        };
        let mut report = ask(&request, key);
        if let Err(EvaluatorError::Refused(refusal)) = &report
            && refusal.code == UNMET
            && request.from == ContractFrom::Inferred
            && request.request.kernel.family().runtime() == KernelRuntime::Process
        {
            let made = self.patiently(subject.file, || {
                let compile = &mut |it: &_| self.evaluator.compile(it);
                kernel_of_program(subject.file, &content, &refusal.message, compile)
            });
            request = match made {
                Ok(request) => request,
                Err(EvaluatorError::Refused(refusal)) => {
                    return Ok(Ok(KernelResult::refused(subject, Some(&request), &refusal)));
                }
                Err(_) => return Ok(Err(())),
            };
            self.ask_for_profile(&mut request);
            journal::forget(self.folder, key)?;
            *key = self.begin(entry)?;
            report = ask(&request, key);
        }
        drop(content);
        if matches!(&report, Err(EvaluatorError::Refused(refusal)) if refusal.code == "idempotency_conflict")
        {
            // An earlier version of this program sent another request for the same file.
            journal::forget(self.folder, key)?;
            *key = self.begin(entry)?;
            report = ask(&request, key);
        }
        Ok(match report {
            Ok(report) => Ok(KernelResult::evaluated(subject, &request, report)),
            Err(EvaluatorError::Refused(refusal)) => {
                Ok(KernelResult::refused(subject, Some(&request), &refusal))
            }
            Err(_) => Err(()),
        })
    }

    fn ask_for_profile(&self, request: &mut KernelRequest) {
        let is_wanted = match request.request.kernel.family().runtime() {
            KernelRuntime::Worker | KernelRuntime::Process => self.profile,
            KernelRuntime::Judge => false,
        };
        if is_wanted && request.request.profile.is_none() {
            let metrics = METRICS.map(str::to_owned).to_vec();
            request.request.profile = Some(ProfileSpec { tools: Vec::new(), metrics });
        }
    }

    /// Retries until there is an answer, or until the watcher stops.
    fn patiently<T>(
        &self,
        file: &str,
        mut ask: impl FnMut() -> Result<T, EvaluatorError>,
    ) -> Result<T, EvaluatorError> {
        let mut pause = FIRST_PAUSE;
        loop {
            match ask() {
                Err(EvaluatorError::Again(why)) => {
                    if pause > FIRST_PAUSE {
                        (self.told)(WatchEvent::Waiting { file, why: &why });
                    }
                    if self.stop.wait(pause) {
                        return Err(EvaluatorError::Stopped);
                    }
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
                other => return other,
            }
        }
    }
}

fn limit(name: &str) -> u64 {
    match kernel_type(name).map(KernelType::code_form) {
        Some(CodeForm::Binary) => MAX_BINARY_BYTES,
        Some(CodeForm::Text | CodeForm::Absent) | None => MAX_SOURCE_BYTES,
    }
}

fn format_of(name: &OsStr) -> BodyFormat {
    let ending = Path::new(name).extension().and_then(OsStr::to_str).unwrap_or_default();
    CONTRACTS
        .iter()
        .find(|(known, _)| *known == ending)
        .map_or(BodyFormat::Yaml, |(_, format)| *format)
}
