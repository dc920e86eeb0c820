//! What the parts of the store have in common: where rows are read, where they are written, where files are.

use super::objects::Objects;
use super::read::Reader;
use super::writer::Writer;

/// Reads and writes rows and files. Cheap to clone.
#[derive(Clone)]
pub(super) struct Access {
    pub(super) reader: Reader,
    pub(super) writer: Writer,
    pub(super) objects: Objects,
}
