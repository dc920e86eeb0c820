//! JSON schemas of wire types: their dialect, and the schemas of types with hand-written
//! serialisation.

use std::borrow::Cow;

use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema, json_schema};
use serde_json::{Value, json};

use super::{AxisValue, Extent, ReturnOutputs, Sanitize};

/// Returns a generator of request schemas: `null` is equivalent to a missing optional field.
pub fn of_requests() -> SchemaGenerator {
    generator(|property| {
        if without_null(property) {
            property["nullable"] = true.into();
        }
    })
}

/// Returns a generator of response schemas: an optional field without a value is left out. A field
/// that may still be `null` has `#[schemars(extend("nullable" = true))]`.
pub fn of_answers() -> SchemaGenerator {
    generator(|property| {
        without_null(property);
    })
}

/// Returns a generator of OpenAPI's dialect, with references to `#/components/schemas`. Fields with
/// a default are not required: requests and responses of older servers may lack them.
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

/// Returns the JSON Schema (draft 2020-12) of a file with a request of type `T`. In a file, a
/// kernel may have `source_file` in place of `source_code` or `binary_b64`.
pub fn of_file<T: JsonSchema>(title: &str) -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.transforms.push(Box::new(RecursiveTransform(|schema: &mut Schema| {
        plain_format(schema);
        without_empty_default(schema);
    })));
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    schema["title"] = title.into();
    if let Some(properties) = schema.pointer_mut("/$defs/KernelCode/properties") {
        properties["source_file"] = json!({
            "type": "string",
            "minLength": 1,
            "description": "Path of the file with the code, relative to this file, in place of `source_code` or `binary_b64`.",
        });
    }
    schema
}

/// Removes `null` from the types of a property. Returns whether `null` was among them.
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

/// Replaces the formats of `usize` and `isize`, which are not standard.
fn plain_format(schema: &mut Schema) {
    let known = match schema.get("format").and_then(Value::as_str) {
        Some("uint") => "uint64",
        Some("int") => "int64",
        _ => return,
    };
    schema.insert("format".into(), known.into());
}

/// Removes an empty default, because it adds nothing to the type's own defaults.
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

/// Replaces a choice between described constants by a list of strings. The descriptions of the constants become a
/// list in the description of the type.
fn plain_enum(schema: &mut Schema) {
    let Some(Value::Array(variants)) = schema.get("oneOf") else { return };
    let words = |variant: &Value| match (variant.get("const"), variant.get("enum")) {
        (Some(word), _) => Some(vec![word.clone()]),
        (None, Some(Value::Array(words))) => Some(words.clone()),
        _ => None,
    };
    let Some(words) = variants.iter().map(words).collect::<Option<Vec<_>>>() else { return };
    let described = |variant: &Value| {
        let word = variant.get("const")?.as_str()?;
        let text = variant.get("description")?.as_str()?;
        Some(format!("- `{word}`: {}", text.replace('\n', " ")))
    };
    let list = variants.iter().filter_map(described).collect::<Vec<_>>();
    schema.remove("oneOf");
    schema.insert("type".into(), "string".into());
    schema.insert("enum".into(), words.concat().into());
    if !list.is_empty() {
        let own = schema.get("description").and_then(Value::as_str).unwrap_or_default();
        let text = format!("{own}\n\n{}", list.join("\n"));
        schema.insert("description".into(), text.trim().into());
    }
}

/// Defines the schema of `$ty`.
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
    "description": "Number, or an expression over scalar arguments and shapes, e.g. \
                    `ceil_div(n, 256)`.",
    "oneOf": [{"type": "integer", "format": "uint64", "minimum": 0}, {"type": "string"}],
});

described!(ReturnOutputs, {
    "description": "Outputs that the report contains: `none`, `all`, or a list of names.",
    "oneOf": [
        {"type": "string", "enum": ["none", "all"]},
        {"type": "array", "items": {"type": "string"}},
    ],
});

described!(Sanitize, {
    "description": "Memory and race checks: `false`, `true` or `all`, or the name of one \
                    compute-sanitizer tool.",
    "oneOf": [
        {"type": "boolean"},
        {"type": "string", "enum": ["all", "memcheck", "racecheck", "initcheck", "synccheck"]},
    ],
});

// Integers come before other numbers, because generated clients take the first type that fits.
described!(AxisValue, {
    "description": "Value of an axis: a number, a boolean, a string, or, in a request, a range, \
                    e.g. `2^10..2^24 by x4`.",
    "anyOf": [{"type": "boolean"}, {"type": "integer"}, {"type": "number"}, {"type": "string"}],
});
