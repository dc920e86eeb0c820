//! Parts of a guessed contract that the user gives.

use std::collections::BTreeMap;

use crate::infer::launched::{Launched, Passed};

/// Largest integer that a guess accepts.
pub(crate) const MAX_INTEGER: u64 = 1 << 31;

/// Parts of a contract that the user gives, so that they are not guessed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Wishes {
    /// Name of the kernel; by default the first of the file.
    pub kernel: Option<String>,
    /// Values of numbers, by parameter.
    pub values: BTreeMap<String, f64>,
    /// Blocks of the grid along each axis.
    pub grid: Option<[u64; 3]>,
    /// Threads of a block along each axis.
    pub block: Option<[u64; 3]>,
}

impl Wishes {
    /// Returns the value of an integer.
    pub(crate) fn integer(&self, name: &str) -> Option<u64> {
        let value = *self.values.get(name)?;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "a whole number of at most 2^31"
        )]
        (value >= 0.0 && value.fract() == 0.0 && value <= MAX_INTEGER as f64)
            .then_some(value as u64)
    }

    /// Returns the launch parameters of the file. Those that the user gives replace the file's.
    /// `names` are the names of the parameters.
    pub(crate) fn over(&self, mut launched: Launched, names: &[String]) -> Launched {
        if self.block.is_some() && self.block != launched.block {
            // The grid and the shared memory in the file belong to the block in the file.
            (launched.grid, launched.shared) = (None, None);
        }
        launched.block = self.block.or(launched.block);
        launched.passed.resize(names.len(), None);
        for (passed, name) in launched.passed.iter_mut().zip(names) {
            let integer = self.integer(name).map(Passed::Integer);
            let given = integer.or_else(|| self.values.get(name).copied().map(Passed::Float));
            *passed = given.or(*passed);
        }
        launched
    }
}
