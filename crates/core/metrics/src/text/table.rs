//! Parses tables with columns of fixed width, which a line of dashes shows. The main type is
//! [`TableColumns`].

/// Maximum number of columns of a table.
const MAX_COLUMNS: usize = 64;
/// Minimum number of dashes of a column.
const MIN_DASHES: usize = 3;

/// Columns of a table of fixed width: first and last character of each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TableColumns(Vec<(usize, usize)>);

impl TableColumns {
    /// Returns the columns of a line like `---- ------ ----`. Returns `None` for other lines.
    pub(crate) fn of(line: &str) -> Option<Self> {
        let line = line.trim_end();
        if !line.trim_start().starts_with("---") || !line.bytes().all(|b| b == b'-' || b == b' ') {
            return None;
        }
        let mut columns: Vec<(usize, usize)> = Vec::new();
        for (at, byte) in line.bytes().enumerate() {
            match columns.last_mut() {
                Some((_, end)) if byte == b'-' && *end == at => *end = at + 1,
                _ if byte == b'-' => columns.push((at, at + 1)),
                _ => {}
            }
        }
        let wide = columns.iter().any(|(start, end)| end - start >= MIN_DASHES);
        (wide && (2..=MAX_COLUMNS).contains(&columns.len())).then_some(Self(columns))
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether a line ends before the last column does, whose cells are aligned at its end.
    pub(crate) fn are_cut(&self, line: &str) -> bool {
        let end = self.0.last().map_or(0, |(_, end)| *end);
        line.trim_end().chars().count() < end
    }

    /// Returns the cells of a line. A cell may extend beyond its column into empty space. The last
    /// one contains the rest of the line.
    pub(crate) fn cells<'a>(&self, line: &'a str) -> Vec<&'a str> {
        let line = line.trim_end();
        let starts: Vec<usize> = line.char_indices().map(|(at, _)| at).collect();
        let byte = |character: usize| starts.get(character).copied().unwrap_or(line.len());
        let mut cells = Vec::with_capacity(self.0.len());
        let mut from = 0;
        for (index, (start, end)) in self.0.iter().enumerate() {
            let to = match self.0.get(index + 1) {
                // The gap between two columns is empty, unless a cell is too long for its column.
                Some((next, _)) => match line[byte(*end)..byte(*next)].trim().is_empty() {
                    true => byte(*end),
                    false => {
                        let rest = &line[byte(*end)..];
                        byte(*end) + rest.find(' ').unwrap_or(rest.len())
                    }
                },
                None => line.len(),
            };
            let start = byte(*start).max(from).min(line.len());
            let to = to.max(start);
            cells.push(line[from.min(start)..to].trim());
            from = to;
        }
        cells
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn cells_lie_below_the_dashes() {
        let columns = TableColumns::of("  ------ ------ -----").unwrap();
        assert_eq!(columns.len(), 3);
        assert_eq!(columns.cells("  na é       ns   1,5"), ["na é", "ns", "1,5"]);
        assert_eq!(
            columns.cells("  too long   ns   1.5 and more"),
            ["too long", "ns", "1.5 and more"]
        );
        assert_eq!(columns.cells("  a"), ["a", "", ""]);
        for other in ["", "--", "----", "-- -", "--- x ---", "a --- ---"] {
            assert_eq!(TableColumns::of(other), None, "{other}");
        }
    }

    proptest! {
        #[test]
        fn any_line_has_its_cells(dashes in "[- ]{0,40}", line in "[ a-z0-9é,.]{0,60}") {
            if let Some(columns) = TableColumns::of(&dashes) {
                let cells = columns.cells(&line);
                prop_assert_eq!(cells.len(), columns.len());
                let count = |text: &str| text.chars().filter(|c| *c != ' ').count();
                let all: usize = cells.iter().map(|cell| count(cell)).sum();
                prop_assert_eq!(all, count(&line), "no letter is lost or counted twice");
            }
        }
    }
}
