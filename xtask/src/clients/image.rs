//! The container image: its rules, and the image itself where a builder runs.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::shell;

/// Builders with the command line of Docker.
const BUILDERS: [&str; 2] = ["docker", "podman"];

/// Name of the image, and of the container that is started from it.
const NAME: &str = "warpgauge-image-check";

/// The user that the image runs as.
const USER: &str = "10001";

/// Lints the Dockerfile, and builds and starts the image where that is possible.
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
            eprintln!("neither docker nor podman runs here: the image is linted, and not built");
            Ok(())
        }
    }
}

/// What hadolint has no rules for: base images by digest, a user by number, a check of health.
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
            bail!("Dockerfile: the base image {image} is not named by its digest");
        }
    }
    if values("USER").next_back().is_none_or(|user| user.split(':').next() != Some(USER)) {
        bail!("Dockerfile: the last USER is not {USER}");
    }
    if values("HEALTHCHECK").next().is_none() {
        bail!("Dockerfile: there is no HEALTHCHECK");
    }
    Ok(())
}

/// Whether a builder is installed and answers.
fn serves(builder: &str) -> bool {
    let mut info = Command::new(builder);
    info.arg("info").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // Docker's client without a server prints what it knows, and fails.
    info.status().is_ok_and(|status| status.success())
}

fn build_and_start(builder: &str) -> Result<()> {
    let command = |arguments: &[&str]| {
        let mut command = Command::new(builder);
        command.args(arguments);
        command
    };
    shell::run(command(&["build", "--tag", NAME]).arg(shell::root()))?;
    // What a run that was stopped left.
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

/// Fails unless the server in the container becomes ready, as the user of the image.
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
