//! `cargo xtask pictures`: writes the pictures of README and docs from stored reports.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::{clients, shell};

/// Directory of the reports and pictures.
const DIRECTORY: &str = "docs/pictures";

/// Report of an H200, and the picture of the top of its page.
const REPORT: &str = "matmul-h200.json";
const PICTURE: &str = "report-h200.png";

/// Width and height of the picture, pixels. The height ends below a folded section.
const SIZE: [u32; 2] = [1000, 833];

/// Renders the report, and takes a picture of the page with Chromium.
pub fn run() -> Result<()> {
    let directory = shell::root().join(DIRECTORY);
    let chromium = clients::chromium()?;
    let html = shell::capture(
        shell::cargo()
            .args(["run", "--quiet", "--package", "warpgauge-page", "--example", "render"])
            .arg(directory.join(REPORT)),
    )?;
    let target = shell::root().join("target/pictures");
    fs::create_dir_all(&target).with_context(|| format!("cannot make {}", target.display()))?;
    let page = target.join("report.html");
    fs::write(&page, html).with_context(|| format!("cannot write {}", page.display()))?;
    take(&chromium, &page, &directory.join(PICTURE))
}

fn take(chromium: &Path, page: &Path, picture: &Path) -> Result<()> {
    let [width, height] = SIZE;
    shell::run(
        Command::new(chromium)
            // Chromium's own sandbox does not start for root; the page is ours and has no script.
            .args(["--headless=new", "--no-sandbox", "--hide-scrollbars"])
            .arg(format!("--window-size={width},{height}"))
            .arg(format!("--screenshot={}", picture.display()))
            .arg(format!("file://{}", page.display())),
    )
}
