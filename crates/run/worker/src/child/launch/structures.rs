//! Structures that are passed by value and contain pointers to buffers.

use super::library_call::AddressOf;
use super::step_memory::StepMemory;
use crate::protocol::Argument;

/// An argument of a launch that is a structure with pointers.
pub(super) struct BoundStructure {
    /// Index of the argument.
    pub argument: usize,
    pub bytes: Vec<u8>,
    /// For each pointer to a buffer: offset in the structure (bytes), index of the buffer, and
    /// offset in the buffer (bytes).
    pub pointers: Vec<(u32, usize, u64)>,
}

impl BoundStructure {
    /// Writes the addresses of buffers and scratch memory into a structure.
    ///
    /// # Errors
    /// Returns the index of a buffer or of scratch memory that does not exist.
    pub(super) fn new(
        argument: usize,
        bytes: &[u8],
        fields: &[(u32, Argument)],
        address: AddressOf<'_>,
        shared: &StepMemory,
    ) -> Result<Self, usize> {
        let mut bound = Self { argument, bytes: bytes.to_vec(), pointers: Vec::new() };
        for (at, field) in fields {
            match field {
                Argument::Buffer(buffer) => bound.pointers.push((*at, *buffer, 0)),
                Argument::Inside(buffer, offset) => bound.pointers.push((*at, *buffer, *offset)),
                Argument::Workspace(workspace, offset) => {
                    let memory = shared.workspace(*workspace).ok_or(*workspace)?;
                    bound.put(*at, memory + offset);
                }
                Argument::PointerArray(array) => {
                    bound.put(*at, shared.pointer_array(*array).ok_or(*array)?);
                }
                Argument::Scalar(_)
                | Argument::Scratch(_)
                | Argument::Structure(..)
                | Argument::Texture(..)
                | Argument::Object(_)
                | Argument::Map(..) => return Err(0),
            }
        }
        let missing = bound.pointers.iter().find(|(_, buffer, _)| address(*buffer).is_none());
        if let Some((_, buffer, _)) = missing {
            return Err(*buffer);
        }
        bound.follow(address);
        Ok(bound)
    }

    /// Writes an address, and returns whether it differs from the previous one. Ignores an offset
    /// outside the structure: the server, which bound it, is trusted.
    pub(super) fn put(&mut self, at: u32, address: u64) -> bool {
        let address = address.to_ne_bytes();
        let end = (at as usize).saturating_add(address.len());
        let Some(place) = self.bytes.get_mut(at as usize..end) else { return false };
        let differs = *place != address;
        place.copy_from_slice(&address);
        differs
    }

    /// Writes the current addresses of the buffers, and returns whether any has changed.
    pub(super) fn follow(&mut self, address: AddressOf<'_>) -> bool {
        let mut moved = false;
        for index in 0..self.pointers.len() {
            let (at, buffer, offset) = self.pointers[index];
            // Each buffer existed when it was bound.
            if let Some(address) = address(buffer) {
                moved |= self.put(at, address + offset);
            }
        }
        moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_follow_their_buffers() {
        let at = |address: u64| move |buffer: usize| (buffer == 1).then_some(address);
        let fields = [(8, Argument::Inside(1, 16))];
        let bind =
            |fields| BoundStructure::new(0, &[7; 24], fields, &at(0x1000), &StepMemory::default());
        assert_eq!(bind(&[(0, Argument::Buffer(2))]).err(), Some(2), "there is no such buffer");
        let mut structure = bind(&fields).ok().unwrap();
        assert!(!structure.follow(&at(0x1000)));
        assert_eq!(structure.bytes[8..16], 0x1010u64.to_ne_bytes());
        assert!(structure.follow(&at(0x2000)));
        assert_eq!((structure.bytes[7], structure.bytes[16]), (7, 7));
        assert!(!structure.put(20, 1), "it would lie outside");
    }
}
