//! The `.npy` format, versions 1 to 3 (numpy, NEP 1). The main type is [`NpyHeader`].

use std::io::Read;

use thiserror::Error;

use crate::{Dtype, shape};

const MAGIC: [u8; 6] = *b"\x93NUMPY";

/// Maximum length of a header, in bytes. By default numpy rejects headers of more than 10 000
/// characters.
const MAX_HEADER: usize = 1 << 16;

/// Alignment of the data in bytes; numpy pads the header to a multiple of it.
const ALIGNMENT: usize = 64;

/// Reasons why a `.npy` file cannot be used.
#[derive(Debug, Error)]
pub enum NpyError {
    /// The file does not start with the magic bytes.
    #[error(
        "not a .npy file: it does not start with \\x93NUMPY; for plain elements use `format: raw`"
    )]
    Magic,
    /// The version is unknown.
    #[error("version {0}.{1} of the .npy format is not known; 1.0, 2.0 and 3.0 are")]
    Version(u8, u8),
    /// The header is malformed.
    #[error("malformed .npy header: {0}")]
    Header(String),
    /// The element type is not supported, or is not the tensor's.
    #[error("the .npy file holds `{0}`; use a little-endian number type or bool")]
    Descr(String),
    /// The data is column-major.
    #[error("the .npy file is in Fortran order; save `numpy.ascontiguousarray(x)` instead")]
    FortranOrder,
    /// Reading failed, for example because of malformed base64 or damaged compressed data.
    #[error("cannot read the .npy header: {0}")]
    Read(#[from] std::io::Error),
}

/// The content of a `.npy` header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NpyHeader {
    /// Type string of numpy, e.g. `<f4`.
    pub descr: String,
    pub shape: Vec<u64>,
}

impl NpyHeader {
    /// Reads the magic bytes, the version and the header. The elements follow in `reader`.
    pub fn read(reader: &mut impl Read) -> Result<Self, NpyError> {
        let mut start = [0; 8];
        reader.read_exact(&mut start).map_err(|error| match error.kind() {
            std::io::ErrorKind::UnexpectedEof => NpyError::Magic,
            _ => NpyError::Read(error),
        })?;
        if start[..6] != MAGIC {
            return Err(NpyError::Magic);
        }
        let length = match start[6] {
            1 => {
                let mut length = [0; 2];
                reader.read_exact(&mut length)?;
                usize::from(u16::from_le_bytes(length))
            }
            2 | 3 => {
                let mut length = [0; 4];
                reader.read_exact(&mut length)?;
                u32::from_le_bytes(length) as usize
            }
            major => return Err(NpyError::Version(major, start[7])),
        };
        if length > MAX_HEADER {
            let message = format!("{length} bytes long; at most {MAX_HEADER} are accepted");
            return Err(NpyError::Header(message));
        }
        let mut text = vec![0; length];
        reader.read_exact(&mut text)?;
        let text =
            String::from_utf8(text).map_err(|_| NpyError::Header("it is not text".to_owned()))?;
        Self::parse(&text)
    }

    fn parse(text: &str) -> Result<Self, NpyError> {
        let mut cursor = Cursor { rest: text };
        let (mut descr, mut fortran, mut extents) = (None, None, None);
        cursor.expect('{')?;
        while !cursor.take('}') {
            let key = cursor.string()?;
            cursor.expect(':')?;
            match key {
                "descr" => descr = Some(cursor.string()?.to_owned()),
                "fortran_order" => fortran = Some(cursor.boolean()?),
                "shape" => extents = Some(cursor.tuple()?),
                other => return Err(NpyError::Header(format!("unknown key `{other}`"))),
            }
            if !cursor.take(',') {
                cursor.expect('}')?;
                break;
            }
        }
        if !cursor.rest.trim().is_empty() {
            return Err(NpyError::Header("text after the dictionary".to_owned()));
        }
        let missing = |key: &str| NpyError::Header(format!("`{key}` is missing"));
        if fortran.ok_or_else(|| missing("fortran_order"))? {
            return Err(NpyError::FortranOrder);
        }
        let descr: String = descr.ok_or_else(|| missing("descr"))?;
        Ok(Self { descr, shape: extents.ok_or_else(|| missing("shape"))? })
    }

    /// Checks that the elements have type `dtype`. numpy has no bfloat16, 8-bit or 4-bit floats:
    /// extensions store them as raw bytes of the same size (`V2`, `V1`) or as unsigned integers.
    pub fn check_dtype(&self, dtype: Dtype) -> Result<(), NpyError> {
        let (order, code) = self.descr.split_at(usize::from(self.descr.is_ascii()));
        let one_byte = dtype.size() == 1;
        let order_fits =
            order == "<" || order == "=" || (order == "|" && (one_byte || code == "V2"));
        let own = &code_of(dtype)[1..];
        let stands_in = matches!(
            (dtype, code),
            (Dtype::Bfloat16, "V2" | "u2")
                | (Dtype::Float8E4m3 | Dtype::Float8E5m2 | Dtype::Float8E8m0, "V1" | "u1" | "f1")
                | (Dtype::Float4E2m1x2 | Dtype::Int4x2 | Dtype::Uint4x2, "V1" | "u1")
        );
        if order_fits && (code == own || stands_in) {
            return Ok(());
        }
        let shown: String = self.descr.chars().take(40).collect();
        Err(NpyError::Descr(format!("{shown}` where {dtype} (`{}`) is expected", code_of(dtype))))
    }

    /// Writes a header, padded as numpy pads it.
    pub fn write(dtype: Dtype, extents: &[u64]) -> Vec<u8> {
        let comma = if extents.len() == 1 { "," } else { "" };
        let inner = shape::shown(extents);
        let tuple = format!("({}{comma})", &inner[1..inner.len() - 1]);
        let dictionary = format!(
            "{{'descr': '{}', 'fortran_order': False, 'shape': {tuple}, }}",
            code_of(dtype)
        );
        let unpadded = MAGIC.len() + 4 + dictionary.len() + 1;
        let padding = unpadded.next_multiple_of(ALIGNMENT) - unpadded;
        // With at most 32 extents of 20 digits, the length always fits the 16 bits of version 1.
        let length = (dictionary.len() + padding + 1) as u16;
        let mut header = MAGIC.to_vec();
        header.extend([1, 0]);
        header.extend(length.to_le_bytes());
        header.extend(dictionary.bytes());
        header.extend(std::iter::repeat_n(b' ', padding));
        header.push(b'\n');
        header
    }
}

/// Returns numpy's type string of an element type.
fn code_of(dtype: Dtype) -> &'static str {
    match dtype {
        Dtype::Float64 => "<f8",
        Dtype::Float32 => "<f4",
        Dtype::Float16 => "<f2",
        Dtype::Bfloat16 => "<V2",
        Dtype::Float8E4m3
        | Dtype::Float8E5m2
        | Dtype::Float8E8m0
        | Dtype::Float4E2m1x2
        | Dtype::Int4x2
        | Dtype::Uint4x2 => "|V1",
        Dtype::Int8 => "|i1",
        Dtype::Int16 => "<i2",
        Dtype::Int32 => "<i4",
        Dtype::Int64 => "<i8",
        Dtype::Uint8 => "|u1",
        Dtype::Uint16 => "<u2",
        Dtype::Uint32 => "<u4",
        Dtype::Uint64 => "<u8",
        Dtype::Bool => "|b1",
        Dtype::Complex64 => "<c8",
        Dtype::Complex128 => "<c16",
    }
}

/// Parser of the Python literals that a header may contain.
struct Cursor<'a> {
    rest: &'a str,
}

impl<'a> Cursor<'a> {
    fn take(&mut self, symbol: char) -> bool {
        self.rest = self.rest.trim_start();
        match self.rest.strip_prefix(symbol) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, symbol: char) -> Result<(), NpyError> {
        if self.take(symbol) {
            return Ok(());
        }
        let found: String = self.rest.chars().take(20).collect();
        Err(NpyError::Header(format!("expected `{symbol}`, found `{found}`")))
    }

    fn string(&mut self) -> Result<&'a str, NpyError> {
        let quote = if self.take('"') { '"' } else { '\'' };
        if quote == '\'' {
            self.expect('\'')?;
        }
        let Some((text, rest)) = self.rest.split_once(quote) else {
            return Err(NpyError::Header("a string does not end".to_owned()));
        };
        self.rest = rest;
        Ok(text)
    }

    fn boolean(&mut self) -> Result<bool, NpyError> {
        self.rest = self.rest.trim_start();
        for (word, value) in [("True", true), ("False", false)] {
            if let Some(rest) = self.rest.strip_prefix(word) {
                self.rest = rest;
                return Ok(value);
            }
        }
        Err(NpyError::Header("`fortran_order` is neither True nor False".to_owned()))
    }

    fn tuple(&mut self) -> Result<Vec<u64>, NpyError> {
        let mut extents = Vec::new();
        self.expect('(')?;
        while !self.take(')') {
            self.rest = self.rest.trim_start();
            let digits = self.rest.bytes().take_while(u8::is_ascii_digit).count();
            let (number, rest) = self.rest.split_at(digits);
            let extent = number.parse().map_err(|_| {
                NpyError::Header(format!("extent `{number}` of `shape` is not a 64-bit integer"))
            })?;
            extents.push(extent);
            // Python 2 wrote long integers as `3L`.
            self.rest = rest.strip_prefix('L').unwrap_or(rest);
            if extents.len() > shape::MAX_RANK {
                return Err(NpyError::Header(format!("more than {} dimensions", shape::MAX_RANK)));
            }
            if !self.take(',') {
                self.expect(')')?;
                break;
            }
        }
        Ok(extents)
    }
}
