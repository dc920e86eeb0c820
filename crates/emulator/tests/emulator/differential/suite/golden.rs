//! What a GPU gave, small enough for the repository: hashes of exact results, and some of the
//! approximate ones.

use std::path::Path;

use super::compare::{Differences, compare};
use super::dump::{Dump, Reader, Record};
use super::form::{Class, Form, fnv};

const MAGIC: &[u8; 8] = b"wggold01";
/// Parts of a form's threads that have a hash each.
pub const SLICES: usize = 4;

/// How to make the file anew.
pub const RECORD: &str = "record it again on a machine with a GPU: cargo run --release -p \
    warpgauge-emulator-research --bin differential -- dump --driver libcuda.so.1 --out gpu.dump, then \
    … -- golden gpu.dump crates/emulator/tests/golden/differential.bin";

/// A form's entry.
pub enum Entry {
    Hashes([u64; SLICES]),
    /// Outputs of the first threads, thread by thread.
    Values(Vec<u8>),
    /// The GPU's driver refused it or it failed there; why.
    Absent(String),
}

pub struct Golden {
    pub origin: String,
    pub entries: Vec<Entry>,
}

/// Threads of which approximate results are kept.
pub fn kept(form: &Form) -> usize {
    let bytes: usize = form.outs.iter().map(|o| o.bytes()).sum();
    if bytes > 8 { 32 } else { 128.min(form.threads()) }
}

/// The outputs of some threads, one thread after the other.
fn gather(form: &Form, outputs: &[u8], threads: std::ops::Range<usize>) -> Vec<u8> {
    let mut out = Vec::new();
    for t in threads {
        for o in form.compared() {
            out.extend_from_slice(&outputs[form.output_at(o, t)]);
        }
    }
    out
}

fn slice(form: &Form, n: usize) -> std::ops::Range<usize> {
    let all = form.threads();
    n * all / SLICES..(n + 1) * all / SLICES
}

fn hashes(form: &Form, outputs: &[u8]) -> [u64; SLICES] {
    std::array::from_fn(|n| fnv(&gather(form, outputs, slice(form, n))))
}

/// The golden file of a dump.
pub fn encode(forms: &[Form], dump: &Dump) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    let text = |out: &mut Vec<u8>, s: &[u8]| {
        out.extend((s.len() as u32).to_le_bytes());
        out.extend(s);
    };
    out.extend(dump.fingerprint.to_le_bytes());
    text(&mut out, dump.origin.as_bytes());
    for (i, form) in forms.iter().enumerate() {
        match (dump.records.get(&i), form.class) {
            (Some(Record::Ran(bytes)), Class::Exact) => {
                out.push(0);
                hashes(form, bytes).iter().for_each(|h| out.extend(h.to_le_bytes()));
            }
            (Some(Record::Ran(bytes)), Class::Approx(_)) => {
                out.push(1);
                text(&mut out, &gather(form, bytes, 0..kept(form)));
            }
            (Some(Record::Refused(why) | Record::Failed(why)), _) => {
                out.push(2);
                let line = why.lines().next().unwrap_or_default();
                text(&mut out, &line.as_bytes()[..line.len().min(100)]);
            }
            (None, _) => {
                out.push(2);
                text(&mut out, b"it did not run");
            }
        }
    }
    out
}

impl Golden {
    /// Reads a file that was recorded with exactly this suite.
    pub fn read(path: &Path, forms: &[Form], fingerprint: u64) -> Result<Self, String> {
        let bytes = std::fs::read(path).map_err(|e| format!("{}: {e}", path.display()))?;
        let at = |e: String| format!("{}: {e}", path.display());
        let mut r = Reader(&bytes);
        if r.take(8).map_err(at)? != MAGIC {
            return Err(at("it is no golden file".into()));
        }
        if r.u64().map_err(at)? != fingerprint {
            return Err(at(format!("it was recorded with other forms or operands; {RECORD}")));
        }
        let origin = r.text().map_err(at)?;
        let entries = forms.iter().map(|_| entry(&mut r)).collect::<Result<_, _>>();
        Ok(Self { origin, entries: entries.map_err(at)? })
    }
}

fn entry(r: &mut Reader<'_>) -> Result<Entry, String> {
    Ok(match r.u8()? {
        0 => {
            let mut all = [0; SLICES];
            for h in &mut all {
                *h = r.u64()?;
            }
            Entry::Hashes(all)
        }
        1 => {
            let n = r.u32()?;
            Entry::Values(r.take(n)?.to_vec())
        }
        _ => Entry::Absent(r.text()?),
    })
}

/// Compares what a device gave with the entry of the form. Of exact results only the slices that
/// differ are known.
pub fn check(form: &Form, entry: &Entry, got: &[u8]) -> Differences {
    match entry {
        Entry::Hashes(want) => {
            let have = hashes(form, got);
            let wrong = (0..SLICES).filter(|n| have[*n] != want[*n]);
            let details: Vec<String> =
                wrong.map(|n| format!("some of threads {:?}", slice(form, n))).collect();
            Differences { threads: details.len(), details, worst: 0.0 }
        }
        Entry::Values(values) => {
            let bytes = |end: usize| -> usize {
                form.compared().filter(|o| *o < end).map(|o| form.outs[o].bytes()).sum()
            };
            let stride = bytes(form.outs.len());
            let want = |o: usize, t: usize| {
                let at = t * stride + bytes(o);
                values[at..at + form.outs[o].bytes()].to_vec()
            };
            compare(form, &want, got, kept(form))
        }
        Entry::Absent(_) => Differences::default(),
    }
}
