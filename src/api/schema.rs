//! OpenAPI schemas of wire types that have a hand-written serde form.
//!
//! Serde reads and writes every body; what stands here only describes it. The tests compare the two.

use std::borrow::Cow;

use poem_openapi::registry::{MetaSchema, MetaSchemaRef, Registry};
use poem_openapi::types::{ParseError, ParseFromJSON, ParseResult, ToJSON, Type};
use serde_json::Value;

use crate::contract::{AxisValue, Extent, ReturnOutputs, Sanitize};
use crate::tensor::Blob;

/// poem-openapi converts defaults with this.
macro_rules! json_by_serde {
    ($ty:ty) => {
        impl ParseFromJSON for $ty {
            fn parse_from_json(value: Option<Value>) -> ParseResult<Self> {
                serde_json::from_value(value.unwrap_or_default()).map_err(ParseError::custom)
            }
        }

        impl ToJSON for $ty {
            fn to_json(&self) -> Option<Value> {
                serde_json::to_value(self).ok()
            }
        }
    };
}

/// Describes `$ty` as the component `$name` with the schema that `$schema` yields.
macro_rules! describe {
    ($ty:ty, $name:literal, $schema:expr) => {
        impl Type for $ty {
            const IS_REQUIRED: bool = true;
            type RawValueType = Self;
            type RawElementValueType = Self;

            fn name() -> Cow<'static, str> {
                $name.into()
            }

            fn schema_ref() -> MetaSchemaRef {
                MetaSchemaRef::Reference($name.to_owned())
            }

            fn register(registry: &mut Registry) {
                registry.create_schema::<Self, _>($name.to_owned(), |_| $schema);
            }

            fn as_raw_value(&self) -> Option<&Self> {
                Some(self)
            }

            fn raw_element_iter<'a>(&'a self) -> Box<dyn Iterator<Item = &'a Self> + 'a> {
                Box::new(std::iter::once(self))
            }
        }

        json_by_serde!($ty);
    };
}

describe!(
    Extent,
    "Extent",
    MetaSchema {
        description: Some(
            "A number, or an expression over scalar arguments and shapes such as \
             `ceil_div(n, 256)`."
        ),
        one_of: vec![
            inline(MetaSchema {
                minimum: Some(0.0),
                ..MetaSchema::new_with_format("integer", "uint64")
            }),
            inline(MetaSchema::new("string")),
        ],
        ..MetaSchema::ANY
    }
);

describe!(
    ReturnOutputs,
    "ReturnOutputs",
    MetaSchema {
        description: Some("Which outputs travel back: `none`, `all`, or a list of names."),
        one_of: vec![
            inline(words(&["none", "all"])),
            inline(MetaSchema {
                items: Some(Box::new(inline(MetaSchema::new("string")))),
                ..MetaSchema::new("array")
            }),
        ],
        ..MetaSchema::ANY
    }
);

describe!(
    Sanitize,
    "Sanitize",
    MetaSchema {
        description: Some(
            "Memory and race checks: `false`, `true` for all, or one tool of compute-sanitizer."
        ),
        one_of: vec![
            inline(MetaSchema::new("boolean")),
            inline(words(&["all", "memcheck", "racecheck", "initcheck", "synccheck"])),
        ],
        ..MetaSchema::ANY
    }
);

describe!(
    AxisValue,
    "AxisValue",
    MetaSchema {
        description: Some(
            "A value of an axis: a number, a boolean, a text, or, in a request, a range such as \
             `2^10..2^24 by x4`."
        ),
        // Integers first: generated clients take the first that fits.
        any_of: ["boolean", "integer", "number", "string"]
            .map(|kind| inline(MetaSchema::new(kind)))
            .into(),
        ..MetaSchema::ANY
    }
);

/// Inline, as a class of its own would help nobody.
impl Type for Blob {
    const IS_REQUIRED: bool = true;
    type RawValueType = Self;
    type RawElementValueType = Self;

    fn name() -> Cow<'static, str> {
        "string_byte".into()
    }

    fn schema_ref() -> MetaSchemaRef {
        inline(MetaSchema::new_with_format("string", "byte"))
    }

    fn as_raw_value(&self) -> Option<&Self> {
        Some(self)
    }

    fn raw_element_iter<'a>(&'a self) -> Box<dyn Iterator<Item = &'a Self> + 'a> {
        Box::new(std::iter::once(self))
    }
}

json_by_serde!(Blob);

fn inline(schema: MetaSchema) -> MetaSchemaRef {
    MetaSchemaRef::Inline(Box::new(schema))
}

fn words(allowed: &[&str]) -> MetaSchema {
    MetaSchema {
        enum_items: allowed.iter().map(|word| Value::from(*word)).collect(),
        ..MetaSchema::new("string")
    }
}
