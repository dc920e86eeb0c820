//! `warpgauge schema`: the JSON Schema of contract files, for editors.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use warpgauge_contract::{BodyFormat, parse};

use crate::support::run;

fn validator(kind: &str) -> jsonschema::Validator {
    let (code, text, error) = run(&["schema", kind]);
    assert_eq!((code, error.as_str()), (0, ""), "{kind}");
    let schema: Value = serde_json::from_str(&text).unwrap();
    jsonschema::draft202012::new(&schema).unwrap()
}

/// Files of the examples with this name.
fn examples(name: &str) -> Vec<(PathBuf, Value)> {
    let kernels = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels");
    let folders = fs::read_dir(kernels).unwrap().map(|entry| entry.unwrap().path());
    let files = folders.map(|folder| folder.join(name)).filter(|file| file.is_file());
    let read = |file: PathBuf| {
        let value = parse(BodyFormat::Yaml, &fs::read(&file).unwrap()).unwrap();
        (file, value)
    };
    files.map(read).collect()
}

#[test]
fn every_example_keeps_the_schema_of_its_kind() {
    for (kind, name, least) in [("contract", "contract.yaml", 20), ("sweep", "sweep.yaml", 1)] {
        let (validator, files) = (validator(kind), examples(name));
        assert!(files.len() >= least, "{} files {name}", files.len());
        for (file, contract) in files {
            let errors: Vec<_> = validator.iter_errors(&contract).map(|e| e.to_string()).collect();
            assert!(errors.is_empty(), "{}: {errors:?}", file.display());
        }
    }
}

#[test]
fn mistakes_of_a_contract_are_found_where_they_are() {
    let validator = validator("contract");
    let (_, sound) = examples("contract.yaml").remove(0);
    for (at, wrong, place) in [
        ("/num_trials", json!(0), "/num_trials"),
        ("/timeout", json!("long"), "/timeout"),
        ("/kernel/kernel_type", json!("cudda"), "/kernel/kernel_type"),
        ("/kernel/soruce_file", json!("k.cu"), "/kernel"),
        ("/kernel/source_file", json!(7), "/kernel/source_file"),
    ] {
        let mut contract = sound.clone();
        let (parent, name) = at.rsplit_once('/').unwrap();
        contract.pointer_mut(parent).unwrap()[name] = wrong;
        let places: Vec<_> =
            validator.iter_errors(&contract).map(|e| e.instance_path().to_string()).collect();
        assert!(places.iter().any(|found| found == place), "{at}: {places:?}");
    }
    let mut without = sound;
    without.as_object_mut().unwrap().remove("kernel");
    assert!(!validator.is_valid(&without));
}
