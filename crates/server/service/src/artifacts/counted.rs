//! Attributes the counts of a launch to the instructions of a listing and to source lines. The main
//! function is [`counters`].
//!
//! The PTX that ran usually lacks line information, and the listing comes from a second compilation
//! with it. Both have the same instructions in the same order.

use std::collections::{BTreeMap, HashMap};

use warpgauge_code::listing::{CodeLanguage, LinkedInstruction, linked};
use warpgauge_executor::KeptKernel;
use warpgauge_job_views::{CodeCounters, CodeListing, LineCounters, ListedCounters, SourceText};
use warpgauge_model::{CountedCode, ImageFormat, InstructionCounts};

const ON_A_GPU: &str = "on a GPU the service reads counters of whole kernels, not of their instructions; profile the \
     kernel with `ncu --section SourceCounters` and import its source page (`ncu --import FILE --csv \
     --page source`), or evaluate on the emulated device with `profile: {}`";
const NOT_COUNTED: &str = "the emulated device counted no launch of the kernel, because the job requested no profile or \
     the kernel did not run to its end; evaluate again with `profile: {}`";
const NO_PTX: &str = "the emulated device ran another image than PTX; submit CUDA C++ or PTX";
const OTHER_CODE: &str = "the PTX with line information has other instructions than the PTX that ran; evaluate again with \
     `sanitize: true`, which compiles with line information";

/// Returns the counters of a kernel for its PTX listing.
pub(super) fn counters(
    kernel: &KeptKernel,
    ptx: &CodeListing,
    files: &[SourceText],
) -> CodeCounters {
    let counted = match &kernel.counted {
        Some(counted) => counted,
        // The reason is that of the listing: no code was stored, or none was compiled.
        None if !is_code(kernel) => return none(ptx.reason.as_deref().unwrap_or(NO_PTX)),
        None if kernel.target.emulated => return none(NOT_COUNTED),
        None => return none(ON_A_GPU),
    };
    if let Some(reason) = &ptx.reason {
        return none(&format!("the PTX is missing: {reason}"));
    }
    let image = kernel.built.as_ref().filter(|built| built.format == ImageFormat::Ptx);
    let Some(image) = image else { return none(NO_PTX) };
    let ran = linked(&String::from_utf8_lossy(&image.image), CodeLanguage::Ptx);
    if !are_same(&ran.instructions, &ptx.instructions) {
        return none(OTHER_CODE);
    }
    attributed(counted, &ran.offsets, &ptx.instructions, files)
}

/// Returns whether device code of the kernel is stored.
fn is_code(kernel: &KeptKernel) -> bool {
    kernel.built.as_ref().is_some_and(|built| built.format != ImageFormat::Library)
}

fn none(reason: &str) -> CodeCounters {
    CodeCounters { reason: Some(reason.to_owned()), ..CodeCounters::default() }
}

/// Returns whether two listings have the same opcodes. Names of variables may differ, because the
/// compiler derives some of them from its options.
fn are_same(ran: &[LinkedInstruction], shown: &[LinkedInstruction]) -> bool {
    ran.len() == shown.len()
        && ran.iter().zip(shown).all(|(one, other)| opcode(one).eq(opcode(other)))
}

/// Returns the guard of an instruction, if it has one, and its opcode.
fn opcode(one: &LinkedInstruction) -> impl Iterator<Item = &str> {
    let words = if one.text.starts_with('@') { 2 } else { 1 };
    one.text.split(' ').take(words)
}

fn attributed(
    counted: &CountedCode,
    offsets: &[usize],
    shown: &[LinkedInstruction],
    files: &[SourceText],
) -> CodeCounters {
    let mut own = HashMap::<usize, InstructionCounts>::new();
    for one in &counted.instructions {
        own.entry(one.0 as usize).or_default().add(&one.counts());
    }
    let (mut lines, mut instructions) =
        (BTreeMap::<(usize, u32), InstructionCounts>::new(), Vec::new());
    for (index, (offset, one)) in offsets.iter().zip(shown).enumerate() {
        let Some(counts) = own.remove(offset) else { continue };
        let file = files.iter().position(|file| Some(&file.name) == one.file.as_ref());
        if let Some(place) = file.zip(one.line) {
            lines.entry(place).or_default().add(&counts);
        }
        instructions.push(ListedCounters { index, counts });
    }
    let mut listed = InstructionCounts::default();
    lines.values().for_each(|counts| listed.add(counts));
    let line = |((file, line), counts): ((usize, u32), InstructionCounts)| LineCounters {
        file: files[file].name.clone(),
        line,
        counts,
    };
    CodeCounters {
        language: Some(CodeLanguage::Ptx),
        total: Some(counted.total),
        lines: lines.into_iter().map(line).collect(),
        elsewhere: Some(counted.total.without(&listed)),
        instructions,
        reason: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use warpgauge_contract::KernelCode;
    use warpgauge_executor::BuiltImage;
    use warpgauge_model::{CountedInstruction, Target};

    const RAN: &str = ".entry k(){\n\tmov.u32 %r1, 0;\n\tst.global.u32 [%rd1], %r1;\n\tret;\n}\n";
    const SHOWN: &str = ".entry k(){\n\t.loc 1 2 3\n\tmov.u32 %r1, 0;\n\t.loc 1 3 3\n\
                         \tst.global.u32 [%rd1], %r1;\n\t.loc 2 1 1\n\tret;\n}\n\
                         .file 1 \"kernel.cu\"\n.file 2 \"other.h\"\n";

    fn kernel(counted: Option<CountedCode>, emulated: bool) -> KeptKernel {
        let code = serde_json::json!({"source_code": "x", "kernel_type": "cuda"});
        let code: KernelCode = serde_json::from_value(code).unwrap();
        let target = Target { compute_capability: (9, 0), driver_version: 13_000, emulated };
        let image = Arc::from(RAN.as_bytes());
        let built = BuiltImage { image, format: ImageFormat::Ptx, stages: Vec::new() };
        KeptKernel {
            built: Some(built),
            counted,
            ..KeptKernel::new("kernel", &code, target, false, String::new())
        }
    }

    fn listing(text: &str) -> CodeListing {
        let instructions = linked(text, CodeLanguage::Ptx).instructions;
        CodeListing { language: CodeLanguage::Ptx, instructions, truncated: false, reason: None }
    }

    fn files() -> Vec<SourceText> {
        vec![SourceText { name: "kernel.cu".to_owned(), text: "a\nb\nc\n".to_owned() }]
    }

    fn counted() -> CountedCode {
        let at = |text: &str| RAN.find(text).unwrap() as u32;
        let row =
            |at: u32, n: u64| CountedInstruction(at, [n, 32 * n, 31 * n, 0, 0, 0, 0, 0, 0, 0]);
        let mut store = row(at("st."), 2);
        store.1[3..6].copy_from_slice(&[2, 16, 8]);
        // An instruction that is in no listing, and one that two kernels reach.
        let rows = vec![row(at("mov"), 2), row(at("mov"), 1), store, row(at("ret"), 2), row(7, 5)];
        let mut total = InstructionCounts::default();
        rows.iter().for_each(|row| total.add(&row.counts()));
        CountedCode { total, instructions: rows }
    }

    #[test]
    fn counts_go_to_the_lines_of_their_instructions() {
        let found = counters(&kernel(Some(counted()), true), &listing(SHOWN), &files());
        let lines: Vec<_> = found
            .lines
            .iter()
            .map(|one| (&*one.file, one.line, one.counts.warp_instructions))
            .collect();
        assert_eq!(lines, [("kernel.cu", 2, 3), ("kernel.cu", 3, 2)]);
        assert_eq!(found.lines[1].counts.excess_sectors(), 8);
        let indices: Vec<_> = found
            .instructions
            .iter()
            .map(|one| (one.index, one.counts.warp_instructions))
            .collect();
        assert_eq!(indices, [(0, 3), (1, 2), (2, 2)]);
        assert_eq!(found.elsewhere.unwrap().warp_instructions, 2 + 5);
        let mut sum = found.elsewhere.unwrap();
        found.lines.iter().for_each(|one| sum.add(&one.counts));
        assert_eq!(Some(sum), found.total);
        assert_eq!((found.language, found.reason), (Some(CodeLanguage::Ptx), None));
    }

    #[test]
    fn without_counters_there_is_a_reason() {
        let reason = |kernel: &KeptKernel, text: &str| {
            let found = counters(kernel, &listing(text), &files());
            assert_eq!((found.total, found.lines.len()), (None, 0));
            found.reason.unwrap()
        };
        assert_eq!(reason(&kernel(None, true), SHOWN), NOT_COUNTED);
        assert_eq!(reason(&kernel(None, false), SHOWN), ON_A_GPU);
        let other = SHOWN.replace("mov.u32", "mov.b32");
        assert_eq!(reason(&kernel(Some(counted()), true), &other), OTHER_CODE);
        let failed = KeptKernel { built: None, ..kernel(None, true) };
        let missing = CodeListing { reason: Some("why".to_owned()), ..listing("") };
        assert_eq!(counters(&failed, &missing, &files()).reason.as_deref(), Some("why"));
        let found = counters(&kernel(Some(counted()), true), &missing, &files());
        assert_eq!(found.reason.as_deref(), Some("the PTX is missing: why"));
    }
}
