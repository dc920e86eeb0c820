//! A root directory that holds what a child is granted, and nothing else.
//!
//! Landlock closes the contents of files, but `stat` still finds names, sizes and times, and a compiler
//! answers `__has_include` from them. A child that runs or reads what a stranger wrote therefore enters a
//! user namespace and a mount namespace of its own: every path that it is not granted does not exist there.
//! Where the system refuses such namespaces the child goes on without, and [`visible_because`] gives the reason.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};
use std::process::ExitCode;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::CWD;
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags, mount,
    mount_change, mount_remount, move_mount, open_tree, unmount,
};
use rustix::process::{chdir, getegid, geteuid, pivot_root};
use rustix::thread::UnshareFlags;

use super::enforcement::{Enforcement, FileAccess, SandboxError, close_file_system};
use super::privileges::{KeptCapabilities, drop_all};
use super::program::{ChildProgram, Environment};

/// Where the new root is put together. Everything of the old root is open by then.
const BASE: &str = "/proc";

/// Links on the way to granted files that lead from one granted tree to another.
const ALTERNATIVES: &str = "/etc/alternatives";

/// Most links on the way to one path, as in the kernel.
const MOST_LINKS: usize = 40;

/// Which processes the child finds in `/proc`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Processes {
    /// All: it starts others, which look themselves up there.
    All,
    /// Itself alone, also as the program that it becomes.
    Own,
}

/// Why a child sees the paths of the whole system.
#[derive(Debug, thiserror::Error)]
#[error("{step}: {source}")]
pub struct NotHidden {
    /// What the system refused.
    step: &'static str,
    source: io::Error,
}

/// Names a step for its error.
fn step<T, E: Into<io::Error>>(step: &'static str, result: Result<T, E>) -> Result<T, NotHidden> {
    result.map_err(|error| NotHidden { step, source: error.into() })
}

/// Whether [`begin`] has made the namespaces of this process.
static BEGUN: AtomicBool = AtomicBool::new(false);

/// Makes the namespaces of this process, which must have one thread. It has all capabilities over them until
/// [`drop_all`], and none outside.
///
/// # Errors
/// The system has no user namespaces or mount namespaces for this process.
pub fn begin() -> Result<(), NotHidden> {
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    #[expect(
        deprecated,
        reason = "only a table of files that is not shared makes `unshare` unsafe"
    )]
    let unshared = rustix::thread::unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWNS);
    step("cannot make a user namespace", unshared)?;
    // A user may map its group only where it gives up to change its groups. Root's number is mapped by who
    // has CAP_SETFCAP outside alone, so capabilities are dropped after this.
    step("cannot give up groups", fs::write("/proc/self/setgroups", "deny"))?;
    step("cannot keep its user", fs::write("/proc/self/uid_map", format!("{user} {user} 1")))?;
    step("cannot keep its group", fs::write("/proc/self/gid_map", format!("{group} {group} 1")))?;
    BEGUN.store(true, Ordering::Relaxed);
    Ok(())
}

/// Closes all files but those of `access` for this process and all that it starts. After [`begin`] it first
/// moves to a root directory that has no other paths, and drops what capabilities that took.
///
/// # Errors
/// The capabilities cannot be dropped, or those of [`close_file_system`]. A root directory that the system
/// refuses is no error: [`visible_because`] gives the reason.
pub fn confine(access: &FileAccess, processes: Processes) -> Result<Enforcement, SandboxError> {
    let _ = enter(access, processes);
    drop_all(KeptCapabilities::Nothing).map_err(|source| SandboxError::Capabilities { source })?;
    close_file_system(access)
}

/// Moves this process to a root directory of its own with the paths of `access`.
///
/// # Errors
/// There are no namespaces, or the system refuses mounts in them: this process sees what it saw before.
fn enter(access: &FileAccess, processes: Processes) -> Result<(), NotHidden> {
    if !BEGUN.swap(false, Ordering::Relaxed) {
        return step("it has no namespaces of its own", Err(io::ErrorKind::Unsupported));
    }
    let directory = std::env::current_dir();
    change_root(&Plan::of(access, processes))?;
    let back = directory.is_ok_and(|directory| chdir(directory).is_ok());
    step("cannot enter the new root", if back { Ok(()) } else { chdir("/") })
}

fn change_root(plan: &Plan) -> Result<(), NotHidden> {
    let private = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
    step("cannot separate its mounts", mount_change("/", private))?;
    let trees = step("cannot open what it is granted", plan.open())?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    step("cannot mount", mount("tmpfs", BASE, "tmpfs", flags, Some(c"mode=0755,size=1m")))?;
    let filled = plan.fill(Path::new(BASE), trees).and_then(|()| {
        let read_only = mount_remount(BASE, flags | MountFlags::RDONLY, "");
        step("cannot close the new root", read_only)?;
        step("cannot enter the new root", chdir(BASE))?;
        step("cannot change the root", pivot_root(".", "."))
    });
    if let Err(error) = filled {
        step("cannot undo what it began", unmount(BASE, UnmountFlags::DETACH))?;
        return Err(error);
    }
    // The old root lies above the new one now.
    step("cannot leave the old root", unmount(".", UnmountFlags::DETACH))
}

/// What the new root consists of, by path below `/`.
#[derive(Debug, Default, PartialEq, Eq)]
struct Plan {
    /// Files and directory trees of the old root.
    trees: BTreeSet<PathBuf>,
    /// Symbolic links on the way to them.
    links: BTreeMap<PathBuf, PathBuf>,
}

impl Plan {
    fn of(access: &FileAccess, processes: Processes) -> Self {
        let FileAccess { read, execute, modify, write, create, list, label, .. } = access;
        let mut plan = Self::default();
        let granted = [read, execute, modify, write, create, list, label].into_iter().flatten();
        for path in granted {
            // A process finds itself there by a link that the next one must not follow.
            if !path.starts_with("/proc/self") && path != Path::new("/proc") {
                plan.add(path);
            }
        }
        plan.add(Path::new(ALTERNATIVES));
        match processes {
            Processes::All => plan.add(Path::new("/proc")),
            Processes::Own => {
                let own = PathBuf::from(std::process::id().to_string());
                plan.trees.insert(Path::new("/proc").join(&own));
                plan.links.insert("/proc/thread-self".into(), own.join("task").join(&own));
                plan.links.insert("/proc/self".into(), own);
            }
        }
        // What lies below another tree comes with it.
        let all = plan.trees.clone();
        let inside = |path: &Path| path.ancestors().skip(1).any(|above| all.contains(above));
        plan.trees.retain(|path| !inside(path));
        plan.links.retain(|path, _| !inside(path));
        plan
    }

    /// Adds a path, and the links by which it is reached. A path that is not there adds nothing.
    fn add(&mut self, path: &Path) {
        let mut rest: Vec<PathBuf> = parts(path).rev().collect();
        let (mut at, mut links) = (PathBuf::from("/"), Vec::new());
        while let Some(part) = rest.pop() {
            if part == OsStr::new("..") {
                at.pop();
                continue;
            }
            let next = at.join(&part);
            match fs::read_link(&next) {
                Ok(target) => {
                    if links.len() == MOST_LINKS {
                        return;
                    }
                    if target.is_absolute() {
                        at = PathBuf::from("/");
                    }
                    rest.extend(parts(&target).rev());
                    links.push((next, target));
                }
                Err(_) => at = next,
            }
        }
        if at.exists() {
            self.links.extend(links);
            self.trees.insert(at);
        }
    }

    /// Copies of the trees, with all that is mounted below them.
    fn open(&self) -> rustix::io::Result<Vec<(&Path, OwnedFd)>> {
        let flags = OpenTreeFlags::OPEN_TREE_CLONE
            | OpenTreeFlags::OPEN_TREE_CLOEXEC
            | OpenTreeFlags::AT_RECURSIVE;
        self.trees.iter().map(|path| Ok((&**path, open_tree(CWD, path, flags)?))).collect()
    }

    /// Puts the trees and links below `root`.
    fn fill(&self, root: &Path, trees: Vec<(&Path, OwnedFd)>) -> Result<(), NotHidden> {
        let below = |path: &Path| root.join(path.strip_prefix("/").unwrap_or(path));
        let directory = |path: &Path| path.parent().map_or(Ok(()), fs::create_dir_all);
        for (path, tree) in trees {
            let place = below(path);
            let made = directory(&place).and_then(|()| {
                let is_directory = File::from(tree.try_clone()?).metadata()?.is_dir();
                if is_directory {
                    fs::create_dir_all(&place)
                } else {
                    File::create(&place).map(drop)
                }
            });
            step("cannot make a place in the new root", made)?;
            let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
            step("cannot put a tree into the new root", move_mount(tree, "", CWD, &place, flags))?;
        }
        for (path, target) in &self.links {
            let place = below(path);
            let made = directory(&place).and_then(|()| symlink(target, &place));
            step("cannot make a link in the new root", made)?;
        }
        Ok(())
    }
}

/// The names and `..` of a path.
fn parts(path: &Path) -> impl DoubleEndedIterator<Item = PathBuf> + '_ {
    path.components().filter_map(|part| match part {
        Component::Normal(_) | Component::ParentDir => Some(part.as_os_str().into()),
        _ => None,
    })
}

/// First argument of a child that tries whether it can have a root directory of its own.
pub const COMMAND: &str = "__own-root";

/// Runs that child: it prints why it cannot. `begun`: what came of [`begin`].
pub fn child(begun: Result<(), NotHidden>) -> ExitCode {
    if let Err(error) = begun.and_then(|()| enter(&FileAccess::default(), Processes::All)) {
        println!("{error}");
    }
    ExitCode::SUCCESS
}

/// Why children see the paths of the whole system; `None`: they do not. The first call starts a process and
/// waits for it.
pub fn visible_because() -> Option<&'static str> {
    static REASON: OnceLock<Option<String>> = OnceLock::new();
    REASON.get_or_init(attempt).as_deref()
}

fn attempt() -> Option<String> {
    let program =
        std::env::current_exe().map(|program| ChildProgram::new(program, Environment::Empty));
    let output = program.and_then(|program| program.args([COMMAND]).to_blocking().output());
    let reason = match output {
        Ok(output) if output.status.success() => {
            String::from_utf8_lossy(&output.stdout).trim().to_owned()
        }
        Ok(output) => format!("the trial ended with {}", output.status),
        Err(error) => format!("the trial did not start: {error}"),
    };
    Some(reason).filter(|reason| !reason.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_has_granted_trees_once_and_the_links_to_them() {
        let directory = tempfile::tempdir().unwrap();
        let at = |path: &str| directory.path().canonicalize().unwrap().join(path);
        fs::create_dir_all(at("real/inner")).unwrap();
        fs::write(at("real/file"), "").unwrap();
        symlink("real", at("link")).unwrap();
        symlink(at("link/../real/inner"), at("absolute")).unwrap();
        symlink("circle", at("circle")).unwrap();
        let of = |granted: &[&str]| {
            let read = granted.iter().map(|path| at(path)).collect();
            let access = FileAccess { read, ..FileAccess::default() };
            let mut plan = Plan::of(&access, Processes::Own);
            let ours = |path: &Path| path.starts_with(directory.path().canonicalize().unwrap());
            plan.trees.retain(|path| ours(path));
            plan.links.retain(|path, _| ours(path));
            (plan.trees.into_iter().collect::<Vec<_>>(), plan.links.into_keys().collect::<Vec<_>>())
        };
        assert_eq!(of(&["link/file"]), (vec![at("real/file")], vec![at("link")]));
        assert_eq!(of(&["absolute"]), (vec![at("real/inner")], vec![at("absolute"), at("link")]));
        assert_eq!(of(&["real", "real/file", "real/inner"]), (vec![at("real")], vec![]));
        assert_eq!(of(&["circle", "missing"]), (vec![], vec![]));
    }

    #[test]
    fn a_process_without_namespaces_of_its_own_stays_where_it_is() {
        let error = enter(&FileAccess::default(), Processes::All).unwrap_err();
        assert!(error.to_string().contains("no namespaces"), "{error}");
        assert!(Path::new("/proc/self/exe").exists());
    }
}
