//! Nothing that a PTX text says makes the loader or the executor panic.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::common::{ARCHS, Random, ptx};
use warpgauge_emulator::{LaunchConfig, LaunchOptions, Memory, Module, launch};

const FILES: [&str; 12] = [
    "vadd",
    "matmul",
    "reduce",
    "softmax",
    "spmv",
    "layernorm",
    "half",
    "hist",
    "misc",
    "mma",
    "first",
    "sanitize",
];

/// Runs every kernel of a module that loads, with arguments that make no sense.
fn run_all(module: &Module, memory: &Memory) {
    let names: Vec<String> = module.functions().map(str::to_string).collect();
    for name in names {
        let f = module.function(&name).unwrap();
        let params = vec![0u8; f.param_bytes().min(1 << 16)];
        let opts = LaunchOptions {
            deadline: Some(Instant::now() + Duration::from_millis(20)),
            cancel: None,
            printf: &|_| {},
            sm_count: 4,
            device: 0,
            sanitize: true,
            count: true,
            by_instruction: false,
            order: 0,
        };
        let cfg = LaunchConfig {
            grid: [2, 1, 1],
            block: [48, 1, 1],
            dynamic_shared_bytes: 0,
            cooperative: false,
        };
        // A fault is as good as an end.
        let _ = launch(&f, memory, &cfg, &params, &opts);
    }
}

/// A text with some bytes, words or lines changed, taken out, doubled or exchanged.
fn mutate(text: &str, rnd: &mut Random) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_string).collect();
    let words = [
        "0",
        "-1",
        "4294967296",
        "%r1",
        "%rd1",
        "%p1",
        "{",
        "}",
        "[",
        ";",
        ".u64",
        ".b8",
        "_",
        "!",
    ];
    for _ in 0..1 + rnd.next() % 4 {
        let i = (rnd.next() % lines.len() as u64) as usize;
        let j = (rnd.next() % lines.len() as u64) as usize;
        match rnd.next() % 6 {
            0 => lines[i].clear(),
            1 => lines[i] = lines[j].clone(),
            2 => lines.swap(i, j),
            3 => {
                let mut parts: Vec<&str> =
                    lines[i].split_inclusive([' ', ',', '.', '\t']).collect();
                if let Some(n) = (rnd.next() as usize).checked_rem(parts.len()) {
                    parts[n] = words[(rnd.next() % words.len() as u64) as usize];
                    lines[i] = parts.concat();
                }
            }
            4 => {
                let mut bytes = lines[i].clone().into_bytes();
                if let Some(n) = (rnd.next() as usize).checked_rem(bytes.len()) {
                    bytes[n] = (rnd.next() % 128) as u8;
                }
                lines[i] = String::from_utf8_lossy(&bytes).into_owned();
            }
            _ => {
                let other: Vec<char> = lines[j].chars().collect();
                let own: Vec<char> = lines[i].chars().collect();
                let (a, b) = (own.len() / 2, other.len() / 2);
                lines[i] = own[..a].iter().chain(&other[b..]).collect();
            }
        }
    }
    lines.join("\n")
}

#[test]
fn mutated_modules_load_or_are_refused() {
    let memory = Arc::new(Memory::new());
    let mut rnd = Random(61);
    let (mut loaded, mut refused) = (0, 0);
    for round in 0..60 {
        for name in FILES {
            let text = ptx(&format!("{name}.{}", ARCHS[round % 3]));
            match Module::load(&mutate(&text, &mut rnd), &memory, 0) {
                Ok(module) => {
                    loaded += 1;
                    if round < 12 {
                        run_all(&module, &memory);
                    }
                }
                Err(e) => {
                    refused += 1;
                    assert!(e.to_string().len() < 1000);
                }
            }
        }
    }
    assert!(loaded > 50 && refused > 50, "{loaded} loaded, {refused} refused");
}

#[test]
fn bytes_that_are_no_ptx() {
    let memory = Arc::new(Memory::new());
    let mut rnd = Random(67);
    for _ in 0..500 {
        let n = rnd.next() % 400;
        let bytes: Vec<u8> = (0..n).map(|_| (rnd.next() >> 11) as u8).collect();
        assert!(Module::load(&String::from_utf8_lossy(&bytes), &memory, 0).is_err());
    }
    let deep = format!(".version 8.0\n.target sm_80\n.global .b8 x[4] = {}", "{".repeat(100_000));
    let e = Module::load(&deep, &memory, 0).err().unwrap();
    assert!(e.reason.contains("deep"), "{e}");
    let head = ".version 8.0\n.target sm_80\n.address_size 64\n";
    for body in [
        ".global .b8 x[4294967295][4294967295];",
        ".visible .entry f() { .reg .b32 %r<4294967295>; add.u32 %r4294967294, %r1, %r2; ret; }",
        ".visible .entry f() { .local .b8 x[4294967295]; ret; }",
        ".visible .entry f() { .shared .b8 x[4294967295]; ret; }",
        ".visible .entry f() { bra nowhere; }",
        ".visible .entry f(",
        ".visible .entry f() { @%p1 ret; }",
        ".visible .entry f() { call g, (); }",
        ".func g() { call g, (); } .visible .entry f() { call g, (); ret; }",
    ] {
        if let Ok(module) = Module::load(&format!("{head}{body}"), &memory, 0) {
            run_all(&module, &memory);
        }
    }
}

#[test]
fn what_is_not_supported_is_named() {
    let memory = Arc::new(Memory::new());
    let try_load = |line: &str| {
        let text = format!(
            ".version 8.7\n.target sm_90a\n.address_size 64\n.visible .entry f()\n{{\n\
             .reg .b32 %r<9>;\n.reg .b64 %rd<9>;\n.reg .f32 %f<9>;\n{line}\nret;\n}}\n"
        );
        Module::load(&text, &memory, 0).err().unwrap_or_else(|| panic!("{line} was accepted"))
    };
    for (text, what) in [
        ("wgmma.fence.sync.aligned;", "warpgroups"),
        ("cp.async.bulk.commit_group;", "TMA"),
        ("tex.cube.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f1, %f2, %f3, %f4}];", "textures"),
        ("mapa.shared::cluster.u32 %r1, %r2, 0;", "clusters"),
        ("frobnicate.u32 %r1, %r2;", "instruction `frobnicate`"),
        ("add.funny.u32 %r1, %r2, %r3;", "modifier `.funny`"),
        ("add.u32 %r1, %r2;", "2 operands instead of 3"),
        ("add.u32 %r1, %r2, %rd3;", "`%rd3` holds 64 bits"),
        ("add.u32 %r1, %r2, %r99;", "`%r99` is not declared"),
    ] {
        let e = try_load(text);
        assert_eq!(e.line, 9, "{e}");
        assert!(e.reason.contains(what), "{text}: {e}");
        assert!(e.instruction.contains(text.split(['.', ' ']).next().unwrap()), "{e}");
    }
}

/// Addresses at both ends of the address space, and just beside the windows of the other spaces.
#[test]
fn extreme_addresses_are_faults() {
    let memory = Arc::new(Memory::new());
    for ty in ["u8", "u32", "u64", "v4.u32"] {
        let data = if ty == "v4.u32" { "{%r1, %r1, %r1, %r1}" } else { "%rd2" };
        let data = if ty == "u32" { "%r1" } else { data };
        for space in [".global", "", ".shared", ".local"] {
            for access in ["ld", "st"] {
                let operands = match access {
                    "ld" => format!("{data}, [%rd1]"),
                    _ => format!("[%rd1], {data}"),
                };
                let text = format!(
                    ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry f(.param .u64 p)\n\
                     {{\n.reg .b32 %r<4>;\n.reg .b64 %rd<4>;\nld.param.u64 %rd1, [p];\n\
                     {access}{space}.{ty} {operands};\nret;\n}}\n"
                );
                let module = Module::load(&text, &memory, 0).unwrap_or_else(|e| panic!("{e}"));
                let f = module.function("f").unwrap();
                for va in [
                    0,
                    16,
                    u64::MAX,
                    u64::MAX - 15,
                    u64::MAX - 31,
                    1 << 63,
                    0x00ff_ffff_ffff_fff0,
                    0x0100_0000_0000_0000,
                    0x0100_0000_ffff_fff0,
                    0x0200_0000_0000_0010,
                    0x0300_0000_0000_0100,
                    0x0400_0000_0000_0000,
                ] {
                    for sanitize in [false, true] {
                        let opts = LaunchOptions {
                            deadline: Some(Instant::now() + Duration::from_secs(10)),
                            cancel: None,
                            printf: &|_| {},
                            sm_count: 4,
                            device: 0,
                            sanitize,
                            count: true,
                            by_instruction: false,
                            order: 0,
                        };
                        let cfg = LaunchConfig {
                            grid: [1, 1, 1],
                            block: [32, 1, 1],
                            dynamic_shared_bytes: 0,
                            cooperative: false,
                        };
                        let result = launch(&f, &memory, &cfg, &u64::to_le_bytes(va), &opts);
                        let found = match result {
                            Ok(report) => report.findings.len() == 1,
                            Err(_) => !sanitize,
                        };
                        assert!(found, "{access}{space}.{ty} at {va:#x}");
                    }
                }
            }
        }
    }
}
