//! Differences between the results of two devices.

use super::form::{Bound, Class, Form, Out, little};

/// The results of a form that differ.
#[derive(Debug, Default)]
pub struct Differences {
    /// Threads with a difference.
    pub threads: usize,
    /// The first few, in words.
    pub details: Vec<String>,
    /// The largest distance in units of the bound, of approximate results within it or not.
    pub worst: f64,
}

/// Most differences described for a form.
const DETAILS: usize = 6;

/// Compares the first `threads` of `got` with those of `want`. Both are what the kernel wrote, but
/// `want` may be cut to these threads.
pub fn compare(
    form: &Form,
    want: &dyn Fn(usize, usize) -> Vec<u8>,
    got: &[u8],
    threads: usize,
) -> Differences {
    let mut out = Differences::default();
    let inputs = form.inputs();
    for t in 0..threads {
        let mut different = false;
        for o in form.compared() {
            let kind = form.outs[o];
            let (w, g) = (want(o, t), &got[form.output_at(o, t)]);
            let (same, distance) = match form.class {
                Class::Exact => (w == g, 0.0),
                Class::Approx(bound) => close(form, bound, kind, &w, g),
            };
            out.worst = out.worst.max(distance);
            if same {
                continue;
            }
            different = true;
            if out.details.len() < DETAILS {
                let operands: Vec<String> = (0..form.ins.len().min(12))
                    .map(|i| format!("{:#x}", form.operand(&inputs, i, t)))
                    .collect();
                out.details.push(format!(
                    "thread {t} output {o}: {} here, {} there; operands {}",
                    hex(g),
                    hex(&w),
                    operands.join(" ")
                ));
            }
        }
        out.threads += usize::from(different);
    }
    out
}

fn hex(bytes: &[u8]) -> String {
    let words: Vec<String> = bytes.chunks(8).map(|c| format!("{:#x}", little(c))).collect();
    words.join("_")
}

/// Whether all elements are within the bound, and the largest distance in units of it.
fn close(form: &Form, bound: Bound, kind: Out, want: &[u8], got: &[u8]) -> (bool, f64) {
    let width = bound.format.bits() as usize / 8;
    let used = match kind {
        Out::Reg(ty) => ty.bits() as usize / 8,
        Out::Memory(n) => n as usize,
    };
    let ftz = form.name.contains(".ftz");
    let pairs = want[..used].chunks(width).zip(got[..used].chunks(width));
    let distances = pairs.map(|(w, g)| distance(bound, ftz, little(w), little(g)));
    let worst = distances.fold(0.0, f64::max);
    (worst <= 1.0, worst)
}

/// The distance of two numbers in units of what is allowed; 0 if they are the same.
fn distance(bound: Bound, ftz: bool, want: u64, got: u64) -> f64 {
    let f = bound.format;
    let (w, g) = (f.value(want), f.value(got));
    if want == got || (w.is_nan() && g.is_nan()) {
        return 0.0;
    }
    if w.is_nan() || g.is_nan() || (w == 0.0 && g == 0.0) {
        return f64::INFINITY;
    }
    // Infinity stands for the number after the largest.
    let top = f.value(((1 << f.exp) - 2) << f.man) * 2.0;
    let (w, g) = (w.clamp(-top, top), g.clamp(-top, top));
    let least = f.value(1 << f.man);
    if ftz && w.abs() <= least && g.abs() <= least && w * g >= 0.0 {
        return 0.0;
    }
    let ulp = f.ulp(w).max(f.ulp(g));
    let allowed = (bound.ulp * ulp).max(bound.relative * w.abs()).max(bound.absolute) + ulp / 2.0;
    (w - g).abs() / allowed
}
