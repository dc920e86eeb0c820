//! Arrays of pointers to tensors. The main type is [`PointerEntry`].

use serde_json::{Map, Value};

use super::values::{ValueError, Values, elements_of};
use crate::ArgKind;
use crate::StepArgument;
use crate::error::quoted;
use warpgauge_model::FailureCode;

/// Maximum number of pointers in one array.
pub const MAX_POINTERS: usize = 65_536;

/// A pointer of an array: the index of a tensor among the arguments, and the offset from its start in elements. `None`
/// is a null pointer.
pub type PointerEntry = Option<(usize, u64)>;

/// Description of the allowed entries of an array of pointers, for messages.
const ENTRIES: &str = "the name of a tensor, an element of one such as `a + 64`, null, or an object with `tensor`, `step` \
                       and `count`";

impl Values<'_> {
    /// Returns the array of these entries, for the argument with this index.
    pub(super) fn pointers(
        &self,
        index: usize,
        entries: &[Value],
    ) -> Result<StepArgument, ValueError> {
        if entries.is_empty() {
            let message = format!("an array needs 1 to {MAX_POINTERS} `pointers`: {ENTRIES}");
            return Err((FailureCode::MissingField, message));
        }
        let mut made = Vec::with_capacity(entries.len().min(MAX_POINTERS));
        for (at, entry) in entries.iter().enumerate() {
            let located = |(code, message): ValueError| (code, format!("entry {at}: {message}"));
            self.add(entry, &mut made).map_err(located)?;
        }
        Ok(StepArgument::Pointers(index, made))
    }

    fn add(&self, entry: &Value, made: &mut Vec<PointerEntry>) -> Result<(), ValueError> {
        let (first, step, count) = match entry {
            Value::Null => (None, 0, 1),
            Value::String(text) => (Some(self.pointer(text.trim())?), 0, 1),
            Value::Object(fields) => self.strided(fields)?,
            _ => return Err((FailureCode::WrongType, format!("must be {ENTRIES}"))),
        };
        if count > (MAX_POINTERS - made.len()) as u64 {
            let message = format!("more than {MAX_POINTERS} pointers in one array");
            return Err((FailureCode::TooLarge, message));
        }
        let pointer = |at: u64| first.map(|(tensor, element)| (tensor, element + at * step));
        made.extend((0..count).map(pointer));
        Ok(())
    }

    /// Returns the tensor and the element that a text names. Earlier `swap` steps change the tensor
    /// that a name refers to.
    fn pointer(&self, text: &str) -> Result<(usize, u64), ValueError> {
        let named = (self.index_of)(text).map(|index| (index, 0));
        let found = match named {
            Some(found) => Some(found),
            None => self.element(text)?,
        };
        let Some((index, element)) = found else {
            let message = format!("no argument is named `{}`; an entry is {ENTRIES}", quoted(text));
            return Err((FailureCode::UnknownTensor, message));
        };
        let arg = &self.args[index];
        if arg.kind != ArgKind::Tensor || arg.is_meta {
            let message = format!("`{}` is not a tensor in device memory", quoted(&arg.name));
            return Err((FailureCode::WrongType, message));
        }
        if let Some(symbol) = &arg.symbol {
            let message = format!(
                "`{}` is held by the variable `{}` while the kernel runs: leave its `symbol` out",
                quoted(&arg.name),
                quoted(symbol)
            );
            return Err((FailureCode::ConflictingFields, message));
        }
        Ok((self.meant[index], element))
    }

    /// Returns the first pointer, the distance between pointers in elements, and the number of pointers of an entry
    /// with `tensor`, `step` and `count`.
    fn strided(&self, fields: &Map<String, Value>) -> Result<(PointerEntry, u64, u64), ValueError> {
        let unknown =
            fields.keys().find(|name| !["tensor", "step", "count"].contains(&name.as_str()));
        let tensor = fields.get("tensor").and_then(Value::as_str);
        let (Some(tensor), None) = (tensor, unknown) else {
            let message = "an object has the fields `tensor`, the name of a tensor; `step`, the elements from one pointer to \
                           the next; and `count`, the number of pointers"
                .to_owned();
            return Err((FailureCode::WrongField, message));
        };
        let (index, first) = self.pointer(tensor.trim())?;
        let elements = self.args[index].tensor_spec.as_ref().map_or(0, elements_of);
        let step = self.extent(fields, "step")?.ok_or_else(|| {
            let message = "`step` is missing: the elements from one pointer to the next".to_owned();
            (FailureCode::MissingField, message)
        })?;
        let left = elements.saturating_sub(first);
        let count = match self.extent(fields, "count")? {
            Some(count) => count,
            None => left.checked_div(step).unwrap_or(0),
        };
        let last = count.checked_sub(1).and_then(|last| last.checked_mul(step));
        if step == 0 || last.is_none_or(|last| last >= left.max(1)) {
            let message = format!(
                "{count} pointers, each {step} elements after the one before, do not fit into the {left} elements of `{}`",
                quoted(tensor)
            );
            return Err((FailureCode::OutOfRange, message));
        }
        Ok((Some((index, first)), step, count))
    }

    /// Returns the value of a field that is a number or an expression.
    fn extent(&self, fields: &Map<String, Value>, name: &str) -> Result<Option<u64>, ValueError> {
        let Some(value) = fields.get(name) else { return Ok(None) };
        let wrong =
            |message: String| (FailureCode::InvalidExpression, format!("`{name}` {message}"));
        let number = match value {
            Value::Number(number) => number
                .as_i64()
                .map(i128::from)
                .ok_or_else(|| wrong("is not a 64-bit integer".to_owned()))?,
            Value::String(text) => {
                self.number(text).map_err(|error| wrong(format!("is wrong: {error}")))?
            }
            _ => return Err(wrong("must be a number or an expression".to_owned())),
        };
        let fits = u64::try_from(number).ok().map(Some);
        fits.ok_or_else(|| wrong(format!("is {number}, and must be 0 or more")))
    }
}
