//! JSON schema of an [`Imported`] file: one object, whose `kind` decides which fields exist.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;

use super::{DeviceTimeline, Imported, ImportedVerdict, KernelRule};
use crate::ncu::SourcePage;
use crate::nsys::NsysReport;
use crate::sanitizer::SanitizerLog;
use crate::types::DeviceMetrics;

/// Kind of an imported file.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(dead_code, reason = "only the schema is used")]
enum ImportedKind {
    /// A page of Nsight Compute.
    Ncu,
    /// A source page of Nsight Compute.
    NcuSource,
    /// Tables or an SQLite export of Nsight Systems.
    Nsys,
    /// A log of compute-sanitizer.
    Sanitizer,
}

/// A report of one of NVIDIA's tools. `kind` decides which fields exist: `ncu` has `device_metrics`,
/// `verdicts` and `rules`; `ncu_source` has `source`; `nsys` has the tables, `trace` and
/// `timelines`; `sanitizer` has `findings` and the counts of the tool.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only the schema is used")]
struct ImportedReport {
    kind: ImportedKind,
    /// Metrics of the kernels in the page.
    device_metrics: DeviceMetrics,
    /// Resource that limits each kernel. The kernels with the longest time come first.
    verdicts: Vec<ImportedVerdict>,
    /// Findings of the tool's own rules.
    rules: Vec<KernelRule>,
    #[serde(flatten)]
    source: SourcePage,
    #[serde(flatten)]
    nsys: NsysReport,
    /// Busy and idle time of each device, if the tables include a trace.
    timelines: Vec<DeviceTimeline>,
    #[serde(flatten)]
    sanitizer: SanitizerLog,
}

impl JsonSchema for Imported {
    fn schema_name() -> Cow<'static, str> {
        ImportedReport::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = ImportedReport::json_schema(generator);
        schema.insert("required".to_owned(), serde_json::json!(["kind", "notes"]));
        schema
    }
}
