//! Matrix files with any name. The first bytes determine the format. The main function is [`read`].

use std::io::{self, Read};

use super::Csr;
use super::market::{self, MarketError, MarketInfo, ReadLimits};
use super::spasm::{self, Spasm, SpasmError};

/// The format of a matrix file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// Matrix Market, with the content of the header.
    Market(MarketInfo),
    /// SPASM, which has binary32 values and no symmetry.
    Spasm,
}

impl FileKind {
    /// Returns the layout, field and symmetry, in Matrix Market terms.
    pub fn words(&self) -> [&'static str; 3] {
        match self {
            Self::Market(info) => info.words(),
            Self::Spasm => ["spasm", "real", "general"],
        }
    }
}

/// Reasons why a file is not a usable matrix.
#[derive(Debug, thiserror::Error)]
pub enum MatrixFileError {
    /// The file is not a valid Matrix Market file.
    #[error(transparent)]
    Market(#[from] MarketError),
    /// The SPASM file is invalid.
    #[error(transparent)]
    Spasm(#[from] SpasmError),
}

impl MatrixFileError {
    /// Returns the I/O error if reading the file failed.
    pub fn io(&self) -> Option<&io::Error> {
        match self {
            Self::Market(MarketError::Io(error)) | Self::Spasm(SpasmError::Io(error)) => {
                Some(error)
            }
            _ => None,
        }
    }
}

impl From<io::Error> for MatrixFileError {
    fn from(error: io::Error) -> Self {
        Self::Market(MarketError::Io(error))
    }
}

/// Reads a whole file of `bytes` bytes. Repeatedly calls `progress` with the number of bytes read
/// so far.
///
/// # Errors
/// The error describes the problem in the file and its location.
pub fn read(
    from: &mut impl Read,
    bytes: u64,
    limits: &ReadLimits,
    progress: impl FnMut(u64),
) -> Result<(Csr, FileKind), MatrixFileError> {
    let mut first = Vec::new();
    from.by_ref().take(spasm::MAGIC.len() as u64).read_to_end(&mut first)?;
    let is_spasm = first == spasm::MAGIC;
    let whole = &mut first.as_slice().chain(from);
    if is_spasm {
        let spasm = Spasm::read(whole, bytes, limits, progress)?;
        return Ok((spasm.to_csr(), FileKind::Spasm));
    }
    let (csr, info) = market::read(whole, limits, progress)?;
    Ok((csr, FileKind::Market(info)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MatrixGenerator;

    #[test]
    fn a_file_is_what_it_begins_with() {
        let csr = "banded:n=50,half=3".parse::<MatrixGenerator>().unwrap().generate().unwrap();
        // The values are rounded to binary32, since SPASM stores no others.
        let csr = csr.with_values(|value| f64::from(value as f32));
        let (mut text, mut binary) = (Vec::new(), Vec::new());
        market::write(&csr, &mut text).unwrap();
        Spasm::from_csr(&csr).unwrap().write(&mut binary).unwrap();
        for (file, layout) in [(text, "coordinate"), (binary, "spasm")] {
            let mut seen = 0;
            let limits = ReadLimits::default();
            let from = &mut file.as_slice();
            let (came, kind) = read(from, file.len() as u64, &limits, |at| seen = at).unwrap();
            assert_eq!(came, csr);
            assert_eq!(kind.words(), [layout, "real", "general"]);
            assert_eq!(seen, file.len() as u64, "all of it was read, and told");
        }
        for text in ["", "SP", "SPAM"] {
            let read = read(&mut text.as_bytes(), 4, &ReadLimits::default(), |_| ());
            assert!(matches!(read, Err(MatrixFileError::Market(MarketError::Header(_)))), "{text}");
        }
    }
}
