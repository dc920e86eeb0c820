use super::*;

fn request(cache_dir: &Path) -> InstallRequest {
    InstallRequest {
        program: "/nonexistent".into(),
        cache_dir: cache_dir.to_owned(),
        ..InstallRequest::default()
    }
}

#[test]
fn versions_without_wheels_are_refused_before_anything_is_downloaded() {
    let dir = tempfile::tempdir().unwrap();
    let request = InstallRequest { cuda: vec![11], ..request(dir.path()) };
    let result = install(&request, &mut |_| {});
    assert!(matches!(result, Err(InstallError::Version { major: 11 })), "{result:?}");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn where_an_interpreter_is_named_triton_belongs_there() {
    let dir = tempfile::tempdir().unwrap();
    let named_python = Some("/opt/python3".into());
    let request = InstallRequest { triton: true, named_python, ..request(dir.path()) };
    let error = install(&request, &mut |_| {}).unwrap_err().to_string();
    assert!(error.contains("`/opt/python3 -m pip install triton=="), "{error}");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn what_a_killed_installation_left_is_removed_when_nobody_installs() {
    let dir = tempfile::tempdir().unwrap();
    for name in [".new-abc/part", ".old-def/old", "nvrtc-13/nvidia"] {
        fs::create_dir_all(dir.path().join(name)).unwrap();
    }
    let mut lines = Vec::new();
    let lock = alone(dir.path(), &mut |line| lines.push(line.to_owned())).unwrap();
    let left: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!((left, lines), (vec!["nvrtc-13".into()], Vec::<String>::new()));

    // A second installation waits, and reports that.
    let (sender, said) = std::sync::mpsc::channel();
    let path = dir.path().to_owned();
    let waiting = std::thread::spawn(move || {
        alone(&path, &mut |line| sender.send(line.to_owned()).unwrap()).map(drop)
    });
    assert!(said.recv().unwrap().contains("another installation"));
    drop(lock);
    waiting.join().unwrap().unwrap();
}
