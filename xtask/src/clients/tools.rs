//! Installs the tools of the checks: Python and npm packages in the target directory, and system
//! packages in CI.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::shell;

/// Names of the Chromium program in Linux distributions.
const BROWSERS: [&str; 4] =
    ["chromium", "chromium-browser", "google-chrome-stable", "google-chrome"];

/// The tools after their installation.
pub struct Tools {
    venv: PathBuf,
    node_home: PathBuf,
}

impl Tools {
    /// Installs the pinned packages below `home`, unless they are already installed.
    pub fn install(home: &Path) -> Result<Self> {
        ensure_program("javac", "default-jdk-headless")?;
        ensure_program("npm", "npm")?;
        let tools = Self { venv: home.join("venv"), node_home: home.join("node") };
        let scripts = shell::root().join("xtask/clients");
        tools.install_python(&scripts.join("requirements.txt"))?;
        tools.install_node(&scripts.join("package.json"))?;
        Ok(tools)
    }

    /// Returns a command for a program in the Python environment. The environment's programs are in
    /// its `PATH`.
    pub fn python_program(&self, name: &str) -> Command {
        let bin = self.venv.join("bin");
        let mut command = Command::new(bin.join(name));
        let inherited = std::env::var_os("PATH").unwrap_or_default();
        let path =
            std::env::join_paths(std::iter::once(bin).chain(std::env::split_paths(&inherited)));
        // Joining fails only if a directory name contains `:`.
        if let Ok(path) = path {
            command.env("PATH", path);
        }
        command
    }

    /// Returns a command for Node in the directory of the npm packages.
    pub fn node(&self) -> Command {
        let mut command = Command::new("node");
        command.current_dir(&self.node_home);
        command
    }

    fn install_python(&self, requirements: &Path) -> Result<()> {
        let stamp = self.venv.join("installed.txt");
        if is_current(&stamp, requirements)? {
            return Ok(());
        }
        shell::run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&self.venv))
            .context("on Debian and Ubuntu, install the package python3-venv")?;
        shell::run(
            self.python_program("python")
                .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"])
                .arg(requirements),
        )?;
        fs::copy(requirements, stamp)?;
        Ok(())
    }

    fn install_node(&self, manifest: &Path) -> Result<()> {
        let stamp = self.node_home.join("installed.json");
        if is_current(&stamp, manifest)? {
            return Ok(());
        }
        fs::create_dir_all(&self.node_home)?;
        fs::copy(manifest, self.node_home.join("package.json"))?;
        shell::run(
            Command::new("npm")
                .args(["install", "--no-package-lock", "--no-audit", "--no-fund", "--silent"])
                .current_dir(&self.node_home),
        )?;
        fs::copy(manifest, stamp)?;
        Ok(())
    }
}

/// Returns whether the installed packages are those in the list. `stamp` is a copy of the list that
/// was installed last.
pub fn is_current(stamp: &Path, list: &Path) -> Result<bool> {
    let wanted = fs::read(list).with_context(|| format!("cannot read {}", list.display()))?;
    Ok(fs::read(stamp).is_ok_and(|installed| installed == wanted))
}

/// Returns the path of the browser. In CI, installs it if it is absent.
pub fn chromium() -> Result<PathBuf> {
    if let Some(found) = BROWSERS.iter().find_map(shell::find) {
        return Ok(found);
    }
    ensure_program(BROWSERS[0], "chromium")?;
    shell::require(BROWSERS[0], "install the package chromium")
}

/// Checks that the annotations that generated Java code needs are installed; recent JDKs do not
/// include them. In CI, installs the package that contains them.
pub fn java_annotations() -> Result<()> {
    let (archive, package) =
        ("geronimo-annotation-1.3-spec.jar", "libgeronimo-annotation-1.3-spec-java");
    ensure(archive, package, || Path::new("/usr/share/java").join(archive).is_file())
}

/// Checks that a program is installed. In CI, installs its system package if it is absent;
/// elsewhere, the error contains the name of the package.
fn ensure_program(program: &str, package: &str) -> Result<()> {
    ensure(program, package, || shell::find(program).is_some())
}

fn ensure(what: &str, package: &str, is_there: impl FnOnce() -> bool) -> Result<()> {
    if is_there() {
        return Ok(());
    }
    if !shell::may_install_packages() {
        bail!("`{what}` is not installed (Debian, Ubuntu: apt-get install {package})");
    }
    shell::run(Command::new("apt-get").args(["update", "-qq"]))?;
    shell::run(
        Command::new("apt-get")
            .args(["install", "-y", "-qq", "--no-install-recommends", package])
            .env("DEBIAN_FRONTEND", "noninteractive"),
    )
}
