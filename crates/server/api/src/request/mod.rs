//! Reading requests: bodies within bounds, forms, and what callers say beside a contract.
//!
//! - `answer_form`: whether a report has placeholders
//! - `body`: bodies, read at once or piece by piece, and the memory that they take
//! - `form`: forms with files
//! - `parsed_body`: bodies in JSON, YAML or MessagePack, parsed
//! - `spool`: temporary files that are written while content comes
//! - `submission`: how a job is to be taken: priority, label, webhook, idempotency key

pub(crate) mod answer_form;
pub(crate) mod body;
pub(crate) mod form;
pub(crate) mod parsed_body;
pub(crate) mod spool;
pub(crate) mod submission;
