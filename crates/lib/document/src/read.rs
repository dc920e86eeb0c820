//! The deserialiser that reads a type from a tree. The main type is [`Reader`].
//!
//! Large types are compiled only for this deserialiser, so its methods pass as little as possible
//! to generic code.

use std::borrow::Cow;
use std::vec;

use serde::de::{
    DeserializeSeed, Deserializer, Error, Expected, MapAccess, SeqAccess, Unexpected, Visitor,
};

use crate::choice::choice;
use crate::document::{Document, DocumentFormat, LineColumn, Value};
use crate::{DocumentError, PathSegment};

/// The tree from which a type is read.
pub(crate) struct Reader<'de> {
    pub(crate) value: Value<'de>,
    pub(crate) place: Option<LineColumn>,
    pub(crate) format: DocumentFormat,
    /// Whether the tree is the key of a field. In JSON, a numeric key is text.
    key: bool,
}

impl<'de> Reader<'de> {
    pub(crate) fn new(node: Document<'de>, format: DocumentFormat) -> Self {
        Self { value: node.value, place: node.place, format, key: false }
    }

    pub(crate) fn key(node: Document<'de>, format: DocumentFormat) -> Self {
        Self { key: true, ..Self::new(node, format) }
    }

    /// Returns the value for a type that does not request the text of a scalar.
    fn inferred(self) -> Value<'de> {
        match self.value {
            Value::Scalar(scalar) => scalar.value,
            value => value,
        }
    }

    /// Returns the value for a type that requests text.
    fn into_text(self) -> Value<'de> {
        match self.value {
            Value::Scalar(scalar) if scalar.value != Value::Null || self.key => {
                Value::Text(Cow::Borrowed(scalar.text))
            }
            Value::Scalar(scalar) => scalar.value,
            value => value,
        }
    }

    /// Returns the value for a type that requests a number or a boolean. Text is parsed if the
    /// format can write such a value only as text, or does not distinguish the two.
    fn into_number(self, parse: fn(&str) -> Option<Value<'de>>) -> Value<'de> {
        let lenient =
            self.format == DocumentFormat::Yaml || self.key && self.format == DocumentFormat::Json;
        match self.inferred() {
            Value::Text(text) if lenient => parse(text.trim()).unwrap_or(Value::Text(text)),
            value => value,
        }
    }

    fn is_null(&self) -> bool {
        match &self.value {
            Value::Null => true,
            Value::Scalar(scalar) => scalar.value == Value::Null,
            _ => false,
        }
    }
}

fn whole(text: &str) -> Option<Value<'static>> {
    let unsigned = text.parse().map(Value::Unsigned);
    unsigned.or_else(|_| text.parse().map(Value::Signed)).ok()
}

fn real(text: &str) -> Option<Value<'static>> {
    match text {
        ".inf" | "+.inf" => Some(f64::INFINITY),
        "-.inf" => Some(f64::NEG_INFINITY),
        ".nan" => Some(f64::NAN),
        // Rust's names for non-finite numbers are not numbers in YAML.
        _ if text.contains(|c: char| c.is_ascii_alphabetic() && !matches!(c, 'e' | 'E')) => None,
        _ => text.parse().ok(),
    }
    .map(Value::Float)
}

/// Returns the YAML notation of a non-finite number.
fn non_finite(value: f64) -> &'static str {
    match value {
        f64::INFINITY => ".inf",
        f64::NEG_INFINITY => "-.inf",
        _ => ".nan",
    }
}

fn truth(text: &str) -> Option<Value<'static>> {
    match () {
        () if text.eq_ignore_ascii_case("true") => Some(Value::Bool(true)),
        () if text.eq_ignore_ascii_case("false") => Some(Value::Bool(false)),
        () => None,
    }
}

/// Creates the error for a value that a visitor does not accept.
#[inline(never)]
pub(crate) fn mismatch(value: &Value<'_>, expected: &dyn Expected) -> DocumentError {
    let unexpected = match value {
        Value::Null => Unexpected::Unit,
        Value::Bool(value) => Unexpected::Bool(*value),
        Value::Unsigned(value) => Unexpected::Unsigned(*value),
        Value::Signed(value) => Unexpected::Signed(*value),
        Value::Float(value) => Unexpected::Float(*value),
        Value::Text(text) => Unexpected::Str(text),
        Value::Bytes(bytes) => Unexpected::Bytes(bytes),
        Value::List(_) => Unexpected::Seq,
        Value::Map(_) => Unexpected::Map,
        Value::Scalar(scalar) => return mismatch(&scalar.value, expected),
    };
    DocumentError::invalid_type(unexpected, expected)
}

fn visit_text<'de, V: Visitor<'de>>(
    text: Cow<'de, str>,
    visitor: V,
) -> Result<V::Value, DocumentError> {
    match text {
        Cow::Borrowed(text) => visitor.visit_borrowed_str(text),
        Cow::Owned(text) => visitor.visit_string(text),
    }
}

fn visit_bytes<'de, V: Visitor<'de>>(
    bytes: Cow<'de, [u8]>,
    visitor: V,
) -> Result<V::Value, DocumentError> {
    match bytes {
        Cow::Borrowed(bytes) => visitor.visit_borrowed_bytes(bytes),
        Cow::Owned(bytes) => visitor.visit_byte_buf(bytes),
    }
}

fn visit_number<'de, V: Visitor<'de>>(
    value: Value<'de>,
    visitor: V,
) -> Result<V::Value, DocumentError> {
    match value {
        Value::Unsigned(value) => visitor.visit_u64(value),
        Value::Signed(value) => visitor.visit_i64(value),
        Value::Float(value) => visitor.visit_f64(value),
        other => Err(mismatch(&other, &visitor)),
    }
}

fn visit_list<'de, V: Visitor<'de>>(
    list: Vec<Document<'de>>,
    format: DocumentFormat,
    visitor: V,
) -> Result<V::Value, DocumentError> {
    let length = list.len();
    let mut elements = Elements { list: list.into_iter(), index: 0, format };
    let value = visitor.visit_seq(&mut elements)?;
    match elements.list.len() {
        0 => Ok(value),
        _ => Err(DocumentError::new(format_args!(
            "invalid length {length}, expected fewer elements in array"
        ))),
    }
}

fn visit_map<'de, V: Visitor<'de>>(
    map: Vec<(Document<'de>, Document<'de>)>,
    format: DocumentFormat,
    visitor: V,
) -> Result<V::Value, DocumentError> {
    let length = map.len();
    let mut fields = Fields { map: map.into_iter(), value: None, format };
    let value = visitor.visit_map(&mut fields).map_err(|error| match fields.value.take() {
        // The key itself is invalid, e.g. a duplicate, so its value was not read.
        Some((name, _)) => error.under(PathSegment::named(name)),
        None => error,
    })?;
    match fields.map.len() {
        0 => Ok(value),
        _ => Err(DocumentError::new(format_args!(
            "invalid length {length}, expected fewer elements in map"
        ))),
    }
}

/// Defines methods that differ only in their names.
macro_rules! as_numbers {
    ($($method:ident)*) => {
        $(
            fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DocumentError> {
                self.deserialize_u64(visitor)
            }
        )*
    };
}

impl<'de> Deserializer<'de> for Reader<'de> {
    type Error = DocumentError;

    fn is_human_readable(&self) -> bool {
        self.format != DocumentFormat::MsgPack
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DocumentError> {
        let (place, format) = (self.place, self.format);
        match if self.key { self.into_text() } else { self.inferred() } {
            // JSON has no such numbers, and types that accept any value accept only what JSON can
            // express.
            Value::Float(value) if format == DocumentFormat::Yaml && !value.is_finite() => {
                visitor.visit_str(non_finite(value))
            }
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(value),
            Value::Text(text) => visit_text(text, visitor),
            Value::Bytes(bytes) => visit_bytes(bytes, visitor),
            Value::List(list) => visit_list(list, format, visitor),
            Value::Map(map) => visit_map(map, format, visitor),
            number => visit_number(number, visitor),
        }
        .map_err(|error: DocumentError| error.at(place))
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DocumentError> {
        let place = self.place;
        match self.into_number(truth) {
            Value::Bool(value) => visitor.visit_bool(value),
            other => Err(mismatch(&other, &visitor)),
        }
        .map_err(|error| error.at(place))
    }

    as_numbers! {
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64
        deserialize_u8 deserialize_u16 deserialize_u32
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DocumentError> {
        let place = self.place;
        visit_number(self.into_number(whole), visitor).map_err(|error| error.at(place))
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DocumentError> {
        let place = self.place;
        match self.into_number(real) {
            Value::Float(value) if value.is_finite() && (value as f32).is_infinite() => {
                Err(DocumentError::new("number out of range"))
            }
            value => visit_number(value, visitor),
        }
        .map_err(|error| error.at(place))
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DocumentError> {
        let place = self.place;
        visit_number(self.into_number(real), visitor).map_err(|error| error.at(place))
    }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DocumentError> {
        self.deserialize_str(visitor)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DocumentError> {
        let place = self.place;
        match self.into_text() {
            Value::Text(text) => visit_text(text, visitor),
            Value::Bytes(bytes) => visit_bytes(bytes, visitor),
            other => Err(mismatch(&other, &visitor)),
        }
        .map_err(|error: DocumentError| error.at(place))
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DocumentError> {
        self.deserialize_str(visitor)
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DocumentError> {
        let (place, format) = (self.place, self.format);
        match self.into_text() {
            Value::Text(text) => visit_text(text, visitor),
            Value::Bytes(bytes) => visit_bytes(bytes, visitor),
            Value::List(list) => visit_list(list, format, visitor),
            other => Err(mismatch(&other, &visitor)),
        }
        .map_err(|error: DocumentError| error.at(place))
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DocumentError> {
        self.deserialize_bytes(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DocumentError> {
        match self.is_null() {
            true => visitor.visit_none(),
            false => visitor.visit_some(self),
        }
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DocumentError> {
        match self.is_null() {
            true => visitor.visit_unit(),
            false => Err(mismatch(&self.value, &visitor).at(self.place)),
        }
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, DocumentError> {
        match &self.value {
            // In MessagePack a unit struct is an empty list.
            Value::List(list) if list.is_empty() => visitor.visit_unit(),
            _ => self.deserialize_unit(visitor),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, DocumentError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DocumentError> {
        let (place, format) = (self.place, self.format);
        match self.inferred() {
            Value::List(list) => visit_list(list, format, visitor),
            // A YAML field without a value is read as an empty list.
            Value::Null if format == DocumentFormat::Yaml => {
                visit_list(Vec::new(), format, visitor)
            }
            Value::Bytes(bytes) => visit_bytes(bytes, visitor),
            other => Err(mismatch(&other, &visitor)),
        }
        .map_err(|error: DocumentError| error.at(place))
    }

    fn deserialize_tuple<V: Visitor<'de>>(
        self,
        _length: usize,
        visitor: V,
    ) -> Result<V::Value, DocumentError> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _length: usize,
        visitor: V,
    ) -> Result<V::Value, DocumentError> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DocumentError> {
        let (place, format) = (self.place, self.format);
        match self.inferred() {
            Value::Map(map) => visit_map(map, format, visitor),
            Value::Null if format == DocumentFormat::Yaml => visit_map(Vec::new(), format, visitor),
            other => Err(mismatch(&other, &visitor)),
        }
        .map_err(|error| error.at(place))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DocumentError> {
        let (place, format) = (self.place, self.format);
        match self.inferred() {
            Value::Map(map) => visit_map(map, format, visitor),
            Value::List(list) if format != DocumentFormat::Yaml => {
                visit_list(list, format, visitor)
            }
            Value::Null if format == DocumentFormat::Yaml => visit_map(Vec::new(), format, visitor),
            other => Err(mismatch(&other, &visitor)),
        }
        .map_err(|error: DocumentError| error.at(place))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DocumentError> {
        let place = self.place;
        choice(self).and_then(|choice| visitor.visit_enum(choice)).map_err(|error| error.at(place))
    }

    fn deserialize_identifier<V: Visitor<'de>>(
        self,
        visitor: V,
    ) -> Result<V::Value, DocumentError> {
        let place = self.place;
        match self.into_text() {
            Value::Text(text) => visitor.visit_str(&text),
            Value::Bytes(bytes) => visitor.visit_bytes(&bytes),
            other => Err(mismatch(&other, &visitor)),
        }
        .map_err(|error: DocumentError| error.at(place))
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(
        self,
        visitor: V,
    ) -> Result<V::Value, DocumentError> {
        visitor.visit_unit()
    }
}

/// The elements of a list that have not been read yet.
struct Elements<'de> {
    list: vec::IntoIter<Document<'de>>,
    index: usize,
    format: DocumentFormat,
}

impl<'de> SeqAccess<'de> for &mut Elements<'de> {
    type Error = DocumentError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, DocumentError> {
        let Some(node) = self.list.next() else { return Ok(None) };
        let index = self.index;
        self.index += 1;
        match seed.deserialize(Reader::new(node, self.format)) {
            Ok(value) => Ok(Some(value)),
            Err(error) => Err(error.under(PathSegment::Element(index))),
        }
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.list.len())
    }
}

/// The fields of a map that have not been read yet.
struct Fields<'de> {
    map: vec::IntoIter<(Document<'de>, Document<'de>)>,
    /// The value that belongs to the last key, with the text of that key.
    value: Option<(Option<Cow<'de, str>>, Document<'de>)>,
    format: DocumentFormat,
}

impl<'de> MapAccess<'de> for &mut Fields<'de> {
    type Error = DocumentError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, DocumentError> {
        let Some((key, value)) = self.map.next() else { return Ok(None) };
        self.value = Some((key.text(), value));
        seed.deserialize(Reader::key(key, self.format)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(
        &mut self,
        seed: V,
    ) -> Result<V::Value, DocumentError> {
        let Some((name, value)) = self.value.take() else {
            return Err(DocumentError::new("the value of a field was read before its name"));
        };
        seed.deserialize(Reader::new(value, self.format))
            .map_err(|error| error.under(PathSegment::named(name)))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.map.len())
    }
}
