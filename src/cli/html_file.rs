//! `--html FILE`: writes the report as a page in a single file.

use std::fs::{self, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use clap::Args;
use tempfile::NamedTempFile;

use super::CliError;
use super::terminal::Terminal;
use warpgauge_page::PageOf;

/// The flag `--html` of commands that print a report.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct HtmlFlag {
    /// Write the report as a single HTML file, which loads nothing and can be mailed
    #[arg(long = "html", value_name = "FILE")]
    path: Option<PathBuf>,
}

impl HtmlFlag {
    /// Checks that the file can be written and is none of the command's input files, before anything
    /// runs. The check leaves no file behind.
    pub(super) fn check<'p>(
        &self,
        inputs: impl IntoIterator<Item = &'p PathBuf>,
    ) -> Result<(), CliError> {
        let Some(path) = &self.path else { return Ok(()) };
        let id = |path: &Path| fs::metadata(path).map(|found| (found.dev(), found.ino())).ok();
        let own = id(path);
        if own.is_some() && inputs.into_iter().any(|input| id(input) == own) {
            return Err(CliError::Usage(format!(
                "--html {}: the command reads this file; name another one to write",
                path.display()
            )));
        }
        open(path).map(drop).map_err(|source| failed(path, source))
    }

    /// Writes the page if the user requested it. Other processes see either the old file or the
    /// complete new one.
    pub(super) fn write(&self, page: PageOf<'_>, terminal: Terminal) -> Result<(), CliError> {
        let Some(path) = &self.path else { return Ok(()) };
        let written = open(path).and_then(|(mut file, target)| {
            file.write_all(warpgauge_page::file(page).as_bytes())?;
            file.persist(&target).map_err(|error| error.error)
        });
        written.map_err(|source| failed(path, source))?;
        terminal.note(&format!("wrote {}", path.display()));
        Ok(())
    }
}

fn failed(path: &Path, source: io::Error) -> CliError {
    CliError::Write { path: path.to_owned(), source }
}

/// Creates a temporary file in the directory of the target. Returns it with the path of the target.
/// If the given path is a symbolic link, the target is the file to which the link points.
fn open(path: &Path) -> io::Result<(NamedTempFile, PathBuf)> {
    let target = match fs::metadata(path) {
        // A path that is not a regular file, such as `/dev/null`, would be replaced by a file.
        Ok(found) if !found.is_file() => {
            return Err(io::Error::other("it is not a regular file; name a file to write"));
        }
        Ok(_) => fs::canonicalize(path)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => end_of_links(path),
        Err(error) => return Err(error),
    };
    let folder = target.parent().filter(|parent| !parent.as_os_str().is_empty());
    // These are the usual permissions of new files, to which the user's umask applies.
    let permissions = Permissions::from_mode(0o666);
    let file = tempfile::Builder::new()
        .prefix(".warpgauge-")
        .suffix(".html")
        .permissions(permissions)
        .tempfile_in(folder.unwrap_or(Path::new(".")))?;
    Ok((file, target))
}

/// Maximum number of symbolic links in a path, as that of Linux.
const MAX_LINKS: usize = 40;

/// The file that a path without one leads to.
fn end_of_links(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        let Ok(next) = fs::read_link(&path) else { break };
        // A relative link begins in the folder of the link.
        path = path.parent().unwrap_or(Path::new("")).join(next);
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpgauge_report::SweepResponse;

    fn sweep() -> SweepResponse {
        serde_json::from_str(include_str!("../../openapi/examples/sweep.json")).unwrap()
    }

    fn flag(path: &Path) -> HtmlFlag {
        HtmlFlag { path: Some(path.to_owned()) }
    }

    fn quiet() -> Terminal {
        Terminal { quiet: true, colour: false, interactive: false, verbose: false, width: None }
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn the_file_is_whole_and_nothing_else_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.html");
        let flag = flag(&path);
        flag.check([]).unwrap();
        assert!(names(folder.path()).is_empty());
        let sweep = sweep();
        flag.write(PageOf::Sweep(&sweep), quiet()).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("<!DOCTYPE html>") && text.ends_with("</html>"));
        assert_eq!(names(folder.path()), ["report.html"]);
        // A second report replaces the first one, through a link as well.
        let link = folder.path().join("link.html");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        fs::write(&path, "old").unwrap();
        HtmlFlag { path: Some(link.clone()) }.write(PageOf::Sweep(&sweep), quiet()).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    }

    #[test]
    fn an_input_is_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let [input, link] = ["k.cu", "link.html"].map(|name| folder.path().join(name));
        fs::write(&input, "source").unwrap();
        std::os::unix::fs::symlink(&input, &link).unwrap();
        let other = folder.path().join("none.cu");
        for path in [&input, &link] {
            let error = flag(path).check([&other, &input]).unwrap_err().to_string();
            assert!(error.contains("reads this file"), "{error}");
        }
        flag(&folder.path().join("new.html")).check([&input, &other]).unwrap();
        assert_eq!(fs::read_to_string(&input).unwrap(), "source");
    }

    #[test]
    fn links_to_a_missing_file_stay_and_the_file_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("reports")).unwrap();
        std::os::unix::fs::symlink("reports/one.html", at("second.html")).unwrap();
        std::os::unix::fs::symlink(at("second.html"), at("first.html")).unwrap();
        let flag = flag(&at("first.html"));
        flag.check([]).unwrap();
        flag.write(PageOf::Sweep(&sweep()), quiet()).unwrap();
        assert!(fs::read_to_string(at("reports/one.html")).unwrap().ends_with("</html>"));
        for link in ["first.html", "second.html"] {
            assert!(fs::symlink_metadata(at(link)).unwrap().is_symlink(), "{link}");
        }
        std::os::unix::fs::symlink("missing/one.html", at("lost.html")).unwrap();
        assert!(HtmlFlag { path: Some(at("lost.html")) }.check([]).is_err());
        std::os::unix::fs::symlink("circle.html", at("circle.html")).unwrap();
        assert!(HtmlFlag { path: Some(at("circle.html")) }.check([]).is_err());
    }

    #[test]
    fn what_cannot_be_written_is_an_error_before_anything_runs() {
        let folder = tempfile::tempdir().unwrap();
        let missing = flag(&folder.path().join("missing/report.html")).check([]).unwrap_err();
        assert!(missing.render().starts_with("could not write "), "{}", missing.render());
        let directory = flag(folder.path()).check([]).unwrap_err();
        assert!(directory.render().contains("not a regular file"), "{}", directory.render());
        assert!(flag(Path::new("/dev/null")).check([]).is_err());
        assert!(HtmlFlag::default().check([]).is_ok());
    }
}
