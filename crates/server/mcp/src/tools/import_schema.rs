//! JSON schemas of `import_report`.

use serde_json::{Value, json};

/// Returns the schema of the arguments.
pub(crate) fn input() -> Value {
    json!({
        "type": "object",
        "properties": {
            "content": {"type": "string", "description": "Text of the report."},
            "name": {
                "type": "string",
                "description": "File name of the report. It identifies a table of `nsys stats` whose \
                                columns do not."
            },
            "against": {
                "type": "string",
                "description": "Text of an earlier report of the same tool. The answer then has what changed."
            },
            "metrics": {
                "type": "array",
                "items": {"type": "string"},
                "description": "Ids of metrics, or names of metric sets, whose values the answer has."
            }
        },
        "required": ["content"]
    })
}

/// Returns the schema of the structured content. A refusal has only the summary and the error.
pub(crate) fn output() -> Value {
    let objects = json!({"type": "array", "items": {"type": "object"}});
    let texts = json!({"type": "array", "items": {"type": "string"}});
    json!({
        "type": "object",
        "properties": {
            "kind": {"type": "string", "enum": ["ncu", "ncu_source", "nsys", "sanitizer", "changes"]},
            "summary": {"type": "string"},
            "kernels": objects,
            "gone": texts,
            "new": texts,
            "devices": objects,
            "copies": objects,
            "copied": objects,
            "calls": objects,
            "launches": objects,
            "findings": objects,
            "errors": {"type": ["integer", "null"]},
            "leaked": {"type": "object"},
            "problems": texts,
            "notes": texts,
            "left_out": {"type": "object", "additionalProperties": {"type": "integer"}},
            "error": {"type": "object"}
        },
        "required": ["summary"]
    })
}
