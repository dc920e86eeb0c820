//! Access that all parts of the store share: a reader of rows, a writer, and files.

use super::objects::Objects;
use super::read::Reader;
use super::writer::Writer;

/// Reads and writes rows and files. Clones are cheap.
#[derive(Clone)]
pub(super) struct Access {
    pub(super) reader: Reader,
    pub(super) writer: Writer,
    pub(super) objects: Objects,
}
