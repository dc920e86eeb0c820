use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::*;

/// Creates empty files in a new directory: only their names matter.
fn layout(files: &[&str]) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    for file in files {
        let path = root.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    root
}

fn found(root: &Path) -> Vec<NvrtcInstall> {
    nvrtc_in(&Place { path: root.to_owned(), source: PartOrigin::Explicit })
}

#[test]
fn a_wheel_tells_its_version_and_a_toolkit_by_its_file_name() {
    let wheel = layout(&[
        "nvidia/cu13/lib/libnvrtc.so.13",
        "nvidia/cu13/lib/libnvrtc-builtins.so.13.5",
        "nvidia_cuda_nvrtc-13.5.37.dist-info/METADATA",
    ]);
    let installs = found(wheel.path());
    assert_eq!(installs.len(), 1);
    assert_eq!(installs[0].version, (13, 5));
    assert_eq!(installs[0].full_version.as_deref(), Some("13.5.37"));

    let toolkit = layout(&["lib64/libnvrtc.so.12.4.127", "include/cuda_fp16.h"]);
    let link = toolkit.path().join("lib64/libnvrtc.so.12");
    std::os::unix::fs::symlink("libnvrtc.so.12.4.127", link).unwrap();
    let installs = found(toolkit.path());
    assert_eq!(installs.len(), 1, "{installs:?}");
    assert_eq!(installs[0].version_text(), "12.4.127");
    assert_eq!(installs[0].include_dirs.len(), 1);
}

#[test]
fn the_builtins_tell_the_version_where_nothing_else_does() {
    let lib = layout(&["libnvrtc.so.12", "libnvrtc-builtins.so.12.9", "libnvrtc.alt.so.12"]);
    let installs = found(lib.path());
    assert_eq!(installs.len(), 1);
    assert_eq!((installs[0].version, installs[0].full_version.clone()), ((12, 9), None));
}

#[test]
fn a_library_of_unknown_version_is_not_used() {
    assert!(found(layout(&["libnvrtc.so.12"]).path()).is_empty());
}

#[test]
fn headers_of_separate_packages_are_brought_together() {
    let site = layout(&[
        "nvidia/cuda_nvrtc/lib/libnvrtc.so.12",
        "nvidia/cuda_nvrtc/lib/libnvrtc-builtins.so.12.9",
        "nvidia/cuda_runtime/include/cuda_fp16.h",
        "nvidia/cuda_cccl/include/cuda/std/version",
    ]);
    let dirs = found(site.path()).remove(0).include_dirs;
    let names: Vec<_> = dirs.iter().map(|d| d.strip_prefix(site.path()).unwrap()).collect();
    assert_eq!(
        names,
        [Path::new("nvidia/cuda_runtime/include"), Path::new("nvidia/cuda_cccl/include")]
    );
}

#[test]
fn explicit_places_come_first_and_installed_ones_are_found() {
    let explicit = layout(&["lib/libnvrtc.so.12", "lib/libnvrtc-builtins.so.12.9", "bin/nvcc"]);
    let cache = layout(&[
        "toolchain/nvrtc-12/nvidia/x/lib/libnvrtc.so.12",
        "toolchain/nvrtc-12/nvidia/x/lib/libnvrtc-builtins.so.12.9",
        "toolchain/nvrtc-13/nvidia/x/lib/libnvrtc.so.13",
        "toolchain/nvrtc-13/nvidia/x/lib/libnvrtc-builtins.so.13.1",
    ]);
    let search = ToolchainSearch {
        explicit: Some(explicit.path().to_owned()),
        cache_dir: cache.path().to_owned(),
        python: None,
    };
    let toolchain = discover(&search);
    let source = |version| toolchain.nvrtc.iter().find(|i| i.version == version).map(|i| i.source);
    assert_eq!(source((12, 9)), Some(PartOrigin::Explicit));
    assert_eq!(source((13, 1)), Some(PartOrigin::Cache));
    assert_eq!(toolchain.nvcc.unwrap().source, PartOrigin::Explicit);
}

#[test]
fn the_loaders_listing() {
    let listing = "1 libs found in cache\n\
        \tlibnvrtc.so.12 (libc6,x86-64) => /usr/lib/x86_64-linux-gnu/libnvrtc.so.12\n\
        \tlibnvrtc-builtins.so.12.0 (libc6,x86-64) => /elsewhere/libnvrtc-builtins.so.12.0\n\
        \tlibz.so.1 (libc6,x86-64) => /lib/libz.so.1\n\
        \tlibcusparse.so.12 (libc6,x86-64) => /opt/cuda/lib/libcusparse.so.12\n";
    let found = ["/opt/cuda/lib", "/usr/lib/x86_64-linux-gnu"].map(PathBuf::from);
    assert_eq!(ldconfig_dirs(listing), found);
}

/// Headers of a whole toolkit of this version.
fn toolkit_headers(root: &Path, version: u32, names: &[&str]) {
    for name in names {
        let path = root.join("include").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
    }
    let text = format!("#define CUDA_VERSION {version}\n");
    fs::write(root.join("include/cuda.h"), text).unwrap();
}

const ALL: [&str; 5] =
    ["cuda_fp16.h", "cooperative_groups.h", "cuda/std/version", "mma.h", "crt/mma.h"];

fn explicit(paths: &[&Path]) -> Vec<Place> {
    let place = |path: &&Path| Place { path: path.to_path_buf(), source: PartOrigin::Explicit };
    paths.iter().map(place).collect()
}

#[test]
fn an_nvrtc_with_some_headers_gets_the_others_from_the_same_major_version() {
    let part = layout(&["lib/libnvrtc.so.13", "lib/libnvrtc-builtins.so.13.0"]);
    toolkit_headers(part.path(), 13000, &["cuda_fp16.h", "mma.h"]);
    let old = layout(&[]);
    toolkit_headers(old.path(), 12090, &ALL);
    let alone = discover_at(&explicit(&[part.path(), old.path()]));
    assert_eq!(alone.nvrtc[0].lacks, ["cooperative_groups.h", "cuda/std/version", "crt/mma.h"]);
    let whole = layout(&[]);
    toolkit_headers(whole.path(), 13050, &ALL);
    let completed = discover_at(&explicit(&[part.path(), old.path(), whole.path()]));
    let install = &completed.nvrtc[0];
    assert!(install.lacks.is_empty(), "{install:?}");
    assert_eq!(install.include_dirs.len(), 2, "its own come first: {install:?}");
    assert!(install.include_dirs[0].starts_with(part.path().canonicalize().unwrap()));
}

#[test]
fn an_nvrtc_that_carries_headers_uses_them_where_those_beside_it_are_a_part() {
    let part = layout(&["lib/libnvrtc.so.13", "lib/libnvrtc-builtins.so.13.5"]);
    toolkit_headers(part.path(), 13050, &["cuda_fp16.h"]);
    let found = discover_at(&explicit(&[part.path()]));
    assert!(found.nvrtc[0].include_dirs.is_empty() && found.nvrtc[0].lacks.is_empty());
}

#[test]
fn a_whole_installation_comes_before_a_part_of_one() {
    let part = layout(&["lib/libnvrtc.so.13", "lib/libnvrtc-builtins.so.13.0"]);
    toolkit_headers(part.path(), 13000, &["cuda_fp16.h"]);
    let whole = layout(&["lib/libnvrtc.so.12", "lib/libnvrtc-builtins.so.12.9"]);
    toolkit_headers(whole.path(), 12090, &ALL);
    let found = discover_at(&explicit(&[part.path(), whole.path()]));
    let versions = |found: &Toolchain| {
        found.nvrtc_for(13000, true).iter().map(|one| one.version).collect::<Vec<_>>()
    };
    assert_eq!(versions(&found), [(12, 9), (13, 0)]);
    // Of the same version, too.
    let same = layout(&["lib/libnvrtc.so.13", "lib/libnvrtc-builtins.so.13.0"]);
    toolkit_headers(same.path(), 13000, &ALL);
    let found = discover_at(&explicit(&[part.path(), same.path()]));
    assert_eq!(versions(&found), [(13, 0)]);
    assert!(found.nvrtc[0].lacks.is_empty(), "{found:?}");
}

#[test]
fn the_parent_of_installations_may_be_named() {
    let data = layout(&[
        "toolchain/nvrtc-13/nvidia/cu13/lib/libnvrtc.so.13",
        "toolchain/nvrtc-13/nvidia/cu13/lib/libnvrtc-builtins.so.13.5",
        "toolchain/.removed/nvidia/lib/libnvrtc.so.13",
        "other/file",
    ]);
    for named in [data.path().to_owned(), data.path().join("toolchain")] {
        let search = ToolchainSearch { explicit: Some(named.clone()), ..Default::default() };
        let named_dirs = search.named();
        assert_eq!(named_dirs.len(), 2, "{named_dirs:?}");
        assert!(named_dirs[1].ends_with("nvrtc-13") && holds_a_part(&named));
    }
    assert!(!holds_a_part(&data.path().join("other")) && !holds_a_part(Path::new("/nothing/here")));
}

#[test]
fn a_missing_header_of_a_toolkit_is_told_from_one_of_the_source() {
    let missing = |name: &str| {
        let log = format!("kernel.cu(1): catastrophic error: cannot open source file \"{name}\"\n");
        headers::missing_in(&log).map(str::to_owned)
    };
    for name in ["mma.h", "cuda/std/array", "cooperative_groups/reduce.h", "cub/cub.cuh"] {
        assert_eq!(missing(name).as_deref(), Some(name));
    }
    for name in ["my.h", "cuda_utils.h", "src/mma.h"] {
        assert_eq!(missing(name), None, "{name}");
    }
}

#[test]
fn a_program_in_a_wheel_knows_its_packages() {
    let found = |program: &str| site_packages_of(Path::new(program));
    let packages = "/v/lib/python3.12/site-packages";
    assert_eq!(found(&format!("{packages}/warpgauge/_program/warpgauge")), Some(packages.into()));
    assert_eq!(found("/usr/local/bin/warpgauge"), None);
    assert_eq!(found("warpgauge"), None);
}
