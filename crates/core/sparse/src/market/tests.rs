use super::blocks::BLOCK_BYTES;
use super::*;

fn read_text(text: &str) -> Result<Csr, MarketError> {
    let (csr, _) = read(&mut text.as_bytes(), &ReadLimits::default(), |_| ())?;
    Ok(csr)
}

fn dense(csr: &Csr) -> Vec<Vec<f64>> {
    let mut dense = vec![vec![0.0; csr.cols() as usize]; csr.rows() as usize];
    for (row, column, value) in csr.entries() {
        dense[row as usize][column as usize] += value;
    }
    dense
}

#[test]
fn every_kind_that_is_served_is_read() {
    let cases = [
        (
            "%%MatrixMarket matrix coordinate real general\n% a comment\n\n  % one more\n2 3 3\n1 1 1.5\n\
             2 3 -2e1\r\n1 2 4D0\n",
            vec![vec![1.5, 4.0, 0.0], vec![0.0, 0.0, -20.0]],
        ),
        (
            "%%matrixmarket MATRIX coordinate integer symmetric\n2 2 2\n1 1 3\n2 1 -4",
            vec![vec![3.0, -4.0], vec![-4.0, 0.0]],
        ),
        (
            "%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n2 1 5\n",
            vec![vec![0.0, -5.0], vec![5.0, 0.0]],
        ),
        (
            "%%MatrixMarket matrix coordinate pattern symmetric\n2 2 2\n2 1\n2 2\n",
            vec![vec![0.0, 1.0], vec![1.0, 1.0]],
        ),
        (
            "%%MatrixMarket matrix array real general\n2 2\n1\n2\n0\n4\n",
            vec![vec![1.0, 0.0], vec![2.0, 4.0]],
        ),
        (
            "%%MatrixMarket matrix array integer symmetric\n3 3\n1 2 3\n4 5\n6\n",
            vec![vec![1.0, 2.0, 3.0], vec![2.0, 4.0, 5.0], vec![3.0, 5.0, 6.0]],
        ),
        (
            "%%MatrixMarket matrix array real skew-symmetric\n3 3\n1\n2\n3\n",
            vec![vec![0.0, -1.0, -2.0], vec![1.0, 0.0, -3.0], vec![2.0, 3.0, 0.0]],
        ),
        // Entries with the same row and column are added.
        ("%%MatrixMarket matrix coordinate real general\n1 1 2\n1 1 1\n1 1 2\n", vec![vec![3.0]]),
    ];
    for (text, wanted) in cases {
        assert_eq!(dense(&read_text(text).unwrap()), wanted, "{text}");
    }
}

#[test]
fn what_is_wrong_is_told_with_its_line() {
    let coordinate =
        |rest: &str| format!("%%MatrixMarket matrix coordinate real general\n% c\n{rest}");
    let cases = [
        (String::new(), "not a Matrix Market file"),
        ("hello\n".to_owned(), "not a Matrix Market file"),
        ("%%MatrixMarket matrix coordinate complex general\n1 1 0\n".to_owned(), "`complex`"),
        ("%%MatrixMarket matrix coordinate real hermitian\n1 1 0\n".to_owned(), "`hermitian`"),
        (coordinate(""), "line 3: the file ends before"),
        (coordinate("2 2\n"), "line 3: expected the numbers of rows, columns and entries"),
        (coordinate("2 2 x\n"), "line 3: expected"),
        (coordinate("2 2 3\n1 1 1\n2 2 2\n"), "ends after 2 of 3 entries"),
        (coordinate("2 2 1\n1 1 1\n2 2 2\n"), "more than the 1 entries"),
        (coordinate("2 2 1\n3 1 1\n"), "line 4: row \"3\" is not an integer from 1 to 2"),
        (coordinate("2 2 1\n1 0 1\n"), "line 4: column \"0\""),
        (coordinate("2 2 1\n1 -1 1\n"), "line 4: column \"-1\""),
        (coordinate("2 2 1\n1 99999999999999999999 1\n"), "line 4: column"),
        (coordinate("2 2 1\n1 1\n"), "line 4: the value is missing"),
        (coordinate("2 2 1\n1 1 nan\n"), "line 4: \"nan\" is not a finite number"),
        (coordinate("2 2 1\n1 1 1e999\n"), "not a finite number"),
        (coordinate("2 2 1\n1 1 1 1\n"), "unexpected word"),
        (coordinate("2 2 1\n1 1 x\n"), "\"x\" is not a number"),
        (coordinate("3000000000 2 1\n"), "line 3: num_rows is 3000000000"),
        (coordinate("9 9 99999999999999\n"), "at most 8589934592 are accepted"),
        ("%%MatrixMarket matrix coordinate real symmetric\n2 3 0\n".to_owned(), "not square"),
        (
            "%%MatrixMarket matrix coordinate real symmetric\n2 2 1\n1 2 1\n".to_owned(),
            "above the diagonal",
        ),
        (
            "%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n1 1 1\n".to_owned(),
            "no entries on the diagonal",
        ),
        (
            "%%MatrixMarket matrix coordinate integer general\n1 1 1\n1 1 1.5\n".to_owned(),
            "\"1.5\" is not an integer",
        ),
    ];
    for (text, message) in cases {
        let error = read_text(&text).unwrap_err().to_string();
        assert!(error.contains(message), "{text:?}: {error}");
    }
}

/// Lines that a block or a piece could cut are neither lost nor read twice, and are counted.
#[test]
fn files_of_several_blocks_are_read_whole() {
    let entries = 700_000u32;
    let mut text = format!("%%MatrixMarket matrix coordinate real general\n1000 1000 {entries}\n");
    for at in 0..entries {
        use std::fmt::Write;
        writeln!(text, "{} {} {}.25", at / 700 + 1, at % 700 + 1, at).unwrap();
    }
    assert!(text.len() > BLOCK_BYTES);
    let mut told = Vec::new();
    let bytes = text.len() as u64;
    let (csr, info) =
        read(&mut text.as_bytes(), &ReadLimits::default(), |read| told.push(read)).unwrap();
    assert_eq!((csr.nnz(), info.stored), (entries, u64::from(entries)));
    for (at, (row, column, value)) in csr.entries().enumerate() {
        let wanted = (at as u32 / 700, at as u32 % 700, at as f64 + 0.25);
        assert_eq!((row, column, value), wanted);
    }
    assert!(told.len() > 2 && told.is_sorted() && told.last() == Some(&bytes), "{told:?}");
    text.truncate(text.trim_end().rfind('\n').unwrap() + 1);
    text.push_str("0 1 1\n");
    let error = read_text(&text).unwrap_err().to_string();
    assert!(error.starts_with(&format!("line {}: row \"0\"", entries + 2)), "{error}");
}

#[test]
fn a_line_without_an_end_takes_no_memory_beyond_a_block() {
    let mut endless = b"%%MatrixMarket matrix coordinate real general\n2 2 1\n"
        .as_slice()
        .chain(io::repeat(b'1'));
    let error = read(&mut endless, &ReadLimits::default(), |_| ()).unwrap_err().to_string();
    assert!(error.contains("longer than 8 MiB"), "{error}");
    let error = read(&mut io::repeat(b'%'), &ReadLimits::default(), |_| ()).unwrap_err();
    assert!(error.to_string().contains("longer than 1 MiB"), "{error}");
}

/// Measures a file of 10 million entries, beside reading the file without parsing. Run it with
/// `cargo test -p warpgauge-sparse --release -- --ignored --nocapture speed`.
#[test]
#[ignore = "a measurement, not a check"]
fn speed_of_ten_million_entries() {
    use std::io::{Seek, Write};
    use std::time::Instant;

    let entries = 10_000_000u64;
    let mut file = std::io::BufWriter::new(tempfile::tempfile().unwrap());
    writeln!(file, "%%MatrixMarket matrix coordinate real general\n1000000 1000000 {entries}")
        .unwrap();
    for at in 0..entries {
        let (row, column) = (at / 10 + 1, at * 7919 % 1_000_000 + 1);
        writeln!(file, "{row} {column} {}", (at % 99_991) as f64 / 1e5 - 0.5).unwrap();
    }
    let mut file = file.into_inner().unwrap();
    let bytes = file.stream_position().unwrap() as f64 / 1e6;
    file.rewind().unwrap();
    let began = Instant::now();
    std::io::copy(&mut file, &mut std::io::sink()).unwrap();
    let reading = began.elapsed().as_secs_f64();
    file.rewind().unwrap();
    let began = Instant::now();
    let (csr, _) = read(&mut file, &ReadLimits::default(), |_| ()).unwrap();
    let parsing = began.elapsed().as_secs_f64();
    assert_eq!(u64::from(csr.nnz()), entries);
    println!(
        "{bytes:.0} MB: read in {reading:.2} s ({:.0} MB/s, from the cache), parsed in {parsing:.2} s \
         ({:.0} MB/s, {} threads)",
        bytes / reading,
        bytes / parsing,
        rayon::current_num_threads()
    );
}
