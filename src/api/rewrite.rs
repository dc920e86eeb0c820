//! Corrections to the document that poem-openapi writes.

use std::collections::BTreeSet;

use serde_yaml::{Mapping, Value};

use super::error::JSON;

/// The field with a default that takes `null` for it.
const NULL_IS_DEFAULT: &str = "return_outputs";

/// Makes the document valid and exact.
pub(super) fn repair(document: &mut Value) {
    describe_requests(document);
    walk(document, &mut |schema| {
        plain_references(schema);
        drop_empty_defaults(schema);
        natural_numbers(schema);
    });
    scalar_values(document);
    order_tags(document);
}

/// Groups in the order in which their operations come: poem-openapi sorts them by name.
fn order_tags(document: &mut Value) {
    let mut order: Vec<Value> = Vec::new();
    let paths = document.get("paths").and_then(Value::as_mapping);
    let operations = paths.into_iter().flatten().filter_map(|(_, it)| it.as_mapping()).flatten();
    for (_, operation) in operations {
        let tags = operation.get("tags").and_then(Value::as_sequence);
        order.extend(tags.into_iter().flatten().cloned());
    }
    let place = |tag: &Value| order.iter().position(|name| tag.get("name") == Some(name));
    if let Some(tags) = document.get_mut("tags").and_then(Value::as_sequence_mut) {
        tags.sort_by_key(|tag| place(tag).unwrap_or(usize::MAX));
    }
}

/// Adds an example to every error answer.
pub(super) fn error_examples(document: &mut Value) {
    walk(document, &mut |mapping| {
        for (status, answer) in mapping.iter_mut() {
            let Some(code) = status.as_str().filter(|status| status.len() == 3) else {
                continue;
            };
            let media = answer
                .get_mut("content")
                .and_then(|content| content.get_mut(JSON))
                .and_then(Value::as_mapping_mut);
            if let (Some(example), Some(media)) = (error_example(code), media) {
                media.insert("example".into(), example);
            }
        }
    });
}

fn error_example(status: &str) -> Option<Value> {
    let text = match status {
        "400" => {
            "{status: client_error, code: unknown_field, path: kernel.io.arg, line: 4, column: 12, \
             error: 'kernel.io.arg: unknown field `arg`, expected `args` or `launch`', \
             validation_errors: [{field: kernel.io.arg, type: unknown_field, \
             message: 'unknown field `arg`, expected `args` or `launch`'}]}"
        }
        "401" => {
            "{status: client_error, code: unauthorized, \
             error: 'this server needs an API key: send X-API-Key, or Authorization: Bearer'}"
        }
        "403" => {
            "{status: client_error, code: forbidden, \
             error: 'this operation is for administrators: use one of server.admin_keys'}"
        }
        "404" => {
            "{status: error, code: no_such_job, \
             error: 'there is no job 7; finished jobs are kept for a while only'}"
        }
        "409" => {
            "{status: client_error, code: idempotency_conflict, \
             error: 'the idempotency key was used before with a different request, for job 7; use a \
             new key for a new request'}"
        }
        "410" => {
            "{status: client_error, code: artifact_gone, \
             error: 'sass of job 7 is not kept any more: younger jobs needed the space'}"
        }
        "408" => {
            "{status: client_error, code: body_timeout, \
             error: after 4096 bytes of the body nothing more came for 60 s}"
        }
        "413" => {
            "{status: client_error, code: body_too_large, \
             error: a body may have 500000000 bytes and it has more}"
        }
        "415" => {
            "{status: client_error, code: unsupported_media_type, \
             error: 'Content-Type may be application/json, …; this body''s is \"text/csv\"'}"
        }
        "429" => {
            "{status: client_error, code: queue_full, \
             error: 256 evaluations are waiting already; try again in 3 s}"
        }
        "500" => {
            "{status: error, code: internal, error: 'internal error 1f: the worker was lost', \
             details: the server's log has more under id 1f}"
        }
        "503" => {
            "{status: error, code: shutting_down, \
             error: the server is shutting down; send the request again to another or later}"
        }
        _ => return None,
    };
    serde_yaml::from_str(text).ok()
}

/// Visits every mapping but those in examples.
pub(super) fn walk(value: &mut Value, visit: &mut impl FnMut(&mut Mapping)) {
    match value {
        Value::Mapping(mapping) => {
            visit(mapping);
            for (key, inner) in mapping.iter_mut() {
                // Examples are data, not schemas.
                if key != "example" {
                    walk(inner, visit);
                }
            }
        }
        Value::Sequence(items) => items.iter_mut().for_each(|item| walk(item, visit)),
        _ => {}
    }
}

/// A described reference comes as `allOf` of the reference and the description, which some
/// generators take for a class of its own.
fn plain_references(schema: &mut Mapping) {
    if let Some(parts) = schema.get_mut("allOf").and_then(Value::as_sequence_mut) {
        parts.retain(|part| part.get("$ref").is_some());
    }
}

/// `null` is not a value of a field that is merely optional, and an empty default says nothing.
fn drop_empty_defaults(schema: &mut Mapping) {
    let empty = match schema.get("default") {
        Some(Value::Null | Value::Mapping(_)) => true,
        Some(Value::Sequence(items)) => items.is_empty(),
        _ => false,
    };
    if empty {
        schema.shift_remove("default");
    }
}

fn natural_numbers(schema: &mut Mapping) {
    let format = schema.get("format").and_then(Value::as_str);
    if format.is_some_and(|format| format.starts_with("uint")) && !schema.contains_key("minimum") {
        schema.insert("minimum".into(), 0.into());
    }
}

/// The value of an argument is any scalar; its Rust type says any JSON.
fn scalar_values(document: &mut Value) {
    let value = ["components", "schemas", "ArgSpec", "properties", "value"]
        .iter()
        .try_fold(document, |at, key| at.get_mut(*key))
        .and_then(Value::as_mapping_mut);
    if let Some(value) = value {
        // Integers first: generated clients take the first that fits, and would send 1.0 for 1.
        let kinds = ["boolean", "integer", "number", "string"];
        let kinds = kinds.map(|kind| Mapping::from_iter([("type".into(), kind.into())]).into());
        value.insert("anyOf".into(), Value::Sequence(kinds.into()));
    }
}

/// Objects of requests take no unknown fields (those of answers may grow), and `null` where a field may
/// be left out. Fields with a default, which tells them from the optional ones, do not, but for
/// [`NULL_IS_DEFAULT`].
fn describe_requests(document: &mut Value) {
    let mut names = BTreeSet::new();
    let mut new = BTreeSet::new();
    if let Some(paths) = document.get_mut("paths") {
        walk(paths, &mut |mapping| {
            if let Some(body) = mapping.get("requestBody") {
                references(body, &mut new);
            }
        });
    }
    let Some(schemas) = document
        .get_mut("components")
        .and_then(|components| components.get_mut("schemas"))
        .and_then(Value::as_mapping_mut)
    else {
        return;
    };
    while let Some(name) = new.pop_first() {
        let Some(schema) = schemas.get(name.as_str()) else {
            continue;
        };
        let mut below = BTreeSet::new();
        references(schema, &mut below);
        names.insert(name);
        new.extend(below.difference(&names).cloned().collect::<Vec<_>>());
    }
    for name in names {
        if let Some(schema) = schemas.get_mut(name.as_str()).and_then(Value::as_mapping_mut)
            && schema.contains_key("properties")
        {
            schema.insert("additionalProperties".into(), false.into());
            take_null(schema);
        }
    }
}

fn take_null(schema: &mut Mapping) {
    let required = schema.get("required").cloned().unwrap_or_default();
    let required = required.as_sequence().cloned().unwrap_or_default();
    let properties = schema.get_mut("properties").and_then(Value::as_mapping_mut);
    for (name, property) in properties.into_iter().flatten() {
        let defaults = property.get("default").is_some() && name != NULL_IS_DEFAULT;
        if required.contains(name) || defaults {
            continue;
        }
        if let Some(property) = property.as_mapping_mut() {
            // A sibling of `$ref` would be ignored.
            if let Some(reference) = property.shift_remove("$ref") {
                let reference = Mapping::from_iter([("$ref".into(), reference)]);
                property.insert("allOf".into(), vec![Value::Mapping(reference)].into());
            }
            property.insert("nullable".into(), true.into());
        }
    }
}

fn references(value: &Value, names: &mut BTreeSet<String>) {
    match value {
        Value::Mapping(mapping) => {
            for (key, inner) in mapping {
                match (key.as_str(), inner.as_str()) {
                    (Some("$ref"), Some(target)) => {
                        names.extend(target.rsplit('/').next().map(str::to_owned));
                    }
                    (Some("example"), _) => {}
                    _ => references(inner, names),
                }
            }
        }
        Value::Sequence(items) => items.iter().for_each(|item| references(item, names)),
        _ => {}
    }
}
