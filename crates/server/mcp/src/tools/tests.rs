use std::collections::BTreeSet;

use super::*;
use warpgauge_contract::{CompareRequest, EvaluateRequest};

#[test]
fn every_tool_is_found_by_its_name() {
    for tool in ToolName::ALL {
        assert_eq!(ToolName::named(tool.name()), Some(tool));
        let described = tool.described();
        assert_eq!(described.input_schema["type"], "object");
        assert!(described.output_schema.is_some_and(|schema| schema["type"] == "object"));
        let description = described.description.expect("a description");
        assert!(description.len() < 1024, "{}: {} bytes", tool.name(), description.len());
    }
    assert_eq!(ToolName::named("rm_rf"), None);
}

/// The schemas are part of every conversation, so they must stay small.
#[test]
fn the_list_of_tools_stays_small() {
    let tools = ToolName::ALL.map(ToolName::described);
    let bytes = serde_json::to_vec(&tools).expect("JSON").len();
    assert!(bytes < 48 << 10, "{bytes} bytes");
}

/// Names in the hand-written schemas must exist in the types of requests.
#[test]
fn every_property_of_the_schemas_is_one_of_the_contract() {
    let types: Value = serde_json::from_str(TYPES).expect("JSON");
    let generator = || warpgauge_contract::schema::of_requests();
    let evaluation = generator().into_root_schema_for::<EvaluateRequest>().to_value();
    let comparison = generator().into_root_schema_for::<CompareRequest>().to_value();
    let known: BTreeSet<String> = [&evaluation, &comparison].into_iter().flat_map(names).collect();
    for name in names(&types) {
        assert!(known.contains(&name), "{name} is nothing of a contract");
    }
    for (schema, own) in [(&evaluation, "evaluation"), (&comparison, "comparison")] {
        for name in types[own]["properties"].as_object().expect("properties").keys() {
            assert!(schema["properties"].get(name).is_some(), "{own} has no {name}");
        }
    }
}

/// Returns the names of all properties below a schema.
fn names(schema: &Value) -> Vec<String> {
    let mut found = Vec::new();
    match schema {
        Value::Object(fields) => {
            if let Some(Value::Object(properties)) = fields.get("properties") {
                found.extend(properties.keys().cloned());
            }
            found.extend(fields.values().flat_map(names));
        }
        Value::Array(items) => found.extend(items.iter().flat_map(names)),
        _ => {}
    }
    found
}
