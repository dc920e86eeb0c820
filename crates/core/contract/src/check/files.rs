//! Checks of the files that a source includes.

use crate::error::{Mistakes, quoted};
use crate::{ContractLimits, KernelCode};

use warpgauge_model::FailureCode;

/// Maximum number of files of one kernel.
pub const MAX_FILES: usize = 256;

/// Maximum length of a file's path, bytes.
const MAX_PATH_BYTES: usize = 200;

/// Checks `files` and `source_path` of a kernel; `path` is the kernel's path in the request.
pub(super) fn check(
    kernel: &KernelCode,
    limits: &ContractLimits,
    path: &str,
    mistakes: &mut Mistakes,
) {
    let at = format!("{path}.files");
    if let Some(own) = &kernel.source_path {
        let at = format!("{path}.source_path");
        check_path(own, &at, mistakes);
        mistakes.require(!kernel.files.contains_key(own), at, FailureCode::InvalidValue, || {
            "a file has this path, too".to_owned()
        });
    }
    if kernel.files.is_empty() && kernel.source_path.is_none() {
        return;
    }
    if !kernel.kernel_type.has_files() {
        let message = format!(
            "a {} kernel cannot have further files: put everything into its code",
            kernel.kernel_type.name()
        );
        let at = if kernel.files.is_empty() { format!("{path}.source_path") } else { at };
        return mistakes.add(at, FailureCode::WrongField, message);
    }
    if kernel.files.len() > MAX_FILES {
        let message = format!("{} files; at most {MAX_FILES} are accepted", kernel.files.len());
        return mistakes.add(at, FailureCode::TooLarge, message);
    }
    let of_files: usize = kernel.files.values().map(String::len).sum();
    let bytes = of_files + kernel.source_code.as_ref().map_or(0, String::len);
    if bytes > limits.max_source_bytes {
        let message = format!(
            "the source and its files have {bytes} bytes; at most {} are accepted",
            limits.max_source_bytes
        );
        return mistakes.add(at, FailureCode::TooLarge, message);
    }
    for (name, text) in &kernel.files {
        let at = format!("{at}.{}", quoted(name));
        check_path(name, &at, mistakes);
        if let Some(offset) = text.find('\0') {
            let message = format!("the file has a NUL at byte {offset}");
            mistakes.add(at.clone(), FailureCode::InvalidValue, message);
        }
        let inside = format!("{name}/");
        let is_directory = kernel.files.range(inside.clone()..).next();
        let is_directory = is_directory.is_some_and(|(other, _)| other.starts_with(&inside));
        mistakes.require(!is_directory, at, FailureCode::InvalidValue, || {
            "another file lies in a directory with this path".to_owned()
        });
    }
}

fn check_path(name: &str, at: &str, mistakes: &mut Mistakes) {
    let is_plain = |part: &str| {
        let allowed = |c: char| c.is_ascii_alphanumeric() || "._+-".contains(c);
        !part.is_empty() && part != "." && part != ".." && part.chars().all(allowed)
    };
    let fits = name.len() <= MAX_PATH_BYTES && name.split('/').all(is_plain);
    mistakes.require(fits, at.to_owned(), FailureCode::InvalidValue, || {
        format!(
            "expected a relative path of at most {MAX_PATH_BYTES} letters, digits and `._+-`, with `/` between \
             directories and without `.` and `..`"
        )
    });
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn mistakes_of(change: impl FnOnce(&mut Value)) -> Vec<String> {
        let mut kernel = json!({
            "kernel_type": "cuda", "source_code": "k",
            "files": {"include/a.cuh": "int a;", "include/b/c.h": "", "x_1-2+3.inl": ""},
            "source_path": "src/kernel.cu",
        });
        change(&mut kernel);
        let kernel: KernelCode = serde_json::from_value(kernel).unwrap();
        let limits = ContractLimits { max_source_bytes: 100, ..ContractLimits::default() };
        let mut mistakes = Mistakes::new(limits.max_errors);
        check(&kernel, &limits, "kernel", &mut mistakes);
        let found = mistakes.into_result().err().unwrap_or_default();
        found.into_iter().map(|one| format!("{}: {}", one.path, one.message)).collect()
    }

    #[test]
    fn files_lie_below_one_directory() {
        assert_eq!(mistakes_of(|_| ()), Vec::<String>::new());
        let long = "d/".repeat(100) + "x.h";
        for bad in
            ["../x.h", "/x.h", "a//x.h", "a/./x.h", "", "a\\x.h", "a b.h", "é.h", long.as_str()]
        {
            let found = mistakes_of(|kernel| kernel["files"][bad] = "".into());
            assert!(
                found.len() == 1 && found[0].contains("expected a relative path"),
                "{bad}: {found:?}"
            );
            let found = mistakes_of(|kernel| kernel["source_path"] = bad.into());
            assert!(
                found.len() == 1 && found[0].contains("kernel.source_path"),
                "{bad}: {found:?}"
            );
        }
    }

    #[test]
    fn files_are_bounded_and_belong_to_sources_that_include() {
        let many: serde_json::Map<String, Value> =
            (0..257).map(|index| (format!("{index}.h"), "".into())).collect();
        for (found, what) in [
            (mistakes_of(|kernel| kernel["files"] = many.into()), "257 files; at most 256"),
            (
                mistakes_of(|kernel| kernel["files"]["a.h"] = "x".repeat(100).into()),
                "have 107 bytes",
            ),
            (mistakes_of(|kernel| kernel["files"]["a.h"] = "\0".into()), "NUL at byte 0"),
            (mistakes_of(|kernel| kernel["files"]["include"] = "".into()), "another file lies"),
            (
                mistakes_of(|kernel| kernel["kernel_type"] = "ptx".into()),
                "cannot have further files",
            ),
            (
                mistakes_of(|kernel| {
                    kernel["kernel_type"] = "torch".into();
                    kernel["files"] = json!({});
                }),
                "cannot have further files",
            ),
            (
                mistakes_of(|kernel| kernel["source_path"] = "include/a.cuh".into()),
                "has this path, too",
            ),
        ] {
            assert!(found.len() == 1 && found[0].contains(what), "{what}: {found:?}");
        }
    }
}
