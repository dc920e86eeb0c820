//! Finds the known word that a misspelt word probably means.

/// Returns the candidate nearest to `word`, if it is near enough.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .into_iter()
        .map(|candidate| (edit_distance(word, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= 1 + candidate.len() / 4)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Returns the Levenshtein distance of the words' first 64 characters. Longer words are never
/// misspelt keys.
pub fn edit_distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.chars().take(64).collect();
    let b: Vec<char> = b.chars().take(64).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edit_distance_counts_single_changes() {
        assert_eq!(edit_distance("port", "port"), 0);
        assert_eq!(edit_distance("prot", "port"), 2);
        assert_eq!(edit_distance("", "port"), 4);
        assert_eq!(edit_distance("ports", "port"), 1);
    }

    #[test]
    fn nearest_does_not_guess_wildly() {
        assert_eq!(nearest("hsot", ["host", "port"]), Some("host"));
        assert_eq!(nearest("colour", ["host", "port"]), None);
    }
}
