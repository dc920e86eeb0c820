use super::*;

fn pair(reference: usize, candidate: usize) -> Pair {
    let example = include_str!("../../../../../../../openapi/examples/comparison.json");
    let comparison = serde_json::from_str(example).expect("the example is a comparison");
    Pair { reference, candidate, outcome: Ok(comparison) }
}

#[test]
fn what_was_not_compared_has_no_rank() {
    // Candidate 2 was wrong, so it is in no pair. It must not rank first for lack of rivals.
    let pairs = [pair(0, 1), pair(0, 3), pair(1, 3)];
    let ranking = ranking(4, &pairs, 0.01).expect("valid pairs").expect("an order");
    let places: Vec<_> = ranking.candidates.iter().map(|one| (one.index, one.rank)).collect();
    assert_eq!(places, [(3, 1), (1, 2), (0, 3)]);
}

#[test]
fn without_pairs_there_is_no_order() {
    assert!(ranking(3, &[], 0.01).expect("valid pairs").is_none());
}

#[test]
fn counts_are_compared_where_both_are_known() {
    let counted = |pairs: &[(&str, u64)]| {
        pairs.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
    };
    let evaluated = |counts| Evaluated { prepared: None, counts };
    let reference = evaluated(Some(counted(&[
        ("warp_instructions", 10),
        ("barriers", 0),
        ("global_load_sectors", 4),
        ("launches", 1),
    ])));
    let candidate = evaluated(Some(counted(&[("warp_instructions", 15), ("barriers", 2)])));
    let found = counts(&reference, &candidate);
    let found: Vec<_> = found.iter().map(|one| (one.count.as_str(), one.ratio)).collect();
    assert_eq!(found, [("warp_instructions", Some(1.5)), ("barriers", None)]);
    assert!(counts(&reference, &evaluated(None)).is_empty());
}

#[test]
fn places_become_indices_of_all_kernels() {
    // Candidate 1 of the request has another runtime: the session's second kernel is candidate 2.
    let found = ranking(2, &[pair(0, 1)], 0.01).expect("valid pairs").expect("an order");
    let of_all = among_all(found, &[0, 2]);
    let indices: Vec<_> = of_all.candidates.iter().map(|one| one.index).collect();
    assert_eq!((indices, of_all.pairs[0].candidate), (vec![2, 0], 2));
}
