//! Accounting of the memory that function calls use.

use std::iter::Sum;
use std::ops::AddAssign;
use std::sync::atomic::{AtomicU64, Ordering};

/// Memory that function calls use, bytes.
#[derive(Debug, Default, Clone, Copy)]
pub(in crate::exec) struct Stack {
    pub(in crate::exec) all: u64,
    /// The part of the memory that recursive calls use.
    pub(in crate::exec) recursive: u64,
}

impl AddAssign for Stack {
    fn add_assign(&mut self, other: Self) {
        self.all += other.all;
        self.recursive += other.recursive;
    }
}

impl Sum for Stack {
    fn sum<I: Iterator<Item = Self>>(stacks: I) -> Self {
        let mut sum = Self::default();
        stacks.for_each(|stack| sum += stack);
        sum
    }
}

/// Memory that the function calls of all threads of a launch use.
#[derive(Debug, Default)]
pub(in crate::exec) struct Stacks {
    all: AtomicU64,
    recursive: AtomicU64,
}

impl Stacks {
    /// Adds `more` to the memory in use. Returns the total.
    pub(in crate::exec) fn take(&self, more: Stack) -> Stack {
        let add = |to: &AtomicU64, more| to.fetch_add(more, Ordering::Relaxed) + more;
        Stack { all: add(&self.all, more.all), recursive: add(&self.recursive, more.recursive) }
    }

    pub(in crate::exec) fn give_back(&self, stack: Stack) {
        self.all.fetch_sub(stack.all, Ordering::Relaxed);
        self.recursive.fetch_sub(stack.recursive, Ordering::Relaxed);
    }
}
