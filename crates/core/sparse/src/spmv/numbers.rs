//! Arrays of numbers in requests, as lists or bytes. The main type is [`Numbers`].

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The maximum number of elements for which memory is reserved before any are read.
const RESERVED: usize = 1 << 16;

/// An array of numbers: a list, or little-endian bytes, as `bin` in MessagePack or as base64 text.
/// Bytes are read many times faster.
#[derive(Debug, Clone, PartialEq)]
pub enum Numbers {
    Integers(Vec<i64>),
    /// A list in which at least one number is not an integer.
    Floats(Vec<f64>),
    /// The bytes of the elements.
    Bytes(Vec<u8>),
}

impl Default for Numbers {
    fn default() -> Self {
        Self::Integers(Vec::new())
    }
}

impl Numbers {
    /// Returns the numbers as floats. In the form of bytes, each number has `element_bytes` bytes:
    /// 4 or 8.
    pub(crate) fn floats(self, element_bytes: usize) -> Result<Vec<f64>, String> {
        match self {
            Self::Floats(list) => Ok(list),
            Self::Integers(list) => Ok(list.into_iter().map(|integer| integer as f64).collect()),
            Self::Bytes(bytes) if element_bytes == 8 => whole(&bytes, f64::from_le_bytes),
            Self::Bytes(bytes) => whole(&bytes, |it| f64::from(f32::from_le_bytes(it))),
        }
    }

    /// Returns the numbers as integers. In the form of bytes, each number has 4 bytes.
    pub(crate) fn integers(self) -> Result<Vec<i64>, String> {
        match self {
            Self::Integers(list) => Ok(list),
            Self::Floats(list) => {
                let whole = |number: f64| number.fract() == 0.0 && number.abs() < 9e15;
                match list.iter().position(|&number| !whole(number)) {
                    Some(at) => {
                        Err(format!("element {at} is {}, which is not an integer", list[at]))
                    }
                    None => Ok(list.into_iter().map(|number| number as i64).collect()),
                }
            }
            Self::Bytes(bytes) => whole(&bytes, |it| i64::from(i32::from_le_bytes(it))),
        }
    }
}

fn whole<T, const N: usize>(bytes: &[u8], of: impl Fn([u8; N]) -> T) -> Result<Vec<T>, String> {
    match bytes.as_chunks::<N>() {
        (elements, []) => Ok(elements.iter().map(|element| of(*element)).collect()),
        _ => Err(format!("{} bytes are not a whole number of elements of {N} bytes", bytes.len())),
    }
}

impl<'de> Deserialize<'de> for Numbers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Elements;

        impl<'de> Visitor<'de> for Elements {
            type Value = Numbers;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of numbers, or their bytes")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Numbers, A::Error> {
                let reserved = list.size_hint().unwrap_or(0).min(RESERVED);
                let mut integers = Vec::with_capacity(reserved);
                while let Some(number) = list.next_element()? {
                    match number {
                        Number::Integer(integer) => integers.push(integer),
                        Number::Float(float) => return floats(integers, float, list),
                    }
                }
                Ok(Numbers::Integers(integers))
            }

            fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<Numbers, E> {
                Ok(Numbers::Bytes(bytes.to_vec()))
            }

            fn visit_byte_buf<E: de::Error>(self, bytes: Vec<u8>) -> Result<Numbers, E> {
                Ok(Numbers::Bytes(bytes))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Numbers, E> {
                let decoded = STANDARD.decode(text);
                decoded.map(Numbers::Bytes).map_err(|error| {
                    E::custom(format_args!("a text must be base64 of the elements: {error}"))
                })
            }
        }

        /// Reads the rest of a list, starting with the first number that is not an integer.
        fn floats<'de, A: SeqAccess<'de>>(
            integers: Vec<i64>,
            first: f64,
            mut list: A,
        ) -> Result<Numbers, A::Error> {
            let mut floats: Vec<f64> = integers.into_iter().map(|it| it as f64).collect();
            floats.push(first);
            while let Some(number) = list.next_element()? {
                floats.push(match number {
                    Number::Integer(integer) => integer as f64,
                    Number::Float(float) => float,
                });
            }
            Ok(Numbers::Floats(floats))
        }

        deserializer.deserialize_any(Elements)
    }
}

/// A number in a list.
enum Number {
    Integer(i64),
    Float(f64),
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct One;

        impl Visitor<'_> for One {
            type Value = Number;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number")
            }

            fn visit_i64<E: de::Error>(self, integer: i64) -> Result<Number, E> {
                Ok(Number::Integer(integer))
            }

            fn visit_u64<E: de::Error>(self, integer: u64) -> Result<Number, E> {
                Ok(match i64::try_from(integer) {
                    Ok(integer) => Number::Integer(integer),
                    Err(_) => Number::Float(integer as f64),
                })
            }

            fn visit_f64<E: de::Error>(self, float: f64) -> Result<Number, E> {
                Ok(Number::Float(float))
            }
        }

        deserializer.deserialize_any(One)
    }
}

impl Serialize for Numbers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Integers(list) => list.serialize(serializer),
            Self::Floats(list) => list.serialize(serializer),
            Self::Bytes(bytes) if serializer.is_human_readable() => {
                serializer.serialize_str(&STANDARD.encode(bytes))
            }
            Self::Bytes(bytes) => serializer.serialize_bytes(bytes),
        }
    }
}

impl JsonSchema for Numbers {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Numbers".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        // Generated clients support only this form. The description of the field lists the others.
        json_schema!({"type": "array", "items": {"type": "number"}})
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_form_is_the_same_numbers() {
        let list: Numbers = serde_json::from_value(json!([1, -2.5, 3])).unwrap();
        assert_eq!(list, Numbers::Floats(vec![1.0, -2.5, 3.0]));
        let bytes: Vec<u8> = [1.0f32, -2.5, 3.0].iter().flat_map(|it| it.to_le_bytes()).collect();
        let packed = rmp_serde::to_vec(&Numbers::Bytes(bytes.clone())).unwrap();
        assert_eq!(packed[0], 0xc4, "bin");
        let packed: Numbers = rmp_serde::from_slice(&packed).unwrap();
        let text: Numbers = serde_json::from_value(json!(STANDARD.encode(&bytes))).unwrap();
        for form in [list, packed, text] {
            assert_eq!(form.floats(4).unwrap(), [1.0, -2.5, 3.0]);
        }
        let integers: Numbers = serde_json::from_value(json!([7, -1])).unwrap();
        assert_eq!(integers.clone().floats(4).unwrap(), [7.0, -1.0]);
        assert_eq!(integers.integers().unwrap(), [7, -1]);
        let whole: Numbers = serde_json::from_value(json!([7.0, 1.0])).unwrap();
        assert_eq!(whole.integers().unwrap(), [7, 1]);
    }

    #[test]
    fn what_is_no_array_of_numbers_is_refused() {
        for wrong in [json!(["a"]), json!([null]), json!([[1]]), json!("a!"), json!(1), json!({})] {
            assert!(serde_json::from_value::<Numbers>(wrong.clone()).is_err(), "{wrong}");
        }
        assert!(Numbers::Floats(vec![0.0, 0.5]).integers().unwrap_err().contains("element 1"));
        assert!(Numbers::Bytes(vec![0; 7]).integers().is_err());
        assert!(Numbers::Bytes(vec![0; 12]).floats(8).is_err());
    }
}
