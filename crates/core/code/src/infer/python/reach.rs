//! Sizes of tensors whose dimensions no name indicates. They are derived from the elements that the
//! programs of a launch access.

use super::sizes::{DIM, MAX_ELEMENTS, Work, is_block};

/// Numbers of elements that the programs of a launch access, each with the reason for the guess.
#[derive(Debug, Clone)]
pub(super) struct Reach {
    /// Number of elements that all programs access, if each has separate blocks.
    pub all: (u64, String),
    /// Number of elements that one program accesses.
    pub one: (u64, String),
}

impl Work<'_, '_> {
    /// Returns the number of programs on each axis of a grid that neither an extent nor host code
    /// gives. It is the largest number with which all programs together access at most the maximum
    /// number of elements of a tensor.
    pub(super) fn programs(&self, axes: u32) -> u64 {
        let blocks = self.blocks();
        let within = |programs: &u64| {
            let all = programs.checked_pow(axes).and_then(|all| all.checked_mul(blocks));
            all.is_some_and(|all| all <= MAX_ELEMENTS)
        };
        (0..=DIM.ilog2()).rev().map(|power| 1 << power).find(within).unwrap_or(1)
    }

    /// Returns the numbers of elements that the programs access.
    pub(super) fn reach(&self) -> &Reach {
        self.reach.get_or_init(|| {
            let names: Vec<&str> = self.block_names().take(4).collect();
            let each = if names.is_empty() { "an element".to_owned() } else { names.join(" × ") };
            let (blocks, axes) = (self.blocks(), self.grid_axes());
            let counts = axes.iter().map(|axis| axis.parse::<u64>().unwrap_or(DIM));
            let programs = counts.fold(1, u64::saturating_mul);
            let all = programs.saturating_mul(blocks).clamp(1, MAX_ELEMENTS);
            let why = "no name indicates its size; guessed from";
            Reach {
                all: (all, format!("{why} {programs} programs of {each}")),
                one: (blocks.min(MAX_ELEMENTS), format!("{why} what a program reads ({each})")),
            }
        })
    }

    /// Returns the product of the kernel's blocks.
    fn blocks(&self) -> u64 {
        self.block_names().map(|name| self.block_value(name)).fold(1, u64::saturating_mul)
    }

    fn block_names(&self) -> impl Iterator<Item = &str> {
        let constants = self.kernel.parameters.iter().filter(|one| one.is_constant);
        constants
            .map(|one| one.name)
            .filter(|name| is_block(name) && !name.to_ascii_uppercase().contains("GROUP"))
    }

    /// Returns the size of a block. In this order, it is the size that the caller asks for, that of
    /// the host code, the parameter's default, or a guess.
    fn block_value(&self, name: &str) -> u64 {
        let by_host = || self.host_value(name).and_then(|value| self.evaluated(&value));
        let parameter = self.kernel.parameters.iter().find(|one| one.name == name);
        let by_default = || match parameter?.default.as_deref()? {
            [number] => number.parse().ok(),
            _ => None,
        };
        let asked = self.wishes.integer(name);
        asked.or_else(by_host).or_else(by_default).unwrap_or_else(|| self.block(name)).max(1)
    }
}
