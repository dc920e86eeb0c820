//! Guesses the tensors of textures and surfaces from the calls that read and write them.

use serde_json::{Value, json};

use crate::infer::kinds::element;
use crate::infer::lexer::closing;
use crate::infer::names;

/// Functions that read or write textures and surfaces, with the number of dimensions of the tensor
/// and whether its slices are layers.
const READS: [(&str, usize, bool); 9] = [
    ("tex1Dfetch", 1, false),
    ("tex1D", 1, false),
    ("tex2D", 2, false),
    ("tex3D", 3, false),
    ("tex2DLayered", 3, true),
    ("surf1Dread", 1, false),
    ("surf2Dread", 2, false),
    ("surf3Dread", 3, false),
    ("surf2DLayeredread", 3, true),
];
const WRITES: [(&str, usize, bool); 4] = [
    ("surf1Dwrite", 1, false),
    ("surf2Dwrite", 2, false),
    ("surf3Dwrite", 3, false),
    ("surf2DLayeredwrite", 3, true),
];

/// Default extents, by the number of dimensions, if no parameter gives them.
const EXTENTS: [u64; 3] = [65_536, 256, 64];

/// Names of parameters that are extents, from the last dimension to the first.
const NAMES: [&[&str]; 3] = [
    &["width", "w", "cols", "nx", "sizex", "imagew", "imagewidth", "dimx"],
    &["height", "h", "rows", "ny", "sizey", "imageh", "imageheight", "dimy"],
    &["depth", "d", "layers", "nz", "sizez", "slices", "dimz"],
];

/// A parameter that is a texture or a surface object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Object {
    is_surface: bool,
    dims: usize,
    layered: bool,
    /// Whether `tex1D` reads the object.
    array: bool,
    dtype: &'static str,
    channels: u64,
    read: bool,
    written: bool,
}

/// Derives the object `name` from the calls in a body.
///
/// # Errors
/// Returns a message with a remedy if no call determines its dimensions, or if the texels have a
/// type that no texture supports.
pub(super) fn object(tokens: &[&str], name: &str, is_surface: bool) -> Result<Object, String> {
    let what = if is_surface { "surface" } else { "texture" };
    let by_hand = format!("write the contract by hand, with an argument of type `{what}`");
    let mut found: Option<Object> = None;
    for at in 0..tokens.len() {
        let Some((call, is_write)) = call(tokens[at]) else { continue };
        let Some(arguments) = arguments(tokens, at + 1) else { continue };
        // The object is the first argument, or the second after a value or its address.
        let position = arguments.list.iter().position(|one| *one == [name]);
        if position.is_none_or(|position| position > 1) {
            continue;
        }
        let value = arguments.list.first().filter(|_| position == Some(1)).copied();
        let typed = arguments.template.map(|text| text.join(" "));
        let typed = typed.or_else(|| value.and_then(|value| type_of(tokens, value)));
        let element = typed.as_deref().map(element);
        if element == Some(None) {
            let typed = typed.unwrap_or_default();
            return Err(format!("`{name}` has texels of type `{typed}`: {by_hand}"));
        }
        let (dtype, channels) = element.flatten().unwrap_or(("float32", 1));
        let (function, dims, layered) = call;
        let known = found.get_or_insert(Object {
            is_surface,
            dims,
            layered,
            array: false,
            dtype,
            channels,
            read: false,
            written: false,
        });
        if typed.is_some() {
            (known.dtype, known.channels) = (dtype, channels);
        }
        known.array |= function == "tex1D";
        known.read |= !is_write;
        known.written |= is_write;
    }
    let found = found.ok_or_else(|| {
        format!("parameter `{name}` is a {what}, whose number of dimensions the code does not show: {by_hand}")
    })?;
    let has_format = !found.dtype.contains("64") && !matches!(found.dtype, "bool" | "bfloat16");
    if !has_format || !matches!(found.channels, 1 | 2 | 4) {
        let Object { dtype, channels, .. } = found;
        return Err(format!(
            "`{name}` has texels of {channels} × {dtype}, which a {what} does not support: {by_hand}"
        ));
    }
    Ok(found)
}

/// Returns the function with this name, and whether it writes.
fn call(name: &str) -> Option<((&'static str, usize, bool), bool)> {
    let read = READS.iter().find(|(read, ..)| *read == name);
    let write = WRITES.iter().find(|(write, ..)| *write == name);
    read.map(|call| (*call, false)).or_else(|| write.map(|call| (*call, true)))
}

/// Arguments of a call.
struct Arguments<'t, 'a> {
    template: Option<&'t [&'a str]>,
    list: Vec<&'t [&'a str]>,
}

/// Returns the arguments of the call whose name ends before token `at`.
fn arguments<'t, 'a>(tokens: &'t [&'a str], at: usize) -> Option<Arguments<'t, 'a>> {
    let mut open = at;
    let mut template = None;
    if tokens.get(at) == Some(&"<") {
        let end = at + tokens.get(at..)?.iter().position(|token| *token == ">")?;
        template = Some(&tokens[at + 1..end]);
        open = end + 1;
    }
    if tokens.get(open) != Some(&"(") {
        return None;
    }
    let close = closing(tokens, open)?;
    let (mut list, mut depth, mut start) = (Vec::new(), 0_i32, open + 1);
    for index in open + 1..=close {
        match tokens[index] {
            "," if depth == 0 => {
                list.push(&tokens[start..index]);
                start = index + 1;
            }
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
    }
    list.push(&tokens[start..close]);
    Some(Arguments { template, list })
}

/// Returns the type of a value, `v`, `&v` or `make_float4(…)`, if it is declared in the body.
fn type_of(tokens: &[&str], value: &[&str]) -> Option<String> {
    let value = value.strip_prefix(&["&"]).unwrap_or(value);
    if let [make, "(", ..] = value {
        return make.strip_prefix("make_").map(str::to_owned);
    }
    let [name] = value else { return None };
    let declared = tokens.windows(3).find(|three| {
        three[1] == *name && matches!(three[2], "=" | ";" | ",") && element(three[0]).is_some()
    });
    // For a type of two words, the second word is next to the name.
    declared.map(|three| match precedes(tokens, name, "unsigned") {
        true => format!("unsigned {}", three[0]),
        false => three[0].to_owned(),
    })
}

/// Returns whether a word appears two tokens before the name.
fn precedes(tokens: &[&str], name: &str, word: &str) -> bool {
    tokens.windows(3).any(|three| three[0] == word && three[2] == name)
}

impl Object {
    /// Returns two contract arguments, each with its reason: the texture or surface object, and the
    /// tensor that it accesses. `integers` contains the values of the integer parameters.
    pub(super) fn arguments(
        &self,
        (name, seed): (&str, usize),
        integers: &[(&str, u64)],
        taken: &[String],
    ) -> [(Value, String); 2] {
        let mut data = format!("{name}_data");
        while taken.contains(&data) {
            data.push('_');
        }
        let extent = |dimension: usize| {
            let named = integers
                .iter()
                .find(|(name, _)| NAMES[dimension].contains(&names::plain(name).as_str()));
            named.map_or(EXTENTS[self.dims - 1], |(_, value)| *value)
        };
        let mut shape = (0..self.dims).rev().map(extent).collect::<Vec<_>>();
        if self.channels > 1 {
            shape.push(self.channels);
        }
        let what = if self.is_surface { "surface" } else { "texture" };
        let mut object = json!({"tensor": data});
        let flags = [("layered", self.layered), ("array", self.array)];
        flags
            .iter()
            .filter(|(_, is_set)| *is_set)
            .for_each(|(flag, _)| object[*flag] = json!(true));
        if self.channels > 1 {
            object["channels"] = json!(self.channels);
        }
        let mut argument = json!({"name": name, "type": what});
        argument[what] = object;
        let role = match (self.read, self.written) {
            (_, false) => "input",
            (false, true) => "output",
            (true, true) => "inout",
        };
        let mut spec = json!({"shape": shape, "dtype": self.dtype});
        if role != "output" {
            spec["init"] = match self.dtype.starts_with("float") {
                true => json!({"kind": "uniform", "low": 0.0, "high": 1.0, "seed": seed}),
                false => json!({"kind": "randint", "low": 0, "high": 100, "seed": seed}),
            };
        }
        let tensor = json!({"name": data, "type": "tensor", "role": role, "tensor_spec": spec});
        let how = if self.is_surface {
            ""
        } else {
            ", without filtering and with unnormalised coordinates"
        };
        let reason = format!("a {what} over `{data}`{how}");
        [
            (argument, reason),
            (tensor, format!("{role}, the texels of `{name}`, as the calls access them")),
        ]
    }
}
