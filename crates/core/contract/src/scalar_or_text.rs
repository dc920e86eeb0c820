//! Serialisation of fields that are a number, a boolean, a list or a string. serde's `untagged` is
//! not used, because its errors do not list the possible values.

use std::fmt;

use serde::de::{self, Deserializer, SeqAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use super::{Extent, ReturnOutputs, Sanitize};

impl Serialize for Extent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Extent::Value(value) => serializer.serialize_u64(*value),
            Extent::Expression(text) => serializer.serialize_str(text),
        }
    }
}

impl<'de> Deserialize<'de> for Extent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ExtentVisitor;
        impl Visitor<'_> for ExtentVisitor {
            type Value = Extent;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a non-negative integer or an expression such as \"ceil_div(n, 256)\"")
            }
            fn visit_u64<E: de::Error>(self, value: u64) -> Result<Extent, E> {
                Ok(Extent::Value(value))
            }
            fn visit_i64<E: de::Error>(self, value: i64) -> Result<Extent, E> {
                u64::try_from(value)
                    .map(Extent::Value)
                    .map_err(|_| E::invalid_value(de::Unexpected::Signed(value), &self))
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Extent, E> {
                Ok(Extent::Expression(text.to_owned()))
            }
        }
        deserializer.deserialize_any(ExtentVisitor)
    }
}

impl Serialize for Sanitize {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Sanitize::Off => serializer.serialize_bool(false),
            Sanitize::All => serializer.serialize_bool(true),
            Sanitize::Tool(tool) => serializer.serialize_str(tool),
        }
    }
}

/// Tools of compute-sanitizer that a contract may name.
const SANITIZER_TOOLS: [&str; 4] = ["memcheck", "racecheck", "initcheck", "synccheck"];

impl<'de> Deserialize<'de> for Sanitize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct SanitizeVisitor;
        impl Visitor<'_> for SanitizeVisitor {
            type Value = Sanitize;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a boolean, \"all\", or one of {}", SANITIZER_TOOLS.join(", "))
            }
            fn visit_bool<E: de::Error>(self, on: bool) -> Result<Sanitize, E> {
                Ok(if on { Sanitize::All } else { Sanitize::Off })
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Sanitize, E> {
                match text {
                    "all" => Ok(Sanitize::All),
                    tool if SANITIZER_TOOLS.contains(&tool) => Ok(Sanitize::Tool(tool.to_owned())),
                    other => Err(E::invalid_value(de::Unexpected::Str(other), &self)),
                }
            }
        }
        deserializer.deserialize_any(SanitizeVisitor)
    }
}

impl Serialize for ReturnOutputs {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            ReturnOutputs::None => serializer.serialize_str("none"),
            ReturnOutputs::All => serializer.serialize_str("all"),
            ReturnOutputs::Names(names) => serializer.collect_seq(names),
        }
    }
}

impl<'de> Deserialize<'de> for ReturnOutputs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OutputsVisitor;
        impl<'de> Visitor<'de> for OutputsVisitor {
            type Value = ReturnOutputs;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("\"none\", \"all\", or a list of output names")
            }
            /// Null means the default, because some clients send it for a missing value.
            fn visit_unit<E: de::Error>(self) -> Result<ReturnOutputs, E> {
                Ok(ReturnOutputs::default())
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<ReturnOutputs, E> {
                match text {
                    "none" => Ok(ReturnOutputs::None),
                    "all" => Ok(ReturnOutputs::All),
                    other => Err(E::invalid_value(de::Unexpected::Str(other), &self)),
                }
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<ReturnOutputs, A::Error> {
                let mut names = Vec::new();
                while let Some(name) = seq.next_element()? {
                    names.push(name);
                }
                Ok(ReturnOutputs::Names(names))
            }
        }
        deserializer.deserialize_any(OutputsVisitor)
    }
}
