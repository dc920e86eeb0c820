//! The tables of docs/compatibility/ name tests that exist for each feature of a reference system.

use std::path::Path;

/// Names of tests in a text: `FILE::NAME` in backticks, with a path from the root of the repository.
fn tests_named(text: &str) -> Vec<(&str, &str)> {
    let quoted = text.split('`').skip(1).step_by(2);
    let named = quoted.filter_map(|name| name.split_once("::"));
    named.filter(|(file, _)| file.ends_with(".rs") || file.ends_with(".py")).collect()
}

#[test]
fn every_test_that_a_table_names_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let pages = std::fs::read_dir(root.join("docs/compatibility")).unwrap();
    let mut count = 0;
    for page in pages {
        let page = page.unwrap().path();
        // The index of the pages names no features.
        if page.ends_with("README.md") {
            continue;
        }
        let text = std::fs::read_to_string(&page).unwrap();
        let named = tests_named(&text);
        assert!(!named.is_empty(), "{} names no test", page.display());
        for (file, name) in named {
            let source = std::fs::read_to_string(root.join(file))
                .unwrap_or_else(|error| panic!("{}: {file}: {error}", page.display()));
            let keyword = if file.ends_with(".py") { "def" } else { "fn" };
            let is_there = source.contains(&format!("{keyword} {name}("));
            assert!(is_there, "{}: {file} has no test {name}", page.display());
            count += 1;
        }
    }
    assert!(count > 0);
}
