//! The JSON Schema of the report, generated from its types.

use schemars::JsonSchema;
use serde_json::{Value, json};

use super::GateReport;
use warpgauge_contract::schema;

/// Prefixes of references: in OpenAPI, and in a JSON Schema.
const COMPONENTS: &str = "#/components/schemas/";
const DEFINITIONS: &str = "#/$defs/";

/// Returns the schema (draft 2020-12), published as `openapi/gate-report.schema.json`.
pub fn schema_json() -> Result<String, serde_json::Error> {
    let mut generator = schema::of_answers();
    generator.subschema_for::<GateReport>();
    let mut definitions = Value::Object(generator.take_definitions(true));
    repair(&mut definitions);
    let root = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:warpgauge:gate-report:1",
        "title": "Result of `warpgauge gate run`",
        "$ref": format!("{DEFINITIONS}{}", GateReport::schema_name()),
        "$defs": definitions,
    });
    let mut text = serde_json::to_string_pretty(&root)?;
    text.push('\n');
    Ok(text)
}

/// Converts from OpenAPI's dialect: references, and formats that JSON Schema does not define.
fn repair(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            if let Some(Value::String(target)) = fields.get_mut("$ref") {
                *target = target.replacen(COMPONENTS, DEFINITIONS, 1);
            }
            if fields.get("format").is_some_and(Value::is_string) && fields.contains_key("type") {
                fields.remove("format");
            }
            fields.values_mut().for_each(repair);
        }
        Value::Array(items) => items.iter_mut().for_each(repair),
        _ => {}
    }
}
