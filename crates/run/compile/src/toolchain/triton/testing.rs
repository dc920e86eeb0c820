//! Fake interpreters and packages for tests.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use warpgauge_sandbox::program::{ChildProgram, Environment};

/// Creates an executable shell script.
pub(in super::super) fn script(path: &Path, text: &str) -> PathBuf {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let draft = path.with_extension("draft");
    fs::write(&draft, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(&draft, fs::Permissions::from_mode(0o755)).unwrap();
    copied(&draft, path);
    fs::remove_file(&draft).unwrap();
    path.to_owned()
}

/// Copies a program in another process. If this process had the file open for writing, a child that
/// another test starts could inherit it, and the program could not be started ("text file busy").
pub(in super::super) fn copied(from: &Path, to: &Path) {
    let copy = ChildProgram::new("/bin/cp", Environment::Empty).args(["-p", "--"]).args([from, to]);
    assert!(copy.to_blocking().status().unwrap().success());
}

/// Creates an interpreter at `path` that finds the package in `site_packages`, or none.
pub(in super::super) fn interpreter(path: &Path, site_packages: Option<&Path>) -> PathBuf {
    let package = match site_packages {
        Some(directory) => format!("\"{}/triton/__init__.py\"", directory.display()),
        None => "null".to_owned(),
    };
    let path_text = path.display();
    let answer = format!(
        r#"{{"executable": "{path_text}", "version": "3.11.7", "base_executable": null, "base_prefix": "/none",
            "package": {package}, "library": [], "mapped": ["{path_text}"]}}"#
    );
    script(path, &format!("echo '{}'", answer.replace('\n', " ")))
}

/// Creates a package of that version in `site_packages`, in the detail that discovery reads.
pub(in super::super) fn package(site_packages: &Path, version: &str) -> PathBuf {
    let files = ["__init__.py", "backends/nvidia/bin/ptxas", "backends/nvidia/bin/nvdisasm"];
    for file in files {
        let path = site_packages.join("triton").join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
    }
    fs::create_dir_all(site_packages.join(format!("triton-{version}.dist-info"))).unwrap();
    site_packages.to_owned()
}
