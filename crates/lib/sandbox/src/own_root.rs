//! A root directory that contains only the paths granted to a child. The main function is
//! [`confine`].
//!
//! Landlock closes the contents of files, but `stat` still reveals their names, sizes and times,
//! and a compiler uses these to answer `__has_include`. Therefore a child that runs or reads
//! untrusted input enters a separate user namespace and mount namespace, in which paths that are
//! not granted do not exist. If the system refuses such namespaces, the child continues without
//! them, and [`visible_because`] returns the reason.

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

/// The directory in which the new root is built. By then, all needed files of the old root are
/// open.
const BASE: &str = "/proc";

/// The directory that contains links on the way to granted files. They lead from one granted tree
/// to another.
const ALTERNATIVES: &str = "/etc/alternatives";

/// The maximum number of links that are followed for one path, as in the kernel.
const MOST_LINKS: usize = 40;

/// The processes that the child sees in `/proc`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Processes {
    /// All processes, because the child starts others that read their own entries there.
    All,
    /// Only the process itself, even after it becomes another program.
    Own,
}

/// The reason why a child can see the paths of the whole system.
#[derive(Debug, thiserror::Error)]
#[error("{step}: {source}")]
pub struct NotHidden {
    /// The step that the system refused.
    step: &'static str,
    source: io::Error,
}

/// Adds the name of a step to an error.
fn step<T, E: Into<io::Error>>(step: &'static str, result: Result<T, E>) -> Result<T, NotHidden> {
    result.map_err(|error| NotHidden { step, source: error.into() })
}

/// Whether [`begin`] has created the namespaces of this process.
static BEGUN: AtomicBool = AtomicBool::new(false);

/// Creates the namespaces of this process, which must be single-threaded. The process has all
/// capabilities over them until [`drop_all`], and no additional ones outside.
///
/// # Errors
/// The system does not allow this process to create a user namespace or a mount namespace.
pub fn begin() -> Result<(), NotHidden> {
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    #[expect(
        deprecated,
        reason = "only a table of files that is not shared makes `unshare` unsafe"
    )]
    let unshared = rustix::thread::unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWNS);
    step("cannot create the namespaces", unshared)?;
    // A user may map its group only after giving up the right to change groups. Mapping root's id
    // requires CAP_SETFCAP outside, so capabilities are dropped only after this.
    step("cannot give up the right to change groups", fs::write("/proc/self/setgroups", "deny"))?;
    step(
        "cannot map the user id into the namespace",
        fs::write("/proc/self/uid_map", format!("{user} {user} 1")),
    )?;
    step(
        "cannot map the group id into the namespace",
        fs::write("/proc/self/gid_map", format!("{group} {group} 1")),
    )?;
    BEGUN.store(true, Ordering::Relaxed);
    Ok(())
}

/// Closes all files except those in `access`, for this process and all processes that it starts.
/// After [`begin`], it first moves to a root directory without other paths, and drops the
/// capabilities that this needs.
///
/// # Errors
/// The capabilities cannot be dropped, or [`close_file_system`] fails. If the system refuses the
/// root directory, this is not an error: [`visible_because`] returns the reason.
pub fn confine(access: &FileAccess, processes: Processes) -> Result<Enforcement, SandboxError> {
    let _ = enter(access, processes);
    drop_all(KeptCapabilities::Nothing).map_err(|source| SandboxError::Capabilities { source })?;
    close_file_system(access)
}

/// Moves this process to a separate root directory with the paths in `access`.
///
/// # Errors
/// There are no namespaces, or the system refuses mounts in them. The process then sees the same
/// paths as before.
fn enter(access: &FileAccess, processes: Processes) -> Result<(), NotHidden> {
    if !BEGUN.swap(false, Ordering::Relaxed) {
        return step("the process has no separate namespaces", Err(io::ErrorKind::Unsupported));
    }
    let directory = std::env::current_dir();
    change_root(&Plan::of(access, processes))?;
    let back = directory.is_ok_and(|directory| chdir(directory).is_ok());
    step("cannot enter the new root", if back { Ok(()) } else { chdir("/") })
}

fn change_root(plan: &Plan) -> Result<(), NotHidden> {
    let private = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
    step("cannot make the mounts private", mount_change("/", private))?;
    let trees = step("cannot open the granted paths", plan.open())?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    step(
        "cannot mount the new root",
        mount("tmpfs", BASE, "tmpfs", flags, Some(c"mode=0755,size=1m")),
    )?;
    let filled = plan.fill(Path::new(BASE), trees).and_then(|()| {
        let read_only = mount_remount(BASE, flags | MountFlags::RDONLY, "");
        step("cannot make the new root read-only", read_only)?;
        step("cannot enter the new root", chdir(BASE))?;
        step("cannot change the root", pivot_root(".", "."))
    });
    if let Err(error) = filled {
        step("cannot remove the incomplete root", unmount(BASE, UnmountFlags::DETACH))?;
        return Err(error);
    }
    // The old root is now mounted over the new one.
    step("cannot unmount the old root", unmount(".", UnmountFlags::DETACH))
}

/// The content of the new root directory. Its paths are below `/`.
#[derive(Debug, Default, PartialEq, Eq)]
struct Plan {
    /// Files and directory trees of the old root.
    trees: BTreeSet<PathBuf>,
    /// Symbolic links on the way to these trees.
    links: BTreeMap<PathBuf, PathBuf>,
}

impl Plan {
    fn of(access: &FileAccess, processes: Processes) -> Self {
        let FileAccess { read, execute, modify, write, create, list, label, .. } = access;
        let mut plan = Self::default();
        let granted = [read, execute, modify, write, create, list, label].into_iter().flatten();
        for path in granted {
            // The process finds its entries through a link that must not be resolved here.
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
        // A path below another tree is part of that tree.
        let all = plan.trees.clone();
        let inside = |path: &Path| path.ancestors().skip(1).any(|above| all.contains(above));
        plan.trees.retain(|path| !inside(path));
        plan.links.retain(|path, _| !inside(path));
        plan
    }

    /// Adds a path and the links that lead to it. Adds nothing if the path does not exist.
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

    /// Returns copies of the trees, with everything that is mounted below them.
    fn open(&self) -> rustix::io::Result<Vec<(&Path, OwnedFd)>> {
        let flags = OpenTreeFlags::OPEN_TREE_CLONE
            | OpenTreeFlags::OPEN_TREE_CLOEXEC
            | OpenTreeFlags::AT_RECURSIVE;
        self.trees.iter().map(|path| Ok((&**path, open_tree(CWD, path, flags)?))).collect()
    }

    /// Adds the trees and links below `root`.
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
            step("cannot create a mount point in the new root", made)?;
            let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
            step("cannot mount a tree in the new root", move_mount(tree, "", CWD, &place, flags))?;
        }
        for (path, target) in &self.links {
            let place = below(path);
            let made = directory(&place).and_then(|()| symlink(target, &place));
            step("cannot create a link in the new root", made)?;
        }
        Ok(())
    }
}

/// Returns the names and `..` components of a path.
fn parts(path: &Path) -> impl DoubleEndedIterator<Item = PathBuf> + '_ {
    path.components().filter_map(|part| match part {
        Component::Normal(_) | Component::ParentDir => Some(part.as_os_str().into()),
        _ => None,
    })
}

/// The first argument of the child process that tests whether a separate root directory is
/// possible.
pub const COMMAND: &str = "__own-root";

/// Runs the test, and prints the reason if a separate root directory is impossible. `begun` is the
/// result of [`begin`].
pub fn child(begun: Result<(), NotHidden>) -> ExitCode {
    if let Err(error) = begun.and_then(|()| enter(&FileAccess::default(), Processes::All)) {
        println!("{error}");
    }
    ExitCode::SUCCESS
}

/// Returns the reason why children can see the paths of the whole system, or `None` if they cannot.
/// The first call starts a process and waits for it.
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
        Ok(output) => format!("the test process ended with {}", output.status),
        Err(error) => format!("the test process did not start: {error}"),
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
        assert!(error.to_string().contains("no separate namespaces"), "{error}");
        assert!(Path::new("/proc/self/exe").exists());
    }
}
