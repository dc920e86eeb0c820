//! Builds a tree from YAML, whose parser reports the location of each value.

use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer};
use serde_saphyr::{Error, Location, NonFiniteFloatPolicy, Options, Spanned};

use crate::document::{Document, LineColumn, Scalar, Value};
use crate::parse::{Builder, Unparsed, with_path};

/// The deepest nesting of YAML for which the stack of the parser's thread is large enough.
pub const MAX_YAML_DEPTH: usize = 64;

/// The stack size of the thread that parses, with a margin. 64 levels use about 3 MB in unoptimised
/// code.
const STACK_BYTES: usize = 16 << 20;

impl<'de> Document<'de> {
    /// Parses YAML text of at most [`MAX_YAML_DEPTH`] levels, a limit that the options must set.
    /// Non-finite numbers are accepted regardless of the options.
    ///
    /// # Errors
    /// The parser's error, with the path to the value.
    ///
    /// # Panics
    /// The system cannot start a thread.
    pub fn parse_yaml(
        text: &'de str,
        options: impl FnOnce() -> Options + Send,
    ) -> Result<Self, Box<Unparsed<Error>>> {
        // Each level takes about 20 nested calls of the parser, too many for the caller's stack.
        let parse = || {
            let mut options = options();
            // Text may look like an excessively large number, e.g. the hash `7e12345`.
            options.non_finite_float_policy = NonFiniteFloatPolicy::PassThrough;
            let parsed = with_path(u64::MAX, || {
                serde_saphyr::with_deserializer_from_str_with_options(text, options, |parser| {
                    Placed::deserialize(parser)
                })
            });
            parsed.map(|parsed| {
                let mut document = Document::from(parsed);
                add_texts(&mut document, text);
                document
            })
        };
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
            let running = thread.spawn_scoped(scope, parse).expect("the system starts threads");
            running.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }
}

/// A value with its location.
struct Placed<'de>(Spanned<Unplaced<'de>>);

struct Unplaced<'de>(Value<'de>);

impl<'de> Deserialize<'de> for Placed<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Spanned::deserialize(deserializer).map(Self)
    }
}

impl<'de> Deserialize<'de> for Unplaced<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Builder::<Placed<'de>>(PhantomData)).map(Self)
    }
}

impl<'de> From<Placed<'de>> for Document<'de> {
    fn from(Placed(spanned): Placed<'de>) -> Self {
        let Unplaced(value) = spanned.value;
        let value = match value {
            Value::Null
            | Value::Bool(_)
            | Value::Unsigned(_)
            | Value::Signed(_)
            | Value::Float(_) => {
                // An alias has the text of its anchor.
                let span = bytes_of(&spanned.defined);
                Value::Scalar(Box::new(Scalar { value, text: "", span }))
            }
            other => other,
        };
        Self { value, place: place_of(&spanned.referenced) }
    }
}

fn place_of(location: &Location) -> Option<LineColumn> {
    let number = |value| u32::try_from(value).unwrap_or(u32::MAX);
    let place = LineColumn { line: number(location.line()), column: number(location.column()) };
    (place.line > 0).then_some(place)
}

fn bytes_of(location: &Location) -> (usize, usize) {
    let span = location.span();
    let number = |value: Option<u64>| value.and_then(|it| usize::try_from(it).ok()).unwrap_or(0);
    let start = number(span.byte_offset());
    (start, start.saturating_add(number(span.byte_len())))
}

/// Adds the text of each scalar that is not text, because a type may request it.
fn add_texts<'de>(node: &mut Document<'de>, text: &'de str) {
    match &mut node.value {
        Value::Scalar(scalar) => {
            scalar.text = text.get(scalar.span.0..scalar.span.1).unwrap_or("").trim();
        }
        Value::List(list) => list.iter_mut().for_each(|element| add_texts(element, text)),
        Value::Map(map) => {
            for (key, value) in map {
                add_texts(key, text);
                add_texts(value, text);
            }
        }
        _ => {}
    }
}
