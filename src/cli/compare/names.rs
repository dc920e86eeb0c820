//! Names of the kernels in a comparison. They are taken from the names of their files.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use warpgauge_contract::{MAX_CANDIDATE_NAME_BYTES, REFERENCE_NAME};

/// Names of the kernels in a comparison. No two are equal.
#[derive(Debug, PartialEq)]
pub(super) struct Names {
    /// Name of the reference in printed texts. Responses call it `reference`.
    pub reference: String,
    /// Names of the candidates. All are valid in a request.
    pub candidates: Vec<String>,
}

impl Names {
    /// Returns a name for each kernel: the name of its file or, if two are equal, the file's path.
    pub(super) fn of(reference: &Path, candidates: &[PathBuf]) -> Self {
        // A comparison file with candidates contains no names of kernel files, and standard input
        // has no name.
        let is_kernel = !candidates.is_empty() && reference != Path::new("-");
        let reference = if is_kernel { reference } else { Path::new(REFERENCE_NAME) };
        let files = || std::iter::once(reference).chain(candidates.iter().map(PathBuf::as_path));
        let short = |path: &Path| {
            path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
        };
        let distinct = files().map(short).collect::<BTreeSet<_>>().len() == files().count();
        let mut taken = BTreeSet::from([REFERENCE_NAME.to_owned()]);
        let mut names = files()
            .map(|path| match distinct {
                true => short(path),
                false => path.to_string_lossy().into_owned(),
            })
            .collect::<Vec<_>>();
        let candidates = names.split_off(1);
        let reference = match is_kernel {
            true => valid(&names.remove(0), &mut taken),
            false => REFERENCE_NAME.to_owned(),
        };
        let candidates = candidates.iter().map(|name| valid(name, &mut taken)).collect();
        Self { reference, candidates }
    }
}

/// Returns a valid name that is not in use yet: the given name, or the name with a number appended.
fn valid(name: &str, taken: &mut BTreeSet<String>) -> String {
    let printable: String =
        name.chars().map(|c| if warpgauge_model::is_hidden(c) { '\u{fffd}' } else { c }).collect();
    let numbered = (1u32..).map(|n| match n {
        1 => ended(&printable, ""),
        n => ended(&printable, &format!(" ({n})")),
    });
    // A request has few candidates, so an unused number is found soon.
    let free = numbered.into_iter().find(|name| !taken.contains(name)).unwrap_or_default();
    taken.insert(free.clone());
    free
}

/// Returns the end of the name with this ending, within the length limit for requests. The end of a
/// path is its most specific part.
fn ended(name: &str, ending: &str) -> String {
    let room = MAX_CANDIDATE_NAME_BYTES - ending.len();
    let cut = name.len().saturating_sub(room);
    let start = (cut..=name.len()).find(|at| name.is_char_boundary(*at)).unwrap_or(name.len());
    format!("{}{ending}", &name[start..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(reference: &str, candidates: &[&str]) -> Names {
        let candidates = candidates.iter().map(PathBuf::from).collect::<Vec<_>>();
        Names::of(Path::new(reference), &candidates)
    }

    #[test]
    fn kernels_have_the_names_of_their_files() {
        let found = names("x/a.cu", &["x/b.cu", "y/c.cu"]);
        assert_eq!(
            (found.reference.as_str(), found.candidates),
            ("a.cu", vec!["b.cu".into(), "c.cu".into()])
        );
        let found = names("x/a.cu", &["y/a.cu"]);
        assert_eq!((found.reference.as_str(), found.candidates), ("x/a.cu", vec!["y/a.cu".into()]));
        let found = names("a.cu", &["a.cu", "a.cu"]);
        assert_eq!(found.candidates, ["a.cu (2)", "a.cu (3)"]);
        assert_eq!(
            names("body.yaml", &[]),
            Names { reference: "reference".into(), candidates: vec![] }
        );
        assert_eq!(names("-", &["b.cu"]).reference, "reference");
    }

    #[test]
    fn requests_may_have_every_name() {
        let long = format!("{}.cu", "é".repeat(200));
        let found = names("a.cu", &["reference", "x\n\u{1b}[2J.cu", &long, &long]);
        assert_eq!(found.candidates[0], "reference (2)");
        let all = std::iter::once("reference").chain(found.candidates.iter().map(String::as_str));
        let all = all.collect::<Vec<_>>();
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
        for name in all {
            assert!((1..=MAX_CANDIDATE_NAME_BYTES).contains(&name.len()), "{name:?}");
            assert!(!name.chars().any(warpgauge_model::is_hidden), "{name:?}");
        }
        assert!(found.candidates[3].ends_with(".cu (2)"), "{found:?}");
    }
}
