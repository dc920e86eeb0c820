//! Reads the files of `tests/verdict`. Each contains one [`Problem`], whose kernels are all in the
//! same language. `tests/verdict/README.md` describes the format.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail, ensure};

use super::cuda::Signature;

/// Language of a problem's kernels.
pub enum Language {
    /// CUDA, with the arguments that all kernels of the problem take.
    Cuda(Signature),
    /// PyTorch, forward only or with a backward pass.
    Torch {
        /// Whether each call also runs the backward pass.
        backward: bool,
    },
}

/// Whether a candidate solves the problem.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// The verdict must be `correct`.
    Honest,
    /// The verdict must not be `correct`.
    Useless,
}

/// A candidate whose source is in the problem's file.
pub struct Section {
    /// Whether the candidate is honest or useless.
    pub class: Class,
    /// Name that is unique in the problem.
    pub name: String,
    /// Launch, in the same form as the file's `launch`. Absent if the file's `launch` applies.
    pub launch: Option<String>,
    /// Source code of the candidate.
    pub source: String,
}

/// A file of the corpus.
pub struct Problem {
    /// Name of the file.
    pub name: String,
    /// Group of the problem. The table contains a row for each group.
    pub kind: String,
    /// Language of the kernels.
    pub language: Language,
    /// Source code of the reference.
    pub reference: String,
    /// Candidates whose sources are in the file.
    pub sections: Vec<Section>,
    /// Derived useless candidates that do not apply to the problem. Each has a reason.
    pub without: Vec<(String, String)>,
    /// Reason why the contract is weak. No candidate may then be `correct`.
    pub weak: Option<String>,
    /// Candidates whose verdict is known to be wrong. Each has a reason.
    pub findings: Vec<(String, String)>,
}

/// Reads every problem whose name contains `only`, sorted by name.
pub fn read(folder: &Path, only: &str) -> Result<Vec<Problem>> {
    let mut paths = Vec::new();
    let entries =
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.extension().is_some_and(|e| e == "cu" || e == "py") && name.contains(only) {
            paths.push(path);
        }
    }
    paths.sort();
    let problems = paths.iter().map(|path| {
        let text = fs::read_to_string(path)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let cuda = path.extension().is_some_and(|e| e == "cu");
        parse(&name, &text, cuda).with_context(|| path.display().to_string())
    });
    problems.collect()
}

fn parse(name: &str, text: &str, cuda: bool) -> Result<Problem> {
    let mark = if cuda { "//@ " } else { "#@ " };
    let mut header = Vec::new();
    let mut parts: Vec<(&str, String)> = Vec::new();
    for line in text.lines() {
        match line.strip_prefix(mark).map(|rest| rest.split_once(' ').unwrap_or((rest, ""))) {
            Some(("reference" | "honest" | "useless", _)) => {
                parts.push((line.trim_start_matches(mark), String::new()));
            }
            Some(field) => header.push(field),
            None => match parts.last_mut() {
                Some((_, source)) => {
                    source.push_str(line);
                    source.push('\n');
                }
                None => ensure!(line.trim().is_empty(), "text before the reference: `{line}`"),
            },
        }
    }
    let mut problem = Problem {
        name: name.to_owned(),
        kind: String::new(),
        language: Language::Torch { backward: false },
        reference: String::new(),
        sections: Vec::new(),
        without: Vec::new(),
        weak: None,
        findings: Vec::new(),
    };
    let mut arguments = Vec::new();
    for (field, rest) in header {
        match field {
            "kind" => rest.clone_into(&mut problem.kind),
            "without" => problem.without.append(&mut named(rest)?),
            "weak" => problem.weak = Some(rest.to_owned()),
            "finding" => problem.findings.append(&mut named(rest)?),
            "backward" if !cuda => problem.language = Language::Torch { backward: true },
            _ if cuda => arguments.push((field, rest)),
            _ => bail!("a torch problem has no field `{field}`"),
        }
    }
    ensure!(!problem.kind.is_empty(), "`kind` is missing");
    if cuda {
        problem.language = Language::Cuda(Signature::parse(&arguments)?);
    }
    for (title, source) in parts {
        let mut words = title.splitn(3, ' ');
        let class = match words.next() {
            Some("honest") => Class::Honest,
            Some("useless") => Class::Useless,
            _ => {
                problem.reference = source;
                continue;
            }
        };
        let name = words.next().ok_or_else(|| anyhow!("`{title}` has no name"))?.to_owned();
        let launch = words.next().map(str::to_owned);
        problem.sections.push(Section { class, name, launch, source });
    }
    ensure!(!problem.reference.is_empty(), "the reference is missing");
    Ok(problem)
}

/// Reads `name other: reason`. Returns a pair of name and reason for each name.
fn named(text: &str) -> Result<Vec<(String, String)>> {
    let (names, reason) = text.split_once(": ").ok_or_else(|| anyhow!("`{text}` has no reason"))?;
    Ok(names.split(' ').map(|name| (name.to_owned(), reason.to_owned())).collect())
}

#[cfg(test)]
mod tests {
    use super::{Class, Language, parse, read};
    use crate::shell;

    const TEXT: &str = "//@ kind elementwise
//@ in x f32[8] randn
//@ out y f32[8]
//@ launch grid 1 block 8
//@ without half: a reason
//@ reference
KERNEL { STORE(y, threadIdx.x, x[threadIdx.x]); }
//@ honest one_thread grid 1 block 1
KERNEL {}
//@ useless nothing
KERNEL {}
";

    #[test]
    fn a_file_has_a_reference_and_candidates() {
        let problem = parse("p", TEXT, true);
        let problem = problem.unwrap_or_else(|error| panic!("{error:#}"));
        assert!(matches!(problem.language, Language::Cuda(_)));
        assert_eq!(problem.sections.len(), 2);
        assert_eq!(problem.sections[0].class, Class::Honest);
        assert_eq!(problem.sections[0].launch.as_deref(), Some("grid 1 block 1"));
        assert_eq!(problem.without, [("half".to_owned(), "a reason".to_owned())]);
        assert!(problem.reference.starts_with("KERNEL"));
    }

    #[test]
    fn a_file_without_a_kind_is_refused() {
        assert!(parse("p", "#@ reference\nclass Model: pass\n", false).is_err());
        assert!(parse("p", "#@ kind x\n#@ grid 1\n#@ reference\n", false).is_err());
    }

    #[test]
    fn the_corpus_has_problems_and_candidates_enough() {
        let problems = read(&shell::root().join("tests/verdict"), "");
        let problems = problems.unwrap_or_else(|error| panic!("{error:#}"));
        assert!(problems.len() >= 100, "{}", problems.len());
        let count = |class: Class| {
            let sections = problems.iter().flat_map(|problem| &problem.sections);
            sections.filter(|section| section.class == class).count()
        };
        assert!(count(Class::Honest) >= 250 && count(Class::Useless) >= 60);
        for problem in &problems {
            let mut names: Vec<_> = problem.sections.iter().map(|s| (&s.name, s.class)).collect();
            names.sort_by_key(|(name, _)| *name);
            names.dedup_by_key(|(name, _)| *name);
            assert_eq!(names.len(), problem.sections.len(), "{}", problem.name);
            assert!(names.iter().any(|(_, class)| *class == Class::Honest), "{}", problem.name);
        }
    }
}
