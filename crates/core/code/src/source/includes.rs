//! Combines a source with the supplied files that it includes. The main function is [`united`].

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::{Token, TokenKind, tokens};

/// A source, and the files that it includes, directly or through other files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnitedSource<'a> {
    /// The source. It includes each file by its path from the root.
    pub text: Cow<'a, str>,
    /// Files by their paths from the root. They include one another by these paths, too.
    pub files: Vec<(String, String)>,
}

impl UnitedSource<'_> {
    /// Returns the source and all files as one text, for searches.
    pub fn whole(&self) -> Cow<'_, str> {
        whole(&self.text, &self.files)
    }
}

/// Returns a source and its files as one text, for searches.
pub fn whole<'a>(text: &'a str, files: &[(String, String)]) -> Cow<'a, str> {
    if files.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut whole = text.to_owned();
    for (_, text) in files {
        whole.push('\n');
        whole.push_str(text);
    }
    Cow::Owned(whole)
}

/// An `#include` whose name matches several files.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`#include \"{header}\"` in {within} may mean {}: write one of these paths",
    files.join(" or ")
)]
pub struct AmbiguousInclude {
    /// Included name, as the directive contains it.
    pub header: String,
    /// Path of the including file; `the source` for the source.
    pub within: String,
    /// Paths of the files to which the name may refer.
    pub files: Vec<String>,
}

/// Returns the text after `#include`, if the directive is one.
fn include(directive: &str) -> Option<&str> {
    directive.trim_start_matches('#').trim_start().strip_prefix("include").map(str::trim_start)
}

/// Returns the name in an `#include` directive, if it is given literally.
pub fn included_header(directive: &str) -> Option<&str> {
    let rest = include(directive)?;
    let closing = match rest.as_bytes().first()? {
        b'<' => '>',
        b'"' => '"',
        _ => return None,
    };
    rest[1..].split_once(closing).map(|(header, _)| header.trim())
}

/// Returns a source without its directives that include this name in quotes, or `None` if it has
/// none. Line numbers are unchanged.
pub fn without_include(source: &str, header: &str) -> Option<String> {
    let quoted = format!("\"{header}\"");
    let is_it = |token: &Token<'_>| {
        token.kind == TokenKind::Directive
            && included_header(token.text) == Some(header)
            && token.text.contains(&quoted)
    };
    let mut text = source.as_bytes().to_vec();
    let mut is_changed = false;
    for token in tokens(source).filter(is_it) {
        let bytes = &mut text[token.at..token.at + token.text.len()];
        bytes.iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
        is_changed = true;
    }
    // Only whole tokens were replaced by spaces.
    let text = String::from_utf8(text).ok()?;
    is_changed.then_some(text)
}

/// Finds the files that a source includes, and replaces each included name by the file's path from
/// the root. `at` is the path of the source among `files`, whose keys are paths of normal
/// components, separated by `/`.
///
/// As in a compiler, an included name is searched for in the directory of the including file, then
/// in that of the source, and then in the root. If no file is found, the name refers to the only
/// file whose path ends with it, so that callers need no list of include directories. Names that
/// match no file are unchanged. An `#include` of a macro may refer to any file. A file whose path
/// is `reserved`, for the source or for a header of the compiler, gets a different path.
///
/// # Errors
/// Returns an error if several paths end with a name.
pub fn united<'a>(
    source: &'a str,
    at: &str,
    files: &BTreeMap<String, String>,
    reserved: &[&str],
) -> Result<UnitedSource<'a>, AmbiguousInclude> {
    let seek = Seek { files, reserved, directory: directory_of(at) };
    let mut found = BTreeSet::new();
    let text = seek.renamed(source, at, &mut found)?;
    let mut united = UnitedSource { text, files: Vec::new() };
    let mut done = BTreeSet::new();
    while let Some(path) = found.pop_first() {
        if !done.insert(path.clone()) {
            continue;
        }
        if let Some(content) = files.get(&path) {
            // Editors on Windows begin a file with a byte order mark.
            let content = content.strip_prefix('\u{feff}').unwrap_or(content);
            let content = seek.renamed(content, &path, &mut found)?.into_owned();
            united.files.push((seek.name_of(&path), content));
        }
    }
    united.files.sort();
    Ok(united)
}

struct Seek<'f> {
    files: &'f BTreeMap<String, String>,
    reserved: &'f [&'f str],
    /// Directory of the source.
    directory: &'f str,
}

impl Seek<'_> {
    /// Replaces names of files by their paths, and adds these to `found`. Line numbers are
    /// unchanged.
    fn renamed<'t>(
        &self,
        text: &'t str,
        at: &str,
        found: &mut BTreeSet<String>,
    ) -> Result<Cow<'t, str>, AmbiguousInclude> {
        let mut renamed = String::new();
        let mut kept = 0;
        for token in tokens(text).filter(|token| token.kind == TokenKind::Directive) {
            let Some(rest) = include(token.text) else { continue };
            let Some(header) = included_header(token.text) else {
                found.extend(self.files.keys().cloned());
                continue;
            };
            let Some(path) = self.file_of(header, at)? else { continue };
            // The name is between its delimiters at the beginning of `rest`, which ends the token.
            let begin = token.at + token.text.len() - rest.len();
            let closing = if rest.starts_with('<') { '>' } else { '"' };
            let length = rest[1..].find(closing).map_or(rest.len(), |closing| closing + 2);
            renamed.push_str(&text[kept..begin]);
            renamed.push_str(&format!("\"{}\"", self.name_of(&path)));
            kept = begin + length;
            found.insert(path);
        }
        if kept == 0 {
            return Ok(Cow::Borrowed(text));
        }
        renamed.push_str(&text[kept..]);
        Ok(Cow::Owned(renamed))
    }

    /// Returns the path by which a file is included.
    fn name_of(&self, path: &str) -> String {
        let mut name = path.to_owned();
        let is_taken = |name: &str| {
            self.reserved.contains(&name) || name != path && self.files.contains_key(name)
        };
        while is_taken(&name) {
            name.insert_str(0, "files/");
        }
        name
    }

    fn file_of(&self, header: &str, at: &str) -> Result<Option<String>, AmbiguousInclude> {
        for directory in [directory_of(at), self.directory, ""] {
            if let Some(path) = joined(directory, header)
                && self.files.contains_key(&path)
            {
                return Ok(Some(path));
            }
        }
        let Some(end) = joined("", header) else { return Ok(None) };
        let end = format!("/{end}");
        let fitting: Vec<String> =
            self.files.keys().filter(|path| path.ends_with(&end)).cloned().collect();
        match fitting.as_slice() {
            [] => Ok(None),
            [only] => Ok(Some(only.clone())),
            _ => Err(AmbiguousInclude {
                header: header.to_owned(),
                within: if at.is_empty() { "the source".to_owned() } else { at.to_owned() },
                files: fitting,
            }),
        }
    }
}

fn directory_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(directory, _)| directory)
}

/// Joins a directory and a relative name, without `.` and `..`. Returns `None` for absolute names
/// and for names outside of the root.
fn joined(directory: &str, name: &str) -> Option<String> {
    if name.starts_with('/') {
        return None;
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in directory.split('/').chain(name.split('/')) {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(all: &[(&str, &str)]) -> BTreeMap<String, String> {
        all.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn an_include_in_quotes_can_be_left_out() {
        let source =
            "// \"a.h\"\n#include \"a.h\" // why\n# include \"b.h\"\n#include <a.h>\nint a;";
        let without = without_include(source, "a.h").unwrap();
        assert_eq!(without.lines().count(), source.lines().count());
        assert!(!without.contains("#include \"a.h\"") && without.contains("<a.h>"), "{without}");
        assert!(without.contains("# include \"b.h\"") && without.ends_with("int a;"), "{without}");
        assert_eq!(without_include(source, "c.h"), None);
    }

    #[test]
    fn each_file_is_included_by_its_path_from_the_root() {
        let all = files(&[
            (
                "include/a.cuh",
                "#pragma once\n#include \"b.cuh\"\n#  include <../common/x.h> // why\nint a;",
            ),
            ("include/b.cuh", "#include \"a.cuh\"\n#include <cub/cub.cuh>\n"),
            ("common/x.h", "int x;"),
            ("src/own.h", "int own;"),
            ("unused.h", "int unused;"),
        ]);
        let source = "// \"no.h\"\n#include \"../include/a.cuh\"\n#include \"own.h\"\r\n#include <math.h>\nint k;";
        let united = united(source, "src/kernel.cu", &all, &[]).unwrap();
        assert_eq!(
            united.text,
            "// \"no.h\"\n#include \"include/a.cuh\"\n#include \"src/own.h\"\r\n#include <math.h>\nint k;"
        );
        assert_eq!(
            united.files,
            [
                ("common/x.h".to_owned(), "int x;".to_owned()),
                (
                    "include/a.cuh".to_owned(),
                    "#pragma once\n#include \"include/b.cuh\"\n#  include \"common/x.h\" // why\nint a;"
                        .to_owned()
                ),
                (
                    "include/b.cuh".to_owned(),
                    "#include \"include/a.cuh\"\n#include <cub/cub.cuh>\n".to_owned()
                ),
                ("src/own.h".to_owned(), "int own;".to_owned()),
            ]
        );
    }

    #[test]
    fn the_end_of_one_path_is_enough_and_of_two_is_not() {
        let all = files(&[("lib/include/tile/load.h", ""), ("a/x.h", ""), ("b/x.h", "")]);
        let one = united("#include <tile/load.h>", "", &all, &[]).unwrap();
        assert_eq!(one.text, "#include \"lib/include/tile/load.h\"");
        assert_eq!(united("#include \"load\"", "", &all, &[]).unwrap().files, []);
        let error = united("#include \"x.h\"", "", &all, &[]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "`#include \"x.h\"` in the source may mean a/x.h or b/x.h: write one of these paths"
        );
        assert_eq!(
            united("#include \"x.h\"", "b/k.cu", &all, &[]).unwrap().text,
            "#include \"b/x.h\""
        );
    }

    #[test]
    fn names_outside_of_the_root_and_unfinished_ones_are_left_alone() {
        let all = files(&[("x.h", "")]);
        for source in ["#include \"../x.h", "#include \"/x.h\"", "#include \"../../x.h\""] {
            let united = united(source, "src/k.cu", &all, &[]);
            assert_eq!(united.unwrap().text, source);
        }
        assert_eq!(
            united("#include \"../x.h\"", "src/k.cu", &all, &[]).unwrap().text,
            "#include \"x.h\""
        );
    }

    #[test]
    fn names_of_the_compilers_own_files_and_macros_are_no_obstacle() {
        let all = files(&[("kernel.cu", "\u{feff}int k;"), ("files/kernel.cu", ""), ("x.h", "")]);
        let one = united("#include \" kernel.cu \"", "", &all, &["kernel.cu"]).unwrap();
        assert_eq!(one.text, "#include \"files/files/kernel.cu\"");
        assert_eq!(one.files, [("files/files/kernel.cu".to_owned(), "int k;".to_owned())]);
        for source in ["#define H \"x.h\"\n#include H", "#include /* why */ \"x.h\""] {
            let any = united(source, "", &all, &[]).unwrap();
            assert_eq!((&*any.text, any.files.len()), (source, 3));
        }
    }
}
