//! Content of outputs before a launch, and the proof that an element was not written.
//!
//! An element that a kernel does not write keeps the filling. Each launch gets a new random filling. An element that
//! holds its launch's filling, although another value is expected, was not written, because a kernel that writes it
//! would have to guess the filling. The certainty depends on the type. No kernel hits one value of 2³² by accident.
//! One value of 250 is hit occasionally, so for narrow types the elements of all verified launches decide together
//! ([`FillTrace`]).

use warpgauge_tensor::{Dtype, unpacked};

/// Fill byte of buffers on which no verdict depends, such as outputs of a reference kernel.
///
/// Repeated 0xFF is NaN in every floating-point type of 16 bits or more. It is not a valid bool,
/// and as an integer it is −1 or the type's largest value.
pub const POISON_BYTE: u8 = 0xFF;

/// Maximum probability, per output, that a kernel is rejected for elements that it wrote.
const REJECT: f64 = 1e-7;

/// Maximum probability, per output, that unwritten elements are reported as the reason for a mismatch although the
/// kernel wrote them.
const LABEL: f64 = 1e-3;

/// Longest period of a filling, elements. Four bytes contain at most four elements.
const CELLS: usize = 4;

/// Content of an output before a launch: four repeated bytes, which depend on the element type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Filling {
    bits: u64,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Every byte is [`POISON_BYTE`].
    Fixed,
    /// NaN, if a type has enough NaN codes, so that every value computed from it is also NaN.
    NotANumber,
    /// A number near the type's largest, to detect kernels that hide NaN.
    Number,
}

impl Filling {
    /// Filling with [`POISON_BYTE`] in every byte, for launches whose outputs are not checked.
    pub const FIXED: Self = Self { bits: 0, kind: Kind::Fixed };

    /// Creates a filling from 64 random bits: NaN in most floating-point types.
    pub fn not_a_number(bits: u64) -> Self {
        Self { bits, kind: Kind::NotANumber }
    }

    /// Creates a filling from 64 random bits: a large number in most floating-point types.
    pub fn number(bits: u64) -> Self {
        Self { bits, kind: Kind::Number }
    }

    /// Creates a filling of either kind from 64 random bits.
    pub fn drawn(bits: u64) -> Self {
        if bits >> 63 == 0 { Self::not_a_number(bits) } else { Self::number(bits) }
    }

    /// Returns the four bytes (the lowest first) that an output of this type repeats.
    ///
    /// The patterns avoid values that kernels often write: zero, one and −1, the ends of ranges, and the hardware's
    /// default NaN.
    pub fn word(self, dtype: Dtype) -> u32 {
        if self.kind == Kind::Fixed {
            return u32::from_ne_bytes([POISON_BYTE; 4]);
        }
        let number = self.kind == Kind::Number;
        let each = |f: &dyn Fn(u32, u32) -> u32| {
            (0..4).fold(0, |word, at| {
                let byte = (self.bits >> (8 * at)) as u32 & 0xFF;
                let sign = (self.bits >> (32 + at)) as u32 & 1;
                word | f(byte, sign) << (8 * at)
            })
        };
        let halves = |f: &dyn Fn(u32, u32) -> u32| {
            let half = |at: u32| {
                let random = (self.bits >> (16 * at)) as u32 & 0xFFFF;
                f(random, (self.bits >> (32 + at)) as u32 & 1)
            };
            half(0) | half(1) << 16
        };
        // Four codes of four bits, twice.
        let nibbles = |f: &dyn Fn(u32, u32) -> u32| {
            let codes = each(f).to_le_bytes();
            let half = codes.into_iter().rev().fold(0, |half, code| half << 4 | u32::from(code));
            half | half << 16
        };
        let (random, sign) = (self.bits as u32, (self.bits >> 32) as u32 & 1);
        match dtype.part() {
            Dtype::Float32 if number => sign << 31 | 0x7F60_0001 | random & 0x000F_FFFC,
            Dtype::Float64 if number => sign << 31 | 0x7FD0_0001 | random & 0x000F_FFFC,
            // A quiet NaN, but neither the hardware's NaN nor its negative, because the two lowest
            // bits are 01.
            Dtype::Float32 | Dtype::Float64 => sign << 31 | 0x7FF8_0001 | random & 0x0007_FFFC,
            Dtype::Bfloat16 if number => halves(&|r, s| s << 15 | 0x7F01 | r & 0x7C),
            Dtype::Bfloat16 => halves(&|r, s| s << 15 | 0x7FC1 | r & 0x3C),
            Dtype::Float16 => halves(&|r, s| s << 15 | 0x7E01 | r & 0x1FC),
            // These types have too few NaN codes. The filling stays below the largest number, to which conversions
            // saturate.
            Dtype::Float8E4m3 => each(&|r, s| s << 7 | (0x70 + r % 14)),
            Dtype::Float8E5m2 => each(&|r, s| s << 7 | (0x6C + r % 15)),
            // Two random bits select a magnitude below the largest number.
            Dtype::Float4E2m1x2 => nibbles(&|r, s| s << 3 | (3 + r % 4)),
            Dtype::Int4x2 | Dtype::Uint4x2 => nibbles(&|r, s| s << 3 | (2 + r % 5)),
            // The filling stays below the largest number, and is not the type's only NaN.
            Dtype::Float8E8m0 => each(&|r, _| 0xE0 + r % 30),
            Dtype::Bool => each(&|r, _| 2 + r % 253),
            Dtype::Int8 | Dtype::Uint8 => each(&|r, s| s << 7 | (2 + r % 125)),
            Dtype::Int16 | Dtype::Uint16 => {
                halves(&|r, s| s << 15 | (8 + (r >> 8) % 112) << 8 | r & 0xFF)
            }
            Dtype::Int32 | Dtype::Uint32 | Dtype::Int64 | Dtype::Uint64 => {
                sign << 31 | (8 + (random >> 24) % 112) << 24 | random & 0x00FF_FFFF
            }
            // The type of a part is never complex.
            Dtype::Complex64 | Dtype::Complex128 => random | 1,
        }
    }

    /// Returns the number of an output's elements that hold this filling, and the first of them. It supports only
    /// types in which a single element that holds the filling proves that it was never written. Returns `None` for
    /// other types, and if there is no such element.
    pub fn left_in(self, dtype: Dtype, content: &[u8]) -> Option<UnwrittenElements> {
        let dtype = dtype.part();
        if chance(dtype).is_some() {
            return None;
        }
        let (size, elements) = (dtype.size(), self.elements(dtype));
        let all = content.chunks_exact(size);
        let holds = |&(at, element): &(usize, &[u8])| *element == elements[at % CELLS][..size];
        let mut held = all.enumerate().filter(holds).map(|(at, _)| at as u64);
        let first = held.next()?;
        Some(UnwrittenElements { first, count: 1 + held.count() as u64 })
    }

    /// Returns one period of the filling, which is [`CELLS`] elements, each in the first bytes of its entry. For a
    /// complex or packed type, the entries are its numbers; those of a packed type are unpacked.
    pub(super) fn elements(self, dtype: Dtype) -> [[u8; 8]; CELLS] {
        let dtype = dtype.part();
        let word = self.word(dtype).to_le_bytes();
        let word: [u8; CELLS] = std::array::from_fn(|at| unpacked(dtype, &word)[at]);
        let byte = |cell: usize, at: usize| word[(cell * dtype.size() + at) % 4];
        std::array::from_fn(|cell| std::array::from_fn(|at| byte(cell, at)))
    }
}

/// Elements that a launch did not write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnwrittenElements {
    /// Index of the first unwritten element, in memory order.
    pub first: u64,
    pub count: u64,
}

/// Returns the largest probability that a written value equals a random filling, or `None` if one element is proof.
fn chance(dtype: Dtype) -> Option<f64> {
    match dtype.part() {
        Dtype::Float4E2m1x2 => Some(1.0 / 8.0),
        Dtype::Int4x2 | Dtype::Uint4x2 => Some(1.0 / 10.0),
        Dtype::Float8E4m3 => Some(1.0 / 28.0),
        Dtype::Float8E5m2 | Dtype::Float8E8m0 => Some(1.0 / 30.0),
        Dtype::Bool | Dtype::Int8 | Dtype::Uint8 => Some(1.0 / 250.0),
        Dtype::Int16 | Dtype::Uint16 => Some(1.0 / 57_344.0),
        _ => None,
    }
}

/// Traces of the fillings that launches left in one output.
///
/// In each launch the elements fall into cells, each with its own random filling. A kernel that writes an element
/// hits the filling with a probability of at most `p`, whatever it writes. Therefore the share of suspects in a cell
/// that hold the filling is at most `p` on average; it is 1 if they were not written. Suspects are the elements that
/// hold the filling or are wrong.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FillTrace {
    dtype: Dtype,
    /// Number of elements that hold the filling of their launch although another value is expected.
    pub held: u64,
    /// Number of cells that contain elements which hold the filling or are wrong, over all launches.
    cells: f64,
    /// Sum over these cells of the share of suspects that hold the filling.
    shares: f64,
}

impl FillTrace {
    /// Creates a trace of no launches.
    pub fn new(dtype: Dtype) -> Self {
        Self { dtype, held: 0, cells: 0.0, shares: 0.0 }
    }

    /// Adds a launch. The arguments are, for each cell, the number of elements that hold the filling, and the number
    /// of elements that hold it or are wrong.
    pub(super) fn add_launch(&mut self, held: [u64; CELLS], suspects: [u64; CELLS]) {
        for (held, suspects) in held.into_iter().zip(suspects).filter(|(_, all)| *all > 0) {
            self.held += held;
            self.cells += 1.0;
            self.shares += held as f64 / suspects as f64;
        }
    }

    /// Adds the trace of other launches in the same output.
    pub fn add(&mut self, other: &Self) {
        self.held += other.held;
        self.cells += other.cells;
        self.shares += other.shares;
    }

    /// Returns whether some elements were certainly not written, regardless of the share of mismatches that is
    /// allowed.
    pub fn is_proof(&self) -> bool {
        self.probability() <= REJECT
    }

    /// Returns whether unwritten elements are the likely reason for a mismatch.
    pub fn is_reason(&self) -> bool {
        self.probability() <= LABEL
    }

    /// Returns an upper bound on the probability that a kernel which wrote all elements leaves this trace.
    fn probability(&self) -> f64 {
        let Some(chance) = chance(self.dtype) else {
            return if self.held > 0 { 0.0 } else { 1.0 };
        };
        // Chernoff's bound for a sum of independent numbers from 0 to 1 (Hoeffding, "Probability
        // inequalities for sums of bounded random variables", JASA 58, 1963, theorem 1).
        let mean = self.cells * chance;
        if self.shares <= mean {
            return 1.0;
        }
        (self.shares * (1.0 - (self.shares / mean).ln()) - mean).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpgauge_tensor::element::{Element, for_dtype};

    fn fillings() -> impl Iterator<Item = Filling> {
        (1..2000u64).map(|n| Filling::drawn(n.wrapping_mul(0x9E37_79B9_7F4A_7C15)))
    }

    #[test]
    fn no_filling_is_a_value_that_kernels_write_by_habit() {
        fn value<T: Element>(bytes: &[u8]) -> f64 {
            T::read(bytes).to_f64()
        }
        for dtype in Dtype::ALL {
            let size = dtype.part().size();
            let mut distinct = std::collections::BTreeSet::new();
            for filling in fillings() {
                let elements = filling.elements(dtype);
                let repeated = filling.word(dtype).to_le_bytes().repeat(8);
                let repeated = unpacked(dtype, &repeated);
                for (cell, element) in elements.iter().enumerate() {
                    let element = &element[..size];
                    assert_eq!(*element, repeated[cell * size..][..size], "{dtype}");
                    distinct.insert(element.to_vec());
                    let value = for_dtype!(dtype, value(element));
                    let habit = [0.0, 1.0, -1.0].contains(&value)
                        || element.iter().all(|byte| *byte == 0xFF)
                        || (dtype != Dtype::Bool && element.iter().all(|byte| *byte == 0x7F));
                    assert!(!habit && !value.is_infinite(), "{dtype} {value}");
                    if dtype.is_float() {
                        let large = if dtype.is_packed() { 1.5 } else { 128.0 };
                        assert!(value.is_nan() || value.abs() >= large, "{dtype} {value}");
                    }
                }
            }
            let expected = chance(dtype).map_or(31.0, |chance| 0.9 / chance).min(2000.0);
            assert!(distinct.len() as f64 >= expected, "{dtype}: {}", distinct.len());
        }
        assert!(fillings().any(|f| f32::from_bits(f.word(Dtype::Float32)).is_nan()));
        assert!(fillings().any(|f| f32::from_bits(f.word(Dtype::Float32)).abs() > 1e38));
        let hardware = [0x7FFF_FFFF, 0xFFFF_FFFF, 0x7FC0_0000, 0xFFC0_0000];
        assert!(fillings().all(|f| !hardware.contains(&f.word(Dtype::Float32))));
        assert_eq!(Filling::FIXED.word(Dtype::Uint8), u32::MAX);
    }

    /// Whatever bytes a kernel writes, it is not rejected for unwritten elements.
    #[test]
    fn written_bytes_are_not_taken_for_unwritten_ones() {
        for value in 0..=255u8 {
            let mut trace = FillTrace::new(Dtype::Uint8);
            for (n, filling) in fillings().take(45).enumerate() {
                let mut held = [0; CELLS];
                for (cell, element) in filling.elements(Dtype::Uint8).iter().enumerate() {
                    // The same value everywhere, or one that runs through all values.
                    let runs = value.wrapping_add((n * CELLS + cell) as u8);
                    held[cell] = 500 * u64::from(element[0] == value);
                    held[cell] += 500 * u64::from(element[0] == runs);
                }
                trace.add_launch(held, [1000; CELLS]);
                assert!(!trace.is_proof(), "{value} after {n}: {trace:?}");
            }
        }
    }

    #[test]
    fn elements_that_were_left_are_counted_where_one_is_proof() {
        for dtype in Dtype::ALL {
            for filling in fillings().take(20) {
                let size = dtype.part().size();
                let mut content = vec![0u8; 12 * size];
                assert_eq!(filling.left_in(dtype, &content), None, "{dtype}");
                let elements = filling.elements(dtype);
                for at in [5, 10] {
                    content[at * size..][..size].copy_from_slice(&elements[at % CELLS][..size]);
                }
                let proof =
                    chance(dtype).is_none().then_some(UnwrittenElements { first: 5, count: 2 });
                assert_eq!(filling.left_in(dtype, &content), proof, "{dtype}");
                assert_eq!(Filling::FIXED.left_in(dtype, &content), None, "{dtype}");
            }
        }
    }

    #[test]
    fn unwritten_elements_are_proven_by_few_launches() {
        let launches = |dtype, held: [u64; CELLS], suspects| {
            let mut trace = FillTrace::new(dtype);
            (1..100)
                .find(|_| {
                    trace.add_launch(held, suspects);
                    trace.is_proof()
                })
                .unwrap_or(100)
        };
        assert_eq!(launches(Dtype::Int32, [1, 0, 0, 0], [9, 9, 9, 9]), 1);
        assert_eq!(launches(Dtype::Uint8, [25; 4], [25; 4]), 1);
        assert_eq!(launches(Dtype::Bool, [25; 4], [25; 4]), 1);
        assert!(launches(Dtype::Uint8, [1, 0, 0, 0], [1, 0, 0, 0]) <= 5);
        assert!(launches(Dtype::Uint8, [5; 4], [10; 4]) <= 4, "half of the wrong ones");
        assert!(launches(Dtype::Uint16, [1, 0, 0, 0], [1, 0, 0, 0]) <= 2);
        assert!(launches(Dtype::Float8E4m3, [25; 4], [25; 4]) <= 3);
        assert!(launches(Dtype::Float4E2m1x2, [25; 4], [25; 4]) <= 4);
        assert!(launches(Dtype::Int4x2, [25; 4], [25; 4]) <= 4);
        // Matches by chance.
        assert_eq!(launches(Dtype::Uint8, [4; 4], [1000; 4]), 100);
        assert_eq!(launches(Dtype::Int32, [0; 4], [1000; 4]), 100);
    }
}
