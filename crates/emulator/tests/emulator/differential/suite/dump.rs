//! Results of all forms on one device, as a file that grows while they run.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

const MAGIC: &[u8; 8] = b"wgdiff01";

/// What became of a form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    /// It ran; the bytes it wrote.
    Ran(Vec<u8>),
    /// The device's compiler refused it; what it said.
    Refused(String),
    /// It did not end well.
    Failed(String),
}

/// Results by form, and where they come from.
pub struct Dump {
    /// Device and driver.
    pub origin: String,
    /// Of the suite that ran.
    pub fingerprint: u64,
    pub records: BTreeMap<usize, Record>,
}

/// A dump being written.
pub struct Writer(File);

impl Writer {
    /// Starts a new file.
    pub fn create(path: &Path, origin: &str, fingerprint: u64) -> io::Result<Self> {
        let mut file = File::create(path)?;
        file.write_all(MAGIC)?;
        file.write_all(&fingerprint.to_le_bytes())?;
        file.write_all(&(origin.len() as u32).to_le_bytes())?;
        file.write_all(origin.as_bytes())?;
        Ok(Self(file))
    }

    /// Goes on with a file.
    pub fn append(path: &Path) -> io::Result<Self> {
        Ok(Self(OpenOptions::new().append(true).open(path)?))
    }

    pub fn put(&mut self, form: usize, record: &Record) -> io::Result<()> {
        let (status, bytes) = match record {
            Record::Ran(bytes) => (0u8, &bytes[..]),
            Record::Refused(text) => (1, text.as_bytes()),
            Record::Failed(text) => (2, text.as_bytes()),
        };
        let mut all = (form as u32).to_le_bytes().to_vec();
        all.push(status);
        all.extend((bytes.len() as u32).to_le_bytes());
        all.extend(bytes);
        self.0.write_all(&all)
    }
}

/// The bytes of a file, from the front.
pub struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    pub fn take(&mut self, n: usize) -> Result<&'a [u8], String> {
        let Some((head, rest)) = self.0.split_at_checked(n) else {
            return Err(format!("the file ends early: {} bytes instead of {n}", self.0.len()));
        };
        self.0 = rest;
        Ok(head)
    }

    pub fn u8(&mut self) -> Result<u8, String> {
        Ok(self.take(1)?[0])
    }

    pub fn u32(&mut self) -> Result<usize, String> {
        Ok(super::form::little(self.take(4)?) as usize)
    }

    pub fn u64(&mut self) -> Result<u64, String> {
        Ok(super::form::little(self.take(8)?))
    }

    pub fn text(&mut self) -> Result<String, String> {
        let n = self.u32()?;
        Ok(String::from_utf8_lossy(self.take(n)?).into_owned())
    }
}

impl Dump {
    pub fn read(path: &Path) -> Result<Self, String> {
        let bytes = std::fs::read(path).map_err(|e| format!("{}: {e}", path.display()))?;
        Self::parse(&bytes).map_err(|e| format!("{}: {e}", path.display()))
    }

    fn parse(bytes: &[u8]) -> Result<Self, String> {
        let mut r = Reader(bytes);
        if r.take(8)? != MAGIC {
            return Err("it is not a dump".into());
        }
        let fingerprint = r.u64()?;
        let origin = r.text()?;
        let mut records = BTreeMap::new();
        while !r.0.is_empty() {
            let (form, status, n) = (r.u32()?, r.u8()?, r.u32()?);
            let bytes = r.take(n)?;
            let text = || String::from_utf8_lossy(bytes).into_owned();
            let record = match status {
                0 => Record::Ran(bytes.to_vec()),
                1 => Record::Refused(text()),
                _ => Record::Failed(text()),
            };
            records.insert(form, record);
        }
        Ok(Self { origin, fingerprint, records })
    }
}
