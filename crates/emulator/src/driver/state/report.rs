//! The report for the service: counts, findings and messages of kernels since the last report.
//!
//! The report is bounded: if a process never takes it, the newest entries are dropped and counted.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::check::Finding;
use crate::counts::{Counts, INSTRUCTION_VALUES, InstructionCounts};
use crate::driver::c::entry::lock;
use crate::driver::c::json::{list, quoted};
use crate::exec::{LaunchFault, LaunchReport};

/// Maximum number of kernels (by name), findings (by position) and messages.
const MAX_KERNELS: usize = 256;
const MAX_FINDINGS: usize = 256;
const MAX_MESSAGES: usize = 64;
/// Maximum number of instructions of all kernels that the report has counts of.
const MAX_INSTRUCTIONS: usize = 16_384;
/// Message about a launch whose global memory race detection covers only in part.
const UNWATCHED: &str = "race detection covered only the first 64 MiB of the global memory that the \
                         kernel used";
/// Maximum length of a message, bytes.
const MAX_TEXT: usize = 4096;

/// Totals over all launches of a kernel.
struct Kernel {
    name: String,
    launches: u64,
    counts: Counts,
    /// Counts of instructions by their byte offset in the PTX.
    instructions: BTreeMap<u32, [u64; INSTRUCTION_VALUES]>,
}

/// Content of the report that no call has taken yet.
#[derive(Default)]
struct Kept {
    kernels: Vec<Kernel>,
    findings: Vec<Finding>,
    /// Subject and text of each message.
    messages: Vec<(String, String)>,
    dropped: [u64; 3],
}

/// The report of the process since the last call that took it.
#[derive(Default)]
pub struct Reports {
    kept: Mutex<Kept>,
    pub sanitize: AtomicBool,
    pub silent: AtomicBool,
    pub by_instruction: AtomicBool,
}

impl Reports {
    pub fn sanitizes(&self) -> bool {
        self.sanitize.load(Ordering::Acquire)
    }

    pub fn counts(&self) -> bool {
        !self.silent.load(Ordering::Acquire)
    }

    pub fn counts_instructions(&self) -> bool {
        self.by_instruction.load(Ordering::Acquire)
    }

    /// Adds the counts and findings of a completed launch.
    pub fn add(&self, kernel: &str, report: &LaunchReport) {
        let mut kept = lock(&self.kept);
        kept.count(kernel, &report.counts);
        kept.count_instructions(kernel, &report.instructions);
        report.findings.iter().for_each(|finding| kept.find(finding));
        if report.unwatched {
            kept.say(kernel, UNWATCHED);
        }
    }

    /// Adds the finding and the message of a launch that stopped with a fault.
    pub fn fault(&self, kernel: &str, fault: &LaunchFault) {
        let mut kept = lock(&self.kept);
        fault.finding.iter().for_each(|finding| kept.find(finding));
        kept.say(kernel, &fault.message);
    }

    /// Adds a message. The subject is not a kernel but, for example, a module that could not be
    /// loaded.
    pub fn message(&self, subject: &str, text: &str) {
        lock(&self.kept).say(subject, text);
    }

    /// Returns the report as JSON and clears it if its length is at most `room` bytes. Otherwise
    /// returns the length of the report and keeps it.
    pub fn take(&self, room: usize) -> Result<String, usize> {
        let mut kept = lock(&self.kept);
        let text = kept.to_json();
        if text.len() > room {
            return Err(text.len());
        }
        *kept = Kept::default();
        Ok(text)
    }
}

impl Kept {
    fn count(&mut self, name: &str, counts: &Counts) {
        if let Some(kernel) = self.kernels.iter_mut().find(|kernel| kernel.name == name) {
            kernel.launches += 1;
            kernel.counts.add(counts);
        } else if self.kernels.len() < MAX_KERNELS {
            let (name, counts) = (name.to_owned(), *counts);
            let instructions = BTreeMap::new();
            self.kernels.push(Kernel { name, launches: 1, counts, instructions });
        } else {
            self.dropped[0] += 1;
        }
    }

    fn count_instructions(&mut self, name: &str, counted: &[InstructionCounts]) {
        if counted.is_empty() {
            return;
        }
        let known: usize = self.kernels.iter().map(|kernel| kernel.instructions.len()).sum();
        let mut room = MAX_INSTRUCTIONS.saturating_sub(known);
        let kernel = self.kernels.iter_mut().find(|kernel| kernel.name == name);
        let Some(kernel) = kernel else { return };
        for one in counted {
            if let Some(sums) = kernel.instructions.get_mut(&one.at) {
                sums.iter_mut().zip(one.values()).for_each(|(sum, own)| *sum += own);
            } else if room > 0 {
                kernel.instructions.insert(one.at, one.values());
                room -= 1;
            }
        }
    }

    fn find(&mut self, finding: &Finding) {
        let same = |known: &&mut Finding| {
            known.check == finding.check
                && known.kernel == finding.kernel
                && known.source == finding.source
                && (known.source.is_some() || known.message == finding.message)
        };
        if let Some(known) = self.findings.iter_mut().find(same) {
            known.count = known.count.saturating_add(finding.count);
        } else if self.findings.len() < MAX_FINDINGS {
            self.findings.push(finding.clone());
        } else {
            self.dropped[1] += 1;
        }
    }

    fn say(&mut self, subject: &str, text: &str) {
        if self.messages.len() >= MAX_MESSAGES {
            self.dropped[2] += 1;
            return;
        }
        let end = text.floor_char_boundary(MAX_TEXT);
        self.messages.push((subject.to_owned(), text[..end].to_owned()));
    }

    fn to_json(&self) -> String {
        let kernels = list(self.kernels.iter().map(|kernel| {
            let counts =
                kernel.counts.iter().map(|(name, value)| format!("{}:{value}", quoted(name)));
            let counts = counts.collect::<Vec<_>>().join(",");
            let (name, launches) = (quoted(&kernel.name), kernel.launches);
            let rows = kernel.instructions.iter();
            let rows = rows.map(|(at, values)| format!("[{at},{values:?}]")).collect::<Vec<_>>();
            let instructions = match rows.join(",") {
                rows if rows.is_empty() => rows,
                rows => format!(",\"instructions\":[{rows}]"),
            };
            format!(
                "{{\"name\":{name},\"launches\":{launches},\"counts\":{{{counts}}}{instructions}}}"
            )
        }));
        let findings = list(self.findings.iter().map(finding_json));
        let messages = list(self.messages.iter().map(|(subject, text)| {
            format!("{{\"subject\":{},\"text\":{}}}", quoted(subject), quoted(text))
        }));
        let [no_kernels, no_findings, no_messages] = self.dropped;
        format!(
            "{{\"kernels\":{kernels},\"findings\":{findings},\"messages\":{messages},\
             \"dropped\":{{\"launches\":{no_kernels},\"findings\":{no_findings},\
             \"messages\":{no_messages}}}}}"
        )
    }
}

fn finding_json(finding: &Finding) -> String {
    let mut out = String::from("{");
    // Writing to a string cannot fail.
    let _ = write!(out, "\"check\":{},", quoted(finding.check));
    let _ = write!(out, "\"kernel\":{},", quoted(&finding.kernel));
    let _ = write!(out, "\"block\":{:?},\"thread\":{:?},", finding.block, finding.thread);
    let _ = write!(out, "\"address\":{},\"bytes\":{},", finding.address, finding.bytes);
    match &finding.source {
        Some((file, line)) => {
            let _ = write!(out, "\"file\":{},\"line\":{line},", quoted(file));
        }
        None => out.push_str("\"file\":null,\"line\":null,"),
    }
    let _ = write!(out, "\"message\":{},\"count\":{}}}", quoted(&finding.message), finding.count);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(message: &str) -> Finding {
        Finding {
            check: "out_of_bounds",
            kernel: "k".into(),
            block: [1, 2, 3],
            thread: [4, 5, 6],
            address: 7,
            bytes: 8,
            source: Some(("a\"b.cu".into(), 9)),
            message: message.into(),
            count: 2,
        }
    }

    #[test]
    fn reports_sum_bound_and_empty_themselves() {
        let reports = Reports::default();
        let counts = Counts { warp_instructions: 3, thread_instructions: 96, ..Counts::default() };
        let findings = vec![finding("first")];
        let report = LaunchReport { counts, findings, ..LaunchReport::default() };
        reports.add("k", &report);
        reports.add("k", &report);
        for index in 0..=MAX_MESSAGES {
            reports.message("module", &format!("line {index}"));
        }
        let needed = reports.take(10).unwrap_err();
        let text = reports.take(needed).unwrap();
        assert!(text.contains(r#""name":"k","launches":2,"counts":{"warp_instructions":6,"#));
        assert!(text.contains(r#""file":"a\"b.cu","line":9,"message":"first","count":4}"#));
        assert!(text.contains(r#""block":[1, 2, 3]"#));
        assert!(text.contains(r#""dropped":{"launches":0,"findings":0,"messages":1}"#));
        assert!(reports.take(1000).unwrap().contains(r#""kernels":[],"findings":[]"#));
    }

    #[test]
    fn counts_of_instructions_are_summed_and_bounded() {
        let counted = |at| InstructionCounts { at, ..InstructionCounts::default() };
        let reports = Reports::default();
        let plain = LaunchReport::default();
        reports.add("k", &plain);
        assert!(!reports.take(1 << 20).unwrap().contains("instructions\":["), "none were counted");
        let instructions = (0..=MAX_INSTRUCTIONS as u32).map(counted).collect();
        let report = LaunchReport { instructions, ..plain };
        reports.add("k", &report);
        reports.add("k", &report);
        reports.add("other", &report);
        let text = reports.take(16 << 20).unwrap();
        assert!(
            text.contains("\"instructions\":[[0,[0, 0, 0, 0, 0, 0, 0, 0, 0, 0]],[1,"),
            "{text}"
        );
        assert_eq!(text.matches("0, 0, 0]]").count(), MAX_INSTRUCTIONS);
    }
}
