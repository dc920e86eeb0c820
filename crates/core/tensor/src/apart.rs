//! Serialisation of large payloads separately from the text of a request.
//!
//! A request is stored with its large payloads in separate files. [`set_apart`] serialises each
//! large payload as a number, and [`put_back`] replaces the numbers by the payloads. On the wire a
//! payload is always base64; a number in its place is rejected.

use std::cell::RefCell;

use super::Blob;

thread_local! {
    static APART: RefCell<Apart> = const { RefCell::new(Apart::No) };
}

enum Apart {
    No,
    Writing(Vec<Blob>),
    Reading(Vec<Blob>),
}

/// Guard that ends the serialisation mode of this thread when it is dropped, also after a panic.
struct Scope;

impl Scope {
    fn begin(apart: Apart) -> Self {
        APART.set(apart);
        Self
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        APART.set(Apart::No);
    }
}

/// Runs `write`. Returns its result and the large payloads that it serialised, in the order of
/// their numbers.
pub fn set_apart<T>(write: impl FnOnce() -> T) -> (T, Vec<Blob>) {
    let _scope = Scope::begin(Apart::Writing(Vec::new()));
    let written = write();
    let blobs = match APART.replace(Apart::No) {
        Apart::Writing(blobs) => blobs,
        Apart::No | Apart::Reading(_) => Vec::new(),
    };
    (written, blobs)
}

/// Runs `read`. Meanwhile, numbers on this thread are deserialised as the payloads that
/// [`set_apart`] collected.
pub fn put_back<T>(blobs: Vec<Blob>, read: impl FnOnce() -> T) -> T {
    let _scope = Scope::begin(Apart::Reading(blobs));
    read()
}

/// Collects a payload and returns its number. Returns `None` unless [`set_apart`] runs on this
/// thread.
pub(super) fn set(blob: &Blob) -> Option<u64> {
    APART.with_borrow_mut(|apart| match apart {
        Apart::Writing(blobs) => {
            blobs.push(blob.clone());
            Some(blobs.len() as u64 - 1)
        }
        Apart::No | Apart::Reading(_) => None,
    })
}

/// Returns the payload with this number, if [`put_back`] runs on this thread.
pub(super) fn get(number: u64) -> Option<Blob> {
    APART.with_borrow(|apart| match apart {
        Apart::Reading(blobs) => blobs.get(usize::try_from(number).ok()?).cloned(),
        Apart::No | Apart::Writing(_) => None,
    })
}

/// Returns whether [`put_back`] runs on this thread, so that a number may replace a payload.
pub(super) fn is_reading() -> bool {
    APART.with_borrow(|apart| matches!(apart, Apart::Reading(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blob(bytes: usize) -> Blob {
        Blob::from_bytes(&vec![7; bytes])
    }

    #[test]
    fn large_payloads_are_numbers_and_come_back() {
        let blobs = vec![blob(10), blob(100_000), blob(11), blob(2_000_000)];
        let (text, apart) = set_apart(|| serde_json::to_string(&blobs).unwrap());
        assert_eq!(text.matches(',').count(), 3);
        assert!(text.contains(",0,") && text.ends_with(",1]") && text.len() < 100, "{text}");
        assert_eq!(apart.len(), 2);
        let again: Vec<Blob> = put_back(apart, || rmp_serde::from_slice(&rmp(&text)).unwrap());
        let text_of = |blobs: &[Blob]| serde_json::to_string(blobs).unwrap();
        assert!(text_of(&again) == text_of(&blobs));
    }

    fn rmp(json: &str) -> Vec<u8> {
        rmp_serde::to_vec(&serde_json::from_str::<serde_json::Value>(json).unwrap()).unwrap()
    }

    #[test]
    fn numbers_mean_nothing_elsewhere() {
        assert!(rmp_serde::from_slice::<Blob>(&rmp("0")).is_err());
        assert!(serde_json::from_str::<Blob>("0").is_err());
        let beyond = put_back(vec![blob(1)], || rmp_serde::from_slice::<Blob>(&rmp("1")));
        assert!(beyond.unwrap_err().to_string().contains("base64 text"));
        let text = put_back(vec![blob(1)], || rmp_serde::from_slice::<Blob>(&rmp("\"AAAA\"")));
        assert_eq!(text.unwrap().to_bytes(3).unwrap(), [0; 3]);
        // A panic ends the mode, too.
        let _ = std::panic::catch_unwind(|| put_back(vec![blob(1)], || panic!("on purpose")));
        assert!(!is_reading());
    }
}
