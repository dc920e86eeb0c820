//! The tools that agents can call: their names, arguments and results. The main type is
//! [`ToolName`].

pub(crate) mod import_schema;

use std::sync::Arc;

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

use super::MAX_WAIT;
use super::answer::Outcome;

/// A tool that agents can call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToolName {
    Evaluate,
    Compare,
    Profile,
    GetJob,
    ListDevices,
    ImportReport,
}

/// JSON schemas of the request types.
const TYPES: &str = include_str!("../schemas/contract.json");

const EVALUATE: &str = "Compile a GPU kernel, run it, check its outputs and time it. The answer begins with \
the verdict (CORRECT, WEAK, WRONG, NOT COMPILED, FAILED, NOT CHECKED) and the three most useful facts: the \
time with its confidence interval, the first mismatch, or the first compiler error with its line. A kernel \
that is wrong is a result, not an error. Set `request` (or `contract_yaml`): kernel with source_code, \
kernel_type and io (args in parameter order, launch with grid and block), and `expected` with a simple \
kernel that computes each output.";

const COMPARE: &str = "Compare one to six GPU kernels with a reference kernel: whether they compute the \
same outputs, and whether they are FASTER, SLOWER, the SAME or INCONCLUSIVE, timed side by side with a \
confidence interval. On the emulated device, work is counted instead of time (LESS WORK, MORE WORK, SAME \
WORK, MIXED WORK). Give `request` with ref_kernel (which has io) and custom_kernel or candidates.";

const PROFILE: &str = "Evaluate a GPU kernel and explain its time: the resource that limits it (roofline), \
observations from its hardware counters, and possible remedies. Takes the arguments of evaluate_kernel, and \
`metrics` for particular metrics.";

const GET_JOB: &str = "State of a job and, once it has ended, its verdict and facts. `wait_s` waits for the \
end. `read` returns a part of the result as text: `report` (JSON), `ptx`, `sass`, `log` (of the compiler), `ttir`, \
`ttgir` or `llir`; a text that is too long is truncated, with a note.";

const LIST_DEVICES: &str = "List the devices that kernels run on: name, architecture, memory, whether each is a \
GPU or emulated, and whether it is free.";

const IMPORT_REPORT: &str = "Read output of NVIDIA's profilers, without a device and without a job: pages of \
Nsight Compute (`ncu --import FILE --csv --page raw --print-units base`, details, source, console text), tables of \
`nsys stats`, logs of compute-sanitizer. The answer has the kernels with the longest time: what limits each, its \
stalls, occupancy limiter and advice; or the findings of the sanitizer. With `against`, it has what changed since an \
earlier report of the same tool. Send text of at most 4 MiB; export fewer kernels or metrics of longer reports. \
Binary reports (.ncu-rep, .nsys-rep, SQLite) must be exported as text first.";

impl ToolName {
    /// All tools, in the order in which they are listed.
    pub(crate) const ALL: [Self; 6] = [
        Self::Evaluate,
        Self::Compare,
        Self::Profile,
        Self::GetJob,
        Self::ListDevices,
        Self::ImportReport,
    ];

    /// Returns the name of the tool. The first two names are those of tools of the CUDA Evaluation
    /// Server.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Evaluate => "evaluate_kernel",
            Self::Compare => "compare_kernels",
            Self::Profile => "profile_kernel",
            Self::GetJob => "get_job",
            Self::ListDevices => "list_devices",
            Self::ImportReport => "import_report",
        }
    }

    /// Returns the tool with this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }

    /// Returns the description of the tool that clients receive.
    pub(crate) fn described(self) -> Tool {
        let (title, description) = match self {
            Self::Evaluate => ("Evaluate a kernel", EVALUATE),
            Self::Compare => ("Compare kernels", COMPARE),
            Self::Profile => ("Profile a kernel", PROFILE),
            Self::GetJob => ("Get a job", GET_JOB),
            Self::ListDevices => ("List devices", LIST_DEVICES),
            Self::ImportReport => ("Read a profiler report", IMPORT_REPORT),
        };
        let reads = matches!(self, Self::GetJob | Self::ListDevices | Self::ImportReport);
        let annotations =
            ToolAnnotations::from_raw(None, Some(reads), Some(false), None, Some(false));
        Tool::new(self.name(), description, object(self.input()))
            .with_title(title)
            .with_raw_output_schema(object(self.output()))
            .with_annotations(annotations)
    }

    fn input(self) -> Value {
        match self {
            Self::Evaluate => kernel_tool("evaluation", &[]),
            Self::Profile => kernel_tool("evaluation", &["metrics", "tools"]),
            Self::Compare => kernel_tool("comparison", &[]),
            Self::GetJob => json!({
                "type": "object",
                "properties": {
                    "job_id": {"type": "string"},
                    "wait_s": wait("0, which returns at once"),
                    "read": {
                        "type": "string",
                        "enum": ["report", "ptx", "sass", "log", "ttir", "ttgir", "llir"],
                        "description": "Return this part of the job as text."
                    },
                    "kernel": {
                        "type": "string",
                        "description": "Kernel of a comparison: `reference` or a candidate's name."
                    }
                },
                "required": ["job_id"]
            }),
            Self::ListDevices => json!({"type": "object", "properties": {}}),
            Self::ImportReport => import_schema::input(),
        }
    }

    fn output(self) -> Value {
        if self == Self::ListDevices {
            return json!({
                "type": "object",
                "properties": {
                    "summary": {"type": "string"},
                    "devices": {"type": "array", "items": {"type": "object"}}
                },
                "required": ["summary"]
            });
        }
        if self == Self::ImportReport {
            return import_schema::output();
        }
        let mut schema = SchemaSettings::draft2020_12()
            .for_serialize()
            .into_generator()
            .into_root_schema_for::<Outcome>()
            .to_value();
        if let Some(schema) = schema.as_object_mut() {
            schema.remove("$schema");
        }
        if let Some(types) = schema.get_mut("$defs") {
            without_prose(types);
        }
        schema
    }
}

/// Returns the argument schema of a tool that evaluates or compares kernels.
fn kernel_tool(request: &str, more: &[&str]) -> Value {
    let mut properties = json!({
        "request": {"$ref": format!("#/$defs/{request}")},
        "contract_yaml": {
            "type": "string",
            "description": "Request as YAML or JSON text, in place of `request`."
        },
        "wait_s": wait("until the job ends"),
        "label": {"type": "string", "description": "Label of the job, at most 255 bytes."},
        "idempotency_key": {
            "type": "string",
            "description": "Idempotency key. Another request with the same key returns the same job."
        }
    });
    for name in more {
        properties[name] = json!({
            "type": "array",
            "items": {"type": "string"},
            "description": match *name {
                "metrics" => "Ids of metrics, or names of metric sets; default: a set that explains the kernel.",
                _ => "Tools to use, in order of preference; default: the best available ones.",
            }
        });
    }
    let mut types: Value = serde_json::from_str(TYPES).expect("the schemas are JSON");
    let other = if request == "evaluation" { "comparison" } else { "evaluation" };
    if let Some(types) = types.as_object_mut() {
        types.remove(other);
    }
    json!({"type": "object", "properties": properties, "$defs": types})
}

/// Removes the parts of a schema that only people need, because every conversation includes the
/// list of tools.
fn without_prose(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            // A property can have the same name; its value is then an object.
            fields.retain(|name, value| {
                let prose = matches!(name.as_str(), "description" | "format" | "minimum");
                !prose || value.is_object()
            });
            fields.values_mut().for_each(without_prose);
            plain_enum(fields);
        }
        Value::Array(items) => items.iter_mut().for_each(without_prose),
        _ => {}
    }
}

/// Replaces a list with one schema per variant by one list of names.
fn plain_enum(fields: &mut JsonObject) {
    let Some(Value::Array(variants)) = fields.get("oneOf") else { return };
    let words = variants.iter().map(|variant| variant.get("const").cloned());
    if let Some(words) = words.collect::<Option<Vec<Value>>>() {
        fields.remove("oneOf");
        fields.insert("enum".to_owned(), Value::Array(words));
        fields.insert("type".to_owned(), "string".into());
    }
}

fn wait(default: &str) -> Value {
    json!({
        "type": "number",
        "minimum": 0,
        "maximum": MAX_WAIT.as_secs(),
        "description": format!(
            "Seconds to wait for the end of the job; default: {default}. A longer job continues; \
             get_job returns its state."
        )
    })
}

fn object(value: Value) -> Arc<JsonObject> {
    match value {
        Value::Object(object) => Arc::new(object),
        // All schemas above are objects.
        _ => Arc::default(),
    }
}

#[cfg(test)]
mod tests;
