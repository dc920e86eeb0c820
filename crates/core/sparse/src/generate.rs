//! Generated matrices, whose bits are the same on every machine. All random numbers come from a
//! counter-based stream ([`Philox`]) through integer arithmetic, and each row uses a separate part
//! of the stream. The main type is [`MatrixGenerator`].

use std::fmt;
use std::str::FromStr;

use rayon::prelude::*;

use super::{Csr, MAX_EXTENT};
use warpgauge_tensor::Philox;

/// The maximum number of entries, rows and columns of a generated matrix.
const MAX_ENTRIES: u64 = 1 << 28;

/// A generator of a matrix, parsed from `kind:parameter=number,…`.
///
/// | kind | parameters | matrix |
/// |---|---|---|
/// | `poisson2d` | `nx`, `ny` | 5-point Laplacian of a grid: 4 and −1 |
/// | `poisson3d` | `nx`, `ny`, `nz` | 7-point Laplacian: 6 and −1 |
/// | `banded` | `n`, `half` | everything within `half` of the diagonal |
/// | `rmat` | `scale`, `edges` | 2^scale rows, `edges` · rows draws; R-MAT with 0.57, 0.19, 0.19, 0.05 |
/// | `block` | `n`, `size` | dense blocks on the diagonal, and at most one more in each row of blocks |
/// | `diagonal` | `n` | the diagonal |
/// | `random` | `rows`, `cols`, `nnz_per_row`, `long_rows` | every 16th row empty, `long_rows` with half the columns |
///
/// The values of all kinds except the Laplacians are multiples of 2⁻²³ in [−1, 1), and depend on
/// the parameter `seed`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MatrixGenerator {
    kind: Kind,
    seed: u64,
    text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Poisson { extents: [u32; 3], dimensions: usize },
    Banded { n: u32, half: u32 },
    Rmat { scale: u32, edges: u32 },
    Block { n: u32, size: u32 },
    Diagonal { n: u32 },
    Random { rows: u32, cols: u32, nnz_per_row: u32, long_rows: u32 },
}

/// Reasons why a matrix cannot be generated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GeneratorError {
    /// The kind is unknown.
    #[error("there is no generated matrix {0:?}; the kinds are {KINDS}")]
    Kind(String),
    /// A parameter is invalid.
    #[error("{kind}: {problem}")]
    Parameter {
        /// The name of the kind.
        kind: String,
        /// A description of the problem.
        problem: String,
    },
    /// The matrix would be too large.
    #[error("{text} would have {entries} entries; at most {MAX_ENTRIES} are generated")]
    TooLarge {
        /// The text by which the caller requested the matrix.
        text: String,
        /// The number of entries that it would have.
        entries: u64,
    },
}

/// The names of the kinds of generated matrices.
const KINDS: &str =
    "poisson2d, poisson3d, banded, rmat, block, diagonal and random, e.g. poisson2d:nx=512,ny=512";

impl FromStr for MatrixGenerator {
    type Err = GeneratorError;

    fn from_str(text: &str) -> Result<Self, GeneratorError> {
        let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
        let mut parameters = Parameters::new(kind, rest)?;
        let mut of = |name: &str, default| parameters.take(name, default);
        let parsed = match kind {
            "poisson2d" => {
                let nx = of("nx", None)?;
                let ny = of("ny", Some(nx))?;
                Kind::Poisson { extents: [nx, ny, 1], dimensions: 2 }
            }
            "poisson3d" => {
                let nx = of("nx", None)?;
                let extents = [nx, of("ny", Some(nx))?, of("nz", Some(nx))?];
                Kind::Poisson { extents, dimensions: 3 }
            }
            "banded" => Kind::Banded { n: of("n", None)?, half: of("half", None)? },
            "rmat" => Kind::Rmat { scale: of("scale", None)?, edges: of("edges", Some(16))? },
            "block" => Kind::Block { n: of("n", None)?, size: of("size", Some(16))? },
            "diagonal" => Kind::Diagonal { n: of("n", None)? },
            "random" => {
                let rows = of("rows", None)?;
                Kind::Random {
                    rows,
                    cols: of("cols", Some(rows))?,
                    nnz_per_row: of("nnz_per_row", Some(16))?,
                    long_rows: of("long_rows", Some(0))?,
                }
            }
            other => return Err(GeneratorError::Kind(other.chars().take(60).collect())),
        };
        let seed = u64::from(of("seed", Some(0))?);
        parameters.end()?;
        let generator = Self { kind: parsed, seed, text: text.to_owned() };
        generator.check(kind)?;
        Ok(generator)
    }
}

impl fmt::Display for MatrixGenerator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

struct Parameters<'a> {
    kind: &'a str,
    given: Vec<(&'a str, u32)>,
}

impl<'a> Parameters<'a> {
    fn new(kind: &'a str, text: &'a str) -> Result<Self, GeneratorError> {
        let mut given = Vec::new();
        for pair in text.split(',').filter(|pair| !pair.is_empty()).take(16) {
            let wrong = || GeneratorError::Parameter {
                kind: kind.chars().take(60).collect(),
                problem: format!(
                    "{:?} is not `name=number` with a number up to {MAX_EXTENT}",
                    pair.chars().take(60).collect::<String>()
                ),
            };
            let (name, number) = pair.split_once('=').ok_or_else(wrong)?;
            let number = number.trim().parse().ok().filter(|it| u64::from(*it) <= MAX_EXTENT);
            given.push((name.trim(), number.ok_or_else(wrong)?));
        }
        Ok(Self { kind, given })
    }

    fn take(&mut self, name: &str, default: Option<u32>) -> Result<u32, GeneratorError> {
        match self.given.iter().position(|(given, _)| *given == name) {
            Some(at) => Ok(self.given.swap_remove(at).1),
            None => default.ok_or_else(|| self.wrong(format!("`{name}` is missing"))),
        }
    }

    fn end(&self) -> Result<(), GeneratorError> {
        match self.given.first() {
            None => Ok(()),
            Some((name, _)) => {
                Err(self.wrong(format!("there is no parameter `{name}`, or it was given twice")))
            }
        }
    }

    fn wrong(&self, problem: String) -> GeneratorError {
        GeneratorError::Parameter { kind: self.kind.to_owned(), problem }
    }
}

impl MatrixGenerator {
    fn check(&self, kind: &str) -> Result<(), GeneratorError> {
        let wrong = |problem: &str| {
            Err(GeneratorError::Parameter { kind: kind.to_owned(), problem: problem.to_owned() })
        };
        match self.kind {
            Kind::Rmat { scale, .. } if scale > 28 => return wrong("`scale` is at most 28"),
            Kind::Block { size: 0, .. } => return wrong("`size` is at least 1"),
            Kind::Random { cols, nnz_per_row, .. } if nnz_per_row > cols => {
                return wrong("`nnz_per_row` is at most `cols`");
            }
            Kind::Random { rows, long_rows, .. } if long_rows > rows => {
                return wrong("`long_rows` is at most `rows`");
            }
            _ => (),
        }
        let ([rows, cols], entries) = self.at_most();
        if rows == 0 {
            return wrong("the matrix has no rows");
        }
        // Vectors contain one element for each row or column.
        let entries = entries.max(rows).max(cols);
        if entries > MAX_ENTRIES {
            return Err(GeneratorError::TooLarge { text: self.text.clone(), entries });
        }
        Ok(())
    }

    /// Returns the numbers of rows and columns, and an upper bound of the number of entries, for
    /// valid parameters.
    fn at_most(&self) -> ([u64; 2], u64) {
        let square = |n: u64, entries| ([n, n], entries);
        match self.kind {
            Kind::Poisson { extents, dimensions } => {
                let points = extents.iter().map(|&it| u64::from(it)).fold(1, u64::saturating_mul);
                square(points, points.saturating_mul(2 * dimensions as u64 + 1))
            }
            Kind::Banded { n, half } => {
                square(n.into(), u64::from(n).saturating_mul(2 * u64::from(half) + 1))
            }
            Kind::Rmat { scale, edges } => square(1 << scale, u64::from(edges) << scale),
            Kind::Block { n, size } => {
                square(n.into(), u64::from(n).saturating_mul(2 * u64::from(size)))
            }
            Kind::Diagonal { n } => square(n.into(), n.into()),
            Kind::Random { rows, cols, nnz_per_row, long_rows } => {
                let long = u64::from(long_rows) * u64::from(cols.div_ceil(2));
                let entries = u64::from(rows) * u64::from(nnz_per_row) + long;
                ([rows.into(), cols.into()], entries)
            }
        }
    }

    /// Returns an upper bound of the size in CSR form, in bytes: 4 for each row and 12 for each
    /// entry.
    pub fn bytes_at_most(&self) -> u64 {
        let ([rows, _], entries) = self.at_most();
        rows.saturating_mul(4).saturating_add(entries.saturating_mul(12))
    }

    /// Generates the matrix.
    ///
    /// # Errors
    /// Currently returns no errors, because the parameters are checked when they are parsed. Future
    /// kinds may return errors.
    pub fn generate(&self) -> Result<Csr, GeneratorError> {
        let seed = self.seed;
        Ok(match self.kind {
            Kind::Poisson { extents, dimensions } => {
                let rows = extents.iter().product();
                let row = |row: u32, out: &mut Row| poisson(extents, dimensions, row, out);
                by_rows(rows, rows, row)
            }
            Kind::Banded { n, half } => by_rows(n, n, |row, out| {
                let mut numbers = Numbers::new(seed, "banded", row);
                let last = row.saturating_add(half).min(n - 1);
                out.extend((row.saturating_sub(half)..=last).map(|it| (it, numbers.value())));
            }),
            Kind::Diagonal { n } => by_rows(n, n, |row, out| {
                out.push((row, Numbers::new(seed, "diagonal", row).value()));
            }),
            Kind::Block { n, size } => by_rows(n, n, |row, out| block(seed, n, size, row, out)),
            Kind::Random { rows, cols, nnz_per_row, long_rows } => {
                by_rows(rows, cols, |row, out| {
                    random(seed, (rows, cols), (nnz_per_row, long_rows), row, out);
                })
            }
            Kind::Rmat { scale, edges } => rmat(seed, scale, edges),
        })
    }
}

/// The columns and values of a row.
type Row = Vec<(u32, f64)>;

/// The number of rows that one parallel task generates.
const CHUNK: u32 = 4096;

/// Creates a matrix row by row.
fn by_rows(rows: u32, cols: u32, make: impl Fn(u32, &mut Row) + Sync) -> Csr {
    let chunks: Vec<(Vec<u32>, Row)> = (0..rows.div_ceil(CHUNK))
        .into_par_iter()
        .map(|chunk| {
            let (mut lengths, mut all) = (Vec::new(), Row::new());
            for row in chunk * CHUNK..((chunk + 1) * CHUNK).min(rows) {
                let before = all.len();
                make(row, &mut all);
                lengths.push((all.len() - before) as u32);
            }
            (lengths, all)
        })
        .collect();
    let (mut row_ptr, mut col_indices, mut values) = (vec![0u32], Vec::new(), Vec::new());
    let mut end = 0;
    for (lengths, all) in chunks {
        for length in lengths {
            end += length;
            row_ptr.push(end);
        }
        col_indices.extend(all.iter().map(|(column, _)| *column));
        values.extend(all.iter().map(|(_, value)| *value));
    }
    // Every kind stays within its columns. Otherwise `new` would return an error.
    Csr::new(cols, row_ptr, col_indices, values)
        .unwrap_or_else(|error| unreachable!("a generated matrix is wrong: {error}"))
}

/// The random numbers of one row.
struct Numbers {
    stream: Philox,
    block: u64,
    left: usize,
    words: [u64; 4],
}

impl Numbers {
    fn new(seed: u64, name: &str, row: u32) -> Self {
        // Each row has 2²⁸ blocks of four words, which is more than it can have entries.
        let block = u64::from(row) << 28;
        Self { stream: Philox::for_argument(seed, name), block, left: 0, words: [0; 4] }
    }

    fn word(&mut self) -> u64 {
        if self.left == 0 {
            self.words = self.stream.block(self.block);
            self.block += 1;
            self.left = 4;
        }
        self.left -= 1;
        self.words[self.left]
    }

    /// Returns a multiple of 2⁻²³ in [−1, 1), which binary32 represents exactly.
    fn value(&mut self) -> f64 {
        ((self.word() >> 40) as f64) / 8_388_608.0 - 1.0
    }

    /// Returns a number in `0..below`.
    fn below(&mut self, below: u64) -> u64 {
        ((u128::from(self.word()) * u128::from(below)) >> 64) as u64
    }
}

fn poisson(extents: [u32; 3], dimensions: usize, row: u32, out: &mut Row) {
    let [nx, ny, nz] = extents;
    let (x, y, z) = (row % nx, row / nx % ny, row / nx / ny);
    let mut near = |there: bool, column: u32| {
        if there {
            out.push((column, -1.0));
        }
    };
    near(z > 0, row.wrapping_sub(nx.wrapping_mul(ny)));
    near(y > 0, row.wrapping_sub(nx));
    near(x > 0, row.wrapping_sub(1));
    out.push((row, 2.0 * dimensions as f64));
    let mut near = |there: bool, column: u32| {
        if there {
            out.push((column, -1.0));
        }
    };
    near(x + 1 < nx, row + 1);
    near(y + 1 < ny, row.wrapping_add(nx));
    near(z + 1 < nz, row.wrapping_add(nx.wrapping_mul(ny)));
}

fn block(seed: u64, n: u32, size: u32, row: u32, out: &mut Row) {
    let blocks = n.div_ceil(size);
    let own = row / size;
    // All rows of a block have the same second block.
    let other = Numbers::new(seed, "block column", own).below(u64::from(blocks)) as u32;
    let mut numbers = Numbers::new(seed, "block", row);
    let (first, second) = (own.min(other), own.max(other));
    for at in [Some(first), (first != second).then_some(second)].into_iter().flatten() {
        let begin = at * size;
        let end = begin.saturating_add(size).min(n);
        out.extend((begin..end).map(|column| (column, numbers.value())));
    }
}

fn random(
    seed: u64,
    (rows, cols): (u32, u32),
    (nnz_per_row, long_rows): (u32, u32),
    row: u32,
    out: &mut Row,
) {
    let mut numbers = Numbers::new(seed, "random", row);
    // The long rows are spread evenly.
    let spacing = rows.checked_div(long_rows).unwrap_or(0);
    let is_long = spacing > 0 && row.is_multiple_of(spacing) && row / spacing < long_rows;
    let count = match () {
        () if is_long => cols.div_ceil(2),
        () if row % 16 == 15 => 0,
        () => nnz_per_row,
    };
    let (cols, count) = (u64::from(cols), u64::from(count));
    for at in 0..count {
        // One column is taken from each of `count` ranges, so the columns are distinct and sorted.
        let (begin, end) = (at * cols / count, (at + 1) * cols / count);
        let column = begin + numbers.below(end - begin);
        out.push((column as u32, numbers.value()));
    }
}

/// Generates a graph as in Chakrabarti, Zhan and Faloutsos, "R-MAT: a recursive model for graph
/// mining" (SDM 2004), with the probabilities of Graph500. If an edge is drawn twice, it becomes
/// one entry.
fn rmat(seed: u64, scale: u32, edges: u32) -> Csr {
    let rows = 1u32 << scale;
    let draws = u64::from(rows) * u64::from(edges);
    let stream = Philox::for_argument(seed, "rmat");
    let mut keys: Vec<u64> = (0..draws)
        .into_par_iter()
        .map(|edge| {
            let (mut row, mut column) = (0u64, 0u64);
            // Each level uses 16 bits. Two blocks have enough bits for 32 levels, more than any
            // scale needs.
            let blocks: [[u64; 4]; 2] = [stream.block(2 * edge), stream.block(2 * edge + 1)];
            for level in 0..scale as usize {
                let word = blocks[level / 16][level / 4 % 4];
                let draw = word >> (16 * (level % 4)) & 0xffff;
                // The thresholds are 0.57, 0.76 and 0.95 of 65536.
                let (down, right) = match draw {
                    0..37356 => (0, 0),
                    37356..49807 => (0, 1),
                    49807..62259 => (1, 0),
                    _ => (1, 1),
                };
                (row, column) = (row << 1 | down, column << 1 | right);
            }
            row << 32 | column
        })
        .collect();
    keys.par_sort_unstable();
    keys.dedup();
    let mut row_ptr = vec![0u32; rows as usize + 1];
    for key in &keys {
        row_ptr[(key >> 32) as usize + 1] += 1;
    }
    for row in 1..row_ptr.len() {
        row_ptr[row] += row_ptr[row - 1];
    }
    let values = Philox::for_argument(seed, "rmat values");
    let value = |key: &u64| ((values.block(*key)[0] >> 40) as f64) / 8_388_608.0 - 1.0;
    let col_indices = keys.par_iter().map(|key| *key as u32).collect();
    let values = keys.par_iter().map(value).collect();
    Csr::new(rows, row_ptr, col_indices, values)
        .unwrap_or_else(|error| unreachable!("a generated matrix is wrong: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generate(text: &str) -> Csr {
        text.parse::<MatrixGenerator>().unwrap().generate().unwrap()
    }

    /// Returns the FNV-1a hash of a matrix in packed form.
    fn hash(csr: &Csr) -> u64 {
        let mut file = Vec::new();
        crate::packed::write(csr, &mut file).unwrap();
        warpgauge_tensor::fnv1a64(&file)
    }

    /// The hashes are the same on every machine.
    #[test]
    fn matrices_are_equal_to_the_bit() {
        let matrices = [
            "poisson2d:nx=30,ny=20",
            "poisson3d:nx=7,ny=8,nz=9",
            "banded:n=500,half=3,seed=1",
            "rmat:scale=9,edges=8,seed=1",
            "block:n=333,size=8,seed=1",
            "diagonal:n=100,seed=1",
            "random:rows=400,cols=900,nnz_per_row=7,long_rows=2,seed=1",
        ];
        let found = matrices.map(|text| {
            let csr = generate(text);
            (csr.rows(), csr.cols(), csr.nnz(), hash(&csr))
        });
        assert_eq!(found, GOLDEN);
        let (one, two) =
            (generate("rmat:scale=9,edges=8,seed=1"), generate("rmat:scale=9,edges=8"));
        assert_ne!(hash(&one), hash(&two), "the seed matters");
    }

    /// Rows, columns, entries and hash.
    const GOLDEN: [(u32, u32, u32, u64); 7] = [
        (600, 600, 2900, 76520743516760687),
        (504, 504, 3146, 10679315478590236645),
        (500, 500, 3488, 11362278067223747951),
        (512, 512, 3251, 11802446359167308640),
        (333, 333, 5201, 8155066285625843596),
        (100, 100, 100, 1964182035921628855),
        (400, 900, 3511, 13621567294688032240),
    ];

    #[test]
    fn they_are_what_their_names_say() {
        let csr = generate("poisson2d:nx=3");
        assert_eq!(csr.row(4), (&[1, 3, 4, 5, 7][..], &[-1.0, -1.0, 4.0, -1.0, -1.0][..]));
        assert_eq!(csr.row(0).0, [0, 1, 3]);
        let csr = generate("poisson3d:nx=3");
        assert_eq!(csr.row(13).0, [4, 10, 12, 13, 14, 16, 22]);
        let csr = generate("random:rows=64,cols=1000,nnz_per_row=5,long_rows=1");
        assert_eq!((csr.longest_row(), csr.empty_rows()), (500, 4));
        for text in ["rmat:scale=8", "block:n=100,size=7", "random:rows=64,long_rows=2"] {
            let csr = generate(text);
            for row in 0..csr.rows() as usize {
                let columns = csr.row(row).0;
                assert!(columns.windows(2).all(|pair| pair[0] < pair[1]), "{text}: row {row}");
            }
        }
        let rmat = generate("rmat:scale=12,edges=8");
        assert!(rmat.longest_row() > 20 * rmat.nnz() / rmat.rows(), "{}", rmat.longest_row());
    }

    #[test]
    fn what_is_no_matrix_is_refused() {
        for (text, message) in [
            ("laplace:n=3", "the kinds are poisson2d"),
            ("poisson2d", "`nx` is missing"),
            ("poisson2d:nx=3,nq=3", "no parameter `nq`"),
            ("poisson2d:nx=x", "not `name=number`"),
            ("poisson2d:nx=0", "no rows"),
            ("poisson3d:nx=100000", "at most 268435456"),
            ("banded:n=2147483647,half=2147483647", "at most"),
            ("rmat:scale=40", "at most 28"),
            ("block:n=3,size=0", "at least 1"),
            ("random:rows=3,cols=2,nnz_per_row=9", "at most `cols`"),
        ] {
            let error = text.parse::<MatrixGenerator>().unwrap_err().to_string();
            assert!(error.contains(message), "{text}: {error}");
        }
    }
}
