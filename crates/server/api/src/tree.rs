//! The OpenAPI document as a tree of JSON values: [`Value`]. Unlike in `serde_json`, objects keep
//! the order of their fields, because pages show operations in the document's order.

use std::fmt;

use indexmap::IndexMap;
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Number;

use warpgauge_contract::{BodyFormat, parse};

/// Parses a YAML constant of this crate, or an example. A test parses each of them.
pub(crate) fn parsed(text: &str) -> Value {
    parse(BodyFormat::Yaml, text.as_bytes()).expect("the examples are valid")
}

/// Fields of an object, in the order in which they were written.
pub(crate) type Mapping = IndexMap<String, Value>;

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(untagged)]
pub(crate) enum Value {
    #[default]
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    Sequence(Vec<Value>),
    Mapping(Mapping),
}

impl Value {
    /// Returns a field of a mapping.
    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        self.as_mapping()?.get(name)
    }

    pub(crate) fn get_mut(&mut self, name: &str) -> Option<&mut Value> {
        self.as_mapping_mut()?.get_mut(name)
    }

    pub(crate) fn as_str(&self) -> Option<&str> {
        if let Value::Text(text) = self { Some(text) } else { None }
    }

    pub(crate) fn as_sequence(&self) -> Option<&Vec<Value>> {
        if let Value::Sequence(items) = self { Some(items) } else { None }
    }

    pub(crate) fn as_sequence_mut(&mut self) -> Option<&mut Vec<Value>> {
        if let Value::Sequence(items) = self { Some(items) } else { None }
    }

    pub(crate) fn as_mapping(&self) -> Option<&Mapping> {
        if let Value::Mapping(fields) = self { Some(fields) } else { None }
    }

    pub(crate) fn as_mapping_mut(&mut self) -> Option<&mut Mapping> {
        if let Value::Mapping(fields) = self { Some(fields) } else { None }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Value::Text(text.to_owned())
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Self {
        Value::Bool(flag)
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Value::Number(number.into())
    }
}

/// A number that is not finite becomes `null`, because JSON cannot represent it.
impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Number::from_f64(number).map_or(Value::Null, Value::Number)
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Builder)
    }
}

struct Builder;

impl<'de> Visitor<'de> for Builder {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Value, E> {
        Ok(flag.into())
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(Value::Number(number.into()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_string<E>(self, text: String) -> Result<Value, E> {
        Ok(Value::Text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut sequence = Vec::new();
        while let Some(item) = items.next_element()? {
            sequence.push(item);
        }
        Ok(Value::Sequence(sequence))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut mapping = Mapping::new();
        while let Some((name, value)) = fields.next_entry()? {
            mapping.insert(name, value);
        }
        Ok(Value::Mapping(mapping))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpgauge_contract::{BodyFormat, parse};

    /// Unquoted in YAML, some of these texts have another type, or had one in YAML 1.1.
    #[test]
    fn order_and_values_come_back_from_json_and_yaml() {
        let json = r#"{"z":null,"a":[true,-1,18446744073709551615,1.0,2.5e-7],"t":["yes","no","n","~","1e3",
            "0x1F","1_000","12:30","2026-01-01","null","",": "," # ","- a","a\nb\n","\ttab ","é","<<"]}"#;
        let value: Value = serde_json::from_str(json).unwrap();
        let fields: Vec<_> = value.as_mapping().unwrap().keys().collect();
        assert_eq!(fields, ["z", "a", "t"]);
        let written = serde_json::to_string(&value).unwrap();
        assert_eq!(written, json.replace("\n            ", ""));
        let yaml = serde_saphyr::to_string(&value).unwrap();
        let back: Value = parse(BodyFormat::Yaml, yaml.as_bytes()).unwrap();
        assert_eq!(serde_json::to_string(&back).unwrap(), written, "{yaml}");
    }
}
