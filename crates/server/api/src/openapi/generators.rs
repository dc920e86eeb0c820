//! The document for client generators: the part of the full document that they support.

use super::rewrite::walk;
use crate::error::JSON;
use crate::tree::{Mapping, Value};

/// Parameters that select the form of an answer.
const FORM_PARAMETERS: [&str; 2] = ["stream", "format"];

/// Reduces the document to what client generators support. It keeps only JSON bodies, and removes
/// defaults and nulls, which generated clients would send.
pub(crate) fn for_generators(document: &mut Value) {
    // Some generators reject operations that return pictures, and none supports answers with files
    // of several types.
    let paths = document.get_mut("paths").and_then(Value::as_mapping_mut);
    paths.into_iter().for_each(|paths| {
        paths.retain(|_, operations| !gives_files(operations));
        let operations = paths.values_mut().filter_map(Value::as_mapping_mut);
        operations
            .for_each(|operations| operations.retain(|_, operation| !takes_no_json(operation)));
        paths.retain(|_, operations| operations.as_mapping().is_none_or(|all| !all.is_empty()));
    });
    walk(document, &mut |mapping| {
        mapping.shift_remove("default");
    });
    walk(document, &mut |mapping| {
        without_empty_parts(mapping);
        without_nulls(mapping);
        json_only(mapping);
        one_success(mapping);
        one_failure(mapping);
        wide_integers(mapping);
        first_that_fits(mapping);
    });
    untyped_outputs(document);
}

/// Returns whether an operation accepts only a form or a container. Generators treat forms
/// differently, and do not support containers.
fn takes_no_json(operation: &Value) -> bool {
    let body = operation.get("requestBody").and_then(|body| body.get("content"));
    body.and_then(Value::as_mapping).is_some_and(|content| !content.contains_key(JSON))
}

/// Replaces `allOf` by its only part. Once the default is removed, only one part of a type is left.
fn without_empty_parts(mapping: &mut Mapping) {
    let alone = mapping.len() == 1;
    let Some(parts) = mapping.get_mut("allOf").and_then(Value::as_sequence_mut) else { return };
    parts.retain(|part| part.as_mapping().is_none_or(|part| !part.is_empty()));
    // Only a reference without siblings is replaced. If there is a description beside it, the list
    // remains.
    if let [Value::Mapping(only)] = &mut parts[..]
        && alone
    {
        *mapping = std::mem::take(only);
    }
}

/// Removes `nullable` from fields that may be absent: generated clients would send `null`.
fn without_nulls(mapping: &mut Mapping) {
    if mapping.get("additionalProperties") != Some(&Value::Bool(false)) {
        return;
    }
    let properties = mapping.get_mut("properties").and_then(Value::as_mapping_mut);
    for (_, property) in properties.into_iter().flatten() {
        property.as_mapping_mut().map(|property| property.shift_remove("nullable"));
    }
}

/// Keeps one media type for each answer, JSON if possible, and only JSON for bodies. Removes the
/// parameters that select another media type.
fn json_only(operation: &mut Mapping) {
    if let Some(body) = operation.get_mut("requestBody")
        && let Some(content) = body.get_mut("content").and_then(Value::as_mapping_mut)
    {
        content.retain(|media_type, _| media_type == JSON);
    }
    let mut cut = false;
    let answers = operation.get_mut("responses").and_then(Value::as_mapping_mut);
    for (_, answer) in answers.into_iter().flatten() {
        if let Some(content) = answer.get_mut("content").and_then(Value::as_mapping_mut) {
            let forms = content.len();
            // If there is no JSON form, the first form is kept.
            let first = content.keys().next().cloned();
            let kept = if content.contains_key(JSON) { Some(JSON.into()) } else { first };
            content.retain(|media_type, _| Some(media_type) == kept.as_ref());
            cut |= content.len() < forms;
        }
    }
    // A client that cannot read the other forms must not be able to request them.
    if cut {
        drop_parameters(operation, &FORM_PARAMETERS);
    }
}

/// Keeps one type of answer for success. Generators for languages with one return type per call
/// reject two types, or read the second as the first. A client that does not want to wait submits a
/// batch with one job.
fn one_success(operation: &mut Mapping) {
    let answers = operation.get_mut("responses").and_then(Value::as_mapping_mut);
    let accepted = answers.filter(|answers| answers.contains_key("200"));
    if accepted.and_then(|answers| answers.shift_remove("202")).is_some() {
        drop_parameters(operation, &["wait"]);
    }
}

/// Keeps one type of error, for the same generators. Error answers with another body, such as that
/// of `/health` without a working device, are removed.
fn one_failure(operation: &mut Mapping) {
    let Some(answers) = operation.get_mut("responses").and_then(Value::as_mapping_mut) else {
        return;
    };
    let body = |answer: &Value| answer.get("content")?.get(JSON)?.get("schema").cloned();
    let Some(usual) = answers.get("500").and_then(body) else { return };
    answers.retain(|status, answer| {
        status.starts_with('2') || body(answer).is_none_or(|body| body == usual)
    });
}

fn drop_parameters(operation: &mut Mapping, names: &[&str]) {
    let parameters = operation.get_mut("parameters").and_then(Value::as_sequence_mut);
    if let Some(parameters) = parameters {
        let name =
            |parameter: &Value| parameter.get("name").and_then(Value::as_str).map(str::to_owned);
        parameters.retain(|it| !name(it).is_some_and(|name| names.contains(&name.as_str())));
    }
}

/// Sets the format of integers. OpenAPI defines `int32` and `int64`, and generators use 32 bits for
/// any other format. All counts fit in 63 bits.
fn wide_integers(schema: &mut Mapping) {
    if schema.get("type").and_then(Value::as_str) != Some("integer") {
        return;
    }
    let narrow = ["int8", "uint8", "int16", "uint16", "int32"];
    let format = schema.get("format").and_then(Value::as_str);
    let fits = format.is_some_and(|format| narrow.contains(&format));
    schema.insert("format".into(), if fits { "int32" } else { "int64" }.into());
}

/// Replaces `oneOf` by `anyOf`. Jackson accepts a number as a string, and Java clients reject a
/// value that matches two alternatives.
fn first_that_fits(schema: &mut Mapping) {
    if let Some(alternatives) = schema.shift_remove("oneOf") {
        schema.insert("anyOf".into(), alternatives);
    }
}

/// Removes the type of `ReturnOutputs`. The Java code that generators write for a choice between a
/// list and another type does not compile.
fn untyped_outputs(document: &mut Value) {
    let outputs = document
        .get_mut("components")
        .and_then(|components| components.get_mut("schemas"))
        .and_then(|schemas| schemas.get_mut("ReturnOutputs"))
        .and_then(Value::as_mapping_mut);
    if let Some(outputs) = outputs {
        outputs.retain(|key, _| key == "description");
    }
}

/// Returns whether any operation of a path returns a picture, a text for other programs, or files
/// of several types.
fn gives_files(operations: &Value) -> bool {
    let foreign = ["image/", "application/openmetrics-text", "text/event-stream"];
    let is_foreign = |media_type: &String| foreign.iter().any(|kind| media_type.starts_with(kind));
    let answers = |operation: &Value| {
        let answers = operation.get("responses").and_then(Value::as_mapping).cloned();
        answers.unwrap_or_default()
    };
    let operations = operations.as_mapping().into_iter().flat_map(Mapping::values);
    operations.flat_map(|operation| answers(operation).into_iter()).any(|(_, answer)| {
        let content = answer.get("content").and_then(Value::as_mapping);
        content.is_some_and(|content| {
            let several = content.len() > 1 && !content.contains_key(JSON);
            several || (!content.contains_key(JSON) && content.keys().any(is_foreign))
        })
    })
}
