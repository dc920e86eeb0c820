//! The files of NVIDIA's driver for events that processes share. Each process that creates such an
//! event has a file `/dev/shm/cuda.shm.UID.PID.N`, with hexadecimal numbers. A process that is
//! killed does not remove its file.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The directory that contains these files.
pub(crate) const DIRECTORY: &str = "/dev/shm";

/// Removes the files of a process of this user that has ended or is about to end. Processes that
/// have opened its events keep the files open.
pub fn remove(process: u32) {
    remove_in(Path::new(DIRECTORY), process);
}

fn remove_in(directory: &Path, process: u32) {
    let own = rustix::process::geteuid().as_raw();
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        let owned = entry.metadata().is_ok_and(|found| found.is_file() && found.uid() == own);
        if owned && entry.file_name().to_str().and_then(maker) == Some(process) {
            // A file that could not be removed only occupies 80 KiB of memory.
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// Returns the process that created a file with this name, or `None` if the file does not belong to
/// the driver.
fn maker(name: &str) -> Option<u32> {
    let numbers = name.strip_prefix("cuda.shm.")?.split('.');
    let mut numbers = numbers.map(|part| u32::from_str_radix(part, 16).ok());
    let (_user, process, _number) = (numbers.next()??, numbers.next()??, numbers.next()??);
    numbers.next().is_none().then_some(process)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_one_process_go_and_all_others_stay() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let others =
            ["cuda.shm.0.245.1", "cuda.shm.0.244", "cuda.shm.0.244.1.2", "x.cuda.shm.0.244.1"];
        for name in others.into_iter().chain(["cuda.shm.0.244.1", "cuda.shm.3e8.244.a"]) {
            std::fs::write(at(name), "").unwrap();
        }
        std::fs::create_dir(at("cuda.shm.0.244.2")).unwrap();
        remove_in(directory.path(), 0x244);
        for name in others.into_iter().chain(["cuda.shm.0.244.2"]) {
            assert!(at(name).exists(), "{name}");
        }
        assert!(!at("cuda.shm.0.244.1").exists() && !at("cuda.shm.3e8.244.a").exists());
    }
}
