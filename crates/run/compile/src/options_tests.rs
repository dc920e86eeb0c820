use super::*;

fn checked(options: &[&str]) -> Result<CheckedOptions, CompileError> {
    let options: Vec<String> = options.iter().map(|o| (*o).to_owned()).collect();
    check(&options, Backend::Nvrtc, 90)
}

#[track_caller]
fn refused(options: &[&str], code: &str, names: &[&str]) {
    match checked(options) {
        Err(CompileError::Rejected(failure)) => {
            assert_eq!(failure.code.as_str(), code, "{options:?}: {}", failure.message);
            for name in names {
                assert!(failure.message.contains(name), "{name} not in {}", failure.message);
            }
        }
        other => panic!("{options:?}: {other:?}"),
    }
}

#[test]
fn allowed_options_reach_the_compiler_in_one_spelling() {
    let cases: [(&[&str], &[&str]); 9] = [
        (&["--use_fast_math"], &["--use_fast_math"]),
        (&["-use_fast_math", "-O3"], &["--use_fast_math"]),
        (&["-std=c++17"], &["--std=c++17"]),
        (&["--fmad", "false"], &["--fmad=false"]),
        (&["-maxrregcount 32"], &["--maxrregcount=32"]),
        (
            &["-DN=4", "-D", "M=5", "-UX"],
            &["--define-macro=N=4", "--define-macro=M=5", "--undefine-macro=X"],
        ),
        (&["-DTEXT=\"a b\""], &["--define-macro=TEXT=\"a b\""]),
        (&["-Xptxas", "-O3,-v"], &["--ptxas-options=-O3,-v"]),
        (&["--expt-relaxed-constexpr", "-g", "-m64"], &[]),
    ];
    for (given, expected) in cases {
        assert_eq!(checked(given).unwrap().words, expected, "{given:?}");
    }
}

#[test]
fn a_compilation_takes_few_threads() {
    let cases: [(&[&str], &[&str]); 3] = [
        (&["--split-compile=1"], &["--split-compile=1"]),
        (&["-split-compile", "8"], &["--split-compile=8"]),
        (&["--split-compile=0"], &["--split-compile=8"]),
    ];
    for (given, expected) in cases {
        assert_eq!(checked(given).unwrap().words, expected, "{given:?}");
    }
    for many in ["9", "1000", "-1", "all", ""] {
        let option = format!("--split-compile={many}");
        refused(&[&option], "invalid_compiler_option", &["--split-compile", "1 to 8"]);
    }
}

#[test]
fn the_architecture_must_be_the_devices() {
    for same in [&["-arch=sm_90"][..], &["--gpu-architecture", "compute_90"], &["-arch=native"]] {
        assert_eq!(checked(same).unwrap(), CheckedOptions::default(), "{same:?}");
    }
    assert_eq!(checked(&["-arch=sm_90a"]).unwrap().arch_suffix, Some('a'));
    assert_eq!(
        checked(&["-gencode", "arch=compute_90a,code=sm_90a"]).unwrap().arch_suffix,
        Some('a')
    );
    for other in [&["-arch=sm_80"][..], &["-gencode=arch=compute_80,code=sm_80"], &["-arch", "x"]] {
        refused(other, "wrong_architecture", &["sm_90"]);
    }
    refused(&["-arch=sm_80"], "wrong_architecture", &["sm_80", "sm_90"]);
}

#[test]
fn line_information_is_noted() {
    assert!(checked(&["-lineinfo"]).unwrap().lineinfo);
}

#[test]
fn options_that_touch_files_are_refused() {
    for option in [
        &["-I/etc"][..],
        &["-I", "/etc"],
        &["--include-path=/etc"],
        &["--pre-include=/etc/passwd"],
        &["-include", "/etc/passwd"],
        &["--use-bundled-headers=/tmp"],
        &["--pch-dir=/tmp"],
        &["--time=/tmp/x"],
        &["-o", "/tmp/x"],
        &["-Xcompiler", "-fplugin=x"],
        &["-ccbin=/tmp/x"],
        &["-optf", "/etc/passwd"],
        &["-dlto"],
        &["-rdc=true"],
    ] {
        refused(option, "compiler_option_refused", &[option[0].split('=').next().unwrap()]);
    }
}

#[test]
fn what_is_not_on_the_list_is_named() {
    refused(&["--frobnicate"], "unknown_compiler_option", &["--frobnicate"]);
    refused(&["kernel.cu"], "unknown_compiler_option", &["kernel.cu"]);
    refused(&["--use_fast_math=true"], "unknown_compiler_option", &["--use_fast_math=true"]);
    refused(&["-Xptxas", "--output-file=x"], "unknown_compiler_option", &["--output-file"]);
    refused(&["-Xptxas"], "invalid_compiler_option", &["-Xptxas"]);
    refused(&["-D\0"], "invalid_compiler_option", &[]);
    refused(&["-v"; MAX_OPTIONS + 1], "too_many_compiler_options", &["257"]);
}
