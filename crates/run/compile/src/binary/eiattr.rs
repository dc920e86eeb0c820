//! Attribute lists of machine code (`.nv.info` sections).
//!
//! Each entry has a format byte, an attribute byte and 16 bits. The 16 bits are the value or, for
//! the sized format, the length of the payload that follows. NVIDIA does not document the
//! attributes. The meanings used here were derived from images with known sources
//! (tests/fixtures/cubin) and agree with the output of ptxas.

/// An entry of an attribute list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Attribute<'a> {
    pub kind: u8,
    pub payload: &'a [u8],
}

/// Register count of a function. Payload: symbol index, registers.
pub(super) const REGCOUNT: u8 = 0x2f;
/// Stack frame of a function. Payload: symbol index, bytes.
pub(super) const FRAME_SIZE: u8 = 0x11;
/// Stack of a function and of all functions that it calls. Payload: symbol index, bytes.
pub(super) const MIN_STACK_SIZE: u8 = 0x12;
/// Largest block (`__launch_bounds__`). Payload: x, y, z.
pub(super) const MAX_THREADS: u8 = 0x05;
/// Required block (`__block_size__`, `.reqntid`). Payload: x, y, z.
pub(super) const REQNTID: u8 = 0x10;
/// A parameter whose size is at most 16 KiB.
const KPARAM_INFO: u8 = 0x17;
/// A parameter whose size is stored in 32 bits.
const KPARAM_INFO_V2: u8 = 0x45;

/// Format of an entry whose payload follows it.
const SIZED: u8 = 0x04;

/// Splits an attribute list into entries. Stops at the first incomplete entry.
pub(super) fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = Attribute<'_>> {
    std::iter::from_fn(move || {
        let (head, rest) = bytes.split_at_checked(4)?;
        let length = if head[0] == SIZED { usize::from(u16_at(head, 2)?) } else { 0 };
        let (payload, rest) = rest.split_at_checked(length)?;
        bytes = rest;
        let payload = if head[0] == SIZED { payload } else { &head[2..] };
        Some(Attribute { kind: head[1], payload })
    })
}

/// Position and size of a parameter, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ParamInfo {
    pub ordinal: u16,
    pub offset: u16,
    pub bytes: u32,
}

impl Attribute<'_> {
    /// Returns the parameter that the attribute describes, if any.
    pub(super) fn param(&self) -> Option<ParamInfo> {
        let (ordinal, offset) = (u16_at(self.payload, 4)?, u16_at(self.payload, 6)?);
        let size = self.u32(2)?;
        let bytes = match self.kind {
            // Alignment, memory space and constant bank take the lower 18 bits.
            KPARAM_INFO => size >> 18,
            KPARAM_INFO_V2 => size,
            _ => return None,
        };
        Some(ParamInfo { ordinal, offset, bytes })
    }

    /// Returns the 32-bit word at `index` of the payload.
    pub(super) fn u32(&self, index: usize) -> Option<u32> {
        let bytes = self.payload.get(index * 4..index * 4 + 4)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?))
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_of_both_forms() {
        let old = [
            0x04, 0x17, 0x0c, 0, 0, 0, 0, 0, 3, 0, 0x18, 0, 0, 0xf0, 0x21, 0, //
        ];
        let new = [0x04, 0x45, 0x0c, 0, 0, 0, 0, 0, 1, 0, 8, 0, 0xe0, 0x2e, 0, 0];
        let params: Vec<_> = attributes(&[old, new].concat()).map(|a| a.param()).collect();
        assert_eq!(
            params,
            [
                Some(ParamInfo { ordinal: 3, offset: 24, bytes: 8 }),
                Some(ParamInfo { ordinal: 1, offset: 8, bytes: 12000 }),
            ]
        );
    }

    #[test]
    fn short_entries_carry_their_value() {
        let found: Vec<_> = attributes(&[0x03, 0x19, 0x38, 0]).collect();
        assert_eq!(found, [Attribute { kind: 0x19, payload: &[0x38, 0] }]);
        assert_eq!(found[0].param(), None);
    }

    #[test]
    fn an_entry_longer_than_the_list_ends_it() {
        assert_eq!(attributes(&[0x04, 0x17, 0xff, 0xff, 1, 2]).count(), 0);
        assert_eq!(attributes(&[0x04, 0x17, 0x0c]).count(), 0);
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_survived(bytes: Vec<u8>) {
            for attribute in attributes(&bytes) {
                attribute.param();
                attribute.u32(2);
            }
        }
    }
}
