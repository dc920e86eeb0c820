//! Examples of the documents, as readers copy them.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use warpgauge_contract::{BodyFormat, parse};

use crate::kernel_files::{folder, run};
use crate::server::emulated;
use crate::support::{has_torch, has_triton};

/// A block of code of a document.
struct Block {
    file: PathBuf,
    text: String,
}

/// The blocks of the documents in this language.
fn blocks(language: &str) -> Vec<Block> {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    let files = fs::read_dir(docs).unwrap().map(|entry| entry.unwrap().path());
    let files = files.filter(|file| file.extension().is_some_and(|extension| extension == "md"));
    let fence = format!("```{language}\n");
    let of_file = |file: PathBuf| {
        let text = fs::read_to_string(&file).unwrap();
        let parts =
            text.split(&fence).skip(1).map(|part| part.split("```").next().unwrap().to_owned());
        parts.map(|text| Block { file: file.clone(), text }).collect::<Vec<_>>()
    };
    files.flat_map(of_file).collect()
}

/// Contracts of the documents that have all of their code.
fn contracts() -> Vec<(Block, Value)> {
    let whole = |block: Block| {
        let value: Value = parse(BodyFormat::Yaml, block.text.as_bytes()).ok()?;
        let kernel = value.get("kernel")?;
        let has_code = kernel.get("source_code").is_some() || kernel["kernel_type"] == "library";
        let is_called = kernel.get("io").is_some() || kernel["kernel_type"] == "program";
        (has_code && is_called && kernel.get("kernel_type").is_some()).then_some((block, value))
    };
    blocks("yaml").into_iter().filter_map(whole).collect()
}

#[test]
fn contracts_of_the_documents_are_right_for_the_emulated_device() {
    needs!("the emulated device", emulated());
    let contracts = contracts();
    assert!(contracts.len() >= 4, "{} contracts", contracts.len());
    let mut left = Vec::new();
    for (block, contract) in &contracts {
        let kind = contract["kernel"]["kernel_type"].as_str().unwrap();
        let can_run = match kind {
            "cuda" | "ptx" => true,
            "triton" => has_triton(),
            "torch" => has_torch(),
            _ => false,
        };
        if !can_run {
            left.push(kind);
            continue;
        }
        let files = folder(&[("contract.yaml", &block.text)]);
        let (code, out, error) = run(files.path(), &["eval", "contract.yaml", "--trials", "3"]);
        // A contract without an expectation shows its arguments alone.
        let expected = if contract.get("expected").is_some() { "CORRECT" } else { "NOT CHECKED" };
        let file = block.file.display();
        assert!(code == 0 && out.starts_with(expected), "{file}: {out}{error}\n{}", block.text);
    }
    the_rest_needs!("compilers and a GPU for all contracts of the documents", left.is_empty());
}

#[test]
fn the_first_kernel_is_evaluated_as_the_page_says() {
    needs!("the emulated device", emulated());
    needs!("PyTorch", has_torch());
    let first = blocks("cuda").into_iter().find(|block| block.file.ends_with("start.md")).unwrap();
    let broken = first.text.replace("a[i] + b[i]", "a[i] - b[i]");
    assert_ne!(broken, first.text);
    for (source, code, verdict) in [(&first.text, 0, "CORRECT"), (&broken, 4, "WRONG")] {
        let files = folder(&[("add.cu", source)]);
        let (found, out, error) = run(files.path(), &["eval", "add.cu", "--expect", "a + b"]);
        assert!(found == code && out.starts_with(verdict), "{out}{error}");
    }
}
