//! Guesses what arrays of pointers point to.

use serde_json::{Value, json};

use crate::infer::body::{Body, Known, Use};
use crate::infer::lexer::closing;

/// Default number of pointers of an array whose accesses do not determine it.
pub(crate) const SOME: u64 = 4;

/// Maximum number of pointers of an array.
const MOST: u64 = 4096;

/// An array of pointers and the tensor that it points into, as arguments with their reasons.
pub(super) struct Array {
    pub argument: (Value, String),
    pub tensor: (Value, String),
}

/// Returns the type that a pointer to pointers points to, such as `const float*` for `const float*
/// const*`. Returns `None` for other types.
pub(super) fn entry_of(c_type: &str) -> Option<&str> {
    let entry = c_type.strip_suffix('*')?.trim_end_matches(" const").trim_end();
    let pointee = entry.strip_suffix('*')?;
    (!pointee.contains('*')).then_some(entry)
}

/// Returns the index expressions of each access `name[first][second]`; the second may be missing.
fn indexes<'a>(
    body: &'a Body<'_>,
    name: &'a str,
) -> impl Iterator<Item = (std::ops::Range<usize>, Option<std::ops::Range<usize>>)> {
    let opened = |at: usize| {
        let close = (body.tokens.get(at) == Some(&"[")).then(|| closing(body.tokens, at))??;
        Some((at + 1..close, close))
    };
    let places = (0..body.tokens.len()).filter(move |at| body.tokens[*at] == name);
    places.filter_map(move |at| {
        let (first, close) = opened(at + 1)?;
        Some((first, opened(close + 1).map(|(second, _)| second)))
    })
}

/// Returns the number of pointers that the kernel reads, if its code determines it.
pub(super) fn count(body: &Body<'_>, name: &str, known: &Known<'_>) -> Option<u64> {
    let mut uppers = indexes(body, name).map(|(first, _)| body.upper(first, known));
    let most =
        uppers.try_fold(0, |most: u64, upper| Some(most.max(upper?.value.saturating_add(1))))?;
    (1..=MOST).contains(&most).then_some(most)
}

/// Returns how the kernel uses the tensors that an array of pointers points to.
pub(super) fn used(body: &Body<'_>, name: &str, bytes: u64, known: &Known<'_>) -> Use {
    let used = body.used(name, bytes, known);
    let mut direct = Some(0);
    for (_, second) in indexes(body, name) {
        let Some(second) = second else { continue };
        let reach = body.upper(second, known).map(|upper| upper.value.saturating_add(1));
        direct = direct.zip(reach).map(|(direct, reach)| direct.max(reach));
    }
    let elements = used.elements.zip(direct).map(|(through, direct)| through.max(direct));
    Use { elements, ..used }
}

/// Returns the arguments for an array of `count` pointers and for the tensor that they point into.
/// The given tensor describes the elements of one pointer.
pub(super) fn array(
    name: &str,
    count: Option<u64>,
    (mut tensor, reason): (Value, String),
    taken: &[String],
) -> Array {
    let mut data = format!("{name}_data");
    while taken.contains(&data) {
        data.push('_');
    }
    let elements = tensor["tensor_spec"]["shape"][0].as_u64().unwrap_or(1);
    let pointers = count.unwrap_or(SOME);
    tensor["name"] = json!(data);
    tensor["tensor_spec"]["shape"] = json!([pointers, elements]);
    let entries = json!([{"tensor": data, "step": elements, "count": pointers}]);
    let how = match count {
        Some(_) => "as far as its indices reach",
        None => "since its indices do not determine the number",
    };
    Array {
        argument: (
            json!({"name": name, "type": "pointers", "pointers": entries}),
            format!("{pointers} pointers, {how}, to the rows of {data}"),
        ),
        tensor: (tensor, format!("the data that {name} points to, each row: {reason}")),
    }
}
