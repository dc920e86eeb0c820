//! Builds a tree with the parser of a format.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use crate::document::{Document, Value};
use crate::{DocumentError, PathSegment};

/// The maximum number of values for which memory is reserved before they are read.
const RESERVED: usize = 1024;

/// An error of a parser, with the path to the value that could not be parsed.
#[derive(Debug)]
pub struct Unparsed<E> {
    /// The error that the parser reported.
    pub error: E,
    /// The steps from the whole document to the position of the error.
    pub path: Vec<PathSegment>,
}

impl<E: fmt::Display> Unparsed<E> {
    pub(crate) fn into_error(self) -> DocumentError {
        DocumentError::new(self.error).with_path(self.path.into_iter().rev().collect())
    }
}

thread_local! {
    /// The steps to the value that could not be parsed, innermost first. They are in a variable
    /// because a parser passes only its own error type from a value to the enclosing value.
    static PATH: RefCell<Vec<PathSegment>> = const { RefCell::new(Vec::new()) };
    /// The number of values that the tree may still receive.
    static LEFT: Cell<u64> = const { Cell::new(u64::MAX) };
}

/// Runs a parser that accepts at most `max_values` values, and adds the path to its error.
pub(crate) fn with_path<T, E>(
    max_values: u64,
    parse: impl FnOnce() -> Result<T, E>,
) -> Result<T, Box<Unparsed<E>>> {
    PATH.with_borrow_mut(Vec::clear);
    LEFT.set(max_values);
    parse().map_err(|error| {
        Box::new(Unparsed { error, path: PATH.take().into_iter().rev().collect() })
    })
}

fn under<E>(segment: PathSegment) -> impl FnOnce(E) -> E {
    |error| {
        PATH.with_borrow_mut(|path| path.push(segment));
        error
    }
}

impl<'de> Document<'de> {
    /// Parses a document with the parser of a format.
    ///
    /// # Errors
    /// The parser's error, with the path to the value.
    pub fn parse<D: Deserializer<'de>>(parser: D) -> Result<Self, Box<Unparsed<D::Error>>> {
        Self::parse_within(u64::MAX, parser)
    }

    /// Parses a document like [`Document::parse`], but accepts at most `max_values` values. It is
    /// for untrusted input.
    ///
    /// # Errors The parser's error, with the path to the value, or too many values.
    pub fn parse_within<D: Deserializer<'de>>(
        max_values: u64,
        parser: D,
    ) -> Result<Self, Box<Unparsed<D::Error>>> {
        with_path(max_values, || Self::deserialize(parser))
    }
}

impl<'de> Deserialize<'de> for Document<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let left = LEFT.get().checked_sub(1).ok_or_else(|| D::Error::custom("too many values"))?;
        LEFT.set(left);
        deserializer.deserialize_any(Builder::<Self>(PhantomData)).map(Self::new)
    }
}

/// A visitor that builds a value from its elements, which have type `C`.
pub(crate) struct Builder<C>(pub(crate) PhantomData<C>);

impl<'de, C: Deserialize<'de> + Into<Document<'de>>> Visitor<'de> for Builder<C> {
    type Value = Value<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
        Ok(Value::Unsigned(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
        Ok(match u64::try_from(value) {
            Ok(value) => Value::Unsigned(value),
            Err(_) => Value::Signed(value),
        })
    }

    fn visit_f64<E>(self, value: f64) -> Result<Self::Value, E> {
        Ok(Value::Float(value))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Value::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Value::Text(Cow::Borrowed(text)))
    }

    fn visit_string<E>(self, text: String) -> Result<Self::Value, E> {
        Ok(Value::Text(Cow::Owned(text)))
    }

    fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Self::Value, E> {
        Ok(Value::Bytes(Cow::Owned(bytes.to_vec())))
    }

    fn visit_borrowed_bytes<E>(self, bytes: &'de [u8]) -> Result<Self::Value, E> {
        Ok(Value::Bytes(Cow::Borrowed(bytes)))
    }

    fn visit_byte_buf<E>(self, bytes: Vec<u8>) -> Result<Self::Value, E> {
        Ok(Value::Bytes(Cow::Owned(bytes)))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Self::Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, some: D) -> Result<Self::Value, D::Error> {
        some.deserialize_any(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Self::Value, A::Error> {
        let mut list = Vec::with_capacity(elements.size_hint().unwrap_or(0).min(RESERVED));
        while let Some(element) =
            elements.next_element::<C>().map_err(under(PathSegment::Element(list.len())))?
        {
            list.push(element.into());
        }
        Ok(Value::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Self::Value, A::Error> {
        let mut map = Vec::with_capacity(fields.size_hint().unwrap_or(0).min(RESERVED));
        while let Some(key) = fields.next_key::<C>()? {
            let key: Document<'de> = key.into();
            match fields.next_value::<C>() {
                Ok(value) => map.push((key, value.into())),
                Err(error) => return Err(under(PathSegment::named(key.text()))(error)),
            }
        }
        Ok(Value::Map(map))
    }
}
