//! The compiled kernels in `tests/ptx`: one file for each text.

use std::collections::BTreeMap;

use crate::common::{ptx, ptx_folder, with_target};

/// The architectures that have files, by sources, oldest first.
fn files() -> BTreeMap<String, Vec<u32>> {
    let mut files: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    for entry in std::fs::read_dir(ptx_folder()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let Some(name) = name.strip_suffix(".ptx") else { continue };
        let (source, arch) = name.split_once('.').unwrap();
        files.entry(source.to_owned()).or_default().push(arch.parse().unwrap());
    }
    files.values_mut().for_each(|archs| archs.sort_unstable());
    files
}

fn file(name: &str) -> String {
    std::fs::read_to_string(ptx_folder().join(name)).unwrap()
}

/// What two texts are compared by: no comments, and no `.target`.
fn essence(text: &str) -> String {
    let lines = text.lines().map(|line| line.split("//").next().unwrap_or_default().trim_end());
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with(".target "));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn no_text_is_kept_for_two_architectures() {
    let files = files();
    assert!(files.len() > 20, "{files:?}");
    for (source, archs) in files {
        for pair in archs.windows(2) {
            let [older, newer] =
                [pair[0], pair[1]].map(|arch| file(&format!("{source}.{arch}.ptx")));
            assert_ne!(
                essence(&older),
                essence(&newer),
                "{source}.{}.ptx differs from {source}.{}.ptx in its target alone: remove it",
                pair[1],
                pair[0]
            );
        }
    }
}

#[test]
fn an_architecture_without_a_file_has_the_text_of_an_older_one() {
    let (old, new) = (ptx("gemm.80"), ptx("gemm.90"));
    assert_eq!(new, with_target(&old, ".target sm_90"));
    assert_eq!(new.matches(".target").count(), 1);
    assert_ne!(essence(&ptx("gemm.75")), essence(&old));
    assert_eq!(essence("// a\n.target sm_75\nret; // b\n"), essence(".target sm_90\n\nret;\n"));
}
