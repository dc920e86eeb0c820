use super::super::testing::{interpreter, package, script};
use super::*;

const SHORT: Duration = Duration::from_millis(300);

fn refused(script_text: &str) -> NoTriton {
    let place = tempfile::tempdir().unwrap();
    let python = script(&place.path().join("python3"), script_text);
    let why = ask_within(&python, None, SHORT).unwrap_err();
    assert_eq!(why.code, NoTritonCode::Interpreter, "{why}");
    assert!(why.reason.contains(python.to_str().unwrap()), "{why}");
    assert!(why.remedy.contains("WARPGAUGE_PYTHON"), "{why}");
    why
}

#[test]
fn an_interpreter_that_hangs_is_stopped_with_what_it_started() {
    let why = refused("tail -f /dev/null & tail -f /dev/null");
    assert!(why.reason.contains("did not answer within 0.3 s"), "{why}");
}

#[test]
fn one_that_fails_is_quoted() {
    let why = refused("echo 'Fatal Python error: no encodings' >&2; exit 7");
    assert!(why.reason.contains("exit status: 7") && why.reason.contains("no encodings"), "{why}");
    let why = refused("kill -SEGV $$");
    assert!(why.reason.contains("signal"), "{why}");
}

#[test]
fn garbage_is_no_answer_however_long() {
    let why = refused("echo Python 2.7");
    assert!(why.reason.contains("does not answer") && why.reason.contains("Python 2.7"), "{why}");
    let why = refused("head -c 300000 /dev/zero | tr '\\0' x");
    assert!(why.reason.contains("does not answer") && why.reason.len() < 1000, "{why}");
    refused(r#"echo '{"executable": "python3", "version": "3.11.7"}'"#);
    refused("");
}

#[test]
fn one_that_cannot_be_started_is_said() {
    let place = tempfile::tempdir().unwrap();
    let python = place.path().join("python3");
    fs::write(&python, "").unwrap();
    let why = ask(&python, None).unwrap_err();
    assert!(why.reason.contains("cannot be started"), "{why}");
}

fn installed(version: &str) -> Result<TritonInstall, NoTriton> {
    let place = tempfile::tempdir().unwrap();
    let site_packages = package(&place.path().join("site"), version);
    let python = interpreter(&place.path().join("bin/python3"), Some(&site_packages));
    install(&python, &ask(&python, None)?, PartOrigin::Explicit)
}

#[test]
fn versions_that_are_not_supported_are_refused_by_name() {
    for version in ["3.4.0", "3.6.0", "3.9.1", "3.5.0+git12345"] {
        assert_eq!(installed(version).unwrap().version, version);
    }
    for version in ["3.3.1", "2.1.0", "3.10.0", "4.0.0"] {
        let why = installed(version).unwrap_err();
        assert_eq!(why.code, NoTritonCode::UnsupportedVersion);
        let reason = &why.reason;
        assert!(reason.contains(version) && reason.contains("3.4 to 3.9"), "{why}");
    }
}

#[test]
fn what_an_install_consists_of() {
    let place = tempfile::tempdir().unwrap();
    let site_packages = package(&place.path().join("site"), "3.6.0");
    let python = interpreter(&place.path().join("venv/bin/python3"), Some(&site_packages));
    fs::write(place.path().join("venv/pyvenv.cfg"), "").unwrap();
    let found = || install(&python, &ask(&python, None).unwrap(), PartOrigin::Venv).unwrap();
    let first = found();
    assert_eq!((first.python, first.python_version.as_str()), (python.clone(), "3.11.7"));
    assert_eq!(first.roots, [python.clone(), place.path().join("venv/pyvenv.cfg")]);
    assert_eq!(first.site_packages, site_packages);
    assert_eq!((first.ptxas_blackwell, first.torch), (None, false));
    fs::write(programs(&site_packages).join("ptxas-blackwell"), "").unwrap();
    fs::create_dir(site_packages.join("torch")).unwrap();
    fs::write(site_packages.join("torch/__init__.py"), "").unwrap();
    let second = found();
    assert!(second.ptxas_blackwell.is_some() && second.torch);
}

#[test]
fn a_package_without_its_parts_is_not_used() {
    let place = tempfile::tempdir().unwrap();
    let site_packages = package(&place.path().join("site"), "3.6.0");
    let python = interpreter(&place.path().join("bin/python3"), Some(&site_packages));
    let refused = || install(&python, &ask(&python, None).unwrap(), PartOrigin::Venv).unwrap_err();
    fs::remove_file(programs(&site_packages).join("ptxas")).unwrap();
    let why = refused();
    assert_eq!(why.code, NoTritonCode::Incomplete);
    assert!(why.reason.contains("ptxas"), "{why}");
    fs::remove_dir(site_packages.join("triton-3.6.0.dist-info")).unwrap();
    assert!(refused().reason.contains("dist-info"));
}

/// The interpreter of this machine answers, whether or not it has the package.
#[test]
fn a_real_interpreter_tells_what_it_needs() {
    let place = tempfile::tempdir().unwrap();
    let site_packages = package(&place.path().join("site"), "3.6.0");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut candidates = std::env::split_paths(&path).map(|directory| directory.join("python3"));
    let python = candidates.find(|path| path.is_file()).expect("python3, to test with");
    let answer = ask(&python, Some(&site_packages)).unwrap();
    let python = answer.executable.clone();
    let found = install(&python, &answer, PartOrigin::Path).unwrap();
    assert_eq!(found.site_packages, site_packages);
    assert!(found.python_version.starts_with("3."), "{}", found.python_version);
    assert_eq!(found.roots[0], python.canonicalize().unwrap());
    assert!(found.roots.iter().all(|root| root.exists()), "{:?}", found.roots);
    assert!(found.roots.iter().any(|root| root.join("encodings").is_dir()), "{:?}", found.roots);
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let too_wide = |root: &PathBuf| home.as_ref().is_some_and(|home| home.starts_with(root));
    assert!(!found.roots.iter().any(too_wide), "{:?}", found.roots);
}
