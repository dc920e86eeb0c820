//! Reads requests: bodies within limits, forms, and parameters that accompany a contract.
//!
//! - `answer_form`: whether a report has placeholders
//! - `body`: bodies, read at once or piece by piece, within a memory budget
//! - `form`: forms with files
//! - `parsed_body`: bodies in JSON, YAML or MessagePack, parsed
//! - `spool`: temporary files that are written while their content arrives
//! - `submission`: priority, label, webhook and idempotency key of a job

pub(crate) mod answer_form;
pub(crate) mod body;
pub(crate) mod form;
pub(crate) mod parsed_body;
pub(crate) mod spool;
pub(crate) mod submission;
