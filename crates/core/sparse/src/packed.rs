//! Packed matrix files, in which uploads are stored so that they are parsed only once.
//!
//! The format is little-endian: 8 magic bytes; the numbers of rows, columns and entries, 4 bytes
//! each; 4 zero bytes; row pointers and columns, 4 bytes each; values, 8 bytes each. The main
//! functions are [`write()`] and [`read`].

use std::io::{self, Read, Write};

use super::Csr;

const MAGIC: [u8; 8] = *b"WGCSR\0\0\x01";

/// The number of elements that are converted at once.
const CHUNK: usize = 16 << 10;

/// Returns the size of the file, in bytes.
pub fn packed_bytes(csr: &Csr) -> u64 {
    24 + 4 * (u64::from(csr.rows()) + 1) + 12 * u64::from(csr.nnz())
}

/// Writes numbers as little-endian bytes.
///
/// # Errors
/// Returns the errors of the writer.
pub fn write_numbers<T: Copy, const N: usize>(
    to: &mut (impl Write + ?Sized),
    numbers: &[T],
    bytes_of: impl Fn(T) -> [u8; N],
) -> io::Result<()> {
    let mut bytes = vec![[0; N]; numbers.len().min(CHUNK)];
    for chunk in numbers.chunks(CHUNK) {
        let bytes = &mut bytes[..chunk.len()];
        bytes.iter_mut().zip(chunk).for_each(|(bytes, &number)| *bytes = bytes_of(number));
        to.write_all(bytes.as_flattened())?;
    }
    Ok(())
}

/// Reads numbers from little-endian bytes. Memory grows with the numbers that are read, not with
/// `count`.
pub(crate) fn read_numbers<T, const N: usize>(
    from: &mut impl Read,
    count: u64,
    of_bytes: impl Fn([u8; N]) -> T,
) -> io::Result<Vec<T>> {
    let mut numbers = Vec::new();
    let mut bytes = vec![0; CHUNK * N];
    let mut left = count;
    while left > 0 {
        let now = left.min(CHUNK as u64) as usize;
        from.read_exact(&mut bytes[..now * N])?;
        let (whole, _) = bytes[..now * N].as_chunks::<N>();
        numbers.extend(whole.iter().map(|bytes| of_bytes(*bytes)));
        left -= now as u64;
    }
    Ok(numbers)
}

/// Writes a matrix.
///
/// # Errors
/// Returns the errors of the writer.
pub fn write(csr: &Csr, to: &mut impl Write) -> io::Result<()> {
    to.write_all(&MAGIC)?;
    write_numbers(to, &[csr.rows(), csr.cols(), csr.nnz(), 0], u32::to_le_bytes)?;
    write_numbers(to, csr.row_ptr(), u32::to_le_bytes)?;
    write_numbers(to, csr.col_indices(), u32::to_le_bytes)?;
    write_numbers(to, csr.values(), f64::to_le_bytes)
}

/// Reads a matrix and checks it with [`Csr::new`].
///
/// # Errors
/// Returns the errors of the reader, or [`io::ErrorKind::InvalidData`] if the content is not a
/// valid matrix.
pub fn read(from: &mut impl Read) -> io::Result<Csr> {
    let invalid = |why: String| io::Error::new(io::ErrorKind::InvalidData, why);
    let mut magic = [0; 8];
    from.read_exact(&mut magic)?;
    if magic != MAGIC {
        return Err(invalid("not a packed matrix".to_owned()));
    }
    let head = read_numbers(from, 4, u32::from_le_bytes)?;
    let row_ptr = read_numbers(from, u64::from(head[0]) + 1, u32::from_le_bytes)?;
    let col_indices = read_numbers(from, u64::from(head[2]), u32::from_le_bytes)?;
    let values = read_numbers(from, u64::from(head[2]), f64::from_le_bytes)?;
    Csr::new(head[1], row_ptr, col_indices, values).map_err(|error| invalid(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MatrixGenerator;

    #[test]
    fn a_matrix_reads_back_and_damage_is_noticed() {
        let csr = "rmat:scale=8,edges=20".parse::<MatrixGenerator>().unwrap().generate().unwrap();
        let mut file = Vec::new();
        write(&csr, &mut file).unwrap();
        assert_eq!(file.len() as u64, packed_bytes(&csr));
        assert_eq!(read(&mut file.as_slice()).unwrap(), csr);
        assert!(read(&mut &file[..file.len() - 1]).is_err());
        let mut other = file.clone();
        // The edit makes a column index lie outside the matrix.
        other[24 + 4 * (csr.rows() as usize + 1) + 3] = 0x7f;
        assert_eq!(read(&mut other.as_slice()).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
