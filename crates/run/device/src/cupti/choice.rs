//! Chooses the CUPTI libraries that work with a driver.

use std::path::PathBuf;

/// Returns the libraries that work with a driver, best first: those of the driver's major version,
/// then older ones. A library of a newer major version does not work with the driver.
pub fn for_driver(found: &[PathBuf], driver_version: i32) -> Vec<PathBuf> {
    let driver = u32::try_from(driver_version / 1000).unwrap_or(0);
    let version =
        |path: &PathBuf| major_version(path.file_name()?.to_str()?).filter(|&m| m <= driver);
    let mut fitting: Vec<&PathBuf> = found.iter().filter(|path| version(path).is_some()).collect();
    fitting.sort_by_key(|path| std::cmp::Reverse(version(path)));
    fitting.into_iter().cloned().collect()
}

/// Returns the major version of CUDA in a library's SONAME: 13 for `libcupti.so.13`.
pub fn major_version(name: &str) -> Option<u32> {
    name.strip_prefix("libcupti.so.")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_drivers_own_version_comes_first_and_newer_ones_not_at_all() {
        let found = ["/a/libcupti.so.12", "/b/libcupti.so.13", "/c/libcupti.so.2025.1.1"];
        let found = found.map(PathBuf::from);
        let chosen = |driver| for_driver(&found, driver);
        assert_eq!(chosen(13000), [found[1].clone(), found[0].clone()]);
        assert_eq!(chosen(12040), [found[0].clone()]);
    }
}
