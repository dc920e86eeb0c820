//! Statements that name several rows at once, so that each costs one round trip and not one per row.

use std::fmt::Write as _;

/// Rows of one statement. Few different numbers make few statements to keep prepared.
const SIZES: [usize; 7] = [64, 32, 16, 8, 4, 2, 1];

/// One statement for each number of rows.
pub(super) struct Statements([String; SIZES.len()]);

impl Statements {
    /// `head`, so many times `row` with commas between, `tail`. Each `?` in `row` is the next value;
    /// `$1` to `$shared` come before them and are the same for all rows.
    pub(super) fn new(head: &str, shared: usize, row: &str, tail: &str) -> Self {
        Self(SIZES.map(|rows| {
            let mut sql = head.to_owned();
            let mut value = shared;
            for index in 0..rows {
                sql.push_str(if index == 0 { "" } else { ", " });
                for (part, text) in row.split('?').enumerate() {
                    if part > 0 {
                        value += 1;
                        // Writing to a string does not fail.
                        let _ = write!(sql, "${value}");
                    }
                    sql.push_str(text);
                }
            }
            sql.push_str(tail);
            sql
        }))
    }

    /// Pieces of `items`, each with the statement of its length.
    pub(super) fn exactly<'a, T>(
        &'static self,
        mut items: &'a [T],
    ) -> impl Iterator<Item = (&'static str, &'a [T])> {
        std::iter::from_fn(move || {
            let (size, sql) = SIZES.iter().zip(&self.0).find(|(size, _)| **size <= items.len())?;
            let (piece, rest) = items.split_at(*size);
            items = rest;
            Some((sql.as_str(), piece))
        })
    }

    /// Pieces of `items`, each with a statement that may have room for more, and how many it has room
    /// for: what is said twice must do no harm.
    pub(super) fn at_least<'a, T>(
        &'static self,
        items: &'a [T],
    ) -> impl Iterator<Item = (&'static str, &'a [T], usize)> {
        items.chunks(SIZES[0]).filter_map(move |piece| {
            let fits = SIZES.iter().zip(&self.0).rfind(|(size, _)| **size >= piece.len())?;
            Some((fits.1.as_str(), piece, *fits.0))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::*;

    static PAIRS: LazyLock<Statements> =
        LazyLock::new(|| Statements::new("VALUES ", 1, "(?, $1, ?)", " END"));

    #[test]
    fn every_item_is_in_one_piece_with_a_statement_of_its_length() {
        for count in [0, 1, 3, 64, 100, 129] {
            let items: Vec<usize> = (0..count).collect();
            let mut seen = Vec::new();
            for (sql, piece) in PAIRS.exactly(&items) {
                assert_eq!(sql.matches('(').count(), piece.len());
                seen.extend_from_slice(piece);
            }
            assert_eq!(seen, items);
            seen.clear();
            for (sql, piece, room) in PAIRS.at_least(&items) {
                assert_eq!(sql.matches('(').count(), room);
                assert!(room >= piece.len() && room < 2 * piece.len());
                seen.extend_from_slice(piece);
            }
            assert_eq!(seen, items);
        }
        let (sql, _) = PAIRS.exactly(&[0, 0]).next().unwrap();
        assert_eq!(sql, "VALUES ($2, $1, $3), ($4, $1, $5) END");
    }
}
