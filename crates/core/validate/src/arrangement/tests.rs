use super::*;

fn bytes<const N: usize>(values: [i32; N]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn values(bytes: &[u8]) -> Vec<i32> {
    let words = bytes.chunks_exact(4);
    words.map(|word| i32::from_le_bytes(word.try_into().unwrap())).collect()
}

fn views<'a>(all: &'a mut [Vec<u8>], shape: &'a [u64]) -> Vec<Rearranged<'a>> {
    all.iter_mut().map(|bytes| Rearranged { dtype: Dtype::Int32, shape, bytes }).collect()
}

/// Returns outputs of 32-bit integers, cleared and in the order of the expected ones, with those cleared.
fn arranged(
    how: &Arrangement,
    read: &[(usize, Vec<u8>)],
    shape: &[u64],
    (own, expected): (&[Vec<u8>], &[Vec<u8>]),
) -> Vec<(Vec<i32>, Vec<i32>)> {
    let extent = |bytes: &[u8]| vec![bytes.len() as u64 / 4];
    let shapes: Vec<_> = read.iter().map(|(_, bytes)| extent(bytes)).collect();
    let contents = |buffer: usize| {
        let at = read.iter().position(|(index, _)| *index == buffer)?;
        Some(Content { dtype: Dtype::Int32, shape: &shapes[at], bytes: &read[at].1 })
    };
    let (mut own, mut expected) = (own.to_vec(), expected.to_vec());
    how.clear(&contents, &mut views(&mut expected, shape));
    let wanted: Vec<&[u8]> = expected.iter().map(Vec::as_slice).collect();
    let mut group = views(&mut own, shape);
    how.clear(&contents, &mut group);
    how.arrange(&contents, &mut group, &wanted);
    own.iter().zip(&expected).map(|(own, other)| (values(own), values(other))).collect()
}

#[test]
fn rows_in_any_order_come_into_the_expected_one_with_those_beside_them() {
    let how = Arrangement { along: vec![1], order: RowOrder::Any, ..Arrangement::NONE };
    let own = [bytes([3, 1, 2, 1]), bytes([30, 11, 20, 10])];
    let expected = [bytes([1, 2, 1, 3]), bytes([10, 20, 11, 30])];
    let all = arranged(&how, &[], &[4], (&own, &expected));
    assert!(all.iter().all(|(own, expected)| own == expected), "{all:?}");
    // A value beside another key stays wrong.
    let own = [bytes([3, 1, 2, 1]), bytes([20, 11, 30, 10])];
    let all = arranged(&how, &[], &[4], (&own, &expected));
    assert!(all[0].0 == all[0].1 && all[1].0 != all[1].1, "{all:?}");
    // So does a value that is there twice.
    let own = [bytes([3, 1, 2, 2]), bytes([30, 11, 20, 10])];
    let all = arranged(&how, &[], &[4], (&own, &expected));
    assert!(all[0].0 != all[0].1, "{all:?}");
}

#[test]
fn rows_of_several_elements_move_as_a_whole() {
    let how = Arrangement { order: RowOrder::Any, ..Arrangement::NONE };
    let expected = [bytes([1, 2, 3, 4, 5, 6])];
    let all = arranged(&how, &[], &[3, 2], (&[bytes([5, 6, 1, 2, 3, 4])], &expected));
    assert_eq!(all[0].0, all[0].1);
    let all = arranged(&how, &[], &[3, 2], (&[bytes([6, 5, 1, 2, 3, 4])], &expected));
    assert_ne!(all[0].0, all[0].1);
}

#[test]
fn only_rows_up_to_a_number_count() {
    let read = [(7, bytes([2]))];
    let up_to = Some(RowCount::Buffer(7));
    for order in [RowOrder::Given, RowOrder::Any] {
        let how = Arrangement { order, up_to, ..Arrangement::NONE };
        let all = arranged(&how, &read, &[4], (&[bytes([1, 2, 9, 8])], &[bytes([1, 2, 5, 5])]));
        assert_eq!(all[0], (vec![1, 2, 0, 0], vec![1, 2, 0, 0]), "{order:?}");
    }
    let how = Arrangement { up_to: Some(RowCount::Rows(9)), ..Arrangement::NONE };
    let all = arranged(&how, &read, &[2], (&[bytes([1, 2])], &[bytes([1, 3])]));
    assert_eq!(all[0], (vec![1, 2], vec![1, 3]));
    // A number that cannot be is as many as there are, or none.
    for (count, left) in [(-3, 0), (99, 1)] {
        let how = Arrangement { up_to, ..Arrangement::NONE };
        let all = arranged(&how, &[(7, bytes([count]))], &[1], (&[bytes([1])], &[bytes([1])]));
        assert_eq!(all[0].0, [left]);
    }
}

#[test]
fn order_is_free_within_segments_and_among_equal_keys_only() {
    let segments = Arrangement { order: RowOrder::Segments(7), ..Arrangement::NONE };
    let equal = Arrangement { order: RowOrder::Equal(7), ..Arrangement::NONE };
    let (offsets, keys) = ([(7, bytes([0, 2, 2, 5]))], [(7, bytes([4, 4, 6, 6, 6]))]);
    let expected = [bytes([1, 2, 3, 4, 5])];
    for (how, read) in [(&segments, &offsets), (&equal, &keys)] {
        let all = arranged(how, read, &[5], (&[bytes([2, 1, 5, 3, 4])], &expected));
        assert_eq!(all[0].0, all[0].1, "{how:?}");
        let all = arranged(how, read, &[5], (&[bytes([3, 1, 5, 2, 4])], &expected));
        assert_ne!(all[0].0, all[0].1, "{how:?}");
    }
    // Offsets that cannot be do no harm.
    let read = [(7, bytes([-5, 99, 3, 1]))];
    let all = arranged(&segments, &read, &[5], (&[bytes([5, 4, 3, 2, 1])], &expected));
    assert_eq!(all[0].0, all[0].1);
    let read = [(7, bytes([0, 3, 1, 5]))];
    let all = arranged(&segments, &read, &[5], (&[bytes([9, 2, 3, 4, 5])], &expected));
    assert_ne!(all[0].0, all[0].1, "each row is in one segment");
}

#[test]
fn a_mask_and_empty_slots_hide_what_does_not_count() {
    let how = Arrangement { mask: Some(7), ..Arrangement::NONE };
    let read = [(7, bytes([1, 0, 3]))];
    let all = arranged(&how, &read, &[3], (&[bytes([1, 9, 3])], &[bytes([1, 2, 3])]));
    assert_eq!(all[0].0, all[0].1);
    let all = arranged(&how, &read, &[3], (&[bytes([1, 2, 4])], &[bytes([1, 2, 3])]));
    assert_ne!(all[0].0, all[0].1);
    // A hash table has the same content, wherever its entries are.
    let table = Arrangement {
        along: vec![1],
        order: RowOrder::Any,
        empty: Some(-1.0),
        ..Arrangement::NONE
    };
    let expected = [bytes([-1, 5, 6, -1]), bytes([7, 50, 60, 7])];
    let all =
        arranged(&table, &[], &[4], (&[bytes([6, -1, -1, 5]), bytes([60, 1, 2, 50])], &expected));
    assert!(all.iter().all(|(own, expected)| own == expected), "{all:?}");
    for own in [
        [bytes([6, -1, -1, 5]), bytes([50, 1, 2, 60])],
        [bytes([6, 5, -1, 5]), bytes([60, 50, 2, 50])],
        [bytes([-1, -1, -1, 5]), bytes([60, 1, 2, 50])],
    ] {
        let all = arranged(&table, &[], &[4], (&own, &expected));
        assert!(all.iter().any(|(own, expected)| own != expected), "{all:?}");
    }
}

#[test]
fn indices_are_as_right_as_what_they_lead_to() {
    let how = Arrangement { through: Some(7), ..Arrangement::NONE };
    let read = [(7, bytes([5, 3, 5, 9]))];
    let expected = [bytes([1, 0, 2, 3])];
    let all = arranged(&how, &read, &[4], (&[bytes([1, 2, 0, 3])], &expected));
    assert_eq!(all[0].0, all[0].1);
    // An index that is there twice, one of another value, and one that leads nowhere.
    for own in [bytes([1, 0, 0, 3]), bytes([1, 2, 3, 0]), bytes([1, 4, 2, 3]), bytes([1, -1, 2, 3])]
    {
        let all = arranged(&how, &read, &[4], (&[own], &expected));
        assert_ne!(all[0].0, all[0].1);
    }
}

#[test]
fn keys_order_as_their_numbers_do() {
    let floats = [f64::NEG_INFINITY, -1.5, -0.0, 0.0, 1e-300, 2.0, f64::INFINITY, f64::NAN];
    let bytes: Vec<u8> = floats.iter().flat_map(|value| value.to_le_bytes()).collect();
    let keys = sort_keys(Dtype::Float64, &bytes);
    assert!(keys.is_sorted() && keys[2] == keys[3], "{keys:?}");
    let large = [0, 1, u64::MAX / 2, u64::MAX / 2 + 1, u64::MAX];
    let bytes: Vec<u8> = large.iter().flat_map(|value| value.to_le_bytes()).collect();
    assert!(sort_keys(Dtype::Uint64, &bytes).is_sorted_by(|a, b| a < b));
}
