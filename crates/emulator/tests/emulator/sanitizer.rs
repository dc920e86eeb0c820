//! Findings and counts.

use crate::common::{Device, Params};
use warpgauge_emulator::{AllocKind, FaultKind, Finding};

fn device() -> Device {
    let mut d = Device::new("sanitize.80");
    d.sanitize = true;
    d.count = true;
    d
}

/// The line of `sanitize.cu` that contains `text`.
fn line(text: &str) -> u32 {
    let path = format!("{}/tests/kernels/sanitize.cu", env!("CARGO_MANIFEST_DIR"));
    let source = std::fs::read_to_string(path).unwrap();
    source.lines().position(|l| l.contains(text)).unwrap() as u32 + 1
}

fn findings(d: &Device, kernel: &str, grid: u32, block: u32, p: &Params) -> Vec<Finding> {
    d.run(kernel, grid, block, p).findings
}

#[test]
fn accesses_past_the_end_are_all_found() {
    let d = device();
    let x = d.upload(&[1f32; 100]);
    let y = d.alloc::<f32>(100);
    let p = Params::default().arg(x).arg(y).arg(100);
    let found = findings(&d, "past_the_end", 2, 64, &p);
    assert_eq!(found.len(), 2, "{found:#?}");
    for (f, what) in found.iter().zip(["read", "write"]) {
        assert_eq!(
            (f.check, f.block, f.thread, f.count),
            ("out_of_bounds", [1, 0, 0], [36, 0, 0], 1)
        );
        assert_eq!(f.source, Some(("sanitize.cu".into(), line("y[i] = 2.0f"))));
        assert!(f.message.contains(&format!("4-byte {what}")), "{}", f.message);
        assert!(f.message.contains("0 bytes after a 400-byte allocation"), "{}", f.message);
    }
    assert_eq!(d.download::<f32>(y, 100), [2f32; 100]);
    d.memory.free(x).unwrap();
    let found = findings(&d, "past_the_end", 1, 64, &p);
    assert_eq!((found[0].check, found[0].count), ("use_after_free", 64));
}

#[test]
fn races_on_shared_memory() {
    let d = device();
    let p = Params::default().arg(d.alloc::<f32>(128));
    let found = findings(&d, "race", 3, 128, &p);
    // Blocks find different content in shared memory, so they write different values to the same elements.
    let (found, between): (Vec<_>, Vec<_>) =
        found.into_iter().partition(|f| f.check == "shared_race");
    assert!(between.iter().all(|f| f.check == "global_race"), "{between:#?}");
    // Warps that come late read what others wrote, or write what others have read.
    assert_eq!(found.len(), 2, "{found:#?}");
    assert_eq!(found.iter().map(|f| f.count).sum::<u64>(), 3 * 128);
    let at = |f: &Finding| f.source.as_ref().map(|s| s.1);
    assert_eq!(at(&found[0]), Some(line("s[threadIdx.x] = threadIdx.x;")));
    assert_eq!(at(&found[1]), Some(line("out[threadIdx.x] = s[(threadIdx.x")));
    assert_eq!(findings(&d, "no_race", 3, 128, &p), []);
}

#[test]
fn lanes_of_a_warp_that_parted_need_a_synchronisation() {
    let d = device();
    let out = d.alloc::<f32>(32);
    let found = findings(&d, "no_syncwarp", 1, 32, &Params::default().arg(out).arg(0));
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!((found[0].check, found[0].count), ("shared_race", 16));
    assert!(found[0].message.contains("__syncwarp()"), "{}", found[0].message);
    assert_eq!(findings(&d, "no_syncwarp", 1, 32, &Params::default().arg(out).arg(1)), []);
    // Lanes that never part may rely on it.
    assert_eq!(findings(&d, "together", 1, 32, &Params::default().arg(out)), []);
}

#[test]
fn a_mask_names_the_lanes_that_come_and_no_others() {
    let d = device();
    let out = d.alloc::<i32>(64);
    let masked =
        |mask: i32| findings(&d, "undefined_mask", 1, 32, &Params::default().arg(out).arg(mask));
    assert_eq!(masked(0xffff), []);
    for (mask, says) in
        [(-1, "lanes 0xffff0000 do not arrive"), (0xff, "executing lanes 0x0000ff00")]
    {
        let found = masked(mask);
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_eq!(found[0].check, "undefined_mask");
        assert!(found[0].message.contains(says), "{}", found[0].message);
    }
    // Lanes that have ended need not come.
    assert_eq!(findings(&d, "early_return", 1, 32, &Params::default().arg(out).arg(20)), []);
}

#[test]
fn uninitialised_reads_need_tracking() {
    let d = device();
    d.memory.track_initialisation(true);
    let (x, y) = (d.alloc::<f32>(64), d.alloc::<f32>(64));
    d.memory.write(x, &[0; 40 * 4]).unwrap();
    let p = Params::default().arg(x).arg(y);
    let found = findings(&d, "uninitialised", 1, 64, &p);
    assert_eq!(found.len(), 1);
    assert_eq!(
        (found[0].check, found[0].thread[0], found[0].count),
        ("uninitialised_read", 40, 24)
    );
    // What the kernel has written can be read.
    assert_eq!(findings(&d, "uninitialised", 1, 64, &Params::default().arg(y).arg(x)), []);
    assert_eq!(findings(&d, "uninitialised", 1, 64, &p), []);
}

#[test]
fn barriers_of_one_warp_at_two_places() {
    let d = device();
    let p = d.alloc::<i32>(64);
    let found = findings(&d, "divergent", 1, 64, &Params::default().arg(p));
    assert_eq!(found[0].check, "divergent_barrier");
    assert_eq!(found[0].count, 2);
    let want: Vec<i32> = (0..64).map(|t| if t % 32 < 16 { 1 } else { 2 }).collect();
    assert_eq!(d.download::<i32>(p, 64), want);
}

#[test]
fn shared_memory_and_inputs_are_guarded() {
    let mut d = device();
    let p = d.alloc::<f32>(64);
    let args = Params::default().arg(p).arg(4);
    let found = findings(&d, "shared_past_the_end", 1, 64, &args);
    assert_eq!((found[0].check, found[0].thread[0], found[0].count), ("out_of_bounds", 60, 4));
    assert!(found[0].message.contains("at 0x100 of 256 bytes of shared memory"));
    let x = d.upload(&[1f32; 64]);
    d.memory.set_read_only(p, true).unwrap();
    let args = Params::default().arg(x).arg(p).arg(1);
    let found = findings(&d, "strided", 1, 32, &args);
    assert_eq!((found[0].check, found[0].count), ("read_only_write", 32));
    d.sanitize = false;
    let f = d.try_run("strided", [1, 1, 1], [32, 1, 1], 0, &args).unwrap_err();
    assert_eq!((f.kind, f.finding.unwrap().check), (FaultKind::IllegalAddress, "read_only_write"));
    d.memory.set_read_only(p, false).unwrap();
    d.run("strided", 1, 32, &args);
}

#[test]
fn traffic_follows_from_the_addresses() {
    let d = device();
    let x = d.upload(&vec![1f32; 32 * 64]);
    let y = d.alloc::<f32>(32);
    for (stride, sectors, lines) in [(1, 4, 1), (2, 8, 2), (8, 32, 8), (64, 32, 32), (0, 1, 1)] {
        let c = d.run("strided", 1, 32, &Params::default().arg(x).arg(y).arg(stride)).counts;
        assert_eq!((c.global_load_requests, c.global_load_sectors), (1, sectors), "{stride}");
        assert_eq!((c.global_load_lines, c.ideal_read_bytes), (lines, 32 * sectors));
        assert_eq!((c.global_store_requests, c.global_store_sectors), (1, 4));
        assert_eq!((c.global_load_bytes, c.ideal_write_bytes), (128, 128));
    }
    for (stride, passes) in [(1, 1), (2, 2), (8, 8), (32, 32), (33, 1)] {
        let c = d.run("conflicts", 1, 32, &Params::default().arg(y).arg(stride)).counts;
        assert_eq!((c.shared_store_requests, c.shared_store_wavefronts), (1, passes));
        assert_eq!((c.shared_load_requests, c.shared_load_conflicts), (1, passes - 1));
        assert_eq!(c.barriers, 1);
    }
}

#[test]
fn instructions_and_flops() {
    let d = device();
    let (f, e) = (d.upload(&[1f32; 96]), d.upload(&[1f64; 96]));
    let c = d.run("flops", 2, 96, &Params::default().arg(f).arg(e).arg(10)).counts;
    let n = 2 * 96 * 10;
    assert_eq!((c.ffma, c.fadd, c.fmul, c.dfma, c.dadd), (n, n, n, n, 0));
    assert_eq!((c.warp_fp32, c.thread_fp32), (3 * n / 32, 3 * n));
    assert_eq!(c.threads_per_instruction(), 32.0);
    let sum: u64 = c
        .iter()
        .filter(|(k, _)| k.starts_with("warp_") && *k != "warp_instructions")
        .map(|(_, v)| v)
        .sum();
    assert_eq!(sum, c.warp_instructions);

    let p = d.upload(&[1i32; 64]);
    let c = d.run("parting", 1, 64, &Params::default().arg(p).arg(8)).counts;
    assert_eq!(c.divergent_branches, 2);
    assert!(c.threads_per_instruction() < 32.0);
    let c = d.run("parting", 1, 64, &Params::default().arg(p).arg(32)).counts;
    assert_eq!(c.divergent_branches, 0);
}

/// The same counts whatever the number of workers and the order of the blocks.
#[test]
fn counts_do_not_depend_on_the_schedule() {
    let mut d = Device::new("reduce.80");
    d.count = true;
    let n = 50_000;
    let x = d.memory.alloc(4 * n, AllocKind::Device(0)).unwrap();
    let out = d.upload(&[0f32]);
    let p = Params::default().arg(x).arg(out).arg(n as i32);
    let run = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| d.run("reduce_sum", 40, 256, &p).counts)
    };
    let one = run(1);
    assert_eq!(one, run(4));
    assert_eq!(one, run(3));
    assert!(one.warp_instructions > 10_000);
}
