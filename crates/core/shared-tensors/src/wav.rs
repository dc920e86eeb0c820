//! Reader of WAV files: samples become 32-bit floats from -1 to 1, one row for each channel.

use std::fs::File;
use std::io::{self, BufReader, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use hound::{SampleFormat, WavReader};
use warpgauge_model::FailureCode;
use warpgauge_tensor::Dtype;

use crate::{FileElements, TensorFileError};

/// Number of bytes that are read at once, and that are buffered for each channel.
const BUFFER: usize = 64 << 10;

/// Maximum number of channels. The buffers of all channels are in memory at once.
const MAX_CHANNELS: u16 = 256;

pub(crate) fn read(file: &File, max_bytes: u64) -> Result<FileElements, TensorFileError> {
    let length = file.metadata()?.len();
    let mut from = file.try_clone()?;
    from.seek(SeekFrom::Start(0))?;
    let mut reader = WavReader::new(BufReader::with_capacity(BUFFER, from)).map_err(wrong)?;
    let spec = reader.spec();
    if spec.channels > MAX_CHANNELS || spec.sample_rate == 0 {
        return Err(TensorFileError::data(format!(
            "the WAV file has {} channels at {} Hz; at most {MAX_CHANNELS} channels and a rate above zero are accepted",
            spec.channels, spec.sample_rate
        )));
    }
    let (samples, frames) = (u64::from(reader.len()), u64::from(reader.duration()));
    if samples * u64::from(spec.bits_per_sample.div_ceil(8)) > length {
        return Err(truncated());
    }
    if frames == 0 {
        return Err(TensorFileError::Invalid {
            code: FailureCode::InvalidShape,
            message: "the WAV file has no samples; a tensor has at least one element".to_owned(),
        });
    }
    let bytes = samples * 4;
    if bytes > max_bytes {
        return Err(TensorFileError::too_large(bytes, max_bytes));
    }
    let mut planes = Planes::new(usize::from(spec.channels), frames)?;
    match spec.sample_format {
        SampleFormat::Float => {
            for sample in reader.samples::<f32>() {
                planes.push(sample.map_err(wrong)?)?;
            }
        }
        SampleFormat::Int => {
            // hound accepts 8 to 32 bits.
            let full = (1u64 << (spec.bits_per_sample.clamp(1, 32) - 1)) as f64;
            for sample in reader.samples::<i32>() {
                planes.push((f64::from(sample.map_err(wrong)?) / full) as f32)?;
            }
        }
    }
    let file = planes.finish()?;
    let shape = match spec.channels {
        1 => vec![frames],
        channels => vec![u64::from(channels), frames],
    };
    let dtype = Dtype::Float32;
    Ok(FileElements { file, offset: 0, bytes, dtype, shape, sample_rate: Some(spec.sample_rate) })
}

/// Writer that separates the channels into rows of a file.
struct Planes {
    file: File,
    frames: u64,
    next: usize,
    /// For each channel, the number of frames that are written to the file, and the bytes that are
    /// not yet written.
    channels: Vec<(u64, Vec<u8>)>,
}

impl Planes {
    fn new(channels: usize, frames: u64) -> io::Result<Self> {
        let channels = (0..channels).map(|_| (0, Vec::new())).collect();
        Ok(Self { file: tempfile::tempfile()?, frames, next: 0, channels })
    }

    fn push(&mut self, sample: f32) -> io::Result<()> {
        let channel = self.next;
        self.channels[channel].1.extend(sample.to_le_bytes());
        self.next = (channel + 1) % self.channels.len();
        if self.channels[channel].1.len() >= BUFFER { self.flush(channel) } else { Ok(()) }
    }

    fn flush(&mut self, channel: usize) -> io::Result<()> {
        let (done, pending) = &mut self.channels[channel];
        self.file.write_all_at(pending, (channel as u64 * self.frames + *done) * 4)?;
        *done += pending.len() as u64 / 4;
        pending.clear();
        Ok(())
    }

    fn finish(mut self) -> Result<Arc<File>, TensorFileError> {
        for channel in 0..self.channels.len() {
            self.flush(channel)?;
        }
        // hound stops without an error at the end of the data chunk, and with an error at the end
        // of the file.
        let whole = self.channels.iter().all(|(done, _)| *done == self.frames);
        if whole { Ok(Arc::new(self.file)) } else { Err(truncated()) }
    }
}

fn truncated() -> TensorFileError {
    TensorFileError::data(
        "the WAV file contains fewer samples than its header announces: it was truncated, or \
         never finished",
    )
}

fn wrong(error: hound::Error) -> TensorFileError {
    match error {
        hound::Error::IoError(error) if error.kind() == io::ErrorKind::UnexpectedEof => truncated(),
        // hound's error for a truncated file has no kind.
        hound::Error::IoError(error) if error.raw_os_error().is_none() => truncated(),
        hound::Error::IoError(error) => TensorFileError::Io(error),
        hound::Error::Unsupported => TensorFileError::data(
            "the format of the WAV file is not supported; use integers of 8, 16, 24 or 32 bits, \
             or 32-bit floats",
        ),
        other => TensorFileError::data(format!("the WAV file is invalid: {other}")),
    }
}
