//! Finds NVIDIA's command-line tools and their versions.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use tokio::sync::Mutex;

use super::nsys_view;
use warpgauge_sandbox::contained::{ProcessLaunch, run, tool};

/// Time limit for a version query. The first start of a large program from a cold disk is slow.
const VERSION_TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum number of entries read from one directory.
const MAX_ENTRIES: usize = 4096;

/// Command-line tool from NVIDIA.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ToolName {
    /// Command-line program of Nsight Compute.
    Ncu,
    /// Command-line program of Nsight Systems.
    Nsys,
    /// Converts the data of `nsys` into a report.
    QdstrmImporter,
    /// Checks memory accesses, races, initialisation and synchronisation.
    ComputeSanitizer,
    /// Extracts the contents of cubins and fatbins.
    Cuobjdump,
    /// Disassembles machine code.
    Nvdisasm,
}

impl ToolName {
    /// All of NVIDIA's tools that the service uses.
    pub const ALL: [Self; 6] = [
        Self::Ncu,
        Self::Nsys,
        Self::QdstrmImporter,
        Self::ComputeSanitizer,
        Self::Cuobjdump,
        Self::Nvdisasm,
    ];

    /// Returns the name of the program.
    pub fn program(self) -> &'static str {
        match self {
            Self::Ncu => "ncu",
            Self::Nsys => "nsys",
            Self::QdstrmImporter => "QdstrmImporter",
            Self::ComputeSanitizer => "compute-sanitizer",
            Self::Cuobjdump => "cuobjdump",
            Self::Nvdisasm => "nvdisasm",
        }
    }

    /// Returns instructions to install the program.
    pub fn remedy(self) -> &'static str {
        match self {
            Self::Ncu => "install Nsight Compute, or name its directory in tools.path",
            Self::Nsys | Self::QdstrmImporter => {
                "install Nsight Systems, or name its directory in tools.path"
            }
            Self::ComputeSanitizer => {
                "install the CUDA toolkit, or name its directory in tools.path"
            }
            Self::Cuobjdump | Self::Nvdisasm => {
                "`warpgauge toolchain install --with nvcc` or `--with triton` installs it; or install \
                 the CUDA toolkit, or name its directory in tools.path"
            }
        }
    }
}

impl std::fmt::Display for ToolName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.program())
    }
}

/// Tool that was found on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundTool {
    /// Absolute path of the program.
    pub path: PathBuf,
    /// Version, if the tool reports one.
    pub version: Option<String>,
    /// Why the tool is unusable; `None` if it is usable.
    pub problem: Option<String>,
}

/// Tools that were found on this machine, by name.
#[derive(Debug, Clone, Default)]
pub struct FoundTools {
    tools: BTreeMap<ToolName, FoundTool>,
}

impl FoundTools {
    /// Returns a tool, even if it does not work. `None` if it was not found.
    pub fn get(&self, name: ToolName) -> Option<&FoundTool> {
        self.tools.get(&name)
    }
}

/// Directories in which tools are searched for.
#[derive(Debug, Clone, Default)]
pub struct ToolSearch {
    /// Directories that are searched first: directories of programs, or roots of installations.
    pub explicit: Vec<PathBuf>,
    /// Directories of programs, which are searched last.
    pub last: Vec<PathBuf>,
    /// Private directory for copies and links of programs, and for files that a tool writes during
    /// a version query.
    pub directory: PathBuf,
}

impl ToolSearch {
    /// Configures a search. `path` is a list of directories, separated as in PATH. `directory` is
    /// the private directory.
    pub fn new(path: &str, directory: PathBuf) -> Self {
        let explicit = std::env::split_paths(path);
        let explicit = explicit.filter(|path| !path.as_os_str().is_empty());
        let explicit = explicit.map(|path| std::path::absolute(&path).unwrap_or(path)).collect();
        Self { explicit, last: Vec::new(), directory }
    }

    /// Adds directories of programs that are searched last.
    #[must_use]
    pub fn and_last(self, last: impl IntoIterator<Item = PathBuf>) -> Self {
        Self { last: last.into_iter().collect(), ..self }
    }
}

/// Tools of this machine. The first call of [`found`](Self::found) searches for them.
pub struct Tools {
    search: ToolSearch,
    found: Mutex<Option<Arc<FoundTools>>>,
    /// Requested names of metrics that the installed Nsight Compute does not support. It rejects a
    /// whole list of metrics if it does not support one of them.
    refused: std::sync::Mutex<BTreeSet<String>>,
}

impl Tools {
    /// Prepares a search for tools. The search does not run yet.
    pub fn new(search: ToolSearch) -> Self {
        Self { search, found: Mutex::default(), refused: Default::default() }
    }

    /// Returns the tools that were found. Searches for them at the first call, and again if `anew`
    /// is true.
    pub async fn found(&self, anew: bool) -> Arc<FoundTools> {
        let mut found = self.found.lock().await;
        if let Some(known) = found.as_ref().filter(|_| !anew) {
            return Arc::clone(known);
        }
        let looked = Arc::new(discover(&self.search).await);
        self.refused().clear();
        *found = Some(Arc::clone(&looked));
        looked
    }
}

impl Tools {
    /// Returns the metrics that Nsight Compute is known not to support.
    pub(super) fn refused(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Searches this machine for every tool.
async fn discover(search: &ToolSearch) -> FoundTools {
    let mut paths: BTreeMap<ToolName, PathBuf> = BTreeMap::new();
    for name in ToolName::ALL {
        let places = places(name, search, &paths);
        let found = places.into_iter().map(|dir| dir.join(name.program())).find(|p| is_program(p));
        paths.extend(found.map(|path| (name, path)));
    }
    // nsys searches for its importer only relative to its own location.
    if let (Some(nsys), Some(importer)) =
        (paths.get(&ToolName::Nsys), paths.get(&ToolName::QdstrmImporter))
    {
        match nsys_view::make(nsys, importer, &search.directory) {
            Ok(path) => drop(paths.insert(ToolName::Nsys, path)),
            Err(error) => tracing::warn!(%error, "nsys cannot be placed next to its importer"),
        }
    }
    let described = paths.into_iter().map(|(name, path)| async move {
        let version = version(name, &path, &search.directory).await;
        let (version, problem) = match version {
            Ok(version) => (version, None),
            Err(problem) => (None, Some(problem)),
        };
        (name, FoundTool { path, version, problem })
    });
    FoundTools { tools: join_all(described).await.into_iter().collect() }
}

/// Returns the directories that may contain a tool, best first.
fn places(
    name: ToolName,
    search: &ToolSearch,
    known: &BTreeMap<ToolName, PathBuf>,
) -> Vec<PathBuf> {
    let mut places = Vec::new();
    for root in &search.explicit {
        places.extend(inside(name, root));
    }
    if name == ToolName::QdstrmImporter {
        places.extend(known.get(&ToolName::Nsys).into_iter().flat_map(|nsys| beside_nsys(nsys)));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    places.extend(std::env::split_paths(&path));
    let homes = ["CUDA_HOME", "CUDA_PATH"].iter().filter_map(std::env::var_os).map(PathBuf::from);
    let toolkits = newest(Path::new("/usr/local"), "cuda");
    for toolkit in homes.chain(toolkits) {
        places.extend(inside(name, &toolkit));
    }
    for product in ["nsight-compute", "nsight-systems"] {
        for version in newest(&Path::new("/opt/nvidia").join(product), "") {
            places.extend(inside(name, &version));
        }
        // Debian's packages install the tools there.
        places.extend(inside(name, &Path::new("/usr/lib").join(product)));
    }
    places.extend(search.last.iter().cloned());
    places.retain(|place| place.is_absolute());
    places
}

/// Returns the directories of an installation that may contain a tool.
fn inside(name: ToolName, root: &Path) -> Vec<PathBuf> {
    let own = root.to_owned();
    let mut places = vec![own.clone(), root.join("bin")];
    // A toolkit has separate directories for the profilers.
    let compute: Vec<PathBuf> = newest(root, "nsight-compute");
    let systems: Vec<PathBuf> = newest(root, "nsight-systems");
    match name {
        ToolName::Ncu => places.extend(compute),
        ToolName::Nsys => {
            let programs = |root: &PathBuf| [root.join("bin"), root.join("target-linux-x64")];
            places.extend(systems.iter().chain([&own]).flat_map(programs));
            // Nsight Compute includes an nsys, too.
            let hosts = compute.iter().chain([&own]).map(|root| root.join("host"));
            places.extend(hosts.flat_map(|host| newest(&host, "target-linux-x64")));
        }
        ToolName::QdstrmImporter => {
            for root in systems.iter().chain(&compute).chain([&own]) {
                places.extend(importers(root));
                places.extend(importers(&root.join("host")));
            }
        }
        ToolName::ComputeSanitizer => places.push(root.join("compute-sanitizer")),
        ToolName::Cuobjdump | ToolName::Nvdisasm => {}
    }
    places
}

/// Returns the directories of the importer that belongs to the `nsys` at this path.
fn beside_nsys(nsys: &Path) -> Vec<PathBuf> {
    let real = nsys.canonicalize().unwrap_or_else(|_| nsys.to_owned());
    let above = |path: &Path| path.parent().and_then(Path::parent).map(Path::to_owned);
    [above(&real), above(nsys)].into_iter().flatten().flat_map(|root| importers(&root)).collect()
}

/// Returns the directories in which an installation of Nsight Systems keeps the programs that
/// process reports.
fn importers(root: &Path) -> Vec<PathBuf> {
    let mut found = newest(root, "host-linux");
    found.extend(newest(root, "linux-desktop"));
    found
}

/// Returns the directories in `root` whose name begins with `prefix`, newest first.
fn newest(root: &Path, prefix: &str) -> Vec<PathBuf> {
    let Ok(listing) = root.read_dir() else { return Vec::new() };
    let begins = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(prefix))
    };
    let entries = listing.flatten().take(MAX_ENTRIES).map(|entry| entry.path());
    let mut found: Vec<PathBuf> = entries.filter(begins).filter(|path| path.is_dir()).collect();
    found.sort_by_key(|path| std::cmp::Reverse(numbers(path)));
    found
}

/// Returns the numbers in the last part of a path. They order `cuda-12.9` before `cuda-12.10`.
fn numbers(path: &Path) -> Vec<u64> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let digits = name.split(|c: char| !c.is_ascii_digit());
    digits.filter_map(|part| part.parse().ok()).collect()
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

/// Returns the version that a tool reports; `Ok(None)` if it reports none.
async fn version(name: ToolName, path: &Path, directory: &Path) -> Result<Option<String>, String> {
    let program = tool(path, directory).arg("--version");
    let launch = ProcessLaunch { stdout_bytes: 64 << 10, ..ProcessLaunch::new(program) };
    let end = run(&launch, VERSION_TIMEOUT).await;
    let end = end.map_err(|error| format!("it cannot be started: {error}"))?;
    let said = format!("{}\n{}", end.stdout.text, end.stderr.text);
    // The importer has no such option. Its error message shows that it starts.
    let works = end.succeeded() || name == ToolName::QdstrmImporter && !is_broken(&said);
    if works {
        return Ok(dotted_number(&said));
    }
    let last: String =
        said.trim().chars().rev().take(300).collect::<Vec<_>>().iter().rev().collect();
    Err(format!("`--version` ended with {}; its output: {last}", end.description()))
}

/// Returns whether the output shows that the dynamic loader failed to start the program.
fn is_broken(said: &str) -> bool {
    said.contains("error while loading shared libraries")
}

/// Returns the last version number, such as `2025.3.1.0`, in a tool's output. It must be the last,
/// because cuobjdump prints `V13.0.88` after the release.
fn dotted_number(text: &str) -> Option<String> {
    let words = text.split(|c: char| !(c.is_ascii_digit() || c == '.'));
    let versions = words.map(|word| word.trim_matches('.'));
    let parts = |word: &str| word.split('.').filter(|part| !part.is_empty()).count();
    versions.rev().find(|word| parts(word) >= 3).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(path: &Path, script: &str) {
        use std::os::unix::fs::PermissionsExt;
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn versions_are_read_from_what_tools_say() {
        let ncu = "NVIDIA (R) Nsight Compute Command Line Profiler\nCopyright (c) 2018-2025 NVIDIA \
                   Corporation\nVersion 2025.3.1.0 (build 36398880) (public-release)";
        assert_eq!(dotted_number(ncu).as_deref(), Some("2025.3.1.0"));
        let nsys = "NVIDIA Nsight Systems version 2025.3.2.367-253236389321v0";
        assert_eq!(dotted_number(nsys).as_deref(), Some("2025.3.2.367"));
        let cuobjdump = "Cuda compilation tools, release 13.0, V13.0.88\nBuild cuda_13.0.r13.0";
        assert_eq!(dotted_number(cuobjdump).as_deref(), Some("13.0.88"));
        assert_eq!(dotted_number("no version"), None);
    }

    #[tokio::test]
    async fn an_installation_is_searched_and_a_broken_tool_is_told_apart() {
        let root = tempfile::tempdir().unwrap();
        let opt = root.path().join("toolkit");
        for version in ["2024.10.1", "2025.3.1", "2024.9.2"] {
            program(
                &opt.join(format!("nsight-compute-{version}/ncu")),
                &format!("echo Version {version}.0"),
            );
        }
        let newest = opt.join("nsight-compute-2025.3.1/host");
        program(&newest.join("target-linux-x64/nsys"), "echo version 2025.3.2.367");
        program(&newest.join("linux-desktop-glibc_2_11_3-x64/QdstrmImporter"), "exit 1");
        program(&opt.join("compute-sanitizer/compute-sanitizer"), "echo lost >&2; exit 127");
        let last = root.path().join("last");
        program(&last.join("cuobjdump"), "echo V12.8.55");
        program(&last.join("compute-sanitizer"), "echo Version 1.2.3");
        let directory = root.path().join("own");
        std::fs::create_dir(&directory).unwrap();
        let tools =
            Tools::new(ToolSearch::new(opt.to_str().unwrap(), directory).and_last([last.clone()]));
        let found = tools.found(false).await;
        let ncu = found.get(ToolName::Ncu).unwrap();
        assert_eq!(ncu.path, opt.join("nsight-compute-2025.3.1/ncu"));
        assert_eq!((ncu.version.as_deref(), &ncu.problem), (Some("2025.3.1.0"), &None));
        // It is now beside its importer.
        let nsys = found.get(ToolName::Nsys).unwrap();
        assert_eq!(nsys.version.as_deref(), Some("2025.3.2.367"));
        let importer = nsys.path.parent().unwrap().parent().unwrap();
        assert!(is_program(&importer.join("host-linux-x64/QdstrmImporter")), "{nsys:?}");
        let sanitizer = found.get(ToolName::ComputeSanitizer).unwrap();
        assert!(sanitizer.problem.as_ref().unwrap().contains("lost"), "{sanitizer:?}");

        assert_eq!(found.get(ToolName::Cuobjdump).unwrap().path, last.join("cuobjdump"));

        // Tools that are known are searched for again only on request.
        program(&opt.join("bin/nvdisasm"), "echo V13.0.88");
        assert!(tools.found(false).await.get(ToolName::Nvdisasm).is_none());
        assert!(tools.found(true).await.get(ToolName::Nvdisasm).is_some());
    }
}
