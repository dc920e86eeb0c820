//! Structures that are passed by value. Their bytes follow the layout that the compiler reported.

use super::arguments::{Passed, Tensors, bind_value};
use super::error::BindError;
use warpgauge_compile::{CType, Field, Param, StructLayout};
use warpgauge_contract::{FieldPath, StructureField};
use warpgauge_worker::protocol::Argument;

/// Binds the fields of a structure to its parameter.
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
            "the compiler did not report the layout of `{name}`: make it a named structure that can be used \
             outside of functions, in CUDA C++ source"
        )));
    };
    let mut bytes = vec![0; param.bytes as usize];
    let mut pointers = Vec::new();
    let mut taken: Vec<Field> = Vec::new();
    for StructureField { path, value } in fields {
        let field = placed(layout, path).map_err(|why| {
            misfit(why.unwrap_or_else(|| {
                format!("`{name}` has no field `{path}` that code outside the structure can access")
            }))
        })?;
        if field.is_array {
            let message = format!("field `{path}` is an array: give its elements as an array");
            return Err(misfit(message));
        }
        if matches!(field.ctype, CType::Aggregate(_)) {
            return Err(misfit(format!("field `{path}` is a structure: give its fields")));
        }
        let end = (field.offset as usize).checked_add(field.bytes as usize);
        let Some(place) = end.and_then(|end| bytes.get_mut(field.offset as usize..end)) else {
            return Err(misfit(format!("field `{path}` lies outside the structure")));
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
            "`{name}` has a field at byte {offset} that is not in `fields`: give all fields, including those of base classes"
        )));
    }
    Ok(match pointers.is_empty() {
        true => Argument::Scalar(bytes),
        false => Argument::Structure(bytes, pointers),
    })
}

/// Returns the location of a field. If there is no such field, the error contains `None` or a more
/// precise message.
fn placed(layout: &StructLayout, path: &str) -> Result<Field, Option<String>> {
    let find = |path: &str| layout.fields.iter().find(|field| field.path == path);
    let FieldPath { first, arrays } = FieldPath::new(path);
    let mut field = find(&first).ok_or(None)?.clone();
    for (array, element, index) in arrays {
        let (array, each) = (find(&array).ok_or(None)?, find(&element).ok_or(None)?.bytes);
        let count = u64::from(array.bytes / each.max(1));
        if index >= count {
            let name = &array.path;
            return Err(Some(format!(
                "array `{name}` has {count} elements, so `{path}` does not exist"
            )));
        }
        // An index below the number of elements refers to a byte within the structure.
        field.offset = field.offset.saturating_add((index as u32).saturating_mul(each));
    }
    path.clone_into(&mut field.path);
    Ok(field)
}

/// Returns the offset of the first gap between fields that alignment does not explain, or `None` if
/// there is no such gap.
fn left_out(mut fields: Vec<Field>, layout: &StructLayout, size: u32) -> Option<u32> {
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

/// Returns whether `next` is the offset `end` rounded up to an alignment of at most `most`.
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
    fn elements_of_arrays_are_found_by_the_first_one() {
        let field = |path: &str, offset, bytes, is_array| Field {
            path: path.to_owned(),
            offset,
            bytes,
            ctype: CType::F32,
            is_array,
        };
        // struct { int n; struct { float w[2][3]; int on; } layers[4]; }
        let fields = vec![
            field("n", 0, 4, false),
            field("layers", 4, 112, true),
            field("layers[0]", 4, 28, false),
            field("layers[0].w", 4, 24, true),
            field("layers[0].w[0]", 4, 12, true),
            field("layers[0].w[0][0]", 4, 4, false),
            field("layers[0].on", 28, 4, false),
        ];
        let layout = StructLayout { align: 4, fields };
        let at = |path: &str| placed(&layout, path).map(|field| (field.path, field.offset));
        assert_eq!(at("n"), Ok(("n".to_owned(), 0)));
        let path = "layers[3].w[1][2]";
        assert_eq!(at(path), Ok((path.to_owned(), 4 + 3 * 28 + 12 + 2 * 4)));
        assert_eq!(at("layers[2].on"), Ok(("layers[2].on".to_owned(), 28 + 2 * 28)));
        let beyond = at("layers[0].w[0][3]").unwrap_err().unwrap();
        assert!(beyond.contains("`layers[0].w[0]` has 3 elements"), "{beyond}");
        assert!(at("layers[4].on").unwrap_err().unwrap().contains("4 elements"));
        assert_eq!(at("m"), Err(None));
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
            let made = made.collect();
            let found = left_out(made, &layout(align), size);
            assert_eq!(found, expected, "{fields:?}");
        }
    }
}
