//! Changes to the document that poem-openapi writes: the order of groups, and examples of errors.

use crate::error::JSON;
use crate::tree::{Mapping, Value, parsed};

/// Sorts the groups of operations by their first operation in the document. poem-openapi sorts them
/// by name.
pub(crate) fn order_tags(document: &mut Value) {
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

/// Removes empty defaults from parameters. A page that fills them in would send `[]`.
pub(crate) fn drop_empty_defaults(document: &mut Value) {
    walk(document, &mut |mapping| {
        let is_parameter = mapping.contains_key("in") && mapping.contains_key("name");
        let schema = mapping.get_mut("schema").filter(|_| is_parameter);
        if let Some(schema) = schema.and_then(Value::as_mapping_mut)
            && schema.get("default").and_then(Value::as_sequence).is_some_and(Vec::is_empty)
        {
            schema.shift_remove("default");
        }
    });
}

/// Adds an example to every error answer.
pub(crate) fn error_examples(document: &mut Value) {
    walk(document, &mut |mapping| {
        for (status, answer) in mapping.iter_mut() {
            let media = answer
                .get_mut("content")
                .and_then(|content| content.get_mut(JSON))
                .and_then(Value::as_mapping_mut);
            if let (Some(example), Some(media)) = (error_example(status), media) {
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
             error: 'sass of job 7 is no longer stored: artifacts of newer jobs needed the space'}"
        }
        "408" => {
            "{status: client_error, code: body_timeout, \
             error: after 4096 bytes of the body nothing more came for 60 s}"
        }
        "413" => {
            "{status: client_error, code: body_too_large, \
             error: a body may have at most 500000000 bytes (server.body_limit_bytes); this one has more}"
        }
        "415" => {
            "{status: client_error, code: unsupported_media_type, \
             error: 'Content-Type may be application/json, …; this body''s is \"text/csv\"'}"
        }
        "422" => {
            "{status: client_error, code: missing_field, path: wav_file, \
             error: the form has no field `wav_file` with a file}"
        }
        "429" => {
            "{status: client_error, code: queue_full, \
             error: 256 evaluations are waiting already; try again in 3 s}"
        }
        "500" => {
            "{status: error, code: internal, error: 'internal error 1f: the worker was lost', \
             details: the server's log has details under id 1f}"
        }
        "503" => {
            "{status: error, code: shutting_down, \
             error: the server is shutting down; send the request again later or to another server}"
        }
        _ => return None,
    };
    Some(parsed(text))
}

/// Visits every mapping outside examples.
pub(crate) fn walk(value: &mut Value, visit: &mut impl FnMut(&mut Mapping)) {
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

/// Returns an operation of the document, by its path and its method.
pub(crate) fn operation<'a>(
    document: &'a mut Value,
    path: &str,
    method: &str,
) -> Option<&'a mut Mapping> {
    document.get_mut("paths")?.get_mut(path)?.get_mut(method)?.as_mapping_mut()
}

/// Returns the mapping at a path of nested `keys`.
pub(crate) fn descend<'a>(from: &'a mut Mapping, keys: &[&str]) -> Option<&'a mut Mapping> {
    let mut at = from;
    for key in keys {
        at = at.get_mut(*key)?.as_mapping_mut()?;
    }
    Some(at)
}
