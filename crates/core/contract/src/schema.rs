//! Schemas of wire types: how they are written, and those of types with a hand-written serde form.

use std::borrow::Cow;

use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema, json_schema};
use serde_json::{Value, json};

use super::{AxisValue, Extent, ReturnOutputs, Sanitize};

/// Makes schemas of what is read: `null` stands for an optional field that is left out.
pub fn of_requests() -> SchemaGenerator {
    generator(|property| {
        if without_null(property) {
            property["nullable"] = true.into();
        }
    })
}

/// Makes schemas of what is written: an optional field that is nothing is left out. One that has
/// `null` all the same says so with `#[schemars(extend("nullable" = true))]`.
pub fn of_answers() -> SchemaGenerator {
    generator(|property| {
        without_null(property);
    })
}

/// In OpenAPI's dialect, with references to `#/components/schemas`. Required is what readers need: a
/// field with a default may be absent from requests, and from answers of older servers.
fn generator(optional: fn(&mut Value)) -> SchemaGenerator {
    let mut settings = SchemaSettings::openapi3();
    settings.transforms.insert(
        0,
        Box::new(RecursiveTransform(move |schema: &mut Schema| {
            let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
            properties.into_iter().flatten().for_each(|(_, property)| optional(property));
            plain_enum(schema);
            plain_format(schema);
            without_empty_default(schema);
        })),
    );
    settings.into_generator()
}

/// Takes `null` from what a property may be; whether it was in it.
fn without_null(property: &mut Value) -> bool {
    let null = json!({"type": "null"});
    if let Some(Value::Array(kinds)) = property.get_mut("type")
        && let [kind, Value::String(second)] = kinds.as_slice()
        && second == "null"
    {
        property["type"] = kind.clone();
    } else if let Some(Value::Array(kinds)) = property.get("anyOf")
        && let [Value::Object(only), second] = kinds.as_slice()
        && *second == null
    {
        let only = only.clone();
        let Some(property) = property.as_object_mut() else { return false };
        property.remove("anyOf");
        property.extend(only);
    } else {
        return false;
    }
    true
}

/// The formats of `usize` and `isize` are known nowhere.
fn plain_format(schema: &mut Schema) {
    let known = match schema.get("format").and_then(Value::as_str) {
        Some("uint") => "uint64",
        Some("int") => "int64",
        _ => return,
    };
    schema.insert("format".into(), known.into());
}

/// An empty default says nothing that the type's own defaults do not.
fn without_empty_default(schema: &mut Schema) {
    let empty = match schema.get("default") {
        Some(Value::Object(_) | Value::Null) => true,
        Some(Value::Array(items)) => items.is_empty(),
        _ => false,
    };
    if empty {
        schema.remove("default");
    }
}

/// A list of words instead of a choice between constants with descriptions.
fn plain_enum(schema: &mut Schema) {
    let Some(Value::Array(variants)) = schema.get("oneOf") else { return };
    let words = |variant: &Value| match (variant.get("const"), variant.get("enum")) {
        (Some(word), _) => Some(vec![word.clone()]),
        (None, Some(Value::Array(words))) => Some(words.clone()),
        _ => None,
    };
    if let Some(words) = variants.iter().map(words).collect::<Option<Vec<_>>>() {
        schema.remove("oneOf");
        schema.insert("type".into(), "string".into());
        schema.insert("enum".into(), words.concat().into());
    }
}

/// Describes `$ty` by the schema that follows.
macro_rules! described {
    ($ty:ident, $schema:tt) => {
        impl JsonSchema for $ty {
            fn schema_name() -> Cow<'static, str> {
                stringify!($ty).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        }
    };
}

described!(Extent, {
    "description": "A number, or an expression over scalar arguments and shapes such as \
                    `ceil_div(n, 256)`.",
    "oneOf": [{"type": "integer", "format": "uint64", "minimum": 0}, {"type": "string"}],
});

described!(ReturnOutputs, {
    "description": "Which outputs travel back: `none`, `all`, or a list of names.",
    "oneOf": [
        {"type": "string", "enum": ["none", "all"]},
        {"type": "array", "items": {"type": "string"}},
    ],
});

described!(Sanitize, {
    "description": "Memory and race checks: `false`, `true` for all, or one tool of \
                    compute-sanitizer.",
    "oneOf": [
        {"type": "boolean"},
        {"type": "string", "enum": ["all", "memcheck", "racecheck", "initcheck", "synccheck"]},
    ],
});

// Integers first: generated clients take the first that fits.
described!(AxisValue, {
    "description": "A value of an axis: a number, a boolean, a text, or, in a request, a range such \
                    as `2^10..2^24 by x4`.",
    "anyOf": [{"type": "boolean"}, {"type": "integer"}, {"type": "number"}, {"type": "string"}],
});
