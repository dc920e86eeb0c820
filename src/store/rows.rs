//! Statements that name several rows at once, so that each costs one round trip and not one per row.

use super::database::Backend;

/// Rows of one statement. Few different numbers make few statements to keep prepared.
const SIZES: [usize; 7] = [64, 32, 16, 8, 4, 2, 1];

/// One statement for each number of rows, on SQLite and on PostgreSQL.
pub(super) struct Statements {
    sqlite: [String; SIZES.len()],
    postgres: [String; SIZES.len()],
}

impl Statements {
    /// `head`, so many times `row` with commas between, `tail`. Each `?` in `row` is the next value. `$1`,
    /// `$2`, … are the same for all rows, and are bound after them.
    pub(super) fn new(head: &str, row: &str, tail: &str) -> Self {
        // By itself SQLite copies every page that a statement of several rows changes, so that it could
        // take back one that fails half-way. Here a failure takes the whole transaction back.
        let failing = head.replacen("INSERT INTO", "INSERT OR FAIL INTO", 1);
        Self {
            // Of a value with a number SQLite keeps the name, in a list that it searches for each one.
            sqlite: SIZES.map(|rows| statement(&failing, row, tail, rows, false)),
            postgres: SIZES.map(|rows| statement(head, row, tail, rows, true)),
        }
    }

    fn of(&self, backend: Backend) -> &[String; SIZES.len()] {
        match backend {
            Backend::Sqlite => &self.sqlite,
            Backend::Postgres => &self.postgres,
        }
    }

    /// Pieces of `items`, each with the statement of its length.
    pub(super) fn exactly<'a, T>(
        &'static self,
        backend: Backend,
        mut items: &'a [T],
    ) -> impl Iterator<Item = (&'static str, &'a [T])> {
        std::iter::from_fn(move || {
            let mut all = SIZES.iter().zip(self.of(backend));
            let (size, sql) = all.find(|(size, _)| **size <= items.len())?;
            let (piece, rest) = items.split_at(*size);
            items = rest;
            Some((sql.as_str(), piece))
        })
    }

    /// Pieces of `items`, each with a statement that may have room for more, and how many it has room
    /// for: what is said twice must do no harm.
    pub(super) fn at_least<'a, T>(
        &'static self,
        backend: Backend,
        items: &'a [T],
    ) -> impl Iterator<Item = (&'static str, &'a [T], usize)> {
        items.chunks(SIZES[0]).filter_map(move |piece| {
            let mut all = SIZES.iter().zip(self.of(backend));
            let (size, sql) = all.rfind(|(size, _)| **size >= piece.len())?;
            Some((sql.as_str(), piece, *size))
        })
    }
}

/// `numbered`: values of rows are `$1`, `$2`, …, and not `?`.
fn statement(head: &str, row: &str, tail: &str, rows: usize, numbered: bool) -> String {
    let values = rows * row.matches('?').count();
    let text = format!("{head}{}{tail}", vec![row; rows].join(", "));
    let mut sql = String::with_capacity(text.len() + 4 * values);
    let mut value = 0;
    let mut rest = text.as_str();
    while let Some(place) = rest.find(['?', '$']) {
        let (before, mark) = rest.split_at(place);
        sql.push_str(before);
        let after = &mark[1..];
        let digits = after.len() - after.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        if mark.starts_with('$') {
            let shared: usize = after[..digits].parse().unwrap_or(0);
            sql.push_str(&format!("${}", values + shared));
            rest = &after[digits..];
        } else {
            value += 1;
            sql.push_str(&if numbered { format!("${value}") } else { "?".to_owned() });
            rest = after;
        }
    }
    sql + rest
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::*;

    static PAIRS: LazyLock<Statements> =
        LazyLock::new(|| Statements::new("INSERT INTO t VALUES ", "(?, $1, ?, $2)", " $1"));

    #[test]
    fn every_item_is_in_one_piece_with_a_statement_of_its_length() {
        for count in [0, 1, 3, 64, 100, 129] {
            let items: Vec<usize> = (0..count).collect();
            let mut seen = Vec::new();
            for (sql, piece) in PAIRS.exactly(Backend::Sqlite, &items) {
                assert_eq!(sql.matches('(').count(), piece.len());
                seen.extend_from_slice(piece);
            }
            assert_eq!(seen, items);
            seen.clear();
            for (sql, piece, room) in PAIRS.at_least(Backend::Postgres, &items) {
                assert_eq!(sql.matches('(').count(), room);
                assert!(room >= piece.len() && room < 2 * piece.len());
                seen.extend_from_slice(piece);
            }
            assert_eq!(seen, items);
        }
        let of = |backend, items: &'static [u8]| PAIRS.exactly(backend, items).next().unwrap().0;
        let eight = of(Backend::Sqlite, &[0; 8]);
        assert_eq!((eight.matches("$17,").count(), eight.matches("$18)").count()), (8, 8));
        let sqlite = "INSERT OR FAIL INTO t VALUES (?, $5, ?, $6), (?, $5, ?, $6) $5";
        assert_eq!(of(Backend::Sqlite, &[0; 2]), sqlite);
        let postgres = "INSERT INTO t VALUES ($1, $5, $2, $6), ($3, $5, $4, $6) $5";
        assert_eq!(of(Backend::Postgres, &[0; 2]), postgres);
    }
}
