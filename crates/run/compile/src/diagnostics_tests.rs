use super::*;

type Place = (Severity, Option<String>, Option<u32>, Option<u32>, String);

fn places(log: &str) -> Vec<Place> {
    parse(log).into_iter().map(|d| (d.severity, d.file, d.line, d.column, d.message)).collect()
}

fn kernel(severity: Severity, line: u32, column: Option<u32>, message: &str) -> Place {
    (severity, Some("kernel.cu".into()), Some(line), column, message.into())
}

#[test]
fn nvrtc_errors_and_warnings_with_their_column() {
    let log = "\
kernel.cu(6): error: identifier \"undefined_thing\" is undefined
  __global__ void bad(float*a){ a[0]= undefined_thing; int unused; }
                                      ^

kernel.cu(6): warning #177-D: variable \"unused\" was declared but never referenced
  __global__ void bad(float*a){ a[0]= undefined_thing; int unused; }
                                                           ^

Remark: The warnings can be suppressed with \"-diag-suppress <warning-number>\"

1 error detected in the compilation of \"kernel.cu\".
";
    assert_eq!(
        places(log),
        [
            kernel(Severity::Error, 6, Some(37), "identifier \"undefined_thing\" is undefined"),
            kernel(
                Severity::Warning,
                6,
                Some(58),
                "variable \"unused\" was declared but never referenced",
            ),
        ]
    );
}

#[test]
fn other_shapes() {
    let own = |severity, message: &str| (severity, None, None, None, message.to_owned());
    let cases = [
        (
            "kernel.cu(2): catastrophic error: #error directive: NO",
            kernel(Severity::Error, 2, None, "#error directive: NO"),
        ),
        ("nvrtc: error: invalid value for --x", own(Severity::Error, "invalid value for --x")),
        (
            "Command-line error: cannot open source file \"a.h\"",
            own(Severity::Error, "cannot open source file \"a.h\""),
        ),
        ("kernel.cu:12:5: error: no", kernel(Severity::Error, 12, Some(5), "no")),
        ("kernel.cu:12: note: see", kernel(Severity::Note, 12, None, "see")),
        ("kernel.cu(3) : error : spaced", kernel(Severity::Error, 3, None, "spaced")),
        (
            "ptxas kernel.cu, line 7; error   : Unknown symbol",
            kernel(Severity::Error, 7, None, "Unknown symbol"),
        ),
        ("ptxas error   : Entry function too big", own(Severity::Error, "Entry function too big")),
        ("ptxas warning : Stack size", own(Severity::Warning, "Stack size")),
    ];
    for (line, expected) in cases {
        assert_eq!(places(line), [expected], "{line}");
    }
}

#[test]
fn what_is_no_message() {
    for line in [
        "ptxas info    : Used 14 registers, used 0 barriers",
        "  x = 1; // error: not one",
        "1 error detected in the compilation of \"kernel.cu\".",
        "Compilation terminated.",
        "",
    ] {
        let found: Vec<_> = parse(line).into_iter().filter(|d| d.file.is_some()).collect();
        assert!(found.is_empty(), "{line}: {found:?}");
    }
}

#[test]
fn logs_and_messages_are_bounded() {
    let log = bound_log("é".repeat(MAX_LOG_BYTES));
    assert!(log.len() < MAX_LOG_BYTES + 100);
    assert!(log.contains("further bytes of the log were dropped"));
    let many = "kernel.cu(1): error: no\n".repeat(10_000);
    assert_eq!(parse(&many).len(), MAX_DIAGNOSTICS);
}

#[test]
fn the_linker_is_understood_and_says_a_thing_once() {
    let log = "/usr/bin/ld: a.o: in function `main':\n\
        a.cpp:(.text+0x8): undefined reference to `cudaNone'\n\
        /usr/bin/ld: a.cpp:(.text+0x16c): undefined reference to `cudaNone'\n\
        /usr/bin/ld: cannot find -lnone: No such file or directory\n\
        collect2: error: ld returned 1 exit status\n";
    let messages: Vec<String> = parse(log).into_iter().map(|one| one.message).collect();
    assert_eq!(
        messages,
        [
            "undefined reference to `cudaNone'",
            "cannot find -lnone: No such file or directory",
            "ld returned 1 exit status"
        ]
    );
}

#[test]
fn files_that_are_not_there_and_files_that_may_not_be_read_are_told_alike() {
    let logs = [
        "kernel.cu(1): catastrophic error: cannot open source file \"/F\"{}\n  #include \"/F\"\n",
        "program.cu:1:10: fatal error: /F{}\n    1 | #include \"/F\"\ncompilation terminated.\n",
        "x.s:66: Error: can't open /F for reading{}",
        "/usr/bin/ld: cannot find /F{}\ncollect2: error: ld returned 1 exit status\n",
    ];
    for log in logs {
        let missing = if log.contains("source file") { "" } else { ": No such file or directory" };
        let missing = bound_log(log.replace("{}", missing));
        for reason in UNOPENED {
            assert_eq!(bound_log(log.replace("{}", reason)), missing);
        }
    }
    let quoted = "k.cu(3): warning: x\n  puts(\"a: Permission denied\");\n";
    assert_eq!(bound_log(quoted.to_owned()), quoted);
}
