//! Structures that are passed by value: their bytes, by the layout that the compiler gave.

use super::arguments::{Passed, Tensors, bind_value};
use super::error::BindError;
use warpgauge_compile::{CType, Field, Param, StructLayout};
use warpgauge_contract::StructureField;
use warpgauge_worker::protocol::Argument;

/// Binds the fields of a structure to the parameter that it is passed as.
pub(super) fn bind(
    passed: &Passed<'_>,
    fields: &[StructureField],
    param: &Param,
    tensors: &Tensors<'_>,
) -> Result<Argument, BindError> {
    let misfit = |why: String| passed.misfit(param, &why);
    let CType::Aggregate(name) = &param.ctype else {
        return Err(misfit("the parameter is not a structure".to_owned()));
    };
    let Some(layout) = &param.layout else {
        return Err(misfit(format!(
            "the compiler did not report where the fields of `{name}` lie: make it a named structure that can be used \
             outside of functions, in CUDA C++ source"
        )));
    };
    let mut bytes = vec![0; param.bytes as usize];
    let mut pointers = Vec::new();
    let mut taken: Vec<&Field> = Vec::new();
    for StructureField { path, value } in fields {
        let Some(field) = layout.fields.iter().find(|field| field.path == *path) else {
            return Err(misfit(format!(
                "`{name}` has no field `{path}` that code outside can use"
            )));
        };
        if field.is_array {
            let message = format!("field `{path}` is an array: give its elements as an array");
            return Err(misfit(message));
        }
        if matches!(field.ctype, CType::Aggregate(_)) {
            return Err(misfit(format!("field `{path}` is a structure: give its fields")));
        }
        let end = (field.offset as usize).checked_add(field.bytes as usize);
        let Some(place) = end.and_then(|end| bytes.get_mut(field.offset as usize..end)) else {
            return Err(misfit(format!("field `{path}` lies outside of it")));
        };
        let leaf = Param {
            name: Some(format!("{}.{path}", passed.name())),
            ctype: field.ctype.clone(),
            bytes: field.bytes,
            offset: field.offset,
            layout: None,
        };
        let given = Passed::new(passed.index(), path, value, tensors.args);
        match bind_value(&given, &leaf, tensors)? {
            Argument::Scalar(value) if value.len() == place.len() => place.copy_from_slice(&value),
            Argument::Scalar(_) => {
                return Err(misfit(format!("field `{path}` has {} bytes", field.bytes)));
            }
            pointer => pointers.push((field.offset, pointer)),
        }
        taken.push(field);
    }
    if let Some(offset) = left_out(taken, layout, param.bytes) {
        return Err(misfit(format!(
            "`{name}` has a field at byte {offset} that is not among `fields`: give all fields, those of base classes too"
        )));
    }
    Ok(match pointers.is_empty() {
        true => Argument::Scalar(bytes),
        false => Argument::Structure(bytes, pointers),
    })
}

/// Returns the offset of the first gap between fields that alignment does not explain.
fn left_out(mut fields: Vec<&Field>, layout: &StructLayout, size: u32) -> Option<u32> {
    fields.sort_by_key(|field| field.offset);
    let mut end = 0;
    for field in fields {
        if field.offset > end && !is_padding(end, field.offset, layout.align) {
            return Some(end);
        }
        end = end.max(field.offset + field.bytes);
    }
    (end < size && !is_padding(end, size, layout.align)).then_some(end)
}

/// Returns whether `next` is `end`, rounded up to an alignment of at most `most`.
fn is_padding(end: u32, next: u32, most: u32) -> bool {
    let alignments = (0..31).map(|power| 1u32 << power).take_while(|align| *align <= most);
    alignments.into_iter().any(|align| end.checked_next_multiple_of(align) == Some(next))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(offset: u32, bytes: u32) -> Field {
        let path = format!("at{offset}");
        Field { path, offset, bytes, ctype: CType::I32, is_array: false }
    }

    #[test]
    fn only_gaps_beyond_alignment_are_fields_that_were_left_out() {
        let layout = |align| StructLayout { align, fields: Vec::new() };
        for (fields, align, size, expected) in [
            (vec![(0, 4), (8, 8)], 8, 16, None),
            (vec![(0, 4), (16, 8)], 8, 24, Some(4)),
            (vec![(8, 8)], 8, 16, Some(0)),
            (vec![(12, 4)], 4, 16, Some(0)),
            (vec![(0, 4)], 4, 8, Some(4)),
            (vec![(0, 4)], 16, 16, None),
            (vec![(8, 8), (0, 8), (0, 4)], 8, 16, None),
        ] {
            let made = fields.iter().map(|(offset, bytes)| field(*offset, *bytes));
            let made = made.collect::<Vec<_>>();
            let found = left_out(made.iter().collect(), &layout(align), size);
            assert_eq!(found, expected, "{fields:?}");
        }
    }
}
