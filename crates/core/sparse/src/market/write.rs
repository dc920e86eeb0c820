//! Writes Matrix Market files.

use std::io::{self, Write};

use crate::Csr;

/// Writes a matrix row by row, in coordinate layout with real values and general symmetry. Values
/// are written with the fewest digits that are read back as the same value.
///
/// # Errors
/// Returns the errors of the writer.
pub fn write(csr: &Csr, to: &mut impl Write) -> io::Result<()> {
    writeln!(to, "%%MatrixMarket matrix coordinate real general")?;
    writeln!(to, "{} {} {}", csr.rows(), csr.cols(), csr.nnz())?;
    for (row, column, value) in csr.entries() {
        // The notation with an exponent keeps lines short.
        writeln!(to, "{} {} {value:e}", row + 1, column + 1)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::market::{ReadLimits, read};

    #[test]
    fn what_is_written_reads_back_to_the_bit() {
        let values = vec![-0.1, 5e-324, f64::MAX, 0.0, 3.0];
        let csr = Csr::new(7, vec![0, 2, 2, 5], vec![0, 6, 1, 2, 3], values).unwrap();
        let mut file = Vec::new();
        write(&csr, &mut file).unwrap();
        let (back, _) = read(&mut file.as_slice(), &ReadLimits::default(), |_| ()).unwrap();
        assert_eq!(back, csr);
    }
}
