//! Values on which a schema and serde must agree.

use std::collections::BTreeSet;
use std::fmt::Debug;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use warpgauge_api::openapi;

pub(super) fn document() -> Value {
    let mut document = serde_json::from_str(&openapi::full_json()).unwrap();
    null_in_types(&mut document);
    document
}

/// OpenAPI's `nullable` as JSON Schema has it.
fn null_in_types(value: &mut Value) {
    if value.get("nullable").is_some_and(|nullable| nullable == true) {
        let alternatives = value.get("anyOf").cloned();
        if let Some(Value::Array(mut alternatives)) = alternatives {
            alternatives.push(json!({"type": "null"}));
            value["anyOf"] = alternatives.into();
        } else if value["type"].is_string() {
            value["type"] = json!([value["type"], "null"]);
        } else {
            let inner = json!({"allOf": value["allOf"], "oneOf": value["oneOf"]});
            let inner = inner.as_object().unwrap().iter().filter(|(_, of)| !of.is_null());
            let inner: serde_json::Map<_, _> = inner.map(|(k, v)| (k.clone(), v.clone())).collect();
            *value = json!({"anyOf": [inner, {"type": "null"}]});
        }
    }
    match value {
        Value::Object(fields) => fields.values_mut().for_each(null_in_types),
        Value::Array(items) => items.iter_mut().for_each(null_in_types),
        _ => {}
    }
}

/// An object in a sample and the schema that describes it.
struct Place {
    pointer: String,
    schema: Value,
    /// Names of its fields: items of one list may have different ones.
    fields: Vec<String>,
}

/// Follows references and the `allOf` of a single reference.
fn resolved(document: &Value, schema: &Value) -> Value {
    let mut schema = schema.clone();
    loop {
        if schema["anyOf"][1]["type"] == "null" {
            schema = schema["anyOf"][0].take();
        }
        let target = schema["$ref"].as_str().or(schema["allOf"][0]["$ref"].as_str());
        match target {
            Some(target) => schema = document.pointer(&target[1..]).unwrap().clone(),
            None => return schema,
        }
    }
}

/// Every place of `value` with its schema, itself first.
fn places(document: &Value, schema: &Value, value: &Value, pointer: &str, found: &mut Vec<Place>) {
    let schema = resolved(document, schema);
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                let known = &schema["properties"][name];
                let of = if known.is_null() { &schema["additionalProperties"] } else { known };
                // `true`: values of a map that may be anything.
                let is_known = of.is_object() || *of == true;
                assert!(is_known, "the schema does not know {pointer}/{name}");
                places(document, of, field, &format!("{pointer}/{name}"), found);
            }
        }
        Value::Array(items) if schema["items"].is_object() => {
            for (index, item) in items.iter().enumerate() {
                places(document, &schema["items"], item, &format!("{pointer}/{index}"), found);
            }
        }
        _ => {}
    }
    let fields = value.as_object().into_iter().flat_map(|fields| fields.keys().cloned());
    found.push(Place { pointer: pointer.to_owned(), schema, fields: fields.collect() });
}

/// Checks a type: `samples` together hold every field there is.
pub(super) fn check<T: Serialize + DeserializeOwned + Debug>(name: &str, samples: &[Value]) {
    check_around::<T>(name, samples, &[]);
}

/// Checks a type, but for what lies below the pointers of `others`: types with a check of their own.
pub(super) fn check_around<T: Serialize + DeserializeOwned + Debug>(
    name: &str,
    samples: &[Value],
    others: &[&str],
) {
    let document = document();
    let root = json!({ "$ref": format!("#/components/schemas/{name}") });
    let mut whole = document.clone();
    whole["$ref"] = root["$ref"].clone();
    let validator =
        jsonschema::options().with_draft(jsonschema::Draft::Draft4).build(&whole).unwrap();
    let valid = |value: &Value| match validator.iter_errors(value).next() {
        None => Ok(()),
        Some(error) => Err(format!("{name}{}: {error}", error.instance_path())),
    };
    let mut covered = Vec::new();
    for sample in samples {
        valid(sample).unwrap();
        let read: T = serde_json::from_value(sample.clone())
            .unwrap_or_else(|error| panic!("serde does not read a sample of {name}: {error}"));
        let written = serde_json::to_value(&read).unwrap();
        valid(&written).unwrap();
        assert_subset(sample, &written, name);
        let mut found = Vec::new();
        places(&document, &root, sample, "", &mut found);
        // Items of one list are of one type: the first stands for all.
        let mut seen = BTreeSet::new();
        for place in &found {
            let below = |other: &&str| place.pointer.starts_with(&format!("{other}/"));
            if !others.iter().any(below) && seen.insert((generic(&place.pointer), &place.fields)) {
                check_place::<T>(place, sample, &valid);
            }
        }
        covered.extend(found);
    }
    assert_covered(name, &covered);
}

/// Checks a type that is only written: each sample is valid, and the schema knows all its fields.
pub(super) fn check_written(name: &str, samples: &[Value]) {
    let document = document();
    let root = json!({ "$ref": format!("#/components/schemas/{name}") });
    let mut whole = document.clone();
    whole["$ref"] = root["$ref"].clone();
    let validator =
        jsonschema::options().with_draft(jsonschema::Draft::Draft4).build(&whole).unwrap();
    for sample in samples {
        if let Some(error) = validator.iter_errors(sample).next() {
            panic!("{name}{}: {error}", error.instance_path());
        }
        places(&document, &root, sample, "", &mut Vec::new());
    }
}

/// Whatever was read is written again, unchanged.
#[track_caller]
fn assert_subset(part: &Value, whole: &Value, at: &str) {
    match (part, whole) {
        (Value::Object(part), Value::Object(_)) => {
            for (key, value) in part {
                assert_subset(value, &whole[key], &format!("{at}/{key}"));
            }
        }
        (Value::Array(part), Value::Array(whole)) => {
            assert_eq!(part.len(), whole.len(), "{at}");
            for (part, whole) in part.iter().zip(whole) {
                assert_subset(part, whole, at);
            }
        }
        _ => assert_eq!(part, whole, "{at}"),
    }
}

/// Changes one place of a sample in every way that schema and serde must agree about.
fn check_place<T: DeserializeOwned>(
    place: &Place,
    sample: &Value,
    valid: &impl Fn(&Value) -> Result<(), String>,
) {
    let agree = |changed: &Value, what: &str| {
        let (schema, serde) = (valid(changed), serde_json::from_value::<T>(changed.clone()));
        let serde = serde.map(drop).map_err(|error| error.to_string());
        assert_eq!(
            schema.is_ok(),
            serde.is_ok(),
            "{} {what}: schema {schema:?}, serde {serde:?}",
            place.pointer
        );
    };
    let with = |change: &dyn Fn(&mut Value)| {
        let mut changed = sample.clone();
        change(changed.pointer_mut(&place.pointer).unwrap());
        changed
    };
    if place.schema["properties"].is_object() {
        let fields = sample.pointer(&place.pointer).unwrap().as_object().unwrap();
        for name in fields.keys() {
            let without = with(&|object| drop(object.as_object_mut().unwrap().remove(name)));
            agree(&without, &format!("without {name}"));
            if place.schema["additionalProperties"] == false {
                let null = with(&|object| object[name] = Value::Null);
                agree(&null, &format!("with null for {name}"));
            }
        }
        agree(&with(&|object| object["unknown"] = json!(1)), "with an unknown field");
    }
    for word in place.schema["enum"].as_array().into_iter().flatten() {
        let changed = with(&|value| *value = word.clone());
        valid(&changed).unwrap();
        agree(&changed, &word.to_string());
    }
    for other in [json!("nonsense!"), json!(-1), json!(true), json!({"a": 1}), json!([[]])] {
        // Strings may be anything, structures are read from sequences too, and later
        // checks, not serde, see that a value is a scalar and that numbers are in their ranges.
        let types = &place.schema["type"];
        let text = types == "string" || types[0] == "string";
        let open = text && place.schema["enum"].is_null()
            || place.pointer.ends_with("/value")
            || place.schema["minimum"].as_f64() > Some(0.0);
        let structure = place.schema["type"] == "object" && other.is_array();
        if !open && !structure {
            agree(&with(&|value| *value = other.clone()), &other.to_string());
        }
    }
}

/// A pointer without the numbers of items.
fn generic(pointer: &str) -> String {
    let parts = pointer.split('/').map(|part| part.parse::<usize>().map_or(part, |_| "0"));
    parts.collect::<Vec<_>>().join("/")
}

/// Every property of a type has a value somewhere, at one of the places that have the type.
fn assert_covered(name: &str, places: &[Place]) {
    let seen: BTreeSet<String> = places.iter().map(|place| generic(&place.pointer)).collect();
    let properties = places.iter().flat_map(|place| {
        let properties = place.schema["properties"].as_object().into_iter().flatten();
        properties.map(|(property, _)| {
            let pointer = generic(&format!("{}/{property}", place.pointer));
            ((place.schema["title"].as_str(), property), pointer)
        })
    });
    let properties: Vec<_> = properties.collect();
    let covered = properties.iter().filter(|(_, pointer)| seen.contains(pointer));
    let covered: BTreeSet<_> = covered.map(|(property, _)| property).collect();
    for (property, pointer) in &properties {
        assert!(covered.contains(property), "no sample of {name} has {pointer}");
    }
}
