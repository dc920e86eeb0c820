//! Forms as modules.

use super::form::{Form, fnv};

/// Kernels in one module.
const KERNELS: usize = 48;
/// PTX version of the modules: old enough for the drivers of CUDA 12.8, new enough for all forms.
const VERSION: &str = "8.7";

/// A module: its text and the forms of its kernels, as a range of the list.
pub struct Module {
    pub text: String,
    pub forms: Vec<usize>,
}

/// The name of form `i`'s kernel.
pub fn kernel(i: usize) -> String {
    format!("form{i}")
}

/// The text of a module of these forms.
pub fn text(forms: &[Form], which: &[usize]) -> String {
    let sm = which.iter().map(|i| forms[*i].sm).max().unwrap_or(75);
    let mut s = format!(".version {VERSION}\n.target sm_{sm}\n.address_size 64\n\n");
    for i in which {
        s.push_str(&forms[*i].ptx(&kernel(*i)));
    }
    s
}

/// All forms in modules, each of one architecture.
pub fn modules(forms: &[Form]) -> Vec<Module> {
    let mut out = Vec::new();
    for sm in [75, 80, 86, 89, 90] {
        let all: Vec<usize> = (0..forms.len()).filter(|i| forms[*i].sm == sm).collect();
        for which in all.chunks(KERNELS) {
            out.push(Module { text: text(forms, which), forms: which.to_vec() });
        }
    }
    out
}

/// A hash of everything that results depend on: texts, operands, sizes.
pub fn fingerprint(forms: &[Form]) -> u64 {
    let mut h = 0u64;
    for (i, f) in forms.iter().enumerate() {
        let parts = [fnv(f.ptx(&kernel(i)).as_bytes()), fnv(&f.inputs()), f.threads() as u64];
        for p in parts {
            h = (h.rotate_left(23) ^ p).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
    }
    h
}
