//! Reads contract files and replaces `source_file` in them. The main type is [`ContractFile`].
//!
//! Requests contain no file paths. In a contract *file*, a kernel may contain a path that is
//! relative to this file, such as `source_file: kernel.cu`. The program replaces the field by
//! `source_code`, or by `binary_b64` for machine code. It adds to `files` the local files that the
//! source includes.

mod local_files;
mod python_imports;

use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use base64::Engine;
use serde_json::{Map, Value};

use super::format::bytes;
use super::source_view::SourceView;
use super::terminal::plain_line;

pub(crate) use local_files::LocalFiles;
use warpgauge_contract::{BodyFormat, Compatible, KernelType, with_suggestion};
use warpgauge_document::{DocumentError, path_text};
use warpgauge_model::nearest;

/// Maximum size of a kernel source, bytes.
const MAX_SOURCE_BYTES: u64 = 16 << 20;

/// Maximum number of directory entries that are compared with the name of a missing file.
const MAX_LISTED: usize = 4096;

/// Maximum size of a compiled kernel image, bytes.
const MAX_BINARY_BYTES: u64 = 64 << 20;

/// Reason why a contract file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ContractFileError {
    /// The file cannot be read.
    #[error("could not read {}", shown(path))]
    Read {
        /// The file that cannot be read.
        path: PathBuf,
        /// Cause of the failure.
        source: std::io::Error,
    },
    /// The file does not exist.
    #[error(
        "could not read {}: there is no such file{}",
        shown(path),
        meant.as_ref().map(|name| format!(" (did you mean `{}`?)", shown(name))).unwrap_or_default()
    )]
    Missing {
        /// The file that does not exist.
        path: PathBuf,
        /// The file in the same directory whose name is the most similar.
        meant: Option<PathBuf>,
    },
    /// The path is a directory, a device or a pipe.
    #[error("{} is not a regular file; name a file", shown(path))]
    NotAFile {
        /// The path that is not a regular file.
        path: PathBuf,
    },
    /// The file is larger than the limit.
    #[error("{} is larger than {}, the most that is read; is it the right file?", shown(path), bytes(*limit))]
    TooLarge {
        /// The file that is too large.
        path: PathBuf,
        /// The limit, bytes.
        limit: u64,
    },
    /// The name of the file does not show its format.
    #[error(
        "{}: the name does not show the format; contracts end in .yaml, .yml, .json, .msgpack or .mpk, kernels in \
         .cu, .py, .ptx, .cubin or .fatbin",
        shown(path)
    )]
    Format {
        /// The file whose format is not known.
        path: PathBuf,
    },
    /// The content of the file does not conform to its format.
    #[error("{}: {message}", path.display())]
    Syntax {
        /// The file that cannot be parsed.
        path: PathBuf,
        /// The message of the parser, with line and column if they are known.
        message: String,
    },
    /// The file parses, but a field is not valid.
    #[error("{}: {at}: {message}", path.display())]
    Field {
        /// The file that contains the field.
        path: PathBuf,
        /// Path of the invalid field.
        at: String,
        /// Description of valid values.
        message: String,
    },
}

/// Parsed contract file in which every `source_file` is replaced.
#[derive(Debug, Clone)]
pub(super) struct ContractFile {
    path: PathBuf,
    /// File that contains the source of the kernel.
    source: Option<PathBuf>,
    /// Paths of the files from which the contract was read.
    files: Vec<PathBuf>,
    /// Fields of the contract, in the form that the service receives.
    pub fields: Map<String, Value>,
}

impl ContractFile {
    /// Reads the file at `path`; `-` means standard input. `limit` is the maximum size, bytes.
    pub(super) fn read(path: &Path, limit: u64) -> Result<Self, ContractFileError> {
        let (bytes, format, directory) = if path == Path::new("-") {
            let bytes = read_limited(std::io::stdin().lock(), path, limit)?;
            let format = if looks_like_json(&bytes) { BodyFormat::Json } else { BodyFormat::Yaml };
            (bytes, format, Path::new(""))
        } else {
            // A missing file is reported before a wrong extension.
            let format = format_of(path);
            if format.is_err() {
                read_file(path, limit)?;
            }
            let format = format?;
            (read_file(path, limit)?, format, path.parent().unwrap_or(Path::new("")))
        };
        let Value::Object(fields) = parsed(&bytes, format, path)? else {
            return Err(field(path, "the document", "expected a mapping that contains `kernel`"));
        };
        let named = fields.get("kernel").and_then(|kernel| kernel.get("source_file"));
        let source = named.and_then(Value::as_str).map(|name| directory.join(name));
        let files = vec![path.to_owned()];
        let mut contract = Self { path: path.to_owned(), source, files, fields };
        contract.replace_source_files(directory)?;
        Ok(contract)
    }

    /// Returns a contract that was not read from a file. Errors contain `name` in place of a path.
    pub(super) fn of(name: &str, fields: Map<String, Value>) -> Self {
        Self { path: name.into(), source: None, files: Vec::new(), fields }
    }

    /// Sets the path of the kernel's source, and the paths of the files that the source includes.
    pub(super) fn with_source(self, path: &Path, beside: Vec<PathBuf>) -> Self {
        let files = [path.to_owned()].into_iter().chain(beside).collect();
        Self { source: Some(path.to_owned()), files, ..self }
    }

    /// Returns the paths of the files from which the contract was read.
    pub(super) fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// Returns the kernel's source, if it was read from a file.
    pub(super) fn source(&self) -> Option<SourceView> {
        let text = self.fields.get("kernel")?.get("source_code")?.as_str()?;
        Some(SourceView::new(self.source.as_deref()?, text))
    }

    /// Returns the file that contains the kernel's code, if the contract refers to one.
    pub(super) fn source_path(&self) -> Option<&Path> {
        self.source.as_deref()
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the contract as a typed request.
    pub(super) fn typed<T: serde::de::DeserializeOwned>(self) -> Result<T, ContractFileError> {
        self.read_as(warpgauge_document::from_value)
    }

    /// Returns the contract as a typed request. Like a request body, the contract may use the
    /// request format of the CUDA Evaluation Server.
    pub(super) fn compatible<T: Compatible>(self) -> Result<T, ContractFileError> {
        self.read_as(warpgauge_contract::compatible_from_value)
    }

    fn read_as<T>(
        self,
        read: impl FnOnce(Value) -> Result<T, DocumentError>,
    ) -> Result<T, ContractFileError> {
        let path = self.path;
        read(Value::Object(self.fields)).map_err(|error| {
            let at = match path_text(&error.path()) {
                root if root.is_empty() => "the document".to_owned(),
                at => at,
            };
            field(&path, &at, &with_suggestion(error.message()))
        })
    }

    fn replace_source_files(&mut self, directory: &Path) -> Result<(), ContractFileError> {
        let mut read = Vec::new();
        for at in ["kernel", "ref_kernel", "custom_kernel"] {
            if let Some(Value::Object(kernel)) = self.fields.get_mut(at) {
                replace_source_file(kernel, at, directory, &self.path, &mut read)?;
            }
        }
        if let Some(Value::Array(candidates)) = self.fields.get_mut("candidates") {
            for (index, candidate) in candidates.iter_mut().enumerate() {
                if let Some(Value::Object(kernel)) = candidate.get_mut("kernel") {
                    let at = format!("candidates[{index}].kernel");
                    replace_source_file(kernel, &at, directory, &self.path, &mut read)?;
                }
            }
        }
        let expected = self.fields.get_mut("expected").and_then(Value::as_object_mut);
        for (output, expectation) in expected.into_iter().flatten() {
            if let Some(Value::Object(kernel)) = expectation.get_mut("kernel") {
                let at = format!("expected.{output}.kernel");
                replace_source_file(kernel, &at, directory, &self.path, &mut read)?;
            }
        }
        self.files.append(&mut read);
        Ok(())
    }
}

fn replace_source_file(
    kernel: &mut Map<String, Value>,
    at: &str,
    directory: &Path,
    contract: &Path,
    read: &mut Vec<PathBuf>,
) -> Result<(), ContractFileError> {
    let Some(name) = kernel.remove("source_file") else {
        return Ok(());
    };
    let at = format!("{at}.source_file");
    let refuse = |message: &str| Err(field(contract, &at, message));
    let Value::String(name) = name else {
        return refuse("expected the name of a file");
    };
    if name.is_empty() || Path::new(&name).is_absolute() {
        return refuse("expected a path relative to the contract file");
    }
    for other in ["source_code", "binary_b64"] {
        if kernel.contains_key(other) {
            return refuse(&format!("`{other}` is also set; set only one of them"));
        }
    }
    let path = directory.join(&name);
    read.push(path.clone());
    let is_binary =
        matches!(kernel.get("kernel_type").and_then(Value::as_str), Some("cubin" | "fatbin"));
    if is_binary {
        let bytes = read_file(&path, MAX_BINARY_BYTES)?;
        let text = base64::engine::general_purpose::STANDARD.encode(bytes);
        kernel.insert("binary_b64".to_owned(), Value::String(text));
    } else {
        let source = read_source(&path)?;
        let kind = kernel.get("kernel_type").cloned();
        let kind: Option<KernelType> = kind.and_then(|kind| serde_json::from_value(kind).ok());
        let kind = kind.filter(|kind| kind.has_files() && !kernel.contains_key("files"));
        if let Some(kind) = kind {
            let LocalFiles { files, source_path, paths } = LocalFiles::of(&source, &path, kind)?;
            read.extend(paths);
            if !files.is_empty() {
                kernel.insert("files".to_owned(), files.into_iter().collect());
                let path = source_path.map(|path| ("source_path".to_owned(), Value::String(path)));
                kernel.extend(path);
            }
        }
        kernel.insert("source_code".to_owned(), Value::String(source));
    }
    Ok(())
}

/// Returns the text of a kernel's source.
pub(super) fn read_source(path: &Path) -> Result<String, ContractFileError> {
    warpgauge_code::source::text_of(read_file(path, MAX_SOURCE_BYTES)?).map_err(|at| {
        let message = format!("byte {at} is not UTF-8");
        ContractFileError::Syntax { path: path.to_owned(), message }
    })
}

/// Returns a compiled kernel image in base64.
pub(super) fn read_binary(path: &Path) -> Result<String, ContractFileError> {
    let bytes = read_file(path, MAX_BINARY_BYTES)?;
    Ok(base64::engine::general_purpose::STANDARD.encode(bytes))
}

/// Returns the content of a regular file of at most `limit` bytes.
pub(super) fn read_file(path: &Path, limit: u64) -> Result<Vec<u8>, ContractFileError> {
    check_file(path)?;
    let file = std::fs::File::open(path);
    let file = file.map_err(|source| ContractFileError::Read { path: path.to_owned(), source })?;
    read_limited(file, path, limit)
}

/// Checks that a path is a regular file. Without the check, opening a named pipe would wait for its
/// writer.
pub(super) fn check_file(path: &Path) -> Result<(), ContractFileError> {
    let path_of = || path.to_owned();
    match std::fs::metadata(path) {
        Ok(found) if found.is_file() => Ok(()),
        Ok(_) => Err(ContractFileError::NotAFile { path: path_of() }),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Err(ContractFileError::Missing { path: path_of(), meant: nearest_file(path) })
        }
        Err(source) => Err(ContractFileError::Read { path: path_of(), source }),
    }
}

/// Returns the path in a form that fits on one line.
fn shown(path: &Path) -> String {
    plain_line(&path.display().to_string())
}

/// Returns the file whose name is the most similar to that of a missing file in the same directory.
fn nearest_file(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    let directory = path.parent()?;
    let listed = if directory == Path::new("") { Path::new(".") } else { directory };
    let entries = std::fs::read_dir(listed).ok()?.flatten().take(MAX_LISTED);
    let names: Vec<String> =
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    let meant = nearest(name, names.iter().map(String::as_str))?;
    Some(directory.join(meant)).filter(|meant| meant.is_file())
}

fn read_limited(from: impl Read, path: &Path, limit: u64) -> Result<Vec<u8>, ContractFileError> {
    let mut bytes = Vec::new();
    from.take(limit.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(|source| ContractFileError::Read { path: path.to_owned(), source })?;
    if bytes.len() as u64 > limit {
        return Err(ContractFileError::TooLarge { path: path.to_owned(), limit });
    }
    Ok(bytes)
}

fn format_of(path: &Path) -> Result<BodyFormat, ContractFileError> {
    let extension = path.extension().and_then(|e| e.to_str()).map(str::to_ascii_lowercase);
    match extension.as_deref() {
        Some("json") => Ok(BodyFormat::Json),
        Some("yaml" | "yml") => Ok(BodyFormat::Yaml),
        Some("msgpack" | "mpk") => Ok(BodyFormat::MsgPack),
        _ => Err(ContractFileError::Format { path: path.to_owned() }),
    }
}

fn looks_like_json(bytes: &[u8]) -> bool {
    bytes.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{')
}

fn parsed(bytes: &[u8], format: BodyFormat, path: &Path) -> Result<Value, ContractFileError> {
    warpgauge_contract::parse(format, bytes).map_err(|error| ContractFileError::Syntax {
        path: path.to_owned(),
        message: error.to_string(),
    })
}

fn field(path: &Path, at: &str, message: &str) -> ContractFileError {
    ContractFileError::Field {
        path: path.to_owned(),
        at: at.to_owned(),
        message: message.to_owned(),
    }
}

#[cfg(test)]
mod tests;
