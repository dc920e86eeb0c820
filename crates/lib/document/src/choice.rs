//! Deserialisation of enum variants. The main type is [`Choice`].

use std::borrow::Cow;

use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error, Unexpected, VariantAccess, Visitor,
};

use crate::document::{Document, DocumentFormat, Value};
use crate::read::{Reader, mismatch};
use crate::{DocumentError, PathSegment};

/// A variant of an enum, with its content.
pub(crate) struct Choice<'de> {
    variant: Document<'de>,
    content: Option<Document<'de>>,
    format: DocumentFormat,
}

pub(crate) fn choice(reader: Reader<'_>) -> Result<Choice<'_>, DocumentError> {
    let Reader { value, place, format, .. } = reader;
    match value {
        Value::Map(mut map) => match (map.pop(), map.is_empty()) {
            (Some((variant, content)), true) => {
                Ok(Choice { variant, content: Some(content), format })
            }
            _ => Err(DocumentError::invalid_value(Unexpected::Map, &"map with a single key")),
        },
        Value::Text(_) | Value::Bytes(_) | Value::Scalar(_) => {
            Ok(Choice { variant: Document { value, place }, content: None, format })
        }
        // A number is not accepted as a variant: its meaning would depend on the order of the
        // variants in the program.
        other => Err(mismatch(&other, &"string or map")),
    }
}

impl<'de> EnumAccess<'de> for Choice<'de> {
    type Error = DocumentError;
    type Variant = Held<'de>;

    fn variant_seed<V: DeserializeSeed<'de>>(
        self,
        seed: V,
    ) -> Result<(V::Value, Held<'de>), DocumentError> {
        let held = Held { name: self.variant.text(), content: self.content, format: self.format };
        let variant = seed.deserialize(Reader::key(self.variant, self.format))?;
        Ok((variant, held))
    }
}

/// The content of an enum variant.
pub(crate) struct Held<'de> {
    name: Option<Cow<'de, str>>,
    content: Option<Document<'de>>,
    format: DocumentFormat,
}

impl<'de> Held<'de> {
    fn reader(&mut self, expected: &str) -> Result<Reader<'de>, DocumentError> {
        match self.content.take() {
            Some(content) => Ok(Reader::new(content, self.format)),
            None => Err(DocumentError::invalid_type(Unexpected::UnitVariant, &expected)),
        }
    }
}

impl<'de> VariantAccess<'de> for Held<'de> {
    type Error = DocumentError;

    fn unit_variant(mut self) -> Result<(), DocumentError> {
        let Some(content) = self.content.take() else { return Ok(()) };
        let read = <() as serde::Deserialize>::deserialize(Reader::new(content, self.format));
        read.map_err(|error| error.under(PathSegment::named(self.name)))
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(
        mut self,
        seed: T,
    ) -> Result<T::Value, DocumentError> {
        let reader = self.reader("newtype variant")?;
        seed.deserialize(reader).map_err(|error| error.under(PathSegment::named(self.name)))
    }

    fn tuple_variant<V: Visitor<'de>>(
        mut self,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, DocumentError> {
        let reader = self.reader("tuple variant")?;
        reader
            .deserialize_tuple(length, visitor)
            .map_err(|error| error.under(PathSegment::named(self.name)))
    }

    fn struct_variant<V: Visitor<'de>>(
        mut self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DocumentError> {
        let reader = self.reader("struct variant")?;
        reader
            .deserialize_struct("", fields, visitor)
            .map_err(|error| error.under(PathSegment::named(self.name)))
    }
}
