use super::super::testing::{interpreter, package, script};
use super::*;

struct Places {
    root: tempfile::TempDir,
    around: Surroundings,
    search: ToolchainSearch,
}

impl Places {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        let around = Surroundings { active: vec![at("venv")], path: vec![at("bin")] };
        let search = ToolchainSearch { cache_dir: at("data"), ..ToolchainSearch::default() };
        Self { around, search, root }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.root.path().join(path)
    }

    fn find(&self, named: Option<&str>) -> Result<TritonInstall, NoTriton> {
        let named = named.map(OsString::from);
        find_among(named, &self.search, &self.around, &TRITON, ask::install)
            .map_err(|why| why.unwrap_or_else(NoTriton::not_found))
    }
}

#[test]
fn the_active_environment_comes_before_the_search_path() {
    let places = Places::new();
    assert_eq!(places.find(None).unwrap_err().code, NoTritonCode::NotFound);
    let usual = package(&places.at("usual"), "3.5.0");
    interpreter(&places.at("bin/python3"), Some(&usual));
    assert_eq!(places.find(None).unwrap().source, PartOrigin::Path);
    let active = package(&places.at("venv/lib/python3.11/site-packages"), "3.6.0");
    interpreter(&places.at("venv/bin/python3"), Some(&active));
    let found = places.find(None).unwrap();
    assert_eq!((found.source, found.version.as_str()), (PartOrigin::Venv, "3.6.0"));
}

#[test]
fn one_that_is_not_supported_gives_way_but_is_named_when_nothing_else_is_there() {
    let places = Places::new();
    let old = package(&places.at("venv/lib/python3.11/site-packages"), "3.1.0");
    interpreter(&places.at("venv/bin/python3"), Some(&old));
    let why = places.find(None).unwrap_err();
    assert_eq!(why.code, NoTritonCode::UnsupportedVersion);
    assert!(why.reason.contains("3.1.0"), "{why}");
    let usual = package(&places.at("usual"), "3.5.0");
    interpreter(&places.at("bin/python3"), Some(&usual));
    assert_eq!(places.find(None).unwrap().version, "3.5.0");
}

#[test]
fn whoever_is_named_is_asked_and_nobody_else() {
    let places = Places::new();
    let usual = package(&places.at("usual"), "3.5.0");
    interpreter(&places.at("bin/python3"), Some(&usual));
    let bare = interpreter(&places.at("bare/python3"), None);
    let why = places.find(bare.to_str()).unwrap_err();
    assert_eq!(why.code, NoTritonCode::NotInstalled);
    assert!(why.reason.contains("has no Triton"), "{why}");
    assert!(why.remedy.contains("-m pip install triton=="), "{why}");
    let why = places.find(places.at("none/python3").to_str()).unwrap_err();
    assert_eq!(why.code, NoTritonCode::Interpreter);
    assert!(why.reason.contains("does not exist"), "{why}");
    let why = places.find(Some("python9")).unwrap_err();
    assert!(why.reason.contains("not on the search path"), "{why}");
    let found = places.find(Some("python3")).unwrap();
    assert_eq!((found.source, found.python), (PartOrigin::Explicit, places.at("bin/python3")));
}

#[test]
fn environments_of_ours_are_found_where_they_were_installed_and_where_they_are_named() {
    let mut places = Places::new();
    let python = interpreter(&places.at("base/python3"), Some(&places.at("any")));
    for (place, version) in [("data/toolchain/triton", "3.6.0"), ("image/triton", "3.7.0")] {
        let directory = package(&places.at(place), version);
        own::remember(&directory, &python, ask::ask(&python, None).unwrap()).unwrap();
    }
    let found = places.find(None).unwrap();
    assert_eq!((found.source, found.version.as_str()), (PartOrigin::Cache, "3.6.0"));
    places.search.explicit = Some(places.at("image/triton"));
    let found = places.find(None).unwrap();
    assert_eq!((found.source, found.version.as_str()), (PartOrigin::Explicit, "3.7.0"));
    assert_eq!(found.python, python);
    // An environment without its interpreter is skipped, and is reported if there is no other.
    std::fs::remove_file(&python).unwrap();
    let why = places.find(None).unwrap_err();
    assert!(why.reason.contains("no longer exists"), "{why}");
}

/// Creates a fake machine-code interpreter, which must not be started.
fn machine_code(path: &Path) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, b"\x7fELF that is none").unwrap();
}

#[test]
fn interpreters_are_asked_only_where_a_package_lies_beside_them() {
    let places = Places::new();
    let python = places.at("bin/python3");
    machine_code(&python);
    assert!(!may_have(&python, &TRITON));
    package(&places.at("lib/python3.12/site-packages"), "3.6.0");
    assert!(may_have(&python, &TRITON));

    let shim = script(&places.at("manager/shims/python3"), "exit 1");
    assert!(!may_have(&shim, &TRITON));
    fs::create_dir_all(
        places.at("manager/versions/3.11.7/lib/python3.11/site-packages/triton-3.6.0.dist-info"),
    )
    .unwrap();
    assert!(may_have(&shim, &TRITON));
    assert!(!may_have(&places.at("nothing"), &TRITON));
}
