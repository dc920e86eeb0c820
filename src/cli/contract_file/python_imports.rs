//! Finds the imports of Python modules without an interpreter.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Maximum length of a statement, lines.
const MAX_LINES: usize = 256;

/// Import of one Python module by a statement.
#[derive(Debug, PartialEq, Eq)]
struct Import {
    /// Number of dots before the name of the module.
    dots: usize,
    module: String,
    /// Names that are imported from the module.
    names: Vec<String>,
}

/// Returns the directory that contains a module's top-level package. It is the first ancestor
/// directory that is not a package.
pub(super) fn root_of(directory: &Path) -> PathBuf {
    let mut root = directory;
    while root.join("__init__.py").is_file()
        && let Some(parent) = root.parent()
    {
        root = parent;
    }
    root.to_owned()
}

/// Returns the files in `roots` that a module imports. `own` is the directory of the module. The
/// last root contains the top-level package; files outside it are not collected.
///
/// Packages that contain an imported module are omitted, because they often import all of their
/// modules.
pub(super) fn imported(text: &str, own: &Path, roots: [&Path; 2]) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    for Import { dots, module, names } in imports(text) {
        let base = dots.checked_sub(1).and_then(|up| own.ancestors().nth(up));
        let base = base.filter(|base| base.starts_with(roots[1]));
        let bases = if dots == 0 { roots.to_vec() } else { base.into_iter().collect() };
        for base in bases {
            let within = module.split('.').filter(|part| !part.is_empty());
            let path = within.fold(base.to_owned(), |path, part| path.join(part));
            let files = files_of(&path, &names, !module.is_empty());
            if !files.is_empty() {
                found.extend(files);
                break;
            }
        }
    }
    found
}

/// Returns the files of a module, or of those imported names that are modules. `is_named` is false
/// if the import consists only of dots.
fn files_of(path: &Path, names: &[String], is_named: bool) -> Vec<PathBuf> {
    let python = |path: &Path| {
        let mut file = path.as_os_str().to_owned();
        file.push(".py");
        PathBuf::from(file)
    };
    let file_of = |path: &Path| {
        let file = python(path);
        let package = path.join("__init__.py");
        [file, package].into_iter().find(|file| file.is_file())
    };
    let module = python(path);
    if is_named && module.is_file() {
        return vec![module];
    }
    let of_names = names.iter().map(|name| file_of(&path.join(name)));
    let of_names: Vec<Option<PathBuf>> = of_names.collect();
    let all_modules = !names.is_empty() && of_names.iter().all(Option::is_some);
    let package = Some(path.join("__init__.py")).filter(|file| !all_modules && file.is_file());
    of_names.into_iter().flatten().chain(package).collect()
}

fn imports(text: &str) -> Vec<Import> {
    let mut found = Vec::new();
    let mut lines = text.lines().map(|line| line.split('#').next().unwrap_or_default());
    while let Some(line) = lines.next() {
        let mut statement = line.trim().to_owned();
        let is_import = ["from ", "import "].iter().any(|word| statement.starts_with(word));
        if !is_import {
            continue;
        }
        let is_open = |statement: &str| {
            statement.contains('(') && !statement.contains(')') || statement.ends_with('\\')
        };
        for _ in 0..MAX_LINES {
            let Some(next) = is_open(&statement).then(|| lines.next()).flatten() else { break };
            statement.truncate(statement.trim_end_matches('\\').len());
            statement.push(' ');
            statement.push_str(next.trim());
        }
        found.extend(parsed(&statement));
    }
    found
}

fn parsed(statement: &str) -> Vec<Import> {
    let names = |list: &str| -> Vec<String> {
        let plain = list.trim().trim_start_matches('(').trim_end_matches(')');
        let first = |part: &str| part.split_whitespace().next().map(str::to_owned);
        plain.split(',').filter_map(first).filter(|name| name != "*").collect()
    };
    let Some(rest) = statement.strip_prefix("from ") else {
        let modules = names(statement.trim_start_matches("import "));
        let import = |module| Import { dots: 0, module, names: Vec::new() };
        return modules.into_iter().map(import).collect();
    };
    let Some((module, list)) = rest.split_once(" import") else { return Vec::new() };
    let module = module.trim();
    let name = module.trim_start_matches('.');
    let dots = module.len() - name.len();
    vec![Import { dots, module: name.to_owned(), names: names(list) }]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_read_over_several_lines() {
        let of = |dots, module: &str, names: &[&str]| Import {
            dots,
            module: module.to_owned(),
            names: names.iter().map(|name| (*name).to_owned()).collect(),
        };
        let text = "import a.b as c, d  # why\nfrom ..x.y import (  # all\n    one as two,\n    three,\n)\n\
                    try:\n    from . import k\nexcept ImportError: pass\nfrom z import \\\n    w\nfrom q import *\n\
                    importing = 'import n'\nfrom here to there\n";
        assert_eq!(
            imports(text),
            [
                of(0, "a.b", &[]),
                of(0, "d", &[]),
                of(2, "x.y", &["one", "three"]),
                of(1, "", &["k"]),
                of(0, "z", &["w"]),
                of(0, "q", &[]),
            ]
        );
    }
}
