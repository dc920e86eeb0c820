use super::super::super::triton::testing::script;
use super::*;

#[test]
fn pip_gets_no_keys() {
    let command = pip(Path::new("python3")).to_blocking();
    let removed: Vec<_> = command.get_envs().filter(|(_, value)| value.is_none()).collect();
    for name in warpgauge_sandbox::environment::SECRET {
        assert!(removed.iter().any(|(removed, _)| *removed == name), "{name}");
    }
}

/// Returns the error for a pip that fails with this output.
fn failure(part: &Part, said: &str) -> String {
    let dir = tempfile::tempdir().unwrap();
    let fake = script(&dir.path().join("python3"), &format!("echo '{said}' >&2; exit 1"));
    let mut lines = Vec::new();
    let result = download(&fake, part, dir.path(), dir.path(), &mut |l| lines.push(l.to_owned()));
    assert_eq!(lines, [said]);
    let error = result.unwrap_err().to_string();
    assert!(error.contains(said) && error.contains(&part.packages[0]), "{error}");
    error
}

#[test]
fn failures_of_pip_say_what_to_do() {
    let (cuda, triton) = (Part::nvcc(), Part::triton());
    let network = "ERROR: NewConnectionError: no route";
    for (part, instead) in [(&cuda, "CUDA_HOME"), (&triton, "WARPGAUGE_PYTHON")] {
        let error = failure(part, network);
        for words in ["cannot be reached", "PIP_INDEX_URL", instead] {
            assert!(error.contains(words), "{error}");
        }
        let error = failure(part, "ERROR: No matching distribution found");
        assert!(error.contains("no wheel for this machine") && error.contains(instead), "{error}");
    }
    let full = "ERROR: [Errno 28] No space left on device";
    assert!(failure(&cuda, full).contains("350 MB"));
    assert!(failure(&triton, full).contains("900 MB"));
    assert!(failure(&triton, "ERROR: what else").contains("manually"));
}
