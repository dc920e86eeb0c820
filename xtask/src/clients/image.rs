//! Checks the Dockerfile, and builds and starts the container image if a builder is available.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::shell;

/// Image builders with the same command line as Docker.
const BUILDERS: [&str; 2] = ["docker", "podman"];

/// Name of the image and of the container that is started from it.
const NAME: &str = "warpgauge-image-check";

/// User id of the server in the image.
const USER: &str = "10001";

/// Lints the Dockerfile, and builds and starts the image if a builder is available.
pub fn check(mut hadolint: Command) -> Result<()> {
    let file = shell::root().join("Dockerfile");
    let rules = shell::root().join(".hadolint.yaml");
    shell::run(hadolint.arg("--config").arg(rules).arg(&file))?;
    let text = std::fs::read_to_string(&file)
        .with_context(|| format!("cannot read {}", file.display()))?;
    check_rules(&text)?;
    match BUILDERS.into_iter().find(|builder| serves(builder)) {
        Some(builder) => build_and_start(builder),
        None => {
            eprintln!(
                "neither docker nor podman works on this machine: the Dockerfile is linted, but no image is built"
            );
            Ok(())
        }
    }
}

/// Checks rules that hadolint does not check: base images are named by digest, the user is a
/// number, and there is a health check.
fn check_rules(dockerfile: &str) -> Result<()> {
    let values = |instruction: &'static str| {
        dockerfile.lines().filter_map(move |line| line.strip_prefix(instruction)?.strip_prefix(' '))
    };
    for image in values("FROM") {
        let image = image.split(' ').next().unwrap_or_default();
        let digest = image.split_once("@sha256:").map(|(_, digest)| digest);
        let is_whole =
            |digest: &str| digest.len() == 64 && digest.bytes().all(|b| b.is_ascii_hexdigit());
        if !digest.is_some_and(is_whole) {
            bail!("Dockerfile: the base image {image} must be named by its digest");
        }
    }
    if values("USER").next_back().is_none_or(|user| user.split(':').next() != Some(USER)) {
        bail!("Dockerfile: the last USER must be {USER}");
    }
    if values("HEALTHCHECK").next().is_none() {
        bail!("Dockerfile: HEALTHCHECK is missing");
    }
    Ok(())
}

/// Returns whether a builder is installed and works.
fn serves(builder: &str) -> bool {
    let mut info = Command::new(builder);
    info.arg("info").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // Without a Docker server, the Docker client prints information about itself and fails.
    info.status().is_ok_and(|status| status.success())
}

fn build_and_start(builder: &str) -> Result<()> {
    let command = |arguments: &[&str]| {
        let mut command = Command::new(builder);
        command.args(arguments);
        command
    };
    shell::run(command(&["build", "--tag", NAME]).arg(shell::root()))?;
    // This removes the container of an earlier run that was interrupted.
    let _ = command(&["rm", "--force", NAME]).stderr(Stdio::null()).status();
    shell::run(&mut command(&[
        "run",
        "--detach",
        "--name",
        NAME,
        "--env",
        "WARPGAUGE_API_KEYS=check",
        NAME,
    ]))?;
    let outcome = started(&command);
    if outcome.is_err() {
        let _ = command(&["logs", "--tail", "100", NAME]).status();
    }
    shell::run(&mut command(&["rm", "--force", NAME]))?;
    outcome
}

/// Fails unless the server in the container becomes ready and runs as the user of the image.
fn started(command: &dyn Fn(&[&str]) -> Command) -> Result<()> {
    let health = [
        "exec",
        NAME,
        "curl",
        "--fail",
        "--silent",
        "--show-error",
        "--retry",
        "60",
        "--retry-delay",
        "1",
        "--retry-all-errors",
        "http://127.0.0.1:8000/health",
    ];
    shell::run(&mut command(&health))?;
    let user = shell::capture(&mut command(&["exec", NAME, "id", "-u"]))?;
    if user.trim() != USER {
        bail!("the container runs as user {}, not {USER}", user.trim());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dockerfile_keeps_the_rules_that_have_no_linter() {
        let text = include_str!("../../../Dockerfile");

        check_rules(text).unwrap();
        let digest = text.find("@sha256:").unwrap();
        let tagged = format!("{}{}", &text[..digest], &text[digest + 72..]);
        for (broken, said) in [
            (tagged, "digest"),
            (text.replace("\nUSER 10001:10001", ""), "USER"),
            (text.replace("\nHEALTHCHECK", "\n# HEALTHCHECK"), "HEALTHCHECK"),
        ] {
            assert!(check_rules(&broken).unwrap_err().to_string().contains(said), "{said}");
        }
    }
}
