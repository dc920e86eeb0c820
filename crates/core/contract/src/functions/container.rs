//! Container of a JSON head and binary data in one body.

use serde::Serialize;

/// Largest head, bytes.
pub const MAX_HEAD_BYTES: usize = 64 << 10;

/// Reason why a body is not a valid container.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ContainerError {
    /// The body ends inside its head.
    #[error(
        "the body has {bytes} bytes and ends within its head: it is the head's length in four bytes \
         (little endian), the head in JSON, and the program"
    )]
    CutOff {
        /// Bytes of the body.
        bytes: usize,
    },
    /// The body announces a head that is too large.
    #[error("the head has {bytes} bytes; the limit is {MAX_HEAD_BYTES}: put data after the head")]
    HeadTooLarge {
        /// Announced bytes.
        bytes: usize,
    },
}

/// Splits a container into its head and the rest.
///
/// # Errors
/// The body is not a container.
pub fn unpacked(body: &[u8]) -> Result<(&[u8], &[u8]), ContainerError> {
    let cut_off = ContainerError::CutOff { bytes: body.len() };
    let (length, rest) = body.split_first_chunk::<4>().ok_or(cut_off.clone())?;
    let bytes = u32::from_le_bytes(*length) as usize;
    if bytes > MAX_HEAD_BYTES {
        return Err(ContainerError::HeadTooLarge { bytes });
    }
    rest.split_at_checked(bytes).ok_or(cut_off)
}

/// Builds a container.
///
/// # Errors
/// The head cannot be serialised as JSON.
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
