//! SQL statements that handle several rows at once, so that a group of rows needs one round trip.
//! The main type is [`Statements`].

use super::database::Backend;

/// Row counts for which there is a statement, if a statement may repeat its last row. There are
/// few, because sqlx keeps only 100 prepared statements per connection.
const FILLED: [usize; 12] = [64, 48, 32, 24, 16, 12, 8, 6, 4, 3, 2, 1];

/// Row counts for which there is a statement, if each row must occur once. Up to 16 rows need one
/// statement, and one round trip.
const EXACT: [usize; 18] = [64, 32, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1];

/// One statement for each row count, for SQLite and for PostgreSQL.
pub(super) struct Statements {
    sqlite: Vec<(usize, String)>,
    postgres: Vec<(usize, String)>,
}

impl Statements {
    /// Creates statements in which repeating the last row is harmless: see [`Statements::filled`].
    ///
    /// Each statement consists of `head`, then `row` once per row, separated by commas, then
    /// `tail`. Each `?` in `row` is the next value. `$1`, `$2`, … are the same for all rows, and
    /// are bound after them.
    pub(super) fn filling(head: &str, row: &str, tail: &str) -> Self {
        Self::new(&FILLED, head, row, tail)
    }

    /// Creates statements in which each row occurs once: see [`Statements::exactly`].
    pub(super) fn exact(head: &str, row: &str, tail: &str) -> Self {
        Self::new(&EXACT, head, row, tail)
    }

    fn new(sizes: &[usize], head: &str, row: &str, tail: &str) -> Self {
        // By default, SQLite copies every page that a statement with several rows changes, in order
        // to undo a statement that fails halfway. Here a failure rolls back the whole transaction
        // anyway.
        let failing = head.replacen("INSERT INTO", "INSERT OR FAIL INTO", 1);
        let all = |head: &str, numbered| {
            sizes.iter().map(|rows| (*rows, statement(head, row, tail, *rows, numbered))).collect()
        };
        // SQLite keeps the names of numbered parameters in a list, and searches this list for each
        // parameter.
        Self { sqlite: all(&failing, false), postgres: all(head, true) }
    }

    /// Returns the statements for a kind of database, largest first.
    fn of(&self, backend: Backend) -> &[(usize, String)] {
        match backend {
            Backend::Sqlite => &self.sqlite,
            Backend::Postgres => &self.postgres,
        }
    }

    /// Splits `items` into pieces, each with the statement for its length.
    pub(super) fn exactly<'a, T>(
        &'static self,
        backend: Backend,
        mut items: &'a [T],
    ) -> impl Iterator<Item = (&'static str, &'a [T])> {
        std::iter::from_fn(move || {
            let (size, sql) = self.of(backend).iter().find(|(size, _)| *size <= items.len())?;
            let (piece, rest) = items.split_at(*size);
            items = rest;
            Some((sql.as_str(), piece))
        })
    }

    /// Splits `items` into pieces. For each piece, returns a statement and the values to bind: the
    /// piece, followed by copies of its last item until the statement is full.
    pub(super) fn filled<'a, T>(
        &'static self,
        backend: Backend,
        items: &'a [T],
    ) -> impl Iterator<Item = (&'static str, &'a [T], impl Iterator<Item = &'a T>)> {
        items.chunks(FILLED[0]).filter_map(move |piece| {
            let (size, sql) = self.of(backend).iter().rfind(|(size, _)| *size >= piece.len())?;
            let again = piece.last().into_iter().cycle();
            Some((sql.as_str(), piece, piece.iter().chain(again).take(*size)))
        })
    }
}

/// Returns the statement for a row count. `numbered` selects the parameters `$1`, `$2`, … for the
/// rows, in place of `?`.
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

    static ONCE: LazyLock<Statements> =
        LazyLock::new(|| Statements::exact("INSERT INTO t VALUES ", "(?, $1, ?, $2)", " $1"));
    static FILLED: LazyLock<Statements> =
        LazyLock::new(|| Statements::filling("SELECT a FROM t WHERE a IN (", "?", ")"));

    #[test]
    fn every_item_is_in_one_piece_with_a_statement_of_its_length() {
        for count in [0, 1, 3, 31, 64, 100, 129] {
            let items: Vec<usize> = (0..count).collect();
            let mut seen = Vec::new();
            for (sql, piece) in ONCE.exactly(Backend::Sqlite, &items) {
                assert_eq!(sql.matches('(').count(), piece.len());
                seen.extend_from_slice(piece);
            }
            assert_eq!(seen, items);
            seen.clear();
            for (sql, piece, bound) in FILLED.filled(Backend::Postgres, &items) {
                let bound: Vec<usize> = bound.copied().collect();
                assert_eq!(sql.matches('$').count(), bound.len());
                let (all, again) = bound.split_at(piece.len());
                assert_eq!(all, piece);
                assert!(
                    again.len() < piece.len()
                        && again.iter().all(|item| Some(item) == piece.last())
                );
                seen.extend_from_slice(piece);
            }
            assert_eq!(seen, items);
        }
    }

    #[test]
    fn values_are_numbered_where_the_database_wants_it() {
        let of = |backend, items: &'static [u8]| ONCE.exactly(backend, items).next().unwrap().0;
        let eight = of(Backend::Sqlite, &[0; 8]);
        assert_eq!((eight.matches("$17,").count(), eight.matches("$18)").count()), (8, 8));
        let sqlite = "INSERT OR FAIL INTO t VALUES (?, $5, ?, $6), (?, $5, ?, $6) $5";
        assert_eq!(of(Backend::Sqlite, &[0; 2]), sqlite);
        let postgres = "INSERT INTO t VALUES ($1, $5, $2, $6), ($3, $5, $4, $6) $5";
        assert_eq!(of(Backend::Postgres, &[0; 2]), postgres);
    }
}
