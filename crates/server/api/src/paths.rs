//! Paths that several modules use.

/// Path of the Model Context Protocol.
pub(crate) const MCP: &str = "/mcp";

/// Path of the book.
pub(crate) const BOOK: &str = "/book";

/// Returns whether a path belongs to a page of the book.
pub(crate) fn is_in_book(path: &str) -> bool {
    let Some(rest) = path.strip_prefix(BOOK) else { return false };
    matches!(rest, "" | "/")
        || rest.strip_prefix('/').is_some_and(|rest| warpgauge_book::paths().any(|it| it == rest))
}
