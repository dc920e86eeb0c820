//! A head in JSON and what comes after it, as one body.

use serde::Serialize;

/// Largest head, bytes.
pub const MAX_HEAD_BYTES: usize = 64 << 10;

/// Why a body is no container.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ContainerError {
    /// It ends before its head does.
    #[error(
        "the body has {bytes} bytes and ends within its head: it is the head's length in four bytes \
         (little endian), the head in JSON, and the program"
    )]
    CutOff {
        /// Bytes that came.
        bytes: usize,
    },
    /// Its head says that it is larger than heads are.
    #[error("the head has {bytes} bytes; the limit is {MAX_HEAD_BYTES}: data belong behind it")]
    HeadTooLarge {
        /// Bytes that it says it has.
        bytes: usize,
    },
}

/// A container's head and the rest.
///
/// # Errors
/// It is none.
pub fn unpacked(body: &[u8]) -> Result<(&[u8], &[u8]), ContainerError> {
    let cut_off = ContainerError::CutOff { bytes: body.len() };
    let (length, rest) = body.split_first_chunk::<4>().ok_or(cut_off.clone())?;
    let bytes = u32::from_le_bytes(*length) as usize;
    if bytes > MAX_HEAD_BYTES {
        return Err(ContainerError::HeadTooLarge { bytes });
    }
    rest.split_at_checked(bytes).ok_or(cut_off)
}

/// A container.
///
/// # Errors
/// The head cannot be written as JSON.
pub fn packed(head: &impl Serialize, rest: &[u8]) -> Result<Vec<u8>, serde_json::Error> {
    let head = serde_json::to_vec(head)?;
    let length = u32::try_from(head.len()).unwrap_or(u32::MAX);
    let mut body = Vec::with_capacity(4 + head.len() + rest.len());
    body.extend(length.to_le_bytes());
    body.extend(head);
    body.extend_from_slice(rest);
    Ok(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_packed_is_unpacked() {
        let body = packed(&["head"], b"rest").unwrap();
        assert_eq!(unpacked(&body).unwrap(), (&b"[\"head\"]"[..], &b"rest"[..]));
        assert_eq!(unpacked(&packed(&0, b"").unwrap()).unwrap(), (&b"0"[..], &b""[..]));
    }

    #[test]
    fn what_is_no_container_is_told() {
        for body in [&b""[..], b"\x01", b"\x02\0\0\0{"] {
            let bytes = body.len();
            assert_eq!(unpacked(body), Err(ContainerError::CutOff { bytes }), "{body:?}");
        }
        let error = unpacked(b"\xff\xff\xff\xff{}").unwrap_err();
        assert_eq!(error, ContainerError::HeadTooLarge { bytes: u32::MAX as usize });
    }
}
