//! Base64 payloads of any size.
//!
//! A large payload is decoded while the body is parsed, straight from the body's bytes into an
//! anonymous temporary file. A 300 MB tensor is therefore never held in memory twice. The main type
//! is [`Blob`].

use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use base64::display::Base64Display;
use serde::de::{self, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer, ser};

use super::apart;
use super::base64_stream::{Base64Error, Base64Reader, decoded_len, encode, engine};
use super::on_device::OnDevice;

/// Maximum length of text that stays in memory; longer text is decoded into a file.
const SPILL_BYTES: usize = 1 << 20;

/// Minimum size of base64 text that is stored separately, in bytes. Other payloads are always
/// stored separately.
const APART_BYTES: u64 = 64 << 10;

/// Bytes encoded at once when a payload in a file is serialised; a multiple of 3.
const ENCODE_CHUNK: usize = 48 << 10;

/// A base64 payload. Clones share its bytes.
#[derive(Clone)]
pub struct Blob {
    payload: Payload,
}

#[derive(Clone)]
enum Payload {
    /// Base64 text, as received.
    Text(Arc<str>),
    /// Decoded bytes in a temporary file.
    File { file: Arc<File>, bytes: u64 },
    /// Bytes in the memory of a device.
    Device(Arc<OnDevice>),
}

impl Blob {
    /// Wraps base64 text without checking it. Malformed text is reported when it is read.
    pub fn from_base64(text: impl Into<Arc<str>>) -> Self {
        Self { payload: Payload::Text(text.into()) }
    }

    /// Wraps content that stays in the memory of a device.
    pub fn of_device(content: OnDevice) -> Self {
        Self { payload: Payload::Device(Arc::new(content)) }
    }

    /// Returns the content in device memory, if the payload is there.
    pub fn on_device(&self) -> Option<&OnDevice> {
        match &self.payload {
            Payload::Device(content) => Some(content),
            Payload::Text(_) | Payload::File { .. } => None,
        }
    }

    /// Returns an empty payload.
    pub fn empty() -> Self {
        Self::from_base64("")
    }

    pub fn is_empty(&self) -> bool {
        match &self.payload {
            Payload::Text(text) => text.is_empty(),
            Payload::File { bytes, .. } => *bytes == 0,
            Payload::Device(content) => content.bytes == 0,
        }
    }

    /// Encodes bytes as base64.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        Self::from_base64(encode(bytes))
    }

    /// Validates base64 text. Long text is decoded into a temporary file.
    pub fn parse(text: &str) -> Result<Self, BlobError> {
        if text.len() <= SPILL_BYTES {
            decoded_len(text)?;
            return Ok(Self::from_base64(text));
        }
        Self::spill(text)
    }

    fn spill(text: &str) -> Result<Self, BlobError> {
        let filed = Self::in_file(&mut Base64Reader::new(text.as_bytes()));
        let (blob, _) = filed.map_err(|error| match error.downcast::<Base64Error>() {
            Ok(malformed) => BlobError::Malformed(malformed),
            Err(source) => BlobError::Spill { bytes: text.len(), source },
        })?;
        Ok(blob)
    }

    /// Creates a payload from the bytes that `write` writes. If `bytes`, the expected size, exceeds
    /// 1 MiB, they go to a temporary file.
    ///
    /// # Errors
    /// Returns errors of the file system and of `write`.
    pub fn written(
        bytes: u64,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<Self> {
        if bytes <= SPILL_BYTES as u64 {
            let mut content = Vec::new();
            write(&mut content)?;
            return Ok(Self::from_bytes(&content));
        }
        let mut writer = BufWriter::with_capacity(SPILL_BYTES, tempfile::tempfile()?);
        write(&mut writer)?;
        let file = writer.into_inner()?;
        let bytes = file.metadata()?.len();
        Ok(Self { payload: Payload::File { file: Arc::new(file), bytes } })
    }

    /// Copies decoded bytes into a file. Returns the payload and the number of bytes.
    fn in_file(from: &mut dyn Read) -> io::Result<(Self, u64)> {
        let mut writer = BufWriter::with_capacity(SPILL_BYTES, tempfile::tempfile()?);
        let bytes = io::copy(from, &mut writer)?;
        let file = Arc::new(writer.into_inner()?);
        Ok((Self { payload: Payload::File { file, bytes } }, bytes))
    }

    fn is_large(&self) -> bool {
        match &self.payload {
            Payload::Text(text) => text.len() as u64 >= APART_BYTES,
            Payload::File { .. } | Payload::Device(_) => true,
        }
    }

    /// Returns the size of the decoded bytes: exact for payloads in files, an upper bound for text,
    /// and 0 for content in device memory, which is not decoded.
    pub fn decoded_len_hint(&self) -> u64 {
        match &self.payload {
            Payload::Text(text) => text.len().div_ceil(4) as u64 * 3,
            Payload::File { bytes, .. } => *bytes,
            Payload::Device(_) => 0,
        }
    }

    /// Returns the exact number of decoded bytes.
    pub fn decoded_len(&self) -> Result<u64, Base64Error> {
        match &self.payload {
            Payload::Text(text) => decoded_len(text),
            Payload::File { bytes, .. } => Ok(*bytes),
            Payload::Device(content) => Ok(content.bytes),
        }
    }

    /// Returns the form, the length and the bytes in which the payload is stored.
    /// [`Blob::from_kept`] reads them back.
    pub fn kept(&self) -> (PayloadForm, u64, Box<dyn Read + Send>) {
        match &self.payload {
            Payload::Text(text) => {
                let reader = io::Cursor::new(TextBytes(Arc::clone(text)));
                (PayloadForm::Text, text.len() as u64, Box::new(reader))
            }
            Payload::File { bytes, .. } => (PayloadForm::Decoded, *bytes, self.reader()),
            Payload::Device(_) => (PayloadForm::Nothing, 0, Box::new(io::empty())),
        }
    }

    /// Restores a payload from the form, the length and the bytes that [`Blob::kept`] returned.
    /// Decoded bytes go to a file. Content in device memory has no stored bytes: the result is an
    /// [`io::ErrorKind::InvalidData`] error.
    pub fn from_kept(kept: PayloadForm, bytes: u64, from: &mut dyn Read) -> io::Result<Self> {
        let short = || io::Error::new(io::ErrorKind::UnexpectedEof, "a payload is cut short");
        let mut from = from.take(bytes);
        match kept {
            PayloadForm::Text => {
                let mut text = String::new();
                from.read_to_string(&mut text)?;
                if text.len() as u64 != bytes {
                    return Err(short());
                }
                Ok(Self::from_base64(text))
            }
            PayloadForm::Decoded => {
                let (blob, found) = Self::in_file(&mut from)?;
                if found == bytes { Ok(blob) } else { Err(short()) }
            }
            PayloadForm::Nothing => Err(OnDevice::unreadable()),
        }
    }

    /// Returns a reader of the decoded bytes. Malformed base64 is an [`io::ErrorKind::InvalidData`]
    /// error that contains a [`Base64Error`]. Content in device memory is an error of the same
    /// kind.
    pub fn reader(&self) -> Box<dyn Read + Send> {
        match &self.payload {
            Payload::Text(text) => Box::new(Base64Reader::new(TextBytes(Arc::clone(text)))),
            Payload::File { file, bytes } => {
                Box::new(FileReader { file: Arc::clone(file), position: 0, end: *bytes })
            }
            Payload::Device(_) => Box::new(Elsewhere),
        }
    }

    /// Returns whether two payloads have the same bytes. Clones of one payload are not read.
    ///
    /// # Errors
    /// Returns an error if either payload cannot be read.
    pub fn same_bytes(&self, other: &Self) -> io::Result<bool> {
        let one = match (&self.payload, &other.payload) {
            (Payload::Text(text), Payload::Text(theirs)) => Arc::ptr_eq(text, theirs),
            (Payload::File { file, .. }, Payload::File { file: theirs, .. }) => {
                Arc::ptr_eq(file, theirs)
            }
            (Payload::Device(content), Payload::Device(theirs)) => Arc::ptr_eq(content, theirs),
            _ => false,
        };
        if one {
            return Ok(true);
        }
        let mut sides = [self.reader(), other.reader()];
        let mut pieces = [vec![0; ENCODE_CHUNK], vec![0; ENCODE_CHUNK]];
        loop {
            let mut counts = [0; 2];
            for ((side, piece), count) in sides.iter_mut().zip(&mut pieces).zip(&mut counts) {
                *count = filled(side, piece)?;
            }
            let [ours, theirs] = [&pieces[0][..counts[0]], &pieces[1][..counts[1]]];
            if ours != theirs || ours.is_empty() {
                return Ok(ours == theirs);
            }
        }
    }

    /// Returns all decoded bytes, if there are at most `limit`.
    pub fn to_bytes(&self, limit: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.reader().take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > limit {
            let message = format!("the payload is larger than {limit} bytes");
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
        }
        Ok(bytes)
    }
}

/// Form in which a payload is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PayloadForm {
    /// Base64 text, as received.
    Text,
    /// Decoded bytes.
    Decoded,
    /// No bytes: the content is in device memory.
    Nothing,
}

/// Reasons why a payload cannot be stored.
#[derive(Debug, thiserror::Error)]
pub enum BlobError {
    /// The text is not base64.
    #[error(transparent)]
    Malformed(#[from] Base64Error),
    /// The payload cannot be written to a temporary file.
    #[error("cannot keep a payload of {bytes} characters in a temporary file: {source}")]
    Spill {
        /// Length of the text.
        bytes: usize,
        source: io::Error,
    },
}

/// Reads until the buffer is full or the input ends. Returns the number of bytes read.
fn filled(from: &mut dyn Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut found = 0;
    while found < buffer.len() {
        match from.read(&mut buffer[found..]) {
            Ok(0) => break,
            Ok(count) => found += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

/// Shared text as bytes.
struct TextBytes(Arc<str>);

impl AsRef<[u8]> for TextBytes {
    fn as_ref(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

/// Reader of a shared file with a separate position, which begins at 0.
struct FileReader {
    file: Arc<File>,
    position: u64,
    end: u64,
}

impl Read for FileReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end - self.position).unwrap_or(usize::MAX);
        let wanted = left.min(out.len());
        let count = self.file.read_at(&mut out[..wanted], self.position)?;
        self.position += count as u64;
        Ok(count)
    }
}

/// Reader of content in device memory; every read fails.
struct Elsewhere;

impl Read for Elsewhere {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(OnDevice::unreadable())
    }
}

impl fmt::Debug for Blob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.payload {
            Payload::Text(text) => write!(f, "Blob({} base64 characters)", text.len()),
            Payload::File { bytes, .. } => write!(f, "Blob({bytes} bytes in a file)"),
            Payload::Device(content) => write!(f, "Blob({content:?})"),
        }
    }
}

/// Writes a file's content as base64, piece by piece.
struct FileAsBase64<'a> {
    file: &'a File,
    bytes: u64,
}

impl fmt::Display for FileAsBase64<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut buffer = vec![0; ENCODE_CHUNK];
        let mut position = 0;
        while position < self.bytes {
            let count = (self.bytes - position).min(ENCODE_CHUNK as u64) as usize;
            let piece = &mut buffer[..count];
            self.file.read_exact_at(piece, position).map_err(|_| fmt::Error)?;
            write!(f, "{}", Base64Display::new(piece, engine()))?;
            position += count as u64;
        }
        Ok(())
    }
}

impl Serialize for Blob {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.is_large()
            && let Some(number) = apart::set(self)
        {
            return serializer.serialize_u64(number);
        }
        match &self.payload {
            Payload::Text(text) => serializer.serialize_str(text),
            Payload::File { file, bytes } => {
                serializer.collect_str(&FileAsBase64 { file, bytes: *bytes })
            }
            Payload::Device(_) => Err(ser::Error::custom(OnDevice::unreadable())),
        }
    }
}

impl<'de> Deserialize<'de> for Blob {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct BlobVisitor;
        impl Visitor<'_> for BlobVisitor {
            type Value = Blob;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("base64 text")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Blob, E> {
                Blob::parse(text).map_err(E::custom)
            }
            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Blob, E> {
                apart::get(number)
                    .ok_or_else(|| E::invalid_type(Unexpected::Unsigned(number), &self))
            }
        }
        if apart::is_reading() {
            return deserializer.deserialize_any(BlobVisitor);
        }
        deserializer.deserialize_str(BlobVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_and_large_payloads_read_back_and_serialise() {
        for size in [0usize, 1, 5, 1000, 786_432, 786_433, 3_000_001] {
            let bytes: Vec<u8> = (0..size).map(|i| (i * 31 % 251) as u8).collect();
            let json = serde_json::to_vec(&Blob::from_bytes(&bytes)).unwrap();
            let blob: Blob = serde_json::from_slice(&json).unwrap();
            let spilled = matches!(blob.payload, Payload::File { .. });
            assert_eq!(spilled, json.len() - 2 > SPILL_BYTES, "{size} bytes");
            assert!(blob.decoded_len_hint() >= size as u64);
            assert!(blob.decoded_len_hint() <= size as u64 + 3);
            for copy in [&blob, &blob.clone()] {
                assert!(copy.to_bytes(size as u64).unwrap() == bytes, "{size} bytes");
            }
            assert!(size == 0 || blob.to_bytes(size as u64 - 1).is_err());
            assert!(serde_json::to_vec(&blob).unwrap() == json, "{size} bytes");
        }
    }

    #[test]
    fn payloads_are_compared_by_their_bytes_in_whichever_form() {
        for size in [0usize, 3, 60_000, 2_000_000] {
            let bytes: Vec<u8> = (0..size).map(|i| (i % 251) as u8).collect();
            let (text, filed) =
                (Blob::from_bytes(&bytes), Blob::in_file(&mut &bytes[..]).unwrap().0);
            assert!(text.same_bytes(&filed).unwrap() && filed.same_bytes(&text).unwrap());
            assert!(filed.same_bytes(&filed.clone()).unwrap());
            let longer = Blob::from_bytes(&[&bytes[..], &[0]].concat());
            assert!(!filed.same_bytes(&longer).unwrap() && !longer.same_bytes(&filed).unwrap());
            if let Some(last) = bytes.last() {
                let mut other = bytes.clone();
                *other.last_mut().unwrap() = last ^ 1;
                assert!(!filed.same_bytes(&Blob::from_bytes(&other)).unwrap(), "{size} bytes");
            }
        }
        assert!(Blob::from_base64("!").same_bytes(&Blob::from_bytes(&[1])).is_err());
    }

    #[test]
    fn what_stays_on_a_device_is_told_apart_and_never_read() {
        let content = |bytes| OnDevice {
            id: "one".to_owned(),
            device: 3,
            handle: vec![1; 64],
            bytes,
            allocation_bytes: 2 << 20,
            held: Box::new(()),
        };
        let blob = Blob::of_device(content(12));
        assert_eq!(blob.on_device().map(|content| content.device), Some(3));
        assert!(blob.decoded_len().unwrap() == 12 && blob.decoded_len_hint() == 0);
        assert!(!blob.is_empty() && Blob::of_device(content(0)).is_empty());
        assert!(blob.same_bytes(&blob.clone()).unwrap());
        assert!(blob.same_bytes(&Blob::of_device(content(12))).is_err());
        for error in [blob.to_bytes(12).unwrap_err(), read_back(&blob).unwrap_err()] {
            assert_eq!(error.kind(), io::ErrorKind::InvalidData);
            assert!(error.to_string().contains("is in device memory"), "{error}");
        }
        assert!(serde_json::to_vec(&blob).is_err());
        let (text, apart) = apart::set_apart(|| serde_json::to_string(&blob));
        assert!(text.unwrap() == "0" && apart[0].same_bytes(&blob).unwrap());
    }

    fn read_back(blob: &Blob) -> io::Result<Blob> {
        let (kept, bytes, mut content) = blob.kept();
        Blob::from_kept(kept, bytes, &mut content)
    }

    #[test]
    fn malformed_text_is_refused_with_its_offset() {
        let mut text = encode(&vec![1; 2_000_000]);
        text.replace_range(1_500_000..1_500_001, "!");
        for (text, offset) in [("abc!", "character 3"), (&text, "character 1500000")] {
            let json = serde_json::to_string(text).unwrap();
            let error = serde_json::from_str::<Blob>(&json).unwrap_err().to_string();
            assert!(error.contains(offset), "{error}");
        }
        let error = serde_json::from_str::<Blob>("17").unwrap_err().to_string();
        assert!(error.contains("expected base64 text"), "{error}");
        let late = Blob::from_base64("ab!").to_bytes(10).unwrap_err();
        assert_eq!(late.kind(), io::ErrorKind::InvalidData);
    }
}
