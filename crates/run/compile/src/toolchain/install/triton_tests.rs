use super::super::super::triton::testing::{package, script};
use super::*;
use warpgauge_sandbox::enforcement::{self, Enforcement, FileAccess};

/// Creates a fake Python of this version, with or without pip.
fn python_of(path: &Path, version: &str, pip: bool) -> PathBuf {
    let answer = format!(
        r#"{{"executable": "{}", "version": "{version}", "base_executable": null,
            "base_prefix": "/none", "package": null, "library": [], "mapped": []}}"#,
        path.display()
    );
    let answer = answer.replace('\n', " ");
    let pip = i32::from(!pip);
    script(path, &format!("case \"$*\" in *pip*) exit {pip};; esac\necho '{answer}'"))
}

#[test]
fn a_python_with_pip_and_a_wheel_is_chosen() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    let old = python_of(&at("old/python3"), "3.9.2", true);
    let bare = python_of(&at("bare/python3"), "3.12.1", false);
    let good = python_of(&at("good/python3"), "3.11.7", true);
    let broken = script(&at("broken/python3"), "exit 3");
    let missing = at("none/python3");
    let all = [missing.clone(), broken.clone(), old.clone(), bare.clone(), good.clone()];
    let among = |candidates: &[PathBuf]| {
        python_among(candidates.iter().cloned(), &Part::triton(), "Triton")
    };
    assert_eq!(among(&all).unwrap(), good);
    let none = [missing.clone(), broken, old, bare];
    let error = among(&none).unwrap_err().to_string();
    for words in ["3.10 to 3.14", "is 3.9.2", "has no pip", "exit status: 3", "WARPGAUGE_PYTHON"] {
        assert!(error.contains(words), "{words}: {error}");
    }
    let error = among(&[missing]).unwrap_err().to_string();
    assert!(error.contains("no python3 was found") && error.contains("apt install"), "{error}");
}

#[test]
fn what_is_not_needed_is_dropped_and_the_rest_stays() {
    let place = tempfile::tempdir().unwrap();
    let fresh = package(place.path(), "3.6.0");
    for name in NOT_NEEDED {
        fs::create_dir_all(fresh.join(name)).unwrap();
    }
    let library = fresh.join("triton/_C/libtriton.so");
    fs::write(&library, "no library").unwrap();
    prune(&fresh).unwrap();
    assert!(NOT_NEEDED.iter().all(|name| !fresh.join(name).exists()));
    assert_eq!(fs::read(&library).unwrap(), b"no library");
    assert!(fresh.join("triton/backends/nvidia/bin/ptxas").exists());
}

#[test]
fn a_triton_that_does_not_compile_is_not_put_in_place() {
    let place = tempfile::tempdir().unwrap();
    let directory = package(&place.path().join("site"), "3.6.0");
    let python = place.path().join("python3");
    let install = |script_text: &str, version: &str| TritonInstall {
        python: script(&python, script_text),
        python_version: "3.11.7".into(),
        site_packages: directory.clone(),
        roots: Vec::new(),
        version: version.into(),
        ptxas: script(&place.path().join("ptxas"), "echo killed >&2; exit 9"),
        ptxas_blackwell: None,
        torch: false,
        source: crate::toolchain::PartOrigin::Cache,
    };
    let told = |script, version| verify(&install(script, version), place.path()).unwrap_err();
    let what = told("echo 'ImportError: GLIBC_2.28 not found' >&2; exit 1", PINNED);
    assert!(what.contains("compiles a kernel") && what.contains("GLIBC_2.28"), "{what}");
    let what = told("echo compiled", PINNED);
    assert!(what.contains("ptxas") && what.contains("killed"), "{what}");
    assert!(told("echo compiled", "3.5.0").contains("should be 3.6.0"));
}

/// Runs `work` on a thread that may access only these paths and the system's libraries.
fn confined<T: Send>(access: &FileAccess, work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            enforcement::close_file_system(access).unwrap();
            work()
        });
        thread.join().unwrap()
    })
}

#[test]
fn the_installed_one_compiles_with_no_more_than_its_roots() {
    let toolchain = crate::nvrtc_tests::toolchain();
    needs!("Triton", toolchain.triton.is_some());
    let install = toolchain.triton().unwrap();
    let place = tempfile::tempdir().unwrap();
    let system = ["/lib", "/lib64", "/usr/lib", "/etc/ld.so.cache"].map(PathBuf::from);
    let own = install.roots.iter().chain([&install.site_packages]).cloned();
    let access = FileAccess {
        execute: own.chain(system).filter(|path| path.exists()).collect(),
        write: vec![place.path().to_owned(), "/dev/null".into()],
        ..FileAccess::default()
    };
    // Triton's cache moves files between directories, which the confinement forbids; copies work as well.
    let script = format!("import os, shutil\nos.replace = shutil.move\n{CHECK}");
    fs::write(place.path().join(SCRIPT), script).unwrap();
    confined(&access, || compiles(install, place.path())).unwrap();
    let nowhere = FileAccess { execute: vec!["/lib".into()], ..access };
    if enforcement::probe() == Enforcement::Full {
        confined(&nowhere, || compiles(install, place.path())).unwrap_err();
    }
}
