//! Collects the pages that docs/SUMMARY.md lists, and embeds their texts.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs");
    let summary = docs.join("SUMMARY.md");
    println!("cargo::rerun-if-changed={}", summary.display());
    let text = fs::read_to_string(&summary).expect("docs/SUMMARY.md can be read");
    let mut code = String::from("pub(crate) static PAGES: &[Source] = &[\n");
    let mut part = "";
    for line in text.lines() {
        if let Some(title) = line.strip_prefix("# ") {
            part = title;
        }
        let link = line.trim_start().strip_prefix("- [").and_then(|rest| rest.split_once("]("));
        let Some((title, target)) = link else { continue };
        let target = target.strip_suffix(')').expect("a link of docs/SUMMARY.md ends its line");
        let file = docs.join(target);
        assert!(file.is_file(), "docs/SUMMARY.md lists {target}, which does not exist");
        writeln!(
            code,
            "    Source {{ part: {part:?}, title: {title:?}, file: {target:?}, text: include_str!({file:?}) }},"
        )
        .expect("a string takes every text");
    }
    code.push_str("];\n");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    fs::write(out.join("pages.rs"), code).expect("OUT_DIR can be written");
}
