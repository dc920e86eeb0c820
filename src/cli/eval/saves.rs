//! Waits until files are saved; [`Saves`] holds the files.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use notify::event::{AccessKind, AccessMode, EventKind};
use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::Notify;
use tokio::time::timeout;

/// Time without events after which a save is complete: editors write in several steps.
const QUIET: Duration = Duration::from_millis(50);

/// Maximum number of steps of one save.
const STEPS: usize = 20;

/// Interval at which files are examined. Network file systems send no notifications.
const LOOK: Duration = Duration::from_secs(1);

/// Inode, length and modification time, which differ between two saves.
type Mark = (u64, u64, i64, i64);

/// Files whose next save is awaited. Editors replace files, so the directories of the files are
/// watched.
pub(super) struct Saves {
    files: BTreeMap<PathBuf, Option<Mark>>,
    directories: BTreeSet<PathBuf>,
    watcher: Option<RecommendedWatcher>,
    /// Notified of every change in the directories.
    news: Arc<Notify>,
}

impl Saves {
    /// Watches these files, which need not exist yet.
    pub(super) fn of(files: &[PathBuf]) -> Self {
        let news = Arc::new(Notify::new());
        let noticed = Arc::clone(&news);
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            let is_reading = event.is_ok_and(|event| {
                let written = AccessKind::Close(AccessMode::Write);
                matches!(event.kind, EventKind::Access(kind) if kind != written)
            });
            if !is_reading {
                noticed.notify_one();
            }
        });
        // Without notifications, the files are still examined at intervals.
        let mut saves = Self {
            files: BTreeMap::new(),
            directories: BTreeSet::new(),
            watcher: watcher.ok(),
            news,
        };
        saves.follow(files);
        saves
    }

    /// Watches these files from now on. Files that were already watched keep their marks.
    pub(super) fn follow(&mut self, files: &[PathBuf]) {
        let known = std::mem::take(&mut self.files);
        for file in files {
            let mark = known.get(file).copied().unwrap_or_else(|| mark(file));
            self.files.insert(file.clone(), mark);
            let directory = match file.parent() {
                Some(directory) if directory != Path::new("") => directory.to_owned(),
                _ => PathBuf::from("."),
            };
            if let Some(watcher) = &mut self.watcher
                && !self.directories.contains(&directory)
                && watcher.watch(&directory, RecursiveMode::NonRecursive).is_ok()
            {
                self.directories.insert(directory);
            }
        }
    }

    /// Marks the current state of the files as known.
    pub(super) fn mark(&mut self) {
        for (file, known) in &mut self.files {
            *known = mark(file);
        }
    }

    /// Waits until a file differs from its known state. A file that is absent or empty is not
    /// complete yet.
    pub(super) async fn changed(&mut self) {
        loop {
            let is_saved = |(file, known): (&PathBuf, &Option<Mark>)| {
                let now = mark(file);
                now.is_some_and(|(_, bytes, ..)| bytes > 0) && now != *known
            };
            if self.files.iter().any(is_saved) {
                for _ in 0..STEPS {
                    if timeout(QUIET, self.news.notified()).await.is_err() {
                        break;
                    }
                }
                return;
            }
            // A notification and the end of the interval have the same effect: the files are
            // examined again.
            let _ = timeout(LOOK, self.news.notified()).await;
        }
    }
}

/// Returns the state of a file, or `None` if it does not exist.
fn mark(path: &Path) -> Option<Mark> {
    let file = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
    Some((file.ino(), file.len(), file.mtime(), file.mtime_nsec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A time far longer than a save.
    const LONG: Duration = Duration::from_secs(60);

    #[tokio::test]
    async fn saves_are_noticed_however_they_are_made() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        std::fs::write(at("k.cu"), "one").unwrap();
        let mut saves = Saves::of(&[at("k.cu"), at("k.yaml")]);
        // The editor writes into the file.
        std::fs::write(at("k.cu"), "second").unwrap();
        timeout(LONG, saves.changed()).await.unwrap();
        saves.mark();
        // The editor renames another file to the name, after it wrote a file that is not watched.
        std::fs::write(at("other.cu"), "other").unwrap();
        std::fs::write(at(".k.cu.new"), "second").unwrap();
        std::fs::rename(at(".k.cu.new"), at("k.cu")).unwrap();
        timeout(LONG, saves.changed()).await.unwrap();
        saves.mark();
        // The file did not exist before.
        std::fs::write(at("k.yaml"), "kernel: {}").unwrap();
        timeout(LONG, saves.changed()).await.unwrap();
        saves.mark();
        // A file that is followed later leaves the known states of the others.
        std::fs::write(at("k.cu"), "third time").unwrap();
        saves.follow(&[at("k.cu"), at("h.cuh")]);
        timeout(LONG, saves.changed()).await.unwrap();
    }

    #[tokio::test]
    async fn an_empty_file_is_no_save() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("k.cu");
        std::fs::write(&path, "one").unwrap();
        let mut saves = Saves::of(std::slice::from_ref(&path));
        std::fs::write(&path, "").unwrap();
        let is_saved = timeout(LOOK * 2, saves.changed()).await.is_ok();
        assert!(!is_saved, "an editor has emptied the file, and not written it yet");
        std::fs::write(&path, "two").unwrap();
        timeout(LONG, saves.changed()).await.unwrap();
    }
}
