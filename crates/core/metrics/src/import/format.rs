//! Formats that are recognised but not supported, each with the command that converts it.

/// Number of bytes at the beginning of a file that decide whether it is text.
const HEAD: usize = 4 << 10;

const NSYS_REPORT: (&str, &str) = (
    "a report of Nsight Systems",
    "export its tables with `nsys stats --format csv --force-export=true FILE` and import those",
);
const NSYS_SQLITE: (&str, &str) = (
    "an SQLite export of Nsight Systems",
    "export its tables with `nsys stats --format csv FILE.sqlite` and import those",
);
const NVPROF: (&str, &str) = (
    "output of nvprof, whose metrics have other names",
    "profile again with `ncu --csv --page raw --print-units base PROGRAM`",
);

/// First bytes of a file in each unsupported format, a description of the format, and a remedy.
const MAGIC: [(&[u8], &str, &str); 9] = [
    (b"SQLite format 3", NSYS_SQLITE.0, NSYS_SQLITE.1),
    (
        b"\x1f\x8b",
        "compressed with gzip twice",
        "unpack it with `gunzip FILE` and import the result",
    ),
    (b"PK\x03\x04", "a ZIP archive", "unpack it with `unzip FILE` and import a file of it"),
    (
        b"\x28\xb5\x2f\xfd",
        "compressed with zstd",
        "unpack it with `zstd -d FILE` and import the result",
    ),
    (b"\xfd7zXZ\0", "compressed with xz", "unpack it with `unxz FILE` and import the result"),
    (b"BZh", "compressed with bzip2", "unpack it with `bunzip2 FILE` and import the result"),
    // Reports of all versions up to 2025 begin with these bytes.
    (b"NVIDIA Tegra Profiler Report", NSYS_REPORT.0, NSYS_REPORT.1),
    (
        b"version https://git-lfs.github.com/spec/",
        "a Git LFS pointer instead of the file itself",
        "get the file with `git lfs pull`",
    ),
    (b"QDSTRM", NSYS_REPORT.0, "convert it with `QdstrmImporter --input-file FILE`"),
];

/// File extensions of Nsight Systems' own reports.
const NSYS_NAMES: [&str; 3] = [".nsys-rep", ".qdrep", ".qdstrm"];

/// Returns whether a file is a report of Nsight Compute (`.ncu-rep`), which only the tool can read.
pub fn is_ncu_report(bytes: &[u8]) -> bool {
    bytes.starts_with(b"NVR\0")
}

/// Returns whether a file is an SQLite database.
pub fn is_sqlite(bytes: &[u8]) -> bool {
    bytes.starts_with(b"SQLite format 3")
}

/// Returns a description of a file and a remedy, if its bytes or its name show an unsupported
/// format.
pub(super) fn of_bytes(bytes: &[u8], name: &str) -> Option<(&'static str, &'static str)> {
    let magic = MAGIC.iter().find(|(magic, ..)| bytes.starts_with(magic));
    if let Some((_, what, help)) = magic {
        return Some((what, help));
    }
    if is_ncu_report(bytes) {
        return Some((
            "a report of Nsight Compute",
            "export it with `ncu --import FILE --csv --page raw --print-units base`",
        ));
    }
    if NSYS_NAMES.iter().any(|end| name.ends_with(end)) && is_binary(bytes) {
        return Some(NSYS_REPORT);
    }
    is_binary(bytes).then_some((
        "no text",
        "if it is a report of Nsight Systems, export its tables with `nsys stats --format csv \
         --force-export=true FILE`",
    ))
}

/// Returns whether the bytes are neither UTF-8 nor UTF-16 text.
fn is_binary(bytes: &[u8]) -> bool {
    let head = &bytes[..bytes.len().min(HEAD)];
    let zeros_at = |odd: usize| head.iter().skip(odd).step_by(2).filter(|byte| **byte == 0).count();
    let (even, odd) = (zeros_at(0), zeros_at(1));
    let zeros = even + odd;
    // In UTF-16, each Latin letter contains a zero byte. A text in UTF-16 is recognised by a byte
    // order mark, or by zeros in 80 % of the even or of the odd bytes, and in few of the others.
    let wide = head.starts_with(&[0xff, 0xfe])
        || head.starts_with(&[0xfe, 0xff])
        || even.max(odd) * 5 >= head.len() * 2 && even.min(odd) * 20 <= head.len();
    let controls = head.iter().filter(|byte| matches!(byte, 1..=8 | 14..=26 | 28..=31)).count();
    !wide && zeros > 0 || controls * 10 > head.len()
}

/// Returns a description of a text and a remedy, if the text is output of a known kind that is not
/// supported.
pub(super) fn of_text(text: &str) -> Option<(&'static str, &'static str)> {
    let lines = || text.lines().take(20_000);
    let nvprof = |line: &str| {
        line.contains("NVPROF is profiling process")
            || line.starts_with("==") && line.trim_end().ends_with("== Profiling result:")
            || line.starts_with("\"Type\",\"Time(%)\",\"Time\",\"Calls\"")
            || line.starts_with("\"Device\",\"Kernel\",\"Invocations\",\"Metric Name\"")
    };
    if lines().any(nvprof) {
        return Some(NVPROF);
    }
    if lines().take(50).any(|line| line.contains("\"traceEvents\"")) {
        return Some((
            "a trace in Chrome's format, which profilers of frameworks write",
            "trace with `nsys profile --stats=true PROGRAM` and import its output",
        ));
    }
    let has = |word: &str| lines().any(|line| line.trim().trim_matches('"').starts_with(word));
    (has("Device Attributes") && (has("Session") || has("Launch Settings"))).then_some((
        "a session page of Nsight Compute, which describes the machine and not the kernels",
        "export with `ncu --import FILE --csv --page raw --print-units base`",
    ))
}
